//! Times in notices: `1999-06-25T15:23:15Z` as text, two decimal digits an octet as OPAQUE, zero octets at the end left
//! away (WAP-167, section 8.2.2).

/// The digits of `text`; `None` if it is no time of this form.
pub fn digits(text: &str) -> Option<Vec<u8>> {
    const FORM: &[u8; 20] = b"0000-00-00T00:00:00Z";
    let octets = text.as_bytes();
    if octets.len() != FORM.len() {
        return None;
    }
    let mut digits = Vec::with_capacity(14);
    for (&octet, &form) in octets.iter().zip(FORM) {
        match form {
            b'0' if octet.is_ascii_digit() => digits.push(octet - b'0'),
            b'0' => return None,
            _ if octet != form => return None,
            _ => {}
        }
    }
    let mut packed: Vec<u8> = digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    while packed.last() == Some(&0) {
        packed.pop();
    }
    Some(packed)
}

/// The time whose digits these are; `None` if they are no digits or too many.
pub fn text(digits: &[u8]) -> Option<String> {
    let mut whole = [0; 7];
    whole.get_mut(..digits.len())?.copy_from_slice(digits);
    if whole.iter().any(|octet| octet >> 4 > 9 || octet & 15 > 9) {
        return None;
    }
    let [c, y, m, d, h, min, s] = whole;
    Some(format!("{c:02x}{y:02x}-{m:02x}-{d:02x}T{h:02x}:{min:02x}:{s:02x}Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_becomes_digits_without_zeros_at_the_end() {
        // As Kannel wrote it into a capture.
        let whole = "1999-06-25T15:23:15Z";
        assert_eq!(digits(whole).as_deref(), Some(&[0x19, 0x99, 0x06, 0x25, 0x15, 0x23, 0x15][..]));
        let midnight = "1999-06-30T00:00:00Z";
        assert_eq!(digits(midnight).as_deref(), Some(&[0x19, 0x99, 0x06, 0x30][..]));
        for time in [whole, midnight] {
            assert_eq!(text(&digits(time).unwrap()).as_deref(), Some(time));
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for bad in
            ["", "1999-06-25", "1999-06-25T15:23:15+", "1999-06-25 15:23:15Z", "1999-06-2\u{e9}T15:23:1Z"]
        {
            assert_eq!(digits(bad), None, "{bad}");
        }
        assert_eq!(text(&[0x1A]), None);
        assert_eq!(text(&[0; 8]), None);
    }
}

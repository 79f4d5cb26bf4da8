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

/// Seconds since 1970-01-01T00:00:00Z of a time in this form; `None` if it is none, or before that.
pub fn seconds(text: &str) -> Option<u64> {
    digits(text)?;
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    let exists =
        (1970..).contains(&year) && (1..=12).contains(&month) && hour < 24 && minute < 60 && second < 60;
    if !exists || day == 0 || day > days_of(year, month) {
        return None;
    }
    let days = days_before(year) + (1..month).map(|m| days_of(year, m)).sum::<u64>() + day - 1;
    Some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

/// The time so many seconds after 1970-01-01T00:00:00Z; the last one of the year 9999 for what is behind that.
pub fn of_seconds(seconds: u64) -> String {
    const LAST: u64 = 253_402_300_799;
    let seconds = seconds.min(LAST);
    let (mut days, rest) = (seconds / 86_400, seconds % 86_400);
    // A guess that is at most one year too late.
    let mut year = 1970 + days / 365;
    while days_before(year) > days {
        year -= 1;
    }
    days -= days_before(year);
    let mut month = 1;
    while days >= days_of(year, month) {
        days -= days_of(year, month);
        month += 1;
    }
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", days + 1)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of(year: u64, month: u64) -> u64 {
    match month {
        2 => 28 + u64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970 to the first one of a year.
fn days_before(year: u64) -> u64 {
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    (year - 1970) * 365 + leaps(year - 1) - leaps(1969)
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

    #[test]
    fn times_are_counted_in_seconds() {
        // As `date -u -d TEXT +%s` says.
        for (time, count) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1972-02-29T12:00:01Z", 68_212_801),
            ("2000-02-29T23:59:59Z", 951_868_799),
            ("2001-02-28T06:45:00Z", 983_342_700),
            ("2100-03-01T00:00:00Z", 4_107_542_400),
            ("9999-12-31T23:59:59Z", 253_402_300_799),
        ] {
            assert_eq!((seconds(time), of_seconds(count).as_str()), (Some(count), time));
        }
        assert_eq!(of_seconds(u64::MAX), "9999-12-31T23:59:59Z");
        for bad in [
            "1969-12-31T23:59:59Z",
            "2001-02-29T00:00:00Z",
            "2001-13-01T00:00:00Z",
            "2001-01-01T24:00:00Z",
            "2001-04-00T00:00:00Z",
            "x",
        ] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }
}

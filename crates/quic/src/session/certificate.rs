//! A certificate of any size that can be read and says nothing (X.509, RFC 5280).

/// One element: its tag, its length in DER, its content.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let len = content.len();
    let mut out = vec![tag];
    match len {
        0..0x80 => out.push(len as u8),
        0x80..0x100 => out.extend_from_slice(&[0x81, len as u8]),
        _ => out.extend_from_slice(&[0x82, (len >> 8) as u8, len as u8]),
    }
    out.extend_from_slice(content);
    out
}

fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    element(0x30, &parts.concat())
}

fn object(arcs: &[u8]) -> Vec<u8> {
    element(0x06, arcs)
}

/// The whole with so many octets in its key.
fn with_key_of(octets: usize) -> Vec<u8> {
    // sha256WithRSAEncryption and rsaEncryption, both without parameters but NULL.
    let algorithm =
        |last: u8| sequence(&[object(&[0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, last]), element(0x05, &[])]);
    let name = sequence(&[element(0x31, &sequence(&[object(&[0x55, 4, 3]), element(0x0C, b"airloom")]))]);
    let validity = sequence(&[element(0x17, b"240101000000Z"), element(0x17, b"490101000000Z")]);
    let modulus = vec![0x5A; octets + 1];
    let key = sequence(&[element(0x02, &modulus), element(0x02, &[1, 0, 1])]);
    let bits = |octets: &[u8]| element(0x03, &[&[0], octets].concat());
    let body = sequence(&[
        element(0xA0, &element(0x02, &[2])),
        element(0x02, &[1]),
        algorithm(11),
        name.clone(),
        validity,
        name,
        sequence(&[algorithm(1), bits(&key)]),
    ]);
    sequence(&[body, algorithm(11), bits(&[0x5A; 256])])
}

/// A certificate of `octets` octets; what is too small for one is filled with what is none.
pub(super) fn of(octets: usize) -> Vec<u8> {
    let least = with_key_of(0).len();
    let mut whole = with_key_of(octets.saturating_sub(least));
    // Lengths grow with what they count: a few octets too many.
    for less in 1..=32 {
        if whole.len() <= octets {
            break;
        }
        whole = with_key_of(octets.saturating_sub(least + less));
    }
    whole.resize(octets, 0);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_has_the_size_that_was_asked_for() {
        for octets in [600, 900, 1_000, 2_990, 16_000] {
            let out = of(octets);
            assert_eq!(out.len(), octets);
            // What follows the outermost element is nothing: the lengths fit but for a jump of theirs.
            let inner = usize::from(u16::from_be_bytes([out[2], out[3]]));
            assert!(octets - (inner + 4) <= 3, "{octets} {inner}");
        }
    }
}

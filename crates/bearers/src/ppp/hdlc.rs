//! Frames on an octet stream (RFC 1662, 3 to 5 and appendix C).

/// Begins and ends a frame.
pub const FLAG: u8 = 0x7E;
const ESCAPE: u8 = 0x7D;
/// What an escaped octet is combined with.
const FLIP: u8 = 0x20;
/// The checksum over a whole frame, its own octets included (RFC 1662, appendix C.2).
const GOOD_FCS: u16 = 0xF0B8;
/// Fewer octets than address, control and checksum have are no frame, and no error either (RFC 1662, 4.3).
const SHORTEST: usize = 4;

/// The checksum over `octets` so far: begin with `0xFFFF`, send the complement, least significant octet first.
pub fn fcs16(so_far: u16, octets: &[u8]) -> u16 {
    octets.iter().fold(so_far, |fcs, octet| (fcs >> 8) ^ TABLE[usize::from((fcs ^ u16::from(*octet)) & 0xFF)])
}

const TABLE: [u16; 256] = table();

const fn table() -> [u16; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let (mut value, mut bit) = (index as u16, 0);
        while bit < 8 {
            value = (value >> 1) ^ (0x8408 & (value & 1).wrapping_neg());
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
}

/// Does an octet have to be escaped? `accm`: the control characters that the receiver asked to have escaped.
#[inline]
const fn needs_escape(octet: u8, accm: u32) -> bool {
    matches!(octet, FLAG | ESCAPE) || octet < 0x20 && accm >> octet & 1 == 1
}

/// Appends the frame with this content (address to information) as it is on the line: flag, content and checksum with
/// what needs it escaped, flag.
pub fn append_frame(out: &mut impl Extend<u8>, content: &[u8], accm: u32) {
    let fcs = (!fcs16(0xFFFF, content)).to_le_bytes();
    out.extend([FLAG]);
    for octet in content.iter().chain(&fcs) {
        if needs_escape(*octet, accm) {
            out.extend([ESCAPE, octet ^ FLIP]);
        } else {
            out.extend([*octet]);
        }
    }
    out.extend([FLAG]);
}

/// What a receiver makes of the octets of a line.
#[derive(Debug, Default)]
pub struct Deframer {
    /// Control characters that were asked to be escaped: those that come as they are were put in on the way.
    accm: u32,
    content: Vec<u8>,
    is_escaped: bool,
    /// What came since the last flag is thrown away at the next one.
    is_spoiled: bool,
    /// Frames with a wrong checksum, or longer than any may be.
    pub errors: u64,
}

/// Octets of a frame after which the rest is not kept: more than any information field here needs.
const LONGEST: usize = 16_384;

impl Deframer {
    /// A receiver that asked for these control characters to be escaped.
    pub fn new(accm: u32) -> Deframer {
        Deframer { accm, ..Deframer::default() }
    }

    /// Takes an octet. The content of a frame (without its checksum) that it completes goes to `frame`.
    pub fn push(&mut self, octet: u8, frame: impl FnOnce(&[u8])) {
        match octet {
            FLAG => {
                // An escape in front of a flag gives the frame up (RFC 1662, 4.3).
                if !self.is_escaped && self.content.len() >= SHORTEST {
                    if !self.is_spoiled && fcs16(0xFFFF, &self.content) == GOOD_FCS {
                        frame(&self.content[..self.content.len() - 2]);
                    } else {
                        self.errors += 1;
                    }
                }
                self.content.clear();
                (self.is_escaped, self.is_spoiled) = (false, false);
            }
            ESCAPE => self.is_escaped = true,
            _ if octet < 0x20 && self.accm >> octet & 1 == 1 && !self.is_escaped => {}
            _ => {
                let octet = if std::mem::take(&mut self.is_escaped) { octet ^ FLIP } else { octet };
                if self.content.len() < LONGEST {
                    self.content.push(octet);
                } else {
                    self.is_spoiled = true;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(content: &[u8], accm: u32) -> Vec<u8> {
        let mut out = Vec::new();
        append_frame(&mut out, content, accm);
        out
    }

    fn frames(line: &[u8], accm: u32) -> (Vec<Vec<u8>>, u64) {
        let (mut deframer, mut found) = (Deframer::new(accm), Vec::new());
        line.iter().for_each(|octet| deframer.push(*octet, |frame| found.push(frame.to_vec())));
        (found, deframer.errors)
    }

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        // The check value of CRC-16/X-25, which is this checksum.
        assert_eq!(!fcs16(0xFFFF, b"123456789"), 0x906E);
        assert_eq!(fcs16(0xFFFF, &[b"123456789".as_slice(), &[0x6E, 0x90]].concat()), GOOD_FCS);
    }

    #[test]
    fn flags_escapes_and_what_the_receiver_asked_for_are_escaped() {
        let content = [0xFF, 0x03, 0x7E, 0x7D, 0x11, 0x41];
        assert_eq!(line(&content, 0)[..9], [0x7E, 0xFF, 0x03, 0x7D, 0x5E, 0x7D, 0x5D, 0x11, 0x41]);
        assert_eq!(
            line(&content, !0)[..11],
            [0x7E, 0xFF, 0x7D, 0x23, 0x7D, 0x5E, 0x7D, 0x5D, 0x7D, 0x31, 0x41]
        );
    }

    #[test]
    fn what_was_put_in_on_the_way_is_taken_out() {
        let mut line = line(b"\xFF\x03\x00\x21text", 1 << 0x11);
        line.insert(5, 0x11);
        assert_eq!(frames(&line, 1 << 0x11), (vec![b"\xFF\x03\x00\x21text".to_vec()], 0));
        assert_eq!(frames(&line, 0), (vec![], 1));
    }

    #[test]
    fn frames_may_share_a_flag_be_given_up_and_be_too_short() {
        let one = line(b"\xFF\x03\x00\x21a", 0);
        let shared = [&one[..one.len() - 1], &one[..]].concat();
        assert_eq!(frames(&shared, 0).0.len(), 2);
        let given_up = [&one[..one.len() - 2], &[ESCAPE, FLAG], &one[..]].concat();
        assert_eq!((frames(&given_up, 0).0.len(), frames(&given_up, 0).1), (1, 0));
        assert_eq!(frames(&[FLAG, 1, 2, 3, FLAG], 0), (vec![], 0));
    }

    #[test]
    fn a_frame_without_end_takes_no_memory_without_end() {
        let mut endless = Deframer::new(0);
        (0..100_000).for_each(|_| endless.push(b'x', |_| unreachable!()));
        assert!(endless.content.len() <= LONGEST);
        endless.push(FLAG, |_| unreachable!("it was not whole"));
        assert_eq!(endless.errors, 1);
    }

    proptest! {
        #[test]
        fn every_content_comes_back(content in prop::collection::vec(any::<u8>(), 2..200), accm: u32) {
            let line = line(&content, accm);
            prop_assert_eq!(line.iter().filter(|octet| **octet == FLAG).count(), 2);
            prop_assert_eq!(frames(&line, accm), (vec![content], 0));
        }

        #[test]
        fn no_octets_panic(line in prop::collection::vec(any::<u8>(), 0..300), accm: u32) {
            frames(&line, accm);
        }
    }
}

//! What fills packets and says nothing (PADDING, RFC 9000, 19.1) is left out before the library reads it: to that each octet is a frame
//! of its own, and a handshake with a search for the path's MTU has some thirteen thousand of them.

use bytes::{Buf, BytesMut};

/// Octets of padding that are not worth looking for.
const FEW: usize = 16;

/// Cuts the padding behind the last frame, if what is in front of it is known. A packet of nothing else keeps one frame, since an
/// empty one is an error.
pub(crate) fn trim(payload: &mut BytesMut) {
    let is_padded = payload.last_chunk::<FEW>().is_some_and(|last| *last == [0; FEW]);
    let mut rest = &payload[..];
    if is_padded && pass_frames(&mut rest).is_some() && is_nothing(rest) {
        payload.truncate((payload.len() - rest.len()).max(1));
    }
}

/// Are these all zeros?
fn is_nothing(octets: &[u8]) -> bool {
    let (first, rest) = octets.as_rchunks::<FEW>();
    first.iter().all(|octet| *octet == 0) && rest.iter().all(|part| *part == [0; FEW])
}

/// Passes frames by up to the first octet of padding. `None`: there is one that is not known here.
fn pass_frames(rest: &mut &[u8]) -> Option<()> {
    while let Some((kind, after)) = rest.split_first().filter(|(kind, _)| **kind != 0) {
        *rest = after;
        match kind {
            // PING, HANDSHAKE_DONE, IMMEDIATE_ACK (draft-ietf-quic-ack-frequency).
            0x01 | 0x1E | 0x1F => {}
            0x02 | 0x03 => {
                // The largest number, and the delay.
                pass(rest, 2)?;
                let ranges = varint(rest)?;
                pass(rest, 1)?;
                for _ in 0..ranges {
                    pass(rest, 2)?;
                }
                if *kind == 0x03 {
                    pass(rest, 3)?;
                }
            }
            0x06 => {
                pass(rest, 1)?;
                pass_field(rest)?;
            }
            0x07 => pass_field(rest)?,
            // A stream's octets with their length.
            0x0A | 0x0B | 0x0E | 0x0F => {
                pass(rest, 1 + usize::from(kind & 4 != 0))?;
                pass_field(rest)?;
            }
            0x18 => {
                pass(rest, 2)?;
                let (len, id) = rest.split_first()?;
                *rest = id.get(usize::from(*len) + 16..)?;
            }
            0x1A | 0x1B => *rest = rest.get(8..)?,
            _ => return None,
        }
    }
    Some(())
}

/// Passes so many numbers by.
fn pass(rest: &mut &[u8], numbers: usize) -> Option<()> {
    (0..numbers).try_for_each(|_| varint(rest).map(drop))
}

/// Passes octets by behind their number.
fn pass_field(rest: &mut &[u8]) -> Option<()> {
    let len = usize::try_from(varint(rest)?).ok()?;
    *rest = rest.get(len..)?;
    Some(())
}

/// A number of variable length (RFC 9000, 16).
pub(crate) fn varint(rest: &mut &[u8]) -> Option<u64> {
    let len = 1 << (rest.first()? >> 6);
    let octets = rest.get(..len)?;
    let value = octets.iter().fold(0, |n: u64, octet| n << 8 | u64::from(*octet));
    rest.advance(len);
    Some(value & u64::MAX >> (66 - 8 * len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trimmed(frames: &[u8], padding: usize) -> usize {
        let mut payload = BytesMut::from(frames);
        payload.resize(frames.len() + padding, 0);
        trim(&mut payload);
        assert_eq!(payload[..frames.len().min(payload.len())], frames[..frames.len().min(payload.len())]);
        payload.len()
    }

    /// One of each kind that stands in packets that are filled: with zeros in it where there can be some.
    const FRAMES: [&[u8]; 9] = [
        &[0x01, 0x1F],
        &[0x02, 0x40, 0x05, 0, 1, 0, 0, 0],
        &[0x03, 5, 0, 0, 0, 1, 2, 0],
        &[0x06, 0, 3, 0, 0, 0],
        &[0x07, 2, 0, 0],
        &[0x0A, 4, 2, 0, 0, 0x0F, 0, 0, 1, 0],
        &[0x18, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0x1A, 0, 0, 0, 0, 0, 0, 0, 0, 0x1B, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0x1E],
    ];

    #[test]
    fn padding_behind_frames_is_cut_and_nothing_of_them() {
        for frames in FRAMES.iter().map(|frames| frames.to_vec()).chain([FRAMES.concat()]) {
            for padding in [FEW, 17, 1200] {
                assert_eq!(trimmed(&frames, padding), frames.len(), "{frames:?}");
            }
            // What is cut short stays for the library to find.
            for cut in 1..frames.len() {
                let mut payload = BytesMut::from(&frames[..cut]);
                trim(&mut payload);
                assert_eq!(payload[..], frames[..cut]);
            }
        }
        assert_eq!(trimmed(&[], 1200), 1);
    }

    #[test]
    fn zeros_that_are_data_stay() {
        // A stream's octets up to the end of the packet, a frame of another kind, and one behind padding.
        for frames in [&[0x08, 4][..], &[0x10], &[0x01, 0, 0, 0x01, 0x31]] {
            assert_eq!(trimmed(frames, 100), frames.len() + 100);
        }
        // A length that is larger than the packet.
        assert_eq!(trimmed(&[0x06, 0, 0x44, 0], 100), 104);
    }
}

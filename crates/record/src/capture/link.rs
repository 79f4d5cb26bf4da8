//! What stands before the datagram in a frame (the LINKTYPE registry of the same drafts).

const NULL: u16 = 0;
const ETHERNET: u16 = 1;
const PPP: u16 = 9;
/// Raw IP as some systems number it in files, too.
const RAW_BSD: u16 = 12;
const RAW_OPENBSD: u16 = 14;
const PPP_HDLC: u16 = 50;
const RAW: u16 = 101;
const LOOP: u16 = 108;
const LINUX_SLL: u16 = 113;
const IPV4: u16 = 228;
const IPV6: u16 = 229;
const LINUX_SLL2: u16 = 276;

/// EtherTypes (IEEE 802).
const IS_IPV4: u16 = 0x0800;
const IS_IPV6: u16 = 0x86DD;
/// Customer and service tags (802.1Q), and the older number of the latter.
const TAGS: [u16; 3] = [0x8100, 0x88A8, 0x9100];
const IS_PPPOE: u16 = 0x8864;

/// Does [`datagram`] look into frames of a link of this type?
pub fn is_known_link(link: u16) -> bool {
    matches!(
        link,
        NULL | ETHERNET
            | PPP
            | RAW_BSD
            | RAW_OPENBSD
            | PPP_HDLC
            | RAW
            | LOOP
            | LINUX_SLL
            | IPV4
            | IPV6
            | LINUX_SLL2
    )
}

/// The number of the device that a frame passed, where frames of a link of this type say it: those of `tcpdump -i any` may pass several
/// one after the other.
pub fn interface_index(link: u16, frame: &[u8]) -> Option<u32> {
    if link != LINUX_SLL2 {
        return None;
    }
    frame.get(4..)?.first_chunk().copied().map(u32::from_be_bytes)
}

/// The IP datagram in a frame of a link of this type; `None` if there is none, or none that we find.
pub fn datagram(link: u16, frame: &[u8]) -> Option<&[u8]> {
    let found = match link {
        RAW | RAW_BSD | RAW_OPENBSD | IPV4 | IPV6 => frame,
        // A number of the system that captured, in its order of octets: the datagram says what it is.
        NULL | LOOP => frame.get(4..)?,
        ETHERNET => typed(two(frame, 12)?, frame.get(14..)?)?,
        LINUX_SLL => typed(two(frame, 14)?, frame.get(16..)?)?,
        LINUX_SLL2 => typed(two(frame, 0)?, frame.get(20..)?)?,
        PPP | PPP_HDLC => ppp(frame)?,
        _ => return None,
    };
    matches!(found.first()? >> 4, 4 | 6).then_some(found)
}

/// What is of this EtherType, and behind tags.
fn typed(mut kind: u16, mut octets: &[u8]) -> Option<&[u8]> {
    while TAGS.contains(&kind) {
        (kind, octets) = (two(octets, 2)?, octets.get(4..)?);
    }
    match kind {
        IS_IPV4 | IS_IPV6 => Some(octets),
        // Six octets of PPPoE (RFC 2516 4), then PPP.
        IS_PPPOE => ppp(octets.get(6..)?),
        _ => None,
    }
}

/// PPP, with or without address and control, with a short or long protocol number (RFC 1661 6.5, 6.6).
fn ppp(frame: &[u8]) -> Option<&[u8]> {
    let frame = frame.strip_prefix(&[0xFF, 0x03]).unwrap_or(frame);
    match frame {
        [0x21 | 0x57, datagram @ ..] | [0x00, 0x21 | 0x57, datagram @ ..] => Some(datagram),
        _ => None,
    }
}

fn two(octets: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*octets.get(at)?, *octets.get(at + 1)?]))
}

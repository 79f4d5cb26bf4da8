//! A TCP segment of a capture.

use airloom_record::capture::{self, Frame};
use airloom_transports::tcp::wire::{Flags, Header, MIN_HEADER, TIMESTAMPS_LEN};
use airloom_wire::ip::{self, Brief, protocol};

/// Address and port; IPv4 addresses as [`ip::key`] writes them.
pub(crate) type Endpoint = (u128, u16);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) at_ns: u64,
    pub(crate) from: Endpoint,
    pub(crate) to: Endpoint,
    pub(crate) header: Header,
    /// Octets of data, by the lengths in the headers: the end of a segment need not have been captured.
    pub(crate) payload: u32,
    /// Were some of its options not captured?
    pub(crate) is_cut: bool,
    /// Those that come behind timestamps in an acknowledgement: selective blocks.
    pub(crate) has_cut_blocks: bool,
}

/// What a frame is to us.
pub(crate) enum Content {
    Tcp(Segment),
    /// A fragment of a datagram of TCP: what is in it cannot be told.
    Fragment,
    Other,
}

/// IPv6 headers between the datagram's own and that of the transport (RFC 8200 4).
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const DESTINATION: u8 = 60;
const FRAGMENT: u8 = 44;

pub(crate) fn content(frame: &Frame<'_>) -> Content {
    read(frame).unwrap_or(Content::Other)
}

fn read(frame: &Frame<'_>) -> Option<Content> {
    let datagram = capture::datagram(frame.link, frame.octets)?;
    let brief = header(frame, datagram)?;
    let (mut kind, mut at) = (brief.protocol, brief.header_len);
    if datagram[0] >> 4 == 6 {
        while matches!(kind, HOP_BY_HOP | ROUTING | DESTINATION) {
            let head = datagram.get(at..at + 2)?;
            kind = head[0];
            at += 8 * (1 + usize::from(head[1]));
        }
        if kind == FRAGMENT {
            return (datagram.get(at) == Some(&protocol::TCP)).then_some(Content::Fragment);
        }
    }
    if kind != protocol::TCP {
        return None;
    }
    if brief.is_fragment {
        return Some(Content::Fragment);
    }
    let octets = datagram.get(at..)?;
    let (header, length) = Header::parse_leniently(octets).ok()?;
    let is_cut = length > octets.len();
    let has_cut_blocks = is_cut
        && length > MIN_HEADER + TIMESTAMPS_LEN
        && header.options.sack.is_empty()
        && !header.flags.has(Flags::SYN);
    let payload = u32::try_from(brief.total_len.checked_sub(at + length)?).ok()?;
    let from = (brief.source, header.source);
    let to = (brief.destination, header.destination);
    Some(Content::Tcp(Segment { at_ns: frame.at_ns, from, to, header, payload, is_cut, has_cut_blocks }))
}

/// The header of a datagram. Who leaves it to its device to cut large segments writes a length of 0, in IPv6 as in a jumbogram
/// (RFC 2675 3): then all that the frame had behind its own header is the datagram, as Wireshark has it.
fn header(frame: &Frame<'_>, datagram: &[u8]) -> Option<Brief> {
    let at = if datagram[0] >> 4 == 6 { 4 } else { 2 };
    if *datagram.get(at..at + 2)? != [0, 0] {
        return Brief::parse(datagram);
    }
    let total_len = (frame.length as usize).checked_sub(frame.octets.len() - datagram.len())?;
    // A length that is read like any other, as long as the longest header.
    let mut head = datagram[..datagram.len().min(60)].to_vec();
    head[at..at + 2].fill(0xFF);
    Some(Brief { total_len, ..Brief::parse(&head)? })
}

/// As people write it.
pub(crate) fn text((address, port): Endpoint) -> String {
    std::net::SocketAddr::new(ip::address(address), port).to_string()
}

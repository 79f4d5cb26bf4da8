//! The offload header in front of a frame (virtio 1.3, 5.1.6.1; linux/virtio_net.h), as packet sockets and TUN devices
//! exchange it: ten octets in the machine's own order.

use airloom_wire::checksum::Open;

/// Octets of the header.
pub(super) const LEN: usize = 10;

const NEEDS_CSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const GSO_TCPV4: u8 = 1;
const GSO_UDP: u8 = 3;
const GSO_TCPV6: u8 = 4;
const GSO_UDP_L4: u8 = 5;
/// Set in addition where segments carry ECN marks.
const GSO_ECN: u8 = 0x80;

/// What kernel and device tell each other about a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    flags: u8,
    gso: u8,
    header_len: u16,
    segment: u16,
    start: u16,
    offset: u16,
}

impl Header {
    /// Reads it from the beginning of a frame.
    pub(super) fn parse(frame: &[u8]) -> Option<Header> {
        let octets: &[u8; LEN] = frame.first_chunk()?;
        let word = |at: usize| u16::from_ne_bytes([octets[at], octets[at + 1]]);
        Some(Header {
            flags: octets[0],
            gso: octets[1],
            header_len: word(2),
            segment: word(4),
            start: word(6),
            offset: word(8),
        })
    }

    /// For a frame with `link` octets in front of an IP datagram with `head` octets of headers. `segments`: it is a
    /// super-packet (of TCP, of IPv6) with so many octets of payload in each segment.
    pub(super) fn leaving(
        link: usize,
        head: usize,
        open: Open,
        segments: Option<(bool, bool, u16)>,
    ) -> Header {
        let gso = match segments {
            None => 0,
            Some((true, false, _)) => GSO_TCPV4,
            Some((true, true, _)) => GSO_TCPV6,
            Some((false, ..)) => GSO_UDP_L4,
        };
        Header {
            flags: NEEDS_CSUM,
            gso,
            header_len: (link + head) as u16,
            segment: segments.map_or(0, |s| s.2),
            start: (link + open.start) as u16,
            offset: open.offset as u16,
        }
    }

    /// Writes it to the beginning of a frame.
    pub(super) fn emit(&self, out: &mut [u8]) {
        out[0] = self.flags;
        out[1] = self.gso;
        for (at, word) in [(2, self.header_len), (4, self.segment), (6, self.start), (8, self.offset)] {
            out[at..at + 2].copy_from_slice(&word.to_ne_bytes());
        }
    }

    /// Is the transport's checksum still to be filled in?
    #[cfg(test)]
    pub(super) fn is_open(&self) -> bool {
        self.flags & NEEDS_CSUM != 0
    }

    /// Does the sending kernel answer for the transport's checksum?
    pub(super) fn transport_done(&self) -> bool {
        self.flags & (NEEDS_CSUM | DATA_VALID) != 0
    }

    /// Octets of payload in each segment, 0 if there is only one.
    pub(super) fn segment_size(&self) -> u16 {
        match self.gso & !GSO_ECN {
            GSO_TCPV4 | GSO_TCPV6 | GSO_UDP_L4 => self.segment,
            _ => 0,
        }
    }

    /// A datagram that its sender left to be cut into IP fragments: nobody sends these any more.
    pub(super) fn is_to_be_fragmented(&self) -> bool {
        self.gso & !GSO_ECN == GSO_UDP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let open = Open { start: 20, offset: 16 };
        for (segments, size) in [(None, 0), (Some((true, false, 1448)), 1448), (Some((false, true, 99)), 99)]
        {
            let header = Header::leaving(14, 52, open, segments);
            let mut octets = [0xFF; LEN];
            header.emit(&mut octets);
            assert_eq!(Header::parse(&octets), Some(header));
            assert_eq!(header.segment_size(), size);
            assert!(header.is_open() && header.transport_done() && !header.is_to_be_fragmented());
        }
        assert_eq!(Header::parse(&[0; LEN - 1]), None);
        let nothing = Header::parse(&[0; LEN]).unwrap();
        assert!(!nothing.is_open() && !nothing.transport_done() && nothing.segment_size() == 0);
        assert_eq!(Header { gso: GSO_TCPV4 | GSO_ECN, segment: 7, ..Header::default() }.segment_size(), 7);
        assert!(Header { flags: DATA_VALID, ..Header::default() }.transport_done());
        assert!(Header { gso: GSO_UDP, segment: 7, ..Header::default() }.is_to_be_fragmented());
    }
}

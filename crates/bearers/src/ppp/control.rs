//! Packets of the control protocols (RFC 1661, 5 and 6).

/// Octets of code, identifier and length.
const HEADER: usize = 4;
/// Octets of the type and the length of an option.
const OPTION_HEADER: usize = 2;

/// What packets are for, by their code.
pub mod code {
    /// These options are wanted.
    pub const CONFIGURE_REQUEST: u8 = 1;
    /// All of them are granted.
    pub const CONFIGURE_ACK: u8 = 2;
    /// These are, but with other values.
    pub const CONFIGURE_NAK: u8 = 3;
    /// These are not known, or not for negotiation.
    pub const CONFIGURE_REJECT: u8 = 4;
    /// The link is to be closed.
    pub const TERMINATE_REQUEST: u8 = 5;
    /// It is.
    pub const TERMINATE_ACK: u8 = 6;
    /// A code that is not known.
    pub const CODE_REJECT: u8 = 7;
    /// A protocol that is not known.
    pub const PROTOCOL_REJECT: u8 = 8;
    /// Is anybody there?
    pub const ECHO_REQUEST: u8 = 9;
    /// Yes.
    pub const ECHO_REPLY: u8 = 10;
    /// Nothing has to be done.
    pub const DISCARD_REQUEST: u8 = 11;
}

/// A packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlPacket<'a> {
    /// What it is for.
    pub code: u8,
    /// Which answer belongs to which question.
    pub id: u8,
    /// What follows.
    pub data: &'a [u8],
}

impl<'a> ControlPacket<'a> {
    /// Reads a packet; octets behind its length are padding. `None` if its length cannot be.
    pub fn parse(octets: &'a [u8]) -> Option<ControlPacket<'a>> {
        let [code, id, high, low, ..] = *octets else { return None };
        let len = usize::from(u16::from_be_bytes([high, low]));
        Some(ControlPacket { code, id, data: octets.get(HEADER..len)? })
    }

    /// Its octets. What does not fit into the length field is cut off.
    pub fn emit(&self) -> Vec<u8> {
        let data = &self.data[..self.data.len().min(usize::from(u16::MAX) - HEADER)];
        let [high, low] = ((HEADER + data.len()) as u16).to_be_bytes();
        let mut out = vec![self.code, self.id, high, low];
        out.extend_from_slice(data);
        out
    }
}

/// Appends an option.
pub fn append_option(out: &mut Vec<u8>, kind: u8, data: &[u8]) {
    let data = &data[..data.len().min(usize::from(u8::MAX) - OPTION_HEADER)];
    out.extend_from_slice(&[kind, (OPTION_HEADER + data.len()) as u8]);
    out.extend_from_slice(data);
}

/// The options of a packet: type and data. Ends behind the first one that cannot be read, which is `None`.
pub fn options(mut octets: &[u8]) -> impl Iterator<Item = Option<(u8, &[u8])>> {
    std::iter::from_fn(move || {
        if octets.is_empty() {
            return None;
        }
        let option = match *octets {
            [kind, len, ..] => octets.get(OPTION_HEADER..usize::from(len)).map(|data| (kind, data)),
            _ => None,
        };
        octets = option.map_or(&[], |(_, data)| &octets[OPTION_HEADER + data.len()..]);
        Some(option)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_packet_is_read_as_it_was_written() {
        // MRRU 1500, short sequence numbers: RFC 1990, 5.1.
        let mut data = Vec::new();
        append_option(&mut data, 17, &1500u16.to_be_bytes());
        append_option(&mut data, 18, &[]);
        let packet = ControlPacket { code: code::CONFIGURE_REQUEST, id: 7, data: &data };
        let mut octets = packet.emit();
        assert_eq!(octets, [1, 7, 0, 10, 17, 4, 0x05, 0xDC, 18, 2]);
        octets.push(0);
        assert_eq!(ControlPacket::parse(&octets), Some(packet));
        let read: Vec<_> = options(&data).collect();
        assert_eq!(read, [Some((17, &[0x05, 0xDC][..])), Some((18, &[][..]))]);
    }

    #[test]
    fn lengths_that_cannot_be_are_refused() {
        for octets in [&[][..], &[1, 1, 0], &[1, 1, 0, 3], &[1, 1, 0, 5], &[1, 1, 0xFF, 0xFF, 0]] {
            assert_eq!(ControlPacket::parse(octets), None, "{octets:?}");
        }
        for octets in [&[5][..], &[5, 0], &[5, 1, 9], &[5, 4, 1]] {
            assert_eq!(options(octets).collect::<Vec<_>>(), [None], "{octets:?}");
        }
    }

    proptest! {
        #[test]
        fn no_octets_panic(octets in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some(packet) = ControlPacket::parse(&octets) {
                prop_assert!(options(packet.data).count() <= packet.data.len());
                prop_assert_eq!(&packet.emit()[..], &octets[..packet.data.len() + 4]);
            }
        }
    }
}

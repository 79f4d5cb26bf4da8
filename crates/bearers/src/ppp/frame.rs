//! What stands in front of a frame's information (RFC 1661, 2; RFC 1662, 3.1).

/// Protocol numbers.
pub mod protocol {
    /// IPv4 (RFC 1332).
    pub const IP: u16 = 0x0021;
    /// IPv6 (RFC 5072).
    pub const IPV6: u16 = 0x0057;
    /// Multilink (RFC 1990).
    pub const MULTILINK: u16 = 0x003D;
    /// Control of IPv4 (RFC 1332).
    pub const IPCP: u16 = 0x8021;
    /// Control of the link (RFC 1661).
    pub const LCP: u16 = 0xC021;
}

const ADDRESS: u8 = 0xFF;
const CONTROL: u8 = 0x03;

/// Most octets that a frame header has.
pub const LONGEST: usize = 4;

/// What may be left out in front of the information, as the receiver asked for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// Address and control field (RFC 1661, 6.6).
    pub address_control: bool,
    /// The first octet of the protocol field, where it is 0 (RFC 1661, 6.5).
    pub protocol: bool,
}

/// Writes the header of a frame of `protocol` to the beginning of `out`, which has room for [`LONGEST`], and returns its
/// length.
pub fn emit(out: &mut [u8; LONGEST], protocol: u16, compression: Compression) -> usize {
    let mut len = 0;
    let mut put = |octet| {
        out[len] = octet;
        len += 1;
    };
    //= RFC 1661 (5): packets of LCP are sent as if no options were negotiated.
    let compression = if protocol == protocol::LCP { Compression::default() } else { compression };
    if !compression.address_control {
        put(ADDRESS);
        put(CONTROL);
    }
    let [high, low] = protocol.to_be_bytes();
    if !(compression.protocol && high == 0) {
        put(high);
    }
    put(low);
    len
}

/// The protocol of a frame, and the length of its header. A receiver takes both forms, whatever it asked for.
pub fn parse(octets: &[u8]) -> Option<(u16, usize)> {
    //= RFC 1661 (6.6): the uncompressed fields are recognised by their values.
    let from = if octets.starts_with(&[ADDRESS, CONTROL]) { 2 } else { 0 };
    let (number, len) = protocol_field(octets.get(from..)?)?;
    Some((number, from + len))
}

/// The protocol field at the beginning of these octets, and its length: one octet if that is odd.
pub fn protocol_field(octets: &[u8]) -> Option<(u16, usize)> {
    match octets {
        [low, ..] if low & 1 == 1 => Some((u16::from(*low), 1)),
        //= RFC 1661 (2): the second octet is odd, the first one even.
        [high, low, ..] if low & 1 == 1 => Some((u16::from_be_bytes([*high, *low]), 2)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_negotiated_is_left_out() {
        let mut out = [0; LONGEST];
        let both = Compression { address_control: true, protocol: true };
        assert_eq!(emit(&mut out, protocol::MULTILINK, Compression::default()), 4);
        assert_eq!(out, [0xFF, 0x03, 0x00, 0x3D]);
        assert_eq!((emit(&mut out, protocol::MULTILINK, both), out[0]), (1, 0x3D));
        assert_eq!((emit(&mut out, protocol::IPCP, both), &out[..2]), (2, &[0x80, 0x21][..]));
        // LCP is never shortened.
        assert_eq!((emit(&mut out, protocol::LCP, both), out), (4, [0xFF, 0x03, 0xC0, 0x21]));
    }

    #[test]
    fn every_form_is_read() {
        for octets in [&[0xFF, 0x03, 0x00, 0x3D][..], &[0xFF, 0x03, 0x3D], &[0x00, 0x3D], &[0x3D]] {
            assert_eq!(parse(octets), Some((protocol::MULTILINK, octets.len())));
        }
        assert_eq!(parse(&[0xFF, 0x03, 0xC0, 0x21, 1]), Some((protocol::LCP, 4)));
        for octets in [&[][..], &[0x00], &[0xFF, 0x03], &[0xFF, 0x03, 0xC0], &[0x80, 0x20]] {
            assert_eq!(parse(octets), None, "{octets:?}");
        }
    }
}

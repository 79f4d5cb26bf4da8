//! WSP without a session (WAP-230 section 7.2): a PDU in one datagram, behind an octet that the answer repeats.

use bytes::Bytes;

use super::wire::{Error, Pdu};

/// The octets of a unit.
pub fn emit(tid: u8, pdu: &Pdu) -> Bytes {
    let mut out = vec![tid];
    pdu.emit(&mut out);
    out.into()
}

/// The unit in a datagram. Only methods, replies and unconfirmed pushes exist without a session.
pub fn parse(datagram: &Bytes) -> Result<(u8, Pdu), Error> {
    let tid = *datagram.first().ok_or(Error::Truncated)?;
    let pdu = Pdu::parse(&datagram.slice(1..))?;
    match pdu {
        Pdu::Get { .. } | Pdu::Post { .. } | Pdu::Reply { .. } | Pdu::Push { confirmed: false, .. } => {
            Ok((tid, pdu))
        }
        _ => Err(Error::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wsp::wire::Method;

    #[test]
    fn units_carry_the_octet_of_their_request() {
        let get = Pdu::Get {
            method: Method::Get,
            uri: Bytes::from_static(b"http://o/"),
            headers: Bytes::from_static(&[0x80, 0x80]),
        };
        assert_eq!(parse(&emit(0x12, &get)), Ok((0x12, get)));
        assert_eq!(parse(&emit(0x12, &Pdu::Disconnect { session: 1 })), Err(Error::Malformed));
        assert_eq!(parse(&Bytes::new()), Err(Error::Truncated));
    }
}

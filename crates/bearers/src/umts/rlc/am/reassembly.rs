//! Joining PDUs into SDUs again.

use super::Format;
use super::pdu::Pdu;
use super::sdu::SduStore;
use super::window::distance;
use super::wire::{Layout, Tail};
use crate::cell::Delivered;

/// What the next octet in sequence belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Owner {
    /// The beginning of an SDU.
    #[default]
    Boundary,
    /// The middle of an SDU of which so many octets have come.
    Inside { sdu: u32, octets: u32 },
    /// Something whose beginning was lost (or not seen).
    Unknown,
}

/// Reassembly of PDUs fed in order of their number.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reassembly {
    place: Owner,
    /// After MRW: in this PDU, data up to the end told by its n-th length indicator is thrown away.
    skip: Option<(u16, u8)>,
}

impl Reassembly {
    /// In the middle of something unknown.
    pub fn unknown() -> Self {
        Reassembly { place: Owner::Unknown, skip: None }
    }

    /// The next PDU.
    #[inline]
    pub fn feed(
        &mut self,
        format: Format,
        sn: u16,
        pdu: &Pdu,
        sdus: &mut SduStore,
        out: &mut Vec<Delivered>,
    ) {
        // Two header octets and HE = 00: a piece from the middle of an SDU, or its beginning.
        if pdu.head_len() == 2 && pdu.head()[1] & 0b11 == 0 {
            self.piece(pdu.sdu, pdu.offset, u32::from(pdu.data_len));
        } else {
            self.feed_with_ends(format, sn, pdu, sdus, out);
        }
    }

    fn feed_with_ends(
        &mut self,
        format: Format,
        sn: u16,
        pdu: &Pdu,
        sdus: &mut SduStore,
        out: &mut Vec<Delivered>,
    ) {
        let Ok(layout) = Layout::parse(pdu.head(), usize::from(format.pdu_octets), format.li) else {
            return self.lose();
        };
        let thrown_away = match self.skip {
            Some((at, n)) if at == sn => n,
            _ => 0,
        };
        if self.skip.is_some_and(|(at, _)| distance(at, sn) < 2048) {
            self.skip = None;
        }
        let (mut sdu, mut offset, mut from) = (pdu.sdu, pdu.offset, 0u32);
        for (n, end) in (1u8..).zip(layout.ends()) {
            let end = u32::from(*end).min(u32::from(pdu.data_len));
            self.piece(sdu, offset, end.saturating_sub(from));
            if n <= thrown_away {
                self.place = Owner::Boundary;
            } else {
                self.end(sdu, sdus, out);
            }
            (sdu, offset, from) = (sdu.wrapping_add(1), 0, end);
        }
        if layout.tail == Tail::Data && u32::from(pdu.data_len) > from {
            self.piece(sdu, offset, u32::from(pdu.data_len) - from);
        }
    }

    #[inline]
    fn piece(&mut self, sdu: u32, offset: u32, len: u32) {
        self.place = match self.place {
            Owner::Boundary if offset == 0 => Owner::Inside { sdu, octets: len },
            Owner::Inside { sdu: s, octets } if s == sdu && octets == offset => {
                Owner::Inside { sdu, octets: octets + len }
            }
            // A beginning that is not one: the pieces do not join.
            _ => Owner::Unknown,
        };
    }

    fn end(&mut self, sdu: u32, sdus: &mut SduStore, out: &mut Vec<Delivered>) {
        if let Owner::Inside { octets, .. } = self.place
            && sdus.get(sdu).is_some_and(|s| s.len == octets)
        {
            sdus.deliver(sdu, out);
        }
        self.place = Owner::Boundary;
    }

    /// The next PDU is missing for ever.
    pub fn lose(&mut self) {
        self.place = Owner::Unknown;
    }

    /// After MRW: reassembly goes on in PDU `sn`, behind its `n`-th length indicator (0: with its first octet).
    pub fn skip_to(&mut self, sn: u16, n: u8) {
        if n == 0 {
            self.place = Owner::Boundary;
            self.skip = None;
        } else {
            self.place = Owner::Unknown;
            self.skip = Some((sn, n));
        }
    }
}

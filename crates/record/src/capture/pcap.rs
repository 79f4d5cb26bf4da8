//! The classic form: a header, then frames, each with a head of sixteen octets.

use std::io::Read;

use super::source::{Order, Source};
use super::{Error, Found, LONGEST};

/// Fractions of a second are microseconds.
const MICROSECONDS: u32 = 0xA1B2_C3D4;
/// Fractions of a second are nanoseconds.
const NANOSECONDS: u32 = 0xA1B2_3C4D;

pub(super) struct Pcap {
    order: Order,
    /// Nanoseconds of a fraction.
    unit: u64,
}

impl Pcap {
    /// The form and the type of its link, if a file begins with `magic` in this way.
    pub(super) fn begin<R: Read>(
        magic: [u8; 4],
        source: &mut Source<R>,
    ) -> Result<Option<(Pcap, u16)>, Error> {
        let (big, little) = (u32::from_be_bytes(magic), u32::from_le_bytes(magic));
        let (order, magic) = match (big, little) {
            (MICROSECONDS | NANOSECONDS, _) => (Order::Big, big),
            (_, MICROSECONDS | NANOSECONDS) => (Order::Little, little),
            _ => return Ok(None),
        };
        let mut rest = [0; 20];
        source.fill(&mut rest)?;
        if order.u16(&rest, 0) != 2 {
            return Err(source.corrupt("only version 2 of pcap is known"));
        }
        // The upper half says how long a checksum behind each frame is.
        let link = order.u32(&rest, 16) as u16;
        let unit = if magic == MICROSECONDS { 1000 } else { 1 };
        Ok(Some((Pcap { order, unit }, link)))
    }

    pub(super) fn next<R: Read>(
        &self,
        source: &mut Source<R>,
        octets: &mut Vec<u8>,
    ) -> Result<Option<Found>, Error> {
        let mut head = [0; 16];
        if !source.begins(&mut head)? {
            return Ok(None);
        }
        let number = |at| self.order.u32(&head, at);
        let captured = number(8) as usize;
        if captured > LONGEST {
            return Err(source.corrupt("a frame is longer than any frame"));
        }
        source.take(captured, octets)?;
        let at_ns = u64::from(number(0)) * 1_000_000_000 + u64::from(number(4)) * self.unit;
        Ok(Some(Found { interface: 0, at_ns, length: number(12), is_dropped: false }))
    }
}

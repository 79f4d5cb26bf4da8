//! Blocks: a type, a length, a body, and the length again.

use std::io::Read;

use super::source::{Order, Source};
use super::{Error, Found, Interface, LONGEST, MOST_INTERFACES};
pub(super) use crate::pcapng::SECTION_HEADER;
use crate::pcapng::{BYTE_ORDER_MAGIC, ENHANCED_PACKET, INTERFACE_DESCRIPTION};

/// Obsolete, still met.
const PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;

const COMMENT: u16 = 1;
/// How the comment of a frame begins that went no further.
const DROPPED: &[u8] = b"dropped";

const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;

/// Octets of type and length, and of the length behind a body.
const AROUND: u32 = 12;

/// Longest body of a block that is held: a frame, what stands before it, and options.
const LONGEST_BODY: usize = LONGEST + (1 << 16);

/// What a number of a frame's time means.
#[derive(Clone, Copy)]
struct Clock {
    /// `if_tsresol`: a power of ten, or with the highest bit of two.
    resolution: u8,
    offset_s: i64,
}

pub(super) struct Pcapng {
    order: Order,
    /// Of this section's interfaces.
    clocks: Vec<Clock>,
    /// Frames of this section keep at most so many octets: one number an interface; 0: all.
    kept: Vec<u32>,
}

impl Pcapng {
    /// The first section; its type has been read.
    pub(super) fn begin<R: Read>(source: &mut Source<R>) -> Result<Pcapng, Error> {
        let order = section(source)?;
        Ok(Pcapng { order, clocks: Vec::new(), kept: Vec::new() })
    }

    pub(super) fn next<R: Read>(
        &mut self,
        source: &mut Source<R>,
        interfaces: &mut Vec<Interface>,
        body: &mut Vec<u8>,
    ) -> Result<Option<Found>, Error> {
        loop {
            let mut head = [0; 4];
            if !source.begins(&mut head)? {
                return Ok(None);
            }
            let kind = self.order.u32(&head, 0);
            if kind == SECTION_HEADER {
                self.order = section(source)?;
                self.clocks.clear();
                self.kept.clear();
                continue;
            }
            source.fill(&mut head)?;
            let length = self.order.u32(&head, 0);
            if length < AROUND || !length.is_multiple_of(4) {
                return Err(source.corrupt("a block's length is not possible"));
            }
            let is_held = matches!(kind, INTERFACE_DESCRIPTION | PACKET | SIMPLE_PACKET | ENHANCED_PACKET);
            if is_held && (length - AROUND) as usize > LONGEST_BODY {
                return Err(source.corrupt("a frame is longer than any frame"));
            }
            if is_held {
                source.take((length - AROUND) as usize, body)?;
            } else {
                source.skip(u64::from(length - AROUND))?;
            }
            source.fill(&mut head)?;
            if self.order.u32(&head, 0) != length {
                return Err(source.corrupt("a block's two lengths differ"));
            }
            let found = match kind {
                INTERFACE_DESCRIPTION => {
                    self.describe(source, body, interfaces)?;
                    None
                }
                ENHANCED_PACKET => Some(self.frame(source, body, false)?),
                PACKET => Some(self.frame(source, body, true)?),
                SIMPLE_PACKET => Some(self.simple(source, body)?),
                _ => None,
            };
            if let Some(mut found) = found {
                // Interfaces of earlier sections come first.
                found.interface += interfaces.len() - self.clocks.len();
                return Ok(Some(found));
            }
        }
    }

    fn describe<R: Read>(
        &mut self,
        source: &Source<R>,
        body: &[u8],
        interfaces: &mut Vec<Interface>,
    ) -> Result<(), Error> {
        if body.len() < 8 {
            return Err(source.corrupt("the description of an interface is too short"));
        }
        if interfaces.len() == MOST_INTERFACES {
            return Err(source.corrupt("more interfaces than any machine has"));
        }
        let mut clock = Clock { resolution: 6, offset_s: 0 };
        let mut name = None;
        for (code, value) in self.options(body, 8) {
            match (code, value) {
                (IF_NAME, text) => name = Some(String::from_utf8_lossy(text).into_owned()),
                (IF_TSRESOL, [resolution, ..]) => clock.resolution = *resolution,
                (IF_TSOFFSET, offset) if offset.len() == 8 => {
                    // The halves stand in the order that all octets do.
                    let (one, other) = (self.order.u32(offset, 0), self.order.u32(offset, 4));
                    let (high, low) = match self.order {
                        Order::Big => (one, other),
                        Order::Little => (other, one),
                    };
                    clock.offset_s = (u64::from(high) << 32 | u64::from(low)) as i64;
                }
                _ => {}
            }
        }
        self.clocks.push(clock);
        self.kept.push(self.order.u32(body, 4));
        interfaces.push(Interface { name, link: self.order.u16(body, 0) });
        Ok(())
    }

    /// A frame with a head of twenty octets, which is now the whole of `body`.
    fn frame<R: Read>(&self, source: &Source<R>, body: &mut Vec<u8>, is_old: bool) -> Result<Found, Error> {
        if body.len() < 20 {
            return Err(source.corrupt("a block is too short for a frame"));
        }
        let number = |at| self.order.u32(body, at);
        // In the old form the second half of the first word counts what was dropped.
        let interface = if is_old { u32::from(self.order.u16(body, 0)) } else { number(0) } as usize;
        let (captured, length) = (number(12) as usize, number(16));
        let ticks = u64::from(number(4)) << 32 | u64::from(number(8));
        let Some(clock) = self.clocks.get(interface) else {
            return Err(source.corrupt("a frame of an interface that is not described"));
        };
        if captured > body.len() - 20 || captured > LONGEST {
            return Err(source.corrupt("a frame is longer than its block"));
        }
        let is_dropped = (self.options(body, 20 + captured.next_multiple_of(4)))
            .any(|(code, value)| code == COMMENT && value.starts_with(DROPPED));
        body.drain(..20);
        body.truncate(captured);
        Ok(Found { interface, at_ns: clock.nanoseconds(ticks), length, is_dropped })
    }

    /// The options of a block from this octet of its body on, as far as they are whole: codes and values.
    fn options<'a>(&self, body: &'a [u8], mut at: usize) -> impl Iterator<Item = (u16, &'a [u8])> {
        let order = self.order;
        std::iter::from_fn(move || {
            let head = body.get(at..at + 4)?;
            let (code, length) = (order.u16(head, 0), usize::from(order.u16(head, 2)));
            // opt_endofopt: what may stand behind it is none.
            if code == 0 {
                return None;
            }
            let value = body.get(at + 4..at + 4 + length)?;
            at += 4 + length.next_multiple_of(4);
            Some((code, value))
        })
    }

    /// A frame of the first interface without a time.
    fn simple<R: Read>(&self, source: &Source<R>, body: &mut Vec<u8>) -> Result<Found, Error> {
        let (Some(kept), true) = (self.kept.first(), body.len() >= 4) else {
            return Err(source.corrupt("a frame of an interface that is not described"));
        };
        let length = self.order.u32(body, 0);
        let most = if *kept == 0 { u32::MAX } else { *kept };
        let captured = length.min(most) as usize;
        if captured > body.len() - 4 || captured > LONGEST {
            return Err(source.corrupt("a frame is longer than its block"));
        }
        body.drain(..4);
        body.truncate(captured);
        Ok(Found { interface: 0, at_ns: 0, length, is_dropped: false })
    }
}

/// The rest of a section header; the order of octets of the section.
fn section<R: Read>(source: &mut Source<R>) -> Result<Order, Error> {
    let mut head = [0; 8];
    source.fill(&mut head)?;
    let order = match (Order::Big.u32(&head, 4), Order::Little.u32(&head, 4)) {
        (BYTE_ORDER_MAGIC, _) => Order::Big,
        (_, BYTE_ORDER_MAGIC) => Order::Little,
        _ => return Err(source.corrupt("a section says not in which order octets are")),
    };
    let length = order.u32(&head, 0);
    // Type, length, magic, version, length of the section, length.
    if length < 28 || !length.is_multiple_of(4) {
        return Err(source.corrupt("a block's length is not possible"));
    }
    source.skip(u64::from(length) - 16)?;
    let mut again = [0; 4];
    source.fill(&mut again)?;
    if order.u32(&again, 0) == length {
        Ok(order)
    } else {
        Err(source.corrupt("a block's two lengths differ"))
    }
}

impl Clock {
    fn nanoseconds(self, ticks: u64) -> u64 {
        let (ticks, power) = (u128::from(ticks), u32::from(self.resolution & 0x7F));
        let since = if self.resolution & 0x80 != 0 {
            (ticks * 1_000_000_000) >> power
        } else if power <= 9 {
            ticks * 10_u128.pow(9 - power)
        } else {
            10_u128.checked_pow(power - 9).map_or(0, |one| ticks / one)
        };
        let since = i128::try_from(since).unwrap_or(i128::MAX);
        let at = since.saturating_add(i128::from(self.offset_s) * 1_000_000_000);
        u64::try_from(at.max(0)).unwrap_or(u64::MAX)
    }
}

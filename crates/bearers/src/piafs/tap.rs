//! The terminal adapter at the sending end: PPP frames of a host become an octet stream, a serial line brings it in.

use std::collections::VecDeque;

use airloom_base::random::Fate;
use airloom_base::units::{QueueLimit, Rate};
use airloom_base::{Duration, Instant, Packet};
use airloom_wire::edge;

use super::frame::{Span, USER};
use crate::ppp::hdlc;

/// Bits of an octet on the serial line: a start bit, eight of data, a stop bit.
const BITS: u64 = 10;

/// A packet, and when it came to the link.
pub struct Sdu {
    pub packet: Packet,
    pub since: Instant,
}

/// The last octet of a PPP frame in the stream.
struct End {
    /// Place behind it.
    at: u64,
    sdu: Sdu,
    /// Is the PIAFS frame sent that has it, full or not?
    is_flushed: bool,
}

/// How a terminal adapter and its serial line are.
#[derive(Clone, Copy)]
pub struct Line {
    /// Bits per second of the serial line, ten to an octet.
    pub rate: Option<Rate>,
    /// Octets that the adapter takes.
    pub buffer: u64,
    pub accm: u32,
    /// Share of the PPP frames behind which a PIAFS frame is not filled up.
    pub flush: f64,
}

impl Line {
    /// How long so many octets take on it.
    pub fn time_for(&self, octets: u64) -> Duration {
        self.rate.map_or(Duration::ZERO, |rate| {
            Duration::from_nanos(octets).mul_ratio(BITS * 1_000_000_000, rate.bits_per_second())
        })
    }
}

/// What a host sends, up to where frames take it.
pub struct Tap {
    line: Line,
    fate: Fate,
    /// In the host.
    queue: VecDeque<Sdu>,
    queued: u64,
    /// The stream from `first` on: what was not acknowledged yet, what waits, what crosses the line.
    octets: VecDeque<u8>,
    first: u64,
    /// Places in the stream: taken into frames, come into the adapter.
    taken: u64,
    entered: u64,
    /// Up to when the line was used or looked at.
    line_until: Instant,
    ends: VecDeque<End>,
    /// PPP frames so far.
    frames: u64,
    content: Vec<u8>,
}

impl Tap {
    pub fn new(line: Line, fate: Fate) -> Tap {
        Tap {
            line,
            fate,
            queue: VecDeque::new(),
            queued: 0,
            octets: VecDeque::new(),
            first: 0,
            taken: 0,
            entered: 0,
            line_until: Instant::ZERO,
            ends: VecDeque::new(),
            frames: 0,
            content: Vec::new(),
        }
    }

    /// Packets and octets that are not wholly in frames.
    pub fn backlog(&self) -> (u32, u64) {
        let waiting = self.ends.iter().rev().take_while(|end| end.at > self.taken).count();
        ((self.queue.len() + waiting) as u32, self.queued + self.end() - self.taken)
    }

    /// Octets of packets that wait in the host's queue.
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// Would the host's queue refuse a packet of so many octets?
    pub fn refuses(&self, limit: QueueLimit, octets: u64) -> bool {
        limit.refuses(self.queue.len(), self.queued, octets)
    }

    /// The host sends a packet.
    pub fn push(&mut self, sdu: Sdu, now: Instant) {
        self.advance(now);
        self.queued += sdu.packet.wire_len() as u64;
        self.queue.push_back(sdu);
    }

    /// Is there anything that is in no frame yet?
    pub fn has_more(&self) -> bool {
        !self.queue.is_empty() || self.end() > self.taken
    }

    /// The user's octets of the next frame, if there are some.
    pub fn take(&mut self, now: Instant) -> Option<Span> {
        self.advance(now);
        let flushed = self.ends.iter().find(|end| end.is_flushed && end.at > self.taken);
        let until = flushed.map_or(self.entered, |end| end.at.min(self.entered));
        let len = (until - self.taken).min(USER as u64) as u8;
        let span = Span { from: self.taken, len };
        self.taken = span.end();
        (len > 0).then_some(span)
    }

    /// The octets of a span that was not forgotten yet.
    pub fn copy(&self, span: Span, out: &mut [u8]) {
        let from = span.from.checked_sub(self.first).map_or(usize::MAX, |from| from as usize);
        out.iter_mut()
            .zip(self.octets.range(from.min(self.octets.len())..))
            .for_each(|(o, octet)| *o = *octet);
    }

    /// What lies in front of this place is not needed any more.
    pub fn forget(&mut self, place: u64) {
        let gone = place.saturating_sub(self.first).min(self.octets.len() as u64);
        self.octets.drain(..gone as usize);
        self.first += gone;
    }

    /// The packet that the stream has wholly up to this place, with the place where it ends; one after the other.
    pub fn arrived(&mut self, place: u64) -> Option<(u64, Sdu)> {
        self.ends.front().filter(|end| end.at <= place)?;
        let end = self.ends.pop_front()?;
        Some((end.at, end.sdu))
    }

    /// Gives up everything; all packets that had not arrived.
    pub fn clear(&mut self) -> impl Iterator<Item = Sdu> {
        let last = self.end();
        self.octets.clear();
        (self.first, self.taken, self.entered, self.queued) = (last, last, last, 0);
        let ends = std::mem::take(&mut self.ends).into_iter().map(|end| end.sdu);
        ends.chain(std::mem::take(&mut self.queue))
    }

    /// Place behind the last octet of the stream.
    pub fn end(&self) -> u64 {
        self.first + self.octets.len() as u64
    }

    /// The serial line goes on until `now`: it stands still while the adapter is full, or nothing is there.
    fn advance(&mut self, now: Instant) {
        loop {
            if self.entered == self.end() && !self.begin_frame() {
                break;
            }
            let room = self.line.buffer.saturating_sub(self.entered - self.taken);
            let mut crossing = room.min(self.end() - self.entered);
            if let Some(rate) = self.line.rate {
                let bits =
                    u128::from(now.since(self.line_until).as_nanos()) * u128::from(rate.bits_per_second());
                crossing = crossing.min((bits / u128::from(BITS * 1_000_000_000)) as u64);
                self.line_until += self.line.time_for(crossing);
            }
            self.entered += crossing;
            if crossing == 0 {
                if room > 0 {
                    return; // an octet is on the line
                }
                break;
            }
        }
        self.line_until = self.line_until.max(now);
    }

    /// The host brings its next packet to the line, as a PPP frame.
    fn begin_frame(&mut self) -> bool {
        let Some(sdu) = self.queue.pop_front() else { return false };
        self.queued -= sdu.packet.wire_len() as u64;
        self.content.clear();
        edge::egress(&sdu.packet, &mut self.content);
        // What is no PPP frame yet becomes one (RFC 1661, 2; protocol numbers of RFC 1332 and 5072).
        let header: &[u8] = match self.content.first().map(|octet| octet >> 4) {
            Some(4) => &[0xFF, 0x03, 0x00, 0x21],
            Some(6) => &[0xFF, 0x03, 0x00, 0x57],
            _ => &[],
        };
        self.content.splice(0..0, header.iter().copied());
        hdlc::append_frame(&mut self.octets, &self.content, self.line.accm);
        let is_flushed = self.line.flush > 0.0 && self.fate.nth(self.frames) < self.line.flush;
        self.frames += 1;
        self.ends.push_back(End { at: self.end(), sdu, is_flushed });
        true
    }
}

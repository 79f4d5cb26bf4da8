//! SDUs of one direction: waiting, being sent, waiting to be acknowledged.
//!
//! Both ends of a link live in one object, so an SDU is never copied: PDUs refer to pieces of it by number and offset,
//! the receiver counts pieces and takes the packet out when all have come. The receiver learns nothing from this
//! store but octets and lengths of what it received.

use std::collections::VecDeque;

use airloom_base::{Instant, Packet};

use crate::cell::{Delivered, Lost};

/// Where an SDU ends: the PDU and which of its length indicators (from 1; 0 = the special HE value).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Sequence number of the PDU.
    pub sn: u16,
    /// Length indicator.
    pub li: u8,
}

/// One SDU.
#[derive(Debug)]
pub struct Sdu {
    /// The packet until it is delivered (and a copy afterwards, if somebody looks at octets).
    pub packet: Option<Packet>,
    /// Was it delivered?
    pub delivered: bool,
    /// Was it given up by the sender?
    pub discarded: bool,
    /// Its octets.
    pub len: u32,
    /// Number of the packet.
    pub id: u64,
    /// Flow of the packet.
    pub flow: u32,
    /// When it entered the bearer.
    pub arrived: Instant,
    /// When it entered the RLC buffer.
    pub queued: Instant,
    /// Its end, once a PDU says it.
    pub end: Option<End>,
}

/// The SDUs of one direction and station, oldest first.
#[derive(Default)]
pub struct SduStore {
    sdus: VecDeque<Sdu>,
    /// Number of the front.
    base: u32,
    /// Number of the first SDU that is not wholly in PDUs, and how many of its octets are.
    head: u32,
    offset: u32,
    /// Octets not yet in PDUs.
    waiting: u64,
    /// First SDU whose Timer_Discard may still run.
    timed: u32,
    /// Keep copies of delivered packets: captures may ask for the octets of repeated PDUs.
    pub keep_copies: bool,
    /// Copies of SDUs that the sender needs no more, while repeated PDUs of them may still arrive and be looked at.
    archive: VecDeque<(u32, Packet)>,
    /// What was lost since the owner looked.
    pub lost: Vec<Lost>,
}

/// Copies kept while captures are wanted.
const ARCHIVE: usize = 256;

impl SduStore {
    /// Puts an SDU at the end of the queue.
    pub fn push(&mut self, packet: Packet, arrived: Instant, queued: Instant) {
        let len = packet.wire_len() as u32;
        self.waiting += u64::from(len);
        self.sdus.push_back(Sdu {
            delivered: false,
            discarded: false,
            len,
            id: packet.id(),
            flow: packet.flow(),
            packet: Some(packet),
            arrived,
            queued,
            end: None,
        });
    }

    #[inline]
    fn index(&self, seq: u32) -> usize {
        seq.wrapping_sub(self.base) as usize
    }
    /// The SDU with this number, if it is still here.
    #[inline]
    pub fn get(&self, seq: u32) -> Option<&Sdu> {
        self.sdus.get(self.index(seq))
    }
    /// The same, to change.
    #[inline]
    pub fn get_mut(&mut self, seq: u32) -> Option<&mut Sdu> {
        let index = self.index(seq);
        self.sdus.get_mut(index)
    }
    /// The octets of this SDU, as long as somebody might look at them.
    pub fn packet(&self, seq: u32) -> Option<&Packet> {
        let held = self.get(seq).and_then(|sdu| sdu.packet.as_ref());
        held.or_else(|| self.archive.iter().find(|(s, _)| *s == seq).map(|(_, packet)| packet))
    }
    /// Is there anything not yet in PDUs?
    #[inline]
    pub fn has_data(&self) -> bool {
        self.index(self.head) < self.sdus.len()
    }
    /// Number of the SDU being cut, and its octets already in PDUs.
    #[inline]
    pub const fn position(&self) -> (u32, u32) {
        (self.head, self.offset)
    }
    /// Octets of the SDU being cut that are not yet in PDUs; `None` if there is no SDU.
    #[inline]
    pub fn rest(&self) -> Option<u32> {
        self.sdus.get(self.index(self.head)).map(|s| s.len - self.offset)
    }
    /// `n` octets of the SDU being cut went into a PDU.
    #[inline]
    pub fn take(&mut self, n: u32) {
        self.offset += n;
        self.waiting -= u64::from(n);
    }
    /// The SDU being cut is wholly in PDUs.
    pub fn finish(&mut self) {
        self.head = self.head.wrapping_add(1);
        self.offset = 0;
    }
    /// SDUs and octets not yet in PDUs.
    pub fn backlog(&self) -> (u32, u64) {
        ((self.sdus.len() - self.index(self.head)) as u32, self.waiting)
    }
    /// SDUs held, waiting or not acknowledged.
    pub fn len(&self) -> usize {
        self.sdus.len()
    }
    /// Is nothing held?
    pub fn is_empty(&self) -> bool {
        self.sdus.is_empty()
    }

    /// The sender needs the SDUs before `seq` no more: everything of them was acknowledged or given up.
    pub fn free_before(&mut self, seq: u32, reason: &'static str) {
        // `seq` lies between the front and the SDU being cut.
        while self.base != seq && self.index(self.head) > 0 {
            let Some(mut sdu) = self.sdus.pop_front() else { break };
            self.report(&sdu, reason);
            if self.keep_copies
                && let Some(packet) = sdu.packet.take()
            {
                if self.archive.len() == ARCHIVE {
                    self.archive.pop_front();
                }
                self.archive.push_back((self.base, packet));
            }
            self.base = self.base.wrapping_add(1);
        }
    }

    fn report(&mut self, sdu: &Sdu, reason: &'static str) {
        if !sdu.delivered {
            self.lost.push(Lost { id: sdu.id, flow: sdu.flow, len: sdu.len, reason });
        }
    }

    /// The receiver has all octets of `seq`: hands the packet over, once.
    pub fn deliver(&mut self, seq: u32, out: &mut Vec<Delivered>) {
        let keep = self.keep_copies;
        let Some(sdu) = self.get_mut(seq) else { return };
        if sdu.delivered {
            return;
        }
        if let Some(packet) = sdu.packet.take() {
            sdu.delivered = true;
            sdu.packet = keep.then(|| packet.duplicate());
            out.push(Delivered { packet, arrived: sdu.arrived });
        }
    }

    /// Gives up SDUs that are not yet (at all) in PDUs, from the queue's front, while `expired` says so.
    pub fn drop_unsent(&mut self, expired: impl Fn(&Sdu) -> bool, reason: &'static str) -> u32 {
        let at = self.index(self.head) + usize::from(self.offset > 0);
        let mut dropped = 0;
        while self.sdus.get(at).is_some_and(&expired) {
            if let Some(sdu) = self.sdus.remove(at) {
                self.waiting -= u64::from(sdu.len);
                self.report(&sdu, reason);
                dropped += 1;
            }
        }
        dropped
    }

    /// Gives up the SDU being cut in the middle: its rest will not be sent.
    pub fn abandon_partial(&mut self) {
        if let Some(rest) = self.rest() {
            self.waiting -= u64::from(rest);
            self.finish();
        }
    }

    /// Everything that was sent at least in part is lost (reset); SDUs not yet cut survive.
    pub fn drop_sent(&mut self, reason: &'static str) {
        if self.offset > 0 {
            self.abandon_partial();
        }
        self.free_before(self.head, reason);
        self.timed = self.base;
    }

    /// Everything is lost.
    pub fn drop_all(&mut self, reason: &'static str) {
        self.drop_sent(reason);
        self.drop_unsent(|_| true, reason);
    }

    /// The first SDU whose discard timer runs.
    pub fn first_timed(&self) -> Option<(u32, &Sdu)> {
        let seq = if (self.timed.wrapping_sub(self.base) as i32) < 0 { self.base } else { self.timed };
        self.get(seq).map(|sdu| (seq, sdu))
    }
    /// The discard timers of all SDUs before `seq` are over.
    pub fn timers_done_before(&mut self, seq: u32) {
        self.timed = seq;
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::Body;

    use super::*;

    fn store(lens: &[u32]) -> SduStore {
        let mut store = SduStore::default();
        for (i, len) in lens.iter().enumerate() {
            let mut packet = Packet::build(|_| 0, Body::filler(1, *len));
            packet.set_id(i as u64 + 1);
            store.push(packet, Instant::ZERO, Instant::ZERO);
        }
        store
    }

    #[test]
    fn the_backlog_is_what_is_not_in_pdus() {
        let mut s = store(&[100, 50]);
        assert_eq!(s.backlog(), (2, 150));
        s.take(40);
        assert_eq!((s.backlog(), s.rest(), s.position()), ((2, 110), Some(60), (0, 40)));
        s.take(60);
        s.finish();
        assert_eq!((s.backlog(), s.rest(), s.position()), ((1, 50), Some(50), (1, 0)));
    }

    #[test]
    fn a_packet_is_delivered_once_and_what_was_not_is_reported_lost() {
        let mut s = store(&[10, 10]);
        for _ in 0..2 {
            s.take(10);
            s.finish();
        }
        let mut out = Vec::new();
        s.deliver(1, &mut out);
        s.deliver(1, &mut out);
        assert_eq!(out.iter().map(|d| d.packet.id()).collect::<Vec<_>>(), [2]);
        s.free_before(2, "test");
        assert_eq!(s.lost, [Lost { id: 1, flow: 0, len: 10, reason: "test" }]);
        assert!(s.is_empty());
    }

    #[test]
    fn a_reset_loses_what_was_sent_and_keeps_what_waits() {
        let mut s = store(&[10, 10, 10]);
        s.take(10);
        s.finish();
        s.take(5);
        s.drop_sent("rlc reset");
        assert_eq!(s.lost.iter().map(|l| l.id).collect::<Vec<_>>(), [1, 2]);
        assert_eq!((s.backlog(), s.position()), ((1, 10), (2, 0)));
    }

    #[test]
    fn expired_sdus_leave_the_middle_of_the_queue() {
        let mut s = store(&[10, 20, 30]);
        s.take(5);
        assert_eq!(s.drop_unsent(|sdu| sdu.len == 20, "late"), 1);
        assert_eq!(s.backlog(), (2, 35));
        assert_eq!(s.get(1).unwrap().len, 30);
    }
}

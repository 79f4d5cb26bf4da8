//! LLC and SNDCP framing (TS 44.064, TS 44.065), and the LLC frames of one direction from queue to delivery.
//!
//! A packet becomes one or more SN-UNITDATA PDUs, each in an LLC UI frame. Both ends of the link live in one object, so
//! octets are not copied: RLC blocks refer to frames by number and offset, the receiver counts what came.

use std::collections::VecDeque;

use airloom_base::{Direction, Instant, Packet};

use crate::cell::{Delivered, Lost};

/// LLC: address, two octets of control, three of frame check sequence.
const LLC: u16 = 1 + 2 + 3;
/// SNDCP header of the first segment of a packet, and of the others.
const SNDCP: [u16; 2] = [4, 3];
/// Octets of the dummy frame that keeps a flow alive or ends it.
const DUMMY: u16 = 8;

/// One LLC frame.
#[derive(Debug, Default)]
pub struct Frame {
    /// Octets on the RLC layer.
    pub len: u16,
    /// Number of the packet, 0 for a dummy frame.
    pub id: u64,
    /// Flow of the packet.
    pub flow: u32,
    /// When the packet entered the bearer.
    arrived: Instant,
    /// Its packet goes before those of larger numbers.
    priority: u8,
    /// The packet, in its last frame.
    packet: Option<Packet>,
    /// Octets of the packet before this frame.
    skip: u32,
    /// Its number among the frames of the packet, and how many come after it.
    segment: u16,
    after: u16,
    /// Octets that came, and one more for its end.
    received: u16,
    /// In the last frame: how many frames of the packet have come.
    whole: u16,
    delivered: bool,
}

/// The frames of one direction and mobile, oldest first.
#[derive(getset::CopyGetters)]
pub struct Frames {
    n201_u: u16,
    direction: Direction,
    /// Are frames handed up only in order? (In acknowledged mode that gives nothing up they are.)
    in_order: bool,
    frames: VecDeque<Frame>,
    /// Number of the front.
    base: u32,
    /// The frame being cut, and how many of its octets are in blocks.
    head: u32,
    offset: u16,
    /// The first frame not handed up.
    next: u32,
    /// Packets not wholly in blocks, their octets, and octets of frames not in blocks.
    waiting: u32,
    waiting_octets: u64,
    /// Octets of all frames that are not in blocks.
    #[getset(get_copy = "pub")]
    uncut: u64,
    /// Keep copies of packets: captures ask for octets of repeated blocks.
    pub keep_copies: bool,
    /// What was lost since the owner looked.
    pub lost: Vec<Lost>,
}

impl Frames {
    /// Nothing yet. `n201_u`: largest information field of a UI frame.
    pub fn new(direction: Direction, n201_u: u16, in_order: bool) -> Self {
        Frames {
            n201_u,
            direction,
            in_order,
            frames: VecDeque::new(),
            base: 0,
            head: 0,
            offset: 0,
            next: 0,
            waiting: 0,
            waiting_octets: 0,
            uncut: 0,
            keep_copies: false,
            lost: Vec::new(),
        }
    }

    /// A packet enters the queue: behind those of its priority, before those of larger numbers of which nothing is in a block.
    pub fn push(&mut self, packet: Packet, arrived: Instant, priority: u8) {
        let total = packet.wire_len() as u32;
        self.waiting += 1;
        self.waiting_octets += u64::from(total);
        let room = |segment: u16| u32::from(self.n201_u - SNDCP[usize::from(segment > 0)]);
        let after_first = total.saturating_sub(room(0));
        let count = 1 + after_first.div_ceil(room(1)) as u16;
        let (id, flow) = (packet.id(), packet.flow());
        let mut packet = Some(packet);
        let mut skip = 0;
        for (place, segment) in (self.place(priority)..).zip(0..count) {
            let payload = (total - skip).min(room(segment));
            let len = LLC + SNDCP[usize::from(segment > 0)] + payload as u16;
            let after = count - 1 - segment;
            self.uncut += u64::from(len);
            let frame = Frame {
                len,
                id,
                flow,
                arrived,
                priority,
                packet: if after == 0 { packet.take() } else { None },
                skip,
                segment,
                after,
                ..Frame::default()
            };
            self.frames.insert(place, frame);
            skip += payload;
        }
    }

    /// Where the frames of a packet of this priority belong. Those of a packet stay together.
    fn place(&self, priority: u8) -> usize {
        let mut first = self.index(self.head).min(self.frames.len());
        if let Some(cut) = self.frames.get(first)
            && (self.offset > 0 || cut.segment > 0)
        {
            first += 1 + usize::from(cut.after);
        }
        let behind = self.frames.iter().skip(first).rev().take_while(|frame| frame.priority > priority);
        self.frames.len() - behind.count()
    }

    /// A dummy frame enters.
    pub fn push_dummy(&mut self, now: Instant) {
        self.uncut += u64::from(DUMMY);
        self.frames.push_back(Frame { len: DUMMY, arrived: now, ..Frame::default() });
    }

    fn index(&self, number: u32) -> usize {
        number.wrapping_sub(self.base) as usize
    }
    /// A frame that is still here.
    pub fn get(&self, number: u32) -> Option<&Frame> {
        self.frames.get(self.index(number))
    }
    /// Is there anything not in blocks?
    #[inline]
    pub fn has_data(&self) -> bool {
        self.index(self.head) < self.frames.len()
    }
    /// The frame being cut, and how many of its octets are in blocks.
    pub const fn position(&self) -> (u32, u16) {
        (self.head, self.offset)
    }
    /// Octets of the frame being cut that are not in blocks.
    pub fn rest(&self) -> Option<u16> {
        self.get(self.head).map(|frame| frame.len - self.offset)
    }
    /// So many octets of the frame being cut went into a block.
    pub fn take(&mut self, octets: u16) {
        self.offset += octets;
        self.uncut -= u64::from(octets);
    }
    /// The frame being cut is wholly in blocks.
    pub fn finish(&mut self) {
        let index = self.index(self.head);
        if let Some(frame) = self.frames.get(index)
            && frame.after == 0
            && let Some(packet) = &frame.packet
        {
            self.waiting -= 1;
            self.waiting_octets -= packet.wire_len() as u64;
        }
        self.head = self.head.wrapping_add(1);
        self.offset = 0;
    }
    /// Packets and octets not wholly in blocks.
    pub const fn backlog(&self) -> (u32, u64) {
        (self.waiting, self.waiting_octets)
    }

    /// The receiver got so many octets of a frame, the end of it counting as one more; hands up what is complete.
    pub fn receive(&mut self, number: u32, octets: u16, out: &mut Vec<Delivered>) {
        let index = self.index(number);
        let Some(frame) = self.frames.get_mut(index) else { return };
        frame.received = frame.received.saturating_add(octets);
        if frame.received < frame.len + 1 {
            return;
        }
        let last = index + usize::from(frame.after);
        if let Some(last) = self.frames.get_mut(last) {
            last.whole += 1;
        }
        if !self.in_order {
            return self.hand_up(last, out);
        }
        while self.get(self.next).is_some_and(|f| f.received == f.len + 1) {
            let index = self.index(self.next);
            self.next = self.next.wrapping_add(1);
            self.hand_up(index, out);
        }
    }

    /// Hands up the packet whose last frame this is, if all of it has come.
    fn hand_up(&mut self, index: usize, out: &mut Vec<Delivered>) {
        let keep = self.keep_copies;
        let Some(frame) = self.frames.get_mut(index) else { return };
        if frame.after > 0 || frame.delivered || frame.whole <= frame.segment {
            return;
        }
        frame.delivered = true;
        if let Some(packet) = frame.packet.take() {
            frame.packet = keep.then(|| packet.duplicate());
            out.push(Delivered { packet, arrived: frame.arrived });
        }
    }

    /// The sender needs the frames before `number` no more.
    pub fn free_before(&mut self, number: u32, reason: &'static str) {
        while self.base != number && self.index(self.head) > 0 {
            let Some(frame) = self.frames.pop_front() else { break };
            self.report(&frame, reason);
            if self.next == self.base {
                self.next = self.next.wrapping_add(1);
            }
            self.base = self.base.wrapping_add(1);
        }
    }

    fn report(&mut self, frame: &Frame, reason: &'static str) {
        if frame.after == 0
            && !frame.delivered
            && let Some(packet) = &frame.packet
        {
            let len = packet.wire_len() as u32;
            self.lost.push(Lost { id: frame.id, flow: frame.flow, len, reason });
        }
    }

    /// What was cut, at least in part, is lost; with `all` what waits, too.
    pub fn drop_sent(&mut self, all: bool, reason: &'static str) {
        let begun = |f: &Self| f.offset > 0 || f.get(f.head).is_some_and(|frame| frame.segment > 0);
        while self.has_data() && (all || begun(self)) {
            let rest = self.rest().unwrap_or(0);
            self.uncut -= u64::from(rest);
            self.finish();
        }
        self.free_before(self.head, reason);
    }

    /// Appends the octets of a frame.
    pub fn append_octets(&self, number: u32, out: &mut Vec<u8>) {
        let from = out.len();
        let Some(frame) = self.get(number) else { return };
        //= TS 44.064 (6.2): SAPI 3 (user data); the C/R bit of a command is 1 towards the mobile, 0 from it.
        let address = if self.direction == Direction::Downlink { 0x43 } else { 0x03 };
        //= TS 44.064 (6.3): UI format 110, N(U) of nine bits, E = 0 (not ciphered), PM = 1 (all octets are checked).
        let n_u = (number % 512) as u16;
        out.extend_from_slice(&[address, 0xC0 | (n_u >> 6) as u8, ((n_u & 0x3F) << 2) as u8 | 1]);
        let end = from + usize::from(frame.len) - 3;
        let last = self.get(number.wrapping_add(u32::from(frame.after))).and_then(|f| f.packet.as_ref());
        if frame.id != 0 || last.is_some() {
            //= TS 44.065 (6.7): X F T M, NSAPI 5; DCOMP and PCOMP 0; segment number; N-PDU number.
            let more = u8::from(frame.after > 0) << 4;
            if frame.segment == 0 {
                out.extend_from_slice(&[0x60 | more | 5, 0]);
            } else {
                out.push(0x20 | more | 5);
            }
            let npdu = (frame.id % 4096) as u16;
            out.extend_from_slice(&[(frame.segment as u8 & 0x0F) << 4 | (npdu >> 8) as u8, npdu as u8]);
            let at = out.len();
            out.resize(end.max(at), 0);
            if let Some(packet) = last {
                packet.write(frame.skip as usize, &mut out[at..]);
            }
        } else {
            out.resize(end, super::wire::block::FILLER_OCTET);
        }
        let fcs = crc24(&out[from..]);
        out.extend_from_slice(&[fcs as u8, (fcs >> 8) as u8, (fcs >> 16) as u8]);
    }
}

/// The LLC frame check sequence (TS 44.064 5.5): 24 bits, least significant first, complemented.
fn crc24(octets: &[u8]) -> u32 {
    // The generator polynomial x^24 + x^23 + x^21 + ... + 1 with its bits turned round.
    const POLYNOMIAL: u32 = 0xAD_85DD;
    let step = |crc: u32, octet: &u8| {
        (0..8).fold(crc ^ u32::from(*octet), |c, _| if c & 1 == 1 { c >> 1 ^ POLYNOMIAL } else { c >> 1 })
    };
    !octets.iter().fold(0xFF_FFFF, step) & 0xFF_FFFF
}

#[cfg(test)]
mod tests {
    use airloom_base::Body;

    use super::*;

    fn frames(n201_u: u16, in_order: bool, lens: &[u32]) -> Frames {
        let mut frames = Frames::new(Direction::Downlink, n201_u, in_order);
        for (n, len) in lens.iter().enumerate() {
            let mut packet = Packet::build(|_| 0, Body::filler(1, *len));
            packet.set_id(n as u64 + 1);
            frames.push(packet, Instant::ZERO, 0);
        }
        frames
    }

    #[test]
    fn a_packet_of_1500_octets_is_one_frame_of_1510_or_four_of_500() {
        let one = frames(1520, true, &[1500]);
        assert_eq!(one.frames.iter().map(|f| f.len).collect::<Vec<_>>(), [1510]);
        let four = frames(500, true, &[1500]);
        // 496 octets behind four, twice 497 behind three, and the rest.
        assert_eq!(four.frames.iter().map(|f| f.len).collect::<Vec<_>>(), [506, 506, 506, 6 + 3 + 10]);
    }

    #[test]
    fn frames_come_up_in_order_or_as_they_are_complete() {
        for (in_order, expected) in [(true, vec![]), (false, vec![2])] {
            let mut f = frames(1520, in_order, &[100, 50]);
            let mut out = Vec::new();
            f.receive(1, 61, &mut out);
            assert_eq!(out.iter().map(|d| d.packet.id()).collect::<Vec<_>>(), expected);
            f.receive(0, 110, &mut out);
            assert_eq!(out.len(), expected.len(), "the end is not known yet");
            f.receive(0, 1, &mut out);
            assert_eq!(out.len(), 2);
        }
    }

    #[test]
    fn a_packet_in_segments_comes_up_with_its_last_missing_one() {
        let mut f = frames(500, false, &[1500]);
        let mut out = Vec::new();
        for (number, len) in [(0, 507), (3, 20), (2, 507)] {
            f.receive(number, len, &mut out);
            assert!(out.is_empty());
        }
        f.receive(1, 507, &mut out);
        assert_eq!(out.len(), 1);
    }

    #[test]
    fn a_packet_of_higher_priority_goes_before_those_of_which_nothing_was_sent() {
        let mut f = frames(500, true, &[]);
        let push = |f: &mut Frames, id: u64, len: u32, priority: u8| {
            let mut packet = Packet::build(|_| 0, Body::filler(1, len));
            packet.set_id(id);
            f.push(packet, Instant::ZERO, priority);
        };
        push(&mut f, 1, 700, 2);
        // The first of two frames is cut: the packet stays whole.
        f.take(506);
        f.finish();
        push(&mut f, 2, 100, 2);
        push(&mut f, 3, 700, 1);
        push(&mut f, 4, 50, 1);
        push(&mut f, 5, 50, 0);
        let order: Vec<u64> = f.frames.iter().map(|frame| frame.id).collect();
        assert_eq!(order, [1, 1, 5, 3, 3, 4, 2]);
        let segments: Vec<u16> = f.frames.iter().map(|frame| frame.segment).collect();
        assert_eq!(segments, [0, 1, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn the_check_sequence_of_all_octets_with_itself_is_a_constant() {
        // A receiver's way to check: over data and check sequence the register ends at the same value, whatever the data.
        let rest = |data: &[u8]| {
            let fcs = crc24(data);
            let mut all = data.to_vec();
            all.extend_from_slice(&[fcs as u8, (fcs >> 8) as u8, (fcs >> 16) as u8]);
            crc24(&all)
        };
        assert_eq!(rest(b"123456789"), rest(&[0x43, 0xC0, 0x01, 0x2B]));
    }

    #[test]
    fn what_was_sent_is_lost_and_what_waits_is_not() {
        let mut f = frames(1520, true, &[100, 50, 20]);
        f.take(110);
        f.finish();
        f.take(10);
        assert_eq!(f.backlog(), (2, 70));
        f.drop_sent(false, "test");
        assert_eq!(f.lost.iter().map(|l| l.id).collect::<Vec<_>>(), [1, 2]);
        assert_eq!((f.backlog(), f.uncut()), ((1, 20), 30));
    }
}

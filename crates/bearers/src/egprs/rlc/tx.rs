//! The sending side: V(S), V(A), V(B).

use std::collections::VecDeque;

use super::Layout;
use crate::egprs::coding_scheme::{Carry, Mcs};
use crate::egprs::llc::Frames;
use crate::egprs::wire::header::Split;
use crate::egprs::wire::{AckNack, SNS};

/// State of a block in V(B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Pending,
    Nacked,
    Acked,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    layout: Layout,
    state: State,
    attempts: u8,
    /// Block period of the last transmission.
    sent: u64,
    /// The first half of a block cut in two is out, the second not yet.
    is_half_out: bool,
}

/// How blocks are sent.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Scheme of new blocks.
    pub mcs: Mcs,
    /// Scheme asked for when blocks are repeated.
    pub again: Mcs,
    /// May repeated blocks be cut in two for a more robust scheme?
    pub resegment: bool,
    /// Window size.
    pub window: u16,
    /// Transmissions after which a block is given up; 0: never.
    pub max_tx: u8,
    /// With `max_tx`: block periods after the last transmission after which no report is waited for any more.
    pub patience: u64,
}

impl Rules {
    /// New blocks and repetitions take this scheme from now on.
    pub fn use_scheme(&mut self, mcs: Mcs) {
        (self.mcs, self.again) = (mcs, mcs);
    }
}

/// Why a block is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// For the first time.
    No,
    /// The report said that it is missing.
    Nacked,
    /// There is nothing else to send.
    PreEmptive,
}

/// One RLC data block of a radio block.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Sequence number.
    pub bsn: u16,
    /// What it holds.
    pub layout: Layout,
    /// Which transmission, from 1.
    pub attempt: u8,
    /// Why it is sent.
    pub again: Again,
}

/// A radio block to send.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Its scheme.
    pub mcs: Mcs,
    /// Half, if blocks are cut.
    pub split: Split,
    /// Filled up from MCS-8?
    pub is_padded: bool,
    /// The block, or both.
    pub blocks: [Option<Sent>; 2],
}

/// The sender.
#[derive(Debug, Default, getset::CopyGetters)]
pub struct Tx {
    /// V(A).
    v_a: u16,
    /// From V(A) to V(S).
    blocks: VecDeque<Block>,
    /// Blocks known to be missing.
    #[getset(get_copy = "pub")]
    nacked: u16,
    /// Where pre-emptive repetition goes on.
    cursor: u16,
    /// Was a frame's end not told yet?
    #[getset(get_copy = "pub")]
    owes_end: bool,
    /// Nothing new is begun: the flow ends.
    pub is_closing: bool,
    /// Blocks given up.
    pub abandoned: u64,
    /// Times the window was full with something waiting.
    pub stalls: u64,
}

impl Tx {
    /// A new flow begins; the counters go on.
    pub fn restart(&mut self) {
        let Tx { abandoned, stalls, .. } = *self;
        *self = Tx { abandoned, stalls, ..Tx::default() };
    }
    /// Is there anything never sent?
    #[inline]
    pub fn has_new(&self, frames: &Frames) -> bool {
        !self.is_closing && (frames.has_data() || self.owes_end)
    }
    /// Is the window full?
    pub fn is_stalled(&self, rules: &Rules) -> bool {
        self.blocks.len() >= usize::from(rules.window)
    }
    /// Is there something to send that has to be sent: missing, or new and in the window?
    #[inline]
    pub fn wants(&self, rules: &Rules, frames: &Frames) -> bool {
        self.nacked > 0 || self.has_new(frames) && !self.is_stalled(rules)
    }
    /// Is anything not acknowledged?
    #[inline]
    pub fn is_outstanding(&self) -> bool {
        !self.blocks.is_empty()
    }
    /// Blocks sent so far that follow the last of this radio block.
    pub fn behind(&self, choice: &Choice) -> usize {
        let place = |sent: &Sent| usize::from((sent.bsn + SNS - self.v_a) % SNS);
        let last = choice.blocks.iter().flatten().map(place).max().unwrap_or(0);
        self.blocks.len().saturating_sub(last + 1)
    }
    /// The next radio block in block period `now`.
    ///
    //= TS 44.060 (9.1.3.2): the oldest missing block first; else a new one if the window allows; else, if pre-emptive
    //= repetition is allowed, the oldest not acknowledged, and so on through the window.
    pub fn serve(
        &mut self,
        rules: &Rules,
        frames: &mut Frames,
        now: u64,
        may_pre_empt: bool,
    ) -> Option<Choice> {
        if let Some(first) = self.next_nacked(0) {
            return Some(self.repeat(rules, frames, first, Again::Nacked, now));
        }
        if self.has_new(frames) {
            if !self.is_stalled(rules) {
                return self.new_blocks(rules, frames, now);
            }
            self.stalls += 1;
        }
        let pending = if may_pre_empt { self.next_pending(rules) } else { None };
        let Some(first) = pending else {
            self.give_up(rules, frames, now);
            return None;
        };
        Some(self.repeat(rules, frames, first, Again::PreEmptive, now))
    }

    /// Gives up what was sent as often as it may be, if no report came for long.
    fn give_up(&mut self, rules: &Rules, frames: &mut Frames, now: u64) {
        if rules.max_tx == 0 {
            return;
        }
        for block in self.blocks.iter_mut().filter(|b| b.state == State::Pending) {
            if block.attempts >= rules.max_tx && now.saturating_sub(block.sent) >= rules.patience {
                block.state = State::Acked;
                self.abandoned += 1;
            }
        }
        self.advance(frames);
    }

    fn next_nacked(&self, from: usize) -> Option<usize> {
        if self.nacked == 0 {
            return None;
        }
        (from..self.blocks.len()).find(|i| self.blocks[*i].state == State::Nacked)
    }

    fn next_pending(&mut self, rules: &Rules) -> Option<usize> {
        let count = self.blocks.len();
        let start = usize::from((self.cursor + SNS - self.v_a) % SNS);
        let start = if start < count { start } else { 0 };
        let may = |b: &Block| b.state == State::Pending && (rules.max_tx == 0 || b.attempts < rules.max_tx);
        let found = (start..count).chain(0..start).find(|i| may(&self.blocks[*i]))?;
        self.cursor = (self.v_a + found as u16 + 1) % SNS;
        Some(found)
    }

    fn cut(&mut self, frames: &mut Frames, octets: usize) -> Option<usize> {
        let layout = Layout::cut(frames, octets, &mut self.owes_end)?;
        let state = State::Pending;
        self.blocks.push_back(Block { layout, state, attempts: 0, sent: 0, is_half_out: false });
        Some(self.blocks.len() - 1)
    }

    fn new_blocks(&mut self, rules: &Rules, frames: &mut Frames, now: u64) -> Option<Choice> {
        let mut mcs = rules.mcs;
        // Two blocks only if there is enough for a second.
        let has_two =
            frames.uncut() > mcs.octets() as u64 && self.blocks.len() + 1 < usize::from(rules.window);
        if mcs.blocks() == 2 && !has_two {
            mcs = mcs.alone();
        }
        let first = self.cut(frames, mcs.octets())?;
        let second = if mcs.blocks() == 2 { self.cut(frames, mcs.octets()) } else { None };
        let mut blocks =
            [Some(self.send(first, Again::No, now)), second.map(|i| self.send(i, Again::No, now))];
        if mcs.blocks() == 2 && second.is_none() {
            // The first took all that was left after all: both halves of the radio block carry it.
            blocks[1] = blocks[0];
        }
        Some(Choice { mcs, split: Split::Whole, is_padded: false, blocks })
    }

    /// Block `first` again, with a scheme that can carry it.
    fn repeat(&mut self, rules: &Rules, frames: &mut Frames, first: usize, again: Again, now: u64) -> Choice {
        let octets = usize::from(self.blocks[first].layout.octets);
        let (mcs, carry) = scheme(rules.again, octets, rules.resegment);
        if carry == Carry::Halves {
            let block = &mut self.blocks[first];
            let split = if block.is_half_out { Split::Second } else { Split::First };
            block.is_half_out = !block.is_half_out;
            let sent = match split {
                // The block stays missing until its second half is out, and counts as sent once.
                Split::First => self.peek(first, again, now),
                _ => self.send(first, again, now),
            };
            return Choice { mcs, split, is_padded: octets == 68, blocks: [Some(sent), None] };
        }
        let mut second = None;
        let mut mcs = mcs;
        if mcs.blocks() == 2 {
            let fits = |b: &Block| usize::from(b.layout.octets) == octets;
            second = match again {
                Again::Nacked => self.next_nacked(first + 1).filter(|i| fits(&self.blocks[*i])),
                _ => None,
            };
            let near = |i: &usize| *i - first < usize::from(SNS / 2);
            second = second.filter(near);
            let may_begin =
                rules.mcs.octets() == octets && rules.mcs.blocks() == 2 && !self.is_stalled(rules);
            if second.is_none()
                && may_begin
                && self.has_new(frames)
                && self.blocks.len() - first < usize::from(SNS / 2)
            {
                let fresh = self.cut(frames, octets).map(|i| self.send(i, Again::No, now));
                let repeated = self.send(first, again, now);
                if fresh.is_some() {
                    return Choice {
                        mcs,
                        split: Split::Whole,
                        is_padded: false,
                        blocks: [Some(repeated), fresh],
                    };
                }
            }
            if second.is_none() {
                mcs = scheme(mcs.alone(), octets, rules.resegment).0;
            }
        }
        let is_padded = octets == 68 && mcs.number() == 6;
        let blocks = [Some(self.send(first, again, now)), second.map(|i| self.send(i, again, now))];
        Choice { mcs, split: Split::Whole, is_padded, blocks }
    }

    fn peek(&mut self, index: usize, again: Again, now: u64) -> Sent {
        let block = &mut self.blocks[index];
        block.sent = now;
        let bsn = (self.v_a + index as u16) % SNS;
        Sent { bsn, layout: block.layout, attempt: block.attempts.saturating_add(1), again }
    }

    fn send(&mut self, index: usize, again: Again, now: u64) -> Sent {
        let sent = self.peek(index, again, now);
        let block = &mut self.blocks[index];
        block.attempts = sent.attempt;
        if block.state == State::Nacked {
            block.state = State::Pending;
            self.nacked -= 1;
        }
        sent
    }

    /// A report came. A block counts as missing only if it was last sent in period `heard` or before: the receiver
    /// could not know of later ones. Yes if anything changed; a report that cannot be is ignored.
    pub fn on_report(&mut self, rules: &Rules, report: &AckNack, heard: i64, frames: &mut Frames) -> bool {
        let mut changed = false;
        let count = self.blocks.len() as u16;
        let distance = |bsn: u16| (bsn + SNS - self.v_a) % SNS;
        let mut negative: [Option<u16>; 1] = [None];
        if report.beginning_of_window {
            //= TS 44.060 (9.1.8.2.2): all before V(Q) have come; V(Q) is the one before the first of the bitmap.
            let v_q = distance((report.ssn + SNS - 1) % SNS);
            if v_q <= count {
                for block in self.blocks.iter_mut().take(v_q.into()) {
                    changed |= acknowledge(block, &mut self.nacked);
                }
                negative[0] = (v_q < count).then_some(v_q);
            } else if v_q < SNS / 2 {
                // From beyond V(S): nonsense.
                return false;
            }
            //= TS 44.060 (9.1.8.2.2): what lies outside of the window is ignored. V(Q) is before V(A) while the receiver waits
            //= for a block that was given up; what the bitmap says of those from V(A) on counts.
        }
        let first = distance(report.ssn % SNS);
        let told = report.bitmap.iter().enumerate().filter_map(|(n, has_come)| {
            let at = (u32::from(first) + n as u32) % u32::from(SNS);
            (at < u32::from(count)).then_some((at as u16, *has_come))
        });
        for (at, has_come) in negative.into_iter().flatten().map(|at| (at, false)).chain(told) {
            let block = &mut self.blocks[usize::from(at)];
            if has_come {
                changed |= acknowledge(block, &mut self.nacked);
            } else if block.state == State::Pending && block.sent as i64 <= heard {
                changed = true;
                if rules.max_tx > 0 && block.attempts >= rules.max_tx {
                    block.state = State::Acked;
                    self.abandoned += 1;
                } else {
                    block.state = State::Nacked;
                    self.nacked += 1;
                }
            }
        }
        self.advance(frames);
        changed
    }

    fn advance(&mut self, frames: &mut Frames) {
        while self.blocks.front().is_some_and(|b| b.state == State::Acked) {
            self.blocks.pop_front();
            self.v_a = (self.v_a + 1) % SNS;
        }
        let needed = match self.blocks.front() {
            // A block that only tells the end of the frame before begins with the next frame.
            Some(block) if block.layout.tells_end_before() => block.layout.frame.wrapping_sub(1),
            Some(block) => block.layout.frame,
            None if self.owes_end => frames.position().0.wrapping_sub(1),
            None => frames.position().0,
        };
        frames.free_before(needed, "rlc gave up");
    }
}

fn acknowledge(block: &mut Block, nacked: &mut u16) -> bool {
    match block.state {
        State::Acked => return false,
        State::Nacked => *nacked -= 1,
        State::Pending => {}
    }
    block.state = State::Acked;
    true
}

/// The scheme nearest to the one asked for that carries a block of `octets`: the same or a more robust one first; cut in
/// two only if that is allowed.
fn scheme(asked: Mcs, octets: usize, resegment: bool) -> (Mcs, Carry) {
    let down = Mcs::ALL.into_iter().rev().filter(|mcs| *mcs <= asked);
    let up = Mcs::ALL.into_iter().filter(|mcs| *mcs > asked);
    down.chain(up)
        .find_map(|mcs| {
            let carry = mcs.carries(octets).filter(|carry| resegment || *carry != Carry::Halves)?;
            Some((mcs, carry))
        })
        .expect("every block was first sent with a scheme, which carries it")
}

#[cfg(test)]
mod tests {
    use airloom_base::{Body, Direction, Instant, Packet};

    use super::super::Rx;
    use super::*;

    fn mcs(n: u8) -> Mcs {
        Mcs::new(n).unwrap()
    }

    fn rules(new: u8, again: u8) -> Rules {
        Rules { mcs: mcs(new), again: mcs(again), resegment: true, window: 64, max_tx: 0, patience: 50 }
    }

    fn queue(lens: &[u32]) -> Frames {
        let mut frames = Frames::new(Direction::Downlink, 1520, true);
        for (n, len) in lens.iter().enumerate() {
            let mut packet = Packet::build(|_| 0, Body::filler(1, *len));
            packet.set_id(n as u64 + 1);
            frames.push(packet, Instant::ZERO, 0);
        }
        frames
    }

    fn numbers(choice: &Choice) -> Vec<u16> {
        choice.blocks.iter().flatten().map(|b| b.bsn).collect()
    }

    fn bitmap(ssn: u16, bits: &[u8]) -> AckNack {
        AckNack {
            is_final: false,
            beginning_of_window: true,
            end_of_window: true,
            ssn,
            bitmap: bits.iter().map(|b| *b == 1).collect(),
        }
    }

    #[test]
    fn missing_blocks_go_before_new_ones_and_pending_ones_only_when_there_is_nothing_else() {
        let (rules, mut frames, mut tx) = (rules(4, 4), queue(&[300]), Tx::default());
        for expected in 0..5 {
            assert_eq!(numbers(&tx.serve(&rules, &mut frames, expected.into(), true).unwrap()), [expected]);
        }
        // 1 is missing; 3 is named, too, but was sent after what the receiver knew.
        assert!(tx.on_report(&rules, &bitmap(2, &[1, 0]), 2, &mut frames));
        let next = tx.serve(&rules, &mut frames, 9, true).unwrap();
        assert_eq!((numbers(&next), next.blocks[0].unwrap().attempt), (vec![1], 2));
        let rest: Vec<u16> =
            (10..16).map(|now| numbers(&tx.serve(&rules, &mut frames, now, true).unwrap())[0]).collect();
        assert_eq!(rest, [5, 6, 7, 1, 3, 4], "new ones, then the oldest that are not acknowledged");
        assert!(tx.serve(&rules, &mut frames, 20, false).is_none());
    }

    #[test]
    fn a_full_window_stops_new_blocks() {
        let (rules, mut frames, mut tx) = (rules(1, 1), queue(&[1500, 1500]), Tx::default());
        for now in 0..64 {
            tx.serve(&rules, &mut frames, now, false).unwrap();
        }
        assert!(tx.is_stalled(&rules) && tx.serve(&rules, &mut frames, 64, false).is_none());
        assert_eq!(numbers(&tx.serve(&rules, &mut frames, 64, true).unwrap()), [0]);
        tx.on_report(&rules, &bitmap(1, &[1, 1, 1]), 0, &mut frames);
        assert!(tx.is_stalled(&rules), "V(A) has not moved");
        tx.on_report(&rules, &bitmap(5, &[]), 64, &mut frames);
        assert_eq!(numbers(&tx.serve(&rules, &mut frames, 65, false).unwrap()), [4], "4 is missing");
        assert_eq!(numbers(&tx.serve(&rules, &mut frames, 65, false).unwrap()), [64]);
    }

    #[test]
    fn a_block_of_mcs_4_is_repeated_in_two_halves_of_mcs_1() {
        let (rules, mut frames, mut tx) = (rules(4, 1), queue(&[300]), Tx::default());
        tx.serve(&rules, &mut frames, 0, false);
        tx.on_report(&rules, &bitmap(1, &[]), 0, &mut frames);
        let halves: Vec<(Mcs, Split, u16)> = (1..4)
            .filter_map(|now| tx.serve(&rules, &mut frames, now, false))
            .map(|c| (c.mcs, c.split, c.blocks[0].unwrap().bsn))
            .collect();
        assert_eq!(
            halves,
            [(mcs(1), Split::First, 0), (mcs(1), Split::Second, 0), (mcs(4), Split::Whole, 1)]
        );
    }

    #[test]
    fn two_blocks_share_a_radio_block_and_a_lone_one_takes_the_smaller_scheme() {
        let (rules, mut frames, mut tx) = (rules(9, 9), queue(&[300]), Tx::default());
        let schemes: Vec<(Mcs, Vec<u16>)> = std::iter::from_fn(|| tx.serve(&rules, &mut frames, 0, false))
            .map(|c| (c.mcs, numbers(&c)))
            .collect();
        assert_eq!(schemes, [(mcs(9), vec![0, 1]), (mcs(9), vec![2, 3]), (mcs(6), vec![4])]);
        tx.on_report(&rules, &bitmap(1, &[1, 0, 1, 1]), 0, &mut frames);
        let again = tx.serve(&rules, &mut frames, 1, false).unwrap();
        assert_eq!((again.mcs, numbers(&again)), (mcs(9), vec![0, 2]));
    }

    #[test]
    fn a_block_of_mcs_8_alone_is_repeated_with_filler() {
        let (rules, mut frames, mut tx) = (rules(8, 8), queue(&[150]), Tx::default());
        tx.serve(&rules, &mut frames, 0, false);
        tx.on_report(&rules, &bitmap(1, &[1]), 0, &mut frames);
        while tx.serve(&rules, &mut frames, 1, false).is_some_and(|c| !(c.mcs == mcs(6) && c.is_padded)) {}
        assert_eq!(scheme(mcs(6), 68, true), (mcs(6), Carry::Padded));
    }

    #[test]
    fn without_resegmentation_a_block_keeps_its_size() {
        for (first, asked, expected) in [(4, 1, 4), (9, 1, 6), (9, 3, 6), (7, 2, 5), (8, 3, 6), (5, 9, 7)] {
            let (octets, asked) = (mcs(first).octets(), mcs(asked));
            let (chosen, carry) = scheme(asked, octets, false);
            assert!(carry != Carry::Halves);
            assert_eq!(chosen, mcs(expected), "a block of MCS-{first} as {asked}");
        }
    }

    #[test]
    fn blocks_behind_a_radio_block_are_counted_from_its_last() {
        let (rules, mut frames, mut tx) = (rules(4, 4), queue(&[300]), Tx::default());
        let first = tx.serve(&rules, &mut frames, 0, true).unwrap();
        assert_eq!(tx.behind(&first), 0);
        assert!((1..4).all(|now| tx.serve(&rules, &mut frames, now, true).is_some()));
        assert_eq!(tx.behind(&first), 3);
    }

    #[test]
    fn a_block_is_given_up_after_max_tx_transmissions() {
        let rules = Rules { max_tx: 2, ..rules(4, 4) };
        let (mut frames, mut tx) = (queue(&[20, 20]), Tx::default());
        tx.serve(&rules, &mut frames, 0, true);
        tx.on_report(&rules, &bitmap(1, &[]), 0, &mut frames);
        assert_eq!(numbers(&tx.serve(&rules, &mut frames, 1, true).unwrap()), [0]);
        tx.on_report(&rules, &bitmap(1, &[]), 1, &mut frames);
        assert_eq!((tx.abandoned, tx.is_outstanding() && tx.nacked() > 0), (1, false));
    }

    #[test]
    fn while_the_receiver_waits_for_a_block_that_was_given_up_its_reports_count() {
        let rules = Rules { max_tx: 1, ..rules(4, 4) };
        let (mut frames, mut tx) = (queue(&[300]), Tx::default());
        for now in 0..3 {
            tx.serve(&rules, &mut frames, now, false).unwrap();
        }
        assert!(tx.on_report(&rules, &bitmap(1, &[1, 1]), 2, &mut frames));
        assert_eq!((tx.abandoned, tx.is_outstanding()), (1, false));
        for now in 3..5 {
            tx.serve(&rules, &mut frames, now, false).unwrap();
        }
        // 3 is missing, too, and 4 has come; 1 and 2 lie before V(A).
        assert!(tx.on_report(&rules, &bitmap(1, &[1, 1, 0, 1]), 10, &mut frames));
        assert_eq!((tx.abandoned, tx.is_outstanding()), (2, false));
    }

    #[test]
    fn numbers_wrap_and_nonsense_is_ignored() {
        let (rules, mut tx) = (rules(1, 1), Tx::default());
        let mut frames = queue(&[1500; 40]);
        let mut rx = Rx::new(64, None);
        for now in 0..2500u64 {
            let choice = tx.serve(&rules, &mut frames, now, false).unwrap();
            assert_eq!(numbers(&choice), [(now % 2048) as u16]);
            rx.receive(choice.blocks[0].unwrap().bsn, Split::Whole, now);
            assert!(!tx.on_report(
                &rules,
                &bitmap((now as u16 + 900) % SNS, &[0; 60]),
                now as i64,
                &mut frames
            ));
            let report = rx.report(false, now).0;
            assert!(tx.on_report(&rules, &report, now as i64, &mut frames) && !tx.is_outstanding());
        }
    }
}

//! The receiving end of a bundle: fragments become packets again (RFC 1990, 4).

use std::collections::{BTreeMap, VecDeque};

use airloom_base::{Duration, Instant};
use smart_default::SmartDefault;

use super::header::{Format, Header};

/// What the receiver keeps at most.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Octets of all fragments that wait.
    pub octets: u64,
    /// How many of them.
    pub fragments: usize,
    /// Octets of a packet.
    pub packet: u64,
    /// How long one may wait for what is missing.
    pub patience: Duration,
}

/// What it counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Numbers that did not come.
    pub missing: u64,
    /// Fragments thrown away because others of their packet did not come, or because they make no packet.
    pub discarded: u64,
    /// Fragments that came when their number was past, came twice, or in another order than their link has.
    pub late: u64,
    /// How often the wait was too long.
    pub expired: u64,
    /// How often too much waited.
    pub overflows: u64,
}

impl Counters {
    /// Those of another receiver too.
    #[must_use]
    pub fn and(self, other: Counters) -> Counters {
        Counters {
            missing: self.missing + other.missing,
            discarded: self.discarded + other.discarded,
            late: self.late + other.late,
            expired: self.expired + other.expired,
            overflows: self.overflows + other.overflows,
        }
    }
}

struct HeldFragment<T> {
    begin: bool,
    end: bool,
    octets: u64,
    piece: T,
}

/// A packet: the pieces of its fragments in order.
#[derive(Debug, PartialEq, Eq)]
pub struct Whole<T> {
    /// Number of its first fragment, counted on beyond those of the format.
    pub first: u64,
    /// Its pieces.
    pub pieces: Vec<T>,
}

/// Puts the fragments of a bundle together.
///
/// Each member keeps its order, so a number that all of them are past will not come any more. RFC 1990, 4.1 says so of the
/// whole packet (when they are past its last fragment); that the missing number itself is past is enough, and is what
/// Linux goes by.
#[derive(SmartDefault, getset::CopyGetters)]
pub struct Reassembler<T> {
    format: Format,
    limits: Limits,
    /// Lowest number that was neither handed on nor given up.
    #[getset(get_copy = "pub")]
    next: u64,
    /// By member: the number behind the last one that it brought; none while it is not in the bundle.
    members: Vec<Option<u64>>,
    /// What lies below does not come any more, whatever the members say.
    floor: u64,
    held: BTreeMap<u64, HeldFragment<T>>,
    octets: u64,
    /// Since when the first of those held waits.
    since: Option<Instant>,
    done: VecDeque<Whole<T>>,
    /// What it counted.
    #[getset(get_copy = "pub")]
    counters: Counters,
}

/// What the fragments from the first one on come to.
enum Front {
    /// A packet up to this number.
    Whole(u64),
    /// No packet: what lies below this number is thrown away.
    Broken(u64),
    /// This number is missing.
    Missing(u64),
}

impl<T> Reassembler<T> {
    /// A receiver of fragments in this format.
    pub fn new(format: Format, limits: Limits) -> Reassembler<T> {
        Reassembler { format, limits, ..Default::default() }
    }

    /// Fragments that wait, and their octets.
    pub fn waiting(&self) -> (usize, u64) {
        (self.held.len(), self.octets)
    }

    /// A member joins: whatever it brings comes behind what is awaited.
    pub fn join(&mut self, member: u16) {
        let member = usize::from(member);
        if self.members.len() <= member {
            self.members.resize(member + 1, None);
        }
        self.members[member] = Some(self.next);
    }

    /// A member leaves: nobody waits for it any more.
    pub fn leave(&mut self, now: Instant, member: u16) {
        if let Some(member) = self.members.get_mut(usize::from(member)) {
            *member = None;
        }
        self.advance(now);
    }

    /// The next packet.
    pub fn poll(&mut self) -> Option<Whole<T>> {
        self.done.pop_front()
    }

    /// When to call [`Reassembler::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.since.map(|since| since + self.limits.patience)
    }

    /// What is missing is given up, if it is time.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_none_or(|at| at > now) {
            return;
        }
        self.counters.expired += 1;
        self.give_up();
        self.since = None;
        self.advance(now);
    }

    /// A fragment with so many octets arrives over a member.
    pub fn receive(&mut self, now: Instant, member: u16, header: Header, octets: u64, piece: T) {
        let Some(Some(behind)) = self.members.get_mut(usize::from(member)) else {
            self.counters.late += 1;
            return;
        };
        let numbers = self.format.numbers();
        let ahead = (u64::from(header.sequence) % numbers + numbers - self.next % numbers) % numbers;
        let number = self.next + ahead;
        //= RFC 1990 (4.1): the numbers of a link increase.
        if ahead >= numbers / 2 || number < *behind || self.held.contains_key(&number) {
            self.counters.late += 1;
            return;
        }
        *behind = number + 1;
        self.octets += octets;
        self.held.insert(number, HeldFragment { begin: header.begin, end: header.end, octets, piece });
        self.advance(now);
        while self.octets > self.limits.octets || self.held.len() > self.limits.fragments {
            self.counters.overflows += 1;
            self.give_up();
            self.advance(now);
        }
    }

    /// What lies in front of this number does not come any more.
    fn past(&self) -> u64 {
        self.members.iter().flatten().min().copied().unwrap_or(0).max(self.floor)
    }

    /// The first number that is missing, and all up to the next one that is there, are waited for no more.
    fn give_up(&mut self) {
        let mut number = self.next;
        let mut held = self.held.keys();
        let behind_gap = loop {
            match held.next() {
                Some(there) if *there == number => number += 1,
                Some(there) => break *there,
                None => break number + 1,
            }
        };
        self.floor = behind_gap;
    }

    /// Hands on and gives up what can be.
    fn advance(&mut self, now: Instant) {
        let (past, from) = (self.past(), self.next);
        while let Some((first, head)) = self.held.first_key_value() {
            if *first > self.next {
                if self.next >= past {
                    break;
                }
                let to = (*first).min(past);
                self.counters.missing += to - self.next;
                self.next = to;
                continue;
            }
            if !head.begin {
                // Its beginning is lost, or it never had one.
                self.discard_below(self.next + 1);
                continue;
            }
            match self.front() {
                Front::Whole(last) => self.hand_on(last),
                Front::Broken(number) => self.discard_below(number),
                Front::Missing(number) if number < past => {
                    self.counters.missing += 1;
                    self.discard_below(number);
                    self.next = number + 1;
                }
                Front::Missing(_) => break,
            }
        }
        if self.held.is_empty() {
            (self.since, self.octets) = (None, 0);
        } else if self.next != from || self.since.is_none() {
            self.since = Some(now);
        }
    }

    fn front(&self) -> Front {
        let (mut expected, mut octets) = (self.next, 0);
        for (number, fragment) in &self.held {
            if *number != expected {
                break;
            }
            //= RFC 1990 (4.1): a B tells that the E in front of it is lost.
            if fragment.begin && expected > self.next {
                return Front::Broken(expected);
            }
            octets += fragment.octets;
            expected += 1;
            if octets > self.limits.packet {
                return Front::Broken(expected);
            }
            if fragment.end {
                return Front::Whole(*number);
            }
        }
        Front::Missing(expected)
    }

    fn hand_on(&mut self, last: u64) {
        let mut pieces = Vec::with_capacity((last - self.next + 1) as usize);
        let first = self.next;
        while let Some(fragment) = self.pop_below(last + 1) {
            pieces.push(fragment.piece);
        }
        self.next = last + 1;
        self.done.push_back(Whole { first, pieces });
    }

    fn discard_below(&mut self, number: u64) {
        while self.pop_below(number).is_some() {
            self.counters.discarded += 1;
        }
        self.next = self.next.max(number);
    }

    fn pop_below(&mut self, number: u64) -> Option<HeldFragment<T>> {
        let first = self.held.first_entry().filter(|entry| *entry.key() < number)?;
        let fragment = first.remove();
        self.octets -= fragment.octets;
        Some(fragment)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: Limits =
        Limits { octets: 100_000, fragments: 1000, packet: 1502, patience: Duration::from_secs(5) };

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

    /// A bundle of so many members; pieces are numbers.
    fn bundle(members: u16) -> Reassembler<u64> {
        let mut bundle = Reassembler::new(Format::Short, LIMITS);
        (0..members).for_each(|member| bundle.join(member));
        bundle
    }

    /// `BE` fragment with this number comes over a member.
    fn come(bundle: &mut Reassembler<u64>, member: u16, flags: &str, number: u64) -> Vec<Vec<u64>> {
        let header =
            Header { begin: flags.contains('B'), end: flags.contains('E'), sequence: number as u32 & 0xFFF };
        bundle.receive(Instant::ZERO, member, header, 100, number);
        std::iter::from_fn(|| bundle.poll()).map(|whole| whole.pieces).collect()
    }

    #[test]
    fn fragments_of_three_members_become_packets_in_order() {
        let mut bundle = bundle(3);
        assert!(come(&mut bundle, 1, "", 1).is_empty());
        assert!(come(&mut bundle, 2, "E", 2).is_empty());
        assert!(come(&mut bundle, 1, "BE", 4).is_empty());
        assert_eq!(come(&mut bundle, 0, "B", 0), [vec![0, 1, 2]]);
        assert_eq!(come(&mut bundle, 0, "BE", 3), [vec![3], vec![4]]);
        assert_eq!((bundle.waiting(), bundle.counters()), ((0, 0), Counters::default()));
    }

    #[test]
    fn a_number_that_all_members_are_past_is_lost_with_its_packet_only() {
        let mut bundle = bundle(2);
        // 1 is lost on member 1.
        assert!(come(&mut bundle, 0, "B", 0).is_empty());
        assert!(come(&mut bundle, 0, "E", 2).is_empty());
        assert!(come(&mut bundle, 0, "BE", 3).is_empty(), "member 1 may still bring it");
        assert_eq!(come(&mut bundle, 1, "BE", 4), [vec![3], vec![4]]);
        assert_eq!(bundle.counters(), Counters { missing: 1, discarded: 2, ..Counters::default() });
    }

    #[test]
    fn a_lost_end_is_told_by_the_next_beginning_and_a_lost_beginning_takes_its_rest_along() {
        let mut one = bundle(1);
        assert!(come(&mut one, 0, "B", 0).is_empty());
        // The end, 1, is lost; so is the beginning of the next packet, 2.
        assert!(come(&mut one, 0, "", 3).is_empty());
        assert!(come(&mut one, 0, "E", 4).is_empty());
        assert_eq!(come(&mut one, 0, "BE", 5), [vec![5]]);
        assert_eq!(one.counters(), Counters { missing: 2, discarded: 3, ..Counters::default() });
        // A sender that forgets the E.
        assert!(come(&mut one, 0, "B", 6).is_empty());
        assert_eq!(come(&mut one, 0, "BE", 7), [vec![7]]);
    }

    #[test]
    fn a_silent_member_holds_everything_up_until_it_leaves() {
        let mut bundle = bundle(2);
        assert!(come(&mut bundle, 0, "B", 0).is_empty());
        for number in 1..10 {
            assert!(come(&mut bundle, 0, if number % 2 == 0 { "B" } else { "" }, 2 * number).is_empty());
        }
        assert!(come(&mut bundle, 0, "BE", 100).is_empty());
        bundle.leave(ms(1), 1);
        assert_eq!(bundle.poll(), Some(Whole { first: 100, pieces: vec![100] }));
        assert_eq!(bundle.waiting(), (0, 0));
    }

    #[test]
    fn patience_ends() {
        let mut bundle = bundle(2);
        come(&mut bundle, 0, "BE", 1);
        assert_eq!(bundle.poll_timeout(), Some(ms(5000)));
        bundle.handle_timeout(ms(4999));
        assert_eq!(bundle.poll(), None);
        bundle.handle_timeout(ms(5000));
        assert_eq!(bundle.poll(), Some(Whole { first: 1, pieces: vec![1] }));
        assert_eq!((bundle.poll_timeout(), bundle.counters().expired), (None, 1));
        // What comes now is late.
        assert!(come(&mut bundle, 1, "BE", 0).is_empty());
        assert_eq!(bundle.counters().late, 1);
    }

    #[test]
    fn a_beginning_whose_end_never_comes_is_given_up_too() {
        let mut bundle = bundle(1);
        come(&mut bundle, 0, "B", 0);
        bundle.handle_timeout(ms(5000));
        assert_eq!((bundle.waiting(), bundle.poll_timeout()), ((0, 0), None));
        assert_eq!(come(&mut bundle, 0, "BE", 2), [vec![2]]);
    }

    #[test]
    fn too_much_that_waits_gives_up_what_is_missing() {
        let mut bundle = Reassembler::new(Format::Long, Limits { fragments: 4, ..LIMITS });
        bundle.join(0);
        bundle.join(1);
        let mut handed_on = Vec::new();
        for number in 1..10 {
            handed_on.extend(come(&mut bundle, 0, "BE", number));
        }
        assert_eq!(handed_on.len(), 9);
        assert_eq!((bundle.counters().overflows, bundle.counters().missing), (1, 1));
    }

    #[test]
    fn numbers_begin_again_and_old_ones_are_refused() {
        let mut bundle = bundle(1);
        for number in 0..10_000 {
            assert_eq!(come(&mut bundle, 0, "BE", number), [vec![number]]);
        }
        assert!(come(&mut bundle, 0, "BE", 9_000).is_empty());
        assert!(come(&mut bundle, 0, "BE", 9_999).is_empty());
        assert!(come(&mut bundle, 7, "BE", 10_000).is_empty(), "nobody has joined as 7");
        assert_eq!(bundle.counters().late, 3);
    }

    #[test]
    fn a_member_that_joins_is_waited_for_from_then_on() {
        let mut bundle = bundle(1);
        assert_eq!(come(&mut bundle, 0, "BE", 0).len(), 1);
        bundle.join(3);
        assert!(come(&mut bundle, 0, "BE", 2).is_empty());
        assert_eq!(come(&mut bundle, 3, "BE", 1).len(), 2);
    }

    #[test]
    fn packets_that_are_too_long_are_thrown_away() {
        let mut bundle = bundle(1);
        come(&mut bundle, 0, "B", 0);
        for number in 1..40 {
            come(&mut bundle, 0, "", number);
        }
        assert_eq!(bundle.waiting(), (0, 0));
        assert!(come(&mut bundle, 0, "E", 40).is_empty());
        assert_eq!(come(&mut bundle, 0, "BE", 41), [vec![41]]);
    }

    proptest! {
        /// Whatever comes, no more than the limits is kept, packets keep their order, and each is whole.
        #[test]
        fn any_fragments_are_bounded_and_in_order(
            fragments in prop::collection::vec((0u16..4, any::<(bool, bool)>(), 0u32..200, 0u64..600), 0..300),
        ) {
            let limits = Limits { octets: 4000, fragments: 20, ..LIMITS };
            let mut bundle = Reassembler::new(Format::Short, limits);
            (0..3).for_each(|member| bundle.join(member));
            let (mut now, mut last) = (Instant::ZERO, None);
            for (n, (member, (begin, end), ahead, octets)) in fragments.into_iter().enumerate() {
                let sequence = (n as u32 + ahead) & 0xFFF;
                bundle.receive(now, member, Header { begin, end, sequence }, octets, (begin, end, octets));
                prop_assert!(bundle.waiting().0 <= 20 && bundle.waiting().1 <= 4000);
                while let Some(Whole { first, pieces }) = bundle.poll() {
                    prop_assert!(last.is_none_or(|last| first > last));
                    last = Some(first + pieces.len() as u64 - 1);
                    prop_assert!(pieces.iter().map(|piece| piece.2).sum::<u64>() <= 1502);
                    for (n, piece) in pieces.iter().enumerate() {
                        prop_assert_eq!((piece.0, piece.1), (n == 0, n == pieces.len() - 1));
                    }
                }
                now += Duration::from_millis(50);
                if n % 7 == 0 {
                    bundle.handle_timeout(now);
                }
            }
            (0..3).for_each(|member| bundle.leave(now, member));
            while let Some(at) = bundle.poll_timeout() {
                bundle.handle_timeout(at);
                while bundle.poll().is_some() {}
            }
            prop_assert_eq!(bundle.waiting(), (0, 0));
        }
    }
}

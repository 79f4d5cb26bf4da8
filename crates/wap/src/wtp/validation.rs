//! What was sent to addresses and what came from there, so that nobody is flooded in another one's name.
//!
//! Everything that an initiator says to open and to keep up a transaction follows from numbers that it chose itself, so that
//! acknowledgements prove nothing: somebody who never hears a word can send them at the right time. An address is therefore sent no
//! more than a few times what came from it, IP and UDP headers counted, until something comes from it that only what was sent there could
//! tell:
//!
//! - **A question with a random number.** An initiator that is asked whether a transaction is its own, and knows of none with that
//!   number, says so by an Abort (INVALIDTID) with the number. It has 15 bits: an answer is worth [`PROOF`] octets, and whoever
//!   tries all numbers has sent eight times as much. The question goes out with a result, so that it costs no time.
//! - **The end of a group of random length**, for those that answer no such question. A result for which the allowance does not suffice is sent in
//!   small groups, and who names the last packet of one may be sent more; who names another one was not there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use airloom_base::{Duration, Instant};

use crate::unpredictable::Unpredictable;

/// Addresses that are remembered. One that is forgotten begins again, with nothing received and nothing sent.
const MOST: usize = 20_000;
/// Octets that may be sent to an address that has answered a question. A blind sender hits the number of 15 bits in 32,768 tries of 32 octets.
const PROOF: u64 = 128 * 1_024;
/// With less than that left an address is asked again, in time before it runs out.
const ENOUGH: u64 = PROOF / 2;
/// A question is said again after so long, with another number.
const PATIENCE: Duration = Duration::from_secs(1);
/// Questions that were not answered, after which one is the last: each takes from what may be sent.
const IN_VAIN: u8 = 2;
/// Octets of its PDU.
const QUESTION: usize = 3;
/// Lengths of a group that are equally likely, at most.
const CHOICES: u64 = 8;
/// Of the octets of a group, a right guess of its length gives `choices` times so many parts: what a blind sender can expect is a quarter of what
/// it made us send.
const PARTS: u64 = 4;
/// Octets of the smallest packet of such a group below UDP: its header and some of its message.
const LEAST_PACKET: u64 = 20;
/// Right guesses with so little chance in a row are a proof like an answer.
const ODDS: u32 = 1 << 15;

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    /// Octets that may still be sent there.
    allowance: u64,
    used: u64,
    is_proven: bool,
    /// The number that was asked about, and when.
    asked: Option<(u16, Instant)>,
    in_vain: u8,
    /// One in how many blind senders would have been right so often in a row.
    odds: u32,
}

/// The books of all addresses and ports.
pub struct Validation {
    factor: u64,
    numbers: Unpredictable,
    entries: BTreeMap<SocketAddr, Entry>,
    /// The first one is forgotten first: those that are not proven before the others.
    order: BTreeSet<(bool, u64, SocketAddr)>,
    uses: u64,
}

/// How many packets the next group has, and of how many octets with all headers, when an address is not proven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) packets: usize,
    pub(super) octets: u64,
    pub(super) choices: u32,
}

/// A datagram with the headers of IP and UDP.
fn whole(at: SocketAddr, octets: usize) -> u64 {
    headers(at) + octets as u64
}

pub(super) fn headers(at: SocketAddr) -> u64 {
    if at.is_ipv4() { 28 } else { 48 }
}

impl Validation {
    /// `factor`: so many times what came may be sent to an address that is not proven; 0: no limit.
    pub fn new(factor: u16, key: (u64, u64)) -> Validation {
        Validation {
            factor: factor.into(),
            numbers: Unpredictable::new(key),
            entries: BTreeMap::new(),
            order: BTreeSet::new(),
            uses: 0,
        }
    }

    /// Without any limit.
    pub fn off() -> Validation {
        Validation::new(0, (0, 0))
    }

    fn is_off(&self) -> bool {
        self.factor == 0
    }

    /// A datagram came.
    pub fn received(&mut self, from: SocketAddr, octets: usize) {
        let more = self.factor * whole(from, octets);
        self.allow(from, more);
    }

    /// So many octets may be sent there, for whatever reason.
    pub fn allow(&mut self, at: SocketAddr, octets: u64) {
        if self.is_off() {
            return;
        }
        self.uses += 1;
        let entry = self.entries.entry(at).or_default();
        self.order.remove(&(entry.is_proven, entry.used, at));
        entry.used = self.uses;
        entry.allowance = entry.allowance.saturating_add(octets);
        self.order.insert((entry.is_proven, entry.used, at));
        if self.entries.len() > MOST
            && let Some((.., oldest)) = self.order.pop_first()
        {
            self.entries.remove(&oldest);
        }
    }

    /// Octets, with all headers, that may still be sent there; none: as many as anybody likes.
    pub(super) fn allowance(&self, to: SocketAddr) -> Option<u64> {
        (!self.is_off()).then(|| self.entries.get(&to).map_or(0, |entry| entry.allowance))
    }

    /// A datagram of so many octets is to be sent there. May it?
    pub fn take(&mut self, to: SocketAddr, octets: usize) -> bool {
        let octets = whole(to, octets);
        self.is_off() || self.entries.get_mut(&to).is_some_and(|entry| entry.take(octets))
    }

    /// The same, on account of whatever else is proven of that host if need be.
    pub fn take_of_host(&mut self, to: SocketAddr, octets: usize) -> bool {
        let ports = SocketAddr::new(to.ip(), 0)..=SocketAddr::new(to.ip(), u16::MAX);
        let octets_whole = whole(to, octets);
        self.take(to, octets)
            || self.entries.range_mut(ports).any(|(_, entry)| entry.is_proven && entry.take(octets_whole))
    }

    /// Would it be so?
    pub fn may_take_of_host(&self, to: SocketAddr, octets: usize) -> bool {
        let ports = SocketAddr::new(to.ip(), 0)..=SocketAddr::new(to.ip(), u16::MAX);
        let octets = whole(to, octets);
        let suffices = |entry: &Entry| entry.allowance >= octets;
        self.is_off()
            || self.entries.get(&to).is_some_and(suffices)
            || self.entries.range(ports).any(|(_, entry)| entry.is_proven && suffices(entry))
    }

    /// Has whoever is at this address shown that it is?
    pub fn is_proven(&self, at: SocketAddr) -> bool {
        self.entries.get(&at).is_some_and(|entry| entry.is_proven)
    }

    /// The same, or nobody asks.
    pub fn is_known(&self, at: SocketAddr) -> bool {
        self.is_off() || self.is_proven(at)
    }

    /// The number of a transaction that this address is to be asked about now, if it is. Whoever did not answer is not asked
    /// again with what two repetitions of the last packet need, of so many octets with all headers, while one can be sent.
    pub(super) fn question(&mut self, now: Instant, to: SocketAddr, last: u64) -> Option<u16> {
        let entry = self.entries.get_mut(&to)?;
        if entry.allowance < whole(to, QUESTION) {
            return None;
        }
        let is_waiting = entry.asked.is_some_and(|(_, at)| now < at + PATIENCE);
        let takes_repetitions =
            entry.asked.is_some() && (last..2 * last + whole(to, QUESTION)).contains(&entry.allowance);
        if entry.allowance >= ENOUGH || is_waiting || takes_repetitions || entry.in_vain >= IN_VAIN {
            return None;
        }
        entry.in_vain += u8::from(entry.asked.is_some());
        let tid = (self.numbers.bits() & 0x7FFF) as u16;
        entry.asked = Some((tid, now));
        Some(tid)
    }

    /// It says something of the transaction with this number. Was that the question?
    pub(super) fn answered(&mut self, from: SocketAddr, tid: u16) -> bool {
        let Some(entry) = self.entries.get_mut(&from) else { return false };
        if entry.asked.is_none_or(|(asked, _)| asked != tid) {
            return false;
        }
        (entry.asked, entry.in_vain) = (None, 0);
        self.prove(from);
        self.allow(from, PROOF);
        true
    }

    fn prove(&mut self, at: SocketAddr) {
        let Some(entry) = self.entries.get_mut(&at) else { return };
        self.order.remove(&(entry.is_proven, entry.used, at));
        entry.is_proven = true;
        self.order.insert((entry.is_proven, entry.used, at));
    }

    /// A group whose length nobody can guess, of a third of what is allowed: the rest is for what gets lost. If that is too little, one
    /// packet, whose acknowledgement allows the next; none if that is not allowed.
    pub(super) fn group(&mut self, to: SocketAddr) -> Option<Group> {
        let allowance = self.entries.get(&to)?.allowance;
        let (third, least) = (allowance / 3, headers(to) + LEAST_PACKET);
        let choices = CHOICES.min(third / least);
        if choices == 0 {
            return (allowance >= least).then_some(Group { packets: 1, octets: least, choices: 1 });
        }
        let packets = 1 + self.numbers.bits() % choices;
        Some(Group { packets: packets as usize, octets: third / packets, choices: choices as u32 })
    }

    /// The end of a group of so many octets was named, one of so many that were as likely.
    pub(super) fn guessed(&mut self, from: SocketAddr, choices: u32, octets: u64) {
        self.allow(from, octets * u64::from(choices) / PARTS);
        let Some(entry) = self.entries.get_mut(&from) else { return };
        entry.odds = entry.odds.max(1).saturating_mul(choices);
        if entry.odds >= ODDS {
            entry.odds = 0;
            self.prove(from);
            self.allow(from, PROOF);
        }
    }

    /// Something was named that was not sent, or not as the end of a group: somebody else speaks in the name of that address.
    pub(super) fn guessed_wrong(&mut self, from: SocketAddr) {
        if let Some(entry) = self.entries.get_mut(&from) {
            (entry.allowance, entry.odds) = (0, 0);
        }
    }
}

impl Entry {
    fn take(&mut self, octets: u64) -> bool {
        let left = self.allowance.checked_sub(octets);
        self.allowance = left.unwrap_or(self.allowance);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u32, port: u16) -> SocketAddr {
        SocketAddr::new(std::net::Ipv4Addr::from_bits(n).into(), port)
    }

    fn on() -> Validation {
        Validation::new(3, (1, 2))
    }

    #[test]
    fn three_times_what_came_goes_back_headers_counted() {
        let (mut books, a) = (on(), at(1, 9));
        assert!(!books.take(a, 0), "nothing came");
        books.received(a, 12);
        assert!(books.take(a, 52) && books.take(a, 12) && !books.take(a, 0), "40 came, 80 and 40 went");
        let six: SocketAddr = "[2001:db8::1]:9".parse().unwrap();
        books.received(six, 12);
        assert!(!books.take(six, 133) && books.take(six, 132));
        let mut off = Validation::off();
        off.received(a, 1);
        assert!(off.take(a, 1_000_000) && off.entries.is_empty());
    }

    #[test]
    fn an_answer_with_the_number_is_worth_an_eighth_of_all_guesses() {
        let (mut books, a) = (on(), at(1, 9));
        books.received(a, 12);
        let asked = books.question(Instant::ZERO, a, 0).unwrap();
        assert_eq!(books.question(Instant::ZERO, a, 0), None, "one at a time");
        assert!(!books.answered(a, asked ^ 1) && !books.is_proven(a));
        assert!(books.answered(a, asked) && books.is_proven(a));
        assert!(!books.answered(a, asked), "once");
        assert_eq!(books.allowance(a), Some(PROOF + 120));
        assert_eq!(books.question(Instant::ZERO, a, 0), None, "enough is left");
        const { assert!(8 * PROOF <= 32_768 * 32) };
        assert!(books.take(a, ENOUGH as usize + 200));
        assert!(books.question(Instant::ZERO, a, 0).is_some());
    }

    #[test]
    fn who_does_not_answer_is_not_asked_for_ever_and_each_time_about_another_number() {
        let (mut books, a) = (on(), at(1, 9));
        books.received(a, 12);
        let asked: Vec<u16> =
            (0..20).filter_map(|n| books.question(Instant::ZERO + Duration::from_secs(n), a, 0)).collect();
        assert_eq!(asked.len(), usize::from(IN_VAIN) + 1);
        assert!(asked.windows(2).all(|two| two[0] != two[1]));
    }

    #[test]
    fn a_second_question_leaves_what_two_repetitions_need() {
        let (mut books, a) = (on(), at(1, 9));
        let later = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        books.received(a, 72);
        assert!(books.question(later(0), a, 150).is_some(), "the first one goes out with whatever it is");
        assert_eq!(books.question(later(2), a, 150), None, "300 are left, and 31 of them too many");
        assert!(books.question(later(2), a, 134).is_some());
        assert!(books.question(later(4), a, 301).is_some(), "what it is about cannot be sent");
    }

    #[test]
    fn a_question_that_cannot_be_sent_is_none_that_was_not_answered() {
        let (mut books, a) = (on(), at(1, 9));
        let later = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        books.allow(a, 30);
        for seconds in 0..10 {
            assert_eq!(books.question(later(2 * seconds), a, 0), None, "it has 31 octets");
        }
        books.allow(a, 1);
        assert!(books.question(later(20), a, 0).is_some());
    }

    #[test]
    fn the_smallest_packet_of_a_group_has_room_for_a_message_by_either_version_of_ip() {
        for ip in [[0; 16].into(), [0; 4].into()] {
            let to = SocketAddr::new(ip, 9);
            let least = headers(to) + LEAST_PACKET;
            for allowance in 0..2_000 {
                let mut books = on();
                books.allow(to, allowance);
                let group = books.group(to);
                assert_eq!(group.is_some(), allowance >= least);
                assert!(group.is_none_or(|group| (least..=allowance).contains(&group.octets)));
            }
        }
    }

    #[test]
    fn groups_have_every_length_and_a_wrong_guess_costs_everything() {
        let (mut books, a) = (on(), at(1, 9));
        books.received(a, 600);
        assert_eq!(books.allowance(a), Some(3 * 628));
        let groups: Vec<Group> = (0..800).map(|_| books.group(a).unwrap()).collect();
        for packets in 1..=8 {
            let of_length = groups.iter().filter(|group| group.packets == packets).count();
            assert!((60..140).contains(&of_length), "{packets}: {of_length}");
        }
        assert!(groups.iter().all(|group| group.packets as u64 * group.octets <= 628));
        // What a blind sender can expect of a guess is a quarter of what the group was.
        books.guessed(a, 8, 900);
        assert_eq!(books.allowance(a), Some(3 * 628 + 1_800));
        for _ in 0..4 {
            books.guessed(a, 8, 900);
        }
        assert!(books.is_proven(a), "one in 32,768");
        books.guessed_wrong(a);
        assert_eq!((books.allowance(a), books.group(a)), (Some(0), None));
    }

    #[test]
    fn one_packet_goes_out_whose_acknowledgement_allows_the_next() {
        let (mut books, a) = (on(), at(1, 9));
        // With its headers an acknowledgement that names a packet has 33 octets.
        for _ in 0..100 {
            books.received(a, 5);
            let group = books.group(a).unwrap();
            assert_eq!((group.packets, group.choices), (1, 1));
            while books.allowance(a).is_some_and(|left| left >= group.octets) {
                assert!(books.take(a, group.octets as usize - 28), "the group and its repetitions");
            }
            assert_eq!(books.group(a), None);
        }
    }

    #[test]
    fn a_proof_of_a_host_serves_its_other_ports() {
        let mut books = on();
        let (session, other) = (at(1, 9), at(1, 10));
        books.received(session, 0);
        books.received(other, 0);
        assert!(!books.may_take_of_host(other, 1_000) && !books.take_of_host(other, 1_000));
        let asked = books.question(Instant::ZERO, session, 0).unwrap();
        books.answered(session, asked);
        assert!(books.may_take_of_host(other, 1_000) && books.take_of_host(other, 1_000));
        assert!(!books.may_take_of_host(at(2, 9), 0));
    }

    #[test]
    fn only_so_many_are_remembered_and_proven_ones_for_longest() {
        let mut books = on();
        books.received(at(0, 1), 10);
        let asked = books.question(Instant::ZERO, at(0, 1), 0).unwrap();
        books.answered(at(0, 1), asked);
        (1..=MOST as u32 + 10).for_each(|n| books.received(at(n, 1), 10));
        assert_eq!((books.entries.len(), books.order.len()), (MOST, MOST));
        assert!(books.is_proven(at(0, 1)) && !books.take(at(1, 1), 0) && books.take(at(MOST as u32, 1), 0));
    }
}

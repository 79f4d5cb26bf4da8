//! Two providers of transactions with a link between them, and one alone with a peer that is a script.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use airloom_base::units::Octets;
use airloom_base::{Duration, Instant};
use airloom_wap::wtp::wire::{Abort, Class, Kind, OptionItem, Pdu, Reason, Tpi, Trailer, split};
use airloom_wap::wtp::{Config, Event, Indication, Provider, Role, Transaction};
use bytes::Bytes;
use proptest::prelude::*;

const LATENCY: Duration = Duration::from_millis(100);

fn client() -> SocketAddr {
    "10.0.0.1:49200".parse().unwrap()
}

fn gateway() -> SocketAddr {
    "10.0.0.2:9201".parse().unwrap()
}

fn secs(s: f64) -> Duration {
    Duration::from_nanos((s * 1e9) as u64)
}

fn octets(len: usize) -> Bytes {
    (0..len).map(|n| (n % 251) as u8).collect::<Vec<u8>>().into()
}

/// What becomes of a datagram: how often it arrives, and how much later than the others.
#[derive(Clone, Copy)]
struct Fate {
    copies: u8,
    late: Duration,
}

const WELL: Fate = Fate { copies: 1, late: Duration::ZERO };
const LOST: Fate = Fate { copies: 0, late: Duration::ZERO };

/// Two ends, a link that decides by the number of the datagram, and users that answer after a while.
struct Pair {
    now: Instant,
    ends: [Provider; 2],
    wire: BTreeMap<(Instant, u64), (usize, Bytes)>,
    sent: Vec<(Instant, usize, Bytes)>,
    heard: [Vec<(Instant, Event)>; 2],
    /// Answers that the responder's user will give.
    answers: BTreeMap<(Instant, u16), Transaction>,
    answer: Option<(Duration, Bytes)>,
    fate: Box<dyn Fn(u64) -> Fate>,
}

impl Pair {
    fn new(config: Config, fate: impl Fn(u64) -> Fate + 'static) -> Pair {
        config.check().unwrap();
        Pair {
            now: Instant::ZERO,
            ends: [Provider::new(config.clone(), 1), Provider::new(config, 1)],
            wire: BTreeMap::new(),
            sent: Vec::new(),
            heard: [Vec::new(), Vec::new()],
            answers: BTreeMap::new(),
            answer: None,
            fate: Box::new(fate),
        }
    }

    fn answering(mut self, after: Duration, with: Bytes) -> Pair {
        self.answer = Some((after, with));
        self
    }

    fn invoke(&mut self, class: Class, message: Bytes) -> Transaction {
        let transaction = self.ends[0].invoke(self.now, gateway(), class, false, message).unwrap();
        self.settle();
        transaction
    }

    fn settle(&mut self) {
        for end in 0..2 {
            while let Some(event) = self.ends[end].poll_event() {
                let transaction = event.transaction;
                match (&event.what, &self.answer) {
                    (Indication::Invoke { .. }, Some((after, _))) => {
                        self.answers.insert((self.now + *after, transaction.tid), transaction);
                    }
                    (Indication::Result(_), _) => self.ends[end].acknowledge(self.now, transaction),
                    _ => {}
                }
                self.heard[end].push((self.now, event));
            }
            while let Some((_, datagram)) = self.ends[end].poll_transmit() {
                let number = self.sent.len() as u64;
                let fate = (self.fate)(number);
                for copy in 0..u64::from(fate.copies) {
                    let at = self.now + LATENCY + fate.late;
                    self.wire.insert((at, 2 * number + copy), (1 - end, datagram.clone()));
                }
                self.sent.push((self.now, end, datagram));
            }
        }
    }

    /// The next thing that happens; false if nothing will.
    fn step(&mut self) -> bool {
        let arrival = self.wire.first_key_value().map(|(k, _)| k.0);
        let answer = self.answers.first_key_value().map(|(k, _)| k.0);
        let timeouts = self.ends.iter().map(Provider::poll_timeout);
        let Some(next) = timeouts.chain([arrival, answer]).flatten().min() else { return false };
        self.now = next;
        if arrival == Some(next) {
            let Some((_, (end, datagram))) = self.wire.pop_first() else { return false };
            let from = if end == 0 { gateway() } else { client() };
            self.ends[end].handle_datagram(next, from, &datagram);
        } else if answer == Some(next) {
            if let (Some((_, transaction)), Some((_, with))) = (self.answers.pop_first(), self.answer.clone())
            {
                self.ends[1].result(next, transaction, with);
            }
        } else {
            self.ends.iter_mut().for_each(|end| end.handle_timeout(next));
        }
        self.settle();
        true
    }

    /// Asks for a result, and goes on to the end.
    fn asks(mut self, message: Bytes) -> Pair {
        self.invoke(Class::WithResult, message);
        self.drive()
    }

    fn drive(mut self) -> Pair {
        let mut steps = 0;
        while self.step() {
            steps += 1;
            assert!(steps < 100_000, "it goes on for ever");
        }
        assert!(self.ends.iter().all(Provider::is_empty), "everything is forgotten in the end");
        self
    }

    /// What one end heard, with the time in milliseconds.
    fn heard(&self, end: usize) -> Vec<(u64, Indication)> {
        self.heard[end].iter().map(|(at, e)| (at.as_nanos() / 1_000_000, e.what.clone())).collect()
    }

    /// When and by whom PDUs were sent: milliseconds, end, first octet.
    fn octets(&self) -> Vec<(u64, usize, u8)> {
        self.sent.iter().map(|(at, end, d)| (at.as_nanos() / 1_000_000, *end, d[0])).collect()
    }
}

fn request() -> Bytes {
    Bytes::from_static(b"request")
}

fn invoked(class: Class) -> Indication {
    Indication::Invoke { class, user_ack: false, message: request() }
}

const INVOKE: u8 = 0x0A;
const RESULT: u8 = 0x12;
const ACK: u8 = 0x18;
const RID: u8 = 1;

#[test]
fn a_transaction_with_a_result_takes_three_pdus() {
    let pair = Pair::new(Config::default(), |_| WELL).answering(secs(1.0), octets(500)).asks(request());
    assert_eq!(pair.octets(), [(0, 0, INVOKE), (1100, 1, RESULT), (1200, 0, ACK)]);
    assert_eq!(pair.heard(0), [(1200, Indication::InvokeConfirmed), (1200, Indication::Result(octets(500)))]);
    assert_eq!(pair.heard(1), [(100, invoked(Class::WithResult)), (1300, Indication::ResultConfirmed)]);
    // WAIT TIMEOUT.
    assert_eq!(pair.now, Instant::ZERO + secs(41.2));
}

#[test]
fn a_slow_user_is_covered_by_one_hold_on_acknowledgement() {
    let pair = Pair::new(Config::default(), |_| WELL).answering(secs(9.0), request()).asks(request());
    assert_eq!(pair.octets(), [(0, 0, INVOKE), (2100, 1, ACK), (9100, 1, RESULT), (9200, 0, ACK)]);
}

#[test]
fn what_is_lost_is_repeated_at_fixed_intervals() {
    // The first Invoke and the first Result are lost.
    let lost = |n| if [0, 2].contains(&n) { LOST } else { WELL };
    let pair = Pair::new(Config::default(), lost).answering(Duration::ZERO, octets(100)).asks(request());
    assert_eq!(
        pair.octets(),
        [
            (0, 0, INVOKE),
            (5000, 0, INVOKE | RID),
            (5100, 1, RESULT),
            (10_000, 0, INVOKE | RID),
            (12_100, 1, RESULT | RID),
            (12_200, 0, ACK),
        ]
    );
    assert_eq!(pair.heard[1].len(), 2);
}

#[test]
fn a_lost_last_acknowledgement_is_repeated_for_a_repeated_result_only() {
    let lost = |n| if n == 2 { LOST } else { WELL };
    let pair = Pair::new(Config::default(), lost).answering(Duration::ZERO, octets(100)).asks(request());
    assert_eq!(pair.octets()[3..], [(7100, 1, RESULT | RID), (7200, 0, ACK | RID)]);
    assert_eq!(pair.heard[0].len(), 2);
}

#[test]
fn without_any_answer_it_ends_after_eight_repetitions() {
    let pair = Pair::new(Config::default(), |_| LOST).asks(request());
    assert_eq!(pair.sent.len(), 9);
    assert_eq!(pair.heard(0), [(45_000, Indication::Aborted(Abort::Provider(Reason::NoResponse)))]);
}

#[test]
fn a_responder_that_takes_longer_than_its_initiator_waits_is_told_that_it_is_over() {
    let pair = Pair::new(Config::default(), |_| WELL).answering(secs(60.0), request()).asks(request());
    // 40 s after the hold-on acknowledgement; nobody answers at 60 s.
    assert_eq!(pair.octets(), [(0, 0, INVOKE), (2100, 1, ACK), (42_200, 0, 0x20)]);
    let over = Indication::Aborted(Abort::Provider(Reason::NoResponse));
    assert_eq!(pair.heard(0), [(2200, Indication::InvokeConfirmed), (42_200, over.clone())]);
    assert_eq!(pair.heard(1), [(100, invoked(Class::WithResult)), (42_300, over)]);
}

#[test]
fn class_1_is_acknowledged_and_class_0_is_not() {
    let mut pair = Pair::new(Config::default(), |_| WELL);
    pair.invoke(Class::Reliable, request());
    pair.invoke(Class::Unreliable, request());
    let pair = pair.drive();
    assert_eq!(pair.octets(), [(0, 0, INVOKE), (0, 0, 0x0E), (1100, 1, ACK)]);
    assert_eq!(pair.heard(0), [(1200, Indication::InvokeConfirmed)]);
    assert_eq!(pair.heard(1), [(100, invoked(Class::Reliable)), (100, invoked(Class::Unreliable))]);
}

#[test]
fn a_user_that_has_to_acknowledge_and_never_does_is_given_up_after_six_more_intervals() {
    let mut pair = Pair::new(Config::default(), |_| WELL);
    pair.ends[0].invoke(pair.now, gateway(), Class::Reliable, true, request()).unwrap();
    pair.settle();
    let pair = pair.drive();
    let given_up = Indication::Aborted(Abort::Provider(Reason::NoResponse));
    assert_eq!(pair.heard(1)[1..], [(7100, given_up.clone())]);
    assert_eq!(pair.heard(0), [(7200, given_up)]);
}

#[test]
fn a_user_acknowledges_when_it_likes() {
    let mut pair = Pair::new(Config::default(), |_| WELL);
    pair.ends[0].invoke(pair.now, gateway(), Class::Reliable, true, request()).unwrap();
    pair.settle();
    assert!(pair.step());
    let transaction = pair.heard[1][0].1.transaction;
    assert_eq!(transaction, Transaction { role: Role::Responder, peer: client(), tid: 1 });
    pair.ends[1].accept(pair.now, transaction);
    pair.settle();
    let pair = pair.drive();
    assert_eq!(pair.heard(0), [(200, Indication::InvokeConfirmed)]);
}

#[test]
fn a_user_that_aborts_ends_it_on_both_sides() {
    let mut pair = Pair::new(Config::default(), |_| WELL);
    let ours = pair.invoke(Class::WithResult, request());
    assert!(pair.step());
    pair.ends[0].abort(pair.now, ours, 0xE9);
    pair.settle();
    let pair = pair.drive();
    assert_eq!(pair.heard(1)[1..], [(200, Indication::Aborted(Abort::User(0xE9)))]);
    assert_eq!(pair.sent[1].2.as_ref(), [0x21, 0, 1, 0xE9]);
}

#[test]
fn a_long_result_goes_in_groups_that_are_acknowledged_one_by_one() {
    let pair =
        Pair::new(Config::default(), |_| WELL).answering(Duration::ZERO, octets(10_000)).asks(request());
    assert_eq!(pair.heard(0)[1], (600, Indication::Result(octets(10_000))));
    let named: Vec<_> = pair.sent.iter().filter(|s| s.1 == 0).skip(1).map(|s| s.2.to_vec()).collect();
    let ack = |psn| vec![0x98, 0, 1, 0x19, psn];
    assert_eq!(named, [ack(2), ack(5), ack(7)]);
}

#[test]
fn a_group_is_as_large_as_the_receiver_takes() {
    let config = Config { maximum_group: Some(Octets(32_768)), ..Config::default() };
    let pair = Pair::new(config, |_| WELL).answering(Duration::ZERO, octets(100_000)).asks(request());
    let first = Pdu::parse(&pair.sent[0].2).unwrap();
    assert_eq!(first.items, [Tpi::Option(OptionItem::MaximumGroup(32_768))]);
    // 72 packets in groups of 23.
    let acks = pair.sent.iter().filter(|s| s.1 == 0).count() - 1;
    assert_eq!((acks, pair.heard(0)[1].0), (4, 800));
}

#[test]
fn a_long_request_goes_in_groups_too() {
    let pair =
        Pair::new(Config::default(), |_| WELL).answering(Duration::ZERO, request()).asks(octets(9_000));
    let Indication::Invoke { message, .. } = &pair.heard(1)[0].1 else { panic!("an invoke") };
    assert_eq!(*message, octets(9_000));
}

#[test]
fn what_is_missing_in_a_group_is_asked_for_and_alone_repeated() {
    let lost = |n| if [1, 2].contains(&n) { LOST } else { WELL };
    let pair = Pair::new(Config::default(), lost).answering(Duration::ZERO, octets(4_000)).asks(request());
    let sent: Vec<_> = pair.sent[4..].iter().map(|s| (s.1, s.2[..s.2.len().min(6)].to_vec())).collect();
    assert_eq!(sent[0], (0, vec![0x38, 0, 1, 2, 0, 1]));
    assert_eq!(sent[1].1[..3], [0x11, 0x80, 1]);
    assert_eq!(sent[2].1[..4], [0x31, 0x80, 1, 1]);
    assert_eq!(pair.heard(0)[1].1, Indication::Result(octets(4_000)));
}

#[test]
fn a_lost_end_of_a_group_is_repeated_after_the_group_interval() {
    let lost = |n| if n == 3 { LOST } else { WELL };
    let pair = Pair::new(Config::default(), lost).answering(Duration::ZERO, octets(4_000)).asks(request());
    assert_eq!(pair.octets()[4], (3100, 1, 0x33));
    assert_eq!(pair.heard(0)[1], (3200, Indication::Result(octets(4_000))));
}

#[test]
fn packets_that_overtake_each_other_are_waited_for_if_so_set() {
    let late = |n| if n == 1 { Fate { copies: 1, late: Duration::from_millis(20) } } else { WELL };
    let config = Config { negative_ack_delay: Duration::from_millis(50), ..Config::default() };
    let pair = Pair::new(config, late).answering(Duration::ZERO, octets(4_000)).asks(request());
    assert_eq!(pair.sent.len(), 5);
}

#[test]
fn a_message_with_too_many_packets_is_refused_or_aborted() {
    let config = Config { message_limit: Octets(1_000_000), ..Config::default() };
    let mut pair = Pair::new(config, |_| WELL).answering(Duration::ZERO, octets(400_000));
    assert_eq!(pair.ends[0].invoke(pair.now, gateway(), Class::WithResult, false, octets(400_000)), None);
    pair.invoke(Class::WithResult, request());
    let pair = pair.drive();
    // As Kannel answers.
    assert_eq!(pair.heard(0), [(200, Indication::Aborted(Abort::Provider(Reason::NoExtendedSar)))]);
}

#[test]
fn repetitions_of_a_network_do_not_reach_the_user() {
    let twice = |_| Fate { copies: 2, late: Duration::ZERO };
    let pair = Pair::new(Config::default(), twice).answering(secs(0.5), octets(9_000)).asks(request());
    assert_eq!((pair.heard[0].len(), pair.heard[1].len()), (2, 2));
}

/// Packet `psn` of a result of 72 packets, in groups of three.
fn packet(psn: u8) -> Bytes {
    let from = usize::from(psn) * 1_400;
    let data = octets(100_000).slice(from..(from + 1_400).min(100_000));
    let trailer = match psn {
        71 => Trailer::Message,
        _ if psn % 3 == 2 => Trailer::Group,
        _ => Trailer::None,
    };
    let kind = match psn {
        0 => Kind::Result { trailer, data },
        _ => Kind::SegmentedResult { trailer, psn, data },
    };
    Pdu::new(0x8001, false, kind).to_bytes()
}

#[test]
fn copies_of_acknowledgements_do_not_make_more_of_them() {
    // Kannel 1.4.5 sends a group again for every copy of an acknowledgement, and the network copies each once.
    let mut end = Provider::new(Config::default(), 1);
    end.invoke(Instant::ZERO, gateway(), Class::WithResult, false, request()).unwrap();
    let (mut acknowledged, mut under_way, mut sent, mut acks) = (0, VecDeque::from([0, 1, 2]), 3, 0);
    while let Some(psn) = under_way.pop_front() {
        end.handle_datagram(Instant::ZERO, gateway(), &packet(psn));
        while let Some((_, datagram)) = end.poll_transmit() {
            let Ok(Pdu { kind: Kind::Ack { .. }, items, .. }) = Pdu::parse(&datagram) else { continue };
            let [Tpi::Psn(named)] = items[..] else { panic!("it names a packet") };
            (acks, acknowledged) = (acks + 1, named.max(acknowledged));
            let group = [acknowledged + 1, acknowledged + 2, acknowledged + 3];
            under_way.extend(group.repeat(2));
            sent += 6;
        }
    }
    let told: Vec<_> = std::iter::from_fn(|| end.poll_event()).map(|event| event.what).collect();
    assert_eq!(told, [Indication::InvokeConfirmed, Indication::Result(octets(100_000))]);
    // Each group twice, but for the first; and one acknowledgement each, but for the last group's, which is the user's.
    assert_eq!((sent, acks), (3 + 2 * 69, 23));
}

/// A provider and a peer that is a script.
struct Alone(Provider);

impl Alone {
    fn says(&mut self, at: f64, pdu: Pdu) -> Vec<Pdu> {
        self.0.handle_datagram(Instant::ZERO + secs(at), client(), &pdu.to_bytes());
        self.drain()
    }
    fn drain(&mut self) -> Vec<Pdu> {
        std::iter::from_fn(|| self.0.poll_transmit()).map(|(_, d)| Pdu::parse(&d).unwrap()).collect()
    }
    fn told(&mut self) -> Vec<Indication> {
        std::iter::from_fn(|| self.0.poll_event()).map(|e| e.what).collect()
    }
}

fn invoke(tid: u16, tid_new: bool, repeated: bool) -> Pdu {
    let kind = Kind::Invoke {
        trailer: Trailer::Message,
        version: 0,
        tid_new,
        user_ack: false,
        class: Class::WithResult,
        data: request(),
    };
    Pdu::new(tid, repeated, kind)
}

/// The first packet of several.
fn begins(tid: u16) -> Pdu {
    let mut pdu = invoke(tid, false, false);
    if let Kind::Invoke { trailer, .. } = &mut pdu.kind {
        *trailer = Trailer::None;
    }
    pdu
}

const VERIFY: Kind = Kind::Ack { verify: true };

#[test]
fn an_initiator_that_counts_anew_is_verified_before_the_user_hears_of_it() {
    let mut end = Alone(Provider::new(Config::default(), 1));
    assert_eq!(end.says(0.0, invoke(9, true, false)), [Pdu::new(0x8009, false, VERIFY)]);
    assert_eq!(end.told(), []);
    // Waiting for the answer, only a repeated Invoke is asked about again.
    assert_eq!(end.says(1.0, invoke(9, true, false)), []);
    assert_eq!(end.says(2.0, invoke(9, true, true)), [Pdu::new(0x8009, true, VERIFY)]);
    assert_eq!(end.says(3.0, Pdu::new(9, false, VERIFY)), []);
    assert_eq!(end.told(), [invoked(Class::WithResult)]);
    // The next one is known to be new.
    assert_eq!(end.says(4.0, invoke(10, false, false)), []);
    assert_eq!(end.told().len(), 1);
}

#[test]
fn an_old_number_is_verified_and_forgotten_if_it_is_nobodys() {
    let mut end = Alone(Provider::new(Config::default(), 1));
    end.says(0.0, invoke(9, false, false));
    assert_eq!(end.says(0.1, invoke(8, false, false)), [Pdu::new(0x8008, false, VERIFY)]);
    let no = Kind::Abort(Abort::Provider(Reason::InvalidTid));
    assert_eq!(end.says(0.2, Pdu::new(8, false, no)), []);
    assert_eq!((end.told().len(), end.0.len()), (1, 1));
    assert_eq!(end.0.counters().verified, 1);
}

#[test]
fn a_question_about_a_transaction_that_is_not_ours_is_denied() {
    let mut end = Alone(Provider::new(Config::default(), 1));
    let no = Kind::Abort(Abort::Provider(Reason::InvalidTid));
    assert_eq!(end.says(0.0, Pdu::new(0x8123, false, VERIFY)), [Pdu::new(0x0123, false, no)]);
}

#[test]
fn a_late_question_is_denied_once_the_result_is_here_and_answered_before() {
    let mut end = Alone(Provider::new(Config::default(), 9));
    let ours = end.0.invoke(Instant::ZERO, client(), Class::WithResult, false, request()).unwrap();
    end.drain();
    let (question, yes) = (Pdu::new(0x8009, false, VERIFY), |repeated| Pdu::new(9, repeated, VERIFY));
    let no = Pdu::new(9, false, Kind::Abort(Abort::Provider(Reason::InvalidTid)));
    assert_eq!(end.says(0.1, question.clone()), [yes(false)]);
    // A hold-on acknowledgement: the Invoke has arrived, its result is still to come.
    end.says(0.2, Pdu::new(0x8009, false, Kind::Ack { verify: false }));
    assert_eq!(end.says(0.3, question.clone()), [yes(true)]);
    let result = Kind::Result { trailer: Trailer::Message, data: octets(5) };
    assert_eq!(end.says(0.4, Pdu::new(0x8009, false, result)), []);
    assert_eq!(end.says(0.5, question.clone()), std::slice::from_ref(&no));
    end.0.acknowledge(Instant::ZERO + secs(0.6), ours);
    end.drain();
    // The network had kept a copy of the Invoke; the responder has forgotten the transaction and asks.
    assert_eq!(end.says(20.0, question), [no]);
    assert_eq!(end.told(), [Indication::InvokeConfirmed, Indication::Result(octets(5))]);
}

#[test]
fn a_copy_of_an_invoke_that_comes_after_the_end_is_not_carried_out_again() {
    let late = |n| if n == 0 { Fate { copies: 2, late: Duration::ZERO } } else { WELL };
    let mut pair = Pair::new(Config::default(), late).answering(Duration::ZERO, octets(100));
    pair.invoke(Class::WithResult, request());
    // The copy is kept back until the transaction is over.
    let (_, copy) = pair.wire.pop_last().unwrap();
    pair.wire.insert((Instant::ZERO + secs(10.0), 1), copy);
    let pair = pair.drive();
    assert_eq!(pair.octets()[3..], [(10_000, 1, 0x1C), (10_100, 0, 0x20)]);
    assert_eq!(pair.heard(1), [(100, invoked(Class::WithResult)), (300, Indication::ResultConfirmed)]);
}

#[test]
fn an_invoke_that_was_overtaken_and_verified_does_not_let_a_copy_of_the_other_one_through() {
    let mut end = Alone(Provider::new(Config::default(), 1));
    // The fifth was lost; it comes again after the sixth.
    assert_eq!(end.says(0.0, invoke(6, false, false)), []);
    assert_eq!(end.says(5.0, invoke(5, false, true)), [Pdu::new(0x8005, false, VERIFY)]);
    assert_eq!(end.says(5.2, Pdu::new(5, false, VERIFY)), []);
    assert_eq!(end.told(), [invoked(Class::WithResult), invoked(Class::WithResult)]);
    let sixth = Transaction { role: Role::Responder, peer: client(), tid: 6 };
    end.0.result(Instant::ZERO + secs(5.3), sixth, octets(5));
    end.drain();
    end.says(5.5, Pdu::new(6, false, Kind::Ack { verify: false }));
    assert_eq!(end.told(), [Indication::ResultConfirmed]);
    // The network had kept a copy of it.
    assert_eq!(end.says(6.0, invoke(6, false, false)), [Pdu::new(0x8006, false, VERIFY)]);
    assert_eq!(end.told(), []);
}

#[test]
fn an_unknown_peer_can_be_made_to_prove_where_it_is() {
    let config = Config { verify_unknown: true, ..Config::default() };
    let pair = Pair::new(config, |_| WELL).answering(Duration::ZERO, octets(9_000)).asks(request());
    assert_eq!(pair.octets()[..3], [(0, 0, INVOKE), (100, 1, 0x1C), (200, 0, 0x1C)]);
    assert_eq!(pair.heard(0)[1].1, Indication::Result(octets(9_000)));
}

fn verifying() -> Config {
    Config { verify_unknown: true, ..Config::default() }
}

#[test]
fn a_verified_request_whose_end_was_lost_is_repeated_with_the_answer_to_the_question() {
    // Its third packet is lost; the responder has the answer and waits.
    let lost = |n| if n == 2 { LOST } else { WELL };
    let pair = Pair::new(verifying(), lost).answering(Duration::ZERO, octets(100)).asks(octets(3_500));
    assert_eq!(pair.octets()[3..5], [(100, 1, 0x1C), (200, 0, 0x1C)]);
    let again = [(3200, 0, 0x1C | RID), (3200, 0, 0x08 | RID), (3200, 0, 0x2A | RID)];
    assert_eq!(pair.octets()[5..8], again);
    assert_eq!(pair.heard(0)[1], (3400, Indication::Result(octets(100))));
}

#[test]
fn a_verified_request_of_several_groups_survives_a_lost_packet_and_what_was_said_of_it() {
    // A packet in the middle, and the negative acknowledgement.
    let lost = |n| if [1, 5].contains(&n) { LOST } else { WELL };
    let pair = Pair::new(verifying(), lost).answering(Duration::ZERO, octets(100)).asks(octets(6_000));
    assert_eq!(pair.sent[5].2.as_ref(), [0x38, 0x80, 1, 1, 1]);
    assert_eq!(pair.heard(0)[1].1, Indication::Result(octets(100)));
    assert_eq!(pair.heard(1).len(), 2);
}

#[test]
fn a_verified_push_whose_acknowledgement_was_lost_has_arrived() {
    let lost = |n| if n == 3 { LOST } else { WELL };
    let mut pair = Pair::new(verifying(), lost);
    pair.invoke(Class::Reliable, request());
    let pair = pair.drive();
    let first = [(0, 0, 0x0A), (100, 1, 0x1C), (200, 0, 0x1C), (1300, 1, ACK)];
    assert_eq!(pair.octets()[..4], first);
    assert_eq!(pair.octets()[4..], [(4200, 0, 0x1C | RID), (4300, 1, ACK | RID)]);
    assert_eq!(pair.heard(0), [(4400, Indication::InvokeConfirmed)]);
    assert_eq!(pair.heard(1), [(300, invoked(Class::Reliable))]);
}

#[test]
fn a_verified_request_is_answered_by_the_hold_on_acknowledgement_again() {
    let lost = |n| if n == 3 { LOST } else { WELL };
    let pair = Pair::new(verifying(), lost).answering(secs(30.0), request()).asks(request());
    assert_eq!(pair.octets()[3..6], [(2300, 1, ACK), (5200, 0, 0x1C | RID), (5300, 1, ACK | RID)]);
    assert_eq!(pair.heard(0), [(5400, Indication::InvokeConfirmed), (30_400, Indication::Result(request()))]);
}

#[test]
fn an_initiator_that_repeats_nothing_but_its_yes_is_told_what_is_missing() {
    let mut end = Alone(Provider::new(verifying(), 1));
    let part = |psn, trailer| Pdu::new(9, false, Kind::SegmentedInvoke { trailer, psn, data: octets(10) });
    assert_eq!(end.says(0.0, begins(9)), [Pdu::new(0x8009, false, VERIFY)]);
    assert_eq!(end.says(0.1, part(2, Trailer::Group)), []);
    let missing = Pdu::new(0x8009, false, Kind::NegativeAck(vec![1]));
    assert_eq!(end.says(0.2, Pdu::new(9, false, VERIFY)), std::slice::from_ref(&missing));
    // The network's copy is not answered, what was said again is.
    assert_eq!(end.says(0.3, Pdu::new(9, false, VERIFY)), []);
    assert_eq!(end.says(3.2, Pdu::new(9, true, VERIFY)), [missing]);
    let complete = |repeated| {
        let items = vec![Tpi::Psn(2)];
        Pdu { tid: 0x8009, repeated, kind: Kind::Ack { verify: false }, items }
    };
    assert_eq!(end.says(3.3, part(1, Trailer::None)), [complete(false)]);
    assert_eq!(end.says(6.2, Pdu::new(9, true, VERIFY)), [complete(true)]);
    assert_eq!(end.0.counters().groups_received, 1);
}

#[test]
fn what_is_said_for_the_first_time_is_not_marked_as_repeated_whatever_it_answers() {
    // The end of the first group was lost, and comes again after its interval.
    let lost = |n| if n == 3 { LOST } else { WELL };
    let pair = Pair::new(Config::default(), lost).answering(Duration::ZERO, octets(9_000)).asks(request());
    assert_eq!(pair.octets()[4..6], [(3100, 1, 0x35), (3200, 0, 0x98)]);
    assert_eq!((pair.ends[0].counters().resent, pair.ends[1].counters().resent), (0, 1));
    assert_eq!(pair.ends[0].counters().groups_received, 2);
    // Its acknowledgement was lost: that one is repeated, and the group counted once.
    let lost = |n| if n == 4 { LOST } else { WELL };
    let pair = Pair::new(Config::default(), lost).answering(Duration::ZERO, octets(9_000)).asks(request());
    assert_eq!(pair.octets()[5..7], [(3100, 1, 0x35), (3200, 0, 0x98 | RID)]);
    assert_eq!(pair.ends[0].counters().groups_received, 2);
    // A long request whose end came at the second attempt.
    let lost = |n| if n == 1 { LOST } else { WELL };
    let pair = Pair::new(Config::default(), lost).answering(Duration::ZERO, octets(9)).asks(octets(2_000));
    assert_eq!(pair.octets()[2..5], [(3000, 0, 0x08 | RID), (3000, 0, 0x2A | RID), (3100, 1, 0x98)]);
}

#[test]
fn other_versions_and_contradictions_are_aborted() {
    let mut end = Alone(Provider::new(Config::default(), 1));
    let mut other = invoke(5, false, false);
    if let Kind::Invoke { version, .. } = &mut other.kind {
        *version = 1;
    }
    let abort = |tid, reason| Pdu::new(tid, false, Kind::Abort(Abort::Provider(reason)));
    assert_eq!(end.says(0.0, other), [abort(0x8005, Reason::VersionZero)]);
    end.says(0.0, invoke(6, false, false));
    end.told();
    // Class 3 does not exist.
    end.0.handle_datagram(Instant::ZERO, client(), &Bytes::from_static(&[0x0A, 0, 6, 3]));
    assert_eq!(end.drain(), [abort(0x8006, Reason::ProtocolError)]);
    assert_eq!(end.told(), [Indication::Aborted(Abort::Provider(Reason::ProtocolError))]);
    assert!(end.0.is_empty());
}

#[test]
fn there_is_room_for_so_many_transactions_and_so_many_octets() {
    let config = Config { max_transactions: 2, reassembly_limit: Octets(2_500), ..Config::default() };
    let mut end = Alone(Provider::new(config, 1));
    let part = |tid| {
        let mut pdu = begins(tid);
        if let Kind::Invoke { data, .. } = &mut pdu.kind {
            *data = octets(1_400);
        }
        pdu
    };
    let abort = |tid, reason| Pdu::new(tid, false, Kind::Abort(Abort::Provider(reason)));
    let goes = |tid| [abort(tid, Reason::CapacityExceeded)];
    assert_eq!(end.says(0.0, part(1)), []);
    // The oldest that is not complete goes for the octets of another one, and for its place.
    assert_eq!(end.says(0.0, part(2)), goes(0x8001));
    assert_eq!(end.says(0.0, invoke(3, false, false)), []);
    assert_eq!(end.says(0.0, invoke(4, false, false)), goes(0x8002));
    // What the user has heard of does not.
    assert_eq!(end.says(0.0, invoke(5, false, false)), goes(0x8005));
    assert_eq!((end.0.counters().displaced, end.0.counters().refused, end.0.len()), (2, 1, 2));
}

#[test]
fn an_address_has_its_share_of_transactions() {
    let config = Config { max_transactions_of_address: 2, ..Config::default() };
    let mut provider = Provider::new(config, 1);
    let mut first = |peer: u8, tid| {
        let pdu = begins(tid).to_bytes();
        provider.handle_datagram(Instant::ZERO, ([10, 0, 0, peer], 1_000 + tid).into(), &pdu);
        std::iter::from_fn(|| provider.poll_transmit()).map(|(to, _)| to.port()).collect::<Vec<_>>()
    };
    assert!([first(1, 1), first(1, 2), first(2, 1)].concat().is_empty());
    // Its own oldest goes, whatever its port, and nobody else's.
    assert_eq!([first(1, 3), first(1, 4), first(2, 2)], [vec![1_001], vec![1_002], vec![]]);
}

#[test]
fn what_is_never_completed_is_forgotten() {
    let mut end = Alone(Provider::new(Config::default(), 1));
    end.says(0.0, begins(1));
    end.says(0.0, invoke(3, false, false));
    while let Some(at) = end.0.poll_timeout() {
        end.0.handle_timeout(at);
        if end.0.len() == 1 && at >= Instant::ZERO + secs(40.0) {
            break;
        }
    }
    assert_eq!(end.0.len(), 1);
}

#[test]
fn every_pdu_of_another_gateway_is_read_and_written_as_it_was() {
    let captures = include_str!("data/wtp_kannel.txt");
    let mut pdus = 0;
    for line in captures.lines().filter(|l| !l.starts_with('#')) {
        let [name, direction, hex] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let octets: Vec<u8> =
            (0..hex.len() / 2).map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).unwrap()).collect();
        let datagram = Bytes::from(octets);
        let found = split(&datagram);
        for pdu in &found {
            let pdu = pdu.as_ref().unwrap_or_else(|e| panic!("{name} {direction}: {e}"));
            if found.len() == 1 {
                assert_eq!(pdu.to_bytes(), datagram, "{name} {direction}");
            }
            pdus += 1;
        }
    }
    assert!(pdus > 60, "{pdus}");
}

fn fates() -> impl Strategy<Value = Vec<(u8, u8)>> {
    prop::collection::vec((prop_oneof![3 => Just(1u8), 1 => Just(0), 1 => Just(2)], 0..3u8), 1..60)
}

proptest! {
    #[test]
    fn whatever_a_network_does_each_side_hears_of_a_transaction_once_and_to_the_end(
        fates in fates(),
        request in 0..6_000usize,
        result in 0..12_000usize,
        think in 0..9_000u64,
        verify_unknown: bool,
    ) {
        let config = Config { verify_unknown, ..Config::default() };
        // What the pattern does not reach arrives well.
        let fate = move |n: u64| fates.get(n as usize).map_or(WELL, |(copies, late)| Fate {
            copies: *copies,
            late: Duration::from_millis(40 * u64::from(*late)),
        });
        let mut pair = Pair::new(config, fate).answering(Duration::from_millis(think), octets(result));
        pair.invoke(Class::WithResult, octets(request));
        let pair = pair.drive();
        let results = pair.heard[0].iter().filter(|(_, e)| matches!(e.what, Indication::Result(_))).count();
        let aborts = pair.heard[0].iter().filter(|(_, e)| matches!(e.what, Indication::Aborted(_))).count();
        prop_assert_eq!(results + aborts, 1, "{:?}", pair.heard(0));
        for (_, event) in &pair.heard[0] {
            if let Indication::Result(message) = &event.what {
                prop_assert_eq!(message, &octets(result));
            }
        }
        // A repeated Invoke that comes after the end is verified, and its initiator denies it or has the result twice.
        for (_, event) in &pair.heard[1] {
            if let Indication::Invoke { message, .. } = &event.what {
                prop_assert_eq!(message, &octets(request));
            }
        }
    }

    #[test]
    fn any_octets_leave_a_provider_alive_and_small(
        datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..60)
    ) {
        let config = Config { max_transactions: 5, max_peers: 5, ..Config::default() };
        let mut end = Provider::new(config, 1);
        end.invoke(Instant::ZERO, client(), Class::WithResult, false, octets(5_000));
        for (n, datagram) in datagrams.into_iter().enumerate() {
            end.handle_datagram(Instant::ZERO + Duration::from_millis(n as u64), client(), &datagram.into());
            while end.poll_transmit().is_some() {}
        }
        prop_assert!(end.len() <= 6);
        // Its user has to say something to what it was asked; here, that it will not.
        let asked: Vec<_> = std::iter::from_fn(|| end.poll_event()).map(|e| e.transaction).collect();
        for transaction in asked {
            end.abort(Instant::ZERO + secs(1.0), transaction, 0xE8);
        }
        while let Some(at) = end.poll_timeout() {
            end.handle_timeout(at);
            while end.poll_event().is_some() {}
        }
        prop_assert_eq!(end.len(), 0);
    }
}

//! Two associations on a link: opening, transfer, loss, end, and what strangers send.

use std::collections::BTreeMap;

use airloom_base::random::splitmix64;
use airloom_base::service::{Identity, Path};
use airloom_base::{
    Body, CloseReason, Cx, Duration, Filler, Instant, Outbox, Packet, PathId, Protocol, Transport,
    TransportEvent,
};
use airloom_testkit::{End, Fate, LinkConfig, Pair, hash_of, lose};
use bytes::Bytes;

use super::chunk::{Cause, Chunk, Data, Init, Parameter, Sack};
use super::scheduler::Scheduling;
use super::state::State;
use super::wire::{Header, parse};
use super::*;

mod ecn;
mod heads;
mod opening;
mod partial_delivery;
mod paths;
mod probes;
mod reconfiguration;
mod restart;
mod window;

fn pair(client: Config, server: Config, link: LinkConfig) -> Pair {
    Pair::new(Box::new(Sctp::new(client, (1, 2))), Box::new(Sctp::new(server, (3, 4))), link)
}

fn plain() -> Pair {
    pair(Config::default(), Config::default(), LinkConfig::default())
}

/// Moves `octets` from each end to the other, the client's first, and shuts down.
fn exchange(pair: &mut Pair, octets: u32) {
    pair.open(End::Client);
    let [up, down] = [Body::filler(1, octets), Body::filler(2, octets)];
    pair.write(End::Client, up.clone());
    pair.drive_until(pair.now + Duration::from_secs(5));
    pair.write(End::Server, down.clone());
    pair.drive_until(pair.now + Duration::from_secs(3600));
    assert_eq!(pair.server().hash(), hash_of(&[up]), "{} of {octets}", pair.server().received);
    assert_eq!(pair.client().hash(), hash_of(&[down]), "{} of {octets}", pair.client().received);
    pair.finish(End::Client);
    pair.drive();
    pair.assert_idle();
    for end in [End::Client, End::Server] {
        assert_eq!(pair.host(end).closed(), Some(CloseReason::Finished));
        assert!(pair.host(end).saw(TransportEvent::Finished(0)));
    }
}

#[test]
fn octets_cross_whole_in_both_directions_and_the_end_is_orderly() {
    let mut pair = plain();
    pair.watch = true;
    exchange(&mut pair, 1_000_000);
    let kinds: Vec<u8> = pair.seen.iter().take(4).map(|s| s.head.get(12).copied().unwrap_or(255)).collect();
    assert_eq!(kinds.len(), 4);
    let lean = pair.seen.iter().filter(|s| s.body == 1452).count();
    assert!(lean > 1300, "{lean} packets with user data as their body");
}

#[test]
fn each_packet_of_the_opening_may_be_lost() {
    for from in [End::Client, End::Server] {
        for index in 0..3 {
            let mut pair = plain();
            pair.set_fate(lose(from, &[index]));
            exchange(&mut pair, 5000);
        }
    }
}

#[test]
fn loss_duplication_and_reordering_leave_the_octets_whole() {
    for seed in 0..40u64 {
        let profile = [Profile::Rfc9260, Profile::Rfc4960, Profile::Sctp2000][seed as usize % 3];
        let config = Config { interleaving: seed % 2 == 0, ecn: seed % 5 == 0, ..profile.settings() };
        let mut pair = pair(config.clone(), config, LinkConfig::default());
        let mut n = 0;
        pair.set_fate(Box::new(move |_| {
            n += 1;
            match splitmix64(seed, n) % 100 {
                0..5 => Fate::Lose,
                5..8 => Fate::Duplicate,
                8..12 => Fate::Late(Duration::from_millis(120)),
                _ => Fate::Deliver,
            }
        }));
        exchange(&mut pair, 200_000);
    }
}

#[test]
fn one_loss_in_a_large_window_is_repaired_without_a_timeout() {
    let mut pair = plain();
    pair.set_fate(airloom_testkit::lose_data(End::Client, &[40]));
    pair.open(End::Client);
    let data = Body::filler(1, 300_000);
    pair.write(End::Client, data.clone());
    pair.drive_until(Instant::ZERO + Duration::from_secs(20));
    assert_eq!(pair.server().hash(), hash_of(&[data]));
    let facts = pair.client().transport.as_ref().unwrap().facts();
    assert_eq!((facts.resent, facts.rto_count), (1, 0));
}

#[test]
fn duplicates_of_the_network_tell_of_nothing_that_was_sent_again() {
    let mut pair = plain();
    pair.set_fate(Box::new(|_| Fate::Duplicate));
    pair.open(End::Client);
    pair.write(End::Client, Body::filler(1, 100_000));
    pair.drive_until(Instant::ZERO + Duration::from_secs(20));
    let facts = pair.client().transport.as_ref().unwrap().facts();
    assert_eq!((facts.resent, facts.spurious), (0, 0));
}

#[test]
fn packets_are_counted_and_not_the_chunks_in_them() {
    for late in [false, true] {
        let mut duo = Duo::new(Config::default(), Config::default(), 1);
        for n in 0..1000 {
            assert!(duo.send(0, 0, Outgoing::new(message(0, n, 16))));
        }
        let mut first = true;
        if late {
            duo.slow = Box::new(move |from| from == 0 && std::mem::take(&mut first));
        } else {
            duo.loses = Box::new(move |from, _, _| from == 0 && std::mem::take(&mut first));
        }
        duo.run(Duration::from_secs(20));
        assert_eq!(duo.got[1].len(), 1000);
        let facts = duo.ends[0].facts();
        assert_eq!((facts.resent, facts.spurious), (1, u64::from(late)), "late: {late}");
    }
}

#[test]
fn a_dead_peer_is_found_out() {
    let mut pair = plain();
    pair.open(End::Client);
    pair.write(End::Client, Body::filler(1, 100_000));
    pair.drive_until(Instant::ZERO + Duration::from_millis(350));
    pair.set_fate(Box::new(|_| Fate::Lose));
    pair.drive();
    assert_eq!(pair.client().closed(), Some(CloseReason::TimedOut));
    let facts = pair.client().events.last().copied();
    assert_eq!(facts.map(|f| f.1), Some(TransportEvent::Gone));
}

#[test]
fn nobody_at_home_is_said_at_once_and_silence_after_nine_attempts() {
    let mut pair = plain();
    pair.server().stop_listening();
    pair.open(End::Client);
    pair.drive();
    assert_eq!(pair.client().closed(), Some(CloseReason::Refused));
    let mut silent = plain();
    silent.watch = true;
    silent.set_fate(Box::new(|_| Fate::Lose));
    silent.open(End::Client);
    silent.drive();
    assert_eq!(silent.client().closed(), Some(CloseReason::TimedOut));
    assert_eq!(silent.seen.len(), 9, "Max.Init.Retransmits");
}

#[test]
fn an_abort_ends_both_ends() {
    let mut pair = plain();
    pair.open(End::Client);
    pair.drive_until(Instant::ZERO + Duration::from_secs(1));
    pair.reset(End::Server);
    pair.drive();
    assert_eq!(pair.client().closed(), Some(CloseReason::Reset));
    pair.assert_idle();
}

#[test]
fn a_slow_reader_holds_the_sender_back_and_lets_it_go_on() {
    let small = Config { receive_buffer: airloom_base::units::Octets(20_000), ..Config::default() };
    let mut pair = pair(Config::default(), small, LinkConfig::default());
    pair.server().paused = true;
    pair.open(End::Client);
    let data = Body::filler(1, 200_000);
    pair.write(End::Client, data.clone());
    pair.drive_until(Instant::ZERO + Duration::from_secs(300));
    assert_eq!(pair.server().received, 0);
    assert_eq!(pair.client().closed(), None, "a closed window is no failure");
    pair.resume(End::Server);
    pair.drive_until(Instant::ZERO + Duration::from_secs(900));
    assert_eq!(pair.server().hash(), hash_of(&[data]));
}

#[test]
fn a_flood_of_inits_is_answered_and_leaves_nothing_behind() {
    let mut server = Sctp::new(Config::default(), (3, 4));
    let mut outbox = Outbox::default();
    let mut cx = Cx { now: Instant::ZERO, records: &mut outbox };
    let size = |n: u32| {
        let path = Path { local: [10, 0, 0, 2].into(), remote: n.to_be_bytes().into(), mtu: 1500 };
        (path, Init { tag: n + 1, window: 9000, outbound_streams: 1, inbound_streams: 1, ..Init::default() })
    };
    for n in 0..10_000 {
        let (path, init) = size(n);
        let unit = Header { source: 5, destination: 80, tag: 0 }.packet(&[Chunk::Init(init)]);
        let who = Identity::default();
        assert!(server.accept(&mut cx, path, (80, 5), who, &unit).is_none());
        let mut answer = server.answer(&mut cx, &path, &unit, true).unwrap();
        let (header, chunks) = parse(&mut answer).unwrap();
        assert_eq!(header, Header { source: 80, destination: 5, tag: n + 1 });
        assert!(matches!(chunks[..], [Chunk::InitAck(_)]));
    }
}

#[test]
fn strangers_are_answered_as_section_8_4_says() {
    let mut sctp = Sctp::new(Config::default(), (3, 4));
    let mut outbox = Outbox::default();
    let mut cx = Cx { now: Instant::ZERO, records: &mut outbox };
    let path = Path { local: [10, 0, 0, 2].into(), remote: [10, 0, 0, 1].into(), mtu: 1500 };
    let mut ask = |chunk: Chunk| {
        let unit = Header { source: 5, destination: 80, tag: 77 }.packet(&[chunk]);
        let answer = sctp.answer(&mut cx, &path, &unit, true);
        answer.map(|mut a| parse(&mut a).unwrap()).map(|(h, mut c)| (h.tag, c.remove(0)))
    };
    assert_eq!(ask(Chunk::Abort { reflected: false, causes: vec![] }), None);
    assert_eq!(ask(Chunk::ShutdownAck), Some((77, Chunk::ShutdownComplete { reflected: true })));
    assert_eq!(ask(Chunk::ShutdownComplete { reflected: false }), None);
    assert_eq!(ask(Chunk::CookieAck), None);
    assert_eq!(ask(Chunk::CookieEcho(Bytes::from_static(&[7; 90]))), None);
    let abort = Some((77, Chunk::Abort { reflected: true, causes: vec![] }));
    assert_eq!(ask(Chunk::Sack(Sack::default())), abort);
}

#[test]
fn packets_with_wrong_tags_or_nonsense_change_nothing() {
    let mut pair = plain();
    pair.open(End::Client);
    let data = Body::filler(1, 400_000);
    pair.write(End::Client, data.clone());
    for n in 0..2000u64 {
        let at = pair.now + Duration::from_millis(1);
        pair.drive_until(at);
        let end = if n % 2 == 0 { End::Client } else { End::Server };
        let ports = if end == End::Client { (80, 40_000) } else { (40_000, 80) };
        let draw = |k: u64| splitmix64(n, k);
        // A guessed tag is wrong but once in four thousand million.
        let header = Header { source: ports.0, destination: ports.1, tag: draw(0) as u32 };
        let chunk = match draw(1) % 6 {
            0 => Chunk::Abort { reflected: n % 3 == 0, causes: vec![] },
            1 => Chunk::Shutdown(draw(2) as u32),
            2 => Chunk::Sack(Sack { cumulative: draw(2) as u32, ..Sack::default() }),
            3 => Chunk::ShutdownComplete { reflected: true },
            4 => Chunk::Data(Data { tsn: draw(2) as u32, body: Body::filler(9, 4), ..Data::default() }),
            _ => Chunk::Unknown(draw(2) as u8 | 0x40, 0, Bytes::from_static(b"x")),
        };
        pair.inject(end, header.packet(&[chunk]));
    }
    pair.drive_until(pair.now + Duration::from_secs(60));
    assert_eq!(pair.server().hash(), hash_of(&[data]));
    assert_eq!((pair.client().closed(), pair.server().closed()), (None, None));
}

/// Two associations with as many paths as wished, driven message by message.
struct Duo {
    now: Instant,
    outbox: Outbox,
    ends: [Association; 2],
    flying: BTreeMap<(Instant, u64), (usize, u8, u8, Packet)>,
    sent: u64,
    /// Is this packet (sender, path, number) lost?
    loses: Box<dyn FnMut(usize, u8, u64) -> bool>,
    delay: Duration,
    /// Is the next packet of this sender half a second late?
    slow: Box<dyn FnMut(usize) -> bool>,
    /// The next packet that may be marked is.
    marks: bool,
    /// Messages as they became ready, by receiving end.
    got: [Vec<Message>; 2],
    events: [Vec<TransportEvent>; 2],
}

fn paths(count: u8, swapped: bool) -> Vec<Path> {
    let path = |n: u8| {
        let (a, b) = ([10, n, 0, 1].into(), [10, n, 0, 2].into());
        if swapped {
            Path { local: b, remote: a, mtu: 1500 }
        } else {
            Path { local: a, remote: b, mtu: 1500 }
        }
    };
    (0..count).map(path).collect()
}

impl Duo {
    fn new(client: Config, server: Config, count: u8) -> Self {
        let mut one = Sctp::new(client, (1, 2));
        let mut other = Sctp::new(server, (3, 4));
        let mut outbox = Outbox::default();
        let mut cx = Cx { now: Instant::ZERO, records: &mut outbox };
        let who = Identity::default();
        let (ours, theirs) = (paths(count, false), paths(count, true));
        let mut client = one.associate(&ours, (1, 2), who);
        client.connect(&mut cx);
        let init = client.poll_transmit(&mut cx).unwrap().packet;
        let ack = other.answer(&mut cx, &theirs[0], &init, true).unwrap();
        client.handle_packet(&mut cx, PathId(0), 0, ack);
        let echo = client.poll_transmit(&mut cx).unwrap().packet;
        let mut server = other.admit(&mut cx, theirs[0], (2, 1), who, &echo).unwrap();
        for path in &theirs[1..] {
            server.trust_path(*path);
        }
        server.handle_packet(&mut cx, PathId(0), 0, echo);
        let mut duo = Duo {
            now: Instant::ZERO,
            outbox,
            ends: [client, server],
            flying: BTreeMap::new(),
            sent: 0,
            loses: Box::new(|_, _, _| false),
            slow: Box::new(|_| false),
            delay: Duration::from_millis(50),
            marks: false,
            got: [Vec::new(), Vec::new()],
            events: [Vec::new(), Vec::new()],
        };
        duo.run(Duration::from_secs(1));
        assert_eq!([0, 1].map(|n| duo.ends[n].state()), [State::Established; 2]);
        duo
    }

    fn send(&mut self, end: usize, stream: u16, message: Outgoing) -> bool {
        let mut cx = Cx { now: self.now, records: &mut self.outbox };
        self.ends[end].send(&mut cx, stream, message)
    }

    fn drain(&mut self, end: usize) {
        loop {
            let mut cx = Cx { now: self.now, records: &mut self.outbox };
            while let Some(event) = self.ends[end].poll_event() {
                if let TransportEvent::Readable(stream, _) = event {
                    let stream = u16::try_from(stream).expect("a stream of an association");
                    while let Some(message) = self.ends[end].receive(&mut cx, stream) {
                        self.got[end].push(message);
                    }
                } else {
                    self.events[end].push(event);
                }
            }
            let Some(unit) = self.ends[end].poll_transmit(&mut cx) else { return };
            self.sent += 1;
            if !(self.loses)(end, unit.path.0, self.sent) {
                let late = if (self.slow)(end) { Duration::from_millis(500) } else { Duration::ZERO };
                let key = (self.now + self.delay + late, self.sent);
                let ecn = if unit.ecn == 2 && std::mem::take(&mut self.marks) { 3 } else { unit.ecn };
                self.flying.insert(key, (1 - end, unit.path.0, ecn, unit.packet));
            }
        }
    }

    fn run(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            self.drain(0);
            self.drain(1);
            let arrival = self.flying.keys().next().map(|k| k.0);
            let timeouts = self.ends.iter().filter_map(|e| e.poll_timeout());
            let next = arrival.into_iter().chain(timeouts).min();
            let Some(at) = next.filter(|at| *at <= until) else { break };
            self.now = self.now.max(at);
            let now = self.now;
            if arrival == Some(at)
                && let Some((_, (to, path, ecn, packet))) = self.flying.pop_first()
            {
                let mut cx = Cx { now, records: &mut self.outbox };
                self.ends[to].handle_packet(&mut cx, PathId(path), ecn, packet);
                continue;
            }
            for end in 0..2 {
                if self.ends[end].poll_timeout().is_some_and(|at| at <= now) {
                    self.ends[end].handle_timeout(&mut Cx { now, records: &mut self.outbox });
                }
            }
        }
        self.now = until;
    }
}

/// Message `n` of a stream: its length and octets follow from both.
fn message(stream: u16, n: u64, len: u32) -> Body {
    Body::Filler(Filler { source: u32::from(stream), offset: n << 20, len })
}

fn octets(message: &Message) -> Vec<u8> {
    message.pieces().flat_map(|p| p.to_bytes().to_vec()).collect()
}

#[test]
fn messages_of_all_sizes_cross_whole_and_in_the_order_of_their_streams() {
    for seed in 0..30u64 {
        let kinds = [
            Scheduling::Fcfs,
            Scheduling::RoundRobin,
            Scheduling::RoundRobinPacket,
            Scheduling::Priority,
            Scheduling::FairCapacity,
            Scheduling::WeightedFairQueueing,
        ];
        let config = Config {
            interleaving: seed % 2 == 0,
            scheduler: kinds[(seed / 2) as usize % 6],
            ..Config::default()
        };
        let mut duo = Duo::new(config.clone(), config, 1);
        duo.loses = Box::new(move |_, _, n| splitmix64(seed, n).is_multiple_of(20));
        let mut sent: BTreeMap<u16, Vec<(bool, Vec<u8>)>> = BTreeMap::new();
        for n in 0..200u64 {
            let draw = splitmix64(seed + 1000, n);
            let (stream, unordered) = ((draw % 8) as u16, draw >> 8 & 7 == 0);
            let len = [1, 16, 1200, 1452, 1453, 8000, 32_768][(draw >> 16) as usize % 7];
            let body = message(stream, n, len);
            sent.entry(stream).or_default().push((unordered, body.to_bytes().to_vec()));
            let outgoing = Outgoing { unordered, ppid: n as u32, ..Outgoing::new(body) };
            while !duo.send(0, stream, outgoing.clone()) {
                duo.run(Duration::from_secs(1));
            }
        }
        duo.run(Duration::from_secs(600));
        assert_eq!(duo.got[1].len(), 200, "seed {seed}");
        for (stream, sent) in sent {
            let got: Vec<_> = duo.got[1].iter().filter(|m| m.stream == stream).collect();
            let ordered = |u: bool| sent.iter().filter(move |s| s.0 == u).map(|s| &s.1);
            let in_order: Vec<_> = got.iter().filter(|m| !m.unordered).map(|m| octets(m)).collect();
            assert!(in_order.iter().eq(ordered(false)), "seed {seed} stream {stream}");
            let mut loose: Vec<_> = got.iter().filter(|m| m.unordered).map(|m| octets(m)).collect();
            let mut expected: Vec<_> = ordered(true).cloned().collect();
            loose.sort();
            expected.sort();
            assert_eq!(loose, expected, "seed {seed} stream {stream}");
        }
    }
}

#[test]
fn with_i_data_a_short_message_overtakes_a_long_one_of_another_stream() {
    for interleaving in [false, true] {
        let config = Config { interleaving, scheduler: Scheduling::RoundRobin, ..Config::default() };
        let mut duo = Duo::new(config.clone(), config, 1);
        assert!(duo.send(0, 0, Outgoing::new(message(0, 0, 300_000))));
        duo.run(Duration::from_millis(60));
        assert!(duo.send(0, 1, Outgoing::new(message(1, 1, 100))));
        duo.run(Duration::from_secs(60));
        let order: Vec<u16> = duo.got[1].iter().map(|m| m.stream).collect();
        assert_eq!(order, if interleaving { [1, 0] } else { [0, 1] });
    }
}

#[test]
fn when_one_path_fails_the_other_carries_on() {
    let mut duo = Duo::new(Config::default(), Config::default(), 2);
    for n in 0..100 {
        assert!(duo.send(0, 0, Outgoing::new(message(0, n, 8000))));
    }
    duo.run(Duration::from_millis(500));
    assert!(duo.got[1].len() < 100);
    duo.loses = Box::new(|_, path, _| path == 0);
    duo.run(Duration::from_secs(400));
    assert_eq!(duo.got[1].len(), 100);
    assert!(!duo.ends[0].is_active(0) && duo.ends[0].is_active(1));
    assert!(duo.events[0].iter().all(|e| !matches!(e, TransportEvent::Closed(_))));
    // It comes back, and heartbeats find it out.
    duo.loses = Box::new(|_, _, _| false);
    duo.run(Duration::from_secs(400));
    assert!(duo.ends[0].is_active(0));
}

#[test]
fn full_chunks_both_ways_at_once_do_not_wait_for_acknowledgements_that_wait() {
    let mut duo = Duo::new(Config::default(), Config::default(), 1);
    for n in 0..100 {
        for end in 0..2 {
            assert!(duo.send(end, 0, Outgoing::new(message(0, n, 1452))));
        }
    }
    // Ten round trips of slow start at most.
    duo.run(Duration::from_secs(1));
    assert_eq!([duo.got[0].len(), duo.got[1].len()], [100, 100]);
}

#[test]
fn a_path_that_becomes_narrow_loses_large_chunks_and_the_association_does_not_hang() {
    let mut duo = Duo::new(Config::default(), Config::default(), 1);
    duo.loses = Box::new(|from, _, _| from == 0);
    assert!(duo.send(0, 0, Outgoing::new(message(0, 0, 1452))));
    duo.run(Duration::from_millis(100));
    duo.ends[0].path_mtu(&mut Cx { now: duo.now, records: &mut duo.outbox }, PathId(0), 600);
    duo.loses = Box::new(|_, _, _| false);
    duo.run(Duration::from_secs(5));
    assert_eq!(duo.got[1].len(), 1, "as fragments of IP it would arrive; here nothing cuts it");
}

#[test]
fn marks_reduce_the_window_once() {
    let config = Config { ecn: true, ..Config::default() };
    let mut duo = Duo::new(config.clone(), config, 1);
    for n in 0..60 {
        assert!(duo.send(0, 0, Outgoing::new(message(0, n, 8000))));
    }
    duo.run(Duration::from_millis(410));
    let before = duo.ends[0].cwnd(0);
    // Marked when it leaves 90 ms later, and heard of a round trip after that.
    duo.marks = true;
    duo.run(Duration::from_millis(200));
    let after = duo.ends[0].cwnd(0);
    // Grown meanwhile, and halved once.
    assert!(after >= before / 2 && after < before, "{before} {after}");
    duo.run(Duration::from_millis(200));
    assert!(duo.ends[0].cwnd(0) >= after, "{after} {}", duo.ends[0].cwnd(0));
    assert_eq!(duo.ends[1].ecne, None, "the peer knows that it was heard");
    duo.run(Duration::from_secs(10));
    assert_eq!(duo.got[1].len(), 60);
    assert_eq!(duo.ends[0].facts().resent, 0);
}

#[test]
fn a_full_buffer_takes_important_messages_in_the_place_of_others_that_were_not_begun() {
    for partial_reliability in [true, false] {
        let ours = Config { send_buffer: airloom_base::units::Octets(40_000), ..Config::default() };
        let mut duo = Duo::new(ours, Config { partial_reliability, ..Config::default() }, 1);
        assert!(duo.send(0, 0, Outgoing::new(message(0, 0, 100))));
        duo.run(Duration::from_secs(1));
        let mut send = |n: u32, reliability: Reliability| {
            let outgoing = Outgoing { reliability, ppid: n, ..Outgoing::new(message(0, u64::from(n), 2000)) };
            duo.send(0, (n % 3) as u16, outgoing)
        };
        for n in 1..=20 {
            assert!(send(n, Reliability::Priority(if n == 19 { 8 } else { 7 })), "{n}");
        }
        let later = Reliability::Until(Instant::FAR_FUTURE);
        assert_eq!([21, 22].map(|n| send(n, Reliability::Priority(8))), [false, false]);
        assert_eq!([23, 24].map(|n| send(n, later)), [false, false], "it has no priority");
        let taken = [(25, Reliability::Priority(3)), (26, Reliability::Full)].map(|(n, kind)| send(n, kind));
        assert_eq!(taken, [partial_reliability; 2]);
        duo.run(Duration::from_secs(60));
        let mut got: Vec<u32> = duo.got[1].iter().map(|m| m.ppid).collect();
        got.sort_unstable();
        // Of the least important ones the newest went: 19, and 20.
        let expected: Vec<u32> =
            if partial_reliability { (0..19).chain([25, 26]).collect() } else { (0..=20).collect() };
        assert_eq!(got, expected);
        assert_eq!(duo.ends[0].given_up(), if partial_reliability { 2 } else { 0 });
        assert_eq!(duo.ends[0].unacknowledged(0), 0);
    }
}

#[test]
fn messages_that_are_late_or_were_sent_often_enough_are_given_up() {
    for interleaving in [false, true] {
        for timed in [false, true] {
            let config = Config { interleaving, ..Config::default() };
            let mut duo = Duo::new(config.clone(), config, 1);
            duo.loses = Box::new(|from, _, n| from == 0 && splitmix64(5, n).is_multiple_of(4));
            let mut sent = 0u32;
            for n in 0..300 {
                let reliability = match timed {
                    true => Reliability::Until(duo.now + Duration::from_millis(400)),
                    false => Reliability::Retransmissions(0),
                };
                let outgoing =
                    Outgoing { reliability, ppid: n, ..Outgoing::new(message(0, u64::from(n), 2000)) };
                sent += u32::from(duo.send(0, (n % 3) as u16, outgoing));
                duo.run(Duration::from_millis(20));
            }
            // The last one must arrive, so that what was given up before it is skipped.
            duo.loses = Box::new(|_, _, _| false);
            for stream in 0..3 {
                assert!(duo.send(0, stream, Outgoing { ppid: 1000, ..Outgoing::new(message(0, 1000, 10)) }));
            }
            duo.run(Duration::from_secs(120));
            let (got, lost) = (duo.got[1].len() as u32, duo.ends[0].given_up() as u32);
            let last = duo.got[1].iter().filter(|m| m.ppid == 1000).count();
            assert_eq!(last, 3, "interleaving {interleaving} timed {timed}");
            assert!(lost > 20 && got > 20, "{lost} given up, {got} arrived");
            // What was given up may have arrived; what was too old before it was sent at all is not counted as given up.
            assert!(got <= sent + 3 && got < 303, "{got} of {sent}");
            assert!(timed || got + lost >= sent, "{got} {lost} {sent}");
            for stream in 0..3 {
                let order: Vec<u32> =
                    duo.got[1].iter().filter(|m| m.stream == stream).map(|m| m.ppid).collect();
                assert!(order.is_sorted(), "{order:?}");
            }
            assert_eq!(duo.ends[0].unacknowledged(0), 0);
        }
    }
}

#[test]
fn a_cookie_that_comes_again_is_answered_and_changes_nothing() {
    let mut one = Sctp::new(Config::default(), (1, 2));
    let mut other = Sctp::new(Config::default(), (3, 4));
    let mut outbox = Outbox::default();
    let mut cx = Cx { now: Instant::ZERO, records: &mut outbox };
    let who = Identity::default();
    let (ours, theirs) = (paths(1, false), paths(1, true));
    let mut client = one.associate(&ours, (1, 2), who);
    client.connect(&mut cx);
    let init = client.poll_transmit(&mut cx).unwrap().packet;
    let ack = other.answer(&mut cx, &theirs[0], &init, true).unwrap();
    client.handle_packet(&mut cx, PathId(0), 0, ack);
    let echo = client.poll_transmit(&mut cx).unwrap().packet;
    let mut server = other.admit(&mut cx, theirs[0], (2, 1), who, &echo).unwrap();
    for n in 0..5 {
        server.handle_packet(&mut cx, PathId(0), 0, echo.duplicate());
        let mut answer = server.poll_transmit(&mut cx).unwrap().packet;
        let (_, chunks) = parse(&mut answer).unwrap();
        assert_eq!(chunks, [Chunk::CookieAck], "{n}");
        assert_eq!(server.state(), State::Established);
    }
    let opened = std::iter::from_fn(|| server.poll_event()).filter(|e| *e == TransportEvent::Opened).count();
    assert_eq!(opened, 1);
    // Replayed from elsewhere, or after its life, it makes nothing.
    let elsewhere = Path { remote: [10, 9, 9, 9].into(), ..theirs[0] };
    assert!(other.admit(&mut cx, elsewhere, (2, 1), who, &echo).is_none());
    cx.now = Instant::ZERO + Duration::from_secs(61);
    assert!(other.admit(&mut cx, theirs[0], (2, 1), who, &echo).is_none());
    let mut answer = other.answer(&mut cx, &theirs[0], &echo, true).unwrap();
    assert!(matches!(parse(&mut answer).unwrap().1[..], [Chunk::Error(_)]));
}

#[test]
fn who_is_over_and_waits_for_its_reader_answers_shutdown_ack_and_nothing_else() {
    let mut one = Sctp::new(Config::default(), (1, 2));
    let mut other = Sctp::new(Config::default(), (3, 4));
    let mut outbox = Outbox::default();
    let mut cx = Cx { now: Instant::ZERO, records: &mut outbox };
    let who = Identity::default();
    let (ours, theirs) = (paths(1, false), paths(1, true));
    let mut client = one.associate(&ours, (1, 2), who);
    client.connect(&mut cx);
    let init = client.poll_transmit(&mut cx).unwrap().packet;
    let ack = other.answer(&mut cx, &theirs[0], &init, true).unwrap();
    client.handle_packet(&mut cx, PathId(0), 0, ack);
    assert!(client.send(&mut cx, 0, Outgoing::new(message(0, 0, 100))));
    let echo = client.poll_transmit(&mut cx).unwrap().packet;
    let mut server = other.admit(&mut cx, theirs[0], (2, 1), who, &echo).unwrap();
    server.handle_packet(&mut cx, PathId(0), 0, echo.duplicate());
    let pass = |cx: &mut Cx, from: &mut Association, to: &mut Association| {
        while let Some(unit) = from.poll_transmit(cx) {
            to.handle_packet(cx, PathId(0), 0, unit.packet);
        }
    };
    pass(&mut cx, &mut server, &mut client);
    // The server shuts down, and its user does not read. SHUTDOWN COMPLETE is lost.
    server.finish(&mut cx, 0);
    pass(&mut cx, &mut server, &mut client);
    pass(&mut cx, &mut client, &mut server);
    assert_eq!([client.state(), server.state()], [State::ShutdownAckSent, State::Closed]);
    assert!(server.poll_transmit(&mut cx).is_some() && server.poll_transmit(&mut cx).is_none());
    // A late cookie is not answered, SHUTDOWN ACK is.
    server.handle_packet(&mut cx, PathId(0), 0, echo);
    assert!(server.poll_transmit(&mut cx).is_none());
    cx.now += Duration::from_secs(5);
    client.handle_timeout(&mut cx);
    pass(&mut cx, &mut client, &mut server);
    pass(&mut cx, &mut server, &mut client);
    assert_eq!(client.state(), State::Closed);
    let is_gone = |server: &mut Association| {
        std::iter::from_fn(|| server.poll_event()).any(|event| event == TransportEvent::Gone)
    };
    assert!(!is_gone(&mut server));
    assert_eq!(server.receive(&mut cx, 0).map(|m| m.len()), Some(100));
    assert!(is_gone(&mut server));
}

#[test]
fn a_shutdown_takes_back_nothing_that_was_reported() {
    let mut duo = Duo::new(Config::default(), Config::default(), 1);
    for n in 0..10 {
        assert!(duo.send(0, 0, Outgoing::new(message(0, n, 1000))));
    }
    let mut first = true;
    duo.loses = Box::new(move |from, _, _| from == 0 && std::mem::take(&mut first));
    duo.run(Duration::from_millis(120));
    let outstanding = duo.ends[0].flight.outstanding;
    let (tag, tsn) = (duo.ends[0].local_tag, duo.ends[0].local_tsn);
    let shutdown = Chunk::Shutdown(tsn.wrapping_sub(1));
    let unit = Header { source: 2, destination: 1, tag }.packet(&[shutdown]);
    let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
    duo.ends[0].handle_packet(&mut cx, PathId(0), 0, unit);
    assert_eq!(duo.ends[0].state(), State::ShutdownReceived);
    assert_eq!(duo.ends[0].flight.outstanding, outstanding);
    duo.run(Duration::from_millis(500));
    assert_eq!((duo.got[1].len(), duo.ends[0].facts().resent), (10, 1));
}

#[test]
fn small_chunks_that_fill_the_buffer_behind_a_loss_wait_for_its_repair() {
    let small = Config { receive_buffer: airloom_base::units::Octets(3000), ..Config::default() };
    let mut duo = Duo::new(Config::default(), small, 1);
    for n in 0..300 {
        assert!(duo.send(0, 0, Outgoing::new(message(0, n, 8))));
    }
    let mut first = true;
    duo.loses = Box::new(move |from, _, _| from == 0 && std::mem::take(&mut first));
    duo.run(Duration::from_secs(60));
    assert_eq!(duo.got[1].len(), 300);
    assert_eq!([0, 1].map(|n| duo.ends[n].state()), [State::Established; 2]);
}

#[test]
fn an_answer_that_no_packet_takes_does_not_hold_back_the_others() {
    let mut duo = Duo::new(Config::default(), Config::default(), 1);
    let tag = duo.ends[1].local_tag;
    let room = duo.ends[1].paths[0].room();
    let unknown = Chunk::Unknown(0xC7, 0, vec![0; room - 4].into());
    for chunk in [unknown, Chunk::Heartbeat(Parameter::HeartbeatInfo(Bytes::from_static(b"here")))] {
        let unit = Header { source: 1, destination: 2, tag }.packet(&[chunk]);
        let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
        duo.ends[1].handle_packet(&mut cx, PathId(0), 0, unit);
    }
    let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
    let mut answer = duo.ends[1].poll_transmit(&mut cx).expect("an answer").packet;
    assert!(matches!(parse(&mut answer).unwrap().1[..], [Chunk::HeartbeatAck(_)]));
}

#[test]
fn both_may_open_at_once() {
    let mut protocols = [Sctp::new(Config::default(), (1, 2)), Sctp::new(Config::default(), (3, 4))];
    let mut outbox = Outbox::default();
    let mut cx = Cx { now: Instant::ZERO, records: &mut outbox };
    let who = Identity::default();
    let mut a = protocols[0].associate(&paths(1, false), (7, 7), who);
    let mut b = protocols[1].associate(&paths(1, true), (7, 7), who);
    a.connect(&mut cx);
    b.connect(&mut cx);
    for _ in 0..10 {
        let from_a: Vec<_> = std::iter::from_fn(|| a.poll_transmit(&mut cx)).collect();
        let from_b: Vec<_> = std::iter::from_fn(|| b.poll_transmit(&mut cx)).collect();
        for unit in from_a {
            b.handle_packet(&mut cx, PathId(0), 0, unit.packet);
        }
        for unit in from_b {
            a.handle_packet(&mut cx, PathId(0), 0, unit.packet);
        }
    }
    assert_eq!([a.state(), b.state()], [State::Established; 2]);
    let _ = &mut protocols;
    assert!(a.send(&mut cx, 0, Outgoing::new(message(0, 0, 100))));
    let unit = a.poll_transmit(&mut cx).unwrap();
    b.handle_packet(&mut cx, PathId(0), 0, unit.packet);
    assert_eq!(b.receive(&mut cx, 0).map(|m| m.len()), Some(100));
}

#[test]
fn fragments_that_contradict_each_other_end_the_association() {
    for interleaved in [false, true] {
        let config = Config { interleaving: interleaved, ..Config::default() };
        let mut duo = Duo::new(config.clone(), config, 1);
        let (tag, tsn) = (duo.ends[1].local_tag, duo.ends[0].local_tsn);
        let fragment = |n: u32, begin: bool, fsn: u32| {
            let body = Body::filler(1, 100);
            Chunk::Data(Data { tsn: tsn.wrapping_add(n), begin, fsn, interleaved, body, ..Data::default() })
        };
        // The message begins twice.
        let unit =
            Header { source: 1, destination: 2, tag }.packet(&[fragment(0, true, 0), fragment(1, true, 0)]);
        let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
        duo.ends[1].handle_packet(&mut cx, PathId(0), 0, unit);
        assert_eq!(duo.ends[1].state(), State::Closed);
        duo.run(Duration::from_secs(1));
        assert!(duo.events[0].contains(&TransportEvent::Closed(CloseReason::Reset)));
    }
}

#[test]
fn a_flood_of_fragments_that_never_end_is_held_only_up_to_the_buffer() {
    let small = Config { receive_buffer: airloom_base::units::Octets(50_000), ..Config::default() };
    let mut duo = Duo::new(Config::default(), small, 1);
    let (tag, tsn) = (duo.ends[1].local_tag, duo.ends[0].local_tsn);
    for n in 0..100_000u32 {
        // Every second TSN is missing: nothing becomes whole.
        let chunk = Chunk::Data(Data {
            tsn: tsn.wrapping_add(2 * n + 1),
            begin: n % 2 == 0,
            body: Body::filler(1, 1),
            ..Data::default()
        });
        let unit = Header { source: 1, destination: 2, tag }.packet(&[chunk]);
        let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
        duo.ends[1].handle_packet(&mut cx, PathId(0), 0, unit);
        while let Some(unit) = duo.ends[1].poll_transmit(&mut cx) {
            assert!(unit.packet.wire_len() <= 1480);
        }
    }
    assert!(duo.ends[1].inbound.sack_entries() <= 50_000 / 32 + 1 + 64);
}

#[test]
fn a_small_chunk_does_not_hold_the_packet_that_it_came_in() {
    let mut duo = Duo::new(Config::default(), Config::default(), 1);
    let (tag, tsn) = (duo.ends[1].local_tag, duo.ends[0].local_tsn);
    let body = Body::Real(Bytes::from_static(b"x"));
    let mut octets = Vec::new();
    Chunk::Data(Data { tsn, begin: true, body, ..Data::default() }).append_to(&mut octets);
    Chunk::Pad(60_000).append_to(&mut octets);
    let chunks = Bytes::from(octets);
    let unit = Header { source: 1, destination: 2, tag }.packet_of(chunks.clone());
    let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
    duo.ends[1].handle_packet(&mut cx, PathId(0), 0, unit);
    assert_eq!(duo.ends[1].inbound.fragments.len(), 1);
    assert!(chunks.is_unique());
}

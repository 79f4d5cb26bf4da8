//! Two ends of QUIC whose client moves, by itself or behind a translator of addresses, and strangers who copy its packets.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use airloom_base::service::{Identity, Path};
use airloom_base::units::Octets as Size;
use airloom_base::{
    Body, CloseReason, Cx, Duration, Instant, Outbox, Packet, PathId, Protocol, Transport, TransportEvent,
};
use airloom_transports::quic::{Config, InitialWindow, Migration, Quic};

use crate::octets::Octets;
use crate::quic_places::{HOME, Ledger, MOST_PATHS, PLACES, Paths, from_place};

/// Octets that are written in all.
const MOST_WRITTEN: u32 = 60_000;
/// What happens beside what both ends do.
const MOST_STEPS: usize = 80;
/// Packets of the client's that strangers remember.
const REMEMBERED: usize = 16;
/// More deadlines and arrivals than any of these dialogues has, and datagrams that one of them is answered by.
const ENDLESS: u32 = 100_000;
const FLOOD: u32 = 500;

const DELAY: Duration = Duration::from_millis(10);
/// Whoever has heard from its peer since then is not about to give it up.
const RECENT: Duration = Duration::from_secs(10);
/// Longer than a connection lives that nobody ends.
const LONG: Duration = Duration::from_secs(60);

const CLIENT: usize = 0;
const SERVER: usize = 1;
const WHO: Identity = Identity { host: 0, flow: 1 };

/// What is under way.
enum Flight {
    /// From this place, by a client that had heard the server at these places, as bits.
    ToServer {
        place: usize,
        heard: u32,
        unit: Packet,
    },
    ToClient {
        place: usize,
        unit: Packet,
    },
}

/// What an end has come to.
#[derive(Default)]
struct End {
    written: u32,
    is_finished: bool,
    received: u32,
    is_open: bool,
    closed: Option<CloseReason>,
    last_arrival: Instant,
}

struct Net<'a> {
    now: Instant,
    records: Outbox,
    protocols: [Quic; 2],
    transports: [Option<Box<dyn Transport>>; 2],
    ends: [End; 2],
    ledger: Ledger,
    paths: Paths,
    /// The place that each path of the client's comes from, and whether its link is there.
    ways: Vec<(usize, bool)>,
    heard: u32,
    flying: BTreeMap<(Instant, u64), Flight>,
    order: u64,
    /// What the next datagrams meet.
    fates: Octets<'a>,
    seen: VecDeque<(Packet, u32)>,
    /// A datagram has come to nobody, or late.
    has_missed: bool,
    /// Several paths may be open at a time.
    probes: bool,
    /// Somebody has sent what the client never said.
    is_forged: bool,
    steps: u32,
}

/// The client's own address on its link of that number.
fn own(link: usize) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, if link == 0 { 1 } else { 100 + link as u8 }).into()
}

/// One of the places that the translator of addresses has for this link.
fn place_of(link: usize, which: usize) -> usize {
    (which * MOST_PATHS + link) % PLACES
}

fn path_by(link: usize) -> Path {
    Path { local: own(link), remote: Ipv4Addr::new(10, 0, 0, 2).into(), mtu: 1500 }
}

fn settings(how: u8) -> Config {
    let is = |bit: u8| how & bit == bit;
    Config {
        retry: is(1),
        migration: match (is(4), is(16)) {
            (true, _) => Migration::Probe,
            (_, true) => Migration::Off,
            _ => Migration::AtOnce,
        },
        initial_window: InitialWindow::Packets(if is(2) { 2 } else { 10 }),
        certificates: Size(if is(8) { 12_000 } else { 1000 }),
        mtu_discovery: is(32),
        keep_alive: if is(64) { Duration::from_secs(5) } else { Duration::ZERO },
        tickets: u8::from(is(128)),
        ..Config::default()
    }
}

impl<'a> Net<'a> {
    fn new(how: u8, fates: &'a [u8]) -> Net<'a> {
        let config = settings(how);
        let mut protocols = ["client", "server"].map(|name| Quic::new(config.clone(), 1, name));
        protocols[CLIENT].own(&(0..MOST_PATHS).map(own).collect::<Vec<_>>(), 1500);
        let mut records = Outbox::default();
        // Most of the time of a dialogue goes to writing that down.
        records.ask_qlog(how >> 5 == 7);
        let cx = &mut Cx { now: Instant::ZERO, records: &mut records };
        let mut client = protocols[CLIENT].open(cx, path_by(0), (40_000, 443), WHO);
        client.connect(cx);
        let mut net = Net {
            now: Instant::ZERO,
            records,
            protocols,
            transports: [Some(client), None],
            ends: Default::default(),
            ledger: Ledger::default(),
            paths: Paths::default(),
            ways: vec![(HOME, true)],
            heard: 0,
            flying: BTreeMap::new(),
            order: 0,
            fates: Octets::new(fates),
            seen: VecDeque::new(),
            has_missed: false,
            probes: config.migration == Migration::Probe,
            is_forged: false,
            steps: 0,
        };
        net.drain(CLIENT);
        net
    }

    fn with<T>(&mut self, end: usize, act: impl FnOnce(&mut dyn Transport, &mut Cx) -> T) -> Option<T> {
        let cx = &mut Cx { now: self.now, records: &mut self.records };
        self.transports[end].as_mut().map(|transport| act(transport.as_mut(), cx))
    }

    fn fly(&mut self, after: Duration, flight: Flight) {
        self.order += 1;
        self.flying.insert((self.now + after, self.order), flight);
    }

    /// What the next datagram meets: how often it arrives, and how long that takes.
    fn fate(&mut self) -> (u8, usize, Duration) {
        let fate = self.fates.octet();
        let (copies, delay) = match fate & 7 {
            2 => (0, DELAY),
            3 => (2, DELAY),
            4 => (1, DELAY * u64::from(1 + (fate >> 3))),
            5 => (1, Duration::from_millis(500) * u64::from(1 + (fate >> 3))),
            _ => (1, DELAY),
        };
        self.has_missed |= copies == 0 || fate & 7 == 5;
        (fate, copies, delay)
    }

    /// The client's next datagram leaves, and may be copied on its way.
    fn client_sends(&mut self, link: usize, unit: Packet) {
        let (fate, copies, delay) = self.fate();
        let other = usize::from(fate >> 3);
        if fate & 7 == 7 {
            self.ways[link].0 = place_of(link, other);
        }
        let ((place, is_up), heard) = (self.ways[link], self.heard);
        if fate & 7 == 6 {
            // From odd places it comes before the original, and from even ones behind it.
            let delay = if other % 2 == 1 { DELAY / 2 } else { DELAY * 2 };
            self.fly(delay, Flight::ToServer { place: other, heard, unit: unit.duplicate() });
        }
        self.has_missed |= !is_up;
        for _ in 0..if is_up { copies } else { 0 } {
            self.fly(delay, Flight::ToServer { place, heard, unit: unit.duplicate() });
        }
        self.seen.truncate(REMEMBERED - 1);
        self.seen.push_front((unit, heard));
    }

    fn server_sends(&mut self, place: usize, unit: Packet) {
        let (_, (_, port)) = from_place(place);
        assert_eq!(self.protocols[SERVER].ports(unit.head()), Some((443, port)), "to another port");
        self.ledger.sent(place, &unit.body().to_bytes());
        let (_, copies, delay) = self.fate();
        for _ in 0..copies {
            self.fly(delay, Flight::ToClient { place, unit: unit.duplicate() });
        }
    }

    /// Passes on all that an end has to say, and reads what there is.
    fn drain(&mut self, end: usize) {
        let mut sent = 0;
        loop {
            while let Some(out) = self.with(end, |end, cx| end.poll_transmit(cx)).flatten() {
                sent += 1;
                assert!(sent < FLOOD, "a datagram is answered by {FLOOD}");
                match end {
                    CLIENT => self.client_sends(out.path.0.into(), out.packet),
                    _ => self.server_sends(self.paths.place(out.path), out.packet),
                }
            }
            let mut is_quiet = true;
            while let Some(event) = self.with(end, |end, _| end.poll_event()).flatten() {
                is_quiet = false;
                match event {
                    TransportEvent::Opened => self.ends[end].is_open = true,
                    TransportEvent::Closed(why) => {
                        self.ends[end].closed.get_or_insert(why);
                    }
                    TransportEvent::Gone => self.transports[end] = None,
                    _ => {}
                }
            }
            while let Some(body) = self.with(end, |end, cx| end.read(cx, 0, 1 << 16)).flatten() {
                is_quiet = false;
                self.read(end, &body);
            }
            if is_quiet {
                return;
            }
        }
    }

    fn read(&mut self, end: usize, body: &Body) {
        let (from, other) = (self.ends[end].received, 1 - end);
        self.ends[end].received += body.len() as u32;
        if self.is_forged {
            return;
        }
        let all = self.ends[other].written;
        assert!(self.ends[end].received <= all, "more comes out than went in");
        let expected = Body::filler(1 + other as u32, all).slice(from as usize, body.len());
        assert_eq!(body.to_bytes(), expected.to_bytes(), "what comes out is not what went in");
    }

    /// The path by which a datagram from there comes to the server; `None`: nobody takes it.
    fn find(&mut self, place: usize, unit: &Packet) -> Option<PathId> {
        if let (Some(id), Some(_)) = (self.paths.of(place), &self.transports[SERVER]) {
            return Some(id);
        }
        let (path, ports) = from_place(place);
        let cx = &mut Cx { now: self.now, records: &mut self.records };
        let protocol = &mut self.protocols[SERVER];
        if protocol.whose(cx, &path, ports, 0, unit).is_some() {
            return self.paths.meet(place, self.transports[SERVER].as_deref_mut()?, cx);
        }
        if self.paths.first().is_none() {
            self.transports[SERVER] = protocol.accept(cx, path, ports, WHO, unit);
            if self.transports[SERVER].is_some() {
                self.paths = Paths::begin(place);
                if self.ends[SERVER].is_finished {
                    // It has nothing to say.
                    self.with(SERVER, |server, cx| server.finish(cx, 0));
                }
                return Some(PathId(0));
            }
        }
        if let Some(answer) = protocol.answer(cx, &path, unit, true) {
            self.server_sends(place, answer);
        }
        None
    }

    fn arrive(&mut self, flight: Flight) {
        match flight {
            Flight::ToServer { place, heard, unit } => {
                self.ledger.received(place, &unit.body().to_bytes());
                let path = self.find(place, &unit);
                //= RFC 9000 (8.1): by Handshake packets and by the token of a Retry a client shows where it is. Whoever says either has
                //= heard the server there.
                if let Some(first) = self.paths.first().filter(|first| heard >> first & 1 == 1) {
                    self.ledger.show(first);
                }
                let Some(path) = path else { return };
                self.ends[SERVER].last_arrival = self.now;
                self.with(SERVER, |server, cx| server.handle_packet(cx, path, 0, unit));
                self.drain(SERVER);
                assert!(self.protocols[SERVER].connections() <= 1);
            }
            Flight::ToClient { place, unit } => {
                let link = self.ways.iter().position(|(way, is_up)| *way == place && *is_up);
                let Some(link) = link else {
                    self.has_missed = true;
                    return;
                };
                self.heard |= 1 << place;
                self.ends[CLIENT].last_arrival = self.now;
                self.with(CLIENT, |client, cx| client.handle_packet(cx, PathId(link as u8), 0, unit));
                self.drain(CLIENT);
            }
        }
    }

    /// Goes on until nothing happens before `until`.
    fn run(&mut self, until: Instant) {
        loop {
            let arrival = self.flying.first_key_value().map(|((at, _), _)| *at);
            let deadlines = self.transports.iter().flatten().filter_map(|end| end.poll_timeout());
            let Some(at) = deadlines.chain(arrival).min().filter(|at| *at <= until) else { break };
            self.now = self.now.max(at);
            self.steps += 1;
            assert!(self.steps < ENDLESS, "it never ends");
            if arrival.is_some_and(|arrival| arrival <= self.now) {
                if let Some((_, flight)) = self.flying.pop_first() {
                    self.arrive(flight);
                }
                continue;
            }
            for end in [CLIENT, SERVER] {
                let is_due = |net: &Net| {
                    let at = net.transports[end].as_ref().and_then(|end| end.poll_timeout());
                    at.is_some_and(|at| at <= net.now)
                };
                if is_due(self) {
                    self.with(end, |end, cx| end.handle_timeout(cx));
                    self.drain(end);
                    assert!(!is_due(self), "a deadline that was handled must move on");
                }
            }
        }
        if until != Instant::FAR_FUTURE {
            self.now = self.now.max(until);
        }
    }

    fn wait(&mut self, time: Duration) {
        self.run(self.now + time);
    }

    fn write(&mut self, end: usize, octets: u32) {
        let from = self.ends[end].written;
        let octets = octets.min(MOST_WRITTEN - self.ends[CLIENT].written - self.ends[SERVER].written);
        if octets == 0 || self.ends[end].is_finished {
            return;
        }
        let body = Body::filler(1 + end as u32, from + octets).slice(from as usize, octets as usize);
        let taken = self.with(end, |end, cx| end.write(cx, 0, body));
        if let Some(Ok(taken)) = taken {
            self.ends[end].written += taken as u32;
        }
        self.drain(end);
    }

    fn finish(&mut self, end: usize) {
        self.ends[end].is_finished = true;
        self.with(end, |end, cx| end.finish(cx, 0));
        self.drain(end);
    }

    fn reset(&mut self, end: usize) {
        self.ends[end].closed.get_or_insert(CloseReason::Aborted);
        self.with(end, |end, cx| end.reset(cx));
        self.drain(end);
    }

    /// A link of the client's comes or goes.
    fn change(&mut self, link: usize, is_up: bool) {
        let link = link % self.ways.len();
        self.ways[link].1 = is_up;
        self.with(CLIENT, |client, cx| client.handle_path(cx, PathId(link as u8), is_up));
        self.drain(CLIENT);
    }

    /// The client has a link more.
    fn add(&mut self, which: usize) {
        let link = self.ways.len();
        if self.with(CLIENT, |client, cx| client.add_path(cx, path_by(link))) == Some(true) {
            self.ways.push((place_of(link, which), true));
            // It may be a better one.
            self.change(link, true);
        }
    }

    /// A packet of the client's that a stranger has seen.
    fn remembered(&self, which: u8) -> Option<(Packet, u32)> {
        let (unit, heard) = self.seen.get(usize::from(which) % self.seen.len().max(1))?;
        Some((unit.duplicate(), *heard))
    }

    fn step(&mut self, what: u8, octets: &mut Octets<'_>) {
        let (high, end) = (usize::from(what >> 4), usize::from(what >> 4 & 1));
        let place = |octets: &mut Octets<'_>| usize::from(octets.octet()) % PLACES;
        match what & 15 {
            0..=3 => self.wait(Duration::from_millis(u64::from(octets.octet()) + 1)),
            4 => self.wait(Duration::from_millis(200) * u64::from(octets.octet())),
            5 | 6 => {
                let many = octets.number();
                self.write(end, many.into());
            }
            // The translator of addresses forgets.
            7 => {
                let link = high % self.ways.len();
                self.ways[link].0 = place_of(link, octets.octet().into());
            }
            8 => self.add(octets.octet().into()),
            9 => self.change(high >> 1, high & 1 == 1),
            10 | 11 => {
                let place = place(octets);
                if let Some((unit, heard)) = self.remembered(what >> 4) {
                    self.fly(Duration::ZERO, Flight::ToServer { place, heard, unit });
                }
            }
            // As before, with some octets in the place of others, or more of them.
            12 => {
                let (place, at) = (place(octets), octets.number());
                let made_up = octets.piece();
                if let Some((unit, heard)) = self.remembered(what >> 4) {
                    let mut said = unit.body().to_bytes().to_vec();
                    let at = usize::from(at).min(said.len());
                    let end = (at + made_up.len()).min(said.len());
                    said.splice(at..end, made_up.iter().copied());
                    self.forge(place, heard, &said);
                }
            }
            13 => {
                let place = place(octets);
                let mut said = octets.piece().to_vec();
                if high & 1 == 1 {
                    said.resize(1200, 0);
                }
                self.forge(place, 0, &said);
            }
            14 => self.finish(end),
            _ if high >= 14 => self.reset(end),
            _ => {}
        }
    }

    fn forge(&mut self, place: usize, heard: u32, octets: &[u8]) {
        self.is_forged = true;
        let (_, (own, other)) = from_place(place);
        let udp = airloom_wire::udp::Udp { source: other, destination: own, len: 8 + octets.len() as u16 };
        let unit = Packet::build(|out| udp.emit(out), Body::Real(octets.to_vec().into()));
        self.fly(Duration::ZERO, Flight::ToServer { place, heard, unit });
    }
}

impl Net<'_> {
    /// The client comes back to where it was at first, both say a last word, and all comes to an end.
    fn end(&mut self) {
        self.fates = Octets::new(&[]);
        let is_well = |end: &End| end.is_open && end.closed.is_none() && self.now - end.last_arrival < RECENT;
        // Of a client that says nothing more its server cannot know where it is; and noq-proto 1.4.0 gives up on whoever has not answered
        // three challenges in time: nothing is sent there, or where the client was before.
        let speaks = !self.ends[CLIENT].is_finished;
        let are_well = self.ends.iter().all(is_well) && speaks && !self.has_missed && !self.is_forged;
        self.ways[0].0 = self.paths.first().unwrap_or(HOME);
        for link in 0..self.ways.len() {
            self.change(link, link == 0);
        }
        for end in [CLIENT, SERVER] {
            self.write(end, 10);
            self.finish(end);
        }
        if self.is_forged {
            // A forger can make two ends wait for each other for as long as they live.
            self.wait(LONG);
            self.reset(CLIENT);
            self.reset(SERVER);
        }
        self.run(Instant::FAR_FUTURE);
        for end in [CLIENT, SERVER] {
            let End { received, closed, .. } = self.ends[end];
            let all = self.ends[1 - end].written;
            assert!(!are_well || received == all, "{received} of {all}: {closed:?}");
            // What is said last may go by a path of the client's that was asked for and is none any more.
            let may_miss_it = self.probes && end == CLIENT;
            let is_told = closed == Some(CloseReason::Finished) || may_miss_it;
            assert!(!are_well || is_told, "end {end}: {closed:?}");
            let is_whole = received == all || self.is_forged;
            assert!(is_whole || closed != Some(CloseReason::Finished), "{received} of {all}");
            assert!(self.transports[end].is_none(), "the connection of end {end} is not gone");
            assert_eq!(self.protocols[end].connections(), 0, "of end {end} something is left");
        }
    }
}

/// The first octet says how both ends are set, the next ones what the first datagrams meet, and the rest what happens: the client writes,
/// gets another link or loses one, a translator of addresses forgets it, strangers send copies of its packets, or their own.
pub fn quic_moves(octets: &[u8]) {
    play(octets);
}

fn play(octets: &[u8]) -> Net<'_> {
    let mut octets = Octets::new(octets);
    let how = octets.octet();
    let mut net = Net::new(how, octets.piece());
    for _ in 0..MOST_STEPS {
        let Some(what) = octets.next() else { break };
        net.step(what, &mut octets);
    }
    net.end();
    net
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time for the handshake, and for what is said to be heard.
    const OPEN: [u8; 2] = [0, 200];

    fn played(how: u8, happens: &[&[u8]]) -> Net<'static> {
        let input = [&[how, 0][..], &OPEN, &happens.concat(), &OPEN].concat();
        play(Box::leak(input.into_boxed_slice()))
    }

    #[test]
    fn a_client_that_moves_shows_itself_where_it_is() {
        // By a translator that forgets, and by a link more that takes the place of the first one.
        let moves: [(usize, &[&[u8]]); 2] = [(8, &[&[7, 1], &[5, 0, 10]]), (9, &[&[8, 1], &[9]])];
        for how in [0, 1, 4, 8] {
            for (place, happens) in moves {
                let net = played(how, happens);
                assert!(net.ledger.is_shown(place), "{how} {happens:?}");
                assert_eq!(net.ends[SERVER].closed, Some(CloseReason::Finished), "{how} {happens:?}");
            }
        }
    }

    #[test]
    fn who_copies_a_packet_is_asked_and_never_shows_itself() {
        // Of the client's ten octets, of which the original comes later.
        for how in [0, 4] {
            let input =
                [how, 9, 0, 0, 0, 0, 0, 6 + 8 * 5, 6 + 8 * 5, 6 + 8 * 5, 6 + 8 * 5, 0, 200, 5, 0, 10, 0, 200];
            let net = play(&input);
            assert!(net.ledger.sent_to(5) > 0 && !net.ledger.is_shown(5), "{how}");
            assert_eq!(net.ends[SERVER].closed, Some(CloseReason::Finished), "{how}");
        }
    }

    #[test]
    fn invented_octets_draw_no_more_than_they_are() {
        let net = played(0, &[&[13 | 16, 6, 2, 0x40, 7]]);
        assert!(net.ledger.sent_to(6) < 1200 && net.is_forged);
    }
}

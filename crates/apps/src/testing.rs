//! A network of two applications and nothing else: streams with a delay, little room, and faults on demand.
//!
//! The contract of [`Sockets`] is kept to the letter (events come once, stale handles are ignored), so that what
//! works here works over any transport.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use airloom_base::random::Stream;
use airloom_base::record::{Outbox, PageRecord, Record};
use airloom_base::service::{Datagram, WriteError};
use airloom_base::{
    App, Body, CloseReason, Cx, Duration, Instant, SocketEvent, SocketId, Sockets, StreamEvent, StreamKind,
    Summary,
};
use bytes::Bytes;
use smart_default::SmartDefault;

use crate::pages::Object;

/// Address of the first application's host.
pub(crate) const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
/// Address of the second application's host.
pub(crate) const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

const ADDRESSES: [IpAddr; 2] = [CLIENT, SERVER];

/// Random numbers of an application.
pub(crate) fn stream(name: &str) -> Stream {
    Stream::new(1, name)
}

/// Objects with these paths.
pub(crate) fn paths(paths: &[&str]) -> Vec<Object> {
    paths.iter().map(|p| Object::Path((*p).to_owned())).collect()
}

/// Values of a summary by their names.
pub(crate) fn numbers(summary: &BTreeMap<String, f64>, names: &[&str]) -> Vec<f64> {
    names.iter().map(|name| summary[*name]).collect()
}

/// The pages that were recorded.
pub(crate) fn pages(pair: &Pair<impl App, impl App>) -> Vec<PageRecord> {
    let page = |record: &Record| if let Record::Page(page) = record { Some(page.clone()) } else { None };
    pair.records().facts.iter().filter_map(page).collect()
}

enum Happening {
    Event(usize, SocketEvent),
    Arrive(usize, Body),
    Fin(usize),
    Reset(usize),
    Datagram(usize, Datagram),
}

/// An end that does not know of its connection.
const NOWHERE: SocketId = SocketId { slot: u32::MAX, generation: 0, stream: 0 };

#[derive(SmartDefault)]
struct End {
    #[default(NOWHERE)]
    socket: SocketId,
    inbox: VecDeque<Body>,
    held: usize,
    told_readable: bool,
    blocked: bool,
    fin_sent: bool,
    fin_arrived: bool,
    told_finished: bool,
    gone: bool,
    sent: usize,
    /// When the last of them arrives.
    until: Instant,
}

struct Connection {
    ends: [End; 2],
    opener: usize,
    to: SocketAddr,
    /// The connection that this is a stream of, where streams open one by one.
    of: Option<usize>,
    /// How many streams each side has opened, of each kind.
    streams: [[u32; 2]; 2],
}

/// The streams between the two applications, and what may go wrong with them.
pub(crate) struct Net {
    now: Instant,
    records: Outbox,
    agenda: BTreeMap<(Instant, u64), (usize, Happening)>,
    order: u64,
    connections: Vec<Connection>,
    generations: [Vec<(u32, bool)>; 2],
    /// Where each side listens.
    ports: [Vec<u16>; 2],
    /// One-way delay.
    pub(crate) delay: Duration,
    /// Octets a direction of a connection holds, unread ones included.
    pub(crate) room: usize,
    /// At most so many octets arrive at a time.
    pub(crate) chop: usize,
    /// How much later than the one before each further piece of a write arrives.
    pub(crate) pace: Duration,
    /// Streams of a kind that a side may open on a connection.
    pub(crate) most_streams: u32,
    /// Connections (by number) that get no answer from the server's port.
    pub(crate) refused: BTreeSet<usize>,
    /// Connections that are reset once the server has sent so many octets.
    pub(crate) cut: BTreeMap<usize, usize>,
    /// Sequence numbers of echo requests that are lost.
    pub(crate) lost_echoes: BTreeSet<u16>,
    /// Sequence numbers of echo requests that are answered twice.
    pub(crate) doubled_echoes: BTreeSet<u16>,
    /// What becomes of the n-th UDP datagram, of both sides counted together: how often it arrives, and how much later
    /// than others.
    pub(crate) fate: Box<dyn FnMut(u64) -> (u32, Duration)>,
    /// UDP datagrams so far: who sent them and what.
    pub(crate) datagrams: Vec<(usize, Bytes)>,
}

impl Net {
    fn push(&mut self, after: Duration, connection: usize, what: Happening) {
        self.order += 1;
        self.agenda.insert((self.now + after, self.order), (connection, what));
    }
    fn find(&self, side: usize, socket: SocketId) -> Option<usize> {
        let found = self.connections.iter().rposition(|c| c.ends[side].socket == socket)?;
        (!self.connections[found].ends[side].gone).then_some(found)
    }
    fn socket(&mut self, side: usize) -> SocketId {
        let table = &mut self.generations[side];
        let slot = table.iter().position(|(_, used)| !used).unwrap_or_else(|| {
            table.push((0, false));
            table.len() - 1
        });
        table[slot] = (table[slot].0 + 1, true);
        SocketId { slot: slot as u32, generation: table[slot].0, stream: 0 }
    }
    fn release(&mut self, side: usize, connection: usize) {
        let end = &mut self.connections[connection].ends[side];
        if !end.gone {
            end.gone = true;
            end.inbox.clear();
            if self.connections[connection].of.is_none() {
                let slot = self.connections[connection].ends[side].socket.slot;
                if let Some(entry) = self.generations[side].get_mut(slot as usize) {
                    entry.1 = false;
                }
            }
        }
        for stream in 0..self.connections.len() {
            if self.connections[stream].of == Some(connection) {
                self.connections[stream].ends[side].gone = true;
            }
        }
    }
    /// The connection itself of a socket, whichever its stream.
    fn connection(&self, side: usize, socket: SocketId) -> Option<usize> {
        let found = self.find(side, socket)?;
        Some(self.connections[found].of.unwrap_or(found))
    }
    /// Both directions are finished: it is over.
    fn settle(&mut self, connection: usize) {
        if self.connections[connection].of.is_some() {
            return;
        }
        for side in 0..2 {
            let end = &self.connections[connection].ends[side];
            if end.fin_sent && end.told_finished && !end.gone {
                let closed = SocketEvent::Closed(CloseReason::Finished);
                self.push(Duration::ZERO, connection, Happening::Event(side, closed));
            }
        }
    }
    fn tell_finished(&mut self, side: usize, connection: usize) {
        let end = &mut self.connections[connection].ends[side];
        if end.fin_arrived && end.inbox.is_empty() && !end.told_finished && !end.gone {
            end.told_finished = true;
            self.push(Duration::ZERO, connection, Happening::Event(side, SocketEvent::Finished));
        }
    }
    /// A datagram of a stranger arrives at a side.
    pub(crate) fn arrive(&mut self, side: usize, datagram: Datagram) {
        self.push(Duration::ZERO, 0, Happening::Datagram(side, datagram));
    }
    /// Connections opened so far.
    pub(crate) fn opened(&self) -> usize {
        self.connections.iter().filter(|c| c.of.is_none()).count()
    }
    /// Connections that still exist at a side.
    pub(crate) fn alive(&self, side: usize) -> usize {
        self.connections
            .iter()
            .filter(|c| c.of.is_none() && !c.ends[side].gone && c.ends[side].socket != NOWHERE)
            .count()
    }
}

struct Side<'a> {
    net: &'a mut Net,
    side: usize,
}

impl Sockets for Side<'_> {
    fn connect(&mut self, _: &mut Cx, to: SocketAddr) -> SocketId {
        let socket = self.net.socket(self.side);
        let number = self.net.connections.len();
        let mut ends = [End::default(), End::default()];
        ends[self.side].socket = socket;
        self.net.connections.push(Connection { ends, opener: self.side, to, of: None, streams: [[0; 2]; 2] });
        let refused =
            self.net.refused.contains(&number) || !self.net.ports[1 - self.side].contains(&to.port());
        let event = if refused { SocketEvent::Closed(CloseReason::Refused) } else { SocketEvent::Opened };
        self.net.push(self.net.delay * 2, number, Happening::Event(self.side, event));
        socket
    }
    fn write(&mut self, _: &mut Cx, socket: SocketId, body: Body) -> Result<usize, WriteError> {
        let Some(number) = self.net.find(self.side, socket) else { return Err(WriteError::Closed) };
        let offered = body.len();
        let (room, cut) = (self.net.room, self.net.cut.get(&number).copied());
        let peer = 1 - self.side;
        let connection = &mut self.net.connections[number];
        assert!(!connection.ends[self.side].fin_sent, "wrote after finish");
        let taken = body.len().min(room.saturating_sub(connection.ends[peer].held));
        connection.ends[peer].held += taken;
        connection.ends[self.side].blocked = taken < body.len();
        connection.ends[self.side].sent += taken;
        let mut body = body.slice(0, taken);
        let cut = cut.filter(|limit| self.side == 1 && connection.ends[1].sent >= *limit);
        let is_cut = cut.is_some();
        if let Some(limit) = cut {
            let over = connection.ends[1].sent - limit;
            body = body.slice(0, taken.saturating_sub(over));
        }
        let mut after = self.net.delay;
        while !body.is_empty() {
            let piece = body.split_to(self.net.chop);
            self.net.push(after, number, Happening::Arrive(peer, piece));
            self.net.connections[number].ends[self.side].until = self.net.now + after;
            after += self.net.pace;
        }
        if is_cut {
            self.net.cut.remove(&number);
            self.net.push(self.net.delay, number, Happening::Reset(0));
            self.net.push(self.net.delay, number, Happening::Reset(1));
        }
        WriteError::or_taken(taken, offered)
    }
    fn read(&mut self, _: &mut Cx, socket: SocketId, max: usize) -> Option<Body> {
        let number = self.net.find(self.side, socket)?;
        let end = &mut self.net.connections[number].ends[self.side];
        let first = end.inbox.front_mut()?;
        if max == 0 {
            return None;
        }
        let body = first.split_to(max);
        if first.is_empty() {
            end.inbox.pop_front();
        }
        end.told_readable = !end.inbox.is_empty();
        end.held -= body.len();
        let writer = &mut self.net.connections[number].ends[1 - self.side];
        if std::mem::take(&mut writer.blocked) {
            let event = Happening::Event(1 - self.side, SocketEvent::Writable);
            self.net.push(self.net.delay, number, event);
        }
        self.net.tell_finished(self.side, number);
        Some(body)
    }
    fn unacknowledged(&self, socket: SocketId) -> u64 {
        let Some(number) = self.net.find(self.side, socket) else { return 0 };
        let peer = &self.net.connections[number].ends[1 - self.side];
        (peer.held - peer.inbox.iter().map(Body::len).sum::<usize>()) as u64
    }
    fn local(&self, socket: SocketId) -> Option<SocketAddr> {
        let number = self.net.find(self.side, socket)?;
        let connection = &self.net.connections[number];
        // As `Accepted` has it: a connection comes from a port of its own.
        let is_opener = connection.opener == self.side;
        let port = if is_opener { 40_000 + number as u16 } else { connection.to.port() };
        Some(SocketAddr::new(ADDRESSES[self.side], port))
    }
    fn finish(&mut self, _: &mut Cx, socket: SocketId) {
        let Some(number) = self.net.find(self.side, socket) else { return };
        let end = &mut self.net.connections[number].ends[self.side];
        if !std::mem::replace(&mut end.fin_sent, true) {
            let after = self.net.delay.max(end.until.since(self.net.now));
            self.net.push(after, number, Happening::Fin(1 - self.side));
            self.net.settle(number);
        }
    }
    fn reset(&mut self, _: &mut Cx, socket: SocketId) {
        let Some(number) = self.net.find(self.side, socket) else { return };
        self.net.release(self.side, number);
        self.net.push(self.net.delay, number, Happening::Reset(1 - self.side));
    }
    fn close(&mut self, _: &mut Cx, socket: SocketId, code: u64) {
        let Some(number) = self.net.connection(self.side, socket) else { return };
        self.net.release(self.side, number);
        let closed = SocketEvent::Closed(CloseReason::Application(code));
        self.net.push(self.net.delay, number, Happening::Event(1 - self.side, closed));
    }
    fn open_stream(&mut self, _: &mut Cx, socket: SocketId, kind: StreamKind) -> Option<SocketId> {
        let of = self.net.connection(self.side, socket)?;
        let (side, peer) = (self.side, 1 - self.side);
        let Connection { opener, to, .. } = self.net.connections[of];
        if self.net.connections[of].ends[peer].socket == NOWHERE {
            return None;
        }
        let opened = &mut self.net.connections[of].streams[side][kind as usize];
        if *opened >= self.net.most_streams {
            return None;
        }
        //= RFC 9000 (2.1): who opened a stream and which ways it goes is in its number.
        let stream = 4 * *opened + u32::from(side != opener) + 2 * kind as u32;
        *opened += 1;
        let mut ends = [End::default(), End::default()];
        for (side, end) in ends.iter_mut().enumerate() {
            end.socket = self.net.connections[of].ends[side].socket.with_stream(stream);
        }
        let number = self.net.connections.len();
        self.net.connections.push(Connection { ends, opener, to, of: Some(of), streams: [[0; 2]; 2] });
        let event = Happening::Event(peer, SocketEvent::Stream(StreamEvent::Opened));
        self.net.push(self.net.delay, number, event);
        Some(socket.with_stream(stream))
    }
    fn reset_stream(&mut self, _: &mut Cx, socket: SocketId, code: u64) {
        let Some(number) = self.net.find(self.side, socket) else { return };
        let event = Happening::Event(1 - self.side, SocketEvent::Stream(StreamEvent::Reset(code)));
        self.net.push(self.net.delay, number, event);
    }
    fn stop(&mut self, _: &mut Cx, socket: SocketId, code: u64) {
        let Some(number) = self.net.find(self.side, socket) else { return };
        let event = Happening::Event(1 - self.side, SocketEvent::Stream(StreamEvent::Stopped(code)));
        self.net.push(self.net.delay, number, event);
    }
    fn send_datagram(&mut self, _: &mut Cx, datagram: Datagram) {
        if let Datagram::Echo { remote, seq, body, .. } = datagram {
            let copies = match (self.net.lost_echoes.contains(&seq), self.net.doubled_echoes.contains(&seq)) {
                (true, _) => 0,
                (_, true) => 2,
                _ => 1,
            };
            for _ in 0..copies {
                let reply = Datagram::Echo { remote, ident: 7, seq, body: body.clone() };
                self.net.push(self.net.delay * 2, 0, Happening::Datagram(0, reply));
            }
        } else if let Datagram::Udp { local_port, remote, body } = datagram {
            let (copies, later) = (self.net.fate)(self.net.datagrams.len() as u64);
            self.net.datagrams.push((self.side, body.to_bytes()));
            if remote.ip() == ADDRESSES[1 - self.side] {
                let from = SocketAddr::new(ADDRESSES[self.side], local_port);
                for _ in 0..copies {
                    let arrival =
                        Datagram::Udp { local_port: remote.port(), remote: from, body: body.clone() };
                    let happening = Happening::Datagram(1 - self.side, arrival);
                    self.net.push(self.net.delay + later, 0, happening);
                }
            }
        }
    }
    fn flow(&self, socket: SocketId) -> u32 {
        self.net.find(self.side, socket).map_or(0, |n| n as u32 + 1)
    }
}

/// Two applications and the network between them; the first one opens connections to the second.
pub(crate) struct Pair<A, B> {
    /// The client.
    pub(crate) a: A,
    /// The server.
    pub(crate) b: B,
    /// What is between them.
    pub(crate) net: Net,
    started: bool,
}

impl<A: App, B: App> Pair<A, B> {
    /// 10 ms one way, room for 64 kB, no faults.
    pub(crate) fn new(a: A, b: B) -> Self {
        let mut records = Outbox::default();
        records.ask_facts(true, false);
        let net = Net {
            now: Instant::ZERO,
            records,
            agenda: BTreeMap::new(),
            order: 0,
            connections: Vec::new(),
            generations: [Vec::new(), Vec::new()],
            ports: [a.stream_ports(), b.stream_ports()],
            delay: Duration::from_millis(10),
            room: 64_000,
            chop: usize::MAX,
            pace: Duration::ZERO,
            most_streams: u32::MAX,
            refused: BTreeSet::new(),
            cut: BTreeMap::new(),
            lost_echoes: BTreeSet::new(),
            doubled_echoes: BTreeSet::new(),
            fate: Box::new(|_| (1, Duration::ZERO)),
            datagrams: Vec::new(),
        };
        Pair { a, b, net, started: false }
    }

    /// Asks for the objects of pages.
    pub(crate) fn ask_objects(&mut self) {
        self.net.records.ask_objects(true);
    }

    /// Lets everything happen that happens until `end`, and says when the last thing did.
    pub(crate) fn run_until(&mut self, end: Instant) -> Instant {
        let mut records = std::mem::take(&mut self.net.records);
        if !std::mem::replace(&mut self.started, true) {
            let mut cx = Cx { now: self.net.now, records: &mut records };
            self.a.start(&mut cx, &mut Side { net: &mut self.net, side: 0 });
            self.b.start(&mut cx, &mut Side { net: &mut self.net, side: 1 });
        }
        let mut steps = 0;
        loop {
            steps += 1;
            assert!(steps < 5_000_000, "the applications never come to rest");
            let event = self.net.agenda.first_key_value().map(|(at, _)| at.0);
            let timers = [self.a.poll_timeout(), self.b.poll_timeout()];
            let Some(next) = [event, timers[0], timers[1]].into_iter().flatten().min() else { break };
            if next > end {
                break;
            }
            self.net.now = self.net.now.max(next);
            let mut cx = Cx { now: self.net.now, records: &mut records };
            if event == Some(next) {
                let (_, (connection, what)) = self.net.agenda.pop_first().expect("it was just seen");
                self.happen(&mut cx, connection, what);
            } else if timers[0] == Some(next) {
                self.a.handle_timeout(&mut cx, &mut Side { net: &mut self.net, side: 0 });
            } else {
                self.b.handle_timeout(&mut cx, &mut Side { net: &mut self.net, side: 1 });
            }
        }
        self.net.records = records;
        self.net.now
    }

    /// Lets everything happen.
    pub(crate) fn run(&mut self) -> Instant {
        self.run_until(Instant::ZERO + Duration::from_secs(3600))
    }

    /// The same once everything has happened.
    pub(crate) fn ran(mut self) -> Self {
        self.run();
        self
    }

    /// Results of the client.
    pub(crate) fn summary(&self) -> BTreeMap<String, f64> {
        let mut summary = Summary::default();
        self.a.summarise(&mut summary);
        summary.values.into_iter().collect()
    }

    /// Results of the server.
    pub(crate) fn server_summary(&self) -> BTreeMap<String, f64> {
        let mut summary = Summary::default();
        self.b.summarise(&mut summary);
        summary.values.into_iter().collect()
    }

    /// What was recorded.
    pub(crate) fn records(&self) -> &Outbox {
        &self.net.records
    }

    fn tell(&mut self, cx: &mut Cx, side: usize, connection: usize, event: SocketEvent) {
        let end = &self.net.connections[connection].ends[side];
        let socket = end.socket;
        if end.gone {
            return;
        }
        if matches!(event, SocketEvent::Closed(_)) {
            self.net.release(side, connection);
        }
        let mut net = Side { net: &mut self.net, side };
        match side {
            0 => self.a.handle_event(cx, &mut net, socket, event),
            _ => self.b.handle_event(cx, &mut net, socket, event),
        }
    }

    fn happen(&mut self, cx: &mut Cx, connection: usize, what: Happening) {
        match what {
            Happening::Event(side, SocketEvent::Opened) => {
                let peer = 1 - side;
                let socket = self.net.socket(peer);
                self.net.connections[connection].ends[peer].socket = socket;
                let port = self.net.connections[connection].to.port();
                let from = SocketAddr::new(ADDRESSES[side], 40_000 + connection as u16);
                let at = SocketAddr::new(ADDRESSES[peer], port);
                self.tell(cx, peer, connection, SocketEvent::Accepted { at, from });
                self.tell(cx, side, connection, SocketEvent::Opened);
            }
            Happening::Event(side, event) => {
                self.tell(cx, side, connection, event);
                self.net.settle(connection);
            }
            Happening::Arrive(side, body) => {
                let end = &mut self.net.connections[connection].ends[side];
                if end.gone {
                    return;
                }
                let octets = body.len() as u32;
                end.inbox.push_back(body);
                if !std::mem::replace(&mut end.told_readable, true) {
                    self.tell(cx, side, connection, SocketEvent::Readable(octets));
                }
            }
            Happening::Fin(side) => {
                self.net.connections[connection].ends[side].fin_arrived = true;
                self.net.tell_finished(side, connection);
            }
            Happening::Reset(side) => {
                self.tell(cx, side, connection, SocketEvent::Closed(CloseReason::Reset));
            }
            Happening::Datagram(side, datagram) => {
                let mut net = Side { net: &mut self.net, side };
                match side {
                    0 => self.a.handle_datagram(cx, &mut net, datagram),
                    _ => self.b.handle_datagram(cx, &mut net, datagram),
                }
            }
        }
    }
}

/// A client that says given octets and writes down what it hears.
pub(crate) struct Speaker {
    to: SocketAddr,
    say: Bytes,
    said: usize,
    /// Finish our side once all is said?
    pub(crate) hang_up: bool,
    /// What was heard.
    pub(crate) heard: Vec<u8>,
    /// How it ended.
    pub(crate) end: Option<CloseReason>,
    /// The peer finished.
    pub(crate) finished: bool,
}

impl Speaker {
    /// Says `octets` to the server's `port`.
    pub(crate) fn new(port: u16, octets: impl Into<Bytes>) -> Self {
        Speaker {
            to: SocketAddr::new(SERVER, port),
            say: octets.into(),
            said: 0,
            hang_up: false,
            heard: Vec::new(),
            end: None,
            finished: false,
        }
    }
    /// What was heard, as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.heard).into_owned()
    }
    fn speak(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        self.said += net.write(cx, socket, Body::Real(self.say.slice(self.said..))).unwrap_or(0);
        if self.said == self.say.len() && self.hang_up {
            net.finish(cx, socket);
        }
    }
}

impl App for Speaker {
    fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        net.connect(cx, self.to);
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        match event {
            SocketEvent::Opened | SocketEvent::Writable if self.said < self.say.len() => {
                self.speak(cx, net, socket);
            }
            SocketEvent::Readable(_) => {
                while let Some(body) = net.read(cx, socket, usize::MAX) {
                    self.heard.extend_from_slice(&body.to_bytes());
                }
            }
            SocketEvent::Finished => {
                self.finished = true;
                net.finish(cx, socket);
            }
            SocketEvent::Closed(reason) => self.end = Some(reason),
            _ => {}
        }
    }
    fn is_done(&self) -> bool {
        self.end.is_some()
    }
}

/// A server that answers every connection with given octets, after so many octets have been heard, and then
/// (if asked to) hangs up.
pub(crate) struct Answerer {
    answers: Vec<Bytes>,
    after: usize,
    hang_up: bool,
    connections: BTreeMap<SocketId, (usize, usize, bool)>,
    accepted: usize,
    /// What each connection said, in order of accepting.
    pub(crate) heard: Vec<Vec<u8>>,
}

impl Answerer {
    /// Connection `n` is answered with `answers[n]` (the last one again for those that follow).
    pub(crate) fn new(answers: &[&[u8]], after: usize, hang_up: bool) -> Self {
        Answerer {
            answers: answers.iter().map(|a| Bytes::copy_from_slice(a)).collect(),
            after,
            hang_up,
            connections: BTreeMap::new(),
            accepted: 0,
            heard: Vec::new(),
        }
    }
}

impl App for Answerer {
    fn stream_ports(&self) -> Vec<u16> {
        vec![80]
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        match event {
            SocketEvent::Accepted { .. } => {
                self.connections.insert(socket, (self.accepted, 0, false));
                self.heard.push(Vec::new());
                self.accepted += 1;
            }
            SocketEvent::Readable(_) | SocketEvent::Writable => {
                let Some((number, said, finished)) = self.connections.get_mut(&socket) else { return };
                while let Some(body) = net.read(cx, socket, usize::MAX) {
                    self.heard[*number].extend_from_slice(&body.to_bytes());
                }
                if self.heard[*number].len() >= self.after && !*finished {
                    let answer = &self.answers[(*number).min(self.answers.len() - 1)];
                    *said += net.write(cx, socket, Body::Real(answer.slice(*said..))).unwrap_or(0);
                    if *said == answer.len() && self.hang_up {
                        *finished = true;
                        net.finish(cx, socket);
                    }
                }
            }
            SocketEvent::Finished => net.finish(cx, socket),
            SocketEvent::Closed(_) => {
                self.connections.remove(&socket);
            }
            SocketEvent::Asked { .. } | SocketEvent::Opened | SocketEvent::Stream(_) => {}
        }
    }
}

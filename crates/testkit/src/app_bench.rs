//! One application on a bench: its sockets are in memory, and whoever tests it is the world around.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use airloom_base::service::{Datagram, WriteError};
use airloom_base::{App, Body, Cx, Duration, Instant, Outbox, SocketEvent, SocketId, Sockets};

/// What happened to a socket.
#[derive(Debug, Default)]
pub struct Wire {
    /// What the application is to read.
    pub inbox: VecDeque<Vec<u8>>,
    /// What it has written.
    pub heard: Vec<u8>,
    /// How much more of its writes is taken; all if not said.
    pub room: Option<usize>,
    /// Why nothing is taken at all.
    pub refuses: Option<WriteError>,
    /// It has ended its side.
    pub finished: bool,
    /// It has ended all at once.
    pub reset: bool,
    /// The world has opened it: for the test to note.
    pub is_open: bool,
    /// The world has ended its side: for the test to note.
    pub has_ended: bool,
}

/// Sockets in memory.
#[derive(Debug, Default)]
pub struct Memory {
    /// By slot.
    pub wires: BTreeMap<u32, Wire>,
    /// Connections that the application has opened, and where to.
    pub connected: Vec<(SocketId, SocketAddr)>,
    /// What it has sent.
    pub datagrams: Vec<Datagram>,
}

impl Memory {
    /// One more.
    pub fn socket(&mut self) -> SocketId {
        let slot = self.wires.len() as u32 + 1;
        self.wires.insert(slot, Wire::default());
        SocketId { slot, generation: 1, stream: 0 }
    }

    /// What happened to this one.
    ///
    /// # Panics
    ///
    /// Where it is none of these.
    pub fn wire(&mut self, socket: SocketId) -> &mut Wire {
        self.wires.get_mut(&socket.slot).expect("a socket of ours")
    }
}

impl Sockets for Memory {
    fn connect(&mut self, _: &mut Cx, to: SocketAddr) -> SocketId {
        let socket = self.socket();
        self.connected.push((socket, to));
        socket
    }
    fn write(&mut self, _: &mut Cx, socket: SocketId, body: Body) -> Result<usize, WriteError> {
        let wire = self.wire(socket);
        assert!(!wire.finished && !wire.reset, "written after the end");
        if let Some(why) = wire.refuses {
            return Err(why);
        }
        let len = wire.room.map_or(body.len(), |room| room.min(body.len()));
        wire.room = wire.room.map(|room| room - len);
        wire.heard.extend_from_slice(&body.to_bytes()[..len]);
        WriteError::or_taken(len, body.len())
    }
    fn read(&mut self, _: &mut Cx, socket: SocketId, max: usize) -> Option<Body> {
        let wire = self.wire(socket);
        let mut first = wire.inbox.pop_front()?;
        if first.len() > max {
            wire.inbox.push_front(first.split_off(max));
        }
        Some(Body::Real(first.into()))
    }
    fn unacknowledged(&self, _: SocketId) -> u64 {
        0
    }
    fn finish(&mut self, _: &mut Cx, socket: SocketId) {
        self.wire(socket).finished = true;
    }
    fn reset(&mut self, _: &mut Cx, socket: SocketId) {
        self.wire(socket).reset = true;
    }
    fn send_datagram(&mut self, _: &mut Cx, datagram: Datagram) {
        self.datagrams.push(datagram);
    }
    fn flow(&self, _: SocketId) -> u32 {
        0
    }
}

/// An application with its clock, its sockets and its records.
pub struct AppBench<A> {
    /// The application.
    pub app: A,
    /// Its sockets.
    pub net: Memory,
    /// The time of the last call.
    pub now: Instant,
    /// What it has recorded.
    pub records: Outbox,
    /// So many of its connections were looked at.
    seen: usize,
}

impl<A: App> AppBench<A> {
    /// Around an application, which is not told to start.
    pub fn new(app: A) -> AppBench<A> {
        AppBench { app, net: Memory::default(), now: Instant::ZERO, records: Outbox::default(), seen: 0 }
    }

    /// Calls it at this moment.
    pub fn call<T>(&mut self, call: impl FnOnce(&mut A, &mut Cx, &mut Memory) -> T) -> T {
        call(&mut self.app, &mut Cx { now: self.now, records: &mut self.records }, &mut self.net)
    }

    /// Something happens to a socket.
    pub fn event(&mut self, socket: SocketId, event: SocketEvent) {
        self.call(|app, cx, net| app.handle_event(cx, net, socket, event));
    }

    /// Somebody opens a connection to the application's host, or through it.
    pub fn accept(&mut self, from: SocketAddr, at: SocketAddr) -> SocketId {
        let socket = self.net.socket();
        self.event(socket, SocketEvent::Accepted { at, from });
        socket
    }

    /// The next connection that the application opens is open.
    ///
    /// # Panics
    ///
    /// Where it has opened no more.
    pub fn opened(&mut self) -> SocketId {
        let (socket, _) = *self.net.connected.get(self.seen).expect("one more connection");
        self.seen += 1;
        self.event(socket, SocketEvent::Opened);
        socket
    }

    /// Has the application opened connections that nobody has looked at?
    pub fn opens(&self) -> bool {
        self.net.connected.len() > self.seen
    }

    /// Octets arrive at a socket.
    pub fn say(&mut self, socket: SocketId, octets: impl AsRef<[u8]>) {
        self.net.wire(socket).inbox.push_back(octets.as_ref().to_vec());
        self.event(socket, SocketEvent::Readable(1));
    }

    /// What was written to a socket since it was last asked.
    pub fn heard(&mut self, socket: SocketId) -> String {
        let heard = std::mem::take(&mut self.net.wire(socket).heard);
        String::from_utf8_lossy(&heard).into_owned()
    }

    /// So many seconds pass.
    pub fn wait(&mut self, seconds: u64) {
        self.run_until(self.now + Duration::from_secs(seconds));
    }

    /// Time passes until this moment.
    pub fn run_until(&mut self, until: Instant) {
        while let Some(at) = self.app.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.call(|app, cx, net| app.handle_timeout(cx, net));
        }
        self.now = until;
    }
}

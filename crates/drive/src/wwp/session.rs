//! One connection over a UDP socket, in the time of the system.
#![expect(
    clippy::disallowed_types,
    reason = "this is where the machine meets the system's clock and sockets"
)]

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use airloom_base::record::Outbox;
use airloom_base::service::{Identity, Path, WriteError};
use airloom_base::units::Octets;
use airloom_base::{Body, CloseReason, Cx, Instant, Packet, PathId, Protocol, Transport, TransportEvent};
use airloom_transports::wwp::{Config, Wwp};
use bytes::Bytes;

use super::envelope::{self, Greeting, SEAL};
use super::failure::Failure;
use super::socket::{GREET_AGAIN, LARGEST, SHORTEST, greet, is_passing};
use crate::secret;

/// Largest IP datagram, less UDP's header and the seal.
const MTU: u16 = 1500 - 8 - SEAL as u16;
/// Datagrams that are read before what they led to is sent: a wave.
const BURST: usize = 256;
/// The one connection of a session.
const PORTS: (u16, u16) = (1, 1);

/// The settings of both ends: large segments and waves, since a wave is all that is under way in a round trip. Beside its own
/// time a wave takes a round trip, and the time until both programs get their turn on a busy machine: these 720 kB fill nine
/// tenths of 100 Mbit/s where that is at most 4 ms. The buffers hold the next wave while one is under way. Each level is twice
/// the one before, so that at least half of what a short queue takes is used.
fn settings(patience: Duration) -> Config {
    let give_up = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX / 4);
    Config {
        segment: Octets(1400),
        waves: vec![16, 32, 64, 128, 256, 512],
        hold: airloom_base::Duration::ZERO,
        // What a busy machine may be late by. A receiver that got its turn late for the first segment of one wave would find all
        // later ones slow.
        granularity: airloom_base::Duration::from_millis(10),
        send_buffer: Octets(2 << 20),
        receive_buffer: Octets(2 << 20),
        give_up: airloom_base::Duration::from_nanos(give_up.max(1)),
        // UDP has them.
        ports: false,
        ..Config::default()
    }
}

/// A connection with one peer.
#[derive(getset::CopyGetters)]
pub struct Session {
    socket: UdpSocket,
    /// Who is at the other end.
    #[getset(get_copy = "pub")]
    peer: SocketAddr,
    name: u64,
    connection: Box<dyn Transport>,
    protocol: Wwp,
    began: std::time::Instant,
    records: Outbox,
    heard: std::time::Instant,
    /// When datagrams were looked for last.
    looked: std::time::Instant,
    patience: Duration,
    buffer: Vec<u8>,
    /// It was opened from here.
    opener: bool,
    open: bool,
    end: Option<CloseReason>,
    finished: bool,
    gone: bool,
}

impl Session {
    /// Opens a session with whoever answers first at one of these addresses. `watch` is asked now and then whether to go on.
    ///
    /// # Errors
    /// Nobody answered within `patience`, or as the system says.
    pub fn connect(
        to: &[SocketAddr],
        patience: Duration,
        watch: &mut dyn FnMut() -> bool,
    ) -> Result<Session, Failure> {
        let (socket, to, name) = greet(to, patience, watch)?;
        let mut protocol = protocol(patience)?;
        let mut records = Outbox::default();
        let mut cx = Cx { now: Instant::ZERO, records: &mut records };
        let path = path(&socket, to)?;
        let mut connection = protocol.open(&mut cx, path, PORTS, Identity::default());
        connection.connect(&mut cx);
        let mut session = Session::new(socket, to, name, connection, protocol, patience, true);
        while !session.open {
            session.turn(GREET_AGAIN)?;
            if !watch() {
                return Err(io::Error::from(ErrorKind::Interrupted).into());
            }
        }
        Ok(session)
    }

    /// The session that this first unit opens, if it does.
    pub(super) fn accepted(
        socket: &UdpSocket,
        from: SocketAddr,
        name: u64,
        unit: &[u8],
        patience: Duration,
    ) -> Result<Option<Session>, Failure> {
        let mut protocol = protocol(patience)?;
        let mut records = Outbox::default();
        let mut cx = Cx { now: Instant::ZERO, records: &mut records };
        let path = path(socket, from)?;
        let Some(packet) = packet(unit, &protocol) else { return Ok(None) };
        let Some(mut connection) = protocol.accept(&mut cx, path, PORTS, Identity::default(), &packet) else {
            return Ok(None);
        };
        connection.handle_packet(&mut cx, PathId(0), 0, packet);
        let mut session =
            Session::new(socket.try_clone()?, from, name, connection, protocol, patience, false);
        session.drain();
        Ok(Some(session))
    }

    fn new(
        socket: UdpSocket,
        peer: SocketAddr,
        name: u64,
        connection: Box<dyn Transport>,
        protocol: Wwp,
        patience: Duration,
        opener: bool,
    ) -> Session {
        let now = std::time::Instant::now();
        Session {
            socket,
            peer,
            name,
            connection,
            protocol,
            began: now,
            records: Outbox::default(),
            heard: now,
            looked: now,
            patience,
            buffer: vec![0; LARGEST],
            opener,
            open: false,
            end: None,
            finished: false,
            gone: false,
        }
    }

    /// Octets written that the peer has not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.connection.unacknowledged(0)
    }

    /// Segments sent, and those of them that were sent again.
    pub fn segments(&self) -> (u64, u64) {
        let facts = self.connection.facts();
        (facts.segments, facts.resent)
    }

    /// Writes as much as there is room for, waiting for room at most for `wait`; returns how many octets that was.
    ///
    /// # Errors
    /// The session has ended, or our side of it.
    pub fn write(&mut self, octets: &[u8], wait: Duration) -> Result<usize, Failure> {
        let end = std::time::Instant::now() + wait;
        loop {
            let body = Body::Real(Bytes::copy_from_slice(octets));
            let cx = &mut Cx { now: self.now(), records: &mut self.records };
            let taken = self.connection.write(cx, 0, body);
            self.drain();
            let left = end.saturating_duration_since(std::time::Instant::now());
            if let Ok(taken) = taken {
                // What was answered meanwhile must not wait for the next call.
                self.turn(Duration::ZERO)?;
                return Ok(taken);
            }
            self.fails()?;
            if taken != Err(WriteError::Blocked) {
                // However long it is waited: there will be no room.
                return Err(Failure::Finished);
            }
            if left.is_zero() {
                return Ok(0);
            }
            self.turn(left)?;
        }
    }

    /// Reads what has arrived in order, waiting at most for `wait`. `None`: nothing came; no octets: the peer has finished.
    ///
    /// # Errors
    /// The session has ended before the peer finished.
    pub fn read(&mut self, max: usize, wait: Duration) -> Result<Option<Bytes>, Failure> {
        let end = std::time::Instant::now() + wait;
        loop {
            let mut cx = Cx { now: self.now(), records: &mut self.records };
            if let Some(body) = self.connection.read(&mut cx, 0, max.max(1)) {
                self.drain();
                return Ok(Some(body.to_bytes()));
            }
            if self.finished {
                return Ok(Some(Bytes::new()));
            }
            self.fails()?;
            let left = end.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                self.turn(Duration::ZERO)?;
                return Ok(None);
            }
            self.turn(left)?;
        }
    }

    /// Nothing more will be written.
    pub fn finish(&mut self) {
        self.connection.finish(&mut Cx { now: self.now(), records: &mut self.records }, 0);
        self.drain();
    }

    /// Has everything been said at both ends? Waits for it at most for `wait`.
    ///
    /// # Errors
    /// The session has ended otherwise.
    pub fn is_closed(&mut self, wait: Duration) -> Result<bool, Failure> {
        let end = std::time::Instant::now() + wait;
        while !self.gone {
            self.fails()?;
            let left = end.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            self.turn(left)?;
        }
        Ok(true)
    }

    /// Ends it at once and tells the peer.
    pub fn reset(&mut self) {
        self.connection.reset(&mut Cx { now: self.now(), records: &mut self.records });
        self.drain();
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn fails(&mut self) -> Result<(), Failure> {
        // Time in which nobody listened is not the peer's silence.
        if self.looked.elapsed() > self.patience / 2 {
            self.heard = std::time::Instant::now();
        }
        match self.end {
            None | Some(CloseReason::Finished) if self.heard.elapsed() <= self.patience || self.gone => {
                Ok(())
            }
            None | Some(CloseReason::Finished | CloseReason::TimedOut) => Err(Failure::Silent(self.patience)),
            Some(CloseReason::Refused) => Err(Failure::Refused),
            Some(_) => Err(Failure::Reset),
        }
    }

    /// Waits for datagrams at most for `wait`, or until the machine wants to be called, and does what is to be done.
    fn turn(&mut self, wait: Duration) -> Result<(), Failure> {
        self.drain();
        self.fails()?;
        let due = self
            .connection
            .poll_timeout()
            .map(|at| Duration::from_nanos(at.as_nanos()).saturating_sub(self.began.elapsed()));
        let wait = due.map_or(wait, |due| due.min(wait));
        self.take_datagrams(wait)?;
        let now = self.now();
        if self.connection.poll_timeout().is_some_and(|at| at <= now) {
            self.connection.handle_timeout(&mut Cx { now, records: &mut self.records });
        }
        self.drain();
        Ok(())
    }

    /// All that are there reach the machine before it answers.
    fn take_datagrams(&mut self, wait: Duration) -> Result<(), Failure> {
        self.looked = std::time::Instant::now();
        self.socket.set_nonblocking(wait.is_zero())?;
        if !wait.is_zero() {
            self.socket.set_read_timeout(Some(wait.max(SHORTEST)))?;
        }
        for n in 0..BURST {
            if n == 1 {
                self.socket.set_nonblocking(true)?;
            }
            match self.socket.recv_from(&mut self.buffer) {
                Ok((len, from)) => self.arrives(len, from),
                Err(error) if is_passing(&error) => break,
                Err(error) => return Err(error.into()),
            }
        }
        self.socket.set_nonblocking(false)?;
        Ok(())
    }

    fn arrives(&mut self, len: usize, from: SocketAddr) {
        let datagram = &self.buffer[..len];
        if let Some((Greeting::Hello, nonce)) = envelope::greeted(datagram) {
            if !self.opener {
                let answer = if from == self.peer { Greeting::Welcome(self.name) } else { Greeting::Busy };
                let _ = self.socket.send_to(&envelope::greet(answer, nonce), from);
            }
            return;
        }
        if from != self.peer {
            return;
        }
        let Some(unit) = envelope::open(self.name, datagram) else { return };
        let Some(packet) = packet(unit, &self.protocol) else { return };
        self.heard = std::time::Instant::now();
        let now = self.now();
        if self.gone {
            // A FIN whose answer was lost.
            if let Some(answer) = self.protocol.refuse(&packet) {
                self.transmit(&answer);
            }
            return;
        }
        self.connection.handle_packet(&mut Cx { now, records: &mut self.records }, PathId(0), 0, packet);
    }

    /// Takes what the machine has to tell and to send.
    fn drain(&mut self) {
        loop {
            while let Some(event) = self.connection.poll_event() {
                match event {
                    TransportEvent::Opened => self.open = true,
                    TransportEvent::Finished(_) => self.finished = true,
                    TransportEvent::Closed(reason) => self.end = Some(reason),
                    TransportEvent::Gone => self.gone = true,
                    _ => {}
                }
            }
            let now = self.now();
            let mut cx = Cx { now, records: &mut self.records };
            let Some(unit) = self.connection.poll_transmit(&mut cx) else { break };
            self.transmit(&unit.packet);
        }
    }

    /// Sends a unit under the session's seal. One that the system has no room or way for is lost as others are, and repeated.
    fn transmit(&self, packet: &Packet) {
        let mut datagram = Vec::with_capacity(SEAL + packet.wire_len());
        datagram.resize(SEAL, 0);
        packet.append_to(&mut datagram);
        let sealed = envelope::seal(self.name, &datagram[SEAL..]);
        datagram[..SEAL].copy_from_slice(&sealed);
        let _ = self.socket.send_to(&datagram, self.peer);
    }
}

fn protocol(patience: Duration) -> Result<Wwp, Failure> {
    Wwp::new(settings(patience), secret::key()?.0).map_err(|error| io::Error::other(error.to_string()).into())
}

fn path(socket: &UdpSocket, remote: SocketAddr) -> io::Result<Path> {
    Ok(Path { local: socket.local_addr()?.ip(), remote: remote.ip(), mtu: MTU })
}

/// A unit that arrived; `None` if it is too short for a header.
fn packet(unit: &[u8], protocol: &Wwp) -> Option<Packet> {
    let header = usize::from(protocol.config().header);
    Packet::ingress(Bytes::copy_from_slice(unit), header)
}

//! QUIC on a UDP socket: datagrams to connections and back, and when which of them wants to be woken.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use airloom_content::http::v3;
use airloom_transports::quic::Guard;
use noq_proto::{
    ClientConfig, ConnectError, Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, Event,
    Incoming, ServerConfig, TokenMemoryCache, Transmit, TransportConfig, crypto,
};

use super::clock::{Now, now};
use super::qlog::{Log, Qlog};
use super::socket::Socket;

/// Handshakes that may be under way, unless something else is said.
const UNPROVEN: usize = 64;

/// So many times as many connections as may be open are kept, with those that were closed.
const LEFTOVERS: usize = 4;

/// What both ends keep to in HTTP/3. With a table a request that is like the one before takes some octets instead of hundreds: over
/// a slow uplink the requests of a page are what it waits for.
pub(super) fn options() -> v3::Options {
    v3::Options::with_table(4096, 16)
}

/// So often, and for so long each time, connections that are ended are waited for.
const FAREWELLS: u32 = 20;
const FAREWELL: Duration = Duration::from_millis(50);

/// Datagrams at a time that say that a connection is over.
const FAREWELL_DATAGRAMS: usize = 2;

/// A connection with what is spoken on it.
pub(super) trait Talk {
    /// The connection.
    fn quic(&mut self) -> &mut Connection;
    /// QUIC has something to tell.
    fn happened(&mut self, event: Event);
    /// All that it has to tell. True: there was something.
    fn listen(&mut self) -> bool {
        let mut heard = false;
        while let Some(event) = self.quic().poll() {
            heard = true;
            self.happened(event);
        }
        heard
    }
    /// Writes what streams have room for. True: something was done.
    fn write(&mut self) -> bool;
    /// Writes down what it does from now on, if there are words for it.
    fn keep_log(&mut self) {}
    /// Passes on what it has written down.
    fn tell(&mut self, _log: &Log) {}
}

/// What is kept of a connection.
pub(super) struct Kept<L> {
    pub(super) talk: L,
    guard: Guard,
    /// What is written down of it.
    log: Option<Log>,
    /// When it wants to be woken.
    alarm: Option<Now>,
}

impl<L: Talk> Kept<L> {
    fn new(mut talk: L, guard: Guard, log: Option<Log>) -> Kept<L> {
        if log.is_some() {
            talk.keep_log();
        }
        Kept { talk, guard, log, alarm: None }
    }
}

/// What is spoken on a new connection.
pub(super) type Made<L> = Box<dyn Fn(Connection) -> L>;

/// What a client's connections are made from.
#[derive(Clone)]
pub(super) struct Opens {
    tls: Arc<dyn crypto::ClientConfig>,
    transport: Arc<TransportConfig>,
    /// What servers know it by again.
    tokens: Arc<TokenMemoryCache>,
}

impl Opens {
    pub(super) fn new(tls: impl crypto::ClientConfig + 'static, transport: TransportConfig) -> Opens {
        Opens { tls: Arc::new(tls), transport: Arc::new(transport), tokens: Arc::default() }
    }
}

/// A socket with the connections on it.
pub(super) struct Quic<L> {
    socket: Socket,
    endpoint: Endpoint,
    server: Option<Arc<ServerConfig>>,
    pub(super) links: BTreeMap<usize, Kept<L>>,
    /// When which of them wants to be woken.
    alarms: BTreeSet<(Now, usize)>,
    /// Those that have a turn next: one with nothing to do costs nothing.
    touched: BTreeSet<usize>,
    qlog: Option<Qlog>,
    made: Made<L>,
    /// Connections beyond this number open at once are refused.
    most: usize,
    /// Handshakes that may be under way before an address has to prove that it is one (Retry).
    pub(super) unproven: usize,
    buffer: Vec<u8>,
}

impl<L: Talk> Quic<L> {
    /// With this socket; takes connections if `server` says how. What becomes of their packets is told to `qlog`.
    pub(super) fn new(
        socket: Socket,
        server: Option<ServerConfig>,
        most: usize,
        qlog: Option<Qlog>,
        made: Made<L>,
    ) -> Quic<L> {
        let server = server.map(Arc::new);
        let listens = match (&server, &qlog) {
            (Some(server), Some(qlog)) => Some(Arc::new(qlog.listen(server))),
            (server, _) => server.clone(),
        };
        Quic {
            socket,
            endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), listens, true),
            server,
            links: BTreeMap::new(),
            alarms: BTreeSet::new(),
            touched: BTreeSet::new(),
            qlog,
            made,
            most,
            unproven: UNPROVEN,
            buffer: Vec::new(),
        }
    }

    /// # Errors
    /// As the kernel says.
    pub(super) fn local(&self) -> io::Result<SocketAddr> {
        self.socket.local()
    }

    /// Opens a connection.
    pub(super) fn connect(
        &mut self,
        Opens { tls, transport, tokens }: Opens,
        to: SocketAddr,
        name: &str,
    ) -> Result<(), ConnectError> {
        let (mut config, log) = match &self.qlog {
            Some(qlog) => {
                let (config, log) = qlog.client(tls, &transport, to);
                (config, Some(log))
            }
            None => {
                let mut config = ClientConfig::new(tls);
                config.transport_config(transport);
                (config, None)
            }
        };
        config.token_store(tokens);
        let (handle, connection) = self.endpoint.connect(now(), config, to, name)?;
        self.links.insert(handle.0, Kept::new((self.made)(connection), Guard::default(), log));
        Ok(())
    }

    /// Waits until there is something to do: datagrams to read, or a moment that a connection asked for.
    ///
    /// # Errors
    /// As the kernel says.
    pub(super) async fn wait(&mut self) -> io::Result<()> {
        let next = self.alarms.first().map(|(at, _)| *at);
        let alarm = async {
            match next {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            there = self.socket.readable() => there,
            () = alarm => Ok(()),
        }
    }

    /// Takes in what has come and is due. `may` says who may come.
    pub(super) fn take(&mut self, may: impl Fn(SocketAddr) -> bool) {
        let Quic { socket, endpoint, links, touched, made, most, unproven, buffer, qlog, server, .. } = self;
        let mut answers: Vec<(Transmit, Vec<u8>)> = Vec::new();
        socket.read(|path, ecn, octets| {
            if !may(path.remote()) {
                return;
            }
            buffer.clear();
            let len = octets.len();
            let answer = match endpoint.handle(now(), path, ecn, octets, buffer) {
                None => None,
                Some(DatagramEvent::ConnectionEvent(ConnectionHandle(handle), event)) => {
                    if let Some(Kept { talk, guard, log, .. }) = links.get_mut(&handle) {
                        touched.insert(handle);
                        log.iter().for_each(|log| log.at(now()));
                        let quic = talk.quic();
                        if guard.received(quic, now(), path.remote(), len) {
                            let ping = guard.transmit(quic, now(), buffer);
                            answers.extend(ping.map(|about| (about, buffer.clone())));
                        }
                        quic.handle_event(event);
                        log.iter_mut().for_each(|log| log.follow(quic));
                    }
                    None
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    buffer.clear();
                    let how = (server.as_deref(), qlog.as_ref());
                    accept(endpoint, links, touched, made, (*most, *unproven), how, (incoming, len), buffer)
                }
                Some(DatagramEvent::Response(answer)) => Some(answer),
            };
            if let Some(answer) = answer {
                let octets = buffer[..answer.size].to_vec();
                answers.push((answer, octets));
            }
        });
        for (about, octets) in answers {
            self.socket.send(&about, &octets);
        }
        let now = now();
        while let Some(&(at, handle)) = self.alarms.first()
            && at <= now
        {
            self.alarms.pop_first();
            self.touched.insert(handle);
            let Some(Kept { talk, log, .. }) = self.links.get_mut(&handle) else { continue };
            let quic = talk.quic();
            if quic.poll_timeout().is_some_and(|at| at <= now) {
                log.iter().for_each(|log| log.due(now));
                quic.handle_timeout(now);
            }
        }
    }

    /// Ends all connections by `close`, and waits until their peers have been told: that too waits for the pacer.
    pub(super) async fn leave(&mut self, mut close: impl FnMut(&mut L)) {
        for link in self.links.values_mut() {
            if !link.talk.quic().is_closed() {
                close(&mut link.talk);
            }
        }
        for _ in 0..FAREWELLS {
            self.ask_all();
            self.turn(|_, _| false);
            let is_told = |link: &mut Kept<L>| {
                let stats = link.talk.quic().stats();
                // Some were closed before this, and some by their peers.
                stats.frame_tx.connection_close + stats.frame_rx.connection_close > 0
            };
            if self.links.values_mut().all(is_told) {
                return;
            }
            let _ = tokio::time::timeout(FAREWELL, self.wait()).await;
            self.take(|_| true);
        }
    }

    /// All connections have a turn next: something else than a datagram or their time has come to them.
    pub(super) fn ask_all(&mut self) {
        self.touched.extend(self.links.keys());
    }

    /// Sends what connections have to say, and forgets those that are over. `serve` is called for each that something has come to, and
    /// for all of a client's, until nothing more comes of it.
    pub(super) fn turn(&mut self, mut serve: impl FnMut(usize, &mut L) -> bool) {
        if self.server.is_none() {
            self.ask_all();
        }
        let Quic { socket, endpoint, links, alarms, touched, buffer, .. } = self;
        let now = now();
        for handle in std::mem::take(touched) {
            let Some(Kept { talk, guard, log, alarm }) = links.get_mut(&handle) else { continue };
            log.iter().for_each(|log| log.at(now));
            loop {
                let mut moved = talk.listen();
                moved |= serve(handle, talk);
                moved |= talk.write();
                let quic = talk.quic();
                while let Some(event) = quic.poll_endpoint_events() {
                    if let Some(event) = endpoint.handle_event(ConnectionHandle(handle), event) {
                        quic.handle_event(event);
                    }
                }
                //= RFC 9000 (10.2.1): what is said at the end is limited. noq-proto 1.4.0 may say it again and again during a handshake.
                let most = if quic.is_closed() { FAREWELL_DATAGRAMS } else { usize::MAX };
                buffer.clear();
                for _ in 0..most {
                    let Some(about) = guard.transmit(quic, now, buffer) else { break };
                    socket.send(&about, buffer);
                    buffer.clear();
                    moved |= !quic.is_closed();
                }
                if let Some(log) = log {
                    talk.tell(log);
                    log.follow(talk.quic());
                }
                if !moved {
                    break;
                }
            }
            let quic = talk.quic();
            let (is_over, next) = (quic.is_drained(), quic.poll_timeout());
            if let Some(before) = std::mem::replace(alarm, next) {
                alarms.remove(&(before, handle));
            }
            if is_over {
                links.remove(&handle);
            } else {
                alarms.extend(next.map(|at| (at, handle)));
            }
        }
    }
}

/// What becomes of somebody who wants to connect; the answer in `buffer`, if there is one.
fn accept<L: Talk>(
    endpoint: &mut Endpoint,
    links: &mut BTreeMap<usize, Kept<L>>,
    touched: &mut BTreeSet<usize>,
    made: &Made<L>,
    (most, unproven): (usize, usize),
    (server, qlog): (Option<&ServerConfig>, Option<&Qlog>),
    (incoming, octets): (Incoming, usize),
    buffer: &mut Vec<u8>,
) -> Option<Transmit> {
    // A connection that was closed stays for three PTOs, for what comes late (RFC 9000, 10.2): it takes no place.
    let open: usize = links.values_mut().map(|link| usize::from(!link.talk.quic().is_closed())).sum();
    if open >= most || links.len() >= LEFTOVERS.saturating_mul(most) {
        return Some(endpoint.refuse(incoming, buffer));
    }
    let handshaking: usize =
        links.values_mut().map(|link| usize::from(link.talk.quic().is_handshaking())).sum();
    if handshaking >= unproven && !incoming.remote_address_validated() {
        //= RFC 9000 (8.1.2): an address that may be forged costs nothing until it has answered.
        return match endpoint.retry(incoming, buffer) {
            Ok(answer) => Some(answer),
            Err(error) => {
                endpoint.ignore(error.into_incoming());
                None
            }
        };
    }
    let guard = Guard::new(incoming.remote_address(), octets, incoming.remote_address_validated());
    let (config, log) = server
        .map(|server| {
            let (mut config, log) = match qlog {
                Some(qlog) => {
                    let (config, log) = qlog.server(server, &incoming);
                    (config, Some(log))
                }
                None => (server.clone(), None),
            };
            config.crypto = guard.around(config.crypto);
            (Arc::new(config), log)
        })
        .unzip();
    match endpoint.accept(incoming, now(), buffer, config) {
        Ok((ConnectionHandle(handle), connection)) => {
            links.insert(handle, Kept::new(made(connection), guard, log.flatten()));
            touched.insert(handle);
            None
        }
        Err(error) => error.response,
    }
}

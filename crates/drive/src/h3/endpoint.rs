//! QUIC on a UDP socket: datagrams to connections and back, and when which of them wants to be woken.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use airloom_content::http::v3;
use noq_proto::{
    ClientConfig, ConnectError, Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, Event,
    Incoming, PathId, ServerConfig, TokenMemoryCache, Transmit, TransportConfig, crypto,
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
    pub(super) links: BTreeMap<usize, L>,
    qlog: Option<Qlog>,
    /// What is written down of connections.
    logs: BTreeMap<usize, Log>,
    made: Made<L>,
    /// Connections beyond this number open at once are refused.
    most: usize,
    /// Handshakes that may be under way before an address has to prove that it is one (Retry).
    pub(super) unproven: usize,
    buffer: Vec<u8>,
    /// Connections that were refused.
    pub(super) refused: u64,
    /// When clients that may be elsewhere were asked last.
    asked: BTreeMap<usize, Now>,
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
            qlog,
            logs: BTreeMap::new(),
            made,
            most,
            unproven: UNPROVEN,
            buffer: Vec::new(),
            refused: 0,
            asked: BTreeMap::new(),
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
        insert(&mut self.links, &mut self.logs, handle.0, (self.made)(connection), log);
        Ok(())
    }

    /// Waits until there is something to do: datagrams to read, or a moment that a connection asked for.
    ///
    /// # Errors
    /// As the kernel says.
    pub(super) async fn wait(&mut self) -> io::Result<()> {
        let next = self.links.values_mut().filter_map(|link| link.quic().poll_timeout()).min();
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
        let Quic {
            socket,
            endpoint,
            links,
            made,
            most,
            unproven,
            buffer,
            refused,
            qlog,
            logs,
            server,
            asked,
        } = self;
        let mut answers: Vec<(Transmit, Vec<u8>)> = Vec::new();
        socket.read(|path, ecn, octets| {
            if !may(path.remote()) {
                return;
            }
            buffer.clear();
            let answer = match endpoint.handle(now(), path, ecn, octets, buffer) {
                None => None,
                Some(DatagramEvent::ConnectionEvent(ConnectionHandle(handle), event)) => {
                    let log = logs.get_mut(&handle);
                    log.iter().for_each(|log| log.at(now()));
                    if let Some(link) = links.get_mut(&handle) {
                        buffer.clear();
                        let ping = ask_where_it_was(link.quic(), path.remote(), asked, handle, buffer);
                        answers.extend(ping.map(|about| (about, buffer.clone())));
                        link.quic().handle_event(event);
                        log.into_iter().for_each(|log| log.follow(link.quic()));
                    }
                    None
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    buffer.clear();
                    let how = (server.as_deref(), qlog.as_ref());
                    accept(endpoint, links, logs, made, (*most, *unproven), how, incoming, buffer, refused)
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
        for (handle, link) in &mut self.links {
            let quic = link.quic();
            if quic.poll_timeout().is_some_and(|at| at <= now) {
                self.logs.get(handle).into_iter().for_each(|log| log.due(now));
                quic.handle_timeout(now);
            }
        }
    }

    /// Ends all connections by `close`, and waits until their peers have been told: that too waits for the pacer.
    pub(super) async fn leave(&mut self, mut close: impl FnMut(&mut L)) {
        let mut untold = Vec::new();
        for (handle, link) in &mut self.links {
            if !link.quic().is_closed() {
                close(link);
                untold.push(*handle);
            }
        }
        for _ in 0..FAREWELLS {
            self.turn(|_, _| false);
            untold.retain(|handle| {
                let link = self.links.get_mut(handle);
                link.is_some_and(|link| link.quic().stats().frame_tx.connection_close == 0)
            });
            if untold.is_empty() {
                return;
            }
            let _ = tokio::time::timeout(FAREWELL, self.wait()).await;
            self.take(|_| true);
        }
    }

    /// Sends what connections have to say, and forgets those that are over. `serve` is called for each until nothing more comes
    /// of it.
    pub(super) fn turn(&mut self, mut serve: impl FnMut(usize, &mut L) -> bool) {
        let Quic { socket, endpoint, links, logs, buffer, .. } = self;
        let now = now();
        links.retain(|handle, link| {
            let mut log = logs.get_mut(handle);
            log.iter().for_each(|log| log.at(now));
            loop {
                let mut moved = link.listen();
                moved |= serve(*handle, link);
                moved |= link.write();
                let quic = link.quic();
                while let Some(event) = quic.poll_endpoint_events() {
                    if let Some(event) = endpoint.handle_event(ConnectionHandle(*handle), event) {
                        quic.handle_event(event);
                    }
                }
                //= RFC 9000 (10.2.1): what is said at the end is limited. noq-proto 1.4.0 may say it again and again during a handshake.
                let most = if quic.is_closed() { FAREWELL_DATAGRAMS } else { usize::MAX };
                buffer.clear();
                for _ in 0..most {
                    let Some(about) = quic.poll_transmit(now, NonZeroUsize::MIN, buffer) else { break };
                    socket.send(&about, buffer);
                    buffer.clear();
                    moved |= !quic.is_closed();
                }
                if let Some(log) = &mut log {
                    link.tell(log);
                    log.follow(link.quic());
                }
                if !moved {
                    return !link.quic().is_drained();
                }
            }
        });
        self.logs.retain(|handle, _| self.links.contains_key(handle));
        self.asked.retain(|handle, _| self.links.contains_key(handle));
    }
}

/// A PING by the path in use, in `buffer`, where a packet comes from another address of the client's: it moves, or somebody has copied a
/// packet of its and was faster.
//= RFC 9000 (9.3.3): the path before is asked as well, which makes a client that is still there send a packet from there; that is
//= newer than the copy, and the server goes back. noq-proto 1.4.0 challenges no path that was validated before.
fn ask_where_it_was(
    quic: &mut Connection,
    from: SocketAddr,
    asked: &mut BTreeMap<usize, Now>,
    handle: usize,
    buffer: &mut Vec<u8>,
) -> Option<Transmit> {
    let (path, now) = (PathId::ZERO, now());
    let is_elsewhere = quic.network_path(path).is_ok_and(|known| known.remote() != from);
    if !is_elsewhere || !quic.side().is_server() || quic.is_handshaking() {
        return None;
    }
    // Whoever knows the connection's id may have as many addresses as they like.
    let usual = quic.rtt(path).unwrap_or_default();
    if asked.get(&handle).is_some_and(|last| now - *last < usual) {
        return None;
    }
    asked.insert(handle, now);
    quic.ping();
    quic.poll_transmit(now, NonZeroUsize::MIN, buffer)
}

/// A new connection, with what is written down of it.
fn insert<L: Talk>(
    links: &mut BTreeMap<usize, L>,
    logs: &mut BTreeMap<usize, Log>,
    handle: usize,
    mut link: L,
    log: Option<Log>,
) {
    if let Some(log) = log {
        link.keep_log();
        logs.insert(handle, log);
    }
    links.insert(handle, link);
}

/// What becomes of somebody who wants to connect; the answer in `buffer`, if there is one.
#[expect(clippy::too_many_arguments, reason = "parts of a socket, of which others are in use")]
fn accept<L: Talk>(
    endpoint: &mut Endpoint,
    links: &mut BTreeMap<usize, L>,
    logs: &mut BTreeMap<usize, Log>,
    made: &Made<L>,
    (most, unproven): (usize, usize),
    (server, qlog): (Option<&ServerConfig>, Option<&Qlog>),
    incoming: Incoming,
    buffer: &mut Vec<u8>,
    refused: &mut u64,
) -> Option<Transmit> {
    // A connection that was closed stays for three PTOs, for what comes late (RFC 9000, 10.2): it takes no place.
    let open: usize = links.values_mut().map(|link| usize::from(!link.quic().is_closed())).sum();
    if open >= most || links.len() >= LEFTOVERS.saturating_mul(most) {
        *refused += 1;
        return Some(endpoint.refuse(incoming, buffer));
    }
    let handshaking: usize = links.values_mut().map(|link| usize::from(link.quic().is_handshaking())).sum();
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
    let (config, log) = server.zip(qlog).map(|(server, qlog)| qlog.server(server, &incoming)).unzip();
    match endpoint.accept(incoming, now(), buffer, config) {
        Ok((ConnectionHandle(handle), connection)) => {
            insert(links, logs, handle, made(connection), log);
            None
        }
        Err(error) => error.response,
    }
}

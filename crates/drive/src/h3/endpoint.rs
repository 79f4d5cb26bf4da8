//! QUIC on a UDP socket: datagrams to connections and back, and when which of them wants to be woken.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use airloom_content::http::v3;
use noq_proto::{
    ClientConfig, ConnectError, Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig,
    Incoming, ServerConfig, Transmit,
};

use super::socket::Socket;

/// The time of the library is the system's, which this file alone tells it.
#[expect(clippy::disallowed_types, reason = "a daemon lives by the system's clock")]
pub(super) type Now = std::time::Instant;

/// The time now.
pub(super) fn now() -> Now {
    tokio::time::Instant::now().into_std()
}

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

/// A connection with what is spoken on it.
pub(super) trait Talk {
    /// The connection.
    fn quic(&mut self) -> &mut Connection;
    /// What QUIC has to tell. True: there was something.
    fn listen(&mut self) -> bool;
    /// Writes what streams have room for. True: something was done.
    fn write(&mut self) -> bool;
}

/// What is spoken on a new connection.
pub(super) type Made<L> = Box<dyn Fn(Connection) -> L>;

/// A socket with the connections on it.
pub(super) struct Quic<L> {
    socket: Socket,
    endpoint: Endpoint,
    pub(super) links: BTreeMap<usize, L>,
    made: Made<L>,
    /// Connections beyond this number open at once are refused.
    most: usize,
    /// Handshakes that may be under way before an address has to prove that it is one (Retry).
    pub(super) unproven: usize,
    buffer: Vec<u8>,
    /// Connections that were refused.
    pub(super) refused: u64,
}

impl<L: Talk> Quic<L> {
    /// With this socket; takes connections if `server` says how.
    pub(super) fn new(
        socket: Socket,
        server: Option<Arc<ServerConfig>>,
        most: usize,
        made: Made<L>,
    ) -> Quic<L> {
        Quic {
            socket,
            endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), server, true),
            links: BTreeMap::new(),
            made,
            most,
            unproven: UNPROVEN,
            buffer: Vec::new(),
            refused: 0,
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
        config: ClientConfig,
        to: SocketAddr,
        name: &str,
    ) -> Result<(), ConnectError> {
        let (handle, connection) = self.endpoint.connect(now(), config, to, name)?;
        self.links.insert(handle.0, (self.made)(connection));
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
        let Quic { socket, endpoint, links, made, most, unproven, buffer, refused } = self;
        let mut answers: Vec<(Transmit, Vec<u8>)> = Vec::new();
        socket.read(|path, ecn, octets| {
            if !may(path.remote()) {
                return;
            }
            buffer.clear();
            let answer = match endpoint.handle(now(), path, ecn, octets, buffer) {
                None => None,
                Some(DatagramEvent::ConnectionEvent(ConnectionHandle(handle), event)) => {
                    if let Some(link) = links.get_mut(&handle) {
                        link.quic().handle_event(event);
                    }
                    None
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    buffer.clear();
                    accept(endpoint, links, made, (*most, *unproven), incoming, buffer, refused)
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
        for link in self.links.values_mut() {
            let quic = link.quic();
            if quic.poll_timeout().is_some_and(|at| at <= now) {
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
        let Quic { socket, endpoint, links, buffer, .. } = self;
        let now = now();
        links.retain(|handle, link| {
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
                buffer.clear();
                while let Some(about) = quic.poll_transmit(now, std::num::NonZeroUsize::MIN, buffer) {
                    socket.send(&about, buffer);
                    buffer.clear();
                    moved = true;
                }
                if !moved {
                    return !quic.is_drained();
                }
            }
        });
    }
}

/// What becomes of somebody who wants to connect; the answer in `buffer`, if there is one.
fn accept<L: Talk>(
    endpoint: &mut Endpoint,
    links: &mut BTreeMap<usize, L>,
    made: &Made<L>,
    (most, unproven): (usize, usize),
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
    match endpoint.accept(incoming, now(), buffer, None) {
        Ok((ConnectionHandle(handle), connection)) => {
            links.insert(handle, made(connection));
            None
        }
        Err(error) => error.response,
    }
}

//! QUIC on a UDP socket: datagrams to connections and back, and when which of them wants to be woken.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use airloom_content::http::v3;
use bytes::BytesMut;
use noq_proto::{
    ClientConfig, ConnectError, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, FourTuple,
    Incoming, ServerConfig, Transmit,
};

use super::link::Link;
use crate::daemon::udp::Datagrams;

/// The time of the library is the system's, which this file alone tells it.
#[expect(clippy::disallowed_types, reason = "a daemon lives by the system's clock")]
pub(super) type Now = std::time::Instant;

/// The time now.
pub(super) fn now() -> Now {
    tokio::time::Instant::now().into_std()
}

/// Handshakes that may be under way before an address has to prove that it is one (Retry).
const UNPROVEN: usize = 64;

/// So many times as many connections as may be open are kept, with those that were closed.
const LEFTOVERS: usize = 4;

/// What both ends keep to in HTTP/3. With a table a request that is like the one before takes some octets instead of hundreds: over
/// a slow uplink the requests of a page are what it waits for.
pub(super) fn options() -> v3::Options {
    v3::Options::with_table(4096, 16)
}

/// A socket with the connections on it.
pub(super) struct Quic {
    socket: Datagrams,
    endpoint: Endpoint,
    pub(super) links: BTreeMap<usize, Link>,
    options: v3::Options,
    /// Connections beyond this number open at once are refused.
    most: usize,
    buffer: Vec<u8>,
    /// Connections that were refused.
    pub(super) refused: u64,
}

impl Quic {
    /// Bound to `at`; takes connections if `server` says how.
    ///
    /// # Errors
    /// As the kernel says.
    pub(super) fn bind(
        at: SocketAddr,
        server: Option<Arc<ServerConfig>>,
        options: v3::Options,
        most: usize,
    ) -> io::Result<Quic> {
        Ok(Quic {
            socket: Datagrams::bind(at)?,
            endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), server, true),
            links: BTreeMap::new(),
            options,
            most,
            buffer: Vec::new(),
            refused: 0,
        })
    }

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
        self.links.insert(handle.0, Link::new(connection, self.options, false));
        Ok(())
    }

    /// Waits until there is something to do: datagrams to read, or a moment that a connection asked for.
    ///
    /// # Errors
    /// As the kernel says.
    pub(super) async fn wait(&self) -> io::Result<()> {
        let next = self.links.values().filter_map(|link| link.quic.poll_timeout()).min();
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
        let Quic { socket, endpoint, links, options, most, buffer, refused } = self;
        let mut answers: Vec<(SocketAddr, Vec<u8>)> = Vec::new();
        socket.read(|from, octets| {
            if !may(from) {
                return;
            }
            let path = FourTuple::new(from, None);
            buffer.clear();
            let event = endpoint.handle(now(), path, None, BytesMut::from(octets), buffer);
            let answer = match event {
                None => None,
                Some(DatagramEvent::ConnectionEvent(ConnectionHandle(handle), event)) => {
                    if let Some(link) = links.get_mut(&handle) {
                        link.quic.handle_event(event);
                    }
                    None
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    buffer.clear();
                    accept(endpoint, links, *options, *most, incoming, buffer, refused)
                }
                Some(DatagramEvent::Response(answer)) => Some(answer),
            };
            if let Some(answer) = answer {
                answers.push((answer.destination, buffer[..answer.size].to_vec()));
            }
        });
        for (to, octets) in answers {
            self.socket.send(to, &octets);
        }
        let now = now();
        for link in self.links.values_mut() {
            if link.quic.poll_timeout().is_some_and(|at| at <= now) {
                link.quic.handle_timeout(now);
            }
        }
    }

    /// Sends what connections have to say, and forgets those that are over. `serve` is called for each until nothing more comes
    /// of it.
    pub(super) fn turn(&mut self, mut serve: impl FnMut(usize, &mut Link) -> bool) {
        let Quic { socket, endpoint, links, buffer, .. } = self;
        let now = now();
        links.retain(|handle, link| {
            loop {
                let mut moved = link.listen();
                moved |= serve(*handle, link);
                moved |= link.write();
                while let Some(event) = link.quic.poll_endpoint_events() {
                    if let Some(event) = endpoint.handle_event(ConnectionHandle(*handle), event) {
                        link.quic.handle_event(event);
                    }
                }
                buffer.clear();
                while let Some(Transmit { destination, size, .. }) =
                    link.quic.poll_transmit(now, std::num::NonZeroUsize::MIN, buffer)
                {
                    socket.send(destination, &buffer[..size]);
                    buffer.clear();
                    moved = true;
                }
                if !moved {
                    return !link.quic.is_drained();
                }
            }
        });
    }
}

/// What becomes of somebody who wants to connect; the answer in `buffer`, if there is one.
fn accept(
    endpoint: &mut Endpoint,
    links: &mut BTreeMap<usize, Link>,
    options: v3::Options,
    most: usize,
    incoming: Incoming,
    buffer: &mut Vec<u8>,
    refused: &mut u64,
) -> Option<Transmit> {
    // A connection that was closed stays for three PTOs, for what comes late (RFC 9000, 10.2): it takes no place.
    let open = links.values().filter(|link| !link.quic.is_closed()).count();
    if open >= most || links.len() >= LEFTOVERS.saturating_mul(most) {
        *refused += 1;
        return Some(endpoint.refuse(incoming, buffer));
    }
    let handshaking = links.values().filter(|link| link.quic.is_handshaking()).count();
    if handshaking >= UNPROVEN && !incoming.remote_address_validated() {
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
            links.insert(handle, Link::new(connection, options, true));
            None
        }
        Err(error) => error.response,
    }
}

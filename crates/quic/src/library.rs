//! The library that is the protocol, and what two libraries of one descent do differently.

pub(crate) use noq_proto::*;

use std::num::NonZeroUsize;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use crate::clock;

/// An endpoint: what all connections of a host share.
pub(crate) fn endpoint(config: EndpointConfig) -> Endpoint {
    Endpoint::new(Arc::new(config), None, true)
}

/// The next datagram of a connection, in `buffer`.
pub(crate) fn transmit(
    connection: &mut Connection,
    now: airloom_base::Instant,
    buffer: &mut Vec<u8>,
) -> Option<Transmit> {
    connection.poll_transmit(clock::to_library(now), NonZeroUsize::MIN, buffer)
}

/// Tells an endpoint of a datagram.
pub(crate) fn datagram(
    endpoint: &mut Endpoint,
    now: airloom_base::Instant,
    remote: std::net::SocketAddr,
    local: std::net::IpAddr,
    ecn: u8,
    octets: BytesMut,
    answer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    let path = FourTuple::new(remote, Some(local));
    endpoint.handle(clock::to_library(now), path, EcnCodepoint::from_bits(ecn), octets, answer)
}

/// Writes to a stream; how many octets were taken.
pub(crate) fn write(stream: &mut SendStream<'_>, octets: Bytes) -> Result<usize, WriteError> {
    let mut one = [octets];
    stream.write_chunks(&mut &mut one[..])
}

/// The client's host has changed to another address.
pub(crate) fn address_changed(connection: &mut Connection, now: airloom_base::Instant) {
    connection.handle_network_change(None, clock::to_library(now));
}

/// Which names an endpoint's connections have.
pub(crate) fn name_by(
    config: &mut EndpointConfig,
    generator: impl Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
) {
    config.cid_generator(Arc::new(generator));
}

/// The address that a connection's packets go to.
pub(crate) fn remote(connection: &Connection) -> Option<std::net::SocketAddr> {
    connection.network_path(PathId::ZERO).ok().map(|path| path.remote())
}

//! The library that is the protocol, and what two libraries of one descent do differently.

pub(crate) use noq_proto::*;

use std::net::{IpAddr, SocketAddr};
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
    remote: SocketAddr,
    local: IpAddr,
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
pub(crate) fn remote(connection: &Connection) -> Option<SocketAddr> {
    connection.network_path(PathId::ZERO).ok().map(|path| path.remote())
}

/// Several paths at a time may be open (draft-ietf-quic-multipath), so that a new one can be validated beside the old one.
pub(crate) fn several_paths(config: &mut TransportConfig, most: u32) {
    config.max_concurrent_multipath_paths(most);
}

/// May a client open another path beside the one it uses?
pub(crate) fn has_several_paths(connection: &Connection) -> bool {
    connection.is_multipath_negotiated()
}

/// A client opens another path, which is validated before data goes by it. `None`: not now.
pub(crate) fn open_path(
    connection: &mut Connection,
    now: airloom_base::Instant,
    remote: SocketAddr,
    local: IpAddr,
) -> Option<PathId> {
    let path = FourTuple::new(remote, Some(local));
    connection.open_path(path, PathStatus::Available, clock::to_library(now)).ok()
}

/// A client gives up all paths but this one.
pub(crate) fn keep_path(connection: &mut Connection, now: airloom_base::Instant, kept: PathId) {
    for path in connection.paths().into_iter().filter(|path| *path != kept) {
        // One that is closed already stays so.
        let _ = connection.close_path(clock::to_library(now), path, VarInt::from_u32(0));
    }
}

/// The path that an event says is validated, with the addresses of its ends as far as they are known.
pub(crate) fn validated(
    connection: &Connection,
    event: &PathEvent,
) -> Option<(PathId, SocketAddr, Option<IpAddr>)> {
    let PathEvent::Established { id, .. } = event else { return None };
    let path = connection.network_path(*id).ok()?;
    Some((*id, path.remote(), path.local_ip()))
}

/// Answers to challenges (PATH_RESPONSE) that have arrived.
pub(crate) fn path_responses(connection: &mut Connection) -> u64 {
    connection.stats().frame_rx.path_response
}

/// The number of a path in the nonce of its packets.
pub(crate) fn path_number(path: PathId) -> u32 {
    // The library tells it in no other way than as text; nearly all packets are those of path 0.
    if path == PathId::ZERO { 0 } else { path.to_string().parse().unwrap_or(0) }
}

//! noq-proto.

pub(crate) use noq_proto::*;

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use airloom_base::Duration as Span;
use bytes::{Bytes, BytesMut};
use delegate::delegate;

use super::{Cipher, Observed, Observer, PathView, TAG};
use crate::clock;
use crate::secret::Secret;
use crypto::{CryptoError, HandshakeTokenKey, PacketKey};

/// What it does that another library may not.
pub(crate) const HAS_SEVERAL_PATHS: bool = true;
pub(crate) const OBEYS_RATES: bool = true;

/// Nothing is sent beside a challenge: data waits until a path is validated.
pub(crate) const FILLS_CHALLENGES: bool = false;

/// A path that becomes another one has had no probe timeouts.
pub(crate) const FORGETS_PROBES: bool = true;

/// How long after the last packet the next probe leaves, where the first one does after `base`, and so many have. `is_vain`: nothing is
/// under way that could be acknowledged. It doubles, but by no more than two seconds, and by less where silence ends connections soon.
pub(crate) fn probe_wait(base: Span, probes: u32, is_vain: bool, smoothed: Span, idle: Option<Span>) -> Span {
    let most = match idle {
        _ if smoothed > Span::from_millis(1333) => smoothed * 3 / 2,
        Some(idle) if idle <= Span::from_secs(25) => Span::from_secs(1),
        _ => Span::from_secs(2),
    };
    let doubled = |times: u32| base * (1 << times.min(16));
    if is_vain {
        return doubled(probes).min(most);
    }
    (1..=probes).fold(base, |wait, times| doubled(times).min(wait + most))
}

pub(crate) type Watched<W> = super::noq_controller::Watched<W>;

/// Datagrams at a time.
pub(super) const MOST: NonZeroUsize = NonZeroUsize::MIN;

/// How it passes a connection id, and a configuration to the session that it starts.
pub(crate) type Id<'a> = ConnectionId;
pub(crate) type This<'a, T> = &'a T;

pub(crate) fn id<'a>(id: &'a Id<'_>) -> &'a ConnectionId {
    id
}

/// An endpoint: what all connections of a host share.
pub(crate) fn endpoint(config: EndpointConfig) -> Endpoint {
    Endpoint::new(Arc::new(config), None, true)
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

/// What the client of one that would open a connection calls it.
pub(crate) fn first_id(incoming: &Incoming) -> ConnectionId {
    incoming.orig_dst_cid()
}

/// Writes to a stream; how many octets were taken.
pub(crate) fn write(stream: &mut SendStream<'_>, octets: Bytes) -> Result<usize, WriteError> {
    let mut one = [octets];
    stream.write_chunks(&mut &mut one[..])
}

/// An end of a connection for a reason of ours.
pub(crate) fn error(code: TransportErrorCode, why: &str) -> TransportError {
    TransportError::new(code, why.to_owned())
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
    remote_of(connection, PathId::ZERO)
}

fn remote_of(connection: &Connection, path: PathId) -> Option<SocketAddr> {
    connection.network_path(path).ok().map(|path| path.remote())
}

/// The addresses that packets of any of its paths go to.
pub(crate) fn remotes(connection: &Connection) -> Vec<SocketAddr> {
    connection.paths().into_iter().filter_map(|path| remote_of(connection, path)).collect()
}

/// Has a packet of a client's come to an address that none of its paths leaves from? `used` is that of one of which the library does not
/// know it yet. Only where it may have several.
// A path is a pair of addresses (draft-ietf-quic-multipath), and such a packet is of none: somebody has sent the server a copy of one from
// here. noq-proto 1.4.0 would answer from both addresses, so that the server moved to and fro, with more challenges each time.
pub(crate) fn is_astray(connection: &Connection, local: IpAddr, used: Option<IpAddr>) -> bool {
    let is_elsewhere = |path| {
        let known = connection.network_path(path).ok().and_then(|path| path.local_ip());
        known.or(used) != Some(local)
    };
    connection.is_multipath_negotiated() && connection.paths().into_iter().all(is_elsewhere)
}

/// The round trip, as far as it is known.
pub(crate) fn round_trip(connection: &Connection) -> Duration {
    // Where it has moved by a path of its own the first one may be no more.
    let first = || connection.paths().first().and_then(|path| connection.rtt(*path));
    connection.rtt(PathId::ZERO).or_else(first).unwrap_or_default()
}

/// A packet has come from this address of the client's, to which the server is about to move. True: that is news, and a PING waits to
/// be sent by the path before.
pub(crate) fn ask_before_moving(connection: &mut Connection, remote: SocketAddr) -> bool {
    let is_known =
        remote_of(connection, PathId::ZERO) == Some(remote) || remotes(connection).contains(&remote);
    // noq-proto 1.4.0 keeps the path before, to challenge it and to go back to it when the new one is not validated, only if it never
    // was validated itself (`Connection::migrate`).
    if !is_known {
        connection.ping();
    }
    !is_known
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

/// The paths but this one, each with the octets of packets that were lost on it so far.
pub(crate) fn other_paths(connection: &mut Connection, kept: PathId) -> Vec<(PathId, u64)> {
    let others = connection.paths().into_iter().filter(|path| *path != kept);
    others.map(|path| (path, lost_on(connection, path).unwrap_or(0))).collect()
}

/// Octets of packets that were lost on a path so far; `None`: it is none any more.
pub(crate) fn lost_on(connection: &mut Connection, path: PathId) -> Option<u64> {
    connection.path_stats(path).map(|stats| stats.lost_bytes)
}

/// Octets of packets that were lost so far, where controllers are not told of those of a path that is given up: they are.
pub(crate) fn lost_untold(_: &Connection) -> Option<u64> {
    None
}

/// The path that an event says is dropped, with the octets of packets that were lost on it, those under way among them.
pub(crate) fn dropped(event: &Event) -> Option<(PathId, u64)> {
    match event {
        Event::Path(PathEvent::Discarded { id, path_stats, .. }) => Some((*id, path_stats.lost_bytes)),
        _ => None,
    }
}

/// The path that an event says is validated, with the addresses of its ends as far as they are known.
pub(crate) fn validated(
    connection: &Connection,
    event: &Event,
) -> Option<(PathId, SocketAddr, Option<IpAddr>)> {
    let Event::Path(PathEvent::Established { id, .. }) = event else { return None };
    let path = connection.network_path(*id).ok()?;
    Some((*id, path.remote(), path.local_ip()))
}

/// The number of a path in the nonce of its packets.
fn path_number(path: PathId) -> u32 {
    // The library tells it in no other way than as text; nearly all packets are those of path 0.
    if path == PathId::ZERO { 0 } else { path.to_string().parse().unwrap_or(0) }
}

/// A cipher as the library takes it.
pub(crate) struct Key<C>(pub(crate) C);

impl<C: Cipher> PacketKey for Key<C> {
    fn encrypt(&self, path: PathId, number: u64, packet: &mut [u8], header: usize) {
        self.0.seal(path_number(path), number, packet, header);
    }
    fn decrypt(
        &self,
        path: PathId,
        number: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        self.0.open(path_number(path), number, header, payload)
    }
    fn tag_len(&self) -> usize {
        TAG
    }
    fn confidentiality_limit(&self) -> u64 {
        self.0.limits()[0]
    }
    fn integrity_limit(&self) -> u64 {
        self.0.limits()[1]
    }
}

impl<E: Observer> PacketKey for Observed<E> {
    fn encrypt(&self, path: PathId, number: u64, packet: &mut [u8], header: usize) {
        let kept = self.observer.sent(path_number(path), number, packet, header);
        self.inner.encrypt(path, number, &mut packet[..kept], header);
    }
    fn decrypt(
        &self,
        path: PathId,
        number: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let len = header.len() + payload.len();
        self.inner.decrypt(path, number, header, payload)?;
        self.observer.received(path_number(path), number, header, payload, len);
        Ok(())
    }

    delegate! {
        to self.inner {
            fn tag_len(&self) -> usize;
            fn confidentiality_limit(&self) -> u64;
            fn integrity_limit(&self) -> u64;
        }
    }
}

/// All paths of a connection.
pub(crate) fn views(connection: &Connection) -> Vec<PathView> {
    let view = |path: PathId| {
        let (tuple, controller) = (connection.network_path(path).ok()?, connection.congestion_state(path)?);
        let metrics = controller.metrics();
        Some(PathView {
            number: path_number(path),
            local: tuple.local_ip(),
            remote: tuple.remote(),
            window: controller.window(),
            ssthresh: metrics.ssthresh,
            pacing_rate: metrics.pacing_rate,
            smoothed: connection.rtt(path)?,
        })
    };
    connection.paths().into_iter().filter_map(view).collect()
}

impl HandshakeTokenKey for Secret {
    fn seal(&self, nonce: u128, data: &mut Vec<u8>) -> Result<(), CryptoError> {
        self.hide(&nonce.to_be_bytes(), data);
        Ok(())
    }
    fn open<'a>(&self, nonce: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        self.show(&nonce.to_be_bytes(), data).map(|shown| &*shown).ok_or(CryptoError)
    }
}

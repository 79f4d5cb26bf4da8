//! quinn-proto: one path at a time, its own pace, losses without numbers.

pub(crate) use quinn_proto::*;

use std::any::Any;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use airloom_base::Duration as Span;
use airloom_base::random::Stream;
use bytes::{Bytes, BytesMut};
use delegate::delegate;

use super::{Cipher, Lost, Observed, Observer, PathView, TAG, Watch};
use crate::clock::{self, Moment};
use crate::secret::Secret;
use congestion::{Controller, ControllerMetrics};
use crypto::{AeadKey, CryptoError, HandshakeTokenKey, PacketKey};

/// It has a path at a time, and its pacer asks no controller: where one of the other library's is, it says no.
pub(crate) const HAS_SEVERAL_PATHS: bool = false;
pub(crate) const OBEYS_RATES: bool = false;

/// Data stands behind a challenge in the same datagram.
pub(crate) const FILLS_CHALLENGES: bool = true;

/// A path that becomes another one has had the probe timeouts of the one before.
pub(crate) const FORGETS_PROBES: bool = false;

/// How long after the last packet the next probe leaves, where the first one does after `base`, and so many have.
pub(crate) fn probe_wait(base: Span, probes: u32, _: bool, _: Span, _: Option<Span>) -> Span {
    base * (1 << probes.min(16))
}

/// What makes controllers that are BBR: settings refuse it here.
pub(crate) fn bbr(
    initial_window: u64,
    _: Arc<Mutex<Stream>>,
) -> Arc<dyn congestion::ControllerFactory + Send + Sync> {
    let mut settings = congestion::BbrConfig::default();
    settings.initial_window(initial_window);
    Arc::new(settings)
}

/// Datagrams at a time.
pub(super) const MOST: usize = 1;

/// How it passes a connection id, and a configuration to the session that it starts.
pub(crate) type Id<'a> = &'a ConnectionId;
pub(crate) type This<'a, T> = Arc<T>;

pub(crate) fn id<'a>(id: &'a Id<'_>) -> &'a ConnectionId {
    id
}

/// There are no paths to name: no number is one's.
pub(crate) type PathId = u32;

/// An endpoint: what all connections of a host share.
pub(crate) fn endpoint(config: EndpointConfig) -> Endpoint {
    Endpoint::new(Arc::new(config), None, true, None)
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
    let ecn = EcnCodepoint::from_bits(ecn);
    endpoint.handle(clock::to_library(now), remote, Some(local), ecn, octets, answer)
}

/// What the client of one that would open a connection calls it.
pub(crate) fn first_id(incoming: &Incoming) -> ConnectionId {
    *incoming.orig_dst_cid()
}

/// Writes to a stream; how many octets were taken.
pub(crate) fn write(stream: &mut SendStream<'_>, octets: Bytes) -> Result<usize, WriteError> {
    stream.write_chunks(&mut [octets]).map(|written| written.bytes)
}

/// An end of a connection for a reason of ours.
pub(crate) fn error(code: TransportErrorCode, why: &str) -> TransportError {
    TransportError { code, frame: None, reason: why.to_owned() }
}

/// The client's host has changed to another address.
pub(crate) fn address_changed(connection: &mut Connection, now: airloom_base::Instant) {
    connection.path_changed(clock::to_library(now));
    connection.local_address_changed();
}

/// Which names an endpoint's connections have.
pub(crate) fn name_by(
    config: &mut EndpointConfig,
    generator: impl Fn() -> Box<dyn ConnectionIdGenerator> + Send + Sync + 'static,
) {
    config.cid_generator(generator);
}

/// The address that a connection's packets go to.
pub(crate) fn remote(connection: &Connection) -> Option<SocketAddr> {
    Some(connection.remote_address())
}

/// The address that its packets go to.
pub(crate) fn remotes(connection: &Connection) -> Vec<SocketAddr> {
    vec![connection.remote_address()]
}

/// It has one path, wherever its packets come to.
pub(crate) fn is_astray(_: &Connection, _: IpAddr, _: Option<IpAddr>) -> bool {
    false
}

/// The round trip, as far as it is known.
pub(crate) fn round_trip(connection: &Connection) -> Duration {
    connection.rtt()
}

/// It asks by itself: it keeps the path before, and challenges it.
pub(crate) fn ask_before_moving(_: &mut Connection, _: SocketAddr) -> bool {
    false
}

/// It has none.
pub(crate) fn several_paths(_: &mut TransportConfig, _: u32) {}

/// May a client open another path beside the one it uses?
pub(crate) fn has_several_paths(_: &Connection) -> bool {
    false
}

/// There is no other path.
pub(crate) fn open_path(
    _: &mut Connection,
    _: airloom_base::Instant,
    _: SocketAddr,
    _: IpAddr,
) -> Option<PathId> {
    None
}

/// There is no other path.
pub(crate) fn keep_path(_: &mut Connection, _: airloom_base::Instant, _: PathId) {}

/// There is no other path.
pub(crate) fn other_paths(_: &mut Connection, _: PathId) -> Vec<(PathId, u64)> {
    Vec::new()
}

/// There is no path to ask of.
pub(crate) fn lost_on(_: &mut Connection, _: PathId) -> Option<u64> {
    None
}

/// Octets of packets that were lost so far: of those of a path that is given up no controller is told.
pub(crate) fn lost_untold(connection: &Connection) -> Option<u64> {
    Some(connection.stats().path.lost_bytes)
}

/// No path is dropped.
pub(crate) fn dropped(_: &Event) -> Option<(PathId, u64)> {
    None
}

/// Of paths it tells nothing.
pub(crate) fn validated(_: &Connection, _: &Event) -> Option<(PathId, SocketAddr, Option<IpAddr>)> {
    None
}

/// A cipher as the library takes it.
pub(crate) struct Key<C>(pub(crate) C);

impl<C: Cipher> PacketKey for Key<C> {
    fn encrypt(&self, number: u64, packet: &mut [u8], header: usize) {
        self.0.seal(0, number, packet, header);
    }
    fn decrypt(&self, number: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        self.0.open(0, number, header, payload)
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
    fn encrypt(&self, number: u64, packet: &mut [u8], header: usize) {
        let kept = self.observer.sent(0, number, packet, header);
        self.inner.encrypt(number, &mut packet[..kept], header);
    }
    fn decrypt(&self, number: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let len = header.len() + payload.len();
        self.inner.decrypt(number, header, payload)?;
        self.observer.received(0, number, header, payload, len);
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

/// The one path of a connection.
pub(crate) fn views(connection: &Connection) -> Vec<PathView> {
    let metrics = connection.congestion_state().metrics();
    vec![PathView {
        number: 0,
        local: connection.local_ip(),
        remote: connection.remote_address(),
        window: metrics.congestion_window,
        ssthresh: metrics.ssthresh,
        // It paces by itself, and tells no rate.
        pacing_rate: None,
        smoothed: connection.rtt(),
    }]
}

/// A secret with the octets that it is used with once.
struct Once(Secret, Vec<u8>);

impl HandshakeTokenKey for Secret {
    fn aead_from_hkdf(&self, random: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Once(*self, random.to_vec()))
    }
}

impl AeadKey for Once {
    fn seal(&self, data: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        self.0.hide(&self.1, data);
        Ok(())
    }
    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        self.0.show(&self.1, data).ok_or(CryptoError)
    }
}

/// A controller that is watched.
pub(crate) struct Watched<W> {
    pub(crate) inner: Box<dyn Controller>,
    pub(crate) watch: W,
}

impl<W: Watch> Controller for Watched<W> {
    delegate! {
        to self.inner {
            fn on_end_acks(&mut self, now: Moment, in_flight: u64, app_limited: bool, largest: Option<u64>);
            fn on_mtu_update(&mut self, mtu: u16);
            fn window(&self) -> u64;
            fn metrics(&self) -> ControllerMetrics;
            fn initial_window(&self) -> u64;
        }
    }

    fn on_sent(&mut self, now: Moment, bytes: u64, last: u64) {
        self.watch.sent(now, last);
        self.inner.on_sent(now, bytes, last);
    }
    fn on_ack(&mut self, now: Moment, sent: Moment, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.watch.acknowledged(now, sent, bytes, None, rtt.get());
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }
    fn on_congestion_event(&mut self, now: Moment, sent: Moment, is_persistent: bool, lost: u64) {
        // It counts no packets here: an episode counts for one.
        self.watch.lost(Lost::Until(sent, lost));
        self.inner.on_congestion_event(now, sent, is_persistent, lost);
    }
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Watched { inner: self.inner.clone_box(), watch: self.watch.clone() })
    }
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}

//! Around the keys of a server's session: where challenges are read, and cut.

use std::any::Any;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::library::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use crate::library::transport_parameters::TransportParameters;
use crate::library::{Id, Observed, Observer, Side, TAG, This, TransportError};
use crate::qlog::frames;

/// What an answer to a challenge begins with (RFC 9000, 19.18).
const PATH_RESPONSE: u8 = 0x1B;

/// Challenges that are without an answer at most. The library sends three or four, and gives up.
const MOST: usize = 64;

/// What keys see, for the guard of their connection.
#[derive(Default)]
pub(super) struct Seen {
    /// Some address has not shown itself. Else nothing is looked into.
    pub(super) watches: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// A packet of the handshake or behind it was opened: the client is where its first one came from (RFC 9000, 8.1).
    is_proven: bool,
    /// Octets that the next datagram may have.
    room: Option<u64>,
    /// How many it was cut by, and the challenges in it.
    cut: usize,
    said: Vec<[u8; 8]>,
    /// Challenges that have left, and where to; addresses that have answered one.
    asked: Vec<([u8; 8], SocketAddr)>,
    shown: Vec<SocketAddr>,
}

impl Seen {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A datagram is made, of so many octets at most.
    pub(super) fn begin(&self, room: Option<u64>) {
        let mut state = self.lock();
        (state.room, state.cut) = (room, 0);
        state.said.clear();
    }

    /// It is made, for this address; or none was. By how many octets it was cut.
    pub(super) fn end(&self, to: Option<SocketAddr>) -> usize {
        let mut state = self.lock();
        let said = std::mem::take(&mut state.said);
        state.asked.extend(said.into_iter().zip(to.into_iter().cycle()));
        let many = state.asked.len().saturating_sub(MOST);
        state.asked.drain(..many);
        state.room = None;
        state.cut
    }

    /// Has the first address shown itself? And which others have, since this was asked last?
    pub(super) fn shown(&self) -> (bool, Vec<SocketAddr>) {
        let mut state = self.lock();
        (state.is_proven, std::mem::take(&mut state.shown))
    }
}

/// What a key is shown goes there.
struct Watcher(Arc<Seen>);

impl Observer for Watcher {
    fn sent(&self, _: u32, _: u64, packet: &[u8], header: usize) -> usize {
        if !self.0.watches.load(Relaxed) {
            return packet.len();
        }
        let mut state = self.0.lock();
        let (Some(room), Some(payload)) = (state.room, packet.get(header..packet.len().saturating_sub(TAG)))
        else {
            return packet.len();
        };
        let told = frames::read(payload, 0).told;
        let is = |kind: &'static str| told.iter().filter(move |frame| frame["frame_type"] == kind);
        let challenges = is("path_challenge").filter_map(|frame| frame["data"].as_str());
        state
            .said
            .extend(challenges.filter_map(|hex| Some(u64::from_str_radix(hex, 16).ok()?.to_be_bytes())));
        let padding = match told.last() {
            //= RFC 9000 (8.2.1, 8.2.2): what tests a path is not expanded where the limit does not permit that. Whatever else is filled,
            //= to find out what the path takes, stays as it is.
            Some(last) if last["frame_type"] == "padding" => last["raw"]["length"].as_u64().unwrap_or(0),
            _ => 0,
        };
        let tests = is("path_challenge").chain(is("path_response")).next().is_some();
        if tests && packet.len() as u64 > room {
            state.cut = padding as usize;
        }
        packet.len() - state.cut
    }

    fn received(&self, _: u32, _: u64, _: &[u8], payload: &[u8], _: usize) {
        if !self.0.watches.load(Relaxed) {
            return;
        }
        let mut state = self.0.lock();
        state.is_proven = true;
        //= RFC 9000 (8.2.3): an answer validates the path that the challenge was sent by, whichever it comes by. Whoever can say what was in
        //= it has had it, wherever in a packet that stands.
        for frame in payload.windows(9).filter(|frame| frame[0] == PATH_RESPONSE) {
            while let Some(place) = state.asked.iter().position(|(challenge, _)| frame[1..] == *challenge) {
                let (_, shown) = state.asked.swap_remove(place);
                state.shown.push(shown);
            }
        }
    }
}

/// What makes a server's sessions.
pub(super) struct Server {
    pub(super) inner: Arc<dyn crypto::ServerConfig>,
    pub(super) seen: Arc<Seen>,
}

impl crypto::ServerConfig for Server {
    fn initial_keys(&self, version: u32, id: Id<'_>) -> Result<Keys, UnsupportedVersion> {
        self.inner.initial_keys(version, id)
    }
    fn retry_tag(&self, version: u32, id: Id<'_>, packet: &[u8]) -> [u8; 16] {
        self.inner.retry_tag(version, id, packet)
    }
    fn start_session(
        self: This<'_, Self>,
        version: u32,
        parameters: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        let inner = self.inner.clone().start_session(version, parameters);
        Box::new(Session { inner, seen: Arc::clone(&self.seen) })
    }
}

struct Session {
    inner: Box<dyn crypto::Session>,
    seen: Arc<Seen>,
}

impl Session {
    fn watched(&self, KeyPair { local, remote }: KeyPair<Box<dyn PacketKey>>) -> KeyPair<Box<dyn PacketKey>> {
        let watched =
            |inner| Box::new(Observed { inner, observer: Watcher(Arc::clone(&self.seen)) }) as Box<_>;
        KeyPair { local: watched(local), remote: watched(remote) }
    }
}

impl crypto::Session for Session {
    // Initial packets prove nothing: anybody has their keys.
    fn initial_keys(&self, id: Id<'_>, side: Side) -> Keys {
        self.inner.initial_keys(id, side)
    }
    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let Keys { header, packet } = self.inner.write_handshake(out)?;
        Some(Keys { header, packet: self.watched(packet) })
    }
    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.inner.next_1rtt_keys()?;
        Some(self.watched(keys))
    }
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }
    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }
    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.inner.early_crypto()
    }
    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }
    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }
    fn read_handshake(&mut self, octets: &[u8]) -> Result<bool, TransportError> {
        self.inner.read_handshake(octets)
    }
    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }
    fn is_valid_retry(&self, id: Id<'_>, header: &[u8], payload: &[u8]) -> bool {
        self.inner.is_valid_retry(id, header, payload)
    }
    fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(out, label, context)
    }
}

//! Around the keys of a server's session: where challenges are read, and cut.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::library::crypto::KeyPair;
use crate::library::transport_parameters::TransportParameters;
use crate::library::{Observer, TAG};
use crate::qlog::frames;
use crate::session::layer::{Key, Layer, Listener, observed};

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

/// What keys are shown goes there.
#[derive(Clone)]
pub(super) struct Watcher(pub(super) Arc<Seen>);

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
        if state.asked.is_empty() {
            return;
        }
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

impl Listener for Watcher {
    type Layer = Watcher;
    fn begin(&self, _: &TransportParameters) -> Option<Watcher> {
        Some(self.clone())
    }
}

// Initial packets prove nothing, anybody has their keys; neither do early ones, which may be copies.
impl Layer for Watcher {
    fn around(&mut self, KeyPair { local, remote }: KeyPair<Key>) -> KeyPair<Key> {
        KeyPair { local: observed(local, self.clone()), remote: observed(remote, self.clone()) }
    }
}

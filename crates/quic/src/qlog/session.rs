//! Where packets are read as plain text: around the keys of whichever session a connection has.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use super::recovery::Space;
use super::{Opened, Trace};
use crate::library::crypto::{self, KeyPair};
use crate::library::transport_parameters::TransportParameters;
use crate::library::{ConnectionId, Observer, Side, TAG};
use crate::session::layer::{Client, Key, Layer, Listener, Server, observed};

impl Trace {
    /// What makes a client's session, with the trace around it.
    pub fn client(&self, inner: Arc<dyn crypto::ClientConfig>) -> Arc<dyn crypto::ClientConfig> {
        let trace = self.clone();
        let begin = move |parameters: &TransportParameters| {
            trace.lock().said(parameters);
            Reader::new(&trace, Side::Client)
        };
        Arc::new(Client { inner, begin })
    }

    /// What makes a server's session, with the trace around it. `opening` has the packet that opened the connection.
    pub fn server(
        &self,
        inner: Arc<dyn crypto::ServerConfig>,
        opening: &Opening,
    ) -> Arc<dyn crypto::ServerConfig> {
        let listener = Host { opening: opening.clone(), trace: Some(self.clone()) };
        Arc::new(Server { inner, listener })
    }
}

#[derive(Default)]
struct First {
    is_wanted: AtomicBool,
    packet: Mutex<Option<Opened>>,
}

/// The packet that opens a connection: it is read before there is one to tell of it.
#[derive(Clone, Default)]
pub struct Opening(Arc<First>);

impl Opening {
    /// Says whether somebody wants it.
    pub fn want(&self, is_wanted: bool) {
        self.0.is_wanted.store(is_wanted, Relaxed);
    }

    /// What makes sessions of a server whose opening packets are kept here.
    pub fn listen(&self, inner: Arc<dyn crypto::ServerConfig>) -> Arc<dyn crypto::ServerConfig> {
        Arc::new(Server { inner, listener: Host { opening: self.clone(), trace: None } })
    }

    fn take(&self) -> Option<Opened> {
        self.0.packet.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Observer for Opening {
    fn sent(&self, _: u32, _: u64, packet: &[u8], _: usize) -> usize {
        packet.len()
    }
    fn received(&self, _: u32, number: u64, header: &[u8], payload: &[u8], len: usize) {
        let opened = Opened { number, header: header.to_vec(), payload: payload.to_vec(), len };
        *self.0.packet.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
    }
}

/// Tells a trace what a key protects. Where `of` says so it is the last to know its space.
struct Spoken {
    trace: Trace,
    of: Option<Space>,
}

impl Observer for Spoken {
    fn sent(&self, path: u32, number: u64, packet: &[u8], header: usize) -> usize {
        if let Some((header, payload)) = packet.split_at_checked(header) {
            let payload = &payload[..payload.len().saturating_sub(TAG)];
            self.trace.lock().sent(path, number, header, payload, packet.len());
        }
        packet.len()
    }
    fn received(&self, path: u32, number: u64, header: &[u8], payload: &[u8], len: usize) {
        self.trace.lock().received(path, number, header, payload, len);
    }
}

impl Drop for Spoken {
    fn drop(&mut self) {
        if let Some(space) = self.of {
            let mut events = self.trace.lock();
            let now = events.now;
            events.recovery.discarded(now, space);
        }
    }
}

/// What reads the sessions of a server: for a trace, if there is one by then, and for what opens a connection before.
struct Host {
    opening: Opening,
    trace: Option<Trace>,
}

impl Listener for Host {
    type Layer = Reader;
    fn begin(&self, parameters: &TransportParameters) -> Option<Reader> {
        let trace = self.trace.as_ref()?;
        trace.lock().accepted(parameters, self.opening.take());
        Some(Reader::new(trace, Side::Server))
    }
    fn around_opening(&self, key: Key) -> Key {
        if self.opening.0.is_wanted.load(Relaxed) { observed(key, self.opening.clone()) } else { key }
    }
}

/// Reads a session for its trace.
struct Reader {
    trace: Trace,
    side: Side,
    /// It has given the keys of the handshake.
    is_handshake: bool,
    /// What the peer says of itself has been told.
    has_told: bool,
}

impl Reader {
    fn new(trace: &Trace, side: Side) -> Reader {
        Reader { trace: trace.clone(), side, is_handshake: false, has_told: false }
    }

    fn observer(&self, of: Option<Space>) -> Spoken {
        Spoken { trace: self.trace.clone(), of }
    }

    fn heard(&self, KeyPair { local, remote }: KeyPair<Key>, of: Option<Space>) -> KeyPair<Key> {
        KeyPair { local: observed(local, self.observer(of)), remote: observed(remote, self.observer(None)) }
    }
}

impl Layer for Reader {
    fn around(&mut self, keys: KeyPair<Key>) -> KeyPair<Key> {
        //= RFC 9001 (4.9.2): those of the handshake come first, and go once it is confirmed.
        let is_first = !std::mem::replace(&mut self.is_handshake, true);
        self.heard(keys, is_first.then_some(Space::Handshake))
    }
    fn around_initial(&self, id: &ConnectionId, keys: KeyPair<Key>) -> KeyPair<Key> {
        self.trace.lock().named(id);
        self.heard(keys, Some(Space::Initial))
    }
    fn around_early(&self, session: &dyn crypto::Session, key: Key) -> Key {
        if self.side.is_client()
            && let Ok(Some(remembered)) = session.transport_parameters()
        {
            self.trace.lock().heard(&remembered, true);
        }
        observed(key, self.observer(None))
    }
    /// Tells what the peer says of itself, once it is known: to a client not before the server's word is authentic.
    fn went_on(&mut self, session: &dyn crypto::Session) {
        if !self.has_told
            && (self.side.is_server() || !session.is_handshaking())
            && let Ok(Some(parameters)) = session.transport_parameters()
        {
            self.has_told = true;
            self.trace.lock().heard(&parameters, false);
        }
    }
    fn retried(&self, header: &[u8], octets: usize) {
        self.trace.lock().retried(header, octets);
    }
}

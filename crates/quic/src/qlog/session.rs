//! Where packets are read as plain text: around the keys of whichever session a connection has.

use std::any::Any;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use super::recovery::Space;
use super::{Opened, Trace};
use crate::library::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use crate::library::transport_parameters::TransportParameters;
use crate::library::{self, ConnectError, Id, Observed, Observer, Side, This, TransportError};

impl Trace {
    /// What makes a client's session, with the trace around it.
    pub fn client(&self, inner: Arc<dyn crypto::ClientConfig>) -> Arc<dyn crypto::ClientConfig> {
        Arc::new(Client { inner, trace: self.clone() })
    }

    /// What makes a server's session, with the trace around it. `opening` has the packet that opened the connection.
    pub fn server(
        &self,
        inner: Arc<dyn crypto::ServerConfig>,
        opening: &Opening,
    ) -> Arc<dyn crypto::ServerConfig> {
        Arc::new(Server { inner, opening: opening.clone(), trace: Some(self.clone()) })
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
        Arc::new(Server { inner, opening: self.clone(), trace: None })
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
            let payload = &payload[..payload.len().saturating_sub(library::TAG)];
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

pub(super) struct Client {
    pub(super) inner: Arc<dyn crypto::ClientConfig>,
    pub(super) trace: Trace,
}

impl crypto::ClientConfig for Client {
    fn start_session(
        self: This<'_, Self>,
        version: u32,
        server: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        let inner = self.inner.clone().start_session(version, server, parameters)?;
        self.trace.lock().said(parameters);
        Ok(Box::new(Session::new(inner, &self.trace, Side::Client)))
    }
}

pub(super) struct Server {
    pub(super) inner: Arc<dyn crypto::ServerConfig>,
    pub(super) opening: Opening,
    pub(super) trace: Option<Trace>,
}

impl crypto::ServerConfig for Server {
    fn initial_keys(&self, version: u32, id: Id<'_>) -> Result<Keys, UnsupportedVersion> {
        let mut keys = self.inner.initial_keys(version, id)?;
        if self.opening.0.is_wanted.load(Relaxed) {
            keys.packet.remote =
                Box::new(Observed { inner: keys.packet.remote, observer: self.opening.clone() });
        }
        Ok(keys)
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
        let Some(trace) = &self.trace else { return inner };
        trace.lock().accepted(parameters, self.opening.take());
        Box::new(Session::new(inner, trace, Side::Server))
    }
}

struct Session {
    inner: Box<dyn crypto::Session>,
    trace: Trace,
    side: Side,
    /// It has given the keys of the handshake.
    is_handshake: bool,
    /// What the peer says of itself has been told.
    has_told: bool,
}

impl Session {
    fn new(inner: Box<dyn crypto::Session>, trace: &Trace, side: Side) -> Session {
        Session { inner, trace: trace.clone(), side, is_handshake: false, has_told: false }
    }

    fn observer(&self, of: Option<Space>) -> Spoken {
        Spoken { trace: self.trace.clone(), of }
    }

    fn heard(&self, pair: KeyPair<Box<dyn PacketKey>>, of: Option<Space>) -> KeyPair<Box<dyn PacketKey>> {
        KeyPair {
            local: Box::new(Observed { inner: pair.local, observer: self.observer(of) }),
            remote: Box::new(Observed { inner: pair.remote, observer: self.observer(None) }),
        }
    }

    fn keys(&self, keys: Keys, of: Option<Space>) -> Keys {
        Keys { header: keys.header, packet: self.heard(keys.packet, of) }
    }

    /// Tells what the peer says of itself, once it is known: to a client not before the server's word is authentic.
    fn look(&mut self) {
        if !self.has_told
            && (self.side.is_server() || !self.inner.is_handshaking())
            && let Ok(Some(parameters)) = self.inner.transport_parameters()
        {
            self.has_told = true;
            self.trace.lock().heard(&parameters, false);
        }
    }
}

impl crypto::Session for Session {
    fn initial_keys(&self, id: Id<'_>, side: Side) -> Keys {
        self.trace.lock().named(library::id(&id));
        self.keys(self.inner.initial_keys(id, side), Some(Space::Initial))
    }
    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.inner.handshake_data()
    }
    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.inner.peer_identity()
    }
    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let (header, inner) = self.inner.early_crypto()?;
        if self.side.is_client()
            && let Ok(Some(remembered)) = self.inner.transport_parameters()
        {
            self.trace.lock().heard(&remembered, true);
        }
        Some((header, Box::new(Observed { inner, observer: self.observer(None) })))
    }
    fn early_data_accepted(&self) -> Option<bool> {
        self.inner.early_data_accepted()
    }
    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }
    fn read_handshake(&mut self, octets: &[u8]) -> Result<bool, TransportError> {
        let read = self.inner.read_handshake(octets)?;
        self.look();
        Ok(read)
    }
    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.inner.transport_parameters()
    }
    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let keys = self.inner.write_handshake(out);
        self.look();
        //= RFC 9001 (4.9.2): those of the handshake come first, and go once it is confirmed.
        let of = if self.is_handshake { None } else { Some(Space::Handshake) };
        let keys = self.keys(keys?, of);
        self.is_handshake = true;
        Some(keys)
    }
    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.inner.next_1rtt_keys()?;
        Some(self.heard(keys, None))
    }
    fn is_valid_retry(&self, id: Id<'_>, header: &[u8], payload: &[u8]) -> bool {
        let is_valid = self.inner.is_valid_retry(id, header, payload);
        if is_valid {
            self.trace.lock().retried(header, header.len() + payload.len());
        }
        is_valid
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

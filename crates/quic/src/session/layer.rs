//! A layer around whichever session a connection has: packets are plain text there. `qlog` tells what is in them, and the `guard` cuts
//! what a server may not send.

use std::any::Any;
use std::sync::Arc;

use delegate::delegate;

use crate::library::crypto::{
    self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion,
};
use crate::library::transport_parameters::TransportParameters;
use crate::library::{self, ConnectError, ConnectionId, Id, Observed, Observer, Side, This, TransportError};

/// The key that packets of one direction are protected by.
pub(crate) type Key = Box<dyn PacketKey>;

/// A key whose packets an observer is shown.
pub(crate) fn observed(inner: Key, observer: impl Observer) -> Key {
    Box::new(Observed { inner, observer })
}

/// What stands around one session. It leaves alone what it says nothing of.
pub(crate) trait Layer: Send + Sync + 'static {
    /// Keys of Handshake packets; then those of 1-RTT packets, each time that there are new ones.
    fn around(&mut self, keys: KeyPair<Key>) -> KeyPair<Key>;
    /// Keys of Initial packets, which follow from what the client called the server first.
    fn around_initial(&self, _id: &ConnectionId, keys: KeyPair<Key>) -> KeyPair<Key> {
        keys
    }
    /// The key of 0-RTT packets.
    fn around_early(&self, _session: &dyn crypto::Session, key: Key) -> Key {
        key
    }
    /// Something of the handshake was read or written.
    fn went_on(&mut self, _session: &dyn crypto::Session) {}
    /// A Retry packet of the server's, of so many octets, was taken for true.
    fn retried(&self, _header: &[u8], _octets: usize) {}
}

/// What puts layers around the sessions of a server.
pub(crate) trait Listener: Send + Sync + 'static {
    type Layer: Layer;
    /// A connection begins, with these parameters of ours; `None`: its session stays as it is.
    fn begin(&self, parameters: &TransportParameters) -> Option<Self::Layer>;
    /// The key of Initial packets that belong to no connection yet.
    fn around_opening(&self, key: Key) -> Key {
        key
    }
}

/// What makes a server's sessions.
pub(crate) struct Server<L> {
    pub(crate) inner: Arc<dyn crypto::ServerConfig>,
    pub(crate) listener: L,
}

impl<L: Listener> crypto::ServerConfig for Server<L> {
    fn initial_keys(&self, version: u32, id: Id<'_>) -> Result<Keys, UnsupportedVersion> {
        let mut keys = self.inner.initial_keys(version, id)?;
        keys.packet.remote = self.listener.around_opening(keys.packet.remote);
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
        match self.listener.begin(parameters) {
            Some(layer) => Box::new(Session { inner, layer }),
            None => inner,
        }
    }
}

/// What makes a client's sessions; `begin` is told the client's parameters.
pub(crate) struct Client<F> {
    pub(crate) inner: Arc<dyn crypto::ClientConfig>,
    pub(crate) begin: F,
}

impl<L, F> crypto::ClientConfig for Client<F>
where
    L: Layer,
    F: Fn(&TransportParameters) -> L + Send + Sync + 'static,
{
    fn start_session(
        self: This<'_, Self>,
        version: u32,
        server: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        let inner = self.inner.clone().start_session(version, server, parameters)?;
        Ok(Box::new(Session { inner, layer: (self.begin)(parameters) }))
    }
}

struct Session<L> {
    inner: Box<dyn crypto::Session>,
    layer: L,
}

impl<L: Layer> crypto::Session for Session<L> {
    fn initial_keys(&self, id: Id<'_>, side: Side) -> Keys {
        let Keys { header, packet } = self.inner.initial_keys(id, side);
        Keys { header, packet: self.layer.around_initial(library::id(&id), packet) }
    }
    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Key)> {
        let (header, key) = self.inner.early_crypto()?;
        Some((header, self.layer.around_early(&*self.inner, key)))
    }
    fn read_handshake(&mut self, octets: &[u8]) -> Result<bool, TransportError> {
        let read = self.inner.read_handshake(octets)?;
        self.layer.went_on(&*self.inner);
        Ok(read)
    }
    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let keys = self.inner.write_handshake(out);
        self.layer.went_on(&*self.inner);
        let Keys { header, packet } = keys?;
        Some(Keys { header, packet: self.layer.around(packet) })
    }
    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Key>> {
        let keys = self.inner.next_1rtt_keys()?;
        Some(self.layer.around(keys))
    }
    fn is_valid_retry(&self, id: Id<'_>, header: &[u8], payload: &[u8]) -> bool {
        let is_valid = self.inner.is_valid_retry(id, header, payload);
        if is_valid {
            self.layer.retried(header, header.len() + payload.len());
        }
        is_valid
    }

    delegate! {
        to self.inner {
            fn handshake_data(&self) -> Option<Box<dyn Any>>;
            fn peer_identity(&self) -> Option<Box<dyn Any>>;
            fn early_data_accepted(&self) -> Option<bool>;
            fn is_handshaking(&self) -> bool;
            fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError>;
            fn export_keying_material(
                &self,
                out: &mut [u8],
                label: &[u8],
                context: &[u8],
            ) -> Result<(), ExportKeyingMaterialError>;
        }
    }
}

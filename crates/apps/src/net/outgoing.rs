//! Octets on their way into a socket, written as the socket takes them.

use airloom_base::{Body, Cx, Filler, SocketId, Sockets};
use bytes::{Buf, Bytes};

/// Most filler octets offered in one write: a socket takes what it has room for.
const PIECE: u64 = 1 << 30;

/// Some real octets and a filler of any length behind them. Holds the real octets only, so a response of a
/// gigabyte is as small as one of ten octets.
#[derive(Default)]
pub(crate) struct Outgoing {
    head: Bytes,
    source: u32,
    offset: u64,
    left: u64,
}

impl Outgoing {
    /// `head`, then the first `len` octets of filler `source`.
    pub(crate) fn new(head: Bytes, source: u32, len: u64) -> Self {
        Outgoing::piece(head, source, 0, len)
    }

    /// `head`, then `len` octets of filler `source` from `offset` on.
    pub(crate) fn piece(head: Bytes, source: u32, offset: u64, len: u64) -> Self {
        Outgoing { head, source, offset, left: len }
    }

    /// Octets that are not written: real ones, and those of the filler behind them.
    pub(crate) fn unwritten(&self) -> (usize, u64) {
        (self.head.len(), self.left)
    }

    /// More real octets behind those there are; in front of the filler, if there is one.
    pub(crate) fn append(&mut self, octets: &[u8]) {
        self.head = Bytes::from([&self.head, octets].concat());
    }

    /// Writes the real octets alone. Are they written, and a filler follows?
    pub(crate) fn pump_head(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) -> bool {
        let left = std::mem::take(&mut self.left);
        let written = self.pump(cx, net, socket);
        self.left = left;
        written && left > 0
    }

    /// Writes until the socket takes no more. Is everything written? If not, [`Writable`] tells when to go on.
    ///
    /// [`Writable`]: airloom_base::SocketEvent::Writable
    pub(crate) fn pump(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) -> bool {
        if !self.head.is_empty() {
            let taken = net.write(cx, socket, Body::Real(self.head.clone())).unwrap_or(0);
            self.head.advance(taken.min(self.head.len()));
            if !self.head.is_empty() {
                return false;
            }
            self.head = Bytes::new();
        }
        while self.left > 0 {
            let len = self.left.min(PIECE) as u32;
            let piece = Filler { source: self.source, offset: self.offset, len };
            let taken = net.write(cx, socket, Body::Filler(piece)).unwrap_or(0).min(len as usize);
            self.offset += taken as u64;
            self.left -= taken as u64;
            if taken < len as usize {
                return false;
            }
        }
        true
    }
}

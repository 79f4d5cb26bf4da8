//! What a server sends to an address that has not shown itself: three times what came from there, in every datagram (RFC 9000, 8).
//!
//! The library keeps that limit by itself but for two things: it fills up the datagram that passes it, and a challenge to an address that its
//! client seems to have moved to has 1200 octets, whatever came from there. So octets are counted here once more, by address. A challenge
//! that would pass the limit leaves without the padding behind it. What else would waits while there is a handshake; later it does
//! not leave, and counts as lost.
//!
//! Only the keys know what stands in a packet: `keys` is a layer around the session's that cuts padding, and hears of challenges and of
//! answers to them.

mod keys;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crate::clock::Moment;
use crate::library::{self, Connection, Transmit, crypto};
use crate::session::layer::Server;
use keys::{Seen, Watcher};

/// Addresses of a peer that are known at most: more than there may be paths.
const MOST: usize = 16;

/// An address that datagrams came from.
struct Address {
    remote: SocketAddr,
    received: u64,
    sent: u64,
    is_validated: bool,
}

impl Address {
    fn new(remote: SocketAddr, is_validated: bool) -> Address {
        // Where challenges are filled with data there is nothing to cut, and nobody would ever be asked.
        let is_validated = is_validated || library::FILLS_CHALLENGES;
        Address { remote, received: 0, sent: 0, is_validated }
    }
}

/// Keeps the limit of one connection. That of a client's has nothing to do: who has asked a server knows where it is.
#[derive(Default)]
pub struct Guard {
    addresses: Vec<Address>,
    seen: Arc<Seen>,
    /// The first address has shown itself.
    is_proven: bool,
    /// When a client was asked last whether it is where it was.
    asked: Option<Moment>,
    /// A datagram of the handshake for which there is no room yet.
    held: Option<(Transmit, Vec<u8>)>,
}

impl Guard {
    /// For a server's connection that a datagram of `octets` from `remote` opens; `is_validated` if its token says that it has been there.
    pub fn new(remote: SocketAddr, octets: usize, is_validated: bool) -> Guard {
        let first = Address { received: octets as u64, ..Address::new(remote, is_validated) };
        let mut guard = Guard { is_proven: first.is_validated, ..Guard::default() };
        guard.addresses.push(first);
        guard.watch();
        guard
    }

    /// What makes the server's session, with the layer around its keys that the guard needs.
    pub fn around(&self, inner: Arc<dyn crypto::ServerConfig>) -> Arc<dyn crypto::ServerConfig> {
        Arc::new(Server { inner, listener: Watcher(Arc::clone(&self.seen)) })
    }

    /// A datagram of `octets` has come from `remote`, of which the connection is told next. True: the client has not been there before.
    /// It moves, or somebody has copied a packet of its and was faster; a PING waits, and has to leave by the path in use before the
    /// library changes to the other one.
    //= RFC 9000 (9.3.3): the path before is asked as well, which makes a client that is still there send a packet from there; that is
    //= newer than the copy, and the server goes back.
    pub fn received(
        &mut self,
        quic: &mut Connection,
        now: Moment,
        remote: SocketAddr,
        octets: usize,
    ) -> bool {
        if self.seen.watches.load(Relaxed) {
            self.listen();
        }
        let is_handshaking = quic.is_handshaking();
        match self.addresses.iter_mut().find(|known| known.remote == remote) {
            Some(known) => known.received += octets as u64,
            // A client, or what is no client's: nobody moves during a handshake (RFC 9000, 9).
            None if !self.is_proven || is_handshaking => return false,
            None => self.meet(quic, remote, octets),
        }
        // Whoever knows the connection's id may have as many addresses as they like.
        let asks = !is_handshaking
            && self
                .asked
                .is_none_or(|asked| now.saturating_duration_since(asked) >= library::round_trip(quic))
            && library::ask_before_moving(quic, remote);
        if asks {
            self.asked = Some(now);
        }
        asks
    }

    /// The next datagram of the connection, in `buffer`.
    pub fn transmit(&mut self, quic: &mut Connection, now: Moment, buffer: &mut Vec<u8>) -> Option<Transmit> {
        if let Some((sent, octets)) = self.held.take() {
            self.listen();
            if !self.leaves(sent.destination, sent.size as u64) {
                self.held = Some((sent, octets));
                return None;
            }
            *buffer = octets;
            return Some(sent);
        }
        while self.seen.watches.load(Relaxed) {
            self.listen();
            let is_handshaking = quic.is_handshaking();
            let room = library::remotes(quic).into_iter().filter_map(|remote| self.room(remote)).min();
            self.seen.begin(room.filter(|_| !is_handshaking));
            buffer.clear();
            let sent = library::transmit(quic, now, buffer);
            let cut = self.seen.end(sent.as_ref().map(|sent| sent.destination));
            let mut sent = sent?;
            sent.size -= cut;
            buffer.truncate(sent.size);
            if self.leaves(sent.destination, sent.size as u64) {
                return Some(sent);
            }
            if is_handshaking {
                self.held = Some((sent, buffer.clone()));
                return None;
            }
        }
        library::transmit(quic, now, buffer)
    }

    /// An address that is new.
    fn meet(&mut self, quic: &Connection, remote: SocketAddr, octets: usize) {
        if self.addresses.len() >= MOST {
            let used = library::remotes(quic);
            let is_left = |one: &Address| !used.contains(&one.remote);
            let strangers = self.addresses.iter().position(|one| !one.is_validated && is_left(one));
            let oldest = strangers.or_else(|| self.addresses.iter().position(is_left));
            self.addresses.remove(oldest.unwrap_or(0));
        }
        self.addresses.push(Address { received: octets as u64, ..Address::new(remote, false) });
        self.watch();
    }

    /// Takes in which addresses have shown themselves.
    fn listen(&mut self) {
        let (is_proven, shown) = self.seen.shown();
        // Until then no other address is taken in.
        let first = is_proven && !self.is_proven;
        self.is_proven |= is_proven;
        for address in &mut self.addresses {
            address.is_validated |= first || shown.contains(&address.remote);
        }
        self.watch();
    }

    fn watch(&self) {
        self.seen.watches.store(self.addresses.iter().any(|one| !one.is_validated), Relaxed);
    }

    /// Octets that may be sent there; `None`: as many as one likes.
    fn room(&self, remote: SocketAddr) -> Option<u64> {
        match self.addresses.iter().find(|one| one.remote == remote) {
            Some(one) if one.is_validated => None,
            //= RFC 9000 (8.1): no more than three times the octets received before the address is validated.
            Some(one) => Some((3 * one.received).saturating_sub(one.sent)),
            None => Some(0),
        }
    }

    /// So many octets are to leave for there, and count as sent. False: they may not.
    pub fn leaves(&mut self, remote: SocketAddr, octets: u64) -> bool {
        let may = self.room(remote).is_none_or(|room| octets <= room);
        if let Some(one) = self.addresses.iter_mut().find(|one| may && one.remote == remote) {
            one.sent += octets;
        }
        may
    }
}

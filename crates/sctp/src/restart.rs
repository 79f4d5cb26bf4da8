//! The peer lost all it knew of the association and opens it again (RFC 9260, 5.2.2 and 5.2.4, action A).
//!
//! Who takes whole messages and asks for it ([`Association::survive_restarts`]) goes on with the same association, from the
//! beginning: what was on its way is lost, as for the peer. Streams of octets cannot go on in the middle, so their
//! association ends as reset, and the peer's repeated COOKIE ECHO makes a new one.

use std::net::IpAddr;

use airloom_base::{CloseReason, Cx, TransportEvent};

use super::association::{Association, SackDue};
use super::chunk::{Cause, Chunk, Init};
use super::cookie::{self, Cookie};
use super::flight::Flight;
use super::handshake::address;
use super::inbound::Inbound;
use super::path::PathState;
use super::state::State;

impl Association {
    /// From now on a peer that begins anew does not end the association. [`poll_restarted`](Self::poll_restarted) tells of it.
    pub fn survive_restarts(&mut self) {
        self.survives = true;
    }

    /// Has the peer begun anew since this was asked last? Then what was sent and received before is forgotten.
    pub fn poll_restarted(&mut self) -> bool {
        std::mem::take(&mut self.restarted)
    }

    /// Addresses in an INIT that an association with this peer does not know: it is refused, so that nobody takes an
    /// association over by opening it from elsewhere.
    pub(super) fn new_addresses(&self, init: &Init) -> Option<Cause> {
        let told = cookie::addresses(init, &self.shared.config);
        let is_known = |address: &IpAddr| {
            self.peer_addresses.contains(address) || self.paths.iter().any(|p| p.address.remote == *address)
        };
        let new: Vec<u8> = told
            .into_iter()
            .filter(|address| !is_known(address))
            .flat_map(|new| address(new).to_bytes())
            .collect();
        (!new.is_empty()).then(|| Cause::RestartWithNewAddresses(new.into()))
    }

    /// A cookie with the tags of this association, and new ones: the peer began anew. False: nothing behind it counts.
    pub(super) fn peer_restarted(&mut self, cx: &mut Cx, from: u8, cookie: Cookie) -> bool {
        match self.state {
            State::ShutdownAckSent => {
                //= RFC 9260 (5.2.4, A): SHUTDOWN ACK and an ERROR.
                self.control.push_back((from, Chunk::ShutdownAck));
                self.control.push_back((from, Chunk::Error(vec![Cause::CookieWhileShuttingDown])));
                false
            }
            State::Established if self.survives => {
                self.begin_again(cx, from, cookie);
                true
            }
            _ => {
                self.control.clear();
                self.close(CloseReason::Reset);
                false
            }
        }
    }

    fn begin_again(&mut self, cx: &mut Cx, from: u8, cookie: Cookie) {
        let config = &self.shared.config;
        (self.local_tag, self.peer_tag, self.local_tsn) =
            (cookie.local_tag, cookie.peer_tag, cookie.local_tsn);
        self.out.begin_again(cookie.outbound_streams, config.scheduler);
        // What was counted counts on.
        let (resent, spurious, gave_up) = (self.flight.resent, self.flight.spurious, self.flight.gave_up);
        self.flight = Flight::new(cookie.local_tsn, cookie.peer_window);
        (self.flight.resent, self.flight.spurious, self.flight.gave_up) = (resent, spurious, gave_up);
        let delivered = self.inbound.delivered;
        self.inbound = Inbound::new(cookie.peer_tsn, cookie.inbound_streams, config.receive_buffer.0);
        self.inbound.delivered = delivered;
        //= RFC 9260 (5.2.4, A): all that congestion control knows of the peer begins anew.
        for (number, path) in self.paths.iter_mut().enumerate() {
            *path = match number == usize::from(from) || path.confirmed {
                true => PathState::new(path.address, config),
                false => PathState::unconfirmed(path.address, config),
            };
        }
        (self.abilities, self.peer_addresses) = (cookie.abilities, cookie.addresses);
        self.control.clear();
        self.strays.clear();
        self.sack_timer.stop();
        self.probe_timer.stop();
        (self.sack_due, self.packets_unacknowledged, self.last_from) = (SackDue::No, 0, from);
        self.window_told = self.shared.config.receive_buffer.0;
        (self.ecne, self.cwr, self.ecn_reduced_to) = (None, None, 0);
        self.is_unsure = true;
        self.enter_established(cx);
        self.restarted = true;
        self.unacknowledged = 0;
        if std::mem::take(&mut self.blocked) {
            self.event(TransportEvent::Writable(0));
        }
        self.control.push_front((from, Chunk::CookieAck));
    }
}

//! How a connection opens and ends.
//!
//! ```text
//!   SYN ───────────►                     FIN (after the last N-S_ACK) ──►
//!       ◄─────── SYN-ACK                     ◄── FIN-ACK
//!   ACK ───────────►  data may come with it  (each direction by itself)
//! ```
//!
//! ASSUMPTION(wave-and-wait): all of it is ours; the paper refers to another one for it.
//!
//! A FIN is sent when everything was acknowledged, so that nothing but itself can be missing: whoever has the peer's FIN and an
//! answer to its own forgets the connection at once. A FIN of no connection is answered all the same.

use airloom_base::{CloseReason, Duration, Instant, TransportEvent};
use bytes::Bytes;

use super::connection::{Connection, State};
use super::content::Syn;
use super::wire::{Header, Kind};

/// First waiting time for the answer to a SYN (RFC 6298, 2.1), and the longest.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

impl Connection {
    pub(super) fn open(&mut self, now: Instant) {
        if self.state != State::Idle {
            return;
        }
        if self.place.is_none() {
            // Another connection has the only place there is.
            self.close(CloseReason::Refused);
            return;
        }
        self.expects(now);
        self.state = State::SynSent;
        self.asked = now;
        self.ask(now);
    }

    /// This end begins with the peer's SYN.
    pub(super) fn opened_by(&mut self, now: Instant, syn: &Syn) {
        self.expects(now);
        self.state = State::SynReceived;
        self.tx.agree(&syn.waves);
        self.rx.agree(&syn.waves);
        self.asked = now;
    }

    fn control(&mut self, kind: Kind, content: Bytes) {
        let mask = (1 << self.layout.number_bits()) - 1;
        let number = match kind {
            Kind::Fin => self.tx.next() as u32 & mask,
            _ => 0,
        };
        self.out.push_back((Header { kind, level: 0, wave: 0, number }, content));
    }

    fn named(&self) -> Bytes {
        Bytes::copy_from_slice(&self.tag.to_be_bytes())
    }

    /// Sends what is waited for an answer to, and waits longer each time.
    fn ask(&mut self, now: Instant) {
        let wait = match self.state {
            State::SynSent => {
                let syn = Syn { tag: self.tag, ports: self.ports, waves: self.config.waves.clone() };
                self.control(Kind::Syn, syn.emit());
                FIRST_WAIT
            }
            State::SynReceived => {
                self.control(Kind::SynAck, self.named());
                FIRST_WAIT
            }
            State::Open => {
                self.control(Kind::Fin, self.named());
                self.trip.smallest().map_or(FIRST_WAIT, |trip| (trip * 2).max(Duration::from_millis(50)))
            }
            State::Idle | State::Over => return,
        };
        self.again.arm_after(now, (wait * (1 << self.tries.min(10))).min(LONGEST_WAIT));
        self.tries += 1;
    }

    pub(super) fn expire(&mut self, now: Instant) {
        if self.again.take_due(now) {
            self.ask(now);
        }
    }

    /// Everything that was written is acknowledged, and nothing follows.
    pub(super) fn finish_now(&mut self, now: Instant) {
        self.expects(now);
        (self.fin_sent, self.tries) = (true, 0);
        self.ask(now);
    }

    /// A segment of ours under our tag opens or ends something.
    pub(super) fn set_up(&mut self, now: Instant, h: &Header, content: &[u8]) {
        match h.kind {
            // The first one begins it; a second one has missed its answer, or is a double.
            Kind::Syn
                if matches!(self.state, State::SynReceived | State::Open)
                    && !self.fin_sent
                    && Syn::parse(content).is_ok() =>
            {
                if self.tries == 0 && self.state == State::SynReceived {
                    self.ask(now);
                } else {
                    self.control(Kind::SynAck, self.named());
                }
            }
            Kind::SynAck if matches!(self.state, State::SynSent | State::Open) => {
                self.control(Kind::Ack, self.named());
                self.established(now, State::SynSent);
            }
            Kind::Ack => self.established(now, State::SynReceived),
            Kind::Fin
                if self.has_peer(now) && self.layout.unwrap(h.number, self.rx.next()) == self.rx.next() =>
            {
                self.peer_finished = true;
                self.out.push_back((Header { kind: Kind::FinAck, ..*h }, self.named()));
            }
            Kind::FinAck
                if self.fin_sent && self.layout.unwrap(h.number, self.tx.next()) == self.tx.next() =>
            {
                self.fin_acknowledged = true;
                self.again.stop();
            }
            _ => {}
        }
    }

    /// Can data be for this connection? Whoever waits for the third of the opening takes anything else for it.
    pub(super) fn has_peer(&mut self, now: Instant) -> bool {
        self.established(now, State::SynReceived);
        self.state == State::Open
    }

    fn established(&mut self, now: Instant, from: State) {
        if self.state != from {
            return;
        }
        if self.tries <= 1 {
            // Asked once, so it is known what this is the answer to.
            self.trip.measured(now.since(self.asked));
        }
        self.state = State::Open;
        self.again.stop();
        self.facts.established = Some(now);
        self.event(TransportEvent::Opened);
    }

    pub(super) fn say_reset(&mut self) {
        self.control(Kind::Rst, self.named());
    }

    /// The peer ends it, or knows nothing of it: then it says what it is that it does not know.
    pub(super) fn reset_arrives(&mut self, h: &Header, tag: u32) {
        let reason = match self.state {
            State::SynSent => CloseReason::Refused,
            _ => CloseReason::Reset,
        };
        let is_reflected = tag == 0 && h.wave == self.tx.wave() && !self.tx.is_drained();
        if tag == self.tag || (is_reflected && self.state == State::Open) {
            self.out.clear();
            self.close(reason);
        }
    }
}

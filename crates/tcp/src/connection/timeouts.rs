//! What happens when a timer expires.

use airloom_base::{CloseReason, Instant};

use super::{Connection, pending};
use crate::sender::hold;
use crate::state::{State, Step};
use crate::timers::Alarm;

impl Connection {
    /// The moment of `alarm` has come.
    pub(super) fn expires(&mut self, now: Instant, alarm: Alarm) {
        match alarm {
            Alarm::Ack => {
                self.tx.want(pending::ACK);
                self.acks.on_timer(self.tx.rto());
            }
            Alarm::Retransmission => self.retransmission_timeout(now),
            Alarm::LossProbe => self.recovery.on_probe_timeout(&mut self.tx, now),
            Alarm::Reordering => self.recovery.on_reorder_timeout(&mut self.tx, now),
            Alarm::Pacing => self.tx.want(pending::DATA),
            Alarm::ProbeAnswer => self.answer_timeout(now),
            Alarm::Persist => self.persist_timeout(now),
            Alarm::Keepalive => self.keepalive_timeout(now),
            Alarm::TimeWait if self.state == State::FinWait2 => self.fail(CloseReason::TimedOut),
            Alarm::TimeWait => self.step(now, Step::Expired),
        }
    }

    /// The retransmission timer expired.
    fn retransmission_timeout(&mut self, now: Instant) {
        let handshake = matches!(self.state, State::SynSent | State::SynReceived);
        if self.tx.is_held(hold::PROBING) {
            // Probes have a timer of their own; this one starts again when sending goes on.
            return;
        }
        if self.tx.is_held(hold::ECN) {
            //= RFC 3168 (6.1.2): with a window of one segment a report of congestion costs a timeout.
            self.tx.release(hold::ECN);
            self.tx.want(pending::DATA);
        }
        if !handshake && self.tx.snd.una() == self.tx.snd.nxt() {
            return;
        }
        let config = self.tx.config();
        let linear = u64::from(config.syn_linear_timeouts);
        let limit = match self.state {
            State::SynSent => config.syn_give_up,
            State::SynReceived => config.syn_give_up.saturating_sub(config.rto_initial * linear),
            _ => config.give_up,
        };
        //= RFC 9293 (3.8.3): R2 is about one segment, but the timeout stays backed off until one is measured (RFC 6298 5).
        let timeouts = self.tx.liveness.timeouts();
        if timeouts == 0 && !handshake {
            self.tx.liveness.stalls(now);
        }
        //= RFC 9293 (3.8.3): after R2 the connection is given up.
        let often = self.tx.config().max_retransmissions;
        let too_often = !handshake && often > 0 && timeouts >= often;
        // Where nothing was ever agreed upon, what comes says nothing for the connection.
        let is_probed = !handshake && self.tx.snd.wnd() == 0;
        if too_often || now.since(self.tx.liveness.silent_since(is_probed)) >= limit {
            if handshake {
                self.fail(CloseReason::TimedOut);
            } else {
                self.abort(CloseReason::TimedOut);
            }
            return;
        }
        self.tx.facts.rto_count += 1;
        //= RFC 6298 (5.5, 5.6): back off and start again.
        if self.state != State::SynSent || u64::from(self.tx.liveness.syns_lost()) >= linear {
            self.tx.back_off();
        }
        self.tx.liveness.timed_out();
        self.tx.arm_retransmission(now);
        if handshake {
            self.tx.liveness.syn_is_lost();
            self.tx.want(pending::SYN);
            return;
        }
        self.recovery.on_timeout(&mut self.tx, now);
    }

    /// The time in which a probe of a suspended sender should have been answered is over.
    fn answer_timeout(&mut self, now: Instant) {
        match self.tx.probe_expires(now) {
            Ok(None) => {}
            Ok(Some(suspicion)) => self.recovery.repair(&mut self.tx, now, suspicion),
            Err(()) => self.abort(CloseReason::TimedOut),
        }
    }

    /// The persist timer expired.
    fn persist_timeout(&mut self, now: Instant) {
        let tx = &mut self.tx;
        let silent = now.since(tx.liveness.last_received());
        if silent >= tx.config().give_up && tx.liveness.probes() > 2 {
            self.abort(CloseReason::TimedOut);
        } else if tx.snd.has_unsent() && tx.snd.una() == tx.snd.nxt() {
            tx.liveness.probe();
            tx.want(pending::PROBE);
        }
    }

    /// The keep-alive timer expired.
    fn keepalive_timeout(&mut self, now: Instant) {
        if !self.state.is_synchronized() || self.state == State::TimeWait {
            return;
        }
        //= RFC 9293 (3.8.4): only when nothing is outstanding; one unanswered probe proves nothing.
        let tx = &mut self.tx;
        if tx.snd.una() != tx.snd.nxt() {
            tx.arm_keepalive(now);
        } else if tx.liveness.keepalive(tx.config().keepalive_probes) {
            tx.want(pending::KEEPALIVE);
            tx.timers.arm(Alarm::Keepalive, now + tx.config().keepalive_interval);
        } else {
            self.abort(CloseReason::TimedOut);
        }
    }
}

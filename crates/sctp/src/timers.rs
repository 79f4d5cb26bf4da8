//! What expires: T3-rtx, heartbeats, delayed acknowledgements (RFC 9260, 6.2, 6.3.3, 8.1 to 8.3).

use airloom_base::{CloseReason, Cx, Duration, Instant};
use bytes::Bytes;

use super::association::{Association, SackDue};
use super::chunk::{Chunk, Parameter};
use super::state::State;

impl Association {
    pub(super) fn expire(&mut self, cx: &mut Cx) {
        if self.t1.take_due(cx.now) {
            self.t1_expired(cx);
        }
        if self.t5.take_due(cx.now) {
            self.t5_expired();
        }
        if self.t2.take_due(cx.now) {
            self.t2_expired(cx);
        }
        if self.sack_timer.take_due(cx.now) && self.sack_due == SackDue::Later {
            self.sack_due = SackDue::Now;
        }
        self.may_probe |= self.probe_timer.take_due(cx.now);
        if self.reconfiguration.timer.take_due(cx.now) {
            self.reconfiguration_expired(cx);
        }
        for number in 0..self.paths.len() {
            if self.paths[number].t3.take_due(cx.now) {
                self.t3_expired(cx, number);
            }
            if self.paths[number].heartbeat.take_due(cx.now) {
                self.heartbeat(cx, number);
            }
        }
    }

    /// T3-rtx of a path expired (6.3.3).
    fn t3_expired(&mut self, cx: &mut Cx, number: usize) {
        //= RFC 9260 (6.1, A): a probe of a closed window is no loss; it goes again ever more seldom, and is no failure either if
        //= the peer answers.
        let probe = self.flight.probe_on(number as u8);
        let config = &self.shared.config;
        let path = &mut self.paths[number];
        if probe.is_none() {
            self.facts.rto_count += 1;
            path.timed_out(config);
        }
        path.back_off(config);
        self.flight.timed_out(number as u8, &mut self.paths);
        if self.flight.waits_for_forward() {
            //= RFC 3758 (3.5, F2): FORWARD-TSN again.
            self.flight.forward_due = true;
        }
        self.record(cx, number);
        if probe != Some(true) {
            self.failed(number);
        }
    }

    /// A path gave no answer (8.1, 8.2).
    pub(super) fn failed(&mut self, number: usize) {
        let config = &self.shared.config;
        let path = &mut self.paths[number];
        path.errors += 1;
        //= RFC 9260 (5.4): who was never heard of there says nothing about the association.
        self.errors += u32::from(path.confirmed);
        if path.errors > config.path_max_retrans {
            path.active = false;
        }
        if self.errors > config.association_max_retrans {
            //= RFC 9260 (8.1): the peer is taken for unreachable.
            self.control.clear();
            self.close(CloseReason::TimedOut);
        }
    }

    /// Where new data goes: the primary path, or the first one that works (6.4).
    pub(super) fn data_path(&self) -> u8 {
        let primary = usize::from(self.primary);
        if self.paths.get(primary).is_some_and(|p| p.active) {
            return self.primary;
        }
        self.paths.iter().position(|p| p.active).map_or(self.primary, |n| n as u8)
    }

    /// Where a chunk goes that was last sent on `last` and has to be sent again: back on the same path after a fast
    /// retransmit, elsewhere after a timeout if there is an elsewhere (6.4.1).
    pub(super) fn resend_path(&self, last: u8) -> u8 {
        let failing = self.paths.get(usize::from(last)).is_none_or(|p| p.errors > 0 || !p.active);
        if !failing {
            return last;
        }
        let others = self.paths.iter().enumerate().filter(|(n, p)| *n != usize::from(last) && p.active);
        others.min_by_key(|(_, p)| p.errors).map_or(last, |(n, _)| n as u8)
    }

    /// Heartbeat interval of a path: HB.interval and its timeout, with half of that as jitter (8.3).
    fn heartbeat_after(&mut self, number: usize) -> Duration {
        self.nonces += 1;
        let drawn = self.shared.secret.nonce(self.local_tag, self.nonces) & 0xFFFF;
        let rto = self.paths[number].rto;
        self.shared.config.hb_interval + rto.mul_ratio(1, 2) + rto.mul_ratio(drawn, 0xFFFF)
    }

    pub(super) fn arm_heartbeat(&mut self, now: Instant, number: usize) {
        if self.shared.config.hb_interval.is_zero() {
            return;
        }
        let after = self.heartbeat_after(number);
        self.paths[number].heartbeat.arm_after(now, after);
    }

    fn heartbeat(&mut self, cx: &mut Cx, number: usize) {
        if !matches!(self.state, State::Established | State::ShutdownPending | State::ShutdownReceived) {
            return;
        }
        if self.paths[number].nonce.take().is_some() {
            let config = &self.shared.config;
            self.paths[number].back_off(config);
            self.failed(number);
            if self.closing.is_some() {
                return;
            }
        }
        self.arm_heartbeat(cx.now, number);
        let path = &self.paths[number];
        let idle = cx.now.since(path.last_sent) >= self.shared.config.hb_interval;
        if path.flight > 0 || (path.active && !idle) {
            return;
        }
        self.send_heartbeat(cx, number);
    }

    /// Asks for a sign of life over a new path, and again until there is one.
    pub(super) fn probe(&mut self, cx: &mut Cx, number: usize) {
        let rto = self.paths[number].rto;
        self.paths[number].heartbeat.arm_after(cx.now, rto);
        self.send_heartbeat(cx, number);
    }

    /// The peer has our COOKIE ACK, so it knows the association by all of its addresses: other paths can be tried. A heartbeat
    /// that came there before would belong to no association, and its answer end this one.
    pub(super) fn peer_is_there(&mut self, cx: &mut Cx) {
        self.is_unsure = false;
        for number in 0..self.paths.len() {
            if !self.paths[number].confirmed {
                self.probe(cx, number);
            }
        }
    }

    fn send_heartbeat(&mut self, cx: &mut Cx, number: usize) {
        self.nonces += 1;
        let nonce = self.shared.secret.nonce(self.local_tag, self.nonces);
        self.paths[number].nonce = Some((nonce, cx.now));
        let info = Bytes::copy_from_slice(&nonce.to_be_bytes());
        self.answer(number as u8, Chunk::Heartbeat(Parameter::HeartbeatInfo(info)));
    }

    pub(super) fn heartbeat_acknowledged(&mut self, cx: &mut Cx, from: u8, info: &Parameter) {
        let Parameter::HeartbeatInfo(octets) = info else { return };
        let path = &mut self.paths[usize::from(from)];
        // Only the very octets that were sent prove anything.
        let Some((nonce, at)) = path.nonce.filter(|(nonce, _)| nonce.to_be_bytes() == octets[..]) else {
            return;
        };
        let _ = nonce;
        path.nonce = None;
        path.errors = 0;
        (path.active, path.confirmed) = (true, true);
        self.errors = 0;
        path.measured(cx.now.since(at), &self.shared.config);
    }
}

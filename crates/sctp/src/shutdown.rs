//! The orderly end (RFC 9260, 9.2). There is no half close: who shuts down takes what is on its way, and no more.

use airloom_base::{CloseReason, Cx};

use super::association::{Association, SackDue};
use super::chunk::{Cause, Chunk, Sack};
use super::state::State;

impl Association {
    /// Our user has no more data.
    pub(super) fn shut_down(&mut self, cx: &mut Cx) {
        self.wants_shutdown = true;
        match self.state {
            State::Established => {
                self.state = State::ShutdownPending;
                self.follow_up(cx);
            }
            State::Closed if self.closing.is_none() => self.close(CloseReason::Finished),
            _ => {}
        }
    }

    /// What follows from what has happened: the streams, and the end once everything of ours is acknowledged.
    pub(super) fn follow_up(&mut self, cx: &mut Cx) {
        self.advance_reconfiguration(cx);
        if !self.flight.is_empty() || self.out.waiting > 0 {
            return;
        }
        match self.state {
            State::ShutdownPending => {
                self.state = State::ShutdownSent;
                self.stop_reconfiguring();
                //= RFC 9260 (9.2): T5 guards the whole end.
                self.t5.arm_after(cx.now, self.shared.config.rto_max * 5);
                self.send_shutdown(cx, self.data_path());
            }
            State::ShutdownReceived => {
                self.state = State::ShutdownAckSent;
                self.stop_reconfiguring();
                self.send_shutdown_ack(cx, self.shutdown_path);
            }
            _ => {}
        }
    }

    pub(super) fn send_shutdown(&mut self, cx: &mut Cx, path: u8) {
        self.control.retain(|(_, c)| !matches!(c, Chunk::Shutdown(_)));
        self.answer(path, Chunk::Shutdown(self.inbound.cumulative as u32));
        self.arm_t2(cx, path);
    }

    fn send_shutdown_ack(&mut self, cx: &mut Cx, path: u8) {
        self.sack_due = SackDue::No;
        self.sack_timer.stop();
        self.control.retain(|(_, c)| !matches!(c, Chunk::ShutdownAck));
        self.answer(path, Chunk::ShutdownAck);
        self.arm_t2(cx, path);
        self.tell_end();
    }

    fn arm_t2(&mut self, cx: &mut Cx, path: u8) {
        self.shutdown_path = path;
        let rto = self.paths[usize::from(path)].rto;
        self.t2.arm_after(cx.now, rto);
    }

    pub(super) fn t2_expired(&mut self, cx: &mut Cx) {
        self.facts.rto_count += 1;
        let number = usize::from(self.shutdown_path);
        self.paths[number].back_off(&self.shared.config);
        // An answer may have gone over a path that was never confirmed: that ends, too.
        self.errors += u32::from(!self.paths[number].confirmed);
        self.failed(number);
        if self.closing.is_some() {
            return;
        }
        self.flight.resent += 1;
        //= RFC 9260 (6.4.1): what has to be sent again goes elsewhere, if there is an elsewhere.
        let path = self.resend_path(self.shutdown_path);
        match self.state {
            State::ShutdownSent => self.send_shutdown(cx, path),
            State::ShutdownAckSent => self.send_shutdown_ack(cx, path),
            _ => {}
        }
    }

    pub(super) fn t5_expired(&mut self) {
        self.abort(CloseReason::TimedOut, Some(Cause::ProtocolViolation(bytes::Bytes::new())));
    }

    pub(super) fn shutdown_arrives(&mut self, cx: &mut Cx, from: u8, cumulative: u32) {
        match self.state {
            State::Established | State::ShutdownPending | State::ShutdownReceived => {
                self.state = State::ShutdownReceived;
                //= RFC 9260 (6.4): the answer goes back over the path that it came by.
                self.shutdown_path = from;
                //= RFC 9260 (3.3.8): it acknowledges up to its TSN, and takes nothing back that was reported beyond (MUST NOT);
                //= the peer's window is what it was.
                let window = self.flight.peer_window.saturating_add(self.flight.outstanding);
                let sack =
                    Sack { cumulative, window: window.min(u64::from(u32::MAX)) as u32, ..Sack::default() };
                self.sack_arrives(cx, &sack, false);
                if self.closing.is_none() {
                    self.tell_end();
                }
            }
            State::ShutdownSent => {
                //= RFC 9260 (9.2): both shut down at once.
                self.state = State::ShutdownAckSent;
                self.t2.stop();
                self.control.retain(|(_, c)| !matches!(c, Chunk::Shutdown(_)));
                self.send_shutdown_ack(cx, from);
            }
            State::ShutdownAckSent => self.send_shutdown_ack(cx, from),
            _ => {}
        }
    }

    pub(super) fn shutdown_ack_arrives(&mut self, from: u8) {
        if !matches!(self.state, State::ShutdownSent | State::ShutdownAckSent) {
            return;
        }
        self.control.clear();
        self.control.push_back((from, Chunk::ShutdownComplete { reflected: false }));
        self.close(CloseReason::Finished);
    }
}

//! What an acknowledgement does: the part that is the same whatever the sender keeps its books by. What is lost, and what follows
//! from that, is in `octets/` and `segments/`.

use airloom_base::Instant;

use super::{Connection, pending};
use crate::autotuning;
use crate::sender::{Arrived, hold};
use crate::state::{State, Step};
use crate::timers::Alarm;
use crate::wire::{Flags, Header};

impl Connection {
    /// The acknowledgement of a segment in a synchronized state; `len` is SEG.LEN.
    #[inline]
    pub fn ack_arrives(&mut self, now: Instant, h: &Header, seq: u64, ack: u64, len: u64) {
        let old_window = self.tx.snd.wnd();
        if self.tx.snd.takes_window(seq, ack) {
            //= RFC 9293 (3.10.7.4): only a newer segment moves the window. One that acknowledges more than any before it is
            //= newer, whatever its number: data sent again, or what the peer says after a forged segment with a number ahead.
            self.tx.snd.set_window(seq, ack, self.tx.snd.scaled(h.window));
        }
        let una = self.tx.snd.una();
        let carries = len > 0 || h.flags.has(Flags::SYN);
        let arrived = Arrived {
            ack,
            echo: h.options.timestamps.map(|(_, echo)| echo),
            blocks: h.options.sack.as_slice(),
            not_duplicate: carries || self.tx.snd.wnd() > old_window,
            is_bare: !carries && self.tx.snd.wnd() == old_window,
            is_probe: h.options.probe.is_some(),
            ece: self.tx.ecn.is_reported_by(h.flags),
            established: self.state == State::Established,
        };
        self.recovery.on_ack(&mut self.tx, now, arrived);
        if self.tx.snd.una() > una {
            self.acknowledged(now);
        }
        self.after_ack(now, ack, old_window);
    }

    /// SND.UNA moves to `ack`, and nothing else is told; `echo` is the echoed timestamp.
    #[inline(always)]
    pub(super) fn new_ack(&mut self, now: Instant, echo: Option<u32>, ack: u64) {
        self.recovery.on_new_ack(&mut self.tx, now, echo, ack);
        self.acknowledged(now);
    }

    /// SND.UNA has moved.
    #[inline]
    fn acknowledged(&mut self, now: Instant) {
        if self.tx.snd.wants_room() {
            self.room_for_more();
        }
        if self.tx.snd.fin_acked() {
            self.step(now, Step::FinAcked);
        }
    }

    /// The application waits for room and something was acknowledged.
    #[inline]
    fn room_for_more(&mut self) {
        // Linux: only if the window would take more than what is there.
        if self.tx.config().send_autotuning
            && self.recovery.in_flight(&self.tx) + self.tx.snd.unsent() < self.tx.window.cwnd()
        {
            self.expand_send_buffer();
        }
        if self.tx.snd.take_room() {
            self.tell_writable();
        }
    }

    /// The send buffer follows the window.
    pub(super) fn expand_send_buffer(&mut self) {
        let tx = &mut self.tx;
        if tx.config().send_autotuning {
            let reordering = self.recovery.reordering();
            tx.snd.raise_limit(autotuning::send_buffer(
                tx.config(),
                tx.window.cwnd(),
                tx.snd.mss(),
                reordering,
            ));
        }
    }

    /// What an acknowledgement does to the window's probes and to keep-alive.
    #[inline]
    fn after_ack(&mut self, now: Instant, ack: u64, old_window: u64) {
        if self.tx.snd.wnd() > old_window {
            self.tx.want(pending::DATA);
        }
        //= RFC 9293 (3.8.6.1): a connection whose probes are answered is not given up (MUST-37).
        if self.tx.timers.is_armed(Alarm::Persist)
            && ack >= self.tx.snd.una()
            && self.tx.snd.wnd() > old_window
        {
            self.tx.liveness.window_opens();
            self.tx.timers.stop(Alarm::Persist);
        }
        if self.tx.config().send_autotuning && self.tx.snd.wants_room() {
            // A sender in recovery has nothing left to send: its buffer grows, although nothing was acknowledged.
            self.room_for_more();
        }
        if self.tx.config().keepalive {
            self.tx.arm_keepalive(now);
        }
    }

    /// The path takes smaller datagrams only.
    pub fn smaller_segments(&mut self) {
        let old = self.tx.snd.mss();
        let mss = self.effective_mss(Some(self.path.mtu.saturating_sub(self.path.ip_header() + 20))).min(old);
        if mss == old {
            return;
        }
        self.tx.snd.set_mss(mss);
        self.tx.window.in_smaller_segments(mss);
        if self.tx.facts.established.is_some() && self.tx.snd.una() < self.tx.snd.nxt() {
            self.recovery.in_smaller_segments(&mut self.tx, mss);
            self.tx.hold(hold::MTU);
        }
    }
}

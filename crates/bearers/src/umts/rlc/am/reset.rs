//! The reset procedure (TS 25.322 11.4).

use airloom_base::Instant;
use airloom_base::timer::Timer;

use super::AmConfig;
use super::wire::ResetPdu;

/// What a RESET or RESET ACK demands of the entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Nothing.
    Nothing,
    /// All variables take their start values, all PDUs are discarded.
    Clear,
}

/// Both roles in the reset procedure.
#[derive(Clone, Debug, Default)]
pub struct Reset {
    /// Our RESET waits for its answer.
    pending: bool,
    /// RSN of the next procedure.
    next_rsn: u8,
    vt_rst: u8,
    timer_rst: Timer,
    /// RESET to be submitted.
    send: bool,
    /// RSN of the last RESET received.
    last_received: Option<u8>,
    /// The last RESET ACK, and whether it is to be submitted.
    ack: Option<ResetPdu>,
    send_ack: bool,
    /// MaxRST was reached.
    pub failed: bool,
    /// Procedures begun.
    pub count: u64,
}

impl Reset {
    /// Does our RESET wait for its answer? Nothing else is sent or taken then.
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.pending
    }
    /// Is there a RESET or RESET ACK to submit?
    #[inline]
    pub fn wants_to_send(&self) -> bool {
        self.send || self.send_ack
    }

    /// Begins the procedure.
    pub fn start(&mut self, config: &AmConfig) {
        if self.pending || self.failed {
            return;
        }
        self.count += 1;
        self.pending = true;
        self.attempt(config);
    }

    fn attempt(&mut self, config: &AmConfig) {
        //= TS 25.322 11.4.2, 11.4.5.1: VT(RST) counts; at MaxRST the error is unrecoverable.
        self.vt_rst += 1;
        if self.vt_rst >= config.max_rst {
            (self.failed, self.send) = (true, false);
            self.timer_rst.stop();
        } else {
            self.send = true;
        }
    }

    /// The next RESET ACK (true) or RESET (false) to submit.
    pub fn next(&mut self, config: &AmConfig, hfn: u32, now: Instant) -> Option<(bool, ResetPdu)> {
        if std::mem::take(&mut self.send_ack)
            && let Some(ack) = self.ack
        {
            return Some((true, ack));
        }
        std::mem::take(&mut self.send).then(|| {
            self.timer_rst.arm_after(now, config.timer_rst);
            (false, ResetPdu { rsn: self.next_rsn, hfni: hfn & 0xF_FFFF })
        })
    }

    /// A RESET of the peer; `hfn` is our own number.
    pub fn on_reset(&mut self, pdu: ResetPdu, hfn: u32) -> Demand {
        self.send_ack = true;
        //= TS 25.322 11.4.3: a repeated RESET only gets the same answer again.
        if self.last_received == Some(pdu.rsn) && self.ack.is_some() {
            return Demand::Nothing;
        }
        self.last_received = Some(pdu.rsn);
        self.ack = Some(ResetPdu { rsn: pdu.rsn, hfni: hfn & 0xF_FFFF });
        Demand::Clear
    }

    /// A RESET ACK of the peer.
    pub fn on_reset_ack(&mut self, pdu: ResetPdu) -> Demand {
        //= TS 25.322 11.4.4: only the answer to the RESET under way counts.
        if !self.pending || self.failed || pdu.rsn != self.next_rsn {
            return Demand::Nothing;
        }
        (self.pending, self.send, self.vt_rst) = (false, false, 0);
        self.timer_rst.stop();
        self.next_rsn ^= 1;
        Demand::Clear
    }

    /// The entity is established anew.
    pub fn re_establish(&mut self) {
        *self = Reset { count: self.count, ..Reset::default() };
    }

    /// When to call `handle_timeout`.
    pub fn next_timeout(&self) -> Instant {
        self.timer_rst.raw()
    }

    /// Timer_RST: sends RESET again.
    pub fn handle_timeout(&mut self, config: &AmConfig, now: Instant) {
        if self.timer_rst.take_due(now) {
            self.attempt(config);
        }
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::Duration;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_reset_is_answered_and_the_next_has_another_number() {
        let config = AmConfig::default();
        let (mut a, mut b) = (Reset::default(), Reset::default());
        for rsn in [0, 1, 0] {
            a.start(&config);
            let (is_ack, reset) = a.next(&config, 5, at(0)).unwrap();
            assert_eq!((is_ack, reset), (false, ResetPdu { rsn, hfni: 5 }));
            assert_eq!(b.on_reset(reset, 9), Demand::Clear);
            assert_eq!(b.on_reset(reset, 10), Demand::Nothing, "repeated RESET");
            let (is_ack, ack) = b.next(&config, 9, at(0)).unwrap();
            assert!(is_ack && ack.hfni == 9 && !b.wants_to_send());
            assert_eq!(a.on_reset_ack(ResetPdu { rsn: rsn ^ 1, hfni: 0 }), Demand::Nothing);
            assert_eq!(a.on_reset_ack(ack), Demand::Clear);
            assert_eq!(a.on_reset_ack(ack), Demand::Nothing, "already answered");
            assert!(!a.is_pending());
        }
        assert_eq!(a.count, 3);
    }

    #[test]
    fn at_most_max_rst_less_one_resets_are_sent() {
        let config = AmConfig { max_rst: 4, ..AmConfig::default() };
        let mut a = Reset::default();
        a.start(&config);
        let mut sent = 0;
        for s in 0..10 {
            sent += u32::from(a.next(&config, 0, at(s * 1000)).is_some());
            a.handle_timeout(&config, at((s + 1) * 1000));
        }
        assert!(a.failed);
        assert_eq!(sent, 3);
        assert_eq!(a.next_timeout(), Instant::FAR_FUTURE);
    }
}

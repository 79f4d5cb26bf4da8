//! The timers of a connection, and the one deadline its host hears of.

use airloom_base::Instant;
use airloom_base::timer::Timer;

/// All timers of a connection. Names are the standard's where it has one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    /// Retransmission (RFC 6298).
    pub retransmission: Timer,
    /// Delayed acknowledgement.
    pub ack: Timer,
    /// Closed or silly window (persist timer and override timer of RFC 9293 3.8.6).
    pub persist: Timer,
    /// Keep-alive.
    pub keepalive: Timer,
    /// TIME-WAIT.
    pub time_wait: Timer,
    /// The next paced segment.
    pub pacing: Timer,
    /// The answer to a probe of a suspended sender.
    pub probe: Timer,
    /// Never later than the earliest timer. It may be earlier: a timer that was put off does not move it, so that
    /// one wake-up per timeout is enough where a timer moves with every packet.
    deadline: Instant,
}

impl Default for Timers {
    fn default() -> Self {
        Timers {
            retransmission: Timer::default(),
            ack: Timer::default(),
            persist: Timer::default(),
            keepalive: Timer::default(),
            time_wait: Timer::default(),
            pacing: Timer::default(),
            probe: Timer::default(),
            deadline: Instant::FAR_FUTURE,
        }
    }
}

impl Timers {
    /// Some timer was armed for `at`.
    #[inline]
    pub fn armed(&mut self, at: Instant) {
        self.deadline = self.deadline.min(at);
    }

    #[inline]
    pub fn arm_retransmission(&mut self, at: Instant) {
        self.retransmission.arm(at);
        self.armed(at);
    }

    #[inline]
    pub fn arm_ack(&mut self, at: Instant) {
        self.ack.arm(at);
        self.armed(at);
    }

    /// The acknowledgement has left. `short`: so short is its delay that it ends before the next one begins; then a
    /// deadline that was there for its sake alone is taken back. Longer ones come up once for many.
    #[inline]
    pub fn stop_ack(&mut self, short: bool) {
        let at = self.ack.raw();
        self.ack.stop();
        if short && self.deadline == at {
            self.settle();
        }
    }

    pub fn arm_persist(&mut self, at: Instant) {
        self.persist.arm(at);
        self.armed(at);
    }

    pub fn arm_keepalive(&mut self, at: Instant) {
        self.keepalive.arm(at);
        self.armed(at);
    }

    pub fn arm_time_wait(&mut self, at: Instant) {
        self.time_wait.arm(at);
        self.armed(at);
    }

    pub fn arm_pacing(&mut self, at: Instant) {
        self.pacing.arm(at);
        self.armed(at);
    }

    pub fn arm_probe(&mut self, at: Instant) {
        self.probe.arm(at);
        self.armed(at);
    }

    /// Makes the deadline exact.
    #[inline(never)]
    pub fn settle(&mut self) {
        self.deadline = self
            .retransmission
            .raw()
            .min(self.ack.raw())
            .min(self.persist.raw())
            .min(self.keepalive.raw())
            .min(self.time_wait.raw())
            .min(self.pacing.raw())
            .min(self.probe.raw());
    }

    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        (self.deadline != Instant::FAR_FUTURE).then_some(self.deadline)
    }

    pub fn stop_all(&mut self) {
        *self = Timers::default();
    }
}

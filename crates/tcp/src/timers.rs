//! The timers of a connection, and the one deadline its host hears of.

use airloom_base::Instant;
use airloom_base::timer::Timer;

/// What a timer is for. Names are the standard's where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alarm {
    /// Delayed acknowledgement.
    Ack,
    /// Retransmission (RFC 6298).
    Retransmission,
    /// The next paced segment.
    Pacing,
    /// The answer to a probe of a suspended sender.
    Probe,
    /// Closed or silly window (persist timer and override timer of RFC 9293 3.8.6).
    Persist,
    /// Keep-alive.
    Keepalive,
    /// TIME-WAIT, and the wait for a FIN in FIN-WAIT-2.
    TimeWait,
}

impl Alarm {
    /// All of them, in the order in which those that are due at one moment expire.
    pub const ALL: [Alarm; 7] = [
        Alarm::Ack,
        Alarm::Retransmission,
        Alarm::Pacing,
        Alarm::Probe,
        Alarm::Persist,
        Alarm::Keepalive,
        Alarm::TimeWait,
    ];
}

/// All timers of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    /// By [`Alarm`].
    table: [Timer; Alarm::ALL.len()],
    /// Never later than the earliest timer. It may be earlier: a timer that was put off does not move it, so that
    /// one wake-up per timeout is enough where a timer moves with every packet.
    deadline: Instant,
}

impl Default for Timers {
    fn default() -> Self {
        Timers { table: [Timer::default(); Alarm::ALL.len()], deadline: Instant::FAR_FUTURE }
    }
}

impl Timers {
    #[inline]
    pub fn arm(&mut self, alarm: Alarm, at: Instant) {
        self.table[alarm as usize].arm(at);
        self.deadline = self.deadline.min(at);
    }

    #[inline]
    pub fn stop(&mut self, alarm: Alarm) {
        self.table[alarm as usize].stop();
    }

    /// The acknowledgement has left. `short`: so short is its delay that it ends before the next one begins; then a
    /// deadline that was there for its sake alone is taken back. Longer ones come up once for many.
    #[inline]
    pub fn stop_ack(&mut self, short: bool) {
        let at = self.get(Alarm::Ack).raw();
        self.stop(Alarm::Ack);
        if short && self.deadline == at {
            self.settle();
        }
    }

    #[inline]
    pub fn get(&self, alarm: Alarm) -> Timer {
        self.table[alarm as usize]
    }

    #[inline]
    pub fn is_armed(&self, alarm: Alarm) -> bool {
        self.get(alarm).is_armed()
    }

    /// If it is due: stops it and says yes.
    #[inline]
    pub fn take_due(&mut self, alarm: Alarm, now: Instant) -> bool {
        self.table[alarm as usize].take_due(now)
    }

    /// Makes the deadline exact.
    #[inline(never)]
    pub fn settle(&mut self) {
        self.deadline = self.table.iter().fold(Instant::FAR_FUTURE, |first, timer| first.min(timer.raw()));
    }

    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        (self.deadline != Instant::FAR_FUTURE).then_some(self.deadline)
    }

    pub fn stop_all(&mut self) {
        *self = Timers::default();
    }
}

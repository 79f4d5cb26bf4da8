//! The timers of a connection, and the one deadline its host hears of.
//!
//! What happens when one expires is said in one place, `connection/timeouts.rs`.

use airloom_base::Instant;
use airloom_base::timer::Timer;

/// What a timer is for. Names are the standard's where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alarm {
    /// Delayed acknowledgement.
    Ack,
    /// Retransmission (RFC 6298).
    Retransmission,
    /// Tail loss probe (RFC 8985 7).
    LossProbe,
    /// Reordering window of RACK (RFC 8985 6.3).
    Reordering,
    /// The next paced segment.
    Pacing,
    /// The answer to a probe of a suspended sender.
    ProbeAnswer,
    /// Closed or silly window (persist timer and override timer of RFC 9293 3.8.6).
    Persist,
    /// Keep-alive.
    Keepalive,
    /// TIME-WAIT, and the wait for a FIN in FIN-WAIT-2.
    TimeWait,
}

impl Alarm {
    /// One for each place in the table. Those that are due at one moment expire in this order.
    const PLACES: [Alarm; 7] = [
        Alarm::Ack,
        Alarm::Retransmission,
        Alarm::Pacing,
        Alarm::ProbeAnswer,
        Alarm::Persist,
        Alarm::Keepalive,
        Alarm::TimeWait,
    ];

    const fn place(self) -> usize {
        match self {
            Alarm::Ack => 0,
            //= RFC 8985 (8): one timer, of one kind at a time.
            Alarm::Retransmission | Alarm::LossProbe | Alarm::Reordering => 1,
            Alarm::Pacing => 2,
            Alarm::ProbeAnswer => 3,
            Alarm::Persist => 4,
            Alarm::Keepalive => 5,
            Alarm::TimeWait => 6,
        }
    }
}

/// All timers of a connection.
#[derive(Clone, Copy, Debug, getset::CopyGetters)]
pub(super) struct Timers {
    /// By place.
    table: [Timer; Alarm::PLACES.len()],
    /// What the timer of the sender's three alarms is armed for, or was when it expired.
    #[getset(get_copy = "pub")]
    sender: Alarm,
    /// Never later than the earliest timer. It may be earlier: a timer that was put off does not move it, so that
    /// one wake-up per timeout is enough where a timer moves with every packet.
    deadline: Instant,
}

impl Default for Timers {
    fn default() -> Self {
        Timers {
            table: [Timer::default(); Alarm::PLACES.len()],
            sender: Alarm::Retransmission,
            deadline: Instant::FAR_FUTURE,
        }
    }
}

impl Timers {
    /// How many there are.
    pub const PLACES: usize = Alarm::PLACES.len();

    /// Sets the timer, in place of what shares it.
    #[inline]
    pub fn arm(&mut self, alarm: Alarm, at: Instant) {
        if alarm.place() == Alarm::Retransmission.place() {
            self.sender = alarm;
        }
        self.table[alarm.place()].arm(at);
        self.deadline = self.deadline.min(at);
    }

    /// Stops the timer, or what shares it.
    #[inline]
    pub fn stop(&mut self, alarm: Alarm) {
        self.table[alarm.place()].stop();
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

    /// The timer, or what shares it.
    #[inline]
    pub fn get(&self, alarm: Alarm) -> Timer {
        self.table[alarm.place()]
    }

    /// Is it armed, or what shares it?
    #[inline]
    pub fn is_armed(&self, alarm: Alarm) -> bool {
        self.get(alarm).is_armed()
    }

    /// If the timer at `place` is due: stops it and says what it was for.
    #[inline]
    pub fn take_due(&mut self, place: usize, now: Instant) -> Option<Alarm> {
        let due = self.table[place].take_due(now);
        due.then(|| match Alarm::PLACES[place] {
            Alarm::Retransmission => self.sender,
            alarm => alarm,
        })
    }

    /// Makes the deadline exact.
    #[inline(never)]
    pub fn settle(&mut self) {
        self.deadline = self.table.iter().fold(Instant::FAR_FUTURE, |first, timer| first.min(timer.raw()));
    }

    /// When to call again.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        (self.deadline != Instant::FAR_FUTURE).then_some(self.deadline)
    }

    /// None waits for anything any more.
    pub fn stop_all(&mut self) {
        *self = Timers::default();
    }
}

//! Is the peer still there? Probes of a closed window, keep-alive, and how long a connection that makes no progress is kept
//! (RFC 9293 3.8).

use airloom_base::{CloseReason, Duration, Instant};

use super::config::Config;
use super::connection::{Connection, pending};
use super::state::State;
use super::timers::Alarm;

/// What a connection knows of its peer's life.
#[derive(Clone, Copy, Debug)]
pub(super) struct Liveness {
    /// When data (or a probe) was sent last.
    pub last_sent: Instant,
    /// When data was sent again last.
    pub last_resent: Instant,
    /// When something was received last.
    pub last_received: Instant,
    /// Since when there is no progress; meaningful while timeouts follow each other.
    pub stalled_since: Instant,
    /// When the first SYN left.
    pub syn_sent_at: Instant,
    /// SYNs, or SYN-ACKs, that were sent again.
    pub syns_lost: u8,
    /// Probes of a closed window since it was open last.
    pub probes: u8,
    /// Keep-alives since the peer was heard last.
    pub keepalives: u8,
}

impl Liveness {
    pub fn new(now: Instant) -> Self {
        Liveness {
            last_sent: now,
            last_resent: now,
            last_received: now,
            stalled_since: now,
            syn_sent_at: now,
            syns_lost: 0,
            probes: 0,
            keepalives: 0,
        }
    }
}

/// How many challenge acknowledgements may leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Challenges {
    /// Sent since `from`.
    sent: u16,
    from: Instant,
}

impl Challenges {
    pub fn new(now: Instant) -> Self {
        Challenges { sent: 0, from: now }
    }

    /// May one leave now? Then it is counted.
    pub fn allow(&mut self, now: Instant, config: &Config) -> bool {
        //= RFC 5961 (7): challenge acknowledgements are limited, here per connection.
        if now.since(self.from) >= config.challenge_interval {
            *self = Challenges::new(now);
        }
        let allowed = self.sent < config.challenge_acks;
        self.sent += u16::from(allowed);
        allowed
    }
}

impl Connection {
    /// A probe of the window was answered.
    pub fn probe_answered(&mut self, old_window: u64) {
        //= RFC 9293 (3.8.6.1): a connection whose probes are answered is not given up (MUST-37).
        if self.snd.wnd > old_window {
            self.liveness.probes = 0;
            self.timers.stop(Alarm::Persist);
            self.pending |= pending::DATA;
        }
    }

    /// Since when the peer gives no reason to go on.
    pub fn silent_since(&self) -> Instant {
        //= RFC 9293 (3.8.6): data beyond a window that shrank to nothing does not end a connection that answers.
        if self.snd.wnd == 0 {
            self.liveness.stalled_since.max(self.liveness.last_received)
        } else {
            self.liveness.stalled_since
        }
    }

    /// The persist timer expired.
    pub fn persist_timeout(&mut self, now: Instant) {
        if now.since(self.liveness.last_received) >= self.config.give_up && self.liveness.probes > 2 {
            self.abort(CloseReason::TimedOut);
            return;
        }
        if self.snd.has_unsent() && self.snd.una == self.snd.nxt {
            self.liveness.probes = self.liveness.probes.saturating_add(1);
            self.pending |= pending::PROBE;
        }
    }

    /// The keep-alive timer expired.
    pub fn keepalive_timeout(&mut self, now: Instant) {
        if !self.state.is_synchronized() || self.state == State::TimeWait {
            return;
        }
        //= RFC 9293 (3.8.4): only when nothing is outstanding; one unanswered probe proves nothing.
        if self.snd.una != self.snd.nxt {
            self.arm_keepalive(now);
            return;
        }
        if self.liveness.keepalives >= self.config.keepalive_probes {
            self.abort(CloseReason::TimedOut);
            return;
        }
        self.liveness.keepalives += 1;
        self.pending |= pending::KEEPALIVE;
        self.timers.arm(Alarm::Keepalive, now + self.config.keepalive_interval);
    }

    /// How long until the next probe of a closed window.
    pub fn probe_interval(&self) -> Duration {
        //= RFC 9293 (3.8.6.1): the first after a timeout, then ever more rarely.
        let interval = self.rtt.rto(&self.config) * (1 << self.liveness.probes.min(20));
        interval.min(self.config.max_probe_interval)
    }

    /// Keep-alive begins anew, if it is on.
    #[inline]
    pub fn arm_keepalive(&mut self, now: Instant) {
        if self.config.keepalive {
            self.liveness.keepalives = 0;
            self.timers.arm(Alarm::Keepalive, now + self.config.keepalive_idle);
        }
    }
}

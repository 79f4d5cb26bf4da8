//! Is the peer still there? Probes of a closed window, keep-alive, and how long a connection that makes no progress is kept
//! (RFC 9293 3.8).

use airloom_base::{Duration, Instant};

use super::config::Config;

/// What a connection knows of its peer's life. No moment lies ahead of the present one.
#[derive(Clone, Copy, Debug, getset::CopyGetters)]
pub(super) struct Liveness {
    /// When data (or a probe) was sent last.
    #[getset(get_copy = "pub")]
    last_sent: Instant,
    /// When the window last began anew because nothing had been sent for long.
    restarted_at: Instant,
    /// When data was sent again last.
    #[getset(get_copy = "pub")]
    last_resent: Instant,
    /// When something was received last.
    #[getset(get_copy = "pub")]
    last_received: Instant,
    /// Since when there is no progress; meaningful while timeouts follow each other.
    stalled_since: Instant,
    /// Timeouts since then: of one and the same segment.
    #[getset(get_copy = "pub")]
    timeouts: u8,
    /// When the first SYN left.
    #[getset(get_copy = "pub")]
    syn_sent_at: Instant,
    /// SYNs, or SYN-ACKs, that were sent again.
    #[getset(get_copy = "pub")]
    syns_lost: u8,
    /// Probes of a closed window since data left last.
    #[getset(get_copy = "pub")]
    probes: u8,
    /// Keep-alives since the peer was heard last, if keep-alive is on.
    #[getset(get_copy = "pub")]
    keepalives: u8,
}

impl Liveness {
    /// Nothing was sent or heard yet.
    pub fn new(now: Instant) -> Self {
        Liveness {
            last_sent: now,
            restarted_at: now,
            last_resent: now,
            last_received: now,
            stalled_since: now,
            timeouts: 0,
            syn_sent_at: now,
            syns_lost: 0,
            probes: 0,
            keepalives: 0,
        }
    }

    /// The handshake begins.
    pub fn begin(&mut self, now: Instant) {
        self.syn_sent_at = now;
        self.stalled_since = now;
    }

    /// A SYN, or a SYN-ACK, has to be sent again.
    pub fn syn_is_lost(&mut self) {
        self.syns_lost = self.syns_lost.saturating_add(1);
    }

    /// Something that asks for an answer leaves.
    #[inline]
    pub fn sent(&mut self, now: Instant) {
        self.last_sent = now;
    }

    /// The window begins anew, since nothing was sent for long.
    pub fn restarted(&mut self, now: Instant) {
        self.restarted_at = now;
    }

    /// Since when nothing is sent, as the window has it: an idle time that it began anew for is over.
    pub fn idle_since(&self) -> Instant {
        self.last_sent.max(self.restarted_at)
    }

    /// Data leaves: the peer's window is open.
    #[inline]
    pub fn sent_data(&mut self, now: Instant) {
        self.last_sent = now;
        self.probes = 0;
    }

    /// Data is sent again.
    #[inline]
    pub fn resent(&mut self, now: Instant) {
        self.last_resent = now;
    }

    /// Something arrived.
    #[inline]
    pub fn received(&mut self, now: Instant) {
        self.last_received = now;
    }

    /// New data is acknowledged.
    #[inline]
    pub fn progressed(&mut self, now: Instant) {
        self.stalled_since = now;
        self.timeouts = 0;
    }

    /// The retransmission timer has expired once more.
    pub fn timed_out(&mut self) {
        self.timeouts = self.timeouts.saturating_add(1);
    }

    /// The first of some timeouts: there was no progress since data left last.
    pub fn stalls(&mut self, now: Instant) {
        self.stalled_since = self.last_sent.min(now);
    }

    /// Since when the peer gives no reason to go on. `closed`: its window is.
    pub fn silent_since(&self, closed: bool) -> Instant {
        //= RFC 9293 (3.8.6): data beyond a window that shrank to nothing does not end a connection that answers.
        if closed { self.stalled_since.max(self.last_received) } else { self.stalled_since }
    }

    /// The peer's window opens.
    pub fn window_opens(&mut self) {
        self.probes = 0;
    }

    /// One more probe of a closed window leaves.
    pub fn probe(&mut self) {
        self.probes = self.probes.saturating_add(1);
    }

    /// How long until the next probe of a closed window, with a timeout of `rto`.
    pub fn probe_interval(&self, rto: Duration, config: &Config) -> Duration {
        //= RFC 9293 (3.8.6.1): the first after a timeout, then ever more rarely.
        (rto * (1 << self.probes.min(20))).min(config.max_probe_interval)
    }

    /// The peer was heard, as far as keep-alive cares.
    #[inline]
    pub fn heard(&mut self) {
        self.keepalives = 0;
    }

    /// One more keep-alive leaves, if fewer than `most` have gone unanswered.
    pub fn keepalive(&mut self, most: u8) -> bool {
        let goes_on = self.keepalives < most;
        self.keepalives += u8::from(goes_on);
        goes_on
    }
}

/// How many challenge acknowledgements may leave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Challenges {
    /// Sent since `from`; never more than the configuration allows in an interval.
    sent: u16,
    from: Instant,
}

impl Challenges {
    /// None has left.
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

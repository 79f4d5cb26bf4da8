//! A destination: its round-trip time, timers, errors and congestion window (RFC 9260, 6.3, 7.2, 8.2).

use airloom_base::service::Path;
use airloom_base::timer::Timer;
use airloom_base::{Duration, Instant};

use super::chunk::data::{DATA_FRONT, I_DATA_FRONT};
use super::config::Config;
use super::wire::HEADER;

/// Paths of an association, and addresses of an end, at most.
pub(super) const MOST_PATHS: usize = 8;

/// One pair of addresses.
pub(super) struct PathState {
    pub address: Path,
    pub cwnd: u64,
    pub ssthresh: u64,
    /// partial_bytes_acked.
    pub pba: u64,
    /// Octets of chunks in flight, padding included.
    pub flight: u64,
    /// Fast recovery lasts until this TSN is acknowledged.
    pub recovery: Option<u64>,
    pub srtt: Option<Duration>,
    pub min_rtt: Option<Duration>,
    rttvar: Duration,
    pub rto: Duration,
    /// The chunk that is being timed, and since when.
    pub timed: Option<(u64, Instant)>,
    pub t3: Timer,
    pub heartbeat: Timer,
    /// The heartbeat that was not answered yet, and when it was sent.
    pub nonce: Option<(u64, Instant)>,
    pub errors: u32,
    pub active: bool,
    /// The peer is known to be there (5.4).
    pub confirmed: bool,
    pub last_sent: Instant,
    /// When the window was last halved for idleness.
    pub decayed: Instant,
    /// Octets newly acknowledged by the SACK at hand.
    pub acked: u64,
    /// The earliest chunk in flight was acknowledged by the SACK at hand.
    pub earliest_acked: bool,
    /// Fast retransmission may send one packet beyond the window.
    pub burst_beyond_window: bool,
    /// More would be in flight if a window of one packet did not hold it back.
    pub held_back: bool,
}

impl PathState {
    pub fn new(address: Path, config: &Config) -> Self {
        let mut path = PathState {
            address,
            cwnd: 0,
            //= RFC 9260 (7.2.1): arbitrarily high.
            ssthresh: u64::MAX,
            pba: 0,
            flight: 0,
            recovery: None,
            srtt: None,
            min_rtt: None,
            rttvar: Duration::ZERO,
            rto: config.rto_initial,
            timed: None,
            t3: Timer::default(),
            heartbeat: Timer::default(),
            nonce: None,
            errors: 0,
            active: true,
            confirmed: true,
            last_sent: Instant::ZERO,
            decayed: Instant::ZERO,
            acked: 0,
            earliest_acked: false,
            burst_beyond_window: false,
            held_back: false,
        };
        path.cwnd = config.initial_window.octets(path.pmdcs(), address.remote.is_ipv6());
        path
    }

    /// One that nothing has come over yet.
    pub fn unconfirmed(address: Path, config: &Config) -> Self {
        PathState { active: false, confirmed: false, ..PathState::new(address, config) }
    }

    /// Octets of chunks in a packet at most.
    pub fn room(&self) -> usize {
        usize::from(self.address.mtu)
            .saturating_sub(usize::from(self.address.ip_header()) + HEADER)
            .max(MIN_ROOM)
            // Whole words: what is padded must fit too.
            & !3
    }

    /// PMDCS: octets of a full chunk, header included.
    pub fn pmdcs(&self) -> u64 {
        self.room() as u64
    }

    /// Octets of user data in a full chunk.
    pub fn payload(&self, interleaved: bool) -> usize {
        self.room() - if interleaved { I_DATA_FRONT } else { DATA_FRONT }
    }

    /// A round trip was measured (6.3.1).
    pub fn measured(&mut self, r: Duration, config: &Config) {
        let srtt = match self.srtt {
            None => {
                self.rttvar = r.mul_ratio(1, 2);
                r
            }
            Some(srtt) => {
                self.rttvar = self.rttvar.mul_ratio(3, 4) + srtt.abs_diff(r).mul_ratio(1, 4);
                srtt.mul_ratio(7, 8) + r.mul_ratio(1, 8)
            }
        };
        self.srtt = Some(srtt);
        self.min_rtt = Some(self.min_rtt.map_or(r, |m| m.min(r)));
        //= RFC 9260 (6.3.1, C7): a variance of zero becomes the granularity of the clock.
        self.rttvar = self.rttvar.max(Duration::from_nanos(1));
        self.rto = (srtt + self.rttvar.mul_ratio(4, 1)).max(config.rto_min).min(config.rto_max);
    }

    /// The timeout doubles (6.3.3, E2).
    pub fn back_off(&mut self, config: &Config) {
        self.rto = self.rto.mul_ratio(2, 1).min(config.rto_max);
    }

    fn floor(&self, config: &Config) -> u64 {
        u64::from(config.loss_floor) * self.pmdcs()
    }

    /// A loss was reported (7.2.3).
    pub fn lost(&mut self, config: &Config) {
        self.ssthresh = (self.cwnd / 2).max(self.floor(config));
        self.cwnd = self.ssthresh;
        self.pba = 0;
    }

    /// T3-rtx expired (7.2.3).
    pub fn timed_out(&mut self, config: &Config) {
        self.ssthresh = (self.cwnd / 2).max(self.floor(config));
        self.cwnd = self.pmdcs();
        self.pba = 0;
        self.recovery = None;
        self.timed = None;
        self.held_back = false;
    }

    /// May another packet with data leave? Notes if there is one and it may not.
    pub fn takes_packet(&mut self) -> bool {
        //= RFC 9260 (7.2.1, 7.2.3): after a timeout one packet is in flight, however little is in it.
        if self.cwnd <= self.pmdcs() {
            self.held_back |= self.flight > 0;
            return self.flight == 0;
        }
        self.flight < self.cwnd
    }

    /// `acked` octets were acknowledged while `before` were in flight (7.2.1, 7.2.2).
    pub fn grow(&mut self, acked: u64, before: u64, all_acked: bool) {
        let held_back = std::mem::take(&mut self.held_back);
        if self.cwnd <= self.ssthresh {
            //= RFC 9260 (7.2.1): only if the window was used, and not in fast recovery; at most one full chunk.
            if (before >= self.cwnd || held_back) && self.recovery.is_none() {
                self.cwnd += acked.min(self.pmdcs());
            }
        } else {
            self.pba += acked;
            if self.pba > self.cwnd && before < self.cwnd {
                self.pba = self.cwnd;
            }
            if self.pba >= self.cwnd && before >= self.cwnd {
                self.pba -= self.cwnd;
                self.cwnd += self.pmdcs();
            }
        }
        if all_acked {
            self.pba = 0;
        }
    }

    /// A path that is idle forgets its window step by step (7.2.1), once each timeout.
    pub fn decay(&mut self, now: Instant, config: &Config) {
        if self.flight > 0 || self.last_sent == Instant::ZERO {
            return;
        }
        let floor = self.floor(config);
        let mut since = self.last_sent.max(self.decayed);
        while now.since(since) >= self.rto && self.cwnd > floor {
            if self.decayed <= self.last_sent {
                //= RFC 9260 (7.2.1, 7.2.2): before the first adjustment, and in congestion avoidance as in slow start.
                self.ssthresh = self.cwnd;
            }
            self.cwnd = (self.cwnd / 2).max(floor);
            since += self.rto;
            self.decayed = since;
        }
    }
}

/// Room that is assumed however small a path says it is: user data must fit behind a chunk's header.
const MIN_ROOM: usize = 128;

//! Round-trip time and retransmission timeout (RFC 6298).

use airloom_base::{Duration, Instant};

use super::config::{Config, RtoFloor, RtoVariance};

/// The estimator of one connection.
#[derive(Clone, Copy, Debug, Default, getset::CopyGetters)]
pub(super) struct Rtt {
    srtt: Duration,
    rttvar: Duration,
    peak: Peak,
    #[getset(get_copy = "pub")]
    min: Option<Duration>,
    /// Before backing off.
    base: Duration,
    /// How often it has expired since the last measurement.
    #[getset(get_copy = "pub")]
    backoff: u8,
    measured: bool,
}

impl Rtt {
    pub fn new(config: &Config) -> Self {
        //= RFC 6298 (2.1): until there is a measurement the timeout is an initial value.
        Rtt { base: config.rto_initial.min(config.rto_max), ..Default::default() }
    }

    /// A measurement. `per_round_trip` is how many of them one round trip gives.
    pub fn sample(&mut self, config: &Config, r: Duration, per_round_trip: u64) {
        self.sample_at(config, r, per_round_trip, (0, 0));
    }

    /// A round trip took no longer than `r`.
    #[inline]
    pub fn note_min(&mut self, r: Duration) {
        self.min = Some(self.min.map_or(r, |m| m.min(r)));
    }

    /// A measurement, with SND.UNA and SND.NXT at this moment.
    pub fn sample_at(&mut self, config: &Config, r: Duration, per_round_trip: u64, (una, nxt): (u64, u64)) {
        self.note_min(r);
        if config.rto_variance == RtoVariance::Peak {
            self.peak.sample(&mut self.srtt, r, self.measured, config.rto_min, (una, nxt));
            self.rttvar = self.peak.var / 4;
            self.measured = true;
        } else if self.measured {
            //= RFC 6298 (2.3): RTTVAR first, with the old SRTT; gains 1/4 and 1/8.
            //= RFC 7323 (appendix G): with several samples per round trip the gains are divided by their number.
            let k = per_round_trip.max(1);
            let deviation = self.srtt.abs_diff(r);
            self.rttvar = approach(self.rttvar, deviation, 4 * k);
            self.srtt = approach(self.srtt, r, 8 * k);
        } else {
            //= RFC 6298 (2.2): the first measurement gives SRTT = R, RTTVAR = R/2.
            self.srtt = r;
            self.rttvar = r / 2;
            self.measured = true;
        }
        self.base = self.timeout_from_estimate(config);
        //= RFC 6298 (5): a valid measurement ends backing off.
        self.backoff = 0;
    }

    /// SRTT and RTTVAR.
    pub fn estimate(&self) -> (Duration, Duration) {
        (self.srtt, self.rttvar)
    }

    /// G: how fine the clock of the timeout is.
    pub fn granularity(&self, config: &Config) -> Duration {
        if config.rto_tick.is_zero() { Duration::from_millis(1) } else { config.rto_tick }
    }

    /// The estimate is known from elsewhere.
    pub fn adopt(&mut self, config: &Config, srtt: Duration, rttvar: Duration) {
        (self.srtt, self.rttvar) = (srtt, rttvar);
        self.base = self.timeout_from_estimate(config);
        self.backoff = 0;
    }

    fn timeout_from_estimate(&self, config: &Config) -> Duration {
        let granularity = self.granularity(config);
        let variance = match config.rto_variance {
            RtoVariance::Smoothed => self.rttvar * 4,
            RtoVariance::Peak => self.peak.var,
        }
        .max(granularity);
        //= RFC 6298 (2.3, 2.4, 2.5): SRTT + max(G, 4 RTTVAR), with a floor and a ceiling.
        let rto = match config.rto_floor {
            RtoFloor::Total => (self.srtt + variance).max(config.rto_min),
            RtoFloor::Variance => self.srtt + variance.max(config.rto_min),
        };
        let tick = config.rto_tick.as_nanos();
        let rto = match tick {
            0 => rto,
            // A clock that only counts ticks waits at least two.
            _ => Duration::from_nanos(rto.as_nanos().div_ceil(tick).max(2) * tick),
        };
        rto.min(config.rto_max)
    }

    /// The timeout in force, with backing off.
    #[inline]
    pub fn rto(&self, config: &Config) -> Duration {
        match self.backoff {
            0 => self.base,
            //= RFC 6298 (5.5): each expiry doubles it; a ceiling is allowed.
            n => (self.base * (1 << n.min(30))).min(config.rto_max),
        }
    }

    /// When a timer started now expires.
    #[inline]
    pub fn deadline(&self, config: &Config, now: Instant) -> Instant {
        // A timeout below the clock's tick, too, ends after now.
        on_tick(config, now) + self.rto(config).max(config.rto_tick)
    }

    pub fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// Data transfer begins after a SYN was lost: forget the backing off, wait at least `rto`.
    pub fn restart_at_least(&mut self, config: &Config, rto: Duration) {
        self.backoff = 0;
        if !self.measured {
            self.base = self.base.max(rto).min(config.rto_max);
        }
    }

    pub fn srtt(&self) -> Option<Duration> {
        self.measured.then_some(self.srtt)
    }
}

/// Linux: the variance term is the largest mean deviation of the round trip, and falls by a quarter of the difference
/// once per round trip. All are four times the deviation.
#[derive(Clone, Copy, Debug, Default)]
struct Peak {
    deviation: Duration,
    largest: Duration,
    var: Duration,
    /// SND.NXT when the round trip began.
    until: u64,
}

impl Peak {
    fn sample(
        &mut self,
        srtt: &mut Duration,
        r: Duration,
        measured: bool,
        floor: Duration,
        (una, nxt): (u64, u64),
    ) {
        if !measured {
            *srtt = r;
            self.deviation = r * 2;
            self.var = self.deviation.max(floor);
            self.largest = self.var;
            self.until = nxt;
            return;
        }
        let error = srtt.abs_diff(r);
        let falls = r < *srtt;
        *srtt = approach(*srtt, r, 8);
        let mean = self.deviation / 4;
        if error >= mean {
            // A round-trip time that falls is no reason to wait longer: it counts for an eighth.
            let step = if falls { (error - mean) / 8 } else { error - mean };
            self.deviation += step;
        } else {
            self.deviation -= mean - error;
        }
        if self.deviation > self.largest {
            self.largest = self.deviation;
            self.var = self.var.max(self.largest);
        }
        if una > self.until {
            if self.largest < self.var {
                self.var -= (self.var - self.largest) / 4;
            }
            self.until = nxt;
            self.largest = floor;
        }
    }
}

/// `from` moved towards `to` by one part in `parts`.
#[inline]
fn approach(from: Duration, to: Duration, parts: u64) -> Duration {
    if to > from { from + (to - from) / parts } else { from - (from - to) / parts }
}

/// The last tick of the retransmission clock.
#[inline]
fn on_tick(config: &Config, now: Instant) -> Instant {
    match config.rto_tick.as_nanos() {
        0 => now,
        tick => Instant::from_nanos(now.as_nanos() / tick * tick),
    }
}

/// The time from `sent` to `now` as the retransmission clock sees it.
#[inline]
pub(super) fn elapsed(config: &Config, sent: Instant, now: Instant) -> Duration {
    on_tick(config, now).since(on_tick(config, sent))
}

#[cfg(test)]
mod tests {
    use super::super::profile::Profile;
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn rfc_6298_2_first_and_next_measurement() {
        let config = Profile::Rfc.settings();
        let mut rtt = Rtt::new(&config);
        assert_eq!(rtt.rto(&config), ms(1000));
        rtt.sample(&config, ms(1000), 1);
        assert_eq!((rtt.srtt, rtt.rttvar, rtt.rto(&config)), (ms(1000), ms(500), ms(3000)));
        // RTTVAR = 3/4 * 500 + 1/4 * |1000 - 1800| = 575; SRTT = 7/8 * 1000 + 1/8 * 1800 = 1100.
        rtt.sample(&config, ms(1800), 1);
        assert_eq!((rtt.srtt, rtt.rttvar, rtt.rto(&config)), (ms(1100), ms(575), ms(3400)));
    }

    #[test]
    fn a_timeout_below_the_tick_of_its_clock_ends_after_now() {
        let config = Config { rto_tick: ms(2000), rto_initial: ms(1), ..Profile::Rfc.settings() };
        let rtt = Rtt::new(&config);
        for now in [0, 1, 1999, 2000].map(|n| Instant::from_nanos(n * 1_000_000)) {
            assert!(rtt.deadline(&config, now) > now);
        }
    }

    #[test]
    fn rfc_6298_2_4_the_floor_is_one_second() {
        let config = Profile::Rfc.settings();
        let mut rtt = Rtt::new(&config);
        rtt.sample(&config, ms(20), 1);
        assert_eq!(rtt.rto(&config), ms(1000));
    }

    #[test]
    fn linux_puts_the_floor_under_the_variance() {
        let config = Profile::Linux.settings();
        let mut rtt = Rtt::new(&config);
        rtt.sample(&config, ms(100), 1);
        assert_eq!(rtt.rto(&config), ms(300));
        rtt.sample(&config, ms(900), 1);
        // Four deviations: 200, and 800 less a quarter of it: 950. SRTT = 200; the clock ticks every 4 ms.
        assert_eq!(rtt.rto(&config), ms(1152));
    }

    #[test]
    fn linux_lets_the_variance_fall_by_a_quarter_per_round_trip_and_hardly_heeds_shorter_times() {
        let config = Profile::Linux.settings();
        let mut rtt = Rtt::new(&config);
        rtt.sample_at(&config, ms(400), 1, (0, 100));
        // 400 + 2 * 400.
        assert_eq!(rtt.rto(&config), ms(1200));
        rtt.sample_at(&config, ms(400), 1, (50, 100));
        assert_eq!(rtt.rto(&config), ms(1200));
        // The round trip ends; the largest deviation in it was 800 as it began: nothing falls yet.
        rtt.sample_at(&config, ms(400), 1, (101, 200));
        assert_eq!(rtt.rto(&config), ms(1200));
        // In the next one it is 800 * (3/4)^3 = 337.5: a quarter of the 462.5 between goes. Then on to the next tick.
        rtt.sample_at(&config, ms(400), 1, (201, 300));
        assert_eq!(rtt.rto(&config), ms(1088));
        // A time far below the mean counts for an eighth; in RFC 6298 it would raise the timeout.
        let before = rtt.rto(&config);
        rtt.sample_at(&config, ms(100), 1, (201, 300));
        assert!(rtt.rto(&config) < before);
    }

    #[test]
    fn bsd_counts_ticks_of_500_ms_and_waits_at_least_two() {
        let config = Profile::BsdReno.settings();
        let at = |n| Instant::ZERO + ms(n);
        assert_eq!(elapsed(&config, at(499), at(501)), ms(500));
        assert_eq!(elapsed(&config, at(501), at(999)), Duration::ZERO);
        let mut rtt = Rtt::new(&config);
        rtt.sample(&config, Duration::ZERO, 1);
        assert_eq!(rtt.rto(&config), ms(1000));
        assert_eq!(rtt.deadline(&config, at(1200)), at(2000));
        rtt.sample(&config, ms(1000), 1);
        // SRTT = 125, RTTVAR = 250: 1125 ms are three ticks.
        assert_eq!(rtt.rto(&config), ms(1500));
    }

    #[test]
    fn rfc_6298_5_5_doubles_up_to_the_ceiling_and_a_measurement_ends_it() {
        let config = Profile::Rfc.settings();
        let mut rtt = Rtt::new(&config);
        rtt.sample(&config, ms(500), 1);
        let timeouts: Vec<u64> = (0..8)
            .map(|_| {
                rtt.back_off();
                rtt.rto(&config).as_millis()
            })
            .collect();
        assert_eq!(timeouts, [3000, 6000, 12_000, 24_000, 48_000, 60_000, 60_000, 60_000]);
        rtt.sample(&config, ms(500), 1);
        assert!(rtt.rto(&config) < ms(1501));
    }

    #[test]
    fn rfc_6298_5_7_three_seconds_after_a_lost_syn_unless_measured() {
        let config = Profile::Rfc.settings();
        let mut rtt = Rtt::new(&config);
        rtt.back_off();
        rtt.restart_at_least(&config, ms(3000));
        assert_eq!(rtt.rto(&config), ms(3000));
        let mut rtt = Rtt::new(&config);
        rtt.sample(&config, ms(400), 1);
        rtt.restart_at_least(&config, ms(3000));
        assert_eq!(rtt.rto(&config), ms(1200));
    }

    #[test]
    fn rfc_7323_g_many_samples_per_round_trip_move_the_estimate_as_one_would() {
        let config = Profile::Rfc.settings();
        let (mut one, mut ten) = (Rtt::new(&config), Rtt::new(&config));
        one.sample(&config, ms(100), 1);
        ten.sample(&config, ms(100), 1);
        one.sample(&config, ms(200), 1);
        (0..10).for_each(|_| ten.sample(&config, ms(200), 10));
        assert!(one.srtt.abs_diff(ten.srtt) < ms(2), "{:?} {:?}", one.srtt, ten.srtt);
    }
}

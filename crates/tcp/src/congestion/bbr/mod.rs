//! BBR, version 1 (Cardwell and others 2016; draft-cardwell-iccrg-bbr-congestion-control-00; Linux 4.9 and later): a model
//! of the path, its bandwidth and its least round-trip time, sets the rate and the window; losses hardly do.
//!
//! | state | pacing gain | window gain | until |
//! |---|---|---|---|
//! | Startup | 2.885 | 2.885 | three rounds bring less than a quarter more bandwidth |
//! | Drain | 0.347 | 2.885 | what is in flight fits the path |
//! | ProbeBw | 1.25, 0.75, then six times 1, a least round-trip time each | 2 | the least round-trip time is 10 s old |
//! | ProbeRtt | 1 | 4 segments | 200 ms and a round |
//!
//! As in Linux: segments saved up by aggregated acknowledgements enlarge the window, recovery begins with a round of packet
//! conservation, and only a shorter round-trip time puts off ProbeRtt (since 2020; the draft: one as short, too). Left out: the
//! detection of policers (it needs a loss of a fifth).

mod filter;

use airloom_base::{Duration, Instant};

use self::filter::WindowedMax;
use super::{About, Ack, Controller, Delivery, Departure, Event, Hears, Phase, Prior, Window};
use crate::config::Config;

/// 2 / ln 2: the smallest gain that lets the rate double each round. In thousandths, as all gains.
const HIGH_GAIN: u64 = 2885;
/// Its inverse: empties in a round the queue that Startup has made.
const DRAIN_GAIN: u64 = 347;
/// Window in ProbeBw, in bandwidth-delay products: room for delayed and aggregated acknowledgements.
const CWND_GAIN: u64 = 2000;
/// The cycle of ProbeBw.
const PACING_CYCLE: [u64; 8] = [1250, 750, 1000, 1000, 1000, 1000, 1000, 1000];
/// Rounds over which the bandwidth is a maximum: a cycle and two.
const BW_ROUNDS: u64 = 10;
/// How long a least round-trip time holds.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// How long ProbeRtt keeps the window small.
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// The smallest window, in segments.
const MIN_SEGMENTS: u64 = 4;
/// The pipe is full when three rounds bring less than a quarter more.
const FULL_BW_GROWTH: u64 = 1250;
const FULL_BW_ROUNDS: u8 = 3;
/// Rate sent, in thousandths of the rate wanted: a margin so that the queue empties.
const PACING_MARGIN: u64 = 990;
/// Window before there is a round-trip time, in segments.
const INITIAL_SEGMENTS: u64 = 10;
/// Segments that segmentation offload may hold back on both sides, in bursts of what is paced in about a millisecond.
const BURSTS: u64 = 3;
/// Aggregation of acknowledgements is a maximum over twice so many rounds, and counts for no longer than this time.
const EXTRA_ACKED_ROUNDS: u64 = 5;
const EXTRA_ACKED_MAX: Duration = Duration::from_millis(100);

/// The states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The controller.
#[derive(Default)]
pub struct Bbr {
    state: State,
    /// Bandwidth in octets per second, a maximum over rounds.
    bw: WindowedMax,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    /// Rounds: how many, and the number of delivered octets that ends this one.
    round: u64,
    next_round: u64,
    round_start: bool,
    full_bw: u64,
    full_bw_rounds: u8,
    full_pipe: bool,
    /// Place in the cycle of ProbeBw, and since when.
    cycle: usize,
    cycle_at: Instant,
    /// ProbeRtt: until when the window stays small, and whether a round has passed.
    probe_rtt_until: Option<Instant>,
    probe_rtt_round: bool,
    /// The window to return to after ProbeRtt or recovery.
    prior_cwnd: u64,
    in_recovery: bool,
    conserve_packets: bool,
    idle_restart: bool,
    /// The window is held down to see the path without a queue.
    limits_itself: bool,
    /// Octets per second.
    pacing_rate: u64,
    has_rtt: bool,
    extra: [u64; 2],
    extra_round: u64,
    extra_at: Instant,
    extra_octets: u64,
    random: u64,
}

impl Bbr {
    pub fn new(_config: &Config, seed: u64) -> Self {
        Bbr { random: seed, ..Default::default() }
    }

    fn pacing_gain(&self) -> u64 {
        match self.state {
            State::Startup => HIGH_GAIN,
            State::Drain => DRAIN_GAIN,
            State::ProbeBw => PACING_CYCLE[self.cycle],
            State::ProbeRtt => 1000,
        }
    }

    fn cwnd_gain(&self) -> u64 {
        match self.state {
            State::Startup | State::Drain => HIGH_GAIN,
            State::ProbeBw => CWND_GAIN,
            State::ProbeRtt => 1000,
        }
    }

    /// Octets that are in flight at `gain` times the bandwidth over the least round-trip time.
    fn bdp(&self, gain: u64, mss: u64) -> u64 {
        let Some(min_rtt) = self.min_rtt else { return INITIAL_SEGMENTS * mss };
        let octets = u128::from(self.bw.get()) * u128::from(min_rtt.as_nanos()) * u128::from(gain);
        let octets = u64::try_from(octets / 1_000_000_000_000).unwrap_or(u64::MAX >> 1);
        octets.div_ceil(mss) * mss
    }

    /// The same with room for bursts of offloading hosts.
    fn inflight(&self, gain: u64, mss: u64) -> u64 {
        let mut segments = self.bdp(gain, mss) / mss + BURSTS * self.burst_segments(mss);
        segments += segments % 2;
        if self.state == State::ProbeBw && self.cycle == 0 {
            segments += 2;
        }
        segments * mss
    }

    /// What is paced in about a millisecond, at least two segments (one below 1.2 Mbit/s).
    fn burst_segments(&self, mss: u64) -> u64 {
        let least = if self.pacing_rate < 150_000 { 1 } else { 2 };
        ((self.pacing_rate >> 10).min(65_535) / mss).max(least)
    }

    fn set_pacing_rate(&mut self, window: &Window, srtt: Option<Duration>) {
        let gain = self.pacing_gain();
        if !self.has_rtt
            && let Some(srtt) = srtt
        {
            self.has_rtt = true;
            let rate = u128::from(window.cwnd()) * 1_000_000_000 / u128::from(srtt.as_nanos().max(1));
            self.pacing_rate = paced(u64::try_from(rate).unwrap_or(u64::MAX >> 20), HIGH_GAIN);
        }
        let rate = paced(self.bw.get(), gain);
        if self.full_pipe || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    // The model

    fn update_bandwidth(&mut self, flow: &Delivery) {
        self.round_start = false;
        let Some(sample) = flow.sample else { return };
        if sample.prior_delivered >= self.next_round {
            self.next_round = flow.total;
            self.round += 1;
            self.round_start = true;
            self.conserve_packets = false;
        }
        // A sample of a flow with nothing to send says only that the path can do as much.
        let rate = sample.rate();
        if !sample.is_app_limited || rate >= self.bw.get() {
            self.bw.update(BW_ROUNDS, self.round, rate);
        }
    }

    /// How many octets more than the bandwidth explains are acknowledged in a lump.
    fn update_aggregation(&mut self, window: &Window, ack: &Ack) {
        if ack.delivered == 0 {
            return;
        }
        if self.round_start {
            self.extra_round += 1;
            if self.extra_round >= EXTRA_ACKED_ROUNDS {
                self.extra_round = 0;
                self.extra = [0, self.extra[0]];
            }
        }
        let elapsed = ack.now.since(self.extra_at);
        let mut expected =
            (u128::from(self.bw.get()) * u128::from(elapsed.as_nanos()) / 1_000_000_000) as u64;
        if self.extra_octets <= expected || self.extra_octets + ack.delivered >= window.mss() << 20 {
            self.extra_octets = 0;
            self.extra_at = ack.now;
            expected = 0;
        }
        self.extra_octets += ack.delivered;
        let extra = self.extra_octets.saturating_sub(expected).min(window.cwnd());
        self.extra[0] = self.extra[0].max(extra);
    }

    fn aggregation(&self) -> u64 {
        if !self.full_pipe {
            return 0;
        }
        let most = u128::from(self.bw.get()) * u128::from(EXTRA_ACKED_MAX.as_nanos()) / 1_000_000_000;
        self.extra[0].max(self.extra[1]).min(u64::try_from(most).unwrap_or(u64::MAX))
    }

    fn update_cycle(&mut self, ack: &Ack, mss: u64) {
        let flow = &ack.delivery;
        if self.state != State::ProbeBw {
            return;
        }
        let full_length = ack.now.since(self.cycle_at) > self.min_rtt.unwrap_or_default();
        let over = match self.pacing_gain() {
            // Until a queue has formed, or something was lost.
            1250 => full_length && (flow.lost > 0 || flow.in_flight_before >= self.inflight(1250, mss)),
            // Until the queue is gone.
            750 => full_length || flow.in_flight_before <= self.inflight(1000, mss),
            _ => full_length,
        };
        if over {
            self.next_phase(ack.now);
        }
    }

    fn next_phase(&mut self, now: Instant) {
        self.cycle = (self.cycle + 1) % PACING_CYCLE.len();
        self.cycle_at = now;
    }

    fn check_full_pipe(&mut self, flow: &Delivery) {
        if self.full_pipe || !self.round_start || flow.sample.is_some_and(|s| s.is_app_limited) {
            return;
        }
        if self.bw.get() * 1000 >= self.full_bw * FULL_BW_GROWTH {
            self.full_bw = self.bw.get();
            self.full_bw_rounds = 0;
            return;
        }
        self.full_bw_rounds += 1;
        self.full_pipe = self.full_bw_rounds >= FULL_BW_ROUNDS;
    }

    fn check_drain(&mut self, window: &mut Window, ack: &Ack) {
        if self.state == State::Startup && self.full_pipe {
            self.state = State::Drain;
            window.set_ssthresh(self.inflight(1000, window.mss()));
        }
        if self.state == State::Drain && ack.in_flight <= self.inflight(1000, window.mss()) {
            self.enter_probe_bw(ack.now);
        }
    }

    fn enter_probe_bw(&mut self, now: Instant) {
        self.state = State::ProbeBw;
        // Anywhere in the cycle but in the phase that drains, so that flows do not probe together.
        self.random = self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        self.cycle = PACING_CYCLE.len() - 1 - ((self.random >> 33) % 7) as usize;
        self.next_phase(now);
    }

    fn update_min_rtt(&mut self, window: &mut Window, ack: &Ack) {
        if self.min_rtt.is_none() {
            // It begins with that of the handshake, which no queue of ours has made longer.
            (self.min_rtt, self.min_rtt_at) = (ack.delivery.min_rtt, ack.now);
        }
        let expired = self.min_rtt.is_some() && ack.now > self.min_rtt_at + MIN_RTT_WINDOW;
        if let Some(rtt) = ack.rtt
            && (expired || self.min_rtt.is_none_or(|m| rtt < m))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = ack.now;
        }
        if expired && !self.idle_restart && self.state != State::ProbeRtt {
            self.state = State::ProbeRtt;
            self.save_cwnd(window);
            self.probe_rtt_until = None;
        }
        // The rate of so small a window says nothing of the path.
        self.limits_itself = self.state == State::ProbeRtt;
        if self.limits_itself {
            self.probe_rtt(window, ack);
        }
        if ack.delivery.sample.is_some_and(|s| s.delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn probe_rtt(&mut self, window: &mut Window, ack: &Ack) {
        match self.probe_rtt_until {
            None if ack.in_flight <= MIN_SEGMENTS * window.mss() => {
                self.probe_rtt_until = Some(ack.now + PROBE_RTT_TIME);
                self.probe_rtt_round = false;
                self.next_round = ack.delivery.total;
            }
            None => {}
            Some(until) => {
                self.probe_rtt_round |= self.round_start;
                if self.probe_rtt_round && ack.now > until {
                    self.leave_probe_rtt(window, ack.now);
                }
            }
        }
    }

    fn leave_probe_rtt(&mut self, window: &mut Window, now: Instant) {
        self.min_rtt_at = now;
        window.set_cwnd(window.cwnd().max(self.prior_cwnd));
        if self.full_pipe {
            self.enter_probe_bw(now);
        } else {
            self.state = State::Startup;
        }
    }

    // The window

    fn save_cwnd(&mut self, window: &Window) {
        let keep = if self.in_recovery || self.state == State::ProbeRtt { self.prior_cwnd } else { 0 };
        self.prior_cwnd = window.cwnd().max(keep);
    }

    fn set_cwnd(&mut self, window: &mut Window, ack: &Ack) {
        let mss = window.mss();
        if ack.delivered > 0 && !self.follow_recovery(window, ack) {
            let mut target = self.bdp(self.cwnd_gain(), mss) + self.aggregation();
            target += self.inflight(self.cwnd_gain(), mss) - self.bdp(self.cwnd_gain(), mss);
            if self.full_pipe {
                window.set_cwnd((window.cwnd() + ack.delivered).min(target));
            } else if window.cwnd() < target || ack.delivery.total < INITIAL_SEGMENTS * mss {
                window.set_cwnd(window.cwnd() + ack.delivered);
            }
            window.set_cwnd(window.cwnd().max(MIN_SEGMENTS * mss));
        }
        if self.state == State::ProbeRtt {
            window.set_cwnd(window.cwnd().min(MIN_SEGMENTS * mss));
        }
    }

    /// Recovery: a round that lets out what has arrived, then growth again, and the old window at the end. Says whether
    /// the window is settled.
    fn follow_recovery(&mut self, window: &mut Window, ack: &Ack) -> bool {
        let (mss, flow) = (window.mss(), &ack.delivery);
        if flow.lost > 0 {
            window.set_cwnd(window.cwnd().saturating_sub(flow.lost).max(mss));
        }
        if ack.phase == Phase::Recovery && !self.in_recovery {
            self.conserve_packets = true;
            self.next_round = flow.total;
            window.set_cwnd(ack.in_flight + ack.delivered);
        } else if ack.phase == Phase::Open && self.in_recovery {
            window.set_cwnd(window.cwnd().max(self.prior_cwnd));
            self.conserve_packets = false;
        }
        self.in_recovery = ack.phase != Phase::Open;
        if self.conserve_packets {
            window.set_cwnd(window.cwnd().max(ack.in_flight + ack.delivered));
        }
        self.conserve_packets
    }
}

/// `rate` times `gain`, less the margin.
fn paced(rate: u64, gain: u64) -> u64 {
    let rate = u128::from(rate) * u128::from(gain) * u128::from(PACING_MARGIN) / 1_000_000;
    u64::try_from(rate).unwrap_or(u64::MAX)
}

impl Controller for Bbr {
    fn about(&self) -> About {
        About::new(Hears::Everything)
    }
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        self.update_bandwidth(&ack.delivery);
        self.update_aggregation(window, ack);
        self.update_cycle(ack, window.mss());
        self.check_full_pipe(&ack.delivery);
        self.check_drain(window, ack);
        self.update_min_rtt(window, ack);
        self.set_pacing_rate(window, ack.srtt);
        self.set_cwnd(window, ack);
    }
    fn limits_itself(&self) -> bool {
        self.limits_itself
    }
    fn pacing_rate(&self) -> Option<u64> {
        (self.pacing_rate > 0).then_some(self.pacing_rate)
    }
    fn ssthresh(&mut self, window: &Window, _base: u64) -> u64 {
        // A loss does not set a threshold; the window is remembered for the end of recovery.
        self.save_cwnd(window);
        window.ssthresh()
    }
    fn ssthresh_on_ecn(&mut self, window: &Window, base: u64, _abe: bool) -> u64 {
        // Version 1 does not answer reports of congestion.
        self.ssthresh(window, base)
    }
    fn on_sent(&mut self, window: &mut Window, departure: &Departure) {
        if departure.idle.is_none() {
            return;
        }
        let now = departure.now;
        self.idle_restart = true;
        self.extra_at = now;
        self.extra_octets = 0;
        if self.state == State::ProbeBw {
            // The queue is empty: no need to drain, no reason to push.
            self.pacing_rate = paced(self.bw.get(), 1000);
        } else if self.state == State::ProbeRtt && self.probe_rtt_until.is_some_and(|t| now > t) {
            self.leave_probe_rtt(window, now);
        }
    }
    fn on_event(&mut self, _window: &mut Window, _now: Instant, event: Event) {
        if event == Event::Timeout {
            self.in_recovery = true;
            self.full_bw = 0;
            self.round_start = true;
        }
    }
    fn undo(&mut self, _window: &mut Window, _prior: Prior) {
        self.full_bw = 0;
        self.full_bw_rounds = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_round_trip_time_begins_with_that_of_the_handshake() {
        let config = Config::default();
        let mut bbr = Bbr::new(&config, 1);
        let mut window = Window::new(&config, 1000);
        let [handshake, first] = [302, 362].map(Duration::from_millis);
        let now = Instant::ZERO + first;
        let delivery = Delivery { min_rtt: Some(handshake), ..Delivery::default() };
        bbr.on_ack(&mut window, &Ack { now, rtt: Some(first), delivery, ..Ack::default() });
        assert_eq!((bbr.min_rtt, bbr.min_rtt_at), (Some(handshake), now));
        // One that is no shorter does not put off ProbeRtt.
        bbr.on_ack(&mut window, &Ack { now: now + first, rtt: Some(handshake), ..Ack::default() });
        assert_eq!(bbr.min_rtt_at, now);
    }

    #[test]
    fn a_pause_in_probe_rtt_leads_back_to_startup_unless_the_pipe_is_full() {
        let config = Config::default();
        for (full_pipe, expected) in [(false, State::Startup), (true, State::ProbeBw)] {
            let (state, probe_rtt_until) = (State::ProbeRtt, Some(Instant::ZERO));
            let mut bbr = Bbr { state, probe_rtt_until, full_pipe, ..Bbr::new(&config, 1) };
            let mut window = Window::new(&config, 1000);
            let pause = Duration::from_secs(1);
            bbr.on_sent(
                &mut window,
                &Departure { now: Instant::ZERO + pause, octets: 1000, idle: Some(pause) },
            );
            assert_eq!(bbr.state, expected);
        }
    }
}

//! What BBR knows of a path (draft-ietf-ccwg-bbr, 5.5).

use airloom_base::random::Stream;
use airloom_base::{Duration, Instant};

use super::rate::{Packet, Packets, Sample};
use super::state::{AckPhase, State};

/// No bound: the draft's Infinity.
pub(super) const NONE: u64 = u64::MAX;

/// BBR.LossThresh, in thousandths: losses of more than this share of what is in flight are too many.
const LOSS_THRESHOLD: u64 = 20;
/// BBR.Beta: how far a loss takes a bound down at most.
const BETA: u64 = 700;
/// BBR.MinRTTFilterLen and BBR.ProbeRTTInterval.
const MIN_RTT_LASTS: Duration = Duration::from_secs(10);
const PROBE_RTT_EACH: Duration = Duration::from_secs(5);
/// Rounds with a quarter more, without which the pipe is full.
const FULL_BW_GROWTH: u64 = 1250;
const FULL_BW_ROUNDS: u8 = 3;
/// Acknowledgements that come in a lump are looked for in so many rounds, and in as many before them.
const EXTRA_ACKED_ROUNDS: u64 = 5;
/// BBRStartupFullLossCnt: losses apart from one another that end Startup.
const STARTUP_LOSSES: u32 = 6;

/// `value` times so many thousandths.
pub(super) fn part(value: u64, thousandths: u64) -> u64 {
    u64::try_from(u128::from(value) * u128::from(thousandths) / 1000).unwrap_or(NONE)
}

/// Octets at `rate` in a time.
pub(super) fn volume(rate: u64, time: Duration) -> u64 {
    let octets = u128::from(rate) * u128::from(time.as_nanos()) / 1_000_000_000;
    u64::try_from(octets).unwrap_or(NONE)
}

/// Are so many octets lost of those in flight too many?
pub(super) fn is_too_high(lost: u64, in_flight: u64) -> bool {
    lost > part(in_flight, LOSS_THRESHOLD)
}

/// What is restored when losses turn out to have been none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// The state that they ended.
    pub(super) state: Option<State>,
    bw_shortterm: u64,
    inflight_shortterm: u64,
    inflight_longterm: u64,
}

/// A connection's BBR. Names are the draft's; rates are octets a second, volumes octets.
#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) packets: Packets,
    pub(super) random: Stream,
    pub(super) smss: u64,
    pub(super) initial_cwnd: u64,
    pub(super) cwnd: u64,
    pub(super) pacing_rate: u64,
    /// Was the window all that held data back, in this round and in the one before?
    cwnd_limited: [bool; 2],
    /// What the peer may wait for before it acknowledges: so many packets more, and for so long.
    pub(super) ack_packets: u64,
    pub(super) ack_delay: Duration,

    pub(super) state: State,
    pub(super) ack_phase: AckPhase,
    pub(super) round_count: u64,
    pub(super) round_start: bool,
    next_round_delivered: u64,
    idle_restart: bool,

    /// The greatest rates of this cycle and of the one before.
    bw_filter: [u64; 2],
    bw_shortterm: u64,
    pub(super) bw: u64,
    pub(super) min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    pub(super) probe_rtt_min: Option<Duration>,
    pub(super) probe_rtt_min_at: Instant,
    probe_rtt_expired: bool,
    pub(super) probe_rtt_done_at: Option<Instant>,
    pub(super) probe_rtt_round_done: bool,

    pub(super) inflight_longterm: u64,
    pub(super) inflight_shortterm: u64,
    bw_latest: u64,
    inflight_latest: u64,
    pub(super) extra_acked: [u64; 2],
    extra_acked_round: u64,
    extra_acked_since: Instant,
    extra_acked_delivered: u64,

    pub(super) full_bw: u64,
    full_bw_count: u8,
    pub(super) full_bw_now: bool,
    pub(super) full_bw_reached: bool,

    /// Losses of this round: whether there are any, how many apart from one another, the number of the last, and whether marks are among
    /// them.
    is_loss_in_round: bool,
    losses_in_round: u32,
    last_lost: u64,
    is_marked_in_round: bool,
    loss_round_delivered: u64,
    pub(super) loss_round_start: bool,
    undo: Undo,
    /// Recovery (RFC 9002, 7.3.2): until something is acknowledged that was sent after this.
    recovery: Option<Instant>,
    /// The round since which none was without losses.
    losing_since: Option<u64>,
    prior_cwnd: u64,

    // The cycle of ProbeBW.
    pub(super) cycle_at: Instant,
    pub(super) probe_wait: Duration,
    pub(super) reno_rounds: u64,
    pub(super) rounds_since_probe_up: u64,
    pub(super) is_bw_probe_sample: bool,
    pub(super) probe_up_rounds: u32,
    pub(super) probe_up_acked: u64,
    pub(super) probe_up_acked_per_packet: u64,
    pub(super) prev_probe_too_high: bool,
    pub(super) prev_probe_precautionary: bool,
    pub(super) drain_start_round: u64,
}

impl Model {
    pub(super) fn new(now: Instant, smss: u64, initial_cwnd: u64, random: Stream) -> Model {
        Model {
            packets: Packets::default(),
            random,
            smss,
            initial_cwnd,
            cwnd: initial_cwnd,
            // Until there is a round trip: the window in a millisecond.
            pacing_rate: part(initial_cwnd.saturating_mul(1000), State::Startup.pacing_gain()),
            cwnd_limited: [false; 2],
            ack_packets: 0,
            ack_delay: Duration::ZERO,
            state: State::Startup,
            ack_phase: AckPhase::Init,
            round_count: 0,
            round_start: false,
            next_round_delivered: 0,
            idle_restart: false,
            bw_filter: [0; 2],
            bw_shortterm: NONE,
            bw: 0,
            min_rtt: None,
            min_rtt_at: now,
            probe_rtt_min: None,
            probe_rtt_min_at: now,
            probe_rtt_expired: false,
            probe_rtt_done_at: None,
            probe_rtt_round_done: false,
            inflight_longterm: NONE,
            inflight_shortterm: NONE,
            bw_latest: 0,
            inflight_latest: 0,
            extra_acked: [0; 2],
            extra_acked_round: 0,
            extra_acked_since: now,
            extra_acked_delivered: 0,
            full_bw: 0,
            full_bw_count: 0,
            full_bw_now: false,
            full_bw_reached: false,
            is_loss_in_round: false,
            losses_in_round: 0,
            last_lost: NONE,
            is_marked_in_round: false,
            loss_round_delivered: 0,
            loss_round_start: false,
            undo: Undo { state: None, bw_shortterm: NONE, inflight_shortterm: NONE, inflight_longterm: NONE },
            recovery: None,
            losing_since: None,
            prior_cwnd: 0,
            cycle_at: now,
            probe_wait: Duration::ZERO,
            reno_rounds: 0,
            rounds_since_probe_up: 0,
            is_bw_probe_sample: false,
            probe_up_rounds: 0,
            probe_up_acked: 0,
            probe_up_acked_per_packet: NONE,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
            drain_start_round: 0,
        }
    }

    // What happens

    /// Something is about to leave.
    pub(super) fn on_transmit(&mut self, now: Instant) {
        if self.packets.in_flight > 0 || !self.packets.is_app_limited() {
            return;
        }
        self.idle_restart = true;
        self.extra_acked_since = now;
        if self.state.is_probe_bw() {
            self.set_pacing_rate(1000);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }

    /// The window alone has held something back.
    pub(super) fn on_cwnd_limited(&mut self) {
        self.cwnd_limited[0] = true;
    }

    pub(super) fn is_cwnd_limited(&self) -> bool {
        self.cwnd_limited != [false; 2]
    }

    /// A packet was acknowledged that was sent then.
    pub(super) fn on_arrived(&mut self, sent_at: Instant) {
        if self.recovery.is_some_and(|since| sent_at > since) {
            self.recovery = None;
            self.restore_cwnd();
        }
    }

    /// All of an acknowledgement.
    pub(super) fn on_ack(&mut self, sample: &Sample) {
        if self.min_rtt.is_none() {
            let nanos = u128::from(sample.rtt.as_nanos().max(1));
            let rate = u128::from(self.initial_cwnd) * 1_000_000_000 / nanos;
            self.pacing_rate = part(u64::try_from(rate).unwrap_or(NONE), State::Startup.pacing_gain());
        }
        self.update_latest_delivery(sample);
        self.update_max_bw(sample);
        if self.loss_round_start {
            self.adapt_lower_bounds();
        }
        self.update_ack_aggregation(sample);
        self.check_full_bw(sample);
        self.check_startup_done(sample);
        self.check_drain_done(sample.now);
        self.update_cycle(sample);
        self.update_min_rtt(sample);
        self.check_probe_rtt(sample);
        if self.loss_round_start {
            self.losing_since = self.losing_since.filter(|_| self.is_loss_in_round);
            self.is_loss_in_round = false;
            self.is_marked_in_round = false;
            self.losses_in_round = 0;
            self.bw_latest = sample.rate;
            self.inflight_latest = sample.delivered;
        }
        self.bw = self.max_bw().min(self.bw_shortterm);
        self.set_pacing_rate(self.state.pacing_gain());
        self.set_cwnd(sample.newly_acked);
    }

    /// The packet with this number is taken for lost.
    pub(super) fn on_packet_lost(&mut self, now: Instant, number: u64, octets: u64) {
        let Some((packet, lost)) = self.packets.lost(number, octets) else { return };
        self.enter_recovery(now, packet.sent_at);
        self.note_loss();
        self.losses_in_round += u32::from(number != self.last_lost.wrapping_add(1));
        self.last_lost = number;
        if self.is_bw_probe_sample && is_too_high(lost, packet.tx_in_flight) {
            self.on_too_high(now, &packet, lost);
        }
    }

    /// Packets were marked, the last one sent then: congestion (RFC 9002, 7.1), in which nothing was lost.
    pub(super) fn on_marked(&mut self, now: Instant, sent_at: Instant) {
        self.enter_recovery(now, sent_at);
        self.note_loss();
        self.is_marked_in_round = true;
        if !std::mem::take(&mut self.is_bw_probe_sample) {
            return;
        }
        if self.packets.is_app_limited() {
            self.end_probe(now);
        } else {
            self.bound_probe(now, self.packets.in_flight);
        }
    }

    /// Losses of what was sent to probe are too many.
    fn on_too_high(&mut self, now: Instant, packet: &Packet, lost: u64) {
        //= draft-ietf-ccwg-bbr (5.5.10.2): what was in flight when losses crossed the threshold, perhaps within this packet.
        let before = packet.tx_in_flight.saturating_sub(packet.octets);
        let lost_before = lost.saturating_sub(packet.octets);
        let prefix = part(before, LOSS_THRESHOLD).saturating_sub(lost_before);
        let at_loss = before + prefix * 1000 / (1000 - LOSS_THRESHOLD);
        self.is_bw_probe_sample = false;
        if packet.is_app_limited {
            self.end_probe(now);
        } else {
            self.bound_probe(now, at_loss);
        }
    }

    /// A probe was too much with this in flight.
    fn bound_probe(&mut self, now: Instant, in_flight: u64) {
        self.inflight_longterm = in_flight.max(part(self.target_inflight(), BETA));
        self.end_probe(now);
    }

    fn end_probe(&mut self, now: Instant) {
        self.prev_probe_too_high = true;
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(now);
        }
    }

    /// A packet that was sent then was lost: recovery begins, if it was not sent before the last one did.
    fn enter_recovery(&mut self, now: Instant, sent_at: Instant) {
        if self.recovery.is_none_or(|since| sent_at > since) {
            self.save_cwnd();
            self.recovery = Some(now);
        }
    }

    /// Nothing has come through for several timeouts (RFC 9002, 7.6).
    pub(super) fn on_persistent_congestion(&mut self) {
        self.save_cwnd();
        self.cwnd = self.least_cwnd();
    }

    /// All losses of an episode were none.
    pub(super) fn on_spurious(&mut self) {
        self.recovery = None;
        self.restore_cwnd();
        self.is_loss_in_round = false;
        self.reset_full_bw(0);
        self.bw_shortterm = self.bw_shortterm.max(self.undo.bw_shortterm);
        self.inflight_shortterm = self.inflight_shortterm.max(self.undo.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(self.undo.inflight_longterm);
        match self.undo.state.take() {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw_reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => self.start_refill(),
            _ => {}
        }
    }

    // Signals

    pub(super) fn start_round(&mut self) {
        self.next_round_delivered = self.packets.delivered;
    }

    fn update_latest_delivery(&mut self, sample: &Sample) {
        self.bw_latest = self.bw_latest.max(sample.rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        self.loss_round_start = sample.prior_delivered >= self.loss_round_delivered;
        if self.loss_round_start {
            self.loss_round_delivered = self.packets.delivered;
        }
    }

    pub(super) fn max_bw(&self) -> u64 {
        self.bw_filter[0].max(self.bw_filter[1])
    }

    fn update_max_bw(&mut self, sample: &Sample) {
        self.round_start = sample.prior_delivered >= self.next_round_delivered;
        if self.round_start {
            self.start_round();
            self.round_count += 1;
            self.rounds_since_probe_up += 1;
            self.cwnd_limited = [false, self.cwnd_limited[0]];
        }
        if !sample.is_app_limited || sample.rate >= self.max_bw() {
            self.bw_filter[0] = self.bw_filter[0].max(sample.rate);
        }
    }

    /// A cycle is over. One without a sample does not count.
    pub(super) fn advance_max_bw(&mut self) {
        if self.bw_filter[0] > 0 {
            self.bw_filter = [0, self.bw_filter[0]];
        }
    }

    /// The end of a round, perhaps with losses, in which no more was tried than before.
    fn adapt_lower_bounds(&mut self) {
        if !self.is_loss_in_round || self.state.is_accelerating() {
            return;
        }
        let lowered = |bound: u64, first: u64, latest: u64| {
            latest.max(part(if bound == NONE { first } else { bound }, BETA))
        };
        self.bw_shortterm = lowered(self.bw_shortterm, self.max_bw(), self.bw_latest);
        self.inflight_shortterm = lowered(self.inflight_shortterm, self.cwnd, self.inflight_latest);
    }

    pub(super) fn reset_short_term(&mut self) {
        self.bw_shortterm = NONE;
        self.inflight_shortterm = NONE;
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.is_loss_in_round = false;
        self.bw_latest = 0;
        self.inflight_latest = 0;
    }

    /// How many octets more are acknowledged in a lump than the bandwidth explains.
    fn update_ack_aggregation(&mut self, sample: &Sample) {
        let mut expected = volume(self.bw, sample.now - self.extra_acked_since);
        if self.extra_acked_delivered <= expected {
            self.extra_acked_delivered = 0;
            self.extra_acked_since = sample.now;
            expected = 0;
        }
        self.extra_acked_delivered += sample.newly_acked;
        let rounds = if self.full_bw_reached { EXTRA_ACKED_ROUNDS } else { 1 };
        if self.round_count >= self.extra_acked_round + rounds {
            self.extra_acked_round = self.round_count;
            self.extra_acked = [0, if self.full_bw_reached { self.extra_acked[0] } else { 0 }];
        }
        let extra = (self.extra_acked_delivered - expected).min(self.cwnd);
        self.extra_acked[0] = self.extra_acked[0].max(extra);
    }

    pub(super) fn reset_full_bw(&mut self, baseline: u64) {
        self.full_bw = baseline;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }

    fn check_full_bw(&mut self, sample: &Sample) {
        if self.full_bw_now || !self.round_start || sample.is_app_limited || sample.rate == 0 {
            return;
        }
        if sample.rate >= part(self.full_bw, FULL_BW_GROWTH) {
            self.reset_full_bw(sample.rate);
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= FULL_BW_ROUNDS;
        self.full_bw_reached |= self.full_bw_now;
    }

    /// Startup is over when its losses are too many, for a whole round of recovery.
    pub(super) fn check_startup_loss(&mut self, sample: &Sample) {
        let is_round_over = self.losing_since.is_some_and(|round| self.round_count > round);
        let are_too_many =
            self.losses_in_round >= STARTUP_LOSSES && is_too_high(sample.lost, sample.tx_in_flight);
        if self.loss_round_start && is_round_over && (are_too_many || self.is_marked_in_round) {
            self.undo.state = Some(State::Startup);
            self.full_bw_reached = true;
            self.inflight_longterm = self.bdp(self.bw, 1000).max(self.inflight_latest);
        }
    }

    fn update_min_rtt(&mut self, sample: &Sample) {
        let is_known = self.probe_rtt_min.is_some();
        self.probe_rtt_expired = is_known && sample.now > self.probe_rtt_min_at + PROBE_RTT_EACH;
        if self.probe_rtt_expired || self.probe_rtt_min.is_none_or(|least| sample.rtt < least) {
            self.probe_rtt_min = Some(sample.rtt);
            self.probe_rtt_min_at = sample.now;
        }
        let is_old = sample.now > self.min_rtt_at + MIN_RTT_LASTS;
        if is_old || self.min_rtt.is_none() || self.probe_rtt_min < self.min_rtt {
            self.min_rtt = self.probe_rtt_min;
            self.min_rtt_at = self.probe_rtt_min_at;
        }
    }

    /// Is it time to look how long the path is without a queue?
    pub(super) fn wants_probe_rtt(&self) -> bool {
        self.probe_rtt_expired && !self.idle_restart
    }

    pub(super) fn after_idle(&mut self) {
        self.idle_restart = false;
    }

    // Losses

    fn note_loss(&mut self) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = self.packets.delivered;
            self.save_cwnd();
            self.undo = Undo {
                state: None,
                bw_shortterm: self.bw_shortterm,
                inflight_shortterm: self.inflight_shortterm,
                inflight_longterm: self.inflight_longterm,
            };
        }
        self.is_loss_in_round = true;
        self.losing_since.get_or_insert(self.round_count);
    }

    pub(super) fn save_cwnd(&mut self) {
        let kept = if self.recovery.is_some() || self.state == State::ProbeRtt { self.prior_cwnd } else { 0 };
        self.prior_cwnd = self.cwnd.max(kept);
    }

    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }
}

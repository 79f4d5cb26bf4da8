//! What leads from one of BBR's states to the next (draft-ietf-ccwg-bbr, 5.3).

use airloom_base::{Duration, Instant};

use super::model::{Model, NONE, is_too_high};
use super::rate::Sample;
use super::state::{AckPhase, State};

/// How long ProbeRtt lasts at least.
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Rounds that Drain may take.
const DRAIN_ROUNDS: u64 = 3;
/// T_bbr: the least time between two probes, and how much of chance is added.
const PROBE_WAIT: Duration = Duration::from_secs(2);
const PROBE_WAIT_MORE: Duration = Duration::from_secs(1);
/// T_reno_bound: so many rounds, or one more.
const RENO_ROUNDS: u64 = 62;

impl Model {
    pub(super) fn check_startup_done(&mut self, sample: &Sample) {
        if self.state != State::Startup {
            return;
        }
        self.check_startup_loss(sample);
        if self.full_bw_reached {
            self.state = State::Drain;
            self.drain_start_round = self.round_count;
        }
    }

    pub(super) fn check_drain_done(&mut self, now: Instant) {
        let fits = self.packets.in_flight <= self.inflight(self.bw, 1000);
        if self.state == State::Drain && (fits || self.round_count > self.drain_start_round + DRAIN_ROUNDS) {
            self.start_down(now);
        }
    }

    pub(super) fn start_down(&mut self, now: Instant) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_packet = NONE;
        self.rounds_since_probe_up = self.random.below(2);
        self.probe_wait = PROBE_WAIT + PROBE_WAIT_MORE.mul_ratio(self.random.below(1000), 1000);
        self.reno_rounds = RENO_ROUNDS + self.random.below(2);
        self.cycle_at = now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = State::Down;
    }

    pub(super) fn start_refill(&mut self) {
        self.reset_short_term();
        self.probe_up_rounds = 0;
        self.probe_up_acked = 0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = State::Refill;
    }

    fn start_up(&mut self, sample: &Sample) {
        self.is_bw_probe_sample = true;
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.reset_full_bw(sample.rate);
        self.state = State::Up;
        self.raise_slope();
    }

    /// The cycle of ProbeBW.
    pub(super) fn update_cycle(&mut self, sample: &Sample) {
        if !self.full_bw_reached || self.adapt_long_term(sample) {
            return;
        }
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe(sample.now) => self.start_refill(),
            State::Down if self.is_time_to_cruise() => self.state = State::Cruise,
            State::Refill if self.round_start => self.start_up(sample),
            State::Up if self.is_time_to_go_down(sample) => {
                self.prev_probe_too_high = false;
                self.start_down(sample.now);
            }
            _ => {}
        }
    }

    fn is_time_to_probe(&self, now: Instant) -> bool {
        // As often as Reno would, whose window takes as many rounds for its sawtooth.
        let reno = (self.target_inflight() / self.smss).min(self.reno_rounds);
        // On a path of less than a packet its window has no sawtooth.
        now > self.cycle_at + self.probe_wait || (reno > 0 && self.rounds_since_probe_up >= reno)
    }

    fn is_time_to_cruise(&self) -> bool {
        let in_flight = self.packets.in_flight;
        in_flight <= self.inflight_with_headroom() && in_flight <= self.inflight(self.max_bw(), 1000)
    }

    fn is_time_to_go_down(&mut self, sample: &Sample) -> bool {
        // What was in flight when the acknowledgement came; the window holds back the packet that would pass the bound.
        let in_flight = self.packets.in_flight + sample.newly_acked;
        if self.prev_probe_too_high && in_flight + self.smss > self.inflight_longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        if self.is_cwnd_limited() && self.cwnd >= self.inflight_longterm {
            // The bound held it back, not the path.
            self.reset_full_bw(sample.rate);
            return false;
        }
        self.full_bw_now
    }

    /// Says of what the acknowledgement is, and raises what may be in flight. True: it has led to another state.
    fn adapt_long_term(&mut self, sample: &Sample) -> bool {
        match self.ack_phase {
            AckPhase::ProbeStarting if self.round_start => self.ack_phase = AckPhase::ProbeFeedback,
            AckPhase::ProbeStopping if self.round_start => {
                self.is_bw_probe_sample = false;
                self.ack_phase = AckPhase::Init;
                if self.state.is_probe_bw() {
                    if !sample.is_app_limited {
                        self.advance_max_bw();
                    }
                    if self.prev_probe_precautionary && !self.prev_probe_too_high {
                        self.start_refill();
                        return true;
                    }
                }
            }
            _ => {}
        }
        if self.inflight_longterm != NONE && !is_too_high(sample.lost, sample.tx_in_flight) {
            self.inflight_longterm = self.inflight_longterm.max(sample.tx_in_flight);
            if self.state == State::Up {
                self.probe_upward(sample.newly_acked);
            }
        }
        false
    }

    /// What may be in flight grows by 1, 2, 4 .. packets a round.
    fn probe_upward(&mut self, newly_acked: u64) {
        if !self.is_cwnd_limited() || self.cwnd < self.inflight_longterm {
            return;
        }
        self.probe_up_acked += newly_acked;
        let packets = self.probe_up_acked / self.probe_up_acked_per_packet;
        self.probe_up_acked %= self.probe_up_acked_per_packet;
        self.inflight_longterm = self.inflight_longterm.saturating_add(packets * self.smss);
        if self.round_start {
            self.raise_slope();
        }
    }

    fn raise_slope(&mut self) {
        self.probe_up_acked_per_packet = (self.cwnd >> self.probe_up_rounds).max(self.smss);
        self.probe_up_rounds = (self.probe_up_rounds + 1).min(30);
    }

    pub(super) fn check_probe_rtt(&mut self, sample: &Sample) {
        if self.state != State::ProbeRtt && self.wants_probe_rtt() {
            self.save_cwnd();
            self.state = State::ProbeRtt;
            self.probe_rtt_done_at = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == State::ProbeRtt {
            self.probe_rtt(sample.now);
        }
        if sample.delivered > 0 {
            self.after_idle();
        }
    }

    fn probe_rtt(&mut self, now: Instant) {
        // The rate of so small a window says nothing of the path.
        self.packets.limit();
        if self.probe_rtt_done_at.is_some() {
            self.probe_rtt_round_done |= self.round_start;
            if self.probe_rtt_round_done {
                self.check_probe_rtt_done(now);
            }
        } else if self.packets.in_flight <= self.probe_rtt_cwnd() {
            self.probe_rtt_done_at = Some(now + PROBE_RTT_TIME);
            self.probe_rtt_round_done = false;
            self.start_round();
        }
    }

    pub(super) fn check_probe_rtt_done(&mut self, now: Instant) {
        if self.probe_rtt_done_at.is_none_or(|done| now <= done) {
            return;
        }
        self.probe_rtt_min_at = now;
        self.restore_cwnd();
        self.reset_short_term();
        if self.full_bw_reached {
            self.start_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}

//! Window and rate that follow from what is known of a path (draft-ietf-ccwg-bbr, 5.6).

use super::model::{Model, NONE, part, volume};
use super::state::State;

/// What is sent of what passes, in thousandths as all gains and shares: the queue empties.
const MARGIN: u64 = 990;
/// BBR.Headroom: what is left to others.
const HEADROOM: u64 = 150;
/// BBR.MinPipeCwnd, in packets.
const MIN_PACKETS: u64 = 4;

impl Model {
    pub(super) fn least_cwnd(&self) -> u64 {
        MIN_PACKETS * self.smss
    }

    /// What is in flight at `gain` times a rate over the least round trip.
    pub(super) fn bdp(&self, bw: u64, gain: u64) -> u64 {
        self.min_rtt.map_or(self.initial_cwnd, |min_rtt| part(volume(bw, min_rtt), gain))
    }

    /// Room for what is sent and acknowledged in lumps.
    fn quantized(&self, octets: u64) -> u64 {
        let waits = self.ack_packets.saturating_mul(self.smss).min(volume(self.max_bw(), self.ack_delay));
        let budget = self.send_quantum().saturating_add(waits);
        let probes = if self.state == State::Up { 2 * self.smss } else { 0 };
        octets.max(budget).max(self.least_cwnd()).saturating_add(probes)
    }

    pub(super) fn inflight(&self, bw: u64, gain: u64) -> u64 {
        self.quantized(self.bdp(bw, gain))
    }

    pub(super) fn inflight_with_headroom(&self) -> u64 {
        if self.inflight_longterm == NONE {
            return NONE;
        }
        let headroom = part(self.inflight_longterm, HEADROOM).max(self.smss);
        self.inflight_longterm.saturating_sub(headroom).max(self.least_cwnd())
    }

    /// BBR.bdp, unless congestion has made the window smaller.
    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp(self.bw, 1000).min(self.cwnd)
    }

    pub(super) fn probe_rtt_cwnd(&self) -> u64 {
        self.bdp(self.bw, State::ProbeRtt.cwnd_gain()).max(self.least_cwnd())
    }

    /// C.send_quantum: what may leave in one go.
    pub(super) fn send_quantum(&self) -> u64 {
        (self.pacing_rate / 1000).min(64_000).max(2 * self.smss)
    }

    pub(super) fn set_pacing_rate(&mut self, gain: u64) {
        let rate = part(part(self.bw, gain), MARGIN);
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    pub(super) fn set_cwnd(&mut self, newly_acked: u64) {
        let extra = self.extra_acked[0].max(self.extra_acked[1]);
        let most = self.quantized(self.bdp(self.bw, self.state.cwnd_gain()).saturating_add(extra));
        if self.full_bw_reached {
            self.cwnd = (self.cwnd + newly_acked).min(most);
        } else if self.cwnd < most || self.packets.delivered < self.initial_cwnd {
            self.cwnd += newly_acked;
        }
        self.bound_cwnd();
    }

    /// The bounds of the state and of recent losses.
    pub(super) fn bound_cwnd(&mut self) {
        let cap = match self.state {
            State::Startup | State::Drain => NONE,
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::Cruise => self.inflight_with_headroom(),
            State::ProbeRtt => self.inflight_with_headroom().min(self.probe_rtt_cwnd()),
        };
        self.cwnd = self.cwnd.min(cap).min(self.inflight_shortterm).max(self.least_cwnd());
    }
}

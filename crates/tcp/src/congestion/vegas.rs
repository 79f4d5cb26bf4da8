//! Vegas (Brakmo and Peterson 1995): the window keeps a few segments in the queue, judged once per round trip by how much
//! longer the round trip takes than the shortest one did.
//! A circle, of which `config.rs` says why.
//!
//! Left out: the finer retransmission timer of the paper (RACK and the probe timeout do more).

use airloom_base::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{About, Ack, Controller, Departure, Event, Hears, Window};
use crate::config::Config;

/// Vegas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "TcpVegas")]
pub struct VegasConfig {
    /// Alpha: with fewer segments in the queue than this the window grows.
    pub alpha: u16,
    /// Beta: with more than this it shrinks.
    pub beta: u16,
    /// Gamma: with more than this slow start ends.
    pub gamma: u16,
    /// Rounds in which slow start doubles the window once: 2 in the paper, 1 in Linux.
    pub doubling_rounds: u8,
}

impl Default for VegasConfig {
    fn default() -> Self {
        VegasConfig { alpha: 2, beta: 4, gamma: 1, doubling_rounds: 2 }
    }
}

impl VegasConfig {
    /// Which value makes no sense.
    pub fn check(&self) -> Result<(), String> {
        if self.alpha > self.beta {
            return Err("vegas.alpha: not above beta".into());
        }
        if self.doubling_rounds == 0 {
            return Err("vegas.doubling_rounds: at least 1".into());
        }
        Ok(())
    }
}

/// The controller.
#[derive(Default)]
pub struct Vegas {
    settings: VegasConfig,
    /// The shortest round-trip time.
    base_rtt: Option<Duration>,
    /// The round: ends when this is acknowledged; its shortest round-trip time, and how many there were.
    round_end: u64,
    round_min: Option<Duration>,
    samples: u32,
    rounds: u8,
    /// This round was judged and the window is not to move before the next.
    delay_based: bool,
}

impl Vegas {
    /// As configured.
    pub fn new(config: &Config) -> Self {
        Vegas { settings: config.vegas.clone(), ..Default::default() }
    }

    /// A round is over: moves the window.
    fn judge(&mut self, window: &mut Window) {
        self.rounds = self.rounds.wrapping_add(1);
        let (Some(base), Some(rtt)) = (self.base_rtt, self.round_min) else { return };
        // One delayed acknowledgement among two would look like a queue: then it is Reno.
        self.delay_based = self.samples > 2;
        if !self.delay_based {
            return;
        }
        let mss = window.mss();
        // Diff of the paper, in octets: what is in the queue.
        let part = |octets: u64, of: Duration| {
            (u128::from(octets) * u128::from(of.as_nanos()) / u128::from(rtt.as_nanos().max(1))) as u64
        };
        let queued = part(window.cwnd(), rtt.saturating_sub(base));
        let (alpha, beta, gamma) =
            (u64::from(self.settings.alpha), u64::from(self.settings.beta), u64::from(self.settings.gamma));
        if window.in_slow_start() {
            if queued > gamma * mss {
                // What the path holds without a queue, and a segment.
                window.set_cwnd(window.cwnd().min(part(window.cwnd(), base) + mss).max(2 * mss));
                window.end_slow_start();
            }
        } else if queued > beta * mss {
            window.set_cwnd(window.cwnd().saturating_sub(mss).max(2 * mss));
            window.set_ssthresh(window.ssthresh().min(window.cwnd()));
        } else if queued < alpha * mss {
            window.set_cwnd(window.cwnd() + mss);
        }
    }
}

impl Controller for Vegas {
    fn about(&self) -> About {
        About::new(Hears::News)
    }
    fn on_sent(&mut self, _window: &mut Window, departure: &Departure) {
        // The path may be another one after so long.
        if departure.idle.is_some_and(|idle| idle > Duration::from_secs(1)) {
            self.base_rtt = None;
        }
    }
    fn observe(&mut self, _window: &mut Window, ack: &Ack) {
        let Some(rtt) = ack.rtt else { return };
        self.base_rtt = Some(self.base_rtt.map_or(rtt, |m| m.min(rtt)));
        self.round_min = Some(self.round_min.map_or(rtt, |m| m.min(rtt)));
        self.samples += 1;
    }
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if ack.una > self.round_end {
            self.judge(window);
            self.round_end = ack.nxt;
            self.round_min = None;
            self.samples = 0;
        }
        if window.in_slow_start() {
            if self.rounds.is_multiple_of(self.settings.doubling_rounds) || !self.delay_based {
                window.grow(ack);
            }
        } else if !self.delay_based {
            window.grow(ack);
        }
    }
    fn on_event(&mut self, _window: &mut Window, _now: Instant, event: Event) {
        match event {
            Event::Timeout | Event::Open => {
                self.round_min = None;
                self.samples = 0;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{MSS, TestWindow};
    use super::*;
    use crate::config::Congestion;
    use crate::profile::Profile;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn flow(segments: u64) -> (Vegas, TestWindow) {
        let config = Config { congestion: Congestion::Vegas, ..Profile::Rfc.settings() };
        (Vegas::new(&config), TestWindow::new(&config, segments))
    }

    /// How the window of 20 segments moves in a round when `queued` of them wait.
    fn step(queued: u64) -> i64 {
        let (mut vegas, mut w) = flow(20);
        vegas.base_rtt = Some(ms(100));
        // 20 * (rtt - 100) / rtt = queued.
        let rtt = Duration::from_micros(100_000 * 20 / (20 - queued) + 10);
        (0..3).for_each(|_| {
            w.window.set_cwnd(20 * MSS);
            w.round_trip(&mut vegas, rtt);
        });
        w.segments() as i64 - 20
    }

    #[test]
    fn below_alpha_it_grows_above_beta_it_shrinks_between_them_it_stays() {
        assert_eq!([0, 1, 2, 3, 4, 5].map(step), [1, 1, 0, 0, -1, -1]);
    }

    #[test]
    fn slow_start_doubles_every_other_round_and_ends_above_gamma() {
        let (mut vegas, mut w) = flow(4);
        w.window.set_ssthresh(u64::MAX);
        let mut windows = Vec::new();
        for _ in 0..5 {
            w.round_trip(&mut vegas, ms(100));
            windows.push(w.segments());
        }
        // The first round has nothing to judge by.
        assert_eq!(windows, [8, 16, 16, 32, 32]);
        while w.window.in_slow_start() {
            w.round_trip(&mut vegas, ms(130));
        }
        // What 100 of 130 ms hold, and a segment.
        assert!(w.segments() <= 64 * 100 / 130 + 1, "{}", w.segments());
    }

    #[test]
    fn with_too_few_samples_it_is_reno() {
        let (mut vegas, mut w) = flow(2);
        vegas.base_rtt = Some(ms(50));
        (0..3).for_each(|_| w.round_trip(&mut vegas, ms(100)));
        assert!(w.segments() > 2);
    }

    #[test]
    fn the_paper_gives_two_and_four_segments() {
        assert_eq!(VegasConfig::default(), VegasConfig { alpha: 2, beta: 4, gamma: 1, doubling_rounds: 2 });
        assert!(VegasConfig { alpha: 5, ..VegasConfig::default() }.check().is_err());
    }
}

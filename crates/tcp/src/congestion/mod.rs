//! The congestion window and the rules that move it: one controller a file, but for the three of [`reno`].
//! A circle, of which `config.rs` says why.
//!
//! | controller | slow start, avoidance | after three duplicates | leaves recovery |
//! |---|---|---|---|
//! | `tahoe` | RFC 5681 | as after a timeout | - |
//! | `reno` | RFC 5681 | fast recovery | at the first new acknowledgement |
//! | `newreno` | RFC 5681 | fast recovery | when all that was outstanding is acknowledged |
//! | `cubic` | RFC 9438, RFC 8312 or as Linux | as NewReno | as NewReno |
//! | `westwood` | RFC 5681 | as NewReno, to what the path carried | as NewReno |
//! | `vegas` | by the queue it makes | as NewReno | as NewReno |
//! | `probing` | RFC 5681 | probes first, then as NewReno, perhaps with the old window | as NewReno |
//! | `bbr` | by a model of the path | resends, window by the model | when all is repaired |
//!
//! When SACK was agreed on, recovery follows RFC 6675 whatever the controller; Tahoe has none either way. A controller
//! keeps what it needs to itself; the window that all share is [`Window`]. Slow start may end by itself
//! ([`slow_start`]); a rate at which the window leaves is in [`pacing`].

mod bbr;
pub mod cubic;
pub mod delivery_rate;
mod hystart;
mod hystart_pp;
pub mod pacing;
mod probing;
mod reno;
pub mod slow_start;
pub(super) mod validation;
pub mod vegas;
mod westwood;
mod window;

use std::sync::Arc;

use airloom_base::{Duration, Instant};

use super::config::{Config, Congestion};
use delivery_rate::RateSample;
pub use window::{Prior, Window};

/// What an acknowledgement brings, when the scoreboard has taken it in.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// The moment.
    pub now: Instant,
    /// Octets that the cumulative acknowledgement covers for the first time.
    pub octets: u64,
    /// The segments of them.
    pub segments: u64,
    /// Octets that are known to have arrived since this acknowledgement: by the cumulative one, or by a SACK block.
    pub delivered: u64,
    /// SND.UNA after it, and SND.NXT: a round ends when what was SND.NXT at its beginning is acknowledged.
    pub una: u64,
    /// See `una`.
    pub nxt: u64,
    /// Octets in flight after it.
    pub in_flight: u64,
    /// Round-trip time of the latest segment acknowledged, unless it could be that of another copy.
    pub rtt: Option<Duration>,
    /// The smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// What the sender is doing.
    pub phase: Phase,
    /// Does the sender pace?
    pub paced: bool,
    /// Octets of `delivered` that the peer reports as marked (ECN). By RFC 3168 it says only that something was: then it is all
    /// of them, as DCTCP counts them (RFC 8257 3.3).
    pub marked: u64,
    /// How the path delivered; for who hears [`Hears::Everything`].
    pub delivery: Delivery,
}

/// What a sender is doing about losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Nothing is being repaired.
    #[default]
    Open,
    /// Fast recovery.
    Recovery,
    /// What a timeout declared lost is being repaired.
    Loss,
}

/// How the path delivered up to an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivery {
    /// How fast.
    pub sample: Option<RateSample>,
    /// Octets delivered in all, as in the sample.
    pub total: u64,
    /// Octets in flight before this acknowledgement.
    pub in_flight_before: u64,
    /// Octets marked lost since this acknowledgement.
    pub lost: u64,
    /// Segments marked lost in all, by acknowledgements and by timers; what was marked twice counts twice.
    pub lost_segments: u64,
    /// The least round-trip time so far, that of the handshake among them.
    pub min_rtt: Option<Duration>,
}

/// Data that leaves for the first time.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// The moment.
    pub now: Instant,
    /// Its octets.
    pub octets: u64,
    /// With nothing outstanding: the time since data was sent last.
    pub idle: Option<Duration>,
}

/// What happens to a connection beside departures and acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Fast recovery begins; the threshold was asked for before.
    Recovery,
    /// The retransmission timer expired; the threshold was asked for before, if it was the first time for this segment.
    Timeout,
    /// ECN reported congestion; the threshold was asked for before.
    CongestionReported,
    /// Recovery is over.
    Open,
}

/// Why a sender believes that something is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspicion {
    /// Duplicate acknowledgements, or SACK blocks that mean the same.
    Duplicates,
    /// The retransmission timer expired.
    Timeout,
}

/// What a controller wants done about it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// The loss is repaired now: [`Controller::ssthresh`] and [`Controller::on_event`] say with which window.
    Repair,
    /// Sending is suspended, and a probe is sent; its answer is waited for so long.
    Probe {
        /// The time.
        wait: Duration,
    },
}

/// What is known of the round-trip time.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// SRTT (RFC 6298).
    pub srtt: Duration,
    /// RTTVAR.
    pub rttvar: Duration,
    /// The retransmission timeout, with its backoff.
    pub rto: Duration,
}

/// How a sender repairs losses when there is no SACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastRecovery {
    /// It starts again with one segment.
    None,
    /// Fast recovery until the first new acknowledgement.
    Reno,
    /// Fast recovery until everything outstanding at its beginning is acknowledged.
    NewReno,
}

/// Which calls a controller gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hears {
    /// [`on_ack`](Controller::on_ack) for new data, outside fast recovery, if it was the window that limited the sender.
    Growth,
    /// The same, and before it, before round-trip time and window move, [`observe`](Controller::observe) in any state; and
    /// [`on_sent`](Controller::on_sent) for data that leaves with nothing outstanding.
    News,
    /// [`on_sent`](Controller::on_sent) for all data and [`on_ack`](Controller::on_ack) for every acknowledgement that brings
    /// news, in any state and with the [`Delivery`]. It sets window and rate itself: nothing else reduces them. Losses are then
    /// found as RFC 8985 does, whatever the settings and [`About`] say of recovery and probes.
    Everything,
}

/// What a controller is: asked once, when a connection is made.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// How losses are repaired without SACK.
    pub recovery: FastRecovery,
    /// Which calls it gets.
    pub hears: Hears,
    /// Does it probe the path before it lets losses be repaired? Then the SYN offers the peer to.
    pub probes: bool,
}

impl About {
    /// One that repairs as NewReno does and hears what `hears` says.
    pub const fn new(hears: Hears) -> Self {
        About { recovery: FastRecovery::NewReno, hears, probes: false }
    }
}

/// The rules for the window: one of ours ([`Congestion`]), or a user's own ([`Tcp::controlled_by`](crate::Tcp::controlled_by)).
///
/// The order of calls: [`about`](Controller::about) once; [`on_sent`](Controller::on_sent) as data leaves; on an
/// acknowledgement [`observe`](Controller::observe), then [`on_ack`](Controller::on_ack); on a loss or a mark
/// [`ssthresh`](Controller::ssthresh) or [`ssthresh_on_ecn`](Controller::ssthresh_on_ecn), then
/// [`on_event`](Controller::on_event). When a reduction turns out to have been a mistake: [`undo`](Controller::undo). All but
/// `about` do what most controllers do unless told otherwise; [`Hears`] says which are called.
pub trait Controller: Send {
    /// What it is.
    fn about(&self) -> About;
    /// Data leaves for the first time.
    fn on_sent(&mut self, _window: &mut Window, _departure: &Departure) {}
    /// An acknowledgement that brings news, before anything moves.
    fn observe(&mut self, _window: &mut Window, _ack: &Ack) {}
    /// An acknowledgement by which the window may move.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        window.grow(ack);
    }
    /// The slow start threshold after a loss, when `base` octets count as the window.
    fn ssthresh(&mut self, window: &Window, base: u64) -> u64 {
        //= RFC 5681 (3.1, equation 4): half of what is in flight, at least two segments.
        (base / 2).max(2 * window.mss())
    }
    /// The threshold after a report of congestion (ECN); `abe`: after such a report the window shrinks less (RFC 8511).
    fn ssthresh_on_ecn(&mut self, window: &Window, base: u64, abe: bool) -> u64 {
        //= RFC 8511 (3, 4): 0.8 of what is in flight, at least two segments; in congestion avoidance only.
        if abe && !window.in_slow_start() {
            (base * 8 / 10).max(2 * window.mss())
        } else {
            self.ssthresh(window, base)
        }
    }
    /// Something else happened.
    fn on_event(&mut self, _window: &mut Window, _now: Instant, _event: Event) {}
    /// The last reduction was a mistake: nothing was lost. `prior` is the window before it.
    fn undo(&mut self, window: &mut Window, prior: Prior) {
        window.restore(prior);
    }
    /// Octets per second at which data leaves, if the controller has an opinion.
    fn pacing_rate(&self) -> Option<u64> {
        None
    }
    /// Does it hold the rate down itself, so that what is in flight now says as little of the path as where the application
    /// sends no more? For who hears [`Hears::Everything`].
    fn limits_itself(&self) -> bool {
        false
    }
    /// Something seems to be lost and nothing was done about it yet. Only asked if it probes and the peer answers probes.
    fn on_suspicion(&mut self, _window: &Window, _suspicion: Suspicion, _estimate: Estimate) -> Reaction {
        Reaction::Repair
    }
    /// While sending is suspended: the last probe was answered after `rtt`, or (none) not in time.
    fn on_probe(&mut self, _window: &Window, _rtt: Option<Duration>, _estimate: Estimate) -> Reaction {
        Reaction::Repair
    }
}

/// Makes the controller of a connection with these settings; the number tells connections apart that draw lots.
pub(super) type Make = Arc<dyn Fn(&Config, u64) -> Box<dyn Controller> + Send + Sync>;

/// Builds the controller of `config`.
///
/// `seed` tells flows apart that draw lots.
pub(super) fn build(config: &Config, seed: u64) -> Box<dyn Controller> {
    match config.congestion {
        Congestion::Tahoe => Box::new(reno::Reno::new(FastRecovery::None, config)),
        Congestion::Reno => Box::new(reno::Reno::new(FastRecovery::Reno, config)),
        Congestion::NewReno => Box::new(reno::Reno::new(FastRecovery::NewReno, config)),
        Congestion::Cubic => cubic::build(config),
        Congestion::Westwood => Box::new(westwood::Westwood::new(config)),
        Congestion::Vegas => Box::new(vegas::Vegas::new(config)),
        Congestion::Probing => Box::new(probing::Probing::new(config)),
        Congestion::Bbr => Box::new(bbr::Bbr::new(config, seed)),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub const MSS: u64 = 1000;

    /// A window, and acknowledgements of single segments that come evenly over a round-trip time.
    pub struct TestWindow {
        pub window: Window,
        pub now: Instant,
        una: u64,
    }

    impl TestWindow {
        /// In avoidance, with `segments`.
        pub fn new(config: &Config, segments: u64) -> Self {
            let mut window = Window::new(config, MSS);
            window.cut(segments * MSS, segments * MSS);
            TestWindow { window, now: Instant::ZERO, una: 0 }
        }

        /// The window in segments.
        pub fn segments(&self) -> u64 {
            self.window.cwnd() / MSS
        }

        /// All segments of the window are acknowledged within `rtt`, which is measured each time.
        pub fn round_trip(&mut self, controller: &mut dyn Controller, rtt: Duration) {
            let segments = self.segments();
            let nxt = self.una + segments * MSS;
            for i in 0..segments {
                self.now += rtt / segments;
                self.una += MSS;
                let ack = Ack {
                    now: self.now,
                    octets: MSS,
                    segments: 1,
                    delivered: MSS,
                    una: self.una,
                    nxt: nxt + i * MSS,
                    in_flight: self.window.cwnd(),
                    rtt: Some(rtt),
                    srtt: Some(rtt),
                    ..Ack::default()
                };
                controller.observe(&mut self.window, &ack);
                controller.on_ack(&mut self.window, &ack);
            }
        }
    }

    #[test]
    fn rfc_5681_equation_4_has_a_floor_of_two_segments() {
        for congestion in [Congestion::Tahoe, Congestion::Reno, Congestion::NewReno] {
            let config = Config { congestion, ..Config::default() };
            let window = Window::new(&config, 1000);
            let mut controller = build(&config, 1);
            assert_eq!(controller.ssthresh(&window, 9000), 4500);
            assert_eq!(controller.ssthresh(&window, 3000), 2000);
        }
    }
}

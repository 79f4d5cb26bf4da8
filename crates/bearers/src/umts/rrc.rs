//! RRC states of a mobile: IDLE, FACH, DCH, and what switching between them costs.
//!
//! ```text
//!   IDLE ──RLC (idle_to_dch)────► DCH ──dch_inactivity──► FACH ──fach_inactivity──► IDLE
//!                                   ▲                       │
//!                                   └─ buffer > threshold ──┘ (fach_to_dch)
//! ```
//!
//! What wakes an idle mobile is a packet, or what RLC sends of itself: a repetition, a poll, a report. While a promotion runs,
//! it waits in the RLC buffers. On FACH little data goes at the rates of FACH and RACH with an
//! additional delay; mobiles on FACH share it, in turns. The latencies and timers are those of published measurements of
//! live networks (their defaults: ARO); they differ between operators by factors.

use airloom_base::units::{EachWay, Octets, Rate};
use airloom_base::{ConfigError, Direction, Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::dch::TransportFormat;

/// Channel switching.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(deny_unknown_fields, default)]
pub struct RrcConfig {
    /// From IDLE to DCH: connection and bearer set-up.
    #[default(Duration::from_secs(2))]
    pub idle_to_dch: Duration,
    /// From FACH to DCH.
    #[default(Duration::from_millis(1500))]
    pub fach_to_dch: Duration,
    /// From DCH to FACH after so long without a block in either direction; at least 40ms, or the longer `tti`.
    #[default(Duration::from_secs(4))]
    pub dch_inactivity: Duration,
    /// From FACH to IDLE after so long without a block in either direction; `0s`: straight from DCH to IDLE.
    #[default(Duration::from_secs(10))]
    pub fach_inactivity: Duration,
    /// On FACH: more octets than this in the RLC buffer start the promotion to DCH.
    #[default(EachWay { uplink: Octets(543), downlink: Octets(475) })]
    pub fach_threshold: EachWay<Octets>,
    /// One-way delay on FACH and RACH in addition to that of the DCH.
    #[default(Duration::from_millis(200))]
    pub fach_delay: Duration,
}

impl RrcConfig {
    /// A mobile that has something to send has to be on the DCH long enough to send some of it; `longest` is the longest interval
    /// of its channels.
    pub(super) fn check(&self, longest: Duration) -> Result<(), ConfigError> {
        if self.dch_inactivity < longest {
            let message = format!("at least {longest}, an interval of the channel");
            return Err(ConfigError { path: vec!["rrc".to_owned(), "dch_inactivity".to_owned()], message });
        }
        Ok(())
    }

    /// Formats of RACH and FACH: one block in 20 ms (16 kbit/s) up, one in 10 ms (32 kbit/s) down.
    pub(super) fn formats(pdu_octets: u16) -> Result<[TransportFormat; 2], ConfigError> {
        let payload = u64::from(pdu_octets - 2) * 8;
        let format = |ms: u64| {
            let rate = Rate::from_bits_per_second(payload * 1000 / ms);
            let rate = rate.ok_or_else(|| ConfigError::at("pdu_octets", "too small for FACH"))?;
            TransportFormat::new(rate, Some(Duration::from_millis(ms)), pdu_octets)
                .map_err(|e| ConfigError::at("rrc", e))
        };
        Ok([format(20)?, format(10)?])
    }
}

/// State of one mobile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum State {
    /// No connection.
    Idle,
    /// Common channels.
    Fach,
    /// Dedicated channel.
    Dch,
    /// On the way from IDLE to DCH.
    #[strum(serialize = "idle-dch")]
    IdleToDch,
    /// On the way from FACH to DCH.
    #[strum(serialize = "fach-dch")]
    FachToDch,
}

impl State {
    /// As in the states table.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The state machine of one mobile.
#[derive(Clone, Debug, getset::CopyGetters)]
pub struct Rrc {
    /// Where it is.
    #[getset(get_copy = "pub")]
    state: State,
    deadline: Instant,
}

impl Rrc {
    /// In IDLE.
    pub fn new() -> Self {
        Rrc { state: State::Idle, deadline: Instant::FAR_FUTURE }
    }
    /// May blocks be sent?
    pub const fn can_send(&self) -> bool {
        matches!(self.state, State::Dch | State::Fach)
    }
    /// When to call `handle_timeout`.
    pub const fn next_timeout(&self) -> Instant {
        self.deadline
    }

    /// RLC has something to send in `direction`, whose buffer now holds `octets`. Yes if the state changed.
    pub fn on_data(&mut self, config: &RrcConfig, direction: Direction, octets: u64, now: Instant) -> bool {
        let (next, latency) = match self.state {
            State::Idle => (State::IdleToDch, config.idle_to_dch),
            State::Fach if octets > config.fach_threshold.get(direction).0 => {
                (State::FachToDch, config.fach_to_dch)
            }
            _ => return false,
        };
        (self.state, self.deadline) = (next, now + latency);
        true
    }

    /// Blocks were sent: the inactivity timer starts again.
    pub fn on_activity(&mut self, config: &RrcConfig, now: Instant) {
        match self.state {
            State::Dch => self.deadline = now + config.dch_inactivity,
            State::Fach => self.deadline = now + config.fach_inactivity,
            _ => {}
        }
    }

    /// The deadline has come. Yes if the state changed.
    pub fn handle_timeout(&mut self, config: &RrcConfig, now: Instant) -> bool {
        if now < self.deadline {
            return false;
        }
        (self.state, self.deadline) = match self.state {
            State::IdleToDch | State::FachToDch => (State::Dch, now + config.dch_inactivity),
            State::Dch => (State::Fach, now + config.fach_inactivity),
            State::Fach | State::Idle => (State::Idle, Instant::FAR_FUTURE),
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(tenths: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(100 * tenths)
    }

    #[test]
    fn a_packet_wakes_an_idle_mobile_which_falls_back_step_by_step() {
        let config = RrcConfig::default();
        let mut rrc = Rrc::new();
        let mut seen = vec![];
        assert!(rrc.on_data(&config, Direction::Uplink, 40, s(0)));
        assert!(!rrc.on_data(&config, Direction::Uplink, 80, s(1)), "already on the way");
        while rrc.next_timeout() != Instant::FAR_FUTURE {
            let now = rrc.next_timeout();
            assert!(rrc.handle_timeout(&config, now));
            seen.push((rrc.state(), now));
        }
        assert_eq!(seen, [(State::Dch, s(20)), (State::Fach, s(60)), (State::Idle, s(160))]);
    }

    #[test]
    fn blocks_keep_the_channel_and_little_data_stays_on_fach() {
        let config = RrcConfig::default();
        let mut rrc = Rrc::new();
        rrc.on_data(&config, Direction::Downlink, 1500, s(0));
        rrc.handle_timeout(&config, s(20));
        rrc.on_activity(&config, s(50));
        assert_eq!(rrc.next_timeout(), s(90));
        rrc.handle_timeout(&config, s(90));
        assert_eq!(rrc.state(), State::Fach);
        assert!(!rrc.on_data(&config, Direction::Downlink, 475, s(91)) && rrc.can_send());
        assert!(rrc.on_data(&config, Direction::Downlink, 476, s(92)) && !rrc.can_send());
        assert_eq!((rrc.state(), rrc.next_timeout()), (State::FachToDch, s(107)));
    }
}

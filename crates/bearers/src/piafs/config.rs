//! What a scenario says about a PIAFS circuit.

use airloom_base::units::{EachWay, Octets, Probability, QueueLimit, Rate};
use airloom_base::{ConfigError, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::tap::Line;
use crate::channel::{LossConfig, Per, Placed};

/// PHS circuit with PIAFS: frames of 640 bits in both directions, repeated until they arrive, and terminal adapters that
/// bring PPP frames from a serial line into them.
///
/// Several mobiles on one link have a circuit of their own each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(deny_unknown_fields, default)]
pub struct PiafsConfig {
    /// `"64kbit/s"` (a frame every 10 ms) or `"32kbit/s"` (every 20 ms); 58.4 and 29.2 kbit/s of them are the user's.
    #[default(Rate::kbit(64))]
    pub rate: Rate,
    /// From the beginning of a frame at 64 kbit/s until its receiver has acted on it. At 32 kbit/s frames take 10 ms longer.
    #[default(Duration::from_millis(25))]
    pub delay: Duration,
    /// Most frames under way, 1 to 63.
    #[default(16)]
    pub window: u8,
    /// After how long an unacknowledged frame is sent again; the round trip, in whole frames, if not given.
    pub repeat_after: Option<Duration>,
    /// Frames that arrive with a wrong checksum: a probability, or a table (see the loss processes).
    pub loss: LossConfig,
    /// The radio environment that the circuit is in, besides `loss`: `{ name = "street", unit = 0 }`. `[environments.street]` says what it is
    /// like.
    pub environment: Option<Placed>,
    /// Speed of the serial lines between hosts and terminal adapters, ten bits an octet. Without it they take no time.
    #[default(Rate::from_bits_per_second(115_200))]
    pub serial: Option<Rate>,
    /// Octets that a terminal adapter takes before it stops its host.
    #[default(Octets(4096))]
    pub buffer: Octets,
    /// Share of the PPP frames behind which the PIAFS frame is sent as it is, though the next PPP frame is there already.
    #[default(Probability::new(0.3).unwrap_or_default())]
    pub flush: Probability,
    /// Control characters that are escaped on the serial line: bit n stands for character n (RFC 1662, 7.1).
    pub accm: u32,
    /// Limit of the host's queue in front of the serial line. What does not fit is dropped.
    #[default(EachWay::both(QueueLimit::Packets(100)))]
    pub queue: EachWay<QueueLimit>,
    /// Time from the begin of a call until user data flows: call, synchronisation, negotiation. At the beginning of a run
    /// the call is there. Packets that come meanwhile wait.
    #[default(Duration::from_secs(2))]
    pub set_up: Duration,
    /// A call comes about if at least this share of the frames in the last second of `set_up` is intact, both ways. If not,
    /// the circuit stays without a call.
    #[default(Probability::new(0.5).unwrap_or_default())]
    pub set_up_intact: Probability,
    /// A best-effort circuit: at 64 kbit/s it falls to 32 by itself when frames fail, and tries 64 again later.
    pub best_effort: Option<BestEffort>,
    /// The call ends if one side hears no intact frame for so long.
    #[default(Duration::from_secs(8))]
    pub call_drop: Duration,
}

/// When a best-effort circuit changes its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(deny_unknown_fields, default)]
pub struct BestEffort {
    /// It falls to 32 kbit/s when one side has heard no intact frame for so long.
    #[default(Duration::from_millis(300))]
    pub fall_after: Duration,
    /// It tries 64 kbit/s again after so long at 32.
    #[default(Duration::from_secs(10))]
    pub return_after: Duration,
}

/// Times of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// From one frame to the next.
    pub slot: Duration,
    /// From the beginning of a frame until its receiver has acted on it.
    pub delay: Duration,
    /// After how long a frame is sent again.
    pub patience: Duration,
}

impl PiafsConfig {
    /// Looks for what makes no sense.
    pub(super) fn check(&self) -> Result<Times, ConfigError> {
        self.loss.check_radio(Per::Pdu)?;
        if !(1..=63).contains(&self.window) {
            return Err(ConfigError::at("window", "1 to 63 of the 127 numbers can be under way"));
        }
        if self.serial.is_some_and(|rate| rate.bits_per_second() < 1000) {
            return Err(ConfigError::at("serial", "a serial line has at least 1 kbit/s"));
        }
        ConfigError::when(self.buffer.0 == 0, "buffer", "a terminal adapter takes at least one octet")?;
        ConfigError::when(self.delay.is_zero(), "delay", "a frame takes time")?;
        ConfigError::when(self.call_drop.is_zero(), "call_drop", "a call lives longer than that")?;
        if self.best_effort.is_some_and(|of| of.fall_after.is_zero() || of.return_after.is_zero()) {
            return Err(ConfigError::at("best_effort", "a rate lasts for a while"));
        }
        self.times(self.rate).map_err(|why| ConfigError::at("rate", why))
    }

    /// The serial line and the adapter.
    pub(super) fn line(&self) -> Line {
        Line { rate: self.serial, buffer: self.buffer.0, accm: self.accm, flush: self.flush.get() }
    }

    /// The times at 64 kbit/s, or at 32.
    pub(super) fn times_of(&self, is_full: bool) -> Times {
        let more = Duration::from_millis(if is_full { 0 } else { 10 });
        let slot = Duration::from_millis(10) + more;
        let delay = self.delay + more;
        // What comes within a frame is answered in the next one, in both directions.
        let way = slot * delay.as_nanos().div_ceil(slot.as_nanos());
        Times { slot, delay, patience: self.repeat_after.unwrap_or(way * 2) }
    }

    /// The times at this rate; or which there are.
    pub(super) fn times(&self, rate: Rate) -> Result<Times, &'static str> {
        match rate.bits_per_second() {
            64_000 => Ok(self.times_of(true)),
            32_000 => Ok(self.times_of(false)),
            _ => Err("a PIAFS circuit has 64 or 32 kbit/s"),
        }
    }
}

//! What a scenario says about an EGPRS cell.

use airloom_base::units::{EachWay, QueueLimit};
use airloom_base::{ConfigError, Direction, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::coding_scheme::Mcs;
use super::grid::Grid;
use super::link_adaptation::{Adaptation, LinkAdaptation};
use super::radio::CiConfig;
use super::rlc::Rules;
use crate::channel::{LossConfig, Per};

/// EGPRS cell: RLC/MAC acknowledged mode in radio blocks of 20 ms on timeslots that several mobiles share.
///
/// What lies behind the cell (Gb, Gi, the Internet) are links of their own, such as `wireline`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(deny_unknown_fields, default)]
pub struct EgprsConfig {
    /// Modulation and coding scheme of new blocks, 1 to 9.
    #[default(EachWay::both(Mcs::ALL[3]))]
    pub mcs: EachWay<Mcs>,
    /// Scheme asked for when blocks are repeated; that of new blocks if not given. A block goes out with the nearest
    /// scheme of its family that carries it: MCS-4 again as MCS-1, for example, is cut into two halves (resegmentation).
    pub retransmission_mcs: Option<EachWay<Mcs>>,
    /// Timeslots of the cell for packet data, 1 to 8.
    #[default(4)]
    pub pdchs: u8,
    /// Timeslots a mobile can use (4+1 by default). Mobiles begin their uplink slots one after the other.
    #[default(EachWay { uplink: 1, downlink: 4 })]
    pub slots: EachWay<u8>,
    /// RLC window in blocks: 64 to 1024 in steps of 32, within what the slots allow (1: 192, 2: 256, 3: 384, 4: 512,
    /// 5: 640, 6: 768, 7: 896, 8: 1024).
    #[default(EachWay { uplink: 192, downlink: 384 })]
    pub window: EachWay<u16>,
    /// `"uniform"`: a block every 20 ms (default); `"multiframe"`: the 52-multiframe, 12 blocks of 18.46 ms in 240 ms.
    pub grid: Grid,
    /// What happens to blocks: a probability, or a table (see the loss processes). `per` is `"pdu"` (default: each
    /// RLC data block and each control block on its own) or `"fec-frame"` (all blocks of a mobile in a block period).
    pub loss: LossConfig,
    /// Block errors from a trace of the carrier-to-interference ratio, besides `loss`.
    pub ci: Option<CiConfig>,
    /// The coding scheme follows the channel that `ci` describes; `mcs` is that at the beginning of a flow. Not given: it does
    /// not change.
    pub link_adaptation: Option<LinkAdaptation>,
    /// Incremental redundancy: each repetition multiplies a block's error probability by this. 1 (default): none.
    #[default(1.0)]
    pub incremental_redundancy: f64,
    /// From the end of a block on the air until the other end has acted upon it: downlink in the mobile (at most
    /// 36 ms, or it could not answer a poll in time), uplink on the way to the packet control unit.
    #[default(EachWay { uplink: Duration::from_millis(20), downlink: Duration::ZERO })]
    pub processing: EachWay<Duration>,
    /// Limit of the buffer in front of RLC: packets that are not yet wholly in blocks. What does not fit is dropped.
    #[default(EachWay::both(QueueLimit::Packets(100)))]
    pub queue: EachWay<QueueLimit>,
    /// Largest information field of an LLC frame, 140 to 1520 octets; longer packets are cut by SNDCP into at most 16
    /// segments, which have to be enough for the link's `mtu`.
    #[default(1520)]
    pub n201_u: u16,
    /// The network polls after so many downlink blocks, and with the last one.
    #[default(20)]
    pub poll_every: u16,
    /// The network acknowledges after so many uplink blocks, and at the end.
    #[default(16)]
    pub uplink_ack_every: u16,
    /// BS_CV_MAX: the countdown begins with so many blocks left, and a mobile does not repeat what it sent so many
    /// block periods before a report, or later.
    #[default(6)]
    pub bs_cv_max: u8,
    /// Repeat downlink blocks that are not acknowledged yet when there is nothing else to send (pre-emptive
    /// transmission). Mobiles always do.
    #[default(true)]
    pub pre_emptive: bool,
    /// May reports use compressed bitmaps?
    #[default(true)]
    pub compressed_bitmap: bool,
    /// Reports tell of the whole window, whatever a control block has room for. Captures show what would have fit.
    pub ideal_bitmap: bool,
    /// Priorities of packets by the SCTP stream of their first user data, 0 first: of streams 0, 1, ..., the last also of all
    /// beyond. Packets that carry none of it go first. RLC takes a packet of a smaller number before those that wait.
    /// Nothing (default): in the order they came.
    pub stream_priorities: Vec<u8>,
    /// Transmissions of a block after which it is given up, and with it the packet; 0 (default): never.
    pub max_tx: u8,
    /// With `max_tx`: the receiver gives up a missing block so long after it noticed the gap, the sender one of which
    /// no report tells so long after its last transmission.
    #[default(Duration::from_secs(1))]
    pub transfer_time: Duration,
    /// Polls without answer one after the other after which the network releases the flow and what was sent is lost
    /// (N3105max); 0 (default): never.
    pub n3105: u8,
    /// `"always"`: flows exist all the time; or a table of times.
    #[default(Tbf::Dynamic(TbfConfig::default()))]
    pub tbf: Tbf,
}

/// Temporary block flows: always there, or set up when there is something to send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Tbf {
    /// Always there.
    Always(Always),
    /// Set up and released.
    Dynamic(TbfConfig),
}

/// The word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Always {
    /// Flows exist all the time.
    Always,
}

/// Times of temporary block flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(deny_unknown_fields, default)]
pub struct TbfConfig {
    /// Set-up from idle: access on the common channels, assignment.
    #[default(EachWay::both(Duration::from_millis(200)))]
    pub setup: EachWay<Duration>,
    /// Set-up while the other direction's flow exists, or soon after this one's end: on the flow's own control channel.
    #[default(EachWay::both(Duration::from_millis(80)))]
    pub setup_associated: EachWay<Duration>,
    /// How long a flow without data is kept: downlink delayed release, uplink extended flow. `0s`: it ends as soon as
    /// everything is acknowledged.
    #[default(EachWay { uplink: Duration::from_secs(1), downlink: Duration::from_millis(1500) })]
    pub hold: EachWay<Duration>,
    /// T3192: after the end of its downlink flow a mobile listens on for so long.
    #[default(Duration::from_millis(1500))]
    pub t3192: Duration,
}

/// Largest window by number of timeslots (TS 44.060 table 9.1.9.2.1).
const LARGEST_WINDOW: [u16; 8] = [192, 256, 384, 512, 640, 768, 896, 1024];

impl EgprsConfig {
    /// Octets of the longest packet that SNDCP can cut: its segments are numbered 0 to 15 (TS 44.065, 6.7).
    pub(super) fn longest_packet(&self) -> u32 {
        let n201_u = u32::from(self.n201_u);
        (n201_u - 4) + 15 * (n201_u - 3)
    }

    /// What is lost at once; or what is wrong with the keys.
    pub(super) fn check(&self) -> Result<Per, ConfigError> {
        let bad = |key: &str, message: String| Err(ConfigError::at(key, message));
        if !(1..=8).contains(&self.pdchs) {
            return bad("pdchs", "a cell has 1 to 8 timeslots for packet data".to_owned());
        }
        for direction in Direction::BOTH {
            let (slots, window) = (self.slots.get(direction), self.window.get(direction));
            if slots == 0 || slots > self.pdchs {
                let message = format!("{}: 1 to {} `slots` (of `pdchs`)", direction.name(), self.pdchs);
                return bad("slots", message);
            }
            let largest = LARGEST_WINDOW[usize::from(slots) - 1];
            if !(64..=largest).contains(&window) || !window.is_multiple_of(32) {
                let message = format!(
                    "{}: with {slots} timeslot(s) a window has 64 to {largest} blocks, in steps of 32",
                    direction.name()
                );
                return bad("window", message);
            }
            let (new, again) = (self.mcs.get(direction), self.mcs_of_retransmissions(direction));
            if new.family() != again.family() {
                let message = format!("{}: {again} is not of the family of {new}", direction.name());
                return bad("retransmission_mcs", message);
            }
        }
        if !(0.0..=1.0).contains(&self.incremental_redundancy) {
            return bad("incremental_redundancy", "a factor from 0 to 1".to_owned());
        }
        if self.processing.downlink > Duration::from_millis(36) {
            return bad("processing", "downlink: at most 36ms, or no poll is answered in time".to_owned());
        }
        if self.processing.uplink > Duration::from_secs(10) {
            return bad("processing", "uplink: at most 10s".to_owned());
        }
        if !(140..=1520).contains(&self.n201_u) {
            return bad("n201_u", "140 to 1520 octets".to_owned());
        }
        if self.poll_every == 0 || self.uplink_ack_every == 0 {
            let key = if self.poll_every == 0 { "poll_every" } else { "uplink_ack_every" };
            return bad(key, "at least 1".to_owned());
        }
        if self.bs_cv_max > 15 {
            return bad("bs_cv_max", "0 to 15".to_owned());
        }
        if let Some(ci) = &self.ci {
            ci.check()?;
        }
        if let Some(adaptation) = &self.link_adaptation {
            adaptation.check()?;
            if self.ci.is_none() {
                return bad(
                    "link_adaptation",
                    "measures the ratio that `ci` describes: give `ci`, too".to_owned(),
                );
            }
            if self.retransmission_mcs.is_some() {
                let message = "with `link_adaptation` repeated blocks take the scheme in force";
                return bad("retransmission_mcs", message.to_owned());
            }
        }
        self.loss.check_radio(Per::Pdu)
    }

    fn mcs_of_retransmissions(&self, direction: Direction) -> Mcs {
        self.retransmission_mcs.map_or(self.mcs.get(direction), |again| again.get(direction))
    }

    /// The sender's rules.
    pub(super) fn rules(&self, direction: Direction) -> Rules {
        Rules {
            mcs: self.mcs.get(direction),
            again: self.mcs_of_retransmissions(direction),
            resegment: self.link_adaptation.as_ref().is_none_or(|adaptation| adaptation.resegment),
            window: self.window.get(direction),
            max_tx: self.max_tx,
            patience: self.patience(),
        }
    }

    /// `transfer_time` in block periods.
    pub(super) const fn patience(&self) -> u64 {
        self.transfer_time.as_nanos().div_ceil(Grid::MEAN_PERIOD.as_nanos())
    }

    /// What changes the scheme, if anything does.
    pub(super) fn adaptation(&self) -> Option<Adaptation> {
        Some(Adaptation::new(self.link_adaptation.as_ref()?, self.ci.as_ref()?))
    }

    /// Times of flows, unless they are always there.
    pub(super) const fn times(&self) -> Option<&TbfConfig> {
        match &self.tbf {
            Tbf::Always(_) => None,
            Tbf::Dynamic(times) => Some(times),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(value: serde_json::Value) -> String {
        match airloom_base::config::read::<EgprsConfig>(&value) {
            Ok(config) => config.check().expect_err("an error").to_string(),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn the_defaults_are_possible_and_can_be_written_and_read() {
        for value in [json!({}), json!({ "tbf": "always", "ci": { "trace": [[0, 20], [1, 9.5]] } })] {
            let config: EgprsConfig = airloom_base::config::read(&value).unwrap();
            assert_eq!(config.check(), Ok(Per::Pdu));
            let again = airloom_base::config::read(&serde_json::to_value(&config).unwrap()).unwrap();
            assert_eq!(config, again);
        }
    }

    #[test]
    fn wrong_values_say_what_would_be_right() {
        assert!(error(json!({ "mcs": 10 })).contains("there is no MCS-10; valid: 1 to 9"));
        assert!(error(json!({ "window": 384 })).contains("with 1 timeslot(s) a window has 64 to 192"));
        assert!(error(json!({ "window": { "uplink": 64, "downlink": 100 } })).contains("in steps of 32"));
        assert!(
            error(json!({ "slots": { "uplink": 1, "downlink": 5 } })).contains("downlink: 1 to 4 `slots`")
        );
        assert!(error(json!({ "retransmission_mcs": 3 })).contains("MCS-3 is not of the family of MCS-4"));
        assert!(error(json!({ "processing": "50ms" })).contains("at most 36ms"));
        assert!(error(json!({ "loss": 1.1 })).contains("1.1 is not a probability"));
        assert!(error(json!({ "ci": { "trace": [] } })).contains("ci.trace"));
        let ci = json!({ "trace": [[0, 20]] });
        assert!(error(json!({ "link_adaptation": {} })).contains("give `ci`, too"));
        let both = json!({ "link_adaptation": {}, "ci": ci, "retransmission_mcs": 4 });
        assert!(error(both).contains("repeated blocks take the scheme in force"));
        let turned = json!({ "link_adaptation": { "lowest": 5, "highest": 4 }, "ci": ci });
        assert!(error(turned).contains("MCS-5 is faster than the highest, MCS-4"));
        let never = json!({ "link_adaptation": { "forgetting": 0 }, "ci": ci });
        assert!(error(never).contains("a number above 0"));
    }

    #[test]
    fn patience_is_the_transfer_time_on_both_grids() {
        for grid in ["uniform", "multiframe"] {
            let value = json!({ "grid": grid, "transfer_time": "2400ms" });
            let config: EgprsConfig = airloom_base::config::read(&value).unwrap();
            let patience = config.rules(Direction::Downlink).patience;
            assert_eq!(config.grid.start(patience).as_nanos(), config.transfer_time.as_nanos(), "{grid}");
        }
    }
}

//! What a scenario says about a dedicated channel.

use airloom_base::units::{EachWay, QueueLimit, Rate};
use airloom_base::{ConfigError, Direction, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::dch::{LONGEST_TTI, TransportFormat};
use super::rlc::am::{AmConfig, Format};
use super::rrc::RrcConfig;
use crate::channel::{LossConfig, Per};

/// UMTS dedicated channel: RLC acknowledged mode over transport blocks on a time grid, and the core network behind it.
///
/// Several mobiles on one link have a channel of their own each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(deny_unknown_fields, default)]
pub struct UmtsDchConfig {
    /// RLC payload rate: 8, 16, 32, 64, 128, 144, 256 or 384 kbit/s; others only with a `tti` of your own.
    #[default(EachWay { uplink: Rate::kbit(64), downlink: Rate::kbit(384) })]
    pub rate: EachWay<Rate>,
    /// Transmission time interval; the reference bearer's if not given (10 ms for 384, 40 ms for 8, else 20 ms).
    pub tti: Option<EachWay<Duration>>,
    /// How much later than the downlink's intervals those of the uplink begin, as RLC sees them. In a network the
    /// intervals of both directions are aligned on the air, but the RNC submits a set ahead of its interval by the
    /// delay of the Iub and some slack: that lead, less whole uplink intervals, is the offset. With `0s` (default) and
    /// delays that are multiples of the TTI a block lands exactly when an interval of the other direction begins and
    /// is answered in it, which makes the RLC round trip up to one downlink TTI shorter than between those moments.
    pub uplink_offset: Duration,
    /// What happens to blocks: a probability, or a table (see the loss processes). `per` is `"pdu"` (default: each
    /// block on its own) or `"fec-frame"` (all blocks of a TTI together).
    pub loss: LossConfig,
    /// One-way delay between mobile and RNC besides the TTI: processing, Node B, Iub.
    #[default(Duration::from_millis(30))]
    pub radio_delay: Duration,
    /// One-way delay between RNC and the far end of the link: Iu, SGSN, GGSN.
    #[default(Duration::from_millis(20))]
    pub core_delay: Duration,
    /// Limit of the RLC buffer: packets that are not yet wholly in PDUs. What does not fit is dropped.
    #[default(EachWay::both(QueueLimit::Packets(100)))]
    pub queue: EachWay<QueueLimit>,
    /// Octets of a PDU: header and payload of one transport block (42 = 336 bits).
    #[default(42)]
    pub pdu_octets: u16,
    /// Acknowledged mode.
    pub rlc: AmConfig,
    /// Channel switching between IDLE, FACH and DCH; without it every mobile always has its DCH.
    pub rrc: Option<RrcConfig>,
}

/// The size of a PDU, of which everything else follows.
pub(super) fn check_pdu(octets: u16) -> Result<(), ConfigError> {
    if !(12..=625).contains(&octets) {
        return Err(ConfigError::at("pdu_octets", "a PDU has 12 to 625 octets (42 for 336-bit blocks)"));
    }
    Ok(())
}

impl UmtsDchConfig {
    /// What the keys come to: transport formats, block format and unit of loss; or what is wrong.
    pub fn resolve(&self) -> Result<Resolved, ConfigError> {
        check_pdu(self.pdu_octets)?;
        self.rlc.check()?;
        let per = self.loss.check_radio(Per::Pdu)?;
        let transport = [self.transport(Direction::Uplink)?, self.transport(Direction::Downlink)?];
        if let Some(rrc) = &self.rrc {
            // Rates may change later.
            rrc.check(transport.iter().fold(LONGEST_TTI, |longest, format| longest.max(format.tti)))?;
        }
        Ok(Resolved { format: Format::new(self.pdu_octets, self.rlc.special_he), transport, per })
    }

    fn transport(&self, direction: Direction) -> Result<TransportFormat, ConfigError> {
        self.format_of(direction, self.rate.get(direction))
            .map_err(|e| ConfigError::at("rate", format!("{}: {e}", direction.name())))
    }

    /// The dedicated channel's format at `rate`; the error says which rates are possible.
    pub(super) fn format_of(&self, direction: Direction, rate: Rate) -> Result<TransportFormat, String> {
        let tti = self.tti.map(|tti| tti.get(direction));
        let format = TransportFormat::new(rate, tti, self.pdu_octets)?;
        Ok(format.with_offset(self.offset_of(direction)))
    }

    /// When the grid of `direction` begins.
    pub(super) fn offset_of(&self, direction: Direction) -> Duration {
        match direction {
            Direction::Uplink => self.uplink_offset,
            Direction::Downlink => Duration::ZERO,
        }
    }
}

/// A checked configuration.
pub struct Resolved {
    pub format: Format,
    /// By direction.
    pub transport: [TransportFormat; 2],
    pub per: Per,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(value: serde_json::Value) -> String {
        match airloom_base::config::read::<UmtsDchConfig>(&value) {
            Ok(config) => config.resolve().err().expect("an error").to_string(),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn the_defaults_are_possible_and_can_be_written_and_read() {
        let config = UmtsDchConfig::default();
        assert!(config.resolve().is_ok());
        let again = airloom_base::config::read(&serde_json::to_value(&config).unwrap()).unwrap();
        assert_eq!(config, again);
    }

    #[test]
    fn wrong_values_say_what_would_be_right() {
        assert!(error(json!({ "rate": "100kbit/s" })).starts_with("rate: uplink: `100kbit/s` is no rate"));
        assert!(error(json!({ "tti": "1ms" })).ends_with("every 1ms (`rate`, `tti`)"));
        assert!(error(json!({ "rate": "-1kbit/s" })).contains("negative"));
        assert!(error(json!({ "loss": 1.1 })).contains("1.1 is not a probability"));
        assert!(error(json!({ "loss": { "per": "packet" } })).starts_with("loss.per: radio loses blocks"));
        assert!(error(json!({ "pdu_octets": 4 })).contains("12 to 625"));
        for timer in ["timer_poll_periodic", "timer_status_periodic"] {
            assert!(error(json!({ "rlc": { timer: "1us" } })).contains("0 (off), or at least 1ms"));
        }
        assert!(error(json!({ "rlc": { "window": 0 } })).starts_with("rlc.window: a window has 1 to 4095"));
        assert!(error(json!({ "rlc": { "windw": 9 } })).contains("unknown field `windw`"));
        assert!(error(json!({ "rlc": { "discard": "never" } })).contains("`no-discard`, `timer`, `max-dat`"));
        for rlc in [
            json!({ "timer_poll": "0s" }),
            // Reports that come by themselves tell nothing of a last PDU that was lost, and end when nothing is missing.
            json!({ "timer_poll": "0s", "timer_status_periodic": "100ms" }),
            // Nothing polls when the window closes within an SDU.
            json!({ "last_pdu_poll": false, "window": 8 }),
            json!({ "last_pdu_poll": false, "poll_sdu": 0, "timer_status_periodic": "100ms" }),
        ] {
            let message = error(json!({ "rlc": rlc }));
            assert!(message.starts_with("rlc.") && message.contains("stops the link"), "{rlc}: {message}");
        }
        let periodic = json!({ "timer_poll": "0s", "last_pdu_poll": false, "timer_poll_periodic": "300ms" });
        let config = json!({ "rlc": periodic });
        assert!(airloom_base::config::read::<UmtsDchConfig>(&config).unwrap().resolve().is_ok());
        let rrc = |ms: &str| json!({ "rate": "8kbit/s", "rrc": { "dch_inactivity": ms } });
        assert_eq!(error(rrc("0s")), "rrc.dch_inactivity: at least 40ms, an interval of the channel");
        assert!(error(rrc("39ms")).starts_with("rrc.dch_inactivity"));
        assert!(airloom_base::config::read::<UmtsDchConfig>(&rrc("40ms")).unwrap().resolve().is_ok());
    }
}

//! What a scenario says about an HSDPA cell.

use airloom_base::units::{EachWay, QueueLimit, Rate};
use airloom_base::{ConfigError, Direction, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::super::config::{Resolved, UmtsDchConfig, check_pdu};
use super::super::dch::TransportFormat;
use super::super::rlc::am::AmConfig;
use super::radio::{Category, Formats};
use super::{ALLOCATION, TTI};
use crate::channel::LossConfig;
use crate::channel::environment::{Fading, Law, Shared};

/// UMTS with HSDPA: a downlink of 2 ms intervals that all mobiles of the cell share, dedicated uplinks, RLC acknowledged
/// mode, and the core network behind them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(deny_unknown_fields, default)]
pub struct UmtsHsdpaConfig {
    /// HS-DSCH category of the mobiles, 1 to 12: 6 for 3.6 Mbit/s in five codes (default), 8 for 7.2, 10 for 14.4, 12 for
    /// 1.8 Mbit/s. Categories 1 to 4 and 11 are not served in every interval.
    #[default(6)]
    pub category: u8,
    /// Mean signal-to-noise ratio of the HS-PDSCH in dB: a number, or one for each mobile in the order of `between`. 0 dB
    /// lets a mobile report CQI 16, each decibel more one more.
    #[default(PerMobile::All(0.0))]
    pub snr: PerMobile,
    /// Fading around it, of each mobile on its own; none if not given.
    pub fading: Option<HsFading>,
    /// Who is served: `"round-robin"` (default), `"proportional-fair"` or `"max-ci"` (always the best).
    #[default(Scheduling::RoundRobin)]
    pub scheduler: Scheduling,
    /// Time over which `"proportional-fair"` averages what a mobile got.
    #[default(Duration::from_secs(1))]
    pub fairness_time: Duration,
    /// HARQ processes of a mobile, 1 to 8; six fill the round trip of 12 ms.
    #[default(6)]
    pub harq_processes: u8,
    /// So many transmissions of a transport block, 1 to 16, then it is left to RLC.
    #[default(4)]
    pub max_transmissions: u8,
    /// Age of the channel quality that a block is made by: measured, reported, processed.
    #[default(Duration::from_millis(6))]
    pub cqi_delay: Duration,
    /// T1: how long a mobile waits for a missing block before it hands on what came after it.
    #[default(Duration::from_millis(100))]
    pub reordering_timer: Duration,
    /// How much the Node B asks the RNC for: what the mobile's share of the channel takes so long to send. Its queue is full
    /// with it; less than two `iub_delay` and some 15 ms leaves intervals empty.
    #[default(Duration::from_millis(60))]
    pub node_b_buffer: Duration,
    /// One-way delay between RNC and Node B.
    #[default(Duration::from_millis(10))]
    pub iub_delay: Duration,
    /// RLC payload rate of a mobile's uplink, a dedicated channel: 32, 64, 128, 256 or 384 kbit/s; 8, 16 and 144 too
    /// with `pdu_octets = 42`, others with an `uplink_tti`.
    #[default(UmtsDchConfig::default().rate.uplink)]
    pub uplink_rate: Rate,
    /// Transmission time interval of the uplink; the reference bearer's if not given.
    pub uplink_tti: Option<Duration>,
    /// What happens to blocks of the uplink: a probability, or a table (see the loss processes).
    pub uplink_loss: LossConfig,
    /// One-way delay of the uplink between mobile and RNC besides the TTI: processing, Node B, Iub.
    #[default(UmtsDchConfig::default().radio_delay)]
    pub radio_delay: Duration,
    /// One-way delay between RNC and the far end of the link: Iu, SGSN, GGSN.
    #[default(UmtsDchConfig::default().core_delay)]
    pub core_delay: Duration,
    /// Limit of the RLC buffer: packets that are not yet wholly in PDUs. What does not fit is dropped.
    #[default(UmtsDchConfig::default().queue)]
    pub queue: EachWay<QueueLimit>,
    /// Octets of a PDU of RLC: header and payload (82 = 656 bits; 42 = 336 bits reaches mobiles with a channel quality
    /// from 5 on, 82 from 8 on).
    #[default(82)]
    pub pdu_octets: u16,
    /// Acknowledged mode. The window has to hold what is under way: 1024 PDUs of 82 octets are enough for 14.4 Mbit/s in
    /// 45 ms only.
    #[default(UmtsDchConfig::default().rlc)]
    pub rlc: AmConfig,
}

/// A value of all mobiles, or of each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PerMobile {
    /// The same of all.
    All(f64),
    /// In the order of the link's ends.
    Each(Vec<f64>),
}

impl PerMobile {
    /// That of mobile `index`.
    pub fn of(&self, index: usize) -> f64 {
        match self {
            PerMobile::All(value) => *value,
            PerMobile::Each(values) => values.get(index).copied().unwrap_or_default(),
        }
    }
}

/// Fading by many paths. The mean power stays.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(deny_unknown_fields, default)]
pub struct HsFading {
    /// `"rayleigh"` (default), or `{ rician = 10 }` with the factor in dB.
    #[default(Law::Rayleigh)]
    pub law: Law,
    /// Largest Doppler shift, Hz: 6 at 2.1 GHz and 3 km/h (default), 100 at 50 km/h.
    #[default(6.0)]
    pub doppler: f64,
}

impl HsFading {
    pub(super) fn fading(&self) -> Fading {
        Fading { law: self.law, doppler: self.doppler, shared: Shared::Circuit }
    }
}

/// Which of those that could be served is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// Who was served longest ago.
    RoundRobin,
    /// Whose channel is best beside what it got of late.
    ProportionalFair,
    /// Whose channel is best.
    MaxCi,
}

impl UmtsHsdpaConfig {
    /// The formats of the category; or what is wrong.
    pub(super) fn check(&self, mobiles: usize) -> Result<(Category, Formats), ConfigError> {
        let at = |key: &str, message: &str| Err(ConfigError::at(key, message.to_owned()));
        check_pdu(self.pdu_octets)?;
        let Some(category) = Category::new(self.category) else {
            return at("category", "an HS-DSCH category is 1 to 12");
        };
        let Some(formats) = Formats::new(category, self.pdu_octets) else {
            return at("pdu_octets", "no transport block of this category holds such a PDU");
        };
        let snr = match &self.snr {
            PerMobile::All(one) => std::slice::from_ref(one),
            PerMobile::Each(values) if values.len() != mobiles => {
                let message =
                    format!("a number, or one for each of the {mobiles} mobiles: there are {}", values.len());
                return at("snr", &message);
            }
            PerMobile::Each(values) => &values[..],
        };
        if !snr.iter().all(|db| db.is_finite() && db.abs() <= 100.0) {
            return at("snr", "a ratio in dB from -100 to 100");
        }
        if let Some(fading) = &self.fading {
            let factor = if let Law::Rician(db) = fading.law { db } else { 0.0 };
            if !(0.0..=1000.0).contains(&fading.doppler) || !(-100.0..=100.0).contains(&factor) {
                return at("fading", "a Doppler shift is 0 to 1000 Hz, a Rice factor -100 to 100 dB");
            }
        }
        if !(1..=8).contains(&self.harq_processes) {
            return at("harq_processes", "a mobile has 1 to 8");
        }
        if !(1..=16).contains(&self.max_transmissions) {
            return at("max_transmissions", "1 to 16");
        }
        if self.node_b_buffer < TTI || self.node_b_buffer > Duration::from_secs(10) {
            return at("node_b_buffer", "from one interval, 2ms, to 10s");
        }
        if self.fairness_time < TTI {
            return at("fairness_time", "at least one interval, 2ms");
        }
        Ok((category, formats))
    }

    /// What it has in common with a dedicated channel: the uplink, the core network, RLC; with the nominal rate of the
    /// downlink, whose format is that of the Iub.
    pub fn dch(&self, downlink: Rate) -> Result<(UmtsDchConfig, Resolved), ConfigError> {
        let mut dch = UmtsDchConfig {
            rate: EachWay::both(self.uplink_rate),
            tti: self.uplink_tti.map(EachWay::both),
            uplink_offset: Duration::ZERO,
            loss: self.uplink_loss.clone(),
            radio_delay: self.radio_delay,
            core_delay: self.core_delay,
            queue: self.queue,
            pdu_octets: self.pdu_octets,
            rlc: self.rlc.clone(),
            rrc: None,
        };
        let mut resolved = dch.resolve().map_err(|mut error| {
            if let Some(key) = error.path.first_mut()
                && matches!(key.as_str(), "rate" | "tti" | "loss")
            {
                key.insert_str(0, "uplink_");
                error.message =
                    error.message.replace("`rate`, `tti`", "`uplink_rate`, `uplink_tti`, `pdu_octets`");
            }
            error
        })?;
        dch.rate.downlink = downlink;
        resolved.transport[Direction::Downlink as usize] =
            TransportFormat { tti: ALLOCATION, blocks: u16::MAX, offset: Duration::ZERO };
        Ok((dch, resolved))
    }
}

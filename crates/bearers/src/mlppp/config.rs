//! What a scenario says about a bundle.

use airloom_base::units::{EachWay, Octets, QueueLimit};
use airloom_base::{ConfigError, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use smart_default::SmartDefault;

use super::header::Format;
use super::reassembly::Limits;
use crate::nested::Nested;
use crate::ppp::frame::Compression;
use crate::ppp::lcp::{DEFAULT_MRU, LEAST_MRRU, LinkOptions};

/// Members that a bundle can have.
const MOST_MEMBERS: usize = 64;

/// How packets are cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fragments {
    /// Into as many equal pieces as members are free.
    #[default]
    Equal,
    /// Into a piece for each free member, by its weight.
    Proportional,
    /// Not at all: each packet goes to the member that is through with it first.
    Whole,
    /// Into pieces of this size, each to the member that is through with it first.
    Fixed(Octets),
}

/// PPP Multilink (RFC 1990): several links of any kind carry the pieces of packets as one.
///
/// Members are set up and released one by one by the timeline (`target = "bundle.member.3"`): PPP negotiates with each that
/// comes, and loses what is on its way on one that goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(deny_unknown_fields, default)]
pub struct MlpppConfig {
    /// The links that are bundled: names of bearers, or tables with one name, such as `{ piafs = { loss = 0.02 } }`.
    // Six PHS circuits.
    #[default(Nested::new("piafs", &Value::Object(Map::new())).into_iter().collect())]
    pub members: Vec<Nested>,
    /// The list of members stands for so many times itself.
    #[default(6)]
    pub copies: u16,
    /// How packets are cut: `"equal"`, `"proportional"`, `"whole"` or `{ fixed = "256B" }`.
    pub fragments: Fragments,
    /// Shares of the bundle's rate, one for each member of the list: for fragments that are not equal. All alike, if empty.
    pub weights: Vec<u32>,
    /// Fewest octets of a fragment where packets are cut to equal or proportional pieces.
    #[default(Octets(64))]
    pub least_fragment: Octets,
    /// The member with the largest share takes fragments while no more than this waits in it, others in proportion. While
    /// fewer than half of the members do, packets wait.
    #[default(Octets(4096))]
    pub ahead: Octets,
    /// Fragments with 12 bits of number instead of 24.
    pub short_sequence: bool,
    /// Address and control field are left out (RFC 1661, 6.6).
    pub acfc: bool,
    /// The protocol field has one octet where that is enough (RFC 1661, 6.5).
    pub pfc: bool,
    /// Control characters that both ends ask to have escaped. The escaping is done by members with serial lines, as their own
    /// `accm` says.
    pub accm: u32,
    /// Largest packet: the MRRU that both ends offer, 1500 octets or more; the link's `mtu` where that is larger.
    #[default(Octets(u64::from(LEAST_MRRU)))]
    pub mrru: Octets,
    /// Members that fall idle get an empty fragment (RFC 1990, 4.1), so that a lost one is noticed sooner.
    pub null_fragments: bool,
    /// From the loss of a member until both ends know of it. What is sent over it meanwhile is lost.
    #[default(Duration::from_secs(1))]
    pub detect: Duration,
    /// How long the receiver waits for a fragment when nothing tells that it is lost.
    #[default(Duration::from_secs(5))]
    pub reassembly_timeout: Duration,
    /// Octets that the receiver keeps while it waits.
    #[default(Octets(65_536))]
    pub reassembly_buffer: Octets,
    /// Limit of the queue in front of the bundle. What does not fit is dropped.
    #[default(EachWay::both(QueueLimit::Packets(100)))]
    pub queue: EachWay<QueueLimit>,
}

impl MlpppConfig {
    /// Looks for what makes no sense.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let count = self.members.len() * usize::from(self.copies);
        ConfigError::when(count == 0, "members", "a bundle has at least one member")?;
        if count > MOST_MEMBERS {
            return Err(ConfigError::at("copies", format!("{count} members; {MOST_MEMBERS} are the most")));
        }
        if !self.weights.is_empty() && self.weights.len() != self.members.len() {
            let message = format!("one for each of the {} in `members`", self.members.len());
            return Err(ConfigError::at("weights", message));
        }
        ConfigError::when(self.weights.contains(&0), "weights", "a member without any share is none")?;
        if self.fragments == Fragments::Fixed(Octets(0)) {
            return Err(ConfigError::at("fragments", "pieces have at least one octet"));
        }
        if !(u64::from(LEAST_MRRU)..=u64::from(u16::MAX)).contains(&self.mrru.0) {
            return Err(ConfigError::at("mrru", format!("{LEAST_MRRU} to {} octets", u16::MAX)));
        }
        if self.reassembly_buffer.0 < self.mrru.0 {
            return Err(ConfigError::at("reassembly_buffer", "the largest packet has to fit in"));
        }
        ConfigError::when(self.reassembly_timeout.is_zero(), "reassembly_timeout", "fragments take time")?;
        Ok(())
    }

    /// The share of a member.
    pub(super) fn weight(&self, member: u16) -> u32 {
        let place = usize::from(member) % self.members.len().max(1);
        self.weights.get(place).copied().unwrap_or(1)
    }

    pub(super) fn format(&self) -> Format {
        if self.short_sequence { Format::Short } else { Format::Long }
    }

    /// What the end with this name asks for.
    pub(super) fn options(&self, end: &str) -> LinkOptions {
        let mrru = self.mrru.0.min(u64::from(u16::MAX)) as u16;
        LinkOptions {
            accm: self.accm,
            compression: Compression { address_control: self.acfc, protocol: self.pfc },
            mrru: Some(mrru),
            short_sequence: self.short_sequence,
            // A locally assigned address (class 1).
            discriminator: [&[1], end.as_bytes()].concat(),
            // Nobody has to ask for the usual one. A larger packet has to fit into one fragment: with its protocol
            // field behind the header of the long format.
            mru: if self.mrru.0 > u64::from(DEFAULT_MRU) { mrru.saturating_add(6) } else { DEFAULT_MRU },
        }
    }

    pub(super) fn limits(&self) -> Limits {
        // The protocol field is not counted in the MRRU (RFC 1990, 5.1.1).
        let packet = self.mrru.0 + 2;
        let octets = self.reassembly_buffer.0.max(packet);
        let least = match self.fragments {
            Fragments::Fixed(size) => size.0.clamp(1, 16),
            _ => 16,
        };
        Limits {
            octets,
            // None carries less than its protocol field, but those of a foreign sender may be empty.
            fragments: usize::try_from(octets.div_ceil(least)).unwrap_or(usize::MAX),
            packet,
            patience: self.reassembly_timeout,
        }
    }
}

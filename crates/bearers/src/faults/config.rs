//! The `faults` key of a link.

use std::collections::BTreeSet;

use airloom_base::units::{EachWay, Probability};
use airloom_base::{ConfigError, Direction, Duration, Instant};
use airloom_wire::ip::protocol;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::disorder::{self, Disorder};
use super::nat::Nat;

/// Numbers in a drop list of one direction.
const MOST_LISTED: usize = 100_000;

/// What goes wrong on a link, whatever its bearer. Faults strike where datagrams leave the link, so that what is lost has
/// used it. They are numbered there from 1, by direction and station.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// Only datagrams of this protocol are numbered and struck by `drop_list`, `drop` and `corrupt`. Without it: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Only>,
    /// Datagrams of more octets vanish, and nobody is told (an MTU black hole, RFC 2923 2.1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<EachWay<u16>>,
    /// Times in which everything vanishes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blackhole: Option<Blackhole>,
    /// Exactly these datagrams vanish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop_list: Option<DropList>,
    /// A share of the datagrams vanishes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop: Option<Strikes>,
    /// In a share of the datagrams one octet is another: one of the first 50 behind the header of the transport. Checksums
    /// agree with it, so that programs see it (an octet that a checksum finds is a loss: see `drop`). A datagram without
    /// such octets, and QUIC's Version Negotiation, which no receiver could tell from a forged one, stay as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<Strikes>,
    /// Datagrams that arrive twice; the copy comes directly behind its original, or `delay` after it would have arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplication: Option<Disorder>,
    /// Datagrams that arrive `delay` late, so that those behind them overtake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordering: Option<Disorder>,
    /// The far end of the link is a network address translator that forgets its bindings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nat: Option<Nat>,
}

/// A protocol over IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Only {
    /// UDP, and QUIC with it.
    Udp,
    /// TCP.
    Tcp,
    /// SCTP.
    Sctp,
}

impl Only {
    pub(super) fn number(self) -> u8 {
        match self {
            Only::Udp => protocol::UDP,
            Only::Tcp => protocol::TCP,
            Only::Sctp => protocol::SCTP,
        }
    }
}

/// Which directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Both.
    #[default]
    Both,
    /// From the near to the far end.
    Uplink,
    /// From the far to the near end.
    Downlink,
}

/// Times in which everything vanishes: after `on` for `off`, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Blackhole {
    /// How long datagrams pass before each time.
    pub on: Duration,
    /// How long nothing passes.
    pub off: Duration,
    /// How many times; 0: without end.
    #[serde(default = "once")]
    pub repeat: u32,
    /// In which direction.
    #[serde(default)]
    pub direction: Side,
}

const fn once() -> u32 {
    1
}

impl Blackhole {
    /// Does what arrives at `now` vanish?
    pub(super) fn swallows(&self, direction: Direction, now: Instant) -> bool {
        let concerns = match self.direction {
            Side::Both => true,
            Side::Uplink => direction == Direction::Uplink,
            Side::Downlink => direction == Direction::Downlink,
        };
        let cycle = self.on.as_nanos().saturating_add(self.off.as_nanos()).max(1);
        let (round, within) = (now.as_nanos() / cycle, now.as_nanos() % cycle);
        concerns && (self.repeat == 0 || round < u64::from(self.repeat)) && within >= self.on.as_nanos()
    }
}

/// Numbers of datagrams, from 1, by direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DropList {
    /// Towards the far end.
    pub uplink: BTreeSet<u64>,
    /// Towards the near end.
    pub downlink: BTreeSet<u64>,
}

/// How often, and how often in a row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Strikes {
    /// Probability for each datagram, drawn by its number.
    pub rate: EachWay<Probability>,
    /// So many in a row at most: the next one is spared. Without it: any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<EachWay<u32>>,
}

impl Faults {
    /// Looks for what makes no sense.
    ///
    /// # Errors
    /// The key, from the table of the faults down.
    pub fn check(&self) -> Result<(), ConfigError> {
        disorder::check("duplication", self.duplication, false)?;
        disorder::check("reordering", self.reordering, true)?;
        for direction in Direction::BOTH {
            let is_none = |n: Option<EachWay<u32>>| n.is_some_and(|n| n.get(direction) == 0);
            for (key, strikes) in [("drop", self.drop), ("corrupt", self.corrupt)] {
                if strikes.is_some_and(|s| is_none(s.burst)) {
                    let message = "at most 0 in a row is none at all; set the `rate` to 0 instead";
                    return Err(ConfigError::at("burst", message).below(key));
                }
            }
        }
        if let Some(hole) = self.blackhole
            && hole.off == Duration::ZERO
        {
            return Err(
                ConfigError::at("off", "a black hole that lasts no time does nothing").below("blackhole")
            );
        }
        if let Some(list) = &self.drop_list {
            for (key, numbers) in [("uplink", &list.uplink), ("downlink", &list.downlink)] {
                let message = if numbers.contains(&0) {
                    "datagrams are numbered from 1".to_owned()
                } else if numbers.len() > MOST_LISTED {
                    format!("a list has at most {MOST_LISTED} numbers")
                } else {
                    continue;
                };
                return Err(ConfigError::at(key, message).below("drop_list"));
            }
        }
        self.nat.as_ref().map_or(Ok(()), Nat::check)
    }
}

//! Quantities of a scenario file: text with a unit outside, integers inside.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::direction::Direction;
use crate::forms::{OneOrTable, Text};
use crate::time::Duration;

/// Bits per second. Text form `"384kbit/s"`, `"10Mbit/s"`; k is 1000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// `n` bit/s; a rate of nothing is not a rate.
    pub const fn from_bits_per_second(n: u64) -> Option<Self> {
        if n == 0 { None } else { Some(Rate(n)) }
    }
    /// `n` kbit/s (1000 bit/s); zero becomes one.
    pub const fn kbit(n: u64) -> Self {
        Rate(if n == 0 { 1 } else { n.saturating_mul(1000) })
    }
    /// In bit/s.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }
    /// How long `octets` octets take, rounded to the nearest nanosecond.
    #[inline]
    pub const fn time_for(self, octets: u64) -> Duration {
        // 8e9 * octets fits into 64 bits up to 2.3 GB: the usual case needs no wide division.
        let half = self.0 / 2;
        let rounded = match octets.checked_mul(8_000_000_000) {
            Some(bits) => bits.checked_add(half),
            None => None,
        };
        match rounded {
            Some(bits) => Duration::from_nanos(bits / self.0),
            None => Duration::from_nanos(octets).mul_ratio(8_000_000_000, self.0),
        }
    }
}

/// A number of octets. Text form `"64kB"` (1000), `"64KiB"` (1024), `"1MB"`, `"200B"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Octets(pub u64);

/// A probability, 0 to 1; also `"5%"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

impl Probability {
    /// Never.
    pub const ZERO: Probability = Probability(0.0);
    /// `p`, if it lies in 0..=1.
    pub fn new(p: f64) -> Option<Self> {
        (0.0..=1.0).contains(&p).then_some(Probability(p))
    }
    /// The number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// Splits `"10 Mbit/s"` into number and unit.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+'))).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim()))
}

fn parse(text: &str, units: &[(&str, f64)], example: &str) -> Result<f64, String> {
    let choices =
        || units.iter().map(|(u, _)| if u.is_empty() { "none" } else { u }).collect::<Vec<_>>().join(", ");
    let Some((number, unit)) = number_and_unit(text) else {
        return Err(format!(
            "`{text}` is not a number with a unit such as \"{example}\" (units: {})",
            choices()
        ));
    };
    let Some((_, factor)) = units.iter().find(|(u, _)| *u == unit) else {
        return Err(if unit.is_empty() {
            format!("`{text}` has no unit; say for example \"{example}\" (units: {})", choices())
        } else {
            format!("unknown unit `{unit}` in `{text}`; valid: {}", choices())
        });
    };
    let value = number * factor;
    if value < 0.0 {
        return Err(format!("`{text}` is negative"));
    }
    if value > 9.0e18 {
        return Err(format!("`{text}` is too large"));
    }
    Ok(value)
}

const RATES: &[(&str, f64)] = &[("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9)];
const TIMES: &[(&str, f64)] =
    &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9), ("h", 3600e9)];
const SIZES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

impl std::str::FromStr for Rate {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let n = parse(text, RATES, "384kbit/s")?;
        Rate::from_bits_per_second(n.round() as u64)
            .ok_or_else(|| format!("`{text}`: a rate must be above zero"))
    }
}

impl std::str::FromStr for Octets {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        parse(text, SIZES, "64kB").map(|n| Octets(n.round() as u64))
    }
}

impl std::str::FromStr for Duration {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        parse(text, TIMES, "20ms").map(|n| Duration::from_nanos(n.round() as u64))
    }
}

impl std::str::FromStr for Probability {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let n = parse(text, &[("", 1.0), ("%", 0.01)], "5%")?;
        Probability::new(n).ok_or_else(|| format!("`{text}` is not a probability between 0 and 1"))
    }
}

fn largest_unit(n: u64, units: &[(u64, &str)]) -> String {
    let (factor, name) =
        units.iter().find(|(f, _)| n >= *f && n.is_multiple_of(*f)).unwrap_or(&units[units.len() - 1]);
    format!("{}{name}", n / factor)
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&largest_unit(
            self.0,
            &[(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1000, "kbit/s"), (1, "bit/s")],
        ))
    }
}

impl fmt::Display for Octets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&largest_unit(
            self.0,
            &[(1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "kB"), (1, "B")],
        ))
    }
}

macro_rules! text_form {
    ($type:ty, $name:literal, $pattern:literal, $what:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                d.deserialize_any(Text::new($what))
            }
        }
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern, "description": $what })
            }
        }
    };
}

/// How much a queue holds. Text form `"100 packets"` or a size such as `"64kB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// So many packets, whatever their size.
    Packets(u32),
    /// So many octets.
    Octets(u64),
}

impl std::str::FromStr for QueueLimit {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let limit = match number_and_unit(text) {
            Some((n, "packets" | "packet")) => {
                if n < 0.0 || n > f64::from(u32::MAX) || n.fract() != 0.0 {
                    return Err(format!("`{text}` is not a number of packets"));
                }
                QueueLimit::Packets(n as u32)
            }
            _ => QueueLimit::Octets(
                text.parse::<Octets>()
                    .map_err(|_| {
                        format!("`{text}` is not a queue limit such as \"100 packets\" or \"64kB\"")
                    })?
                    .0,
            ),
        };
        match limit {
            QueueLimit::Packets(0) | QueueLimit::Octets(0) => {
                Err(format!("`{text}`: a queue must hold something"))
            }
            ok => Ok(ok),
        }
    }
}

impl QueueLimit {
    /// Does a queue that holds so many packets of so many octets refuse one of `len` octets?
    #[inline]
    pub fn refuses(self, packets: usize, octets: u64, len: u64) -> bool {
        match self {
            QueueLimit::Packets(limit) => packets >= limit as usize,
            QueueLimit::Octets(limit) => octets + len > limit,
        }
    }
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueLimit::Packets(n) => write!(f, "{n} packets"),
            QueueLimit::Octets(n) => Octets(*n).fmt(f),
        }
    }
}

text_form!(
    QueueLimit,
    "queue-limit",
    r"^[0-9.]+ ?(packets?|([kMG]|[KMG]i)?B)$",
    "a queue limit such as \"100 packets\" or \"64kB\""
);
text_form!(Rate, "rate", r"^[0-9.]+ ?[kMG]?bit/s$", "a rate with its unit, such as \"384kbit/s\"");
text_form!(
    Octets,
    "size",
    r"^[0-9.]+ ?([kMG]|[KMG]i)?B$",
    "a size with its unit, such as \"64kB\" or \"64KiB\""
);
text_form!(Duration, "duration", r"^[0-9.]+ ?(ns|us|ms|s|min|h)$", "a time with its unit, such as \"20ms\"");

impl Serialize for Probability {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_f64(self.0)
    }
}

/// Reads a probability.
struct NumberOrText;

impl Visitor<'_> for NumberOrText {
    type Value = Probability;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a probability between 0 and 1")
    }
    fn visit_f64<E: de::Error>(self, p: f64) -> Result<Probability, E> {
        Probability::new(p).ok_or_else(|| E::custom(format!("{p} is not a probability between 0 and 1")))
    }
    fn visit_i64<E: de::Error>(self, p: i64) -> Result<Probability, E> {
        self.visit_f64(p as f64)
    }
    fn visit_u64<E: de::Error>(self, p: u64) -> Result<Probability, E> {
        self.visit_f64(p as f64)
    }
    fn visit_str<E: de::Error>(self, text: &str) -> Result<Probability, E> {
        text.parse().map_err(E::custom)
    }
}

impl<'de> Deserialize<'de> for Probability {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(NumberOrText)
    }
}

impl JsonSchema for Probability {
    fn schema_name() -> Cow<'static, str> {
        "probability".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [
            { "type": "number", "minimum": 0, "maximum": 1 },
            { "type": "string", "pattern": r"^[0-9.]+ ?%?$", "description": "a probability such as \"5%\"" },
        ] })
    }
}

/// A setting of both directions: one value for both, or `{ downlink = .., uplink = .. }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EachWay<T> {
    /// Towards the network.
    pub uplink: T,
    /// Towards the mobile.
    pub downlink: T,
}

impl<T: Copy> EachWay<T> {
    /// The same both ways.
    pub const fn both(value: T) -> Self {
        EachWay { uplink: value, downlink: value }
    }
    /// The value of one direction.
    #[inline]
    pub const fn get(&self, direction: Direction) -> T {
        match direction {
            Direction::Uplink => self.uplink,
            Direction::Downlink => self.downlink,
        }
    }
    /// Sets one direction, or both.
    pub fn set(&mut self, direction: Option<Direction>, value: T) {
        if direction != Some(Direction::Downlink) {
            self.uplink = value;
        }
        if direction != Some(Direction::Uplink) {
            self.downlink = value;
        }
    }
}

impl<'de, T: Deserialize<'de> + Copy> Deserialize<'de> for EachWay<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Two<T> {
            uplink: T,
            downlink: T,
        }
        d.deserialize_any(OneOrTable {
            expecting: "one value for both directions, or { downlink = .., uplink = .. }",
            one: EachWay::both,
            table: |Two { uplink, downlink }| EachWay { uplink, downlink },
        })
    }
}

impl<T: JsonSchema> JsonSchema for EachWay<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("each-way-{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [
            one,
            { "type": "object", "properties": { "uplink": one, "downlink": one },
              "required": ["uplink", "downlink"], "additionalProperties": false },
        ] })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::read;

    #[test]
    fn text_forms_are_read_and_printed() {
        assert_eq!("384kbit/s".parse::<Rate>().unwrap(), Rate::kbit(384));
        assert_eq!("1.5 Mbit/s".parse::<Rate>().unwrap().to_string(), "1500kbit/s");
        assert_eq!("20ms".parse::<Duration>().unwrap(), Duration::from_millis(20));
        assert_eq!("64KiB".parse::<Octets>().unwrap(), Octets(65_536));
        assert_eq!("1MB".parse::<Octets>().unwrap().to_string(), "1MB");
        assert_eq!("5%".parse::<Probability>().unwrap().get(), 0.05);
    }

    #[test]
    fn wrong_text_says_what_would_be_right() {
        assert!("20".parse::<Duration>().unwrap_err().contains("no unit"));
        assert!("20 parsec".parse::<Duration>().unwrap_err().contains("valid: ns, us, ms"));
        assert!("-1kbit/s".parse::<Rate>().unwrap_err().contains("negative"));
        assert!("0bit/s".parse::<Rate>().unwrap_err().contains("above zero"));
        assert!("110%".parse::<Probability>().unwrap_err().contains("between 0 and 1"));
        assert!("lots".parse::<Octets>().unwrap_err().contains("not a number"));
    }

    #[test]
    fn values_of_another_kind_are_refused_with_what_would_be_right() {
        fn refused<T: de::DeserializeOwned + fmt::Debug>(value: &Value) -> String {
            read::<T>(value).unwrap_err().to_string()
        }
        assert_eq!(
            refused::<Rate>(&json!(5)),
            "invalid type: integer `5`, expected a rate with its unit, such as \"384kbit/s\""
        );
        assert_eq!(
            refused::<Probability>(&json!(true)),
            "invalid type: boolean `true`, expected a probability between 0 and 1"
        );
        assert_eq!(
            refused::<EachWay<Rate>>(&json!([1])),
            "invalid type: sequence, expected one value for both directions, or { downlink = .., uplink = .. }"
        );
        assert!(
            refused::<EachWay<Rate>>(&json!(5)).starts_with("invalid type: integer `5`, expected a rate")
        );
        assert_eq!(refused::<EachWay<Rate>>(&json!({ "uplink": "1kbit/s" })), "missing field `downlink`");
        let one = json!({ "uplink": 2, "downlink": 0.1 });
        assert_eq!(refused::<EachWay<Probability>>(&one), "uplink: 2 is not a probability between 0 and 1");
    }

    #[test]
    fn serialisation_time_is_exact_to_the_nanosecond() {
        assert_eq!(Rate::kbit(384).time_for(1500), Duration::from_nanos(31_250_000));
        assert_eq!(Rate::kbit(100_000).time_for(1500), Duration::from_micros(120));
        assert_eq!(Rate::kbit(1).time_for(10_000_000_000), Duration::from_secs(80_000_000));
    }
}

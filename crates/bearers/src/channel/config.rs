//! The `loss` key of a link.

use airloom_base::forms::OneOrTable;
use airloom_base::units::Probability;
use airloom_base::{ConfigError, Direction, Duration};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize};

use super::GilbertElliott;

/// What is lost at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    /// Each packet on its own (wires).
    Packet,
    /// Each link-layer PDU (transport block) on its own (radio).
    Pdu,
    /// All blocks of a transmission interval together: they share one error-correcting frame (radio).
    FecFrame,
}

/// Which packets of a wire are counted and can be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Of {
    /// All.
    #[default]
    All,
    /// Those that carry payload of the transport: a pure acknowledgement is neither counted nor lost.
    Payload,
}

impl Of {
    fn is_all(&self) -> bool {
        *self == Of::All
    }
}

/// Phase of an on/off process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Losses happen.
    #[default]
    On,
    /// No losses.
    Off,
}

/// How losses come about.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "model", rename_all = "kebab-case")]
pub enum Model {
    /// Every packet or block independently with the same probability.
    Bernoulli {
        /// Probability of a loss.
        loss: f64,
    },
    /// Two states with memory; steps are packets on a wire, transmission intervals on radio.
    GilbertElliott {
        /// P(good to bad) per step.
        p: f64,
        /// P(bad to good) per step.
        q: f64,
        /// Loss in the good state.
        kg: f64,
        /// Loss in the bad state.
        kb: f64,
    },
    /// Phases of fixed length.
    OnOff {
        /// Length of the phase with losses.
        on: Duration,
        /// Length of the phase without.
        off: Duration,
        /// Which comes first.
        first: Phase,
        /// Probability of a loss while on.
        loss: f64,
    },
    /// Exactly these packets, counted from 0 (wires).
    List {
        /// Their numbers.
        list: Vec<u64>,
    },
}

/// The losses of one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessConfig {
    /// How losses come about.
    #[serde(flatten)]
    pub model: Model,
    /// Which packets are counted (wires).
    #[serde(skip_serializing_if = "Of::is_all")]
    pub of: Of,
    /// Raw seed instead of the run's: packet n is lost if splitmix64(seed, n)/2^64 < loss (wires).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
}

impl ProcessConfig {
    /// Independent losses with probability `loss`.
    pub const fn bernoulli(loss: f64) -> Self {
        ProcessConfig { model: Model::Bernoulli { loss }, of: Of::All, seed: None }
    }
}

/// The losses of a link.
///
/// A probability for both directions (`0.01`), or a table: `downlink` and `uplink` (a probability, or a table of
/// that direction's own keys), `per` (`"packet"` on wires, `"pdu"` or `"fec-frame"` on radio) and, for directions
/// that do not say otherwise, `model` with its keys: `"bernoulli"` (default: `loss`), `"gilbert-elliott"` (`p`,
/// `q`, `kg`, `kb`, or `loss` and mean `burst`), `"on-off"` (`on`, `off`, `first`, `loss`), `"list"` (`list` of packet
/// numbers from 0). On wires also `of` (`"all"`, `"payload"`) and a raw `seed`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LossConfig {
    /// What is lost at once; the link's own kind if not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per: Option<Per>,
    /// Towards the mobile.
    pub downlink: ProcessConfig,
    /// Towards the network.
    pub uplink: ProcessConfig,
}

impl Default for LossConfig {
    fn default() -> Self {
        LossConfig::bernoulli(0.0, 0.0)
    }
}

impl LossConfig {
    /// Independent losses.
    pub const fn bernoulli(uplink: f64, downlink: f64) -> Self {
        LossConfig {
            per: None,
            uplink: ProcessConfig::bernoulli(uplink),
            downlink: ProcessConfig::bernoulli(downlink),
        }
    }

    /// The losses of one direction.
    pub const fn of_direction(&self, direction: Direction) -> &ProcessConfig {
        match direction {
            Direction::Uplink => &self.uplink,
            Direction::Downlink => &self.downlink,
        }
    }

    /// Is this a configuration for a wire? The error is at `loss`.
    pub fn check_wire(&self) -> Result<(), ConfigError> {
        match self.per {
            None | Some(Per::Packet) => Ok(()),
            Some(_) => Err(at("per", "a wire loses packets: say per = \"packet\", or leave it out")),
        }
    }

    /// What is lost at once if this is a configuration for radio (`default` if it does not say). The error is at
    /// `loss`.
    pub fn check_radio(&self, default: Per) -> Result<Per, ConfigError> {
        for direction in Direction::BOTH {
            let process = self.of_direction(direction);
            let only_wires = match process {
                ProcessConfig { model: Model::List { .. }, .. } => Some("list"),
                ProcessConfig { of: Of::Payload, .. } => Some("of"),
                ProcessConfig { seed: Some(_), .. } => Some("seed"),
                _ => None,
            };
            if let Some(key) = only_wires {
                return Err(at(
                    key,
                    "only for wires: on radio the fate of a block depends on its place in time",
                ));
            }
        }
        match self.per.unwrap_or(default) {
            Per::Packet => Err(at("per", "radio loses blocks: say \"pdu\" or \"fec-frame\"")),
            per => Ok(per),
        }
    }
}

fn at(key: &str, message: &str) -> ConfigError {
    ConfigError { path: vec!["loss".to_owned(), key.to_owned()], message: message.to_owned() }
}

/// All keys a table may have, at the top or inside a direction.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Keys {
    per: Option<Per>,
    uplink: Option<Box<OneDirection>>,
    downlink: Option<Box<OneDirection>>,
    model: Option<ModelName>,
    loss: Option<Probability>,
    p: Option<Probability>,
    q: Option<Probability>,
    kg: Option<Probability>,
    kb: Option<Probability>,
    burst: Option<f64>,
    on: Option<Duration>,
    off: Option<Duration>,
    first: Option<Phase>,
    list: Option<Vec<u64>>,
    of: Option<Of>,
    seed: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
enum ModelName {
    Bernoulli,
    GilbertElliott,
    OnOff,
    List,
}

impl ModelName {
    const fn keys(self) -> &'static [&'static str] {
        match self {
            ModelName::Bernoulli => &["loss"],
            ModelName::GilbertElliott => &["p", "q", "kg", "kb", "loss", "burst"],
            ModelName::OnOff => &["on", "off", "first", "loss"],
            ModelName::List => &["list"],
        }
    }
}

/// A probability, or a table.
#[derive(Clone, Debug)]
struct OneDirection(Keys);

impl<'de> Deserialize<'de> for OneDirection {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(OneOrTable {
            expecting: "a probability between 0 and 1, or a table such as { downlink = 0.2, uplink = 0.1 }",
            one: |p: Probability| OneDirection(Keys { loss: Some(p), ..Keys::default() }),
            table: OneDirection,
        })
    }
}

impl Keys {
    /// These keys where they are set, `common` elsewhere. A model named here takes no keys of another model.
    fn over(self, common: &Keys) -> Result<Keys, String> {
        if self.per.is_some() || self.uplink.is_some() || self.downlink.is_some() {
            return Err(
                "`per`, `uplink` and `downlink` stand beside the directions, not inside one".to_owned()
            );
        }
        let of = self.of.or(common.of);
        let seed = self.seed.or(common.seed);
        let other_model = self.model.is_some() && self.model != common.model || self.list.is_some();
        if other_model {
            return Ok(Keys { of, seed, ..self });
        }
        Ok(Keys {
            per: None,
            uplink: None,
            downlink: None,
            model: self.model.or(common.model),
            loss: self.loss.or(common.loss),
            p: self.p.or(common.p),
            q: self.q.or(common.q),
            kg: self.kg.or(common.kg),
            kb: self.kb.or(common.kb),
            burst: self.burst.or(common.burst),
            on: self.on.or(common.on),
            off: self.off.or(common.off),
            first: self.first.or(common.first),
            list: if self.loss.is_some() { None } else { common.list.clone() },
            of,
            seed,
        })
    }

    fn present(&self) -> impl Iterator<Item = &'static str> {
        [
            ("loss", self.loss.is_some()),
            ("p", self.p.is_some()),
            ("q", self.q.is_some()),
            ("kg", self.kg.is_some()),
            ("kb", self.kb.is_some()),
            ("burst", self.burst.is_some()),
            ("on", self.on.is_some()),
            ("off", self.off.is_some()),
            ("first", self.first.is_some()),
            ("list", self.list.is_some()),
        ]
        .into_iter()
        .filter_map(|(key, is_set)| is_set.then_some(key))
    }

    fn resolve(self) -> Result<ProcessConfig, String> {
        let default = if self.list.is_some() { ModelName::List } else { ModelName::Bernoulli };
        let name = self.model.unwrap_or(default);
        if let Some(odd) = self.present().find(|key| !name.keys().contains(key)) {
            let valid = name.keys().join(", ");
            return Err(format!(
                "`{odd}` does not belong to model \"{}\"; valid: {valid}",
                <&str>::from(name)
            ));
        }
        let loss = self.loss.map(Probability::get);
        let model = match name {
            ModelName::Bernoulli => Model::Bernoulli { loss: loss.unwrap_or(0.0) },
            ModelName::GilbertElliott => self.gilbert_elliott()?,
            ModelName::OnOff => Model::OnOff {
                on: self.on.ok_or("model \"on-off\" needs `on`, such as \"4s\"")?,
                off: self.off.ok_or("model \"on-off\" needs `off`, such as \"6s\"")?,
                first: self.first.unwrap_or_default(),
                loss: loss.ok_or("model \"on-off\" needs `loss`, the probability while on")?,
            },
            ModelName::List => {
                Model::List { list: self.list.clone().ok_or("model \"list\" needs `list`, such as [3, 17]")? }
            }
        };
        Ok(ProcessConfig { model, of: self.of.unwrap_or_default(), seed: self.seed })
    }

    fn gilbert_elliott(&self) -> Result<Model, String> {
        let get = |p: Option<Probability>| p.map(Probability::get);
        match (get(self.p), get(self.q), get(self.loss), self.burst) {
            (Some(p), Some(q), None, None) => Ok(Model::GilbertElliott {
                p,
                q,
                kg: get(self.kg).unwrap_or(0.0),
                kb: get(self.kb).unwrap_or(1.0),
            }),
            (None, None, Some(loss), Some(burst)) if self.kg.is_none() && self.kb.is_none() => {
                if burst.is_nan() || burst < 1.0 {
                    return Err(format!("a mean burst of {burst} is shorter than one step"));
                }
                let (p, q) = GilbertElliott::from_burst(loss, burst)
                    .ok_or_else(|| format!("a loss of {loss} is not possible with a mean burst of {burst}"))?;
                Ok(Model::GilbertElliott { p, q, kg: 0.0, kb: 1.0 })
            }
            _ => Err("model \"gilbert-elliott\" needs `p` and `q` (and, if not 0 and 1, `kg` and `kb`), or `loss` and `burst`"
                .to_owned()),
        }
    }
}

impl<'de> Deserialize<'de> for LossConfig {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let OneDirection(mut keys) = OneDirection::deserialize(d)?;
        let per = keys.per.take();
        let (uplink, downlink) = (keys.uplink.take(), keys.downlink.take());
        let of =
            |own: Option<Box<OneDirection>>| own.map_or_else(Keys::default, |o| o.0).over(&keys)?.resolve();
        Ok(LossConfig {
            per,
            uplink: of(uplink).map_err(|e| de::Error::custom(in_direction(Direction::Uplink, e)))?,
            downlink: of(downlink).map_err(|e| de::Error::custom(in_direction(Direction::Downlink, e)))?,
        })
    }
}

fn in_direction(direction: Direction, message: String) -> String {
    format!("{}: {message}", direction.name())
}

impl JsonSchema for LossConfig {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "loss".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let probability = generator.subschema_for::<Probability>();
        let duration = generator.subschema_for::<Duration>();
        let own = json_schema!({
            "model": { "enum": ["bernoulli", "gilbert-elliott", "on-off", "list"],
                       "description": "how losses come about" },
            "loss": probability,
            "p": probability, "q": probability, "kg": probability, "kb": probability,
            "burst": { "type": "number", "minimum": 1, "description": "mean burst in steps" },
            "on": duration, "off": duration, "first": { "enum": ["on", "off"] },
            "list": { "type": "array", "items": { "type": "integer", "minimum": 0 } },
            "of": { "enum": ["all", "payload"] },
            "seed": { "type": "integer", "minimum": 0 },
        })
        .to_value();
        let direction = json_schema!({ "anyOf": [
            probability,
            { "type": "object", "properties": own, "additionalProperties": false },
        ] })
        .to_value();
        let mut top = own;
        if let Some(keys) = top.as_object_mut() {
            keys.insert("per".to_owned(), serde_json::json!({ "enum": ["packet", "pdu", "fec-frame"] }));
            keys.insert("downlink".to_owned(), direction.clone());
            keys.insert("uplink".to_owned(), direction);
        }
        json_schema!({
            "description": "a probability, or a table of the loss process (of each direction)",
            "anyOf": [probability, { "type": "object", "properties": top, "additionalProperties": false }],
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: serde_json::Value) -> Result<LossConfig, String> {
        airloom_base::config::read(&value).map_err(|e| e.to_string())
    }

    #[test]
    fn a_number_is_both_directions() {
        assert_eq!(read(json!(0.01)).unwrap(), LossConfig::bernoulli(0.01, 0.01));
        assert_eq!(read(json!(0)).unwrap(), LossConfig::default());
        assert_eq!(read(json!("5%")).unwrap(), LossConfig::bernoulli(0.05, 0.05));
    }

    #[test]
    fn directions_and_unit_of_loss() {
        let c = read(json!({ "per": "pdu", "downlink": 0.2, "uplink": 0.1 })).unwrap();
        assert_eq!(c, LossConfig { per: Some(Per::Pdu), ..LossConfig::bernoulli(0.1, 0.2) });
        let c = read(json!({ "downlink": { "list": [3], "of": "payload" } })).unwrap();
        assert_eq!(c.uplink, ProcessConfig::bernoulli(0.0));
        assert_eq!(c.downlink.model, Model::List { list: vec![3] });
    }

    #[test]
    fn a_direction_of_its_own_overrides_the_common_keys() {
        let c =
            read(json!({ "model": "gilbert-elliott", "loss": 0.1, "burst": 10, "uplink": 0.05 })).unwrap();
        let p = |c: &ProcessConfig| match c.model {
            Model::GilbertElliott { p, .. } => p,
            _ => panic!("{c:?}"),
        };
        assert!(p(&c.downlink) > p(&c.uplink));
    }

    #[test]
    fn wrong_values_say_what_would_be_right_in_one_line() {
        for (value, words) in [
            (json!(1.1), "1.1 is not a probability between 0 and 1"),
            (json!({ "loss": -0.1 }), "not a probability"),
            (json!({ "downlink": 2 }), "downlink: 2 is not a probability"),
            (
                json!({ "model": "weather" }),
                "expected one of `bernoulli`, `gilbert-elliott`, `on-off`, `list`",
            ),
            (json!({ "los": 0.1 }), "unknown field `los`, expected one of"),
            (
                json!({ "loss": 0.1, "burst": 3 }),
                "`burst` does not belong to model \"bernoulli\"; valid: loss",
            ),
            (json!({ "model": "gilbert-elliott", "p": 0.1 }), "needs `p` and `q`"),
            (
                json!({ "model": "gilbert-elliott", "loss": 0.9, "burst": 1 }),
                "not possible with a mean burst",
            ),
            (json!({ "model": "on-off", "on": "4s", "loss": 0.5 }), "needs `off`"),
            (json!({ "uplink": { "per": "pdu" } }), "beside the directions"),
            (json!([0.1]), "expected a probability between 0 and 1, or a table"),
        ] {
            let message = read(value.clone()).unwrap_err();
            assert!(message.contains(words), "{value}: {message}");
            assert!(!message.contains('\n'));
        }
    }

    #[test]
    fn wires_and_radio_refuse_each_others_settings() {
        let wire = |v| read(v).unwrap().check_wire().map_err(|e| e.to_string());
        let radio = |v| read(v).unwrap().check_radio(Per::Pdu).map_err(|e| e.to_string());
        assert!(wire(json!({ "per": "pdu" })).unwrap_err().starts_with("loss.per: a wire loses packets"));
        assert_eq!(wire(json!({ "per": "packet", "seed": 1 })), Ok(()));
        assert_eq!(radio(json!(0.1)), Ok(Per::Pdu));
        assert!(radio(json!({ "per": "packet" })).unwrap_err().contains("\"fec-frame\""));
        assert!(radio(json!({ "list": [1] })).unwrap_err().starts_with("loss.list: only for wires"));
        assert!(radio(json!({ "seed": 1 })).unwrap_err().contains("only for wires"));
    }

    #[test]
    fn what_was_understood_can_be_read_again() {
        for value in [
            json!(0.25),
            json!({ "per": "fec-frame", "downlink": 0.2, "uplink": 0.1 }),
            json!({ "model": "gilbert-elliott", "p": 0.01, "q": 0.1, "kg": 0.001 }),
            json!({ "model": "on-off", "on": "4s", "off": "6s", "first": "off", "loss": 0.3 }),
            json!({ "list": [1, 2], "of": "payload", "uplink": { "loss": 0.01, "seed": 7 } }),
        ] {
            let config = read(value).unwrap();
            let again = read(serde_json::to_value(&config).unwrap()).unwrap();
            assert_eq!(again, config);
        }
    }
}

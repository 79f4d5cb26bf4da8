//! The JSON schema of scenario files, for editors: composed from the schemas of everything in the registries.

use airloom_base::units::{EachWay, Probability, QueueLimit, Rate};
use airloom_base::{Duration, MTU};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use airloom_bearers::channel::Environment;
use airloom_bearers::faults::Faults;

use super::hosts::{MOST_HOSTS, MOST_PORTS};
use super::links::LEAST_MTU;
use super::registries::{Known, Registries};
use super::schema::RecordKind;
use crate::work::Work;

const NAME: &str = "^[A-Za-z][A-Za-z0-9_-]{0,31}$";

/// The JSON schema (draft 2020-12) of a scenario file.
pub fn scenario_schema(registries: &Registries) -> Value {
    let mut defs = Defs::default();
    let names = json!({ "type": "object", "propertyNames": { "pattern": NAME } });
    let with = |mut table: Value, values: Value, what: &str| {
        table["additionalProperties"] = values;
        table["description"] = what.into();
        table
    };
    let properties = json!({
        "title": { "type": "string", "maxLength": 200, "description": "What the scenario is about, one line." },
        "path": {
            "type": "array", "items": { "type": "string" }, "minItems": 3,
            "description": "The short form: hosts and links in turn.",
        },
        "hosts": with(names.clone(), host(registries, &mut defs), "What runs where."),
        "environments": with(names.clone(), defs.of::<Environment>(), "Radio environments that links share."),
        "links": with(names, link(registries, &mut defs), "What joins the hosts."),
        "timeline": { "type": "array", "items": timeline(&mut defs), "description": "What changes during the run." },
        "run": run(&mut defs),
    });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "airloom scenario",
        "type": "object",
        "properties": properties,
        "required": ["hosts", "links"],
        "additionalProperties": false,
        "$defs": Value::Object(defs.0),
    })
}

/// Definitions of the whole schema; a component's own are renamed, because many are called the same.
#[derive(Default)]
struct Defs(Map<String, Value>);

impl Defs {
    /// The schema of a component as part of the whole.
    fn adopt(&mut self, family: &str, known: &Known) -> Map<String, Value> {
        let mut schema = (known.schema)().to_value();
        let prefix = format!("{family}.{}.", known.name);
        rename(&mut schema, &prefix);
        let Value::Object(mut schema) = schema else { return Map::new() };
        schema.remove("$schema");
        schema.remove("title");
        if let Some(Value::Object(own)) = schema.remove("$defs") {
            self.0.extend(own.into_iter().map(|(name, def)| (prefix.clone() + &name, def)));
        }
        schema
    }

    /// A reference to this schema, which stands under `name` from now on: what is said in several places is said once.
    fn named(&mut self, name: &str, schema: Value) -> Value {
        self.0.insert(name.to_owned(), schema);
        json!({ "$ref": format!("#/$defs/{name}") })
    }

    /// A reference to the schema of a type of ours.
    fn of<T: JsonSchema>(&mut self) -> Value {
        let mut generator = SchemaGenerator::default();
        let schema: Schema = generator.subschema_for::<T>();
        self.0.extend(generator.take_definitions(true));
        schema.to_value()
    }
}

/// Puts `prefix` before the names that references mean.
fn rename(schema: &mut Value, prefix: &str) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                match (key.as_str(), &mut *value) {
                    ("$ref", Value::String(to)) => {
                        if let Some(name) = to.strip_prefix("#/$defs/") {
                            *to = format!("#/$defs/{prefix}{name}");
                        }
                    }
                    _ => rename(value, prefix),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|v| rename(v, prefix)),
        _ => {}
    }
}

fn host(registries: &Registries, defs: &mut Defs) -> Value {
    let apps = components("app", &registries.apps, defs);
    let transport = one_of("transport", &registries.transports, &[], defs);
    let transports = json!({ "anyOf": [transport, { "type": "array", "items": transport, "minItems": 1 }] });
    let proxy = one_of("proxy", &registries.proxies, &["none"], defs);
    let route = json!({
        "type": "object",
        "properties": {
            "to": { "type": "string", "description": "A host, a link, a network, an address, or `default`." },
            "via": { "type": "string", "description": "The neighbour that gets the datagrams." },
            "link": { "type": "string", "description": "Which link, where several lead to the neighbour." },
        },
        "required": ["to", "via"],
        "additionalProperties": false,
    });
    let work = defs.of::<Work>();
    let interface = json!({
        "type": "object",
        "properties": { "transport": transport },
        "required": ["transport"],
        "additionalProperties": false,
    });
    let real =
        json!([{ "type": "boolean" }, { "type": "array", "items": { "type": "integer", "minimum": 0 } }]);
    let port = json!({ "type": "integer", "minimum": 1, "maximum": u16::MAX });
    json!({
        "type": "object",
        "properties": {
            "app": apps,
            "transport": transports,
            "interfaces": { "type": "object", "additionalProperties": interface, "description": "By link: the transport of connections over it, where it is not that of the host." },
            "proxy": proxy,
            "work": work,
            "count": { "type": "integer", "minimum": 1, "maximum": MOST_HOSTS, "description": "Makes so many hosts, `name[0]` and on." },
            "real": { "anyOf": real, "description": "In real time: a port to real programs instead of a simulated host." },
            "port": { "enum": ["veth", "tun"], "description": "What the host has at its ends of links when it is real." },
            "outside": { "type": "boolean", "description": "Is it the way to the outside world when it is real? One host may be." },
            "loopback": {
                "anyOf": [port, { "type": "array", "items": port, "maxItems": MOST_PORTS, "uniqueItems": true }],
                "description": "TCP ports that lead to the same ports of this machine's loopback when it is real. One host may have some.",
            },
            "command": { "type": "array", "items": { "type": "string" }, "minItems": 1, "description": "What runs in the host when it is real." },
            "forward": { "type": "boolean", "description": "Does it pass on datagrams that are not for it?" },
            "routes": { "type": "array", "items": route, "description": "Routes that win over the shortest paths." },
        },
        "additionalProperties": false,
    })
}

/// `"name"`, `{ name = {..} }`, or a list of these.
fn components(family: &str, known: &[Known], defs: &mut Defs) -> Value {
    let form = json!({ "anyOf": [
        { "enum": known.iter().map(|k| k.name).collect::<Vec<_>>() },
        { "type": "object", "properties": tables(family, known, defs), "additionalProperties": false },
    ] });
    let one = defs.named(family, form);
    json!({ "anyOf": [one, { "type": "array", "items": one }] })
}

/// `"name"` or `{ name = {..} }`.
fn one_of(family: &str, known: &[Known], others: &[&str], defs: &mut Defs) -> Value {
    let names: Vec<&str> = known.iter().map(|k| k.name).chain(others.iter().copied()).collect();
    let tables = tables(family, known, defs);
    let form = json!({ "anyOf": [
        { "enum": names },
        { "type": "object", "properties": tables, "additionalProperties": false, "minProperties": 1, "maxProperties": 1 },
    ] });
    defs.named(family, form)
}

/// The tables of all components of a family, each a definition of its own.
fn tables(family: &str, known: &[Known], defs: &mut Defs) -> Map<String, Value> {
    let mut table = |k: &Known| {
        let schema = defs.adopt(family, k);
        (k.name.to_owned(), defs.named(&format!("{family}.{}", k.name), Value::Object(schema)))
    };
    known.iter().map(&mut table).collect()
}

fn link(registries: &Registries, defs: &mut Defs) -> Value {
    let names: Vec<&str> = registries.bearers.iter().map(|k| k.name).collect();
    let faults = defs.of::<Faults>();
    let shared = [
        (
            "between",
            json!({ "type": "array", "items": { "type": "string" }, "minItems": 2, "description": "The stations, and last the far end." }),
        ),
        (
            "mtu",
            json!({ "type": "integer", "minimum": LEAST_MTU, "maximum": u16::MAX, "default": MTU, "description": "Largest IP datagram, in octets; also that of the interfaces at its ends." }),
        ),
        ("subnet", json!({ "type": "string", "description": "IPv4 network of the link." })),
        ("subnet6", json!({ "type": "string", "description": "IPv6 network of the link." })),
        (
            "addresses",
            json!({
                "type": "object",
                "additionalProperties": { "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] },
                "description": "Addresses of hosts on the link, where they matter.",
            }),
        ),
        (
            "grade",
            json!({
                "enum": ["auto", "transparent", "packet"],
                "description": "What becomes of the super-packets that kernels of real hosts send.",
            }),
        ),
    ];
    let mut own: Map<String, Value> = shared
        .into_iter()
        .map(|(key, form)| (key.to_owned(), defs.named(&format!("link.{key}"), form)))
        .collect();
    own.insert("faults".into(), faults);
    let mut forms = vec![json!({ "enum": names })];
    for known in &registries.bearers {
        let mut schema = defs.adopt("bearer", known);
        let properties = schema.entry("properties").or_insert_with(|| json!({}));
        if let Value::Object(properties) = properties {
            properties.insert("bearer".into(), json!({ "const": known.name }));
            properties.extend(own.clone());
        }
        if let Value::Array(required) = schema.entry("required").or_insert_with(|| json!([])) {
            required.push("bearer".into());
        }
        schema.insert("type".into(), "object".into());
        forms.push(Value::Object(schema));
    }
    json!({ "anyOf": forms })
}

fn timeline(defs: &mut Defs) -> Value {
    let (rate, delay) = (one_way::<Rate>(defs), one_way::<Duration>(defs));
    let (loss, queue) = (one_way::<Probability>(defs), one_way::<QueueLimit>(defs));
    let at = defs.of::<Duration>();
    let switches: Map<String, Value> = airloom_base::Fault::ALL
        .iter()
        .map(|fault| (fault.name().to_owned(), json!({ "enum": ["on", "off"] })))
        .collect();
    let faults = json!({ "type": "object", "properties": switches, "minProperties": 1, "additionalProperties": false });
    json!({
        "type": "object",
        "properties": {
            "at": at,
            "target": { "type": "string", "description": "A link, or a member of a bundle: `bundle.member.3`." },
            "set": {
                "type": "object",
                "properties": {
                    "state": { "enum": ["up", "down"] },
                    "rate": rate, "delay": delay, "loss": loss, "queue": queue, "faults": faults,
                },
                "minProperties": 1,
                "additionalProperties": false,
            },
        },
        "required": ["at", "target", "set"],
        "additionalProperties": false,
    })
}

/// One value, or that of one direction.
fn one_way<T: JsonSchema>(defs: &mut Defs) -> Value {
    let both = defs.of::<EachWay<T>>();
    let one = defs.of::<T>();
    json!({ "anyOf": [
        both,
        { "type": "object", "properties": { "uplink": one, "downlink": one }, "minProperties": 1, "additionalProperties": false },
    ] })
}

fn run(defs: &mut Defs) -> Value {
    let time = defs.of::<Duration>();
    let kinds: Vec<&str> = RecordKind::ALL.iter().map(|k| k.name()).collect();
    json!({
        "type": "object",
        "properties": {
            "until": { "anyOf": [{ "const": "done" }, time], "description": "When the run ends: every application done, or a time." },
            "limit": { "anyOf": [time], "description": "A run that is not done by then is an error." },
            "seed": { "type": "integer", "minimum": 0, "maximum": u64::MAX },
            "record": {
                "anyOf": [{ "const": "none" }, { "enum": kinds }, { "type": "array", "items": { "enum": kinds } }],
                "description": "What is written besides summary, flows, pages and states.",
            },
            "points": {
                "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }],
                "description": "Observation points whose packets are recorded; `*` stands for any text. All of them if not given, but a capture then shows datagrams only inside links and at the client's end, so that each flow is seen once.",
            },
            "epoch": { "description": "Time of day at the start in virtual time, RFC 3339." },
            "keep_awake": { "type": "boolean", "default": true, "description": "In real time: processors do not fall asleep while it runs." },
            "lateness_limit": { "anyOf": [time], "description": "In real time: how late departures may be, at the 99th percentile, for the run to be valid. By default 1 ms, or 5 % of the delay between two real hosts." },
        },
        "additionalProperties": false,
    })
}

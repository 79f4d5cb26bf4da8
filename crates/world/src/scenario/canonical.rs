//! The scenario as understood, written back: long form, every default, and nothing the file did not mean.

use std::collections::BTreeMap;

use airloom_base::{Change, Direction, LinkState, MTU};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::port::PortDevice;

use super::addresses::is_by_rule;
use super::run::print_epoch;
use super::schema::{Component, Destination, Host, Link, Run, Scenario, TimelineEntry, Until};

/// Addresses of larger links are written only if they are not those of the rule.
const ADDRESSES_SHOWN: usize = 16;

/// All that makes two runs the same but for their seeds.
pub struct Identity {
    /// What stands before the seed, hashed.
    begun: Sha256,
    /// What stands between the two places of the seed.
    between: String,
    end: String,
}

impl Identity {
    /// The [`run_id`](Scenario::run_id) with this seed.
    pub fn run_id(&self, seed: u64) -> String {
        let seed = seed.to_string();
        let hash = self.begun.clone().chain_update(&seed).chain_update(&self.between).chain_update(&seed);
        let digits = hash.chain_update(&self.end).finalize();
        let digits = digits.iter().take(5).flat_map(|octet| [octet >> 4, octet & 15]);
        digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
    }
}

impl Scenario {
    /// The scenario as understood, as JSON that [`Document::read`](super::Document::read) reads back to an equal
    /// scenario. The same file, options and version always give the same text.
    pub fn to_json(&self) -> Value {
        let mut hosts = Map::new();
        let mut groups: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        let mut from = 0;
        for members in self.hosts.chunk_by(|a, b| a.group == b.group) {
            groups.insert(&members[0].group, (from, members.len()));
            from += members.len();
            hosts.insert(members[0].group.clone(), self.host(members));
        }
        let links = self.links.iter().map(|l| (l.name.clone(), self.link(l, &groups))).collect();
        let timeline = self.timeline.iter().map(|t| self.change(t)).collect();
        let mut whole = json!({
            "title": self.title,
            "hosts": Value::Object(hosts),
            "links": Value::Object(links),
            "timeline": Value::Array(timeline),
            "run": run(&self.run),
        });
        if !self.environments.is_empty() {
            let environments = self.environments.iter().map(|(name, table)| (name.clone(), table.clone()));
            whole["environments"] = Value::Object(environments.collect());
        }
        whole
    }

    /// Ten hexadecimal digits that follow from the scenario as understood, its seed, the version of the package and
    /// the clock (`virtual` or `real`): the same inputs are visibly the same.
    pub fn run_id(&self, clock: &str, version: &str) -> String {
        self.identity(clock, version).run_id(self.run.seed)
    }

    /// What the [`run_id`](Self::run_id) of this scenario follows from with any seed.
    pub fn identity(&self, clock: &str, version: &str) -> Identity {
        // Only the seed differs: what stands before it is hashed once. No text of a scenario has a NUL character.
        const HERE: &str = "\0";
        let mut inputs = json!([self.to_json(), HERE, version, clock]);
        inputs[0]["run"]["seed"] = HERE.into();
        let text = inputs.to_string();
        let mark = json!(HERE).to_string();
        let (before, behind) = text.split_once(&mark).expect("the scenario has a seed");
        let (between, end) = behind.split_once(&mark).expect("and it stands beside the scenario again");
        let begun = Sha256::new().chain_update(before);
        Identity { begun, between: between.to_owned(), end: end.to_owned() }
    }

    fn host(&self, members: &[Host]) -> Value {
        let host = &members[0];
        let settings = &host.settings;
        let mut table = Map::new();
        if host.index.is_some() {
            table.insert("count".into(), members.len().into());
        }
        if !settings.apps.is_empty() {
            table.insert("app".into(), settings.apps.iter().map(component).collect());
        }
        if let Some(proxy) = &settings.proxy {
            table.insert("proxy".into(), component(proxy));
        }
        let transports = match settings.transports.as_slice() {
            [one] => component(one),
            several => several.iter().map(component).collect(),
        };
        table.insert("transport".into(), transports);
        if !settings.interfaces.is_empty() {
            let interfaces = settings.interfaces.iter();
            let of_link = interfaces.map(|(link, t)| (link.clone(), json!({ "transport": component(t) })));
            table.insert("interfaces".into(), Value::Object(of_link.collect()));
        }
        if let Some(work) = settings.work.and_then(|work| serde_json::to_value(work).ok()) {
            table.insert("work".into(), work);
        }
        if let Some(command) = &settings.command {
            table.insert("command".into(), command.as_slice().into());
        }
        if settings.port != PortDevice::default() {
            table.insert("port".into(), settings.port.name().into());
        }
        if settings.outside {
            table.insert("outside".into(), true.into());
        }
        if !settings.loopback.is_empty() {
            table.insert("loopback".into(), settings.loopback.as_slice().into());
        }
        let real = match members.iter().filter(|h| h.real).count() {
            n if n == 0 || n == members.len() => (n > 0).into(),
            _ => members.iter().filter(|h| h.real).filter_map(|h| h.index).collect(),
        };
        table.insert("real".into(), real);
        // Members may be on different numbers of links; what the file left open follows from the links again.
        if members.iter().all(|h| h.forwards == host.forwards) {
            table.insert("forward".into(), host.forwards.into());
        }
        if !host.routes.is_empty() {
            let routes = host.routes.iter().enumerate().map(|(n, r)| {
                let to = match r.to {
                    Destination::Host(to) => self.hosts[to].name.clone(),
                    Destination::Link(to) => self.links[to].name.clone(),
                    Destination::Prefix(to) => to.to_string(),
                };
                let mut route = json!({ "to": to, "via": self.hosts[r.via].name });
                // The link is needed where several lead to the neighbour; members of a group may differ in it.
                if members.iter().all(|m| m.routes.get(n).is_some_and(|other| other.link == r.link)) {
                    route["link"] = self.links[r.link].name.as_str().into();
                }
                route
            });
            table.insert("routes".into(), routes.collect());
        }
        Value::Object(table)
    }

    fn link(&self, link: &Link, groups: &BTreeMap<&str, (usize, usize)>) -> Value {
        let mut table = Map::new();
        table.insert("bearer".into(), link.bearer.name.as_str().into());
        if link.mtu != MTU {
            table.insert("mtu".into(), link.mtu.into());
        }
        if let Some(grade) = link.grade {
            table.insert("grade".into(), grade.name().into());
        }
        if let Some(faults) = link.faults.as_ref().and_then(|faults| serde_json::to_value(faults).ok()) {
            table.insert("faults".into(), faults);
        }
        let mut between: Vec<&str> = Vec::new();
        let mut stations = link.near.as_slice();
        while let [first, ..] = stations {
            let host = &self.hosts[first.host];
            let (from, len) = groups.get(host.group.as_str()).copied().unwrap_or((first.host, 1));
            let whole = host.index.is_some()
                && stations.get(..len).is_some_and(|s| s.iter().map(|i| i.host).eq(from..from + len));
            let taken = if whole { len } else { 1 };
            between.push(if whole { &host.group } else { &host.name });
            stations = &stations[taken..];
        }
        between.push(&self.hosts[link.far.host].name);
        table.insert("between".into(), between.into());
        table.insert("subnet".into(), link.subnet.to_string().into());
        table.insert("subnet6".into(), link.subnet6.to_string().into());
        // A cell of a thousand mobiles need not list what follows from its networks.
        if link.near.len() < ADDRESSES_SHOWN || !is_by_rule(link) {
            let addresses: Map<String, Value> = link
                .interfaces()
                .map(|i| (self.hosts[i.host].name.clone(), json!([i.ipv4.to_string(), i.ipv6.to_string()])))
                .collect();
            table.insert("addresses".into(), addresses.into());
        }
        if let Value::Object(config) = &link.bearer.config {
            table.extend(config.iter().map(|(k, v)| (k.clone(), v.clone())));
        }
        Value::Object(table)
    }

    pub(super) fn change(&self, entry: &TimelineEntry) -> Value {
        let mut set = Map::new();
        for change in &entry.changes {
            let way = |direction: &Option<Direction>| direction.map(Direction::name);
            let (key, inside, value) = match change {
                Change::State(LinkState::Up) => ("state", None, "up".into()),
                Change::State(LinkState::Down) => ("state", None, "down".into()),
                Change::Rate(d, rate) => ("rate", way(d), rate.to_string().into()),
                Change::Delay(d, delay) => ("delay", way(d), delay.to_string().into()),
                Change::Loss(d, loss) => ("loss", way(d), (*loss).into()),
                Change::Queue(d, queue) => ("queue", way(d), queue.to_string().into()),
                Change::Fault(fault, on) => {
                    ("faults", Some(fault.name()), if *on { "on" } else { "off" }.into())
                }
            };
            match inside {
                None => set.insert(key.to_owned(), value),
                Some(inside) => {
                    let all = set.entry(key).or_insert_with(|| json!({}));
                    all.as_object_mut().and_then(|b| b.insert(inside.to_owned(), value))
                }
            };
        }
        json!({ "at": entry.at.to_string(), "target": self.target(entry.link, &entry.part), "set": set })
    }

    /// A link, or a part of it, as the timeline names it: `bundle.member.3`.
    pub fn target(&self, link: usize, part: &[u16]) -> String {
        let name = self.links.get(link).map_or("", |link| link.name.as_str()).to_owned();
        part.iter().fold(name, |target, member| target + &format!(".member.{member}"))
    }
}

impl Serialize for Scenario {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(s)
    }
}

fn component(component: &Component) -> Value {
    let mut table = Map::new();
    table.insert(component.name.clone(), component.config.clone());
    Value::Object(table)
}

fn run(run: &Run) -> Value {
    let mut table = json!({
        "until": match run.until {
            Until::Done => "done".to_owned(),
            Until::After(end) => end.to_string(),
        },
        "limit": run.limit.to_string(),
        "seed": run.seed,
        "record": run.record.iter().map(|k| k.name()).collect::<Vec<_>>(),
        "epoch": print_epoch(run.epoch),
    });
    if let Some(points) = &run.points {
        table["points"] = points.as_slice().into();
    }
    // Of real time only: what is simulated, and its name, is the same with and without.
    if !run.keep_awake {
        table["keep_awake"] = false.into();
    }
    if let Some(limit) = run.lateness_limit {
        table["lateness_limit"] = limit.to_string().into();
    }
    table
}

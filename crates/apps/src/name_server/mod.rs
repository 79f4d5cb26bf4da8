//! A name server: looking up a host costs what it costs.
//!
//! It knows the hosts of the scenario, and what its table says. Real hosts ask it (their `/etc/resolv.conf` names it) as soon as
//! there is one in the network, since nothing else tells them then. What goes wrong with an answer is a function of the seed and
//! the number of the query.
//!
//! Left out: TCP, EDNS (a client is told that it is an unknown option by getting an answer without it), zones, and recursion: there
//! is nobody to ask.

mod message;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use airloom_base::random::Fate;
use airloom_base::service::Datagram;
use airloom_base::units::Probability;
use airloom_base::{
    App, AppParts, Body, ConfigError, Cx, Duration, Instant, SocketEvent, SocketId, Sockets, Summary,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smart_default::SmartDefault;

use message::{AAAA, Asked, Code, Query};

/// Answers that wait for their time; queries beyond are not heard.
const MOST_WAITING: usize = 65_536;

/// Answers queries of DNS over UDP for the names of the scenario's hosts, late, wrongly or not at all if that is wanted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Port to listen on.
    #[default(53)]
    pub port: u16,
    /// How long an answer takes.
    pub delay: Duration,
    /// Share of the queries that get no answer.
    pub loss: Probability,
    /// Share of the queries that are answered with a failure of the server (SERVFAIL).
    pub failure: Probability,
    /// What becomes of queries for IPv6 addresses.
    pub aaaa: Aaaa,
    /// How long clients may remember an answer; whole seconds count.
    #[default(Duration::from_secs(60))]
    pub ttl: Duration,
    /// Addresses of other names, or instead of a host's own.
    pub names: BTreeMap<String, Vec<IpAddr>>,
}

/// What becomes of queries for IPv6 addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Aaaa {
    /// They are answered as others are.
    #[default]
    Answer,
    /// Names have none.
    Empty,
    /// They are never answered.
    Hang,
    /// The server does not answer them (REFUSED).
    Refuse,
}

#[derive(Default)]
struct Counts {
    queries: u64,
    answered: u64,
    lost: u64,
    failed: u64,
    unknown: u64,
}

/// The server.
pub struct NameServer {
    config: Config,
    names: BTreeMap<String, Vec<IpAddr>>,
    loss: Fate,
    failure: Fate,
    /// Answers with the moment they are sent; all wait equally long.
    waiting: VecDeque<(Instant, SocketAddr, Vec<u8>)>,
    counts: Counts,
}

/// Builds the server from its table.
pub fn build(value: &Value, parts: &AppParts) -> Result<Box<dyn App>, ConfigError> {
    let config: Config = airloom_base::config::read(value)?;
    let mut names: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
    for (name, address) in (parts.addresses)() {
        names.entry(name.to_ascii_lowercase()).or_default().push(address);
    }
    let fate = |purpose: &str| Fate::new(parts.seed, &format!("{}.app.names.{purpose}", parts.host));
    Ok(Box::new(NameServer::new(config, names, fate("loss"), fate("failure"))))
}

impl NameServer {
    /// A server that knows `names`, in lower case, besides those of its table.
    pub fn new(
        config: Config,
        mut names: BTreeMap<String, Vec<IpAddr>>,
        loss: Fate,
        failure: Fate,
    ) -> NameServer {
        for (name, addresses) in &config.names {
            names.insert(name.trim_end_matches('.').to_ascii_lowercase(), addresses.clone());
        }
        NameServer { config, names, loss, failure, waiting: VecDeque::new(), counts: Counts::default() }
    }

    /// The answer to a query, if it gets one.
    fn answer(&mut self, asked: &Query) -> Option<Vec<u8>> {
        let n = self.counts.queries;
        self.counts.queries += 1;
        let hangs = asked.kind == AAAA && self.config.aaaa == Aaaa::Hang;
        if hangs || self.loss.nth(n) < self.config.loss.get() {
            self.counts.lost += 1;
            return None;
        }
        let ttl_s = (self.config.ttl.as_nanos() / 1_000_000_000).min(u64::from(u32::MAX)) as u32;
        if self.failure.nth(n) < self.config.failure.get() {
            self.counts.failed += 1;
            return Some(asked.answer(Code::ServFail, &[], ttl_s));
        }
        let known = self.names.get(&asked.name);
        let (code, addresses) = match (known, self.config.aaaa) {
            (None, _) => (Code::NxDomain, None),
            (Some(_), Aaaa::Refuse) if asked.kind == AAAA => (Code::Refused, None),
            (Some(_), Aaaa::Empty) if asked.kind == AAAA => (Code::NoError, None),
            (Some(addresses), _) if asked.is_for_addresses() => (Code::NoError, Some(addresses)),
            (Some(_), _) => (Code::NoError, None),
        };
        self.counts.unknown += u64::from(known.is_none());
        self.counts.answered += 1;
        Some(asked.answer(code, addresses.map_or(&[], Vec::as_slice), ttl_s))
    }
}

impl App for NameServer {
    fn datagram_ports(&self) -> Vec<u16> {
        vec![self.config.port]
    }

    fn handle_event(&mut self, _: &mut Cx, _: &mut dyn Sockets, _: SocketId, _: SocketEvent) {}

    fn handle_datagram(&mut self, cx: &mut Cx, net: &mut dyn Sockets, datagram: Datagram) {
        let Datagram::Udp { remote, body, .. } = datagram else { return };
        let answer = match message::read(&body.to_bytes()) {
            Asked::Query(asked) => self.answer(&asked),
            Asked::Wrong(id, flags, code) => Some(message::refusal(id, flags, code)),
            Asked::Nothing => None,
        };
        if let Some(answer) = answer.filter(|_| self.waiting.len() < MOST_WAITING) {
            self.waiting.push_back((cx.now + self.config.delay, remote, answer));
        }
        self.handle_timeout(cx, net);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.waiting.front().map(|(at, ..)| *at)
    }

    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        while self.poll_timeout().is_some_and(|at| at <= cx.now) {
            let Some((_, remote, octets)) = self.waiting.pop_front() else { return };
            let (local_port, body) = (self.config.port, Body::Real(octets.into()));
            net.send_datagram(cx, Datagram::Udp { local_port, remote, body });
        }
    }

    fn summarise(&self, out: &mut Summary) {
        out.set("dns_queries", self.counts.queries as f64);
        out.set("dns_answered", self.counts.answered as f64);
        out.set("dns_not_answered", self.counts.lost as f64);
        out.set("dns_failed", self.counts.failed as f64);
        out.set("dns_unknown", self.counts.unknown as f64);
    }
}

//! A scenario as understood becomes a world.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::IpAddr;

use airloom_base::units::Octets;
use airloom_base::{App, ConfigError};
use airloom_bearers::faults::Faulty;
use serde_json::{Value, json};

use crate::builder::{BuildError, Builder, End, HostId, LinkId, NAME_SERVER, Part};
use crate::port::RealTcp;
use crate::scenario::{Component, Destination, Host, Prefix, RecordKind, Scenario};
use crate::world::World;

impl Scenario {
    /// Builds the network. Hosts marked `real` become ports if `real_time` is set, and are simulated otherwise.
    ///
    /// What can still be wrong after parsing is said with the component's name: a value that only its own builder
    /// can judge, or a change of the timeline that the link does not know.
    pub fn build(&self, real_time: bool) -> Result<World, BuildError> {
        self.build_network(real_time, Vec::new())
    }

    /// The same with all hosts simulated, and these applications on those that are named: they stand between the network and
    /// something outside ([`World::wake`]).
    pub fn build_with(&self, edges: Vec<(&str, Box<dyn App>)>) -> Result<World, BuildError> {
        self.build_network(false, edges)
    }

    fn build_network(&self, real_time: bool, edges: Vec<(&str, Box<dyn App>)>) -> Result<World, BuildError> {
        let mut b = Builder::new(self.run.seed);
        b.captured(self.run.records(RecordKind::Pcapng));
        let has_real_hosts = real_time && self.hosts.iter().any(|host| host.real);
        b.with_real_hosts(has_real_hosts);
        let session = if has_real_hosts { None } else { self.session()? };
        let hosts: Vec<HostId> = self.hosts.iter().map(|h| b.host(&h.name)).collect();
        b.environments(self.environments.clone());
        for (host, id) in self.hosts.iter().zip(&hosts) {
            if let Some(work) = host.settings.work.filter(|_| !(host.real && real_time)) {
                b.work(*id, work);
            }
        }
        for link in &self.links {
            let fail = |error| BuildError::new(format!("links.{}", link.name), error);
            let unknown = || ConfigError::at("bearer", format!("there is no bearer `{}`", link.bearer.name));
            let entry = airloom_bearers::find(&link.bearer.name).ok_or_else(|| fail(unknown()))?;
            b.mtu(link.mtu);
            let mut parts = b.parts(&link.name, link.near.len());
            let bearer = (entry.build)(&link.bearer.given, &mut parts);
            // Inside a bundle this would be said of a member.
            parts.check_points().map_err(fail)?;
            let mut bearer = bearer.map_err(fail)?;
            let spare = link.spare_addresses();
            if let Some(faults) = link.faults.clone() {
                let faulty = Faulty::new(bearer, faults, &spare, &mut parts);
                bearer = Box::new(faulty.map_err(|error| fail(error.below("faults")))?);
            }
            let end =
                |i: &crate::scenario::Interface| End { host: hosts[i.host], addresses: link.addresses(i) };
            let id = b.link_with(&link.name, bearer, link.near.iter().map(end).collect(), end(&link.far))?;
            b.networks(id, link.subnet.length, link.subnet6.length);
            if let Some(grade) = link.grade {
                b.grade(id, grade)?;
            }
            b.translated(hosts[link.near[0].host], id, &spare);
        }
        for (host, id) in self.hosts.iter().zip(&hosts) {
            if let Some(proxy) = &host.settings.proxy {
                b.has_proxy(*id, &proxy.name);
            }
        }
        for (host, id) in self.hosts.iter().zip(&hosts) {
            self.furnish(&mut b, host, *id, session, real_time)?;
        }
        for entry in &self.timeline {
            for change in &entry.changes {
                b.at(entry.at, LinkId(entry.link as u32), &entry.part, *change);
            }
        }
        if let Some(exit) = self.hosts.iter().position(|h| h.settings.outside && h.real && real_time) {
            b.exit(hosts[exit]);
        }
        if let Some(door) =
            self.hosts.iter().position(|h| !h.settings.loopback.is_empty() && h.real && real_time)
        {
            b.loopback(hosts[door], self.hosts[door].settings.loopback.clone());
        }
        for (name, app) in edges {
            let at = self.hosts.iter().position(|h| h.name == name);
            let unknown = || ConfigError::at("hosts", format!("there is no host `{name}`"));
            let at = at.ok_or_else(|| BuildError::new("hosts", unknown()))?;
            b.app_at_the_edge(hosts[at], app);
        }
        self.ask(&mut b);
        b.build()
    }

    /// What hosts say of QUIC's sessions. Both ends of a connection need the same one: hosts that leave it open follow those that
    /// do not.
    fn session(&self) -> Result<Option<&Value>, BuildError> {
        let mut said: Option<&Value> = None;
        for host in &self.hosts {
            let all = host.settings.transports.iter().enumerate().map(|(n, t)| (Part::Transport(n), t));
            let of_links =
                host.settings.interfaces.iter().map(|(name, t)| (Part::Interface(name.clone()), t));
            for (part, transport) in all.chain(of_links) {
                let Some(session) = named_session(transport) else { continue };
                if let Some(other) = said.filter(|other| *other != session) {
                    let why = format!("another host has {other}, and ends that differ never connect");
                    let component = format!("hosts.{}", host.name);
                    return Err(BuildError::new(component, ConfigError::at("session", why)).of(part));
                }
                said = Some(session);
            }
        }
        Ok(said)
    }

    fn furnish(
        &self,
        b: &mut Builder,
        host: &Host,
        id: HostId,
        session: Option<&Value>,
        real_time: bool,
    ) -> Result<(), BuildError> {
        b.forwards(id, host.forwards);
        for route in &host.routes {
            let (link, via) = (LinkId(route.link as u32), HostId(route.via as u32));
            for Prefix { address, length } in self.prefixes(route.to) {
                b.route(id, address, length, link, via);
            }
        }
        if host.real && real_time {
            b.real_with(id, host.settings.command.clone(), real_tcp(&host.settings.transports));
            b.port_device(id, host.settings.port);
            return Ok(());
        }
        for (n, transport) in host.settings.transports.iter().enumerate() {
            let made = b.transport(id, &transport.name, &following(transport, session));
            made.map_err(|error| error.of(Part::Transport(n)))?;
        }
        for (name, transport) in &host.settings.interfaces {
            let Some(link) = self.links.iter().position(|l| l.name == *name) else { continue };
            let given = following(transport, session);
            let made = b.transport_on(id, LinkId(link as u32), &transport.name, &given);
            made.map_err(|error| error.of(Part::Interface(name.clone())))?;
        }
        let far_end = self.far_end(host);
        for (n, app) in host.settings.apps.iter().enumerate() {
            b.app(id, &app.name, &app.given, far_end).map_err(|error| error.of(Part::App(n)))?;
        }
        if let Some(proxy) = &host.settings.proxy {
            b.proxy(id, &proxy.name, &proxy.given, far_end).map_err(|error| error.of(Part::Proxy))?;
        }
        Ok(())
    }

    /// Whom an application talks to if its table does not say: the last other host that serves something, or the
    /// last other host.
    fn far_end(&self, of: &Host) -> Option<&str> {
        let others = || self.hosts.iter().rev().filter(|h| h.name != of.name);
        let serves = |h: &&Host| {
            let is_server = |name: &str| name.ends_with("server") && name != NAME_SERVER;
            h.settings.apps.iter().any(|a| is_server(&a.name)) || h.settings.command.is_some()
        };
        others().find(serves).or_else(|| others().next()).map(|h| h.name.as_str())
    }

    /// The prefixes that a route's destination means.
    fn prefixes(&self, to: Destination) -> Vec<Prefix> {
        match to {
            Destination::Prefix(p) => vec![p],
            Destination::Link(l) => vec![self.links[l].subnet, self.links[l].subnet6],
            Destination::Host(h) => {
                let interfaces = self.links.iter().flat_map(|l| l.interfaces()).filter(|i| i.host == h);
                interfaces.flat_map(|i| [exact(i.ipv4.into()), exact(i.ipv6.into())]).collect()
            }
        }
    }

    /// The IP points that a capture shows if the scenario names none: where a host that passes nothing on meets a
    /// link at its near end. So each flow is seen once: a reader of captures keeps one state per connection, takes a
    /// second sighting for a retransmission, and reports errors that are not there.
    fn views(&self) -> BTreeSet<String> {
        let near =
            self.links.iter().flat_map(|link| link.near.iter().map(move |i| (link, &self.hosts[i.host])));
        let ends = near.filter(|(_, host)| !host.forwards);
        ends.map(|(link, host)| format!("{}.{}.ip", host.name, link.name)).collect()
    }

    fn ask(&self, b: &mut Builder) {
        let run = &self.run;
        let rows = run.records(RecordKind::Packets);
        let octets = run.records(RecordKind::Pcapng);
        let views = self.views();
        b.records().ask(|point| {
            let wanted = run.wants_point(&point.name);
            let is_view = run.points.is_some()
                || !point.name.ends_with(".ip")
                || views.is_empty()
                || views.contains(&point.name);
            (rows && wanted, octets && wanted && is_view)
        });
        b.records().ask_facts(true, run.records(RecordKind::Congestion));
        b.records().ask_objects(run.records(RecordKind::Objects));
        b.records().ask_qlog(run.records(RecordKind::Qlog));
    }
}

/// The session of simulated hosts that a host's QUIC is to have, if that is not left open.
fn named_session(transport: &Component) -> Option<&Value> {
    let is_named = |session: &&Value| **session == "model" || **session == "seeded";
    if transport.name == "quic" { transport.given.get("session").filter(is_named) } else { None }
}

/// The keys of a transport. Where it is QUIC and leaves its session open, that is `session`, if others have said so.
fn following<'a>(transport: &'a Component, session: Option<&Value>) -> Cow<'a, Value> {
    let mut given = Cow::Borrowed(&transport.given);
    if let Some(session) = session.filter(|_| transport.name == "quic" && named_session(transport).is_none())
        && let Value::Object(keys) = given.to_mut()
    {
        keys.insert("session".to_owned(), session.clone());
    }
    given
}

/// What a real host's kernel is told: its congestion control, whatever the machine's default is, and of the other settings
/// those that are not what plain `"tcp"` means.
fn real_tcp(transports: &[Component]) -> RealTcp {
    let usual = airloom_transports::find("tcp").and_then(|t| (t.understood)(&json!({})).ok());
    let tcp = transports.iter().find(|transport| transport.name == "tcp");
    let Some((usual, transport)) = usual.zip(tcp) else { return RealTcp::default() };
    let value = |key: &str| transport.config.get(key);
    let other = |key: &str| value(key).filter(|v| usual.get(key) != Some(v));
    let size = |value: &Value| value.as_str()?.parse::<Octets>().ok().map(|o| o.0);
    let octets = |key: &str| other(key).and_then(size);
    // A buffer that grows needs both of its sizes told, where any of this is unusual.
    let buffer = |key: &str, grows: &str, max: &str| {
        let is_unusual = [key, grows, max].iter().any(|key| other(key).is_some());
        if !is_unusual {
            return (None, None);
        }
        let grows = value(grows).and_then(Value::as_bool) == Some(true);
        (value(key).and_then(size), value(max).filter(|_| grows).and_then(size))
    };
    let (receive_buffer, receive_buffer_max) =
        buffer("receive_buffer", "receive_autotuning", "receive_buffer_max");
    let (send_buffer, send_buffer_max) = buffer("send_buffer", "send_autotuning", "send_buffer_max");
    let switch = |key: &str| other(key)?.as_bool();
    RealTcp {
        receive_buffer,
        receive_buffer_max,
        initial_receive_window: octets("initial_receive_window"),
        send_buffer,
        send_buffer_max,
        congestion: value("congestion").and_then(Value::as_str).map(str::to_owned),
        initial_window: other("initial_window").and_then(segments),
        sack: switch("sack"),
        dsack: switch("dsack"),
        tlp: switch("tlp"),
        frto: switch("frto"),
        timestamps: switch("timestamps"),
        window_scaling: switch("window_scaling"),
        ecn: other("ecn").and_then(Value::as_str).map(|ecn| match ecn {
            "off" => 0,
            "on" => 1,
            _ => 2,
        }),
    }
}

/// A kernel counts the initial window in segments: for a standard's name those that it means with segments of 1460
/// octets.
fn segments(window: &Value) -> Option<u32> {
    match window.as_str() {
        Some("rfc2001") => Some(1),
        Some("rfc2581") => Some(2),
        //= RFC 3390 (1): min(4 MSS, max(2 MSS, 4380)).
        Some("rfc3390") => Some(3),
        //= RFC 5681 (3.1): 3 segments between 1095 and 2190 octets.
        Some("rfc5681") => Some(3),
        Some("rfc6928") => Some(10),
        _ => window.as_u64()?.try_into().ok(),
    }
}

fn exact(address: IpAddr) -> Prefix {
    Prefix { address, length: if address.is_ipv4() { 32 } else { 128 } }
}

#[cfg(test)]
mod tests {
    use airloom_base::{Duration, Instant};

    use super::*;

    /// The points whose octets a capture of `run` would have, on a chain of two wires.
    fn captured(run: &str) -> Vec<String> {
        let text = format!(
            r#"
            path = ["mobile", "radio", "gateway", "internet", "origin"]
            [hosts]
            mobile = {{ app = "http-client" }}
            gateway = {{}}
            origin = {{ app = "http-server" }}
            [links]
            radio = {{ bearer = "wireline" }}
            internet = {{ bearer = "wireline" }}
            [run]
            record = ["pcapng", "packets"]
            {run}
            "#
        );
        let scenario = Scenario::parse("test", &text).unwrap_or_else(|e| panic!("{e}"));
        let mut world = scenario.build(false).unwrap();
        world.records().points().iter().filter(|p| p.octets).map(|p| p.name.clone()).collect()
    }

    #[test]
    fn a_capture_shows_each_flow_once_unless_points_are_named() {
        let inside =
            ["radio.queue.ul.tx", "radio.queue.dl.tx", "internet.queue.ul.tx", "internet.queue.dl.tx"];
        let mut expected: Vec<String> = inside.map(str::to_owned).to_vec();
        expected.push("mobile.radio.ip".to_owned());
        expected.sort();
        let mut all = captured("");
        all.sort();
        assert_eq!(all, expected);
        assert_eq!(
            captured("points = [\"*.ip\"]"),
            ["mobile.radio.ip", "gateway.radio.ip", "gateway.internet.ip", "origin.internet.ip"]
        );
    }

    fn with_sessions(a: &str, b: &str) -> Result<World, String> {
        let text = format!(
            r#"
            path = ["a", "wire", "b"]
            [hosts]
            a = {{ app = {{ bulk = {{ size = "1kB" }} }}, transport = {{ quic = {a} }} }}
            b = {{ app = "bulk-server", transport = {{ quic = {b} }} }}
            [links]
            wire = {{ bearer = "wireline" }}
            "#
        );
        let scenario = Scenario::parse("test", &text).map_err(|e| e.to_string())?;
        scenario.build(false).map_err(|e| e.to_string())
    }

    #[test]
    fn hosts_that_leave_their_session_open_follow_those_that_do_not() {
        for (a, b) in
            [("{}", "{ session = \"seeded\" }"), ("{ session = \"seeded\" }", "{ session = \"auto\" }")]
        {
            let mut world = with_sessions(a, b).unwrap_or_else(|e| panic!("{e}"));
            let end = Instant::ZERO + Duration::from_secs(5);
            while let Some(at) = world.poll_timeout().filter(|at| *at <= end) {
                world.handle_timeout(at);
            }
            let summary = world.summary();
            assert_eq!(summary.values.get("transfers_failed").copied().unwrap_or(0.0), 0.0);
            assert_eq!(summary.values.get("transfers").copied(), Some(1.0), "{a} {b}");
        }
        let why = with_sessions("{ session = \"model\" }", "{ session = \"seeded\" }").err().unwrap();
        assert_eq!(
            why,
            "test:5:73: hosts.b.transport.quic.session: another host has \"model\", and ends that differ never connect"
        );
    }

    fn told(transport: &str) -> RealTcp {
        let text = format!(
            r#"
            path = ["a", "wire", "b"]
            hosts = {{ a = {{ transport = {transport} }}, b = {{}} }}
            links.wire = {{ bearer = "wireline" }}
            "#
        );
        let scenario = Scenario::parse("test", &text).unwrap_or_else(|e| panic!("{e}"));
        let host = scenario.hosts.iter().find(|h| h.name == "a").unwrap();
        real_tcp(&host.settings.transports)
    }

    #[test]
    fn a_kernel_is_told_its_congestion_control_and_what_is_not_usual() {
        let plain = RealTcp { congestion: Some("cubic".to_owned()), ..RealTcp::default() };
        assert_eq!(told("\"tcp\""), plain);
        assert_eq!(told("{ tcp = { profile = \"linux\", sack = true } }"), plain);
        // The usual size, but one that does not grow.
        let fixed = RealTcp { receive_buffer: Some(65_536), ..plain };
        assert_eq!(told("{ tcp = { receive_buffer = \"64KiB\" } }"), fixed);
        let all = "{ tcp = { congestion = \"newreno\", receive_buffer = \"2MB\", send_buffer = \"100kB\", \
                   initial_receive_window = \"1MB\", initial_window = 3, sack = false, dsack = false, tlp = false, frto = false, \
                   timestamps = false, window_scaling = false, ecn = \"off\" } }";
        let expected = RealTcp {
            receive_buffer: Some(2_000_000),
            initial_receive_window: Some(1_000_000),
            send_buffer: Some(100_000),
            receive_buffer_max: None,
            send_buffer_max: None,
            congestion: Some("newreno".to_owned()),
            initial_window: Some(3),
            sack: Some(false),
            dsack: Some(false),
            tlp: Some(false),
            frto: Some(false),
            timestamps: Some(false),
            window_scaling: Some(false),
            ecn: Some(0),
        };
        assert_eq!(told(all), expected);
        let grows =
            told("{ tcp = { send_buffer = \"50kB\", send_autotuning = true, send_buffer_max = \"1MB\" } }");
        assert_eq!((grows.send_buffer, grows.send_buffer_max), (Some(50_000), Some(1_000_000)));
        let windows = ["rfc2001", "rfc2581", "rfc3390", "rfc5681"]
            .map(|name| told(&format!("{{ tcp = {{ initial_window = \"{name}\" }} }}")).initial_window);
        assert_eq!(windows, [Some(1), Some(2), Some(3), Some(3)]);
    }
}

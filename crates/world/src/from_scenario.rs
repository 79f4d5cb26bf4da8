//! A scenario as understood becomes a world.

use std::collections::BTreeSet;
use std::net::IpAddr;

use airloom_base::ConfigError;
use airloom_base::units::Octets;
use serde_json::json;

use crate::builder::{BuildError, Builder, End, HostId, LinkId};
use crate::port::RealTcp;
use crate::scenario::{Component, Destination, Host, Prefix, RecordKind, Scenario};
use crate::world::World;

impl Scenario {
    /// Builds the network. Hosts marked `real` become ports if `real_time` is set, and are simulated otherwise.
    ///
    /// What can still be wrong after parsing is said with the component's name: a value that only its own builder
    /// can judge, or a change of the timeline that the link does not know.
    pub fn build(&self, real_time: bool) -> Result<World, BuildError> {
        let mut b = Builder::new(self.run.seed);
        let hosts: Vec<HostId> = self.hosts.iter().map(|h| b.host(&h.name)).collect();
        for link in &self.links {
            let fail = |error| BuildError { component: format!("links.{}", link.name), error };
            let unknown = || ConfigError::at("bearer", format!("there is no bearer `{}`", link.bearer.name));
            let entry = airloom_bearers::find(&link.bearer.name).ok_or_else(|| fail(unknown()))?;
            let mut parts = b.parts(&link.name, link.near.len());
            let bearer = (entry.build)(&link.bearer.config, &mut parts).map_err(fail)?;
            let end = |i: &crate::scenario::Interface| End {
                host: hosts[i.host],
                addresses: vec![i.ipv4.into(), i.ipv6.into()],
            };
            let id = b.link_with(&link.name, bearer, link.near.iter().map(end).collect(), end(&link.far))?;
            if let Some(grade) = link.grade {
                b.grade(id, grade)?;
            }
        }
        for (host, id) in self.hosts.iter().zip(&hosts) {
            self.furnish(&mut b, host, *id, real_time)?;
        }
        for entry in &self.timeline {
            for change in &entry.changes {
                b.at(entry.at, LinkId(entry.link as u32), &entry.part, *change);
            }
        }
        self.ask(&mut b);
        b.build()
    }

    fn furnish(&self, b: &mut Builder, host: &Host, id: HostId, real_time: bool) -> Result<(), BuildError> {
        b.forwards(id, host.forwards);
        for route in &host.routes {
            let (link, via) = (LinkId(route.link as u32), HostId(route.via as u32));
            for Prefix { address, length } in self.prefixes(route.to) {
                b.route(id, address, length, link, via);
            }
        }
        if host.real && real_time {
            b.real_with(id, host.settings.command.clone(), real_tcp(&host.settings.transport));
            b.port_device(id, host.settings.port);
            return Ok(());
        }
        let transport = &host.settings.transport;
        b.transport(id, &transport.name, &transport.config)?;
        let far_end = self.far_end(host);
        for app in &host.settings.apps {
            b.app(id, &app.name, &app.config, far_end)?;
        }
        if let Some(proxy) = &host.settings.proxy {
            let error = ConfigError::at("proxy", format!("there is no proxy `{}`", proxy.name));
            return Err(BuildError { component: format!("hosts.{}", host.name), error });
        }
        Ok(())
    }

    /// Whom an application talks to if its table does not say: the last other host that serves something, or the
    /// last other host.
    fn far_end(&self, of: &Host) -> Option<&str> {
        let others = || self.hosts.iter().rev().filter(|h| h.name != of.name);
        let serves = |h: &&Host| {
            h.settings.apps.iter().any(|a| a.name.ends_with("server")) || h.settings.command.is_some()
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
    }
}

/// What a real host's kernel is told: those of its TCP's buffers and congestion control that are not what plain
/// `"tcp"` means.
fn real_tcp(transport: &Component) -> RealTcp {
    let usual = airloom_transports::find("tcp").and_then(|t| (t.understood)(&json!({})).ok());
    let Some(usual) = usual.filter(|_| transport.name == "tcp") else { return RealTcp::default() };
    let other = |key: &str| {
        let value = transport.config.get(key)?;
        (usual.get(key) != Some(value)).then_some(value)?.as_str().map(str::to_owned)
    };
    let octets = |key: &str| other(key)?.parse::<Octets>().ok().map(|o| o.0);
    RealTcp {
        receive_buffer: octets("receive_buffer"),
        send_buffer: octets("send_buffer"),
        congestion: other("congestion"),
    }
}

fn exact(address: IpAddr) -> Prefix {
    Prefix { address, length: if address.is_ipv4() { 32 } else { 128 } }
}

#[cfg(test)]
mod tests {
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
}

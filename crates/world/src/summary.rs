//! The results of a run as one flat map.

use std::collections::BTreeMap;

use airloom_base::{Cx, Summary};

use crate::host::{AppSlot, Host};
use crate::world::World;

impl World {
    /// Reports the flows that are still open; call once, when the run ends.
    pub fn close_books(&mut self) {
        self.observed.report(&mut self.records);
        for host in &mut self.hosts {
            let net = &mut host.net;
            for connection in net.slots.iter_mut().filter_map(|s| s.connection.as_deref_mut()) {
                let proto = net.protocols[usize::from(connection.protocol)].name();
                connection.report(
                    &mut Cx { now: self.now, records: &mut self.records },
                    proto,
                    &mut self.totals,
                );
            }
        }
    }

    /// What was counted: values of a host or link begin with its name; a value that only one component has is
    /// given without the name too, so that scripts need not know what a host is called. Where several applications
    /// of a host count the same, theirs are told apart as `host.app[0].name`, `host.app[1].name`, ..
    pub fn summary(&self) -> Summary {
        let mut all = Summary::default();
        let mut owned = Vec::new();
        let components =
            self.hosts.iter().filter(|h| h.ports.is_none()).map(|h| (&h.name, of_apps(h))).chain(
                self.links.iter().map(|l| {
                    let mut one = Summary::default();
                    l.bearer.summarise(&mut one);
                    (&l.name, one)
                }),
            );
        for (name, one) in components {
            all.set_owner(name);
            one.values.iter().for_each(|(key, value)| all.set(key, *value));
            owned.push(one);
        }
        all.set_owner("");
        let links = &owned[owned.len() - self.links.len()..];
        let lost: f64 = links.iter().filter_map(|s| s.values.get("lost")).sum();
        let mut sharers = BTreeMap::new();
        for (key, value) in owned.iter().flat_map(|s| &s.values) {
            sharers.entry(key).and_modify(|(n, _)| *n += 1).or_insert((1, *value));
        }
        for (key, (_, value)) in sharers.into_iter().filter(|(_, (n, _))| *n == 1) {
            all.set(key, value);
        }
        all.set("lost", lost);
        all.set("packets", self.records.packet_count() as f64);
        all.set("simulated_s", self.now.as_secs_f64());
        all.set("events", self.events() as f64);
        all.set("segments", self.totals.segments as f64);
        all.set("resent", self.totals.resent as f64);
        all.set("spurious", self.totals.spurious as f64);
        all.set("rto_count", self.totals.rto_count as f64);
        let strays = self.strays();
        all.set("no_route", strays.no_route as f64);
        all.set("hop_limit_exceeded", strays.hop_limit as f64);
        all.set("too_big", strays.too_big as f64);
        all.set("malformed", strays.malformed as f64);
        all
    }
}

/// What the applications of a host counted.
fn of_apps(host: &Host) -> Summary {
    let summarise = |slot: &AppSlot| {
        let mut one = Summary::default();
        slot.app.summarise(&mut one);
        one
    };
    let each: Vec<Summary> = host.apps.iter().map(summarise).collect();
    let mut all = Summary::default();
    for (n, one) in each.iter().enumerate() {
        for (key, value) in &one.values {
            let shared = each.iter().filter(|other| other.values.contains_key(key)).count() > 1;
            all.set_owner(&if shared { format!("app[{n}]") } else { String::new() });
            all.set(key, *value);
        }
    }
    all.set_owner("");
    all
}

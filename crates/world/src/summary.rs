//! The results of a run as one flat map.

use std::collections::BTreeMap;
use std::sync::Arc;

use airloom_base::{Cx, Summary};

use crate::world::World;

/// What runs of one scenario count: the names of the results are worked out once, and again where they change.
#[derive(Default)]
pub struct Books {
    /// Those of applications, host by host, then those of links.
    parts: Vec<Summary>,
    names: Arc<[String]>,
    /// Where the value of each name comes from.
    sources: Vec<Source>,
    values: Vec<f64>,
}

/// Where a value comes from.
#[derive(Clone, Copy)]
enum Source {
    /// The part, and the number of the value in it.
    Part(usize, usize),
    /// The number in [`Totals`].
    Total(usize),
}

/// Names of what a world counts itself.
const TOTALS: [&str; 12] = [
    "lost",
    "packets",
    "simulated_s",
    "events",
    "segments",
    "resent",
    "spurious",
    "rto_count",
    "no_route",
    "hop_limit_exceeded",
    "too_big",
    "malformed",
];

impl Books {
    /// The names, sorted.
    pub fn names(&self) -> &Arc<[String]> {
        &self.names
    }

    /// The value of each name.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}

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

    /// What was counted, sorted by name. See [`World::summarise`].
    pub fn summary(&self) -> Summary {
        let mut books = Books::default();
        self.summarise(&mut books);
        books.names.iter().cloned().zip(books.values).collect()
    }

    /// Writes down what was counted: values of a host or link begin with its name; a value that only one component has is
    /// given without the name too, so that scripts need not know what a host is called. Where several applications
    /// of a host count the same, theirs are told apart as `host.app[0].name`, `host.app[1].name`, ..
    pub fn summarise(&self, books: &mut Books) {
        let count = self.apps_of_hosts().map(|(_, apps)| apps).sum::<usize>() + self.links.len();
        let mut is_as_before = books.parts.len() == count;
        books.parts.resize_with(count, Summary::default);
        let mut parts = books.parts.iter_mut();
        let apps = self.hosts.iter().filter(|h| h.ports.is_none()).flat_map(|h| &h.apps);
        for (slot, part) in apps.zip(parts.by_ref()) {
            part.again();
            slot.app.summarise(part);
            is_as_before &= part.values.are_as_before();
        }
        for (link, part) in self.links.iter().zip(parts) {
            part.again();
            link.bearer.summarise(part);
            is_as_before &= part.values.are_as_before();
        }
        if !is_as_before {
            self.name(books);
        }
        let totals = self.totals_of(&books.parts[count - self.links.len()..]);
        let value = |source: &Source| match *source {
            Source::Part(part, number) => books.parts[part].values.nth(number).unwrap_or(f64::NAN),
            Source::Total(number) => totals[number],
        };
        books.values.clear();
        books.values.extend(books.sources.iter().map(value));
    }

    /// Simulated hosts and how many applications each has.
    fn apps_of_hosts(&self) -> impl Iterator<Item = (&str, usize)> {
        self.hosts.iter().filter(|h| h.ports.is_none()).map(|h| (h.name.as_str(), h.apps.len()))
    }

    /// In the order of [`TOTALS`].
    fn totals_of(&self, links: &[Summary]) -> [f64; TOTALS.len()] {
        let lost: f64 = links.iter().filter_map(|s| s.values.get("lost")).sum();
        let (totals, strays) = (&self.totals, self.strays());
        [
            lost + 0.0,
            self.records.packet_count() as f64,
            self.now.as_secs_f64(),
            self.events() as f64,
            totals.segments as f64,
            totals.resent as f64,
            totals.spurious as f64,
            totals.rto_count as f64,
            strays.no_route as f64,
            strays.hop_limit as f64,
            strays.too_big as f64,
            strays.malformed as f64,
        ]
    }

    /// Works out what the values of the parts are called in the whole.
    fn name(&self, books: &mut Books) {
        let mut components: Vec<(&str, BTreeMap<String, Source>)> = Vec::new();
        let mut first = 0;
        for (host, apps) in self.apps_of_hosts() {
            components.push((host, of_apps(&books.parts[first..first + apps], first)));
            first += apps;
        }
        for (link, number) in self.links.iter().zip(first..) {
            components.push((&link.name, of_part(&books.parts[number], number)));
        }
        let mut sharers: BTreeMap<&str, (usize, Source)> = BTreeMap::new();
        for (key, source) in components.iter().flat_map(|(_, values)| values) {
            sharers.entry(key).and_modify(|(n, _)| *n += 1).or_insert((1, *source));
        }
        let mut all: BTreeMap<String, Source> = BTreeMap::new();
        for (name, values) in &components {
            all.extend(values.iter().map(|(key, source)| (format!("{name}.{key}"), *source)));
        }
        let alone = sharers.into_iter().filter(|(_, (n, _))| *n == 1);
        all.extend(alone.map(|(key, (_, source))| (key.to_owned(), source)));
        all.extend(TOTALS.iter().enumerate().map(|(n, name)| ((*name).to_owned(), Source::Total(n))));
        books.sources = all.values().copied().collect();
        books.names = all.into_keys().collect();
    }
}

fn of_part(part: &Summary, number: usize) -> BTreeMap<String, Source> {
    part.values.iter().zip(0..).map(|((name, _), n)| (name.to_owned(), Source::Part(number, n))).collect()
}

/// What the applications of a host counted; the first of them is part number `first`.
fn of_apps(parts: &[Summary], first: usize) -> BTreeMap<String, Source> {
    let each: Vec<BTreeMap<String, Source>> =
        parts.iter().zip(first..).map(|(part, number)| of_part(part, number)).collect();
    let mut all = BTreeMap::new();
    for (n, one) in each.iter().enumerate() {
        for (key, source) in one {
            let shared = each.iter().filter(|other| other.contains_key(key)).count() > 1;
            all.insert(if shared { format!("app[{n}].{key}") } else { key.clone() }, *source);
        }
    }
    all
}

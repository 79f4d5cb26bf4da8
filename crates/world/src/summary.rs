//! The results of a run as one flat map.

use std::borrow::Cow;
use std::sync::Arc;

use airloom_base::{Cx, Direction, Instant, Summary};

use crate::world::World;

/// What runs of one scenario count: the names of the results are worked out once, and again where they change.
#[derive(Default, getset::Getters)]
pub struct Books {
    /// Those of applications, host by host, then those of links.
    parts: Vec<Summary>,
    /// The names, sorted.
    #[getset(get = "pub")]
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
const TOTALS: [&str; 17] = [
    "lost",
    "packets",
    "simulated_s",
    "events",
    "segments",
    "resent",
    "spurious",
    "rto_count",
    "path_changes",
    "path_change_s",
    "path_silence_s",
    "path_validation_s",
    "path_lost_bytes",
    "no_route",
    "hop_limit_exceeded",
    "too_big",
    "malformed",
];

impl Books {
    /// The value of each name.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}

impl World {
    /// Reports the flows that are still open, and what links have not told yet; call once, when the run ends.
    pub fn close_books(&mut self) {
        self.observed.report(&mut self.records);
        for link in &mut self.links {
            link.bearer.close(&mut Cx { now: self.now, records: &mut self.records });
        }
        for host in &mut self.hosts {
            for slot in &mut host.apps {
                slot.app.close(&mut Cx { now: self.now, records: &mut self.records });
            }
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

    /// Writes down what was counted: values of a host or link begin with its name; a value that no other component can
    /// have is given without the name too, so that scripts need not know what a host is called, unless it would be called
    /// as another one is then. Where several applications of a host can count the same, theirs are told apart as
    /// `host.app[0].name`, `host.app[1].name`, .. So names are the same whatever came about; not-a-number stands where
    /// there is no value.
    pub fn summarise(&self, books: &mut Books) {
        let count = self.apps_of_hosts().map(|(_, apps)| apps).sum::<usize>() + self.links.len();
        let mut is_as_before = books.parts.len() == count;
        books.parts.resize_with(count, Summary::default);
        let mut parts = books.parts.iter_mut();
        let apps = self.hosts.iter().filter(|h| h.ports.is_none()).flat_map(|h| &h.apps);
        for (slot, part) in apps.zip(parts.by_ref()) {
            part.rewind();
            slot.app.summarise(part);
            is_as_before &= part.values.are_as_before();
        }
        for (link, part) in self.links.iter().zip(parts) {
            part.rewind();
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
        let lost: f64 = links.iter().map(lost_on).sum();
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
            totals.path_changes as f64,
            totals.path_change.map_or(0.0, Instant::as_secs_f64),
            totals.path_silence.as_secs_f64(),
            totals.path_validation.as_secs_f64(),
            totals.path_lost_bytes as f64,
            strays.no_route as f64,
            strays.hop_limit as f64,
            strays.too_big as f64,
            strays.malformed as f64,
        ]
    }

    /// Works out what the values of the parts are called in the whole.
    fn name(&self, books: &mut Books) {
        // Host or link, name there, source.
        let mut values: Vec<(usize, Cow<'_, str>, Source)> = Vec::new();
        let mut owners: Vec<&str> = Vec::new();
        let mut first = 0;
        for (host, apps) in self.apps_of_hosts() {
            let each = &books.parts[first..first + apps];
            for (n, part) in each.iter().enumerate() {
                values.extend(of_part(part, first + n).map(|(name, source)| {
                    let others = each.iter().enumerate().filter(|(other, _)| *other != n);
                    let is_shared =
                        others.into_iter().any(|(_, other)| other.values.names().any(|n| n == name));
                    let name = if is_shared { format!("app[{n}].{name}").into() } else { name.into() };
                    (owners.len(), name, source)
                }));
            }
            owners.push(host);
            first += apps;
        }
        for (link, number) in self.links.iter().zip(first..) {
            let of_link = of_part(&books.parts[number], number);
            values.extend(of_link.map(|(name, source)| (owners.len(), name.into(), source)));
            owners.push(&link.name);
        }
        // Stable: of two values with one name in one place the later one counts.
        values.sort_by(|(a_owner, a, _), (b_owner, b, _)| (a, a_owner).cmp(&(b, b_owner)));
        let mut all: Vec<(String, Source)> = Vec::with_capacity(2 * values.len() + TOTALS.len());
        for same in values.chunk_by(|(_, a, _), (_, b, _)| a == b) {
            let (owner, name, source) = &same[same.len() - 1];
            if same[0].0 == *owner {
                all.push((name.to_string(), *source));
            }
        }
        all.extend(TOTALS.iter().enumerate().map(|(n, name)| ((*name).to_owned(), Source::Total(n))));
        // Last, since of what is called the same the last one counts: `uplink.lost` of a host called `uplink` is its
        // own.
        all.extend(
            values.iter().map(|(owner, name, source)| ([owners[*owner], ".", name].concat(), *source)),
        );
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        all.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0;
            if is_same {
                kept.1 = later.1;
            }
            is_same
        });
        books.sources = all.iter().map(|(_, source)| *source).collect();
        books.names = all.into_iter().map(|(name, _)| name).collect();
    }
}

/// Packets that a link lost: on the way, or in its queue.
fn lost_on(link: &Summary) -> f64 {
    let get = |name: &str| link.values.get(name).copied();
    let both = |name: &str| -> f64 {
        Direction::BOTH.iter().filter_map(|d| get(&format!("{}.{name}", d.name()))).sum()
    };
    // Wires say it for both directions at once, with what their queues dropped.
    get("lost").unwrap_or_else(|| both("lost") + both("queue_drops"))
}

/// The values of a part, with the part's number.
fn of_part(part: &Summary, number: usize) -> impl Iterator<Item = (&str, Source)> {
    part.values.names().zip(0..).map(move |(name, n)| (name, Source::Part(number, n)))
}

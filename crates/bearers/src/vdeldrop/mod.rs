//! VDELDROP: phases in which packets are dropped at a steady rate and delayed each differently, in front of any link.
//!
//! ```text
//!   the link below ──> arrives at a host ──> off phase: at once
//!                                       └──> on phase: every n-th (or by chance) dropped, the others a random time later
//! ```
//!
//! Source: the test protocol of Tsaoussidis and others 2000, section 4, which stood in the protocol stack of a host. What the
//! paper does not say are settings: the law of the drops (the stock x-kernel layer drops every n-th packet), at which
//! hosts it stood (`at`: it acts on what arrives there, as that layer did), the law of the delay, the first phase.
//!
//! Drops are counted in the packets that meet an on phase, each direction on its own. The count begins at a number that is
//! drawn with the seed: a periodic drop locks in step with a periodic sender otherwise.
//!
//! ```text
//!   phases.rs   when it acts
//! ```

mod phases;
#[cfg(test)]
mod tests;

use airloom_base::law::Law;
use airloom_base::random::{Fate, Stream};
use airloom_base::record::{Event, PacketFacts, PointKind};
use airloom_base::units::Probability;
use airloom_base::{
    Backlog, Bearer, BearerEvent, Change, Condition, ConfigError, Cx, Direction, Duration, Fault, Grade,
    Instant, LinkState, Packet, Parts, Passed, Point, Station, Summary, Unsupported,
};
use delegate::delegate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smart_default::SmartDefault;

use crate::late::Late;
use crate::nested::Nested;
use crate::traffic::{self, Taken};
use phases::Phases;
pub use phases::{First, Length};

/// Longest drawn delay, seconds.
const LONGEST_S: f64 = 3600.0;

/// At which hosts the element stands; it acts on what arrives there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum At {
    /// At the mobile (on a wire: the host named first): packets of the downlink.
    #[default]
    Mobile,
    /// At the network's end: packets of the uplink.
    Network,
    /// At both.
    Both,
}

/// Phases in which packets are dropped and delayed, in front of any other bearer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The link below.
    pub over: Nested,
    /// Length of the phases in which it acts: a duration, 0s or 1 ms at least, or a law of seconds.
    #[default(Length::Fixed(Duration::from_secs(10)))]
    pub on: Length,
    /// Length of the phases in which it does not.
    #[default(Length::Fixed(Duration::from_secs(10)))]
    pub off: Length,
    /// `"off"`, `"on"` or `"random"`.
    pub first: First,
    /// At which host: `"mobile"`, `"network"` or `"both"`.
    pub at: At,
    /// In on phases every so many-th packet is dropped.
    pub every: Option<u32>,
    /// One in `every` is dropped by chance, each packet by itself, instead of every so many-th; without `every` none is.
    pub by_chance: bool,
    /// In on phases each packet is dropped with this probability; instead of `every`.
    pub probability: Option<Probability>,
    /// Seconds that each packet of an on phase is late.
    pub delay: Option<Law>,
    /// Does a packet that is less late wait for those before it? If not, it overtakes them.
    pub keep_order: bool,
}

/// What is dropped.
enum Drops {
    Never,
    /// Every n-th, counted from a drawn number on.
    Every {
        n: u64,
        from: u64,
    },
    /// By the packet's number.
    ByChance(Fate, f64),
}

/// The element on the packets of one direction.
struct Element {
    drops: Drops,
    delays: Stream,
    /// Packets that met an on phase.
    met: u64,
    dropped: u64,
    delayed: u64,
    /// What the link below delivered and nobody got, dropped here or held here when the link went down.
    taken: Taken,
    /// When the last packet is handed over, by station.
    latest: Vec<Instant>,
    point: Point,
}

/// See the module.
pub struct Vdeldrop {
    below: Box<dyn Bearer>,
    phases: Phases,
    elements: [Option<Element>; 2],
    delay: Option<Law>,
    keep_order: bool,
    /// What waits at its host.
    held: Late,
}

/// Builds the element and the link below from its table.
pub fn build(table: &Value, parts: &mut Parts) -> Result<Box<dyn Bearer>, ConfigError> {
    let config: Config = airloom_base::config::read(table)?;
    Ok(Box::new(Vdeldrop::new(&config, parts)?))
}

impl Vdeldrop {
    /// The element in front of the link that the configuration names.
    ///
    /// # Errors
    /// The key that makes no sense.
    pub fn new(config: &Config, parts: &mut Parts) -> Result<Self, ConfigError> {
        if config.every.is_some() && config.probability.is_some() {
            return Err(ConfigError::at("probability", "give either `every` or `probability`, not both"));
        }
        if config.every == Some(0) {
            return Err(ConfigError::at("every", "every 0th packet is none; 1 means all of them"));
        }
        if config.over.name() == "vdeldrop" {
            return Err(ConfigError::at(
                "over",
                "one `vdeldrop` is not over another: their counts have the same names",
            ));
        }
        if let Some(delay) = &config.delay {
            delay.check().map_err(|error| error.below("delay"))?;
        }
        let phases = Phases::new(&config.on, &config.off, config.first, parts.stream("vdeldrop.phases"))?;
        let elements = Direction::BOTH.map(|direction| {
            let acts = match config.at {
                At::Both => true,
                At::Mobile => direction == Direction::Downlink,
                At::Network => direction == Direction::Uplink,
            };
            acts.then(|| Element::new(config, direction, parts))
        });
        let below = config.over.build(parts).map_err(|error| error.below("over"))?;
        Ok(Vdeldrop {
            below,
            phases,
            elements,
            delay: config.delay.clone(),
            keep_order: config.keep_order,
            held: Late::default(),
        })
    }

    /// Takes what the link below hands over.
    fn take(&mut self, cx: &mut Cx) {
        self.held.reach(cx.now);
        while let Some((direction, station, packet)) = self.below.poll_delivery() {
            let is_copy = self.below.delivered_a_copy();
            let mut at = cx.now;
            if let Some(element) = &mut self.elements[direction as usize] {
                if self.phases.is_on(cx.now) {
                    if element.drops(cx, direction, &packet, is_copy) {
                        continue;
                    }
                    at += element.delay(self.delay.as_ref());
                }
                if self.keep_order
                    && let Some(latest) = element.latest.get_mut(usize::from(station.0))
                {
                    at = at.max(*latest);
                    *latest = at;
                }
            }
            self.held.push(at, (direction, station, packet), is_copy);
        }
    }

    fn taken(&self) -> [Taken; 2] {
        self.elements.each_ref().map(|each| each.as_ref().map_or(Taken::default(), |e| e.taken))
    }
}

impl Element {
    fn new(config: &Config, direction: Direction, parts: &mut Parts) -> Element {
        let chance = match config.every {
            Some(n) => config.by_chance.then(|| 1.0 / f64::from(n)),
            None => config.probability.map(Probability::get),
        };
        let drops = match (config.every, chance) {
            (_, Some(p)) => Drops::ByChance(parts.fate("vdeldrop").lane(direction, Station(0), 0), p),
            (Some(n), None) => {
                let n = u64::from(n);
                Drops::Every { n, from: parts.stream_of("vdeldrop.count", direction).below(n) }
            }
            (None, None) => Drops::Never,
        };
        let point = parts.point(&format!("vdeldrop.{}.rx", direction.short()), PointKind::Ip);
        Element {
            drops,
            delays: parts.stream_of("vdeldrop.delay", direction),
            met: 0,
            dropped: 0,
            delayed: 0,
            taken: Taken::default(),
            latest: vec![Instant::ZERO; usize::from(parts.stations)],
            point,
        }
    }

    /// Is this packet, which meets an on phase, dropped?
    fn drops(&mut self, cx: &mut Cx, direction: Direction, packet: &Packet, is_copy: bool) -> bool {
        let number = self.met;
        self.met += 1;
        let dropped = match &self.drops {
            Drops::Never => false,
            Drops::Every { n, from } => (number + from + 1).is_multiple_of(*n),
            Drops::ByChance(fate, probability) => fate.nth(number) < *probability,
        };
        if dropped {
            self.dropped += 1;
            self.loses(cx, direction, packet, is_copy, "vdeldrop");
        }
        dropped
    }

    fn loses(
        &mut self,
        cx: &mut Cx,
        direction: Direction,
        packet: &Packet,
        is_copy: bool,
        reason: &'static str,
    ) {
        self.taken.lose(packet, is_copy);
        let facts =
            || PacketFacts { reason: Some(reason), ..PacketFacts::of(packet, "ip", Event::Drop, direction) };
        cx.records.packet(cx.now, self.point, facts, |out| airloom_wire::edge::egress(packet, out));
    }

    fn delay(&mut self, law: Option<&Law>) -> Duration {
        let Some(law) = law else { return Duration::ZERO };
        let delay = Duration::from_secs_f64(law.draw(&mut self.delays).clamp(0.0, LONGEST_S));
        self.delayed += u64::from(!delay.is_zero());
        delay
    }
}

impl Bearer for Vdeldrop {
    fn send(&mut self, cx: &mut Cx, dir: Direction, station: Station, sdu: Packet) {
        self.below.send(cx, dir, station, sdu);
        self.take(cx);
    }

    fn poll_delivery(&mut self) -> Option<(Direction, Station, Packet)> {
        self.held.pop()
    }

    fn delivered_a_copy(&self) -> bool {
        self.held.was_copy
    }

    delegate! {
        to self.below {
            fn delivers_by_deadline(&self) -> bool;
            fn tells_events(&self) -> bool;
            fn poll_event(&mut self) -> Option<BearerEvent>;
            fn backlog(&self, now: Instant, dir: Direction, station: Station) -> Backlog;
            fn conditions(&self, out: &mut Vec<Condition>);
            fn switch(&mut self, now: Instant, fault: Fault, on: bool) -> Result<(), Unsupported>;
            fn faults(&self) -> Vec<(Fault, bool)>;
            fn close(&mut self, cx: &mut Cx);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.below.poll_timeout(), self.held.next()].into_iter().flatten().min()
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        // One deadline of the link below after the other: a late call moves nothing that comes later.
        while let Some(due) = self.below.poll_timeout().filter(|due| *due <= cx.now) {
            let mut then = Cx { now: due, records: &mut *cx.records };
            self.below.handle_timeout(&mut then);
            self.take(&mut then);
            if self.below.poll_timeout() == Some(due) {
                break;
            }
        }
        self.held.reach(cx.now);
    }

    fn apply(&mut self, cx: &mut Cx, part: &[u16], change: &Change) -> Result<(), Unsupported> {
        self.below.apply(cx, part, change)?;
        if part.is_empty() && matches!(change, Change::State(LinkState::Down)) {
            for ((direction, _, packet), is_copy) in self.held.take() {
                if let Some(element) = &mut self.elements[direction as usize] {
                    element.loses(cx, direction, &packet, is_copy, "link down");
                }
            }
            // Nothing waits for what was lost.
            self.elements.iter_mut().flatten().for_each(|element| element.latest.fill(cx.now));
        }
        Ok(())
    }

    fn passed(&self) -> [Passed; 2] {
        traffic::passed(self.below.passed(), self.taken(), self.held.originals())
    }

    fn grade(&self) -> Grade {
        // It counts datagrams: super-packets are cut.
        match self.below.grade() {
            Grade::Transparent => Grade::Packet,
            grade => grade,
        }
    }

    fn summarise(&self, out: &mut Summary) {
        let mut below = Summary::default();
        self.below.summarise(&mut below);
        for (name, value) in traffic::without(below, self.taken(), self.held.originals()).values.iter() {
            out.set(name, *value);
        }
        for direction in Direction::BOTH {
            let Some(element) = &self.elements[direction as usize] else { continue };
            let name = direction.name();
            for (what, value) in
                [("met", element.met), ("dropped", element.dropped), ("delayed", element.delayed)]
            {
                out.set(&format!("{name}.vdeldrop_{what}"), value as f64);
            }
        }
    }
}

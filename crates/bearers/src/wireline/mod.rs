//! A plain wire: rate, delay, a drop-tail queue and losses.
//!
//! ```text
//! send -> queue (drop-tail) -> serialisation at the rate -> loss -> delay -> (late? twice?) -> delivery
//! ```
//!
//! The queue counts the packet in service. Rate counts IP octets. A lost packet has used the wire. Order is kept unless
//! `reordering` says otherwise: a shorter delay set while packets are on their way does not let later ones overtake. One
//! event per packet: the end of serialisation and the arrival are computed when a packet enters.
//!
//! With `ecn` a queue that is longer than a threshold marks packets whose senders take part in ECN; what does not take part
//! only meets the end of the queue.
//!
//! ```text
//!   direction.rs   one direction: queue, serialisation, loss, delay; those of `trace/` as well
//! ```
//!
//! Left out: framing of a real medium, duplex conflicts.

mod direction;
#[cfg(test)]
mod tests;

use airloom_base::units::{EachWay, QueueLimit, Rate};
use airloom_base::{
    Backlog, Bearer, Change, ConfigError, Cx, Direction, Duration, Grade, Instant, LinkState, Packet, Parts,
    Passed, Station, Summary, Unsupported,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::channel::LossConfig;
use crate::faults::{Disorder, Faults, Faulty};
use crate::trace::delay::Delay;
use direction::OneWay;
pub(crate) use direction::Pace;

/// A wire with a fixed rate, delay, drop-tail queue and losses; packets may come late or twice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Rate, counted in IP octets. Without it packets take no time to send and never queue.
    pub rate: Option<EachWay<Rate>>,
    /// One-way delay after serialisation.
    pub delay: EachWay<Duration>,
    /// How much the sending side holds, the packet in service included (drop-tail). Without it: no limit.
    pub queue: Option<EachWay<QueueLimit>>,
    /// From how much waiting on (the packet in service included) packets of senders that know ECN are marked instead of
    /// waiting for a drop (RFC 3168, a plain threshold as in RFC 8257). Without it: never.
    pub ecn: Option<EachWay<QueueLimit>>,
    /// Losses after the queue, in the order of packets.
    pub loss: LossConfig,
    /// Packets that arrive twice; the copy comes directly behind its original, or `delay` after it would have arrived.
    pub duplication: Option<Disorder>,
    /// Packets that arrive `delay` late, so that those behind them overtake.
    pub reordering: Option<Disorder>,
}

/// See the module. On its own it keeps the order and hands nothing over twice: [`build`] adds what the configuration
/// says of that.
pub struct Wireline {
    ways: [OneWay; 2],
    state: LinkState,
    /// What arrives before this moment is delivered; zero when all of it was taken.
    due: Instant,
}

/// Builds a wire from its table.
pub fn build(table: &Value, parts: &mut Parts) -> Result<Box<dyn Bearer>, ConfigError> {
    let config: Config = airloom_base::config::read(table)?;
    let (duplication, reordering) = (config.duplication, config.reordering);
    let wire = Wireline::new(&config, parts, |d| {
        (Pace::Rate(config.rate.map(|rate| rate.get(d))), Delay::Fixed(config.delay.get(d)))
    })?;
    if duplication.is_none() && reordering.is_none() {
        return Ok(Box::new(wire));
    }
    let faults = Faults { duplication, reordering, ..Faults::default() };
    Ok(Box::new(Faulty::new(Box::new(wire), faults, &[], parts)?))
}

impl Wireline {
    /// A wire; more than one station makes no sense on it. `way` says of a direction when packets leave, and how long they are
    /// on their way then.
    pub(crate) fn new(
        config: &Config,
        parts: &mut Parts,
        way: impl Fn(Direction) -> (Pace, Delay),
    ) -> Result<Self, ConfigError> {
        if parts.stations > 1 {
            let message = "it has two ends, and is no cell of stations".into();
            return Err(ConfigError { path: Vec::new(), message });
        }
        let [up, down] = Direction::BOTH.map(|d| OneWay::new(way(d), config, d, parts));
        Ok(Wireline { ways: [up?, down?], state: LinkState::Up, due: Instant::ZERO })
    }

    /// When the next packet arrives, in either direction.
    #[inline]
    fn next_arrival(&self) -> Instant {
        self.ways[0].next_arrival().min(self.ways[1].next_arrival())
    }

    #[inline(never)]
    fn take_delivery(&mut self) -> Option<(Direction, Station, Packet)> {
        let [up, down] = &mut self.ways;
        if let Some(packet) = up.take(self.due) {
            return Some((Direction::Uplink, Station(0), packet));
        }
        if let Some(packet) = down.take(self.due) {
            return Some((Direction::Downlink, Station(0), packet));
        }
        self.due = Instant::ZERO;
        None
    }

    fn each(&mut self, only: Option<Direction>) -> impl Iterator<Item = &mut OneWay> {
        self.ways.iter_mut().filter(move |w| only.is_none_or(|d| d == w.direction))
    }
}

impl Bearer for Wireline {
    fn send(&mut self, cx: &mut Cx, dir: Direction, _station: Station, sdu: Packet) {
        self.ways[dir as usize].send(cx, sdu, self.state == LinkState::Up);
    }

    fn poll_delivery(&mut self) -> Option<(Direction, Station, Packet)> {
        // The usual last answer costs one look.
        if self.next_arrival() < self.due {
            return self.take_delivery();
        }
        self.due = Instant::ZERO;
        None
    }

    fn delivers_by_deadline(&self) -> bool {
        true
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        let first = self.next_arrival();
        (first != Instant::FAR_FUTURE).then_some(first)
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        self.due = cx.now + Duration::from_nanos(1);
    }

    fn backlog(&self, now: Instant, dir: Direction, _station: Station) -> Backlog {
        self.ways[dir as usize].backlog(now)
    }

    fn apply(&mut self, cx: &mut Cx, part: &[u16], change: &Change) -> Result<(), Unsupported> {
        if !part.is_empty() {
            return Err(Unsupported("it has no members"));
        }
        let now = cx.now;
        match *change {
            Change::State(state) => {
                self.state = state;
                if state == LinkState::Down {
                    self.ways.iter_mut().for_each(|w| w.cut(cx));
                }
            }
            Change::Rate(d, rate) => return self.each(d).try_for_each(|w| w.set_rate(now, rate)),
            Change::Delay(d, delay) => self.each(d).for_each(|w| w.delay = Delay::Fixed(delay)),
            Change::Loss(d, loss) => return self.each(d).try_for_each(|w| w.set_loss(loss)),
            Change::Queue(d, limit) => self.each(d).for_each(|w| w.limit = Some(limit)),
            Change::Fault(..) => return Err(Unsupported::NO_FAULT),
        }
        Ok(())
    }

    fn grade(&self) -> Grade {
        if self.ways.iter().all(OneWay::only_delays) { Grade::Transparent } else { Grade::Packet }
    }

    fn passed(&self) -> [Passed; 2] {
        self.ways.each_ref().map(OneWay::passed)
    }

    fn close(&mut self, cx: &mut Cx) {
        self.ways.iter_mut().for_each(|way| way.settle(cx.now));
    }

    fn summarise(&self, out: &mut Summary) {
        for d in Direction::BOTH {
            self.ways[d as usize].summarise(d, out);
        }
        out.set("lost", self.ways.iter().map(|w| w.lost() as f64).sum());
        out.set("queue_max_bytes", self.ways.iter().map(|w| w.queue_max() as f64).fold(0.0, f64::max));
    }
}

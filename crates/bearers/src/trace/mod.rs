//! A link that sends when a trace says: delivery opportunities, as Mahimahi records and replays them.
//!
//! ```text
//! send -> queue (drop-tail) -> opportunities of the trace -> loss -> delay (fixed, or a trace too) -> delivery
//! ```
//!
//! A trace is one number of milliseconds per line; each line is one chance to send [`OPPORTUNITY`] octets. At its end
//! it begins again, moved by its last number. Accounting is that of mm-link's code (its manual says 1500): a packet
//! takes four octets more than it has, for the header of the tunnel device. One chance may carry several small
//! packets; a packet that does not fit goes on in the next chance; a chance that nobody uses is lost.
//!
//! A pair of traces, `{ light = .., heavy = .. }`, answers to load: short bursts meet what a link gave while it was
//! lightly used, backlogged flows what it gave when it was saturated. A busy period begins with the light trace and goes
//! over to the heavy one when it has lasted for `ramp`. (The idea is that of CellReplay, NSDI 2025; the rule is ours.)
//!
//! One event per packet: when it will have been sent is known when it enters. A replayed trace does not answer to what is
//! sent otherwise: a real cell does, and so does `umts-dch`.
//!
//! Left out: queues other than drop-tail, opportunities that are shared by stations.

mod config;
mod delay;
mod direction;
mod file;
mod opportunities;
#[cfg(test)]
mod tests;

use airloom_base::{
    Backlog, Bearer, Change, ConfigError, Cx, Direction, Instant, LinkState, Packet, Parts, Passed, Station,
    Summary, Unsupported,
};
use serde_json::Value;

pub use config::{Config, Times};
pub use delay::Config as Delays;
use delay::Delay;
use direction::OneWay;

/// Octets of a delivery opportunity.
pub const OPPORTUNITY: u64 = 1504;
/// Octets by which a packet counts as larger than it is.
pub const OVERHEAD: u64 = 4;

/// See the module.
pub struct Trace {
    ways: [OneWay; 2],
    state: LinkState,
}

/// Builds the link from its table.
pub fn build(table: &Value, parts: &mut Parts) -> Result<Box<dyn Bearer>, ConfigError> {
    Ok(Box::new(Trace::new(&airloom_base::config::read(table)?, parts)?))
}

impl Trace {
    /// A link; more than one station makes no sense on it.
    pub fn new(config: &Config, parts: &mut Parts) -> Result<Self, ConfigError> {
        if parts.stations > 1 {
            let message = "a trace was taken with one station".to_owned();
            return Err(ConfigError { path: Vec::new(), message });
        }
        let [up, down] = Direction::BOTH.map(|d| OneWay::new(config, d, parts));
        Ok(Trace { ways: [up?, down?], state: LinkState::Up })
    }

    fn each(&mut self, only: Option<Direction>) -> impl Iterator<Item = &mut OneWay> {
        self.ways.iter_mut().filter(move |w| only.is_none_or(|d| d == w.direction))
    }
}

impl Bearer for Trace {
    fn send(&mut self, cx: &mut Cx, dir: Direction, _station: Station, sdu: Packet) {
        self.ways[dir as usize].send(cx, sdu, self.state == LinkState::Up);
    }

    fn poll_delivery(&mut self) -> Option<(Direction, Station, Packet)> {
        let [up, down] = &mut self.ways;
        if let Some(packet) = up.poll_delivery() {
            return Some((Direction::Uplink, Station(0), packet));
        }
        down.poll_delivery().map(|packet| (Direction::Downlink, Station(0), packet))
    }

    fn delivers_by_deadline(&self) -> bool {
        true
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.ways.iter().filter_map(OneWay::next_arrival).min()
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        for way in &mut self.ways {
            way.handle_timeout(cx.now);
        }
    }

    fn backlog(&self, now: Instant, dir: Direction, _station: Station) -> Backlog {
        self.ways[dir as usize].backlog(now)
    }

    fn apply(&mut self, cx: &mut Cx, part: &[u16], change: &Change) -> Result<(), Unsupported> {
        if !part.is_empty() {
            return Err(Unsupported("a trace has no members"));
        }
        match *change {
            Change::State(state) => {
                self.state = state;
                if state == LinkState::Down {
                    self.ways.iter_mut().for_each(|w| w.cut(cx));
                }
            }
            Change::Rate(..) => return Err(Unsupported("the rate of a trace is in its file")),
            Change::Delay(d, delay) => self.each(d).for_each(|w| w.delay = Delay::Fixed(delay)),
            Change::Loss(d, loss) => return self.each(d).try_for_each(|w| w.set_loss(loss)),
            Change::Queue(d, limit) => self.each(d).for_each(|w| w.limit = Some(limit)),
            Change::Fault(..) => return Err(Unsupported::NO_FAULT),
        }
        Ok(())
    }

    fn passed(&self) -> [Passed; 2] {
        self.ways.each_ref().map(OneWay::passed)
    }

    fn summarise(&self, out: &mut Summary) {
        for d in Direction::BOTH {
            self.ways[d as usize].summarise(d, out);
        }
        out.set("lost", self.ways.iter().map(|w| w.lost() as f64).sum());
        out.set("queue_max_bytes", self.ways.iter().map(|w| w.queue_max() as f64).fold(0.0, f64::max));
    }
}

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
//! sent otherwise: a real cell does, and so does `umts-dch`. All else is as on a wire (`wireline/`).
//!
//! Left out: queues other than drop-tail, opportunities that are shared by stations.

mod config;
pub(crate) mod delay;
mod file;
pub(crate) mod opportunities;
#[cfg(test)]
mod tests;

use airloom_base::{Bearer, ConfigError, Direction, Parts};
use serde_json::Value;

use crate::wireline::{self, Pace, Wireline};
pub use config::{Config, Times};
pub use delay::Config as Delays;
use opportunities::Opportunities;
pub use opportunities::{OPPORTUNITY, OVERHEAD};

/// Builds the link from its table: a wire whose packets leave when the trace says.
///
/// # Errors
/// The key that makes no sense.
pub fn build(table: &Value, parts: &mut Parts) -> Result<Box<dyn Bearer>, ConfigError> {
    let Config { up, down, delay, queue, loss, ramp } = airloom_base::config::read(table)?;
    let wire = wireline::Config { queue, loss, ..wireline::Config::default() };
    let link = Wireline::new(&wire, parts, |direction| {
        let trace = if direction == Direction::Uplink { &up } else { &down };
        (Pace::Trace(Opportunities::new(trace, ramp)), delay.get(direction).0.clone())
    });
    Ok(Box::new(link?))
}

//! Bulk transfer without any application protocol: the yardstick for everything below it.
//!
//! ```text
//! client                                   server
//!   | -- request (16 octets + padding) -->   |      get: the server answers with `size` octets
//!   | <------------- size octets ----------  |
//!
//!   | -- request, size octets ----------->   |      put: the server answers with one octet when all has arrived
//!   | <---------------- 1 octet -----------  |
//! ```
//!
//! Afterwards the server closes, unless the request asks it to keep the connection for the next transfer.
//!
//! Parts: [`request`] is the only octets that mean something, [`client`] and [`server`] the two ends. Bodies are
//! fillers and received octets are dropped where they are read. How long a silent peer is waited for is the transport's
//! business; the only time of its own is that of [`Reaction`].

use std::collections::VecDeque;

use airloom_base::{Duration, Instant, SocketId};

pub mod client;
pub mod request;
pub mod server;
#[cfg(test)]
mod tests;

/// Where bulk servers listen unless told otherwise.
const PORT: u16 = 5001;

/// Which filler bodies are cut from.
const SOURCE: u32 = 0x6275_6c6b;

/// A number of octets as `read` takes it.
fn clamp(octets: u64) -> usize {
    usize::try_from(octets).unwrap_or(usize::MAX)
}

/// Sockets whose octets are read some time after they arrived, as by a program that has to be woken first.
struct Reaction {
    after: Duration,
    due: VecDeque<(Instant, SocketId)>,
}

impl Reaction {
    fn new(after: Duration) -> Self {
        Reaction { after, due: VecDeque::new() }
    }

    /// Octets have arrived: are they read later?
    #[inline]
    fn waits(&mut self, now: Instant, socket: SocketId) -> bool {
        if !self.after.is_zero() {
            self.due.push_back((now + self.after, socket));
        }
        !self.after.is_zero()
    }

    fn next(&self) -> Option<Instant> {
        self.due.front().map(|(at, _)| *at)
    }

    /// A socket that is to be read now.
    fn take(&mut self, now: Instant) -> Option<SocketId> {
        self.next().filter(|at| *at <= now)?;
        self.due.pop_front().map(|(_, socket)| socket)
    }
}

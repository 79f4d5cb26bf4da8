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
//! fillers and received octets are dropped where they are read. There are no timers: how long a silent peer is
//! waited for is the transport's business.

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

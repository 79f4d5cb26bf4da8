//! A file over several connections at once: one for each path, with a scheduler at the sender and one order at the receiver.
//!
//! ```text
//! client                                                server
//!   | --- hello: transfer, size, window ---------------> |   on every connection
//!   | <========== chunk: offset, length, octets ======== |   each on the connection that has room and answers soonest
//!   | --- acknowledgement: all below, this chunk ------> |   on the connection that brought it
//! ```
//!
//! It is what Multipath TCP (RFC 8684) does above its subflows, for a file that is got:
//!
//! - a sequence of the whole beside those of the connections, and acknowledgements of it;
//! - the scheduler of Linux: of the subflows with room the one with the least round trip (of chunks, not of segments);
//! - one receive buffer for all (`window`): what is ahead of a missing chunk waits in it;
//! - what a silent subflow holds is sent again over the others, and it gets nothing new until it speaks.
//!
//! **Left out.** Its options and keys (each connection says hello instead), coupled congestion control (every connection has its
//! own: on paths that share nothing this is the same but for the growth), addresses that are told later, subflows that are opened
//! again, penalties for slow subflows, and files that are put. Room on a subflow is `ahead` octets without an answer, not what its
//! congestion window has left: an application does not see that. TCP limits it besides.
//!
//! | file | concern |
//! |---|---|
//! | `wire.rs` | what is said |
//! | `client.rs` | the receiver: reassembly, results |
//! | `server.rs` | the sender: subflows, the scheduler |

mod client;
mod server;
#[cfg(test)]
mod tests;
mod wire;

pub use client::{Client, Config, build as build_client};
pub use server::{Server, ServerConfig};

use airloom_base::{App, AppParts, ConfigError};
use serde_json::Value;

/// Where servers listen unless told otherwise.
const PORT: u16 = 5003;

/// Which filler the files are cut from.
const SOURCE: u32 = 0x7374_7270;

/// Subflows of a transfer.
const MOST_SUBFLOWS: usize = 32;

/// Octets of a receive buffer, and of a chunk at least: they bound what both ends keep of chunks that came out of order.
const MOST_WINDOW: u64 = 1 << 24;
const LEAST_CHUNK: u64 = 256;

/// Builds the server from its table.
pub fn build_server(value: &Value, _: &AppParts) -> Result<Box<dyn App>, ConfigError> {
    Ok(Box::new(Server::new(airloom_base::config::read(value)?)?))
}

//! File transfer (RFC 959): a control connection with commands and replies, and a data connection for each file.
//!
//! ```text
//! client                                         server
//!   | <-- 220 ------------------------------------- |   control connection, port 21
//!   | --- USER, PASS, TYPE I ---------------------> |   331, 230, 200
//!   | --- PASV -----------------------------------> |   227 (h,h,h,h,p,p): the client connects there
//!   | --- or PORT h,h,h,h,p,p --------------------> |   200: the server connects there
//!   | --- RETR or STOR name ----------------------> |   150, then the file on the data connection; its end is
//!   | <============ file =========================> |   the end of the connection
//!   | <-- 226 ------------------------------------- |
//!   | --- QUIT -----------------------------------> |   221
//! ```
//!
//! Between IPv6 addresses EPSV and EPRT (RFC 2428) take the place of PASV and PORT. Files are fillers: a name that is a size
//! (`1MB`) is a file of that size, a table in the scenario has others, and what a client has stored is there afterwards.
//!
//! | file | concern |
//! |---|---|
//! | `wire.rs` | lines, commands, replies, addresses |
//! | `control.rs` | one end of a control connection |
//! | `client.rs` | the client: its dialogue, its data connection, its results |
//! | `server.rs` | the server's ports, sockets and sessions |
//! | `session.rs` | one client of a server: what it may say, and the answers |
//! | `shared.rs` | what all of them share: configuration, files, passive ports |
//!
//! **Standards.** RFC 959, RFC 1123 (4.1), RFC 2428, RFC 2577 (a server connects to nobody but its client, and takes data from
//! nobody else). **Left out.** Directories and listings, restarts (REST), ASCII type and record structures: refused with their
//! reply (502, 504). A server opens data connections from any port, not from port 20.

mod client;
mod control;
mod server;
mod session;
mod shared;
#[cfg(test)]
mod tests;
mod wire;

pub use client::{Client, Config, build as build_client};
pub use server::Server;
pub use shared::Config as ServerConfig;

use airloom_base::{App, AppParts, ConfigError, Duration};
use serde_json::Value;

/// Where servers listen unless told otherwise.
const PORT: u16 = 21;

/// Which filler files are cut from.
const SOURCE: u32 = 0x6674_7020;

/// How long an end waits for the other one.
const PATIENCE: Duration = Duration::from_secs(300);

/// Builds a server from its table.
pub fn build_server(value: &Value, _: &AppParts) -> Result<Box<dyn App>, ConfigError> {
    Ok(Box::new(Server::new(airloom_base::config::read(value)?)?))
}

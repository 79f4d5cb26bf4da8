//! `airloom browse`: the browser of the simulated network on this machine's TCP.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::time::Duration;

use airloom_apps::http_client::{Client, Config, Whereabouts};
use airloom_base::random::Stream;
use airloom_base::{App, ConfigError, Cx, Instant, SocketEvent, SocketId, Sockets, Summary, config};
use delegate::delegate;
use serde_json::Value;

use super::streams::{Ended, Served, until_done};

/// Why nothing was loaded.
#[derive(Debug)]
pub enum CannotBrowse {
    /// A setting cannot be used, or a host is not known.
    Settings(ConfigError),
    /// The kernel refused.
    System(io::Error),
}

/// The browser; it connects to addresses that were looked up for it.
struct Browser(Client);

impl App for Browser {
    delegate! {
        to self.0 {
            fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets);
            fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent);
            fn poll_timeout(&self) -> Option<Instant>;
            fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets);
            fn is_done(&self) -> bool;
            fn summarise(&self, out: &mut Summary);
        }
    }
}

impl Served for Browser {
    const LOOKS_UP: bool = true;
    const ENDS: bool = true;
}

/// Loads what `settings` of `http-client` say, until all is loaded, `patience` is over or somebody stops it. `seed` decides what is drawn: the same
/// pages as a simulated host called `browser` draws. Hosts are looked up once, before anything begins.
///
/// # Errors
/// [`CannotBrowse`].
pub fn browse(settings: &Value, seed: u64, nagle: bool, patience: Duration) -> Result<Ended, CannotBrowse> {
    let config: Config = config::read(settings).map_err(CannotBrowse::Settings)?;
    if config.tls.is_some() {
        // Records and handshakes of the model have true sizes, but nothing in them that another end could understand.
        let why = "TLS is a model between simulated hosts: it cannot shake hands with real servers";
        return Err(CannotBrowse::Settings(ConfigError::at("tls", why)));
    }
    let server = config.server.clone();
    let places = Whereabouts { server: server.as_deref(), host: "browser", resolve: &address };
    let stream = |purpose: &str| Stream::new(seed, &format!("browser.app.{purpose}"));
    let client = Client::new(config, &places, stream).map_err(CannotBrowse::Settings)?;
    until_done(Browser(client), nagle, patience).map_err(CannotBrowse::System)
}

/// The first address of a host.
fn address(name: &str) -> Option<IpAddr> {
    (name, 0).to_socket_addrs().ok()?.next().map(|at| at.ip())
}

//! `airloom browse`: the browser of the simulated network on this machine's TCP.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
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
struct Browser {
    client: Client,
    /// The other addresses of hosts, by the first.
    others: BTreeMap<IpAddr, Vec<IpAddr>>,
}

impl App for Browser {
    delegate! {
        to self.client {
            fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets);
            fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent);
            fn poll_timeout(&self) -> Option<Instant>;
            fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets);
            fn is_done(&self) -> bool;
            fn close(&mut self, cx: &mut Cx);
            fn summarise(&self, out: &mut Summary);
        }
    }
}

impl Served for Browser {
    const LOOKS_UP: bool = true;
    const ENDS: bool = true;

    fn others(&self, to: SocketAddr) -> Vec<SocketAddr> {
        let others = self.others.get(&to.ip()).into_iter().flatten();
        others.map(|ip| SocketAddr::new(*ip, to.port())).collect()
    }
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
    let others = RefCell::new(BTreeMap::new());
    let resolve = |name: &str| {
        let mut found = addresses(name).into_iter();
        let first = found.next()?;
        others.borrow_mut().insert(first, found.collect());
        Some(first)
    };
    let places = Whereabouts { server: server.as_deref(), host: "browser", resolve: &resolve };
    let stream = |purpose: &str| Stream::new(seed, &format!("browser.app.{purpose}"));
    let client = Client::new(config, &places, stream).map_err(CannotBrowse::Settings)?;
    until_done(Browser { client, others: others.into_inner() }, nagle, patience).map_err(CannotBrowse::System)
}

/// The addresses of a host, the best first.
fn addresses(name: &str) -> Vec<IpAddr> {
    let mut found: Vec<IpAddr> = Vec::new();
    for at in (name, 0).to_socket_addrs().into_iter().flatten() {
        if !found.contains(&at.ip()) {
            found.push(at.ip());
        }
    }
    found
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "the other end is a socket of this machine")]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener};

    use serde_json::json;

    use super::*;

    #[test]
    fn a_host_is_found_at_its_second_address() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut request = [0; 4096];
            assert!(stream.read(&mut request).expect("a request") > 0);
            stream
                .write_all(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")
                .expect("a client that listens");
        });
        let place = format!("twice:{port}");
        let settings = json!({ "server": place, "pages": [["/"]] });
        let config: Config = config::read(&settings).expect("settings");
        let first = Ipv4Addr::new(127, 0, 0, 2);
        let places = Whereabouts { server: Some(&place), host: "browser", resolve: &|_| Some(first.into()) };
        let client = Client::new(config, &places, |purpose| Stream::new(1, purpose)).expect("a client");
        let others = BTreeMap::from([(first.into(), vec![Ipv4Addr::LOCALHOST.into()])]);
        let ended = until_done(Browser { client, others }, true, Duration::from_secs(60)).expect("a loop");
        assert!(ended.is_done);
        assert_eq!(ended.summary.values.get("failed"), Some(&0.0));
        server.join().expect("a request");
    }
}

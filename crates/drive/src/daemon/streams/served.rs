//! What a daemon asks of an application, and what it is told itself.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use airloom_base::{App, Cx, Sockets};
use airloom_proxies::lookup::{Found, Lookup};
use ipnet::IpNet;

use super::super::origins::{self, NotAnOrigin, Origins};

/// What a daemon asks of an application besides what every host does.
pub trait Served: App {
    /// Does it connect to no address but those it has asked for? They are checked when they are looked up, with their name.
    const LOOKS_UP: bool = false;

    /// Is it a client, which ends when it has done what it was started for?
    const ENDS: bool = false;

    /// A name whose addresses it wants.
    fn poll_lookup(&mut self) -> Option<Lookup> {
        None
    }
    /// What came of that.
    fn handle_lookup(&mut self, _cx: &mut Cx, _net: &mut dyn Sockets, _id: u64, _found: Found) {}
    /// Where else the server is whose address this is: tried in turn if nobody answers there.
    fn others(&self, _to: SocketAddr) -> Vec<SocketAddr> {
        Vec::new()
    }
    /// No more clients come: connections on which nothing is under way may end.
    fn handle_stop(&mut self, _cx: &mut Cx, _net: &mut dyn Sockets) {}
    /// Is nothing under way, so that a daemon that is to stop need not wait? No, if it cannot know.
    fn is_quiet(&self) -> bool {
        false
    }
    /// A line of its log.
    fn poll_log(&mut self) -> Option<String> {
        None
    }
    /// Its numbers for Prometheus.
    fn numbers(&self) -> String {
        String::new()
    }
}

/// Who may come.
#[derive(Clone, Debug, Default)]
pub struct Clients(Vec<IpNet>);

impl Clients {
    /// Addresses and networks; none: everybody.
    ///
    /// # Errors
    /// [`NotAnOrigin`] for what is neither.
    pub fn allowing<S: AsRef<str>>(list: impl IntoIterator<Item = S>) -> Result<Clients, NotAnOrigin> {
        let network = |entry: S| origins::network(entry.as_ref());
        Ok(Clients(list.into_iter().map(network).collect::<Result<_, _>>()?))
    }

    /// Is nobody named?
    pub fn is_everybody(&self) -> bool {
        self.0.is_empty()
    }

    /// Is this address one of them?
    pub fn allows(&self, address: IpAddr) -> bool {
        self.0.is_empty() || self.0.iter().any(|net| net.contains(&address.to_canonical()))
    }
}

/// What a daemon is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where clients come to.
    pub listen: SocketAddr,
    /// Where numbers for Prometheus are to be had, if anywhere.
    pub metrics: Option<SocketAddr>,
    /// By which names its numbers may be asked for, besides addresses and `localhost`.
    pub names: Vec<String>,
    /// Who may come.
    pub clients: Clients,
    /// Where connections may lead to.
    pub origins: Origins,
    /// Connections were turned aside on their way by the kernel (REDIRECT): whom they mean is asked of it.
    pub is_transparent: bool,
    /// Nagle's rule on all connections.
    pub nagle: bool,
    /// How long a connection may take to open.
    pub connect: Duration,
    /// How long what is under way may take when the daemon is to stop.
    pub grace: Duration,
}

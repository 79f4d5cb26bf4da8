//! A host: interfaces, and either a simulated stack with applications or a real machine behind ports.

mod connection;
mod net;
mod receive;
mod waiting;

use std::net::IpAddr;

use airloom_base::{App, Instant, Point, Protocol};

use crate::agenda::{Agenda, Key, Wakeup};

pub use connection::Totals;
pub(crate) use net::{Call, Fed, Net};
pub(crate) use receive::Reception;
pub(crate) use waiting::{Opening, Placeholder};

/// Where a host meets a link.
#[derive(Clone, Debug)]
pub(crate) struct Interface {
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) mtu: u16,
    pub(crate) point: Point,
    /// Which of the host's protocols connections over this interface have, if it is not the first one.
    pub(crate) protocol: Option<u8>,
}

impl Interface {
    /// The address of the family of `peer`.
    pub(crate) fn address_for(&self, peer: IpAddr) -> Option<IpAddr> {
        self.addresses.iter().copied().find(|a| a.is_ipv4() == peer.is_ipv4())
    }
}

/// An application and its wake-up.
pub(crate) struct AppSlot {
    pub(crate) app: Box<dyn App>,
    pub(crate) wakeup: Wakeup,
    pub(crate) done: bool,
}

impl AppSlot {
    /// Enters the application's deadline into the agenda, if it is earlier than what stands there.
    #[inline]
    pub(crate) fn arm(&mut self, now: Instant, host: u32, app: u16, agenda: &mut Agenda) {
        if let Some(at) = self.app.poll_timeout()
            && self.wakeup.needs_entry(now, at)
        {
            agenda.push(at, Key::App { host, app });
        }
    }
}

/// What a host is made of.
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) apps: Vec<AppSlot>,
    pub(crate) net: Net,
    /// Port of each interface, if the host is real.
    pub(crate) ports: Option<Vec<u32>>,
}

impl Host {
    pub(crate) fn new(name: String, index: u32) -> Self {
        Host { name, apps: Vec::new(), net: Net::new(index), ports: None }
    }

    /// Adds an application and listens on its ports.
    pub(crate) fn add_app(&mut self, app: Box<dyn App>) {
        let index = self.apps.len() as u16;
        self.net.listen(app.as_ref(), index);
        self.apps.push(AppSlot { app, wakeup: Wakeup::default(), done: false });
    }

    /// Adds a protocol; the first one is what the applications connect by that do not say.
    pub(crate) fn add_protocol(&mut self, protocol: Box<dyn Protocol>) {
        self.net.numbers.push(protocol.ip_protocol());
        self.net.leading_ports &= protocol.has_leading_ports();
        self.net.protocols.push(protocol);
    }
}

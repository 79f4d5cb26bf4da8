//! QUIC as a host sees it: it makes connections, and answers what belongs to none.

use std::net::IpAddr;
use std::sync::Arc;

use airloom_base::service::{Described, Identity, Path};
use airloom_base::{ConfigError, Cx, Packet, Protocol, ProtocolParts, Transport};
use airloom_wire::ip::protocol::UDP;
use serde_json::Value;

use crate::clock::to_library;
use crate::config::{Config, Session};
use crate::connection::Connection;
use crate::datagram::{datagram, payload};
use crate::guard::Guard;
use crate::host::{PLAIN, SERVER_NAME, Shared};
use crate::keylog::KeyLog;
use crate::library::{self, DatagramEvent, Incoming};
use crate::real::Tls;

/// What the first look at a unit of no connection gave.
enum Look {
    /// It may open one, and has so many octets.
    Opening(Box<Incoming>, usize),
    /// It is answered by this, and nothing is kept.
    Answer(Packet),
}

/// QUIC of one host.
pub struct Quic {
    host: Shared,
    log: KeyLog,
    /// What is spoken at which port.
    spoken: Vec<(u16, &'static str)>,
    /// Of the unit that the host asks about.
    look: Option<Look>,
}

impl Quic {
    /// QUIC of the host called `name` in the run with this seed. Nothing is captured of it: a session that is left to us is `model`.
    pub fn new(config: Config, seed: u64, name: &str) -> Quic {
        let log = KeyLog::default();
        let host = Shared::new(config, seed, name, log.clone());
        Quic { host, log, spoken: Vec::new(), look: None }
    }

    /// From the host's table.
    ///
    /// # Errors
    /// Which key cannot be as it is.
    pub fn from_table(table: &Value, parts: &ProtocolParts) -> Result<Box<dyn Protocol>, ConfigError> {
        let mut config: Config = airloom_base::config::read(table)?;
        match config.session {
            Session::Auto if parts.has_real_hosts => config.session = Session::Tls,
            Session::Auto if parts.captured => config.session = Session::Seeded,
            Session::Tls if !parts.has_real_hosts => {
                return Err(ConfigError::at(
                    "session",
                    "tls is what real hosts speak, and none of this run is one",
                ));
            }
            _ => {}
        }
        let is_real = config.session == Session::Tls;
        if is_real && let Some((key, what)) = Tls::lacks(&config) {
            return Err(ConfigError::at(
                key,
                format!("hosts that speak TLS, as all do beside real ones, have no {what}"),
            ));
        }
        let quic = Quic::new(config, parts.seed, parts.host);
        if is_real {
            // Strangers may open as many connections as they like: secrets are kept where packets are.
            let log: Arc<dyn rustls::KeyLog> = match parts.captured {
                true => Arc::new(quic.log.clone()),
                false => Arc::new(rustls::NoKeyLog {}),
            };
            let made = Tls::new(SERVER_NAME, &quic.host.lock().config, log);
            let tls = made.map_err(|why| ConfigError::at("session", why))?;
            quic.host.lock().speak(tls);
        }
        Ok(Box::new(quic))
    }

    /// The secrets of its connections as a client, as far as there are any.
    pub fn key_log(&self) -> &KeyLog {
        &self.log
    }

    /// Connections of this host that something is kept of, those that are over and wait for what comes late among them.
    pub fn connections(&self) -> usize {
        self.host.lock().endpoint.open_connections()
    }

    /// A connection that will open when `connect` is called.
    pub fn connection(&self, path: Path, ports: (u16, u16), who: Identity) -> Connection {
        Connection::opener(self.host.clone(), path, ports, who)
    }

    /// Keeps what is known of a unit, and lets go what was known of the last one.
    fn keep(&mut self, look: Option<Look>) {
        if let Some(Look::Opening(incoming, _)) = std::mem::replace(&mut self.look, look) {
            self.host.lock().endpoint.ignore(*incoming);
        }
    }
}

impl Drop for Quic {
    fn drop(&mut self) {
        self.keep(None);
    }
}

impl Protocol for Quic {
    fn name(&self) -> &'static str {
        "quic"
    }

    fn ip_protocol(&self) -> u8 {
        UDP
    }

    fn own(&mut self, addresses: &[IpAddr], mtu: u16) {
        self.host.lock().own(addresses, mtu);
    }

    fn serve(&mut self, port: u16, protocol: &'static str) {
        self.spoken.push((port, protocol));
    }

    fn has_streams(&self) -> bool {
        true
    }

    fn open(&mut self, _cx: &mut Cx, path: Path, ports: (u16, u16), who: Identity) -> Box<dyn Transport> {
        Box::new(self.connection(path, ports, who))
    }

    fn whose(&mut self, cx: &mut Cx, path: &Path, ports: (u16, u16), ecn: u8, unit: &Packet) -> Option<u32> {
        self.keep(None);
        let octets = payload(unit.duplicate())?;
        let (remote, len) = ((path.remote, ports.1).into(), octets.len());
        let mut answer = Vec::new();
        let mut host = self.host.lock();
        host.tell(cx.records.wants_qlog());
        let retries = host.config.retry;
        let event =
            library::datagram(&mut host.endpoint, cx.now, remote, path.local, ecn, octets, &mut answer);
        let look = match event? {
            DatagramEvent::ConnectionEvent(handle, _) => return host.flow(handle),
            DatagramEvent::NewConnection(incoming)
                if retries && !incoming.remote_address_validated() && incoming.may_retry() =>
            {
                answer.clear();
                let sent = host.endpoint.retry(incoming, &mut answer).ok()?;
                answer.truncate(sent.size);
                Look::Answer(datagram(ports, answer))
            }
            DatagramEvent::NewConnection(incoming) => Look::Opening(Box::new(incoming), len),
            DatagramEvent::Response(sent) => {
                answer.truncate(sent.size);
                Look::Answer(datagram(ports, answer))
            }
        };
        drop(host);
        self.keep(Some(look));
        None
    }

    fn accept(
        &mut self,
        cx: &mut Cx,
        path: Path,
        ports: (u16, u16),
        who: Identity,
        unit: &Packet,
    ) -> Option<Box<dyn Transport>> {
        if self.look.is_none() {
            self.whose(cx, &path, ports, 0, unit);
        }
        let (incoming, octets) = match self.look.take()? {
            Look::Opening(incoming, octets) => (incoming, octets),
            answer @ Look::Answer(_) => {
                self.look = Some(answer);
                return None;
            }
        };
        let spoken =
            self.spoken.iter().find(|(port, _)| *port == ports.0).map_or(PLAIN, |(_, spoken)| spoken);
        let meter = Arc::default();
        let mut answer = Vec::new();
        let mut host = self.host.lock();
        let first = Some(library::first_id(&incoming));
        let is_told = cx.records.wants_qlog();
        let trace = is_told.then(|| host.trace(cx.now, who.flow, false, &path, ports, first));
        let guard = Guard::new((path.remote, ports.1).into(), octets, incoming.remote_address_validated());
        let config = Arc::new(host.server(spoken, &path, Arc::clone(&meter), trace.as_ref(), &guard));
        match host.endpoint.accept(*incoming, to_library(cx.now), &mut answer, Some(config)) {
            Ok((handle, inner)) => {
                host.enter(handle, who.flow);
                drop(host);
                let connection = Connection::acceptor(
                    self.host.clone(),
                    path,
                    ports,
                    spoken,
                    meter,
                    (handle, inner),
                    trace,
                    guard,
                );
                Some(Box::new(connection))
            }
            Err(error) => {
                self.look = error.response.map(|sent| {
                    answer.truncate(sent.size);
                    Look::Answer(datagram(ports, answer))
                });
                None
            }
        }
    }

    fn refuse(&mut self, _unit: &Packet) -> Option<Packet> {
        // `answer` knows what is needed for it.
        None
    }

    fn answer(&mut self, _cx: &mut Cx, _path: &Path, _unit: &Packet, listens: bool) -> Option<Packet> {
        match self.look.take()? {
            Look::Answer(packet) => Some(packet).filter(|_| listens),
            opening @ Look::Opening(..) => {
                self.look = Some(opening);
                self.keep(None);
                None
            }
        }
    }

    fn describe(&self, _head: &[u8]) -> Described {
        // Numbers are behind the protection.
        Described::default()
    }
}

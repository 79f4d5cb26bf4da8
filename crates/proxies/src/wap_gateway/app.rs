//! The gateway on a simulated host.

use std::collections::BTreeMap;

use airloom_apps::wtls::Secured;
use airloom_base::service::Datagram;
use airloom_base::{App, AppParts, Body, ConfigError, Cx, Instant, SocketEvent, SocketId, Sockets, Summary};
use serde_json::Value;

use super::config::Config;
use super::fetch::{FetchOrder, Fetcher, Settings};
use super::gateway::{Gateway, Service};
use super::initiators::Initiators;

/// The gateway as an application of a host.
pub struct WapGateway {
    gateway: Gateway,
    fetcher: Fetcher,
    initiators: Initiators,
    push_port: Option<u16>,
}

impl WapGateway {
    /// A gateway that finds origins by `names`, which are in lower case; `key` is for what nobody must guess.
    ///
    /// # Errors
    /// [`ConfigError`] for settings that no gateway can work with.
    pub fn new(
        config: Config,
        names: BTreeMap<String, std::net::IpAddr>,
        key: (u64, u64),
    ) -> Result<WapGateway, ConfigError> {
        config.check()?;
        let settings = Settings {
            connections: config.connections,
            keep_alive: config.keep_alive,
            keep_alive_timeout: config.keep_alive_timeout,
        };
        let (fetcher, push_port) = (Fetcher::new(settings, names), config.push_port);
        Ok(WapGateway {
            fetcher,
            gateway: Gateway::new(config, key),
            initiators: Initiators::default(),
            push_port,
        })
    }

    /// Hands on what one part has for the other, until none has anything.
    fn pump(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        loop {
            while let Some((service, remote, datagram)) = self.gateway.poll_transmit() {
                let (local_port, body) = (service.port(), Body::Real(datagram));
                net.send_datagram(cx, Datagram::Udp { local_port, remote, body });
            }
            while let Some(order) = self.gateway.poll_fetch() {
                match order {
                    FetchOrder::Start { id, request } => self.fetcher.start(cx, net, id, *request),
                    FetchOrder::Cancel(id) => self.fetcher.cancel(cx, net, id),
                }
            }
            let Some((id, fetched)) = self.fetcher.poll() else { break };
            self.gateway.handle_fetch(cx.now, id, fetched);
        }
        // Nobody reads the log of a simulated host.
        while self.gateway.poll_report().is_some() || self.gateway.poll_push().is_some() {}
    }
}

impl App for WapGateway {
    fn stream_ports(&self) -> Vec<u16> {
        self.push_port.into_iter().collect()
    }

    fn datagram_ports(&self) -> Vec<u16> {
        vec![Service::Connectionless.port(), Service::Session.port()]
    }

    fn start(&mut self, _cx: &mut Cx, _net: &mut dyn Sockets) {}

    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        if !self.initiators.handle_event(cx, net, &mut self.gateway, socket, event) {
            self.fetcher.handle_event(cx, net, socket, event);
        }
        self.pump(cx, net);
    }

    fn handle_datagram(&mut self, cx: &mut Cx, net: &mut dyn Sockets, datagram: Datagram) {
        let Datagram::Udp { local_port, remote, body } = datagram else { return };
        if let Some(service) = Service::of_port(local_port) {
            if let Some(most) = net.datagram_limit(remote.ip()) {
                self.gateway.set_datagram_limit(most);
            }
            self.gateway.handle_datagram(cx.now, service, remote, &body.to_bytes());
            self.pump(cx, net);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [self.gateway.poll_timeout(), self.fetcher.poll_timeout(), self.initiators.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.gateway.handle_timeout(cx.now);
        self.fetcher.handle_timeout(cx, net);
        self.initiators.handle_timeout(cx, net);
        self.pump(cx, net);
    }

    fn summarise(&self, out: &mut Summary) {
        let counted = self.gateway.counters();
        out.set_all([
            ("sessions", counted.sessions),
            ("requests", counted.requests),
            ("replies_2xx", counted.replies[1]),
            ("replies_3xx", counted.replies[2]),
            ("replies_4xx", counted.replies[3]),
            ("replies_5xx", counted.replies[4]),
            ("abandoned", counted.abandoned),
            ("fetches", counted.fetches),
            ("cache_hits", counted.cache_hits),
            ("compiled", counted.compiled),
            ("converted", counted.converted),
            ("passed_through", counted.passed_through),
            ("split", counted.split),
            ("origin_bytes", counted.origin_octets),
            ("client_bytes", counted.client_octets),
            ("origin_connections", self.fetcher.opened()),
            ("pushes", counted.pushes),
            ("pushes_confirmed", counted.pushes_confirmed),
            ("pushes_failed", counted.pushes_failed),
            ("session_initiations", counted.initiations),
            ("malformed", counted.malformed + counted.wtp.malformed),
        ]);
    }
}

/// Builds the gateway from its table.
///
/// # Errors
/// [`ConfigError`] with the key.
pub fn build(value: &Value, parts: &AppParts) -> Result<Box<dyn App>, ConfigError> {
    let mut config: Config = airloom_base::config::read(value)?;
    //= RFC 9110 (7.6.3): a name for each: what two of one path share looks like a circle.
    config.name.get_or_insert_with(|| parts.host.to_owned());
    let names = (parts.hosts)().into_iter().map(|(name, address)| (name.to_ascii_lowercase(), address));
    let wtls = config.wtls.clone();
    let mut stream = parts.stream("wap-gateway.key");
    let key = (stream.bits(), stream.bits());
    let gateway = Box::new(WapGateway::new(config, names.collect(), key)?);
    Ok(match wtls {
        None => gateway,
        Some(wtls) => {
            let ports = [Service::Connectionless, Service::Session].map(|s| (s.secure_port(), s.port()));
            Box::new(Secured::server(gateway, wtls, ports.to_vec()))
        }
    })
}

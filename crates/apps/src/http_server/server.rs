//! The application: connections, their deadlines, and what is counted.

use airloom_base::{App, ConfigError, Cx, Instant, SocketEvent, SocketId, Sockets, Summary};

use airloom_content::http::alt_svc;

use super::association::Association;
use super::connection::Connection;
use super::multiplexed::{Multiplexed, Undecided};
use super::served::{Call, Counters, Served, Then};
use super::{Config, Http};
use crate::net::{self, Alarm, Connections, Deadlines};

/// A connection, and where the queue of deadlines has it.
struct Entry {
    served: Box<dyn Served>,
    alarm: Alarm,
}

/// The server.
#[derive(Default)]
pub struct Server {
    config: Config,
    connections: Connections<Entry>,
    deadlines: Deadlines,
    counters: Counters,
    accepted: u64,
    turned_away: u64,
}

impl Server {
    /// A server nobody has connected to.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        ConfigError::when(config.chunk.0 == 0, "chunk", "must be at least 1B")?;
        if let Some(tls) = &config.tls {
            tls.check()?;
            let message = "HTTP/3 goes over QUIC, which has its own TLS";
            ConfigError::when(config.http == Http::Http3, "tls", message)?;
        }
        let is_alone = config.http3 && (config.http == Http::Http3 || config.tls.is_none());
        let message = "HTTP/3 beside what is spoken over TCP: needs `tls`, and http = \"1.1\" or \"2\"";
        ConfigError::when(is_alone, "http3", message)?;
        let said = config.alt_svc.as_ref().filter(|value| !value.is_empty());
        let is_none = said.is_some_and(|value| alt_svc::parse([value.as_bytes()].into_iter()).is_none());
        let message = "is not a value of the field Alt-Svc, such as 'h3=\":443\"; ma=3600'";
        ConfigError::when(is_none, "alt_svc", message)?;
        ConfigError::when(config.h2_streams == 0, "h2_streams", "must be at least 1")?;
        net::check_windows(config.h2_stream_window, config.h2_conn_window)?;
        net::check_table(config.qpack_table)?;
        ConfigError::when(config.max_requests == Some(0), "max_requests", "must be at least 1")?;
        let is_long = config.response.is_some_and(|n| n.0 > 16_000);
        ConfigError::when(is_long, "response", "clients take at most 16kB of response head")?;
        if let Some(path) = config.objects.keys().find(|path| !path.starts_with('/')) {
            let message = format!("`{path}` is not a path: it must begin with /");
            return Err(ConfigError { path: vec!["objects".into(), path.clone()], message });
        }
        Ok(Server { config, ..Server::default() })
    }

    fn accept(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        if self.connections.len() >= self.config.max_connections as usize {
            self.turned_away += 1;
            net.reset(cx, socket);
            return;
        }
        self.accepted += 1;
        let served: Box<dyn Served> = match net.streams(socket) {
            _ if self.is_third(net, socket) => {
                self.counters.third += 1;
                Box::new(Multiplexed::three(&self.config, cx.now))
            }
            None if self.config.http == Http::Http2 => Box::new(Undecided::new(&self.config, cx.now)),
            Some(_) => Box::new(Association::new(&self.config, cx.now)),
            None => Box::new(Connection::new(&self.config, cx.now)),
        };
        self.connections.insert(socket, Entry { served, alarm: Alarm::default() });
        self.serve(cx, net, socket, Some(event));
    }

    /// Is HTTP/3 spoken on this connection?
    fn is_third(&self, net: &dyn Sockets, socket: SocketId) -> bool {
        self.config.http == Http::Http3 || (self.config.http3 && net.transport(socket) == Some("quic"))
    }

    /// Lets a connection do what an event asks for, or what its deadline does if there is none.
    fn serve(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: Option<SocketEvent>) {
        let Some(Entry { served, alarm }) = self.connections.get_mut(socket) else { return };
        let mut call = Call { cx, net, socket, config: &self.config, counters: &mut self.counters };
        loop {
            let then = match event {
                Some(event) => served.handle(&mut call, event),
                None => served.timeout(&mut call),
            };
            match then {
                Then::Wait => return self.deadlines.set(socket.with_stream(0), alarm, served.deadline()),
                Then::Forget => return self.forget(socket),
                Then::Become(other) => *served = other,
            }
        }
    }

    fn forget(&mut self, socket: SocketId) {
        if let Some(entry) = self.connections.remove(socket) {
            self.deadlines.forget(socket.with_stream(0), &entry.alarm);
        }
    }
}

impl App for Server {
    fn stream_ports(&self) -> Vec<u16> {
        vec![self.config.port()]
    }
    fn accepts_over(&self) -> &'static [&'static str] {
        match self.config.http {
            Http::Http3 => &["quic"],
            _ if self.config.http3 => &["tcp", "quic"],
            _ => &[],
        }
    }
    fn speaks(&self) -> Option<&'static str> {
        (self.config.http == Http::Http3 || self.config.http3).then_some(net::H3)
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        match event {
            SocketEvent::Accepted { .. } => self.accept(cx, net, socket, event),
            SocketEvent::Closed(_) => self.forget(socket),
            _ => self.serve(cx, net, socket, Some(event)),
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        while let Some(socket) = self.deadlines.pop_due(cx.now) {
            let Some(entry) = self.connections.get_mut(socket) else { continue };
            if self.deadlines.rings(cx.now, socket, &mut entry.alarm) {
                self.serve(cx, net, socket, None);
            }
        }
    }
    fn summarise(&self, out: &mut Summary) {
        out.set("connections", self.accepted as f64);
        out.set("connections_turned_away", self.turned_away as f64);
        out.set("connections_h2", self.counters.multiplexed as f64);
        out.set("connections_h3", self.counters.third as f64);
        out.set("requests", self.counters.requests as f64);
        if self.speaks().is_some() {
            out.set("requests_as_alternative", self.counters.as_alternative as f64);
        }
        out.set("requests_malformed", self.counters.malformed as f64);
        out.set("responses_error", self.counters.errors as f64);
        out.set("timeouts", self.counters.timeouts as f64);
        out.set("sent_bytes", self.counters.sent_bytes as f64);
    }
}

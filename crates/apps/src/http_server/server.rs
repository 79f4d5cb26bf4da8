//! The application: connections, their deadlines, and what is counted.

use airloom_base::{App, ConfigError, Cx, Instant, SocketEvent, SocketId, Sockets, Summary};

use super::Config;
use super::connection::{Connection, Counters, Then};
use crate::net::{Connections, Deadlines};

/// The server.
pub struct Server {
    config: Config,
    connections: Connections<Box<Connection>>,
    deadlines: Deadlines,
    counters: Counters,
    accepted: u64,
    turned_away: u64,
}

impl Server {
    /// A server nobody has connected to.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        if config.chunk.0 == 0 {
            return Err(ConfigError::at("chunk", "must be at least 1B"));
        }
        if config.max_requests == Some(0) {
            return Err(ConfigError::at("max_requests", "must be at least 1"));
        }
        if config.response.is_some_and(|n| n.0 > 16_000) {
            return Err(ConfigError::at("response", "clients take at most 16kB of response head"));
        }
        if let Some(path) = config.objects.keys().find(|path| !path.starts_with('/')) {
            let message = format!("`{path}` is not a path: it must begin with /");
            return Err(ConfigError { path: vec!["objects".into(), path.clone()], message });
        }
        Ok(Server {
            config,
            connections: Connections::default(),
            deadlines: Deadlines::default(),
            counters: Counters::default(),
            accepted: 0,
            turned_away: 0,
        })
    }

    fn accept(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        if self.connections.len() >= self.config.max_connections as usize {
            self.turned_away += 1;
            net.reset(cx, socket);
            return;
        }
        self.accepted += 1;
        self.connections.insert(socket, Box::new(Connection::new(&self.config, cx.now)));
        self.serve(cx, net, socket);
    }

    fn serve(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        if let Some(connection) = self.connections.get_mut(socket) {
            connection.serve(cx, net, socket, &self.config, &mut self.counters);
            self.deadlines.set(socket, &mut connection.alarm, connection.deadline);
        }
    }

    fn forget(&mut self, socket: SocketId) {
        if let Some(connection) = self.connections.remove(socket) {
            self.deadlines.forget(socket, &connection.alarm);
        }
    }
}

impl App for Server {
    fn stream_ports(&self) -> Vec<u16> {
        vec![self.config.port]
    }
    fn start(&mut self, _: &mut Cx, _: &mut dyn Sockets) {}
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        match event {
            SocketEvent::Accepted { .. } => self.accept(cx, net, socket),
            SocketEvent::Readable(_) | SocketEvent::Writable => self.serve(cx, net, socket),
            SocketEvent::Finished => {
                if let Some(connection) = self.connections.get_mut(socket) {
                    connection.peer_finished();
                }
                self.serve(cx, net, socket);
            }
            SocketEvent::Closed(_) => self.forget(socket),
            SocketEvent::Opened => {}
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        while let Some(socket) = self.deadlines.pop_due(cx.now) {
            let Some(connection) = self.connections.get_mut(socket) else { continue };
            if !self.deadlines.rings(cx.now, socket, &mut connection.alarm) {
                continue;
            }
            match connection.timeout(cx, net, socket, &self.config, &mut self.counters) {
                Then::Wait => self.deadlines.set(socket, &mut connection.alarm, connection.deadline),
                Then::Forget => self.forget(socket),
            }
        }
    }
    fn is_done(&self) -> bool {
        true
    }
    fn summarise(&self, out: &mut Summary) {
        out.set("connections", self.accepted as f64);
        out.set("connections_turned_away", self.turned_away as f64);
        out.set("requests", self.counters.requests as f64);
        out.set("requests_malformed", self.counters.malformed as f64);
        out.set("responses_error", self.counters.errors as f64);
        out.set("timeouts", self.counters.timeouts as f64);
        out.set("sent_bytes", self.counters.sent_bytes as f64);
    }
}

//! The application: connections, their deadlines, and what is counted.

use airloom_base::{App, ConfigError, Cx, Instant, SocketEvent, SocketId, Sockets, Summary};

use super::association::Association;
use super::connection::{Connection, Counters, Then};
use super::multiplexed::{Begun, Multiplexed, Undecided};
use super::{Config, Http};
use crate::net::{self, Alarm, Connections, Deadlines};

/// A connection of one stream, or an association of many.
enum Served {
    One(Box<Connection>),
    Many(Box<Association>),
    /// One that speaks HTTP/2 or 3.
    Multiplexed(Box<Multiplexed>),
    /// It is not known yet what it speaks.
    Undecided(Box<Undecided>),
}

/// Why a connection is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// Something can be read.
    Octets,
    /// Something can be written.
    Room,
    /// The peer sends no more.
    End,
}

impl Served {
    /// What has to be done if nothing happens, and when.
    fn alarm(&mut self) -> (&mut Alarm, Instant) {
        match self {
            Served::One(connection) => (&mut connection.alarm, connection.deadline),
            Served::Many(association) => (&mut association.alarm, association.deadline),
            Served::Multiplexed(connection) => (&mut connection.alarm, connection.deadline),
            Served::Undecided(undecided) => (&mut undecided.alarm, undecided.deadline),
        }
    }
}

/// The server.
pub struct Server {
    config: Config,
    connections: Connections<Served>,
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
        if let Some(tls) = &config.tls {
            tls.check()?;
            if config.http == Http::Http3 {
                return Err(ConfigError::at("tls", "HTTP/3 goes over QUIC, which has its own TLS"));
            }
        }
        if config.h2_streams == 0 {
            return Err(ConfigError::at("h2_streams", "must be at least 1"));
        }
        net::check_windows(config.h2_stream_window, config.h2_conn_window)?;
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
        let served = match net.streams(socket) {
            _ if self.config.http == Http::Http3 => {
                self.counters.multiplexed += 1;
                Served::Multiplexed(Box::new(Multiplexed::three(&self.config, cx.now)))
            }
            None if self.config.http == Http::Http2 => {
                Served::Undecided(Box::new(Undecided::new(&self.config, cx.now)))
            }
            Some(_) => Served::Many(Box::new(Association::new(&self.config, cx.now))),
            None => Served::One(Box::new(Connection::new(&self.config, cx.now))),
        };
        self.connections.insert(socket, served);
        self.serve(cx, net, socket, Cause::Room);
    }

    fn serve(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, cause: Cause) {
        let Some(served) = self.connections.get_mut(socket) else { return };
        let (config, counters) = (&self.config, &mut self.counters);
        if let Served::Undecided(undecided) = served {
            let Some(begun) = undecided.decide(cx, net, socket, cause == Cause::End) else {
                let (alarm, deadline) = served.alarm();
                return self.deadlines.set(socket, alarm, deadline);
            };
            // The queue knows the alarm by its time: the new one goes on where it was.
            let alarm = *served.alarm().0;
            *served = match begun {
                Begun::Old(octets) => Served::One(Box::new(Connection::begun(config, cx.now, octets))),
                Begun::New(octets) => {
                    counters.multiplexed += 1;
                    Served::Multiplexed(Box::new(Multiplexed::new(config, cx.now, octets)))
                }
            };
            *served.alarm().0 = alarm;
        }
        match served {
            Served::Undecided(_) => {}
            Served::Multiplexed(connection) => {
                if cause == Cause::End {
                    connection.peer_finished();
                }
                connection.serve(cx, net, socket, config, counters);
            }
            Served::One(connection) => {
                if cause == Cause::End {
                    connection.peer_finished();
                }
                connection.serve(cx, net, socket, config, counters);
            }
            Served::Many(association) => match cause {
                Cause::Octets => association.read(cx, net, socket, config, counters),
                Cause::Room => association.write(cx, net, socket, config, counters),
                Cause::End => association.peer_finished(),
            },
        }
        let (alarm, deadline) = served.alarm();
        self.deadlines.set(socket.with_stream(0), alarm, deadline);
    }

    /// What happens on a connection whose streams open one by one.
    fn on_streams(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        match event {
            SocketEvent::Accepted { .. } => self.accept(cx, net, socket),
            SocketEvent::Closed(_) => return self.forget(socket),
            _ => {}
        }
        if let Some(Served::Multiplexed(connection)) = self.connections.get_mut(socket) {
            connection.on(cx, net, socket, event);
        }
        self.serve(cx, net, socket.with_stream(0), Cause::Octets);
    }

    fn forget(&mut self, socket: SocketId) {
        if let Some(mut served) = self.connections.remove(socket) {
            self.deadlines.forget(socket.with_stream(0), served.alarm().0);
        }
    }
}

impl App for Server {
    fn stream_ports(&self) -> Vec<u16> {
        let usual = if self.config.tls.is_some() || self.config.http == Http::Http3 { 443 } else { 80 };
        vec![self.config.port.unwrap_or(usual)]
    }
    fn speaks(&self) -> Option<&'static str> {
        (self.config.http == Http::Http3).then_some(net::H3)
    }
    fn start(&mut self, _: &mut Cx, _: &mut dyn Sockets) {}
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        if self.config.http == Http::Http3 {
            return self.on_streams(cx, net, socket, event);
        }
        match event {
            SocketEvent::Accepted { .. } => self.accept(cx, net, socket),
            SocketEvent::Readable(_) => self.serve(cx, net, socket, Cause::Octets),
            SocketEvent::Writable => self.serve(cx, net, socket, Cause::Room),
            SocketEvent::Finished => self.serve(cx, net, socket, Cause::End),
            SocketEvent::Closed(_) => self.forget(socket),
            SocketEvent::Asked { .. } | SocketEvent::Opened | SocketEvent::Stream(_) => {}
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        while let Some(socket) = self.deadlines.pop_due(cx.now) {
            let Some(served) = self.connections.get_mut(socket) else { continue };
            if !self.deadlines.rings(cx.now, socket, served.alarm().0) {
                continue;
            }
            let (config, counters) = (&self.config, &mut self.counters);
            let then = match served {
                Served::One(connection) => connection.timeout(cx, net, socket, config, counters),
                Served::Many(association) => association.timeout(cx, net, socket, config, counters),
                Served::Multiplexed(connection) => connection.timeout(cx, net, socket, config, counters),
                Served::Undecided(_) => {
                    // Whoever says nothing is told nothing.
                    net.reset(cx, socket);
                    Then::Forget
                }
            };
            match then {
                Then::Wait => {
                    let (alarm, deadline) = served.alarm();
                    self.deadlines.set(socket, alarm, deadline);
                }
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
        let is_third = self.config.http == Http::Http3;
        let multiplexed = self.counters.multiplexed as f64;
        out.set("connections_h2", if is_third { 0.0 } else { multiplexed });
        out.set("connections_h3", if is_third { multiplexed } else { 0.0 });
        out.set("requests", self.counters.requests as f64);
        out.set("requests_malformed", self.counters.malformed as f64);
        out.set("responses_error", self.counters.errors as f64);
        out.set("timeouts", self.counters.timeouts as f64);
        out.set("sent_bytes", self.counters.sent_bytes as f64);
    }
}

//! The answering end: ports, sockets, and whose they are.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use airloom_base::{App, ConfigError, Cx, Instant, SocketEvent, SocketId, Sockets, Summary};

use super::session::{Session, Then};
use super::shared::{Config, Role, Shared};
use crate::net;

/// The server.
pub struct Server {
    shared: Shared,
    sessions: BTreeMap<u64, Session>,
    /// When a session looks whether something has moved.
    deadlines: BTreeSet<(Instant, u64)>,
    accepted: u64,
    turned_away: u64,
}

impl Server {
    /// A server without clients.
    ///
    /// # Errors
    /// The key that makes no sense.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        ConfigError::when(config.passive_ports == 0, "passive_ports", "at least one")?;
        let last = config.passive_port.checked_add(config.passive_ports - 1);
        let range = last.map(|last| config.passive_port..=last);
        let is_wrong = config.passive_port == 0 || range.is_none_or(|range| range.contains(&config.port));
        let message = "the ports from here on are from 1 to 65535, without that of control connections";
        ConfigError::when(is_wrong, "passive_port", message)?;
        ConfigError::when(config.timeout.is_zero(), "timeout", "commands take time")?;
        Ok(Server {
            shared: Shared::new(config),
            sessions: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            accepted: 0,
            turned_away: 0,
        })
    }

    fn accept(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        socket: SocketId,
        at: SocketAddr,
        from: SocketAddr,
    ) {
        if at.port() != self.shared.config.port {
            let waiting = self.shared.waits_at(at.port()).and_then(|number| self.sessions.get_mut(&number));
            match waiting.filter(|session| session.may_take(from.ip())) {
                Some(session) => {
                    let then = session.take(cx, net, &mut self.shared, socket);
                    let number = session.number;
                    self.after(cx, net, number, then);
                }
                None => net.reset(cx, socket),
            }
            return;
        }
        if self.sessions.len() >= self.shared.config.max_clients as usize {
            self.turned_away += 1;
            return net.reset(cx, socket);
        }
        self.accepted += 1;
        let number = self.accepted;
        self.shared.roles.insert(socket, (number, Role::Control));
        let mut session = Session::new(number, socket, from.ip(), at.ip());
        session.greet(cx, net);
        session.moved_at = cx.now;
        self.deadlines.insert((cx.now + self.shared.config.timeout, number));
        self.sessions.insert(number, session);
    }

    /// What the session wants after a call.
    fn after(&mut self, cx: &mut Cx, net: &mut dyn Sockets, number: u64, then: Then) {
        if then == Then::Wait {
            return;
        }
        if let Some(mut session) = self.sessions.remove(&number) {
            session.drop_data(cx, net, &mut self.shared);
            let socket = session.control.socket;
            match then {
                Then::Finish => {
                    net.finish(cx, socket);
                    net::drain(cx, net, socket);
                }
                Then::Reset => {
                    self.shared.roles.remove(socket);
                    net.reset(cx, socket);
                }
                Then::Wait | Then::Forget => {}
            }
        }
    }
}

impl App for Server {
    fn stream_ports(&self) -> Vec<u16> {
        let config = &self.shared.config;
        let passive = (0..config.passive_ports).map(|n| config.passive_port.saturating_add(n));
        std::iter::once(config.port).chain(passive).collect()
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        if let SocketEvent::Accepted { at, from } = event {
            return self.accept(cx, net, socket, at, from);
        }
        let Some((number, role)) = self.shared.roles.get_mut(socket).copied() else { return };
        if matches!(event, SocketEvent::Closed(_)) {
            self.shared.roles.remove(socket);
        }
        // What a client says after the end of its session is dropped, until it has finished too.
        let Some(session) = self.sessions.get_mut(&number) else {
            net::drain(cx, net, socket);
            return;
        };
        let then = match role {
            Role::Control => session.control_event(cx, net, &mut self.shared, event),
            Role::Data => session.data_event(cx, net, &mut self.shared, event),
        };
        self.after(cx, net, number, then);
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        while let Some((_, number)) = self.deadlines.first().copied().filter(|(at, _)| *at <= cx.now) {
            self.deadlines.pop_first();
            let Some(session) = self.sessions.get_mut(&number) else { continue };
            if session.moved_at + self.shared.config.timeout <= cx.now && session.gets_on(net) {
                session.moved_at = cx.now;
            }
            let at = session.moved_at + self.shared.config.timeout;
            if at > cx.now {
                self.deadlines.insert((at, number));
                continue;
            }
            self.shared.counters.timeouts += 1;
            let then = session.time_out(cx, net);
            self.after(cx, net, number, then);
        }
    }
    fn summarise(&self, out: &mut Summary) {
        let counters = &self.shared.counters;
        for (name, value) in [
            ("sessions", self.accepted),
            ("sessions_turned_away", self.turned_away),
            ("session_timeouts", counters.timeouts),
            ("commands", counters.commands),
            ("commands_refused", counters.refused),
            ("files_sent", counters.sent),
            ("files_stored", counters.stored),
            ("files_broken", counters.broken),
            ("sent_bytes", counters.sent_bytes),
            ("received_bytes", counters.received_bytes),
        ] {
            out.set(name, value as f64);
        }
        // The client's where it is the client that receives.
        if let Some(pause) = counters.longest_pause {
            out.set("longest_pause_s", pause.as_secs_f64());
        }
    }
}

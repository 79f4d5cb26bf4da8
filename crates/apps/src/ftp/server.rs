//! The answering end: ports, sockets, and whose they are.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use airloom_base::units::Octets;
use airloom_base::{App, ConfigError, Cx, Duration, Instant, SocketEvent, SocketId, Sockets, Summary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::session::{Session, Then};
use super::{PATIENCE, PORT};
use crate::net::Connections;

/// Most files that clients can store; their octets are not kept.
const MOST_STORED: usize = 1024;

/// Serves files over FTP, in passive and active mode: a name that is a size (such as `1MB`) is a file of that size, and so
/// are the names of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Port of control connections.
    pub port: u16,
    /// Sizes of files by name.
    pub files: BTreeMap<String, Octets>,
    /// First port of passive data connections.
    pub passive_port: u16,
    /// So many ports there are for them: so many can be waited for at a time.
    pub passive_ports: u16,
    /// Clients beyond this number are turned away.
    pub max_clients: u32,
    /// Close a session in which nothing has moved for so long.
    pub timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            port: PORT,
            files: BTreeMap::new(),
            passive_port: 30_000,
            passive_ports: 64,
            max_clients: 1000,
            timeout: PATIENCE,
        }
    }
}

/// What a socket is to its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Control,
    Data,
}

/// What all sessions share.
pub(super) struct Shared {
    pub(super) config: Config,
    /// Sockets, with the number of their session.
    pub(super) roles: Connections<(u64, Role)>,
    /// Which session waits at each passive port.
    passive: Vec<Option<u64>>,
    next_port: usize,
    stored: BTreeMap<String, u64>,
    pub(super) counters: Counters,
}

/// What a server counts.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) commands: u64,
    /// Replies 4yz and 5yz.
    pub(super) refused: u64,
    pub(super) sent: u64,
    pub(super) stored: u64,
    pub(super) broken: u64,
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    pub(super) timeouts: u64,
    pub(super) longest_pause: Option<Duration>,
}

impl Shared {
    /// A port at which `session` waits for its data connection from now on.
    pub(super) fn wait(&mut self, session: u64) -> Option<u16> {
        let count = self.passive.len();
        let free = (0..count).map(|n| (self.next_port + n) % count).find(|n| self.passive[*n].is_none())?;
        self.passive[free] = Some(session);
        // Not the same one again at once: what belongs to the connection before may still be under way.
        self.next_port = free + 1;
        Some(self.config.passive_port + free as u16)
    }

    /// Nobody waits at this port any more.
    pub(super) fn forget(&mut self, port: u16) {
        let place = usize::from(port.wrapping_sub(self.config.passive_port));
        if let Some(waiting) = self.passive.get_mut(place) {
            *waiting = None;
        }
    }

    fn waits_at(&self, port: u16) -> Option<u64> {
        let place = port.checked_sub(self.config.passive_port)?;
        *self.passive.get(usize::from(place))?
    }

    /// Octets of a file, if there is such a one.
    pub(super) fn size_of(&self, name: &str) -> Option<u64> {
        let bare = name.strip_prefix('/').unwrap_or(name);
        let size = || bare.parse().ok().filter(|_| !bare.starts_with('+'));
        let with_unit = || bare.parse::<Octets>().ok().map(|n| n.0);
        let listed = self.config.files.get(name).or_else(|| self.config.files.get(bare)).map(|n| n.0);
        self.stored.get(bare).copied().or(listed).or_else(size).or_else(with_unit)
    }

    /// Is there room for one more file of this name?
    pub(super) fn has_room(&self, name: &str) -> bool {
        let bare = name.strip_prefix('/').unwrap_or(name);
        self.stored.len() < MOST_STORED || self.stored.contains_key(bare)
    }

    /// A file has arrived.
    pub(super) fn store(&mut self, name: &str, size: u64) {
        self.stored.insert(name.strip_prefix('/').unwrap_or(name).to_owned(), size);
    }
}

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
        if config.passive_ports == 0 {
            return Err(ConfigError::at("passive_ports", "at least one"));
        }
        let last = config.passive_port.checked_add(config.passive_ports - 1);
        let range = last.map(|last| config.passive_port..=last);
        if config.passive_port == 0 || range.is_none_or(|range| range.contains(&config.port)) {
            let message = "the ports from here on are from 1 to 65535, without that of control connections";
            return Err(ConfigError::at("passive_port", message));
        }
        if config.timeout.is_zero() {
            return Err(ConfigError::at("timeout", "commands take time"));
        }
        let passive = vec![None; usize::from(config.passive_ports)];
        let shared = Shared {
            config,
            roles: Connections::default(),
            passive,
            next_port: 0,
            stored: BTreeMap::new(),
            counters: Counters::default(),
        };
        Ok(Server {
            shared,
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
                    drain(cx, net, socket);
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

/// Drops what has arrived.
fn drain(cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
    while net.read(cx, socket, usize::MAX).is_some() {}
}

impl App for Server {
    fn stream_ports(&self) -> Vec<u16> {
        let config = &self.shared.config;
        let passive = (0..config.passive_ports).map(|n| config.passive_port.saturating_add(n));
        std::iter::once(config.port).chain(passive).collect()
    }
    fn start(&mut self, _: &mut Cx, _: &mut dyn Sockets) {}
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        if let SocketEvent::Accepted { at, from } = event {
            return self.accept(cx, net, socket, at, from);
        }
        let Some((number, role)) = self.shared.roles.get_mut(socket).copied() else { return };
        if matches!(event, SocketEvent::Closed(_)) {
            self.shared.roles.remove(socket);
        }
        // What a client says after the end of its session is dropped, until it has finished too.
        let Some(session) = self.sessions.get_mut(&number) else { return drain(cx, net, socket) };
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
    fn is_done(&self) -> bool {
        true
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
        out.set_some("longest_pause_s", counters.longest_pause.map(Duration::as_secs_f64));
    }
}

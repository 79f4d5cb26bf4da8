//! HTTP/1.1 over the streams of a simulated host: carries out orders.
//!
//! Each origin has a few connections, one request at a time on each (no pipelining); what finds none waits in order. A
//! request that was sent on a connection that had been used before, and of which the origin then closed without a word,
//! is sent once more on a new one if that does no harm (RFC 9112, 9.3.1).

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use airloom_base::{CloseReason, Cx, Duration, Instant, SocketEvent, SocketId, Sockets};
use url::{Host, Url};

use super::connection::{Connection, Order, Progress};
use super::{FetchError, FetchId, FetchRequest, Fetched};

/// One origin.
#[derive(Debug, Default)]
struct Origin {
    connections: u16,
    /// Those that wait for nothing, the last used last.
    idle: Vec<SocketId>,
    waiting: VecDeque<Order>,
}

/// How connections are used.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Connections to one origin at a time; further requests wait for one.
    pub connections: u16,
    /// They are used for more than one request.
    pub keep_alive: bool,
    /// One that nobody uses is closed after so long.
    pub keep_alive_timeout: Duration,
}

/// Carries out orders.
#[derive(getset::CopyGetters)]
pub struct Fetcher {
    names: BTreeMap<String, IpAddr>,
    origins: BTreeMap<SocketAddr, Origin>,
    connections: BTreeMap<SocketId, Connection>,
    told: VecDeque<(FetchId, Fetched)>,
    settings: Settings,
    /// Connections that were opened.
    #[getset(get_copy = "pub")]
    opened: u64,
}

impl Fetcher {
    /// With these names of hosts, in lower case.
    pub fn new(settings: Settings, names: BTreeMap<String, IpAddr>) -> Fetcher {
        Fetcher {
            names,
            origins: BTreeMap::new(),
            connections: BTreeMap::new(),
            told: VecDeque::new(),
            settings,
            opened: 0,
        }
    }

    /// What came of the orders.
    pub fn poll(&mut self) -> Option<(FetchId, Fetched)> {
        self.told.pop_front()
    }

    /// A new order.
    pub fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets, id: FetchId, request: FetchRequest) {
        let to = match self.address(&request.url) {
            Ok(to) => to,
            Err(why) => return self.told.push_back((id, Fetched::Failed(why))),
        };
        self.origins.entry(to).or_default().waiting.push_back(Order { id, request, again: false });
        self.dispatch(cx, net, to);
    }

    /// An order is taken back.
    pub fn cancel(&mut self, cx: &mut Cx, net: &mut dyn Sockets, id: FetchId) {
        self.told.retain(|(told, _)| *told != id);
        let under_way = self.connections.iter().find(|(_, c)| c.order.as_ref().is_some_and(|o| o.id == id));
        if let Some(socket) = under_way.map(|(socket, _)| *socket) {
            net.reset(cx, socket);
            if let Some(to) = self.drop_connection(socket).map(|connection| connection.to) {
                self.dispatch(cx, net, to);
            }
        } else {
            self.origins.values_mut().for_each(|origin| origin.waiting.retain(|order| order.id != id));
            self.origins.retain(|_, origin| origin.connections > 0 || !origin.waiting.is_empty());
        }
    }

    fn address(&self, url: &Url) -> Result<SocketAddr, FetchError> {
        if url.scheme() != "http" {
            return Err(FetchError::Unsupported);
        }
        let address = match url.host() {
            Some(Host::Ipv4(address)) => address.into(),
            Some(Host::Ipv6(address)) => address.into(),
            Some(Host::Domain(name)) => *self.names.get(name).ok_or(FetchError::Unresolved)?,
            None => return Err(FetchError::Unresolved),
        };
        Ok(SocketAddr::new(address, url.port_or_known_default().unwrap_or(80)))
    }

    /// Gives waiting orders to connections.
    fn dispatch(&mut self, cx: &mut Cx, net: &mut dyn Sockets, to: SocketAddr) {
        let Some(origin) = self.origins.get_mut(&to) else { return };
        while let Some(order) = origin.waiting.pop_front() {
            // What failed on an old connection gets a new one, even if others are idle.
            let idle = if order.again { None } else { origin.idle.pop() };
            let socket = match idle {
                Some(socket) => socket,
                None if origin.connections < self.settings.connections => {
                    let socket = net.connect(cx, to);
                    origin.connections += 1;
                    self.opened += 1;
                    self.connections.insert(socket, Connection::new(socket, to, self.settings.keep_alive));
                    socket
                }
                None => {
                    origin.waiting.push_front(order);
                    break;
                }
            };
            if let Some(connection) = self.connections.get_mut(&socket) {
                connection.ask(cx, net, order);
            }
        }
        if origin.connections == 0 && origin.waiting.is_empty() {
            self.origins.remove(&to);
        }
    }

    /// Something happened on a connection.
    pub fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        let Some(connection) = self.connections.get_mut(&socket) else { return };
        let told = &mut self.told;
        let progress = match event {
            SocketEvent::Opened => {
                connection.opened(cx, net);
                Progress::None
            }
            SocketEvent::Writable => {
                connection.write(cx, net);
                Progress::None
            }
            SocketEvent::Readable(_) => connection.read(cx, net, told),
            SocketEvent::Finished => connection.peer_finished(told),
            SocketEvent::Closed(why) => return self.closed(cx, net, socket, why),
            SocketEvent::Asked { .. } | SocketEvent::Accepted { .. } | SocketEvent::Stream(_) => {
                Progress::None
            }
        };
        match progress {
            Progress::None => {}
            Progress::Complete => self.completed(cx, net, socket),
            Progress::Broken => {
                net.reset(cx, socket);
                self.closed(cx, net, socket, CloseReason::Reset);
            }
            Progress::Ended => {
                net.finish(cx, socket);
                self.closed(cx, net, socket, CloseReason::Finished);
            }
        }
    }

    /// An answer is complete: the connection waits for the next request, or is closed.
    fn completed(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        let Some(connection) = self.connections.get_mut(&socket) else { return };
        let to = connection.to;
        if connection.persists() {
            connection.idle_until = Some(cx.now + self.settings.keep_alive_timeout);
            self.origins.entry(to).or_default().idle.push(socket);
        } else {
            net.finish(cx, socket);
            self.drop_connection(socket);
        }
        self.dispatch(cx, net, to);
    }

    fn closed(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, why: CloseReason) {
        let Some(mut connection) = self.drop_connection(socket) else { return };
        if let Some(order) = connection.order.take() {
            let silent = connection.used && !connection.answered;
            if silent && !order.again && order.request.method.is_idempotent() {
                let origin = self.origins.entry(connection.to).or_default();
                origin.waiting.push_front(Order { again: true, ..order });
            } else {
                let why = match why {
                    CloseReason::TimedOut if !connection.was_opened => FetchError::TimedOut,
                    _ if connection.was_opened => FetchError::Broken,
                    _ => FetchError::Unreachable,
                };
                self.told.push_back((order.id, Fetched::Failed(why)));
            }
        }
        self.dispatch(cx, net, connection.to);
    }

    fn drop_connection(&mut self, socket: SocketId) -> Option<Connection> {
        let connection = self.connections.remove(&socket)?;
        if let Some(origin) = self.origins.get_mut(&connection.to) {
            origin.connections -= 1;
            origin.idle.retain(|idle| *idle != socket);
            if origin.connections == 0 && origin.waiting.is_empty() {
                self.origins.remove(&connection.to);
            }
        }
        Some(connection)
    }

    /// When to call [`Fetcher::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.connections.values().filter_map(|connection| connection.idle_until).min()
    }

    /// Closes connections that nobody used for too long.
    pub fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        let is_due = |connection: &Connection| connection.idle_until.is_some_and(|at| at <= cx.now);
        let due: Vec<SocketId> =
            self.connections.iter().filter(|(_, c)| is_due(c)).map(|(s, _)| *s).collect();
        for socket in due {
            net.finish(cx, socket);
            self.drop_connection(socket);
        }
    }
}

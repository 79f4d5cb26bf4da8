//! The simulated stack of a host: its connections, and the sockets its applications see.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use airloom_base::lookup::Table;
use airloom_base::service::{Datagram, Identity, Passing, Path, PathId, WriteError, leading_ports};
use airloom_base::{
    App, Body, CloseReason, Cx, Instant, Packet, Protocol, SocketId, Sockets, Station, StreamKind, Transport,
};
use airloom_wire::icmp::Icmp;
use airloom_wire::{ip, udp};

use super::Interface;
use super::connection::{Connection, Key, OtherPath};
use crate::agenda::Wakeup;
use crate::routes::{Hop, Routes};

/// First ephemeral port (RFC 6335: the dynamic ports).
const FIRST_EPHEMERAL: u16 = 49_152;

/// So many own addresses are compared one by one; more (a router's) are looked up.
const FEW: usize = 4;

/// The first index of an address of another host for which an application answers; so many own ones there can be, and so
/// many others.
const FOREIGN: u16 = 1 << 15;

/// A place in the table of connections.
#[derive(Default)]
pub(crate) struct Slot {
    pub(crate) generation: u32,
    pub(crate) connection: Option<Box<Connection>>,
}

/// Connections (host and slot) that were fed and must be drained, in order. Mostly there is just one: it needs no
/// queue.
#[derive(Default)]
pub(crate) struct Fed {
    first: Option<(u32, u32)>,
    /// Empty if there is no first.
    more: VecDeque<(u32, u32)>,
}

impl Fed {
    #[inline]
    pub(crate) fn push_back(&mut self, connection: (u32, u32)) {
        if self.first.is_none() {
            self.first = Some(connection);
        } else {
            self.more.push_back(connection);
        }
    }

    #[inline]
    pub(crate) fn pop_front(&mut self) -> Option<(u32, u32)> {
        let next = self.first?;
        self.first = if self.more.is_empty() { None } else { self.more.pop_front() };
        Some(next)
    }
}

/// Connections, ports and protocols of a host. Datagrams to send are put into `out`, with the hop they take.
#[derive(Default)]
pub(crate) struct Net {
    pub(crate) index: u32,
    pub(crate) interfaces: Vec<Interface>,
    /// Stations of links that are out of service for this host.
    out_of_service: Vec<(u32, Station)>,
    pub(crate) protocols: Vec<Box<dyn Protocol>>,
    /// Number in the IP header of each of them.
    pub(crate) numbers: Vec<u8>,
    /// Those that are for the connections of some link alone.
    pub(crate) of_links: Vec<usize>,
    /// All of them have their ports in the first four octets.
    pub(crate) leading_ports: bool,
    /// The host's own addresses as numbers, and where each of them stands.
    locals: Vec<u128>,
    places: Table<u128, u16>,
    /// Addresses of other hosts to which connections are taken over here, by first use.
    foreign: Table<u128, u16>,
    /// Which connections that pass are taken over, and by which application.
    passing: Passing,
    taker: u16,
    pub(crate) slots: Vec<Slot>,
    free: Vec<u32>,
    pub(super) table: Table<Key, u32>,
    pub(super) last_found: Option<(Key, u32)>,
    /// Application behind each stream port, whatever the transport, and behind each datagram port.
    streams: Table<u16, u16>,
    datagrams: Table<u16, u16>,
    /// Applications behind stream ports of one transport: name, port, application.
    over: Vec<(&'static str, u16, u16)>,
    /// What is spoken at stream ports whose applications know of streams that open one by one.
    spoken: Vec<(u16, &'static str)>,
    /// Applications that decide on each opening.
    pub(crate) deciding: Vec<u16>,
    ephemeral: u16,
    /// Sockets that could not be opened at all: told to the application afterwards.
    pub(crate) failed: VecDeque<(u16, SocketId, CloseReason)>,
    /// Connections that were accepted and are not open yet.
    pub(crate) half_open: u32,
    /// Datagrams of applications that were larger than the link takes.
    pub(crate) too_big: u64,
    /// Datagrams of applications to which no way leads.
    pub(crate) no_route: u64,
    /// Datagrams ready to go.
    pub(crate) out: VecDeque<(Hop, Packet)>,
}

/// The hop over this own link to an address of a peer that may be reached over others of its links too.
fn hop_over(routes: &Routes, host: u32, link: u32, remote: IpAddr, straight: bool) -> Option<Hop> {
    let remote = ip::key(remote);
    let straight = || routes.straight_over(host, link, remote).filter(|_| straight);
    routes.lookup_over(host, link, remote).or_else(straight)
}

fn is_over_one_of(out: &[(u32, Station)], hop: Hop) -> bool {
    matches!(hop, Hop::Link { link, station, .. } if out.contains(&(link, station)))
}

impl Net {
    pub(crate) fn new(index: u32) -> Self {
        Net { index, ephemeral: FIRST_EPHEMERAL, leading_ports: true, ..Net::default() }
    }

    /// Gives the ports `app` wants to the application `index`.
    pub(crate) fn listen(&mut self, app: &dyn App, index: u16) {
        let over = app.accepts_over();
        for port in app.stream_ports() {
            if over.is_empty() {
                self.streams.insert(port, index);
            }
            self.over.extend(over.iter().map(|transport| (*transport, port, index)));
        }
        for port in app.datagram_ports() {
            self.datagrams.insert(port, index);
        }
        let spoken = app.speaks();
        self.spoken.extend(app.stream_ports().into_iter().filter_map(|port| Some((port, spoken?))));
        if app.decides() {
            self.deciding.push(index);
        }
        let passing = app.passing();
        if passing != Passing::None {
            (self.passing, self.taker) = (passing, index);
        }
    }

    /// A port `app` wants of which another application leaves it nothing, or would be left nothing. Each transport has ports of its
    /// own; those of QUIC are UDP's.
    pub(crate) fn port_taken(&self, app: &dyn App) -> Option<u16> {
        let (over, streams, datagrams) = (app.accepts_over(), app.stream_ports(), app.datagram_ports());
        let all = || 0..self.protocols.len();
        let is_udp = |protocol: usize| self.numbers[protocol] == ip::protocol::UDP;
        let is_given = |protocol: usize, port: u16| self.named_app(protocol, port).is_some();
        let is_left = |protocol: usize, port: u16| {
            !(is_given(protocol, port) || is_udp(protocol) && self.datagrams.contains(&port))
        };
        let wants = |protocol: usize| over.contains(&self.protocols[protocol].name());
        let no_stream = |port: &u16| {
            let is_plain = self.streams.contains(port);
            if over.is_empty() {
                return is_plain || (!self.protocols.is_empty() && !all().any(|p| is_left(p, *port)));
            }
            all().any(|p| wants(p) && !is_left(p, *port))
                || (is_plain && !all().any(|p| !wants(p) && is_left(p, *port)))
        };
        let no_datagram = |port: &u16| {
            let is_plain = self.streams.contains(port);
            self.datagrams.contains(port)
                || all().any(|p| is_udp(p) && is_given(p, *port))
                || (is_plain && !all().any(|p| !is_udp(p) && is_left(p, *port)))
        };
        streams.into_iter().find(no_stream).or_else(|| datagrams.into_iter().find(no_datagram))
    }

    /// The application that has named this protocol at this port.
    fn named_app(&self, protocol: usize, port: u16) -> Option<u16> {
        let name = self.protocols.get(protocol)?.name();
        self.over.iter().find(|(over, at, _)| *over == name && *at == port).map(|(.., app)| *app)
    }

    /// The application that connections of this protocol to this port are for, at an address of this index.
    pub(crate) fn stream_app(&self, local: u16, protocol: usize, port: u16) -> Option<u16> {
        if local >= FOREIGN {
            return Some(self.taker).filter(|_| self.passing.takes(port));
        }
        if !self.over.is_empty()
            && let Some(app) = self.named_app(protocol, port)
        {
            return Some(app);
        }
        let app = self.streams.get(&port).copied()?;
        let is_datagrams = self.numbers[protocol] == ip::protocol::UDP && self.datagrams.contains(&port);
        Some(app).filter(|_| !is_datagrams)
    }

    pub(crate) fn datagram_app(&self, port: u16) -> Option<u16> {
        self.datagrams.get(&port).copied()
    }

    /// The host has these addresses too.
    pub(crate) fn own(&mut self, addresses: &[IpAddr]) {
        for address in addresses.iter().map(|a| ip::key(*a)) {
            if !self.places.contains(&address) {
                self.places.insert(address, self.locals.len().min(usize::from(FOREIGN) - 2) as u16);
            }
            self.locals.push(address);
        }
    }

    /// Has the host so many addresses that looking for one takes as long as looking for a route?
    #[inline]
    pub(crate) fn has_many_addresses(&self) -> bool {
        self.locals.len() > FEW
    }

    /// Which of the host's own addresses this is, if it is one.
    #[inline]
    pub(crate) fn local(&self, address: u128) -> Option<u16> {
        if self.has_many_addresses() {
            return self.local_of_many(address);
        }
        self.locals.iter().position(|a| *a == address).map(|n| n as u16)
    }

    #[inline(never)]
    fn local_of_many(&self, address: u128) -> Option<u16> {
        self.places.get(&address).copied()
    }

    /// The index of an own address, or of one that an application here answers for.
    pub(crate) fn local_or_foreign(&self, address: u128) -> Option<u16> {
        self.local(address).or_else(|| self.foreign.get(&address).copied())
    }

    fn local_index(&self, address: IpAddr) -> u16 {
        self.local_or_foreign(ip::key(address)).unwrap_or(FOREIGN - 1)
    }

    /// A datagram for another host: is it of a connection that is taken over here? Then the index of its destination. What
    /// begins beyond the first 32,768 such addresses passes untouched.
    #[inline]
    pub(crate) fn takes_over(&mut self, header: &ip::Brief, packet: &Packet) -> Option<u16> {
        if self.passing == Passing::None { None } else { self.foreign_index(header, packet) }
    }

    #[inline(never)]
    fn foreign_index(&mut self, header: &ip::Brief, packet: &Packet) -> Option<u16> {
        if matches!(header.protocol, ip::protocol::ICMP | ip::protocol::ICMPV6) {
            return self.foreign_too_big(packet);
        }
        let protocol = self.numbers.iter().position(|n| *n == header.protocol)?;
        let unit = packet.head().get(header.header_len..).filter(|_| !header.is_fragment)?;
        let ports =
            if self.leading_ports { leading_ports(unit) } else { self.protocols[protocol].ports(unit) };
        ports.filter(|(_, to)| self.passing.takes(*to))?;
        if let Some(index) = self.foreign.get(&header.destination) {
            return Some(*index);
        }
        let index = FOREIGN.checked_add(u16::try_from(self.foreign.len()).ok()?)?;
        self.foreign.insert(header.destination, index);
        Some(index)
    }

    /// A router says that a datagram which an application here sent for another host was too big. All else about that host is
    /// its own affair.
    fn foreign_too_big(&self, packet: &Packet) -> Option<u16> {
        let header = ip::Ip::parse(packet.head()).ok().filter(|header| !header.is_fragment)?;
        let index = *self.foreign.get(&ip::key(header.destination))?;
        let message = Icmp::parse(header.source, packet.head().get(header.header_len..)?).ok()?;
        let is_ours = || self.quoted(&packet.body().to_bytes()).is_some_and(|key| self.table.contains(&key));
        (matches!(message, Icmp::TooBig { .. }) && is_ours()).then_some(index)
    }

    #[inline(always)]
    pub(crate) fn find(&mut self, key: &Key) -> Option<u32> {
        // Packets come in trains: the last connection is asked first.
        if self.last_found.is_some_and(|(last, _)| last == *key) {
            return self.last_found.map(|(_, slot)| slot);
        }
        let slot = self.table.get(key).copied()?;
        self.last_found = Some((*key, slot));
        Some(slot)
    }

    /// Puts a connection into the table.
    pub(crate) fn insert(&mut self, connection: Connection) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        self.table.insert(connection.key, slot);
        self.slots[slot as usize].connection = Some(Box::new(connection));
        slot
    }

    /// Takes a connection out; its handle is stale from now on.
    pub(crate) fn remove(&mut self, slot: u32) -> Option<Box<Connection>> {
        let place = self.slots.get_mut(slot as usize)?;
        let connection = place.connection.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.table.remove(&connection.key);
        for other in &connection.others {
            self.table.remove(&other.key);
        }
        self.last_found = None;
        if connection.is_half_open() {
            self.half_open -= 1;
        }
        self.free.push(slot);
        Some(connection)
    }

    /// The connection in `slot`, if the slot was not used anew since.
    #[inline]
    pub(crate) fn get(&mut self, slot: u32, generation: u32) -> Option<&mut Connection> {
        let place = self.slots.get_mut(slot as usize)?;
        if place.generation == generation { place.connection.as_deref_mut() } else { None }
    }

    pub(crate) fn socket(&self, slot: u32, stream: u32) -> SocketId {
        SocketId { slot, generation: self.slots[slot as usize].generation, stream }
    }

    /// Notes that a connection was fed and has to be drained.
    #[inline]
    pub(crate) fn touch(&mut self, slot: u32, fed: &mut Fed) {
        if let Some(connection) = self.slots[slot as usize].connection.as_deref_mut()
            && !connection.dirty
        {
            connection.dirty = true;
            fed.push_back((self.index, slot));
        }
    }

    /// Tells connections whose datagrams leave over this station of a link whether it is in service.
    pub(crate) fn path_changed(&mut self, cx: &mut Cx, over: (u32, Station), is_up: bool, fed: &mut Fed) {
        self.out_of_service.retain(|other| *other != over);
        if !is_up {
            self.out_of_service.push(over);
        }
        for slot in 0..self.slots.len() as u32 {
            let Some(connection) = self.slots[slot as usize].connection.as_deref_mut() else { continue };
            let hops = std::iter::once(connection.hop).chain(connection.others.iter().map(|other| other.hop));
            let goes = |hop| matches!(hop, Hop::Link { link, station, .. } if (link, station) == over);
            let paths: Vec<u8> =
                (0..).zip(hops).filter(|(_, hop)| goes(*hop)).map(|(path, _)| path).collect();
            for path in &paths {
                connection.transport.handle_path(cx, PathId(*path), is_up);
            }
            if !paths.is_empty() {
                self.touch(slot, fed);
            }
        }
    }

    /// A connection between these addresses and ports, over `hop`.
    pub(crate) fn connection(
        &self,
        transport: Box<dyn Transport>,
        protocol: usize,
        path: Path,
        ports: (u16, u16),
        hop: Hop,
        flow: u32,
        now: Instant,
    ) -> Connection {
        let ip_protocol = self.protocols[protocol].ip_protocol();
        let local = self.local_index(path.local);
        Connection {
            transport,
            held: None,
            lingering: false,
            key: Key::new(ip_protocol, local, ports.0, ip::key(path.remote), ports.1),
            hop,
            path,
            ports,
            protocol: protocol as u8,
            header: ip::Template::new(path.local, path.remote, ip_protocol),
            others: Vec::new(),
            app: None,
            opener: false,
            accepted: false,
            opened: false,
            reported: false,
            dirty: false,
            flow,
            wakeup: Wakeup::default(),
            open: now,
            close: None,
        }
    }

    /// Protocols that tell their peers get to know the host's addresses, its largest datagram, and what is spoken at its ports.
    pub(crate) fn tell_protocols(&mut self) {
        let addresses: Vec<IpAddr> =
            self.interfaces.iter().flat_map(|i| i.addresses.iter().copied()).collect();
        let mtu = self.interfaces.iter().map(|i| i.mtu).max().unwrap_or(0);
        for protocol in &mut self.protocols {
            protocol.own(&addresses, mtu);
            self.spoken.iter().for_each(|(port, spoken)| protocol.serve(*port, spoken));
        }
    }

    /// Adds a path to a connection for each of its peer's addresses and each interface of ours that leads there.
    pub(crate) fn add_paths(&mut self, cx: &mut Cx, routes: &Routes, slot: u32) {
        let Some(connection) = self.slots[slot as usize].connection.as_deref_mut() else { return };
        let Some(told) = connection.transport.peer_addresses() else { return };
        // A peer with one address says nothing, and may be reached from each of ours.
        let has_one = told.is_empty();
        let remotes = if has_one { vec![connection.path.remote] } else { told.to_vec() };
        let protocol = self.numbers[usize::from(connection.protocol)];
        let mut pairs = Vec::new();
        for remote in remotes {
            for (interface, &link) in self.interfaces.iter().zip(&routes.attached[self.index as usize]) {
                let hop = hop_over(routes, self.index, link, remote, has_one);
                let Some((hop, local)) = hop.zip(interface.address_for(remote)) else { continue };
                pairs.push((Path { local, remote, mtu: interface.mtu }, hop));
            }
        }
        //= RFC 9260 (6.4.1): what fails goes over the most divergent pair, which comes first here: another address of the
        //= connection's family over another link. An address of the other family may be one of the same interface.
        let family = connection.path.remote.is_ipv4();
        pairs.sort_by_key(|(path, hop)| (path.remote.is_ipv4() != family, *hop == connection.hop));
        for (path, hop) in pairs {
            let Path { local, remote, .. } = path;
            let index = self.locals.iter().position(|own| *own == ip::key(local)).unwrap_or(0) as u16;
            let key = Key::new(protocol, index, connection.ports.0, ip::key(remote), connection.ports.1);
            if key != connection.key && !self.table.contains(&key) && connection.transport.add_path(cx, path)
            {
                let header = ip::Template::new(local, remote, protocol);
                connection.others.push(OtherPath { key, hop, header });
                self.table.insert(key, slot);
                if is_over_one_of(&self.out_of_service, hop) {
                    let path = PathId(connection.others.len() as u8);
                    connection.transport.handle_path(cx, path, false);
                }
            }
        }
    }

    /// Our address towards `remote` and the hop there.
    pub(crate) fn way(&self, routes: &mut Routes, remote: IpAddr) -> Option<(Path, Hop)> {
        let hop = routes.lookup(self.index, ip::key(remote))?;
        let (local, mtu) = match hop {
            Hop::Local => (remote, u16::MAX),
            Hop::Link { interface, .. } => {
                let interface = &self.interfaces[usize::from(interface)];
                (interface.address_for(remote)?, interface.mtu)
            }
        };
        Some((Path { local, remote, mtu }, hop))
    }

    /// As `way`, for a new connection: over the first link in service that leads there, if the usual one is not.
    fn way_in_service(&self, routes: &mut Routes, remote: IpAddr) -> Option<(Path, Hop)> {
        let usual = self.way(routes, remote)?;
        if self.out_of_service.is_empty() || !is_over_one_of(&self.out_of_service, usual.1) {
            return Some(usual);
        }
        let routes = &*routes;
        let attached = &routes.attached[self.index as usize];
        let mut others = self.interfaces.iter().zip(attached).filter_map(|(interface, &link)| {
            let hop = hop_over(routes, self.index, link, remote, true)?;
            let local = interface.address_for(remote)?;
            Some((Path { local, remote, mtu: interface.mtu }, hop))
        });
        others.find(|(_, hop)| !is_over_one_of(&self.out_of_service, *hop)).or(Some(usual))
    }

    /// The protocol of its own that the interface has over which this hop goes.
    pub(crate) fn protocol_over(&self, hop: Hop) -> Option<usize> {
        let Hop::Link { interface, .. } = hop else { return None };
        self.interfaces[usize::from(interface)].protocol.map(usize::from)
    }

    /// The protocol of a new connection over this hop: that of the interface if it has its own, else the host's first; for an
    /// application with streams the first of these that has some.
    fn protocol_for(&self, hop: Hop, with_streams: bool) -> usize {
        let usual = self.protocol_over(hop).unwrap_or(0);
        if !with_streams {
            return usual;
        }
        let shared = (0..self.protocols.len()).filter(|n| !self.of_links.contains(n));
        let mut all = std::iter::once(usual).chain(shared);
        all.find(|n| self.protocols.get(*n).is_some_and(|p| p.has_streams())).unwrap_or(usual)
    }

    /// A port for a new connection to `remote`; `None` if all are taken.
    fn ephemeral_port(&mut self, protocol: u8, path: &Path, remote_port: u16) -> Option<u16> {
        let local = self.local_index(path.local);
        for _ in FIRST_EPHEMERAL..=u16::MAX {
            let port = self.ephemeral;
            self.ephemeral = port.checked_add(1).unwrap_or(FIRST_EPHEMERAL);
            let key = Key::new(protocol, local, port, ip::key(path.remote), remote_port);
            let is_an_apps = protocol == ip::protocol::UDP && self.datagrams.contains(&port);
            if !self.table.contains(&key) && !is_an_apps {
                return Some(port);
            }
        }
        None
    }

    /// Puts an IP header in front of a unit that begins with its own header and queues it.
    pub(crate) fn send(
        &mut self,
        cx: &mut Cx,
        path: &Path,
        hop: Hop,
        protocol: u8,
        ecn: u8,
        mut packet: Packet,
    ) {
        let payload = packet.wire_len();
        let header = packet.prepend(ip::header_len(path.remote));
        ip::emit(header, path.local, path.remote, protocol, ecn, payload);
        packet.set_id(cx.records.next_packet());
        self.out.push_back((hop, packet));
    }
}

/// The sockets of one application during one call.
pub(crate) struct Call<'a> {
    pub(crate) app: u16,
    pub(crate) net: &'a mut Net,
    pub(crate) routes: &'a mut Routes,
    pub(crate) fed: &'a mut Fed,
}

impl Call<'_> {
    fn connection(&mut self, socket: SocketId) -> Option<&mut Connection> {
        let app = self.app;
        self.net.get(socket.slot, socket.generation).filter(|c| c.app == Some(app))
    }

    fn open(
        &mut self,
        cx: &mut Cx,
        to: SocketAddr,
        spoken: Option<&'static str>,
    ) -> Result<SocketId, CloseReason> {
        let (path, hop) = self.net.way_in_service(self.routes, to.ip()).ok_or(CloseReason::Unreachable)?;
        let index = self.net.protocol_for(hop, spoken.is_some());
        let protocol = self.net.protocols.get(index).ok_or(CloseReason::Unreachable)?.ip_protocol();
        let port = self.net.ephemeral_port(protocol, &path, to.port()).ok_or(CloseReason::Unreachable)?;
        let flow = cx.records.next_flow();
        let who = Identity { host: self.net.index as u16, flow };
        let ports = (port, to.port());
        let transport = self.net.protocols[index].open(cx, path, ports, who);
        let mut connection = self.net.connection(transport, index, path, ports, hop, flow, cx.now);
        connection.app = Some(self.app);
        connection.opener = true;
        if let Some(spoken) = spoken {
            connection.transport.speak(spoken);
        }
        connection.transport.connect(cx);
        let slot = self.net.insert(connection);
        self.net.touch(slot, self.fed);
        Ok(self.net.socket(slot, 0))
    }

    fn connect_or_fail(&mut self, cx: &mut Cx, to: SocketAddr, spoken: Option<&'static str>) -> SocketId {
        self.open(cx, to, spoken).unwrap_or_else(|why| {
            // A handle that never was: it only carries the news.
            let socket = SocketId { slot: u32::MAX, generation: cx.records.next_flow(), stream: 0 };
            self.net.failed.push_back((self.app, socket, why));
            socket
        })
    }

    /// Has the connection of a socket do something, which it may have to say or to send something after.
    fn with<T>(&mut self, socket: SocketId, act: impl FnOnce(&mut dyn Transport) -> T) -> Option<T> {
        let result = act(self.connection(socket)?.transport.as_mut());
        self.net.touch(socket.slot, self.fed);
        Some(result)
    }
}

impl Sockets for Call<'_> {
    fn connect(&mut self, cx: &mut Cx, to: SocketAddr) -> SocketId {
        self.connect_or_fail(cx, to, None)
    }

    fn connect_for(&mut self, cx: &mut Cx, to: SocketAddr, protocol: &'static str) -> SocketId {
        self.connect_or_fail(cx, to, Some(protocol))
    }

    fn write(&mut self, cx: &mut Cx, socket: SocketId, body: Body) -> Result<usize, WriteError> {
        let Some(connection) = self.connection(socket) else { return Err(WriteError::Closed) };
        let taken = connection.transport.write(cx, socket.stream, body);
        self.net.touch(socket.slot, self.fed);
        taken
    }

    fn read(&mut self, cx: &mut Cx, socket: SocketId, max: usize) -> Option<Body> {
        let host = self.net.index;
        let app = self.app;
        let connection = self.net.get(socket.slot, socket.generation).filter(|c| c.app == Some(app))?;
        let body = connection.transport.read(cx, socket.stream, max);
        // Room in the receive buffer may call for a window update.
        if body.is_some() && !connection.dirty {
            connection.dirty = true;
            self.fed.push_back((host, socket.slot));
        }
        body
    }

    fn unacknowledged(&self, socket: SocketId) -> u64 {
        let place = self.net.slots.get(socket.slot as usize).filter(|s| s.generation == socket.generation);
        let connection = place.and_then(|s| s.connection.as_deref()).filter(|c| c.app == Some(self.app));
        connection.map_or(0, |c| c.transport.unacknowledged(socket.stream))
    }

    fn local(&self, socket: SocketId) -> Option<SocketAddr> {
        let place = self.net.slots.get(socket.slot as usize).filter(|s| s.generation == socket.generation);
        let connection = place.and_then(|s| s.connection.as_deref()).filter(|c| c.app == Some(self.app))?;
        Some(SocketAddr::new(connection.path.local, connection.ports.0))
    }

    fn streams(&self, socket: SocketId) -> Option<u32> {
        let place = self.net.slots.get(socket.slot as usize).filter(|s| s.generation == socket.generation);
        place.and_then(|s| s.connection.as_deref()).and_then(|c| c.transport.streams())
    }

    fn finish(&mut self, cx: &mut Cx, socket: SocketId) {
        if let Some(connection) = self.connection(socket) {
            connection.transport.finish(cx, socket.stream);
            self.net.touch(socket.slot, self.fed);
        }
    }

    fn admit(&mut self, cx: &mut Cx, socket: SocketId) {
        let Some(connection) = self.connection(socket) else { return };
        if let Some(held) = connection.held.take() {
            connection.transport = held.transport;
            connection.transport.handle_packet(cx, PathId(0), held.ecn, held.unit);
            self.net.touch(socket.slot, self.fed);
        }
    }

    fn reset(&mut self, cx: &mut Cx, socket: SocketId) {
        if let Some(connection) = self.connection(socket) {
            (connection.app, connection.held) = (None, None);
            connection.close = Some(cx.now);
            connection.transport.reset(cx);
            self.net.touch(socket.slot, self.fed);
        }
    }

    fn close(&mut self, cx: &mut Cx, socket: SocketId, code: u64) {
        if let Some(connection) = self.connection(socket) {
            (connection.app, connection.held) = (None, None);
            connection.close = Some(cx.now);
            connection.transport.close(cx, code);
            self.net.touch(socket.slot, self.fed);
        }
    }

    fn open_stream(&mut self, cx: &mut Cx, socket: SocketId, kind: StreamKind) -> Option<SocketId> {
        let stream = self.with(socket, |transport| transport.open_stream(cx, kind))??;
        Some(socket.with_stream(stream))
    }

    fn reset_stream(&mut self, cx: &mut Cx, socket: SocketId, code: u64) {
        self.with(socket, |transport| transport.reset_stream(cx, socket.stream, code));
    }

    fn stop(&mut self, cx: &mut Cx, socket: SocketId, code: u64) {
        self.with(socket, |transport| transport.stop(cx, socket.stream, code));
    }

    fn set_priority(&mut self, socket: SocketId, priority: i32) {
        self.with(socket, |transport| transport.set_priority(socket.stream, priority));
    }

    fn send_unreliable(&mut self, cx: &mut Cx, socket: SocketId, body: Body) -> bool {
        self.with(socket, |transport| transport.send_unreliable(cx, body)).unwrap_or(false)
    }

    fn read_unreliable(&mut self, cx: &mut Cx, socket: SocketId) -> Option<Body> {
        self.with(socket, |transport| transport.read_unreliable(cx))?
    }

    fn unreliable_limit(&self, socket: SocketId) -> Option<usize> {
        let place = self.net.slots.get(socket.slot as usize).filter(|s| s.generation == socket.generation);
        place.and_then(|s| s.connection.as_deref()).and_then(|c| c.transport.unreliable_limit())
    }

    fn send_datagram(&mut self, cx: &mut Cx, datagram: Datagram) {
        let (remote, protocol, packet) = match datagram {
            Datagram::Udp { local_port, remote, body } => {
                let len = (udp::HEADER + body.len()).min(usize::from(u16::MAX)) as u16;
                let header = udp::Udp { source: local_port, destination: remote.port(), len };
                (remote.ip(), ip::protocol::UDP, Packet::build(|out| header.emit(out), body))
            }
            Datagram::Echo { remote, seq, body, .. } => {
                let request = Icmp::EchoRequest { ident: self.app.wrapping_add(1), seq };
                (remote, Icmp::protocol(remote), Packet::build(|out| request.emit(remote, out), body))
            }
        };
        // Datagrams to nowhere are lost without a word to who sent them, as on a real host without a route error
        // handler.
        let Some((path, hop)) = self.net.way(self.routes, remote) else {
            self.net.no_route += 1;
            return;
        };
        if packet.wire_len() + usize::from(path.ip_header()) > usize::from(path.mtu) {
            // The model does not fragment; a real host with don't-fragment set refuses it to the application.
            self.net.too_big += 1;
            return;
        }
        self.net.send(cx, &path, hop, protocol, 0, packet);
    }

    fn datagram_limit(&mut self, to: IpAddr) -> Option<usize> {
        let (path, _) = self.net.way(self.routes, to)?;
        Some(usize::from(path.mtu).saturating_sub(usize::from(path.ip_header()) + udp::HEADER))
    }

    fn flow(&self, socket: SocketId) -> u32 {
        let place = self.net.slots.get(socket.slot as usize).filter(|s| s.generation == socket.generation);
        place.and_then(|s| s.connection.as_deref()).map_or(0, |c| c.flow)
    }

    fn log(&mut self, socket: SocketId, events: &[u8]) {
        // Nothing is sent for it: the connection need not be asked.
        if let Some(connection) = self.connection(socket) {
            connection.transport.log(events);
        }
    }

    fn transport(&self, socket: SocketId) -> Option<&'static str> {
        let place = self.net.slots.get(socket.slot as usize).filter(|s| s.generation == socket.generation);
        let connection = place.and_then(|s| s.connection.as_deref())?;
        self.net.protocols.get(usize::from(connection.protocol)).map(|protocol| protocol.name())
    }
}

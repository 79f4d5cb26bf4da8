//! The network as one machine.
//!
//! `World` holds the graph, the agenda and slabs of machines, and has no protocol knowledge. Two loops of about
//! fifty lines drive it, one per clock (`airloom-drive`). Every call ends with everything drained:
//!
//! ```text
//!   handle_timeout, ingress -> [ links deliver -> hosts receive -> connections, applications -> links ] until quiet
//! ```

use std::collections::VecDeque;
use std::ops::Range;

use airloom_base::record::Event;
use airloom_base::service::{Datagram, Outgoing, Path};
use airloom_base::{
    BearerEvent, Change, CloseReason, Condition, Cx, Direction, Grade, Instant, Outbox, Packet, SocketEvent,
    SocketId, Station, TransportEvent, Unsupported,
};
use airloom_wire::edge::{self, Received};
use airloom_wire::icmp::Icmp;
use airloom_wire::ip::{self, Brief, Ip};
use airloom_wire::segment;

use crate::agenda::{Agenda, Key};
use crate::fabric::{LinkSlot, record};
use crate::host::{Call, Fed, Host, Reception, Totals};
use crate::observed::Observed;
use crate::port::{FlowTable, PortId, PortInfo};
use crate::routes::{Hop, Routes};

/// Datagrams that went nowhere, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strays {
    /// No route to the destination.
    pub no_route: u64,
    /// Its hops were used up.
    pub hop_limit: u64,
    /// Larger than what the next link takes.
    pub too_big: u64,
    /// Cut short, flipped bits, wrong checksum, unknown protocol.
    pub malformed: u64,
}

/// A change waiting for its moment.
pub(crate) struct Planned {
    pub(crate) at: Instant,
    pub(crate) link: u32,
    pub(crate) part: Vec<u16>,
    pub(crate) change: Change,
}

/// A network of hosts and links. Built by [`Builder`](crate::Builder).
#[derive(Default)]
pub struct World {
    pub(crate) now: Instant,
    pub(crate) agenda: Agenda,
    pub(crate) hosts: Vec<Host>,
    pub(crate) links: Vec<LinkSlot>,
    pub(crate) routes: Routes,
    pub(crate) records: Outbox,
    pub(crate) timeline: Vec<Planned>,
    pub(crate) ports: Vec<PortInfo>,
    flows: FlowTable,
    /// Flows of which no end is simulated.
    pub(crate) observed: Observed,
    fed: Fed,
    /// Datagrams that hosts sent to themselves.
    loopback: VecDeque<(u32, Packet)>,
    /// Sockets that could not be opened: their applications are told when all else is quiet.
    failed: VecDeque<(u32, u16, SocketId, CloseReason)>,
    egress: VecDeque<(PortId, Packet)>,
    pending_apps: usize,
    started: bool,
    pub(crate) totals: Totals,
    strays: Strays,
    first_unsupported: Option<(String, Unsupported)>,
    /// Applications, by host and place, that [`World::wake`] calls.
    pub(crate) edges: Vec<(u32, u16)>,
}

impl World {
    /// The nominal time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// When to call [`World::handle_timeout`]. Drops stale entries first, so the answer is never one of them.
    #[inline]
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        if !self.started {
            return Some(self.now);
        }
        while let Some((at, key)) = self.agenda.peek() {
            if self.is_valid(key, at) {
                return Some(at);
            }
            self.agenda.pop(at);
        }
        None
    }

    /// Handles the earliest deadline if it is not later than `end`, and says whether there was one. The loop of virtual
    /// time: cheaper than `poll_timeout` and `handle_timeout`, and the same in effect.
    #[inline]
    pub fn step(&mut self, end: Instant) -> bool {
        if !self.started {
            self.start();
        }
        while let Some((at, key)) = self.agenda.pop(end) {
            let now = self.now.max(at);
            if self.fire(at, key, now) {
                return true;
            }
        }
        false
    }

    /// Handles everything that is due at `now`, in order.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = self.now.max(now);
        if !self.started {
            self.start();
        }
        while let Some((at, key)) = self.agenda.pop(self.now) {
            let now = self.now;
            self.fire(at, key, now);
        }
    }

    /// Something has happened outside that applications at the edge of the network wait for: they are called as at a deadline.
    pub fn wake(&mut self, now: Instant) {
        self.handle_timeout(now);
        for n in 0..self.edges.len() {
            let (host, app) = self.edges[n];
            self.call(host, app, |slot, cx, net| slot.handle_timeout(cx, net));
        }
        self.settle();
    }

    /// A datagram, or a super-packet, of a real host arrived at a port. Its checksums are verified here unless the
    /// device did. Gives the numbers of the datagrams that it became.
    pub fn ingress(
        &mut self,
        now: Instant,
        port: PortId,
        received: Received,
    ) -> Result<Range<u64>, airloom_wire::Error> {
        self.now = self.now.max(now);
        if !self.started {
            self.start();
        }
        let first = self.records.packet_count() + 1;
        let parsed = edge::ingress(received);
        let Some(info) = self.ports.get(port.0 as usize) else { return Ok(first..first) };
        let (host, interface) = (info.host, info.interface);
        let mut packet = parsed.inspect_err(|_| self.strays.malformed += 1)?;
        packet.set_id(self.records.next_packet());
        packet.set_flow(self.flows.number(&packet, &mut self.records));
        let key = ip::destination_key(packet.head()).unwrap_or(0);
        match self.routes.lookup(host, key) {
            Some(hop @ Hop::Link { interface: out, .. }) if out == interface => {
                let reader = self.routes.owner(key);
                if self.records.wants_facts()
                    && reader.is_some_and(|h| self.hosts[h as usize].ports.is_some())
                {
                    self.observed.sent(self.now, packet.flow(), &packet);
                }
                self.transmit(host, hop, packet)
            }
            // A real host's kernel chose this interface; the model knows no way over it.
            _ => self.strays.no_route += 1,
        }
        let numbers = first..self.records.packet_count() + 1;
        self.settle();
        Ok(numbers)
    }

    /// Does the earliest deadline, as [`World::poll_timeout`] gave it, release packets of a link? Timers of hosts wait for
    /// nobody.
    pub fn deadline_is_sharp(&self) -> bool {
        matches!(self.agenda.peek(), Some((_, Key::Link(_))))
    }

    /// Octets that wait in the longest queue of all links.
    pub fn longest_backlog(&self) -> u64 {
        let now = self.now;
        let links = self.links.iter().zip(&self.routes.ends);
        let queues = links.flat_map(|(link, ends)| {
            let stations = (0..ends.near.len()).map(|n| Station(n as u16));
            stations.flat_map(move |s| {
                [Direction::Uplink, Direction::Downlink].map(|d| link.bearer.backlog(now, d, s))
            })
        });
        queues.map(|backlog| backlog.octets).max().unwrap_or(0)
    }

    /// The links by name, and how they treat the super-packets of real hosts at the moment.
    pub fn grades(&self) -> impl Iterator<Item = (&str, Grade)> {
        self.links.iter().map(|link| (link.name.as_str(), link.grade()))
    }

    /// The next datagram for a real host.
    pub fn egress(&mut self) -> Option<(PortId, Packet)> {
        self.egress.pop_front()
    }

    /// The ports of all real hosts.
    pub fn ports(&self) -> &[PortInfo] {
        &self.ports
    }

    /// Where records are, for the driver to take; and for asking for them before the run.
    pub fn records(&mut self) -> &mut Outbox {
        &mut self.records
    }

    /// Have all applications finished? Servers always have; a run without applications ends at once.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.started && self.pending_apps == 0
    }

    /// Events scheduled so far.
    pub fn events(&self) -> u64 {
        self.agenda.pushed()
    }

    /// Datagrams that went nowhere.
    pub fn strays(&self) -> Strays {
        let refused: u64 = self.hosts.iter().map(|h| h.net.too_big).sum();
        Strays { too_big: self.strays.too_big + refused, ..self.strays }
    }

    /// The first change of the timeline that its link does not support, with the link's name.
    pub fn unsupported_change(&self) -> Option<&(String, Unsupported)> {
        self.first_unsupported.as_ref()
    }

    /// Changes a link at `now`, as an entry of the timeline does: live control. What is due before has been handled.
    pub fn apply(
        &mut self,
        now: Instant,
        link: u32,
        part: &[u16],
        change: &Change,
    ) -> Result<(), Unsupported> {
        self.now = self.now.max(now);
        if !self.started {
            self.start();
        }
        let result = self.change(link, part, change);
        self.settle();
        result
    }

    fn change(&mut self, link: u32, part: &[u16], change: &Change) -> Result<(), Unsupported> {
        let slot = self.links.get_mut(link as usize).ok_or(Unsupported("there is no such link"))?;
        let was_out = slot.is_out;
        let result = slot.apply(&mut Cx { now: self.now, records: &mut self.records }, part, change);
        let (tells, is_up) = (slot.tells, !slot.is_out);
        self.drain_link(link);
        // One that tells nothing by itself is as it was made.
        if !tells && is_up == was_out {
            for station in 0..self.routes.ends[link as usize].near.len() {
                self.tell_ends(link, Station(station as u16), is_up);
            }
        }
        result
    }

    /// Would the link take this change, after those that were tried before? For a world that never runs.
    pub(crate) fn rehearse(&mut self, link: usize, part: &[u16], change: &Change) -> Result<(), Unsupported> {
        let slot = self.links.get_mut(link).ok_or(Unsupported("there is no such link"))?;
        slot.apply(&mut Cx { now: self.now, records: &mut self.records }, part, change)
    }

    /// How the links and their parts are, link by link in the order of the scenario.
    pub fn conditions(&self) -> Vec<Vec<Condition>> {
        self.links.iter().map(LinkSlot::conditions).collect()
    }

    /// Wakes the component of an entry and settles what follows; false if the entry was stale.
    #[inline]
    fn fire(&mut self, at: Instant, key: Key, now: Instant) -> bool {
        if let Key::Link(link) = key {
            // The common case, without a second look at the kind of key.
            let slot = &mut self.links[link as usize];
            if !slot.wakeup.take(at) {
                return false;
            }
            self.now = now;
            slot.bearer.handle_timeout(&mut Cx { now, records: &mut self.records });
            self.drain_link(link);
        } else if let Key::Connection { host, slot, generation } = key {
            let net = &mut self.hosts[host as usize].net;
            let Some(connection) = net.get(slot, generation).filter(|c| c.wakeup.is(at)) else {
                return false;
            };
            self.now = now;
            connection.wakeup.take(at);
            let deadline = connection.transport.poll_timeout();
            if deadline.is_none_or(|at| at > now) {
                // Put off or taken back since it was entered, and nothing else has happened to it.
                if let Some(at) = deadline
                    && connection.wakeup.needs_entry(now, at)
                {
                    self.agenda.push(at, key);
                }
                return true;
            }
            connection.transport.handle_timeout(&mut Cx { now, records: &mut self.records });
            net.touch(slot, &mut self.fed);
        } else {
            if !self.is_valid(key, at) {
                return false;
            }
            self.now = now;
            self.fire_other(key, at);
        }
        self.settle();
        true
    }

    /// Is this entry of the agenda the one its component waits for?
    #[inline]
    fn is_valid(&self, key: Key, at: Instant) -> bool {
        match key {
            Key::Link(i) => self.links[i as usize].wakeup.is(at),
            Key::Connection { host, slot, generation } => {
                let place = &self.hosts[host as usize].net.slots[slot as usize];
                place.generation == generation && place.connection.as_deref().is_some_and(|c| c.wakeup.is(at))
            }
            Key::App { host, app } => self.hosts[host as usize].apps[usize::from(app)].wakeup.is(at),
            Key::Timeline(_) => true,
        }
    }

    fn start(&mut self) {
        self.started = true;
        // Applications of a real host are the real programs in it.
        let simulated = self.hosts.iter().filter(|host| host.ports.is_none());
        self.pending_apps = simulated.map(|host| host.apps.len()).sum();
        for link in 0..self.links.len() as u32 {
            self.links[link as usize].arm(self.now, link, &mut self.agenda);
        }
        for i in 0..self.timeline.len() as u32 {
            match self.timeline[i as usize].at {
                // What is planned for the beginning holds before anybody sends.
                at if at <= self.now => self.fire_other(Key::Timeline(i), at),
                at => self.agenda.push(at, Key::Timeline(i)),
            }
        }
        for host in 0..self.hosts.len() as u32 {
            if self.hosts[host as usize].ports.is_some() {
                continue;
            }
            for app in 0..self.hosts[host as usize].apps.len() as u16 {
                self.call(host, app, |slot, cx, net| slot.start(cx, net));
            }
        }
        self.settle();
    }

    fn fire_other(&mut self, key: Key, at: Instant) {
        match key {
            Key::Link(_) | Key::Connection { .. } => {
                unreachable!("links and connections are woken where the entry is taken")
            }
            Key::App { host, app } => {
                self.hosts[host as usize].apps[usize::from(app)].wakeup.take(at);
                let due = self.hosts[host as usize].apps[usize::from(app)].app.poll_timeout();
                if due.is_some_and(|at| at <= self.now) {
                    self.call(host, app, |slot, cx, net| slot.handle_timeout(cx, net));
                } else {
                    self.arm_app(host, app);
                }
            }
            Key::Timeline(i) => {
                let planned = &mut self.timeline[i as usize];
                let (link, part, change) = (planned.link, std::mem::take(&mut planned.part), planned.change);
                if let Err(why) = self.change(link, &part, &change) {
                    let name = self.links[link as usize].name.clone();
                    self.first_unsupported.get_or_insert((name, why));
                }
            }
        }
    }

    /// Drains connections until nothing is left to do at this moment.
    #[inline]
    fn settle(&mut self) {
        loop {
            if let Some((host, slot)) = self.fed.pop_front() {
                self.drain_connection(host, slot);
            } else if let Some((host, packet)) = self.loopback.pop_front() {
                self.loop_back(host, packet);
            } else if let Some((host, app, socket, why)) = self.failed.pop_front() {
                self.tell(host, app, socket, SocketEvent::Closed(why));
            } else {
                break;
            }
        }
    }

    /// A host receives what it sent to itself.
    #[inline(never)]
    fn loop_back(&mut self, host: u32, packet: Packet) {
        if let Some(header) = Brief::parse(packet.head())
            && let Some(local) = self.hosts[host as usize].net.local(header.destination)
        {
            self.receive(host, local, &header, packet);
        }
    }

    /// Takes all that a link delivers. All of it reaches its connections before any of them answers.
    fn drain_link(&mut self, link: u32) {
        while let Some((direction, station, packet)) = self.links[link as usize].bearer.poll_delivery() {
            self.deliver(link, direction, station, packet);
            let slot = &mut self.links[link as usize];
            if slot.only_by_deadline {
                let deadline = slot.bearer.poll_timeout();
                if deadline.is_none_or(|at| at > self.now) {
                    return slot.arm_at(deadline, self.now, link, &mut self.agenda);
                }
            }
        }
        if self.links[link as usize].tells {
            self.take_events(link);
        }
        self.links[link as usize].arm(self.now, link, &mut self.agenda);
    }

    #[inline(never)]
    fn take_events(&mut self, link: u32) {
        while let Some(event) = self.links[link as usize].bearer.poll_event() {
            match event {
                BearerEvent::Up(station) => self.tell_ends(link, station, true),
                BearerEvent::Down(station, _) => self.tell_ends(link, station, false),
            }
        }
    }

    /// A link came into service for one of its stations, or left it: its ends are told. Routes stay as they are.
    #[cold]
    fn tell_ends(&mut self, link: u32, Station(station): Station, is_up: bool) {
        let Some(&near) = self.routes.ends[link as usize].near.get(usize::from(station)) else { return };
        let far = self.routes.ends[link as usize].far;
        for ((host, interface), (other, its)) in [(near, far), (far, near)] {
            if self.hosts[host as usize].ports.is_some() {
                continue;
            }
            let there = &self.hosts[other as usize].net.interfaces[usize::from(its)];
            let here = &self.hosts[host as usize].net.interfaces[usize::from(interface)];
            let mut pairs = here.addresses.iter().filter_map(|own| Some((*own, there.address_for(*own)?)));
            let path = pairs.next().map(|(local, remote)| Path { local, remote, mtu: here.mtu });
            let cx = &mut Cx { now: self.now, records: &mut self.records };
            self.hosts[host as usize].net.path_changed(cx, (link, Station(station)), is_up, &mut self.fed);
            for app in 0..self.hosts[host as usize].apps.len() as u16 {
                if let Some(path) = path {
                    self.call(host, app, |app, cx, net| app.handle_path(cx, net, path, is_up));
                }
            }
        }
    }

    /// A datagram leaves a link at the host there.
    #[inline]
    fn deliver(&mut self, link: u32, direction: Direction, station: Station, packet: Packet) {
        let ends = &self.routes.ends[link as usize];
        let Some(&(host, interface)) = (match direction {
            Direction::Uplink => Some(&ends.far),
            Direction::Downlink => ends.near.get(usize::from(station.0)),
        }) else {
            return;
        };
        let cx = &mut Cx { now: self.now, records: &mut self.records };
        let here = &mut self.hosts[host as usize];
        record(
            cx,
            (&here.net.interfaces, interface),
            Event::Receive,
            direction,
            &packet,
            &here.net.protocols,
        );
        if let Some(ports) = &here.ports {
            self.flows.learn(&packet);
            self.observed.received(self.now, &packet);
            self.egress.push_back((PortId(ports[usize::from(interface)]), packet));
            return;
        }
        let Some(header) = Brief::parse(packet.head()).filter(|h| h.total_len == packet.wire_len()) else {
            self.strays.malformed += 1;
            return;
        };
        let local = here.net.local(header.destination).or_else(|| here.net.takes_over(&header, &packet));
        if let Some(local) = local {
            if packet.segment_size() != 0 {
                return self.receive_cut(host, local, packet);
            }
            return self.receive(host, local, &header, packet);
        }
        self.forward(host, header.destination, packet);
    }

    /// A router passes a datagram on, or tells its source why not.
    #[inline]
    fn forward(&mut self, host: u32, destination: u128, mut packet: Packet) {
        let onward =
            if self.routes.forwards[host as usize] { self.routes.lookup(host, destination) } else { None };
        match onward {
            Some(hop) if ip::decrement_hop_limit(packet.head_mut()) => {
                match self.too_big(host, hop, &packet) {
                    None => self.transmit(host, hop, packet),
                    Some(error) => {
                        self.strays.too_big += 1;
                        self.complain(host, error, &packet);
                    }
                }
            }
            Some(_) => {
                self.strays.hop_limit += 1;
                self.complain(host, Icmp::HopLimitExceeded, &packet);
            }
            None => {
                self.strays.no_route += 1;
                self.complain(host, Icmp::Unreachable(airloom_wire::icmp::Unreachable::Host), &packet);
            }
        }
    }

    /// Does the next link take a datagram of this size? If not, what to answer.
    #[inline]
    fn too_big(&self, host: u32, hop: Hop, packet: &Packet) -> Option<Icmp> {
        let Hop::Link { interface, .. } = hop else { return None };
        let mtu = self.hosts[host as usize].net.interfaces[usize::from(interface)].mtu;
        (segment::largest(packet) > usize::from(mtu)).then_some(Icmp::TooBig { mtu })
    }

    /// A router tells the source what became of its datagram.
    fn complain(&mut self, host: u32, error: Icmp, packet: &Packet) {
        let cx = &mut Cx { now: self.now, records: &mut self.records };
        if let Ok(about) = Ip::parse(packet.head()) {
            self.hosts[host as usize].net.send_error(cx, &mut self.routes, error, &about, packet);
            self.flush(host);
        }
    }

    /// A super-packet is for this host, whose transports know segments only.
    #[cold]
    fn receive_cut(&mut self, host: u32, local: u16, packet: Packet) {
        let cut = segment::cut(packet, |piece| {
            if let Some(header) = Brief::parse(piece.head()) {
                self.receive(host, local, &header, piece);
            }
        });
        self.strays.malformed += u64::from(cut.is_err());
    }

    /// A datagram is for this host.
    #[inline(always)]
    fn receive(&mut self, host: u32, local: u16, header: &Brief, packet: Packet) {
        let cx = &mut Cx { now: self.now, records: &mut self.records };
        let net = &mut self.hosts[host as usize].net;
        let at = Reception { cx, routes: &mut self.routes, fed: &mut self.fed, local };
        let up = match net.numbers.iter().position(|n| *n == header.protocol) {
            Some(index) if !header.is_fragment => net.receive_unit(at, header, index, packet),
            _ => net.receive_datagram(at, packet),
        };
        if !net.out.is_empty() {
            self.flush(host);
        }
        match up {
            Ok(None) => {}
            Ok(Some((app, datagram))) => self.hand_up(host, app, datagram),
            Err(_) => self.strays.malformed += 1,
        }
    }

    fn hand_up(&mut self, host: u32, app: u16, datagram: Datagram) {
        if usize::from(app) < self.hosts[host as usize].apps.len() {
            self.call(host, app, |slot, cx, net| slot.handle_datagram(cx, net, datagram));
        }
    }

    /// Calls an application with its sockets, then looks at its deadline and whether it is done.
    #[inline(always)]
    fn call(
        &mut self,
        host: u32,
        app: u16,
        f: impl FnOnce(&mut dyn airloom_base::App, &mut Cx, &mut dyn airloom_base::Sockets),
    ) {
        let here = &mut self.hosts[host as usize];
        let cx = &mut Cx { now: self.now, records: &mut self.records };
        let slot = &mut here.apps[usize::from(app)];
        let (net, routes, fed) = (&mut here.net, &mut self.routes, &mut self.fed);
        f(slot.app.as_mut(), cx, &mut Call { app, net, routes, fed });
        if !slot.done && slot.app.is_done() {
            slot.done = true;
            self.pending_apps -= 1;
        }
        if here.net.failed.is_empty() && here.net.out.is_empty() {
            slot.arm(self.now, host, app, &mut self.agenda);
        } else {
            self.pass_on(host);
            self.arm_app(host, app);
        }
    }

    /// Takes what a call of an application left with its host's stack.
    #[inline(never)]
    fn pass_on(&mut self, host: u32) {
        while let Some((app, socket, why)) = self.hosts[host as usize].net.failed.pop_front() {
            self.failed.push_back((host, app, socket, why));
        }
        self.flush(host);
    }

    #[inline]
    fn arm_app(&mut self, host: u32, app: u16) {
        let slot = &mut self.hosts[host as usize].apps[usize::from(app)];
        slot.arm(self.now, host, app, &mut self.agenda);
    }

    /// Sends the datagrams that the host's stack has made.
    fn flush(&mut self, host: u32) {
        while let Some((hop, packet)) = self.hosts[host as usize].net.out.pop_front() {
            self.transmit(host, hop, packet);
        }
    }

    /// Passes on what a connection has to tell and to send, then enters its deadline.
    #[inline]
    fn drain_connection(&mut self, host: u32, slot: u32) {
        loop {
            let net = &mut self.hosts[host as usize].net;
            let place = &mut net.slots[slot as usize];
            let Some(connection) = place.connection.as_deref_mut() else { return };
            let mut event = connection.transport.poll_event();
            if event.is_none() {
                let cx = &mut Cx { now: self.now, records: &mut self.records };
                let has_paths = !connection.others.is_empty();
                if has_paths {
                    connection.send_by_path(cx, &mut net.out);
                    if !net.out.is_empty() {
                        self.flush(host);
                        continue;
                    }
                }
                let mut used = None;
                // What leaves by one of several paths was sent above, each by its own.
                while !has_paths && let Some(outgoing) = connection.transport.poll_transmit(cx) {
                    let Outgoing { ecn, mut packet, last, .. } = outgoing;
                    connection.header.prepend(&mut packet, ecn);
                    packet.label(cx.records.next_packet(), connection.flow);
                    match connection.hop {
                        Hop::Link { link, interface, direction, station } => {
                            record(
                                cx,
                                (&net.interfaces, interface),
                                Event::Transmit,
                                direction,
                                &packet,
                                &net.protocols,
                            );
                            let way = &mut self.links[link as usize];
                            way.bearer.send(cx, direction, station, packet);
                            used = Some((link, way));
                        }
                        Hop::Local => self.loopback.push_back((host, packet)),
                    }
                    if last {
                        break;
                    }
                }
                if let Some((link, way)) = used {
                    way.arm(self.now, link, &mut self.agenda);
                }
                if connection.app.is_none() {
                    // Over for its application: it may have vanished by sending its last unit.
                    event = connection.transport.poll_event();
                }
            }
            if let Some(event) = event {
                if self.handle_transport_event(host, slot, event) {
                    continue;
                }
                return;
            }
            // What its application did to it meanwhile is drained by now.
            connection.dirty = false;
            if let Some(at) = connection.transport.poll_timeout()
                && connection.wakeup.needs_entry(self.now, at)
            {
                self.agenda.push(at, Key::Connection { host, slot, generation: place.generation });
            }
            return;
        }
    }

    /// A super-packet leaves a host for a link that counts datagrams.
    #[cold]
    fn transmit_cut(&mut self, host: u32, hop: Hop, packet: Packet) {
        let mut number = packet.id();
        let cut = segment::cut(packet, |mut piece| {
            // The first keeps the number that the whole had.
            let own = std::mem::take(&mut number);
            piece.set_id(if own == 0 { self.records.next_packet() } else { own });
            self.transmit(host, hop, piece);
        });
        self.strays.malformed += u64::from(cut.is_err());
    }

    /// A datagram leaves a host.
    #[inline]
    fn transmit(&mut self, host: u32, hop: Hop, packet: Packet) {
        match hop {
            Hop::Link { link, .. }
                if packet.segment_size() != 0 && self.links[link as usize].grade() != Grade::Transparent =>
            {
                self.transmit_cut(host, hop, packet);
            }
            Hop::Link { link, interface, direction, station } => {
                let cx = &mut Cx { now: self.now, records: &mut self.records };
                let net = &self.hosts[host as usize].net;
                record(cx, (&net.interfaces, interface), Event::Transmit, direction, &packet, &net.protocols);
                let slot = &mut self.links[link as usize];
                slot.bearer.send(cx, direction, station, packet);
                slot.arm(self.now, link, &mut self.agenda);
            }
            Hop::Local => self.loopback.push_back((host, packet)),
        }
    }

    /// False if the connection is gone.
    #[inline]
    fn handle_transport_event(&mut self, host: u32, slot: u32, event: TransportEvent) -> bool {
        let now = self.now;
        let net = &mut self.hosts[host as usize].net;
        let Some(connection) = net.slots[slot as usize].connection.as_deref_mut() else { return false };
        let app = connection.app;
        let event = match event {
            TransportEvent::Opened => {
                let (at, from) = connection.ends();
                let accepted = connection.accepted;
                connection.opened = true;
                net.half_open -= u32::from(accepted);
                if connection.transport.peer_addresses().is_some() {
                    let cx = &mut Cx { now, records: &mut self.records };
                    net.add_paths(cx, &self.routes, slot);
                }
                (if accepted { SocketEvent::Accepted { at, from } } else { SocketEvent::Opened }, 0)
            }
            TransportEvent::Asked => {
                let (at, from) = connection.ends();
                (SocketEvent::Asked { at, from }, 0)
            }
            TransportEvent::Readable(stream, octets) => (SocketEvent::Readable(octets), stream),
            TransportEvent::Writable(stream) => (SocketEvent::Writable, stream),
            TransportEvent::Finished(stream) => (SocketEvent::Finished, stream),
            TransportEvent::Stream(stream, event) => (SocketEvent::Stream(event), stream),
            TransportEvent::Closed(why) => {
                connection.close.get_or_insert(now);
                connection.app = None;
                (SocketEvent::Closed(why), 0)
            }
            TransportEvent::Lingering => {
                let proto = net.protocols[usize::from(connection.protocol)].name();
                connection.report(&mut Cx { now, records: &mut self.records }, proto, &mut self.totals);
                self.linger(host, slot);
                return true;
            }
            TransportEvent::Gone => {
                self.remove(host, slot);
                return false;
            }
        };
        let socket = net.socket(slot, event.1);
        if let Some(app) = app {
            self.tell(host, app, socket, event.0);
        }
        true
    }

    #[inline]
    fn tell(&mut self, host: u32, app: u16, socket: SocketId, event: SocketEvent) {
        self.call(host, app, |slot, cx, net| slot.handle_event(cx, net, socket, event));
    }

    /// Replaces a connection's machine by its compact form.
    fn linger(&mut self, host: u32, slot: u32) {
        let net = &mut self.hosts[host as usize].net;
        let Some(connection) = net.slots[slot as usize].connection.as_deref_mut() else { return };
        let whole = std::mem::replace(&mut connection.transport, Box::new(crate::host::Placeholder::idle()));
        connection.transport = whole.into_lingering();
        connection.lingering = true;
    }

    fn remove(&mut self, host: u32, slot: u32) {
        let net = &mut self.hosts[host as usize].net;
        let Some(mut connection) = net.remove(slot) else { return };
        let proto = net.protocols[usize::from(connection.protocol)].name();
        connection.report(&mut Cx { now: self.now, records: &mut self.records }, proto, &mut self.totals);
        // A machine that is gone without having closed would leave its application waiting.
        if let Some(app) = connection.app {
            let socket =
                SocketId { slot, generation: net.slots[slot as usize].generation.wrapping_sub(1), stream: 0 };
            self.tell(host, app, socket, SocketEvent::Closed(CloseReason::Aborted));
        }
    }
}

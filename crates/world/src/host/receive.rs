//! What a simulated host does with a datagram that is for itself.

use airloom_base::service::{Datagram, Identity, Path, PathId, leading_ports};
use airloom_base::{Cx, Packet, Transport};
use airloom_wire::icmp::{Icmp, Unreachable};
use airloom_wire::ip::{self, Brief, Ip};
use airloom_wire::{Error, udp};

use super::connection::{Key, OtherPath};
use super::net::{Fed, Net, Slot};
use super::{Opening, Placeholder};
use crate::routes::{Hop, Routes};

/// Octets of an offending datagram that an ICMP error quotes: its IP header and 8 more (RFC 792), here enough for
/// the ports and sequence number behind any IP header.
const QUOTE: usize = 68;

/// Connections of a host that may wait for their opener's confirmation at a time, as Linux's `somaxconn`. What comes
/// beyond is dropped without an answer, so that a flood of openings costs bounded memory.
const BACKLOG: u32 = 4096;

/// The surroundings a datagram is received in.
pub(crate) struct Reception<'a, 'b> {
    pub(crate) cx: &'a mut Cx<'b>,
    pub(crate) routes: &'a mut Routes,
    pub(crate) fed: &'a mut Fed,
    /// Which own address it was sent to, or which of those that an application here answers for.
    pub(crate) local: u16,
}

impl Net {
    /// Takes a datagram for this host that no protocol with connections takes. A datagram for an application is
    /// given back with its index.
    pub(crate) fn receive_datagram(
        &mut self,
        at: Reception,
        packet: Packet,
    ) -> Result<Option<(u16, Datagram)>, Error> {
        let header = Ip::parse(packet.head())?;
        if header.is_fragment {
            return Err(Error::Malformed("datagram: fragments are not reassembled"));
        }
        match header.protocol {
            ip::protocol::UDP => self.receive_udp(at.cx, at.routes, &header, packet),
            ip::protocol::ICMP | ip::protocol::ICMPV6 => self.receive_icmp(at, &header, packet),
            _ => Err(Error::Malformed("protocol")),
        }
    }

    /// Takes a datagram of the protocol with this index: finds the connection and feeds it.
    #[inline(always)]
    pub(crate) fn receive_unit(
        &mut self,
        at: Reception,
        header: &Brief,
        protocol: usize,
        mut packet: Packet,
    ) -> Result<Option<(u16, Datagram)>, Error> {
        let unit = packet.head().get(header.header_len..).ok_or(Error::Truncated)?;
        let ports =
            if self.leading_ports { leading_ports(unit) } else { self.protocols[protocol].ports(unit) };
        let (theirs, ours) = ports.ok_or(Error::Truncated)?;
        let key = Key::new(header.protocol, at.local, ours, header.source, theirs);
        let Some(slot) = self.find(&key) else {
            return self.receive_stranger(at, key, protocol, (ours, theirs), packet);
        };
        match self.slots[slot as usize].connection.as_deref_mut() {
            Some(connection) if !connection.lingering => {
                packet.strip(header.header_len);
                let path = connection.path_id(&key);
                connection.transport.handle_packet(at.cx, path, header.ecn, packet);
                if !connection.dirty {
                    connection.dirty = true;
                    at.fed.push_back((self.index, slot));
                }
                Ok(None)
            }
            _ => self.receive_late(at, header, key, slot, protocol, packet).map(|()| None),
        }
    }

    /// A unit that is no connection's by its addresses and ports. A UDP datagram may be an application's, or of a connection all the
    /// same.
    #[inline(never)]
    fn receive_stranger(
        &mut self,
        at: Reception,
        key: Key,
        protocol: usize,
        ports: (u16, u16),
        mut packet: Packet,
    ) -> Result<Option<(u16, Datagram)>, Error> {
        let header = Ip::parse(packet.head())?;
        let Some(protocol) =
            self.protocol_here(at.routes, (header.protocol, ip::key(header.source)), protocol)
        else {
            if header.protocol == ip::protocol::UDP {
                return self.receive_udp(at.cx, at.routes, &header, packet);
            }
            return Err(Error::Malformed("protocol"));
        };
        if header.protocol == ip::protocol::UDP {
            let listens = self.stream_app(at.local, protocol, ports.0).is_some();
            if !listens && self.datagram_app(ports.0).is_some() {
                return self.receive_udp(at.cx, at.routes, &header, packet);
            }
            let Some((path, hop)) = self.way(at.routes, header.source) else { return Ok(None) };
            let path = Path { local: header.destination, ..path };
            let mut unit = packet.duplicate();
            unit.strip(header.header_len);
            if let Some(flow) = self.protocols[protocol].whose(at.cx, &path, ports, header.ecn, &unit) {
                packet.strip(header.header_len);
                self.receive_moved(at, key, (path, ports, hop), flow, header.ecn, packet);
                return Ok(None);
            }
            if !listens {
                return self.receive_udp(at.cx, at.routes, &header, packet);
            }
        }
        self.receive_first(at, key, protocol, ports, packet).map(|()| None)
    }

    /// A unit of the connection with this flow came over other addresses or ports than before: another path of it from now on.
    fn receive_moved(
        &mut self,
        at: Reception,
        key: Key,
        (path, ports, hop): (Path, (u16, u16), Hop),
        flow: u32,
        ecn: u8,
        unit: Packet,
    ) {
        let is_it = |slot: &Slot| slot.connection.as_deref().is_some_and(|c| c.flow == flow);
        let Some(slot) = self.slots.iter().position(is_it) else { return };
        let Some(connection) = self.slots[slot].connection.as_deref_mut() else { return };
        let Some(id) = connection.transport.handle_move(at.cx, path, ports) else { return };
        let Some(place) = usize::from(id.0).checked_sub(1).filter(|n| *n <= connection.others.len()) else {
            return;
        };
        let header = ip::Template::new(path.local, path.remote, ip::protocol::UDP);
        let other = OtherPath { key, hop, header };
        if let Some(old) = connection.others.get_mut(place) {
            self.table.remove(&std::mem::replace(old, other).key);
        } else {
            connection.others.push(other);
        }
        connection.transport.handle_packet(at.cx, id, ecn, unit);
        self.table.insert(key, slot as u32);
        self.last_found = None;
        self.touch(slot as u32, at.fed);
    }

    /// A unit for a connection in TIME-WAIT: a late one, or the first one of a connection that takes its place.
    #[inline(never)]
    fn receive_late(
        &mut self,
        at: Reception,
        header: &Brief,
        key: Key,
        slot: u32,
        protocol: usize,
        mut packet: Packet,
    ) -> Result<(), Error> {
        let Some(connection) = self.slots[slot as usize].connection.as_deref() else { return Ok(()) };
        let ports = connection.ports;
        if let Some(protocol) = self.protocol_here(at.routes, (header.protocol, header.source), protocol)
            && self.stream_app(at.local, protocol, ports.0).is_some()
        {
            let mut unit = packet.duplicate();
            unit.strip(header.header_len);
            if connection.transport.yields_to(&unit) {
                return self.receive_first(at, key, protocol, ports, packet);
            }
        }
        if let Some(connection) = self.slots[slot as usize].connection.as_deref_mut() {
            packet.strip(header.header_len);
            connection.transport.handle_packet(at.cx, PathId(0), header.ecn, packet);
            self.touch(slot, at.fed);
        }
        Ok(())
    }

    /// A unit of no connection, or one that takes the place of a connection in TIME-WAIT.
    #[inline(never)]
    fn receive_first(
        &mut self,
        at: Reception,
        key: Key,
        protocol: usize,
        ports: (u16, u16),
        mut packet: Packet,
    ) -> Result<(), Error> {
        let header = Ip::parse(packet.head())?;
        packet.strip(header.header_len);
        if let Some(slot) = self.find(&key) {
            self.remove(slot);
        }
        if self.half_open >= BACKLOG && self.stream_app(at.local, protocol, ports.0).is_some() {
            return Ok(());
        }
        match self.accept(at.cx, at.routes, at.local, &header, protocol, ports, &packet) {
            Some(slot) => {
                self.first_unit(at.cx, slot, header.ecn, packet);
                self.touch(slot, at.fed);
            }
            None => self.refuse(at.cx, at.routes, at.local, &header, protocol, ports.0, &packet),
        }
        Ok(())
    }

    /// Which of the host's protocols takes a unit of this number from this source that is no connection's: where links
    /// have protocols of their own, that of the link by which the source is reached, or one for all links. `first` is
    /// the first one with the number.
    #[inline]
    fn protocol_here(&self, routes: &mut Routes, from: (u8, u128), first: usize) -> Option<usize> {
        if self.of_links.is_empty() { Some(first) } else { self.protocol_by_link(routes, from) }
    }

    #[inline(never)]
    fn protocol_by_link(&self, routes: &mut Routes, (number, source): (u8, u128)) -> Option<usize> {
        let own = routes.lookup(self.index, source).and_then(|hop| self.protocol_over(hop));
        let for_all = (0..self.numbers.len()).filter(|n| !self.of_links.contains(n));
        own.into_iter().chain(for_all).find(|n| self.numbers[*n] == number)
    }

    /// Feeds a new connection, unless its application has to be asked first.
    fn first_unit(&mut self, cx: &mut Cx, slot: u32, ecn: u8, unit: Packet) {
        let Some(connection) = self.slots[slot as usize].connection.as_deref_mut() else { return };
        if !connection.app.is_some_and(|app| self.deciding.contains(&app)) {
            return connection.transport.handle_packet(cx, PathId(0), ecn, unit);
        }
        let refusal = self.protocols[usize::from(connection.protocol)].refuse(&unit);
        let waiting: Box<dyn Transport> = Box::new(Placeholder::new(refusal));
        let transport = std::mem::replace(&mut connection.transport, waiting);
        connection.held = Some(Box::new(Opening { transport, ecn, unit }));
    }

    fn accept(
        &mut self,
        cx: &mut Cx,
        routes: &mut Routes,
        local: u16,
        header: &Ip,
        protocol: usize,
        ports: (u16, u16),
        unit: &Packet,
    ) -> Option<u32> {
        let app = self.stream_app(local, protocol, ports.0)?;
        let (path, hop) = self.way(routes, header.source)?;
        let path = Path { local: header.destination, ..path };
        // The opener numbered the flow; a real peer's packets have a number from the port.
        let flow = if unit.flow() == 0 { cx.records.next_flow() } else { unit.flow() };
        let who = Identity { host: self.index as u16, flow };
        let transport = self.protocols[protocol].accept(cx, path, ports, who, unit)?;
        let mut connection = self.connection(transport, protocol, path, ports, hop, flow, cx.now);
        connection.app = Some(app);
        connection.accepted = true;
        self.half_open += 1;
        Some(self.insert(connection))
    }

    fn refuse(
        &mut self,
        cx: &mut Cx,
        routes: &mut Routes,
        local: u16,
        header: &Ip,
        protocol: usize,
        port: u16,
        unit: &Packet,
    ) {
        let Some((path, hop)) = self.way(routes, header.source) else { return };
        let path = Path { local: header.destination, ..path };
        let listens = self.stream_app(local, protocol, port).is_some();
        if let Some(answer) = self.protocols[protocol].answer(cx, &path, unit, listens) {
            self.send(cx, &path, hop, header.protocol, 0, answer);
        }
    }

    fn receive_udp(
        &mut self,
        cx: &mut Cx,
        routes: &mut Routes,
        header: &Ip,
        mut packet: Packet,
    ) -> Result<Option<(u16, Datagram)>, Error> {
        let datagram = packet.head().get(header.header_len..).ok_or(Error::Truncated)?;
        let ports = udp::Udp::parse(datagram)?;
        let body = usize::from(ports.len) - udp::HEADER;
        if packet.body().len() < body {
            return Err(Error::Truncated);
        }
        match self.datagram_app(ports.destination) {
            Some(app) => {
                let remote = (header.source, ports.source).into();
                // What stands behind the length of UDP does not belong to it.
                let body = packet.take_body().slice(0, body);
                Ok(Some((app, Datagram::Udp { local_port: ports.destination, remote, body })))
            }
            None => {
                self.send_error(cx, routes, Icmp::Unreachable(Unreachable::Port), header, &packet);
                Ok(None)
            }
        }
    }

    fn receive_icmp(
        &mut self,
        at: Reception,
        header: &Ip,
        mut packet: Packet,
    ) -> Result<Option<(u16, Datagram)>, Error> {
        let Reception { cx, routes, fed, .. } = at;
        let octets = packet.head().get(header.header_len..).ok_or(Error::Truncated)?;
        match Icmp::parse(header.source, octets)? {
            Icmp::EchoRequest { ident, seq } => {
                let reply = Icmp::EchoReply { ident, seq };
                let body = packet.take_body();
                let answer = Packet::build(|out| reply.emit(header.source, out), body);
                if let Some((path, hop)) = self.way(routes, header.source) {
                    let path = Path { local: header.destination, ..path };
                    self.send(cx, &path, hop, header.protocol, 0, answer);
                }
                Ok(None)
            }
            Icmp::EchoReply { ident, seq } => {
                let app = ident.wrapping_sub(1);
                let remote = header.source;
                Ok(Some((app, Datagram::Echo { remote, ident, seq, body: packet.take_body() })))
            }
            Icmp::TooBig { mtu } => {
                self.path_mtu(cx, fed, mtu, &packet.take_body().to_bytes());
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Tells the connection whose datagram is quoted what the path can carry.
    fn path_mtu(&mut self, cx: &mut Cx, fed: &mut Fed, mtu: u16, quote: &[u8]) {
        let Some(key) = self.quoted(quote) else { return };
        if let Some(slot) = self.find(&key) {
            if let Some(connection) = self.slots[slot as usize].connection.as_deref_mut() {
                let path = connection.path_id(&key);
                connection.transport.path_mtu(cx, path, mtu);
            }
            self.touch(slot, fed);
        }
    }

    /// The key of the connection, if there is one, whose datagram is quoted.
    pub(super) fn quoted(&self, quote: &[u8]) -> Option<Key> {
        let inner = Ip::parse(quote).ok()?;
        let index = self.numbers.iter().position(|n| *n == inner.protocol)?;
        let (ours, theirs) = self.protocols[index].quoted_ports(quote.get(inner.header_len..)?)?;
        let local = self.local_or_foreign(ip::key(inner.source))?;
        Some(Key::new(inner.protocol, local, ours, ip::key(inner.destination), theirs))
    }

    /// Sends an ICMP error about `packet` to its source.
    pub(crate) fn send_error(
        &mut self,
        cx: &mut Cx,
        routes: &mut Routes,
        error: Icmp,
        about: &Ip,
        packet: &Packet,
    ) {
        //= RFC 1122 (3.2.2), RFC 4443 (2.4 e): no error about an ICMP error. About echo there is: `traceroute` and path
        //= MTU discovery by `ping` need it.
        if matches!(about.protocol, ip::protocol::ICMP | ip::protocol::ICMPV6) {
            let message =
                packet.head().get(about.header_len..).map(|octets| Icmp::parse(about.source, octets));
            if !matches!(message, Some(Ok(Icmp::EchoRequest { .. } | Icmp::EchoReply { .. }))) {
                return;
            }
        }
        let Some((path, hop)) = self.way(routes, about.source) else { return };
        let mut quote = vec![0; packet.wire_len().min(QUOTE)];
        packet.write(0, &mut quote);
        let unit = Packet::build(|out| error.emit(about.source, out), airloom_base::Body::Real(quote.into()));
        self.send(cx, &path, hop, Icmp::protocol(about.source), 0, unit);
    }
}

//! Datagrams on their way: out of a link or a real host, to the host that is meant or onward, and into the next link.

use std::ops::Range;

use airloom_base::record::Event;
use airloom_base::service::Datagram;
use airloom_base::{Cx, Direction, Grade, Instant, Packet, Station};
use airloom_wire::edge::{self, Received};
use airloom_wire::icmp::Icmp;
use airloom_wire::ip::{self, Brief, Ip};
use airloom_wire::segment;

use super::{Strays, World};
use crate::fabric::record;
use crate::host::Reception;
use crate::port::{PortId, PortInfo};
use crate::routes::Hop;

impl World {
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

    /// The next datagram for a real host.
    pub fn egress(&mut self) -> Option<(PortId, Packet)> {
        self.egress.pop_front()
    }

    /// The ports of all real hosts.
    pub fn ports(&self) -> &[PortInfo] {
        &self.ports
    }

    /// Datagrams that went nowhere.
    pub fn strays(&self) -> Strays {
        let mut strays = self.strays;
        for net in self.hosts.iter().map(|h| &h.net) {
            strays.too_big += net.too_big;
            strays.no_route += net.no_route;
        }
        strays
    }

    /// A host receives what it sent to itself.
    #[inline(never)]
    pub(super) fn loop_back(&mut self, host: u32, packet: Packet) {
        if let Some(header) = Brief::parse(packet.head())
            && let Some(local) = self.hosts[host as usize].net.local(header.destination)
        {
            self.receive(host, local, &header, packet);
        }
    }

    /// A datagram leaves a link at the host there.
    #[inline]
    pub(super) fn deliver(&mut self, link: u32, direction: Direction, station: Station, packet: Packet) {
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
        let header = match Brief::parse(packet.head()) {
            Some(header) if header.total_len == packet.wire_len() => header,
            _ => {
                self.strays.malformed += 1;
                return;
            }
        };
        // What a router has a way onward for is none of its own addresses, of which it may have many.
        let onward =
            if here.net.has_many_addresses() { self.routes.onward(host, header.destination) } else { None };
        let local = match onward {
            Some(Hop::Link { .. }) => None,
            _ => here.net.local(header.destination),
        };
        let local = local.or_else(|| here.net.takes_over(&header, &packet));
        if let Some(local) = local {
            if packet.segment_size() != 0 {
                return self.receive_cut(host, local, packet);
            }
            return self.receive(host, local, &header, packet);
        }
        let onward = onward.or_else(|| self.routes.onward(host, header.destination));
        self.forward(host, onward, packet);
    }

    /// A router passes a datagram on, or tells its source why not.
    #[inline]
    fn forward(&mut self, host: u32, onward: Option<Hop>, mut packet: Packet) {
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

    /// Sends the datagrams that the host's stack has made.
    pub(super) fn flush(&mut self, host: u32) {
        while let Some((hop, packet)) = self.hosts[host as usize].net.out.pop_front() {
            self.transmit(host, hop, packet);
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
    #[inline(always)]
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
}

//! Connections and applications: what they send and tell each other.

use airloom_base::record::Event;
use airloom_base::service::Outgoing;
use airloom_base::{CloseReason, Cx, SocketEvent, SocketId, TransportEvent};

use super::World;
use crate::agenda::Key;
use crate::fabric::record;
use crate::host::Call;
use crate::routes::Hop;

impl World {
    /// Calls an application with its sockets, then looks at its deadline and whether it is done.
    #[inline(always)]
    pub(super) fn call(
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
    pub(super) fn arm_app(&mut self, host: u32, app: u16) {
        let slot = &mut self.hosts[host as usize].apps[usize::from(app)];
        slot.arm(self.now, host, app, &mut self.agenda);
    }

    /// Passes on what a connection has to tell and to send, then enters its deadline.
    #[inline]
    pub(super) fn drain_connection(&mut self, host: u32, slot: u32) {
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

    /// False if the connection is gone.
    #[inline]
    fn handle_transport_event(&mut self, host: u32, slot: u32, event: TransportEvent) -> bool {
        let now = self.now;
        let net = &mut self.hosts[host as usize].net;
        let Some(connection) = net.slots[slot as usize].connection.as_deref_mut() else { return false };
        let app = connection.app;
        let (event, stream) = match event {
            TransportEvent::Opened | TransportEvent::Asked => {
                self.begin(host, slot, event);
                return true;
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
        let socket = net.socket(slot, stream);
        if let Some(app) = app {
            self.tell(host, app, socket, event);
        }
        true
    }

    /// A connection is open, or asks to be. Apart from what happens later on, where nobody has to hear of the two ends.
    #[inline(never)]
    fn begin(&mut self, host: u32, slot: u32, event: TransportEvent) {
        let net = &mut self.hosts[host as usize].net;
        let Some(connection) = net.slots[slot as usize].connection.as_deref_mut() else { return };
        let (app, accepted) = (connection.app, connection.accepted);
        let (at, from) = connection.ends();
        let event = if event == TransportEvent::Asked {
            SocketEvent::Asked { at, from }
        } else {
            connection.opened = true;
            net.half_open -= u32::from(accepted);
            if connection.transport.peer_addresses().is_some() {
                let cx = &mut Cx { now: self.now, records: &mut self.records };
                net.add_paths(cx, &self.routes, slot);
            }
            if accepted { SocketEvent::Accepted { at, from } } else { SocketEvent::Opened }
        };
        let socket = net.socket(slot, 0);
        if let Some(app) = app {
            self.tell(host, app, socket, event);
        }
    }

    #[inline]
    pub(super) fn tell(&mut self, host: u32, app: u16, socket: SocketId, event: SocketEvent) {
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

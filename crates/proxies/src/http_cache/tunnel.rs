//! Tunnels (CONNECT): octets both ways, of which nothing is understood.
//! A circle, of which `app.rs` says why.

use std::collections::VecDeque;
use std::net::IpAddr;

use airloom_base::{Body, CloseReason, Cx, Instant, SocketId, Sockets};

use super::answers;
use super::app::{Asker, HttpCache};
use super::client::Input;
use super::exchange::{ExchangeId, Phase};
use super::origins::TRIES;
use super::target::Target;
use crate::lookup::Found;
use crate::relay::{Relay, Work as Reading};

/// One tunnel.
#[derive(getset::CopyGetters)]
pub(super) struct Tunnel {
    id: ExchangeId,
    port: u16,
    /// Where its server may be, the next to be tried first.
    addresses: VecDeque<IpAddr>,
    /// The socket towards its server, once there is one.
    #[getset(get_copy = "pub(super)")]
    server: Option<SocketId>,
    is_open: bool,
    /// The client's side is over, and what came of it is on its way.
    has_left: bool,
    pub(super) up: Relay,
    down: Relay,
    pub(super) moved: Instant,
}

impl HttpCache {
    /// A client asks for a tunnel: its server is looked for.
    pub(super) fn begin_tunnel(&mut self, cx: &mut Cx, net: &mut dyn Sockets, id: ExchangeId, to: &Target) {
        let Some(client) = self.clients.get_mut(id.0) else { return };
        let mut tunnel = Tunnel {
            id,
            port: to.port,
            addresses: VecDeque::new(),
            server: None,
            is_open: false,
            has_left: false,
            up: Relay::default(),
            down: Relay::default(),
            moved: cx.now,
        };
        if client.has_ended {
            tunnel.up.end();
        }
        client.tunnel = Some(Box::new(tunnel));
        let host = to.host.clone();
        self.watch_client(id.0);
        self.look_up(cx, net, Asker::Tunnel(id.0), &host);
    }

    /// What came of the question for its addresses.
    pub(super) fn found_tunnel(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        socket: SocketId,
        found: Found,
    ) {
        let Some(client) = self.clients.get_mut(socket) else { return };
        let Some(tunnel) = client.tunnel.as_mut().filter(|t| t.server.is_none()) else { return };
        match found {
            Ok(addresses) => {
                tunnel.addresses = addresses.into_iter().take(TRIES).collect();
                self.try_tunnel(cx, net, socket, 502);
            }
            Err(why) => self.refuse_tunnel(cx, net, socket, why.status()),
        }
    }

    /// Connects to the next address of its server; where there is none, `status` is the answer.
    fn try_tunnel(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, status: u16) {
        let Some(tunnel) = self.clients.get_mut(socket).and_then(|c| c.tunnel.as_mut()) else { return };
        let Some(address) = tunnel.addresses.pop_front() else {
            return self.refuse_tunnel(cx, net, socket, status);
        };
        let server = net.connect(cx, (address, tunnel.port).into());
        tunnel.server = Some(server);
        self.tunnels.insert(server, socket);
    }

    fn refuse_tunnel(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, status: u16) {
        let Some(client) = self.clients.get_mut(socket) else { return };
        let Some(tunnel) = client.tunnel.take() else { return };
        client.input = Input::Ignored;
        self.counters.errors += 1;
        if let Some(exchange) = client.exchange(tunnel.id.1) {
            exchange.upload.is_complete = true;
            answers::own(exchange, status);
        }
        self.pump_client(cx, net, socket);
    }

    /// Its server has answered.
    pub(super) fn tunnel_opened(&mut self, cx: &mut Cx, net: &mut dyn Sockets, server: SocketId) {
        let Some(&mut socket) = self.tunnels.get_mut(server) else { return };
        let Some(client) = self.clients.get_mut(socket) else { return };
        // What came behind the head of its request.
        let rest = client.reader.take_rest();
        let Some(tunnel) = &mut client.tunnel else { return };
        let number = tunnel.id.1;
        tunnel.is_open = true;
        self.counters.tunnels += 1;
        //= RFC 9110 (9.3.6): no length, no chunks: the tunnel begins behind the empty line.
        let head = "HTTP/1.1 200 Connection Established\r\n\r\n";
        tunnel.down.push(cx.now, Body::Real(head.into()));
        for piece in rest {
            tunnel.up.push(cx.now, piece);
        }
        if let Some(exchange) = client.exchange(number) {
            (exchange.status, exchange.how, exchange.phase) = (200, "tunnel", Phase::Answering);
        }
        self.pump_tunnel(cx, net, socket);
    }

    /// Moves what can be moved.
    pub(super) fn pump_tunnel(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        let buffer = self.buffer;
        let Some(client) = self.clients.get_mut(socket) else { return };
        let Some(tunnel) = client.tunnel.as_mut().filter(|t| t.is_open) else { return };
        let (client, server) = (Some(socket).filter(|_| !tunnel.has_left), tunnel.server);
        let mut work =
            Reading { read_size: buffer, buffer, cost: airloom_base::Duration::ZERO, busy: cx.now };
        let moved = tunnel.up.pump(cx, net, client, server, &mut work)
            | tunnel.down.pump(cx, net, server, client, &mut work);
        if moved {
            tunnel.moved = cx.now;
        }
        self.watch_client(socket);
    }

    /// Something happened on the server's side.
    pub(super) fn tunnel_ended(&mut self, cx: &mut Cx, net: &mut dyn Sockets, server: SocketId) {
        let Some(&mut socket) = self.tunnels.get_mut(server) else { return };
        if let Some(tunnel) = self.clients.get_mut(socket).and_then(|c| c.tunnel.as_mut()) {
            tunnel.down.end();
        }
        self.pump_tunnel(cx, net, socket);
    }

    /// The server's side is over.
    pub(super) fn tunnel_closed(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        server: SocketId,
        why: CloseReason,
    ) {
        let Some(socket) = self.tunnels.remove(server) else { return };
        let Some(tunnel) = self.clients.get_mut(socket).and_then(|c| c.tunnel.as_mut()) else { return };
        tunnel.server = None;
        if tunnel.has_left {
            return self.forget_client(cx, net, socket);
        }
        if !tunnel.is_open {
            self.counters.server_failed += 1;
            return self.try_tunnel(cx, net, socket, if why == CloseReason::TimedOut { 504 } else { 502 });
        }
        if why == CloseReason::Finished {
            //= RFC 9110 (9.3.6): what it sent before its end is still on its way to the client.
            tunnel.down.end();
            self.pump_tunnel(cx, net, socket);
        } else {
            net.reset(cx, socket);
            self.forget_client(cx, net, socket);
        }
    }

    /// The client's side is over as it should be. False if no server waits for what came of it.
    pub(super) fn leave_tunnel(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) -> bool {
        let tunnel = self.clients.get_mut(socket).and_then(|c| c.tunnel.as_mut());
        let Some(tunnel) = tunnel.filter(|t| t.is_open && t.server.is_some()) else { return false };
        tunnel.up.end();
        tunnel.has_left = true;
        self.pump_tunnel(cx, net, socket);
        true
    }
}

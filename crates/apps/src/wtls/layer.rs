//! The application around another one: its datagrams to and from secure ports are records.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use airloom_base::service::{Datagram, Passing, Path, WriteError};
use airloom_base::{App, Body, Cx, Instant, SocketEvent, SocketId, Sockets, Summary};
use bytes::Bytes;
use delegate::delegate;

use super::Config;
use super::connection::{self, Connection, Repeat, State, Tell};
use super::record;
use crate::times::Times;
use crate::tls::Resumes;

/// Datagrams that wait for the end of a handshake; further ones are lost.
const WAITING: usize = 16;
/// Connections that a server has at a time; the one that was silent longest goes for another.
const MOST: usize = 4_096;

/// Which datagrams are secured.
#[derive(Clone, Debug)]
enum Side {
    /// Those to this gateway.
    Client(SocketAddr),
    /// Those of secure ports: each stands for one of the application's.
    Server(Vec<(u16, u16)>),
}

/// A connection and what belongs to it.
struct Peer {
    connection: Connection,
    /// Our port.
    port: u16,
    /// The application's, of a server.
    inner: u16,
    waiting: VecDeque<Bytes>,
    /// Since when a client shakes hands.
    began: Option<Instant>,
    repeat: Option<Repeat>,
    used: Instant,
}

struct Layer {
    config: Config,
    side: Side,
    peers: BTreeMap<SocketAddr, Peer>,
    /// Gateways that a session is remembered of.
    known: Vec<SocketAddr>,
    begun: u32,
    handshake: Times,
    resumed: u64,
    failed: u64,
    repeated: u64,
    malformed: u64,
    lost: u64,
    added: u64,
}

/// An application whose datagrams go over WTLS.
pub struct Secured {
    app: Box<dyn App>,
    layer: Layer,
}

impl Secured {
    /// A client of the gateway at this address and port.
    pub fn client(app: Box<dyn App>, config: Config, gateway: SocketAddr) -> Secured {
        Secured::new(app, config, Side::Client(gateway))
    }

    /// A server: what comes to the first port of a pair is for the second one of the application.
    pub fn server(app: Box<dyn App>, config: Config, ports: Vec<(u16, u16)>) -> Secured {
        Secured::new(app, config, Side::Server(ports))
    }

    fn new(app: Box<dyn App>, config: Config, side: Side) -> Secured {
        let layer = Layer {
            config,
            side,
            peers: BTreeMap::new(),
            known: Vec::new(),
            begun: 0,
            handshake: Times::default(),
            resumed: 0,
            failed: 0,
            repeated: 0,
            malformed: 0,
            lost: 0,
            added: 0,
        };
        Secured { app, layer }
    }
}

fn send(cx: &mut Cx, net: &mut dyn Sockets, local_port: u16, remote: SocketAddr, datagram: Bytes) {
    net.send_datagram(cx, Datagram::Udp { local_port, remote, body: Body::Real(datagram) });
}

impl Layer {
    /// The application sends a datagram.
    fn send(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        local_port: u16,
        remote: SocketAddr,
        body: &Bytes,
    ) {
        if matches!(self.side, Side::Client(gateway) if gateway == remote) {
            let idle = self.config.idle;
            let is_there = self.peers.get(&remote).is_some_and(|peer| peer.used + idle > cx.now);
            if !is_there {
                self.begin(cx, net, local_port, remote);
            }
        }
        let Some(peer) = self.peers.get_mut(&remote) else { return };
        peer.used = cx.now;
        if peer.connection.state == State::Open {
            let datagram = peer.connection.seal(body, &self.config);
            self.added += (datagram.len() - body.len()) as u64;
            send(cx, net, peer.port, remote, datagram);
        } else if peer.waiting.len() < WAITING {
            peer.waiting.push_back(body.clone());
        } else {
            self.lost += 1;
        }
    }

    /// A client begins.
    fn begin(&mut self, cx: &mut Cx, net: &mut dyn Sockets, port: u16, gateway: SocketAddr) {
        let resumes = match self.config.resumes {
            Resumes::Never => false,
            Resumes::Later => self.known.contains(&gateway),
            Resumes::Always => true,
        };
        self.begun += 1;
        let connection = Connection::open(self.begun, resumes);
        let flight = connection.flight.clone();
        self.peers.insert(
            gateway,
            Peer {
                connection,
                port,
                inner: port,
                waiting: VecDeque::new(),
                began: Some(cx.now),
                repeat: Some(Repeat { at: cx.now + self.config.repeat_after, times: 0 }),
                used: cx.now,
            },
        );
        self.added += flight.len() as u64;
        send(cx, net, port, gateway, flight);
    }

    /// The port of the application that a datagram for `port` is meant for, if it is a secure one.
    fn inner_port(&self, port: u16, remote: SocketAddr) -> Option<u16> {
        match &self.side {
            Side::Client(gateway) => (*gateway == remote).then_some(port),
            Side::Server(ports) => ports.iter().find(|(secure, _)| *secure == port).map(|(_, inner)| *inner),
        }
    }

    /// A datagram came to a secure port; what the application is to get of it.
    fn receive(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        (port, inner): (u16, u16),
        remote: SocketAddr,
        datagram: &Bytes,
    ) -> Vec<Bytes> {
        let Some(records) = record::parse(datagram, &self.config) else {
            self.malformed += 1;
            return Vec::new();
        };
        if matches!(self.side, Side::Server(_)) {
            let is_new = connection::hello(&records).is_some_and(|(random, _)| {
                self.peers
                    .get(&remote)
                    .is_none_or(|peer| peer.connection.random != random || peer.port != port)
            });
            if let Some(connection) = is_new.then(|| Connection::accept(&records, &self.config)).flatten() {
                self.make_room();
                self.resumed += u64::from(connection.resumes);
                let peer = Peer {
                    connection,
                    port,
                    inner,
                    waiting: VecDeque::new(),
                    began: None,
                    repeat: None,
                    used: cx.now,
                };
                self.peers.insert(remote, peer);
            }
        }
        // What belongs to no connection is of one that was forgotten, or that has another address now: its client has to begin anew.
        let Some(peer) = self.peers.get_mut(&remote).filter(|peer| peer.port == port) else {
            self.malformed += 1;
            if matches!(self.side, Side::Server(_))
                && let Some(alert) = connection::no_connection(&records)
            {
                self.added += alert.len() as u64;
                send(cx, net, port, remote, alert);
            }
            return Vec::new();
        };
        peer.used = cx.now;
        let before = peer.connection.state;
        let heard = peer.connection.hear(&records, &self.config);
        if let Some(tell) = heard.failed {
            self.failed += 1;
            if tell == Tell::Them {
                let alert = peer.connection.alert();
                self.added += alert.len() as u64;
                send(cx, net, port, remote, alert);
            }
            self.lost += peer.waiting.len() as u64;
            self.peers.remove(&remote);
            return Vec::new();
        }
        if heard.answers {
            let flight = peer.connection.flight.clone();
            self.added += flight.len() as u64;
            send(cx, net, port, remote, flight);
            if peer.began.is_some() {
                peer.repeat = Some(Repeat { at: cx.now + self.config.repeat_after, times: 0 });
            }
        }
        if before != State::Open && peer.connection.state == State::Open {
            peer.repeat = None;
            if let Some(began) = peer.began {
                self.handshake.add(cx.now - began);
                self.resumed += u64::from(peer.connection.resumes);
                if !self.known.contains(&remote) {
                    self.known.push(remote);
                }
            }
            let waiting = std::mem::take(&mut peer.waiting);
            for body in waiting {
                self.send(cx, net, port, remote, &body);
            }
        }
        heard.data
    }

    /// A stranger cannot make a server remember without end.
    fn make_room(&mut self) {
        if self.peers.len() < MOST {
            return;
        }
        let oldest = self.peers.iter().min_by_key(|(_, peer)| peer.used).map(|(remote, _)| *remote);
        if let Some(oldest) = oldest {
            self.peers.remove(&oldest);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        if matches!(self.side, Side::Server(_)) {
            return None;
        }
        self.peers.values().filter_map(|peer| peer.repeat).map(|repeat| repeat.at).min()
    }

    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        let due = |peer: &Peer| peer.repeat.is_some_and(|repeat| repeat.at <= cx.now);
        let due: Vec<SocketAddr> = self.peers.iter().filter(|(_, p)| due(p)).map(|(r, _)| *r).collect();
        for remote in due {
            let Some(peer) = self.peers.get_mut(&remote) else { continue };
            let Some(repeat) = &mut peer.repeat else { continue };
            if repeat.times >= self.config.repeats {
                self.failed += 1;
                self.lost += peer.waiting.len() as u64;
                self.peers.remove(&remote);
                continue;
            }
            repeat.times += 1;
            repeat.at = cx.now + self.config.repeat_after;
            self.repeated += 1;
            self.added += peer.connection.flight.len() as u64;
            send(cx, net, peer.port, remote, peer.connection.flight.clone());
        }
    }
}

/// What the application inside takes for the sockets of its host.
struct Inside<'a> {
    layer: &'a mut Layer,
    net: &'a mut dyn Sockets,
}

impl Sockets for Inside<'_> {
    delegate! {
        to self.net {
            fn connect(&mut self, cx: &mut Cx, to: SocketAddr) -> SocketId;
            fn write(&mut self, cx: &mut Cx, socket: SocketId, body: Body) -> Result<usize, WriteError>;
            fn read(&mut self, cx: &mut Cx, socket: SocketId, max: usize) -> Option<Body>;
            fn unacknowledged(&self, socket: SocketId) -> u64;
            fn local(&self, socket: SocketId) -> Option<SocketAddr>;
            fn streams(&self, socket: SocketId) -> Option<u32>;
            fn admit(&mut self, cx: &mut Cx, socket: SocketId);
            fn finish(&mut self, cx: &mut Cx, socket: SocketId);
            fn reset(&mut self, cx: &mut Cx, socket: SocketId);
            fn flow(&self, socket: SocketId) -> u32;
        }
    }
    fn send_datagram(&mut self, cx: &mut Cx, datagram: Datagram) {
        let Datagram::Udp { local_port, remote, body } = datagram else {
            return self.net.send_datagram(cx, datagram);
        };
        let is_secured = match &self.layer.side {
            Side::Client(gateway) => *gateway == remote,
            Side::Server(_) => self.layer.peers.get(&remote).is_some_and(|peer| peer.inner == local_port),
        };
        if is_secured {
            self.layer.send(cx, self.net, local_port, remote, &body.to_bytes());
        } else {
            self.net.send_datagram(cx, Datagram::Udp { local_port, remote, body });
        }
    }
    fn datagram_limit(&mut self, to: IpAddr) -> Option<usize> {
        let config = &self.layer.config;
        // One that fits with all padding there may be, secured or not.
        let around = record::HEADER + usize::from(config.mac) + usize::from(config.block);
        self.net.datagram_limit(to).map(|most| most.saturating_sub(around))
    }
}

impl App for Secured {
    delegate! {
        to self.app {
            fn stream_ports(&self) -> Vec<u16>;
            fn accepts_over(&self) -> &'static [&'static str];
            fn passing(&self) -> Passing;
            fn decides(&self) -> bool;
            fn is_done(&self) -> bool;
            fn close(&mut self, cx: &mut Cx);
        }
    }
    fn datagram_ports(&self) -> Vec<u16> {
        let secure = match &self.layer.side {
            Side::Client(_) => Vec::new(),
            Side::Server(ports) => ports.iter().map(|(secure, _)| *secure).collect(),
        };
        [self.app.datagram_ports(), secure].concat()
    }
    fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.app.start(cx, &mut Inside { layer: &mut self.layer, net });
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        self.app.handle_event(cx, &mut Inside { layer: &mut self.layer, net }, socket, event);
    }
    fn handle_datagram(&mut self, cx: &mut Cx, net: &mut dyn Sockets, datagram: Datagram) {
        let inner = match &datagram {
            Datagram::Udp { local_port, remote, .. } => self.layer.inner_port(*local_port, *remote),
            Datagram::Echo { .. } => None,
        };
        let (Datagram::Udp { local_port, remote, body }, Some(inner)) = (&datagram, inner) else {
            return self.app.handle_datagram(cx, &mut Inside { layer: &mut self.layer, net }, datagram);
        };
        let content = self.layer.receive(cx, net, (*local_port, inner), *remote, &body.to_bytes());
        for octets in content {
            let datagram = Datagram::Udp { local_port: inner, remote: *remote, body: Body::Real(octets) };
            self.app.handle_datagram(cx, &mut Inside { layer: &mut self.layer, net }, datagram);
        }
    }
    fn handle_path(&mut self, cx: &mut Cx, net: &mut dyn Sockets, path: Path, is_up: bool) {
        self.app.handle_path(cx, &mut Inside { layer: &mut self.layer, net }, path, is_up);
    }
    fn poll_timeout(&self) -> Option<Instant> {
        [self.app.poll_timeout(), self.layer.poll_timeout()].into_iter().flatten().min()
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.layer.handle_timeout(cx, net);
        if self.app.poll_timeout().is_some_and(|at| at <= cx.now) {
            self.app.handle_timeout(cx, &mut Inside { layer: &mut self.layer, net });
        }
    }
    fn summarise(&self, out: &mut Summary) {
        self.app.summarise(out);
        let layer = &self.layer;
        if matches!(layer.side, Side::Client(_)) {
            layer.handshake.summarise("wtls_handshake", out);
        }
        for (name, value) in [
            ("wtls_resumed", layer.resumed),
            ("wtls_failed", layer.failed),
            ("wtls_repeated", layer.repeated),
            ("wtls_malformed", layer.malformed),
            ("wtls_lost", layer.lost),
            ("wtls_added_bytes", layer.added),
        ] {
            out.set(name, value as f64);
        }
    }
}

//! The two applications at the ends of the path: octets of real sockets go in at one and come out at the other.
//!
//! They are machines like every other. What they share with the real sockets is a [`Lane`] for each connection, with two
//! bounded queues, and a [`Door`] at which new connections and datagrams wait.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airloom_base::service::Datagram;
use airloom_base::{App, Body, CloseReason, Cx, Instant, SocketEvent, SocketId, Sockets, Summary};
use bytes::Bytes;
use tokio::sync::Notify;

/// Octets that wait at either end of a lane: what a kernel's socket buffer may hold.
pub(super) const ROOM: usize = 256 << 10;
/// Octets of one write into the network.
const PIECE: usize = 64 << 10;
/// Connections at a time, and datagrams that wait.
pub(super) const MOST: usize = 256;
/// Ports in the network: of the forwards at the far end, and of UDP's flows at the near one.
pub(super) const FIRST_PORT: u16 = 40_000;
pub(super) const FIRST_FLOW: u16 = 30_000;
/// More than there are flows, so that what is under way for one when it ends is not taken for the next one's.
pub(super) const FLOW_PORTS: u16 = 4096;

/// Octets on their way, and whether more will come.
#[derive(Default)]
pub(super) struct Queue {
    chunks: VecDeque<Bytes>,
    octets: usize,
    /// Nothing comes after what is there.
    pub(super) finished: bool,
}

impl Queue {
    pub(super) fn push(&mut self, octets: Bytes) {
        self.octets += octets.len();
        self.chunks.push_back(octets);
    }

    pub(super) fn pop(&mut self) -> Option<Bytes> {
        let octets = self.chunks.pop_front()?;
        self.octets -= octets.len();
        Some(octets)
    }

    /// How many octets it takes.
    pub(super) fn room(&self) -> usize {
        ROOM.saturating_sub(self.octets)
    }

    pub(super) fn is_over(&self) -> bool {
        self.finished && self.chunks.is_empty()
    }
}

/// Both directions of a connection, seen from the real socket.
#[derive(Default)]
pub(super) struct Both {
    /// Into the network.
    pub(super) into: Queue,
    /// Out of it.
    pub(super) out: Queue,
    /// One side broke it off: the other one does so too.
    pub(super) broken: bool,
    /// The network has finished its side of the socket.
    has_finished: bool,
}

/// A connection between a real socket and an application.
#[derive(Default)]
pub(super) struct Lane {
    both: Mutex<Both>,
    /// There is room on the way in; something has come out. Each is waited for at one place.
    pub(super) has_room: Notify,
    pub(super) has_come: Notify,
}

impl Lane {
    pub(super) fn both(&self) -> MutexGuard<'_, Both> {
        self.both.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How much it takes into the network; an error if it is broken.
    pub(super) fn room(&self) -> io::Result<usize> {
        let both = self.both();
        if both.broken { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(both.into.room()) }
    }

    /// What comes out of the network next; an error if it is broken.
    pub(super) fn next(&self) -> io::Result<Next> {
        let mut both = self.both();
        if both.broken {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let was_full = both.out.room() == 0;
        Ok(match both.out.pop() {
            Some(octets) => Next::Octets(octets, was_full),
            None if both.out.finished => Next::End,
            None => Next::Nothing,
        })
    }

    /// Ends it at both sides.
    pub(super) fn break_off(&self) {
        self.both().broken = true;
        self.tell();
    }

    fn tell(&self) {
        self.has_room.notify_one();
        self.has_come.notify_one();
    }
}

/// What a lane gives.
pub(super) enum Next {
    /// Octets; had there been no room for more?
    Octets(Bytes, bool),
    /// Not yet.
    Nothing,
    /// No more.
    End,
}

/// A datagram on one side: the port and the peer, as that side knows them.
pub(super) type Said = (u16, SocketAddr, Bytes);

/// What waits at an end.
#[derive(Default)]
pub(super) struct Door {
    /// Is the application to look here? Whoever sets it wakes the engine.
    pub(super) is_rung: AtomicBool,
    /// Connections from the real side, with the port in the network.
    pub(super) lanes: Mutex<VecDeque<(u16, Arc<Lane>)>>,
    /// Connections from the network.
    pub(super) arrived: Mutex<VecDeque<(u16, Arc<Lane>)>>,
    /// Datagrams into the network, and out of it.
    pub(super) into: Mutex<VecDeque<Said>>,
    pub(super) out: Mutex<VecDeque<Said>>,
    pub(super) changed: Notify,
}

/// The queue of a door; at most so many wait there.
pub(super) fn put<T>(queue: &Mutex<VecDeque<T>>, what: T) -> bool {
    let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
    let fits = queue.len() < MOST;
    if fits {
        queue.push_back(what);
    }
    fits
}

pub(super) fn take<T>(queue: &Mutex<VecDeque<T>>) -> Option<T> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

/// An end of the path.
pub(super) struct Bridge {
    door: Arc<Door>,
    /// The near end connects to this host; the far one listens on so many ports.
    end: End,
    lanes: BTreeMap<SocketId, Arc<Lane>>,
}

enum End {
    Near(IpAddr),
    Far(u16),
}

impl Bridge {
    /// The end at which connections begin; `far` is the address of the other host.
    pub(super) fn near(door: Arc<Door>, far: IpAddr) -> Bridge {
        Bridge { door, end: End::Near(far), lanes: BTreeMap::new() }
    }

    /// The end at which they go on, with so many forwards.
    pub(super) fn far(door: Arc<Door>, forwards: u16) -> Bridge {
        Bridge { door, end: End::Far(forwards), lanes: BTreeMap::new() }
    }

    /// Moves what can be moved; false if the socket is to be forgotten.
    fn pump(cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, lane: &Lane) -> bool {
        let mut both = lane.both();
        if both.broken {
            net.reset(cx, socket);
            return false;
        }
        let mut moved = false;
        while let Some(octets) = both.into.pop() {
            let piece = octets.slice(..octets.len().min(PIECE));
            let taken = net.write(cx, socket, Body::Real(piece)).unwrap_or(0);
            moved |= taken > 0;
            if taken < octets.len() {
                both.into.octets += octets.len() - taken;
                both.into.chunks.push_front(octets.slice(taken..));
                if taken < PIECE {
                    break;
                }
            }
        }
        if both.into.is_over() && !both.has_finished {
            both.has_finished = true;
            net.finish(cx, socket);
        }
        while both.out.room() > 0 {
            let Some(body) = net.read(cx, socket, both.out.room()) else { break };
            both.out.push(body.to_bytes());
            moved = true;
        }
        drop(both);
        if moved {
            lane.tell();
        }
        true
    }
}

impl App for Bridge {
    fn stream_ports(&self) -> Vec<u16> {
        match self.end {
            End::Near(_) => Vec::new(),
            End::Far(forwards) => (FIRST_PORT..FIRST_PORT + forwards).collect(),
        }
    }

    fn datagram_ports(&self) -> Vec<u16> {
        match self.end {
            End::Near(_) => (FIRST_FLOW..FIRST_FLOW + FLOW_PORTS).collect(),
            End::Far(forwards) => (FIRST_PORT..FIRST_PORT + forwards).collect(),
        }
    }

    fn start(&mut self, _: &mut Cx, _: &mut dyn Sockets) {}

    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        match event {
            SocketEvent::Accepted { at, .. } => {
                let lane = Arc::new(Lane::default());
                if self.lanes.len() >= MOST || !put(&self.door.arrived, (at.port(), Arc::clone(&lane))) {
                    net.reset(cx, socket);
                    return;
                }
                self.lanes.insert(socket, lane);
                self.door.changed.notify_one();
            }
            SocketEvent::Finished => {
                if let Some(lane) = self.lanes.get(&socket) {
                    lane.both().out.finished = true;
                    lane.tell();
                }
            }
            SocketEvent::Closed(reason) => {
                if let Some(lane) = self.lanes.remove(&socket)
                    && reason != CloseReason::Finished
                {
                    lane.break_off();
                }
                return;
            }
            _ => {}
        }
        if let Some(lane) = self.lanes.get(&socket)
            && !Bridge::pump(cx, net, socket, lane)
        {
            self.lanes.remove(&socket);
        }
    }

    fn handle_datagram(&mut self, _: &mut Cx, _: &mut dyn Sockets, datagram: Datagram) {
        // What the real side does not take in time is lost, as in a kernel's socket buffer.
        if let Datagram::Udp { local_port, remote, body } = datagram
            && put(&self.door.out, (local_port, remote, body.to_bytes()))
        {
            self.door.changed.notify_one();
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Something has happened on the real side.
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        if !self.door.is_rung.swap(false, Ordering::AcqRel) {
            return;
        }
        while let Some((port, lane)) = take(&self.door.lanes) {
            let End::Near(far) = self.end else { continue };
            if self.lanes.len() >= MOST {
                lane.break_off();
                continue;
            }
            self.lanes.insert(net.connect(cx, SocketAddr::new(far, port)), lane);
        }
        self.lanes.retain(|socket, lane| Bridge::pump(cx, net, *socket, lane));
        while let Some((local_port, mut remote, octets)) = take(&self.door.into) {
            if let End::Near(far) = self.end {
                remote.set_ip(far);
            }
            net.send_datagram(cx, Datagram::Udp { local_port, remote, body: Body::Real(octets) });
        }
    }

    fn is_done(&self) -> bool {
        true
    }

    fn summarise(&self, _: &mut Summary) {}
}

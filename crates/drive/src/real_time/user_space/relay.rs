//! The real sockets: those that clients come to, and those to the targets.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::bridge::{Door, FIRST_FLOW, FIRST_PORT, FLOW_PORTS, Lane, Next, put, take};
use super::{Kind, Listening};
use crate::daemon::udp::anywhere;
use crate::real_time::exchange::{Ask, Shared};

/// How long the opening of a connection to a target may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Octets that are read at a time.
const READ: usize = 64 << 10;
/// Flows of UDP at a time.
const FLOWS: usize = 256;
/// The largest payload of UDP.
const LARGEST: usize = 65_535;

/// An end's door, and what wakes the engine when something was put there.
#[derive(Clone)]
struct Bell {
    door: Arc<Door>,
    shared: Arc<Shared>,
}

impl Bell {
    fn ring(&self) {
        // One call is enough for all that waits.
        if !self.door.is_rung.swap(true, Ordering::AcqRel) {
            let _ = self.shared.ask(Ask::Wake);
        }
    }
}

/// Serves until `over` says so.
pub(super) fn serve(
    listening: Vec<Listening>,
    doors: [Arc<Door>; 2],
    shared: &Arc<Shared>,
    mut over: watch::Receiver<bool>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let [near, far] = doors.map(|door| Bell { door, shared: Arc::clone(shared) });
    runtime.block_on(async move {
        let targets = listening.iter().map(|one| one.target).collect();
        let flows = Arc::new(Mutex::new(Flows::default()));
        for (number, one) in listening.into_iter().enumerate() {
            let port = FIRST_PORT + number as u16;
            match one.kind {
                Kind::Tcp(listener) => {
                    tokio::spawn(accept(TcpListener::from_std(listener)?, port, near.clone()));
                }
                Kind::Udp(socket) => {
                    let socket = Arc::new(UdpSocket::from_std(socket)?);
                    tokio::spawn(take_datagrams(socket, port, Arc::clone(&flows), near.clone()));
                }
            }
        }
        tokio::spawn(return_datagrams(Arc::clone(&flows), near.door));
        tokio::spawn(relay_far(targets, flows, far));
        // Everything that was spawned ends with the runtime.
        let _ = over.wait_for(|over| *over).await;
        Ok(())
    })
}

async fn accept(listener: TcpListener, port: u16, bell: Bell) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let lane = Arc::new(Lane::default());
                // Too many at once: the client hears the end of its connection.
                if put(&bell.door.lanes, (port, Arc::clone(&lane))) {
                    bell.ring();
                    tokio::spawn(carry(stream, lane, bell.clone()));
                }
            }
            // No descriptors left, say: others will end.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Moves octets between a real socket and its lane, until both directions are over or one breaks.
async fn carry(mut stream: TcpStream, lane: Arc<Lane>, bell: Bell) {
    let _ = stream.set_nodelay(true);
    let (read, write) = stream.split();
    if tokio::try_join!(into_the_network(read, &lane, &bell), out_of_the_network(write, &lane, &bell))
        .is_err()
    {
        // The peer hears that it was broken off, and not finished.
        let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
        lane.break_off();
        bell.ring();
    }
}

async fn into_the_network(mut read: ReadHalf<'_>, lane: &Lane, bell: &Bell) -> io::Result<()> {
    let mut buffer = vec![0; READ];
    loop {
        let room = lane.room()?;
        let changed = lane.has_room.notified();
        if room == 0 {
            changed.await;
            continue;
        }
        let len = tokio::select! {
            len = read.read(&mut buffer[..room.min(READ)]) => len?,
            () = changed => continue,
        };
        let mut both = lane.both();
        if len == 0 {
            both.into.finished = true;
        } else {
            both.into.push(Bytes::copy_from_slice(&buffer[..len]));
        }
        drop(both);
        bell.ring();
        if len == 0 {
            return Ok(());
        }
    }
}

async fn out_of_the_network(mut write: WriteHalf<'_>, lane: &Lane, bell: &Bell) -> io::Result<()> {
    loop {
        match lane.next()? {
            Next::Octets(octets, was_full) => {
                write.write_all(&octets).await?;
                if was_full {
                    bell.ring();
                }
            }
            Next::Nothing => lane.has_come.notified().await,
            Next::End => return write.shutdown().await,
        }
    }
}

/// Whose datagrams come by which port of the near end: the one gives way that was silent longest.
#[derive(Default)]
struct Flows {
    /// In order of their last use.
    known: VecDeque<Flow>,
    /// How many there have been.
    count: u64,
}

struct Flow {
    forward: u16,
    client: SocketAddr,
    socket: Arc<UdpSocket>,
    /// Which one it was: its port is given again.
    number: u64,
}

impl Flow {
    fn port(&self) -> u16 {
        FIRST_FLOW + (self.number % u64::from(FLOW_PORTS)) as u16
    }
}

impl Flows {
    /// It is used now.
    fn touch(&mut self, at: usize) -> Option<&Flow> {
        let flow = self.known.remove(at)?;
        self.known.push_back(flow);
        self.known.back()
    }

    /// The port for a client that sends to this forward.
    fn port(&mut self, forward: u16, client: SocketAddr, socket: &Arc<UdpSocket>) -> u16 {
        let known = self.known.iter().position(|flow| (flow.forward, flow.client) == (forward, client));
        if let Some(flow) = known.and_then(|at| self.touch(at)) {
            return flow.port();
        }
        if self.known.len() >= FLOWS {
            self.known.pop_front();
        }
        let mut flow = Flow { forward, client, socket: Arc::clone(socket), number: self.count };
        while self.known.iter().any(|other| other.port() == flow.port()) {
            flow.number += 1;
        }
        self.count = flow.number + 1;
        let port = flow.port();
        self.known.push_back(flow);
        port
    }

    fn client(&mut self, port: u16) -> Option<(SocketAddr, Arc<UdpSocket>)> {
        let at = self.known.iter().position(|flow| flow.port() == port)?;
        self.touch(at).map(|flow| (flow.client, Arc::clone(&flow.socket)))
    }

    /// Which flow has this port now, if any.
    fn number(&self, port: u16) -> Option<u64> {
        self.known.iter().find(|flow| flow.port() == port).map(|flow| flow.number)
    }
}

async fn take_datagrams(socket: Arc<UdpSocket>, forward: u16, flows: Arc<Mutex<Flows>>, bell: Bell) {
    let mut buffer = vec![0; LARGEST];
    loop {
        // An error tells of a datagram of ours that found nobody.
        let Ok((len, client)) = socket.recv_from(&mut buffer).await else { continue };
        let port = flows.lock().unwrap_or_else(PoisonError::into_inner).port(forward, client, &socket);
        let to = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), forward);
        if put(&bell.door.into, (port, to, Bytes::copy_from_slice(&buffer[..len]))) {
            bell.ring();
        }
    }
}

async fn return_datagrams(flows: Arc<Mutex<Flows>>, door: Arc<Door>) {
    loop {
        while let Some((port, _, octets)) = take(&door.out) {
            let found = flows.lock().unwrap_or_else(PoisonError::into_inner).client(port);
            if let Some((client, socket)) = found {
                let _ = socket.send_to(&octets, client).await;
            }
        }
        door.changed.notified().await;
    }
}

/// A flow's socket at the far end; what comes to it is taken as long as this value is there.
struct Far {
    /// Whose it is, if that was known.
    number: Option<u64>,
    socket: Arc<UdpSocket>,
    answers: AbortHandle,
}

impl Drop for Far {
    fn drop(&mut self) {
        self.answers.abort();
    }
}

/// The far end: connections and datagrams go on to their targets.
async fn relay_far(targets: Vec<SocketAddr>, near: Arc<Mutex<Flows>>, bell: Bell) {
    let target = |port: u16| targets.get(usize::from(port - FIRST_PORT)).copied();
    let number = |from: SocketAddr| near.lock().unwrap_or_else(PoisonError::into_inner).number(from.port());
    let mut flows: BTreeMap<(u16, SocketAddr), Far> = BTreeMap::new();
    loop {
        while let Some((port, lane)) = take(&bell.door.arrived) {
            if let Some(to) = target(port) {
                tokio::spawn(connect(to, lane, bell.clone()));
            }
        }
        while let Some((port, from, octets)) = take(&bell.door.out) {
            let Some(to) = target(port) else { continue };
            let now = number(from);
            // The port may be another client's now, who is to have no answers to this one.
            if flows.get(&(port, from)).is_none_or(|far| now.is_some() && far.number != now) {
                flows.remove(&(port, from));
                if flows.len() >= FLOWS {
                    flows.retain(|(_, from), far| far.number.is_some() && number(*from) == far.number);
                }
                let Ok(socket) = udp_to(to).await.map(Arc::new) else { continue };
                let answers = tokio::spawn(answers(Arc::clone(&socket), (port, from), bell.clone()));
                flows.insert((port, from), Far { number: now, socket, answers: answers.abort_handle() });
            }
            if let Some(far) = flows.get(&(port, from)) {
                let _ = far.socket.send(&octets).await;
            }
        }
        bell.door.changed.notified().await;
    }
}

/// A server of this machine may have the other one of its two addresses alone.
async fn reach(to: SocketAddr) -> io::Result<TcpStream> {
    match TcpStream::connect(to).await {
        Err(error) if to.ip() == Ipv4Addr::LOCALHOST => {
            TcpStream::connect((Ipv6Addr::LOCALHOST, to.port())).await.map_err(|_| error)
        }
        reached => reached,
    }
}

async fn connect(to: SocketAddr, lane: Arc<Lane>, bell: Bell) {
    match tokio::time::timeout(PATIENCE, reach(to)).await {
        Ok(Ok(stream)) => carry(stream, lane, bell).await,
        _ => {
            lane.break_off();
            bell.ring();
        }
    }
}

async fn udp_to(to: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(anywhere(to)).await?;
    socket.connect(to).await?;
    Ok(socket)
}

async fn answers(socket: Arc<UdpSocket>, (port, to): (u16, SocketAddr), bell: Bell) {
    let mut buffer = vec![0; LARGEST];
    loop {
        let Ok(len) = socket.recv(&mut buffer).await else { continue };
        if put(&bell.door.into, (port, to, Bytes::copy_from_slice(&buffer[..len]))) {
            bell.ring();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_port_is_given_again_late_and_by_last_use() {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.expect("loopback"));
        let client = |number: u16| SocketAddr::from(([127, 0, 0, 1], number));
        let mut flows = Flows::default();
        let mut port = |n| flows.port(FIRST_PORT, client(n), &socket);
        let (first, second) = (port(1), port(2));
        for n in 3..=FLOW_PORTS + 2 {
            assert_eq!(port(1), first);
            assert_ne!(port(n), first, "in use by a client that came long before");
        }
        assert_eq!(port(FLOW_PORTS + 3), second + 2, "of one that has been gone for long");
        assert_eq!(flows.known.len(), FLOWS);
        assert_eq!(flows.client(first).map(|(client, _)| client.port()), Some(1));
        assert!(flows.number(second).is_some_and(|number| number >= u64::from(FLOW_PORTS)));
    }
}

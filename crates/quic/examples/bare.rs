//! What the library costs by itself: both ends of one connection and a wire between them, with nothing of a host around them.
//!
//! ```text
//! bare [megabytes]     one stream of so much over 100 Mbit/s and 10 ms each way, as `yardsticks quic` has it
//! bare pages [objects] a thousand connections, each with so many streams of 10,240 octets over 10 Mbit/s and 20 ms, as `yardsticks h3`
//! ```
//!
//! Handshake and protection are the crate's own model, so that both send the same packets. `tools/bench/run` sets it beside the network.

#![expect(dead_code, reason = "the modules of the crate are here for a part of what they have")]

#[path = "../src/clock.rs"]
mod clock;
#[path = "../src/dateless.rs"]
mod dateless;
#[path = "../src/keylog.rs"]
mod keylog;
#[path = "../src/library/mod.rs"]
mod library;
#[path = "../src/secret.rs"]
mod secret;
#[path = "../src/session/mod.rs"]
mod session;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use airloom_base::Instant;
use airloom_base::random::Stream;
use bytes::{Bytes, BytesMut};

use clock::{from_library, to_library};
use dateless::Dateless;
use library::congestion::NewRenoConfig;
use library::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event,
    MtuDiscoveryConfig, ServerConfig, StreamEvent, StreamId, TransportConfig,
};
use secret::Secret;
use session::Sizes;
use session::handshake::{Common, Starter};
use session::model::Model;
use session::tickets::{Office, Wallet};

/// Octets of IP and UDP around a datagram.
const AROUND: u64 = 28;
/// Octets under way at most, as in the network: the queue never fills.
const WINDOW: u32 = 400_000;
/// Octets of a request.
const REQUEST: usize = 40;

/// What a connection is for, and over what: so many streams that a client opens at once, and on each so many octets as the answer.
#[derive(Clone, Copy)]
struct Task {
    streams: u64,
    octets: u64,
    /// Nanoseconds that an octet takes, and the way.
    octet: u64,
    delay: u64,
}

/// One end, and the wire that leads to it.
struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    /// Octets of answers that a server has not written yet, by stream.
    owed: BTreeMap<StreamId, u64>,
    /// Octets that a client has read.
    read: u64,
    coming: VecDeque<(u64, BytesMut)>,
    /// When the wire to it is free.
    free: u64,
    /// When the library wants to be woken.
    alarm: Option<u64>,
}

fn transport() -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(1472);
    config
        .congestion_controller_factory(Arc::new(NewRenoConfig::default()))
        .mtu_discovery_config(Some(discovery))
        .receive_window(WINDOW.into())
        .stream_receive_window(WINDOW.into())
        .enable_segmentation_offload(false);
    Arc::new(config)
}

fn starter(name: &str) -> Starter {
    let mut stream = Stream::new(1, name);
    let common = Common {
        sizes: Sizes {
            certificates: 2_000,
            post_quantum: false,
            tickets: 2,
            resumes: false,
            zero_rtt: false,
        },
        protection: Box::new(Model),
        office: Mutex::new(Office::new(Secret::of(&mut stream))),
        wallet: Mutex::new(Wallet::default()),
        randoms: Mutex::new(stream),
        certificate: OnceLock::new(),
        is_told: AtomicBool::new(false),
    };
    Starter { common: Arc::new(common), spoken: "bare", server: None }
}

fn end(server: bool) -> End {
    let secret = Arc::new(Secret::of(&mut Stream::new(1, if server { "server" } else { "client" })));
    let mut config = EndpointConfig::new(secret.clone());
    config.rng_seed(Some([u8::from(server); 32])).supported_versions(vec![1]);
    let mut endpoint = library::endpoint(config);
    if server {
        let mut config = ServerConfig::new(Arc::new(starter("server")), secret);
        config.time_source(Arc::new(Dateless)).transport_config(transport());
        endpoint.set_server_config(Some(Arc::new(config)));
    }
    let coming = VecDeque::new();
    End { endpoint, connection: None, owed: BTreeMap::new(), read: 0, coming, free: 0, alarm: None }
}

/// Writes what a server still owes on a stream, and its end.
fn write(connection: &mut Connection, owed: &mut BTreeMap<StreamId, u64>, stream: StreamId, piece: &Bytes) {
    let Some(left) = owed.get_mut(&stream) else { return };
    while *left > 0 {
        let part = piece.slice(..piece.len().min(*left as usize));
        match library::write(&mut connection.send_stream(stream), part) {
            Ok(octets) => *left -= octets as u64,
            Err(_) => return,
        }
    }
    owed.remove(&stream);
    connection.send_stream(stream).finish().expect("it was open");
}

/// Reads what has come on a stream: how many octets, and whether that was all.
fn read(connection: &mut Connection, stream: StreamId) -> (u64, bool) {
    let (mut octets, mut is_all) = (0, false);
    if let Ok(mut chunks) = connection.recv_stream(stream).read(true) {
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => octets += chunk.bytes.len() as u64,
                Ok(None) => break is_all = true,
                Err(_) => break,
            }
        }
        let _ = chunks.finalize();
    }
    (octets, is_all)
}

/// Lets an end do what there is to do; how many packets it has sent to the other one.
fn turn(own: &mut End, other: &mut End, now: u64, task: Task, piece: &Bytes, buffer: &mut Vec<u8>) -> u64 {
    let Some((handle, connection)) = &mut own.connection else { return 0 };
    let at = Instant::from_nanos(now);
    while let Some(event) = connection.poll_endpoint_events() {
        if let Some(event) = own.endpoint.handle_event(*handle, event) {
            connection.handle_event(event);
        }
    }
    while let Some(event) = connection.poll() {
        match event {
            Event::Connected if connection.side().is_client() => {
                for _ in 0..task.streams {
                    let stream = connection.streams().open(Dir::Bi).expect("a hundred are allowed");
                    let request = piece.slice(..REQUEST);
                    library::write(&mut connection.send_stream(stream), request).expect("it is new");
                    connection.send_stream(stream).finish().expect("it is new");
                }
            }
            Event::Stream(StreamEvent::Opened { dir }) => {
                while let Some(stream) = connection.streams().accept(dir) {
                    if read(connection, stream).1 {
                        own.owed.insert(stream, task.octets);
                        write(connection, &mut own.owed, stream, piece);
                    }
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => {
                let (octets, is_all) = read(connection, id);
                if connection.side().is_client() {
                    own.read += octets;
                } else if is_all {
                    own.owed.insert(id, task.octets);
                    write(connection, &mut own.owed, id, piece);
                }
            }
            Event::Stream(StreamEvent::Writable { id }) => write(connection, &mut own.owed, id, piece),
            Event::ConnectionLost { reason } => panic!("{reason}"),
            _ => {}
        }
    }
    let mut sent = 0;
    loop {
        buffer.clear();
        let Some(transmit) = library::transmit(connection, to_library(at), buffer) else { break };
        other.free = other.free.max(now) + (transmit.size as u64 + AROUND) * task.octet;
        other.coming.push_back((other.free + task.delay, BytesMut::from(&buffer[..transmit.size])));
        sent += 1;
    }
    own.alarm = connection.poll_timeout().map(|at| from_library(at).as_nanos().max(now));
    sent
}

/// One connection from its first packet to the last octet that it is for: how long that took, and how many packets.
fn run(task: Task) -> (u64, u64) {
    let piece = Bytes::from(vec![0; 16 << 10]);
    let addresses = [1, 2].map(|n| IpAddr::V4(Ipv4Addr::new(10, 0, 0, n)));
    let remote = |of: usize| SocketAddr::new(addresses[1 - of], [50_000, 443][1 - of]);
    let [mut client, mut server] = [end(false), end(true)];
    let mut config = ClientConfig::new(Arc::new(starter("client")));
    config.transport_config(transport());
    let began = to_library(Instant::ZERO);
    client.connection = client.endpoint.connect(began, config, remote(0), "server.airloom").ok();
    let (mut now, mut packets, mut buffer) = (0, 0, Vec::with_capacity(2048));
    packets += turn(&mut client, &mut server, now, task, &piece, &mut buffer);
    while client.read < task.streams * task.octets {
        let due = |end: &End| {
            let first = end.coming.front().map_or(u64::MAX, |(at, _)| *at);
            first.min(end.alarm.unwrap_or(u64::MAX))
        };
        now = due(&client).min(due(&server));
        let is_client = due(&client) <= due(&server);
        let (of, own, other) =
            if is_client { (0, &mut client, &mut server) } else { (1, &mut server, &mut client) };
        let at = Instant::from_nanos(now);
        while own.coming.front().is_some_and(|(at, _)| *at <= now)
            && let Some((_, octets)) = own.coming.pop_front()
        {
            buffer.clear();
            let event =
                library::datagram(&mut own.endpoint, at, remote(of), addresses[of], 0, octets, &mut buffer);
            match event {
                Some(DatagramEvent::ConnectionEvent(_, event)) => {
                    own.connection.as_mut().expect("it is there").1.handle_event(event);
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    own.connection = own.endpoint.accept(incoming, to_library(at), &mut buffer, None).ok();
                }
                _ => {}
            }
        }
        if own.alarm.is_some_and(|alarm| alarm <= now)
            && let Some((_, connection)) = &mut own.connection
        {
            connection.handle_timeout(to_library(at));
        }
        packets += turn(own, other, now, task, &piece, &mut buffer);
    }
    (now, packets)
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |n: usize, default| words.get(n).map_or(default, |word| word.parse().expect("a number"));
    let (connections, task) = match words.first().map(String::as_str) {
        Some("pages") => {
            (1000, Task { streams: number(1, 20), octets: 10_240, octet: 800, delay: 20_000_000 })
        }
        _ => (1, Task { streams: 1, octets: number(0, 100) * 1_000_000, octet: 80, delay: 10_000_000 }),
    };
    let (mut last, mut packets) = (0, 0);
    for _ in 0..connections {
        let (took, sent) = run(task);
        (last, packets) = (took, packets + sent);
    }
    println!("simulated={:.4} s segments={packets}", last as f64 * 1e-9);
}

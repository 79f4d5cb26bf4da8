//! What the library costs by itself: both ends of one connection and a wire between them, with nothing of a host around them.
//!
//! ```text
//! bare [megabytes]     one stream of so much over 100 Mbit/s and 10 ms each way, as `yardsticks quic` has it
//! ```
//!
//! Handshake and protection are the crate's own model, so that both send the same packets. `tools/bench/run` sets it beside the network.

#![expect(dead_code, reason = "the modules of the crate are here for a part of what they have")]

#[path = "../src/clock.rs"]
mod clock;
#[path = "../src/keylog.rs"]
mod keylog;
#[path = "../src/library.rs"]
mod library;
#[path = "../src/secret.rs"]
mod secret;
#[path = "../src/session/mod.rs"]
mod session;

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use airloom_base::Instant;
use airloom_base::random::Stream;
use bytes::{Bytes, BytesMut};

use clock::{Dateless, from_library, to_library};
use library::congestion::NewRenoConfig;
use library::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event,
    MtuDiscoveryConfig, ServerConfig, StreamEvent, StreamId, TransportConfig,
};
use secret::Secret;
use session::handshake::{Common, Sizes, Starter};
use session::model::Model;
use session::tickets::{Office, Wallet};

/// Nanoseconds that an octet takes at 100 Mbit/s, and the way.
const OCTET: u64 = 80;
const DELAY: u64 = 10_000_000;
/// Octets of IP and UDP around a datagram.
const AROUND: u64 = 28;
/// Octets under way at most, as in the network: the queue never fills.
const WINDOW: u32 = 400_000;

/// One end, and the wire that leads to it.
struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    stream: Option<StreamId>,
    /// Octets written, or read.
    moved: u64,
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
    End { endpoint, connection: None, stream: None, moved: 0, coming: VecDeque::new(), free: 0, alarm: None }
}

/// Lets an end do what there is to do; how many packets it has sent to the other one.
fn turn(own: &mut End, other: &mut End, now: u64, total: u64, piece: &Bytes, buffer: &mut Vec<u8>) -> u64 {
    let Some((handle, connection)) = &mut own.connection else { return 0 };
    let at = Instant::from_nanos(now);
    let mut sent = 0;
    let mut writes = false;
    loop {
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = own.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected if connection.side().is_server() => {
                    own.stream = connection.streams().open(Dir::Uni);
                    writes = true;
                }
                Event::Stream(StreamEvent::Opened { dir }) => own.stream = connection.streams().accept(dir),
                Event::Stream(StreamEvent::Writable { .. }) => writes = true,
                Event::ConnectionLost { reason } => panic!("{reason}"),
                _ => {}
            }
        }
        let Some(stream) = own.stream else { break };
        if connection.side().is_client() {
            if let Ok(mut chunks) = connection.recv_stream(stream).read(true) {
                while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                    own.moved += chunk.bytes.len() as u64;
                }
                let _ = chunks.finalize();
            }
            break;
        }
        if !std::mem::take(&mut writes) {
            break;
        }
        while own.moved < total {
            let part = piece.slice(..piece.len().min((total - own.moved) as usize));
            match library::write(&mut connection.send_stream(stream), part) {
                Ok(octets) => own.moved += octets as u64,
                Err(_) => break,
            }
        }
    }
    loop {
        buffer.clear();
        let Some(transmit) = library::transmit(connection, at, buffer) else { break };
        other.free = other.free.max(now) + (transmit.size as u64 + AROUND) * OCTET;
        other.coming.push_back((other.free + DELAY, BytesMut::from(&buffer[..transmit.size])));
        sent += 1;
    }
    own.alarm = connection.poll_timeout().map(|at| from_library(at).as_nanos().max(now));
    sent
}

fn main() {
    let megabytes: u64 = std::env::args().nth(1).map_or(100, |word| word.parse().expect("a number"));
    let (total, piece) = (megabytes * 1_000_000, Bytes::from(vec![0; 16 << 10]));
    let addresses = [1, 2].map(|n| IpAddr::V4(Ipv4Addr::new(10, 0, 0, n)));
    let remote = |of: usize| SocketAddr::new(addresses[1 - of], [50_000, 443][1 - of]);
    let [mut client, mut server] = [end(false), end(true)];
    let mut config = ClientConfig::new(Arc::new(starter("client")));
    config.transport_config(transport());
    let began = to_library(Instant::ZERO);
    client.connection = client.endpoint.connect(began, config, remote(0), "server.airloom").ok();
    let (mut now, mut packets, mut buffer) = (0, 0, Vec::with_capacity(2048));
    packets += turn(&mut client, &mut server, now, total, &piece, &mut buffer);
    while client.moved < total {
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
        packets += turn(own, other, now, total, &piece, &mut buffer);
    }
    println!("simulated={:.4} s segments={packets}", now as f64 * 1e-9);
}

//! One bulk transfer between two TCPs with nothing but two queues between them: for counting instructions.
//!
//! `tcp_bulk [MEGABYTES] [PROFILE]`. Run it under an instruction counter with two sizes: the difference is the cost
//! of the segments alone.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use airloom_base::service::{Identity, Path};
use airloom_base::units::{Octets, Rate};
use airloom_base::{
    Body, Cx, Duration, Instant, Outbox, Packet, PathId, Protocol, Transport, TransportEvent,
};
use airloom_tcp::{Config, Profile, Tcp};

const DELAY: Duration = Duration::from_millis(10);

struct Side {
    transport: Box<dyn Transport>,
    /// On the way to this side.
    arriving: VecDeque<(Instant, Packet)>,
    free_at: Instant,
    to_write: Body,
    read: u64,
    segments: u64,
}

fn main() {
    let mut args = std::env::args().skip(1);
    let megabytes: u32 = args.next().and_then(|a| a.parse().ok()).unwrap_or(10);
    let profile = match args.next().as_deref() {
        Some("linux") => Profile::Linux,
        _ => Profile::Rfc,
    };
    let config = Config {
        receive_buffer: Octets(400_000),
        initial_receive_window: Octets(400_000),
        timestamps: profile == Profile::Linux,
        ..profile.settings()
    };
    let address = |n| IpAddr::V4(Ipv4Addr::new(10, 0, 0, n));
    let mut outbox = Outbox::default();
    let mut now = Instant::ZERO;
    let mut server = Tcp::new(config.clone(), 2);
    let path = Path { local: address(1), remote: address(2), mtu: 1500 };
    let mut cx = Cx { now, records: &mut outbox };
    let mut opener = Tcp::new(config, 1).open(&mut cx, path, (1, 2), Identity::default());
    opener.connect(&mut cx);
    let syn = opener.poll_transmit(&mut cx).expect("a SYN").packet;
    let path = Path { local: address(2), remote: address(1), mtu: 1500 };
    let mut answerer = server.accept(&mut cx, path, (2, 1), Identity::default(), &syn).expect("a SYN opens");
    answerer.handle_packet(&mut cx, PathId(0), 0, syn);
    let side = |transport, to_write| Side {
        transport,
        arriving: VecDeque::new(),
        free_at: Instant::ZERO,
        to_write,
        read: 0,
        segments: 0,
    };
    let rate = Rate::kbit(100_000);
    let mut sides =
        [side(opener, Body::filler(1, megabytes.saturating_mul(1_000_000))), side(answerer, Body::EMPTY)];
    drain(&mut sides, 1, now, rate, &mut outbox);
    loop {
        let next = |s: &Side| s.arriving.front().map_or(Instant::FAR_FUTURE, |(at, _)| *at);
        let timeout = |s: &Side| s.transport.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
        let at = next(&sides[0]).min(next(&sides[1])).min(timeout(&sides[0])).min(timeout(&sides[1]));
        if at == Instant::FAR_FUTURE || sides[1].read == u64::from(megabytes) * 1_000_000 {
            break;
        }
        now = at;
        for i in 0..2 {
            let mut cx = Cx { now, records: &mut outbox };
            if next(&sides[i]) <= now {
                let (_, packet) = sides[i].arriving.pop_front().expect("it was there");
                sides[i].transport.handle_packet(&mut cx, PathId(0), 0, packet);
                drain(&mut sides, i, now, rate, &mut outbox);
                break;
            }
            if timeout(&sides[i]) <= now {
                sides[i].transport.handle_timeout(&mut cx);
                drain(&mut sides, i, now, rate, &mut outbox);
                break;
            }
        }
    }
    println!(
        "{now}: {} octets in {} segments, {} acknowledgements",
        sides[1].read, sides[0].segments, sides[1].segments
    );
}

fn drain(sides: &mut [Side; 2], i: usize, now: Instant, rate: Rate, outbox: &mut Outbox) {
    let mut cx = Cx { now, records: outbox };
    loop {
        while let Some(out) = sides[i].transport.poll_transmit(&mut cx) {
            let (side, peer) = if i == 0 {
                let [a, b] = sides;
                (a, b)
            } else {
                let [a, b] = sides;
                (b, a)
            };
            let departure = side.free_at.max(now) + rate.time_for(out.packet.wire_len() as u64 + 20);
            side.free_at = departure;
            side.segments += 1;
            peer.arriving.push_back((departure + DELAY, out.packet));
        }
        let side = &mut sides[i];
        let Some(event) = side.transport.poll_event() else { return };
        match event {
            TransportEvent::Opened | TransportEvent::Writable(_) => {
                let taken = side.transport.write(&mut cx, 0, side.to_write.clone()).unwrap_or(0);
                let _ = side.to_write.split_to(taken);
            }
            TransportEvent::Readable(..) => {
                while let Some(body) = side.transport.read(&mut cx, 0, 1 << 20) {
                    side.read += body.len() as u64;
                }
            }
            _ => {}
        }
    }
}

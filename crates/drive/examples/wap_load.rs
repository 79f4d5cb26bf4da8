//! Load for a WAP gateway: `wap_load GATEWAY:PORT URL SESSIONS SECONDS`. Each session asks for the same deck again and
//! again; prints one JSON object with what came back and how long it took.

#![expect(clippy::disallowed_types, reason = "drive/ opens sockets and reads a clock")]

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant as Moment};

use airloom_base::Instant;
use airloom_transports::wsp::capabilities::Capability;
use airloom_transports::wsp::client::{Client, Event};
use airloom_transports::wsp::headers::Encoder;
use airloom_transports::wsp::wire::Method;
use airloom_transports::wtp;
use bytes::Bytes;

/// What one session saw.
#[derive(Default)]
struct Seen {
    took_us: Vec<u64>,
    failed: u64,
    octets: u64,
}

fn main() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [gateway, url, sessions, seconds] = words.as_slice() else {
        return Err("usage: wap_load GATEWAY:PORT URL SESSIONS SECONDS".into());
    };
    let gateway: SocketAddr = gateway.parse().map_err(|_| "the gateway is an address and a port")?;
    let sessions: usize = sessions.parse().map_err(|_| "sessions are a number")?;
    let seconds: f64 = seconds.parse().map_err(|_| "seconds are a number")?;
    let end = Moment::now() + Duration::from_secs_f64(seconds);
    let began = Moment::now();
    let threads: Vec<_> = (0..sessions)
        .map(|_| {
            let url = Bytes::from(url.clone().into_bytes());
            std::thread::spawn(move || session(gateway, &url, end))
        })
        .collect();
    let mut all = Seen::default();
    for thread in threads {
        let seen = thread.join().map_err(|_| "a session panicked")?.map_err(|e| e.to_string())?;
        all.took_us.extend(seen.took_us);
        all.failed += seen.failed;
        all.octets += seen.octets;
    }
    all.took_us.sort_unstable();
    let at = |share: f64| {
        let last = all.took_us.len().saturating_sub(1);
        all.took_us.get((last as f64 * share).round() as usize).copied().unwrap_or(0)
    };
    println!(
        "{{\"replies\": {}, \"failed\": {}, \"octets\": {}, \"seconds\": {:.3}, \"p50_us\": {}, \"p99_us\": {}, \"max_us\": {}}}",
        all.took_us.len(),
        all.failed,
        all.octets,
        began.elapsed().as_secs_f64(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    Ok(())
}

/// One session: connects, asks until the end, disconnects.
fn session(gateway: SocketAddr, url: &Bytes, end: Moment) -> std::io::Result<Seen> {
    let socket = UdpSocket::bind(if gateway.is_ipv6() { "[::1]:0" } else { "127.0.0.1:0" })?;
    let mut client = Client::new(wtp::Config::default(), gateway, 0);
    let mut headers = Vec::new();
    let encoder = Encoder::default();
    for (name, value) in [("Accept", "application/vnd.wap.wmlc, */*"), ("User-Agent", "airloom-load")] {
        encoder.header(name, value, &mut headers).map_err(std::io::Error::other)?;
    }
    let began = Moment::now();
    let now = || Instant::from_nanos(began.elapsed().as_nanos() as u64);
    client.connect(now(), vec![Capability::ClientSduSize(1 << 20)], headers.into());
    let mut seen = Seen::default();
    let mut asked = Moment::now();
    let mut buffer = vec![0; 65_536];
    loop {
        while let Some((to, datagram)) = client.poll_transmit() {
            socket.send_to(&datagram, to)?;
        }
        let mut ask = false;
        while let Some(event) = client.poll_event() {
            match event {
                Event::Connected(_) => ask = true,
                Event::Reply { status, data, .. } => {
                    seen.took_us.push(asked.elapsed().as_micros() as u64);
                    seen.octets += data.len() as u64;
                    seen.failed += u64::from(status != 0x20);
                    ask = true;
                }
                Event::Disconnected(_) | Event::RequestAborted(..) => {
                    seen.failed += 1;
                    return Ok(seen);
                }
                _ => {}
            }
        }
        if ask && Moment::now() >= end {
            client.disconnect(now());
            while let Some((to, datagram)) = client.poll_transmit() {
                socket.send_to(&datagram, to)?;
            }
            return Ok(seen);
        }
        if ask {
            asked = Moment::now();
            client.request(now(), Method::Get, url.clone(), Bytes::new(), Bytes::new());
            continue;
        }
        let wait =
            client.poll_timeout().map_or(u64::MAX, |at| at.as_nanos().saturating_sub(now().as_nanos()));
        socket.set_read_timeout(Some(Duration::from_nanos(wait.clamp(1_000, 1_000_000_000))))?;
        match socket.recv_from(&mut buffer) {
            Ok((len, from)) => client.handle_datagram(now(), from, &Bytes::copy_from_slice(&buffer[..len])),
            Err(e) if matches!(e.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                client.handle_timeout(now());
                if Moment::now() > end + Duration::from_secs(5) {
                    seen.failed += 1;
                    return Ok(seen);
                }
            }
            Err(e) => return Err(e),
        }
    }
}

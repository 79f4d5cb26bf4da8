//! What an open session costs the WAP gateway, in octets of its heap.

use std::net::{Ipv4Addr, SocketAddr};

use airloom_base::Instant;
use airloom_content::http::message::Fields;
use airloom_proxies::wap_gateway::{Config, FetchOrder, Fetched, Gateway, Service};
use airloom_transports::wsp::capabilities::{Capability, option};
use airloom_transports::wsp::client::{Client, Event};
use airloom_transports::wsp::headers::Encoder;
use airloom_transports::wsp::wire::Method;
use airloom_transports::wtp;
use bytes::Bytes;

use super::held;

/// As many as the gateway takes.
const SESSIONS: u32 = 10_000;
/// What is promised of each.
const MOST: i64 = 32_000;

fn phone(n: u32) -> SocketAddr {
    (Ipv4Addr::from(0x0A00_0000 + n), 49_200).into()
}

/// The origin's answer: a cookie and a small text.
fn answer(gateway: &mut Gateway, now: Instant) {
    while let Some(order) = gateway.poll_fetch() {
        let FetchOrder::Start { id, .. } = order else { continue };
        let mut fields = Fields::default();
        fields.push("Content-Type", "text/plain");
        fields.push("Set-Cookie", "session=0123456789abcdef; Path=/");
        gateway.handle_fetch(now, id, Fetched::Head { status: 200, fields });
        gateway.handle_fetch(now, id, Fetched::Chunk(Bytes::from(vec![b'x'; 1_000])));
        gateway.handle_fetch(now, id, Fetched::End);
    }
}

/// Carries datagrams until nobody has any.
fn exchange(gateway: &mut Gateway, client: &mut Client, at: SocketAddr, now: Instant) {
    let server: SocketAddr = "10.255.255.1:9201".parse().expect("an address");
    loop {
        let mut any = false;
        while let Some((_, datagram)) = client.poll_transmit() {
            gateway.handle_datagram(now, Service::Session, at, &datagram);
            any = true;
        }
        answer(gateway, now);
        while let Some((_, _, datagram)) = gateway.poll_transmit() {
            client.handle_datagram(now, server, &datagram);
            any = true;
        }
        if !any {
            return;
        }
    }
}

fn headers() -> Bytes {
    let mut out = Vec::new();
    for (name, value) in [
        ("Accept", "application/vnd.wap.wmlc, image/vnd.wap.wbmp, text/plain, */*"),
        ("Accept-Charset", "utf-8"),
        ("User-Agent", "a phone of two thousand and two, with a long name"),
    ] {
        Encoder::default().header(name, value, &mut out).expect("a header");
    }
    out.into()
}

#[test]
fn an_open_session_takes_less_than_32_kilobytes() {
    let mut gateway = Gateway::new(Config::default(), (1, 2));
    let (server, mut now) = ("10.255.255.1:9201".parse().expect("an address"), Instant::ZERO);
    let empty = held();
    let mut opened = 0;
    for n in 0..SESSIONS {
        let mut client = Client::new(wtp::Config::default(), server, 1);
        let options = option::PUSH | option::CONFIRMED_PUSH | option::SESSION_RESUME;
        let wishes = vec![Capability::ClientSduSize(0), Capability::ProtocolOptions(options)];
        client.connect(now, wishes, headers());
        exchange(&mut gateway, &mut client, phone(n), now);
        let uri = Bytes::from_static(b"http://origin.example/some/page");
        let request = client.request(now, Method::Get, uri, Bytes::new(), Bytes::new());
        assert!(request.is_some(), "the session is open");
        exchange(&mut gateway, &mut client, phone(n), now);
        opened +=
            u32::from(std::iter::from_fn(|| client.poll_event()).any(|e| matches!(e, Event::Reply { .. })));
        while gateway.poll_report().is_some() {}
    }
    assert_eq!((opened, gateway.sessions()), (SESSIONS, SESSIONS as usize));
    let fresh = (held() - empty) / i64::from(SESSIONS);
    // What transactions keep for a while is gone.
    while let Some(at) =
        gateway.poll_timeout().filter(|at| *at < Instant::ZERO + airloom_base::Duration::from_secs(600))
    {
        now = at;
        gateway.handle_timeout(now);
        while gateway.poll_transmit().is_some() {}
    }
    assert_eq!(gateway.sessions(), SESSIONS as usize);
    let rested = (held() - empty) / i64::from(SESSIONS);
    println!("octets of heap per session: {fresh} right after a request, {rested} when nothing is under way");
    assert!(rested > 0 && rested <= fresh && fresh < MOST, "{fresh} and {rested} octets");
}

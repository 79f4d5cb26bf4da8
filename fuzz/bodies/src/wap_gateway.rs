//! The gateway of WAP.

use airloom_base::Duration;
use bytes::Bytes;

/// A WAP gateway with a session: datagrams, answers of origins, messages of initiators and time, as the octets say.
pub fn wap_gateway(octets: &[u8]) {
    use std::net::SocketAddr;

    use airloom_base::Instant;
    use airloom_content::http::message::Fields;
    use airloom_proxies::wap_gateway::{Config, FetchError, FetchId, FetchOrder, Fetched, Gateway, Service};
    use airloom_transports::wsp::capabilities::{Capability, option};
    use airloom_transports::wsp::client::Client;
    use airloom_transports::wsp::wire::Method;
    use airloom_transports::wtp;

    const MEMORY: u64 = 100_000;
    let server: SocketAddr = "10.0.0.2:9201".parse().expect("an address");
    let peers: [SocketAddr; 2] = ["10.0.0.1:49200", "10.0.0.3:1"].map(|at| at.parse().expect("an address"));
    let config = Config {
        memory: airloom_base::units::Octets(MEMORY),
        max_body: airloom_base::units::Octets(20_000),
        kept_decks: airloom_base::units::Octets(MEMORY),
        max_sessions: 4,
        max_pushes: 8,
        ..Config::default()
    };
    let mut gateway = Gateway::new(config, (1, 2));
    let mut client = Client::new(wtp::Config::default(), server, 1);
    let mut now = Instant::ZERO;
    let options = option::PUSH | option::CONFIRMED_PUSH;
    client.connect(
        now,
        vec![Capability::ClientSduSize(0), Capability::ProtocolOptions(options)],
        Bytes::new(),
    );
    let (mut asked, mut rest): (Vec<FetchId>, &[u8]) = (Vec::new(), octets);
    while let Some((&what, behind)) = rest.split_first() {
        let len = behind.first().map_or(0, |len| usize::from(*len)).min(behind.len().saturating_sub(1));
        let (piece, others) = behind.get(1..).unwrap_or_default().split_at(len);
        rest = others;
        let text = || String::from_utf8_lossy(piece).into_owned();
        match what % 8 {
            0 => {
                let service = if what & 8 == 0 { Service::Session } else { Service::Connectionless };
                let from = peers[usize::from(what >> 4 & 1)];
                gateway.handle_datagram(now, service, from, &Bytes::copy_from_slice(piece));
            }
            1 => {
                let uri = Bytes::from(format!("http://o/{}", piece.len()));
                let body = Bytes::copy_from_slice(if what & 8 == 0 { b"" } else { piece });
                let method = if body.is_empty() { Method::Get } else { Method::Post };
                client.request(
                    now,
                    method,
                    uri,
                    if body.is_empty() { body.clone() } else { Bytes::from_static(&[0x83]) },
                    body,
                );
            }
            2 | 3 => {
                let mut fields = Fields::default();
                for line in piece.split(|octet| *octet == b'\n') {
                    let at = line.iter().position(|octet| *octet == b':').unwrap_or(0);
                    fields.push(line[..at].to_vec(), line[at..].to_vec());
                }
                let kinds = ["text/html", "text/vnd.wap.wml", "text/plain", "application/vnd.wap.wmlc"];
                fields.push("Content-Type", kinds[usize::from(what >> 3 & 3)]);
                if what & 32 != 0 {
                    fields.push("Content-Encoding", "gzip");
                }
                let status = [200, 301, 404, 99][usize::from(what >> 6)];
                if let Some(id) = asked.last() {
                    gateway.handle_fetch(now, *id, Fetched::Head { status, fields });
                }
            }
            4 | 5 => {
                if let Some(id) = asked.last() {
                    let chunk = piece.repeat(1 + usize::from(what));
                    gateway.handle_fetch(now, *id, Fetched::Chunk(chunk.into()));
                    if what & 8 != 0 {
                        gateway.handle_fetch(now, *id, Fetched::End);
                    }
                }
            }
            6 => {
                let document = format!(
                    "--x\r\n\r\n<pap><push-message push-id=\"{what}\"><address address-value=\"WAPPUSH=10.0.0.1/TYPE=IPv4@x\"/>\
                     <quality-of-service delivery-method=\"confirmed\"/></push-message></pap>\r\n--x\r\nContent-Type: text/vnd.wap.si\r\n\r\n{}\r\n--x--",
                    text()
                );
                let whole = what & 8 == 0;
                let (kind, body) = if whole {
                    ("multipart/related; boundary=x", document)
                } else {
                    ("application/xml", text())
                };
                let answer = gateway.handle_pap(now, kind, &Bytes::from(body));
                assert!(matches!(answer.status, 202 | 400));
            }
            _ => {
                now += Duration::from_millis(u64::from(what) * 200);
                client.handle_timeout(now);
                gateway.handle_timeout(now);
                if what & 64 != 0
                    && let Some(id) = asked.pop()
                {
                    gateway.handle_fetch(now, id, Fetched::Failed(FetchError::Broken));
                }
            }
        }
        let mut datagrams = 0_u32;
        loop {
            let before = datagrams;
            while let Some((_, datagram)) = client.poll_transmit() {
                gateway.handle_datagram(now, Service::Session, peers[0], &datagram);
                datagrams += 1;
            }
            while let Some(order) = gateway.poll_fetch() {
                match order {
                    FetchOrder::Start { id, .. } => asked.push(id),
                    FetchOrder::Cancel(id) => asked.retain(|known| *known != id),
                }
            }
            while let Some((_, to, datagram)) = gateway.poll_transmit() {
                if to == peers[0] {
                    client.handle_datagram(now, server, &datagram);
                }
                datagrams += 1;
            }
            while client.poll_event().is_some() {}
            if datagrams == before {
                break;
            }
            assert!(datagrams < 10_000, "endless datagrams");
        }
        while gateway.poll_report().is_some() || gateway.poll_push().is_some() {}
        // Bodies and replies, kept decks, and one piece that came before it was found to be too much.
        assert!(gateway.held() as u64 <= 3 * MEMORY, "{} octets held", gateway.held());
    }
    let mut calls = 0_u32;
    while let Some(at) = gateway.poll_timeout() {
        now = now.max(at);
        gateway.handle_timeout(now);
        while gateway.poll_transmit().is_some() || gateway.poll_fetch().is_some() {}
        calls += 1;
        assert!(calls < 100_000, "endless timers");
    }
}

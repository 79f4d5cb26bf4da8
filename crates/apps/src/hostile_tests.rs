//! Servers and clients against peers that say anything.

use std::net::SocketAddr;

use airloom_base::random::Stream;
use airloom_base::{App, Duration};

use crate::bulk::{client, server};
use crate::ftp;
use crate::http_client::{self, Client};
use crate::http_server::{self, Server};
use crate::striped;
use crate::testing::{Answerer, Pair, SERVER, Speaker};
use crate::tls::{self, Secured, Tunnels};

/// Random octets that now and then mean something.
fn octets(stream: &mut Stream) -> Vec<u8> {
    const WORDS: [&[u8]; 30] = [
        b"GET /100 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"HEAD / HTTP/1.0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"Content-Length: 3\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"\r\n",
        b"5\r\nhello\r\n",
        b"0\r\n\r\n",
        b"BULK\x03\x00\x00\x10\0\0\0\0\0\0\0\x05",
        b"BULK\x00\x00\x01\x2c\0\0\0\0\0\0\x28\0",
        b"abc",
        b"USER a\r\nPASS b\r\n",
        b"PASV\r\nRETR 1kB\r\n",
        b"PORT 10,0,0,1,19,136\r\nSTOR x\r\n",
        b"220 a\r\n331 b\r\n230 c\r\n200 d\r\n",
        b"227 (10,0,0,2,0,80)\r\n150 x\r\n",
        b"226 done\r\n",
        b"425-x\r\n",
        b"STRP\0\0\0\x07\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\x20\0",
        b"\0\0\0\0\0\0\0\0\0\0\0\x05hello",
        b"\0\0\0\0\0\0\x05\x78\0\0\0\0\0\0\0\0",
        // HTTP/2: preface and settings, a request, an answer of three octets and its end.
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0",
        b"\0\0\0\x04\0\0\0\0\0",
        b"\0\0\x03\x01\x05\0\0\0\x01\x82\x86\x84",
        b"\0\0\x01\x01\x04\0\0\0\x01\x88\0\0\x03\0\x01\0\0\0\x01abc",
        // TLS: hellos without extensions, a Finished in clear, CCS and data.
        b"\x16\x03\x03\0\x2d\x01\0\0\x29\x03\x0300000000000000000000000000000000\0\0\x02\xc0\x2f\x01\0",
        b"\x16\x03\x03\0\x2a\x02\0\0\x26\x03\x0300000000000000000000000000000000\0\xc0\x2f\0",
        b"\x16\x03\x03\0\x04\x0e\0\0\0\x16\x03\x03\0\x04\x14\0\0\0",
        b"\x14\x03\x03\0\x01\x01\x17\x03\x03\0\x1aabcdefghijklmnopqrstuvwxyz",
    ];
    let mut out = Vec::new();
    for _ in 0..=stream.below(8) {
        if stream.chance(0.8) {
            out.extend_from_slice(WORDS[stream.below(30) as usize]);
        } else {
            let len = 1 + stream.below(40);
            out.extend((0..len).map(|_| stream.bits() as u8));
        }
    }
    out
}

/// A server on this port, of whose clients none is left in the end.
fn outlives(round: u64, server: impl App, port: u16, say: &[u8], hang_up: bool, chop: usize) {
    let mut pair = Pair::new(Speaker::new(port, say.to_vec()), server);
    (pair.a.hang_up, pair.net.chop) = (hang_up, chop);
    pair.run();
    assert_eq!(pair.net.alive(1), 0, "round {round}, port {port}: {say:?}");
}

#[test]
fn servers_outlive_clients_that_say_anything() {
    let mut stream = Stream::new(1, "hostile clients");
    let http = |config| Server::new(config).expect("valid");
    for round in 0..2000 {
        let say = octets(&mut stream);
        let hang_up = stream.chance(0.5);
        let chop = 1 + stream.below(50) as usize;
        outlives(round, http(Default::default()), 80, &say, hang_up, chop);
        let two = http_server::Config { http: http_server::Http::Http2, ..Default::default() };
        outlives(round, http(two.clone()), 80, &say, hang_up, chop);
        let alpn = vec!["h2", "http/1.1"];
        let secured = Secured::new(Box::new(http(two)), tls(round), alpn, Tunnels::default());
        outlives(round, secured, 80, &say, hang_up, chop);
        // A bulk server waits for ever, as its clients do; only what the client ends is over.
        outlives(round, server::Server::new(server::Config::default()), 5001, &say, true, chop);
        let ftp = ftp::Server::new(ftp::ServerConfig::default()).expect("valid");
        outlives(round, ftp, 21, &say, hang_up, chop);
        let striped = striped::Server::new(striped::ServerConfig::default()).expect("valid");
        outlives(round, striped, 5003, &say, true, chop);
    }
}

/// A client that comes to its end, with `all` of what it was to do counted in `counted`.
fn ends(round: u64, client: impl App, server: Answerer, all: f64, counted: &[&str]) {
    let mut pair = Pair::new(client, server);
    pair.run();
    assert!(pair.a.is_done(), "round {round}");
    let summary = pair.summary();
    assert_eq!(counted.iter().map(|name| summary[*name]).sum::<f64>(), all, "round {round}");
}

#[test]
fn clients_come_to_an_end_whatever_servers_say() {
    let mut stream = Stream::new(1, "hostile servers");
    let places =
        http_client::Whereabouts { server: Some("origin"), host: "mobile", resolve: &|_| Some(SERVER) };
    let http = |config| Client::new(config, &places, crate::testing::stream).expect("valid");
    let to = SocketAddr::new(SERVER, 80);
    for round in 0..1000 {
        let answers: Vec<Vec<u8>> = (0..3).map(|_| octets(&mut stream)).collect();
        let answers: Vec<&[u8]> = answers.iter().map(Vec::as_slice).collect();
        let hang_up = stream.chance(0.7);
        let objects = ["/1", "/2", "/3", "/4"].map(|p| http_client::Object::Path(p.into())).to_vec();
        let one = http_client::Config {
            objects: objects.clone(),
            connections: 1 + stream.below(3) as u16,
            pipeline: 1 + stream.below(4) as u16,
            ..Default::default()
        };
        let two = http_client::Config { objects, http: http_client::Http::Http2, ..Default::default() };
        let proxy = Some(to).filter(|_| stream.chance(0.3));
        let way = Tunnels { proxy, ..Tunnels::default() };
        let secured = Secured::new(Box::new(http(two.clone())), tls(round), vec!["h2"], way);
        let ftp = ftp::Config { repeat: 3, port: 80, active: stream.chance(0.5), ..Default::default() };
        let ftp = ftp::Client::new(ftp, to, Duration::ZERO).expect("valid");
        let bulk = client::Config { repeat: 3, port: 80, ..Default::default() };
        let bulk = client::Client::new(&bulk, to, Duration::ZERO).expect("valid");
        let striped = striped::Config { port: 80, ..Default::default() };
        let striped = striped::Client::new(&striped, vec![to; 3], Duration::ZERO, 7).expect("valid");
        let server = |after, hang_up| Answerer::new(&answers, after, hang_up);
        let of_http = ["objects", "failed"];
        ends(round, http(one), server(1, hang_up), 4.0, &of_http);
        ends(round, http(two), server(1, hang_up), 4.0, &of_http);
        ends(round, secured, server(1, hang_up), 4.0, &of_http);
        ends(round, ftp, server(0, hang_up), 3.0, &["transfers", "transfers_failed"]);
        ends(round, bulk, server(1, true), 0.0, &[]);
        ends(round, striped, server(1, true), 0.0, &[]);
    }
}

/// Each habit of TLS in turn.
fn tls(round: u64) -> tls::Config {
    let version = if round.is_multiple_of(3) { tls::Version::Tls12 } else { tls::Version::Tls13 };
    let resumes = if round.is_multiple_of(2) { tls::Resumes::Always } else { tls::Resumes::Later };
    tls::Config { version, resumes, early_data: round % 3 == 2, ..tls::Config::default() }
}

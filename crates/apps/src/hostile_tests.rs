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

#[test]
fn servers_outlive_clients_that_say_anything() {
    let mut stream = Stream::new(1, "hostile clients");
    for round in 0..2000 {
        let say = octets(&mut stream);
        let hang_up = stream.chance(0.5);
        let chop = 1 + stream.below(50) as usize;
        let mut http =
            Pair::new(Speaker::new(80, say.clone()), Server::new(Default::default()).expect("valid"));
        (http.a.hang_up, http.net.chop) = (hang_up, chop);
        http.run();
        assert_eq!(http.net.alive(1), 0, "round {round}: {say:?}");
        let two = http_server::Config { http: http_server::Http::Http2, ..Default::default() };
        let mut today = Pair::new(Speaker::new(80, say.clone()), Server::new(two.clone()).expect("valid"));
        (today.a.hang_up, today.net.chop) = (hang_up, chop);
        today.run();
        assert_eq!(today.net.alive(1), 0, "round {round}: {say:?}");
        let server = Box::new(Server::new(two).expect("valid"));
        let secured = Secured::new(server, tls(round), vec!["h2", "http/1.1"], Tunnels::default());
        let mut today = Pair::new(Speaker::new(80, say.clone()), secured);
        (today.a.hang_up, today.net.chop) = (hang_up, chop);
        today.run();
        assert_eq!(today.net.alive(1), 0, "round {round}: {say:?}");
        let mut bulk =
            Pair::new(Speaker::new(5001, say.clone()), server::Server::new(server::Config::default()));
        // A bulk server waits for ever, as its clients do; only what the client ends is over.
        (bulk.a.hang_up, bulk.net.chop) = (true, chop);
        bulk.run();
        assert_eq!(bulk.net.alive(1), 0, "round {round}: {say:?}");
        let server = ftp::Server::new(ftp::ServerConfig::default()).expect("valid");
        let mut ftp = Pair::new(Speaker::new(21, say.clone()), server);
        (ftp.a.hang_up, ftp.net.chop) = (hang_up, chop);
        ftp.run();
        assert_eq!(ftp.net.alive(1), 0, "round {round}: {say:?}");
        let server = striped::Server::new(striped::ServerConfig::default()).expect("valid");
        let mut files = Pair::new(Speaker::new(5003, say.clone()), server);
        (files.a.hang_up, files.net.chop) = (true, chop);
        files.run();
        assert_eq!(files.net.alive(1), 0, "round {round}: {say:?}");
    }
}

#[test]
fn clients_come_to_an_end_whatever_servers_say() {
    let mut stream = Stream::new(1, "hostile servers");
    for round in 0..1000 {
        let answers: Vec<Vec<u8>> = (0..3).map(|_| octets(&mut stream)).collect();
        let answers: Vec<&[u8]> = answers.iter().map(Vec::as_slice).collect();
        let hang_up = stream.chance(0.7);
        let config = http_client::Config {
            objects: ["/1", "/2", "/3", "/4"].map(|p| http_client::Object::Path(p.into())).to_vec(),
            connections: 1 + stream.below(3) as u16,
            pipeline: 1 + stream.below(4) as u16,
            ..Default::default()
        };
        let places =
            http_client::Whereabouts { server: Some("origin"), host: "mobile", resolve: &|_| Some(SERVER) };
        let client = Client::new(config, &places, crate::testing::stream).expect("valid");
        let mut http = Pair::new(client, Answerer::new(&answers, 1, hang_up));
        http.run();
        assert!(http.a.is_done(), "round {round}: {answers:?}");
        let summary = http.summary();
        assert_eq!(summary["objects"] + summary["failed"], 4.0, "round {round}: {answers:?}");

        let config = || http_client::Config {
            objects: ["/1", "/2", "/3", "/4"].map(|p| http_client::Object::Path(p.into())).to_vec(),
            http: http_client::Http::Http2,
            ..Default::default()
        };
        let client = || Client::new(config(), &places, crate::testing::stream).expect("valid");
        let mut two = Pair::new(client(), Answerer::new(&answers, 1, hang_up));
        two.run();
        assert!(two.a.is_done(), "round {round}: {answers:?}");
        let summary = two.summary();
        assert_eq!(summary["objects"] + summary["failed"], 4.0, "round {round}: {answers:?}");
        let way = Tunnels {
            proxy: Some(SocketAddr::new(SERVER, 80)).filter(|_| stream.chance(0.3)),
            ..Tunnels::default()
        };
        let secured = Secured::new(Box::new(client()), tls(round), vec!["h2"], way);
        let mut two = Pair::new(secured, Answerer::new(&answers, 1, hang_up));
        two.run();
        assert!(two.a.is_done(), "round {round}: {answers:?}");
        let summary = two.summary();
        assert_eq!(summary["objects"] + summary["failed"], 4.0, "round {round}: {answers:?}");

        let config = ftp::Config { repeat: 3, port: 80, active: stream.chance(0.5), ..Default::default() };
        let client = ftp::Client::new(config, SocketAddr::new(SERVER, 80), Duration::ZERO).expect("valid");
        let mut ftp = Pair::new(client, Answerer::new(&answers, 0, hang_up));
        ftp.run();
        assert!(ftp.a.is_done(), "round {round}: {answers:?}");
        assert_eq!(ftp.summary()["transfers"] + ftp.summary()["transfers_failed"], 3.0, "round {round}");

        let config = client::Config { repeat: 3, port: 80, ..Default::default() };
        let to = SocketAddr::new(SERVER, 80);
        let client = client::Client::new(&config, to, Duration::ZERO).expect("valid");
        let mut bulk = Pair::new(client, Answerer::new(&answers, 1, true));
        bulk.run();
        assert!(bulk.a.is_done(), "round {round}: {answers:?}");

        let config = striped::Config { port: 80, ..Default::default() };
        let to = vec![SocketAddr::new(SERVER, 80); 3];
        let client = striped::Client::new(&config, to, Duration::ZERO, 7).expect("valid");
        let mut files = Pair::new(client, Answerer::new(&answers, 1, true));
        files.run();
        assert!(files.a.is_done(), "round {round}: {answers:?}");
    }
}

/// Each habit of TLS in turn.
fn tls(round: u64) -> tls::Config {
    let version = if round.is_multiple_of(3) { tls::Version::Tls12 } else { tls::Version::Tls13 };
    let resumes = if round.is_multiple_of(2) { tls::Resumes::Always } else { tls::Resumes::Later };
    tls::Config { version, resumes, early_data: round % 3 == 2, ..tls::Config::default() }
}

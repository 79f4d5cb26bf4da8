//! Behind a link: `airloom emulate wpt/3g --seed 7 -- cargo test --offline`.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

#[test]
fn a_file_comes_in_time_over_the_link() {
    let link = std::env::var("AIRLOOM_LINK").expect("no link here: airloom emulate wpt/3g -- cargo test");
    let start = Instant::now();
    // The simulated server at the far end; one of your own: --loopback PORT, and host.airloom:PORT here.
    let mut server = TcpStream::connect("10.77.0.1:80").unwrap();
    server.write_all(b"GET /20kB HTTP/1.1\r\nHost: origin\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    server.read_to_end(&mut answer).unwrap();
    let took = start.elapsed();
    assert!(answer.len() > 20_000, "{} octets", answer.len());
    println!("{took:?} over {link}, seed {}", std::env::var("AIRLOOM_SEED").unwrap());
    // Two round trips of 300 ms, and 20 kB at 1.6 Mbit/s.
    assert!((Duration::from_millis(600)..Duration::from_secs(5)).contains(&took), "{took:?}");
}

use std::collections::BTreeMap;
use std::net::SocketAddr;

use airloom_base::service::Datagram;
use airloom_base::{App, Body, Cx, Duration, Instant, SocketEvent, SocketId, Sockets, Summary};

use super::record::{kind, parse, protected, protected_len};
use super::{Class, Config, Secured};
use crate::testing::{CLIENT, Pair, SERVER};
use crate::tls::Resumes;

/// Sends what it is told to at the beginning, and answers with as many octets if it is a server.
struct Talker {
    to: Option<(SocketAddr, Vec<(Duration, usize)>)>,
    port: u16,
    heard: Vec<(Instant, usize)>,
}

impl Talker {
    fn advance(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        let Some((remote, list)) = &mut self.to else { return };
        while list.first().is_some_and(|(at, _)| Instant::ZERO + *at <= cx.now) {
            let (_, len) = list.remove(0);
            let body = Body::Real(vec![9; len].into());
            net.send_datagram(cx, Datagram::Udp { local_port: self.port, remote: *remote, body });
        }
    }
}

impl App for Talker {
    fn datagram_ports(&self) -> Vec<u16> {
        vec![self.port]
    }
    fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.advance(cx, net);
    }
    fn handle_event(&mut self, _: &mut Cx, _: &mut dyn Sockets, _: SocketId, _: SocketEvent) {}
    fn handle_datagram(&mut self, cx: &mut Cx, net: &mut dyn Sockets, datagram: Datagram) {
        let Datagram::Udp { remote, body, .. } = datagram else { return };
        self.heard.push((cx.now, body.len()));
        if self.to.is_none() {
            net.send_datagram(cx, Datagram::Udp { local_port: self.port, remote, body });
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.to.as_ref()?.1.first().map(|(at, _)| Instant::ZERO + *at)
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.advance(cx, net);
    }
    fn summarise(&self, out: &mut Summary) {
        out.set("heard", self.heard.len() as f64);
        out.set("last_s", self.heard.last().map_or(0.0, |(at, _)| (*at - Instant::ZERO).as_secs_f64()));
    }
}

/// Two ends, 100 ms apart.
fn duo(client: Config, server: Config, says: &[(u64, usize)]) -> Pair<Secured, Secured> {
    let gateway = SocketAddr::new(SERVER, 9203);
    let list = says.iter().map(|(ms, len)| (Duration::from_millis(*ms), *len)).collect();
    let near = Talker { to: Some((gateway, list)), port: 49_200, heard: Vec::new() };
    let far = Talker { to: None, port: 9201, heard: Vec::new() };
    let mut pair = Pair::new(
        Secured::client(Box::new(near), client, gateway),
        Secured::server(Box::new(far), server, vec![(9202, 9200), (9203, 9201)]),
    );
    pair.net.delay = Duration::from_millis(100);
    pair
}

/// Lets everything happen, the datagrams of these numbers lost; what each end counted.
fn run(duo: &mut Pair<Secured, Secured>, lost: std::ops::Range<u64>) -> [BTreeMap<String, f64>; 2] {
    duo.net.fate = Box::new(move |number| (u32::from(!lost.contains(&number)), Duration::ZERO));
    duo.run();
    [duo.summary(), duo.server_summary()]
}

fn resuming() -> Config {
    Config { resumes: Resumes::Always, ..Config::default() }
}

#[test]
fn a_record_has_five_octets_of_header_a_hash_and_padding_to_whole_blocks() {
    let config = Config::default();
    for len in [0, 1, 5, 6, 100, 1400] {
        let mut out = Vec::new();
        protected(&mut out, kind::DATA, 7, &vec![3; len], &config);
        assert_eq!(out.len(), 5 + protected_len(len, &config));
        // A hash of 10 octets and at least the octet that counts the padding, at most seven more.
        assert!((out.len() - 5) % 8 == 0 && (11..=18).contains(&(out.len() - 5 - len)), "{len}");
        let records = parse(&out.into(), &config).unwrap();
        assert_eq!(records[0].content, vec![3; len]);
    }
    let stream = Config { block: 1, mac: 5, ..config };
    assert_eq!(protected_len(100, &stream), 105);
}

#[test]
fn a_full_handshake_takes_two_round_trips_and_an_abbreviated_one_takes_one() {
    for (client, server, at, flights) in [
        // Hello; hello and certificate of 400; key of 128 and Finished; Finished.
        (Config::default(), Config::default(), 600, 4),
        (resuming(), Config::default(), 400, 2),
        (resuming(), Config { remembers: false, ..Config::default() }, 600, 4),
        (Config::default(), Config { class: Class::Anonymous, ..Config::default() }, 600, 4),
    ] {
        let mut duo = duo(client, server, &[(0, 50)]);
        let [near, far] = run(&mut duo, 0..0);
        assert_eq!((near["heard"], far["heard"]), (1.0, 1.0));
        assert_eq!(near["last_s"], f64::from(at) / 1e3);
        assert_eq!(duo.net.datagrams.len(), flights + 2, "{:?}", duo.net.datagrams);
        assert_eq!(near["wtls_resumed"], if flights == 2 { 1.0 } else { 0.0 });
    }
}

#[test]
fn flights_have_the_octets_of_their_messages() {
    let mut duo = duo(Config::default(), Config::default(), &[(0, 50)]);
    duo.run();
    let sizes: Vec<usize> = duo.net.datagrams.iter().map(|(_, octets)| octets.len()).collect();
    // Finished: 3 + 12 and a hash in four blocks; ChangeCipherSpec: one octet; each behind five of a record's header.
    let finish = (5 + 1) + (5 + 32);
    let hello = 5 + 3 + (1 + 16 + 1) + 2 + 6 + 2 + 9;
    let server = 5 + (3 + 1 + 16 + 9 + 6) + (3 + 2 + 400) + 3;
    assert_eq!(sizes, [hello, server, 5 + 3 + 2 + 128 + finish, finish, 5 + 64, 5 + 64]);
}

#[test]
fn whatever_datagram_of_a_handshake_is_lost_it_is_said_again() {
    for (client, flights) in [(Config::default(), 4), (resuming(), 2)] {
        for lost in 0..flights {
            let mut duo = duo(client.clone(), Config::default(), &[(0, 50)]);
            let [near, far] = run(&mut duo, lost..lost + 1);
            assert_eq!((near["heard"], far["heard"]), (1.0, 1.0), "{lost} of {flights}");
            assert_eq!(near["wtls_repeated"], 1.0);
            assert!(near["last_s"] >= 3.0);
        }
    }
    // The client's Finished went along with data that was lost: it goes along with what follows, too.
    let mut duo = duo(resuming(), Config::default(), &[(0, 50), (1_000, 60)]);
    let [near, far] = run(&mut duo, 2..3);
    assert_eq!((near["heard"], far["heard"]), (1.0, 1.0));
}

#[test]
fn a_gateway_that_never_answers_is_given_up() {
    let mut duo = duo(Config::default(), Config::default(), &[(0, 50)]);
    let [near, _] = run(&mut duo, 0..100);
    assert_eq!((near["wtls_failed"], near["wtls_lost"]), (1.0, 1.0));
    assert_eq!(duo.net.datagrams.len(), 5, "once and four times again");
}

#[test]
fn a_connection_that_was_idle_goes_on_with_its_session() {
    for (resumes, resumed) in [(Resumes::Later, 1.0), (Resumes::Never, 0.0)] {
        let config = Config { resumes, ..Config::default() };
        let mut duo = duo(config, Config::default(), &[(0, 50), (700_000, 50)]);
        let [near, far] = run(&mut duo, 0..0);
        assert_eq!((near["heard"], far["heard"]), (2.0, 2.0));
        assert_eq!((near["wtls_resumed"], far["wtls_resumed"]), (resumed, resumed));
    }
}

#[test]
fn a_client_whose_connection_was_forgotten_is_told_so_and_begins_anew() {
    let mut duo = duo(Config::default(), Config::default(), &[(0, 50), (2_000, 50), (3_000, 50)]);
    duo.run_until(Instant::ZERO + Duration::from_secs(1));
    // As many others as a server has connections at a time.
    let hello = super::connection::Connection::open(1, false).flight;
    for n in 0..4_096 {
        let remote = SocketAddr::from(([10, 0, 0, 9], 10_000 + n));
        duo.net.arrive(1, Datagram::Udp { local_port: 9203, remote, body: Body::Real(hello.clone()) });
    }
    let [near, far] = run(&mut duo, 0..0);
    assert_eq!((near["heard"], far["heard"]), (2.0, 2.0), "what met the alert is lost, and nothing after it");
    // One more round trip than in an open connection: the session goes on.
    assert_eq!((near["wtls_resumed"], near["last_s"]), (1.0, 3.4));
}

#[test]
fn what_waited_for_a_handshake_that_an_alert_ends_is_counted_as_lost() {
    let mut duo = duo(Config::default(), Config::default(), &[(0, 50)]);
    let alert = vec![0xC2, 0, 0, 0, 6, 3, 5, 0, 0, 0, 0];
    let remote = SocketAddr::new(SERVER, 9203);
    duo.net.arrive(0, Datagram::Udp { local_port: 49_200, remote, body: Body::Real(alert.into()) });
    let [near, far] = run(&mut duo, 0..0);
    assert_eq!((near["wtls_failed"], near["wtls_lost"], far["heard"]), (1.0, 1.0, 0.0));
}

#[test]
fn what_belongs_to_no_connection_is_answered_in_clear_unless_it_is_an_alert() {
    for (content, answer) in [
        (kind::DATA, &[0xC2, 0, 0, 0, 6, 3, 5, 0, 0, 0, 0][..]),
        (kind::HANDSHAKE, &[0xC2, 0, 0, 0, 6, 3, 5, 0, 0, 0, 0]),
        (kind::ALERT, &[]),
    ] {
        let mut duo = duo(Config::default(), Config::default(), &[]);
        let mut octets = Vec::new();
        protected(&mut octets, content, 7, &[1; 50], &Config::default());
        let remote = SocketAddr::from(([10, 0, 0, 9], 1_000));
        duo.net.arrive(1, Datagram::Udp { local_port: 9203, remote, body: Body::Real(octets.into()) });
        let [_, far] = run(&mut duo, 0..0);
        let said: Vec<u8> = duo.net.datagrams.iter().flat_map(|(_, octets)| octets.to_vec()).collect();
        assert_eq!((said.as_slice(), far["wtls_malformed"]), (answer, 1.0));
    }
}

#[test]
fn octets_of_strangers_open_nothing_and_break_nothing() {
    let mut duo = duo(Config::default(), Config::default(), &[]);
    let hello = super::connection::Connection::open(1, false).flight;
    let mut cases: Vec<Vec<u8>> = (0..hello.len()).map(|len| hello[..len].to_vec()).collect();
    cases.extend((0..=255u8).map(|first| [&[first], &hello[1..]].concat()));
    cases.extend((0..hello.len()).map(|at| {
        let mut octets = hello.to_vec();
        octets[at] ^= 0xFF;
        octets
    }));
    for (n, octets) in cases.into_iter().enumerate() {
        let remote = SocketAddr::new(CLIENT, 1_000 + n as u16);
        for _ in 0..2 {
            let body = Body::Real(octets.clone().into());
            let datagram = Datagram::Udp { local_port: 9203, remote, body };
            duo.net.arrive(1, datagram);
        }
    }
    let [_, far] = run(&mut duo, 0..0);
    assert_eq!(far["heard"], 0.0);
    assert!(far["wtls_malformed"] > 0.0);
}

#[test]
fn keys_that_make_no_sense_are_named() {
    let key = |config: Config| config.check().unwrap_err().path.join(".");
    assert_eq!(
        key(Config { certificate: airloom_base::units::Octets(2_000), ..Config::default() }),
        "wtls.certificate"
    );
    assert_eq!(key(Config { mac: 21, ..Config::default() }), "wtls.mac");
    assert_eq!(key(Config { block: 0, ..Config::default() }), "wtls.block");
    assert_eq!(key(Config { idle: Duration::ZERO, ..Config::default() }), "wtls.idle");
}

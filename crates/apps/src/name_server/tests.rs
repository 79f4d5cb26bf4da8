use airloom_base::service::WriteError;
use airloom_base::{Outbox, random::Fate};

use super::*;

/// A query as the resolver of glibc sends it, without EDNS: id 0x1234, recursion desired.
fn query(name: &str, kind: u16) -> Vec<u8> {
    let mut out = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        out.push(label.len() as u8);
        out.extend_from_slice(label.as_bytes());
    }
    out.extend_from_slice(&[0, (kind >> 8) as u8, kind as u8, 0, 1]);
    out
}

#[derive(Default)]
struct Net(Vec<Vec<u8>>);

impl Sockets for Net {
    fn connect(&mut self, _: &mut Cx, _: SocketAddr) -> SocketId {
        unreachable!("a name server opens no connection")
    }
    fn write(&mut self, _: &mut Cx, _: SocketId, _: Body) -> Result<usize, WriteError> {
        Err(WriteError::Closed)
    }
    fn read(&mut self, _: &mut Cx, _: SocketId, _: usize) -> Option<Body> {
        None
    }
    fn unacknowledged(&self, _: SocketId) -> u64 {
        0
    }
    fn finish(&mut self, _: &mut Cx, _: SocketId) {}
    fn reset(&mut self, _: &mut Cx, _: SocketId) {}
    fn send_datagram(&mut self, _: &mut Cx, datagram: Datagram) {
        if let Datagram::Udp { body, .. } = datagram {
            self.0.push(body.to_bytes().to_vec());
        }
    }
    fn flow(&self, _: SocketId) -> u32 {
        0
    }
}

struct Bench {
    server: NameServer,
    records: Outbox,
    net: Net,
}

impl Bench {
    fn new(config: Value) -> Bench {
        let config = airloom_base::config::read(&config).unwrap();
        let addresses = ["10.0.0.1", "fd00::1"].map(|a| a.parse().unwrap());
        let names = BTreeMap::from([("origin".to_owned(), addresses.to_vec())]);
        let server = NameServer::new(config, names, Fate::new(1, "loss"), Fate::new(1, "failure"));
        Bench { server, records: Outbox::default(), net: Net::default() }
    }

    /// What comes back, and when.
    fn ask(&mut self, octets: Vec<u8>) -> Option<(Vec<u8>, Instant)> {
        let (remote, body) = ("10.0.0.2:5353".parse().unwrap(), Body::Real(octets.into()));
        let cx = &mut Cx { now: Instant::ZERO, records: &mut self.records };
        self.server.handle_datagram(cx, &mut self.net, Datagram::Udp { local_port: 53, remote, body });
        let due = self.server.poll_timeout().unwrap_or(Instant::ZERO);
        let cx = &mut Cx { now: due, records: &mut self.records };
        self.server.handle_timeout(cx, &mut self.net);
        self.net.0.pop().map(|octets| (octets, due))
    }

    fn code(&mut self, name: &str, kind: u16) -> Option<u8> {
        self.ask(query(name, kind)).map(|(octets, _)| octets[3] & 15)
    }
}

#[test]
fn a_name_has_its_addresses_whatever_its_letters() {
    let mut bench = Bench::new(serde_json::json!({ "delay": "30ms", "ttl": "5s" }));
    let (answer, at) = bench.ask(query("OriGin", message::A)).unwrap();
    assert_eq!(at, Instant::ZERO + Duration::from_millis(30));
    let mut expected = query("OriGin", message::A);
    (expected[2], expected[3], expected[7]) = (0x85, 0x80, 1);
    expected.extend_from_slice(&[0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 10, 0, 0, 1]);
    assert_eq!(answer, expected);
    let (six, _) = bench.ask(query("origin", AAAA)).unwrap();
    assert_eq!(six[six.len() - 16..], [0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn what_is_not_known_is_said() {
    let mut bench = Bench::new(serde_json::json!({ "names": { "www.example.": ["192.0.2.1"] } }));
    assert_eq!(bench.code("nobody", message::A), Some(Code::NxDomain as u8));
    assert_eq!(bench.code("www.example", message::A), Some(Code::NoError as u8));
    let (mail, _) = bench.ask(query("origin", 15)).unwrap();
    assert_eq!((mail[3] & 15, mail[7]), (0, 0), "a name without a record of this type");
}

#[test]
fn queries_for_ipv6_hang_or_are_refused_alone() {
    for (aaaa, six) in [("hang", None), ("refuse", Some(5)), ("empty", Some(0)), ("answer", Some(0))] {
        let mut bench = Bench::new(serde_json::json!({ "aaaa": aaaa }));
        assert_eq!(bench.code("origin", AAAA), six, "{aaaa}");
        assert_eq!(bench.code("origin", message::A), Some(0));
    }
}

#[test]
fn losses_and_failures_have_their_shares() {
    let mut bench = Bench::new(serde_json::json!({ "loss": "20%", "failure": "10%" }));
    let codes: Vec<_> = (0..10_000).map(|_| bench.code("origin", message::A)).collect();
    let share = |wanted| codes.iter().filter(|code| **code == wanted).count() as f64 / 10_000.0;
    // Five standard deviations of a binomial share.
    assert!((share(None) - 0.2).abs() < 0.02, "{}", share(None));
    assert!((share(Some(2)) - 0.08).abs() < 0.014, "{}", share(Some(2)));
    assert_eq!(bench.server.counts.lost as f64, share(None) * 10_000.0);
}

#[test]
fn what_is_no_query_is_not_answered_and_nonsense_is_refused() {
    let mut bench = Bench::new(serde_json::json!({}));
    let mut answer = query("origin", message::A);
    answer[2] |= 0x80;
    assert_eq!(bench.ask(answer), None);
    assert_eq!(bench.ask(vec![0; 11]), None);
    let mut update = query("origin", message::A);
    update[2] = 5 << 3;
    assert_eq!(bench.ask(update).unwrap().0[3], Code::NotImp as u8);
    let whole = query("origin", message::A);
    for end in 12..whole.len() {
        assert_eq!(bench.ask(whole[..end].to_vec()).unwrap().0[3], Code::FormErr as u8);
    }
    let mut pointer = whole;
    pointer[12] = 0xC0;
    assert_eq!(bench.ask(pointer).unwrap().0[3], Code::FormErr as u8);
}

#[test]
fn no_octets_make_it_panic_and_no_answer_is_much_longer_than_its_question() {
    use airloom_base::random::Stream;
    let mut bench = Bench::new(serde_json::json!({}));
    let mut random = Stream::new(1, "octets");
    for n in 0..40_000 {
        let mut octets = query("a.origin.example", message::A);
        match n % 3 {
            0 => octets = (0..random.below(60)).map(|_| random.bits() as u8).collect(),
            1 => octets.truncate(random.below(40) as usize),
            _ => {
                let at = random.below(octets.len() as u64) as usize;
                octets[at] = random.bits() as u8;
            }
        }
        let asked = octets.len();
        if let Some((answer, _)) = bench.ask(octets) {
            assert!(answer.len() <= asked.max(12) + 2 * 28, "{asked}");
        }
    }
}

use airloom_base::random::Fate;
use airloom_testkit::AppBench;

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

fn on_bench(config: Value) -> AppBench<NameServer> {
    let config = airloom_base::config::read(&config).unwrap();
    let addresses = ["10.0.0.1", "fd00::1"].map(|a| a.parse().unwrap());
    let names = BTreeMap::from([("origin".to_owned(), addresses.to_vec())]);
    AppBench::new(NameServer::new(config, names, Fate::new(1, "loss"), Fate::new(1, "failure")))
}

/// What comes back, at the time of the bench.
fn ask(bench: &mut AppBench<NameServer>, octets: Vec<u8>) -> Option<Vec<u8>> {
    let (remote, body) = ("10.0.0.2:5353".parse().unwrap(), Body::Real(octets.into()));
    let query = Datagram::Udp { local_port: 53, remote, body };
    bench.call(|server, cx, net| server.handle_datagram(cx, net, query));
    bench.run_until(bench.app.poll_timeout().unwrap_or(bench.now));
    match bench.net.datagrams.pop()? {
        Datagram::Udp { body, .. } => Some(body.to_bytes().to_vec()),
        Datagram::Echo { .. } => None,
    }
}

fn code(bench: &mut AppBench<NameServer>, name: &str, kind: u16) -> Option<u8> {
    ask(bench, query(name, kind)).map(|octets| octets[3] & 15)
}

#[test]
fn a_name_has_its_addresses_whatever_its_letters() {
    let mut bench = on_bench(serde_json::json!({ "delay": "30ms", "ttl": "5s" }));
    let answer = ask(&mut bench, query("OriGin", message::A)).unwrap();
    assert_eq!(bench.now, Instant::ZERO + Duration::from_millis(30));
    let mut expected = query("OriGin", message::A);
    (expected[2], expected[3], expected[7]) = (0x85, 0x80, 1);
    expected.extend_from_slice(&[0xC0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 10, 0, 0, 1]);
    assert_eq!(answer, expected);
    let six = ask(&mut bench, query("origin", AAAA)).unwrap();
    assert_eq!(six[six.len() - 16..], [0xFD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
}

#[test]
fn what_is_not_known_is_said() {
    let mut bench = on_bench(serde_json::json!({ "names": { "www.example.": ["192.0.2.1"] } }));
    assert_eq!(code(&mut bench, "nobody", message::A), Some(Code::NxDomain as u8));
    assert_eq!(code(&mut bench, "www.example", message::A), Some(Code::NoError as u8));
    let mail = ask(&mut bench, query("origin", 15)).unwrap();
    assert_eq!((mail[3] & 15, mail[7]), (0, 0), "a name without a record of this type");
}

#[test]
fn queries_for_ipv6_hang_or_are_refused_alone() {
    for (aaaa, six) in [("hang", None), ("refuse", Some(5)), ("empty", Some(0)), ("answer", Some(0))] {
        let mut bench = on_bench(serde_json::json!({ "aaaa": aaaa }));
        assert_eq!(code(&mut bench, "origin", AAAA), six, "{aaaa}");
        assert_eq!(code(&mut bench, "origin", message::A), Some(0));
    }
}

#[test]
fn losses_and_failures_have_their_shares() {
    let mut bench = on_bench(serde_json::json!({ "loss": "20%", "failure": "10%" }));
    let codes: Vec<_> = (0..10_000).map(|_| code(&mut bench, "origin", message::A)).collect();
    let share = |wanted| codes.iter().filter(|code| **code == wanted).count() as f64 / 10_000.0;
    // Five standard deviations of a binomial share.
    assert!((share(None) - 0.2).abs() < 0.02, "{}", share(None));
    assert!((share(Some(2)) - 0.08).abs() < 0.014, "{}", share(Some(2)));
    assert_eq!(bench.app.counts.lost as f64, share(None) * 10_000.0);
}

#[test]
fn what_is_no_query_is_not_answered_and_nonsense_is_refused() {
    let mut bench = on_bench(serde_json::json!({}));
    let mut answer = query("origin", message::A);
    answer[2] |= 0x80;
    assert_eq!(ask(&mut bench, answer), None);
    assert_eq!(ask(&mut bench, vec![0; 11]), None);
    let mut update = query("origin", message::A);
    update[2] = 5 << 3;
    assert_eq!(ask(&mut bench, update).unwrap()[3], Code::NotImp as u8);
    let whole = query("origin", message::A);
    for end in 12..whole.len() {
        assert_eq!(ask(&mut bench, whole[..end].to_vec()).unwrap()[3], Code::FormErr as u8);
    }
    let mut pointer = whole;
    pointer[12] = 0xC0;
    assert_eq!(ask(&mut bench, pointer).unwrap()[3], Code::FormErr as u8);
}

#[test]
fn rfc_1035_4_1_1_an_answer_has_the_kind_of_its_query_and_says_whether_recursion_was_desired() {
    let mut bench = on_bench(serde_json::json!({}));
    for (flags, code) in [(5 << 3, Code::NotImp), ((4 << 3) | 1, Code::NotImp), (1, Code::FormErr)] {
        let mut asked = query("origin", message::A);
        asked[2] = flags;
        // A second question is too many, but for a kind that is not served at all.
        asked[5] = 2;
        let answer = ask(&mut bench, asked).unwrap();
        assert_eq!((answer[2], answer[3]), (0x80 | flags, code as u8));
    }
}

#[test]
fn rfc_1035_4_2_1_an_answer_of_more_than_512_octets_is_cut_and_says_so() {
    let all: Vec<String> = (1..=40).map(|n| format!("192.0.2.{n}")).collect();
    let six: Vec<String> = (1..=18).map(|n| format!("2001:db8::{n}")).collect();
    for (kind, addresses, fit) in [(message::A, &all, 30), (AAAA, &six, 17)] {
        for count in [fit, addresses.len()] {
            let names = serde_json::json!({ "names": { "www.example": addresses[..count] } });
            let answer = ask(&mut on_bench(names), query("www.example", kind)).unwrap();
            assert_eq!((usize::from(answer[7]), answer[2] & 2 != 0), (fit, count > fit), "{kind} {count}");
            assert!(answer.len() <= 512);
        }
    }
}

#[test]
fn no_octets_make_it_panic_and_no_answer_is_much_longer_than_its_question() {
    use airloom_base::random::Stream;
    let mut bench = on_bench(serde_json::json!({}));
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
        if let Some(answer) = ask(&mut bench, octets) {
            assert!(answer.len() <= asked.max(12) + 2 * 28, "{asked}");
        }
    }
}

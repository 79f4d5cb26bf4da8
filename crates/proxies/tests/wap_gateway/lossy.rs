//! Over an air that loses, repeats and reorders.

use airloom_base::Duration;
use airloom_base::random::Stream;
use airloom_proxies::wap_gateway::{Config, FetchRequest};
use airloom_transports::wsp::wire::Method;
use bytes::Bytes;

use crate::pair::{DECK, Fate, Pair, WML, WMLC, answer, with_type};

/// One datagram in twenty is lost, one in twenty comes twice, one in twenty comes up to 200 ms late.
fn rough(seed: u64) -> Fate {
    let mut dice = Stream::new(seed, "air");
    Box::new(move |_| {
        let late = if dice.chance(0.05) { Duration::from_millis(dice.below(200)) } else { Duration::ZERO };
        match (dice.chance(0.05), dice.chance(0.05)) {
            (true, _) => Vec::new(),
            (false, true) => vec![late, Duration::from_millis(dice.below(300))],
            (false, false) => vec![late],
        }
    })
}

fn body(len: usize) -> Bytes {
    (0..len).map(|n| (n % 251) as u8).collect::<Vec<u8>>().into()
}

#[test]
fn a_hundred_kilobytes_arrive_whole_in_both_directions() {
    for seed in 0..20 {
        let mut pair = Pair::new(Config::default(), |request: &FetchRequest| {
            assert!(request.body.is_empty() || request.body == body(100_000), "what was sent arrived");
            answer(200, &[("Content-Type", "image/gif")], body(100_000))
        });
        pair.fate = rough(seed);
        pair.connect(0, &[("Accept", "*/*")]);
        let reply = pair.get("http://origin/large");
        assert_eq!((reply.status, reply.body == body(100_000)), (200, true), "seed {seed}");
        let reply = pair.ask(Method::Post, "http://origin/", with_type("text/plain", &[]), body(100_000));
        assert_eq!((reply.status, reply.body == body(100_000)), (200, true), "seed {seed}");
        let posts = pair.asked.iter().filter(|request| request.method.name() == "POST").count();
        assert_eq!((posts, pair.asked.len()), (1, 2), "seed {seed}");
    }
}

#[test]
fn every_method_is_answered_once() {
    for seed in 0..40 {
        let mut pair = Pair::new(Config::default(), |request: &FetchRequest| {
            let body = if request.method.name() == "HEAD" { "" } else { DECK };
            answer(200, &[("Content-Type", WML)], body)
        });
        pair.fate = rough(100 + seed);
        pair.connect(0, &[("Accept", WMLC)]);
        for method in [Method::Get, Method::Head, Method::Post, Method::Put, Method::Delete, Method::Options]
        {
            let (headers, data) = match method.has_body() {
                true => (with_type("text/plain", &[]), Bytes::from_static(b"data")),
                false => (Bytes::new(), Bytes::new()),
            };
            let reply = pair.ask(method, "http://origin/", headers, data);
            assert_eq!((reply.status, reply.content_type.as_str()), (200, WMLC), "{method:?}, seed {seed}");
        }
        assert_eq!(pair.ask(Method::Trace, "http://origin/", Bytes::new(), Bytes::new()).status, 501);
        assert_eq!(pair.asked.len(), 6, "seed {seed}");
        pair.run(Duration::from_secs(120), |_| false);
        assert_eq!((pair.gateway.outstanding(), pair.gateway.held()), (0, 0), "seed {seed}");
    }
}

//! Origins that are unreachable, slow, or lie.

use airloom_base::Duration;
use airloom_base::units::Octets;
use airloom_proxies::wap_gateway::{Config, FetchError, Fetched};
use airloom_transports::wsp::wire::Method;
use bytes::Bytes;

use crate::pair::{DECK, Pair, WML, WMLC, answer, fields, in_turn};

type Answer = Vec<(Duration, Fetched)>;

/// The status that a client gets when the origin answers so, and that nothing is left behind.
fn status(config: Config, answer: Answer) -> u16 {
    let mut pair = Pair::open(config, in_turn(vec![answer]));
    let reply = pair.get("http://origin/");
    pair.run(Duration::from_secs(60), |_| false);
    assert_eq!((pair.gateway.held(), pair.gateway.outstanding()), (0, 0));
    reply.status
}

#[test]
fn each_failure_has_its_status() {
    for (why, expected) in [
        (FetchError::Forbidden, 403),
        (FetchError::Unresolved, 502),
        (FetchError::Unreachable, 502),
        (FetchError::Unsupported, 501),
        (FetchError::TimedOut, 504),
        (FetchError::Broken, 502),
        (FetchError::Busy, 503),
    ] {
        assert_eq!(status(Config::default(), Pair::failing(why)), expected, "{why:?}");
    }
    let half =
        vec![answer(200, &[], "half").remove(0), (Duration::ZERO, Fetched::Failed(FetchError::Broken))];
    assert_eq!(status(Config::default(), half), 502);
}

#[test]
fn bodies_of_requests_count_until_they_are_answered() {
    let config = Config { memory: Octets(10_000), ..Config::default() };
    let mut pair = Pair::open(config, |request| match request.url.path() {
        "/away" => answer(303, &[("Location", "/silent")], ""),
        _ => Vec::new(),
    });
    let mut post = |path: &str| {
        let headers = crate::pair::with_type("text/plain", &[]);
        pair.begin(Method::Post, &format!("http://origin{path}"), headers, vec![b'x'; 6_000].into())
    };
    let [first, second] = [0; 2].map(|_| post("/silent"));
    assert_eq!(pair.wait_for(second).status, 503);
    pair.run(Duration::from_secs(1), |_| false);
    assert_eq!(pair.gateway.held(), 6_000);
    assert_eq!(pair.wait_for(first).status, 504);
    pair.run(Duration::from_secs(10), |_| false);
    assert_eq!(pair.gateway.held(), 0);
    // Where the origin sends it elsewhere without the body, that is gone.
    let headers = crate::pair::with_type("text/plain", &[]);
    let moved = pair.begin(Method::Post, "http://origin/away", headers, vec![b'x'; 6_000].into());
    pair.run(Duration::from_secs(10), |_| false);
    assert_eq!((pair.gateway.held(), pair.gateway.outstanding()), (0, 1));
    assert_eq!(pair.wait_for(moved).status, 504);
}

#[test]
fn the_report_says_why_the_gateway_answered_itself() {
    for (answer, why) in [
        (Pair::failing(FetchError::Unresolved), "The origin's name has no address"),
        (answer(200, &[("Content-Length", "9")], "short"), "The origin's answer contradicts itself"),
        (Vec::new(), "The origin takes too long"),
    ] {
        let mut pair = Pair::open(Config::default(), in_turn(vec![answer]));
        pair.get("http://origin/");
        assert_eq!(pair.gateway.poll_report().unwrap().why.as_deref(), Some(why));
    }
}

#[test]
fn an_origin_that_is_silent_or_never_ends_is_given_up_in_time() {
    let head = Fetched::Head { status: 200, fields: fields(&[]) };
    let drip = (0..200).map(|n| (Duration::from_secs(n), Fetched::Chunk(Bytes::from_static(b"x"))));
    for answer in [Vec::new(), std::iter::once((Duration::ZERO, head)).chain(drip).collect()] {
        let mut pair = Pair::open(Config::default(), in_turn(vec![answer]));
        let began = pair.now;
        assert_eq!(pair.get("http://origin/").status, 504);
        assert!(pair.now.since(began) < Duration::from_secs(31));
        assert_eq!(pair.cancelled.len(), 1);
    }
}

#[test]
fn an_answer_that_contradicts_itself_is_a_bad_gateway() {
    let config = Config::default;
    assert_eq!(status(config(), answer(200, &[("Content-Length", "9")], "short")), 502);
    assert_eq!(status(config(), answer(200, &[("Content-Length", "2")], "long")), 502);
    assert_eq!(status(config(), answer(200, &[("Content-Encoding", "gzip")], "no gzip")), 502);
    assert_eq!(status(config(), answer(200, &[("Content-Encoding", "br")], "x")), 502);
    assert_eq!(status(config(), vec![(Duration::ZERO, Fetched::End)]), 502);
    assert_eq!(status(config(), vec![(Duration::ZERO, Fetched::Chunk(Bytes::from_static(b"x")))]), 502);
    let many: Vec<(String, String)> = (0..1_000).map(|n| (format!("X-{n}"), "v".repeat(100))).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(status(config(), answer(200, &many, "x")), 502);
}

#[test]
fn an_endless_body_and_a_bomb_end_at_the_limit() {
    let head = |list| (Duration::ZERO, Fetched::Head { status: 200, fields: fields(list) });
    let chunk =
        |n: u64, octets: &[u8]| (Duration::from_micros(n), Fetched::Chunk(Bytes::copy_from_slice(octets)));
    let endless = std::iter::once(head(&[])).chain((0..2_000).map(|n| chunk(n, &[b'x'; 1_000]))).collect();
    assert_eq!(status(Config::default(), endless), 502);
    let zeros = vec![0; 50_000_000];
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut bomb, &zeros).unwrap();
    let bomb = bomb.finish().unwrap();
    let coded = head(&[("Content-Encoding", "gzip")]);
    let bomb = std::iter::once(coded).chain(bomb.chunks(1_000).enumerate().map(|(n, c)| chunk(n as u64, c)));
    assert_eq!(status(Config::default(), bomb.collect()), 502);
}

#[test]
fn text_that_is_no_deck_goes_to_clients_that_take_text() {
    let bad = "<wml><card><p>open";
    let origin = || move |_: &_| answer(200, &[("Content-Type", WML)], bad);
    let mut pair = Pair::open(Config::default(), origin());
    let reply = pair.get("http://origin/");
    assert_eq!((reply.status, reply.content_type.as_str(), &reply.body[..]), (200, WML, bad.as_bytes()));
    let mut pair = Pair::new(Config::default(), origin());
    pair.connect(0, &[("Accept", WMLC)]);
    assert_eq!(pair.get("http://origin/").status, 502);
    let mut pair = Pair::open(Config { smart_errors: true, ..Config::default() }, origin());
    let reply = pair.get("http://origin/");
    assert!(reply.status == 200 && reply.deck().contains("not well-formed"));
}

#[test]
fn what_the_client_does_not_take_is_refused() {
    let mut pair =
        Pair::new(Config::default(), |_| answer(200, &[("Content-Type", "image/gif")], vec![0; 2_000]));
    pair.connect(1_400, &[("Accept", "*/*")]);
    assert_eq!(pair.get("http://origin/").status, 502);
    pair.client.disconnect(pair.now);
    pair.connect(0, &[("Accept", WMLC)]);
    assert_eq!(pair.get("http://origin/").status, 406);
    // More than WTP can number.
    let mut pair = Pair::open(Config::default(), |_| answer(200, &[], vec![0; 400_000]));
    assert_eq!(pair.get("http://origin/").status, 502);
}

#[test]
fn too_much_at_a_time_is_refused_and_the_rest_goes_on() {
    let slow = |_: &_| {
        answer(200, &[], "x").into_iter().map(|(_, f)| (Duration::from_secs(1), f)).collect::<Answer>()
    };
    let mut pair = Pair::open(Config { max_fetches: 2, ..Config::default() }, slow);
    let all = [0; 4].map(|_| pair.begin(Method::Get, "http://origin/", Bytes::new(), Bytes::new()));
    let mut statuses = all.map(|request| pair.wait_for(request).status);
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 503, 503]);

    let config = Config { memory: Octets(5_000), ..Config::default() };
    assert_eq!(status(config, answer(200, &[], vec![0; 6_000])), 503);
}

#[test]
fn a_client_that_loses_interest_takes_the_order_back() {
    let mut pair = Pair::open(Config::default(), |_| Vec::new());
    let request = pair.begin(Method::Get, "http://origin/", Bytes::new(), Bytes::new());
    pair.run(Duration::from_secs(1), |_| false);
    pair.client.abort(pair.now, request);
    pair.run(Duration::from_secs(1), |_| false);
    assert_eq!(
        (pair.cancelled.len(), pair.gateway.outstanding(), pair.gateway.counters().abandoned),
        (1, 0, 1)
    );
    pair.begin(Method::Get, "http://origin/", Bytes::new(), Bytes::new());
    pair.run(Duration::from_secs(1), |_| false);
    pair.client.disconnect(pair.now);
    pair.run(Duration::from_secs(1), |_| false);
    assert_eq!((pair.cancelled.len(), pair.gateway.sessions(), pair.gateway.held()), (2, 0, 0));
}

#[test]
fn an_idle_session_ends_and_a_stopped_gateway_tells_its_clients() {
    let origin = |_: &_| answer(200, &[("Content-Type", WML)], DECK);
    let mut pair = Pair::open(Config { idle: Duration::from_secs(100), ..Config::default() }, origin);
    pair.run(Duration::from_secs(60), |_| false);
    pair.get("http://origin/");
    pair.run(Duration::from_secs(60), |_| false);
    assert_eq!(pair.gateway.sessions(), 1);
    pair.run(Duration::from_secs(60), |_| false);
    assert_eq!(pair.gateway.sessions(), 0);
    assert_eq!(pair.client.state(), airloom_transports::wsp::client::State::Null);
    let mut pair = Pair::open(Config::default(), origin);
    pair.gateway.shut_down(pair.now);
    pair.run(Duration::from_secs(1), |_| false);
    assert_eq!(pair.client.state(), airloom_transports::wsp::client::State::Null);
}

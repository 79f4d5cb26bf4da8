//! What a client asks is asked of the origin, and what comes back is in the client's form.

use airloom_base::Duration;
use airloom_proxies::wap_gateway::{Config, FetchError, Processing, Treatment};
use airloom_transports::wsp::wire::{Method, Pdu};
use bytes::Bytes;

use crate::pair::{DECK, Pair, Reply, WML, WMLC, answer, compact, in_turn, with_type};

#[test]
fn a_deck_arrives_compiled() {
    let mut pair =
        Pair::open(Config::default(), |_| answer(200, &[("Content-Type", WML), ("ETag", "\"1\"")], DECK));
    let reply = pair.get("http://origin/deck.wml");
    assert_eq!((reply.status, reply.content_type.as_str()), (200, WMLC));
    assert!(reply.deck().contains("Hello, phone"));
    assert_eq!(reply.header("etag"), Some("W/\"1\""));
    let report = pair.gateway.poll_report().unwrap();
    assert_eq!(
        (report.uri.as_str(), report.status, report.treatment),
        ("http://origin/deck.wml", 200, Treatment::Compiled)
    );
    assert_eq!((report.origin_octets, report.why), (DECK.len() as u64, None));
    pair.run(Duration::from_secs(10), |_| false);
    assert_eq!((pair.gateway.held(), pair.gateway.outstanding()), (0, 0));
}

#[test]
fn every_method_reaches_the_origin_but_trace() {
    let mut pair = Pair::open(Config::default(), |request| {
        let body = if request.method.name() == "HEAD" { "" } else { DECK };
        answer(200, &[("Content-Type", WML)], body)
    });
    for method in [Method::Get, Method::Head, Method::Post, Method::Put, Method::Delete, Method::Options] {
        let (headers, data) = match method.has_body() {
            true => (with_type("text/plain", &[]), Bytes::from_static(b"data")),
            false => (Bytes::new(), Bytes::new()),
        };
        let reply = pair.ask(method, "http://origin/", headers, data.clone());
        assert_eq!((reply.status, reply.content_type.as_str()), (200, WMLC), "{method:?}");
        assert_eq!(reply.body.is_empty(), method == Method::Head);
        let asked = pair.asked.last().unwrap();
        assert_eq!((Some(asked.method.name()), &asked.body), (method.name(), &data));
    }
    assert_eq!(pair.ask(Method::Trace, "http://origin/", Bytes::new(), Bytes::new()).status, 501);
    assert_eq!(pair.asked.len(), 6);
}

#[test]
fn options_go_as_far_as_they_are_told_to() {
    let mut pair = Pair::open(Config::default(), |_| answer(200, &[("Content-Type", WML)], DECK));
    let status = |pair: &mut Pair, most: &str| {
        let headers = compact(&[("Max-Forwards", most)]);
        pair.ask(Method::Options, "http://origin/", headers, Bytes::new()).status
    };
    assert_eq!((status(&mut pair, "0"), status(&mut pair, "many")), (200, 400));
    assert!(pair.asked.is_empty());
    assert_eq!(status(&mut pair, "2"), 200);
    assert_eq!(pair.asked[0].fields.first("max-forwards"), Some(&b"1"[..]));
}

#[test]
fn pages_become_decks_and_their_parts_are_kept() {
    let page = format!("<title>News</title><p>{}<a href=\"next\">on</a>", "many words ".repeat(400));
    let mut pair =
        Pair::new(Config::default(), move |_| answer(200, &[("Content-Type", "text/html")], page.clone()));
    pair.connect(1_400, &[("Accept", WMLC)]);
    let mut address = "http://origin/a/news.html?x=1".to_owned();
    let (mut words, mut parts) = (0, 0);
    loop {
        let reply = pair.get(&address);
        assert_eq!((reply.status, reply.content_type.as_str()), (200, WMLC));
        let deck = reply.deck();
        (words, parts) = (words + deck.matches("many").count(), parts + 1);
        let Some((_, link)) = deck.split_once("href=\"/a/news.html?x=1&amp;airloom-deck=") else { break };
        let name = link.split('"').next().unwrap();
        address = format!("http://origin/a/news.html?x=1&airloom-deck={name}");
    }
    assert!(parts > 3, "{parts}");
    assert_eq!((words, pair.asked.len()), (400, 1));
    assert_eq!(pair.get("http://origin/a/news.html?airloom-deck=9.9").status, 410);
}

#[test]
fn redirections_are_followed_but_not_for_ever() {
    let to = |location: &str| answer(302, &[("Location", location), ("Set-Cookie", "way=1")], "");
    let deck = || answer(200, &[("Content-Type", WML)], DECK);
    let mut pair = Pair::open(Config::default(), in_turn(vec![to("/b"), to("http://other/c"), deck()]));
    let reply =
        pair.ask(Method::Post, "http://origin/a", with_type("text/plain", &[]), Bytes::from_static(b"x"));
    assert_eq!((reply.status, reply.header("content-location")), (200, Some("http://other/c")));
    let asked: Vec<_> = pair.asked.iter().map(|r| (r.method.name(), r.url.as_str())).collect();
    assert_eq!(asked, [("POST", "http://origin/a"), ("GET", "http://origin/b"), ("GET", "http://other/c")]);
    let cookies: Vec<_> = pair.asked.iter().map(|r| r.fields.first("cookie").is_some()).collect();
    assert_eq!(cookies, [false, true, false]);

    let mut pair = Pair::open(Config::default(), move |_| to("/again"));
    let reply = pair.get("http://origin/");
    assert_eq!((reply.status, pair.asked.len()), (302, 6));
}

#[test]
fn cookies_are_kept_for_the_session() {
    let origin = |_: &_| answer(200, &[("Content-Type", WML), ("Set-Cookie", "id=7; Path=/")], DECK);
    let mut pair = Pair::open(Config::default(), origin);
    assert_eq!(pair.get("http://origin/").header("set-cookie"), None);
    pair.get("http://origin/x");
    assert_eq!(pair.asked[1].fields.first("cookie"), Some(&b"id=7"[..]));
    pair.client.disconnect(pair.now);
    pair.run(Duration::from_secs(1), |_| false);
    assert_eq!(pair.gateway.sessions(), 0);
    pair.connect(0, &[]);
    pair.get("http://origin/y");
    assert_eq!(pair.asked[2].fields.first("cookie"), None);
}

#[test]
fn what_is_fresh_is_not_asked_again() {
    let origin = |_: &_| answer(200, &[("Content-Type", WML), ("Cache-Control", "max-age=60")], DECK);
    let mut pair = Pair::open(with_a_cache(), origin);
    assert_eq!(pair.get("http://origin/").header("age"), None);
    pair.run(Duration::from_secs(10), |_| false);
    assert_eq!(pair.get("http://origin/").header("age"), Some("10"));
    let reload = compact(&[("Cache-Control", "no-cache")]);
    pair.ask(Method::Get, "http://origin/", reload, Bytes::new());
    assert_eq!((pair.asked.len(), pair.gateway.counters().cache_hits), (2, 1));
}

#[test]
fn what_comes_from_the_cache_comes_from_no_origin_and_takes_as_long_to_make() {
    let origin = |_: &_| answer(200, &[("Content-Type", WML), ("Cache-Control", "max-age=60")], DECK);
    let processing = Processing { per_octet: Duration::from_millis(1), ..Processing::default() };
    let mut pair = Pair::open(Config { processing, ..with_a_cache() }, origin);
    let [fresh, kept] = [0; 2].map(|_| {
        let began = pair.now;
        pair.get("http://origin/");
        (pair.now.since(began), pair.gateway.poll_report().unwrap().origin_octets)
    });
    assert_eq!((kept.0, fresh.1, kept.1), (fresh.0, DECK.len() as u64, 0));
    assert_eq!(pair.gateway.counters().origin_octets, DECK.len() as u64);
}

fn with_a_cache() -> Config {
    Config { cache: Some(airloom_base::units::Octets(10_000)), ..Config::default() }
}

#[test]
fn what_was_made_for_somebodys_cookies_is_given_to_nobody_else() {
    let origin = |request: &airloom_proxies::wap_gateway::FetchRequest| {
        let list: &[(&str, &str)] = match request.url.path() {
            "/login" => &[("Content-Type", WML), ("Set-Cookie", "id=7; Path=/")],
            _ => &[("Content-Type", WML), ("Cache-Control", "max-age=60")],
        };
        answer(200, list, DECK)
    };
    let mut pair = Pair::open(with_a_cache(), origin);
    // A client may keep its cookies itself.
    let own = compact(&[("Cookie", "id=8")]);
    pair.ask(Method::Get, "http://origin/own", own, Bytes::new());
    pair.get("http://origin/login");
    pair.get("http://origin/account");
    pair.client.disconnect(pair.now);
    pair.run(Duration::from_secs(1), |_| false);
    pair.connect(0, &[]);
    pair.get("http://origin/account");
    pair.get("http://origin/own");
    assert_eq!((pair.asked.len(), pair.gateway.counters().cache_hits), (5, 0));
    pair.get("http://origin/account");
    assert_eq!(pair.gateway.counters().cache_hits, 1, "what was asked for without any is for all");
}

#[test]
fn what_was_changed_or_asked_for_anew_is_kept_no_longer() {
    let origin = |_: &_| answer(200, &[("Content-Type", WML), ("Cache-Control", "max-age=60")], DECK);
    let mut pair = Pair::open(with_a_cache(), origin);
    let reload = compact(&[("Cache-Control", "no-cache")]);
    let form = with_type("text/plain", &[]);
    for (method, headers) in [
        (Method::Get, reload),
        (Method::Post, form.clone()),
        (Method::Put, form),
        (Method::Delete, Bytes::new()),
    ] {
        pair.get("http://origin/");
        let before = pair.asked.len();
        pair.ask(method, "http://origin/", headers, Bytes::new());
        pair.get("http://origin/");
        assert_eq!(pair.asked.len(), before + 2, "{method:?}");
    }
    // What failed has changed nothing.
    let failing = |request: &airloom_proxies::wap_gateway::FetchRequest| {
        let status = if request.method.name() == "GET" { 200 } else { 500 };
        answer(status, &[("Content-Type", WML), ("Cache-Control", "max-age=60")], DECK)
    };
    let mut pair = Pair::open(with_a_cache(), failing);
    pair.get("http://origin/");
    pair.ask(Method::Delete, "http://origin/", Bytes::new(), Bytes::new());
    pair.get("http://origin/");
    assert_eq!((pair.asked.len(), pair.gateway.counters().cache_hits), (2, 1));
}

#[test]
fn errors_become_decks_if_that_is_wanted() {
    let origin = |_: &_| Pair::failing(FetchError::Unreachable);
    let mut pair = Pair::open(Config { smart_errors: true, ..Config::default() }, origin);
    let reply = pair.get("http://origin/");
    assert_eq!((reply.status, reply.content_type.as_str()), (200, WMLC));
    assert!(reply.deck().contains("Error 502"));
    assert_eq!(Pair::open(Config::default(), origin).get("http://origin/").status, 502);
}

#[test]
fn the_gateways_own_time_is_spent_on_one_reply_after_the_other() {
    let (fixed, per_octet) = (Duration::from_millis(500), Duration::from_millis(1));
    let processing = Processing { fixed, per_octet, ..Processing::default() };
    let mut pair = Pair::open(Config { processing, ..Config::default() }, |_| {
        answer(200, &[("Content-Type", "text/plain")], vec![b'x'; 100])
    });
    let began = pair.now;
    let both = [0; 2].map(|_| pair.begin(Method::Get, "http://origin/", Bytes::new(), Bytes::new()));
    let times = both.map(|request| {
        pair.wait_for(request);
        pair.now.since(began).as_millis()
    });
    assert_eq!(times, [700, 1300]);
}

#[test]
fn a_document_takes_its_time_to_be_encoded_and_what_passes_as_it_is_takes_none() {
    const DECK: &str = "<wml><card><p>Hello again, hello again</p></card></wml>";
    let (encoding, encoding_per_octet) = (Duration::from_millis(130), Duration::from_millis(1));
    let processing = Processing { encoding, encoding_per_octet, ..Processing::default() };
    let took = |content_type: &'static str, body: &'static str, accept: &str| {
        let mut pair = Pair::new(Config { processing, ..Config::default() }, move |_| {
            answer(200, &[("Content-Type", content_type)], body)
        });
        pair.connect(0, &[("Accept", accept)]);
        let began = pair.now;
        pair.get("http://origin/");
        pair.now.since(began).as_millis()
    };
    let plain = took("text/plain", DECK, "*/*");
    let encoded = plain + 130 + u64::try_from(DECK.len()).unwrap();
    assert_eq!(took(WML, DECK, "*/*"), encoded);
    assert_eq!(took("text/html", DECK, "*/*"), encoded);
    // A client that takes the text gets the text.
    assert_eq!(took(WML, DECK, WML), plain);
}

#[test]
fn without_a_string_table_all_text_of_a_deck_stands_in_place() {
    let deck = format!("<wml><card><p>{}</p></card></wml>", "a line of some words<br/>".repeat(50));
    let octets = |string_table: bool| {
        let body = deck.clone().into_bytes();
        let mut pair = Pair::open(Config { string_table, ..Config::default() }, move |_| {
            answer(200, &[("Content-Type", WML)], body.clone())
        });
        let reply = pair.get("http://origin/");
        assert!(reply.deck().contains("a line of some words"));
        reply.body.len()
    };
    // Each line: inline string, terminator, BR; and once in the table against a reference of two octets.
    assert!(octets(false) >= 50 * (20 + 3));
    assert!(octets(true) < 300);
}

#[test]
fn a_request_without_a_session_is_answered_if_the_answer_is_small_or_the_client_known() {
    let origin = |request: &airloom_proxies::wap_gateway::FetchRequest| {
        let body = if request.url.path() == "/large" { vec![b'x'; 1_000] } else { vec![b'x'; 10] };
        answer(200, &[("Content-Type", "text/plain")], body)
    };
    let mut pair = Pair::new(Config { amplification: 3, ..Config::default() }, origin);
    let ask = |pair: &mut Pair, tid, path: &str| {
        let uri = Bytes::from(format!("http://origin{path}"));
        pair.unit(tid, &Pdu::Get { method: Method::Get, uri, headers: Bytes::new() });
        pair.run(Duration::from_secs(2), |_| false);
        let unit = pair.units.pop().unwrap();
        assert_eq!(unit[0], tid);
        match Pdu::parse(&unit.slice(1..)).unwrap() {
            Pdu::Reply { status, headers, data } => Reply::read(status, &headers, &data),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ask(&mut pair, 1, "/small").body.len(), 10);
    assert_eq!(ask(&mut pair, 2, "/large").status, 413);
    pair.connect(0, &[]);
    assert_eq!(ask(&mut pair, 3, "/large").body.len(), 1_000);
}

//! The proxy between octets: what a client says, what servers say, and what each of them hears.

use airloom_base::{App, CloseReason, SocketEvent, SocketId};
use airloom_content::http::message::Fields;
use airloom_testkit::{AppBench, cases};
use proptest::prelude::*;

use super::HttpCache;
use super::config::{Config, Mode};
use super::target::Target;

fn config() -> Config {
    Config { mode: Mode::Addressed, ..Config::default() }
}

fn on_bench(config: Config) -> AppBench<HttpCache> {
    let names = [("a", "10.0.0.1"), ("b", "10.0.0.2")];
    let names = names.map(|(name, at)| (name.to_owned(), at.parse().expect("an address")));
    let mut cache = HttpCache::new(config, Some(names.into_iter().collect())).expect("settings");
    cache.set_calendar(784_111_777);
    AppBench::new(cache)
}

/// A client comes.
fn come(bench: &mut AppBench<HttpCache>) -> SocketId {
    let at = |text: &str| text.parse().expect("an address");
    bench.accept(at("10.0.0.7:1234"), at("10.0.0.9:80"))
}

/// One exchange on a new connection of the client: what it hears if the server (if one is asked) says `answer`, and what the
/// server heard.
fn ask(bench: &mut AppBench<HttpCache>, request: &str, answer: &str) -> (String, Option<String>) {
    let client = come(bench);
    bench.say(client, request);
    let asked = bench.opens().then(|| {
        let server = bench.opened();
        let asked = bench.heard(server);
        bench.say(server, answer);
        bench.event(server, SocketEvent::Finished);
        asked
    });
    (bench.heard(client), asked)
}

const GET: &str = "GET http://a/x HTTP/1.1\r\nHost: a\r\n\r\n";
const FRESH: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n\r\nhello";

#[test]
fn a_fresh_answer_is_used_again_and_says_how_old_it_is() {
    let mut bench = on_bench(config());
    let (first, asked) = ask(&mut bench, GET, FRESH);
    assert!(first.starts_with("HTTP/1.1 200 OK\r\n") && first.ends_with("\r\n\r\nhello"), "{first}");
    assert_eq!(asked.as_deref(), Some("GET /x HTTP/1.1\r\nHost: a\r\nVia: 1.1 airloom\r\n\r\n"));
    bench.wait(7);
    let (second, asked) = ask(&mut bench, GET, "");
    assert_eq!(asked, None);
    assert!(
        second.contains("Age: 7\r\n") && second.contains("Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
        "{second}"
    );
    assert!(second.contains("Via: 1.1 airloom\r\n") && second.ends_with("hello"));
    let (head, asked) = ask(&mut bench, "HEAD http://a/x HTTP/1.1\r\nHost: a\r\n\r\n", "");
    assert_eq!(asked, None);
    assert!(head.contains("Content-Length: 5\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    bench.wait(60);
    assert!(ask(&mut bench, GET, FRESH).1.is_some(), "too old, and nothing to check it by");
    let c = bench.app.counters();
    assert_eq!((c.requests, c.hits, c.misses, c.stored), (4, 2, 2, 2));
}

#[test]
fn an_old_answer_is_checked_and_its_fields_made_new() {
    let mut bench = on_bench(config());
    let tagged = "HTTP/1.1 200 OK\r\nCache-Control: max-age=1\r\nETag: \"v1\"\r\nX-N: 1\r\nContent-Length: 2\r\n\r\nv1";
    ask(&mut bench, GET, tagged);
    bench.wait(5);
    let unchanged =
        "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nCache-Control: max-age=30\r\nX-N: 2\r\n\r\n";
    let (heard, asked) = ask(&mut bench, GET, unchanged);
    assert!(asked.is_some_and(|asked| asked.contains("If-None-Match: \"v1\"\r\n")));
    assert!(heard.starts_with("HTTP/1.1 200 OK\r\n") && heard.contains("X-N: 2\r\n"), "{heard}");
    assert!(heard.ends_with("v1") && !heard.contains("X-N: 1"));
    bench.wait(20);
    // Its own condition is judged here.
    let conditional = "GET http://a/x HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"v0\", \"v1\"\r\n\r\n";
    let (heard, asked) = ask(&mut bench, conditional, "");
    assert_eq!(asked, None);
    assert!(heard.starts_with("HTTP/1.1 304 Not Modified\r\n") && heard.ends_with("\r\n\r\n"), "{heard}");
    bench.wait(20);
    let (heard, _) = ask(&mut bench, GET, "HTTP/1.1 200 OK\r\nETag: \"v2\"\r\nContent-Length: 2\r\n\r\nv2");
    assert!(heard.ends_with("v2"));
}

/// Something that is kept and is not fresh any more.
fn with_an_old_answer(fields: &str) -> AppBench<HttpCache> {
    let mut bench = on_bench(config());
    let answer = format!("HTTP/1.1 200 OK\r\n{fields}ETag: \"v1\"\r\nContent-Length: 2\r\n\r\nv1");
    ask(&mut bench, GET, &answer);
    bench.wait(3_600);
    bench
}

#[test]
fn what_a_304_makes_private_is_given_to_nobody_else() {
    for news in [
        "Set-Cookie: sid=secret\r\n",
        "Cache-Control: private, max-age=60\r\n",
        "Cache-Control: no-store, max-age=60\r\n",
        "Vary: *\r\n",
    ] {
        let mut bench = with_an_old_answer("Cache-Control: max-age=60\r\n");
        let unchanged = format!("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n{news}\r\n");
        let (heard, _) = ask(&mut bench, GET, &unchanged);
        assert!(heard.starts_with("HTTP/1.1 200 ") && heard.contains(news), "{heard}");
        assert!(heard.ends_with("\r\n\r\nv1"), "{heard}");
        let (heard, asked) = ask(&mut bench, GET, FRESH);
        assert!(asked.is_some_and(|asked| !asked.contains("If-None-Match")), "{news}");
        assert!(!heard.contains(news) && heard.ends_with("hello"), "{heard}");
    }
    // Who has the answer already gets its cookie too.
    let mut bench = with_an_old_answer("Cache-Control: max-age=60\r\n");
    let conditional = "GET http://a/x HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"v1\"\r\n\r\n";
    let (heard, _) = ask(&mut bench, conditional, "HTTP/1.1 304 Not Modified\r\nSet-Cookie: a=b\r\n\r\n");
    assert!(heard.starts_with("HTTP/1.1 304 ") && heard.contains("Set-Cookie: a=b\r\n"), "{heard}");
}

#[test]
fn what_a_304_says_of_variants_counts_from_then_on() {
    let mut bench = with_an_old_answer("Cache-Control: max-age=60\r\n");
    let get =
        |language: &str| format!("GET http://a/x HTTP/1.1\r\nHost: a\r\nAccept-Language: {language}\r\n\r\n");
    let unchanged = "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nVary: Accept-Language\r\n\r\n";
    assert!(ask(&mut bench, &get("de"), unchanged).1.is_some());
    assert_eq!(ask(&mut bench, &get("de"), "").1, None);
    let (heard, asked) = ask(&mut bench, &get("fr"), FRESH);
    assert!(asked.is_some_and(|asked| !asked.contains("If-None-Match")), "that one is German");
    assert!(heard.ends_with("hello"), "{heard}");
}

#[test]
fn a_304_without_a_date_has_the_one_of_its_arrival() {
    let dates = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nExpires: Sun, 06 Nov 1994 08:49:47 GMT\r\n";
    let mut bench = with_an_old_answer(dates);
    let unchanged = "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n";
    for time in ["09:49:37", "09:49:42"] {
        // It expired an hour ago.
        let (heard, asked) = ask(&mut bench, GET, unchanged);
        assert!(asked.is_some(), "{time}");
        let date = format!("\r\nDate: Sun, 06 Nov 1994 {time} GMT\r\n");
        assert!(heard.contains(&date) && heard.contains("\r\nAge: 0\r\n"), "{heard}");
        bench.wait(5);
    }
}

#[test]
fn a_304_about_something_else_makes_nothing_fresh() {
    for (kept, told) in [("\"v1\"", "\"v2\""), ("W/\"v1\"", "W/\"v2\""), ("W/\"v1\"", "\"v1\"")] {
        let mut bench = on_bench(config());
        let answer = |tag: &str| {
            format!(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: {tag}\r\nContent-Length: 1\r\n\r\n"
            )
        };
        ask(&mut bench, GET, &(answer(kept) + "1"));
        bench.wait(3_600);
        let client = come(&mut bench);
        bench.say(client, GET);
        let server = bench.opened();
        assert!(bench.heard(server).contains("If-None-Match"));
        bench.say(server, format!("HTTP/1.1 304 Not Modified\r\nETag: {told}\r\n\r\n"));
        // What it is about is asked for.
        assert_eq!(bench.heard(client), "", "{kept} {told}");
        assert!(!bench.heard(server).contains("If-None-Match"));
        bench.say(server, answer(told) + "2");
        assert!(bench.heard(client).ends_with("\r\n\r\n2"));
        let (heard, asked) = ask(&mut bench, GET, "");
        assert!(asked.is_none() && heard.ends_with('2'), "{heard}");
        assert_eq!((bench.app.counters().validated, bench.app.counters().stored), (0, 2));
    }
    // A connection that ends behind it is no obstacle.
    let mut bench = with_an_old_answer("Cache-Control: max-age=60\r\n");
    let client = come(&mut bench);
    bench.say(client, GET);
    let server = bench.opened();
    bench.say(server, "HTTP/1.1 304 Not Modified\r\nETag: \"v2\"\r\nConnection: close\r\n\r\n");
    let server = bench.opened();
    assert!(!bench.heard(server).contains("If-None-Match"));
    bench.say(server, FRESH);
    assert!(bench.heard(client).ends_with("hello"));
}

#[test]
fn what_cannot_be_checked_is_used_stale_only_where_its_server_allows_it() {
    for (control, status) in [("max-age=1", "200"), ("max-age=1, must-revalidate", "504")] {
        let mut bench = on_bench(config());
        let answer = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: {control}\r\nETag: \"1\"\r\nContent-Length: 2\r\n\r\nok"
        );
        ask(&mut bench, GET, &answer);
        bench.wait(100);
        let client = come(&mut bench);
        bench.say(client, GET);
        let (server, _) = bench.net.connected[1];
        bench.event(server, SocketEvent::Closed(CloseReason::Refused));
        let heard = bench.heard(client);
        assert!(heard.starts_with(&format!("HTTP/1.1 {status} ")), "{control}: {heard}");
    }
}

#[test]
fn an_answer_that_is_not_kept_leaves_no_older_one_to_be_used() {
    let reload = "GET http://a/x HTTP/1.1\r\nHost: a\r\nCache-Control: no-cache\r\n\r\n";
    let long = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n10000\r\n{}\r\n0\r\n\r\n",
        "x".repeat(0x1_0000)
    );
    for news in [
        "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 3\r\n\r\nnew",
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2000000\r\n\r\nlong",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        &long,
    ] {
        let mut bench = on_bench(Config { max_object: airloom_base::units::Octets(10_000), ..config() });
        ask(&mut bench, GET, FRESH);
        assert!(ask(&mut bench, reload, news).1.is_some());
        assert!(ask(&mut bench, GET, "").1.is_some(), "{:.60}", news);
    }
    // Errors of a server and parts are no news of what is there.
    for (request, news) in [
        (reload, "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"),
        (
            "GET http://a/x HTTP/1.1\r\nHost: a\r\nRange: bytes=0-0\r\n\r\n",
            "HTTP/1.1 206 Partial Content\r\nContent-Length: 1\r\n\r\nh",
        ),
    ] {
        let mut bench = on_bench(config());
        ask(&mut bench, GET, FRESH);
        assert!(ask(&mut bench, request, news).1.is_some());
        assert_eq!(ask(&mut bench, GET, "").1, None, "{news}");
    }
    // Nothing that its server has said to be gone comes back when the server is down.
    let mut bench = with_an_old_answer("Cache-Control: max-age=60\r\n");
    ask(&mut bench, GET, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    let client = come(&mut bench);
    bench.say(client, GET);
    let (server, _) = bench.net.connected[2];
    bench.event(server, SocketEvent::Closed(CloseReason::Refused));
    assert!(bench.heard(client).starts_with("HTTP/1.1 502 "));
}

#[test]
fn an_answer_that_is_not_kept_leaves_other_variants() {
    let mut bench = on_bench(config());
    let get =
        |fields: &str| format!("GET http://a/x HTTP/1.1\r\nHost: a\r\nAccept-Language: {fields}\r\n\r\n");
    let answer = |control: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nCache-Control: {control}\r\nVary: Accept-Language\r\nContent-Length: 1\r\n\r\nx"
        )
    };
    for language in ["de", "en"] {
        ask(&mut bench, &get(language), &answer("max-age=60"));
    }
    ask(&mut bench, &get("de\r\nCache-Control: no-cache"), &answer("no-store"));
    assert_eq!(ask(&mut bench, &get("en"), "").1, None);
    assert!(ask(&mut bench, &get("de"), "").1.is_some());
}

#[test]
fn answers_leave_in_the_order_of_their_requests() {
    let mut bench = on_bench(config());
    let client = come(&mut bench);
    bench.say(client, "GET http://a/1 HTTP/1.1\r\nHost: a\r\n\r\nGET http://b/2 HTTP/1.1\r\nHost: b\r\n\r\n");
    let (first, second) = (bench.opened(), bench.opened());
    bench.say(second, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo");
    assert_eq!(bench.heard(client), "");
    bench.say(first, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none");
    let heard = bench.heard(client);
    let (one, two) = (heard.find("one"), heard.find("two"));
    assert!(one.is_some() && one < two, "{heard}");
}

#[test]
fn what_changes_something_is_overtaken_by_nothing_behind_it() {
    const PUT: &str = "PUT http://a/x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nnew";
    let mut bench = on_bench(config());
    ask(&mut bench, GET, FRESH);
    let client = come(&mut bench);
    bench.say(client, [PUT, GET].concat());
    let server = bench.opened();
    assert!(bench.heard(server).ends_with("\r\n\r\nnew") && !bench.opens());
    bench.say(server, "HTTP/1.1 204 No Content\r\n\r\n");
    assert!(bench.heard(server).starts_with("GET /x"), "what was kept is of no use any more");
    bench.say(server, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nnew");
    let heard = bench.heard(client);
    assert!(heard.starts_with("HTTP/1.1 204 ") && heard.ends_with("\r\n\r\nnew"), "{heard}");
    // Whether its client takes the answer is another matter.
    bench.net.wire(client).room = Some(0);
    bench.say(client, [PUT, GET].concat());
    bench.say(server, "HTTP/1.1 204 No Content\r\n\r\n");
    assert!(bench.heard(server).contains("GET /x"));
}

#[test]
fn what_waits_behind_the_last_answer_of_a_connection_is_thrown_away() {
    let mut bench = on_bench(config());
    let client = come(&mut bench);
    bench.say(client, ["PUT http://a/x HTTP/1.1\r\nHost: a\r\n\r\n", GET].concat());
    let server = bench.opened();
    bench.call(|cache, cx, net| cache.handle_stop(cx, net));
    bench.say(server, "HTTP/1.1 204 No Content\r\n\r\n");
    assert!(bench.heard(client).starts_with("HTTP/1.1 204 ") && bench.net.wire(client).finished);
    assert!(!bench.heard(server).contains("GET"));
}

#[test]
fn what_changes_something_overtakes_nothing_before_it() {
    const POST: &str = "POST http://a/y HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi";
    const LAST: &str = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1";
    let mut bench = on_bench(config());
    let client = come(&mut bench);
    bench.say(client, [GET, "GET http://b/z HTTP/1.1\r\nHost: b\r\n\r\n", POST, GET].concat());
    bench.event(client, SocketEvent::Finished);
    let (first, second) = (bench.opened(), bench.opened());
    for server in [second, first] {
        assert_eq!(bench.heard(server).matches(" HTTP/1.1\r\n").count(), 1);
        assert!(!bench.opens());
        bench.say(server, LAST);
    }
    let asked = bench.heard(first);
    assert!(asked.starts_with("POST /y ") && asked.ends_with("\r\n\r\nhi"), "{asked}");
    bench.say(first, LAST);
    assert!(bench.heard(first).starts_with("GET /x "));
    bench.say(first, LAST);
    assert_eq!(bench.heard(client).matches("\r\n\r\n1").count(), 4);
    assert!(bench.net.wire(client).finished);
}

#[test]
fn requests_beyond_the_pipeline_wait_unread() {
    let mut bench = on_bench(Config { client_pipeline: 2, ..config() });
    let client = come(&mut bench);
    let all: String = (0..5).map(|n| format!("GET http://a/{n} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    bench.say(client, all);
    let first = (bench.opened(), bench.opened());
    assert_eq!(bench.net.connected.len(), 2);
    for server in [first.1, first.0, first.0, first.1, first.0] {
        bench.say(server, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    }
    assert_eq!(bench.heard(client).matches("\r\n\r\nx").count(), 5);
    assert_eq!(bench.net.connected.len(), 2);
}

#[test]
fn requests_wait_for_a_connection_and_connections_are_used_again() {
    let mut bench = on_bench(Config { server_connections: 1, ..config() });
    let clients = [come(&mut bench), come(&mut bench), come(&mut bench)];
    for client in clients {
        bench.say(client, GET);
    }
    assert_eq!(bench.net.connected.len(), 1);
    let server = bench.opened();
    for client in clients {
        assert_eq!(bench.heard(server).matches("GET").count(), 1);
        bench.say(server, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
        assert!(bench.heard(client).ends_with('x'));
    }
    assert_eq!((bench.net.connected.len(), bench.app.counters().server_connections), (1, 1));
}

#[test]
fn requests_are_pipelined_to_a_server_that_has_shown_that_it_stays() {
    let mut bench = on_bench(Config { server_connections: 1, server_pipeline: 3, ..config() });
    let clients: Vec<SocketId> = (0..5).map(|_| come(&mut bench)).collect();
    for client in &clients {
        bench.say(*client, GET);
    }
    let server = bench.opened();
    assert_eq!(bench.heard(server).matches("GET").count(), 1, "nothing is known of it yet");
    bench.say(server, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1");
    assert_eq!(bench.heard(server).matches("GET").count(), 3);
    // It breaks off behind the first of them: the others are asked again on another connection, one at a time.
    bench.say(server, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2");
    bench.event(server, SocketEvent::Closed(CloseReason::Reset));
    assert!(bench.heard(clients[0]).ends_with('1') && bench.heard(clients[1]).ends_with('2'));
    for client in &clients[2..] {
        let server = bench.opened();
        assert_eq!(bench.heard(server).matches("GET").count(), 1);
        bench.say(server, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n3");
        assert!(bench.heard(*client).ends_with('3'));
    }
    assert_eq!(bench.app.counters().retries, 3);
}

#[test]
fn requests_that_are_sent_again_share_the_connection_that_was_opened_for_the_first() {
    const LAST: &str = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n2";
    for answered in [0, 1] {
        let mut bench = on_bench(Config { server_connections: 1, server_pipeline: 3, ..config() });
        let clients: Vec<SocketId> = (0..4).map(|_| come(&mut bench)).collect();
        for client in &clients {
            bench.say(*client, GET);
        }
        let server = bench.opened();
        bench.say(server, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1");
        assert_eq!(bench.heard(server).matches("GET").count(), 4);
        if answered == 0 {
            bench.event(server, SocketEvent::Closed(CloseReason::Reset));
        } else {
            bench.say(server, LAST);
        }
        let server = bench.opened();
        for client in &clients[1 + answered..] {
            assert_eq!(bench.heard(server).matches("GET").count(), 1, "one at a time, and at once");
            bench.say(server, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n3");
            assert!(bench.heard(*client).ends_with('3'));
        }
        let retries = bench.app.counters().retries;
        assert_eq!((bench.net.connected.len(), retries), (2, 3 - answered as u64));
    }
}

#[test]
fn a_kept_connection_that_closes_under_a_request_is_replaced_once() {
    let mut bench = on_bench(config());
    let client = come(&mut bench);
    bench.say(client, GET);
    let server = bench.opened();
    bench.say(server, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1");
    bench.heard(client);
    bench.say(client, GET);
    bench.event(server, SocketEvent::Finished);
    let server = bench.opened();
    assert!(bench.heard(server).starts_with("GET /x"));
    bench.event(server, SocketEvent::Closed(CloseReason::Reset));
    assert!(bench.heard(client).starts_with("HTTP/1.1 502 "));
    // A new connection that breaks is the server's word; and what changes something is never repeated.
    bench.say(client, "POST http://a/x HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
    let server = bench.opened();
    assert!(bench.heard(server).ends_with("Content-Length: 2\r\n\r\nhi"));
    bench.event(server, SocketEvent::Closed(CloseReason::Reset));
    assert!(bench.heard(client).starts_with("HTTP/1.1 502 "));
    assert_eq!(bench.app.counters().retries, 1);
}

/// What is said to the proxy, and the status it answers with itself; nothing of it reaches a server.
const REFUSED: &[(&str, u16)] = &[
    // Two lengths, in all their forms.
    (
        "POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    ("POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400),
    ("POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 6\r\n\r\nhello", 400),
    ("POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello", 400),
    ("POST http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\nhello", 400),
    ("POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 501),
    ("POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    ("POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),
    ("POST http://a/ HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n", 400),
    // Lines that end and begin where others may not see it.
    ("GET http://a/ HTTP/1.1\r\nHost: a\r\nX: y\r\n z: 1\r\n\r\n", 400),
    ("GET http://a/ HTTP/1.1\r\nHost: a\nX: y\r\n\r\n", 400),
    ("GET http://a/ HTTP/1.1\r\nHost: a\rX: y\r\n\r\n", 400),
    ("GET http://a/ HTTP/1.1\r\n Host: a\r\n\r\n", 400),
    ("GET http://a/ HTTP/1.1\r\nHost: a\r\nX\0: y\r\n\r\n", 400),
    // Who is meant.
    ("GET http://a/ HTTP/1.1\r\n\r\n", 400),
    ("GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    ("GET http://a@b/ HTTP/1.1\r\nHost: b\r\n\r\n", 400),
    ("GET /x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 501),
    ("GET http://nobody/ HTTP/1.1\r\nHost: nobody\r\n\r\n", 502),
    ("CONNECT a:22 HTTP/1.1\r\nHost: a\r\n\r\n", 403),
    ("CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("GET http://a/ HTTP/2.0\r\nHost: a\r\n\r\n", 505),
    ("GET http://a/ HTTP/1.1\r\nHost: a\r\nVia: 1.1 airloom\r\n\r\n", 508),
    ("GET http://a/ HTTP/1.1\r\nHost: a\r\nCache-Control: only-if-cached\r\n\r\n", 504),
    ("GET http://a/ HTTP/1.1\r\nHost: a\r\nCache-Control: only-if-cached\r\nRange: bytes=0-0\r\n\r\n", 504),
    ("TRACE http://a/ HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n", 405),
    ("OPTIONS http://a/ HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n", 200),
];

#[test]
fn smuggling_and_other_nonsense_reaches_no_server() {
    for (request, status) in REFUSED {
        let smuggled = "GET http://b/smuggled HTTP/1.1\r\nHost: b\r\n\r\n";
        for cut in (0..request.len()).step_by(3) {
            let mut bench = on_bench(config());
            let client = come(&mut bench);
            bench.say(client, &request[..cut]);
            if !bench.net.wire(client).finished {
                bench.say(client, &request[cut..]);
            }
            let heard = bench.heard(client);
            assert!(heard.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?} cut at {cut}: {heard:?}");
            assert_eq!(bench.net.connected.len(), 0, "{request:?}");
            if *status == 400 {
                assert!(
                    heard.contains("Connection: close\r\n") && bench.net.wire(client).finished,
                    "{request:?}"
                );
                bench.say(client, smuggled);
                assert_eq!(bench.net.connected.len(), 0, "{request:?}: what follows is not a request");
            }
        }
    }
}

#[test]
fn heads_that_are_too_long_are_refused() {
    let long = "x".repeat(40_000);
    for (request, status) in [
        (format!("GET http://a/{long} HTTP/1.1\r\nHost: a\r\n\r\n"), 414),
        (format!("GET http://a/ HTTP/1.1\r\nHost: a\r\nX: {long}\r\n\r\n"), 431),
        (format!("GET http://a/ HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(200)), 431),
    ] {
        let mut bench = on_bench(config());
        let (heard, asked) = ask(&mut bench, &request, "");
        assert!(heard.starts_with(&format!("HTTP/1.1 {status} ")) && asked.is_none(), "{heard}");
    }
}

#[test]
fn what_servers_lie_about_gives_502_or_breaks_off() {
    for (answer, expected) in [
        ("220 this is a mail server\r\n", "HTTP/1.1 502 "),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "HTTP/1.1 502 "),
        ("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 502 "),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "HTTP/1.1 502 "),
        ("HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n", "HTTP/1.1 502 "),
        ("", "HTTP/1.1 502 "),
    ] {
        let mut bench = on_bench(config());
        let (heard, _) = ask(&mut bench, GET, answer);
        assert!(heard.starts_with(expected), "{answer:?}: {heard:?}");
    }
    // The head was passed on already: the client's connection ends in the middle.
    for answer in [
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 50\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nx",
    ] {
        let mut bench = on_bench(config());
        let client = come(&mut bench);
        bench.say(client, GET);
        let server = bench.opened();
        bench.say(server, answer);
        bench.event(server, SocketEvent::Closed(CloseReason::Reset));
        let heard = bench.heard(client);
        assert!(heard.contains("hello") && !heard.ends_with("0\r\n\r\n"), "{heard}");
        assert!(bench.net.wire(client).finished, "{answer:?}");
        assert!(ask(&mut bench, GET, FRESH).1.is_some(), "half an answer is not kept");
    }
}

#[test]
fn an_answer_behind_an_answer_is_nobodys() {
    let mut bench = on_bench(config());
    let client = come(&mut bench);
    bench.say(client, GET);
    let server = bench.opened();
    bench.say(
        server,
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad",
    );
    assert!(bench.heard(client).ends_with("\r\n\r\n1"));
    assert!(bench.net.wire(server).reset);
    bench.say(client, GET);
    let server = bench.opened();
    bench.say(server, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2");
    assert!(bench.heard(client).ends_with("\r\n\r\n2"));
}

#[test]
fn bodies_without_a_length_become_chunks_or_end_with_the_connection() {
    let answer = "HTTP/1.1 200 OK\r\n\r\nhello";
    let mut bench = on_bench(config());
    let (heard, _) = ask(&mut bench, GET, answer);
    assert!(
        heard.contains("Transfer-Encoding: chunked\r\n") && heard.ends_with("5\r\nhello\r\n0\r\n\r\n"),
        "{heard}"
    );
    let (heard, _) = ask(&mut bench, "GET http://a/x HTTP/1.0\r\n\r\n", answer);
    assert!(heard.contains("Connection: close\r\n") && heard.ends_with("\r\n\r\nhello"), "{heard}");
    // One that broke off must not look complete to a client that takes the end for the end.
    let client = come(&mut bench);
    bench.say(client, "GET http://a/x HTTP/1.0\r\n\r\n");
    let server = bench.opened();
    bench.say(server, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    bench.event(server, SocketEvent::Closed(CloseReason::Reset));
    assert!(bench.net.wire(client).reset && !bench.net.wire(client).finished);
}

#[test]
fn variants_and_private_answers_are_not_mixed_up() {
    let mut bench = on_bench(config());
    let get = |lines: &str| format!("GET http://a/x HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
    let answer = |fields: &str, body: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{fields}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    ask(&mut bench, &get("Accept-Language: de\r\n"), &answer("Vary: Accept-Language\r\n", "de"));
    ask(&mut bench, &get("Accept-Language: en\r\n"), &answer("Vary: Accept-Language\r\n", "en"));
    for language in ["de", "en"] {
        let (heard, asked) = ask(&mut bench, &get(&format!("Accept-Language: {language}\r\n")), "");
        assert!(asked.is_none() && heard.ends_with(language), "{heard}");
    }
    let mut bench = on_bench(config());
    ask(&mut bench, &get("Authorization: Basic eDp5\r\n"), &answer("", "mine"));
    assert!(ask(&mut bench, &get(""), &answer("Set-Cookie: a=b\r\n", "x")).1.is_some());
    assert!(ask(&mut bench, &get(""), &answer("", "x")).1.is_some(), "an answer with a cookie is not kept");
    assert_eq!(ask(&mut bench, &get(""), "").1, None);
    // What changes something makes it useless.
    ask(&mut bench, "DELETE http://a/x HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n");
    assert!(ask(&mut bench, &get(""), &answer("", "y")).1.is_some());
    // A fragment of it is for the server to give.
    assert!(
        ask(
            &mut bench,
            &get("Range: bytes=0-0\r\n"),
            "HTTP/1.1 206 Partial Content\r\nContent-Length: 1\r\n\r\ny"
        )
        .1
        .is_some()
    );
}

#[test]
fn clients_that_are_slow_do_not_hold_memory_or_the_server() {
    let mut bench = on_bench(Config { buffer: airloom_base::units::Octets(10_000), ..config() });
    let client = come(&mut bench);
    bench.net.wire(client).room = Some(0);
    bench.say(client, GET);
    let server = bench.opened();
    let mut answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n".to_vec();
    answer.extend(vec![b'x'; 1_000_000]);
    for piece in answer.chunks(1_000) {
        bench.net.wire(server).inbox.push_back(piece.to_vec());
    }
    bench.event(server, SocketEvent::Readable(1));
    let unread: usize = bench.net.wire(server).inbox.iter().map(Vec::len).sum();
    assert!(unread > 980_000, "{unread}");
    while bench.net.wire(client).heard.len() < answer.len() {
        bench.net.wire(client).room = Some(30_000);
        bench.event(client, SocketEvent::Writable);
        bench.event(server, SocketEvent::Readable(1));
    }
    // Another one takes nothing at all.
    bench.net.wire(client).room = Some(0);
    bench.net.wire(client).heard.clear();
    bench.say(client, GET);
    bench.say(server, FRESH);
    bench.wait(61);
    assert!(bench.net.wire(client).reset);
}

/// A proxy that holds 10,000 octets of a body.
fn with_a_small_buffer() -> AppBench<HttpCache> {
    on_bench(Config { buffer: airloom_base::units::Octets(10_000), ..config() })
}

#[test]
fn what_a_client_has_had_of_an_answer_counts() {
    let mut bench = on_bench(config());
    let client = come(&mut bench);
    bench.net.wire(client).room = Some(1_000);
    bench.say(client, GET);
    let server = bench.opened();
    let part = "x".repeat(9_000);
    bench.say(server, format!("HTTP/1.1 200 OK\r\nContent-Length: 18000\r\n\r\n{part}"));
    let had = bench.heard(client).matches('x').count() as u64;
    assert!(had > 0);
    assert_eq!(bench.app.counters().client_octets, had);
    bench.event(client, SocketEvent::Closed(CloseReason::Reset));
    assert_eq!((bench.app.counters().client_octets, bench.app.counters().abandoned), (had, 1));
}

#[test]
fn an_answer_that_came_whole_is_whole_for_a_client_that_is_slow() {
    let part = "x".repeat(9_000);
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 18000\r\n\r\n";
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2328\r\n";
    for (head, between, end) in [(length, "", ""), (chunks, "\r\n2328\r\n", "\r\n0\r\n\r\n")] {
        let mut bench = with_a_small_buffer();
        let client = come(&mut bench);
        bench.net.wire(client).room = Some(0);
        bench.say(client, GET);
        let server = bench.opened();
        bench.say(server, format!("{head}{part}{between}"));
        bench.say(server, format!("{part}{end}"));
        bench.event(server, SocketEvent::Finished);
        bench.net.wire(client).room = None;
        bench.event(client, SocketEvent::Writable);
        assert_eq!(bench.heard(client).matches('x').count(), 18_000, "{head}");
        assert!(!bench.net.wire(client).finished && bench.app.counters().broken == 0, "{head}");
    }
}

#[test]
fn a_body_that_came_whole_is_forwarded_although_its_client_sends_no_more() {
    let mut bench = with_a_small_buffer();
    let client = come(&mut bench);
    let part = "x".repeat(9_000);
    bench.say(client, format!("POST http://a/up HTTP/1.1\r\nHost: a\r\nContent-Length: 18000\r\n\r\n{part}"));
    bench.say(client, part);
    bench.event(client, SocketEvent::Finished);
    let server = bench.opened();
    assert_eq!(bench.heard(server).matches('x').count(), 18_000);
    bench.say(server, FRESH);
    assert!(bench.heard(client).ends_with("hello") && bench.net.wire(client).finished);
    // Half a body is nobody's.
    let client = come(&mut bench);
    bench.say(client, "POST http://a/x HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf");
    bench.event(client, SocketEvent::Finished);
    assert!(bench.net.wire(client).reset);
}

#[test]
fn requests_that_waited_unread_are_answered_although_their_client_sends_no_more() {
    let mut bench = on_bench(Config { client_pipeline: 2, ..config() });
    let client = come(&mut bench);
    let all: String = (0..5).map(|n| format!("GET http://a/{n} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    bench.say(client, all);
    bench.event(client, SocketEvent::Finished);
    let (first, second) = (bench.opened(), bench.opened());
    // The second answer waits for the first one: both leave at a time.
    for server in [second, first, second, first, first] {
        bench.say(server, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
    }
    assert_eq!(bench.heard(client).matches("\r\n\r\nx").count(), 5);
    assert!(bench.net.wire(client).finished);
}

#[test]
fn time_runs_out_for_everybody() {
    let mut bench = on_bench(config());
    let (idle, slow, waiting) = (come(&mut bench), come(&mut bench), come(&mut bench));
    bench.say(slow, "GET http://a/x HTT");
    bench.say(waiting, GET);
    let server = bench.opened();
    // A head that comes octet by octet gets no more time than another.
    for _ in 0..7 {
        bench.wait(2);
        bench.say(slow, "x");
    }
    bench.wait(2);
    let heard = bench.heard(slow);
    assert!(heard.starts_with("HTTP/1.1 408 ") && bench.net.wire(slow).finished, "{heard}");
    bench.wait(45);
    assert!(bench.net.wire(idle).finished && bench.heard(idle).is_empty());
    assert!(bench.net.wire(server).reset && bench.heard(waiting).starts_with("HTTP/1.1 504 "));
    bench.wait(5);
    assert!(bench.net.wire(idle).reset, "it did not answer the end");
}

#[test]
fn connections_to_servers_that_are_of_no_more_use_end_gracefully() {
    for (fields, seconds) in [("", 31), ("Connection: close\r\n", 0)] {
        for ends in [true, false] {
            let mut bench = on_bench(config());
            let client = come(&mut bench);
            bench.say(client, GET);
            let server = bench.opened();
            bench.say(server, format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: 1\r\n\r\n1"));
            bench.event(client, SocketEvent::Closed(CloseReason::Finished));
            bench.wait(seconds);
            assert!(bench.net.wire(server).finished && !bench.net.wire(server).reset, "{fields:?}");
            assert_eq!(bench.app.sizes()[1], 0);
            // What still comes is read, so that its end is seen.
            bench.say(server, "farewell");
            assert!(bench.net.wire(server).inbox.is_empty());
            if ends {
                bench.event(server, SocketEvent::Finished);
                bench.event(server, SocketEvent::Closed(CloseReason::Finished));
                assert_eq!(bench.app.poll_timeout(), None);
            }
            bench.wait(60);
            assert_eq!(bench.net.wire(server).reset, !ends);
        }
    }
}

#[test]
fn a_request_that_waits_for_a_connection_to_its_server_has_an_end() {
    let mut bench = on_bench(Config { server_connections: 1, ..config() });
    let (slow, waiting) = (come(&mut bench), come(&mut bench));
    bench.say(slow, GET);
    let server = bench.opened();
    bench.say(server, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
    bench.say(waiting, "GET http://a/y HTTP/1.1\r\nHost: a\r\n\r\n");
    for _ in 0..5 {
        bench.wait(10);
        bench.say(server, "x");
    }
    assert_eq!(bench.heard(waiting), "");
    bench.wait(10);
    assert!(bench.heard(waiting).starts_with("HTTP/1.1 504 ") && !bench.net.wire(waiting).finished);
    // What is answered slowly is answered.
    bench.say(server, "x".repeat(95));
    assert!(bench.heard(slow).ends_with(&"x".repeat(100)));
    bench.heard(server);
    bench.say(waiting, GET);
    assert!(bench.heard(server).starts_with("GET /x"), "the connection is free, and nobody waits any more");
}

#[test]
fn bodies_of_requests_pass_and_are_bounded() {
    let mut bench = on_bench(Config { max_upload: Some(airloom_base::units::Octets(10)), ..config() });
    let client = come(&mut bench);
    bench.say(
        client,
        "POST http://a/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
    );
    let server = bench.opened();
    let head = bench.heard(server);
    assert!(
        head.contains("Transfer-Encoding: chunked\r\n") && head.contains("Expect: 100-continue\r\n"),
        "{head}"
    );
    bench.say(server, "HTTP/1.1 100 Continue\r\n\r\n");
    assert!(bench.heard(client).starts_with("HTTP/1.1 100 Continue\r\n"));
    bench.say(client, "5;ext=1\r\nhello\r\n0\r\nTrailer: x\r\n\r\n");
    assert_eq!(bench.heard(server), "5\r\nhello\r\n0\r\n\r\n");
    bench.say(server, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    assert!(bench.heard(client).ends_with("ok"));
    bench.say(client, "POST http://a/x HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n");
    assert!(bench.heard(client).starts_with("HTTP/1.1 413 "));
    let client = come(&mut bench);
    bench.say(
        client,
        "POST http://a/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n9\r\n",
    );
    bench.say(client, "123456789\r\n");
    assert!(bench.heard(client).starts_with("HTTP/1.1 413 "));
}

#[test]
fn a_body_goes_on_while_its_answer_comes() {
    let mut bench = on_bench(config());
    let client = come(&mut bench);
    bench.say(client, "POST http://a/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n");
    let server = bench.opened();
    assert!(bench.heard(server).ends_with("\r\n\r\n2\r\nno"));
    bench.say(server, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\non");
    bench.say(client, "3\r\nyes\r\n0\r\n\r\n");
    assert_eq!(bench.heard(server), "\r\n3\r\nyes\r\n0\r\n\r\n");
    bench.say(server, "es");
    assert!(bench.heard(client).ends_with("\r\n\r\nones"));
    assert!(!bench.net.wire(client).finished && bench.app.sizes()[1] == 1, "both connections are kept");
}

#[test]
fn the_answer_to_a_get_with_content_is_kept_for_nobody() {
    let mut bench = on_bench(config());
    let fat = "GET http://a/x HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nevil";
    let chunked =
        "GET http://a/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nevil\r\n0\r\n\r\n";
    for poisoned in [fat, chunked] {
        assert!(ask(&mut bench, poisoned, FRESH).1.is_some(), "{poisoned}");
    }
    let (_, asked) = ask(&mut bench, GET, FRESH);
    assert!(asked.is_some(), "nothing was kept under the bare name");
    // Nor is it answered by what was kept for those without content; an empty one is none.
    assert!(ask(&mut bench, fat, FRESH).1.is_some());
    let empty = "GET http://a/x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(ask(&mut bench, empty, "").1, None);
    assert_eq!(bench.app.counters().stored, 1);
}

#[test]
fn what_is_kept_holds_on_to_nothing_else_of_its_head() {
    let mut bench = on_bench(config());
    let (reason, hop) = ("y".repeat(1_000), "z".repeat(30_000));
    let answer = format!(
        "HTTP/1.1 200 {reason}\r\nCache-Control: max-age=60\r\nKeep-Alive: {hop}\r\nEmpty:\r\nContent-Length: 1\r\n\r\nx"
    );
    ask(&mut bench, GET, &answer);
    let key = Target { host: "a".into(), port: 80, path: "/x".into() }.key();
    let kept = bench.app.store.find(&key, &Fields::default()).expect("it is kept");
    let lines = kept.lines.as_ptr_range();
    let is_part = |octets: &[u8]| octets.is_empty() || lines.contains(&octets.as_ptr());
    assert!(kept.fields.iter().all(|field| is_part(&field.name) && is_part(&field.value)));
    assert_eq!(kept.fields.len(), 4, "Cache-Control, Empty, Via and Date");
    assert!(kept.reason.is_unique() && kept.reason.len() == 1_000);
    assert!(bench.app.sizes()[3] > 1_500);
}

#[test]
fn answers_that_are_still_coming_have_no_more_room_than_all_that_are_kept() {
    let octets = airloom_base::units::Octets(10_000);
    let mut bench = on_bench(Config { capacity: octets, max_object: octets, ..config() });
    ask(&mut bench, "GET http://b/y HTTP/1.1\r\nHost: b\r\n\r\n", FRESH);
    let clients: Vec<SocketId> = (0..3).map(|_| come(&mut bench)).collect();
    let get = |n: usize| format!("GET http://a/{n} HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 6000\r\n\r\n";
    let mut servers = Vec::new();
    for (n, client) in clients.iter().enumerate() {
        bench.say(*client, get(n));
        servers.push(bench.opened());
        bench.say(servers[n], head);
    }
    for _ in 0..5 {
        for server in &servers {
            bench.say(*server, "x".repeat(1_000));
            let store = &bench.app.store;
            assert!(store.octets() + store.pending() <= 10_000, "{}", store.pending());
        }
    }
    assert_eq!(bench.app.store.len(), 0, "what was there before has made room");
    for (n, server) in servers.iter().enumerate() {
        bench.say(*server, "x".repeat(1_000));
        assert!(bench.heard(clients[n]).ends_with(&"x".repeat(6_000)));
    }
    // The last one went on being collected when the others were given up.
    assert_eq!((bench.app.counters().stored, bench.app.store.len(), bench.app.store.pending()), (2, 1, 0));
    assert_eq!(ask(&mut bench, &get(2), "").1, None);
    // Clients that leave and connections that break give back what they took.
    for (n, gone) in [clients[0], servers[1]].into_iter().enumerate() {
        bench.say(clients[n], get(n));
        bench.say(servers[n], [head, "half"].concat());
        assert!(bench.app.store.pending() > 0);
        bench.event(gone, SocketEvent::Closed(CloseReason::Reset));
        assert_eq!(bench.app.store.pending(), 0);
    }
}

#[test]
fn a_tunnel_carries_octets_both_ways_and_ends() {
    let mut bench = on_bench(config());
    let client = come(&mut bench);
    bench.say(client, "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\nfirst");
    assert_eq!(bench.net.connected[0].1, "10.0.0.1:443".parse().expect("an address"));
    let server = bench.opened();
    assert_eq!(
        (bench.heard(client), bench.heard(server)),
        ("HTTP/1.1 200 Connection Established\r\n\r\n".into(), "first".into())
    );
    bench.say(server, "GET / HTTP/1.1\r\n\r\n");
    bench.say(client, "\0\r\n");
    assert_eq!(
        (bench.heard(client), bench.heard(server)),
        ("GET / HTTP/1.1\r\n\r\n".into(), "\0\r\n".into())
    );
    bench.event(client, SocketEvent::Finished);
    assert!(bench.net.wire(server).finished && !bench.net.wire(client).finished);
    bench.event(server, SocketEvent::Finished);
    assert!(bench.net.wire(client).finished);
    // One that cannot be opened is a status.
    let client = come(&mut bench);
    bench.say(client, "CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n\r\n");
    let (server, _) = bench.net.connected[1];
    bench.event(server, SocketEvent::Closed(CloseReason::Refused));
    assert!(bench.heard(client).starts_with("HTTP/1.1 502 "));
    assert_eq!(bench.app.counters().tunnels, 1);
}

#[test]
fn a_tunnel_is_tried_to_several_addresses_of_its_server() {
    let addresses: Vec<_> = (1..6).map(|n| std::net::IpAddr::from([10, 0, 0, n])).collect();
    let mut cache = HttpCache::new(config(), None).expect("settings");
    cache.set_calendar(784_111_777);
    let mut bench = AppBench::new(cache);
    for refused in [1, 3] {
        let client = come(&mut bench);
        bench.say(client, "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n");
        let question = bench.app.poll_lookup().expect("a question");
        bench.call(|cache, cx, net| cache.handle_lookup(cx, net, question.id, Ok(addresses.clone())));
        let before = bench.net.connected.len() - 1;
        for (n, address) in addresses.iter().enumerate().take(refused) {
            let (server, to) = bench.net.connected[before + n];
            assert_eq!(to.ip(), *address);
            bench.event(server, SocketEvent::Closed(CloseReason::Refused));
        }
        if let Some(&(server, to)) = bench.net.connected.get(before + refused) {
            assert_eq!(to.ip(), addresses[refused]);
            bench.event(server, SocketEvent::Opened);
        }
        let status = if refused == 1 { "200" } else { "502" };
        assert!(bench.heard(client).starts_with(&format!("HTTP/1.1 {status} ")), "{refused}");
        assert_eq!(bench.net.connected.len(), before + [2, 3][usize::from(refused == 3)]);
    }
}

#[test]
fn a_tunnel_that_ends_carries_what_was_on_its_way() {
    let tunnel = || {
        let mut bench = on_bench(config());
        let client = come(&mut bench);
        bench.say(client, "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n");
        let server = bench.opened();
        bench.heard(client);
        (bench, client, server)
    };
    let ends = |bench: &mut AppBench<HttpCache>, first: SocketId, last: SocketId| {
        bench.event(first, SocketEvent::Finished);
        assert!(bench.net.wire(last).finished);
        bench.net.wire(first).room = Some(3);
        bench.say(last, "farewell");
        bench.event(last, SocketEvent::Finished);
        bench.event(last, SocketEvent::Closed(CloseReason::Finished));
        assert_eq!(bench.heard(first), "far");
        bench.net.wire(first).room = None;
        bench.event(first, SocketEvent::Writable);
        assert_eq!(bench.heard(first), "ewell");
        assert!(bench.net.wire(first).finished && !bench.net.wire(first).reset);
        bench.event(first, SocketEvent::Closed(CloseReason::Finished));
        assert_eq!(bench.app.sizes()[..2], [0, 0]);
    };
    let (mut bench, client, server) = tunnel();
    ends(&mut bench, client, server);
    let (mut bench, client, server) = tunnel();
    ends(&mut bench, server, client);
    // Nobody waits for ever.
    let (mut bench, client, server) = tunnel();
    bench.net.wire(server).room = Some(0);
    bench.event(server, SocketEvent::Finished);
    bench.say(client, "farewell");
    bench.event(client, SocketEvent::Finished);
    bench.event(client, SocketEvent::Closed(CloseReason::Finished));
    bench.wait(601);
    assert!(bench.net.wire(server).reset);
    assert_eq!(bench.app.sizes()[..2], [0, 0]);
}

/// Octets for whichever socket is there.
#[derive(Clone, Debug)]
enum Deed {
    Come,
    Say(usize, Vec<u8>),
    End(usize),
    Break(usize),
    Open(usize),
    Take(usize, usize),
    Wait(u64),
}

fn words() -> impl Strategy<Value = Vec<u8>> {
    const WORDS: &[&[u8]] = &[
        b"GET http://a/x HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://b/y HTTP/1.0\r\n\r\n",
        b"PUT http://b/y HTTP/1.1\r\nHost: b\r\nContent-Length: 0\r\n\r\n",
        b"POST http://a/x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
        b"POST http://a/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nCache-Control: max-age=5\r\nETag: \"1\"\r\nContent-Length: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nETag: \"2\"\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
        b"5\r\nhello\r\n",
        b"0\r\n\r\n",
        b"hello",
        b"\r\n",
        b"X: y",
    ];
    let word = prop_oneof![
        8 => (0..WORDS.len()).prop_map(|n| WORDS[n].to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..40),
    ];
    proptest::collection::vec(word, 1..4).prop_map(|words| words.concat())
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        2 => Just(Deed::Come),
        8 => (any::<usize>(), words()).prop_map(|(at, words)| Deed::Say(at, words)),
        1 => any::<usize>().prop_map(Deed::End),
        1 => any::<usize>().prop_map(Deed::Break),
        4 => any::<usize>().prop_map(Deed::Open),
        1 => (any::<usize>(), 0..200_usize).prop_map(|(at, room)| Deed::Take(at, room)),
        1 => (0..80_u64).prop_map(Deed::Wait),
    ]
}

proptest! {
    #![proptest_config(cases(400))]
    #[test]
    fn whatever_happens_nothing_is_left_behind(deeds in proptest::collection::vec(deed(), 1..60)) {
        let mut bench = on_bench(Config { server_pipeline: 2, server_connections: 2, ..config() });
        // Sockets that the world still has, and whether they are open.
        let mut clients: Vec<SocketId> = Vec::new();
        for deed in deeds {
            let servers: Vec<SocketId> = bench.net.connected.iter().map(|c| c.0).collect();
            let all: Vec<SocketId> = clients.iter().chain(&servers).copied().collect();
            let state = |bench: &AppBench<HttpCache>, socket: SocketId| {
                let wire = &bench.net.wires[&socket.slot];
                (wire.is_open && !wire.reset, wire.has_ended)
            };
            let pick = |at: usize| all.get(at % all.len().max(1)).copied().filter(|s| state(&bench, *s).0);
            match deed {
                Deed::Come => {
                    let client = come(&mut bench);
                    bench.net.wire(client).is_open = true;
                    clients.push(client);
                }
                Deed::Say(at, words) => {
                    if let Some(socket) = pick(at).filter(|s| !state(&bench, *s).1) {
                        bench.say(socket, words);
                    }
                }
                Deed::End(at) => {
                    if let Some(socket) = pick(at).filter(|s| !state(&bench, *s).1) {
                        bench.net.wire(socket).has_ended = true;
                        bench.event(socket, SocketEvent::Finished);
                    }
                }
                Deed::Break(at) => {
                    if let Some(socket) = pick(at) {
                        bench.net.wire(socket).reset = true;
                        bench.event(socket, SocketEvent::Closed(CloseReason::Reset));
                    }
                }
                Deed::Open(at) => {
                    let waiting = servers.iter().copied().filter(|s| {
                        let wire = &bench.net.wires[&s.slot];
                        !wire.is_open && !wire.reset
                    });
                    let waiting: Vec<SocketId> = waiting.collect();
                    if let Some(socket) = waiting.get(at % waiting.len().max(1)).copied() {
                        bench.net.wire(socket).is_open = true;
                        bench.event(socket, SocketEvent::Opened);
                    }
                }
                Deed::Take(at, room) => {
                    if let Some(socket) = pick(at) {
                        bench.net.wire(socket).room = Some(room);
                        bench.event(socket, SocketEvent::Writable);
                    }
                }
                Deed::Wait(seconds) => bench.wait(seconds),
            }
        }
        // Whoever is silent from now on is gone after the longest of all times.
        bench.wait(3 * 600);
        // Those with which both sides have ended are over; the world would say so by itself.
        let over: Vec<u32> =
            bench.net.wires.iter().filter(|(_, w)| w.has_ended && w.finished && !w.reset).map(|(s, _)| *s).collect();
        for slot in over {
            let socket = SocketId { slot, generation: 1, stream: 0 };
            bench.event(socket, SocketEvent::Closed(CloseReason::Finished));
        }
        let [open, servers, ..] = bench.app.sizes();
        prop_assert_eq!((open, servers), (0, 0));
        prop_assert_eq!(bench.app.poll_timeout(), None);
        prop_assert_eq!(bench.app.store.pending(), 0);
    }
}

#[test]
fn a_transparent_proxy_goes_where_the_client_was_going() {
    let mut bench = on_bench(Config::default());
    let client = come(&mut bench);
    // The client was connecting to 10.0.0.9 and says that this is `b`.
    bench.say(client, "GET /x HTTP/1.1\r\nHost: b\r\n\r\n");
    assert_eq!(bench.net.connected[0].1, "10.0.0.9:80".parse().expect("an address"));
    let server = bench.opened();
    bench.say(server, FRESH);
    assert!(bench.heard(server).contains("Host: b\r\n"));
    // What a liar made the proxy keep is found by those alone who were going to the same address.
    let at = |text: &str| text.parse().expect("an address");
    let other = bench.accept(at("10.0.0.7:9"), at("10.0.0.2:80"));
    bench.say(other, "GET /x HTTP/1.1\r\nHost: b\r\n\r\n");
    assert_eq!(bench.net.connected[1].1, at("10.0.0.2:80"));
}

#[test]
fn stopping_ends_idle_clients_at_once_and_others_after_their_answer() {
    let mut bench = on_bench(config());
    let (idle, busy) = (come(&mut bench), come(&mut bench));
    bench.say(busy, GET);
    let server = bench.opened();
    bench.call(|cache, cx, net| cache.handle_stop(cx, net));
    assert!(bench.net.wire(idle).finished && !bench.net.wire(busy).finished);
    bench.say(server, FRESH);
    assert!(bench.heard(busy).ends_with("hello") && bench.net.wire(busy).finished);
}

#[test]
fn nothing_is_under_way_on_connections_that_wait_for_a_request() {
    let mut bench = on_bench(config());
    let (_idle, busy) = (come(&mut bench), come(&mut bench));
    assert!(bench.app.is_quiet());
    bench.say(busy, GET);
    assert!(!bench.app.is_quiet(), "it waits for its answer");
    let server = bench.opened();
    bench.say(server, FRESH);
    assert!(bench.app.is_quiet() && bench.app.sizes()[1] == 1, "the connection to the server is kept");
    bench.say(busy, "GET http://a/y HT");
    assert!(!bench.app.is_quiet(), "half a request");
    bench.call(|cache, cx, net| cache.handle_stop(cx, net));
    bench.say(busy, "TP/1.1\r\nHost: a\r\n\r\n");
    bench.say(server, FRESH);
    assert!(bench.net.wire(busy).finished && !bench.app.is_quiet(), "its answer may be on its way");
    bench.event(busy, SocketEvent::Closed(CloseReason::Finished));
    assert!(bench.app.is_quiet());
}

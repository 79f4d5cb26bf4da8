//! Answers of the proxy itself and of the store.

use std::net::SocketAddr;

use airloom_base::{Body, Instant};
use airloom_content::http::message::{Fields, Method, Version, reason};
use serde_json::json;

use super::exchange::{Exchange, Phase};
use super::policy;
use super::store::Stored;

/// What of the fields a 304 repeats (RFC 9110, 15.4.5), and what its server has just said to one client.
const OF_304: &[&str] = &[
    "cache-control",
    "content-location",
    "date",
    "etag",
    "expires",
    "last-modified",
    "set-cookie",
    "vary",
    "via",
];

/// What says so.
const SERVER: &str = "airloom";

/// What the Connection field says after the answer.
pub(super) fn connection(exchange: &Exchange) -> &'static str {
    match (exchange.closes, exchange.head.version) {
        (true, _) => "Connection: close\r\n",
        (false, Version::Http10) => "Connection: keep-alive\r\n",
        (false, Version::Http11 | Version::Http2 | Version::Http3) => "",
    }
}

/// An answer of the proxy.
pub(super) fn own(exchange: &mut Exchange, status: u16) {
    if status == 403 && exchange.why.is_none() {
        exchange.why = exchange.target.as_ref().map(|target| forbidden(&target.host));
    }
    let mut body = format!("{status} {}\n", reason(status));
    if let (403, Some(why)) = (status, &exchange.why) {
        body += why;
        body.push('\n');
    }
    exchange.status = status;
    exchange.how = "own";
    let is_allow =
        if status == 405 || exchange.head.method == Method::Options { "Allow: GET, HEAD\r\n" } else { "" };
    // The connection is kept only if the request was read whole and nothing was wrong with it.
    exchange.closes |=
        matches!(status, 400 | 408 | 411 | 413 | 414 | 431 | 501 | 505) || exchange.upload.is_owed();
    let text = if exchange.head.method == Method::Head { "" } else { &body };
    let head = format!(
        "HTTP/1.1 {status} {}\r\nServer: {SERVER}\r\n{is_allow}Cache-Control: no-store\r\nContent-Type: text/plain\r\n\
         Content-Length: {}\r\n{}\r\n{text}",
        reason(status),
        body.len(),
        connection(exchange),
    );
    exchange.push(Body::Real(head.into()));
    exchange.octets += text.len() as u64;
    exchange.phase = Phase::Done;
}

/// Why a server is not asked.
fn forbidden(host: &str) -> String {
    format!("the address of {host} is private, loopback or the like (--allow-origin {host})")
}

/// An answer out of the store.
pub(super) fn stored(exchange: &mut Exchange, kept: &Stored, now: Instant, how: &'static str) {
    exchange.how = how;
    let is_unchanged = kept.status == 200 && policy::is_unchanged(&exchange.head.fields, &kept.fields);
    exchange.closes |= exchange.upload.is_owed();
    let mut head = Vec::with_capacity(kept.lines.len() + 160);
    let mut write = |parts: &[&[u8]]| parts.iter().for_each(|part| head.extend_from_slice(part));
    if is_unchanged {
        let few: Fields = kept
            .fields
            .iter()
            .filter(|f| OF_304.iter().any(|name| f.name.eq_ignore_ascii_case(name.as_bytes())))
            .map(|f| (f.name.clone(), f.value.clone()))
            .collect();
        exchange.status = 304;
        write(&[b"HTTP/1.1 304 Not Modified\r\n", &few.lines()]);
    } else {
        exchange.status = kept.status;
        let length = kept.length.to_string();
        write(&[b"HTTP/1.1 ", kept.status.to_string().as_bytes(), b" ", &kept.reason, b"\r\n", &kept.lines]);
        //= RFC 9110 (8.6): no Content-Length in a 204.
        if kept.status != 204 {
            write(&[b"Content-Length: ", length.as_bytes(), b"\r\n"]);
        }
    }
    //= RFC 9111 (5.1): how old it is goes with every answer that was not asked for just now.
    write(&[
        b"Age: ",
        kept.age(now).to_string().as_bytes(),
        b"\r\n",
        connection(exchange).as_bytes(),
        b"\r\n",
    ]);
    exchange.push(Body::Real(head.into()));
    if !is_unchanged && exchange.head.method != Method::Head {
        for piece in &kept.body {
            exchange.push(piece.clone());
        }
        exchange.octets += kept.length;
    }
    exchange.phase = Phase::Done;
}

/// A line of the log, as JSON. `asked_s` counts from the start.
pub(super) fn line(now: Instant, from: SocketAddr, exchange: &Exchange) -> String {
    let mut line = json!({
        "asked_s": exchange.asked.as_secs_f64(),
        "peer": from.to_string(),
        "method": exchange.head.method.name(),
        "target": String::from_utf8_lossy(&exchange.head.target),
        "status": exchange.status,
        "how": exchange.how,
        "octets": exchange.octets,
        "took_ms": now.since(exchange.asked).as_secs_f64() * 1e3,
    });
    if let (403, Some(why)) = (exchange.status, &exchange.why) {
        line["why"] = why.as_str().into();
    }
    line.to_string()
}

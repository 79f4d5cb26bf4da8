//! A line of the log, as JSON: one object for each exchange with a client, and one for each push that is over.

use airloom_base::Instant;
use airloom_proxies::wap_gateway::{Exchange, PushId, PushOutcome};
use serde_json::json;

/// `asked_s` counts from the daemon's start.
pub(super) fn line(exchange: &Exchange) -> String {
    let ms = |from: Instant, to: Instant| to.since(from).as_secs_f64() * 1e3;
    json!({
        "asked_s": exchange.asked.as_secs_f64(),
        "peer": exchange.peer,
        "session": exchange.session,
        "method": exchange.method,
        "uri": exchange.uri,
        "status": exchange.status,
        "treatment": <&str>::from(exchange.treatment),
        "why": exchange.why,
        "origin_octets": exchange.origin_octets,
        "client_octets": exchange.client_octets,
        "origin_ms": exchange.fetched.map(|at| ms(exchange.asked, at)),
        "took_ms": ms(exchange.asked, exchange.replied),
    })
    .to_string()
}

/// A push is over; `ended_s` counts from the daemon's start.
pub(super) fn push(now: Instant, id: PushId, outcome: PushOutcome) -> String {
    let outcome = match outcome {
        PushOutcome::Sent => "sent".to_owned(),
        PushOutcome::Confirmed => "confirmed".to_owned(),
        PushOutcome::Aborted(why) => format!("aborted: {why}"),
        PushOutcome::Expired => "expired".to_owned(),
        PushOutcome::TimedOut => "timed out".to_owned(),
        PushOutcome::Cancelled => "cancelled".to_owned(),
        PushOutcome::Undeliverable => "undeliverable".to_owned(),
    };
    json!({ "ended_s": now.as_secs_f64(), "push": id.0, "outcome": outcome }).to_string()
}

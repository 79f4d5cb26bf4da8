//! A line of the log, as JSON: one object for each exchange with a client.

use airloom_proxies::wap_gateway::{Exchange, Treatment};
use serde_json::json;

/// `asked_s` counts from the daemon's start.
pub(super) fn line(exchange: &Exchange) -> String {
    let ms = |from: airloom_base::Instant, to: airloom_base::Instant| to.since(from).as_secs_f64() * 1e3;
    json!({
        "asked_s": exchange.asked.as_secs_f64(),
        "peer": exchange.peer,
        "session": exchange.session,
        "method": exchange.method,
        "uri": exchange.uri,
        "status": exchange.status,
        "treatment": treatment(exchange.treatment),
        "origin_octets": exchange.origin_octets,
        "client_octets": exchange.client_octets,
        "origin_ms": exchange.fetched.map(|at| ms(exchange.asked, at)),
        "took_ms": ms(exchange.asked, exchange.replied),
    })
    .to_string()
}

fn treatment(treatment: Treatment) -> &'static str {
    match treatment {
        Treatment::None => "none",
        Treatment::PassedThrough => "passed-through",
        Treatment::Compiled => "compiled",
        Treatment::Converted => "converted",
    }
}

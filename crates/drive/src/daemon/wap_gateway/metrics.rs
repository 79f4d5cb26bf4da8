//! Numbers for Prometheus.

use airloom_proxies::wap_gateway::Gateway;

use super::super::prometheus::Page;

/// All numbers.
pub(super) fn page(gateway: &Gateway, unsent: u64) -> String {
    let c = gateway.counters();
    let mut page = Page::new("airloom_wap");
    page.counter("sessions_total", "Sessions that began.", &[("", c.sessions)]);
    page.counter("requests_total", "Requests of clients.", &[("", c.requests)]);
    let replies: Vec<(String, u64)> =
        (1..).zip(c.replies).map(|(class, n)| (format!("{{status=\"{class}xx\"}}"), n)).collect();
    let replies: Vec<(&str, u64)> = replies.iter().map(|(label, n)| (label.as_str(), *n)).collect();
    page.counter("replies_total", "Replies by class of status.", &replies);
    page.counter("abandoned_total", "Requests whose client was gone before the reply.", &[("", c.abandoned)]);
    page.counter("fetches_total", "Requests to origins, redirections among them.", &[("", c.fetches)]);
    page.counter("redirects_total", "Redirections that were followed.", &[("", c.redirects)]);
    let treated = [
        ("{treatment=\"passed-through\"}", c.passed_through),
        ("{treatment=\"compiled\"}", c.compiled),
        ("{treatment=\"converted\"}", c.converted),
    ];
    page.counter("bodies_total", "Bodies by what was done to them.", &treated);
    page.counter("cache_hits_total", "Answers that were used again.", &[("", c.cache_hits)]);
    let octets = [("{side=\"origin\"}", c.origin_octets), ("{side=\"client\"}", c.client_octets)];
    page.counter("body_octets_total", "Octets of bodies on both sides.", &octets);
    page.counter("pushes_total", "Pushes that were sent.", &[("", c.pushes)]);
    let ended = [("{outcome=\"confirmed\"}", c.pushes_confirmed), ("{outcome=\"failed\"}", c.pushes_failed)];
    page.counter(
        "pushes_ended_total",
        "Pushes that clients have confirmed, and that came to nothing.",
        &ended,
    );
    page.counter(
        "session_initiations_total",
        "Requests to clients to open a session.",
        &[("", c.initiations)],
    );
    let notices = [("{outcome=\"taken\"}", c.notices), ("{outcome=\"failed\"}", c.notices_failed)];
    page.counter("push_notices_total", "Result notifications to initiators.", &notices);
    page.counter(
        "malformed_total",
        "Datagrams without a session that could not be read.",
        &[("", c.malformed)],
    );
    let held_back = [("{reason=\"unproven\"}", c.unproven), ("{reason=\"socket\"}", unsent)];
    page.counter("datagrams_not_sent_total", "Datagrams that were not sent.", &held_back);
    let mut gauge = |name: &str, help: &str, value: usize| page.gauge(name, help, value as u64);
    gauge("sessions", "Sessions that are open or suspended.", gateway.sessions());
    gauge(
        "outstanding",
        "Requests that are not answered, or whose replies have not arrived.",
        gateway.outstanding(),
    );
    gauge("held_octets", "Octets of bodies and replies under way.", gateway.held());
    page.finish()
}

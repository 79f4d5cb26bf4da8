//! `airloom serve http-cache`: the caching proxy of the simulated network between real clients and servers.

use airloom_base::{Cx, Sockets};
use airloom_proxies::http_cache::HttpCache;
use airloom_proxies::lookup::{Found, Lookup};

use super::prometheus::Page;
use super::streams::Served;

impl Served for HttpCache {
    const LOOKS_UP: bool = true;

    fn poll_lookup(&mut self) -> Option<Lookup> {
        HttpCache::poll_lookup(self)
    }

    fn handle_lookup(&mut self, cx: &mut Cx, net: &mut dyn Sockets, id: u64, found: Found) {
        HttpCache::handle_lookup(self, cx, net, id, found);
    }

    fn handle_stop(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        HttpCache::handle_stop(self, cx, net);
    }

    fn is_quiet(&self) -> bool {
        HttpCache::is_quiet(self)
    }

    fn poll_log(&mut self) -> Option<String> {
        HttpCache::poll_log(self)
    }

    fn numbers(&self) -> String {
        let c = self.counters();
        let mut page = Page::new("airloom_http_cache");
        page.counter("connections_total", "Clients that came.", &[("", c.connections)]);
        page.counter(
            "refused_total",
            "Clients that were reset because there were too many.",
            &[("", c.refused)],
        );
        page.counter("requests_total", "Requests.", &[("", c.requests)]);
        let how = [
            ("{how=\"hit\"}", c.hits),
            ("{how=\"validated\"}", c.validated),
            ("{how=\"stale\"}", c.stale),
            ("{how=\"own\"}", c.errors),
        ];
        page.counter("answers_total", "Answers from the store, and of the proxy itself.", &how);
        page.counter("forwarded_total", "Requests for which a server was asked.", &[("", c.misses)]);
        page.counter("stored_total", "Answers that were kept.", &[("", c.stored)]);
        page.counter("retries_total", "Requests that were sent again.", &[("", c.retries)]);
        page.counter(
            "abandoned_total",
            "Requests whose client was gone before its answer.",
            &[("", c.abandoned)],
        );
        page.counter("broken_total", "Answers that broke off.", &[("", c.broken)]);
        page.counter("tunnels_total", "Tunnels that were opened.", &[("", c.tunnels)]);
        let onward =
            [("{outcome=\"opened\"}", c.server_connections), ("{outcome=\"failed\"}", c.server_failed)];
        page.counter("server_connections_total", "Connections to servers.", &onward);
        let octets = [("{side=\"server\"}", c.server_octets), ("{side=\"client\"}", c.client_octets)];
        page.counter("body_octets_total", "Octets of bodies on both sides.", &octets);
        let [clients, servers, answers, octets] = self.sizes();
        page.gauge("clients", "Clients that are connected.", clients);
        page.gauge("servers", "Connections to servers that are open.", servers);
        page.gauge("kept_answers", "Addresses of which answers are kept.", answers);
        page.gauge("kept_octets", "Octets of answers that are kept.", octets);
        page.finish()
    }
}

//! `airloom serve split-tcp`: the proxy of the simulated network between real clients and servers.

use airloom_proxies::split_tcp::SplitTcp;

use super::prometheus::Page;
use super::streams::Served;

impl Served for SplitTcp {
    fn numbers(&self) -> String {
        let c = self.counters();
        let mut page = Page::new("airloom_split_tcp");
        page.counter("connections_total", "Clients that came.", &[("", c.accepted)]);
        page.counter(
            "refused_total",
            "Clients that were reset because there were too many.",
            &[("", c.refused)],
        );
        let onward = [("{outcome=\"opened\"}", c.opened), ("{outcome=\"failed\"}", c.failed)];
        page.counter("onward_total", "Connections onward.", &onward);
        page.counter("resets_total", "Resets that were passed on.", &[("", c.reset)]);
        page.counter("idle_total", "Pairs that ended because nothing moved on them.", &[("", c.idle)]);
        let octets = [("{direction=\"up\"}", c.up), ("{direction=\"down\"}", c.down)];
        page.counter("octets_total", "Octets passed on.", &octets);
        page.gauge("pairs", "Pairs that are open.", self.pairs() as u64);
        page.gauge("buffered_peak_octets", "The most that was held of one direction.", c.peak as u64);
        page.finish()
    }
}

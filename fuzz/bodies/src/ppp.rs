//! PPP on a serial line, and its multilink.

use airloom_base::Duration;

/// A serial line of PPP, an end that negotiates, and the receiving end of a bundle of four, each fed the same octets.
pub fn ppp(octets: &[u8]) {
    use airloom_base::{Instant, random::Stream};
    use airloom_bearers::mlppp::header::{Format, Header};
    use airloom_bearers::mlppp::reassembly::{Limits, Reassembler};
    use airloom_bearers::ppp::automaton::Automaton;
    use airloom_bearers::ppp::hdlc::Deframer;
    use airloom_bearers::ppp::lcp::{Lcp, LinkOptions};
    use airloom_bearers::ppp::{frame, ipcp::Ipcp};
    let (Some(&how), rest) = (octets.first(), octets.get(1..).unwrap_or_default()) else { return };
    let mut deframer = Deframer::new(u32::from(how));
    rest.iter().for_each(|octet| deframer.push(*octet, |content| assert!(content.len() <= rest.len())));
    let _ = frame::parse(rest);

    let wants = LinkOptions { mrru: Some(1500), short_sequence: how & 1 != 0, ..LinkOptions::default() };
    let mut now = Instant::ZERO;
    let mut lcp = Automaton::new(Lcp::new(wants.clone(), Stream::new(1, "lcp"), Some(wants)), now);
    let mut ipcp = Automaton::new(Ipcp, now);
    for octets in rest.chunks(4 + usize::from(how >> 4)) {
        lcp.handle(now, octets);
        ipcp.handle(now, octets);
        assert!(std::iter::from_fn(|| lcp.poll_transmit()).count() <= 3, "an answer and a request");
        assert!(std::iter::from_fn(|| ipcp.poll_transmit()).count() <= 3, "an answer and a request");
        now += Duration::from_secs(1);
        lcp.handle_timeout(now);
        ipcp.handle_timeout(now);
    }

    let format = if how & 1 == 0 { Format::Long } else { Format::Short };
    let limits = Limits { octets: 4000, fragments: 40, packet: 1502, patience: Duration::from_secs(1) };
    let mut bundle = Reassembler::new(format, limits);
    (0..4).for_each(|member| bundle.join(member));
    for octets in rest.chunks(5) {
        let Some(header) = Header::parse(octets, format) else { break };
        let member = u16::from(octets[octets.len() - 1] % 5);
        bundle.receive(now, member, header, u64::from(octets[octets.len() - 1]) * 4, ());
        while bundle.poll().is_some() {}
        assert!(bundle.waiting().0 <= 40 && bundle.waiting().1 <= 4000);
        now += Duration::from_millis(100);
        bundle.handle_timeout(now);
    }
}

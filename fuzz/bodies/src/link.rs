//! Two ends of a transport, applications above them and a link between them, all of which do what the octets say.

use airloom_base::units::Rate;
use airloom_base::{Body, CloseReason, Duration, Instant, Packet, PathId, Protocol, TransportEvent};
use airloom_testkit::{End, Fate, LinkConfig, Offered, Pair, hash_of};

use crate::octets::Octets;

/// Octets that are written in all: enough for several windows.
const MOST_WRITTEN: u32 = 200_000;

/// More steps than any of these dialogues takes.
const ENDLESS: u64 = 1_000_000;

/// A month: an exchange that never pauses takes more steps than [`ENDLESS`] in it.
const LONG: Duration = Duration::from_secs(30 * 86_400);

/// A packet that nobody sent, made from one that was seen.
pub(crate) type Forge = fn(&mut Octets<'_>, &Offered) -> Option<Packet>;

/// Plays a dialogue to its end. What was read is what was written; where nothing was forged and nobody hung up, all of it.
pub(crate) fn play(ends: [Box<dyn Protocol>; 2], mut octets: Octets<'_>, forge: Forge) {
    let [client, server] = ends;
    let mut pair = Pair::new(client, server, link(&mut octets));
    (pair.watch, pair.endless) = (true, ENDLESS);
    let mut fates = octets.piece().to_vec().into_iter();
    pair.set_fate(Box::new(move |_| fates.next().map_or(Fate::Deliver, fate)));
    pair.open(End::Client);
    let (mut written, mut finished, mut is_forged) = ([0; 2], [false; 2], false);
    while let Some(what) = octets.next() {
        let end = if what & 1 == 0 { End::Client } else { End::Server };
        match what >> 1 & 15 {
            0..=3 => pair.drive_until(pair.now + Duration::from_millis(u64::from(octets.octet()) + 1)),
            4 => pair.drive_until(pair.now + Duration::from_secs(u64::from(octets.octet()))),
            5..=7 if !finished[end as usize] => {
                let (from, len) = (written[end as usize], u32::from(octets.number()));
                let whole = Body::filler(1 + end as u32, from + len);
                let body =
                    whole.slice(from as usize, len.min(MOST_WRITTEN - written[0] - written[1]) as usize);
                pair.with_transport(end, |transport, cx| {
                    written[end as usize] += transport.write(cx, 0, body).unwrap_or(0) as u32;
                });
            }
            8 => pair.host(end).paused = true,
            9 => pair.resume(end),
            10 if what >> 5 == 7 => {
                is_forged = true;
                pair.reset(end);
            }
            10 if what >> 5 == 6 => {
                let mtu = octets.number();
                pair.with_transport(end, |transport, cx| transport.path_mtu(cx, PathId(0), mtu));
            }
            10 => {
                finished[end as usize] = true;
                pair.finish(end);
            }
            11.. => {
                let seen = pair.seen.iter().rev().filter(|seen| seen.from != end);
                let seen = seen.take(1 + usize::from(what >> 5)).last();
                if let Some(packet) = seen.and_then(|seen| forge(&mut octets, seen)) {
                    is_forged = true;
                    pair.inject(end, packet);
                }
            }
            _ => {}
        }
    }
    for end in [End::Client, End::Server] {
        pair.resume(end);
        pair.finish(end);
    }
    if is_forged {
        // A forger can make two ends wait for each other for ever, and rightly: a window that it closed by a number ahead of the
        // peer's is probed for as long as the probes are answered (RFC 9293 3.8.6.1). Whoever has not come to rest by then hangs up.
        pair.drive_until(pair.now + LONG);
        for end in [End::Client, End::Server] {
            pair.reset(end);
        }
    }
    pair.drive();
    // A packet that opens may come again after all is over, and does open (SCTP has no TIME-WAIT): what it brings comes twice.
    let opened = |event: &&(Instant, TransportEvent)| event.1 == TransportEvent::Opened;
    is_forged |= pair.server().events.iter().filter(opened).count() > 1;
    // Each was told to finish, so one that is open waits for the other, or has a timer that asks again or gives up.
    let ended = [End::Client, End::Server].map(|end| pair.host(end).closed().is_some());
    assert!(is_forged || ended != [false; 2], "both ends stand still");
    for end in [End::Client, End::Server] {
        let other = end.other();
        let all = u64::from(written[other as usize]);
        let host = pair.host(end);
        let (received, hash, closed) = (host.received, host.hash(), host.closed());
        assert!(is_forged || received <= all, "more came out than went in");
        assert!(is_forged || closed != Some(CloseReason::Finished) || received == all, "{received} of {all}");
        if !is_forged {
            let expected = hash_of(&[Body::filler(1 + other as u32, received as u32)]);
            assert_eq!(hash, expected, "what came out is not what went in");
        }
    }
}

fn link(octets: &mut Octets<'_>) -> LinkConfig {
    let rate = octets
        .one_of(&[None, Some(9600), Some(64_000), Some(2_000_000)])
        .and_then(Rate::from_bits_per_second);
    let queue = octets.one_of(&[usize::MAX, 1, 3, 20]);
    let delay = Duration::from_millis(octets.octet().into());
    LinkConfig { rate: [rate; 2], delay, queue, ..LinkConfig::default() }
}

fn fate(octet: u8) -> Fate {
    let more = u64::from(octet >> 3);
    match octet & 7 {
        0..=2 => Fate::Deliver,
        3 | 4 => Fate::Lose,
        5 => Fate::Duplicate,
        6 => Fate::Late(Duration::from_millis(more * 10)),
        _ => Fate::Late(Duration::from_millis(more * 500)),
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::service::{Described, FlowFacts, Identity, Path, WriteError};
    use airloom_base::{Cx, Outgoing, Transport};

    use super::*;

    /// Sends nothing, and waits for ever.
    struct Still;

    impl Transport for Still {
        fn connect(&mut self, _: &mut Cx) {}
        fn handle_packet(&mut self, _: &mut Cx, _: PathId, _: u8, _: Packet) {}
        fn poll_transmit(&mut self, _: &mut Cx) -> Option<Outgoing> {
            None
        }
        fn poll_event(&mut self) -> Option<TransportEvent> {
            None
        }
        fn poll_timeout(&self) -> Option<Instant> {
            None
        }
        fn handle_timeout(&mut self, _: &mut Cx) {}
        fn write(&mut self, _: &mut Cx, _: u32, _: Body) -> Result<usize, WriteError> {
            Err(WriteError::Closed)
        }
        fn read(&mut self, _: &mut Cx, _: u32, _: usize) -> Option<Body> {
            None
        }
        fn finish(&mut self, _: &mut Cx, _: u32) {}
        fn reset(&mut self, _: &mut Cx) {}
        fn path_mtu(&mut self, _: &mut Cx, _: PathId, _: u16) {}
        fn facts(&self) -> FlowFacts {
            FlowFacts::default()
        }
        fn into_lingering(self: Box<Self>) -> Box<dyn Transport> {
            self
        }
    }

    impl Protocol for Still {
        fn name(&self) -> &'static str {
            "still"
        }
        fn ip_protocol(&self) -> u8 {
            254
        }
        fn open(&mut self, _: &mut Cx, _: Path, _: (u16, u16), _: Identity) -> Box<dyn Transport> {
            Box::new(Still)
        }
        fn accept(
            &mut self,
            _: &mut Cx,
            _: Path,
            _: (u16, u16),
            _: Identity,
            _: &Packet,
        ) -> Option<Box<dyn Transport>> {
            None
        }
        fn refuse(&mut self, _: &Packet) -> Option<Packet> {
            None
        }
        fn describe(&self, _: &[u8]) -> Described {
            Described::default()
        }
    }

    #[test]
    #[should_panic(expected = "both ends stand still")]
    fn two_ends_that_wait_for_ever_are_a_finding() {
        play([Box::new(Still), Box::new(Still)], Octets::new(&[]), |_, _| None);
    }
}

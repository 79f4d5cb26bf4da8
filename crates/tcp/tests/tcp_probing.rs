//! TCP-Probing from the outside: an outage suspends it, probes wait it out, and the window is what it was.

use airloom_base::record::Record;
use airloom_base::units::Rate;
use airloom_base::{Body, CloseReason, Duration, Instant, TransportEvent};
use airloom_tcp::config::{Congestion, ProportionalReduction};
use airloom_tcp::wire::{Header, ProbeStep};
use airloom_tcp::{Config, Profile, Tcp};
use airloom_testkit::{End, Fate, LinkConfig, Offered, Pair, Sent};

const SIZE: u32 = 3_000_000;

fn seconds(s: f64) -> Instant {
    Instant::ZERO + Duration::from_nanos((s * 1e9) as u64)
}

fn config(congestion: Congestion, sack: bool) -> Config {
    Config { congestion, sack, ..Profile::Rfc.settings() }
}

struct Outcome {
    /// Seconds until all was read.
    took: f64,
    /// (moment, window, threshold), at each change.
    windows: Vec<(Instant, u64, u64)>,
    seen: Vec<Offered>,
}

impl Outcome {
    fn window_at(&self, at: Instant) -> (u64, u64) {
        let last = self.windows.iter().rev().find(|w| w.0 <= at).expect("a window");
        (last.1, last.2)
    }

    /// Data segments that the client sent in a span, and its probes.
    fn sent(&self, from: Instant, to: Instant) -> (usize, usize) {
        let of_client = self.seen.iter().filter(|s| s.from == End::Client && s.at >= from && s.at < to);
        let probes = of_client.clone().filter(|s| probe(s).is_some()).count();
        (of_client.filter(|s| s.body > 0).count(), probes)
    }
}

fn probe(seen: &Offered) -> Option<ProbeStep> {
    Header::parse(&seen.head).ok()?.0.options.probe.map(|p| p.step)
}

/// An upload at 4 Mbit/s and 100 ms with nothing getting through from `outage.0` to `outage.1`, and with the packets of the
/// client `lost` by their numbers lost.
fn upload(configs: [Config; 2], outage: (f64, f64), lost: &'static [u64]) -> Outcome {
    let (from, to) = (seconds(outage.0), seconds(outage.1));
    upload_with(configs, move |sent| {
        let lost = sent.from == End::Client && lost.contains(&sent.index);
        if lost || (sent.at >= from && sent.at < to) { Fate::Lose } else { Fate::Deliver }
    })
}

fn upload_with(configs: [Config; 2], fate: impl FnMut(&Sent) -> Fate + 'static) -> Outcome {
    let [near, far] = configs;
    let link = LinkConfig {
        rate: [Some(Rate::kbit(4000)); 2],
        delay: Duration::from_millis(50),
        overhead: 20,
        ..LinkConfig::default()
    };
    let mut pair = Pair::new(Box::new(Tcp::new(near, 1)), Box::new(Tcp::new(far, 2)), link);
    pair.outbox.ask_facts(false, true);
    pair.watch = true;
    pair.set_fate(Box::new(fate));
    pair.open(End::Client);
    pair.write(End::Client, Body::filler(1, SIZE));
    pair.finish(End::Client);
    pair.finish(End::Server);
    pair.drive();
    assert_eq!(pair.server().received, u64::from(SIZE));
    assert_eq!(pair.client().closed(), Some(CloseReason::Finished));
    let windows = pair.outbox.facts.iter().filter_map(|record| match record {
        Record::Congestion(c) if c.host == End::Client as u16 => Some((c.at, c.cwnd, c.ssthresh)),
        _ => None,
    });
    let windows: Vec<_> = windows.collect();
    Outcome {
        took: pair.server().when(TransportEvent::Finished(0)).expect("all was read").as_secs_f64(),
        windows,
        seen: std::mem::take(&mut pair.seen),
    }
}

#[test]
fn an_outage_is_waited_out_by_probes_and_costs_no_window() {
    for sack in [true, false] {
        let both = |congestion| [config(congestion, sack), config(Congestion::NewReno, sack)];
        let probing = upload(both(Congestion::Probing), (2.0, 7.0), &[]);
        let newreno = upload(both(Congestion::NewReno), (2.0, 7.0), &[]);
        // Suspended after the first timeout: nothing but probes leaves until one is answered.
        let (data, probes) = probing.sent(seconds(4.5), seconds(7.0));
        assert_eq!(data, 0);
        assert!((1..10).contains(&probes), "{probes}");
        let (data, probes) = newreno.sent(seconds(4.5), seconds(7.0));
        assert!(data > 0 && probes == 0);
        // The window is what it was, and NewReno's is not.
        let before = probing.window_at(seconds(2.0));
        let after = probing.seen.iter().find(|s| s.from == End::Client && s.body > 0 && s.at > seconds(7.0));
        let after = probing.window_at(after.expect("it goes on").at);
        assert!(after.0 >= before.0 && after.1 >= before.1, "{before:?} {after:?}");
        let reduced = newreno.windows.iter().filter(|w| w.0 > seconds(7.0)).map(|w| w.1).min();
        assert!(reduced < Some(before.0 / 2));
        println!("sack {sack}: probing {:.2} s, newreno {:.2} s", probing.took, newreno.took);
        assert!(probing.took < newreno.took);
    }
}

#[test]
fn one_lost_segment_costs_two_probes_and_no_window() {
    for sack in [true, false] {
        let configs = [config(Congestion::Probing, sack), config(Congestion::NewReno, sack)];
        let outcome = upload(configs, (900.0, 900.0), &[60]);
        let steps: Vec<_> = outcome.seen.iter().filter_map(probe).collect();
        assert_eq!(
            steps,
            [
                ProbeStep::Permitted,
                ProbeStep::Permitted,
                ProbeStep::Probe1,
                ProbeStep::Answer1,
                ProbeStep::Probe2,
                ProbeStep::Answer2
            ]
        );
        let last = outcome.windows.last().expect("windows");
        assert_eq!(last.2, u64::MAX, "the threshold was never set for good");
    }
}

#[test]
fn where_probes_take_longer_than_the_round_trip_before_the_window_is_reduced() {
    for sack in [true, false] {
        let configs = [config(Congestion::Probing, sack), config(Congestion::NewReno, sack)];
        let outcome = upload_with(configs, |sent| match sent.from {
            End::Client if sent.index == 60 => Fate::Lose,
            // Beside its SYN and the end of the handshake it is probes that have no data.
            End::Client if sent.body == 0 && sent.index > 1 => Fate::Late(Duration::from_secs(1)),
            _ => Fate::Deliver,
        });
        assert!(outcome.seen.iter().any(|s| probe(s) == Some(ProbeStep::Answer2)));
        assert!(outcome.windows.iter().any(|w| w.2 < u64::MAX), "a threshold was set");
    }
}

#[test]
fn with_proportional_rate_reduction_the_window_falls_after_probes_as_it_does_without_them() {
    for sack in [true, false] {
        let prr = ProportionalReduction::Safe;
        let configs = [
            Config { prr, ..config(Congestion::Probing, sack) },
            Config { prr, ..config(Congestion::NewReno, sack) },
        ];
        let outcome = upload_with(configs, |sent| match sent.from {
            // The first is repaired while the second is not, so that recovery lasts.
            End::Client if [60, 62].contains(&sent.index) => Fate::Lose,
            End::Client if sent.body == 0 && sent.index > 1 => Fate::Late(Duration::from_secs(1)),
            _ => Fate::Deliver,
        });
        let first = outcome.windows.iter().position(|w| w.2 < u64::MAX).expect("a threshold was set");
        let (before, reduced) = (outcome.windows[first - 1].1, outcome.windows[first].0);
        let soon = outcome.windows[first..].iter().take_while(|w| w.0 < reduced + Duration::from_secs(2));
        let most = soon.map(|w| w.1).max().expect("windows");
        // Limited transmit had let two segments more out.
        assert!(most <= before + 4 * 1460, "sack {sack}: {before} {most}");
    }
}

#[test]
fn a_peer_that_does_not_know_probes_gets_newreno() {
    // The same octets as NewReno but for the option in the SYN; the peer is one that strips it.
    let other = Config { congestion: Congestion::Probing, ..config(Congestion::Probing, true) };
    let plain =
        upload([config(Congestion::NewReno, true), config(Congestion::NewReno, true)], (2.0, 3.0), &[40]);
    assert!(plain.seen.iter().all(|s| probe(s).is_none()), "who did not ask is not offered it");
    let asked = upload([config(Congestion::NewReno, true), other], (2.0, 3.0), &[40]);
    assert!(asked.seen.iter().all(|s| probe(s).is_none()), "nor does an answer offer what was not asked");
    assert_eq!(plain.took, asked.took);
}

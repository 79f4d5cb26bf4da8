//! Transfers between two simulated TCPs: exact octets and a clean end, whatever the link does.

use airloom_base::units::Rate;
use airloom_base::{Body, CloseReason, Duration, Instant, TransportEvent};
use airloom_tcp::{Config, Profile, Tcp};
use airloom_testkit::{End, Fate, LinkConfig, Pair, hash_of};

fn tcp(config: &Config, secret: u64) -> Box<Tcp> {
    Box::new(Tcp::new(config.clone(), secret))
}

fn pair(config: &Config, link: LinkConfig) -> Pair {
    Pair::new(tcp(config, 1), tcp(config, 2), link)
}

fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// The server sends `len` octets and finishes; the client finishes when it hears that.
fn download(pair: &mut Pair, len: u32) {
    pair.open(End::Client);
    pair.write(End::Client, Body::Real(vec![7; 100].into()));
    while !pair.server().saw(TransportEvent::Readable(0, 100)) {
        let next = pair.next_step().expect("the request arrives");
        pair.drive_until(next);
    }
    pair.write(End::Server, Body::filler(3, len));
    pair.finish(End::Server);
    while !pair.client().saw(TransportEvent::Finished(0)) {
        let next = pair.next_step().expect("the answer arrives");
        pair.drive_until(next);
    }
    pair.finish(End::Client);
    pair.drive();
    assert_eq!(pair.client().received, u64::from(len));
    assert_eq!(pair.client().hash(), hash_of(&[Body::filler(3, len)]));
    assert_eq!(pair.server().received, 100);
    pair.assert_idle();
}

#[test]
fn a_transfer_without_losses_ends_cleanly_in_every_profile() {
    for profile in Profile::ALL {
        let rate = [Some(Rate::kbit(10_000)); 2];
        let mut pair = pair(&profile.settings(), LinkConfig { rate, ..LinkConfig::default() });
        download(&mut pair, 300_000);
        assert_eq!(pair.client().closed(), Some(CloseReason::Finished), "{profile:?}");
        assert_eq!(pair.server().closed(), Some(CloseReason::Finished), "{profile:?}");
        assert!(pair.server().saw(TransportEvent::Lingering));
        assert!(!pair.client().saw(TransportEvent::Lingering));
    }
}

#[test]
fn any_two_losses_are_repaired_and_leave_nothing_behind() {
    for profile in Profile::ALL {
        for first in 0..14 {
            for second in first + 1..14 {
                for end in [End::Client, End::Server] {
                    let mut pair = pair(&profile.settings(), LinkConfig::default());
                    pair.set_fate(airloom_testkit::lose(end, &[first, second]));
                    download(&mut pair, 12_000);
                }
            }
        }
    }
}

#[test]
fn duplicates_and_late_packets_change_nothing() {
    for profile in Profile::ALL {
        let mut pair = pair(&profile.settings(), LinkConfig::default());
        pair.set_fate(Box::new(|sent| match sent.index % 7 {
            2 => Fate::Duplicate,
            3 => Fate::Late(Duration::from_millis(13)),
            5 => Fate::Late(Duration::from_millis(90)),
            _ => Fate::Deliver,
        }));
        download(&mut pair, 200_000);
    }
}

#[test]
fn the_handshake_takes_a_round_trip_and_data_comes_with_the_next_segment() {
    let mut pair = pair(&Profile::Rfc.settings(), LinkConfig::default());
    pair.open(End::Client);
    pair.drive_until(at_ms(100));
    assert!(pair.client().saw(TransportEvent::Opened));
    assert!(!pair.server().saw(TransportEvent::Opened));
    pair.write(End::Client, Body::filler(1, 10));
    pair.drive_until(at_ms(150));
    assert_eq!(pair.server().received, 10);
}

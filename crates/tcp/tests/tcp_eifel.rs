//! Eifel detection (RFC 3522) and response (RFC 4015), segment by segment. Timestamps leave 988 octets a segment.

mod dialogue;

use airloom_tcp::config::{Config, InitialWindow, RttSampling};
use dialogue::*;

const LEN: i64 = 988;

/// A sender with ten segments under way since 1 ms after its timestamp clock showed `stamp`.
fn sender(eifel: bool) -> (Dialogue, u32) {
    sender_with(Config { eifel, ..plain() })
}

fn sender_with(config: Config) -> (Dialogue, u32) {
    let config = Config {
        timestamps: true,
        rtt_sampling: RttSampling::Timestamps,
        initial_window: InitialWindow::Segments(10),
        ..config
    };
    let mut d = Dialogue::new(config);
    d.timestamps = Some((1, 0));
    d.listen_and_take_syn();
    d.arrives(ACK, THEIRS, OURS, 0);
    d.pass(ms(10));
    let out = d.write(900_000);
    assert_eq!(out.len(), 10);
    let (stamp, _) = out[0].options.timestamps.expect("a timestamp");
    (d, stamp)
}

/// An acknowledgement of the first `segments` that echoes `echo`; returns the numbers of the segments that leave.
fn acknowledged(d: &mut Dialogue, segments: i64, echo: u32) -> Vec<i64> {
    d.timestamps = Some((2, echo));
    let out = d.arrives(ACK, THEIRS, 1 + LEN * segments, 0);
    out.iter().filter(|o| o.len > 0).map(|o| (o.seq - 1) / LEN).collect()
}

#[test]
fn rfc_3522_3_2_an_echo_from_before_the_retransmission_means_that_nothing_was_lost() {
    let (mut d, stamp) = sender(true);
    let (_, again) = d.pass(secs(1)).remove(0);
    assert_eq!(again.seq, 1);
    //= RFC 4015 (3.1): the flight of nine, and one segment: new data goes on, nothing more is sent again.
    assert_eq!(acknowledged(&mut d, 1, stamp), [10]);
    // The threshold is what it was: slow start, two for one.
    assert_eq!(acknowledged(&mut d, 2, stamp), [11, 12]);
}

#[test]
fn rfc_3522_3_2_an_echo_of_the_retransmission_means_a_loss() {
    let (mut d, _) = sender(true);
    let (_, again) = d.pass(secs(1)).remove(0);
    let (stamp, _) = again.options.timestamps.expect("a timestamp");
    // Slow start over what was outstanding.
    assert_eq!(acknowledged(&mut d, 1, stamp), [1, 2]);
}

#[test]
fn without_eifel_a_spurious_timeout_resends_what_was_outstanding() {
    let (mut d, stamp) = sender(false);
    d.pass(secs(1));
    assert_eq!(acknowledged(&mut d, 1, stamp), [1, 2]);
}

#[test]
fn rfc_3522_3_3_if_everything_is_acknowledged_at_once_all_acknowledgements_may_have_been_lost() {
    let (mut d, stamp) = sender(true);
    d.pass(secs(1));
    // Taken for a loss: the window is that of slow start after one segment.
    assert_eq!(acknowledged(&mut d, 10, stamp), [10, 11]);
}

#[test]
fn rfc_3522_3_2_a_duplicate_reported_before_the_timeout_says_nothing_of_it() {
    let (mut d, stamp) = sender_with(Config { eifel: true, sack: true, ..plain() });
    assert_eq!(acknowledged(&mut d, 1, stamp), [10, 11]);
    // The network repeated the first segment.
    assert_eq!(d.sack_arrives(1 + LEN, &[(1, 1 + LEN)]), []);
    let out = d.pass(secs(2));
    assert_eq!((out.len(), out[0].1.seq), (1, 1 + LEN));
    // The originals were only late: the flight of nine, and two segments.
    assert_eq!(acknowledged(&mut d, 3, stamp), [12, 13]);
}

#[test]
fn rfc_4015_3_1_the_first_round_trip_time_after_a_spurious_timeout_counts_in_full() {
    let (mut d, stamp) = sender(true);
    d.pass(secs(2));
    assert_eq!(acknowledged(&mut d, 1, stamp), [10]);
    // The new segment is answered 900 ms after it left.
    d.pass(ms(900));
    assert_eq!(acknowledged(&mut d, 11, stamp + 2000).len(), 11);
    let from = d.now.as_nanos() / 1_000_000;
    let out = d.pass(secs(60));
    // 900 ms + 4 * 450 ms; smoothed it would have been less than the floor of a second.
    assert_eq!(out[0].0 - from, 2700);
}

//! What a TCP sends and when: windows, short segments, probes, timers, recovery. Segments have 1000 octets.

mod dialogue;

use airloom_base::record::Record;
use airloom_base::units::Octets;
use airloom_base::{CloseReason, TransportEvent::*};
use airloom_tcp::Profile;
use airloom_tcp::config::{
    AckCounting, AckPolicy, Config, Congestion, IdleRestart, InitialWindow, Nagle, PartialAck, RttSampling,
    SackAfterRto, WindowProbe,
};
use airloom_tcp::wire::Flags;
use dialogue::*;

/// (sequence number, length) of each segment with data.
fn data(out: &[Out]) -> Vec<(i64, usize)> {
    out.iter().filter(|o| o.len > 0).map(|o| (o.seq, o.len)).collect()
}

fn timed(out: &[(u64, Out)]) -> Vec<(u64, i64, usize)> {
    out.iter().map(|(at, o)| (*at, o.seq, o.len)).collect()
}

/// `n` full segments from `seq` on.
fn full(seq: i64, n: i64) -> Vec<(i64, usize)> {
    (0..n).map(|i| (seq + 1000 * i, 1000)).collect()
}

/// A sender with a window of `segments` and data for ever.
fn sender(config: Config, segments: u16) -> Dialogue {
    let config = Config { initial_window: InitialWindow::Segments(segments), ..config };
    let mut d = Dialogue::established(config);
    assert_eq!(data(&d.write(900_000)), full(1, i64::from(segments)));
    d
}

fn with_sack() -> Config {
    Config { sack: true, ..plain() }
}

// Windows

#[test]
fn rfc_6928_the_initial_window_limits_the_first_flight() {
    for (window, segments) in [(InitialWindow::Segments(3), 3), (InitialWindow::Segments(10), 10)] {
        let mut d = Dialogue::established(Config { initial_window: window, ..plain() });
        assert_eq!(data(&d.write(50_000)), full(1, segments));
    }
}

#[test]
fn rfc_5681_3_1_slow_start_lets_out_two_for_one() {
    let mut d = sender(plain(), 4);
    assert_eq!(data(&d.arrives(ACK, 1, 1001, 0)), full(4001, 2));
    assert_eq!(data(&d.arrives(ACK, 1, 2001, 0)), full(6001, 2));
}

#[test]
fn the_peers_window_limits_the_flight() {
    let mut d = Dialogue::new(Config { initial_window: InitialWindow::Segments(10), ..plain() });
    d.window = 3500;
    d.listen_and_take_syn();
    d.arrives(ACK, 1, 1, 0);
    // A part of a segment is not worth it.
    assert_eq!(data(&d.write(50_000)), full(1, 3));
    assert_eq!(data(&d.arrives(ACK, 1, 1001, 0)), full(3001, 1));
}

#[test]
fn rfc_9293_3_8_6_2_1_the_override_timer_lets_out_what_a_small_window_takes() {
    let mut d = Dialogue::new(plain());
    d.window = 5000;
    d.listen_and_take_syn();
    d.window = 300;
    d.arrives(ACK, 1, 1, 0);
    d.arrives(ACK, 1, 1, 1);
    assert_eq!(data(&d.write(2000)), []);
    assert_eq!(timed(&d.pass(secs(1))), [(1000, 1, 300)]);
}

#[test]
fn a_window_that_shrank_stops_new_data_and_not_retransmissions() {
    let mut d = sender(plain(), 4);
    d.window = 0;
    assert_eq!(data(&d.arrives(ACK, 1, 1001, 0)), []);
    let out = d.pass(secs(4));
    assert_eq!(out.iter().map(|(_, o)| (o.seq, o.len)).collect::<Vec<_>>(), [(1001, 1000), (1001, 1000)]);
    assert_eq!(d.told(), []);
}

// Nagle

#[test]
fn rfc_896_a_short_segment_waits_while_anything_is_outstanding() {
    let mut d = Dialogue::established(plain());
    assert_eq!(data(&d.write(100)), [(1, 100)]);
    assert_eq!(data(&d.write(100)), []);
    assert_eq!(data(&d.write(850)), []);
    assert_eq!(data(&d.write(60)), [(101, 1000)]);
    assert_eq!(data(&d.arrives(ACK, 1, 1101, 0)), [(1101, 10)]);
}

#[test]
fn minshall_a_short_segment_waits_for_another_short_one_only() {
    let mut d = Dialogue::established(Config { nagle: Nagle::Minshall, ..plain() });
    assert_eq!(data(&d.write(1100)), [(1, 1000), (1001, 100)]);
    assert_eq!(data(&d.write(100)), []);
    assert_eq!(data(&d.arrives(ACK, 1, 1101, 0)), [(1101, 100)]);
}

#[test]
fn without_nagle_everything_leaves_at_once_and_the_last_segment_before_fin_always_does() {
    let mut d = Dialogue::established(Config { nagle: Nagle::Off, ..plain() });
    assert_eq!(data(&d.write(10)), [(1, 10)]);
    assert_eq!(data(&d.write(10)), [(11, 10)]);
    let mut d = Dialogue::established(plain());
    d.write(10);
    assert_eq!(data(&d.write(10)), []);
    assert_eq!(brief(&d.finish()), [(Flags(0x19), 11, 1, 10)]);
}

// Closed window, keep-alive, giving up

#[test]
fn rfc_9293_3_8_6_1_a_closed_window_is_probed_ever_more_rarely_and_for_ever_while_answered() {
    for (probe, seq, len) in [(WindowProbe::Octet, 1, 1), (WindowProbe::Empty, 0, 0)] {
        let mut d = Dialogue::new(Config { window_probe: probe, ..plain() });
        d.listen_and_take_syn();
        d.window = 0;
        d.arrives(ACK, 1, 1, 0);
        assert_eq!(data(&d.write(5000)), []);
        let mut times = Vec::new();
        while d.now < airloom_base::Instant::ZERO + secs(1000) {
            for (at, out) in d.pass(secs(1)) {
                assert_eq!((out.seq, out.len), (seq, len));
                times.push(at / 1000);
                d.arrives(ACK, 1, 1, 0);
            }
        }
        assert_eq!(times[..8], [1, 3, 7, 15, 31, 63, 123, 183]);
        assert!(times.len() > 20);
        assert_eq!(d.told(), [Opened]);
        d.window = 5000;
        assert_eq!(data(&d.arrives(ACK, 1, 1, 0)), full(1, 4));
    }
}

#[test]
fn a_probe_that_was_taken_counts_as_sent() {
    let mut d = Dialogue::new(plain());
    d.listen_and_take_syn();
    d.window = 0;
    d.arrives(ACK, 1, 1, 0);
    d.write(2001);
    assert_eq!(timed(&d.pass(secs(1))), [(1000, 1, 1)]);
    d.window = 5000;
    assert_eq!(data(&d.arrives(ACK, 1, 2, 0)), full(2, 2));
}

#[test]
fn a_peer_that_answers_no_probe_is_given_up() {
    let mut d = Dialogue::new(plain());
    d.listen_and_take_syn();
    d.window = 0;
    d.arrives(ACK, 1, 1, 0);
    d.write(10);
    d.pass(secs(2000));
    assert!(d.told().contains(&Closed(CloseReason::TimedOut)));
    assert!(d.conn.is_none());
}

#[test]
fn rfc_9293_3_8_3_data_that_is_never_acknowledged_ends_the_connection() {
    let mut d = sender(plain(), 2);
    let out = d.pass(secs(1000));
    let times: Vec<u64> = out.iter().filter(|(_, o)| o.len > 0).map(|(at, _)| at / 1000).collect();
    assert_eq!(times, [1, 3, 7, 15, 31, 63, 123, 183, 243]);
    assert_eq!(out.last().map(|(at, o)| (at / 1000, o.flags)), Some((303, RST_ACK)));
    assert_eq!(d.told(), [Closed(CloseReason::TimedOut), Gone]);
}

#[test]
fn rfc_9293_3_8_4_keep_alive_probes_an_idle_connection_and_gives_a_dead_one_up() {
    let config =
        Config { keepalive: true, keepalive_idle: secs(100), keepalive_interval: secs(10), ..plain() };
    let mut d = Dialogue::established(Config { keepalive_probes: 3, ..config });
    assert_eq!(timed(&d.pass(secs(101))), [(100_000, 0, 0)]);
    assert_eq!(brief(&d.arrives(ACK, 1, 1, 0)), []);
    let out = d.pass(secs(1000));
    assert_eq!(timed(&out[..3]), [(201_000, 0, 0), (211_000, 0, 0), (221_000, 0, 0)]);
    assert_eq!(out[3].1.flags, RST_ACK);
    assert_eq!(d.told(), [Closed(CloseReason::TimedOut), Gone]);
    let mut off = Dialogue::established(plain());
    assert_eq!(off.pass(secs(100_000)), []);
    assert!(off.conn.is_some());
}

// Idle times

#[test]
fn the_window_after_an_idle_time() {
    for (restart, expected) in
        [(IdleRestart::Off, 12), (IdleRestart::InitialWindow, 4), (IdleRestart::Halve, 6)]
    {
        let config = Config { idle_restart: restart, initial_window: InitialWindow::Segments(4), ..plain() };
        let mut d = Dialogue::established(config);
        d.write(8000);
        for ack in [1001, 2001, 3001, 4001, 5001, 6001, 7001, 8001] {
            d.arrives(ACK, 1, ack, 0);
        }
        d.pass(secs(2));
        assert_eq!(data(&d.write(30_000)).len(), expected, "{restart:?}");
    }
}

#[test]
fn a_flow_that_does_not_use_its_window_does_not_enlarge_it() {
    for (validation, expected) in [(true, 4), (false, 14)] {
        let config = Config {
            cwnd_validation: validation,
            idle_restart: IdleRestart::Off,
            initial_window: InitialWindow::Segments(4),
            ..plain()
        };
        let mut d = Dialogue::established(config);
        for i in 0..10 {
            d.write(1000);
            d.arrives(ACK, 1, 1001 + 1000 * i, 0);
        }
        assert_eq!(data(&d.write(30_000)).len(), expected);
    }
}

// Timeout

#[test]
fn rfc_6298_5_a_timeout_resends_the_first_segment_and_slow_start_the_rest() {
    let mut d = sender(plain(), 4);
    assert_eq!(timed(&d.pass(secs(1))), [(1000, 1, 1000)]);
    // The window is one segment, then two.
    assert_eq!(data(&d.arrives(ACK, 1, 1001, 0)), full(1001, 2));
    // The threshold is two segments: avoidance, one for one.
    assert_eq!(data(&d.arrives(ACK, 1, 2001, 0)), full(3001, 1));
    // All that was lost is acknowledged.
    assert_eq!(data(&d.arrives(ACK, 1, 4001, 0)), full(4001, 3));
}

#[test]
fn rfc_6298_5_5_and_karn_the_timeout_stays_doubled_until_new_data_is_timed() {
    let mut d = sender(plain(), 1);
    assert_eq!(timed(&d.pass(secs(3))), [(1000, 1, 1000), (3000, 1, 1000)]);
    // The acknowledgement of a segment sent three times says nothing about the round-trip time.
    d.arrives(ACK, 1, 1001, 0);
    assert_eq!(timed(&d.pass(secs(4))), [(7000, 1001, 1000)]);
}

#[test]
fn rfc_6582_3_2_4_duplicates_of_what_was_sent_before_a_timeout_start_no_recovery() {
    let mut d = sender(plain(), 8);
    d.pass(secs(1));
    for _ in 0..5 {
        assert_eq!(data(&d.arrives(ACK, 1, 1, 0)), []);
    }
}

// Fast retransmit and recovery without SACK

#[test]
fn rfc_3042_two_duplicates_let_two_new_segments_out() {
    let mut d = sender(plain(), 5);
    assert_eq!(data(&d.arrives(ACK, 1, 1, 0)), full(5001, 1));
    assert_eq!(data(&d.arrives(ACK, 1, 1, 0)), full(6001, 1));
    let mut d = sender(Config { limited_transmit: false, ..plain() }, 5);
    assert_eq!(data(&d.arrives(ACK, 1, 1, 0)), []);
}

/// Ten segments out, the first is lost; eight duplicates come. Returns what left for each.
fn first_of_ten_lost(config: Config) -> (Dialogue, Vec<Vec<(i64, usize)>>) {
    let mut d = sender(Config { limited_transmit: false, ..config }, 10);
    let out = (0..9).map(|_| data(&d.arrives(ACK, 1, 1, 0))).collect();
    (d, out)
}

#[test]
fn rfc_5681_3_2_fast_retransmit_inflates_and_deflates() {
    for congestion in [Congestion::Reno, Congestion::NewReno] {
        let (mut d, out) = first_of_ten_lost(Config { congestion, ..plain() });
        // The window is 5 + 3 at the third duplicate and grows by one with each: at eleven, one is new.
        let expected = [vec![], vec![], full(1, 1), vec![], vec![], full(10_001, 1), full(11_001, 1)];
        assert_eq!(out[..7], expected, "{congestion:?}");
        assert_eq!(out[7..], [full(12_001, 1), full(13_001, 1)]);
        // All ten and the four new are out there; one round trip later the window is 5.
        assert_eq!(data(&d.arrives(ACK, 1, 10_001, 0)), full(14_001, 1));
    }
}

#[test]
fn tahoe_starts_again_with_one_segment() {
    let (mut d, out) = first_of_ten_lost(Config { congestion: Congestion::Tahoe, ..plain() });
    assert_eq!(out[2], full(1, 1));
    assert!(out[3..].iter().all(Vec::is_empty));
    assert_eq!(data(&d.arrives(ACK, 1, 10_001, 0)), full(10_001, 2));
}

#[test]
fn rfc_6582_3_2_a_partial_acknowledgement_resends_the_next_hole_reno_waits_for_duplicates() {
    let (mut d, _) = first_of_ten_lost(plain());
    // The fourth is missing too: resend it, take three out of the window, put one back: 14 - 3 + 1 = 12.
    assert_eq!(data(&d.arrives(ACK, 1, 3001, 0)), [(3001, 1000), (14_001, 1000)]);
    let (mut d, _) = first_of_ten_lost(Config { congestion: Congestion::Reno, ..plain() });
    assert_eq!(data(&d.arrives(ACK, 1, 3001, 0)), []);
}

#[test]
fn rfc_6582_4_the_timer_starts_again_at_the_first_partial_acknowledgement_or_at_each() {
    for (partial_ack, expected) in [(PartialAck::Impatient, 1400), (PartialAck::SlowButSteady, 1800)] {
        let (mut d, _) = first_of_ten_lost(Config { partial_ack, ..plain() });
        d.pass(ms(400));
        d.arrives(ACK, 1, 3001, 0);
        d.pass(ms(400));
        d.arrives(ACK, 1, 6001, 0);
        assert_eq!(d.pass(secs(1))[0].0, expected, "{partial_ack:?}");
    }
}

#[test]
fn rfc_5681_2_an_acknowledgement_with_data_or_another_window_is_no_duplicate() {
    let mut d = sender(Config { limited_transmit: false, ..plain() }, 4);
    for i in 0..5 {
        assert_eq!(data(&d.arrives(ACK, 1 + 10 * i, 1, 10)), []);
    }
    for _ in 0..5 {
        d.window -= 1;
        assert_eq!(data(&d.arrives(ACK, 51, 1, 0)), []);
    }
    d.arrives(ACK, 51, 1, 0);
    d.arrives(ACK, 51, 1, 0);
    // Two segments and three: one more than is in flight.
    assert_eq!(data(&d.arrives(ACK, 51, 1, 0)), [(1, 1000), (4001, 1000)]);
}

// SACK

#[test]
fn rfc_6675_lost_holes_first_then_new_data_as_the_pipe_empties() {
    let mut d = sender(Config { limited_transmit: false, ..with_sack() }, 10);
    // Segments 1 and 3 are lost.
    assert_eq!(data(&d.sack_arrives(1, &[(1001, 2001)])), []);
    assert_eq!(data(&d.sack_arrives(1, &[(3001, 4001), (1001, 2001)])), []);
    // Third: recovery. Window 5; pipe = 10 - 3 - 1 (lost) + 1 (resent) = 7.
    assert_eq!(data(&d.sack_arrives(1, &[(3001, 5001), (1001, 2001)])), full(1, 1));
    // Segment 3 is lost as well now: 2 segments and more above it. pipe = 10 - 4 - 2 + 1 = 5.
    assert_eq!(data(&d.sack_arrives(1, &[(3001, 6001), (1001, 2001)])), []);
    assert_eq!(data(&d.sack_arrives(1, &[(3001, 7001), (1001, 2001)])), full(2001, 1));
    assert_eq!(data(&d.sack_arrives(1, &[(3001, 8001), (1001, 2001)])), full(10_001, 1));
    // The first hole is filled: one resent segment leaves the pipe; the second when it is filled.
    assert_eq!(data(&d.sack_arrives(2001, &[(3001, 8001)])), full(11_001, 1));
    assert_eq!(data(&d.arrives(ACK, 1, 8001, 0)), full(12_001, 1));
    // The recovery point is reached: avoidance with a window of five.
    assert_eq!(data(&d.arrives(ACK, 1, 10_001, 0)), full(13_001, 2));
}

#[test]
fn rfc_6675_5_more_than_two_segments_sacked_are_a_loss_without_three_duplicates() {
    let mut d = sender(with_sack(), 10);
    assert_eq!(data(&d.sack_arrives(1, &[(1001, 5001)])), full(1, 1));
}

#[test]
fn rfc_6675_4_the_end_of_the_data_is_rescued_once() {
    let config = Config { initial_window: InitialWindow::Segments(10), ..with_sack() };
    let mut d = Dialogue::established(config);
    d.write(10_000);
    // The first and the last two are lost.
    let out: Vec<_> = (2..8)
        .map(|i| data(&d.sack_arrives(1, &[(1001, 1001 + 1000 * (i - 1))])))
        .collect::<Vec<_>>()
        .concat();
    // Not before the head is there: an early one would be for nothing.
    assert_eq!(out, [(1, 1000)]);
    assert_eq!(data(&d.arrives(ACK, 1, 8001, 0)), [(9001, 1000)]);
    assert_eq!(d.pass(ms(900)), []);
}

#[test]
fn rfc_2018_8_after_a_timeout_sacked_segments_are_resent_or_not() {
    for (sack_after_rto, expected) in
        [(SackAfterRto::Forget, full(1001, 2)), (SackAfterRto::Keep, full(2001, 2))]
    {
        let mut d = sender(Config { sack_after_rto, ..with_sack() }, 4);
        d.sack_arrives(1, &[(1001, 2001)]);
        assert_eq!(timed(&d.pass(secs(1))), [(1000, 1, 1000)]);
        assert_eq!(data(&d.arrives(ACK, 1, 1001, 0)), expected, "{sack_after_rto:?}");
    }
}

#[test]
fn linux_restarts_the_timer_while_data_from_before_the_retransmission_still_arrives() {
    for restart in [false, true] {
        let config =
            Config { rto_restart_on_sack: restart, rtt_sampling: RttSampling::EverySegment, ..with_sack() };
        let mut d = sender(config, 10);
        d.pass(ms(100));
        assert_eq!(data(&d.sack_arrives(1, &[(1001, 5001)])), full(1, 1));
        d.pass(ms(800));
        d.sack_arrives(1, &[(1001, 6001)]);
        let (at, out) = d.pass(secs(10)).remove(0);
        assert_eq!((out.seq, out.len), (1, 1000));
        // One second after the retransmission, or after the block.
        assert_eq!(at >= 1900, restart, "{at}");
        assert!(restart || at == 1100, "{at}");
    }
}

#[test]
fn linux_takes_round_trip_times_from_sack_blocks_too() {
    let srtt = |sampling| {
        let mut d = sender(Config { rtt_sampling: sampling, ..with_sack() }, 10);
        d.pass(ms(300));
        d.sack_arrives(1, &[(1001, 2001)]);
        d.conn.as_ref().unwrap().facts().srtt
    };
    // The handshake took no time at all.
    assert_eq!(srtt(RttSampling::OncePerWindow), Some(ms(0)));
    assert_eq!(srtt(RttSampling::EverySegment), Some(ms(300) / 8));
}

#[test]
fn a_sack_block_of_what_was_never_sent_is_not_believed() {
    let mut d = sender(with_sack(), 4);
    for block in [(90_001, 91_001), (2001, 90_001), (3001, 2001)] {
        d.sack_arrives(1, &[block]);
    }
    assert_eq!(data(&d.arrives(ACK, 1, 1001, 0)), full(4001, 2));
}

#[test]
fn each_timeout_is_recorded_where_the_next_one_is_no_longer() {
    let mut d = Dialogue::established(Config { rto_max: secs(1), ..plain() });
    d.outbox.ask_facts(false, true);
    d.write(10);
    d.pass(secs(5));
    let rows = d.outbox.facts.iter().filter(|record| matches!(record, Record::Congestion(_)));
    assert_eq!(rows.count(), 5);
}

#[test]
fn rfc_2883_a_duplicate_that_is_reported_counts_as_a_spurious_retransmission() {
    let mut d = sender(with_sack(), 4);
    d.pass(secs(1));
    d.sack_arrives(4001, &[(1, 1001)]);
    assert_eq!(d.conn.as_ref().unwrap().facts().spurious, 1);
}

// Acknowledging

#[test]
fn rfc_5681_4_2_holes_are_reported_at_once_and_so_is_their_end() {
    let config = Config { delayed_ack: AckPolicy::Timer, sack: true, ..plain() };
    let mut d = Dialogue::established(config);
    assert_eq!(brief(&d.arrives(ACK, 1, 1, 1000)), []);
    assert_eq!(brief(&d.arrives(ACK, 1001, 1, 1000)), [(ACK, 1, 2001, 0)]);
    assert_eq!(brief(&d.arrives(ACK, 2001, 1, 1000)), []);
    assert_eq!(timed(&d.pass(ms(200))), [(200, 1, 0)]);
    let out = d.arrives(ACK, 4001, 1, 1000);
    assert_eq!(out[0].ack, 3001);
    assert_eq!(out[0].options.sack.as_slice(), [(IRS + 4001, IRS + 5001)]);
    assert_eq!(brief(&d.arrives(ACK, 3001, 1, 1000)), [(ACK, 1, 5001, 0)]);
    // A duplicate: reported by a block below the acknowledgement.
    let out = d.arrives(ACK, 3001, 1, 1000);
    assert_eq!(out[0].options.sack.as_slice(), [(IRS + 3001, IRS + 4001)]);
}

#[test]
fn acknowledgements_travel_with_data() {
    let mut d = Dialogue::established(Config { delayed_ack: AckPolicy::Timer, ..plain() });
    assert_eq!(brief(&d.arrives(ACK, 1, 1, 100)), []);
    assert_eq!(brief(&d.write(10)), [(PSH_ACK, 1, 101, 10)]);
    d.arrives(ACK, 101, 11, 0);
    assert_eq!(d.pass(secs(10)), []);
}

#[test]
fn a_reader_that_was_slow_tells_the_peer_that_there_is_room() {
    let small = Config {
        receive_buffer: Octets(4000),
        initial_receive_window: Octets(4000),
        delayed_ack: AckPolicy::Timer,
        ..plain()
    };
    let mut d = Dialogue::established(small);
    d.reads = false;
    for i in 0..4 {
        d.arrives(ACK, 1 + 1000 * i, 1, 1000);
    }
    let out = d.call(|t, cx| {
        t.read(cx, 0, 500);
    });
    assert_eq!(out, []);
    let out = d.call(|t, cx| {
        t.read(cx, 0, 3000);
    });
    assert_eq!((out[0].ack, out[0].window), (4001, 3500));
}

// Timestamps

fn stamped() -> Dialogue {
    let mut d = Dialogue::new(Config { timestamps: true, ..plain() });
    d.timestamps = Some((100, 0));
    d.listen_and_take_syn();
    d.arrives(ACK, 1, 1, 0);
    d
}

#[test]
fn rfc_7323_5_an_old_timestamp_means_an_old_segment() {
    let mut d = stamped();
    d.timestamps = Some((200, 0));
    d.arrives(ACK, 1, 1, 100);
    d.timestamps = Some((199, 0));
    assert_eq!(brief(&d.arrives(ACK, 101, 1, 100)), [(ACK, 1, 101, 0)]);
    assert_eq!(d.received.len(), 100);
    // RST is not tested by it.
    d.arrives(RST, 101, 0, 0);
    assert!(d.told().contains(&Closed(CloseReason::Reset)));
}

#[test]
fn rfc_7323_5_5_after_24_days_any_timestamp_is_new() {
    let mut d = stamped();
    d.timestamps = Some((50, 0));
    d.pass(secs(25 * 86_400));
    assert_eq!(brief(&d.arrives(ACK, 1, 1, 100)), [(ACK, 1, 101, 0)]);
    assert_eq!(d.received.len(), 100);
}

#[test]
fn rfc_7323_3_2_a_segment_without_the_agreed_option_is_dropped() {
    let mut d = stamped();
    d.timestamps = None;
    assert_eq!(brief(&d.arrives(ACK, 1, 1, 100)), []);
    assert_eq!(d.received, b"");
}

#[test]
fn rfc_7323_4_3_the_earliest_unacknowledged_timestamp_is_echoed() {
    let mut d = Dialogue::new(Config { timestamps: true, delayed_ack: AckPolicy::Timer, ..plain() });
    let echo = |d: &mut Dialogue, value, seq| {
        d.timestamps = Some((value, 0));
        let out = d.arrives(ACK, seq, 1, 988);
        out.first().map(|o| o.options.timestamps.unwrap().1)
    };
    d.timestamps = Some((100, 0));
    d.listen_and_take_syn();
    d.arrives(ACK, 1, 1, 0);
    // Delayed acknowledgement: the first of two. Hole: the last in order. Filled: the segment that fills.
    assert_eq!(echo(&mut d, 110, 1), None);
    assert_eq!(echo(&mut d, 120, 989), Some(110));
    assert_eq!(echo(&mut d, 130, 1 + 3 * 988), Some(110));
    assert_eq!(echo(&mut d, 140, 1 + 2 * 988), Some(140));
}

#[test]
fn options_are_used_only_if_both_sides_offer_them() {
    let all = Config { window_scaling: true, timestamps: true, sack: true, ..plain() };
    let mut d = Dialogue::new(all.clone());
    let out = d.arrives(SYN, 0, 0, 0);
    // The peer's SYN carries MSS and SACK permitted, no timestamps, no scale.
    assert_eq!(
        (out[0].options.timestamps, out[0].options.window_scale, out[0].options.sack_permitted),
        (None, None, true)
    );
    let mut d = Dialogue::syn_sent(all);
    d.window = 100;
    let out = d.arrives(SYN_ACK, 0, 1, 0);
    assert_eq!((out[0].options.timestamps, out[0].window), (None, 65_535));
    // The peer's window is not scaled either.
    assert_eq!(data(&d.write(1000)), [(1, 100)]);
}

#[test]
fn rfc_6691_the_options_of_a_segment_come_off_its_payload() {
    let mut d = stamped();
    assert_eq!(data(&d.write(3000))[0], (1, 988));
}

#[test]
fn rfc_1191_a_smaller_path_mtu_means_smaller_segments_one_until_it_is_acknowledged() {
    let mut d = sender(plain(), 4);
    let out = d.call(|t, cx| t.path_mtu(cx, airloom_base::PathId(0), 540));
    assert_eq!(data(&out), [(1, 500)]);
    assert_eq!(data(&d.arrives(ACK, 1, 501, 0))[..2], [(501, 500), (1001, 500)]);
    // A message that does not lower it is ignored.
    assert_eq!(d.call(|t, cx| t.path_mtu(cx, airloom_base::PathId(0), 1400)), []);
}

// Counting

#[test]
fn linux_counts_segments_and_a_delayed_acknowledgement_costs_no_growth() {
    for (ack_counting, expected) in
        [(AckCounting::Segments, 4), (AckCounting::PerAck, 3), (AckCounting::Octets, 3)]
    {
        let mut d = sender(Config { ack_counting, ..plain() }, 4);
        assert_eq!(data(&d.arrives(ACK, 1, 2001, 0)).len(), expected, "{ack_counting:?}");
    }
}

#[test]
fn rfc_5681_3_1_and_rfc_6298_5_7_after_a_lost_syn_one_segment_and_three_seconds() {
    let config = Config { initial_window: InitialWindow::Segments(4), ..plain() };
    for (forgiven, segments) in [(0, 1), (1, 4)] {
        let mut d = Dialogue::syn_sent(Config { lost_syns_forgiven: forgiven, ..config.clone() });
        assert_eq!(d.pass(secs(1)).len(), 1);
        d.arrives(SYN_ACK, 0, 1, 0);
        assert_eq!(data(&d.write(10_000)).len(), segments);
        assert_eq!(d.pass(ms(2999)), []);
        assert_eq!(d.pass(ms(1)).len(), 1);
    }
}

// Profiles of old stacks

#[test]
fn nt4_resends_at_the_second_duplicate_and_gives_up_after_five_timeouts() {
    let mut d = Dialogue::established(Profile::Nt4.settings());
    d.window = 8760;
    assert_eq!(data(&d.write(8000)), full(1, 2));
    assert_eq!(data(&d.arrives(ACK, 1, 1001, 0)), full(2001, 2));
    assert_eq!(data(&d.arrives(ACK, 1, 2001, 0)), full(4001, 2));
    assert_eq!(data(&d.arrives(ACK, 1, 2001, 0)), []);
    assert_eq!(data(&d.arrives(ACK, 1, 2001, 0)), [(2001, 1000)]);
    let out = d.pass(secs(600));
    let again = out.iter().filter(|(_, o)| o.len > 0 && o.seq == 2001).count();
    assert_eq!(again, 5);
    assert_eq!(out.last().map(|(_, o)| o.flags), Some(RST_ACK));
    assert!(d.told().contains(&Closed(CloseReason::TimedOut)));
}

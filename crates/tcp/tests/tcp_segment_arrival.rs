//! SEGMENT ARRIVES (RFC 9293 3.10.7), line by line, with RFC 5961. Numbers are relative to the two SYNs.

mod dialogue;

use airloom_base::service::WriteError;
use airloom_base::{Body, CloseReason, TransportEvent::*};
use airloom_tcp::config::Config;
use airloom_tcp::wire::Flags;
use dialogue::*;

const NOTHING: [(Flags, i64, i64, usize); 0] = [];

fn established() -> Dialogue {
    Dialogue::established(plain())
}

// CLOSED (3.10.7.1) and LISTEN (3.10.7.2)

#[test]
fn what_belongs_to_no_connection_is_answered_by_rst() {
    let mut d = Dialogue::new(plain());
    assert_eq!(brief(&d.arrives(RST, 5, 7, 0)), NOTHING);
    assert_eq!(brief(&d.arrives(RST_ACK, 5, 7, 0)), NOTHING);
    let out = d.arrives(ACK, 5, 700, 10);
    assert_eq!((out[0].flags, out[0].raw), (RST, (700, 0)));
    let out = d.arrives(Flags::FIN, 5, 0, 10);
    assert_eq!((out[0].flags, out[0].raw), (RST_ACK, (0, IRS + 16)));
    let out = d.arrives(SYN_ACK, 5, 9, 0);
    assert_eq!((out[0].flags, out[0].raw), (RST, (9, 0)));
}

#[test]
fn listen_takes_nothing_but_a_syn() {
    let mut d = Dialogue::new(plain());
    assert_eq!(brief(&d.arrives(Flags::SYN.with(RST), 0, 0, 0)), NOTHING);
    d.listen_and_take_syn();
}

#[test]
fn a_packet_that_is_no_segment_is_dropped() {
    let mut d = established();
    let mut packet = d.packet(ACK, THEIRS, OURS, Body::EMPTY, &[]);
    packet.head_mut()[12] = 0x10;
    assert_eq!(brief(&d.packet_arrives(packet)), NOTHING);
    let mut packet = d.packet(ACK, THEIRS, OURS, Body::EMPTY, &[]);
    packet.strip(3);
    assert_eq!(brief(&d.packet_arrives(packet)), NOTHING);
}

// SYN-SENT (3.10.7.3)

#[test]
fn syn_sent_answers_an_unacceptable_ack_by_rst() {
    for ack in [0, 2, -5] {
        let mut d = Dialogue::syn_sent(plain());
        let expected = (RST, ack, 0);
        let out = d.arrives(SYN_ACK, 0, ack, 0);
        assert_eq!(out.len(), 1);
        assert_eq!((out[0].flags, out[0].seq, out[0].raw.1), expected);
        assert_eq!(brief(&d.arrives(RST_ACK, 0, ack, 0)), NOTHING);
        assert_eq!(d.told(), []);
    }
}

#[test]
fn syn_sent_is_refused_only_by_a_rst_that_acknowledges_the_syn() {
    let mut d = Dialogue::syn_sent(plain());
    assert_eq!(brief(&d.arrives(RST, 0, 0, 0)), NOTHING);
    assert_eq!(d.told(), []);
    assert_eq!(brief(&d.arrives(RST_ACK, 0, 1, 0)), NOTHING);
    assert_eq!(d.told(), [Closed(CloseReason::Refused), Gone]);
}

#[test]
fn syn_sent_is_opened_by_syn_and_ack() {
    let mut d = Dialogue::syn_sent(plain());
    assert_eq!(brief(&d.arrives(ACK, 1, 1, 0)), NOTHING);
    assert_eq!(brief(&d.arrives(SYN_ACK, 0, 1, 0)), [(ACK, 1, 1, 0)]);
    assert_eq!(d.told(), [Opened]);
}

#[test]
fn text_on_a_syn_ack_is_taken() {
    let mut d = Dialogue::syn_sent(plain());
    assert_eq!(brief(&d.body_arrives(SYN_ACK, 0, 1, piece(1, 50))), [(ACK, 1, 51, 0)]);
    assert_eq!(d.received, piece(1, 50).to_bytes());
}

#[test]
fn a_simultaneous_open_is_completed_by_ack_or_by_syn_ack() {
    for last in [ACK, SYN_ACK] {
        let mut d = Dialogue::syn_sent(plain());
        assert_eq!(brief(&d.arrives(SYN, 0, 0, 0)), [(SYN_ACK, 0, 1, 0)]);
        assert_eq!(d.told(), []);
        let seq = if last == ACK { 1 } else { 0 };
        d.arrives(last, seq, 1, 0);
        assert_eq!(d.told(), [Opened]);
        assert_eq!(brief(&d.write(10)), [(PSH_ACK, 1, 1, 10)]);
    }
}

// SYN-RECEIVED

#[test]
fn syn_received_answers_an_unacceptable_ack_by_rst() {
    let mut d = Dialogue::new(plain());
    d.listen_and_take_syn();
    assert_eq!(brief(&d.arrives(ACK, 1, 7, 0)), [(RST, 7, -i64::from(IRS), 0)]);
    assert_eq!(brief(&d.arrives(ACK, 1, 1, 0)), NOTHING);
    assert_eq!(d.told(), [Opened]);
}

#[test]
fn syn_received_repeats_the_syn_ack_when_the_syn_comes_again() {
    let mut d = Dialogue::new(plain());
    d.listen_and_take_syn();
    assert_eq!(brief(&d.arrives(SYN, 0, 0, 0)), [(SYN_ACK, 0, 1, 0)]);
}

#[test]
fn syn_received_returns_to_listen_quietly_on_rst_and_is_refused_after_an_active_open() {
    let mut d = Dialogue::new(plain());
    d.listen_and_take_syn();
    assert_eq!(brief(&d.arrives(RST, 1, 0, 0)), NOTHING);
    assert!(d.conn.is_none());
    assert!(!d.told().contains(&Opened));
    let mut d = Dialogue::syn_sent(plain());
    d.arrives(SYN, 0, 0, 0);
    assert_eq!(brief(&d.arrives(RST, 1, 0, 0)), NOTHING);
    assert_eq!(d.told(), [Closed(CloseReason::Refused), Gone]);
}

#[test]
fn a_syn_ack_is_repeated_until_it_is_acknowledged_or_given_up() {
    let mut d = Dialogue::new(plain());
    d.listen_and_take_syn();
    let times: Vec<u64> = d.pass(secs(200)).iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [1000, 3000, 7000, 15_000, 31_000, 63_000, 123_000]);
    assert_eq!(d.told(), [Closed(CloseReason::TimedOut), Gone]);
}

// Synchronized states: sequence number

#[test]
fn a_segment_outside_the_window_is_acknowledged_and_dropped() {
    let mut d = established();
    assert_eq!(brief(&d.arrives(ACK, 70_000, 1, 10)), [(ACK, 1, 1, 0)]);
    assert_eq!(brief(&d.arrives(ACK, -50, 1, 10)), [(ACK, 1, 1, 0)]);
    assert_eq!(d.received, b"");
    assert_eq!(brief(&d.arrives(RST, 70_000, 1, 0)), NOTHING);
    assert_eq!(d.told(), []);
}

#[test]
fn a_repeated_syn_ack_is_acknowledged_even_after_finish() {
    let mut d = Dialogue::syn_sent(plain());
    d.arrives(SYN_ACK, 0, 1, 0);
    assert_eq!(brief(&d.finish()), [(FIN_ACK, 1, 1, 0)]);
    assert_eq!(brief(&d.arrives(SYN_ACK, 0, 1, 0)), [(ACK, 2, 1, 0)]);
}

#[test]
fn text_is_cut_to_the_window_and_what_comes_early_is_kept() {
    let mut d = established();
    assert_eq!(brief(&d.arrives(ACK, 101, 1, 100)), [(ACK, 1, 1, 0)]);
    assert_eq!(brief(&d.arrives(ACK, -9, 1, 60)), [(ACK, 1, 51, 0)]);
    assert_eq!(brief(&d.arrives(ACK, 51, 1, 50)), [(ACK, 1, 201, 0)]);
    assert_eq!(d.received[10..], piece(11, 190).to_bytes()[..]);
}

#[test]
fn at_window_zero_acknowledgements_and_rst_are_still_taken() {
    let mut d = established();
    d.reads = false;
    let window = d.arrives(ACK, 1, 1, 0).len() as i64 + 65_535;
    let mut at = 1;
    while at <= window {
        let len = (window + 1 - at).min(1000);
        let out = d.arrives(ACK, at, 1, len as u32);
        at += len;
        assert_eq!(out[0].ack, at);
    }
    d.write(500);
    // One octet beyond the window: acknowledged, not taken; its acknowledgement counts.
    let out = d.arrives(ACK, at, 501, 1);
    assert_eq!((out[0].brief(), out[0].window), ((ACK, 501, at, 0), 0));
    assert_eq!(d.conn.as_ref().unwrap().facts().app_sent, 500);
    assert_eq!(d.pass(secs(5)), []);
    d.arrives(RST, at, 0, 0);
    assert!(d.told().contains(&Closed(CloseReason::Reset)));
}

// RST (RFC 5961 3)

#[test]
fn a_rst_resets_only_at_exactly_the_next_number() {
    let mut d = established();
    assert_eq!(brief(&d.arrives(RST, 2, 0, 0)), [(ACK, 1, 1, 0)]);
    assert_eq!(d.told(), []);
    assert_eq!(brief(&d.arrives(RST, 1, 0, 0)), NOTHING);
    assert_eq!(d.told(), [Closed(CloseReason::Reset), Gone]);
}

#[test]
fn a_rst_near_the_end_closes_without_an_error() {
    // LAST-ACK, CLOSING, TIME-WAIT.
    let mut d = established();
    d.arrives(FIN_ACK, 1, 1, 0);
    d.finish();
    d.arrives(RST, 2, 0, 0);
    assert_eq!(d.told(), [Finished(0), Closed(CloseReason::Finished), Gone]);
    let mut d = established();
    d.finish();
    d.arrives(FIN_ACK, 1, 1, 0);
    d.arrives(RST, 2, 0, 0);
    assert_eq!(d.told(), [Finished(0), Closed(CloseReason::Finished), Gone]);
    let mut d = established();
    d.finish();
    d.arrives(FIN_ACK, 1, 2, 0);
    d.arrives(RST, 2, 0, 0);
    assert_eq!(d.told(), [Finished(0), Closed(CloseReason::Finished), Lingering, Gone]);
}

// SYN (RFC 5961 4)

#[test]
fn a_syn_in_a_synchronized_state_is_questioned() {
    let mut d = established();
    for seq in [0, 1, 500, 90_000] {
        assert_eq!(brief(&d.arrives(SYN, seq, 0, 0)), [(ACK, 1, 1, 0)], "{seq}");
    }
    assert_eq!(d.told(), []);
    assert_eq!(brief(&d.write(3)), [(PSH_ACK, 1, 1, 3)]);
}

#[test]
fn challenge_acknowledgements_are_limited_per_interval() {
    let mut d = Dialogue::established(Config { challenge_acks: 3, ..plain() });
    let answered = |d: &mut Dialogue| (0..10).filter(|_| !d.arrives(RST, 2, 0, 0).is_empty()).count();
    assert_eq!(answered(&mut d), 3);
    d.pass(secs(5));
    assert_eq!(answered(&mut d), 3);
}

// ACK

#[test]
fn a_segment_without_ack_is_dropped() {
    let mut d = established();
    assert_eq!(brief(&d.arrives(Flags::PSH, 1, 0, 10)), NOTHING);
    assert_eq!(d.received, b"");
}

#[test]
fn an_ack_of_what_was_never_sent_or_is_long_past_is_questioned_and_its_text_dropped() {
    let mut d = established();
    assert_eq!(brief(&d.arrives(ACK, 1, 2, 10)), [(ACK, 1, 1, 0)]);
    assert_eq!(brief(&d.arrives(ACK, 1, -70_000, 10)), [(ACK, 1, 1, 0)]);
    assert_eq!(d.received, b"");
    // An old one within the largest window goes on.
    d.write(10);
    d.arrives(ACK, 1, 11, 0);
    assert_eq!(brief(&d.arrives(ACK, 1, 5, 10)), [(ACK, 11, 11, 0)]);
    assert_eq!(d.received.len(), 10);
}

#[test]
fn only_a_newer_segment_moves_the_window() {
    let mut d = Dialogue::new(plain());
    d.window = 100;
    d.listen_and_take_syn();
    d.arrives(ACK, 1, 1, 50);
    assert_eq!(brief(&d.write(150)), [(ACK, 1, 51, 100)]);
    // Older than the one that set the window: no effect.
    d.window = 200;
    assert_eq!(brief(&d.arrives(ACK, 1, 101, 20)), [(ACK, 101, 51, 0)]);
    d.window = 120;
    assert_eq!(brief(&d.arrives(ACK, 51, 101, 0)), [(PSH_ACK, 101, 51, 50)]);
}

#[test]
fn part_of_a_segment_can_be_acknowledged() {
    let mut d = established();
    d.write(100);
    d.arrives(ACK, 1, 41, 0);
    let out = d.pass(secs(2));
    assert_eq!(out[0].1.brief(), (PSH_ACK, 41, 1, 60));
}

// FIN

#[test]
fn a_fin_after_all_text_is_acknowledged_and_told_when_all_was_read() {
    let mut d = established();
    d.reads = false;
    assert_eq!(brief(&d.arrives(FIN_ACK, 1, 1, 10)), [(ACK, 1, 12, 0)]);
    assert_eq!(d.told(), [Readable(0, 10)]);
    d.read_all();
    d.drain();
    assert_eq!(d.told(), [Finished(0)]);
    // CLOSE-WAIT: our direction is still open.
    assert_eq!(brief(&d.write(5)), [(PSH_ACK, 1, 12, 5)]);
    assert_eq!(brief(&d.finish()), [(FIN_ACK, 6, 12, 0)]);
    assert_eq!(brief(&d.arrives(ACK, 12, 7, 0)), NOTHING);
    assert_eq!(d.told(), [Closed(CloseReason::Finished), Gone]);
}

#[test]
fn a_fin_that_comes_early_waits_for_what_is_missing() {
    let mut d = established();
    assert_eq!(brief(&d.arrives(FIN_ACK, 11, 1, 10)), [(ACK, 1, 1, 0)]);
    assert_eq!(d.told(), []);
    assert_eq!(brief(&d.arrives(ACK, 1, 1, 10)), [(ACK, 1, 22, 0)]);
    assert_eq!(d.told(), [Readable(0, 20), Finished(0)]);
}

#[test]
fn nothing_is_taken_after_a_fin() {
    let mut d = established();
    d.arrives(FIN_ACK, 1, 1, 10);
    assert_eq!(brief(&d.arrives(ACK, 12, 1, 10)), [(ACK, 1, 12, 0)]);
    assert_eq!(d.received.len(), 10);
}

#[test]
fn fin_wait_1_with_everything_acknowledged_goes_to_time_wait() {
    let mut d = established();
    assert_eq!(brief(&d.finish()), [(FIN_ACK, 1, 1, 0)]);
    assert_eq!(brief(&d.arrives(FIN_ACK, 1, 2, 0)), [(ACK, 2, 2, 0)]);
    assert_eq!(d.told(), [Finished(0), Closed(CloseReason::Finished), Lingering]);
}

#[test]
fn a_simultaneous_close_goes_through_closing() {
    let mut d = established();
    d.finish();
    assert_eq!(brief(&d.arrives(FIN_ACK, 1, 1, 0)), [(ACK, 2, 2, 0)]);
    assert_eq!(d.told(), [Finished(0)]);
    assert_eq!(brief(&d.arrives(ACK, 2, 2, 0)), NOTHING);
    assert_eq!(d.told(), [Closed(CloseReason::Finished), Lingering]);
}

#[test]
fn fin_wait_2_takes_text_and_fin() {
    let mut d = established();
    d.finish();
    assert_eq!(brief(&d.arrives(ACK, 1, 2, 0)), NOTHING);
    assert_eq!(brief(&d.arrives(ACK, 1, 2, 20)), [(ACK, 2, 21, 0)]);
    assert_eq!(brief(&d.arrives(FIN_ACK, 21, 2, 0)), [(ACK, 2, 22, 0)]);
    assert_eq!(d.told(), [Readable(0, 20), Finished(0), Closed(CloseReason::Finished), Lingering]);
}

#[test]
fn time_wait_acknowledges_the_fin_again_and_waits_anew() {
    let mut d = established();
    d.finish();
    d.arrives(FIN_ACK, 1, 2, 0);
    d.pass(secs(200));
    assert_eq!(brief(&d.arrives(FIN_ACK, 1, 2, 0)), [(ACK, 2, 2, 0)]);
    d.pass(secs(239));
    assert!(d.conn.is_some());
    d.pass(secs(1));
    assert!(d.conn.is_none());
    assert_eq!(d.told().last(), Some(&Gone));
}

#[test]
fn time_wait_yields_to_a_syn_beyond_the_old_connection() {
    let mut d = established();
    d.finish();
    d.arrives(FIN_ACK, 1, 2, 0);
    let conn = d.conn.as_ref().unwrap();
    assert!(conn.yields_to(&d.packet(SYN, 500, 0, Body::EMPTY, &[])));
    assert!(!conn.yields_to(&d.packet(SYN, 1, 0, Body::EMPTY, &[])));
    assert!(!conn.yields_to(&d.packet(SYN_ACK, 500, 0, Body::EMPTY, &[])));
    assert!(!conn.yields_to(&d.packet(ACK, 500, 0, Body::EMPTY, &[])));
    assert_eq!(brief(&d.arrives(SYN, 1, 0, 0)), [(ACK, 2, 2, 0)]);
}

#[test]
fn a_lingering_connection_is_small() {
    let mut d = established();
    d.finish();
    d.arrives(FIN_ACK, 1, 2, 0);
    assert!(size_of_val(d.conn.as_ref().unwrap().as_ref()) <= 64);
}

// CLOSE and ABORT

#[test]
fn a_reset_by_the_application_is_told_to_the_peer() {
    let mut d = established();
    d.write(10);
    assert_eq!(brief(&d.call(|t, cx| t.reset(cx))), [(RST_ACK, 11, 1, 0)]);
    assert_eq!(d.told(), [Closed(CloseReason::Aborted), Gone]);
    let mut d = Dialogue::syn_sent(plain());
    assert_eq!(brief(&d.call(|t, cx| t.reset(cx))), NOTHING);
    assert!(d.conn.is_none());
}

#[test]
fn finish_before_the_handshake_is_over_waits_for_it() {
    let mut d = Dialogue::syn_sent(plain());
    assert_eq!(brief(&d.write(20)), NOTHING);
    assert_eq!(brief(&d.finish()), NOTHING);
    assert_eq!(brief(&d.arrives(SYN_ACK, 0, 1, 0)), [(Flags(0x19), 1, 1, 20)]);
}

#[test]
fn a_full_buffer_takes_nothing_for_now() {
    let mut d = established();
    d.call(|t, cx| {
        let taken = t.write(cx, 0, Body::filler(1, 1 << 30)).expect("there is room for something");
        assert!((1..1 << 30).contains(&taken), "{taken}");
        assert_eq!(t.write(cx, 0, Body::filler(1, 1)), Err(WriteError::Blocked));
        assert_eq!(t.write(cx, 0, Body::EMPTY), Ok(0));
    });
}

#[test]
fn nothing_can_be_written_after_finish() {
    let mut d = established();
    d.finish();
    d.call(|t, cx| assert_eq!(t.write(cx, 0, Body::filler(1, 5)), Err(WriteError::Closed)));
}

//! Recovery by the segment: RACK-TLP, F-RTO, undo, reneging, PRR, one dialogue each.

mod dialogue;

use airloom_base::Duration;
use airloom_base::service::FlowFacts;
use airloom_tcp::config::{
    Congestion, InitialWindow, LossDetection, LossWindow, ProportionalReduction, SackAfterRto, SlowStartExit,
};
use airloom_tcp::{Config, Profile};
use dialogue::{ACK, Dialogue, Out, THEIRS};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// The standards' profile with recovery by the segment, exact timers, no options but SACK.
fn rack() -> Config {
    Config {
        loss_detection: LossDetection::Rack,
        prr: ProportionalReduction::Safe,
        loss_window: LossWindow::Cwnd,
        tlp: true,
        frto: true,
        undo_by_dsack: true,
        undo_by_timestamps: true,
        congestion: Congestion::NewReno,
        hystart: SlowStartExit::Off,
        sack_after_rto: SackAfterRto::Keep,
        initial_window: InitialWindow::Segments(10),
        timestamps: false,
        window_scaling: false,
        ..Profile::Rfc.settings()
    }
}

fn without_sack() -> Config {
    Config { sack: false, ..rack() }
}

/// A sender that has had ten segments outstanding for `rtt`, and much more to send.
fn sender(config: Config, rtt: Duration) -> Dialogue {
    let mut d = Dialogue::new(config);
    d.listen_and_take_syn();
    d.pass(rtt);
    assert_eq!(d.arrives(ACK, THEIRS, 1, 0), []);
    assert_eq!(data(&d.write(100_000)).len(), 10);
    d.pass(rtt);
    d
}

/// The same with nothing more to send.
fn tail(config: Config, rtt: Duration) -> Dialogue {
    let mut d = Dialogue::new(config);
    d.listen_and_take_syn();
    d.pass(rtt);
    assert_eq!(d.arrives(ACK, THEIRS, 1, 0), []);
    assert_eq!(data(&d.write(5000)).len(), 5);
    d
}

fn data(out: &[Out]) -> Vec<i64> {
    out.iter().filter(|o| o.len > 0).map(|o| o.seq).collect()
}

/// Three segments above the first are reported at once. Three have arrived, the window halves: two may leave.
fn lose_the_first(d: &mut Dialogue) {
    assert_eq!(data(&d.sack_arrives(1, &[(1001, 4001)])), [1, 10_001]);
}

/// What leaves while time passes.
fn later(d: &mut Dialogue, time: Duration) -> Vec<i64> {
    d.pass(time).iter().filter(|(_, o)| o.len > 0).map(|(_, o)| o.seq).collect()
}

fn facts(d: &Dialogue) -> FlowFacts {
    d.conn.as_ref().expect("a connection").facts()
}

#[test]
fn rfc_8985_6_2_a_segment_is_lost_when_a_later_one_has_arrived_and_the_window_has_passed() {
    let mut d = sender(rack(), ms(100));
    // One segment above the hole: fewer than three, so a quarter of the round trip is waited. New data for what arrived.
    assert_eq!(data(&d.sack_arrives(1, &[(1001, 2001)])), [10_001]);
    assert!(later(&mut d, ms(20)).is_empty());
    // 25 ms and two more of the timer: lost.
    assert_eq!(later(&mut d, ms(10)), [1]);
}

#[test]
fn rfc_8985_6_2_three_segments_above_a_hole_need_no_waiting() {
    let mut d = sender(rack(), ms(100));
    assert_eq!(data(&d.sack_arrives(1, &[(1001, 2001)])), [10_001]);
    assert_eq!(data(&d.sack_arrives(1, &[(1001, 3001)])), [11_001]);
    assert_eq!(data(&d.sack_arrives(1, &[(1001, 4001)])), [1]);
}

#[test]
fn rfc_8985_1_a_lost_retransmission_is_found_without_a_timeout() {
    let mut d = sender(rack(), ms(100));
    lose_the_first(&mut d);
    assert!(!data(&d.sack_arrives(1, &[(1001, 10_001)])).contains(&1));
    // What was sent after the retransmission arrives a round trip later; the retransmission has not.
    d.pass(ms(100));
    assert_eq!(data(&d.sack_arrives(1, &[(1001, 11_001)])).first(), Some(&1));
    assert_eq!(facts(&d).rto_count, 0);
}

#[test]
fn rfc_8985_7_3_the_last_segment_is_sent_again_after_two_round_trips_and_finds_the_losses() {
    let mut d = tail(rack(), ms(100));
    assert!(later(&mut d, ms(201)).is_empty());
    // 2 SRTT, and two milliseconds of the timer; the timeout would be after a second.
    assert_eq!(later(&mut d, ms(2)), [4001]);
    // The probe arrived, the four before it had not.
    d.pass(ms(100));
    assert_eq!(data(&d.sack_arrives(1, &[(4001, 5001)])).first(), Some(&1));
    assert_eq!(facts(&d).rto_count, 0);
}

#[test]
fn rfc_8985_7_4_2_a_probe_that_repairs_a_loss_halves_the_window() {
    let reduced = |dsack: bool| {
        let mut d = tail(rack(), ms(100));
        assert_eq!(later(&mut d, ms(203)), [4001]);
        let blocks: &[(i64, i64)] = if dsack { &[(4001, 5001)] } else { &[] };
        assert!(data(&d.sack_arrives(5001, blocks)).is_empty());
        // Whether the probe or the original was acknowledged shows when nothing more comes for it.
        d.write(2000);
        d.pass(ms(100));
        d.arrives(ACK, THEIRS, 7001, 0);
        data(&d.write(30_000)).len()
    };
    assert_eq!(reduced(false), 5);
    // Both copies arrived: nothing was lost.
    assert!(reduced(true) >= 10);
}

#[test]
fn rfc_2883_4_what_is_reported_twice_has_arrived() {
    let mut d = tail(Config { tlp: false, ..rack() }, ms(100));
    assert_eq!(later(&mut d, ms(1010)).first(), Some(&1));
    // A forged acknowledgement may leave a hole that nobody fills, and forged data make the block around it longer than what was
    // sent: as a duplicate alone it left again at once, each time.
    let out = data(&d.sack_arrives(1, &[(1, 1001), (1, 99_001)]));
    assert!(!out.contains(&1), "{out:?}");
}

#[test]
fn rfc_5682_2_1_a_spurious_timeout_is_found_by_the_second_acknowledgement() {
    let mut d = sender(without_sack(), ms(100));
    assert_eq!(later(&mut d, ms(1000)).first(), Some(&1));
    // The first moves the window: two new segments.
    assert_eq!(data(&d.arrives(ACK, THEIRS, 1001, 0)), [10_001, 11_001]);
    // The second does so too, for what was sent once: nothing is sent again, the window is what it was.
    let out = data(&d.arrives(ACK, THEIRS, 2001, 0));
    assert!(out.iter().all(|seq| *seq > 11_001), "{out:?}");
    assert_eq!(facts(&d).spurious, 1);
}

#[test]
fn rfc_5682_2_1_a_duplicate_after_the_new_data_means_the_loss_was_real() {
    let mut d = sender(without_sack(), ms(100));
    assert_eq!(later(&mut d, ms(1000)).first(), Some(&1));
    assert_eq!(data(&d.arrives(ACK, THEIRS, 1001, 0)), [10_001, 11_001]);
    let out = data(&d.arrives(ACK, THEIRS, 1001, 0));
    assert_eq!(out.first(), Some(&1001));
    assert_eq!(facts(&d).spurious, 0);
}

#[test]
fn without_f_rto_everything_is_sent_again() {
    let mut d = sender(Config { frto: false, ..without_sack() }, ms(100));
    assert_eq!(later(&mut d, ms(1000)).first(), Some(&1));
    assert_eq!(data(&d.arrives(ACK, THEIRS, 1001, 0)), [1001, 2001]);
}

#[test]
fn rfc_3708_3_a_recovery_is_undone_when_d_sacks_report_all_that_was_sent_again() {
    let in_flight = |undo: bool| {
        let mut d = sender(Config { undo_by_dsack: undo, ..rack() }, ms(100));
        // Segment 1 is only late.
        lose_the_first(&mut d);
        d.arrives(ACK, THEIRS, 10_001, 0);
        d.sack_arrives(10_001, &[(1, 1001)]);
        // How much is outstanding after that?
        let facts = facts(&d);
        facts.app_sent - 10_000
    };
    assert!(in_flight(true) > in_flight(false), "{} {}", in_flight(true), in_flight(false));
}

#[test]
fn rfc_2018_8_what_the_receiver_took_back_is_sent_again() {
    let mut d = sender(rack(), ms(100));
    lose_the_first(&mut d);
    // The acknowledgement ends where a report began: the receiver has dropped what it had reported.
    d.arrives(ACK, THEIRS, 1001, 0);
    let out = later(&mut d, ms(100));
    assert_eq!(out.first(), Some(&1001));
}

#[test]
fn without_sack_partial_acknowledgements_show_one_loss_after_the_other() {
    let mut d = sender(without_sack(), ms(100));
    assert_eq!(data(&d.arrives(ACK, THEIRS, 1, 0)), [10_001]);
    assert_eq!(data(&d.arrives(ACK, THEIRS, 1, 0)), [11_001]);
    assert_eq!(data(&d.arrives(ACK, THEIRS, 1, 0)), [1]);
    // The next is known to be lost; the window shrinks, so it leaves with the acknowledgement after that.
    assert!(data(&d.arrives(ACK, THEIRS, 4001, 0)).is_empty());
    assert_eq!(data(&d.arrives(ACK, THEIRS, 4001, 0)), [4001]);
}

#[test]
fn rfc_6937_3_the_window_shrinks_in_proportion_to_what_arrives() {
    // Only segment 1 of ten is lost: about one new segment for two that arrive.
    let mut d = sender(rack(), ms(100));
    lose_the_first(&mut d);
    let sent: Vec<usize> =
        (4..10).map(|n| data(&d.sack_arrives(1, &[(1001, 1001 + 1000 * n)])).len()).collect();
    assert!(sent.iter().all(|n| *n <= 1), "{sent:?}");
    assert!((2..=4).contains(&sent.iter().sum::<usize>()), "{sent:?}");
}

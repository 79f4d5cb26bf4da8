//! Explicit congestion notification by RFC 3168, segment by segment. Segments have 1000 octets.

mod dialogue;

use airloom_tcp::config::{Config, EcnUse, InitialWindow, LossDetection};
use airloom_tcp::wire::Flags;
use dialogue::*;

const ECE: Flags = Flags::ECE;
const CWR: Flags = Flags::CWR;
const ECT0: u8 = 2;
const CE: u8 = 3;

fn config(ecn: EcnUse, loss_detection: LossDetection) -> Config {
    Config { ecn, loss_detection, initial_window: InitialWindow::Segments(10), ..plain() }
}

/// A connection on which ECN was agreed, opened by the peer.
fn agreed(loss_detection: LossDetection) -> Dialogue {
    let mut d = Dialogue::new(config(EcnUse::On, loss_detection));
    let out = d.arrives(SYN.with(ECE).with(CWR), 0, 0, 0);
    assert_eq!(brief(&out), [(SYN_ACK.with(ECE), 0, 1, 0)]);
    assert_eq!(d.arrives(ACK, THEIRS, OURS, 0), []);
    d
}

/// Flags, sequence number and codepoint of what has data.
fn marked(out: &[Out]) -> Vec<(Flags, i64, u8)> {
    out.iter().filter(|o| o.len > 0).map(|o| (o.flags, o.seq, o.ecn)).collect()
}

const BOTH: [LossDetection; 2] = [LossDetection::DupAcks, LossDetection::Rack];

#[test]
fn rfc_3168_6_1_1_a_syn_asks_with_both_flags_and_is_answered_with_one() {
    for (use_of, flags) in [(EcnUse::Off, SYN), (EcnUse::Accept, SYN), (EcnUse::On, SYN.with(ECE).with(CWR))]
    {
        let mut d = Dialogue::new(config(use_of, LossDetection::DupAcks));
        let out = d.open();
        assert_eq!((out[0].flags, out[0].ecn), (flags, 0), "{use_of:?}");
    }
    for (use_of, answer) in
        [(EcnUse::Off, SYN_ACK), (EcnUse::Accept, SYN_ACK.with(ECE)), (EcnUse::On, SYN_ACK.with(ECE))]
    {
        let mut d = Dialogue::new(config(use_of, LossDetection::DupAcks));
        let out = d.arrives(SYN.with(ECE).with(CWR), 0, 0, 0);
        assert_eq!((out[0].flags, out[0].ecn), (answer, 0), "{use_of:?}");
        let mut d = Dialogue::new(config(use_of, LossDetection::DupAcks));
        assert_eq!(d.arrives(SYN, 0, 0, 0)[0].flags, SYN_ACK, "a peer that does not ask");
    }
}

#[test]
fn rfc_3168_6_1_1_without_agreement_data_cannot_be_marked() {
    for (answer, codepoint) in [(SYN_ACK, 0), (SYN_ACK.with(ECE), ECT0), (SYN_ACK.with(ECE).with(CWR), 0)] {
        let mut d = Dialogue::new(config(EcnUse::On, LossDetection::DupAcks));
        d.open();
        assert_eq!(brief(&d.arrives(answer, 0, OURS, 0)), [(ACK, 1, 1, 0)]);
        assert_eq!(marked(&d.write(1000))[0].2, codepoint, "{answer:?}");
    }
}

#[test]
fn rfc_3168_6_1_1_1_a_syn_that_is_not_answered_is_repeated_without() {
    let mut d = Dialogue::new(config(EcnUse::On, LossDetection::DupAcks));
    d.open();
    let out = d.pass(secs(1));
    assert_eq!(out[0].1.flags, SYN);
    // Then data may not be marked, although the answer has ECE.
    d.arrives(SYN_ACK.with(ECE), 0, OURS, 0);
    assert_eq!(marked(&d.write(1000))[0].2, 0);
}

#[test]
fn rfc_3168_6_1_3_a_mark_is_echoed_until_the_sender_has_reacted() {
    for detection in BOTH {
        let mut d = agreed(detection);
        d.ecn = ECT0;
        assert_eq!(brief(&d.arrives(ACK, 1, 1, 1000)), [(ACK, 1, 1001, 0)]);
        d.ecn = CE;
        assert_eq!(brief(&d.arrives(ACK, 1001, 1, 1000)), [(ACK.with(ECE), 1, 2001, 0)]);
        d.ecn = ECT0;
        assert_eq!(brief(&d.arrives(ACK, 2001, 1, 1000)), [(ACK.with(ECE), 1, 3001, 0)]);
        // Our data carries the echo too.
        assert_eq!(marked(&d.write(1000))[0].0, PSH_ACK.with(ECE));
        assert_eq!(brief(&d.arrives(ACK.with(CWR), 3001, 1001, 1000)), [(ACK, 1001, 4001, 0)]);
        // CWR in a packet that is marked itself begins a new echo.
        d.ecn = CE;
        assert_eq!(brief(&d.arrives(ACK.with(CWR), 4001, 1001, 1000)), [(ACK.with(ECE), 1001, 5001, 0)]);
    }
}

#[test]
fn rfc_3168_6_1_5_a_mark_on_a_packet_outside_the_window_is_ignored() {
    let mut d = agreed(LossDetection::DupAcks);
    d.arrives(ACK, 1, 1, 1000);
    d.ecn = CE;
    assert_eq!(brief(&d.arrives(ACK, -5000, 1, 1000)), [(ACK, 1, 1001, 0)]);
}

#[test]
fn rfc_3168_6_1_2_the_sender_halves_once_per_window_and_says_so_on_new_data() {
    for detection in BOTH {
        let mut d = agreed(detection);
        let first = marked(&d.write(900_000));
        assert_eq!(first.len(), 10, "{detection:?}");
        assert!(first.iter().all(|o| *o == (ACK, o.1, ECT0)));
        // Ten are out. The echo halves the window, and every further one of this window does not.
        let mut sent = Vec::new();
        for i in 1..=10 {
            sent.extend(marked(&d.arrives(ACK.with(ECE), 1, 1 + 1000 * i, 0)));
        }
        assert_eq!(sent[0].0, ACK.with(CWR), "{detection:?}");
        assert!(sent[1..].iter().all(|o| o.0 == ACK && o.2 == ECT0), "{detection:?}: {sent:?}");
        // Half of what it was, at the end. By segments the flight is counted after the acknowledgement: half of nine.
        let left = if detection == LossDetection::Rack { 4 } else { 5 };
        assert_eq!(sent.len(), left, "{detection:?}: {sent:?}");
        // The next window is another matter.
        let next = marked(&d.arrives(ACK.with(ECE), 1, 10_001 + 1000 * left as i64, 0));
        assert!(next.iter().any(|o| o.0 == ACK.with(CWR)), "{detection:?}: {next:?}");
    }
}

#[test]
fn rfc_3168_6_1_4_neither_acknowledgements_nor_retransmissions_can_be_marked() {
    for detection in BOTH {
        let mut d = agreed(detection);
        d.write(900_000);
        let (_, again) = d.pass(secs(2)).remove(0);
        assert_eq!((again.seq, again.ecn, again.flags), (1, 0, ACK), "{detection:?}");
        // The reduction for the timeout is told with the first new data.
        let out = marked(&d.arrives(ACK, 1, 10_001, 0));
        assert_eq!(out[0], (ACK.with(CWR), 10_001, ECT0), "{detection:?}");
        d.ecn = ECT0;
        let ack = d.arrives(ACK, 1, 10_001, 1000);
        assert!(ack.iter().all(|o| o.len > 0 || o.ecn == 0));
    }
}

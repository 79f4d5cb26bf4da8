//! Streams that begin anew and become more (RFC 6525).

use std::collections::BTreeMap;

use super::super::chunk::Parameter;
use super::super::chunk::parameter::{Reset, result};
use super::*;

/// Which of two ends, and what it heard of changes.
fn changes(duo: &mut Duo, end: usize) -> Vec<Reconfigured> {
    std::iter::from_fn(|| duo.ends[end].poll_reconfigured()).collect()
}

fn ask(duo: &mut Duo, end: usize, request: Request) -> bool {
    let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
    duo.ends[end].reconfigure(&mut cx, request)
}

/// Answers `end` to a RE-CONFIG of these parameters, which the other end is made to have sent.
fn inject(duo: &mut Duo, end: usize, parameters: Vec<Parameter>) -> Vec<Parameter> {
    let other = &duo.ends[1 - end];
    let header =
        Header { source: other.ports().0, destination: other.ports().1, tag: duo.ends[end].local_tag() };
    let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
    duo.ends[end].handle_packet(&mut cx, PathId(0), 0, header.packet(&[Chunk::ReConfig(parameters)]));
    let mut answers = Vec::new();
    while let Some(mut unit) = duo.ends[end].poll_transmit(&mut cx) {
        for chunk in parse(&mut unit.packet).unwrap().1 {
            if let Chunk::ReConfig(parameters) = chunk {
                answers.extend(parameters);
            }
        }
    }
    answers
}

fn said(answers: &[Parameter]) -> Vec<u32> {
    let result = |p: &Parameter| match p {
        Parameter::ReconfigResponse { result, .. } => Some(*result),
        _ => None,
    };
    answers.iter().filter_map(result).collect()
}

#[test]
fn whatever_changes_in_the_middle_of_a_bad_transfer_every_message_comes_once_and_in_order() {
    for seed in 0..60u64 {
        let config = Config { interleaving: seed % 2 == 0, ..Config::default() };
        let mut duo = Duo::new(config.clone(), config, 1);
        duo.loses = Box::new(move |_, _, n| splitmix64(seed, n) % 100 < 8);
        let mut sent: [BTreeMap<u16, Vec<Vec<u8>>>; 2] = Default::default();
        for n in 0..240u64 {
            let draw = splitmix64(seed + 500, n);
            let end = (draw >> 40 & 1) as usize;
            let stream = (draw % 10) as u16;
            let body = message(stream, n, [16, 1200, 5000][(draw >> 16) as usize % 3]);
            sent[end].entry(stream).or_default().push(body.to_bytes().to_vec());
            while !duo.send(end, stream, Outgoing::new(body.clone())) {
                duo.run(Duration::from_secs(1));
            }
            let request = match n {
                40 => Request::ResetOutgoing(Vec::new()),
                60 => Request::ResetIncoming(vec![0, 1, 2]),
                100 => Request::ResetOutgoing(vec![3, 7]),
                140 => Request::AddOutgoing(5),
                141 => Request::AddIncoming(7),
                180 if seed % 3 == 0 => Request::ResetIncoming(Vec::new()),
                _ => continue,
            };
            assert!(ask(&mut duo, (seed % 2) as usize, request));
            duo.run(Duration::from_millis(draw >> 20 & 255));
        }
        duo.run(Duration::from_secs(2000));
        for end in 0..2 {
            for (stream, sent) in &sent[end] {
                let got = duo.got[1 - end].iter().filter(|m| m.stream == *stream).map(octets);
                assert!(got.eq(sent.iter().cloned()), "seed {seed} end {end} stream {stream}");
            }
        }
        let asker = (seed % 2) as usize;
        let answered = changes(&mut duo, asker);
        let is_answer = |c: &&Reconfigured| matches!(c, Reconfigured::Answered(_, Answer::Performed));
        let performed = answered.iter().filter(is_answer).count();
        assert_eq!(performed, if seed % 3 == 0 { 6 } else { 5 }, "seed {seed}: {answered:?}");
        let streams = [0, 1].map(|end| duo.ends[end].streams());
        assert_eq!(streams, [Some(15); 2], "both directions had ten");
        assert!(duo.ends[asker].has_stream(14) && !duo.ends[asker].has_stream(15));
        assert!(duo.ends[1 - asker].has_stream(16) && !duo.ends[1 - asker].has_stream(17));
    }
}

#[test]
fn an_association_begins_anew_when_nothing_is_on_its_way_and_loses_nothing() {
    for seed in 0..20u64 {
        let mut duo = Duo::new(Config::default(), Config::default(), 1);
        duo.loses = Box::new(move |_, _, n| n < 60 && splitmix64(seed, n).is_multiple_of(12));
        for n in 0..60 {
            assert!(duo.send(0, n % 4, Outgoing::new(message(n % 4, u64::from(n), 4000))));
            assert!(duo.send(1, n % 3, Outgoing::new(message(n % 3, u64::from(n), 2000))));
        }
        assert!(ask(&mut duo, 0, Request::ResetAssociation));
        duo.run(Duration::from_secs(600));
        let old = [0, 1].map(|end| duo.got[end].len());
        assert_eq!(old, [60, 60], "seed {seed}");
        assert_eq!(
            changes(&mut duo, 0),
            [Reconfigured::Answered(Request::ResetAssociation, Answer::Performed)]
        );
        assert_eq!(changes(&mut duo, 1), [Reconfigured::AssociationReset]);
        for n in 0..20 {
            assert!(duo.send(0, 1, Outgoing::new(message(1, n, 3000))));
            assert!(duo.send(1, 1, Outgoing::new(message(1, n, 3000))));
        }
        duo.run(Duration::from_secs(60));
        assert_eq!([0, 1].map(|end| duo.got[end].len()), [80, 80], "seed {seed}");
        assert_eq!([0, 1].map(|end| duo.ends[end].state()), [State::Established; 2]);
    }
}

#[test]
fn a_lost_answer_is_given_again_word_for_word() {
    let mut duo = Duo::new(Config::default(), Config::default(), 1);
    assert!(duo.send(0, 0, Outgoing::new(message(0, 0, 100))));
    duo.run(Duration::from_secs(1));
    // Nothing of what the server says comes through for a while.
    let quiet = duo.sent;
    duo.loses = Box::new(move |end, _, n| end == 1 && n < quiet + 4);
    assert!(ask(&mut duo, 0, Request::ResetOutgoing(vec![0])));
    assert!(duo.send(0, 0, Outgoing::new(message(0, 1, 100))));
    duo.run(Duration::from_millis(900));
    assert_eq!(duo.got[1].len(), 1, "what was written after the reset waits for the answer");
    duo.run(Duration::from_secs(20));
    assert_eq!(duo.got[1].len(), 2);
    assert_eq!(changes(&mut duo, 1), [Reconfigured::IncomingReset(vec![0])], "done once");
    let answer = Reconfigured::Answered(Request::ResetOutgoing(vec![0]), Answer::Performed);
    assert_eq!(changes(&mut duo, 0), [answer]);
}

#[test]
fn requests_out_of_turn_or_beyond_what_there_is_are_answered_so() {
    let mut duo = Duo::new(Config::default(), Config { most_streams: 12, ..Config::default() }, 1);
    // The first number is the first TSN of who asks, which a request of its own shows.
    assert!(ask(&mut duo, 0, Request::ResetIncoming(vec![1])));
    let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
    let mut unit = duo.ends[0].poll_transmit(&mut cx).unwrap();
    let first = match &parse(&mut unit.packet).unwrap().1[..] {
        [Chunk::ReConfig(p)] => match p[..] {
            [Parameter::IncomingReset(number, _)] => number,
            _ => panic!("{p:?}"),
        },
        other => panic!("{other:?}"),
    };
    let reset = |request, streams| {
        vec![Parameter::OutgoingReset(Reset {
            request,
            response: 0,
            last_tsn: first.wrapping_sub(1),
            streams,
        })]
    };
    assert_eq!(said(&inject(&mut duo, 1, reset(first.wrapping_add(5), vec![]))), [result::BAD_SEQUENCE]);
    assert_eq!(said(&inject(&mut duo, 1, reset(first, vec![3000]))), [result::WRONG_SSN]);
    assert_eq!(said(&inject(&mut duo, 1, reset(first, vec![1]))), [result::WRONG_SSN], "the same again");
    let next = first.wrapping_add(1);
    assert_eq!(said(&inject(&mut duo, 1, vec![Parameter::AddIncoming(next, 3)])), [result::DENIED]);
    let next = first.wrapping_add(2);
    assert_eq!(said(&inject(&mut duo, 1, vec![Parameter::AddOutgoing(next, 9)])), [result::DENIED]);
    let next = first.wrapping_add(3);
    let nothing = inject(&mut duo, 1, vec![Parameter::IncomingReset(next, vec![4])]);
    assert_eq!(said(&nothing), [result::NOTHING_TO_DO], "nothing was sent on it yet");
    let two = vec![
        Parameter::AddIncoming(first.wrapping_add(4), 1),
        Parameter::AddIncoming(first.wrapping_add(5), 1),
    ];
    let answers = inject(&mut duo, 1, two);
    assert_eq!(said(&answers), [result::PERFORMED, result::PERFORMED]);
    assert!(matches!(answers[2..], [Parameter::AddOutgoing(_, 1)]), "{answers:?}");
}

#[test]
fn a_reset_waits_for_what_was_sent_before_it_and_holds_what_was_sent_after() {
    let mut duo = Duo::new(Config::default(), Config::default(), 1);
    assert!(ask(&mut duo, 0, Request::ResetIncoming(vec![9])));
    let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
    let first = match &parse(&mut duo.ends[0].poll_transmit(&mut cx).unwrap().packet).unwrap().1[..] {
        [Chunk::ReConfig(p)] => match p[..] {
            [Parameter::IncomingReset(number, _)] => number,
            _ => panic!("{p:?}"),
        },
        other => panic!("{other:?}"),
    };
    let reset = Reset { request: first, response: 0, last_tsn: first, streams: vec![2] };
    let reset = |request| vec![Parameter::OutgoingReset(Reset { request, ..reset.clone() })];
    assert_eq!(said(&inject(&mut duo, 1, reset(first))), [result::IN_PROGRESS]);
    // The same under another number is no second one.
    let next = first.wrapping_add(1);
    assert_eq!(said(&inject(&mut duo, 1, reset(next))), [result::IN_PROGRESS]);
    let header = Header { source: 1, destination: 2, tag: duo.ends[1].local_tag() };
    let data = |duo: &mut Duo, tsn: u32, body: Body| {
        let data = Data { tsn, stream: 2, begin: true, end: true, body, ..Data::default() };
        let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
        duo.ends[1].handle_packet(&mut cx, PathId(0), 0, header.packet(&[Chunk::Data(data)]));
        duo.drain(1);
        duo.got[1].iter().map(Message::len).collect::<Vec<_>>()
    };
    // Both have number 0 in their stream: the second one under the new numbers.
    assert!(data(&mut duo, first.wrapping_add(1), message(2, 1, 8)).is_empty(), "waits for the reset");
    assert_eq!(data(&mut duo, first, message(2, 0, 4)), [4, 8]);
    assert_eq!(said(&inject(&mut duo, 1, reset(next))), [result::PERFORMED]);
    assert_eq!(changes(&mut duo, 1), [Reconfigured::IncomingReset(vec![2])]);
}

fn in_progress(response: u32) -> Vec<Parameter> {
    vec![Parameter::ReconfigResponse { response, result: result::IN_PROGRESS, next: None }]
}

/// The number of the only reset that was sent.
fn number_of(sent: &[Parameter]) -> u32 {
    match sent {
        [Parameter::OutgoingReset(reset)] => reset.request,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_peer_that_still_waits_for_data_that_it_has_is_asked_under_another_number() {
    let mut duo = Duo::new(Config::default(), Config::default(), 1);
    assert!(duo.send(0, 0, Outgoing::new(message(0, 0, 100))));
    duo.run(Duration::from_secs(1));
    duo.loses = Box::new(|end, _, _| end == 0);
    assert!(ask(&mut duo, 0, Request::ResetOutgoing(vec![0])));
    assert!(duo.send(0, 0, Outgoing::new(message(0, 1, 100))));
    let number = number_of(&inject(&mut duo, 0, in_progress(0)));
    assert_eq!(inject(&mut duo, 0, in_progress(number)), [], "it may not have seen the data yet");
    // Asked again: it has now.
    duo.run(Duration::from_millis(1500));
    let next = number_of(&inject(&mut duo, 0, in_progress(number)));
    assert_eq!(next, number.wrapping_add(1));
    assert_eq!(inject(&mut duo, 0, in_progress(number)), [], "that number is over");
    let response = |response, result| vec![Parameter::ReconfigResponse { response, result, next: None }];
    assert_eq!(inject(&mut duo, 0, response(number, result::PERFORMED)), [], "it may do it once more");
    assert_eq!(inject(&mut duo, 0, response(next, result::ALREADY_IN_PROGRESS)), []);
    assert_eq!(changes(&mut duo, 0), []);
    inject(&mut duo, 0, response(next, result::PERFORMED));
    let answer = Reconfigured::Answered(Request::ResetOutgoing(vec![0]), Answer::Performed);
    assert_eq!(changes(&mut duo, 0), [answer]);
}

#[test]
fn a_peer_that_waits_for_data_on_its_way_is_asked_under_the_same_number() {
    let mut duo = Duo::new(Config::default(), Config::default(), 1);
    duo.loses = Box::new(|end, _, _| end == 0);
    assert!(duo.send(0, 0, Outgoing::new(message(0, 0, 100))));
    duo.drain(0);
    assert!(ask(&mut duo, 0, Request::ResetOutgoing(vec![0])));
    let number = number_of(&inject(&mut duo, 0, in_progress(0)));
    for _ in 0..3 {
        assert_eq!(inject(&mut duo, 0, in_progress(number)), []);
        duo.run(Duration::from_secs(5));
    }
    duo.loses = Box::new(|_, _, _| false);
    duo.run(Duration::from_secs(60));
    let answer = Reconfigured::Answered(Request::ResetOutgoing(vec![0]), Answer::Performed);
    assert_eq!(changes(&mut duo, 0), [answer]);
    assert_eq!(changes(&mut duo, 1), [Reconfigured::IncomingReset(vec![0])], "done once");
}

#[test]
fn who_does_not_offer_it_is_not_asked_and_does_not_answer() {
    let without = Config { stream_reset: false, ..Config::default() };
    let mut duo = Duo::new(Config::default(), without, 1);
    assert!(!ask(&mut duo, 0, Request::ResetOutgoing(Vec::new())));
    assert!(!ask(&mut duo, 1, Request::ResetOutgoing(Vec::new())));
    assert_eq!(inject(&mut duo, 1, vec![Parameter::SsnTsnReset(7)]), []);
    assert_eq!(duo.ends[1].state(), State::Established);
}

#[test]
fn what_waits_for_a_reset_leaves_before_the_end() {
    let mut duo = Duo::new(Config::default(), Config::default(), 1);
    assert!(duo.send(0, 0, Outgoing::new(message(0, 0, 100))));
    assert!(ask(&mut duo, 0, Request::ResetOutgoing(Vec::new())));
    assert!(duo.send(0, 0, Outgoing::new(message(0, 1, 100))));
    let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
    duo.ends[0].finish(&mut cx, 0);
    duo.run(Duration::from_secs(60));
    assert_eq!(duo.got[1].len(), 2);
    assert!(duo.events[0].contains(&TransportEvent::Closed(CloseReason::Finished)));
}

#[test]
fn a_peer_that_never_answers_a_request_is_found_out() {
    let mut duo = Duo::new(Config::default(), Config::default(), 1);
    assert!(ask(&mut duo, 0, Request::AddOutgoing(1)));
    duo.loses = Box::new(|end, _, _| end == 1);
    duo.run(Duration::from_secs(3600));
    assert!(duo.events[0].contains(&TransportEvent::Closed(CloseReason::TimedOut)));
}

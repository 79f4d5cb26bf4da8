//! Messages larger than the receive buffer.

use airloom_base::units::Octets;

use super::*;

fn small(interleaving: bool) -> Config {
    Config { receive_buffer: Octets(30_000), interleaving, ..Config::default() }
}

/// Messages with their parts put together; how many parts there were of each.
fn whole(got: &[Message]) -> Vec<(u16, Vec<u8>, usize)> {
    let mut found = Vec::new();
    let mut open: BTreeMap<u16, (Vec<u8>, usize)> = BTreeMap::new();
    for message in got {
        assert!(!message.is_given_up);
        let (all, parts) = open.entry(message.stream).or_default();
        all.extend(octets(message));
        *parts += 1;
        if !message.continues {
            let (all, parts) = open.remove(&message.stream).unwrap_or_default();
            found.push((message.stream, all, parts));
        }
    }
    assert!(open.is_empty());
    found
}

#[test]
fn a_message_larger_than_the_buffer_arrives_in_parts_through_losses() {
    for interleaving in [false, true] {
        for seed in 0..10u64 {
            let mut duo = Duo::new(Config { interleaving, ..Config::default() }, small(interleaving), 1);
            duo.loses = Box::new(move |_, _, n| seed > 0 && splitmix64(seed, n).is_multiple_of(25));
            let lens = [200_000, 500, 90_000];
            for (n, len) in (0..).zip(lens) {
                assert!(duo.send(0, 1, Outgoing::new(message(1, n, len))));
                assert!(duo.send(0, 2, Outgoing::new(message(2, n, 700))));
            }
            duo.run(Duration::from_secs(900));
            let found = whole(&duo.got[1]);
            assert_eq!(found.len(), 6, "seed {seed}, interleaving {interleaving}");
            for stream in [1, 2] {
                let here: Vec<_> = found.iter().filter(|f| f.0 == stream).collect();
                for (n, (_, got, parts)) in here.iter().enumerate() {
                    let len = if stream == 1 { lens[n] } else { 700 };
                    assert!(*got == message(stream, n as u64, len).to_bytes(), "seed {seed}: {stream} {n}");
                    assert_eq!(*parts > 1, len > 30_000, "{parts} parts of {len}");
                }
            }
            assert_eq!(duo.ends.each_ref().map(|e| e.state()), [State::Established; 2]);
        }
    }
}

#[test]
fn readers_of_octets_do_not_notice_that_messages_come_in_parts() {
    let large = Config { message: Octets(150_000), ..Config::default() };
    let mut pair = pair(large, small(false), LinkConfig::default());
    exchange(&mut pair, 400_000);
}

#[test]
fn a_message_given_up_in_the_middle_ends_with_an_empty_one() {
    for interleaving in [false, true] {
        let mut duo = Duo::new(Config { interleaving, ..Config::default() }, small(interleaving), 1);
        let until = Reliability::Until(duo.now + Duration::from_secs(3));
        let late = Outgoing { reliability: until, ..Outgoing::new(message(1, 0, 400_000)) };
        assert!(duo.send(0, 1, late));
        duo.run(Duration::from_secs(1));
        assert!(!duo.got[1].is_empty() && duo.got[1].iter().all(|m| m.continues));
        // Nothing crosses until it is too late.
        duo.loses = Box::new(|_, _, _| true);
        duo.run(Duration::from_secs(4));
        duo.loses = Box::new(|_, _, _| false);
        assert!(duo.send(0, 1, Outgoing::new(message(1, 1, 300))));
        duo.run(Duration::from_secs(60));
        let [.., end, next] = &duo.got[1][..] else { panic!("{} messages", duo.got[1].len()) };
        assert!(end.is_given_up && end.is_empty() && !end.continues, "interleaving {interleaving}");
        assert_eq!((octets(next), next.continues), (message(1, 1, 300).to_bytes().to_vec(), false));
    }
}

#[test]
fn readers_of_octets_hear_of_what_follows_a_message_that_was_given_up() {
    for interleaving in [false, true] {
        let mut duo = Duo::new(Config { interleaving, ..Config::default() }, small(interleaving), 1);
        let until = Reliability::Until(duo.now + Duration::from_secs(3));
        let late = Outgoing { reliability: until, ..Outgoing::new(message(1, 0, 400_000)) };
        assert!(duo.send(0, 1, late));
        duo.run(Duration::from_secs(1));
        duo.loses = Box::new(|_, _, _| true);
        duo.run(Duration::from_secs(4));
        duo.loses = Box::new(|_, _, _| false);
        duo.run(Duration::from_secs(60));
        // Its end came alone, and is told.
        assert!(duo.got[1].last().is_some_and(|m| m.is_given_up), "interleaving {interleaving}");
        assert!(duo.send(0, 1, Outgoing::new(message(1, 1, 300))));
        duo.run(Duration::from_secs(1));
        assert_eq!(duo.got[1].last().map(octets), Some(message(1, 1, 300).to_bytes().to_vec()));
    }
}

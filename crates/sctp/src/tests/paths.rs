//! What leaves over which path, where there are several (RFC 9260, 5.4, 6.4).

use super::*;

/// What an end sends now: the path and the chunks of each packet.
fn sent(duo: &mut Duo, end: usize) -> Vec<(u8, Vec<Chunk>)> {
    let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
    let units = std::iter::from_fn(|| duo.ends[end].poll_transmit(&mut cx));
    units.map(|mut unit| (unit.path.0, parse(&mut unit.packet).unwrap().1)).collect()
}

#[test]
fn a_path_that_is_not_confirmed_carries_its_heartbeat_and_nothing_else() {
    let mut duo = Duo::new(Config::default(), Config::default(), 1);
    for n in 0..20 {
        assert!(duo.send(0, 0, Outgoing::new(message(0, n, 1000))));
    }
    let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
    assert!(duo.ends[0].add_path(&mut cx, paths(2, false)[1]));
    let (new, old): (Vec<_>, Vec<_>) = sent(&mut duo, 0).into_iter().partition(|(path, _)| *path == 1);
    assert!(matches!(&new[..], [(_, chunks)] if matches!(chunks[..], [Chunk::Heartbeat(_)])), "{new:?}");
    assert!(old.len() > 3, "data over the other one");
}

#[test]
fn a_dead_path_takes_neither_data_nor_acknowledgements_along_with_its_heartbeat() {
    let mut duo = Duo::new(Config::default(), Config::default(), 2);
    let (tag, tsn) = (duo.ends[0].local_tag, duo.ends[1].local_tsn);
    for marked in [false, true] {
        let data = Data {
            tsn: tsn.wrapping_add(u32::from(marked)),
            sequence: u32::from(marked),
            begin: true,
            end: true,
            immediate: true,
            body: Body::filler(1, 100),
            ..Data::default()
        };
        let unit = Header { source: 2, destination: 1, tag }.packet(&[Chunk::Data(data)]);
        let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
        duo.ends[0].paths[0].active = false;
        if marked {
            let Association { flight, paths, .. } = &mut duo.ends[0];
            flight.timed_out(1, paths);
        } else {
            assert!(duo.ends[0].send(&mut cx, 0, Outgoing::new(message(0, 0, 100))));
        }
        duo.ends[0].probe(&mut cx, 0);
        duo.ends[0].handle_packet(&mut cx, PathId(1), 0, unit);
        let packets = sent(&mut duo, 0);
        let [(0, heartbeat), (1, rest)] = &packets[..] else { panic!("{packets:?}") };
        assert!(matches!(heartbeat[..], [Chunk::Heartbeat(_)]), "{heartbeat:?}");
        assert!(matches!(rest[..], [Chunk::Sack(_), Chunk::Data(_)]), "{rest:?}");
    }
}

#[test]
fn packets_become_no_smaller_than_any_path_of_ip_needs() {
    let mut duo = Duo::new(Config::default(), Config::default(), 2);
    let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
    duo.ends[0].paths[1].address.remote = "2001:db8::2".parse().unwrap();
    for (path, told, is) in [(0, 0, 1500), (0, 20, 68), (1, 0, 1500), (1, 600, 1280)] {
        duo.ends[0].path_mtu(&mut cx, PathId(path), told);
        assert_eq!(duo.ends[0].paths[usize::from(path)].address.mtu, is, "{told} of path {path}");
    }
}

#[test]
fn chunks_fit_into_the_smallest_path_whichever_they_take() {
    let mut duo = Duo::new(Config::default(), Config::default(), 2);
    let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
    duo.ends[0].path_mtu(&mut cx, PathId(1), 576);
    let small = duo.ends[0].paths[1].payload(false);
    assert!(duo.ends[0].send(&mut cx, 0, Outgoing::new(message(0, 0, 3000))));
    assert_eq!(duo.ends[0].write(&mut cx, 1, Body::filler(1, 3000)), Ok(3000));
    let data: Vec<Data> = sent(&mut duo, 0)
        .into_iter()
        .flat_map(|(_, chunks)| chunks)
        .filter_map(|chunk| if let Chunk::Data(data) = chunk { Some(data) } else { None })
        .collect();
    assert!(data.len() > 5 && data.iter().all(|d| d.body.len() <= small), "{data:?}");
    let written = data.iter().filter(|d| d.stream == 1);
    assert!(written.clone().count() > 0, "{data:?}");
    assert!(written.clone().all(|d| d.begin && d.end), "messages are as large as chunks: {data:?}");
}

#[test]
fn where_one_path_fails_the_end_is_said_over_the_other() {
    for end in [0, 1] {
        let mut duo = Duo::new(Config::default(), Config::default(), 2);
        duo.loses = Box::new(|_, path, _| path == 0);
        assert!(duo.send(0, 0, Outgoing::new(message(0, 0, 1000))));
        duo.run(Duration::from_secs(10));
        assert_eq!(duo.got[1].len(), 1);
        let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
        duo.ends[end].finish(&mut cx, 0);
        duo.run(Duration::from_secs(30));
        let closed = TransportEvent::Closed(CloseReason::Finished);
        assert!(duo.events.iter().all(|events| events.contains(&closed)), "{end}: {:?}", duo.events);
    }
}

#[test]
fn a_peer_that_vanishes_at_the_end_is_given_up_after_as_many_tries_on_all_paths_as_on_one() {
    for count in [1, 2] {
        let mut duo = Duo::new(Config::default(), Config::default(), count);
        duo.loses = Box::new(|_, _, _| true);
        let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
        duo.ends[0].finish(&mut cx, 0);
        duo.run(Duration::from_secs(1000));
        assert!(duo.events[0].contains(&TransportEvent::Closed(CloseReason::TimedOut)));
        assert!(duo.ends[0].facts().rto_count <= 11, "{count} paths");
    }
}

#[test]
fn an_abort_goes_over_a_path_that_works() {
    let mut duo = Duo::new(Config::default(), Config::default(), 2);
    let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
    duo.ends[0].paths[0].active = false;
    duo.ends[0].reset(&mut cx);
    let packets = sent(&mut duo, 0);
    assert!(
        matches!(&packets[..], [(1, chunks)] if matches!(chunks[..], [Chunk::Abort { .. }])),
        "{packets:?}"
    );
}

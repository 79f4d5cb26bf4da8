//! Marks of the network, the echo of the peer, and what is said to that (RFC 4960, appendix A).

use super::*;

/// Both ends know ECN, over two paths; data of the first one is under way on path 1.
fn duo() -> Duo {
    let config = Config { ecn: true, ..Config::default() };
    let mut duo = Duo::new(config.clone(), config, 2);
    duo.ends[0].paths[0].active = false;
    for n in 0..5 {
        assert!(duo.send(0, 0, Outgoing::new(message(0, n, 1452))));
    }
    duo.run(Duration::from_millis(10));
    duo.ends[0].paths.iter_mut().for_each(|path| path.cwnd = 50_000);
    duo
}

/// What end `end` sends in answer to this chunk.
fn answer(duo: &mut Duo, end: usize, chunk: Chunk) -> Vec<Chunk> {
    let ports = if end == 0 { (2, 1) } else { (1, 2) };
    let header = Header { source: ports.0, destination: ports.1, tag: duo.ends[end].local_tag };
    let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
    duo.ends[end].handle_packet(&mut cx, PathId(1), 0, header.packet(&[chunk]));
    let units = std::iter::from_fn(|| duo.ends[end].poll_transmit(&mut cx));
    units.flat_map(|mut unit| parse(&mut unit.packet).unwrap().1).collect()
}

#[test]
fn an_echo_reduces_the_window_of_the_path_that_was_marked() {
    let mut duo = duo();
    let tsn = duo.ends[0].local_tsn;
    let _ = answer(&mut duo, 0, Chunk::Ecne(tsn.wrapping_add(1)));
    assert_eq!([0, 1].map(|n| duo.ends[0].cwnd(n)), [50_000, 25_000]);
}

#[test]
fn an_echo_of_what_is_acknowledged_already_is_for_the_path_it_comes_over() {
    let mut duo = duo();
    duo.run(Duration::from_secs(1));
    let tsn = duo.ends[0].local_tsn;
    duo.ends[0].paths.iter_mut().for_each(|path| path.cwnd = 50_000);
    let _ = answer(&mut duo, 0, Chunk::Ecne(tsn.wrapping_add(1)));
    assert_eq!([0, 1].map(|n| duo.ends[0].cwnd(n)), [50_000, 25_000]);
}

#[test]
fn cwr_names_the_tsn_of_the_echo_and_ends_no_later_one() {
    let mut duo = duo();
    let marked = duo.ends[0].local_tsn.wrapping_add(1);
    let sent = answer(&mut duo, 0, Chunk::Ecne(marked));
    let cwr: Vec<_> = sent.iter().filter(|c| matches!(c, Chunk::Cwr(_))).collect();
    assert_eq!(cwr, [&Chunk::Cwr(marked)]);
    duo.ends[1].ecne = Some(marked);
    for (tsn, left) in [(marked.wrapping_sub(1), Some(marked)), (marked, None)] {
        let _ = answer(&mut duo, 1, Chunk::Cwr(tsn));
        assert_eq!(duo.ends[1].ecne, left);
    }
}

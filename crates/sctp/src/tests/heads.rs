//! What is read of a packet's head alone: the packets table has its numbers from there.

use super::*;

/// TSN and cumulative TSN in the heads of the packets that end `end` sends now.
fn described(duo: &mut Duo, end: usize) -> Vec<(Option<u64>, Option<u64>, usize)> {
    let sctp = Sctp::new(Config::default(), (1, 2));
    let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
    let units = std::iter::from_fn(|| duo.ends[end].poll_transmit(&mut cx));
    units
        .map(|mut unit| {
            let described = sctp.describe(unit.packet.head());
            let chunks = parse(&mut unit.packet).unwrap().1;
            let data = chunks.iter().filter(|c| matches!(c, Chunk::Data(_))).count();
            (described.seq, described.ack, data)
        })
        .collect()
}

#[test]
fn packets_with_several_chunks_or_padding_tell_their_first_tsn_and_what_they_acknowledge() {
    for interleaving in [false, true] {
        let config = Config { interleaving, ..Config::default() };
        let mut duo = Duo::new(config.clone(), config, 1);
        let [ours, theirs] = [0, 1].map(|n| duo.ends[n].local_tsn);
        // With padding, and three chunks.
        assert!(duo.send(0, 0, Outgoing::new(message(0, 0, 1001))));
        assert_eq!(described(&mut duo, 0), [(Some(ours.into()), None, 1)]);
        for n in 1..4 {
            assert!(duo.send(0, 0, Outgoing::new(message(0, n, 100))));
        }
        assert_eq!(described(&mut duo, 0), [(Some(ours.wrapping_add(1).into()), None, 3)]);
        // With an acknowledgement in front of them.
        let data = Data {
            tsn: theirs,
            begin: true,
            end: true,
            interleaved: interleaving,
            immediate: true,
            body: Body::filler(1, 10),
            ..Data::default()
        };
        let unit =
            Header { source: 2, destination: 1, tag: duo.ends[0].local_tag }.packet(&[Chunk::Data(data)]);
        let mut cx = Cx { now: duo.now, records: &mut duo.outbox };
        duo.ends[0].handle_packet(&mut cx, PathId(0), 0, unit);
        for n in 4..6 {
            assert!(duo.send(0, 0, Outgoing::new(message(0, n, 101))));
        }
        let expected = (Some(ours.wrapping_add(4).into()), Some(theirs.into()), 2);
        assert_eq!(described(&mut duo, 0), [expected]);
    }
}

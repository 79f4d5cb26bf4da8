//! A second connection to the same server: a session that goes on, and what is sent with its first packet.

mod ends;

use airloom_base::{Body, Cx, Duration, PathId, Protocol, StreamEvent, StreamKind, TransportEvent};
use airloom_quic::{Config, Quic, Session};

use ends::{Ends, WHO, at, path, read_all};

const EARLY: TransportEvent = TransportEvent::Stream(0, StreamEvent::Early);
const REFUSED: TransportEvent = TransportEvent::Stream(0, StreamEvent::EarlyRefused);

fn config(session: Session, zero_rtt: bool) -> Config {
    Config { session, zero_rtt, ..Config::default() }
}

/// Two ends that have spoken before, and begin again.
fn second(client: &Config, server: &Config) -> Ends {
    let mut ends = Ends::new(client, 1, Some("h3"));
    ends.protocols[1] = Quic::new(server.clone(), 1, "server");
    ends.protocols[1].serve(443, "h3");
    ends.run(at(200));
    assert!(ends.told(0, TransportEvent::Opened) && !ends.told(0, EARLY));
    ends.again("h3");
    ends
}

/// Octets that the server has sent until now.
fn of_server(ends: &Ends) -> usize {
    ends.sent.iter().filter(|(end, _)| *end == 1).map(|(_, octets)| octets.len()).sum()
}

fn ask(ends: &mut Ends, text: &'static [u8]) -> u32 {
    let stream = ends.with(0, |client, cx| client.open_stream(cx, StreamKind::Bi)).expect("it may");
    ends.with(0, |client, cx| client.write(cx, stream, Body::Real(text.into()))).expect("there is room");
    stream
}

#[test]
fn a_session_goes_on_without_certificates_unless_one_end_will_not() {
    for session in [Session::Model, Session::Seeded] {
        let usual = config(session, false);
        let flight = |client: &Config, server: &Config| {
            let mut ends = second(client, server);
            ends.run(ends.now + Duration::from_millis(100));
            assert!(ends.told(0, TransportEvent::Opened) && !ends.told(0, EARLY));
            of_server(&ends)
        };
        let never = Config { resumes: false, ..usual.clone() };
        let (goes_on, whole) = (flight(&usual, &usual), flight(&never, &never));
        //= RFC 8446 (2.2): a server that authenticates by a pre-shared key sends no Certificate or CertificateVerify.
        assert!(goes_on + 1500 < whole, "{goes_on} {whole}");
        for (client, server) in [(&never, &usual), (&usual, &never)] {
            assert!(flight(client, server).abs_diff(whole) < 200);
        }
    }
}

#[test]
fn what_is_sent_with_the_first_packet_is_there_before_the_handshake_is_over() {
    for session in [Session::Model, Session::Seeded] {
        let zero_rtt = config(session, true);
        let mut ends = second(&zero_rtt, &zero_rtt);
        ends.listen(0);
        assert!(ends.told(0, EARLY) && !ends.told(0, TransportEvent::Opened));
        let stream = ask(&mut ends, b"early");
        let began = ends.now;
        ends.run(began + Duration::from_millis(100));
        assert!(ends.told(1, TransportEvent::Readable(stream, 5)));
        assert_eq!(read_all(&mut ends, 1, stream), b"early");
        // The server has it after one way of a millisecond; the handshake takes it two more.
        let established = ends.with(1, |server, _| server.facts().established);
        assert_eq!(established, Some(began + Duration::from_millis(1)));
        assert!(ends.told(0, TransportEvent::Opened) && !ends.told(0, REFUSED));
        let notes = ends.protocols[0].key_log().lines().matches("CLIENT_EARLY_TRAFFIC_SECRET").count();
        assert_eq!(notes, usize::from(session == Session::Seeded));
    }
}

#[test]
fn nothing_is_sent_early_with_a_ticket_of_a_server_that_takes_nothing() {
    for session in [Session::Model, Session::Seeded] {
        let mut ends = second(&config(session, true), &config(session, false));
        ends.run(ends.now + Duration::from_millis(100));
        assert!(ends.told(0, TransportEvent::Opened) && !ends.told(0, EARLY) && !ends.told(0, REFUSED));
    }
}

#[test]
fn a_server_that_takes_nothing_early_says_so_and_is_asked_again() {
    let zero_rtt = config(Session::Model, true);
    let mut ends = second(&zero_rtt, &zero_rtt);
    // It gave the ticket when it still did.
    ends.protocols[1] = Quic::new(config(Session::Model, false), 1, "server");
    ends.protocols[1].serve(443, "h3");
    let began = ends.now;
    assert_eq!(ask(&mut ends, b"early"), 0);
    ends.run(began + Duration::from_millis(100));
    assert!(ends.told(0, REFUSED) && ends.told(0, TransportEvent::Opened));
    let established = ends.with(0, |client, _| client.facts().established);
    assert!(established >= Some(began + Duration::from_millis(2)), "data flows when the handshake is over");
    assert!(read_all(&mut ends, 1, 0).is_empty());
    // The streams are as if they had never been.
    assert_eq!(ask(&mut ends, b"late"), 0);
    ends.run(ends.now + Duration::from_millis(100));
    assert_eq!(read_all(&mut ends, 1, 0), b"late");
}

#[test]
fn early_data_that_somebody_repeats_is_taken_once() {
    let zero_rtt = config(Session::Seeded, true);
    let mut ends = second(&zero_rtt, &zero_rtt);
    let stream = ask(&mut ends, b"early");
    ends.run(ends.now + Duration::from_millis(100));
    assert_eq!(read_all(&mut ends, 1, stream), b"early");
    // All that the client sent before it heard anything, from another port when all is forgotten but the ticket.
    let first: Vec<Vec<u8>> =
        ends.sent.iter().take_while(|(end, _)| *end == 0).map(|(_, octets)| octets.clone()).collect();
    ends.with(0, |client, cx| client.close(cx, 0));
    ends.run(ends.now + Duration::from_secs(60));
    assert!(ends.told(1, TransportEvent::Gone));
    let server = &mut ends.protocols[1];
    let cx = &mut Cx { now: ends.now, records: &mut ends.records };
    let mut repeated = None;
    for octets in first {
        let unit = ends::unit((443, 50_001), &octets[8..]);
        if repeated.is_none() {
            assert_eq!(server.whose(cx, &path(1), (443, 50_001), 0, &unit), None);
            repeated = server.accept(cx, path(1), (443, 50_001), WHO, &unit);
        }
        repeated.as_mut().expect("it may be a client").handle_packet(cx, PathId(0), 0, unit);
    }
    let mut repeated = repeated.expect("it may be a client");
    while let Some(event) = repeated.poll_event() {
        //= RFC 8446 (8.1): a ticket is good for early data once.
        assert!(!matches!(event, TransportEvent::Stream(..) | TransportEvent::Readable(..)), "{event:?}");
    }
}

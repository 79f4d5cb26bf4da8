//! Options of open connections and what a connection says of itself, as sockets have them.

use std::net::{IpAddr, Ipv4Addr};

use airloom_base::service::Path;
use airloom_base::{Body, Cx, Duration, Instant, Outbox, Packet, PathId};
use airloom_tcp::config::{Config, InitialWindow, Nagle};
use airloom_tcp::socket::Socket;
use airloom_tcp::state::State;
use airloom_tcp::wire::{Flags, Header, Options};
use airloom_tcp::{Profile, Tcp};

const SECOND: Duration = Duration::from_secs(1);

/// A connection that is open, the hand that plays its peer, and the time.
struct Desk {
    socket: Socket,
    outbox: Outbox,
    now: Instant,
    iss: u32,
}

fn plain() -> Config {
    Config {
        timestamps: false,
        sack: false,
        window_scaling: false,
        initial_window: InitialWindow::Segments(10),
        ..Profile::Linux.settings()
    }
}

impl Desk {
    /// Opened by us; the peer's segments have 1000 octets and its window is large.
    fn new(config: Config) -> Desk {
        let address = |n| IpAddr::V4(Ipv4Addr::new(10, 0, 0, n));
        let path = Path { local: address(1), remote: address(2), mtu: 1500 };
        let socket = Socket::open(&Tcp::new(config, 1), Instant::ZERO, path, (1000, 80));
        let mut desk = Desk { socket, outbox: Outbox::default(), now: Instant::ZERO, iss: 0 };
        desk.with(|s, cx| s.transport_mut().connect(cx));
        desk.iss = desk.header().expect("a SYN").0.seq;
        let options = Options { mss: Some(1000), ..Options::default() };
        desk.arrives(Flags::SYN.with(Flags::ACK), 0, 1, options, b"");
        assert_eq!(desk.sent(), [(1, 0, false)], "the handshake ends");
        desk
    }

    fn with<R>(&mut self, f: impl FnOnce(&mut Socket, &mut Cx) -> R) -> R {
        f(&mut self.socket, &mut Cx { now: self.now, records: &mut self.outbox })
    }

    fn arrives(&mut self, flags: Flags, seq: u32, ack: u32, options: Options, text: &[u8]) {
        let header = Header {
            source: 80,
            destination: 1000,
            seq: 7 + seq,
            ack: self.iss.wrapping_add(ack),
            flags,
            window: 65_535,
            urgent: 0,
            options,
        };
        let packet = Packet::build(|out| header.emit(out), Body::Real(text.to_vec().into()));
        self.with(|s, cx| s.transport_mut().handle_packet(cx, PathId(0), 0, packet));
    }

    fn acknowledges(&mut self, ack: u32) {
        self.arrives(Flags::ACK, 1, ack, Options::default(), b"");
    }

    fn header(&mut self) -> Option<(Header, usize)> {
        let out = self.with(|s, cx| s.transport_mut().poll_transmit(cx))?;
        let (header, _) = Header::parse(out.packet.head()).expect("a header");
        Some((header, out.packet.body().len()))
    }

    /// What leaves now: relative number, octets, PSH.
    fn sent(&mut self) -> Vec<(u32, usize, bool)> {
        let iss = self.iss;
        std::iter::from_fn(|| self.header())
            .map(|(h, len)| (h.seq.wrapping_sub(iss), len, h.flags.has(Flags::PSH)))
            .collect()
    }

    /// Writes and returns what leaves.
    fn write(&mut self, octets: u32, more: bool) -> Vec<(u32, usize, bool)> {
        assert!(self.with(|s, cx| s.write(cx, Body::filler(1, octets), more)));
        let sent = self.sent();
        self.socket.written();
        sent
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.socket.transport().poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.with(|s, cx| s.transport_mut().handle_timeout(cx));
        }
        self.now = end;
    }
}

#[test]
fn while_it_is_corked_a_part_of_a_segment_waits_for_the_rest() {
    let mut desk = Desk::new(plain());
    desk.socket.cork(true);
    assert_eq!(desk.write(400, false), []);
    assert_eq!(desk.write(700, false), [(1, 1000, false)]);
    desk.socket.cork(false);
    assert_eq!(desk.sent(), [(1001, 100, true)]);
}

#[test]
fn what_is_corked_for_long_leaves_when_the_timer_expires() {
    let mut desk = Desk::new(plain());
    desk.socket.cork(true);
    assert_eq!(desk.write(400, false), []);
    desk.pass(SECOND);
    assert_eq!(desk.sent(), [(1, 400, true)]);
}

#[test]
fn without_delay_what_is_corked_leaves_once_and_what_follows_waits() {
    let mut desk = Desk::new(plain());
    desk.socket.cork(true);
    assert_eq!(desk.write(400, false), []);
    let now = desk.now;
    desk.socket.change(now, |c| c.nagle = Nagle::Off);
    desk.socket.push();
    assert_eq!(desk.sent(), [(1, 400, true)]);
    assert_eq!(desk.write(400, false), []);
}

#[test]
fn a_write_that_goes_on_waits_for_the_next_acknowledgement_and_does_not_end_with_a_push() {
    let mut desk = Desk::new(Config { nagle: Nagle::Off, ..plain() });
    assert_eq!(desk.write(1050, true), [(1, 1000, false)]);
    desk.acknowledges(1001);
    assert_eq!(desk.sent(), [(1001, 50, false)]);
    assert_eq!(desk.write(20, true), []);
    assert_eq!(desk.write(30, false), [(1051, 50, true)]);
}

#[test]
fn no_segment_goes_on_beyond_the_end_of_a_record() {
    let mut desk = Desk::new(plain());
    for _ in 0..3 {
        assert!(desk.with(|s, cx| s.write(cx, Body::filler(1, 400), false)));
        desk.socket.end_record();
    }
    assert!(desk.with(|s, cx| s.write(cx, Body::filler(1, 1500), false)));
    let sent = desk.sent();
    assert_eq!(sent, [(1, 400, true), (401, 400, true), (801, 400, true), (1201, 1000, false)]);
    // Nor when it is sent again.
    desk.pass(SECOND);
    assert_eq!(desk.sent()[0], (1, 400, true));
    desk.acknowledges(2201);
    assert_eq!(desk.sent(), [(2201, 500, true)]);
}

#[test]
fn settings_of_an_open_connection_hold_from_now_on() {
    let mut desk = Desk::new(plain());
    assert_eq!(desk.write(1300, false).len(), 2);
    assert_eq!(desk.write(200, false), [], "a short one is outstanding");
    let now = desk.now;
    desk.socket.change(now, |c| c.nagle = Nagle::Off);
    assert_eq!(desk.sent(), [(1301, 200, true)]);
    desk.acknowledges(1501);
    desk.socket.change(now, |c| {
        c.keepalive = true;
        c.keepalive_idle = Duration::from_secs(5);
    });
    desk.pass(Duration::from_secs(4));
    assert_eq!(desk.sent(), []);
    desk.pass(Duration::from_secs(2));
    assert_eq!(desk.sent(), [(1500, 0, false)], "a keep-alive");
    desk.socket.change(now, |c| c.give_up = Duration::from_secs(3));
    desk.write(10, false);
    desk.pass(Duration::from_secs(20));
    assert_eq!(desk.socket.info(desk.now).state, State::Closed);
}

#[test]
fn text_for_an_application_that_is_gone_is_refused_as_one_of_no_connection() {
    let mut desk = Desk::new(plain());
    desk.arrives(Flags::ACK, 1, 1, Options::default(), b"late");
    desk.socket.refuse_text();
    let (header, _) = desk.header().expect("a RST");
    assert_eq!((header.flags, header.seq.wrapping_sub(desk.iss), header.ack), (Flags::RST, 1, 0));
    assert_eq!(desk.socket.info(desk.now).state, State::Closed);
}

#[test]
fn the_connection_tells_what_it_knows() {
    let mut desk = Desk::new(Config { sack: true, ..plain() });
    desk.pass(SECOND);
    assert!(desk.with(|s, cx| s.write(cx, Body::filler(1, 30_000), false)));
    assert_eq!(desk.sent().len(), 10);
    let info = desk.socket.info(desk.now);
    assert_eq!(
        (info.state, info.snd_cwnd, info.unacked, info.notsent_bytes),
        (State::Established, 10, 10, 20_000)
    );
    assert_eq!((info.queued, info.snd_mss, info.snd_ssthresh), (30_000, 1000, None));
    assert_eq!((info.last_data_recv, info.lost, info.retrans), (SECOND, 0, 0));
    desk.pass(Duration::from_millis(100));
    desk.acknowledges(4001);
    let info = desk.socket.info(desk.now);
    assert_eq!((info.delivered, info.unacked, info.bytes_acked, info.snd_cwnd), (4, 6, 4000, 14));
    assert_eq!(desk.socket.mss(), 1000);
    assert_eq!(desk.socket.block() % 1000, 0);
}

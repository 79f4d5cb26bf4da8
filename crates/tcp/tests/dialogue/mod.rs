//! A dialogue with one TCP: segments go in by hand, what comes out is compared. One line per event.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::net::{IpAddr, Ipv4Addr};

use airloom_base::service::{Identity, Path};
use airloom_base::{
    Body, Cx, Duration, Instant, Outbox, Packet, PathId, Protocol, Transport, TransportEvent,
};
use airloom_tcp::wire::{Flags, Header, Options};
use airloom_tcp::{Config, Profile, Tcp};

pub const SYN: Flags = Flags::SYN;
pub const ACK: Flags = Flags::ACK;
pub const RST: Flags = Flags::RST;
pub const FIN_ACK: Flags = Flags(0x11);
pub const SYN_ACK: Flags = Flags(0x12);
pub const RST_ACK: Flags = Flags(0x14);
pub const PSH_ACK: Flags = Flags(0x18);

/// The number of the peer's SYN.
pub const IRS: u32 = 1000;
/// What the peer expects and is expected to send after the handshake, relative numbers: ours and the peer's.
pub const OURS: i64 = 1;
pub const THEIRS: i64 = 1;

/// A segment that came out; numbers are relative to the two SYNs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Out {
    pub flags: Flags,
    pub seq: i64,
    pub ack: i64,
    pub len: usize,
    pub window: u16,
    pub options: Options,
    /// The acknowledgement field as it is.
    pub raw: (u32, u32),
    /// ECN codepoint of its packet.
    pub ecn: u8,
}

impl Out {
    /// Flags, sequence number, acknowledgement number, length.
    pub fn brief(&self) -> (Flags, i64, i64, usize) {
        (self.flags, self.seq, self.ack, self.len)
    }
}

/// One TCP, and the hand that plays its peer.
pub struct Dialogue {
    pub now: Instant,
    pub outbox: Outbox,
    tcp: Tcp,
    pub conn: Option<Box<dyn Transport>>,
    iss: Option<u32>,
    pub window: u16,
    /// ECN codepoint of the packets we put in.
    pub ecn: u8,
    /// Timestamps of the segments we put in, if they have them.
    pub timestamps: Option<(u32, u32)>,
    pub events: Vec<TransportEvent>,
    /// Read everything as it comes.
    pub reads: bool,
    pub received: Vec<u8>,
}

/// The standards' profile without options, acknowledging everything at once.
pub fn plain() -> Config {
    Config {
        timestamps: false,
        sack: false,
        window_scaling: false,
        delayed_ack: airloom_tcp::config::AckPolicy::None,
        ..Profile::Rfc.settings()
    }
}

pub fn path() -> Path {
    let address = |n| IpAddr::V4(Ipv4Addr::new(10, 0, 0, n));
    Path { local: address(2), remote: address(1), mtu: 1040 }
}

impl Dialogue {
    pub fn new(config: Config) -> Self {
        Dialogue {
            now: Instant::ZERO,
            outbox: Outbox::default(),
            tcp: Tcp::new(config, 1),
            conn: None,
            iss: None,
            window: 65_535,
            ecn: 0,
            timestamps: None,
            events: Vec::new(),
            reads: true,
            received: Vec::new(),
        }
    }

    /// A connection that was opened by the peer; segments of 1000 octets.
    pub fn established(config: Config) -> Self {
        let mut d = Dialogue::new(config);
        d.listen_and_take_syn();
        assert_eq!(d.arrives(ACK, THEIRS, OURS, 0), []);
        assert_eq!(d.events, [TransportEvent::Opened]);
        d.events.clear();
        d
    }

    /// A SYN came, the SYN-ACK was sent.
    pub fn listen_and_take_syn(&mut self) {
        let out = self.arrives(SYN, 0, 0, 0);
        assert_eq!(out.iter().map(Out::brief).collect::<Vec<_>>(), [(SYN_ACK, 0, 1, 0)]);
    }

    /// The application opens; returns what comes out.
    pub fn open(&mut self) -> Vec<Out> {
        let mut cx = Cx { now: self.now, records: &mut self.outbox };
        let mut conn = self.tcp.open(&mut cx, path(), (80, 40_000), Identity::default());
        conn.connect(&mut cx);
        self.conn = Some(conn);
        self.drain()
    }

    /// The SYN was sent.
    pub fn syn_sent(config: Config) -> Self {
        let mut d = Dialogue::new(config);
        let mut cx = Cx { now: d.now, records: &mut d.outbox };
        let mut conn = d.tcp.open(&mut cx, path(), (80, 40_000), Identity::default());
        conn.connect(&mut cx);
        d.conn = Some(conn);
        let out = d.drain();
        assert_eq!(out.len(), 1);
        assert_eq!(out[0].flags, SYN);
        d
    }

    /// The packet of a segment of the peer, numbers relative to the SYNs.
    pub fn packet(&self, flags: Flags, seq: i64, ack: i64, body: Body, sack: &[(i64, i64)]) -> Packet {
        let iss = i64::from(self.iss.unwrap_or(0));
        let mut options = Options { timestamps: self.timestamps, ..Options::default() };
        if flags.has(SYN) {
            options.mss = Some(1000);
            options.sack_permitted = true;
        }
        for (left, right) in sack {
            options.sack.push((iss + left) as u32, (iss + right) as u32);
        }
        let header = Header {
            source: 40_000,
            destination: 80,
            seq: (i64::from(IRS) + seq) as u32,
            ack: (iss + ack) as u32,
            flags,
            window: self.window,
            urgent: 0,
            options,
        };
        Packet::build(|out| header.emit(out), body)
    }

    /// A segment of the peer with `len` octets arrives; returns what comes out.
    pub fn arrives(&mut self, flags: Flags, seq: i64, ack: i64, len: u32) -> Vec<Out> {
        self.body_arrives(flags, seq, ack, piece(seq, len))
    }

    pub fn body_arrives(&mut self, flags: Flags, seq: i64, ack: i64, body: Body) -> Vec<Out> {
        let packet = self.packet(flags, seq, ack, body, &[]);
        self.packet_arrives(packet)
    }

    /// An acknowledgement with SACK blocks arrives.
    pub fn sack_arrives(&mut self, ack: i64, blocks: &[(i64, i64)]) -> Vec<Out> {
        let packet = self.packet(ACK, THEIRS, ack, Body::EMPTY, blocks);
        self.packet_arrives(packet)
    }

    pub fn packet_arrives(&mut self, packet: Packet) -> Vec<Out> {
        let mut cx = Cx { now: self.now, records: &mut self.outbox };
        if self.conn.is_none() {
            self.conn = self.tcp.accept(&mut cx, path(), (80, 40_000), Identity::default(), &packet);
        }
        match &mut self.conn {
            Some(conn) => conn.handle_packet(&mut cx, PathId(0), self.ecn, packet),
            None => {
                let answer = self.tcp.refuse(&packet);
                return answer.into_iter().map(|p| self.describe(&p)).collect();
            }
        }
        self.drain()
    }

    fn describe(&mut self, packet: &Packet) -> Out {
        let (h, _) = Header::parse(packet.head()).expect("a header");
        if h.flags.has(SYN) {
            self.iss = Some(h.seq);
        }
        let iss = self.iss.unwrap_or(0);
        Out {
            flags: h.flags,
            seq: i64::from(h.seq.wrapping_sub(iss).cast_signed()),
            ack: i64::from(h.ack.wrapping_sub(IRS).cast_signed()),
            len: packet.body().len(),
            window: h.window,
            options: h.options,
            raw: (h.seq, h.ack),
            ecn: 0,
        }
    }

    /// Takes everything that comes out.
    pub fn drain(&mut self) -> Vec<Out> {
        let mut out = Vec::new();
        loop {
            let mut cx = Cx { now: self.now, records: &mut self.outbox };
            let Some(conn) = &mut self.conn else { return out };
            if let Some(outgoing) = conn.poll_transmit(&mut cx) {
                let described = self.describe(&outgoing.packet);
                out.push(Out { ecn: outgoing.ecn, ..described });
                continue;
            }
            let Some(event) = conn.poll_event() else { return out };
            self.events.push(event);
            match event {
                TransportEvent::Readable(..) if self.reads => self.read_all(),
                TransportEvent::Lingering => {
                    self.conn = self.conn.take().map(|c| c.into_lingering());
                }
                TransportEvent::Gone => self.conn = None,
                TransportEvent::Asked | TransportEvent::Stream(..) => {}
                _ => {}
            }
        }
    }

    pub fn read_all(&mut self) {
        let mut cx = Cx { now: self.now, records: &mut self.outbox };
        while let Some(body) = self.conn.as_mut().and_then(|c| c.read(&mut cx, 0, 1 << 20)) {
            self.received.extend_from_slice(&body.to_bytes());
        }
    }

    /// The application does something; returns what comes out.
    pub fn call(&mut self, f: impl FnOnce(&mut dyn Transport, &mut Cx)) -> Vec<Out> {
        let mut cx = Cx { now: self.now, records: &mut self.outbox };
        if let Some(conn) = &mut self.conn {
            f(conn.as_mut(), &mut cx);
        }
        self.drain()
    }

    /// The application writes `len` octets.
    pub fn write(&mut self, len: u32) -> Vec<Out> {
        self.call(|t, cx| assert_eq!(t.write(cx, 0, Body::filler(9, len)), Ok(len as usize)))
    }

    pub fn finish(&mut self) -> Vec<Out> {
        self.call(|t, cx| t.finish(cx, 0))
    }

    /// Time passes; timers expire when they are due. Returns what comes out, with the time in milliseconds.
    pub fn pass(&mut self, time: Duration) -> Vec<(u64, Out)> {
        let end = self.now + time;
        let mut out = Vec::new();
        while let Some(at) = self.conn.as_ref().and_then(|c| c.poll_timeout()).filter(|at| *at <= end) {
            self.now = self.now.max(at);
            let ms = self.now.as_nanos() / 1_000_000;
            let now = self.call(|t, cx| t.handle_timeout(cx));
            out.extend(now.into_iter().map(|o| (ms, o)));
        }
        self.now = end;
        out
    }

    /// Takes the events so far.
    pub fn told(&mut self) -> Vec<TransportEvent> {
        std::mem::take(&mut self.events)
    }
}

/// Octets `seq..seq + len` of what the peer sends.
pub fn piece(seq: i64, len: u32) -> Body {
    let mut whole = Body::filler(4, 1 << 30);
    let _ = whole.split_to((seq + 100_000) as usize);
    whole.split_to(len as usize)
}

/// Flags, sequence number, acknowledgement number, length of each.
pub fn brief(out: &[Out]) -> Vec<(Flags, i64, i64, usize)> {
    out.iter().map(Out::brief).collect()
}

pub const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

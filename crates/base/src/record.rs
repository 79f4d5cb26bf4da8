//! The single list of what a run can report.
//!
//! A machine pushes facts; it never formats or writes. `record/` alone knows file formats. Off, a record costs
//! one predictable branch.

use std::ops::Range;
use std::sync::Arc;

use crate::direction::{Direction, Station};
use crate::flow::FlowFacts;
use crate::packet::Packet;
pub use crate::summary::Summary;
use crate::time::{Duration, Instant};

/// An observation point: where packets or PDUs are seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point(pub u16);

/// What is seen at a point; decides the link type of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointKind {
    /// IP datagrams.
    Ip,
    /// UMTS RLC acknowledged mode PDUs of one station and direction.
    RlcAm {
        /// Direction of travel.
        direction: Direction,
        /// Which mobile.
        station: Station,
        /// Octets of a length indicator field with its E bit: 1 or 2.
        li_octets: u8,
    },
    /// PIAFS frames of one circuit and direction.
    Piafs {
        /// Direction of travel.
        direction: Direction,
        /// Which mobile.
        station: Station,
    },
    /// Frames of PPP, from address or protocol field to the end of the information, of one link and direction.
    Ppp {
        /// Direction of travel.
        direction: Direction,
        /// Which mobile.
        station: Station,
    },
    /// Blocks of a GSM, GPRS or EGPRS air interface of one station and direction, each behind its GSMTAP header.
    Gsmtap {
        /// Direction of travel.
        direction: Direction,
        /// Which mobile.
        station: Station,
    },
}

/// An observation point as the scenario named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointInfo {
    /// Stable name, such as `gateway.radio.ip` or `radio.rlc.dl.tx`.
    pub name: String,
    /// What is seen there.
    pub kind: PointKind,
    /// Rate in bit/s, if the point has one.
    pub speed: Option<u64>,
    /// Are rows of the packets table wanted?
    pub rows: bool,
    /// Are octets (a capture) wanted?
    pub octets: bool,
}

/// What happened to a packet or PDU at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::VariantArray)]
pub enum Event {
    /// Entered a queue.
    Enqueue,
    /// Sent (for the first time).
    Transmit,
    /// Received.
    Receive,
    /// Lost or thrown away; the reason says why.
    Drop,
    /// An acknowledgement of the link layer.
    Ack,
    /// Sent again.
    Retransmit,
}

impl Event {
    /// As in the `event` column.
    pub const fn name(self) -> &'static str {
        match self {
            Event::Enqueue => "enq",
            Event::Transmit => "tx",
            Event::Receive => "rx",
            Event::Drop => "drop",
            Event::Ack => "ack",
            Event::Retransmit => "retx",
        }
    }
}

/// One row of the packets table.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketFacts {
    /// What happened.
    pub event: Event,
    /// Direction on the link.
    pub direction: Direction,
    /// Number of the packet (PDUs: of the first SDU in it), 0 if none.
    pub packet: u64,
    /// Flow, 0 if none.
    pub flow: u32,
    /// Protocol name: `tcp`, `udp`, `icmp`, `rlc`, ...
    pub proto: &'static str,
    /// Octets on this layer.
    pub len: u32,
    /// Sequence number.
    pub seq: Option<u64>,
    /// Acknowledgement number.
    pub ack: Option<u64>,
    /// Which transmission this is, from 1; 0 where that means nothing.
    pub attempt: u8,
    /// Why, for drops and unusual events.
    pub reason: Option<&'static str>,
    /// Octets in the queue after the event.
    pub queue: Option<u32>,
}

impl PacketFacts {
    /// Facts that say nothing but the event yet.
    pub const fn bare(proto: &'static str, event: Event, direction: Direction) -> PacketFacts {
        PacketFacts {
            event,
            direction,
            packet: 0,
            flow: 0,
            proto,
            len: 0,
            seq: None,
            ack: None,
            attempt: 0,
            reason: None,
            queue: None,
        }
    }

    /// Facts that say which packet it was.
    pub fn of(packet: &Packet, proto: &'static str, event: Event, direction: Direction) -> PacketFacts {
        PacketFacts {
            packet: packet.id(),
            flow: packet.flow(),
            len: packet.wire_len() as u32,
            ..PacketFacts::bare(proto, event, direction)
        }
    }
}

/// A row with its time, its point and the range of its octets in the outbox (empty if not asked for).
#[derive(Clone, Debug, PartialEq)]
pub struct PacketRecord {
    /// When.
    pub at: Instant,
    /// Where.
    pub point: Point,
    /// What.
    pub facts: PacketFacts,
    /// Range in [`Outbox::octets`].
    pub octets: Range<usize>,
}

/// One end of a flow, reported when it ends (or when the run does).
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRecord {
    /// Number, the same at both ends.
    pub flow: u32,
    /// Protocol.
    pub proto: &'static str,
    /// `address:port` of this end.
    pub local: String,
    /// `address:port` of the other end.
    pub remote: String,
    /// Did this end open it?
    pub opener: bool,
    /// When it was opened here.
    pub open: Instant,
    /// When it closed for the application, if it did.
    pub close: Option<Instant>,
    /// What this end did.
    pub facts: FlowFacts,
}

/// One page load (or one list of objects).
#[derive(Clone, Debug, PartialEq)]
pub struct PageRecord {
    /// Number from 1.
    pub page: u32,
    /// What was loaded.
    pub url: String,
    /// Host that loaded it.
    pub client: String,
    /// Began.
    pub start: Instant,
    /// Time until everything had arrived.
    pub load: Option<Duration>,
    /// Time until the first object had.
    pub first_object: Option<Duration>,
    /// Objects.
    pub objects: u32,
    /// Octets of bodies.
    pub bytes: u64,
    /// Connections opened for it.
    pub connections: u32,
    /// Objects that failed.
    pub failed: u32,
}

/// Where an object of a page came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ObjectSource {
    /// It was fetched.
    Network,
    /// The browser had it.
    Cache,
    /// It was not to be had.
    Failed,
}

impl ObjectSource {
    /// As in the `source` column of the objects table.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// One object of a page: a row of its waterfall.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectRecord {
    /// Number of the page load, as in its [`PageRecord`].
    pub page: u32,
    /// Its place on the page, from 0.
    pub object: u32,
    /// What was loaded.
    pub url: String,
    /// Host that loaded it.
    pub client: String,
    /// When the browser knew that it needs it.
    pub known: Instant,
    /// When the request was given to a connection, the last time if it was asked for again.
    pub asked: Option<Instant>,
    /// When the first octet of its answer arrived.
    pub first_byte: Option<Instant>,
    /// When it had arrived, or was given up.
    pub done: Instant,
    /// Octets of the body.
    pub bytes: u64,
    /// Status of the answer.
    pub status: Option<u16>,
    /// The connection it came by.
    pub flow: Option<u32>,
    /// Which request of that connection it was, from 1.
    pub request: Option<u32>,
    /// Connections that failed on it.
    pub failures: u16,
    /// Where it came from.
    pub source: ObjectSource,
}

/// A stay in a radio state, or air time.
#[derive(Clone, Debug, PartialEq)]
pub struct StateRecord {
    /// Since when.
    pub at: Instant,
    /// Until when, if known.
    pub until: Option<Instant>,
    /// Name of the link.
    pub link: String,
    /// Which mobile.
    pub station: Station,
    /// Name of the state (`dch`, `fach`, `idle`, ... or `tx`, `rx` for air time).
    pub state: &'static str,
    /// Direction, for air time.
    pub direction: Option<Direction>,
    /// Octets on the air, for air time.
    pub octets: u64,
    /// Of these, octets sent again.
    pub resent: u64,
}

/// A change of a sender's congestion state or round-trip time.
#[derive(Clone, Debug, PartialEq)]
pub struct CongestionRecord {
    /// When.
    pub at: Instant,
    /// Index of the host.
    pub host: u16,
    /// Flow.
    pub flow: u32,
    /// Congestion window in octets.
    pub cwnd: u64,
    /// Slow start threshold in octets; `u64::MAX` before the first loss.
    pub ssthresh: u64,
    /// Octets in flight.
    pub in_flight: u64,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Retransmission timeout.
    pub rto: Duration,
    /// Name of the recovery state.
    pub state: &'static str,
}

/// Everything that is not a packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// See [`FlowRecord`].
    Flow(FlowRecord),
    /// See [`PageRecord`].
    Page(PageRecord),
    /// See [`ObjectRecord`].
    Object(ObjectRecord),
    /// See [`StateRecord`].
    State(StateRecord),
    /// See [`CongestionRecord`].
    Congestion(CongestionRecord),
}

/// An end of a connection whose events are kept one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QlogEnd {
    /// What both ends call the connection: the connection id that its client sent to first, in hexadecimal digits.
    pub group: String,
    /// Is it the client's end?
    pub is_client: bool,
    /// Name of its host.
    pub host: String,
    /// Number of its flow.
    pub flow: u32,
}

/// Events of a connection's end, as they happened.
#[derive(Clone, Debug, PartialEq)]
pub struct QlogRecord {
    /// Whose they are.
    pub of: Arc<QlogEnd>,
    /// A record of a JSON text sequence (RFC 7464) for each.
    pub lines: Vec<u8>,
}

/// Observation points of a run.
pub const MOST_POINTS: usize = 1 << 16;

/// Where machines put records; the driver empties it between steps.
#[derive(Default)]
pub struct Outbox {
    packets_on: bool,
    facts_on: bool,
    congestion_on: bool,
    objects_on: bool,
    qlog_on: bool,
    points: Vec<PointInfo>,
    /// There were more points than have a number.
    is_overfull: bool,
    last_packet: u64,
    last_flow: u32,
    /// Rows of the packets table since the driver last took them, in order of time.
    pub packets: Vec<PacketRecord>,
    /// Octets of the rows' captures, back to back.
    pub octets: Vec<u8>,
    /// The other records, in order of time.
    pub facts: Vec<Record>,
    /// Secrets by which packets that follow are read, in lines of a key log (draft-ietf-tls-keylogfile); where packets are wanted.
    pub secrets: String,
    /// Events of connections, in order of time for each of them; where they are wanted.
    pub qlog: Vec<QlogRecord>,
}

impl Outbox {
    /// Registers an observation point; nothing is wanted of it yet. Of those beyond [`MOST_POINTS`] nothing is ever
    /// seen: who builds a network refuses it where [`Outbox::is_overfull`].
    pub fn add_point(&mut self, name: String, kind: PointKind) -> Point {
        let Ok(index) = u16::try_from(self.points.len()) else {
            self.is_overfull = true;
            return Point(u16::MAX);
        };
        self.points.push(PointInfo { name, kind, speed: None, rows: false, octets: false });
        Point(index)
    }
    /// Were there more points than a run can have?
    pub fn is_overfull(&self) -> bool {
        self.is_overfull
    }
    /// All points, in order of their number.
    pub fn points(&self) -> &[PointInfo] {
        &self.points
    }
    /// Says the rate at a point.
    pub fn set_speed(&mut self, point: Point, bits_per_second: u64) {
        self.points[usize::from(point.0)].speed = Some(bits_per_second);
    }
    /// Asks for rows or octets at all points for which `wanted(info)` says `(rows, octets)`.
    pub fn ask(&mut self, wanted: impl Fn(&PointInfo) -> (bool, bool)) {
        for info in &mut self.points {
            (info.rows, info.octets) = wanted(info);
        }
        self.packets_on = self.points.iter().any(|p| p.rows || p.octets);
    }
    /// Asks for flows, pages and states, and for congestion samples.
    pub fn ask_facts(&mut self, facts: bool, congestion: bool) {
        self.facts_on = facts;
        self.congestion_on = congestion;
    }
    /// Asks for the objects of pages.
    pub fn ask_objects(&mut self, objects: bool) {
        self.objects_on = objects;
    }
    /// Are the objects of pages wanted?
    pub fn wants_objects(&self) -> bool {
        self.objects_on
    }
    /// Asks for the events of connections.
    pub fn ask_qlog(&mut self, qlog: bool) {
        self.qlog_on = qlog;
    }
    /// Are the events of connections wanted?
    pub fn wants_qlog(&self) -> bool {
        self.qlog_on
    }
    /// Is anything wanted at any point?
    #[inline]
    pub fn wants_packets(&self) -> bool {
        self.packets_on
    }
    /// Is anything wanted at `point`? One branch when all is off.
    #[inline]
    pub fn wants(&self, point: Point) -> bool {
        self.packets_on && self.wants_slowly(point)
    }
    #[cold]
    fn wants_slowly(&self, point: Point) -> bool {
        self.points.get(usize::from(point.0)).is_some_and(|p| p.rows || p.octets)
    }
    /// Are flows, pages and states wanted?
    #[inline]
    pub fn wants_facts(&self) -> bool {
        self.facts_on
    }
    /// Are congestion samples wanted?
    #[inline]
    pub fn wants_congestion(&self) -> bool {
        self.congestion_on
    }
    /// A packet or PDU at a point. `facts` runs only if the point is wanted, `octets` (which appends the whole
    /// packet) only if a capture is.
    #[inline]
    pub fn packet(
        &mut self,
        at: Instant,
        point: Point,
        facts: impl FnOnce() -> PacketFacts,
        octets: impl FnOnce(&mut Vec<u8>),
    ) {
        if self.wants(point) {
            let from = self.octets.len();
            if self.points[usize::from(point.0)].octets {
                octets(&mut self.octets);
            }
            self.packets.push(PacketRecord { at, point, facts: facts(), octets: from..self.octets.len() });
        }
    }
    /// A fact that is not a packet; the caller asked `wants_facts` (or `wants_congestion`) first.
    pub fn push(&mut self, record: Record) {
        self.facts.push(record);
    }
    /// The number of a new packet, from 1.
    #[inline]
    pub fn next_packet(&mut self) -> u64 {
        self.last_packet += 1;
        self.last_packet
    }
    /// How many packets were numbered.
    pub fn packet_count(&self) -> u64 {
        self.last_packet
    }
    /// The number of a new flow, from 1.
    pub fn next_flow(&mut self) -> u32 {
        self.last_flow += 1;
        self.last_flow
    }
    /// An outbox of its own with the same points and wishes, and no records: for another thread to look into.
    pub fn counterpart(&self) -> Outbox {
        Outbox {
            packets_on: self.packets_on,
            facts_on: self.facts_on,
            congestion_on: self.congestion_on,
            objects_on: self.objects_on,
            qlog_on: self.qlog_on,
            points: self.points.clone(),
            ..Outbox::default()
        }
    }
    /// Exchanges records (nothing else) with a [`counterpart`](Outbox::counterpart).
    pub fn swap_records(&mut self, other: &mut Outbox) {
        std::mem::swap(&mut self.packets, &mut other.packets);
        std::mem::swap(&mut self.octets, &mut other.octets);
        std::mem::swap(&mut self.facts, &mut other.facts);
        std::mem::swap(&mut self.secrets, &mut other.secrets);
        std::mem::swap(&mut self.qlog, &mut other.qlog);
    }
    /// Are there no records?
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty() && self.facts.is_empty() && self.secrets.is_empty() && self.qlog.is_empty()
    }
    /// Forgets the records that were taken; keeps the memory.
    pub fn clear(&mut self) {
        self.packets.clear();
        self.octets.clear();
        self.facts.clear();
        self.secrets.clear();
        self.qlog.clear();
    }
}

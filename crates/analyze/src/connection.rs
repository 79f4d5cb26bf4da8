//! One connection as one interface of a capture saw it.

use airloom_transports::tcp::wire::Flags;

use crate::segment::{Endpoint, Segment};
use crate::sender::{Cause, Kind, START, Sender};
use crate::stall::{self, Stalls};
use crate::trace::Row;
use crate::viewpoint::Viewpoint;

/// Where segments are seen: the interface, and the device of it, where frames name one.
pub(crate) type Place = (usize, Option<u32>);

/// How a connection ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// It did not, before the capture ended.
    #[default]
    Open,
    /// Both ends closed it.
    Closed,
    /// One end reset it.
    Reset,
}

/// One end: what it sends, and its pauses.
#[derive(Default)]
pub(crate) struct Side {
    pub(crate) sender: Sender,
    pub(crate) stalls: Stalls,
    has_closed: bool,
    /// Sequence number of its SYN.
    syn: Option<u32>,
    /// Shift that its SYN offers.
    scale: Option<u8>,
    /// Was that not captured?
    is_scale_cut: bool,
    /// When its SYN was seen last.
    syn_ns: Option<u64>,
}

pub(crate) struct Connection {
    pub(crate) place: Place,
    /// The end that opened the connection, or sent the first segment seen; and the other one.
    pub(crate) ends: [Endpoint; 2],
    pub(crate) sides: [Side; 2],
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
    /// Was the beginning seen?
    pub(crate) has_handshake: bool,
    pub(crate) end: End,
    /// Where the capture stands, for each of them; known at its end.
    pub(crate) viewpoints: [Viewpoint; 2],
    /// Nothing was seen but SYNs that answer none.
    is_opening: bool,
    /// From the first SYN to the third segment.
    pub(crate) handshake_ns: Option<u64>,
    /// Its round trip, without what was waited for until a SYN was sent again.
    pub(crate) handshake_round_trip_ns: Option<u64>,
    /// From the last SYN before the first answer to it; that answer may be sent again, too.
    to_server_ns: Option<u64>,
}

impl Connection {
    pub(crate) fn new(place: Place, segment: &Segment) -> Connection {
        let flags = segment.header.flags;
        // The answer to a SYN is the first that a capture may have: then it is the other end that opened.
        let is_answer = flags.has(Flags::SYN.with(Flags::ACK));
        let ends = if is_answer { [segment.to, segment.from] } else { [segment.from, segment.to] };
        Connection {
            place,
            ends,
            sides: Default::default(),
            begin_ns: segment.at_ns,
            end_ns: segment.at_ns,
            has_handshake: false,
            end: End::Open,
            viewpoints: Default::default(),
            is_opening: true,
            handshake_ns: None,
            handshake_round_trip_ns: None,
            to_server_ns: None,
        }
    }

    /// Does this segment begin another connection between the same ends?
    pub(crate) fn is_over_before(&self, segment: &Segment) -> bool {
        let flags = segment.header.flags;
        flags.has(Flags::SYN)
            && !flags.has(Flags::ACK)
            && (self.end != End::Open
                || match self.sides[usize::from(segment.from != self.ends[0])].syn {
                    Some(syn) => syn != segment.header.seq,
                    // Both may open at the same time (RFC 9293 3.5).
                    None => !self.is_opening,
                })
    }

    /// Takes a segment; what it was. `shortest_ns`: how long a pause has to be, if the caller says so.
    pub(crate) fn take(&mut self, segment: &Segment, shortest_ns: Option<u64>) -> Row {
        let number = usize::from(segment.from != self.ends[0]);
        let flags = segment.header.flags;
        self.end_ns = self.end_ns.max(segment.at_ns);
        let [first, second] = &mut self.sides;
        let (own, other) = if number == 0 { (first, second) } else { (second, first) };
        own.sender.counts.segments += 1;
        self.has_handshake |= flags.has(Flags::SYN);
        self.is_opening &= flags.has(Flags::SYN) && !flags.has(Flags::ACK);
        if flags.has(Flags::SYN) {
            if let (1, Some(at)) = (number, other.syn_ns)
                && flags.has(Flags::ACK)
                // If the client's SYN came since the last answer; else a timer sent this one.
                && own.syn_ns.is_none_or(|answered| at >= answered)
            {
                self.to_server_ns = Some(segment.at_ns.saturating_sub(at));
            }
            own.syn = Some(segment.header.seq);
            own.scale = segment.header.options.window_scale;
            own.is_scale_cut = segment.is_cut && own.scale.is_none();
            own.sender.mss = segment.header.options.mss.or(own.sender.mss);
            // Where both open at once neither answers the other: there is no round trip then.
            if number == 1 || !flags.has(Flags::ACK) {
                own.syn_ns = Some(segment.at_ns);
            }
            // Windows are scaled if both ends say by how much (RFC 7323 2.2); whether they do only both SYNs tell.
            if other.syn.is_some() && !own.is_scale_cut && !other.is_scale_cut {
                let (ours, theirs) = own.scale.zip(other.scale).unwrap_or((0, 0));
                own.sender.set_scale(theirs);
                other.sender.set_scale(ours);
            }
        }
        let takes_up = segment.payload > 0 || flags.has(Flags::SYN) || flags.has(Flags::FIN);
        let is_bare = !takes_up && !flags.has(Flags::RST);
        let begin = own.sender.place(segment.header.seq);
        let mut is_duplicate = false;
        let mut ack = None;
        if flags.has(Flags::ACK) {
            // Where the capture began in the middle, what is acknowledged first is where we begin to count.
            let place = other.sender.place(segment.header.ack);
            is_duplicate = other.sender.acknowledged(segment, place, is_bare);
            ack = Some(place);
            if let (0, Some(to_server), Some(answer_ns)) = (number, self.to_server_ns, other.syn_ns)
                && self.handshake_ns.is_none()
                && !flags.has(Flags::SYN)
                && !flags.has(Flags::RST)
            {
                self.handshake_ns = Some(segment.at_ns.saturating_sub(self.begin_ns));
                // From the SYN to the third segment of the handshake: the whole way, wherever the capture is.
                let round_trip = to_server + segment.at_ns.saturating_sub(answer_ns);
                self.handshake_round_trip_ns = Some(round_trip);
                own.sender.round_trip_ns = Some(round_trip);
                other.sender.round_trip_ns = Some(round_trip);
            }
        }
        let kind = if takes_up {
            // To both ends and back, by the shortest times seen; without the beginning these may all have been waited for.
            let round_ns = self.handshake_round_trip_ns.map_or(0, |round_trip| {
                let [ahead, behind] = [&*own, &*other].map(|side| side.sender.rtt.least().unwrap_or(0));
                round_trip.min(ahead.saturating_add(behind))
            });
            Some(send(own, segment, begin, round_ns, shortest_ns))
        } else if is_bare {
            own.sender.bare(begin)
        } else {
            None
        };
        if flags.has(Flags::FIN) {
            own.has_closed = true;
        }
        let [first, second] = &self.sides;
        if flags.has(Flags::RST) {
            self.end = End::Reset;
        } else if first.has_closed && second.has_closed && self.end == End::Open {
            self.end = End::Closed;
        }
        let (own, other) = if number == 0 { (first, second) } else { (second, first) };
        Row {
            connection: 0,
            t_ns: 0,
            side: number as u8,
            kind: name(flags, kind, is_duplicate),
            seq: since_start(begin),
            len: segment.payload,
            ack: ack.map(since_start),
            window: other.sender.window().map(|window| u32::try_from(window).unwrap_or(u32::MAX)),
            in_flight: own.sender.in_flight(),
        }
    }

    /// The capture ended.
    pub(crate) fn finish(&mut self, at_ns: u64, shortest_ns: Option<u64>) {
        if self.end == End::Open {
            for side in &mut self.sides {
                let shortest = stall::shortest(&side.sender, shortest_ns);
                // A FIN on its way is no data that waits.
                let in_flight = side.sender.in_flight().saturating_sub(u64::from(side.has_closed));
                side.stalls.ended(at_ns, shortest, in_flight);
            }
        }
        self.sides.iter_mut().for_each(|side| side.sender.finish());
        let [first, second] = &self.sides;
        self.viewpoints =
            [Viewpoint::of(&first.sender, &second.sender), Viewpoint::of(&second.sender, &first.sender)];
        for (side, viewpoint) in self.sides.iter_mut().zip(self.viewpoints) {
            if viewpoint == Viewpoint::OneDirection {
                // Nobody knows what the sender waited for.
                side.stalls = Stalls::default();
            }
            if !viewpoint.sees_sender() {
                side.stalls.seen_from_afar();
            }
            side.stalls.settle();
        }
    }
}

/// A segment that takes up sequence numbers; what it is.
fn send(own: &mut Side, segment: &Segment, begin: u64, round_ns: u64, shortest_ns: Option<u64>) -> Kind {
    let (idle, in_flight) = (own.sender.idle_since_ns, own.sender.in_flight());
    let shortest = stall::shortest(&own.sender, shortest_ns);
    let kind = own.sender.data(segment, begin, round_ns);
    if segment.payload > 0 && !matches!(kind, Kind::KeepAlive | Kind::WindowProbe) {
        if own.stalls.before(segment.at_ns).is_some_and(|pause| pause >= shortest) {
            own.stalls.paused(segment.at_ns, kind, idle, in_flight);
        }
        own.stalls.sent(segment.at_ns, &own.sender);
    }
    kind
}

fn name(flags: Flags, kind: Option<Kind>, is_duplicate: bool) -> &'static str {
    match kind {
        _ if flags.has(Flags::RST) => "reset",
        Some(Kind::Again { needless: true, .. }) => "needless-retransmission",
        Some(Kind::Again { cause: Cause::Fast, .. }) => "fast-retransmission",
        Some(Kind::Again { cause: Cause::Timer, .. }) => "timer-retransmission",
        Some(Kind::OutOfOrder) => "out-of-order",
        Some(Kind::KeepAlive) => "keep-alive",
        Some(Kind::WindowProbe) => "window-probe",
        Some(Kind::New) if flags.has(Flags::SYN) => "syn",
        Some(Kind::New) if flags.has(Flags::FIN) => "fin",
        Some(Kind::New) => "data",
        None if is_duplicate => "duplicate-ack",
        None => "ack",
    }
}

fn since_start(place: u64) -> i64 {
    place as i64 - START as i64
}

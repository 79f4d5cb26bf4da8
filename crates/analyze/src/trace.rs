//! Every segment of the connections, as columns.

use airloom_record::{Cells, Column, Optional, Values};

/// A segment.
pub(crate) struct Row {
    pub(crate) connection: u32,
    /// Nanoseconds since the first frame.
    pub(crate) t_ns: i64,
    /// 0: from the end that opened the connection.
    pub(crate) side: u8,
    pub(crate) kind: &'static str,
    /// Octets since the begin of the connection; negative before what was seen first.
    pub(crate) seq: i64,
    pub(crate) len: u32,
    /// Of what the other end sends; likewise.
    pub(crate) ack: Option<i64>,
    /// What this end offers, in octets; not known without the SYNs that say by how much it is scaled.
    pub(crate) window: Option<u32>,
    /// What this end has in flight after it.
    pub(crate) in_flight: u64,
}

/// Sent again; what set it off does not show where the capture was made.
const RETRANSMISSION: &str = "retransmission";

/// What a segment can be.
const KINDS: [&str; 14] = [
    "ack",
    "duplicate-ack",
    "data",
    "fast-retransmission",
    "timer-retransmission",
    RETRANSMISSION,
    "needless-retransmission",
    "out-of-order",
    "keep-alive",
    "window-probe",
    "syn",
    "fin",
    "reset",
    "other",
];

/// The rows so far, up to a number that the caller chooses.
#[derive(Default)]
pub(crate) struct Trace {
    most: usize,
    pub(crate) left_out: u64,
    connection: Vec<u32>,
    t_ns: Vec<i64>,
    side: Vec<u8>,
    kind: Vec<u16>,
    seq: Vec<i64>,
    len: Vec<u32>,
    ack: Optional<i64>,
    window: Optional<u32>,
    in_flight: Vec<u64>,
}

impl Trace {
    pub(crate) fn new(most: usize) -> Trace {
        Trace { most, ..Trace::default() }
    }

    pub(crate) fn push(&mut self, row: Row) {
        if self.t_ns.len() == self.most {
            self.left_out += 1;
            return;
        }
        let kind = KINDS.iter().position(|kind| *kind == row.kind).unwrap_or(KINDS.len() - 1);
        self.connection.push(row.connection);
        self.t_ns.push(row.t_ns);
        self.side.push(row.side);
        self.kind.push(kind as u16);
        self.seq.push(row.seq);
        self.len.push(row.len);
        self.ack.push(row.ack);
        self.window.push(row.window);
        self.in_flight.push(row.in_flight);
    }

    /// What was sent again has no cause where `sees_sender`, of a connection and side, is not so.
    pub(crate) fn forget_causes(&mut self, sees_sender: impl Fn(u32, u8) -> bool) {
        let code = |kind: &str| KINDS.iter().position(|k| *k == kind).expect("it is one of them") as u16;
        let (fast, timer, plain) =
            (code("fast-retransmission"), code("timer-retransmission"), code(RETRANSMISSION));
        for (kind, (connection, side)) in self.kind.iter_mut().zip(self.connection.iter().zip(&self.side)) {
            if (*kind == fast || *kind == timer) && !sees_sender(*connection, *side) {
                *kind = plain;
            }
        }
    }

    pub(crate) fn into_columns(self) -> Vec<Column> {
        vec![
            self.connection.column("connection"),
            self.t_ns.column("t_ns"),
            self.side.column("side"),
            Column { name: "kind", values: Values::out_of(&KINDS, self.kind), valid: None },
            self.seq.column("seq"),
            self.len.column("len"),
            self.ack.column("ack"),
            self.window.column("window"),
            self.in_flight.column("in_flight"),
        ]
    }
}

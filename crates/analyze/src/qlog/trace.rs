//! What became of packets, as columns.

use airloom_record::{Cells, Column, Optional, Values};

/// What a row is of; in the order of the codes of its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sent,
    Received,
    Acknowledged,
    Lost,
    Dropped,
    Recovery,
}

const KINDS: [&str; 6] = ["sent", "received", "acknowledged", "lost", "dropped", "recovery"];

/// Numbers begin at 0 in each of them (RFC 9000, 12.3), those of the application on each path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Initial,
    Handshake,
    Application,
    /// Of recovery, or not said.
    None,
}

const SPACES: [&str; 4] = ["initial", "handshake", "application", "none"];

/// A row; what is not said is not there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) kind: Kind,
    pub(crate) space: Space,
    pub(crate) number: Option<u64>,
    pub(crate) len: Option<u64>,
    pub(crate) cwnd: Option<u64>,
    pub(crate) in_flight: Option<u64>,
    pub(crate) rtt_ns: Option<u64>,
    /// 0 where none is said.
    pub(crate) path: u64,
}

/// The rows so far, up to a number that the caller chooses.
#[derive(Default)]
pub(crate) struct Trace {
    most: usize,
    pub(crate) left_out: u64,
    connection: Vec<u32>,
    t_ns: Vec<i64>,
    kind: Vec<u16>,
    space: Vec<u16>,
    number: Optional<u64>,
    len: Optional<u64>,
    cwnd: Optional<u64>,
    in_flight: Optional<u64>,
    rtt_ns: Optional<u64>,
    path: Vec<u64>,
}

impl Trace {
    pub(crate) fn new(most: usize) -> Trace {
        Trace { most, ..Trace::default() }
    }

    pub(crate) fn push(&mut self, connection: u32, t_ns: i64, row: Row) {
        if self.t_ns.len() == self.most {
            self.left_out += 1;
            return;
        }
        self.connection.push(connection);
        self.t_ns.push(t_ns);
        self.kind.push(row.kind as u16);
        self.space.push(row.space as u16);
        self.number.push(row.number);
        self.len.push(row.len);
        self.cwnd.push(row.cwnd);
        self.in_flight.push(row.in_flight);
        self.rtt_ns.push(row.rtt_ns);
        self.path.push(row.path);
    }

    pub(crate) fn into_columns(self) -> Vec<Column> {
        let full = |name, values| Column { name, values, valid: None };
        vec![
            self.connection.column("connection"),
            self.t_ns.column("t_ns"),
            full("kind", Values::out_of(&KINDS, self.kind)),
            full("space", Values::out_of(&SPACES, self.space)),
            self.number.column("number"),
            self.len.column("len"),
            self.cwnd.column("cwnd"),
            self.in_flight.column("in_flight"),
            self.rtt_ns.column("rtt_ns"),
            self.path.column("path"),
        ]
    }
}

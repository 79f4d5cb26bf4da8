//! What became of packets, as columns.

use airloom_record::{Column, Values};

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

/// Numbers begin at 0 in each of them (RFC 9000, 12.3).
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
}

/// Numbers that need not be there.
#[derive(Default)]
struct Optional(Vec<u64>, Vec<bool>);

impl Optional {
    fn push(&mut self, value: Option<u64>) {
        self.0.push(value.unwrap_or(0));
        self.1.push(value.is_some());
    }
    fn column(self, name: &'static str) -> Column {
        Column { name, values: Values::U64(self.0), valid: Some(self.1) }
    }
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
    number: Optional,
    len: Optional,
    cwnd: Optional,
    in_flight: Optional,
    rtt_ns: Optional,
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
    }

    pub(crate) fn into_columns(self) -> Vec<Column> {
        let full = |name, values| Column { name, values, valid: None };
        let category = |codes, names: &[&str]| Values::Category {
            codes,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        vec![
            full("connection", Values::U32(self.connection)),
            full("t_ns", Values::I64(self.t_ns)),
            full("kind", category(self.kind, &KINDS)),
            full("space", category(self.space, &SPACES)),
            self.number.column("number"),
            self.len.column("len"),
            self.cwnd.column("cwnd"),
            self.in_flight.column("in_flight"),
            self.rtt_ns.column("rtt_ns"),
        ]
    }
}

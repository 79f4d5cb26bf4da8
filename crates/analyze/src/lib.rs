//! What TCP did in a capture, ours or a foreign one: retransmissions and what set them off, round trips, windows, the
//! sequence trace, stalls and what the sender waited for; and what QUIC did, by an endpoint's own account ([`qlog`]).
//!
//! Not here: captures themselves (`record`), and pictures, which are Python's.
//!
//! Each interface of a file is looked at for itself: one that stands at the sender sees all transmissions, one behind
//! a link sees what came through. What sets a retransmission off is told by what came just before it, where the
//! sender is; at the receiver an acknowledgement and what it sets off are a round trip apart. What a capture cannot
//! tell where it was made has no value in the report.
//!
//! Sources of the rules: RFC 9293 (keep-alive, probes), RFC 5681 and 6675 (duplicates), RFC 6298 (Karn's rule), RFC 2883,
//! RFC 3522 (needless retransmissions); where a choice was open, Wireshark's analysis was followed.

mod connection;
pub mod qlog;
mod report;
mod samples;
mod segment;
mod sender;
mod stall;
mod trace;
mod viewpoint;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use smart_default::SmartDefault;

use airloom_base::lookup::Table;
use airloom_record::Column;
use airloom_record::capture::{Frame, Interface, Reader, interface_index, is_known_link};

pub use connection::End;
use connection::{Connection, Place};
pub use report::{ConnectionReport, Dropped, Report, RttReport, SideReport};
use segment::{Content, Endpoint, Segment};
pub use stall::{Rhythm, Stall, Why};
use trace::Trace;
pub use viewpoint::Viewpoint;

/// How many connections are told apart.
const MOST_CONNECTIONS: usize = 1 << 16;

/// What is wanted.
#[derive(Clone, Copy, Debug, SmartDefault)]
pub struct Options {
    /// How long a pause has to be to count, in nanoseconds. `None`: two round trips, 0.2 s at least.
    pub shortest_stall_ns: Option<u64>,
    /// How many rows the trace has at most.
    #[default(2_000_000)]
    pub rows: usize,
}

/// What was found.
pub struct Analysis {
    /// Sums and stalls.
    pub report: Report,
    /// Every segment: `connection`, `t_ns` since the first frame, `side` (0 the client), `kind`, `seq`, `len`, `ack`,
    /// `window`, `in_flight`.
    pub trace: Vec<Column>,
}

/// Reads a capture to its end, or to where it is cut or corrupt: what came before counts, and the report says so.
pub fn analyze<R: Read>(mut reader: Reader<R>, options: &Options) -> Analysis {
    let mut analyzer = Analyzer::new(*options);
    let unreadable = loop {
        match reader.next_frame() {
            Ok(Some(frame)) => analyzer.take(&frame),
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    analyzer.finish(reader.interfaces(), unreadable)
}

/// A place, and the two ends, the lesser one first.
type Key = (Place, Endpoint, Endpoint);

#[derive(Default)]
struct Analyzer {
    options: Options,
    connections: Vec<Connection>,
    by_key: Table<Key, usize>,
    trace: Trace,
    frames: u64,
    segments: u64,
    fragments: u64,
    /// Segments that an interface shows because they were dropped: number and octets of data.
    dropped: BTreeMap<usize, (u64, u64)>,
    left_out: u64,
    first_ns: Option<u64>,
    last_ns: u64,
}

impl Analyzer {
    fn new(options: Options) -> Analyzer {
        Analyzer { options, trace: Trace::new(options.rows), ..Default::default() }
    }

    fn take(&mut self, frame: &Frame<'_>) {
        self.frames += 1;
        let first_ns = *self.first_ns.get_or_insert(frame.at_ns);
        self.last_ns = self.last_ns.max(frame.at_ns);
        let segment = match segment::content(frame) {
            Content::Tcp(segment) => segment,
            Content::Fragment => {
                self.fragments += 1;
                return;
            }
            Content::Other => return,
        };
        self.segments += 1;
        if frame.is_dropped {
            let (segments, octets) = self.dropped.entry(frame.interface).or_default();
            *segments += 1;
            *octets += u64::from(segment.payload);
            return;
        }
        let place = (frame.interface, interface_index(frame.link, frame.octets));
        let Some(number) = self.connection(place, &segment) else {
            self.left_out += 1;
            return;
        };
        let mut row = self.connections[number].take(&segment, self.options.shortest_stall_ns);
        row.connection = number as u32;
        // A capture of several interfaces need not be in order.
        row.t_ns = (i128::from(segment.at_ns) - i128::from(first_ns)) as i64;
        self.trace.push(row);
    }

    /// The connection of a segment; `None` if there are too many.
    fn connection(&mut self, place: Place, segment: &Segment) -> Option<usize> {
        let (from, to) = (segment.from, segment.to);
        let key = (place, from.min(to), from.max(to));
        if let Some(number) = self.by_key.get(&key)
            && !self.connections[*number].is_over_before(segment)
        {
            return Some(*number);
        }
        if self.connections.len() == MOST_CONNECTIONS {
            return None;
        }
        let number = self.connections.len();
        self.by_key.insert(key, number);
        self.connections.push(Connection::new(place, segment));
        Some(number)
    }

    fn finish(mut self, interfaces: &[Interface], unreadable: Option<String>) -> Analysis {
        let first_ns = self.first_ns.unwrap_or(0);
        for connection in &mut self.connections {
            connection.finish(self.last_ns, self.options.shortest_stall_ns);
        }
        self.trace.forget_causes(|connection, side| {
            self.connections[connection as usize].viewpoints[usize::from(side)].sees_sender()
        });
        let name = |interface: usize| {
            interfaces.get(interface).and_then(|i| i.name.clone()).unwrap_or_else(|| interface.to_string())
        };
        let place = |(interface, index): Place| {
            name(interface) + &index.map(|index| format!("/{index}")).unwrap_or_default()
        };
        let connections = (self.connections.iter().enumerate())
            .map(|(number, c)| ConnectionReport::new(number, c, place(c.place), first_ns))
            .collect();
        let report = Report {
            frames: self.frames,
            segments: self.segments,
            fragments: self.fragments,
            dropped: (self.dropped.iter())
                .map(|(interface, (segments, octets))| Dropped {
                    interface: name(*interface),
                    segments: *segments,
                    octets: *octets,
                })
                .collect(),
            unknown_links: {
                let links: BTreeSet<u16> = interfaces.iter().map(|i| i.link).collect();
                links.into_iter().filter(|link| !is_known_link(*link)).collect()
            },
            left_out: self.left_out,
            rows_left_out: self.trace.left_out,
            duration_s: report::seconds(self.last_ns.saturating_sub(first_ns)),
            unreadable,
            connections,
        };
        Analysis { report, trace: self.trace.into_columns() }
    }
}

#[cfg(test)]
mod tests;

//! What was found, for people and programs.

use serde::Serialize;

use crate::connection::{Connection, End, Side};
use crate::samples::Samples;
use crate::segment;
use crate::stall::{Rhythm, Stall};
use crate::viewpoint::Viewpoint;

/// What a capture says of TCP.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Frames in the file.
    pub frames: u64,
    /// Of these, segments of TCP.
    pub segments: u64,
    /// Fragments of datagrams of TCP, of which nothing more is known.
    pub fragments: u64,
    /// Segments that are there because they were dropped, by interface; they are in no connection.
    pub dropped: Vec<Dropped>,
    /// Types of links whose frames were not looked into, since nobody here knows them.
    pub unknown_links: Vec<u16>,
    /// Segments of connections beyond the number that is told apart.
    pub left_out: u64,
    /// Segments that are counted, but have no row in the trace.
    pub rows_left_out: u64,
    /// Seconds from the first frame to the last.
    pub duration_s: f64,
    /// Why the file could not be read to its end; `None` if it could.
    pub unreadable: Option<String>,
    /// The connections in the order of their first segments, once for each interface that saw them.
    pub connections: Vec<ConnectionReport>,
}

/// Segments that went no further.
#[derive(Clone, Debug, Serialize)]
pub struct Dropped {
    /// Where: the interface's name, or its number.
    pub interface: String,
    /// How many.
    pub segments: u64,
    /// Octets of data in them.
    pub octets: u64,
}

/// A connection.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionReport {
    /// Its number, as the trace has it.
    pub number: usize,
    /// Where it was seen: the interface's name, or its number; behind it `/` and the number of the device, where frames say it.
    pub interface: String,
    /// The end that opened it (or sent first, if the beginning was not captured).
    pub client: String,
    /// The other end.
    pub server: String,
    /// First and last segment, in seconds since the first frame.
    pub begin_s: f64,
    /// See `begin_s`.
    pub end_s: f64,
    /// Was the beginning captured?
    pub has_handshake: bool,
    /// From the first SYN to the third segment, in seconds.
    pub handshake_s: Option<f64>,
    /// The same without what was waited for until a SYN was sent again.
    pub handshake_round_trip_s: Option<f64>,
    /// How it ended.
    pub end: End,
    /// What the client sends, and what the server sends.
    pub sides: [SideReport; 2],
}

/// What one end of a connection sends. What cannot be told where the capture was made is `None`.
#[derive(Clone, Debug, Serialize)]
pub struct SideReport {
    /// Where the capture stands on the way of what it sends.
    pub seen_from: Viewpoint,
    /// Segments of every kind.
    pub segments: u64,
    /// Segments with data.
    pub data_segments: u64,
    /// Octets of data, every transmission counted.
    pub octets: u64,
    /// Octets of data, each counted once.
    pub unique_octets: u64,
    /// Octets that were acknowledged without having been captured.
    pub unseen_octets: u64,
    /// Segments that were sent again.
    pub retransmissions: u64,
    /// Of these, set off by duplicate or selective acknowledgements.
    pub fast_retransmissions: Option<u64>,
    /// Of these, set off by a timer (RTO, tail loss probe).
    pub timer_retransmissions: Option<u64>,
    /// Of these, of what the receiver had: acknowledged before or, by timestamps or time, answered already;
    /// at least as many as it reported as duplicates.
    pub needless_retransmissions: Option<u64>,
    /// Recoveries that a loss reported by acknowledgements began.
    pub fast_recoveries: Option<u64>,
    /// Timers that went off.
    pub timeouts: Option<u64>,
    /// Segments that were overtaken.
    pub out_of_order: u64,
    /// Keep-alives.
    pub keep_alives: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
    /// Duplicate acknowledgements that it got.
    pub duplicate_acks: Option<u64>,
    /// Acknowledgements with selective blocks that it got.
    pub selective_acks: Option<u64>,
    /// Of these, reports of a duplicate (RFC 2883).
    pub duplicates_reported: Option<u64>,
    /// Times that the other end closed its window.
    pub zero_windows: Option<u64>,
    /// Segments that reached the end of the other end's window. Like `window`, unknown unless both SYNs were captured: they alone
    /// say by how much windows are scaled (RFC 7323 2.2).
    pub window_full: Option<u64>,
    /// Smallest and largest window that it was offered, in octets.
    pub window: Option<(u64, u64)>,
    /// Most octets in flight.
    pub most_in_flight: Option<u64>,
    /// Octets of its largest segment, as its SYN says.
    pub mss: Option<u16>,
    /// Bits of data per second from the first to the last segment with data, each octet counted once.
    pub rate_bit_s: Option<f64>,
    /// Round trips, from a segment that was sent once to its acknowledgement.
    pub rtt: RttReport,
    /// Pauses that are unlike the usual ones, in the order of time.
    pub stalls: Vec<Stall>,
    /// How many there were; more than `stalls` has if these are too many.
    pub stall_count: u64,
    /// The usual pauses, if there are any.
    pub rhythm: Option<Rhythm>,
    /// Seconds of all stalls that are kept.
    pub stalled_s: f64,
}

/// Round-trip times in seconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct RttReport {
    /// How many were measured.
    pub count: u64,
    /// The least.
    pub min_s: Option<f64>,
    /// The median.
    pub median_s: Option<f64>,
    /// 95 of 100 are not longer.
    pub p95_s: Option<f64>,
    /// The longest.
    pub max_s: Option<f64>,
}

pub(crate) fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl ConnectionReport {
    pub(crate) fn new(number: usize, connection: &Connection, interface: String, first_ns: u64) -> Self {
        let since = |at: u64| seconds(at.saturating_sub(first_ns));
        let side =
            |number: usize| SideReport::new(&connection.sides[number], connection.viewpoints[number], &since);
        ConnectionReport {
            number,
            interface,
            client: segment::text(connection.ends[0]),
            server: segment::text(connection.ends[1]),
            begin_s: since(connection.begin_ns),
            end_s: since(connection.end_ns),
            has_handshake: connection.has_handshake,
            handshake_s: connection.handshake_ns.map(seconds),
            handshake_round_trip_s: connection.handshake_round_trip_ns.map(seconds),
            end: connection.end,
            sides: [side(0), side(1)],
        }
    }
}

impl SideReport {
    fn new(side: &Side, seen_from: Viewpoint, since: &impl Fn(u64) -> f64) -> SideReport {
        let (sender, counts) = (&side.sender, &side.sender.counts);
        let rate = sender.data_ns.and_then(|(first, last)| {
            (last > first).then(|| sender.unique() as f64 * 8.0 / seconds(last - first))
        });
        let stalls: Vec<Stall> = (side.stalls.list.iter())
            .map(|(begin, end, why, in_flight)| Stall {
                begin_s: since(*begin),
                end_s: since(*end),
                why: *why,
                in_flight: *in_flight,
            })
            .collect();
        let sent = |count: u64| seen_from.sees_sender().then_some(count);
        let answer = |count: u64| seen_from.sees_acknowledgements().then_some(count);
        SideReport {
            seen_from,
            segments: counts.segments,
            data_segments: counts.data_segments,
            octets: counts.octets,
            unique_octets: sender.unique(),
            unseen_octets: counts.unseen_octets,
            retransmissions: counts.fast + counts.timer,
            fast_retransmissions: sent(counts.fast),
            timer_retransmissions: sent(counts.timer),
            // What the receiver reports to have come twice was needless, too; a keep-alive may be such.
            needless_retransmissions: answer(
                counts.needless.max(counts.duplicates_reported.min(counts.fast + counts.timer)),
            ),
            fast_recoveries: sent(counts.fast_recoveries),
            timeouts: sent(counts.timeouts),
            out_of_order: counts.out_of_order,
            keep_alives: counts.keep_alives,
            window_probes: counts.window_probes,
            duplicate_acks: answer(counts.duplicate_acks),
            selective_acks: answer(counts.selective_acks),
            duplicates_reported: answer(counts.duplicates_reported),
            zero_windows: answer(counts.zero_windows),
            window_full: sent(counts.window_full).filter(|_| sender.scale.is_some()),
            window: sender.windows,
            most_in_flight: sent(sender.most_in_flight),
            mss: sender.mss,
            rate_bit_s: rate,
            rtt: if seen_from.sees_sender() { RttReport::new(&sender.rtt) } else { RttReport::default() },
            stalled_s: stalls.iter().fold(0.0, |sum, stall| sum + stall.end_s - stall.begin_s),
            stalls,
            stall_count: side.stalls.count,
            rhythm: side.stalls.rhythm,
        }
    }
}

impl RttReport {
    pub(crate) fn new(samples: &Samples) -> RttReport {
        RttReport {
            count: samples.count(),
            min_s: samples.least().map(seconds),
            median_s: samples.quantile(0.5).map(seconds),
            p95_s: samples.quantile(0.95).map(seconds),
            max_s: samples.most().map(seconds),
        }
    }
}

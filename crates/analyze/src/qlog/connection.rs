//! One end of a connection.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::about::{About, text};
use super::trace::{Kind, Row, Space};
use crate::report::RttReport;
use crate::samples::Samples;

/// Paths whose round trips are told apart; those with greater numbers are one.
const MOST_PATHS: u64 = 64;

/// Packets in one direction.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Direction {
    /// How many.
    pub packets: u64,
    /// Octets of those whose length is said.
    pub octets: u64,
}

/// What an end of a connection says of it.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionReport {
    /// Its number, as the trace has it.
    pub number: usize,
    /// What it is called: the connection id that the client sent to first, with most writers.
    pub group: Option<String>,
    /// Whose account this is: `client`, `server`, `network` or `unknown`.
    pub vantage: String,
    /// What that end is called.
    pub host: Option<String>,
    /// What the trace is called.
    pub title: Option<String>,
    /// First and last event, in seconds since the first of the file.
    pub begin_s: f64,
    /// See `begin_s`.
    pub end_s: f64,
    /// Events of it that were understood.
    pub events: u64,
    /// Packets that this end sent.
    pub sent: Direction,
    /// Packets that it received.
    pub received: Direction,
    /// Packets that it took for lost.
    pub lost: u64,
    /// Packets that it threw away unread.
    pub dropped: u64,
    /// Seconds from the first packet until the handshake was confirmed (HANDSHAKE_DONE, RFC 9001, 4.1.2).
    pub handshake_s: Option<f64>,
    /// Round trips as they were measured.
    pub rtt: RttReport,
    /// The smoothed round trip at the end.
    pub smoothed_rtt_s: Option<f64>,
    /// The congestion window in octets: at first, the least, the largest, at the end.
    pub cwnd: Option<[u64; 4]>,
    /// Octets in flight at most.
    pub most_in_flight: Option<u64>,
    /// Probe timeouts in a row at most.
    pub most_pto: Option<u64>,
    /// What ended it, in the word of the file, if that is said.
    pub closed: Option<String>,
}

/// What was said so far.
#[derive(Default)]
pub(super) struct Connection {
    /// The trace that it is of.
    pub(super) trace: usize,
    group: Option<String>,
    begin_ns: f64,
    end_ns: f64,
    events: u64,
    sent: Direction,
    received: Direction,
    lost: u64,
    dropped: u64,
    first_packet_ns: Option<f64>,
    confirmed_ns: Option<f64>,
    /// What was said last of each path's round trips, in nanoseconds: the least, the smoothed one, the latest, and how they vary.
    told: BTreeMap<u64, [Option<u64>; 4]>,
    rtt: Samples,
    smoothed_ms: Option<f64>,
    cwnd: Option<[u64; 4]>,
    most_in_flight: Option<u64>,
    most_pto: Option<u64>,
    closed: Option<String>,
}

/// A number, also where a writer made a text of it.
fn number(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.as_u64().or_else(|| number.as_f64().map(|n| n as u64)),
        _ => None,
    }
}

/// Milliseconds as nanoseconds.
fn nanos(value: Option<&Value>) -> Option<u64> {
    value?.as_f64().map(|ms| (ms * 1e6) as u64)
}

fn space(header: Option<&Value>, data: &Value) -> Space {
    let kind = header.and_then(|header| header.get("packet_type")).or_else(|| data.get("packet_type"));
    match kind.and_then(Value::as_str) {
        Some("initial") => Space::Initial,
        Some("handshake") => Space::Handshake,
        Some("0RTT" | "1RTT") => Space::Application,
        _ => Space::None,
    }
}

impl Connection {
    pub(super) fn new(trace: usize, group: Option<String>, at_ns: f64) -> Connection {
        Connection { trace, group, begin_ns: at_ns, end_ns: at_ns, ..Connection::default() }
    }

    /// An event; says whether it was understood. What becomes of packets is told to `tell`.
    pub(super) fn take(&mut self, what: &str, data: &Value, at_ns: f64, mut tell: impl FnMut(Row)) -> bool {
        self.end_ns = self.end_ns.max(at_ns);
        match what {
            "packet_sent" => {
                self.first_packet_ns.get_or_insert(at_ns);
                self.packet(Kind::Sent, data, at_ns, &mut tell);
            }
            "packet_received" => {
                self.first_packet_ns.get_or_insert(at_ns);
                self.packet(Kind::Received, data, at_ns, &mut tell);
            }
            "packet_lost" => self.packet(Kind::Lost, data, at_ns, &mut tell),
            "packet_dropped" => self.packet(Kind::Dropped, data, at_ns, &mut tell),
            // 0.3, and the draft of today.
            "metrics_updated" | "recovery_metrics_updated" => self.recovery(data, &mut tell),
            "connection_closed" => {
                let said = ["trigger", "connection_error", "application_error", "reason", "connection_code"];
                let said = said.into_iter().filter_map(|key| text(data.get(key)));
                let why = said.into_iter().find(|why| !why.is_empty());
                self.closed.get_or_insert(why.unwrap_or_else(|| "closed".to_owned()));
            }
            _ => return false,
        }
        self.events += 1;
        true
    }

    fn packet(&mut self, kind: Kind, data: &Value, at_ns: f64, tell: &mut impl FnMut(Row)) {
        let header = data.get("header");
        let of = |key: &str| header.and_then(|header| header.get(key));
        let len = number(data.get("raw").and_then(|raw| raw.get("length")))
            .or_else(|| ["packet_size", "length"].into_iter().find_map(|key| number(of(key))));
        let space = space(header, data);
        let row = Row {
            kind,
            space,
            number: number(of("packet_number").or_else(|| data.get("packet_number"))),
            len,
            cwnd: None,
            in_flight: None,
            rtt_ns: None,
            path: number(of("path_id")).unwrap_or(0),
        };
        tell(row);
        let direction = match kind {
            Kind::Sent => &mut self.sent,
            Kind::Received => &mut self.received,
            Kind::Lost => return self.lost += 1,
            _ => return self.dropped += 1,
        };
        direction.packets += 1;
        direction.octets = direction.octets.saturating_add(len.unwrap_or(0));
        for frame in data.get("frames").and_then(Value::as_array).into_iter().flatten() {
            match frame.get("frame_type").and_then(Value::as_str) {
                Some("handshake_done") => _ = self.confirmed_ns.get_or_insert(at_ns),
                // The latter is draft-ietf-quic-multipath's, whose packets have numbers of their own on each path.
                Some("ack" | "path_ack") if kind == Kind::Received => {
                    let path = number(frame.get("path_id")).unwrap_or(0);
                    let ranges = frame.get("acked_ranges").and_then(Value::as_array).into_iter().flatten();
                    // Pairs, or a single number for a range of one.
                    let largest = ranges.filter_map(|range| number(range.as_array()?.last())).max();
                    tell(Row { kind: Kind::Acknowledged, number: largest, len: None, path, ..row });
                }
                _ => {}
            }
        }
    }

    /// The round trip that was measured since the last event, if one was. Some writers say every number each time, and before the
    /// first one 0, or what they begin with; others those that changed: of two equal round trips the second changes how they vary.
    fn measured(&mut self, data: &Value, path: u64) -> Option<u64> {
        let said = ["min_rtt", "smoothed_rtt", "latest_rtt", "rtt_variance"].map(|key| nanos(data.get(key)));
        let told = self.told.entry(path.min(MOST_PATHS)).or_default();
        let now: [Option<u64>; 4] = std::array::from_fn(|n| said[n].or(told[n]));
        let before = std::mem::replace(told, now);
        let is_news = before.map(Option::unwrap_or_default) != now.map(Option::unwrap_or_default);
        let [least, _, latest, _] = now;
        latest.filter(|latest| is_news && (*latest > 0 || least.is_some()))
    }

    fn recovery(&mut self, data: &Value, tell: &mut impl FnMut(Row)) {
        let path = number(data.get("path_id")).unwrap_or(0);
        let rtt_ns = self.measured(data, path);
        // aioquic has a name of its own.
        let cwnd = number(data.get("congestion_window").or_else(|| data.get("cwnd")));
        let in_flight = number(data.get("bytes_in_flight"));
        if let Some(rtt_ns) = rtt_ns {
            self.rtt.push(rtt_ns);
            self.smoothed_ms = data.get("smoothed_rtt").and_then(Value::as_f64).or(self.smoothed_ms);
        }
        if let Some(now) = cwnd {
            let [first, least, most, _] = self.cwnd.unwrap_or([now; 4]);
            self.cwnd = Some([first, least.min(now), most.max(now), now]);
        }
        self.most_in_flight = self.most_in_flight.max(in_flight);
        self.most_pto = self.most_pto.max(number(data.get("pto_count")));
        tell(Row {
            kind: Kind::Recovery,
            space: Space::None,
            number: None,
            len: None,
            cwnd,
            in_flight,
            rtt_ns,
            path,
        });
    }

    pub(super) fn report(&self, number: usize, about: &About, first_ns: f64) -> ConnectionReport {
        let since = |at_ns: f64| (at_ns - first_ns) / 1e9;
        let confirmed = self.confirmed_ns.zip(self.first_packet_ns);
        ConnectionReport {
            number,
            group: self.group.clone().or_else(|| about.group.clone()),
            vantage: about.vantage.clone().unwrap_or_else(|| "unknown".to_owned()),
            host: about.host.clone(),
            title: about.title.clone(),
            begin_s: since(self.begin_ns),
            end_s: since(self.end_ns),
            events: self.events,
            sent: self.sent,
            received: self.received,
            lost: self.lost,
            dropped: self.dropped,
            handshake_s: confirmed.map(|(confirmed, first)| (confirmed - first) / 1e9),
            rtt: RttReport::new(&self.rtt),
            smoothed_rtt_s: self.smoothed_ms.map(|ms| ms / 1e3),
            cwnd: self.cwnd,
            most_in_flight: self.most_in_flight,
            most_pto: self.most_pto,
            closed: self.closed.clone(),
        }
    }
}

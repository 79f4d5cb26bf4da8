//! What the library tells of a connection, event by event, in the words of draft-ietf-quic-qlog-quic-events-12.
//!
//! The library writes JSON as it goes. [`Events`] passes its lines on with that put right in which it differs from the draft, so
//! that every reader finds sizes, delays and rates where they are looked for, and in the units that are expected there.
//!
//! A circle of 2 files: it names connections as their host does, which holds a trace for each of them.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airloom_base::record::{QlogEnd, QlogRecord};
use airloom_base::{CloseReason, Duration, Instant};
use serde_json::{Map, Value, json};

use crate::host::Host;
use crate::library::{self, ConnectionId};
use crate::pace::AT_ONCE;

/// What a record begins with, and what it ends with (RFC 7464, 2.2).
const BEGIN: u8 = 0x1E;
const END: u8 = b'\n';

/// Passes on the library's events, a record each; its header is left out.
pub struct Events<W> {
    out: W,
    line: Vec<u8>,
    /// How far this end's and the peer's acknowledgement delays are shifted (RFC 9000, 18.2).
    exponents: [u64; 2],
    /// The round trip that is assumed until one was measured, in milliseconds.
    initial_rtt: f64,
    /// Is the next packet the one that opened the connection of a server?
    opens: bool,
}

/// Octets of the tag behind a packet's payload.
const TAG: u64 = 16;

impl<W: Write> Events<W> {
    /// To `out`, of a client's or a server's end that assumes this round trip until one was measured.
    pub fn new(out: W, is_client: bool, initial_rtt: Duration) -> Events<W> {
        let initial_rtt = initial_rtt.as_micros() as f64 / 1e3;
        Events { out, line: Vec::new(), exponents: [3; 2], initial_rtt, opens: !is_client }
    }

    /// An event as it is passed on.
    fn event(&mut self, line: &[u8]) -> Option<Value> {
        let line = line.strip_prefix(&[BEGIN]).unwrap_or(line);
        let mut event: Value = serde_json::from_slice(line).ok()?;
        let name = event.get("name")?.as_str()?.to_owned();
        let data = event.get_mut("data")?.as_object_mut()?;
        match name.as_str() {
            // Each packet sets and stops several: they would be most of the file.
            "quic:timer_updated" => return None,
            "quic:parameters_set" => {
                let is_peer = data.get("initiator").and_then(Value::as_str) == Some("remote");
                if let Some(exponent) = data.get("ack_delay_exponent").and_then(Value::as_u64) {
                    //= RFC 9000 (18.2): values above 20 are invalid.
                    self.exponents[usize::from(is_peer)] = exponent.min(20);
                }
            }
            "quic:packet_sent" | "quic:packet_lost" => packet(data, self.exponents[0]),
            "quic:packet_received" => {
                packet(data, self.exponents[1]);
                // Of all others the length is that before the protection was taken off.
                if std::mem::take(&mut self.opens)
                    && let Some(length) = data.get_mut("raw").and_then(|raw| raw.get_mut("length"))
                {
                    *length = (length.as_u64().unwrap_or(0) + TAG).into();
                }
            }
            "quic:recovery_metrics_updated" => {
                path(data);
                recovery(data, self.initial_rtt);
            }
            _ => {}
        }
        Some(event)
    }
}

/// Path 0 is the only one without multipath, and then the draft has no word for it.
fn path(fields: &mut Map<String, Value>) {
    if fields.get("path_id").and_then(Value::as_u64) == Some(0) {
        fields.shift_remove("path_id");
    }
}

/// What has no value yet is not told, and rates are bits a second.
fn recovery(data: &mut Map<String, Value>, initial_rtt: f64) {
    let number = |data: &Map<String, Value>, key: &str| data.get(key).and_then(Value::as_f64);
    if number(data, "latest_rtt") == Some(initial_rtt) && number(data, "smoothed_rtt") == Some(initial_rtt) {
        data.retain(|key, _| !key.contains("rtt"));
    }
    if data.get("ssthresh").and_then(Value::as_u64) == Some(u64::MAX) {
        data.shift_remove("ssthresh");
    }
    match data.get("pacing_rate").and_then(Value::as_u64) {
        // That is our word for packets that are not paced.
        Some(AT_ONCE) => _ = data.shift_remove("pacing_rate"),
        Some(octets) => _ = data.insert("pacing_rate".to_owned(), octets.saturating_mul(8).into()),
        None => {}
    }
}

/// A packet's octets stand in `raw`: `length` in a header is that of the field in long headers. Delays are milliseconds.
fn packet(data: &mut Map<String, Value>, exponent: u64) {
    if let Some(header) = data.get_mut("header").and_then(Value::as_object_mut) {
        path(header);
        if let Some(length) = header.shift_remove("length") {
            data.insert("raw".to_owned(), json!({ "length": length }));
        }
    }
    for frame in data.get_mut("frames").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(delay) = frame.get_mut("ack_delay") {
            let units = delay.as_f64().unwrap_or(0.0);
            *delay = (units * (1u64 << exponent) as f64 / 1e3).into();
        }
        for range in frame.get_mut("acked_ranges").and_then(Value::as_array_mut).into_iter().flatten() {
            // The library ends ranges behind their last number, the draft with it; one of a single number has no end.
            let ends =
                range.as_array().and_then(|ends| Some((ends.first()?.as_u64()?, ends.get(1)?.as_u64()?)));
            if let Some((first, behind)) = ends {
                let last = behind.saturating_sub(1);
                *range = if last > first { json!([first, last]) } else { json!([first]) };
            }
        }
    }
}

impl<W: Write> Write for Events<W> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(octets);
        if self.line.ends_with(&[END]) {
            let line = std::mem::take(&mut self.line);
            if let Some(event) = self.event(&line) {
                self.out.write_all(&record(&event))?;
            }
            self.line = line;
            self.line.clear();
        }
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A record of a text sequence.
fn record(event: &Value) -> Vec<u8> {
    let mut octets = vec![BEGIN];
    serde_json::to_writer(&mut octets, event).expect("a JSON value can be written to memory");
    octets.push(END);
    octets
}

#[derive(Default)]
struct Kept {
    of: Option<Arc<QlogEnd>>,
    lines: Vec<u8>,
}

#[derive(Clone)]
struct Shared(Arc<Mutex<Kept>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Shared {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.lock().lines.extend_from_slice(octets);
        Ok(octets.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The events of one end of a connection, until the records of the run take them.
#[cfg_attr(feature = "quinn", expect(dead_code, reason = "nobody writes any"))]
pub(crate) struct Trace {
    kept: Shared,
    host: String,
    flow: u32,
    /// A server's, that asked its client for a token: the name that the client used before.
    first: Option<ConnectionId>,
    initial_rtt: Duration,
    is_ended: bool,
}

impl Trace {
    /// Of the end on this host; `first` is what its client called the connection, where the library may not know it any more.
    pub(crate) fn new(host: &Host, flow: u32, first: Option<ConnectionId>) -> Trace {
        let (kept, initial_rtt) = (Shared(Arc::default()), host.config.initial_rtt);
        Trace { kept, host: host.name.clone(), flow, first, initial_rtt, is_ended: false }
    }

    /// Makes the library write here.
    #[cfg(not(feature = "quinn"))]
    pub(crate) fn record(&self, config: &mut library::TransportConfig) {
        let (kept, host) = (self.kept.clone(), self.host.clone());
        let (flow, first, initial_rtt) = (self.flow, self.first, self.initial_rtt);
        config.qlog_factory(Arc::new(Factory { kept, host, flow, first, initial_rtt }));
    }

    /// That library tells nothing.
    #[cfg(feature = "quinn")]
    pub(crate) fn record(&self, _: &mut library::TransportConfig) {}

    /// The connection is over for this end.
    pub(crate) fn end(&mut self, now: Instant, why: CloseReason) {
        if std::mem::replace(&mut self.is_ended, true) {
            return;
        }
        let trigger = match why {
            CloseReason::TimedOut => "idle_timeout",
            CloseReason::Finished | CloseReason::Application(_) => "application",
            CloseReason::Reset | CloseReason::Aborted | CloseReason::Refused | CloseReason::Unreachable => {
                "error"
            }
        };
        let time = (now.as_nanos() / 1_000) as f64 / 1e3;
        let event = json!({ "time": time, "name": "quic:connection_closed", "data": { "trigger": trigger } });
        self.kept.lock().lines.extend_from_slice(&record(&event));
    }

    /// Moves what there is to the records.
    pub(crate) fn tell(&self, records: &mut Vec<QlogRecord>) {
        let mut kept = self.kept.lock();
        if let Some(of) = kept.of.clone()
            && !kept.lines.is_empty()
        {
            records.push(QlogRecord { of, lines: std::mem::take(&mut kept.lines) });
        }
    }
}

#[cfg(not(feature = "quinn"))]
struct Factory {
    kept: Shared,
    host: String,
    flow: u32,
    first: Option<ConnectionId>,
    initial_rtt: Duration,
}

#[cfg(not(feature = "quinn"))]
impl library::QlogFactory for Factory {
    fn for_connection(
        &self,
        side: library::Side,
        _remote: std::net::SocketAddr,
        id: ConnectionId,
        _now: crate::clock::Moment,
    ) -> Option<library::QlogConfig> {
        let (group, is_client) = (self.first.unwrap_or(id).to_string(), side.is_client());
        self.kept.lock().of =
            Some(Arc::new(QlogEnd { group, is_client, host: self.host.clone(), flow: self.flow }));
        let events = Events::new(self.kept.clone(), is_client, self.initial_rtt);
        let mut config = library::QlogConfig::new(Box::new(events));
        config.start_time(crate::clock::to_library(Instant::ZERO));
        Some(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(lines: &[&str]) -> Vec<Value> {
        let mut out = Vec::new();
        let mut events = Events::new(&mut out, false, Duration::from_millis(333));
        for line in lines {
            // As the library writes: in pieces.
            let (one, two) = line.split_at(line.len() / 2);
            for piece in ["\u{1e}", one, two, "\n"] {
                events.write_all(piece.as_bytes()).unwrap();
            }
        }
        let text = String::from_utf8(out).unwrap();
        text.split_terminator('\n')
            .map(|line| serde_json::from_str(line.strip_prefix('\u{1e}').unwrap()).unwrap())
            .collect()
    }

    #[test]
    fn sizes_and_delays_are_where_readers_look_for_them() {
        let sent = r#"{"time":1.5,"name":"quic:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":7,
            "path_id":0,"length":1200},"frames":[{"frame_type":"ack","ack_delay":125.0,"acked_ranges":[[3,4],[7,9]]}]}}"#
            .replace('\n', "");
        assert_eq!(
            passed(&[&sent]),
            [json!({"time": 1.5, "name": "quic:packet_sent", "data": {
                "header": {"packet_type": "1RTT", "packet_number": 7},
                "frames": [{"frame_type": "ack", "ack_delay": 1.0, "acked_ranges": [[3], [7, 8]]}],
                "raw": {"length": 1200}}})]
        );
    }

    #[test]
    fn a_peers_delays_are_scaled_as_the_peer_said() {
        let set = r#"{"time":0,"name":"quic:parameters_set","data":{"initiator":"remote","ack_delay_exponent":10}}"#;
        let ack = |name: &str| {
            format!(
                r#"{{"time":1,"name":"quic:{name}","data":{{"frames":[{{"frame_type":"ack","ack_delay":5}}]}}}}"#
            )
        };
        let found = passed(&[set, &ack("packet_received"), &ack("packet_sent")]);
        let delay = |event: &Value| event["data"]["frames"][0]["ack_delay"].as_f64().unwrap();
        assert_eq!((delay(&found[1]), delay(&found[2])), (5.12, 0.04));
    }

    #[test]
    fn the_librarys_header_its_timers_and_what_is_no_event_are_left_out() {
        let metrics =
            r#"{"time":1,"name":"quic:recovery_metrics_updated","data":{"pacing_rate":1000,"path_id":0}}"#;
        let timer = r#"{"time":1,"name":"quic:timer_updated","data":{}}"#;
        let found = passed(&[r#"{"file_schema":"x"}"#, timer, "{", metrics]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0]["data"], json!({ "pacing_rate": 8000 }));
    }

    #[test]
    fn what_was_not_measured_is_not_told() {
        let metrics = |rtt: &str, more: &str| {
            format!(
                r#"{{"time":1,"name":"quic:recovery_metrics_updated","data":{{"min_rtt":{rtt},"smoothed_rtt":{rtt},
                "latest_rtt":{rtt},"rtt_variance":1,"congestion_window":12000{more}}}}}"#
            )
            .replace('\n', "")
        };
        let unlimited = format!(r#","ssthresh":{},"pacing_rate":{AT_ONCE}"#, u64::MAX);
        let found = passed(&[&metrics("333.0", &unlimited), &metrics("50.5", "")]);
        assert_eq!(found[0]["data"], json!({ "congestion_window": 12000 }));
        assert_eq!(found[1]["data"]["min_rtt"], 50.5);
    }

    #[test]
    fn the_packet_that_opens_a_servers_connection_has_its_tag_too() {
        let received = r#"{"time":1,"name":"quic:packet_received","data":{"header":{"length":1184}}}"#;
        let found = passed(&[received, received]);
        assert_eq!(found[0]["data"]["raw"]["length"], 1200);
        assert_eq!(found[1]["data"]["raw"]["length"], 1184);
    }
}

//! qlog.

use airloom_analyze::qlog::analyze;

use crate::octets::Octets;

/// Heads of both dialects, as sequences and as a document.
const HEADS: [&str; 4] = [
    "{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"trace\":{\"vantage_point\":{\"type\":\"client\"}}}\n",
    "\u{1e}{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\",\"trace\":{\"common_fields\":{\"group_id\":7,\
     \"time_format\":\"relative_to_previous_event\"}}}\n",
    "{\"qlog_version\":\"0.3\",\"traces\":[{\"events\":[",
    "{\"traces\":[{\"events\":[{\"name\":\"quic:packet_sent\"}]},{}],\"qlog_version\":0,\"traces\":[{\"events\":[",
];

/// Pieces that events consist of.
const WORDS: [&str; 48] = [
    "\u{1e}",
    "\n",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"time\":",
    "1.5",
    "-1e300",
    "1e18",
    "\"name\":",
    "\"data\":",
    "\"quic:packet_sent\"",
    "\"transport:packet_received\"",
    "\"quic:packet_lost\"",
    "\"recovery:metrics_updated\"",
    "\"quic:recovery_metrics_updated\"",
    "\"quic:packet_dropped\"",
    "\"quic:connection_closed\"",
    "\"http:x\"",
    "\"header\":",
    "\"packet_number\":",
    "\"packet_type\":",
    "\"1RTT\"",
    "\"initial\"",
    "\"raw\":",
    "\"length\":",
    "18446744073709551615",
    "0",
    "\"frames\":",
    "\"frame_type\":",
    "\"ack\"",
    "\"handshake_done\"",
    "\"acked_ranges\":",
    "[[1,3],[7]]",
    "\"congestion_window\":",
    "\"bytes_in_flight\":",
    "\"latest_rtt\":",
    "\"smoothed_rtt\":",
    "\"pto_count\":",
    "\"group_id\":",
    "\"a\"",
    "null",
    "true",
    "\"trigger\":",
    "{\"time\":1,\"name\":\"quic:packet_sent\",\"data\":{\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":1},\
     \"raw\":{\"length\":9}}}",
];

fn read(text: &[u8]) {
    let Ok(analysis) = analyze(text, 64) else { return };
    let report = analysis.report;
    let understood: u64 = report.connections.iter().map(|connection| connection.events).sum();
    assert!(understood + report.other_events + report.left_out <= report.events);
    assert!(analysis.trace.iter().all(|column| column.values.len() <= 64));
}

/// The octets as they are, behind each head, and as words of events behind one.
pub fn qlog(octets: &[u8]) {
    read(octets);
    for head in HEADS {
        read(&[head.as_bytes(), octets].concat());
    }
    let mut octets = Octets::new(octets);
    let mut text = HEADS[usize::from(octets.octet()) % HEADS.len()].to_owned();
    while let Some(word) = octets.next() {
        text += WORDS[usize::from(word) % WORDS.len()];
    }
    read(text.as_bytes());
}

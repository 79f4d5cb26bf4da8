//! What QUIC did, by an endpoint's own account: qlog of ours and of others.
//!
//! Read are the draft of today (draft-ietf-quic-qlog-main-schema, whatever number its event schemas have) and 0.3, which viewers
//! and several libraries still speak; each as a JSON text sequence, as lines, or as one document with its traces. They differ in
//! how things are called and in how a file is held together, not in what a packet is.

mod about;
mod connection;
mod read;
mod trace;

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use airloom_record::Column;
use serde::Serialize;
use serde_json::Value;

use about::{About, LONGEST, text};
use connection::Connection;
pub use connection::{ConnectionReport, Direction};
use trace::Trace;

/// How many connections are told apart.
const MOST_CONNECTIONS: usize = 1 << 12;

/// Nanoseconds of a time at most, as tables hold them: three hundred years.
const LONGEST_NS: f64 = 9.2e18;

/// Schemas and versions that are listed.
const MOST_SCHEMAS: usize = 32;

/// Why a file cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system says so.
    #[error(transparent)]
    Io(io::Error),
    /// It is something else.
    #[error("not a qlog: {0}")]
    NotQlog(String),
}

/// What a file says.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The form of the file: `qlog_version` and `qlog_format`, or its schema and serialization.
    pub form: String,
    /// The schemas of its events, as far as it names them.
    pub schemas: Vec<String>,
    /// Events.
    pub events: u64,
    /// Events that say nothing of a connection's packets and of its recovery.
    pub other_events: u64,
    /// Events of connections beyond the number that is told apart.
    pub left_out: u64,
    /// Events that are counted, but have no row in the trace.
    pub rows_left_out: u64,
    /// Seconds from the first event to the last.
    pub duration_s: f64,
    /// Why the file could not be read to its end; `None` if it could.
    pub unreadable: Option<String>,
    /// The connections in the order of their first events.
    pub connections: Vec<ConnectionReport>,
}

/// What was found.
pub struct Analysis {
    /// Sums.
    pub report: Report,
    /// Every packet that was sent, received, acknowledged or lost, and every change of what recovery goes by.
    pub trace: Vec<Column>,
}

/// Reads a file to its end, or to where it is cut or is no JSON: what came before counts, and the report says so. The trace has
/// `rows` rows at most.
///
/// # Errors
/// [`Error`] if it is no qlog from its beginning.
pub fn analyze(input: impl BufRead, rows: usize) -> Result<Analysis, Error> {
    let mut analyzer = Analyzer::new(rows);
    let unreadable = read::read(input, &mut analyzer)?;
    Ok(analyzer.finish(unreadable))
}

/// Puts events where they belong.
#[derive(Default)]
pub(crate) struct Analyzer {
    report: Report,
    /// Version or schema, and format.
    form: [String; 2],
    abouts: Vec<About>,
    connections: Vec<Connection>,
    /// By trace and group.
    by_key: BTreeMap<(usize, Option<String>), usize>,
    trace: Trace,
    /// Of the trace that is read: nanoseconds of its last event.
    last_ns: f64,
    first_ns: Option<f64>,
    most_ns: f64,
}

impl Analyzer {
    fn new(rows: usize) -> Analyzer {
        Analyzer { trace: Trace::new(rows), ..Default::default() }
    }

    /// A trace begins.
    pub(crate) fn begin(&mut self) {
        self.last_ns = 0.0;
        // Traces without events cost nothing.
        let number = self.abouts.len();
        if number > 0 && self.by_key.range((number - 1, None)..).next().is_none() {
            self.abouts.pop();
        }
        self.abouts.push(About::default());
    }

    /// A member of the trace that is read.
    pub(crate) fn about(&mut self, key: &str, value: &Value) {
        if let Some(about) = self.abouts.last_mut() {
            about.take(key, value);
        }
        if key == "event_schemas" {
            for schema in value.as_array().into_iter().flatten().filter_map(Value::as_str) {
                self.note_schema(schema);
            }
        }
    }

    fn note_schema(&mut self, schema: &str) {
        if self.report.schemas.len() < MOST_SCHEMAS
            && !self.report.schemas.iter().any(|known| known == schema)
        {
            self.report.schemas.push(schema.chars().take(LONGEST).collect());
        }
    }

    /// A member of the file's head.
    pub(crate) fn head(&mut self, key: &str, value: &Value) {
        let Some(said) = text(Some(value)) else { return };
        match key {
            "file_schema" => self.form[0] = said,
            "serialization_format" => self.form[1] = said,
            // Some write both heads, so that older readers take the file.
            "qlog_version" if self.form[0].is_empty() => self.form[0] = said,
            "qlog_format" if self.form[1].is_empty() => self.form[1] = said,
            _ => {}
        }
    }

    /// An event of the trace that is read.
    pub(crate) fn event(&mut self, event: &Value) {
        self.report.events += 1;
        // Before the first trace there are none.
        let Some(about) = self.abouts.last() else { return };
        let name = event.get("name").and_then(Value::as_str).unwrap_or_default();
        let (category, what) = name.split_once(':').unwrap_or(("", name));
        let time_ms = event.get("time").and_then(Value::as_f64);
        let time_ns = time_ms.map(|ms| ms * 1e6).filter(|ns| ns.abs() <= LONGEST_NS).unwrap_or(0.0);
        let is_delta = event.get("time_format").map_or(about.is_delta, about::is_delta);
        let at_ns = if is_delta { self.last_ns + time_ns } else { time_ns };
        self.last_ns = at_ns;
        let first_ns = *self.first_ns.get_or_insert(at_ns);
        self.most_ns = self.most_ns.max(at_ns - first_ns);
        if !matches!(category, "quic" | "transport" | "recovery" | "connectivity" | "security") {
            self.report.other_events += 1;
            return;
        }
        let group = text(event.get("group_id")).or_else(|| about.group.clone());
        let key = (self.abouts.len() - 1, group);
        let number = match self.by_key.get(&key) {
            Some(number) => *number,
            None if self.connections.len() == MOST_CONNECTIONS => {
                self.report.left_out += 1;
                return;
            }
            None => {
                let number = self.connections.len();
                self.connections.push(Connection::new(key.0, key.1.clone(), at_ns));
                self.by_key.insert(key, number);
                number
            }
        };
        let (data, t_ns) = (event.get("data").unwrap_or(&Value::Null), (at_ns - first_ns) as i64);
        let connection = &mut self.connections[number];
        if !connection.take(what, data, at_ns, |row| self.trace.push(number as u32, t_ns, row)) {
            self.report.other_events += 1;
        }
    }

    fn finish(mut self, unreadable: Option<String>) -> Analysis {
        let first_ns = self.first_ns.unwrap_or(0.0);
        self.report.form = self.form.join(" ").trim().to_owned();
        self.report.duration_s = self.most_ns / 1e9;
        self.report.unreadable = unreadable;
        self.report.rows_left_out = self.trace.left_out;
        let reports = self.connections.iter().enumerate();
        self.report.connections =
            reports.map(|(number, c)| c.report(number, &self.abouts[c.trace], first_ns)).collect();
        Analysis { report: self.report, trace: self.trace.into_columns() }
    }
}

#[cfg(test)]
mod tests;

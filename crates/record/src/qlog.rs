//! Events of connections in files of their own: qlog, one for each end of a connection.
//!
//! Text: draft-ietf-quic-qlog-main-schema-13. A file is a JSON text sequence (RFC 7464): a header, then an event a record. Times
//! are milliseconds since the run began, and nothing tells where or when a file was written. Files are named as programs name
//! them that are told `QLOGDIR`: by the connection id that the client sent to first, and the end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use airloom_base::Outbox;
use airloom_base::record::QlogEnd;
use serde_json::json;

use crate::pcapng::About;

/// The events that files hold. The number is that of the drafts which define them, until there are RFCs.
const EVENTS: [&str; 2] = ["urn:ietf:params:qlog:events:quic-12", "urn:ietf:params:qlog:events:http3-12"];

/// Octets that wait before they are written.
const AT_ONCE: usize = 1 << 20;

/// The name of a file with the events of this end.
pub fn name(end: &QlogEnd) -> String {
    format!("{}_{}.sqlog", end.group, side(end))
}

fn side(end: &QlogEnd) -> &'static str {
    if end.is_client { "client" } else { "server" }
}

/// What a file of this end begins with. A flow 0 is none of a run.
pub fn header(title: &str, end: &QlogEnd) -> String {
    let title = if end.flow == 0 { title.to_owned() } else { format!("{title}, flow {}", end.flow) };
    let header = json!({
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "serialization_format": "application/qlog+json-seq",
        "title": title,
        "trace": {
            "common_fields": {
                "group_id": end.group,
                "time_format": "relative_to_epoch",
                // Nobody knows when a run began.
                "reference_time": { "clock_type": "monotonic", "epoch": "unknown" },
            },
            "vantage_point": { "name": end.host, "type": side(end) },
            "event_schemas": EVENTS,
        },
    });
    format!("\u{1e}{header}\n")
}

/// The files of a run.
pub struct QlogFiles {
    folder: PathBuf,
    title: String,
    begun: BTreeSet<String>,
    /// What is to be written, by file.
    waiting: BTreeMap<String, Vec<u8>>,
    octets: usize,
}

impl QlogFiles {
    /// In this folder.
    pub fn new(folder: &Path, about: &About) -> QlogFiles {
        let (begun, waiting) = (BTreeSet::new(), BTreeMap::new());
        QlogFiles { folder: folder.to_owned(), title: about.comment.clone(), begun, waiting, octets: 0 }
    }

    /// Takes the events of `outbox`, which stays as it is.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn take(&mut self, outbox: &Outbox) -> io::Result<()> {
        for record in &outbox.qlog {
            let name = name(&record.of);
            let lines = self.waiting.entry(name.clone()).or_default();
            if self.begun.insert(name) {
                lines.extend_from_slice(header(&self.title, &record.of).as_bytes());
            }
            lines.extend_from_slice(&record.lines);
            self.octets += record.lines.len();
        }
        if self.octets >= AT_ONCE { self.write() } else { Ok(()) }
    }

    /// Writes what waits. Files are closed in between: a run may have more of them than a process may have open.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&mut self) -> io::Result<()> {
        self.octets = 0;
        for (name, lines) in std::mem::take(&mut self.waiting) {
            OpenOptions::new().create(true).append(true).open(self.folder.join(name))?.write_all(&lines)?;
        }
        Ok(())
    }
}

//! Records become files, pcapng and columns; and captures, ours or foreign ones, are read back ([`capture`]).
//!
//! Machines push facts into the outbox; this crate alone knows what a file looks like. A driver gives the
//! outbox to a [`Recorder`] whenever it likes: captures are streamed to disk at once, tables grow as columns
//! that are handed to Python whole.
//!
//! Not here: what is recorded, which machines say (`base`), and what a capture means (`analyze`).
//!
//! ```text
//! Outbox --packets--> pcapng::Writer --> trace.pcapng
//!        \-qlog-----> qlog::QlogFiles --> *.sqlog
//!        \-packets--> columns::Packets  \
//!         \--facts--> Flows, Pages, States, Congestion  --> Parquet (written by Python)
//! ```
//!
//! The tables of a run in virtual time are Parquet that Python writes. Those of a run in real time are written here, while
//! they grow ([`TableFiles`]): it may last for a day. Those of a sweep are written and put together here too ([`sweep`]):
//! thousands of short runs are done before a table library is imported.

pub mod capture;
pub mod columns;
pub mod file;
mod growing;
mod gsmtap;
mod parquet_file;
pub mod pcapng;
mod qlog;
pub mod sweep;
mod umts;

pub use columns::{Cells, Column, Optional, Tables, Values};
pub use file::CaptureFile;
pub use growing::TableFiles;
pub use pcapng::{About, Writer};
pub use qlog::{QlogFiles, header as qlog_header, name as qlog_name};

use std::io;

use airloom_base::Outbox;

/// Takes everything out of an outbox: tables, and a capture if there is one.
#[derive(Default)]
pub struct Recorder {
    /// The tables so far.
    pub tables: Tables,
    capture: Option<CaptureFile>,
    qlog: Option<QlogFiles>,
}

impl Recorder {
    /// A recorder that fills `tables` and, if given, writes a capture and the events of connections.
    pub fn new(tables: Tables, capture: Option<CaptureFile>, qlog: Option<QlogFiles>) -> Self {
        Recorder { tables, capture, qlog }
    }

    /// Takes all records out of `outbox` and clears it.
    ///
    /// Fails if a file cannot be written (a full disk); the outbox is cleared all the same.
    pub fn drain(&mut self, outbox: &mut Outbox) -> io::Result<()> {
        self.tables.take(outbox);
        let written = match &mut self.capture {
            Some(capture) => capture.write(outbox),
            None => Ok(()),
        };
        let kept = self.qlog.as_mut().map_or(Ok(()), |files| files.take(outbox));
        outbox.clear();
        written.and(kept)
    }

    /// Gives the capture its final name and returns the tables.
    pub fn finish(self) -> io::Result<Tables> {
        if let Some(mut qlog) = self.qlog {
            qlog.write()?;
        }
        if let Some(capture) = self.capture {
            capture.finish()?;
        }
        Ok(self.tables)
    }
}

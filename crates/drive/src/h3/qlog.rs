//! `QLOGDIR`: the events of each connection in a file, as other programs write them when they are told so.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use airloom_base::record::QlogEnd;
use airloom_transports::quic::Events;
use noq_proto::{ConnectionId, QlogConfig, QlogFactory, Side, TransportConfig};

use super::endpoint::{Now, now};

/// Has connections tell what becomes of their packets, if `QLOGDIR` says where. A folder that is not there is made.
///
/// # Errors
/// The folder, and why it cannot be one.
pub(super) fn from_environment(
    transport: &mut TransportConfig,
    initial_rtt: Duration,
) -> Result<(), (PathBuf, io::Error)> {
    let Some(folder) = std::env::var_os("QLOGDIR").filter(|folder| !folder.is_empty()) else { return Ok(()) };
    let folder = PathBuf::from(folder);
    fs::create_dir_all(&folder).map_err(|why| (folder.clone(), why))?;
    transport.qlog_factory(Arc::new(Files { folder, began: now(), initial_rtt }));
    Ok(())
}

//= RFC 9002 (6.2.2): 333 ms, as long as nothing was measured; the library's default.
pub(super) const INITIAL_RTT: Duration = Duration::from_millis(333);

struct Files {
    folder: PathBuf,
    /// What times are counted from.
    began: Now,
    /// What a round trip is taken for until one was measured.
    initial_rtt: Duration,
}

fn begin(folder: &Path, end: &QlogEnd) -> io::Result<BufWriter<File>> {
    // One that is there is another connection's, of whoever gives the same name twice.
    let mut file = BufWriter::new(File::create_new(folder.join(airloom_record::qlog_name(end)))?);
    file.write_all(airloom_record::qlog_header("airloom h3", end).as_bytes())?;
    Ok(file)
}

impl QlogFactory for Files {
    fn for_connection(&self, side: Side, _: SocketAddr, id: ConnectionId, _: Now) -> Option<QlogConfig> {
        let end = QlogEnd {
            group: id.to_string(),
            is_client: side.is_client(),
            host: "airloom".to_owned(),
            flow: 0,
        };
        // A connection goes on without its file: the disk may be full.
        let mut config = QlogConfig::new(Box::new(Events::new(
            begin(&self.folder, &end).ok()?,
            end.is_client,
            airloom_base::Duration::from_nanos(self.initial_rtt.as_nanos() as u64),
        )));
        config.start_time(self.began);
        Some(config)
    }
}

//! `QLOGDIR`: the events of each connection in a file, as other programs write them when they are told so.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use airloom_base::record::QlogEnd;
use airloom_base::{Duration as Span, Instant};
use airloom_transports::quic::{About, Opening, Pacing, Trace, cubic};
use noq_proto::{ClientConfig, Connection, Incoming, ServerConfig, TransportConfig, crypto};

use super::clock::{Now, now};

//= RFC 9002 (6.2.2): 333 ms, as long as nothing was measured; the library's default.
pub(super) const INITIAL_RTT: Duration = Duration::from_millis(333);

/// The library's default (RFC 9002, 6.1.1).
const PACKET_THRESHOLD: u32 = 3;

/// What connections of this process are written down by.
pub(super) struct Qlog {
    folder: PathBuf,
    /// What times are counted from.
    began: Now,
    /// What a round trip is taken for until one was measured.
    initial_rtt: Duration,
    pacing: Pacing,
    /// The packet that opened a server's last connection.
    opening: Opening,
}

/// The events of a connection, on their way to its file.
pub(super) struct Log {
    trace: Trace,
    began: Now,
    folder: PathBuf,
    /// A connection goes on without its file: the disk may be full.
    file: Option<BufWriter<File>>,
    has_begun: bool,
}

impl Qlog {
    /// If `QLOGDIR` says where. A folder that is not there is made. `pacing` is that of the connections.
    ///
    /// # Errors
    /// The folder, and why it cannot be one.
    pub(super) fn from_environment(
        initial_rtt: Duration,
        pacing: Pacing,
    ) -> Result<Option<Qlog>, (PathBuf, io::Error)> {
        let Some(folder) = std::env::var_os("QLOGDIR").filter(|folder| !folder.is_empty()) else {
            return Ok(None);
        };
        let folder = PathBuf::from(folder);
        fs::create_dir_all(&folder).map_err(|why| (folder.clone(), why))?;
        let opening = Opening::default();
        opening.want(true);
        Ok(Some(Qlog { folder, began: now(), initial_rtt, pacing, opening }))
    }

    fn log(&self, remote: SocketAddr, incoming: Option<&Incoming>) -> Log {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let about = About {
            host: "airloom".to_owned(),
            flow: 0,
            is_client: incoming.is_none(),
            local: (incoming.and_then(Incoming::local_ip), None),
            remote,
            first: incoming.map(Incoming::orig_dst_cid),
            initial_rtt: Span::from_nanos(nanos(self.initial_rtt)),
            packet_threshold: PACKET_THRESHOLD,
        };
        let since = Instant::from_nanos(nanos(self.began.elapsed()));
        let trace = Trace::new(about, since);
        Log { trace, began: self.began, folder: self.folder.clone(), file: None, has_begun: false }
    }

    fn transport(&self, transport: &TransportConfig, log: &Log) -> Arc<TransportConfig> {
        let mut transport = transport.clone();
        transport.congestion_controller_factory(cubic(self.pacing, Some(&log.trace)));
        Arc::new(transport)
    }

    /// A client's connection, and what it is made from.
    pub(super) fn client(
        &self,
        tls: Arc<dyn crypto::ClientConfig>,
        transport: &TransportConfig,
        to: SocketAddr,
    ) -> (ClientConfig, Log) {
        let log = self.log(to, None);
        let mut config = ClientConfig::new(log.trace.client(tls));
        config.transport_config(self.transport(transport, &log));
        (config, log)
    }

    /// What a server's endpoint reads the packets of strangers by.
    pub(super) fn listen(&self, config: &ServerConfig) -> ServerConfig {
        let mut config = config.clone();
        config.crypto = self.opening.listen(config.crypto);
        config
    }

    /// A server's connection, and what it is made from.
    pub(super) fn server(&self, config: &ServerConfig, incoming: &Incoming) -> (ServerConfig, Log) {
        let log = self.log(incoming.remote_address(), Some(incoming));
        let mut config = config.clone();
        config.crypto = log.trace.server(config.crypto, &self.opening);
        config.transport = self.transport(&config.transport, &log);
        (config, log)
    }
}

impl Log {
    /// What happens from now on happens at this moment.
    pub(super) fn at(&self, now: Now) {
        self.trace.at(self.since(now));
    }

    /// A deadline has passed, of which the connection is told next.
    pub(super) fn due(&self, now: Now) {
        self.trace.due(self.since(now));
    }

    fn since(&self, now: Now) -> Instant {
        let since = now.saturating_duration_since(self.began).as_nanos();
        Instant::from_nanos(u64::try_from(since).unwrap_or(u64::MAX))
    }

    /// Adds an event of what is spoken on the connection.
    pub(super) fn tell(&self, name: &str, data: serde_json::Value) {
        self.trace.tell(name, data);
    }

    /// Writes what has happened.
    pub(super) fn follow(&mut self, connection: &Connection) {
        self.trace.follow(connection);
        let Some((of, lines)) = self.trace.take() else { return };
        if !std::mem::replace(&mut self.has_begun, true) {
            self.file = begin(&self.folder, &of).ok();
        }
        if self.file.as_mut().is_some_and(|file| file.write_all(&lines).is_err()) {
            self.file = None;
        }
    }
}

fn begin(folder: &Path, end: &QlogEnd) -> io::Result<BufWriter<File>> {
    // One that is there is another connection's, of whoever gives the same name twice.
    let mut file = BufWriter::new(File::create_new(folder.join(airloom_record::qlog_name(end)))?);
    file.write_all(airloom_record::qlog_header("airloom h3", end).as_bytes())?;
    Ok(file)
}

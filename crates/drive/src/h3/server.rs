//! `airloom serve h3`: the files of a folder.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use airloom_base::Body;
use airloom_content::http::message::{Fields, Method, RequestHead, ResponseHead, Version};
use airloom_content::http::v3::{self, ErrorCode, Event};
use airloom_proxies::http_cache::date_text;
use airloom_transports::quic::Pacing;
use bytes::Bytes;
use noq_proto::{ServerConfig, TransportConfig, VarInt};

use super::clock::now;
use super::endpoint::Quic;
use super::files::{Folder, PIECE, Sending};
use super::link::Link;
use super::qlog::{INITIAL_RTT, Qlog};
use super::socket::Socket;
use super::tls::{self, Terms};
use crate::daemon::listening::{self, CannotListen};
use crate::daemon::stop::{Stop, over};
use crate::daemon::streams::Clients;
use crate::daemon::today;

/// What the daemon is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where clients come to.
    pub listen: SocketAddr,
    /// What is served.
    pub folder: PathBuf,
    /// Certificates and key (PEM); made for this run if not given.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Fields that every answer has besides: names in lower case, none of those that it has anyway, and values.
    pub fields: Vec<(String, String)>,
    /// Who may come.
    pub clients: Clients,
    /// Connections beyond this number are refused.
    pub connections: usize,
    /// How long what is under way may take when the daemon is to stop.
    pub grace: Duration,
}

/// Requests of a connection that may be under way.
const REQUESTS: u32 = 100;
/// Octets of a request's body that are taken before they were looked at, and of all of a connection.
const WINDOW: u32 = 1 << 18;
/// A connection on which nothing happens for so long is forgotten.
const IDLE_MS: u32 = 30_000;
/// Octets of a connection that are kept until they are acknowledged.
const UNACKNOWLEDGED: u64 = 4 << 20;
/// Octets of files that wait to be written to the streams of a connection, beyond which few are read of any other.
const WAITING: usize = 1 << 18;
/// Those few.
const FEW: usize = 4096;

/// What a client is told of our limits.
fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(REQUESTS.into())
        //= RFC 9114 (6.2): three that are needed, and some for what is to be ignored.
        .max_concurrent_uni_streams(VarInt::from_u32(8))
        .stream_receive_window(WINDOW.into())
        .receive_window((4 * WINDOW).into())
        .send_window(UNACKNOWLEDGED)
        .max_idle_timeout(Some(VarInt::from_u32(IDLE_MS).into()))
        .datagram_receive_buffer_size(None);
    transport
}

/// Serves until told to stop (SIGINT, SIGTERM), then lets what is under way end; a second signal ends it at once. `ready` is
/// told where it listens before the first client is taken, `log` gets a line for each request.
///
/// # Errors
/// [`CannotListen`] if an address is taken or not ours, or a file is not what it should be.
pub fn serve(
    options: &Options,
    ready: impl FnOnce(SocketAddr),
    log: impl FnMut(String),
) -> Result<(), CannotListen> {
    listening::run(async {
        let mut stop = Stop::listen()?;
        run(options, async || stop.asked().await, ready, log).await
    })
}

/// The files that a connection is being sent, by stream.
type Files = BTreeMap<u64, Sending>;

/// Serves until `asked` says to stop.
pub(super) async fn run(
    options: &Options,
    mut asked: impl AsyncFnMut(),
    ready: impl FnOnce(SocketAddr),
    mut log: impl FnMut(String),
) -> Result<(), CannotListen> {
    let cannot = listening::cannot(options.listen);
    let of =
        |folder: &Path, why: io::Error| io::Error::new(why.kind(), format!("{}: {why}", folder.display()));
    let folder = Folder::new(&options.folder).map_err(|why| of(&options.folder, why))?;
    let files = options.certificate.as_ref().map(|(chain, key)| (chain.as_path(), key.as_path()));
    let tls = tls::server(Terms::HTTP3, files).map_err(io::Error::other)?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(Arc::new(transport()));
    let qlog =
        Qlog::from_environment(INITIAL_RTT, Pacing::Always).map_err(|(folder, why)| of(&folder, why))?;
    let socket = Socket::bind(options.listen, false).map_err(&cannot)?;
    let made = Link::made(v3::Connection::server);
    let mut quic = Quic::new(socket, Some(config), options.connections, qlog, made);
    ready(quic.local().map_err(&cannot)?);
    let mut sending: BTreeMap<usize, Files> = BTreeMap::new();
    let mut end = None;
    loop {
        quic.turn(|handle, link| {
            let files = sending.entry(handle).or_default();
            let moved = attend(link, &folder, &options.fields, files, end.is_some(), &mut log);
            if files.is_empty() {
                sending.remove(&handle);
            }
            moved
        });
        sending.retain(|handle, _| quic.links.contains_key(handle));
        if end.is_some() && quic.links.values().all(|link| link.talk.quic.is_closed()) {
            break;
        }
        tokio::select! {
            biased;
            () = asked() => {
                if end.is_some() {
                    break;
                }
                end = Some(tokio::time::Instant::now() + options.grace);
                for link in quic.links.values_mut() {
                    link.talk.http.go_away();
                }
                quic.ask_all();
            }
            () = over(end) => break,
            there = quic.wait() => there.map_err(&cannot)?,
        }
        quic.take(|from| options.clients.allows(from.ip()));
    }
    quic.leave(|link| link.close(now())).await;
    Ok(())
}

/// Answers what was asked on a connection and goes on with what is being sent. True: something has come of it.
fn attend(
    link: &mut Link,
    folder: &Folder,
    more: &[(String, String)],
    sending: &mut Files,
    is_ending: bool,
    log: &mut impl FnMut(String),
) -> bool {
    let mut moved = false;
    while let Some(event) = link.poll_event(now()) {
        moved = true;
        match event {
            Event::Request(stream, head) => {
                answer(&mut link.http, stream, &head, folder, more, sending, log);
            }
            Event::Reset(stream, _) => {
                sending.remove(&stream);
            }
            _ => {}
        }
    }
    moved |= read_on(&mut link.http, sending);
    if is_ending && !link.is_busy() && !link.quic.is_closed() {
        link.close(now());
    }
    moved
}

/// Reads on in files of which all that was read is written. True: something has come of it.
fn read_on(http: &mut v3::Connection, sending: &mut Files) -> bool {
    let mut moved = false;
    // A client that takes nothing has little memory, and none of its streams waits for another one's room.
    let waits = sending.iter().filter(|(stream, _)| http.is_sending(**stream));
    let mut waiting: usize = waits.map(|(_, file)| file.piece).sum();
    sending.retain(|stream, file| {
        // Of each file the next piece waits while the last one is written.
        if http.is_sending(*stream) {
            return true;
        }
        if file.left == 0 {
            return false;
        }
        moved = true;
        let piece = file.read(if waiting < WAITING { PIECE } else { FEW });
        waiting += file.piece;
        match piece {
            Ok(piece) => http.send(*stream, [Body::Real(piece)], file.left == 0),
            Err(_) => {
                http.reset(*stream, ErrorCode::INTERNAL_ERROR);
                false
            }
        }
    });
    moved
}

fn answer(
    http: &mut v3::Connection,
    stream: u64,
    request: &RequestHead,
    folder: &Folder,
    more: &[(String, String)],
    sending: &mut Files,
    log: &mut impl FnMut(String),
) {
    let mut fields = Fields::default();
    let is_read = matches!(request.method, Method::Get | Method::Head);
    let found = if is_read { folder.open(&request.target) } else { Ok(None) };
    let status = match &found {
        Ok(Some(_)) => 200,
        Ok(None) if is_read => 404,
        Ok(None) => 405,
        //= RFC 9110 (15.6.4): what is there for all that is known, and may be had later, as when there are no descriptors left.
        Err(_) => 503,
    };
    let found = found.ok().flatten();
    if status == 405 {
        fields.push("allow", "GET, HEAD");
    }
    let (size, media) = found.as_ref().map_or((0, ""), |(file, media)| (file.left, *media));
    if !media.is_empty() {
        fields.push("content-type", media);
    }
    fields.push("content-length", size.to_string());
    fields.push("server", "airloom");
    //= RFC 9110 (6.6.1): an origin server with a clock says when it answered.
    fields.push("date", date_text(today()));
    for (name, value) in more {
        fields.push(name.clone(), value.clone());
    }
    let head = ResponseHead { version: Version::Http3, status, reason: Bytes::new(), fields };
    let ends = request.method == Method::Head || size == 0;
    if http.respond(stream, &head, ends)
        && !ends
        && let Some((file, _)) = found
    {
        sending.insert(stream, file);
    }
    let target = String::from_utf8_lossy(&request.target);
    let line = serde_json::json!({
        "method": request.method.name(), "target": target, "status": status, "octets": if ends { 0 } else { size },
    });
    log(line.to_string());
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use airloom_content::http::v3::{Priority, Read, Streams};

    use super::*;
    use crate::h3::tests::folder_with;

    /// What a client says arrives at this server; nothing comes back.
    struct Wire<'a>(&'a mut v3::Connection, BTreeSet<u64>);

    impl Streams for Wire<'_> {
        fn write(&mut self, stream: u64, body: Body) -> Result<usize, ErrorCode> {
            if self.1.insert(stream) {
                self.0.opened(stream);
            }
            let taken = body.len();
            self.0.feed(stream, body);
            Ok(taken)
        }
        fn finish(&mut self, stream: u64) {
            self.0.ended(stream);
        }
        fn reset(&mut self, _: u64, _: ErrorCode) {}
        fn stop(&mut self, _: u64, _: ErrorCode) {}
        fn read(&mut self, _: u64) -> Read {
            Read::Nothing
        }
    }

    /// Takes what is not an answer, and of each answer its head.
    struct Heads(BTreeSet<u64>);

    impl Streams for Heads {
        fn write(&mut self, stream: u64, body: Body) -> Result<usize, ErrorCode> {
            let is_taken = !stream.is_multiple_of(4) || self.0.insert(stream);
            Ok(if is_taken { body.len() } else { 0 })
        }
        fn finish(&mut self, _: u64) {}
        fn reset(&mut self, _: u64, _: ErrorCode) {}
        fn stop(&mut self, _: u64, _: ErrorCode) {}
        fn read(&mut self, _: u64) -> Read {
            Read::Nothing
        }
    }

    #[test]
    fn little_is_read_of_files_that_no_stream_has_room_for() {
        const SIZE: u64 = 1_000_000;
        let temporary = folder_with("room", &[("file", SIZE as usize)]);
        let folder = Folder::new(&temporary.0).unwrap();
        let mut client = v3::Connection::client(v3::Options::default());
        client.begin([2, 6, 10]);
        let fields = Fields::from_iter([("host", "localhost")]);
        let target = Bytes::from_static(b"/file");
        let head = RequestHead { method: Method::Get, target, version: Version::Http3, fields };
        for stream in 0..u64::from(REQUESTS) {
            assert!(client.request(4 * stream, &head, Priority::default(), true));
        }
        let mut http = v3::Connection::server(v3::Options::default());
        http.begin([3, 7, 11]);
        client.write_to(&mut Wire(&mut http, BTreeSet::new()));
        let mut sending = Files::new();
        while let Some(event) = http.poll_event() {
            if let Event::Request(stream, head) = event {
                answer(&mut http, stream, &head, &folder, &[], &mut sending, &mut |_| ());
            }
        }
        let mut heads = Heads(BTreeSet::new());
        while read_on(&mut http, &mut sending) | http.write_to(&mut heads) {}
        assert_eq!(sending.len(), REQUESTS as usize);
        // Each has something to go on with.
        assert!(sending.values().all(|file| file.left < SIZE));
        let read: u64 = sending.values().map(|file| SIZE - file.left).sum();
        assert!(read <= (WAITING + sending.len() * FEW) as u64, "{read}");
    }
}

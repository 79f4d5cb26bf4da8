//! `airloom h3 get`: files over one connection.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use airloom_content::http::error::Code;
use airloom_content::http::message::{Fields, Method, RequestHead, Version};
use airloom_content::http::v3::{self, Event, Priority};
use airloom_transports::quic::Pacing;
use noq_proto::{Dir, TransportConfig, VarInt};

use super::clock::{Now, now};
use super::endpoint::{Opens, Quic};
use super::link::Link;
use super::qlog::{self, Qlog};
use super::socket::Socket;
use super::tls::{self, Terms, Trust};
use crate::daemon::udp::anywhere;

/// What is fetched, and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Path and query.
    pub target: String,
    /// Where the body goes; nowhere if not given.
    pub file: Option<PathBuf>,
}

/// How it is fetched.
#[derive(Clone, Debug)]
pub struct Fetching {
    /// The server's address.
    pub to: SocketAddr,
    /// The name it shows a certificate for.
    pub host: String,
    /// What it is called in requests: with the port, if that is not 443.
    pub authority: String,
    /// Whom to believe.
    pub trust: Trust,
    /// A server that says nothing for so long is given up.
    pub patience: Duration,
}

/// What came of one of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fetched {
    /// Status code of the answer.
    pub status: u16,
    /// Octets of the body.
    pub octets: u64,
    /// Seconds from the beginning of the connection to the first octets of the answer.
    pub first_s: f64,
    /// Seconds from there to the end of the answer.
    pub whole_s: f64,
}

/// Why it came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A setting, a name or a certificate file, in words.
    #[error("{0}")]
    Usage(String),
    /// A file of ours, or the socket.
    #[error("{0}: {1}")]
    Io(String, io::Error),
    /// The connection or the server, in words.
    #[error("{0}")]
    Peer(String),
}

/// Octets of an answer, and of all answers, that may be on their way: enough for 100 Mbit/s at 300 ms.
const WINDOW: u32 = 4 << 20;

/// One answer on its way.
struct Coming {
    wanted: usize,
    file: Option<(PathBuf, File)>,
    fetched: Fetched,
}

struct Client {
    began: Now,
    /// Those that are not asked for yet, the next one last.
    left: Vec<(usize, Wanted)>,
    coming: BTreeMap<u64, Coming>,
    done: BTreeMap<usize, Fetched>,
    authority: String,
    failed: Option<Failure>,
    last: Now,
}

/// Fetches all of them side by side, as many as the server takes. `stopped` is asked now and then whether to give up.
///
/// # Errors
/// [`Failure`], of the first that fails. What was written until then stays.
pub fn get(
    fetching: &Fetching,
    wanted: Vec<Wanted>,
    stopped: impl FnMut() -> bool,
) -> Result<Vec<Fetched>, Failure> {
    until(run(fetching, wanted, stopped))
}

/// Does it on this thread.
pub(super) fn until<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| Failure::Io("cannot begin".to_owned(), why))?;
    runtime.block_on(work)
}

/// How often it is asked whether to give up.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// A socket for a server at `to`.
pub(super) fn socket(to: SocketAddr) -> Result<Socket, Failure> {
    Socket::bind(anywhere(to), false).map_err(|why| Failure::Io("cannot open a socket".to_owned(), why))
}

/// What a server is told of a client's limits.
pub(super) fn transport(patience: Duration, initial_rtt: Duration) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let patience = u32::try_from(patience.as_millis()).unwrap_or(u32::MAX);
    transport
        .stream_receive_window(WINDOW.into())
        .receive_window(WINDOW.into())
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(8))
        .max_idle_timeout(Some(VarInt::from_u32(patience).into()))
        .initial_rtt(initial_rtt)
        .datagram_receive_buffer_size(None);
    transport
}

/// What connections are written down by, if they are to be.
pub(super) fn qlog(initial_rtt: Duration, pacing: Pacing) -> Result<Option<Qlog>, Failure> {
    Qlog::from_environment(initial_rtt, pacing)
        .map_err(|(folder, why)| Failure::Io(folder.display().to_string(), why))
}

async fn run(
    fetching: &Fetching,
    wanted: Vec<Wanted>,
    mut stopped: impl FnMut() -> bool,
) -> Result<Vec<Fetched>, Failure> {
    let tls =
        tls::client(Terms::HTTP3, &fetching.trust, fetching.to.ip().is_loopback()).map_err(Failure::Usage)?;
    let opens = Opens::new(tls, transport(fetching.patience, qlog::INITIAL_RTT));
    let qlog = qlog(qlog::INITIAL_RTT, Pacing::Always)?;
    let mut quic = Quic::new(socket(fetching.to)?, None, 1, qlog, Link::made(v3::Connection::client));
    quic.connect(opens, fetching.to, &fetching.host).map_err(|why| Failure::Usage(why.to_string()))?;
    let count = wanted.len();
    let mut client = Client {
        began: now(),
        left: wanted.into_iter().enumerate().rev().collect(),
        coming: BTreeMap::new(),
        done: BTreeMap::new(),
        authority: fetching.authority.clone(),
        failed: None,
        last: now(),
    };
    loop {
        quic.turn(|_, link| client.attend(link));
        let over = quic.links.is_empty().then(|| Failure::Peer("the connection ended".to_owned()));
        if let Some(failure) = client.failed.take().or(over) {
            return Err(failure);
        }
        if client.done.len() == count {
            break;
        }
        if stopped() {
            return Err(Failure::Peer("given up".to_owned()));
        }
        tokio::select! {
            there = quic.wait() => there.map_err(|why| Failure::Io("cannot read".to_owned(), why))?,
            () = tokio::time::sleep(LOOK) => {}
        }
        quic.take(|_| true);
        if client.last + fetching.patience < now() {
            return Err(Failure::Peer(format!("{} says nothing", fetching.to)));
        }
    }
    quic.leave(|link| link.close(now())).await;
    Ok(client.done.into_values().collect())
}

impl Client {
    /// Asks for what is left and takes what has come. True: something has come of it.
    fn attend(&mut self, link: &mut Link) -> bool {
        let mut moved = false;
        while let Some(event) = link.poll_event(now()) {
            moved = true;
            self.last = now();
            if let Err(failure) = self.happened(event) {
                self.failed.get_or_insert(failure);
                link.close(now());
            }
        }
        if let Some(why) = &link.lost {
            self.failed.get_or_insert_with(|| Failure::Peer(why.clone()));
            return moved;
        }
        let Link { quic, http, .. } = link;
        while http.is_begun() && !self.left.is_empty() && !http.is_closing() {
            let Some(stream) = quic.streams().open(Dir::Bi) else { break };
            let Some((wanted, next)) = self.left.pop() else { break };
            let file = match next
                .file
                .map(|path| File::create(&path).map(|file| (path.clone(), file)).map_err(|e| (path, e)))
            {
                None => None,
                Some(Ok(file)) => Some(file),
                Some(Err((path, why))) => {
                    self.failed.get_or_insert(Failure::Io(path.display().to_string(), why));
                    return moved;
                }
            };
            let fields =
                Fields::from_iter([("host", self.authority.clone()), ("user-agent", "airloom".to_owned())]);
            let head = RequestHead {
                method: Method::Get,
                target: next.target.into(),
                version: Version::Http3,
                fields,
            };
            http.request(stream.into(), &head, Priority::default(), true);
            let fetched = Fetched { status: 0, octets: 0, first_s: 0.0, whole_s: 0.0 };
            self.coming.insert(stream.into(), Coming { wanted, file, fetched });
            moved = true;
        }
        moved
    }

    fn happened(&mut self, event: Event) -> Result<(), Failure> {
        let since = self.began.elapsed().as_secs_f64();
        match event {
            Event::Response(stream, head) => {
                if let Some(coming) = self.coming.get_mut(&stream) {
                    coming.fetched.status = head.status;
                    coming.fetched.first_s = since;
                }
            }
            Event::Data(stream, body) => {
                if let Some(coming) = self.coming.get_mut(&stream) {
                    coming.fetched.octets += body.len() as u64;
                    if let Some((path, file)) = &mut coming.file {
                        let written = file.write_all(&body.to_bytes());
                        written.map_err(|why| Failure::Io(path.display().to_string(), why))?;
                    }
                }
            }
            Event::End(stream, _) => {
                if let Some(mut coming) = self.coming.remove(&stream) {
                    coming.fetched.whole_s = since - coming.fetched.first_s;
                    self.done.insert(coming.wanted, coming.fetched);
                }
            }
            Event::Reset(stream, code) if self.coming.contains_key(&stream) => {
                return Err(Failure::Peer(format!("the server gave up: {}", code.name())));
            }
            Event::GoAway(_) if !self.left.is_empty() => {
                return Err(Failure::Peer("the server takes no more requests".to_owned()));
            }
            _ => {}
        }
        Ok(())
    }
}

//! Files by HTTP/0.9, over one connection or several, one after the other.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use airloom_transports::quic::{Pacing, cubic};
use bytes::Bytes;
use noq_proto::{Connection, Dir, Event, ReadError, StreamEvent, StreamId, VarInt};

use super::super::client::{Failure, LOOK, Wanted, qlog, socket, transport, until};
use super::super::clock::{Now, now};
use super::super::endpoint::{Kept, Opens, Quic, Talk};
use super::super::tls::{self, Trust};

/// Which files are fetched, and how.
#[derive(Clone, Debug)]
pub struct Visits {
    /// The server's address.
    pub to: SocketAddr,
    /// The name it shows a certificate for.
    pub host: String,
    /// Whom to believe.
    pub trust: Trust,
    /// The files of each connection; sessions are resumed where the server lets us.
    pub visits: Vec<Vec<Wanted>>,
    /// ChaCha20 is all that is offered.
    pub chacha20: bool,
    /// Requests go out before the handshake is over, where a session is resumed (0-RTT).
    pub early: bool,
    /// Keys are changed once, after some of the answers have come.
    pub new_keys: bool,
    /// A server that says nothing for so long is given up.
    pub patience: Duration,
}

/// What a round trip is taken for until one was measured. RFC 9002 (6.2.2) has 333 ms; with losses of a third a handshake takes longer
/// by that than servers wait (quic-go's: 10 s, and it begins with 100 ms itself).
const INITIAL_RTT: Duration = Duration::from_millis(100);
/// Octets of answers after which keys are changed: the handshake is confirmed by then, and there is more to come.
const OLD_KEYS: u64 = 1 << 18;
/// Octets taken of a stream at once.
const PIECE: usize = 65_536;

/// Fetches all of it. `stopped` is asked now and then whether to give up.
///
/// # Errors
/// [`Failure`], of the first that fails. What was written until then stays.
pub fn get(visits: Visits, stopped: impl FnMut() -> bool) -> Result<(), Failure> {
    until(run(visits, stopped))
}

async fn run(visits: Visits, mut stopped: impl FnMut() -> bool) -> Result<(), Failure> {
    let terms = super::terms(visits.chacha20, visits.early);
    // The same for all of them: it has the tickets.
    let tls = tls::client(terms, &visits.trust, visits.to.ip().is_loopback()).map_err(Failure::Usage)?;
    let mut transport = transport(visits.patience, INITIAL_RTT);
    // What is sent early has left before a round trip is measured, or it is not early.
    transport.congestion_controller_factory(cubic(Pacing::Measured, None));
    let opens = Opens::new(tls, transport);
    for wanted in &visits.visits {
        visit(&visits, opens.clone(), wanted, &mut stopped).await?;
    }
    Ok(())
}

async fn visit(
    visits: &Visits,
    opens: Opens,
    wanted: &[Wanted],
    stopped: &mut impl FnMut() -> bool,
) -> Result<(), Failure> {
    let (new_keys, early) = (visits.new_keys, visits.early);
    let left: Vec<Wanted> = wanted.iter().rev().cloned().collect();
    let made = Box::new(move |quic| Fetching {
        quic,
        left: left.clone(),
        coming: BTreeMap::new(),
        octets: 0,
        new_keys,
        early,
        failed: None,
        last: now(),
    });
    let qlog = qlog(INITIAL_RTT, Pacing::Measured)?;
    let mut quic = Quic::new(socket(visits.to)?, None, 1, qlog, made);
    quic.connect(opens, visits.to, &visits.host).map_err(|why| Failure::Usage(why.to_string()))?;
    let mut failed = None;
    loop {
        quic.turn(|_, link| {
            failed = failed.take().or_else(|| link.failed.take());
            false
        });
        if let Some(failure) = failed {
            return Err(failure);
        }
        let Some(Kept { talk: link, .. }) = quic.links.values_mut().next() else {
            return Err(Failure::Peer("the connection ended".to_owned()));
        };
        if link.left.is_empty() && link.coming.is_empty() {
            quic.leave(|link| link.quic.close(now(), VarInt::from_u32(0), Bytes::new())).await;
            return Ok(());
        }
        if link.last + visits.patience < now() {
            return Err(Failure::Peer(format!("{} says nothing", visits.to)));
        }
        if stopped() {
            return Err(Failure::Peer("given up".to_owned()));
        }
        tokio::select! {
            there = quic.wait() => there.map_err(|why| Failure::Io("cannot read".to_owned(), why))?,
            () = tokio::time::sleep(LOOK) => {}
        }
        quic.take(|_| true);
    }
}

/// An answer on its way.
struct Coming {
    wanted: Wanted,
    file: Option<File>,
}

/// A connection to the server.
struct Fetching {
    quic: Connection,
    /// Those that are not asked for yet, the next one last.
    left: Vec<Wanted>,
    coming: BTreeMap<StreamId, Coming>,
    octets: u64,
    new_keys: bool,
    early: bool,
    failed: Option<Failure>,
    /// When it said something.
    last: Now,
}

impl Talk for Fetching {
    fn quic(&mut self) -> &mut Connection {
        &mut self.quic
    }

    fn happened(&mut self, event: Event) {
        match event {
            Event::Connected if self.early && !self.quic.accepted_0rtt() => {
                //= RFC 9001 (4.6.2): what was sent early has to be sent again, by streams that begin again.
                let again = std::mem::take(&mut self.coming).into_values().map(|coming| coming.wanted);
                self.left.extend(again);
            }
            Event::ConnectionLost { reason } => self.fail(Failure::Peer(reason.to_string())),
            Event::Stream(StreamEvent::Readable { id }) => {
                self.last = now();
                if let Err(failure) = self.read(id) {
                    self.fail(failure);
                }
            }
            _ => {}
        }
    }

    fn write(&mut self) -> bool {
        let mut moved = false;
        if self.new_keys && self.octets > OLD_KEYS {
            self.new_keys = false;
            self.quic.force_key_update();
        }
        while let Some(wanted) = self.left.pop() {
            let Some(id) = self.quic.streams().open(Dir::Bi) else {
                self.left.push(wanted);
                break;
            };
            let file = wanted.file.as_ref().map(File::create).transpose();
            let file = match file {
                Ok(file) => file,
                Err(why) => {
                    self.fail(Failure::Io(wanted.file.unwrap_or_default().display().to_string(), why));
                    break;
                }
            };
            let mut stream = self.quic.send_stream(id);
            let request = format!("GET {}\r\n", wanted.target);
            // A request is shorter than what may be sent at the beginning of a stream.
            match stream.write(request.as_bytes()) {
                Ok(taken) if taken == request.len() => {
                    let _ = stream.finish();
                }
                _ => self.fail(Failure::Peer("the server takes no whole request".to_owned())),
            }
            self.coming.insert(id, Coming { wanted, file });
            moved = true;
        }
        moved
    }
}

impl Fetching {
    fn fail(&mut self, failure: Failure) {
        self.failed.get_or_insert(failure);
    }

    /// Takes what has come of an answer.
    fn read(&mut self, id: StreamId) -> Result<(), Failure> {
        let Some(coming) = self.coming.get_mut(&id) else { return Ok(()) };
        let mut stream = self.quic.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return Ok(()) };
        let over = loop {
            match chunks.next(PIECE) {
                Ok(Some(chunk)) => {
                    self.octets += chunk.bytes.len() as u64;
                    if let Some(file) = &mut coming.file {
                        let path = || coming.wanted.file.clone().unwrap_or_default().display().to_string();
                        file.write_all(&chunk.bytes).map_err(|why| Failure::Io(path(), why))?;
                    }
                }
                Ok(None) => break true,
                Err(ReadError::Blocked) => break false,
                Err(ReadError::Reset(_)) => {
                    return Err(Failure::Peer(format!("the server has no {}", coming.wanted.target)));
                }
            }
        };
        // Windows that open again leave with the next datagram.
        let _ = chunks.finalize();
        if over {
            self.coming.remove(&id);
        }
        Ok(())
    }
}

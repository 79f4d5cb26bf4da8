//! The files of a folder, by HTTP/0.9.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use airloom_content::http::v09::{Request, Said};
use airloom_transports::quic::{Pacing, cubic};
use bytes::Bytes;
use noq_proto::{
    Connection, Dir, Event, ReadError, ServerConfig, StreamEvent, StreamId, TransportConfig, VarInt,
    WriteError,
};

use super::super::clock::now;
use super::super::endpoint::{Quic, Talk};
use super::super::files::{self, Folder, Sending};
use super::super::qlog::{INITIAL_RTT, Qlog};
use super::super::socket::Socket;
use super::super::tls;
use super::NO;
use crate::daemon::listening::{self, CannotListen};
use crate::daemon::stop::Stop;
use crate::daemon::streams::Clients;

/// What the server is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where clients come to; any address of IPv6 means any of IPv4 as well.
    pub listen: SocketAddr,
    /// What is served.
    pub folder: PathBuf,
    /// Certificates and key (PEM).
    pub certificate: (PathBuf, PathBuf),
    /// Who may come.
    pub clients: Clients,
    /// Every client has to prove its address (Retry).
    pub retry: bool,
    /// ChaCha20 is all that is taken.
    pub chacha20: bool,
    /// Data before the handshake is over is taken (0-RTT).
    pub early: bool,
}

/// Connections that may be open at once.
const CONNECTIONS: usize = 256;
/// Requests of a connection that may be under way.
const REQUESTS: u32 = 100;
/// Octets of a request that are read at a time.
const PIECE: usize = 4096;
/// A connection on which nothing happens for so long is forgotten.
const IDLE_MS: u32 = 100_000;
/// Octets of a connection that are kept until they are acknowledged.
const UNACKNOWLEDGED: u64 = 4 << 20;

/// Serves until told to stop (SIGINT, SIGTERM). `ready` is told where it listens.
///
/// # Errors
/// [`CannotListen`] if the address is taken or not ours, or a file is not what it should be.
pub fn serve(options: &Options, ready: impl FnOnce(SocketAddr)) -> Result<(), CannotListen> {
    listening::run(run(options, ready))
}

async fn run(options: &Options, ready: impl FnOnce(SocketAddr)) -> Result<(), CannotListen> {
    let cannot = listening::cannot(options.listen);
    let folder = Arc::new(Folder::new(&options.folder)?);
    let (chain, key) = &options.certificate;
    let tls = tls::server(super::terms(options.chacha20, options.early), Some((chain, key)));
    let mut config = ServerConfig::with_crypto(Arc::new(tls.map_err(io::Error::other)?));
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(REQUESTS.into())
        .max_concurrent_uni_streams(VarInt::from_u32(0))
        .send_window(UNACKNOWLEDGED)
        .congestion_controller_factory(cubic(Pacing::Measured, None))
        .max_idle_timeout(Some(VarInt::from_u32(IDLE_MS).into()))
        .datagram_receive_buffer_size(None);
    config.transport_config(Arc::new(transport));
    let qlog = Qlog::from_environment(INITIAL_RTT, Pacing::Measured).map_err(|(_, why)| why)?;
    let socket = Socket::bind(options.listen, true).map_err(&cannot)?;
    let made = Box::new(move |quic| Serving {
        quic,
        folder: folder.clone(),
        asking: BTreeMap::new(),
        sending: BTreeMap::new(),
    });
    let mut quic = Quic::new(socket, Some(config), CONNECTIONS, qlog, made);
    if options.retry {
        quic.unproven = 0;
    }
    let mut stop = Stop::listen()?;
    ready(quic.local().map_err(&cannot)?);
    loop {
        quic.turn(|_, _| false);
        tokio::select! {
            biased;
            () = stop.asked() => break,
            there = quic.wait() => there.map_err(&cannot)?,
        }
        quic.take(|from| options.clients.allows(from.ip().to_canonical()));
    }
    quic.leave(|link| link.quic.close(now(), VarInt::from_u32(0), Bytes::new())).await;
    Ok(())
}

/// A connection of a client.
struct Serving {
    quic: Connection,
    folder: Arc<Folder>,
    /// What came of requests that are not whole.
    asking: BTreeMap<StreamId, Request>,
    /// Files on their way, with what of them is to be written next.
    sending: BTreeMap<StreamId, (Sending, Bytes)>,
}

impl Talk for Serving {
    fn quic(&mut self) -> &mut Connection {
        &mut self.quic
    }

    fn happened(&mut self, event: Event) {
        match event {
            Event::Stream(StreamEvent::Opened { dir }) => {
                while let Some(id) = self.quic.streams().accept(dir) {
                    if dir == Dir::Bi {
                        self.asking.insert(id, Request::default());
                        self.read(id);
                    }
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.read(id),
            Event::Stream(StreamEvent::Stopped { id, .. }) => {
                // What is stopped is not sent on; a stream that is over needs no reset.
                self.sending.remove(&id);
                let _ = self.quic.send_stream(id).reset(NO);
            }
            _ => {}
        }
    }

    fn write(&mut self) -> bool {
        let mut moved = false;
        let quic = &mut self.quic;
        self.sending.retain(|id, (file, piece)| {
            let mut stream = quic.send_stream(*id);
            loop {
                if piece.is_empty() && file.left > 0 {
                    match file.read(files::PIECE) {
                        Ok(next) => *piece = next,
                        Err(_) => {
                            let _ = stream.reset(NO);
                            return false;
                        }
                    }
                }
                if piece.is_empty() {
                    let _ = stream.finish();
                    moved = true;
                    return false;
                }
                let mut left = [std::mem::take(piece)];
                let written = stream.write_chunks(&mut &mut left[..]);
                [*piece] = left;
                match written {
                    Ok(_) => moved = true,
                    Err(WriteError::Blocked) => return true,
                    Err(_) => return false,
                }
            }
        });
        moved
    }
}

impl Serving {
    /// Reads what there is of a request, and answers one that is whole.
    fn read(&mut self, id: StreamId) {
        let mut stream = self.quic.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        let mut is_over = false;
        // A request that was answered has more to read: the end of its stream.
        let mut none = Request::default();
        let request = self.asking.get_mut(&id).unwrap_or(&mut none);
        let mut is_full = false;
        while !is_over && !is_full {
            match chunks.next(PIECE) {
                Ok(Some(chunk)) => is_full = request.feed(&chunk.bytes),
                Ok(None) => is_over = true,
                Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(_)) => {
                    self.asking.remove(&id);
                    return;
                }
            }
        }
        // Windows that open again leave with the next datagram.
        let _ = chunks.finalize();
        match request.said(is_over) {
            Said::More => return,
            Said::TooLong => {
                let _ = stream.stop(NO);
            }
            Said::Get(_) | Said::Other => {}
        }
        let Some(request) = self.asking.remove(&id) else { return };
        let found = match request.said(is_over) {
            Said::Get(target) => self.folder.open(target).ok().flatten(),
            _ => None,
        };
        match found {
            Some((file, _)) => {
                self.sending.insert(id, (file, Bytes::new()));
            }
            None => {
                let _ = self.quic.send_stream(id).reset(NO);
            }
        }
    }
}

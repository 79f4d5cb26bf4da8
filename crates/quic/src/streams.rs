//! Streams of a connection as its host sees them.

use airloom_base::lookup::Table;
use airloom_base::service::WriteError;
use airloom_base::{Body, Filler, StreamEvent, StreamKind, TransportEvent};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use crate::library::{
    self, Chunks, Connection, Dir, ReadError, ReadableError, Side, StreamId, VarInt, WriteError as Refused,
};

/// Octets that are made of filler at a time.
const PIECE: u32 = 16 << 10;

/// The library's name of a stream.
pub(crate) fn id(stream: u32) -> StreamId {
    let side = if stream & 1 == 0 { Side::Client } else { Side::Server };
    let dir = if stream & 2 == 0 { Dir::Bi } else { Dir::Uni };
    StreamId::new(side, dir, u64::from(stream >> 2))
}

/// Our number of a stream; streams beyond four billion have none.
pub(crate) fn number(id: StreamId) -> Option<u32> {
    u32::try_from(VarInt::from(id).into_inner()).ok()
}

/// A code of an application as the library has it; what is too large for the wire is the largest.
pub(crate) fn code(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

fn dir(kind: StreamKind) -> Dir {
    match kind {
        StreamKind::Bi => Dir::Bi,
        StreamKind::Uni => Dir::Uni,
    }
}

/// The piece of filler that the connections of a host have made last: what one asks for many may.
#[derive(Clone, Default)]
pub(crate) struct Recent(Arc<Mutex<Option<(Filler, Bytes)>>>);

impl Recent {
    fn piece(&self, filler: Filler) -> Bytes {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((made, octets)) = &*last
            && *made == filler
        {
            return octets.clone();
        }
        let octets = Body::Filler(filler).to_bytes();
        *last = Some((filler, octets.clone()));
        octets
    }
}

/// What comes next on a stream: octets, or its end (`None`).
type Next = Result<Option<Bytes>, ReadError>;

fn next(chunks: &mut Chunks) -> Next {
    chunks.next(usize::MAX).map(|chunk| chunk.map(|chunk| chunk.bytes))
}

/// Arrived octets that were told and not read.
struct Held {
    octets: Bytes,
    /// What is behind them, if that was looked at.
    behind: Option<Next>,
}

/// What is known of the streams beside what the library knows.
#[derive(Default)]
pub(crate) struct Streams {
    recent: Recent,
    /// Its application knows nothing of streams: what it calls stream 0 are two.
    pub(crate) plain: Option<Plain>,
    pub(crate) events: VecDeque<TransportEvent>,
    /// By stream.
    held: Table<u32, Held>,
    /// The filler that was made last and not taken.
    made: Option<(Filler, Bytes)>,
    /// Kinds of streams that could not be opened.
    wanted: [bool; 2],
    /// Those that were written to and whose end the peer has not acknowledged; true: it was written.
    under_way: BTreeMap<StreamId, bool>,
    /// Something was written since there was last nothing that could be sent.
    pub(crate) has_unsent: bool,
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

/// The two streams of an application that knows of none.
#[derive(Default)]
pub(crate) struct Plain {
    pub(crate) out: Option<StreamId>,
    pub(crate) into: Option<StreamId>,
    /// Our side is to end as soon as there is a stream.
    pub(crate) wants_finish: bool,
    /// All that was sent has arrived, with its end; all that the peer sent was read.
    pub(crate) is_sent: bool,
    pub(crate) is_read: bool,
}

impl Streams {
    /// Those of an application that knows of streams, or of none.
    pub(crate) fn new(is_plain: bool, recent: Recent) -> Streams {
        Streams { recent, plain: is_plain.then(Plain::default), ..Streams::default() }
    }

    /// The stream that is written to by this name.
    fn outgoing(&self, stream: u32) -> Option<StreamId> {
        match &self.plain {
            Some(plain) if stream == 0 => plain.out,
            Some(_) => None,
            None => Some(id(stream)),
        }
    }

    fn incoming(&self, stream: u32) -> Option<StreamId> {
        match &self.plain {
            Some(plain) if stream == 0 => plain.into,
            Some(_) => None,
            None => Some(id(stream)),
        }
    }

    /// The name by which the application knows what it reads (or writes) by this stream.
    fn name(&self, stream: StreamId, reads: bool) -> Option<u32> {
        match &self.plain {
            Some(plain) => {
                let own = if reads { plain.into } else { plain.out };
                (own == Some(stream)).then_some(0)
            }
            None => number(stream),
        }
    }

    /// Octets told and not read.
    pub(crate) fn has_unread(&self) -> bool {
        !self.held.is_empty()
    }

    /// Of a stream that was written to and is not acknowledged to its end: was that written? `None`: it is no such stream.
    pub(crate) fn is_ended(&self, stream: u32) -> Option<bool> {
        self.under_way.get(&self.outgoing(stream)?).copied()
    }

    /// They are as if they had never been.
    pub(crate) fn forget_early(&mut self) {
        self.under_way.clear();
        self.events.push_back(TransportEvent::Stream(0, StreamEvent::EarlyRefused));
    }

    pub(crate) fn open(&mut self, library: &mut Connection, kind: StreamKind) -> Option<u32> {
        if self.plain.is_some() {
            return None;
        }
        let opened = library.streams().open(dir(kind)).and_then(number);
        self.wanted[dir(kind) as usize] |= opened.is_none();
        opened
    }

    /// The connection is established: an application that knows nothing of streams gets its own.
    pub(crate) fn begin(&mut self, library: &mut Connection) {
        let Some(plain) = &mut self.plain else { return };
        if plain.out.is_none() {
            plain.out = library.streams().open(Dir::Uni);
        }
        if plain.wants_finish
            && let Some(out) = plain.out
        {
            plain.wants_finish = false;
            // A stream that is new is open.
            let _ = library.send_stream(out).finish();
        }
    }

    /// What the library has to tell of streams.
    pub(crate) fn handle(&mut self, library: &mut Connection, event: library::StreamEvent) {
        use library::StreamEvent as Theirs;
        match event {
            Theirs::Opened { dir } => {
                while let Some(opened) = library.streams().accept(dir) {
                    self.accept(library, opened);
                }
            }
            Theirs::Readable { id } => self.pull(library, id),
            Theirs::Writable { id } => {
                if let Some(name) = self.name(id, false) {
                    self.events.push_back(TransportEvent::Writable(name));
                }
            }
            Theirs::Finished { id } => {
                self.under_way.remove(&id);
                if let Some(plain) = &mut self.plain
                    && plain.out == Some(id)
                {
                    plain.is_sent = true;
                }
            }
            Theirs::Stopped { id, error_code } => {
                self.under_way.remove(&id);
                if let Some(name) = self.name(id, false) {
                    let event = StreamEvent::Stopped(error_code.into_inner());
                    self.events.push_back(TransportEvent::Stream(name, event));
                }
            }
            Theirs::Available { dir } => {
                if self.plain.as_ref().is_some_and(|plain| plain.out.is_none()) {
                    self.begin(library);
                    self.events.push_back(TransportEvent::Writable(0));
                }
                if std::mem::take(&mut self.wanted[dir as usize]) {
                    let kind = if dir == Dir::Bi { StreamKind::Bi } else { StreamKind::Uni };
                    self.events.push_back(TransportEvent::Stream(0, StreamEvent::More(kind)));
                }
            }
        }
    }

    fn accept(&mut self, library: &mut Connection, opened: StreamId) {
        match &mut self.plain {
            Some(plain) if plain.into.is_none() && opened.dir() == Dir::Uni => plain.into = Some(opened),
            Some(_) => {
                // There is nobody to read it. A stream that is new can be stopped.
                let _ = library.recv_stream(opened).stop(VarInt::from_u32(0));
                return;
            }
            None => {
                let Some(number) = number(opened) else { return };
                self.events.push_back(TransportEvent::Stream(number, StreamEvent::Opened));
            }
        }
        self.pull(library, opened);
    }

    /// Takes the next piece that has arrived, if the last one was read, and tells of it.
    fn pull(&mut self, library: &mut Connection, stream: StreamId) {
        let Some(name) = self.name(stream, true) else { return };
        if let Some(held) = self.held.get_mut(&name) {
            // It may be more by now.
            held.behind.take_if(|behind| matches!(behind, Err(ReadError::Blocked)));
            return;
        }
        let mut from = library.recv_stream(stream);
        let mut chunks = match from.read(true) {
            Ok(chunks) => chunks,
            Err(ReadableError::ClosedStream | ReadableError::IllegalOrderedRead) => return,
        };
        let first = next(&mut chunks);
        // Nothing, as a rule: then the stream need not be asked again when these octets are read.
        let behind = matches!(first, Ok(Some(_))).then(|| next(&mut chunks));
        // What is to be sent for it is sent when the connection is drained.
        let _ = chunks.finalize();
        self.came(name, first, behind);
    }

    /// Keeps and tells what comes next on a stream.
    fn came(&mut self, name: u32, next: Next, behind: Option<Next>) {
        let event = match next {
            Ok(Some(octets)) => {
                let len = u32::try_from(octets.len()).unwrap_or(u32::MAX);
                self.held.insert(name, Held { octets, behind });
                TransportEvent::Readable(name, len)
            }
            Ok(None) => {
                if let Some(plain) = &mut self.plain {
                    plain.is_read = true;
                }
                TransportEvent::Finished(name)
            }
            Err(ReadError::Reset(code)) => {
                TransportEvent::Stream(name, StreamEvent::Reset(code.into_inner()))
            }
            Err(ReadError::Blocked) => return,
        };
        self.events.push_back(event);
    }

    pub(crate) fn read(&mut self, library: &mut Connection, stream: u32, max: usize) -> Option<Body> {
        let held = self.held.get_mut(&stream).filter(|_| max > 0)?;
        let part = held.octets.split_to(max.min(held.octets.len()));
        self.received += part.len() as u64;
        if held.octets.is_empty() {
            let behind = self.held.remove(&stream).and_then(|held| held.behind);
            // Whoever reads on has not waited for the event.
            if matches!(self.events.back(), Some(TransportEvent::Readable(of, _)) if *of == stream) {
                self.events.pop_back();
            }
            if let Some(next) = behind {
                self.came(stream, next, None);
            } else if let Some(incoming) = self.incoming(stream) {
                self.pull(library, incoming);
            }
        }
        Some(Body::Real(part))
    }

    /// The first octets of a body. Filler is made once, however often it is offered.
    fn piece(&mut self, body: &Body) -> Bytes {
        match body {
            Body::Real(octets) => octets.clone(),
            Body::Filler(filler) => {
                let is_it = |made: &Filler| (made.source, made.offset) == (filler.source, filler.offset);
                if let Some((made, octets)) = &self.made
                    && is_it(made)
                {
                    return octets.slice(..octets.len().min(filler.len as usize));
                }
                self.recent.piece(Filler { len: filler.len.min(PIECE), ..*filler })
            }
        }
    }

    pub(crate) fn write(
        &mut self,
        library: &mut Connection,
        stream: u32,
        mut body: Body,
    ) -> Result<usize, WriteError> {
        let whole = body.len();
        let out = match self.outgoing(stream) {
            Some(out) => out,
            // It comes with the connection.
            None if self.plain.is_some() && stream == 0 => return WriteError::or_taken(0, whole),
            None => return Err(WriteError::Closed),
        };
        let mut taken = 0;
        while !body.is_empty() {
            let piece = self.piece(&body);
            match library::write(&mut library.send_stream(out), piece.clone()) {
                Ok(octets) => {
                    taken += octets;
                    drop(body.split_to(octets));
                    self.made = match &body {
                        Body::Filler(rest) if octets < piece.len() => Some((*rest, piece.slice(octets..))),
                        _ => None,
                    };
                }
                Err(Refused::Blocked) => {
                    if let Body::Filler(filler) = &body {
                        self.made = Some((*filler, piece));
                    }
                    break;
                }
                Err(Refused::Stopped(why)) if taken == 0 => {
                    return Err(WriteError::Stopped(why.into_inner()));
                }
                Err(Refused::ClosedStream) if taken == 0 => return Err(WriteError::Closed),
                Err(_) => break,
            }
        }
        if taken > 0 {
            self.under_way.entry(out).or_insert(false);
            self.has_unsent = true;
        }
        self.sent += taken as u64;
        WriteError::or_taken(taken, whole)
    }

    pub(crate) fn finish(&mut self, library: &mut Connection, stream: u32) {
        match (self.outgoing(stream), &mut self.plain) {
            (Some(out), _) => {
                // One that the peer stopped, or that is over, needs no end.
                let _ = library.send_stream(out).finish();
                if let Some(is_ended) = self.under_way.get_mut(&out) {
                    *is_ended = true;
                }
            }
            (None, Some(plain)) if stream == 0 => plain.wants_finish = true,
            (None, _) => {}
        }
    }

    pub(crate) fn reset(&mut self, library: &mut Connection, stream: u32, why: u64) {
        if let Some(out) = self.outgoing(stream) {
            self.under_way.remove(&out);
            // One that is over cannot be reset, and need not be.
            let _ = library.send_stream(out).reset(code(why));
        }
    }

    pub(crate) fn stop(&mut self, library: &mut Connection, stream: u32, why: u64) {
        if let Some(incoming) = self.incoming(stream) {
            self.held.remove(&stream);
            // As above.
            let _ = library.recv_stream(incoming).stop(code(why));
        }
    }

    pub(crate) fn set_priority(&mut self, library: &mut Connection, stream: u32, priority: i32) {
        if let Some(out) = self.outgoing(stream) {
            // As above.
            let _ = library.send_stream(out).set_priority(priority);
        }
    }
}

//! One connection: QUIC below, HTTP/3 on it.

use std::collections::BTreeSet;

use airloom_base::Body;
use airloom_content::http::v3::{self, Error, ErrorCode, Event, Priority, Read, Streams};
use noq_proto::{Connection, Dir, ReadError, StreamEvent, StreamId, VarInt, WriteError};

use super::clock::Now;
use super::endpoint::{Made, Talk, options};
use super::qlog::Log;

/// Streams that each end has open as long as there is the connection.
//= RFC 9114 (6.2.1), RFC 9204 (4.2): for control, and for what either end has to say of the tables.
const OWN: usize = 3;

/// Most octets taken of a stream at once.
const PIECE: usize = 65_536;

/// One connection.
pub(super) struct Link {
    pub(super) quic: Connection,
    pub(super) http: v3::Connection,
    /// Why it was lost, in words.
    pub(super) lost: Option<String>,
    /// Streams that have something to read while they wait for entries of the table.
    unread: BTreeSet<u64>,
}

fn varint(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

/// A stream by its number.
fn stream(number: u64) -> StreamId {
    StreamId::from(varint(number))
}

/// The streams of the library.
struct Below<'a>(&'a mut Connection);

impl Streams for Below<'_> {
    fn write(&mut self, number: u64, body: Body) -> Result<usize, ErrorCode> {
        let mut left = [body.to_bytes()];
        let mut send = self.0.send_stream(stream(number));
        // The library tells of room again only after it was asked for some and had none.
        while !left[0].is_empty() {
            match send.write_chunks(&mut &mut left[..]) {
                Ok(_) => {}
                Err(WriteError::Blocked) => break,
                Err(WriteError::Stopped(code)) => return Err(ErrorCode(code.into())),
                Err(WriteError::ClosedStream) => return Err(ErrorCode::NO_ERROR),
            }
        }
        Ok(body.len() - left[0].len())
    }
    // Streams that are over by now need none of these.
    fn finish(&mut self, number: u64) {
        let _ = self.0.send_stream(stream(number)).finish();
    }
    fn reset(&mut self, number: u64, code: ErrorCode) {
        let _ = self.0.send_stream(stream(number)).reset(varint(code.0));
    }
    fn stop(&mut self, number: u64, code: ErrorCode) {
        let _ = self.0.recv_stream(stream(number)).stop(varint(code.0));
    }
    fn read(&mut self, number: u64) -> Read {
        let mut receive = self.0.recv_stream(stream(number));
        let Ok(mut chunks) = receive.read(true) else { return Read::Nothing };
        let read = match chunks.next(PIECE) {
            Ok(Some(chunk)) => Read::Octets(Body::Real(chunk.bytes)),
            Ok(None) => Read::Ended,
            Err(ReadError::Blocked) => Read::Nothing,
            Err(ReadError::Reset(code)) => Read::Reset(ErrorCode(code.into())),
        };
        // Windows that open again leave with the next datagram.
        let _ = chunks.finalize();
        read
    }
}

impl Link {
    /// HTTP/3 on new connections, at this end.
    pub(super) fn made(end: fn(v3::Options) -> v3::Connection) -> Made<Link> {
        Box::new(move |quic| Link { quic, http: end(options()), lost: None, unread: BTreeSet::new() })
    }

    /// HTTP/3 begins with three streams of our own.
    fn begin(&mut self) {
        if self.http.is_begun() || self.quic.is_closed() {
            return;
        }
        let mut streams = self.quic.streams();
        let own: Vec<u64> = (0..OWN).filter_map(|_| streams.open(Dir::Uni)).map(u64::from).collect();
        //= RFC 9114 (6.2): each side lets the other open three streams of one way at least.
        match <[u64; OWN]>::try_from(own) {
            Ok(own) => self.http.begin(own),
            Err(_) => self.lost = Some("it lets us open fewer than three streams".to_owned()),
        }
    }

    fn on_stream(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Opened { dir } => {
                while let Some(id) = self.quic.streams().accept(dir) {
                    self.http.opened(id.into());
                    self.read(id.into());
                }
            }
            StreamEvent::Readable { id } => self.read(id.into()),
            StreamEvent::Writable { id } => {
                self.http.writable(id.into());
            }
            StreamEvent::Stopped { id, error_code } => {
                self.http.was_stopped(id.into(), ErrorCode(error_code.into()));
            }
            // Which streams have all arrived is asked for when it matters.
            StreamEvent::Finished { .. } | StreamEvent::Available { .. } => {}
        }
    }

    /// Reads what there is on a stream, unless that is to wait.
    fn read(&mut self, number: u64) {
        let Link { quic, http, .. } = self;
        if !http.read_from(&mut Below(quic), number) {
            self.unread.insert(number);
        }
    }

    /// The next thing that happened in HTTP/3. A rule of the connection that was broken closes it.
    pub(super) fn poll_event(&mut self, now: Now) -> Option<Event> {
        let event = self.http.poll_event()?;
        match &event {
            Event::Failed(error) => {
                let (code, why) = match error {
                    Error::Connection(code, why) => (*code, *why),
                    Error::Stream(_, code) => (*code, ""),
                };
                self.quic.close(now, varint(code.0), why.as_bytes().into());
                self.lost = Some(error.to_string());
            }
            Event::Request(number, _) => self.rank(*number, self.http.priority(*number).unwrap_or_default()),
            Event::Priority(number, priority) => self.rank(*number, *priority),
            Event::Unblocked(number) if self.unread.remove(number) => self.read(*number),
            _ => {}
        }
        Some(event)
    }

    /// An answer has its place in QUIC, too, which holds megabytes that are not sent yet.
    fn rank(&mut self, number: u64, priority: Priority) {
        // A stream that is over by now needs none.
        let _ = self.quic.send_stream(stream(number)).set_priority(priority.rank(number));
    }

    /// Is there a request, or a part of an answer that the client is not known to have?
    //= RFC 9000 (10.2): a connection that is closed sends nothing again.
    pub(super) fn is_busy(&mut self) -> bool {
        let is_begun = self.http.is_begun();
        self.http.open_streams() > 0 || (is_begun && self.quic.streams().send_streams() > OWN)
    }

    /// Ends it, with nothing wrong.
    pub(super) fn close(&mut self, now: Now) {
        self.quic.close(now, varint(ErrorCode::NO_ERROR.0), bytes::Bytes::new());
    }
}

impl Talk for Link {
    fn quic(&mut self) -> &mut Connection {
        &mut self.quic
    }

    fn happened(&mut self, event: noq_proto::Event) {
        match event {
            noq_proto::Event::Connected => self.begin(),
            noq_proto::Event::ConnectionLost { reason } => self.lost = Some(reason.to_string()),
            noq_proto::Event::Stream(event) => {
                self.begin();
                self.on_stream(event);
            }
            _ => {}
        }
    }

    fn write(&mut self) -> bool {
        let Link { quic, http, .. } = self;
        http.write_to(&mut Below(quic))
    }

    fn keep_log(&mut self) {
        self.http.keep_log();
    }

    fn tell(&mut self, log: &Log) {
        for logged in self.http.logged() {
            let (name, data) = logged.event();
            log.tell(name, data);
        }
    }
}

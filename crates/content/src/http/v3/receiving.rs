//! What the octets and the ends of the peer's streams do.

use airloom_base::Body;

use super::connection::{Connection, Event, PURPOSES, Transmit};
use super::error::{unexpected, wrong_id};
use super::frame::{Control, kind, role};
use super::input::{EMPTY, Input, Piece};
use super::log::{Frame, Logged};
use super::qpack::Section;
use super::stream::{Incoming, Role, Sending, Stream};
use super::{Error, ErrorCode, Priority, Settings};
use crate::http::fields::{self, Line, content_length};
use crate::http::message::{Method, Version};

/// Priorities that may come before their streams.
const EARLY: usize = 64;

/// Does a stream of this number go one way?
//= RFC 9000 (2.1): the two low bits of a stream's number say who opened it and whether it goes one way.
const fn goes_one_way(stream: u64) -> bool {
    stream & 2 != 0
}

/// Has the server opened it?
const fn is_of_server(stream: u64) -> bool {
    stream & 1 != 0
}

impl Connection {
    /// The peer has opened this stream: to be told once for each, in the order of their numbers, before what comes on it.
    pub fn opened(&mut self, stream: u64) {
        if self.has_failed || is_of_server(stream) == self.is_server {
            return;
        }
        if goes_one_way(stream) {
            self.incoming.insert(stream, Incoming { input: Input::default(), role: Role::Untold });
        } else if !self.is_server {
            //= RFC 9114 (6.1): a server opens no streams that go both ways.
            let code = ErrorCode::STREAM_CREATION_ERROR;
            self.fail(Error::Connection(code, "a request of a server"));
        } else if self.is_going {
            //= RFC 9114 (5.2): what a server has said it does not take is rejected.
            self.act(Transmit::Reset(stream, ErrorCode::REQUEST_REJECTED));
            self.act(Transmit::Stop(stream, ErrorCode::REQUEST_REJECTED));
        } else {
            self.note(|| Some(Logged::Stream { stream, purpose: "request", is_ours: false }));
            self.next = self.next.max(stream.saturating_add(4));
            let priority = self.early.remove(&stream);
            // Those of streams that were skipped will not be needed.
            self.early = self.early.split_off(&stream);
            let entry = Stream { priority: priority.unwrap_or_default(), ..Stream::default() };
            self.streams.insert(stream, Stream { is_said: priority.is_some(), ..entry });
        }
    }

    /// Octets of a stream, in order.
    pub fn feed(&mut self, stream: u64, body: Body) {
        if self.has_failed || body.is_empty() {
            return;
        }
        let result = if goes_one_way(stream) {
            self.feed_one_way(stream, body)
        } else if let Some(entry) = self.streams.get_mut(&stream).filter(|entry| entry.hears) {
            entry.input.feed(body);
            self.read_on(stream)
        } else {
            Ok(())
        };
        self.settle(result);
    }

    /// The peer has ended its side of a stream (FIN), and everything before that was fed.
    pub fn ended(&mut self, stream: u64) {
        self.heard_all(stream, None);
    }

    /// The peer has given up its side of a stream (RESET_STREAM).
    pub fn was_reset(&mut self, stream: u64, code: ErrorCode) {
        self.heard_all(stream, Some(code));
    }

    fn heard_all(&mut self, stream: u64, reset: Option<ErrorCode>) {
        if self.has_failed {
            return;
        }
        let result = if goes_one_way(stream) {
            self.lost_one_way(stream)
        } else if let Some(entry) = self.streams.get_mut(&stream).filter(|entry| entry.hears) {
            entry.has_ended = true;
            match reset {
                Some(code) => self.lost(stream, ErrorCode::REQUEST_CANCELLED, code),
                None => self.read_on(stream),
            }
        } else {
            Ok(())
        };
        self.settle(result);
    }

    /// The peer reads no more of our side of a stream (STOP_SENDING).
    pub fn was_stopped(&mut self, stream: u64, code: ErrorCode) {
        if self.has_failed {
            return;
        }
        let is_own = self.is_own(stream);
        let result = match self.streams.get_mut(&stream).filter(|entry| entry.speaks) {
            _ if is_own => Err(closed_critical()),
            None => Ok(()),
            Some(_) if self.is_server => self.lost(stream, code, code),
            Some(entry) => {
                //= RFC 9114 (4.1): a server that needs no more of a request answers all the same.
                entry.speaks = false;
                entry.sending = Sending::default();
                let hears = entry.hears;
                self.act(Transmit::Reset(stream, code));
                if !hears {
                    self.close(stream);
                }
                Ok(())
            }
        };
        self.settle(result);
    }

    /// A request is over before its time by the peer's doing: our side ends with `ours`, and it said `said`.
    fn lost(&mut self, stream: u64, ours: ErrorCode, said: ErrorCode) -> Result<(), Error> {
        let entry = self.give_up(stream, ours, ErrorCode::REQUEST_CANCELLED);
        self.events.push_back(Event::Reset(stream, said));
        // A request that is taken back has cost us its work. A server that refuses has done less than we have.
        if self.is_server && entry.is_some_and(|entry| !entry.is_answered) {
            self.budget.abandoned()?;
        }
        Ok(())
    }

    /// The peer's doing breaks a stream off.
    pub(super) fn break_off(&mut self, stream: u64, code: ErrorCode) -> Result<(), Error> {
        if self.give_up(stream, code, code).is_some() {
            self.events.push_back(Event::Reset(stream, code));
            // That a server resets streams is as cheap for a client to bring about as to reset them itself.
            if self.is_server {
                self.budget.abandoned()?;
            }
        }
        Ok(())
    }

    fn lost_one_way(&mut self, stream: u64) -> Result<(), Error> {
        match self.incoming.remove(&stream).map(|incoming| incoming.role) {
            Some(Role::Control | Role::Encoder | Role::Decoder) => Err(closed_critical()),
            //= RFC 9114 (6.2): a stream may end before it has said what it is for.
            Some(Role::Untold | Role::Unknown) | None => Ok(()),
        }
    }

    fn feed_one_way(&mut self, stream: u64, body: Body) -> Result<(), Error> {
        let Some(incoming) = self.incoming.get_mut(&stream) else { return Ok(()) };
        if incoming.role == Role::Unknown {
            return Ok(self.budget.useless(body.len())?);
        }
        incoming.input.feed(body);
        if incoming.role == Role::Untold {
            let Some(number) = incoming.input.integer() else { return Ok(()) };
            let role = self.role(number)?;
            let place = [role::CONTROL, role::ENCODER, role::DECODER].iter().position(|r| *r == number);
            let purpose = place.map_or("unknown", |place| PURPOSES[place]);
            self.note(|| Some(Logged::Stream { stream, purpose, is_ours: false }));
            if let Some(incoming) = self.incoming.get_mut(&stream) {
                incoming.role = role;
            }
        }
        self.read_one_way(stream)
    }

    /// The role of a stream with this type.
    fn role(&mut self, number: u64) -> Result<Role, Error> {
        let (role, place) = match number {
            role::CONTROL => (Role::Control, 0),
            role::ENCODER => (Role::Encoder, 1),
            role::DECODER => (Role::Decoder, 2),
            //= RFC 9114 (6.2.2): a client pushes nothing, and a server only what it was allowed to.
            role::PUSH if self.is_server => {
                return Err(Error::Connection(ErrorCode::STREAM_CREATION_ERROR, "a push of a client"));
            }
            role::PUSH => return Err(wrong_id("a push that was not allowed")),
            //= RFC 9114 (6.2): streams of unknown types are refused or read over, and are no error.
            _ => return Ok(Role::Unknown),
        };
        if std::mem::replace(&mut self.roles[place], true) {
            let code = ErrorCode::STREAM_CREATION_ERROR;
            return Err(Error::Connection(code, "a second stream of a type that there is one of"));
        }
        Ok(role)
    }

    fn read_one_way(&mut self, stream: u64) -> Result<(), Error> {
        loop {
            let Some(incoming) = self.incoming.get_mut(&stream) else { return Ok(()) };
            match incoming.role {
                Role::Control => match incoming.input.poll()? {
                    Some(piece) => {
                        if let Piece::Frame(kind, payload) = &piece {
                            self.note(|| Logged::control(stream, *kind, payload, false));
                        }
                        self.control(piece)?;
                    }
                    None => return Ok(()),
                },
                Role::Encoder => {
                    let Some(octets) = incoming.input.rest() else { return Ok(()) };
                    let code = ErrorCode::QPACK_ENCODER_STREAM_ERROR;
                    let wrong = Error::Connection(code, "entries that cannot be read");
                    // Entries that no head means are of no use: they count for nothing.
                    self.reader.feed(&octets.to_bytes()).map_err(|_| wrong)?;
                    self.unblock();
                }
                Role::Decoder => {
                    let Some(octets) = incoming.input.rest() else { return Ok(()) };
                    let code = ErrorCode::QPACK_DECODER_STREAM_ERROR;
                    let wrong = Error::Connection(code, "acknowledgements that cannot be read");
                    self.writer.feed(&octets.to_bytes()).map_err(|_| wrong)?;
                }
                Role::Unknown => {
                    let octets = incoming.input.rest().map_or(0, |octets| octets.len());
                    self.act(Transmit::Stop(stream, ErrorCode::STREAM_CREATION_ERROR));
                    return Ok(self.budget.useless(octets + EMPTY)?);
                }
                Role::Untold => return Ok(()),
            }
        }
    }

    /// A piece of the control stream.
    fn control(&mut self, piece: Piece) -> Result<(), Error> {
        match piece {
            //= RFC 9114 (6.2.1): the first frame is SETTINGS.
            Piece::Begins(kind) if !self.has_settings && kind != kind::SETTINGS => {
                Err(Error::Connection(ErrorCode::MISSING_SETTINGS, "the first frame is not SETTINGS"))
            }
            Piece::Begins(kind::SETTINGS) if self.has_settings => Err(unexpected("SETTINGS that come again")),
            Piece::Begins(kind::DATA | kind::HEADERS | kind::PUSH_PROMISE) => {
                Err(unexpected("a frame of a request on the control stream"))
            }
            Piece::Begins(kind) if kind::is_of_http2(kind) => Err(unexpected("a frame of HTTP/2")),
            Piece::Begins(_) => Ok(self.budget.useless(EMPTY)?),
            Piece::Frame(kind::SETTINGS, payload) => {
                self.peer = Settings::parse(&payload)?;
                self.has_settings = true;
                let settings = self.peer;
                self.note(|| Some(Logged::Settings { settings, is_ours: false }));
                self.allow();
                Ok(())
            }
            Piece::Frame(kind, payload) => {
                self.budget.useless(payload.len())?;
                match Control::parse(kind, &payload, self.is_server)? {
                    //= RFC 9114 (7.2.3): there is no push that could be meant.
                    Some(Control::CancelPush) => Err(wrong_id("CANCEL_PUSH of a push that there is not")),
                    Some(Control::GoAway(last)) => self.going(last),
                    Some(Control::MaxPushId(most)) if most < self.max_push => {
                        Err(wrong_id("a largest push that becomes smaller"))
                    }
                    Some(Control::MaxPushId(most)) => {
                        self.max_push = most;
                        Ok(())
                    }
                    Some(Control::PriorityUpdate(stream, value)) => self.priority_update(stream, value),
                    None => Ok(()),
                }
            }
            Piece::Skipped(octets) => Ok(self.budget.useless(octets)?),
            // Refused when it begins.
            Piece::Data(_) => Ok(()),
        }
    }

    fn going(&mut self, last: u64) -> Result<(), Error> {
        //= RFC 9114 (5.2, 7.2.6): a server names a request, and nobody a higher number than before.
        if !self.is_server && last & 3 != 0 {
            return Err(wrong_id("GOAWAY that names no request"));
        }
        if self.their_last.is_some_and(|before| last > before) {
            return Err(wrong_id("GOAWAY with a higher number than before"));
        }
        self.their_last = Some(last);
        if !self.is_server {
            self.is_going = true;
            let refused: Vec<u64> = self.streams.range(last..).map(|(stream, _)| *stream).collect();
            for stream in refused {
                self.give_up(stream, ErrorCode::REQUEST_CANCELLED, ErrorCode::REQUEST_CANCELLED);
                self.events.push_back(Event::Reset(stream, ErrorCode::REQUEST_REJECTED));
            }
        }
        self.events.push_back(Event::GoAway(last));
        Ok(())
    }

    fn priority_update(&mut self, stream: u64, value: &[u8]) -> Result<(), Error> {
        //= RFC 9218 (7.2): it names a request of the client's.
        if stream & 3 != 0 {
            return Err(wrong_id("PRIORITY_UPDATE of what is no request"));
        }
        let priority = Priority::parse(value);
        if stream < self.next {
            if let Some(entry) = self.streams.get_mut(&stream) {
                entry.priority = priority;
                entry.is_said = true;
            }
            // An answer that was all given to the transport may still be there.
            self.events.push_back(Event::Priority(stream, priority));
        } else if self.early.len() < EARLY || self.early.contains_key(&stream) {
            self.early.insert(stream, priority);
        }
        Ok(())
    }

    /// Entries have come: streams that waited for them go on.
    fn unblock(&mut self) {
        for stream in self.reader.ready() {
            let Some(block) = self.streams.get_mut(&stream).and_then(|entry| entry.blocked.take()) else {
                continue;
            };
            self.events.push_back(Event::Unblocked(stream));
            let result = self.section(stream, block).and_then(|()| self.read_on(stream));
            self.settle(result);
        }
    }

    /// Works on what has come of a request or an answer.
    fn read_on(&mut self, stream: u64) -> Result<(), Error> {
        loop {
            // What follows on a stream that is heard no more (a head was too large) means nothing.
            let hears = |entry: &&mut Stream| entry.hears && entry.blocked.is_none();
            let Some(entry) = self.streams.get_mut(&stream).filter(hears) else { return Ok(()) };
            let piece = entry.input.poll()?;
            let begun = entry.input.begun.take();
            let has_ended = entry.has_ended;
            if let Some(length) = begun {
                self.note(|| Some(Logged::Frame { stream, frame: Frame::Data, length, is_ours: false }));
            }
            match piece {
                Some(piece) => self.piece(stream, piece)?,
                None if has_ended => return self.message_ended(stream),
                None => return Ok(()),
            }
        }
    }

    fn piece(&mut self, stream: u64, piece: Piece) -> Result<(), Error> {
        let Some(entry) = self.streams.get_mut(&stream) else { return Ok(()) };
        match piece {
            //= RFC 9114 (4.1): frames in another order than head, body, trailers are an error of the connection.
            Piece::Begins(kind::DATA) if !entry.has_head || entry.trailers.is_some() => {
                Err(unexpected("DATA where no body may be"))
            }
            Piece::Begins(kind::HEADERS) if entry.trailers.is_some() => {
                Err(unexpected("HEADERS behind trailers"))
            }
            Piece::Begins(kind::DATA | kind::HEADERS) => Ok(()),
            Piece::Begins(kind::PUSH_PROMISE) if !self.is_server => {
                //= RFC 9114 (7.2.5): a push beyond what we have allowed, which is none.
                Err(wrong_id("a push that was not allowed"))
            }
            Piece::Begins(
                kind::PUSH_PROMISE
                | kind::SETTINGS
                | kind::CANCEL_PUSH
                | kind::GOAWAY
                | kind::MAX_PUSH_ID
                | kind::PRIORITY_UPDATE
                | kind::PRIORITY_UPDATE_PUSH,
            ) => Err(unexpected("a frame of the connection on a request")),
            Piece::Begins(kind) if kind::is_of_http2(kind) => Err(unexpected("a frame of HTTP/2")),
            Piece::Begins(_) => Ok(self.budget.useless(EMPTY)?),
            Piece::Skipped(octets) => Ok(self.budget.useless(octets)?),
            Piece::Data(body) => {
                if let Some(left) = &mut entry.expected {
                    //= RFC 9114 (4.1.2): a body of another length than Content-Length says is malformed.
                    let wrong = Error::Stream(stream, ErrorCode::MESSAGE_ERROR);
                    *left = left.checked_sub(body.len() as u64).ok_or(wrong)?;
                }
                self.budget.useful(body.len());
                self.events.push_back(Event::Data(stream, body));
                Ok(())
            }
            Piece::Frame(_, block) => {
                self.budget.useful(block.len());
                self.section(stream, block)
            }
        }
    }

    /// A whole field section.
    fn section(&mut self, stream: u64, block: Vec<u8>) -> Result<(), Error> {
        let code = ErrorCode::QPACK_DECOMPRESSION_FAILED;
        let wrong = Error::Connection(code, "a field section that cannot be read");
        match self.reader.read(stream, &block).map_err(|_| wrong)? {
            Section::Lines(lines) => {
                let length = block.len() as u64;
                self.note(|| {
                    let frame = Frame::Headers(lines.clone());
                    Some(Logged::Frame { stream, frame, length, is_ours: false })
                });
                self.headers_arrived(stream, Some(lines))
            }
            Section::TooLarge => self.headers_arrived(stream, None),
            Section::Blocked => {
                if let Some(entry) = self.streams.get_mut(&stream) {
                    entry.blocked = Some(block);
                }
                Ok(())
            }
        }
    }

    /// A head or trailers; `None` if they were too large.
    fn headers_arrived(&mut self, stream: u64, lines: Option<Vec<Line>>) -> Result<(), Error> {
        let malformed = Error::Stream(stream, ErrorCode::MESSAGE_ERROR);
        let Some(entry) = self.streams.get_mut(&stream) else { return Ok(()) };
        if entry.has_head {
            entry.trailers = Some(lines.and_then(fields::to_trailers).ok_or(malformed)?);
            return Ok(());
        }
        let Some(lines) = lines else { return self.too_large(stream) };
        if self.is_server {
            let head = fields::to_request(lines, Version::Http3).ok_or(malformed)?;
            entry.expected = content_length(&head.fields).ok_or(malformed)?;
            entry.has_head = true;
            entry.is_head = head.method == Method::Head;
            if let Some(said) = head.fields.first("priority").filter(|_| !entry.is_said) {
                entry.priority = Priority::parse(said);
            }
            self.events.push_back(Event::Request(stream, head));
            return Ok(());
        }
        let head = fields::to_response(lines, Version::Http3).ok_or(malformed)?;
        if head.status < 200 {
            self.events.push_back(Event::Interim(stream, head));
            return Ok(self.budget.useless(EMPTY)?);
        }
        let length = content_length(&head.fields).ok_or(malformed)?;
        entry.has_head = true;
        //= RFC 9114 (4.1.2): answers to HEAD and those with 204 or 304 have no body whatever their length says.
        let is_bodiless = entry.is_head || matches!(head.status, 204 | 304);
        entry.expected = length.filter(|_| !is_bodiless);
        self.events.push_back(Event::Response(stream, head));
        Ok(())
    }

    /// A head that is larger than we take.
    fn too_large(&mut self, stream: u64) -> Result<(), Error> {
        if !self.is_server {
            return Err(Error::Stream(stream, ErrorCode::EXCESSIVE_LOAD));
        }
        //= RFC 9114 (4.2.2), RFC 6585 (5): a head that is too large is answered with 431.
        self.headers(stream, &[(":status".into(), "431".into())], true);
        if let Some(entry) = self.streams.get_mut(&stream) {
            entry.hears = false;
            if !entry.has_ended {
                self.act(Transmit::Stop(stream, ErrorCode::NO_ERROR));
            }
        }
        //= RFC 9204 (2.2.2.2): what follows may have entries, and is not read.
        self.reader.cancel(stream);
        Ok(self.budget.abandoned()?)
    }

    /// The peer has ended its side, and all that came was read.
    fn message_ended(&mut self, stream: u64) -> Result<(), Error> {
        let Some(entry) = self.streams.get_mut(&stream).filter(|entry| entry.hears) else { return Ok(()) };
        if !entry.input.is_between_frames() {
            //= RFC 9114 (7.1): a stream that ends within a frame.
            return Err(Error::Connection(ErrorCode::FRAME_ERROR, "a stream that ends within a frame"));
        }
        if !entry.has_head && self.is_server {
            return Err(Error::Stream(stream, ErrorCode::REQUEST_INCOMPLETE));
        }
        if !entry.has_head || entry.expected.is_some_and(|left| left > 0) {
            return Err(Error::Stream(stream, ErrorCode::MESSAGE_ERROR));
        }
        entry.hears = false;
        let trailers = entry.trailers.take().unwrap_or_default();
        if !entry.speaks {
            self.close(stream);
        }
        self.events.push_back(Event::End(stream, trailers));
        Ok(())
    }
}

//= RFC 9114 (6.2.1), RFC 9204 (4.2): control, encoder and decoder stream live as long as the connection.
const fn closed_critical() -> Error {
    Error::Connection(ErrorCode::CLOSED_CRITICAL_STREAM, "a stream ended that the connection needs")
}

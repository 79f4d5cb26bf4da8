//! What each frame of the peer does.

use airloom_base::Body;

use super::connection::{Collecting, Connection, Event};
use super::error::protocol;
use super::flow::ReceiveWindow;
use super::frame::{Frame, HEADER, Header, flag, kind};
use super::hpack::Block;
use super::input::Piece;
use super::settings::{ENABLE_PUSH, HEADER_TABLE_SIZE};
use super::stream::Stream;
use super::{Error, ErrorCode, Priority};
use crate::http::budget::Budget;
use crate::http::fields::{self, Line, content_length};
use crate::http::message::{Fields, Method, Version};

/// Streams that we have reset and remember: what was on its way to them is no error.
const REMEMBERED: usize = 64;

/// Priorities that may come before their streams.
const EARLY: usize = 64;

impl Connection {
    /// Works on the next piece of input. False: more octets are needed.
    pub(super) fn step(&mut self) -> Result<bool, Error> {
        let Some(piece) = self.input.poll()? else { return Ok(false) };
        match piece {
            Piece::Data(header) => self.data_begins(&header)?,
            Piece::Octets(body) => self.octets(body)?,
            Piece::Padding(octets) => {
                let stream = self.current;
                self.used(stream, octets)?;
            }
            Piece::DataEnd(header) => {
                if header.has(flag::END_STREAM) {
                    self.message_ended(header.stream, Fields::default())?;
                }
            }
            Piece::Frame(header, payload) => self.frame(&header, &payload)?,
        }
        Ok(true)
    }

    fn check_order(&self, header: &Header) -> Result<(), Error> {
        if self.collecting.is_some() && header.kind != kind::CONTINUATION {
            //= RFC 9113 (6.10): nothing may come between HEADERS and its CONTINUATIONs.
            return Err(protocol("another frame inside a header block"));
        }
        if !self.has_settings && (header.kind != kind::SETTINGS || header.has(flag::ACK)) {
            //= RFC 9113 (3.4): the first frame of each side is SETTINGS.
            return Err(protocol("the first frame is not SETTINGS"));
        }
        Ok(())
    }

    fn data_begins(&mut self, header: &Header) -> Result<(), Error> {
        self.check_order(header)?;
        let number = header.stream;
        if number == 0 {
            return Err(protocol("a frame of a stream on stream 0"));
        }
        self.current = number;
        let overflow = |_| Error::Connection(ErrorCode::FLOW_CONTROL_ERROR, "more DATA than windows allow");
        self.receive.arrived(header.length).map_err(overflow)?;
        if header.length == 0 && !header.has(flag::END_STREAM) {
            self.budget.useless(HEADER)?;
        }
        let is_idle = self.is_idle(number);
        match self.streams.get_mut(&number) {
            Some(stream) if stream.hears() && stream.has_head => {
                let within = stream.receive.arrived(header.length);
                within.map_err(|code| Error::Stream(number, code))
            }
            Some(stream) if stream.hears() => Err(Error::Stream(number, ErrorCode::PROTOCOL_ERROR)),
            Some(_) => Err(Error::Stream(number, ErrorCode::STREAM_CLOSED)),
            None if is_idle => Err(protocol("DATA on an idle stream")),
            None if self.given_up.contains(&number) => Ok(self.budget.useless(HEADER)?),
            None => Err(Error::Stream(number, ErrorCode::STREAM_CLOSED)),
        }
    }

    fn octets(&mut self, body: Body) -> Result<(), Error> {
        let number = self.current;
        let octets = body.len() as u32;
        self.budget.useful(body.len());
        self.used(number, octets)?;
        let Some(stream) = self.streams.get_mut(&number) else { return Ok(()) };
        if let Some(left) = &mut stream.expected {
            //= RFC 9113 (8.1.1): a body of another length than Content-Length says is malformed.
            let wrong = Error::Stream(number, ErrorCode::PROTOCOL_ERROR);
            *left = left.checked_sub(u64::from(octets)).ok_or(wrong)?;
        }
        self.events.push_back(Event::Data(number, body));
        Ok(())
    }

    /// So many octets of flow-controlled frames are done with: the windows open again.
    fn used(&mut self, number: u32, octets: u32) -> Result<(), Error> {
        self.receive.used(octets);
        if let Some(more) = self.receive.update() {
            self.control(kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes(), true);
        }
        if let Some(stream) = self.streams.get_mut(&number).filter(|stream| stream.hears()) {
            stream.receive.used(octets);
            if let Some(more) = stream.receive.update() {
                self.control(kind::WINDOW_UPDATE, 0, number, &more.to_be_bytes(), true);
            }
        }
        Ok(Budget::owes(self.owed())?)
    }

    fn frame(&mut self, header: &Header, payload: &[u8]) -> Result<(), Error> {
        self.check_order(header)?;
        if header.kind == kind::CONTINUATION && self.collecting.is_some() {
            return self.continuation(header, payload);
        }
        let frame = Frame::parse(header, payload)?;
        if !matches!(frame, Frame::Headers { .. }) {
            self.budget.useless(HEADER + payload.len())?;
        }
        match frame {
            Frame::Headers { from, to } => {
                let block = payload.get(from..to).unwrap_or_default().to_vec();
                Budget::block(block.len(), 1)?;
                let (stream, ends) = (header.stream, header.has(flag::END_STREAM));
                let collecting = Collecting { stream, ends, block, frames: 1 };
                self.block(header, collecting)
            }
            Frame::RstStream(code) => self.was_reset(header.stream, code),
            Frame::Settings(values) => self.settings(&values),
            Frame::SettingsAck => {
                self.is_settled = true;
                Ok(())
            }
            Frame::Ping(octets) => {
                self.control(kind::PING, flag::ACK, 0, &octets, true);
                Ok(Budget::owes(self.owed())?)
            }
            Frame::GoAway { last, code } => {
                self.going(last, code);
                Ok(())
            }
            Frame::WindowUpdate(increment) => self.window_update(header.stream, increment),
            Frame::PriorityUpdate(stream) => {
                self.priority_update(stream, payload.get(4..).unwrap_or_default())
            }
            Frame::Priority | Frame::Pong(_) | Frame::Unknown => Ok(()),
        }
    }

    fn continuation(&mut self, header: &Header, payload: &[u8]) -> Result<(), Error> {
        let Some(mut collecting) = self.collecting.take().filter(|c| c.stream == header.stream) else {
            return Err(protocol("CONTINUATION of another stream"));
        };
        collecting.frames += 1;
        collecting.block.extend_from_slice(payload);
        Budget::block(collecting.block.len(), collecting.frames)?;
        self.block(header, collecting)
    }

    /// A header block, or a part of one.
    fn block(&mut self, header: &Header, collecting: Collecting) -> Result<(), Error> {
        if !header.has(flag::END_HEADERS) {
            self.collecting = Some(collecting);
            return Ok(());
        }
        let Collecting { stream, ends, block, .. } = collecting;
        self.budget.useful(block.len());
        // Whatever the stream is, the block is read: the table has to keep up.
        match self.reader.read(&block) {
            Block::Malformed => {
                Err(Error::Connection(ErrorCode::COMPRESSION_ERROR, "a header block that cannot be read"))
            }
            Block::TooLarge => self.headers_arrived(stream, None, ends),
            Block::Lines(lines) => self.headers_arrived(stream, Some(lines), ends),
        }
    }

    /// A head or trailers; `None` if they were too large.
    fn headers_arrived(&mut self, number: u32, lines: Option<Vec<Line>>, ends: bool) -> Result<(), Error> {
        match self.streams.get(&number) {
            Some(stream) if !stream.hears() => Err(Error::Stream(number, ErrorCode::STREAM_CLOSED)),
            Some(stream) if stream.has_head => self.trailers(number, lines, ends),
            Some(_) => self.response(number, lines, ends),
            None if self.is_server && number % 2 == 1 && number > self.highest => {
                self.opened_by_peer(number, lines, ends)
            }
            None if self.is_idle(number) => {
                Err(protocol("HEADERS on a stream that is not the peer's to open"))
            }
            None if self.given_up.contains(&number) => Ok(self.budget.useless(HEADER)?),
            //= RFC 9113 (5.1): HEADERS on a closed stream is an error of the connection.
            None => Err(Error::Connection(ErrorCode::STREAM_CLOSED, "HEADERS on a closed stream")),
        }
    }

    fn opened_by_peer(&mut self, number: u32, lines: Option<Vec<Line>>, ends: bool) -> Result<(), Error> {
        if self.is_going {
            //= RFC 9113 (6.8): streams above the last one of a GOAWAY are ignored.
            return Ok(());
        }
        self.highest = number;
        //= RFC 9113 (5.1.1): with a stream all idle ones below it are closed. What was said of them is of no use.
        self.early = self.early.split_off(&number);
        let early = self.early.remove(&number);
        let most = self.options.settings.max_concurrent_streams.unwrap_or(u32::MAX);
        if self.streams.len() as u64 >= u64::from(most) {
            //= RFC 9113 (5.1.2): a stream beyond the limit is refused.
            return Err(Error::Stream(number, ErrorCode::REFUSED_STREAM));
        }
        // Until our settings have arrived, the peer takes a window to be what it usually is.
        let ours = self.options.settings.initial_window_size;
        let window = if self.is_settled { ours } else { ours.max(65_535) };
        let mut stream = Stream::new(self.peer.initial_window_size, window);
        if !self.is_settled {
            stream.receive = ReceiveWindow::starting(ours, window);
        }
        let Some(lines) = lines else {
            //= RFC 6585 (5): a head that is too large is answered with 431.
            self.streams.insert(number, stream);
            self.headers(number, &[(":status".into(), "431".into())], true);
            self.streams.remove(&number);
            if !ends {
                self.say_reset(number, ErrorCode::NO_ERROR);
            }
            return Ok(self.budget.abandoned()?);
        };
        let malformed = Error::Stream(number, ErrorCode::PROTOCOL_ERROR);
        let head = fields::to_request(lines, Version::Http2).ok_or(malformed)?;
        stream.has_head = true;
        stream.is_head = head.method == Method::Head;
        stream.expected = content_length(&head.fields).ok_or(malformed)?;
        let said = head.fields.first("priority").map(Priority::parse);
        stream.priority = early.or(said).unwrap_or_default();
        self.streams.insert(number, stream);
        self.events.push_back(Event::Request(number, head));
        if ends { self.message_ended(number, Fields::default()) } else { Ok(()) }
    }

    fn response(&mut self, number: u32, lines: Option<Vec<Line>>, ends: bool) -> Result<(), Error> {
        let malformed = Error::Stream(number, ErrorCode::PROTOCOL_ERROR);
        let head = lines.and_then(|lines| fields::to_response(lines, Version::Http2)).ok_or(malformed)?;
        if head.status < 200 {
            //= RFC 9113 (8.1): an interim response does not end the stream.
            if ends {
                return Err(malformed);
            }
            self.events.push_back(Event::Interim(number, head));
            return Ok(self.budget.useless(HEADER)?);
        }
        let length = content_length(&head.fields).ok_or(malformed)?;
        if let Some(stream) = self.streams.get_mut(&number) {
            stream.has_head = true;
            //= RFC 9113 (8.1.1): answers to HEAD and those with 204 or 304 have no body whatever their length says.
            let is_bodiless = stream.is_head || matches!(head.status, 204 | 304);
            stream.expected = length.filter(|_| !is_bodiless);
        }
        self.events.push_back(Event::Response(number, head));
        if ends { self.message_ended(number, Fields::default()) } else { Ok(()) }
    }

    fn trailers(&mut self, number: u32, lines: Option<Vec<Line>>, ends: bool) -> Result<(), Error> {
        //= RFC 9113 (8.1): a second head that ends nothing is malformed.
        let trailers = lines.filter(|_| ends).and_then(fields::to_trailers);
        let trailers = trailers.ok_or(Error::Stream(number, ErrorCode::PROTOCOL_ERROR))?;
        self.message_ended(number, trailers)
    }

    /// END_STREAM has come.
    fn message_ended(&mut self, number: u32, trailers: Fields) -> Result<(), Error> {
        let Some(stream) = self.streams.get_mut(&number) else { return Ok(()) };
        if stream.expected.is_some_and(|left| left > 0) {
            return Err(Error::Stream(number, ErrorCode::PROTOCOL_ERROR));
        }
        if stream.remote_ended() {
            self.close(number);
        }
        self.events.push_back(Event::End(number, trailers));
        Ok(())
    }

    fn was_reset(&mut self, number: u32, code: ErrorCode) -> Result<(), Error> {
        if self.is_idle(number) {
            return Err(protocol("RST_STREAM on an idle stream"));
        }
        let Some(stream) = self.streams.remove(&number) else { return Ok(()) };
        self.events.push_back(Event::Reset(number, code));
        // A request that is taken back has cost us its work. A server that refuses has done less than we have.
        if self.is_server && !stream.is_answered { Ok(self.budget.abandoned()?) } else { Ok(()) }
    }

    fn settings(&mut self, values: &[(u16, u32)]) -> Result<(), Error> {
        self.has_settings = true;
        let before = self.peer;
        for (identifier, value) in values {
            //= RFC 9113 (6.5.2): a server never says that it takes pushes, which nobody makes to it.
            if !self.is_server && (*identifier, *value) == (ENABLE_PUSH, 1) {
                return Err(protocol("a server that takes pushes"));
            }
            self.peer.apply(*identifier, *value)?;
            //= RFC 9113 (6.5.3): in their order. A table that was empty in between is empty.
            if *identifier == HEADER_TABLE_SIZE {
                self.writer.allow(*value);
            }
        }
        let difference = i64::from(self.peer.initial_window_size) - i64::from(before.initial_window_size);
        if difference != 0 {
            //= RFC 9113 (6.9.2): a new initial window moves those of all streams by the difference.
            for stream in self.streams.values_mut() {
                let overflow = |code| Error::Connection(code, "a window above 2^31-1");
                stream.send.shift(difference).map_err(overflow)?;
            }
        }
        self.control(kind::SETTINGS, flag::ACK, 0, &[], true);
        Ok(Budget::owes(self.owed())?)
    }

    fn going(&mut self, last: u32, code: ErrorCode) {
        if !self.is_server {
            self.is_going = true;
            //= RFC 9113 (6.8): streams above the last one were not worked on and can be asked for again.
            for number in self.streams.split_off(&last.saturating_add(1)).into_keys() {
                self.events.push_back(Event::Reset(number, ErrorCode::REFUSED_STREAM));
            }
        }
        self.events.push_back(Event::GoAway(code));
    }

    fn window_update(&mut self, number: u32, increment: u32) -> Result<(), Error> {
        if number == 0 {
            let wrong = |code| Error::Connection(code, "an impossible WINDOW_UPDATE");
            return self.send.open(increment).map_err(wrong);
        }
        if self.is_idle(number) {
            return Err(protocol("WINDOW_UPDATE on an idle stream"));
        }
        //= RFC 9113 (6.9): on a stream that is closed it is ignored.
        let Some(stream) = self.streams.get_mut(&number) else { return Ok(()) };
        stream.send.open(increment).map_err(|code| Error::Stream(number, code))
    }

    fn priority_update(&mut self, number: u32, value: &[u8]) -> Result<(), Error> {
        //= RFC 9218 (7.1): a server does not send it, and it names a stream that a client may open.
        if !self.is_server {
            return Err(protocol("PRIORITY_UPDATE from a server"));
        }
        if number.is_multiple_of(2) {
            return Err(protocol("PRIORITY_UPDATE for a stream that is no request"));
        }
        let priority = Priority::parse(value);
        if let Some(stream) = self.streams.get_mut(&number) {
            stream.priority = priority;
        } else if number > self.highest && (self.early.len() < EARLY || self.early.contains_key(&number)) {
            self.early.insert(number, priority);
        }
        Ok(())
    }

    /// The peer's doing breaks a stream off.
    pub(super) fn break_off(&mut self, number: u32, code: ErrorCode) -> Result<(), Error> {
        if self.streams.remove(&number).is_some() {
            self.events.push_back(Event::Reset(number, code));
        }
        self.say_reset(number, code);
        // That a server resets streams is as cheap for a client to bring about as to reset them itself.
        if self.is_server {
            self.budget.abandoned()?;
        }
        Ok(Budget::owes(self.owed())?)
    }

    /// Tells the peer that a stream is over, and remembers it.
    pub(super) fn say_reset(&mut self, number: u32, code: ErrorCode) {
        self.control(kind::RST_STREAM, 0, number, &code.0.to_be_bytes(), true);
        if self.given_up.len() == REMEMBERED {
            self.given_up.pop_front();
        }
        self.given_up.push_back(number);
    }

    /// Was this stream never used?
    fn is_idle(&self, number: u32) -> bool {
        let is_ours = number.is_multiple_of(2) == self.is_server;
        //= RFC 9113 (6.8): streams that came behind our GOAWAY are ignored, with all that follows on them.
        if is_ours { number > self.opened() } else { number > self.highest && !self.is_going }
    }
}

//! One end of a connection: requests and responses in, frames out.

use std::collections::{BTreeMap, VecDeque};

use airloom_base::Body;
use bytes::Bytes;

use super::flow::{ReceiveWindow, SendWindow};
use super::frame::{HEADER, Header, LEAST_MAX_FRAME, PREFACE, flag, kind};
use super::hpack::{BlockReader, BlockWriter};
use super::input::Input;
use super::stream::Stream;
use super::{Error, ErrorCode, Priority, Settings};
use crate::http::budget::Budget;
use crate::http::fields::{self, Line};
use crate::http::filler::LongFiller;
use crate::http::message::{Fields, Method, RequestHead, ResponseHead};

/// What one end keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What it tells the other: of these, windows and limits are its own to choose.
    pub settings: Settings,
    /// Octets of DATA that it takes over all streams together; 65,535 at least.
    pub connection_window: u32,
    /// `http` or `https`: of a client's requests.
    pub scheme: &'static str,
}

impl Default for Options {
    fn default() -> Self {
        let settings = Settings {
            enable_push: false,
            max_concurrent_streams: Some(100),
            max_header_list_size: Some(16_384),
            no_rfc7540_priorities: true,
            ..Settings::default()
        };
        Options { settings, connection_window: 65_535, scheme: "http" }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client asks (servers only).
    Request(u32, RequestHead),
    /// The server says something before its answer: 1xx (clients only).
    Interim(u32, ResponseHead),
    /// The server answers (clients only).
    Response(u32, ResponseHead),
    /// A piece of the body.
    Data(u32, Body),
    /// The peer's message is complete; these are its trailers.
    End(u32, Fields),
    /// The stream is over before its time, by the peer or because it broke a rule.
    Reset(u32, ErrorCode),
    /// The peer takes no new streams. Those of ours that it will not work on are reset with REFUSED_STREAM.
    GoAway(ErrorCode),
    /// The connection is of no more use. What `poll_transmit` still gives tells the peer why.
    Failed(Error),
}

/// A header block that is not complete.
pub(super) struct Collecting {
    pub(super) stream: u32,
    pub(super) ends: bool,
    pub(super) block: Vec<u8>,
    pub(super) frames: u32,
}

/// One end of a connection.
#[derive(getset::CopyGetters)]
pub struct Connection {
    pub(super) is_server: bool,
    pub(super) options: Options,
    pub(super) input: Input,
    pub(super) events: VecDeque<Event>,
    pub(super) peer: Settings,
    pub(super) has_settings: bool,
    /// Has the peer acknowledged ours?
    pub(super) is_settled: bool,
    pub(super) reader: BlockReader,
    pub(super) writer: BlockWriter,
    pub(super) collecting: Option<Collecting>,
    pub(super) streams: BTreeMap<u32, Stream>,
    /// The highest stream that the peer has opened.
    pub(super) highest: u32,
    /// The next stream that we open.
    next: u32,
    pub(super) send: SendWindow,
    pub(super) receive: ReceiveWindow,
    pub(super) budget: Budget,
    /// Streams that we have reset and on which something may still come.
    pub(super) given_up: VecDeque<u32>,
    /// The stream whose DATA is being read.
    pub(super) current: u32,
    /// Priorities of streams that are not open yet.
    pub(super) early: BTreeMap<u32, Priority>,
    /// Whole frames that go before DATA, and whether they answer something of the peer's.
    control: VecDeque<(Bytes, bool)>,
    /// Octets of all of them.
    waiting: usize,
    /// Octets of those that are answers.
    #[getset(get_copy = "pub(super)")]
    owed: usize,
    /// The rest of a DATA frame whose header is out.
    rest: Option<Body>,
    /// The incremental stream that was served last.
    turn: u32,
    /// No new streams: of ours since the peer's GOAWAY, of the peer's since ours.
    pub(super) is_going: bool,
    pub(super) has_failed: bool,
}

/// How many streams a client opens before it knows how many it may.
//= RFC 9113 (6.5.2): it is recommended that the limit is no smaller than 100.
const UNTOLD_STREAMS: u32 = 100;

/// Octets that may wait in front of DATA before a server takes in nothing more.
const WAITING: usize = 65_536;

/// The largest number of a stream.
const LAST_STREAM: u32 = 0x7fff_ffff;

impl Connection {
    /// The end that opens the connection and asks.
    pub fn client(options: Options) -> Self {
        let mut connection = Connection::new(false, options);
        connection.wait(Bytes::from_static(PREFACE), false);
        connection.begin();
        connection
    }

    /// The end that answers.
    pub fn server(options: Options) -> Self {
        // Whether it wants pushes is for a client to say.
        let settings = Settings { enable_push: true, ..options.settings };
        let mut connection = Connection::new(true, Options { settings, ..options });
        connection.begin();
        connection
    }

    fn new(is_server: bool, options: Options) -> Self {
        let settings = &options.settings;
        let most = settings.max_header_list_size.unwrap_or(u32::MAX) as usize;
        Connection {
            is_server,
            input: Input::new(is_server, settings.max_frame_size),
            events: VecDeque::new(),
            peer: Settings::default(),
            has_settings: false,
            is_settled: false,
            reader: BlockReader::new(settings.header_table_size, most),
            writer: BlockWriter::default(),
            collecting: None,
            streams: BTreeMap::new(),
            highest: 0,
            next: if is_server { 2 } else { 1 },
            send: SendWindow::new(65_535),
            receive: ReceiveWindow::new(65_535),
            budget: Budget::default(),
            given_up: VecDeque::new(),
            current: 0,
            early: BTreeMap::new(),
            control: VecDeque::new(),
            waiting: 0,
            owed: 0,
            rest: None,
            turn: 0,
            is_going: false,
            has_failed: false,
            options,
        }
    }

    /// Our settings, and the window of the connection if it is to be larger than usual.
    fn begin(&mut self) {
        let settings = self.options.settings.emit();
        self.control(kind::SETTINGS, 0, 0, &settings, false);
        let (window, update) = ReceiveWindow::grown(65_535, self.options.connection_window);
        self.receive = window;
        if let Some(more) = update {
            self.control(kind::WINDOW_UPDATE, 0, 0, &more.to_be_bytes(), false);
        }
    }

    /// Adds what the transport gave. Hold it back while the events are not polled: whatever is fed is kept.
    pub fn feed(&mut self, body: Body) {
        if !self.has_failed {
            self.input.feed(body);
        }
    }

    /// The next thing that happened; `None` if more octets are needed, or if too much waits to be written
    /// ([`is_held_back`](Self::is_held_back)). Octets of DATA count as used when they are handed out here: windows are
    /// opened again for them.
    pub fn poll_event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            if self.has_failed || self.is_held_back() {
                return None;
            }
            match self.step() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(Error::Stream(stream, code)) => {
                    if let Err(error) = self.break_off(stream, code) {
                        self.fail(error);
                    }
                }
                Err(error) => self.fail(error),
            }
        }
    }

    /// Does so much wait to be written that nothing more is taken in? Heads count that bodies do not hold up: a peer that
    /// asks and never reads would fill the memory with them. Do not feed it then; it goes on when `poll_transmit` has given
    /// enough. A client is never held back: were both ends, neither would read what the other waits to write.
    pub fn is_held_back(&self) -> bool {
        self.is_server && self.waiting > WAITING
    }

    /// The connection is over for a reason.
    fn fail(&mut self, error: Error) {
        if let Error::Connection(code, why) = error {
            self.say_go_away(code, why);
        }
        self.has_failed = true;
        self.streams.clear();
        self.input.clear();
        self.collecting = None;
        self.events.push_back(Event::Failed(error));
    }

    fn say_go_away(&mut self, code: ErrorCode, why: &str) {
        let mut payload = self.highest.to_be_bytes().to_vec();
        payload.extend_from_slice(&code.0.to_be_bytes());
        payload.extend_from_slice(why.as_bytes());
        self.control(kind::GOAWAY, 0, 0, &payload, false);
    }

    /// Takes no new streams from the peer, and tells it. Those that are open come to their end.
    pub fn go_away(&mut self) {
        if !std::mem::replace(&mut self.is_going, true) {
            self.say_go_away(ErrorCode::NO_ERROR, "");
        }
    }

    /// Asks for something: the stream on which the answer comes. A body follows by `send` unless `ends`. `None`: the
    /// peer takes no (or for the moment no more) streams.
    pub fn request(&mut self, head: &RequestHead, priority: Priority, ends: bool) -> Option<u32> {
        if self.is_server || self.is_going || self.has_failed || self.room() == 0 {
            return None;
        }
        let number = self.next;
        self.next = number.checked_add(2).filter(|next| *next <= LAST_STREAM)?;
        let mut stream =
            Stream::new(self.peer.initial_window_size, self.options.settings.initial_window_size);
        stream.is_head = head.method == Method::Head;
        stream.priority = priority;
        if ends {
            // It is not closed: the answer is to come.
            let _ = stream.local_ended();
        }
        self.streams.insert(number, stream);
        let mut lines = fields::of_request(head, self.options.scheme);
        if let Some(text) = priority.text() {
            lines.push(("priority".into(), text.into()));
        }
        self.headers(number, &lines, ends);
        Some(number)
    }

    /// How many more streams the peer takes at the moment.
    pub fn room(&self) -> u32 {
        let most = self.peer.max_concurrent_streams.unwrap_or(u32::MAX);
        let most = if self.has_settings { most } else { UNTOLD_STREAMS };
        most.saturating_sub(self.streams.len() as u32)
    }

    /// Answers. A body follows by `send` unless `ends`. Interim heads (1xx) never end anything. False: there is no such
    /// stream (any more).
    pub fn respond(&mut self, stream: u32, head: &ResponseHead, ends: bool) -> bool {
        let Some(entry) = self.sends(stream) else { return false };
        let is_final = head.status >= 200;
        entry.is_answered |= is_final;
        let closed = ends && is_final && entry.local_ended();
        self.headers(stream, &fields::of_response(head), ends && is_final);
        if closed {
            self.close(stream);
        }
        true
    }

    /// Sends a body (or more of it), as windows allow; nothing follows if `ends`. False: there is no such stream (any
    /// more).
    pub fn send(&mut self, stream: u32, body: impl IntoIterator<Item = Body>, ends: bool) -> bool {
        let Some(entry) = self.sends(stream) else { return false };
        entry.outgoing.extend(body.into_iter().filter(|piece| !piece.is_empty()));
        entry.ends = ends;
        true
    }

    /// Sends the first `size` octets of a filler, and nothing after them: as little memory for any size. False: there is no
    /// such stream (any more).
    pub fn send_filler(&mut self, stream: u32, source: u32, size: u64) -> bool {
        let Some(entry) = self.sends(stream) else { return false };
        entry.filler = LongFiller::new(source, size);
        entry.refill();
        entry.ends = true;
        true
    }

    fn sends(&mut self, stream: u32) -> Option<&mut Stream> {
        self.streams.get_mut(&stream).filter(|entry| entry.speaks() && !entry.ends)
    }

    /// Gives a stream up.
    pub fn reset(&mut self, stream: u32, code: ErrorCode) {
        if self.streams.remove(&stream).is_some() {
            self.say_reset(stream, code);
        }
    }

    /// Streams that are open or half closed.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Does it take no new streams, or nothing at all any more?
    pub fn is_closing(&self) -> bool {
        self.is_going || self.has_failed
    }

    /// Are the next octets of [`poll_transmit`](Self::poll_transmit) those of a body, and no header or frame of another kind?
    pub fn is_in_body(&self) -> bool {
        self.rest.is_some()
    }

    /// The next octets to write, whole. What to send is decided when this is called: call it when there is room.
    pub fn poll_transmit(&mut self) -> Option<Body> {
        if let Some(rest) = self.rest.take() {
            return Some(rest);
        }
        if let Some((octets, is_answer)) = self.control.pop_front() {
            self.waiting -= octets.len();
            if is_answer {
                self.owed -= octets.len();
            }
            return Some(Body::Real(octets));
        }
        self.data()
    }

    /// The header of the next DATA frame; its octets follow.
    fn data(&mut self) -> Option<Body> {
        let room = self.send.room();
        let number = self.choose(room)?;
        let stream = self.streams.get_mut(&number)?;
        let most = room.min(stream.send.room()).min(self.peer.max_frame_size).min(LEAST_MAX_FRAME);
        let piece = match stream.outgoing.front_mut() {
            Some(first) => first.split_to(most as usize),
            None => Body::EMPTY,
        };
        if stream.outgoing.front().is_some_and(Body::is_empty) {
            stream.outgoing.pop_front();
        }
        stream.refill();
        let length = piece.len() as u32;
        let ends = stream.ends && stream.outgoing.is_empty();
        stream.send.sent(length);
        self.send.sent(length);
        self.budget.useful(piece.len());
        if stream.priority.incremental {
            self.turn = number;
        }
        let closed = ends && {
            stream.ends = false;
            stream.local_ended()
        };
        if closed {
            self.close(number);
        }
        let flags = if ends { flag::END_STREAM } else { 0 };
        let header = Header { length, kind: kind::DATA, flags, stream: number };
        self.rest = Some(piece).filter(|piece| !piece.is_empty());
        Some(Body::Real(Bytes::copy_from_slice(&header.emit())))
    }

    /// The stream whose DATA goes next.
    fn choose(&self, room: u32) -> Option<u32> {
        let ready = self.streams.iter().filter(|(_, stream)| stream.can_send(room));
        //= RFC 9218 (10): the most urgent first; of those, one after another in their order, and incremental ones in turn.
        // Among equals of both kinds those that are of use only as a whole go first.
        let place = |(number, stream): (&u32, &Stream)| {
            let Priority { urgency, incremental } = stream.priority;
            let had_its_turn = incremental && *number <= self.turn;
            (urgency, incremental, had_its_turn, *number)
        };
        ready.map(place).min().map(|(.., number)| number)
    }

    /// A whole frame that goes before DATA.
    pub(super) fn control(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8], is_answer: bool) {
        let header = Header { length: payload.len() as u32, kind, flags, stream };
        let mut octets = Vec::with_capacity(HEADER + payload.len());
        octets.extend_from_slice(&header.emit());
        octets.extend_from_slice(payload);
        self.wait(octets.into(), is_answer);
    }

    fn wait(&mut self, octets: Bytes, is_answer: bool) {
        self.waiting += octets.len();
        if is_answer {
            self.owed += octets.len();
        }
        self.control.push_back((octets, is_answer));
    }

    /// HEADERS and as many CONTINUATIONs as it takes. Blocks are written in the order in which they are sent.
    pub(super) fn headers(&mut self, stream: u32, lines: &[Line], ends: bool) {
        let block = self.writer.write(lines.iter().map(|(name, value)| (&name[..], &value[..])));
        self.budget.useful(block.len());
        let most = self.peer.max_frame_size.min(LEAST_MAX_FRAME) as usize;
        let count = block.len().div_ceil(most).max(1);
        for (place, piece) in block.chunks(most).enumerate() {
            let kind = if place == 0 { kind::HEADERS } else { kind::CONTINUATION };
            let mut flags = if place + 1 == count { flag::END_HEADERS } else { 0 };
            if place == 0 && ends {
                flags |= flag::END_STREAM;
            }
            self.control(kind, flags, stream, piece, false);
        }
    }

    /// Both sides of a stream have ended.
    pub(super) fn close(&mut self, stream: u32) {
        if self.streams.remove(&stream).is_some() {
            self.budget.completed();
        }
    }

    /// The number of streams of ours that a peer may name.
    pub(super) fn opened(&self) -> u32 {
        self.next.saturating_sub(2)
    }
}

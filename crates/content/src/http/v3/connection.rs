//! One end of a connection: requests and responses in, octets of streams out.

use std::collections::{BTreeMap, VecDeque};

use airloom_base::Body;

use super::frame::{self, kind, role};
use super::log::{Frame, Logged};
use super::qpack::{Decoder, Encoder};
use super::stream::{Incoming, Sending, Stream};
use super::{Error, ErrorCode, Priority, Settings, varint};
use crate::http::budget::Budget;
use crate::http::fields::{self, Line};
use crate::http::filler::LongFiller;
use crate::http::message::{Fields, Method, RequestHead, ResponseHead};

/// What one end keeps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What it tells the other.
    pub settings: Settings,
    /// Octets of the table that it writes field sections with, if the peer allows for as many; 0 uses the static table alone.
    pub table: u32,
    /// `https`, or `http` where nothing is encrypted: of a client's requests.
    pub scheme: &'static str,
}

impl Default for Options {
    fn default() -> Self {
        let settings = Settings { max_field_section_size: Some(16_384), ..Settings::default() };
        Options { settings, table: 0, scheme: "https" }
    }
}

impl Options {
    /// Those of an end whose table has so many octets, and for whose entries so many streams may wait; its own field sections
    /// use as much of the peer's.
    pub fn with_table(octets: u32, blocked: u16) -> Options {
        let usual = Options::default();
        let settings = Settings {
            qpack_max_table_capacity: octets.into(),
            qpack_blocked_streams: blocked.into(),
            ..usual.settings
        };
        Options { settings, table: octets, ..usual }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client asks (servers only).
    Request(u64, RequestHead),
    /// The server says something before its answer: 1xx (clients only).
    Interim(u64, ResponseHead),
    /// The server answers (clients only).
    Response(u64, ResponseHead),
    /// A piece of the body.
    Data(u64, Body),
    /// The peer's message is complete; these are its trailers.
    End(u64, Fields),
    /// The stream is over before its time, by the peer or because it broke a rule.
    Reset(u64, ErrorCode),
    /// The client says that the answer on this stream has another priority now (servers only).
    Priority(u64, Priority),
    /// What this stream waited for has come: there may be more to read of it (see [`Connection::waits`]).
    Unblocked(u64),
    /// The peer takes no new requests. Those of ours that it will not work on are reset with H3_REQUEST_REJECTED.
    GoAway(u64),
    /// The connection is to be closed: with the code, if it is [`Error::Connection`].
    Failed(Error),
}

/// What the transport is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// Write these octets to a stream, and finish it behind them if `ends` and all were taken.
    Write {
        /// Where.
        stream: u64,
        /// What.
        body: Body,
        /// Nothing follows.
        ends: bool,
    },
    /// Give up our side of a stream (RESET_STREAM).
    Reset(u64, ErrorCode),
    /// Read no more of a stream (STOP_SENDING).
    Stop(u64, ErrorCode),
}

/// Which of our own streams, in the order in which they were given.
const CONTROL: usize = 0;
const ENCODER: usize = 1;
const DECODER: usize = 2;
/// What logs call them, and those of the peer's.
pub(super) const PURPOSES: [&str; 3] = ["control", "qpack_encode", "qpack_decode"];

/// One end of a connection.
#[derive(getset::CopyGetters)]
pub struct Connection {
    pub(super) is_server: bool,
    pub(super) options: Options,
    pub(super) events: VecDeque<Event>,
    pub(super) peer: Settings,
    pub(super) has_settings: bool,
    pub(super) reader: Decoder,
    pub(super) writer: Encoder,
    pub(super) streams: BTreeMap<u64, Stream>,
    /// Streams of the peer's that go one way.
    pub(super) incoming: BTreeMap<u64, Incoming>,
    /// Which roles they have taken.
    pub(super) roles: [bool; 3],
    /// The next stream that the peer would ask on.
    pub(super) next: u64,
    pub(super) budget: Budget,
    /// Priorities of streams that are not open yet.
    pub(super) early: BTreeMap<u64, Priority>,
    /// The last number of the peer's GOAWAY.
    pub(super) their_last: Option<u64>,
    /// The highest push that the peer would take.
    pub(super) max_push: u64,
    /// Our streams that go one way, and what waits for them.
    own: [(Option<u64>, Sending); 3],
    /// Which of them have begun.
    begun: [bool; 3],
    /// What goes before octets.
    actions: VecDeque<Transmit>,
    /// Octets of bodies that the transport has taken.
    #[getset(get_copy = "pub")]
    body_octets: u64,
    /// The incremental stream that was served last.
    turn: u64,
    /// No request and no answer has anything to send, until something is added: they need not be asked one by one.
    rests: bool,
    /// No new requests: of ours since the peer's GOAWAY, of the peer's since ours.
    pub(super) is_going: bool,
    pub(super) has_failed: bool,
    /// What was done, if somebody wants to know.
    log: Option<Vec<Logged>>,
}

impl Connection {
    /// The end that asks.
    pub fn client(options: Options) -> Self {
        Connection::new(false, options)
    }

    /// The end that answers.
    pub fn server(options: Options) -> Self {
        Connection::new(true, options)
    }

    /// Writes down what it does from now on, for [`logged`](Self::logged) to take.
    pub fn keep_log(&mut self) {
        self.log.get_or_insert_default();
    }

    /// What it has done since this was asked last, in order.
    pub fn logged(&mut self) -> Vec<Logged> {
        self.log.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Writes down what `what` says, if anything is written down.
    pub(super) fn note(&mut self, what: impl FnOnce() -> Option<Logged>) {
        if let Some(log) = &mut self.log {
            log.extend(what());
        }
    }

    /// Three streams were opened for it that go one way: nothing leaves before that.
    pub fn begin(&mut self, own: [u64; 3]) {
        for ((stream, _), opened) in self.own.iter_mut().zip(own) {
            *stream = Some(opened);
        }
        let (begun, settings) = (self.begun, self.options.settings);
        for (place, stream) in own.into_iter().enumerate().filter(|(place, _)| begun[*place]) {
            self.note(|| Some(Logged::Stream { stream, purpose: PURPOSES[place], is_ours: true }));
        }
        self.note(|| Some(Logged::Settings { settings, is_ours: true }));
        self.note(|| Logged::control(own[CONTROL], kind::SETTINGS, &settings.emit(), true));
    }

    /// Was it given streams?
    pub fn is_begun(&self) -> bool {
        self.own[CONTROL].0.is_some()
    }

    fn new(is_server: bool, options: Options) -> Self {
        let settings = options.settings;
        let most = settings.max_field_section_size.and_then(|most| usize::try_from(most).ok());
        let (table, blocked) = (settings.qpack_max_table_capacity, settings.qpack_blocked_streams);
        let mut connection = Connection {
            is_server,
            options,
            events: VecDeque::new(),
            peer: Settings::default(),
            has_settings: false,
            reader: Decoder::new(table, blocked, most.unwrap_or(usize::MAX)),
            writer: Encoder::new(options.table),
            streams: BTreeMap::new(),
            incoming: BTreeMap::new(),
            roles: [false; 3],
            next: 0,
            budget: Budget::default(),
            early: BTreeMap::new(),
            their_last: None,
            max_push: 0,
            own: [const { None }; 3].map(|stream| (stream, Sending::default())),
            begun: [true, false, false],
            actions: VecDeque::new(),
            body_octets: 0,
            turn: 0,
            rests: false,
            is_going: false,
            has_failed: false,
            log: None,
        };
        //= RFC 9114 (6.2.1): each side opens a control stream, and settings are its first frame.
        let mut begin = Vec::new();
        varint::emit(role::CONTROL, &mut begin);
        begin.extend(frame::emit(kind::SETTINGS, &settings.emit()));
        connection.own[CONTROL].1.push(begin);
        connection
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What came of the peer's doing: a stream breaks off, or the connection. And what the tables have to say is passed on.
    pub(super) fn settle(&mut self, result: Result<(), Error>) {
        match result {
            Ok(()) => {}
            Err(Error::Stream(stream, code)) => {
                if let Err(error) = self.break_off(stream, code) {
                    self.fail(error);
                }
            }
            Err(error) => self.fail(error),
        }
        self.answer();
    }

    /// Passes on what the reader of the peer's tables has to say, when all that it said before has left. Until then a number says how
    /// many entries have come, and the rest is bounded.
    fn answer(&mut self) {
        if !self.reader.has_answers() {
            return;
        }
        if !self.own[DECODER].1.waits() {
            let instructions = self.reader.instructions();
            self.instruct(DECODER, role::DECODER, instructions);
        } else if let Err(excess) = Budget::owes(self.reader.owes()) {
            self.fail(excess.into());
        }
    }

    pub(super) fn fail(&mut self, error: Error) {
        if !std::mem::replace(&mut self.has_failed, true) {
            self.streams.clear();
            self.incoming.clear();
            self.actions.clear();
            self.events.push_back(Event::Failed(error));
        }
    }

    /// Instructions go on a stream that is begun when there are any.
    //= RFC 9204 (4.2): an end that has nothing to say on its encoder or decoder stream may leave it out.
    fn instruct(&mut self, place: usize, role: u64, instructions: Vec<u8>) {
        if instructions.is_empty() {
            return;
        }
        let (stream, sending) = &mut self.own[place];
        let stream = *stream;
        let begins = !std::mem::replace(&mut self.begun[place], true);
        if begins {
            sending.push(vec![role as u8]);
        }
        sending.push(instructions);
        if begins {
            self.note(|| Some(Logged::Stream { stream: stream?, purpose: PURPOSES[place], is_ours: true }));
        }
    }

    /// The peer's settings have come: field sections may use its table.
    pub(super) fn allow(&mut self) {
        self.writer.allow(self.peer.qpack_max_table_capacity, self.peer.qpack_blocked_streams);
        let instructions = self.writer.instructions();
        self.instruct(ENCODER, role::ENCODER, instructions);
    }

    /// Takes no new requests, and tells the peer. Those that are there come to their end.
    pub fn go_away(&mut self) {
        if !std::mem::replace(&mut self.is_going, true) {
            let mut payload = Vec::new();
            //= RFC 9114 (5.2): a server says the first request that it does not take, a client the first push.
            varint::emit(if self.is_server { self.next } else { 0 }, &mut payload);
            let stream = self.own[CONTROL].0;
            self.own[CONTROL].1.push(frame::emit(kind::GOAWAY, &payload));
            self.note(|| Logged::control(stream?, kind::GOAWAY, &payload, true));
        }
    }

    /// Asks for something, on a stream that the transport has opened both ways. A body follows by `send` unless `ends`. False:
    /// the peer takes no more requests.
    pub fn request(&mut self, stream: u64, head: &RequestHead, priority: Priority, ends: bool) -> bool {
        if self.is_server || self.is_going || self.has_failed {
            return false;
        }
        let is_head = head.method == Method::Head;
        self.streams.insert(stream, Stream { is_head, priority, ..Stream::default() });
        self.note(|| Some(Logged::Stream { stream, purpose: "request", is_ours: true }));
        let mut lines = fields::of_request(head, self.options.scheme);
        if let Some(text) = priority.text() {
            lines.push(("priority".into(), text.into()));
        }
        self.headers(stream, &lines, ends);
        true
    }

    /// Answers. A body follows by `send` unless `ends`. Interim heads (1xx) never end anything. False: there is no such
    /// stream (any more).
    pub fn respond(&mut self, stream: u64, head: &ResponseHead, ends: bool) -> bool {
        let Some(entry) = self.sends(stream) else { return false };
        let is_final = head.status >= 200;
        entry.is_answered |= is_final;
        self.headers(stream, &fields::of_response(head), ends && is_final);
        true
    }

    /// Sends a body (or more of it); nothing follows if `ends`. False: there is no such stream (any more).
    pub fn send(&mut self, stream: u64, body: impl IntoIterator<Item = Body>, ends: bool) -> bool {
        let Some(entry) = self.sends(stream) else { return false };
        entry.sending.bodies.extend(body.into_iter().filter(|piece| !piece.is_empty()));
        entry.sending.ends = ends;
        true
    }

    /// Sends the first `size` octets of a filler, and nothing after them: as little memory for any size. False: there is no
    /// such stream (any more).
    pub fn send_filler(&mut self, stream: u64, source: u32, size: u64) -> bool {
        let Some(entry) = self.sends(stream) else { return false };
        entry.sending.filler = LongFiller::new(source, size);
        entry.sending.refill();
        entry.sending.ends = true;
        true
    }

    fn sends(&mut self, stream: u64) -> Option<&mut Stream> {
        self.rests = false;
        self.streams.get_mut(&stream).filter(|entry| entry.speaks && !entry.sending.ends)
    }

    /// Gives a stream up.
    pub fn reset(&mut self, stream: u64, code: ErrorCode) {
        self.give_up(stream, code, code);
        self.settle(Ok(()));
    }

    /// Both sides of a stream are over, as far as they were not: ours with one code, the peer's with another.
    pub(super) fn give_up(&mut self, stream: u64, ours: ErrorCode, theirs: ErrorCode) -> Option<Stream> {
        let entry = self.streams.remove(&stream)?;
        if entry.speaks {
            self.actions.push_back(Transmit::Reset(stream, ours));
        }
        if entry.hears {
            if !entry.has_ended {
                self.actions.push_back(Transmit::Stop(stream, theirs));
            }
            //= RFC 9204 (2.2.2.2): a stream that is given up may have had sections that are not read.
            self.reader.cancel(stream);
        }
        Some(entry)
    }

    pub(super) fn act(&mut self, action: Transmit) {
        self.actions.push_back(action);
    }

    /// How urgent what is sent on this stream is, for a transport that heeds it, too.
    pub fn priority(&self, stream: u64) -> Option<Priority> {
        self.streams.get(&stream).map(|entry| entry.priority)
    }

    /// Requests that are not done with.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Does this stream wait for entries of the table? Then nothing more should be read of it until [`Event::Unblocked`], so that
    /// the transport holds the peer back.
    pub fn waits(&self, stream: u64) -> bool {
        self.streams.get(&stream).is_some_and(|entry| entry.blocked.is_some())
    }

    /// Is something still to be sent on this stream?
    pub fn is_sending(&self, stream: u64) -> bool {
        self.streams.get(&stream).is_some_and(|entry| entry.sending.waits())
    }

    /// Does it take no new requests, or nothing at all any more?
    pub fn is_closing(&self) -> bool {
        self.is_going || self.has_failed
    }

    /// Have the peer's settings come?
    pub fn has_begun(&self) -> bool {
        self.has_settings
    }

    /// What the transport is to do next. After [`Transmit::Write`] it says by [`written`](Self::written) how much it took. What
    /// to send is decided when this is called.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        if let Some(action) = self.actions.pop_front() {
            return Some(action);
        }
        if self.has_failed || !self.is_begun() {
            return None;
        }
        if let Some((Some(stream), sending)) = self.own.iter_mut().find(|(_, sending)| sending.can_send()) {
            let (body, ends) = sending.offer();
            return Some(Transmit::Write { stream: *stream, body, ends });
        }
        if self.rests {
            return None;
        }
        let Some(stream) = self.choose() else {
            self.rests = true;
            return None;
        };
        let entry = self.streams.get_mut(&stream)?;
        let (body, ends) = entry.sending.offer();
        if entry.priority.incremental {
            self.turn = stream;
        }
        if let Some(length) = entry.sending.begun.take() {
            self.note(|| Some(Logged::Frame { stream, frame: Frame::Data, length, is_ours: true }));
        }
        Some(Transmit::Write { stream, body, ends })
    }

    /// The stream whose octets go next.
    fn choose(&self) -> Option<u64> {
        let ready = self.streams.iter().filter(|(_, entry)| entry.speaks && entry.sending.can_send());
        //= RFC 9218 (10): the most urgent first; of those, one after another in their order, and incremental ones in turn.
        // Heads and ends go before all: they are small, and much may follow from them. Among equals of both kinds those that are of
        // use only as a whole go first.
        let place = |(stream, entry): (&u64, &Stream)| {
            let Priority { urgency, incremental } = entry.priority;
            let had_its_turn = incremental && *stream <= self.turn;
            (!entry.sending.is_short(), urgency, incremental, had_its_turn, *stream)
        };
        ready.map(place).min().map(|(.., stream)| stream)
    }

    /// The transport took so many octets of the last [`Transmit::Write`] to this stream. If that is less than was offered, nothing
    /// is offered until [`writable`](Self::writable).
    pub fn written(&mut self, stream: u64, taken: usize) {
        if let Some((_, sending)) = self.own.iter_mut().find(|(own, _)| *own == Some(stream)) {
            sending.written(taken);
            self.answer();
            return;
        }
        let Some(entry) = self.streams.get_mut(&stream) else { return };
        self.budget.useful(taken);
        self.body_octets += entry.sending.of_body(taken);
        if entry.sending.written(taken) {
            entry.speaks = false;
            entry.sending.ends = false;
            if !entry.hears {
                self.close(stream);
            }
        }
    }

    /// The transport takes octets of this stream again.
    pub fn writable(&mut self, stream: u64) {
        self.rests = false;
        let own = self.own.iter_mut().find(|(own, _)| *own == Some(stream)).map(|(_, sending)| sending);
        if let Some(sending) = own.or_else(|| self.streams.get_mut(&stream).map(|entry| &mut entry.sending)) {
            sending.is_blocked = false;
        }
    }

    /// Is this one of the streams that we have opened one way?
    pub(super) fn is_own(&self, stream: u64) -> bool {
        self.own.iter().any(|(own, _)| *own == Some(stream))
    }

    /// A head, or trailers.
    pub(super) fn headers(&mut self, stream: u64, lines: &[Line], ends: bool) {
        let block = self.writer.write(stream, lines);
        let instructions = self.writer.instructions();
        self.instruct(ENCODER, role::ENCODER, instructions);
        self.budget.useful(block.len());
        let length = block.len() as u64;
        self.note(|| {
            Some(Logged::Frame { stream, frame: Frame::Headers(lines.to_vec()), length, is_ours: true })
        });
        self.rests = false;
        if let Some(entry) = self.streams.get_mut(&stream) {
            entry.sending.push_head(frame::emit(kind::HEADERS, &block));
            entry.sending.ends = ends;
        }
    }

    /// Both sides of a stream have ended.
    pub(super) fn close(&mut self, stream: u64) {
        if self.streams.remove(&stream).is_some() {
            self.budget.completed();
        }
    }
}

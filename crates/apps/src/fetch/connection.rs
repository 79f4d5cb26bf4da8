//! One connection to an origin: a request out, its answer in, again.

use std::collections::VecDeque;
use std::net::SocketAddr;

use airloom_base::{Body, Cx, Instant, SocketId, Sockets};
use airloom_content::http::message::{RequestHead, ResponseHead, Version};
use airloom_content::http::v1::{BodyLength, Item, Limits, Receiver, ResponseReader, persists};
use bytes::{Buf, Bytes};

use super::{FetchId, FetchRequest, Fetched};

/// Octets that are taken from a stream at a time: what was filler becomes octets here.
const PIECE: usize = 65_536;

/// A request that waits for a connection or was given to one.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) id: FetchId,
    pub(super) request: FetchRequest,
    /// It was sent before, on a connection that failed without a word.
    pub(super) again: bool,
}

/// What reading led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing more for now.
    None,
    /// The answer is complete.
    Complete,
    /// What came is no HTTP, or was broken off.
    Broken,
    /// The origin has closed a connection that waited for nothing.
    Ended,
}

/// One connection.
#[derive(getset::CopyGetters)]
pub(super) struct Connection {
    pub(super) socket: SocketId,
    pub(super) to: SocketAddr,
    /// What is being asked on it.
    pub(super) order: Option<Order>,
    /// Something of the answer has come.
    pub(super) answered: bool,
    /// An answer was complete on it before.
    pub(super) used: bool,
    /// When to close it, if it waits for nothing.
    pub(super) idle_until: Option<Instant>,
    /// It was open.
    pub(super) was_opened: bool,
    keep_alive: bool,
    /// Will it carry another exchange?
    #[getset(get_copy = "pub(super)")]
    persists: bool,
    reader: ResponseReader,
    unsent: VecDeque<Bytes>,
}

impl Connection {
    /// One that is being opened.
    pub(super) fn new(socket: SocketId, to: SocketAddr, keep_alive: bool) -> Connection {
        Connection {
            socket,
            to,
            order: None,
            answered: false,
            used: false,
            idle_until: None,
            was_opened: false,
            keep_alive,
            persists: keep_alive,
            reader: ResponseReader::new(Limits::default()),
            unsent: VecDeque::new(),
        }
    }

    /// Sends a request.
    pub(super) fn ask(&mut self, cx: &mut Cx, net: &mut dyn Sockets, order: Order) {
        let request = &order.request;
        let query = request.url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let target = format!("{}{query}", request.url.path());
        let mut fields = request.fields.clone();
        if !self.keep_alive {
            fields.push("Connection", "close");
        }
        let method = request.method.clone();
        let head = RequestHead { method, target: target.into(), version: Version::Http11, fields };
        let mut octets = Vec::with_capacity(512);
        head.emit(&mut octets);
        self.unsent.push_back(octets.into());
        self.unsent.push_back(request.body.clone());
        self.reader.expect(head.method);
        (self.answered, self.idle_until, self.order) = (false, None, Some(order));
        self.write(cx, net);
    }

    /// It is open now.
    pub(super) fn opened(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.was_opened = true;
        self.write(cx, net);
    }

    /// Writes what there is room for.
    pub(super) fn write(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        while let Some(first) = self.unsent.front_mut().filter(|_| self.was_opened) {
            let taken = net.write(cx, self.socket, Body::Real(first.clone())).unwrap_or(0);
            first.advance(taken.min(first.len()));
            if !first.is_empty() {
                return;
            }
            self.unsent.pop_front();
        }
    }

    /// Reads what has come.
    pub(super) fn read(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        told: &mut VecDeque<(FetchId, Fetched)>,
    ) -> Progress {
        let mut complete = false;
        loop {
            match self.reader.poll() {
                // To the end, whatever was found: only then the host tells of more.
                Ok(None) => match net.read(cx, self.socket, PIECE) {
                    Some(body) => self.reader.feed(body),
                    None if complete => return Progress::Complete,
                    None => return Progress::None,
                },
                Ok(Some(item)) => complete |= self.item(item, told),
                // Behind a complete answer: nobody asked for it.
                Err(_) if complete => {
                    self.persists = false;
                    return Progress::Complete;
                }
                Err(_) => return Progress::Broken,
            }
        }
    }

    /// The origin sends no more.
    pub(super) fn peer_finished(&mut self, told: &mut VecDeque<(FetchId, Fetched)>) -> Progress {
        self.persists = false;
        let waited = self.order.is_some();
        let complete = match self.reader.finish() {
            Ok(Some(item)) => self.item(item, told),
            Ok(None) => false,
            Err(_) => return Progress::Broken,
        };
        match (complete, waited) {
            (true, _) => Progress::Complete,
            (false, true) => Progress::Broken,
            (false, false) => Progress::Ended,
        }
    }

    /// Tells the gateway what was read; says whether the answer is complete.
    fn item(&mut self, item: Item<ResponseHead>, told: &mut VecDeque<(FetchId, Fetched)>) -> bool {
        let Some(id) = self.order.as_ref().map(|order| order.id) else { return false };
        self.answered = true;
        match item {
            Item::Interim(_) => false,
            Item::Head(head, framing) => {
                self.persists &= self.keep_alive
                    && !framing.must_close
                    && framing.length != BodyLength::UntilClose
                    && persists(head.version, &head.fields, Receiver::Client);
                told.push_back((id, Fetched::Head { status: head.status, fields: head.fields }));
                false
            }
            Item::Data(body) => {
                told.push_back((id, Fetched::Chunk(body.to_bytes())));
                false
            }
            Item::End(_) => {
                self.order = None;
                self.used = true;
                // A request that was answered before it was sent completely leaves octets that belong to no other.
                self.persists &= self.unsent.is_empty();
                told.push_back((id, Fetched::End));
                true
            }
        }
    }
}

//! One connection of the client: requests on their way out, responses on their way in.

use std::collections::VecDeque;

use airloom_base::{Body, Cx, Instant, SocketId, Sockets};
use airloom_content::http::message::{Method, ResponseHead};
use airloom_content::http::v1::{
    BodyLength, Error, Framing, Item, Limits, Receiver, ResponseReader, persists,
};
use bytes::{Buf, Bytes};

use crate::pages::Job;

/// A request and what has come of it.
pub(super) struct Exchange {
    pub(super) job: Job,
    pub(super) asked: Instant,
    pub(super) first_byte: Option<Instant>,
    pub(super) status: u16,
    /// Octets of the body so far.
    pub(super) got: u64,
}

/// What reading led to.
pub(super) enum Progress {
    /// Nothing more for now.
    None,
    /// A response is complete.
    Complete(Exchange),
    /// What came is not HTTP, or broken off.
    Broken,
}

/// One connection.
pub(super) struct Connection {
    pub(super) socket: SocketId,
    opened: bool,
    reader: ResponseReader,
    unsent: VecDeque<Bytes>,
    /// Requests without a complete response, in order.
    waiting: VecDeque<Exchange>,
    /// Responses that were complete.
    pub(super) completed: u32,
    /// Will it carry another exchange, as far as is known?
    persists: bool,
    /// When to give it up.
    pub(super) deadline: Instant,
}

impl Connection {
    /// A connection that is being opened; `persists` if it is to carry more than one exchange.
    pub(super) fn new(socket: SocketId, persists: bool, deadline: Instant) -> Self {
        Connection {
            socket,
            opened: false,
            reader: ResponseReader::new(Limits::default()),
            unsent: VecDeque::new(),
            waiting: VecDeque::new(),
            completed: 0,
            persists,
            deadline,
        }
    }

    /// How many requests wait for their response.
    pub(super) fn load(&self) -> usize {
        self.waiting.len()
    }

    /// May another request be put behind those that wait? `depth` is the most that may wait at a time.
    pub(super) fn takes_more(&self, depth: usize) -> bool {
        //= RFC 2616 (8.1.2.2): a client pipelines only once it knows that the connection persists, and not right
        //= after a failure: here, after the first response of the connection.
        let allowed = if self.completed > 0 { depth } else { 1 };
        self.persists && self.waiting.len() < allowed
    }

    /// Asks for something.
    pub(super) fn ask(&mut self, cx: &mut Cx, net: &mut dyn Sockets, job: Job, request: Bytes) {
        self.reader.expect(Method::Get);
        self.unsent.push_back(request);
        self.waiting.push_back(Exchange { job, asked: cx.now, first_byte: None, status: 0, got: 0 });
        self.write(cx, net);
    }

    /// It is open now.
    pub(super) fn opened(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.opened = true;
        self.write(cx, net);
    }

    /// Writes what there is room for.
    pub(super) fn write(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        while let Some(first) = self.unsent.front_mut().filter(|_| self.opened) {
            let taken = net.write(cx, self.socket, Body::Real(first.clone()));
            first.advance(taken.min(first.len()));
            if !first.is_empty() {
                return;
            }
            self.unsent.pop_front();
        }
    }

    /// Reads up to the end of the next response.
    pub(super) fn read(&mut self, cx: &mut Cx, net: &mut dyn Sockets) -> Progress {
        loop {
            match self.reader.poll() {
                Ok(None) => match net.read(cx, self.socket, usize::MAX) {
                    Some(body) => self.reader.feed(body),
                    None => return Progress::None,
                },
                Ok(Some(item)) => {
                    if let Some(exchange) = self.item(cx, item) {
                        return Progress::Complete(exchange);
                    }
                }
                Err(_) => return Progress::Broken,
            }
        }
    }

    /// The server sends no more: was that the end of a response, or did it break one off?
    pub(super) fn peer_finished(&mut self, cx: &mut Cx) -> Progress {
        self.persists = false;
        match self.reader.finish() {
            Ok(None) => Progress::None,
            Ok(Some(item)) => self.item(cx, item).map_or(Progress::None, Progress::Complete),
            Err(Error::Incomplete | _) => Progress::Broken,
        }
    }

    fn item(&mut self, cx: &Cx, item: Item<ResponseHead>) -> Option<Exchange> {
        let exchange = self.waiting.front_mut()?;
        exchange.first_byte.get_or_insert(cx.now);
        match item {
            Item::Interim(_) => None,
            Item::Head(head, framing) => {
                exchange.status = head.status;
                self.persists &= lives_on(&head, framing);
                None
            }
            Item::Data(body) => {
                exchange.got += body.len() as u64;
                None
            }
            Item::End(_) => {
                self.completed += 1;
                self.waiting.pop_front()
            }
        }
    }

    /// Will it carry another exchange, as far as is known?
    pub(super) fn persists(&self) -> bool {
        self.persists
    }

    /// The requests that were not answered, in order, and whether the first one is to blame for the failure.
    pub(super) fn unanswered(self) -> (VecDeque<Exchange>, bool) {
        let blame = self.completed == 0 || self.waiting.front().is_some_and(|e| e.first_byte.is_some());
        (self.waiting, blame)
    }
}

fn lives_on(head: &ResponseHead, framing: Framing) -> bool {
    !framing.must_close
        && framing.length != BodyLength::UntilClose
        && persists(head.version, &head.fields, Receiver::Client)
}

//! One stream of a connection: requests on their way out, responses on their way in.

use std::collections::VecDeque;

use airloom_base::{Body, Cx, Instant, SocketId, Sockets};
use airloom_content::http::alt_svc::{self, AltSvc};
use airloom_content::http::message::{Method, RequestHead, ResponseHead};
use airloom_content::http::v1::{BodyLength, Framing, Item, Limits, Receiver, ResponseReader, persists};
use airloom_content::http::v2::Priority;
use bytes::{Buf, Bytes};

use crate::pages::Job;

/// A request and what has come of it.
pub(super) struct Exchange {
    pub(super) job: Job,
    pub(super) asked: Instant,
    /// Which request of its connection it is, from 1.
    pub(super) request: u32,
    /// Is it a POST?
    pub(super) posts: bool,
    pub(super) first_byte: Option<Instant>,
    pub(super) status: u16,
    /// Octets of the body so far.
    pub(super) got: u64,
    /// Is it of interest where else the server is?
    pub(super) follows: bool,
    /// What the response says of that.
    pub(super) alternatives: Option<AltSvc>,
}

impl Exchange {
    /// Nothing has come of the request yet.
    pub(super) fn new(now: Instant, number: u32, job: Job, asked: &Request) -> Exchange {
        Exchange {
            job,
            asked: now,
            request: number,
            posts: asked.posts,
            first_byte: None,
            status: 0,
            got: 0,
            follows: asked.follows,
            alternatives: None,
        }
    }

    /// The head of the response is there.
    pub(super) fn heard(&mut self, head: &ResponseHead) {
        self.status = head.status;
        if self.follows {
            self.alternatives = alt_svc::of_response(&head.fields);
        }
    }
}

/// A request to be sent.
pub(super) struct Request {
    /// Its head.
    pub(super) head: RequestHead,
    /// What is posted.
    pub(super) form: Bytes,
    /// Is it a POST?
    pub(super) posts: bool,
    /// How urgent it is; HTTP/1 has no word for that.
    pub(super) priority: Priority,
    /// Is it of interest where else the server is?
    pub(super) follows: bool,
}

impl Request {
    /// The octets of the request in HTTP/1.
    fn octets(self) -> Bytes {
        let mut octets = Vec::with_capacity(128 + self.form.len());
        self.head.emit(&mut octets);
        octets.extend_from_slice(&self.form);
        octets.into()
    }
}

/// What reading led to.
pub(super) enum Progress {
    /// Nothing more for now.
    None,
    /// A response is complete.
    Complete(Exchange),
    /// One exchange is over without a response, and the others go on (HTTP/2). True: it is to blame.
    Lost(Exchange, bool),
    /// What came is not HTTP, or broken off.
    Broken,
}

/// One stream: TCP has one, an association several.
pub(super) struct Lane {
    socket: SocketId,
    reader: ResponseReader,
    unsent: VecDeque<Bytes>,
    /// Requests without a complete response, in order.
    waiting: VecDeque<Exchange>,
    /// Requests so far.
    pub(super) asked: u64,
    /// It lasts as long as its association, whatever version of HTTP is spoken.
    lasts: bool,
    /// Has a response said that nothing follows it?
    pub(super) is_last: bool,
}

impl Lane {
    /// The stream that `socket` stands for; `lasts`: of an association.
    pub(super) fn new(socket: SocketId, lasts: bool) -> Self {
        Lane {
            socket,
            lasts,
            reader: ResponseReader::new(Limits::default()),
            unsent: VecDeque::new(),
            waiting: VecDeque::new(),
            asked: 0,
            is_last: false,
        }
    }

    /// How many requests wait for their response.
    pub(super) fn load(&self) -> usize {
        self.waiting.len()
    }

    /// Is the response to a POST waited for?
    pub(super) fn posts(&self) -> bool {
        self.waiting.iter().any(|exchange| exchange.posts)
    }

    /// The number of the stream.
    pub(super) fn stream(&self) -> u32 {
        self.socket.stream
    }

    /// Puts a request behind those that wait.
    pub(super) fn ask(&mut self, now: Instant, number: u32, job: Job, asked: Request) {
        self.asked += 1;
        self.reader.expect(if asked.posts { Method::Post } else { Method::Get });
        self.waiting.push_back(Exchange::new(now, number, job, &asked));
        self.unsent.push_back(asked.octets());
    }

    /// Writes what there is room for.
    pub(super) fn write(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        while let Some(first) = self.unsent.front_mut() {
            let taken = net.write(cx, self.socket, Body::Real(first.clone())).unwrap_or(0);
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
                Ok(None) => {
                    // The head of a response may come in pieces.
                    if let Some(exchange) = self.waiting.front_mut()
                        && !self.reader.is_between_messages()
                    {
                        exchange.first_byte.get_or_insert(cx.now);
                    }
                    match net.read(cx, self.socket, usize::MAX) {
                        Some(body) => self.reader.feed(body),
                        None => return Progress::None,
                    }
                }
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
        match self.reader.finish() {
            Ok(None) => Progress::None,
            Ok(Some(item)) => self.item(cx, item).map_or(Progress::None, Progress::Complete),
            Err(_) => Progress::Broken,
        }
    }

    fn item(&mut self, cx: &Cx, item: Item<ResponseHead>) -> Option<Exchange> {
        let exchange = self.waiting.front_mut()?;
        exchange.first_byte.get_or_insert(cx.now);
        match item {
            Item::Interim(_) => None,
            Item::Head(head, framing) => {
                exchange.heard(&head);
                self.is_last |= !lives_on(&head, framing, self.lasts);
                None
            }
            Item::Data(body) => {
                exchange.got += body.len() as u64;
                None
            }
            Item::End(_) => self.waiting.pop_front(),
        }
    }

    /// The requests that were not answered, in order.
    pub(super) fn unanswered(self) -> VecDeque<Exchange> {
        self.waiting
    }
}

/// Does another response follow this one? A stream of an association needs nobody's consent to go on.
fn lives_on(head: &ResponseHead, framing: Framing, lasts: bool) -> bool {
    let goes_on = if lasts {
        !head.fields.list_has("connection", "close")
    } else {
        persists(head.version, &head.fields, Receiver::Client)
    };
    !framing.must_close && framing.length != BodyLength::UntilClose && goes_on
}

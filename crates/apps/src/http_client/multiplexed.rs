//! A connection of the client that speaks HTTP/2: all requests side by side on it.

use std::collections::BTreeMap;

use airloom_base::{Body, Cx, Instant, SocketId, Sockets};
use airloom_content::http::v2::{self, ErrorCode, Event, Options, Settings};

use super::Config;
use super::lane::{Asked, Exchange, Progress};
use crate::net::Pipe;
use crate::pages::Job;

/// One end of HTTP/2 and what was asked for on it.
pub(super) struct Multiplexed {
    end: v2::Connection,
    pipe: Pipe,
    /// Requests without a complete response, by their stream.
    waiting: BTreeMap<u32, Exchange>,
    /// Most requests at a time, if the server takes as many.
    most: usize,
}

impl Multiplexed {
    /// One on which nothing was asked for yet.
    pub(super) fn new(config: &Config) -> Self {
        let usual = Options::default();
        let settings = Settings { initial_window_size: config.h2_stream_window.0 as u32, ..usual.settings };
        // Nobody opens streams towards a client.
        let settings = Settings { max_concurrent_streams: None, ..settings };
        let connection_window = config.h2_conn_window.0 as u32;
        let scheme = config.scheme();
        let end = v2::Connection::client(Options { settings, connection_window, scheme });
        let most = usize::from(config.h2_streams);
        Multiplexed { end, pipe: Pipe::default(), waiting: BTreeMap::new(), most }
    }

    /// How many requests wait for their response.
    pub(super) fn load(&self) -> usize {
        self.waiting.len()
    }

    /// Does it take another request now?
    pub(super) fn has_room(&self) -> bool {
        !self.end.is_closing() && self.end.room() > 0 && self.waiting.len() < self.most
    }

    /// Will it take others, now or later?
    pub(super) fn persists(&self) -> bool {
        !self.end.is_closing()
    }

    /// Asks. `None` is what should be, else the request comes back: there was no room.
    pub(super) fn ask(&mut self, now: Instant, number: u32, job: Job, asked: Asked) -> Option<Job> {
        let Asked { head, form, posts, priority, .. } = asked;
        let Some(stream) = self.end.request(&head, priority, form.is_empty()) else { return Some(job) };
        if !form.is_empty() {
            self.end.send(stream, [Body::Real(form)], true);
        }
        let exchange =
            Exchange { job, asked: now, request: number, posts, first_byte: None, status: 0, got: 0 };
        self.waiting.insert(stream, exchange);
        None
    }

    /// Writes what there is room for.
    pub(super) fn write(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        self.pipe.write(cx, net, socket, &mut self.end);
    }

    /// Reads up to the end of the next response.
    pub(super) fn read(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) -> Progress {
        while let Some(event) = Pipe::read(cx, net, socket, &mut self.end) {
            let progress = self.happened(cx.now, event);
            if !matches!(progress, Progress::None) {
                self.write(cx, net, socket);
                return progress;
            }
        }
        // Windows that open again, acknowledgements.
        self.write(cx, net, socket);
        Progress::None
    }

    fn happened(&mut self, now: Instant, event: Event) -> Progress {
        match event {
            Event::Interim(stream, _) => {
                self.heard(now, stream);
            }
            Event::Response(stream, head) => {
                if let Some(exchange) = self.heard(now, stream) {
                    exchange.status = head.status;
                }
            }
            Event::Data(stream, body) => {
                if let Some(exchange) = self.heard(now, stream) {
                    exchange.got += body.len() as u64;
                }
            }
            Event::End(stream, _) => {
                if let Some(exchange) = self.waiting.remove(&stream) {
                    // The rest of a form is not wanted any more.
                    self.end.reset(stream, ErrorCode::NO_ERROR);
                    return Progress::Complete(exchange);
                }
            }
            Event::Reset(stream, code) => {
                if let Some(mut exchange) = self.waiting.remove(&stream) {
                    //= RFC 9113 (8.7): what was refused was not worked on and may be asked for again, a POST too.
                    let is_refused = code == ErrorCode::REFUSED_STREAM;
                    exchange.posts &= !is_refused;
                    return Progress::Lost(exchange, !is_refused);
                }
            }
            Event::Failed(_) => return Progress::Broken,
            Event::GoAway(_) | Event::Request(..) => {}
        }
        Progress::None
    }

    fn heard(&mut self, now: Instant, stream: u32) -> Option<&mut Exchange> {
        let exchange = self.waiting.get_mut(&stream)?;
        exchange.first_byte.get_or_insert(now);
        Some(exchange)
    }

    /// The requests that were not answered, in order.
    pub(super) fn unanswered(self) -> impl Iterator<Item = Exchange> {
        self.waiting.into_values()
    }
}

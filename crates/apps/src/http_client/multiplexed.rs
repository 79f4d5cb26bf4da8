//! A connection of the client that speaks HTTP/2 or 3: all requests side by side on it.

use std::collections::BTreeMap;

use airloom_base::{Cx, Instant, SocketEvent, SocketId, Sockets};
use airloom_content::http::{v2, v3};
use delegate::delegate;

use super::lane::{Exchange, Progress, Request};
use super::{Config, Http};
use crate::net::{End, Happened};
use crate::pages::Job;

/// One end and what was asked for on it.
pub(super) struct Multiplexed {
    end: End,
    /// Requests without a complete response, by their stream.
    waiting: BTreeMap<u32, Exchange>,
    /// Most requests at a time, if the server takes as many.
    most: usize,
}

impl Multiplexed {
    /// One on which nothing was asked for yet.
    pub(super) fn new(http: Http, config: &Config) -> Self {
        let end = if http == Http::Http3 {
            End::asking(v3::Options::with_table(config.qpack_table.0 as u32, config.qpack_blocked))
        } else {
            let usual = v2::Options::default();
            let settings = v2::Settings {
                initial_window_size: config.h2_stream_window.0 as u32,
                // Nobody opens streams towards a client.
                max_concurrent_streams: None,
                ..usual.settings
            };
            let connection_window = config.h2_conn_window.0 as u32;
            let scheme = config.scheme();
            End::two(v2::Connection::client(v2::Options { settings, connection_window, scheme }))
        };
        Multiplexed { end, waiting: BTreeMap::new(), most: usize::from(config.h2_streams) }
    }

    /// How many requests wait for their response.
    pub(super) fn load(&self) -> usize {
        self.waiting.len()
    }

    /// Does it take another request now?
    pub(super) fn has_room(&self) -> bool {
        self.end.has_room() && self.waiting.len() < self.most
    }

    /// Will it take others, now or later?
    pub(super) fn persists(&self) -> bool {
        !self.end.is_closing()
    }

    /// Asks. `None` is what should be, else the request comes back: there was no room.
    pub(super) fn ask(&mut self, now: Instant, number: u32, job: Job, asked: Request) -> Option<Job> {
        let exchange = Exchange::new(now, number, job, &asked);
        let Request { head, form, priority, .. } = asked;
        let Some(stream) = self.end.request(head, priority, form) else { return Some(job) };
        self.waiting.insert(stream, exchange);
        None
    }

    delegate! {
        to self.end {
            /// What an event of the connection or of one of its streams does.
            pub(super) fn on(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent);
            /// Ends the connection.
            pub(super) fn finish(&self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId);
            /// Ends it at once.
            pub(super) fn abort(&self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId);
            /// Writes what there is room for.
            pub(super) fn write(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId);
        }
    }

    /// Reads up to the end of the next response.
    pub(super) fn read(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) -> Progress {
        while let Some(happened) = self.end.poll(cx, net, socket) {
            let progress = self.happened(cx.now, happened);
            if !matches!(progress, Progress::None) {
                self.write(cx, net, socket);
                return progress;
            }
        }
        // Windows that open again, acknowledgements.
        self.write(cx, net, socket);
        Progress::None
    }

    fn happened(&mut self, now: Instant, happened: Happened) -> Progress {
        match happened {
            Happened::Interim(stream) => {
                self.heard(now, stream);
            }
            Happened::Response(stream, head) => {
                if let Some(exchange) = self.heard(now, stream) {
                    exchange.heard(&head);
                }
            }
            Happened::Data(stream, body) => {
                if let Some(exchange) = self.heard(now, stream) {
                    exchange.got += body.len() as u64;
                }
            }
            Happened::End(stream) => {
                if let Some(exchange) = self.waiting.remove(&stream) {
                    // The rest of a form is not wanted any more.
                    self.end.cancel(stream);
                    return Progress::Complete(exchange);
                }
            }
            Happened::Reset(stream, is_refused) => {
                if let Some(mut exchange) = self.waiting.remove(&stream) {
                    exchange.posts &= !is_refused;
                    return Progress::Lost(exchange, !is_refused);
                }
            }
            Happened::Failed => return Progress::Broken,
            Happened::Request(..) => {}
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

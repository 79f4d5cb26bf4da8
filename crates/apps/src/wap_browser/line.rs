//! What a browser says to its gateway and hears from it, the same with and without a session.

use std::net::SocketAddr;

use airloom_base::Instant;
use airloom_transports::wsp::capabilities::Capability;
use airloom_transports::wsp::client::{Client, Event, State};
use airloom_transports::wsp::connectionless;
use airloom_transports::wsp::status::Reason;
use airloom_transports::wsp::wire::Method;
use airloom_transports::wtp::{Counters, Transaction};
use bytes::Bytes;

use super::SESSION_PORT;

/// The name of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Request {
    /// In a session.
    Method(Transaction),
    /// Without one.
    Unit(u8),
}

/// What is heard.
pub(super) enum Heard {
    /// The session is open; these headers the gateway said.
    Open(Bytes),
    /// Another gateway is to be asked.
    Elsewhere(Option<SocketAddr>),
    /// The reply to a request: its status in its octet, octets of the body.
    Reply(Request, u8, u64),
    /// A request was aborted.
    Aborted(Request),
    /// The session is gone.
    Gone(Reason),
    /// A push, and octets of its body.
    Push(u64),
}

/// A way to a gateway.
pub(super) enum Line {
    /// With a session.
    Session(Box<Client>),
    /// Without.
    Connectionless(connectionless::Client),
}

impl Line {
    /// May requests be made?
    pub(super) fn is_open(&self) -> bool {
        match self {
            Line::Session(client) => client.state() == State::Connected,
            Line::Connectionless(_) => true,
        }
    }

    /// Opens a session.
    pub(super) fn open(&mut self, now: Instant, capabilities: &[Capability], headers: &Bytes) {
        if let Line::Session(client) = self {
            client.connect(now, capabilities.to_vec(), headers.clone());
        }
    }

    /// Closes it.
    pub(super) fn close(&mut self, now: Instant) {
        if let Line::Session(client) = self {
            client.disconnect(now);
        }
    }

    /// Asks for what is at `uri`, if another request may be made now. `data` is what is sent there, behind `headers` that say
    /// what it is; nothing is sent if there is none.
    pub(super) fn ask(
        &mut self,
        now: Instant,
        uri: Bytes,
        headers: Bytes,
        data: Option<Bytes>,
    ) -> Option<Request> {
        let method = if data.is_some() { Method::Post } else { Method::Get };
        let data = data.unwrap_or_default();
        match self {
            Line::Session(client) => client.request(now, method, uri, headers, data).map(Request::Method),
            Line::Connectionless(client) => client.request(method, uri, headers, data).map(Request::Unit),
        }
    }

    /// A request has taken too long.
    pub(super) fn give_up(&mut self, now: Instant, request: Request) {
        match (self, request) {
            (Line::Session(client), Request::Method(transaction)) => client.abort(now, transaction),
            (Line::Connectionless(client), Request::Unit(tid)) => client.forget(tid),
            _ => {}
        }
    }

    /// Says a request again that nobody else repeats.
    pub(super) fn repeat(&mut self, request: Request) {
        if let (Line::Connectionless(client), Request::Unit(tid)) = (self, request) {
            client.repeat(tid);
        }
    }

    pub(super) fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &Bytes) {
        match self {
            Line::Session(client) => client.handle_datagram(now, from, datagram),
            Line::Connectionless(client) => client.handle_datagram(from, datagram),
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let Line::Session(client) = self {
            client.handle_timeout(now);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Line::Session(client) => client.poll_timeout(),
            Line::Connectionless(_) => None,
        }
    }

    pub(super) fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        match self {
            Line::Session(client) => client.poll_transmit(),
            Line::Connectionless(client) => client.poll_transmit(),
        }
    }

    /// What WTP counted.
    pub(super) fn counters(&self) -> Counters {
        match self {
            Line::Session(client) => client.counters(),
            Line::Connectionless(_) => Counters::default(),
        }
    }

    /// The next thing that was heard. Confirmed pushes are confirmed.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Heard> {
        let client = match self {
            Line::Session(client) => client,
            Line::Connectionless(client) => {
                return Some(match client.poll_event()? {
                    connectionless::Event::Push { data, .. } => Heard::Push(data.len() as u64),
                    connectionless::Event::Reply { request, status, data, .. } => {
                        Heard::Reply(Request::Unit(request), status, data.len() as u64)
                    }
                });
            }
        };
        Some(match client.poll_event()? {
            // It is never asked for.
            Event::Resumed => return self.poll(now),
            Event::Connected(headers) => Heard::Open(headers),
            Event::Redirected { addresses, .. } => {
                Heard::Elsewhere(addresses.iter().find_map(|a| a.socket(SESSION_PORT)))
            }
            Event::Reply { request, status, data, .. } => {
                Heard::Reply(Request::Method(request), status, data.len() as u64)
            }
            Event::RequestAborted(request, _) => Heard::Aborted(Request::Method(request)),
            Event::Push { push, data, .. } => {
                if let Some(push) = push {
                    client.confirm(now, push);
                }
                Heard::Push(data.len() as u64)
            }
            Event::Disconnected(reason) => Heard::Gone(reason),
        })
    }
}

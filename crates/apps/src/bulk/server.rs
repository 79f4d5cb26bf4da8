//! The answering end of bulk transfers.

use airloom_base::{
    App, AppParts, ConfigError, Cx, Duration, Instant, SocketEvent, SocketId, Sockets, Summary,
};
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smart_default::SmartDefault;

use super::request::{LEN, Request};
use super::{PORT, Reaction, SOURCE, clamp};
use crate::net::{Connections, Outgoing, drain};

/// Answers bulk transfers: sends as many octets as a client asks for, or takes as many as it announces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Port to listen on.
    #[default(PORT)]
    pub port: u16,
    /// How long after octets have arrived the server reads them, as a program that has to be woken does.
    pub reaction: Duration,
}

/// How far a connection is.
enum State {
    /// Octets of the request have arrived.
    Request([u8; LEN], usize),
    /// Padding octets of a request are still to come.
    Padding(Request, u64),
    /// Octets of a put are still to come.
    Taking(Request, u64),
    /// The answer is on its way.
    Answering(Request, Outgoing),
    /// Our side is finished; what the peer still sends is dropped.
    Closing,
}

impl State {
    const START: State = State::Request([0; LEN], 0);
}

/// The server.
pub struct Server {
    port: u16,
    reaction: Reaction,
    connections: Connections<State>,
    accepted: u64,
    served: u64,
    malformed: u64,
    broken: u64,
    received: u64,
    last_put: Option<Instant>,
}

/// Builds the server from its table.
pub fn build(value: &Value, _: &AppParts) -> Result<Box<dyn App>, ConfigError> {
    Ok(Box::new(Server::new(airloom_base::config::read::<Config>(value)?)))
}

impl Server {
    /// A server that has not been asked for anything.
    pub fn new(config: Config) -> Self {
        Server {
            port: config.port,
            reaction: Reaction::new(config.reaction),
            connections: Connections::default(),
            accepted: 0,
            served: 0,
            malformed: 0,
            broken: 0,
            received: 0,
            last_put: None,
        }
    }

    /// Goes on with a connection: takes what has arrived, writes what there is room for.
    fn serve(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        let Some(state) = self.connections.get_mut(socket) else { return };
        loop {
            match state {
                State::Request(octets, have) => {
                    if let Some(body) = net.read(cx, socket, LEN - *have) {
                        *have += body.write(0, &mut octets[*have..]);
                    } else {
                        return;
                    }
                    if *have == LEN {
                        let Some(request) = Request::parse(octets) else {
                            self.malformed += 1;
                            self.connections.remove(socket);
                            net.reset(cx, socket);
                            return;
                        };
                        *state = State::Padding(request, u64::from(request.padded) - LEN as u64);
                    }
                }
                State::Padding(request, 0) => {
                    *state = if request.put {
                        State::Taking(*request, request.size)
                    } else {
                        State::Answering(*request, Outgoing::new(Bytes::new(), SOURCE, request.size))
                    };
                }
                State::Taking(request, 0) => {
                    self.last_put = Some(cx.now);
                    *state = State::Answering(*request, Outgoing::new(Bytes::new(), SOURCE, 1));
                }
                State::Padding(_, left) | State::Taking(_, left) => {
                    match net.read(cx, socket, clamp(*left)) {
                        Some(body) => {
                            *left -= body.len() as u64;
                            self.received += body.len() as u64;
                        }
                        None => return,
                    }
                }
                State::Answering(request, answer) => {
                    if !answer.pump(cx, net, socket) {
                        return;
                    }
                    self.served += 1;
                    *state = if request.keep {
                        State::START
                    } else {
                        net.finish(cx, socket);
                        State::Closing
                    };
                }
                State::Closing => {
                    drain(cx, net, socket);
                    return;
                }
            }
        }
    }

    /// The peer sends no more: whatever is complete is answered, the rest cannot be.
    fn peer_finished(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        match self.connections.get_mut(socket) {
            Some(state @ State::Request(_, 0)) => {
                *state = State::Closing;
                net.finish(cx, socket);
            }
            Some(State::Answering(request, _)) => request.keep = false,
            Some(State::Request(..) | State::Padding(..) | State::Taking(..)) => {
                self.broken += 1;
                self.connections.remove(socket);
                net.reset(cx, socket);
            }
            Some(State::Closing) | None => {}
        }
    }
}

impl App for Server {
    fn stream_ports(&self) -> Vec<u16> {
        vec![self.port]
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        match event {
            SocketEvent::Accepted { .. } => {
                self.accepted += 1;
                self.connections.insert(socket, State::START);
                self.serve(cx, net, socket);
            }
            SocketEvent::Readable(_) if self.reaction.waits(cx.now, socket) => {}
            SocketEvent::Readable(_) | SocketEvent::Writable => self.serve(cx, net, socket),
            SocketEvent::Finished => {
                self.serve(cx, net, socket);
                self.peer_finished(cx, net, socket);
            }
            SocketEvent::Closed(_) => match self.connections.remove(socket) {
                Some(State::Closing | State::Request(_, 0)) | None => {}
                Some(_) => self.broken += 1,
            },
            SocketEvent::Asked { .. } | SocketEvent::Opened | SocketEvent::Stream(_) => {}
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.reaction.next()
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        while let Some(socket) = self.reaction.take(cx.now) {
            self.serve(cx, net, socket);
        }
    }
    fn summarise(&self, out: &mut Summary) {
        out.set("connections", self.accepted as f64);
        out.set("transfers_served", self.served as f64);
        out.set("transfers_broken", self.broken as f64);
        out.set("requests_malformed", self.malformed as f64);
        out.set("received_bytes", self.received as f64);
        out.set_some("last_put_s", self.last_put.map(Instant::as_secs_f64));
    }
}

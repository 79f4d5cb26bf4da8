//! The asking end.
//!
//! It shares with the client of `bulk` what moves octets (`Outgoing`, `Times`, `Mode`), and is apart from it since there each connection is a
//! transfer, or several in turn, and they go side by side; here one connection says what another one is for, a step after each reply.

use std::net::{IpAddr, SocketAddr};

use airloom_base::units::Octets;
use airloom_base::{
    App, AppParts, ConfigError, Cx, Duration, Instant, SocketEvent, SocketId, Sockets, Summary,
};
use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smart_default::SmartDefault;

use super::control::Control;
use super::wire::{self, Line, Replies};
use super::{PATIENCE, PORT, SOURCE};
use crate::bulk::client::Mode;
use crate::net::{self, Outgoing, UnderWay};
use crate::times::Times;

/// Gets or puts files over FTP, one after another, each over a data connection of its own.
///
/// `transfer_mean_s` is the time a client of the time prints: from the reply that opens the transfer to the end of the file (get) or to
/// the reply that ends it (put). `goodput_bit_s` is all octets over the sum of these times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Host to talk to, which runs `ftp-server`; the far end if not given.
    pub server: Option<String>,
    /// Its port.
    #[default(PORT)]
    pub port: u16,
    /// `"get"` (RETR) or `"put"` (STOR).
    pub mode: Mode,
    /// Octets of a file.
    #[default(Octets(1_000_000))]
    pub size: Octets,
    /// Name of the file; its size in octets if not given, which every server here has.
    pub file: Option<String>,
    /// Who connects for the data: the server (active mode, PORT), or the client (passive mode, PASV).
    pub active: bool,
    /// Where the client listens in active mode.
    #[default(3021)]
    pub data_port: u16,
    /// Number of files.
    #[default(1)]
    pub repeat: u32,
    /// Pause between two files.
    pub pause: Duration,
    /// When to begin.
    pub start: Duration,
    /// Begin later than `start` by a random time, uniform in 0 to this.
    pub spread: Duration,
    /// Give up when nothing has moved for so long.
    #[default(PATIENCE)]
    pub timeout: Duration,
}

/// Which reply is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The greeting.
    Greeting,
    User,
    Pass,
    Type,
    /// PASV, EPSV, PORT or EPRT.
    DataConnection,
    /// A passive data connection comes about.
    Connecting,
    /// RETR or STOR: first 1yz, then 2yz.
    File,
    /// None: there is a pause.
    Pause(Instant),
    Quit,
}

/// The file on its way.
#[derive(Default)]
struct Transfer {
    socket: Option<SocketId>,
    is_open: bool,
    outgoing: Option<Outgoing>,
    /// When the transfer was opened.
    began: Option<Instant>,
    /// When all octets of a get were there.
    ended: Option<Instant>,
    /// Octets that have arrived.
    received: u64,
    /// The server said that it is complete.
    is_confirmed: bool,
    /// Our side of a put is finished.
    is_sent: bool,
    under_way: UnderWay,
    moved_at: Option<Instant>,
}

/// The client.
pub struct Client {
    config: Config,
    to: SocketAddr,
    name: String,
    begin: Option<Instant>,
    control: Option<Control>,
    replies: Replies,
    step: Step,
    transfer: Transfer,
    /// When nothing has moved for too long.
    deadline: Instant,
    done: u32,
    failed: u32,
    times: Times,
    total_s: f64,
    first_start: Option<Instant>,
    last_end: Instant,
    longest_pause: Duration,
    refused: u32,
}

/// Builds the client from its table.
pub fn build(value: &Value, parts: &AppParts) -> Result<Box<dyn App>, ConfigError> {
    let config: Config = airloom_base::config::read(value)?;
    let server = parts.server("server", config.server.as_deref())?;
    let delay = Duration::from_nanos(parts.stream("start").below(config.spread.as_nanos()));
    let to = SocketAddr::new(server, config.port);
    Ok(Box::new(Client::new(config, to, delay)?))
}

impl Client {
    /// A client that begins `delay` after the start its configuration says.
    ///
    /// # Errors
    /// The key that makes no sense.
    pub fn new(config: Config, to: SocketAddr, delay: Duration) -> Result<Self, ConfigError> {
        ConfigError::when(config.repeat == 0, "repeat", "must be at least 1")?;
        ConfigError::when(config.size.0 == 0, "size", "must be at least 1B")?;
        ConfigError::when(config.timeout.is_zero(), "timeout", "replies take time")?;
        let name = config.file.clone().unwrap_or_else(|| config.size.0.to_string());
        let is_none = name.is_empty() || name.len() > 255 || name.contains(['\r', '\n']);
        ConfigError::when(is_none, "file", "a name has 1 to 255 octets in one line")?;
        Ok(Client {
            begin: Some(Instant::ZERO + config.start + delay),
            to,
            name,
            config,
            control: None,
            replies: Replies::default(),
            step: Step::Greeting,
            transfer: Transfer::default(),
            deadline: Instant::FAR_FUTURE,
            done: 0,
            failed: 0,
            times: Times::default(),
            total_s: 0.0,
            first_start: None,
            last_end: Instant::ZERO,
            longest_pause: Duration::ZERO,
            refused: 0,
        })
    }

    fn begin(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        if self.begin.is_some_and(|at| at <= cx.now) {
            self.begin = None;
            self.first_start = Some(cx.now);
            self.control = Some(Control::new(net.connect(cx, self.to)));
            self.progress(cx.now);
        }
    }

    fn progress(&mut self, now: Instant) {
        self.deadline = now + self.config.timeout;
    }

    fn say(&mut self, cx: &mut Cx, net: &mut dyn Sockets, step: Step, line: &str) {
        self.step = step;
        self.progress(cx.now);
        if let Some(control) = &mut self.control {
            control.say(cx, net, line);
        }
    }

    /// Reads replies and goes on with each.
    fn listen(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        while let Some(line) = self.control.as_mut().and_then(|control| control.line(cx, net)) {
            self.progress(cx.now);
            let reply = match &line {
                Line::Text(text) => self.replies.feed(text),
                Line::TooLong => Ok(None),
            };
            match reply {
                Ok(Some((number, text))) => self.answer(cx, net, number, text),
                Ok(None) => {}
                Err(()) => return self.give_up(cx, net),
            }
        }
    }

    /// A reply has come.
    fn answer(&mut self, cx: &mut Cx, net: &mut dyn Sockets, number: u16, text: &str) {
        //= RFC 959 (4.2): the first digit says what is meant; 421 may come at any time.
        if number == 421 {
            return self.give_up(cx, net);
        }
        match (self.step, number / 100) {
            // The service will be ready: another greeting follows.
            (Step::Greeting, 1) => {}
            (Step::Greeting, 2) => self.say(cx, net, Step::User, "USER anonymous"),
            (Step::User, 3) => self.say(cx, net, Step::Pass, "PASS guest@"),
            (Step::User | Step::Pass, 2) => self.say(cx, net, Step::Type, "TYPE I"),
            (Step::Type, 2) => self.request_data_connection(cx, net),
            (Step::DataConnection, 2) if self.config.active => self.request_file(cx, net),
            (Step::DataConnection, 2) => match self.data_address(number, text) {
                Some(at) => {
                    self.transfer.socket = Some(net.connect(cx, at));
                    self.step = Step::Connecting;
                }
                None => self.give_up(cx, net),
            },
            (Step::File, 1) => {
                self.transfer.began.get_or_insert(cx.now);
                self.move_data(cx, net);
            }
            (Step::File, 2) => {
                self.transfer.is_confirmed = true;
                self.complete(cx, net);
            }
            (Step::DataConnection | Step::File, 4..) => {
                self.refused += 1;
                self.fail(cx, net);
            }
            (Step::Quit, _) => self.hang_up(cx, net),
            // Between two files the server has nothing to say that would matter.
            (Step::Pause(_) | Step::Connecting, _) => {}
            _ => self.give_up(cx, net),
        }
    }

    /// Asks for a data connection.
    fn request_data_connection(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.transfer = Transfer::default();
        let port = self.config.data_port;
        let line = if self.config.active {
            let Some(own) = self.control.as_ref().and_then(|control| net.local(control.socket)) else {
                return self.give_up(cx, net);
            };
            match own.ip() {
                IpAddr::V4(address) => format!("PORT {}", wire::host_port(address, port)),
                address @ IpAddr::V6(_) => format!("EPRT {}", wire::extended(address, port)),
            }
        } else if self.to.is_ipv4() {
            "PASV".to_owned()
        } else {
            "EPSV".to_owned()
        };
        self.say(cx, net, Step::DataConnection, &line);
    }

    /// Where the server waits for the data connection. The address is that of the control connection whatever the reply says: a
    /// server that names another one would have us connect to somebody else.
    fn data_address(&self, number: u16, text: &str) -> Option<SocketAddr> {
        let port = match number {
            227 => wire::passive_address(text)?.port(),
            229 => wire::extended_passive_port(text)?,
            _ => return None,
        };
        Some(SocketAddr::new(self.to.ip(), port))
    }

    fn request_file(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        let word = match self.config.mode {
            Mode::Get => "RETR",
            Mode::Put => "STOR",
        };
        let line = format!("{word} {}", self.name);
        self.say(cx, net, Step::File, &line);
    }

    /// Writes or reads what goes.
    fn move_data(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        let transfer = &mut self.transfer;
        let Some(socket) = transfer.socket.filter(|_| transfer.is_open) else { return };
        if self.config.mode == Mode::Put {
            if transfer.began.is_none() || transfer.is_sent {
                return;
            }
            let size = self.config.size.0;
            let outgoing = transfer.outgoing.get_or_insert_with(|| Outgoing::new(Bytes::new(), SOURCE, size));
            let is_written = outgoing.pump(cx, net, socket);
            transfer.under_way.note(net.unacknowledged(socket));
            if is_written {
                transfer.is_sent = true;
                net.finish(cx, socket);
            }
            self.deadline = cx.now + self.config.timeout;
            return;
        }
        let octets = net::drain(cx, net, socket);
        transfer.received += octets;
        if octets > 0 {
            // Data may overtake the reply that announces it.
            transfer.began.get_or_insert(cx.now);
            if let Some(last) = transfer.moved_at.replace(cx.now) {
                self.longest_pause = self.longest_pause.max(cx.now - last);
            }
            self.deadline = cx.now + self.config.timeout;
        }
    }

    /// Has more of a put arrived? A send buffer holds what takes minutes on a slow link, and nothing tells of it.
    fn gets_on(&mut self, net: &dyn Sockets) -> bool {
        let Transfer { socket, under_way, .. } = &mut self.transfer;
        socket.is_some_and(|socket| under_way.gets_on(net.unacknowledged(socket)))
    }

    /// Is the file over, with all that belongs to it? Then the next one.
    fn complete(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        let transfer = &self.transfer;
        let end = match self.config.mode {
            Mode::Get => transfer.ended,
            Mode::Put => Some(cx.now),
        };
        let (true, Some(end)) = (transfer.is_confirmed, end) else { return };
        let is_whole = match self.config.mode {
            Mode::Get => transfer.received == self.config.size.0,
            Mode::Put => transfer.is_sent,
        };
        if !is_whole {
            return self.fail(cx, net);
        }
        let time = end - transfer.began.unwrap_or(end);
        self.times.add(time);
        self.total_s += time.as_secs_f64();
        self.last_end = end;
        self.done += 1;
        self.transfer = Transfer::default();
        self.advance(cx, net);
    }

    /// The file that was coming comes no further: the pause that ended it counts as well.
    fn note_last_pause(&mut self, now: Instant) {
        if let Some(last) = self.transfer.moved_at {
            let end = self.transfer.ended.unwrap_or(now);
            self.longest_pause = self.longest_pause.max(end.since(last));
        }
    }

    /// This file will not come.
    fn fail(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.failed += 1;
        self.note_last_pause(cx.now);
        if let Some(socket) = std::mem::take(&mut self.transfer).socket {
            net.reset(cx, socket);
        }
        self.advance(cx, net);
    }

    fn advance(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        if self.done + self.failed >= self.config.repeat {
            self.say(cx, net, Step::Quit, "QUIT");
        } else if self.config.pause.is_zero() {
            self.request_data_connection(cx, net);
        } else {
            self.step = Step::Pause(cx.now + self.config.pause);
            self.progress(cx.now + self.config.pause);
        }
    }

    /// Nothing more is to be had from this server: the file on its way and all further ones have failed.
    fn give_up(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.failed = self.config.repeat - self.done.min(self.config.repeat);
        self.note_last_pause(cx.now);
        let transfer = std::mem::take(&mut self.transfer);
        let sockets = [transfer.socket, self.control.take().map(|control| control.socket)];
        for socket in sockets.into_iter().flatten() {
            net.reset(cx, socket);
        }
        self.deadline = Instant::FAR_FUTURE;
    }

    fn hang_up(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        if let Some(control) = self.control.take() {
            net.finish(cx, control.socket);
        }
        self.deadline = Instant::FAR_FUTURE;
    }

    fn data_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, event: SocketEvent) {
        match event {
            SocketEvent::Opened => {
                self.transfer.is_open = true;
                self.progress(cx.now);
                if self.step == Step::Connecting {
                    self.request_file(cx, net);
                }
            }
            SocketEvent::Readable(_) | SocketEvent::Writable => self.move_data(cx, net),
            SocketEvent::Finished => {
                self.move_data(cx, net);
                if let Some(socket) = self.transfer.socket
                    && self.config.mode == Mode::Get
                {
                    net.finish(cx, socket);
                    self.transfer.socket = None;
                    self.transfer.ended = Some(cx.now);
                    self.last_end = cx.now;
                    self.complete(cx, net);
                }
            }
            SocketEvent::Closed(_) => {
                self.transfer.socket = None;
                if self.step == Step::Connecting {
                    self.refused += 1;
                    return self.fail(cx, net);
                }
                // What the server thinks of it comes on the control connection.
                self.transfer.ended.get_or_insert(cx.now);
                self.complete(cx, net);
            }
            SocketEvent::Asked { .. } | SocketEvent::Accepted { .. } | SocketEvent::Stream(_) => {}
        }
    }
}

impl App for Client {
    fn stream_ports(&self) -> Vec<u16> {
        if self.config.active { vec![self.config.data_port] } else { Vec::new() }
    }
    fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.begin(cx, net);
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        if self.control.as_ref().is_some_and(|control| control.socket == socket) {
            match event {
                SocketEvent::Opened | SocketEvent::Writable => {
                    if let Some(control) = &mut self.control {
                        control.write(cx, net);
                    }
                }
                SocketEvent::Readable(_) => self.listen(cx, net),
                SocketEvent::Finished if self.step == Step::Quit => self.hang_up(cx, net),
                SocketEvent::Finished => self.give_up(cx, net),
                SocketEvent::Closed(_) => {
                    self.control = None;
                    self.give_up(cx, net);
                }
                SocketEvent::Asked { .. } | SocketEvent::Accepted { .. } | SocketEvent::Stream(_) => {}
            }
        } else if self.transfer.socket == Some(socket) {
            self.data_event(cx, net, event);
        } else if let SocketEvent::Accepted { from, .. } = event {
            let is_awaited =
                self.control.is_some() && self.step == Step::File && self.transfer.socket.is_none();
            if is_awaited && from.ip() == self.to.ip() {
                self.transfer.socket = Some(socket);
                self.transfer.is_open = true;
                self.move_data(cx, net);
            } else {
                net.reset(cx, socket);
            }
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        let pause = match self.step {
            Step::Pause(until) if self.control.is_some() => until,
            _ => Instant::FAR_FUTURE,
        };
        let next = self.begin.unwrap_or(Instant::FAR_FUTURE).min(self.deadline).min(pause);
        (next != Instant::FAR_FUTURE).then_some(next)
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.begin(cx, net);
        if matches!(self.step, Step::Pause(until) if until <= cx.now) && self.control.is_some() {
            self.request_data_connection(cx, net);
        }
        if self.deadline <= cx.now {
            if self.gets_on(net) {
                self.progress(cx.now);
            } else {
                self.give_up(cx, net);
            }
        }
    }
    fn is_done(&self) -> bool {
        self.begin.is_none() && self.control.is_none()
    }
    fn summarise(&self, out: &mut Summary) {
        let bytes = u64::from(self.done) * self.config.size.0;
        out.set("transfers", f64::from(self.done));
        out.set("transfers_failed", f64::from(self.failed));
        out.set("transfers_refused", f64::from(self.refused));
        out.set("bytes", bytes as f64);
        // How far the present file is, where a run ends before it does.
        out.set("bytes_under_way", self.transfer.received as f64);
        self.times.summarise("transfer", out);
        out.set("goodput_bit_s", 8.0 * bytes as f64 / self.total_s);
        let first = self.first_start.filter(|_| self.done > 0);
        out.set_some("completion_s", first.map(|first| (self.last_end - first).as_secs_f64()));
        if self.config.mode == Mode::Get {
            let is_known = self.done > 0 || !self.longest_pause.is_zero();
            out.set_some("longest_pause_s", is_known.then(|| self.longest_pause.as_secs_f64()));
        }
    }
}

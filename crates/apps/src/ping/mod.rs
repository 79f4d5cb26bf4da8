//! Round-trip times by ICMP echo, or by datagrams of a connection.
//!
//! The host answers echo requests by itself, so there is no server. Where requests are datagrams of a connection (RFC 9221), which
//! are never sent again either, `ping-server` sends them back. A request that is not answered within the timeout is lost; an answer
//! that comes later still, or a second one, is counted apart.

mod server;

use std::collections::VecDeque;
use std::net::IpAddr;

use airloom_base::service::{Datagram, StreamEvent};
use airloom_base::units::Octets;
use airloom_base::{
    App, AppParts, Body, ConfigError, Cx, Duration, Histogram, Instant, SocketEvent, SocketId, Sockets,
    Summary,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smart_default::SmartDefault;

/// The largest payload of an echo request in one datagram without extension headers (65,535 - 40 - 8).
const MAX_SIZE: u64 = 65_487;
/// Which filler the payloads are cut from.
const SOURCE: u32 = 0x7069_6e67;
/// Where ping servers listen unless told otherwise: the port of Echo (RFC 862).
const PORT: u16 = 7;
/// What is spoken on a connection whose datagrams are requests (a name of TLS's ALPN).
const PROTOCOL: &str = "airloom-ping";

pub use server::Config as ServerConfig;
pub use server::build as build_server;

/// What carries the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Over {
    /// ICMP echo, which every host answers.
    #[default]
    Icmp,
    /// Unreliable datagrams of a connection, over QUIC; the server runs `ping-server`. Without them, or if `size` is too large for
    /// one, all requests are lost.
    Datagrams,
}

/// Sends echo requests, by ICMP or as datagrams of a connection, and measures the round-trip time and the loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Host to ping; the far end if not given.
    pub server: Option<String>,
    /// What carries the requests: `"icmp"`, or `"datagrams"` of a connection over QUIC.
    pub over: Over,
    /// Port of `ping-server`.
    #[default(PORT)]
    pub port: u16,
    /// Number of requests.
    #[default(10)]
    pub count: u32,
    /// Time between two requests.
    #[default(Duration::from_secs(1))]
    pub interval: Duration,
    /// Payload of a request, behind the ICMP header; as a datagram two octets at least.
    #[default(Octets(56))]
    pub size: Octets,
    /// How long to wait for an answer.
    #[default(Duration::from_secs(10))]
    pub timeout: Duration,
    /// When to begin.
    pub start: Duration,
}

/// Octets of a request's number in a datagram.
const NUMBER: usize = 2;

struct Waiting {
    seq: u16,
    sent: Instant,
}

/// The pinging application.
pub struct Ping {
    to: IpAddr,
    config: Config,
    next: Option<Instant>,
    /// Of datagrams: the connection, and whether it is still to be opened.
    socket: Option<SocketId>,
    is_opening: bool,
    sent: u32,
    lost: u32,
    late: u32,
    /// Requests without an answer, the oldest first; bounded by timeout / interval and by `count`.
    waiting: VecDeque<Waiting>,
    min: Duration,
    rtt: Histogram,
}

/// Builds the application from its table.
pub fn build(value: &Value, parts: &AppParts) -> Result<Box<dyn App>, ConfigError> {
    let config: Config = airloom_base::config::read(value)?;
    let to = parts.server("server", config.server.as_deref())?;
    Ok(Box::new(Ping::new(config, to)?))
}

impl Ping {
    /// An application that has not begun.
    pub fn new(config: Config, to: IpAddr) -> Result<Self, ConfigError> {
        ConfigError::when(config.count == 0, "count", "must be at least 1")?;
        let message = format!("{} does not fit one datagram", config.size);
        ConfigError::when(config.size.0 > MAX_SIZE, "size", message)?;
        let has_no_room = config.over == Over::Datagrams && config.size.0 < NUMBER as u64;
        let message = format!("must be at least {NUMBER}B: a request has a number");
        ConfigError::when(has_no_room, "size", message)?;
        // Sequence numbers have 16 bits: more requests on their way could not be told apart.
        let would_repeat = config.interval * 65_535 < config.timeout && config.count > 65_535;
        let message = "too short for this timeout: sequence numbers would repeat";
        ConfigError::when(would_repeat, "interval", message)?;
        Ok(Ping {
            to,
            next: Some(Instant::ZERO + config.start),
            socket: None,
            is_opening: config.over == Over::Datagrams,
            config,
            sent: 0,
            lost: 0,
            late: 0,
            waiting: VecDeque::new(),
            min: Duration::MAX,
            rtt: Histogram::default(),
        })
    }

    fn send_due(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        if self.is_opening && self.next.is_some_and(|due| due <= cx.now) {
            self.next = None;
            self.socket = Some(net.connect_for(cx, (self.to, self.config.port).into(), PROTOCOL));
        }
        while let Some(due) = self.next.filter(|due| *due <= cx.now) {
            let seq = self.sent as u16;
            self.sent += 1;
            // The next one keeps to the grid even if this call came late.
            self.next = (self.sent < self.config.count).then_some(due + self.config.interval);
            self.waiting.push_back(Waiting { seq, sent: cx.now });
            let size = self.config.size.0 as usize;
            if let Some(socket) = self.socket {
                let mut octets = seq.to_be_bytes().to_vec();
                octets.resize(size, 0);
                // One that is not taken is a request without an answer.
                net.send_unreliable(cx, socket, Body::Real(octets.into()));
            } else {
                let body = Body::filler(SOURCE, size as u32);
                net.send_datagram(cx, Datagram::Echo { remote: self.to, ident: 0, seq, body });
            }
        }
    }

    fn answered(&mut self, now: Instant, seq: u16) {
        let place = self.waiting.iter().position(|w| w.seq == seq);
        let Some(waiting) = place.and_then(|place| self.waiting.remove(place)) else {
            self.late += 1;
            return;
        };
        let rtt = now - waiting.sent;
        self.min = self.min.min(rtt);
        self.rtt.add(rtt.as_nanos());
    }

    /// Ends the connection when there is nothing left to ask.
    fn settle(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        if self.is_done()
            && let Some(socket) = self.socket.take()
        {
            net.close(cx, socket, 0);
        }
    }
}

impl App for Ping {
    fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.send_due(cx, net);
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        match event {
            SocketEvent::Opened => {
                (self.is_opening, self.next) = (false, Some(cx.now));
                self.send_due(cx, net);
            }
            SocketEvent::Stream(StreamEvent::Unreliable) => {
                while let Some(body) = net.read_unreliable(cx, socket) {
                    if let Some(seq) = body.to_bytes().first_chunk::<NUMBER>() {
                        self.answered(cx.now, u16::from_be_bytes(*seq));
                    }
                }
                self.settle(cx, net);
            }
            SocketEvent::Closed(_) => {
                // What was asked gets no answer any more, and what was not asked neither.
                self.lost += self.waiting.len() as u32 + (self.config.count - self.sent);
                self.waiting.clear();
                (self.is_opening, self.next, self.socket) = (false, None, None);
            }
            _ => {}
        }
    }
    fn handle_datagram(&mut self, cx: &mut Cx, _: &mut dyn Sockets, datagram: Datagram) {
        let Datagram::Echo { remote, seq, .. } = datagram else { return };
        if remote == self.to {
            self.answered(cx.now, seq);
        } else {
            self.late += 1;
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        let lost = self.waiting.front().map(|w| w.sent + self.config.timeout);
        [self.next, lost].into_iter().flatten().min()
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        while self.waiting.front().is_some_and(|w| w.sent + self.config.timeout <= cx.now) {
            self.waiting.pop_front();
            self.lost += 1;
        }
        self.send_due(cx, net);
        self.settle(cx, net);
    }
    fn is_done(&self) -> bool {
        !self.is_opening && self.next.is_none() && self.waiting.is_empty()
    }
    fn summarise(&self, out: &mut Summary) {
        let received = self.rtt.count();
        let seconds = |nanos: u64| nanos as f64 * 1e-9;
        out.set("sent", f64::from(self.sent));
        out.set("received", received as f64);
        out.set("lost", f64::from(self.lost));
        out.set("late_or_doubled", f64::from(self.late));
        out.set_some("rtt_min_s", (received > 0).then(|| self.min.as_secs_f64()));
        out.set_some("rtt_mean_s", self.rtt.mean().map(|n| n * 1e-9));
        // The histogram knows it to some per cent alone.
        let median = self.rtt.quantile(0.5).map(|median| median.max(self.min.as_nanos()));
        out.set_some("rtt_median_s", median.map(seconds));
        out.set_some("rtt_max_s", self.rtt.max().map(seconds));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Answerer, Pair, SERVER};

    fn pair(config: Config) -> Pair<Ping, Answerer> {
        Pair::new(Ping::new(config, SERVER).expect("a valid configuration"), Answerer::new(&[], 0, false))
    }

    #[test]
    fn every_answer_is_timed() {
        let mut pair = pair(Config { count: 4, ..Config::default() });
        let end = pair.run();
        let summary = pair.summary();
        assert_eq!((summary["sent"], summary["received"], summary["lost"]), (4.0, 4.0, 0.0));
        for name in ["rtt_min_s", "rtt_mean_s", "rtt_median_s", "rtt_max_s"] {
            assert!((summary[name] - 0.02).abs() < 1e-9, "{name}");
        }
        assert_eq!(end, Instant::ZERO + Duration::from_millis(3020));
        assert!(pair.a.is_done());
    }

    #[test]
    fn lost_late_and_doubled_answers_are_told_apart() {
        let mut pair = pair(Config {
            count: 5,
            interval: Duration::from_millis(5),
            timeout: Duration::from_millis(50),
            ..Config::default()
        });
        pair.net.lost_echoes.insert(2);
        pair.net.doubled_echoes.insert(3);
        pair.run();
        let summary = pair.summary();
        assert_eq!((summary["received"], summary["lost"], summary["late_or_doubled"]), (4.0, 1.0, 1.0));
        assert!(pair.a.is_done());
    }

    #[test]
    fn no_answer_at_all_ends_too_and_prints_no_times() {
        let mut pair = pair(Config { count: 2, timeout: Duration::from_millis(19), ..Config::default() });
        pair.run();
        let summary = pair.summary();
        assert_eq!((summary["lost"], summary["late_or_doubled"]), (2.0, 2.0));
        assert!(!summary.contains_key("rtt_mean_s"));
        assert!(pair.a.is_done());
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let path = |config| Ping::new(config, SERVER).err().map(|e| e.path.concat());
        assert_eq!(path(Config { count: 0, ..Config::default() }).as_deref(), Some("count"));
        assert_eq!(path(Config { size: Octets(65_488), ..Config::default() }).as_deref(), Some("size"));
        let short = Config { over: Over::Datagrams, size: Octets(1), ..Config::default() };
        assert_eq!(path(short).as_deref(), Some("size"));
        let fast = Config { count: 100_000, interval: Duration::from_micros(1), ..Config::default() };
        assert_eq!(path(fast).as_deref(), Some("interval"));
    }
}

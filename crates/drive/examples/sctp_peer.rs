//! `sctp_peer`: SCTP in UDP on real sockets; echoes or counts messages, or sends them and judges what comes back.
//!
//!     sctp_peer serve UDP-ADDRESS PORT [echo|discard]
//!     sctp_peer send UDP-ADDRESS PEER-UDP-ADDRESS PORT [echo|discard] [OCTETS] [STREAMS] [MESSAGE]
//!
//! A message begins with its stream (2 octets), its number in the stream and its length (4 each), and goes on with
//! octets that follow from these. Who receives judges order and content. The result is one line of JSON.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use airloom_base::{Body, CloseReason, TransportEvent};
use airloom_drive::sctp::{Endpoint, Id};
use airloom_transports::sctp::{Config, Message, Outgoing};

/// Octets in front of the pattern.
const FRONT: usize = 10;
/// Silence after which a transfer is given up.
const PATIENCE: Duration = Duration::from_secs(60);

fn message(stream: u16, number: u32, len: usize) -> Vec<u8> {
    let mut octets = Vec::with_capacity(len.max(FRONT));
    octets.extend_from_slice(&stream.to_be_bytes());
    octets.extend_from_slice(&number.to_be_bytes());
    octets.extend_from_slice(&(len.max(FRONT) as u32).to_be_bytes());
    octets.extend((FRONT..len).map(|n| (n as u32 + u32::from(stream) + number) as u8));
    octets
}

/// What arrived, and what was wrong with it.
#[derive(Default)]
struct Tally {
    messages: u64,
    octets: u64,
    wrong: u64,
    next: BTreeMap<u16, u32>,
}

impl Tally {
    /// Judges a message; returns its octets.
    fn judge(&mut self, arrived: &Message) -> Vec<u8> {
        let octets: Vec<u8> = arrived.pieces().flat_map(|piece| piece.to_bytes().to_vec()).collect();
        let next = self.next.entry(arrived.stream).or_default();
        self.wrong += u64::from(octets != message(arrived.stream, *next, octets.len()));
        *next += 1;
        self.messages += 1;
        self.octets += octets.len() as u64;
        octets
    }

    /// Prints it; was everything as it should be?
    fn report(&self, role: &str, end: Option<CloseReason>) -> bool {
        let Tally { messages, octets, wrong, .. } = self;
        let end_name = end.map_or("silence", CloseReason::name);
        println!(
            "{{\"role\":\"{role}\",\"messages\":{messages},\"octets\":{octets},\"streams\":{},\"wrong\":{wrong},\"end\":\"{end_name}\"}}",
            self.next.len()
        );
        *wrong == 0 && end == Some(CloseReason::Finished)
    }
}

/// Messages that are to be sent, as far as there is room.
#[derive(Default)]
struct Sending {
    waiting: VecDeque<(u16, Vec<u8>)>,
}

impl Sending {
    /// Sends what there is room for. Is everything sent?
    fn pump(&mut self, endpoint: &mut Endpoint, id: Id) -> bool {
        while let Some((stream, octets)) = self.waiting.front() {
            let body = Body::Real(octets.clone().into());
            if !endpoint.send(id, *stream, Outgoing::new(body)) {
                return false;
            }
            self.waiting.pop_front();
        }
        true
    }
}

/// Takes one association and serves it until it ends.
fn serve(at: SocketAddr, port: u16, echo: bool) -> std::io::Result<bool> {
    let mut endpoint = Endpoint::bind(at, Config::default())?;
    endpoint.listen(port);
    let (mut tally, mut back) = (Tally::default(), Sending::default());
    while let Some(event) = endpoint.wait(PATIENCE)? {
        let id = event.id;
        match event.what {
            TransportEvent::Readable(stream, _) => {
                while let Some(arrived) = endpoint.receive(id, stream) {
                    let octets = tally.judge(&arrived);
                    if echo {
                        back.waiting.push_back((stream, octets));
                    }
                }
                back.pump(&mut endpoint, id);
            }
            TransportEvent::Writable(_) => {
                back.pump(&mut endpoint, id);
            }
            TransportEvent::Closed(reason) => return Ok(tally.report("server", Some(reason))),
            _ => {}
        }
    }
    Ok(tally.report("server", None))
}

/// Sends `octets` in messages of `len` over `streams` and, if they come back, judges them.
fn send(
    at: SocketAddr,
    to: SocketAddr,
    port: u16,
    echo: bool,
    octets: usize,
    streams: u16,
    len: usize,
) -> std::io::Result<bool> {
    let config = Config { outbound_streams: streams, ..Config::default() };
    let mut endpoint = Endpoint::bind(at, config)?;
    let Some(id) = endpoint.connect(to, port) else { return Ok(false) };
    let (mut tally, mut out) = (Tally::default(), Sending::default());
    let count = octets.div_ceil(len);
    for n in 0..count {
        let stream = (n % usize::from(streams)) as u16;
        let number = (n / usize::from(streams)) as u32;
        out.waiting.push_back((stream, message(stream, number, len.min(octets - n * len).max(FRONT))));
    }
    let expected = if echo { count as u64 } else { 0 };
    while let Some(event) = endpoint.wait(PATIENCE)? {
        match event.what {
            TransportEvent::Readable(stream, _) => {
                while let Some(arrived) = endpoint.receive(id, stream) {
                    tally.judge(&arrived);
                }
            }
            TransportEvent::Closed(reason) => {
                return Ok(tally.report("client", Some(reason)) && tally.messages == expected);
            }
            _ => {}
        }
        if out.pump(&mut endpoint, id) && tally.messages == expected {
            endpoint.shut_down(id);
        }
    }
    tally.report("client", None);
    Ok(false)
}

fn run() -> Result<bool, Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (role, rest) = words.split_first().ok_or("usage: sctp_peer serve|send ..")?;
    let addresses = if *role == "send" { 2 } else { 1 };
    let at: SocketAddr = rest.first().ok_or("which address?")?.parse()?;
    let word = |n: usize| rest.get(addresses + n).copied();
    let port = word(0).ok_or("which port?")?.parse()?;
    let echo = word(1) == Some("echo");
    let number = |n: usize, usual: usize| word(n).map_or(Ok(usual), str::parse);
    Ok(match *role {
        "serve" => serve(at, port, echo)?,
        "send" => {
            let to = rest.get(1).ok_or("to which address?")?.parse()?;
            let streams = u16::try_from(number(3, 1)?.max(1))?;
            send(at, to, port, echo, number(2, 1_000_000)?, streams, number(4, 1200)?.max(FRONT))?
        }
        _ => return Err("usage: sctp_peer serve|send ..".into()),
    })
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

//! `sctp_peer`: SCTP in UDP on real sockets; echoes or counts messages, or sends them and judges what comes back.
//!
//!     sctp_peer serve UDP-ADDRESS PORT [echo|reset|discard]
//!     sctp_peer send UDP-ADDRESS PEER-UDP-ADDRESS PORT [echo|reset|discard] [OCTETS] [STREAMS] [MESSAGE]
//!         [no-address-types] [stay]
//!
//! `reset` is `echo` with changes of the streams (RFC 6525) in the middle of the transfer, all asked for by who sends: its
//! streams begin anew while they are in use, and when everything has come back two of the peer's do, then all of both with the
//! TSNs, and there are two more for the second half of the messages.
//!
//! A message begins with its stream (2 octets), its number in the stream and its length (4 each), and goes on with
//! octets that follow from these. Who receives judges order and content. The result is one line of JSON. A client that is to
//! `stay` goes on answering until it is killed: the last packet of the shutdown may be lost, and asked for again.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use airloom_base::{Body, CloseReason, TransportEvent};
use airloom_drive::sctp::{Endpoint, Id, What};
use airloom_transports::sctp::{Answer, Config, Message, Outgoing, Reconfigured, Request};

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
    changes: Changes,
}

/// How often streams have changed.
#[derive(Default)]
struct Changes {
    /// Ours began anew.
    ours: u32,
    /// The peer's did.
    theirs: u32,
    /// All did, with the TSNs.
    all: u32,
    /// There are more.
    more: u32,
}

impl Changes {
    fn count(&mut self, what: Reconfigured) {
        use Reconfigured as R;
        let counter = match what {
            R::Answered(Request::ResetIncoming(_), Answer::Performed) => return,
            R::Answered(Request::ResetOutgoing(_), Answer::Performed) | R::OutgoingReset(_) => &mut self.ours,
            R::IncomingReset(_) => &mut self.theirs,
            R::Answered(Request::ResetAssociation, Answer::Performed) | R::AssociationReset => &mut self.all,
            R::Answered(Request::AddOutgoing(_) | Request::AddIncoming(_), Answer::Performed)
            | R::IncomingAdded(_)
            | R::OutgoingAdded(_) => &mut self.more,
            R::Answered(request, answer) => {
                eprintln!("{request:?}: {answer:?}");
                return;
            }
        };
        *counter += 1;
    }
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
        let Tally { messages, octets, wrong, changes, .. } = self;
        let Changes { ours, theirs, all, more } = changes;
        let end_name = end.map_or("silence", CloseReason::name);
        println!(
            "{{\"role\":\"{role}\",\"messages\":{messages},\"octets\":{octets},\"streams\":{},\"wrong\":{wrong},\"changes\":[{ours},{theirs},{all},{more}],\"end\":\"{end_name}\"}}",
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
        let what = match event.what {
            What::Transport(what) => what,
            What::Streams(change) => {
                tally.changes.count(change);
                continue;
            }
            What::Restarted => {
                (tally, back) = (Tally::default(), Sending::default());
                continue;
            }
        };
        match what {
            TransportEvent::Readable(stream, _) => {
                while let Some(arrived) = endpoint.receive(id, stream) {
                    let octets = tally.judge(&arrived);
                    if echo {
                        back.waiting.push_back((arrived.stream, octets));
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

/// A transfer as the sending side plans it.
#[derive(Clone, Copy)]
struct Transfer {
    mode: Mode,
    octets: usize,
    streams: u16,
    /// Octets of a message.
    len: usize,
    /// Does INIT say which kinds of addresses there are?
    address_types: bool,
    /// Does it stay when all is said?
    stays: bool,
}

/// What the serving side does with what it gets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Discard,
    Echo,
    /// Sends it back, while streams change.
    Reset,
}

/// Streams that are added in the middle.
const MORE: u16 = 2;

impl Transfer {
    fn count(&self) -> usize {
        self.octets.div_ceil(self.len)
    }

    /// Messages up to this one are sent before the streams change.
    fn half(&self) -> usize {
        if self.mode == Mode::Reset { self.count() / 2 } else { self.count() }
    }

    /// Puts these messages in order, dealt over so many streams; numbers go on where each stream was.
    fn plan(
        &self,
        which: std::ops::Range<usize>,
        streams: u16,
        next: &mut BTreeMap<u16, u32>,
        out: &mut Sending,
    ) {
        for n in which {
            let stream = (n % usize::from(streams)) as u16;
            let number = next.entry(stream).or_default();
            let len = self.len.min(self.octets - n * self.len).max(FRONT);
            out.waiting.push_back((stream, message(stream, *number, len)));
            *number += 1;
        }
    }
}

/// Sends messages and, if they come back, judges them.
fn send(at: SocketAddr, to: SocketAddr, port: u16, transfer: Transfer) -> std::io::Result<bool> {
    let config = Config {
        outbound_streams: transfer.streams,
        address_types: transfer.address_types,
        ..Config::default()
    };
    let mut endpoint = Endpoint::bind(at, config)?;
    let Some(id) = endpoint.connect(to, port) else { return Ok(false) };
    let (mut tally, mut out, mut next) = (Tally::default(), Sending::default(), BTreeMap::new());
    let (count, half) = (transfer.count(), transfer.half());
    transfer.plan(0..half, transfer.streams, &mut next, &mut out);
    let expected = if transfer.mode == Mode::Discard { 0 } else { count as u64 };
    let mut changes = match transfer.mode {
        Mode::Reset => vec![
            Request::AddOutgoing(MORE),
            Request::ResetAssociation,
            Request::ResetIncoming(vec![0, 1]),
            Request::ResetOutgoing(Vec::new()),
        ],
        _ => Vec::new(),
    };
    while let Some(event) = endpoint.wait(PATIENCE)? {
        match event.what {
            What::Transport(TransportEvent::Readable(stream, _)) => {
                while let Some(arrived) = endpoint.receive(id, stream) {
                    tally.judge(&arrived);
                }
            }
            What::Transport(TransportEvent::Closed(reason)) => {
                let is_good = tally.report("client", Some(reason)) && tally.messages == expected;
                if transfer.stays {
                    loop {
                        endpoint.wait(PATIENCE)?;
                    }
                }
                return Ok(is_good);
            }
            What::Streams(change) => {
                if matches!(change, Reconfigured::Answered(Request::AddOutgoing(_), Answer::Performed)) {
                    transfer.plan(half..count, transfer.streams + MORE, &mut next, &mut out);
                }
                tally.changes.count(change);
            }
            // A server that forgot its client has no use for the rest.
            What::Restarted => endpoint.abort(id),
            What::Transport(_) => {}
        }
        let is_sent = out.pump(&mut endpoint, id);
        // The first change as soon as all is written, the others when it has come back.
        while is_sent && (changes.len() == 4 || tally.messages == half as u64) {
            let Some(request) = changes.pop() else { break };
            if !endpoint.reconfigure(id, request) {
                return Ok(false);
            }
        }
        if is_sent && tally.messages == expected {
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
    let mode = match word(1) {
        Some("echo") => Mode::Echo,
        Some("reset") => Mode::Reset,
        _ => Mode::Discard,
    };
    let is_said = |what: &str| rest.iter().skip(addresses).any(|word| *word == what);
    let number = |n: usize, usual: usize| word(n).map_or(Ok(usual), str::parse);
    Ok(match *role {
        "serve" => serve(at, port, mode != Mode::Discard)?,
        "send" => {
            let to = rest.get(1).ok_or("to which address?")?.parse()?;
            let streams = u16::try_from(number(3, 1)?.max(1))?;
            let transfer = Transfer {
                mode,
                octets: number(2, 1_000_000)?,
                streams,
                len: number(4, 1200)?.max(FRONT),
                address_types: !is_said("no-address-types"),
                stays: is_said("stay"),
            };
            send(at, to, port, transfer)?
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

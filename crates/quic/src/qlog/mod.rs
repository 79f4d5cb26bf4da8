//! What becomes of each packet of a connection, event by event, in the words of draft-ietf-quic-qlog-quic-events-12.
//!
//! Nothing of it is the library's: [`session`] hears packets as they are protected and opened, [`frames`] and [`parameters`] put them
//! into words, [`recovery`] keeps what is under way. A connection without a trace has none of them around its keys.

pub(crate) mod frames;
mod parameters;
mod recovery;
mod session;

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airloom_base::record::QlogEnd;
use airloom_base::{CloseReason, Duration, Instant};
use serde_json::{Map, Value, json};

use crate::library::transport_parameters::TransportParameters;
use crate::library::{self, ConnectionId, PathView};
use parameters::Parameters;
use recovery::{Lost, Recovery, Space};

pub use session::Opening;

/// What a record begins with, and what it ends with (RFC 7464, 2.2).
const BEGIN: u8 = 0x1E;
const END: u8 = b'\n';

/// A record of a text sequence.
fn record(event: &Value, lines: &mut Vec<u8>) {
    lines.push(BEGIN);
    serde_json::to_writer(&mut *lines, event).expect("a JSON value can be written to memory");
    lines.push(END);
}

/// Whose events they are.
#[derive(Clone, Debug)]
pub struct About {
    /// Name of its host.
    pub host: String,
    /// Number of its flow.
    pub flow: u32,
    /// Is it the client's end?
    pub is_client: bool,
    /// Where it is itself, as far as it knows.
    pub local: (Option<IpAddr>, Option<u16>),
    /// Where its peer is.
    pub remote: SocketAddr,
    /// What the client called the connection at first, where the library does not know it any more.
    pub first: Option<ConnectionId>,
    /// What a round trip is taken for until one was measured.
    pub initial_rtt: Duration,
    /// How many packets that were sent later have to arrive before one is lost.
    pub packet_threshold: u32,
}

/// A packet that was opened: its number, header and payload, and octets as it came.
struct Opened {
    number: u64,
    header: Vec<u8>,
    payload: Vec<u8>,
    len: usize,
}

/// The events of one end of a connection, until somebody takes them.
#[derive(Clone)]
pub struct Trace(Arc<Mutex<Events>>);

struct Events {
    about: About,
    of: Option<Arc<QlogEnd>>,
    now: Instant,
    lines: Vec<u8>,
    recovery: Recovery,
    /// How far this end's and the peer's acknowledgement delays are shifted (RFC 9000, 18.2).
    exponents: [u64; 2],
    /// The addresses of paths, as they were told last.
    tuples: Vec<(u32, Option<IpAddr>, SocketAddr)>,
    /// What a client says of itself, until it is known what it calls the connection.
    own: Option<Vec<u8>>,
    last_path: u32,
    is_ended: bool,
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Trace")
    }
}

impl Trace {
    /// Of a connection that begins at this moment.
    pub fn new(about: About, now: Instant) -> Trace {
        let recovery = Recovery::new(about.initial_rtt, about.packet_threshold, about.is_client);
        let mut events = Events {
            of: None,
            now,
            lines: Vec::new(),
            recovery,
            exponents: [3; 2],
            tuples: vec![(0, about.local.0, about.remote)],
            own: None,
            last_path: 0,
            is_ended: false,
            about,
        };
        if let Some(first) = events.about.first {
            events.named(&first);
        }
        Trace(Arc::new(Mutex::new(events)))
    }

    fn lock(&self) -> MutexGuard<'_, Events> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What happens from now on happens at this moment.
    pub fn at(&self, now: Instant) {
        self.lock().now = now;
    }

    /// A deadline has passed at this moment, of which the library is told next.
    pub fn due(&self, now: Instant) {
        let mut events = self.lock();
        events.now = now;
        events.recovery.due(now);
    }

    /// Tells what has changed of the paths of its connection.
    pub fn follow(&self, connection: &library::Connection) {
        let views = library::views(connection);
        let mut events = self.lock();
        for view in views {
            events.follow(&view);
        }
    }

    /// A packet of this path was taken for lost that has this number, and so many octets that count as under way.
    pub(crate) fn lost(&self, path: u32, number: u64, octets: u64) {
        let mut events = self.lock();
        let lost = events.recovery.lost(path, number, octets);
        events.lost(lost);
    }

    /// By which path the last packet went.
    pub(crate) fn last_path(&self) -> u32 {
        self.lock().last_path
    }

    /// So were all up to this moment that later ones have overtaken.
    pub(crate) fn lost_until(&self, until: Instant) {
        let mut events = self.lock();
        let lost = events.recovery.lost_until(until);
        events.lost(lost);
    }

    /// The connection is over for this end.
    pub(crate) fn end(&self, now: Instant, why: CloseReason) {
        let trigger = match why {
            CloseReason::TimedOut => "idle_timeout",
            CloseReason::Finished | CloseReason::Application(_) => "application",
            CloseReason::Reset | CloseReason::Aborted | CloseReason::Refused | CloseReason::Unreachable => {
                "error"
            }
        };
        let mut events = self.lock();
        if !std::mem::replace(&mut events.is_ended, true) {
            events.now = now;
            events.tell("quic:connection_closed", json!({ "trigger": trigger }), None);
        }
    }

    /// Adds an event of what is spoken on the connection.
    pub fn tell(&self, name: &str, data: Value) {
        self.lock().tell(name, data, None);
    }

    /// Adds such events, as records.
    pub(crate) fn add(&self, events: &[u8]) {
        self.lock().lines.extend_from_slice(events);
    }

    /// What has happened since this was asked last, if anything: records of a JSON text sequence (RFC 7464), and whose they are.
    pub fn take(&self) -> Option<(Arc<QlogEnd>, Vec<u8>)> {
        let mut events = self.lock();
        let of = events.of.clone().filter(|_| !events.lines.is_empty())?;
        Some((of, std::mem::take(&mut events.lines)))
    }
}

/// What a packet's header says: its kind, and the connection ids.
fn header(header: &[u8]) -> (Space, Map<String, Value>) {
    let first = header.first().copied().unwrap_or(0);
    let mut told = Map::new();
    //= RFC 9000 (17.2, 17.3): the form, and in long headers the type.
    let (space, kind) = match (first & 0x80, first >> 4 & 3) {
        (0, _) => (Space::Data, "1RTT"),
        (_, 0) => (Space::Initial, "initial"),
        (_, 1) => (Space::Data, "0RTT"),
        (_, 2) => (Space::Handshake, "handshake"),
        (..) => (Space::Initial, "retry"),
    };
    told.insert("packet_type".to_owned(), kind.into());
    if first & 0x80 == 0 {
        let number = usize::from(first & 3) + 1;
        let id = header.get(1..header.len().saturating_sub(number)).unwrap_or_default();
        told.insert("dcid".to_owned(), frames::hex(id).into());
    } else {
        let mut rest = header.get(5..).unwrap_or_default();
        for name in ["dcid", "scid"] {
            let Some((len, id)) = rest.split_first() else { break };
            let Some((id, behind)) = id.split_at_checked(usize::from(*len)) else { break };
            told.insert(name.to_owned(), frames::hex(id).into());
            rest = behind;
        }
    }
    (space, told)
}

/// Which kind a header's packet is, for as long as it is under way.
fn kind(told: &Map<String, Value>) -> &'static str {
    let kinds = ["initial", "0RTT", "handshake", "retry"];
    let said = told.get("packet_type").and_then(Value::as_str);
    kinds.into_iter().find(|kind| Some(*kind) == said).unwrap_or("1RTT")
}

/// An end's address, port and connection id.
fn endpoint(address: Option<IpAddr>, port: Option<u16>, id: Option<String>) -> Value {
    let mut told = Map::new();
    if let Some(address) = address {
        let version = if address.is_ipv4() { "v4" } else { "v6" };
        told.insert(format!("ip_{version}"), address.to_string().into());
        told.extend(port.map(|port| (format!("port_{version}"), port.into())));
    }
    told.extend(id.map(|id| ("connection_ids".to_owned(), json!([id]))));
    told.into()
}

fn written(parameters: &TransportParameters) -> Vec<u8> {
    let mut octets = Vec::new();
    parameters.write(&mut octets);
    octets
}

impl Events {
    fn tell(&mut self, name: &str, data: Value, path: Option<u32>) {
        let time = (self.now.as_nanos() / 1_000) as f64 / 1e3;
        let mut event = json!({ "time": time, "name": name, "data": data });
        if let Some(path) = path {
            event["tuple"] = format!("p{path}").into();
        }
        record(&event, &mut self.lines);
    }

    /// This is what its client called the connection.
    fn named(&mut self, id: &ConnectionId) {
        self.of.get_or_insert_with(|| {
            let About { host, flow, is_client, .. } = &self.about;
            let (host, flow, is_client) = (host.clone(), *flow, *is_client);
            Arc::new(QlogEnd { group: id.to_string(), is_client, host, flow })
        });
        if let Some(own) = self.own.take() {
            self.started(&Parameters::read(&own), Some(id.to_string()));
        }
    }

    /// It begins, and says this of itself.
    fn started(&mut self, own: &Parameters<'_>, remote: Option<String>) {
        self.exponents[0] = own.ack_delay_exponent();
        self.recovery.ends_idle(own.max_idle_timeout_ms());
        let About { local: (address, port), remote: to, .. } = self.about;
        let remote = endpoint(Some(to.ip()), Some(to.port()), remote);
        let data = json!({ "local": endpoint(address, port, Some(own.source())), "remote": remote });
        self.tell("quic:connection_started", data, None);
        self.set(own, "local");
        self.assigned(0, address, to);
    }

    /// A path goes by these addresses.
    fn assigned(&mut self, path: u32, local: Option<IpAddr>, remote: SocketAddr) {
        let remote = endpoint(Some(remote.ip()), Some(remote.port()), None);
        let mut data = json!({ "tuple_id": format!("p{path}"), "tuple_remote": remote });
        if local.is_some() {
            data["tuple_local"] = endpoint(local, None, None);
        }
        self.tell("quic:tuple_assigned", data, None);
    }

    fn set(&mut self, read: &Parameters<'_>, initiator: &str) {
        let mut data = Map::from_iter([("initiator".to_owned(), initiator.into())]);
        data.extend(read.told());
        self.tell("quic:parameters_set", data.into(), None);
    }

    /// A client says this of itself.
    fn said(&mut self, own: &TransportParameters) {
        self.own = Some(written(own));
    }

    /// A server begins, since this packet has come.
    fn accepted(&mut self, own: &TransportParameters, opened: Option<Opened>) {
        let own = written(own);
        let client = opened.as_ref().and_then(|opened| header(&opened.header).1.remove("scid"));
        self.started(&Parameters::read(&own), client.and_then(|id| Some(id.as_str()?.to_owned())));
        if let Some(Opened { number, header, payload, len }) = opened {
            self.received(0, number, &header, &payload, len);
        }
    }

    /// The peer says this of itself, or did so before.
    fn heard(&mut self, peer: &TransportParameters, is_remembered: bool) {
        let peer = written(peer);
        let peer = Parameters::read(&peer);
        if is_remembered {
            let mut data = peer.told();
            //= RFC 9000 (7.4.1): what is not remembered.
            data.retain(|name, _| {
                !name.contains("connection_id")
                    && !name.contains("ack_delay")
                    && name != "stateless_reset_token"
                    || name == "active_connection_id_limit"
            });
            return self.tell("quic:parameters_restored", data.into(), None);
        }
        self.exponents[1] = peer.ack_delay_exponent();
        self.recovery.ends_idle(peer.max_idle_timeout_ms());
        self.recovery.max_ack_delay = Duration::from_millis(peer.max_ack_delay_ms());
        self.set(&peer, "remote");
    }

    fn packet(&mut self, name: &str, path: u32, header: Map<String, Value>, frames: Vec<Value>, len: usize) {
        let mut data = json!({ "header": header });
        if !frames.is_empty() {
            data["frames"] = frames.into();
        }
        data["raw"] = json!({ "length": len });
        self.tell(name, data, Some(path));
    }

    fn header(&self, path: u32, number: u64, octets: &[u8]) -> (Space, Map<String, Value>) {
        let (space, mut told) = header(octets);
        told.insert("packet_number".to_owned(), number.into());
        if path != 0 {
            told.insert("path_id".to_owned(), path.into());
        }
        (space, told)
    }

    fn sent(&mut self, path: u32, number: u64, header: &[u8], payload: &[u8], len: usize) {
        self.last_path = path;
        let (space, header) = self.header(path, number, header);
        let frames = frames::read(payload, self.exponents[0]);
        // What ends a connection is not waited for.
        if !frames.is_close {
            let is_counted = frames.is_eliciting || frames.is_padded;
            let octets = if is_counted { len as u64 } else { 0 };
            self.recovery.sent((space, path), number, kind(&header), (self.now, octets, &frames));
        }
        self.packet("quic:packet_sent", path, header, frames.told, len);
    }

    fn received(&mut self, path: u32, number: u64, header: &[u8], payload: &[u8], len: usize) {
        let (space, header) = self.header(path, number, header);
        let frames = frames::read(payload, self.exponents[1]);
        self.packet("quic:packet_received", path, header, frames.told, len);
        for ack in &frames.acks {
            self.recovery.acknowledged(self.now, space, ack);
        }
    }

    /// A Retry has come, which has neither a number nor frames.
    fn retried(&mut self, octets: &[u8], len: usize) {
        let (_, header) = header(octets);
        self.packet("quic:packet_received", 0, header, Vec::new(), len);
    }

    fn lost(&mut self, lost: impl IntoIterator<Item = Lost>) {
        for Lost { path, number, sent, is_overtaken } in lost {
            let mut header = json!({ "packet_type": sent.kind, "packet_number": number });
            if path != 0 {
                header["path_id"] = path.into();
            }
            let trigger = if is_overtaken { "reordering_threshold" } else { "time_threshold" };
            let data = json!({ "header": header, "trigger": trigger, "raw": { "length": sent.octets } });
            self.tell("quic:packet_lost", data, None);
        }
    }

    fn follow(&mut self, view: &PathView) {
        let known = self.tuples.iter_mut().find(|(path, ..)| *path == view.number);
        let is_new = match &known {
            None => true,
            Some((_, local, remote)) => {
                *remote != view.remote
                    || matches!((*local, view.local), (Some(one), Some(other)) if one != other)
            }
        };
        if is_new {
            let path = view.number;
            match known {
                None => self.tuples.push((path, view.local, view.remote)),
                Some(known) => {
                    *known = (path, view.local, view.remote);
                    self.recovery.moved(path);
                }
            }
            self.assigned(path, view.local, view.remote);
        }
        let mut news = self.recovery.news(view);
        if !news.is_empty() {
            if view.number != 0 {
                news.insert("path_id".to_owned(), view.number.into());
            }
            self.tell("quic:recovery_metrics_updated", news.into(), None);
        }
    }
}

#[cfg(test)]
mod tests;

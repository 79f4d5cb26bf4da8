//! A client, a gateway, a link that loses, repeats and reorders, and origins that answer as a test says.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use airloom_base::{Duration, Instant};
use airloom_content::http::message::Fields;
use airloom_proxies::wap_gateway::{
    Config, FetchError, FetchId, FetchOrder, FetchRequest, Fetched, Gateway, Service,
};
use airloom_transports::wsp::capabilities::{Capability, option};
use airloom_transports::wsp::client::{self, Client};
use airloom_transports::wsp::headers::{self, Encoder, Pages};
use airloom_transports::wsp::wire::Method;
use airloom_transports::wsp::{connectionless, status, wire::Pdu};
use airloom_transports::wtp::{self, Transaction};
use bytes::Bytes;

pub const WMLC: &str = "application/vnd.wap.wmlc";
pub const WML: &str = "text/vnd.wap.wml";
pub const DECK: &str = "<?xml version=\"1.0\"?>\n<!DOCTYPE wml PUBLIC \"-//WAPFORUM//DTD WML 1.1//EN\" \
    \"http://www.wapforum.org/DTD/wml_1.1.xml\">\n<wml><card id=\"a\"><p>Hello, phone</p></card></wml>";

/// What the gateway draws what nobody can guess from.
pub const KEY: (u64, u64) = (1, 2);

/// One way over the air; the way to origins.
const LATENCY: Duration = Duration::from_millis(50);

/// What an origin does with a request: after how long which answer comes.
pub type Origin = Box<dyn FnMut(&FetchRequest) -> Vec<(Duration, Fetched)>>;

/// What happens to the n-th datagram: when each copy of it arrives, counted from when it would without anything happening.
pub type Fate = Box<dyn FnMut(u64) -> Vec<Duration>>;

pub struct Pair {
    pub now: Instant,
    pub client: Client,
    pub at: SocketAddr,
    /// The client hears no question whether a transaction is its own.
    pub is_deaf: bool,
    pub gateway: Gateway,
    pub origin: Origin,
    pub fate: Fate,
    /// All requests that reached an origin.
    pub asked: Vec<FetchRequest>,
    pub cancelled: Vec<FetchId>,
    pub events: Vec<client::Event>,
    /// Datagrams without a session that reached the client.
    pub units: Vec<Bytes>,
    /// Those that reached its port for pushes.
    pub pushes: Vec<Bytes>,
    wire: BTreeMap<(Instant, u64), (bool, Service, SocketAddr, Bytes)>,
    answers: BTreeMap<(Instant, u64), (FetchId, Fetched)>,
    /// Octets and datagrams from the client and to it.
    pub from_client: (u64, u64),
    pub to_client: (u64, u64),
    sent: u64,
}

pub fn gateway_address() -> SocketAddr {
    "10.0.0.2:9201".parse().unwrap()
}

/// The fields of an answer.
pub fn fields(list: &[(&str, &str)]) -> Fields {
    list.iter().map(|(n, v)| (n.as_bytes().to_vec(), v.as_bytes().to_vec())).collect()
}

/// A complete answer, at once.
pub fn answer(status: u16, list: &[(&str, &str)], body: impl Into<Bytes>) -> Vec<(Duration, Fetched)> {
    let head = Fetched::Head { status, fields: fields(list) };
    let body = body.into();
    let chunks = (!body.is_empty()).then_some(Fetched::Chunk(body));
    [Some(head), chunks, Some(Fetched::End)].into_iter().flatten().map(|f| (Duration::ZERO, f)).collect()
}

/// Compact headers.
pub fn compact(list: &[(&str, &str)]) -> Bytes {
    let mut out = Vec::new();
    list.iter().for_each(|(name, value)| Encoder::default().header(name, value, &mut out).unwrap());
    out.into()
}

/// A content type and compact headers.
pub fn with_type(content_type: &str, list: &[(&str, &str)]) -> Bytes {
    let mut out = Vec::new();
    Encoder::default().content_type(content_type, &mut out);
    out.extend(compact(list));
    out.into()
}

/// A reply as a person reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    pub content_type: String,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

impl Reply {
    pub fn read(code: u8, octets: &[u8], body: &Bytes) -> Reply {
        let (content_type, len) = headers::decode_content_type(octets).unwrap();
        let all = headers::decode(&octets[len..], &Pages::new()).unwrap();
        let headers =
            all.iter().map(|h| (h.name.to_string(), h.value.text().unwrap_or("").to_owned())).collect();
        Reply { status: status::decode(code).unwrap(), content_type, headers, body: body.clone() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.as_str())
    }

    /// The deck in it, as text.
    pub fn deck(&self) -> String {
        airloom_content::markup::decompile(&self.body, airloom_content::wbxml::Limits::default()).unwrap()
    }
}

impl Pair {
    pub fn new(
        config: Config,
        origin: impl FnMut(&FetchRequest) -> Vec<(Duration, Fetched)> + 'static,
    ) -> Pair {
        config.check().unwrap();
        Pair {
            now: Instant::ZERO,
            client: Client::new(wtp::Config::default(), gateway_address(), 1),
            at: "10.0.0.1:49200".parse().unwrap(),
            is_deaf: false,
            gateway: Gateway::new(config, KEY),
            origin: Box::new(origin),
            fate: Box::new(|_| vec![Duration::ZERO]),
            asked: Vec::new(),
            cancelled: Vec::new(),
            events: Vec::new(),
            units: Vec::new(),
            pushes: Vec::new(),
            wire: BTreeMap::new(),
            answers: BTreeMap::new(),
            from_client: (0, 0),
            to_client: (0, 0),
            sent: 0,
        }
    }

    /// With an open session whose client takes everything of any size.
    pub fn open(
        config: Config,
        origin: impl FnMut(&FetchRequest) -> Vec<(Duration, Fetched)> + 'static,
    ) -> Pair {
        let mut pair = Pair::new(config, origin);
        pair.connect(0, &[("Accept", "*/*")]);
        pair
    }

    /// Opens a session.
    pub fn connect(&mut self, client_sdu: u32, session_headers: &[(&str, &str)]) {
        let options = option::PUSH | option::CONFIRMED_PUSH | option::SESSION_RESUME;
        let wishes = vec![
            Capability::ClientSduSize(client_sdu),
            Capability::ServerSduSize(0),
            Capability::ProtocolOptions(options),
            Capability::MethodMor(8),
            Capability::PushMor(4),
        ];
        self.client.connect(self.now, wishes, compact(session_headers));
        self.run(Duration::from_secs(120), |pair| !pair.events.is_empty());
        assert!(matches!(self.events.pop(), Some(client::Event::Connected(_))), "{:?}", self.events);
        // The acknowledgement of the session's beginning is on its way; nothing waits for it.
        self.run(Duration::from_millis(200), |_| false);
    }

    pub fn get(&mut self, uri: &str) -> Reply {
        self.ask(Method::Get, uri, Bytes::new(), Bytes::new())
    }

    /// Asks and waits for the reply.
    pub fn ask(&mut self, method: Method, uri: &str, headers: Bytes, data: Bytes) -> Reply {
        let request = self.begin(method, uri, headers, data);
        self.wait_for(request)
    }

    pub fn begin(&mut self, method: Method, uri: &str, headers: Bytes, data: Bytes) -> Transaction {
        let uri = Bytes::copy_from_slice(uri.as_bytes());
        self.client.request(self.now, method, uri, headers, data).expect("the session is open")
    }

    /// Waits for the reply to a request.
    pub fn wait_for(&mut self, request: Transaction) -> Reply {
        let is_it = |event: &client::Event| match event {
            client::Event::Reply { request: r, .. } | client::Event::RequestAborted(r, _) => *r == request,
            _ => false,
        };
        self.run(Duration::from_secs(400), |pair| pair.events.iter().any(is_it));
        let at = self.events.iter().position(is_it).unwrap_or_else(|| panic!("no reply: {:?}", self.events));
        match self.events.remove(at) {
            client::Event::Reply { status, headers, data, .. } => Reply::read(status, &headers, &data),
            other => panic!("{other:?}"),
        }
    }

    /// Sends a datagram without a session.
    pub fn unit(&mut self, tid: u8, pdu: &Pdu) {
        let octets = connectionless::emit(tid, pdu);
        self.datagram(Service::Connectionless, self.at, octets);
    }

    /// Puts a datagram on its way to the gateway.
    pub fn datagram(&mut self, service: Service, from: SocketAddr, octets: Bytes) {
        self.send(true, service, from, octets);
    }

    fn send(&mut self, to_gateway: bool, service: Service, client: SocketAddr, octets: Bytes) {
        for later in (self.fate)(self.sent) {
            let at = self.now + LATENCY + later;
            self.wire.insert((at, self.sent), (to_gateway, service, client, octets.clone()));
            self.sent += 1;
        }
        self.sent += 1;
    }

    fn settle(&mut self) {
        while let Some(event) = self.client.poll_event() {
            self.events.push(event);
        }
        while let Some((_, octets)) = self.client.poll_transmit() {
            self.send(true, Service::Session, self.at, octets);
        }
        while let Some((service, to, octets)) = self.gateway.poll_transmit() {
            self.to_client.0 += octets.len() as u64;
            self.to_client.1 += 1;
            self.send(false, service, to, octets);
        }
        while let Some(order) = self.gateway.poll_fetch() {
            match order {
                FetchOrder::Start { id, request } => {
                    for (after, fetched) in (self.origin)(&request) {
                        self.sent += 1;
                        self.answers.insert((self.now + after, self.sent), (id, fetched));
                    }
                    self.asked.push(*request);
                }
                FetchOrder::Cancel(id) => self.cancelled.push(id),
            }
        }
    }

    /// Lets things happen until `done` or so long.
    pub fn run(&mut self, most: Duration, done: impl Fn(&Pair) -> bool) {
        let end = self.now + most;
        self.settle();
        while !done(self) {
            let wire = self.wire.first_key_value().map(|(key, _)| key.0);
            let answer = self.answers.first_key_value().map(|(key, _)| key.0);
            let next = [wire, answer, self.client.poll_timeout(), self.gateway.poll_timeout()];
            let Some(next) = next.into_iter().flatten().min().filter(|at| *at <= end) else {
                self.now = end;
                break;
            };
            self.now = self.now.max(next);
            if answer == Some(next) {
                let (_, (id, fetched)) = self.answers.pop_first().unwrap();
                self.gateway.handle_fetch(self.now, id, fetched);
            } else if wire == Some(next) {
                self.arrive();
            } else {
                self.client.handle_timeout(self.now);
                self.gateway.handle_timeout(self.now);
            }
            self.settle();
        }
    }

    fn arrive(&mut self) {
        let (_, (to_gateway, service, client, octets)) = self.wire.pop_first().unwrap();
        if to_gateway {
            self.from_client.0 += octets.len() as u64;
            self.from_client.1 += 1;
            self.gateway.handle_datagram(self.now, service, client, &octets);
        } else if self.is_deaf && service == Service::Session && octets[0] & 0xFC == 0x1C {
            // An Ack with the flag Tve.
        } else if client == self.at && service == Service::Session {
            self.client.handle_datagram(self.now, gateway_address(), &octets);
        } else if client == self.at {
            self.units.push(octets);
        } else if client.ip() == self.at.ip() && client.port() == 2948 {
            self.pushes.push(octets);
        }
    }

    /// Statuses of origins that fail.
    pub fn failing(why: FetchError) -> Vec<(Duration, Fetched)> {
        vec![(Duration::ZERO, Fetched::Failed(why))]
    }
}

/// Origins that answer from a list, one after the other.
pub fn in_turn(list: Vec<Vec<(Duration, Fetched)>>) -> impl FnMut(&FetchRequest) -> Vec<(Duration, Fetched)> {
    let mut list = VecDeque::from(list);
    move |_| list.pop_front().unwrap_or_default()
}

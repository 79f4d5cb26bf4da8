//! The client: a session, or single datagrams, one request at a time.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use airloom_base::Instant;
use airloom_transports::wsp::capabilities::{Agreed, Capability, option};
use airloom_transports::wsp::client::{self as session, Acknowledging};
use airloom_transports::wsp::connectionless;
use airloom_transports::wsp::headers::{Version, encoding_version};
use airloom_transports::wsp::status::{self, Reason};
use airloom_transports::wsp::wire::Method;
use airloom_transports::wtp::{self, Counters, Transaction};
use bytes::Bytes;

use super::Watch;
use super::error::Error;
use super::headers::{self, List};
use super::push::Push;
use super::socket::{Socket, after};
use crate::daemon::udp::anywhere;

/// Redirections that are followed before a session is given up.
const MOST_REDIRECTIONS: usize = 4;
/// Pushes that are kept for the caller; the oldest are dropped.
const MOST_PUSHES: usize = 64;
/// Without a session: a request is said again after so long.
const REPEAT: Duration = Duration::from_secs(5);
/// Port of a redirection that names none.
const PORT: u16 = 9201;

/// How to speak to a gateway.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it is.
    pub gateway: SocketAddr,
    /// Our own address, on a machine that has several; any that leads to the gateway if not said.
    pub local: Option<IpAddr>,
    /// In single datagrams, without a session?
    pub connectionless: bool,
    /// Headers of the session; without one, of each request.
    pub headers: List,
    /// Largest reply that is taken, in octets; 0 for any.
    pub client_sdu: u32,
    /// Largest request that the gateway is asked to take.
    pub server_sdu: u32,
    /// When replies are acknowledged.
    pub acknowledging: Acknowledging,
    /// Settings of WTP.
    pub wtp: wtp::Config,
    /// Number of the first transaction: one that the gateway has not seen of late.
    pub first: u16,
    /// Time that an opening or a request may take.
    pub time: Duration,
}

impl Options {
    /// Where to speak to `gateway` from.
    fn local_for(&self, gateway: SocketAddr) -> SocketAddr {
        self.local.map_or_else(|| anywhere(gateway), |ip| SocketAddr::new(ip, 0))
    }
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// Absolute address.
    pub uri: String,
    /// Headers besides those of the session.
    pub headers: List,
    /// Content type and body, for methods that have one.
    pub body: Option<(String, Bytes)>,
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Status as HTTP has it.
    pub status: u16,
    /// What the body is.
    pub content_type: String,
    /// Headers.
    pub headers: List,
    /// Body.
    pub body: Bytes,
}

enum Machine {
    Session(Box<session::Client>),
    Connectionless(connectionless::Client),
}

/// The name of a request.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    Method(Transaction),
    Unit(u8),
}

/// What is heard that matters to a call.
enum Heard {
    Open(Bytes),
    Elsewhere(Option<SocketAddr>),
    Resumed,
    Reply(Name, u8, Bytes, Bytes),
    Aborted(Name, Reason),
    Gone(Reason),
}

/// A client with an open session (or none, where none is needed).
#[derive(getset::CopyGetters)]
pub struct Client {
    socket: Socket,
    /// The gateway that is spoken to: another one than the first after a redirection.
    #[getset(get_copy = "pub")]
    gateway: SocketAddr,
    options: Options,
    machine: Machine,
    version: Version,
    server_headers: List,
    pushes: VecDeque<Push>,
}

impl Client {
    /// Opens a socket and, unless it goes without, a session.
    pub fn open(options: Options, watch: Watch) -> Result<Client, Error> {
        let gateway = options.gateway;
        let socket = Socket::open(options.local_for(gateway), Some(gateway))?;
        let machine = machine(&options, gateway);
        let (version, server_headers, pushes) = (Version::default(), List::new(), VecDeque::new());
        let mut client = Client { socket, gateway, options, machine, version, server_headers, pushes };
        if !client.options.connectionless {
            client.connect(watch)?;
        }
        Ok(client)
    }

    fn connect(&mut self, watch: Watch) -> Result<(), Error> {
        let until = after(self.socket.now(), self.options.time);
        let headers = headers::encode(Version::default(), None, &self.options.headers)?;
        let Options { client_sdu, server_sdu, .. } = self.options;
        let options = option::CONFIRMED_PUSH | option::PUSH | option::SESSION_RESUME;
        let capabilities = vec![
            Capability::ClientSduSize(client_sdu),
            Capability::ServerSduSize(server_sdu),
            Capability::ProtocolOptions(options),
        ];
        for _ in 0..=MOST_REDIRECTIONS {
            let now = self.socket.now();
            if let Machine::Session(session) = &mut self.machine {
                session.connect(now, capabilities.clone(), headers.clone());
            }
            match self.hear(until, watch)? {
                Heard::Open(said) => {
                    // A server whose headers cannot be read says nothing of its version; its session is as good.
                    self.server_headers = headers::list(&said).unwrap_or_default();
                    self.version = encoding_version(&said).unwrap_or_default();
                    return Ok(());
                }
                Heard::Elsewhere(Some(gateway)) => self.turn_to(gateway)?,
                Heard::Elsewhere(None) => return Err(Error::Redirected),
                Heard::Gone(reason) => return Err(Error::Disconnected(reason)),
                // Nothing else was asked for.
                Heard::Resumed | Heard::Reply(..) | Heard::Aborted(..) => {}
            }
        }
        Err(Error::Redirected)
    }

    /// Speaks to another gateway from now on, where nothing has to be opened.
    pub fn turn_to(&mut self, gateway: SocketAddr) -> Result<(), Error> {
        self.socket.reopen(self.options.local_for(gateway), Some(gateway))?;
        self.gateway = gateway;
        self.machine = machine(&self.options, gateway);
        Ok(())
    }

    /// What the gateway said when the session was opened.
    pub fn server_headers(&self) -> &[(String, String)] {
        &self.server_headers
    }

    /// What the session goes by; none without one.
    pub fn agreed(&self) -> Option<&Agreed> {
        match &self.machine {
            Machine::Session(session) => Some(session.agreed()),
            Machine::Connectionless(_) => None,
        }
    }

    /// What WTP counted.
    pub fn counters(&self) -> Counters {
        match &self.machine {
            Machine::Session(session) => session.counters(),
            Machine::Connectionless(_) => Counters::default(),
        }
    }

    /// Asks, and waits for the reply. When the time is over the request is aborted, and the session goes on.
    pub fn request(&mut self, request: &Request, time: Duration, watch: Watch) -> Result<Response, Error> {
        if self.is_over() {
            return Err(Error::Disconnected(Reason::Disconnect));
        }
        let until = after(self.socket.now(), time);
        let (headers, data) = self.contents(request)?;
        let (now, uri) = (self.socket.now(), Bytes::from(request.uri.clone()));
        let name = match &mut self.machine {
            Machine::Session(session) => {
                session.request(now, request.method, uri, headers, data).map(Name::Method)
            }
            Machine::Connectionless(client) => {
                client.request(request.method, uri, headers, data).map(Name::Unit)
            }
        };
        let name = name.ok_or(Error::TooLarge)?;
        loop {
            match self.wait_for(name, until, watch) {
                Ok(Heard::Reply(of, status, headers, body)) if of == name => {
                    let (content_type, headers) = headers::content(&headers)?;
                    // A status that is not assigned is the gateway's failure.
                    let status = status::decode(status).unwrap_or(502);
                    return Ok(Response { status, content_type, headers, body });
                }
                // The end of a session is the end of its requests, which is heard first.
                Ok(Heard::Aborted(of, reason)) if of == name && self.is_over() => {
                    return Err(Error::Disconnected(reason));
                }
                Ok(Heard::Aborted(of, reason)) if of == name => return Err(Error::Aborted(reason)),
                Ok(Heard::Gone(reason)) => return Err(Error::Disconnected(reason)),
                Ok(_) => {}
                Err(error) => {
                    self.give_up(name);
                    return Err(match error {
                        Error::TimedOut(_) => Error::TimedOut(time),
                        other => other,
                    });
                }
            }
        }
    }

    /// Is there no open session where there is to be one?
    fn is_over(&self) -> bool {
        matches!(&self.machine, Machine::Session(session) if session.state() != session::State::Connected)
    }

    fn contents(&self, request: &Request) -> Result<(Bytes, Bytes), Error> {
        let mut list = List::new();
        if self.options.connectionless {
            list.clone_from(&self.options.headers);
            // A header of the request stands in place of the usual one of its name.
            list.retain(|(name, _)| !request.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)));
        }
        list.extend(request.headers.iter().cloned());
        if !request.method.has_body() {
            return Ok((headers::encode(self.version, None, &list)?, Bytes::new()));
        }
        let (content_type, data) = request.body.clone().unwrap_or_default();
        let has = |name: &str| list.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        if !has("content-length") {
            // Without it Kannel passes on a body whose end its origin cannot know.
            list.insert(0, ("Content-Length".to_owned(), data.len().to_string()));
        }
        let content_type = if content_type.is_empty() { "application/octet-stream" } else { &content_type };
        Ok((headers::encode(self.version, Some(content_type), &list)?, data))
    }

    /// Without a session nobody else says a request again.
    fn wait_for(&mut self, name: Name, until: Instant, watch: Watch) -> Result<Heard, Error> {
        let Name::Unit(tid) = name else { return self.hear(until, watch) };
        loop {
            let again = after(self.socket.now(), REPEAT);
            match self.hear(again.min(until), watch) {
                Err(Error::TimedOut(_)) if again < until => {
                    if let Machine::Connectionless(client) = &mut self.machine {
                        client.repeat(tid);
                    }
                }
                heard => return heard,
            }
        }
    }

    fn give_up(&mut self, name: Name) {
        let now = self.socket.now();
        match (&mut self.machine, name) {
            (Machine::Session(session), Name::Method(transaction)) => session.abort(now, transaction),
            (Machine::Connectionless(client), Name::Unit(tid)) => client.forget(tid),
            _ => {}
        }
        // There is another error to tell.
        let _ = self.flush();
    }

    /// Puts the session to rest.
    pub fn suspend(&mut self) -> Result<(), Error> {
        let now = self.socket.now();
        let Machine::Session(session) = &mut self.machine else { return Err(Error::NotAgreed("suspension")) };
        session.suspend(now);
        if session.state() != session::State::Suspended {
            return Err(Error::NotAgreed("suspension"));
        }
        self.flush()
    }

    /// Takes the session up again, from another port if `elsewhere`.
    pub fn resume(&mut self, elsewhere: bool, watch: Watch) -> Result<(), Error> {
        if elsewhere {
            self.socket.reopen(self.options.local_for(self.gateway), Some(self.gateway))?;
        }
        let (now, time) = (self.socket.now(), self.options.time);
        let Machine::Session(session) = &mut self.machine else { return Err(Error::NotAgreed("suspension")) };
        session.resume(now);
        loop {
            match self.hear(after(now, time), watch) {
                Ok(Heard::Resumed) => return Ok(()),
                Ok(Heard::Gone(reason)) => return Err(Error::Disconnected(reason)),
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The next push of the session; none if none came in time.
    pub fn push(&mut self, time: Duration, watch: Watch) -> Result<Option<Push>, Error> {
        let until = after(self.socket.now(), time);
        loop {
            let heard = self.poll();
            if let Some(push) = self.pushes.pop_front() {
                // Its confirmation.
                self.flush()?;
                return Ok(Some(push));
            }
            if let Some(Heard::Gone(reason)) = heard {
                return Err(Error::Disconnected(reason));
            }
            match self.step(until, watch) {
                Ok(Some(Heard::Gone(reason))) => return Err(Error::Disconnected(reason)),
                Ok(_) => {}
                Err(Error::TimedOut(_)) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }

    /// Ends the session and says so. Nothing is waited for.
    pub fn close(&mut self) -> Result<(), Error> {
        let now = self.socket.now();
        if let Machine::Session(session) = &mut self.machine {
            session.disconnect(now);
        }
        match self.flush() {
            Err(Error::NobodyThere(_)) => Ok(()),
            other => other,
        }
    }

    /// Waits until something is heard.
    fn hear(&mut self, until: Instant, watch: Watch) -> Result<Heard, Error> {
        loop {
            if let Some(heard) = self.step(until, watch)? {
                return Ok(heard);
            }
        }
    }

    /// Takes what was heard already, or sends what there is to send and waits for one datagram or deadline.
    fn step(&mut self, until: Instant, watch: Watch) -> Result<Option<Heard>, Error> {
        if let Some(heard) = self.poll() {
            self.flush()?;
            return Ok(Some(heard));
        }
        self.flush()?;
        let deadline = match &self.machine {
            Machine::Session(session) => session.poll_timeout(),
            Machine::Connectionless(_) => None,
        };
        let came = self.socket.wait(deadline.unwrap_or(Instant::FAR_FUTURE).min(until), watch)?;
        let now = self.socket.now();
        match (came, &mut self.machine) {
            (Some((from, datagram)), Machine::Session(session)) => {
                session.handle_datagram(now, from, &datagram);
            }
            (Some((from, datagram)), Machine::Connectionless(client)) => {
                client.handle_datagram(from, &datagram);
            }
            (None, Machine::Session(session)) if deadline.is_some_and(|at| at <= now) => {
                session.handle_timeout(now);
            }
            (None, _) if until <= now => return Err(Error::TimedOut(self.options.time)),
            (None, _) => {}
        }
        Ok(None)
    }

    fn flush(&mut self) -> Result<(), Error> {
        loop {
            let next = match &mut self.machine {
                Machine::Session(session) => session.poll_transmit(),
                Machine::Connectionless(client) => client.poll_transmit(),
            };
            let Some((to, datagram)) = next else { return Ok(()) };
            self.socket.send(to, &datagram)?;
        }
    }

    /// What was heard already; pushes are put aside, and confirmed where that is asked for.
    fn poll(&mut self) -> Option<Heard> {
        use session::Event;
        loop {
            let now = self.socket.now();
            let (headers, data) = match &mut self.machine {
                Machine::Session(session) => match session.poll_event()? {
                    Event::Connected(headers) => return Some(Heard::Open(headers)),
                    Event::Redirected { addresses, .. } => {
                        return Some(Heard::Elsewhere(addresses.iter().find_map(|a| a.socket(PORT))));
                    }
                    Event::Resumed => return Some(Heard::Resumed),
                    Event::Reply { request, status, headers, data } => {
                        return Some(Heard::Reply(Name::Method(request), status, headers, data));
                    }
                    Event::RequestAborted(request, reason) => {
                        return Some(Heard::Aborted(Name::Method(request), reason));
                    }
                    Event::Disconnected(reason) => return Some(Heard::Gone(reason)),
                    Event::Push { push, headers, data } => {
                        if let Some(push) = push {
                            session.confirm(now, push);
                        }
                        (headers, data)
                    }
                },
                Machine::Connectionless(client) => match client.poll_event()? {
                    connectionless::Event::Reply { request, status, headers, data } => {
                        return Some(Heard::Reply(Name::Unit(request), status, headers, data));
                    }
                    connectionless::Event::Push { headers, data } => (headers, data),
                },
            };
            if let Ok((content_type, headers)) = headers::content(&headers) {
                if self.pushes.len() == MOST_PUSHES {
                    self.pushes.pop_front();
                }
                self.pushes.push_back(Push { from: self.gateway, content_type, headers, body: data });
            }
        }
    }
}

fn machine(options: &Options, gateway: SocketAddr) -> Machine {
    if options.connectionless {
        return Machine::Connectionless(connectionless::Client::new(gateway, options.first as u8));
    }
    let session = session::Client::new(options.wtp.clone(), gateway, options.first);
    Machine::Session(Box::new(session.with_acknowledging(options.acknowledging)))
}

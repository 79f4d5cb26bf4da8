//! The application: pages one after another, objects to requests, failures and results.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use airloom_base::random::Stream;
use airloom_base::record::{FlowRecord, Record};
use airloom_base::service::{Datagram, FlowFacts};
use airloom_base::{
    App, Body, CloseReason, ConfigError, Cx, Duration, Instant, SocketEvent, SocketId, Sockets, Summary,
};
use airloom_transports::wsp::capabilities::{Capability, DEFAULT_SDU, option};
use airloom_transports::wsp::client::{self, Client};
use airloom_transports::wsp::headers::{Version, decode_content_type, encoding_version};
use airloom_transports::wsp::status::{self, Reason};
use airloom_transports::wsp::wire::Pdu;
use airloom_transports::wsp::{connectionless, initiation};
use airloom_transports::wtp::Counters;
use bytes::Bytes;

use super::line::{Heard, Line, Request};
use super::{Acknowledging, CONNECTIONLESS_PORT, Config, Mode, SECURE, SESSION_PORT, SessionUse, headers};
use crate::pages::{Job, Loads, Page, Plan, authority};
use crate::times::Times;

/// Port of clients for pushes without a session.
const PUSH_PORT: u16 = 2948;
/// Redirections of one opening that are followed.
const MOST_REDIRECTIONS: u16 = 4;
/// Header octets of a UDP datagram.
const UDP_HEADER: usize = 8;

/// Who is where.
pub struct Whereabouts<'a> {
    /// Address of the gateway.
    pub gateway: IpAddr,
    /// Name of the host that the objects are at.
    pub origin: &'a str,
    /// Name of the host that the browser is on.
    pub host: &'a str,
    /// Its address, if it has one.
    pub local: Option<IpAddr>,
}

/// The browser.
#[derive(getset::CopyGetters)]
pub struct Browser {
    config: Config,
    /// Where its gateway is.
    #[getset(get_copy = "pub(super)")]
    gateway: SocketAddr,
    /// What stands between `http://` and the path.
    authority: String,
    host: String,
    local: String,
    capabilities: Vec<Capability>,
    headers: Bytes,
    request_headers: Bytes,
    plan: Plan,
    page: Option<Page>,
    line: Line,
    /// Since when a session is being opened.
    opening: Option<Instant>,
    /// Openings in a row that failed, and redirections in a row.
    failures: u16,
    redirections: u16,
    asked: BTreeMap<Request, Asked>,
    flow: Option<Flow>,
    /// What lines before this one counted.
    before: Counters,
    /// Until when a session is kept that a gateway asked for.
    invited: Option<Instant>,
    wake: Option<Instant>,
    results: Results,
}

/// A request that waits for its reply.
struct Asked {
    job: Job,
    since: Instant,
    /// When it is said again, if the browser has to.
    again: Option<Instant>,
}

/// A session, or all datagrams without one.
struct Flow {
    number: u32,
    open: Instant,
    facts: FlowFacts,
    counters: Counters,
}

#[derive(Default)]
struct Results {
    pages: Loads,
    object: Times,
    connect: Times,
    failed: u64,
    bytes: u64,
    wasted: u64,
    sessions: u64,
    sessions_failed: u64,
    asked_again: u64,
    timeouts: u64,
    pushes: u64,
    push_bytes: u64,
    initiations: u64,
    datagrams_sent: u64,
    datagrams_received: u64,
    /// Datagrams that the browser itself sent again.
    repeated: u64,
}

impl Browser {
    /// A browser; `stream` gives its random numbers by their name.
    pub fn new(
        config: Config,
        places: &Whereabouts,
        stream: impl Fn(&str) -> Stream,
    ) -> Result<Self, ConfigError> {
        ConfigError::when(config.timeout.is_zero(), "timeout", "must be above 0s")?;
        let is_hasty = config.repeat_after < Duration::from_millis(1);
        ConfigError::when(is_hasty, "repeat_after", "must be at least 1ms")?;
        ConfigError::when(config.method_mor == 0, "method_mor", "must be at least 1")?;
        for (key, size) in [("client_sdu", config.client_sdu), ("server_sdu", config.server_sdu)] {
            ConfigError::when(size.0 > u64::from(u32::MAX), key, "has 32 bits")?;
        }
        config.wtp.check().map_err(|error| error.below("wtp"))?;
        let connects = config.mode == Mode::Session;
        let mut session =
            headers::block("headers", &config.headers, config.headers_size, Version::default())?;
        let mut request = request_headers(&config, Version::default())?;
        if !connects {
            request = [session.as_ref(), request.as_ref()].concat().into();
            session = Bytes::new();
        }
        let usual = if connects { SESSION_PORT } else { CONNECTIONLESS_PORT };
        let secure = if config.wtls.is_some() { SECURE } else { 0 };
        let port = config.gateway_port.unwrap_or(usual + secure);
        let gateway = SocketAddr::new(places.gateway, port);
        let plan = Plan::new(&config.list(), stream)?;
        let local = places.local.map(|ip| SocketAddr::new(ip, config.local_port).to_string());
        Ok(Browser {
            line: line(&config, gateway),
            gateway,
            authority: authority(places.origin, config.port, 80),
            host: places.host.to_owned(),
            local: local.unwrap_or_default(),
            capabilities: capabilities(&config),
            headers: session,
            request_headers: request,
            wake: plan.next(),
            plan,
            page: None,
            opening: None,
            failures: 0,
            redirections: 0,
            asked: BTreeMap::new(),
            flow: None,
            before: Counters::default(),
            invited: None,
            results: Results::default(),
            config,
        })
    }

    /// Takes what was heard, begins pages and requests, and computes the next deadline, until nothing more can be done.
    fn advance(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        loop {
            self.listen(cx);
            if self.page.as_ref().is_some_and(Page::is_done) {
                self.end_page(cx, net);
            }
            let is_due = self.plan.next().is_some_and(|at| at <= cx.now);
            let waits = self.config.session == SessionUse::One && !self.line.is_open();
            if self.page.is_none() && is_due && !waits {
                self.page = Some(self.plan.begin(cx.now));
            }
            let asks = self.page.as_ref().is_some_and(Page::has_waiting);
            let wanted = asks || is_due || self.invited.is_some();
            if wanted && !self.line.is_open() && self.opening.is_none() {
                self.open(cx);
            }
            if let Some(page) = &mut self.page {
                page.discover(cx.now);
            }
            self.dispatch(cx);
            // What could not even be sent is heard of at once, and a page may consist of nothing.
            let heard = self.listen(cx);
            if !heard && !self.page.as_ref().is_some_and(Page::is_done) {
                break;
            }
        }
        if self.is_done() && self.flow.is_some() && self.invited.is_none() {
            self.end_session(cx, net);
        }
        self.transmit(cx, net);
        let next = match &self.page {
            Some(page) => page.next(),
            None => self.plan.next().filter(|_| self.opening.is_none()),
        };
        let opening = self.opening.map(|since| since + self.config.timeout);
        let requests = self.asked.values().map(|asked| asked.deadline(self.config.timeout)).min();
        let invited = self.invited.filter(|_| self.opening.is_none());
        self.wake = [next, opening, requests, invited, self.line.poll_timeout()].into_iter().flatten().min();
    }

    fn transmit(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        while let Some((remote, datagram)) = self.line.poll_transmit() {
            self.results.datagrams_sent += 1;
            if let Some(flow) = &mut self.flow {
                flow.facts.segments += 1;
                flow.facts.wire_sent += (datagram.len() + UDP_HEADER) as u64;
            }
            let local_port = self.config.local_port;
            net.send_datagram(cx, Datagram::Udp { local_port, remote, body: Body::Real(datagram) });
        }
    }

    /// Takes all that was heard; was there anything?
    fn listen(&mut self, cx: &mut Cx) -> bool {
        let mut any = false;
        while let Some(heard) = self.line.poll(cx.now) {
            self.handle_heard(cx, heard);
            any = true;
        }
        any
    }

    fn handle_heard(&mut self, cx: &mut Cx, heard: Heard) {
        match heard {
            Heard::Open(said) => {
                // What could be written with the numbers that everybody knows can be written with those of later versions.
                let version = encoding_version(&said).unwrap_or_default();
                if let Ok(headers) = request_headers(&self.config, version) {
                    self.request_headers = headers;
                }
                if let Some(since) = self.opening.take() {
                    self.results.connect.add(cx.now - since);
                }
                (self.failures, self.redirections) = (0, 0);
                if let Some(flow) = &mut self.flow {
                    flow.facts.established = Some(cx.now);
                }
            }
            Heard::Elsewhere(Some(gateway)) if self.redirections < MOST_REDIRECTIONS => {
                self.redirections += 1;
                self.before = self.counters();
                self.gateway = gateway;
                self.line = line(&self.config, gateway);
                self.line.open(cx.now, &self.capabilities, &self.headers);
            }
            Heard::Elsewhere(_) => self.lost(cx, Reason::ConnectError),
            Heard::Reply(request, status, octets) => self.reply(cx, request, status, octets),
            Heard::Aborted(request) => {
                if let Some(asked) = self.asked.remove(&request) {
                    self.retry_or_fail(cx.now, asked.job);
                }
            }
            Heard::Gone(reason) => self.lost(cx, reason),
            Heard::Push(octets) => {
                self.results.pushes += 1;
                self.results.push_bytes += octets;
                if let Some(until) = &mut self.invited {
                    *until = cx.now + self.config.push_linger;
                }
            }
        }
    }

    /// Something came to the port for pushes. Who asks for a session is believed to be the gateway: the one that is known is gone to.
    fn pushed(&mut self, now: Instant, datagram: &Bytes) {
        let Ok((_, Pdu::Push { headers, data, .. })) = connectionless::parse(datagram) else { return };
        let asks = decode_content_type(&headers).is_ok_and(|(kind, _)| kind == initiation::CONTENT_TYPE);
        if !asks {
            self.results.pushes += 1;
            self.results.push_bytes += data.len() as u64;
        } else if self.config.mode == Mode::Session && initiation::SessionInitiation::parse(&data).is_ok() {
            self.results.initiations += 1;
            self.invited = Some(now + self.config.push_linger);
        }
    }

    fn reply(&mut self, cx: &Cx, request: Request, status: u8, octets: u64) {
        let Some(asked) = self.asked.remove(&request) else { return };
        let Some(page) = &mut self.page else { return };
        if let Some(flow) = &mut self.flow {
            flow.facts.first_byte.get_or_insert(cx.now);
            flow.facts.app_received += octets;
        }
        let object = &self.plan.objects(page)[asked.job.object as usize];
        let arrived =
            status::decode(status).is_some_and(|s| (200..300).contains(&s)) && object.has_size(octets);
        if arrived {
            self.results.object.add(cx.now - asked.since);
            self.results.bytes += octets;
            page.bytes += octets;
        } else {
            self.results.failed += 1;
            self.results.wasted += octets;
        }
        page.settle(asked.job.object, arrived, cx.now);
    }

    /// A request failed: its object is asked for again, or has failed. What was sent is not sent twice.
    fn retry_or_fail(&mut self, now: Instant, mut job: Job) {
        let Some(page) = &mut self.page else { return };
        let is_last = job.failures >= self.config.retries;
        job.failures = job.failures.saturating_add(1);
        let posts = self.plan.objects(page)[job.object as usize].posts().is_some();
        if posts || is_last {
            self.results.failed += 1;
            page.settle(job.object, false, now);
        } else {
            self.results.asked_again += 1;
            page.retry(job);
        }
    }

    fn open(&mut self, cx: &mut Cx) {
        self.results.sessions += 1;
        self.opening = Some(cx.now);
        self.begin_flow(cx);
        if let Some(page) = &mut self.page {
            page.connections += 1;
        }
        self.line.open(cx.now, &self.capabilities, &self.headers);
    }

    fn begin_flow(&mut self, cx: &mut Cx) {
        let (number, counters) = (cx.records.next_flow(), self.counters());
        self.flow = Some(Flow { number, open: cx.now, facts: FlowFacts::default(), counters });
    }

    /// The session is gone, or could not be opened. After `retries` of the latter a page has failed.
    fn lost(&mut self, cx: &mut Cx, reason: Reason) {
        let end = match reason {
            Reason::NetworkError => CloseReason::TimedOut,
            _ if self.opening.is_some() => CloseReason::Refused,
            _ => CloseReason::Reset,
        };
        self.end_flow(cx, Some(end));
        if self.opening.take().is_none() {
            return;
        }
        self.results.sessions_failed += 1;
        if self.failures < self.config.retries {
            self.failures += 1;
            return;
        }
        self.failures = 0;
        self.invited = None;
        if self.page.is_none() && self.plan.next().is_some_and(|at| at <= cx.now) {
            self.page = Some(self.plan.begin(cx.now));
        }
        let Some(page) = &mut self.page else { return };
        while let Some(job) = page.take() {
            self.results.failed += 1;
            page.settle(job.object, false, cx.now);
        }
    }

    fn end_session(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.line.close(cx.now);
        self.transmit(cx, net);
        self.end_flow(cx, Some(CloseReason::Finished));
    }

    /// Reports the flow, which has ended in this way; `None`: the run has before it.
    fn end_flow(&mut self, cx: &mut Cx, end: Option<CloseReason>) {
        let Some(flow) = self.flow.take() else { return };
        if !cx.records.wants_facts() {
            return;
        }
        let counters = self.counters();
        let Flow { number, open, mut facts, counters: first } = flow;
        facts.resent = counters.resent - first.resent;
        facts.rto_count = u32::try_from(counters.timeouts - first.timeouts).unwrap_or(u32::MAX);
        facts.end = end;
        cx.records.push(Record::Flow(FlowRecord {
            flow: number,
            proto: "wsp",
            local: self.local.clone(),
            remote: self.gateway.to_string(),
            opener: true,
            open,
            close: end.map(|_| cx.now),
            facts,
        }));
    }

    /// What was counted on all lines so far, of that which is told.
    fn counters(&self) -> Counters {
        let (a, b) = (self.before, self.line.counters());
        Counters {
            resent: a.resent + b.resent + self.results.repeated,
            timeouts: a.timeouts + b.timeouts,
            groups_sent: a.groups_sent + b.groups_sent,
            groups_received: a.groups_received + b.groups_received,
            ..Counters::default()
        }
    }

    fn end_page(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        let Some(page) = self.page.take() else { return };
        let base = format!("http://{}", self.authority);
        self.results.pages.ended(cx, &page, self.plan.objects(&page), &base, &self.host);
        self.plan.ended(cx.now);
        if self.config.session == SessionUse::EachPage && self.config.mode == Mode::Session {
            self.end_session(cx, net);
        }
    }

    /// Asks for waiting objects.
    fn dispatch(&mut self, cx: &mut Cx) {
        if !self.line.is_open() {
            return;
        }
        // Without a session nothing was agreed on: the number that would be asked for is kept to.
        let room = match self.config.mode {
            Mode::Session => usize::MAX,
            Mode::Connectionless => usize::from(self.config.method_mor),
        };
        while self.asked.len() < room {
            let Some(page) = &mut self.page else { return };
            let Some(job) = page.take() else { return };
            let object = &self.plan.objects(page)[job.object as usize];
            let authority = object.server().unwrap_or(&self.authority);
            let uri = Bytes::from(format!("http://{authority}{}", object.target(page.round)));
            let form = object.form();
            let headers = form.as_ref().map_or_else(
                || self.request_headers.clone(),
                |form| headers::of_form(form.len(), &self.request_headers),
            );
            let octets = uri.len() + headers.len() + form.as_ref().map_or(0, Bytes::len);
            let Some(request) = self.line.ask(cx.now, uri, headers, form) else {
                if self.asked.is_empty() {
                    // Not for want of room: the gateway does not take so much.
                    self.results.failed += 1;
                    page.settle(job.object, false, cx.now);
                    continue;
                }
                page.retry(job);
                return;
            };
            if self.flow.is_none() {
                self.begin_flow(cx);
            }
            if let Some(flow) = &mut self.flow {
                flow.facts.app_sent += octets as u64;
            }
            let repeats = self.config.mode == Mode::Connectionless;
            let again = repeats.then(|| cx.now + self.config.repeat_after);
            self.asked.insert(request, Asked { job, since: cx.now, again });
        }
    }

    /// Requests and openings that have taken too long, and those that are said again.
    fn expire_and_repeat(&mut self, cx: &mut Cx) {
        let (now, timeout) = (cx.now, self.config.timeout);
        let over = self.asked.iter().filter(|(_, asked)| asked.since + timeout <= now);
        for request in over.map(|(request, _)| *request).collect::<Vec<_>>() {
            self.results.timeouts += 1;
            self.line.give_up(now, request);
            if let Some(asked) = self.asked.remove(&request) {
                self.retry_or_fail(cx.now, asked.job);
            }
        }
        for (request, asked) in &mut self.asked {
            if asked.again.is_some_and(|at| at <= now) {
                asked.again = Some(now + self.config.repeat_after);
                self.results.repeated += 1;
                self.line.repeat(*request);
            }
        }
        self.invited = self.invited.filter(|until| *until > now || self.opening.is_some());
        if self.opening.is_some_and(|since| since + timeout <= now) {
            self.results.timeouts += 1;
            self.line.close(now);
            self.lost(cx, Reason::NetworkError);
        }
    }
}

fn request_headers(config: &Config, version: Version) -> Result<Bytes, ConfigError> {
    headers::block("request_headers", &config.request_headers, config.request_headers_size, version)
}

impl Asked {
    fn deadline(&self, timeout: Duration) -> Instant {
        self.again.unwrap_or(Instant::FAR_FUTURE).min(self.since + timeout)
    }
}

fn line(config: &Config, gateway: SocketAddr) -> Line {
    match config.mode {
        Mode::Session => {
            let acknowledging = match config.acknowledging {
                Acknowledging::User => client::Acknowledging::User,
                Acknowledging::AtOnce => client::Acknowledging::AtOnce,
                Acknowledging::Delayed => client::Acknowledging::Delayed,
            };
            let client = Client::new(config.wtp.clone(), gateway, 1);
            Line::Session(Box::new(client.with_acknowledging(acknowledging)))
        }
        Mode::Connectionless => Line::Connectionless(connectionless::Client::new(gateway, 0)),
    }
}

/// What the gateway is asked for: what is the default anyway is not said.
fn capabilities(config: &Config) -> Vec<Capability> {
    let size = |octets: u64| octets as u32;
    let mut asked = Vec::new();
    if size(config.client_sdu.0) != DEFAULT_SDU {
        asked.push(Capability::ClientSduSize(size(config.client_sdu.0)));
    }
    if size(config.server_sdu.0) != DEFAULT_SDU {
        asked.push(Capability::ServerSduSize(size(config.server_sdu.0)));
    }
    if config.push {
        asked.push(Capability::ProtocolOptions(option::CONFIRMED_PUSH | option::PUSH));
    }
    if config.method_mor != 1 {
        asked.push(Capability::MethodMor(config.method_mor));
    }
    if config.push && config.push_mor != 1 {
        asked.push(Capability::PushMor(config.push_mor));
    }
    asked
}

impl App for Browser {
    fn datagram_ports(&self) -> Vec<u16> {
        let push = self.config.push.then_some(PUSH_PORT);
        [self.config.local_port].into_iter().chain(push).collect()
    }
    fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.advance(cx, net);
    }
    fn handle_event(&mut self, _: &mut Cx, _: &mut dyn Sockets, _: SocketId, _: SocketEvent) {}
    fn handle_datagram(&mut self, cx: &mut Cx, net: &mut dyn Sockets, datagram: Datagram) {
        let Datagram::Udp { local_port, remote, body } = datagram else { return };
        let octets = body.to_bytes();
        self.results.datagrams_received += 1;
        if local_port == PUSH_PORT {
            self.pushed(cx.now, &octets);
            return self.advance(cx, net);
        }
        if let Some(flow) = &mut self.flow {
            flow.facts.wire_received += (octets.len() + UDP_HEADER) as u64;
        }
        self.line.handle_datagram(cx.now, remote, &octets);
        self.advance(cx, net);
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.wake
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.line.handle_timeout(cx.now);
        self.listen(cx);
        self.expire_and_repeat(cx);
        self.advance(cx, net);
    }
    fn is_done(&self) -> bool {
        self.plan.is_over() && self.page.is_none()
    }
    fn close(&mut self, cx: &mut Cx) {
        self.end_flow(cx, None);
    }
    fn summarise(&self, out: &mut Summary) {
        let (results, counters) = (&self.results, self.counters());
        results.pages.summarise(out);
        out.set("objects", results.object.count() as f64);
        out.set("failed", results.failed as f64);
        results.object.summarise("object", out);
        out.set("bytes", results.bytes as f64);
        out.set("wasted_bytes", results.wasted as f64);
        out.set("sessions", results.sessions as f64);
        out.set("sessions_failed", results.sessions_failed as f64);
        results.connect.summarise("connect", out);
        out.set("asked_again", results.asked_again as f64);
        out.set("timeouts", results.timeouts as f64);
        out.set("pushes", results.pushes as f64);
        out.set("push_bytes", results.push_bytes as f64);
        out.set("session_initiations", results.initiations as f64);
        out.set("datagrams_sent", results.datagrams_sent as f64);
        out.set("datagrams_received", results.datagrams_received as f64);
        out.set("retransmissions", counters.resent as f64);
        out.set("group_waits", (counters.groups_sent + counters.groups_received) as f64);
    }
}

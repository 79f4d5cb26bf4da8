//! The application: pages one after another, objects to connections, failures and results.

use std::net::{IpAddr, SocketAddr};

use airloom_base::record::{PageRecord, Record};
use airloom_base::{
    App, CloseReason, ConfigError, Cx, Duration, Instant, SocketEvent, SocketId, Sockets, Summary,
};
use airloom_content::http::message::{Fields, Method, RequestHead, Version};
use bytes::Bytes;

use super::connection::{Connection, Exchange, Progress};
use super::page::{Job, Page};
use super::{Config, Http, Object};
use crate::times::Times;

/// The client.
pub struct Client {
    config: Config,
    to: SocketAddr,
    /// Value of the Host field.
    authority: String,
    host: String,
    /// Objects of each page.
    pages: Vec<Vec<Object>>,
    first_alone: bool,
    /// Pages still to load, the current one not counted.
    left: u64,
    /// When the next page begins, if none is being loaded.
    next: Option<Instant>,
    page: Option<Page>,
    connections: Vec<Connection>,
    wake: Option<Instant>,
    results: Results,
}

#[derive(Default)]
struct Results {
    pages: u64,
    pages_failed: u64,
    page_load: Times,
    object: Times,
    first_byte: Times,
    failed: u64,
    bytes: u64,
    wasted: u64,
    connections: u64,
    asked_again: u64,
    timeouts: u64,
    /// When the first page began and the last one ended.
    span: Option<(Instant, Instant)>,
}

impl Client {
    /// A client on `host` that fetches from `to`, called `server`, and begins `delay` after the start its
    /// configuration says.
    pub fn new(
        config: Config,
        to: IpAddr,
        server: &str,
        host: &str,
        delay: Duration,
    ) -> Result<Self, ConfigError> {
        let numbers = [("connections", config.connections), ("pipeline", config.pipeline)];
        if let Some((key, _)) = numbers.iter().find(|(_, n)| *n == 0) {
            return Err(ConfigError::at(key, "must be at least 1"));
        }
        if config.repeat == 0 {
            return Err(ConfigError::at("repeat", "must be at least 1"));
        }
        if config.pipeline > 1 && (config.http != Http::Http11 || !config.keep_alive) {
            let message = "pipelining needs http = \"1.1\" and keep_alive = true";
            return Err(ConfigError::at("pipeline", message));
        }
        if config.timeout.is_zero() {
            return Err(ConfigError::at("timeout", "must be above 0s"));
        }
        if config.request.is_some_and(|n| n.0 > 16_000) {
            return Err(ConfigError::at("request", "servers take at most 16kB of request head"));
        }
        if !config.objects.is_empty() && !config.pages.is_empty() {
            return Err(ConfigError::at("pages", "give either `objects` or `pages`, not both"));
        }
        let first_alone = !config.pages.is_empty();
        let pages = match (config.objects.is_empty(), first_alone) {
            (_, true) => config.pages.clone(),
            (false, _) => vec![config.objects.clone()],
            (true, _) => vec![vec![Object::Path("/".to_owned())]],
        };
        check_paths(&config)?;
        let authority = match (server.parse::<IpAddr>(), config.port) {
            (Ok(IpAddr::V6(address)), 80) => format!("[{address}]"),
            (Ok(IpAddr::V6(address)), port) => format!("[{address}]:{port}"),
            (_, 80) => server.to_owned(),
            (_, port) => format!("{server}:{port}"),
        };
        let start = Instant::ZERO + config.start + delay;
        Ok(Client {
            to: SocketAddr::new(to, config.port),
            authority,
            host: host.to_owned(),
            left: pages.len() as u64 * u64::from(config.repeat),
            pages,
            first_alone,
            next: Some(start),
            page: None,
            connections: Vec::new(),
            wake: Some(start),
            results: Results::default(),
            config,
        })
    }

    /// Begins pages, gives objects to connections and computes the next deadline, until nothing more can be done.
    fn go_on(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        loop {
            if self.page.as_ref().is_some_and(Page::is_done) {
                self.end_page(cx);
            }
            if self.page.is_none() && self.left > 0 && self.next.is_some_and(|at| at <= cx.now) {
                self.begin_page(cx);
            }
            self.dispatch(cx, net);
            // A page may consist of nothing.
            if !self.page.as_ref().is_some_and(Page::is_done) {
                break;
            }
        }
        if self.page.is_none() && self.left == 0 {
            for connection in std::mem::take(&mut self.connections) {
                net.finish(cx, connection.socket);
            }
        }
        let deadlines = self.connections.iter().map(|c| c.deadline).min();
        let next = self.next.filter(|_| self.page.is_none() && self.left > 0);
        self.wake = [deadlines, next].into_iter().flatten().min();
    }

    fn begin_page(&mut self, cx: &Cx) {
        let all = self.pages.len() as u64;
        let index = ((all - self.left % all) % all) as usize;
        self.left -= 1;
        let objects = self.pages[index].len() as u32;
        self.page = Some(Page::new(index, objects, self.first_alone, cx.now));
    }

    fn end_page(&mut self, cx: &mut Cx) {
        let Some(page) = self.page.take() else { return };
        self.next = Some(cx.now + self.config.think);
        let time = cx.now - page.start;
        let load = (page.failed == 0).then_some(time);
        self.results.pages += 1;
        let first = self.results.span.map_or(page.start, |(first, _)| first);
        self.results.span = Some((first, cx.now));
        self.results.pages_failed += u64::from(load.is_none());
        if let Some(time) = load {
            self.results.page_load.add(time);
        }
        if cx.records.wants_facts() {
            let objects = &self.pages[page.index];
            let path = objects.first().map_or("/", Object::path);
            cx.records.push(Record::Page(PageRecord {
                page: u32::try_from(self.results.pages).unwrap_or(u32::MAX),
                url: format!("http://{}{path}", self.authority),
                client: self.host.clone(),
                start: page.start,
                load,
                objects: objects.len() as u32,
                bytes: page.bytes,
                connections: page.connections,
                failed: page.failed,
            }));
        }
    }

    /// Gives waiting objects to connections.
    fn dispatch(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        while self.page.as_ref().is_some_and(Page::has_waiting) {
            let Some(place) = self.connection(cx, net) else { return };
            let Some(page) = &mut self.page else { return };
            let Some(job) = page.take() else { return };
            let request = self.request(job);
            let connection = &mut self.connections[place];
            connection.deadline = cx.now + self.config.timeout;
            connection.ask(cx, net, job, request);
        }
    }

    /// The connection for the next request: an idle one, a new one, or the one with the fewest requests.
    fn connection(&mut self, cx: &mut Cx, net: &mut dyn Sockets) -> Option<usize> {
        let depth = self.config.depth();
        let open = self.connections.iter().enumerate().filter(|(_, c)| c.takes_more(depth));
        let (load, best) = open.map(|(place, c)| (c.load(), place)).min().unzip();
        if load == Some(0) {
            return best;
        }
        if self.connections.len() < usize::from(self.config.connections) {
            let socket = net.connect(cx, self.to);
            self.results.connections += 1;
            if let Some(page) = &mut self.page {
                page.connections += 1;
            }
            // The first request may always be put on it, whether it persists afterwards or not.
            self.connections.push(Connection::new(
                socket,
                self.config.persists(),
                cx.now + self.config.timeout,
            ));
            return Some(self.connections.len() - 1);
        }
        best
    }

    fn request(&self, job: Job) -> Bytes {
        let page = self.page.as_ref().map_or(0, |page| page.index);
        let mut fields = Fields::default();
        fields.push("Host", self.authority.clone());
        fields.push("User-Agent", "airloom");
        fields.push("Accept", "*/*");
        match self.config.http {
            Http::Http10KeepAlive => fields.push("Connection", "Keep-Alive"),
            Http::Http11 if !self.config.keep_alive => fields.push("Connection", "close"),
            Http::Http10 | Http::Http11 => {}
        }
        let version = if self.config.http == Http::Http11 { Version::Http11 } else { Version::Http10 };
        let target = self.pages[page][job.object as usize].path().to_owned().into();
        let mut head = RequestHead { method: Method::Get, target, version, fields };
        let mut octets = Vec::with_capacity(128);
        head.emit(&mut octets);
        let wanted = self.config.request.map_or(0, |n| n.0 as usize);
        if let Some(short) = wanted.checked_sub(octets.len()).filter(|short| *short > 0) {
            // "Cookie: " and its line end are 10 octets.
            head.fields.push("Cookie", "c".repeat(short.saturating_sub(10).max(1)));
            octets.clear();
            head.emit(&mut octets);
        }
        octets.into()
    }

    fn place(&self, socket: SocketId) -> Option<usize> {
        self.connections.iter().position(|c| c.socket == socket)
    }

    fn read(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        while let Some(place) = self.place(socket) {
            let connection = &mut self.connections[place];
            connection.deadline = cx.now + self.config.timeout;
            match connection.read(cx, net) {
                Progress::None => return,
                Progress::Complete(exchange) => self.complete(cx, net, place, exchange),
                Progress::Broken => {
                    net.reset(cx, socket);
                    self.lost(place);
                }
            }
        }
    }

    fn complete(&mut self, cx: &mut Cx, net: &mut dyn Sockets, place: usize, exchange: Exchange) {
        let Some(page) = &mut self.page else { return };
        let object = &self.pages[page.index][exchange.job.object as usize];
        let right_size = object.size().is_none_or(|size| size == exchange.got);
        let arrived = matches!(exchange.status, 200..=299) && right_size;
        if arrived {
            self.results.object.add(cx.now - exchange.asked);
            self.results.bytes += exchange.got;
            page.bytes += exchange.got;
        } else {
            self.results.failed += 1;
            self.results.wasted += exchange.got;
        }
        if let Some(first) = exchange.first_byte {
            self.results.first_byte.add(first - exchange.asked);
        }
        page.settle(arrived);
        let connection = &self.connections[place];
        if !connection.persists() {
            net.finish(cx, connection.socket);
            self.lost(place);
        }
    }

    /// The connection is of no more use: what it did not answer is asked for again, or has failed.
    fn lost(&mut self, place: usize) {
        let (unanswered, blame) = self.connections.swap_remove(place).unanswered();
        let Some(page) = &mut self.page else { return };
        for (position, exchange) in unanswered.into_iter().enumerate().rev() {
            self.results.wasted += exchange.got;
            let mut job = exchange.job;
            job.failures += u16::from(blame && position == 0);
            if job.failures > self.config.retries {
                self.results.failed += 1;
                page.settle(false);
            } else {
                //= RFC 9110 (9.2.2): GET is idempotent and may be repeated after the connection failed.
                self.results.asked_again += 1;
                page.again(job);
            }
        }
    }

    fn ended(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, closed: Option<CloseReason>) {
        let Some(place) = self.place(socket) else { return };
        // A response may end with the connection, but only if the server finished it.
        if matches!(closed, None | Some(CloseReason::Finished))
            && let Progress::Complete(exchange) = self.connections[place].peer_finished(cx)
        {
            self.complete(cx, net, place, exchange);
        }
        if let Some(place) = self.place(socket) {
            if closed.is_none() {
                net.finish(cx, socket);
            }
            self.lost(place);
        }
    }
}

fn check_paths(config: &Config) -> Result<(), ConfigError> {
    let listed = config.objects.iter().map(|object| ("objects", object));
    let paged = config.pages.iter().flatten().map(|object| ("pages", object));
    for (key, object) in listed.chain(paged) {
        let path = object.path();
        if !path.starts_with('/') || !path.bytes().all(|b| b.is_ascii_graphic()) || path.len() > 8000 {
            let message = format!("`{path}` is not a path: it must begin with / and have no spaces");
            return Err(ConfigError::at(key, message));
        }
    }
    if config.pages.iter().any(Vec::is_empty) {
        return Err(ConfigError::at("pages", "a page has at least one object"));
    }
    Ok(())
}

impl App for Client {
    fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.go_on(cx, net);
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        match event {
            SocketEvent::Opened | SocketEvent::Writable => {
                let Some(place) = self.place(socket) else { return };
                let connection = &mut self.connections[place];
                connection.deadline = cx.now + self.config.timeout;
                connection.opened(cx, net);
            }
            SocketEvent::Readable(_) => self.read(cx, net, socket),
            SocketEvent::Finished => self.ended(cx, net, socket, None),
            SocketEvent::Closed(reason) => self.ended(cx, net, socket, Some(reason)),
            SocketEvent::Accepted { .. } => {}
        }
        self.go_on(cx, net);
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.wake
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        while let Some(place) = self.connections.iter().position(|c| c.deadline <= cx.now) {
            let connection = &self.connections[place];
            if connection.load() > 0 {
                self.results.timeouts += 1;
                net.reset(cx, connection.socket);
            } else {
                net.finish(cx, connection.socket);
            }
            self.lost(place);
        }
        self.go_on(cx, net);
    }
    fn is_done(&self) -> bool {
        self.left == 0 && self.page.is_none()
    }
    fn summarise(&self, out: &mut Summary) {
        let results = &self.results;
        out.set_some("completion_s", results.span.map(|(first, last)| (last - first).as_secs_f64()));
        out.set("pages", results.pages as f64);
        out.set("pages_failed", results.pages_failed as f64);
        out.set_some("page_load_s", results.page_load.mean_s());
        results.page_load.summarise("page_load", out);
        out.set("objects", results.object.count() as f64);
        out.set("failed", results.failed as f64);
        results.object.summarise("object", out);
        out.set_some("first_byte_mean_s", results.first_byte.mean_s());
        out.set("bytes", results.bytes as f64);
        out.set("wasted_bytes", results.wasted as f64);
        out.set("connections", results.connections as f64);
        out.set("asked_again", results.asked_again as f64);
        out.set("timeouts", results.timeouts as f64);
    }
}

//! The application: pages one after another, objects to connections, failures and results.

use std::net::SocketAddr;

use airloom_base::random::Stream;
use airloom_base::record::ObjectSource;
use airloom_base::{
    App, CloseReason, ConfigError, Cx, Instant, SocketEvent, SocketId, Sockets, StreamEvent, Summary,
};
use airloom_content::http::message::{Fields, Method, RequestHead, Version};
use airloom_content::http::v2::Priority;

use super::alternatives::{Alternatives, Place};
use super::cache::Cache;
use super::connection::{Connection, Offer};
use super::lane::{Exchange, Progress, Request};
use super::log::{Loaded, Log};
use super::servers::{Pool, Servers, Whereabouts};
use super::{Config, Follow, Http};
use crate::net;
use crate::pages::{FORM, Job, Loads, Page, Plan};
use crate::times::Times;
use crate::tls::Tunnels;

/// The client.
pub struct Client {
    config: Config,
    log: Log,
    servers: Servers,
    alternatives: Alternatives,
    plan: Plan,
    page: Option<Page>,
    cache: Cache,
    connections: Vec<Connection>,
    wake: Option<Instant>,
    /// When to go on with what has arrived, and the sockets among it that are open now.
    reacts: Option<Instant>,
    opened: Vec<SocketId>,
    /// Those to be finished then.
    finishing: Vec<SocketId>,
    /// Has something come about that requests may follow from?
    news: bool,
    results: Results,
}

#[derive(Default)]
struct Results {
    pages: Loads,
    object: Times,
    first_byte: Times,
    /// From the beginning of the page.
    arrival: Times,
    failed: u64,
    /// Objects that were in the cache.
    cached: u64,
    /// Requests that were made.
    requests: u64,
    bytes: u64,
    wasted: u64,
    connections: u64,
    /// Those of them on which requests could leave before the handshake was over.
    early: u64,
    /// Requests that were made in HTTP/3.
    requests_h3: u64,
    /// Races, and how many of them each side has won.
    races: u64,
    won_by_quic: u64,
    won_by_tcp: u64,
    /// Requests that an alternative did not take for the server.
    misdirected: u64,
    /// Most streams of a connection that objects were dealt over.
    streams: usize,
    asked_again: u64,
    timeouts: u64,
}

impl Client {
    /// A client that fetches from the servers of its objects; `stream` gives its random numbers by their name.
    ///
    /// # Errors
    /// [`ConfigError`] with the key.
    pub fn new(
        config: Config,
        places: &Whereabouts,
        stream: impl Fn(&str) -> Stream,
    ) -> Result<Self, ConfigError> {
        let numbers = [
            ("connections", config.connections),
            ("proxy_connections", config.proxy_connections.unwrap_or(1)),
            ("total_connections", config.total_connections.unwrap_or(1)),
            ("streams", config.streams),
            ("pipeline", config.pipeline),
            ("h2_streams", config.h2_streams),
        ];
        if let Some((key, _)) = numbers.iter().find(|(_, n)| *n == 0) {
            return Err(ConfigError::at(key, "must be at least 1"));
        }
        let cannot = config.pipeline > 1 && (config.http != Http::Http11 || !config.keep_alive);
        let message = "pipelining needs http = \"1.1\" and keep_alive = true";
        ConfigError::when(cannot, "pipeline", message)?;
        let has_no_set = !config.visit.is_empty() && config.page_set.is_none();
        ConfigError::when(has_no_set, "visit", "these are pages of a set: give `page_set`")?;
        net::check_windows(config.h2_stream_window, config.h2_conn_window)?;
        let is_clear = config.http == Http::Http2 && config.proxy.is_some() && config.tls.is_none();
        ConfigError::when(is_clear, "proxy", "HTTP/2 passes a proxy over TLS only")?;
        net::check_table(config.qpack_table)?;
        if let Some(tls) = &config.tls {
            tls.check()?;
        }
        for (key, given) in [("tls", config.tls.is_some()), ("proxy", config.proxy.is_some())] {
            let message = "HTTP/3 goes over QUIC, which has its own TLS and passes no proxy";
            ConfigError::when(given && config.http == Http::Http3, key, message)?;
        }
        if config.alt_svc != Follow::Off {
            //= RFC 7838 (2.1): whoever answers elsewhere has to show that it is who is meant.
            let speaks = matches!(config.http, Http::Http11 | Http::Http2);
            let message = "needs http = \"1.1\" or \"2\" and `tls`, and passes no proxy";
            ConfigError::when(!speaks || config.tls.is_none() || config.proxy.is_some(), "alt_svc", message)?;
        }
        ConfigError::when(config.timeout.is_zero(), "timeout", "must be above 0s")?;
        let is_long = config.request.is_some_and(|n| n.0 > 16_000);
        ConfigError::when(is_long, "request", "servers take at most 16kB of request head")?;
        let plan = Plan::new(&config.list(), stream)?;
        //= RFC 8470 (4): what cannot be repeated is not sent early.
        let sends_early = config.tls.as_ref().is_some_and(|tls| tls.early_data);
        if sends_early && plan.listed().any(|object| object.posts().is_some()) {
            let path = vec!["tls".into(), "early_data".into()];
            return Err(ConfigError { path, message: "forms cannot be sent early".into() });
        }
        let servers = Servers::new(&config, places, plan.listed())?;
        Ok(Client {
            alternatives: Alternatives::new(&config, places, &servers)?,
            servers,
            log: Log::new(places.host),
            wake: plan.next(),
            plan,
            page: None,
            cache: Cache::new(config.cache.0, config.cache_object.map(|most| most.0)),
            connections: Vec::new(),
            reacts: None,
            opened: Vec::new(),
            finishing: Vec::new(),
            news: false,
            results: Results::default(),
            config,
        })
    }

    /// The way to the servers, if it leads through a proxy that understands nothing of what passes.
    pub fn tunnels(&self) -> Tunnels {
        self.servers.tunnels.clone()
    }

    /// Goes on now or, if it takes a time to react, when that is over.
    fn react(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        if self.config.reaction.is_zero() {
            return self.advance(cx, net);
        }
        if !std::mem::take(&mut self.news) {
            return;
        }
        // A page is there when its last object is, not when somebody looks at it.
        if self.page.as_ref().is_some_and(Page::is_done) {
            self.end_page(cx, net);
        }
        let at = *self.reacts.get_or_insert(cx.now + self.config.reaction);
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }

    /// A connection is open, or has room again.
    fn write(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        let Some(place) = self.connection_of(socket) else { return };
        let connection = &mut self.connections[place];
        connection.is_alive(cx.now, self.config.timeout);
        let missing = connection.write(cx, net);
        self.results.streams = self.results.streams.max(connection.streams());
        let pool = &mut self.servers.pools[connection.pool];
        missing.into_iter().rev().for_each(|job| pool.waiting.push_front(job));
    }

    /// Begins pages, gives objects to connections and computes the next deadline, until nothing more can be done.
    fn advance(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.join_races(cx, net);
        loop {
            if self.page.as_ref().is_some_and(Page::is_done) {
                self.end_page(cx, net);
            }
            if self.page.is_none() && self.plan.next().is_some_and(|at| at <= cx.now) {
                self.page = Some(self.plan.begin(cx.now));
            }
            if let Some(page) = &mut self.page {
                page.discover(cx.now);
            }
            self.dispatch(cx, net);
            // A page may consist of nothing.
            if !self.page.as_ref().is_some_and(Page::is_done) {
                break;
            }
        }
        if self.is_done() {
            self.hang_up(cx, net, true);
        }
        let deadlines = self.connections.iter().map(|c| c.deadline).min();
        let next = self.page.as_ref().map_or_else(|| self.plan.next(), Page::next);
        let joins = self.alternatives.next().filter(|_| !self.is_done());
        self.wake = [deadlines, next, self.reacts, joins].into_iter().flatten().min();
    }

    fn end_page(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        let Some(page) = self.page.take() else { return };
        let objects = self.plan.objects(&page);
        let authority = objects.first().map_or("", |first| &self.servers.of(first).authority);
        let base = format!("{}://{authority}", self.config.scheme());
        self.results.pages.ended(cx, &page, objects, &base, self.log.client());
        self.log.page_ended();
        self.plan.ended(cx.now);
        if self.config.per_page {
            self.hang_up(cx, net, false);
        }
    }

    /// Finishes all connections, but for those that are still to show whether they come up, unless all is over. Nothing waits for
    /// the end of a race then.
    fn hang_up(&mut self, cx: &mut Cx, net: &mut dyn Sockets, is_over: bool) {
        self.alternatives.end_all();
        for connection in self.connections.extract_if(.., |c| is_over || !c.is_tried()) {
            connection.finish(cx, net);
        }
    }

    /// A race begins: QUIC to an alternative of the server, and TCP when QUIC has had its time.
    fn race(&mut self, cx: &mut Cx, net: &mut dyn Sockets, pool: usize, alternative: Place) {
        let place = self.open(cx, net, pool, Http::Http3, alternative.to);
        self.connections[place].race(Some(alternative.name));
        self.alternatives.begin(pool, self.connections[place].socket, cx.now);
        self.results.races += 1;
        self.join_races(cx, net);
    }

    /// TCP begins where its time has come.
    fn join_races(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        if self.is_done() {
            return;
        }
        while let Some(pool) = self.alternatives.due(cx.now) {
            let place = self.open(cx, net, pool, self.config.http, self.servers.pools[pool].to);
            self.connections[place].race(None);
            self.alternatives.joined(pool, self.connections[place].socket);
        }
    }

    /// A connection is up: it may have won a race. Of QUIC that is less than its handshake if requests may leave early.
    fn came_up(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, is_early: bool) {
        let Some(place) = self.connection_of(socket) else { return };
        let connection = &mut self.connections[place];
        let (pool, is_quic) = (connection.pool, connection.http == Http::Http3);
        let is_racing = std::mem::take(&mut connection.is_racing);
        if !is_quic {
            self.alternatives.tcp_is_up(pool, cx.now);
        } else if !is_early && connection.has_come_up() {
            let handshake = cx.now - connection.begun;
            self.alternatives.quic_is_up(pool, handshake);
        }
        if !is_racing {
            return;
        }
        self.news = true;
        // None: TCP was faster, and requests go over QUIC from now on.
        let Some(race) = self.alternatives.end(pool) else { return };
        self.results.won_by_quic += u64::from(is_quic);
        self.results.won_by_tcp += u64::from(!is_quic);
        if is_quic && let Some(place) = race.tcp.and_then(|tcp| self.connection_of(tcp)) {
            self.connections.swap_remove(place).abort(cx, net);
        }
    }

    /// A connection is gone: if it was in a race, the other one is what is left.
    fn race_without(&mut self, now: Instant, gone: &Connection) {
        let (pool, is_quic) = (gone.pool, gone.http == Http::Http3);
        if gone.is_tried() {
            let is_up = |c: &Connection| c.pool == pool && c.http == self.config.http && c.is_open();
            self.alternatives.quic_failed(pool, self.connections.iter().any(is_up), now);
        } else if !is_quic && !gone.is_open() {
            self.alternatives.tcp_failed(pool);
        }
        if !gone.is_racing {
            return;
        }
        self.news = true;
        let Some(race) = self.alternatives.end(pool) else { return };
        self.results.won_by_quic += u64::from(!is_quic);
        self.results.won_by_tcp += u64::from(is_quic);
        let left = if is_quic { race.tcp } else { Some(race.quic) };
        if let Some(place) = left.and_then(|left| self.connection_of(left)) {
            self.connections[place].is_racing = false;
        }
    }

    /// Gives waiting objects to connections.
    fn dispatch(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        loop {
            self.enqueue_wanted(cx);
            let Some((pool, place, lane)) = self.next_assignment(cx, net) else { return };
            let Some(job) = self.servers.pools[pool].waiting.pop_front() else { return };
            let Some(page) = &self.page else { return };
            let http = self.connections[place].http;
            let mut request = self.build_request(page, job, http);
            if let Some(name) = &self.connections[place].alternative {
                //= RFC 7838 (5): every request to an alternative says which one that is.
                request.head.fields.push("Alt-Used", name.clone());
            }
            self.results.requests += 1;
            self.results.requests_h3 += u64::from(http == Http::Http3);
            let connection = &mut self.connections[place];
            connection.is_alive(cx.now, self.config.timeout);
            if let Some(job) = connection.ask(cx, net, lane, job, request) {
                self.servers.pools[pool].waiting.push_front(job);
                return;
            }
        }
    }

    /// What the page wants now comes out of the cache, or waits for a connection of its pool.
    fn enqueue_wanted(&mut self, cx: &mut Cx) {
        let Some(page) = &mut self.page else { return };
        while let Some(job) = page.take() {
            let object = &self.plan.objects(page)[job.object as usize];
            let server = self.servers.of(object);
            let pool = server.pool;
            let may_be_kept = self.cache.is_used() && object.posts().is_none() && !object.changes();
            if may_be_kept && self.cache.find(&address(&server.authority, object.path())).is_some() {
                self.results.cached += 1;
                let loaded = Loaded { source: ObjectSource::Cache, job, exchange: None, flow: None };
                self.log.object(cx, page, &self.plan, &self.servers, &loaded);
                page.settle(job.object, true, cx.now);
            } else {
                self.servers.pools[pool].waiting.push_back(job);
            }
        }
    }

    /// A pool in which something waits, and the connection and stream of it that takes the first: of all pools with room that
    /// whose object is the first on the page.
    fn next_assignment(&mut self, cx: &mut Cx, net: &mut dyn Sockets) -> Option<(usize, usize, usize)> {
        let first = |(pool, p): (usize, &Pool)| Some((p.waiting.front()?.object, pool));
        let mut pools: Vec<(u32, usize)> = self.servers.pools.iter().enumerate().filter_map(first).collect();
        pools.sort_unstable();
        pools.into_iter().find_map(|(_, pool)| {
            let (place, lane) = self.choose_stream(cx, net, pool)?;
            Some((pool, place, lane))
        })
    }

    /// The connection of this pool and its stream for the next request: an idle one, one of a new connection, or the one with
    /// the fewest requests.
    fn choose_stream(&mut self, cx: &mut Cx, net: &mut dyn Sockets, pool: usize) -> Option<(usize, usize)> {
        let depth = self.config.depth();
        let own = || self.connections.iter().enumerate().filter(|(_, c)| c.pool == pool);
        let best = own().filter_map(|(place, c)| c.offer(place, depth)).min();
        let place = |offer: Offer| (offer.connection, offer.lane);
        if best.is_some_and(|offer| offer.load == 0) {
            return best.map(place);
        }
        // An alternative that has lost its race, and may still come up, takes nobody's place until then.
        let takes_part = |c: &Connection| !(c.is_racing && c.is_tried());
        let is_full = own().filter(|(_, c)| takes_part(c)).count() >= self.servers.pools[pool].most;
        let has_alternative = own().any(|(_, c)| c.is_alternative());
        if self.alternatives.races(pool) || is_full || !self.has_room(cx, net) {
            return best.map(place);
        }
        if !has_alternative && let Some(alternative) = self.alternatives.usable(pool, cx.now) {
            self.race(cx, net, pool, alternative);
            return None;
        }
        // The first request may always be put on it, whether it persists afterwards or not.
        Some((self.open(cx, net, pool, self.config.http, self.servers.pools[pool].to), 0))
    }

    /// Opens a connection of this pool, and says where it stands.
    fn open(&mut self, cx: &mut Cx, net: &mut dyn Sockets, pool: usize, http: Http, to: SocketAddr) -> usize {
        let socket = match http {
            Http::Http3 => net.connect_for(cx, to, net::H3),
            _ => net.connect(cx, to),
        };
        let (streams, flow) = (net.streams(socket), net.flow(socket));
        self.results.connections += 1;
        if let Some(page) = &mut self.page {
            page.connections += 1;
        }
        let (id, config) = ((pool, flow), &self.config);
        self.connections.push(if http == Http::Http3 || (http == Http::Http2 && streams.is_none()) {
            Connection::multiplexed(socket, id, http, config, cx.now)
        } else {
            Connection::new(socket, id, streams, config, cx.now)
        });
        self.connections.len() - 1
    }

    /// May another connection be opened? One that nothing waits for is ended for it if need be: that which was used longest ago,
    /// and last of all one that only tries an alternative.
    fn has_room(&mut self, cx: &mut Cx, net: &mut dyn Sockets) -> bool {
        let Some(most) = self.config.total_connections else { return true };
        // Those of races may be more than there are to be: TCP joins where its time has come.
        let over = (self.connections.len() + 1).saturating_sub(most.into());
        if self.connections.iter().filter(|c| self.is_idle(c)).count() < over {
            return false;
        }
        for _ in 0..over {
            let idle = self.connections.iter().enumerate().filter(|(_, c)| self.is_idle(c));
            let Some((place, _)) = idle.min_by_key(|(_, c)| (c.is_tried(), c.deadline)) else { return false };
            self.leave(cx, net, place);
        }
        true
    }

    /// Does nothing wait for this connection, neither for an answer nor for the end of its race?
    fn is_idle(&self, connection: &Connection) -> bool {
        let pool = connection.pool;
        let is_awaited = || self.alternatives.races(pool) && !self.servers.pools[pool].waiting.is_empty();
        connection.load() == 0 && !(connection.is_racing && is_awaited())
    }

    /// Ends a connection that nothing waits for. Its race, if it is in one, ends without a winner: TCP takes requests then, and QUIC
    /// goes on as where it has lost.
    fn leave(&mut self, cx: &mut Cx, net: &mut dyn Sockets, place: usize) {
        let connection = self.connections.swap_remove(place);
        connection.finish(cx, net);
        if !connection.is_racing {
            return;
        }
        let race = self.alternatives.end(connection.pool);
        if let Some(place) = race.and_then(|race| race.tcp).and_then(|tcp| self.connection_of(tcp)) {
            self.connections[place].is_racing = false;
        }
    }

    /// The request for an object of the page.
    fn build_request(&self, page: &Page, job: Job, http: Http) -> Request {
        let object = &self.plan.objects(page)[job.object as usize];
        let (form, target) = (object.form(), object.target(page.round));
        let authority = &self.servers.of(object).authority;
        //= RFC 9112 (3.2.2): a proxy is asked for the whole address.
        let target = if self.servers.is_proxied { address(authority, &target) } else { target };
        let mut fields = Fields::default();
        fields.push("Host", authority.clone());
        fields.push("User-Agent", "airloom");
        fields.push("Accept", "*/*");
        match http {
            Http::Http10KeepAlive => fields.push("Connection", "Keep-Alive"),
            Http::Http11 if !self.config.keep_alive => fields.push("Connection", "close"),
            Http::Http10 | Http::Http11 | Http::Http2 | Http::Http3 => {}
        }
        let version = match http {
            Http::Http10 | Http::Http10KeepAlive => Version::Http10,
            Http::Http11 => Version::Http11,
            Http::Http2 => Version::Http2,
            Http::Http3 => Version::Http3,
        };
        let method = if form.is_some() { Method::Post } else { Method::Get };
        if let Some(form) = &form {
            fields.push("Content-Type", FORM);
            fields.push("Content-Length", form.len().to_string());
        }
        let mut head = RequestHead { method, target: target.into(), version, fields };
        let mut octets = Vec::with_capacity(128);
        head.emit(&mut octets);
        let wanted = self.config.request.map_or(0, |n| n.0 as usize);
        if let Some(short) = wanted.checked_sub(octets.len()).filter(|short| *short > 0) {
            // "Cookie: " and its line end are 10 octets; with fewer to fill, "C: " and its are 5.
            let (name, frame) = if short > 10 { ("Cookie", 10) } else { ("C", 5) };
            head.fields.push(name, "c".repeat(short.saturating_sub(frame).max(1)));
        }
        let priority =
            if self.config.priorities { urgency(object.path(), job.object) } else { Priority::default() };
        let follows = self.alternatives.are_followed();
        Request { head, posts: form.is_some(), form: form.unwrap_or_default(), priority, follows }
    }

    /// Where the connection stands that has this socket.
    fn connection_of(&self, socket: SocketId) -> Option<usize> {
        self.connections.iter().position(|c| c.is(socket))
    }

    fn read(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId) {
        while let Some(place) = self.connection_of(socket) {
            let connection = &mut self.connections[place];
            connection.is_alive(cx.now, self.config.timeout);
            match connection.read(cx, net, socket.stream) {
                Progress::None => return,
                Progress::Complete(exchange) => self.complete(cx, net, place, exchange),
                Progress::Lost(exchange, blame) => {
                    let from = (connection.pool, connection.flow);
                    self.retry_or_fail(cx, from, exchange, blame);
                    self.close_if_ended(cx, net, place);
                }
                Progress::Broken => {
                    connection.abort(cx, net);
                    self.lost(cx, place);
                }
            }
        }
    }

    fn complete(&mut self, cx: &mut Cx, net: &mut dyn Sockets, place: usize, mut exchange: Exchange) {
        self.news = true;
        if exchange.status == 421 && self.connections[place].alternative.is_some() {
            return self.misdirected(cx, net, place, &exchange);
        }
        if let Some(said) = exchange.alternatives.take() {
            let pool = self.connections[place].pool;
            self.alternatives.learn(pool, self.servers.pools[pool].to, said, exchange.asked);
        }
        let Some(page) = &mut self.page else { return };
        let object = &self.plan.objects(page)[exchange.job.object as usize];
        let arrived = matches!(exchange.status, 200..=299) && object.has_size(exchange.got);
        if arrived {
            if self.cache.is_used() && exchange.status == 200 && !exchange.posts && !object.changes() {
                let address = address(&self.servers.of(object).authority, object.path());
                self.cache.keep(address, exchange.got);
            }
            self.results.object.add(cx.now - exchange.asked);
            self.results.bytes += exchange.got;
            page.bytes += exchange.got;
            self.results.arrival.add(cx.now - page.start);
        } else {
            self.results.failed += 1;
            self.results.wasted += exchange.got;
        }
        if let Some(first) = exchange.first_byte {
            self.results.first_byte.add(first - exchange.asked);
        }
        let source = if arrived { ObjectSource::Network } else { ObjectSource::Failed };
        let flow = Some(self.connections[place].flow);
        let loaded = Loaded { source, job: exchange.job, exchange: Some(&exchange), flow };
        self.log.object(cx, page, &self.plan, &self.servers, &loaded);
        page.settle(exchange.job.object, arrived, cx.now);
        self.close_if_ended(cx, net, place);
    }

    /// An alternative does not answer for the server: it is forgotten, and what was asked for is asked of the server.
    //= RFC 7838 (6): the alternative is not used any more, what such a response says of others is not believed, and the request is
    //= made again whatever its method.
    fn misdirected(&mut self, cx: &mut Cx, net: &mut dyn Sockets, place: usize, exchange: &Exchange) {
        let pool = self.connections[place].pool;
        self.alternatives.forget(pool);
        self.connections.iter_mut().filter(|c| c.pool == pool).for_each(Connection::retire);
        self.results.misdirected += 1;
        self.results.wasted += exchange.got;
        self.results.asked_again += 1;
        self.servers.pools[pool].waiting.push_front(exchange.job);
        let is_left = |c: &Connection| c.pool == pool && c.alternative.is_some() && c.has_ended();
        while let Some(place) = self.connections.iter().position(is_left) {
            self.close_if_ended(cx, net, place);
        }
    }

    /// Ends a connection on which nothing more will come.
    fn close_if_ended(&mut self, cx: &mut Cx, net: &mut dyn Sockets, place: usize) {
        let connection = &self.connections[place];
        if connection.has_ended() {
            if self.config.reaction.is_zero() || connection.is_multiplexed() {
                connection.finish(cx, net);
            } else {
                self.finish_when_reacting(connection.socket);
            }
            self.lost(cx, place);
        }
    }

    /// A program that is woken closes a connection after TCP has acknowledged the end of the other direction: two packets, where
    /// one that takes no time has one.
    fn finish_when_reacting(&mut self, socket: SocketId) {
        self.finishing.push(socket);
        self.news = true;
    }

    /// The connection is of no more use: what it did not answer is asked for again, or has failed.
    fn lost(&mut self, cx: &mut Cx, place: usize) {
        let connection = self.connections.swap_remove(place);
        if self.alternatives.are_followed() {
            self.race_without(cx.now, &connection);
        }
        let (pool, flow) = (connection.pool, connection.flow);
        for (exchange, blame) in connection.unanswered().into_iter().rev() {
            self.retry_or_fail(cx, (pool, flow), exchange, blame);
        }
    }

    /// An exchange of a connection of this pool and flow that was not answered is asked for again, or has failed; `blame` if it may
    /// be the reason.
    fn retry_or_fail(&mut self, cx: &mut Cx, (pool, flow): (usize, u32), exchange: Exchange, blame: bool) {
        let Some(page) = &mut self.page else { return };
        self.news = true;
        self.results.wasted += exchange.got;
        let mut job = exchange.job;
        let is_last = blame && job.failures >= self.config.retries;
        job.failures = job.failures.saturating_add(blame.into());
        //= RFC 9110 (9.2.2): GET is idempotent and may be repeated after the connection failed, POST is not.
        if exchange.posts || is_last {
            self.results.failed += 1;
            let loaded =
                Loaded { source: ObjectSource::Failed, job, exchange: Some(&exchange), flow: Some(flow) };
            self.log.object(cx, page, &self.plan, &self.servers, &loaded);
            page.settle(job.object, false, cx.now);
        } else {
            self.results.asked_again += 1;
            self.servers.pools[pool].waiting.push_front(job);
        }
    }

    fn ended(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, closed: Option<CloseReason>) {
        let Some(place) = self.connection_of(socket) else { return };
        // A response may end with the connection, but only if the server finished it.
        if matches!(closed, None | Some(CloseReason::Finished))
            && let Progress::Complete(exchange) = self.connections[place].peer_finished(cx)
        {
            self.complete(cx, net, place, exchange);
        }
        if let Some(place) = self.connection_of(socket) {
            if closed.is_none() {
                if self.config.reaction.is_zero() {
                    net.finish(cx, socket);
                } else {
                    self.finish_when_reacting(socket);
                }
            }
            self.lost(cx, place);
        }
    }
}

/// How urgent an object is for whoever looks at the page: the document, what decides how it looks, and the rest, of which
/// pictures are of use in part.
fn urgency(path: &str, place: u32) -> Priority {
    let path = path.split('?').next().unwrap_or_default();
    let of = |urgency, incremental| Priority { urgency, incremental };
    match path.rsplit('.').next() {
        _ if place == 0 => of(1, false),
        Some("css" | "js") => of(2, false),
        Some("png" | "gif" | "jpg" | "jpeg" | "webp") => of(3, true),
        _ => of(3, false),
    }
}

/// The whole address of what is there.
fn address(authority: &str, target: &str) -> String {
    format!("http://{authority}{target}")
}

impl App for Client {
    fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.advance(cx, net);
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        let follows = self.alternatives.are_followed();
        let mut on_streams = self.config.http == Http::Http3;
        if (on_streams || follows)
            && let Some(place) = self.connection_of(socket)
        {
            on_streams = self.connections[place].http == Http::Http3;
            self.connections[place].on(cx, net, socket, event);
        }
        let is_early = event == SocketEvent::Stream(StreamEvent::Early);
        if follows && (is_early || event == SocketEvent::Opened) {
            self.came_up(cx, net, socket, is_early);
        }
        if matches!(event, SocketEvent::Stream(StreamEvent::Path(_, true))) {
            self.alternatives.moved(cx.now);
        }
        match event {
            SocketEvent::Opened if !self.config.reaction.is_zero() => {
                self.news = true;
                self.opened.push(socket);
            }
            SocketEvent::Stream(StreamEvent::Early) => {
                self.results.early += 1;
                self.write(cx, net, socket);
            }
            SocketEvent::Opened | SocketEvent::Writable => self.write(cx, net, socket),
            SocketEvent::Readable(_) => self.read(cx, net, socket),
            // Of streams one by one.
            SocketEvent::Finished | SocketEvent::Stream(_) if on_streams => self.read(cx, net, socket),
            SocketEvent::Finished => self.ended(cx, net, socket, None),
            SocketEvent::Closed(reason) => self.ended(cx, net, socket, Some(reason)),
            SocketEvent::Asked { .. } | SocketEvent::Accepted { .. } | SocketEvent::Stream(_) => {}
        }
        self.react(cx, net);
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.wake
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        if self.reacts.is_some_and(|at| at <= cx.now) {
            self.reacts = None;
            for socket in std::mem::take(&mut self.finishing) {
                net.finish(cx, socket);
            }
            for socket in std::mem::take(&mut self.opened) {
                self.write(cx, net, socket);
            }
        }
        while let Some(place) = self.connections.iter().position(|c| c.deadline <= cx.now) {
            let connection = &self.connections[place];
            if connection.load() > 0 || connection.is_tried() {
                self.results.timeouts += u64::from(connection.load() > 0);
                connection.abort(cx, net);
            } else {
                connection.finish(cx, net);
            }
            self.lost(cx, place);
        }
        self.advance(cx, net);
    }
    fn is_done(&self) -> bool {
        self.plan.is_over() && self.page.is_none()
    }
    fn summarise(&self, out: &mut Summary) {
        let results = &self.results;
        results.pages.summarise(out);
        out.set("objects", results.object.count() as f64);
        out.set("failed", results.failed as f64);
        results.object.summarise("object", out);
        results.arrival.summarise("arrival", out);
        out.set_some("first_byte_mean_s", results.first_byte.mean_s());
        out.set("bytes", results.bytes as f64);
        out.set("wasted_bytes", results.wasted as f64);
        out.set("from_cache", results.cached as f64);
        out.set("requests_sent", results.requests as f64);
        out.set("connections", results.connections as f64);
        out.set("connections_early", results.early as f64);
        out.set("requests_per_connection", results.requests as f64 / results.connections as f64);
        out.set("streams", results.streams as f64);
        out.set("asked_again", results.asked_again as f64);
        out.set("timeouts", results.timeouts as f64);
        if self.alternatives.are_followed() {
            out.set("requests_h3", results.requests_h3 as f64);
            out.set("races", results.races as f64);
            out.set("races_won_by_quic", results.won_by_quic as f64);
            out.set("races_won_by_tcp", results.won_by_tcp as f64);
            out.set("requests_misdirected", results.misdirected as f64);
            out.set("alternatives_broken", self.alternatives.broken as f64);
        }
    }
}

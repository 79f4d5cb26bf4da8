//! The application: pushes one after another, each until it is over.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use airloom_base::{App, ConfigError, Cx, Duration, Instant, SocketEvent, SocketId, Sockets, Summary};
use airloom_content::http::message::{Fields, Method};
use url::Url;

use super::{Config, documents};
use crate::fetch::{FetchId, FetchRequest, Fetched, Fetcher, Settings};
use crate::times::Times;

/// Most octets of an answer that are read.
const MOST: usize = 65_536;
/// The code of a push that was taken.
const ACCEPTED: u16 = 1001;

/// Who is where.
#[derive(Clone, Copy, Debug)]
pub struct Whereabouts {
    /// Address of the gateway.
    pub gateway: IpAddr,
    /// Address of the client.
    pub client: IpAddr,
}

/// The initiator.
pub struct Initiator {
    config: Config,
    client: IpAddr,
    url: Url,
    fetcher: Fetcher,
    submitted: u32,
    next: Option<Instant>,
    /// Pushes that are not over, by number.
    open: BTreeMap<u32, Open>,
    asked: BTreeMap<FetchId, Asked>,
    names: u64,
    results: Results,
}

/// A push that is not over.
struct Open {
    since: Instant,
    accepted: bool,
    /// When to ask what became of it; none while an answer is awaited.
    ask: Option<Instant>,
}

/// An exchange with the gateway.
struct Asked {
    push: u32,
    body: Vec<u8>,
}

#[derive(Default)]
struct Results {
    accepted: u64,
    refused: u64,
    delivered: u64,
    failed: u64,
    accept: Times,
    deliver: Times,
}

impl Initiator {
    /// One that begins at the start its configuration says.
    ///
    /// # Errors
    /// [`ConfigError`] for times of nothing.
    pub fn new(config: Config, places: Whereabouts) -> Result<Self, ConfigError> {
        for (key, time) in
            [("interval", config.interval), ("ask_every", config.ask_every), ("timeout", config.timeout)]
        {
            ConfigError::when(time.is_zero(), key, "must be above 0s")?;
        }
        ConfigError::when(config.text.0 > 100_000, "text", "at most 100kB")?;
        let at = SocketAddr::new(places.gateway, config.port);
        let url = format!("http://{at}/").parse().map_err(|_| ConfigError::at("port", "is none"))?;
        let settings =
            Settings { connections: 1, keep_alive: true, keep_alive_timeout: Duration::from_secs(15) };
        Ok(Initiator {
            client: places.client,
            url,
            fetcher: Fetcher::new(settings, BTreeMap::new()),
            submitted: 0,
            next: (config.count > 0).then(|| Instant::ZERO + config.start),
            open: BTreeMap::new(),
            asked: BTreeMap::new(),
            names: 0,
            results: Results::default(),
            config,
        })
    }

    /// Does what is due, takes what came, until nothing is left to do now.
    fn advance(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        while self.next.is_some_and(|at| at <= cx.now) {
            self.submit(cx, net);
        }
        let due = self.open.iter().filter(|(_, open)| open.ask.is_some_and(|at| at <= cx.now));
        for push in due.map(|(push, _)| *push).collect::<Vec<_>>() {
            let document = documents::query(&name(push));
            self.ask(cx, net, push, documents::QUERY, document);
        }
        while let Some((id, fetched)) = self.fetcher.poll() {
            self.handle_fetched(cx.now, id, fetched);
        }
        let timeout = self.config.timeout;
        let over = self.open.iter().filter(|(_, open)| open.since + timeout <= cx.now);
        for push in over.map(|(push, _)| *push).collect::<Vec<_>>() {
            self.fail(push);
            let its = self.asked.iter().find(|(_, asked)| asked.push == push).map(|(id, _)| *id);
            if let Some(id) = its {
                self.asked.remove(&id);
                self.fetcher.cancel(cx, net, id);
            }
        }
    }

    fn submit(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.submitted += 1;
        let push = self.submitted;
        self.next = self.next.filter(|_| push < self.config.count).map(|at| at + self.config.interval);
        self.open.insert(push, Open { since: cx.now, accepted: false, ask: None });
        let text = usize::try_from(self.config.text.0).unwrap_or(usize::MAX);
        let document = documents::push(&name(push), self.client, self.config.delivery, text);
        self.ask(cx, net, push, documents::MESSAGE, document);
    }

    fn ask(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        push: u32,
        content_type: &'static str,
        document: String,
    ) {
        if let Some(open) = self.open.get_mut(&push) {
            open.ask = None;
        }
        self.names += 1;
        let id = FetchId(self.names);
        let mut fields = Fields::default();
        let host = self.url.host_str().unwrap_or_default();
        fields.push("Host", format!("{host}:{}", self.config.port));
        fields.push("User-Agent", "airloom");
        fields.push("Content-Type", content_type);
        fields.push("Content-Length", document.len().to_string());
        let url = self.url.clone();
        self.asked.insert(id, Asked { push, body: Vec::new() });
        self.fetcher.start(
            cx,
            net,
            id,
            FetchRequest { method: Method::Post, url, fields, body: document.into() },
        );
    }

    fn handle_fetched(&mut self, now: Instant, id: FetchId, fetched: Fetched) {
        match fetched {
            Fetched::Head { .. } => {}
            Fetched::Chunk(octets) => {
                if let Some(asked) = self.asked.get_mut(&id) {
                    let room = MOST.saturating_sub(asked.body.len()).min(octets.len());
                    asked.body.extend_from_slice(&octets[..room]);
                }
            }
            Fetched::End => {
                let Some(asked) = self.asked.remove(&id) else { return };
                let said = std::str::from_utf8(&asked.body).ok().and_then(documents::answer);
                self.answered(now, asked.push, said);
            }
            Fetched::Failed(_) => {
                if let Some(asked) = self.asked.remove(&id) {
                    self.answered(now, asked.push, None);
                }
            }
        }
    }

    /// The gateway has answered; none: not, or with nothing that can be read.
    fn answered(&mut self, now: Instant, push: u32, said: Option<(u16, Option<String>)>) {
        let Some(open) = self.open.get_mut(&push) else { return };
        let next = Some(now + self.config.ask_every);
        match (open.accepted, said) {
            (false, Some((ACCEPTED, _))) => {
                (open.accepted, open.ask) = (true, next);
                self.results.accepted += 1;
                self.results.accept.add(now - open.since);
            }
            (false, _) => {
                self.results.refused += 1;
                self.open.remove(&push);
            }
            (true, Some((_, Some(state)))) if state == "delivered" => {
                self.results.delivered += 1;
                self.results.deliver.add(now - open.since);
                self.open.remove(&push);
            }
            (true, Some((_, Some(state)))) if state != "pending" => self.fail(push),
            // One that cannot be asked now may be asked later.
            (true, _) => open.ask = next,
        }
    }

    fn fail(&mut self, push: u32) {
        if self.open.remove(&push).is_some() {
            self.results.failed += 1;
        }
    }
}

fn name(push: u32) -> String {
    format!("{push}@airloom")
}

impl App for Initiator {
    fn start(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.advance(cx, net);
    }
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        self.fetcher.handle_event(cx, net, socket, event);
        self.advance(cx, net);
    }
    fn poll_timeout(&self) -> Option<Instant> {
        let asks = self.open.values().filter_map(|open| open.ask).min();
        let over = self.open.values().map(|open| open.since + self.config.timeout).min();
        [self.next, asks, over, self.fetcher.poll_timeout()].into_iter().flatten().min()
    }
    fn handle_timeout(&mut self, cx: &mut Cx, net: &mut dyn Sockets) {
        self.fetcher.handle_timeout(cx, net);
        self.advance(cx, net);
    }
    fn is_done(&self) -> bool {
        self.next.is_none() && self.open.is_empty()
    }
    fn summarise(&self, out: &mut Summary) {
        let results = &self.results;
        out.set("pushes", f64::from(self.submitted));
        out.set("accepted", results.accepted as f64);
        out.set("refused", results.refused as f64);
        out.set("delivered", results.delivered as f64);
        out.set("failed", results.failed as f64);
        results.accept.summarise("accept", out);
        results.deliver.summarise("deliver", out);
    }
}

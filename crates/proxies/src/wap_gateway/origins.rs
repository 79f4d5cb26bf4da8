//! The side of the origins: what is asked, and what comes of it.

use airloom_base::Instant;
use airloom_content::http::message::{Fields, Method};
use airloom_content::wbxml::Options;
use bytes::Bytes;

use super::body::{BodyError, Incoming};
use super::content::{Maker, Refusal, Treatment};
use super::exchange::Stage;
use super::fetch::{FetchId, FetchOrder, Fetched};
use super::gateway::Gateway;
use super::reply::{self, Reply};
use super::request;
use super::session::SECRETS;

/// Octets that a reply takes beside its headers and body: type, status, length of the headers, and what a changed validator
/// and a content type may take more than reckoned.
const AROUND: usize = 64;

impl Gateway {
    /// Something came of an order. What belongs to none is ignored.
    pub fn handle_fetch(&mut self, now: Instant, id: FetchId, fetched: Fetched) {
        if self.notice_fetched(now, id, &fetched)
            || !self.exchanges.get(&id).is_some_and(|exchange| exchange.fetching)
        {
            return;
        }
        match fetched {
            Fetched::Head { status, fields } => self.head(now, id, status, fields),
            Fetched::Chunk(octets) => self.chunk(now, id, &octets),
            Fetched::End => self.end(now, id),
            Fetched::Failed(why) => {
                self.no_longer_fetching(id);
                self.refuse(now, id, why.status(), &why.to_string());
            }
        }
        self.settle(now);
    }

    /// Asks the origin, or answers from what was kept.
    pub(super) fn ask_origin(&mut self, now: Instant, id: FetchId) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let Some(request) = &exchange.request else { return };
        let is_trusted = exchange.session.is_some_and(|session| self.is_trusted(session));
        let cookies = exchange.session.and_then(|session| self.sessions.get_mut(&session));
        let cookies = cookies.filter(|_| is_trusted);
        let cookies = cookies.and_then(|session| session.jar.header(now, &request.url));
        let is_private = cookies.is_some() || SECRETS.iter().any(|name| request.fields.first(name).is_some());
        if let Some(cache) = self.cache.as_mut().filter(|_| request.method == Method::Get) {
            if exchange.afresh {
                // What was found too old by one is not given to others any more.
                cache.remove(request.url.as_str());
            } else if !is_private && let Some(kept) = cache.find(now, request.url.as_str()) {
                self.counters.cache_hits += 1;
                let mut fields = kept.fields.clone();
                //= RFC 9111 (5.1): an answer that was kept says how old it is.
                fields.remove("age");
                fields.push("Age", kept.age(now).to_string());
                return self.complete(now, id, kept.status, &fields, kept.body);
            }
        }
        let mut request = request.clone();
        if let Some(cookies) = cookies {
            let own = request.fields.first("cookie").map(<[u8]>::to_vec);
            request.fields.remove("cookie");
            let all = own.map_or_else(
                || cookies.clone().into_bytes(),
                |own| [&own, b"; ".as_slice(), cookies.as_bytes()].concat(),
            );
            request.fields.push("Cookie", all);
        }
        self.counters.fetches += 1;
        let deadline = exchange.asked + self.config.origin_timeout;
        self.orders.push_back(FetchOrder::Start { id, request: Box::new(request) });
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange.fetching = true;
            exchange.is_private = is_private;
        }
        self.set_due(id, Some(deadline));
    }

    fn no_longer_fetching(&mut self, id: FetchId) {
        if let Some(exchange) = self.exchanges.get_mut(&id) {
            exchange.fetching = false;
        }
    }

    fn head(&mut self, now: Instant, id: FetchId, status: u16, fields: Fields) {
        let calendar = self.seconds(now);
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Some(request) = exchange.request.as_ref().filter(|_| matches!(exchange.stage, Stage::Waiting))
        else {
            return self.broken(now, id, BodyError::NotAsAnnounced);
        };
        if (100..200).contains(&status) {
            return;
        }
        let is_safe = matches!(request.method, Method::Get | Method::Head | Method::Options);
        if let Some(cache) = self.cache.as_mut().filter(|_| !is_safe && matches!(status, 200..=399)) {
            //= RFC 9111 (4.4): what is kept of an address is of no use once something was changed there.
            cache.remove(request.url.as_str());
        }
        if self.config.cookies
            && let Some(session) = exchange.session.and_then(|session| self.sessions.get_mut(&session))
        {
            session.jar.store(now, calendar, &request.url, &fields);
        }
        let further = Some(request).filter(|_| exchange.redirects < self.config.max_redirects);
        if let Some(next) = further.and_then(|request| request::redirected(request, status, &fields)) {
            exchange.request = Some(next);
            return self.follow(now, id);
        }
        let has_body = request.method != Method::Head && !matches!(status, 204 | 304);
        let most = usize::try_from(self.config.max_body.0).unwrap_or(usize::MAX);
        match has_body.then(|| Incoming::new(&fields, most)).transpose() {
            Ok(body) => exchange.stage = Stage::Receiving { status, fields, body },
            Err(why) => self.broken(now, id, why),
        }
    }

    /// The exchange goes on under a new name, with another origin or address.
    fn follow(&mut self, now: Instant, id: FetchId) {
        self.cancel(id);
        self.counters.redirects += 1;
        let name = self.name();
        let Some(mut exchange) = self.take(id) else { return };
        exchange.redirects += 1;
        self.enter(name, exchange);
        self.set_held(name, 0);
        self.ask_origin(now, name);
    }

    fn chunk(&mut self, now: Instant, id: FetchId, octets: &Bytes) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Stage::Receiving { body, .. } = &mut exchange.stage else {
            return self.broken(now, id, BodyError::NotAsAnnounced);
        };
        // What comes although there should be no body means nothing.
        let Some(body) = body else { return };
        if let Err(why) = body.push(octets) {
            return self.broken(now, id, why);
        }
        let (held, peer) = (body.held(), exchange.asker.peer());
        self.set_held(id, held);
        if self.is_full_for(peer) {
            self.cancel(id);
            self.refuse(now, id, 503, "The gateway is busy");
        }
    }

    fn end(&mut self, now: Instant, id: FetchId) {
        self.no_longer_fetching(id);
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.fetched = Some(now);
        match std::mem::replace(&mut exchange.stage, Stage::Waiting) {
            Stage::Receiving { status, fields, body } => {
                match body.map_or(Ok(Bytes::new()), Incoming::finish) {
                    Ok(body) => {
                        self.counters.origin_octets += body.len() as u64;
                        self.keep(now, id, status, &fields, &body);
                        self.complete(now, id, status, &fields, body);
                    }
                    Err(why) => self.broken(now, id, why),
                }
            }
            Stage::Waiting | Stage::Ready(_) => self.broken(now, id, BodyError::NotAsAnnounced),
        }
    }

    /// What came is not what HTTP allows, or too much.
    fn broken(&mut self, now: Instant, id: FetchId, why: BodyError) {
        self.cancel(id);
        let text = match why {
            BodyError::TooLarge => "The origin's answer is too large",
            BodyError::NotAsAnnounced => "The origin's answer contradicts itself",
        };
        self.refuse(now, id, 502, text);
    }

    fn keep(&mut self, now: Instant, id: FetchId, status: u16, fields: &Fields, body: &Bytes) {
        let Some(cache) = &mut self.cache else { return };
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let request =
            exchange.request.as_ref().filter(|r| r.method == Method::Get && exchange.redirects == 0);
        if let Some(request) = request.filter(|_| !exchange.afresh && !exchange.is_private) {
            cache.store(now, request.url.as_str(), status, fields, body);
        }
    }

    /// An origin's answer is there: makes the reply of it.
    fn complete(&mut self, now: Instant, id: FetchId, status: u16, fields: &Fields, body: Bytes) {
        let limit = self.reply_limit(id);
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let Some(request) = &exchange.request else { return };
        let keeps_cookies = self.config.cookies && exchange.session.is_some();
        exchange.origin_octets = body.len() as u64;
        let Some(mut passed) = reply::passed_on(fields, keeps_cookies) else {
            return self.broken(now, id, BodyError::TooLarge);
        };
        if exchange.redirects > 0 && passed.first("content-location").is_none() {
            // The client does not know where the gateway was led, but references in the body are relative to that.
            passed.push("Content-Location", request.url.as_str().to_owned());
        }
        let said = fields.first("content-type").map(String::from_utf8_lossy);
        let content_type = said.as_deref().unwrap_or("application/octet-stream");
        let mut reply =
            Reply { status, content_type: content_type.to_owned(), fields: passed, body: Bytes::new() };
        let headers = reply.headers(exchange.version, own_headers(limit)).len();
        let maker = Maker {
            accept: &exchange.accept,
            charsets: &exchange.charsets,
            most: limit.saturating_sub(headers + AROUND),
            url: &request.url,
            page: id.0,
            converts_html: self.config.convert_html,
            options: Options { string_table: self.config.string_table },
            verbatim: fields.list_has("cache-control", "no-transform"),
            strict: self.config.smart_errors,
        };
        if body.is_empty() {
            reply.content_type = match said {
                Some(_) => maker.content_type(content_type),
                None => "text/plain".to_owned(),
            };
            return self.ready(now, id, reply);
        }
        match maker.make(content_type, body) {
            Ok(made) => {
                if made.treatment != Treatment::PassedThrough {
                    reply::altered(&mut reply.fields);
                }
                exchange.treatment = made.treatment;
                let owner = exchange.owner();
                (reply.content_type, reply.body) = (made.content_type, made.body);
                self.counters.split += u64::from(!made.parts.is_empty());
                for (n, part) in made.parts.into_iter().enumerate() {
                    self.decks.keep(owner, (id.0, n), part);
                }
                self.ready(now, id, reply);
            }
            // Of an error or a redirection the status says enough.
            Err(_) if status >= 300 => {
                reply.content_type = "text/plain".to_owned();
                self.ready(now, id, reply);
            }
            Err(Refusal::NotAcceptable) => self.refuse(now, id, 406, "The client does not take this type"),
            Err(Refusal::TooLarge) => self.refuse(now, id, 502, "The page is too large for the client"),
            Err(Refusal::NotUnderstood(why)) => {
                self.refuse(now, id, 502, &format!("The page is not well-formed: {why}"));
            }
        }
    }
}

/// Octets of headers without a number that a reply of at most `limit` octets may carry.
pub(super) fn own_headers(limit: usize) -> usize {
    (limit / 8).min(4_096)
}

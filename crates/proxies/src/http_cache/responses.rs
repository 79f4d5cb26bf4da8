//! Answers of servers: passed on, kept, or taken as the word that nothing has changed.

use std::sync::Arc;

use airloom_base::{Body, Cx, SocketId, Sockets};
use airloom_content::http::message::{Fields, Method, ResponseHead, Version};
use airloom_content::http::v1::{BodyLength, Framing, Receiver, persists};
use bytes::Bytes;

use super::answers;
use super::app::HttpCache;
use super::directives::Directives;
use super::exchange::{Exchange, ExchangeId, Phase};
use super::store::{Collected, Keeping, Stored};
use super::target::target;
use super::{forward, policy};

impl HttpCache {
    /// An answer that is not the final one. False if it may not come.
    pub(super) fn interim(&mut self, id: ExchangeId, head: &ResponseHead) -> bool {
        //= RFC 9110 (15.2.2): nobody has asked for another protocol.
        if head.status == 101 {
            return false;
        }
        let via = self.config.name().to_owned();
        let Some(exchange) = self.exchange(id) else { return true };
        //= RFC 9110 (15.2): passed on, but not to clients of HTTP/1.0, who know nothing of them. Not without end either.
        if exchange.head.version == Version::Http11
            && exchange.held < 65_536
            && exchange.phase == Phase::Asked
        {
            let fields = forward::response(&head.fields, head.version, &via);
            let mut octets = Vec::new();
            let (status, reason) = (head.status, head.reason.clone());
            ResponseHead { version: Version::Http11, status, reason, fields }.emit(&mut octets);
            exchange.push(Body::Real(octets.into()));
        }
        true
    }

    /// The head of the final answer. False if the connection is of no use.
    pub(super) fn response(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        socket: SocketId,
        id: ExchangeId,
        head: ResponseHead,
        framing: Framing,
    ) -> bool {
        let stays = persists(head.version, &head.fields, Receiver::Client)
            && !framing.must_close
            && framing.length != BodyLength::UntilClose;
        if let Some(server) = self.servers.get_mut(socket) {
            server.persists &= stays;
            if let Some(origin) = self.origins.get_mut(&server.key) {
                origin.version = Some(head.version);
            }
        }
        let (today, is_stopping) = (self.today(cx.now), self.is_stopping);
        let assumed = self.config.assume_fresh.as_nanos() / 1_000_000_000;
        let via = self.config.name().to_owned();
        let max_object = self.config.max_object.0.min(self.config.capacity.0);
        let Some(exchange) = self.clients.get_mut(id.0).and_then(|client| client.exchange(id.1)) else {
            return false;
        };
        exchange.how = "miss";
        exchange.closes |= is_stopping;
        if exchange.phase != Phase::Asked {
            return exchange.phase == Phase::Done;
        }
        let mut fields = forward::response(&head.fields, head.version, &via);
        let took = cx.now.since(exchange.sent).as_nanos() / 1_000_000_000;
        if let Some(kept) = exchange.checking.take_if(|_| head.status == 304) {
            if !policy::is_about(&fields, &kept.fields) {
                //= RFC 9111 (4.3.4): nothing of what is kept is updated. What it is about is asked for, once this is over.
                return true;
            }
            let (asked, key) = (exchange.head.fields.clone(), exchange.key.clone());
            let fresh = freshened(&kept, &fields, &asked, cx, today, took, assumed);
            let Stored { status, ref fields, ref said, .. } = fresh;
            let stays = policy::may_store(&Method::Get, &asked, status, fields, said, assumed > 0);
            let fresh = Arc::new(fresh);
            answers::stored(exchange, &fresh, cx.now, "validated");
            self.counters.validated += 1;
            if !stays || fresh.varying != kept.varying {
                // What is kept of this address was kept by another word of its server.
                self.store.remove(&key);
            }
            if stays {
                self.store.insert(&key, fresh);
            }
            self.pump_client(cx, net, id.0);
            return true;
        }
        //= RFC 9110 (6.6.1): an answer without a date gets the one of its arrival.
        if fields.first("date").is_none()
            && let Some(today) = today
        {
            fields.push("Date", policy::date_text(today));
        }
        let said = Directives::of(&fields);
        let method = exchange.head.method.clone();
        let is_part = exchange.head.fields.first("range").is_some();
        let is_known =
            matches!(framing.length, BodyLength::None | BodyLength::Exactly(_) | BodyLength::Chunked);
        let fits = !matches!(framing.length, BodyLength::Exactly(n) if n > max_object);
        if is_known
            && fits
            && !is_part
            && !exchange.has_content
            && policy::may_store(&method, &exchange.head.fields, head.status, &fields, &said, assumed > 0)
        {
            let made = policy::date(&fields, "date").or(today);
            let kept = without_age(&fields);
            let lines = kept.lines();
            let keeping = Keeping {
                stored: Stored {
                    status: head.status,
                    reason: Bytes::copy_from_slice(&head.reason),
                    body: Vec::new(),
                    length: 0,
                    varying: policy::varying(&fields, &exchange.head.fields),
                    received: cx.now,
                    initial_age: policy::initial_age(&fields, today, took),
                    lifetime: policy::lifetime(&fields, &said, made, assumed),
                    said,
                    fields: kept.within(&lines),
                    lines,
                },
                body: Collected::default(),
            };
            exchange.keeping = Some(keeping).filter(|keeping| self.store.reserve(keeping.octets()));
        }
        if exchange.keeping.is_none()
            && method == Method::Get
            && !is_part
            && !exchange.has_content
            && matches!(head.status, 200 | 203 | 300 | 301 | 404 | 410)
        {
            // Not demanded: where the latest word of its server is kept for nobody, an older one is not either.
            self.store.forget(&exchange.key, &exchange.head.fields);
        }
        begin(exchange, &head, &fields, framing);
        if !method.is_safe() && matches!(head.status, 200..=399) {
            self.invalidate(id, &head);
        }
        true
    }

    /// A piece of the answer's body.
    pub(super) fn response_body(&mut self, id: ExchangeId, piece: Body) {
        let most = self.config.max_object.0.min(self.config.capacity.0);
        let exchange = self.clients.get_mut(id.0).and_then(|client| client.exchange(id.1));
        let Some(exchange) = exchange.filter(|x| x.phase == Phase::Answering) else { return };
        if let Some(keeping) = &mut exchange.keeping {
            let octets = piece.len() as u64;
            if keeping.body.length + octets <= most && self.store.reserve(octets) {
                keeping.body.push(piece.clone());
            } else {
                self.store.release(exchange.keeping.take().as_ref());
                self.store.forget(&exchange.key, &exchange.head.fields);
            }
        }
        exchange.push_body(piece);
    }

    /// The answer is complete, or was none to what was asked, which is asked again. False if its request was not sent whole.
    pub(super) fn response_end(&mut self, id: ExchangeId) -> bool {
        let Some(exchange) = self.exchange(id) else { return true };
        let server = exchange.server.take();
        let was_whole = !exchange.upload.is_owed() && exchange.upload.held.is_empty();
        let phase = exchange.phase;
        if phase == Phase::Asked
            && let Some(key) = server.and_then(|s| self.servers.get_mut(s)).map(|s| s.key.clone())
        {
            self.requeue(&key, id);
        }
        let Some(exchange) = self.exchange(id).filter(|_| phase == Phase::Answering) else {
            return was_whole;
        };
        exchange.complete();
        let (key, keeping) = (exchange.key.clone(), exchange.keeping.take());
        self.store.release(keeping.as_ref());
        if let Some(Keeping { mut stored, body }) = keeping {
            stored.length = body.length;
            stored.body = body.finish();
            self.store.insert(&key, Arc::new(stored));
            self.counters.stored += 1;
        }
        was_whole
    }

    /// A request that changes something makes what is kept of its target useless.
    fn invalidate(&mut self, id: ExchangeId, head: &ResponseHead) {
        let mode = self.config.mode;
        let Some(exchange) = self.exchange(id) else { return };
        let (key, request, own) = (exchange.key.clone(), exchange.head.clone(), exchange.target.clone());
        self.store.remove(&key);
        //= RFC 9111 (4.4): Location and Content-Location too, of the same origin.
        let Some(own) = own else { return };
        let prefix = key.len() - own.path.len();
        for field in ["location", "content-location"] {
            let Some(place) = head.fields.first(field) else { continue };
            let path: Bytes = if place.starts_with(b"/") && !place.starts_with(b"//") {
                place.to_vec().into()
            } else {
                let request = airloom_content::http::message::RequestHead {
                    target: place.to_vec().into(),
                    ..request.clone()
                };
                match target(&request, mode) {
                    Ok(other) if (&other.host, other.port) == (&own.host, own.port) => other.path,
                    _ => continue,
                }
            };
            self.store.remove(&[&key[..prefix], &path].concat().into());
        }
    }
}

/// Passes the head of an answer on, framed anew.
fn begin(exchange: &mut Exchange, head: &ResponseHead, fields: &Fields, framing: Framing) {
    let mut text = Vec::with_capacity(512);
    text.extend_from_slice(format!("HTTP/1.1 {:03} ", head.status).as_bytes());
    text.extend_from_slice(&head.reason);
    text.extend_from_slice(b"\r\n");
    text.extend_from_slice(&fields.lines());
    match framing.length {
        BodyLength::Exactly(n) => text.extend_from_slice(format!("Content-Length: {n}\r\n").as_bytes()),
        BodyLength::None if matches!(head.status, 204 | 304) => {}
        //= RFC 9110 (8.6): in the answer to HEAD it is what GET would give.
        BodyLength::None if exchange.head.method == Method::Head => {
            if let (Some(n), None) =
                (head.fields.first("content-length"), head.fields.first("transfer-encoding"))
                && n.iter().all(u8::is_ascii_digit)
            {
                for part in [b"Content-Length: ", n, b"\r\n"] {
                    text.extend_from_slice(part);
                }
            }
        }
        BodyLength::None => text.extend_from_slice(b"Content-Length: 0\r\n"),
        //= RFC 9112 (6.1): no chunks for HTTP/1.0: the body ends with the connection.
        _ if exchange.head.version == Version::Http10 => {
            exchange.until_close = true;
            exchange.closes = true;
        }
        _ => {
            exchange.chunks = Some(false);
            text.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
    }
    text.extend_from_slice(answers::connection(exchange).as_bytes());
    text.extend_from_slice(b"\r\n");
    exchange.status = head.status;
    exchange.phase = Phase::Answering;
    exchange.push(Body::Real(text.into()));
}

/// What is kept, after its server said to who asked like this that it has not changed (RFC 9111, 4.3.4).
fn freshened(
    kept: &Stored,
    news: &Fields,
    asked: &Fields,
    cx: &Cx,
    today: Option<u64>,
    took: u64,
    assumed: u64,
) -> Stored {
    let mut fields = Fields::default();
    //= RFC 9110 (6.6.1): news without a date have the one of their arrival, and not that of what is kept.
    let is_news = |name: &[u8]| {
        name.eq_ignore_ascii_case(b"date") || news.iter().any(|field| field.name.eq_ignore_ascii_case(name))
    };
    for field in kept.fields.iter().filter(|field| !is_news(&field.name)) {
        fields.push(field.name.clone(), field.value.clone());
    }
    for field in news.iter() {
        fields.push(field.name.clone(), field.value.clone());
    }
    if fields.first("date").is_none()
        && let Some(today) = today
    {
        fields.push("Date", policy::date_text(today));
    }
    let said = Directives::of(&fields);
    let made = policy::date(&fields, "date").or(today);
    let without = without_age(&fields);
    let lines = without.lines();
    Stored {
        varying: policy::varying(&fields, asked),
        received: cx.now,
        initial_age: policy::initial_age(news, today, took),
        lifetime: policy::lifetime(&fields, &said, made, assumed),
        said,
        fields: without.within(&lines),
        lines,
        ..kept.clone()
    }
}

/// Our own Age takes the place of the one that came.
fn without_age(fields: &Fields) -> Fields {
    let mut fields = fields.clone();
    fields.remove("age");
    fields
}

//! Requests: refused, answered from the store, or sent on their way.
//! A circle, of which `app.rs` says why.

use airloom_base::{Body, Cx, SocketId, Sockets};
use airloom_content::http::message::{Method, RequestHead, Version};
use airloom_content::http::v1::{BodyLength, Framing, Receiver, chunk_size_line, persists};

use super::app::HttpCache;
use super::config::Mode;
use super::directives::{Directives, number};
use super::exchange::{Exchange, ExchangeId, Phase};
use super::target::target;
use super::{answers, forward, policy};

impl HttpCache {
    /// A request has come.
    pub(super) fn request_arrived(
        &mut self,
        cx: &mut Cx,
        net: &mut dyn Sockets,
        socket: SocketId,
        head: RequestHead,
        framing: Framing,
    ) {
        let Some(client) = self.clients.get_mut(socket) else { return };
        self.counters.requests += 1;
        let receiver = if self.config.keep_alive_10 { Receiver::Server } else { Receiver::Proxy };
        let stays = self.config.client_keep_alive
            && !self.is_stopping
            && persists(head.version, &head.fields, receiver);
        let mut exchange = Exchange::new(client.next, head, framing.length, cx.now);
        exchange.closes = !stays;
        let is_alone = client.exchanges.is_empty();
        let at = client.at;
        client.next += 1;
        let refusal = if framing.must_close { Some(400) } else { None };
        let refusal = refusal.or_else(|| self.refusal(&mut exchange, is_alone));
        let id = (socket, exchange.number);
        let Some(client) = self.clients.get_mut(socket) else { return };
        if let Some(status) = refusal {
            self.counters.errors += u64::from(status != 200);
            answers::own(&mut exchange, status);
            client.exchanges.push_back(exchange);
            return;
        }
        let Some(target) = exchange.target.clone() else { return };
        if exchange.head.method == Method::Connect {
            client.exchanges.push_back(exchange);
            return self.begin_tunnel(cx, net, id, &target);
        }
        let mut key = target.key();
        let origin = match self.config.mode {
            Mode::Addressed => (target.host.clone(), target.port),
            Mode::Transparent => {
                // Host may say anything; who was meant is where the connection was going, for the store as well.
                key = [at.to_string().as_bytes(), b" ", &key].concat().into();
                (at.ip().to_string(), at.port())
            }
        };
        exchange.key = key;
        let is_answered = self.answer_from_store(cx, &mut exchange);
        if let Some(client) = self.clients.get_mut(socket) {
            client.exchanges.push_back(exchange);
        }
        if !is_answered {
            self.queue(cx, net, id, origin);
        }
    }

    /// Why a request is not forwarded, if it is not.
    fn refusal(&mut self, exchange: &mut Exchange, is_alone: bool) -> Option<u16> {
        let target = match target(&exchange.head, self.config.mode) {
            Ok(target) => target,
            Err(status) => return Some(status),
        };
        let head = &exchange.head;
        if forward::is_circle(&head.fields, self.config.name()) {
            return Some(508);
        }
        if head.method == Method::Connect {
            let is_allowed = self.config.connect_ports.contains(&target.port);
            if !is_allowed {
                let port = target.port;
                exchange.why =
                    Some(format!("CONNECT may not go to port {port} (--set connect_ports=[443, {port}])"));
            }
            exchange.closes = true;
            exchange.target = Some(target);
            return match (self.config.mode, is_alone, is_allowed) {
                (Mode::Transparent, ..) => Some(405),
                (_, false, _) => Some(400),
                (_, _, false) => Some(403),
                _ => None,
            };
        }
        //= RFC 9110 (7.6.2): TRACE and OPTIONS go so far and no further.
        if matches!(head.method, Method::Trace | Method::Options)
            && let Some(left) = head.fields.first("max-forwards").map(number)
        {
            match left {
                None => return Some(400),
                Some(0) if head.method == Method::Options => return Some(200),
                Some(0) => return Some(405),
                Some(left) => {
                    exchange.head.fields.remove("max-forwards");
                    exchange.head.fields.push("Max-Forwards", (left - 1).to_string());
                }
            }
        }
        if let (BodyLength::Exactly(length), Some(most)) = (exchange.upload.length, self.config.max_upload)
            && length > most.0
        {
            return Some(413);
        }
        exchange.target = Some(target);
        None
    }

    /// Answers from the store if that is allowed; remembers what its server may be asked about.
    fn answer_from_store(&mut self, cx: &Cx, exchange: &mut Exchange) -> bool {
        let fields = &exchange.head.fields;
        if !matches!(exchange.head.method, Method::Get | Method::Head) {
            return false;
        }
        // Conditions about parts and changes are for the server to judge.
        let is_other = ["range", "if-range", "if-match", "if-unmodified-since"]
            .iter()
            .any(|name| fields.first(name).is_some());
        let may = !exchange.has_content && !is_other;
        let asked = Directives::of(fields);
        let kept = if may { self.store.find(&exchange.key, fields) } else { None };
        if let Some(kept) = kept {
            if kept.suffices(cx.now, &asked) {
                self.counters.hits += 1;
                answers::stored(exchange, &kept, cx.now, "hit");
                return true;
            }
            if policy::has_validator(&kept.fields) && !asked.no_store && exchange.head.method == Method::Get {
                exchange.checking = Some(kept);
            }
        }
        if asked.only_if_cached {
            //= RFC 9111 (5.2.1.7): from the store or not at all.
            self.counters.errors += 1;
            answers::own(exchange, 504);
            return true;
        }
        false
    }

    /// Hands on what has come of a request's body.
    pub(super) fn upload(&mut self, cx: &mut Cx, net: &mut dyn Sockets, id: ExchangeId) {
        let Some(exchange) = self.exchange(id) else { return };
        //= RFC 9110 (10.1.1): a server that answers before it has read the whole request may go on reading.
        let is_on = matches!(exchange.phase, Phase::Asked | Phase::Answering);
        let Some(server) = exchange.server.filter(|_| is_on) else { return };
        self.write_server(cx, net, server);
    }
}

/// The head of a request as it is sent to its server.
pub(super) fn forwarded(exchange: &Exchange, closes: bool, name: &str) -> Vec<u8> {
    let Some(target) = &exchange.target else { return Vec::new() };
    let head = &exchange.head;
    let mut fields = forward::request(&head.fields, head.version, &target.authority(), name);
    if let Some(kept) = &exchange.checking {
        //= RFC 9111 (4.3.1): what is kept is named by its validators; the client's own conditions are judged here.
        fields.remove("if-none-match");
        fields.remove("if-modified-since");
        if let Some(tag) = kept.fields.first("etag") {
            fields.push("If-None-Match", tag.to_vec());
        }
        if let Some(date) = kept.fields.first("last-modified") {
            fields.push("If-Modified-Since", date.to_vec());
        }
    }
    match exchange.upload.length {
        BodyLength::Exactly(length) => fields.push("Content-Length", length.to_string()),
        BodyLength::Chunked => fields.push("Transfer-Encoding", "chunked"),
        //= RFC 9110 (8.6): a method that usually has a body says so if it has none.
        _ if matches!(head.method, Method::Post | Method::Put) => fields.push("Content-Length", "0"),
        _ => {}
    }
    if closes {
        fields.push("Connection", "close");
    }
    let mut octets = Vec::with_capacity(512);
    let (method, path) = (head.method.clone(), target.path.clone());
    RequestHead { method, target: path, version: Version::Http11, fields }.emit(&mut octets);
    octets
}

/// A piece of a request's body, framed as its head said; the end if there is nothing left.
pub(super) fn next_upload(exchange: &mut Exchange) -> Option<Body> {
    let upload = &mut exchange.upload;
    let is_chunked = upload.length == BodyLength::Chunked;
    if let Some(piece) = upload.held.pop_front() {
        upload.octets -= piece.len();
        if !is_chunked || piece.is_empty() {
            return Some(piece);
        }
        let line = chunk_size_line(piece.len() as u64, !upload.has_begun);
        upload.has_begun = true;
        return Some(Body::Real([&line[..], &piece.to_bytes()].concat().into()));
    }
    if is_chunked && upload.is_complete {
        let line = chunk_size_line(0, !upload.has_begun);
        // Sent once: what follows has no chunks.
        upload.length = BodyLength::Exactly(0);
        return Some(Body::Real(line.into()));
    }
    None
}

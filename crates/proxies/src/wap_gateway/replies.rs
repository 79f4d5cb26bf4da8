//! Replies on their way out.

use airloom_base::Instant;
use airloom_transports::wsp::wire::Pdu;
use airloom_transports::wsp::{connectionless, status};

use super::content::{self, Treatment, WMLC};
use super::counters;
use super::exchange::{Asker, Exchange, Stage};
use super::fetch::FetchId;
use super::gateway::Gateway;
use super::origins::own_headers;
use super::reply::Reply;

/// Octets of WTP before a reply in one datagram.
const RESULT: usize = 3;

impl Gateway {
    /// The largest reply that the asker of an exchange takes, in octets of the PDU.
    pub(super) fn reply_limit(&self, id: FetchId) -> usize {
        let asked =
            self.exchanges.get(&id).map(|exchange| (exchange.session, exchange.asker, exchange.datagram));
        match asked {
            Some((Some(session), Asker::Session(request), datagram)) => {
                let sdu = self.server.agreed(session).map_or(0, |agreed| agreed.client_sdu as usize);
                let carried = match self.server.segments(request) {
                    true => self.config.message_limit(),
                    false => datagram.saturating_sub(RESULT),
                };
                if sdu == 0 { carried } else { sdu.min(carried) }
            }
            _ => usize::try_from(self.config.connectionless_reply.0).unwrap_or(usize::MAX),
        }
    }

    /// The gateway answers with a status of its own; `why` is for people.
    pub(super) fn refuse(&mut self, now: Instant, id: FetchId, status: u16, why: &str) {
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        exchange.why = Some(why.to_owned());
        let takes_decks = exchange.accept.takes(WMLC);
        let reply = if self.config.smart_errors && takes_decks {
            let body = content::error_deck(&format!("Error {status}"), why);
            Reply { content_type: WMLC.to_owned(), body, ..Reply::bare(200) }
        } else {
            Reply::bare(status)
        };
        self.ready(now, id, reply);
    }

    /// The reply is known; it goes out when it is made.
    pub(super) fn ready(&mut self, now: Instant, id: FetchId, reply: Reply) {
        self.set_held(id, reply.body.len());
        let Some(exchange) = self.exchanges.get_mut(&id) else { return };
        let work = self.config.processing(exchange.origin_octets, exchange.treatment);
        exchange.stage = Stage::Ready(reply);
        if work.is_zero() {
            return self.deliver(now, id);
        }
        self.busy = self.busy.max(now) + work;
        self.set_due(id, Some(self.busy));
    }

    /// Gives the reply to whoever carries it.
    pub(super) fn deliver(&mut self, now: Instant, id: FetchId) {
        let limit = self.reply_limit(id);
        let Some(mut exchange) = self.take(id) else { return };
        let Stage::Ready(reply) = std::mem::replace(&mut exchange.stage, Stage::Waiting) else { return };
        let headers = reply.headers(exchange.version, own_headers(limit));
        let sent = match exchange.asker {
            Asker::Session(request) => {
                let octets = headers.len() + reply.body.len();
                let code = status::encode(reply.status);
                let taken = self.server.reply(now, request, code, headers.into(), reply.body.clone());
                if taken {
                    self.hold(request.peer, octets);
                    self.replying.insert(request, octets);
                }
                taken.then_some(reply)
            }
            Asker::Datagram { peer, tid } => {
                let code = status::encode(reply.status);
                let pdu = Pdu::Reply { status: code, headers: headers.into(), data: reply.body.clone() };
                let whole = connectionless::emit(tid, &pdu);
                if whole.len() <= limit && self.server.validation().may_take_of_host(peer, whole.len()) {
                    self.out.push_back((peer, whole));
                    Some(reply)
                } else {
                    // Whoever asks by single datagrams can be told at least that there is more than one can carry.
                    let short = Reply::bare(413);
                    let headers = short.headers(exchange.version, 0).into();
                    let pdu = Pdu::Reply { status: status::encode(413), headers, data: short.body.clone() };
                    self.out.push_back((peer, connectionless::emit(tid, &pdu)));
                    exchange.treatment = Treatment::None;
                    exchange.why = Some("The reply is too large for one datagram".to_owned());
                    Some(short)
                }
            }
        };
        match sent {
            Some(reply) => self.count(now, &exchange, &reply),
            None => self.counters.abandoned += 1,
        }
    }

    fn count(&mut self, now: Instant, exchange: &Exchange, reply: &Reply) {
        let class = usize::from(reply.status / 100).clamp(1, 5);
        self.counters.replies[class - 1] += 1;
        match exchange.treatment {
            Treatment::None => {}
            Treatment::PassedThrough => self.counters.passed_through += 1,
            Treatment::Compiled => self.counters.compiled += 1,
            Treatment::Converted => self.counters.converted += 1,
        }
        self.counters.client_octets += reply.body.len() as u64;
        let uri = String::from_utf8_lossy(&exchange.uri);
        self.report(counters::Exchange {
            peer: exchange.asker.peer(),
            session: exchange.session,
            method: exchange.method,
            uri: uri.chars().take(1_024).map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect(),
            asked: exchange.asked,
            fetched: exchange.fetched,
            replied: now,
            status: reply.status,
            treatment: exchange.treatment,
            why: exchange.why.clone(),
            // What was kept came from no origin this time.
            origin_octets: exchange.fetched.map_or(0, |_| exchange.origin_octets),
            client_octets: reply.body.len() as u64,
        });
    }
}

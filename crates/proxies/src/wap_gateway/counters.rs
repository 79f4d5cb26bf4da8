//! What the gateway tells of itself.

use std::net::SocketAddr;

use airloom_base::Instant;
use airloom_transports::wtp;

use super::content::Treatment;

/// What was counted since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Of the transactions under the sessions.
    pub wtp: wtp::Counters,
    /// Datagrams without a session that could not be read.
    pub malformed: u64,
    /// Sessions that began.
    pub sessions: u64,
    /// Requests of clients.
    pub requests: u64,
    /// Orders to ask an origin, redirections among them.
    pub fetches: u64,
    /// Redirections that were followed.
    pub redirects: u64,
    /// Replies by class of status, 1xx to 5xx.
    pub replies: [u64; 5],
    /// Requests that ended without a reply: the client or its session was gone.
    pub abandoned: u64,
    /// Bodies that were handed on as they were.
    pub passed_through: u64,
    /// Bodies that were compiled.
    pub compiled: u64,
    /// Web pages that became decks.
    pub converted: u64,
    /// Pages that became several decks.
    pub split: u64,
    /// Decks that were answered from those kept.
    pub kept_decks: u64,
    /// Answers that were used again.
    pub cache_hits: u64,
    /// Octets of origins' bodies, without content coding.
    pub origin_octets: u64,
    /// Octets of bodies to clients.
    pub client_octets: u64,
    /// Datagrams that were not sent because the address was not proven.
    pub unproven: u64,
    /// Pushes that were sent.
    pub pushes: u64,
    /// Pushes that clients have confirmed.
    pub pushes_confirmed: u64,
    /// Pushes that came to nothing: refused, expired, taken back.
    pub pushes_failed: u64,
    /// Requests to clients to open a session.
    pub initiations: u64,
    /// Result notifications that initiators have taken.
    pub notices: u64,
    /// Those that they have not.
    pub notices_failed: u64,
}

/// One request and what became of it: a line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// The client.
    pub peer: SocketAddr,
    /// Its session; none without one.
    pub session: Option<u32>,
    /// The method's name; empty for one without a name.
    pub method: &'static str,
    /// The address as the client wrote it, what is not visible replaced.
    pub uri: String,
    /// When the request was complete.
    pub asked: Instant,
    /// When the last octet of the origin came; none if no origin answered.
    pub fetched: Option<Instant>,
    /// When the reply was given to the transaction.
    pub replied: Instant,
    /// Status to the client, of HTTP.
    pub status: u16,
    /// What happened to the body.
    pub treatment: Treatment,
    /// Why the gateway answered itself; none for an origin's answer.
    pub why: Option<String>,
    /// Octets of the origin's body, without content coding; none of what was kept.
    pub origin_octets: u64,
    /// Octets of the body to the client.
    pub client_octets: u64,
}

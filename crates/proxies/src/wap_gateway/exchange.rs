//! One request of a client, from when it is complete until the reply is given away.

use std::net::SocketAddr;

use airloom_base::Instant;
use airloom_content::http::message::Fields;
use airloom_transports::wsp::headers::Version;
use airloom_transports::wsp::server::SessionId;
use airloom_transports::wtp::Transaction;
use bytes::Bytes;

use super::accept::Weights;
use super::body::Incoming;
use super::content::Treatment;
use super::decks::Owner;
use super::fetch::FetchRequest;
use super::reply::Reply;

/// Who waits for the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Asker {
    /// A session.
    Session(Transaction),
    /// A client without one.
    Datagram {
        peer: SocketAddr,
        /// The octet that the reply repeats.
        tid: u8,
    },
}

impl Asker {
    pub(super) fn peer(self) -> SocketAddr {
        match self {
            Asker::Session(request) => request.peer,
            Asker::Datagram { peer, .. } => peer,
        }
    }
}

/// Where it stands.
#[derive(Debug)]
pub(super) enum Stage {
    /// Nothing was asked of an origin, or no head has come yet.
    Waiting,
    /// The head has come, and the body comes.
    Receiving {
        status: u16,
        fields: Fields,
        /// None if the answer has no body.
        body: Option<Incoming>,
    },
    /// The reply is made, or being made until its time.
    Ready(Reply),
}

/// The request.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) asker: Asker,
    pub(super) session: Option<SessionId>,
    pub(super) method: &'static str,
    pub(super) uri: Bytes,
    pub(super) asked: Instant,
    pub(super) stage: Stage,
    /// What is asked of the origin, without our cookies; none if the request could not be mapped.
    pub(super) request: Option<FetchRequest>,
    pub(super) accept: Weights,
    pub(super) charsets: Weights,
    pub(super) afresh: bool,
    /// The origin was told who asks.
    pub(super) is_private: bool,
    pub(super) version: Version,
    /// Octets of a datagram to its asker, at most.
    pub(super) datagram: usize,
    /// An order is out.
    pub(super) fetching: bool,
    pub(super) redirects: u8,
    /// Its moment in the agenda.
    pub(super) due: Option<Instant>,
    /// Octets counted as held.
    pub(super) held: usize,
    pub(super) fetched: Option<Instant>,
    /// Of the body that the reply is made of, be it kept.
    pub(super) origin_octets: u64,
    pub(super) treatment: Treatment,
    /// Why the gateway answers itself, for people.
    pub(super) why: Option<String>,
}

impl Exchange {
    pub(super) fn owner(&self) -> Owner {
        match self.session {
            Some(session) => Owner::Session(session),
            None => Owner::Peer(self.asker.peer()),
        }
    }
}

//! The client's half of connection-oriented WSP (WAP-230 section 7.1, client tables): one session, its requests, and the
//! pushes that come.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use airloom_base::Instant;
use bytes::Bytes;
use delegate::delegate;

use super::address::Address;
use super::capabilities::{Agreed, Capability, option};
use super::status::Reason;
use super::wire::{Method, Pdu, VERSION};
use crate::wtp::wire::{Abort, Class};
use crate::wtp::{self, Indication, Provider, Role, Transaction};

/// Something for the client's user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// S-Connect.cnf: the session is open, with headers of the server.
    Connected(Bytes),
    /// S-Connect.cnf: others are to be asked.
    Redirected {
        /// For good?
        permanent: bool,
        /// Where.
        addresses: Vec<Address>,
    },
    /// S-MethodResult.ind: the reply to a request.
    Reply {
        /// To which one.
        request: Transaction,
        /// Status in its octet: see `status`.
        status: u8,
        /// Content type, then headers.
        headers: Bytes,
        /// Body.
        data: Bytes,
    },
    /// S-MethodAbort.ind.
    RequestAborted(Transaction, Reason),
    /// S-Push.ind, and S-ConfirmedPush.ind: then it has a name, for `confirm` or `refuse`.
    Push {
        /// Its name, if it is to be confirmed.
        push: Option<Transaction>,
        /// Content type, then headers.
        headers: Bytes,
        /// Body.
        data: Bytes,
    },
    /// S-Resume.cnf.
    Resumed,
    /// S-Disconnect.ind: there is no session any more, or none came about.
    Disconnected(Reason),
}

/// States of a session, with the standard's names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// None.
    #[default]
    Null,
    /// It was asked for.
    Connecting,
    /// It is open.
    Connected,
    /// It rests.
    Suspended,
    /// It was asked to go on.
    Resuming,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Connect,
    Resume,
    Request,
}

/// One client. Feed it, then take all of `poll_event` and `poll_transmit`, then look at `poll_timeout`.
#[derive(getset::Getters, getset::CopyGetters)]
pub struct Client {
    wtp: Provider,
    server: SocketAddr,
    /// State of the session.
    #[getset(get_copy = "pub")]
    state: State,
    session: u32,
    asked: Vec<Capability>,
    /// What the session goes by.
    #[getset(get = "pub")]
    agreed: Agreed,
    acknowledging: Acknowledging,
    purposes: BTreeMap<Transaction, Purpose>,
    events: VecDeque<Event>,
}

/// When replies are acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Acknowledging {
    /// At once, and the other side is told that it is the user who does it (U/P).
    #[default]
    User,
    /// At once, without a word that it is the user.
    AtOnce,
    /// When WTP's interval for that has passed (`ack_long`): the reply may be repeated meanwhile.
    Delayed,
}

impl Client {
    /// Of this server; `first` is the number of the first transaction.
    pub fn new(config: wtp::Config, server: SocketAddr, first: u16) -> Client {
        Client {
            wtp: Provider::new(config, first),
            server,
            state: State::Null,
            session: 0,
            asked: Vec::new(),
            agreed: Agreed::default(),
            acknowledging: Acknowledging::default(),
            purposes: BTreeMap::new(),
            events: VecDeque::new(),
        }
    }

    /// The same, but it acknowledges replies in this way.
    #[must_use]
    pub fn with_acknowledging(self, acknowledging: Acknowledging) -> Client {
        Client { acknowledging, ..self }
    }

    delegate! {
        to self.wtp {
            /// The next datagram, and where to.
            pub fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)>;
            /// When to call `handle_timeout`.
            pub fn poll_timeout(&self) -> Option<Instant>;
            /// What WTP counted.
            pub fn counters(&self) -> wtp::Counters;
        }
    }

    /// The next thing for the user.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// That moment has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.wtp.handle_timeout(now);
        self.settle(now);
    }

    /// A datagram arrived.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &Bytes) {
        self.wtp.handle_datagram(now, from, datagram);
        self.settle(now);
    }

    /// S-Connect.req. A session that is open is forgotten.
    pub fn connect(&mut self, now: Instant, capabilities: Vec<Capability>, headers: Bytes) {
        self.end_requests(now, Reason::Disconnect);
        self.asked.clone_from(&capabilities);
        self.agreed = Agreed::default();
        self.state = State::Connecting;
        let connect = Pdu::Connect { version: VERSION, capabilities, headers };
        self.begin(now, Purpose::Connect, &connect);
    }

    /// S-MethodInvoke.req. `None` if there is no session, or as many requests as agreed are outstanding, or the server
    /// does not take so much.
    pub fn request(
        &mut self,
        now: Instant,
        method: Method,
        uri: Bytes,
        headers: Bytes,
        data: Bytes,
    ) -> Option<Transaction> {
        let outstanding = self.purposes.values().filter(|p| **p == Purpose::Request).count();
        if self.state != State::Connected || outstanding >= usize::from(self.agreed.method_mor) {
            return None;
        }
        let pdu = match method.has_body() {
            true => Pdu::Post { method, uri, headers, data },
            false => Pdu::Get { method, uri, headers },
        };
        let limit = self.agreed.server_sdu as usize;
        (limit == 0 || pdu.to_bytes().len() <= limit).then(|| self.begin(now, Purpose::Request, &pdu))?
    }

    /// S-MethodAbort.req.
    pub fn abort(&mut self, now: Instant, request: Transaction) {
        if self.purposes.remove(&request).is_some() {
            self.wtp.abort(now, request, Reason::PeerRequest.code());
        }
    }

    /// S-ConfirmedPush.res.
    pub fn confirm(&mut self, now: Instant, push: Transaction) {
        self.wtp.accept(now, push);
    }

    /// S-PushAbort.req.
    pub fn refuse(&mut self, now: Instant, push: Transaction, reason: Reason) {
        self.wtp.abort(now, push, reason.code());
    }

    /// S-Suspend.req. Without the option there is nothing to suspend.
    pub fn suspend(&mut self, now: Instant) {
        if self.state == State::Connected && self.agreed.has(option::SESSION_RESUME) {
            self.end_requests(now, Reason::Suspend);
            self.state = State::Suspended;
            self.tell(now, &Pdu::Suspend { session: self.session });
        }
    }

    /// S-Resume.req, from whatever address we have now.
    pub fn resume(&mut self, now: Instant) {
        if matches!(self.state, State::Connected | State::Suspended) {
            self.end_requests(now, Reason::Resume);
            self.state = State::Resuming;
            let session = self.session;
            let resume = Pdu::Resume { session, capabilities: Vec::new(), headers: Bytes::new() };
            self.begin(now, Purpose::Resume, &resume);
        }
    }

    /// S-Disconnect.req.
    pub fn disconnect(&mut self, now: Instant) {
        self.end_requests(now, Reason::Disconnect);
        if matches!(self.state, State::Connected | State::Suspended) {
            self.tell(now, &Pdu::Disconnect { session: self.session });
        }
        self.state = State::Null;
    }

    fn begin(&mut self, now: Instant, purpose: Purpose, pdu: &Pdu) -> Option<Transaction> {
        let user_ack = self.acknowledging == Acknowledging::User;
        let transaction = self.wtp.invoke(now, self.server, Class::WithResult, user_ack, pdu.to_bytes());
        match transaction {
            Some(transaction) => {
                self.purposes.insert(transaction, purpose);
            }
            None if purpose != Purpose::Request => self.lose(now, Reason::MruExceeded),
            None => {}
        }
        transaction
    }

    fn tell(&mut self, now: Instant, pdu: &Pdu) {
        self.wtp.invoke(now, self.server, Class::Unreliable, false, pdu.to_bytes());
    }

    fn settle(&mut self, now: Instant) {
        while let Some(wtp::Event { transaction, what }) = self.wtp.poll_event() {
            match what {
                Indication::Result(message) => self.result(now, transaction, &message),
                Indication::Aborted(why) => self.aborted(now, transaction, why),
                Indication::Invoke { class, message, .. } => self.invoked(now, transaction, class, &message),
                Indication::InvokeConfirmed | Indication::ResultConfirmed => {}
            }
        }
    }

    fn result(&mut self, now: Instant, transaction: Transaction, message: &Bytes) {
        let Some(purpose) = self.purposes.get(&transaction).copied() else {
            return self.wtp.abort(now, transaction, Reason::PeerRequest.code());
        };
        match (purpose, Pdu::parse(message)) {
            (Purpose::Connect, Ok(Pdu::ConnectReply { session, capabilities, headers })) => {
                self.session = session;
                self.agreed = Agreed::after(&self.asked, &capabilities);
                self.state = State::Connected;
                self.events.push_back(Event::Connected(headers));
            }
            (Purpose::Connect, Ok(Pdu::Redirect { permanent, addresses, .. })) => {
                self.state = State::Null;
                self.events.push_back(Event::Redirected { permanent, addresses });
            }
            (Purpose::Resume, Ok(Pdu::Reply { status, .. })) if status >> 4 == 2 => {
                self.state = State::Connected;
                self.events.push_back(Event::Resumed);
            }
            (Purpose::Request, Ok(Pdu::Reply { status, headers, data })) => {
                self.events.push_back(Event::Reply { request: transaction, status, headers, data });
            }
            _ => {
                self.wtp.abort(now, transaction, Reason::ProtocolError.code());
                return self.failed(now, transaction, Reason::ProtocolError);
            }
        }
        self.purposes.remove(&transaction);
        if self.acknowledging != Acknowledging::Delayed {
            self.wtp.acknowledge(now, transaction);
        }
    }

    fn aborted(&mut self, now: Instant, transaction: Transaction, why: Abort) {
        let reason = match why {
            Abort::User(code) => Reason::of(code),
            Abort::Provider(wtp::wire::Reason::NoResponse) => Reason::NetworkError,
            Abort::Provider(_) => Reason::ProtocolError,
        };
        self.failed(now, transaction, reason);
    }

    fn failed(&mut self, now: Instant, transaction: Transaction, reason: Reason) {
        match self.purposes.remove(&transaction) {
            Some(Purpose::Connect | Purpose::Resume) => self.lose(now, reason),
            Some(Purpose::Request) => {
                self.events.push_back(Event::RequestAborted(transaction, reason));
                if reason == Reason::Disconnect {
                    // The server knows no session of ours.
                    self.lose(now, reason);
                }
            }
            None => {}
        }
    }

    fn invoked(&mut self, now: Instant, transaction: Transaction, class: Class, message: &Bytes) {
        let from_server = transaction.peer == self.server && transaction.role == Role::Responder;
        match (class, Pdu::parse(message)) {
            (Class::Unreliable, Ok(Pdu::Disconnect { session }))
                if from_server && session == self.session =>
            {
                // While another session is asked for, the last one's end is old news.
                if !matches!(self.state, State::Null | State::Connecting) {
                    self.lose(now, Reason::Disconnect);
                }
            }
            (Class::Unreliable, Ok(Pdu::Push { confirmed: false, headers, data }))
                if from_server && self.state == State::Connected =>
            {
                self.events.push_back(Event::Push { push: None, headers, data });
            }
            (Class::Reliable, Ok(Pdu::Push { confirmed: true, headers, data }))
                if from_server && self.state == State::Connected =>
            {
                self.events.push_back(Event::Push { push: Some(transaction), headers, data });
            }
            (Class::Unreliable, _) => {}
            (_, Ok(Pdu::Push { .. })) => {
                self.wtp.abort(now, transaction, Reason::Disconnect.code());
            }
            _ => self.wtp.abort(now, transaction, Reason::ProtocolError.code()),
        }
    }

    /// The session is gone.
    fn lose(&mut self, now: Instant, reason: Reason) {
        self.state = State::Null;
        self.end_requests(now, Reason::Disconnect);
        self.events.push_back(Event::Disconnected(reason));
    }

    /// Aborts all that is outstanding.
    fn end_requests(&mut self, now: Instant, reason: Reason) {
        for (transaction, purpose) in std::mem::take(&mut self.purposes) {
            self.wtp.abort(now, transaction, reason.code());
            if purpose == Purpose::Request {
                self.events.push_back(Event::RequestAborted(transaction, reason));
            }
        }
    }
}

//! One end of WTP: all transactions of a local address and port.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use airloom_base::Instant;
use bytes::Bytes;

use super::config::Config;
use super::counters::Counters;
use super::initiator::{self, Initiator};
use super::responder::Responder;
use super::sar::{Cut, Sending};
use super::tid::{Cache, Counter, Verdict};
use super::transfer::{Act, Head, Indication};
use super::validation::Validation;
use super::wire::{self, Abort, Class, Error, Kind, OptionItem, Pdu, RESPONDER, Reason, Tpi};
use crate::shares::{Room, Shares};

/// Who began a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// We did.
    Initiator,
    /// The peer did.
    Responder,
}

/// The name of a transaction. Plain data; a name whose transaction is over is recognised and ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Transaction {
    /// Who began it.
    pub role: Role,
    /// The peer.
    pub peer: SocketAddr,
    /// Its number, 15 bits.
    pub tid: u16,
}

/// Something for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Of which transaction.
    pub transaction: Transaction,
    /// What happened.
    pub what: Indication,
}

#[derive(Debug)]
enum Machine {
    Initiator(Initiator),
    Responder(Responder),
}

impl Machine {
    fn deadline(&self) -> Option<Instant> {
        match self {
            Machine::Initiator(i) => i.deadline(),
            Machine::Responder(r) => r.deadline(),
        }
    }
    fn held(&self) -> usize {
        match self {
            Machine::Initiator(i) => i.held(),
            Machine::Responder(r) => r.held(),
        }
    }
    fn is_over(&self) -> bool {
        match self {
            Machine::Initiator(i) => i.state() == initiator::State::Null,
            Machine::Responder(r) => r.is_over(),
        }
    }
}

struct Entry {
    machine: Machine,
    /// The deadline that stands in the agenda.
    entered: Option<Instant>,
    /// Octets counted as held.
    held: usize,
    /// Something was not sent, since it might not be.
    withheld: bool,
}

/// Which transaction goes first when there is no room: one of which the user has not heard, then one whose peer may not be there.
const UNHEARD: u8 = 0;
const UNPROVEN: u8 = 1;

/// A provider of transactions. Feed it, then take all of `poll_event` and `poll_transmit`, then look at `poll_timeout`.
#[derive(getset::Getters, getset::CopyGetters)]
pub struct Provider {
    config: Config,
    counter: Counter,
    cache: Cache,
    places: BTreeMap<Transaction, Entry>,
    agenda: BTreeSet<(Instant, Transaction)>,
    /// Transactions that others began.
    shares: Shares<Transaction>,
    /// What may be sent to whom.
    #[getset(get = "pub")]
    validation: Validation,
    /// Octets of incomplete messages.
    held: usize,
    out: VecDeque<(SocketAddr, Bytes)>,
    events: VecDeque<Event>,
    /// What was counted.
    #[getset(get_copy = "pub")]
    counters: Counters,
}

impl Provider {
    /// With `first` as the first number of transactions that begin here.
    pub fn new(config: Config, first: u16) -> Provider {
        let cache = Cache::new(config.max_peers, config.verify_unknown);
        Provider {
            config,
            counter: Counter::new(first),
            cache,
            places: BTreeMap::new(),
            agenda: BTreeSet::new(),
            shares: Shares::default(),
            validation: Validation::off(),
            held: 0,
            out: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// The same, but peers are not sent more than these books allow.
    #[must_use]
    pub fn with_validation(self, validation: Validation) -> Provider {
        Provider { validation, ..self }
    }

    /// The same, to count what goes another way.
    pub fn validation_mut(&mut self) -> &mut Validation {
        &mut self.validation
    }

    /// The next datagram, and where to.
    pub fn poll_transmit(&mut self) -> Option<(SocketAddr, Bytes)> {
        self.out.pop_front()
    }

    /// The next thing for the user.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`Provider::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.agenda.first().map(|(at, _)| *at)
    }

    /// Transactions that are remembered.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Is none remembered?
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// TR-Invoke.req. `None` if the message has more packets than can be numbered, or all numbers are in use. A
    /// transaction of class 0 is over at once; its message must fit into one datagram.
    pub fn invoke(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        class: Class,
        user_ack: bool,
        message: Bytes,
    ) -> Option<Transaction> {
        let config = &self.config;
        let maximum_group = config.maximum_group.map(|octets| octets.0.min(u64::from(u32::MAX)) as u32);
        let sar = config.sar && class != Class::Unreliable;
        let cut = Cut { segment: config.segment.0 as usize, group: usize::from(config.group_packets), sar };
        let message = Sending::new(message, cut)?;
        let tid = (0..RESPONDER)
            .map(|_| self.counter.take())
            .find(|tid| !self.places.contains_key(&Transaction { role: Role::Initiator, peer, tid: *tid }))?;
        let transaction = Transaction { role: Role::Initiator, peer, tid };
        let maximum_group = maximum_group.filter(|_| class == Class::WithResult);
        let head = Head::Invoke { tid_new: false, user_ack, class, maximum_group };
        self.act(now, transaction, |machine, act| {
            let initiator = Initiator::invoke(tid, head, message, act);
            *machine = (class != Class::Unreliable).then_some(Machine::Initiator(initiator));
        });
        Some(transaction)
    }

    /// TR-Invoke.res: the user has taken the Invoke of a peer.
    pub fn accept(&mut self, now: Instant, transaction: Transaction) {
        self.act_on_responder(now, transaction, Responder::accept);
    }

    /// TR-Result.req: the result of a transaction of class 2 that a peer began.
    pub fn result(&mut self, now: Instant, transaction: Transaction, message: Bytes) {
        self.act_on_responder(now, transaction, |responder, act| responder.result(message, act));
    }

    /// TR-Result.res: the user has taken the result of a transaction that we began.
    pub fn acknowledge(&mut self, now: Instant, transaction: Transaction) {
        self.act(now, transaction, |machine, act| {
            if let Some(Machine::Initiator(initiator)) = machine {
                initiator.acknowledge(act);
            }
        });
    }

    /// Does the result of a transaction that a peer began go in several packets, if one is too small for it?
    pub fn segments(&self, transaction: Transaction) -> bool {
        match self.places.get(&transaction).map(|place| &place.machine) {
            Some(Machine::Responder(responder)) => responder.segments(&self.config),
            Some(Machine::Initiator(_)) | None => self.config.sar,
        }
    }

    /// TR-Abort.req, with a code of the layer above.
    pub fn abort(&mut self, now: Instant, transaction: Transaction, code: u8) {
        self.act(now, transaction, |machine, act| match machine {
            Some(Machine::Initiator(initiator)) => initiator.abort(code, act),
            Some(Machine::Responder(responder)) => responder.abort(Abort::User(code), act),
            None => {}
        });
    }

    /// A datagram arrived.
    pub fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &Bytes) {
        self.validation.received(from, datagram.len());
        for pdu in wire::split(datagram) {
            match pdu {
                Ok(pdu) => self.handle_pdu(now, from, pdu),
                Err(error) => {
                    self.counters.malformed += 1;
                    if let Error::Malformed(tid) = error {
                        self.protocol_error(now, from, tid);
                    }
                }
            }
        }
    }

    /// A PDU that contradicts itself ends its transaction.
    fn protocol_error(&mut self, now: Instant, from: SocketAddr, tid: u16) {
        let reason = Abort::Provider(Reason::ProtocolError);
        let transaction = Transaction { role: Role::Responder, peer: from, tid: tid & !RESPONDER };
        if tid & RESPONDER == 0 && self.places.contains_key(&transaction) {
            self.act_on_responder(now, transaction, |responder, act| {
                act.told.push(Indication::Aborted(reason));
                responder.abort(reason, act);
            });
        } else {
            self.send(from, &Pdu::new(tid ^ RESPONDER, false, Kind::Abort(reason)));
        }
    }

    fn handle_pdu(&mut self, now: Instant, from: SocketAddr, pdu: Pdu) {
        let role = if pdu.tid & RESPONDER == 0 { Role::Responder } else { Role::Initiator };
        let transaction = Transaction { role, peer: from, tid: pdu.tid & !RESPONDER };
        if self.places.contains_key(&transaction) {
            self.make_room(now, &transaction, pdu.data_len());
            let room = self.room(&transaction);
            return self.act(now, transaction, |machine, act| match machine {
                Some(Machine::Initiator(initiator)) => initiator.handle(pdu, room, act),
                Some(Machine::Responder(responder)) => responder.handle(pdu, room, act),
                None => {}
            });
        }
        match (role, &pdu.kind) {
            (Role::Responder, Kind::Invoke { .. }) => self.begin(now, transaction, pdu),
            // We asked whether this transaction is the peer's: whatever it says, it was asked.
            (
                Role::Responder,
                Kind::Abort(Abort::Provider(Reason::InvalidTid)) | Kind::Ack { verify: true },
            ) if self.validation.answered(from, transaction.tid) => {
                self.send_withheld(now, from);
            }
            // Not ours: the responder asks whether it is.
            (Role::Initiator, Kind::Ack { verify: true }) => {
                let no = Kind::Abort(Abort::Provider(Reason::InvalidTid));
                self.send(from, &Pdu::new(transaction.tid, false, no));
            }
            _ => self.counters.strays += 1,
        }
    }

    /// This peer may be sent more.
    fn send_withheld(&mut self, now: Instant, peer: SocketAddr) {
        let of_peer = |tid| Transaction { role: Role::Responder, peer, tid };
        let all: Vec<Transaction> =
            self.places.range(of_peer(0)..=of_peer(u16::MAX)).map(|(transaction, _)| *transaction).collect();
        for transaction in all {
            self.act_on_responder(now, transaction, |responder, act| {
                if std::mem::take(act.withheld) {
                    responder.send_withheld(act);
                }
            });
        }
    }

    /// Ends the oldest incomplete messages of others until so many octets more can be held.
    fn make_room(&mut self, now: Instant, transaction: &Transaction, more: usize) {
        while (self.held + more) as u64 > self.config.reassembly_limit.0
            && let Some(oldest) = self.shares.first().filter(|oldest| oldest != transaction)
        {
            self.displace(now, oldest);
        }
    }

    /// A transaction makes room for another one.
    fn displace(&mut self, now: Instant, transaction: Transaction) {
        self.counters.displaced += 1;
        let why = Abort::Provider(Reason::CapacityExceeded);
        self.act_on_responder(now, transaction, |responder, act| {
            if responder.user_knows() {
                act.told.push(Indication::Aborted(why));
            }
            responder.abort(why, act);
        });
    }

    /// Octets that the incomplete message of this transaction may have.
    fn room(&self, transaction: &Transaction) -> usize {
        let own = self.places.get(transaction).map_or(0, |place| place.held);
        let others = self.held - own;
        let all = (self.config.reassembly_limit.0 as usize).saturating_sub(others);
        all.min(self.config.message_limit.0 as usize)
    }

    /// A peer begins a transaction.
    fn begin(&mut self, now: Instant, transaction: Transaction, mut pdu: Pdu) {
        let Transaction { peer, tid, .. } = transaction;
        let Kind::Invoke { version, tid_new, class, trailer, user_ack, data } = &mut pdu.kind else { return };
        let refuse = |reason| Pdu::new(tid | RESPONDER, false, Kind::Abort(Abort::Provider(reason)));
        if *version != 0 {
            return self.send(peer, &refuse(Reason::VersionZero));
        }
        if *class == Class::Unreliable {
            // A message in several packets needs acknowledgements, which class 0 has not.
            if trailer.ends_message() {
                let (class, user_ack, message) = (*class, *user_ack, std::mem::take(data));
                let what = Indication::Invoke { class, user_ack, message };
                self.events.push_back(Event { transaction, what });
            } else {
                self.counters.strays += 1;
            }
            return;
        }
        let Config { max_transactions_of_address, max_transactions, .. } = self.config;
        match self.shares.room(peer.ip(), max_transactions_of_address, max_transactions) {
            Room::Free => {}
            Room::Without(oldest) => self.displace(now, oldest),
            Room::None => {
                self.counters.refused += 1;
                return self.send(peer, &refuse(Reason::CapacityExceeded));
            }
        }
        self.make_room(now, &transaction, data.len());
        let no_cached_tid = pdu.items.contains(&Tpi::Option(OptionItem::NoCachedTid));
        let verify = self.cache.test(peer, tid, *tid_new, no_cached_tid) == Verdict::Verify;
        self.counters.verified += u64::from(verify);
        let Some(mut responder) = Responder::new(&pdu, verify) else { return };
        let room = self.room(&transaction);
        self.act(now, transaction, |machine, act| {
            responder.handle(pdu, room, act);
            *machine = Some(Machine::Responder(responder));
        });
    }

    /// Everything whose moment has come.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((_, transaction)) = self.agenda.first().copied().filter(|(at, _)| *at <= now) {
            self.act(now, transaction, |machine, act| match machine {
                Some(Machine::Initiator(initiator)) => initiator.handle_timeout(act),
                Some(Machine::Responder(responder)) => responder.handle_timeout(act),
                None => {}
            });
        }
    }

    fn act_on_responder(
        &mut self,
        now: Instant,
        transaction: Transaction,
        f: impl FnOnce(&mut Responder, &mut Act),
    ) {
        self.act(now, transaction, |machine, act| {
            if let Some(Machine::Responder(responder)) = machine {
                f(responder, act);
            }
        });
    }

    fn send(&mut self, to: SocketAddr, pdu: &Pdu) {
        let octets = pdu.to_bytes();
        if self.validation.take(to, octets.len()) {
            self.counters.sent += 1;
            self.out.push_back((to, octets));
        } else {
            self.counters.withheld += 1;
        }
    }

    /// Lets `f` act on a transaction, takes over what it sends and tells, and keeps the books: the agenda, octets held,
    /// what was verified, what is over.
    fn act(
        &mut self,
        now: Instant,
        transaction: Transaction,
        f: impl FnOnce(&mut Option<Machine>, &mut Act),
    ) {
        let place = self.places.remove(&transaction);
        let (mut machine, entered, held, mut withheld) =
            place.map_or((None, None, 0, false), |p| (Some(p.machine), p.entered, p.held, p.withheld));
        let was_unverified = machine.as_ref().is_some_and(is_unverified);
        let existed = machine.is_some();
        let (mut out, mut told) = (Vec::new(), Vec::new());
        let (config, counters, peer) = (&self.config, &mut self.counters, transaction.peer);
        let (validation, withheld_now) = (&mut self.validation, &mut withheld);
        let mut act = Act {
            now,
            config,
            counters,
            peer,
            validation,
            withheld: withheld_now,
            out: &mut out,
            told: &mut told,
        };
        f(&mut machine, &mut act);
        self.out.extend(out.into_iter().map(|pdu| (transaction.peer, pdu)));
        self.events.extend(told.into_iter().map(|what| Event { transaction, what }));
        if let Some(at) = entered {
            self.agenda.remove(&(at, transaction));
        }
        self.held -= held;
        let Some(machine) = machine.filter(|m| !m.is_over()) else {
            self.shares.remove(transaction);
            return;
        };
        if let Machine::Responder(responder) = &machine {
            let rank = match (responder.user_knows(), self.validation.is_known(peer)) {
                (false, _) => Some(UNHEARD),
                (true, false) => Some(UNPROVEN),
                (true, true) => None,
            };
            if existed {
                self.shares.set_rank(transaction, rank);
            } else {
                self.shares.insert(transaction, peer.ip(), rank);
            }
            if was_unverified && !is_unverified(&machine) {
                self.cache.verified(peer, transaction.tid, responder.tid_new());
            }
        }
        let (held, entered) = (machine.held(), machine.deadline());
        self.held += held;
        if let Some(at) = entered {
            self.agenda.insert((at, transaction));
        }
        self.places.insert(transaction, Entry { machine, entered, held, withheld });
    }
}

fn is_unverified(machine: &Machine) -> bool {
    matches!(machine, Machine::Responder(r) if r.state() == super::responder::State::TidOkWait)
}

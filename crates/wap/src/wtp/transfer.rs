//! The sending of one message: groups, their acknowledgements and repetitions, the same for Invoke and Result; and what its
//! receiver says to that.

use std::net::SocketAddr;

use airloom_base::timer::Timer;
use airloom_base::{Duration, Instant};
use bytes::Bytes;

use super::config::Config;
use super::counters::Counters;
use super::sar::{Received, Receiving, Segment, Sending};
use super::validation::{Validation, headers};
use super::wire::{Abort, Class, Kind, OptionItem, Pdu, RESPONDER, Reason, Tpi};

/// What a transaction may do when it is fed: send PDUs to its peer and tell its user.
pub struct Act<'a> {
    /// The moment.
    pub now: Instant,
    /// Settings of the provider.
    pub config: &'a Config,
    /// What the provider counts.
    pub counters: &'a mut Counters,
    /// The peer.
    pub peer: SocketAddr,
    /// What may be sent to it.
    pub validation: &'a mut Validation,
    /// Something was not sent, since it may not be.
    pub withheld: &'a mut bool,
    /// PDUs for the peer, in order.
    pub out: &'a mut Vec<Bytes>,
    /// What the user hears, in order.
    pub told: &'a mut Vec<Indication>,
}

impl Act<'_> {
    /// Sends a PDU, if the peer may be sent as much.
    pub fn send(&mut self, pdu: &Pdu) {
        let octets = pdu.to_bytes();
        if !self.validation.take(self.peer, octets.len()) {
            self.counters.withheld += 1;
            *self.withheld = true;
            return;
        }
        self.counters.sent += 1;
        self.counters.resent += u64::from(pdu.repeated);
        self.out.push(octets);
    }

    /// Asks the peer about a transaction that it does not have, if it has to show that it is there, beside packets of so many octets.
    fn ask_whether_it_is_there(&mut self, octets: usize) {
        let last = headers(self.peer) + HEAD + octets as u64;
        if let Some(tid) = self.validation.question(self.now, self.peer, last) {
            self.send(&Pdu::new(tid | RESPONDER, false, Kind::Ack { verify: true }));
        }
    }

    /// Sends an acknowledgement, of the packet `psn` of a message with several.
    pub fn acknowledge(&mut self, tid: u16, psn: Option<u8>, repeated: bool) {
        let items = psn.map(Tpi::Psn).into_iter().collect();
        self.send(&Pdu { tid, repeated, kind: Kind::Ack { verify: false }, items });
    }

    /// Tells the peer that it is over, and the user too.
    pub fn abort(&mut self, tid: u16, reason: Reason) {
        let why = Abort::Provider(reason);
        self.send(&Pdu::new(tid, false, Kind::Abort(why)));
        self.told.push(Indication::Aborted(why));
    }
}

/// What a user hears of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Indication {
    /// TR-Invoke.ind: a peer began it.
    Invoke {
        /// Class.
        class: Class,
        /// Does the peer want the user to acknowledge?
        user_ack: bool,
        /// The message.
        message: Bytes,
    },
    /// TR-Invoke.cnf: the Invoke has arrived.
    InvokeConfirmed,
    /// TR-Result.ind: the result.
    Result(Bytes),
    /// TR-Result.cnf: the result has arrived.
    ResultConfirmed,
    /// TR-Abort.ind: it is over.
    Aborted(Abort),
}

/// Which PDU a message begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Head {
    /// An Invoke.
    Invoke {
        /// The initiator counts anew.
        tid_new: bool,
        /// The user has to acknowledge.
        user_ack: bool,
        /// Class.
        class: Class,
        /// Octets of a group that we take.
        maximum_group: Option<u32>,
    },
    /// A Result.
    Result,
}

/// What an acknowledgement meant for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing: it was about something else.
    None,
    /// The next group is under way.
    NextGroup,
    /// All of the message has arrived.
    Done,
    /// It names what nobody has received as the end of a group: whoever says so has seen nothing of it.
    Forged,
}

/// A message under way.
#[derive(Debug)]
pub struct Transfer {
    head: Head,
    tid: u16,
    sending: Sending,
    /// RCR: repetitions of the group that is outstanding.
    repetitions: u8,
    /// Lengths of the group that is outstanding that were as likely.
    choices: u32,
}

/// Octets of a PDU before its part of a message.
const HEAD: u64 = 4;

impl Transfer {
    /// Sends the first group. `tid` is the number of the transaction without a direction.
    pub fn begin(head: Head, tid: u16, sending: Sending, act: &mut Act) -> Transfer {
        let tid = if head == Head::Result { tid | RESPONDER } else { tid };
        let mut transfer = Transfer { head, tid, sending, repetitions: 0, choices: 1 };
        transfer.open_group(act);
        transfer
    }

    /// Decides how long the next group is, and sends it. What the peer may not be sent as a whole it gets in small groups, whose ends only
    /// somebody can name who receives them.
    fn open_group(&mut self, act: &mut Act) {
        self.choices = 1;
        // Groups of somebody who has shown nothing stay unknowable until all of the rest is allowed.
        let whole = if act.validation.is_proven(act.peer) {
            self.octets(act.peer)
        } else {
            let (octets, packets) = self.sending.rest();
            octets as u64 + (headers(act.peer) + HEAD) * packets as u64
        };
        if self.head == Head::Result
            && act.validation.allowance(act.peer).is_some_and(|most| most < whole)
            && let Some(group) = act.validation.group(act.peer)
        {
            let segment = group.octets.saturating_sub(headers(act.peer) + HEAD) as usize;
            if self.sending.shape(group.packets, segment.min(act.config.segment.0 as usize)) {
                self.choices = group.choices;
            }
        }
        self.send_group(act);
    }

    /// Octets of the group that is outstanding, with all headers.
    fn octets(&self, peer: SocketAddr) -> u64 {
        self.sending.octets() as u64 + (headers(peer) + HEAD) * self.sending.packets().len() as u64
    }

    /// Sends the group that is outstanding.
    pub fn send_group(&self, act: &mut Act) {
        for segment in self.sending.group() {
            act.send(&self.pdu(segment, false));
        }
        if self.head == Head::Result {
            act.ask_whether_it_is_there(self.sending.last().data.len());
        }
    }

    /// Has the message more than one packet?
    pub fn is_segmented(&self) -> bool {
        self.sending.is_segmented()
    }

    fn pdu(&self, segment: Segment, repeated: bool) -> Pdu {
        let Segment { psn, trailer, data } = segment;
        let mut items = Vec::new();
        let kind = match (self.head, psn) {
            (Head::Invoke { tid_new, user_ack, class, maximum_group }, 0) => {
                items.extend(maximum_group.map(|octets| Tpi::Option(OptionItem::MaximumGroup(octets))));
                Kind::Invoke { trailer, version: 0, tid_new, user_ack, class, data }
            }
            (Head::Invoke { .. }, _) => Kind::SegmentedInvoke { trailer, psn, data },
            (Head::Result, 0) => Kind::Result { trailer, data },
            (Head::Result, _) => Kind::SegmentedResult { trailer, psn, data },
        };
        Pdu { tid: self.tid, repeated, kind, items }
    }

    /// How long to wait for an answer to what was sent.
    pub fn interval(&self, config: &Config) -> Duration {
        match self.head {
            _ if self.sending.is_segmented() => config.retry_group,
            Head::Result => config.retry_long,
            Head::Invoke { class: Class::Reliable, .. } => config.retry_short,
            Head::Invoke { .. } => config.retry_base,
        }
    }

    /// An acknowledgement that names this packet, or none.
    pub fn acknowledged(&mut self, psn: Option<u8>, act: &mut Act) -> Progress {
        let is_challenge = self.choices > 1;
        if !self.sending.is_acknowledged_by(psn) {
            if psn.is_none() && is_challenge {
                // Kannel's client says so of packet 0, too where that comes after others of its group. Whoever says so does not
                // guess wrong; the end of this group is no proof any more.
                self.choices = 1;
                return Progress::None;
            }
            // Acknowledgements of earlier groups may come twice.
            let forged = usize::from(psn.unwrap_or(0)) >= self.sending.packets().start;
            return if is_challenge && forged { Progress::Forged } else { Progress::None };
        }
        if is_challenge {
            act.validation.guessed(act.peer, self.choices, self.octets(act.peer));
        }
        if self.sending.is_last() {
            return Progress::Done;
        }
        self.sending.advance();
        self.repetitions = 0;
        act.counters.groups_sent += 1;
        self.open_group(act);
        Progress::NextGroup
    }

    /// Repeats the packets of the group that are missing.
    pub fn repeat_missing(&self, named: &[u8], act: &mut Act) {
        for segment in self.sending.missing(named) {
            act.send(&self.pdu(segment, true));
        }
    }

    /// No answer came: `send` repeats something, unless it was done often enough. Says whether it was not.
    pub fn timed_out(&mut self, act: &mut Act, send: impl FnOnce(&Transfer, &mut Act)) -> bool {
        if self.repetitions >= act.config.max_repetitions {
            return false;
        }
        self.repetitions += 1;
        send(self, act);
        true
    }

    /// Repeats the last packet of the group: its receiver then says what it has. A responder whose first packet was lost knows
    /// nothing of the transaction and says nothing, so that of the first group of an Invoke that packet is repeated too.
    pub fn repeat_last(&self, act: &mut Act) {
        let last = self.sending.last();
        let first = self.sending.group().next().filter(|first| first.psn == 0 && last.psn > 0);
        if let Some(first) = first.filter(|_| matches!(self.head, Head::Invoke { .. })) {
            act.send(&self.pdu(first, true));
        }
        act.send(&self.pdu(last, true));
        if self.head == Head::Result {
            act.ask_whether_it_is_there(self.sending.last().data.len());
        }
    }
}

/// A message that arrives.
#[derive(Debug, Default)]
pub struct Arriving {
    /// What there is of it.
    pub message: Receiving,
    /// Its last packet, once it is complete, if it has several.
    pub last_psn: Option<u8>,
    /// Before a negative acknowledgement.
    pub missing: Timer,
}

impl Arriving {
    /// Says what has to be said of a packet in the transaction `tid`; the message, if it is complete.
    pub fn answer(&mut self, received: Received, tid: u16, act: &mut Act) -> Option<Bytes> {
        match received {
            Received::Quiet => {}
            // RID tells what its sender sends again, whatever it answers (WAP-224, section 8).
            Received::GroupComplete { end, again } => {
                self.missing.stop();
                act.counters.groups_received += u64::from(!again);
                act.acknowledge(tid, Some(end), again);
            }
            Received::Missing(_) if act.config.negative_ack_delay.is_zero() => self.ask(tid, act),
            Received::Missing(_) => self.missing.arm_after(act.now, act.config.negative_ack_delay),
            Received::Complete(end) => {
                self.missing.stop();
                self.last_psn = Some(end).filter(|end| *end > 0);
                return Some(std::mem::take(&mut self.message).into_message());
            }
        }
        None
    }

    /// Asks for what is missing.
    pub fn ask(&self, tid: u16, act: &mut Act) {
        if let Some(missing) = self.message.missing_now() {
            act.send(&Pdu::new(tid, false, Kind::NegativeAck(missing)));
        }
    }
}

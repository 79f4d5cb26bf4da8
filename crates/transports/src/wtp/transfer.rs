//! The sending of one message: groups, their acknowledgements and repetitions, the same for Invoke and Result.

use airloom_base::{Duration, Instant};
use bytes::Bytes;

use super::config::Config;
use super::provider::Counters;
use super::sar::{Segment, Sending};
use super::wire::{Abort, Class, Kind, OptionItem, Pdu, RESPONDER, Reason, Tpi};

/// What a transaction may do when it is fed: send PDUs to its peer and tell its user.
pub struct Act<'a> {
    /// The moment.
    pub now: Instant,
    /// Settings of the provider.
    pub config: &'a Config,
    /// What the provider counts.
    pub counters: &'a mut Counters,
    /// PDUs for the peer, in order.
    pub out: &'a mut Vec<Bytes>,
    /// What the user hears, in order.
    pub told: &'a mut Vec<Indication>,
}

impl Act<'_> {
    /// Sends a PDU.
    pub fn send(&mut self, pdu: &Pdu) {
        self.counters.sent += 1;
        self.counters.resent += u64::from(pdu.repeated);
        self.out.push(pdu.to_bytes());
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
}

/// A message under way.
#[derive(Debug)]
pub struct Transfer {
    head: Head,
    tid: u16,
    sending: Sending,
    /// RCR: repetitions of the group that is outstanding.
    repetitions: u8,
}

impl Transfer {
    /// Sends the first group. `tid` is the number of the transaction without a direction.
    pub fn begin(head: Head, tid: u16, sending: Sending, act: &mut Act) -> Transfer {
        let tid = if head == Head::Result { tid | RESPONDER } else { tid };
        let transfer = Transfer { head, tid, sending, repetitions: 0 };
        transfer.send_group(act);
        transfer
    }

    fn send_group(&self, act: &mut Act) {
        for segment in self.sending.group() {
            act.send(&self.pdu(segment, false));
        }
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
            _ if self.sending.packets() > 1 => config.retry_group,
            Head::Result => config.retry_long,
            Head::Invoke { class: Class::Reliable, .. } => config.retry_short,
            Head::Invoke { .. } => config.retry_base,
        }
    }

    /// An acknowledgement that names this packet, or none.
    pub fn acknowledged(&mut self, psn: Option<u8>, act: &mut Act) -> Progress {
        if !self.sending.is_acknowledged_by(psn) {
            return Progress::None;
        }
        if self.sending.is_last() {
            return Progress::Done;
        }
        self.sending.advance();
        self.repetitions = 0;
        act.counters.groups_sent += 1;
        self.send_group(act);
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
    }
}

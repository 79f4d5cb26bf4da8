//! The responder of a transaction of class 1 or 2 (WAP-224, state tables of the responder).

use airloom_base::Instant;
use airloom_base::timer::{self, Timer};
use bytes::Bytes;

use super::config::Config;
use super::sar::{Cut, Received, Sending};
use super::transfer::{Act, Arriving, Head, Indication, Progress, Transfer};
use super::wire::{Abort, Class, Kind, OptionItem, Pdu, RESPONDER, Reason, Tpi, Trailer};

/// Octets that are held for a peer whose transaction is not verified yet.
const UNVERIFIED: usize = 65_536;

/// State of a responder, with the standard's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The Invoke is not complete; or, after it was, the transaction is over.
    Listen,
    /// The initiator was asked whether the transaction is its own.
    TidOkWait,
    /// The user has the Invoke and has not acknowledged it.
    InvokeRespWait,
    /// The user's result is waited for.
    ResultWait,
    /// The result is under way.
    ResultRespWait,
    /// Class 1: acknowledged; the acknowledgement may have to be repeated.
    WaitTimeout,
}

/// One transaction that a peer began.
#[derive(Debug, getset::CopyGetters)]
pub struct Responder {
    /// With the bit of direction.
    tid: u16,
    class: Class,
    user_ack: bool,
    /// Its initiator counts anew.
    #[getset(get_copy = "pub")]
    tid_new: bool,
    /// Its state.
    #[getset(get_copy = "pub")]
    state: State,
    over: bool,
    invoke: Arriving,
    /// The initiator can re-assemble, and takes so many octets in a group.
    sar: bool,
    maximum_group: Option<u32>,
    /// A hold-on acknowledgement was sent.
    held_on: bool,
    result: Option<Transfer>,
    /// AEC: expirations of A while the user is waited for.
    expirations: u8,
    /// R, A or W, as the state says.
    timer: Timer,
}

impl Responder {
    /// For an Invoke of class 1 or 2 with this PDU, which is fed afterwards. `verify` asks its initiator first.
    pub fn new(pdu: &Pdu, verify: bool) -> Option<Responder> {
        let Kind::Invoke { trailer, tid_new, user_ack, class, .. } = pdu.kind else { return None };
        let maximum_group = pdu.items.iter().find_map(|item| match item {
            Tpi::Option(OptionItem::MaximumGroup(octets)) => Some(*octets),
            _ => None,
        });
        Some(Responder {
            tid: pdu.tid | RESPONDER,
            class,
            user_ack,
            tid_new,
            state: if verify { State::TidOkWait } else { State::Listen },
            over: false,
            invoke: Arriving::default(),
            sar: trailer != Trailer::NoSar,
            maximum_group,
            held_on: false,
            result: None,
            expirations: 0,
            timer: Timer::default(),
        })
    }

    /// Nothing is left to do.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Octets counted for an incomplete Invoke.
    pub fn held(&self) -> usize {
        self.invoke.message.held()
    }

    /// When to call `handle_timeout`.
    pub fn deadline(&self) -> Option<Instant> {
        timer::earliest(&[self.timer, self.invoke.missing])
    }

    /// A PDU of the initiator. `room`: octets that an incomplete Invoke may have.
    pub fn handle(&mut self, pdu: Pdu, room: usize, act: &mut Act) {
        let (repeated, psn) = (pdu.repeated, pdu.psn());
        match pdu.kind {
            Kind::Invoke { trailer, data, .. } => self.packet(0, trailer, data, repeated, room, act),
            Kind::SegmentedInvoke { trailer, psn, data } => {
                self.packet(psn, trailer, data, repeated, room, act);
            }
            Kind::Ack { verify: true } => self.verified(repeated, act),
            Kind::Ack { verify: false } => self.acknowledged(psn, act),
            Kind::NegativeAck(named) => {
                if let Some(result) = &self.result {
                    result.repeat_missing(&named, act);
                    self.timer.arm_after(act.now, result.interval(act.config));
                }
            }
            Kind::Abort(why) => {
                if self.user_knows() {
                    act.told.push(Indication::Aborted(why));
                }
                self.stop();
            }
            Kind::Result { .. } | Kind::SegmentedResult { .. } => {}
        }
    }

    /// Has its user heard of it? If not, it can go without a word.
    pub fn user_knows(&self) -> bool {
        matches!(
            self.state,
            State::InvokeRespWait | State::ResultWait | State::ResultRespWait | State::WaitTimeout
        )
    }

    /// What was not sent may be sent now.
    pub fn send_withheld(&mut self, act: &mut Act) {
        if let Some(result) = &self.result {
            result.send_group(act);
            self.timer.arm_after(act.now, result.interval(act.config));
        }
    }

    fn packet(&mut self, psn: u8, trailer: Trailer, data: Bytes, repeated: bool, room: usize, act: &mut Act) {
        match self.state {
            State::TidOkWait => {
                // Kept without an answer, so that nothing has to come twice once the initiator has said yes.
                let asked = self.timer.is_armed();
                let fits = self.invoke.message.packet(psn, trailer, repeated, data, room.min(UNVERIFIED));
                if psn == 0 && (repeated || !asked) {
                    act.send(&Pdu::new(self.tid, repeated && asked, Kind::Ack { verify: true }));
                    self.timer.arm_after(act.now, act.config.wait);
                }
                if fits.is_none() {
                    self.refuse(Reason::MessageTooLarge, act);
                }
            }
            State::Listen => match self.invoke.message.packet(psn, trailer, repeated, data, room) {
                Some(received) => self.received(received, act),
                None => self.refuse(Reason::MessageTooLarge, act),
            },
            State::InvokeRespWait | State::ResultWait | State::WaitTimeout => {
                if repeated && trailer.wants_answer() && self.has_acknowledged() {
                    act.acknowledge(self.tid, Some(psn).filter(|_| self.invoke.last_psn.is_some()), true);
                }
            }
            State::ResultRespWait => {}
        }
    }

    fn received(&mut self, received: Received, act: &mut Act) {
        // An initiator that vanishes in the middle is forgotten.
        self.timer.arm_after(act.now, act.config.wait);
        if let Some(message) = self.invoke.answer(received, self.tid, act) {
            if self.invoke.last_psn.is_some() {
                act.acknowledge(self.tid, self.invoke.last_psn, false);
            }
            let (class, user_ack) = (self.class, self.user_ack);
            act.told.push(Indication::Invoke { class, user_ack, message });
            self.state = State::InvokeRespWait;
            self.expirations = 0;
            self.arm_ack(act);
        }
    }

    /// Ends it before the user has heard of it.
    fn refuse(&mut self, reason: Reason, act: &mut Act) {
        act.send(&Pdu::new(self.tid, false, Kind::Abort(Abort::Provider(reason))));
        self.stop();
    }

    fn arm_ack(&mut self, act: &Act) {
        let config = act.config;
        let interval = if self.class == Class::Reliable { config.ack_short } else { config.ack_base };
        self.timer.arm_after(act.now, interval);
    }

    /// Was the initiator told that its Invoke is here?
    fn has_acknowledged(&self) -> bool {
        self.invoke.last_psn.is_some() || self.held_on || self.state == State::WaitTimeout
    }

    /// The initiator says that the transaction is its own. It repeats that while it hears nothing: what it was told was lost.
    fn verified(&mut self, repeated: bool, act: &mut Act) {
        match self.state {
            State::TidOkWait => {
                self.state = State::Listen;
                self.timer.arm_after(act.now, act.config.wait);
                self.say_what_is_here(false, act);
            }
            State::Listen if repeated => self.say_what_is_here(true, act),
            State::InvokeRespWait | State::ResultWait | State::WaitTimeout
                if repeated && self.has_acknowledged() =>
            {
                act.acknowledge(self.tid, self.invoke.last_psn, true);
            }
            _ => {}
        }
    }

    fn say_what_is_here(&mut self, again: bool, act: &mut Act) {
        if let Some(received) = self.invoke.message.standing(again) {
            self.received(received, act);
        }
    }

    fn acknowledged(&mut self, psn: Option<u8>, act: &mut Act) {
        let Some(result) = &mut self.result else { return };
        match result.acknowledged(psn, act) {
            Progress::None => {}
            Progress::NextGroup => self.timer.arm_after(act.now, result.interval(act.config)),
            Progress::Done => {
                act.told.push(Indication::ResultConfirmed);
                self.stop();
            }
            Progress::Forged => {
                act.abort(self.tid, Reason::ProtocolError);
                act.validation.guessed_wrong(act.peer);
                self.stop();
            }
        }
    }

    /// TR-Invoke.res: the user has taken the Invoke.
    pub fn accept(&mut self, act: &mut Act) {
        if self.state != State::InvokeRespWait {
            return;
        }
        if self.class == Class::Reliable {
            act.acknowledge(self.tid, self.invoke.last_psn, false);
            self.state = State::WaitTimeout;
            self.timer.arm_after(act.now, act.config.wait);
        } else {
            self.state = State::ResultWait;
            self.arm_ack(act);
        }
    }

    /// TR-Result.req: the user's result, of class 2. A message that cannot be numbered ends the transaction.
    pub fn result(&mut self, message: Bytes, act: &mut Act) {
        let waits = matches!(self.state, State::InvokeRespWait | State::ResultWait);
        if !waits || self.class != Class::WithResult {
            return;
        }
        let cut = self.cut(act);
        let Some(sending) = Sending::new(message, cut) else {
            // What Kannel answers, too.
            act.abort(self.tid, Reason::NoExtendedSar);
            return self.stop();
        };
        let result = Transfer::begin(Head::Result, self.tid, sending, act);
        self.timer.arm_after(act.now, result.interval(act.config));
        self.result = Some(result);
        self.state = State::ResultRespWait;
    }

    fn cut(&self, act: &Act) -> Cut {
        let segment = act.config.segment.0 as usize;
        let taken = self.maximum_group.filter(|_| act.config.obeys_maximum_group);
        // Whatever a peer says that it takes, a group is not more than that.
        let most = usize::from(act.config.most_group_packets);
        let group =
            taken.map_or(usize::from(act.config.group_packets), |o| (o as usize / segment.max(1)).min(most));
        Cut { segment, group, sar: self.segments(act.config) }
    }

    /// Does its result go in several packets, if one is too small for it?
    pub fn segments(&self, config: &Config) -> bool {
        self.sar && config.sar
    }

    /// TR-Abort.req.
    pub fn abort(&mut self, why: Abort, act: &mut Act) {
        if !self.over {
            act.send(&Pdu::new(self.tid, false, Kind::Abort(why)));
        }
        self.stop();
    }

    /// A deadline has come.
    pub fn handle_timeout(&mut self, act: &mut Act) {
        if self.invoke.missing.take_due(act.now) {
            self.invoke.ask(self.tid, act);
        }
        if !self.timer.take_due(act.now) {
            return;
        }
        match self.state {
            State::InvokeRespWait if !self.user_ack => {
                act.acknowledge(self.tid, self.invoke.last_psn, false);
                if self.class == Class::Reliable {
                    self.state = State::WaitTimeout;
                    self.timer.arm_after(act.now, act.config.wait);
                } else {
                    self.held_on = true;
                    self.state = State::ResultWait;
                }
            }
            State::InvokeRespWait if self.expirations < act.config.max_ack_expirations => {
                self.expirations += 1;
                self.arm_ack(act);
            }
            State::InvokeRespWait => {
                act.abort(self.tid, Reason::NoResponse);
                self.stop();
            }
            State::ResultWait => {
                act.acknowledge(self.tid, self.invoke.last_psn, false);
                self.held_on = true;
            }
            State::ResultRespWait => self.no_answer(act),
            State::Listen | State::TidOkWait | State::WaitTimeout => self.stop(),
        }
    }

    fn no_answer(&mut self, act: &mut Act) {
        let Some(result) = &mut self.result else { return };
        act.counters.timeouts += 1;
        if result.timed_out(act, Transfer::repeat_last) {
            return self.timer.arm_after(act.now, result.interval(act.config));
        }
        act.abort(self.tid, Reason::NoResponse);
        self.stop();
    }

    fn stop(&mut self) {
        self.over = true;
        self.state = State::Listen;
        self.invoke = Arriving::default();
        self.result = None;
        self.timer.stop();
    }
}

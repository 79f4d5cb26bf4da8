//! The initiator of a transaction of class 1 or 2 (WAP-224, state tables of the initiator).

use airloom_base::Instant;
use airloom_base::timer::{self, Timer};
use bytes::Bytes;

use super::sar::Sending;
use super::transfer::{Act, Arriving, Head, Indication, Progress, Transfer};
use super::wire::{Abort, Class, Kind, Pdu, Reason, Trailer};

/// State of an initiator, with the standard's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is over.
    Null,
    /// The Invoke is under way, or the result is waited for.
    ResultWait,
    /// The result is here; the user has not acknowledged it.
    ResultRespWait,
    /// The result was acknowledged; the acknowledgement may have to be repeated.
    WaitTimeout,
}

/// One transaction that we began.
#[derive(Debug, getset::CopyGetters)]
pub struct Initiator {
    tid: u16,
    class: Class,
    user_ack: bool,
    /// Its state.
    #[getset(get_copy = "pub")]
    state: State,
    /// The Invoke, until it has arrived.
    invoke: Option<Transfer>,
    confirmed: bool,
    /// The verification was answered; that is repeated, too, and in the place of an Invoke in one packet.
    tok_sent: bool,
    result: Arriving,
    /// AEC: expirations of A while the user is waited for.
    expirations: u8,
    /// R, A or W, as the state says.
    timer: Timer,
}

impl Initiator {
    /// TR-Invoke.req of class 1 or 2.
    pub fn invoke(tid: u16, head: Head, message: Sending, act: &mut Act) -> Initiator {
        let (class, user_ack) = match head {
            Head::Invoke { class, user_ack, .. } => (class, user_ack),
            Head::Result => (Class::WithResult, false),
        };
        let invoke = Transfer::begin(head, tid, message, act);
        let mut timer = Timer::default();
        timer.arm_after(act.now, invoke.interval(act.config));
        Initiator {
            tid,
            class,
            user_ack,
            state: State::ResultWait,
            invoke: Some(invoke),
            confirmed: false,
            tok_sent: false,
            result: Arriving::default(),
            expirations: 0,
            timer,
        }
    }

    /// Octets counted for an incomplete result.
    pub fn held(&self) -> usize {
        self.result.message.held()
    }

    /// When to call `handle_timeout`.
    pub fn deadline(&self) -> Option<Instant> {
        timer::earliest(&[self.timer, self.result.missing])
    }

    /// A PDU of the responder. `room`: octets that an incomplete result may have.
    pub fn handle(&mut self, pdu: Pdu, room: usize, act: &mut Act) {
        let (repeated, psn) = (pdu.repeated, pdu.psn());
        match pdu.kind {
            Kind::Ack { verify: true } => self.verify(act),
            Kind::Ack { verify: false } => self.acknowledged(psn, act),
            Kind::NegativeAck(named) => {
                if let Some(invoke) = &self.invoke {
                    invoke.repeat_missing(&named, act);
                    self.timer.arm_after(act.now, invoke.interval(act.config));
                }
            }
            Kind::Result { trailer, data } => self.packet(0, trailer, data, repeated, room, act),
            Kind::SegmentedResult { trailer, psn, data } => {
                self.packet(psn, trailer, data, repeated, room, act);
            }
            Kind::Abort(why) => self.end(act, Indication::Aborted(why)),
            Kind::Invoke { .. } | Kind::SegmentedInvoke { .. } => {}
        }
    }

    /// The responder asks whether this transaction is ours.
    ///
    /// It is while its result is waited for. Once the result is here, an Invoke that the responder does not know can only be a
    /// late copy: to say yes would have it carried out twice.
    fn verify(&mut self, act: &mut Act) {
        if self.state != State::ResultWait {
            let no = Kind::Abort(Abort::Provider(Reason::InvalidTid));
            return act.send(&Pdu::new(self.tid, false, no));
        }
        let (tid, repeated) = (self.tid, self.tok_sent);
        let yes = |act: &mut Act| act.send(&Pdu::new(tid, repeated, Kind::Ack { verify: true }));
        // What has arrived is not repeated any more: a late copy of the question is answered, and changes nothing.
        let Some(invoke) = &mut self.invoke else { return yes(act) };
        if invoke.timed_out(act, |_, act| yes(act)) {
            self.tok_sent = true;
            self.timer.arm_after(act.now, invoke.interval(act.config));
        }
    }

    fn acknowledged(&mut self, psn: Option<u8>, act: &mut Act) {
        let Some(invoke) = &mut self.invoke else { return };
        match invoke.acknowledged(psn, act) {
            // Forged ends are of results alone.
            Progress::None | Progress::Forged => {}
            Progress::NextGroup => {
                self.tok_sent = false;
                self.timer.arm_after(act.now, invoke.interval(act.config));
            }
            Progress::Done if self.class == Class::Reliable => self.end(act, Indication::InvokeConfirmed),
            Progress::Done => {
                self.confirm(act);
                // Nobody repeats anything now: a responder that vanished must not be waited for without an end.
                self.timer.arm_after(act.now, act.config.wait);
            }
        }
    }

    fn confirm(&mut self, act: &mut Act) {
        self.invoke = None;
        if !std::mem::replace(&mut self.confirmed, true) {
            act.told.push(Indication::InvokeConfirmed);
        }
    }

    fn packet(&mut self, psn: u8, trailer: Trailer, data: Bytes, repeated: bool, room: usize, act: &mut Act) {
        match self.state {
            State::ResultWait if self.class == Class::WithResult => {}
            // The last acknowledgement was lost.
            State::WaitTimeout if repeated && trailer.wants_answer() => {
                return act.acknowledge(self.tid, Some(psn).filter(|_| self.result.last_psn.is_some()), true);
            }
            _ => return,
        }
        // A result acknowledges the Invoke.
        self.confirm(act);
        let Some(received) = self.result.message.packet(psn, trailer, repeated, data, room) else {
            act.abort(self.tid, Reason::MessageTooLarge);
            return self.stop();
        };
        self.timer.arm_after(act.now, act.config.wait);
        if let Some(message) = self.result.answer(received, self.tid, act) {
            act.told.push(Indication::Result(message));
            self.state = State::ResultRespWait;
            self.expirations = 0;
            self.timer.arm_after(act.now, act.config.ack_long);
        }
    }

    /// TR-Result.res: the user has taken the result.
    pub fn acknowledge(&mut self, act: &mut Act) {
        if self.state == State::ResultRespWait {
            act.acknowledge(self.tid, self.result.last_psn, false);
            self.state = State::WaitTimeout;
            self.timer.arm_after(act.now, act.config.wait);
        }
    }

    /// TR-Abort.req.
    pub fn abort(&mut self, code: u8, act: &mut Act) {
        if !matches!(self.state, State::Null | State::WaitTimeout) {
            act.send(&Pdu::new(self.tid, false, Kind::Abort(Abort::User(code))));
        }
        self.stop();
    }

    /// A deadline has come.
    pub fn handle_timeout(&mut self, act: &mut Act) {
        if self.result.missing.take_due(act.now) {
            self.result.ask(self.tid, act);
        }
        if !self.timer.take_due(act.now) {
            return;
        }
        match self.state {
            State::ResultWait => self.no_answer(act),
            State::ResultRespWait if !self.user_ack => self.acknowledge(act),
            State::ResultRespWait if self.expirations < act.config.max_ack_expirations => {
                self.expirations += 1;
                self.timer.arm_after(act.now, act.config.ack_long);
            }
            State::ResultRespWait => {
                act.abort(self.tid, Reason::NoResponse);
                self.stop();
            }
            State::WaitTimeout | State::Null => self.stop(),
        }
    }

    fn no_answer(&mut self, act: &mut Act) {
        let (tid, tok) = (self.tid, self.tok_sent);
        let Some(invoke) = &mut self.invoke else {
            // The responder was there, and may be at work for nobody: who ends a transaction says so (WAP-224, abort).
            act.abort(tid, Reason::NoResponse);
            return self.stop();
        };
        act.counters.timeouts += 1;
        let again = invoke.timed_out(act, |invoke, act| {
            if tok {
                act.send(&Pdu::new(tid, true, Kind::Ack { verify: true }));
            }
            // Of one packet the responder has all that it asked about, of several it may lack some.
            if !tok || invoke.is_segmented() {
                invoke.repeat_last(act);
            }
        });
        if again {
            return self.timer.arm_after(act.now, invoke.interval(act.config));
        }
        self.end(act, Indication::Aborted(Abort::Provider(Reason::NoResponse)));
    }

    fn end(&mut self, act: &mut Act, last: Indication) {
        // What was told as a result is not taken back.
        if matches!(self.state, State::ResultWait | State::ResultRespWait) {
            act.told.push(last);
        }
        self.stop();
    }

    fn stop(&mut self) {
        self.state = State::Null;
        self.invoke = None;
        self.result = Arriving::default();
        self.timer.stop();
    }
}

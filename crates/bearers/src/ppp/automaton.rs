//! The option negotiation automaton (RFC 1661, 4), from the moment when the layer below is up.
//!
//! Left out: the states Initial and Starting (there is an automaton only where the layer below is up), Closed and Closing
//! (none of our ends closes a link by itself: links are lost, or the other end closes them).

use std::collections::VecDeque;

use airloom_base::{Duration, Instant};

use super::control::{ControlPacket, append_option, code, options};

//= RFC 1661 (4.6): restart timer 3 s, Max-Terminate 2, Max-Configure 10, Max-Failure 5.
const RESTART_TIMER: Duration = Duration::from_secs(3);
const MAX_TERMINATE: u32 = 2;
const MAX_CONFIGURE: u32 = 10;
const MAX_FAILURE: u32 = 5;
/// Requests of one negotiation. The restart counter begins anew with each answer, so that two ends that suggest
/// values to each other in turns would do so for ever (RFC 1661, 4.4 asks for a way out).
const MOST_ROUNDS: u32 = 30;
const DOES_NOT_NEGOTIATE: &str = "the other end does not negotiate";

/// What is said to an option of the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Granted.
    Ack,
    /// Yes, but with this value.
    Nak(Vec<u8>),
    /// Not known, or not for negotiation.
    Reject,
}

/// What is negotiated.
pub trait Negotiation {
    /// Appends the options that this end wants.
    fn request(&self, out: &mut Vec<u8>);
    /// A request of the other end begins: what it leaves out has its default.
    fn begin(&mut self);
    /// An option of that request.
    fn judge(&mut self, kind: u8, data: &[u8]) -> Verdict;
    /// Appends options that the request should have had.
    fn missing(&mut self, _out: &mut Vec<u8>) {}
    /// All that the request asked for is granted.
    fn grant(&mut self);
    /// The other end wants another value of an option of ours.
    fn nak(&mut self, kind: u8, data: &[u8]);
    /// The other end does not want an option of ours at all.
    fn reject(&mut self, kind: u8);
    /// Why the negotiation can come to nothing, if it cannot.
    fn trouble(&self) -> Option<&'static str> {
        None
    }
    /// What echoes carry (RFC 1661, 5.8), where the protocol has echoes.
    fn magic(&self) -> Option<u32> {
        None
    }
}

/// States of the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Given up, or closed by the other end; a request of the other end begins anew.
    Stopped,
    /// The other end closes; it is given a moment.
    Stopping,
    /// A request was sent.
    ReqSent,
    /// It was granted; the other end's was not.
    AckRcvd,
    /// The other end's request was granted; ours was not.
    AckSent,
    /// Both were.
    Opened,
}

/// One end of a negotiation.
#[derive(getset::CopyGetters)]
pub struct Automaton<N> {
    /// What is negotiated.
    pub negotiation: N,
    /// Where it stands.
    #[getset(get_copy = "pub")]
    state: State,
    /// Requests that may still be sent without an answer.
    restarts: u32,
    rounds: u32,
    failures: u32,
    /// Identifier of the last request, and its options.
    id: u8,
    asked: Vec<u8>,
    timer: Option<Instant>,
    out: VecDeque<Vec<u8>>,
    given_up: Option<&'static str>,
}

impl<N: Negotiation> Automaton<N> {
    /// Begins: a request is sent.
    pub fn new(negotiation: N, now: Instant) -> Automaton<N> {
        let mut automaton = Automaton {
            negotiation,
            state: State::ReqSent,
            restarts: MAX_CONFIGURE,
            rounds: 0,
            failures: 0,
            id: 0,
            asked: Vec::new(),
            timer: None,
            out: VecDeque::new(),
            given_up: None,
        };
        automaton.send_configure_request(now);
        automaton
    }

    /// Is everything agreed on?
    pub fn is_opened(&self) -> bool {
        self.state == State::Opened
    }

    /// Why it came to nothing, if it did.
    pub fn given_up(&self) -> Option<&'static str> {
        self.given_up.filter(|_| self.state == State::Stopped)
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    /// When to call [`Automaton::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timer
    }

    /// The restart timer expires, if it is time.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.timer.is_none_or(|at| at > now) {
            return;
        }
        self.timer = None;
        match self.state {
            State::Stopped | State::Opened => {}
            _ if self.restarts == 0 => self.stop("no answer"),
            State::Stopping => self.send_terminate_request(now),
            State::ReqSent | State::AckSent => self.send_configure_request(now),
            State::AckRcvd => {
                self.state = State::ReqSent;
                self.send_configure_request(now);
            }
        }
    }

    /// A packet arrives. What cannot be read, or answers nothing that was asked, changes nothing.
    pub fn handle(&mut self, now: Instant, octets: &[u8]) {
        let Some(packet) = ControlPacket::parse(octets) else { return };
        match packet.code {
            code::CONFIGURE_REQUEST => self.configure_request(now, packet),
            code::CONFIGURE_ACK if packet.id == self.id && packet.data == self.asked => {
                self.configure_ack(now)
            }
            code::CONFIGURE_NAK | code::CONFIGURE_REJECT if packet.id == self.id => {
                self.configure_nak_or_reject(now, packet)
            }
            code::CONFIGURE_ACK | code::CONFIGURE_NAK | code::CONFIGURE_REJECT => {}
            code::TERMINATE_REQUEST => self.terminate_request(now, packet.id),
            code::TERMINATE_ACK => self.terminate_ack(now),
            code::CODE_REJECT | code::PROTOCOL_REJECT => self.code_or_protocol_reject(now, packet),
            code::ECHO_REQUEST | code::ECHO_REPLY | code::DISCARD_REQUEST
                if self.negotiation.magic().is_some() =>
            {
                if packet.code == code::ECHO_REQUEST && self.is_opened() {
                    self.send_echo_reply(packet);
                }
            }
            _ => self.send(code::CODE_REJECT, packet.id, octets),
        }
        let is_ended = matches!(self.state, State::Stopping | State::Stopped);
        if let Some(why) = self.negotiation.trouble().filter(|_| !is_ended) {
            self.close(now, why);
        }
    }

    fn configure_request(&mut self, now: Instant, packet: ControlPacket) {
        if self.state == State::Stopping {
            return;
        }
        let Some((answer, data)) = self.judge(packet.data) else { return };
        // Nothing is granted that is taken back at once: the other end would believe itself open.
        if let Some(why) = self.negotiation.trouble() {
            return self.close(now, why);
        }
        match self.state {
            State::Opened => self.send_configure_request(now),
            State::Stopped => {
                (self.restarts, self.rounds, self.given_up) = (MAX_CONFIGURE, 0, None);
                self.send_configure_request(now);
            }
            _ => {}
        }
        self.send(answer, packet.id, &data);
        let is_granted = answer == code::CONFIGURE_ACK;
        self.state = match self.state {
            State::AckRcvd if is_granted => State::Opened,
            State::AckRcvd => State::AckRcvd,
            _ if is_granted => State::AckSent,
            _ => State::ReqSent,
        };
        if is_granted {
            self.negotiation.grant();
        }
        self.settle();
    }

    /// The answer to a request with these options, unless they cannot be read.
    fn judge(&mut self, wanted: &[u8]) -> Option<(u8, Vec<u8>)> {
        self.negotiation.begin();
        let (mut nak, mut reject) = (Vec::new(), Vec::new());
        for option in options(wanted) {
            let (kind, data) = option?;
            match self.negotiation.judge(kind, data) {
                Verdict::Ack => {}
                //= RFC 1661 (4.6): after Max-Failure suggestions none is made any more.
                Verdict::Nak(value) if self.failures < MAX_FAILURE => append_option(&mut nak, kind, &value),
                Verdict::Nak(_) | Verdict::Reject => append_option(&mut reject, kind, data),
            }
        }
        if !reject.is_empty() {
            return Some((code::CONFIGURE_REJECT, reject));
        }
        if self.failures < MAX_FAILURE {
            self.negotiation.missing(&mut nak);
        }
        if !nak.is_empty() {
            self.failures += 1;
            return Some((code::CONFIGURE_NAK, nak));
        }
        Some((code::CONFIGURE_ACK, wanted.to_vec()))
    }

    fn configure_ack(&mut self, now: Instant) {
        match self.state {
            State::Stopped => self.send(code::TERMINATE_ACK, self.id, &[]),
            State::Stopping => {}
            State::ReqSent => {
                self.restarts = MAX_CONFIGURE;
                self.state = State::AckRcvd;
            }
            State::AckSent => {
                self.restarts = MAX_CONFIGURE;
                self.state = State::Opened;
            }
            //= RFC 1661 (4.3): a second answer is none to be expected; begin anew.
            State::AckRcvd | State::Opened => {
                self.state = State::ReqSent;
                self.send_configure_request(now);
            }
        }
        self.settle();
    }

    fn configure_nak_or_reject(&mut self, now: Instant, packet: ControlPacket) {
        match self.state {
            State::Stopped => return self.send(code::TERMINATE_ACK, packet.id, &[]),
            State::Stopping => return,
            State::ReqSent | State::AckSent => self.restarts = MAX_CONFIGURE,
            State::AckRcvd | State::Opened => self.state = State::ReqSent,
        }
        for (kind, data) in options(packet.data).flatten() {
            if packet.code == code::CONFIGURE_NAK {
                self.negotiation.nak(kind, data);
            } else {
                self.negotiation.reject(kind);
            }
        }
        self.send_configure_request(now);
    }

    fn terminate_request(&mut self, now: Instant, id: u8) {
        self.send(code::TERMINATE_ACK, id, &[]);
        match self.state {
            State::Opened => {
                (self.state, self.given_up) = (State::Stopping, Some("closed by the other end"));
                self.restarts = 0;
                self.timer = Some(now + RESTART_TIMER);
            }
            State::AckRcvd | State::AckSent => self.state = State::ReqSent,
            State::Stopped | State::Stopping | State::ReqSent => {}
        }
    }

    fn terminate_ack(&mut self, now: Instant) {
        match self.state {
            State::Stopping => self.stop("closed by the other end"),
            State::AckRcvd => self.state = State::ReqSent,
            State::Opened => {
                self.state = State::ReqSent;
                self.send_configure_request(now);
            }
            State::Stopped | State::ReqSent | State::AckSent => {}
        }
    }

    /// Only the refusal of what cannot be done without does harm: of the negotiation itself.
    fn code_or_protocol_reject(&mut self, now: Instant, packet: ControlPacket) {
        let refused = packet.data.first().copied().unwrap_or_default();
        let is_harmless =
            packet.code == code::PROTOCOL_REJECT || !(1..=code::TERMINATE_ACK).contains(&refused);
        match self.state {
            State::AckRcvd if is_harmless => self.state = State::ReqSent,
            _ if is_harmless => {}
            State::Opened => self.close(now, DOES_NOT_NEGOTIATE),
            State::Stopped => {}
            _ => self.stop(DOES_NOT_NEGOTIATE),
        }
    }

    fn send_configure_request(&mut self, now: Instant) {
        self.rounds += 1;
        if self.rounds > MOST_ROUNDS {
            return self.close(now, "no agreement");
        }
        self.restarts = self.restarts.saturating_sub(1);
        self.timer = Some(now + RESTART_TIMER);
        self.id = self.id.wrapping_add(1);
        self.asked.clear();
        self.negotiation.request(&mut self.asked);
        let packet = ControlPacket { code: code::CONFIGURE_REQUEST, id: self.id, data: &self.asked };
        self.out.push_back(packet.emit());
    }

    fn send_terminate_request(&mut self, now: Instant) {
        self.restarts = self.restarts.saturating_sub(1);
        self.timer = Some(now + RESTART_TIMER);
        self.id = self.id.wrapping_add(1);
        self.send(code::TERMINATE_REQUEST, self.id, &[]);
    }

    fn send_echo_reply(&mut self, packet: ControlPacket) {
        let magic = self.negotiation.magic().unwrap_or_default().to_be_bytes();
        let rest = packet.data.get(magic.len()..).unwrap_or_default();
        self.send(code::ECHO_REPLY, packet.id, &[&magic, rest].concat());
    }

    fn send(&mut self, code: u8, id: u8, data: &[u8]) {
        self.out.push_back(ControlPacket { code, id, data }.emit());
    }

    /// Gives up, and tells the other end, which may believe itself open.
    fn close(&mut self, now: Instant, why: &'static str) {
        (self.state, self.restarts, self.given_up) = (State::Stopping, MAX_TERMINATE, Some(why));
        self.send_terminate_request(now);
    }

    /// It is over; where it was being closed, for the reason of that.
    fn stop(&mut self, why: &'static str) {
        (self.state, self.timer, self.given_up) = (State::Stopped, None, self.given_up.or(Some(why)));
    }

    /// What ends with the negotiation.
    fn settle(&mut self) {
        if self.state == State::Opened {
            (self.timer, self.rounds, self.failures) = (None, 0, 0);
        }
    }
}

/// Lets two ends talk to each other with no distance between them, until both have nothing more to say.
pub fn agree<A: Negotiation, B: Negotiation>(one: &mut Automaton<A>, other: &mut Automaton<B>, now: Instant) {
    loop {
        let (there, back) = (one.poll_transmit(), other.poll_transmit());
        if there.is_none() && back.is_none() {
            return;
        }
        if let Some(octets) = there {
            other.handle(now, &octets);
        }
        if let Some(octets) = back {
            one.handle(now, &octets);
        }
    }
}

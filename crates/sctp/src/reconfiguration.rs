//! Streams that begin anew, and more of them, while the association lives (RFC 6525).
//!
//! One request of ours is on its way at a time; others wait for it. What was written to a stream before its reset goes out
//! under the old numbers first, and what is written after it waits for the answer, so that nothing is lost either way.

use airloom_base::{CloseReason, Cx};
use bytes::Bytes;

use super::association::{Association, SackDue};
use super::chunk::parameter::{Reset, TsnReset, result};
use super::chunk::{Cause, Chunk, Parameter};
use super::outbound::names;
use super::requests::{Answer, OwnRequest, Reconfigured, Request, Sent};
use super::state::State;

/// Requests that wait for the one before at most.
const MOST_WISHES: usize = 8;
/// Streams that a request names at most, so that it fits any path; all are named by none.
const MOST_NAMED: usize = 50;

impl Association {
    /// Asks the peer for a change of the streams. False: it does not understand such requests (or `stream_reset` is off
    /// here), the association is not open, there is no such stream, more than fifty are named, or eight requests wait.
    pub fn reconfigure(&mut self, cx: &mut Cx, request: Request) -> bool {
        let has_streams = match &request {
            Request::ResetOutgoing(streams) | Request::ResetIncoming(streams)
                if streams.len() > MOST_NAMED =>
            {
                false
            }
            Request::ResetOutgoing(streams) => streams.iter().all(|s| self.out.has(*s)),
            Request::ResetIncoming(streams) => streams.iter().all(|s| *s < self.inbound.streams()),
            Request::ResetAssociation => true,
            Request::AddOutgoing(n) => *n > 0 && self.out.streams().checked_add(*n).is_some(),
            Request::AddIncoming(n) => *n > 0 && self.inbound.streams().checked_add(*n).is_some(),
        };
        let wishes = &mut self.reconfiguration.wishes;
        if !has_streams
            || !self.abilities.reconfiguration
            || self.state != State::Established
            || wishes.len() >= MOST_WISHES
        {
            return false;
        }
        wishes.push_back(OwnRequest { what: request, in_reply: None, sent: None });
        self.refill_burst();
        self.follow_up(cx);
        true
    }

    /// The next change of the streams.
    pub fn poll_reconfigured(&mut self) -> Option<Reconfigured> {
        self.reconfiguration.told.pop_front()
    }

    fn tell(&mut self, what: Reconfigured) {
        // Who does not ask is not told of everything.
        if self.reconfiguration.told.len() < 64 {
            self.reconfiguration.told.push_back(what);
        }
    }

    /// RE-CONFIG arrives (5.2.1).
    pub(super) fn reconfiguration_arrives(&mut self, cx: &mut Cx, from: u8, parameters: Vec<Parameter>) {
        let is_open =
            matches!(self.state, State::Established | State::ShutdownPending | State::ShutdownReceived);
        if !self.abilities.reconfiguration || !is_open {
            //= RFC 9260 (3.2): who does not know the chunk skips it.
            return;
        }
        let mut answers = Vec::new();
        //= RFC 6525 (3.1): one or two.
        for parameter in parameters.into_iter().take(2) {
            let number = match &parameter {
                Parameter::ReconfigResponse { response, result, next } => {
                    self.response_arrives(cx, *response, *result, *next);
                    continue;
                }
                Parameter::OutgoingReset(reset) => reset.request,
                Parameter::IncomingReset(request, _)
                | Parameter::SsnTsnReset(request)
                | Parameter::AddOutgoing(request, _)
                | Parameter::AddIncoming(request, _) => *request,
                _ => continue,
            };
            //= RFC 6525 (5.2.1): a SACK with the answer hurries what the request may wait for.
            self.sack_due = SackDue::Now;
            if number != self.reconfiguration.expected {
                answers.push(self.reconfiguration.repeat(number));
                continue;
            }
            self.reconfiguration.expected = number.wrapping_add(1);
            let said = match parameter {
                Parameter::OutgoingReset(reset) => Some(self.peer_resets(&reset)),
                Parameter::IncomingReset(_, streams) => self.peer_wants_reset(number, streams),
                Parameter::SsnTsnReset(_) => self.peer_resets_all(number),
                Parameter::AddOutgoing(_, streams) => Some(self.peer_adds(streams)),
                Parameter::AddIncoming(_, streams) => Some(self.peer_wants_more(streams)),
                _ => None,
            };
            answers.extend(said.map(|said| self.reconfiguration.keep(number, said, None)));
        }
        if !answers.is_empty() {
            self.answer(from, Chunk::ReConfig(answers));
        }
    }

    /// Streams of the peer's begin anew (5.2.2).
    fn peer_resets(&mut self, reset: &Reset) -> u32 {
        let asked = self.reconfiguration.asked.as_ref();
        let sent =
            asked.filter(|a| matches!(a.what, Request::ResetIncoming(_))).and_then(|a| a.sent.as_ref());
        if sent.is_some_and(|sent| sent.number == reset.response) {
            //= RFC 6525 (5.2.2, E1): it is the answer to a request of ours.
            self.answered(Answer::Performed);
        }
        if reset.streams.iter().any(|s| *s >= self.inbound.streams()) {
            return result::WRONG_SSN;
        }
        if self.reconfiguration.awaits_data.is_some() {
            if !self.inbound.awaits_reset(reset.last_tsn, &reset.streams) {
                return result::ALREADY_IN_PROGRESS;
            }
            // The same under another number: that one is answered.
            self.reconfiguration.awaits_data = Some(reset.request);
            return result::IN_PROGRESS;
        }
        if self.inbound.reset(reset.last_tsn, &reset.streams) {
            self.tell(Reconfigured::IncomingReset(reset.streams.clone()));
            return result::PERFORMED;
        }
        self.reconfiguration.awaits_data = Some(reset.request);
        result::IN_PROGRESS
    }

    /// The peer wants streams of ours to begin anew (5.2.3): a request of ours answers it.
    fn peer_wants_reset(&mut self, number: u32, streams: Vec<u16>) -> Option<u32> {
        if streams.iter().any(|s| !self.out.has(*s)) {
            return Some(result::WRONG_SSN);
        }
        let covers = |asked: &OwnRequest| {
            let Request::ResetOutgoing(own) = &asked.what else { return false };
            own.is_empty() || (!streams.is_empty() && streams.iter().all(|s| names(own, *s)))
        };
        if self.reconfiguration.asked.as_ref().is_some_and(covers) || self.out.are_new(&streams) {
            return Some(result::NOTHING_TO_DO);
        }
        if streams.len() > MOST_NAMED {
            return Some(result::DENIED);
        }
        let wish = OwnRequest { what: Request::ResetOutgoing(streams), in_reply: Some(number), sent: None };
        self.wish(wish)
    }

    /// A request of ours that the peer has asked for; what it is told, if there can be none.
    fn wish(&mut self, wish: OwnRequest) -> Option<u32> {
        let wishes = &mut self.reconfiguration.wishes;
        if wishes.len() >= MOST_WISHES {
            return Some(result::DENIED);
        }
        wishes.push_back(wish);
        None
    }

    /// The peer wants everything to begin anew (5.2.4).
    fn peer_resets_all(&mut self, number: u32) -> Option<u32> {
        if self.reconfiguration.asked.is_some() || self.reconfiguration.awaits_data.is_some() {
            return Some(result::ALREADY_IN_PROGRESS);
        }
        // RFC 6525 (5.2.4, G3) would take what is on its way for acknowledged, and lose it: the answer waits instead.
        self.out.hold(Vec::new());
        self.reconfiguration.awaits_silence = Some(number);
        None
    }

    /// The peer will send on more streams (5.2.5).
    fn peer_adds(&mut self, streams: u16) -> u32 {
        if self.is_asked(|what| matches!(what, Request::AddIncoming(_))) {
            //= RFC 6525 (5.2.6): it is the answer to a request of ours.
            self.answered(Answer::Performed);
        }
        let most = self.shared.config.most_streams;
        if self.inbound.streams().checked_add(streams).is_none_or(|all| all > most) {
            return result::DENIED;
        }
        self.inbound.add(streams);
        self.tell(Reconfigured::IncomingAdded(streams));
        result::PERFORMED
    }

    /// The peer wants us to send on more streams (5.2.6): a request of ours follows.
    fn peer_wants_more(&mut self, streams: u16) -> u32 {
        let most = self.shared.config.most_streams;
        if streams == 0 || self.out.streams().checked_add(streams).is_none_or(|all| all > most) {
            return result::DENIED;
        }
        let wish = OwnRequest { what: Request::AddOutgoing(streams), in_reply: Some(0), sent: None };
        self.wish(wish).unwrap_or(result::PERFORMED)
    }

    fn is_asked(&self, is: impl Fn(&Request) -> bool) -> bool {
        self.reconfiguration.asked.as_ref().is_some_and(|a| a.sent.is_some() && is(&a.what))
    }

    /// The peer answers (5.2.7).
    fn response_arrives(&mut self, cx: &mut Cx, number: u32, said: u32, next: Option<TsnReset>) {
        let state = &mut self.reconfiguration;
        let sent = state.asked.as_mut().and_then(|asked| asked.sent.as_mut());
        let Some(sent) = sent.filter(|sent| sent.number == number) else { return };
        let is_in_progress =
            said == result::IN_PROGRESS || (said == result::ALREADY_IN_PROGRESS && sent.is_renumbered);
        if is_in_progress {
            //= RFC 6525 (5.2.7, H2): asked again, without an error.
            sent.is_in_progress = true;
            if sent.is_overdue {
                self.ask_anew(cx);
            } else {
                state.timer.arm_after(cx.now, state.timeout);
            }
            return;
        }
        let mut answer = Answer::of(said);
        if self.is_asked(|what| *what == Request::ResetAssociation) && answer.is_success() {
            match next {
                Some(next) => self.restart(next),
                None => answer = Answer::Failed(said),
            }
        }
        self.answered(answer);
    }

    //= RFC 6525 (5.2.7, H5): both TSNs as the peer says.
    fn restart(&mut self, next: TsnReset) {
        self.flight.restart(next.receiver);
        self.inbound.restart(next.sender);
        (self.ecne, self.cwr, self.ecn_reduced_to) = (None, None, 0);
        for path in &mut self.paths {
            (path.timed, path.recovery) = (None, None);
        }
    }

    /// Our request is over.
    fn answered(&mut self, answer: Answer) {
        let state = &mut self.reconfiguration;
        state.timer.stop();
        let Some(asked) = state.asked.take() else { return };
        if let (Some(number), Request::ResetOutgoing(_)) = (asked.in_reply, &asked.what) {
            let said = if answer.is_success() { result::PERFORMED } else { result::DENIED };
            state.keep(number, said, None);
        }
        match &asked.what {
            //= RFC 6525 (5.2.7, H4).
            Request::ResetOutgoing(_) | Request::ResetAssociation => self.out.release(answer.is_success()),
            Request::AddOutgoing(streams) if answer.is_success() => self.out.add(*streams),
            _ => {}
        }
        let what = match (asked.in_reply, asked.what) {
            (None, what) => Reconfigured::Answered(what, answer),
            (Some(_), Request::ResetOutgoing(streams)) if answer.is_success() => {
                Reconfigured::OutgoingReset(streams)
            }
            (Some(_), Request::AddOutgoing(streams)) if answer.is_success() => {
                Reconfigured::OutgoingAdded(streams)
            }
            _ => return,
        };
        self.tell(what);
    }

    /// Says that what the peer had to wait for is done, and sends our next request, as far as they can be by now.
    pub(super) fn advance_reconfiguration(&mut self, cx: &mut Cx) {
        if self.reconfiguration.is_idle() {
            return;
        }
        if let Some(number) = self.reconfiguration.awaits_data
            && let Some((streams, is_good)) = self.inbound.reset_done()
        {
            self.reconfiguration.awaits_data = None;
            if !is_good {
                self.abort(CloseReason::Aborted, Some(Cause::ProtocolViolation(Bytes::new())));
                return;
            }
            self.tell(Reconfigured::IncomingReset(streams));
            self.say(number, None);
        }
        let is_silent = self.flight.is_empty() && self.out.is_held_up();
        if let Some(number) = self.reconfiguration.awaits_silence.take_if(|_| is_silent) {
            //= RFC 6525 (5.2.4, G1, G2): far from all that the peer has sent, and where we are.
            let receiver = (self.inbound.cumulative as u32).wrapping_add(1).wrapping_add(1 << 31);
            let next = TsnReset { sender: self.flight.next() as u32, receiver };
            self.inbound.restart(receiver);
            self.out.release(true);
            self.tell(Reconfigured::AssociationReset);
            self.say(number, Some(next));
        }
        self.ask(cx);
    }

    /// Says that the peer's request, which had to wait, was done.
    fn say(&mut self, number: u32, next: Option<TsnReset>) {
        let answer = self.reconfiguration.keep(number, result::PERFORMED, next);
        self.sack_due = SackDue::Now;
        self.answer(self.last_from, Chunk::ReConfig(vec![answer]));
    }

    /// Sends our next request as soon as it may go.
    fn ask(&mut self, cx: &mut Cx) {
        let state = &mut self.reconfiguration;
        if state.awaits_silence.is_some() {
            return;
        }
        if state.asked.is_none()
            && let Some(wish) = state.wishes.pop_front()
        {
            match &wish.what {
                //= RFC 6525 (5.1.2, A1; 5.1.4, C2): what is written from now on waits.
                Request::ResetOutgoing(streams) => self.out.hold(streams.clone()),
                Request::ResetAssociation => self.out.hold(Vec::new()),
                _ => {}
            }
            state.asked = Some(wish);
        }
        let Some(asked) = state.asked.as_mut().filter(|asked| asked.sent.is_none()) else { return };
        let may_go = match &asked.what {
            Request::ResetOutgoing(_) => self.out.is_held_up(),
            Request::ResetAssociation => self.out.is_held_up() && self.flight.is_empty(),
            _ => true,
        };
        if !may_go {
            return;
        }
        let number = state.next;
        let parameter = match &asked.what {
            Request::ResetOutgoing(streams) => Parameter::OutgoingReset(Reset {
                request: number,
                //= RFC 6525 (4.1): otherwise the last request seen.
                response: asked.in_reply.unwrap_or(state.expected.wrapping_sub(1)),
                last_tsn: (self.flight.next() - 1) as u32,
                streams: streams.clone(),
            }),
            Request::ResetIncoming(streams) => Parameter::IncomingReset(number, streams.clone()),
            Request::ResetAssociation => Parameter::SsnTsnReset(number),
            Request::AddOutgoing(streams) => Parameter::AddOutgoing(number, *streams),
            Request::AddIncoming(streams) => Parameter::AddIncoming(number, *streams),
        };
        asked.sent = Some(Sent {
            number,
            parameter,
            next_tsn: self.flight.next(),
            is_in_progress: false,
            is_overdue: false,
            is_renumbered: false,
        });
        state.next = number.wrapping_add(1);
        let path = self.data_path();
        //= RFC 6525 (5.1.1): the timer is that of data, and doubles.
        self.reconfiguration.timeout = self.paths[usize::from(path)].rto;
        self.send_request(cx, path);
    }

    /// Sends our request, again or for the first time.
    fn send_request(&mut self, cx: &mut Cx, path: u8) {
        let sent = self.reconfiguration.asked.as_mut().and_then(|asked| asked.sent.as_mut());
        let Some(sent) = sent else { return };
        sent.is_in_progress = false;
        let parameter = sent.parameter.clone();
        self.answer(path, Chunk::ReConfig(vec![parameter]));
        self.reconfiguration.timer.arm_after(cx.now, self.reconfiguration.timeout);
    }

    /// The peer says of our reset that it waits for data, and has acknowledged all of it: asks under a new number.
    ///
    /// usrsctp 0.9.5 looks for resets that it can do when DATA arrives, and not when that has filled a gap; held streams send
    /// none. And to a number that it has seen it says what it said first, so that a lost answer is lost for good. Whatever
    /// it has done of the reset already can be done twice: nothing was sent under the new numbers of the streams.
    fn ask_anew(&mut self, cx: &mut Cx) {
        let state = &mut self.reconfiguration;
        let Some(sent) = state.asked.as_mut().and_then(|asked| asked.sent.as_mut()) else { return };
        if let Parameter::OutgoingReset(reset) = &mut sent.parameter {
            reset.request = state.next;
            sent.number = state.next;
            state.next = state.next.wrapping_add(1);
            (sent.is_overdue, sent.is_renumbered) = (false, true);
        }
        let path = self.data_path();
        self.send_request(cx, path);
    }

    /// No answer came in time.
    pub(super) fn reconfiguration_expired(&mut self, cx: &mut Cx) {
        let state = &mut self.reconfiguration;
        let Some(sent) = state.asked.as_mut().and_then(|asked| asked.sent.as_mut()) else { return };
        sent.is_overdue =
            matches!(sent.parameter, Parameter::OutgoingReset(_)) && self.flight.lowest() >= sent.next_tsn;
        let is_in_progress = sent.is_in_progress;
        state.timeout = state.timeout.mul_ratio(2, 1).min(self.shared.config.rto_max);
        let path = self.data_path();
        if !is_in_progress {
            self.failed(usize::from(path));
        }
        if self.closing.is_none() {
            self.flight.resent += 1;
            self.send_request(cx, path);
        }
    }

    /// Nothing more comes of what was asked for.
    pub(super) fn stop_reconfiguring(&mut self) {
        let state = &mut self.reconfiguration;
        state.timer.stop();
        (state.asked, state.awaits_data, state.awaits_silence) = (None, None, None);
        state.wishes.clear();
    }
}

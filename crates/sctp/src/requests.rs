//! What an end asks its peer for while the association lives (RFC 6525), and what both know of it.

use std::collections::VecDeque;

use airloom_base::Duration;
use airloom_base::timer::Timer;

use super::chunk::Parameter;
use super::chunk::parameter::{TsnReset, result};

/// What an end may ask its peer for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// These streams of ours (none: all) begin anew.
    ResetOutgoing(Vec<u16>),
    /// These streams of the peer's (none: all) begin anew.
    ResetIncoming(Vec<u16>),
    /// All streams of both and the TSNs begin anew.
    ResetAssociation,
    /// So many streams more for us to send on.
    AddOutgoing(u16),
    /// So many streams more for the peer to send on.
    AddIncoming(u16),
}

/// What the peer made of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It did it.
    Performed,
    /// All was as wished.
    NothingToDo,
    /// It does not want to.
    Denied,
    /// It could not, with the number of its answer (RFC 6525, 4.4).
    Failed(u32),
}

impl Answer {
    pub(super) fn of(number: u32) -> Self {
        match number {
            result::NOTHING_TO_DO => Answer::NothingToDo,
            result::PERFORMED => Answer::Performed,
            result::DENIED => Answer::Denied,
            other => Answer::Failed(other),
        }
    }

    pub(super) fn is_success(self) -> bool {
        matches!(self, Answer::Performed | Answer::NothingToDo)
    }
}

/// What has changed about the streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reconfigured {
    /// A request of ours was answered.
    Answered(Request, Answer),
    /// These streams of the peer's (none: all) have begun anew.
    IncomingReset(Vec<u16>),
    /// These streams of ours (none: all) have, since the peer asked for it.
    OutgoingReset(Vec<u16>),
    /// All streams of both and the TSNs have, since the peer asked for it.
    AssociationReset,
    /// The peer may send on so many streams more.
    IncomingAdded(u16),
    /// We may, since the peer asked for it.
    OutgoingAdded(u16),
}

/// A request of ours.
pub(super) struct OwnRequest {
    pub what: Request,
    /// The peer's request that it answers.
    pub in_reply: Option<u32>,
    /// How it was sent, once it was.
    pub sent: Option<Sent>,
}

/// A request of ours on its way.
pub(super) struct Sent {
    pub number: u32,
    pub parameter: Parameter,
    /// Our first TSN behind it.
    pub next_tsn: u64,
    /// The peer has said since it was sent last that it works on it: silence is no error.
    pub is_in_progress: bool,
    /// When it was sent last the peer had acknowledged everything that it could have to wait for.
    pub is_overdue: bool,
    /// It has had another number.
    pub is_renumbered: bool,
}

/// Answers that are kept, in case their request comes again: as many as a chunk has requests.
const KEPT: usize = 2;

/// What an association knows of both ends' requests.
#[derive(Default)]
pub(super) struct Reconfiguration {
    /// Number of our next request, and of the peer's.
    pub next: u32,
    pub expected: u32,
    pub asked: Option<OwnRequest>,
    pub wishes: VecDeque<OwnRequest>,
    answers: VecDeque<(u32, Parameter)>,
    /// The peer's reset of its streams that waits for its data.
    pub awaits_data: Option<u32>,
    /// The peer's reset of the association that waits for ours.
    pub awaits_silence: Option<u32>,
    pub timer: Timer,
    pub timeout: Duration,
    pub told: VecDeque<Reconfigured>,
}

impl Reconfiguration {
    /// Of an association whose ends begin with these TSNs.
    pub fn new(own: u32, peers: u32) -> Self {
        //= RFC 6525 (4.1): requests count from the initial TSN on.
        Reconfiguration { next: own, expected: peers, ..Self::default() }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.asked.is_none()
            && self.wishes.is_empty()
            && self.awaits_data.is_none()
            && self.awaits_silence.is_none()
    }

    /// Keeps an answer, and gives it to be sent.
    pub(super) fn keep(&mut self, response: u32, result: u32, next: Option<TsnReset>) -> Parameter {
        let answer = Parameter::ReconfigResponse { response, result, next };
        self.answers.retain(|(number, _)| *number != response);
        self.answers.push_back((response, answer.clone()));
        if self.answers.len() > KEPT {
            self.answers.pop_front();
        }
        answer
    }

    /// What is said to a request that came before.
    pub(super) fn repeat(&self, number: u32) -> Parameter {
        let kept = self.answers.iter().find(|(of, _)| *of == number);
        let is_late = (1..=KEPT as u32).contains(&self.expected.wrapping_sub(number));
        kept.map(|(_, answer)| answer.clone()).unwrap_or_else(|| {
            let result = if is_late { result::IN_PROGRESS } else { result::BAD_SEQUENCE };
            Parameter::ReconfigResponse { response: number, result, next: None }
        })
    }
}

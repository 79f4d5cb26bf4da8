//! Pushes that initiators submitted, by the names that those gave them, and notifications of their ends.

use std::collections::{BTreeMap, VecDeque};

use airloom_base::Instant;
use airloom_transports::wsp::status::Reason;

use super::code;
use crate::wap_gateway::fetch::{FetchId, FetchRequest};
use crate::wap_gateway::push::{PushId, PushOutcome};

/// Pushes that are over and still known, for queries; the oldest are forgotten first.
const MOST_OVER: usize = 4_096;

/// States of a message, by the standard's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(super) enum State {
    Pending,
    Delivered,
    Undeliverable,
    Expired,
    Aborted,
    Timeout,
    Cancelled,
    Unknown,
}

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct Submission {
    pub(super) push: PushId,
    /// As the initiator wrote it.
    pub(super) address: String,
    /// Who is to be told of the end.
    pub(super) notify: Option<url::Url>,
    pub(super) state: State,
    pub(super) code: u16,
    pub(super) words: &'static str,
    /// Seconds since 1970: when it came, and when its state changed.
    pub(super) received: u64,
    pub(super) event: u64,
}

impl Submission {
    pub(super) fn new(push: PushId, address: String, notify: Option<url::Url>, at: u64) -> Submission {
        let (state, code, words) = (State::Pending, code::ACCEPTED, "accepted for processing");
        Submission { push, address, notify, state, code, words, received: at, event: at }
    }

    fn end(&mut self, outcome: PushOutcome, at: u64) {
        (self.state, self.code, self.words) = match outcome {
            PushOutcome::Sent => (State::Delivered, code::OK, "sent; no confirmation was asked for"),
            PushOutcome::Confirmed => (State::Delivered, code::OK, "the client has confirmed it"),
            PushOutcome::Aborted(Reason::NetworkError | Reason::Disconnect) => {
                (State::Undeliverable, code::SERVICE_FAILURE, "the client is gone")
            }
            PushOutcome::Aborted(why) => (State::Aborted, code::aborted(why), "the client has refused it"),
            PushOutcome::Expired => {
                (State::Expired, code::SERVICE_FAILURE, "its time was over before it could be sent")
            }
            PushOutcome::TimedOut => {
                (State::Timeout, code::SERVICE_FAILURE, "the client was asked for a session and opened none")
            }
            PushOutcome::Cancelled => (State::Cancelled, code::OK, "it was taken back"),
            PushOutcome::Undeliverable => (
                State::Undeliverable,
                code::METHOD_NOT_POSSIBLE,
                "the session of the client does not take it",
            ),
        };
        self.event = at;
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Submissions {
    known: BTreeMap<String, Submission>,
    pending: BTreeMap<PushId, String>,
    over: VecDeque<String>,
}

impl Submissions {
    pub(super) fn get(&self, push_id: &str) -> Option<&Submission> {
        self.known.get(push_id)
    }

    pub(super) fn insert(&mut self, push_id: String, submission: Submission) {
        self.pending.insert(submission.push, push_id.clone());
        self.known.insert(push_id, submission);
    }

    /// It was not taken after all.
    pub(super) fn forget(&mut self, push_id: &str) {
        if let Some(submission) = self.known.remove(push_id) {
            self.pending.remove(&submission.push);
        }
    }

    /// A push is over; if it was submitted by PAP: its name, and what there is to tell.
    pub(super) fn end(&mut self, push: PushId, outcome: PushOutcome, at: u64) -> Option<(&str, &Submission)> {
        let push_id = self.pending.remove(&push)?;
        self.over.push_back(push_id);
        if self.over.len() > MOST_OVER
            && let Some(oldest) = self.over.pop_front()
        {
            self.known.remove(&oldest);
        }
        let push_id = self.over.back()?;
        let submission = self.known.get_mut(push_id)?;
        submission.end(outcome, at);
        Some((push_id, submission))
    }
}

/// A result notification: an initiator is told of the end.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(super) request: FetchRequest,
    pub(super) attempts: u32,
    /// It is being told; otherwise it waits until it is told again.
    pub(super) asking: bool,
    pub(super) due: Instant,
}

/// Those under way.
pub(crate) type Notices = BTreeMap<FetchId, Notice>;

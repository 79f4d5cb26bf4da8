//! One stream: its state, its windows, and what it still has to send.

use std::collections::VecDeque;

use airloom_base::Body;

use super::Priority;
use super::flow::{ReceiveWindow, SendWindow};
use crate::http::filler::LongFiller;

/// States of a stream that exists (RFC 9113, 5.1). Idle and closed ones are known by their numbers alone; reserved ones
/// come from pushes, which there are none of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    /// Both sides may send.
    #[default]
    Open,
    /// We have ended our side.
    HalfClosedLocal,
    /// The peer has ended its side.
    HalfClosedRemote,
}

/// One stream.
#[derive(Default)]
pub(super) struct Stream {
    pub(super) state: State,
    pub(super) send: SendWindow,
    pub(super) receive: ReceiveWindow,
    /// Octets of DATA that wait.
    pub(super) outgoing: VecDeque<Body>,
    /// What comes behind them; nothing is left of it while there are none.
    pub(super) filler: LongFiller,
    /// Does END_STREAM follow them?
    pub(super) ends: bool,
    pub(super) priority: Priority,
    /// Has the head of the message come that is not an interim response?
    pub(super) has_head: bool,
    /// Octets of the body that are still to come by the head's Content-Length.
    pub(super) expected: Option<u64>,
    /// The answer has no body whatever its head says: HEAD was asked for.
    pub(super) is_head: bool,
    /// Was anything of an answer sent?
    pub(super) is_answered: bool,
}

impl Stream {
    pub(super) fn new(send: u32, receive: u32) -> Self {
        Stream { send: SendWindow::new(send), receive: ReceiveWindow::new(receive), ..Default::default() }
    }

    /// May the peer send on it?
    pub(super) fn hears(&self) -> bool {
        self.state != State::HalfClosedRemote
    }

    /// May we send on it?
    pub(super) fn speaks(&self) -> bool {
        self.state != State::HalfClosedLocal
    }

    /// The peer has ended its side. Is it closed now?
    #[must_use]
    pub(super) fn remote_ended(&mut self) -> bool {
        let closed = self.state == State::HalfClosedLocal;
        self.state = State::HalfClosedRemote;
        closed
    }

    /// We have ended our side. Is it closed now?
    #[must_use]
    pub(super) fn local_ended(&mut self) -> bool {
        let closed = self.state == State::HalfClosedRemote;
        self.state = State::HalfClosedLocal;
        closed
    }

    /// Takes the next piece of the filler when the octets before it are gone.
    pub(super) fn refill(&mut self) {
        if self.outgoing.is_empty() {
            self.outgoing.extend(self.filler.next());
        }
    }

    /// Has it something to send for which there is room, where the connection has room for `room` octets?
    pub(super) fn can_send(&self, room: u32) -> bool {
        if self.outgoing.is_empty() { self.ends } else { room.min(self.send.room()) > 0 }
    }
}

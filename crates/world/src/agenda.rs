//! Who wants to be called when: one lazy wake-up per component in a binary heap.
//!
//! A component stores the moment it is armed for; an entry with another time is stale and skipped when it
//! surfaces. Moving a deadline later costs nothing: the earlier entry fires, finds nothing due and arms again.
//! Ties are broken by order of insertion. Chosen by measurement: `docs/explanation/packet-path.md`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use airloom_base::Instant;

/// A component that can be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Link(u32),
    Connection { host: u32, slot: u32, generation: u32 },
    App { host: u32, app: u16 },
    Timeline(u32),
}

/// The heap of wake-ups.
#[derive(Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Reverse<(Instant, u64, Key)>>,
    pushed: u64,
}

impl Agenda {
    pub(crate) fn push(&mut self, at: Instant, key: Key) {
        self.pushed += 1;
        self.heap.push(Reverse((at, self.pushed, key)));
    }

    /// The earliest entry, stale or not.
    pub(crate) fn peek(&self) -> Option<(Instant, Key)> {
        self.heap.peek().map(|Reverse((at, _, key))| (*at, *key))
    }

    pub(crate) fn pop(&mut self) -> Option<(Instant, Key)> {
        self.heap.pop().map(|Reverse((at, _, key))| (at, key))
    }

    /// How many entries were ever pushed: the number of events of a run, stale ones included.
    pub(crate) fn pushed(&self) -> u64 {
        self.pushed
    }
}

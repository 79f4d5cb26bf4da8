//! Who wants to be called when: one lazy wake-up per component in a binary heap.
//!
//! A component stores the moment it is armed for; an entry with another time is stale and skipped when it
//! surfaces. Moving a deadline later costs nothing: the earlier entry fires, finds nothing due and arms again.
//! Ties are broken by order of insertion. Chosen by measurement: `docs/explanation/packet-path.md`.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use airloom_base::Instant;

/// A component that can be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Link(u32),
    Connection { host: u32, slot: u32, generation: u32 },
    App { host: u32, app: u16 },
    Timeline(u32),
}

/// An entry; earliest first, then in order of insertion.
struct Entry {
    /// Time in the upper half, number of insertion in the lower: one comparison decides.
    order: u128,
    key: Key,
}

impl Ord for Entry {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        // Turned round: the heap gives the greatest first.
        other.order.cmp(&self.order)
    }
}

impl PartialOrd for Entry {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Entry {}

/// The heap of wake-ups.
#[derive(Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Entry>,
    pushed: u64,
}

impl Agenda {
    #[inline]
    pub(crate) fn push(&mut self, at: Instant, key: Key) {
        self.pushed += 1;
        self.heap.push(Entry { order: u128::from(at.as_nanos()) << 64 | u128::from(self.pushed), key });
    }

    /// The earliest entry, stale or not.
    #[inline]
    pub(crate) fn peek(&self) -> Option<(Instant, Key)> {
        self.heap.peek().map(|e| (Instant::from_nanos((e.order >> 64) as u64), e.key))
    }

    #[inline]
    pub(crate) fn pop(&mut self) {
        self.heap.pop();
    }

    /// How many entries were ever pushed: the number of events of a run, stale ones included.
    pub(crate) fn pushed(&self) -> u64 {
        self.pushed
    }
}

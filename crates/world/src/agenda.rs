//! Who wants to be called when: one lazy wake-up per component, the earliest in a short sorted front, the rest in a
//! binary heap.
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

/// How many of the earliest entries are kept sorted in front of the heap. Small networks never touch the heap; in
/// large ones the front saves as much as it costs.
const FRONT: usize = 8;

/// The wake-ups: a short sorted front and a heap behind it. Nothing in the front is later than anything in the heap.
#[derive(Default)]
pub(crate) struct Agenda {
    /// Latest first, so that the earliest is taken off the end.
    front: Vec<Entry>,
    heap: BinaryHeap<Entry>,
    pushed: u64,
}

impl Agenda {
    #[inline]
    pub(crate) fn push(&mut self, at: Instant, key: Key) {
        self.pushed += 1;
        let entry = Entry { order: u128::from(at.as_nanos()) << 64 | u128::from(self.pushed), key };
        // Behind the front if that is full or ends before it, unless nothing is behind.
        let belongs_behind = match self.front.first() {
            Some(latest) => entry.order > latest.order && !(self.heap.is_empty() && self.front.len() < FRONT),
            None => !self.heap.is_empty(),
        };
        if belongs_behind {
            return self.heap.push(entry);
        }
        let place = self.front.iter().rposition(|e| e.order > entry.order).map_or(0, |n| n + 1);
        self.front.insert(place, entry);
        if self.front.len() > FRONT {
            let latest = self.front.remove(0);
            self.heap.push(latest);
        }
    }

    /// The earliest entry, stale or not.
    #[inline]
    pub(crate) fn peek(&self) -> Option<(Instant, Key)> {
        // `pop` refills the front, so the heap is never asked.
        self.front.last().map(|e| (Instant::from_nanos((e.order >> 64) as u64), e.key))
    }

    #[inline]
    pub(crate) fn pop(&mut self) {
        self.front.pop();
        if self.front.is_empty() {
            self.refill();
        }
    }

    fn refill(&mut self) {
        while self.front.len() < FRONT / 2
            && let Some(entry) = self.heap.pop()
        {
            self.front.insert(0, entry);
        }
    }

    /// How many entries were ever pushed: the number of events of a run, stale ones included.
    pub(crate) fn pushed(&self) -> u64 {
        self.pushed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airloom_base::random::Stream;

    #[test]
    fn entries_come_out_by_time_and_then_in_order_of_insertion() {
        let mut draw = Stream::new(1, "agenda");
        for size in [1, 3, FRONT, FRONT + 1, 50, 2000] {
            let mut agenda = Agenda::default();
            let mut model: Vec<(u64, u32)> = Vec::new();
            let mut name = 0;
            for _ in 0..20_000 {
                // Grows to about `size`, with many ties.
                if model.len() < size && draw.chance(0.6) || model.is_empty() {
                    name += 1;
                    let at = draw.below(50) + model.iter().map(|m| m.0).min().unwrap_or(0);
                    agenda.push(Instant::from_nanos(at), Key::Link(name));
                    model.push((at, name));
                } else {
                    let first = *model.iter().min().expect("it is not empty");
                    assert_eq!(agenda.peek(), Some((Instant::from_nanos(first.0), Key::Link(first.1))));
                    agenda.pop();
                    model.retain(|m| *m != first);
                }
            }
        }
    }
}

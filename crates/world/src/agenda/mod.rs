//! Who wants to be called when: one lazy wake-up per component, the earliest in a short sorted front, the rest in a
//! radix heap.
//!
//! A component stores the moment it is armed for; an entry with another time is stale and skipped when it
//! surfaces. Moving a deadline later costs nothing: the earlier entry fires, finds nothing due and arms again.
//! Ties are broken by order of insertion. Chosen by measurement: `docs/explanation/packet-path.md`.

mod entry;
mod radix;

use smart_default::SmartDefault;

use airloom_base::Instant;

pub(crate) use entry::Key;
use entry::{Entry, order};
use radix::RadixHeap;

/// When a component will be woken: what stands in the agenda for it.
#[derive(Clone, Copy, Debug, SmartDefault)]
pub(crate) struct Wakeup {
    /// The entry that counts; `FAR_FUTURE` if none.
    #[default(Instant::FAR_FUTURE)]
    at: Instant,
    /// A later entry that was there before an earlier one was needed. When the earlier has fired, this one serves
    /// again: a short timer that comes and goes in front of a long one leaves no trail of stale entries.
    #[default(Instant::FAR_FUTURE)]
    spare: Instant,
}

impl Wakeup {
    /// Does the entry at `at` count? If so it is used up.
    #[inline]
    pub(crate) fn take(&mut self, at: Instant) -> bool {
        let counts = self.at == at;
        if counts {
            self.at = Instant::FAR_FUTURE;
        }
        counts
    }

    /// Does the entry at `at` count?
    #[inline]
    pub(crate) fn is(&self, at: Instant) -> bool {
        self.at == at
    }

    /// The component wants to be woken at `deadline`. True if that needs an entry of its own.
    #[inline]
    pub(crate) fn needs_entry(&mut self, now: Instant, deadline: Instant) -> bool {
        if deadline >= self.at {
            return false;
        }
        if self.spare <= now {
            // Its entry has come up and was dropped.
            self.spare = Instant::FAR_FUTURE;
        }
        if self.spare <= deadline {
            self.at = std::mem::replace(&mut self.spare, Instant::FAR_FUTURE);
            return false;
        }
        self.spare = self.spare.min(self.at);
        self.at = deadline;
        true
    }
}

/// How many of the earliest entries are kept sorted in front of the heap. Small networks never touch the heap; in
/// large ones the front saves as much as it costs.
const FRONT: usize = 8;

/// The wake-ups: the next one, a short sorted front, and what is behind it. Nothing in the front is earlier than the next
/// nor later than anything behind it.
#[derive(getset::CopyGetters)]
pub(crate) struct Agenda {
    /// Earlier than all else; if there is none, the earliest is the last of the front. A busy link enters here and
    /// leaves again without being sorted in.
    next: Option<Entry>,
    /// Latest first, so that the earliest is taken off the end.
    front: Vec<Entry>,
    behind: RadixHeap,
    /// How many entries were ever pushed: the number of events of a run, stale ones included.
    #[getset(get_copy = "pub(crate)")]
    pushed: u64,
}

impl Default for Agenda {
    fn default() -> Self {
        // Room for a small network, so that no entry of it ever costs an allocation.
        let (front, behind) = (Vec::with_capacity(FRONT + 1), RadixHeap::with_capacity(64));
        Agenda { next: None, front, behind, pushed: 0 }
    }
}

impl Agenda {
    #[inline]
    pub(crate) fn push(&mut self, at: Instant, key: Key) {
        self.pushed += 1;
        let entry = Entry { order: order(at, self.pushed), key };
        // The front is refilled when it gets empty: then there is nothing behind it either.
        if self.next.is_none() && self.front.last().is_none_or(|first| entry.order < first.order) {
            self.next = Some(entry);
        } else {
            self.push_behind(entry);
        }
    }

    #[inline(never)]
    fn push_behind(&mut self, entry: Entry) {
        let entry = match &mut self.next {
            Some(next) if entry.order < next.order => std::mem::replace(next, entry),
            _ => entry,
        };
        // Behind the front if that is full or ends before it, unless nothing is behind.
        if self.behind.is_empty() && self.front.len() < FRONT {
            return insert(&mut self.front, entry);
        }
        if self.front.first().is_none_or(|latest| entry.order > latest.order) {
            return self.behind.push(entry);
        }
        insert(&mut self.front, entry);
        if self.front.len() > FRONT {
            let latest = self.front.remove(0);
            self.behind.push(latest);
        }
    }

    /// The earliest entry, stale or not.
    #[inline]
    pub(crate) fn peek(&self) -> Option<(Instant, Key)> {
        // The front is refilled when it gets empty: what is behind it is never asked.
        self.next.as_ref().or(self.front.last()).map(Entry::parts)
    }

    /// Takes the earliest entry, stale or not, if it is not later than `end`.
    #[inline]
    pub(crate) fn pop(&mut self, end: Instant) -> Option<(Instant, Key)> {
        let parts = self.peek()?;
        if parts.0 > end {
            return None;
        }
        if self.next.is_some() {
            self.next = None;
        } else {
            self.front.pop();
            if self.front.is_empty() && !self.behind.is_empty() {
                self.refill();
            }
        }
        Some(parts)
    }

    #[inline(never)]
    fn refill(&mut self) {
        let front = &mut self.front;
        self.behind.take(FRONT, |entry| insert(front, entry));
    }
}

/// Puts an entry into its place in the front.
#[inline]
fn insert(front: &mut Vec<Entry>, entry: Entry) {
    front.push(entry);
    // Most entries are later than a few others, which move up by one.
    let mut place = front.len() - 1;
    while place > 0 && front[place - 1].order < entry.order {
        front[place] = front[place - 1];
        place -= 1;
    }
    front[place] = entry;
}

#[cfg(test)]
mod tests {
    use super::*;
    use airloom_base::random::Stream;

    #[test]
    fn a_short_timer_in_front_of_a_long_one_leaves_no_trail() {
        let at = Instant::from_nanos;
        let mut wakeup = Wakeup::default();
        assert!(wakeup.needs_entry(at(0), at(1000)), "the long one");
        for short in [10, 20, 30] {
            assert!(wakeup.needs_entry(at(short - 5), at(short)), "the short one");
            assert!(wakeup.take(at(short)));
            assert!(!wakeup.needs_entry(at(short), at(1000 + short)), "the old entry of the long one serves");
            assert!(wakeup.is(at(1000)));
        }
        assert!(wakeup.take(at(1000)));
        assert!(wakeup.needs_entry(at(1000), at(1030)));
    }

    #[test]
    fn a_spare_entry_that_came_up_is_not_relied_on() {
        let at = Instant::from_nanos;
        let mut wakeup = Wakeup::default();
        assert!(wakeup.needs_entry(at(0), at(100)));
        assert!(wakeup.needs_entry(at(0), at(50)));
        assert!(wakeup.take(at(50)));
        // The component was fed late: the entry at 100 has come up as stale.
        assert!(wakeup.needs_entry(at(150), at(200)));
        assert!(wakeup.is(at(200)));
    }

    #[test]
    fn entries_come_out_by_time_and_then_in_order_of_insertion() {
        let mut draw = Stream::new(1, "agenda");
        for size in [1, 3, FRONT, FRONT + 1, 50, 2000] {
            let mut agenda = Agenda::default();
            let mut model: Vec<(u64, u32)> = Vec::new();
            let mut name = 0;
            for _ in 0..20_000 {
                // Grows to about `size`, with many ties; now and then something on another scale of time.
                if model.len() < size && draw.chance(0.6) || model.is_empty() {
                    name += 1;
                    let scale = 1 << draw.below(40);
                    let far = if draw.chance(0.05) { draw.below(scale) } else { 0 };
                    let at = far + draw.below(50) + model.iter().map(|m| m.0).min().unwrap_or(0);
                    agenda.push(Instant::from_nanos(at), Key::Link(name));
                    model.push((at, name));
                } else {
                    let first = *model.iter().min().expect("it is not empty");
                    assert_eq!(agenda.peek(), Some((Instant::from_nanos(first.0), Key::Link(first.1))));
                    assert!(agenda.pop(Instant::from_nanos(first.0)).is_some());
                    model.retain(|m| *m != first);
                }
            }
        }
    }
}

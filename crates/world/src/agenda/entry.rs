//! What stands in the agenda: who, and when.

use airloom_base::Instant;

/// A component that can be woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Link(u32),
    Connection { host: u32, slot: u32, generation: u32 },
    App { host: u32, app: u16 },
    Timeline(u32),
}

/// Time in the upper half, number of insertion in the lower: one comparison decides.
#[inline]
pub(super) fn order(at: Instant, pushed: u64) -> u128 {
    u128::from(at.as_nanos()) << 64 | u128::from(pushed)
}

/// An entry of the agenda.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    pub(super) order: u128,
    pub(super) key: Key,
}

impl Entry {
    #[inline]
    pub(super) fn parts(&self) -> (Instant, Key) {
        (Instant::from_nanos((self.order >> 64) as u64), self.key)
    }
}

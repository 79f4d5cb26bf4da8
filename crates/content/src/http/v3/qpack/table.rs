//! The table that grows: entries in the order in which they came (RFC 9204, 3.2).

use std::collections::VecDeque;

use crate::http::fields::{ENTRY, Line};

/// Entries, which leave at one end as others come at the other. Their absolute indexes begin with 0.
#[derive(Default)]
pub struct Table {
    entries: VecDeque<Line>,
    octets: usize,
    capacity: usize,
    inserted: u64,
}

/// What an entry counts.
pub const fn size(name: usize, value: usize) -> usize {
    name + value + ENTRY
}

impl Table {
    /// How many entries have come in all.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Octets that entries may count together.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The absolute index of the oldest entry there is.
    pub fn oldest(&self) -> u64 {
        self.inserted - self.entries.len() as u64
    }

    /// The entry with that absolute index.
    pub fn get(&self, absolute: u64) -> Option<&Line> {
        let place = absolute.checked_sub(self.oldest())?;
        self.entries.get(usize::try_from(place).ok()?)
    }

    /// The absolute index of the newest entry that is this line, and of the newest one with this name.
    pub fn find(&self, name: &[u8], value: &[u8]) -> (Option<u64>, Option<u64>) {
        let mut of_name = None;
        for (place, (known, its)) in self.entries.iter().enumerate().rev() {
            if known == name {
                let absolute = self.oldest() + place as u64;
                if its == value {
                    return (Some(absolute), Some(of_name.unwrap_or(absolute)));
                }
                of_name.get_or_insert(absolute);
            }
        }
        (None, of_name)
    }

    /// Another capacity; the oldest entries leave if it takes that.
    pub fn resize(&mut self, capacity: usize) {
        self.capacity = capacity;
        while self.octets > capacity {
            self.evict();
        }
    }

    /// Would an entry of this size have room, if all entries older than this one may leave?
    pub fn has_room(&self, size: usize, before: u64) -> bool {
        let may_leave = before.saturating_sub(self.oldest()) as usize;
        let freed: usize =
            self.entries.iter().take(may_leave).map(|(n, v)| self::size(n.len(), v.len())).sum();
        size + self.octets - freed <= self.capacity
    }

    /// Adds an entry. False: it is larger than the capacity, and nothing has changed.
    #[must_use]
    pub fn insert(&mut self, line: Line) -> bool {
        let size = size(line.0.len(), line.1.len());
        //= RFC 9204 (3.2.2): an entry larger than the capacity is an error.
        if size > self.capacity {
            return false;
        }
        while self.octets + size > self.capacity {
            self.evict();
        }
        self.octets += size;
        self.inserted += 1;
        self.entries.push_back(line);
        true
    }

    fn evict(&mut self) {
        if let Some((name, value)) = self.entries.pop_front() {
            self.octets -= size(name.len(), value.len());
        }
    }
}

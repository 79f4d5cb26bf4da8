//! A radix heap: a priority queue for keys that come out in rising order.
//!
//! Ahuja, Mehlhorn, Orlin, Tarjan, "Faster algorithms for the shortest path problem" (J. ACM 37, 1990): an entry lies in
//! the bucket of the highest bit in which it differs from a base that no entry is below. Only the first bucket that has
//! entries is ever looked at; when it is reached, its least entry becomes the base and the others move to buckets further
//! down. An entry moves as often as there are scales of time between it and the present, whatever else waits, and long
//! timers are not touched before their scale of time is reached.
//!
//! Unlike there, an entry may be earlier than the base (which runs ahead of the present when the present is quiet): the
//! base is then lowered, for which the buckets below are emptied into one.

use super::entry::Entry;

/// One bucket for the base itself, and one for each bit of an entry's order.
const BUCKETS: usize = 1 + 128;

/// No node.
const NONE: u32 = u32::MAX;

/// An entry in its bucket's list.
struct Node {
    entry: Entry,
    next: u32,
}

/// See the module.
pub(super) struct RadixHeap {
    /// All nodes, used and free: grows with the greatest number of entries only.
    nodes: Vec<Node>,
    /// First free node.
    free: u32,
    /// First node of each bucket; in no order.
    buckets: [u32; BUCKETS],
    /// A bit for each bucket that has entries.
    used: [u64; BUCKETS.div_ceil(64)],
    base: u128,
    len: usize,
}

impl RadixHeap {
    /// With room for so many entries.
    pub(super) fn with_capacity(room: usize) -> RadixHeap {
        let nodes = Vec::with_capacity(room);
        RadixHeap {
            nodes,
            free: NONE,
            buckets: [NONE; BUCKETS],
            used: [0; BUCKETS.div_ceil(64)],
            base: 0,
            len: 0,
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts an entry in.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        if entry.order < self.base {
            self.lower(entry.order);
        }
        self.len += 1;
        let place = if self.free == NONE { self.nodes.len() as u32 } else { self.free };
        let node = Node { entry, next: self.link(place, entry.order) };
        if let Some(free) = self.nodes.get_mut(place as usize) {
            self.free = free.next;
            *free = node;
        } else {
            self.nodes.push(node);
        }
    }

    /// Takes some of the earliest entries out, `most` at the most and at least one if there is any; in no order. All that
    /// remain are later.
    pub(super) fn take(&mut self, most: usize, mut each: impl FnMut(Entry)) {
        while let Some(first) = self.first() {
            let mut next = self.empty(first);
            let (count, least) = self.survey(next);
            if count <= most {
                self.len -= count;
                while let Some(node) = self.nodes.get_mut(next as usize) {
                    each(node.entry);
                    let after = std::mem::replace(&mut node.next, self.free);
                    self.free = std::mem::replace(&mut next, after);
                }
                return;
            }
            self.base = least;
            self.spread(next);
        }
    }

    /// The first bucket that has entries.
    #[inline]
    fn first(&self) -> Option<usize> {
        // Nearly all are in the middle: the upper half of an order is its time.
        let word = (0..self.used.len()).find(|&word| self.used[word] != 0)?;
        Some(word * 64 + self.used[word].trailing_zeros() as usize)
    }

    /// The bucket of an order.
    #[inline]
    fn bucket(&self, order: u128) -> usize {
        let differs = order ^ self.base;
        let (time, number) = ((differs >> 64) as u64, differs as u64);
        if time != 0 { 128 - time.leading_zeros() as usize } else { 64 - number.leading_zeros() as usize }
    }

    /// Takes a bucket's list away.
    #[inline]
    fn empty(&mut self, bucket: usize) -> u32 {
        self.used[bucket / 64] &= !(1 << (bucket % 64));
        std::mem::replace(&mut self.buckets[bucket], NONE)
    }

    /// Makes a node, linked to nothing yet, the first of its bucket.
    #[inline]
    fn link(&mut self, place: u32, order: u128) -> u32 {
        let bucket = self.bucket(order);
        self.used[bucket / 64] |= 1 << (bucket % 64);
        std::mem::replace(&mut self.buckets[bucket], place)
    }

    /// Puts the nodes of a list into their buckets.
    #[inline]
    fn spread(&mut self, mut next: u32) {
        while let Some(node) = self.nodes.get(next as usize) {
            let (order, after) = (node.entry.order, node.next);
            self.nodes[next as usize].next = self.link(next, order);
            next = after;
        }
    }

    /// How many nodes a list has, and the least order of them.
    #[inline]
    fn survey(&self, mut next: u32) -> (usize, u128) {
        let (mut count, mut least) = (0, u128::MAX);
        while let Some(node) = self.nodes.get(next as usize) {
            count += 1;
            least = least.min(node.entry.order);
            next = node.next;
        }
        (count, least)
    }

    /// Lowers the base for an earlier order, to the first of all that differ from it only below the highest bit that
    /// changes. What differed from the old base below that bit differs from the new one in just it.
    #[cold]
    fn lower(&mut self, order: u128) {
        let highest = self.bucket(order);
        self.base = order >> (highest - 1) << (highest - 1);
        for bucket in 0..highest {
            let list = self.empty(bucket);
            self.spread(list);
        }
    }
}

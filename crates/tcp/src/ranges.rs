//! A set of sequence numbers as sorted intervals: the sender's scoreboard, the receiver's holes, and what an analysis of
//! a capture has seen.
//!
//! Sequence numbers are 64 bits wide inside a connection; their low 32 bits are those on the wire. Nearly all
//! changes happen at the ends of the list, where they cost a few instructions.

use std::collections::VecDeque;

/// The low end and the first number past the high end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The lowest number.
    pub start: u64,
    /// One past the highest.
    pub end: u64,
}

impl Range {
    /// How many numbers are in it.
    #[expect(clippy::len_without_is_empty, reason = "no range of a set is empty")]
    pub fn len(&self) -> u64 {
        self.end - self.start
    }
    /// Is this number in it?
    pub fn contains(&self, at: u64) -> bool {
        self.start <= at && at < self.end
    }
}

/// Disjoint ranges in ascending order; neighbours do not touch.
#[derive(Clone, Debug, Default, getset::CopyGetters)]
pub struct Ranges {
    list: VecDeque<Range>,
    /// How many numbers are in the set.
    #[getset(get_copy = "pub")]
    total: u64,
}

impl Ranges {
    /// No numbers?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }
    /// Takes everything out.
    pub fn clear(&mut self) {
        self.list.clear();
        self.total = 0;
    }
    /// Number of ranges.
    #[inline]
    pub fn count(&self) -> usize {
        self.list.len()
    }
    /// The ranges from the highest down.
    pub fn descending(&self) -> impl Iterator<Item = Range> + '_ {
        self.list.iter().rev().copied()
    }
    /// The ranges from the lowest up.
    #[cfg(test)]
    pub fn ascending(&self) -> impl Iterator<Item = Range> + '_ {
        self.list.iter().copied()
    }
    /// The lowest number in the set.
    pub fn lowest(&self) -> Option<u64> {
        self.list.front().map(|r| r.start)
    }
    /// One past the highest number in the set.
    pub fn end(&self) -> Option<u64> {
        self.list.back().map(|r| r.end)
    }

    /// Index of the first range that ends after `at`.
    fn first_after(&self, at: u64) -> usize {
        match self.list.back() {
            Some(last) if last.end <= at => self.list.len(),
            Some(last) if last.start <= at => self.list.len() - 1,
            _ => self.list.partition_point(|r| r.end <= at),
        }
    }

    /// Adds `start..end` and returns how many numbers were new.
    pub fn insert(&mut self, start: u64, end: u64) -> u64 {
        if start >= end {
            return 0;
        }
        // A range that ends exactly at `start` touches and is joined.
        let first = self.first_after(start.saturating_sub(1));
        let mut merged = Range { start, end };
        let mut old = 0;
        let mut past = first;
        while let Some(r) = self.list.get(past).filter(|r| r.start <= end) {
            merged.start = merged.start.min(r.start);
            merged.end = merged.end.max(r.end);
            old += r.len();
            past += 1;
        }
        if past == first {
            self.list.insert(first, merged);
        } else {
            self.list[first] = merged;
            if past - first > 1 {
                self.list.drain(first + 1..past);
            }
        }
        let new = merged.len() - old;
        self.total += new;
        new
    }

    /// Takes out everything below `at` and returns how many numbers that was.
    pub fn remove_below(&mut self, at: u64) -> u64 {
        let before = self.total;
        while let Some(first) = self.list.front_mut() {
            if first.end <= at {
                self.total -= first.len();
                self.list.pop_front();
            } else {
                if first.start < at {
                    self.total -= at - first.start;
                    first.start = at;
                }
                break;
            }
        }
        before - self.total
    }

    /// The range that holds `at`.
    pub fn containing(&self, at: u64) -> Option<Range> {
        self.list.get(self.first_after(at)).copied().filter(|r| r.contains(at))
    }

    /// The lowest number not below `from` that is not in the set, and the next one above it that is.
    pub fn next_gap(&self, from: u64) -> (u64, u64) {
        let mut at = self.first_after(from);
        let mut start = from;
        // At most one step: neighbours do not touch.
        if let Some(r) = self.list.get(at).filter(|r| r.start <= start) {
            start = r.end;
            at += 1;
        }
        (start, self.list.get(at).map_or(u64::MAX, |r| r.start))
    }

    /// How many numbers of the set lie at or above `at`. Walks down from the top.
    pub fn total_from(&self, at: u64) -> u64 {
        self.descending().take_while(|r| r.end > at).map(|r| r.end - r.start.max(at)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(set: &Ranges) -> Vec<(u64, u64)> {
        set.ascending().map(|r| (r.start, r.end)).collect()
    }

    #[test]
    fn touching_and_overlapping_ranges_become_one() {
        let mut set = Ranges::default();
        assert_eq!(set.insert(10, 20), 10);
        assert_eq!(set.insert(30, 40), 10);
        assert_eq!(set.insert(20, 25), 5);
        assert_eq!(listed(&set), [(10, 25), (30, 40)]);
        assert_eq!(set.insert(12, 35), 5);
        assert_eq!(listed(&set), [(10, 40)]);
        assert_eq!(set.insert(10, 40), 0);
        assert_eq!(set.insert(5, 10), 5);
        assert_eq!((set.total(), set.count()), (35, 1));
    }

    #[test]
    fn gaps_are_found_between_above_and_below() {
        let mut set = Ranges::default();
        set.insert(10, 20);
        set.insert(30, 40);
        assert_eq!(set.next_gap(0), (0, 10));
        assert_eq!(set.next_gap(10), (20, 30));
        assert_eq!(set.next_gap(25), (25, 30));
        assert_eq!(set.next_gap(35), (40, u64::MAX));
        assert_eq!(set.containing(39).map(|r| r.start), Some(30));
        assert_eq!(set.containing(20), None);
        assert_eq!(set.total_from(15), 15);
    }

    #[test]
    fn the_set_agrees_with_a_plain_bitmap() {
        // A fixed walk through a small space reaches all cases of insertion and removal.
        let (mut set, mut bits, mut low) = (Ranges::default(), [false; 300], 0_usize);
        let mut x = 1_u64;
        for _ in 0..3000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let start = low + (x >> 33) as usize % (280 - low.min(200));
            let end = (start + (x >> 50) as usize % 20).min(300);
            let fresh = bits[start..end].iter().filter(|b| !**b).count() as u64;
            assert_eq!(set.insert(start as u64, end as u64), fresh);
            bits[start..end].fill(true);
            if x.is_multiple_of(13) {
                low = (low + 3) % 200;
                let gone = bits[..low].iter().filter(|b| **b).count() as u64;
                assert_eq!(set.remove_below(low as u64), gone);
                bits[..low].fill(false);
            }
            assert_eq!(set.total(), bits.iter().filter(|b| **b).count() as u64);
            let gap = (low..300).find(|i| !bits[*i]).unwrap_or(300);
            assert_eq!(set.next_gap(low as u64).0, gap as u64);
            assert!(set.ascending().zip(set.ascending().skip(1)).all(|(a, b)| a.end < b.start));
        }
    }
}

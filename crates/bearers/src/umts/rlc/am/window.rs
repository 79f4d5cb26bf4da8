//! Sequence numbers modulo 4096, sets of them, and tables indexed by them.

use smart_default::SmartDefault;

/// Modulus of acknowledged mode sequence numbers.
//= TS 25.322 9.4: acknowledged mode counts PDUs modulo 2^12.
pub const MODULUS: u16 = 4096;

/// `sn + n`.
#[inline]
pub const fn add(sn: u16, n: u16) -> u16 {
    sn.wrapping_add(n) & (MODULUS - 1)
}

/// How far `to` lies ahead of `from`: the comparison with `from` as modulus base.
//= TS 25.322 9.4: numbers are compared after the base (VT(A) or VR(R)) was subtracted.
#[inline]
pub const fn distance(from: u16, to: u16) -> u16 {
    to.wrapping_sub(from) & (MODULUS - 1)
}

const WORDS: usize = MODULUS as usize / 64;

/// A set of sequence numbers.
#[derive(Clone, SmartDefault, getset::CopyGetters)]
pub struct SnSet {
    #[default([0; WORDS])]
    words: [u64; WORDS],
    /// How many are in it.
    #[getset(get_copy = "pub")]
    len: u16,
}

impl SnSet {
    /// Is none in it?
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// The word that holds `sn`, and its bit there.
    #[inline]
    const fn place(sn: u16) -> (usize, u64) {
        ((sn / 64) as usize % WORDS, 1 << (sn % 64))
    }
    /// Is `sn` in it?
    #[inline]
    pub fn contains(&self, sn: u16) -> bool {
        let (word, bit) = Self::place(sn);
        self.words[word] & bit != 0
    }
    /// Puts `sn` in; yes if it was not there.
    #[inline]
    pub fn insert(&mut self, sn: u16) -> bool {
        let (word, bit) = Self::place(sn);
        let is_new = self.words[word] & bit == 0;
        if is_new {
            self.words[word] |= bit;
            self.len += 1;
        }
        is_new
    }
    /// Takes `sn` out; yes if it was there.
    #[inline]
    pub fn remove(&mut self, sn: u16) -> bool {
        let (word, bit) = Self::place(sn);
        let was_there = self.words[word] & bit != 0;
        if was_there {
            self.words[word] &= !bit;
            self.len -= 1;
        }
        was_there
    }
    /// Takes all out.
    pub fn clear(&mut self) {
        if self.len > 0 {
            *self = SnSet::default();
        }
    }
    /// The first member at `base` or after it, going round.
    pub fn first_from(&self, base: u16) -> Option<u16> {
        if self.len == 0 {
            return None;
        }
        self.scan(base, 0)
    }
    /// The first non-member at `base` or after it, going round.
    pub fn first_absent_from(&self, base: u16) -> Option<u16> {
        if self.len == MODULUS {
            return None;
        }
        self.scan(base, u64::MAX)
    }

    /// The first number from `base` on whose bit, flipped by `flip`, is set.
    #[inline]
    fn scan(&self, base: u16, flip: u64) -> Option<u16> {
        let mut at = usize::from(base / 64) % WORDS;
        let mut word = (self.words[at] ^ flip) & (u64::MAX << (base % 64));
        // Once round, and the part of the first word before `base`.
        for _ in 0..=WORDS {
            if word != 0 {
                return Some((at * 64) as u16 + word.trailing_zeros() as u16);
            }
            at = (at + 1) % WORDS;
            word = self.words[at] ^ flip;
        }
        None
    }
}

/// A table indexed by sequence number that holds a window of entries and grows with it.
#[derive(Clone, Default)]
pub struct SnRing<T> {
    slots: Vec<T>,
}

impl<T: Copy + Default> SnRing<T> {
    /// Makes room for the entries `base..base + span`; those already there keep their places.
    #[inline]
    pub fn reserve(&mut self, base: u16, span: u16) {
        if usize::from(span) > self.slots.len() {
            self.grow(base, span);
        }
    }

    #[cold]
    fn grow(&mut self, base: u16, span: u16) {
        let old = std::mem::take(&mut self.slots);
        let size = usize::from(span).next_power_of_two().max(64);
        self.slots = vec![T::default(); size];
        for i in 0..old.len() {
            let sn = usize::from(add(base, i as u16));
            self.slots[sn & (size - 1)] = old[sn & (old.len() - 1)];
        }
    }

    #[inline]
    fn slot(&self, sn: u16) -> usize {
        usize::from(sn) & (self.slots.len() - 1)
    }
    /// The entry at `sn`, which lies in a reserved window.
    #[inline]
    pub fn get(&self, sn: u16) -> &T {
        &self.slots[self.slot(sn)]
    }
    /// The entry at `sn`, to change.
    #[inline]
    pub fn get_mut(&mut self, sn: u16) -> &mut T {
        let slot = self.slot(sn);
        &mut self.slots[slot]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_wrap_at_4096() {
        assert_eq!(add(4095, 1), 0);
        assert_eq!(distance(4090, 5), 11);
        assert_eq!(distance(5, 4090), 4085);
    }

    #[test]
    fn a_set_finds_the_next_member_and_the_next_gap_across_the_wrap() {
        let mut set = SnSet::default();
        assert_eq!(set.first_from(7), None);
        for sn in [4090, 4095, 0, 1, 130] {
            assert!(set.insert(sn));
            assert!(!set.insert(sn));
        }
        assert_eq!(set.first_from(4091), Some(4095));
        assert_eq!(set.first_from(2), Some(130));
        assert_eq!(set.first_from(131), Some(4090));
        assert_eq!(set.first_absent_from(4095), Some(2));
        assert_eq!(set.first_absent_from(5), Some(5));
        assert!(set.remove(0) && !set.remove(0));
        assert_eq!((set.len(), set.first_absent_from(4095)), (4, Some(0)));
        set.clear();
        assert!(set.is_empty());
    }

    #[test]
    fn a_full_set_has_no_gap() {
        let mut set = SnSet::default();
        (0..MODULUS).for_each(|sn| {
            set.insert(sn);
        });
        assert_eq!(set.first_absent_from(99), None);
        assert_eq!(set.first_from(4000), Some(4000));
    }

    #[test]
    fn a_ring_keeps_its_window_when_it_grows() {
        let mut ring = SnRing::default();
        let base = 4080;
        for i in 0..500 {
            ring.reserve(base, i + 1);
            *ring.get_mut(add(base, i)) = i;
        }
        for i in 0..500 {
            assert_eq!(*ring.get(add(base, i)), i);
        }
    }
}

//! A hash table for look-up only: fixed hasher, no iteration, so its order can never reach a result.

use std::borrow::Borrow;
#[expect(clippy::disallowed_types, reason = "wrapped so that it cannot be iterated")]
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Multiply-and-fold hasher with a fixed start: fast on the small keys of a network (addresses, ports).
/// Not resistant to chosen keys: daemons that face strangers bound the number of entries instead.
#[derive(Default)]
pub struct FixedHasher(u64);

impl FixedHasher {
    #[inline]
    fn add(&mut self, word: u64) {
        let wide = u128::from(self.0 ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835);
        self.0 = (wide as u64) ^ ((wide >> 64) as u64);
    }
}

impl Hasher for FixedHasher {
    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }
    #[inline]
    fn write_u8(&mut self, n: u8) {
        self.add(u64::from(n));
    }
    #[inline]
    fn write_u16(&mut self, n: u16) {
        self.add(u64::from(n));
    }
    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.add(u64::from(n));
    }
    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.add(n);
    }
    #[inline]
    fn write_u128(&mut self, n: u128) {
        // Numbers of this width are addresses: those of IPv4 differ in the low half only.
        self.add((n as u64) ^ ((n >> 64) as u64).rotate_left(23));
    }
    #[inline]
    fn write_usize(&mut self, n: usize) {
        self.add(n as u64);
    }
}

/// A table that answers questions and cannot be walked.
#[expect(clippy::disallowed_types, reason = "wrapped so that it cannot be iterated")]
#[derive(Clone)]
pub struct Table<K, V>(HashMap<K, V, BuildHasherDefault<FixedHasher>>);

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Table(Default::default())
    }
}

impl<K: Eq + Hash, V> Table<K, V> {
    /// The value at `key`.
    #[inline]
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key)
    }
    /// The value at `key`, to change.
    #[inline]
    pub fn get_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        self.0.get_mut(key)
    }
    /// Puts `value` at `key` and returns what was there.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.0.insert(key, value)
    }
    /// Takes out what is at `key`.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        self.0.remove(key)
    }
    /// Is there something at `key`?
    pub fn contains<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(key)
    }
    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Is it empty?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

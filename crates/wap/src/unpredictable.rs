//! Numbers that nobody can tell beforehand: names of sessions, questions that show whether somebody is where it says.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

/// A series of numbers of which those that are known tell nothing of the next one: SipHash-2-4 of their count under a key.
///
/// A daemon takes the key from the machine's own randomness, a simulated host from the run's seed.
#[derive(Clone)]
pub struct Unpredictable {
    key: (u64, u64),
    count: u64,
}

impl Unpredictable {
    /// The series of a key.
    pub fn new(key: (u64, u64)) -> Unpredictable {
        Unpredictable { key, count: 0 }
    }

    /// The next number.
    pub fn bits(&mut self) -> u64 {
        self.count += 1;
        let mut hasher = SipHasher24::new_with_keys(self.key.0, self.key.1);
        hasher.write_u64(self.count);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_gives_its_own_series_again() {
        let series = |key| {
            let mut numbers = Unpredictable::new(key);
            [0; 4].map(|_| numbers.bits())
        };
        assert_eq!(series((1, 2)), series((1, 2)));
        let mut all = [series((1, 2)), series((1, 3)), series((2, 2))].concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 12);
    }
}

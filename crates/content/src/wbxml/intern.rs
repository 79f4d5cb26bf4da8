//! Equal strings get equal numbers.

/// Numbers strings from 0 in order of appearance. Looking one up takes a bounded number of steps whatever the strings are:
/// when many fall into one place of the table, as strings made for that do, the later ones are not found again and count as
/// new each time. That costs compression, never time.
pub(super) struct Interner<'a> {
    slots: Vec<u32>,
    mask: usize,
    strings: Vec<&'a str>,
}

const EMPTY: u32 = u32::MAX;
const STEPS: usize = 24;

impl<'a> Interner<'a> {
    /// One for about `expected` different strings.
    pub fn new(expected: usize) -> Interner<'a> {
        let size = (expected * 2).next_power_of_two().max(64);
        Interner { slots: vec![EMPTY; size], mask: size - 1, strings: Vec::new() }
    }

    /// The number of `text`.
    pub fn number(&mut self, text: &'a str) -> usize {
        if self.strings.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let start = hash(text.as_bytes());
        for step in 0..STEPS {
            let slot = (start + step) & self.mask;
            match self.slots[slot] {
                EMPTY => {
                    self.slots[slot] = self.strings.len() as u32;
                    break;
                }
                number if self.strings[number as usize] == text => return number as usize,
                _ => {}
            }
        }
        self.strings.push(text);
        self.strings.len() - 1
    }

    /// All strings by their number.
    pub fn strings(&self) -> &[&'a str] {
        &self.strings
    }

    fn grow(&mut self) {
        let size = self.slots.len() * 4;
        self.slots = vec![EMPTY; size];
        self.mask = size - 1;
        for (number, text) in self.strings.iter().enumerate() {
            let start = hash(text.as_bytes());
            let free =
                (0..STEPS).map(|step| (start + step) & self.mask).find(|&slot| self.slots[slot] == EMPTY);
            if let Some(slot) = free {
                self.slots[slot] = number as u32;
            }
        }
    }
}

/// Multiply and fold, eight octets at a time.
fn hash(octets: &[u8]) -> usize {
    let mut h = octets.len() as u64;
    let mut mix = |word: u64| {
        let wide = u128::from(h ^ word).wrapping_mul(0xD6E8_FEB8_6659_FD93_A076_1D64_78BD_642F);
        h = wide as u64 ^ (wide >> 64) as u64;
    };
    let (words, rest) = octets.as_chunks::<8>();
    for word in words {
        mix(u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(u64::from_le_bytes(last));
    (h ^ h >> 29) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_have_equal_numbers_while_the_table_grows() {
        let words: Vec<String> = (0..5000).map(|n| format!("word {n}")).collect();
        let mut interner = Interner::new(1);
        for round in 0..2 {
            for (n, word) in words.iter().enumerate() {
                assert_eq!(interner.number(word), n, "round {round}");
            }
        }
        assert_eq!(interner.strings().len(), 5000);
    }
}

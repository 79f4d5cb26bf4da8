//! Numbers of frames: 1 to 127 and again 1; 0 is none.

/// How many numbers there are.
pub const MODULUS: u64 = 127;

/// The number of a frame as it is on the air.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Number(u8);

impl Number {
    /// A frame without user data.
    pub const NONE: Number = Number(0);

    /// A number as somebody wrote it; the highest bit does not count.
    #[cfg(test)]
    pub const fn new(number: u8) -> Number {
        Number(number & 127)
    }

    /// That of the `index`-th frame of a call, from 0.
    pub const fn of(index: u64) -> Number {
        Number((index % MODULUS) as u8 + 1)
    }

    /// As on the air.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// No number of a frame with user data?
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// How many frames after the `index`-th the next one of this number comes: 0 to 126; `None` for no number.
    pub const fn after(self, index: u64) -> Option<u64> {
        match self.0 {
            0 => None,
            number => Some((number as u64 - 1 + MODULUS - index % MODULUS) % MODULUS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_run_from_1_to_127_and_skip_0() {
        let seen: Vec<u8> = (125..129).map(|index| Number::of(index).get()).collect();
        assert_eq!(seen, [126, 127, 1, 2]);
    }

    #[test]
    fn distances_go_around() {
        assert_eq!(Number::of(130).after(126), Some(4));
        assert_eq!(Number::of(126).after(127), Some(126));
        assert_eq!(Number::of(500).after(500), Some(0));
        assert_eq!(Number::NONE.after(3), None);
    }
}

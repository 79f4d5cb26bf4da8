//! What is remembered of a queue that was shorter than a wave.
//!
//! ASSUMPTION(wave-and-wait): ours. Section 2.2 gives the highest level to every wave that came fast. Behind a short queue a small
//! wave comes fast and the largest loses most of itself, so the two would follow each other for ever. So no level is told above
//! what the queue took, until a number of waves has come whole; then one level more is tried. Each try that fails doubles the number.

/// Whole waves before a level more is tried.
const FIRST: u32 = 8;
/// The most that this becomes.
const MOST: u32 = 64;

/// The highest level that may be told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ceiling {
    /// The highest level, where a queue was found short.
    level: Option<u8>,
    /// Whole waves of this level so far.
    whole: u32,
    /// How many it takes until one level more is tried.
    needed: u32,
    /// This level is a try: none of its waves has come yet.
    is_try: bool,
}

impl Ceiling {
    /// The level that may be told instead of this one.
    pub fn cap(&self, level: u8) -> u8 {
        self.level.map_or(level, |most| level.min(most))
    }

    /// A queue takes waves of this level, and no larger ones.
    pub fn found(&mut self, takes: u8) {
        let needed = if self.level.is_some() { (self.needed * 2).min(MOST) } else { FIRST };
        *self = Ceiling { level: Some(takes), whole: 0, needed, is_try: false };
    }

    /// A wave of this level came whole; `top` is the highest there is.
    pub fn came_whole(&mut self, level: u8, top: u8) {
        if self.level != Some(level) {
            return;
        }
        if std::mem::take(&mut self.is_try) {
            // The queue has become longer, or emptier.
            self.needed = FIRST;
        }
        self.whole += 1;
        if level >= top {
            *self = Ceiling::default();
        } else if self.whole >= self.needed {
            (self.level, self.whole, self.is_try) = (Some(level + 1), 0, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_whole_waves(ceiling: &mut Ceiling, level: u8, count: u32) -> u8 {
        (0..count).for_each(|_| ceiling.came_whole(level, 5));
        ceiling.cap(5)
    }

    #[test]
    fn a_level_more_is_tried_after_some_waves_and_after_twice_as_many_each_time_it_fails() {
        let mut ceiling = Ceiling::default();
        assert_eq!(ceiling.cap(5), 5, "nothing was found");
        for needed in [8, 16, 32, 64, 64] {
            ceiling.found(2);
            assert_eq!(after_whole_waves(&mut ceiling, 2, needed - 1), 2);
            assert_eq!(after_whole_waves(&mut ceiling, 2, 1), 3, "after {needed}");
        }
        assert_eq!(ceiling.cap(1), 1);
    }

    #[test]
    fn waves_of_lower_levels_say_nothing() {
        let mut ceiling = Ceiling::default();
        ceiling.found(3);
        assert_eq!(after_whole_waves(&mut ceiling, 2, 100), 3);
    }

    #[test]
    fn it_ends_where_the_largest_wave_comes_whole() {
        let mut ceiling = Ceiling::default();
        ceiling.found(3);
        assert_eq!(after_whole_waves(&mut ceiling, 3, 8), 4);
        assert_eq!(after_whole_waves(&mut ceiling, 4, 8), 5);
        // Of the largest one is enough: what is found from now on is found for the first time.
        ceiling.came_whole(5, 5);
        ceiling.found(3);
        assert_eq!(after_whole_waves(&mut ceiling, 3, 8), 4);
    }
}

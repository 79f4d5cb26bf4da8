//! Phases in which the element acts, and phases in which it does not.

use airloom_base::law::Law;
use airloom_base::random::Stream;
use airloom_base::{ConfigError, Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Shortest phase, but for none at all: a law whose values are all zero would never come to an end.
const SHORTEST: Duration = Duration::from_millis(1);

/// Longest drawn phase, seconds.
const LONGEST_S: f64 = 1e6;

/// How long phases are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Length {
    /// All alike.
    Fixed(Duration),
    /// Each drawn, in seconds.
    Drawn(Law),
}

/// Which phase a run begins in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum First {
    /// The one in which nothing happens.
    #[default]
    Off,
    /// The one in which packets are dropped and delayed.
    On,
    /// Somewhere in one of them, drawn with each seed: as if the element had been there for long.
    Random,
}

impl Length {
    fn check(&self, key: &str) -> Result<(), ConfigError> {
        match self {
            Length::Fixed(length) => ConfigError::when(
                !length.is_zero() && *length < SHORTEST,
                key,
                "a phase lasts 1ms at least; with 0s there is none",
            ),
            Length::Drawn(law) => law.check().map_err(|error| error.below(key)),
        }
    }

    fn draw(&self, stream: &mut Stream) -> Duration {
        match self {
            Length::Fixed(length) => *length,
            Length::Drawn(law) => {
                Duration::from_secs_f64(law.draw(stream).clamp(0.0, LONGEST_S)).max(SHORTEST)
            }
        }
    }
}

/// The phases of a run, walked through as time goes on.
pub(super) struct Phases {
    on: Length,
    off: Length,
    stream: Stream,
    is_on: bool,
    /// End of the phase we are in.
    end: Instant,
}

impl Phases {
    pub(super) fn new(
        on: &Length,
        off: &Length,
        first: First,
        mut stream: Stream,
    ) -> Result<Self, ConfigError> {
        on.check("on")?;
        off.check("off")?;
        let zero = Length::Fixed(Duration::ZERO);
        ConfigError::when(*on == zero && *off == zero, "on", "`on` and `off` cannot both be 0s")?;
        let lengths = [on, off].map(|length| length.draw(&mut stream));
        let (is_on, left) = match first {
            First::On => (true, lengths[0]),
            First::Off => (false, lengths[1]),
            First::Random => {
                // A moment of one whole period: which phase it lies in, and how much of that one is left.
                let at = Duration::from_nanos(stream.below((lengths[0] + lengths[1]).as_nanos()));
                let is_on = at < lengths[0];
                (is_on, if is_on { lengths[0] - at } else { lengths[0] + lengths[1] - at })
            }
        };
        Ok(Phases { on: on.clone(), off: off.clone(), stream, is_on, end: Instant::ZERO + left })
    }

    /// Does the element act at `now`? Asked with times that never decrease.
    pub(super) fn is_on(&mut self, now: Instant) -> bool {
        while self.end <= now {
            self.is_on = !self.is_on;
            let length = if self.is_on { &self.on } else { &self.off };
            self.end += length.draw(&mut self.stream);
        }
        self.is_on
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::law::Kind;

    use super::*;

    fn seconds(n: u64) -> Length {
        Length::Fixed(Duration::from_secs(n))
    }

    fn walk(phases: &mut Phases, seconds: u64) -> String {
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        (0..seconds).map(|s| if phases.is_on(at(s)) { '#' } else { '.' }).collect()
    }

    #[test]
    fn phases_alternate_from_the_first() {
        let new = |first| Phases::new(&seconds(2), &seconds(3), first, Stream::new(1, "phases")).unwrap();
        assert_eq!(walk(&mut new(First::Off), 12), "...##...##..");
        assert_eq!(walk(&mut new(First::On), 12), "##...##...##");
        assert!(new(First::Off).is_on(Instant::ZERO + Duration::from_secs(5_000_003)));
        let any = walk(&mut new(First::Random), 500);
        assert_eq!(any.matches('#').count(), 200);
    }

    #[test]
    fn drawn_phases_differ_and_follow_from_the_seed() {
        let law = Length::Drawn(Law::of(Kind::Uniform { from: 1.0, to: 9.0 }));
        let new = |seed| Phases::new(&law, &law, First::Off, Stream::new(seed, "phases")).unwrap();
        assert_eq!(walk(&mut new(1), 500), walk(&mut new(1), 500));
        assert_ne!(walk(&mut new(1), 500), walk(&mut new(2), 500));
        let instant = Length::Drawn(Law::of(Kind::Fixed(0.0)));
        let mut short = Phases::new(&instant, &instant, First::On, Stream::new(1, "phases")).unwrap();
        assert_eq!(walk(&mut short, 3).len(), 3);
    }

    #[test]
    fn phases_of_no_length_are_refused() {
        let none = Phases::new(&seconds(0), &seconds(0), First::On, Stream::new(1, "phases"));
        assert_eq!(none.err().unwrap().path, ["on"]);
        let short = Length::Fixed(Duration::from_micros(999));
        let none = Phases::new(&seconds(1), &short, First::On, Stream::new(1, "phases"));
        assert_eq!(none.err().unwrap().path, ["off"]);
        let always = Phases::new(&seconds(1), &seconds(0), First::On, Stream::new(1, "phases"));
        assert_eq!(walk(&mut always.unwrap(), 4), "####");
    }
}

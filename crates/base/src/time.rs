//! Time as the model sees it: nanoseconds since the run began.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A moment, in nanoseconds since the run began. Never the operating system's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A length of time in nanoseconds. Arithmetic saturates: a model never panics on a large time.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Instant {
    /// The moment the run began.
    pub const ZERO: Instant = Instant(0);
    /// Later than anything that happens.
    pub const FAR_FUTURE: Instant = Instant(u64::MAX);

    /// The moment `nanos` nanoseconds after the run began.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    /// Nanoseconds since the run began.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the run began, for people.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Time since `earlier`, zero if it is later than this.
    #[inline]
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);
    /// The longest duration.
    pub const MAX: Duration = Duration(u64::MAX);

    /// A duration of `n` nanoseconds.
    #[inline]
    pub const fn from_nanos(n: u64) -> Self {
        Duration(n)
    }
    /// A duration of `n` microseconds.
    #[inline]
    pub const fn from_micros(n: u64) -> Self {
        Duration(n.saturating_mul(1_000))
    }
    /// A duration of `n` milliseconds.
    #[inline]
    pub const fn from_millis(n: u64) -> Self {
        Duration(n.saturating_mul(1_000_000))
    }
    /// A duration of `n` seconds.
    #[inline]
    pub const fn from_secs(n: u64) -> Self {
        Duration(n.saturating_mul(1_000_000_000))
    }
    /// A duration of `s` seconds; negative and not-a-number become zero, too large saturates.
    pub fn from_secs_f64(s: f64) -> Self {
        // `as` saturates and maps NaN to zero, which is what is promised.
        Duration((s * 1e9).round() as u64)
    }
    /// In nanoseconds.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// In whole microseconds, rounded down.
    #[inline]
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }
    /// In whole milliseconds, rounded down.
    #[inline]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Is it zero?
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// `self - other`, zero where that would be negative.
    #[inline]
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
    /// The distance between two durations.
    #[inline]
    pub const fn abs_diff(self, other: Duration) -> Duration {
        Duration(self.0.abs_diff(other.0))
    }
    /// `self * numerator / denominator` without overflow in between; a zero denominator gives `MAX`.
    pub const fn mul_ratio(self, numerator: u64, denominator: u64) -> Duration {
        if denominator == 0 {
            return Duration::MAX;
        }
        let n = self.0 as u128 * numerator as u128 / denominator as u128;
        if n > u64::MAX as u128 { Duration::MAX } else { Duration(n as u64) }
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    #[inline]
    fn add(self, d: Duration) -> Instant {
        Instant(self.0.saturating_add(d.0))
    }
}
impl AddAssign<Duration> for Instant {
    #[inline]
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}
impl Sub<Duration> for Instant {
    type Output = Instant;
    #[inline]
    fn sub(self, d: Duration) -> Instant {
        Instant(self.0.saturating_sub(d.0))
    }
}
impl Sub<Instant> for Instant {
    type Output = Duration;
    #[inline]
    fn sub(self, earlier: Instant) -> Duration {
        self.since(earlier)
    }
}
impl Add for Duration {
    type Output = Duration;
    #[inline]
    fn add(self, d: Duration) -> Duration {
        Duration(self.0.saturating_add(d.0))
    }
}
impl AddAssign for Duration {
    #[inline]
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}
impl Sub for Duration {
    type Output = Duration;
    #[inline]
    fn sub(self, d: Duration) -> Duration {
        self.saturating_sub(d)
    }
}
impl SubAssign for Duration {
    #[inline]
    fn sub_assign(&mut self, d: Duration) {
        *self = *self - d;
    }
}
impl Mul<u64> for Duration {
    type Output = Duration;
    #[inline]
    fn mul(self, n: u64) -> Duration {
        Duration(self.0.saturating_mul(n))
    }
}
impl Div<u64> for Duration {
    type Output = Duration;
    /// Division by zero gives `MAX`.
    #[inline]
    fn div(self, n: u64) -> Duration {
        Duration(self.0.checked_div(n).unwrap_or(u64::MAX))
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, name) in [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")] {
            if self.0 >= unit && self.0.is_multiple_of(unit) {
                return write!(f, "{}{name}", self.0 / unit);
            }
        }
        if self.0 == 0 { write!(f, "0s") } else { write!(f, "{}ns", self.0) }
    }
}

/// A duration for people, with two digits that count or more: `1.4 ms`, `532 us`.
#[derive(Clone, Copy)]
pub struct Rounded(Duration);

impl Duration {
    /// As it stands in a sentence. `Display` is exact, and can be read back.
    pub fn rounded(self) -> Rounded {
        Rounded(self)
    }
}

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        // From half a unit below the next one on a number would be written as that.
        let (unit, name) = match nanos {
            0..1_000 => return write!(f, "{nanos} ns"),
            1_000..999_500 => (1e3, "us"),
            999_500..999_500_000 => (1e6, "ms"),
            _ => (1e9, "s"),
        };
        let count = nanos as f64 / unit;
        let text = if count < 9.95 { format!("{count:.1}") } else { format!("{count:.0}") };
        write!(f, "{} {name}", text.trim_end_matches(".0"))
    }
}

impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Instant::ZERO - Duration::from_secs(1), Instant::ZERO);
        assert_eq!(Instant::FAR_FUTURE + Duration::from_secs(1), Instant::FAR_FUTURE);
        assert_eq!(Instant::ZERO - Instant::from_nanos(5), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(-1.0), Duration::ZERO);
    }

    #[test]
    fn durations_print_in_the_largest_whole_unit() {
        assert_eq!(Duration::from_millis(20).to_string(), "20ms");
        assert_eq!(Duration::from_micros(1500).to_string(), "1500us");
        assert_eq!(Duration::from_secs(3).to_string(), "3s");
        assert_eq!(Duration::ZERO.to_string(), "0s");
    }

    #[test]
    fn a_sentence_has_two_digits_that_count_or_more() {
        for (nanos, text) in [
            (0, "0 ns"),
            (532, "532 ns"),
            (1_000, "1 us"),
            (532_480, "532 us"),
            (999_499, "999 us"),
            (999_500, "1 ms"),
            (1_425_408, "1.4 ms"),
            (9_949_999, "9.9 ms"),
            (9_960_000, "10 ms"),
            (565_248_000, "565 ms"),
            (999_600_000, "1 s"),
            (90_000_000_000, "90 s"),
        ] {
            assert_eq!(Duration::from_nanos(nanos).rounded().to_string(), text);
        }
    }
}

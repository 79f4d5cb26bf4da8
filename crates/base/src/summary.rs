//! The results of a run, or of a part of it: numbers with names.
//!
//! Thousands of short runs differ in their seeds only, so their results have the same names in the same order. A summary
//! that is written again finds each name where it was the last time, and makes none.

use std::ops::Index;

/// Flat name -> number map; names carry their unit (`goodput_bit_s`).
#[derive(Clone, Debug, Default)]
pub struct Summary {
    prefix: String,
    /// The values.
    pub values: Values,
}

/// Numbers with names, in the order in which they were set. Where a name was set twice the later one counts.
#[derive(Clone, Debug, Default)]
pub struct Values {
    /// Those of this time, not-a-number where there is a name alone, and behind them what is left of the time before.
    entries: Vec<(String, f64)>,
    used: usize,
    is_as_before: bool,
}

impl Summary {
    /// What follows belongs to `owner`: names become `owner.name`. Empty: no prefix.
    pub fn set_owner(&mut self, owner: &str) {
        self.prefix = if owner.is_empty() { String::new() } else { format!("{owner}.") };
    }

    /// Sets a value. Of what is no number, or not finite, the name alone is kept: a number that does not exist is not
    /// printed, but what others are called does not depend on it.
    pub fn set(&mut self, name: &str, value: f64) {
        // Adding zero turns the negative zero, which is what the sum of no numbers is, into the usual one.
        self.values.push(&self.prefix, name, if value.is_finite() { value + 0.0 } else { f64::NAN });
    }

    /// Sets a value if there is one, and its name in any case.
    pub fn set_some(&mut self, name: &str, value: Option<f64>) {
        self.set(name, value.unwrap_or(f64::NAN));
    }

    /// Sets counts.
    pub fn set_all<'a>(&mut self, counts: impl IntoIterator<Item = (&'a str, u64)>) {
        for (name, count) in counts {
            self.set(name, count as f64);
        }
    }

    /// Forgets the values, not the names: what follows is probably called the same.
    pub fn rewind(&mut self) {
        self.prefix.clear();
        // What is left of the time before that was longer is not what this time had.
        self.values.entries.truncate(self.values.used);
        self.values.used = 0;
        self.values.is_as_before = true;
    }
}

impl FromIterator<(String, f64)> for Summary {
    fn from_iter<I: IntoIterator<Item = (String, f64)>>(values: I) -> Self {
        let entries: Vec<_> = values.into_iter().collect();
        let used = entries.len();
        Summary { prefix: String::new(), values: Values { entries, used, is_as_before: false } }
    }
}

impl Values {
    #[inline]
    fn push(&mut self, prefix: &str, name: &str, value: f64) {
        match self.entries.get_mut(self.used) {
            Some((known, old)) if known.strip_prefix(prefix) == Some(name) => *old = value,
            _ => {
                self.is_as_before = false;
                self.entries.truncate(self.used);
                self.entries.push((format!("{prefix}{name}"), value));
            }
        }
        self.used += 1;
    }

    /// All of them. A name that was set twice is there twice.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &f64)> {
        let all = self.entries[..self.used].iter().map(|(name, value)| (name.as_str(), value));
        all.filter(|(_, value)| !value.is_nan())
    }

    /// All names that were set, whether they have a value or not.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries[..self.used].iter().map(|(name, _)| name.as_str())
    }

    /// That of the `number`-th name, counted from 0; not-a-number if it has none.
    pub fn nth(&self, number: usize) -> Option<f64> {
        self.entries[..self.used].get(number).map(|(_, value)| *value)
    }

    /// Have these the same names in the same order as those before [`Summary::rewind`]?
    pub fn are_as_before(&self) -> bool {
        self.is_as_before && self.used == self.entries.len()
    }

    /// The value called `name`.
    pub fn get(&self, name: &str) -> Option<&f64> {
        self.iter().rev().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// Is there a value called `name`?
    pub fn contains_key(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
}

impl Index<&str> for Values {
    type Output = f64;

    /// # Panics
    /// There is no value called `name`.
    fn index(&self, name: &str) -> &f64 {
        self.get(name).unwrap_or_else(|| panic!("there is no value called {name}"))
    }
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl PartialEq for Summary {
    fn eq(&self, other: &Self) -> bool {
        self.values == other.values
    }
}

impl IntoIterator for Values {
    type Item = (String, f64);
    type IntoIter = std::vec::IntoIter<(String, f64)>;

    fn into_iter(mut self) -> Self::IntoIter {
        self.entries.truncate(self.used);
        self.entries.retain(|(_, value)| !value.is_nan());
        self.entries.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(summary: &Summary) -> Vec<&str> {
        summary.values.iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn values_belong_to_their_owner_and_what_is_no_number_is_left_out() {
        let mut summary = Summary::default();
        summary.set("events", -0.0);
        summary.set_owner("radio");
        summary.set("lost", 3.0);
        summary.set("lost_share", f64::NAN);
        summary.set("busy_share", f64::INFINITY);
        summary.set_some("delay_ms", None);
        assert_eq!(names(&summary), ["events", "radio.lost"]);
        assert_eq!(summary.values["radio.lost"], 3.0);
        assert!(summary.values["events"].is_sign_positive());
        assert!(!summary.values.contains_key("lost"));
        let all: Vec<&str> = summary.values.names().collect();
        assert_eq!(all, ["events", "radio.lost", "radio.lost_share", "radio.busy_share", "radio.delay_ms"]);
        assert_eq!(summary.values.into_iter().map(|(_, value)| value).collect::<Vec<_>>(), [0.0, 3.0]);
    }

    #[test]
    fn after_a_shorter_time_a_long_one_is_not_as_before() {
        let mut summary = Summary::default();
        let mut is_as_before = |names: &[&str]| {
            summary.rewind();
            for name in names {
                summary.set(name, 1.0);
            }
            summary.values.are_as_before()
        };
        assert!(!is_as_before(&["files", "time_s"]));
        assert!(is_as_before(&["files", "time_s"]));
        assert!(!is_as_before(&["files"]));
        assert!(!is_as_before(&["files", "time_s"]));
    }

    #[test]
    fn of_two_values_with_one_name_the_later_one_counts() {
        let summary: Summary = [("a".to_owned(), 1.0), ("a".to_owned(), 2.0)].into_iter().collect();
        assert_eq!((summary.values["a"], summary.values.get("a")), (2.0, Some(&2.0)));
    }

    #[test]
    fn written_again_it_keeps_its_names_as_long_as_they_are_the_same() {
        let mut summary = Summary::default();
        let mut write = |names: &[&str], value: f64| {
            summary.rewind();
            summary.set_owner("x");
            names.iter().for_each(|name| summary.set(name, value));
            (summary.values.are_as_before(), summary.values.iter().map(|(n, v)| format!("{n}={v}")).collect())
        };
        let found = |parts: &[&str]| -> Vec<String> { parts.iter().map(|&p| p.to_owned()).collect() };
        assert_eq!(write(&["a", "b"], 1.0), (false, found(&["x.a=1", "x.b=1"])));
        assert_eq!(write(&["a", "b"], 2.0), (true, found(&["x.a=2", "x.b=2"])));
        // One less, one that is called otherwise, one more.
        assert_eq!(write(&["a"], 3.0), (false, found(&["x.a=3"])));
        assert_eq!(write(&["a", "c"], 4.0), (false, found(&["x.a=4", "x.c=4"])));
        assert_eq!(write(&["a", "c", "d"], 5.0), (false, found(&["x.a=5", "x.c=5", "x.d=5"])));
        assert!(write(&["a", "c", "d"], 6.0).0);
    }
}

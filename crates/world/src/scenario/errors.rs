//! What is said about a scenario that cannot be used: one line with file, line, what was found and what is valid.

use std::fmt;

/// Choices printed before the rest is only counted.
const CHOICES_SHOWN: usize = 30;
/// Characters of a message before it is cut: what was found may be a megabyte long.
const LONGEST_MESSAGE: usize = 400;

/// Why a scenario cannot be used.
///
/// Prints as one line: `page.toml:12:8: links.radio.rate: unknown unit ...; valid: ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// Name of the file, or the option of the command line (`--set KEY=VALUE`) that is wrong.
    pub source: String,
    /// Line in the file, from 1. Unknown for options and for JSON.
    pub line: Option<u32>,
    /// Character in the line, from 1.
    pub column: Option<u32>,
    /// Dotted key of the table or value at fault; empty for the whole file.
    pub key: String,
    /// What was found and why it cannot be used.
    pub message: String,
    /// What would be valid, if that is a list.
    pub choices: Vec<String>,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_line(f, &self.source, 4 * LONGEST_MESSAGE)?;
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, ":{line}:{column}")?;
        }
        f.write_str(": ")?;
        if !self.key.is_empty() {
            write_line(f, &self.key, LONGEST_MESSAGE)?;
            f.write_str(": ")?;
        }
        write_line(f, &self.message, LONGEST_MESSAGE)?;
        for (i, choice) in self.choices.iter().take(CHOICES_SHOWN).enumerate() {
            f.write_str(if i == 0 { "; valid: " } else { ", " })?;
            write_line(f, choice, LONGEST_MESSAGE)?;
        }
        match self.choices.len().saturating_sub(CHOICES_SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl std::error::Error for ScenarioError {}

/// Writes text that came from outside so that it stays one line and leaves the terminal alone.
fn write_line(f: &mut fmt::Formatter<'_>, text: &str, longest: usize) -> fmt::Result {
    for (i, c) in text.chars().enumerate() {
        if i >= longest {
            return f.write_str("...");
        }
        if c.is_control() || is_invisible(c) {
            write!(f, "{}", c.escape_unicode())?;
        } else {
            fmt::Write::write_char(f, c)?;
        }
    }
    Ok(())
}

/// Characters that reorder or hide what a reader sees: bidirectional controls, zero-width and line separators.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Line and column, from 1, of the octet at `offset`.
pub(super) fn line_and_column(text: &str, offset: usize) -> (u32, u32) {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    let before = &text[..offset];
    let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}

/// The choice that `found` was probably meant to be.
pub(super) fn closest<'a>(found: &str, choices: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let found = found.to_lowercase();
    let length = found.chars().count();
    if length == 0 || length > 40 {
        return None;
    }
    choices
        .take(1000)
        .filter(|c| c.len() <= 60)
        .map(|c| (distance(&found, &c.to_lowercase()), c))
        .filter(|(edits, _)| *edits <= length.div_ceil(3).min(3) && *edits < length)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, c)| c)
}

/// How far `a` is from `b`, in letters to insert, drop, replace or swap with their neighbour: the same words in another order
/// (`rto_min`, `min_rto`) are as near as one of them.
fn distance(a: &str, b: &str) -> usize {
    let words = |text: &str| {
        let mut words: Vec<String> = text.split(['_', '-']).map(str::to_owned).collect();
        words.sort_unstable();
        words
    };
    if a != b && words(a) == words(b) { 1 } else { strsim::osa_distance(a, b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_what_was_meant() {
        let names = ["umts-dch", "wireline", "http-server", "rate"];
        let meant = |found| closest(found, names.into_iter());
        assert_eq!(meant("umts-dhc"), Some("umts-dch"));
        assert_eq!(meant("Wire-line"), Some("wireline"));
        assert_eq!(meant("rates"), Some("rate"));
        assert_eq!(meant("satellite"), None);
        assert_eq!(meant("x"), None);
        assert_eq!(meant(""), None);
    }

    #[test]
    fn the_same_words_in_another_order_are_meant() {
        let names = ["rto_tick", "min_rto", "max_rto"];
        assert_eq!(closest("rto_min", names.into_iter()), Some("min_rto"));
        assert_eq!(closest("MAX-RTO", names.into_iter()), Some("max_rto"));
    }

    #[test]
    fn lines_and_columns_count_characters() {
        let text = "a = 1\nb = \"äö\" # x\n";
        assert_eq!(line_and_column(text, 0), (1, 1));
        assert_eq!(line_and_column(text, text.find('#').unwrap()), (2, 10));
        assert_eq!(line_and_column(text, 12), (2, 6), "inside a character counts as its beginning");
        assert_eq!(line_and_column(text, 10_000), (3, 1));
    }

    #[test]
    fn an_error_is_one_line_whatever_was_found() {
        let error = ScenarioError {
            source: "a\nb.toml".into(),
            line: Some(3),
            column: Some(1),
            key: "hosts.\u{202e}x".into(),
            message: format!("\u{1b}[31m{}", "y".repeat(1000)),
            choices: (0..40).map(|i| i.to_string()).collect(),
        };
        let line = error.to_string();
        assert!(line.starts_with("a\\u{a}b.toml:3:1: hosts.\\u{202e}x: \\u{1b}[31myy"), "{line}");
        assert!(line.contains("yyy...; valid: 0, 1, 2,"), "{line}");
        assert!(line.ends_with(", 29 and 10 more"), "{line}");
    }
}

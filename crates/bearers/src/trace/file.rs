//! The files that a trace-driven link names.

use std::fs;

/// Larger files are refused: a day of a gigabit link has fewer octets.
const LARGEST: u64 = 64 << 20;

/// The text of a file.
pub(super) fn read(name: &str) -> Result<String, String> {
    let about = fs::metadata(name).map_err(|error| format!("{name}: {error}"))?;
    if !about.is_file() {
        return Err(format!("{name}: this is no file"));
    }
    if about.len() > LARGEST {
        return Err(format!("{name}: {} octets; at most {LARGEST} are read", about.len()));
    }
    fs::read_to_string(name).map_err(|error| format!("{name}: {error}"))
}

/// The beginning of a line, for messages.
pub(super) fn short(line: &str) -> String {
    line.chars().take(40).collect()
}

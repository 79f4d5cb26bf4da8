//! The date of a run, which has none.

#![expect(clippy::disallowed_types, reason = "the library asks for one; nobody reads a clock by it")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::library::TimeSource;

/// What tokens are stamped with: always the same second. How old a token is does not matter to it.
pub(crate) struct Dateless;

impl TimeSource for Dateless {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_700_000_000)
    }
}

//! The library's moments and ours.
//!
//! It is told the time as the machines of the house are, but by the type of the standard library, which has no zero. One moment of
//! the process stands for the beginning of every run; only differences reach what is sent.

#![expect(
    clippy::disallowed_types,
    reason = "the library takes and gives these; nobody reads a clock by them"
)]

use std::sync::OnceLock;
use std::time::{Duration, Instant as Theirs};

use airloom_base::Instant;

/// The library's type for a moment.
pub(crate) type Moment = Theirs;

static ORIGIN: OnceLock<Theirs> = OnceLock::new();

/// Some of the library's rules look back: there is a day before the beginning.
const BEFORE: Duration = Duration::from_secs(86_400);

fn origin() -> Theirs {
    *ORIGIN.get_or_init(|| Theirs::now() + BEFORE)
}

/// Ours as theirs.
pub(crate) fn to_library(now: Instant) -> Theirs {
    origin() + Duration::from_nanos(now.as_nanos())
}

/// Theirs as ours.
pub(crate) fn from_library(at: Theirs) -> Instant {
    let since = at.saturating_duration_since(origin());
    Instant::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

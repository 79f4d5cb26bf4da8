//! The time of the library is the system's, which this file alone tells it.

/// A moment.
#[expect(clippy::disallowed_types, reason = "a daemon lives by the system's clock")]
pub(super) type Now = std::time::Instant;

/// The time now.
pub(super) fn now() -> Now {
    tokio::time::Instant::now().into_std()
}

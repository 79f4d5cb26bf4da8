//! The time of a daemon: the system's monotonic clock, from when the daemon began.

use airloom_base::Instant;

/// Tells machines what time it is, and tokio when they want to be woken.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: tokio::time::Instant,
}

impl Clock {
    /// A clock at zero.
    pub fn start() -> Clock {
        Clock { began: tokio::time::Instant::now() }
    }

    /// The time now.
    pub fn now(&self) -> Instant {
        let nanos = self.began.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Waits until `at`; for ever if there is no such moment.
    pub async fn until(&self, at: Option<Instant>) {
        let Some(at) = at else { return std::future::pending().await };
        let nanos = at.as_nanos();
        match self.began.checked_add(std::time::Duration::from_nanos(nanos)) {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }
}

/// Seconds since 1970 by the system's calendar; 0 for a system that lives before that.
#[expect(
    clippy::disallowed_types,
    reason = "letters and notices carry the date; no machine is told the time by it"
)]
pub fn today() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

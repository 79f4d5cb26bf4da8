//! The two clocks of the machine, and waiting.
//!
//! Deadlines are nominal times of the model: nanoseconds since the run began, on the monotonic clock. The kernel
//! stamps frames with the time of day; [`Clock::stamps`] maps those, once per batch.

use std::io;
use std::os::fd::BorrowedFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

use airloom_base::{Duration, Instant};

/// The monotonic clock, counted from when the run began.
pub struct Clock {
    start: u64,
    cpu_start: u64,
}

/// How stamps of the kernel become nominal times.
#[derive(Clone, Copy)]
pub struct Stamps {
    now: Instant,
    time_of_day: u64,
}

fn read(clock: ClockId) -> u64 {
    let now = clock_gettime(clock).expect("these clocks exist on every Linux");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

impl Clock {
    /// A clock that shows zero now.
    pub fn start() -> Clock {
        Clock { start: read(ClockId::CLOCK_MONOTONIC), cpu_start: read(ClockId::CLOCK_THREAD_CPUTIME_ID) }
    }

    /// The time.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(read(ClockId::CLOCK_MONOTONIC).saturating_sub(self.start))
    }

    /// Share of the time since the start for which the calling thread, which must be the one that called
    /// [`Clock::start`], kept a processor busy.
    pub fn cpu_share(&self) -> f64 {
        let busy = read(ClockId::CLOCK_THREAD_CPUTIME_ID).saturating_sub(self.cpu_start);
        busy as f64 / self.now().as_nanos().max(1) as f64
    }

    /// How the kernel's stamps relate to [`Clock::now`] at this moment.
    pub fn stamps(&self) -> Stamps {
        Stamps { now: self.now(), time_of_day: read(ClockId::CLOCK_REALTIME) }
    }

    /// Waits until one of `readable` can be read, until `deadline`, or until a signal arrives.
    pub fn wait(&self, readable: &mut [PollFd], deadline: Instant) -> io::Result<()> {
        let left = deadline.since(self.now());
        let timeout =
            TimeSpec::new((left.as_nanos() / 1_000_000_000) as i64, (left.as_nanos() % 1_000_000_000) as i64);
        match ppoll(readable, Some(timeout), None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Stamps {
    /// The nominal time of a stamp. A stamp from the future, or from before the time of day was set, is now.
    pub fn nominal(&self, stamp: TimeSpec) -> Instant {
        let stamp = stamp.tv_sec() as u64 * 1_000_000_000 + stamp.tv_nsec() as u64;
        let ago = Duration::from_nanos(self.time_of_day.saturating_sub(stamp));
        if ago > Duration::from_secs(10) { self.now } else { self.now - ago }
    }

    /// The moment at which the mapping was made.
    pub fn now(&self) -> Instant {
        self.now
    }
}

/// Waiting for reading.
pub(super) fn readable(fd: BorrowedFd) -> PollFd {
    PollFd::new(fd, PollFlags::POLLIN)
}

/// Asks for wake-ups that are not put off, as long as this lives. By default the kernel may add 50 us.
pub(super) struct SharpTimers {
    before: Option<std::ffi::c_ulong>,
}

impl SharpTimers {
    pub(super) fn new() -> Self {
        let before = nix::sys::prctl::get_timerslack().ok().map(|slack| slack as std::ffi::c_ulong);
        let _ = nix::sys::prctl::set_timerslack(1);
        SharpTimers { before }
    }
}

impl Drop for SharpTimers {
    fn drop(&mut self) {
        if let Some(slack) = self.before {
            let _ = nix::sys::prctl::set_timerslack(slack);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_never_in_the_future_and_keep_their_distances() {
        let stamps = Stamps { now: Instant::from_nanos(5_000), time_of_day: 1_700_000_000_000_002_000 };
        let at = |nanos| TimeSpec::new(1_700_000_000, nanos);
        assert_eq!(stamps.nominal(at(1_500)), Instant::from_nanos(4_500));
        assert_eq!(stamps.nominal(at(2_500)), Instant::from_nanos(5_000));
        assert_eq!(stamps.nominal(TimeSpec::new(0, 0)), Instant::from_nanos(5_000));
    }
}

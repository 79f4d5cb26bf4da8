//! The two clocks of the machine.
//!
//! Deadlines are nominal times of the model: nanoseconds since the run began, on the monotonic clock. The kernel
//! stamps frames with the time of day; [`Clock::stamps`] maps those, once per batch.

use std::io;
use std::os::fd::BorrowedFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

use airloom_base::{Duration, Instant};

/// Two readings so close together count as one.
const CLOSE: Duration = Duration::from_nanos(500);
/// How often closer readings are tried for.
const TRIES: usize = 4;

/// The monotonic clock, counted from when the run began.
pub struct Clock {
    start: u64,
    cpu_start: u64,
}

/// How stamps of the kernel become nominal times.
#[derive(Clone, Copy, getset::CopyGetters)]
pub struct Stamps {
    /// The moment at which the mapping was made.
    #[getset(get_copy = "pub")]
    now: Instant,
    time_of_day: u64,
    /// Of the clock.
    start: u64,
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

    /// Processor time that the calling thread, which must be the one that called [`Clock::start`], has used since.
    pub fn cpu(&self) -> Duration {
        Duration::from_nanos(read(ClockId::CLOCK_THREAD_CPUTIME_ID).saturating_sub(self.cpu_start))
    }

    /// How the kernel's stamps relate to [`Clock::now`] at this moment.
    pub fn stamps(&self) -> Stamps {
        let mut best = (Duration::MAX, self.now(), 0);
        // Two clocks cannot be read at once: what came between the readings would shift all stamps.
        for _ in 0..TRIES {
            let before = self.now();
            let time_of_day = read(ClockId::CLOCK_REALTIME);
            let after = self.now();
            let gap = after.since(before);
            if gap < best.0 {
                best = (gap, after, time_of_day);
            }
            if gap <= CLOSE {
                break;
            }
        }
        Stamps { now: best.1, time_of_day: best.2, start: self.start }
    }
}

impl Stamps {
    /// The nominal time of a stamp. It may be a little after the mapping was made: frames go on arriving while others are
    /// read. A stamp from before the time of day was set is now; where that was set back by little, no stamp is of later than this
    /// very moment.
    pub fn nominal(&self, stamp: TimeSpec) -> Instant {
        let stamp = stamp.tv_sec() as u64 * 1_000_000_000 + stamp.tv_nsec() as u64;
        let between = Duration::from_nanos(self.time_of_day.abs_diff(stamp));
        match stamp > self.time_of_day {
            _ if between > Duration::from_secs(10) => self.now,
            true => (self.now + between).min(Clock { start: self.start, cpu_start: 0 }.now()),
            false => self.now - between,
        }
    }

    /// Now, for devices that put no stamps on what they hand over.
    pub fn this_moment(&self) -> Instant {
        let now = read(ClockId::CLOCK_REALTIME);
        self.nominal(TimeSpec::new((now / 1_000_000_000) as i64, (now % 1_000_000_000) as i64))
    }
}

/// Waiting for reading.
pub(super) fn readable(fd: BorrowedFd) -> PollFd {
    PollFd::new(fd, PollFlags::POLLIN)
}

/// Waits until there is something to read, at most so long. A signal that comes meanwhile does not shorten it.
pub(super) fn wait_readable(fd: BorrowedFd, time: Duration) -> io::Result<bool> {
    let clock = Clock::start();
    loop {
        let left = time.saturating_sub(clock.now().since(Instant::ZERO));
        // Rounded up: what is left never becomes a busy loop.
        let milliseconds = left.as_nanos().div_ceil(1_000_000).min(i32::MAX as u64) as i32;
        match poll(&mut [readable(fd)], PollTimeout::try_from(milliseconds).unwrap_or(PollTimeout::MAX)) {
            Ok(0) if left > Duration::ZERO => {}
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_keep_their_distances() {
        let now = Instant::from_nanos(5_000);
        let stamps = Stamps { now, time_of_day: 1_700_000_000_000_002_000, start: 0 };
        let at = |nanos| TimeSpec::new(1_700_000_000, nanos);
        assert_eq!(stamps.nominal(at(1_500)), Instant::from_nanos(4_500));
        assert_eq!(stamps.nominal(at(2_500)), Instant::from_nanos(5_500));
        assert_eq!(stamps.nominal(TimeSpec::new(0, 0)), Instant::from_nanos(5_000));
    }

    #[test]
    fn a_stamp_from_before_the_time_of_day_was_set_back_is_of_no_later_than_this_moment() {
        let clock = Clock::start();
        let stamps = clock.stamps();
        let at = stamps.time_of_day + 5_000_000_000;
        let at = stamps.nominal(TimeSpec::new((at / 1_000_000_000) as i64, (at % 1_000_000_000) as i64));
        assert!(stamps.now() <= at && at <= clock.now(), "{at:?}");
    }
}

//! What the engine uses of the processor, and how the kernel schedules it.

use std::fs::File;
use std::os::unix::fs::FileExt;

use airloom_base::{Duration, Instant};

use super::pace::Priority;

/// How often the engine looks at itself.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// An engine that is busier than this gives real-time priority up, and takes it back below a third of it: kernels stop
/// a real-time thread for 50 ms that leaves the others less than 5 %. Up to there it keeps nobody from running who
/// would not give it more to do.
const TOO_BUSY: f64 = 0.93;

/// What the engine knows about its own use of the processor.
pub(super) struct Load {
    schedule: Option<File>,
    waited_before: u64,
    /// Processor time, time at the clock and time of the last look.
    last: (Duration, Duration, Instant),
    pub(super) busiest: f64,
    priority: Priority,
    /// The best that it had.
    pub(super) best: Priority,
}

impl Load {
    pub(super) fn new() -> Load {
        // The calling thread's, whoever reads it later.
        let schedule = File::open("/proc/thread-self/schedstat").ok();
        let priority = Priority::best(false);
        let mut load = Load {
            schedule,
            waited_before: 0,
            last: (Duration::ZERO, Duration::ZERO, Instant::ZERO),
            busiest: 0.0,
            priority,
            best: priority,
        };
        load.waited_before = load.waiting().unwrap_or(0);
        load
    }

    /// For how long the thread was ready to run and did not, since this was made.
    pub(super) fn waited(&self) -> Option<Duration> {
        self.waiting().map(|nanos| Duration::from_nanos(nanos.saturating_sub(self.waited_before)))
    }

    /// The same in nanoseconds since the thread began.
    fn waiting(&self) -> Option<u64> {
        let mut text = [0; 128];
        let len = self.schedule.as_ref()?.read_at(&mut text, 0).ok()?;
        std::str::from_utf8(&text[..len]).ok()?.split_whitespace().nth(1)?.parse().ok()
    }

    /// Looks at the time since the last look. Time spent looking at the clock is not work: it gives way.
    pub(super) fn look(&mut self, now: Instant, cpu: Duration, clock_time: Duration) {
        let (cpu_before, clock_before, before) = self.last;
        let elapsed = now.since(before);
        if elapsed < LOOK {
            return;
        }
        self.last = (cpu, clock_time, now);
        let work = cpu.saturating_sub(cpu_before).saturating_sub(clock_time.saturating_sub(clock_before));
        let share = work.as_nanos() as f64 / elapsed.as_nanos() as f64;
        self.busiest = self.busiest.max(share.min(1.0));
        match self.priority {
            Priority::RealTime if share > TOO_BUSY => self.priority = Priority::best(true),
            Priority::RealTime => {}
            _ if self.best == Priority::RealTime && share < TOO_BUSY / 3.0 => {
                self.priority = Priority::best(false);
            }
            _ => {}
        }
    }
}

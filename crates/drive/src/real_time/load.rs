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

/// For how long a thread was ready to run and did not.
pub(super) struct Queued(Option<File>);

impl Queued {
    /// The calling thread's, whoever reads it later.
    pub(super) fn new() -> Queued {
        Queued(File::open("/proc/thread-self/schedstat").ok())
    }

    /// Nanoseconds since the thread began, if the kernel says.
    pub(super) fn nanos(&self) -> Option<u64> {
        let mut text = [0; 128];
        let len = self.0.as_ref()?.read_at(&mut text, 0).ok()?;
        std::str::from_utf8(&text[..len]).ok()?.split_whitespace().nth(1)?.parse().ok()
    }
}

/// What the engine knows about its own use of the processor.
pub(super) struct Load {
    queued: Queued,
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
        let queued = Queued::new();
        let priority = Priority::best(false);
        Load {
            waited_before: queued.nanos().unwrap_or(0),
            queued,
            last: (Duration::ZERO, Duration::ZERO, Instant::ZERO),
            busiest: 0.0,
            priority,
            best: priority,
        }
    }

    /// For how long the thread was ready to run and did not, since this was made.
    pub(super) fn waited(&self) -> Option<Duration> {
        self.queued.nanos().map(|nanos| Duration::from_nanos(nanos.saturating_sub(self.waited_before)))
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

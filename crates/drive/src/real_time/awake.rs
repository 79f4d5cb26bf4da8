//! Processors that do not fall asleep while a laboratory runs.
//!
//! An idle processor is woken late: by tens of microseconds on hardware, by up to milliseconds in a virtual machine,
//! whose host gave it to somebody else. So a thread on each processor has nothing to do and does not stop, below all
//! others (`SCHED_IDLE`): whoever wants to run runs at once. They are threads of the engine's process, and end with it
//! however that ends.
//!
//! Below all others means two things more. Within a group of processes such a thread waits for seconds where others fill
//! its processor (three to six beside three busy threads), and a process, killed or not, is there until each of its
//! threads has had a turn to end in. Against other groups (sessions, services, containers) it would have the group's
//! whole share. So one that was kept from running for as long as a turn takes ends, and none begins before a thread of
//! the ordinary class has seen its processor idle: a processor that others fill is awake without it. Where the group's
//! time is limited nothing is kept awake: it would be used up.

use std::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Thread};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use airloom_base::{Duration, Instant};

use super::clock::Clock;
use super::load::Queued;
use super::sys::{self, Class};

/// Most processors that are kept awake. A larger machine is not kept busy as a whole for one link.
const MOST: usize = 8;
/// A thread that others kept from running for so long has a processor that they fill.
const TURN: Duration = Duration::from_millis(2);
/// How often processors that nothing keeps awake are looked at: five ticks of `/proc/stat`.
const LOOK: Duration = Duration::from_millis(50);
/// Pauses between two looks at the clock: some microseconds.
const PAUSES: usize = 64;
/// A model in which nothing has happened for so long may fall asleep: nobody watches a shell that is left open.
const REST: Duration = Duration::from_secs(10);

/// What was done about sleeping processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wakefulness {
    /// So many at a time were kept awake, at most; one that others filled was awake by that.
    Kept(usize),
    /// None were: why.
    Not(&'static str),
}

impl fmt::Display for Wakefulness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wakefulness::Kept(1) => f.write_str("1 processor kept awake"),
            Wakefulness::Kept(count) => write!(f, "{count} processors kept awake"),
            Wakefulness::Not(why) => write!(f, "no processor kept awake ({why})"),
        }
    }
}

/// The threads that keep processors awake, until it is dropped.
pub(super) struct Awake {
    shared: Arc<Shared>,
    /// Begins the others; without it, why there is none.
    watch: Result<Thread, &'static str>,
}

#[derive(Default)]
struct Shared {
    over: AtomicBool,
    rests: AtomicBool,
    /// Threads that are there, and the most that were.
    count: AtomicUsize,
    most: AtomicUsize,
}

/// A processor that something may keep awake.
struct Processor {
    number: usize,
    kept: Arc<AtomicBool>,
    /// For how long it was idle since the machine started, at the last look.
    idle: Option<Duration>,
}

impl Processor {
    /// Was it idle for most of the time since the last look, which was `elapsed` ago? Of a longer time, as behind a rest, that
    /// says nothing about now.
    fn was_idle(&mut self, stat: &str, elapsed: Duration) -> bool {
        let now = idle(stat, self.number);
        let since = std::mem::replace(&mut self.idle, now);
        let idle = now.zip(since).map(|(now, then)| now.saturating_sub(then));
        (LOOK..LOOK * 4).contains(&elapsed) && idle.is_some_and(|idle| idle >= elapsed / 2)
    }
}

impl Awake {
    /// Nothing is kept awake, for this reason.
    pub(super) fn without(why: &'static str) -> Awake {
        Awake { shared: Arc::default(), watch: Err(why) }
    }

    /// Keeps the processors awake that the calling thread may use. Of a large machine it is some, and the thread is
    /// confined to these.
    pub(super) fn start() -> Awake {
        let own = Pid::from_raw(0);
        let Ok(allowed) = sched_getaffinity(own) else { return Awake::without("their number is not known") };
        if is_limited(
            Path::new("/sys/fs/cgroup"),
            &fs::read_to_string("/proc/self/cgroup").unwrap_or_default(),
        ) {
            return Awake::without("the processor time of this group of processes is limited");
        }
        let (chosen, all) = choose(&allowed);
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let stat = stat();
        let processor =
            |&number: &usize| Processor { number, kept: Arc::default(), idle: idle(&stat, number) };
        let mut processors: Vec<_> = chosen.iter().map(processor).collect();
        let watch = move || theirs.watch(&mut processors);
        let Ok(thread) = thread::Builder::new().name("airloom-watch".to_owned()).spawn(watch) else {
            return Awake::without("the system makes no threads for it");
        };
        if !all {
            let mut confined = CpuSet::new();
            for processor in &chosen {
                let _ = confined.set(*processor);
            }
            let _ = sched_setaffinity(own, &confined);
        }
        Awake { shared, watch: Ok(thread.thread().clone()) }
    }

    /// What was done.
    pub(super) fn said(&self) -> Wakefulness {
        match (&self.watch, self.shared.most.load(Ordering::Relaxed)) {
            (Err(why), _) => Wakefulness::Not(why),
            (Ok(_), 0) => Wakefulness::Not("none was seen idle"),
            (Ok(_), most) => Wakefulness::Kept(most),
        }
    }

    /// It is `now`, and something happened `last`: processors may sleep after a long rest. When to be asked again.
    pub(super) fn tend(&mut self, now: Instant, last: Instant) -> Instant {
        let Ok(watch) = &self.watch else { return Instant::FAR_FUTURE };
        let rests = now.since(last) >= REST;
        if self.shared.rests.swap(rests, Ordering::Relaxed) && !rests {
            watch.unpark();
        }
        if rests { Instant::FAR_FUTURE } else { last + REST }
    }
}

impl Drop for Awake {
    /// Tells the threads to end. It does not wait for that.
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        if let Ok(watch) = &self.watch {
            watch.unpark();
        }
    }
}

impl Shared {
    /// Begins a thread on each processor that is idle and has none, until it is over.
    fn watch(self: &Arc<Self>, processors: &mut [Processor]) {
        let clock = Clock::start();
        let mut before = clock.now();
        while !self.over.load(Ordering::Relaxed) {
            if self.rests.load(Ordering::Relaxed) {
                thread::park();
                continue;
            }
            thread::park_timeout(std::time::Duration::from_nanos(LOOK.as_nanos()));
            if processors.iter().all(|processor| processor.kept.load(Ordering::Relaxed)) {
                continue;
            }
            let stat = stat();
            let elapsed = clock.now().since(std::mem::replace(&mut before, clock.now()));
            for processor in &mut *processors {
                if processor.was_idle(&stat, elapsed)
                    && !self.over.load(Ordering::Relaxed)
                    && !processor.kept.swap(true, Ordering::Relaxed)
                {
                    self.begin(processor);
                }
            }
        }
    }

    /// Begins a thread that keeps a processor awake until others want it.
    fn begin(self: &Arc<Self>, processor: &Processor) {
        let (shared, kept, number) = (Arc::clone(self), Arc::clone(&processor.kept), processor.number);
        let keep = move || {
            let mut only = CpuSet::new();
            let _ = only.set(number);
            // Never above others.
            if sched_setaffinity(Pid::from_raw(0), &only).is_ok() && sys::schedule(Class::Idle).is_ok() {
                let count = shared.count.fetch_add(1, Ordering::Relaxed) + 1;
                shared.most.fetch_max(count, Ordering::Relaxed);
                shared.keep();
                shared.count.fetch_sub(1, Ordering::Relaxed);
            }
            kept.store(false, Ordering::Relaxed);
        };
        if thread::Builder::new().name("airloom-awake".to_owned()).spawn(keep).is_err() {
            processor.kept.store(false, Ordering::Relaxed);
        }
    }

    /// Runs until others want to, or it is over or nobody needs it.
    fn keep(&self) {
        let (clock, queued) = (Clock::start(), Queued::new());
        let mut waited = queued.nanos();
        let mut looks = 0_u8;
        let mut before = clock.now();
        while !self.over.load(Ordering::Relaxed) && !self.rests.load(Ordering::Relaxed) {
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
            looks = looks.wrapping_add(1);
            if looks == 0 {
                waited = queued.nanos();
            }
            let now = clock.now();
            if now.since(before) > TURN {
                // A host that took the processor away for a while is no reason to let it sleep.
                let since = std::mem::replace(&mut waited, queued.nanos());
                let others = waited
                    .zip(since)
                    .map_or(TURN, |(now, then)| Duration::from_nanos(now.saturating_sub(then)));
                if others >= TURN / 2 {
                    return;
                }
            }
            before = now;
        }
    }
}

/// What the kernel says of its processors (proc_stat (5)); nothing, where it does not.
fn stat() -> String {
    fs::read_to_string("/proc/stat").unwrap_or_default()
}

/// For how long a processor was idle since the machine started, by that text.
fn idle(stat: &str, processor: usize) -> Option<Duration> {
    let name = format!("cpu{processor}");
    let line = stat.lines().find(|line| line.split(' ').next() == Some(&name))?;
    let ticks: u64 = line.split_whitespace().nth(4)?.parse().ok()?;
    // What the kernel calls a tick to programs is a hundredth of a second on every machine that Rust knows (USER_HZ).
    Some(Duration::from_millis(ticks.checked_mul(10)?))
}

/// Which of the processors are kept awake, and whether these are all.
fn choose(allowed: &CpuSet) -> (Vec<usize>, bool) {
    let mut all = (0..CpuSet::count()).filter(|n| allowed.is_set(*n).unwrap_or(false));
    let chosen = all.by_ref().take(MOST).collect();
    (chosen, all.next().is_none())
}

/// Has one of the groups that this process is in, by the text of `/proc/self/cgroup`, only so much processor time?
fn is_limited(root: &Path, groups: &str) -> bool {
    groups.lines().any(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { return false };
        let (root, file) = match controllers {
            "" => (root.to_owned(), "cpu.max"),
            list if list.split(',').any(|name| name == "cpu") => (root.join(list), "cpu.cfs_quota_us"),
            _ => return false,
        };
        // No limit is `max 100000` in one version, -1 in the other; the topmost group has no file.
        Path::new(path.trim_start_matches('/')).ancestors().any(|group| {
            let quota = fs::read_to_string(root.join(group).join(file)).unwrap_or_default();
            quota.starts_with(|first: char| first.is_ascii_digit())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    /// Waits for as long as it takes until so many threads are there.
    fn wait_for(shared: &Shared, count: usize) {
        while shared.count.load(Ordering::Relaxed) != count {
            thread::park_timeout(std::time::Duration::from_millis(1));
        }
    }

    /// A thread on the first processor, which begins whether that is idle or not.
    fn with_one_thread() -> Awake {
        let awake = Awake { shared: Arc::default(), watch: Ok(thread::current()) };
        let own = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let number = choose(&own).0[0];
        awake.shared.begin(&Processor { number, kept: Arc::default(), idle: None });
        awake
    }

    #[test]
    fn a_thread_that_keeps_a_processor_awake_ends_with_it_and_in_a_rest() {
        for rests in [false, true] {
            let mut awake = with_one_thread();
            let shared = Arc::clone(&awake.shared);
            // Others may want its processor sooner than it is seen.
            while awake.said() != Wakefulness::Kept(1) {
                thread::park_timeout(std::time::Duration::from_millis(1));
            }
            if rests {
                assert_eq!(awake.tend(at(20), at(5)), Instant::FAR_FUTURE);
                wait_for(&shared, 0);
            }
            drop(awake);
            wait_for(&shared, 0);
        }
    }

    #[test]
    fn processors_may_sleep_after_a_rest_and_are_woken_by_what_happens_then() {
        let mut awake = Awake::without("a test");
        assert_eq!(awake.tend(at(1), at(1)), Instant::FAR_FUTURE, "nothing to tend");
        awake.watch = Ok(thread::current());
        assert_eq!(awake.tend(at(3), at(1)), at(11));
        assert!(!awake.shared.rests.load(Ordering::Relaxed));
        assert_eq!(awake.tend(at(11), at(1)), Instant::FAR_FUTURE);
        assert!(awake.shared.rests.load(Ordering::Relaxed));
        assert_eq!(awake.tend(at(30), at(30)), at(40));
        assert!(!awake.shared.rests.load(Ordering::Relaxed));
        // It was woken: this returns at once.
        thread::park();
    }

    #[test]
    fn how_long_a_processor_was_idle_is_in_the_fourth_column_of_its_line() {
        let stat = "cpu  9 9 9 9 9\ncpu1 1 2 3 456 5 6 7 8 9 10\ncpu10 1 2 3 78\ncpu2 1 2 3\nintr 7\n";
        assert_eq!(idle(stat, 1), Some(Duration::from_millis(4_560)));
        assert_eq!(idle(stat, 10), Some(Duration::from_millis(780)));
        for missing in [0, 2, 3] {
            assert_eq!(idle(stat, missing), None);
        }
        assert_eq!(idle("", 0), None);
    }

    #[test]
    fn a_processor_counts_as_idle_by_what_it_did_since_a_look_that_is_not_long_ago() {
        let was_idle = |from: u64, to: u64, elapsed: u64| {
            let idle = Some(Duration::from_millis(from));
            let mut processor = Processor { number: 0, kept: Arc::default(), idle };
            let found =
                processor.was_idle(&format!("cpu0 1 2 3 {}\n", to / 10), Duration::from_millis(elapsed));
            assert_eq!(processor.idle, Some(Duration::from_millis(to)));
            found
        };
        assert!(was_idle(1_000, 1_030, 50));
        assert!(!was_idle(1_000, 1_020, 50), "others filled most of it");
        assert!(!was_idle(1_000, 1_010, 10), "too short for the kernel's ticks");
        assert!(!was_idle(1_000, 61_000, 60_000), "behind a rest nobody knows when it was");
        let mut unknown = Processor { number: 0, kept: Arc::default(), idle: None };
        assert!(!unknown.was_idle("cpu0 1 2 3 4\n", LOOK));
    }

    #[test]
    fn of_a_large_machine_some_processors_are_kept_awake() {
        let mut allowed = CpuSet::new();
        (3..11).for_each(|n| allowed.set(n).unwrap());
        assert_eq!(choose(&allowed), ((3..11).collect(), true));
        allowed.set(100).unwrap();
        assert_eq!(choose(&allowed), ((3..11).collect(), false));
    }

    #[test]
    fn a_limit_of_any_group_above_counts() {
        let root = std::env::temp_dir().join(format!("airloom-awake-{}", std::process::id()));
        let write = |file: &str, text: &str| {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("free/inner/cpu.max", "max 100000\n");
        write("full/cpu.max", "150000 100000\n");
        write("full/inner/cpu.max", "max 100000\n");
        write("cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n");
        write("cpu,cpuacct/c/cpu.cfs_quota_us", "50000\n");
        let limited = ["0::/full/inner", "0::/full", "4:memory:/x\n3:cpu,cpuacct:/c/d"];
        let free = ["0::/free/inner", "0::/", "3:cpu,cpuacct:/a/b", "3:cpuset:/c", "", "junk"];
        assert_eq!(limited.map(|groups| is_limited(&root, groups)), [true; 3]);
        assert_eq!(free.map(|groups| is_limited(&root, groups)), [false; 6]);
        fs::remove_dir_all(root).unwrap();
    }
}

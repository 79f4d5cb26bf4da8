//! Processors that do not fall asleep while a laboratory runs.
//!
//! An idle processor is woken late: by tens of microseconds on hardware, by up to milliseconds in a virtual machine,
//! whose host gave it to somebody else. So a thread on each processor has nothing to do and does not stop, below all
//! others (`SCHED_IDLE`): whoever wants to run runs at once. They are threads of the engine's process, and end with it
//! however that ends.
//!
//! Below all others means within a group of processes. Against other groups (sessions, services, containers) it would
//! have the group's whole share. So a thread that was kept from running for as long as a turn takes leaves its processor,
//! which is awake without it, for a while. Where the group's time is limited nothing is kept awake: it would be used up.

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
/// How long it stays away then.
const AWAY: std::time::Duration = std::time::Duration::from_millis(50);
/// Pauses between two looks at the clock: some microseconds.
const PAUSES: usize = 64;
/// A model in which nothing has happened for so long may fall asleep: nobody watches a shell that is left open.
const REST: Duration = Duration::from_secs(10);

/// What was done about sleeping processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wakefulness {
    /// So many were kept awake.
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
    said: Wakefulness,
    shared: Arc<Shared>,
    threads: Vec<Thread>,
}

#[derive(Default)]
struct Shared {
    over: AtomicBool,
    rests: AtomicBool,
    /// Threads that are there.
    count: AtomicUsize,
}

impl Awake {
    /// Nothing is kept awake, for this reason.
    pub(super) fn without(why: &'static str) -> Awake {
        Awake { said: Wakefulness::Not(why), shared: Arc::default(), threads: Vec::new() }
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
        let mut awake = Awake::without("the system makes no threads for it");
        for processor in &chosen {
            let shared = Arc::clone(&awake.shared);
            let mut only = CpuSet::new();
            let _ = only.set(*processor);
            let keep = move || {
                // Never above others.
                if sched_setaffinity(own, &only).is_ok() && sys::schedule(Class::Idle).is_ok() {
                    shared.count.fetch_add(1, Ordering::Relaxed);
                    shared.keep();
                    shared.count.fetch_sub(1, Ordering::Relaxed);
                }
            };
            let Ok(thread) = thread::Builder::new().name("airloom-awake".to_owned()).spawn(keep) else {
                break;
            };
            awake.threads.push(thread.thread().clone());
        }
        if !awake.threads.is_empty() {
            awake.said = Wakefulness::Kept(awake.threads.len());
        }
        if !all {
            let mut confined = CpuSet::new();
            for processor in &chosen {
                let _ = confined.set(*processor);
            }
            let _ = sched_setaffinity(own, &confined);
        }
        awake
    }

    /// What was done.
    pub(super) fn said(&self) -> Wakefulness {
        self.said.clone()
    }

    /// It is `now`, and something happened `last`: processors may sleep after a long rest. When to be asked again.
    pub(super) fn tend(&mut self, now: Instant, last: Instant) -> Instant {
        if self.threads.is_empty() {
            return Instant::FAR_FUTURE;
        }
        let rests = now.since(last) >= REST;
        if self.shared.rests.swap(rests, Ordering::Relaxed) && !rests {
            self.threads.iter().for_each(Thread::unpark);
        }
        if rests { Instant::FAR_FUTURE } else { last + REST }
    }
}

impl Drop for Awake {
    /// Tells the threads to end. It does not wait for that: they have their turn when nobody else wants one.
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        self.threads.iter().for_each(Thread::unpark);
    }
}

impl Shared {
    /// Runs until it is over.
    fn keep(&self) {
        let (clock, queued) = (Clock::start(), Queued::new());
        let mut waited = queued.nanos();
        let mut looks = 0_u8;
        let mut before = clock.now();
        while !self.over.load(Ordering::Relaxed) {
            if self.rests.load(Ordering::Relaxed) {
                thread::park();
                before = clock.now();
            }
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
                    thread::park_timeout(AWAY);
                }
                before = clock.now();
            } else {
                before = now;
            }
        }
    }
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

    #[test]
    fn threads_that_keep_processors_awake_end_with_it_also_from_a_rest() {
        for rests in [false, true] {
            let mut awake = Awake::start();
            let Wakefulness::Kept(count) = awake.said() else {
                // Where processor time is limited there is nothing to end.
                assert!(awake.threads.is_empty());
                return;
            };
            let shared = Arc::clone(&awake.shared);
            wait_for(&shared, count);
            if rests {
                assert_eq!(awake.tend(at(20), at(5)), Instant::FAR_FUTURE);
            }
            drop(awake);
            wait_for(&shared, 0);
        }
    }

    #[test]
    fn processors_may_sleep_after_a_rest_and_are_woken_by_what_happens_then() {
        let mut awake = Awake::without("a test");
        assert_eq!(awake.tend(at(1), at(1)), Instant::FAR_FUTURE, "nothing to tend");
        awake.threads.push(thread::current());
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

//! The runs of a sweep: threads take one after the other, and what they gave comes back a part at a time.
//!
//! Each thread has its own [`Series`]; which run is next is a number that they count up together. Runs whose part came to nothing
//! because something panicked are made again, each alone: one that panics then is one that failed. What ends the whole process
//! (memory, the stack, a signal) is known afterwards: runs that are under way are written down.

#![expect(clippy::disallowed_types, reason = "parts are cut by the time that runs take, no model is told")]

mod runs;

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, Builder};
use std::time::{Duration, Instant as Clock};

use airloom_record::sweep::{self, Label, NameTaken, Part, Run, Source};
use airloom_world::scenario::{Identity, Scenario};

pub use self::runs::Runs;
use crate::batch::{Made, Rate, Series};
use crate::run;

/// What was made in this time is kept together: at least, as a share of the session so far, and at most.
const FIRST: Duration = Duration::from_millis(500);
const SHARE: u32 = 50;
const LONGEST: Duration = Duration::from_secs(5);

/// However quick they are, so many runs are kept together at most: about 1 kB each in memory.
const MOST: usize = 16_384;

/// How often whoever waits looks around.
const LOOK: Duration = Duration::from_millis(100);

/// As much as the main thread of a process has.
const STACK: usize = 8 << 20;

/// The file, beside the parts, that says which runs are under way: a line for each thread, the number of a point and a seed.
/// Who finds it where nobody is at work knows which runs may be the reason.
pub const UNDER_WAY: &str = "under-way";

/// Octets of a line of it.
const LINE: usize = 42;

/// A combination of levels.
pub struct Point<'a> {
    /// Its number.
    pub number: i64,
    /// What the axes call it.
    pub labels: Arc<[Label]>,
    /// Its scenario, whose own seed does not count.
    pub scenario: &'a Scenario,
    /// What the identities of its runs follow from.
    pub identity: &'a Identity,
}

/// What is to be made.
pub struct Wanted<'a> {
    /// Names of the axes.
    pub axes: &'a [String],
    /// The points.
    pub points: &'a [Point<'a>],
    /// Tables that are kept of each run.
    pub tables: &'a [String],
    /// The seed whose rate over time is kept too.
    pub rate_seed: Option<u64>,
}

impl Wanted<'_> {
    /// All tables that there may be.
    pub fn names(&self) -> Vec<String> {
        let always = ["runs", "rate"].map(str::to_owned);
        always.into_iter().chain(self.tables.iter().cloned()).collect()
    }
}

/// How far it is.
#[derive(Default)]
pub struct Counts {
    made: AtomicUsize,
    failed: AtomicUsize,
    simulating_ns: AtomicU64,
}

impl Counts {
    /// Counts a run.
    pub fn add(&self, is_good: bool, took_ns: u64) {
        self.simulating_ns.fetch_add(took_ns, Ordering::Relaxed);
        self.failed.fetch_add(usize::from(!is_good), Ordering::Relaxed);
        self.made.fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted came to nothing, but for the time that it took.
    fn take_back(&self, made: usize, failed: usize) {
        self.failed.fetch_sub(failed, Ordering::Relaxed);
        self.made.fetch_sub(made, Ordering::Relaxed);
    }

    /// Runs that were made, how many of them did not come to their end, and nanoseconds inside simulations.
    pub fn read(&self) -> (usize, usize, u64) {
        let read = |count: &AtomicUsize| count.load(Ordering::Relaxed);
        (read(&self.made), read(&self.failed), self.simulating_ns.load(Ordering::Relaxed))
    }
}

/// Why not all runs were made.
#[derive(Debug)]
pub enum Error<E> {
    /// An axis is called as something that runs measure.
    NameTaken(String),
    /// A part cannot be kept.
    Parts(sweep::Error),
    /// Something panicked that is no run's; the sentence says so.
    Fault(String),
    /// What a run that was made otherwise says.
    Other(E),
}

/// Makes runs otherwise than by a [`Series`]: by the thread, the number of the point and the seed; its part, whether it
/// came to its end, and the nanoseconds inside the simulation.
pub type Otherwise<'a, E> = dyn Fn(usize, i64, u64) -> Result<(Part, bool, u64), E> + Sync + 'a;

/// Makes `runs` on so many threads. What was made is kept in the folder `parts` now and then; the rest is returned. `look` is
/// called now and then and says whether to go on. If it says no, or if there is an error, what was under way is dropped, and
/// what was made is kept. Without a folder all is returned.
///
/// # Errors
/// The first one; the other threads have stopped then.
pub fn make<E: Send>(
    wanted: &Wanted<'_>,
    runs: &Runs,
    threads: usize,
    parts: Option<&Path>,
    otherwise: Option<&Otherwise<'_, E>>,
    counts: &Counts,
    mut look: impl FnMut() -> bool,
) -> Result<Vec<Part>, Error<E>> {
    let under_way = parts.map(|parts| parts.join(UNDER_WAY));
    let file = |path: &PathBuf| File::create(path).map_err(|error| unwritten(path, error));
    let all = Threads {
        wanted,
        under_way: under_way.as_ref().map(file).transpose()?,
        otherwise,
        counts,
        begin: Clock::now(),
        runs,
        next: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        error: Mutex::new(None),
    };
    let mut made = Vec::new();
    thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        for number in 0..threads {
            let (all, sender) = (&all, sender.clone());
            let work = move || all.guard(|| all.work(number, &sender));
            let began = Builder::new().stack_size(STACK).spawn_scoped(scope, work);
            // One is enough, where no more are to be had.
            assert!(number > 0 || began.is_ok(), "there is a thread");
        }
        drop(sender);
        let (mut kept, mut kept_runs) = (Clock::now(), 0);
        all.guard(|| {
            loop {
                let first = receiver.recv_timeout(LOOK);
                let is_over = matches!(first, Err(RecvTimeoutError::Disconnected));
                made.extend(first.into_iter().chain(receiver.try_iter()));
                if !look() {
                    all.stop.store(true, Ordering::Relaxed);
                }
                if is_over {
                    return Ok(());
                }
                let runs = counts.read().0;
                if kept.elapsed() >= all.period() || runs.saturating_sub(kept_runs) >= MOST {
                    if let Some(parts) = parts {
                        all.guard(|| all.keep(&mut made, parts));
                    }
                    (kept, kept_runs) = (Clock::now(), runs);
                }
            }
        });
    });
    if let (true, Some(parts)) = (all.is_stopped(), parts) {
        all.guard(|| all.keep(&mut made, parts));
    }
    if let Some(path) = under_way {
        fs::remove_file(&path).map_err(|error| unwritten(&path, error))?;
    }
    all.error.into_inner().expect("nobody panics with it").map_or(Ok(made), Err)
}

fn unwritten<E>(path: &Path, error: io::Error) -> Error<E> {
    Error::Parts(sweep::Error::Io(path.to_owned(), error))
}

/// What the threads share.
struct Threads<'a, E> {
    wanted: &'a Wanted<'a>,
    under_way: Option<File>,
    otherwise: Option<&'a Otherwise<'a, E>>,
    counts: &'a Counts,
    begin: Clock,
    runs: &'a Runs,
    /// The number of the first run that nobody has taken.
    next: AtomicUsize,
    stop: AtomicBool,
    error: Mutex<Option<Error<E>>>,
}

impl<E: Send> Threads<'_, E> {
    /// What one of them does.
    fn work(&self, thread: usize, parts: &Sender<Part>) -> Result<(), Error<E>> {
        let mut alone = VecDeque::new();
        loop {
            let mut begun = Begun::default();
            let most = if alone.is_empty() { MOST / 4 } else { 1 };
            let next = || if self.is_stopped() { None } else { alone.pop_front().or_else(|| self.next()) };
            match run::caught(|| self.part(thread, next, most, &mut begun)) {
                Ok(part) => match part? {
                    Some(part) => drop(parts.send(part)),
                    None => return Ok(()),
                },
                Err(fault) => {
                    self.counts.take_back(begun.made, begun.failed);
                    match begun.runs[..] {
                        [] => return Err(Error::Fault(fault)),
                        [run] => {
                            self.counts.add(false, 0);
                            let mut group = Group::new(self.wanted);
                            group.push(run, Some(fault), None);
                            drop(parts.send(group.part()?));
                        }
                        _ => alone.extend(begun.runs),
                    }
                }
            }
        }
    }

    /// Makes runs that are kept together, so many at most: their part, unless there was none to make.
    fn part(
        &self,
        thread: usize,
        mut next: impl FnMut() -> Option<(usize, u64)>,
        most: usize,
        begun: &mut Begun,
    ) -> Result<Option<Part>, Error<E>> {
        let mut group = Group::new(self.wanted);
        while group.runs.is_empty() || group.runs.len() < most && group.begin.elapsed() < self.period() {
            let Some((index, seed)) = next() else { break };
            begun.runs.push((index, seed));
            let point = &self.wanted.points[index];
            if let Some(file) = &self.under_way {
                let line = format!("{:>20} {seed:>20}\n", point.number);
                let written = file.write_all_at(line.as_bytes(), (thread * LINE) as u64);
                written.map_err(|error| unwritten(Path::new(UNDER_WAY), error))?;
            }
            if let Some(otherwise) = self.otherwise {
                let (part, is_good, took_ns) = otherwise(thread, point.number, seed).map_err(Error::Other)?;
                self.counts.add(is_good, took_ns);
                return Ok(Some(part));
            }
            let Some((is_good, took_ns)) = group.run(index, seed, || !self.is_stopped()) else { break };
            self.counts.add(is_good, took_ns);
            begun.made += 1;
            begun.failed += usize::from(!is_good);
        }
        if group.runs.is_empty() { Ok(None) } else { group.part().map(Some) }
    }

    fn next(&self) -> Option<(usize, u64)> {
        self.runs.get(self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// After an error, or a panic, nobody goes on.
    fn guard(&self, work: impl FnOnce() -> Result<(), Error<E>>) {
        if let Err(error) = run::caught(work).unwrap_or_else(|fault| Err(Error::Fault(fault))) {
            self.error.lock().expect("nobody panics with it").get_or_insert(error);
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// How long what was made is only in memory.
    fn period(&self) -> Duration {
        (self.begin.elapsed() / SHARE).clamp(FIRST, LONGEST)
    }

    fn keep(&self, made: &mut Vec<Part>, parts: &Path) -> Result<(), Error<E>> {
        let names = self.wanted.names();
        let sources: Vec<Source<'_>> = made.iter().map(Source::Part).collect();
        sweep::keep(&sources, &names, parts).map_err(Error::Parts)?;
        made.clear();
        Ok(())
    }
}

/// Runs that a thread has begun since its last part, and what it has counted of them.
#[derive(Default)]
struct Begun {
    runs: Vec<(usize, u64)>,
    made: usize,
    failed: usize,
}

/// Runs of a thread that become one part.
struct Group<'a> {
    wanted: &'a Wanted<'a>,
    begin: Clock,
    series: Series,
    /// Index of the point that the last run was of.
    of: Option<usize>,
    runs: Vec<Run>,
}

impl<'a> Group<'a> {
    fn new(wanted: &'a Wanted<'a>) -> Group<'a> {
        let series = Series::new(wanted.tables.to_vec());
        Group { wanted, begin: Clock::now(), series, of: None, runs: Vec::new() }
    }

    /// Makes a run; whether it came to its end, and nanoseconds. `None`: it was stopped.
    fn run(&mut self, index: usize, seed: u64, go_on: impl Fn() -> bool) -> Option<(bool, u64)> {
        let point = &self.wanted.points[index];
        if self.of.replace(index) != Some(index) {
            self.series.of(point.scenario);
        }
        if !self.series.run(seed, self.wanted.rate_seed == Some(seed), |_| go_on()) {
            return None;
        }
        let Made { outcome, took_ns, rate } = self.series.last()?;
        let error = match outcome {
            Ok(outcome) => outcome.why().map(str::to_owned),
            Err(error) => Some(error.clone()),
        };
        let (is_good, took_ns, rate) = (error.is_none(), *took_ns, rate.clone());
        self.push((index, seed), error, rate);
        Some((is_good, took_ns))
    }

    fn push(&mut self, (index, seed): (usize, u64), error: Option<String>, rate: Option<Rate>) {
        let point = &self.wanted.points[index];
        let (labels, run_id) = (Arc::clone(&point.labels), point.identity.run_id(seed));
        let rate = rate.map(|rate| (rate.point, rate.span_ns, rate.octets));
        self.runs.push(Run { point: point.number, labels, seed, run_id, error, is_lost: false, rate });
    }

    fn part<E>(self) -> Result<Part, Error<E>> {
        let batch = self.series.finish();
        let summaries = batch.summaries;
        let tables = batch.tables.into_iter().map(|(name, columns)| (name.to_owned(), columns)).collect();
        let part = Part::new(self.wanted.axes, &self.runs, &summaries.names, summaries.values, tables);
        part.map_err(|NameTaken(name)| Error::NameTaken(name))
    }
}

#[cfg(test)]
mod tests {
    use airloom_world::scenario::Document;

    use super::*;

    fn scenario(size: &str) -> Scenario {
        let text = format!(
            "path = [\"a\", \"wire\", \"b\"]\n\
             hosts = {{ a = {{ app = {{ bulk = {{ size = \"{size}\" }} }} }}, b = {{ app = \"bulk-server\" }} }}\n\
             links.wire = {{ bearer = \"wireline\", rate = \"1Mbit/s\", delay = \"20ms\", loss = 0.05 }}\n"
        );
        Document::read("t.toml", text.as_bytes()).unwrap().check().unwrap()
    }

    #[test]
    fn a_panic_outside_of_simulations_is_the_error_of_its_run_and_the_others_are_made_again() {
        let good = scenario("20kB");
        let identity = good.identity("virtual", "0");
        let mut broken = good.clone();
        // Its tables cannot be given the names of its hosts.
        broken.hosts.clear();
        let point = |number, scenario| Point { number, labels: Arc::new([]), scenario, identity: &identity };
        let made = |points: &[Point<'_>], threads| {
            let wanted = Wanted { axes: &[], points, tables: &["flows".to_owned()], rate_seed: Some(1) };
            let counts = Counts::default();
            let runs = (1..=30).map(|seed| (usize::from(seed % 10 == 5), seed));
            let parts = make::<()>(&wanted, &runs.collect(), threads, None, None, &counts, || true).unwrap();
            let (made, failed, _) = counts.read();
            (octets(&parts), made, failed)
        };
        let (expected, made_one, failed) = made(&[point(0, &good), point(1, &broken)], 1);
        assert_eq!((made_one, failed), (30, 3));
        let said = b"a fault in airloom at crates/drive/src/run.rs:";
        assert!(expected[0].1.windows(said.len()).any(|text| text == said));
        assert_eq!(made(&[point(0, &good), point(1, &broken)], 3), (expected, 30, 3));
        assert_eq!(made(&[point(0, &good), point(1, &good)], 1).2, 0);
    }

    #[test]
    fn a_panic_that_is_no_run_s_ends_all_and_is_said() {
        let good = scenario("20kB");
        let identity = good.identity("virtual", "0");
        // A label is missing: a run cannot even be one that failed.
        let points = [Point { number: 0, labels: Arc::new([]), scenario: &good, identity: &identity }];
        let wanted = Wanted { axes: &["axis".to_owned()], points: &points, tables: &[], rate_seed: None };
        // More than are made before somebody looks.
        let runs = (0..1_000_000).map(|seed| (0, seed)).collect();
        let error = |look: &dyn Fn() -> bool| match make::<()>(
            &wanted,
            &runs,
            2,
            None,
            None,
            &Counts::default(),
            look,
        ) {
            Err(Error::Fault(said)) => said,
            _ => panic!("it came to its end"),
        };
        assert!(error(&|| true).starts_with("a fault in airloom at crates/record/src/sweep/part.rs:"));
        assert!(error(&|| panic!("looked")).ends_with(": looked"));
    }

    /// Has the runs of a scenario made by so many threads; how many were made, and the parts that are in memory.
    fn made(
        size: &str,
        seeds: u64,
        threads: usize,
        parts: Option<&Path>,
        look: impl FnMut() -> bool,
    ) -> (usize, Vec<Part>) {
        let scenario = scenario(size);
        let identity = scenario.identity("virtual", "0");
        let labels: Arc<[Label]> = Arc::new([Label::Whole(3)]);
        let points = [Point { number: 0, labels, scenario: &scenario, identity: &identity }];
        let (axes, tables) = (["axis".to_owned()], ["flows".to_owned()]);
        let wanted = Wanted { axes: &axes, points: &points, tables: &tables, rate_seed: Some(1) };
        let counts = Counts::default();
        let runs = (1..=seeds).map(|seed| (0, seed)).collect();
        let made = make::<()>(&wanted, &runs, threads, parts, None, &counts, look).unwrap();
        (counts.read().0, made)
    }

    fn octets(parts: &[Part]) -> Vec<(String, Vec<u8>)> {
        let sources: Vec<Source<'_>> = parts.iter().map(Source::Part).collect();
        sweep::octets(&sources, &["runs", "flows", "rate"].map(str::to_owned)).unwrap()
    }

    #[test]
    fn any_number_of_threads_gives_the_same_octets() {
        let (count, one) = made("20kB", 30, 1, None, || true);
        assert_eq!(count, 30);
        let expected = octets(&one);
        assert_eq!(expected.len(), 3);
        for threads in [2, 7, 40] {
            assert!(octets(&made("20kB", 30, threads, None, || true).1) == expected, "{threads}");
        }
    }

    #[test]
    fn whoever_stops_it_does_not_wait_for_the_runs_and_what_was_made_is_kept() {
        let folder = airloom_testkit::Folder::new("sweep-stopped");
        let parts = &folder.0;
        let mut looks = 0;
        let (count, rest) = made("20kB", 1_000_000, 2, Some(parts), || {
            looks += 1;
            assert_eq!(fs::metadata(parts.join(UNDER_WAY)).unwrap().len() % LINE as u64, 0);
            looks < 3
        });
        assert!(rest.is_empty());
        let kept: Vec<PathBuf> = fs::read_dir(parts).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(0 < count && count < 1_000_000);
        assert_eq!(sweep::Done::read(&kept).unwrap().runs(), count);
        // A run that does not end is none.
        assert_eq!(made("100GB", 4, 2, Some(parts), || false).0, 0);
    }

    #[test]
    fn an_error_of_a_thread_ends_the_others() {
        let (scenario, counts) = (scenario("20kB"), Counts::default());
        let identity = scenario.identity("virtual", "0");
        let points = [Point { number: 5, labels: Arc::new([]), scenario: &scenario, identity: &identity }];
        let wanted = Wanted { axes: &[], points: &points, tables: &[], rate_seed: None };
        let fail = |_: usize, point: i64, seed: u64| Err(format!("{point}, {seed}"));
        let runs = (0..1000).map(|seed| (0, seed)).collect();
        let error = make(&wanted, &runs, 1, None, Some(&fail), &counts, || true).err();
        assert!(matches!(error, Some(Error::Other(said)) if said == "5, 0"));
    }
}

//! One page on its way: which objects wait, and what has come of the others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use airloom_base::{Duration, Instant};

/// An object that is to be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// Its place in the page.
    pub(crate) object: u32,
    /// How often a connection failed on it.
    pub(crate) failures: u16,
    /// Since when it is known to be needed.
    pub(crate) known: Instant,
}

/// How an object of a page becomes known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Naming {
    /// The object that names it; none: it is known from the start.
    pub(crate) by: Option<u32>,
    /// How long reading it takes before those that it names are known.
    pub(crate) parsing: Duration,
}

/// A page that is being loaded.
#[derive(Default)]
pub(crate) struct Page {
    /// Its place in the list of pages.
    pub(crate) index: usize,
    /// How often the list was gone through before.
    pub(crate) round: u64,
    pub(crate) start: Instant,
    waiting: VecDeque<Job>,
    /// Objects that are not asked for before another one is settled and read, by that one.
    held: BTreeMap<u32, Contents>,
    /// When reading an object that is settled is done.
    parsed: BTreeSet<(Instant, u32)>,
    /// Objects that have neither arrived nor failed.
    unsettled: u32,
    pub(crate) failed: u32,
    pub(crate) bytes: u64,
    pub(crate) connections: u32,
    /// From the beginning to the arrival of the first object that arrived.
    pub(crate) first: Option<Duration>,
}

/// What one object names, and how long it takes to be read.
struct Contents {
    parsing: Duration,
    objects: Vec<u32>,
}

impl Page {
    /// A page of these objects. Each is named by one before it, or by none.
    pub(crate) fn new(index: usize, round: u64, objects: &[Naming], start: Instant) -> Self {
        let mut held = BTreeMap::<u32, Contents>::new();
        let mut waiting = VecDeque::new();
        for (object, naming) in (0..).zip(objects) {
            match naming.by.filter(|by| *by < object) {
                Some(by) => {
                    let parsing = objects[by as usize].parsing;
                    held.entry(by)
                        .or_insert_with(|| Contents { parsing, objects: Vec::new() })
                        .objects
                        .push(object);
                }
                None => waiting.push_back(Job { object, failures: 0, known: start }),
            }
        }
        Page { index, round, start, waiting, held, unsettled: objects.len() as u32, ..Default::default() }
    }

    /// The next object to ask for.
    pub(crate) fn take(&mut self) -> Option<Job> {
        self.waiting.pop_front()
    }

    /// Does an object wait to be asked for?
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Its connection did not answer: it is asked for again before all others.
    pub(crate) fn retry(&mut self, job: Job) {
        self.waiting.push_front(job);
    }

    /// An object has arrived or failed for good.
    pub(crate) fn settle(&mut self, object: u32, arrived: bool, now: Instant) {
        self.unsettled -= 1;
        self.failed += u32::from(!arrived);
        if arrived {
            self.first.get_or_insert(now - self.start);
        }
        if let Some(held) = self.held.get(&object) {
            self.parsed.insert((now + held.parsing, object));
            self.discover(now);
        }
    }

    /// When further objects become known.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.parsed.first().map(|(at, _)| *at)
    }

    /// The objects that are known by now wait to be asked for.
    pub(crate) fn discover(&mut self, now: Instant) {
        while self.next().is_some_and(|at| at <= now) {
            let Some((known, by)) = self.parsed.pop_first() else { return };
            let objects = self.held.remove(&by).map(|held| held.objects).unwrap_or_default();
            self.waiting.extend(objects.into_iter().map(|object| Job { object, failures: 0, known }));
        }
    }

    /// Is every object settled?
    pub(crate) fn is_done(&self) -> bool {
        self.unsettled == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Objects that are named by others, and how many milliseconds reading each takes.
    fn page(objects: &[(Option<u32>, u64)]) -> Page {
        let naming = |(by, ms): &(Option<u32>, u64)| Naming { by: *by, parsing: Duration::from_millis(*ms) };
        Page::new(0, 0, &objects.iter().map(naming).collect::<Vec<_>>(), at(0))
    }

    #[test]
    fn inline_objects_wait_for_the_first() {
        let mut page = page(&[(None, 130), (Some(0), 0), (Some(0), 0)]);
        let first = page.take().unwrap();
        assert!(!page.has_waiting());
        page.retry(first);
        assert_eq!(page.take(), Some(first));
        page.settle(0, true, at(1000));
        assert!(!page.has_waiting());
        assert_eq!(page.next(), Some(at(1130)));
        page.discover(at(1129));
        assert!(!page.has_waiting());
        page.discover(at(1130));
        assert_eq!(page.next(), None);
        assert_eq!((page.take().unwrap().object, page.take().unwrap().object), (1, 2));
        page.settle(1, false, at(1500));
        assert!(!page.is_done());
        page.settle(2, true, at(2000));
        assert!(page.is_done());
        assert_eq!((page.failed, page.first), (1, Some(Duration::from_millis(1000))));
    }

    #[test]
    fn without_parsing_they_are_known_at_once() {
        let mut page = page(&[(None, 0), (Some(0), 0)]);
        let _ = page.take();
        page.settle(0, true, Instant::ZERO);
        assert_eq!(page.take().unwrap().object, 1);
    }

    #[test]
    fn objects_that_are_named_may_name_others() {
        // The first names a style sheet and a picture, the sheet another picture; a frame is known from the start.
        let mut page = page(&[(None, 0), (Some(0), 50), (Some(0), 0), (Some(1), 0), (None, 0)]);
        let known =
            |page: &mut Page| std::iter::from_fn(|| page.take()).map(|job| job.object).collect::<Vec<_>>();
        assert_eq!(known(&mut page), [0, 4]);
        page.settle(4, true, at(5));
        assert!(!page.has_waiting());
        page.settle(0, true, at(10));
        assert_eq!(known(&mut page), [1, 2]);
        // What names something and fails holds nothing up.
        page.settle(1, false, at(20));
        page.discover(at(69));
        assert!(!page.has_waiting());
        page.discover(at(70));
        assert_eq!(known(&mut page), [3]);
        page.settle(2, true, at(80));
        page.settle(3, true, at(90));
        assert!(page.is_done());
    }
}

//! One page on its way: which objects wait, and what has come of the others.

use std::collections::VecDeque;

use airloom_base::{Duration, Instant};

/// An object that is to be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    /// Its place in the page.
    pub(crate) object: u32,
    /// How often a connection failed on it.
    pub(crate) failures: u16,
}

/// A page that is being loaded.
pub(crate) struct Page {
    /// Its place in the list of pages.
    pub(crate) index: usize,
    pub(crate) start: Instant,
    waiting: VecDeque<Job>,
    /// Objects that are not asked for before the first one is settled and read.
    held: u32,
    /// How long reading the first one takes, and when that is done.
    parsing: Duration,
    parsed: Option<Instant>,
    /// Objects that have neither arrived nor failed.
    unsettled: u32,
    pub(crate) failed: u32,
    pub(crate) bytes: u64,
    pub(crate) connections: u32,
    /// From the beginning to the arrival of the first object that arrived.
    pub(crate) first: Option<Duration>,
}

impl Page {
    /// A page of `objects` objects; with `first_alone` the others wait until the first has been there for this long.
    pub(crate) fn new(index: usize, objects: u32, first_alone: Option<Duration>, start: Instant) -> Self {
        let now = if first_alone.is_some() { objects.min(1) } else { objects };
        Page {
            index,
            start,
            waiting: (0..now).map(|object| Job { object, failures: 0 }).collect(),
            held: objects - now,
            parsing: first_alone.unwrap_or_default(),
            parsed: None,
            unsettled: objects,
            failed: 0,
            bytes: 0,
            connections: 0,
            first: None,
        }
    }

    /// Does an object wait to be asked for?
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The next object to ask for.
    pub(crate) fn take(&mut self) -> Option<Job> {
        self.waiting.pop_front()
    }

    /// Its connection did not answer: it is asked for again before all others.
    pub(crate) fn again(&mut self, job: Job) {
        self.waiting.push_front(job);
    }

    /// An object has arrived or failed for good.
    pub(crate) fn settle(&mut self, arrived: bool, now: Instant) {
        self.unsettled -= 1;
        self.failed += u32::from(!arrived);
        if arrived {
            self.first.get_or_insert(now - self.start);
        }
        if self.held > 0 {
            self.parsed = Some(now + self.parsing);
            self.go_on(now);
        }
    }

    /// When further objects become known.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.parsed
    }

    /// The objects that are known by now wait to be asked for.
    pub(crate) fn go_on(&mut self, now: Instant) {
        if self.parsed.is_some_and(|parsed| parsed <= now) {
            self.parsed = None;
            let held = std::mem::take(&mut self.held);
            self.waiting.extend((1..=held).map(|object| Job { object, failures: 0 }));
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

    #[test]
    fn inline_objects_wait_for_the_first() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut page = Page::new(0, 3, Some(Duration::from_millis(130)), at(0));
        let first = page.take().unwrap();
        assert!(!page.has_waiting());
        page.again(first);
        assert_eq!(page.take(), Some(first));
        page.settle(true, at(1000));
        assert!(!page.has_waiting());
        assert_eq!(page.next(), Some(at(1130)));
        page.go_on(at(1129));
        assert!(!page.has_waiting());
        page.go_on(at(1130));
        assert_eq!(page.next(), None);
        assert_eq!((page.take().unwrap().object, page.take().unwrap().object), (1, 2));
        page.settle(false, at(1500));
        assert!(!page.is_done());
        page.settle(true, at(2000));
        assert!(page.is_done());
        assert_eq!((page.failed, page.first), (1, Some(Duration::from_millis(1000))));
    }

    #[test]
    fn without_parsing_they_are_known_at_once() {
        let mut page = Page::new(0, 2, Some(Duration::ZERO), Instant::ZERO);
        let _ = page.take();
        page.settle(true, Instant::ZERO);
        assert_eq!(page.take().unwrap().object, 1);
    }
}

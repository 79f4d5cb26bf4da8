//! Which page is loaded when.

use airloom_base::random::Stream;
use airloom_base::{ConfigError, Duration, Instant};

use super::page::Naming;
use super::traffic::{Drawing, Drawn};
use super::{Object, Page, PageSet, Traffic};

/// What a scenario says of pages; the keys are the same in every browser.
#[derive(Clone, Copy)]
pub(crate) struct List<'a> {
    /// Objects of one page, all known from the start.
    pub(crate) objects: &'a [Object],
    /// Pages whose first object names the others.
    pub(crate) pages: &'a [Vec<Object>],
    /// Pages drawn from a model.
    pub(crate) traffic: Option<&'a Traffic>,
    /// Pages of a set, and which of them.
    pub(crate) set: Option<(&'a PageSet, &'a [u32])>,
    /// How often everything that is listed is loaded.
    pub(crate) repeat: u32,
    /// Pause between two pages of a list.
    pub(crate) think: Duration,
    /// How long reading an object takes that names others, where nothing else is said.
    pub(crate) parsing: Duration,
    /// When to begin, at the earliest.
    pub(crate) start: Duration,
    /// And how much later at most: the time is random.
    pub(crate) spread: Duration,
}

/// The pages of an application, one after another.
pub(crate) struct Plan {
    source: Source,
    /// Pages still to begin.
    left: u64,
    /// Pages that have begun.
    begun: u64,
    next: Instant,
    /// No page begins after this.
    until: Option<Instant>,
}

enum Source {
    Listed {
        pages: Vec<Vec<Object>>,
        first_alone: bool,
        think: Duration,
        parsing: Duration,
    },
    /// And the page that is being loaded.
    Drawn(Box<Drawing>, Drawn),
}

impl Plan {
    /// `stream` gives the random numbers of the beginning and of pages.
    pub(crate) fn new(list: &List, stream: impl Fn(&str) -> Stream) -> Result<Plan, ConfigError> {
        let delay = Duration::from_nanos(stream("start").below(list.spread.as_nanos()));
        let start = Instant::ZERO + list.start + delay;
        ConfigError::when(list.repeat == 0, "repeat", "must be at least 1")?;
        let given = [("objects", !list.objects.is_empty()), ("pages", !list.pages.is_empty())];
        let others = [("traffic", list.traffic.is_some()), ("page_set", list.set.is_some())];
        let given = given.into_iter().chain(others).filter(|(_, is)| *is);
        if let Some((key, _)) = given.skip(1).last() {
            return Err(ConfigError::at(key, "give one of `objects`, `pages`, `traffic` and `page_set`"));
        }
        if let Some((set, visit)) = list.set {
            let pages = set.pages(visit)?;
            let list = List { pages: &pages, set: None, ..*list };
            check(&list).map_err(|error| ConfigError::at("page_set", error.message))?;
            return Ok(Plan::of_list(&list, start));
        }
        check(list)?;
        let Some(traffic) = list.traffic else { return Ok(Plan::of_list(list, start)) };
        let mut drawing = traffic.drawing(stream("pages")).map_err(|error| error.below("traffic"))?;
        let first = drawing.draw();
        let until = traffic.within.map(|within| start + within);
        Ok(Plan {
            source: Source::Drawn(Box::new(drawing), first),
            left: traffic.pages(),
            begun: 0,
            next: start,
            until,
        })
    }

    fn of_list(list: &List, start: Instant) -> Plan {
        let first_alone = !list.pages.is_empty();
        let pages = match (list.objects.is_empty(), first_alone) {
            (_, true) => list.pages.to_vec(),
            (false, _) => vec![list.objects.to_vec()],
            (true, _) => vec![vec![Object::Path("/".to_owned())]],
        };
        let left = pages.len() as u64 * u64::from(list.repeat);
        Plan {
            source: Source::Listed { pages, first_alone, think: list.think, parsing: list.parsing },
            left,
            begun: 0,
            next: start,
            until: None,
        }
    }

    /// Was every page begun?
    pub(crate) fn is_over(&self) -> bool {
        self.left == 0
    }

    /// When the next page begins, if there is one.
    pub(crate) fn next(&self) -> Option<Instant> {
        (self.left > 0).then_some(self.next)
    }

    /// The next page, from now on.
    pub(crate) fn begin(&mut self, now: Instant) -> Page {
        let begun = self.begun;
        self.begun += 1;
        self.left = self.left.saturating_sub(1);
        match &self.source {
            Source::Listed { pages, first_alone, parsing, .. } => {
                let all = pages.len() as u64;
                let index = (begun % all) as usize;
                let naming = |(n, object): (usize, &Object)| Naming {
                    by: object.after().or((*first_alone && n > 0).then_some(0)),
                    parsing: object.parsing().unwrap_or(*parsing),
                };
                let objects: Vec<Naming> = pages[index].iter().enumerate().map(naming).collect();
                Page::new(index, begun / all, &objects, now)
            }
            Source::Drawn(_, page) => {
                let naming = |n| Naming { by: (n > 0).then_some(0), parsing: page.parsing };
                let objects: Vec<Naming> = (0..page.objects.len()).map(naming).collect();
                Page::new(0, begun, &objects, now)
            }
        }
    }

    /// A page has ended, and nothing is asked of it any more: the next one begins after the pause.
    pub(crate) fn ended(&mut self, now: Instant) {
        self.next = now
            + match &mut self.source {
                Source::Listed { think, .. } => *think,
                Source::Drawn(drawing, page) => std::mem::replace(page, drawing.draw()).reading,
            };
        if self.until.is_some_and(|until| self.next > until) {
            self.left = 0;
        }
    }

    /// Every object of a list.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Object> + Clone {
        let pages = match &self.source {
            Source::Listed { pages, .. } => pages.as_slice(),
            Source::Drawn(..) => &[],
        };
        pages.iter().flatten()
    }

    /// The objects of a page.
    pub(crate) fn objects(&self, page: &Page) -> &[Object] {
        match &self.source {
            Source::Listed { pages, .. } => &pages[page.index],
            Source::Drawn(_, page) => &page.objects,
        }
    }
}

/// Most octets of a form: it is held in memory as it is sent.
const MOST_POSTED: u64 = 16_000_000;

fn check(list: &List) -> Result<(), ConfigError> {
    let listed = list.objects.iter().map(|object| ("objects", object));
    let paged = list.pages.iter().flatten().map(|object| ("pages", object));
    for (key, object) in listed.chain(paged) {
        let path = object.path();
        if !path.starts_with('/') || !path.bytes().all(|b| b.is_ascii_graphic()) || path.len() > 8000 {
            let message = format!("`{path}` is not a path: it must begin with / and have no spaces");
            return Err(ConfigError::at(key, message));
        }
        if object.posts().is_some_and(|form| form.0 > MOST_POSTED) {
            return Err(ConfigError::at(key, format!("`{path}`: a form has at most {MOST_POSTED} octets")));
        }
    }
    let lists = list.pages.iter().map(|page| ("pages", page.as_slice()));
    for (key, objects) in lists.chain([("objects", list.objects)]) {
        let wrong = objects.iter().enumerate().find(|(n, o)| o.after().is_some_and(|by| by as usize >= *n));
        if let Some((n, object)) = wrong {
            let message = format!(
                "`{}`: `after` is the place of an object before it, less than its own place {n}",
                object.path()
            );
            return Err(ConfigError::at(key, message));
        }
    }
    ConfigError::when(list.pages.iter().any(Vec::is_empty), "pages", "a page has at least one object")
}

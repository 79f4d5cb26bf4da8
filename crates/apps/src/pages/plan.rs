//! Which page is loaded when.

use airloom_base::{ConfigError, Duration, Instant};

use super::{Object, Page};

/// What a scenario says of pages; the keys are the same in every browser.
pub(crate) struct List<'a> {
    /// Objects of one page, all known from the start.
    pub(crate) objects: &'a [Object],
    /// Pages whose first object names the others.
    pub(crate) pages: &'a [Vec<Object>],
    /// How often everything is loaded.
    pub(crate) repeat: u32,
    /// Pause between two pages.
    pub(crate) think: Duration,
}

/// The pages of an application, one after another.
pub(crate) struct Plan {
    pages: Vec<Vec<Object>>,
    first_alone: bool,
    /// Pages still to begin.
    left: u64,
    think: Duration,
    next: Instant,
}

impl Plan {
    /// The first page begins at `start`.
    pub(crate) fn new(list: &List, start: Instant) -> Result<Plan, ConfigError> {
        let List { objects, pages, repeat, think } = *list;
        if repeat == 0 {
            return Err(ConfigError::at("repeat", "must be at least 1"));
        }
        if !objects.is_empty() && !pages.is_empty() {
            return Err(ConfigError::at("pages", "give either `objects` or `pages`, not both"));
        }
        let first_alone = !pages.is_empty();
        let pages = match (objects.is_empty(), first_alone) {
            (_, true) => pages.to_vec(),
            (false, _) => vec![objects.to_vec()],
            (true, _) => vec![vec![Object::Path("/".to_owned())]],
        };
        check_paths(list)?;
        let left = pages.len() as u64 * u64::from(repeat);
        Ok(Plan { pages, first_alone, left, think, next: start })
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
        let all = self.pages.len() as u64;
        let index = ((all - self.left % all) % all) as usize;
        self.left = self.left.saturating_sub(1);
        Page::new(index, self.pages[index].len() as u32, self.first_alone, now)
    }

    /// A page has ended: the next one begins after the pause.
    pub(crate) fn ended(&mut self, now: Instant) {
        self.next = now + self.think;
    }

    /// The objects of a page.
    pub(crate) fn objects(&self, page: &Page) -> &[Object] {
        &self.pages[page.index]
    }
}

fn check_paths(list: &List) -> Result<(), ConfigError> {
    let listed = list.objects.iter().map(|object| ("objects", object));
    let paged = list.pages.iter().flatten().map(|object| ("pages", object));
    for (key, object) in listed.chain(paged) {
        let path = object.path();
        if !path.starts_with('/') || !path.bytes().all(|b| b.is_ascii_graphic()) || path.len() > 8000 {
            let message = format!("`{path}` is not a path: it must begin with / and have no spaces");
            return Err(ConfigError::at(key, message));
        }
    }
    if list.pages.iter().any(Vec::is_empty) {
        return Err(ConfigError::at("pages", "a page has at least one object"));
    }
    Ok(())
}

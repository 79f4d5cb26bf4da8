//! What became of the pages.

use airloom_base::record::{PageRecord, Record};
use airloom_base::{Cx, Instant, Summary};

use super::{Object, Page};
use crate::times::Times;

/// Numbers of the pages that were loaded, and their records.
#[derive(Default)]
pub(crate) struct Loads {
    pages: u64,
    failed: u64,
    load: Times,
    /// From a page's beginning to its first object.
    first: Times,
    /// When the first page began and the last one ended.
    span: Option<(Instant, Instant)>,
}

impl Loads {
    /// A page of `objects` at `base` (scheme and authority) has ended on `host`.
    pub(crate) fn ended(&mut self, cx: &mut Cx, page: &Page, objects: &[Object], base: &str, host: &str) {
        let time = cx.now - page.start;
        let load = (page.failed == 0).then_some(time);
        self.pages += 1;
        self.failed += u64::from(load.is_none());
        if let Some(time) = load {
            self.load.add(time);
        }
        if let Some(first) = page.first {
            self.first.add(first);
        }
        let first = self.span.map_or(page.start, |(first, _)| first);
        self.span = Some((first, cx.now));
        if cx.records.wants_facts() {
            let path = objects.first().map_or("/", Object::path);
            cx.records.push(Record::Page(PageRecord {
                page: u32::try_from(self.pages).unwrap_or(u32::MAX),
                url: format!("{base}{path}"),
                client: host.to_owned(),
                start: page.start,
                load,
                first_object: page.first,
                objects: objects.len() as u32,
                bytes: page.bytes,
                connections: page.connections,
                failed: page.failed,
            }));
        }
    }

    /// Adds the numbers of pages to the summary.
    pub(crate) fn summarise(&self, out: &mut Summary) {
        out.set_some("completion_s", self.span.map(|(first, last)| (last - first).as_secs_f64()));
        out.set("pages", self.pages as f64);
        out.set("pages_failed", self.failed as f64);
        out.set_some("page_load_s", self.load.mean_s());
        self.load.summarise("page_load", out);
        self.first.summarise("first_object", out);
    }
}

//! One row per page load.

use std::mem::take;

use airloom_base::record::PageRecord;

use super::column::{Category, Column, Optional, Table, Values, full, nanos};

/// The pages table.
#[derive(Default)]
pub(super) struct Pages {
    page: Vec<u32>,
    url: Vec<String>,
    client: Category,
    start_ns: Vec<i64>,
    load_ns: Optional<i64>,
    first_object_ns: Optional<i64>,
    objects: Vec<u32>,
    bytes: Vec<u64>,
    connections: Vec<u32>,
    failed: Vec<u32>,
}

impl Pages {
    pub(super) fn push(&mut self, page: &PageRecord) {
        self.page.push(page.page);
        self.url.push(page.url.clone());
        self.client.push(&page.client);
        self.start_ns.push(nanos(page.start.as_nanos()));
        self.load_ns.push(page.load.map(|d| nanos(d.as_nanos())));
        self.first_object_ns.push(page.first_object.map(|d| nanos(d.as_nanos())));
        self.objects.push(page.objects);
        self.bytes.push(page.bytes);
        self.connections.push(page.connections);
        self.failed.push(page.failed);
    }

    pub(super) fn into_columns(self) -> Vec<Column> {
        vec![
            full("page", Values::U32(self.page)),
            full("url", Values::Text(self.url)),
            self.client.column("client"),
            full("start_ns", Values::I64(self.start_ns)),
            self.load_ns.column("load_ns", Values::I64),
            self.first_object_ns.column("first_object_ns", Values::I64),
            full("objects", Values::U32(self.objects)),
            full("bytes", Values::U64(self.bytes)),
            full("connections", Values::U32(self.connections)),
            full("failed", Values::U32(self.failed)),
        ]
    }
}

impl Table for Pages {
    fn rows(&self) -> usize {
        self.page.len()
    }

    fn take_rows(&mut self) -> Vec<Column> {
        take(self).into_columns()
    }
}

//! One row per object of a page: its waterfall.

use std::mem::take;

use airloom_base::record::ObjectRecord;

use super::column::{Category, Column, Optional, Table, Values, full, nanos};

/// The objects table.
#[derive(Default)]
pub(super) struct Objects {
    page: Vec<u32>,
    object: Vec<u32>,
    url: Vec<String>,
    client: Category,
    known_ns: Vec<i64>,
    asked_ns: Optional<i64>,
    first_byte_ns: Optional<i64>,
    done_ns: Vec<i64>,
    bytes: Vec<u64>,
    status: Optional<u16>,
    flow: Optional<u32>,
    request: Optional<u32>,
    failures: Vec<u16>,
    source: Category,
}

impl Objects {
    pub(super) fn push(&mut self, object: &ObjectRecord) {
        self.page.push(object.page);
        self.object.push(object.object);
        self.url.push(object.url.clone());
        self.client.push(&object.client);
        self.known_ns.push(nanos(object.known.as_nanos()));
        self.asked_ns.push(object.asked.map(|t| nanos(t.as_nanos())));
        self.first_byte_ns.push(object.first_byte.map(|t| nanos(t.as_nanos())));
        self.done_ns.push(nanos(object.done.as_nanos()));
        self.bytes.push(object.bytes);
        self.status.push(object.status);
        self.flow.push(object.flow);
        self.request.push(object.request);
        self.failures.push(object.failures);
        self.source.push(object.source.name());
    }

    pub(super) fn into_columns(self) -> Vec<Column> {
        vec![
            full("page", Values::U32(self.page)),
            full("object", Values::U32(self.object)),
            full("url", Values::Text(self.url)),
            self.client.column("client"),
            full("known_ns", Values::I64(self.known_ns)),
            self.asked_ns.column("asked_ns", Values::I64),
            self.first_byte_ns.column("first_byte_ns", Values::I64),
            full("done_ns", Values::I64(self.done_ns)),
            full("bytes", Values::U64(self.bytes)),
            self.status.column("status", Values::U16),
            self.flow.column("flow", Values::U32),
            self.request.column("request", Values::U32),
            full("failures", Values::U16(self.failures)),
            self.source.column("source"),
        ]
    }
}

impl Table for Objects {
    fn rows(&self) -> usize {
        self.page.len()
    }

    fn take_rows(&mut self) -> Vec<Column> {
        take(self).into_columns()
    }
}

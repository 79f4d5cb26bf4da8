//! One row per object of a page: its waterfall.

use airloom_base::record::ObjectRecord;

use super::column::{Category, Cells, Column, Optional, Table, nanos, table};

table! {
    /// The objects table.
    Objects counted by page of (object: &ObjectRecord) {
        page: Vec<u32> = object.page;
        object: Vec<u32> = object.object;
        url: Vec<String> = object.url.clone();
        client: Category = &object.client;
        known_ns: Vec<i64> = nanos(object.known.as_nanos());
        asked_ns: Optional<i64> = object.asked.map(|t| nanos(t.as_nanos()));
        first_byte_ns: Optional<i64> = object.first_byte.map(|t| nanos(t.as_nanos()));
        done_ns: Vec<i64> = nanos(object.done.as_nanos());
        bytes: Vec<u64> = object.bytes;
        status: Optional<u16> = object.status;
        flow: Optional<u32> = object.flow;
        request: Optional<u32> = object.request;
        failures: Vec<u16> = object.failures;
        source: Category = object.source.name();
    }
}

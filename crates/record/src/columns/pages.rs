//! One row per page load.

use airloom_base::record::PageRecord;

use super::column::{Category, Cells, Column, Optional, Table, nanos, table};

table! {
    /// The pages table.
    Pages counted by page of (page: &PageRecord) {
        page: Vec<u32> = page.page;
        url: Vec<String> = page.url.clone();
        client: Category = &page.client;
        start_ns: Vec<i64> = nanos(page.start.as_nanos());
        load_ns: Optional<i64> = page.load.map(|d| nanos(d.as_nanos()));
        first_object_ns: Optional<i64> = page.first_object.map(|d| nanos(d.as_nanos()));
        objects: Vec<u32> = page.objects;
        bytes: Vec<u64> = page.bytes;
        connections: Vec<u32> = page.connections;
        failed: Vec<u32> = page.failed;
    }
}

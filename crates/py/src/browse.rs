//! The browser on this machine's TCP.

use airloom_base::record::{ObjectRecord, PageRecord, Record};
use airloom_base::{Duration, Instant};
use airloom_drive::daemon::browse::{CannotBrowse, browse as run};
use airloom_drive::daemon::settings;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::errors::wrong;

/// Loads pages over this machine's TCP, until all is loaded, `timeout_s` is over, or SIGINT or SIGTERM comes. Settings are those
/// of `http-client`. What was loaded, as JSON: `done`, `summary`, `pages`, `objects`. `ValueError` for what cannot be used.
#[pyfunction]
pub fn browse(
    py: Python<'_>,
    settings: Vec<(String, String)>,
    seed: u64,
    nagle: bool,
    timeout_s: f64,
) -> PyResult<String> {
    let given = settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let table = settings::table(given).map_err(wrong)?;
    let patience = std::time::Duration::try_from_secs_f64(timeout_s).map_err(wrong)?;
    let ended = py.detach(|| run(&table, seed, nagle, patience)).map_err(|error| match error {
        CannotBrowse::Settings(error) => wrong(error),
        CannotBrowse::System(error) => PyOSError::new_err(error),
    })?;
    let (mut pages, mut objects) = (Vec::new(), Vec::new());
    for record in &ended.records {
        match record {
            Record::Page(record) => pages.push(page(record)),
            Record::Object(record) => objects.push(object(record)),
            Record::Flow(_) | Record::State(_) | Record::Congestion(_) => {}
        }
    }
    let summary: Map<String, Value> =
        ended.summary.values.iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
    let all = json!({ "done": ended.is_done, "summary": summary, "pages": pages, "objects": objects });
    Ok(all.to_string())
}

fn at(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e9
}

fn long(took: Duration) -> f64 {
    took.as_nanos() as f64 / 1e9
}

fn page(p: &PageRecord) -> Value {
    json!({
        "page": p.page, "url": p.url, "start_s": at(p.start), "load_s": p.load.map(long),
        "first_object_s": p.first_object.map(long), "objects": p.objects, "bytes": p.bytes,
        "connections": p.connections, "failed": p.failed,
    })
}

fn object(o: &ObjectRecord) -> Value {
    json!({
        "page": o.page, "object": o.object, "url": o.url, "known_s": at(o.known), "asked_s": o.asked.map(at),
        "first_byte_s": o.first_byte.map(at), "done_s": at(o.done), "bytes": o.bytes, "status": o.status,
        "connection": o.flow, "request": o.request, "failures": o.failures, "source": o.source.name(),
    })
}

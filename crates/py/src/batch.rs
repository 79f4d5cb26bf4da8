//! `simulate_many`: many runs in one call, for the tasks of a sweep.
//!
//! What it returns is plain Python data and octets, which a worker process sends on as they are: the process needs
//! neither numpy nor a table library. Numbers are little endian.

use std::time::Duration;

use airloom_drive::batch::{self, Rate, Wanted};
use airloom_record::{Column, Values};
use airloom_world::scenario::Scenario;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::results;
use crate::scenario::{PATIENCE, PyScenario};
use crate::watch::Watch;

/// Numbers as octets, least significant first.
macro_rules! octets {
    ($numbers:expr) => {{
        let mut octets = Vec::with_capacity(size_of_val(&$numbers[..]));
        $numbers.iter().for_each(|n| octets.extend_from_slice(&n.to_le_bytes()));
        octets
    }};
}

/// Simulates each of `wanted`, a scenario with seeds and the seed, if any, whose rate over time is wanted too, one after
/// the other; after `budget_s` no further run is begun, and the lists are shorter. `tables` names the tables to keep. A
/// dictionary:
///
/// - `outcome`, `error`, `took_ns`, `run_id`, `rate`: lists with an entry per run; an outcome is `None` where there is an
///   error, a rate is `None` or the triple (point, nanoseconds of a span, octets in each span);
/// - `keys`, `values`: the names in the summaries, and 64-bit floating point numbers run by run; not-a-number where a
///   run has no such value;
/// - `tables`: for each table a list of (name, kind, values, names, valid): kind is a numpy type, values are octets; or
///   `text` with a list of texts; `names` are the texts that values count, `valid` an octet per row, or `None`.
#[pyfunction]
pub fn simulate_many<'py>(
    py: Python<'py>,
    wanted: Vec<(PyRef<'py, PyScenario>, Vec<u64>, Option<u64>)>,
    tables: Vec<String>,
    budget_s: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let wanted: Vec<(Scenario, Vec<u64>, Option<u64>)> =
        wanted.into_iter().map(|(scenario, seeds, rate)| (scenario.0.clone(), seeds, rate)).collect();
    let tables: Vec<&str> = tables.iter().map(String::as_str).collect();
    let budget = Duration::try_from_secs_f64(budget_s).unwrap_or(Duration::MAX);
    let mut watch = Watch::new(None, PATIENCE);
    let (made, ids) = py.detach(|| {
        let each = wanted.iter().flat_map(|(scenario, seeds, rate)| {
            seeds.iter().map(move |seed| Wanted { scenario, seed: *seed, rate: *rate == Some(*seed) })
        });
        let made = batch::simulate(each, &tables, budget, |now| watch.look(now));
        let ids: Vec<String> = (wanted.iter())
            .flat_map(|(scenario, seeds, _)| scenario.run_ids(seeds, "virtual", env!("CARGO_PKG_VERSION")))
            .collect();
        (made, ids)
    });
    if let Some(raised) = watch.raised {
        return Err(raised);
    }

    let all = PyDict::new(py);
    let outcomes = made.runs.iter().map(|r| r.outcome.as_ref().ok().map(|o| results::name(*o)));
    all.set_item("outcome", outcomes.collect::<Vec<_>>())?;
    let errors = made.runs.iter().map(|r| r.outcome.as_ref().err());
    all.set_item("error", errors.collect::<Vec<_>>())?;
    all.set_item("took_ns", made.runs.iter().map(|r| r.took_ns).collect::<Vec<_>>())?;
    all.set_item("run_id", ids)?;
    let rates = made.runs.iter().map(|r| r.rate.as_ref().map(plain_rate));
    all.set_item("rate", rates.collect::<Vec<_>>())?;
    all.set_item("keys", made.summaries.names.to_vec())?;
    all.set_item("values", PyBytes::new(py, &octets!(made.summaries.values)))?;
    let plain = PyDict::new(py);
    for (name, columns) in made.tables {
        let list = PyList::empty(py);
        for column in columns {
            list.append(plain_column(py, column)?)?;
        }
        plain.set_item(name, list)?;
    }
    all.set_item("tables", plain)?;
    Ok(all)
}

fn plain_rate(rate: &Rate) -> (&str, u64, &[u64]) {
    (&rate.point, rate.span_ns, &rate.octets)
}

type PlainColumn<'py> =
    (&'static str, &'static str, Bound<'py, PyAny>, Option<Vec<String>>, Option<Bound<'py, PyBytes>>);

fn plain_column(py: Python<'_>, column: Column) -> PyResult<PlainColumn<'_>> {
    let mut names = None;
    let (kind, numbers) = match column.values {
        Values::I64(v) => ("<i8", octets!(v)),
        Values::U64(v) => ("<u8", octets!(v)),
        Values::U32(v) => ("<u4", octets!(v)),
        Values::U16(v) => ("<u2", octets!(v)),
        Values::U8(v) => ("u1", v),
        Values::F64(v) => ("<f8", octets!(v)),
        Values::Category { codes, names: texts } => {
            names = Some(texts);
            ("<u2", octets!(codes))
        }
        Values::Text(v) => {
            let valid = column.valid.map(|v| plain_valid(py, &v));
            return Ok((column.name, "text", PyList::new(py, v)?.into_any(), None, valid));
        }
    };
    let valid = column.valid.map(|v| plain_valid(py, &v));
    Ok((column.name, kind, PyBytes::new(py, &numbers).into_any(), names, valid))
}

fn plain_valid<'py>(py: Python<'py>, valid: &[bool]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &valid.iter().map(|v| u8::from(*v)).collect::<Vec<u8>>())
}

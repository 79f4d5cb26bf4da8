//! `simulate_part`: many runs in one call, for the tasks of a sweep.

use std::collections::BTreeSet;
use std::time::Duration;

use airloom_drive::batch::{self, Wanted};
use airloom_drive::virtual_time::Outcome;
use airloom_record::sweep;
use airloom_world::scenario::Scenario;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::results;
use crate::scenario::{PATIENCE, PyScenario};
use crate::watch::Watch;

/// What the runs of a task gave.
#[pyclass(name = "Part", module = "airloom._core", frozen, get_all)]
pub struct PyPart {
    /// The part as it is kept: a line of JSON, then blobs (`airloom.sweep.parts`).
    octets: Py<PyBytes>,
    /// How many runs were made.
    runs: usize,
    /// How many of them did not come to their end.
    failed: usize,
    /// Everything that these runs measure: columns of the tables.
    names: Vec<String>,
    /// Nanoseconds inside simulations.
    simulating_ns: u64,
}

/// The number of a point, its scenario, seeds, and the seed, if any, whose rate over time is wanted too.
type Job<S> = (i64, S, Vec<u64>, Option<u64>);

/// Simulates each of `wanted`, one after the other: the number of a point, its scenario with seeds, and the seed, if any,
/// whose rate over time is wanted too. After `budget_s` no further run is begun. `tables` names the tables to keep.
#[pyfunction]
pub fn simulate_part(
    py: Python<'_>,
    wanted: Vec<Job<PyRef<'_, PyScenario>>>,
    tables: Vec<String>,
    budget_s: f64,
) -> PyResult<PyPart> {
    let wanted: Vec<Job<Scenario>> = (wanted.into_iter())
        .map(|(point, scenario, seeds, rate)| (point, scenario.0.clone(), seeds, rate))
        .collect();
    let tables: Vec<&str> = tables.iter().map(String::as_str).collect();
    let budget = Duration::try_from_secs_f64(budget_s).unwrap_or(Duration::MAX);
    let mut watch = Watch::new(None, PATIENCE);
    let made = py.detach(|| {
        let each = wanted.iter().flat_map(|(_, scenario, seeds, rate)| {
            seeds.iter().map(move |seed| Wanted { scenario, seed: *seed, rate: *rate == Some(*seed) })
        });
        let made = batch::simulate(each, &tables, budget, |now| watch.look(now));
        let runs = wanted.iter().flat_map(|(point, _, seeds, _)| seeds.iter().map(|seed| (*point, *seed)));
        let ids = wanted.iter().flat_map(|(_, scenario, seeds, _)| {
            scenario.run_ids(seeds, "virtual", env!("CARGO_PKG_VERSION"))
        });
        Made::new(made, runs.collect(), ids.collect())
    });
    if let Some(raised) = watch.raised {
        return Err(raised);
    }
    Ok(PyPart {
        octets: PyBytes::new(py, &made.octets).unbind(),
        runs: made.runs,
        failed: made.failed,
        names: made.names,
        simulating_ns: made.simulating_ns,
    })
}

struct Made {
    octets: Vec<u8>,
    runs: usize,
    failed: usize,
    names: Vec<String>,
    simulating_ns: u64,
}

impl Made {
    /// The part of a batch: `runs` and `run_ids` are of all runs that were wanted.
    fn new(batch: batch::Batch, mut runs: Vec<(i64, u64)>, mut run_ids: Vec<String>) -> Made {
        let count = batch.runs.len();
        runs.truncate(count);
        run_ids.truncate(count);
        let keys = batch.summaries.names.to_vec();
        let columns = batch.tables.values().flatten().map(|column| column.name.to_owned());
        let names: BTreeSet<String> = keys.iter().cloned().chain(columns).collect();
        let simulating_ns = batch.runs.iter().map(|run| run.took_ns).sum();
        let failed = batch.runs.iter().filter(|run| run.outcome != Ok(Outcome::Complete)).count();
        let mut part = sweep::Made {
            runs,
            outcomes: Vec::with_capacity(count),
            errors: Vec::with_capacity(count),
            run_ids,
            rates: Vec::with_capacity(count),
            keys,
            values: batch.summaries.values,
            tables: batch.tables,
        };
        for run in batch.runs {
            part.outcomes.push(run.outcome.as_ref().ok().map(|outcome| results::name(*outcome)));
            part.errors.push(run.outcome.err());
            part.rates.push(run.rate.map(|rate| (rate.point, rate.span_ns, rate.octets)));
        }
        Made {
            octets: sweep::part(part),
            runs: count,
            failed,
            names: names.into_iter().collect(),
            simulating_ns,
        }
    }
}

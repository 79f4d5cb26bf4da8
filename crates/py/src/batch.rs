//! `simulate_part`: many runs in one call, for the tasks of a sweep.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use airloom_drive::batch::{self, Wanted};
use airloom_drive::virtual_time::Outcome;
use airloom_record::sweep;
use airloom_world::scenario::Identity;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::os_error;
use crate::results;
use crate::scenario::{PATIENCE, PyScenario};
use crate::watch::Watch;

/// What the runs of a task gave.
#[pyclass(name = "Part", module = "airloom._core", frozen)]
pub struct PyPart {
    made: sweep::Made,
    /// How many runs were made.
    #[pyo3(get)]
    runs: usize,
    /// How many of them did not come to their end.
    #[pyo3(get)]
    failed: usize,
    /// Nanoseconds inside simulations.
    #[pyo3(get)]
    simulating_ns: u64,
}

#[pymethods]
impl PyPart {
    /// Everything that these runs measure: columns of the tables.
    fn names(&self) -> BTreeSet<&str> {
        let columns = self.made.tables.values().flatten().map(|column| column.name);
        self.made.keys.iter().map(String::as_str).chain(columns).collect()
    }

    /// The part as it is kept: a line of JSON, then blobs (`airloom.sweep.parts`).
    fn octets<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| self.made.octets()))
    }

    /// Writes these octets into a new file.
    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let write = || {
            let mut file = BufWriter::with_capacity(1 << 16, File::create(path)?);
            self.made.write(&mut file)?;
            file.flush()
        };
        py.detach(write).map_err(|error: io::Error| os_error(error.raw_os_error(), &error.to_string()))
    }
}

/// The number of a point, its scenario, seeds, and the seed, if any, whose rate over time is wanted too.
type Job = (i64, Py<PyScenario>, Vec<u64>, Option<u64>);

/// Simulates each of `wanted`, one after the other: the number of a point, its scenario with seeds, and the seed, if any,
/// whose rate over time is wanted too. After `budget_s` no further run is begun. `tables` names the tables to keep.
#[pyfunction]
pub fn simulate_part(
    py: Python<'_>,
    wanted: Vec<Job>,
    tables: Vec<String>,
    budget_s: f64,
) -> PyResult<PyPart> {
    let tables: Vec<&str> = tables.iter().map(String::as_str).collect();
    let budget = Duration::try_from_secs_f64(budget_s).unwrap_or(Duration::MAX);
    let mut watch = Watch::new(None, PATIENCE);
    let made = py.detach(|| {
        let each = wanted.iter().flat_map(|(_, scenario, seeds, rate)| {
            let scenario = &scenario.get().scenario;
            seeds.iter().map(move |seed| Wanted { scenario, seed: *seed, rate: *rate == Some(*seed) })
        });
        let made = batch::simulate(each, &tables, budget, |now| watch.look(now));
        let runs = wanted.iter().flat_map(|(point, scenario, seeds, _)| {
            seeds.iter().map(|seed| (*point, *seed, scenario.get().in_virtual_time()))
        });
        PyPart::new(made, runs)
    });
    if let Some(raised) = watch.raised {
        return Err(raised);
    }
    Ok(made)
}

impl PyPart {
    /// The part of a batch: `runs` are all that were wanted, by point, seed and what else their identities follow from.
    fn new<'a>(batch: batch::Batch, runs: impl Iterator<Item = (i64, u64, &'a Identity)>) -> PyPart {
        let count = batch.runs.len();
        let (runs, run_ids) =
            runs.take(count).map(|(point, seed, identity)| ((point, seed), identity.run_id(seed))).unzip();
        let simulating_ns = batch.runs.iter().map(|run| run.took_ns).sum();
        let failed = batch.runs.iter().filter(|run| run.outcome != Ok(Outcome::Complete)).count();
        let mut made = sweep::Made {
            runs,
            outcomes: Vec::with_capacity(count),
            errors: Vec::with_capacity(count),
            run_ids,
            rates: Vec::with_capacity(count),
            keys: batch.summaries.names.to_vec(),
            values: batch.summaries.values,
            tables: batch.tables,
        };
        for run in batch.runs {
            made.outcomes.push(run.outcome.as_ref().ok().map(|outcome| results::name(*outcome)));
            made.errors.push(run.outcome.err());
            made.rates.push(run.rate.map(|rate| (rate.point, rate.span_ns, rate.octets)));
        }
        PyPart { made, runs: count, failed, simulating_ns }
    }
}

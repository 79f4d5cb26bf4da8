//! `Series`: many runs one after the other, for the tasks of a sweep.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use airloom_drive::batch;
use airloom_drive::virtual_time::Outcome;
use airloom_record::sweep;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::raised;
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
        let write = || -> io::Result<()> {
            let mut file = BufWriter::with_capacity(1 << 16, File::create(path)?);
            self.made.write(&mut file)?;
            file.flush()
        };
        py.detach(write).map_err(raised)
    }
}

/// Runs that are made one after the other, for one part.
#[pyclass(name = "Series", module = "airloom._core")]
pub struct PySeries {
    series: batch::Series,
    /// The scenario that the last runs were made of.
    scenario: Option<Py<PyScenario>>,
    runs: Vec<(i64, u64)>,
    run_ids: Vec<String>,
}

#[pymethods]
impl PySeries {
    /// A series without runs so far. `tables` names the tables to keep; after `budget_s` no further run is begun, though
    /// the first one always is.
    #[new]
    fn new(tables: Vec<String>, budget_s: f64) -> PySeries {
        let budget = Duration::try_from_secs_f64(budget_s).unwrap_or(Duration::MAX);
        let series = batch::Series::new(tables, budget);
        PySeries { series, scenario: None, runs: Vec::new(), run_ids: Vec::new() }
    }

    /// Simulates the scenario of the point with this number once with each of these seeds, as far as there is time;
    /// says whether all runs were made. `rate_seed` is the seed, if any, whose rate over time is wanted too.
    fn simulate(
        &mut self,
        py: Python<'_>,
        point: i64,
        scenario: Py<PyScenario>,
        seeds: Vec<u64>,
        rate_seed: Option<u64>,
    ) -> PyResult<bool> {
        let mut watch = Watch::new(None, PATIENCE);
        let is_same = self.scenario.as_ref().is_some_and(|last| last.is(&scenario));
        let all = py.detach(|| {
            let of = scenario.get();
            if !is_same {
                self.series.of(&of.scenario);
            }
            let mut run =
                |seed: &u64| self.series.run(*seed, rate_seed == Some(*seed), |now| watch.look(now));
            let made = seeds.iter().position(|seed| !run(seed)).unwrap_or(seeds.len());
            let identity = of.in_virtual_time();
            self.runs.extend(seeds[..made].iter().map(|seed| (point, *seed)));
            self.run_ids.extend(seeds[..made].iter().map(|seed| identity.run_id(*seed)));
            made == seeds.len()
        });
        self.scenario = Some(scenario);
        watch.raised.map_or(Ok(all), Err)
    }

    /// What its runs gave; it has none afterwards.
    fn part(&mut self, py: Python<'_>) -> PyPart {
        let over = batch::Series::new(Vec::new(), Duration::ZERO);
        let series = std::mem::replace(&mut self.series, over);
        let (runs, run_ids) = (std::mem::take(&mut self.runs), std::mem::take(&mut self.run_ids));
        self.scenario = None;
        py.detach(|| PyPart::new(series.finish(), runs, run_ids))
    }
}

impl PyPart {
    /// The part of a batch: its runs by point and seed, and their identities.
    fn new(batch: batch::Batch, runs: Vec<(i64, u64)>, run_ids: Vec<String>) -> PyPart {
        let count = batch.runs.len();
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

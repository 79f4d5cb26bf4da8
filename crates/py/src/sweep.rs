//! Sweeps: their runs are made on threads, and their tables are written.

use std::path::PathBuf;
use std::sync::Arc;

use airloom_drive::run::DriveError;
use airloom_drive::sweep::{self as drive, Counts, Point, Runs, Wanted};
use airloom_record::sweep::{self, Label, Run, Source};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::columns::PyColumn;
use crate::errors::{NameTaken, drive_error, raised};
use crate::scenario::PyScenario;

/// What an axis calls a point.
#[derive(FromPyObject)]
pub enum PyLabel {
    Whole(i64),
    Real(f64),
    Text(String),
}

impl From<PyLabel> for Label {
    fn from(label: PyLabel) -> Label {
        match label {
            PyLabel::Whole(number) => Label::Whole(number),
            PyLabel::Real(number) => Label::Real(number),
            PyLabel::Text(text) => Label::Text(text),
        }
    }
}

/// What some runs gave, as far as it is in memory.
#[pyclass(name = "Part", module = "airloom._core")]
pub struct PyPart {
    parts: Vec<sweep::Part>,
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
    /// The run of a point with this seed, made elsewhere: why there is no result, if that is so, whether it is lost, its
    /// summary, and its tables.
    #[new]
    #[pyo3(signature = (axes, point, labels, seed, run_id, error = None, is_lost = false, summary = Vec::new(), tables = Vec::new()))]
    fn new(
        py: Python<'_>,
        axes: Vec<String>,
        point: i64,
        labels: Vec<PyLabel>,
        seed: u64,
        run_id: String,
        error: Option<String>,
        is_lost: bool,
        mut summary: Vec<(String, f64)>,
        tables: Vec<(String, Vec<Py<PyColumn>>)>,
    ) -> PyResult<PyPart> {
        summary.sort_by(|one, other| one.0.cmp(&other.0));
        let failed = usize::from(error.is_some());
        let labels = labels.into_iter().map(Label::from).collect();
        let run = Run { point, labels, seed, run_id, error, is_lost, rate: None };
        let (names, values): (Vec<String>, Vec<f64>) = summary.into_iter().unzip();
        let values = values.into_iter().map(|value| vec![value]).collect();
        let tables = (tables.into_iter())
            .map(|(name, columns)| {
                let columns =
                    columns.iter().map(|column| column.get().column(py)).collect::<PyResult<_>>()?;
                Ok((name, sweep::of_one_run(columns)))
            })
            .collect::<PyResult<_>>()?;
        let part = sweep::Part::new(&axes, &[run], &names, values, tables);
        let part = part.map_err(|taken| name_taken(&taken.0))?;
        Ok(PyPart { parts: vec![part], runs: 1, failed, simulating_ns: 0 })
    }

    /// Its tables with these names, each a Parquet file.
    fn octets<'py>(
        &self,
        py: Python<'py>,
        names: Vec<String>,
    ) -> PyResult<Vec<(String, Bound<'py, PyBytes>)>> {
        let sources: Vec<Source<'_>> = self.parts.iter().map(Source::Part).collect();
        let files = py.detach(|| sweep::octets(&sources, &names)).map_err(table_error)?;
        Ok(files.into_iter().map(|(name, octets)| (name, PyBytes::new(py, &octets))).collect())
    }
}

/// Makes runs on so many threads. `points` are number, labels and scenario, `runs` are pairs of an index into `points` and
/// a seed. What was made is kept in the folder `parts` now and then, the rest is returned. `look` is called ten times a
/// second with the number of runs made and failed, and the nanoseconds inside simulations. What it raises, or a signal's
/// handler, ends it: what was made is kept.
///
/// `otherwise` makes each run in place of the simulator, called with the number of the thread, that of the point, and the
/// seed: it returns a part and nanoseconds. Its `stop` is called when it is to end soon.
///
/// Raises `NameTaken` for an axis that is called as something that runs measure, `OSError` if a part cannot be
/// kept, `DriveError` for a fault that is not that of a run.
#[pyfunction]
#[pyo3(signature = (points, runs, axes, tables, rate_seed, workers, parts = None, look = None, otherwise = None))]
pub fn make_runs(
    py: Python<'_>,
    points: Vec<(i64, Vec<PyLabel>, Py<PyScenario>)>,
    runs: &Bound<'_, PyAny>,
    axes: Vec<String>,
    tables: Vec<String>,
    rate_seed: Option<u64>,
    workers: usize,
    parts: Option<PathBuf>,
    look: Option<Py<PyAny>>,
    otherwise: Option<Py<PyAny>>,
) -> PyResult<PyPart> {
    let runs = runs.try_iter()?.map(|run| run?.extract()).collect::<PyResult<Runs>>()?;
    let point = |(number, labels, scenario): (i64, Vec<PyLabel>, Py<PyScenario>)| {
        (number, labels.into_iter().map(Label::from).collect::<Arc<[Label]>>(), scenario)
    };
    let points: Vec<_> = points.into_iter().map(point).collect();
    let counts = Counts::default();
    let mut said = None;
    let made = py.detach(|| {
        let points: Vec<Point<'_>> = (points.iter())
            .map(|(number, labels, scenario)| {
                let of = scenario.get();
                let (scenario, identity) = (&of.scenario, of.in_virtual_time());
                Point { number: *number, labels: Arc::clone(labels), scenario, identity }
            })
            .collect();
        let wanted = Wanted { axes: &axes, points: &points, tables: &tables, rate_seed };
        let one = otherwise.as_ref().map(|make| {
            move |thread: usize, point: i64, seed: u64| {
                Python::attach(|py| {
                    let made = make.bind(py).call1((thread, point, seed))?;
                    let (part, took_ns): (Bound<'_, PyPart>, u64) = made.extract()?;
                    let mut part = part.borrow_mut();
                    let one = part.parts.pop().ok_or_else(|| PyValueError::new_err("a part of no run"))?;
                    Ok::<_, PyErr>((one, part.failed == 0, took_ns))
                })
            }
        });
        let one = one.as_ref().map(|one| one as &drive::Otherwise<'_, PyErr>);
        drive::make(&wanted, &runs, workers, parts.as_deref(), one, &counts, || {
            if said.is_some() {
                return false;
            }
            let asked = Python::attach(|py| {
                py.check_signals()?;
                let said = look.as_ref().map(|look| look.call1(py, counts.read()));
                said.transpose().map(drop)
            });
            if let Err(error) = asked {
                said = Some(error);
                if let Some(make) = &otherwise {
                    let _ = Python::attach(|py| make.call_method0(py, "stop"));
                }
            }
            said.is_none()
        })
    });
    if let Some(said) = said {
        return Err(said);
    }
    let (runs, failed, simulating_ns) = counts.read();
    match made {
        Ok(parts) => Ok(PyPart { parts, runs, failed, simulating_ns }),
        Err(drive::Error::NameTaken(name)) => Err(name_taken(&name)),
        Err(drive::Error::Parts(error)) => Err(table_error(error)),
        Err(drive::Error::Fault(said)) => Err(drive_error(py, DriveError::Fault(said))),
        Err(drive::Error::Other(error)) => Err(error),
    }
}

/// Writes the tables with these names into the folder `place`: the rows from all of `folders`, and those of `rest`.
/// Raises `ValueError(path, why)` for a file that is no table of a sweep.
#[pyfunction]
pub fn write_sweep(
    py: Python<'_>,
    folders: Vec<PathBuf>,
    rest: Vec<PyRef<'_, PyPart>>,
    names: Vec<String>,
    place: PathBuf,
) -> PyResult<()> {
    let parts: Vec<&sweep::Part> = rest.iter().flat_map(|part| &part.parts).collect();
    let folders = folders.iter().map(|folder| Source::Folder(folder));
    let sources: Vec<Source<'_>> = folders.chain(parts.into_iter().map(Source::Part)).collect();
    py.detach(|| sweep::write(&sources, &names, &place)).map_err(table_error)
}

/// The runs in some folders, which may be there twice, but for those that were lost: pairs of point and seed.
#[pyclass(name = "Done", module = "airloom._core", frozen)]
pub struct PyDone(sweep::Done);

#[pymethods]
impl PyDone {
    /// Raises as `write_sweep` does.
    #[new]
    fn new(py: Python<'_>, folders: Vec<PathBuf>) -> PyResult<PyDone> {
        py.detach(|| sweep::Done::read(&folders)).map(PyDone).map_err(table_error)
    }

    fn __len__(&self) -> usize {
        self.0.runs()
    }

    fn __contains__(&self, run: (i64, u64)) -> bool {
        self.0.contains(run.0, run.1)
    }

    /// How many of them did not come to their end.
    #[getter]
    fn failed(&self) -> usize {
        self.0.failed()
    }
}

fn name_taken(axis: &str) -> PyErr {
    let why = "runs measure something of that name; rename the axis";
    NameTaken::new_err(format!("an axis cannot be called '{axis}': {why}"))
}

fn table_error(error: sweep::Error) -> PyErr {
    match error {
        sweep::Error::Damaged(path, why) => PyValueError::new_err((path, why)),
        sweep::Error::Io(path, error) => Python::attach(|py| {
            let error = raised(error);
            let _ = error.value(py).setattr("filename", path);
            error
        }),
    }
}

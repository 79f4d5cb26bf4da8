//! `Results`: what a run gave.

use std::collections::BTreeMap;

use airloom_drive::real_time::Report;
use airloom_drive::run::Results;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::columns::PyColumn;

/// What a run gave.
#[pyclass(name = "Results", module = "airloom._core", frozen)]
pub struct PyResults {
    /// `complete`, `limit-reached`, `stuck` or `stopped`.
    #[pyo3(get)]
    outcome: &'static str,
    /// Why it did not come to its end.
    #[pyo3(get)]
    why: Option<&'static str>,
    /// Flat name -> number map, sorted by name.
    #[pyo3(get)]
    summary: BTreeMap<String, f64>,
    /// Columns by table; none of a run in real time.
    #[pyo3(get)]
    tables: Py<PyDict>,
    /// Exit code of the command, if one ran to its end in real time.
    #[pyo3(get)]
    exit_code: Option<i32>,
    /// Can the figures be believed? Always in virtual time; in real time only if departures were not late.
    #[pyo3(get)]
    valid: bool,
    /// In real time: `valid`, `suspect` or `invalid`.
    #[pyo3(get)]
    verdict: Option<&'static str>,
    /// Why it is not valid.
    #[pyo3(get)]
    verdict_reasons: Vec<String>,
    /// In real time, by link: `transparent`, `packet` or `radio`, how it treated super-packets.
    #[pyo3(get)]
    grades: BTreeMap<String, &'static str>,
    /// In real time, how the kernel scheduled the engine.
    #[pyo3(get)]
    priority: Option<&'static str>,
    /// In real time, whether processors were kept awake.
    #[pyo3(get)]
    processors: Option<String>,
}

impl PyResults {
    /// Takes results over; `report` is there if the run was in real time.
    pub fn new(py: Python<'_>, results: Results, report: Option<&Report>) -> PyResult<Self> {
        let tables = PyDict::new(py);
        // Those of a run in real time are files already.
        let in_memory = if report.is_none() { results.tables.into_columns() } else { BTreeMap::new() };
        for (name, columns) in in_memory {
            let list = PyList::empty(py);
            for column in columns {
                list.append(PyColumn::new(py, column)?)?;
            }
            tables.set_item(name, list)?;
        }
        Ok(PyResults {
            outcome: results.outcome.into(),
            why: results.outcome.why(),
            summary: results.summary.values.into_iter().collect(),
            tables: tables.unbind(),
            exit_code: report.and_then(|r| r.exit_code),
            valid: report.is_none_or(Report::is_valid),
            verdict: report.map(|r| r.verdict().name()),
            verdict_reasons: report.map_or(Vec::new(), |r| r.verdict().reasons().to_vec()),
            grades: report.map_or_else(BTreeMap::new, |r| {
                r.grades.iter().map(|(link, grade)| (link.clone(), grade.name())).collect()
            }),
            priority: report.map(|r| r.priority.name()),
            processors: report.map(|r| r.wakefulness.to_string()),
        })
    }
}

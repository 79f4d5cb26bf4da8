//! `Results`: what a run gave.

use std::collections::BTreeMap;

use airloom_base::Summary;
use airloom_record::Tables;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::columns::PyColumn;

/// What a run gave.
#[pyclass(name = "Results", module = "airloom._core", frozen)]
pub struct PyResults {
    /// `complete`, `limit-reached`, `stuck` or `stopped`.
    #[pyo3(get)]
    outcome: &'static str,
    /// Flat name -> number map, sorted by name.
    #[pyo3(get)]
    summary: BTreeMap<String, f64>,
    /// Columns by table.
    #[pyo3(get)]
    tables: Py<PyDict>,
}

impl PyResults {
    /// Takes results over.
    pub fn new(py: Python<'_>, outcome: &'static str, summary: Summary, tables: Tables) -> PyResult<Self> {
        let by_name = PyDict::new(py);
        for (name, columns) in tables.into_columns() {
            let list = PyList::empty(py);
            for column in columns {
                list.append(PyColumn::new(py, column)?)?;
            }
            by_name.set_item(name, list)?;
        }
        Ok(PyResults { outcome, summary: summary.values, tables: by_name.unbind() })
    }
}

//! `sweep_tables`: the parts of a sweep become its Parquet files.

use std::collections::BTreeMap;
use std::path::PathBuf;

use airloom_record::sweep;
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;

use crate::errors::{os_error, raised};

/// The labels of the points on one axis.
#[derive(FromPyObject)]
pub enum Labels {
    Whole(Vec<i64>),
    Real(Vec<f64>),
    Text(Vec<String>),
}

/// A part: its octets, or the file where it lies.
#[derive(FromPyObject)]
pub enum Source {
    Octets(PyBackedBytes),
    File(PathBuf),
}

/// Tables of a sweep, ready to be written as Parquet files.
#[pyclass(name = "Tables", module = "airloom._core", frozen)]
pub struct PyTables(BTreeMap<String, sweep::Table>);

#[pymethods]
impl PyTables {
    /// What they are called.
    fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    /// The octets of the file of one.
    fn octets<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let mut octets = Vec::new();
        py.detach(|| self.named(name)?.write(&mut octets).map_err(raised))?;
        Ok(PyBytes::new(py, &octets))
    }

    /// Writes tables into new files: names and paths.
    fn write(&self, py: Python<'_>, files: Vec<(String, PathBuf)>) -> PyResult<()> {
        let files = (files.iter())
            .map(|(name, path)| Ok((self.named(name)?, path.as_path())))
            .collect::<PyResult<Vec<_>>>()?;
        py.detach(|| sweep::write(&files)).map_err(|(number, error)| {
            let error = raised(error);
            let _ = error.value(py).setattr("filename", files[number].1);
            error
        })
    }
}

impl PyTables {
    fn named(&self, name: &str) -> PyResult<&sweep::Table> {
        self.0.get(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))
    }
}

/// The tables with these names, from parts; `axes` are names with a label for each point. Raises
/// `ValueError(number, why)` if a part cannot be read, `OSError` if its file cannot.
#[pyfunction]
pub fn sweep_tables(
    py: Python<'_>,
    parts: Vec<Source>,
    axes: Vec<(String, Labels)>,
    tables: Vec<String>,
) -> PyResult<PyTables> {
    let axes: Vec<(String, sweep::Labels)> = (axes.into_iter())
        .map(|(name, labels)| match labels {
            Labels::Whole(of_points) => (name, sweep::Labels::Whole(of_points)),
            Labels::Real(of_points) => (name, sweep::Labels::Real(of_points)),
            Labels::Text(of_points) => (name, sweep::Labels::Text(of_points)),
        })
        .collect();
    let made = py.detach(|| {
        let sources = parts.iter().map(|part| match part {
            Source::Octets(octets) => sweep::Source::Octets(octets),
            Source::File(path) => sweep::Source::File(path),
        });
        sweep::tables(&sources.collect::<Vec<_>>(), &axes, &tables)
    });
    made.map(PyTables).map_err(|error| match error {
        sweep::Error::BadPart { number, why } => PyValueError::new_err((number, why)),
        sweep::Error::Unread { number, code, why } => {
            let error = os_error(code, &why);
            if let Source::File(path) = &parts[number] {
                let _ = error.value(py).setattr("filename", path);
            }
            error
        }
        sweep::Error::File(why) => PyRuntimeError::new_err(why),
    })
}

//! `sweep_tables`: the parts of a sweep become its Parquet files.

use std::path::PathBuf;

use airloom_record::sweep;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::os_error;

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

/// The octets of the files of `tables`, by name, from parts; `axes` are names with a label for each point. Raises
/// `ValueError(number, why)` if a part cannot be read, `OSError` if its file cannot.
#[pyfunction]
pub fn sweep_tables<'py>(
    py: Python<'py>,
    parts: Vec<Source>,
    axes: Vec<(String, Labels)>,
    tables: Vec<String>,
) -> PyResult<Bound<'py, PyDict>> {
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
    let files = made.map_err(|error| match error {
        sweep::Error::BadPart { number, why } => PyValueError::new_err((number, why)),
        sweep::Error::Unread { number, code, why } => {
            let error = os_error(code, &why);
            if let Source::File(path) = &parts[number] {
                let _ = error.value(py).setattr("filename", path);
            }
            error
        }
        sweep::Error::File(why) => PyRuntimeError::new_err(why),
    })?;
    let all = PyDict::new(py);
    for (name, octets) in files {
        all.set_item(name, PyBytes::new(py, &octets))?;
    }
    Ok(all)
}

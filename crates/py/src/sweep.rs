//! `sweep_tables`: the parts of a sweep become its Parquet files.

use airloom_record::sweep;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict};

/// The labels of the points on one axis.
#[derive(FromPyObject)]
pub enum Labels {
    Whole(Vec<i64>),
    Real(Vec<f64>),
    Text(Vec<String>),
}

/// The octets of the files of `tables`, by name, from the octets of parts; `axes` are names with a label for each point.
/// Raises `ValueError(number, why)` if a part cannot be read.
#[pyfunction]
pub fn sweep_tables<'py>(
    py: Python<'py>,
    parts: Vec<PyBackedBytes>,
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
        let octets: Vec<&[u8]> = parts.iter().map(|part| &part[..]).collect();
        sweep::tables(&octets, &axes, &tables)
    });
    let files = made.map_err(|error| match error {
        sweep::Error::BadPart { number, why } => PyValueError::new_err((number, why)),
        sweep::Error::File(why) => PyRuntimeError::new_err(why),
    })?;
    let all = PyDict::new(py);
    for (name, octets) in files {
        all.set_item(name, PyBytes::new(py, &octets))?;
    }
    Ok(all)
}

//! `analyze_capture`: what TCP did in a capture; `analyze_qlog`: what QUIC did by an end's own account.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use airloom_analyze::{Options, analyze, qlog};
use airloom_record::Column;
use airloom_record::capture::{Error, Reader};
use pyo3::prelude::*;

use crate::columns::PyColumn;
use crate::errors::wrong;

/// The report as JSON, and the trace. Raises `OSError` if the file cannot be opened, `ValueError` with the reason if it is
/// no capture. `shortest_stall_s`: how long a pause has to be; `rows`: how many rows the trace has at most.
#[pyfunction]
pub fn analyze_capture(
    py: Python<'_>,
    path: PathBuf,
    shortest_stall_s: Option<f64>,
    rows: usize,
) -> PyResult<(String, Vec<PyColumn>)> {
    let options = Options { shortest_stall_ns: shortest_stall_s.map(|s| (s * 1e9) as u64), rows };
    let found = py.detach(|| -> Result<_, Error> { Ok(analyze(Reader::new(File::open(path)?)?, &options)) });
    let analysis = found.map_err(|error| match error {
        Error::Io(error) => error.into(),
        other => wrong(other),
    })?;
    both(py, serde_json::to_string(&analysis.report), analysis.trace)
}

/// The report of a qlog as JSON, and its trace, of `rows` rows at most. Raises `OSError` if the file cannot be opened, `ValueError`
/// with the reason if it is no qlog.
#[pyfunction]
pub fn analyze_qlog(py: Python<'_>, path: PathBuf, rows: usize) -> PyResult<(String, Vec<PyColumn>)> {
    let file = BufReader::with_capacity(1 << 16, File::open(path)?);
    let analysis = py.detach(|| qlog::analyze(file, rows)).map_err(|error| match error {
        qlog::Error::Io(error) => error.into(),
        other => wrong(other),
    })?;
    both(py, serde_json::to_string(&analysis.report), analysis.trace)
}

/// A report that is JSON, if it could be made, and a trace.
fn both(
    py: Python<'_>,
    report: serde_json::Result<String>,
    trace: Vec<Column>,
) -> PyResult<(String, Vec<PyColumn>)> {
    let report = report.map_err(wrong)?;
    Ok((report, trace.into_iter().map(|column| PyColumn::new(py, column)).collect::<PyResult<_>>()?))
}

//! `Control`: changes the links of a run in real time.

use airloom_base::{Direction, Instant};
use airloom_drive::real_time::control::{self, Refused};
use pyo3::prelude::*;

use crate::errors::{DriveError, scenario_error, telling};

/// Target, state, whether it is in service or will be, by direction (uplink first) frames, errors and octets, and its faults, each
/// with whether it is on.
type Row = (String, &'static str, bool, Option<[(u64, u64, u64); 2]>, Vec<(&'static str, bool)>);

/// Changes the links of a run that goes on.
#[pyclass(name = "Control", module = "airloom._core", frozen)]
pub struct PyControl(pub(crate) control::Control);

fn refused(py: Python<'_>, why: &Refused) -> PyErr {
    match why {
        Refused::Change(error) => scenario_error(py, error),
        _ => telling(py, DriveError::new_err(why.to_string()), |value| value.setattr("exit_code", 4)),
    }
}

fn nanoseconds(at: Instant) -> u64 {
    at.as_nanos()
}

#[pymethods]
impl PyControl {
    /// Makes a change, written down unless `keep` is false: `target` as in a timeline, `set` its table as JSON. The nanosecond
    /// at which it was made.
    #[pyo3(signature = (target, set, keep = true))]
    fn change(&self, py: Python<'_>, target: &str, set: &str, keep: bool) -> PyResult<u64> {
        let set = serde_json::from_str(set).unwrap_or(serde_json::Value::Null);
        py.detach(|| self.0.change(target, &set, keep)).map(nanoseconds).map_err(|why| refused(py, &why))
    }

    /// How all links and their parts are, and at which nanosecond.
    fn look(&self, py: Python<'_>) -> PyResult<(u64, Vec<Row>)> {
        let (at, readings) = py.detach(|| self.0.look()).map_err(|why| refused(py, &why))?;
        let row = |reading: control::Reading| {
            let condition = reading.condition;
            let passed = condition.passed.map(|passed| {
                Direction::BOTH.map(|d| passed[d as usize]).map(|p| (p.frames, p.errors, p.octets))
            });
            let faults = condition.faults.iter().map(|(fault, on)| (fault.name(), *on)).collect();
            (reading.target, condition.state, condition.is_wanted, passed, faults)
        };
        Ok((nanoseconds(at), readings.into_iter().map(row).collect()))
    }

    /// Ends the run, as if it had come to its end by itself.
    fn stop(&self) {
        self.0.stop();
    }

    /// The changes that were made, as entries of a timeline: JSON.
    #[getter]
    fn timeline(&self) -> String {
        self.0.timeline().to_string()
    }

    /// The scenario whose timeline makes them too: JSON that can be read back.
    #[getter]
    fn replay(&self) -> String {
        self.0.replay().to_json().to_string()
    }
}

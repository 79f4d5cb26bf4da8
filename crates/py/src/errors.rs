//! Exceptions.

use airloom_world::scenario;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    airloom._core,
    ScenarioError,
    PyValueError,
    "A scenario that cannot be used: `file`, `line`, `column`, `key`, `message` and the valid `choices`."
);
create_exception!(
    airloom._core,
    DriveError,
    PyException,
    "A run that could not be carried out; `exit_code` is what the command line ends with."
);

/// The Python exception for a scenario that cannot be used.
pub fn scenario_error(py: Python<'_>, error: &scenario::ScenarioError) -> PyErr {
    let raised = ScenarioError::new_err(error.to_string());
    let value = raised.value(py);
    let set = || -> PyResult<()> {
        value.setattr("file", &error.source)?;
        value.setattr("line", error.line)?;
        value.setattr("column", error.column)?;
        value.setattr("key", &error.key)?;
        value.setattr("message", &error.message)?;
        value.setattr("choices", error.choices.clone())
    };
    match set() {
        Ok(()) => raised,
        Err(e) => e,
    }
}

/// The Python exception for a run that could not be carried out, with the exit code that the command line gives for
/// it as `exit_code`; full disks and the like become `OSError`.
pub fn drive_error(py: Python<'_>, error: airloom_drive::run::DriveError) -> PyErr {
    use airloom_drive::run::DriveError as E;
    let code = match &error {
        E::Build(_) | E::Timeline(_) => 2,
        E::RealTime(e) => e.exit_code(),
        E::Io(_) => 4,
    };
    if let E::Io(e) = error {
        return PyOSError::new_err((e.raw_os_error(), e.to_string()));
    }
    let raised = DriveError::new_err(error.to_string());
    match raised.value(py).setattr("exit_code", code) {
        Ok(()) => raised,
        Err(e) => e,
    }
}

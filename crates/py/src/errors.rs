//! Exceptions.

use std::io;

use airloom_world::scenario;
use pyo3::create_exception;
use pyo3::exceptions::{PyBaseException, PyException, PyOSError, PyValueError};
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

create_exception!(
    airloom._core,
    NameTaken,
    PyValueError,
    "An axis of a sweep is called as something that runs measure."
);

create_exception!(
    airloom._core,
    WapError,
    DriveError,
    "A WAP exchange that failed; `exit_code` is what the command line ends with, `reason` one word."
);

/// The Python exception for what the system refused: with its number, which Python knows more of than of the sentence.
pub fn os_error(code: Option<i32>, why: &str) -> PyErr {
    match code {
        // The system's sentence ends with the number here: people have it from `errno`.
        Some(code) => PyOSError::new_err((code, why.split(" (os error").next().unwrap_or(why).to_owned())),
        None => PyOSError::new_err(why.to_owned()),
    }
}

/// The Python exception for what cannot be used.
pub fn wrong(what: impl ToString) -> PyErr {
    PyValueError::new_err(what.to_string())
}

/// The Python exception for a scenario that cannot be used.
pub fn scenario_error(py: Python<'_>, error: &scenario::ScenarioError) -> PyErr {
    telling(py, ScenarioError::new_err(error.to_string()), |value| {
        value.setattr("file", &error.source)?;
        value.setattr("line", error.line)?;
        value.setattr("column", error.column)?;
        value.setattr("key", &error.key)?;
        value.setattr("message", &error.message)?;
        value.setattr("choices", error.choices.clone())
    })
}

/// An exception with its attributes.
pub fn telling(
    py: Python<'_>,
    raised: PyErr,
    set: impl FnOnce(&Bound<'_, PyBaseException>) -> PyResult<()>,
) -> PyErr {
    match set(raised.value(py)) {
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
        E::Io(_) | E::Fault(_) => 4,
    };
    if let E::Io(e) = error {
        return PyOSError::new_err((e.raw_os_error(), e.to_string()));
    }
    telling(py, DriveError::new_err(error.to_string()), |value| value.setattr("exit_code", code))
}

/// The Python exception for a WAP exchange that failed.
pub fn wap_error(py: Python<'_>, error: &airloom_drive::wap::Error) -> PyErr {
    use airloom_drive::wap::Error as E;
    let (code, reason) = match error {
        E::Header(_) | E::TooLarge => (2, "usage"),
        E::Socket { .. } => (4, "socket"),
        E::NobodyThere(_) => (4, "nobody"),
        E::TimedOut(_) => (4, "timeout"),
        E::Disconnected(_) => (4, "disconnected"),
        E::Aborted(_) => (4, "aborted"),
        E::Redirected => (4, "redirected"),
        E::NotAgreed(_) => (4, "not-agreed"),
        E::Unreadable => (4, "unreadable"),
        E::Interrupted => (130, "interrupted"),
    };
    wap_failure(py, error.to_string(), code, reason)
}

/// The same for a failure with this message, exit code and word.
pub fn wap_failure(py: Python<'_>, message: String, code: i32, reason: &str) -> PyErr {
    telling(py, WapError::new_err(message), |value| {
        value.setattr("exit_code", code)?;
        value.setattr("reason", reason)
    })
}

/// The `OSError` of an error of reading or writing.
#[expect(clippy::needless_pass_by_value, reason = "as `map_err` gives it")]
pub fn raised(error: io::Error) -> PyErr {
    os_error(error.raw_os_error(), &error.to_string())
}

//! By which rights laboratories are made, and getting them for a whole process.

use airloom_drive::real_time::{self, Rights};
use pyo3::prelude::*;

use crate::errors::drive_error;

/// By which rights this thread makes laboratories, in words; and may it enter their hosts itself?
#[pyfunction]
pub fn rights() -> (&'static str, bool) {
    let rights = Rights::here();
    (rights.describe(), rights == Rights::Own)
}

/// Moves this process, which must have a single thread, into a user namespace in which it may make laboratories and
/// enter them; programs that it becomes by `exec` may too.
#[pyfunction]
pub fn enter_user_namespace(py: Python<'_>) -> PyResult<()> {
    real_time::enter_user_namespace().map_err(|e| drive_error(py, e.into()))
}

//! Sessions of WWP over UDP.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use airloom_drive::wwp::{Failure, Listener, Session};
use pyo3::exceptions::{
    PyBrokenPipeError, PyConnectionRefusedError, PyConnectionResetError, PyOSError, PyTimeoutError,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::wrong;
use crate::signals::{addresses, interruptible};

/// Longer waits are cut into such pieces, between which signals are looked for.
const SLICE: Duration = Duration::from_millis(200);

fn raised(failure: &Failure) -> PyErr {
    let text = failure.to_string();
    match failure {
        Failure::System(error) => match error.raw_os_error() {
            Some(code) => PyOSError::new_err((code, text)),
            None => PyOSError::new_err(text),
        },
        Failure::Silent(_) => PyTimeoutError::new_err(text),
        Failure::Reset => PyConnectionResetError::new_err(text),
        Failure::Finished => PyBrokenPipeError::new_err(text),
        Failure::Refused | Failure::Busy => PyConnectionRefusedError::new_err(text),
    }
}

fn seconds(time: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(time).map_err(|_| wrong("a time is not below 0 and not endless"))
}

/// Calls `work` with short waits until it gives something or `wait` is over.
fn patiently<T: Send>(
    py: Python<'_>,
    wait: f64,
    mut work: impl FnMut(Duration) -> Result<Option<T>, Failure> + Send,
) -> PyResult<Option<T>> {
    let mut left = seconds(wait)?;
    loop {
        let slice = left.min(SLICE);
        let done = py.detach(|| work(slice)).map_err(|failure| raised(&failure))?;
        left -= slice;
        if done.is_some() || left.is_zero() {
            return Ok(done);
        }
        py.check_signals()?;
    }
}

fn resolve(py: Python<'_>, host: &str, port: u16) -> PyResult<Vec<SocketAddr>> {
    addresses(py, host, port).map_err(PyOSError::new_err)
}

/// A connection of WWP over UDP.
#[pyclass(name = "WwpSession", module = "airloom._core")]
pub struct PyWwpSession(Mutex<Session>);

impl PyWwpSession {
    fn new(session: Session) -> PyWwpSession {
        PyWwpSession(Mutex::new(session))
    }

    fn look(&self) -> MutexGuard<'_, Session> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&mut self) -> &mut Session {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyWwpSession {
    /// Opens one. `TimeoutError`: nobody answered for `patience_s`.
    #[staticmethod]
    fn connect(py: Python<'_>, host: &str, port: u16, patience_s: f64) -> PyResult<PyWwpSession> {
        let (to, patience) = (resolve(py, host, port)?, seconds(patience_s)?);
        let done = interruptible(py, |goes_on| Session::connect(&to, patience, goes_on))?;
        done.map(PyWwpSession::new).map_err(|failure| raised(&failure))
    }

    /// The address and port of the other end.
    #[getter]
    fn peer(&self) -> String {
        self.look().peer().to_string()
    }

    /// Octets written that the peer has not acknowledged.
    #[getter]
    fn unacknowledged(&self) -> u64 {
        self.look().unacknowledged()
    }

    /// Segments sent, and those of them that were sent again.
    #[getter]
    fn segments(&self) -> (u64, u64) {
        self.look().segments()
    }

    /// Writes as much as there is room for and returns how much that was; waits for room.
    fn write(&mut self, py: Python<'_>, octets: &[u8], wait_s: f64) -> PyResult<usize> {
        let session = self.session();
        let written = patiently(py, wait_s, |slice| match session.write(octets, slice)? {
            0 => Ok(None),
            n => Ok(Some(n)),
        });
        Ok(written?.unwrap_or(0))
    }

    /// Reads what has come; waits for it. Nothing came: `None`; the peer has finished: no octets.
    fn read<'py>(
        &mut self,
        py: Python<'py>,
        most: usize,
        wait_s: f64,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let session = self.session();
        let octets = patiently(py, wait_s, |slice| session.read(most, slice))?;
        Ok(octets.map(|octets| PyBytes::new(py, &octets)))
    }

    /// Nothing more will be written.
    fn finish(&mut self) {
        self.session().finish();
    }

    /// Has everything been said at both ends? Waits for it.
    fn is_closed(&mut self, py: Python<'_>, wait_s: f64) -> PyResult<bool> {
        let session = self.session();
        let done = patiently(py, wait_s, |slice| Ok(session.is_closed(slice)?.then_some(())))?;
        Ok(done.is_some())
    }

    /// Ends it at once and tells the peer.
    fn reset(&mut self) {
        self.session().reset();
    }
}

/// Takes connections of WWP on a UDP port, one at a time.
#[pyclass(name = "WwpListener", module = "airloom._core")]
pub struct PyWwpListener(Listener);

#[pymethods]
impl PyWwpListener {
    #[new]
    fn new(py: Python<'_>, host: &str, port: u16) -> PyResult<PyWwpListener> {
        let at = resolve(py, host, port)?[0];
        Ok(PyWwpListener(Listener::bind(at).map_err(|error| raised(&Failure::System(error)))?))
    }

    /// Where it listens.
    #[getter]
    fn address(&self) -> PyResult<String> {
        Ok(self.0.local()?.to_string())
    }

    /// The next connection, if one begins within `wait_s`.
    fn accept(&mut self, py: Python<'_>, wait_s: f64, patience_s: f64) -> PyResult<Option<PyWwpSession>> {
        let patience = seconds(patience_s)?;
        let listener = &mut self.0;
        Ok(patiently(py, wait_s, |slice| listener.accept(slice, patience))?.map(PyWwpSession::new))
    }
}

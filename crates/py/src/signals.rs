//! Blocking calls, and the signals that Python is told of meanwhile.

use std::net::{SocketAddr, ToSocketAddrs};

use pyo3::prelude::*;

/// Runs `call` without the interpreter; it asks now and then whether to go on. What a signal raised meanwhile is raised here.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    call: impl FnOnce(&mut (dyn FnMut() -> bool + Send)) -> T + Send,
) -> PyResult<T> {
    let mut raised = None;
    let mut goes_on = || {
        raised = Python::attach(|py| py.check_signals()).err();
        raised.is_none()
    };
    let done = py.detach(|| call(&mut goes_on));
    raised.map_or(Ok(done), Err)
}

/// The addresses of a name, at least one; or why there is none.
pub fn addresses(py: Python<'_>, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let why = match py.detach(|| (host, port).to_socket_addrs().map(Vec::from_iter)) {
        Ok(found) if !found.is_empty() => return Ok(found),
        Ok(_) => "none is known".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(format!("`{host}` has no address: {why}"))
}

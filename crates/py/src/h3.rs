//! HTTP/3 on real sockets.

use std::path::PathBuf;

use airloom_drive::h3::{self, Failure, Fetching, Listening, Options, Trust, Wanted};
use pyo3::exceptions::{PyConnectionError, PyOSError};
use pyo3::prelude::*;

use crate::serve::{cannot, lines, seconds, served, wrong};

/// Serves the files of a folder over HTTP/3 until SIGINT or SIGTERM. `certificate` are files with a chain and a key, or a
/// certificate is made. `fields` are names and values that every answer has besides. `ready` is called with the address, `log` with a JSON line for each request.
#[pyfunction]
#[pyo3(signature = (listen, folder, certificate, fields, clients, connections, grace_s, ready, log = None))]
pub fn serve_h3(
    py: Python<'_>,
    listen: &str,
    folder: PathBuf,
    certificate: Option<(PathBuf, PathBuf)>,
    fields: Vec<(String, String)>,
    clients: Vec<String>,
    connections: usize,
    grace_s: f64,
    ready: Py<PyAny>,
    log: Option<Py<PyAny>>,
) -> PyResult<()> {
    let (listen, clients) = served(listen, clients)?;
    let options =
        Options { listen, folder, certificate, fields, clients, connections, grace: seconds(grace_s)? };
    let tell = |at: Listening| {
        let text = at.clients.to_string();
        Python::attach(|py| drop(ready.call1(py, (text,))));
    };
    py.detach(|| h3::serve(&options, tell, lines(log))).map_err(cannot)
}

/// Fetches targets of one server over HTTP/3: for each its status, octets, seconds to its first octets and from there to the end.
/// `trust` is a file of certificates; `insecure` believes anybody.
#[pyfunction]
pub fn h3_get(
    py: Python<'_>,
    to: &str,
    host: String,
    authority: String,
    wanted: Vec<(String, Option<PathBuf>)>,
    trust: Option<PathBuf>,
    insecure: bool,
    patience_s: f64,
) -> PyResult<Vec<(u16, u64, f64, f64)>> {
    let trust = match trust {
        Some(file) => Trust::File(file),
        None if insecure => Trust::Anybody,
        None => Trust::Public,
    };
    let to = to.parse().map_err(wrong)?;
    let fetching = Fetching { to, host, authority, trust, patience: seconds(patience_s)? };
    let wanted = wanted.into_iter().map(|(target, file)| Wanted { target, file }).collect();
    let mut interrupted = None;
    let got = py.detach(|| {
        h3::get(&fetching, wanted, || {
            interrupted = Python::attach(|py| py.check_signals().err());
            interrupted.is_some()
        })
    });
    if let Some(interrupted) = interrupted {
        return Err(interrupted);
    }
    let raised = |failure: Failure| match &failure {
        Failure::Usage(why) => wrong(why),
        Failure::Io(_, why) => PyOSError::new_err((why.raw_os_error(), failure.to_string())),
        Failure::Peer(why) => PyConnectionError::new_err(why.clone()),
    };
    let flat = |fetched: h3::Fetched| (fetched.status, fetched.octets, fetched.first_s, fetched.whole_s);
    Ok(got.map_err(raised)?.into_iter().map(flat).collect())
}

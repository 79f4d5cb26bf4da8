//! HTTP/3 on real sockets.

use std::net::SocketAddr;
use std::path::PathBuf;

use airloom_drive::h3::{self, Failure, Fetching, Options, Trust, Wanted, hq};
use pyo3::exceptions::{PyConnectionError, PyOSError};
use pyo3::prelude::*;

use crate::errors::wrong;
use crate::serve::{cannot, lines, seconds, served};
use crate::signals::interruptible;

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
    let tell = |at: SocketAddr| Python::attach(|py| drop(ready.call1(py, (at.to_string(),))));
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
    let got = interruptibly(py, |stopped| h3::get(&fetching, wanted, stopped))?;
    let flat = |fetched: h3::Fetched| (fetched.status, fetched.octets, fetched.first_s, fetched.whole_s);
    Ok(got.into_iter().map(flat).collect())
}

/// Fetches, and raises what comes of it or what Python was told meanwhile.
fn interruptibly<T: Send>(
    py: Python<'_>,
    fetch: impl FnOnce(&mut (dyn FnMut() -> bool + Send)) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let got = interruptible(py, |goes_on| fetch(&mut || !goes_on()))?;
    got.map_err(|failure| match &failure {
        Failure::Usage(why) => wrong(why),
        Failure::Io(_, why) => PyOSError::new_err((why.raw_os_error(), failure.to_string())),
        Failure::Peer(why) => PyConnectionError::new_err(why.clone()),
    })
}

/// Serves the files of a folder by HTTP/0.9 over QUIC until SIGINT or SIGTERM, as the cases of the interop runner ask for it:
/// with a Retry for everybody, with ChaCha20 alone, with early data. `ready` is called with the address.
#[pyfunction]
#[pyo3(signature = (listen, folder, certificate, clients, ready, *, retry = false, chacha20 = false, early = false))]
pub fn serve_hq(
    py: Python<'_>,
    listen: &str,
    folder: PathBuf,
    certificate: (PathBuf, PathBuf),
    clients: Vec<String>,
    ready: Py<PyAny>,
    retry: bool,
    chacha20: bool,
    early: bool,
) -> PyResult<()> {
    let (listen, clients) = served(listen, clients)?;
    let options = hq::Options { listen, folder, certificate, clients, retry, chacha20, early };
    let tell = |at: SocketAddr| Python::attach(|py| drop(ready.call1(py, (at.to_string(),))));
    py.detach(|| hq::serve(&options, tell)).map_err(cannot)
}

/// Fetches targets of one server by HTTP/0.9 over QUIC: those of each of `visits` over a connection of its own. Anybody is believed to
/// be the server, as clients of the interop runner do: one of its cases has a longer chain of certificates than TLS's library follows.
#[pyfunction]
#[pyo3(signature = (to, host, visits, patience_s, *, chacha20 = false, early = false, new_keys = false))]
pub fn hq_get(
    py: Python<'_>,
    to: &str,
    host: String,
    visits: Vec<Vec<(String, PathBuf)>>,
    patience_s: f64,
    chacha20: bool,
    early: bool,
    new_keys: bool,
) -> PyResult<()> {
    let wanted = |(target, file)| Wanted { target, file: Some(file) };
    let visits = visits.into_iter().map(|visit| visit.into_iter().map(wanted).collect()).collect();
    let (to, trust, patience) = (to.parse().map_err(wrong)?, Trust::Anybody, seconds(patience_s)?);
    let visits = hq::Visits { to, host, trust, visits, chacha20, early, new_keys, patience };
    interruptibly(py, |stopped| hq::get(visits, stopped))
}

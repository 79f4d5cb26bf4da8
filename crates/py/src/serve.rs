//! Daemons.

use airloom_base::config;
use airloom_drive::daemon::origins::Origins;
use airloom_drive::daemon::settings;
use airloom_drive::daemon::wap_gateway::{Listening, Options, serve};
use airloom_proxies::wap_gateway::Config;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// Runs a WAP gateway until SIGINT or SIGTERM. `ready` is called with the addresses it listens on, `log` with a JSON line
/// for each exchange and each push that is over. `ValueError` for what cannot be used, `OSError` for an address that cannot be had.
#[pyfunction]
#[pyo3(signature = (session, connectionless, metrics, push, allowed, settings, grace_s, ready, log = None))]
pub fn serve_wap_gateway(
    py: Python<'_>,
    session: &str,
    connectionless: Option<&str>,
    metrics: Option<&str>,
    push: Option<&str>,
    allowed: Vec<String>,
    settings: Vec<(String, String)>,
    grace_s: f64,
    ready: Py<PyAny>,
    log: Option<Py<PyAny>>,
) -> PyResult<()> {
    let wrong = |what: String| PyValueError::new_err(what);
    let address = |text: &str| {
        text.parse().map_err(|_| wrong(format!("{text:?} is no address and port, as in 127.0.0.1:9201")))
    };
    let pairs = settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let gateway: Config = settings::table(pairs)
        .and_then(|table| config::read(&table))
        .and_then(|config: Config| config.check().map(|()| config))
        .map_err(|e| wrong(e.to_string()))?;
    let options = Options {
        session: address(session)?,
        connectionless: connectionless.map(address).transpose()?,
        metrics: metrics.map(address).transpose()?,
        push: push.map(address).transpose()?,
        origins: Origins::allowing(allowed).map_err(|e| wrong(e.to_string()))?,
        gateway,
        grace: std::time::Duration::try_from_secs_f64(grace_s).map_err(|e| wrong(e.to_string()))?,
    };
    // What a callback raises ends nothing: the clients are not to suffer for a full disk under the log.
    let tell = |ready: Py<PyAny>| {
        move |at: Listening| {
            let text = |at: Option<std::net::SocketAddr>| at.map(|at| at.to_string());
            let all = (at.session.to_string(), text(at.connectionless), text(at.metrics), text(at.push));
            Python::attach(|py| drop(ready.call1(py, all)));
        }
    };
    let write = move |line: String| {
        if let Some(log) = &log {
            Python::attach(|py| drop(log.call1(py, (line,))));
        }
    };
    let ended = py.detach(|| serve(&options, tell(ready), write));
    ended.map(drop).map_err(|e| PyOSError::new_err((e.why.raw_os_error(), e.to_string())))
}

//! Daemons.

use airloom_base::config;
use airloom_drive::daemon::origins::Origins;
use airloom_drive::daemon::streams::{self, Clients};
use airloom_drive::daemon::wap_gateway::{Listening, Options, serve};
use airloom_drive::daemon::{CannotListen, settings};
use airloom_proxies::http_cache::{self, HttpCache};
use airloom_proxies::split_tcp::{self, SplitTcp};
use airloom_proxies::wap_gateway::Config;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// What a WAP gateway sends to an address that has not shown that it is there, times what came from it.
const AMPLIFICATION: u16 = 3;

/// Runs a WAP gateway until SIGINT or SIGTERM. `ready` is called with the addresses it listens on, `log` with a JSON line
/// for each exchange and each push that is over. `ValueError` for what cannot be used, `OSError` for an address that cannot be had.
#[pyfunction]
#[pyo3(signature = (session, connectionless, metrics, push, names, allowed, settings, grace_s, ready, log = None))]
pub fn serve_wap_gateway(
    py: Python<'_>,
    session: &str,
    connectionless: Option<&str>,
    metrics: Option<&str>,
    push: Option<&str>,
    names: Vec<String>,
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
    let mut table = settings::table(pairs).map_err(|e| wrong(e.to_string()))?;
    if let Some(table) = table.as_object_mut() {
        // In a simulated network nobody forges addresses; here somebody may.
        table.entry("amplification").or_insert_with(|| AMPLIFICATION.into());
    }
    let gateway: Config = config::read(&table)
        .and_then(|config: Config| config.check().map(|()| config))
        .map_err(|e| wrong(e.to_string()))?;
    if gateway.wtls.is_some() {
        return Err(wrong("wtls: a model of cost without protection, for simulated hosts alone".to_owned()));
    }
    let options = Options {
        session: address(session)?,
        connectionless: connectionless.map(address).transpose()?,
        metrics: metrics.map(address).transpose()?,
        push: push.map(address).transpose()?,
        names,
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
    ended.map(drop).map_err(cannot)
}

fn cannot(e: CannotListen) -> PyErr {
    PyOSError::new_err((e.why.raw_os_error(), e.to_string()))
}

fn wrong(what: impl ToString) -> PyErr {
    PyValueError::new_err(what.to_string())
}

fn place(text: &str) -> PyResult<std::net::SocketAddr> {
    text.parse().map_err(|_| wrong(format!("{text:?} is no address and port, as in 127.0.0.1:8080")))
}

fn seconds(s: f64) -> PyResult<std::time::Duration> {
    std::time::Duration::try_from_secs_f64(s).map_err(wrong)
}

/// What all daemons for streams are told.
fn stream_options(
    listen: &str,
    metrics: Option<&str>,
    names: Vec<String>,
    clients: Vec<String>,
    allowed: Vec<String>,
    nagle: bool,
    connect_s: f64,
    grace_s: f64,
) -> PyResult<streams::Options> {
    let (listen, clients) = (place(listen)?, Clients::allowing(clients).map_err(wrong)?);
    if clients.is_everybody() && !listen.ip().is_loopback() {
        let why = "not a loopback address: say who may come (--allow-client ADDRESS or NETWORK)";
        return Err(wrong(format!("{listen} is {why}")));
    }
    Ok(streams::Options {
        listen,
        metrics: metrics.map(place).transpose()?,
        names,
        clients,
        origins: Origins::allowing(allowed).map_err(wrong)?,
        is_transparent: false,
        nagle,
        connect: seconds(connect_s)?,
        grace: seconds(grace_s)?,
    })
}

/// Settings as they are given, as the table of a proxy.
fn table(given: &[(String, String)]) -> PyResult<serde_json::Value> {
    settings::table(given.iter().map(|(key, value)| (key.as_str(), value.as_str()))).map_err(wrong)
}

/// Tells Python where a daemon listens.
fn tell(ready: Py<PyAny>) -> impl FnOnce(streams::Listening) {
    move |at| {
        let all = (at.clients.to_string(), at.metrics.map(|at| at.to_string()));
        Python::attach(|py| drop(ready.call1(py, all)));
    }
}

/// Runs a proxy that splits TCP connections until SIGINT or SIGTERM; `to` is whom it connects to, `None` whom its clients meant
/// before the kernel turned them aside. `ready` is called with the addresses it listens on.
#[pyfunction]
#[pyo3(signature = (listen, to, metrics, names, clients, allowed, settings, nagle, connect_s, grace_s, ready))]
pub fn serve_split_tcp(
    py: Python<'_>,
    listen: &str,
    to: Option<&str>,
    metrics: Option<&str>,
    names: Vec<String>,
    clients: Vec<String>,
    allowed: Vec<String>,
    settings: Vec<(String, String)>,
    nagle: bool,
    connect_s: f64,
    grace_s: f64,
    ready: Py<PyAny>,
) -> PyResult<()> {
    let mut options = stream_options(listen, metrics, names, clients, allowed, nagle, connect_s, grace_s)?;
    let mut config: split_tcp::Config = config::read(&table(&settings)?).map_err(wrong)?;
    if !settings.iter().any(|(key, _)| key == "read_size") {
        // What a modelled program reads at once is its own; here a read costs a system call: it takes what there is room for.
        config.read_size = config.buffer;
    }
    if config.connects == split_tcp::Connects::BeforeAnswering {
        return Err(wrong(
            "connects: the kernel answers clients by itself; on-accept and on-request are possible",
        ));
    }
    if !config.cost_per_read.is_zero() {
        return Err(wrong("cost_per_read: what a read costs is not to be chosen here"));
    }
    let keys = ["mode", "ports", "server", "server_port"];
    if let Some(key) = settings.iter().map(|(key, _)| key.as_str()).find(|key| keys.contains(key)) {
        return Err(wrong(format!("{key}: said by --listen, --to and --transparent")));
    }
    let server = to.map(|to| py.detach(|| address_of(to, &options.origins))).transpose()?;
    match server {
        Some(at) if streams::leads_back(options.listen, at) => {
            return Err(wrong(format!("--to {at}: is where it listens itself")));
        }
        Some(at) => {
            // Who writes an address means it, and a name was checked with its addresses.
            options.origins = options.origins.and(at.ip());
            config.mode = split_tcp::Mode::Addressed;
            config.server_port = Some(at.port());
        }
        None => options.is_transparent = true,
    }
    let app = SplitTcp::new(config, server.map(|at| at.ip())).map_err(wrong)?;
    py.detach(|| streams::serve(&options, app, tell(ready), |_| {})).map_err(cannot)
}

/// Runs a caching HTTP proxy until SIGINT or SIGTERM. `ready` is called with the addresses it listens on, `log` with a JSON line for
/// each exchange.
#[pyfunction]
#[pyo3(signature = (listen, metrics, names, clients, allowed, settings, connect_s, grace_s, transparent, ready, log = None))]
pub fn serve_http_cache(
    py: Python<'_>,
    listen: &str,
    metrics: Option<&str>,
    names: Vec<String>,
    clients: Vec<String>,
    allowed: Vec<String>,
    settings: Vec<(String, String)>,
    connect_s: f64,
    grace_s: f64,
    transparent: bool,
    ready: Py<PyAny>,
    log: Option<Py<PyAny>>,
) -> PyResult<()> {
    let mut options = stream_options(listen, metrics, names, clients, allowed, false, connect_s, grace_s)?;
    options.is_transparent = transparent;
    let mut config: http_cache::Config = config::read(&table(&settings)?).map_err(wrong)?;
    if let Some((key, _)) = settings.iter().find(|(key, _)| key == "mode" || key == "ports") {
        return Err(wrong(format!("{key}: said by --listen and --transparent")));
    }
    config.mode = if transparent { http_cache::Mode::Transparent } else { http_cache::Mode::Addressed };
    let mut app = HttpCache::new(config, None).map_err(wrong)?;
    app.set_calendar(airloom_drive::daemon::today());
    app.set_log(log.is_some());
    let write = move |line: String| {
        if let Some(log) = &log {
            Python::attach(|py| drop(log.call1(py, (line,))));
        }
    };
    py.detach(|| streams::serve(&options, app, tell(ready), write)).map_err(cannot)
}

/// The address that `HOST:PORT` means, if it may be connected to.
fn address_of(to: &str, origins: &Origins) -> PyResult<std::net::SocketAddr> {
    use std::net::ToSocketAddrs;
    if let Ok(at) = to.parse() {
        return Ok(at);
    }
    let unknown = |why: String| wrong(format!("--to {to:?}: {why}"));
    let found: Vec<_> = to.to_socket_addrs().map_err(|e| unknown(e.to_string()))?.collect();
    let name = to.rsplit_once(':').map_or(to, |(name, _)| name);
    let may = |at: &std::net::SocketAddr| origins.allows(name, at.ip());
    let forbidden = || unknown(format!("its addresses are private; allow it by --allow-origin {name}"));
    found.into_iter().find(may).ok_or_else(forbidden)
}

//! Daemons.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use airloom_base::config;
use airloom_drive::daemon::origins::Origins;
use airloom_drive::daemon::streams::{self, Clients};
use airloom_drive::daemon::wap_gateway::{Listening, Options, serve};
use airloom_drive::daemon::{CannotListen, settings};
use airloom_proxies::http_cache::{self, HttpCache};
use airloom_proxies::split_tcp::{self, SplitTcp};
use airloom_proxies::wap_gateway::Config;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::errors::wrong;

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
    let mut table = table(&settings)?;
    if let Some(table) = table.as_object_mut() {
        // In a simulated network nobody forges addresses; here somebody may.
        table.entry("amplification").or_insert_with(|| AMPLIFICATION.into());
    }
    let gateway: Config =
        config::read(&table).and_then(|config: Config| config.check().map(|()| config)).map_err(wrong)?;
    if gateway.wtls.is_some() {
        return Err(wrong("wtls: a model of cost without protection, for simulated hosts alone"));
    }
    let options = Options {
        session: place(session)?,
        connectionless: connectionless.map(place).transpose()?,
        metrics: metrics.map(place).transpose()?,
        push: push.map(place).transpose()?,
        names,
        origins: Origins::allowing(allowed).map_err(wrong)?,
        gateway,
        grace: seconds(grace_s)?,
    };
    let tell = |at: Listening| {
        let text = |at: Option<SocketAddr>| at.map(|at| at.to_string());
        let all = (at.session.to_string(), text(at.connectionless), text(at.metrics), text(at.push));
        Python::attach(|py| drop(ready.call1(py, all)));
    };
    py.detach(|| serve(&options, tell, lines(log))).map(drop).map_err(cannot)
}

pub(crate) fn cannot(e: CannotListen) -> PyErr {
    PyOSError::new_err((e.why.raw_os_error(), e.to_string()))
}

fn place(text: &str) -> PyResult<SocketAddr> {
    text.parse().map_err(|_| wrong(format!("{text:?} is no address and port, as in 127.0.0.1:8080")))
}

pub(crate) fn seconds(s: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(s).map_err(wrong)
}

/// Where a daemon listens, and whom it serves there.
pub(crate) fn served(listen: &str, clients: Vec<String>) -> PyResult<(SocketAddr, Clients)> {
    let (listen, clients) = (place(listen)?, Clients::allowing(clients).map_err(wrong)?);
    if clients.is_everybody() && !listen.ip().is_loopback() {
        let why = "not a loopback address: say who may come (--allow-client ADDRESS or NETWORK)";
        return Err(wrong(format!("{listen} is {why}")));
    }
    Ok((listen, clients))
}

/// Gives lines of a log to Python. What a callback raises ends nothing: the clients are not to suffer for a full disk under the log.
pub(crate) fn lines(log: Option<Py<PyAny>>) -> impl Fn(String) {
    move |line| {
        if let Some(log) = &log {
            Python::attach(|py| drop(log.call1(py, (line,))));
        }
    }
}

/// Settings as they are given, as the table of a machine.
fn table(given: &[(String, String)]) -> PyResult<serde_json::Value> {
    settings::table(given.iter().map(|(key, value)| (key.as_str(), value.as_str()))).map_err(wrong)
}

/// What a proxy for streams is told.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Asked {
    listen: String,
    /// Whom split-tcp connects to.
    to: Option<String>,
    /// Connections go to whom clients meant before the kernel turned them aside.
    transparent: bool,
    metrics: Option<String>,
    names: Vec<String>,
    clients: Vec<String>,
    allowed: Vec<String>,
    settings: Vec<(String, String)>,
    nagle: bool,
    connect_s: f64,
    grace_s: f64,
}

impl Asked {
    /// The table of the proxy, in which `elsewhere` are keys that options say.
    fn table(&self, elsewhere: &[&str], options: &str) -> PyResult<serde_json::Value> {
        match self.settings.iter().find(|(key, _)| elsewhere.contains(&key.as_str())) {
            Some((key, _)) => Err(wrong(format!("{key}: said by {options}"))),
            None => table(&self.settings),
        }
    }
}

/// Runs the proxy `split-tcp` or `http-cache` until SIGINT or SIGTERM. `ready` is called with the addresses it listens on, `log` with a
/// JSON line for each exchange.
#[pyfunction]
#[pyo3(signature = (proxy, asked, ready, log = None))]
pub fn serve_proxy(
    py: Python<'_>,
    proxy: &str,
    asked: Asked,
    ready: Py<PyAny>,
    log: Option<Py<PyAny>>,
) -> PyResult<()> {
    let (listen, clients) = served(&asked.listen, asked.clients.clone())?;
    let mut options = streams::Options {
        listen,
        metrics: asked.metrics.as_deref().map(place).transpose()?,
        names: asked.names.clone(),
        clients,
        origins: Origins::allowing(asked.allowed.clone()).map_err(wrong)?,
        is_transparent: asked.transparent,
        nagle: asked.nagle,
        connect: seconds(asked.connect_s)?,
        grace: seconds(asked.grace_s)?,
    };
    let tell = |at: streams::Listening| {
        let all = (at.clients.to_string(), at.metrics.map(|at| at.to_string()));
        Python::attach(|py| drop(ready.call1(py, all)));
    };
    match proxy {
        "split-tcp" => {
            let app = split_tcp(py, &asked, &mut options)?;
            py.detach(|| streams::serve(&options, app, tell, |_| {}))
        }
        "http-cache" => {
            let app = http_cache(&asked, log.is_some())?;
            py.detach(|| streams::serve(&options, app, tell, lines(log)))
        }
        _ => return Err(wrong(format!("{proxy}: no proxy for streams"))),
    }
    .map_err(cannot)
}

fn split_tcp(py: Python<'_>, asked: &Asked, options: &mut streams::Options) -> PyResult<SplitTcp> {
    let elsewhere = ["mode", "ports", "server", "server_port"];
    let table = asked.table(&elsewhere, "--listen, --to and --transparent")?;
    let mut config: split_tcp::Config = config::read(&table).map_err(wrong)?;
    if !asked.settings.iter().any(|(key, _)| key == "read_size") {
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
    let server = asked.to.as_deref().map(|to| py.detach(|| address_of(to, &options.origins))).transpose()?;
    if let Some(at) = server {
        if streams::leads_back(options.listen, at) {
            return Err(wrong(format!("--to {at}: is where it listens itself")));
        }
        // Who writes an address means it, and a name was checked with its addresses.
        options.origins = std::mem::take(&mut options.origins).and(at.ip());
        config.mode = split_tcp::Mode::Addressed;
        config.server_port = Some(at.port());
    }
    SplitTcp::new(config, server.map(|at| at.ip())).map_err(wrong)
}

fn http_cache(asked: &Asked, has_log: bool) -> PyResult<HttpCache> {
    let table = asked.table(&["mode", "ports"], "--listen and --transparent")?;
    let mut config: http_cache::Config = config::read(&table).map_err(wrong)?;
    config.mode = if asked.transparent { http_cache::Mode::Transparent } else { http_cache::Mode::Addressed };
    config.name = Some(config.name.map_or_else(airloom_drive::daemon::pseudonym, Ok)?);
    let mut app = HttpCache::new(config, None).map_err(wrong)?;
    app.set_calendar(airloom_drive::daemon::today());
    app.set_log(has_log);
    Ok(app)
}

/// The address that `HOST:PORT` means, if it may be connected to.
fn address_of(to: &str, origins: &Origins) -> PyResult<SocketAddr> {
    if let Ok(at) = to.parse() {
        return Ok(at);
    }
    let unknown = |why: String| wrong(format!("--to {to:?}: {why}"));
    let found: Vec<_> = to.to_socket_addrs().map_err(|e| unknown(e.to_string()))?.collect();
    let name = to.rsplit_once(':').map_or(to, |(name, _)| name);
    let may = |at: &SocketAddr| origins.allows(name, at.ip());
    let forbidden = || unknown(format!("its addresses are private; allow it by --allow-origin {name}"));
    found.into_iter().find(may).ok_or_else(forbidden)
}

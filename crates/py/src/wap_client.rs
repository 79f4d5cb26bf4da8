//! The WAP client and the listener for pushes, on real sockets.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use airloom_base::units::Octets;
use airloom_drive::wap::{Client, Error, Listener, Options, Push, Request};
use airloom_transports::wsp::client::Acknowledging;
use airloom_transports::wsp::wire::Method;
use airloom_transports::wtp;
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::errors::{wap_error, wap_failure, wrong};
use crate::signals::{addresses, interruptible};

/// Names and values.
type Headers = Vec<(String, String)>;
/// Status, content type, headers and body of a reply.
type Reply<'py> = (u16, String, Headers, Bound<'py, PyBytes>);
/// Sender, content type, headers and body of a push.
type Pushed<'py> = (String, String, Headers, Bound<'py, PyBytes>);

/// Python's seconds; what is no time is for ever.
fn seconds(time: f64) -> PyResult<Duration> {
    if time.is_nan() || time < 0.0 {
        return Err(wrong("a time is not below 0"));
    }
    Ok(Duration::try_from_secs_f64(time).unwrap_or(Duration::MAX))
}

/// Runs a blocking call that a signal may end.
fn blocking<T: Send>(
    py: Python<'_>,
    call: impl FnOnce(&mut (dyn FnMut() -> bool + Send)) -> Result<T, Error> + Send,
) -> PyResult<T> {
    interruptible(py, call)?.map_err(|error| wap_error(py, &error))
}

fn resolve(py: Python<'_>, host: &str, port: u16) -> PyResult<Vec<SocketAddr>> {
    addresses(py, host, port).map_err(|why| wap_failure(py, why, 2, "unknown-host"))
}

/// A client of a WAP gateway, with a session of WSP over WTP or without one.
#[pyclass(name = "WapClient", module = "airloom._core")]
pub struct PyWapClient {
    client: Client,
    /// Further addresses of the gateway's name. Without a session the first request tells whether anybody is there.
    others: VecDeque<SocketAddr>,
}

#[pymethods]
impl PyWapClient {
    #[new]
    #[pyo3(signature = (
        host, port, *, connectionless = false, headers = Vec::new(), time_s = 30.0, first = 1, client_sdu = 358_400,
        server_sdu = 358_400, maximum_group = None, group_packets = None, acknowledging = "user", local = None,
    ))]
    fn new(
        py: Python<'_>,
        host: &str,
        port: u16,
        connectionless: bool,
        headers: Headers,
        time_s: f64,
        first: u16,
        client_sdu: u32,
        server_sdu: u32,
        maximum_group: Option<u32>,
        group_packets: Option<u8>,
        acknowledging: &str,
        local: Option<&str>,
    ) -> PyResult<Self> {
        let local = local.map(str::parse).transpose();
        let local = local.map_err(|_| wrong("local is no address of IP"))?;
        let gateways = resolve(py, host, port)?;
        let acknowledging = match acknowledging {
            "user" => Acknowledging::User,
            "at-once" => Acknowledging::AtOnce,
            "delayed" => Acknowledging::Delayed,
            other => {
                return Err(wrong(format!("acknowledging is not {other:?}; valid: user, at-once, delayed")));
            }
        };
        let maximum_group = maximum_group.map(|octets| Octets(octets.into()));
        let mut wtp = wtp::Config { maximum_group, ..wtp::Config::default() };
        wtp.group_packets = group_packets.unwrap_or(wtp.group_packets);
        wtp.check().map_err(wrong)?;
        let time = seconds(time_s)?;
        let options = Options {
            gateway: gateways[0],
            local,
            connectionless,
            headers,
            client_sdu,
            server_sdu,
            acknowledging,
            wtp,
            first,
            time,
        };
        let mut others = VecDeque::from(gateways);
        let client = blocking(py, |watch| {
            // A name may have an address that nobody listens on, of another family for instance: that is known at once.
            let mut tried = Err(Error::NobodyThere(options.gateway));
            while let Some(gateway) = others.pop_front() {
                let options = Options { gateway, ..options.clone() };
                tried = Client::open(options, watch);
                if !matches!(tried, Err(Error::NobodyThere(_) | Error::Socket { .. })) {
                    break;
                }
            }
            tried
        })?;
        if !connectionless {
            others.clear();
        }
        Ok(PyWapClient { client, others })
    }

    /// Asks for something and waits for the reply.
    #[pyo3(signature = (method, url, headers = Vec::new(), body = None, content_type = None, time_s = 60.0))]
    fn request<'py>(
        &mut self,
        py: Python<'py>,
        method: &str,
        url: String,
        headers: Headers,
        body: Option<Vec<u8>>,
        content_type: Option<String>,
        time_s: f64,
    ) -> PyResult<Reply<'py>> {
        let Some(method) = Method::named(method) else {
            return Err(wrong(format!("WSP has no method {method:?}")));
        };
        let body = body.map(|body| (content_type.unwrap_or_default(), Bytes::from(body)));
        let request = Request { method, uri: url, headers, body };
        let time = seconds(time_s)?;
        let reply = blocking(py, |watch| {
            let mut reply = self.client.request(&request, time, watch);
            while matches!(reply, Err(Error::NobodyThere(_)))
                && let Some(gateway) = self.others.pop_front()
            {
                self.client.turn_to(gateway)?;
                reply = self.client.request(&request, time, watch);
            }
            self.others.clear();
            reply
        })?;
        Ok((reply.status, reply.content_type, reply.headers, PyBytes::new(py, &reply.body)))
    }

    /// The next push of the session, if one comes in time.
    fn push<'py>(&mut self, py: Python<'py>, time_s: f64) -> PyResult<Option<Pushed<'py>>> {
        let time = seconds(time_s)?;
        let push = blocking(py, |watch| self.client.push(time, watch))?;
        Ok(push.map(|push| pushed(py, push)))
    }

    /// Puts the session to rest.
    fn suspend(&mut self, py: Python<'_>) -> PyResult<()> {
        blocking(py, |_| self.client.suspend())
    }

    /// Takes the session up again, from another port if `elsewhere`.
    #[pyo3(signature = (elsewhere = false))]
    fn resume(&mut self, py: Python<'_>, elsewhere: bool) -> PyResult<()> {
        blocking(py, |watch| self.client.resume(elsewhere, watch))
    }

    /// Ends the session.
    fn close(&mut self, py: Python<'_>) -> PyResult<()> {
        blocking(py, |_| self.client.close())
    }

    /// `address:port` of the gateway.
    #[getter]
    fn gateway(&self) -> String {
        self.client.gateway().to_string()
    }

    /// What the gateway said when the session was opened.
    #[getter]
    fn server_headers(&self) -> Headers {
        self.client.server_headers().to_vec()
    }

    /// What the session goes by; none without one.
    #[getter]
    fn agreed<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(agreed) = self.client.agreed() else { return Ok(None) };
        let said = PyDict::new(py);
        said.set_item("client_sdu", agreed.client_sdu)?;
        said.set_item("server_sdu", agreed.server_sdu)?;
        said.set_item("options", agreed.options)?;
        said.set_item("method_mor", agreed.method_mor)?;
        said.set_item("push_mor", agreed.push_mor)?;
        Ok(Some(said))
    }

    /// What WTP counted.
    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = self.client.counters();
        let said = PyDict::new(py);
        said.set_item("sent", counters.sent)?;
        said.set_item("resent", counters.resent)?;
        said.set_item("timeouts", counters.timeouts)?;
        said.set_item("groups_sent", counters.groups_sent)?;
        said.set_item("groups_received", counters.groups_received)?;
        said.set_item("malformed", counters.malformed)?;
        Ok(said)
    }
}

/// An open port for pushes without a session.
#[pyclass(name = "WapListener", module = "airloom._core")]
pub struct PyWapListener {
    listener: Listener,
}

#[pymethods]
impl PyWapListener {
    #[new]
    fn new(py: Python<'_>, host: &str, port: u16) -> PyResult<Self> {
        let addresses = resolve(py, host, port)?;
        let listener = Listener::open(addresses[0]).map_err(|error| wap_error(py, &error))?;
        Ok(PyWapListener { listener })
    }

    /// `address:port` it listens on.
    #[getter]
    fn address(&self) -> PyResult<String> {
        Ok(self.listener.address()?.to_string())
    }

    /// The next push, if one comes in time.
    #[pyo3(signature = (time_s = f64::INFINITY))]
    fn next<'py>(&mut self, py: Python<'py>, time_s: f64) -> PyResult<Option<Pushed<'py>>> {
        let time = seconds(time_s)?;
        let push = blocking(py, |watch| self.listener.next(time, watch))?;
        Ok(push.map(|push| pushed(py, push)))
    }
}

fn pushed(py: Python<'_>, push: Push) -> Pushed<'_> {
    (push.from.to_string(), push.content_type, push.headers, PyBytes::new(py, &push.body))
}

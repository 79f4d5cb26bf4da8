//! `Forwarding`: real sockets at both ends of a simulated path, while Python goes on.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use airloom_drive::real_time;
use airloom_drive::real_time::user_space::{self, Ends, Listening};
use pyo3::prelude::*;

use crate::control::PyControl;
use crate::engine::Engine;
use crate::errors::wrong;
use crate::results::PyResults;
use crate::scenario::PyScenario;

/// A run in real time, without namespaces, in a thread of its own.
#[pyclass(name = "Forwarding", module = "airloom._core", frozen)]
pub struct PyForwarding {
    control: real_time::Control,
    addresses: Vec<String>,
    engine: Engine,
}

#[pymethods]
impl PyForwarding {
    /// Begins: `near` and `far` are the hosts at the ends, `address` is the far one's; `forwards` says of each port whether it is
    /// TCP's (or UDP's), where clients come to, and where it leads.
    #[new]
    fn new(
        py: Python<'_>,
        scenario: &PyScenario,
        near: String,
        far: String,
        address: &str,
        forwards: Vec<(bool, String, String)>,
    ) -> PyResult<Self> {
        let no_place = |text: &str| wrong(format!("{text} is no address and port"));
        let address: IpAddr = address.parse().map_err(|_| no_place(address))?;
        let (mut addresses, mut listening) = (Vec::new(), Vec::new());
        for (is_tcp, listen, target) in forwards {
            let at = listen.parse().map_err(|_| no_place(&listen))?;
            let to = target.parse().map_err(|_| no_place(&target))?;
            let bound = Listening::bind(is_tcp, at, to);
            let (at, one) = bound.map_err(|e| wrong(format!("{listen}: {e}")))?;
            addresses.push(at.to_string());
            listening.push(one);
        }
        let understood = scenario.scenario.clone();
        let run = move |tell: Sender<_>, stop: &AtomicBool| {
            let ends = Ends { near: &near, far: &far, address };
            let ready = move |control| drop(tell.send(control));
            user_space::forward(&understood, &ends, listening, ready, |_| !stop.load(Ordering::Relaxed))
        };
        let (engine, control) = Engine::start(py, run)?;
        Ok(PyForwarding { control, addresses, engine })
    }

    /// What changes its links.
    #[getter]
    fn control(&self) -> PyControl {
        PyControl(self.control.clone())
    }

    /// Where clients come to, in the order of the forwards.
    #[getter]
    fn addresses(&self) -> Vec<String> {
        self.addresses.clone()
    }

    /// Ends everything; what the run gave.
    fn stop(&self, py: Python<'_>) -> PyResult<PyResults> {
        self.engine.end(py, &self.control, || ())
    }
}

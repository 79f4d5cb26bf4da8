//! `Forwarding`: real sockets at both ends of a simulated path, while Python goes on.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use airloom_drive::real_time::user_space::{self, Ends, Listening};
use airloom_drive::real_time::{self, Report};
use airloom_drive::run::{DriveError, Results};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::control::PyControl;
use crate::errors::drive_error;
use crate::results::PyResults;
use crate::scenario::PyScenario;

type Outcome = Result<(Results, Report), DriveError>;

/// A run in real time, without namespaces, in a thread of its own.
#[pyclass(name = "Forwarding", module = "airloom._core", frozen)]
pub struct PyForwarding {
    control: real_time::Control,
    addresses: Vec<String>,
    engine: Mutex<Option<JoinHandle<Outcome>>>,
    stop: Arc<AtomicBool>,
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
        let wrong = |text: &str| PyValueError::new_err(format!("{text} is no address and port"));
        let address: IpAddr = address.parse().map_err(|_| wrong(address))?;
        let (mut addresses, mut listening) = (Vec::new(), Vec::new());
        for (is_tcp, listen, target) in forwards {
            let at = listen.parse().map_err(|_| wrong(&listen))?;
            let to = target.parse().map_err(|_| wrong(&target))?;
            let (at, one) = Listening::bind(is_tcp, at, to)
                .map_err(|e| PyValueError::new_err(format!("{listen}: {e}")))?;
            addresses.push(at.to_string());
            listening.push(one);
        }
        let understood = scenario.inner().clone();
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let (tell, told) = mpsc::channel();
        let told = Mutex::new(told);
        let work = move || {
            let ends = Ends { near: &near, far: &far, address };
            let ready = move |control| drop(tell.send(control));
            user_space::forward(&understood, &ends, listening, ready, |_| !seen.load(Ordering::Relaxed))
        };
        let engine = std::thread::Builder::new().name("airloom-engine".to_owned()).spawn(work)?;
        let control = py.detach(|| told.lock().unwrap_or_else(PoisonError::into_inner).recv());
        match control {
            Ok(control) => Ok(PyForwarding { control, addresses, engine: Mutex::new(Some(engine)), stop }),
            // The sender is gone without a word: it failed.
            Err(_) => match py.detach(|| engine.join()) {
                Ok(Err(error)) => Err(drive_error(py, error)),
                _ => Err(PyRuntimeError::new_err("the engine ended before it began")),
            },
        }
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
        self.stop.store(true, Ordering::Relaxed);
        // Nobody waits until somebody looks at `stop` again.
        self.control.stop();
        let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner).take();
        let engine = engine.ok_or_else(|| PyRuntimeError::new_err("it was stopped already"))?;
        let outcome =
            py.detach(|| engine.join()).map_err(|_| PyRuntimeError::new_err("the engine panicked"))?;
        let (results, report) = outcome.map_err(|e| drive_error(py, e))?;
        PyResults::new(py, results, Some(&report))
    }
}

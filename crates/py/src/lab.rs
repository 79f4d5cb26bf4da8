//! `Lab`: a scenario in real time while Python goes on; programs and threads inside its hosts.

use std::ffi::OsString;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use airloom_drive::real_time::hosts::{Outside, Program};
use airloom_drive::real_time::{self, FOR_EVER, Files, Hosts};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::control::PyControl;
use crate::engine::Engine;
use crate::errors::drive_error;
use crate::results::PyResults;
use crate::scenario::PyScenario;

/// A run in real time in a thread of its own.
#[pyclass(name = "Lab", module = "airloom._core", frozen)]
pub struct PyLab {
    hosts: Mutex<Option<Hosts>>,
    control: real_time::Control,
    engine: Engine,
}

#[pymethods]
impl PyLab {
    /// Starts the scenario; returns when its real hosts and their services are there. Files as in `Scenario.emulate`, if there
    /// is a folder for them; devices of the interface `lan`, if there is one, are behind the first real host.
    #[new]
    #[pyo3(signature = (scenario, folder = None, metadata = Vec::new(), lan = None))]
    fn new(
        py: Python<'_>,
        scenario: &PyScenario,
        folder: Option<PathBuf>,
        metadata: Vec<(String, String)>,
        lan: Option<String>,
    ) -> PyResult<Self> {
        let understood = scenario.scenario.clone();
        let run_id = scenario.run_id("real");
        let files = folder.map(|folder| Files { folder, metadata, run_id });
        let run = move |tell: Sender<_>, stop: &AtomicBool| {
            let ready = move |hosts, control| drop(tell.send((hosts, control)));
            let go_on = |_, _, _: &_| !stop.load(Ordering::Relaxed);
            let lan = lan.as_deref();
            real_time::emulate(&understood, lan, None, FOR_EVER, files.as_ref(), ready, go_on)
        };
        let (engine, (hosts, control)) = Engine::start(py, run)?;
        Ok(PyLab { hosts: Mutex::new(Some(hosts)), control, engine })
    }

    /// The real hosts, the first one first.
    #[getter]
    fn hosts(&self) -> PyResult<Vec<String>> {
        Ok(self.living()?.names().to_vec())
    }

    /// What changes its links.
    #[getter]
    fn control(&self) -> PyControl {
        PyControl(self.control.clone())
    }

    /// Starts a program in a host; `variables` are `NAME=VALUE` octets, `standard` the descriptors of its standard
    /// input, output and error.
    fn start(
        &self,
        py: Python<'_>,
        host: &str,
        words: Vec<String>,
        variables: Vec<(Vec<u8>, Vec<u8>)>,
        standard: [i32; 3],
    ) -> PyResult<PyProgram> {
        let hosts = self.living()?;
        let variables =
            variables.into_iter().map(|(k, v)| (OsString::from_vec(k), OsString::from_vec(v))).collect();
        let program = py.detach(|| hosts.start(host, &words, variables, standard));
        Ok(PyProgram(Mutex::new(Some(program.map_err(|e| drive_error(py, e.into()))?))))
    }

    /// The descriptor of a new TCP or UDP socket in a host.
    fn socket(&self, py: Python<'_>, host: &str, is_stream: bool, is_v6: bool) -> PyResult<i32> {
        let hosts = self.living()?;
        let made = py.detach(|| hosts.socket(host, is_stream, is_v6));
        Ok(made.map_err(|e| drive_error(py, e.into()))?.into_raw_fd())
    }

    /// Brings the calling thread into a host.
    fn enter(&self, py: Python<'_>, host: &str) -> PyResult<PyOutside> {
        let outside = self.living()?.enter(host).map_err(|e| drive_error(py, e.into()))?;
        Ok(PyOutside(outside))
    }

    /// Ends everything; what the run gave.
    fn stop(&self, py: Python<'_>) -> PyResult<PyResults> {
        // The last owner: with this the laboratory is gone.
        let after = || drop(self.hosts.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.engine.end(py, &self.control, after)
    }
}

impl PyLab {
    fn living(&self) -> PyResult<Hosts> {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.clone().ok_or_else(|| PyRuntimeError::new_err("this laboratory was stopped"))
    }
}

/// An interface by which nothing comes in but to laboratories, as long as this is there.
#[pyclass(name = "Closed", module = "airloom._core", frozen)]
pub struct PyClosed(Mutex<Option<OwnedFd>>);

#[pymethods]
impl PyClosed {
    /// Closes the interface of this name.
    #[new]
    fn new(py: Python<'_>, interface: &str) -> PyResult<Self> {
        let closed = real_time::close_to_the_machine(interface).map_err(|e| drive_error(py, e.into()))?;
        Ok(PyClosed(Mutex::new(Some(closed))))
    }

    /// Opens it again.
    fn open(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Addresses of a laboratory on the side of its devices, with their prefix lengths.
#[pyfunction]
pub fn lan_addresses() -> Vec<String> {
    real_time::lan_addresses().map(|(address, bits)| format!("{address}/{bits}")).to_vec()
}

/// A program in a laboratory.
#[pyclass(name = "Program", module = "airloom._core", frozen)]
pub struct PyProgram(Mutex<Option<Program>>);

#[pymethods]
impl PyProgram {
    /// Its exit code, if it ends within so many milliseconds; minus the number of a signal that ended it.
    fn wait(&self, py: Python<'_>, milliseconds: u16) -> Option<i32> {
        if milliseconds == 0 {
            // While another thread waits for it nothing is known yet, as with `subprocess`.
            return self.0.try_lock().ok()?.as_ref()?.wait(0);
        }
        py.detach(|| self.with(|p| p.wait(milliseconds)).flatten())
    }

    /// Sends a signal to it and its process group.
    fn signal(&self, number: u8) {
        self.with(|p| p.signal(number));
    }

    /// Tells it to end, and waits a moment for that.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}

impl PyProgram {
    fn with<T>(&self, work: impl FnOnce(&Program) -> T) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(work)
    }
}

/// Where a thread was before it entered a host.
#[pyclass(name = "Outside", module = "airloom._core", frozen, unsendable)]
pub struct PyOutside(Outside);

#[pymethods]
impl PyOutside {
    /// Brings the thread back.
    fn leave(&self) {
        self.0.leave();
    }
}

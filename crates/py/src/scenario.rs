//! `Scenario`: a scenario as understood, and its runs.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::OnceLock;

use airloom_base::{Instant, Outbox};
use airloom_drive::real_time::{self, Files, Meter};
use airloom_drive::run;
use airloom_drive::virtual_time::Until;
use airloom_world::scenario::{Document, Identity, Registries, Scenario};
use pyo3::prelude::*;

use crate::control::PyControl;
use crate::errors::{drive_error, scenario_error};
use crate::results::PyResults;
use crate::watch::Watch;

/// How many looks of the driver pass before the interpreter is let in: some 65,000 events, a few tens of
/// milliseconds.
pub(crate) const PATIENCE: u32 = 64;

/// A scenario as understood: every name resolved, every default filled in.
#[pyclass(name = "Scenario", module = "airloom._core", frozen)]
pub struct PyScenario {
    pub(crate) scenario: Scenario,
    /// What its writer should know.
    notes: Vec<String>,
    /// Of its runs in virtual time, once somebody asked.
    identity: OnceLock<Identity>,
}

impl From<Scenario> for PyScenario {
    fn from(scenario: Scenario) -> Self {
        PyScenario { scenario, notes: Vec::new(), identity: OnceLock::new() }
    }
}

impl PyScenario {
    /// What the identities of its runs in virtual time follow from.
    pub(crate) fn in_virtual_time(&self) -> &Identity {
        self.identity.get_or_init(|| self.scenario.identity("virtual", env!("CARGO_PKG_VERSION")))
    }
}

#[pymethods]
impl PyScenario {
    /// Reads the text of the file called `name`, with `KEY=VALUE` settings and hosts that are to be real; `outside`
    /// adds the way to the outside world, `loopback` those to these ports of this machine's loopback.
    #[new]
    #[pyo3(signature = (text, name, settings = Vec::new(), real = Vec::new(), outside = false, loopback = Vec::new()))]
    fn new(
        py: Python<'_>,
        text: &[u8],
        name: &str,
        settings: Vec<(String, String)>,
        real: Vec<String>,
        outside: bool,
        loopback: Vec<u16>,
    ) -> PyResult<Self> {
        let registries = Registries::built_in();
        let read = || {
            let mut document = Document::read(name, text)?;
            for (key, value) in &settings {
                document.set(&registries, key, value)?;
            }
            for host in &real {
                document.set_real(host)?;
            }
            if outside {
                document.set_outside()?;
            }
            if !loopback.is_empty() {
                document.set_loopback(&loopback)?;
            }
            Ok((document.check()?, document.notes()))
        };
        let (scenario, notes) = read().map_err(|e| scenario_error(py, &e))?;
        Ok(PyScenario { notes, ..scenario.into() })
    }

    /// What its writer should know, though nothing is wrong with it.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// A real host behind a link with this bearer and these of its settings, and a simulated server.
    #[staticmethod]
    #[pyo3(signature = (bearer, settings, outside = false, loopback = Vec::new()))]
    fn for_bearer(
        py: Python<'_>,
        bearer: &str,
        settings: Vec<(String, String)>,
        outside: bool,
        loopback: Vec<u16>,
    ) -> PyResult<Self> {
        let registries = Registries::built_in();
        let read = || {
            let mut document = Document::for_bearer(&registries, bearer, &settings)?;
            if outside {
                document.set_outside()?;
            }
            if !loopback.is_empty() {
                document.set_loopback(&loopback)?;
            }
            document.check()
        };
        read().map(PyScenario::from).map_err(|e| scenario_error(py, &e))
    }

    /// What it is about, one line.
    #[getter]
    fn title(&self) -> &str {
        &self.scenario.title
    }

    /// The seed of its runs.
    #[getter]
    fn seed(&self) -> u64 {
        self.scenario.run.seed
    }

    /// The same scenario with another seed.
    fn with_seed(&self, seed: u64) -> Self {
        let mut scenario = self.scenario.clone();
        scenario.run.seed = seed;
        scenario.into()
    }

    /// As JSON that can be read back.
    #[getter]
    fn understood(&self) -> String {
        self.scenario.to_json().to_string()
    }

    /// Ten hexadecimal digits that follow from the scenario, its seed, the version and the clock.
    pub(crate) fn run_id(&self, clock: &str) -> String {
        self.scenario.run_id(clock, env!("CARGO_PKG_VERSION"))
    }

    /// Runs it in virtual time. Captures and events of connections go into `folder`, if the scenario asks for them. `progress`
    /// is called now and then with the simulated nanoseconds.
    #[pyo3(signature = (folder = None, progress = None))]
    fn simulate(
        &self,
        py: Python<'_>,
        folder: Option<PathBuf>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<PyResults> {
        let mut watch = Watch::new(progress, PATIENCE);
        let run_id = self.run_id("virtual");
        let results =
            py.detach(|| run::simulate(&self.scenario, &run_id, folder.as_deref(), |now| watch.look(now)));
        if let Some(raised) = watch.raised {
            return Err(raised);
        }
        PyResults::new(py, results.map_err(|e| drive_error(py, e))?, None)
    }

    /// Runs it in real time: `command` in the first real host, or without one until the scenario says. Tables, which get
    /// `metadata`, and a capture are written into `folder` as the scenario asks for them. `progress` is called ten times a second, and so is `meter` with nanoseconds, octets
    /// sent and received so far, packets dropped, PDUs sent again, octets in the longest queue, and the radio's state.
    /// `ready` gets a `Control` of the run when its hosts are there.
    #[pyo3(signature = (command, folder, metadata, progress = None, meter = None, ready = None))]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn emulate(
        &self,
        py: Python<'_>,
        command: Option<Vec<String>>,
        folder: PathBuf,
        metadata: Vec<(String, String)>,
        progress: Option<Py<PyAny>>,
        meter: Option<Py<PyAny>>,
        ready: Option<Py<PyAny>>,
    ) -> PyResult<PyResults> {
        let mut reading = Meter::default();
        let until = Until::of(&self.scenario);
        let mut watch = Watch::new(progress, 1);
        let files = Files { folder, metadata, run_id: self.run_id("real") };
        let (results, not_ready) = py.detach(|| {
            let not_ready = RefCell::new(None);
            let tell = |control| {
                let Some(ready) = &ready else { return };
                let told = Python::attach(|py| ready.call1(py, (PyControl(control),)).map(drop));
                *not_ready.borrow_mut() = told.err();
            };
            let look = |now: Instant, backlog: u64, records: &Outbox| {
                if let Some(meter) = &meter {
                    reading.look(backlog, records);
                    watch.tell(meter, now, &reading);
                }
                watch.look(now) && not_ready.borrow().is_none()
            };
            let command = command.as_deref();
            let tell = |_, control| tell(control);
            let results = real_time::emulate(&self.scenario, None, command, until, Some(&files), tell, look);
            (results, not_ready.into_inner())
        });
        if let Some(raised) = watch.raised.or(not_ready) {
            return Err(raised);
        }
        let (results, report) = results.map_err(|e| drive_error(py, e))?;
        PyResults::new(py, results, Some(&report))
    }
}

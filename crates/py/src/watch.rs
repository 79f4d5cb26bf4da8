//! Looks at Python now and then during a long call: Ctrl-C, and somebody who wants to hear of progress.

use airloom_base::Instant;
use airloom_drive::real_time::Meter;
use pyo3::prelude::*;

/// Called by the driver in between; it lets the interpreter in only every so often.
pub struct Watch {
    progress: Option<Py<PyAny>>,
    patience: u32,
    calls: u32,
    /// What Python raised, if that is why the run was stopped.
    pub raised: Option<PyErr>,
}

impl Watch {
    /// A watch that lets the interpreter in at every `patience`-th look.
    pub fn new(progress: Option<Py<PyAny>>, patience: u32) -> Self {
        Watch { progress, patience, calls: 0, raised: None }
    }

    /// Tells `meter` what goes over the links.
    pub fn tell(&mut self, meter: &Py<PyAny>, now: Instant, reading: &Meter) {
        let Meter { sent, received, dropped, resent, queue, state } = *reading;
        let figures = (now.as_nanos(), sent, received, dropped, resent, queue, state);
        if let Err(error) = Python::attach(|py| meter.call1(py, figures).map(drop)) {
            self.raised.get_or_insert(error);
        }
    }

    /// Says whether to go on.
    pub fn look(&mut self, now: Instant) -> bool {
        self.calls += 1;
        if self.raised.is_some() {
            return false;
        }
        if !self.calls.is_multiple_of(self.patience) {
            return true;
        }
        let asked = Python::attach(|py| {
            py.check_signals()?;
            let said = self.progress.as_ref().map(|progress| progress.call1(py, (now.as_nanos(),)));
            said.transpose().map(drop)
        });
        self.raised = asked.err();
        self.raised.is_none()
    }
}

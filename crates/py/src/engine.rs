//! A run in real time in a thread of its own, while Python goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use airloom_drive::real_time::{Control, Report};
use airloom_drive::run::{DriveError, Results};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::errors::drive_error;
use crate::results::PyResults;
use crate::signals::interruptible;

type Outcome = Result<(Results, Report), DriveError>;

/// How long Python waits at most until it is asked about signals.
const STEP: Duration = Duration::from_millis(100);

/// The thread, until it was ended.
pub struct Engine {
    thread: Mutex<Option<JoinHandle<Outcome>>>,
    stop: Arc<AtomicBool>,
}

impl Engine {
    /// Starts a run, which sends what its owner needs and goes on until the flag is set; returns when that is there.
    pub fn start<T: Send + 'static>(
        py: Python<'_>,
        run: impl FnOnce(Sender<T>, &AtomicBool) -> Outcome + Send + 'static,
    ) -> PyResult<(Engine, T)> {
        let stop = Arc::new(AtomicBool::new(false));
        let (seen, (tell, told)) = (Arc::clone(&stop), mpsc::channel());
        let thread = Builder::new().name("airloom-engine".to_owned()).spawn(move || run(tell, &seen))?;
        let wait = move |goes_on: &mut (dyn FnMut() -> bool + Send)| loop {
            match told.recv_timeout(STEP) {
                Err(RecvTimeoutError::Timeout) if goes_on() => {}
                answer => return answer.ok(),
            }
        };
        match interruptible(py, wait) {
            Ok(Some(sent)) => Ok((Engine { thread: Mutex::new(Some(thread)), stop }, sent)),
            other => {
                stop.store(true, Ordering::Relaxed);
                Err(match (other, py.detach(|| thread.join())) {
                    (Err(raised), _) => raised,
                    // The sender is gone without a word: it failed.
                    (_, Ok(Err(error))) => drive_error(py, error),
                    _ => PyRuntimeError::new_err("the engine ended before it began"),
                })
            }
        }
    }

    /// Ends the run; what it gave. `after` is called when the thread is gone.
    pub fn end(&self, py: Python<'_>, control: &Control, after: impl FnOnce() + Send) -> PyResult<PyResults> {
        self.stop.store(true, Ordering::Relaxed);
        // Nobody waits until somebody looks at `stop` again.
        control.stop();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = thread.ok_or_else(|| PyRuntimeError::new_err("it was stopped already"))?;
        let outcome = py.detach(|| {
            let outcome = thread.join();
            after();
            outcome
        });
        let outcome = outcome.map_err(|_| PyRuntimeError::new_err("the engine panicked"))?;
        let (results, report) = outcome.map_err(|e| drive_error(py, e))?;
        PyResults::new(py, results, Some(&report))
    }
}

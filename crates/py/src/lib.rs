//! The Python module `airloom._core`, one file per class.
//!
//! Python never sits in the packet path: it builds scenarios, starts runs, and reads columns. Long calls let go of
//! the interpreter and look for Ctrl-C now and then.
//!
//! Not here: what is called (`drive`, `record`, `analyze`), and whatever Python can say itself: commands, folders, reports.

mod analyze;
mod browse;
mod capabilities;
mod columns;
mod control;
mod engine;
mod errors;
mod h3;
mod lab;
mod registry;
mod results;
mod rights;
mod scenario;
mod serve;
mod signals;
mod sweep;
mod user_space;
mod wap;
mod wap_client;
mod watch;
mod wwp;

use pyo3::prelude::*;

/// The compiled half of airloom.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::analyze::{analyze_capture, analyze_qlog};
    #[pymodule_export]
    use crate::browse::browse;
    #[pymodule_export]
    use crate::capabilities::capabilities;
    #[pymodule_export]
    use crate::columns::PyColumn;
    #[pymodule_export]
    use crate::control::PyControl;
    #[pymodule_export]
    use crate::errors::{DriveError, NameTaken, ScenarioError, WapError};
    #[pymodule_export]
    use crate::h3::{h3_get, hq_get, serve_h3, serve_hq};
    #[pymodule_export]
    use crate::lab::{PyClosed, PyLab, PyOutside, PyProgram, lan_addresses};
    #[pymodule_export]
    use crate::registry::registry;
    #[pymodule_export]
    use crate::results::PyResults;
    #[pymodule_export]
    use crate::rights::{enter_user_namespace, rights};
    #[pymodule_export]
    use crate::scenario::PyScenario;
    #[pymodule_export]
    use crate::serve::{serve_proxy, serve_wap_gateway};
    #[pymodule_export]
    use crate::sweep::{PyDone, PyPart, make_runs, write_sweep};
    #[pymodule_export]
    use crate::user_space::PyForwarding;
    #[pymodule_export]
    use crate::wap::{wap_compile, wap_decompile, wap_encode_headers, wap_initiation, wap_parse};
    #[pymodule_export]
    use crate::wap_client::{PyWapClient, PyWapListener};
    #[pymodule_export]
    use crate::wwp::{PyWwpListener, PyWwpSession};

    /// Version of the package.
    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "the name Python expects")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

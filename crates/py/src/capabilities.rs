//! What this machine allows.

use airloom_drive::real_time;
use pyo3::prelude::*;

/// What emulation looks at, and why it is not there; `None` if it is. The last two are not needed by laboratories.
#[pyfunction]
pub fn capabilities(py: Python<'_>) -> [(&'static str, Option<String>); 5] {
    let found = py.detach(real_time::capabilities);
    [
        ("namespaces", found.namespaces.err()),
        ("veth", found.veth.err()),
        ("packet sockets", found.af_packet.err()),
        ("tun", found.tun.err()),
        ("nf_tables", found.nf_tables.err()),
    ]
}

//! NewReno (RFC 6582): fast recovery goes on, a segment per partial acknowledgement, until all that was outstanding when it began is acknowledged.

use super::{Controller, Recovery};

/// The controller; all of its state is the window.
pub struct NewReno;

impl Controller for NewReno {
    fn name(&self) -> &'static str {
        "newreno"
    }
    fn recovery(&self) -> Recovery {
        Recovery::NewReno
    }
}

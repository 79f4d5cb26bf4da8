//! Reno (RFC 2581): fast recovery halves the window and ends with the first new acknowledgement, so that several losses in one window mean several reductions, or a timeout.

use super::{Controller, Recovery};

/// The controller; all of its state is the window.
pub struct Reno;

impl Controller for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }
    fn recovery(&self) -> Recovery {
        Recovery::Reno
    }
}

//! Tahoe (Jacobson 1988): three duplicate acknowledgements are answered like a timeout, without waiting for it.

use super::{Controller, Recovery};

/// The controller; all of its state is the window.
pub struct Tahoe;

impl Controller for Tahoe {
    fn name(&self) -> &'static str {
        "tahoe"
    }
    fn recovery(&self) -> Recovery {
        Recovery::None
    }
}

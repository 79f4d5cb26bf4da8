//! Why a daemon could not begin.

use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Why a daemon could not begin.
#[derive(Debug)]
pub struct CannotListen {
    /// Where.
    pub at: Option<SocketAddr>,
    /// What the kernel says.
    pub why: io::Error,
}

impl fmt::Display for CannotListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) => write!(f, "cannot listen on {at}: {}", self.why),
            None => write!(f, "cannot begin: {}", self.why),
        }
    }
}

impl std::error::Error for CannotListen {}

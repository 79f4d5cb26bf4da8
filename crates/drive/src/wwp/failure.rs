//! Why a session ended.

use std::io;
use std::time::Duration;

/// Why a session ended, or never began.
#[derive(Debug)]
pub enum Failure {
    /// As the system says.
    System(io::Error),
    /// Nothing was heard from the peer for the time that was allowed.
    Silent(Duration),
    /// The peer is busy with somebody else.
    Busy,
    /// The peer ended it.
    Reset,
    /// Nobody takes connections there.
    Refused,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::System(error) => write!(f, "{error}"),
            Failure::Silent(time) => {
                write!(f, "nothing was heard from the other side for {} s", time.as_secs_f64())
            }
            Failure::Busy => write!(f, "the other side is busy with somebody else"),
            Failure::Reset => write!(f, "the other side ended the connection"),
            Failure::Refused => write!(f, "nobody takes connections there"),
        }
    }
}

impl std::error::Error for Failure {}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::System(error)
    }
}

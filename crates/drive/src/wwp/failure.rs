//! Why a session ended.

use std::io;
use std::time::Duration;

/// Why a session ended, or never began.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// As the system says.
    #[error(transparent)]
    System(#[from] io::Error),
    /// Nothing was heard from the peer for the time that was allowed.
    #[error("nothing was heard from the other side for {} s", .0.as_secs_f64())]
    Silent(Duration),
    /// The peer is busy with somebody else.
    #[error("the other side is busy with somebody else")]
    Busy,
    /// The peer ended it.
    #[error("the other side ended the connection")]
    Reset,
    /// Our side has finished, and wants to write.
    #[error("nothing can be written any more: this side has finished")]
    Finished,
    /// Nobody takes connections there.
    #[error("nobody takes connections there")]
    Refused,
}

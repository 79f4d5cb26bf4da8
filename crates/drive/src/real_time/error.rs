//! Why a run in real time was none.

use super::lab::what_helps;

/// Why nothing could be run, or not to the end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// This user, or this machine, may not do it.
    #[error("emulation is not possible here: {0}; {help}", help = what_helps())]
    NotAllowed(String),
    /// It should be allowed, but did not work.
    #[error("setting up the laboratory failed: {0}")]
    SetUp(String),
    /// There is no way to the outside world for this user, or on this machine.
    #[error("there is no way to the outside world: {0}")]
    NoWayOut(String),
    /// Devices of an interface cannot be put behind the laboratory.
    #[error("devices cannot be put behind the link: {0}")]
    Lan(String),
    /// No host is marked `real`.
    #[error("no host is real: mark one with `real = true`, or name it with --real")]
    NothingReal,
    /// The command could not be started; 126: it cannot be executed, 127: there is no such program.
    #[error("cannot run `{program}`: {error}")]
    Command {
        /// Its first word.
        program: String,
        /// Why not.
        error: String,
        /// Exit code that a shell would give.
        code: i32,
    },
    /// A service ended before it could serve.
    #[error("the service `{program}` ended with code {code} before it could serve")]
    Service {
        /// Its first word.
        program: String,
        /// Its exit code.
        code: i32,
    },
    /// A device failed during the run.
    #[error("a device failed during the run: {0}")]
    Device(String),
    /// The laboratory ended during the run, and with it every program in it: one of its own processes was killed.
    #[error("one of the laboratory's own processes was killed: the run ended with it, nothing was written")]
    Gone,
    /// The caller wanted no more before everything was there.
    #[error("the run was stopped before it began")]
    Stopped,
}

impl Error {
    /// The exit code of the command line for it.
    pub fn exit_code(&self) -> i32 {
        match self {
            Error::NothingReal => 2,
            Error::NotAllowed(_) | Error::NoWayOut(_) | Error::Lan(_) => 3,
            Error::Command { code, .. } => *code,
            Error::SetUp(_) | Error::Service { .. } | Error::Device(_) | Error::Gone | Error::Stopped => 4,
        }
    }
}

//! What breaking a rule leads to, whatever the version.

use std::fmt;

use super::budget::Excess;

/// Codes of errors of one version.
pub trait Code: Copy {
    /// The peer does too much of what leads nowhere.
    const EXCESS: Self;
    /// Its name in the standard.
    fn name(self) -> &'static str;
}

/// What a peer's doing leads to when it breaks a rule; `S` numbers streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error<S, C> {
    /// One stream is reset.
    Stream(S, C),
    /// The connection ends, for the reason in words.
    Connection(C, &'static str),
}

impl<S: fmt::Display, C: Code> fmt::Display for Error<S, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Stream(stream, code) => write!(f, "stream {stream}: {}", code.name()),
            Error::Connection(code, why) => write!(f, "{}: {why}", code.name()),
        }
    }
}

impl<S: fmt::Debug + fmt::Display, C: Code + fmt::Debug> std::error::Error for Error<S, C> {}

impl<S, C: Code> From<Excess> for Error<S, C> {
    fn from(Excess(why): Excess) -> Self {
        Error::Connection(C::EXCESS, why)
    }
}

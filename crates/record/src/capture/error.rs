//! What a capture can be found to be instead of one.

use std::io;

/// Why nothing more can be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file begins as no capture does.
    #[error("it begins neither as pcap nor as pcapng does")]
    NotACapture,
    /// The file ends within a frame or block that begins at this octet.
    #[error("the file is cut: what begins at octet {at} is not there to its end")]
    Cut {
        /// Where it begins.
        at: u64,
    },
    /// What begins at this octet is not possible.
    #[error("octet {at}: {why}")]
    Corrupt {
        /// Where it begins.
        at: u64,
        /// What is wrong with it.
        why: &'static str,
    },
    /// It could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

//! How much a peer may do that leads nowhere.
//!
//! Attacks on HTTP/2 and 3 have one form: frames that cost the sender little and us work or memory (pings, settings, empty DATA,
//! CONTINUATION without an end, streams that are reset before they are answered). The bounds here are proportions, since these
//! machines have no clock: what is of no use may be a part of what is.

/// Octets of frames of no use that are always allowed.
const FREE: u64 = 65_536;

/// Beyond that, one octet of no use for so many useful ones.
const SHARE: u64 = 8;

/// Streams that may be given up before they were answered, beyond those that came to an end.
const ABANDONED: u32 = 100;

/// Octets of answers (to pings, settings, broken streams) that wait for the peer to read.
const OWED: usize = 8_192;

/// The most octets of a header block in all its frames.
pub const BLOCK: usize = 32_768;

/// The most frames of a header block.
pub const BLOCK_FRAMES: u32 = 32;

/// What the peer has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Budget {
    useful: u64,
    useless: u64,
    abandoned: u32,
}

/// A bound was passed; in words, which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excess(pub &'static str);

impl Budget {
    /// So many octets of bodies or heads went either way.
    pub fn useful(&mut self, octets: usize) {
        self.useful += octets as u64;
    }

    /// A frame of so many octets came that carries nothing of a message.
    pub fn useless(&mut self, octets: usize) -> Result<(), Excess> {
        self.useless += octets as u64;
        if self.useless > FREE + self.useful / SHARE {
            return Err(Excess("frames that lead nowhere"));
        }
        Ok(())
    }

    /// A stream ended before it was answered, by the peer's doing.
    pub fn abandoned(&mut self) -> Result<(), Excess> {
        self.abandoned += 1;
        if self.abandoned > ABANDONED { Err(Excess("streams that are given up")) } else { Ok(()) }
    }

    /// A stream came to its end.
    pub fn completed(&mut self) {
        self.abandoned = self.abandoned.saturating_sub(1);
    }

    /// So many octets of answers wait for the peer.
    pub fn owes(owed: usize) -> Result<(), Excess> {
        if owed > OWED { Err(Excess("answers that are not read")) } else { Ok(()) }
    }

    /// A header block has so many octets in so many frames so far.
    pub fn block(octets: usize, frames: u32) -> Result<(), Excess> {
        if octets > BLOCK || frames > BLOCK_FRAMES {
            Err(Excess("a header block without an end"))
        } else {
            Ok(())
        }
    }
}

//! Octets of a file, one after the other, and how many they were.

use std::io::{BufReader, ErrorKind, Read};

use super::error::Error;

pub(super) struct Source<R> {
    from: BufReader<R>,
    at: u64,
    /// Where the frame or block begins that is being read.
    begin: u64,
}

impl<R: Read> Source<R> {
    pub(super) fn new(from: R) -> Source<R> {
        Source { from: BufReader::with_capacity(1 << 16, from), at: 0, begin: 0 }
    }

    /// A frame or block begins here. Is anything there?
    pub(super) fn begins(&mut self, octets: &mut [u8]) -> Result<bool, Error> {
        self.begin = self.at;
        let mut have = 0;
        while have < octets.len() {
            match self.from.read(&mut octets[have..]) {
                Ok(0) if have == 0 => return Ok(false),
                Ok(0) => return Err(self.cut()),
                Ok(more) => have += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.at += octets.len() as u64;
        Ok(true)
    }

    /// The next octets, which have to be there.
    pub(super) fn fill(&mut self, octets: &mut [u8]) -> Result<(), Error> {
        self.from.read_exact(octets).map_err(|error| self.ended(error))?;
        self.at += octets.len() as u64;
        Ok(())
    }

    /// The next `count` octets as the whole of `into`.
    pub(super) fn take(&mut self, count: usize, into: &mut Vec<u8>) -> Result<(), Error> {
        into.clear();
        into.resize(count, 0);
        self.fill(into)
    }

    /// Passes octets over.
    pub(super) fn skip(&mut self, count: u64) -> Result<(), Error> {
        let passed = std::io::copy(&mut self.from.by_ref().take(count), &mut std::io::sink())?;
        self.at += passed;
        if passed < count { Err(self.cut()) } else { Ok(()) }
    }

    /// What began last is not possible.
    pub(super) fn corrupt(&self, why: &'static str) -> Error {
        Error::Corrupt { at: self.begin, why }
    }

    fn cut(&self) -> Error {
        Error::Cut { at: self.begin }
    }

    fn ended(&self, error: std::io::Error) -> Error {
        if error.kind() == ErrorKind::UnexpectedEof { self.cut() } else { error.into() }
    }
}

/// Numbers in the order of octets of a file or section.
#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    Big,
    Little,
}

impl Order {
    /// The number at this place, which has to be there.
    pub(super) fn u32(self, octets: &[u8], at: usize) -> u32 {
        let mut own = [0; 4];
        own.copy_from_slice(&octets[at..at + 4]);
        match self {
            Order::Big => u32::from_be_bytes(own),
            Order::Little => u32::from_le_bytes(own),
        }
    }

    /// The number at this place, which has to be there.
    pub(super) fn u16(self, octets: &[u8], at: usize) -> u16 {
        let own = [octets[at], octets[at + 1]];
        match self {
            Order::Big => u16::from_be_bytes(own),
            Order::Little => u16::from_le_bytes(own),
        }
    }
}

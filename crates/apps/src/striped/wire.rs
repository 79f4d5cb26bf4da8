//! What is said: a hello, chunks and acknowledgements. Numbers begin with their most significant octet.

use bytes::Buf;

/// First octets of a hello.
const MAGIC: [u8; 4] = *b"STRP";

/// A connection belongs to a transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    pub transfer: u32,
    /// Octets of the file.
    pub size: u64,
    /// Octets that the receiver holds ahead of what is missing.
    pub window: u64,
}

/// What comes before the octets of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub offset: u64,
    pub len: u32,
}

/// A chunk has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Everything below has.
    pub below: u64,
    /// Where this one begins.
    pub offset: u64,
}

impl Hello {
    pub const LEN: usize = 24;

    pub fn emit(self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[..4].copy_from_slice(&MAGIC);
        out[4..8].copy_from_slice(&self.transfer.to_be_bytes());
        out[8..16].copy_from_slice(&self.size.to_be_bytes());
        out[16..].copy_from_slice(&self.window.to_be_bytes());
        out
    }

    /// `None` if it is none.
    pub fn parse(octets: &[u8; Self::LEN]) -> Option<Hello> {
        let mut rest = &octets[4..];
        let hello = Hello { transfer: rest.get_u32(), size: rest.get_u64(), window: rest.get_u64() };
        (octets[..4] == MAGIC && hello.size > 0 && hello.window > 0).then_some(hello)
    }
}

impl Chunk {
    pub const LEN: usize = 12;

    pub fn emit(self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[..8].copy_from_slice(&self.offset.to_be_bytes());
        out[8..].copy_from_slice(&self.len.to_be_bytes());
        out
    }

    pub fn parse(octets: &[u8; Self::LEN]) -> Chunk {
        let mut rest = &octets[..];
        Chunk { offset: rest.get_u64(), len: rest.get_u32() }
    }

    /// Where the next one begins.
    pub fn end(self) -> u64 {
        self.offset.saturating_add(u64::from(self.len))
    }
}

impl Acknowledgement {
    pub const LEN: usize = 16;

    pub fn emit(self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[..8].copy_from_slice(&self.below.to_be_bytes());
        out[8..].copy_from_slice(&self.offset.to_be_bytes());
        out
    }

    pub fn parse(octets: &[u8; Self::LEN]) -> Acknowledgement {
        let mut rest = &octets[..];
        Acknowledgement { below: rest.get_u64(), offset: rest.get_u64() }
    }
}

/// So many octets of a stream, filled as they come.
#[derive(Clone, Copy)]
pub struct Field<const N: usize> {
    octets: [u8; N],
    have: usize,
}

impl<const N: usize> Default for Field<N> {
    fn default() -> Self {
        Field { octets: [0; N], have: 0 }
    }
}

impl<const N: usize> Field<N> {
    /// Reads on; all of it, once it is there.
    pub fn read(&mut self, mut more: impl FnMut(usize) -> Option<airloom_base::Body>) -> Option<[u8; N]> {
        while self.have < N {
            let body = more(N - self.have)?;
            self.have += body.write(0, &mut self.octets[self.have..]);
        }
        self.have = 0;
        Some(self.octets)
    }
}

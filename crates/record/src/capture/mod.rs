//! Captures read back, ours and foreign ones: pcap and pcapng, frame by frame.
//!
//! Texts: draft-ietf-opsawg-pcap (the classic form, with microseconds or nanoseconds, in either order of octets) and
//! draft-ietf-opsawg-pcapng (several sections and interfaces, any resolution of time).
//!
//! Memory is bounded whatever a file claims: one frame of at most [`LONGEST`] octets is held at a time, blocks that are
//! not frames are passed over without being held, and there are at most [`MOST_INTERFACES`] interfaces.

mod error;
mod link;
mod pcap;
mod pcapng;
mod source;

use std::io::Read;

pub use error::Error;
pub use link::{datagram, interface_index, is_known_link};
use source::Source;

/// Octets of the longest frame that is read. Programs capture 262,144 octets of a frame unless told otherwise.
pub const LONGEST: usize = 1 << 20;

/// How many interfaces a file may describe.
pub const MOST_INTERFACES: usize = 4096;

/// Where frames were seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name, if the file has one.
    pub name: Option<String>,
    /// LINKTYPE: what the first octets of its frames are.
    pub link: u16,
}

/// A frame as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Index into [`Reader::interfaces`].
    pub interface: usize,
    /// LINKTYPE of that interface.
    pub link: u16,
    /// Nanoseconds since 1970-01-01 00:00 UTC.
    pub at_ns: u64,
    /// How many octets it had; more than `octets` if the end was not captured.
    pub length: u32,
    /// It is there to show that it was dropped: its comment says so, as in captures of ours.
    pub is_dropped: bool,
    /// Its octets, from the link header on.
    pub octets: &'a [u8],
}

enum Form {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
}

/// Reads a capture.
pub struct Reader<R> {
    source: Source<R>,
    form: Form,
    interfaces: Vec<Interface>,
    octets: Vec<u8>,
}

/// A frame whose octets are in the reader's buffer.
struct Found {
    interface: usize,
    at_ns: u64,
    length: u32,
    is_dropped: bool,
}

impl<R: Read> Reader<R> {
    /// Reads the beginning. `from` need not be buffered.
    ///
    /// # Errors
    /// It is no capture, or already cut or corrupt there.
    pub fn new(from: R) -> Result<Reader<R>, Error> {
        let mut source = Source::new(from);
        let mut magic = [0; 4];
        source.fill(&mut magic).map_err(|error| match error {
            Error::Cut { .. } => Error::NotACapture,
            other => other,
        })?;
        let mut interfaces = Vec::new();
        let form = match pcap::Pcap::begin(magic, &mut source)? {
            Some((pcap, link)) => {
                interfaces.push(Interface { name: None, link });
                Form::Pcap(pcap)
            }
            None if magic == pcapng::SECTION_HEADER.to_be_bytes() => {
                Form::Pcapng(pcapng::Pcapng::begin(&mut source)?)
            }
            None => return Err(Error::NotACapture),
        };
        Ok(Reader { source, form, interfaces, octets: Vec::new() })
    }

    /// The interfaces that were described so far.
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// The next frame; `None` at the end of the file.
    ///
    /// # Errors
    /// The file is cut or corrupt here; nothing after that can be read.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, Error> {
        let found = match &mut self.form {
            Form::Pcap(pcap) => pcap.next(&mut self.source, &mut self.octets)?,
            Form::Pcapng(pcapng) => pcapng.next(&mut self.source, &mut self.interfaces, &mut self.octets)?,
        };
        let octets = &self.octets;
        Ok(found.map(|Found { interface, at_ns, length, is_dropped }| Frame {
            interface,
            link: self.interfaces[interface].link,
            at_ns,
            length,
            is_dropped,
            octets,
        }))
    }
}

#[cfg(test)]
mod tests;

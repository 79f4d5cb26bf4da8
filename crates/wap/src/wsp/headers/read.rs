//! Basic values, from octets (WAP-230, section 8.4.2).

use std::borrow::Cow;

use airloom_wire::{Error, uintvar};

/// A header's value as its first octet frames it: known without knowing the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framed<'a> {
    /// A number below 128.
    Short(u8),
    /// Text without its NUL and quote.
    Text(&'a [u8]),
    /// That many octets.
    Data(&'a [u8]),
}

/// Octets still to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    pub fn octet(&mut self) -> Result<u8, Error> {
        let (&first, rest) = self.0.split_first().ok_or(Error::Truncated)?;
        self.0 = rest;
        Ok(first)
    }

    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Error::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn uintvar(&mut self) -> Result<u32, Error> {
        let (n, len) = uintvar::parse(self.0)?;
        self.take(len)?;
        Ok(n)
    }

    /// Octets up to NUL, which is read too.
    pub fn until_nul(&mut self) -> Result<&'a [u8], Error> {
        let len = self.0.iter().position(|&o| o == 0).ok_or(Error::Truncated)?;
        let text = self.take(len)?;
        self.take(1)?;
        Ok(text)
    }

    /// Any value.
    pub fn framed(&mut self) -> Result<Framed<'a>, Error> {
        match self.peek().ok_or(Error::Truncated)? {
            // An empty text is a NUL alone; so is "no value". Both say nothing.
            0 => {
                self.take(1)?;
                Ok(Framed::Text(&[]))
            }
            1..=31 => {
                let len = self.value_length()?;
                Ok(Framed::Data(self.take(len)?))
            }
            32..=127 => Ok(Framed::Text(self.text()?)),
            short => {
                self.take(1)?;
                Ok(Framed::Short(short & 0x7F))
            }
        }
    }

    /// Value-length: 0 to 30, or 31 and a uintvar.
    pub fn value_length(&mut self) -> Result<usize, Error> {
        match self.octet()? {
            31 => Ok(self.uintvar()? as usize),
            len @ 0..=30 => Ok(usize::from(len)),
            _ => Err(Error::Malformed("value length")),
        }
    }

    /// Text-string: a quote octet stands before text that begins with an octet above 127.
    pub fn text(&mut self) -> Result<&'a [u8], Error> {
        if self.peek() == Some(127) {
            self.take(1)?;
        }
        self.until_nul()
    }

    /// Integer-value: short, or long of up to eight octets.
    pub fn integer(&mut self) -> Result<u64, Error> {
        match self.octet()? {
            short @ 128.. => Ok(u64::from(short & 0x7F)),
            len @ 1..=8 => Ok(big_endian(self.take(usize::from(len))?)),
            _ => Err(Error::Malformed("integer")),
        }
    }
}

/// Up to eight octets as a number.
pub(super) fn big_endian(octets: &[u8]) -> u64 {
    octets.iter().fold(0, |n, &o| n << 8 | u64::from(o))
}

impl<'a> Framed<'a> {
    pub fn text(self) -> Option<Cow<'a, str>> {
        if let Framed::Text(text) = self { Some(string(text)) } else { None }
    }

    pub fn data(self) -> Option<Reader<'a>> {
        if let Framed::Data(data) = self { Some(Reader(data)) } else { None }
    }

    /// A number: short, or its octets.
    pub fn integer(self) -> Option<u64> {
        match self {
            Framed::Short(n) => Some(u64::from(n)),
            Framed::Data(octets) if (1..=8).contains(&octets.len()) => Some(big_endian(octets)),
            _ => None,
        }
    }
}

/// Text of a header: UTF-8 if it is that, else ISO-8859-1, in which nothing is invalid. Line breaks would begin another
/// header of HTTP, and other control characters have no business either: they become spaces.
pub(super) fn string(octets: &[u8]) -> Cow<'_, str> {
    let text = match std::str::from_utf8(octets) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => octets.iter().map(|&o| char::from(o)).collect(),
    };
    if text.contains(|c: char| c.is_ascii_control()) {
        return Cow::Owned(text.replace(|c: char| c.is_ascii_control(), " "));
    }
    text
}

//! The header of a fragment (RFC 1990, 3).

/// B: the first fragment of a packet.
const BEGIN: u8 = 0x80;
/// E: the last one.
const END: u8 = 0x40;

/// Which of the two forms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// 24 bits of number, four octets.
    #[default]
    Long,
    /// 12 bits, two octets.
    Short,
}

impl Format {
    /// How many numbers there are.
    pub const fn numbers(self) -> u64 {
        match self {
            Format::Long => 1 << 24,
            Format::Short => 1 << 12,
        }
    }

    /// Octets of the header.
    pub const fn octets(self) -> usize {
        match self {
            Format::Long => 4,
            Format::Short => 2,
        }
    }
}

/// What a fragment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The first fragment of a packet.
    pub begin: bool,
    /// The last one.
    pub end: bool,
    /// Its number, modulo those of the format.
    pub sequence: u32,
}

impl Header {
    /// Reads the header at the beginning of these octets. The bits between E and the number are not looked at: they are
    /// reserved, or a class (RFC 2686) that nobody negotiated.
    pub fn parse(octets: &[u8], format: Format) -> Option<Header> {
        let (first, sequence) = match (format, octets) {
            (Format::Long, [first, a, b, c, ..]) => (first, u32::from_be_bytes([0, *a, *b, *c])),
            (Format::Short, [first, low, ..]) => (first, u32::from_be_bytes([0, 0, first & 0x0F, *low])),
            _ => return None,
        };
        Some(Header { begin: first & BEGIN != 0, end: first & END != 0, sequence })
    }

    /// Its octets: as many of them as the format has.
    pub fn emit(&self, format: Format) -> [u8; 4] {
        let flags = if self.begin { BEGIN } else { 0 } | if self.end { END } else { 0 };
        let [_, a, b, c] = self.sequence.to_be_bytes();
        match format {
            Format::Long => [flags, a, b, c],
            Format::Short => [flags | b & 0x0F, c, 0, 0],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_as_they_were_written() {
        let header = Header { begin: true, end: false, sequence: 0x12_3456 };
        assert_eq!(header.emit(Format::Long), [0x80, 0x12, 0x34, 0x56]);
        assert_eq!(Header::parse(&[0x80, 0x12, 0x34, 0x56], Format::Long), Some(header));
        let short = Header { begin: false, end: true, sequence: 0x456 };
        assert_eq!(short.emit(Format::Short)[..2], [0x44, 0x56]);
        assert_eq!(Header::parse(&[0x44, 0x56], Format::Short), Some(short));
        // The reserved bits say nothing.
        assert_eq!(Header::parse(&[0x74, 0x56], Format::Short), Some(short));
        assert_eq!(Header::parse(&[0x80, 0, 0], Format::Long), None);
        assert_eq!(Header::parse(&[0x80], Format::Short), None);
    }
}

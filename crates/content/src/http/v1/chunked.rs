//! Chunked transfer coding (RFC 9112, 7.1): sizes in hexadecimal, data, an empty chunk, trailers.

use super::Error;

/// Longest line with a chunk's size and extensions.
const MAX_LINE: u32 = 4096;

/// The line in front of a chunk of `len` octets; `first` of the body or not (the end of the chunk before is
/// part of it). A `len` of 0 ends the body, without trailers.
pub fn chunk_size_line(len: u64, first: bool) -> Vec<u8> {
    let before = if first { "" } else { "\r\n" };
    let after = if len == 0 { "\r\n" } else { "" };
    format!("{before}{len:x}\r\n{after}").into_bytes()
}

/// Reads the lines between the data of chunks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SizeLine {
    size: u64,
    digits: u32,
    octets: u32,
    place: Expected,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expected {
    /// In the line end behind the data of a chunk: CR, then LF.
    DataCr,
    DataLf,
    #[default]
    Digits,
    Extension,
    /// The LF behind a size line's CR.
    Lf,
}

impl SizeLine {
    /// The line behind the data of a chunk.
    pub(super) fn after_data() -> Self {
        SizeLine { place: Expected::DataCr, ..SizeLine::default() }
    }

    /// Takes octets up to the end of the line. Returns how many were taken, and the size if the line is complete.
    pub(super) fn take(&mut self, input: &[u8]) -> Result<(usize, Option<u64>), Error> {
        for (place, octet) in input.iter().enumerate() {
            self.octets += 1;
            if self.octets > MAX_LINE {
                return Err(Error::Chunk);
            }
            self.place = match (self.place, octet) {
                (Expected::DataCr, b'\r') => Expected::DataLf,
                (Expected::DataLf, b'\n') => Expected::Digits,
                (Expected::Digits, digit) if digit.is_ascii_hexdigit() => {
                    let value = char::from(*digit).to_digit(16).unwrap_or_default();
                    //= RFC 9112 (7.1): recipients guard against sizes that overflow.
                    self.size = self.size.checked_mul(16).ok_or(Error::Chunk)? + u64::from(value);
                    self.digits += 1;
                    Expected::Digits
                }
                (Expected::Digits, b'\r') if self.digits > 0 => Expected::Lf,
                //= RFC 9112 (7.1.1): extensions that are not known are ignored.
                (Expected::Digits, b';' | b' ' | b'\t') if self.digits > 0 => Expected::Extension,
                (Expected::Extension, b'\r') => Expected::Lf,
                (Expected::Extension, b) if *b >= b' ' || *b == b'\t' => Expected::Extension,
                (Expected::Lf, b'\n') => return Ok((place + 1, Some(self.size))),
                _ => return Err(Error::Chunk),
            };
        }
        Ok((input.len(), None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_lines_are_read_whole_and_octet_by_octet() {
        for (text, size) in [("0\r\n", 0), ("1a\r\n", 26), ("00FF;a=b\r\n", 255), ("5 ;x\r\n", 5)] {
            assert_eq!(SizeLine::default().take(text.as_bytes()), Ok((text.len(), Some(size))), "{text}");
            let mut line = SizeLine::after_data();
            let text = format!("\r\n{text}");
            let mut last = None;
            for octet in text.bytes() {
                last = line.take(&[octet]).unwrap().1;
            }
            assert_eq!(last, Some(size));
        }
    }

    #[test]
    fn what_is_not_a_chunk_is_an_error() {
        for text in
            ["\r\n", "g\r\n", "-1\r\n", "5\n", "5\r5", " 5\r\n", "5;\n", "10000000000000000\r\n", "0x5\r\n"]
        {
            assert_eq!(SizeLine::default().take(text.as_bytes()), Err(Error::Chunk), "{text:?}");
        }
        assert_eq!(SizeLine::default().take(&[b'0'; 5000]), Err(Error::Chunk));
        assert_eq!(SizeLine::after_data().take(b"5\r\n"), Err(Error::Chunk));
    }

    #[test]
    fn size_lines_are_written_between_the_data() {
        assert_eq!(chunk_size_line(26, true), b"1a\r\n");
        assert_eq!(chunk_size_line(16, false), b"\r\n10\r\n");
        assert_eq!(chunk_size_line(0, false), b"\r\n0\r\n\r\n");
    }
}

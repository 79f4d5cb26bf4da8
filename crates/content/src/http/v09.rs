//! HTTP/0.9 on a stream, as QUIC's interoperability tests speak it: a request is a line, and the answer is nothing but the file.
//!
//! Its form is that of RFC 1945 (4.1, Simple-Request).

/// Octets of a request at most.
const LONGEST: usize = 4096;

/// What has come of a request so far.
#[derive(Clone, Debug, Default)]
pub struct Request(Vec<u8>);

/// What a request says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said<'a> {
    /// It is not whole.
    More,
    /// Something is asked for: as it was written.
    Get(&'a [u8]),
    /// Nothing that there is.
    Other,
    /// More octets than any request may have; what is behind them is not looked at.
    TooLong,
}

impl Request {
    /// More of it has come. True: as much as is looked at.
    pub fn feed(&mut self, octets: &[u8]) -> bool {
        let room = (LONGEST + 1).saturating_sub(self.0.len());
        self.0.extend_from_slice(&octets[..octets.len().min(room)]);
        self.0.len() > LONGEST
    }

    /// What it says, with nothing behind it if the stream `is_over`.
    pub fn said(&self, is_over: bool) -> Said<'_> {
        if self.0.len() > LONGEST {
            return Said::TooLong;
        }
        let end = self.0.iter().position(|octet| *octet == b'\n');
        let line = match end {
            None if !is_over => return Said::More,
            end => &self.0[..end.unwrap_or(self.0.len())],
        };
        line.strip_suffix(b"\r").unwrap_or(line).strip_prefix(b"GET ").map_or(Said::Other, Said::Get)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_line() {
        for (octets, meant) in [
            ("GET /a\r\n", Said::Get(b"/a")),
            ("GET /a b\nmore", Said::Get(b"/a b")),
            ("GET /a", Said::Get(b"/a")),
            ("", Said::Other),
            ("HEAD /a\r\n", Said::Other),
            ("GET", Said::Other),
        ] {
            let mut request = Request::default();
            assert!(!request.feed(octets.as_bytes()));
            assert_eq!(request.said(true), meant, "{octets:?}");
            let is_line = octets.contains('\n');
            assert_eq!(request.said(false), if is_line { meant } else { Said::More }, "{octets:?}");
        }
    }

    #[test]
    fn what_is_longer_than_a_request_is_not_kept() {
        let mut request = Request::default();
        assert!(!request.feed(&[b'a'; LONGEST]));
        assert_eq!(request.said(false), Said::More);
        assert!(request.feed(&[b'a'; 100_000]));
        assert_eq!((request.said(false), request.0.len()), (Said::TooLong, LONGEST + 1));
    }
}

//! What is said on a control connection: commands, replies and the addresses of data connections.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Longest line that is read, without its end.
pub(super) const LONGEST: usize = 512;

/// Octets of a control connection on their way to lines. Holds no more than one line.
#[derive(Default)]
pub(super) struct Lines {
    octets: Vec<u8>,
    /// The present line is too long: the rest of it is dropped.
    is_too_long: bool,
}

/// A line as far as it can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Without its end.
    Text(String),
    /// It had more octets than a line has.
    TooLong,
}

impl Lines {
    /// Takes octets up to the end of a line; the number of those taken, and the line if one has ended.
    ///
    //= RFC 959 (5.3): commands end with the Telnet end-of-line code. A lone line feed is taken too.
    pub(super) fn feed(&mut self, octets: &[u8]) -> (usize, Option<Line>) {
        let end = octets.iter().position(|o| *o == b'\n');
        let taken = end.map_or(octets.len(), |at| at + 1);
        let text = &octets[..end.unwrap_or(taken)];
        if self.octets.len() + text.len() > LONGEST + 1 {
            self.is_too_long = true;
            self.octets.clear();
        } else if !self.is_too_long {
            self.octets.extend_from_slice(text);
        }
        if end.is_none() {
            return (taken, None);
        }
        if std::mem::take(&mut self.is_too_long) {
            return (taken, Some(Line::TooLong));
        }
        if self.octets.last() == Some(&b'\r') {
            self.octets.pop();
        }
        let text = String::from_utf8_lossy(&self.octets).into_owned();
        self.octets.clear();
        (taken, Some(Line::Text(text)))
    }
}

/// A command: its word in capitals, and what stands behind it.
pub(super) fn command(line: &str) -> (String, &str) {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    (word.to_ascii_uppercase(), rest.trim())
}

/// Puts lines together to replies, of which only the number counts.
#[derive(Default)]
pub(super) struct Replies {
    /// The number with which a reply of several lines began.
    open: Option<u16>,
}

impl Replies {
    /// The reply that ends with this line, if one does: its number, and the text of the line. A line that cannot be one is
    /// `Err`.
    ///
    //= RFC 959 (4.2): of several lines the first has a hyphen behind the number, and the last begins with the same number and
    //= a space.
    pub(super) fn feed<'l>(&mut self, line: &'l str) -> Result<Option<(u16, &'l str)>, ()> {
        let number = line.get(..3).filter(|n| n.bytes().all(|o| o.is_ascii_digit()));
        let number = number.and_then(|n| n.parse::<u16>().ok());
        let mark = line.as_bytes().get(3).copied();
        match (self.open, number, mark) {
            (Some(open), Some(number), Some(b' ')) if number == open => {
                self.open = None;
                Ok(Some((number, line.get(4..).unwrap_or(""))))
            }
            (Some(_), ..) => Ok(None),
            (None, Some(number), Some(b'-')) => {
                self.open = Some(number);
                Ok(None)
            }
            (None, Some(number), Some(b' ') | None) => Ok(Some((number, line.get(4..).unwrap_or("")))),
            (None, ..) => Err(()),
        }
    }
}

/// `h1,h2,h3,h4,p1,p2` of an address and a port (RFC 959, 4.1.2).
pub(super) fn host_port(address: Ipv4Addr, port: u16) -> String {
    let [a, b, c, d] = address.octets();
    format!("{a},{b},{c},{d},{},{}", port >> 8, port & 0xFF)
}

/// Reads `h1,h2,h3,h4,p1,p2`.
pub(super) fn parse_host_port(text: &str) -> Option<SocketAddr> {
    let mut fields = text.split(',').map(|field| field.parse::<u8>().ok());
    let mut next = || fields.next().flatten();
    let address = Ipv4Addr::new(next()?, next()?, next()?, next()?);
    let port = u16::from_be_bytes([next()?, next()?]);
    (fields.next().is_none() && port != 0).then(|| SocketAddr::new(address.into(), port))
}

/// The address in the text of a reply 227.
///
//= RFC 1123 (4.1.2.6): nothing but the six numbers can be relied on; the text is searched for the first digit.
pub(super) fn passive_address(text: &str) -> Option<SocketAddr> {
    let from = text.find(|c: char| c.is_ascii_digit())?;
    let rest = &text[from..];
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != ',').unwrap_or(rest.len());
    parse_host_port(&rest[..end])
}

/// `|1|132.235.1.2|6275|` of an address and a port (RFC 2428, 2).
pub(super) fn extended(address: IpAddr, port: u16) -> String {
    format!("|{}|{address}|{port}|", if address.is_ipv4() { 1 } else { 2 })
}

/// Reads the argument of EPRT. The delimiter is its first character.
pub(super) fn parse_extended(text: &str) -> Option<SocketAddr> {
    let delimiter = text.chars().next().filter(char::is_ascii_graphic)?;
    let fields: Vec<&str> = text.split(delimiter).collect();
    let ["", family, address, port, ""] = fields[..] else { return None };
    let address: IpAddr = address.parse().ok()?;
    let fits = family == if address.is_ipv4() { "1" } else { "2" };
    let port = port.parse().ok().filter(|port| *port != 0)?;
    fits.then(|| SocketAddr::new(address, port))
}

/// The port in the text of a reply 229: `(|||6446|)`.
///
//= RFC 2428 (3): the text in brackets has the form of EPRT's argument with the port alone.
pub(super) fn extended_passive_port(text: &str) -> Option<u16> {
    let (_, rest) = text.rsplit_once('(')?;
    let (inner, _) = rest.split_once(')')?;
    let delimiter = inner.chars().next().filter(char::is_ascii_graphic)?;
    let fields: Vec<&str> = inner.split(delimiter).collect();
    let ["", "", "", port, ""] = fields[..] else { return None };
    port.parse().ok().filter(|port| *port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(octets: &[u8], chop: usize) -> Vec<Line> {
        let mut lines = Lines::default();
        let mut out = Vec::new();
        for mut piece in octets.chunks(chop) {
            while !piece.is_empty() {
                let (taken, line) = lines.feed(piece);
                piece = &piece[taken..];
                out.extend(line);
            }
        }
        out
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let long = [vec![b'x'; LONGEST + 2], b"\r\nNOOP\n".to_vec()].concat();
        for chop in [1, 2, 3, 7, 1000] {
            let text = |t: &str| Line::Text(t.to_owned());
            assert_eq!(lines(b"USER a\r\nPASS b\r\n", chop), [text("USER a"), text("PASS b")]);
            assert_eq!(lines(&long, chop), [Line::TooLong, text("NOOP")]);
        }
        let longest = [vec![b'x'; LONGEST], b"\r\n".to_vec()].concat();
        assert_eq!(lines(&longest, 5), [Line::Text("x".repeat(LONGEST))]);
    }

    #[test]
    fn commands_are_words_in_any_case() {
        assert_eq!(command("retr  a b "), ("RETR".to_owned(), "a b"));
        assert_eq!(command("QUIT"), ("QUIT".to_owned(), ""));
    }

    #[test]
    fn rfc_959_4_2_a_reply_of_several_lines_ends_with_its_number() {
        let mut replies = Replies::default();
        // The RFC's own example.
        assert_eq!(replies.feed("123-First line"), Ok(None));
        assert_eq!(replies.feed("Second line"), Ok(None));
        assert_eq!(replies.feed("  234 A line beginning with numbers"), Ok(None));
        assert_eq!(replies.feed("123 The last line"), Ok(Some((123, "The last line"))));
        assert_eq!(replies.feed("226"), Ok(Some((226, ""))));
        assert_eq!(replies.feed("hello"), Err(()));
        assert_eq!(replies.feed("22é x"), Err(()));
    }

    #[test]
    fn addresses_are_read_as_they_were_written() {
        let at = |text: &str| text.parse::<SocketAddr>().ok();
        assert_eq!(host_port(Ipv4Addr::new(10, 0, 0, 2), 7500), "10,0,0,2,29,76");
        assert_eq!(parse_host_port("10,0,0,2,29,76"), at("10.0.0.2:7500"));
        for bad in ["", "10,0,0,2,29", "10,0,0,2,29,76,1", "10,0,0,256,1,1", "10,0,0,2,0,0", "a,b,c,d,e,f"] {
            assert_eq!(parse_host_port(bad), None, "{bad}");
        }
        assert_eq!(passive_address("Entering Passive Mode (10,0,0,2,29,76)."), at("10.0.0.2:7500"));
        assert_eq!(passive_address("=10,0,0,2,29,76"), at("10.0.0.2:7500"));
        assert_eq!(passive_address("no"), None);
        // The examples of RFC 2428.
        assert_eq!(parse_extended("|1|132.235.1.2|6275|"), at("132.235.1.2:6275"));
        assert_eq!(parse_extended("|2|1080::8:800:200C:417A|5282|"), at("[1080::8:800:200c:417a]:5282"));
        for bad in ["", "|", "|2|1.2.3.4|1|", "|1|1.2.3.4|0|", "|1|1.2.3.4|1", "\u{e9}1\u{e9}"] {
            assert_eq!(parse_extended(bad), None, "{bad}");
        }
        let at: SocketAddr = "[fd00::2]:5282".parse().expect("an address");
        assert_eq!(parse_extended(&extended(at.ip(), at.port())), Some(at));
        assert_eq!(extended_passive_port("Entering Extended Passive Mode (|||6446|)"), Some(6446));
        assert_eq!(extended_passive_port("(|||0|)"), None);
        assert_eq!(extended_passive_port("(|1|a|6446|)"), None);
    }
}

//! Where else an origin is served: the field `Alt-Svc`.
//!
//! Standards: RFC 7838 (3), RFC 9110 (5.6), RFC 9111 (1.2.2, 5.1). A value that is not of that form says nothing, as a whole.

use std::borrow::Cow;

use super::message::{Fields, is_token};

/// Lifetime of an alternative that names none, in seconds (RFC 7838, 3.1).
const USUAL_MAX_AGE: u32 = 24 * 3600;
/// What a lifetime beyond that counts as (RFC 9111, 1.2.2).
const LONGEST: u32 = 1 << 31;

/// What a server says of its alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AltSvc {
    /// There are none any more.
    Clear,
    /// These are all, the best first.
    Services(Vec<Service>),
}

/// An alternative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The name of its protocol (TLS's ALPN), octets of any value.
    pub protocol: Vec<u8>,
    /// Its host, as it is written in a URI; `None`: that of the origin.
    pub host: Option<String>,
    /// Its port.
    pub port: u16,
    /// How long it may be used, in seconds.
    pub max_age: u32,
    /// Does it outlive a change of network?
    pub persists: bool,
}

/// What a response with these fields says; lifetimes are what is left of them. `None`: nothing, or it is malformed.
pub fn of_response(fields: &Fields) -> Option<AltSvc> {
    let mut said = parse(fields.all("alt-svc"))?;
    //= RFC 9111 (5.1): a malformed age is ignored, and of several the first one counts.
    let age = fields.list("age").next().and_then(seconds).unwrap_or(0);
    if let AltSvc::Services(services) = &mut said {
        //= RFC 7838 (3.1): the lifetime began when the response was made, which may lie in a cache since then.
        services.iter_mut().for_each(|service| service.max_age = service.max_age.saturating_sub(age));
    }
    Some(said)
}

/// Reads the values of all lines of the field that a response has. `None`: there are none, or they are malformed.
pub fn parse<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<AltSvc> {
    let lines: Vec<&[u8]> = lines.collect();
    //= RFC 9110 (5.3): repeated lines are one list.
    let whole = lines.join(&b", "[..]);
    //= RFC 7838 (3): "clear" alone, with regard to case.
    if whole.trim_ascii() == b"clear" {
        return Some(AltSvc::Clear);
    }
    let mut rest = Cursor(&whole);
    let mut services = Vec::new();
    loop {
        //= RFC 9110 (5.6.1.2): empty members of a list are ignored.
        while rest.takes(b',') || rest.takes_space() {}
        if rest.0.is_empty() {
            break;
        }
        services.push(rest.service()?);
        rest.skip_space();
        if !rest.0.is_empty() && !rest.takes(b',') {
            return None;
        }
    }
    Some(AltSvc::Services(services)).filter(|said| *said != AltSvc::Services(Vec::new()))
}

/// What is left to read.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn takes(&mut self, octet: u8) -> bool {
        let rest = self.0.strip_prefix(&[octet]);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn takes_space(&mut self) -> bool {
        self.takes(b' ') || self.takes(b'\t')
    }

    fn skip_space(&mut self) {
        while self.takes_space() {}
    }

    fn token(&mut self) -> Option<&'a [u8]> {
        let len = self.0.iter().take_while(|octet| is_token(**octet)).count();
        let (token, rest) = self.0.split_at(len);
        self.0 = rest;
        Some(token).filter(|token| !token.is_empty())
    }

    fn quoted(&mut self) -> Option<Vec<u8>> {
        if !self.takes(b'"') {
            return None;
        }
        let mut text = Vec::new();
        loop {
            let (first, rest) = self.0.split_first()?;
            self.0 = rest;
            text.push(match *first {
                b'"' => return Some(text),
                //= RFC 9110 (5.6.4): a backslash stands before an octet that is meant itself.
                b'\\' => {
                    let (escaped, rest) = self.0.split_first()?;
                    self.0 = rest;
                    Some(*escaped).filter(|octet| is_text(*octet))?
                }
                octet => Some(octet).filter(|octet| is_text(*octet))?,
            });
        }
    }

    fn service(&mut self) -> Option<Service> {
        let protocol = decoded(self.token()?)?;
        if !self.takes(b'=') {
            return None;
        }
        let (host, port) = authority(&self.quoted()?)?;
        let mut service = Service { protocol, host, port, max_age: USUAL_MAX_AGE, persists: false };
        loop {
            self.skip_space();
            if !self.takes(b';') {
                return Some(service);
            }
            self.skip_space();
            let name = self.token()?;
            if !self.takes(b'=') {
                return None;
            }
            let value = if self.0.first() == Some(&b'"') {
                Cow::Owned(self.quoted()?)
            } else {
                Cow::Borrowed(self.token()?)
            };
            //= RFC 7838 (3.1): parameters that nobody knows are ignored, and so is a `persist` that is not 1.
            match name {
                b"ma" => service.max_age = seconds(&value)?,
                b"persist" => service.persists = *value == b"1"[..],
                _ => {}
            }
        }
    }
}

fn is_text(octet: u8) -> bool {
    octet == b'\t' || (octet >= b' ' && octet != 0x7f)
}

/// The name of a protocol behind its percent encoding.
fn decoded(token: &[u8]) -> Option<Vec<u8>> {
    let mut name = Vec::with_capacity(token.len());
    let mut octets = token.iter();
    while let Some(octet) = octets.next() {
        name.push(if *octet == b'%' {
            let mut digit = || char::from(*octets.next()?).to_digit(16);
            (digit()? << 4 | digit()?) as u8
        } else {
            *octet
        });
    }
    Some(name)
}

/// `[host]:port`; the host may be an address of IPv6 in brackets.
fn authority(text: &[u8]) -> Option<(Option<String>, u16)> {
    let (host, port) = std::str::from_utf8(text).ok()?.rsplit_once(':')?;
    let digits = !port.is_empty() && port.bytes().all(|octet| octet.is_ascii_digit());
    let port = port.parse().ok().filter(|port: &u16| digits && *port > 0)?;
    let bare = match host.strip_prefix('[') {
        Some(six) => six.strip_suffix(']')?.parse().ok().map(|_: std::net::Ipv6Addr| ()),
        //= RFC 3986 (3.2.2): a name has letters, digits, and a few signs.
        None => {
            let is_of_a_name =
                |octet: u8| octet.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%".contains(&octet);
            host.bytes().all(is_of_a_name).then_some(())
        }
    };
    bare?;
    Some((Some(host.to_owned()).filter(|host| !host.is_empty()), port))
}

fn seconds(text: &[u8]) -> Option<u32> {
    let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let value = || std::str::from_utf8(text).ok()?.parse::<u32>().ok();
    //= RFC 9111 (1.2.2): what is too large to be held counts as 2^31.
    digits.then(|| value().map_or(LONGEST, |seconds| seconds.min(LONGEST)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Option<AltSvc> {
        parse([value.as_bytes()].into_iter())
    }

    fn service(protocol: &str, host: Option<&str>, port: u16, max_age: u32) -> Service {
        let (protocol, host) = (protocol.as_bytes().to_vec(), host.map(str::to_owned));
        Service { protocol, host, port, max_age, persists: false }
    }

    fn services(all: &[Service]) -> Option<AltSvc> {
        Some(AltSvc::Services(all.to_vec()))
    }

    #[test]
    fn examples_of_the_standard_are_read() {
        assert_eq!(read("h2=\":8000\""), services(&[service("h2", None, 8000, 86_400)]));
        let other = service("h2", Some("alt.example.com"), 443, 86_400);
        assert_eq!(
            read("h2=\"alt.example.com:443\", h2=\":443\""),
            services(&[other, service("h2", None, 443, 86_400)])
        );
        assert_eq!(read("h2=\":443\"; ma=3600"), services(&[service("h2", None, 443, 3600)]));
        let kept = Service { persists: true, ..service("h2", None, 443, 2_592_000) };
        assert_eq!(read("h2=\":443\"; ma=2592000; persist=1"), services(&[kept]));
        assert_eq!(read("clear"), Some(AltSvc::Clear));
        // Percent encoding of a name: the example of section 3, `w=x:y#z`.
        assert_eq!(read("w%3Dx%3Ay#z=\":443\""), services(&[service("w=x:y#z", None, 443, 86_400)]));
    }

    #[test]
    fn what_servers_in_use_say_is_read() {
        // www.google.com.
        let google = "h3=\":443\"; ma=2592000,h3-29=\":443\"; ma=2592000";
        let both = ["h3", "h3-29"].map(|name| service(name, None, 443, 2_592_000));
        assert_eq!(read(google), services(&both));
        // caddy 2.6.2, asked at port 8443; nginx as its manual has it.
        assert_eq!(read("h3=\":8443\"; ma=2592000"), services(&[service("h3", None, 8443, 2_592_000)]));
        assert_eq!(read("h3=\":8443\"; ma=86400"), services(&[service("h3", None, 8443, 86_400)]));
    }

    #[test]
    fn lists_may_have_holes_lines_and_parameters_that_nobody_knows() {
        let two = services(&[service("h3", None, 1, 86_400), service("h2", Some("[2001:db8::1]"), 2, 5)]);
        assert_eq!(read(",, h3=\":1\" ;x=\"a,\\\"b;\" ;y=z ,\t, h2=\"[2001:db8::1]:2\";ma=\"5\" ,"), two);
        let lines: [&[u8]; 2] = [b"h3=\":1\"", b"h2=\"[2001:db8::1]:2\"; ma=5; persist=2"];
        assert_eq!(parse(lines.into_iter()), two);
        assert_eq!(parse(std::iter::empty()), None);
    }

    #[test]
    fn what_is_too_long_to_count_is_long() {
        for huge in ["2147483649", "4294967296", "99999999999999999999999999999999"] {
            let long = services(&[service("h3", None, 443, 1 << 31)]);
            assert_eq!(read(&format!("h3=\":443\"; ma={huge}")), long);
        }
        assert_eq!(read("h3=\":443\"; ma=0"), services(&[service("h3", None, 443, 0)]));
    }

    #[test]
    fn what_lay_in_a_cache_holds_for_less_time() {
        let said = |lines: &[(&'static str, &'static str)]| {
            let mut fields = Fields::default();
            lines.iter().for_each(|(name, value)| fields.push(*name, *value));
            of_response(&fields)
        };
        let left = |seconds| services(&[service("h3", None, 443, seconds)]);
        let an_hour = ("Alt-Svc", "h3=\":443\"; ma=3600");
        assert_eq!(said(&[an_hour]), left(3600));
        assert_eq!(said(&[an_hour, ("age", "600")]), left(3000));
        assert_eq!(said(&[("Alt-Svc", "h3=\":443\""), ("Age", "400")]), left(86_000));
        // Older than it was to hold, which is of no use to anybody.
        assert_eq!(said(&[an_hour, ("Age", "99999999999")]), left(0));
        assert_eq!(said(&[an_hour, ("Age", "600, 1200"), ("Age", "1")]), left(3000));
        for malformed in ["", "-1", "1.5", "one"] {
            assert_eq!(said(&[an_hour, ("Age", malformed)]), left(3600), "{malformed:?}");
        }
        assert_eq!(said(&[("Alt-Svc", "clear"), ("Age", "1")]), Some(AltSvc::Clear));
        assert_eq!(said(&[("Age", "1")]), None);
    }

    #[test]
    fn malformed_values_say_nothing() {
        let malformed = [
            "",
            " ",
            ",",
            "Clear",
            "clear, h3=\":443\"",
            "h3",
            "h3=",
            "h3=:443",
            "h3=\":443",
            "=\":443\"",
            "h3=\"443\"",
            "h3=\":\"",
            "h3=\":0\"",
            "h3=\":65536\"",
            "h3=\":+1\"",
            "h3=\":443\" h2=\":443\"",
            "h3=\":443\";",
            "h3=\":443\"; ma",
            "h3=\":443\"; ma=",
            "h3=\":443\"; ma=-1",
            "h3=\":443\"; ma=1.5",
            "h3=\":443\"; ma=1s",
            "h3 =\":443\"",
            "h3= \":443\"",
            "h3=\"a b:443\"",
            "h3=\"[::1:443\"",
            "h3=\"[x]:443\"",
            "h3=\"a/b:443\"",
            "h3=\"u@h:443\"",
            "h3%=\":443\"",
            "h3%4=\":443\"",
            "h3%zz=\":443\"",
            "h3=\":443\\",
            "h3=\"\u{7f}:443\"",
            "h3=\":443\", =",
            "h3=\"é:443\"",
        ];
        for value in malformed {
            assert_eq!(read(value), None, "{value:?}");
        }
    }
}

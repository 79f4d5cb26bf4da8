//! Where a request is to go.

use airloom_content::http::message::{Method, RequestHead};
use bytes::Bytes;

use super::config::Mode;

/// The server of a request and what is asked of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Host in lower case; addresses of IPv6 in brackets.
    pub(super) host: String,
    pub(super) port: u16,
    /// Path and query as they came, `*` for a server as a whole.
    pub(super) path: Bytes,
}

impl Target {
    /// What the Host field says.
    pub(super) fn authority(&self) -> String {
        if self.port == 80 { self.host.clone() } else { format!("{}:{}", self.host, self.port) }
    }

    /// Under which its answers are kept.
    pub(super) fn key(&self) -> Bytes {
        let mut key = Vec::with_capacity(self.host.len() + self.path.len() + 8);
        key.extend_from_slice(self.host.as_bytes());
        key.push(b':');
        key.extend_from_slice(&self.port.to_be_bytes());
        key.extend_from_slice(&self.path);
        key.into()
    }
}

/// Where a request goes, or the status that says why it goes nowhere.
pub(super) fn target(head: &RequestHead, mode: Mode) -> Result<Target, u16> {
    if head.method == Method::Connect {
        //= RFC 9110 (9.3.6): host and port, and both of them.
        let (host, port) = authority(&head.target, None).ok_or(400_u16)?;
        return Ok(Target { host, port, path: Bytes::new() });
    }
    let target = &head.target;
    if target.contains(&b'#') {
        return Err(400);
    }
    if let Some(at) = target.windows(3).position(|w| w == b"://").filter(|_| !target.starts_with(b"/")) {
        if !target[..at].eq_ignore_ascii_case(b"http") {
            return Err(501);
        }
        let rest = target.slice(at + 3..);
        let end = rest.iter().position(|o| matches!(o, b'/' | b'?')).unwrap_or(rest.len());
        let (host, port) = authority(&rest[..end], Some(80)).ok_or(400_u16)?;
        let path = match rest.get(end) {
            Some(b'/') => rest.slice(end..),
            //= RFC 9112 (3.2.1): an empty path is sent as "/"; the query stays.
            Some(_) => [b"/", &rest[end..]].concat().into(),
            //= RFC 9112 (3.2.4): OPTIONS without path and query is about the server.
            None if head.method == Method::Options => Bytes::from_static(b"*"),
            None => Bytes::from_static(b"/"),
        };
        return Ok(Target { host, port, path });
    }
    let is_plain = target.starts_with(b"/") || (&target[..] == b"*" && head.method == Method::Options);
    if mode == Mode::Addressed || !is_plain {
        return Err(400);
    }
    let host = head.fields.first("host").ok_or(400_u16)?;
    let (host, port) = authority(host, Some(80)).ok_or(400_u16)?;
    Ok(Target { host, port, path: target.clone() })
}

/// Host and port of `host:port`; `usual` where there is no port.
fn authority(text: &[u8], usual: Option<u16>) -> Option<(String, u16)> {
    let text = std::str::from_utf8(text).ok()?;
    let (host, port) = match text.strip_prefix('[') {
        Some(six) => {
            let (address, rest) = six.split_once(']')?;
            let _: std::net::Ipv6Addr = address.parse().ok()?;
            (&text[..address.len() + 2], if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) })
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_name = host.starts_with('[')
        || host.bytes().all(|o| o.is_ascii_alphanumeric() || matches!(o, b'-' | b'.' | b'_'));
    if host.is_empty() || !is_name {
        return None;
    }
    let port = match port {
        None | Some("") => usual?,
        //= RFC 3986 (3.2.3): digits; a sign is none.
        Some(digits) if digits.bytes().all(|o| o.is_ascii_digit()) => digits.parse().ok()?,
        Some(_) => return None,
    };
    (port > 0).then(|| (host.to_ascii_lowercase(), port))
}

#[cfg(test)]
mod tests {
    use airloom_content::http::message::{Fields, Version};

    use super::*;

    fn of(method: &str, target: &'static str, host: &'static str, mode: Mode) -> Result<String, u16> {
        let fields = Fields::from_iter([("Host", host)]);
        let head = RequestHead {
            method: Method::from_name(method),
            target: target.into(),
            version: Version::Http11,
            fields,
        };
        super::target(&head, mode)
            .map(|t| format!("{} {} {}", t.host, t.port, String::from_utf8_lossy(&t.path)))
    }

    #[test]
    fn whole_addresses_say_it_all_and_are_not_changed() {
        let get = |target| of("GET", target, "other", Mode::Addressed);
        assert_eq!(get("http://A.example/x%2f?q=://").as_deref(), Ok("a.example 80 /x%2f?q=://"));
        assert_eq!(get("HTTP://a:8080").as_deref(), Ok("a 8080 /"));
        assert_eq!(get("http://a?q").as_deref(), Ok("a 80 /?q"));
        assert_eq!(get("http://[::1]:81/").as_deref(), Ok("[::1] 81 /"));
        assert_eq!(of("OPTIONS", "http://a", "a", Mode::Addressed).as_deref(), Ok("a 80 *"));
        assert_eq!(get("https://a/"), Err(501));
        for wrong in
            ["/x", "http://", "http://u@a/", "http://a:0/", "http://a:99999/", "http://a:+1/", "http://[x]/"]
        {
            assert_eq!(get(wrong), Err(400), "{wrong}");
        }
        assert_eq!(get("http://a/#f"), Err(400));
    }

    #[test]
    fn a_path_alone_is_for_the_host_where_clients_know_nothing_of_a_proxy() {
        assert_eq!(of("GET", "/x", "a:81", Mode::Transparent).as_deref(), Ok("a 81 /x"));
        assert_eq!(of("GET", "x", "a", Mode::Transparent), Err(400));
        assert_eq!(of("GET", "/x", "", Mode::Transparent), Err(400));
    }

    #[test]
    fn tunnels_need_a_port() {
        assert_eq!(of("CONNECT", "a:443", "a", Mode::Addressed).as_deref(), Ok("a 443 "));
        for wrong in ["a", "a:", "/", "a:0", "a:b"] {
            assert_eq!(of("CONNECT", wrong, "a", Mode::Addressed), Err(400), "{wrong}");
        }
    }
}

//! What every port of ours that a browser can reach asks of a request before it answers.
//!
//! Any web page that is open in a browser here can send requests to a port on loopback: forms and simple requests with no
//! question asked first (CSRF), and under a name of its own that leads here (DNS rebinding) it can read the answers. So a
//! request has to be meant for us, and must not come from a page: none of ours speaks to these ports. (`browser_guard.py` is the
//! same for what is written in Python.)

use std::net::{IpAddr, Ipv6Addr};

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Fetch Metadata Request Headers (W3C).
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Why a request is not answered; none if it may be. `names` are ours besides the addresses and `localhost`.
pub(super) fn refusal(headers: &HeaderMap, names: &[String]) -> Option<&'static str> {
    if !is_meant_for_us(headers, names) {
        return Some("say an address, localhost or a name of this host (--name)\n");
    }
    comes_from_a_page(headers).then_some("not from a page of the web\n")
}

/// Was it sent to this machine by address, to `localhost`, or to one of our names? A rebound name is none of them.
fn is_meant_for_us(headers: &HeaderMap, names: &[String]) -> bool {
    let mut all = headers.get_all(HOST).iter();
    let (Some(host), None) = (all.next(), all.next()) else { return false };
    let Some(host) = host.to_str().ok().and_then(without_port) else { return false };
    let is_address = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(six) => six.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv4()),
    };
    is_address
        || host.eq_ignore_ascii_case("localhost")
        || names.iter().any(|name| name.eq_ignore_ascii_case(host))
}

/// `host`, of `host` or `host:port`.
fn without_port(text: &str) -> Option<&str> {
    let (host, port) = match text.rfind(':').filter(|_| !text.ends_with(']')) {
        Some(colon) => (&text[..colon], &text[colon + 1..]),
        None => (text, ""),
    };
    port.bytes().all(|o| o.is_ascii_digit()).then_some(host)
}

/// Does a browser say that a page sent it? Programs that are no browsers say neither of these, and whoever types the address says `none`.
fn comes_from_a_page(headers: &HeaderMap) -> bool {
    let site: Vec<&HeaderValue> = headers.get_all(SEC_FETCH_SITE).iter().collect();
    headers.contains_key(ORIGIN) || site.iter().any(|site| *site != "none")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(list: &[(&'static str, &str)]) -> bool {
        let headers = list.iter().map(|(name, value)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a value"))
        });
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, value);
        }
        refusal(&map, &["gw.example".to_owned()]).is_some()
    }

    #[test]
    fn what_is_meant_for_us_is_taken() {
        for host in
            ["127.0.0.1", "127.0.0.1:9999", "[::1]", "[::1]:80", "LOCALHOST:1", "10.1.2.3", "GW.example:80"]
        {
            assert!(!refused(&[("host", host)]), "{host}");
            assert!(!refused(&[("host", host), ("sec-fetch-site", "none")]), "{host}");
        }
    }

    #[test]
    fn rebound_names_and_pages_of_others_are_not() {
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "",
            "::1",
            "a b",
            "127.0.0.1:x",
            "[::1",
        ] {
            assert!(refused(&[("host", host)]), "{host}");
        }
        assert!(refused(&[]) && refused(&[("host", "localhost"), ("host", "evil.example")]));
        for origin in ["http://evil.example", "null", "http://127.0.0.1:80", ""] {
            assert!(refused(&[("host", "127.0.0.1:80"), ("origin", origin)]), "{origin}");
        }
        for site in ["cross-site", "same-site", "same-origin", "x"] {
            assert!(refused(&[("host", "127.0.0.1"), ("sec-fetch-site", site)]), "{site}");
        }
    }
}

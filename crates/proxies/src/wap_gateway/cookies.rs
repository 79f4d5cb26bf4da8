//! The cookies of one session (RFC 6265): phones of WAP keep none, so the gateway does it for them.
//!
//! There is no list of public suffixes: a cookie for a whole domain is taken if the domain has a dot and the origin is in
//! it. Times are told by the origin's own clock: `Expires` counts from the `Date` of the same answer.

use airloom_base::{Duration, Instant};
use airloom_content::http::message::Fields;
use url::{Host, Url};

/// Cookies of a session, octets of one, octets of all.
const MOST: usize = 50;
const LONGEST: usize = 4_096;
const MOST_OCTETS: usize = 16_384;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cookie {
    name: String,
    value: String,
    domain: String,
    host_only: bool,
    path: String,
    secure: bool,
    /// None: until the session ends.
    expires: Option<Instant>,
}

impl Cookie {
    fn octets(&self) -> usize {
        self.name.len() + self.value.len() + self.domain.len() + self.path.len()
    }

    fn is_for(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let of_host = if self.host_only { host == self.domain } else { is_within(host, &self.domain) };
        of_host && path_matches(url.path(), &self.path) && (!self.secure || url.scheme() == "https")
    }
}

/// The cookies, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Jar(Vec<Cookie>);

impl Jar {
    /// Takes the cookies of an answer that came from `url`.
    pub(super) fn store(&mut self, now: Instant, url: &Url, fields: &Fields) {
        let date = fields.first("date").and_then(|date| std::str::from_utf8(date).ok());
        for line in fields.all("set-cookie") {
            let Some(cookie) = std::str::from_utf8(line).ok().and_then(|line| parse(line, now, url, date))
            else {
                continue;
            };
            self.0.retain(|c| (&c.name, &c.domain, &c.path) != (&cookie.name, &cookie.domain, &cookie.path));
            if cookie.expires.is_none_or(|at| at > now) {
                self.0.push(cookie);
            }
        }
        let octets = |jar: &Vec<Cookie>| jar.iter().map(Cookie::octets).sum::<usize>();
        while self.0.len() > MOST || octets(&self.0) > MOST_OCTETS {
            self.0.remove(0);
        }
    }

    /// What belongs into the `Cookie` field of a request for `url`.
    pub(super) fn header(&mut self, now: Instant, url: &Url) -> Option<String> {
        self.0.retain(|cookie| cookie.expires.is_none_or(|at| at > now));
        let mut found: Vec<&Cookie> = self.0.iter().filter(|cookie| cookie.is_for(url)).collect();
        //= RFC 6265 (5.4): longer paths first, then the older ones.
        found.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs: Vec<String> = found.iter().map(|c| format!("{}={}", c.name, c.value)).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }
}

/// `name=value; attribute; attribute=value`.
fn parse(line: &str, now: Instant, url: &Url, date: Option<&str>) -> Option<Cookie> {
    let (pair, attributes) = line.split_once(';').unwrap_or((line, ""));
    let (name, value) = pair.split_once('=')?;
    let (name, value) = (name.trim(), value.trim());
    let host = url.host_str()?;
    if name.is_empty() || line.len() > LONGEST || line.contains(|c: char| c.is_control()) {
        return None;
    }
    let mut cookie = Cookie {
        name: name.to_owned(),
        value: value.to_owned(),
        domain: host.to_owned(),
        host_only: true,
        path: default_path(url.path()).to_owned(),
        secure: false,
        expires: None,
    };
    let mut max_age = None;
    for attribute in attributes.split(';') {
        let (key, value) = attribute.split_once('=').unwrap_or((attribute, ""));
        let value = value.trim().trim_matches('"');
        match key.trim().to_ascii_lowercase().as_str() {
            "domain" if !value.is_empty() => {
                let domain = value.strip_prefix('.').unwrap_or(value).to_ascii_lowercase();
                let is_name = matches!(url.host(), Some(Host::Domain(_)));
                if domain != host && (!is_name || !domain.contains('.') || !is_within(host, &domain)) {
                    return None;
                }
                cookie.host_only = !is_name;
                cookie.domain = domain;
            }
            "path" if value.starts_with('/') => cookie.path = value.to_owned(),
            "secure" => cookie.secure = true,
            "max-age" => max_age = value.parse::<i64>().ok().or(max_age),
            "expires" => {
                cookie.expires = lifetime(value, date).map(|lifetime| now + lifetime).or(cookie.expires)
            }
            _ => {}
        }
    }
    //= RFC 6265 (5.3): Max-Age outweighs Expires.
    if let Some(seconds) = max_age {
        cookie.expires = Some(now + Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
    }
    Some(cookie)
}

/// From `date` to `expires`; nothing if that is past, none if one of them is no date.
pub(super) fn lifetime(expires: &str, date: Option<&str>) -> Option<Duration> {
    // Cookies of old write the date with hyphens and the year in full.
    let expires = httpdate::parse_http_date(&expires.replace('-', " "))
        .or_else(|_| httpdate::parse_http_date(expires))
        .ok()?;
    let long_ago = || httpdate::parse_http_date("Thu, 01 Jan 1970 00:00:00 GMT").ok();
    match date.and_then(|date| httpdate::parse_http_date(date).ok()) {
        Some(date) => {
            let seconds = expires.duration_since(date).map_or(0, |left| left.as_secs());
            Some(Duration::from_secs(seconds))
        }
        // Without a date the beginning of time is the one moment that is surely past.
        None => (Some(expires) == long_ago()).then_some(Duration::ZERO),
    }
}

fn is_within(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn path_matches(path: &str, of_cookie: &str) -> bool {
    //= RFC 6265 (5.1.4)
    path.strip_prefix(of_cookie)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || of_cookie.ends_with('/'))
}

fn default_path(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(end) => &path[..end],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn jar(from: &str, lines: &[&str]) -> Jar {
        let mut jar = Jar::default();
        let mut fields = Fields::default();
        fields.push("Date", "Sun, 06 Nov 1994 08:49:37 GMT");
        lines.iter().for_each(|line| fields.push("Set-Cookie", line.as_bytes().to_vec()));
        jar.store(NOW, &Url::parse(from).unwrap(), &fields);
        jar
    }

    fn sent(jar: &mut Jar, seconds: u64, to: &str) -> Option<String> {
        jar.header(NOW + Duration::from_secs(seconds), &Url::parse(to).unwrap())
    }

    #[test]
    fn cookies_go_back_to_whom_they_came_from() {
        let mut jar = jar("http://a.shop.example/cart/list", &["n=1", "d=2; Domain=.shop.example; Path=/"]);
        assert_eq!(sent(&mut jar, 0, "http://a.shop.example/cart/x").as_deref(), Some("n=1; d=2"));
        assert_eq!(sent(&mut jar, 0, "http://b.shop.example/").as_deref(), Some("d=2"));
        assert_eq!(sent(&mut jar, 0, "http://a.shop.example/carton").as_deref(), Some("d=2"));
        assert_eq!(sent(&mut jar, 0, "http://shop.example.other/"), None);
    }

    #[test]
    fn cookies_end_when_they_are_said_to() {
        let lines = [
            "a=1; Max-Age=10; Expires=Sun, 06 Nov 1994 09:49:37 GMT",
            "b=2; expires=Sun, 06-Nov-1994 08:49:57 GMT",
            "c=3; secure",
            "d=4; Max-Age=0",
        ];
        let mut jar = jar("http://o/", &lines);
        assert_eq!(sent(&mut jar, 0, "http://o/").as_deref(), Some("a=1; b=2"));
        assert_eq!(sent(&mut jar, 0, "https://o/").as_deref(), Some("a=1; b=2; c=3"));
        assert_eq!(sent(&mut jar, 10, "http://o/").as_deref(), Some("b=2"));
        assert_eq!(sent(&mut jar, 20, "http://o/"), None);
    }

    #[test]
    fn a_cookie_replaces_its_like_and_one_of_the_past_removes_it() {
        let mut jar = jar("http://o/", &["a=1", "a=2", "b=1", "b=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"]);
        assert_eq!(sent(&mut jar, 0, "http://o/").as_deref(), Some("a=2"));
    }

    #[test]
    fn cookies_for_others_are_not_taken() {
        let bad = ["a=1; Domain=example", "b=1; Domain=other.example", "=1", "no pair", "c=\u{1}"];
        assert_eq!(sent(&mut jar("http://o.example/", &bad), 0, "http://o.example/"), None);
        assert_eq!(sent(&mut jar("http://10.0.0.1/", &["a=1; Domain=0.0.1"]), 0, "http://10.0.0.1/"), None);
    }

    #[test]
    fn a_jar_has_an_end() {
        let lines: Vec<String> = (0..200).map(|n| format!("n{n}={}", "x".repeat(1_000))).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let jar = jar("http://o/", &lines);
        assert!(jar.0.len() <= 16 && jar.0.iter().map(Cookie::octets).sum::<usize>() <= MOST_OCTETS);
    }
}

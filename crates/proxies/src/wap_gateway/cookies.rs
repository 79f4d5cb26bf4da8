//! The cookies of one session (RFC 6265): phones of WAP keep none, so the gateway does it for them.
//!
//! There is no list of public suffixes: a cookie for a whole domain is taken if the domain has a dot and the origin is in
//! it. Times are told by the origin's own clock: `Expires` counts from the `Date` of the same answer, and from our calendar
//! where it has none.

use airloom_base::{Duration, Instant};
use airloom_content::http::message::Fields;
use airloom_content::service::time;
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
    /// Takes the cookies of an answer that came from `url`; `calendar` is now, in seconds since 1970.
    pub(super) fn store(&mut self, now: Instant, calendar: u64, url: &Url, fields: &Fields) {
        let date = fields.first("date").and_then(|date| std::str::from_utf8(date).ok());
        let date = date.and_then(seconds).unwrap_or(calendar);
        for line in fields.all("set-cookie") {
            let Some(cookie) = std::str::from_utf8(line).ok().and_then(|line| parse(line, now, url, date))
            else {
                continue;
            };
            let is_like =
                |c: &Cookie| (&c.name, &c.domain, &c.path) == (&cookie.name, &cookie.domain, &cookie.path);
            let place = self.0.iter().position(is_like);
            //= RFC 6265 (5.3): one that replaces another is as old as that.
            match (place, cookie.expires.is_none_or(|at| at > now)) {
                (Some(place), true) => self.0[place] = cookie,
                (Some(place), false) => drop(self.0.remove(place)),
                (None, true) => self.0.push(cookie),
                (None, false) => {}
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

/// `name=value; attribute; attribute=value`, when it was `date` at the origin.
fn parse(line: &str, now: Instant, url: &Url, date: u64) -> Option<Cookie> {
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
                let left = seconds(value).map(|at| Duration::from_secs(at.saturating_sub(date)));
                cookie.expires = left.map(|left| now + left).or(cookie.expires);
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

/// Seconds since 1970 of a date, however it is written; 0 for one before that.
fn seconds(date: &str) -> Option<u64> {
    //= RFC 6265 (5.1.1): words in any order, of which the first that can be each part is it.
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let is_delimiter = |c: char| matches!(c, '\t' | ' '..='/' | ';'..='@' | '['..='`' | '{'..='~');
    let month_of = |word: &str| {
        let name = word.get(..3)?;
        MONTHS.iter().position(|month| month.eq_ignore_ascii_case(name))
    };
    let (mut clock, mut day, mut month, mut year) = (None, None, None, None);
    for word in date.split(is_delimiter) {
        if clock.is_none() && word.contains(':') {
            clock = clock_of(word);
        } else if day.is_none() && number(word, 1, 2).is_some() {
            day = number(word, 1, 2);
        } else if month.is_none() && month_of(word).is_some() {
            month = month_of(word);
        } else if year.is_none() {
            year = number(word, 2, 4);
        }
    }
    let ((hour, minute, second), day, month) = (clock?, day?, month? + 1);
    let year = match year? {
        year @ 0..=69 => 2000 + year,
        year @ 70..=99 => 1900 + year,
        year => year,
    };
    if (1601..1970).contains(&year) {
        return Some(0);
    }
    time::seconds(&format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z"))
}

/// `8:49:37`.
fn clock_of(word: &str) -> Option<(u64, u64, u64)> {
    let mut parts = word.splitn(3, ':').map(|part| number(part, 1, 2));
    Some((parts.next()??, parts.next()??, parts.next()??))
}

/// The number that `word` begins with, if it has so many digits.
fn number(word: &str, least: usize, most: usize) -> Option<u64> {
    let len = word.bytes().take_while(u8::is_ascii_digit).count();
    if (least..=most).contains(&len) { word[..len].parse().ok() } else { None }
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
        jar.store(NOW, 0, &Url::parse(from).unwrap(), &fields);
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
        for past in [
            "Thu, 01 Jan 1970 00:00:00 GMT",
            "Thu, 01-Jan-70 00:00:01 GMT",
            "Thu, 1 Jan 1970 0:0:0 GMT",
            "Thu, 01 Jan 1970 00:00:00 -0000",
            "Mon, 01-Jan-1601 00:00:00 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            let removed = format!("b=; Expires={past}");
            let mut jar = jar("http://o/", &["a=1", "c=3", "a=2", "b=1", &removed]);
            assert_eq!(sent(&mut jar, 0, "http://o/").as_deref(), Some("a=2; c=3"), "{past}");
        }
        // What is no date is not heeded.
        for none in
            ["0", "Thu, 32 Jan 1970 00:00:00 GMT", "01 Jan 1600 00:00:00", "01 Jan 1970", "01 1970 00:00:00"]
        {
            let kept = format!("b=2; Expires={none}");
            assert_eq!(
                sent(&mut jar("http://o/", &[&kept]), 0, "http://o/").as_deref(),
                Some("b=2"),
                "{none}"
            );
        }
    }

    #[test]
    fn where_the_origin_says_no_date_our_calendar_counts() {
        let mut jar = Jar::default();
        let fields = Fields::from_iter([("Set-Cookie", "a=1; Expires=Sun, 06 Nov 1994 08:49:57 GMT")]);
        jar.store(NOW, 784_111_777, &Url::parse("http://o/").unwrap(), &fields);
        assert_eq!(sent(&mut jar, 19, "http://o/").as_deref(), Some("a=1"));
        assert_eq!(sent(&mut jar, 20, "http://o/"), None);
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

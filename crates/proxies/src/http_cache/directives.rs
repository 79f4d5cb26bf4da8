//! The Cache-Control field (RFC 9111, 5.2).

use airloom_content::http::message::Fields;

/// The longest time that means anything (RFC 9111, 1.2.2).
const LONG: u64 = 1 << 31;

/// What it says, of a request or a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Directives {
    pub(super) no_store: bool,
    pub(super) no_cache: bool,
    pub(super) private: bool,
    pub(super) public: bool,
    pub(super) must_revalidate: bool,
    pub(super) proxy_revalidate: bool,
    pub(super) only_if_cached: bool,
    pub(super) max_age: Option<u64>,
    pub(super) s_maxage: Option<u64>,
    pub(super) min_fresh: Option<u64>,
    /// How much staler than fresh is good enough.
    pub(super) max_stale: Option<u64>,
}

impl Directives {
    /// Of a message with these fields.
    pub(super) fn of(fields: &Fields) -> Directives {
        let mut found = Directives::default();
        let mut is_there = false;
        for value in fields.all("cache-control") {
            is_there = true;
            let mut rest = value;
            while let Some((name, argument, after)) = next(rest) {
                found.take(name, argument);
                rest = after;
            }
        }
        //= RFC 9111 (5.4): without Cache-Control, Pragma: no-cache of old clients means the same.
        if !is_there && fields.first("pragma").is_some() && fields.list_has("pragma", "no-cache") {
            found.no_cache = true;
        }
        found
    }

    fn take(&mut self, name: &[u8], argument: Option<&[u8]>) {
        let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
        //= RFC 9111 (4.2.1): of several values the one that is stale first; an invalid one is stale.
        let least = |before: Option<u64>| Some(before.unwrap_or(LONG).min(seconds(argument)));
        if is("no-store") {
            self.no_store = true;
        } else if is("no-cache") {
            //= RFC 9111 (5.2.2.4): a cache may treat the form with field names like the one without.
            self.no_cache = true;
        } else if is("private") {
            self.private = true;
        } else if is("public") {
            self.public = true;
        } else if is("must-revalidate") {
            self.must_revalidate = true;
        } else if is("proxy-revalidate") {
            self.proxy_revalidate = true;
        } else if is("only-if-cached") {
            self.only_if_cached = true;
        } else if is("max-age") {
            self.max_age = least(self.max_age);
        } else if is("s-maxage") {
            self.s_maxage = least(self.s_maxage);
        } else if is("min-fresh") {
            self.min_fresh = Some(argument.map_or(LONG, |_| seconds(argument)));
        } else if is("max-stale") {
            self.max_stale = Some(argument.map_or(LONG, |_| seconds(argument)));
        }
    }
}

/// A directive's name and argument, and what follows it.
type Directive<'a> = (&'a [u8], Option<&'a [u8]>, &'a [u8]);

/// The next directive. Commas inside quotes end nothing.
fn next(text: &[u8]) -> Option<Directive<'_>> {
    let start = text.iter().position(|o| !matches!(o, b',' | b' ' | b'\t'))?;
    let text = &text[start..];
    let (mut is_quoted, mut end) = (false, text.len());
    let mut octets = text.iter().enumerate();
    while let Some((at, octet)) = octets.next() {
        match octet {
            b'\\' if is_quoted => drop(octets.next()),
            b'"' => is_quoted = !is_quoted,
            b',' if !is_quoted => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    let (directive, rest) = text.split_at(end);
    let (name, argument) = match directive.iter().position(|o| *o == b'=') {
        Some(at) => (&directive[..at], Some(directive[at + 1..].trim_ascii())),
        None => (directive, None),
    };
    Some((name.trim_ascii(), argument, rest))
}

fn seconds(argument: Option<&[u8]>) -> u64 {
    let text = argument.unwrap_or_default();
    let text = text.strip_prefix(b"\"").and_then(|t| t.strip_suffix(b"\"")).unwrap_or(text);
    number(text).unwrap_or(0)
}

/// A number of seconds; one that is too large is a long time.
pub(super) fn number(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(text.iter().fold(0_u64, |n, d| n.saturating_mul(10).saturating_add(u64::from(d - b'0'))).min(LONG))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&'static str]) -> Directives {
        Directives::of(&lines.iter().map(|value| ("Cache-Control", *value)).collect())
    }

    #[test]
    fn directives_are_read_across_lines_and_quotes() {
        let found = of(&["Max-Age=60 , public,, x", "ext=\"a, no-store, max-age=1 \\\" \", must-revalidate"]);
        let expected =
            Directives { max_age: Some(60), public: true, must_revalidate: true, ..Directives::default() };
        assert_eq!(found, expected);
        assert!(of(&["private=\"Set-Cookie\""]).private);
        assert_eq!(of(&["max-age=\"7\""]).max_age, Some(7));
    }

    #[test]
    fn what_is_no_number_is_no_time_and_the_least_of_several_counts() {
        for wrong in ["max-age", "max-age=", "max-age=-1", "max-age=x", "max-age=60, max-age=0"] {
            assert_eq!(of(&[wrong]).max_age, Some(0), "{wrong}");
        }
        assert_eq!(of(&["max-age=99999999999999999999999"]).max_age, Some(LONG));
        assert_eq!((of(&["max-stale"]).max_stale, of(&["max-stale=5"]).max_stale), (Some(LONG), Some(5)));
    }

    #[test]
    fn pragma_counts_where_there_is_nothing_else() {
        let pragma = |lines: &[(&'static str, &'static str)]| {
            Directives::of(&lines.iter().copied().collect()).no_cache
        };
        assert!(pragma(&[("Pragma", "no-cache")]));
        assert!(!pragma(&[("Pragma", "no-cache"), ("Cache-Control", "max-age=0")]));
    }
}

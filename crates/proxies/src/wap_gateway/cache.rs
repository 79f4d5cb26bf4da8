//! Origins' answers that are used again (RFC 9111, of which `s-maxage`, `max-age` and `Expires` alone): those to GET without
//! a name or cookies of a user, complete and fresh by their own word.

use std::collections::{BTreeMap, VecDeque};

use airloom_base::{Duration, Instant};
use airloom_content::http::message::Fields;
use bytes::Bytes;

/// What was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) status: u16,
    pub(super) fields: Fields,
    /// Without its content coding.
    pub(super) body: Bytes,
    stored: Instant,
    until: Instant,
}

impl Kept {
    fn octets(&self) -> usize {
        self.body.len() + self.fields.iter().map(|f| f.name.len() + f.value.len()).sum::<usize>() + 200
    }

    /// How old it is, with what it was when it came.
    pub(super) fn age(&self, now: Instant) -> u64 {
        now.since(self.stored).as_nanos() / 1_000_000_000 + age(&self.fields)
    }
}

/// The answers, by address.
#[derive(Debug, Default)]
pub(super) struct Cache {
    kept: BTreeMap<String, Kept>,
    order: VecDeque<String>,
    octets: usize,
    most: usize,
}

impl Cache {
    /// At most so many octets.
    pub(super) fn new(most: usize) -> Cache {
        Cache { most, ..Cache::default() }
    }

    /// What is kept of `address`, if it is still fresh.
    pub(super) fn find(&mut self, now: Instant, address: &str) -> Option<Kept> {
        let kept = self.kept.get(address)?;
        if kept.until > now {
            return Some(kept.clone());
        }
        self.remove(address);
        None
    }

    /// Keeps an answer to GET if it may be kept.
    pub(super) fn store(&mut self, now: Instant, address: &str, status: u16, fields: &Fields, body: &Bytes) {
        self.remove(address);
        let Some(fresh) = freshness(status, fields).filter(|fresh| !fresh.is_zero()) else { return };
        // Nothing else of the head is held.
        let fields = fields.within(&fields.lines());
        let kept = Kept { status, fields, body: body.clone(), stored: now, until: now + fresh };
        if kept.octets() > self.most {
            return;
        }
        self.octets += kept.octets();
        self.kept.insert(address.to_owned(), kept);
        self.order.push_back(address.to_owned());
        while self.octets > self.most
            && let Some(oldest) = self.order.front().cloned()
        {
            self.remove(&oldest);
        }
    }

    /// Forgets what is kept of `address`.
    pub(super) fn remove(&mut self, address: &str) {
        if let Some(kept) = self.kept.remove(address) {
            self.octets -= kept.octets();
            self.order.retain(|other| other != address);
        }
    }
}

fn age(fields: &Fields) -> u64 {
    //= RFC 9111 (5.1): of several the first one.
    let age = fields.list("age").next().and_then(|age| std::str::from_utf8(age).ok());
    age.and_then(|age| age.parse().ok()).unwrap_or(0)
}

/// How long an answer may be used, counted from now.
fn freshness(status: u16, fields: &Fields) -> Option<Duration> {
    //= RFC 9111 (3): what a shared cache may keep. Cookies make an answer one client's own here.
    let forbidden = ["no-store", "no-cache", "private"].iter().any(|word| {
        let is_word = |d: &[u8]| {
            d.split(|o| *o == b'=').next().is_some_and(|d| d.eq_ignore_ascii_case(word.as_bytes()))
        };
        fields.list("cache-control").any(is_word)
    });
    let varies = fields.list("vary").any(|name| !name.eq_ignore_ascii_case(b"accept-encoding"));
    if status != 200 || forbidden || varies || fields.first("set-cookie").is_some() {
        return None;
    }
    let seconds = |wanted: &str| {
        fields.list("cache-control").find_map(|directive| {
            let text = std::str::from_utf8(directive).ok()?;
            let (name, value) = text.split_once('=')?;
            name.eq_ignore_ascii_case(wanted).then(|| value.trim_matches('"').parse::<u64>().ok())?
        })
    };
    let text = |name| fields.first(name).and_then(|value| std::str::from_utf8(value).ok());
    //= RFC 9111 (5.2.2.10): what is said to shared caches counts before what is said to all.
    let whole = match seconds("s-maxage").or_else(|| seconds("max-age")) {
        Some(seconds) => Duration::from_secs(seconds),
        None => {
            let date = |name| httpdate::parse_http_date(text(name)?).ok();
            let left = date("expires")?.duration_since(date("date")?);
            Duration::from_secs(left.map_or(0, |left| left.as_secs()))
        }
    };
    Some(whole.saturating_sub(Duration::from_secs(age(fields))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh(list: &[(&'static str, &'static str)]) -> Option<u64> {
        freshness(200, &list.iter().copied().collect()).map(|f| f.as_nanos() / 1_000_000_000)
    }

    #[test]
    fn answers_are_fresh_for_as_long_as_they_say() {
        assert_eq!(fresh(&[("Cache-Control", "public, max-age=60"), ("Age", "20")]), Some(40));
        assert_eq!(fresh(&[("Cache-Control", "max-age=60"), ("Age", "20, 30")]), Some(40));
        let expires = ("Expires", "Sun, 06 Nov 1994 08:49:57 GMT");
        assert_eq!(fresh(&[expires, ("Date", "Sun, 06 Nov 1994 08:49:37 GMT")]), Some(20));
        assert_eq!(fresh(&[expires]), None);
        assert_eq!(fresh(&[("Cache-Control", "max-age=60, s-maxage=0")]), Some(0));
        assert_eq!(fresh(&[("Cache-Control", "max-age=60, private=\"x\"")]), None);
        assert_eq!(fresh(&[("Cache-Control", "max-age=60"), ("Vary", "User-Agent")]), None);
        assert_eq!(fresh(&[]), None);
        assert_eq!(freshness(404, &Fields::from_iter([("Cache-Control", "max-age=60")])), None);
    }

    #[test]
    fn old_answers_are_not_used_and_the_oldest_go_when_there_is_no_room() {
        let mut cache = Cache::new(700);
        let (mut now, body) = (Instant::ZERO, Bytes::from_static(&[0; 100]));
        let keep = Fields::from_iter([("Cache-Control", "max-age=60")]);
        for address in ["a", "b", "c"] {
            cache.store(now, address, 200, &keep, &body);
        }
        assert!(cache.find(now, "a").is_none() && cache.find(now, "b").is_some());
        now += Duration::from_secs(59);
        assert_eq!(cache.find(now, "c").map(|kept| kept.age(now)), Some(59));
        now += Duration::from_secs(1);
        assert!(cache.find(now, "c").is_none());
        assert_eq!((cache.kept.len(), cache.order.len()), (1, 1));
    }
}

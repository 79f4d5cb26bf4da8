//! What may be kept, for how long it is fresh, and for whom (RFC 9111).

use std::time::{Duration as Std, UNIX_EPOCH};

use airloom_content::http::message::{Fields, Method};
use bytes::Bytes;

use super::directives::{Directives, number};
use super::forward::end_to_end;

/// A guess at freshness never exceeds this.
const GUESS: u64 = 24 * 3600;

/// Seconds since 1970 that a date in a field means.
pub(super) fn date(fields: &Fields, name: &str) -> Option<u64> {
    let text = std::str::from_utf8(fields.first(name)?).ok()?;
    let date = httpdate::parse_http_date(text).ok()?;
    date.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

/// A date as fields have it (RFC 9110, 5.6.7), of seconds since 1970.
pub fn date_text(seconds: u64) -> String {
    // Four digits of a year are all there is room for.
    let most = Std::from_secs(seconds.min(253_402_300_799));
    httpdate::fmt_http_date(UNIX_EPOCH.checked_add(most).unwrap_or(UNIX_EPOCH))
}

/// May the answer with this head be kept for everybody?
pub(super) fn may_store(
    method: &Method,
    request: &Fields,
    status: u16,
    response: &Fields,
    said: &Directives,
    assumes: bool,
) -> bool {
    //= RFC 9111 (3): the method is understood, the status final and understood; parts (206) are not kept.
    if *method != Method::Get || !matches!(status, 200..=599) || matches!(status, 206 | 304) {
        return false;
    }
    //= RFC 9111 (5.2.1.5, 5.2.2.5, 5.2.2.7): no-store of either side, private.
    if Directives::of(request).no_store || said.no_store || said.private {
        return false;
    }
    //= RFC 9111 (3.5, 5.2.2.8): what was asked for in somebody's name is kept only if its server says that it may be, which
    //= proxy-revalidate does not say.
    if request.first("authorization").is_some()
        && !(said.public || said.s_maxage.is_some() || said.must_revalidate)
    {
        return false;
    }
    // Not demanded: an answer that sets a cookie is one client's, whatever its server forgot to say.
    if response.first("set-cookie").is_some() || response.list("vary").any(|name| name == b"*") {
        return false;
    }
    let has_time = said.public
        || said.max_age.is_some()
        || said.s_maxage.is_some()
        || response.first("expires").is_some();
    //= RFC 9110 (15.1): these may be kept without being told how long.
    let may_guess = matches!(status, 200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501);
    let is_useful = assumes || has_validator(response);
    has_time || (may_guess && is_useful)
}

/// Can its server be asked whether it has changed?
pub(super) fn has_validator(fields: &Fields) -> bool {
    fields.first("etag").is_some() || fields.first("last-modified").is_some()
}

/// Seconds for which an answer is fresh from the moment it was made, if anybody knows which that was.
pub(super) fn lifetime(fields: &Fields, said: &Directives, made: Option<u64>, assumed: u64) -> u64 {
    //= RFC 9111 (4.2.1): s-maxage, then max-age, then Expires, then a guess.
    if let Some(seconds) = said.s_maxage.or(said.max_age) {
        return seconds;
    }
    if fields.first("expires").is_some() {
        //= RFC 9111 (4.2.1, 5.3): it counts from Date; a date that is none is in the past.
        return date(fields, "expires").zip(made).map_or(0, |(at, made)| at.saturating_sub(made));
    }
    //= RFC 9111 (4.2.2): a tenth of the time since it was changed.
    match date(fields, "last-modified") {
        Some(changed) => made.map_or(0, |made| made.saturating_sub(changed) / 10).min(GUESS),
        None => assumed,
    }
}

/// How old an answer was when it came, in seconds. `now` is the date by our clock, if there is one, `took` what the exchange took.
pub(super) fn initial_age(fields: &Fields, now: Option<u64>, took: u64) -> u64 {
    //= RFC 9111 (4.2.3): the larger of what the date says and what caches on the way say.
    let apparent = now.zip(date(fields, "date")).map_or(0, |(now, made)| now.saturating_sub(made));
    //= RFC 9111 (5.1): of several the first one.
    let told = fields.list("age").next().and_then(number).unwrap_or(0);
    apparent.max(told.saturating_add(took))
}

/// Which fields of the request an answer depends on, and what they were.
pub(super) fn varying(response: &Fields, request: &Fields) -> Vec<(String, Option<Bytes>)> {
    let names = response.list("vary").map(|name| String::from_utf8_lossy(name).to_ascii_lowercase());
    names.map(|name| (normal(request, &name), name)).map(|(value, name)| (name, value)).collect()
}

/// Does a request choose the same answer?
pub(super) fn selects(varying: &[(String, Option<Bytes>)], request: &Fields) -> bool {
    varying.iter().all(|(name, value)| normal(request, name) == *value)
}

/// The lines of a field as one list without spaces around its members (RFC 9111, 4.1).
fn normal(fields: &Fields, name: &str) -> Option<Bytes> {
    //= RFC 9110 (7.6.1): a field that Connection names is not passed on: for the server that answers it is not there.
    end_to_end(fields).find(|field| field.name.eq_ignore_ascii_case(name.as_bytes()))?;
    Some(fields.list(name).collect::<Vec<_>>().join(&b","[..]).into())
}

/// Is a client that asks like this to be told that it has the answer already?
pub(super) fn is_unchanged(request: &Fields, stored: &Fields) -> bool {
    //= RFC 9110 (13.2.2): If-None-Match counts before If-Modified-Since, which is ignored beside it.
    if request.first("if-none-match").is_some() {
        let tag = stored.first("etag").map(opaque);
        //= RFC 9110 (13.1.2): compared weakly; * is about whatever there is, with a tag or without.
        return request
            .all("if-none-match")
            .any(|value| tags(value).any(|theirs| theirs == b"*" || Some(opaque(theirs)) == tag));
    }
    //= RFC 9111 (4.3.2): what does not say when it was changed last was there when it was made.
    let changed = if stored.first("last-modified").is_some() { "last-modified" } else { "date" };
    match (date(request, "if-modified-since"), date(stored, changed)) {
        (Some(theirs), Some(changed)) => changed <= theirs,
        _ => false,
    }
}

/// Is an answer that nothing has changed about what is kept?
pub(super) fn is_about(news: &Fields, kept: &Fields) -> bool {
    match (news.first("etag"), kept.first("etag")) {
        //= RFC 9111 (4.3.4): a strong tag is about what has the same one, a weak one about what has its like.
        (Some(told), Some(ours)) if told.starts_with(b"W/") => opaque(told) == opaque(ours),
        (told, ours) => told.is_none() || told == ours,
    }
}

/// A tag without the mark of a weak one.
fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// The tags of a list; commas inside quotes belong to them.
fn tags(mut text: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let start = text.iter().position(|o| !matches!(o, b',' | b' ' | b'\t'))?;
        let from = &text[start..];
        let mut is_quoted = false;
        let end = from
            .iter()
            .position(|o| {
                is_quoted ^= *o == b'"';
                *o == b',' && !is_quoted
            })
            .unwrap_or(from.len());
        text = &from[end..];
        Some(from[..end].trim_ascii())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Lines = [(&'static str, &'static str)];

    fn fields(lines: &Lines) -> Fields {
        lines.iter().copied().collect()
    }

    fn stores(request: &Lines, status: u16, response: &Lines) -> bool {
        let response = fields(response);
        let said = Directives::of(&response);
        may_store(&Method::Get, &fields(request), status, &response, &said, false)
    }

    const FRESH: (&str, &str) = ("Cache-Control", "max-age=60");

    #[test]
    fn what_may_be_kept() {
        assert!(stores(&[], 200, &[FRESH]));
        assert!(stores(&[], 302, &[FRESH]), "told how long");
        assert!(stores(&[], 200, &[("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")]), "a guess");
        assert!(!stores(&[], 302, &[("ETag", "\"x\"")]), "no guess at this status");
        assert!(!stores(&[], 200, &[]), "neither fresh nor to be validated: of no use");
        assert!(!stores(&[], 206, &[FRESH]) && !stores(&[], 304, &[FRESH]));
        for word in ["no-store", "private", "max-age=60, private=\"x\""] {
            assert!(!stores(&[], 200, &[("Cache-Control", word)]), "{word}");
        }
        assert!(!stores(&[("Cache-Control", "no-store")], 200, &[FRESH]));
        assert!(!stores(&[], 200, &[FRESH, ("Vary", "Accept, *")]));
        assert!(!stores(&[], 200, &[FRESH, ("Set-Cookie", "a=b")]));
        assert!(!may_store(
            &Method::Post,
            &fields(&[]),
            200,
            &fields(&[FRESH]),
            &Directives::default(),
            true
        ));
    }

    #[test]
    fn an_answer_in_somebodys_name_is_kept_only_if_its_server_says_so() {
        let asked = [("Authorization", "Basic eDp5")];
        assert!(!stores(&asked, 200, &[FRESH]));
        assert!(!stores(&asked, 200, &[("Cache-Control", "proxy-revalidate, max-age=60")]));
        for word in ["public, max-age=60", "s-maxage=60", "must-revalidate, max-age=60"] {
            assert!(stores(&asked, 200, &[("Cache-Control", word)]), "{word}");
        }
    }

    #[test]
    fn lifetimes_in_their_order() {
        let of = |lines: &Lines| {
            let fields = fields(lines);
            lifetime(&fields, &Directives::of(&fields), Some(784_111_777), 5)
        };
        let expires = ("Expires", "Sun, 06 Nov 1994 08:50:37 GMT");
        assert_eq!(of(&[("Cache-Control", "max-age=9, s-maxage=7"), expires]), 7);
        assert_eq!(of(&[("Cache-Control", "max-age=9"), expires]), 9);
        assert_eq!(of(&[expires]), 60);
        assert_eq!(of(&[("Expires", "0")]), 0);
        assert_eq!(of(&[("Last-Modified", "Sun, 06 Nov 1994 08:48:37 GMT")]), 6);
        assert_eq!(
            of(&[("Last-Modified", "Sun, 06 Nov 1904 08:48:37 GMT")]),
            5,
            "no date of the years since 1970"
        );
        assert_eq!(of(&[("Last-Modified", "Sun, 04 Jan 1970 00:00:00 GMT")]), GUESS);
        assert_eq!(of(&[]), 5);
    }

    #[test]
    fn a_date_without_a_day_to_count_from_makes_nothing_fresh() {
        let of = |lines: &Lines| lifetime(&fields(lines), &Directives::default(), None, 5);
        assert_eq!(of(&[("Expires", "Sun, 06 Nov 1994 08:50:37 GMT")]), 0);
        assert_eq!(of(&[("Last-Modified", "Sun, 06 Nov 1994 08:48:37 GMT")]), 0);
        assert_eq!(of(&[]), 5);
    }

    #[test]
    fn ages() {
        let date = ("Date", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(initial_age(&fields(&[date]), Some(784_111_780), 1), 3);
        assert_eq!(initial_age(&fields(&[date, ("Age", "9")]), Some(784_111_780), 1), 10);
        assert_eq!(initial_age(&fields(&[date]), None, 2), 2);
        assert_eq!(initial_age(&fields(&[("Age", "600, 1200")]), None, 0), 600);
        assert_eq!(initial_age(&fields(&[("Age", "-1")]), Some(0), 0), 0);
        assert_eq!(date_text(784_111_777), date.1);
    }

    #[test]
    fn a_variant_is_chosen_by_the_fields_that_are_named() {
        let asked = fields(&[("Accept", "a , b"), ("X", "1")]);
        let varying = varying(&fields(&[("Vary", "Accept, Accept-Language")]), &asked);
        assert!(selects(&varying, &asked));
        assert!(selects(&varying, &fields(&[("accept", "a"), ("Accept", "b")])));
        assert!(!selects(&varying, &fields(&[("Accept", "a")])));
        assert!(!selects(&varying, &fields(&[("Accept", "a, b"), ("Accept-Language", "de")])));
    }

    #[test]
    fn a_variant_is_not_chosen_by_what_was_not_passed_on() {
        let vary = fields(&[("Vary", "Accept-Language")]);
        let said = fields(&[("Accept-Language", "de")]);
        let hidden = fields(&[("Accept-Language", "de"), ("Connection", "accept-language")]);
        assert!(!selects(&varying(&vary, &hidden), &said), "its server has seen no language");
        assert!(selects(&varying(&vary, &hidden), &fields(&[])));
        assert!(!selects(&varying(&vary, &said), &hidden));
    }

    #[test]
    fn clients_that_have_it_already() {
        let stored = fields(&[("ETag", "W/\"a,b\""), ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")]);
        let asks = |lines: &Lines| is_unchanged(&fields(lines), &stored);
        assert!(asks(&[("If-None-Match", "\"x\", \"a,b\"")]) && asks(&[("If-None-Match", "*")]));
        let later = ("If-Modified-Since", "Sun, 06 Nov 1994 08:49:38 GMT");
        assert!(asks(&[later]));
        assert!(!asks(&[("If-None-Match", "\"a\""), later]));
        assert!(!asks(&[("If-Modified-Since", "Sun, 06 Nov 1994 08:49:36 GMT")]));
        assert!(!asks(&[("If-Modified-Since", "tomorrow")]) && !asks(&[]));
        // One that says no more than when it was made.
        let stored = fields(&[("Date", "Sun, 06 Nov 1994 08:49:37 GMT")]);
        let asks = |lines: &Lines| is_unchanged(&fields(lines), &stored);
        assert!(asks(&[("If-None-Match", "*")]) && !asks(&[("If-None-Match", "\"a\"")]) && asks(&[later]));
        assert!(!asks(&[("If-Modified-Since", "Sun, 06 Nov 1994 08:49:36 GMT")]));
    }
}

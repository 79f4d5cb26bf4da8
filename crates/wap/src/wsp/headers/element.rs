//! What HTTP's header values are made of, as text: lists, parameters, quoted strings, weights.

use std::borrow::Cow;

/// Parts of `text` between `separator`s outside of quotes, without white space around them; empty ones are left out.
pub(super) fn split(text: &str, separator: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        loop {
            let text = rest?;
            let (mut quoted, mut escaped) = (false, false);
            let end = text.bytes().position(|o| {
                let at_end = o == separator && !quoted;
                quoted ^= o == b'"' && !escaped;
                escaped = o == b'\\' && quoted && !escaped;
                at_end
            });
            let part = match end {
                Some(end) => {
                    rest = Some(&text[end + 1..]);
                    &text[..end]
                }
                None => {
                    rest = None;
                    text
                }
            };
            let part = part.trim_matches([' ', '\t']);
            if !part.is_empty() {
                return Some(part);
            }
        }
    })
}

/// `name=value` or a name alone; quotes of the value are taken off.
pub(super) fn pair(text: &str) -> (&str, Option<Cow<'_, str>>) {
    match text.split_once('=') {
        Some((name, value)) => (name.trim_end(), Some(unquoted(value.trim_start()))),
        None => (text, None),
    }
}

/// The text of a quoted string; other text as it is.
pub(super) fn unquoted(text: &str) -> Cow<'_, str> {
    let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match inside {
        Some(inside) if inside.contains('\\') => {
            let mut escaped = false;
            let kept = |c: &char| {
                escaped = *c == '\\' && !escaped;
                !escaped
            };
            Cow::Owned(inside.chars().filter(kept).collect())
        }
        Some(inside) => Cow::Borrowed(inside),
        None => Cow::Borrowed(text),
    }
}

/// Whether `text` is a token of HTTP (RFC 9110, section 5.6.2).
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|o| IS_TOKEN[usize::from(o)])
}

const IS_TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut n = 0;
    while n < 256 {
        table[n] = (n as u8).is_ascii_alphanumeric();
        n += 1;
    }
    let others = b"!#$%&'*+-.^_`|~";
    n = 0;
    while n < others.len() {
        table[others[n] as usize] = true;
        n += 1;
    }
    table
};

/// `text` as a token or a quoted string.
pub(super) fn quoted(text: &str) -> Cow<'_, str> {
    if is_token(text) { Cow::Borrowed(text) } else { Cow::Owned(always_quoted(text)) }
}

/// `text` as a quoted string.
pub(super) fn always_quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A number without sign or leading zeros, so that writing it again gives the same text.
pub(super) fn integer(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|o| o.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

/// A weight in thousandths: `0.5` is 500.
pub(super) fn q(text: &str) -> Option<u32> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 3 || !part.bytes().all(|o| o.is_ascii_digit()) {
        return None;
    }
    let digits = part.bytes().map(|o| u32::from(o - b'0')).chain(std::iter::repeat(0));
    let part = digits.take(3).fold(0, |sum, digit| 10 * sum + digit);
    match whole {
        "0" => Some(part),
        "1" if part == 0 => Some(1000),
        _ => None,
    }
}

/// Q-value: two decimals take one octet, three take two (WAP-230, 8.4.2.3). A weight of one is never sent.
pub(super) fn q_value(thousandths: u32) -> u32 {
    if thousandths.is_multiple_of(10) { thousandths / 10 + 1 } else { thousandths + 100 }
}

/// A Q-value as text.
pub(super) fn q_text(value: u32) -> Option<String> {
    let thousandths = match value {
        1..=100 => (value - 1) * 10,
        101..=1099 => value - 100,
        _ => return None,
    };
    let digits = format!("{thousandths:03}");
    let digits = digits.trim_end_matches('0');
    Some(if digits.is_empty() { "0".into() } else { format!("0.{digits}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_cut_outside_of_quotes_only() {
        let parts: Vec<_> = split("a, \"b, \\\" c\" ,,d;e=\"x,y\",", b',').collect();
        assert_eq!(parts, ["a", "\"b, \\\" c\"", "d;e=\"x,y\""]);
        assert_eq!(pair("e = \"x\\\"y\\\\\""), ("e", Some("x\"y\\".into())));
        assert_eq!(quoted("a b"), "\"a b\"");
        assert_eq!(unquoted(&always_quoted("q\"\\")), "q\"\\");
    }

    #[test]
    fn weights_take_one_or_two_octets() {
        for (text, value) in [("0", 1), ("0.1", 11), ("0.99", 100), ("0.333", 433), ("0.001", 101)] {
            assert_eq!(q_value(q(text).expect(text)), value);
            assert_eq!(q_text(value).as_deref(), Some(text));
        }
        assert_eq!(q("1.000"), Some(1000));
        assert!(["2", "0.1234", "-1", "", "1.5", ".5", "0.x"].iter().all(|bad| q(bad).is_none()));
    }
}

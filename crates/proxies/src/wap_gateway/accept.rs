//! What a client takes: `Accept` and `Accept-Charset` (RFC 9110, section 12.5).

use airloom_content::charset::Charset;

/// Weights in thousandths by name, in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Weights(Vec<(String, u16)>);

impl Weights {
    /// The members of the lists in `values`. Parameters other than the weight are not looked at.
    pub(super) fn of<'a>(values: impl Iterator<Item = &'a str>) -> Weights {
        let members = values.flat_map(|value| value.split(','));
        let weights = members.filter_map(|member| {
            let mut parts = member.split(';').map(str::trim);
            let name = parts.next().filter(|name| !name.is_empty())?.to_ascii_lowercase();
            let q = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
            Some((name, q.and_then(thousandths).unwrap_or(1000)))
        });
        Weights(weights.collect())
    }

    /// Does the client say nothing?
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Is `name` taken, by whatever range?
    pub(super) fn takes(&self, name: &str) -> bool {
        //= RFC 9110 (12.5.1): the most specific range decides; without the field everything is taken.
        let kind = name.split_once('/').map(|(kind, _)| format!("{kind}/*"));
        let weight = self.weight(name).or_else(|| self.weight(&kind?)).or_else(|| self.any());
        weight.map_or(self.is_empty(), |q| q > 0)
    }

    /// Is `name` taken by its own name?
    pub(super) fn names(&self, name: &str) -> bool {
        self.weight(name).is_some_and(|q| q > 0)
    }

    /// All names that are taken, the best first.
    pub(super) fn by_weight(&self) -> Vec<&str> {
        let mut taken: Vec<&(String, u16)> = self.0.iter().filter(|(_, q)| *q > 0).collect();
        taken.sort_by_key(|(_, q)| std::cmp::Reverse(*q));
        taken.into_iter().map(|(name, _)| name.as_str()).collect()
    }

    fn any(&self) -> Option<u16> {
        self.weight("*/*").or_else(|| self.weight("*"))
    }

    fn weight(&self, name: &str) -> Option<u16> {
        self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, q)| *q)
    }
}

/// `0.5` -> 500.
fn thousandths(text: &str) -> Option<u16> {
    let q: f64 = text.trim().parse().ok()?;
    (0.0..=1.0).contains(&q).then_some((q * 1000.0).round() as u16)
}

/// The character set in which a client that takes `charsets` is written to, if `fits` says that the text can be: UTF-8 if
/// that is taken, and if nothing is.
pub(super) fn charset_for(charsets: &Weights, fits: impl Fn(Charset) -> bool) -> Charset {
    if charsets.takes("utf-8") {
        return Charset::UTF_8;
    }
    let known = charsets.by_weight().into_iter().filter_map(Charset::from_name);
    known.filter(|charset| charset.nul_len() == 1).find(|charset| fits(*charset)).unwrap_or(Charset::UTF_8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_range_decides() {
        let accept = Weights::of(["text/*;q=0.3, text/html;level=1;q=0", "image/vnd.wap.wbmp"].into_iter());
        assert!(
            accept.takes("TEXT/plain") && !accept.takes("text/html") && accept.takes("image/vnd.wap.wbmp")
        );
        assert!(!accept.takes("image/gif") && !accept.names("text/plain"));
        assert!(Weights::default().takes("image/gif") && !Weights::default().names("image/gif"));
        assert!(Weights::of(["*/*"].into_iter()).takes("image/gif"));
    }

    #[test]
    fn a_character_set_is_chosen_that_is_taken_and_has_the_text() {
        let latin = Weights::of(["us-ascii", "iso-8859-1;q=0.5"].into_iter());
        assert_eq!(charset_for(&latin, |c| c.has_all("gr\u{fc}n")).name(), "iso-8859-1");
        assert_eq!(charset_for(&latin, |c| c.has_all("\u{20ac}")), Charset::UTF_8);
        assert_eq!(charset_for(&Weights::default(), |_| true), Charset::UTF_8);
    }
}

//! What becomes of the body of an origin's answer: compiled, converted, split, or left as it is.

use std::cell::LazyCell;

use airloom_content::charset::Charset;
use airloom_content::markup;
use airloom_content::wbxml::{Document, Element, Options, Version};
use airloom_content::wml::{WML_1_1, html, split};
use bytes::Bytes;
use url::Url;

use super::accept::{Weights, charset_for};
use super::decks;

pub(super) const WML: &str = "text/vnd.wap.wml";
pub(super) const WMLC: &str = "application/vnd.wap.wmlc";
pub(super) const SI: &str = "text/vnd.wap.si";
pub(super) const SIC: &str = "application/vnd.wap.sic";
pub(super) const SL: &str = "text/vnd.wap.sl";
pub(super) const SLC: &str = "application/vnd.wap.slc";
pub(super) const CO: &str = "text/vnd.wap.co";
pub(super) const COC: &str = "application/vnd.wap.coc";

/// Types of web pages.
const PAGES: [&str; 3] = ["text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"];

/// What happened to a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Treatment {
    /// There was none, or the gateway answered itself.
    None,
    /// It was handed on as it was.
    PassedThrough,
    /// Text became tokens.
    Compiled,
    /// A web page became a deck.
    Converted,
}

/// What a client gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) content_type: String,
    pub(super) body: Bytes,
    pub(super) treatment: Treatment,
    /// All parts, the one in `body` too, if it became several.
    pub(super) parts: Vec<Bytes>,
}

/// Why a client does not get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It does not take this type.
    NotAcceptable,
    /// It is not what its type says.
    NotUnderstood(String),
    /// It takes no message of that size.
    TooLarge,
}

/// For whom, and how.
pub(super) struct Maker<'a> {
    pub(super) accept: &'a Weights,
    pub(super) charsets: &'a Weights,
    /// Octets of a body that fit.
    pub(super) most: usize,
    /// Where the body is from.
    pub(super) url: &'a Url,
    /// The number of the page, if it becomes several decks.
    pub(super) page: u64,
    /// Web pages may become decks.
    pub(super) converts_html: bool,
    /// How decks are written.
    pub(super) options: Options,
    /// The origin forbids to change it (`no-transform`).
    pub(super) verbatim: bool,
    /// What is not understood is an error, even for clients that would take the text.
    pub(super) strict: bool,
}

/// What becomes of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Handling {
    Compile(&'static str),
    Convert,
    Pass,
}

impl Maker<'_> {
    /// The content type that a body of this type would get, for an answer without one.
    pub(super) fn content_type(&self, content_type: &str) -> String {
        match self.way(media(content_type)) {
            Some(Handling::Compile(compiled)) => compiled.to_owned(),
            Some(Handling::Convert) => WMLC.to_owned(),
            Some(Handling::Pass) | None => content_type.to_owned(),
        }
    }

    /// What a client gets.
    pub(super) fn make(&self, content_type: &str, body: Bytes) -> Result<Made, Refusal> {
        let charset = parameter(content_type, "charset").and_then(Charset::from_name);
        match self.way(media(content_type)).ok_or(Refusal::NotAcceptable)? {
            Handling::Pass => self.pass(content_type, body),
            Handling::Convert => {
                let deck = self.in_charset(html::convert(&body, charset));
                self.deck(deck, Treatment::Converted)
            }
            Handling::Compile(compiled) => match markup::parse(&body, charset) {
                Ok(parsed) if compiled == WMLC => {
                    self.deck(self.in_charset(parsed.document), Treatment::Compiled)
                }
                Ok(parsed) => {
                    let octets = encode(&parsed.document, self.options)?;
                    self.fitting(compiled, octets, Treatment::Compiled)
                }
                // As Kannel: a client that takes the text gets it, and may understand more of it.
                Err(_) if self.accept.takes(media(content_type)) && !self.strict => {
                    self.pass(content_type, body)
                }
                Err(why) => Err(Refusal::NotUnderstood(why.to_string())),
            },
        }
    }

    /// The same deck, to be written in a character set that the client takes.
    fn in_charset(&self, deck: Document) -> Document {
        // The text as it was understood, whatever set it came in and by whatever references.
        let charset = {
            let text = LazyCell::new(|| markup::write(&deck));
            charset_for(self.charsets, |charset| charset.has_all(&text)).mib()
        };
        Document { charset, ..deck }
    }

    fn way(&self, media: &str) -> Option<Handling> {
        let compiled = compiled_type(media);
        if let Some(compiled) = compiled.filter(|compiled| self.accept.takes(compiled)) {
            return Some(Handling::Compile(compiled));
        }
        let is_page = PAGES.iter().any(|page| page.eq_ignore_ascii_case(media));
        // A phone that takes everything means pictures; one that takes pages says so.
        if is_page
            && self.converts_html
            && !self.verbatim
            && !self.accept.names(media)
            && self.accept.takes(WMLC)
        {
            return Some(Handling::Convert);
        }
        self.accept.takes(media).then_some(Handling::Pass)
    }

    fn pass(&self, content_type: &str, body: Bytes) -> Result<Made, Refusal> {
        self.fitting(content_type, body, Treatment::PassedThrough)
    }

    fn fitting(&self, content_type: &str, body: Bytes, treatment: Treatment) -> Result<Made, Refusal> {
        if body.len() > self.most {
            return Err(Refusal::TooLarge);
        }
        Ok(Made { content_type: content_type.to_owned(), body, treatment, parts: Vec::new() })
    }

    /// A deck, in parts if it does not fit.
    fn deck(&self, deck: Document, treatment: Treatment) -> Result<Made, Refusal> {
        let whole = encode(&deck, self.options)?;
        if whole.len() <= self.most {
            return self.fitting(WMLC, whole, treatment);
        }
        let address = |n| decks::address(self.url, (self.page, n));
        let parts = split::split(&deck, self.most, self.options, &address).map_err(|_| Refusal::TooLarge)?;
        let parts: Vec<Bytes> =
            parts.iter().map(|part| encode(part, self.options)).collect::<Result<_, _>>()?;
        let body = parts.first().cloned().ok_or(Refusal::TooLarge)?;
        Ok(Made { content_type: WMLC.to_owned(), body, treatment, parts })
    }
}

fn encode(document: &Document, options: Options) -> Result<Bytes, Refusal> {
    let octets = markup::encode(document, options);
    octets.map(Bytes::from).map_err(|why| Refusal::NotUnderstood(why.to_string()))
}

/// A deck that says what went wrong.
pub(super) fn error_deck(title: &str, text: &str) -> Bytes {
    // A dollar sign would begin a variable in text that a browser reads; tokens carry it as it is.
    let card = Element::new("card").with("title", title).child(Element::new("p").text(text));
    let root = Element::new("wml").child(card);
    let deck = Document::new(Version::V1_1, WML_1_1.document_type().number, root);
    encode(&deck, Options::default()).unwrap_or_default()
}

/// The type that text of this type has when it is compiled.
pub(super) fn compiled_type(content_type: &str) -> Option<&'static str> {
    let compiled = [(WML, WMLC), (SI, SIC), (SL, SLC), (CO, COC)];
    let media = media(content_type);
    compiled.iter().find(|(text, _)| text.eq_ignore_ascii_case(media)).map(|(_, tokens)| *tokens)
}

/// A content type without its parameters.
fn media(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or(content_type).trim()
}

/// The value of a parameter.
pub(super) fn parameter<'a>(content_type: &'a str, name: &str) -> Option<&'a str> {
    let mut parameters = content_type.split(';').skip(1).filter_map(|p| p.split_once('='));
    let (_, value) = parameters.find(|(known, _)| known.trim().eq_ignore_ascii_case(name))?;
    Some(value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use airloom_content::wbxml::Limits;

    use super::*;

    fn make(accept: &[&str], most: usize, content_type: &str, body: &str) -> Result<Made, Refusal> {
        make_in(&[], accept, most, content_type, body.as_bytes())
    }

    fn make_in(
        charsets: &[&str],
        accept: &[&str],
        most: usize,
        content_type: &str,
        body: &[u8],
    ) -> Result<Made, Refusal> {
        make_by(Options::default(), charsets, accept, most, content_type, body)
    }

    fn make_by(
        options: Options,
        charsets: &[&str],
        accept: &[&str],
        most: usize,
        content_type: &str,
        body: &[u8],
    ) -> Result<Made, Refusal> {
        let url = Url::parse("http://o/page").unwrap();
        let (accept, charsets) = (Weights::of(accept.iter().copied()), Weights::of(charsets.iter().copied()));
        let maker = Maker {
            accept: &accept,
            charsets: &charsets,
            most,
            url: &url,
            page: 1,
            converts_html: true,
            options,
            verbatim: false,
            strict: false,
        };
        maker.make(content_type, Bytes::copy_from_slice(body))
    }

    fn text(octets: &[u8]) -> String {
        markup::decompile(octets, Limits::default()).unwrap()
    }

    const DECK: &str = "<?xml version=\"1.0\"?><wml><card><p>Hello</p></card></wml>";

    #[test]
    fn decks_are_compiled_for_those_who_take_the_compiled_form() {
        let made = make(&["*/*"], 1000, "text/vnd.wap.wml; charset=utf-8", DECK).unwrap();
        assert_eq!((made.content_type.as_str(), made.treatment), (WMLC, Treatment::Compiled));
        assert!(text(&made.body).contains("Hello"));
        let made = make(&[WML], 1000, WML, DECK).unwrap();
        assert_eq!((&made.body[..], made.treatment), (DECK.as_bytes(), Treatment::PassedThrough));
        assert_eq!(make(&["image/vnd.wap.wbmp"], 1000, WML, DECK), Err(Refusal::NotAcceptable));
    }

    #[test]
    fn decks_are_in_a_set_that_the_client_takes_whatever_they_came_in() {
        let made = |content_type, body: &[u8]| {
            let made = make_in(&["iso-8859-1"], &[WMLC], 100_000, content_type, body).unwrap();
            // The number of the set is the third octet.
            (made.body[2], text(&made.body))
        };
        let deck = |declared: &str, word: &[u8]| {
            let head = format!("<?xml version=\"1.0\"{declared}?><wml><card><p>");
            [head.as_bytes(), word, b"</p></card></wml>"].concat()
        };
        let latin = deck(" encoding=\"iso-8859-1\"", b"gr\xFCn");
        let utf_16: Vec<u8> = [0xFE, 0xFF]
            .into_iter()
            .chain(
                String::from_utf8(deck("", "gr\u{fc}n".as_bytes()))
                    .unwrap()
                    .encode_utf16()
                    .flat_map(u16::to_be_bytes),
            )
            .collect();
        let macintosh = b"<?xml version='1.0' encoding='macintosh'?><html><body><p>gr\x9Fn</p></body></html>";
        let kinds: [(&str, &[u8]); 8] = [
            (WML, &latin),
            (WML, &deck("", "gr\u{fc}n".as_bytes())),
            (WML, &utf_16),
            ("text/vnd.wap.wml; charset=iso-8859-1", &deck("", b"gr\xFCn")),
            (WML, &deck("", b"gr&#xFC;n")),
            ("text/html", b"<meta charset=windows-1252><p>gr\xFCn"),
            ("text/html", &utf_16),
            ("application/xhtml+xml", macintosh),
        ];
        for (content_type, body) in kinds {
            let (charset, text) = made(content_type, body);
            assert_eq!((charset, text.contains("gr\u{fc}n")), (4, true), "{content_type} {text}");
        }
        // What it has no characters for goes in UTF-8, in whatever way they are said.
        for (content_type, body) in [(WML, deck("", b"&#x20AC;")), ("text/html", b"<p>&euro;".to_vec())] {
            let (charset, text) = made(content_type, &body);
            assert_eq!((charset, text.contains('\u{20ac}')), (106, true), "{content_type} {text}");
        }
    }

    #[test]
    fn pages_become_decks_unless_the_client_names_their_type() {
        let page = "<title>T</title><h1>Big</h1><p>words";
        let made = make(&["*/*"], 1000, "Text/HTML", page).unwrap();
        assert_eq!((made.content_type.as_str(), made.treatment), (WMLC, Treatment::Converted));
        assert!(text(&made.body).contains("words"));
        assert_eq!(
            make(&[WMLC, "text/html"], 1000, "text/html", page).unwrap().treatment,
            Treatment::PassedThrough
        );
        assert_eq!(make(&["text/plain"], 1000, "text/html", page), Err(Refusal::NotAcceptable));
    }

    #[test]
    fn what_is_too_large_becomes_several_decks_or_is_refused() {
        let page = format!("<p>{}</p>", "some words ".repeat(400));
        let made = make(&[WMLC], 1000, "text/html", &page).unwrap();
        assert!(made.parts.len() > 4 && made.parts.iter().all(|part| part.len() <= 1000));
        assert_eq!(made.body, made.parts[0]);
        assert!(text(&made.body).contains("/page?airloom-deck=1.1"));
        assert_eq!(make(&["*/*"], 1000, "image/gif", &page), Err(Refusal::TooLarge));
    }

    #[test]
    fn a_deck_that_only_a_string_table_would_make_small_enough_is_split_where_there_is_none() {
        let page = format!("<wml><card>{}</card></wml>", "<p>the very same words again</p>".repeat(40));
        assert!(make(&[WMLC], 600, WML, &page).unwrap().parts.is_empty());
        let options = Options { string_table: false };
        let made = make_by(options, &[], &[WMLC], 600, WML, page.as_bytes()).unwrap();
        assert!(made.parts.len() > 1 && made.parts.iter().all(|part| part.len() <= 600));
    }

    #[test]
    fn text_that_is_no_deck_goes_to_those_who_take_text() {
        let bad = "<wml><card></wml>";
        let made = make(&["*/*"], 1000, WML, bad).unwrap();
        assert_eq!((made.content_type.as_str(), &made.body[..]), (WML, bad.as_bytes()));
        assert!(matches!(make(&[WMLC], 1000, WML, bad), Err(Refusal::NotUnderstood(_))));
    }

    #[test]
    fn notices_are_compiled() {
        let si = "<si><indication href=\"http://o/\">News</indication></si>";
        let made = make(&[SIC], 1000, SI, si).unwrap();
        assert_eq!((made.content_type.as_str(), made.treatment), (SIC, Treatment::Compiled));
    }
}

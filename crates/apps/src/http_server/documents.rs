//! Decks and pages of a wanted size: markup around a text that means nothing.
//!
//! A deck is one card of lines that end with `br`, a page has headings, paragraphs and links. The words come from the
//! path alone, so that the same path is the same document in every run.

use std::fmt::Write;

use airloom_base::random::Stream;

/// What kind of document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A deck of WML 1.1.
    Wml,
    /// A web page.
    Html,
    /// A page of XHTML Mobile Profile with the words of the deck of the same size: only what stands around them differs.
    Xhtml,
}

/// The largest document that is made: each is written out as a whole.
const MOST: u64 = 4_000_000;

const WML_HEAD: &str = "<?xml version=\"1.0\"?>\n<!DOCTYPE wml PUBLIC \"-//WAPFORUM//DTD WML 1.1//EN\" \
                        \"http://www.wapforum.org/DTD/wml_1.1.xml\">\n<wml>\n<card id=\"first\" title=\"airloom\">\n\
                        <p mode=\"wrap\">\n";
const WML_TAIL: &str = "\n</p>\n</card>\n</wml>\n";
const XHTML_HEAD: &str = "<?xml version=\"1.0\"?>\n<!DOCTYPE html PUBLIC \"-//WAPFORUM//DTD XHTML Mobile 1.0//EN\" \
                          \"http://www.wapforum.org/DTD/xhtml-mobile10.dtd\">\n\
                          <html xmlns=\"http://www.w3.org/1999/xhtml\">\n\
                          <head><title>airloom</title></head>\n<body>\n<p>\n";
const XHTML_TAIL: &str = "\n</p>\n</body>\n</html>\n";
const HTML_HEAD: &str =
    "<!doctype html>\n<html>\n<head><title>airloom</title></head>\n<body>\n<h1>airloom</h1>\n";
const HTML_TAIL: &str = "\n</body>\n</html>\n";

/// Characters of a line.
const LINE: usize = 60;

/// The document at `path` with exactly `size` octets (of XHTML: as that deck, in its own frame); none if that is less than its frame, or more than is made.
pub(super) fn make(kind: Kind, path: &str, size: u64) -> Option<Vec<u8>> {
    let (head, tail) = match kind {
        Kind::Wml => (WML_HEAD, WML_TAIL),
        Kind::Html => (HTML_HEAD, HTML_TAIL),
        Kind::Xhtml => {
            let deck = make(Kind::Wml, &path.replace(".xhtml", ".wml"), size)?;
            let text = &deck[WML_HEAD.len()..deck.len() - WML_TAIL.len()];
            return Some([XHTML_HEAD.as_bytes(), text, XHTML_TAIL.as_bytes()].concat());
        }
    };
    let size = usize::try_from(size).ok().filter(|_| size <= MOST)?;
    let end = size.checked_sub(tail.len()).filter(|end| *end >= head.len())?;
    let mut words = Words { stream: Stream::new(0, path) };
    let mut document = String::with_capacity(size);
    document.push_str(head);
    let mut block = String::new();
    for number in 0.. {
        block.clear();
        match kind {
            Kind::Html => words.block(&mut block, number),
            _ => words.line(&mut block, "<br/>\n"),
        }
        if document.len() + block.len() > end {
            break;
        }
        document.push_str(&block);
    }
    // What is left is shorter than a block: text without markup.
    block.clear();
    while block.len() < end - document.len() {
        words.line(&mut block, " ");
    }
    document.push_str(&block[..end - document.len()]);
    document.push_str(tail);
    Some(document.into_bytes())
}

/// Words in an order that looks like none.
struct Words {
    stream: Stream,
}

const VOCABULARY: [&str; 48] = [
    "signal", "station", "channel", "packet", "carrier", "frame", "window", "mobile", "gateway", "network",
    "answer", "request", "number", "morning", "weather", "train", "ticket", "market", "letter", "river",
    "mountain", "garden", "music", "winter", "the", "a", "of", "and", "to", "in", "on", "for", "with",
    "from", "is", "was", "will", "may", "has", "open", "new", "small", "long", "early", "between", "after",
    "before", "again",
];

impl Words {
    fn next(&mut self) -> &'static str {
        VOCABULARY[self.stream.below(VOCABULARY.len() as u64) as usize]
    }

    /// Words up to the length of a line, then `end`.
    fn line(&mut self, out: &mut String, end: &str) {
        let begin = out.len();
        out.push_str(self.next());
        while out.len() - begin < LINE - 10 {
            out.push(' ');
            out.push_str(self.next());
        }
        out.push('.');
        out.push_str(end);
    }

    /// The `number`-th block of a page.
    fn block(&mut self, out: &mut String, number: u32) {
        match number % 4 {
            0 => {
                // Writing to a string cannot fail.
                let _ = writeln!(out, "<h2>{} {}</h2>", self.next(), self.next());
            }
            3 => {
                let _ = writeln!(
                    out,
                    "<p><a href=\"/{}kB.html\">{}</a> {}</p>",
                    number % 20 + 1,
                    self.next(),
                    self.next()
                );
            }
            _ => {
                out.push_str("<p>");
                for _ in 0..3 {
                    self.line(out, "\n");
                }
                out.push_str("</p>\n");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use airloom_content::markup;

    use super::*;

    #[test]
    fn documents_have_the_size_that_was_asked_for_to_the_octet() {
        for kind in [Kind::Wml, Kind::Html] {
            for size in (300..2_000).chain([10_000, 360_000]) {
                assert_eq!(make(kind, "/x", size).unwrap().len() as u64, size, "{kind:?}");
            }
            assert_eq!(make(kind, "/x", 20), None);
            assert_eq!(make(kind, "/x", MOST + 1), None);
            assert_eq!(make(kind, "/x", u64::MAX), None);
        }
    }

    #[test]
    fn a_page_of_xhtml_has_the_text_of_the_deck_in_another_frame() {
        for size in [300, 1_400, 10_000, 100_000] {
            let deck = make(Kind::Wml, "/x.wml", size).unwrap();
            let page = make(Kind::Xhtml, "/x.xhtml", size).unwrap();
            let text = &deck[WML_HEAD.len()..deck.len() - WML_TAIL.len()];
            assert!(page.windows(text.len()).any(|part| part == text));
            assert_eq!(page.len() as i64 - deck.len() as i64, 53);
        }
        assert_eq!(make(Kind::Xhtml, "/x.xhtml", 20), None);
    }

    #[test]
    fn every_deck_can_be_compiled_and_is_shorter_then() {
        for size in [240, 241, 500, 1_000, 10_000, 360_000] {
            let deck = make(Kind::Wml, "/x", size).unwrap();
            let compiled = markup::compile(&deck, None, None).unwrap();
            assert!(compiled.warnings.is_empty(), "{:?}", compiled.warnings);
            assert!((compiled.octets.len() as u64) < size);
        }
    }

    #[test]
    fn a_document_depends_on_its_path_only() {
        assert_eq!(make(Kind::Wml, "/a", 5_000), make(Kind::Wml, "/a", 5_000));
        assert_ne!(make(Kind::Wml, "/a", 5_000), make(Kind::Wml, "/b", 5_000));
    }
}

//! One large deck -> several that fit a phone.
//!
//! Cards stay whole where they can and share a deck while there is room. A card that is larger than a deck by itself is cut between
//! paragraphs and, inside of a paragraph, between elements and words; each part but the last ends with a link to the next.
//! References to cards that went to another deck get its address. Sizes are reckoned without a string table, which only
//! makes a deck smaller.

use std::collections::BTreeMap;

use crate::markup;
use crate::wbxml::{Document, Element, Node, Options, Piece};

/// What the link to the next part says.
const MORE: &str = "More";

/// Why a deck cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SplitError {
    /// Something that cannot be cut does not fit a deck of its own.
    #[error("a part of the deck that cannot be cut is larger than a deck may be")]
    TooLarge,
    /// It is no WML deck, or one that cannot be encoded.
    #[error("not a WML deck that can be encoded")]
    NoDeck,
}

/// Splits `deck` into decks of at most `most` octets when they are written with `options`; `address(n)` is where the client will
/// find the n-th, from 0. A deck that is small enough comes back as it is.
///
/// # Errors
/// [`SplitError`] if that is impossible; then the client has to be refused.
pub fn split(
    deck: &Document,
    most: usize,
    options: Options,
    address: &dyn Fn(usize) -> String,
) -> Result<Vec<Document>, SplitError> {
    let encoded = |deck: &Document| markup::encode(deck, options).map(|octets| octets.len());
    if deck.root.name != "wml" {
        return Err(SplitError::NoDeck);
    }
    if encoded(deck).map_err(|_| SplitError::NoDeck)? <= most {
        return Ok(vec![deck.clone()]);
    }
    let is_card = |node: &&Node| matches!(node, Node::Element(e) if e.name == "card");
    let (cards, shared): (Vec<&Node>, Vec<&Node>) = deck.root.content.iter().partition(is_card);
    let frame = Element { content: shared.into_iter().cloned().collect(), ..shell(&deck.root) };
    let frame = Document { root: frame, ..deck.clone() };
    // No deck is expected to become more than ten thousand.
    let link = Node::Element(more(&address(9999)));
    let mut splitter = Splitter {
        frame_size: size(&frame.root, deck)? + HEADER,
        reference: address(9999).len(),
        most,
        frame: &frame,
        decks: vec![Vec::new()],
        room: 0,
        link_size: 0,
    };
    splitter.link_size = splitter.cost(&link)?;
    splitter.room = most.checked_sub(splitter.frame_size).ok_or(SplitError::TooLarge)?;
    for card in cards {
        if let Node::Element(card) = card {
            splitter.card(card)?;
        }
    }
    let decks = splitter.finish(address);
    // What was reckoned holds; this is for what nobody thought of.
    let fits = |deck: &Document| encoded(deck).is_ok_and(|len| len <= most);
    if decks.iter().all(fits) { Ok(decks) } else { Err(SplitError::TooLarge) }
}

/// Octets before the body of a deck without a string table, its public identifier in three octets.
const HEADER: usize = 8;

struct Splitter<'a> {
    frame: &'a Document,
    frame_size: usize,
    /// What the address in a reference to another deck may add.
    reference: usize,
    link_size: usize,
    most: usize,
    decks: Vec<Vec<Element>>,
    /// Octets left in the last deck.
    room: usize,
}

impl Splitter<'_> {
    /// What `node` may take, with every reference going to another deck.
    fn cost(&self, node: &Node) -> Result<usize, SplitError> {
        let holder = Element { content: vec![node.clone()], ..Element::new("p") };
        Ok(size(&holder, self.frame)? + references(node) * self.reference)
    }

    fn next_deck(&mut self) {
        self.decks.push(Vec::new());
        self.room = self.most - self.frame_size;
    }

    fn last(&mut self) -> &mut Vec<Element> {
        self.decks.last_mut().expect("there is always one")
    }

    fn card(&mut self, card: &Element) -> Result<(), SplitError> {
        let cost = self.cost(&Node::Element(card.clone()))?;
        if cost > self.room && !self.last().is_empty() {
            self.next_deck();
        }
        if cost > self.room {
            return self.cut(card);
        }
        self.room -= cost;
        self.last().push(card.clone());
        Ok(())
    }

    /// A card in parts, each in a deck of its own.
    fn cut(&mut self, card: &Element) -> Result<(), SplitError> {
        let is_timer = |node: &&Node| matches!(node, Node::Element(e) if e.name == "timer");
        let timer: Vec<Node> = card.content.iter().filter(is_timer).cloned().collect();
        let mut outer = shell(card);
        outer.attributes.retain(|a| a.name != "ontimer");
        // The timer comes back in the last part, so every part leaves room for it.
        let around = self.cost(&Node::Element(Element { content: timer.clone(), ..shell(card) }))?
            + self.link_size
            + 8;
        let room = self.room.checked_sub(around).ok_or(SplitError::TooLarge)?;
        let mut parts = Parts { room, left: room, parts: vec![Vec::new()] };
        for node in card.content.iter().filter(|node| !is_timer(node)) {
            let cost = self.cost(node)?;
            match node {
                _ if cost <= parts.left => parts.push(node.clone(), cost),
                Node::Element(p) if p.name == "p" => self.cut_paragraph(p, &mut parts)?,
                _ if cost <= parts.room => {
                    parts.next();
                    parts.push(node.clone(), cost);
                }
                _ => return Err(SplitError::TooLarge),
            }
        }
        let parts = parts.parts;
        let (count, first) = (parts.len(), self.decks.len() - 1);
        for (n, content) in parts.into_iter().enumerate() {
            let mut part = Element { content, ..if n + 1 == count { shell(card) } else { outer.clone() } };
            if n > 0 {
                self.next_deck();
                part.attributes.retain(|a| {
                    !matches!(&*a.name, "newcontext" | "onenterforward" | "onenterbackward" | "id")
                });
            }
            if n + 1 < count {
                part.content.push(Node::Element(more(&format!("{NEXT}{}", first + n + 1))));
            } else {
                part.content.splice(0..0, timer.iter().cloned());
            }
            self.last().push(part);
        }
        // What comes after begins a deck of its own, so that a part and its link are all that is in one.
        self.room = 0;
        Ok(())
    }

    /// A paragraph over as many parts as it takes.
    fn cut_paragraph(&self, paragraph: &Element, parts: &mut Parts) -> Result<(), SplitError> {
        let around = self.cost(&Node::Element(shell(paragraph)))? + 1;
        let mut piece = shell(paragraph);
        let mut used = around;
        let flush = |piece: &mut Element, used: &mut usize, parts: &mut Parts| {
            let done = std::mem::replace(piece, shell(paragraph));
            if !done.content.is_empty() {
                parts.push(Node::Element(done), *used);
            }
            parts.next();
            *used = around;
        };
        for node in &paragraph.content {
            let cost = self.cost(node)?;
            match node {
                _ if used + cost <= parts.left => {
                    piece.content.push(node.clone());
                    used += cost;
                }
                Node::Piece(Piece::Text(text)) => {
                    let mut rest = text.as_str();
                    while !rest.is_empty() {
                        // A string's own token and NUL; other sets than UTF-8 may take four octets for what takes one.
                        let most = parts.left.saturating_sub(used + 4);
                        let alone = parts.is_fresh() && piece.content.is_empty();
                        let at = cut_at(rest, most, alone);
                        if at > 0 {
                            let cut = rest[..at].to_owned();
                            used += self.cost(&Node::Piece(Piece::Text(cut.clone())))?;
                            piece.content.push(Node::Piece(Piece::Text(cut)));
                            rest = &rest[at..];
                        } else if alone {
                            return Err(SplitError::TooLarge);
                        }
                        if !rest.is_empty() {
                            flush(&mut piece, &mut used, parts);
                            rest = rest.trim_start_matches(' ');
                        }
                    }
                }
                _ if around + cost <= parts.room => {
                    flush(&mut piece, &mut used, parts);
                    piece.content.push(node.clone());
                    used += cost;
                }
                _ => return Err(SplitError::TooLarge),
            }
        }
        if !piece.content.is_empty() {
            parts.push(Node::Element(piece), used);
        }
        Ok(())
    }

    /// The decks, with the addresses in their references.
    fn finish(self, address: &dyn Fn(usize) -> String) -> Vec<Document> {
        let mut place = BTreeMap::new();
        for (n, cards) in self.decks.iter().enumerate() {
            for id in cards.iter().filter_map(|card| card.attribute("id")?.as_text()) {
                place.entry(id.to_owned()).or_insert(n);
            }
        }
        let mut documents = Vec::new();
        for (n, cards) in self.decks.into_iter().enumerate().filter(|(_, cards)| !cards.is_empty()) {
            let mut root = self.frame.root.clone();
            root.content.extend(cards.into_iter().map(Node::Element));
            refer(&mut root, &|target| match target.strip_prefix(NEXT) {
                Some(next) => next.parse().ok().map(address),
                None => {
                    let there = *place.get(target.strip_prefix('#')?)?;
                    (there != n).then(|| format!("{}{target}", address(there)))
                }
            });
            documents.push(Document { root, ..self.frame.clone() });
        }
        documents
    }
}

/// Stands in front of a part's number until addresses are known. No address of a document begins like that.
const NEXT: &str = "\u{1}";

/// Parts of a card, each of so many octets.
struct Parts {
    room: usize,
    left: usize,
    parts: Vec<Vec<Node>>,
}

impl Parts {
    fn push(&mut self, node: Node, cost: usize) {
        self.left = self.left.saturating_sub(cost);
        if let Some(part) = self.parts.last_mut() {
            part.push(node);
        }
    }

    fn next(&mut self) {
        if !self.is_fresh() {
            self.parts.push(Vec::new());
        }
        self.left = self.room;
    }

    fn is_fresh(&self) -> bool {
        self.parts.last().is_none_or(Vec::is_empty)
    }
}

/// Where to cut `text` so that at most `most` octets are in front: before a space, or `inside` a word if there is no other way.
/// Zero if nowhere.
fn cut_at(text: &str, most: usize, inside: bool) -> usize {
    if text.len() <= most {
        return text.len();
    }
    let mut at = most;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    match text[..at].rfind(' ') {
        Some(space) if space > 0 => space,
        _ if inside => at,
        _ => 0,
    }
}

/// An element with its attributes and nothing inside.
fn shell(element: &Element) -> Element {
    Element { name: element.name.clone(), attributes: element.attributes.clone(), content: Vec::new() }
}

fn more(address: &str) -> Element {
    Element::new("p").child(Element::new("a").with("href", address).text(MORE))
}

/// Octets of `element` as the root of a deck without a string table, header included.
fn size(element: &Element, like: &Document) -> Result<usize, SplitError> {
    // Not the content of `like`: what all decks have in common may be large, and sizes are asked for node by node.
    let (version, public_id, charset) = (like.version, like.public_id.clone(), like.charset);
    let document = Document { version, public_id, charset, root: element.clone() };
    let octets =
        markup::encode(&document, Options { string_table: false }).map_err(|_| SplitError::NoDeck)?;
    Ok(octets.len())
}

const REFERENCES: [&str; 6] = ["href", "src", "ontimer", "onpick", "onenterforward", "onenterbackward"];

/// How many references to cards are in `node`.
fn references(node: &Node) -> usize {
    let Node::Element(element) = node else { return 0 };
    let to_card = |a: &&crate::wbxml::Attribute| {
        REFERENCES.contains(&&*a.name)
            && matches!(a.value.first(), Some(Piece::Text(text)) if text.starts_with('#'))
    };
    element.attributes.iter().filter(to_card).count() + element.content.iter().map(references).sum::<usize>()
}

/// Replaces every reference that `to` has something for.
fn refer(element: &mut Element, to: &dyn Fn(&str) -> Option<String>) {
    for attribute in element.attributes.iter_mut().filter(|a| REFERENCES.contains(&&*a.name)) {
        if let Some(Piece::Text(text)) = attribute.value.first_mut()
            && let Some(new) = to(text)
        {
            *text = new;
        }
    }
    for node in &mut element.content {
        if let Node::Element(child) = node {
            refer(child, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deck(body: &str) -> Document {
        markup::parse(format!("<wml>{body}</wml>").as_bytes(), None).expect("a deck").document
    }

    fn address(n: usize) -> String {
        format!("/deck?part={n}")
    }

    fn sizes(decks: &[Document]) -> Vec<usize> {
        decks.iter().map(|deck| markup::encode(deck, Options::default()).expect("encoded").len()).collect()
    }

    fn words(decks: &[Document]) -> String {
        fn of(element: &Element, out: &mut String) {
            for node in &element.content {
                match node {
                    Node::Element(child) => of(child, out),
                    Node::Piece(Piece::Text(text)) if text != MORE => {
                        out.push_str(text);
                        out.push(' ');
                    }
                    _ => {}
                }
            }
        }
        let mut out = String::new();
        decks.iter().for_each(|deck| of(&deck.root, &mut out));
        out.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_small_deck_stays_one() {
        let deck = deck("<card><p>x</p></card>");
        assert_eq!(split(&deck, 1400, Options::default(), &address), Ok(vec![deck]));
    }

    #[test]
    fn a_long_card_is_cut_and_nothing_is_lost() {
        let prose: String = (0..3000).map(|n| format!("word{n} ")).collect();
        let deck = deck(&format!(
            "<template><do type=\"prev\"><prev/></do></template><card id=\"a\" ontimer=\"#a\" title=\"T\"><timer value=\"9\"/>\
             <p>Some {prose}</p><p align=\"center\">end<br/><b>bold</b></p></card>"
        ));
        for most in [400, 1400, 5000] {
            let decks = split(&deck, most, Options::default(), &address).expect("can be cut");
            assert!(sizes(&decks).iter().all(|&size| size <= most), "{:?}", sizes(&decks));
            assert_eq!(words(&decks), words(std::slice::from_ref(&deck)));
            let texts: Vec<String> = decks.iter().map(markup::write).collect();
            for (n, text) in texts.iter().enumerate() {
                let is_last = n + 1 == texts.len();
                assert_eq!(text.contains(&format!("href=\"/deck?part={}\"", n + 1)), !is_last);
                assert_eq!(text.contains("<timer"), is_last);
                assert!(text.contains("<template>"));
            }
            assert!(texts[texts.len() - 1].contains("ontimer=\"/deck?part=0#a\""), "back to the first part");
        }
    }

    #[test]
    fn cards_share_decks_and_find_each_other() {
        let cards: String = (0..40)
            .map(|n| {
                format!(
                    "<card id=\"c{n}\"><p>Card number {n} <a href=\"#c{}\">next</a></p></card>",
                    (n + 1) % 40
                )
            })
            .collect();
        let deck = deck(&cards);
        let decks = split(&deck, 500, Options::default(), &address).expect("can be split");
        assert!(decks.len() > 2 && sizes(&decks).iter().all(|&size| size <= 500));
        let texts: Vec<String> = decks.iter().map(markup::write).collect();
        assert!(texts[0].contains("href=\"#c1\""), "in the same deck");
        assert!(texts[0].contains("href=\"/deck?part=1#c"), "in the next");
        assert!(texts[texts.len() - 1].contains("href=\"/deck?part=0#c0\""));
    }

    #[test]
    fn what_decks_have_in_common_is_not_reckoned_for_each_node() {
        // Were it copied for every one of them, this would not end.
        let (shared, nodes) = ("<head/>".repeat(100_000), "<p>x</p>".repeat(50_000));
        let deck = deck(&format!("{shared}<card>{nodes}</card>"));
        let decks = split(&deck, 200_000, Options::default(), &address).expect("can be split");
        assert!(decks.len() > 2 && sizes(&decks).iter().all(|&size| size <= 200_000));
    }

    #[test]
    fn what_cannot_be_cut_is_refused() {
        let options: String = (0..400).map(|n| format!("<option>number {n}</option>")).collect();
        let deck = deck(&format!("<card><p><select>{options}</select></p></card>"));
        assert_eq!(split(&deck, 1400, Options::default(), &address), Err(SplitError::TooLarge));
        assert_eq!(split(&deck, 5, Options::default(), &address), Err(SplitError::TooLarge));
    }
}

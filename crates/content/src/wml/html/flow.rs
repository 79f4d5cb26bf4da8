//! Running text: paragraphs, styles and links that open and close as they please, made into well-nested elements.

use crate::wbxml::{Element, Node, Piece};

/// Styles inside each other; deeper ones have no effect.
const STYLES: usize = 8;

/// Builds the paragraphs of a card.
#[derive(Default)]
pub(super) struct Flow {
    /// What is done.
    pub blocks: Vec<Node>,
    /// The open paragraph with the open styles and link inside it, outermost first.
    open: Vec<Element>,
    styles: Vec<&'static str>,
    link: Option<String>,
    align: Option<&'static str>,
    space: bool,
    /// Whether anything stands on the line since it began.
    on_line: bool,
}

impl Flow {
    /// Text in which white space is one space.
    pub fn text(&mut self, text: &str) {
        for (n, word) in text.split([' ', '\t', '\n', '\r', '\u{c}']).enumerate() {
            self.space |= n > 0;
            if !word.is_empty() {
                self.begin_inline();
                self.append(word);
                self.on_line = true;
            }
        }
    }

    /// Text whose lines stay.
    pub fn verbatim(&mut self, text: &str) {
        for (n, line) in text.lines().enumerate() {
            if n > 0 {
                self.line_break();
            }
            self.text(line);
        }
    }

    /// A new line in the same paragraph.
    pub fn line_break(&mut self) {
        self.space = false;
        self.on_line = false;
        self.close_to_paragraph();
        if let Some(paragraph) = self.open.first_mut() {
            paragraph.content.push(Node::Element(Element::new("br")));
        }
    }

    /// The paragraph ends; the next text begins another.
    pub fn end_paragraph(&mut self) {
        self.space = false;
        self.on_line = false;
        self.close_to_paragraph();
        let Some(mut paragraph) = self.open.pop() else { return };
        // A break at the end would only leave a line empty.
        while matches!(paragraph.content.last(), Some(Node::Element(last)) if last.name == "br") {
            paragraph.content.pop();
        }
        if !paragraph.content.is_empty() {
            self.blocks.push(Node::Element(paragraph));
        }
    }

    /// How paragraphs that begin from now on stand.
    pub fn align(&mut self, align: Option<&'static str>) {
        self.align = align;
    }

    /// A style begins. Inside of a link there is no place for it.
    pub fn start_style(&mut self, style: &'static str) {
        if self.link.is_none() && self.styles.len() < STYLES {
            self.close_to_paragraph();
            self.styles.push(style);
        }
    }

    /// A style ends, whatever began after it.
    pub fn end_style(&mut self, style: &str) {
        if let Some(at) = self.styles.iter().rposition(|open| *open == style) {
            self.close_to_paragraph();
            self.styles.remove(at);
        }
    }

    /// A link begins; one that was open ends.
    pub fn start_link(&mut self, href: &str) {
        self.end_link();
        self.link = Some(href.to_owned());
    }

    /// The link ends.
    pub fn end_link(&mut self) {
        if self.link.is_some() {
            self.close_to_paragraph();
            self.link = None;
        }
    }

    /// An element of its own among the text, such as a field.
    pub fn element(&mut self, element: Element) {
        let link = self.link.take();
        self.close_to_paragraph();
        self.begin_inline();
        if self.space && self.on_line {
            self.append("");
        }
        self.space = false;
        self.on_line = true;
        if let Some(last) = self.open.last_mut() {
            last.content.push(Node::Element(element));
        }
        self.close_to_paragraph();
        self.link = link;
    }

    /// The paragraph and all that should be open in it.
    fn begin_inline(&mut self) {
        if self.open.is_empty() {
            let paragraph = Element::new("p");
            self.open.push(match self.align {
                Some(align) => paragraph.with("align", align),
                None => paragraph,
            });
            self.space = false;
        }
        if self.open.len() == 1 && (!self.styles.is_empty() || self.link.is_some()) {
            if self.space && self.on_line {
                self.append("");
            }
            self.space = false;
            self.open.extend(self.styles.iter().map(|style| Element::new(*style)));
            self.open.extend(self.link.iter().map(|href| Element::new("a").with("href", href.as_str())));
        }
    }

    /// Text at the end of the innermost element, with the space that was waiting for it.
    fn append(&mut self, text: &str) {
        let space = if self.space && self.on_line { " " } else { "" };
        self.space = false;
        let Some(last) = self.open.last_mut() else { return };
        match last.content.last_mut() {
            Some(Node::Piece(Piece::Text(before))) => {
                before.push_str(space);
                before.push_str(text);
            }
            _ if space.is_empty() && text.is_empty() => {}
            _ => last.content.push(Node::Piece(Piece::Text(format!("{space}{text}")))),
        }
    }

    fn close_to_paragraph(&mut self) {
        while self.open.len() > 1 {
            if let (Some(inner), Some(outer)) = (self.open.pop(), self.open.last_mut())
                && !inner.content.is_empty()
            {
                outer.content.push(Node::Element(inner));
            }
        }
    }
}

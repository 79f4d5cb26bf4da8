//! The page's tokens, one after the other.

use std::collections::BTreeMap;

use encoding_rs::Encoding;
use html5gum::emitters::default::DefaultEmitter;
use html5gum::{HtmlString, Token, Tokenizer};

use super::flow::Flow;
use super::form::{Form, Names};
use super::radios::Radios;
use crate::charset::Charset;
use crate::markup::declared;
use crate::wbxml::{Document, Element, Node, Version};

/// Characters of a card's title and of a label: more does not fit a phone's line.
const TITLE: usize = 40;
/// Options of a selection; further ones are left out.
const OPTIONS: usize = 500;

/// Makes a deck of a page. `charset` is what the transport says, else a mark or the page's own word, else UTF-8 if it is
/// that, and windows-1252 if not, as browsers do.
pub fn convert(page: &[u8], charset: Option<Charset>) -> Document {
    let text = charset.or_else(|| said_by_page(page)).unwrap_or_else(|| guessed(page)).decode(page);
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut page = Page::default();
    for Ok(token) in Tokenizer::new_with_emitter(text, emitter) {
        match token {
            Token::StartTag(tag) => {
                let attributes = tag.attributes.into_iter().map(|(name, value)| (name, value.value));
                page.start(&string(&tag.name), &Attributes(attributes.collect()), tag.self_closing);
            }
            Token::EndTag(tag) => page.end(&string(&tag.name)),
            Token::String(text) => page.text(&string(&text)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    page.finish()
}

/// A byte order mark, else a name in an XML declaration, in `<meta charset=NAME>` or in `<meta ... content="...; charset=NAME">`
/// near the beginning.
fn said_by_page(page: &[u8]) -> Option<Charset> {
    if let Some((marked, _)) = Encoding::for_bom(page) {
        return Charset::from_name(marked.name());
    }
    // A page that says two octets a character in single octets is wrong.
    let of = |name: &str| Charset::from_name(name).filter(|charset| charset.nul_len() == 1);
    declared(page).and_then(|name| of(&name)).or_else(|| of(&in_meta(page)?))
}

fn in_meta(page: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(&page[..page.len().min(1024)]).to_ascii_lowercase();
    let after = head.split_once("<meta")?.1.split_once("charset=")?.1;
    let name = after.trim_start_matches(['"', '\'']).split(['"', '\'', ' ', '>', '/', ';']).next()?;
    Some(name.to_owned())
}

fn guessed(page: &[u8]) -> Charset {
    let western = Charset::from_name("windows-1252").unwrap_or(Charset::UTF_8);
    if std::str::from_utf8(page).is_ok() { Charset::UTF_8 } else { western }
}

/// Text without what XML has no place for.
fn string(octets: &[u8]) -> String {
    let fine =
        |c: char| matches!(c, '\t' | '\n' | '\r') || (c >= ' ' && !matches!(c, '\u{FFFE}' | '\u{FFFF}'));
    String::from_utf8_lossy(octets).chars().filter(|c| fine(*c)).collect()
}

struct Attributes(BTreeMap<HtmlString, HtmlString>);

impl Attributes {
    fn get(&self, name: &str) -> Option<String> {
        self.0.get(name.as_bytes()).map(|value| string(value))
    }

    fn or_empty(&self, name: &str) -> String {
        self.get(name).unwrap_or_default()
    }
}

#[derive(Default)]
struct Page {
    flow: Flow,
    title: Option<String>,
    in_title: bool,
    /// The element whose content is left out, and how many of its name are open.
    skipped: Option<(String, usize)>,
    form: Option<Form>,
    names: Names,
    select: Option<Select>,
    radios: Radios,
    textarea: Option<(String, String)>,
    lists: Vec<Option<usize>>,
    verbatim: usize,
    refresh: Option<(u32, String)>,
}

/// A selection that is being read: one of `<select>`, or a box or button by itself.
struct Select {
    element: Element,
    option: Option<(String, String)>,
    chosen: Vec<usize>,
    multiple: bool,
    /// Made of a box whose label is the text that comes after it.
    from_box: bool,
    radio: Option<Radio>,
}

/// A radio button: its option goes into the selection of this variable.
struct Radio {
    variable: String,
    is_first: bool,
}

impl Page {
    fn start(&mut self, name: &str, attributes: &Attributes, self_closing: bool) {
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth += usize::from(skipped == name && !self_closing);
            return;
        }
        if !matches!(name, "option" | "optgroup") {
            self.end_box();
        }
        match name {
            "script" | "style" | "object" | "svg" | "math" | "template" | "audio" | "video" | "canvas"
            | "map" | "applet" => {
                if !self_closing {
                    self.skipped = Some((name.to_owned(), 1));
                }
            }
            "title" => self.in_title = self.title.is_none(),
            "meta" if attributes.or_empty("http-equiv").eq_ignore_ascii_case("refresh") => {
                self.refresh = refresh(&attributes.or_empty("content"));
            }
            "frame" | "iframe" => {
                if let Some(src) = attributes.get("src").filter(|src| is_address(src)) {
                    self.flow.end_paragraph();
                    self.flow.start_link(&src);
                    self.flow.text(&format!(
                        "[{}]",
                        short(attributes.get("title").or(attributes.get("name")), "frame")
                    ));
                    self.flow.end_link();
                    self.flow.end_paragraph();
                }
                if name == "iframe" && !self_closing {
                    self.skipped = Some((name.to_owned(), 1));
                }
            }
            "br" => self.flow.line_break(),
            "hr" => self.flow.end_paragraph(),
            "center" => {
                self.flow.end_paragraph();
                self.flow.align(Some("center"));
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.flow.end_paragraph();
                self.flow.start_style(if name <= "h2" { "big" } else { "b" });
            }
            "ul" | "menu" | "dir" => self.list(None),
            "ol" => self.list(Some(0)),
            "li" => {
                self.flow.end_paragraph();
                match self.lists.last_mut() {
                    Some(Some(n)) => {
                        *n += 1;
                        let mark = format!("{n}. ");
                        self.flow.text(&mark);
                    }
                    _ => self.flow.text("- "),
                }
            }
            "td" | "th" => self.flow.text(" "),
            "pre" => {
                self.flow.end_paragraph();
                self.verbatim += 1;
            }
            "a" => match attributes.get("href").filter(|href| is_address(href)) {
                Some(href) => self.flow.start_link(&href),
                None => self.flow.end_link(),
            },
            "img" => {
                if let Some(alt) = attributes.get("alt").filter(|alt| !alt.trim().is_empty()) {
                    self.flow.text(&format!("[{}]", alt.trim()));
                }
            }
            "form" => {
                self.end_form();
                self.form = Some(Form::new(&attributes.or_empty("action"), &attributes.or_empty("method")));
            }
            "input" => self.input(attributes),
            "button" => {
                let kind = attributes.or_empty("type");
                if !kind.eq_ignore_ascii_case("reset") && !kind.eq_ignore_ascii_case("button") {
                    let (name, value) = (attributes.or_empty("name"), attributes.or_empty("value"));
                    self.button(&value, &name, &value);
                }
            }
            "textarea" => self.textarea = Some((attributes.or_empty("name"), String::new())),
            "select" => {
                self.end_select();
                let multiple = attributes.get("multiple").is_some();
                self.begin_select(&attributes.or_empty("name"), multiple, false);
            }
            "option" => {
                self.end_option();
                let value = attributes.get("value");
                if let Some(select) = &mut self.select {
                    if attributes.get("selected").is_some() {
                        select.chosen.push(select.element.content.len() + 1);
                    }
                    // Without a value the text is it; that is filled in when the option ends.
                    select.option = Some((value.unwrap_or_else(|| "\0".into()), String::new()));
                }
            }
            _ if is_block(name) => self.flow.end_paragraph(),
            _ => {
                if let Some(style) = style(name) {
                    self.flow.start_style(style);
                }
            }
        }
    }

    fn end(&mut self, name: &str) {
        if let Some((skipped, depth)) = &mut self.skipped {
            if skipped == name {
                *depth -= 1;
                if *depth == 0 {
                    self.skipped = None;
                }
            }
            return;
        }
        match name {
            "title" => self.in_title = false,
            "select" => self.end_select(),
            "option" => self.end_option(),
            "textarea" => {
                if let Some((name, value)) = self.textarea.take() {
                    self.field(&name, "text", &value, None);
                }
            }
            "form" => self.end_form(),
            "a" => self.flow.end_link(),
            "center" => {
                self.flow.end_paragraph();
                self.flow.align(None);
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.flow.end_style(if name <= "h2" { "big" } else { "b" });
                self.flow.end_paragraph();
            }
            "ul" | "ol" | "menu" | "dir" => {
                self.lists.pop();
                self.flow.end_paragraph();
            }
            "pre" => {
                self.verbatim = self.verbatim.saturating_sub(1);
                self.flow.end_paragraph();
            }
            "p" | "li" => self.flow.end_paragraph(),
            _ if is_block(name) => {
                self.end_box();
                self.flow.end_paragraph();
            }
            _ => {
                if let Some(style) = style(name) {
                    self.flow.end_style(style);
                }
            }
        }
    }

    fn text(&mut self, text: &str) {
        if self.skipped.is_some() {
            return;
        }
        if self.in_title {
            self.title.get_or_insert_default().push_str(text);
        } else if let Some((_, value)) = &mut self.textarea {
            value.push_str(text);
        } else if let Some(select) = &mut self.select {
            if let Some((_, label)) = &mut select.option {
                label.push_str(text);
            }
            if select.from_box && !text.trim().is_empty() {
                self.end_box();
            }
        } else if self.verbatim > 0 {
            self.flow.verbatim(text);
        } else {
            self.flow.text(text);
        }
    }

    fn list(&mut self, numbered: Option<usize>) {
        self.flow.end_paragraph();
        if self.lists.len() < 64 {
            self.lists.push(numbered);
        }
    }

    fn input(&mut self, attributes: &Attributes) {
        let (name, value) = (attributes.or_empty("name"), attributes.or_empty("value"));
        match attributes.or_empty("type").to_ascii_lowercase().as_str() {
            "hidden" => {
                if let Some(form) = &mut self.form {
                    form.hidden(&name, &value);
                }
            }
            "submit" => self.button(&value, &name, &value),
            "image" => self.button(&attributes.or_empty("alt"), "", ""),
            "reset" | "button" | "file" => {}
            kind @ ("checkbox" | "radio") => {
                match kind {
                    "radio" => self.begin_radio(&name),
                    _ => self.begin_select(&name, true, true),
                }
                if let Some(select) = &mut self.select {
                    if attributes.get("checked").is_some() {
                        select.chosen.push(1);
                    }
                    select.option = Some((if value.is_empty() { "on".into() } else { value }, String::new()));
                }
            }
            kind => {
                let kind = if kind == "password" { "password" } else { "text" };
                self.field(
                    &name,
                    kind,
                    &value,
                    attributes.get("size").filter(|size| size.parse::<u16>().is_ok()),
                );
            }
        }
    }

    fn button(&mut self, label: &str, name: &str, value: &str) {
        if let Some(form) = &mut self.form {
            form.button(&short(Some(label.to_owned()), "Send"), name, value);
        }
    }

    /// A field for text.
    fn field(&mut self, name: &str, kind: &str, value: &str, size: Option<String>) {
        if name.is_empty() {
            return;
        }
        let variable = self.variable(name);
        let mut input = Element::new("input").with("name", variable);
        if kind == "password" {
            input = input.with("type", "password");
        }
        if !value.is_empty() {
            input = input.with("value", collapsed(value));
        }
        if let Some(size) = size {
            input = input.with("size", size);
        }
        self.flow.element(input);
    }

    fn begin_select(&mut self, name: &str, multiple: bool, from_box: bool) {
        let variable = self.variable(name);
        let mut element = Element::new("select").with("name", variable);
        if multiple {
            element = element.with("multiple", "true");
        }
        let (option, chosen) = (None, Vec::new());
        self.select = Some(Select { element, option, chosen, multiple, from_box, radio: None });
    }

    fn begin_radio(&mut self, name: &str) {
        let known = self.radios.known(name).map(str::to_owned);
        let is_first = known.is_none();
        let variable = known.unwrap_or_else(|| self.variable(name));
        if is_first {
            self.radios.begin(name, &variable);
        }
        let element = Element::new("select").with("name", variable.as_str());
        let (option, chosen, radio) = (None, Vec::new(), Some(Radio { variable, is_first }));
        self.select = Some(Select { element, option, chosen, multiple: false, from_box: true, radio });
    }

    /// A variable for a field of that name, which the form sends.
    fn variable(&mut self, name: &str) -> String {
        let variable = self.names.variable(name);
        if let Some(form) = &mut self.form {
            form.field(name, &variable);
        }
        variable
    }

    fn end_option(&mut self) {
        let Some(select) = &mut self.select else { return };
        let Some((value, label)) = select.option.take() else { return };
        let label = collapsed(&label);
        let value = if value == "\0" { label.clone() } else { value };
        if select.element.content.len() < OPTIONS {
            let mut option = Element::new("option").with("value", value.as_str());
            let shown = if label.is_empty() { value } else { label };
            if !shown.is_empty() {
                option = option.text(shown);
            }
            select.element.content.push(Node::Element(option));
        }
    }

    fn end_select(&mut self) {
        self.end_option();
        let Some(Select { mut element, chosen, multiple, radio, .. }) = self.select.take() else { return };
        if let Some(Radio { variable, is_first }) = radio {
            for option in element.content.drain(..) {
                self.radios.add(&variable, option, !chosen.is_empty(), OPTIONS);
            }
            // It is filled when all buttons are known.
            if is_first {
                self.flow.element(element);
            }
            return;
        }
        if element.content.is_empty() {
            return;
        }
        let kept: Vec<String> =
            chosen.iter().take(if multiple { OPTIONS } else { 1 }).map(ToString::to_string).collect();
        if !kept.is_empty() {
            element = element.with("ivalue", kept.join(";"));
        }
        self.flow.element(element);
    }

    /// The text after a box was its label.
    fn end_box(&mut self) {
        if self.select.as_ref().is_some_and(|select| select.from_box) {
            self.end_select();
        }
    }

    fn end_form(&mut self) {
        self.end_select();
        self.radios.end_form();
        if let Some(form) = self.form.take() {
            self.flow.end_paragraph();
            self.flow.blocks.extend(form.finish(&mut self.names));
        }
    }

    fn finish(mut self) -> Document {
        if let Some((name, value)) = self.textarea.take() {
            self.field(&name, "text", &value, None);
        }
        self.end_form();
        self.flow.end_link();
        self.flow.end_paragraph();
        let mut card = Element::new("card").with("id", "page");
        let title = short(self.title, "");
        if !title.is_empty() {
            card = card.with("title", title);
        }
        if let Some((seconds, address)) = self.refresh {
            // A timer counts tenths of a second (WAP-191, 11.7), and zero would switch it off.
            card = card.with("ontimer", address);
            card = card
                .child(Element::new("timer").with("value", (seconds.saturating_mul(10)).max(1).to_string()));
        }
        self.radios.fill(&mut self.flow.blocks);
        card.content.append(&mut self.flow.blocks);
        Document::new(
            Version::V1_1,
            super::super::WML_1_1.document_type().number,
            Element::new("wml").child(card),
        )
    }
}

/// `5; url=x`.
fn refresh(content: &str) -> Option<(u32, String)> {
    let (seconds, rest) = content.split_once([';', ','])?;
    let at = rest.to_ascii_lowercase().find("url=")?;
    let address = rest[at + 4..].trim().trim_matches(['"', '\'']);
    Some((seconds.trim().parse().ok()?, is_address(address).then(|| address.to_owned())?))
}

/// Whether a phone can go there.
fn is_address(href: &str) -> bool {
    let start: String = href.trim().chars().take(12).collect::<String>().to_ascii_lowercase();
    !href.trim().is_empty()
        && !["javascript:", "data:", "vbscript:"].iter().any(|scheme| start.starts_with(scheme))
}

fn collapsed(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

/// Text for a narrow place.
fn short(text: Option<String>, otherwise: &str) -> String {
    let text = collapsed(&text.unwrap_or_default());
    if text.is_empty() { otherwise.to_owned() } else { text.chars().take(TITLE).collect() }
}

/// The style that shows what an element of a page means.
fn style(name: &str) -> Option<&'static str> {
    Some(match name {
        "b" => "b",
        "i" | "cite" | "var" | "dfn" => "i",
        "u" | "ins" => "u",
        "em" => "em",
        "strong" => "strong",
        "big" => "big",
        "small" => "small",
        _ => return None,
    })
}

/// Whether text before and after an element stands on lines of its own.
fn is_block(name: &str) -> bool {
    matches!(
        name,
        "p" | "div"
            | "section"
            | "article"
            | "aside"
            | "nav"
            | "header"
            | "footer"
            | "main"
            | "address"
            | "blockquote"
            | "dl"
            | "dt"
            | "dd"
            | "tr"
            | "table"
            | "caption"
            | "fieldset"
            | "legend"
            | "figure"
            | "figcaption"
            | "body"
            | "head"
            | "html"
            | "noframes"
            | "details"
            | "summary"
    )
}

//! Forms: fields become inputs and selections with a variable each, and sending them a task with a post field for each.

use std::collections::{BTreeMap, BTreeSet};

use crate::wbxml::{Attribute, Element, Name, Node, Piece};
use crate::wml::variables::{Conversion, extension};

/// Fields of a form; further ones are left out.
const FIELDS: usize = 200;

/// A form that is being read.
pub(super) struct Form {
    action: String,
    post: bool,
    /// Names and values.
    fields: Vec<(String, Piece)>,
    buttons: Vec<Button>,
}

struct Button {
    label: String,
    field: Option<(String, Piece)>,
}

/// Names of variables and buttons that the card uses already: they are the card's, not the form's.
#[derive(Default)]
pub(super) struct Names {
    taken: BTreeSet<String>,
    /// The number to try next behind a name that is taken. No name is free again: a page that repeats one does not begin anew each time.
    next: BTreeMap<String, u32>,
}

impl Names {
    /// A name for a variable that holds the field `name`.
    pub fn variable(&mut self, name: &str) -> String {
        let fine = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let mut base: String = name.chars().take(32).map(fine).collect();
        if !base.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            base.insert(0, '_');
        }
        self.free(&base)
    }

    fn free(&mut self, base: &str) -> String {
        let mut name = base.to_owned();
        while !self.taken.insert(name.clone()) {
            let n = self.next.entry(base.to_owned()).or_insert(2);
            name = format!("{base}_{n}");
            *n += 1;
        }
        name
    }
}

impl Form {
    pub fn new(action: &str, method: &str) -> Form {
        let post = method.eq_ignore_ascii_case("post");
        Form { action: action.to_owned(), post, fields: Vec::new(), buttons: Vec::new() }
    }

    /// A field that the user does not see.
    pub fn hidden(&mut self, name: &str, value: &str) {
        self.push(name, Piece::Text(value.to_owned()));
    }

    /// A field whose value is in `variable`.
    pub fn field(&mut self, name: &str, variable: &str) {
        self.push(name, Piece::Extension(extension(variable, Conversion::None)));
    }

    fn push(&mut self, name: &str, value: Piece) {
        if !name.is_empty() && self.fields.len() < FIELDS {
            self.fields.push((name.to_owned(), value));
        }
    }

    /// A button that sends the form, and maybe a field of its own.
    pub fn button(&mut self, label: &str, name: &str, value: &str) {
        if self.buttons.len() < 8 {
            let field = (!name.is_empty()).then(|| (name.to_owned(), Piece::Text(value.to_owned())));
            self.buttons.push(Button { label: label.to_owned(), field });
        }
    }

    /// What sends the form: a `do` for each button, and one if there is none.
    pub fn finish(mut self, names: &mut Names) -> Vec<Node> {
        if self.buttons.is_empty() {
            self.buttons.push(Button { label: "Send".into(), field: None });
        }
        let send = |button: &Button| {
            let mut go = Element::new("go").with("href", self.action.as_str());
            if self.post {
                go = go.with("method", "post");
            }
            for (name, value) in self.fields.iter().chain(&button.field) {
                go.content.push(Node::Element(postfield(name, value.clone())));
            }
            go
        };
        let mut done = Vec::new();
        for button in &self.buttons {
            // Two of a card may not have the same name, and without one the type would be it.
            let label = if button.label.is_empty() { "Send" } else { &button.label };
            let element = Element::new("do")
                .with("type", "accept")
                .with("name", names.free("send"))
                .with("label", label);
            done.push(Node::Element(element.child(send(button))));
        }
        done
    }
}

fn postfield(name: &str, value: Piece) -> Element {
    let empty = matches!(&value, Piece::Text(text) if text.is_empty());
    let value =
        Attribute { name: Name::Borrowed("value"), value: if empty { Vec::new() } else { vec![value] } };
    let mut field = Element::new("postfield").with("name", name);
    field.attributes.push(value);
    field
}

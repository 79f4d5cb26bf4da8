//! Radio buttons: those of one name in a form are one selection, which stands where the first of them does.

use std::collections::BTreeMap;

use crate::wbxml::{Attribute, Element, Node};

/// All groups of a page, by their variables: a later button may stand in another paragraph than the first.
#[derive(Default)]
pub(super) struct Radios {
    groups: BTreeMap<String, Group>,
    /// The variables of the form that is open, by the names of its buttons.
    open: BTreeMap<String, String>,
}

#[derive(Default)]
struct Group {
    options: Vec<Node>,
    /// The number of the one that is checked.
    chosen: Option<usize>,
}

impl Radios {
    /// The variable of the buttons of that name, if there was one before.
    pub fn known(&self, name: &str) -> Option<&str> {
        self.open.get(name).map(String::as_str)
    }

    /// The first button of a name. One without a name belongs to no other.
    pub fn begin(&mut self, name: &str, variable: &str) {
        if !name.is_empty() {
            self.open.insert(name.to_owned(), variable.to_owned());
        }
    }

    /// A form ends, or begins: the same name is then another group.
    pub fn end_form(&mut self) {
        self.open.clear();
    }

    /// A button with its label, if there are not `most` already.
    pub fn add(&mut self, variable: &str, option: Node, is_checked: bool, most: usize) {
        let group = self.groups.entry(variable.to_owned()).or_default();
        if group.options.len() < most {
            group.options.push(option);
            if is_checked {
                // Of several that are checked a browser shows the last one so.
                group.chosen = Some(group.options.len());
            }
        }
    }

    /// Puts the buttons into the selections that were left empty for them.
    pub fn fill(&mut self, nodes: &mut [Node]) {
        for node in nodes {
            let Node::Element(element) = node else { continue };
            match self.group_of(element) {
                None => self.fill(&mut element.content),
                Some(Group { options, chosen }) => {
                    element.content = options;
                    if let Some(chosen) = chosen {
                        *element = std::mem::take(element).with("ivalue", chosen.to_string());
                    }
                }
            }
        }
    }

    fn group_of(&mut self, element: &Element) -> Option<Group> {
        let variable = element.attribute("name").filter(|_| element.name == "select")?;
        self.groups.remove(Attribute::as_text(variable)?)
    }
}

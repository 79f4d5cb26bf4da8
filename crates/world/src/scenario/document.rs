//! A scenario file that was read but not yet understood: its values, and where each of them stands.

use super::errors::{ScenarioError, line_and_column};
use super::json_text::Unique;
use super::overrides::{self, Override};
use super::read::{Fault, unknown};
use super::registries::Registries;
use super::renamed;
use super::schema::Scenario;
use super::tree::{Entry, Kind, Node, Place, quoted};

/// Larger files are refused: no network that fits into a run needs as much text.
const LARGEST: usize = 8 << 20;

/// A scenario file in TOML, or the JSON that [`Scenario::to_json`] wrote, with the changes of the command line.
///
/// It outlives [`Document::scenario`] so that what is found wrong later, when components are built, can still be
/// shown with its line: [`Document::error`].
#[derive(Clone, Debug, getset::Getters)]
pub struct Document {
    name: String,
    text: String,
    #[getset(get = "pub(super)")]
    root: Node,
    /// What [`Place::Option`] counts: the options as the user typed them.
    options: Vec<String>,
    overrides: Vec<Override>,
    /// Old names of keys that were met.
    renamed: renamed::Met,
}

impl Document {
    /// Reads the octets of the file called `name`. JSON is recognised by its first brace, which no TOML
    /// document begins with.
    pub fn read(name: &str, octets: &[u8]) -> Result<Document, ScenarioError> {
        // Some editors begin a file with a byte order mark.
        let octets = octets.strip_prefix(b"\xef\xbb\xbf").unwrap_or(octets);
        let text = String::from_utf8_lossy(octets);
        let error = |offset: usize, message: String| {
            let (line, column) = line_and_column(&text, offset);
            ScenarioError {
                source: name.to_owned(),
                line: Some(line),
                column: Some(column),
                key: String::new(),
                message,
                choices: Vec::new(),
            }
        };
        if octets.len() > LARGEST {
            let message = format!("the file has {} octets; at most {LARGEST} are read", octets.len());
            return Err(error(0, message));
        }
        if let Err(e) = std::str::from_utf8(octets) {
            let octet = octets.get(e.valid_up_to()).copied().unwrap_or(0);
            return Err(error(e.valid_up_to(), format!("octet {octet:#04x} is not UTF-8 text")));
        }
        if let Some((offset, c)) = text.char_indices().find(|(_, c)| is_binary(*c)) {
            let code = u32::from(c);
            return Err(error(offset, format!("the character U+{code:04X} does not belong in a text file")));
        }
        let mut root = if text.trim_start().starts_with('{') {
            let Unique(value) = serde_json::from_str(&text).map_err(|e| {
                let said = e.to_string();
                let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
                // What is JSON is refused for its keys only.
                let message = if e.is_data() { said.to_owned() } else { format!("not JSON: {said}") };
                ScenarioError {
                    line: u32::try_from(e.line()).ok(),
                    column: u32::try_from(e.column()).ok().map(|c| c.max(1)),
                    ..error(0, message)
                }
            })?;
            Node::from_json(&value)
        } else {
            let table = toml::de::DeTable::parse(&text).map_err(|e| {
                let offset = e.span().map_or(text.len(), |s| s.start);
                let found = e.span().and_then(|s| text.get(s)).unwrap_or("");
                match e.message() {
                    "duplicate key" => error(offset, format!("{} is here twice", quoted(found))),
                    message => error(offset, format!("not TOML: {message}")),
                }
            })?;
            Node::from_toml(&table).map_err(|bad| {
                error(bad.offset, format!("{} is no number that could be used here", quoted(&bad.text)))
            })?
        };
        let mut renamed = renamed::Met::new();
        renamed::below(&mut root, "", &mut renamed);
        let text = text.into_owned();
        Ok(Document { text, renamed, ..Document::made(name, root) })
    }

    /// What its writer should know, though nothing is wrong with it.
    pub fn notes(&self) -> Vec<String> {
        renamed::notes(&self.renamed)
    }

    /// A document made by the program.
    pub(super) fn made(name: &str, root: Node) -> Document {
        let (name, text) = (name.to_owned(), String::new());
        let (options, overrides) = (Vec::new(), Vec::new());
        Document { name, text, root, options, overrides, renamed: renamed::Met::new() }
    }

    /// Makes `--set KEY=VALUE` part of the document. The value is TOML, or the text itself where it is not. Tables on
    /// the way to the key are made as needed; where the file used a short form (`app = "bulk"`, one rate for both
    /// directions) it becomes the table it stands for. A `*` in the key stands for any text in the names that are there:
    /// `links.*.mtu` is set on all links.
    pub fn set(&mut self, registries: &Registries, key: &str, value: &str) -> Result<(), ScenarioError> {
        self.set_as(registries, &format!("--set {key}={value}"), key, value)
    }

    /// The same for a key that the user wrote in another way: errors show `option`.
    pub(super) fn set_as(
        &mut self,
        registries: &Registries,
        option: &str,
        key: &str,
        value: &str,
    ) -> Result<(), ScenarioError> {
        let place = self.option(option.to_owned());
        match overrides::apply(&mut self.root, registries, key, value, place, &mut self.renamed) {
            Ok(done) => {
                self.overrides.extend(done);
                Ok(())
            }
            Err(refused) => Err(self.option_error(refused.message, refused.choices)),
        }
    }

    /// Makes `--outside` part of the document: the real host `outside` behind the far end, unless a host is the way to
    /// the outside world already.
    pub fn set_outside(&mut self) -> Result<(), ScenarioError> {
        let place = self.option("--outside".to_owned());
        if self.hosts().iter().any(is_exit) {
            return Ok(());
        }
        self.add_real_host(place, "outside", "way-out", entry(place, "outside", Kind::Boolean(true)))
    }

    /// Makes `--loopback PORT,..` part of the document: these ports of a real host lead to the same ports of this machine.
    /// It is the host that leads there already, or to the outside world, or `machine` behind the far end.
    pub fn set_loopback(&mut self, ports: &[u16]) -> Result<(), ScenarioError> {
        let listed: Vec<String> = ports.iter().map(u16::to_string).collect();
        let place = self.option(format!("--loopback {}", listed.join(",")));
        let numbers = ports.iter().map(|port| Node::new(Kind::Integer((*port).into()), place));
        let leads = |e: &Entry| e.value.get("loopback").is_some();
        let door =
            self.hosts().iter().find(|e| leads(e)).or_else(|| self.hosts().iter().find(|e| is_exit(e)));
        let Some(door) = door.map(|e| e.key.clone()) else {
            let ports = entry(place, "loopback", Kind::List(numbers.collect()));
            return self.add_real_host(place, "machine", "to-machine", ports);
        };
        let table = self.root.step_mut("hosts").and_then(|hosts| hosts.step_mut(&door));
        let Some(Node { kind: Kind::Table(table), .. }) = table else { return Ok(()) };
        let mut all: Vec<Node> = match table.iter().position(|e| e.key == "loopback") {
            Some(at) => match table.remove(at).value {
                Node { kind: Kind::List(list), .. } => list,
                one => vec![one],
            },
            None => Vec::new(),
        };
        let number = |node: &Node| if let Kind::Integer(n) = node.kind { Some(n) } else { None };
        let new: Vec<Node> =
            numbers.filter(|port| !all.iter().any(|known| number(known) == number(port))).collect();
        all.extend(new);
        table.push(entry(place, "loopback", Kind::List(all)));
        Ok(())
    }

    fn option(&mut self, option: String) -> Place {
        self.options.push(option);
        Place::Option(self.options.len() - 1)
    }

    fn hosts(&self) -> &[Entry] {
        self.root.get("hosts").and_then(Node::entries).unwrap_or(&[])
    }

    /// Adds a real host of this name with one more key, on a wire behind the far end: the last host of the path, or of
    /// the table of hosts.
    fn add_real_host(
        &mut self,
        place: Place,
        name: &str,
        link_name: &str,
        key: Entry,
    ) -> Result<(), ScenarioError> {
        let text = |text: &str| Node::new(Kind::String(text.to_owned()), place);
        let links = self.root.get("links").and_then(Node::entries).unwrap_or(&[]);
        let taken = self.hosts().iter().chain(links).find(|e| e.key == name || e.key == link_name);
        if let Some(taken) = taken {
            let message = format!("a host or link is called `{}` already", taken.key);
            return Err(self.option_error(message, Vec::new()));
        }
        let far = self.hosts().last().map(|e| match e.value.get("count") {
            Some(_) => format!("{}[0]", e.key),
            None => e.key.clone(),
        });
        let mut link = vec![entry(place, "bearer", Kind::String("wireline".to_owned()))];
        match self.root.step_mut("path") {
            Some(Node { kind: Kind::List(path), .. }) => path.extend([text(link_name), text(name)]),
            _ => {
                let ends = [far.as_deref().unwrap_or_default(), name].map(text);
                link.push(entry(place, "between", Kind::List(ends.to_vec())));
            }
        }
        let host = vec![entry(place, "real", Kind::Boolean(true)), key];
        for (table, name, value) in [("hosts", name, host), ("links", link_name, link)] {
            if let Some(Node { kind: Kind::Table(entries), .. }) = self.root.step_mut(table) {
                entries.push(entry(place, name, Kind::Table(value)));
            }
        }
        Ok(())
    }

    /// Makes `--real HOST` part of the document; `HOST` may be one of a group: `mobile[2]`.
    pub fn set_real(&mut self, host: &str) -> Result<(), ScenarioError> {
        let place = self.option(format!("--real {host}"));
        let names: Vec<String> = self.hosts().iter().map(|e| e.key.clone()).collect();
        let (group, index) = match host.strip_suffix(']').and_then(|h| h.split_once('[')) {
            Some((group, index)) => (group, Some(index.parse::<u32>().ok())),
            None => (host, None),
        };
        let table = match self.root.step_mut("hosts").and_then(|h| h.step_mut(group)) {
            Some(Node { kind: Kind::Table(table), .. }) => table,
            Some(_) => {
                return Err(self.option_error(format!("hosts.{group} is not a table"), Vec::new()));
            }
            None => {
                let (message, names) = unknown("host", group, names.iter().map(String::as_str));
                return Err(self.option_error(message, names));
            }
        };
        let real = table.iter().position(|e| e.key == "real");
        let kind = match (index, real.map(|at| &table[at].value.kind)) {
            (None, _) | (_, Some(Kind::Boolean(true))) => Kind::Boolean(true),
            (Some(None), _) => {
                let message = format!("{} has no number in its brackets", quoted(host));
                return Err(self.option_error(message, Vec::new()));
            }
            (Some(Some(index)), before) => {
                let mut list = if let Some(Kind::List(list)) = before { list.clone() } else { Vec::new() };
                if !list.iter().any(|n| matches!(n.kind, Kind::Integer(i) if i == i128::from(index))) {
                    list.push(Node::new(Kind::Integer(index.into()), place));
                }
                Kind::List(list)
            }
        };
        let value = Node::new(kind, place);
        match real {
            Some(at) => table[at].value = value,
            None => table.push(Entry { key: "real".to_owned(), key_place: place, value }),
        }
        Ok(())
    }

    /// The scenario, checked, with all defaults.
    ///
    /// A value of `--set` that could be TOML but is not valid where it stands is tried as text as well, so that
    /// `http=1.1` does what it says although 1.1 is a number.
    pub fn scenario(&mut self, registries: &Registries) -> Result<Scenario, ScenarioError> {
        let mut before: Option<(Place, ScenarioError)> = None;
        let mut tried = 0;
        loop {
            let fault = match super::parse::scenario(&self.root, registries) {
                Ok(scenario) => return Ok(scenario),
                Err(fault) => fault,
            };
            let place = fault.node.place;
            let error = self.located(&fault);
            if let Some((_, first)) = before.take_if(|b| b.0 == place) {
                return Err(first);
            }
            if tried == self.overrides.len() || !overrides::as_text(&mut self.root, &self.overrides, place) {
                return Err(error);
            }
            before = Some((place, error));
            tried += 1;
        }
    }

    /// An error at the value that `path` leads to (`["hosts", "mobile", "app"]`, places in lists as `2` or `[2]`), or as
    /// far as the file goes on that way.
    pub fn error<S: AsRef<str>>(&self, path: &[S], message: impl Into<String>) -> ScenarioError {
        let mut node = &self.root;
        for segment in path {
            match node.step(segment.as_ref()) {
                Some(next) => node = next,
                None => break,
            }
        }
        self.located(&Fault::at(node, message))
    }

    pub(super) fn located(&self, fault: &Fault<'_>) -> ScenarioError {
        let place = fault.key.map_or(fault.node.place, |e| e.key_place);
        let key = self.root.path_to(fault.node).unwrap_or_default();
        let (source, position) = match place {
            Place::Option(number) => (self.options.get(number), None),
            Place::File(offset) => (None, Some(line_and_column(&self.text, offset))),
            Place::Unknown => (None, None),
        };
        let mut message = fault.message.clone();
        // A table of the file may be wrong for what an option has set in it.
        let option = if position.is_some() { fault.node.option_within() } else { None };
        if let Some(option) = option.and_then(|number| self.options.get(number)) {
            message += &format!(" (with {option})");
        }
        ScenarioError {
            source: source.unwrap_or(&self.name).clone(),
            line: position.map(|p| p.0),
            column: position.map(|p| p.1),
            key,
            message,
            choices: fault.choices.clone(),
        }
    }

    /// What is wrong with the last option.
    fn option_error(&self, message: String, choices: Vec<String>) -> ScenarioError {
        ScenarioError {
            source: self.options.last().cloned().unwrap_or_default(),
            line: None,
            column: None,
            key: String::new(),
            message,
            choices,
        }
    }
}

fn entry(place: Place, key: &str, kind: Kind) -> Entry {
    Entry { key: key.to_owned(), key_place: place, value: Node::new(kind, place) }
}

/// Is a host of this table the way to the outside world?
fn is_exit(host: &Entry) -> bool {
    host.value.get("outside").is_some_and(|n| matches!(n.kind, Kind::Boolean(true)))
}

/// Characters that no text file has.
fn is_binary(c: char) -> bool {
    c.is_ascii_control() && !matches!(c, '\t' | '\n' | '\r')
}

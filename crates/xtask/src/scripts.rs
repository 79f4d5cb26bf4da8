//! The page of what the scripts of TCP cover, by standard and section.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Where the scripts are, below the root of the project.
const FOLDER: &str = "crates/tcp/tests/tcp_scripts";

/// A standard or a section in an order that people expect: numbers by value.
type Key = Vec<(u32, String)>;

fn key(text: &str) -> Key {
    let part = |p: &str| (p.parse().unwrap_or(u32::MAX), p.to_owned());
    text.split([' ', '.']).map(part).collect()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, found)?;
        } else if path.extension().is_some_and(|e| e == "script") {
            found.push(path);
        }
    }
    Ok(())
}

/// Standard, section and sentence of a line such as `# RFC 9293 3.4: numbers wrap`.
fn rule(line: &str) -> Option<(String, String, String)> {
    let (source, sentence) = line.strip_prefix("# ")?.split_once(": ")?;
    let (standard, section) = match source.split(' ').collect::<Vec<_>>()[..] {
        ["RFC", number, section] => (format!("RFC {number}"), section.to_owned()),
        ["Linux", section] => ("Linux".to_owned(), section.to_owned()),
        _ => return None,
    };
    Some((standard, section, sentence.to_owned()))
}

/// The page.
pub(crate) fn page() -> io::Result<String> {
    let mut found = Vec::new();
    files(Path::new(FOLDER), &mut found)?;
    let count = found.len();
    let mut rules: BTreeMap<Key, BTreeMap<Key, Vec<[String; 4]>>> = BTreeMap::new();
    for path in found {
        let name = path.strip_prefix(FOLDER).unwrap_or(&path).with_extension("").display().to_string();
        for (standard, section, sentence) in fs::read_to_string(&path)?.lines().filter_map(rule) {
            let sections = rules.entry(key(&standard)).or_default();
            let line = [standard, section.clone(), sentence, name.clone()];
            sections.entry(key(&section)).or_default().push(line);
        }
    }
    let mut page = format!(
        "# What the scripts of TCP show\n\nGenerated from the first lines of the {count} scripts in `{FOLDER}` by \
         `cargo run -p airloom-xtask -- docs`.\nEach is a test of its own: `cargo test -p airloom-tcp --test \
         tcp_scripts NAME`.\nWhat is done of each standard and what is not: `tcp.toml`.\n"
    );
    for sections in rules.into_values() {
        let mut lines: Vec<[String; 4]> = sections
            .into_values()
            .flat_map(|mut lines| {
                lines.sort();
                lines
            })
            .collect();
        let Some(standard) = lines.first().map(|l| l[0].clone()) else { continue };
        let _ = write!(page, "\n## {standard}\n\n| section | rule | script |\n|---|---|---|\n");
        for [_, section, sentence, name] in lines.drain(..) {
            let _ = writeln!(page, "| {section} | {} | `{name}` |", sentence.replace('|', "\\|"));
        }
    }
    Ok(page)
}

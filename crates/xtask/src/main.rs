//! What is generated: the reference pages, the JSON schema of all components and that of scenario files, and the page
//! of what the scripts of TCP show.
//!
//! ```text
//! cargo run -p airloom-xtask -- docs            writes docs/reference and conformance/tcp-scripts.md
//! ```
//!
//! Not here: pages about results and commands, which are made from the Python package (`tools/reference.py`).

mod page;
mod scripts;
mod value;

use std::path::PathBuf;
use std::process::ExitCode;
use std::{fs, io};

use airloom_base::Entry;
use airloom_world::scenario::{Registries, scenario_schema};
use page::{Component, Page};
use serde_json::{Map, Value, json};

/// A registry in the form the pages need.
fn components<B>(registry: &[Entry<B>]) -> Vec<Component> {
    let component = |entry: &Entry<B>| Component {
        name: entry.name,
        schema: (entry.schema)().to_value(),
        // Components with a key that must be given have no table of defaults.
        defaults: (entry.understood)(&json!({})).unwrap_or(Value::Null),
    };
    registry.iter().map(component).collect()
}

fn pages() -> [Page; 4] {
    [
        Page {
            file: "bearers",
            title: "Bearers",
            about: "Links of a scenario: `bearer = \"NAME\"` in a table under `[links]`, beside the keys below.",
            components: components(airloom_bearers::REGISTRY),
        },
        Page {
            file: "transports",
            title: "Transports",
            about: "Protocols of a host: `transport = \"NAME\"` or `transport = { NAME = { key = value } }` in a table \
                    under `[hosts]`, or a list of these.",
            components: components(airloom_transports::REGISTRY),
        },
        Page {
            file: "apps",
            title: "Applications",
            about: "What runs on a host: `app = \"NAME\"` or `app = { NAME = { key = value } }` in a table under \
                    `[hosts]`.",
            components: components(airloom_apps::REGISTRY),
        },
        Page {
            file: "proxies",
            title: "Proxies",
            about: "What stands between others: `proxy = \"NAME\"` or `proxy = { NAME = { key = value } }` in a table \
                    under `[hosts]`.",
            components: components(airloom_proxies::REGISTRY),
        },
    ]
}

/// All generated files, by their path below the root of the project.
fn generated() -> Vec<(PathBuf, String)> {
    let pages = pages();
    let folder = PathBuf::from("docs/reference");
    let mut schemas = Map::new();
    for page in &pages {
        let of_page: Map<String, Value> =
            page.components.iter().map(|c| (c.name.to_owned(), c.schema.clone())).collect();
        schemas.insert(page.file.to_owned(), of_page.into());
    }
    let schema = serde_json::to_string_pretty(&schemas).expect("a value can be written") + "\n";
    let mut files: Vec<_> =
        pages.iter().map(|page| (folder.join(page.file).with_extension("md"), page.render())).collect();
    files.push((folder.join("components.schema.json"), schema));
    let schema = scenario_schema(&Registries::built_in());
    let schema = serde_json::to_string_pretty(&schema).expect("a value can be written") + "\n";
    files.push((folder.join("scenario.schema.json"), schema));
    let page = scripts::page().expect("the scripts can be read");
    files.push((PathBuf::from("conformance/tcp-scripts.md"), page));
    files
}

fn write() -> io::Result<()> {
    for (path, text) in generated() {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&path, text)?;
        println!("{}", path.display());
    }
    Ok(())
}

/// Paths are those below the project's root, wherever this is run from.
fn enter_root() -> io::Result<()> {
    std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["docs"] => match enter_root().and_then(|()| write()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => {
                eprintln!("{e}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("usage: cargo run -p airloom-xtask -- docs");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_pages_are_up_to_date() {
        enter_root().unwrap();
        for (path, text) in generated() {
            let there = fs::read_to_string(&path).unwrap_or_default();
            assert!(there == text, "{} is out of date: `make docs` writes it", path.display());
        }
    }
}

//! Page sets: pages out of a file, which `airloom pages` makes of a model, of a HAR file or of a folder.
//!
//! A set is a JSON file:
//!
//! ```json
//! { "format": "airloom page set 1", "title": "...", "source": "...",
//!   "pages": [{ "name": "...", "objects": [{ "path": "/", "server": "www", "size": "23456B", "changes": true }] }] }
//! ```
//!
//! Its objects are those of `pages` in a scenario, but each says its size: it is asked for as `path?octets=23456`, which makes the
//! simulated `http-server` send that many octets, and is nothing to a server of files.

use std::fs;
use std::sync::{Arc, LazyLock};

use airloom_base::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Detailed, Object};

/// What the first line of a set says.
const FORMAT: &str = "airloom page set 1";

/// Larger files are refused.
const LARGEST: u64 = 64 << 20;

/// Most objects of one page.
const MOST_OBJECTS: usize = 10_000;

/// The sets that are built in, by name.
static BUILT_IN: [(&str, LazyLock<PageSet>); 1] =
    [("news-2004", LazyLock::new(|| PageSet::built_in("news-2004", include_str!("news-2004.json"))))];

/// Pages out of a file, or a set that is built in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Form", into = "Form")]
pub struct PageSet {
    /// Its name, if it is built in.
    name: Option<String>,
    file: Arc<File>,
}

/// How a set stands in a scenario.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Form {
    /// `"news-2004"`, or the name of a file.
    Name(String),
    /// What is in the file: a run can be repeated without it.
    Inline(Box<File>),
}

/// A file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct File {
    /// `"airloom page set 1"`.
    format: String,
    /// What it is.
    #[serde(default)]
    title: String,
    /// Where it comes from.
    #[serde(default)]
    source: String,
    /// Its pages, in the order in which they are visited.
    pages: Vec<Page>,
}

/// A page of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Page {
    /// For people.
    #[serde(default)]
    name: String,
    /// Its objects; the first names the others unless they say otherwise.
    objects: Vec<Detailed>,
}

impl From<PageSet> for Form {
    fn from(set: PageSet) -> Form {
        match set.name {
            Some(name) => Form::Name(name),
            None => Form::Inline(Box::new(File::clone(&set.file))),
        }
    }
}

impl TryFrom<Form> for PageSet {
    type Error = String;

    fn try_from(form: Form) -> Result<PageSet, String> {
        match form {
            Form::Inline(file) => checked(&file).map(|()| PageSet { name: None, file: file.into() }),
            Form::Name(name) => match BUILT_IN.iter().find(|(known, _)| *known == name) {
                Some((_, set)) => Ok((**set).clone()),
                None => PageSet::read(&name),
            },
        }
    }
}

impl PageSet {
    /// A set that is built in; that it can be read is tested.
    fn built_in(name: &str, text: &str) -> PageSet {
        let file = serde_json::from_str(text).unwrap_or_else(|_| File {
            format: FORMAT.to_owned(),
            title: String::new(),
            source: String::new(),
            pages: Vec::new(),
        });
        PageSet { name: Some(name.to_owned()), file: Arc::new(file) }
    }

    fn read(name: &str) -> Result<PageSet, String> {
        let built_in = BUILT_IN.each_ref().map(|(name, _)| *name).join(", ");
        let about = fs::metadata(name)
            .map_err(|error| format!("{name}: {error}; a page set is a file, or one of: {built_in}"))?;
        if !about.is_file() {
            return Err(format!("{name}: this is no file"));
        }
        if about.len() > LARGEST {
            return Err(format!("{name}: {} octets; at most {LARGEST} are read", about.len()));
        }
        let text = fs::read_to_string(name).map_err(|error| format!("{name}: {error}"))?;
        // The error ends with line and column.
        let file: File = serde_json::from_str(&text).map_err(|error| format!("{name}: {error}"))?;
        checked(&file).map_err(|error| format!("{name}: {error}"))?;
        Ok(PageSet { name: None, file: Arc::new(file) })
    }

    /// The pages to be visited, all of them if `visit` is empty; pages are counted from 1.
    pub(crate) fn pages(&self, visit: &[u32]) -> Result<Vec<Vec<Object>>, ConfigError> {
        let all = &self.file.pages;
        let numbers: Vec<usize> = match visit {
            [] => (0..all.len()).collect(),
            some => some.iter().map(|n| (*n as usize).wrapping_sub(1)).collect(),
        };
        if let Some(wrong) = numbers.iter().find(|n| **n >= all.len()) {
            let message = format!("there is no page {}: the set has {}", wrong.wrapping_add(1), all.len());
            return Err(ConfigError::at("visit", message));
        }
        Ok(numbers.into_iter().map(|n| all[n].objects.iter().map(sized).collect()).collect())
    }
}

/// The object as it is asked for: its address says how large it is.
fn sized(object: &Detailed) -> Object {
    let mut object = object.clone();
    if let Some(size) = object.size {
        let mark = if object.path.contains('?') { '&' } else { '?' };
        object.path = format!("{}{mark}octets={}", object.path, size.0);
    }
    Object::Detailed(object)
}

fn checked(file: &File) -> Result<(), String> {
    if file.format != FORMAT {
        return Err(format!("format {:?}; this version reads {FORMAT:?}", short(&file.format)));
    }
    if file.pages.is_empty() {
        return Err("a page set has at least one page".to_owned());
    }
    for (n, page) in file.pages.iter().enumerate() {
        let number = n + 1;
        if page.objects.is_empty() || page.objects.len() > MOST_OBJECTS {
            return Err(format!("page {number} has {} objects; 1 to {MOST_OBJECTS}", page.objects.len()));
        }
        if let Some(object) = page.objects.iter().find(|object| object.size.is_none()) {
            return Err(format!("page {number}: {:?} has no size", short(&object.path)));
        }
    }
    Ok(())
}

/// The beginning of a text, for messages.
fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn set(value: serde_json::Value) -> Result<PageSet, String> {
        serde_json::from_value(value).map_err(|error| error.to_string())
    }

    #[test]
    fn objects_say_their_size_in_their_address() {
        let objects =
            json!([{ "path": "/", "size": "20kB", "changes": true }, { "path": "/a?b", "size": "45B" }]);
        let page = json!({ "format": FORMAT, "pages": [{ "objects": objects }] });
        let pages = set(page).unwrap().pages(&[1, 1]).unwrap();
        assert_eq!(pages.len(), 2);
        assert_eq!(pages[1][0].target(4), "/?octets=20000&visit=5");
        assert_eq!(pages[1][1].target(4), "/a?b&octets=45");
    }

    #[test]
    fn the_set_that_is_built_in_is_one() {
        let set = set(json!("news-2004")).unwrap();
        assert!(checked(&set.file).is_ok());
        assert_eq!(set.pages(&[]).unwrap().len(), 135);
        assert_eq!(set.pages(&[135]).unwrap().len(), 1);
        assert_eq!(set.pages(&[0]).err().unwrap().path, ["visit"]);
        assert!(set.pages(&[136]).is_err());
        // A run keeps its name, not what is in it.
        assert_eq!(serde_json::to_value(&set).unwrap(), json!("news-2004"));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_in_one_line() {
        let file = std::env::temp_dir().join(format!("airloom-pages-{}.json", std::process::id()));
        let name = file.to_str().unwrap().to_owned();
        let page =
            |objects: &str| format!("{{\"format\": \"{FORMAT}\", \"pages\": [{{\"objects\": {objects}}}]}}");
        let wrong = [
            (String::new(), "EOF while parsing"),
            ("[1]".into(), "invalid"),
            ("{\"format\": \"x\", \"pages\": []}".into(), "this version reads"),
            (format!("{{\"format\": \"{FORMAT}\", \"pages\": []}}"), "at least one page"),
            (page("[]"), "page 1 has 0 objects"),
            (page("[{\"path\": \"/x\"}]"), "page 1: \"/x\" has no size"),
            (page("[{\"path\": \"/x\", \"size\": \"1 apple\"}]"), "line 1"),
            (page("[{\"path\": \"/x\", \"colour\": 1}]"), "unknown field `colour`"),
        ];
        for (text, says) in wrong {
            fs::write(&file, &text).unwrap();
            let error = PageSet::read(&name).unwrap_err();
            assert!(error.starts_with(&name) && error.contains(says) && !error.contains('\n'), "{error}");
        }
        fs::write(&file, page("[{\"path\": \"/x\", \"size\": \"1kB\"}]")).unwrap();
        assert_eq!(PageSet::read(&name).unwrap().pages(&[]).unwrap().len(), 1);
        fs::remove_file(&file).unwrap();
        assert!(PageSet::read("/no/such/set").unwrap_err().contains("news-2004"));
    }
}

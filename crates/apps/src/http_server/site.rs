//! What is at which path.

use std::fmt::Write;

use airloom_base::random;
use airloom_base::units::Octets;
use bytes::Bytes;

use super::Config;
use super::documents::{self, Kind};

/// What a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Object {
    /// So many octets of a filler.
    Filler {
        /// Which one.
        source: u32,
        /// How many.
        size: u64,
    },
    /// Octets written out.
    Text(Bytes),
}

/// The object at `path` (with or without a query), and its media type.
pub(super) fn find(config: &Config, path: &[u8]) -> Option<(Object, &'static str)> {
    let path = std::str::from_utf8(path).ok()?;
    let path = path.split('#').next().unwrap_or_default();
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    // What belongs to a page set says how large it is.
    if let Some(octets) = query.split('&').find_map(|word| word.strip_prefix("octets=")) {
        let source = random::derive(0, path) as u32;
        return Some((Object::Filler { source, size: size(octets)? }, media_type(path)));
    }
    let size = match config.objects.get(path) {
        Some(size) => size.0,
        None if path == "/" => return Some((Object::Text(index(config)), "text/html")),
        None => size(without_ending(path.strip_prefix('/')?))?,
    };
    let media = media_type(path);
    // What the table gives a size has that size; a page of XHTML is as long as its deck and the difference of their frames.
    let kind = kind(media).filter(|kind| *kind != Kind::Xhtml || !config.objects.contains_key(path));
    if let Some(kind) = kind
        && let Some(document) = documents::make(kind, path, size)
    {
        return Some((Object::Text(document.into()), media));
    }
    // The octets depend on the path alone, not on the run.
    let source = random::derive(0, path) as u32;
    Some((Object::Filler { source, size }, media))
}

/// `10kB.wml` -> `10kB`: endings that say what kind of document is wanted.
fn without_ending(text: &str) -> &str {
    [".wml", ".xhtml", ".html"].into_iter().find_map(|ending| text.strip_suffix(ending)).unwrap_or(text)
}

/// Of what is written out as a document, if there is room for one.
fn kind(media: &str) -> Option<Kind> {
    match media {
        "text/vnd.wap.wml" => Some(Kind::Wml),
        "text/html" => Some(Kind::Html),
        XHTML => Some(Kind::Xhtml),
        _ => None,
    }
}

/// The largest object that a path or a query can ask for: 1 TB.
const MOST: u64 = 1_000_000_000_000;

/// `10240` or `200kB`.
fn size(text: &str) -> Option<u64> {
    let number = text.parse().ok().filter(|_| !text.starts_with('+'));
    number.or_else(|| text.parse::<Octets>().ok().map(|n| n.0)).filter(|size| *size <= MOST)
}

/// The type of XHTML Mobile Profile (WAP-277).
const XHTML: &str = "application/vnd.wap.xhtml+xml";

fn media_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html" | "htm") => "text/html",
        Some("xhtml") => XHTML,
        Some("wml") => "text/vnd.wap.wml",
        Some("css") => "text/css",
        Some("js") => "text/javascript",
        Some("png") => "image/png",
        Some("gif") => "image/gif",
        Some("jpg" | "jpeg") => "image/jpeg",
        _ => "application/octet-stream",
    }
}

/// Most objects the index lists.
const LISTED: usize = 1000;

fn index(config: &Config) -> Bytes {
    let mut page = String::from(
        "<!doctype html>\n<title>airloom</title>\n<p>/&lt;size&gt; gives that many octets, for example \
         <a href=\"/200kB\">/200kB</a> or <a href=\"/10240\">/10240</a>; /&lt;size&gt;.html gives a page \
         (<a href=\"/5kB.html\">/5kB.html</a>), /&lt;size&gt;.wml a deck.\n",
    );
    for (path, size) in config.objects.iter().take(LISTED) {
        let path: String = path
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "/-._~?=%".contains(c) { c } else { '_' })
            .collect();
        // Writing to a string cannot fail.
        let _ = writeln!(page, "<li><a href=\"{path}\">{path}</a> {size}");
    }
    page.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filler_size(path: &str) -> Option<u64> {
        match find(&Config::default(), path.as_bytes())?.0 {
            Object::Filler { size, .. } => Some(size),
            Object::Text(_) => None,
        }
    }

    #[test]
    fn a_path_may_be_a_size() {
        assert_eq!(filler_size("/10240"), Some(10_240));
        assert_eq!(filler_size("/200kB"), Some(200_000));
        assert_eq!(filler_size("/1MiB?again"), Some(1_048_576));
        assert_eq!(filler_size("/0"), Some(0));
        for none in ["/-1", "/+1", "/1 MB x", "/none", "//1", "1", "", "*", "/99999999999999999999MB"] {
            assert_eq!(filler_size(none), None, "{none}");
        }
    }

    #[test]
    fn nothing_is_larger_than_a_terabyte() {
        assert_eq!(filler_size("/1000000000000"), Some(1_000_000_000_000));
        for none in ["/1000000000001", "/1001GB", "/18446744073709551615", "/1000000000001.html"] {
            assert_eq!(filler_size(none), None, "{none}");
        }
    }

    #[test]
    fn a_query_may_say_the_size() {
        assert_eq!(filler_size("/a/b.gif?octets=45"), Some(45));
        assert_eq!(filler_size("/?x=1&octets=2000&visit=3"), Some(2000));
        assert_eq!(filler_size("/10?octets=-1"), None);
        assert_eq!(filler_size("/10?octets=1000000000001"), None);
        assert_eq!(find(&Config::default(), b"/x.html?octets=9").unwrap().1, "text/html");
    }

    #[test]
    fn a_page_of_xhtml_from_the_table_has_the_size_it_is_given() {
        let objects = [("/a.xhtml".to_owned(), Octets(1_015))].into();
        let config = Config { objects, ..Config::default() };
        let (object, media) = find(&config, b"/a.xhtml").unwrap();
        assert!(matches!(object, Object::Filler { size: 1_015, .. }));
        assert_eq!(media, XHTML);
        assert!(
            matches!(find(&config, b"/1000B.xhtml"), Some((Object::Text(text), _)) if text.len() == 1_053)
        );
    }

    #[test]
    fn an_ending_gives_a_document_of_that_size() {
        for (path, media) in [("/10kB.wml", "text/vnd.wap.wml"), ("/10kB.html?x", "text/html")] {
            let (Object::Text(text), found) = find(&Config::default(), path.as_bytes()).unwrap() else {
                panic!("{path} is text")
            };
            assert_eq!((text.len(), found), (10_000, media));
        }
        // No room for a frame, or too large to be written out: filler of the same type.
        for path in ["/10.wml", "/50MB.html"] {
            assert!(matches!(find(&Config::default(), path.as_bytes()).unwrap().0, Object::Filler { .. }));
        }
        assert!(find(&Config::default(), b"/x.wml").is_none());
        assert!(find(&Config::default(), b"/10.wml.wml").is_none());
        let mut config = Config::default();
        config.objects.insert("/start.wml".into(), Octets(777));
        assert!(matches!(find(&config, b"/start.wml").unwrap().0, Object::Text(text) if text.len() == 777));
    }

    #[test]
    fn the_table_comes_first_and_octets_depend_on_the_path_only() {
        let mut config = Config::default();
        config.objects.insert("/a.png".into(), Octets(7));
        config.objects.insert("/10".into(), Octets(99));
        let (object, media) = find(&config, b"/a.png").unwrap();
        assert_eq!(media, "image/png");
        assert!(matches!(object, Object::Filler { size: 7, .. }));
        assert!(matches!(find(&config, b"/10").unwrap().0, Object::Filler { size: 99, .. }));
        assert_eq!(find(&config, b"/a.png?x").unwrap().0, object);
        let (Object::Text(page), _) = find(&config, b"/").unwrap() else { panic!("the index is text") };
        assert!(std::str::from_utf8(&page).unwrap().contains("/a.png"));
    }
}

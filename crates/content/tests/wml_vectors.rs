//! Documents against what two other encoders make of them; `data/wml/README.md` says which.

use std::path::{Path, PathBuf};

use airloom_content::markup;
use airloom_content::wbxml::{Document, Element, Limits, Node, Piece};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/wml")
}

fn names() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(data())
        .expect("test data")
        .filter_map(|entry| {
            Some(entry.expect("listed").file_name().to_str()?.strip_suffix(".wml")?.to_owned())
        })
        .collect();
    names.sort();
    assert_eq!(names.len(), 31, "the documents are there");
    names
}

fn read(name: &str, suffix: &str) -> Option<Vec<u8>> {
    std::fs::read(data().join(format!("{name}.{suffix}"))).ok()
}

const THEIRS: [&str; 3] = ["wbxml", "nostrtbl.wbxml", "kannel.wbxml"];

/// Names and texts with white space normalised: runs are one space, none stands beside a tag.
fn normal(document: &Document) -> String {
    fn element(e: &Element, out: &mut String) {
        *out = out.trim_end().to_owned();
        out.push_str(&format!("<{}", e.name));
        for a in &e.attributes {
            out.push_str(&format!(" {}={:?}", a.name, a.value));
        }
        out.push('>');
        for node in &e.content {
            match node {
                Node::Element(child) => element(child, out),
                Node::Piece(Piece::Text(text)) => {
                    for c in text.chars() {
                        let c = if matches!(c, ' ' | '\t' | '\n' | '\r') { ' ' } else { c };
                        if c != ' ' || !out.ends_with([' ', '>']) {
                            out.push(c);
                        }
                    }
                }
                other => out.push_str(&format!("{other:?}")),
            }
        }
        *out = out.trim_end().to_owned();
        out.push_str("</>");
    }
    let mut out = String::new();
    element(&document.root, &mut out);
    out
}

fn decode(octets: &[u8]) -> Document {
    markup::decode(octets, Limits::default()).expect("other encoders' output is readable")
}

#[test]
fn everything_that_others_wrote_is_read() {
    let mut read_in_all = 0;
    for name in names() {
        for octets in THEIRS.iter().filter_map(|kind| read(&name, kind)) {
            let document = decode(&octets);
            assert_eq!(document.root.name, "wml", "{name}");
            read_in_all += 1;
        }
    }
    assert_eq!(read_in_all, 78);
}

/// Where another encoder changes what the deck says, and how.
const THEY_DIFFER: &[(&str, &str, &str)] = &[
    ("08-entities", "wbxml", "entities that no DTD declares are lost"),
    ("08-entities", "nostrtbl.wbxml", "the same"),
    ("10-variables-in-attributes", "wbxml", "variables are left as text, which no phone replaces"),
    ("10-variables-in-attributes", "nostrtbl.wbxml", "the same"),
    ("36-class-id-lang", "wbxml", "xml:lang under a name that no reader knows"),
    ("36-class-id-lang", "kannel.wbxml", "the same"),
    ("52-bad-variable", "kannel.wbxml", "text that is no variable becomes a variable"),
];

#[test]
fn ours_means_what_theirs_means() {
    let mut same = 0;
    for name in names() {
        let wml = read(&name, "wml").expect("listed");
        let Ok(ours) = markup::compile(&wml, None, None) else { continue };
        let ours = normal(&decode(&ours.octets));
        for kind in THEIRS {
            let Some(theirs) = read(&name, kind) else { continue };
            let theirs = normal(&decode(&theirs));
            let differ = THEY_DIFFER.iter().any(|d| (d.0, d.1) == (&name, kind));
            assert_eq!(theirs != ours, differ, "{name}.{kind}:\n{ours}\n{theirs}");
            same += usize::from(!differ);
        }
    }
    assert_eq!(same, 71);
}

#[test]
fn documents_without_repetition_variables_and_space_at_styles_are_the_same_octets() {
    let both =
        ["06-minimal", "12-table", "14-select-multiple", "16-do-types", "18-template", "26-unicode-utf8"];
    let both = both.into_iter().chain(["34-wml12-attrs", "40-deep-nesting", "50-bad-unknown-attribute"]);
    let both = both.flat_map(|name| [(name, "wbxml"), (name, "kannel.wbxml")]);
    // Alone: what the other one refuses, loses, calls by another number, or fills with space.
    let kannel =
        ["08-entities", "42-system-doctype", "44-phonecom-doctype"].map(|name| (name, "kannel.wbxml"));
    let libwbxml = ["28-utf16", "30-comments-pi", "52-bad-variable"].map(|name| (name, "wbxml"));
    for (name, kind) in both.chain(kannel).chain(libwbxml) {
        let ours = markup::compile(&read(name, "wml").expect("there"), None, None).expect("a deck").octets;
        let theirs = read(name, kind).expect("there");
        assert_eq!(ours[1..], theirs[1..], "{name}.{kind}: all but the version");
    }
}

#[test]
fn ours_is_never_larger_than_theirs_unless_they_leave_something_out() {
    for name in names() {
        let Ok(ours) = markup::compile(&read(&name, "wml").expect("listed"), None, None) else { continue };
        for kind in THEIRS {
            let less = THEY_DIFFER.iter().any(|d| (d.0, d.1) == (&name, kind))
                // Space between words and beside styled words, which they drop.
                || matches!(&name[..], "24-anchor-nested")
                || (name == "20-text-styles" && kind != "kannel.wbxml")
                // A number of two octets, where libwbxml says 1.0.
                || (name == "44-phonecom-doctype" && kind != "kannel.wbxml");
            if let Some(theirs) = read(&name, kind).filter(|_| !less) {
                assert!(
                    ours.octets.len() <= theirs.len(),
                    "{name}.{kind}: {} > {}",
                    ours.octets.len(),
                    theirs.len()
                );
            }
        }
    }
}

#[test]
fn a_deck_that_is_not_well_formed_says_where() {
    let why = |name| {
        markup::compile(&read(name, "wml").expect("there"), None, None).expect_err("refused").to_string()
    };
    assert_eq!(why("48-bad-truncated"), "line 1, column 136: the document ends inside an element");
    assert_eq!(why("54-bad-empty"), "line 1, column 1: the document has no element");
    assert_eq!(why("56-bad-nul"), "line 3, column 24: the character U+0000 may not stand in XML");
    for (deck, expected) in [
        ("<wml>\n<card>\n </p>", "line 3, column 2: "),
        ("<wml a='1' a='2'/>", "line 1, column 1: the attribute `a` of element `wml` is given twice"),
        ("<wml/>\n<wml/>", "line 2, column 1: a second element beside the outermost one"),
        ("<wml/> x", "line 1, column 8: text outside of the outermost element"),
        ("<wml>\n&nosuch;</wml>", "line 2, column 1: the entity `&nosuch;` is not known"),
        ("<wml>\nAT&T</wml>", "line 2, column 3: a reference begins with `&` and has no `;`"),
        ("<wml><card title=\"a & b\"/></wml>", "line 1, column 6: in element `card`: a reference begins"),
        (&"<b>".repeat(200), "line 1, column 385: more than 128 elements inside each other"),
    ] {
        let why = markup::compile(deck.as_bytes(), None, None).expect_err(deck).to_string();
        assert!(why.starts_with(expected), "{deck}: {why}");
    }
}

#[test]
fn what_is_odd_is_kept_and_told() {
    let wml = read("50-bad-unknown-attribute", "wml").expect("there");
    let warnings = markup::compile(&wml, None, None).expect("a deck").warnings;
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "line 3, column 6: the attribute `colour` of element `card` has no token",
            "line 3, column 32: the attribute `data-x` of element `p` has no token",
        ]
    );
}

#[test]
fn decompiled_documents_compile_to_the_same_octets() {
    for name in names() {
        let Ok(ours) = markup::compile(&read(&name, "wml").expect("listed"), None, None) else { continue };
        let text = markup::decompile(&ours.octets, Limits::default()).expect("our own");
        let again = markup::compile(text.as_bytes(), None, None).expect("our own");
        assert_eq!(again.octets, ours.octets, "{name}:\n{text}");
    }
}

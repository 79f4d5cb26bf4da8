//! Random documents come back from their encoded and from their written form; random octets do no harm.

use airloom_content::markup;
use airloom_content::wbxml::{
    Attribute, Document, Element, Extension, Limits, Name, Node, Options, Piece, PublicId, Version,
};
use airloom_testkit::cases;
use airloom_wire::charset::{ISO_8859_1, UTF_8, UTF_16BE};
use proptest::prelude::*;

fn name(of: &'static [&'static str]) -> impl Strategy<Value = Name> {
    prop_oneof![8 => proptest::sample::select(of).prop_map(Name::Borrowed), 1 => "[a-z]{1,6}".prop_map(Name::Owned)]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "(gateway |radio |link |network,? |[a-z]{1,3} ?|http://|www\\.|\\.com/){1,12}",
        2 => "[ -~\u{a0}-\u{17f}\u{20ac}\u{10000}-\u{10010}]{1,12}",
        1 => "\\PC{1,4}",
    ]
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let extension =
        |number| "[a-z]{1,5}".prop_map(move |t| Piece::Extension(Extension { number, text: Some(t) }));
    let alone = (0..3u8).prop_map(|number| Piece::Extension(Extension { number, text: None }));
    let piece = prop_oneof![
        8 => text().prop_map(Piece::Text),
        2 => (0..3u8).prop_flat_map(extension),
        1 => alone,
        1 => proptest::collection::vec(any::<u8>(), 0..6).prop_map(Piece::Opaque),
    ];
    proptest::collection::vec(piece, 0..4).prop_map(joined)
}

/// No text beside text, as in every tree that was read.
fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (&piece, out.last_mut()) {
            (Piece::Text(more), Some(Piece::Text(text))) => text.push_str(more),
            _ => out.push(piece),
        }
    }
    out
}

fn attribute() -> impl Strategy<Value = Attribute> {
    (name(&["id", "href", "type", "align", "title", "src", "xml:lang", "enctype", "ordered"]), pieces())
        .prop_map(|(name, value)| Attribute { name, value })
}

fn element() -> impl Strategy<Value = Element> {
    let names: &[&str] = &["wml", "card", "p", "b", "br", "a", "go", "do", "pre", "select", "option"];
    let leaf = (name(names), proptest::collection::vec(attribute(), 0..3))
        .prop_map(|(name, attributes)| Element { name, attributes, content: Vec::new() });
    leaf.prop_recursive(5, 40, 5, move |inner| {
        let node = prop_oneof![
            3 => inner.prop_map(|e| vec![Node::Element(e)]),
            3 => pieces().prop_map(|p| p.into_iter().map(Node::Piece).collect()),
            1 => attribute().prop_map(|i| vec![Node::Instruction(i)]),
        ];
        let content = proptest::collection::vec(node, 0..5).prop_map(|nodes| {
            let mut content: Vec<Node> = Vec::new();
            for node in nodes.into_iter().flatten() {
                match (&node, content.last_mut()) {
                    (Node::Piece(Piece::Text(more)), Some(Node::Piece(Piece::Text(text)))) => {
                        text.push_str(more)
                    }
                    _ => content.push(node),
                }
            }
            content
        });
        (name(names), proptest::collection::vec(attribute(), 0..3), content)
            .prop_map(|(name, attributes, content)| Element { name, attributes, content })
    })
}

fn document() -> impl Strategy<Value = Document> {
    let version = proptest::sample::select(&[Version::V1_1, Version::V1_2, Version::V1_3][..]);
    let id = prop_oneof![
        proptest::sample::select(&[0x04, 0x09, 0x0A, 0x1108][..]).prop_map(PublicId::Number),
        Just(PublicId::Text("-//WAPFORUM//DTD WML 1.3//EN".into())),
    ];
    let charset = proptest::sample::select(&[UTF_8, ISO_8859_1, UTF_16BE][..]);
    (version, id, charset, element()).prop_map(|(version, public_id, charset, root)| Document {
        version,
        public_id,
        charset,
        root,
    })
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn a_document_comes_back_from_its_tokens(document in document(), string_table in any::<bool>()) {
        // Names of variables cannot be written in a set that lacks their characters; here they are ASCII.
        let octets = markup::encode(&document, Options { string_table }).expect("can be written");
        prop_assert_eq!(markup::decode(&octets, Limits::default()).expect("our own"), document);
    }

    #[test]
    fn the_string_table_never_makes_a_document_longer(document in document()) {
        let with = markup::encode(&document, Options { string_table: true }).expect("can be written");
        let without = markup::encode(&document, Options { string_table: false }).expect("can be written");
        prop_assert!(with.len() <= without.len(), "{} > {}", with.len(), without.len());
    }

    #[test]
    fn what_is_written_as_text_settles(document in document()) {
        // The first reading takes space away that means nothing; after that nothing changes any more.
        let text = markup::write(&document);
        let Ok(once) = markup::parse(text.as_bytes(), None) else {
            return Err(TestCaseError::fail(format!("our own text is no document: {text}")));
        };
        let again = markup::parse(markup::write(&once.document).as_bytes(), None).expect("our own");
        prop_assert_eq!(&again.document, &once.document);
        prop_assert!(once.document.root.attributes.len() <= document.root.attributes.len());
        let octets = markup::encode(&once.document, Options::default()).expect("can be written");
        prop_assert_eq!(&markup::decode(&octets, Limits::default()).expect("our own").root, &once.document.root);
    }

    #[test]
    fn random_octets_do_no_harm(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = markup::decode(&octets, Limits::default());
        let _ = markup::parse(&octets, None);
    }

    #[test]
    fn damaged_documents_do_no_harm(document in document(), at in any::<u16>(), with in any::<u8>(), cut in any::<bool>()) {
        let mut octets = markup::encode(&document, Options::default()).expect("can be written");
        let at = usize::from(at) % octets.len();
        octets[at] = with;
        octets.truncate(if cut { at } else { octets.len() });
        if let Ok(document) = markup::decode(&octets, Limits::default()) {
            let _ = markup::parse(markup::write(&document).as_bytes(), None);
        }
    }
}

#[test]
fn a_document_that_unfolds_too_far_is_refused() {
    // A table of 16 kB named by every three octets.
    let mut octets = vec![0x03, 0x04, 0x6A, 0x81, 0x80, 0x00];
    octets.extend(std::iter::repeat_n(b'a', 16_383).chain([0]));
    octets.push(0x7F);
    octets.extend(std::iter::repeat_n([0x83, 0x00], 30_000).flatten());
    octets.push(0x01);
    let small = Limits { size: 1 << 20, depth: 128 };
    let why = markup::decode(&octets, small).expect_err("16 kB x 30,000").to_string();
    assert!(why.ends_with("unfolds to more than is allowed"), "{why}");
    let deep: Vec<u8> =
        [0x03, 0x04, 0x6A, 0x00].into_iter().chain(std::iter::repeat_n(0x7F, 100_000)).collect();
    let why = markup::decode(&deep, Limits::default()).expect_err("too deep").to_string();
    assert!(why.ends_with("nested too deeply"), "{why}");
}

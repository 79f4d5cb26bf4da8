//! Documents and headers of WAP.

/// Documents and headers of WAP, in all their forms; what was read can be written and is read again as the same.
pub fn wap(octets: &[u8]) {
    use airloom_content::markup;
    use airloom_content::wbxml::{Limits, Options};
    use airloom_content::wml::html;
    use airloom_transports::wsp::headers::{Encoder, Pages, decode, decode_content_type};

    let limits = Limits { size: 1 << 20, depth: 64 };
    let with_header = [&[0x03, 0x04, 0x6A, 0x03, b'a', b'b', 0][..], octets].concat();
    for octets in [octets, &with_header] {
        if let Ok(document) = markup::decode(octets, limits) {
            let _ = markup::parse(markup::write(&document).as_bytes(), None);
            if let Ok(again) = markup::encode(&document, Options::default()) {
                assert_eq!(
                    markup::decode(&again, Limits::default()).as_ref(),
                    Ok(&document),
                    "what was read is written"
                );
            }
        }
    }
    if let Ok(compiled) = markup::compile(octets, None, None) {
        assert!(markup::decode(&compiled.octets, Limits::default()).is_ok(), "our own output is readable");
    }
    let deck = markup::write(&html::convert(octets, None));
    assert!(markup::parse(deck.as_bytes(), None).is_ok(), "every page becomes a deck");

    let mut pages = Pages::new();
    pages.add(0x10, "x-up-1");
    if let Ok(headers) = decode(octets, &pages) {
        let mut out = Vec::new();
        for header in headers.iter().filter_map(|h| Some((&h.name, h.value.text()?))) {
            let _ = Encoder::default().header(header.0, header.1, &mut out);
        }
        assert!(decode(&out, &pages).is_ok(), "our own output is well framed");
    }
    let _ = decode_content_type(octets);
}

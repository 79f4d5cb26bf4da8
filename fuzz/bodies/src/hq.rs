//! HTTP/0.9 on streams.

use airloom_content::http::v09::Request;

/// A request, cut into pieces as long as the first octet says: it says the same however it is cut.
pub fn hq(octets: &[u8]) {
    let (Some(&size), rest) = (octets.first(), octets.get(1..).unwrap_or_default()) else { return };
    let (mut whole, mut cut) = (Request::default(), Request::default());
    whole.feed(rest);
    for piece in rest.chunks(1 + usize::from(size)) {
        cut.feed(piece);
        let _ = cut.said(false);
    }
    for is_over in [false, true] {
        assert_eq!(whole.said(is_over), cut.said(is_over));
    }
}

//! HTTP/1.1 as readers see it.

use airloom_base::Body;
use airloom_content::http::message::Method;
use airloom_content::http::v1::{Item, Limits, RequestReader, ResponseReader, parse_response};
use bytes::Bytes;

use crate::octets::Octets;

/// Requests or responses in pieces of any size; what was read as a head is written and read again as the same.
pub fn http1(octets: &[u8]) {
    let mut octets = Octets::new(octets);
    let (how, cut) = (octets.octet(), 1 + usize::from(octets.octet()));
    let mut body = 0;
    let rest = octets.take(usize::MAX);
    if how & 1 == 0 {
        let mut reader = RequestReader::new(Limits::default());
        for piece in rest.chunks(cut) {
            reader.feed(Body::Real(Bytes::copy_from_slice(piece)));
            loop {
                match reader.poll() {
                    Ok(Some(Item::Head(head, _))) => {
                        let mut out = Vec::new();
                        head.emit(&mut out);
                        let mut again = RequestReader::new(Limits::default());
                        again.feed(Body::Real(out.into()));
                        assert!(
                            matches!(again.poll(), Ok(Some(Item::Head(same, _))) if same == head),
                            "{head:?}"
                        );
                    }
                    Ok(Some(Item::Data(piece))) => body += piece.len(),
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
        }
    } else {
        let mut reader = ResponseReader::new(Limits::default());
        let methods = [Method::Get, Method::Head, Method::Post];
        (0..how >> 4).for_each(|n| reader.expect(methods[usize::from(n) % methods.len()].clone()));
        for piece in rest.chunks(cut) {
            reader.feed(Body::Real(Bytes::copy_from_slice(piece)));
            loop {
                match reader.poll() {
                    Ok(Some(Item::Head(head, _) | Item::Interim(head))) => {
                        let mut out = Vec::new();
                        head.emit(&mut out);
                        assert_eq!(parse_response(&out.into()), Ok(head));
                    }
                    Ok(Some(Item::Data(piece))) => body += piece.len(),
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
        }
        let _ = reader.finish();
    }
    assert!(body <= rest.len(), "more came out than went in");
}

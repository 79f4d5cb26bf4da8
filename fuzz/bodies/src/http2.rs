//! HTTP/2.

use airloom_base::Body;
use bytes::Bytes;

/// Either end of an HTTP/2 connection. The first octet says which, whether what an end needs first comes before the rest, and
/// how octets are cut.
pub fn http2(octets: &[u8]) {
    use airloom_content::http::message::{Fields, Method, RequestHead, ResponseHead, Version};
    use airloom_content::http::v2::{Connection, Event, Options, PREFACE, Priority};
    let (Some(&how), rest) = (octets.first(), octets.get(1..).unwrap_or_default()) else { return };
    let is_server = how & 1 == 1;
    let mut end = if is_server {
        Connection::server(Options::default())
    } else {
        Connection::client(Options::default())
    };
    let mut input = Vec::new();
    if how & 2 == 2 {
        if is_server {
            input.extend_from_slice(PREFACE);
        }
        input.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
    }
    input.extend_from_slice(rest);
    for _ in 0..u8::from(!is_server) * 3 {
        let head = RequestHead {
            method: Method::Get,
            target: "/".into(),
            version: Version::Http2,
            fields: Fields::default(),
        };
        end.request(&head, Priority::default(), true);
    }
    let (mut received, mut sent) = (0, 0);
    for piece in input.chunks(1 + usize::from(how >> 2)) {
        end.feed(Body::Real(Bytes::copy_from_slice(piece)));
        while let Some(event) = end.poll_event() {
            match event {
                Event::Data(_, body) => received += body.len(),
                Event::Request(stream, _) => {
                    let (status, reason) = (200, Bytes::new());
                    let head =
                        ResponseHead { version: Version::Http2, status, reason, fields: Fields::default() };
                    end.respond(stream, &head, false);
                    end.send(stream, [Body::filler(1, 100_000)], true);
                }
                _ => {}
            }
        }
        while let Some(octets) = end.poll_transmit() {
            sent += octets.len();
        }
        assert!(end.open_streams() <= 100, "more streams than were allowed");
    }
    assert!(received <= rest.len(), "more came out than went in");
    assert!(sent < 300_000 + 101_000 * rest.len(), "answers without an end");
    if is_server {
        http2_unread(&input);
    }
}

/// The server's end where nothing is written: what waits is bounded, and what was held back is taken in after all.
fn http2_unread(input: &[u8]) {
    use airloom_content::http::message::{Fields, ResponseHead, Version};
    use airloom_content::http::v2::{Connection, Event, Options};
    let mut end = Connection::server(Options::default());
    end.feed(Body::Real(Bytes::copy_from_slice(input)));
    loop {
        while let Some(event) = end.poll_event() {
            if let Event::Request(stream, _) = event {
                let (status, reason, fields) = (200, Bytes::new(), Fields::default());
                end.respond(stream, &ResponseHead { version: Version::Http2, status, reason, fields }, true);
            }
        }
        let is_held_back = end.is_held_back();
        let waited: usize = std::iter::from_fn(|| end.poll_transmit()).map(|octets| octets.len()).sum();
        assert!(waited < 80_000, "more waits than may");
        if !is_held_back {
            return;
        }
    }
}

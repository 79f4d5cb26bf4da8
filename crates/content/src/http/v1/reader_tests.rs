use airloom_base::{Body, Filler};
use bytes::Bytes;

use super::*;

/// Feeds `text` in the given pieces and joins the data.
fn requests_in(pieces: &[&[u8]]) -> (Vec<Item<RequestHead>>, Result<(), Error>) {
    let mut reader = RequestReader::new(Limits::default());
    let mut items: Vec<Item<RequestHead>> = Vec::new();
    for piece in pieces {
        reader.feed(Body::Real(Bytes::copy_from_slice(piece)));
        loop {
            match reader.poll() {
                Ok(None) => break,
                Ok(Some(Item::Data(body))) => match items.last_mut() {
                    Some(Item::Data(before)) => {
                        *before = Body::Real([before.to_bytes(), body.to_bytes()].concat().into());
                    }
                    _ => items.push(Item::Data(body)),
                },
                Ok(Some(item)) => items.push(item),
                Err(error) => return (items, Err(error)),
            }
        }
    }
    (items, Ok(()))
}

/// The same result for the whole text, for each cut into two, and octet by octet.
fn requests(text: &str) -> (Vec<Item<RequestHead>>, Result<(), Error>) {
    let octets = text.as_bytes();
    let whole = requests_in(&[octets]);
    for cut in 0..=octets.len() {
        assert_eq!(requests_in(&[&octets[..cut], &octets[cut..]]), whole, "cut at {cut} of {text:?}");
    }
    let single: Vec<&[u8]> = octets.chunks(1).collect();
    assert_eq!(requests_in(&single), whole, "octet by octet: {text:?}");
    whole
}

fn error(text: &str) -> Error {
    requests(text).1.expect_err(text)
}

fn targets(text: &str) -> Vec<String> {
    let (items, result) = requests(text);
    assert_eq!(result, Ok(()), "{text:?}");
    let target = |item: &Item<RequestHead>| match item {
        Item::Head(head, _) => Some(String::from_utf8_lossy(&head.target).into_owned()),
        _ => None,
    };
    items.iter().filter_map(target).collect()
}

#[test]
fn pipelined_requests_with_and_without_bodies_are_told_apart() {
    let text = "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nPOST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nGETPUT /3 \
                HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4;e\r\nGET \r\nA\r\n/ \
                HTTP/1.1\r\n0\r\nT: 1\r\n\r\nGET /4 HTTP/1.0\r\n\r\n";
    let (items, result) = requests(text);
    assert_eq!(result, Ok(()));
    let bodies: Vec<_> =
        items.iter().filter_map(|i| if let Item::Data(b) = i { Some(b.to_bytes()) } else { None }).collect();
    assert_eq!(bodies, ["GET", "GET / HTTP/1.1"]);
    assert_eq!(targets(text), ["/1", "/2", "/3", "/4"]);
    let trailers = items.iter().find_map(|i| match i {
        Item::End(fields) if !fields.is_empty() => fields.first("t").map(<[u8]>::to_vec),
        _ => None,
    });
    assert_eq!(trailers.as_deref(), Some(&b"1"[..]));
}

#[test]
fn smuggling_a_bare_cr_is_refused() {
    assert_eq!(error("GET / HTTP/1.1\r\nHost: x\rX: y\r\n\r\n"), Error::BareCr);
    assert_eq!(error("GET /\r HTTP/1.1\r\nHost: x\r\n\r\n"), Error::BareCr);
}

#[test]
fn smuggling_a_lone_line_feed_is_refused_in_requests() {
    assert_eq!(error("GET / HTTP/1.1\nHost: x\n\n"), Error::BareLf);
    assert_eq!(error("GET / HTTP/1.1\r\nHost: x\n\r\n"), Error::BareLf);
}

#[test]
fn smuggling_blank_lines_before_a_request_are_skipped() {
    assert_eq!(
        targets("\r\n\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n"),
        ["/a", "/b"]
    );
    let endless = "\r\n".repeat(20_000);
    assert_eq!(requests_in(&[endless.as_bytes()]).1, Err(Error::HeadTooLong));
}

#[test]
fn smuggling_white_space_before_the_first_field_is_refused() {
    assert_eq!(error("GET / HTTP/1.1\r\n Host: x\r\n\r\n"), Error::Field);
}

#[test]
fn smuggling_white_space_before_a_colon_is_refused() {
    assert_eq!(error("GET / HTTP/1.1\r\nHost: x\r\nContent-Length : 3\r\n\r\nabc"), Error::Field);
}

#[test]
fn smuggling_a_folded_line_is_refused() {
    assert_eq!(error("GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n"), Error::Field);
}

#[test]
fn smuggling_none_two_or_impossible_hosts_is_refused() {
    assert_eq!(error("GET / HTTP/1.1\r\nA: b\r\n\r\n"), Error::Host);
    assert_eq!(error("GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n"), Error::Host);
    assert_eq!(error("GET / HTTP/1.0\r\nHost: x\r\nhost: y\r\n\r\n"), Error::Host);
    assert_eq!(error("GET / HTTP/1.1\r\nHost: x y\r\n\r\n"), Error::Host);
    assert_eq!(error("GET http://a/b@c HTTP/1.1\r\nHost: a/b\r\n\r\n"), Error::Host);
    assert_eq!(targets("GET / HTTP/1.0\r\n\r\n"), ["/"]);
    assert_eq!(targets("GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n"), ["/"]);
}

#[test]
fn smuggling_an_absolute_target_beside_another_host_means_the_target() {
    let (items, _) = requests("GET http://real/ HTTP/1.1\r\nHost: other\r\n\r\n");
    let Some(Item::Head(head, _)) = items.first() else { panic!("{items:?}") };
    assert_eq!(head.authority(), Some(&b"real"[..]));
}

#[test]
fn smuggling_long_targets_and_fields_are_refused_and_never_cut() {
    let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(20_000));
    assert_eq!(requests_in(&[long.as_bytes()]).1, Err(Error::LineTooLong));
    let field = format!("GET / HTTP/1.1\r\nHost: x\r\nA: {}\r\n\r\n", "a".repeat(40_000));
    assert_eq!(requests_in(&[field.as_bytes()]).1, Err(Error::HeadTooLong));
    let many = format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(200));
    assert_eq!(requests_in(&[many.as_bytes()]).1, Err(Error::HeadTooLong));
    let supported = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(8000));
    assert_eq!(requests_in(&[supported.as_bytes()]).1, Ok(()));
    assert_eq!([Error::LineTooLong.status(), Error::HeadTooLong.status()], [414, 431]);
}

#[test]
fn smuggling_by_two_lengths_is_read_by_the_chunks_and_closes() {
    let text =
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    let (items, result) = requests(text);
    assert_eq!(result, Ok(()));
    let Some(Item::Head(_, framing)) = items.first() else { panic!("{items:?}") };
    assert!(framing.must_close);
    assert_eq!(error("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: cow\r\n\r\n").status(), 501);
    assert_eq!(
        error("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n").status(),
        400
    );
}

#[test]
fn malformed_start_lines_and_octets_are_refused() {
    for text in ["\0\r\n\r\n", "GET\r\n\r\n", "G{}T / HTTP/1.1\r\n\r\n", "GET  / HTTP/1.1\r\n\r\n"] {
        assert_eq!(error(text), Error::StartLine, "{text:?}");
    }
    assert_eq!(error("GET / HTTP/3.0\r\nHost: x\r\n\r\n").status(), 505);
    assert_eq!(error("GET / HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n"), Error::Field);
}

#[test]
fn broken_chunks_and_trailers_are_refused() {
    let head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(error(&format!("{head}5\r\nabcdefg\r\n")), Error::Chunk);
    assert_eq!(error(&format!("{head}0\r\nA b\r\n\r\n")), Error::Field);
}

/// Feeds a response in pieces, then the end of the stream.
fn responses(text: &[u8], methods: &[Method], closes: bool) -> Result<Vec<String>, Error> {
    let run = |pieces: &[&[u8]]| {
        let mut reader = ResponseReader::new(Limits::default());
        methods.iter().for_each(|m| reader.expect(m.clone()));
        let mut story: Vec<String> = Vec::new();
        let tell = |item: Item<ResponseHead>, story: &mut Vec<String>| match item {
            Item::Interim(head) => story.push(format!("interim {}", head.status)),
            Item::Head(head, _) => story.push(format!("{} ", head.status)),
            Item::Data(body) => {
                let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
                story.last_mut().expect("a head came first").push_str(&text);
            }
            Item::End(_) => story.push("end".to_owned()),
        };
        for piece in pieces {
            reader.feed(Body::Real(Bytes::copy_from_slice(piece)));
            while let Some(item) = reader.poll()? {
                tell(item, &mut story);
            }
        }
        if closes && let Some(item) = reader.finish()? {
            tell(item, &mut story);
        }
        Ok(story)
    };
    let whole = run(&[text]);
    for cut in 0..=text.len() {
        assert_eq!(run(&[&text[..cut], &text[cut..]]), whole, "cut at {cut}");
    }
    whole
}

#[test]
fn responses_follow_the_requests() {
    let text = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP/1.1 200 OK\r\nContent-Length: \
                 9\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\nHTTP/1.0 200 OK\n\nrest";
    let methods = [Method::Get, Method::Head, Method::Get, Method::Get];
    let story = responses(text, &methods, true).unwrap();
    assert_eq!(story, ["interim 100", "200 hi", "end", "200 ", "end", "200 abc", "end", "200 rest", "end"]);
}

#[test]
fn data_after_the_final_response_is_never_a_response() {
    let text = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n";
    assert_eq!(responses(text, &[Method::Get], false), Err(Error::Unsolicited));
}

#[test]
fn a_response_broken_off_is_incomplete() {
    let text = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort";
    assert_eq!(responses(text, &[Method::Get], true), Err(Error::Incomplete));
    assert_eq!(responses(b"HTTP/1.1 20", &[Method::Get], true), Err(Error::Incomplete));
    assert_eq!(responses(b"", &[Method::Get], true), Ok(Vec::new()));
}

#[test]
fn a_filler_body_stays_a_filler() {
    let mut reader = ResponseReader::new(Limits::default());
    reader.expect(Method::Get);
    reader.feed(Body::Real(Bytes::from_static(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")));
    reader.feed(Body::filler(5, 1_000_000));
    assert!(matches!(reader.poll(), Ok(Some(Item::Head(..)))));
    let whole = Body::Filler(Filler { source: 5, offset: 0, len: 1_000_000 });
    assert_eq!(reader.poll(), Ok(Some(Item::Data(whole))));
    assert_eq!(reader.poll(), Ok(Some(Item::End(Fields::default()))));
}

#[test]
fn filler_where_a_head_should_be_is_an_error_and_costs_little() {
    let mut reader = RequestReader::new(Limits::default());
    reader.feed(Body::filler(3, u32::MAX));
    assert!(reader.poll().is_err());
}

//! Whatever octets arrive, however they are cut, the readers neither panic nor read them differently.

use airloom_base::Body;
use airloom_content::http::message::{Method, RequestHead, ResponseHead};
use airloom_content::http::v1::{Error, Item, Limits, RequestReader, ResponseReader};
use bytes::Bytes;
use proptest::prelude::*;

/// What was read, pieces of bodies joined.
#[derive(Debug, PartialEq)]
enum Story<H> {
    Item(Item<H>),
    Data(Vec<u8>),
}

fn tell<H>(story: &mut Vec<Story<H>>, item: Item<H>) {
    match (item, story.last_mut()) {
        (Item::Data(body), Some(Story::Data(before))) => before.extend_from_slice(&body.to_bytes()),
        (Item::Data(body), _) => story.push(Story::Data(body.to_bytes().to_vec())),
        (item, _) => story.push(Story::Item(item)),
    }
}

fn requests(pieces: &[&[u8]]) -> (Vec<Story<RequestHead>>, Option<Error>) {
    let (mut reader, mut story) = (RequestReader::new(Limits::default()), Vec::new());
    for piece in pieces {
        reader.feed(Body::Real(Bytes::copy_from_slice(piece)));
        loop {
            match reader.poll() {
                Ok(Some(item)) => tell(&mut story, item),
                Ok(None) => break,
                Err(error) => return (story, Some(error)),
            }
        }
    }
    (story, None)
}

fn responses(pieces: &[&[u8]]) -> (Vec<Story<ResponseHead>>, Option<Error>) {
    let (mut reader, mut story) = (ResponseReader::new(Limits::default()), Vec::new());
    for method in [Method::Get, Method::Head, Method::Get] {
        reader.expect(method);
    }
    for piece in pieces {
        reader.feed(Body::Real(Bytes::copy_from_slice(piece)));
        loop {
            match reader.poll() {
                Ok(Some(item)) => tell(&mut story, item),
                Ok(None) => break,
                Err(error) => return (story, Some(error)),
            }
        }
    }
    match reader.finish() {
        Ok(Some(item)) => tell(&mut story, item),
        Ok(None) => {}
        Err(error) => return (story, Some(error)),
    }
    (story, None)
}

/// Octets cut at these places.
fn cut<'a>(octets: &'a [u8], places: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|p| p % (octets.len() + 1)).collect();
    places.extend([0, octets.len()]);
    places.sort_unstable();
    places.windows(2).map(|w| &octets[w[0]..w[1]]).collect()
}

/// Messages made of pieces that mean something, so that random ones get far.
fn message() -> impl Strategy<Value = Vec<u8>> {
    const WORDS: &[&[u8]] = &[
        b"GET / HTTP/1.1\r\n",
        b"POST http://a/b HTTP/1.0\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 100 Continue\r\n",
        b"HTTP/1.0 304 Not Modified\r\n",
        b"Host: x\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: 99999999999999999999\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"A: b\r\n c\r\n",
        b"\r\n",
        b"\n",
        b"5\r\nhello\r\n",
        b"0\r\n\r\n",
        b"ffffffffffffffff\r\n",
        b"hello",
    ];
    let word = prop::sample::select(WORDS);
    let pieces = prop::collection::vec(
        prop_oneof![
            8 => word.prop_map(<[u8]>::to_vec),
            1 => prop::collection::vec(any::<u8>(), 0..40),
        ],
        0..14,
    );
    pieces.prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn requests_are_read_the_same_however_they_are_cut(octets in message(), places in prop::collection::vec(any::<usize>(), 0..8)) {
        prop_assert_eq!(requests(&cut(&octets, &places)), requests(&[&octets]));
    }

    #[test]
    fn responses_are_read_the_same_however_they_are_cut(octets in message(), places in prop::collection::vec(any::<usize>(), 0..8)) {
        prop_assert_eq!(responses(&cut(&octets, &places)), responses(&[&octets]));
    }

    #[test]
    fn any_octets_are_read_or_refused(octets in prop::collection::vec(any::<u8>(), 0..400)) {
        let (story, _) = requests(&[&octets]);
        prop_assert!(story.len() <= octets.len() + 1);
        let (story, _) = responses(&[&octets]);
        prop_assert!(story.len() <= octets.len() + 1);
    }
}

//! HTTP/3.

use airloom_base::Body;
use airloom_content::http::message::{Fields, Method, RequestHead, ResponseHead, Version};
use airloom_content::http::v3::{Connection, ErrorCode, Event, Options, Priority, Settings, Transmit};
use bytes::Bytes;

/// Streams that octets are put on: requests, and those that go one way of either end.
const STREAMS: [u64; 16] = [0, 4, 8, 12, 2, 6, 10, 14, 3, 7, 11, 15, 18, 19, 1, 16];

/// Either end of an HTTP/3 connection. The first octet says which, whether it has a table, and whether the other has sent its
/// settings; then of each two octets the first says what happens on which stream, and the second how many of those that follow
/// come on it.
pub fn http3(octets: &[u8]) {
    let (Some(&how), mut rest) = (octets.first(), octets.get(1..).unwrap_or_default()) else { return };
    let (is_server, has_table, is_settled) = (how & 1 == 1, how & 2 == 2, how & 4 == 4);
    let mut options = Options::default();
    if has_table {
        let (qpack_max_table_capacity, qpack_blocked_streams) = (4096, 2);
        options.settings = Settings { qpack_max_table_capacity, qpack_blocked_streams, ..options.settings };
        options.table = 4096;
    }
    let mut end = if is_server { Connection::server(options) } else { Connection::client(options) };
    end.begin(if is_server { [3, 7, 11] } else { [2, 6, 10] });
    let control = if is_server { 2 } else { 3 };
    let of_peer = |stream: u64| (stream & 1 == 0) == is_server;
    for stream in STREAMS.into_iter().filter(|stream| of_peer(*stream) && *stream != 1 && *stream < 16) {
        end.opened(stream);
    }
    if is_settled {
        end.feed(control, Body::Real(Bytes::from_static(b"\0\x04\x05\x01\x50\x00\x07\x02")));
    }
    for stream in [0, 4, 8] {
        let fields = Fields::from_iter([("a", "b")]);
        let (method, target) = (Method::Get, "/".into());
        end.request(
            stream,
            &RequestHead { method, target, version: Version::Http3, fields },
            Priority::default(),
            true,
        );
    }
    let (mut received, mut sent) = (0, 0);
    while let [what, length, ..] = *rest {
        let (now, later) = rest[2..].split_at(usize::from(length).min(rest.len() - 2));
        rest = later;
        let stream = STREAMS[usize::from(what & 15)];
        match what >> 4 {
            0..=9 => end.feed(stream, Body::Real(Bytes::copy_from_slice(now))),
            10 | 11 => end.ended(stream),
            12 => end.was_reset(stream, ErrorCode(u64::from(length))),
            13 => end.was_stopped(stream, ErrorCode(u64::from(length))),
            14 => end.writable(stream),
            _ => end.opened(stream),
        }
        while let Some(event) = end.poll_event() {
            match event {
                Event::Data(_, body) => received += body.len(),
                Event::Request(stream, _) => {
                    let (status, reason, fields) = (200, Bytes::new(), Fields::from_iter([("a", "b")]));
                    let head = ResponseHead { version: Version::Http3, status, reason, fields };
                    end.respond(stream, &head, false);
                    end.send(stream, [Body::filler(1, 100_000)], true);
                }
                _ => {}
            }
        }
        while let Some(action) = end.poll_transmit() {
            if let Transmit::Write { stream, body, .. } = action {
                // Sometimes there is room for a half.
                let taken = if length & 1 == 1 { body.len() } else { body.len() / 2 };
                end.written(stream, taken);
                sent += taken;
            }
        }
        assert!(end.open_streams() <= STREAMS.len(), "more streams than were opened");
    }
    assert!(received <= octets.len(), "more came out than went in");
    assert!(sent < 300_000 + 101_000 * octets.len(), "answers without an end");
}

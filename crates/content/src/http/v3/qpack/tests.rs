use airloom_testkit::cases;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::http::fields::Line;

fn line(name: &str, value: &str) -> Line {
    (name.to_owned().into(), value.to_owned().into())
}

/// Feeds what each side has to tell the other.
fn settle(encoder: &mut Encoder, decoder: &mut Decoder) {
    decoder.feed(&encoder.instructions()).unwrap();
    encoder.feed(&decoder.instructions()).unwrap();
}

// RFC 9204, B.1 and B.2.
#[test]
fn sections_and_instructions_of_the_standard() {
    let mut decoder = Decoder::new(220, 1, 1000);
    let first = b"\x00\x00\x51\x0b/index.html";
    assert_eq!(decoder.read(0, first), Ok(Section::Lines(vec![line(":path", "/index.html")])));
    decoder.feed(b"\x3f\xbd\x01").unwrap();
    let second = b"\x03\x81\x10\x11";
    assert_eq!(decoder.read(4, second), Ok(Section::Blocked));
    decoder.feed(b"\xc0\x0fwww.example.com\xc1\x0c/sample").unwrap();
    assert!(decoder.ready().is_empty());
    decoder.feed(b"/path").unwrap();
    assert_eq!(decoder.ready(), [4]);
    let lines = vec![line(":authority", "www.example.com"), line(":path", "/sample/path")];
    assert_eq!(decoder.read(4, second), Ok(Section::Lines(lines)));
    assert_eq!(decoder.instructions(), b"\x84");
    // B.3: a literal name; B.4: a duplicate, and a section that means it.
    decoder.feed(b"\x4acustom-key\x0ccustom-value").unwrap();
    assert_eq!(decoder.instructions(), b"\x01");
    decoder.feed(b"\x02").unwrap();
    let lines =
        vec![line(":authority", "www.example.com"), line(":path", "/"), line("custom-key", "custom-value")];
    assert_eq!(decoder.read(8, b"\x05\x00\x80\xc1\x81"), Ok(Section::Lines(lines)));
    // B.5: an insertion that drives the oldest entry out.
    decoder.feed(b"\x81\x0dcustom-value2").unwrap();
    assert_eq!(decoder.instructions(), b"\x88\x01");
}

#[test]
fn without_a_table_there_are_static_entries_and_literals() {
    let (mut encoder, mut decoder) = (Encoder::new(4096), Decoder::new(0, 0, 16_384));
    encoder.allow(0, 0);
    let lines = [
        line(":method", "GET"),
        line(":scheme", "https"),
        line(":authority", "origin"),
        line(":path", "/a.png"),
        line("accept", "*/*"),
    ];
    let block = encoder.write(0, &lines);
    assert_eq!(block, b"\0\0\xd1\xd7\x50\x85\x3d\x86\x98\xd5\x7f\x51\x85\x60\x6b\xd7\x54\xdf\xdd");
    assert_eq!(decoder.read(0, &block), Ok(Section::Lines(lines.to_vec())));
    assert_eq!((encoder.instructions(), decoder.instructions()), (vec![], vec![]));
}

#[test]
fn lines_that_come_again_are_an_octet_each() {
    let (mut encoder, mut decoder) = (Encoder::new(4096), Decoder::new(4096, 0, 16_384));
    encoder.allow(4096, 0);
    let lines = [line(":authority", "origin.example"), line("user-agent", "airloom"), line("x-y", "z")];
    // Nobody may be blocked: what is new is a literal, and an entry for the next time.
    let first = encoder.write(0, &lines);
    assert_eq!(first[..2], [0, 0]);
    assert_eq!(decoder.read(0, &first), Ok(Section::Lines(lines.to_vec())));
    settle(&mut encoder, &mut decoder);
    let second = encoder.write(4, &lines);
    assert_eq!(second.len(), 2 + 3, "{second:x?}");
    assert_eq!(decoder.read(4, &second), Ok(Section::Lines(lines.to_vec())));
    assert_eq!(decoder.instructions(), b"\x84");
    // Where one stream may be blocked, it means them at once.
    let (mut encoder, mut decoder) = (Encoder::new(4096), Decoder::new(4096, 1, 16_384));
    encoder.allow(4096, 1);
    let (first, second) = (encoder.write(0, &lines), encoder.write(4, &[line("x-y", "z")]));
    assert_eq!((first.len(), second.len() > 3), (5, true));
    assert_eq!(decoder.read(0, &first), Ok(Section::Blocked));
    settle(&mut encoder, &mut decoder);
    assert_eq!(decoder.ready(), [0]);
    assert_eq!(decoder.read(0, &first), Ok(Section::Lines(lines.to_vec())));
}

#[test]
fn an_entry_that_a_section_means_stays() {
    let (mut encoder, mut decoder) = (Encoder::new(128), Decoder::new(128, 8, 16_384));
    encoder.allow(128, 8);
    let of = |n: u32| [line("x", &format!("value-{n}"))];
    let blocks: Vec<Vec<u8>> = (0..5).map(|n| encoder.write(4 * u64::from(n), &of(n))).collect();
    // Three entries have room; the others wait until these are acknowledged.
    assert!(blocks[..3].iter().all(|block| block.len() == 3), "{blocks:x?}");
    assert!(blocks[3..].iter().all(|block| block.len() > 3));
    decoder.feed(&encoder.instructions()).unwrap();
    for (n, block) in (0..).zip(&blocks) {
        assert_eq!(decoder.read(4 * u64::from(n), block), Ok(Section::Lines(of(n).to_vec())));
    }
    encoder.feed(&decoder.instructions()).unwrap();
    let block = encoder.write(40, &of(9));
    assert_eq!(block.len(), 3);
    settle(&mut encoder, &mut decoder);
    assert_eq!(decoder.read(40, &block), Ok(Section::Lines(of(9).to_vec())));
}

#[test]
fn what_nobody_may_send_is_refused() {
    let with_entry = || {
        let mut decoder = Decoder::new(200, 0, 1000);
        decoder.feed(b"\x3f\xa9\x01\x41\x61\x01\x62").unwrap();
        decoder
    };
    assert_eq!(with_entry().read(0, b"\x02\0\x80"), Ok(Section::Lines(vec![line("a", "b")])));
    for (what, block) in [
        ("nothing", &b""[..]),
        ("half a prefix", b"\0"),
        ("an index beyond the static table", b"\0\0\xff\x24"),
        ("an entry without a required count", b"\0\0\x80"),
        ("an entry before the first", b"\x02\0\x81"),
        ("an entry behind the required count", b"\x02\0\x10"),
        ("a base before 0", b"\x02\x81\x80"),
        ("a required count beyond the range", b"\x0e\0\x80"),
        ("a stream that may not wait", b"\x03\0\x80"),
        ("a value that is cut short", b"\0\0\x51\x05/a"),
        ("a coded value with a wrong padding", b"\0\0\x51\x81\x18"),
        ("a giant length", b"\0\0\x51\x7f\xff\xff\xff\xff\xff\xff\xff\x3f"),
    ] {
        assert_eq!(with_entry().read(0, block), Err(Malformed), "{what}");
    }
    for (what, octets) in [
        ("a capacity above the limit", &b"\x3f\xaa\x01"[..]),
        ("an entry larger than the capacity", b"\x21\x41\x61\x01\x62"),
        ("a name from nowhere", b"\x81\x01a"),
        ("a static name from nowhere", b"\xff\x24\x01a"),
        ("a copy of nothing", b"\x01"),
        ("a giant length", b"\x5f\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
        ("a name that is not waited for", b"\x5f\xff\xff\x7f"),
    ] {
        assert_eq!(with_entry().feed(octets), Err(Malformed), "{what}");
    }
    let mut encoder = Encoder::new(4096);
    encoder.allow(4096, 0);
    for octets in [&b"\x01"[..], b"\x00", b"\x80"] {
        assert_eq!(encoder.feed(octets), Err(Malformed), "{octets:x?}");
    }
    assert_eq!(encoder.feed(b"\x44\x7f"), Ok(()), "a stream without sections may be cancelled");
}

#[test]
fn a_bomb_is_counted_and_not_kept() {
    let mut decoder = Decoder::new(4096, 0, 1000);
    let mut octets = vec![0x3f, 0xe1, 0x1f, 0x41, b'a', 0x7f, 0xa1, 0x1e];
    octets.extend(vec![b'v'; 4000]);
    decoder.feed(&octets).unwrap();
    let bomb = [&b"\x02\0"[..], &[0x80; 30_000]].concat();
    assert_eq!(decoder.read(0, &bomb), Ok(Section::TooLarge));
    assert_eq!(decoder.read(4, b"\0\0\xd1"), Ok(Section::Lines(vec![line(":method", "GET")])));
}

#[test]
fn a_stream_that_is_given_up_blocks_nobody() {
    let (mut encoder, mut decoder) = (Encoder::new(4096), Decoder::new(4096, 1, 1000));
    encoder.allow(4096, 1);
    let block = encoder.write(0, &[line("x", "y")]);
    assert_eq!(decoder.read(0, &block), Ok(Section::Blocked));
    decoder.cancel(0);
    assert_eq!(decoder.instructions(), b"\x40");
    encoder.feed(b"\x40").unwrap();
    let next = encoder.write(4, &[line("x", "y")]);
    assert_eq!(decoder.read(4, &next), Ok(Section::Blocked), "there is room for another");
}

#[test]
fn sections_that_nobody_acknowledges_are_bounded() {
    let (mut encoder, mut decoder) = (Encoder::new(4096), Decoder::new(4096, 16, 16_384));
    encoder.allow(4096, 16);
    let of =
        |n: u64| [line("content-type", "x/y"), line("x", if n.is_multiple_of(2) { "even" } else { "odd" })];
    for n in 0..5000 {
        let block = encoder.write(4 * n, &of(n));
        decoder.feed(&encoder.instructions()).unwrap();
        assert_eq!(decoder.read(4 * n, &block), Ok(Section::Lines(of(n).to_vec())), "{n}");
        // That entries have come is all that is said.
        if n == 0 {
            encoder.feed(b"\x02").unwrap();
        }
    }
    assert_eq!(encoder.counts().0, 1024);
    // The static table does then; neither names nor lines of the other are meant, and none are added.
    let block = encoder.write(40_000, &[line("x", "odd"), line("new", "line")]);
    assert_eq!((block[..3].to_vec(), encoder.instructions()), (vec![0, 0, 0x29], vec![]));
    // One that is acknowledged makes room for another.
    encoder.feed(b"\x80").unwrap();
    assert_eq!(encoder.write(40_004, &of(0)).len(), 4);
}

proptest! {
    #![proptest_config(cases(256))]

    /// Lists with few names and values, so that entries are meant again, are pushed out and fill the table; sections overtake
    /// instructions, and answers come late.
    #[test]
    fn every_list_comes_back(
        lists in vec((vec(("[a-d]{1,2}", "[a-z/]{0,12}"), 0..8), 0..4_u8), 1..40),
        table in prop_oneof![Just(0_u32), 32_u32..300, Just(4096)],
        blocked in 0_u64..4,
    ) {
        let (mut encoder, mut decoder) = (Encoder::new(4096), Decoder::new(table.into(), blocked, 1 << 20));
        encoder.allow(table.into(), blocked);
        let mut waiting: Vec<(u64, Vec<u8>, Vec<Line>)> = Vec::new();
        let mut under_way: Vec<u8> = Vec::new();
        for (n, (list, how)) in lists.iter().enumerate() {
            let stream = 4 * (n as u64);
            let lines: Vec<Line> = list.iter().map(|(name, value)| line(name, value)).collect();
            let block = encoder.write(stream, &lines);
            under_way.extend(encoder.instructions());
            if how & 1 == 1 {
                // A half of what is under way arrives, however it is cut.
                let half: Vec<u8> = under_way.drain(..under_way.len() / 2).collect();
                prop_assert_eq!(decoder.feed(&half), Ok(()));
            }
            match decoder.read(stream, &block) {
                Ok(Section::Blocked) => waiting.push((stream, block, lines)),
                other => prop_assert_eq!(other, Ok(Section::Lines(lines))),
            }
            if how & 2 == 2 {
                prop_assert_eq!(decoder.feed(&std::mem::take(&mut under_way)), Ok(()));
                decoder.ready();
                for (stream, block, lines) in waiting.drain(..) {
                    prop_assert_eq!(decoder.read(stream, &block), Ok(Section::Lines(lines)));
                }
                prop_assert_eq!(encoder.feed(&decoder.instructions()), Ok(()));
            }
        }
    }

    /// What is known of sections without acknowledgement is what they say, whatever is acknowledged, given up or told of.
    #[test]
    fn sections_are_counted_as_they_come_and_go(
        steps in vec((0..8_u8, 0..6_u8, vec(("[a-d]", "[a-c]{0,8}"), 0..4)), 1..60),
        blocked in 0_u64..4,
    ) {
        let mut encoder = Encoder::new(200);
        encoder.allow(200, blocked);
        for (how, stream, list) in &steps {
            match how {
                0 => drop(encoder.feed(&[0x80 | stream])),
                1 => drop(encoder.feed(&[0x40 | stream])),
                2 => drop(encoder.feed(&[1 + stream / 2])),
                _ => {
                    let lines: Vec<Line> = list.iter().map(|(name, value)| line(name, value)).collect();
                    encoder.write((*stream).into(), &lines);
                }
            }
            prop_assert_eq!(encoder.counts(), encoder.counted());
        }
    }

    #[test]
    fn no_octets_make_either_end_fail(octets in vec(any::<u8>(), 0..300), block in vec(any::<u8>(), 0..100)) {
        let (mut encoder, mut decoder) = (Encoder::new(4096), Decoder::new(4096, 4, 1000));
        encoder.allow(4096, 4);
        let _ = decoder.feed(b"\x3f\xe1\x1f\x41a\x01b");
        let _ = decoder.feed(&octets);
        let _ = decoder.read(0, &block);
        let _ = encoder.feed(&octets);
    }
}

use super::*;

/// A datagram of 20 octets that is only a header.
const HEADER: [u8; 20] = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];

fn classic(is_big: bool, nanoseconds: bool, link: u32, frames: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut push = |number: u32| {
        out.extend(if is_big { number.to_be_bytes() } else { number.to_le_bytes() });
    };
    push(if nanoseconds { 0xA1B2_3C4D } else { 0xA1B2_C3D4 });
    push(if is_big { 0x0002_0004 } else { 0x0004_0002 });
    [0, 0, 65_535, link].into_iter().for_each(&mut push);
    for (s, fraction, octets) in frames {
        let mut push = |number: u32| {
            out.extend(if is_big { number.to_be_bytes() } else { number.to_le_bytes() });
        };
        [*s, *fraction, octets.len() as u32, octets.len() as u32].into_iter().for_each(&mut push);
        out.extend(*octets);
    }
    out
}

fn block(is_big: bool, kind: u32, body: &[u8]) -> Vec<u8> {
    let number = |n: u32| if is_big { n.to_be_bytes() } else { n.to_le_bytes() };
    let padded = body.len().next_multiple_of(4);
    let mut out = number(kind).to_vec();
    out.extend(number(padded as u32 + 12));
    out.extend(body);
    out.resize(8 + padded, 0);
    out.extend(number(padded as u32 + 12));
    out
}

fn words(is_big: bool, numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| if is_big { n.to_be_bytes() } else { n.to_le_bytes() }).collect()
}

fn section(is_big: bool) -> Vec<u8> {
    let version = if is_big { 0x0001_0000 } else { 0x0000_0001 };
    block(is_big, pcapng::SECTION_HEADER, &words(is_big, &[0x1A2B_3C4D, version, u32::MAX, u32::MAX]))
}

/// An interface with the given options.
fn described(is_big: bool, link: u16, options: &[(u16, &[u8])]) -> Vec<u8> {
    let two = |n: u16| if is_big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut body = [two(link), [0, 0]].concat();
    body.extend([0; 4]);
    for (code, value) in options {
        body.extend(two(*code));
        body.extend(two(value.len() as u16));
        body.extend(*value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    block(is_big, 1, &body)
}

fn enhanced(is_big: bool, interface: u32, ticks: u64, octets: &[u8]) -> Vec<u8> {
    let length = octets.len() as u32;
    let mut body = words(is_big, &[interface, (ticks >> 32) as u32, ticks as u32, length, length]);
    body.extend(octets);
    block(is_big, 6, &body)
}

/// Interface, link, time and octets of a frame.
type Read = (usize, u16, u64, Vec<u8>);

/// Each frame, and how it ended.
fn all(file: &[u8]) -> (Vec<Read>, Option<Error>) {
    let mut frames = Vec::new();
    let mut reader = match Reader::new(file) {
        Ok(reader) => reader,
        Err(error) => return (frames, Some(error)),
    };
    loop {
        match reader.next_frame() {
            Ok(Some(f)) => frames.push((f.interface, f.link, f.at_ns, f.octets.to_vec())),
            Ok(None) => return (frames, None),
            Err(error) => return (frames, Some(error)),
        }
    }
}

#[test]
fn the_classic_form_is_read_in_both_orders_and_resolutions() {
    for is_big in [false, true] {
        for (nanoseconds, unit) in [(false, 1000), (true, 1)] {
            let file = classic(is_big, nanoseconds, 101, &[(7, 5, &HEADER), (8, 0, &[])]);
            let (frames, error) = all(&file);
            assert!(error.is_none());
            let expected =
                [(0, 101, 7_000_000_000 + 5 * unit, HEADER.to_vec()), (0, 101, 8_000_000_000, vec![])];
            assert_eq!(frames, expected);
        }
    }
}

#[test]
fn blocks_are_read_in_both_orders_and_any_resolution() {
    for is_big in [false, true] {
        let offset = if is_big { 100_u64.to_be_bytes() } else { 100_u64.to_le_bytes() };
        let file = [
            section(is_big),
            described(is_big, 101, &[(2, b"mobile.ip"), (9, &[9])]),
            described(is_big, 1, &[(9, &[0x80 | 10])]),
            described(is_big, 1, &[(14, &offset)]),
            block(is_big, 5, &[0; 40]),
            enhanced(is_big, 0, 5_000_000_123, &HEADER),
            enhanced(is_big, 1, 1536, b"x"),
            enhanced(is_big, 2, 1, b""),
            section(is_big),
            described(is_big, 228, &[]),
            enhanced(is_big, 0, 3, b"yz"),
        ]
        .concat();
        let (frames, error) = all(&file);
        assert!(error.is_none(), "{error:?}");
        let expected = [
            (0, 101, 5_000_000_123, HEADER.to_vec()),
            (1, 1, 1_500_000_000, b"x".to_vec()),
            (2, 1, 100_000_001_000, vec![]),
            (3, 228, 3000, b"yz".to_vec()),
        ];
        assert_eq!(frames, expected);
        let mut reader = Reader::new(file.as_slice()).unwrap();
        assert!(reader.next_frame().unwrap().is_some());
        assert_eq!(reader.interfaces()[0].name.as_deref(), Some("mobile.ip"));
    }
}

#[test]
fn what_stands_behind_the_end_of_the_options_is_none() {
    let described = described(false, 101, &[(2, b"mobile"), (0, b""), (2, b"gateway"), (9, &[9])]);
    let file = [section(false), described, enhanced(false, 0, 7, &HEADER)].concat();
    let mut reader = Reader::new(file.as_slice()).unwrap();
    assert_eq!(reader.next_frame().unwrap().unwrap().at_ns, 7000);
    assert_eq!(reader.interfaces()[0].name.as_deref(), Some("mobile"));
}

#[test]
fn frames_without_a_time_and_of_the_old_block_are_read() {
    let old = [words(false, &[0, 0, 9, 2, 2]), b"ab".to_vec()].concat();
    let simple = [words(false, &[3]), b"abc".to_vec()].concat();
    let file =
        [section(false), described(false, 1, &[]), block(false, 2, &old), block(false, 3, &simple)].concat();
    let (frames, error) = all(&file);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(frames, [(0, 1, 9000, b"ab".to_vec()), (0, 1, 0, b"abc".to_vec())]);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let good = classic(false, false, 1, &[(1, 2, &HEADER)]);
    assert!(matches!(all(b"").1, Some(Error::NotACapture)));
    assert!(matches!(all(b"GIF89a........................").1, Some(Error::NotACapture)));
    for cut in 25..good.len() {
        assert!(matches!(all(&good[..cut]).1, Some(Error::Cut { at: 24 })), "{cut}");
    }
    let mut long = good.clone();
    long[35] = 0xFF;
    assert!(matches!(all(&long).1, Some(Error::Corrupt { at: 24, .. })));
    let begin = [section(false), described(false, 1, &[])].concat();
    let at = begin.len() as u64;
    for (what, broken) in [
        ("not described", enhanced(false, 1, 0, b"")),
        ("longer than its block", block(false, 6, &words(false, &[0, 0, 0, 9, 9]))),
        ("too short for a frame", block(false, 6, &[])),
        ("length is not possible", words(false, &[6, 8, 8])),
        ("length is not possible", words(false, &[6, 33, 8])),
        ("lengths differ", words(false, &[6, 12, 16])),
        ("longer than any frame", words(false, &[6, 0xFFFF_FFF0, 0])),
        ("in which order", words(false, &[pcapng::SECTION_HEADER, 28, 5])),
    ] {
        let (_, error) = all(&[begin.clone(), broken].concat());
        let is_it =
            matches!(&error, Some(Error::Corrupt { at: place, why }) if *place == at && why.contains(what));
        assert!(is_it, "{error:?}, not {what}");
    }
    // A block that nobody reads may claim any length: it is passed over, not held.
    let (_, error) = all(&[begin, words(false, &[77, 0xFFFF_FFF0, 0])].concat());
    assert!(matches!(error, Some(Error::Cut { .. })));
}

#[test]
fn no_octets_make_it_panic() {
    let begin = [section(true), described(true, 1, &[(2, b"eth0"), (9, &[9]), (14, &[0xFF; 8])])].concat();
    let good = [begin, enhanced(true, 0, u64::MAX, &HEADER)].concat();
    for at in 0..good.len() {
        let _ = all(&good[..at]);
        for octet in [0, 1, 0x7F, 0x80, 0xFF] {
            let mut bad = good.clone();
            bad[at] = octet;
            let _ = all(&bad);
        }
    }
}

#[test]
fn the_datagram_is_found_behind_what_links_put_before_it() {
    let behind = |head: &[u8]| [head, &HEADER].concat();
    let mac = [0; 12];
    let ethernet = |types: &[u8]| behind(&[&mac[..], types].concat());
    for (link, frame) in [
        (101, HEADER.to_vec()),
        (228, HEADER.to_vec()),
        (0, behind(&[2, 0, 0, 0])),
        (108, behind(&[0, 0, 0, 2])),
        (1, ethernet(&[8, 0])),
        (1, ethernet(&[0x81, 0, 0, 5, 8, 0])),
        (1, ethernet(&[0x88, 0xA8, 0, 5, 0x81, 0, 0, 6, 8, 0])),
        (1, ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 22, 0, 0x21])),
        (9, behind(&[0xFF, 3, 0, 0x21])),
        (9, behind(&[0x21])),
        (50, behind(&[0xFF, 3, 0, 0x21])),
        (113, behind(&[&[0; 14][..], &[8, 0]].concat())),
        (276, behind(&[&[8, 0][..], &[0; 18]].concat())),
        (276, behind(&[&[0x81, 0][..], &[0; 18], &[0, 5, 8, 0]].concat())),
        (276, behind(&[&[0x88, 0x64][..], &[0; 18], &[0x11, 0, 0, 1, 0, 22, 0, 0x21]].concat())),
    ] {
        assert_eq!(datagram(link, &frame), Some(&HEADER[..]), "{link}");
        for end in 0..frame.len() - HEADER.len() {
            assert_eq!(datagram(link, &frame[..end]), None, "{link}, {end}");
        }
    }
    let numbered = [8, 0, 0, 0, 0, 0, 1, 2];
    assert_eq!(interface_index(276, &numbered), Some(258));
    assert_eq!((interface_index(276, &numbered[..7]), interface_index(113, &numbered)), (None, None));
    assert_eq!(datagram(1, &ethernet(&[8, 6])), None, "ARP");
    assert_eq!(datagram(147, &HEADER), None, "a link of somebody's own");
}

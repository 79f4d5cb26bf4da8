//! Field sections that ls-qpack reads and writes, in both directions: 10,000 lists each, with the static table alone, with tables
//! of two sizes, and with sections that overtake their entries.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use airloom_base::random::Stream;
use airloom_content::http::v3::qpack::{Decoder, Encoder, Section};
use airloom_testkit::skip;
use bytes::Bytes;

type Line = (Bytes, Bytes);

/// Python with ls-qpack at the other end of a pipe.
struct Peer {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Peer {
    /// `None` if it is not installed.
    fn new() -> Option<Peer> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let own = folder.join("../../.venv/bin/python");
        let python = if own.is_file() { own } else { "python3".into() };
        let has = Command::new(&python).args(["-c", "import pylsqpack"]).stderr(Stdio::null()).status();
        if !has.is_ok_and(|status| status.success()) {
            skip("content/qpack_lsqpack", "pylsqpack is not installed (make develop)");
            return None;
        }
        let script = folder.join("tests/lsqpack/peer.py");
        let mut child = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it has just run");
        let (to, from) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Some(Peer { child, to, from: BufReader::new(from) })
    }

    fn ask(&mut self, command: &str, words: &[&[u8]]) -> Vec<Vec<u8>> {
        let words: Vec<String> = words.iter().map(|octets| hex(octets)).collect();
        self.say(&format!("{command} {}", words.join(" ")))
    }

    fn say(&mut self, line: &str) -> Vec<Vec<u8>> {
        writeln!(self.to, "{}", line.trim_end()).expect("it listens");
        let mut answer = String::new();
        assert!(self.from.read_line(&mut answer).expect("it answers") > 0, "it failed at {line}");
        answer.split_whitespace().map(octets).collect()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn hex(octets: &[u8]) -> String {
    if octets.is_empty() {
        return "-".to_owned();
    }
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

fn octets(hex: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    if hex == "-" { Vec::new() } else { (0..hex.len()).step_by(2).map(digit).collect() }
}

/// Lines as messages have them, and some that no message has.
fn list(random: &mut Stream) -> Vec<Line> {
    const NAMES: [&str; 16] = [
        ":method",
        ":path",
        ":status",
        ":authority",
        "accept",
        "age",
        "cookie",
        "content-type",
        "server",
        "x-a",
        "user-agent",
        "cache-control",
        "x-frame-options",
        "etag",
        "if-range",
        "x-something-longer",
    ];
    const VALUES: [&str; 14] = [
        "GET",
        "/",
        "200",
        "404",
        "origin.example",
        "*/*",
        "0",
        "text/plain",
        "airloom",
        "deny",
        "",
        "max-age=0",
        "a=b; c=d",
        "application/json",
    ];
    let mut below = |most: usize| random.below(most as u64) as usize;
    // ls-qpack takes a section without lines for none.
    let count = 1 + below(11);
    (0..count)
        .map(|_| {
            let name = NAMES[below(NAMES.len())].into();
            let value = match below(4) {
                0 => (0..below(80)).map(|_| b' ' + below(95) as u8).collect(),
                1 => format!("/{}/{}.html", below(20), below(20)).into(),
                _ => VALUES[below(VALUES.len())].into(),
            };
            (name, value)
        })
        .collect()
}

fn pairs(words: &[Vec<u8>]) -> Vec<Line> {
    words.chunks(2).map(|pair| (pair[0].clone().into(), pair[1].clone().into())).collect()
}

#[test]
fn what_one_writes_the_other_reads() {
    let Some(mut peer) = Peer::new() else { return };
    let mut sizes = [[0, 0]; 4];
    for (case, (capacity, blocked)) in
        [(0_u32, 0_u64), (4096, 0), (4096, 16), (300, 4)].into_iter().enumerate()
    {
        let (mut encoder, mut decoder) =
            (Encoder::new(4096), Decoder::new(capacity.into(), blocked, 1 << 20));
        encoder.allow(capacity.into(), blocked);
        let mut random = Stream::new(case as u64, "qpack");
        let begin = peer.say(&format!("settings {capacity} {blocked}"));
        decoder.feed(&begin[0]).expect("settings of the peer's encoder");
        for n in 0..2_500_u64 {
            let (stream, lines) = (4 * n, list(&mut random));
            let late = blocked > 0 && random.below(3) == 0;

            let section = encoder.write(stream, &lines);
            sizes[case][0] += section.len();
            let said = format!(
                "decode {stream} {} {} {}",
                hex(&encoder.instructions()),
                hex(&section),
                u8::from(late)
            );
            let said = peer.say(&said);
            assert_eq!(pairs(&said[1..]), lines, "ours, read by the peer");
            // What the peer says of entries that no section meant is not to be had from this binding.
            encoder.feed(&said[0]).expect("acknowledgements of the peer");

            let parts: Vec<&[u8]> = lines.iter().flat_map(|(name, value)| [&name[..], &value[..]]).collect();
            let said = peer.ask(&format!("encode {stream}"), &parts);
            sizes[case][1] += said[1].len();
            if !late {
                decoder.feed(&said[0]).expect("instructions of the peer");
            }
            let mut read = decoder.read(stream, &said[1]).expect("a section of the peer");
            if late {
                decoder.feed(&said[0]).expect("instructions of the peer");
                if read == Section::Blocked {
                    assert_eq!(decoder.ready(), [stream]);
                    read = decoder.read(stream, &said[1]).expect("a section of the peer");
                }
            }
            assert_eq!(read, Section::Lines(lines), "the peer's, read by us");
            peer.ask("answer", &[&decoder.instructions()]);
        }
    }
    println!("octets of sections, ours and the peer's: {sizes:?}");
    // A table is of use only where it is used.
    for [with, without] in [[2, 0], [3, 0]] {
        assert!(sizes[with][0] * 10 < sizes[without][0] * 9, "{sizes:?}");
    }
}

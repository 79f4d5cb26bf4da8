//! What is said about wrong files and options: the exact line.

use super::super::Document;
use super::{CHAIN, GRAPH, fakes, parse, with};

/// Files, each followed by `=> ` and what is said about it.
const WRONG_FILES: &str = include_str!("wrong_files.txt");

#[test]
fn every_wrong_file_gets_one_line_that_says_where_what_and_what_would_be_right() {
    let mut file = String::new();
    let mut cases = 0;
    let mut different = String::new();
    for line in WRONG_FILES.lines() {
        let Some(expected) = line.strip_prefix("=> ") else {
            // The empty lines after a case belong to no file.
            if !(file.is_empty() && line.is_empty()) {
                file += line;
                file += "\n";
            }
            continue;
        };
        let said = parse(&file).expect_err(&file).to_string();
        if said != expected {
            different += &format!("{file}   expected {expected}\n   said     {said}\n\n");
        }
        cases += 1;
        file.clear();
    }
    assert!(different.is_empty(), "{different}");
    assert!(cases > 90, "{cases} cases");
}

#[test]
fn wrong_places_in_a_graph_are_found() {
    for (change, into, expected) in [
        (
            "subnet6 = ",
            "subnet = \"192.168.0.0/16\"\nsubnet6 = ",
            "s.toml:34:10: links.core.subnet: 192.168.0.0/16 overlaps the network of another link",
        ),
        (
            "link = \"radio\"",
            "link = \"lan\"",
            "s.toml:7:89: hosts.mobile.routes[1].link: no link leads from `mobile[0]` straight to `gateway`",
        ),
        (
            "link = \"radio\"",
            "link = \"wlan\"",
            "s.toml:7:89: hosts.mobile.routes[1].link: unknown link `wlan` (did you mean `lan`?); valid: core, lan, radio",
        ),
        (
            "to = \"default\", via = \"gateway\"",
            "to = \"default\", via = \"origin\"",
            "s.toml:7:35: hosts.mobile.routes[0].via: no link leads from `mobile[0]` straight to `origin`",
        ),
        (
            "to = \"default\"",
            "to = \"orgin\"",
            "s.toml:7:18: hosts.mobile.routes[0].to: unknown destination `orgin` (did you mean `origin`?); \
             valid: mobile, laptop, gateway, origin, core, lan, radio, default",
        ),
        (
            "to = \"default\"",
            "to = \"10.0.0.0/33\"",
            "s.toml:7:18: hosts.mobile.routes[0].to: `10.0.0.0/33` is not a network such as \"10.1.0.0/16\" or \"fd00:1::/64\"",
        ),
    ] {
        let text = GRAPH.replacen(change, into, 1);
        assert_ne!(text, GRAPH, "{change}");
        assert_eq!(parse(&text).unwrap_err().to_string(), expected);
    }
}

#[test]
fn wrong_options_are_named_as_they_were_typed() {
    for (key, value, expected) in [
        (
            "links.radio.loss.downlink",
            "1.1",
            "--set links.radio.loss.downlink=1.1: links.radio.loss.downlink: 1.1 is not a probability between 0 and 1",
        ),
        (
            "links.raido.loss.downlink",
            "0.1",
            "--set links.raido.loss.downlink=0.1: unknown link `raido` (did you mean `radio`?); valid: radio, internet",
        ),
        (
            "hosts.phone.app",
            "fetch",
            "--set hosts.phone.app=fetch: unknown host `phone`; valid: mobile, gateway, origin",
        ),
        ("links.wlan", "cell", "--set links.wlan=cell: unknown link `wlan`; valid: radio, internet"),
        (
            "environments.rom",
            "{ distance = 5 }",
            "--set environments.rom={ distance = 5 }: unknown environment `rom`; there are none",
        ),
        (
            "links.internet.rate",
            "-1Mbit/s",
            "--set links.internet.rate=-1Mbit/s: links.internet.rate: `-1Mbit/s` is negative",
        ),
        (
            "links.internet.rat",
            "1Mbit/s",
            "--set links.internet.rat=1Mbit/s: links.internet: unknown key `rat` (did you mean `rate`?); \
             valid: rate, delay, queue, bearer, between, mtu, subnet, subnet6, addresses, grade, faults",
        ),
        (
            "links.internet.queue",
            "5",
            "--set links.internet.queue=5: links.internet.queue: expected a queue limit such as \"100 packets\" or \"64kB\", found the integer 5",
        ),
        (
            "run.seed",
            "x",
            "--set run.seed=x: run.seed: expected an integer from 0 to 18446744073709551615, found the text `x`",
        ),
        (
            "run.sed",
            "1",
            "--set run.sed=1: run: unknown key `sed` (did you mean `seed`?); valid: until, limit, seed, record, points, epoch, keep_awake, lateness_limit",
        ),
        (
            "lniks.x",
            "1",
            "--set lniks.x=1: unknown key `lniks` (did you mean `links`?); valid: title, path, hosts, environments, links, run, timeline",
        ),
        (
            "links.internet.bearer",
            "cell",
            "s.toml:12:50: links.internet: unknown key `delay` (with --set links.internet.bearer=cell); \
             valid: rate, loss, window, trace, bearer, between, mtu, subnet, subnet6, addresses, grade, faults",
        ),
        (
            "links.*.mtu",
            "67",
            "--set links.*.mtu=67: links.radio.mtu: expected an integer from 68 to 65535, found the integer 67",
        ),
        (
            "links.*.mtu",
            "large",
            "--set links.*.mtu=large: links.radio.mtu: expected an integer from 68 to 65535, found the text `large`",
        ),
        (
            "links.w*.mtu",
            "2088",
            "--set links.w*.mtu=2088: no name in `links` matches `w*`; valid: radio, internet",
        ),
        (
            "link.*.mtu",
            "2088",
            "--set link.*.mtu=2088: unknown key `link` (did you mean `links`?); valid: title, path, hosts, links, run, timeline",
        ),
        ("x*", "1", "--set x*=1: no key matches `x*`; valid: title, path, hosts, links, run, timeline"),
        ("title.*", "1", "--set title.*=1: no name in `title` matches `*`"),
        ("", "1", "--set =1: `` is not a key such as links.radio.loss.downlink"),
        ("run..seed", "1", "--set run..seed=1: `run..seed` is not a key such as links.radio.loss.downlink"),
        ("title.x", "1", "--set title.x=1: title is the text `A page over a cell`, which has no `x`"),
        ("path.9", "\"x\"", "--set path.9=\"x\": path is a list of 5, which has no `9`"),
        ("timeline.7.at", "5s", "--set timeline.7.at=5s: timeline is a list of 2, which has no `7`"),
        (
            "run.until",
            "1s\nseed = 4",
            "--set run.until=1s\\u{a}seed = 4: run.until: unknown unit `s\\u{a}seed = 4` in `1s\\u{a}seed = 4`; valid: ns, us, ms, s, min, h",
        ),
    ] {
        assert_eq!(with(CHAIN, &[(key, value)]).unwrap_err().to_string(), expected);
    }
}

#[test]
fn real_hosts_must_exist() {
    for (host, expected) in [
        (
            "orgin",
            "--real orgin: unknown host `orgin` (did you mean `origin`?); valid: mobile, laptop, gateway, origin",
        ),
        ("mobile[x]", "--real mobile[x]: `mobile[x]` has no number in its brackets"),
        (
            "mobile[3]",
            "--real mobile[3]: hosts.mobile.real[1]: expected an integer from 0 to 2, found the integer 3",
        ),
        ("laptop[0]", "--real laptop[0]: hosts.laptop.real: expected true or false, found a list"),
    ] {
        let mut document = Document::read("s.toml", GRAPH.as_bytes()).unwrap();
        let said = match document.set_real(host) {
            Err(e) => e,
            Ok(()) => document.scenario(&fakes()).unwrap_err(),
        };
        assert_eq!(said.to_string(), expected);
    }
}

#[test]
fn a_bearer_alone_is_checked_like_a_file() {
    let said = |bearer: &str, key: &str, value: &str| {
        let settings = [(key.to_owned(), value.to_owned())];
        let document = Document::for_bearer(&fakes(), bearer, &settings);
        document.and_then(|mut d| d.scenario(&fakes())).unwrap_err().to_string()
    };
    assert_eq!(
        said("sell", "window", "1"),
        "emulate sell: links.link.bearer: unknown bearer `sell` (did you mean `cell`?); valid: wire, cell"
    );
    assert_eq!(
        said("cell", "rate", "fast"),
        "--set rate=fast: links.link.rate: `fast` is not a number with a unit such as \"384kbit/s\" \
         (units: bit/s, kbit/s, Mbit/s, Gbit/s)"
    );
    assert_eq!(
        said("cell", "widow", "1"),
        "--set widow=1: links.link: unknown key `widow` (did you mean `window`?); \
         valid: rate, loss, window, trace, bearer, between, mtu, subnet, subnet6, addresses, grade, faults"
    );
}

#[test]
fn octets_that_are_no_text_are_refused_with_their_place() {
    let said = |octets: &[u8]| Document::read("s.toml", octets).unwrap_err().to_string();
    assert_eq!(said(b"a = 1\nb = \"\xff\"\n"), "s.toml:2:6: octet 0xff is not UTF-8 text");
    assert_eq!(said(&[0x1f, 0x8b, 8, 0]), "s.toml:1:2: octet 0x8b is not UTF-8 text");
    assert_eq!(said(b"a = \"\0\""), "s.toml:1:6: the character U+0000 does not belong in a text file");
    assert_eq!(said(&[0; 100]), "s.toml:1:1: the character U+0000 does not belong in a text file");
    assert_eq!(
        said(&vec![b' '; 9 << 20]),
        "s.toml:1:1: the file has 9437184 octets; at most 8388608 are read"
    );
}

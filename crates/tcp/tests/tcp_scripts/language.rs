//! The language of the scripts: a time, a direction and a segment on each line.
//!
//! ```text
//! # RFC 9293 3.10.7.4: what the script shows (first line; more of them for more rules)
//! # any further comment
//! set KEY VALUE            a setting of TCP, as in a scenario; without `set profile` the plain one (see `plain`)
//! host mtu 1040            our side: mtu, iss (the initial sequence number), ipv6
//! peer mss 1000            the peer's SYN and segments: mss (or none), window, iss, wscale, sack, ts (TSval)
//! handshake passive 0.1    the peer opens (active: we do), a round trip of so many seconds; `time` goes on from 0
//!
//! 0    call write 5000     connect, write N [takes M], read N [gives M], finish, reset, mtu N, pause, resume
//! .    > A 1+1000x4        leaves: flags, number + length, x repetitions. `.`: the same moment, `+0.1`: so much later
//! 0.1  << A 1 ack 1001     arrives, and the next one right behind it, before anything leaves
//! 0.1  < A 1 ack 1001      arrives; `ack 1001..4001/1000` are four of them
//! 0.1  told opened         readable, writable, finished, closed REASON, lingering, gone, nothing
//! 0.1  expect cwnd 5000    cwnd, ssthresh, flight, rto, srtt, phase, resent, spurious, timeouts, sent, received, timer, gone
//! 9    quiet               nothing leaves until then
//! ```
//!
//! Numbers are relative to the two SYNs. What a line does not mention is not compared, apart from flags (PSH excepted),
//! number and length; `*` stands for anything. Whatever leaves must have its line, in order, at its moment.
//!
//! Fields of a segment: `ack N`, `win N` (as it stands in the header), `urg N`, `mss N`, `wscale N`, `sackok`,
//! `ts VALUE:ECHO` (ours counted from our SYN's), `sack A-B,C-D`, each also with `none`; `opt HEX` (arriving: further
//! options), `ecn ect0|ect1|ce|not`, `seqraw N`, `ackraw N`.

use std::fmt::Write as _;

/// A whole script.
#[derive(Debug, Default)]
pub struct Script {
    /// What it covers: standard, section, sentence.
    pub rules: Vec<(String, String, String)>,
    /// Settings of TCP.
    pub settings: Vec<(String, String)>,
    /// Our side.
    pub host: Vec<(String, String)>,
    /// The peer.
    pub peer: Vec<(String, String)>,
    /// How the connection is opened before the first event.
    pub handshake: Option<(bool, f64)>,
    /// What happens, in order.
    pub events: Vec<Event>,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its number, from 1.
    pub line: usize,
    /// Microseconds since the beginning; `None`: whenever it comes.
    pub at: Option<u64>,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub enum Kind {
    /// Arrives; `true`: the next one comes before anything leaves.
    Arrives(Segment, bool),
    Leaves(Segment),
    Call(Vec<String>),
    Told(Vec<String>),
    Expect(Vec<(String, String)>),
    Quiet,
}

/// A field of a segment as the script gives it.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Field<T> {
    /// Not mentioned, or `*`.
    #[default]
    Any,
    /// `none`.
    Absent,
    Is(T),
}

impl<T> Field<T> {
    pub fn get(&self) -> Option<&T> {
        match self {
            Field::Is(value) => Some(value),
            _ => None,
        }
    }
}

/// A segment.
#[derive(Clone, Debug, Default)]
pub struct Segment {
    pub flags: u8,
    /// Other flags do not matter.
    pub open_flags: bool,
    /// Was PSH mentioned?
    pub push: bool,
    pub seq: Field<i64>,
    pub len: u32,
    pub ack: Field<i64>,
    pub win: Field<u16>,
    pub urg: Field<u16>,
    pub mss: Field<u16>,
    pub wscale: Field<u8>,
    pub sackok: Field<()>,
    /// Value and echo, each perhaps anything.
    pub ts: Field<(Option<i64>, Option<i64>)>,
    pub sack: Field<Vec<(i64, i64)>>,
    pub opt: Vec<u8>,
    pub ecn: Option<u8>,
    pub seqraw: Option<u32>,
    pub ackraw: Option<u32>,
}

const FLAGS: &[u8; 8] = b"FSRPAUEC";

/// The letters of these flags.
pub fn flag_letters(flags: u8) -> String {
    let letters: String = (0..8).filter(|i| flags >> i & 1 != 0).map(|i| char::from(FLAGS[i])).collect();
    if letters.is_empty() { "-".to_owned() } else { letters }
}

type Result<T> = std::result::Result<T, String>;

fn number<T: std::str::FromStr>(word: &str) -> Result<T> {
    word.parse().map_err(|_| format!("`{word}` is no such number"))
}

fn field<T>(word: &str, read: impl FnOnce(&str) -> Result<T>) -> Result<Field<T>> {
    match word {
        "*" => Ok(Field::Any),
        "none" => Ok(Field::Absent),
        _ => read(word).map(Field::Is),
    }
}

fn micros(word: &str) -> Result<u64> {
    let seconds: f64 = number(word)?;
    if !(0.0..1e12).contains(&seconds) {
        return Err(format!("`{word}` is no time"));
    }
    Ok((seconds * 1e6).round() as u64)
}

/// The segments of a line: more than one where it repeats.
fn segments(words: &[&str]) -> Result<Vec<Segment>> {
    let mut words = words.iter();
    let mut next = |what: &str| words.next().copied().ok_or(format!("{what} is missing"));
    let flags = next("flags")?;
    let mut s = Segment::default();
    for letter in flags.bytes() {
        match (letter, FLAGS.iter().position(|f| *f == letter)) {
            (b'*', _) => s.open_flags = true,
            (b'-', _) => {}
            (_, Some(bit)) => s.flags |= 1 << bit,
            _ => return Err(format!("`{flags}` are no flags")),
        }
    }
    s.push = s.flags & 8 != 0;
    let place = next("a sequence number")?;
    let (place, count) = match place.split_once('x') {
        Some((place, count)) => (place, number::<u32>(count)?),
        None => (place, 1),
    };
    let (seq, len) = place.split_once('+').map_or((place, "0"), |both| both);
    s.seq = field(seq, number)?;
    s.len = number(len)?;
    let mut acks = Vec::new();
    while let Ok(key) = next("a field") {
        if key == "sackok" {
            s.sackok = Field::Is(());
            continue;
        }
        let value = next("a value")?;
        match key {
            "ack" if value.contains("..") => {
                let (range, step) = value.split_once('/').ok_or("a range of acknowledgements has a step")?;
                let (from, to) = range.split_once("..").ok_or("a range has two ends")?;
                let (from, to, step): (i64, i64, i64) = (number(from)?, number(to)?, number(step)?);
                if step <= 0 || from > to {
                    return Err(format!("`{value}` is no range"));
                }
                acks = (from..=to).step_by(step as usize).collect();
            }
            "ack" => s.ack = field(value, number)?,
            "win" => s.win = field(value, number)?,
            "urg" => s.urg = field(value, number)?,
            "mss" => s.mss = field(value, number)?,
            "wscale" => s.wscale = field(value, number)?,
            "no" if value == "sackok" => s.sackok = Field::Absent,
            "ts" => {
                s.ts = field(value, |word| {
                    let part = |p: &str| if p == "*" { Ok(None) } else { number(p).map(Some) };
                    match word.split_once(':') {
                        Some((value, echo)) => Ok((part(value)?, part(echo)?)),
                        None => Ok((part(word)?, None)),
                    }
                })?;
            }
            "sack" => {
                s.sack = field(value, |word| {
                    let block = |b: &str| {
                        let (left, right) = b.split_once('-').ok_or(format!("`{b}` is no block"))?;
                        Ok((number(left)?, number(right)?))
                    };
                    word.split(',').map(block).collect()
                })?;
            }
            "opt" => {
                let octet = |i: usize| u8::from_str_radix(value.get(i..i + 2).unwrap_or("?"), 16);
                let octets: std::result::Result<_, _> = (0..value.len()).step_by(2).map(octet).collect();
                s.opt = octets.map_err(|_| format!("`{value}` are no octets"))?;
            }
            "ecn" => {
                let name = ["not", "ect1", "ect0", "ce"].iter().position(|n| *n == value);
                s.ecn = Some(name.ok_or(format!("`{value}` is no ECN codepoint"))? as u8);
            }
            "seqraw" => s.seqraw = Some(number(value)?),
            "ackraw" => s.ackraw = Some(number(value)?),
            _ => return Err(format!("`{key}` is no field")),
        }
    }
    let mut all = Vec::new();
    for i in 0..i64::from(count) {
        let mut one = s.clone();
        if let Field::Is(seq) = &mut one.seq {
            *seq += i * i64::from(s.len);
        }
        all.push(one);
    }
    if acks.is_empty() {
        return Ok(all);
    }
    Ok(acks.into_iter().map(|ack| Segment { ack: Field::Is(ack), ..s.clone() }).collect())
}

fn pairs(words: &[&str]) -> Result<Vec<(String, String)>> {
    if !words.len().is_multiple_of(2) || words.is_empty() {
        return Err("names and values come in pairs".to_owned());
    }
    Ok(words.chunks(2).map(|p| (p[0].to_owned(), p[1].to_owned())).collect())
}

impl Script {
    /// Reads a script; the error names the line.
    pub fn parse(text: &str) -> Result<Script> {
        let mut script = Script::default();
        let mut last = 0;
        for (line, content) in (1..).zip(text.lines()) {
            script.line(line, content, &mut last).map_err(|why| format!("{line}: {why}"))?;
        }
        if script.rules.is_empty() {
            return Err("1: the first line says which rule is shown: `# RFC 9293 3.4: ...`".to_owned());
        }
        if script.events.is_empty() {
            return Err("nothing happens".to_owned());
        }
        Ok(script)
    }

    fn line(&mut self, line: usize, content: &str, last: &mut u64) -> Result<()> {
        if let Some(comment) = content.strip_prefix("# ") {
            if let Some((source, sentence)) = comment.split_once(": ")
                && (source.starts_with("RFC ") || source.starts_with("Linux"))
            {
                let mut words = source.splitn(3, ' ');
                let first = words.next().unwrap_or_default();
                let standard = match (first, words.next()) {
                    ("RFC", Some(number)) => format!("RFC {number}"),
                    _ => first.to_owned(),
                };
                let section = words.next().unwrap_or("-").to_owned();
                self.rules.push((standard, section, sentence.to_owned()));
            }
            return Ok(());
        }
        let code = content.split_once(" # ").map_or(content, |(code, _)| code);
        let words: Vec<&str> = code.split_whitespace().collect();
        match words[..] {
            [] => {}
            ["set", key, ref value @ ..] if !value.is_empty() => {
                self.settings.push((key.to_owned(), value.join(" ")))
            }
            ["host", ref rest @ ..] => self.host.extend(pairs(rest)?),
            ["peer", ref rest @ ..] => self.peer.extend(pairs(rest)?),
            ["handshake", who @ ("passive" | "active"), ref rtt @ ..] => {
                let rtt = rtt.first().map_or(Ok(0.0), |word| number(word))?;
                self.handshake = Some((who == "active", rtt));
                *last = (rtt * 1e6).round() as u64;
            }
            [time, kind, ref rest @ ..] => {
                let at = match time {
                    "*" => None,
                    "." => Some(*last),
                    _ => Some(match time.strip_prefix('+') {
                        Some(more) => *last + micros(more)?,
                        None => micros(time)?,
                    }),
                };
                if at.is_some_and(|at| at < *last) {
                    return Err("time does not go backwards".to_owned());
                }
                *last = at.unwrap_or(*last);
                let owned = || rest.iter().map(|w| (*w).to_owned()).collect::<Vec<String>>();
                let kinds = match kind {
                    "<" | "<<" => {
                        segments(rest)?.into_iter().map(|s| Kind::Arrives(s, kind == "<<")).collect()
                    }
                    ">" => segments(rest)?.into_iter().map(Kind::Leaves).collect(),
                    "call" => vec![Kind::Call(owned())],
                    "told" => vec![Kind::Told(owned())],
                    "expect" => vec![Kind::Expect(pairs(rest)?)],
                    "quiet" => vec![Kind::Quiet],
                    _ => return Err(format!("`{kind}` is none of <, <<, >, call, told, expect, quiet")),
                };
                if at.is_none() && kind != ">" {
                    return Err("only what leaves can come whenever it does".to_owned());
                }
                self.events.extend(kinds.into_iter().map(|kind| Event { line, at, kind }));
            }
            [word] => return Err(format!("`{word}` alone says nothing")),
        }
        Ok(())
    }
}

/// The moment as a script writes it.
pub fn seconds(micros: u64) -> String {
    let mut text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    while text.ends_with('0') {
        text.pop();
    }
    if text.ends_with('.') {
        text.pop();
    }
    text
}

impl std::fmt::Display for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = flag_letters(self.flags);
        if self.open_flags {
            text.push('*');
        }
        fn show<T: std::fmt::Display>(text: &mut String, name: &str, field: &Field<T>) {
            let _ = match field {
                Field::Any => Ok(()),
                Field::Absent => write!(text, " {name} none"),
                Field::Is(value) => write!(text, " {name} {value}"),
            };
        }
        match self.seq {
            Field::Is(seq) => write!(text, " {seq}")?,
            _ => text.push_str(" *"),
        }
        if self.len > 0 {
            write!(text, "+{}", self.len)?;
        }
        show(&mut text, "ack", &self.ack);
        show(&mut text, "win", &self.win);
        show(&mut text, "urg", &self.urg);
        show(&mut text, "mss", &self.mss);
        show(&mut text, "wscale", &self.wscale);
        match self.sackok {
            Field::Any => {}
            Field::Absent => text.push_str(" no sackok"),
            Field::Is(()) => text.push_str(" sackok"),
        }
        match &self.ts {
            Field::Any => {}
            Field::Absent => text.push_str(" ts none"),
            Field::Is((value, echo)) => {
                let part = |p: &Option<i64>| p.map_or("*".to_owned(), |n| n.to_string());
                write!(text, " ts {}:{}", part(value), part(echo))?;
            }
        }
        match &self.sack {
            Field::Any => {}
            Field::Absent => text.push_str(" sack none"),
            Field::Is(blocks) => {
                let blocks: Vec<_> = blocks.iter().map(|(l, r)| format!("{l}-{r}")).collect();
                write!(text, " sack {}", blocks.join(","))?;
            }
        }
        if let Some(ecn) = self.ecn {
            write!(text, " ecn {}", ["not", "ect1", "ect0", "ce"][usize::from(ecn & 3)])?;
        }
        if let Some(raw) = self.seqraw {
            write!(text, " seqraw {raw}")?;
        }
        if let Some(raw) = self.ackraw {
            write!(text, " ackraw {raw}")?;
        }
        f.write_str(&text)
    }
}

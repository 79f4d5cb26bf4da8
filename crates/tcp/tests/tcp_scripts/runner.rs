//! Plays a script: one TCP, the script as its peer and its application.

use std::collections::VecDeque;
use std::net::IpAddr;

use airloom_base::record::{CongestionRecord, Record};
use airloom_base::service::{FlowFacts, Identity, Path};
use airloom_base::{
    Body, Cx, Duration, Instant, Outbox, Packet, PathId, Protocol, Transport, TransportEvent,
};
use airloom_tcp::wire::{Flags, Header, MAX_HEADER, Options};
use airloom_tcp::{Config, Profile, Tcp};
use serde_json::{Value, json};

use super::language::{Event, Field, Kind, Script, Segment, seconds};

type Result<T> = std::result::Result<T, String>;

/// What our application writes, and what the peer does.
const OURS: u32 = 9;
const THEIRS: u32 = 4;
const PORTS: (u16, u16) = (80, 40_000);

/// The standards' profile without options, acknowledging everything at once.
fn plain() -> Value {
    let mut table = serde_json::to_value(Profile::Rfc.settings()).expect("settings can be written");
    for key in ["timestamps", "sack", "window_scaling"] {
        table[key] = json!(false);
    }
    table["delayed_ack"] = json!("none");
    table
}

/// The settings of a script.
fn config(script: &Script) -> Result<Config> {
    let profile = script.settings.iter().any(|(key, _)| key == "profile");
    let mut table = if profile { json!({}) } else { plain() };
    for (key, value) in &script.settings {
        // Numbers, switches and tables as in JSON; everything else is text.
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.clone()));
        table[key.as_str()] = value;
    }
    serde_json::from_value(table).map_err(|why| format!("settings: {why}"))
}

fn find<'a>(list: &'a [(String, String)], key: &str) -> Option<&'a str> {
    list.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
}

fn number_of<T: std::str::FromStr>(list: &[(String, String)], key: &str) -> Result<Option<T>> {
    find(list, key).map(|v| v.parse().map_err(|_| format!("`{v}` is no value of {key}"))).transpose()
}

/// Octets `seq..seq + len` of a stream whose first octet has number 1.
fn piece(source: u32, seq: i64, len: u32) -> Body {
    // What lies before the stream is made up as well.
    let mut whole = Body::filler(source, 1 << 31);
    let _ = whole.split_to((seq + 1_000_000).max(0) as usize);
    whole.split_to(len as usize)
}

/// Plays the script; the error is what to show.
pub fn play(script: &Script) -> Result<()> {
    let mut stage = Stage::new(script)?;
    let outcome = stage.perform(script);
    outcome.map_err(|why| {
        let from = stage.log.len().saturating_sub(12);
        format!("{why}\n  what happened before:\n    {}", stage.log[from..].join("\n    "))
    })
}

struct Stage {
    start: Instant,
    now: Instant,
    outbox: Outbox,
    tcp: Tcp,
    path: Path,
    conn: Option<Box<dyn Transport>>,
    lingering: bool,
    facts: FlowFacts,
    congestion: Option<CongestionRecord>,
    out: VecDeque<(Instant, Segment)>,
    events: VecDeque<TransportEvent>,
    reads: bool,
    received: Vec<u8>,
    written: u32,
    /// Our initial number and timestamp, once they were seen.
    iss: Option<u32>,
    first_timestamp: Option<u32>,
    last_timestamp: u32,
    peer_iss: u32,
    peer_mss: Option<u16>,
    peer_window: u16,
    peer_wscale: Option<u8>,
    peer_sack: bool,
    peer_timestamp: Option<u32>,
    /// Line of the last event that was not about what leaves.
    line: usize,
    /// Octets left that were never written.
    forged: bool,
    log: Vec<String>,
}

impl Stage {
    fn new(script: &Script) -> Result<Stage> {
        let config = config(script)?;
        let v6 = find(&script.host, "ipv6").is_some_and(|v| v == "yes");
        let address = |n: u16| -> IpAddr {
            if v6 { [0xfd00, 0, 0, 0, 0, 0, 0, n].into() } else { [10, 0, 0, n as u8].into() }
        };
        let mtu = number_of(&script.host, "mtu")?.unwrap_or(if v6 { 1060 } else { 1040 });
        let path = Path { local: address(2), remote: address(1), mtu };
        let start = match number_of::<u32>(&script.host, "iss")? {
            // Initial numbers come from a clock of four microseconds: begin when it shows this one.
            Some(wanted) => {
                let ticks = wanted.wrapping_sub(first_number(&config, path));
                Instant::ZERO + Duration::from_nanos(u64::from(ticks) * 4000)
            }
            None => Instant::ZERO,
        };
        let peer = &script.peer;
        let mut outbox = Outbox::default();
        outbox.ask_facts(true, true);
        Ok(Stage {
            start,
            now: start,
            outbox,
            tcp: Tcp::new(config, 1),
            path,
            conn: None,
            lingering: false,
            facts: FlowFacts::default(),
            congestion: None,
            out: VecDeque::new(),
            events: VecDeque::new(),
            reads: true,
            received: Vec::new(),
            written: 0,
            iss: None,
            first_timestamp: None,
            last_timestamp: 0,
            peer_iss: number_of(peer, "iss")?.unwrap_or(1000),
            peer_mss: match find(peer, "mss") {
                Some("none") => None,
                Some(_) => number_of(peer, "mss")?,
                None => Some(1000),
            },
            peer_window: number_of(peer, "window")?.unwrap_or(65_535),
            peer_wscale: number_of(peer, "wscale")?,
            peer_sack: find(peer, "sack").is_some_and(|v| v == "yes"),
            peer_timestamp: number_of(peer, "ts")?,
            line: 0,
            forged: false,
            log: Vec::new(),
        })
    }

    fn micros(&self, at: Instant) -> u64 {
        at.since(self.start).as_nanos() / 1000
    }

    fn perform(&mut self, script: &Script) -> Result<()> {
        if let Some((active, rtt)) = script.handshake {
            self.handshake(active, Duration::from_nanos((rtt * 1e9).round() as u64))?;
        }
        for event in &script.events {
            self.event(event).map_err(|why| format!("line {}: {why}", event.line))?;
        }
        if let Some((at, segment)) = self.out.front() {
            let at = seconds(self.micros(*at));
            return Err(format!("after the last line there is\n    {at}  > {segment}"));
        }
        if self.forged {
            return Err("other octets left than were written".to_owned());
        }
        let whole = piece(THEIRS, 1, self.received.len() as u32).to_bytes();
        if whole != self.received {
            return Err("other octets were read than were sent".to_owned());
        }
        Ok(())
    }

    fn handshake(&mut self, active: bool, rtt: Duration) -> Result<()> {
        let segment = |flags: Flags, seq: i64, ack: i64| Segment {
            flags: flags.0,
            seq: Field::Is(seq),
            ack: if flags.has(Flags::ACK) { Field::Is(ack) } else { Field::Any },
            ..Segment::default()
        };
        let syn_ack = Flags::SYN.with(Flags::ACK);
        let expected = if active {
            self.connect();
            self.advance(self.now + rtt);
            self.arrives(&segment(syn_ack, 0, 1), false)?;
            vec![Flags::SYN, Flags::ACK]
        } else {
            self.arrives(&segment(Flags::SYN, 0, 0), false)?;
            self.advance(self.now + rtt);
            self.arrives(&segment(Flags::ACK, 1, 1), false)?;
            vec![syn_ack]
        };
        let left: Vec<u8> =
            self.out.drain(..).map(|(_, s)| s.flags & !(Flags::ECE.0 | Flags::CWR.0)).collect();
        let opened = self.events.drain(..).any(|e| e == TransportEvent::Opened);
        if left != expected.iter().map(|f| f.0).collect::<Vec<_>>() || !opened {
            return Err("the handshake went wrong".to_owned());
        }
        Ok(())
    }

    fn event(&mut self, event: &Event) -> Result<()> {
        if let Kind::Leaves(expected) = &event.kind {
            return self.leaves(event.at, expected);
        }
        let at = self.start + Duration::from_nanos(event.at.unwrap_or(0) * 1000);
        if at < self.now {
            return Err(format!("it is {} already", seconds(self.micros(self.now))));
        }
        self.advance(at);
        // What leaves between the segments of one line comes after it.
        let same_line = std::mem::replace(&mut self.line, event.line) == event.line;
        if let Some((at, segment)) = self.out.front().filter(|_| !same_line) {
            let at = seconds(self.micros(*at));
            return Err(format!("before this nothing should leave, but there is\n    {at}  > {segment}"));
        }
        match &event.kind {
            Kind::Arrives(segment, more) => self.arrives(segment, *more),
            Kind::Call(words) => self.call(words),
            Kind::Told(words) => self.told(words),
            Kind::Expect(pairs) => pairs.iter().try_for_each(|(key, value)| self.expect(key, value)),
            Kind::Leaves(_) | Kind::Quiet => Ok(()),
        }
    }

    fn leaves(&mut self, at: Option<u64>, expected: &Segment) -> Result<()> {
        let end = at.map_or(Instant::FAR_FUTURE, |at| self.start + Duration::from_nanos(at * 1000));
        while self.out.is_empty() {
            let due = self.conn.as_ref().and_then(|c| c.poll_timeout()).filter(|due| *due <= end);
            match due {
                Some(due) => self.expire(due),
                None => break,
            }
        }
        let wanted = format!("    {}  > {expected}", at.map_or("*".to_owned(), seconds));
        let Some((when, segment)) = self.out.pop_front() else {
            if at.is_some() {
                self.now = self.now.max(end);
            }
            return Err(format!("nothing leaves, expected\n{wanted}"));
        };
        let when = self.micros(when);
        let mut differences = differences(expected, &segment);
        if at.is_some_and(|at| at != when) {
            differences.insert(0, "time".to_owned());
        }
        if differences.is_empty() {
            return Ok(());
        }
        let found = format!("    {}  > {segment}", seconds(when));
        Err(format!("expected\n{wanted}\n  but there is\n{found}\n  different: {}", differences.join(", ")))
    }

    /// Lets time pass; timers expire when they are due.
    fn advance(&mut self, end: Instant) {
        while let Some(due) = self.conn.as_ref().and_then(|c| c.poll_timeout()).filter(|due| *due <= end) {
            self.expire(due);
        }
        self.now = self.now.max(end);
    }

    fn expire(&mut self, due: Instant) {
        self.now = self.now.max(due);
        self.with(|t, cx| t.handle_timeout(cx));
    }

    /// Calls the connection, then takes everything that comes out.
    fn with<R>(&mut self, f: impl FnOnce(&mut dyn Transport, &mut Cx) -> R) -> Option<R> {
        let mut cx = Cx { now: self.now, records: &mut self.outbox };
        let result = self.conn.as_mut().map(|c| f(c.as_mut(), &mut cx));
        self.drain();
        result
    }

    fn drain(&mut self) {
        while let Some(conn) = &mut self.conn {
            let mut cx = Cx { now: self.now, records: &mut self.outbox };
            if let Some(outgoing) = conn.poll_transmit(&mut cx) {
                self.note(&outgoing.packet, outgoing.ecn);
                continue;
            }
            if !self.lingering {
                self.facts = conn.facts();
            }
            let Some(event) = conn.poll_event() else { break };
            self.events.push_back(event);
            match event {
                TransportEvent::Readable(..) if self.reads => self.read_all(),
                TransportEvent::Lingering => {
                    self.conn = self.conn.take().map(|c| c.into_lingering());
                    self.lingering = true;
                }
                TransportEvent::Gone => self.conn = None,
                TransportEvent::Asked | TransportEvent::Stream(..) => {}
                _ => {}
            }
        }
        for record in self.outbox.facts.drain(..) {
            if let Record::Congestion(c) = record {
                self.congestion = Some(c);
            }
        }
    }

    fn read_all(&mut self) {
        let mut cx = Cx { now: self.now, records: &mut self.outbox };
        while let Some(body) = self.conn.as_mut().and_then(|c| c.read(&mut cx, 0, 1 << 20)) {
            self.received.extend_from_slice(&body.to_bytes());
        }
    }

    /// Something left.
    fn note(&mut self, packet: &Packet, ecn: u8) {
        let (h, _) = Header::parse(packet.head()).expect("what leaves has a header");
        if h.flags.has(Flags::SYN) {
            self.iss = Some(h.seq);
        }
        let iss = self.iss.unwrap_or(0);
        let relative = |n: u32, to: u32| i64::from(n.wrapping_sub(to).cast_signed());
        let seq = relative(h.seq, iss);
        if let Some((value, _)) = h.options.timestamps {
            self.first_timestamp.get_or_insert(value);
            self.last_timestamp = value;
        }
        let body = packet.body();
        let ours = seq - 1 + i64::from(h.flags.has(Flags::SYN));
        if !body.is_empty() && body.to_bytes() != piece(OURS, ours, body.len() as u32).to_bytes() {
            self.forged = true;
        }
        let first = self.first_timestamp.unwrap_or(0);
        let present = |there: bool| if there { Field::Is(()) } else { Field::Absent };
        let option = |o: Option<u16>| o.map_or(Field::Absent, Field::Is);
        let segment = Segment {
            flags: h.flags.0,
            push: h.flags.has(Flags::PSH),
            seq: Field::Is(seq),
            len: body.len() as u32,
            ack: if h.flags.has(Flags::ACK) {
                Field::Is(relative(h.ack, self.peer_iss))
            } else {
                Field::Absent
            },
            win: Field::Is(h.window),
            urg: Field::Is(h.urgent),
            mss: option(h.options.mss),
            wscale: h.options.window_scale.map_or(Field::Absent, Field::Is),
            sackok: present(h.options.sack_permitted),
            ts: h.options.timestamps.map_or(Field::Absent, |(value, echo)| {
                Field::Is((Some(relative(value, first)), Some(i64::from(echo))))
            }),
            sack: match h.options.sack.as_slice() {
                [] => Field::Absent,
                blocks => Field::Is(
                    blocks
                        .iter()
                        .map(|(l, r)| (relative(*l, self.peer_iss), relative(*r, self.peer_iss)))
                        .collect(),
                ),
            },
            ecn: Some(ecn),
            seqraw: Some(h.seq),
            ackraw: Some(h.ack),
            ..Segment::default()
        };
        self.log.push(format!("{}  > {segment}", seconds(self.micros(self.now))));
        self.out.push_back((self.now, segment));
    }

    /// The packet of a segment of the peer.
    fn packet(&self, s: &Segment) -> Packet {
        let flags = Flags(s.flags);
        let iss = self.iss.unwrap_or(0);
        let mut options = Options::default();
        if flags.has(Flags::SYN) {
            options.mss = self.peer_mss;
            options.window_scale = self.peer_wscale;
            options.sack_permitted = self.peer_sack;
        }
        match s.mss {
            Field::Is(mss) => options.mss = Some(mss),
            Field::Absent => options.mss = None,
            Field::Any => {}
        }
        match s.wscale {
            Field::Is(shift) => options.window_scale = Some(shift),
            Field::Absent => options.window_scale = None,
            Field::Any => {}
        }
        match s.sackok {
            Field::Is(()) => options.sack_permitted = true,
            Field::Absent => options.sack_permitted = false,
            Field::Any => {}
        }
        let echo = if flags.has(Flags::ACK) { self.last_timestamp } else { 0 };
        options.timestamps = match s.ts {
            Field::Absent => None,
            Field::Any => self.peer_timestamp.map(|value| (value, echo)),
            Field::Is((value, given)) => {
                let value = value.map_or(self.peer_timestamp.unwrap_or(0), |v| v as u32);
                let first = self.first_timestamp.unwrap_or(0);
                Some((value, given.map_or(echo, |e| first.wrapping_add(e as u32))))
            }
        };
        for (left, right) in s.sack.get().into_iter().flatten() {
            options.sack.push(iss.wrapping_add(*left as u32), iss.wrapping_add(*right as u32));
        }
        let seq = s.seq.get().copied().unwrap_or(0);
        let ack = s.ack.get().copied().unwrap_or(0);
        let header = Header {
            source: PORTS.1,
            destination: PORTS.0,
            seq: s.seqraw.unwrap_or(self.peer_iss.wrapping_add(seq as u32)),
            ack: s.ackraw.unwrap_or(if flags.has(Flags::ACK) { iss.wrapping_add(ack as u32) } else { 0 }),
            flags,
            window: s.win.get().copied().unwrap_or(self.peer_window),
            urgent: s.urg.get().copied().unwrap_or(0),
            options,
        };
        let mut octets = [0; MAX_HEADER];
        let mut head = header.emit(&mut octets);
        if !s.opt.is_empty() {
            octets[head..head + s.opt.len()].copy_from_slice(&s.opt);
            head += s.opt.len();
            octets[12] = (head.div_ceil(4) as u8) << 4;
            head = head.div_ceil(4) * 4;
        }
        let text = seq + i64::from(flags.has(Flags::SYN));
        Packet::build(
            |out| {
                out[..head].copy_from_slice(&octets[..head]);
                head
            },
            piece(THEIRS, text, s.len),
        )
    }

    /// `more`: the next one is right behind it, so nothing leaves between them.
    fn arrives(&mut self, s: &Segment, more: bool) -> Result<()> {
        self.log.push(format!("{}  < {s}", seconds(self.micros(self.now))));
        let packet = self.packet(s);
        if self.lingering && self.conn.as_ref().is_some_and(|c| c.yields_to(&packet)) {
            (self.conn, self.lingering, self.iss) = (None, false, None);
        }
        if self.conn.is_none() {
            let mut cx = Cx { now: self.now, records: &mut self.outbox };
            self.conn = self.tcp.accept(&mut cx, self.path, PORTS, Identity::default(), &packet);
            self.lingering = false;
        }
        if self.conn.is_none() {
            if let Some(answer) = self.tcp.refuse(&packet) {
                self.note(&answer, 0);
            }
            return Ok(());
        }
        let ecn = s.ecn.unwrap_or(0);
        let mut cx = Cx { now: self.now, records: &mut self.outbox };
        if let Some(conn) = &mut self.conn {
            conn.handle_packet(&mut cx, PathId(0), ecn, packet);
        }
        if !more {
            self.drain();
        }
        Ok(())
    }

    fn connect(&mut self) {
        let mut cx = Cx { now: self.now, records: &mut self.outbox };
        self.conn = Some(self.tcp.open(&mut cx, self.path, PORTS, Identity::default()));
        self.with(|t, cx| t.connect(cx));
    }

    fn call(&mut self, words: &[String]) -> Result<()> {
        self.log.push(format!("{}  call {}", seconds(self.micros(self.now)), words.join(" ")));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let number = |word: &str| word.parse::<u32>().map_err(|_| format!("`{word}` is no number"));
        let same = |what: &str, found: u32, expected: u32| {
            if found == expected { Ok(()) } else { Err(format!("{what} {found}, expected {expected}")) }
        };
        match words[..] {
            ["connect"] => self.connect(),
            ["write", n] | ["write", n, "takes", _] => {
                let n = number(n)?;
                let body = piece(OURS, i64::from(self.written), n);
                let taken = self.with(|t, cx| t.write(cx, 0, body).unwrap_or(0)).unwrap_or(0) as u32;
                self.written += taken;
                same("takes", taken, words.get(3).map_or(Ok(n), |word| number(word))?)?;
            }
            ["read", n] | ["read", n, "gives", _] => {
                let n = number(n)?;
                let body = self.with(|t, cx| t.read(cx, 0, n as usize)).flatten();
                let given = body.as_ref().map_or(0, Body::len) as u32;
                self.received.extend(body.into_iter().flat_map(|b| b.to_bytes()));
                same("gives", given, words.get(3).map_or(Ok(n), |word| number(word))?)?;
            }
            ["finish"] => drop(self.with(|t, cx| t.finish(cx, 0))),
            ["reset"] => drop(self.with(|t, cx| t.reset(cx))),
            ["mtu", n] => {
                let n = n.parse().map_err(|_| format!("`{n}` is no MTU"))?;
                self.with(|t, cx| t.path_mtu(cx, PathId(0), n));
            }
            ["pause"] => self.reads = false,
            ["resume"] => {
                self.reads = true;
                self.read_all();
                self.drain();
            }
            _ => return Err(format!("there is no call `{}`", words.join(" "))),
        }
        Ok(())
    }

    fn told(&mut self, words: &[String]) -> Result<()> {
        let name = |event: &TransportEvent| match event {
            TransportEvent::Opened => "opened".to_owned(),
            TransportEvent::Readable(..) => "readable".to_owned(),
            TransportEvent::Writable(_) => "writable".to_owned(),
            TransportEvent::Finished(_) => "finished".to_owned(),
            TransportEvent::Closed(reason) => format!("closed {}", reason.name()),
            TransportEvent::Lingering => "lingering".to_owned(),
            TransportEvent::Gone => "gone".to_owned(),
            TransportEvent::Asked => "asked".to_owned(),
            TransportEvent::Stream(..) => "stream".to_owned(),
        };
        let told: Vec<String> = self.events.iter().map(name).collect();
        let wanted = words.join(" ");
        if wanted == "nothing" {
            return if told.is_empty() { Ok(()) } else { Err(format!("told {}", told.join(", "))) };
        }
        match told.iter().position(|t| *t == wanted) {
            Some(at) => {
                self.events.drain(..=at);
                Ok(())
            }
            None => Err(format!("expected to be told `{wanted}`; told: {}", told.join(", "))),
        }
    }

    fn expect(&mut self, key: &str, wanted: &str) -> Result<()> {
        let time = |at: Option<Instant>| at.map_or("none".to_owned(), |at| seconds(self.micros(at)));
        let length = |d: Option<Duration>| d.map_or("none".to_owned(), |d| seconds(d.as_nanos() / 1000));
        let facts = &self.facts;
        let window =
            |f: fn(&CongestionRecord) -> String| self.congestion.as_ref().map_or("none".to_owned(), f);
        let found = match key {
            "cwnd" => window(|c| c.cwnd.to_string()),
            "ssthresh" => {
                window(|c| if c.ssthresh == u64::MAX { "max".to_owned() } else { c.ssthresh.to_string() })
            }
            "flight" => window(|c| c.in_flight.to_string()),
            "phase" => window(|c| c.state.to_owned()),
            "rto" => length(self.congestion.as_ref().map(|c| c.rto)),
            "srtt" => length(facts.srtt),
            "resent" => facts.resent.to_string(),
            "spurious" => facts.spurious.to_string(),
            "timeouts" => facts.rto_count.to_string(),
            "sent" => facts.app_sent.to_string(),
            "received" => self.received.len().to_string(),
            "timer" => time(self.conn.as_ref().and_then(|c| c.poll_timeout())),
            "gone" => if self.conn.is_none() { "yes" } else { "no" }.to_owned(),
            _ => return Err(format!("nothing is known of `{key}`")),
        };
        if found == wanted { Ok(()) } else { Err(format!("{key} is {found}, expected {wanted}")) }
    }
}

/// The names of the fields that differ.
fn differences(expected: &Segment, found: &Segment) -> Vec<String> {
    fn differs<T: PartialEq>(expected: &Field<T>, found: &Field<T>) -> bool {
        *expected != Field::Any && expected != found
    }
    let push = if expected.push { 0 } else { Flags::PSH.0 };
    let flags = if expected.open_flags {
        found.flags & expected.flags != expected.flags
    } else {
        (found.flags ^ expected.flags) & !push != 0
    };
    let timestamps = match (&expected.ts, &found.ts) {
        (Field::Is((value, echo)), Field::Is((v, e))) => {
            value.is_some() && value != v || echo.is_some() && echo != e
        }
        (expected, found) => differs(expected, found),
    };
    [
        ("flags", flags),
        ("sequence number", differs(&expected.seq, &found.seq)),
        ("length", expected.len != found.len),
        ("ack", differs(&expected.ack, &found.ack)),
        ("win", differs(&expected.win, &found.win)),
        ("urg", differs(&expected.urg, &found.urg)),
        ("mss", differs(&expected.mss, &found.mss)),
        ("wscale", differs(&expected.wscale, &found.wscale)),
        ("sackok", differs(&expected.sackok, &found.sackok)),
        ("ts", timestamps),
        ("sack", differs(&expected.sack, &found.sack)),
        ("ecn", expected.ecn.is_some() && expected.ecn != found.ecn),
        ("seqraw", expected.seqraw.is_some() && expected.seqraw != found.seqraw),
        ("ackraw", expected.ackraw.is_some() && expected.ackraw != found.ackraw),
    ]
    .into_iter()
    .filter(|(_, differs)| *differs)
    .map(|(name, _)| name.to_owned())
    .collect()
}

/// The initial number at the beginning of time.
fn first_number(config: &Config, path: Path) -> u32 {
    let mut outbox = Outbox::default();
    let mut cx = Cx { now: Instant::ZERO, records: &mut outbox };
    let mut conn = Tcp::new(config.clone(), 1).open(&mut cx, path, PORTS, Identity::default());
    conn.connect(&mut cx);
    let syn = conn.poll_transmit(&mut cx).expect("a SYN");
    Header::parse(syn.packet.head()).expect("a header").0.seq
}

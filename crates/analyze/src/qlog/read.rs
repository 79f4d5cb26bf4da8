//! A file as the values that it consists of, one at a time: however long it is, no more than an event of it is in memory.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer as _, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::{Analyzer, Error};

/// Octets of an event, or of what is said of all of them, at most.
const MOST_OCTETS: usize = 1 << 20;

/// What RFC 7464 puts in front of each text, and no text has in it: white space, to a reader of one text after the other.
const RECORD: u8 = 0x1E;

/// How many octets may still come until something is done with them.
#[derive(Clone)]
struct Allowance(Rc<Cell<usize>>);

impl Allowance {
    fn renew(&self) {
        self.0.set(MOST_OCTETS);
    }
}

struct Metered<R> {
    inner: R,
    left: Allowance,
}

impl<R: BufRead> Read for Metered<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = self.left.0.get();
        if left == 0 {
            return Err(io::Error::other(format!("an event has more than {MOST_OCTETS} octets")));
        }
        let take = out.len().min(left);
        let read = self.inner.read(&mut out[..take])?;
        self.left.0.set(left - read);
        out[..read].iter_mut().filter(|octet| **octet == RECORD).for_each(|octet| *octet = b' ');
        Ok(read)
    }
}

/// Gives all of a file to `analyzer`; why it could not be read to its end, if it could not.
pub(super) fn read(input: impl BufRead, analyzer: &mut Analyzer) -> Result<Option<String>, Error> {
    let left = Allowance(Rc::default());
    left.renew();
    let mut json = serde_json::Deserializer::from_reader(Metered { inner: input, left: left.clone() });
    let mut head = Head { is_qlog: false, is_sequence: false, analyzer, left: &left };
    let first = json.deserialize_map(&mut head);
    let (is_qlog, is_sequence) = (head.is_qlog, head.is_sequence);
    match first {
        Err(why) if why.is_io() && !is_qlog => return Err(Error::Io(why.into())),
        Err(why) if !is_qlog => return Err(Error::NotQlog(why.to_string())),
        Err(why) => return Ok(Some(why.to_string())),
        Ok(()) if !is_qlog => {
            return Err(Error::NotQlog(
                "its first object has neither qlog_version nor file_schema".to_owned(),
            ));
        }
        Ok(()) => {}
    }
    if !is_sequence {
        return Ok(json.end().err().map(|why| why.to_string()));
    }
    loop {
        left.renew();
        if json.end().is_ok() {
            return Ok(None);
        }
        match Value::deserialize(&mut json) {
            Ok(event) => analyzer.event(&event),
            Err(why) => return Ok(Some(why.to_string())),
        }
    }
}

/// The first object: a whole document, or the header of a sequence.
struct Head<'a> {
    is_qlog: bool,
    is_sequence: bool,
    analyzer: &'a mut Analyzer,
    left: &'a Allowance,
}

impl<'de> Visitor<'de> for &mut Head<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object that a qlog begins with")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.left.renew();
            match key.as_str() {
                "traces" => {
                    let traces = Below { part: Part::Traces, analyzer: self.analyzer, left: self.left };
                    map.next_value_seed(traces)?;
                }
                "trace" => {
                    self.is_sequence = true;
                    let trace: Value = map.next_value()?;
                    self.analyzer.begin();
                    for (key, value) in trace.as_object().into_iter().flatten() {
                        self.analyzer.about(key, value);
                    }
                }
                "qlog_version" | "file_schema" | "qlog_format" | "serialization_format" => {
                    let value: Value = map.next_value()?;
                    self.is_qlog |= matches!(key.as_str(), "qlog_version" | "file_schema");
                    self.analyzer.head(&key, &value);
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// What may be of any length below the first object.
#[derive(Clone, Copy)]
enum Part {
    Traces,
    Trace,
    Events,
}

/// Reads a part, and those that it consists of.
struct Below<'a> {
    part: Part,
    analyzer: &'a mut Analyzer,
    left: &'a Allowance,
}

impl<'de> DeserializeSeed<'de> for Below<'_> {
    type Value = ();
    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        match self.part {
            Part::Trace => json.deserialize_map(self),
            Part::Traces | Part::Events => json.deserialize_seq(self),
        }
    }
}

impl<'de> Visitor<'de> for Below<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.part {
            Part::Traces => "a list of traces",
            Part::Trace => "a trace",
            Part::Events => "a list of events",
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.left.renew();
            if key == "events" {
                let events = Below { part: Part::Events, analyzer: self.analyzer, left: self.left };
                map.next_value_seed(events)?;
            } else {
                let value: Value = map.next_value()?;
                self.analyzer.about(&key, &value);
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        if let Part::Traces = self.part {
            loop {
                self.left.renew();
                self.analyzer.begin();
                let trace = Below { part: Part::Trace, analyzer: self.analyzer, left: self.left };
                if seq.next_element_seed(trace)?.is_none() {
                    return Ok(());
                }
            }
        }
        while let Some(event) = seq.next_element::<Value>()? {
            self.left.renew();
            if !event.is_object() {
                // Drafts before 0.3 had lists of values, whose names stood elsewhere.
                return Err(A::Error::custom("an event is no object"));
            }
            self.analyzer.event(&event);
        }
        Ok(())
    }
}

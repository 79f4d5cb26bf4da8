//! What a group of runs gave, and how it becomes a part: without a copy of it all in between.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::slice;

use serde::Serialize;

use super::part::Place;
use crate::columns::{Column, Values};

/// What a group of runs gave, before it is a part.
pub struct Made {
    /// Point and seed of each run.
    pub runs: Vec<(i64, u64)>,
    /// How each run ended; `None` if there is an error.
    pub outcomes: Vec<Option<&'static str>>,
    /// Why there is no result.
    pub errors: Vec<Option<String>>,
    /// Identities of the runs.
    pub run_ids: Vec<String>,
    /// Observation point, nanoseconds of a span, octets in each span.
    pub rates: Vec<Option<(String, u64, Vec<u64>)>>,
    /// Names in the summaries.
    pub keys: Vec<String>,
    /// For each key the values of all runs; not-a-number where a run has no such value.
    pub values: Vec<Summary>,
    /// Tables, whose first column is the number of the run.
    pub tables: BTreeMap<&'static str, Vec<Column>>,
}

/// The values that some runs have for a key of their summaries.
#[derive(Clone, Debug, PartialEq)]
pub enum Summary {
    /// One that all have, bit by bit.
    All(f64),
    /// One for each run.
    Each(Vec<f64>),
}

impl Summary {
    /// Adds the values of the next runs, which come behind so many `runs`.
    pub fn extend(&mut self, values: impl ExactSizeIterator<Item = f64> + Clone, runs: usize) {
        let one = match self {
            Summary::Each(all) => return all.extend(values),
            Summary::All(_) if runs == 0 => values.clone().next().unwrap_or(f64::NAN),
            Summary::All(one) => *one,
        };
        if values.clone().all(|value| value.to_bits() == one.to_bits()) {
            *self = Summary::All(one);
            return;
        }
        // As much room as most tasks need: few columns are copied to a larger place then.
        let mut all = Vec::with_capacity((runs + values.len()).max(1024));
        all.resize(runs, one);
        all.extend(values);
        *self = Summary::Each(all);
    }

    /// The value of a run.
    pub fn of(&self, run: usize) -> f64 {
        match self {
            Summary::All(one) => *one,
            Summary::Each(values) => values[run],
        }
    }
}

impl Made {
    /// The octets of the part.
    pub fn octets(&self) -> Vec<u8> {
        let mut octets = Vec::new();
        self.write(&mut octets).expect("memory takes all octets");
        octets
    }

    /// Writes the part.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut blobs = Blobs::default();
        let values = self.values.iter().map(|values| match values {
            Summary::All(one) => blobs.numbers(slice::from_ref(one)),
            Summary::Each(values) => blobs.numbers(values),
        });
        let values = values.collect();
        let mut tables = BTreeMap::new();
        for (name, columns) in &self.tables {
            tables.insert(*name, columns.iter().map(|column| blobs.column(column)).collect());
        }
        let head = Head {
            runs: &self.runs,
            lost: false,
            outcome: &self.outcomes,
            error: &self.errors,
            run_id: &self.run_ids,
            rate: &self.rates,
            keys: &self.keys,
            values,
            tables,
        };
        out.write_all(&serde_json::to_vec(&head)?)?;
        out.write_all(b"\n")?;
        blobs.all.iter().try_for_each(|blob| blob.write(out))
    }
}

/// The line, as `part::Head` reads it.
#[derive(Serialize)]
struct Head<'a> {
    runs: &'a [(i64, u64)],
    lost: bool,
    outcome: &'a [Option<&'static str>],
    error: &'a [Option<String>],
    run_id: &'a [String],
    rate: &'a [Option<(String, u64, Vec<u64>)>],
    keys: &'a [String],
    values: Vec<Place>,
    tables: BTreeMap<&'static str, Vec<HeadColumn<'a>>>,
}

/// Name, kind, values, the texts that values count, validity.
type HeadColumn<'a> = (&'static str, &'static str, HeadValues<'a>, Option<Vec<&'a str>>, Option<Place>);

#[derive(Serialize)]
#[serde(untagged)]
enum HeadValues<'a> {
    Place(Place),
    Texts(&'a [String]),
}

/// An odd number with bits all over it: 2^64 divided by the golden ratio (Knuth, TAOCP 3, 6.4).
const MIXER: u64 = 0x9E37_79B9_7F4A_7C15;

/// How many numbers of a column of a summary are looked at, at most, to find columns like it.
const LOOKED_AT: usize = 64;

/// Numbers that stand behind the line, in their order.
#[derive(Default)]
struct Blobs<'a> {
    all: Vec<Blob<'a>>,
    length: usize,
    /// The numbers of the summaries and where they lie, by something that is the same for the same numbers.
    summaries: BTreeMap<u64, Vec<(&'a [f64], Place)>>,
}

enum Blob<'a> {
    I64(&'a [i64]),
    U64(&'a [u64]),
    U32(&'a [u32]),
    U16(&'a [u16]),
    U8(&'a [u8]),
    F64(&'a [f64]),
    Bool(&'a [bool]),
    Codes(Vec<u16>),
}

impl<'a> Blobs<'a> {
    /// Puts numbers behind those that are there; where they will lie.
    fn add(&mut self, blob: Blob<'a>) -> Place {
        let (at, length) = (self.length, blob.length());
        self.all.push(blob);
        self.length += length;
        (at, length)
    }

    /// Numbers of the summaries. A link or host that is the only one has the same as all together: they lie there once.
    fn numbers(&mut self, values: &'a [f64]) -> Place {
        let is_same = |other: &[f64]| {
            other.len() == values.len() && other.iter().zip(values).all(|(a, b)| a.to_bits() == b.to_bits())
        };
        // Some of them tell most columns apart.
        let step = values.len() / LOOKED_AT + 1;
        let some = values.iter().step_by(step);
        let mixed = some.fold(0, |mixed: u64, v| (mixed.rotate_left(5) ^ v.to_bits()).wrapping_mul(MIXER));
        let alike = self.summaries.entry(mixed).or_default();
        if let Some((_, place)) = alike.iter().find(|(other, _)| is_same(other)) {
            return *place;
        }
        let place = (self.length, size_of_val(values));
        alike.push((values, place));
        self.add(Blob::F64(values))
    }

    fn column(&mut self, column: &'a Column) -> HeadColumn<'a> {
        let mut names = None;
        let mut place = |kind, blob| (kind, HeadValues::Place(self.add(blob)));
        let (kind, values) = match &column.values {
            Values::I64(v) => place("<i8", Blob::I64(v)),
            Values::U64(v) => place("<u8", Blob::U64(v)),
            Values::U32(v) => place("<u4", Blob::U32(v)),
            Values::U16(v) => place("<u2", Blob::U16(v)),
            Values::U8(v) => place("u1", Blob::U8(v)),
            Values::F64(v) => place("<f8", Blob::F64(v)),
            Values::Category { codes, names: texts } => {
                names = Some(texts.iter().map(String::as_str).collect());
                place("<u2", Blob::U16(codes))
            }
            Values::Text(v) => match counted(v) {
                Some((codes, texts)) => {
                    names = Some(texts);
                    place("<u2", Blob::Codes(codes))
                }
                None => ("text", HeadValues::Texts(v)),
            },
        };
        let valid = column.valid.as_ref().map(|valid| self.add(Blob::Bool(valid)));
        (column.name, kind, values, names, valid)
    }
}

impl Blob<'_> {
    fn length(&self) -> usize {
        match self {
            Blob::I64(v) => size_of_val(*v),
            Blob::U64(v) => size_of_val(*v),
            Blob::U32(v) => size_of_val(*v),
            Blob::U16(v) => size_of_val(*v),
            Blob::U8(v) => v.len(),
            Blob::F64(v) => size_of_val(*v),
            Blob::Bool(v) => v.len(),
            Blob::Codes(v) => size_of_val(v.as_slice()),
        }
    }

    fn write(&self, out: &mut impl Write) -> io::Result<()> {
        match self {
            Blob::I64(v) => numbers(out, v, |n| n.to_le_bytes()),
            Blob::U64(v) => numbers(out, v, |n| n.to_le_bytes()),
            Blob::U32(v) => numbers(out, v, |n| n.to_le_bytes()),
            Blob::U16(v) => numbers(out, v, |n| n.to_le_bytes()),
            Blob::U8(v) => out.write_all(v),
            Blob::F64(v) => numbers(out, v, |n| n.to_le_bytes()),
            Blob::Bool(v) => numbers(out, v, |n| [u8::from(n)]),
            Blob::Codes(v) => numbers(out, v, |n| n.to_le_bytes()),
        }
    }
}

/// How many different texts a column may have that is written as numbers of its texts.
const FEW: usize = 16;

/// For each text its number among the different ones, and those; `None` if they are not few.
fn counted(texts: &[String]) -> Option<(Vec<u16>, Vec<&str>)> {
    let (mut codes, mut different): (Vec<u16>, Vec<&str>) = (Vec::with_capacity(texts.len()), Vec::new());
    for text in texts {
        let number = different.iter().position(|other| other == text).unwrap_or_else(|| {
            different.push(text);
            different.len() - 1
        });
        if number == FEW {
            return None;
        }
        codes.push(number as u16);
    }
    Some((codes, different))
}

/// Writes numbers, a piece of some hundred at a time.
fn numbers<const WIDTH: usize, N: Copy>(
    out: &mut impl Write,
    values: &[N],
    octets: impl Fn(N) -> [u8; WIDTH],
) -> io::Result<()> {
    let mut piece = [[0; WIDTH]; 512];
    for values in values.chunks(piece.len()) {
        piece.iter_mut().zip(values).for_each(|(to, value)| *to = octets(*value));
        out.write_all(piece[..values.len()].as_flattened())?;
    }
    Ok(())
}

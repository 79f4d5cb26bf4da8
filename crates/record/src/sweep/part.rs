//! Parts that are read: a line of JSON, then blobs. `python/airloom/sweep/parts.py` reads and writes the same.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Place and length of a blob behind the line.
pub(super) type Place = (usize, usize);

#[derive(Deserialize)]
struct Head<'a> {
    /// Point and seed.
    runs: Vec<(i64, u64)>,
    lost: bool,
    #[serde(borrow)]
    outcome: Vec<Option<&'a str>>,
    error: Vec<Option<String>>,
    #[serde(borrow)]
    run_id: Vec<&'a str>,
    rate: Vec<Option<(String, u64, Vec<u64>)>>,
    keys: Vec<String>,
    /// For each key the numbers of all runs, or one number that all runs have.
    values: Vec<Place>,
    tables: BTreeMap<String, Vec<HeadColumn>>,
}

/// Name, kind, values, the texts that values count, validity.
type HeadColumn = (String, String, HeadValues, Option<Vec<String>>, Option<Place>);

#[derive(Deserialize)]
#[serde(untagged)]
enum HeadValues {
    Place(Place),
    Texts(Vec<String>),
}

/// Runs and what they gave.
pub(super) struct Part<'a> {
    /// Point and seed of each run.
    pub(super) runs: Vec<(i64, u64)>,
    /// Did they end with their worker, so that there is nothing but an error?
    pub(super) is_lost: bool,
    /// Why a run has no result; `None` if it has.
    pub(super) errors: Vec<Option<String>>,
    pub(super) run_ids: Vec<&'a str>,
    /// Observation point, nanoseconds of a span, octets in each span.
    pub(super) rates: Vec<Option<(String, u64, Vec<u64>)>>,
    /// Names in the summaries.
    pub(super) keys: Vec<String>,
    values: Vec<&'a [u8]>,
    pub(super) tables: BTreeMap<String, Vec<PartColumn<'a>>>,
}

/// A column of a table of a part.
pub(super) struct PartColumn<'a> {
    pub(super) name: String,
    pub(super) values: PartValues<'a>,
    /// An octet per row; `None`: all rows have a value.
    valid: Option<&'a [u8]>,
}

/// Values as they came.
pub(super) enum PartValues<'a> {
    /// Numbers of a kind, least significant octet first.
    Numbers(Number, &'a [u8]),
    Texts(Vec<String>),
    /// Texts out of a small set: 16-bit indices.
    Category(&'a [u8], Vec<String>),
}

/// Kinds of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    I64,
    U64,
    U32,
    U16,
    U8,
    F64,
}

impl Number {
    fn of(kind: &str) -> Option<Number> {
        Some(match kind {
            "<i8" => Number::I64,
            "<u8" => Number::U64,
            "<u4" => Number::U32,
            "<u2" => Number::U16,
            "u1" | "|u1" => Number::U8,
            "<f8" => Number::F64,
            _ => return None,
        })
    }
    fn width(self) -> usize {
        match self {
            Number::I64 | Number::U64 | Number::F64 => 8,
            Number::U32 => 4,
            Number::U16 => 2,
            Number::U8 => 1,
        }
    }
}

impl<'a> Part<'a> {
    /// The part in a file. The error says what about it is wrong.
    pub(super) fn read(octets: &'a [u8]) -> Result<Part<'a>, String> {
        let end = octets.iter().position(|o| *o == b'\n').ok_or("it has no first line")?;
        let (line, blobs) = (&octets[..end], &octets[end + 1..]);
        let head: Head<'a> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let blob = |(at, length): Place| -> Result<&'a [u8], String> {
            let end = at.checked_add(length).ok_or("a blob is too long")?;
            blobs.get(at..end).ok_or_else(|| "it is shorter than it says".to_owned())
        };
        let count = head.runs.len();
        if [head.outcome.len(), head.error.len(), head.run_id.len(), head.rate.len()] != [count; 4] {
            return Err("its lists have not the length of its runs".to_owned());
        }
        let values = head.values.into_iter().map(blob).collect::<Result<Vec<_>, _>>()?;
        if values.len() != head.keys.len() || values.iter().any(|v| ![8, 8 * count].contains(&v.len())) {
            return Err("its summaries have not the length of its runs".to_owned());
        }
        let errors = head.error.into_iter().zip(head.outcome).map(|(error, outcome)| why(error, outcome));
        let mut tables = BTreeMap::new();
        for (name, columns) in head.tables {
            let mut read = Vec::new();
            for column in columns {
                read.push(PartColumn::read(column, &blob)?);
            }
            check(&read, count).map_err(|error| format!("table {name}: {error}"))?;
            tables.insert(name, read);
        }
        Ok(Part {
            runs: head.runs,
            is_lost: head.lost,
            errors: errors.collect(),
            run_ids: head.run_id,
            rates: head.rate,
            keys: head.keys,
            values,
            tables,
        })
    }

    /// `ok`, `failed` or `lost`.
    pub(super) fn status(&self, run: usize) -> &'static str {
        match &self.errors[run] {
            _ if self.is_lost => "lost",
            Some(_) => "failed",
            None => "ok",
        }
    }

    /// The values of the summary's key with this number, run by run; not-a-number where a run has none.
    pub(super) fn summary(&self, key: usize) -> Summaries<'a> {
        let octets = self.values[key];
        match <[u8; 8]>::try_from(octets) {
            Ok(one) => Summaries::All(f64::from_le_bytes(one)),
            Err(_) => Summaries::Each(octets),
        }
    }
}

/// The values that the runs of a part have for a key.
#[derive(Clone, Copy)]
pub(super) enum Summaries<'a> {
    All(f64),
    Each(&'a [u8]),
}

impl Summaries<'_> {
    /// What is the same only for values that are: either the number that all have, or where the numbers lie.
    pub(super) fn sameness(self) -> (u64, usize) {
        match self {
            Summaries::All(value) => (value.to_bits(), 0),
            Summaries::Each(octets) => (octets.as_ptr() as u64, octets.len()),
        }
    }

    pub(super) fn of(self, run: usize) -> f64 {
        match self {
            Summaries::All(value) => value,
            Summaries::Each(octets) => f64::from_le_bytes(number_at(octets, run)),
        }
    }
}

/// All columns of a table are as long as its first, `run`, which names runs of the part.
fn check(columns: &[PartColumn<'_>], count: usize) -> Result<(), String> {
    let Some(first) = columns.first() else { return Err("it has no columns".to_owned()) };
    if first.name != "run" || !matches!(first.values, PartValues::Numbers(Number::U32, _)) {
        return Err("it does not begin with the number of the run".to_owned());
    }
    let rows = first.rows();
    if (0..rows).any(|row| first.number(row) as usize >= count) {
        return Err("it names a run that is not there".to_owned());
    }
    match columns.iter().find(|c| c.rows() != rows || c.valid.is_some_and(|v| v.len() != rows)) {
        Some(column) => Err(format!("column {} has not as many rows as the others", column.name)),
        None => Ok(()),
    }
}

impl<'a> PartColumn<'a> {
    fn read(
        (name, kind, values, names, valid): HeadColumn,
        blob: &impl Fn(Place) -> Result<&'a [u8], String>,
    ) -> Result<PartColumn<'a>, String> {
        let values = match (values, names) {
            (HeadValues::Texts(texts), _) => PartValues::Texts(texts),
            (HeadValues::Place(place), Some(names)) if kind == "<u2" => {
                PartValues::Category(blob(place)?, names)
            }
            (HeadValues::Place(place), _) => {
                let number =
                    Number::of(&kind).ok_or_else(|| format!("column {name} has the unknown kind {kind}"))?;
                PartValues::Numbers(number, blob(place)?)
            }
        };
        Ok(PartColumn { name, values, valid: valid.map(blob).transpose()? })
    }

    pub(super) fn rows(&self) -> usize {
        match &self.values {
            PartValues::Numbers(kind, octets) => octets.len() / kind.width(),
            PartValues::Texts(texts) => texts.len(),
            PartValues::Category(codes, _) => codes.len() / 2,
        }
    }

    /// Has this row a value?
    pub(super) fn is_there(&self, row: usize) -> bool {
        self.valid.is_none_or(|valid| valid[row] != 0)
    }

    /// The octets of the numbers, if they are of this kind.
    pub(super) fn numbers(&self, kind: Number) -> Option<&'a [u8]> {
        match &self.values {
            PartValues::Numbers(own, octets) if *own == kind => Some(octets),
            _ => None,
        }
    }

    /// The bits of a number; 0 for a text.
    pub(super) fn number(&self, row: usize) -> u64 {
        match &self.values {
            PartValues::Numbers(kind, octets) => number(octets, kind.width(), row),
            PartValues::Texts(_) | PartValues::Category(..) => 0,
        }
    }

    /// A text; empty for a number.
    pub(super) fn text(&self, row: usize) -> &str {
        match &self.values {
            PartValues::Texts(texts) => &texts[row],
            // Where nothing is there, the number need not be that of a name.
            PartValues::Category(codes, names) => {
                names.get(number(codes, 2, row) as usize).map_or("", String::as_str)
            }
            PartValues::Numbers(..) => "",
        }
    }
}

/// The octets of the number with this index among numbers of that width.
pub(super) fn number_at<const WIDTH: usize>(octets: &[u8], index: usize) -> [u8; WIDTH] {
    let (numbers, _) = octets.as_chunks();
    numbers[index]
}

/// The number in `width` octets at the place with this index.
fn number(octets: &[u8], width: usize, index: usize) -> u64 {
    let mut wide = [0; 8];
    wide[..width].copy_from_slice(&octets[index * width..(index + 1) * width]);
    u64::from_le_bytes(wide)
}

/// Why a run has no result; `None` if it has.
fn why(error: Option<String>, outcome: Option<&str>) -> Option<String> {
    if error.is_some() {
        return error;
    }
    match outcome {
        Some("complete") => None,
        Some("limit-reached") => Some("not done within run.limit".to_owned()),
        Some("stuck") => Some("nothing more could happen, and not everything was done".to_owned()),
        other => Some(format!("ended as {}", other.unwrap_or("nothing"))),
    }
}

//! The tables of a sweep: what its groups of runs gave, sorted and put together.
//!
//! A part is what one group gave. Rows are sorted by point and seed, and then by the time in them, so that nothing tells
//! in which groups the runs were made. A run that is there twice (the process was killed between writing a table and
//! dropping the parts) counts once: the first part that has it is taken, and what was lost with its worker gives way.

mod part;

use std::collections::BTreeMap;

use parquet::errors::ParquetError;
pub use part::{Made, part};
use part::{Number, Part, PartColumn, PartValues, Summaries};

use crate::parquet_file::{self, Cells, Field, on_all_cores};

/// What an axis calls each point, by the point's number.
pub enum Labels {
    /// Whole numbers.
    Whole(Vec<i64>),
    /// Numbers.
    Real(Vec<f64>),
    /// Texts.
    Text(Vec<String>),
}

/// Why there are no tables.
#[derive(Debug, PartialEq, Eq)]
pub enum Error {
    /// One of the parts cannot be used.
    BadPart {
        /// Its place among the parts.
        number: usize,
        /// What is wrong.
        why: String,
    },
    /// A table does not fit into a file.
    File(String),
}

impl From<ParquetError> for Error {
    fn from(error: ParquetError) -> Error {
        Error::File(error.to_string())
    }
}

/// The octets of the Parquet files of `tables`, by name: `runs`, `rate`, and tables that runs have. A table that no part
/// has anything of is left out. `axes` are names with the labels of the points.
pub fn tables(
    parts: &[&[u8]],
    axes: &[(String, Labels)],
    tables: &[String],
) -> Result<BTreeMap<String, Vec<u8>>, Error> {
    let mut read = Vec::with_capacity(parts.len());
    for (number, part) in on_all_cores(parts.iter(), |octets| Part::read(octets)).into_iter().enumerate() {
        let part = part.map_err(|why| Error::BadPart { number, why })?;
        if part
            .runs
            .iter()
            .any(|(point, _)| usize::try_from(*point).is_err() || !are_named(axes, *point as usize))
        {
            return Err(Error::BadPart {
                number,
                why: "it has runs of points that the sweep has not".to_owned(),
            });
        }
        read.push(part);
    }
    let sweep = Sweep { parts: &read, axes };
    let fields = |name: &str| match name {
        "runs" => (!read.is_empty()).then(|| sweep.runs()),
        "rate" => sweep.rate(),
        other => sweep.table(other),
    };
    let found = tables.iter().filter_map(|name| Some((name, fields(name)?)));
    found.map(|(name, fields)| Ok((name.clone(), parquet_file::file(&fields)?))).collect()
}

fn are_named(axes: &[(String, Labels)], point: usize) -> bool {
    axes.iter().all(|(_, labels)| match labels {
        Labels::Whole(of_points) => point < of_points.len(),
        Labels::Real(of_points) => point < of_points.len(),
        Labels::Text(of_points) => point < of_points.len(),
    })
}

/// Point and seed.
type Key = (i64, u64);

/// A run by its part and its number there.
type Place = (usize, usize);

struct Sweep<'a> {
    parts: &'a [Part<'a>],
    axes: &'a [(String, Labels)],
}

impl<'a> Sweep<'a> {
    /// Each run, in the order of the tables. `has` says whether a part has anything of it: the first that has is taken.
    fn places(&self, has: impl Fn(usize, usize) -> bool) -> BTreeMap<Key, Place> {
        let mut found = BTreeMap::new();
        for (number, part) in self.parts.iter().enumerate() {
            for (run, key) in part.runs.iter().enumerate().filter(|(run, _)| has(number, *run)) {
                found.entry(*key).or_insert((number, run));
            }
        }
        found
    }

    /// One row per run.
    fn runs(&self) -> Vec<Field<'a>> {
        let mut places = self.places(|number, _| self.parts[number].is_lost);
        places.extend(self.places(|number, _| !self.parts[number].is_lost));
        let rows: Vec<(Key, Place)> = places.into_iter().collect();
        let mut fields = self.head(&rows);
        let text = |of: &dyn Fn(&'a Part<'a>, usize) -> &'a str| {
            Cells::Text(rows.iter().map(|(_, (part, run))| of(&self.parts[*part], *run)).collect())
        };
        fields.push(full("status", text(&|part, run| part.status(run))));
        fields.push(Field {
            name: "error",
            cells: text(&|part, run| part.errors[run].as_deref().unwrap_or("")),
            valid: Some(
                rows.iter().map(|(_, (part, run))| self.parts[*part].errors[*run].is_some()).collect(),
            ),
        });
        // The summary's names in alphabetical order.
        let mut keys: BTreeMap<&str, Vec<Summaries<'_>>> = BTreeMap::new();
        for (number, part) in self.parts.iter().enumerate() {
            for (key, name) in part.keys.iter().enumerate() {
                let of_part =
                    keys.entry(name).or_insert_with(|| vec![Summaries::All(f64::NAN); self.parts.len()]);
                of_part[number] = part.summary(key);
            }
        }
        fields.extend(on_all_cores(keys.into_iter(), |(name, of_part)| summaries(name, &of_part, &rows)));
        fields
    }

    /// The rows that runs have in their table of this name; the columns as they come from a run.
    fn table(&self, name: &str) -> Option<Vec<Field<'a>>> {
        let of_part: Vec<Option<&'a [PartColumn<'a>]>> =
            self.parts.iter().map(|part| part.tables.get(name).map(Vec::as_slice)).collect();
        let mut names: Vec<&'a str> = Vec::new();
        for column in of_part.iter().flatten().flat_map(|columns| &columns[1..]) {
            if !names.contains(&column.name.as_str()) {
                names.push(&column.name);
            }
        }
        if of_part.iter().all(Option::is_none) {
            return None;
        }

        let rows_of: Vec<Vec<Vec<usize>>> = (of_part.iter().zip(self.parts))
            .map(|(columns, part)| rows_by_run(columns.as_ref().map(|c| &c[0]), part.runs.len()))
            .collect();
        let places = self.places(|part, run| !rows_of[part][run].is_empty());
        let time = sorted_by(name);
        let mut rows: Vec<(Key, Place)> = Vec::new();
        let mut cells: Vec<(usize, usize)> = Vec::new();
        for (key, (part, run)) in places {
            let mut of_run = rows_of[part][run].clone();
            let columns = of_part[part].expect("it has rows");
            if let Some(time) = columns.iter().find(|c| Some(c.name.as_str()) == time) {
                of_run.sort_by_key(|row| time.number(*row) as i64);
            }
            rows.extend(of_run.iter().map(|_| (key, (part, run))));
            cells.extend(of_run.iter().map(|row| (part, *row)));
        }
        let mut fields = self.head(&rows);
        fields.extend(on_all_cores(names.into_iter(), |column| gathered(column, &of_part, &cells)));
        Some(fields)
    }

    /// Octets received over time: a row per span.
    fn rate(&self) -> Option<Vec<Field<'a>>> {
        let rate = |(part, run): Place| self.parts[part].rates[run].as_ref();
        let places = self.places(|part, run| rate((part, run)).is_some());
        if places.is_empty() {
            return None;
        }
        let mut rows = Vec::new();
        let (mut t_ns, mut span_ns, mut octets, mut seen_at) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (key, place) in places {
            let (point, span, received) = rate(place).expect("it has one");
            let span = i64::try_from(*span).unwrap_or(i64::MAX);
            for (number, received) in (0..).zip(received) {
                rows.push((key, place));
                t_ns.push(span.saturating_mul(number));
                span_ns.push(span);
                octets.push(*received);
                seen_at.push(point.as_str());
            }
        }
        let mut fields = self.head(&rows);
        fields.push(full("t_ns", Cells::I64(t_ns)));
        fields.push(full("span_ns", Cells::I64(span_ns)));
        fields.push(full("octets", Cells::U64(octets)));
        fields.push(full("seen_at", Cells::Text(seen_at)));
        Some(fields)
    }

    /// The columns that every table begins with.
    fn head(&self, rows: &[(Key, Place)]) -> Vec<Field<'a>> {
        let mut fields = vec![full("point", Cells::I64(rows.iter().map(|((point, _), _)| *point).collect()))];
        for (name, labels) in self.axes {
            let points = rows.iter().map(|((point, _), _)| *point as usize);
            let cells = match labels {
                Labels::Whole(of_points) => Cells::I64(points.map(|p| of_points[p]).collect()),
                Labels::Real(of_points) => Cells::F64(points.map(|p| of_points[p]).collect()),
                Labels::Text(of_points) => Cells::Text(points.map(|p| of_points[p].as_str()).collect()),
            };
            fields.push(full(name, cells));
        }
        fields.push(full("seed", Cells::U64(rows.iter().map(|((_, seed), _)| *seed).collect())));
        let ids = rows.iter().map(|(_, (part, run))| self.parts[*part].run_ids[*run].as_str());
        fields.push(full("run_id", Cells::Text(ids.collect())));
        fields
    }
}

/// What the runs in these rows have for a key of the summary.
fn summaries<'a>(name: &'a str, of_part: &[Summaries<'_>], rows: &[(Key, Place)]) -> Field<'a> {
    let values: Vec<f64> = rows.iter().map(|(_, (part, run))| of_part[*part].of(*run)).collect();
    let valid = values.iter().any(|v| v.is_nan()).then(|| values.iter().map(|v| !v.is_nan()).collect());
    Field { name, cells: Cells::F64(values), valid }
}

/// The column of times that the rows of one run are sorted by.
fn sorted_by(table: &str) -> Option<&'static str> {
    match table {
        "pages" => Some("start_ns"),
        "objects" => Some("known_ns"),
        "flows" => Some("open_ns"),
        "states" | "congestion" => Some("t_ns"),
        _ => None,
    }
}

/// The numbers of the rows of each run, by the column that says of which run a row is.
fn rows_by_run(run: Option<&PartColumn<'_>>, runs: usize) -> Vec<Vec<usize>> {
    let mut found = vec![Vec::new(); runs];
    if let Some(run) = run {
        (0..run.rows()).for_each(|row| found[run.number(row) as usize].push(row));
    }
    found
}

/// One column: the cells of some rows, each by its part and its number there.
fn gathered<'a>(
    name: &'a str,
    of_part: &[Option<&'a [PartColumn<'a>]>],
    cells: &[(usize, usize)],
) -> Field<'a> {
    let columns: Vec<Option<&'a PartColumn<'a>>> =
        of_part.iter().map(|columns| columns.and_then(|c| c.iter().find(|c| c.name == name))).collect();
    let valid: Vec<bool> =
        cells.iter().map(|(part, row)| columns[*part].is_some_and(|c| c.is_there(*row))).collect();
    let kinds: Vec<Number> = (columns.iter().flatten())
        .filter_map(|column| match column.values {
            PartValues::Numbers(kind, _) => Some(kind),
            PartValues::Texts(_) | PartValues::Category(..) => None,
        })
        .collect();
    let numbers = || cells.iter().map(|(part, row)| columns[*part].map_or(0, |c| c.number(*row)));
    let cells = match kinds.first() {
        Some(Number::I64) => Cells::I64(numbers().map(|n| n as i64).collect()),
        Some(Number::U64) => Cells::U64(numbers().collect()),
        Some(Number::U32) => Cells::U32(numbers().map(|n| n as u32).collect()),
        Some(Number::U16) => Cells::U16(numbers().map(|n| n as u16).collect()),
        Some(Number::U8) => Cells::U8(numbers().map(|n| n as u8).collect()),
        Some(Number::F64) => Cells::F64(numbers().map(f64::from_bits).collect()),
        None => {
            Cells::Text(cells.iter().map(|(part, row)| columns[*part].map_or("", |c| c.text(*row))).collect())
        }
    };
    Field { name, cells, valid: valid.contains(&false).then_some(valid) }
}

/// A column that has a value in each row.
fn full<'a>(name: &'a str, cells: Cells<'a>) -> Field<'a> {
    Field { name, cells, valid: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two runs of point 0, and one of point 1, with a table of two rows.
    const LINE: &str = r#"{"runs":[[0,7],[0,3],[1,3]],"lost":false,"outcome":["complete","stuck",null],
        "error":[null,null,"broken"],"run_id":["a","b","c"],"rate":[["x.ip",10,[1,2]],null,null],
        "keys":["y","x_s"],"values":[[0,24],[24,24]],"tables":{"flows":[["run","<u4",[48,8],null,null],
        ["open_ns","<i8",[56,16],null,null],["proto","<u2",[72,4],["tcp","udp"],[76,2]],
        ["end","text",["done","ünfinished"],null,null]]}}"#;

    fn part(line: &str) -> Vec<u8> {
        let mut octets = line.replace("\n        ", "").into_bytes();
        octets.push(b'\n');
        for value in [1.0, 2.0, f64::NAN, 4.0, 5.0, 6.0] {
            octets.extend_from_slice(&f64::to_le_bytes(value));
        }
        [0u32, 2].iter().for_each(|run| octets.extend_from_slice(&run.to_le_bytes()));
        [30i64, 20].iter().for_each(|time| octets.extend_from_slice(&time.to_le_bytes()));
        octets.extend_from_slice(&[1, 0, 9, 9, 1, 0]);
        octets
    }

    fn axes() -> Vec<(String, Labels)> {
        vec![("loss".to_owned(), Labels::Real(vec![0.0, 0.5]))]
    }

    fn all(parts: &[&[u8]]) -> Result<BTreeMap<String, Vec<u8>>, Error> {
        tables(parts, &axes(), &["runs", "flows", "pages", "rate"].map(str::to_owned))
    }

    #[test]
    fn what_there_is_becomes_files_and_what_there_is_not_does_not() {
        let octets = part(LINE);
        let files = all(&[&octets]).unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), ["flows", "rate", "runs"]);
        for file in files.values() {
            assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
        }
        assert_eq!(all(&[]), Ok(BTreeMap::new()));
    }

    #[test]
    fn how_runs_were_grouped_does_not_show() {
        let one = part(&LINE.replace(r#"[[0,7],[0,3],[1,3]]"#, r#"[[0,1],[0,2],[1,1]]"#));
        let other = part(&LINE.replace(r#"[[0,7],[0,3],[1,3]]"#, r#"[[0,4],[0,3],[1,0]]"#));
        let expected = all(&[&one, &other]);
        assert_eq!(all(&[&other, &one]), expected);
        assert_eq!(all(&[&one, &one, &other]), expected, "what is there twice counts once");
        assert_ne!(all(&[&one]), expected);
    }

    #[test]
    fn what_was_lost_gives_way_to_the_same_run_made_later() {
        let made = part(LINE);
        let lost = part(&LINE.replace(r#""lost":false"#, r#""lost":true"#));
        let runs = |parts: &[&[u8]]| all(parts).unwrap()["runs"].clone();
        assert_eq!(runs(&[&lost, &made]), runs(&[&made]));
        assert_eq!(runs(&[&made, &lost]), runs(&[&made]));
        assert_ne!(runs(&[&lost]), runs(&[&made]));
    }

    #[test]
    fn a_part_that_does_not_hold_together_is_named_with_the_reason() {
        let good = part(LINE);
        for (from, to, why) in [
            (r#""lost":false,"#, "", "missing field"),
            ("[[0,7],", "[", "lists have not the length"),
            ("[[0,7],", "[[2,7],", "points that the sweep has not"),
            ("[[0,7],", "[[-1,7],", "points that the sweep has not"),
            (r#"[[0,24],"#, r#"[[0,16],"#, "summaries have not the length"),
            (r#"[[0,24],[24,24]]"#, r#"[[0,24]]"#, "summaries have not the length"),
            (r#"[[0,24],"#, r#"[[0,480],"#, "shorter than it says"),
            (r#"[[0,24],"#, r#"[[18446744073709551615,24],"#, "too long"),
            (r#"["run","<u4",[48,8]"#, r#"["run","<u4",[56,8]"#, "names a run that is not there"),
            (r#"["run","<u4""#, r#"["ran","<u4""#, "does not begin with the number of the run"),
            (r#""open_ns","<i8",[56,16]"#, r#""open_ns","<i8",[56,8]"#, "open_ns has not as many rows"),
            (r#""open_ns","<i8""#, r#""open_ns","<i3""#, "open_ns has the unknown kind <i3"),
        ] {
            assert!(LINE.contains(from), "{from}");
            let bad = part(&LINE.replace(from, to));
            let error = all(&[&good, &bad]).unwrap_err();
            let is_it = matches!(&error, Error::BadPart { number: 1, why: said } if said.contains(why));
            assert!(is_it, "{error:?}, not {why}");
        }
    }

    #[test]
    fn no_octets_make_it_panic() {
        let good = part(LINE);
        for end in 0..good.len() {
            assert!(all(&[&good[..end]]).is_err());
        }
        for at in 0..good.len() {
            for octet in [0, b'0', b'9', b'"', b']', 0xff] {
                let mut bad = good.clone();
                bad[at] = octet;
                let _ = all(&[&bad]);
            }
        }
    }
}

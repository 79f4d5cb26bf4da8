//! The tables of a sweep: what its groups of runs gave, sorted and put together.
//!
//! A part is what one group gave. Rows are sorted by point and seed, and then by the time in them, so that nothing tells
//! in which groups the runs were made. A run that is there twice (the process was killed between writing a table and
//! dropping the parts) counts once: the first part that has it is taken, and what was lost with its worker gives way.

mod made;
mod part;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, OnceLock};

pub use made::{Made, Summary};
use parquet::errors::ParquetError;
use part::{Number, Part, PartColumn, PartValues, Summaries, number_at};

use crate::parquet_file::{self, Cells, Encoded, Field, File, Filled, Kind, on_all_cores};

/// Where a part lies.
pub enum Source<'a> {
    /// In memory.
    Octets(&'a [u8]),
    /// In a file.
    File(&'a Path),
}

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
    /// The file of one of the parts cannot be read.
    Unread {
        /// Its place among the parts.
        number: usize,
        /// The system's number of the error, if it is one of the system.
        code: Option<i32>,
        /// What it says.
        why: String,
    },
    /// A table does not fit into a file.
    File(String),
}

/// A table, ready to be written.
pub struct Table(Encoded);

impl Table {
    /// Writes it as a Parquet file.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut (impl Write + Send)) -> io::Result<()> {
        self.0.write(out).map_err(|error| match error {
            ParquetError::External(inner) => match inner.downcast() {
                Ok(inner) => *inner,
                Err(other) => io::Error::other(other),
            },
            other => io::Error::other(other),
        })
    }
}

/// Writes tables into new files, on all cores. The error comes with the number of its table.
pub fn write(tables: &[(&Table, &Path)]) -> Result<(), (usize, io::Error)> {
    let written = on_all_cores(tables.len(), |number| {
        let (table, path) = tables[number];
        fs::File::create(path).and_then(|mut file| table.write(&mut file)).map_err(|error| (number, error))
    });
    written.into_iter().collect()
}

/// The tables with these names: `runs`, `rate`, and those that runs have. One that no part has anything of is left out.
/// `axes` are names with the labels of the points.
pub fn tables(
    parts: &[Source<'_>],
    axes: &[(String, Labels)],
    tables: &[String],
) -> Result<BTreeMap<String, Table>, Error> {
    let files: Vec<OnceLock<Vec<u8>>> = parts.iter().map(|_| OnceLock::new()).collect();
    let read = on_all_cores(parts.len(), |number| {
        let octets = match parts[number] {
            Source::Octets(octets) => octets,
            Source::File(path) => {
                let octets = fs::read(path).map_err(|error| unread(number, &error))?;
                files[number].get_or_init(|| octets)
            }
        };
        let part = Part::read(octets).map_err(|why| Error::BadPart { number, why })?;
        let is_named =
            |(point, _): &Key| usize::try_from(*point).is_ok_and(|_| are_named(axes, *point as usize));
        if !part.runs.iter().all(is_named) {
            let why = "it has runs of points that the sweep has not".to_owned();
            return Err(Error::BadPart { number, why });
        }
        Ok(part)
    });
    let read = read.into_iter().collect::<Result<Vec<_>, _>>()?;
    let sweep = Sweep::new(&read, axes);
    let file = |name: &str| match name {
        "runs" => (!read.is_empty()).then(|| sweep.runs()),
        "rate" => sweep.rate(),
        other => sweep.table(other),
    };
    let (names, files): (Vec<&String>, Vec<File<'_>>) =
        tables.iter().filter_map(|name| Some((name, file(name)?))).unzip();
    let encoded = parquet_file::encode(&files).map_err(|error| Error::File(error.to_string()))?;
    Ok(names.into_iter().cloned().zip(encoded.into_iter().map(Table)).collect())
}

fn unread(number: usize, error: &io::Error) -> Error {
    Error::Unread { number, code: error.raw_os_error(), why: error.to_string() }
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

/// Rows of a table: the run of each.
type Rows = Arc<[(Key, Place)]>;

struct Sweep<'a> {
    parts: &'a [Part<'a>],
    axes: &'a [(String, Labels)],
    /// Each run as often as it is there, in the order of the tables; what was lost behind what was made.
    all: Vec<(Key, Place)>,
}

impl<'a> Sweep<'a> {
    fn new(parts: &'a [Part<'a>], axes: &'a [(String, Labels)]) -> Sweep<'a> {
        let of_part = |(number, part): (usize, &'a Part<'a>)| {
            part.runs.iter().enumerate().map(move |(run, key)| (*key, (number, run)))
        };
        let mut all: Vec<(Key, Place)> = parts.iter().enumerate().flat_map(of_part).collect();
        // Parts are in order in themselves: this costs little.
        all.sort_by_key(|(key, (part, _))| (*key, parts[*part].is_lost));
        Sweep { parts, axes, all }
    }

    /// Each run once. `has` says whether a part has anything of it: the first that has is taken.
    fn places(&self, has: impl Fn(Place) -> bool) -> Vec<(Key, Place)> {
        let mut found: Vec<(Key, Place)> =
            self.all.iter().filter(|(_, place)| has(*place)).copied().collect();
        found.dedup_by_key(|(key, _)| *key);
        found
    }

    /// One row per run.
    fn runs(&self) -> File<'a> {
        let (rows, parts): (Rows, _) = (self.places(|_| true).into(), self.parts);
        let mut fields = self.head(&rows);
        fields.push(of_rows("status", Kind::Text, &rows, move |rows| {
            Cells::Text(rows.iter().map(|(_, (part, run))| parts[*part].status(*run)).collect())
        }));
        let error = move |(part, run): Place| parts[part].errors[run].as_deref();
        let of_error = Arc::clone(&rows);
        fields.push(field("error", Kind::Text, move || Filled {
            cells: Cells::Text(of_error.iter().map(|(_, place)| error(*place).unwrap_or("")).collect()),
            valid: Some(of_error.iter().map(|(_, place)| error(*place).is_some()).collect()),
        }));
        // The summary's names in alphabetical order.
        let mut keys: BTreeMap<&'a str, Vec<Summaries<'a>>> = BTreeMap::new();
        for (number, part) in parts.iter().enumerate() {
            for (key, name) in part.keys.iter().enumerate() {
                let of_part = keys.entry(name).or_insert_with(|| vec![Summaries::All(f64::NAN); parts.len()]);
                of_part[number] = part.summary(key);
            }
        }
        let mut seen: BTreeMap<Vec<(u64, usize)>, usize> = BTreeMap::new();
        for (name, of_part) in keys {
            let sameness = of_part.iter().map(|summaries| summaries.sameness()).collect();
            let number = fields.len();
            let first = *seen.entry(sameness).or_insert(number);
            let of_rows = Arc::clone(&rows);
            let own = field(name, Kind::F64, move || summaries(&of_part, &of_rows));
            fields.push(Field { same_as: (first < number).then_some(first), ..own });
        }
        File { fields, rows: rows.len() }
    }

    /// The rows that runs have in their table of this name; the columns as they come from a run.
    fn table(&self, name: &str) -> Option<File<'a>> {
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

        let by_run: Vec<ByRun> = (of_part.iter().zip(self.parts))
            .map(|(columns, part)| ByRun::new(columns.map(|c| &c[0]), part.runs.len()))
            .collect();
        let time = sorted_by(name);
        let mut rows: Vec<(Key, Place)> = Vec::new();
        let mut cells: Vec<Place> = Vec::new();
        for (key, (part, run)) in self.places(|(part, run)| !by_run[part].rows(run).is_empty()) {
            let begin = cells.len();
            for row in by_run[part].rows(run) {
                rows.push((key, (part, run)));
                cells.push((part, *row));
            }
            if let Some(time) = of_part[part].and_then(|c| c.iter().find(|c| Some(c.name.as_str()) == time)) {
                cells[begin..].sort_by_key(|(_, row)| time.number(*row) as i64);
            }
        }
        let (rows, cells): (Rows, Arc<[Place]>) = (rows.into(), cells.into());
        let mut fields = self.head(&rows);
        fields.extend(names.into_iter().map(|name| gathered(name, &of_part, &cells)));
        Some(File { fields, rows: rows.len() })
    }

    /// Octets received over time: a row per span.
    fn rate(&self) -> Option<File<'a>> {
        let parts = self.parts;
        let rate = move |(part, run): Place| parts[part].rates[run].as_ref();
        let places = self.places(|place| rate(place).is_some());
        if places.is_empty() {
            return None;
        }
        let spans = |(key, place): &(Key, Place)| {
            let spans = rate(*place).map_or(0, |(_, _, received)| received.len());
            (0..spans).map(|number| ((*key, *place), number)).collect::<Vec<_>>()
        };
        let (rows, numbers): (Vec<(Key, Place)>, Vec<usize>) = places.iter().flat_map(spans).unzip();
        let (rows, numbers): (Rows, Arc<[usize]>) = (rows.into(), numbers.into());
        let of = move |place| rate(place).expect("it has one");
        let span = move |place| i64::try_from(of(place).1).unwrap_or(i64::MAX);
        let mut fields = self.head(&rows);
        let number = Arc::clone(&numbers);
        fields.push(of_rows("t_ns", Kind::I64, &rows, move |rows| {
            let times = rows.iter().zip(number.iter());
            Cells::I64(times.map(|((_, place), n)| span(*place).saturating_mul(*n as i64)).collect())
        }));
        fields.push(of_rows("span_ns", Kind::I64, &rows, move |rows| {
            Cells::I64(rows.iter().map(|(_, place)| span(*place)).collect())
        }));
        fields.push(of_rows("octets", Kind::U64, &rows, move |rows| {
            Cells::U64(rows.iter().zip(numbers.iter()).map(|((_, place), n)| of(*place).2[*n]).collect())
        }));
        fields.push(of_rows("seen_at", Kind::Text, &rows, move |rows| {
            Cells::Text(rows.iter().map(|(_, place)| of(*place).0.as_str()).collect())
        }));
        Some(File { fields, rows: rows.len() })
    }

    /// The columns that every table begins with.
    fn head(&self, rows: &Rows) -> Vec<Field<'a>> {
        let parts = self.parts;
        let mut fields = vec![of_rows("point", Kind::I64, rows, |rows| {
            Cells::I64(rows.iter().map(|((point, _), _)| *point).collect())
        })];
        for (name, labels) in self.axes {
            let kind = match labels {
                Labels::Whole(_) => Kind::I64,
                Labels::Real(_) => Kind::F64,
                Labels::Text(_) => Kind::Text,
            };
            fields.push(of_rows(name, kind, rows, move |rows| {
                let points = rows.iter().map(|((point, _), _)| *point as usize);
                match labels {
                    Labels::Whole(of_points) => Cells::I64(points.map(|p| of_points[p]).collect()),
                    Labels::Real(of_points) => Cells::F64(points.map(|p| of_points[p]).collect()),
                    Labels::Text(of_points) => Cells::Text(points.map(|p| of_points[p].as_str()).collect()),
                }
            }));
        }
        fields.push(of_rows("seed", Kind::U64, rows, |rows| {
            Cells::U64(rows.iter().map(|((_, seed), _)| *seed).collect())
        }));
        fields.push(of_rows("run_id", Kind::Text, rows, move |rows| {
            Cells::Text(rows.iter().map(|(_, (part, run))| parts[*part].run_ids[*run]).collect())
        }));
        fields
    }
}

/// What the runs in these rows have for a key of the summary.
fn summaries<'a>(of_part: &[Summaries<'_>], rows: &Rows) -> Filled<'a> {
    let values: Vec<f64> = rows.iter().map(|(_, (part, run))| of_part[*part].of(*run)).collect();
    let valid = values.iter().any(|v| v.is_nan()).then(|| values.iter().map(|v| !v.is_nan()).collect());
    Filled { cells: Cells::F64(values), valid }
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

/// Which rows of a table are of which run of its part.
struct ByRun {
    /// The numbers of the rows, run by run.
    order: Vec<usize>,
    /// Where in `order` the rows of each run begin, and where the last ones end.
    begins: Vec<usize>,
}

impl ByRun {
    /// By the column that says of which run a row is.
    fn new(run: Option<&PartColumn<'_>>, runs: usize) -> ByRun {
        let of_row: Vec<usize> =
            run.map_or_else(Vec::new, |run| (0..run.rows()).map(|row| run.number(row) as usize).collect());
        let mut order: Vec<usize> = (0..of_row.len()).collect();
        order.sort_by_key(|row| of_row[*row]);
        let mut begins = vec![0; runs + 1];
        of_row.iter().for_each(|run| begins[run + 1] += 1);
        (0..runs).for_each(|run| begins[run + 1] += begins[run]);
        ByRun { order, begins }
    }

    fn rows(&self, run: usize) -> &[usize] {
        &self.order[self.begins[run]..self.begins[run + 1]]
    }
}

/// One column: the cells of some rows, each by its part and its number there.
fn gathered<'a>(name: &'a str, of_part: &[Option<&'a [PartColumn<'a>]>], cells: &Arc<[Place]>) -> Field<'a> {
    let columns: Vec<Option<&'a PartColumn<'a>>> =
        of_part.iter().map(|columns| columns.and_then(|c| c.iter().find(|c| c.name == name))).collect();
    let number = columns.iter().flatten().find_map(|column| match column.values {
        PartValues::Numbers(kind, _) => Some(kind),
        PartValues::Texts(_) | PartValues::Category(..) => None,
    });
    let kind = number.map_or(Kind::Text, |number| match number {
        Number::I64 => Kind::I64,
        Number::U64 => Kind::U64,
        Number::U32 => Kind::U32,
        Number::U16 => Kind::U16,
        Number::U8 => Kind::U8,
        Number::F64 => Kind::F64,
    });
    let rows = Arc::clone(cells);
    field(name, kind, move || {
        let valid: Vec<bool> =
            rows.iter().map(|(part, row)| columns[*part].is_some_and(|c| c.is_there(*row))).collect();
        let cells = match number {
            Some(number @ Number::I64) => {
                Cells::I64(numbers(&columns, &rows, number, i64::from_le_bytes, |n| n as i64))
            }
            Some(number @ Number::U64) => {
                Cells::U64(numbers(&columns, &rows, number, u64::from_le_bytes, |n| n))
            }
            Some(number @ Number::U32) => {
                Cells::U32(numbers(&columns, &rows, number, u32::from_le_bytes, |n| n as u32))
            }
            Some(number @ Number::U16) => {
                Cells::U16(numbers(&columns, &rows, number, u16::from_le_bytes, |n| n as u16))
            }
            Some(number @ Number::U8) => {
                Cells::U8(numbers(&columns, &rows, number, u8::from_le_bytes, |n| n as u8))
            }
            Some(number @ Number::F64) => {
                Cells::F64(numbers(&columns, &rows, number, f64::from_le_bytes, f64::from_bits))
            }
            // What stands where nothing is there differs from part to part.
            None => Cells::Text(
                rows.iter()
                    .zip(&valid)
                    .map(|((part, row), is_there)| match columns[*part] {
                        Some(column) if *is_there => column.text(*row),
                        _ => "",
                    })
                    .collect(),
            ),
        };
        Filled { cells, valid: valid.contains(&false).then_some(valid) }
    })
}

/// The numbers in some rows: of columns of this kind as they lie there, of others, should there be any, by their bits.
fn numbers<const WIDTH: usize, N>(
    columns: &[Option<&PartColumn<'_>>],
    rows: &[Place],
    kind: Number,
    read: impl Fn([u8; WIDTH]) -> N,
    from_bits: impl Fn(u64) -> N,
) -> Vec<N> {
    let octets: Vec<Option<&[u8]>> =
        columns.iter().map(|column| column.and_then(|c| c.numbers(kind))).collect();
    let number = |(part, row): &Place| match octets[*part] {
        Some(octets) => read(number_at(octets, *row)),
        None => from_bits(columns[*part].map_or(0, |c| c.number(*row))),
    };
    rows.iter().map(number).collect()
}

/// A column.
fn field<'a>(name: &'a str, kind: Kind, fill: impl Fn() -> Filled<'a> + Sync + 'a) -> Field<'a> {
    Field { name, kind, fill: Box::new(fill), same_as: None }
}

/// A column that has a value in each of these rows.
fn of_rows<'a>(
    name: &'a str,
    kind: Kind,
    rows: &Rows,
    cells: impl Fn(&[(Key, Place)]) -> Cells<'a> + Sync + 'a,
) -> Field<'a> {
    let rows = Arc::clone(rows);
    field(name, kind, move || Filled { cells: cells(&rows), valid: None })
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
        let parts: Vec<Source<'_>> = parts.iter().map(|octets| Source::Octets(octets)).collect();
        let made = tables(&parts, &axes(), &["runs", "flows", "pages", "rate"].map(str::to_owned))?;
        let octets = |table: Table| {
            let mut octets = Vec::new();
            table.write(&mut octets).unwrap();
            octets
        };
        Ok(made.into_iter().map(|(name, table)| (name, octets(table))).collect())
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
    fn what_stands_where_nothing_is_does_not_show() {
        // Rows of which each second says nothing: with the code of the first name, of another one, or of none.
        let with = |names: &str, code: u8| {
            let line = r#"{"runs":RUNS,"lost":false,"outcome":LIST,"error":LIST,"run_id":IDS,"rate":LIST,"keys":[],
                "values":[],"tables":{"flows":[["run","<u4",[0,40],null,null],
                ["proto","<u2",[40,20],NAMES,[60,10]]]}}"#;
            let each = |one: &dyn Fn(usize) -> String| {
                format!("[{}]", (0..10).map(one).collect::<Vec<_>>().join(","))
            };
            let line = line.replace("RUNS", &each(&|n| format!("[0,{n}]"))).replace("NAMES", names);
            let line = line
                .replace("LIST", &each(&|_| "null".to_owned()))
                .replace("IDS", &each(&|_| "\"i\"".to_owned()));
            let mut octets = line.replace("\n                ", "").into_bytes();
            octets.push(b'\n');
            (0..10u32).for_each(|run| octets.extend_from_slice(&run.to_le_bytes()));
            (0..10u16).for_each(|n| {
                octets.extend_from_slice(&[if n % 2 == 0 { u8::from(n > 5) } else { code }, 0])
            });
            octets.extend((0..10).map(|n| u8::from(n % 2 == 0)));
            all(&[&octets]).unwrap()["flows"].clone()
        };
        let expected = with(r#"["a","b"]"#, 0);
        assert_eq!(with(r#"["a","b","c"]"#, 2), expected);
        assert_eq!(with(r#"["a","b"]"#, 9), expected);
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

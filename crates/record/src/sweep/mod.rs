//! The tables of a sweep: what runs gave, kept as Parquet files and put together.
//!
//! A sweep's folder has a file for each table, and as long as the sweep is unfinished its parts are folders with the same
//! files, each with the rows of some runs. To put tables together is to write their rows sorted by point and seed, so that
//! nothing tells in which parts the runs were made. A run that is there twice (the process was killed between writing a
//! table and dropping the parts) counts once: the first source that has it is taken, and what was lost gives way.
//!
//! Columns are read, put together and written one by one, a group of rows at a time: in memory are about a million cells,
//! and which rows come from where. Parts are made one after the other and hold runs in order, so that these are few words
//! for each part, however many runs it has.

mod done;
mod part;
mod read;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::vec;

pub use done::Done;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use part::Table;
pub use part::{Label, NameTaken, Part, Run, of_one_run};
use read::TableFile;

use crate::growing::as_io;
use crate::parquet_file::{self, Cells, Filled, Kind};

/// How the names of folders end that are not whole yet.
const PARTIAL: &str = "partial";

/// Where rows are.
pub enum Source<'a> {
    /// In memory.
    Part(&'a Part),
    /// In the files of a folder.
    Folder(&'a Path),
}

/// Why there are no tables.
#[derive(Debug)]
pub enum Error {
    /// This file is no table of a sweep, for this reason.
    Damaged(PathBuf, String),
    /// This file cannot be read or written.
    Io(PathBuf, io::Error),
}

/// Writes the tables with these names into a folder; one that no source has is left out. Files that are there are replaced
/// when all are whole.
///
/// # Errors
/// Files that cannot be read or written.
pub fn write(sources: &[Source<'_>], names: &[String], folder: &Path) -> Result<(), Error> {
    let mut written = Vec::new();
    for name in names {
        if let Some(table) = Merged::new(sources, name)? {
            let path = folder.join(format!("{name}.parquet.part"));
            let mut file = File::create(&path).map_err(|error| Error::Io(path.clone(), error))?;
            table.write(&mut file, &path)?;
            written.push(path);
        }
    }
    let rename =
        |path: &PathBuf| fs::rename(path, path.with_extension("")).map_err(|e| Error::Io(path.clone(), e));
    written.iter().try_for_each(rename)
}

/// Writes the tables with these names into a new folder in `parts`, which has its name once all is there.
///
/// # Errors
/// Files that cannot be read or written.
pub fn keep(sources: &[Source<'_>], names: &[String], parts: &Path) -> Result<(), Error> {
    if sources.is_empty() {
        return Ok(());
    }
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| Error::Io(path, error)
    };
    let count = fs::read_dir(parts).map_err(failed(parts))?.count();
    let is_free = |place: &PathBuf| !place.exists();
    let place =
        (count..).map(|number| parts.join(number.to_string())).find(is_free).expect("a number is free");
    let partial = place.with_extension(PARTIAL);
    fs::create_dir(&partial).map_err(failed(&partial))?;
    let written = write(sources, names, &partial);
    let kept = written.and_then(|()| fs::rename(&partial, &place).map_err(failed(&place)));
    if kept.is_err() {
        // The first error says more than another one.
        let _ = fs::remove_dir_all(&partial);
    }
    kept
}

/// The files of the tables with these names, as octets.
///
/// # Errors
/// Files that cannot be read.
pub fn octets(sources: &[Source<'_>], names: &[String]) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let mut all = Vec::new();
    for name in names {
        if let Some(table) = Merged::new(sources, name)? {
            let mut octets = Vec::new();
            table.write(&mut octets, Path::new(name))?;
            all.push((name.clone(), octets));
        }
    }
    Ok(all)
}

/// Point and seed.
type Key = (i64, u64);

/// A table of a source: some columns in some groups of rows.
enum AnyTable<'a> {
    Made(&'a Table),
    File(TableFile),
}

impl<'a> AnyTable<'a> {
    fn open(source: &Source<'a>, name: &str) -> Result<Option<AnyTable<'a>>, Error> {
        match source {
            Source::Part(part) => Ok(part.0.get(name).map(AnyTable::Made)),
            Source::Folder(folder) => {
                let path = folder.join(format!("{name}.parquet"));
                let table = TableFile::open(path.clone()).map_err(|error| unread(&path, error))?;
                Ok(table.map(AnyTable::File))
            }
        }
    }

    fn columns(&self) -> Vec<(String, Kind)> {
        match self {
            AnyTable::Made(table) => {
                table.0.iter().map(|(name, f)| (name.clone(), (&f.cells).into())).collect()
            }
            AnyTable::File(file) => file.columns.clone(),
        }
    }

    fn groups(&self) -> usize {
        match self {
            AnyTable::Made(_) => 1,
            AnyTable::File(file) => file.groups(),
        }
    }

    /// What is in a column in a group of rows, if there is such a column.
    fn column(&self, group: usize, name: &str) -> Result<Option<Cow<'_, Filled>>, Error> {
        match self {
            AnyTable::Made(table) => {
                Ok(table.0.iter().find(|column| column.0 == name).map(|(_, filled)| Cow::Borrowed(filled)))
            }
            AnyTable::File(file) => {
                let Some(number) = file.columns.iter().position(|column| column.0 == name) else {
                    return Ok(None);
                };
                let filled = file.column(group, number).map_err(|error| unread(&file.path, error))?;
                Ok(Some(Cow::Owned(filled)))
            }
        }
    }

    /// The run of each row.
    fn keys(&self, group: usize) -> Result<Vec<Key>, Error> {
        let (points, seeds) = (self.column(group, "point")?, self.column(group, "seed")?);
        match (points.as_ref().map(|c| &c.cells), seeds.as_ref().map(|c| &c.cells)) {
            (Some(Cells::I64(points)), Some(Cells::U64(seeds))) => {
                Ok(points.iter().copied().zip(seeds.iter().copied()).collect())
            }
            _ => Err(self.damaged("it does not say of which run a row is")),
        }
    }

    /// The status of each run.
    fn statuses(&self, group: usize) -> Result<Vec<ByteArray>, Error> {
        match self.column(group, "status")?.map(|column| column.into_owned().cells) {
            Some(Cells::Text(texts)) => Ok(texts),
            _ => Err(self.damaged("it does not say how runs ended")),
        }
    }

    /// Its runs in order, with their rows.
    fn runs(&self, group: usize, has_status: bool) -> Result<Vec<RunRows>, Error> {
        let statuses = if has_status { self.statuses(group)? } else { Vec::new() };
        let mut runs: Vec<RunRows> = Vec::new();
        for (row, key) in self.keys(group)?.into_iter().enumerate() {
            match runs.last_mut() {
                Some(last) if last.key == key => last.rows.end = row + 1,
                _ => {
                    let is_lost = statuses.get(row).is_some_and(|status| status.data() == b"lost");
                    runs.push(RunRows { key, is_lost, rows: row..row + 1 });
                }
            }
        }
        // They are in order already, but in a file that others wrote.
        runs.sort_by_key(|run| (run.key, run.is_lost));
        Ok(runs)
    }

    fn damaged(&self, why: &str) -> Error {
        let path = if let AnyTable::File(file) = self { file.path.clone() } else { PathBuf::new() };
        Error::Damaged(path, why.to_owned())
    }
}

fn unread(path: &Path, error: ParquetError) -> Error {
    match error {
        ParquetError::External(_) => Error::Io(path.to_owned(), as_io(error)),
        other => Error::Damaged(path.to_owned(), other.to_string()),
    }
}

/// Rows of one run that follow each other somewhere.
struct RunRows {
    key: Key,
    is_lost: bool,
    rows: Range<usize>,
}

/// Rows that follow each other somewhere, and in the merged table.
struct Stretch {
    /// Table and group of rows.
    place: usize,
    rows: Range<usize>,
    /// Which row of the merged table its first one is.
    at: usize,
}

/// A run whose rows come next in their place: key, whether it was lost, place, first row and the one behind its last.
type Head = Reverse<(Key, bool, usize, usize, usize)>;

/// Puts the rows of all places in the order of their runs. What runs a place has is looked up when it is its turn, and
/// forgotten behind it. The table `rate` is of one run of each point, that with the least seed: seeds may come later that
/// are less than those that were there.
fn in_order(tables: &[AnyTable<'_>], places: &[(usize, usize)], name: &str) -> Result<Vec<Stretch>, Error> {
    let (has_status, one_of_point) = (name == "runs", name == "rate");
    let mut later = Vec::new();
    for (place, (table, group)) in places.iter().enumerate() {
        later.extend(tables[*table].keys(*group)?.into_iter().min().map(|first| (first, place)));
    }
    later.sort_unstable_by_key(|first| Reverse(*first));
    let mut open: BTreeMap<usize, vec::IntoIter<RunRows>> = BTreeMap::new();
    // The next run of each open place: the first of equal ones is that of the first place, what was lost comes behind.
    let mut heads: BinaryHeap<Head> = BinaryHeap::new();
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut taken: Option<(Key, usize)> = None;
    loop {
        let mut of = None;
        let next = heads.peek().map(|Reverse((key, ..))| *key);
        if let Some((_, place)) = later.pop_if(|(first, _)| next.is_none_or(|next| *first <= next)) {
            let (table, group) = places[place];
            open.insert(place, tables[table].runs(group, has_status)?.into_iter());
            of = Some(place);
        } else if let Some(Reverse((key, _, place, begin, end))) = heads.pop() {
            of = Some(place);
            let from = (key, places[place].0);
            let is_next = |((point, _), _)| !one_of_point || point != key.0;
            if taken.is_none_or(|taken| (taken.0 != key && is_next(taken)) || taken == from) {
                taken = Some(from);
                match stretches.last_mut() {
                    Some(last) if last.place == place && last.rows.end == begin => last.rows.end = end,
                    last => {
                        let at = last.map_or(0, |last| last.at + last.rows.len());
                        stretches.push(Stretch { place, rows: begin..end, at });
                    }
                }
            }
        }
        let Some(place) = of else { return Ok(stretches) };
        match open.get_mut(&place).and_then(Iterator::next) {
            Some(RunRows { key, is_lost, rows }) => {
                heads.push(Reverse((key, is_lost, place, rows.start, rows.end)));
            }
            None => drop(open.remove(&place)),
        }
    }
}

/// A table to be.
struct Merged<'a> {
    tables: Vec<AnyTable<'a>>,
    /// Number of the table, and of a group of its rows.
    places: Vec<(usize, usize)>,
    columns: Vec<(String, Kind)>,
    stretches: Vec<Stretch>,
}

impl<'a> Merged<'a> {
    /// The table with this name, if a source has it.
    fn new(sources: &[Source<'a>], name: &str) -> Result<Option<Merged<'a>>, Error> {
        let mut tables = Vec::new();
        for source in sources {
            tables.extend(AnyTable::open(source, name)?);
        }
        let Some(first) = tables.first() else { return Ok(None) };
        let mut columns = first.columns();
        for (name, kind) in tables[1..].iter().flat_map(AnyTable::columns) {
            if !columns.iter().any(|column| column.0 == name) {
                columns.push((name, kind));
            }
        }
        // Behind what says how a run ended are the names of the summaries, in alphabetical order.
        let begin = columns.iter().position(|column| column.0 == "error").map_or(columns.len(), |n| n + 1);
        if name == "runs" {
            columns[begin..].sort_by(|one, other| one.0.cmp(&other.0));
        }
        let counts = tables.iter().map(AnyTable::groups).enumerate();
        let places: Vec<_> =
            counts.flat_map(|(table, groups)| (0..groups).map(move |g| (table, g))).collect();
        let stretches = in_order(&tables, &places, name)?;
        Ok(Some(Merged { tables, places, columns, stretches }))
    }

    fn write(&self, out: &mut (impl Write + Send), path: &Path) -> Result<(), Error> {
        let fill = |number, rows| {
            self.fill(number, rows).map_err(|error| ParquetError::External(Box::new(Kept(error))))
        };
        let rows = self.stretches.last().map_or(0, |last| last.at + last.rows.len());
        parquet_file::write(out, &self.columns, rows, fill).map_err(|error| match error {
            ParquetError::External(inner) => match inner.downcast::<Kept>() {
                Ok(kept) => kept.0,
                Err(inner) => Error::Io(path.to_owned(), as_io(ParquetError::External(inner))),
            },
            other => Error::Io(path.to_owned(), io::Error::other(other)),
        })
    }

    /// What is in some rows of a column.
    fn fill(&self, number: usize, rows: Range<usize>) -> Result<Filled, Error> {
        let (name, kind) = &self.columns[number];
        let mut read: Vec<Option<Option<Cow<'_, Filled>>>> = vec![None; self.places.len()];
        let mut filled = Filled::nothing(*kind, 0);
        let first = self.stretches.partition_point(|some| some.at + some.rows.len() <= rows.start);
        for some in self.stretches[first..].iter().take_while(|some| some.at < rows.end) {
            let (table, group) = self.places[some.place];
            if read[some.place].is_none() {
                read[some.place] = Some(self.tables[table].column(group, name)?);
            }
            let begin = some.rows.start + rows.start.saturating_sub(some.at);
            let end = some.rows.end.min(some.rows.start + rows.end - some.at);
            let is_good = match read[some.place].as_ref().and_then(Option::as_ref) {
                Some(from) => filled.extend(from, begin..end),
                None => filled.extend(&Filled::nothing(*kind, end - begin), 0..end - begin),
            };
            if !is_good {
                return Err(self.tables[table].damaged(&format!("column {name} is of another kind")));
            }
        }
        Ok(filled)
    }
}

/// An error on its way through the writer of files.
#[derive(Debug, thiserror::Error)]
#[error("{0:?}")]
struct Kept(Error);

#[cfg(test)]
mod tests;

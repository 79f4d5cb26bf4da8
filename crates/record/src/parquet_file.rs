//! Tables as Parquet files.
//!
//! A sweep of thousands of runs is made in less time than a table library for Python takes to be imported: its tables are
//! written from here. The columns are flat, each has a dictionary where values repeat, and nothing is compressed: most
//! columns of a sweep hold few different values.

use std::hash::Hash;
use std::io::Write;
use std::iter;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use airloom_base::lookup::Table;
use bytes::Bytes;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::writer::{ColumnWriter, get_column_writer};
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterPropertiesPtr, WriterVersion,
};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{SchemaDescriptor, Type};

/// The cells of a column; rows that are empty have any value.
#[derive(Clone, Debug, PartialEq, strum::EnumDiscriminants)]
#[strum_discriminants(name(Kind), doc = "Kinds of cells.")]
pub enum Cells {
    /// Signed 64-bit integers.
    I64(Vec<i64>),
    /// Unsigned 64-bit integers.
    U64(Vec<u64>),
    /// Unsigned 32-bit integers.
    U32(Vec<u32>),
    /// Unsigned 16-bit integers.
    U16(Vec<u16>),
    /// Unsigned 8-bit integers.
    U8(Vec<u8>),
    /// Floating point numbers.
    F64(Vec<f64>),
    /// Texts; equal ones may share their octets.
    Text(Vec<ByteArray>),
}

/// What is in a column.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// Its cells.
    pub cells: Cells,
    /// Is there a value in each row? `None`: always.
    pub valid: Option<Vec<bool>>,
}

/// How many values of a column are looked at to see whether they repeat.
const LOOKED_AT: usize = 256;

/// Rows of a group.
pub const GROUP: usize = 1_000_000;

/// Rows of a group of a table that is written whole: a column of it is in memory, however many rows there are.
const WHOLE: usize = 65_536;

/// So many cells are encoded at a time, or a column for each core if those are more.
const AT_ONCE: usize = 500_000;

/// Writes a file with these columns and so many rows. `fill` gives what is in some rows of a column, by its number;
/// it is asked for them in order.
///
/// # Errors
/// Those of `out` and of `fill`, and columns of other lengths or kinds than was said.
pub fn write(
    out: &mut (impl Write + Send),
    columns: &[(String, Kind)],
    rows: usize,
    fill: impl Fn(usize, Range<usize>) -> Result<Filled> + Sync,
) -> Result<()> {
    let (plain, dictionary) = (properties(false), properties(true));
    let types = columns.iter().map(|(name, kind)| column_type(name, *kind)).collect::<Result<Vec<_>>>()?;
    let schema = Arc::new(Type::group_type_builder("schema").with_fields(types).build()?);
    let descriptor = SchemaDescriptor::new(Arc::clone(&schema));
    let encode = |number: usize, rows: Range<usize>| {
        let filled = fill(number, rows.clone())?;
        let is_whole =
            filled.cells.len() == rows.len() && filled.valid.as_ref().is_none_or(|v| v.len() == rows.len());
        if !is_whole || Kind::from(&filled.cells) != columns[number].1 {
            let name = &columns[number].0;
            return Err(ParquetError::General(format!("column {name} has not the rows that were said")));
        }
        let properties = if filled.cells.repeat() { &dictionary } else { &plain };
        let mut sink = TrackedWrite::new(Vec::new());
        let pages = Box::new(SerializedPageWriter::new(&mut sink));
        let mut writer = get_column_writer(descriptor.column(number), Arc::clone(properties), pages);
        filled.write(&mut writer, 0, filled.cells.len())?;
        let closed = writer.close()?;
        Ok::<_, ParquetError>((Bytes::from(sink.into_inner()?), closed))
    };
    let mut writer = SerializedFileWriter::new(out, schema, properties(true))?;
    let at_once = (AT_ONCE / rows.clamp(1, WHOLE)).max(cores());
    for begin in (0..rows).step_by(WHOLE) {
        let mut group = writer.next_row_group()?;
        for first in (0..columns.len()).step_by(at_once) {
            let count = at_once.min(columns.len() - first);
            let range = begin..rows.min(begin + WHOLE);
            for encoded in on_all_cores(count, |number| encode(first + number, range.clone())) {
                let (octets, closed) = encoded?;
                group.append_column(&octets, closed)?;
            }
        }
        group.close()?;
    }
    writer.close().map(drop)
}

/// What all files have in common.
pub fn properties_of(version: WriterVersion) -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_writer_version(version)
        .set_created_by(concat!("airloom version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
}

fn properties(dictionary: bool) -> WriterPropertiesPtr {
    let properties = properties_of(WriterVersion::PARQUET_1_0)
        .set_dictionary_enabled(dictionary)
        .set_dictionary_page_size_limit(usize::MAX)
        .set_data_page_size_limit(usize::MAX)
        .set_data_page_row_count_limit(GROUP);
    Arc::new(properties.build())
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// What `make` makes of each number below `count`, in their order: each core of the machine takes the next one.
fn on_all_cores<O: Send>(count: usize, make: impl Fn(usize) -> O + Sync) -> Vec<O> {
    let cores = cores().min(count);
    let next = AtomicUsize::new(0);
    let take = || {
        let number = next.fetch_add(1, Ordering::Relaxed);
        (number < count).then(|| (number, make(number)))
    };
    let work = || iter::from_fn(take).collect::<Vec<_>>();
    let mut made = thread::scope(|scope| {
        let others: Vec<_> = (1..cores).map(|_| scope.spawn(work)).collect();
        let mut made = work();
        for other in others {
            made.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        made
    });
    made.sort_unstable_by_key(|(number, _)| *number);
    made.into_iter().map(|(_, one)| one).collect()
}

/// All columns may have empty rows: a column is the same in every file, whatever is in it.
pub fn column_type(name: &str, kind: Kind) -> Result<Arc<Type>> {
    let (physical, logical) = match kind {
        Kind::I64 => (Physical::INT64, None),
        Kind::F64 => (Physical::DOUBLE, None),
        Kind::U64 => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Kind::U32 => (Physical::INT32, Some(LogicalType::integer(32, false))),
        Kind::U16 => (Physical::INT32, Some(LogicalType::integer(16, false))),
        Kind::U8 => (Physical::INT32, Some(LogicalType::integer(8, false))),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let column = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
    Ok(Arc::new(column.with_logical_type(logical).build()?))
}

/// The same for cells of each kind.
macro_rules! each {
    ($cells:expr, $v:ident => $made:expr) => {
        match $cells {
            Cells::I64($v) => Cells::I64($made),
            Cells::U64($v) => Cells::U64($made),
            Cells::U32($v) => Cells::U32($made),
            Cells::U16($v) => Cells::U16($made),
            Cells::U8($v) => Cells::U8($made),
            Cells::F64($v) => Cells::F64($made),
            Cells::Text($v) => Cells::Text($made),
        }
    };
}

impl Cells {
    fn len(&self) -> usize {
        match self {
            Cells::I64(v) => v.len(),
            Cells::U64(v) => v.len(),
            Cells::U32(v) => v.len(),
            Cells::U16(v) => v.len(),
            Cells::U8(v) => v.len(),
            Cells::F64(v) => v.len(),
            Cells::Text(v) => v.len(),
        }
    }

    /// Do the first values repeat so often that a dictionary is worth its cost?
    pub fn repeat(&self) -> bool {
        match self {
            Cells::I64(v) => repeat(v.iter()),
            Cells::U64(v) => repeat(v.iter()),
            Cells::U32(v) => repeat(v.iter()),
            Cells::U16(v) => repeat(v.iter()),
            Cells::U8(v) => repeat(v.iter()),
            Cells::F64(v) => repeat(v.iter().map(|v| v.to_bits())),
            Cells::Text(v) => repeat(v.iter().map(ByteArray::data)),
        }
    }
}

impl Filled {
    /// So many rows without a value.
    pub fn nothing(kind: Kind, rows: usize) -> Filled {
        let cells = match kind {
            Kind::I64 => Cells::I64(vec![0; rows]),
            Kind::U64 => Cells::U64(vec![0; rows]),
            Kind::U32 => Cells::U32(vec![0; rows]),
            Kind::U16 => Cells::U16(vec![0; rows]),
            Kind::U8 => Cells::U8(vec![0; rows]),
            Kind::F64 => Cells::F64(vec![0.0; rows]),
            Kind::Text => Cells::Text(vec![ByteArray::from(""); rows]),
        };
        Filled { cells, valid: (rows > 0).then(|| vec![false; rows]) }
    }

    /// The same with nothing in cells that are empty: what stands there is not to show in how a column is written.
    pub fn blanked(mut self) -> Filled {
        let empty = self.valid.iter().flatten().enumerate().filter(|(_, is_there)| !**is_there);
        for (row, _) in empty {
            match &mut self.cells {
                Cells::I64(v) => v[row] = 0,
                Cells::U64(v) => v[row] = 0,
                Cells::U32(v) => v[row] = 0,
                Cells::U16(v) => v[row] = 0,
                Cells::U8(v) => v[row] = 0,
                Cells::F64(v) => v[row] = 0.0,
                Cells::Text(v) => v[row] = ByteArray::from(""),
            }
        }
        self
    }

    /// These rows, in this order.
    pub fn pick(&self, rows: &[usize]) -> Filled {
        let cells = each!(&self.cells, v => rows.iter().filter_map(|row| v.get(*row)).cloned().collect());
        let valid = self.valid.as_ref().map(|valid| rows.iter().map(|row| valid[*row]).collect());
        Filled { cells, valid }
    }

    /// Adds rows of another column; says whether that is of the same kind.
    pub fn extend(&mut self, from: &Filled, rows: Range<usize>) -> bool {
        let before = self.cells.len();
        match (&mut self.cells, &from.cells) {
            (Cells::I64(to), Cells::I64(from)) => to.extend_from_slice(&from[rows.clone()]),
            (Cells::U64(to), Cells::U64(from)) => to.extend_from_slice(&from[rows.clone()]),
            (Cells::U32(to), Cells::U32(from)) => to.extend_from_slice(&from[rows.clone()]),
            (Cells::U16(to), Cells::U16(from)) => to.extend_from_slice(&from[rows.clone()]),
            (Cells::U8(to), Cells::U8(from)) => to.extend_from_slice(&from[rows.clone()]),
            (Cells::F64(to), Cells::F64(from)) => to.extend_from_slice(&from[rows.clone()]),
            (Cells::Text(to), Cells::Text(from)) => to.extend_from_slice(&from[rows.clone()]),
            _ => return false,
        }
        let is_there = |row: usize| from.valid.as_ref().is_none_or(|valid| valid[row]);
        if self.valid.is_some() || !rows.clone().all(is_there) {
            self.valid.get_or_insert_with(|| vec![true; before]).extend(rows.map(is_there));
        }
        true
    }

    /// Writes the rows from `begin` to `end`.
    pub fn write(&self, into: &mut ColumnWriter<'_>, begin: usize, end: usize) -> Result<()> {
        let valid = self.valid.as_ref().map(|valid| &valid[begin..end]);
        let levels: Vec<i16> = match valid {
            Some(valid) => valid.iter().map(|v| i16::from(*v)).collect(),
            None => vec![1; end - begin],
        };
        let levels = Some(levels.as_slice());
        let rows = || (begin..end).filter(|row| valid.is_none_or(|valid| valid[row - begin]));
        macro_rules! batch {
            ($writer:expr, $cells:expr, $value:expr) => {{
                let values: Vec<_> = rows().map(|row| &$cells[row]).map($value).collect();
                $writer.write_batch(&values, levels, None).map(drop)
            }};
        }
        match (into, &self.cells) {
            (ColumnWriter::Int64ColumnWriter(w), Cells::I64(v)) if valid.is_none() => {
                w.write_batch(&v[begin..end], levels, None).map(drop)
            }
            (ColumnWriter::DoubleColumnWriter(w), Cells::F64(v)) if valid.is_none() => {
                w.write_batch(&v[begin..end], levels, None).map(drop)
            }
            (ColumnWriter::Int64ColumnWriter(w), Cells::I64(v)) => batch!(w, v, |v| *v),
            (ColumnWriter::Int64ColumnWriter(w), Cells::U64(v)) => batch!(w, v, |v| *v as i64),
            (ColumnWriter::Int32ColumnWriter(w), Cells::U32(v)) => batch!(w, v, |v| *v as i32),
            (ColumnWriter::Int32ColumnWriter(w), Cells::U16(v)) => batch!(w, v, |v| i32::from(*v)),
            (ColumnWriter::Int32ColumnWriter(w), Cells::U8(v)) => batch!(w, v, |v| i32::from(*v)),
            (ColumnWriter::DoubleColumnWriter(w), Cells::F64(v)) => batch!(w, v, |v| *v),
            (ColumnWriter::ByteArrayColumnWriter(w), Cells::Text(v)) if valid.is_none() => {
                w.write_batch(&v[begin..end], levels, None).map(drop)
            }
            (ColumnWriter::ByteArrayColumnWriter(w), Cells::Text(v)) => batch!(w, v, ByteArray::clone),
            _ => Ok(()),
        }
    }
}

/// Texts as cells: pieces of one allocation.
pub fn texts<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> Cells {
    let all = Bytes::from(texts.clone().collect::<String>());
    let mut begin = 0;
    let piece = |text: &str| {
        let piece = all.slice(begin..begin + text.len());
        begin += text.len();
        ByteArray::from(piece)
    };
    Cells::Text(texts.map(piece).collect())
}

/// Is at most every fourth of the first values a new one?
fn repeat<T: Copy + Eq + Hash>(values: impl ExactSizeIterator<Item = T>) -> bool {
    let (rows, mut seen, mut last) = (values.len().min(LOOKED_AT), Table::default(), None);
    for value in values.take(rows) {
        let is_new = last != Some(value) && seen.insert(value, ()).is_none();
        if is_new && 4 * seen.len() > rows.max(8) {
            return false;
        }
        last = Some(value);
    }
    true
}

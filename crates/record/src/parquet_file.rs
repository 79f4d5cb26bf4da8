//! Tables as Parquet files.
//!
//! A sweep of thousands of runs is made in less time than a table library for Python takes to be imported: its tables are
//! written from here. The columns are flat, each has a dictionary where values repeat, and nothing is compressed: most
//! columns of a sweep hold few different values.

use std::hash::Hash;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

use airloom_base::lookup::Table;
use bytes::Bytes;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::writer::{ColumnWriter, get_column_writer};
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, ColumnPath, SchemaDescriptor, Type};

/// The cells of a column; rows that are empty have any value.
pub enum Cells<'a> {
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
    /// Texts.
    Text(Vec<&'a str>),
}

/// A column of a file.
pub struct Field<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its cells.
    pub cells: Cells<'a>,
    /// Is there a value in each row? `None`: always.
    pub valid: Option<Vec<bool>>,
}

/// How many values of a column are looked at to see whether they repeat.
const LOOKED_AT: usize = 1000;

/// Rows of a group.
const GROUP: usize = 1_000_000;

/// The octets of a file with these columns.
///
/// # Errors
/// Columns of different lengths.
pub fn file(fields: &[Field<'_>]) -> Result<Vec<u8>> {
    let columns = fields.iter().map(column).collect::<Result<Vec<_>>>()?;
    let schema = Type::group_type_builder("schema").with_fields(columns).build()?;
    let mut properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by(concat!("airloom version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_dictionary_page_size_limit(usize::MAX)
        .set_data_page_size_limit(usize::MAX)
        .set_data_page_row_count_limit(GROUP);
    for field in fields {
        properties = properties.set_column_dictionary_enabled(ColumnPath::from(field.name), field.repeats());
    }
    let (schema, properties) = (Arc::new(schema), Arc::new(properties.build()));
    let columns = SchemaDescriptor::new(Arc::clone(&schema));
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::clone(&properties))?;
    let rows = fields.first().map_or(0, |f| f.cells.len());
    let is_short =
        |f: &&Field<'_>| f.cells.len() != rows || f.valid.as_ref().is_some_and(|v| v.len() != rows);
    if let Some(field) = fields.iter().find(is_short) {
        return Err(ParquetError::General(format!(
            "column {} has not as many rows as the others",
            field.name
        )));
    }
    let all_there = vec![1; rows.min(GROUP)];
    for begin in (0..rows).step_by(GROUP) {
        let end = rows.min(begin + GROUP);
        let encode = |(field, column): (&Field<'_>, &ColumnDescPtr)| -> Result<_> {
            let mut sink = TrackedWrite::new(Vec::new());
            let pages = Box::new(SerializedPageWriter::new(&mut sink));
            let mut writer = get_column_writer(Arc::clone(column), Arc::clone(&properties), pages);
            field.write(&mut writer, begin, end, &all_there[..end - begin])?;
            let closed = writer.close()?;
            Ok((Bytes::from(sink.into_inner()?), closed))
        };
        let mut group = writer.next_row_group()?;
        for column in on_all_cores(fields.iter().zip(columns.columns()), encode) {
            let (octets, closed) = column?;
            group.append_column(&octets, closed)?;
        }
        group.close()?;
    }
    writer.into_inner()
}

/// What `make` makes of each item, in their order: a share of them on each core of the machine.
pub fn on_all_cores<I: Send, O: Send>(
    items: impl ExactSizeIterator<Item = I>,
    make: impl Fn(I) -> O + Sync,
) -> Vec<O> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let share = items.len().div_ceil(cores).max(1);
    let mut items: Vec<I> = items.collect();
    let (first, make) = (items.drain(..share.min(items.len())).collect::<Vec<I>>(), &make);
    thread::scope(|scope| {
        let mut others = Vec::new();
        while !items.is_empty() {
            let some: Vec<I> = items.drain(..share.min(items.len())).collect();
            others.push(scope.spawn(move || some.into_iter().map(make).collect::<Vec<O>>()));
        }
        let mut made: Vec<O> = first.into_iter().map(make).collect();
        for other in others {
            made.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        made
    })
}

/// All columns may have empty rows: a column is the same in every file, whatever is in it.
fn column(field: &Field<'_>) -> Result<Arc<Type>> {
    let (physical, logical) = match field.cells {
        Cells::I64(_) => (Physical::INT64, None),
        Cells::F64(_) => (Physical::DOUBLE, None),
        Cells::U64(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Cells::U32(_) => (Physical::INT32, Some(LogicalType::integer(32, false))),
        Cells::U16(_) => (Physical::INT32, Some(LogicalType::integer(16, false))),
        Cells::U8(_) => (Physical::INT32, Some(LogicalType::integer(8, false))),
        Cells::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let column = Type::primitive_type_builder(field.name, physical).with_repetition(Repetition::OPTIONAL);
    Ok(Arc::new(column.with_logical_type(logical).build()?))
}

impl Cells<'_> {
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
}

impl Field<'_> {
    /// Has at least every second of the first values been there before? Otherwise a dictionary costs more than it saves.
    fn repeats(&self) -> bool {
        match &self.cells {
            Cells::I64(v) => repeat(v.iter()),
            Cells::U64(v) => repeat(v.iter()),
            Cells::U32(v) => repeat(v.iter()),
            Cells::U16(v) => repeat(v.iter()),
            Cells::U8(v) => repeat(v.iter()),
            Cells::F64(v) => repeat(v.iter().map(|v| v.to_bits())),
            Cells::Text(v) => repeat(v.iter()),
        }
    }

    /// Writes the rows from `begin` to `end`; `all_there` are the definition levels of as many rows that have values.
    fn write(&self, into: &mut ColumnWriter<'_>, begin: usize, end: usize, all_there: &[i16]) -> Result<()> {
        let valid = self.valid.as_ref().map(|valid| &valid[begin..end]);
        let own: Option<Vec<i16>> = valid.map(|valid| valid.iter().map(|v| i16::from(*v)).collect());
        let levels = Some(own.as_deref().unwrap_or(all_there));
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
            (ColumnWriter::ByteArrayColumnWriter(w), Cells::Text(v)) => {
                let texts = texts(rows().map(|row| v[row]));
                w.write_batch(&texts, levels, None).map(drop)
            }
            _ => Ok(()),
        }
    }
}

/// Texts as the writer takes them: pieces of one allocation.
fn texts<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> Vec<ByteArray> {
    let all = Bytes::from(texts.clone().collect::<String>());
    let mut begin = 0;
    let piece = |text: &str| {
        let piece = all.slice(begin..begin + text.len());
        begin += text.len();
        ByteArray::from(piece)
    };
    texts.map(piece).collect()
}

fn repeat<T: Copy + Eq + Hash>(values: impl ExactSizeIterator<Item = T>) -> bool {
    let (rows, mut seen, mut last) = (values.len().min(LOOKED_AT), Table::default(), None);
    for value in values.take(rows) {
        let is_new = last != Some(value) && seen.insert(value, ()).is_none();
        if is_new && 2 * seen.len() > rows {
            return false;
        }
        last = Some(value);
    }
    true
}

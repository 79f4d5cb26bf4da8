//! Tables as Parquet files.
//!
//! A sweep of thousands of runs is made in less time than a table library for Python takes to be imported: its tables are
//! written from here. The columns are flat, each has a dictionary where values repeat, and nothing is compressed: most
//! columns of a sweep hold few different values.

use std::hash::Hash;
use std::io::Write;
use std::iter;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use airloom_base::lookup::Table;
use bytes::Bytes;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::writer::{ColumnCloseResult, ColumnWriter, get_column_writer};
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterPropertiesPtr, WriterVersion,
};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor, Type, TypePtr};

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

/// Kinds of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Signed 64-bit integers.
    I64,
    /// Unsigned 64-bit integers.
    U64,
    /// Unsigned 32-bit integers.
    U32,
    /// Unsigned 16-bit integers.
    U16,
    /// Unsigned 8-bit integers.
    U8,
    /// Floating point numbers.
    F64,
    /// Texts.
    Text,
}

/// What is in a column.
pub struct Filled<'a> {
    /// Its cells.
    pub cells: Cells<'a>,
    /// Is there a value in each row? `None`: always.
    pub valid: Option<Vec<bool>>,
}

/// A column of a file.
pub struct Field<'a> {
    /// Its name.
    pub name: &'a str,
    /// Of which kind its cells are.
    pub kind: Kind,
    /// Makes what is in it. Called when it is written, so that few columns are in memory at a time.
    pub fill: Box<dyn Fn() -> Filled<'a> + Sync + 'a>,
    /// The number of a field before it with the same in it, if that is known: it is written once then.
    pub same_as: Option<usize>,
}

/// A file to be.
pub struct File<'a> {
    /// Its columns.
    pub fields: Vec<Field<'a>>,
    /// How many rows each of them has.
    pub rows: usize,
}

/// How many values of a column are looked at to see whether they repeat.
const LOOKED_AT: usize = 256;

/// Rows of a group.
pub const GROUP: usize = 1_000_000;

/// A column in a group of rows, as it is written.
type Chunk = (Bytes, ColumnCloseResult);

/// A file whose columns are encoded.
pub struct Encoded {
    schema: TypePtr,
    rows: usize,
    columns: Vec<Vec<Chunk>>,
}

/// Encodes the columns of files.
///
/// # Errors
/// Columns of other lengths or kinds than was said.
pub fn encode(files: &[File<'_>]) -> Result<Vec<Encoded>> {
    let (plain, dictionary) = (properties(false), properties(true));
    let schemas = files.iter().map(schema).collect::<Result<Vec<_>>>()?;
    let descriptors: Vec<SchemaDescriptor> = schemas.iter().cloned().map(SchemaDescriptor::new).collect();
    let columns: Vec<(usize, &Field<'_>, &ColumnDescPtr)> = (files.iter().zip(&descriptors))
        .flat_map(|(file, descriptor)| {
            file.fields.iter().zip(descriptor.columns()).map(move |c| (file.rows, c))
        })
        .filter(|(_, (field, _))| field.same_as.is_none())
        .map(|(rows, (field, column))| (rows, field, column))
        .collect();
    let mut encoded = on_all_cores(columns.len(), |number| {
        let (rows, field, column) = columns[number];
        encode_column(field, rows, column, &plain, &dictionary)
    })
    .into_iter();
    let mut made = Vec::with_capacity(files.len());
    for ((file, schema), descriptor) in files.iter().zip(schemas).zip(&descriptors) {
        let mut columns: Vec<Vec<Chunk>> = Vec::with_capacity(file.fields.len());
        for (field, column) in file.fields.iter().zip(descriptor.columns()) {
            columns.push(match field.same_as.and_then(|number| columns.get(number)) {
                Some(same) => same.iter().map(|chunk| again(chunk, column)).collect::<Result<_>>()?,
                None => encoded.next().ok_or_else(|| wrong(field, "is the same as none"))??,
            });
        }
        made.push(Encoded { schema, rows: file.rows, columns });
    }
    Ok(made)
}

impl Encoded {
    /// Writes the file.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut (impl Write + Send)) -> Result<()> {
        let mut writer = SerializedFileWriter::new(out, Arc::clone(&self.schema), properties(true))?;
        for number in 0..self.rows.div_ceil(GROUP) {
            let mut group = writer.next_row_group()?;
            for (octets, closed) in self.columns.iter().filter_map(|chunks| chunks.get(number)) {
                group.append_column(octets, closed.clone())?;
            }
            group.close()?;
        }
        writer.close().map(drop)
    }
}

/// The same chunk for another column.
fn again((octets, closed): &Chunk, column: &ColumnDescPtr) -> Result<Chunk> {
    let was = &closed.metadata;
    let mut metadata = ColumnChunkMetaData::builder(Arc::clone(column))
        .set_compression_codec(was.compression_codec())
        .set_encodings_mask(*was.encodings_mask())
        .set_total_compressed_size(was.compressed_size())
        .set_total_uncompressed_size(was.uncompressed_size())
        .set_num_values(was.num_values())
        .set_data_page_offset(was.data_page_offset())
        .set_dictionary_page_offset(was.dictionary_page_offset());
    if let Some(pages) = was.page_encoding_stats() {
        metadata = metadata.set_page_encoding_stats(pages.clone());
    }
    Ok((octets.clone(), ColumnCloseResult { metadata: metadata.build()?, ..closed.clone() }))
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

fn schema(file: &File<'_>) -> Result<TypePtr> {
    let columns = file.fields.iter().map(|field| column_type(field.name, field.kind));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Type::group_type_builder("schema").with_fields(columns).build()?))
}

/// The octets of a column in each group of rows.
fn encode_column(
    field: &Field<'_>,
    rows: usize,
    column: &ColumnDescPtr,
    plain: &WriterPropertiesPtr,
    dictionary: &WriterPropertiesPtr,
) -> Result<Vec<Chunk>> {
    let filled = (field.fill)();
    if filled.cells.len() != rows || filled.valid.as_ref().is_some_and(|v| v.len() != rows) {
        return Err(wrong(field, "has not as many rows as the others"));
    }
    if filled.cells.kind() != field.kind {
        return Err(wrong(field, "is of another kind"));
    }
    let properties = if filled.cells.repeat() { dictionary } else { plain };
    let group = |begin| {
        let mut sink = TrackedWrite::new(Vec::new());
        let pages = Box::new(SerializedPageWriter::new(&mut sink));
        let mut writer = get_column_writer(Arc::clone(column), Arc::clone(properties), pages);
        filled.write(&mut writer, begin, rows.min(begin + GROUP))?;
        let closed = writer.close()?;
        Ok((Bytes::from(sink.into_inner()?), closed))
    };
    (0..rows).step_by(GROUP).map(group).collect()
}

fn wrong(field: &Field<'_>, why: &str) -> ParquetError {
    ParquetError::General(format!("column {} {why}", field.name))
}

/// What `make` makes of each number below `count`, in their order: each core of the machine takes the next one.
pub fn on_all_cores<O: Send>(count: usize, make: impl Fn(usize) -> O + Sync) -> Vec<O> {
    let cores = thread::available_parallelism().map_or(1, usize::from).min(count);
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

    fn kind(&self) -> Kind {
        match self {
            Cells::I64(_) => Kind::I64,
            Cells::U64(_) => Kind::U64,
            Cells::U32(_) => Kind::U32,
            Cells::U16(_) => Kind::U16,
            Cells::U8(_) => Kind::U8,
            Cells::F64(_) => Kind::F64,
            Cells::Text(_) => Kind::Text,
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
            Cells::Text(v) => repeat(v.iter()),
        }
    }
}

impl Filled<'_> {
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

//! Tables that are read from files, a column in a group of rows at a time.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::buf::Reader;
use bytes::{Buf, Bytes};
use parquet::basic::{LogicalType, Type as Physical};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::{ChunkReader, Length, SerializedPageReader};
use parquet::schema::types::ColumnDescriptor;

use crate::parquet_file::{Cells, Filled, Kind};

/// A table in a file. It is open only while something is read: there may be more of them than a process may open.
pub(super) struct TableFile {
    pub(super) path: PathBuf,
    pub(super) columns: Vec<(String, Kind)>,
    metadata: ParquetMetaData,
}

impl TableFile {
    /// Reads what a file says of itself; `None` if there is no such file.
    pub(super) fn open(path: PathBuf) -> Result<Option<TableFile>> {
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&file)?;
        let columns = metadata.file_metadata().schema_descr().columns().iter();
        let columns =
            columns.map(|column| Ok((column.name().to_owned(), kind(column)?))).collect::<Result<_>>()?;
        Ok(Some(TableFile { path, columns, metadata }))
    }

    pub(super) fn groups(&self) -> usize {
        self.metadata.num_row_groups()
    }

    /// What is in a column in a group of rows.
    pub(super) fn column(&self, group: usize, number: usize) -> Result<Filled> {
        let group = self.metadata.row_group(group);
        let (column, rows) = (group.column(number), usize::try_from(group.num_rows()).unwrap_or(0));
        let chunk = Chunk::read(&self.path, column.byte_range())?;
        let pages = SerializedPageReader::new(Arc::new(chunk), column, rows, None)?;
        macro_rules! cells {
            ($reader:expr, $cell:expr, $nothing:expr) => {{
                let (mut levels, mut values) = (Vec::new(), Vec::new());
                $reader.read_records(rows, Some(&mut levels), None, &mut values)?;
                spread(values, &levels, rows, $cell, $nothing)?
            }};
        }
        let reader = get_column_reader(column.column_descr_ptr(), Box::new(pages));
        let (cells, valid) = match (reader, self.columns[number].1) {
            (ColumnReader::Int64ColumnReader(mut r), Kind::U64) => {
                wrap(cells!(r, |v: i64| v as u64, 0), Cells::U64)
            }
            (ColumnReader::Int64ColumnReader(mut r), _) => wrap(cells!(r, |v: i64| v, 0), Cells::I64),
            (ColumnReader::Int32ColumnReader(mut r), Kind::U8) => {
                wrap(cells!(r, |v: i32| v as u8, 0), Cells::U8)
            }
            (ColumnReader::Int32ColumnReader(mut r), Kind::U16) => {
                wrap(cells!(r, |v: i32| v as u16, 0), Cells::U16)
            }
            (ColumnReader::Int32ColumnReader(mut r), _) => wrap(cells!(r, |v: i32| v as u32, 0), Cells::U32),
            (ColumnReader::DoubleColumnReader(mut r), _) => wrap(cells!(r, |v: f64| v, 0.0), Cells::F64),
            (ColumnReader::ByteArrayColumnReader(mut r), _) => {
                wrap(cells!(r, |v: ByteArray| v, ByteArray::from("")), Cells::Text)
            }
            _ => return Err(other_kind(&self.columns[number].0)),
        };
        Ok(Filled { cells, valid })
    }
}

fn wrap<T>(
    (cells, valid): (Vec<T>, Option<Vec<bool>>),
    kind: impl Fn(Vec<T>) -> Cells,
) -> (Cells, Option<Vec<bool>>) {
    (kind(cells), valid)
}

/// Puts values where there are some, by the levels of the rows, and `nothing` elsewhere.
fn spread<V, T: Clone>(
    values: Vec<V>,
    levels: &[i16],
    rows: usize,
    cell: impl Fn(V) -> T,
    nothing: T,
) -> Result<(Vec<T>, Option<Vec<bool>>)> {
    let valid = (values.len() < rows).then(|| levels.iter().map(|level| *level > 0).collect::<Vec<bool>>());
    let there = valid.as_ref().map_or(values.len(), Vec::len);
    if there != rows {
        return Err(ParquetError::General(format!("a column has {there} rows of {rows}")));
    }
    let mut values = values.into_iter().map(cell);
    let cells = match &valid {
        None => values.collect(),
        Some(valid) => {
            let value = |is_there: &bool| {
                is_there.then(|| values.next()).flatten().unwrap_or_else(|| nothing.clone())
            };
            valid.iter().map(value).collect()
        }
    };
    Ok((cells, valid))
}

/// The kind of a column that this crate wrote.
fn kind(column: &ColumnDescriptor) -> Result<Kind> {
    Ok(match (column.physical_type(), column.logical_type_ref()) {
        (Physical::INT64, None) => Kind::I64,
        (Physical::DOUBLE, None) => Kind::F64,
        (Physical::BYTE_ARRAY, Some(LogicalType::String)) => Kind::Text,
        (_, Some(integer)) => [Kind::U64, Kind::U32, Kind::U16, Kind::U8]
            .into_iter()
            .zip([64, 32, 16, 8])
            .find(|(_, bits)| *integer == LogicalType::integer(*bits, false))
            .map(|(kind, _)| kind)
            .ok_or_else(|| other_kind(column.name()))?,
        _ => return Err(other_kind(column.name())),
    })
}

fn other_kind(name: &str) -> ParquetError {
    ParquetError::General(format!("column {name} is of another kind than it should be"))
}

/// Octets of a file. (Readers of one open file share its position, and several threads read at once.)
struct Chunk {
    begin: u64,
    octets: Bytes,
}

impl Chunk {
    fn read(path: &Path, (begin, length): (u64, u64)) -> Result<Chunk> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(begin))?;
        let mut octets = Vec::with_capacity(usize::try_from(length).unwrap_or(0).min(1 << 26));
        file.take(length).read_to_end(&mut octets)?;
        Ok(Chunk { begin, octets: octets.into() })
    }
}

impl Length for Chunk {
    fn len(&self) -> u64 {
        self.begin + self.octets.len() as u64
    }
}

impl ChunkReader for Chunk {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Reader<Bytes>> {
        let length = self
            .octets
            .len()
            .saturating_sub(usize::try_from(start.saturating_sub(self.begin)).unwrap_or(usize::MAX));
        Ok(self.get_bytes(start, length)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let begin = start.checked_sub(self.begin).and_then(|begin| usize::try_from(begin).ok());
        let range = begin.and_then(|begin| Some(begin..begin.checked_add(length)?));
        match range.filter(|range| range.end <= self.octets.len()) {
            Some(range) => Ok(self.octets.slice(range)),
            None => Err(ParquetError::EOF("a column is shorter than it says".to_owned())),
        }
    }
}

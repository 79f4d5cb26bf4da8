//! Tables that are files while they grow.
//!
//! A run that goes on for a day has more rows than memory. They are encoded as they come, and a group of rows is written
//! when it is full: what is in memory is the encoded part of one group of each table, some ten megabytes at most.
//! Rows are in the order in which they were recorded.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::mem::take;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::column::writer::{ColumnWriter, get_column_writer};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{
    EnabledStatistics, WriterPropertiesBuilder, WriterPropertiesPtr, WriterVersion,
};
use parquet::file::writer::{SerializedFileWriter, SerializedPageWriter, TrackedWrite};
use parquet::schema::types::{ColumnDescPtr, ColumnPath, SchemaDescriptor, Type};

use crate::columns::{Column, Tables, Values};
use crate::parquet_file::{Cells, Filled, GROUP, Kind, column_type, properties_of, texts};

/// So many rows are encoded at a time.
const BATCH: usize = 16_384;
/// A dictionary of more octets is none; what follows is written as differences (numbers) or as it is.
const LARGEST_DICTIONARY: usize = 256 << 10;

/// The tables of a run, each a file `NAME.parquet` in the run's folder.
pub struct TableFiles(BTreeMap<&'static str, TableFile>);

impl TableFiles {
    /// Begins the files of the tables with these names. Each gets `metadata`, texts by name.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(folder: &Path, names: &[&str], metadata: &[(String, String)]) -> io::Result<TableFiles> {
        let mut files = BTreeMap::new();
        for (name, columns) in Tables::default().into_columns() {
            if names.contains(&name) {
                let out = fs::File::create(folder.join(name).with_extension("parquet"))?;
                files.insert(name, TableFile::begin(out, &columns, metadata).map_err(as_io)?);
            }
        }
        Ok(TableFiles(files))
    }

    /// Takes rows out of `tables` where there are enough of them.
    ///
    /// # Errors
    /// Those of the file system. What was taken is lost then.
    pub fn take(&mut self, tables: &mut Tables) -> io::Result<()> {
        self.append(tables.take_rows(BATCH))
    }

    /// Takes the rest, and ends the files.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn finish(mut self, tables: Tables) -> io::Result<()> {
        self.append(tables.into_columns())?;
        self.0.into_values().try_for_each(|file| file.finish().map_err(as_io))
    }

    fn append(&mut self, rows: impl IntoIterator<Item = (&'static str, Vec<Column>)>) -> io::Result<()> {
        for (name, columns) in rows {
            if let Some(file) = self.0.get_mut(name) {
                file.append(columns).map_err(as_io)?;
            }
        }
        Ok(())
    }
}

/// A full disk is what it is, with its number.
pub(crate) fn as_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    }
}

/// One table.
struct TableFile {
    writer: SerializedFileWriter<fs::File>,
    columns: Vec<ColumnDescPtr>,
    /// Those of the group that is being filled; none before its first row.
    open: Vec<Growing>,
    rows: usize,
    plain: WriterPropertiesPtr,
    dictionary: WriterPropertiesPtr,
}

/// A column of the group that is being filled.
struct Growing {
    writer: ColumnWriter<'static>,
    pages: Pages,
}

impl TableFile {
    fn begin(out: fs::File, columns: &[Column], metadata: &[(String, String)]) -> Result<TableFile> {
        let fields = columns.iter().map(|column| column_type(column.name, kind(&column.values)));
        let fields = fields.collect::<Result<Vec<_>>>()?;
        let schema = Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?);
        let descriptor = SchemaDescriptor::new(Arc::clone(&schema));
        let metadata = metadata.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
        let of_file = properties().set_key_value_metadata(Some(metadata.collect())).build();
        let of_columns = |dictionary| Arc::new(properties().set_dictionary_enabled(dictionary).build());
        Ok(TableFile {
            writer: SerializedFileWriter::new(out, schema, Arc::new(of_file))?,
            columns: descriptor.columns().to_vec(),
            open: Vec::new(),
            rows: 0,
            plain: of_columns(false),
            dictionary: of_columns(true),
        })
    }

    fn append(&mut self, mut columns: Vec<Column>) -> Result<()> {
        let rows = columns.first().map_or(0, |column| column.values.len());
        if rows == 0 {
            return Ok(());
        }
        for (number, column) in columns.iter_mut().enumerate() {
            let filled = filled(column);
            if self.open.len() == number {
                let (descriptor, pages) = (Arc::clone(&self.columns[number]), Pages::default());
                let properties = if filled.cells.repeat() { &self.dictionary } else { &self.plain };
                let writer = get_column_writer(descriptor, Arc::clone(properties), Box::new(pages.clone()));
                self.open.push(Growing { writer, pages });
            }
            filled.write(&mut self.open[number].writer, 0, rows)?;
        }
        self.rows += rows;
        if self.rows >= GROUP { self.end_group() } else { Ok(()) }
    }

    fn end_group(&mut self) -> Result<()> {
        if self.open.is_empty() {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for Growing { writer, pages } in self.open.drain(..) {
            let closed = writer.close()?;
            let octets = Bytes::from(take(&mut *pages.octets()));
            group.append_column(&octets, closed)?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        self.end_group()?;
        self.writer.close().map(drop)
    }
}

/// In this version integers without a dictionary are differences: what counts something takes few octets.
fn properties() -> WriterPropertiesBuilder {
    properties_of(WriterVersion::PARQUET_2_0)
        .set_dictionary_page_size_limit(LARGEST_DICTIONARY)
        // So that readers find a time without reading all groups.
        .set_column_statistics_enabled(ColumnPath::from("t_ns"), EnabledStatistics::Chunk)
}

const fn kind(values: &Values) -> Kind {
    match values {
        Values::I64(_) => Kind::I64,
        Values::U64(_) => Kind::U64,
        Values::U32(_) => Kind::U32,
        Values::U16(_) => Kind::U16,
        Values::U8(_) => Kind::U8,
        Values::F64(_) => Kind::F64,
        Values::Text(_) | Values::Category { .. } => Kind::Text,
    }
}

/// The column's cells; its numbers go out of it.
pub(crate) fn filled(column: &mut Column) -> Filled {
    let cells = match &mut column.values {
        Values::I64(v) => Cells::I64(take(v)),
        Values::U64(v) => Cells::U64(take(v)),
        Values::U32(v) => Cells::U32(take(v)),
        Values::U16(v) => Cells::U16(take(v)),
        Values::U8(v) => Cells::U8(take(v)),
        Values::F64(v) => Cells::F64(take(v)),
        Values::Text(v) => texts(v.iter().map(String::as_str)),
        Values::Category { codes, names } => {
            let name = |code: &u16| names.get(usize::from(*code)).map_or("", String::as_str);
            texts(codes.iter().map(name))
        }
    };
    Filled { cells, valid: column.valid.take() }
}

/// The pages of a column in the group that is being filled, one behind the other.
#[derive(Clone, Default)]
struct Pages(Arc<Mutex<Vec<u8>>>);

impl Pages {
    fn octets(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PageWriter for Pages {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec> {
        let mut octets = self.octets();
        let begin = octets.len() as u64;
        let mut sink = TrackedWrite::new(&mut *octets);
        let mut written = SerializedPageWriter::new(&mut sink).write_page(page)?;
        sink.flush()?;
        written.offset += begin;
        Ok(written)
    }

    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::record::{Event, PacketFacts, PageRecord, PointKind, Record};
    use airloom_base::{Direction, Instant, Outbox, Point};
    use airloom_testkit::Folder;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;

    fn outbox() -> (Outbox, Point) {
        let mut outbox = Outbox::default();
        let point = outbox.add_point("a.wire.ip".to_owned(), PointKind::Ip);
        outbox.ask(|_| (true, false));
        (outbox, point)
    }

    fn packet(outbox: &mut Outbox, point: Point, number: u64) {
        let facts = PacketFacts {
            packet: number,
            len: 1500,
            seq: number.is_multiple_of(2).then_some(number * 1448 % 0xFFFF_FFFF),
            reason: number.is_multiple_of(1000).then_some("queue full"),
            ..PacketFacts::bare("tcp", Event::Transmit, Direction::Downlink)
        };
        outbox.packet(Instant::from_nanos(number * 120_000), point, || facts, |_| ());
    }

    #[test]
    fn rows_of_several_groups_come_back_in_their_order_and_few_of_them_are_ever_in_memory() {
        const ROWS: u64 = 1_100_000;
        let folder = Folder::new("growing-groups");
        let metadata = [("airloom.seed".to_owned(), "7".to_owned())];
        let mut files = TableFiles::create(&folder.0, &["packets", "flows"], &metadata).unwrap();
        let (mut outbox, point) = outbox();
        let mut tables = Tables::default();
        let (mut rows_kept, mut octets_kept) = (0, 0);
        for number in 0..ROWS {
            packet(&mut outbox, point, number);
            if number % 5000 == 0 || number == ROWS - 1 {
                tables.take(&outbox);
                outbox.clear();
                files.take(&mut tables).unwrap();
                octets_kept =
                    octets_kept.max(files.0["packets"].open.iter().map(|c| c.pages.octets().len()).sum());
                rows_kept = rows_kept.max(files.0["packets"].rows);
            }
        }
        files.finish(tables).unwrap();
        assert!(rows_kept < GROUP);
        assert!(octets_kept < 10 * GROUP, "{octets_kept}");

        let reader =
            SerializedFileReader::new(fs::File::open(folder.0.join("packets.parquet")).unwrap()).unwrap();
        let described = reader.metadata();
        assert_eq!((described.num_row_groups(), described.file_metadata().num_rows()), (2, ROWS as i64));
        let said = described.file_metadata().key_value_metadata().unwrap();
        assert_eq!((said[0].key.as_str(), said[0].value.as_deref()), ("airloom.seed", Some("7")));
        let mut number = 0;
        for row in reader.get_row_iter(None).unwrap() {
            let row = row.unwrap();
            assert_eq!(row.get_long(0).unwrap(), number as i64 * 120_000);
            assert_eq!(row.get_string(1).unwrap(), "a.wire.ip");
            assert_eq!(row.get_ulong(4).unwrap(), number);
            assert_eq!(
                row.get_ulong(8).ok(),
                number.is_multiple_of(2).then_some(number * 1448 % 0xFFFF_FFFF)
            );
            assert_eq!(
                row.get_string(11).ok().map(String::as_str),
                number.is_multiple_of(1000).then_some("queue full")
            );
            number += 1;
        }
        assert_eq!(number, ROWS);
    }

    #[test]
    fn a_table_without_rows_is_a_file_with_all_columns_and_one_that_was_not_asked_for_is_none() {
        let folder = Folder::new("growing-empty");
        let files = TableFiles::create(&folder.0, &["states"], &[]).unwrap();
        files.finish(Tables::default()).unwrap();
        let found: Vec<_> =
            fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(found, ["states.parquet"]);
        let reader =
            SerializedFileReader::new(fs::File::open(folder.0.join("states.parquet")).unwrap()).unwrap();
        let columns = reader.metadata().file_metadata().schema_descr().num_columns();
        assert_eq!((reader.metadata().num_row_groups(), columns), (0, 10));
    }

    #[test]
    fn texts_that_differ_from_row_to_row_are_kept_as_they_are() {
        let folder = Folder::new("growing-texts");
        let files = TableFiles::create(&folder.0, &["pages"], &[]).unwrap();
        let (mut outbox, _) = outbox();
        for page in 0..300 {
            outbox.push(Record::Page(PageRecord {
                page,
                url: format!("http://origin/{page}"),
                client: "mobile".to_owned(),
                start: Instant::ZERO,
                load: None,
                first_object: None,
                objects: 1,
                bytes: 2,
                connections: 3,
                failed: 0,
            }));
        }
        let mut tables = Tables::default();
        tables.take(&outbox);
        files.finish(tables).unwrap();
        let reader =
            SerializedFileReader::new(fs::File::open(folder.0.join("pages.parquet")).unwrap()).unwrap();
        let rows = reader.get_row_iter(None).unwrap().map(|row| row.unwrap().get_string(1).unwrap().clone());
        assert!(rows.eq((0..300).map(|page| format!("http://origin/{page}"))));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error_with_its_number() {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let columns = Tables::default().into_columns().remove("packets").unwrap();
        let mut file = TableFile::begin(full, &columns, &[]).unwrap();
        let (mut outbox, point) = outbox();
        (0..1000).for_each(|number| packet(&mut outbox, point, number));
        let mut tables = Tables::default();
        tables.take(&outbox);
        file.append(tables.take_rows(1).remove(0).1).unwrap();
        let error = as_io(file.finish().unwrap_err());
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(error.raw_os_error(), Some(28));
    }
}

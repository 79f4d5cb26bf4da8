//! Tables as Parquet files, without a library.
//!
//! A sweep of thousands of runs is made in less time than a table library takes to be imported. What a table of a sweep
//! needs is little: flat columns, each in one page of a row group, with a dictionary where values repeat. Most columns of
//! a sweep hold few different values, so that dictionaries make the files as small as compression would.
//!
//! Source: the format's README, Encodings.md and parquet.thrift of Apache Parquet (version 1 of pages).

mod levels;
mod thrift;

use airloom_base::lookup::Table;

use thrift::{Kind, Writer};

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

impl Cells<'_> {
    /// Number of rows.
    pub fn len(&self) -> usize {
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
    /// No rows?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
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

/// Rows of a group.
const GROUP: usize = 1_000_000;

const MAGIC: &[u8] = b"PAR1";

/// Numbers of parquet.thrift.
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const RLE_DICTIONARY: i32 = 8;
const UNCOMPRESSED: i32 = 0;
const OPTIONAL: i32 = 1;

/// The octets of a file with these columns, which have the same number of rows.
pub fn file(fields: &[Field<'_>]) -> Vec<u8> {
    let rows = fields.first().map_or(0, |f| f.cells.len());
    let mut octets = MAGIC.to_vec();
    let mut groups = Vec::new();
    for begin in (0..rows).step_by(GROUP) {
        let end = rows.min(begin + GROUP);
        let chunks: Vec<Chunk> = fields.iter().map(|f| chunk(f, begin, end, &mut octets)).collect();
        groups.push((end - begin, chunks));
    }
    let metadata = Writer::whole(|w| {
        w.i32(1, 1);
        w.list(2, Kind::Struct, fields.len() + 1);
        w.element(|root| {
            root.text(4, "schema");
            root.i32(5, fields.len() as i32);
        });
        fields.iter().for_each(|f| w.element(|w| schema(w, f)));
        w.i64(3, rows);
        w.list(4, Kind::Struct, groups.len());
        for (height, chunks) in &groups {
            w.element(|w| group(w, fields, *height, chunks));
        }
        w.text(6, concat!("airloom version ", env!("CARGO_PKG_VERSION")));
    });
    octets.extend_from_slice(&metadata);
    octets.extend_from_slice(&(metadata.len() as u32).to_le_bytes());
    octets.extend_from_slice(MAGIC);
    octets
}

/// What the file's end says of one column of one group of rows.
struct Chunk {
    rows: usize,
    length: usize,
    dictionary: Option<usize>,
    data: usize,
}

/// A `SchemaElement`. All columns may have empty rows: a column is the same in every file, whatever is in it.
fn schema(w: &mut Writer, field: &Field<'_>) {
    w.i32(1, physical(&field.cells));
    w.i32(3, OPTIONAL);
    w.text(4, field.name);
    // ConvertedType for older readers, LogicalType for today's.
    let (converted, bits) = match field.cells {
        Cells::U8(_) => (11, 8),
        Cells::U16(_) => (12, 16),
        Cells::U32(_) => (13, 32),
        Cells::U64(_) => (14, 64),
        Cells::Text(_) => {
            w.i32(6, 0);
            return w.structure(10, |logical| logical.structure(1, |_| {}));
        }
        Cells::I64(_) | Cells::F64(_) => return,
    };
    w.i32(6, converted);
    w.structure(10, |logical| {
        logical.structure(10, |integer| {
            integer.byte(1, bits);
            integer.bool(2, false);
        });
    });
}

/// `Type`.
fn physical(cells: &Cells<'_>) -> i32 {
    match cells {
        Cells::U32(_) | Cells::U16(_) | Cells::U8(_) => 1,
        Cells::I64(_) | Cells::U64(_) => 2,
        Cells::F64(_) => 5,
        Cells::Text(_) => 6,
    }
}

/// A `RowGroup`.
fn group(w: &mut Writer, fields: &[Field<'_>], rows: usize, chunks: &[Chunk]) {
    w.list(1, Kind::Struct, chunks.len());
    for (field, chunk) in fields.iter().zip(chunks) {
        w.element(|column| {
            column.i64(2, 0);
            column.structure(3, |w| {
                w.i32(1, physical(&field.cells));
                w.list(2, Kind::I32, 3);
                [PLAIN, RLE, RLE_DICTIONARY].into_iter().for_each(|encoding| w.i32_element(encoding));
                w.list(3, Kind::Binary, 1);
                w.text_element(field.name);
                w.i32(4, UNCOMPRESSED);
                w.i64(5, chunk.rows);
                w.i64(6, chunk.length);
                w.i64(7, chunk.length);
                w.i64(9, chunk.data);
                if let Some(at) = chunk.dictionary {
                    w.i64(11, at);
                }
            });
        });
    }
    w.i64(2, chunks.iter().map(|c| c.length).sum());
    w.i64(3, rows);
}

/// Appends the pages of a column's rows from `begin` to `end`.
fn chunk(field: &Field<'_>, begin: usize, end: usize, octets: &mut Vec<u8>) -> Chunk {
    let valid = field.valid.as_ref().map(|v| &v[begin..end]);
    let there = |row: &usize| valid.is_none_or(|v| v[*row]);
    let encoded = match &field.cells {
        Cells::I64(v) => numbers((0..end - begin).filter(there).map(|r| v[begin + r] as u64), 8),
        Cells::U64(v) => numbers((0..end - begin).filter(there).map(|r| v[begin + r]), 8),
        Cells::U32(v) => numbers((0..end - begin).filter(there).map(|r| u64::from(v[begin + r])), 4),
        Cells::U16(v) => numbers((0..end - begin).filter(there).map(|r| u64::from(v[begin + r])), 4),
        Cells::U8(v) => numbers((0..end - begin).filter(there).map(|r| u64::from(v[begin + r])), 4),
        Cells::F64(v) => numbers((0..end - begin).filter(there).map(|r| v[begin + r].to_bits()), 8),
        Cells::Text(v) => texts((0..end - begin).filter(there).map(|r| v[begin + r])),
    };
    let at = octets.len();
    let dictionary = encoded.dictionary.map(|(count, page)| {
        let header = Writer::whole(|w| {
            w.i32(1, 2);
            w.i32(2, page.len() as i32);
            w.i32(3, page.len() as i32);
            w.structure(7, |w| {
                w.i32(1, count as i32);
                w.i32(2, PLAIN);
            });
        });
        octets.extend_from_slice(&header);
        octets.extend_from_slice(&page);
        at
    });
    let data = octets.len();
    let mut page = vec![0; 4];
    match valid {
        Some(valid) => {
            let levels: Vec<u32> = valid.iter().map(|v| u32::from(*v)).collect();
            levels::hybrid(&mut page, &levels, 1);
        }
        None => {
            thrift::varint(&mut page, (end - begin) as u64 * 2);
            page.push(1);
        }
    }
    let length = page.len() as u32 - 4;
    page[..4].copy_from_slice(&length.to_le_bytes());
    page.extend_from_slice(&encoded.data);
    let header = Writer::whole(|w| {
        w.i32(1, 0);
        w.i32(2, page.len() as i32);
        w.i32(3, page.len() as i32);
        w.structure(5, |w| {
            w.i32(1, (end - begin) as i32);
            w.i32(2, if dictionary.is_some() { RLE_DICTIONARY } else { PLAIN });
            w.i32(3, RLE);
            w.i32(4, RLE);
        });
    });
    octets.extend_from_slice(&header);
    octets.extend_from_slice(&page);
    Chunk { rows: end - begin, length: octets.len() - at, dictionary, data }
}

/// The values of a column: as they are, or as indices into a dictionary (number of entries, and its page).
struct Encoded {
    dictionary: Option<(usize, Vec<u8>)>,
    data: Vec<u8>,
}

/// Numbers of `width` octets.
fn numbers(values: impl Iterator<Item = u64>, width: usize) -> Encoded {
    let values: Vec<u64> = values.collect();
    let plain = |values: &[u64]| -> Vec<u8> {
        values.iter().flat_map(|v| v.to_le_bytes().into_iter().take(width)).collect()
    };
    encoded(values, plain)
}

fn texts<'a>(values: impl Iterator<Item = &'a str>) -> Encoded {
    encoded(values.collect(), |values: &[&str]| {
        let mut octets = Vec::new();
        for value in values {
            octets.extend_from_slice(&(value.len() as u32).to_le_bytes());
            octets.extend_from_slice(value.as_bytes());
        }
        octets
    })
}

/// With a dictionary if at least every second value has been there before.
fn encoded<T: Copy + Eq + std::hash::Hash>(values: Vec<T>, plain: impl Fn(&[T]) -> Vec<u8>) -> Encoded {
    let mut entries = Vec::new();
    let mut indices = Vec::with_capacity(values.len());
    let mut places: Table<T, u32> = Table::default();
    let mut last = None;
    for value in &values {
        let index = match last {
            Some((same, index)) if same == *value => index,
            _ => match places.get(value) {
                Some(index) => *index,
                None if 2 * entries.len() > values.len() => {
                    return Encoded { dictionary: None, data: plain(&values) };
                }
                None => {
                    let index = entries.len() as u32;
                    entries.push(*value);
                    places.insert(*value, index);
                    index
                }
            },
        };
        last = Some((*value, index));
        indices.push(index);
    }
    let width = levels::bits(entries.len().saturating_sub(1));
    let mut data = vec![width as u8];
    levels::hybrid(&mut data, &indices, width);
    Encoded { dictionary: Some((entries.len(), plain(&entries))), data }
}

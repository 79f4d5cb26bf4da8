//! Header blocks (RFC 7541), with bounds on what a peer can make us keep.
//!
//! `httlib-hpack` writes them and has the table. Reading is ours, of the parts that QPACK is read with: the library's own reader lets
//! malformed blocks pass, and `loona-hpack`, which does not, looks for the Huffman code of each symbol in a hash table for each length.

use bytes::Bytes;
use httlib_hpack::Encoder;
use httlib_hpack::table::Table;

use crate::http::fields::{ENTRY, Line, is_worth_keeping};
use crate::http::huffman;
use crate::http::integer::{Malformed, Reader};

/// Octets of the table that we write blocks for, if the peer allows for as many.
const TABLE: u32 = 4096;

/// Writes the header blocks of one direction of a connection.
pub struct BlockWriter {
    encoder: Encoder<'static>,
    /// Octets of the table as it was said last.
    said: u32,
    /// What it was to be at least and is to be at last, where that was not said yet.
    news: Option<(u32, u32)>,
}

impl Default for BlockWriter {
    fn default() -> Self {
        BlockWriter { encoder: Encoder::with_dynamic_size(TABLE), said: TABLE, news: None }
    }
}

impl BlockWriter {
    /// The peer's table may have so many octets from now on.
    pub fn allow(&mut self, octets: u32) {
        let size = octets.min(TABLE);
        let before = self.news.map_or(self.said, |(_, last)| last);
        if size != before {
            //= RFC 7541 (4.2): of several changes between two blocks the smallest is told, and the last one.
            self.news = Some((self.news.map_or(size, |(least, _)| least.min(size)), size));
        }
    }

    /// The block of these lines. Names are in lower case already.
    pub fn write<'a>(&mut self, lines: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Vec<u8> {
        let mut block = Vec::with_capacity(64);
        if let Some((least, last)) = self.news.take() {
            self.said = last;
            for size in [Some(least).filter(|least| *least < last), Some(last)].into_iter().flatten() {
                // Only the width of an integer could be refused, and all of ours are valid.
                let _ = self.encoder.update_max_dynamic_size(size, &mut block);
            }
        }
        for (name, value) in lines {
            let index =
                if is_worth_keeping(name, value, TABLE as usize) { Encoder::WITH_INDEXING } else { 0 };
            let huffman = if huffman::shortens(value).is_some() { Encoder::HUFFMAN_VALUE } else { 0 };
            let how = Encoder::BEST_FORMAT | Encoder::HUFFMAN_NAME | huffman | index;
            let _ = self.encoder.encode((name.to_vec(), value.to_vec(), how), &mut block);
        }
        block
    }
}

/// What became of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// Its lines.
    Lines(Vec<Line>),
    /// There are more of them than we take. The table is in order: the connection can go on.
    TooLarge,
    /// It is malformed: the table is lost, and with it the connection.
    Malformed,
}

/// Reads the header blocks of one direction of a connection.
pub struct BlockReader {
    table: Table<'static>,
    /// Octets that the table may have.
    most_table: u32,
    most: usize,
}

impl BlockReader {
    /// A reader whose table has at most `table` octets, and which takes lists of at most `most` octets.
    pub fn new(table: u32, most: usize) -> Self {
        BlockReader { table: Table::with_dynamic_size(table.min(TABLE)), most_table: table, most }
    }

    /// The lines of a whole block.
    pub fn read(&mut self, block: &[u8]) -> Block {
        match self.lines(block) {
            Err(Malformed) => Block::Malformed,
            Ok(None) => Block::TooLarge,
            Ok(Some(lines)) => Block::Lines(lines),
        }
    }

    fn lines(&mut self, block: &[u8]) -> Result<Option<Vec<Line>>, Malformed> {
        let (mut lines, mut octets) = (Vec::new(), 0_usize);
        let mut reader = Reader { rest: block };
        while let Some(first) = reader.peek() {
            let index = match first {
                0x80.. => reader.integer(7)?,
                0x40.. => reader.integer(6)?,
                0x20.. => {
                    let size = reader.integer(5)?;
                    //= RFC 7541 (4.2, 6.3): sizes change in front of the first line, and to no more than we have allowed.
                    if octets > 0 || size > u64::from(self.most_table) {
                        return Err(Malformed);
                    }
                    self.table.update_max_dynamic_size(size as u32);
                    continue;
                }
                _ => reader.integer(4)?,
            };
            let known = u32::try_from(index).ok().and_then(|index| self.table.get(index));
            // One octet of a block can stand for a line of kilobytes: what goes beyond the limit is not copied.
            let mut keep = |name: &[u8], value: &[u8]| {
                octets = octets.saturating_add(name.len() + value.len() + ENTRY);
                if octets <= self.most {
                    lines.push((Bytes::copy_from_slice(name), Bytes::copy_from_slice(value)));
                }
            };
            if first >= 0x80 {
                let (name, value) = known.ok_or(Malformed)?;
                keep(name, value);
                continue;
            }
            let name = match index {
                0 => reader.string(7, block.len())?,
                _ => known.ok_or(Malformed)?.0.to_vec(),
            };
            let value = reader.string(7, block.len())?;
            keep(&name, &value);
            if first >= 0x40 {
                self.table.insert(name, value);
            }
        }
        Ok((octets <= self.most).then_some(lines))
    }
}

#[cfg(test)]
mod tests {
    use airloom_testkit::cases;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn write(writer: &mut BlockWriter, lines: &[Line]) -> Vec<u8> {
        writer.write(lines.iter().map(|(name, value)| (&name[..], &value[..])))
    }

    fn line(name: &str, value: &str) -> Line {
        (name.to_owned().into(), value.to_owned().into())
    }

    // RFC 7541, C.4: three requests with Huffman codes.
    #[test]
    fn the_requests_of_the_standard_are_read() {
        let blocks: [&[u8]; 3] = [
            b"\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",
            b"\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf",
            b"\x82\x87\x85\xbf\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x89\x25\xa8\x49\xe9\x5b\xb8\xe8\xb4\xbf",
        ];
        let mut reader = BlockReader::new(4096, 16_384);
        let read: Vec<Block> = blocks.iter().map(|block| reader.read(block)).collect();
        let common = |scheme, path| {
            let lines = [(":method", "GET"), (":scheme", scheme), (":path", path)];
            let mut lines: Vec<Line> = lines.iter().map(|(n, v)| line(n, v)).collect();
            lines.push(line(":authority", "www.example.com"));
            lines
        };
        let with = |mut lines: Vec<Line>, more| {
            lines.push(more);
            Block::Lines(lines)
        };
        assert_eq!(read[0], Block::Lines(common("http", "/")));
        assert_eq!(read[1], with(common("http", "/"), line("cache-control", "no-cache")));
        assert_eq!(read[2], with(common("https", "/index.html"), line("custom-key", "custom-value")));
    }

    #[test]
    fn lines_that_come_again_are_an_octet_each() {
        let mut writer = BlockWriter::default();
        let lines = [
            line(":method", "GET"),
            line(":scheme", "http"),
            line(":authority", "origin"),
            line(":path", "/a.png"),
            line("user-agent", "airloom"),
            line("accept", "*/*"),
        ];
        let (first, second) = (write(&mut writer, &lines), write(&mut writer, &lines));
        assert!(first.len() > 20, "{}", first.len());
        // The path is a literal each time: an index, a length, and its characters in Huffman codes.
        assert_eq!(second.len(), 5 + 2 + 5);
        let mut reader = BlockReader::new(4096, 16_384);
        assert_eq!(reader.read(&first), Block::Lines(lines.to_vec()));
        assert_eq!(reader.read(&second), Block::Lines(lines.to_vec()));
    }

    #[test]
    fn the_least_and_the_last_size_are_told_and_kept_to() {
        let (mut writer, mut reader) = (BlockWriter::default(), BlockReader::new(4096, 16_384));
        let lines = [line("x", "y")];
        reader.read(&write(&mut writer, &lines));
        for size in [4096, 0, 100_000] {
            writer.allow(size);
        }
        let block = write(&mut writer, &lines);
        // Down to nothing, and up to ours: the entry is gone and comes again as a literal.
        assert_eq!(block[..4], [0x20, 0x3f, 0xe1, 0x1f]);
        assert_eq!(reader.read(&block), Block::Lines(lines.to_vec()));
        writer.allow(0);
        let block = write(&mut writer, &lines);
        assert_eq!(BlockReader::new(0, 16_384).read(&block), Block::Lines(lines.to_vec()));
    }

    #[test]
    fn tables_and_lists_stay_within_their_bounds() {
        let mut reader = BlockReader::new(4096, 1000);
        // A table size above what was allowed.
        assert_eq!(BlockReader::new(100, 1000).read(&[0x3f, 0xe1, 0x1f, 0x82]), Block::Malformed);
        // An entry of some 400 octets, and then an octet for each time that it is meant.
        let mut bomb = vec![0x40, 1, b'a', 0x7f, 0xf0, 0x01];
        bomb.extend(vec![b'v'; 0x7f + 0xf0]);
        bomb.extend(vec![0xbe; 10_000]);
        assert_eq!(reader.read(&bomb), Block::TooLarge);
        assert_eq!(reader.read(&[0x82]), Block::Lines(vec![line(":method", "GET")]), "the table is in order");
        assert_eq!(reader.read(&[0x80]), Block::Malformed);
        // A size behind a line, an index that nothing has, a string that is longer than its block.
        for wrong in [&[0x82, 0x20][..], &[0x82, 0xc0], &[0x7f, 0x00], &[0x00, 0x05, b'a']] {
            assert_eq!(BlockReader::new(4096, 1000).read(wrong), Block::Malformed, "{wrong:x?}");
        }
        assert_eq!(reader.read(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), Block::Malformed);
    }

    proptest! {
        #![proptest_config(cases(256))]
        #[test]
        fn what_is_written_is_read(
            blocks in vec(vec(("[a-z][a-z0-9-]{0,20}", vec(any::<u8>(), 0..60)), 0..8), 1..12),
            sizes in vec(0_u32..6000, 12),
        ) {
            let (mut writer, mut reader) = (BlockWriter::default(), BlockReader::new(4096, 1 << 20));
            for (lines, size) in blocks.iter().zip(sizes) {
                if size < 5000 {
                    writer.allow(size);
                }
                let lines: Vec<Line> = lines.iter().map(|(n, v)| (n.clone().into(), v.clone().into())).collect();
                // A block may not end with a change of size, so an empty one is none.
                if !lines.is_empty() {
                    prop_assert_eq!(reader.read(&write(&mut writer, &lines)), Block::Lines(lines));
                }
            }
        }

        #[test]
        fn no_block_makes_the_reader_fail(octets in vec(any::<u8>(), 0..300)) {
            let mut reader = BlockReader::new(4096, 16_384);
            reader.read(&octets);
            reader.read(&octets);
        }
    }
}

//! Sections and new entries, read; what the encoder has to know, written.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::table::{self, Table};
use super::{Malformed, static_table};
use crate::http::fields::Line;
use crate::http::integer::{Fault, Reader, emit};

/// What became of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Section {
    /// Its lines.
    Lines(Vec<Line>),
    /// There are more of them than we take.
    TooLarge,
    /// Entries that it means have not come: read it again when its stream is [`ready`](Decoder::ready).
    Blocked,
}

/// Reads the sections of one direction of a connection.
pub struct Decoder {
    table: Table,
    /// Octets that the table may have.
    most_table: u64,
    /// Streams that may wait for entries.
    may_block: u64,
    /// Octets of the largest list that is taken.
    most: usize,
    /// Streams that wait, and for how many entries.
    blocked: BTreeMap<u64, u64>,
    /// Entries that the encoder knows us to have.
    told: u64,
    /// What waits for the decoder stream.
    instructions: Vec<u8>,
    /// An instruction of the encoder that is not whole.
    pending: Vec<u8>,
}

impl Decoder {
    /// One whose table has at most `table` octets, of which at most `blocked` streams wait for entries, and that takes lists of at
    /// most `most` octets.
    pub fn new(table: u64, blocked: u64, most: usize) -> Self {
        Decoder {
            table: Table::default(),
            most_table: table,
            may_block: blocked,
            most,
            blocked: BTreeMap::new(),
            told: 0,
            instructions: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// Is there anything to be sent on the decoder stream?
    pub fn has_answers(&self) -> bool {
        self.table.inserted() > self.told || !self.instructions.is_empty()
    }

    /// Octets that wait for the decoder stream; entries that have come are one number, whatever that is.
    pub fn owes(&self) -> usize {
        self.instructions.len()
    }

    /// What is to be sent on the decoder stream.
    pub fn instructions(&mut self) -> Vec<u8> {
        let more = self.table.inserted() - self.told;
        if more > 0 {
            //= RFC 9204 (4.4.3): entries that no acknowledged section has told of.
            emit(more, 6, 0x00, &mut self.instructions);
            self.told += more;
        }
        std::mem::take(&mut self.instructions)
    }

    /// Octets of the encoder stream.
    ///
    /// # Errors
    /// [`Malformed`]: they are no instructions, or such that nobody may give (QPACK_ENCODER_STREAM_ERROR).
    pub fn feed(&mut self, octets: &[u8]) -> Result<(), Malformed> {
        self.pending.extend_from_slice(octets);
        let pending = std::mem::take(&mut self.pending);
        let mut reader = Reader { rest: &pending };
        while reader.peek().is_some() {
            let before = reader.rest;
            match self.instruction(&mut reader) {
                Ok(()) => {}
                Err(Fault::Short) => {
                    self.pending = before.to_vec();
                    break;
                }
                Err(Fault::Malformed) => return Err(Malformed),
            }
        }
        Ok(())
    }

    fn instruction(&mut self, reader: &mut Reader) -> Result<(), Fault> {
        let first = reader.peek().ok_or(Fault::Short)?;
        // A symbol has 30 bits at most: longer strings make no entry that fits, and need not be waited for.
        let most = self.table.capacity().saturating_mul(4);
        let inserted = self.table.inserted();
        let relative = |index: u64| inserted.checked_sub(index + 1).ok_or(Fault::Malformed);
        let line = match first >> 5 {
            0b100..=0b111 => {
                let index = reader.integer(6)?;
                let name: Bytes = if first & 0x40 != 0 {
                    static_table::get(index).ok_or(Fault::Malformed)?.0.into()
                } else {
                    self.table.get(relative(index)?).ok_or(Fault::Malformed)?.0.clone()
                };
                (name, reader.string(7, most)?.into())
            }
            0b010 | 0b011 => {
                let name: Bytes = reader.string(5, most)?.into();
                (name, reader.string(7, most)?.into())
            }
            0b001 => {
                //= RFC 9204 (4.3.1): a capacity above what we have allowed is an error.
                let capacity = reader.integer(5)?;
                if capacity > self.most_table {
                    return Err(Fault::Malformed);
                }
                self.table.resize(capacity as usize);
                return Ok(());
            }
            _ => {
                let index = reader.integer(5)?;
                self.table.get(relative(index)?).ok_or(Fault::Malformed)?.clone()
            }
        };
        if self.table.insert(line) { Ok(()) } else { Err(Fault::Malformed) }
    }

    /// The lines of a whole section of a stream.
    ///
    /// # Errors
    /// [`Malformed`]: it cannot be read (QPACK_DECOMPRESSION_FAILED), and with it the connection is lost.
    pub fn read(&mut self, stream: u64, block: &[u8]) -> Result<Section, Malformed> {
        let mut reader = Reader { rest: block };
        let required = self.required(reader.integer(8)?)?;
        let is_behind = reader.peek().is_some_and(|first| first & 0x80 != 0);
        let delta = reader.integer(7)?;
        //= RFC 9204 (4.5.1.2): the base lies before or behind the required insert count.
        let base = if is_behind { required.checked_sub(delta + 1) } else { Some(required + delta) };
        let base = base.ok_or(Malformed)?;
        if required > self.table.inserted() {
            self.blocked.insert(stream, required);
            //= RFC 9204 (2.1.2): more blocked streams than we have allowed are an error.
            let within = self.blocked.len() as u64 <= self.may_block;
            return if within { Ok(Section::Blocked) } else { Err(Malformed) };
        }
        let (mut lines, mut octets) = (Vec::with_capacity(16), 0_usize);
        while reader.peek().is_some() {
            let (name, value) = self.line(&mut reader, required, base)?;
            octets = octets.saturating_add(table::size(name.len(), value.len()));
            // One octet of a section can stand for a line of kilobytes: what goes beyond the limit is not kept.
            if octets <= self.most {
                lines.push((name, value));
            }
        }
        if required > 0 {
            //= RFC 9204 (4.4.1): a section that means entries is acknowledged.
            emit(stream, 7, 0x80, &mut self.instructions);
            self.told = self.told.max(required);
        }
        Ok(if octets > self.most { Section::TooLarge } else { Section::Lines(lines) })
    }

    /// The required insert count as it is meant.
    fn required(&self, encoded: u64) -> Result<u64, Malformed> {
        if encoded == 0 {
            return Ok(0);
        }
        //= RFC 9204 (4.5.1.1): it is sent modulo twice the entries there may be.
        let entries = self.most_table / 32;
        let range = 2 * entries;
        if encoded > range {
            return Err(Malformed);
        }
        let most = self.table.inserted() + entries;
        let mut required = most / range * range + encoded - 1;
        if required > most {
            required = required.checked_sub(range).ok_or(Malformed)?;
        }
        if required == 0 { Err(Malformed) } else { Ok(required) }
    }

    fn line(&mut self, reader: &mut Reader, required: u64, base: u64) -> Result<Line, Malformed> {
        let first = reader.peek().ok_or(Malformed)?;
        let most = reader.rest.len();
        //= RFC 9204 (2.2.1): an entry at or behind the required insert count, or one that is gone, is an error.
        let entry = |absolute: Option<u64>| -> Result<&Line, Malformed> {
            let absolute = absolute.filter(|absolute| *absolute < required).ok_or(Malformed)?;
            self.table.get(absolute).ok_or(Malformed)
        };
        let before = |index: u64| base.checked_sub(index + 1);
        let name: Bytes = match first {
            0x80.. => {
                let index = reader.integer(6)?;
                if first & 0x40 != 0 {
                    let (name, value) = static_table::get(index).ok_or(Malformed)?;
                    return Ok((name.into(), value.into()));
                }
                return entry(before(index)).cloned();
            }
            0x40.. => {
                let index = reader.integer(4)?;
                if first & 0x10 != 0 {
                    static_table::get(index).ok_or(Malformed)?.0.into()
                } else {
                    entry(before(index))?.0.clone()
                }
            }
            0x20.. => reader.string(3, most)?.into(),
            0x10.. => {
                let index = reader.integer(4)?;
                return entry(base.checked_add(index)).cloned();
            }
            _ => {
                let index = reader.integer(3)?;
                entry(base.checked_add(index))?.0.clone()
            }
        };
        Ok((name, reader.string(7, most)?.into()))
    }

    /// Streams whose entries have come. They do not count as blocked any more.
    pub fn ready(&mut self) -> Vec<u64> {
        let inserted = self.table.inserted();
        let ready: Vec<u64> =
            self.blocked.iter().filter(|(_, required)| **required <= inserted).map(|(s, _)| *s).collect();
        for stream in &ready {
            self.blocked.remove(stream);
        }
        ready
    }

    /// Sections of this stream will not be read any more.
    pub fn cancel(&mut self, stream: u64) {
        self.blocked.remove(&stream);
        //= RFC 9204 (2.2.2.2): with a table of no octets there is nothing to tell.
        if self.most_table > 0 {
            emit(stream, 6, 0x40, &mut self.instructions);
        }
    }
}

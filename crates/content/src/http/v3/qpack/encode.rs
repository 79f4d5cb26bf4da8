//! Sections and new entries, written; the decoder's answers, read.

#[cfg(test)]
use std::collections::BTreeSet;

use bytes::Bytes;

use super::sent::{Meant, Sent};
use super::table::{self, Table};
use super::{Malformed, static_table};
use crate::http::fields::{Line, is_worth_keeping};
use crate::http::integer::{Fault, Reader, emit, emit_string};

/// How a line is written; dynamic entries by their absolute index.
enum Form {
    Static(u64),
    Dynamic(u64),
    StaticName(u64),
    DynamicName(u64),
    Literal,
}

/// Sections that may wait for their acknowledgement: of more, those that follow mean nothing that would have to be kept for them.
const UNACKNOWLEDGED: usize = 1024;

/// Writes the sections of one direction of a connection.
pub struct Encoder {
    table: Table,
    /// Octets of the table that we would use.
    wish: u64,
    /// Twice the most entries that the peer's table may have.
    range: u64,
    /// Streams that may wait for entries.
    may_block: u64,
    /// Entries that the decoder is known to have.
    known: u64,
    /// Sections that it has not acknowledged.
    sent: Sent,
    /// What waits for the encoder stream.
    instructions: Vec<u8>,
    /// An instruction of the decoder that is not whole.
    pending: Vec<u8>,
}

impl Encoder {
    /// One that would use a table of so many octets, and uses none until [`allow`](Self::allow) is called.
    pub fn new(wish: u32) -> Self {
        Encoder {
            table: Table::default(),
            wish: wish.into(),
            range: 0,
            may_block: 0,
            known: 0,
            sent: Sent::default(),
            instructions: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// The peer's settings: octets of its table, and how many of its streams may wait for entries.
    pub fn allow(&mut self, capacity: u64, blocked: u64) {
        self.range = capacity / 32 * 2;
        self.may_block = blocked;
        let capacity = capacity.min(self.wish);
        if capacity > 0 {
            self.table.resize(capacity as usize);
            //= RFC 9204 (4.3.1): the capacity is 0 until it is said.
            emit(capacity, 5, 0x20, &mut self.instructions);
        }
    }

    /// What is to be sent on the encoder stream, before the section that was written last if streams may not be blocked long.
    pub fn instructions(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.instructions)
    }

    /// The section of these lines on a stream. Names are in lower case already.
    pub fn write(&mut self, stream: u64, lines: &[Line]) -> Vec<u8> {
        let may_block = self.may_block_on(stream);
        let (mut required, mut least) = (0, u64::MAX);
        let mut forms = Vec::with_capacity(lines.len());
        for (name, value) in lines {
            let form = self.form(name, value, may_block, least);
            if let Form::Dynamic(absolute) | Form::DynamicName(absolute) = form {
                required = required.max(absolute + 1);
                least = least.min(absolute);
            }
            forms.push(form);
        }
        let mut block = Vec::with_capacity(512);
        //= RFC 9204 (4.5.1): the required insert count, modulo twice the entries there may be; the base is the same here.
        let encoded = if required == 0 { 0 } else { required % self.range + 1 };
        emit(encoded, 8, 0, &mut block);
        emit(0, 7, 0, &mut block);
        for (form, (name, value)) in forms.iter().zip(lines) {
            match *form {
                Form::Static(index) => emit(index, 6, 0xc0, &mut block),
                Form::Dynamic(absolute) => emit(required - absolute - 1, 6, 0x80, &mut block),
                Form::StaticName(index) => emit(index, 4, 0x50, &mut block),
                Form::DynamicName(absolute) => emit(required - absolute - 1, 4, 0x40, &mut block),
                Form::Literal => emit_string(name, 3, 0x20, &mut block),
            }
            if !matches!(form, Form::Static(_) | Form::Dynamic(_)) {
                emit_string(value, 7, 0, &mut block);
            }
        }
        if required > 0 {
            self.sent.push(stream, Meant { required, least }, self.known);
        }
        block
    }

    /// May a section of this stream mean entries that the decoder may not have yet?
    fn may_block_on(&self, stream: u64) -> bool {
        self.sent.waits(stream) || (self.sent.waiting() as u64) < self.may_block
    }

    fn form(&mut self, name: &[u8], value: &[u8], may_block: bool, least: u64) -> Form {
        let of_static = static_table::find(name, value);
        if let Some((index, true)) = of_static {
            return Form::Static(index);
        }
        if self.sent.count() >= UNACKNOWLEDGED {
            return of_static.map_or(Form::Literal, |(index, _)| Form::StaticName(index));
        }
        let (line, of_name) = self.table.find(name, value);
        let is_there = |absolute: &u64| may_block || *absolute < self.known;
        if let Some(absolute) = line.filter(is_there) {
            return Form::Dynamic(absolute);
        }
        let of_name = of_name.filter(is_there);
        if line.is_none() && self.insert(name, value, of_static, least) && may_block {
            return Form::Dynamic(self.table.inserted() - 1);
        }
        // What is inserted may have driven the entry of the name out.
        let of_name = of_name.filter(|absolute| *absolute >= self.table.oldest());
        match (of_static, of_name) {
            (Some((index, _)), _) => Form::StaticName(index),
            (None, Some(absolute)) => Form::DynamicName(absolute),
            (None, None) => Form::Literal,
        }
    }

    /// Adds an entry if that may help later and harms nothing that was sent.
    fn insert(&mut self, name: &[u8], value: &[u8], of_static: Option<(u64, bool)>, least: u64) -> bool {
        if !is_worth_keeping(name, value, self.table.capacity()) {
            return false;
        }
        //= RFC 9204 (2.1.1): an entry stays while a section means it that was not acknowledged, and until it is itself.
        let before = self.known.min(least).min(self.sent.oldest().unwrap_or(u64::MAX));
        if !self.table.has_room(table::size(name.len(), value.len()), before) {
            return false;
        }
        match of_static {
            Some((index, _)) => emit(index, 6, 0xc0, &mut self.instructions),
            None => emit_string(name, 5, 0x40, &mut self.instructions),
        }
        emit_string(value, 7, 0, &mut self.instructions);
        self.table.insert((Bytes::copy_from_slice(name), Bytes::copy_from_slice(value)))
    }

    /// Octets of the decoder stream.
    ///
    /// # Errors
    /// [`Malformed`]: an answer to nothing, or no instruction (QPACK_DECODER_STREAM_ERROR).
    pub fn feed(&mut self, octets: &[u8]) -> Result<(), Malformed> {
        self.pending.extend_from_slice(octets);
        let pending = std::mem::take(&mut self.pending);
        let mut reader = Reader { rest: &pending };
        while let Some(first) = reader.peek() {
            let before = reader.rest;
            let prefix = if first & 0x80 != 0 { 7 } else { 6 };
            let value = match reader.integer(prefix) {
                Ok(value) => value,
                Err(Fault::Short) => {
                    self.pending = before.to_vec();
                    break;
                }
                Err(Fault::Malformed) => return Err(Malformed),
            };
            match first >> 6 {
                0b10 | 0b11 => self.acknowledged(value)?,
                0b01 => self.sent.cancelled(value),
                _ => {
                    //= RFC 9204 (4.4.3): an increment of 0, or beyond what was inserted, is an error.
                    let known = self.known.checked_add(value).filter(|known| *known <= self.table.inserted());
                    self.known = known.filter(|_| value > 0).ok_or(Malformed)?;
                    self.sent.told(self.known);
                }
            }
        }
        Ok(())
    }

    fn acknowledged(&mut self, stream: u64) -> Result<(), Malformed> {
        //= RFC 9204 (4.4.1): an acknowledgement of a stream without sections that wait for one is an error.
        let required = self.sent.acknowledged(stream).ok_or(Malformed)?;
        self.known = self.known.max(required);
        Ok(())
    }

    /// How many sections are not acknowledged, the oldest entry that one of them means, and the streams that they could block.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, Option<u64>, BTreeSet<u64>) {
        self.sent.counts()
    }

    /// The same, found by looking at each of them.
    #[cfg(test)]
    pub(super) fn counted(&self) -> (usize, Option<u64>, BTreeSet<u64>) {
        self.sent.counted(self.known)
    }
}

//! DATA (RFC 9260, 3.3.1) and I-DATA (RFC 8260, 2.1): a message or a fragment of one.

use airloom_base::Body;
use airloom_wire::Error;
use bytes::Bytes;

use super::kind;
use crate::octets::{CHUNK_HEADER, get16, get32};

/// Octets in front of the user data of DATA, chunk header included.
pub const DATA_FRONT: usize = 16;
/// The same of I-DATA.
pub const I_DATA_FRONT: usize = 20;

const END: u8 = 1;
const BEGIN: u8 = 2;
const UNORDERED: u8 = 4;
const IMMEDIATE: u8 = 8;

/// One chunk of user data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// Its number in the association.
    pub tsn: u32,
    /// The stream.
    pub stream: u16,
    /// Number of the message in its stream: the SSN (16 bits) of DATA, the MID of I-DATA.
    pub sequence: u32,
    /// Payload protocol identifier; I-DATA has it in first fragments only.
    pub ppid: u32,
    /// I-DATA: number of the fragment in its message. DATA counts fragments by their TSN.
    pub fsn: u32,
    /// Delivered without regard to the order of the stream (U).
    pub unordered: bool,
    /// First fragment (B).
    pub begin: bool,
    /// Last fragment (E).
    pub end: bool,
    /// To be acknowledged at once (I).
    pub immediate: bool,
    /// I-DATA.
    pub interleaved: bool,
    /// The user data.
    pub body: Body,
}

impl Data {
    pub(super) fn flags(&self) -> u8 {
        let bit = |set: bool, bit: u8| if set { bit } else { 0 };
        bit(self.end, END)
            | bit(self.begin, BEGIN)
            | bit(self.unordered, UNORDERED)
            | bit(self.immediate, IMMEDIATE)
    }

    /// Octets in front of the user data.
    pub const fn front_len(&self) -> usize {
        if self.interleaved { I_DATA_FRONT } else { DATA_FRONT }
    }

    /// What stands in front of the user data, from the octets behind the chunk header, and how many of these it is. `None`:
    /// no chunk of user data, or cut short.
    pub(crate) fn parse_front(kind: u8, flags: u8, value: &[u8]) -> Option<(Data, usize)> {
        let interleaved = kind == kind::I_DATA;
        if !interleaved && kind != kind::DATA {
            return None;
        }
        let begin = flags & BEGIN != 0;
        let mut data = Data {
            tsn: get32(value, 0).ok()?,
            stream: get16(value, 4).ok()?,
            unordered: flags & UNORDERED != 0,
            begin,
            end: flags & END != 0,
            immediate: flags & IMMEDIATE != 0,
            interleaved,
            ..Data::default()
        };
        if interleaved {
            data.sequence = get32(value, 8).ok()?;
            //= RFC 8260 (2.1): the same field is PPID in the first fragment and FSN, counted from 0, in the others.
            let last = get32(value, 12).ok()?;
            (data.ppid, data.fsn) = if begin { (last, 0) } else { (0, last) };
        } else {
            data.sequence = u32::from(get16(value, 6).ok()?);
            data.ppid = get32(value, 8).ok()?;
        }
        let front = data.front_len() - CHUNK_HEADER;
        Some((data, front))
    }

    pub(super) fn parse(kind: u8, flags: u8, value: &Bytes) -> Result<Data, Error> {
        let (mut data, front) = Data::parse_front(kind, flags, value).ok_or(Error::Truncated)?;
        data.body = Body::Real(value.slice(front..));
        Ok(data)
    }

    /// Writes all but the user data, of which there are `len` octets; returns the octets written.
    pub fn emit_front(&self, len: usize, out: &mut [u8]) -> usize {
        let front = self.front_len();
        out[0] = if self.interleaved { kind::I_DATA } else { kind::DATA };
        out[1] = self.flags();
        out[2..4].copy_from_slice(&((front + len).min(usize::from(u16::MAX)) as u16).to_be_bytes());
        self.emit_fields(&mut out[CHUNK_HEADER..]);
        front
    }

    fn emit_fields(&self, value: &mut [u8]) {
        value[..4].copy_from_slice(&self.tsn.to_be_bytes());
        value[4..6].copy_from_slice(&self.stream.to_be_bytes());
        if self.interleaved {
            value[6..8].fill(0);
            value[8..12].copy_from_slice(&self.sequence.to_be_bytes());
            let last = if self.begin { self.ppid } else { self.fsn };
            value[12..16].copy_from_slice(&last.to_be_bytes());
        } else {
            value[6..8].copy_from_slice(&(self.sequence as u16).to_be_bytes());
            value[8..12].copy_from_slice(&self.ppid.to_be_bytes());
        }
    }

    pub(super) fn emit(&self, value: &mut [u8]) {
        self.emit_fields(value);
        self.body.write(0, &mut value[self.front_len() - CHUNK_HEADER..]);
    }
}

//! An AMD PDU in memory: true header octets, and its data by reference.

use super::sdu::SduStore;
use super::wire::{AmdHeader, Layout, LiWidth, MAX_HEAD, Tail};

/// Header octets as they are on the air, and which octets of which SDUs follow.
///
/// Successive segments belong to successive SDUs, so one number and one offset say it all; where SDUs end is in
/// the length indicators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pdu {
    head: [u8; MAX_HEAD],
    head_len: u8,
    /// What follows the data.
    pub tail: Tail,
    /// Octets of SDU data.
    pub data_len: u16,
    /// Number of the SDU of the first segment (or of the one that a leading special length indicator ends).
    pub sdu: u32,
    /// Offset of the first octet in it.
    pub offset: u32,
}

impl Pdu {
    /// An empty PDU whose first segment will be at this place.
    pub fn new(sdu: u32, offset: u32) -> Self {
        Pdu { head_len: 2, sdu, offset, ..Pdu::default() }
    }
    /// Header octets.
    #[inline]
    pub fn head(&self) -> &[u8] {
        &self.head[..usize::from(self.head_len)]
    }
    /// Length of the header.
    #[inline]
    pub const fn head_len(&self) -> u16 {
        self.head_len as u16
    }
    /// Sequence number.
    pub fn sn(&self) -> u16 {
        AmdHeader::parse(self.head()).map_or(0, |h| h.sn)
    }
    /// Writes the fixed part of the header.
    #[inline]
    pub fn set_header(&mut self, header: AmdHeader) {
        self.head[..2].copy_from_slice(&header.emit());
    }
    /// Sets the poll bit.
    #[inline]
    pub fn set_poll(&mut self) {
        self.head[1] |= 0b100;
    }
    /// Appends a length indicator; the caller has checked the room with [`Pdu::has_room_for_li`].
    pub fn push_li(&mut self, width: LiWidth, value: u16) {
        let at = usize::from(self.head_len);
        if at > 2 {
            width.extend(&mut self.head, at - width.octets());
        }
        width.put(&mut self.head, at, value);
        self.head_len += width.octets() as u8;
    }
    /// Is there room for one more length indicator, and the one of padding behind it?
    pub fn has_room_for_li(&self, width: LiWidth) -> bool {
        usize::from(self.head_len) + 2 * width.octets() <= MAX_HEAD
    }
    /// The same PDU with a piggybacked STATUS where its padding is.
    pub fn with_status(mut self, width: LiWidth) -> Pdu {
        let at = usize::from(self.head_len) - width.octets();
        width.put(&mut self.head, at, width.piggyback());
        self.tail = Tail::Status;
        self
    }
    /// Octets of padding in a PDU of `pdu_octets` that has a padding length indicator; else 0.
    pub fn padding(&self, pdu_octets: u16, width: LiWidth) -> u16 {
        let at = usize::from(self.head_len) - width.octets();
        let mut li = [0; 2];
        width.put(&mut li, 0, width.padding());
        let marked = at >= 2 && self.head[at..usize::from(self.head_len)] == li[..width.octets()];
        if self.tail == Tail::Padding && marked {
            pdu_octets.saturating_sub(self.head_len() + self.data_len)
        } else {
            0
        }
    }

    /// Appends the whole PDU as it is on the air; `status` is what is piggybacked.
    pub fn append_octets(&self, format: super::Format, sdus: &SduStore, status: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(self.head());
        let data = out.len();
        out.resize(data + usize::from(self.data_len), 0);
        // Headers we made ourselves are valid; were one not, its data would stay zero.
        if let Ok(layout) = Layout::parse(self.head(), usize::from(format.pdu_octets), format.li) {
            let (mut seq, mut offset, mut from) = (self.sdu, self.offset, 0usize);
            let ends = layout.ends().iter().map(|e| usize::from(*e));
            for end in ends.chain([usize::from(self.data_len)]) {
                let end = end.min(usize::from(self.data_len)).max(from);
                let piece = &mut out[data + from..data + end];
                if let Some(packet) = sdus.packet(seq) {
                    packet.write(offset as usize, piece);
                }
                (seq, offset, from) = (seq.wrapping_add(1), 0, end);
            }
        }
        out.extend_from_slice(status);
        out.resize(start + usize::from(format.pdu_octets), 0);
    }
}

//! Formats of acknowledged mode data PDUs and of RESET and RESET ACK (TS 25.322 clause 9.2).
//!
//! ```text
//!   AMD PDU:   | D/C=1 | SN 12 | P | HE 2 | { LI 7 or 15 | E }* | data .. | padding or STATUS |
//!   control:   | D/C=0 | type 3 | ...
//! ```
//!
//! Confirmed with tshark 4.0.17 (UDP marker of Wireshark's `rlc_udp` heuristic): data with and without length
//! indicators, exact fill (LI 0), padding, concatenation, piggybacked STATUS, RESET and RESET ACK are dissected with
//! the fields written here, and SDUs are reassembled.

use airloom_wire::Error;

/// Header octets of a PDU kept in place: the two fixed ones and the length indicators.
pub const MAX_HEAD: usize = 20;
/// Length indicators a PDU may carry.
pub const MAX_LIS: usize = MAX_HEAD - 2;
/// SDUs that may end in one PDU.
//= TS 25.322 9.2.2.8: with explicit discard signalling, at most 15 SDUs end in a PDU. We keep to it always.
pub const MAX_ENDS: usize = 15;

/// Width of the length indicators, with their E bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiWidth {
    /// 7 bits and E: one octet.
    Seven,
    /// 15 bits and E: two octets.
    Fifteen,
}

impl LiWidth {
    /// The width for PDUs of `octets` octets.
    //= TS 25.322 9.2.2.8: 7 bits if the PDU has at most 126 octets, else 15.
    pub const fn for_pdu(octets: usize) -> Self {
        if octets <= 126 { LiWidth::Seven } else { LiWidth::Fifteen }
    }
    /// Octets of one length indicator.
    #[inline]
    pub const fn octets(self) -> usize {
        match self {
            LiWidth::Seven => 1,
            LiWidth::Fifteen => 2,
        }
    }
    /// The special value `0x7F` - `below` (7 bits) or `0x7FFF` - `below` (15 bits).
    const fn special(self, below: u16) -> u16 {
        match self {
            LiWidth::Seven => 0x7F - below,
            LiWidth::Fifteen => 0x7FFF - below,
        }
    }
    /// The rest of the PDU is padding.
    pub const fn padding(self) -> u16 {
        self.special(0)
    }
    /// The rest of the PDU is a piggybacked STATUS.
    pub const fn piggyback(self) -> u16 {
        self.special(1)
    }
    /// The last SDU ended one octet before the end of the previous PDU (15 bits only).
    pub const ONE_SHORT: u16 = 0x7FFB;

    /// Writes a length indicator (E = 0) at `at`.
    pub fn put(self, octets: &mut [u8], at: usize, value: u16) {
        match self {
            LiWidth::Seven => octets[at] = (value << 1) as u8,
            LiWidth::Fifteen => octets[at..at + 2].copy_from_slice(&(value << 1).to_be_bytes()),
        }
    }
    /// Sets the E bit of the length indicator at `at`: another one follows.
    pub fn extend(self, octets: &mut [u8], at: usize) {
        octets[at + self.octets() - 1] |= 1;
    }
}

/// Header extension type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum He {
    /// 00: data follows.
    Data,
    /// 01: a length indicator follows.
    LengthIndicator,
    /// 10: data follows, and the last octet of the PDU ends an SDU.
    EndOfSdu,
}

/// The fixed two octets of an AMD PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmdHeader {
    /// Sequence number.
    pub sn: u16,
    /// Status report requested.
    pub poll: bool,
    /// What follows.
    pub he: He,
}

impl AmdHeader {
    /// Reads the header of an AMD PDU.
    #[inline]
    pub fn parse(octets: &[u8]) -> Result<AmdHeader, Error> {
        let [a, b, ..] = octets else { return Err(Error::Truncated) };
        if a & 0x80 == 0 {
            return Err(Error::Malformed("D/C bit of a data PDU"));
        }
        let he = match b & 0b11 {
            0b00 => He::Data,
            0b01 => He::LengthIndicator,
            0b10 => He::EndOfSdu,
            _ => return Err(Error::Malformed("HE field")),
        };
        Ok(AmdHeader { sn: u16::from(a & 0x7F) << 5 | u16::from(b >> 3), poll: b & 0b100 != 0, he })
    }

    /// The two octets.
    #[inline]
    pub const fn emit(self) -> [u8; 2] {
        let he = match self.he {
            He::Data => 0b00,
            He::LengthIndicator => 0b01,
            He::EndOfSdu => 0b10,
        };
        [0x80 | (self.sn >> 5) as u8, ((self.sn & 0x1F) << 3) as u8 | (self.poll as u8) << 2 | he]
    }
}

/// What follows the last SDU that ends in a PDU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tail {
    /// Octets of the next SDU, up to the end of the PDU (perhaps none).
    #[default]
    Data,
    /// Padding.
    Padding,
    /// A piggybacked STATUS PDU, then padding.
    Status,
}

/// Where SDUs end in a PDU, from its length indicators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    ends: [u16; MAX_LIS],
    count: u8,
    /// Header octets, length indicators included.
    pub head_len: usize,
    /// The SDU that ended "at 0" ended one octet before the end of the previous PDU.
    pub one_short: bool,
    /// What follows the last end.
    pub tail: Tail,
}

impl Layout {
    /// End offsets of SDUs, counted from the first octet after the header; the first may be 0: the SDU before
    /// ended with the previous PDU.
    pub fn ends(&self) -> &[u16] {
        &self.ends[..usize::from(self.count)]
    }

    /// Octets of SDU data of a PDU of `pdu_octets` octets.
    pub fn data_len(&self, pdu_octets: usize) -> usize {
        match self.tail {
            Tail::Data => pdu_octets.saturating_sub(self.head_len),
            _ => self.ends().last().map_or(0, |e| usize::from(*e)),
        }
    }

    /// Reads the length indicators of a PDU of `pdu_octets` octets; `octets` begins with its header and holds at
    /// least all of that.
    pub fn parse(octets: &[u8], pdu_octets: usize, width: LiWidth) -> Result<Layout, Error> {
        let header = AmdHeader::parse(octets)?;
        let mut layout = Layout { head_len: 2, ..Layout::default() };
        match header.he {
            He::Data => return Ok(layout),
            He::EndOfSdu => {
                layout.ends[0] = pdu_octets.saturating_sub(2) as u16;
                layout.count = 1;
                return Ok(layout);
            }
            He::LengthIndicator => {}
        }
        let mut more = true;
        while more {
            let at = layout.head_len;
            let field = octets.get(at..at + width.octets()).ok_or(Error::Truncated)?;
            let raw = field.iter().fold(0u16, |v, o| v << 8 | u16::from(*o));
            layout.head_len += width.octets();
            more = raw & 1 == 1;
            layout.take(raw >> 1, more, width)?;
        }
        layout.check(pdu_octets, width)
    }

    fn take(&mut self, li: u16, more: bool, width: LiWidth) -> Result<(), Error> {
        //= TS 25.322 11.3.4.6: PDUs with length indicators reserved for acknowledged mode are ignored.
        if li >= width.special(5) {
            if li == width.padding() || li == width.piggyback() {
                self.tail = if li == width.padding() { Tail::Padding } else { Tail::Status };
                return if more { Err(Error::Malformed("length indicator after padding")) } else { Ok(()) };
            }
            if width == LiWidth::Fifteen && li == LiWidth::ONE_SHORT && self.count == 0 {
                self.one_short = true;
                return self.push(0);
            }
            if width == LiWidth::Fifteen || li >= width.special(3) {
                return Err(Error::Malformed("reserved length indicator"));
            }
        }
        self.push(li)
    }

    fn push(&mut self, end: u16) -> Result<(), Error> {
        let before = self.ends().last();
        if before.is_some_and(|b| end <= *b) {
            return Err(Error::Malformed("length indicators that do not grow"));
        }
        let slot = self.ends.get_mut(usize::from(self.count));
        *slot.ok_or(Error::Malformed("number of length indicators"))? = end;
        self.count += 1;
        Ok(())
    }

    fn check(mut self, pdu_octets: usize, width: LiWidth) -> Result<Layout, Error> {
        let room = pdu_octets.checked_sub(self.head_len).ok_or(Error::Truncated)?;
        let last = self.ends().last().map_or(0, |e| usize::from(*e));
        //= TS 25.322 11.3.4.5: a PDU whose length indicator points beyond its end is ignored.
        if last > room {
            return Err(Error::Malformed("length indicator beyond the PDU"));
        }
        //= TS 25.322 9.2.2.8: with 15-bit indicators, one octet left behind the last SDU is padding without an
        //= indicator of its own.
        if width == LiWidth::Fifteen && self.tail == Tail::Data && last > 0 && room - last == 1 {
            self.tail = Tail::Padding;
        }
        Ok(self)
    }
}

/// Kinds of control PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// STATUS: super-fields follow from bit 4 on.
    Status,
    /// RESET.
    Reset(ResetPdu),
    /// RESET ACK.
    ResetAck(ResetPdu),
}

/// Content of RESET and RESET ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResetPdu {
    /// Reset sequence number, 0 or 1.
    pub rsn: u8,
    /// Hyper frame number, 20 bits.
    pub hfni: u32,
}

impl ResetPdu {
    fn parse(octets: &[u8]) -> Result<ResetPdu, Error> {
        let [a, b, c, d, ..] = octets else { return Err(Error::Truncated) };
        if a & 0b111 != 0 {
            return Err(Error::Malformed("reserved bits of a RESET"));
        }
        let hfni = u32::from(*b) << 12 | u32::from(*c) << 4 | u32::from(d >> 4);
        Ok(ResetPdu { rsn: a >> 3 & 1, hfni })
    }

    /// Writes RESET (or RESET ACK) into the beginning of `out`.
    pub fn emit(self, is_ack: bool, out: &mut [u8]) {
        let kind = if is_ack { 0b010 } else { 0b001 };
        out[0] = kind << 4 | (self.rsn & 1) << 3;
        out[1..4].copy_from_slice(&(self.hfni << 4).to_be_bytes()[1..]);
    }
}

impl Control {
    /// Reads the head of a control PDU.
    pub fn parse(octets: &[u8]) -> Result<Control, Error> {
        let first = octets.first().ok_or(Error::Truncated)?;
        if first & 0x80 != 0 {
            return Err(Error::Malformed("D/C bit of a control PDU"));
        }
        match first >> 4 {
            0b000 => Ok(Control::Status),
            0b001 => ResetPdu::parse(octets).map(Control::Reset),
            0b010 => ResetPdu::parse(octets).map(Control::ResetAck),
            _ => Err(Error::Malformed("type of control PDU")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fixed_header_is_read_and_written() {
        let header = AmdHeader { sn: 0xABC, poll: true, he: He::LengthIndicator };
        assert_eq!(header.emit(), [0x80 | 0x55, 0xE0 | 0b101]);
        for sn in [0, 1, 31, 32, 4095] {
            for he in [He::Data, He::LengthIndicator, He::EndOfSdu] {
                let header = AmdHeader { sn, poll: sn == 31, he };
                assert_eq!(AmdHeader::parse(&header.emit()), Ok(header));
            }
        }
        assert_eq!(AmdHeader::parse(&[0x80]), Err(Error::Truncated));
        assert!(AmdHeader::parse(&[0x00, 0]).is_err());
        assert!(AmdHeader::parse(&[0x80, 0b11]).is_err());
    }

    #[test]
    fn the_last_pdu_of_a_116_octet_sdu_in_payloads_of_40() {
        // Worked example: PDU 2 has P, LI = 36 with E, padding LI, 36 octets, 2 octets of padding.
        let mut octets = [0; 42];
        octets[..2].copy_from_slice(&AmdHeader { sn: 2, poll: true, he: He::LengthIndicator }.emit());
        octets[2..4].copy_from_slice(&[36 << 1 | 1, 0x7F << 1]);
        assert_eq!(octets[..4], [0x80, 0x15, 0x49, 0xFE]);
        let layout = Layout::parse(&octets, 42, LiWidth::Seven).unwrap();
        assert_eq!((layout.ends(), layout.tail, layout.head_len), (&[36][..], Tail::Padding, 4));
        assert_eq!(layout.data_len(42), 36);
    }

    #[test]
    fn special_indicators_of_both_widths() {
        let head = |he| AmdHeader { sn: 0, poll: false, he }.emit();
        let li = head(He::LengthIndicator);
        let seven = |lis: &[u8]| Layout::parse(&[&li[..], lis].concat(), 42, LiWidth::Seven);
        assert_eq!(seven(&[0]).unwrap().ends(), [0]);
        assert_eq!(seven(&[0x7E << 1]).unwrap().tail, Tail::Status);
        assert!(seven(&[0x7F << 1 | 1, 0]).is_err(), "padding is the last indicator");
        assert!(seven(&[0x7C << 1]).is_err() && seven(&[0x7D << 1]).is_err());
        assert!(seven(&[10 << 1 | 1, 9 << 1]).is_err(), "ends grow");
        assert!(seven(&[40 << 1]).is_err(), "beyond the PDU");
        assert_eq!(seven(&[39 << 1]).unwrap().data_len(42), 39);

        let fifteen = |values: &[u16], pdu| {
            let lis: Vec<u8> = values.iter().flat_map(|v| v.to_be_bytes()).collect();
            Layout::parse(&[&li[..], &lis].concat(), pdu, LiWidth::Fifteen)
        };
        let short = fifteen(&[0x7FFB << 1], 200).unwrap();
        assert!(short.one_short && short.ends() == [0]);
        assert_eq!(fifteen(&[195 << 1], 200).unwrap().tail, Tail::Padding, "one octet left is padding");
        assert_eq!(fifteen(&[194 << 1], 200).unwrap().tail, Tail::Data);
        assert!(fifteen(&[0x7FFA << 1], 200).is_err() && fifteen(&[0x7FFC << 1], 200).is_err());
        let end = Layout::parse(&head(He::EndOfSdu), 42, LiWidth::Seven).unwrap();
        assert_eq!(end.ends(), [40]);
    }

    #[test]
    fn reset_and_reset_ack() {
        for (is_ack, pdu) in
            [(false, ResetPdu { rsn: 0, hfni: 0 }), (true, ResetPdu { rsn: 1, hfni: 0xF_1234 })]
        {
            let mut octets = [0; 4];
            pdu.emit(is_ack, &mut octets);
            let expected = if is_ack { Control::ResetAck(pdu) } else { Control::Reset(pdu) };
            assert_eq!(Control::parse(&octets), Ok(expected));
            for cut in 0..4 {
                assert_eq!(Control::parse(&octets[..cut]), Err(Error::Truncated));
            }
        }
        assert!(Control::parse(&[0x30, 0, 0, 0]).is_err());
    }

    #[test]
    fn every_truncation_of_the_indicators_is_an_error() {
        let octets = [0x80, 0x01, 10 << 1 | 1, 20 << 1 | 1, 0xFE];
        assert!(Layout::parse(&octets, 42, LiWidth::Seven).is_ok());
        for cut in 0..octets.len() {
            assert!(Layout::parse(&octets[..cut], 42, LiWidth::Seven).is_err(), "{cut}");
        }
    }
}

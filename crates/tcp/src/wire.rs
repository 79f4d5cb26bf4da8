//! The TCP header (RFC 9293 3.1) and its options.
//!
//! The checksum field is written as zero: it is filled in where packets leave the model, as a network card does.

use std::fmt;

/// Octets of a header without options.
pub const MIN_HEADER: usize = 20;
/// Octets of the longest header.
pub const MAX_HEADER: usize = 60;
/// Octets of the timestamps option with the two NOPs that align it.
pub const TIMESTAMPS_LEN: usize = 12;

const KIND_END: u8 = 0;
const KIND_NOP: u8 = 1;
const KIND_MSS: u8 = 2;
const KIND_WINDOW_SCALE: u8 = 3;
const KIND_SACK_PERMITTED: u8 = 4;
const KIND_SACK: u8 = 5;
const KIND_TIMESTAMPS: u8 = 8;
/// RFC 6994: experiments, told apart by an identifier of sixteen bits; this one is not registered.
const KIND_EXPERIMENT: u8 = 253;
const PROBE_EXID: [u8; 2] = [0x41, 0x50];

/// The control bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// Push.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement field is meant.
    pub const ACK: Flags = Flags(0x10);
    /// The urgent pointer is meant.
    pub const URG: Flags = Flags(0x20);
    /// Congestion was experienced (RFC 3168).
    pub const ECE: Flags = Flags(0x40);
    /// The congestion window was reduced (RFC 3168).
    pub const CWR: Flags = Flags(0x80);

    /// Are all bits of `other` set?
    #[inline]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    /// These and those of `other`.
    #[inline]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

/// Up to four blocks of a SACK option (RFC 2018).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u32, u32); 4],
    count: u8,
}

impl SackBlocks {
    /// Adds a block `[left, right)`; a fifth is left out.
    pub fn push(&mut self, left: u32, right: u32) {
        if let Some(slot) = self.blocks.get_mut(usize::from(self.count)) {
            *slot = (left, right);
            self.count += 1;
        }
    }
    /// The blocks in the order in which they stand in the option.
    #[inline]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }
    /// No block?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// The options we understand. Others are skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Maximum segment size.
    pub mss: Option<u16>,
    /// Window scale shift, at most 14.
    pub window_scale: Option<u8>,
    /// SACK permitted.
    pub sack_permitted: bool,
    /// Timestamp value and echo reply.
    pub timestamps: Option<(u32, u32)>,
    /// SACK blocks.
    pub sack: SackBlocks,
    /// A probe, the answer to one, or in a SYN that both are known.
    pub probe: Option<ProbeOption>,
}

/// What a probe option is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::FromRepr)]
#[repr(u8)]
pub enum ProbeStep {
    /// In a SYN: the others are known.
    Permitted,
    /// PROBE1.
    Probe1,
    /// PR1_ACK.
    Answer1,
    /// PROBE2.
    Probe2,
    /// PR2_ACK.
    Answer2,
}

/// The option of TCP-Probing (see `probing.rs`), of the experimental kind and with an identifier of our own (RFC 6994 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeOption {
    /// What it is.
    pub step: ProbeStep,
    /// The cycle that it belongs to.
    pub cycle: u8,
}

/// A parsed header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
    /// Sequence number of the first octet (or of the SYN).
    pub seq: u32,
    /// Next sequence number expected, if the ACK bit is set.
    pub ack: u32,
    /// Control bits.
    pub flags: Flags,
    /// Window as it stands in the header, not scaled.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options.
    pub options: Options,
}

/// Why octets are not a TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Fewer octets than a header has, or than its data offset says.
    Truncated,
    /// The data offset is below five words.
    DataOffset,
    /// The length of an option is impossible.
    Option(u8),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Truncated => f.write_str("shorter than a TCP header"),
            Error::DataOffset => f.write_str("the data offset is below five words"),
            Error::Option(kind) => write!(f, "the length of option {kind} is impossible"),
        }
    }
}

impl std::error::Error for Error {}

#[inline]
fn be16(b: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([b[at], b[at + 1]])
}

#[inline]
fn be32(b: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

impl Header {
    /// Reads the header at the beginning of `octets`, and how many octets it has.
    #[inline]
    pub fn parse(octets: &[u8]) -> Result<(Header, usize), Error> {
        let (mut header, len) = Header::fixed(octets)?;
        let options = octets.get(MIN_HEADER..len).ok_or(Error::Truncated)?;
        if !options.is_empty() {
            header.options.parse(options)?;
        }
        Ok((header, len))
    }

    /// The same for a capture, which may have cut the options or show impossible ones: those before count. The length
    /// is what the data offset says.
    pub fn parse_leniently(octets: &[u8]) -> Result<(Header, usize), Error> {
        let (mut header, len) = Header::fixed(octets)?;
        let options = octets.get(MIN_HEADER..len.min(octets.len())).unwrap_or_default();
        let _ = header.options.parse(options);
        Ok((header, len))
    }

    /// What every header has, and how many octets it has with its options.
    #[inline]
    fn fixed(octets: &[u8]) -> Result<(Header, usize), Error> {
        let fixed: &[u8; MIN_HEADER] = octets.first_chunk().ok_or(Error::Truncated)?;
        let len = usize::from(fixed[12] >> 4) * 4;
        if len < MIN_HEADER {
            return Err(Error::DataOffset);
        }
        let header = Header {
            source: be16(fixed, 0),
            destination: be16(fixed, 2),
            seq: be32(fixed, 4),
            ack: be32(fixed, 8),
            flags: Flags(fixed[13]),
            window: be16(fixed, 14),
            urgent: be16(fixed, 18),
            options: Options::default(),
        };
        Ok((header, len))
    }

    /// Writes the header to the beginning of `out` and returns how many octets it has. The checksum is zero.
    /// Panics if `out` is shorter than [`MAX_HEADER`].
    #[inline]
    pub fn emit(&self, out: &mut [u8]) -> usize {
        let out: &mut [u8; MAX_HEADER] = out.first_chunk_mut().expect("room for the longest header");
        out[0..2].copy_from_slice(&self.source.to_be_bytes());
        out[2..4].copy_from_slice(&self.destination.to_be_bytes());
        out[4..8].copy_from_slice(&self.seq.to_be_bytes());
        out[8..12].copy_from_slice(&self.ack.to_be_bytes());
        let len = MIN_HEADER + self.options.emit(&mut out[MIN_HEADER..]);
        out[12] = (len as u8 / 4) << 4;
        out[13] = self.flags.0;
        out[14..16].copy_from_slice(&self.window.to_be_bytes());
        out[16..18].copy_from_slice(&[0, 0]);
        out[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        len
    }
}

/// A header with nothing but acknowledgement and perhaps timestamps: nearly all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// ACK, perhaps PSH.
    pub flags: Flags,
    /// Window as it stands in the header.
    pub window: u16,
    /// Timestamp value and echo reply.
    pub timestamps: Option<(u32, u32)>,
}

impl Plain {
    /// Reads such a header, and how many octets it has; `None` if it is another one, or none.
    #[inline]
    pub fn parse(octets: &[u8]) -> Option<(Plain, usize)> {
        let fixed: &[u8; MIN_HEADER] = octets.first_chunk()?;
        let flags = Flags(fixed[13]);
        if flags.0 & !Flags::PSH.0 != Flags::ACK.0 {
            return None;
        }
        let (timestamps, len) = match fixed[12] >> 4 {
            5 => (None, MIN_HEADER),
            8 => {
                let option: &[u8; TIMESTAMPS_LEN] = octets[MIN_HEADER..].first_chunk()?;
                if option[..4] != [KIND_NOP, KIND_NOP, KIND_TIMESTAMPS, 10] {
                    return None;
                }
                (Some((be32(option, 4), be32(option, 8))), MIN_HEADER + TIMESTAMPS_LEN)
            }
            _ => return None,
        };
        let plain =
            Plain { seq: be32(fixed, 4), ack: be32(fixed, 8), flags, window: be16(fixed, 14), timestamps };
        Some((plain, len))
    }

    /// How many octets such a header has.
    #[inline]
    pub fn header_len(&self) -> usize {
        Plain::length(self.timestamps.is_some())
    }

    /// The same, with timestamps or without.
    #[inline]
    pub const fn length(has_timestamps: bool) -> usize {
        MIN_HEADER + if has_timestamps { TIMESTAMPS_LEN } else { 0 }
    }

    /// Writes such a header, as [`Header::emit`] would. Panics if `out` is shorter than 32 octets.
    #[inline(always)]
    pub fn emit(&self, ports: (u16, u16), out: &mut [u8]) -> usize {
        let out: &mut [u8; MIN_HEADER + TIMESTAMPS_LEN] = out.first_chunk_mut().expect("room for the header");
        let ports = u32::from(ports.0) << 16 | u32::from(ports.1);
        out[0..4].copy_from_slice(&ports.to_be_bytes());
        out[4..8].copy_from_slice(&self.seq.to_be_bytes());
        out[8..12].copy_from_slice(&self.ack.to_be_bytes());
        let offset: u8 = if self.timestamps.is_some() { 0x80 } else { 0x50 };
        out[12..14].copy_from_slice(&[offset, self.flags.0]);
        out[14..16].copy_from_slice(&self.window.to_be_bytes());
        out[16..20].copy_from_slice(&[0; 4]);
        match self.timestamps {
            Some((value, echo)) => {
                out[20..24].copy_from_slice(&[KIND_NOP, KIND_NOP, KIND_TIMESTAMPS, 10]);
                out[24..28].copy_from_slice(&value.to_be_bytes());
                out[28..32].copy_from_slice(&echo.to_be_bytes());
                MIN_HEADER + TIMESTAMPS_LEN
            }
            None => MIN_HEADER,
        }
    }
}

impl Options {
    #[inline]
    fn parse(&mut self, octets: &[u8]) -> Result<(), Error> {
        // Nearly all segments carry the timestamps in the layout that RFC 7323 appendix A recommends.
        if let [KIND_NOP, KIND_NOP, KIND_TIMESTAMPS, 10, values @ ..] = octets
            && values.len() == 8
        {
            self.timestamps = Some((be32(values, 0), be32(values, 4)));
            return Ok(());
        }
        self.parse_all(octets)
    }

    fn parse_all(&mut self, octets: &[u8]) -> Result<(), Error> {
        let mut rest = octets;
        loop {
            match rest {
                [] | [KIND_END, ..] => return Ok(()),
                [KIND_NOP, more @ ..] => rest = more,
                [kind, more @ ..] => {
                    let len = usize::from(*more.first().ok_or(Error::Option(*kind))?);
                    let value = rest.get(2..len).ok_or(Error::Option(*kind))?;
                    rest = &rest[len..];
                    self.parse_one(*kind, value)?;
                }
            }
        }
    }

    fn parse_one(&mut self, kind: u8, value: &[u8]) -> Result<(), Error> {
        match (kind, value.len()) {
            (KIND_MSS, 2) => self.mss = Some(be16(value, 0)),
            //= RFC 7323 (2.3): a shift above 14 counts as 14.
            (KIND_WINDOW_SCALE, 1) => self.window_scale = Some(value[0].min(14)),
            (KIND_SACK_PERMITTED, 0) => self.sack_permitted = true,
            (KIND_SACK, n) if n % 8 == 0 && n <= 32 => {
                for block in value.chunks_exact(8) {
                    self.sack.push(be32(block, 0), be32(block, 4));
                }
            }
            (KIND_TIMESTAMPS, 8) => self.timestamps = Some((be32(value, 0), be32(value, 4))),
            (KIND_EXPERIMENT, 4) if value[..2] == PROBE_EXID => {
                let step = ProbeStep::from_repr(value[2]);
                self.probe = step.map(|step| ProbeOption { step, cycle: value[3] });
            }
            (KIND_MSS | KIND_WINDOW_SCALE | KIND_SACK_PERMITTED | KIND_SACK | KIND_TIMESTAMPS, _) => {
                return Err(Error::Option(kind));
            }
            _ => {}
        }
        Ok(())
    }

    #[inline]
    fn emit(&self, out: &mut [u8]) -> usize {
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            out[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        if let Some(mss) = self.mss {
            let [high, low] = mss.to_be_bytes();
            put(&[KIND_MSS, 4, high, low]);
        }
        if let Some((value, echo)) = self.timestamps {
            // SACK permitted takes the place of the two NOPs, so that a SYN with everything needs 20 octets.
            put(if self.sack_permitted { &[KIND_SACK_PERMITTED, 2] } else { &[KIND_NOP, KIND_NOP] });
            put(&[KIND_TIMESTAMPS, 10]);
            put(&value.to_be_bytes());
            put(&echo.to_be_bytes());
        } else if self.sack_permitted {
            put(&[KIND_NOP, KIND_NOP, KIND_SACK_PERMITTED, 2]);
        }
        if let Some(shift) = self.window_scale {
            put(&[KIND_NOP, KIND_WINDOW_SCALE, 3, shift]);
        }
        if let Some(probe) = self.probe {
            let [high, low] = PROBE_EXID;
            put(&[KIND_NOP, KIND_NOP, KIND_EXPERIMENT, 6, high, low, probe.step as u8, probe.cycle]);
        }
        if !self.sack.is_empty() {
            //= RFC 2018 (3): four blocks fit, three beside timestamps. A peer's header may have had less padding than ours.
            let room = (MAX_HEADER - MIN_HEADER - at - 4) / 8;
            let blocks = &self.sack.as_slice()[..usize::from(self.sack.count).min(room)];
            out[at..at + 4].copy_from_slice(&[KIND_NOP, KIND_NOP, KIND_SACK, 2 + 8 * blocks.len() as u8]);
            at += 4;
            for (left, right) in blocks {
                out[at..at + 4].copy_from_slice(&left.to_be_bytes());
                out[at + 4..at + 8].copy_from_slice(&right.to_be_bytes());
                at += 8;
            }
        }
        at
    }

    /// Octets these options take in a header.
    pub fn len(&self) -> usize {
        self.emit(&mut [0; MAX_HEADER])
    }

    /// No option at all?
    pub fn is_empty(&self) -> bool {
        *self == Options::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A SYN of Linux 6.1 towards port 80: MSS 1460, SACK permitted, timestamps, window scale 7.
    const SYN: [u8; 40] = [
        0x9c, 0x40, 0x00, 0x50, 0x12, 0x34, 0x56, 0x78, 0x00, 0x00, 0x00, 0x00, 0xa0, 0x02, 0xfa, 0xf0, 0x00,
        0x00, 0x00, 0x00, 0x02, 0x04, 0x05, 0xb4, 0x04, 0x02, 0x08, 0x0a, 0x00, 0x00, 0x10, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x01, 0x03, 0x03, 0x07,
    ];

    /// A duplicate acknowledgement with timestamps and two SACK blocks.
    const SACK: [u8; 52] = [
        0x9c, 0x40, 0x00, 0x50, 0x12, 0x34, 0x56, 0x79, 0x00, 0x00, 0x10, 0x01, 0xd0, 0x10, 0x01, 0xf6, 0x00,
        0x00, 0x00, 0x00, 0x01, 0x01, 0x08, 0x0a, 0x00, 0x00, 0x10, 0x20, 0x00, 0x00, 0x0f, 0x00, 0x01, 0x01,
        0x05, 0x12, 0x00, 0x00, 0x20, 0x00, 0x00, 0x00, 0x25, 0xa8, 0x00, 0x00, 0x15, 0xa9, 0x00, 0x00, 0x1b,
        0x51,
    ];

    #[test]
    fn blocks_of_a_peer_that_pads_less_than_we_do_are_written_as_far_as_they_fit() {
        let mut octets = [0; 60];
        octets[12] = 0xF0;
        // MSS and four blocks are 38 octets; with the two NOPs in front of ours they are 40.
        octets[20..24].copy_from_slice(&[KIND_MSS, 4, 5, 0xB4]);
        octets[24..28].copy_from_slice(&[KIND_SACK_PERMITTED, 2, KIND_SACK, 34]);
        let (header, _) = Header::parse(&octets).unwrap();
        assert_eq!(header.options.sack.as_slice().len(), 4);
        let written = emitted(&header);
        assert_eq!(written.len(), 56);
        assert_eq!(Header::parse(&written).unwrap().0.options.sack.as_slice().len(), 3);
    }

    fn emitted(header: &Header) -> Vec<u8> {
        let mut out = [0xff; MAX_HEADER];
        let n = header.emit(&mut out);
        out[..n].to_vec()
    }

    #[test]
    fn a_syn_with_all_options() {
        let (header, len) = Header::parse(&SYN).unwrap();
        assert_eq!(len, 40);
        assert_eq!((header.source, header.destination), (40_000, 80));
        assert_eq!((header.seq, header.ack, header.window), (0x1234_5678, 0, 64_240));
        assert_eq!(header.flags, Flags::SYN);
        let options = header.options;
        assert_eq!((options.mss, options.window_scale), (Some(1460), Some(7)));
        assert!(options.sack_permitted);
        assert_eq!(options.timestamps, Some((0x1000, 0)));
        assert_eq!(emitted(&header), SYN);
        assert_eq!(options.len(), 20);
    }

    #[test]
    fn an_acknowledgement_with_sack_blocks() {
        let (header, len) = Header::parse(&SACK).unwrap();
        assert_eq!(len, 52);
        assert_eq!(header.options.sack.as_slice(), [(0x2000, 0x25a8), (0x15a9, 0x1b51)]);
        assert_eq!(emitted(&header), SACK);
    }

    #[test]
    fn a_plain_header_is_twenty_octets() {
        let header = Header { source: 1, destination: 2, flags: Flags::ACK, ..Header::default() };
        let octets = emitted(&header);
        assert_eq!(octets.len(), 20);
        assert_eq!(octets[12], 0x50);
        assert_eq!(Header::parse(&octets), Ok((header, 20)));
    }

    #[test]
    fn the_plain_form_reads_and_writes_what_the_general_one_does() {
        for timestamps in [None, Some((7, 0x0102_0304))] {
            for flags in [Flags::ACK, Flags::ACK.with(Flags::PSH)] {
                let options = Options { timestamps, ..Options::default() };
                let header = Header {
                    source: 0x1234,
                    destination: 80,
                    seq: 0xfedc_ba98,
                    ack: 17,
                    flags,
                    window: 0x8001,
                    urgent: 0,
                    options,
                };
                let octets = emitted(&header);
                let (plain, len) = Plain::parse(&octets).unwrap();
                assert_eq!(len, octets.len());
                assert_eq!(
                    (plain.seq, plain.ack, plain.flags, plain.window, plain.timestamps),
                    (header.seq, header.ack, header.flags, header.window, timestamps)
                );
                let mut out = [0xff; MAX_HEADER];
                assert_eq!(plain.emit((0x1234, 80), &mut out), len);
                assert_eq!(out[..len], octets);
                for cut in 0..len {
                    assert_eq!(Plain::parse(&octets[..cut]), None);
                }
            }
        }
        assert_eq!(Plain::parse(&SYN), None);
        assert_eq!(Plain::parse(&SACK), None);
    }

    #[test]
    fn four_blocks_fit_alone_and_three_beside_timestamps() {
        let mut sack = SackBlocks::default();
        for i in 0..5 {
            sack.push(i * 10, i * 10 + 5);
        }
        let alone = Header { options: Options { sack, ..Options::default() }, ..Header::default() };
        let (parsed, len) = Header::parse(&emitted(&alone)).unwrap();
        assert_eq!((parsed.options.sack.as_slice().len(), len), (4, 56));
        let options = Options { sack, timestamps: Some((1, 2)), ..Options::default() };
        let beside = Header { options, ..Header::default() };
        let (parsed, len) = Header::parse(&emitted(&beside)).unwrap();
        assert_eq!((parsed.options.sack.as_slice().len(), len), (3, 60));
    }

    #[test]
    fn every_truncation_is_an_error() {
        for whole in [&SYN[..], &SACK[..]] {
            for len in 0..whole.len() {
                assert_eq!(Header::parse(&whole[..len]), Err(Error::Truncated), "{len} octets");
            }
        }
    }

    #[test]
    fn impossible_lengths_are_errors() {
        let mut short = SYN;
        short[12] = 0x40;
        assert_eq!(Header::parse(&short), Err(Error::DataOffset));
        for len in [0, 1, 3, 5, 200] {
            let mut bad = SYN;
            bad[21] = len;
            assert_eq!(Header::parse(&bad), Err(Error::Option(KIND_MSS)), "MSS of length {len}");
        }
        let mut sack = SACK;
        sack[35] = 0x11;
        assert_eq!(Header::parse(&sack), Err(Error::Option(KIND_SACK)));
    }

    #[test]
    fn unknown_options_are_skipped_and_shifts_above_14_count_as_14() {
        let mut octets = SYN;
        octets[20..28].copy_from_slice(&[254, 6, 1, 2, 3, 4, 3, 3]);
        octets[28] = 15;
        octets[29] = KIND_END;
        let (header, _) = Header::parse(&octets).unwrap();
        assert_eq!(header.options, Options { window_scale: Some(14), ..Options::default() });
    }

    #[test]
    fn no_flipped_bit_panics() {
        for bit in 0..SACK.len() * 8 {
            let mut octets = SACK;
            octets[bit / 8] ^= 1 << (bit % 8);
            if let Ok((header, len)) = Header::parse(&octets) {
                assert!((MIN_HEADER..=MAX_HEADER).contains(&len));
                assert!(emitted(&header).len() <= MAX_HEADER);
            }
        }
    }

    #[test]
    fn of_a_header_that_was_cut_what_there_is_is_read() {
        let (whole, len) = Header::parse(&SYN).unwrap();
        assert_eq!(Header::parse_leniently(&SYN), Ok((whole, len)));
        for captured in MIN_HEADER..SYN.len() {
            let (header, length) = Header::parse_leniently(&SYN[..captured]).unwrap();
            assert_eq!((length, header.seq, header.options.window_scale), (len, whole.seq, None));
            assert_eq!(header.options.mss, whole.options.mss.filter(|_| captured >= 24));
            assert_eq!(header.options.timestamps, whole.options.timestamps.filter(|_| captured >= 36));
        }
        assert_eq!(Header::parse_leniently(&SYN[..19]), Err(Error::Truncated));
        let mut impossible = SYN;
        impossible[25] = 0;
        let (header, length) = Header::parse_leniently(&impossible).unwrap();
        assert_eq!((length, header.options.mss, header.options.timestamps), (len, Some(1460), None));
    }
}

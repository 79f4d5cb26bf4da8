//! PDUs of WTP (WAP-224 section 8): fixed header, transport information items, concatenation.
//!
//! ```text
//!  octet 1            octets 2-3   then
//!  CON TYPE(4) xx RID  TID          by type: see `Kind`
//! ```
//!
//! The top bit of the TID says who speaks: 0 the initiator of the transaction, 1 its responder.

use bytes::{BufMut, Bytes, BytesMut};
use strum::IntoEnumIterator;

/// The bit of a TID that says that the responder speaks.
pub const RESPONDER: u16 = 0x8000;

/// Type numbers.
mod kind {
    pub const CONCATENATED: u8 = 0;
    pub const INVOKE: u8 = 1;
    pub const RESULT: u8 = 2;
    pub const ACK: u8 = 3;
    pub const ABORT: u8 = 4;
    pub const SEGMENTED_INVOKE: u8 = 5;
    pub const SEGMENTED_RESULT: u8 = 6;
    pub const NEGATIVE_ACK: u8 = 7;
}

/// What is wrong with a datagram or a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It ends before its header does.
    #[error("the PDU ends inside its header")]
    Truncated,
    /// A type that nobody has assigned: dropped without a word.
    #[error("PDU type {0} is not assigned")]
    UnknownType(u8),
    /// Fields that contradict each other; the TID, if it could be read, says what to abort.
    #[error("the PDU contradicts itself")]
    Malformed(u16),
}

/// Where in a message a packet stands: the flags GTR and TTR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trailer {
    /// More packets follow in this group.
    None,
    /// The last packet of the message.
    Message,
    /// The last packet of a group; more groups follow.
    Group,
    /// The whole message, from a sender that cannot segment and re-assemble.
    NoSar,
}

impl Trailer {
    fn bits(self) -> u8 {
        match self {
            Trailer::None => 0b00,
            Trailer::Message => 0b01,
            Trailer::Group => 0b10,
            Trailer::NoSar => 0b11,
        }
    }
    fn of(bits: u8) -> Trailer {
        match bits & 0b11 {
            0b00 => Trailer::None,
            0b01 => Trailer::Message,
            0b10 => Trailer::Group,
            _ => Trailer::NoSar,
        }
    }
    /// Does a receiver answer such a packet?
    pub fn wants_answer(self) -> bool {
        self != Trailer::None
    }
    /// Is the message over with it?
    pub fn ends_message(self) -> bool {
        matches!(self, Trailer::Message | Trailer::NoSar)
    }
}

/// Transaction class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Unreliable, no result: never acknowledged.
    Unreliable,
    /// Reliable, no result: acknowledged.
    Reliable,
    /// Reliable with one reliable result.
    WithResult,
}

/// Why a transaction was aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Abort {
    /// By the transaction provider (WAP-224 8.3.4).
    #[error("{0}")]
    Provider(Reason),
    /// By its user, with a code of the layer above.
    #[error("aborted by the user, code {0:#04x}")]
    User(u8),
}

/// Reasons of a transaction provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, strum::EnumIter)]
pub enum Reason {
    /// No reason of the list.
    #[error("aborted for an unknown reason")]
    Unknown,
    /// A PDU that could not be understood.
    #[error("aborted: a PDU was not understood")]
    ProtocolError,
    /// The negative answer to a verification.
    #[error("aborted: the transaction identifier is not valid")]
    InvalidTid,
    /// Class 2 is not supported.
    #[error("aborted: class 2 is not supported")]
    NoClass2,
    /// Segmentation and re-assembly are not supported.
    #[error("aborted: segmentation is not supported")]
    NoSar,
    /// User acknowledgement is not supported.
    #[error("aborted: user acknowledgement is not supported")]
    NoUserAck,
    /// Only version 0 is spoken here.
    #[error("aborted: only version 0 is supported")]
    VersionZero,
    /// Too much to do at the moment.
    #[error("aborted: no capacity at the moment")]
    CapacityExceeded,
    /// The other side did not answer.
    #[error("no response")]
    NoResponse,
    /// The message is larger than what is taken.
    #[error("aborted: the message is too large")]
    MessageTooLarge,
    /// Extended segmentation is not supported.
    #[error("aborted: extended segmentation is not supported")]
    NoExtendedSar,
    /// A code that is not assigned.
    #[error("aborted, provider code {0:#04x}")]
    #[strum(disabled)]
    Other(u8),
}

impl Reason {
    /// The code in a PDU.
    pub fn code(self) -> u8 {
        match self {
            Reason::Other(code) => code,
            known => Self::iter().position(|reason| reason == known).unwrap_or(0) as u8,
        }
    }
    /// The reason of a code.
    pub fn of(code: u8) -> Reason {
        Self::iter().nth(usize::from(code)).unwrap_or(Reason::Other(code))
    }
}

/// A transport information item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tpi {
    /// An item of the other side was not understood: error code, identity of the item.
    Error {
        /// 1 unknown, 2 known but not supported.
        code: u8,
        /// Identity of the item.
        identity: u8,
    },
    /// Octets for the log.
    Info(Bytes),
    /// An option of the transaction.
    Option(OptionItem),
    /// The packet that an acknowledgement is about.
    Psn(u8),
    /// An item that is not known here.
    Unknown {
        /// Its identity.
        identity: u8,
        /// Its content.
        content: Bytes,
    },
}

/// Options (WAP-224 8.4.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionItem {
    /// The largest datagram that is taken, in octets.
    MaximumReceiveUnit(u32),
    /// Size of the segmented message, in octets.
    TotalMessageSize(u32),
    /// Time to wait between packets of a group.
    DelayTransmission(u32),
    /// Octets that may be sent in one packet group.
    MaximumGroup(u32),
    /// The TID that is in use now.
    CurrentTid(u16),
    /// No state about TIDs is kept: verify, or answer at once.
    NoCachedTid,
    /// An option that is not known here.
    Unknown {
        /// Its number.
        number: u8,
        /// Its value.
        value: Bytes,
    },
}

/// One PDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pdu {
    /// Transaction identifier, with the bit of direction.
    pub tid: u16,
    /// Was it sent before (RID)?
    pub repeated: bool,
    /// Type and its fields.
    pub kind: Kind,
    /// Transport information items.
    pub items: Vec<Tpi>,
}

/// Types of PDUs with their fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Begins a transaction.
    Invoke {
        /// Place in its group.
        trailer: Trailer,
        /// Version, 0 here.
        version: u8,
        /// The initiator begins to count anew.
        tid_new: bool,
        /// The user has to acknowledge (U/P).
        user_ack: bool,
        /// Class.
        class: Class,
        /// Of the message.
        data: Bytes,
    },
    /// The result of a transaction of class 2.
    Result {
        /// Place in its group.
        trailer: Trailer,
        /// Of the message.
        data: Bytes,
    },
    /// Acknowledgement.
    Ack {
        /// Verification of a TID: asked by a responder, granted by an initiator (Tve/Tok).
        verify: bool,
    },
    /// The end of a transaction before its time.
    Abort(Abort),
    /// A further packet of the message that began with an Invoke.
    SegmentedInvoke {
        /// Place in its group.
        trailer: Trailer,
        /// Packet sequence number.
        psn: u8,
        /// Of the message.
        data: Bytes,
    },
    /// A further packet of the message that began with a Result.
    SegmentedResult {
        /// Place in its group.
        trailer: Trailer,
        /// Packet sequence number.
        psn: u8,
        /// Of the message.
        data: Bytes,
    },
    /// These packets of a group are missing; none named means all.
    NegativeAck(Vec<u8>),
}

impl Pdu {
    /// A PDU without items.
    pub fn new(tid: u16, repeated: bool, kind: Kind) -> Pdu {
        Pdu { tid, repeated, kind, items: Vec::new() }
    }

    /// The packet that an item says this is about.
    pub fn psn(&self) -> Option<u8> {
        self.items.iter().find_map(|i| if let Tpi::Psn(psn) = i { Some(*psn) } else { None })
    }

    /// Octets of the message that are in it.
    pub fn data_len(&self) -> usize {
        match &self.kind {
            Kind::Invoke { data, .. }
            | Kind::SegmentedInvoke { data, .. }
            | Kind::Result { data, .. }
            | Kind::SegmentedResult { data, .. } => data.len(),
            Kind::Ack { .. } | Kind::NegativeAck(_) | Kind::Abort(_) => 0,
        }
    }

    /// The octets of one PDU.
    pub fn parse(octets: &Bytes) -> Result<Pdu, Error> {
        let mut at = Reader { octets, at: 0 };
        let first = at.octet()?;
        let number = first >> 3 & 0x0F;
        let tid = at.sixteen()?;
        let trailer = Trailer::of(first >> 1);
        let mut repeated = first & 1 != 0;
        // The fixed header first, then the items, then what is left is data.
        let mut kind = match number {
            kind::INVOKE => {
                let fields = at.octet()?;
                let class = match fields & 0b11 {
                    0 => Class::Unreliable,
                    1 => Class::Reliable,
                    2 => Class::WithResult,
                    _ => return Err(Error::Malformed(tid)),
                };
                Kind::Invoke {
                    trailer,
                    version: fields >> 6,
                    tid_new: fields & 0x20 != 0,
                    user_ack: fields & 0x10 != 0,
                    class,
                    data: Bytes::new(),
                }
            }
            kind::RESULT => Kind::Result { trailer, data: Bytes::new() },
            kind::ACK => Kind::Ack { verify: first & 0b100 != 0 },
            kind::ABORT => {
                let code = at.octet()?;
                repeated = false;
                Kind::Abort(match first & 0b111 {
                    0 => Abort::Provider(Reason::of(code)),
                    1 => Abort::User(code),
                    _ => return Err(Error::UnknownType(kind::ABORT)),
                })
            }
            kind::SEGMENTED_INVOKE => Kind::SegmentedInvoke { trailer, psn: at.octet()?, data: Bytes::new() },
            kind::SEGMENTED_RESULT => Kind::SegmentedResult { trailer, psn: at.octet()?, data: Bytes::new() },
            kind::NEGATIVE_ACK => {
                let count = usize::from(at.octet()?);
                Kind::NegativeAck(at.take(count)?.to_vec())
            }
            other => return Err(Error::UnknownType(other)),
        };
        let items = if first & 0x80 != 0 { at.items()? } else { Vec::new() };
        if let Kind::Invoke { data, .. }
        | Kind::Result { data, .. }
        | Kind::SegmentedInvoke { data, .. }
        | Kind::SegmentedResult { data, .. } = &mut kind
        {
            *data = octets.slice(at.at..);
        }
        Ok(Pdu { tid, repeated, kind, items })
    }

    /// Appends the octets of this PDU.
    pub fn emit(&self, out: &mut BytesMut) {
        let con = if self.items.is_empty() { 0 } else { 0x80 };
        let head = |number: u8, bits: u8| con | number << 3 | bits << 1 | u8::from(self.repeated);
        let (first, fields, data): (u8, Option<u8>, &[u8]) = match &self.kind {
            Kind::Invoke { trailer, version, tid_new, user_ack, class, data } => {
                let fields = version << 6 | u8::from(*tid_new) << 5 | u8::from(*user_ack) << 4 | *class as u8;
                (head(kind::INVOKE, trailer.bits()), Some(fields), data)
            }
            Kind::Result { trailer, data } => (head(kind::RESULT, trailer.bits()), None, data),
            Kind::Ack { verify } => (head(kind::ACK, u8::from(*verify) << 1), None, &[]),
            Kind::Abort(Abort::Provider(reason)) => (con | kind::ABORT << 3, Some(reason.code()), &[]),
            Kind::Abort(Abort::User(code)) => (con | kind::ABORT << 3 | 1, Some(*code), &[]),
            Kind::SegmentedInvoke { trailer, psn, data } => {
                (head(kind::SEGMENTED_INVOKE, trailer.bits()), Some(*psn), data)
            }
            Kind::SegmentedResult { trailer, psn, data } => {
                (head(kind::SEGMENTED_RESULT, trailer.bits()), Some(*psn), data)
            }
            Kind::NegativeAck(missing) => {
                (head(kind::NEGATIVE_ACK, 0), Some(missing.len().min(255) as u8), &[])
            }
        };
        out.put_u8(first);
        out.put_u16(self.tid);
        if let Some(fields) = fields {
            out.put_u8(fields);
        }
        if let Kind::NegativeAck(missing) = &self.kind {
            out.put_slice(&missing[..missing.len().min(255)]);
        }
        for (n, item) in self.items.iter().enumerate() {
            item.emit(n + 1 < self.items.len(), out);
        }
        out.put_slice(data);
    }

    /// The octets of this PDU alone.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(16);
        self.emit(&mut out);
        out.freeze()
    }
}

impl Tpi {
    fn emit(&self, more: bool, out: &mut BytesMut) {
        let (identity, content): (u8, Bytes) = match self {
            Tpi::Error { code, identity } => (0, Bytes::copy_from_slice(&[code << 4 | identity & 0x0F])),
            Tpi::Info(octets) => (1, octets.clone()),
            Tpi::Option(option) => (2, option.octets()),
            Tpi::Psn(psn) => (3, Bytes::copy_from_slice(&[*psn])),
            Tpi::Unknown { identity, content } => (*identity, content.clone()),
        };
        let head = u8::from(more) << 7 | (identity & 0x0F) << 3;
        let content = &content[..content.len().min(255)];
        if content.len() > 3 {
            out.put_u8(head | 0b100);
            out.put_u8(content.len() as u8);
        } else {
            out.put_u8(head | content.len() as u8);
        }
        out.put_slice(content);
    }
}

impl OptionItem {
    /// Numbers are written without leading zero octets, as real clients do.
    fn octets(&self) -> Bytes {
        let number = |n: u8, value: u32| {
            let octets = value.to_be_bytes();
            let zeros = octets.iter().take_while(|o| **o == 0).count().min(3);
            let mut out = vec![n];
            out.extend_from_slice(&octets[zeros..]);
            Bytes::from(out)
        };
        match self {
            OptionItem::MaximumReceiveUnit(v) => number(1, *v),
            OptionItem::TotalMessageSize(v) => number(2, *v),
            OptionItem::DelayTransmission(v) => number(3, *v),
            OptionItem::MaximumGroup(v) => number(4, *v),
            OptionItem::CurrentTid(tid) => {
                let [high, low] = tid.to_be_bytes();
                Bytes::copy_from_slice(&[5, high, low])
            }
            OptionItem::NoCachedTid => Bytes::from_static(&[6]),
            OptionItem::Unknown { number, value } => {
                let mut out = vec![*number];
                out.extend_from_slice(value);
                Bytes::from(out)
            }
        }
    }

    fn parse(number: u8, value: Bytes) -> OptionItem {
        let sum = (1..=4)
            .contains(&value.len())
            .then(|| value.iter().fold(0u32, |sum, o| sum << 8 | u32::from(*o)));
        match (number, sum) {
            (1, Some(v)) => OptionItem::MaximumReceiveUnit(v),
            (2, Some(v)) => OptionItem::TotalMessageSize(v),
            (3, Some(v)) => OptionItem::DelayTransmission(v),
            (4, Some(v)) => OptionItem::MaximumGroup(v),
            (5, Some(v)) if v <= 0xFFFF => OptionItem::CurrentTid(v as u16),
            (6, _) if value.is_empty() => OptionItem::NoCachedTid,
            _ => OptionItem::Unknown { number, value },
        }
    }
}

struct Reader<'a> {
    octets: &'a Bytes,
    at: usize,
}

impl Reader<'_> {
    fn octet(&mut self) -> Result<u8, Error> {
        let octet = *self.octets.get(self.at).ok_or(Error::Truncated)?;
        self.at += 1;
        Ok(octet)
    }
    fn sixteen(&mut self) -> Result<u16, Error> {
        Ok(u16::from_be_bytes([self.octet()?, self.octet()?]))
    }
    fn take(&mut self, len: usize) -> Result<Bytes, Error> {
        let end = self.at.checked_add(len).filter(|end| *end <= self.octets.len()).ok_or(Error::Truncated)?;
        let taken = self.octets.slice(self.at..end);
        self.at = end;
        Ok(taken)
    }
    fn items(&mut self) -> Result<Vec<Tpi>, Error> {
        let mut items = Vec::new();
        loop {
            let head = self.octet()?;
            let len = if head & 0b100 != 0 { self.octet()? } else { head & 0b11 };
            let content = self.take(usize::from(len))?;
            let identity = head >> 3 & 0x0F;
            items.push(match (identity, content.as_ref()) {
                (0, [first, ..]) => Tpi::Error { code: first >> 4, identity: first & 0x0F },
                (1, _) => Tpi::Info(content),
                (2, [number, ..]) => Tpi::Option(OptionItem::parse(*number, content.slice(1..))),
                (3, [psn]) => Tpi::Psn(*psn),
                _ => Tpi::Unknown { identity, content },
            });
            if head & 0x80 == 0 {
                return Ok(items);
            }
        }
    }
}

/// The PDUs of a datagram: one, or several that are concatenated (WAP-224 8.5). Ends at the first fault of the
/// concatenation itself; a faulty PDU in it is an entry of its own.
pub fn split(datagram: &Bytes) -> Vec<Result<Pdu, Error>> {
    match datagram.first() {
        None => vec![Err(Error::Truncated)],
        Some(first) if first >> 3 & 0x0F != kind::CONCATENATED => vec![Pdu::parse(datagram)],
        Some(_) => {
            let mut pdus = Vec::new();
            let mut at = Reader { octets: datagram, at: 1 };
            while at.at < datagram.len() {
                match at.concatenated() {
                    Ok(pdu) => pdus.push(Pdu::parse(&pdu)),
                    Err(error) => {
                        pdus.push(Err(error));
                        break;
                    }
                }
            }
            pdus
        }
    }
}

impl Reader<'_> {
    /// One PDU of a concatenation: its length in one octet, or in 15 bits.
    fn concatenated(&mut self) -> Result<Bytes, Error> {
        let first = self.octet()?;
        let len = if first & 0x80 == 0 {
            usize::from(first)
        } else {
            usize::from(first & 0x7F) << 8 | usize::from(self.octet()?)
        };
        self.take(len)
    }
}

/// Several PDUs for one peer in one datagram.
pub fn concatenate(pdus: &[Bytes]) -> Bytes {
    let mut out = BytesMut::with_capacity(1 + pdus.iter().map(|p| p.len() + 2).sum::<usize>());
    out.put_u8(0);
    for pdu in pdus {
        match pdu.len() {
            len @ ..0x80 => out.put_u8(len as u8),
            len => out.put_u16(0x8000 | len.min(0x7FFF) as u16),
        }
        out.put_slice(&pdu[..pdu.len().min(0x7FFF)]);
    }
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Bytes {
        hex.split_whitespace().map(|o| u8::from_str_radix(o, 16).unwrap()).collect::<Vec<u8>>().into()
    }

    fn invoke(data: &'static [u8]) -> Kind {
        Kind::Invoke {
            trailer: Trailer::Message,
            version: 0,
            tid_new: false,
            user_ack: true,
            class: Class::WithResult,
            data: Bytes::from_static(data),
        }
    }

    #[test]
    fn pdus_of_a_gateway_on_loopback_are_read_and_written() {
        // Seen between a client and Kannel 1.4.5.
        let ack = |verify| Kind::Ack { verify };
        let result = Kind::Result { trailer: Trailer::Message, data: Bytes::new() };
        let version = Kind::Abort(Abort::Provider(Reason::VersionZero));
        for (hex, tid, kind, items) in [
            ("0A 12 34 12 AB", 0x1234, invoke(&[0xAB]), vec![]),
            ("12 92 34", 0x9234, result, vec![]),
            ("18 12 34", 0x1234, ack(false), vec![]),
            ("1C 92 34", 0x9234, ack(true), vec![]),
            ("98 12 34 19 02", 0x1234, ack(false), vec![Tpi::Psn(2)]),
            ("38 12 34 01 01", 0x1234, Kind::NegativeAck(vec![1]), vec![]),
            ("20 92 34 06", 0x9234, version, vec![]),
            ("21 92 34 E1", 0x9234, Kind::Abort(Abort::User(0xE1)), vec![]),
        ] {
            let pdu = Pdu { tid, repeated: false, kind, items };
            assert_eq!(Pdu::parse(&bytes(hex)), Ok(pdu.clone()), "{hex}");
            assert_eq!(pdu.to_bytes(), bytes(hex), "{hex}");
        }
    }

    #[test]
    fn items_stand_between_header_and_data() {
        // Maximum group of 4,200 octets, as a client sends it with a segmented request.
        let octets = bytes("8C 00 05 12 13 04 10 68 AA BB");
        let pdu = Pdu::parse(&octets).unwrap();
        assert_eq!(pdu.items, [Tpi::Option(OptionItem::MaximumGroup(4200))]);
        let Kind::Invoke { data, trailer, .. } = &pdu.kind else { panic!("an invoke") };
        assert_eq!((data.as_ref(), *trailer), (&[0xAA, 0xBB][..], Trailer::Group));
        assert_eq!(pdu.to_bytes(), octets);
    }

    #[test]
    fn long_and_several_items_come_back() {
        let pdu = Pdu {
            tid: 7,
            repeated: true,
            kind: Kind::SegmentedResult { trailer: Trailer::None, psn: 200, data: Bytes::from_static(b"x") },
            items: vec![
                Tpi::Info(Bytes::from_static(b"longer than three")),
                Tpi::Error { code: 2, identity: 4 },
                Tpi::Option(OptionItem::CurrentTid(0x0102)),
                Tpi::Option(OptionItem::NoCachedTid),
                Tpi::Option(OptionItem::TotalMessageSize(70_000)),
                Tpi::Unknown { identity: 9, content: Bytes::new() },
            ],
        };
        assert_eq!(Pdu::parse(&pdu.to_bytes()), Ok(pdu));
    }

    #[test]
    fn concatenated_pdus_come_apart_again() {
        let long = Pdu::new(3, false, Kind::Result { trailer: Trailer::Message, data: vec![5; 300].into() });
        let pdus = [Pdu::new(1, false, invoke(b"a")), Pdu::new(2, false, Kind::Ack { verify: false }), long];
        let datagram = concatenate(&pdus.each_ref().map(Pdu::to_bytes));
        let found: Vec<_> = split(&datagram).into_iter().map(Result::unwrap).collect();
        assert_eq!(found, pdus);
        let cut = split(&datagram.slice(..datagram.len() - 1));
        assert_eq!((cut.len(), &cut[2]), (3, &Err(Error::Truncated)));
    }

    #[test]
    fn faults_are_errors_of_their_kind() {
        for (hex, error) in [
            ("", Error::Truncated),
            ("0A 12", Error::Truncated),
            ("0A 12 34", Error::Truncated),
            ("0A 12 34 03", Error::Malformed(0x1234)),
            ("22 92 34 00", Error::UnknownType(4)),
            ("48 12 34", Error::UnknownType(9)),
            ("38 12 34 02 01", Error::Truncated),
            ("98 12 34", Error::Truncated),
            ("98 12 34 1C", Error::Truncated),
        ] {
            assert_eq!(split(&bytes(hex)), [Err(error)], "{hex}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_octets_are_read_without_a_panic_and_what_is_read_is_written_the_same(
            octets in proptest::collection::vec(proptest::num::u8::ANY, 0..80)
        ) {
            for pdu in split(&Bytes::from(octets)).into_iter().flatten() {
                proptest::prop_assert_eq!(Pdu::parse(&pdu.to_bytes()), Ok(pdu));
            }
        }
    }
}

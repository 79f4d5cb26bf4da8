//! The chunks of SCTP: RFC 9260 (3.3), 8260 (I-DATA, I-FORWARD-TSN), 3758 (FORWARD-TSN), 6525 (RE-CONFIG), 4820 (PAD), and
//! ECNE and CWR of RFC 4960 (appendix A).

pub mod cause;
pub mod data;
pub mod forward;
pub mod init;
pub mod parameter;
pub mod sack;

use airloom_wire::Error;
use bytes::Bytes;

use super::octets::{CHUNK_HEADER, get32, padded};
pub use cause::Cause;
pub use data::Data;
pub use forward::ForwardTsn;
pub use init::Init;
pub use parameter::Parameter;
pub use sack::Sack;

/// Numbers of the chunk types.
pub mod kind {
    #![allow(missing_docs, reason = "the names are the standards' own")]
    pub const DATA: u8 = 0;
    pub const INIT: u8 = 1;
    pub const INIT_ACK: u8 = 2;
    pub const SACK: u8 = 3;
    pub const HEARTBEAT: u8 = 4;
    pub const HEARTBEAT_ACK: u8 = 5;
    pub const ABORT: u8 = 6;
    pub const SHUTDOWN: u8 = 7;
    pub const SHUTDOWN_ACK: u8 = 8;
    pub const ERROR: u8 = 9;
    pub const COOKIE_ECHO: u8 = 10;
    pub const COOKIE_ACK: u8 = 11;
    pub const ECNE: u8 = 12;
    pub const CWR: u8 = 13;
    pub const SHUTDOWN_COMPLETE: u8 = 14;
    pub const I_DATA: u8 = 0x40;
    pub const RE_CONFIG: u8 = 0x82;
    pub const PAD: u8 = 0x84;
    pub const FORWARD_TSN: u8 = 0xC0;
    pub const I_FORWARD_TSN: u8 = 0xC2;
}

/// One chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// DATA or I-DATA: a message or a part of one.
    Data(Data),
    /// Opens an association.
    Init(Init),
    /// Answers INIT, with the cookie.
    InitAck(Init),
    /// What arrived.
    Sack(Sack),
    /// Asks for a sign of life; the heartbeat information, which comes back as it is.
    Heartbeat(Parameter),
    /// Gives it.
    HeartbeatAck(Parameter),
    /// Ends the association at once.
    Abort {
        /// The tag is the receiver's own peer's (bit T): the sender has no association.
        reflected: bool,
        /// Why.
        causes: Vec<Cause>,
    },
    /// The sender has no more data; its cumulative TSN.
    Shutdown(u32),
    /// Nor has its peer.
    ShutdownAck,
    /// Something was wrong, which is not fatal.
    Error(Vec<Cause>),
    /// Gives the cookie back.
    CookieEcho(Bytes),
    /// The association is there.
    CookieAck,
    /// A packet with this TSN (the lowest one in it) was marked.
    Ecne(u32),
    /// The window was reduced; the lowest TSN sent since.
    Cwr(u32),
    /// The association is gone.
    ShutdownComplete {
        /// As in ABORT.
        reflected: bool,
    },
    /// Requests and responses of RFC 6525, one or two.
    ReConfig(Vec<Parameter>),
    /// Octets that mean nothing.
    Pad(u16),
    /// TSNs that will not come.
    ForwardTsn(ForwardTsn),
    /// A type that is not known here, with flags and value.
    Unknown(u8, u8, Bytes),
}

impl Chunk {
    /// Its number.
    pub fn kind(&self) -> u8 {
        match self {
            Chunk::Data(d) if d.interleaved => kind::I_DATA,
            Chunk::Data(_) => kind::DATA,
            Chunk::Init(_) => kind::INIT,
            Chunk::InitAck(_) => kind::INIT_ACK,
            Chunk::Sack(_) => kind::SACK,
            Chunk::Heartbeat(_) => kind::HEARTBEAT,
            Chunk::HeartbeatAck(_) => kind::HEARTBEAT_ACK,
            Chunk::Abort { .. } => kind::ABORT,
            Chunk::Shutdown(_) => kind::SHUTDOWN,
            Chunk::ShutdownAck => kind::SHUTDOWN_ACK,
            Chunk::Error(_) => kind::ERROR,
            Chunk::CookieEcho(_) => kind::COOKIE_ECHO,
            Chunk::CookieAck => kind::COOKIE_ACK,
            Chunk::Ecne(_) => kind::ECNE,
            Chunk::Cwr(_) => kind::CWR,
            Chunk::ShutdownComplete { .. } => kind::SHUTDOWN_COMPLETE,
            Chunk::ReConfig(_) => kind::RE_CONFIG,
            Chunk::Pad(_) => kind::PAD,
            Chunk::ForwardTsn(f) if f.interleaved => kind::I_FORWARD_TSN,
            Chunk::ForwardTsn(_) => kind::FORWARD_TSN,
            Chunk::Unknown(kind, ..) => *kind,
        }
    }

    fn flags(&self) -> u8 {
        match self {
            Chunk::Data(d) => d.flags(),
            Chunk::Abort { reflected, .. } | Chunk::ShutdownComplete { reflected } => u8::from(*reflected),
            Chunk::Unknown(_, flags, _) => *flags,
            _ => 0,
        }
    }

    /// Octets, without padding behind.
    pub fn wire_len(&self) -> usize {
        CHUNK_HEADER
            + match self {
                Chunk::Data(d) => d.front_len() - CHUNK_HEADER + d.body.len(),
                Chunk::Init(i) | Chunk::InitAck(i) => i.wire_len(),
                Chunk::Sack(s) => s.wire_len(),
                Chunk::Heartbeat(p) | Chunk::HeartbeatAck(p) => p.wire_len(),
                Chunk::Abort { causes, .. } | Chunk::Error(causes) => cause::list_len(causes),
                Chunk::Shutdown(_) | Chunk::Ecne(_) | Chunk::Cwr(_) => 4,
                Chunk::ShutdownAck | Chunk::CookieAck | Chunk::ShutdownComplete { .. } => 0,
                Chunk::CookieEcho(cookie) => cookie.len(),
                Chunk::ReConfig(parameters) => parameter::list_len(parameters),
                Chunk::Pad(len) => usize::from(*len),
                Chunk::ForwardTsn(f) => f.wire_len(),
                Chunk::Unknown(_, _, value) => value.len(),
            }
    }

    /// Octets with padding behind.
    pub fn padded_len(&self) -> usize {
        padded(self.wire_len())
    }

    /// Writes it with its padding into the front of `out` and returns how many octets these are.
    pub fn emit(&self, out: &mut [u8]) -> usize {
        let (len, end) = (self.wire_len(), self.padded_len());
        out[..end].fill(0);
        out[0] = self.kind();
        out[1] = self.flags();
        out[2..4].copy_from_slice(&(len.min(usize::from(u16::MAX)) as u16).to_be_bytes());
        let value = &mut out[CHUNK_HEADER..end];
        match self {
            Chunk::Data(d) => d.emit(value),
            Chunk::Init(i) | Chunk::InitAck(i) => i.emit(value),
            Chunk::Sack(s) => s.emit(value),
            Chunk::Heartbeat(p) | Chunk::HeartbeatAck(p) => {
                p.emit(value);
            }
            Chunk::Abort { causes, .. } | Chunk::Error(causes) => cause::emit_list(causes, value),
            Chunk::Shutdown(tsn) | Chunk::Ecne(tsn) | Chunk::Cwr(tsn) => {
                value[..4].copy_from_slice(&tsn.to_be_bytes());
            }
            Chunk::ShutdownAck | Chunk::CookieAck | Chunk::ShutdownComplete { .. } | Chunk::Pad(_) => {}
            Chunk::CookieEcho(octets) | Chunk::Unknown(_, _, octets) => {
                value[..octets.len()].copy_from_slice(octets);
            }
            Chunk::ReConfig(parameters) => parameter::emit_list(parameters, value),
            Chunk::ForwardTsn(f) => f.emit(value),
        }
        end
    }

    /// Appends it with its padding.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        let at = out.len();
        out.resize(at + self.padded_len(), 0);
        self.emit(&mut out[at..]);
    }
}

/// A chunk whose value holds nothing but numbers; `None`: another one.
pub(super) fn parse_fixed(kind: u8, flags: u8, value: &[u8]) -> Option<Result<Chunk, Error>> {
    let number = |make: fn(u32) -> Chunk| get32(value, 0).map(make);
    Some(match kind {
        kind::SACK => Sack::parse(value).map(Chunk::Sack),
        kind::SHUTDOWN => number(Chunk::Shutdown),
        kind::SHUTDOWN_ACK => Ok(Chunk::ShutdownAck),
        kind::COOKIE_ACK => Ok(Chunk::CookieAck),
        kind::ECNE => number(Chunk::Ecne),
        kind::CWR => number(Chunk::Cwr),
        kind::SHUTDOWN_COMPLETE => Ok(Chunk::ShutdownComplete { reflected: flags & 1 != 0 }),
        kind::PAD => Ok(Chunk::Pad(value.len().min(usize::from(u16::MAX)) as u16)),
        kind::FORWARD_TSN => ForwardTsn::parse(value, false).map(Chunk::ForwardTsn),
        kind::I_FORWARD_TSN => ForwardTsn::parse(value, true).map(Chunk::ForwardTsn),
        _ => return None,
    })
}

/// Reads a chunk from its type, flags and value (without padding).
pub fn parse(kind: u8, flags: u8, value: &Bytes) -> Result<Chunk, Error> {
    if let Some(fixed) = parse_fixed(kind, flags, value) {
        return fixed;
    }
    match kind {
        kind::DATA | kind::I_DATA => Data::parse(kind, flags, value).map(Chunk::Data),
        kind::INIT => Init::parse(value).map(Chunk::Init),
        kind::INIT_ACK => Init::parse(value).map(Chunk::InitAck),
        kind::HEARTBEAT => parameter::first(value).map(Chunk::Heartbeat),
        kind::HEARTBEAT_ACK => parameter::first(value).map(Chunk::HeartbeatAck),
        kind::ABORT => Ok(Chunk::Abort { reflected: flags & 1 != 0, causes: cause::list(value)? }),
        kind::ERROR => cause::list(value).map(Chunk::Error),
        kind::COOKIE_ECHO => Ok(Chunk::CookieEcho(value.clone())),
        kind::RE_CONFIG => parameter::list(value).map(Chunk::ReConfig),
        _ => Ok(Chunk::Unknown(kind, flags, value.clone())),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use airloom_base::Body;
    use proptest::prelude::*;

    fn octets(max: usize) -> impl Strategy<Value = Bytes> {
        proptest::collection::vec(any::<u8>(), 0..max).prop_map(Bytes::from)
    }

    pub fn parameter() -> impl Strategy<Value = Parameter> {
        use parameter::{Reset, TsnReset};
        let shorts = || proptest::collection::vec(any::<u16>(), 0..5);
        prop_oneof![
            octets(40).prop_map(Parameter::HeartbeatInfo),
            any::<u32>().prop_map(|a| Parameter::Ipv4(a.into())),
            any::<u128>().prop_map(|a| Parameter::Ipv6(a.into())),
            octets(40).prop_map(Parameter::StateCookie),
            octets(40).prop_map(Parameter::Unrecognized),
            any::<u32>().prop_map(Parameter::CookiePreservative),
            octets(40).prop_map(Parameter::HostName),
            shorts().prop_map(Parameter::SupportedAddressTypes),
            Just(Parameter::EcnCapable),
            Just(Parameter::ForwardTsnSupported),
            octets(9).prop_map(|b| Parameter::SupportedExtensions(b.to_vec())),
            any::<u32>().prop_map(Parameter::AdaptationIndication),
            (any::<[u32; 3]>(), shorts()).prop_map(|([request, response, last_tsn], streams)| {
                Parameter::OutgoingReset(Reset { request, response, last_tsn, streams })
            }),
            (any::<u32>(), shorts())
                .prop_map(|(request, streams)| Parameter::IncomingReset(request, streams)),
            any::<u32>().prop_map(Parameter::SsnTsnReset),
            (any::<[u32; 2]>(), proptest::option::of(any::<[u32; 2]>())).prop_map(
                |([response, result], t)| {
                    let next = t.map(|[sender, receiver]| TsnReset { sender, receiver });
                    Parameter::ReconfigResponse { response, result, next }
                }
            ),
            any::<(u32, u16)>().prop_map(|(r, n)| Parameter::AddOutgoing(r, n)),
            any::<(u32, u16)>().prop_map(|(r, n)| Parameter::AddIncoming(r, n)),
            (0x9000u16.., octets(30)).prop_map(|(k, v)| Parameter::Unknown(k.min(0xBFFF), v)),
        ]
    }

    fn cause() -> impl Strategy<Value = Cause> {
        prop_oneof![
            any::<u16>().prop_map(Cause::InvalidStream),
            proptest::collection::vec(any::<u16>(), 0..4).prop_map(Cause::MissingParameter),
            any::<u32>().prop_map(Cause::StaleCookie),
            Just(Cause::OutOfResource),
            octets(20).prop_map(Cause::UnresolvableAddress),
            octets(20).prop_map(Cause::UnrecognizedChunk),
            Just(Cause::InvalidParameter),
            octets(20).prop_map(Cause::UnrecognizedParameters),
            any::<u32>().prop_map(Cause::NoUserData),
            Just(Cause::CookieWhileShuttingDown),
            octets(20).prop_map(Cause::RestartWithNewAddresses),
            octets(20).prop_map(Cause::UserInitiated),
            octets(20).prop_map(Cause::ProtocolViolation),
            (14u16.., octets(20)).prop_map(|(k, v)| Cause::Unknown(k, v)),
        ]
    }

    pub fn chunk() -> impl Strategy<Value = Chunk> {
        let parameters = || proptest::collection::vec(parameter(), 0..5);
        let causes = || proptest::collection::vec(cause(), 0..4);
        let init = move || {
            (any::<[u32; 3]>(), any::<[u16; 2]>(), parameters()).prop_map(
                |([tag, window, tsn], [o, i], parameters)| Init {
                    tag,
                    window,
                    outbound_streams: o,
                    inbound_streams: i,
                    initial_tsn: tsn,
                    parameters,
                },
            )
        };
        let data = (any::<[u32; 3]>(), any::<u16>(), any::<[bool; 5]>(), octets(200)).prop_map(
            |([tsn, sequence, ppid], stream, [interleaved, unordered, begin, end, immediate], body)| Data {
                tsn,
                stream,
                sequence: if interleaved { sequence } else { sequence & 0xFFFF },
                ppid: if interleaved && !begin { 0 } else { ppid },
                fsn: if interleaved && !begin { ppid } else { 0 },
                unordered,
                begin,
                end,
                immediate,
                interleaved,
                body: Body::Real(body),
            },
        );
        let sack = (
            any::<[u32; 2]>(),
            proptest::collection::vec(any::<(u16, u16)>(), 0..20),
            proptest::collection::vec(any::<u32>(), 0..20),
        )
            .prop_map(|([cumulative, window], gaps, duplicates)| {
                Chunk::Sack(Sack { cumulative, window, gaps, duplicates })
            });
        let forward =
            (any::<u32>(), any::<bool>(), proptest::collection::vec(any::<(u16, bool, u32)>(), 0..6))
                .prop_map(|(cumulative, interleaved, skipped)| {
                    let skip = |(stream, unordered, sequence): (u16, bool, u32)| forward::Skipped {
                        stream,
                        unordered: interleaved && unordered,
                        sequence: if interleaved { sequence } else { sequence & 0xFFFF },
                    };
                    let skipped = skipped.into_iter().map(skip).collect();
                    Chunk::ForwardTsn(ForwardTsn { cumulative, interleaved, skipped })
                });
        prop_oneof![
            data.prop_map(Chunk::Data),
            init().prop_map(Chunk::Init),
            init().prop_map(Chunk::InitAck),
            sack,
            octets(40).prop_map(|b| Chunk::Heartbeat(Parameter::HeartbeatInfo(b))),
            octets(40).prop_map(|b| Chunk::HeartbeatAck(Parameter::HeartbeatInfo(b))),
            (any::<bool>(), causes()).prop_map(|(reflected, causes)| Chunk::Abort { reflected, causes }),
            any::<u32>().prop_map(Chunk::Shutdown),
            Just(Chunk::ShutdownAck),
            causes().prop_map(Chunk::Error),
            octets(200).prop_map(Chunk::CookieEcho),
            Just(Chunk::CookieAck),
            any::<u32>().prop_map(Chunk::Ecne),
            any::<u32>().prop_map(Chunk::Cwr),
            any::<bool>().prop_map(|reflected| Chunk::ShutdownComplete { reflected }),
            parameters().prop_map(Chunk::ReConfig),
            (0u16..100).prop_map(Chunk::Pad),
            forward,
            (0x50u8..0x80, any::<u8>(), octets(30)).prop_map(|(k, f, v)| Chunk::Unknown(k, f, v)),
        ]
    }

    proptest! {
        #[test]
        fn every_truncation_of_a_value_is_an_error_or_another_chunk(c in chunk()) {
            let mut octets = Vec::new();
            c.append_to(&mut octets);
            let value = Bytes::from(octets).slice(4..c.wire_len());
            for cut in 0..value.len() {
                if let Ok(other) = parse(c.kind(), c.flags(), &value.slice(..cut)) {
                    prop_assert_ne!(&other, &c);
                }
            }
            prop_assert_eq!(parse(c.kind(), c.flags(), &value), Ok(c.clone()));
        }
    }

    #[test]
    fn the_octets_of_a_data_chunk_are_those_of_the_figure() {
        let d = Data {
            tsn: 0x0102_0304,
            stream: 5,
            sequence: 6,
            ppid: 0x0700_0008,
            begin: true,
            end: true,
            immediate: true,
            body: Body::Real(Bytes::from_static(b"abc")),
            ..Data::default()
        };
        let mut out = Vec::new();
        Chunk::Data(d).append_to(&mut out);
        assert_eq!(out, b"\x00\x0b\x00\x13\x01\x02\x03\x04\x00\x05\x00\x06\x07\x00\x00\x08abc\0");
    }

    #[test]
    fn the_octets_of_i_data_have_the_fragment_number_where_the_first_one_has_its_protocol() {
        let first = Data { sequence: 9, ppid: 1, begin: true, interleaved: true, ..Data::default() };
        let mut out = [0; 20];
        first.emit_front(0, &mut out);
        assert_eq!(out[..4], [0x40, 2, 0, 20]);
        assert_eq!(out[12..], [0, 0, 0, 9, 0, 0, 0, 1]);
        Data { begin: false, fsn: 3, ..first }.emit_front(0, &mut out);
        assert_eq!(out[12..], [0, 0, 0, 9, 0, 0, 0, 3]);
    }
}

//! INIT and INIT ACK (RFC 9260, 3.3.2 and 3.3.3).

use airloom_wire::Error;
use bytes::Bytes;

use super::{Parameter, parameter};
use crate::octets::{get16, get32};

/// How an end introduces itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Init {
    /// The tag that packets to it must carry.
    pub tag: u32,
    /// Octets of its receive buffer.
    pub window: u32,
    /// Streams it wants to send on.
    pub outbound_streams: u16,
    /// Streams it receives on at most.
    pub inbound_streams: u16,
    /// Its first TSN.
    pub initial_tsn: u32,
    /// What else it says.
    pub parameters: Vec<Parameter>,
}

impl Init {
    const FIXED: usize = 16;

    pub(super) fn wire_len(&self) -> usize {
        Self::FIXED + parameter::list_len(&self.parameters)
    }

    pub(super) fn parse(value: &Bytes) -> Result<Init, Error> {
        Ok(Init {
            tag: get32(value, 0)?,
            window: get32(value, 4)?,
            outbound_streams: get16(value, 8)?,
            inbound_streams: get16(value, 10)?,
            initial_tsn: get32(value, 12)?,
            parameters: parameter::list(&value.slice(Self::FIXED..))?,
        })
    }

    pub(super) fn emit(&self, value: &mut [u8]) {
        value[..4].copy_from_slice(&self.tag.to_be_bytes());
        value[4..8].copy_from_slice(&self.window.to_be_bytes());
        value[8..10].copy_from_slice(&self.outbound_streams.to_be_bytes());
        value[10..12].copy_from_slice(&self.inbound_streams.to_be_bytes());
        value[12..16].copy_from_slice(&self.initial_tsn.to_be_bytes());
        parameter::emit_list(&self.parameters, &mut value[Self::FIXED..]);
    }
}

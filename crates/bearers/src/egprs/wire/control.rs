//! Control messages with acknowledgements, each in one block of coding scheme CS-1 (TS 44.060 11.2).

use airloom_wire::bits::{BitReader, BitWriter};

use super::ack_nack::{AckNack, Fitted};
use super::quality::ChannelQuality;
use super::{CONTROL_OCTETS, Error};

/// Message type of EGPRS PACKET DOWNLINK ACK/NACK (uplink).
const DOWNLINK_ACK_NACK: u32 = 0b00_1000;
/// Message type of PACKET UPLINK ACK/NACK (downlink).
const UPLINK_ACK_NACK: u32 = 0b00_1001;
/// Padding octet; padding bits are its bits at their places.
const PADDING: u8 = 0x2B;

/// EGPRS PACKET DOWNLINK ACK/NACK (11.2.6a): the mobile's report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DownlinkAckNack {
    /// Flow it is about.
    pub tfi: u8,
    /// What the mobile has measured, if it was asked for.
    pub quality: Option<ChannelQuality>,
    /// Which blocks have come.
    pub report: AckNack,
}

/// PACKET UPLINK ACK/NACK (11.2.28), EGPRS: the network's report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UplinkAckNack {
    /// Who may use the next uplink block of the timeslot.
    pub usf: u8,
    /// Flow it is about.
    pub tfi: u8,
    /// Scheme the mobile shall use, 1 to 9.
    pub mcs: u8,
    /// Shall repetitions be cut to fit that scheme?
    pub resegment: bool,
    /// May the mobile repeat blocks that are not acknowledged yet when it has nothing else?
    pub pre_emptive: bool,
    /// Which blocks have come.
    pub report: AckNack,
}

impl DownlinkAckNack {
    /// Bits in front of the description: MAC header, message type, TFI, memory flag and four absent parts.
    const FRONT: usize = 8 + 6 + 5 + 1 + 4;

    /// Room for the description beside what is told of the channel.
    pub fn room(quality: Option<&ChannelQuality>) -> usize {
        CONTROL_OCTETS * 8 - Self::FRONT - quality.map_or(0, ChannelQuality::bits)
    }

    /// The octets of the block for flow `tfi`.
    pub fn emit(
        tfi: u8,
        quality: Option<&ChannelQuality>,
        report: &Fitted,
    ) -> Result<[u8; CONTROL_OCTETS], Error> {
        let mut octets = [PADDING; CONTROL_OCTETS];
        let mut w = BitWriter::new(&mut octets);
        w.write(2, 1)?; // payload type: control message without optional octets
        w.write(5, 0)?;
        w.write(1, 0)?; // R
        w.write(6, DOWNLINK_ACK_NACK)?;
        w.write(5, tfi.into())?;
        w.write(1, 0)?; // MS_OUT_OF_MEMORY
        w.write(1, quality.is_some().into())?;
        if let Some(quality) = quality {
            quality.write(&mut w)?;
        }
        w.write(3, 0)?; // no channel request, PFI, extension
        report.write(&mut w)?;
        Ok(octets)
    }

    /// Reads a block; other messages are errors.
    pub fn parse(octets: &[u8]) -> Result<DownlinkAckNack, Error> {
        if octets.len() != CONTROL_OCTETS {
            return Err(Error::Length);
        }
        let mut r = BitReader::new(octets);
        expect(&mut r, 2, 1, "payload type")?;
        r.read(6)?;
        expect(&mut r, 6, DOWNLINK_ACK_NACK, "message type")?;
        let tfi = r.read(5)? as u8;
        r.read(1)?;
        let quality = if r.read(1)? == 1 { Some(ChannelQuality::read(&mut r)?) } else { None };
        expect(&mut r, 3, 0, "a part that was not asked for")?;
        Ok(DownlinkAckNack { tfi, quality, report: AckNack::read(&mut r)? })
    }
}

impl UplinkAckNack {
    /// Bits in front of the description: MAC header, type, page mode, discriminators, TFI, EGPRS fields.
    const FRONT: usize = 8 + 6 + 2 + 2 + 5 + 1 + 2 + 4 + 4 + 1 + 1 + 4;

    /// Room for the description.
    pub const ROOM: usize = CONTROL_OCTETS * 8 - Self::FRONT;

    /// The octets of the block; `fields` says all but the report.
    pub fn emit(fields: &UplinkAckNack, report: &Fitted) -> Result<[u8; CONTROL_OCTETS], Error> {
        let mut octets = [PADDING; CONTROL_OCTETS];
        let mut w = BitWriter::new(&mut octets);
        w.write(2, 1)?; // payload type: control message without optional octets
        w.write(2, 0)?; // RRBP
        w.write(1, 0)?; // S/P: no answer wanted
        w.write(3, fields.usf.into())?;
        w.write(6, UPLINK_ACK_NACK)?;
        w.write(2, 0)?; // page mode
        w.write(2, 0)?;
        w.write(5, fields.tfi.into())?;
        w.write(1, 1)?; // EGPRS
        w.write(2, 0)?;
        w.write(4, u32::from(fields.mcs.saturating_sub(1)))?; // EGPRS channel coding command
        w.write(1, fields.resegment.into())?;
        w.write(1, fields.pre_emptive.into())?;
        w.write(2, 0)?; // no retransmission of PRR or ARAC wanted
        w.write(1, 0)?; // no contention resolution
        w.write(1, 0)?; // TBF_EST
        w.write(4, 0)?; // no timing advance, extended timing advance, power control, extension
        report.write(&mut w)?;
        Ok(octets)
    }

    /// Reads a block; other messages are errors.
    pub fn parse(octets: &[u8]) -> Result<UplinkAckNack, Error> {
        if octets.len() != CONTROL_OCTETS {
            return Err(Error::Length);
        }
        let mut r = BitReader::new(octets);
        expect(&mut r, 2, 1, "payload type")?;
        r.read(3)?;
        let usf = r.read(3)? as u8;
        expect(&mut r, 6, UPLINK_ACK_NACK, "message type")?;
        r.read(2)?;
        expect(&mut r, 2, 0, "distinction")?;
        let tfi = r.read(5)? as u8;
        expect(&mut r, 1, 1, "EGPRS")?;
        expect(&mut r, 2, 0, "EGPRS")?;
        let mcs = r.read(4)? as u8 + 1;
        let (resegment, pre_emptive) = (r.read(1)? == 1, r.read(1)? == 1);
        r.read(2)?;
        expect(&mut r, 1, 0, "contention resolution")?;
        r.read(1)?;
        expect(&mut r, 4, 0, "a part that was not expected")?;
        Ok(UplinkAckNack { usf, tfi, mcs, resegment, pre_emptive, report: AckNack::read(&mut r)? })
    }
}

/// The next bits, which can only be these.
fn expect(r: &mut BitReader<'_>, width: u32, only: u32, what: &'static str) -> Result<(), Error> {
    if r.read(width)? == only { Ok(()) } else { Err(Error::Reserved(what)) }
}

//! What a cell tells about its blocks.

use airloom_base::record::{Event, PacketFacts};
use airloom_base::{Cx, Direction, Instant, Point};

use super::grid::Grid;
use super::gsmtap::{self, Channel};
use super::llc::Frames;
use super::rlc::{Choice, Sent, half, pad};
use super::wire::header::Split;
use super::wire::{AckNack, Header, RadioBlock};

/// A row about a block.
pub struct Row {
    pub direction: Direction,
    pub event: Event,
    pub len: usize,
    pub reason: Option<&'static str>,
}

impl Row {
    /// A data block; `octets` go to the capture.
    pub fn data(&self, cx: &mut Cx, point: Point, sent: &Sent, frames: &Frames, octets: &[u8]) {
        let frame = frames.get(sent.layout.frame);
        let facts = || PacketFacts {
            packet: frame.map_or(0, |f| f.id),
            flow: frame.map_or(0, |f| f.flow),
            len: self.len as u32,
            seq: Some(sent.bsn.into()),
            attempt: sent.attempt,
            reason: self.reason,
            ..PacketFacts::bare("rlc", self.event, self.direction)
        };
        cx.records.packet(cx.now, point, facts, |out| out.extend_from_slice(octets));
    }

    /// A report.
    pub fn report(&self, cx: &mut Cx, point: Point, report: &AckNack, octets: &[u8]) {
        let facts = || PacketFacts {
            len: self.len as u32,
            ack: Some(report.ssn.into()),
            reason: self.reason,
            ..PacketFacts::bare("rlc", self.event, self.direction)
        };
        cx.records.packet(cx.now, point, facts, |out| out.extend_from_slice(octets));
    }
}

/// The octets of a data block with their GSMTAP header.
pub fn data_octets(
    choice: &Choice,
    header: Header,
    frames: &Frames,
    is_final: bool,
    timeslot: u8,
    n: u64,
) -> Vec<u8> {
    let mut out = Vec::new();
    gsmtap::append(&mut out, Channel::Pdtch, header.direction(), timeslot, n);
    let units = choice.blocks.iter().flatten().map(|sent| {
        let unit = sent.layout.unit(frames, is_final);
        match choice.split {
            Split::Whole if choice.is_padded => pad(&unit),
            Split::Whole => unit,
            split => half(&unit, split == Split::Second),
        }
    });
    let block = RadioBlock { header, units: units.collect() };
    block.append(&mut out).expect("blocks have the octets of their scheme");
    out
}

/// The octets of a control block with their GSMTAP header.
pub fn control_octets(block: &[u8], direction: Direction, timeslot: u8, n: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(gsmtap::HEADER + block.len());
    gsmtap::append(&mut out, Channel::Pacch, direction, timeslot, n);
    out.extend_from_slice(block);
    out
}

/// When a radio block begins and ends.
pub fn interval(grid: Grid, n: u64) -> (Instant, Instant) {
    (grid.start(n), grid.start(n) + grid.duration())
}

//! RLC/MAC of EGPRS.

use airloom_base::Direction;
use airloom_bearers::egprs::wire::block::pieces;
use airloom_bearers::egprs::wire::{DownlinkAckNack, RadioBlock, UplinkAckNack};

/// Radio blocks and their acknowledgements. What is read as a block is written as the same.
pub fn egprs(octets: &[u8]) {
    for direction in [Direction::Uplink, Direction::Downlink] {
        let Ok(block) = RadioBlock::parse(direction, octets) else { continue };
        for unit in &block.units {
            if let Ok(pieces) = pieces(unit) {
                let end = pieces.iter().map(|piece| piece.from + piece.len).max();
                assert!(end.is_none_or(|end| end <= unit.octets.len()), "a piece beyond its block");
            }
        }
        let mut out = Vec::new();
        block.append(&mut out).expect("it was read");
        assert_eq!(RadioBlock::parse(direction, &out).as_ref(), Ok(&block), "what was read is written");
    }
    let _ = DownlinkAckNack::parse(octets);
    let _ = UplinkAckNack::parse(octets);
}

//! The GSMTAP header in front of blocks in captures.

use airloom_base::Direction;

use super::grid::Grid;

/// Octets of the header.
pub const HEADER: usize = 16;

/// Kind of block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Packet data traffic channel: RLC data blocks.
    Pdtch = 13,
    /// Packet associated control channel: control blocks.
    Pacch = 11,
}

/// Appends the header for a block in block period `n` on timeslot `timeslot`.
pub fn append(out: &mut Vec<u8>, channel: Channel, direction: Direction, timeslot: u8, n: u64) {
    // Version 2, length in words of 32 bits, type 1 (Um), timeslot.
    out.extend_from_slice(&[2, (HEADER / 4) as u8, 1, timeslot]);
    // ARFCN 0; 0x4000 marks the uplink. Signal level and SNR are not known.
    let arfcn: u16 = if direction == Direction::Uplink { 0x4000 } else { 0 };
    out.extend_from_slice(&arfcn.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    // Frame numbers count modulo 26 x 51 x 2048.
    let frame = (Grid::frame(n) % 2_715_648) as u32;
    out.extend_from_slice(&frame.to_be_bytes());
    out.extend_from_slice(&[channel as u8, 0, 0, 0]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_uplink_control_block_is_marked_as_one() {
        let mut out = Vec::new();
        append(&mut out, Channel::Pacch, Direction::Uplink, 3, 13);
        assert_eq!(out, [2, 4, 1, 3, 0x40, 0, 0, 0, 0, 0, 0, 56, 11, 0, 0, 0]);
    }
}

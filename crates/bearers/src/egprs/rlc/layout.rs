//! How an RLC data block is cut from LLC frames.

use crate::cell::Delivered;
use crate::egprs::coding_scheme::PADDING;
use crate::egprs::llc::Frames;
use crate::egprs::wire::block::{FILLER, FILLER_OCTET, Unit, li_octet};

/// Most length indicators of a block: with frames of ten octets or more no block needs as many.
const INDICATORS: usize = 8;

/// Which octets of which frames a block holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Octets of the block as first sent.
    pub octets: u8,
    count: u8,
    li: [u8; INDICATORS],
    /// The first frame with octets in it, and how many of its octets are in blocks before.
    pub frame: u32,
    offset: u16,
}

impl Layout {
    /// Cuts a block of `octets` from what waits, if anything does. `owes_end`: the block before ended exactly with a
    /// frame, which nothing tells yet.
    pub fn cut(frames: &mut Frames, octets: usize, owes_end: &mut bool) -> Option<Layout> {
        if !frames.has_data() && !*owes_end {
            return None;
        }
        let (frame, offset) = frames.position();
        let mut block = Layout { octets: octets as u8, frame, offset, ..Layout::default() };
        let mut room = octets;
        if std::mem::take(owes_end) {
            block.indicate(0, &mut room);
        }
        while room > 0 {
            let rest = usize::from(frames.rest().unwrap_or(0));
            let has_indicator = usize::from(block.count) + 1 < INDICATORS;
            if rest == 0 || rest < room && !has_indicator {
                //= TS 44.060 (10.4.14a): 127: there is nothing more, the rest is filler.
                block.indicate(FILLER, &mut room);
                break;
            }
            if rest < room {
                block.indicate(rest as u8, &mut room);
                frames.take(rest as u16);
                frames.finish();
                room -= rest;
            } else {
                frames.take(room as u16);
                if rest == room {
                    frames.finish();
                    *owes_end = true;
                }
                break;
            }
        }
        Some(block)
    }

    fn indicate(&mut self, value: u8, room: &mut usize) {
        self.li[usize::from(self.count)] = value;
        self.count += 1;
        *room -= 1;
    }

    fn indicators(&self) -> &[u8] {
        &self.li[..usize::from(self.count)]
    }

    /// Does it tell the end of the frame before its first?
    pub fn tells_end_before(&self) -> bool {
        self.indicators().first() == Some(&0)
    }

    /// Calls `piece(frame, octets, ends)` for each frame with octets, or just its end, in the block.
    fn pieces(&self, mut piece: impl FnMut(u32, usize, bool)) {
        let mut room = usize::from(self.octets) - usize::from(self.count);
        let mut frame = self.frame;
        for li in self.indicators() {
            match *li {
                0 => piece(frame.wrapping_sub(1), 0, true),
                FILLER => return,
                len => {
                    piece(frame, len.into(), true);
                    frame = frame.wrapping_add(1);
                    room -= usize::from(len);
                }
            }
        }
        if room > 0 {
            piece(frame, room, false);
        }
    }

    /// The block came: its frames come closer to being whole.
    pub fn receive(&self, frames: &mut Frames, out: &mut Vec<Delivered>) {
        self.pieces(|frame, octets, ends| frames.receive(frame, octets as u16 + u16::from(ends), out));
    }

    /// The block's octets with their E bit; the other bit is `flag`.
    pub fn unit(&self, frames: &Frames, flag: bool) -> Unit {
        let mut octets = Vec::with_capacity(usize::from(self.octets));
        let count = self.indicators().len();
        octets.extend(self.indicators().iter().enumerate().map(|(n, li)| li_octet(*li, n + 1 < count)));
        let (mut offset, mut whole) = (usize::from(self.offset), Vec::new());
        self.pieces(|frame, len, _| {
            if len > 0 {
                whole.clear();
                frames.append_octets(frame, &mut whole);
                octets.extend(whole.iter().skip(offset).take(len));
                offset = 0;
            }
        });
        octets.resize(self.octets.into(), FILLER_OCTET);
        Unit { has_li: count > 0, flag, octets }
    }
}

/// One of two halves of a block's octets (the second if `second`), as MCS-1 to MCS-3 carry them.
///
//= TS 44.060 (10.3a.3): a block of MCS-8 is filled up to 74 octets first.
pub fn half(unit: &Unit, second: bool) -> Unit {
    let padded = pad(unit);
    let middle = padded.octets.len() / 2;
    let octets = if second { &padded.octets[middle..] } else { &padded.octets[..middle] };
    Unit { octets: octets.to_vec(), ..padded }
}

/// The block as MCS-6 carries it: with filler in front if it was first sent with MCS-8.
pub fn pad(unit: &Unit) -> Unit {
    let mut octets = Vec::with_capacity(unit.octets.len() + PADDING);
    if unit.octets.len() == 68 {
        octets.resize(PADDING, FILLER_OCTET);
    }
    octets.extend_from_slice(&unit.octets);
    Unit { octets, ..*unit }
}

#[cfg(test)]
mod tests {
    use airloom_base::{Body, Direction, Instant, Packet};

    use super::*;
    use crate::egprs::wire::block::pieces;

    fn frames(lens: &[u32]) -> Frames {
        let mut frames = Frames::new(Direction::Uplink, 1520, true);
        for (n, len) in lens.iter().enumerate() {
            let mut packet = Packet::build(|_| 0, Body::filler(1, *len));
            packet.set_id(n as u64 + 1);
            frames.push(packet, Instant::ZERO, 0);
        }
        frames
    }

    /// All blocks of so many octets.
    fn blocks(frames: &mut Frames, octets: usize) -> Vec<Layout> {
        let mut owes = false;
        std::iter::from_fn(|| Layout::cut(frames, octets, &mut owes)).collect()
    }

    #[test]
    fn a_packet_of_1500_octets_is_35_blocks_of_mcs_4() {
        assert_eq!(blocks(&mut frames(&[1500]), 44).len(), 35);
    }

    #[test]
    fn an_end_that_fills_its_block_is_told_in_the_next() {
        // 34 + 10 octets of framing fill MCS-4 exactly.
        let mut f = frames(&[34]);
        let all = blocks(&mut f, 44);
        assert_eq!((all[0].indicators(), all[1].indicators()), (&[][..], &[0, FILLER][..]));
        let mut out = Vec::new();
        all[0].receive(&mut f, &mut out);
        assert!(out.is_empty());
        all[1].receive(&mut f, &mut out);
        assert_eq!(out.len(), 1);
    }

    #[test]
    fn octets_put_together_by_the_indicators_are_the_frames() {
        for size in [22, 28, 37, 44, 56, 68, 74] {
            let lens = [1, 33, 34, 12, 12, 12, 700, 20, 21, 22, 23, 24, 58, 1500];
            let mut f = frames(&lens);
            let cut = blocks(&mut f, size);
            let mut came: Vec<Vec<u8>> = vec![Vec::new()];
            for block in &cut {
                let unit = block.unit(&f, false);
                assert_eq!(unit.octets.len(), size);
                for piece in pieces(&unit).unwrap() {
                    came.last_mut().unwrap().extend(&unit.octets[piece.from..piece.from + piece.len]);
                    if piece.ends {
                        came.push(Vec::new());
                    }
                }
            }
            assert_eq!(came.pop(), Some(Vec::new()));
            let expected: Vec<Vec<u8>> = (0..lens.len() as u32)
                .map(|n| {
                    let mut octets = Vec::new();
                    f.append_octets(n, &mut octets);
                    octets
                })
                .collect();
            assert_eq!(came, expected, "{size}");
            let mut out = Vec::new();
            cut.iter().for_each(|block| block.receive(&mut f, &mut out));
            assert_eq!(out.len(), lens.len());
        }
    }

    #[test]
    fn halves_of_a_block_make_it_whole() {
        let unit = Unit { has_li: true, flag: false, octets: (0..68).collect() };
        let both = [half(&unit, false).octets, half(&unit, true).octets].concat();
        assert_eq!((both.len(), &both[PADDING..]), (74, &unit.octets[..]));
    }
}

//! Transport channels: how many blocks leave in a transmission time interval, and the sets in flight.

use std::collections::VecDeque;

use airloom_base::units::Rate;
use airloom_base::{Duration, Instant};

use super::rlc::am::Pdu;

/// Rates of the reference bearers in kbit/s with their TTI in ms, for blocks of 336 bits (320 of RLC payload).
///
/// 8 and 64 kbit/s are those of TS 34.108 6.11; the others follow the same pattern.
const REFERENCE: &[(u64, u64)] =
    &[(8, 40), (16, 20), (32, 20), (64, 20), (128, 20), (144, 20), (256, 20), (384, 10)];

/// The longest TTI of these.
pub const LONGEST_TTI: Duration = Duration::from_millis(40);

/// A transport format: up to `blocks` blocks every `tti`.
///
/// All numbers of blocks from 0 on are allowed: a set that is not full is not filled up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransportFormat {
    /// Transmission time interval.
    pub tti: Duration,
    /// Largest number of blocks in one.
    pub blocks: u16,
    /// When the first one begins; less than `tti`.
    pub offset: Duration,
}

impl TransportFormat {
    /// The format for `rate` of RLC payload in PDUs of `pdu_octets` octets; the TTI is the reference bearer's unless
    /// given. The error says what would be possible.
    pub fn new(rate: Rate, tti: Option<Duration>, pdu_octets: u16) -> Result<Self, String> {
        let bits = rate.bits_per_second();
        let known = REFERENCE.iter().find(|(kbit, _)| kbit * 1000 == bits);
        let Some(tti) = tti.or(known.map(|(_, ms)| Duration::from_millis(*ms))) else {
            let valid: Vec<String> = REFERENCE.iter().map(|(kbit, _)| kbit.to_string()).collect();
            return Err(format!(
                "`{rate}` is no rate of a dedicated channel; valid: {} kbit/s (others only with a `tti` of your own)",
                valid.join(", ")
            ));
        };
        let payload = u128::from(pdu_octets - 2) * 8;
        let bits_per_tti = u128::from(bits) * u128::from(tti.as_nanos());
        let per_block = payload * 1_000_000_000;
        if bits_per_tti == 0 || !bits_per_tti.is_multiple_of(per_block) || bits_per_tti / per_block > 1000 {
            return Err(format!(
                "`{rate}` is not a whole number (1 to 1000) of PDUs with {payload} payload bits every {tti} (`rate`, `tti`)"
            ));
        }
        Ok(TransportFormat { tti, blocks: (bits_per_tti / per_block) as u16, offset: Duration::ZERO })
    }
    /// The same with a grid that begins `offset` (less than a TTI counts) after the run.
    pub fn with_offset(self, offset: Duration) -> Self {
        TransportFormat { offset: Duration::from_nanos(offset.as_nanos() % self.tti.as_nanos()), ..self }
    }

    /// The first grid position at `at` or after it.
    pub fn slot_from(&self, at: Instant) -> Instant {
        let (tti, offset) = (self.tti.as_nanos(), self.offset.as_nanos());
        let slot = at.as_nanos().saturating_sub(offset).div_ceil(tti);
        Instant::from_nanos(slot.saturating_mul(tti).saturating_add(offset))
    }
    /// Number of the grid position that contains `at`.
    #[inline]
    pub fn slot_number(&self, at: Instant) -> u64 {
        at.as_nanos() / self.tti.as_nanos()
    }
}

/// A block in flight that will arrive.
#[derive(Clone, Copy, Debug)]
pub struct Flight {
    /// The data PDU (without header octets if the block is a control PDU).
    pub pdu: Pdu,
    /// Octets of the control PDU, or of the piggybacked STATUS, in the queue of control octets.
    pub control: u16,
    /// Which transmission, from 1.
    pub attempt: u8,
}

/// Blocks in the order in which they were sent, with their control octets.
#[derive(Default)]
pub struct Blocks {
    flights: VecDeque<Flight>,
    control: VecDeque<u8>,
}

impl Blocks {
    /// One more; `control` are its control octets.
    #[inline]
    pub fn push(&mut self, pdu: &Pdu, control: &[u8], attempt: u8) {
        self.flights.push_back(Flight { pdu: *pdu, control: control.len() as u16, attempt });
        self.control.extend(control);
    }
    /// The next; its control octets replace those in `control`.
    #[inline]
    pub fn pop(&mut self, control: &mut Vec<u8>) -> Option<Flight> {
        let flight = self.flights.pop_front()?;
        control.clear();
        if flight.control > 0 {
            control.extend(self.control.drain(..usize::from(flight.control)));
        }
        Some(flight)
    }
    /// The first `count` of them, if there are so many, go to the end of `other`.
    pub fn hand_on(&mut self, count: usize, other: &mut Blocks) {
        let count = count.min(self.flights.len());
        let octets: usize = self.flights.iter().take(count).map(|flight| usize::from(flight.control)).sum();
        other.flights.extend(self.flights.drain(..count));
        other.control.extend(self.control.drain(..octets));
    }
    /// How many there are.
    pub fn len(&self) -> usize {
        self.flights.len()
    }
    /// There are none any more.
    pub fn clear(&mut self) {
        self.flights.clear();
        self.control.clear();
    }
}

/// Blocks of one direction between sender and receiver. Blocks that will not arrive never enter.
#[derive(Default)]
pub struct Air {
    sets: VecDeque<(Instant, u16)>,
    /// Those of all sets.
    pub blocks: Blocks,
}

impl Air {
    /// The set is complete and arrives at `at` with its last `count` blocks pushed. Arrival times do not decrease.
    #[inline]
    pub fn launch(&mut self, at: Instant, count: u16) {
        if count > 0 {
            let at = self.sets.back().map_or(at, |(before, _)| at.max(*before));
            self.sets.push_back((at, count));
        }
    }
    /// When the next set arrives.
    #[inline]
    pub fn next_arrival(&self) -> Instant {
        self.sets.front().map_or(Instant::FAR_FUTURE, |(at, _)| *at)
    }
    /// The number of blocks of the set that arrives at `now` (or should have), if one does.
    #[inline]
    pub fn land(&mut self, now: Instant) -> Option<u16> {
        let &(at, count) = self.sets.front()?;
        (at <= now).then(|| {
            self.sets.pop_front();
            count
        })
    }
    /// Nothing arrives any more.
    pub fn clear(&mut self) {
        self.sets.clear();
        self.blocks.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_bearers_have_whole_numbers_of_blocks() {
        let blocks = |kbit| TransportFormat::new(Rate::kbit(kbit), None, 42).unwrap().blocks;
        let all: Vec<u16> = REFERENCE.iter().map(|(kbit, _)| blocks(*kbit)).collect();
        assert_eq!(all, [1, 1, 2, 4, 8, 9, 16, 12]);
        let slow = TransportFormat::new(Rate::kbit(256), Some(Duration::from_millis(10)), 42).unwrap();
        assert_eq!(slow.blocks, 8);
        // 384 kbit/s in blocks of 656 bits: 6 in 10 ms.
        assert_eq!(TransportFormat::new(Rate::kbit(384), None, 82).unwrap().blocks, 6);
    }

    #[test]
    fn other_rates_are_refused_with_the_valid_ones() {
        let error = |kbit, tti| TransportFormat::new(Rate::kbit(kbit), tti, 42).unwrap_err();
        assert!(error(100, None).contains("valid: 8, 16, 32, 64, 128, 144, 256, 384 kbit/s"));
        assert!(error(100, Some(Duration::from_millis(10))).contains("not a whole number"));
        assert!(error(384, Some(Duration::ZERO)).contains("not a whole number"));
    }

    #[test]
    fn the_grid_begins_with_the_run() {
        let format = TransportFormat::new(Rate::kbit(384), None, 42).unwrap();
        let at = |us| Instant::ZERO + Duration::from_micros(us);
        assert_eq!(format.slot_from(at(0)), at(0));
        assert_eq!(format.slot_from(at(1)), at(10_000));
        assert_eq!(format.slot_from(at(10_000)), at(10_000));
        assert_eq!(format.slot_number(at(25_000)), 2);
    }

    #[test]
    fn a_grid_may_begin_later_and_keeps_its_numbers() {
        let format = TransportFormat::new(Rate::kbit(64), None, 42).unwrap();
        let at = |us| Instant::ZERO + Duration::from_micros(us);
        for offset_ms in [5, 25, 1005] {
            let late = format.with_offset(Duration::from_millis(offset_ms));
            for (from, slot) in [(0, 5_000), (5_000, 5_000), (5_001, 25_000), (24_999, 25_000)] {
                assert_eq!(late.slot_from(at(from)), at(slot));
                assert_eq!(late.slot_number(at(slot)), format.slot_number(at(slot)));
            }
        }
        assert_eq!(format.with_offset(format.tti), format);
    }

    #[test]
    fn sets_land_in_order_with_their_octets() {
        let mut air = Air::default();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        air.blocks.push(&Pdu::default(), &[1, 2], 1);
        air.launch(at(40), 1);
        air.launch(at(45), 0);
        air.blocks.push(&Pdu::new(1, 0), &[], 2);
        air.launch(at(30), 1);
        assert_eq!(air.next_arrival(), at(40));
        assert_eq!(air.land(at(39)), None);
        let mut control = Vec::new();
        assert_eq!(air.land(at(40)), Some(1));
        assert_eq!(air.blocks.pop(&mut control).unwrap().attempt, 1);
        assert_eq!(control, [1, 2]);
        assert_eq!(air.next_arrival(), at(40), "a shorter delay does not overtake");
        assert_eq!(air.land(at(40)), Some(1));
        assert_eq!(air.blocks.pop(&mut control).unwrap().attempt, 2);
        assert!(control.is_empty() && air.land(at(99)).is_none());
    }
}

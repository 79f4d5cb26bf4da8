//! Octets there and back, and octets that mean nothing.

use airloom_base::Direction;
use proptest::prelude::*;

use super::block::{Piece, li_octet, pieces};
use super::header::Split;
use super::quality::Bep;
use super::*;
use crate::egprs::coding_scheme::{Cps, HeaderType, Mcs};

fn header(direction: Direction, cps: Cps, bsn: [u16; 2], split: Split) -> Header {
    match direction {
        Direction::Downlink => Header::Downlink(DownlinkHeader {
            usf: 5,
            poll: Poll::First,
            rrbp: 1,
            tfi: 19,
            pr: 2,
            bsn,
            cps,
            split,
        }),
        Direction::Uplink => Header::Uplink(UplinkHeader {
            retry: false,
            is_stalled: true,
            cv: 9,
            tfi: 19,
            bsn,
            cps,
            split,
            is_resent: true,
            has_pfi: false,
        }),
    }
}

fn block(direction: Direction, cps: Cps, bsn: u16, split: Split) -> RadioBlock {
    let mcs = cps.mcs;
    let second = if mcs.blocks() == 2 { (bsn + 40) % SNS } else { bsn };
    let unit = |n: usize| Unit {
        has_li: n == 0,
        flag: n == 1,
        octets: (0..mcs.octets()).map(|i| (i * 7 + n) as u8).collect(),
    };
    RadioBlock {
        header: header(direction, cps, [bsn, second], split),
        units: (0..mcs.blocks()).map(unit).collect(),
    }
}

#[test]
fn every_scheme_is_read_as_it_was_written() {
    for direction in Direction::BOTH {
        for (kind, bits) in [(HeaderType::One, 5), (HeaderType::Two, 3), (HeaderType::Three, 4)] {
            for cps in (0..1u8 << bits).filter_map(|code| Cps::from_code(kind, code)) {
                let halves = cps.mcs.number() <= 3;
                for split in
                    [Split::Whole, Split::First, Split::Second].into_iter().take(if halves { 3 } else { 1 })
                {
                    let block = block(direction, cps, 2040, split);
                    let mut octets = Vec::new();
                    block.append(&mut octets).unwrap();
                    assert_eq!(octets.len(), cps.mcs.radio_block_octets(direction));
                    assert_eq!(RadioBlock::parse(direction, &octets), Ok(block), "{cps:?}");
                }
            }
        }
    }
}

#[test]
fn the_bits_of_a_downlink_block_of_mcs_4_lie_where_the_standard_puts_them() {
    let cps = Cps { mcs: Mcs::new(4).unwrap(), puncturing: [1, 0], is_padded: false };
    let mut octets = Vec::new();
    let mut block = block(Direction::Downlink, cps, 0b101_1001_0110, Split::Whole);
    block.units[0] = Unit { has_li: false, flag: true, octets: vec![0xFF; 44] };
    block.append(&mut octets).unwrap();
    // Octet 1: USF 101, ES/P 01, RRBP 01, lowest bit of TFI 10011. Octet 2: its upper four, PR 10, lowest BSN bits 10.
    assert_eq!(octets[0], 0b1010_1101);
    assert_eq!(octets[1], 0b1010_1001);
    // Octet 3: the next eight of the BSN. Octet 4: its last, CPS 0001, SPB 00, E = 1. Octet 5: FBI, then the data.
    assert_eq!(octets[2], 0b0110_0101);
    assert_eq!(octets[3], 0b1000_0011);
    assert_eq!(octets[4], 0xFF);
    assert_eq!((octets.len(), octets[48]), (49, 0b1));
}

#[test]
fn length_indicators_cut_a_block_into_pieces() {
    let unit = |head: &[u8]| {
        let mut octets = head.to_vec();
        octets.resize(22, 0);
        Unit { has_li: true, flag: false, octets }
    };
    let of = |head: &[u8]| pieces(&unit(head));
    // Two ends, then the beginning of a third PDU.
    let two = of(&[li_octet(5, true), li_octet(9, false)]).unwrap();
    let piece = |from, len, ends| Piece { from, len, ends };
    assert_eq!(two, [piece(2, 5, true), piece(7, 9, true), piece(16, 6, false)]);
    // An end that the block before had no room to tell, one here, filler.
    let three = of(&[li_octet(0, true), li_octet(4, true), li_octet(127, false)]).unwrap();
    assert_eq!(three, [piece(3, 0, true), piece(3, 4, true)]);
    assert_eq!(of(&[li_octet(21, false)]).unwrap(), [piece(1, 21, true)]);
    assert_eq!(of(&[li_octet(22, false)]), Err(Error::LengthIndicator));
    assert_eq!(of(&[li_octet(4, true), li_octet(0, false)]), Err(Error::LengthIndicator));
    assert_eq!(of(&[li_octet(1, true); 22]), Err(Error::LengthIndicator));
    let whole = Unit { has_li: false, flag: false, octets: vec![0; 44] };
    assert_eq!(pieces(&whole).unwrap(), [piece(0, 44, false)]);
}

fn report(bitmap: Vec<bool>) -> AckNack {
    AckNack { is_final: false, beginning_of_window: true, end_of_window: true, ssn: 2001, bitmap }
}

/// A report on both modulations.
fn both() -> ChannelQuality {
    ChannelQuality { gmsk: Some(Bep { mean: 31, variation: 7 }), psk8: Some(Bep { mean: 17, variation: 2 }) }
}

#[test]
fn what_a_mobile_measured_is_read_as_it_was_written() {
    for quality in [
        both(),
        ChannelQuality { gmsk: None, ..both() },
        ChannelQuality { psk8: None, ..both() },
        ChannelQuality::default(),
    ] {
        let fitted = report(vec![true, false]).fit(DownlinkAckNack::room(Some(&quality)), true);
        let read =
            DownlinkAckNack::parse(&DownlinkAckNack::emit(3, Some(&quality), &fitted).unwrap()).unwrap();
        assert_eq!((read.quality, read.report.bitmap), (Some(quality), vec![true, false]));
    }
}

#[test]
fn a_report_that_does_not_fit_is_cut_and_says_so() {
    let holes: Vec<bool> = (0..300).map(|n| n % 2 == 0).collect();
    for may_compress in [false, true] {
        for (quality, room) in [(None, 136), (Some(both()), 110)] {
            let fitted = report(holes.clone()).fit(DownlinkAckNack::room(quality.as_ref()), may_compress);
            let cut = fitted.report().clone();
            assert_eq!((cut.bitmap.len(), cut.end_of_window), (room, false));
            let block = DownlinkAckNack::emit(7, quality.as_ref(), &fitted).unwrap();
            assert_eq!(DownlinkAckNack::parse(&block), Ok(DownlinkAckNack { tfi: 7, quality, report: cut }));
        }
    }
}

#[test]
fn a_window_with_few_holes_fits_whole_when_compressed() {
    let few: Vec<bool> = (0..383).map(|n| n % 61 != 5).collect();
    let fitted = report(few.clone()).fit(DownlinkAckNack::room(None), true);
    assert_eq!(fitted.report(), &report(few.clone()));
    let read = DownlinkAckNack::parse(&DownlinkAckNack::emit(0, None, &fitted).unwrap()).unwrap();
    assert_eq!(read.report, report(few));
}

#[test]
fn an_uplink_report_carries_its_commands() {
    let fitted = report(vec![true, false, true]).fit(UplinkAckNack::ROOM, true);
    let message = UplinkAckNack {
        usf: 3,
        tfi: 12,
        mcs: 9,
        resegment: true,
        pre_emptive: false,
        report: report(vec![true, false, true]),
    };
    let octets = UplinkAckNack::emit(&message, &fitted).unwrap();
    assert_eq!(UplinkAckNack::parse(&octets), Ok(message));
    assert!(DownlinkAckNack::parse(&octets).is_err());
}

proptest! {
    #[test]
    fn any_octets_are_read_without_a_panic(octets in proptest::collection::vec(any::<u8>(), 0..160)) {
        for direction in Direction::BOTH {
            if let Ok(block) = RadioBlock::parse(direction, &octets) {
                block.units.iter().for_each(|unit| drop(pieces(unit)));
            }
        }
    }

    #[test]
    fn any_octets_of_a_right_length_are_read_without_a_panic(
        octets in proptest::collection::vec(any::<u8>(), 155), mcs in 1u8..10, up: bool,
    ) {
        let direction = if up { Direction::Uplink } else { Direction::Downlink };
        let len = Mcs::new(mcs).unwrap().radio_block_octets(direction);
        if let Ok(block) = RadioBlock::parse(direction, &octets[..len]) {
            let mut again = Vec::new();
            block.append(&mut again).unwrap();
            let second = RadioBlock::parse(direction, &again);
            prop_assert_eq!(second, Ok(block.clone()));
            for unit in &block.units {
                if let Ok(pieces) = pieces(unit) {
                    prop_assert!(pieces.iter().all(|p| p.from + p.len <= unit.octets.len()));
                }
            }
        }
    }

    #[test]
    fn any_control_block_is_read_without_a_panic(mut octets in proptest::collection::vec(any::<u8>(), 23), kind in 0u8..3) {
        if kind > 0 {
            octets[0] = 0x40 | octets[0] & 7;
            octets[1] = if kind == 1 { 0x20 | octets[1] & 3 } else { 0x24 };
        }
        for report in [
            DownlinkAckNack::parse(&octets).map(|m| m.report),
            UplinkAckNack::parse(&octets).map(|m| m.report),
        ].into_iter().flatten() {
            prop_assert!(report.bitmap.len() <= 1024 + 184 && report.ssn < SNS);
        }
    }

    #[test]
    fn reports_are_read_as_they_were_fitted(
        bitmap in proptest::collection::vec(proptest::bool::weighted(0.9), 0..600), ssn in 0u16..2048, may_compress: bool,
    ) {
        let whole = bitmap.len();
        let report = AckNack { ssn, ..report(bitmap) };
        let fitted = report.clone().fit(UplinkAckNack::ROOM, may_compress);
        let message = UplinkAckNack {
            usf: 0, tfi: 0, mcs: 4, resegment: false, pre_emptive: true, report: fitted.report().clone(),
        };
        let read = UplinkAckNack::parse(&UplinkAckNack::emit(&message, &fitted).unwrap()).unwrap();
        prop_assert_eq!(&read, &message);
        let carried = read.report.bitmap.len();
        prop_assert_eq!(read.report.end_of_window, carried == whole);
        prop_assert_eq!(&read.report.bitmap[..], &report.bitmap[..carried]);
    }
}

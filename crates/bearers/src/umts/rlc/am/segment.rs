//! Cutting SDUs into PDUs of fixed size, and joining the end of one with the beginning of the next.

use super::Format;
use super::pdu::Pdu;
use super::sdu::{End, SduStore};
use super::wire::{AmdHeader, He, LiWidth, MAX_ENDS, Tail};

/// The end of an SDU that still has to be told in the next PDU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pending {
    #[default]
    None,
    /// The SDU filled the previous PDU exactly.
    Exact,
    /// It left one octet, too little for a 15-bit length indicator.
    OneShort,
}

/// Makes AMD PDUs of the octets of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segmenter {
    pending: Pending,
}

impl Segmenter {
    /// Is there anything to put into a PDU?
    #[inline]
    pub fn has_data(&self, sdus: &SduStore) -> bool {
        self.pending != Pending::None || sdus.has_data()
    }

    /// The end that was to be told will not be: its SDU was given up.
    pub fn forget_pending(&mut self) {
        self.pending = Pending::None;
    }
    /// Is the end of an SDU waiting to be told?
    pub fn is_pending(&self) -> bool {
        self.pending != Pending::None
    }

    /// The next PDU, numbered `sn`, and how many SDUs end in it; `None` if there is nothing to send.
    #[inline]
    pub fn next(&mut self, format: Format, sdus: &mut SduStore, sn: u16) -> Option<(Pdu, u16)> {
        let room = format.pdu_octets - 2;
        let (seq, offset) = sdus.position();
        let rest = sdus.rest();
        // Most PDUs are a piece from the middle of an SDU.
        if self.pending == Pending::None && rest.is_some_and(|r| r > u32::from(room)) {
            let mut pdu = Pdu::new(seq, offset);
            pdu.set_header(AmdHeader { sn, poll: false, he: He::Data });
            pdu.data_len = room;
            sdus.take(u32::from(room));
            return Some((pdu, 0));
        }
        if self.pending == Pending::None && rest.is_none() {
            return None;
        }
        Some(self.assemble(format, sdus, sn))
    }

    fn assemble(&mut self, format: Format, sdus: &mut SduStore, sn: u16) -> (Pdu, u16) {
        let li = format.li;
        let width = li.octets() as u16;
        let mut ends = 0;
        let mut pdu = self.begin(li, sdus, sn, &mut ends);
        let mut he = He::Data;
        //= TS 25.322 9.2.2.9: the end of an SDU is joined by the beginning of the next to avoid padding.
        loop {
            let room = format.pdu_octets - pdu.head_len() - pdu.data_len;
            let Some(rest) = sdus.rest() else {
                pdu.tail = Tail::Padding;
                break;
            };
            if room == 0 {
                break;
            }
            if usize::from(ends) == MAX_ENDS || !pdu.has_room_for_li(li) {
                pdu.tail = Tail::Padding;
                break;
            }
            if rest > u32::from(room) {
                sdus.take(u32::from(room));
                pdu.data_len += room;
                break;
            }
            let rest = rest as u16;
            pdu.data_len += rest;
            sdus.take(u32::from(rest));
            if rest + width <= room {
                pdu.push_li(li, pdu.data_len);
                ends += 1;
                end(sdus, End { sn, li: ((pdu.head_len() - 2) / width) as u8 });
                //= TS 25.322 9.2.2.8: one octet left behind a 15-bit indicator stays empty.
                if li == LiWidth::Fifteen && room - rest - width == 1 {
                    pdu.tail = Tail::Padding;
                    break;
                }
                continue;
            }
            if rest == room && format.special_he && pdu.head_len() == 2 {
                //= TS 25.322 9.2.2.7: HE = 10 tells that the last octet of the PDU ends an SDU.
                he = He::EndOfSdu;
                ends += 1;
                end(sdus, End { sn, li: 0 });
            } else {
                //= TS 25.322 9.2.2.8: no room for the length indicator: the next PDU tells.
                self.pending = if rest == room { Pending::Exact } else { Pending::OneShort };
                sdus.finish();
            }
            break;
        }
        let left = format.pdu_octets - pdu.head_len() - pdu.data_len;
        if pdu.tail == Tail::Padding {
            if left >= width {
                pdu.push_li(li, li.padding());
            } else if left == 0 {
                pdu.tail = Tail::Data;
            }
        }
        if pdu.head_len() > 2 {
            he = He::LengthIndicator;
        }
        pdu.set_header(AmdHeader { sn, poll: false, he });
        (pdu, ends)
    }

    fn begin(&mut self, li: LiWidth, sdus: &mut SduStore, sn: u16, ends: &mut u16) -> Pdu {
        let (seq, offset) = sdus.position();
        let value = match std::mem::take(&mut self.pending) {
            Pending::None => return Pdu::new(seq, offset),
            Pending::Exact => 0,
            Pending::OneShort => LiWidth::ONE_SHORT,
        };
        let before = seq.wrapping_sub(1);
        let len = sdus.get_mut(before).map_or(0, |sdu| {
            sdu.end = Some(End { sn, li: 1 });
            sdu.len
        });
        let mut pdu = Pdu::new(before, len);
        pdu.push_li(li, value);
        *ends += 1;
        pdu
    }
}

/// The SDU being cut ends at `end`.
fn end(sdus: &mut SduStore, end: End) {
    let (seq, _) = sdus.position();
    if let Some(sdu) = sdus.get_mut(seq) {
        sdu.end = Some(end);
    }
    sdus.finish();
}

#[cfg(test)]
mod tests {
    use airloom_base::{Body, Instant, Packet};
    use proptest::prelude::*;

    use super::super::wire::Layout;
    use super::*;

    fn store(lens: &[u32]) -> SduStore {
        let mut store = SduStore::default();
        for (i, len) in lens.iter().enumerate() {
            store.push(Packet::build(|_| 0, Body::filler(i as u32, *len)), Instant::ZERO, Instant::ZERO);
        }
        store
    }

    fn pdus(format: Format, sdus: &mut SduStore) -> Vec<Pdu> {
        let mut segmenter = Segmenter::default();
        (0..).map_while(|sn| segmenter.next(format, sdus, sn).map(|(pdu, _)| pdu)).collect()
    }

    fn shape(format: Format, lens: &[u32]) -> Vec<(Vec<u16>, Tail, u16)> {
        let pdus = pdus(format, &mut store(lens));
        pdus.iter()
            .map(|p| {
                let layout = Layout::parse(p.head(), format.pdu_octets.into(), format.li).unwrap();
                assert_eq!(
                    (layout.tail, layout.data_len(format.pdu_octets.into()) as u16),
                    (p.tail, p.data_len)
                );
                (layout.ends().to_vec(), p.tail, p.data_len)
            })
            .collect()
    }

    const DEFAULT: Format = Format::new(42, false);

    #[test]
    fn the_worked_example_of_116_octets() {
        let expected = [(vec![], Tail::Data, 40), (vec![], Tail::Data, 40), (vec![36], Tail::Padding, 36)];
        assert_eq!(shape(DEFAULT, &[116]), expected);
    }

    #[test]
    fn a_1500_octet_sdu_alone_needs_38_pdus() {
        let all = shape(DEFAULT, &[1500]);
        assert_eq!(all.len(), 38);
        assert_eq!(all[37], (vec![20], Tail::Padding, 20));
    }

    #[test]
    fn an_sdu_that_fills_its_last_pdu_ends_in_the_next() {
        assert_eq!(shape(DEFAULT, &[40]), [(vec![], Tail::Data, 40), (vec![0], Tail::Padding, 0)]);
        assert_eq!(
            shape(DEFAULT, &[40, 50])[1..],
            [(vec![0], Tail::Data, 39), (vec![11], Tail::Padding, 11)]
        );
        assert_eq!(shape(Format::new(42, true), &[40]), [(vec![40], Tail::Data, 40)]);
    }

    #[test]
    fn an_sdu_and_its_indicator_may_fill_a_pdu() {
        assert_eq!(shape(DEFAULT, &[39]), [(vec![39], Tail::Data, 39)]);
        assert_eq!(shape(DEFAULT, &[38]), [(vec![38], Tail::Padding, 38)]);
    }

    #[test]
    fn sdus_are_concatenated() {
        let all = shape(DEFAULT, &[20, 30]);
        assert_eq!(all, [(vec![20], Tail::Data, 39), (vec![11], Tail::Padding, 11)]);
    }

    #[test]
    fn wide_indicators_leave_an_odd_octet_empty() {
        let wide = Format::new(200, false);
        // 197 of 198 octets: one short, told by the next PDU.
        let short = pdus(wide, &mut store(&[197]));
        assert_eq!(short.iter().map(|p| p.data_len).collect::<Vec<_>>(), [197, 0]);
        assert!(Layout::parse(short[1].head(), 200, wide.li).unwrap().one_short);
        // 195 octets and the indicator leave one octet: padding, though more data waits.
        assert_eq!(shape(wide, &[195, 10]), [(vec![195], Tail::Padding, 195), (vec![10], Tail::Padding, 10)]);
    }

    #[test]
    fn pdus_of_very_small_sdus_are_padded_when_no_more_ends_fit() {
        let lens = [1; 60];
        let all = shape(DEFAULT, &lens);
        assert_eq!(all.iter().map(|(ends, ..)| ends.len()).sum::<usize>(), 60);
        assert!(all.iter().all(|(ends, ..)| ends.len() <= MAX_ENDS));
    }

    /// Joins octets of PDUs again, knowing nothing but the wire format.
    fn reassemble(format: Format, octets: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let (mut done, mut current) = (Vec::new(), Vec::new());
        for pdu in octets {
            let layout = Layout::parse(pdu, pdu.len(), format.li).unwrap();
            let data = &pdu[layout.head_len..];
            let mut from = 0;
            for (i, end) in layout.ends().iter().map(|e| usize::from(*e)).enumerate() {
                if layout.one_short && i == 0 {
                    current.pop();
                }
                current.extend_from_slice(&data[from..end]);
                done.push(std::mem::take(&mut current));
                from = end;
            }
            if layout.tail == Tail::Data {
                current.extend_from_slice(&data[from..]);
            }
        }
        assert!(current.is_empty());
        done
    }

    proptest! {
        #[test]
        fn any_sdus_survive_cutting_and_joining(
            lens in prop::collection::vec(1u32..700, 1..40),
            pdu_octets in prop::sample::select(vec![12u16, 42, 82, 126, 127, 170, 400]),
            special_he in any::<bool>(),
        ) {
            let format = Format::new(pdu_octets, special_he);
            let mut sdus = store(&lens);
            let octets: Vec<Vec<u8>> = pdus(format, &mut sdus).iter().map(|p| {
                let mut out = Vec::new();
                p.append_octets(format, &sdus, &[], &mut out);
                out
            }).collect();
            prop_assert!(octets.iter().all(|o| o.len() == usize::from(pdu_octets)));
            let sent: Vec<Vec<u8>> =
                lens.iter().enumerate().map(|(i, n)| Body::filler(i as u32, *n).to_bytes().to_vec()).collect();
            prop_assert_eq!(reassemble(format, &octets), sent);
        }
    }
}

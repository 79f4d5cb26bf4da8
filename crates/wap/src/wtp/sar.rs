//! Segmentation and re-assembly (WAP-224 section 7.14): a message goes in packets, packets go in groups, and one group
//! at a time is outstanding.

use bytes::{Bytes, BytesMut};

use super::wire::Trailer;

/// How many packets can be numbered.
pub const MAX_PACKETS: usize = 256;

/// One packet of a message, ready for a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Packet sequence number.
    pub psn: u8,
    /// Place in its group.
    pub trailer: Trailer,
    /// Its part of the message.
    pub data: Bytes,
}

/// How a message is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Octets of a packet.
    pub segment: usize,
    /// Packets of a group.
    pub group: usize,
    /// Can the other side re-assemble, and we segment?
    pub sar: bool,
}

/// A message on its way out.
#[derive(Debug)]
pub struct Sending {
    message: Bytes,
    cut: Cut,
    /// First packet of the group that is outstanding, and of the one after it.
    group: usize,
    next: usize,
    /// Where in the message the group begins, and octets of each of its packets.
    from: usize,
    segment: usize,
}

impl Sending {
    /// Ready to send the first group; `None` if the message has more packets than can be numbered.
    pub fn new(message: Bytes, cut: Cut) -> Option<Sending> {
        let cut = Cut { segment: cut.segment.max(1), group: cut.group.max(1), ..cut };
        let mut sending = Sending { message, cut, group: 0, next: 0, from: 0, segment: cut.segment };
        let packets = sending.left(0, cut.segment);
        sending.next = packets.min(cut.group);
        (packets <= MAX_PACKETS).then_some(sending)
    }

    /// Has the message more than one packet?
    pub fn is_segmented(&self) -> bool {
        self.group > 0 || self.next > 1 || !self.is_last()
    }

    /// Packets of so many octets that the message has from an octet of it on.
    fn left(&self, from: usize, segment: usize) -> usize {
        if self.cut.sar { (self.message.len() - from).div_ceil(segment).max(1) } else { 1 }
    }

    /// Gives the group that is to be sent next so many packets of so many octets, if the rest can then still be numbered and is more than
    /// nothing. Says whether it did.
    pub(super) fn shape(&mut self, packets: usize, segment: usize) -> bool {
        let end = self.from + packets * segment;
        let fits = self.cut.sar
            && segment > 0
            && end < self.message.len()
            && self.group + packets + self.left(end, self.cut.segment) <= MAX_PACKETS;
        if fits {
            (self.next, self.segment) = (self.group + packets, segment);
        }
        fits
    }

    /// Octets of the message in the group that is outstanding.
    pub(super) fn octets(&self) -> usize {
        if self.cut.sar { self.end() - self.from } else { self.message.len() }
    }

    /// Octets of the message from the beginning of that group on, and in how many packets.
    pub(super) fn rest(&self) -> (usize, usize) {
        (self.message.len() - self.from, self.left(self.from, self.cut.segment))
    }

    /// Where the group that is outstanding ends.
    fn end(&self) -> usize {
        (self.from + (self.next - self.group) * self.segment).min(self.message.len())
    }

    /// Packets of the group that is outstanding.
    pub(super) fn packets(&self) -> std::ops::Range<usize> {
        self.group..self.next
    }

    fn segment(&self, psn: usize) -> Segment {
        if !self.cut.sar {
            return Segment { psn: 0, trailer: Trailer::NoSar, data: self.message.clone() };
        }
        let from = self.from + (psn - self.group) * self.segment;
        let to = (from + self.segment).min(self.message.len());
        let trailer = if psn + 1 == self.next && self.is_last() {
            Trailer::Message
        } else if psn + 1 == self.next {
            Trailer::Group
        } else {
            Trailer::None
        };
        Segment { psn: psn as u8, trailer, data: self.message.slice(from..to) }
    }

    /// The packets of the group that is outstanding.
    pub fn group(&self) -> impl Iterator<Item = Segment> {
        (self.group..self.next).map(|psn| self.segment(psn))
    }

    /// Its last packet, which is repeated when no answer comes.
    pub fn last(&self) -> Segment {
        self.segment(self.next - 1)
    }

    /// Those of its packets that are missing; all if none is named.
    pub fn missing<'a>(&'a self, named: &'a [u8]) -> impl Iterator<Item = Segment> + 'a {
        self.group().filter(|s| named.is_empty() || named.contains(&s.psn))
    }

    /// An acknowledgement that names `psn` (none: of a message in one packet). Does it concern the group that is
    /// outstanding?
    pub fn is_acknowledged_by(&self, psn: Option<u8>) -> bool {
        match psn {
            Some(psn) => usize::from(psn) + 1 == self.next,
            // Kannel's client names the packet with the number 0 so, too.
            None => self.is_last() || self.next == 1,
        }
    }

    /// Is the group that is outstanding the last one?
    pub fn is_last(&self) -> bool {
        !self.cut.sar || self.end() == self.message.len()
    }

    /// The group was acknowledged: on to the next one.
    pub fn advance(&mut self) {
        (self.from, self.group) = (self.end(), self.next);
        self.segment = self.cut.segment;
        self.next = self.group + self.left(self.from, self.segment).min(self.cut.group);
    }
}

/// What a packet of a message brought about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// Nothing to answer.
    Quiet,
    /// The group that ends with this packet is complete: acknowledge it, maybe again.
    GroupComplete {
        /// Its last packet.
        end: u8,
        /// That was said before.
        again: bool,
    },
    /// These packets of the group are missing.
    Missing(Vec<u8>),
    /// The message is complete, its last packet is this one.
    Complete(u8),
}

/// Octets that a packet is counted for at least where the memory is bounded, since an empty one takes some too.
const LEAST: usize = 64;

/// A message on its way in.
#[derive(Debug, Default)]
pub struct Receiving {
    packets: Vec<Option<Bytes>>,
    /// Octets of the message that are here.
    octets: usize,
    /// The last packet of the latest group, where it is known.
    group_end: Option<(u8, Trailer)>,
}

impl Receiving {
    /// A packet arrived, `repeated` (RID) or for the first time. `None` if it would make the message larger than `limit`.
    ///
    /// A packet that is held already is a question only where its sender repeats the end of a group, having heard no answer.
    /// Every other copy comes of a network, or of a sender that takes a copy of an acknowledgement for one: answering
    /// that one again (Kannel sends its whole group anew) would keep each copy alive for the rest of the message.
    pub fn packet(
        &mut self,
        psn: u8,
        trailer: Trailer,
        repeated: bool,
        data: Bytes,
        limit: usize,
    ) -> Option<Received> {
        let place = usize::from(psn);
        if self.packets.len() <= place {
            self.packets.resize(place + 1, None);
        }
        let again = self.packets[place].is_some();
        if again {
            if !(repeated && trailer.wants_answer()) {
                return Some(Received::Quiet);
            }
        } else {
            if self.octets + data.len() > limit {
                return None;
            }
            self.octets += data.len();
            // A copy: what came along in its datagram, which is as large as anybody likes, goes.
            self.packets[place] = Some(Bytes::copy_from_slice(&data));
        }
        if trailer.wants_answer() && self.group_end.is_none_or(|(end, _)| psn >= end) {
            self.group_end = Some((psn, trailer));
        }
        Some(match self.group_end {
            // An earlier group was repeated, since its acknowledgement was lost.
            Some((end, _)) if trailer.wants_answer() && psn < end => {
                Received::GroupComplete { end: psn, again }
            }
            Some((end, _)) if trailer.wants_answer() || psn < end => match self.standing(again) {
                // Asked for once when the group ended; what then fills one of several holes is no reason to ask again.
                Some(Received::Missing(_)) if !trailer.wants_answer() => Received::Quiet,
                standing => standing.unwrap_or(Received::Quiet),
            },
            _ => Received::Quiet,
        })
    }

    /// What is to be said of all that was received so far, if a group has ended; `again`, if it was said before.
    pub fn standing(&self, again: bool) -> Option<Received> {
        let (end, last) = self.group_end?;
        let missing = self.missing(end);
        Some(match (missing.is_empty(), last.ends_message()) {
            (true, true) => Received::Complete(end),
            (true, false) => Received::GroupComplete { end, again },
            (false, _) => Received::Missing(missing),
        })
    }

    fn missing(&self, end: u8) -> Vec<u8> {
        (0..=end).filter(|psn| self.packets.get(usize::from(*psn)).is_none_or(Option::is_none)).collect()
    }

    /// What is missing up to the end of the latest group.
    pub fn missing_now(&self) -> Option<Vec<u8>> {
        let (end, _) = self.group_end?;
        Some(self.missing(end)).filter(|m| !m.is_empty())
    }

    /// What it is counted for where the memory is bounded.
    pub fn held(&self) -> usize {
        self.octets.max(LEAST * self.packets.len())
    }

    /// The whole message, when it is complete.
    pub fn into_message(self) -> Bytes {
        let mut packets = self.packets.into_iter().flatten();
        match (packets.next(), packets.next()) {
            (Some(only), None) => only,
            (first, second) => {
                let mut whole = BytesMut::with_capacity(self.octets);
                for packet in first.into_iter().chain(second).chain(packets) {
                    whole.extend_from_slice(&packet);
                }
                whole.freeze()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUT: Cut = Cut { segment: 10, group: 3, sar: true };

    fn message(len: usize) -> Bytes {
        (0..len).map(|n| n as u8).collect::<Vec<u8>>().into()
    }

    fn shape(segments: impl Iterator<Item = Segment>) -> Vec<(u8, Trailer, usize)> {
        segments.map(|s| (s.psn, s.trailer, s.data.len())).collect()
    }

    #[test]
    fn a_message_goes_in_groups_of_packets() {
        let mut s = Sending::new(message(65), CUT).unwrap();
        assert_eq!(
            shape(s.group()),
            [(0, Trailer::None, 10), (1, Trailer::None, 10), (2, Trailer::Group, 10)]
        );
        assert!(!s.is_acknowledged_by(Some(1)) && s.is_acknowledged_by(Some(2)));
        s.advance();
        assert_eq!(shape(s.missing(&[4])), [(4, Trailer::None, 10)]);
        assert_eq!(shape(s.missing(&[])).len(), 3);
        s.advance();
        assert_eq!(shape(s.group()), [(6, Trailer::Message, 5)]);
        assert!(s.is_last());
    }

    #[test]
    fn small_messages_and_those_for_peers_without_sar_are_one_packet() {
        assert_eq!(shape(Sending::new(message(10), CUT).unwrap().group()), [(0, Trailer::Message, 10)]);
        assert_eq!(shape(Sending::new(Bytes::new(), CUT).unwrap().group()), [(0, Trailer::Message, 0)]);
        let whole = Cut { sar: false, ..CUT };
        assert_eq!(shape(Sending::new(message(5000), whole).unwrap().group()), [(0, Trailer::NoSar, 5000)]);
    }

    #[test]
    fn no_more_packets_than_can_be_numbered() {
        assert!(Sending::new(message(2560), CUT).is_some());
        assert!(Sending::new(message(2561), CUT).is_none());
    }

    #[test]
    fn packets_in_any_order_become_the_message() {
        let mut sending = Sending::new(message(65), CUT).unwrap();
        let mut r = Receiving::default();
        let mut last = Received::Quiet;
        loop {
            let mut group: Vec<Segment> = sending.group().collect();
            group.reverse();
            for s in group {
                last = r.packet(s.psn, s.trailer, false, s.data, 1000).unwrap();
            }
            if sending.is_last() {
                break;
            }
            sending.advance();
        }
        assert_eq!(last, Received::Complete(6));
        assert_eq!(r.into_message(), message(65));
    }

    #[test]
    fn what_is_missing_is_named_and_a_repeated_group_is_acknowledged_again() {
        let s = Sending::new(message(65), CUT).unwrap();
        let packets: Vec<Segment> = s.group().collect();
        let mut r = Receiving::default();
        let mut take = |n: usize, repeated: bool| {
            let p = &packets[n];
            r.packet(p.psn, p.trailer, repeated, p.data.clone(), 1000).unwrap()
        };
        assert_eq!(take(2, false), Received::Missing(vec![0, 1]));
        assert_eq!(take(0, true), Received::Quiet);
        assert_eq!(take(1, true), Received::GroupComplete { end: 2, again: false });
        assert_eq!(take(2, true), Received::GroupComplete { end: 2, again: true });
    }

    #[test]
    fn copies_that_nobody_asks_about_are_not_answered() {
        let s = Sending::new(message(65), CUT).unwrap();
        let packets: Vec<Segment> = s.group().collect();
        let mut r = Receiving::default();
        let mut take = |n: usize, repeated: bool| {
            let p = &packets[n];
            r.packet(p.psn, p.trailer, repeated, p.data.clone(), 1000).unwrap()
        };
        assert_eq!(take(2, false), Received::Missing(vec![0, 1]));
        // A copy of the end made by the network: what is missing was said.
        assert_eq!(take(2, false), Received::Quiet);
        // What was thought lost was late; then comes what was sent in its place.
        let complete = Received::GroupComplete { end: 2, again: false };
        assert_eq!((take(0, false), take(1, false)), (Received::Quiet, complete));
        assert_eq!((take(0, true), take(1, true)), (Received::Quiet, Received::Quiet));
        // The group once more, of a sender that took one acknowledgement for two.
        assert_eq!([0, 1, 2].map(|n| take(n, false)), [Received::Quiet, Received::Quiet, Received::Quiet]);
    }

    #[test]
    fn a_message_beyond_the_limit_is_refused() {
        let mut r = Receiving::default();
        assert!(r.packet(0, Trailer::None, false, message(10), 15).is_some());
        assert_eq!(r.packet(1, Trailer::None, false, message(10), 15), None);
        // Repetitions cost nothing.
        assert!(r.packet(0, Trailer::None, false, message(10), 15).is_some());
        assert_eq!(r.octets, 10);
    }

    #[test]
    fn a_packet_keeps_nothing_of_its_datagram_and_a_small_one_counts_for_what_it_takes() {
        let big = Bytes::from(vec![0; 65_000]);
        let mut r = Receiving::default();
        assert!(r.packet(0, Trailer::None, false, big.slice(..1), 1000).is_some());
        assert!(big.is_unique());
        assert_eq!(r.held(), LEAST);
        assert!(r.packet(255, Trailer::None, false, message(10), 1000).is_some());
        assert_eq!(r.held(), 256 * LEAST);
        let mut whole = Receiving::default();
        assert!(whole.packet(0, Trailer::Message, false, message(1400), 1400).is_some());
        assert_eq!(whole.held(), 1400);
    }
}

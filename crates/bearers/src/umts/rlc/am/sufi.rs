//! Super-fields: the content of STATUS PDUs (TS 25.322 9.2.2.11).
//!
//! They follow each other without octet alignment from bit 4 of the PDU on. A decoder takes all of them; which ones
//! a receiver sends is its choice. Confirmed with tshark 4.0.17: LIST, BITMAP, RLIST, ACK, NO_MORE, WINDOW, MRW and
//! MRW_ACK as written here are dissected with the same numbers.

use airloom_wire::Error;
use airloom_wire::bits::{BitReader, BitWriter, OutOfBits};

use super::window::{MODULUS, add, distance};

/// Pairs, numbers or code words in one super-field.
pub const MAX_ITEMS: usize = 15;

/// One super-field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sufi {
    /// Ends the list.
    NoMore,
    /// A new transmit window for the peer.
    Window {
        /// Its size; 0 is ignored.
        wsn: u16,
    },
    /// All PDUs below are acknowledged unless named missing in the same STATUS; ends the list.
    Ack {
        /// First sequence number not acknowledged.
        lsn: u16,
    },
    /// Missing PDUs as (first, number following) pairs.
    List(List),
    /// Received and missing PDUs, a bit each.
    Bitmap(Bitmap),
    /// Missing PDUs as distances.
    Rlist(Rlist),
    /// Move the receiving window.
    Mrw(Mrw),
    /// The receiving window was moved.
    MrwAck {
        /// Echo of N_LENGTH, or 0.
        n: u8,
        /// VR(R) after the move.
        sn_ack: u16,
    },
    /// Request for a status report; `sn` was sent (flexible PDU sizes).
    Poll {
        /// VT(S) - 1 of the sender.
        sn: u16,
    },
}

/// Pairs (SN, L): this PDU and the L following are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct List {
    pairs: [(u16, u8); MAX_ITEMS],
    count: u8,
}

impl List {
    /// Adds a run of `len` (1..=16) missing PDUs; `false` if the list is full.
    pub fn push(&mut self, first: u16, len: u16) -> bool {
        let Some(pair) = self.pairs.get_mut(usize::from(self.count)) else { return false };
        *pair = (first, (len - 1) as u8);
        self.count += 1;
        true
    }
    /// The pairs.
    pub fn pairs(&self) -> &[(u16, u8)] {
        &self.pairs[..usize::from(self.count)]
    }
}

/// A bit for each of up to 128 PDUs, 1 = received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bitmap {
    /// Sequence number of the first bit.
    pub fsn: u16,
    map: [u8; 16],
    octets: u8,
}

impl Bitmap {
    /// A map of `octets` octets (1..=16) from `fsn` on, all received.
    pub fn new(fsn: u16, octets: u8) -> Self {
        Bitmap { fsn, map: [0xFF; 16], octets: octets.clamp(1, 16) }
    }
    /// Number of PDUs covered.
    pub const fn span(&self) -> u16 {
        self.octets as u16 * 8
    }
    /// Marks the PDU at `position` missing.
    pub fn set_missing(&mut self, position: u16) {
        self.map[usize::from(position / 8)] &= !(0x80 >> (position % 8));
    }
    /// Was the PDU at `position` received?
    pub const fn received(&self, position: u16) -> bool {
        self.map[(position / 8) as usize] & (0x80 >> (position % 8)) != 0
    }
}

/// Distances between missing PDUs as 4-bit code words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rlist {
    /// First missing PDU.
    pub fsn: u16,
    words: [u8; MAX_ITEMS],
    count: u8,
    last: u16,
}

/// The code word that announces a run length.
const BURST: u8 = 0b0001;

impl Rlist {
    /// A list that names `fsn` only.
    pub fn new(fsn: u16) -> Self {
        Rlist { fsn, last: fsn, ..Rlist::default() }
    }
    /// The code words.
    pub fn words(&self) -> &[u8] {
        &self.words[..usize::from(self.count)]
    }

    /// Adds the run of `len` missing PDUs that begins at `first` (beyond the last one); `false`, and nothing is
    /// added, if there is no room. The first run begins at `fsn`.
    pub fn push_run(&mut self, first: u16, len: u16) -> bool {
        let saved = *self;
        let jump = distance(self.last, first);
        let ok = (jump == 0 || self.number(jump)) && self.tail(len - 1);
        if ok {
            self.last = add(first, len - 1);
        } else {
            *self = saved;
        }
        ok
    }

    fn tail(&mut self, more: u16) -> bool {
        // As single steps a run costs a word each, as a burst the indicator and its length.
        if more <= 1 + Self::groups(more) {
            (0..more).all(|_| self.number(1))
        } else {
            self.word(BURST) && self.number(more)
        }
    }

    const fn groups(n: u16) -> u16 {
        match n {
            0..8 => 1,
            8..64 => 2,
            64..512 => 3,
            _ => 4,
        }
    }

    fn number(&mut self, n: u16) -> bool {
        let groups = Self::groups(n);
        (0..groups).all(|g| self.word(((n >> (3 * g) & 0b111) << 1) as u8 | u8::from(g + 1 == groups)))
    }

    fn word(&mut self, word: u8) -> bool {
        let Some(slot) = self.words.get_mut(usize::from(self.count)) else { return false };
        *slot = word;
        self.count += 1;
        true
    }

    /// Calls `missing` for every PDU named.
    //= TS 25.322 9.2.2.11.6: three value bits a word, least significant group first, the last bit ends the
    //= number; 0001 announces that the next number is a run length.
    pub fn each(&self, mut missing: impl FnMut(u16)) -> Result<(), Error> {
        let (mut at, mut value, mut shift, mut burst) = (self.fsn, 0u32, 0u32, false);
        missing(at);
        let mut named = 1u32;
        let mut complete = true;
        for &word in self.words() {
            if word == BURST && shift == 0 && !burst {
                burst = true;
                complete = false;
                continue;
            }
            if shift > 9 {
                return Err(Error::Malformed("number in an RLIST"));
            }
            value |= u32::from(word >> 1) << shift;
            shift += 3;
            complete = word & 1 == 1;
            if complete {
                let steps = if burst { value } else { 1 };
                named += steps;
                if value == 0 || named > u32::from(MODULUS) {
                    return Err(Error::Malformed("number in an RLIST"));
                }
                for _ in 0..steps {
                    at = add(at, if burst { 1 } else { value as u16 });
                    missing(at);
                }
                (value, shift, burst) = (0, 0, false);
            }
        }
        //= TS 25.322 9.2.2.11.6: the last word ends a number and is not the burst indicator.
        if complete { Ok(()) } else { Err(Error::Malformed("end of an RLIST")) }
    }
}

/// Move receiving window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mrw {
    sns: [u16; MAX_ITEMS],
    count: u8,
    /// LENGTH is 0: one number is there, and the SDU reaches above the configured window.
    pub above_window: bool,
    /// Which length indicator of the PDU `last` ends the last discarded SDU; 0: the PDU begins with new data.
    pub n_length: u8,
}

impl Mrw {
    /// The PDUs in which discarded SDUs end: at most 14 `before`, and that of the last one.
    pub fn new(before: &[u16], last: u16, n_length: u8) -> Self {
        let before = &before[before.len().saturating_sub(MAX_ITEMS - 1)..];
        let mut sns = [0; MAX_ITEMS];
        sns[..before.len()].copy_from_slice(before);
        sns[before.len()] = last;
        Mrw { sns, count: before.len() as u8 + 1, above_window: false, n_length }
    }
    /// The last discarded SDU ends above the configured window.
    pub fn above_window(last: u16, n_length: u8) -> Self {
        Mrw { above_window: true, ..Mrw::new(&[], last, n_length) }
    }
    /// SN_MRW of the last discarded SDU: where the window moves to.
    pub fn last(&self) -> u16 {
        self.sns[usize::from(self.count.max(1)) - 1]
    }
    /// All numbers.
    pub fn sns(&self) -> &[u16] {
        &self.sns[..usize::from(self.count)]
    }
}

impl Sufi {
    /// Its size in bits.
    pub fn bits(&self) -> usize {
        4 + match self {
            Sufi::NoMore => 0,
            Sufi::Window { .. } | Sufi::Ack { .. } | Sufi::Poll { .. } => 12,
            Sufi::List(list) => 4 + 16 * list.pairs().len(),
            Sufi::Bitmap(map) => 16 + usize::from(map.span()),
            Sufi::Rlist(list) => 16 + 4 * list.words().len(),
            Sufi::Mrw(mrw) => 8 + 12 * mrw.sns().len(),
            Sufi::MrwAck { .. } => 16,
        }
    }

    /// Writes it.
    pub fn emit(&self, w: &mut BitWriter) -> Result<(), OutOfBits> {
        let sn = |w: &mut BitWriter, sn: u16| w.write(12, u32::from(sn));
        let four = |w: &mut BitWriter, n: u8| w.write(4, u32::from(n));
        match self {
            Sufi::NoMore => four(w, 0),
            Sufi::Window { wsn } => four(w, 1).and_then(|()| sn(w, *wsn)),
            Sufi::Ack { lsn } => four(w, 2).and_then(|()| sn(w, *lsn)),
            Sufi::List(list) => {
                four(w, 3)?;
                four(w, list.count)?;
                list.pairs().iter().try_for_each(|(first, l)| sn(w, *first).and_then(|()| four(w, *l)))
            }
            Sufi::Bitmap(map) => {
                four(w, 4)?;
                four(w, map.octets - 1)?;
                sn(w, map.fsn)?;
                map.map[..usize::from(map.octets)].iter().try_for_each(|o| w.write(8, u32::from(*o)))
            }
            Sufi::Rlist(list) => {
                four(w, 5)?;
                four(w, list.count)?;
                sn(w, list.fsn)?;
                list.words().iter().try_for_each(|word| four(w, *word))
            }
            Sufi::Mrw(mrw) => {
                four(w, 6)?;
                four(w, if mrw.above_window { 0 } else { mrw.count })?;
                mrw.sns().iter().try_for_each(|s| sn(w, *s))?;
                four(w, mrw.n_length)
            }
            Sufi::MrwAck { n, sn_ack } => {
                four(w, 7)?;
                four(w, *n)?;
                sn(w, *sn_ack)
            }
            Sufi::Poll { sn: poll } => four(w, 8).and_then(|()| sn(w, *poll)),
        }
    }

    fn parse(r: &mut BitReader) -> Result<Sufi, Error> {
        let mut read = |width| r.read(width).map_err(|OutOfBits| Error::Truncated);
        Ok(match read(4)? {
            0 => Sufi::NoMore,
            1 => Sufi::Window { wsn: read(12)? as u16 },
            2 => Sufi::Ack { lsn: read(12)? as u16 },
            3 => {
                let mut list = List { count: read(4)? as u8, ..List::default() };
                //= TS 25.322 9.2.2.11.4: a LIST of length 0 is invalid and its STATUS is discarded.
                if list.count == 0 {
                    return Err(Error::Malformed("LIST of length 0"));
                }
                for pair in &mut list.pairs[..usize::from(list.count)] {
                    *pair = (read(12)? as u16, read(4)? as u8);
                }
                Sufi::List(list)
            }
            4 => {
                let octets = read(4)? as u8 + 1;
                let mut map = Bitmap::new(read(12)? as u16, octets);
                for octet in &mut map.map[..usize::from(octets)] {
                    *octet = read(8)? as u8;
                }
                Sufi::Bitmap(map)
            }
            5 => {
                let count = read(4)? as u8;
                let mut list = Rlist { count, ..Rlist::new(read(12)? as u16) };
                for word in &mut list.words[..usize::from(count)] {
                    *word = read(4)? as u8;
                }
                let mut last = list.fsn;
                list.each(|sn| last = sn)?;
                Sufi::Rlist(Rlist { last, ..list })
            }
            6 => {
                let length = read(4)? as u8;
                let mut mrw = Mrw { count: length.max(1), above_window: length == 0, ..Mrw::default() };
                for sn in &mut mrw.sns[..usize::from(length.max(1))] {
                    *sn = read(12)? as u16;
                }
                mrw.n_length = read(4)? as u8;
                Sufi::Mrw(mrw)
            }
            7 => Sufi::MrwAck { n: read(4)? as u8, sn_ack: read(12)? as u16 },
            8 => Sufi::Poll { sn: read(12)? as u16 },
            _ => return Err(Error::Malformed("type of super-field")),
        })
    }
}

/// Super-fields of a STATUS PDU one after another, up to the one that ends the list.
#[derive(Clone, Debug)]
pub struct Sufis<'a> {
    bits: BitReader<'a>,
    done: bool,
}

impl<'a> Sufis<'a> {
    /// Those of `status`, a STATUS PDU (piggybacked or not) from its first octet on.
    pub fn of(status: &'a [u8]) -> Self {
        let mut bits = BitReader::new(status);
        let done = bits.read(4).is_err();
        Sufis { bits, done }
    }
}

impl Iterator for Sufis<'_> {
    type Item = Result<Sufi, Error>;

    fn next(&mut self) -> Option<Result<Sufi, Error>> {
        // A PDU filled to its last bits needs no NO_MORE.
        if self.done || self.bits.remaining() < 4 {
            return None;
        }
        let sufi = Sufi::parse(&mut self.bits);
        self.done = matches!(sufi, Err(_) | Ok(Sufi::NoMore | Sufi::Ack { .. }));
        Some(sufi)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn octets(sufis: &[Sufi]) -> Vec<u8> {
        let mut out = vec![0; 200];
        let mut w = BitWriter::new(&mut out);
        w.write(4, 0).unwrap();
        for sufi in sufis {
            let before = w.position();
            sufi.emit(&mut w).unwrap();
            assert_eq!(w.position() - before, sufi.bits());
        }
        w.pad_to_octet();
        let used = w.octets_used();
        out.truncate(used);
        out
    }

    fn read(octets: &[u8]) -> Result<Vec<Sufi>, Error> {
        Sufis::of(octets).collect()
    }

    fn named(list: &Rlist) -> Vec<u16> {
        let mut all = Vec::new();
        list.each(|sn| all.push(sn)).unwrap();
        all
    }

    #[test]
    fn the_worked_rlist_example() {
        // FSN 10, words 0011 1001 0001 0111: 10, 11, 15, then 16 to 18.
        let bytes = [0x05, 0x40, 0x0A, 0x39, 0x17, 0x20, 0x13];
        let sufis = read(&bytes).unwrap();
        let [Sufi::Rlist(list), Sufi::Ack { lsn: 19 }] = sufis[..] else { panic!("{sufis:?}") };
        assert_eq!(list.words(), [0b0011, 0b1001, 0b0001, 0b0111]);
        assert_eq!(named(&list), [10, 11, 15, 16, 17, 18]);
        let mut ours = Rlist::new(10);
        assert!(ours.push_run(10, 2) && ours.push_run(15, 4));
        assert_eq!(octets(&[Sufi::Rlist(ours), Sufi::Ack { lsn: 19 }]), bytes);
    }

    #[test]
    fn a_list_and_an_ack_in_octets() {
        let mut list = List::default();
        assert!(list.push(2, 1) && list.push(0x123, 16));
        let sufis = [Sufi::List(list), Sufi::Ack { lsn: 0x456 }];
        let bytes = [0x03, 0x20, 0x02, 0x01, 0x23, 0xF2, 0x45, 0x60];
        assert_eq!(octets(&sufis), bytes);
        assert_eq!(read(&bytes).unwrap(), sufis);
        for cut in 1..bytes.len() {
            assert_ne!(read(&bytes[..cut]).as_deref(), Ok(&sufis[..]), "cut at {cut}");
        }
    }

    #[test]
    fn all_super_fields_survive_the_wire() {
        let mut map = Bitmap::new(4090, 3);
        map.set_missing(0);
        map.set_missing(23);
        assert!(!map.received(0) && map.received(1) && !map.received(23));
        let sufis = [
            Sufi::Window { wsn: 512 },
            Sufi::Bitmap(map),
            Sufi::Mrw(Mrw::new(&[], 77, 3)),
            Sufi::Mrw(Mrw::new(&[70, 70, 75], 77, 3)),
            Sufi::Mrw(Mrw::above_window(2000, 0)),
            Sufi::MrwAck { n: 2, sn_ack: 99 },
            Sufi::Poll { sn: 4095 },
            Sufi::NoMore,
        ];
        assert_eq!(read(&octets(&sufis)).unwrap(), sufis);
    }

    #[test]
    fn invalid_super_fields_are_errors() {
        assert!(read(&[0x09, 0x00]).is_err(), "reserved type");
        assert!(read(&[0x03, 0x00, 0x00, 0x00]).is_err(), "empty LIST");
        let rlist = |words: &[u8]| {
            let mut list = Rlist::new(0);
            assert!(words.iter().all(|w| list.word(*w)));
            list.each(|_| {}).is_err()
        };
        assert!(rlist(&[0b0010]), "last word does not end a number");
        assert!(rlist(&[0b0011, BURST]), "burst indicator without a length");
        assert!(rlist(&[BURST, BURST]), "a run of no PDUs");
        assert!(rlist(&[0b1110, 0b1110, 0b1110, 0b1110, 0b1110, 0b0011]), "number too large");
    }

    proptest! {
        #[test]
        fn runs_of_missing_pdus_survive_an_rlist(gaps in prop::collection::vec((1u16..200, 1u16..40), 1..8)) {
            let mut at = 4000u16;
            let mut list = Rlist::new(at);
            let mut expected = Vec::new();
            for (i, (gap, len)) in gaps.into_iter().enumerate() {
                let first = if i == 0 { at } else { add(at, gap) };
                if !list.push_run(first, len) {
                    break;
                }
                expected.extend((0..len).map(|n| add(first, n)));
                at = add(first, len - 1);
            }
            prop_assert_eq!(named(&list), expected);
            let all = [Sufi::Rlist(list), Sufi::NoMore];
            prop_assert_eq!(&read(&octets(&all)).unwrap()[..], &all[..]);
        }

        #[test]
        fn any_octets_are_read_or_refused(octets in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut sn_count = 0;
            for sufi in Sufis::of(&octets).flatten() {
                if let Sufi::Rlist(list) = sufi {
                    list.each(|_| sn_count += 1).unwrap();
                }
            }
            prop_assert!(sn_count <= 60 * usize::from(MODULUS));
        }
    }
}

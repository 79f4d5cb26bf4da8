//! Status reports: what a receiver says about gaps (TS 25.322 11.5), and what a sender reads from one.

use airloom_wire::Error;
use airloom_wire::bits::BitWriter;

use super::config::StatusKind;
use super::sufi::{Bitmap, List, Mrw, Rlist, Sufi, Sufis};
use super::window::{SnSet, add, distance};

/// What a receiver knows: VR(R), VR(H) and which PDUs between them have come.
pub struct View<'a> {
    /// Next in sequence expected.
    pub vr_r: u16,
    /// Highest received, plus one.
    pub vr_h: u16,
    /// PDUs above VR(R) that have come.
    pub got: &'a SnSet,
    /// Is the window small enough for a BITMAP that begins below VR(R)?
    pub small_window: bool,
}

impl View<'_> {
    /// The first run of missing PDUs at `from` or after it: (first, length).
    fn run(&self, from: u16) -> Option<(u16, u16)> {
        let end = distance(self.vr_r, self.vr_h);
        let at = |sn| distance(self.vr_r, sn);
        let first = self.got.first_absent_from(from).filter(|sn| at(*sn) >= at(from) && at(*sn) < end)?;
        let after = self.got.first_from(first).map_or(end, at);
        let after = if after <= at(first) { end } else { after.min(end) };
        Some((first, after - at(first)))
    }
}

/// Room for SUFIs of a report in bits, and the next gap to tell about.
struct Composer<'a, 'w> {
    view: &'a View<'a>,
    out: BitWriter<'w>,
    /// Bits kept free for the super-field that ends the PDU.
    reserve: usize,
    /// Everything before has been told.
    cursor: u16,
}

impl Composer<'_, '_> {
    fn room(&self) -> usize {
        self.out.remaining().saturating_sub(self.reserve)
    }

    fn put(&mut self, sufi: &Sufi) {
        // The room was checked before; a PDU too small for a super-field stays without it.
        let _ = sufi.emit(&mut self.out);
    }

    /// LIST super-fields up to `limit`, as many as fit.
    fn list(&mut self, limit: u16) {
        while let Some((mut first, mut len)) = self.next_run(limit) {
            let mut list = List::default();
            // Type and length, then 16 bits a pair.
            while self.room() >= 8 + 16 * (list.pairs().len() + 1) {
                let piece = len.min(16);
                if !list.push(first, piece) {
                    break;
                }
                self.cursor = add(first, piece);
                match self.next_run(limit) {
                    Some(run) => (first, len) = run,
                    None => break,
                }
            }
            if list.pairs().is_empty() {
                return;
            }
            self.put(&Sufi::List(list));
        }
    }

    fn next_run(&mut self, limit: u16) -> Option<(u16, u16)> {
        let base = self.view.vr_r;
        let run = self.view.run(self.cursor).filter(|(f, _)| distance(base, *f) < distance(base, limit));
        match run {
            None => {
                self.cursor = limit;
                None
            }
            Some((first, len)) => {
                self.cursor = first;
                Some((first, len.min(distance(first, limit))))
            }
        }
    }

    fn bitmaps(&mut self) {
        let (vr_r, vr_h) = (self.view.vr_r, self.view.vr_h);
        while let Some((first, _)) = self.next_run(vr_h) {
            let octets_fit = self.room().saturating_sub(20) / 8;
            let left = distance(first, vr_h);
            // Nothing is said about PDUs from VR(H) on: the last map is moved back so that it ends there, unless
            // that would name a gap twice.
            //= TS 25.322 9.2.2.11.5: FSN may be up to 7 below VR(R) if the window is small.
            let octets = usize::from(left.div_ceil(8)).min(16);
            let back = (octets as u16 * 8).saturating_sub(left);
            let may_go_back = (1..=back).all(|n| {
                let sn = add(first, 4096 - n);
                let below = distance(sn, vr_r) <= 7 && sn != vr_r;
                if below { self.view.small_window } else { self.view.got.contains(sn) }
            });
            if octets_fit < octets.min(2) || (back > 0 && (!may_go_back || octets_fit < octets)) {
                return self.list(vr_h);
            }
            let octets = octets.min(octets_fit);
            let back = if usize::from(left.div_ceil(8)) > octets { 0 } else { back };
            let mut map = Bitmap::new(add(first, 4096 - back), octets as u8);
            for position in back..map.span() {
                let sn = add(map.fsn, position);
                if !self.view.got.contains(sn) {
                    map.set_missing(position);
                }
            }
            self.cursor = add(map.fsn, map.span());
            self.put(&Sufi::Bitmap(map));
        }
    }

    fn rlists(&mut self) {
        let vr_h = self.view.vr_h;
        while let Some((first, len)) = self.next_run(vr_h) {
            let mut list = Rlist::new(first);
            let mut run = Some((first, len));
            let mut is_empty = true;
            while let Some((first, len)) = run {
                let before = list;
                if !list.push_run(first, len) || Sufi::Rlist(list).bits() > self.room() {
                    list = before;
                    break;
                }
                is_empty = false;
                self.cursor = add(first, len);
                run = self.next_run(vr_h);
            }
            if is_empty {
                // Not even the first run fits.
                return self.list(vr_h);
            }
            self.put(&Sufi::Rlist(list));
        }
    }
}

/// One STATUS PDU of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Composed {
    /// Octets used.
    pub octets: usize,
    /// Everything below was told; VR(H) when the report is complete.
    pub cursor: u16,
}

/// Writes a STATUS PDU into `out`: `extra` super-fields first, then (if `cursor` is given) the gaps from there on.
///
/// A report that does not fit goes on in further PDUs, each telling other gaps.
pub fn compose(
    view: &View,
    kind: StatusKind,
    extra: &[Sufi],
    cursor: Option<u16>,
    out: &mut [u8],
) -> Composed {
    let mut bits = BitWriter::new(out);
    let _ = bits.write(4, 0);
    let mut c = Composer { view, out: bits, reserve: 16, cursor: cursor.unwrap_or(view.vr_h) };
    for sufi in extra {
        c.put(sufi);
    }
    let Some(from) = cursor else {
        c.put(&Sufi::NoMore);
        c.out.pad_to_octet();
        return Composed { octets: c.out.octets_used(), cursor: view.vr_h };
    };
    match kind {
        StatusKind::List => c.list(view.vr_h),
        StatusKind::Bitmap => c.bitmaps(),
        StatusKind::Rlist => c.rlists(),
    }
    //= TS 25.322 9.2.2.11.2: with LSN above VR(R) all gaps below LSN are named in the same PDU; with LSN = VR(R)
    //= they may be spread over several.
    let lsn = if from == view.vr_r { c.cursor } else { view.vr_r };
    c.put(&Sufi::Ack { lsn });
    c.out.pad_to_octet();
    Composed { octets: c.out.octets_used(), cursor: c.cursor }
}

/// What a STATUS PDU says to a sender.
#[derive(Clone, Default)]
pub struct Heard {
    /// LSN, if it acknowledges.
    pub lsn: Option<u16>,
    /// PDUs named missing.
    pub missing: SnSet,
    /// PDUs named received by a BITMAP.
    pub received: SnSet,
    /// New window.
    pub window: Option<u16>,
    /// Request to move our receiving window.
    pub mrw: Option<Mrw>,
    /// (N, SN_ACK) of an MRW_ACK.
    pub mrw_ack: Option<(u8, u16)>,
    /// A poll (flexible PDU sizes).
    pub poll: Option<u16>,
}

impl Heard {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.missing.clear();
        self.received.clear();
        (self.lsn, self.window, self.mrw, self.mrw_ack, self.poll) = (None, None, None, None, None);
    }

    /// Reads `status` completely; on error nothing of it counts.
    pub fn read(&mut self, status: &[u8]) -> Result<(), Error> {
        self.clear();
        for sufi in Sufis::of(status) {
            match sufi? {
                Sufi::NoMore => {}
                //= TS 25.322 9.2.2.11.3: a window of 0 is ignored.
                Sufi::Window { wsn } => self.window = (wsn > 0).then_some(wsn),
                Sufi::Ack { lsn } => self.lsn = Some(lsn),
                Sufi::List(list) => {
                    for &(first, more) in list.pairs() {
                        for n in 0..=u16::from(more) {
                            self.missing.insert(add(first, n));
                        }
                    }
                }
                Sufi::Bitmap(map) => {
                    for position in 0..map.span() {
                        let sn = add(map.fsn, position);
                        if map.received(position) {
                            self.received.insert(sn);
                        } else {
                            self.missing.insert(sn);
                        }
                    }
                }
                Sufi::Rlist(list) => list.each(|sn| {
                    self.missing.insert(sn);
                })?,
                Sufi::Mrw(mrw) => self.mrw = Some(mrw),
                Sufi::MrwAck { n, sn_ack } => self.mrw_ack = Some((n, sn_ack)),
                Sufi::Poll { sn } => self.poll = Some(sn),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn got(vr_r: u16, missing: &[u16], vr_h: u16) -> SnSet {
        let mut set = SnSet::default();
        for n in 0..distance(vr_r, vr_h) {
            let sn = add(vr_r, n);
            if !missing.contains(&sn) {
                set.insert(sn);
            }
        }
        set
    }

    /// All PDUs of a report, read back.
    fn report(
        kind: StatusKind,
        vr_r: u16,
        missing: &[u16],
        vr_h: u16,
        size: usize,
    ) -> (Vec<u16>, Vec<Heard>) {
        let set = got(vr_r, missing, vr_h);
        let view = View { vr_r, vr_h, got: &set, small_window: true };
        let (mut cursor, mut heard, mut named) = (vr_r, Vec::new(), Vec::new());
        loop {
            let mut out = vec![0; size];
            let composed = compose(&view, kind, &[], Some(cursor), &mut out);
            let mut h = Heard::default();
            h.read(&out[..composed.octets]).unwrap();
            let mut from = vr_r;
            while let Some(sn) =
                h.missing.first_from(from).filter(|sn| distance(vr_r, *sn) >= distance(vr_r, from))
            {
                named.push(sn);
                from = add(sn, 1);
                if distance(vr_r, from) == 0 {
                    break;
                }
            }
            heard.push(h);
            if composed.cursor == vr_h {
                return (named, heard);
            }
            assert_ne!(composed.cursor, cursor, "no progress");
            cursor = composed.cursor;
        }
    }

    #[test]
    fn nothing_missing_is_a_bare_ack() {
        let set = SnSet::default();
        let view = View { vr_r: 7, vr_h: 7, got: &set, small_window: true };
        let mut out = [0xFF; 42];
        let composed = compose(&view, StatusKind::List, &[], Some(7), &mut out);
        assert_eq!((&out[..composed.octets], composed.cursor), (&[0x02, 0x00, 0x70][..], 7));
    }

    #[test]
    fn a_single_gap_is_a_list_with_l_0() {
        let set = got(5, &[5], 9);
        let view = View { vr_r: 5, vr_h: 9, got: &set, small_window: true };
        let mut out = [0; 42];
        let n = compose(&view, StatusKind::List, &[], Some(5), &mut out).octets;
        assert_eq!(out[..n], [0x03, 0x10, 0x05, 0x02, 0x00, 0x90]);
    }

    #[test]
    fn extra_super_fields_go_without_an_acknowledgement() {
        let set = SnSet::default();
        let view = View { vr_r: 0, vr_h: 0, got: &set, small_window: true };
        let mut out = [0; 42];
        let extra = [Sufi::MrwAck { n: 1, sn_ack: 0x123 }];
        let n = compose(&view, StatusKind::List, &extra, None, &mut out).octets;
        assert_eq!(out[..n], [0x07, 0x11, 0x23, 0x00]);
    }

    #[test]
    fn a_report_too_large_for_one_pdu_goes_on_in_the_next() {
        let missing: Vec<u16> = (0..100).map(|n| n * 2).collect();
        let (named, heard) = report(StatusKind::List, 0, &missing, 200, 42);
        assert_eq!(named, missing);
        assert_eq!(heard.len(), 6, "18 single gaps a PDU of 42 octets");
        assert_eq!(heard[0].lsn, Some(36));
        assert!(heard[1..].iter().all(|h| h.lsn == Some(0)), "further PDUs acknowledge nothing");
    }

    proptest! {
        #[test]
        fn every_gap_is_told_exactly_once_by_every_kind(
            vr_r in 0u16..4096,
            pattern in prop::collection::vec(any::<bool>(), 1..300),
            size in 12usize..60,
            kind in prop::sample::select(vec![StatusKind::List, StatusKind::Bitmap, StatusKind::Rlist]),
        ) {
            let vr_h = add(vr_r, pattern.len() as u16);
            let missing: Vec<u16> = pattern.iter().enumerate()
                // VR(R) is missing, VR(H) - 1 has come: that is what the variables mean.
                .filter(|(i, lost)| *i == 0 || **lost && *i + 1 < pattern.len())
                .map(|(i, _)| add(vr_r, i as u16)).collect();
            let missing = if pattern.len() == 1 { vec![vr_r] } else { missing };
            let (named, heard) = report(kind, vr_r, &missing, vr_h, size);
            prop_assert_eq!(named, missing.clone());
            for h in heard {
                let lsn = h.lsn.unwrap();
                prop_assert!(distance(vr_r, lsn) <= distance(vr_r, vr_h));
                let below = |sn: &&u16| distance(vr_r, **sn) < distance(vr_r, lsn);
                prop_assert!(missing.iter().filter(below).all(|sn| h.missing.contains(*sn)));
                prop_assert!(missing.iter().all(|sn| !h.received.contains(*sn)));
            }
        }

        #[test]
        fn any_octets_are_read_or_refused(octets in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut heard = Heard::default();
            if heard.read(&octets).is_err() {
                heard.clear();
                prop_assert!(heard.missing.is_empty());
            }
        }
    }
}

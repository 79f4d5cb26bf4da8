//! The sending side: window, retransmission buffer, acknowledgements (TS 25.322 11.3.2, 11.5.3).

use airloom_base::Instant;

use super::config::Discard;
use super::pdu::Pdu;
use super::poll::{Poll, Reasons};
use super::sdu::SduStore;
use super::segment::Segmenter;
use super::status::Heard;
use super::window::{MODULUS, SnRing, SnSet, add, distance};
use super::wire::{Layout, Tail};
use super::{AmConfig, Format};

/// A PDU that was sent and is not yet acknowledged.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub pdu: Pdu,
    /// VT(DAT): how often it was scheduled.
    pub vt_dat: u16,
    /// Given up: never sent again.
    pub discarded: bool,
}

/// A data PDU that leaves now.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// Header octets and pieces.
    pub pdu: Pdu,
    /// Its sequence number.
    pub sn: u16,
    /// Which transmission this is, from 1.
    pub attempt: u16,
    /// Was it sent before?
    pub again: bool,
    /// Does it ask for a report?
    pub poll: bool,
}

/// What a report led to besides a new window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing else.
    Fine,
    /// It names PDUs that cannot be meant: reset.
    Erroneous,
    /// This PDU has reached MaxDAT.
    MaxDat(u16),
}

/// State of the sending side; names are the standard's.
#[derive(Clone, Default)]
pub struct Tx {
    pub(super) vt_s: u16,
    pub(super) vt_a: u16,
    vt_ws: u16,
    pub(super) sent: SnRing<Sent>,
    /// Scheduled for retransmission.
    pub(super) retransmit: SnSet,
    pub(super) poll: Poll,
    pub(super) segmenter: Segmenter,
    /// Hyper frame number of the PDUs being sent.
    pub(super) hfn: u32,
    /// A PDU that reached MaxDAT when it was repeated for a poll.
    pub(super) exhausted: Option<u16>,
}

impl Tx {
    /// Start values.
    pub fn new(config: &AmConfig) -> Self {
        Tx { vt_ws: config.window, ..Tx::default() }
    }

    /// PDUs sent and not acknowledged.
    #[inline]
    pub fn outstanding(&self) -> u16 {
        distance(self.vt_a, self.vt_s)
    }
    #[inline]
    fn window_is_open(&self) -> bool {
        //= TS 25.322 9.4 d): PDUs from VT(MS) = VT(A) + VT(WS) on are not transmitted.
        self.outstanding() < self.vt_ws
    }
    /// Would a PDU leave if there were a transmission interval now?
    #[inline]
    pub fn wants_to_send(&self, sdus: &SduStore, now: Instant) -> bool {
        !self.retransmit.is_empty()
            || (self.window_is_open() && self.segmenter.has_data(sdus))
            || (self.poll.is_urgent(now) && self.outstanding() > 0)
    }

    /// The next PDU: retransmissions in order of their number, then new ones, then a repetition for a poll's sake.
    #[inline]
    pub fn next(
        &mut self,
        config: &AmConfig,
        format: Format,
        sdus: &mut SduStore,
        now: Instant,
    ) -> Option<Departure> {
        //= TS 25.322 11.3.2.2: retransmissions have priority over new PDUs.
        if !self.retransmit.is_empty()
            && let Some(sn) = self.retransmit.first_from(self.vt_a)
        {
            self.retransmit.remove(sn);
            return Some(self.repeat(config, sn, now));
        }
        if self.window_is_open()
            && let Some(departure) = self.fresh(config, format, sdus, now)
        {
            return Some(departure);
        }
        if !self.poll.is_urgent(now) {
            return None;
        }
        if !self.schedule_for_poll(config) {
            self.poll.cancel();
            return None;
        }
        let sn = self.retransmit.first_from(self.vt_a)?;
        self.retransmit.remove(sn);
        Some(self.repeat(config, sn, now))
    }

    #[inline]
    fn fresh(
        &mut self,
        config: &AmConfig,
        format: Format,
        sdus: &mut SduStore,
        now: Instant,
    ) -> Option<Departure> {
        let sn = self.vt_s;
        let (pdu, ends) = self.segmenter.next(format, sdus, sn)?;
        let used = self.number(Sent { pdu, vt_dat: 1, discarded: false });
        let reasons = Reasons {
            //= TS 25.322 9.7.1 1): no data remains, or no further PDU is allowed.
            last_new: used >= self.vt_ws || !self.segmenter.has_data(sdus),
            last_retransmission: false,
            ends,
            used,
            window: self.vt_ws,
        };
        Some(self.depart(config, reasons, Departure { pdu, sn, attempt: 1, again: false, poll: false }, now))
    }

    /// PDU VT(S) is this one. Returns how many are not acknowledged, with it.
    #[inline]
    fn number(&mut self, sent: Sent) -> u16 {
        let (sn, used) = (self.vt_s, self.outstanding() + 1);
        self.sent.reserve(self.vt_a, used);
        *self.sent.get_mut(sn) = sent;
        self.vt_s = add(sn, 1);
        if self.vt_s == 0 {
            self.hfn = self.hfn.wrapping_add(1);
        }
        used
    }

    /// PDU VT(S), which would have told the end of SDU `seq`, is never made: the SDU was given up.
    //= TS 25.322 9.4 a): VT(S) moves with an MRW whose SN_MRW lies above it. Were the number that of the next PDU, the
    //= receiver would take its data for the rest of what it has of this SDU.
    pub(super) fn leave_out(&mut self, seq: u32) {
        // With all 4095 numbers of the largest window open, one more would look like none.
        if self.outstanding() < MODULUS - 1 {
            self.number(Sent { pdu: Pdu::new(seq, 0), vt_dat: 1, discarded: true });
        }
    }

    fn repeat(&mut self, config: &AmConfig, sn: u16, now: Instant) -> Departure {
        let Sent { pdu, vt_dat, .. } = *self.sent.get(sn);
        let reasons = Reasons {
            last_retransmission: self.retransmit.is_empty(),
            used: self.outstanding().saturating_add(1),
            window: self.vt_ws,
            ..Reasons::default()
        };
        self.depart(config, reasons, Departure { pdu, sn, attempt: vt_dat, again: true, poll: false }, now)
    }

    #[inline]
    fn depart(
        &mut self,
        config: &AmConfig,
        reasons: Reasons,
        mut departure: Departure,
        now: Instant,
    ) -> Departure {
        if self.poll.decide(config, reasons, now) {
            departure.poll = true;
            departure.pdu.set_poll();
            self.poll.sent(config, now, self.vt_s);
        }
        self.poll.something_sent(config, now);
        departure
    }

    /// Schedules PDU `sn` for retransmission, once.
    fn schedule(&mut self, config: &AmConfig, sn: u16) -> Verdict {
        let sent = self.sent.get_mut(sn);
        if sent.discarded || self.retransmit.contains(sn) {
            return Verdict::Fine;
        }
        sent.vt_dat = sent.vt_dat.saturating_add(1);
        //= TS 25.322 9.6 a): at most MaxDAT - 1 transmissions happen.
        if config.max_dat > 0 && config.discard != Discard::Timer && sent.vt_dat >= config.max_dat {
            return Verdict::MaxDat(sn);
        }
        self.retransmit.insert(sn);
        Verdict::Fine
    }

    /// A poll must go out and nothing else does: repeats a PDU.
    fn schedule_for_poll(&mut self, config: &AmConfig) -> bool {
        //= TS 25.322 11.3.2: PDU VT(S) - 1, or with windows below 2048 any other that is neither acknowledged nor
        //= discarded.
        let candidates = (1..=self.outstanding()).map(|n| add(self.vt_s, 4096 - n));
        let Some(sn) =
            candidates.take(usize::from(self.vt_ws.min(2047))).find(|sn| !self.sent.get(*sn).discarded)
        else {
            return false;
        };
        match self.schedule(config, sn) {
            Verdict::MaxDat(sn) => {
                self.exhausted = Some(sn);
                false
            }
            _ => true,
        }
    }

    /// A status report of the peer.
    pub fn on_report(&mut self, config: &AmConfig, sdus: &mut SduStore, heard: &Heard) -> Verdict {
        if !self.is_plausible(heard) {
            return Verdict::Erroneous;
        }
        if let Some(wsn) = heard.window {
            let shrinks = wsn < self.vt_ws;
            self.vt_ws = wsn.min(config.window);
            //= TS 25.322 9.7.1 1): the last PDU that the window allows has become one that was sent without a poll.
            if shrinks && !self.window_is_open() && config.last_pdu_poll {
                self.poll.trigger();
            }
        }
        let mut verdict = Verdict::Fine;
        self.each_of(&heard.missing, |tx, sn| {
            if let Verdict::MaxDat(sn) = tx.schedule(config, sn) {
                // The highest one: everything before is given up with it.
                verdict = Verdict::MaxDat(sn);
            }
        });
        self.forget_received(heard);
        if let Some(lsn) = heard.lsn {
            //= TS 25.322 9.2.2.11.2: VT(A) moves to LSN or to the first PDU named missing, whichever is lower.
            let first = heard.missing.first_from(self.vt_a);
            let first = first.filter(|sn| distance(self.vt_a, *sn) < distance(self.vt_a, lsn));
            self.advance(first.unwrap_or(lsn), sdus, "rlc discard");
        }
        if heard.lsn.is_some() || !heard.missing.is_empty() {
            self.poll.answered(self.vt_a, self.vt_s, |sn| heard.missing.contains(sn));
        }
        verdict
    }

    fn is_plausible(&self, heard: &Heard) -> bool {
        //= TS 25.322 10, 11.4.2: a report about PDUs outside VT(A)..VT(S) starts the reset procedure.
        let sent = self.outstanding();
        let lsn = heard.lsn.is_none_or(|lsn| distance(self.vt_a, lsn) <= sent);
        let mut missing = heard.missing.clone();
        let mut left = missing.len();
        while left > 0
            && let Some(sn) = missing.first_from(self.vt_a)
        {
            if distance(self.vt_a, sn) >= sent {
                return false;
            }
            missing.remove(sn);
            left -= 1;
        }
        lsn
    }

    fn each_of(&mut self, set: &SnSet, mut action: impl FnMut(&mut Tx, u16)) {
        let (mut from, base) = (self.vt_a, self.vt_a);
        for _ in 0..set.len() {
            let Some(sn) = set.first_from(from) else { return };
            action(self, sn);
            from = add(sn, 1);
            if from == base {
                return;
            }
        }
    }

    /// Takes PDUs out of the retransmission buffer that have come after all.
    fn forget_received(&mut self, heard: &Heard) {
        if self.retransmit.is_empty() {
            return;
        }
        let limit = heard.lsn.map_or(0, |lsn| distance(self.vt_a, lsn));
        let waiting = self.retransmit.clone();
        let base = self.vt_a;
        self.each_of(&waiting, |tx, sn| {
            let acknowledged = distance(base, sn) < limit && !heard.missing.contains(sn);
            //= TS 25.322 9.2.2.11.5: PDUs that a BITMAP shows received need not be sent again.
            if acknowledged || heard.received.contains(sn) {
                tx.retransmit.remove(sn);
            }
        });
    }

    /// Moves VT(A) to `to` and lets go of the SDUs before.
    pub(super) fn advance(&mut self, to: u16, sdus: &mut SduStore, reason: &'static str) {
        if distance(self.vt_a, to) > self.outstanding() {
            return;
        }
        let mut sn = self.vt_a;
        while !self.retransmit.is_empty() && sn != to {
            self.retransmit.remove(sn);
            sn = add(sn, 1);
        }
        self.vt_a = to;
        let keep = if self.vt_a == self.vt_s {
            let (head, _) = sdus.position();
            // The end of the SDU before may still have to be told.
            if self.segmenter.is_pending() { head.wrapping_sub(1) } else { head }
        } else {
            self.sent.get(to).pdu.sdu
        };
        sdus.free_before(keep, reason);
    }

    /// Number of the last SDU with an octet or its end in PDU `sn`.
    pub(super) fn last_sdu_in(&self, format: Format, sn: u16) -> u32 {
        let ends = u32::from(self.ends_in(format, sn));
        let begins_another = self.has_new_sdu_after_last_end(format, sn);
        self.sent.get(sn).pdu.sdu.wrapping_add(if begins_another || ends == 0 { ends } else { ends - 1 })
    }

    /// Does a piece of an SDU after its last end lie in PDU `sn`?
    pub(super) fn has_new_sdu_after_last_end(&self, format: Format, sn: u16) -> bool {
        let pdu = &self.sent.get(sn).pdu;
        let layout = Layout::parse(pdu.head(), usize::from(format.pdu_octets), format.li).unwrap_or_default();
        let last_end = layout.ends().last().copied().unwrap_or(0);
        pdu.tail == Tail::Data && last_end < pdu.data_len
    }

    /// How many SDUs end in PDU `sn` by a length indicator.
    pub(super) fn ends_in(&self, format: Format, sn: u16) -> u8 {
        let pdu = &self.sent.get(sn).pdu;
        Layout::parse(pdu.head(), usize::from(format.pdu_octets), format.li).unwrap_or_default().ends().len()
            as u8
    }

    /// PDUs below `sn` are given up: never sent again.
    pub(super) fn give_up_before(&mut self, sn: u16) {
        let mut at = self.vt_a;
        while at != sn && distance(self.vt_a, at) < self.outstanding() {
            self.sent.get_mut(at).discarded = true;
            self.retransmit.remove(at);
            at = add(at, 1);
        }
    }

    /// Start values after a reset; SDUs not yet cut survive.
    pub fn reset(&mut self, config: &AmConfig, sdus: &mut SduStore, reason: &'static str) {
        let (sent, hfn) = (std::mem::take(&mut self.sent), self.hfn);
        *self = Tx { sent, hfn, ..Tx::new(config) };
        sdus.drop_sent(reason);
    }
}

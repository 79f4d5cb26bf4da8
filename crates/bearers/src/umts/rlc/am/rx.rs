//! The receiving side: window, reassembly, when to report (TS 25.322 11.3.3, 9.7.2).

use airloom_base::Instant;
use airloom_base::timer::Timer;

use super::pdu::Pdu;
use super::reassembly::Reassembly;
use super::sdu::SduStore;
use super::status::View;
use super::sufi::{Mrw, Sufi};
use super::window::{SnRing, SnSet, add, distance};
use super::wire::AmdHeader;
use super::{AmConfig, Format};
use crate::cell::Delivered;

/// What became of a received PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// New.
    New,
    /// Received before, or outside the window.
    Duplicate,
    /// Not a valid PDU.
    Malformed,
}

/// State of the receiving side; names are the standard's.
#[derive(Clone, Default)]
pub struct Rx {
    pub(super) vr_r: u16,
    pub(super) vr_h: u16,
    /// PDUs above VR(R) that wait for those before.
    held: SnRing<Pdu>,
    got: SnSet,
    reassembly: Reassembly,
    /// A report was triggered and has not been sent.
    report_wanted: bool,
    /// A report was sent in part: the rest begins here.
    cursor: Option<u16>,
    prohibited_until: Instant,
    timer_status_periodic: Timer,
    /// MRW_ACK to be sent: (N, SN_ACK).
    pub(super) mrw_ack: Option<(u8, u16)>,
    /// The MRW that was obeyed last, which may come again.
    obeyed: Option<Obeyed>,
    /// A window is offered that the peer was not told yet.
    window_is_news: bool,
}

/// An MRW that moved the window.
#[derive(Clone, Copy)]
struct Obeyed {
    to: u16,
    n_length: u8,
    /// How far beyond it VR(R) was at the last report.
    behind: u16,
}

/// Half of the sequence numbers: what lies further back lies ahead.
const HALF: u16 = 2048;

impl Rx {
    /// Start values.
    pub fn new(config: &AmConfig) -> Self {
        Rx { window_is_news: config.receive_window.is_some(), ..Rx::default() }
    }

    /// A data PDU, made of header octets and pieces of `sdus`.
    #[inline]
    pub fn receive(
        &mut self,
        config: &AmConfig,
        format: Format,
        pdu: &Pdu,
        now: Instant,
        sdus: &mut SduStore,
        out: &mut Vec<Delivered>,
    ) -> Arrival {
        let Ok(header) = AmdHeader::parse(pdu.head()) else { return Arrival::Malformed };
        let (sn, ahead) = (header.sn, distance(self.vr_r, header.sn));
        //= TS 25.322 11.3.3, 11.3.4.2, 11.3.4.8: a poll counts even in a PDU that is discarded.
        self.report_wanted |= header.poll;
        //= TS 25.322 9.4 c): VR(MR) = VR(R) + window is the first that is rejected.
        if ahead >= config.window {
            return Arrival::Duplicate;
        }
        let reach = distance(self.vr_r, self.vr_h);
        if ahead >= reach {
            //= TS 25.322 9.7.2 1): a gap below the received number triggers a report, if so configured.
            self.report_wanted |= ahead > reach && config.missing_pdu_indicator;
            self.vr_h = add(sn, 1);
        } else if self.got.contains(sn) {
            return Arrival::Duplicate;
        }
        if !config.timer_status_periodic.is_zero() && !self.timer_status_periodic.is_armed() {
            self.timer_status_periodic.arm_after(now, config.timer_status_periodic);
        }
        if ahead == 0 {
            self.reassembly.feed(format, sn, pdu, sdus, out);
            self.vr_r = add(sn, 1);
            if !self.got.is_empty() {
                self.drain(format, sdus, out);
            }
        } else {
            self.held.reserve(self.vr_r, ahead + 1);
            *self.held.get_mut(sn) = *pdu;
            self.got.insert(sn);
            if !config.in_sequence {
                self.deliver_around(format, sn, sdus, out);
            }
        }
        Arrival::New
    }

    /// PDUs that waited and are now in sequence.
    fn drain(&mut self, format: Format, sdus: &mut SduStore, out: &mut Vec<Delivered>) {
        while self.got.remove(self.vr_r) {
            let pdu = *self.held.get(self.vr_r);
            self.reassembly.feed(format, self.vr_r, &pdu, sdus, out);
            self.vr_r = add(self.vr_r, 1);
        }
    }

    /// Out of sequence: hands up the SDUs that lie completely in the run of received PDUs around `sn`.
    fn deliver_around(&self, format: Format, sn: u16, sdus: &mut SduStore, out: &mut Vec<Delivered>) {
        let mut first = sn;
        while first != self.vr_r && self.got.contains(add(first, 4095)) {
            first = add(first, 4095);
        }
        let mut reassembly = Reassembly::unknown();
        let mut at = first;
        while self.got.contains(at) && distance(self.vr_r, at) < distance(self.vr_r, self.vr_h) {
            reassembly.feed(format, at, self.held.get(at), sdus, out);
            at = add(at, 1);
        }
    }

    /// What a status report would say.
    pub fn view(&self, config: &AmConfig) -> View<'_> {
        View { vr_r: self.vr_r, vr_h: self.vr_h, got: &self.got, small_window: config.window < 2048 }
    }

    /// Is a report wanted and allowed?
    #[inline]
    pub fn wants_report(&self, now: Instant) -> bool {
        (self.report_wanted && now >= self.prohibited_until) || self.cursor.is_some()
    }

    /// Must a STATUS be sent that no prohibit time holds back?
    //= TS 25.322 9.5 f): Timer_Status_Prohibit concerns acknowledging reports; MRW_ACK and WINDOW may go at any time.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.mrw_ack.is_some() || self.window_is_news
    }

    /// What a STATUS of now says besides missing PDUs: MRW_ACK, WINDOW.
    pub fn news(&self, config: &AmConfig, now: Instant) -> [Option<Sufi>; 2] {
        let mrw_ack = self.mrw_ack.map(|(n, sn_ack)| Sufi::MrwAck { n, sn_ack });
        //= TS 25.322 9.2.2.11.3: a receiver may change its peer's window at any time. Nothing acknowledges it, so every
        //= report begins with it again.
        let begins_report = self.cursor.is_none() && self.wants_report(now);
        let offered = config.receive_window.filter(|_| self.window_is_news || begins_report);
        [mrw_ack, offered.map(|wsn| Sufi::Window { wsn })]
    }

    /// The news were submitted.
    pub fn news_told(&mut self) {
        (self.mrw_ack, self.window_is_news) = (None, false);
    }

    /// Where the report (or the rest of one) begins.
    pub fn report_from(&self) -> u16 {
        let told = self.cursor.filter(|c| distance(self.vr_r, *c) <= distance(self.vr_r, self.vr_h));
        told.unwrap_or(self.vr_r)
    }

    /// A PDU of a report was submitted; everything below `cursor` is told.
    pub fn reported(&mut self, config: &AmConfig, cursor: u16, now: Instant) {
        self.report_wanted = false;
        self.cursor = (cursor != self.vr_h).then_some(cursor);
        // From one report to the next VR(R) moves by a window at most, which is less than once round.
        self.obeyed = self.obeyed.and_then(|obeyed| {
            let behind = distance(obeyed.to, self.vr_r);
            (obeyed.behind <= behind && behind < HALF).then_some(Obeyed { behind, ..obeyed })
        });
        if self.cursor.is_none() && !config.timer_status_prohibit.is_zero() {
            //= TS 25.322 9.5 f): starts with the last PDU of an acknowledging report.
            self.prohibited_until = now + config.timer_status_prohibit;
        }
    }

    /// Asks for a report.
    pub fn want_report(&mut self) {
        self.report_wanted = true;
    }

    /// The peer asks to move the window (TS 25.322 11.6.3).
    pub fn on_mrw(
        &mut self,
        config: &AmConfig,
        format: Format,
        mrw: &Mrw,
        sdus: &mut SduStore,
        out: &mut Vec<Delivered>,
    ) {
        let to = mrw.last();
        let ahead = distance(self.vr_r, to);
        // The sender's window begins at VR(R) or before, so a valid SN_MRW lies at most a window ahead, LENGTH 0 or
        // not; or one more, where the end of an SDU would have been told by the first PDU above the window.
        //= TS 25.322 11.6.6.1: an MRW that the window has already passed is answered and otherwise ignored.
        let again = |obeyed: Obeyed| (obeyed.to, obeyed.n_length) == (to, mrw.n_length);
        // A window of more than half of the numbers does not tell that: there it is the repetition of one that was obeyed.
        let is_old = ahead > config.window + 1 || ahead > HALF && self.obeyed.is_some_and(again);
        if !is_old {
            //= TS 25.322 11.6.3: SDUs that have come completely are delivered, the others up to SN_MRW discarded.
            while self.vr_r != to {
                let sn = self.vr_r;
                if self.got.remove(sn) {
                    let pdu = *self.held.get(sn);
                    self.reassembly.feed(format, sn, &pdu, sdus, out);
                } else {
                    self.reassembly.lose();
                }
                self.vr_r = add(sn, 1);
                if self.vr_h == sn {
                    self.vr_h = self.vr_r;
                }
            }
            self.reassembly.skip_to(to, mrw.n_length);
            self.drain(format, sdus, out);
            self.cursor = None;
            self.obeyed = Some(Obeyed { to, n_length: mrw.n_length, behind: 0 });
        }
        //= TS 25.322 11.6.3.1: N echoes N_LENGTH if SN_ACK is SN_MRW, else it is 0.
        let n = if !is_old && self.vr_r == to { mrw.n_length } else { 0 };
        self.mrw_ack = Some((n, self.vr_r));
    }

    /// When to call `handle_timeout` (or give a transmission interval).
    pub fn next_timeout(&self, now: Instant) -> Instant {
        let waits = self.report_wanted && self.prohibited_until > now;
        let prohibit = if waits { self.prohibited_until } else { Instant::FAR_FUTURE };
        prohibit.min(self.timer_status_periodic.raw())
    }

    /// Timers that are due.
    pub fn handle_timeout(&mut self, config: &AmConfig, now: Instant) {
        if self.timer_status_periodic.take_due(now) {
            self.report_wanted = true;
            // Regular reports stop when nothing is missing: an idle link is silent.
            if self.vr_r != self.vr_h {
                self.timer_status_periodic.arm_after(now, config.timer_status_periodic);
            }
        }
    }

    /// Start values again.
    pub fn reset(&mut self, config: &AmConfig) {
        *self = Rx { held: std::mem::take(&mut self.held), ..Rx::new(config) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: Format = Format::new(42, false);

    fn moved(rx: &mut Rx, config: &AmConfig, to: u16) -> Option<(u8, u16)> {
        rx.on_mrw(config, FORMAT, &Mrw::new(&[], to, 0), &mut SduStore::default(), &mut Vec::new());
        let news = rx.mrw_ack;
        rx.news_told();
        news
    }

    #[test]
    fn a_repeated_mrw_that_was_obeyed_is_answered_and_otherwise_ignored() {
        for window in [1024, 2048, 4095] {
            let config = AmConfig { window, ..AmConfig::default() };
            let mut rx = Rx::new(&config);
            assert_eq!(moved(&mut rx, &config, 10), Some((0, 10)));
            assert_eq!(moved(&mut rx, &config, 10), Some((0, 10)));
            // Five PDUs have come since.
            (rx.vr_r, rx.vr_h) = (15, 15);
            assert_eq!(moved(&mut rx, &config, 10), Some((0, 15)), "window {window}");
            assert_eq!((rx.vr_r, rx.vr_h), (15, 15));
        }
    }

    #[test]
    fn once_the_numbers_have_gone_round_the_same_mrw_is_another() {
        let config = AmConfig { window: 4095, ..AmConfig::default() };
        // Everything is received and reported, in steps of less than a window.
        for steps in [&[2000, 4090, 20][..], &[100, 50]] {
            let mut rx = Rx::new(&config);
            moved(&mut rx, &config, 10);
            for vr_r in steps {
                (rx.vr_r, rx.vr_h) = (*vr_r, *vr_r);
                rx.reported(&config, *vr_r, Instant::ZERO);
            }
            assert_eq!(moved(&mut rx, &config, 10), Some((0, 10)), "{steps:?}");
        }
    }
}

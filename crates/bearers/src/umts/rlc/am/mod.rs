//! RLC acknowledged mode: selective repeat over fixed-size PDUs (TS 25.322).
//!
//! ```text
//!   SDUs ──► sdu.rs ──► segment.rs ──► tx.rs ══ AMD PDUs ══► rx.rs ──► reassembly.rs ──► SDUs
//!           (queue)    (cut, join)      │  ▲                  │
//!                                 poll.rs  └─ status.rs ◄═════┘ STATUS (sufi.rs)
//!                       discard.rs ──► MRW ═══════════════════► window moves
//!                         reset.rs ◄══ RESET, RESET ACK ══════► reset.rs
//! ```
//!
//! An [`Am`] is one end of a link: it sends in one direction and receives in the other. Ends exchange true header
//! octets (`pdu.rs`, `wire.rs`) and true STATUS octets; only the data between headers goes by reference, because
//! nobody looks at it: a packet delivered is the packet sent. Tests (and captures) make whole octets of every PDU and
//! read them back.
//!
//! | file | concern |
//! |---|---|
//! | `window.rs` | sequence numbers modulo 4096, sets and tables of them |
//! | `wire.rs`, `sufi.rs` | formats of data, RESET and STATUS PDUs |
//! | `segment.rs`, `reassembly.rs` | SDUs to PDUs and back, length indicators |
//! | `tx.rs`, `rx.rs` | the two windows |
//! | `poll.rs`, `status.rs` | asking for reports and giving them |
//! | `discard.rs`, `reset.rs` | giving up |
//!
//! **Order of service** in a transmission interval: RESET ACK and RESET, STATUS, retransmissions by number, new PDUs;
//! a STATUS that fits into padding may ride on a data PDU of the same interval.
//!
//! **Left out, and why.** Flexible PDU sizes, Timer_Reordering and two logical channels (releases after the
//! channels modelled here); ciphering (the octets would differ, nothing else); suspend, stop and continue (nobody
//! above asks); `Send MRW` (removed from the standard); the estimated PDU counter (likewise). More than nine (15-bit) or
//! eighteen (7-bit) length indicators in a PDU are not read, and not written: such a PDU is padded.

mod config;
mod discard;
mod pdu;
mod poll;
mod reassembly;
mod reset;
mod rx;
mod sdu;
mod segment;
mod status;
mod sufi;
mod tx;
mod window;
mod wire;

use airloom_base::Instant;

pub use config::{AmConfig, Discard, Format, StatusKind};
pub use pdu::Pdu;
pub use rx::Arrival;
pub use sdu::SduStore;
pub use status::Heard;
pub use sufi::{Bitmap, List, Mrw, Rlist, Sufi, Sufis};
pub use wire::{AmdHeader, Control, He, Layout, LiWidth, ResetPdu, Tail};

use discard::{Discarder, Sender};
use reset::{Demand, Reset};
use rx::Rx;
use sufi::Sufi as S;
use tx::{Departure, Tx, Verdict};

use crate::cell::Delivered;

/// Octets of the largest STATUS PDU we write.
const MAX_STATUS: usize = 128;

/// A PDU that leaves.
#[derive(Clone, Copy, Debug)]
pub enum Block<'a> {
    /// Data, perhaps with a STATUS in its padding.
    Data {
        /// Header octets and pieces.
        pdu: &'a Pdu,
        /// Sequence number.
        sn: u16,
        /// Which transmission this is, from 1.
        attempt: u16,
        /// Was it sent before?
        again: bool,
        /// Piggybacked STATUS, empty if none.
        status: &'a [u8],
    },
    /// STATUS, RESET or RESET ACK: octets without the padding behind them.
    Control(&'a [u8]),
}

/// What one end counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Data PDUs sent, repetitions included.
    pub pdus: u64,
    /// Of these, sent again.
    pub resent: u64,
    /// STATUS PDUs sent, piggybacked ones included.
    pub status: u64,
    /// Of these, piggybacked.
    pub piggybacked: u64,
    /// Polls sent.
    pub polls: u64,
    /// Data PDUs received twice or outside the window.
    pub duplicates: u64,
    /// PDUs that could not be read.
    pub malformed: u64,
    /// Times MaxRST was reached and the entity was established anew.
    pub failures: u64,
}

/// Where an end finds the SDUs of both directions, and puts those that are complete.
pub struct Stores<'a> {
    /// SDUs it sends.
    pub own: &'a mut SduStore,
    /// SDUs it receives.
    pub peers: &'a mut SduStore,
    /// SDUs that came out.
    pub delivered: &'a mut Vec<Delivered>,
}

/// One end of a link in acknowledged mode.
#[derive(Clone)]
pub struct Am {
    format: Format,
    tx: Tx,
    rx: Rx,
    reset: Reset,
    discard: Discarder,
    heard: Heard,
    /// What it did.
    pub counters: Counters,
}

impl Am {
    /// A fresh entity.
    pub fn new(config: &AmConfig, format: Format) -> Self {
        Am {
            format,
            tx: Tx::new(config),
            rx: Rx::new(config),
            reset: Reset::default(),
            discard: Discarder::default(),
            heard: Heard::default(),
            counters: Counters::default(),
        }
    }

    /// SDUs given up by the discard function.
    pub fn discards(&self) -> u64 {
        self.discard.count
    }
    /// Reset procedures begun.
    pub fn resets(&self) -> u64 {
        self.reset.count
    }
    /// PDUs sent and not acknowledged.
    pub fn outstanding(&self) -> u16 {
        self.tx.outstanding()
    }
    /// Has MaxRST been reached? The owner establishes both ends anew.
    pub fn has_failed(&self) -> bool {
        self.reset.failed
    }

    /// Would something leave if there were a transmission interval at `now`? `sdus` are those it sends.
    #[inline]
    pub fn wants_to_send(&self, sdus: &SduStore, now: Instant) -> bool {
        if self.reset.wants_to_send() {
            return true;
        }
        if self.reset.is_pending() {
            return false;
        }
        self.tx.wants_to_send(sdus, now) || self.status_due(now)
    }

    /// One transmission interval: gives at most `room` PDUs to `put` and returns how many it gave.
    pub fn serve(
        &mut self,
        config: &AmConfig,
        now: Instant,
        room: u16,
        sdus: &mut SduStore,
        mut put: impl FnMut(&SduStore, Block<'_>),
    ) -> u16 {
        let mut left = room;
        if self.reset.wants_to_send() {
            self.serve_reset(config, now, &mut left, sdus, &mut put);
        }
        if self.reset.is_pending() {
            return room - left;
        }
        let mut status_due = self.status_due(now);
        if status_due && !config.piggyback {
            self.serve_status(config, now, &mut left, sdus, &mut put);
            status_due = false;
        }
        // A STATUS that finds no padding gets a block of its own at the end of the interval.
        while left > u16::from(status_due) {
            let Some(departure) = self.tx.next(config, self.format, sdus, now) else { break };
            left -= 1;
            if status_due {
                status_due = !self.ride(config, now, &departure, sdus, &mut put);
            } else {
                self.put_data(&departure, &departure.pdu, &[], sdus, &mut put);
            }
        }
        if status_due {
            self.serve_status(config, now, &mut left, sdus, &mut put);
        }
        if let Some(sn) = self.tx.exhausted.take() {
            self.on_max_dat(config, sn, sdus);
        }
        room - left
    }

    #[inline]
    fn status_due(&self, now: Instant) -> bool {
        self.rx.wants_report(now) || self.rx.has_news() || self.discard.wants_to_send()
    }

    #[inline]
    fn put_data(
        &mut self,
        departure: &Departure,
        pdu: &Pdu,
        status: &[u8],
        sdus: &SduStore,
        put: &mut impl FnMut(&SduStore, Block<'_>),
    ) {
        self.counters.pdus += 1;
        self.counters.resent += u64::from(departure.again);
        self.counters.polls += u64::from(departure.poll);
        let Departure { sn, attempt, again, .. } = *departure;
        put(sdus, Block::Data { pdu, sn, attempt, again, status });
    }

    fn serve_reset(
        &mut self,
        config: &AmConfig,
        now: Instant,
        left: &mut u16,
        sdus: &SduStore,
        put: &mut impl FnMut(&SduStore, Block<'_>),
    ) {
        while *left > 0
            && let Some((is_ack, pdu)) = self.reset.next(config, self.tx.hfn, now)
        {
            let mut octets = [0; 4];
            pdu.emit(is_ack, &mut octets);
            put(sdus, Block::Control(&octets));
            *left -= 1;
        }
    }

    /// Writes the next STATUS PDU of at most `octets` octets. What it tells counts as told only if it is sent.
    fn compose(&mut self, config: &AmConfig, now: Instant, out: &mut [u8]) -> status::Composed {
        let composed = self.draft(config, now, out);
        self.rx.news_told();
        self.discard.submitted(config, now);
        if self.rx.wants_report(now) {
            self.rx.reported(config, composed.cursor, now);
        }
        self.counters.status += 1;
        composed
    }

    /// The STATUS PDU of now, without sending it.
    fn draft(&self, config: &AmConfig, now: Instant, out: &mut [u8]) -> status::Composed {
        //= TS 25.322 9.7.2: MRW and MRW_ACK are sent at once, even while reports are prohibited.
        let [mrw_ack, window] = self.rx.news(config, now);
        let mut extra = [S::NoMore; 3];
        let mut count = 0;
        for sufi in [mrw_ack, window, self.discard.mrw().map(S::Mrw)].into_iter().flatten() {
            extra[count] = sufi;
            count += 1;
        }
        let cursor = self.rx.wants_report(now).then(|| self.rx.report_from());
        status::compose(&self.rx.view(config), config.status_sufi, &extra[..count], cursor, out)
    }

    /// STATUS PDUs of their own.
    fn serve_status(
        &mut self,
        config: &AmConfig,
        now: Instant,
        left: &mut u16,
        sdus: &SduStore,
        put: &mut impl FnMut(&SduStore, Block<'_>),
    ) {
        while *left > 0 && self.status_due(now) {
            let mut out = [0; MAX_STATUS];
            let size = usize::from(self.format.pdu_octets).min(MAX_STATUS);
            let composed = self.compose(config, now, &mut out[..size]);
            put(sdus, Block::Control(&out[..composed.octets]));
            *left -= 1;
        }
    }

    /// Sends a data PDU, with a STATUS in its padding if all of it fits; yes if it did.
    fn ride(
        &mut self,
        config: &AmConfig,
        now: Instant,
        departure: &Departure,
        sdus: &SduStore,
        put: &mut impl FnMut(&SduStore, Block<'_>),
    ) -> bool {
        let li = self.format.li;
        let padding = usize::from(departure.pdu.padding(self.format.pdu_octets, li)).min(MAX_STATUS);
        if padding < 3 || padding < self.status_octets(config, now) {
            self.put_data(departure, &departure.pdu, &[], sdus, put);
            return false;
        }
        let mut out = [0; MAX_STATUS];
        let composed = self.compose(config, now, &mut out[..padding]);
        self.counters.piggybacked += 1;
        let pdu = departure.pdu.with_status(li);
        self.put_data(departure, &pdu, &out[..composed.octets], sdus, put);
        !self.status_due(now)
    }

    /// Octets of the whole STATUS, as far as one PDU can hold it.
    fn status_octets(&self, config: &AmConfig, now: Instant) -> usize {
        let mut out = [0; MAX_STATUS];
        let size = usize::from(self.format.pdu_octets).min(MAX_STATUS);
        self.draft(config, now, &mut out[..size]).octets
    }

    /// A data PDU has come (its piggybacked STATUS, if any, goes to [`Am::receive_status`]); `sdus` are the peer's.
    #[inline]
    pub fn receive_data(
        &mut self,
        config: &AmConfig,
        now: Instant,
        pdu: &Pdu,
        sdus: &mut SduStore,
        delivered: &mut Vec<Delivered>,
    ) -> Arrival {
        //= TS 25.322 11.4.2: while a reset is pending, data and STATUS are ignored.
        if self.reset.is_pending() {
            return Arrival::Malformed;
        }
        let arrival = self.rx.receive(config, self.format, pdu, now, sdus, delivered);
        self.counters.duplicates += u64::from(arrival == Arrival::Duplicate);
        self.counters.malformed += u64::from(arrival == Arrival::Malformed);
        arrival
    }

    /// A control PDU has come.
    pub fn receive_control(&mut self, config: &AmConfig, octets: &[u8], stores: &mut Stores<'_>) {
        let demand = match Control::parse(octets) {
            Ok(Control::Status) => return self.receive_status(config, octets, stores),
            Ok(Control::Reset(pdu)) => self.reset.on_reset(pdu, self.tx.hfn),
            Ok(Control::ResetAck(pdu)) => self.reset.on_reset_ack(pdu),
            Err(_) => {
                self.counters.malformed += 1;
                return;
            }
        };
        if demand == Demand::Clear {
            self.clear(config, stores.own);
        }
    }

    /// A STATUS PDU has come, alone or on a data PDU.
    pub fn receive_status(&mut self, config: &AmConfig, octets: &[u8], stores: &mut Stores<'_>) {
        if self.reset.is_pending() {
            return;
        }
        let mut heard = std::mem::take(&mut self.heard);
        if heard.read(octets).is_err() {
            self.counters.malformed += 1;
        } else {
            self.act_on(config, &heard, stores);
        }
        self.heard = heard;
    }

    fn act_on(&mut self, config: &AmConfig, heard: &Heard, stores: &mut Stores<'_>) {
        if heard.lsn.is_some() || !heard.missing.is_empty() || heard.window.is_some() {
            match self.tx.on_report(config, stores.own, heard) {
                Verdict::Erroneous => return self.reset.start(config),
                Verdict::MaxDat(sn) => self.on_max_dat(config, sn, stores.own),
                Verdict::Fine => {}
            }
        }
        let mut sender = Sender { config, format: self.format, tx: &mut self.tx, sdus: stores.own };
        if let Some(ack) = heard.mrw_ack {
            self.discard.on_mrw_ack(&mut sender, ack);
        }
        if heard.lsn.is_some() || heard.mrw_ack.is_some() {
            self.discard.on_advance(&mut sender);
        }
        if let Some(mrw) = &heard.mrw {
            self.rx.on_mrw(config, self.format, mrw, stores.peers, stores.delivered);
        }
        if heard.poll.is_some() {
            self.rx.want_report();
        }
    }

    fn on_max_dat(&mut self, config: &AmConfig, sn: u16, own: &mut SduStore) {
        //= TS 25.322 11.3.3a: reset, or discard with explicit signalling.
        match config.discard {
            Discard::MaxDat => {
                let mut sender = Sender { config, format: self.format, tx: &mut self.tx, sdus: own };
                self.discard.on_max_dat(&mut sender, sn);
            }
            Discard::NoDiscard | Discard::Timer => self.reset.start(config),
        }
    }

    /// All variables take their start values (TS 25.322 11.4.3, 11.4.4).
    fn clear(&mut self, config: &AmConfig, own: &mut SduStore) {
        self.tx.reset(config, own, "rlc reset");
        self.tx.hfn = self.tx.hfn.wrapping_add(1);
        self.rx.reset(config);
        self.discard.reset();
    }

    /// The entity is established anew: as [`Am::new`], with its counters.
    pub fn re_establish(&mut self, config: &AmConfig, own: &mut SduStore) {
        self.clear(config, own);
        self.tx.hfn = 0;
        self.reset.re_establish();
    }

    /// When to call `handle_timeout` (or, at the latest, to ask `wants_to_send` again).
    #[inline]
    pub fn next_timeout(&self, config: &AmConfig, sdus: &SduStore, now: Instant) -> Instant {
        let reset = self.reset.next_timeout();
        let discard = self.discard.next_timeout(config, sdus);
        if self.reset.is_pending() {
            // Everything else waits for the answer.
            return reset;
        }
        reset.min(discard).min(self.tx.poll.next_timeout(now)).min(self.rx.next_timeout(now))
    }

    /// Timers that are due at `now`; `sdus` are those it sends.
    pub fn handle_timeout(&mut self, config: &AmConfig, now: Instant, sdus: &mut SduStore) {
        self.reset.handle_timeout(config, now);
        if self.reset.is_pending() {
            return;
        }
        let outstanding = self.tx.outstanding() > 0;
        self.tx.poll.handle_timeout(config, now, outstanding);
        self.rx.handle_timeout(config, now);
        let mut sender = Sender { config, format: self.format, tx: &mut self.tx, sdus };
        if self.discard.handle_timeout(&mut sender, now) {
            self.reset.start(config);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(config: &AmConfig, status: &[u8]) -> Am {
        let mut am = Am::new(config, Format::new(42, false));
        let (mut own, mut peers) = (SduStore::default(), SduStore::default());
        let mut delivered = Vec::new();
        let mut stores = Stores { own: &mut own, peers: &mut peers, delivered: &mut delivered };
        am.receive_control(config, status, &mut stores);
        am
    }

    #[test]
    fn a_report_about_pdus_never_sent_starts_a_reset() {
        let config = AmConfig::default();
        // LSN 0 is fine; LSN 7 and a LIST naming PDU 5 are not: nothing was sent.
        assert_eq!(report(&config, &[0x02, 0x00, 0x00]).resets(), 0);
        assert_eq!(report(&config, &[0x02, 0x00, 0x70]).resets(), 1);
        assert_eq!(report(&config, &[0x03, 0x10, 0x05, 0x02, 0x00, 0x00]).resets(), 1);
    }

    #[test]
    fn control_pdus_that_cannot_be_read_are_counted_and_ignored() {
        let config = AmConfig::default();
        for bad in [&[][..], &[0x10], &[0x70, 0, 0, 0], &[0x03, 0x00], &[0x0F, 0xFF]] {
            let am = report(&config, bad);
            assert_eq!((am.counters.malformed, am.resets()), (1, 0), "{bad:02x?}");
        }
    }

    #[test]
    fn a_window_super_field_stops_new_pdus() {
        let config = AmConfig::default();
        let mut am = report(&config, &[0x01, 0x00, 0x20]);
        let mut sdus = SduStore::default();
        let packet = airloom_base::Packet::build(|_| 0, airloom_base::Body::filler(1, 1000));
        sdus.push(packet, Instant::ZERO, Instant::ZERO);
        assert_eq!(am.serve(&config, Instant::ZERO, 12, &mut sdus, |_, _| {}), 2);
    }

    #[test]
    fn an_sdu_that_begins_where_another_ends_is_polled_for_too() {
        let config = AmConfig { last_pdu_poll: false, ..AmConfig::default() };
        let mut am = Am::new(&config, Format::new(42, false));
        let mut sdus = SduStore::default();
        for len in [20, 60] {
            let packet = airloom_base::Packet::build(|_| 0, airloom_base::Body::filler(1, len));
            sdus.push(packet, Instant::ZERO, Instant::ZERO);
        }
        let mut polls = Vec::new();
        am.serve(&config, Instant::ZERO, 12, &mut sdus, |_, block| {
            let Block::Data { pdu, .. } = block else { return };
            polls.push(AmdHeader::parse(pdu.head()).unwrap().poll);
        });
        // PDU 0 ends the first and begins the second, which ends in PDU 2.
        assert_eq!(polls, [true, false, true]);
    }

    #[test]
    fn a_window_that_closes_behind_pdus_without_a_poll_makes_one() {
        let config = AmConfig { poll_sdu: 0, ..AmConfig::default() };
        let mut am = Am::new(&config, Format::new(42, false));
        let (mut sdus, mut peers) = (SduStore::default(), SduStore::default());
        let packet = airloom_base::Packet::build(|_| 0, airloom_base::Body::filler(1, 1000));
        sdus.push(packet, Instant::ZERO, Instant::ZERO);
        let mut polls = 0;
        let mut count = |_: &SduStore, block: Block<'_>| {
            let Block::Data { pdu, .. } = block else { return };
            polls += u32::from(AmdHeader::parse(pdu.head()).unwrap().poll);
        };
        assert_eq!(am.serve(&config, Instant::ZERO, 5, &mut sdus, &mut count), 5);
        let mut delivered = Vec::new();
        let mut stores = Stores { own: &mut sdus, peers: &mut peers, delivered: &mut delivered };
        am.receive_control(&config, &[0x01, 0x00, 0x20], &mut stores);
        assert!(am.wants_to_send(&sdus, Instant::ZERO));
        // One PDU is repeated with the poll, and no new one is sent.
        assert_eq!(am.serve(&config, Instant::ZERO, 12, &mut sdus, &mut count), 1);
        assert_eq!((polls, am.outstanding()), (1, 5));
    }

    #[test]
    fn a_smaller_receive_window_is_offered_at_once_and_with_each_report() {
        let config = AmConfig { receive_window: Some(0x123), piggyback: false, ..AmConfig::default() };
        let mut am = Am::new(&config, Format::new(42, false));
        let mut sdus = SduStore::default();
        let mut sent = Vec::new();
        let mut serve = |am: &mut Am| {
            am.serve(&config, Instant::ZERO, 1, &mut sdus, |_, block| {
                if let Block::Control(octets) = block {
                    sent.push(octets.to_vec());
                }
            })
        };
        assert_eq!((serve(&mut am), serve(&mut am)), (1, 0));
        am.rx.want_report();
        assert_eq!(serve(&mut am), 1);
        // WINDOW 0x123 and NO_MORE; WINDOW and ACK of everything below 0.
        assert_eq!(sent, [vec![0x01, 0x12, 0x30], vec![0x01, 0x12, 0x32, 0x00, 0x00]]);
    }
}

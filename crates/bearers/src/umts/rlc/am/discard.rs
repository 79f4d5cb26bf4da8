//! Giving up SDUs, and telling the receiver (TS 25.322 9.7.3, 11.6).

use airloom_base::timer::Timer;
use airloom_base::{Duration, Instant};

use super::config::Discard;
use super::sdu::SduStore;
use super::sufi::Mrw;
use super::tx::Tx;
use super::window::{add, distance};
use super::{AmConfig, Format};

/// The MRW procedure under way.
#[derive(Clone, Copy, Debug)]
struct Active {
    mrw: Mrw,
    timer_mrw: Timer,
    vt_mrw: u8,
    send: bool,
}

/// SDU discard with explicit signalling.
#[derive(Clone, Debug, Default)]
pub struct Discarder {
    active: Option<Active>,
    /// A MaxDAT discard that waits for the end of the procedure under way: the last SDU concerned.
    waiting: Option<u32>,
    /// SDUs given up.
    pub count: u64,
}

impl Discarder {
    /// Is there an MRW to submit?
    #[inline]
    pub fn wants_to_send(&self) -> bool {
        self.active.is_some_and(|a| a.send)
    }

    /// The MRW to submit now.
    pub fn next(&mut self, config: &AmConfig, now: Instant) -> Option<Mrw> {
        let active = self.active.as_mut().filter(|a| a.send)?;
        active.send = false;
        active.timer_mrw.arm_after(now, config.timer_mrw);
        Some(active.mrw)
    }

    /// The now the oldest SDU is given up, if it is by timer.
    #[inline]
    pub fn deadline(&self, config: &AmConfig, sdus: &SduStore) -> Instant {
        //= TS 25.322 11.6.2: no new MRW before the procedure under way has ended.
        if config.discard != Discard::Timer || self.active.is_some() {
            return Instant::FAR_FUTURE;
        }
        sdus.first_timed().map_or(Instant::FAR_FUTURE, |(_, sdu)| sdu.queued + config.timer_discard)
    }

    /// When to call `handle_timeout`.
    #[inline]
    pub fn next_timeout(&self, config: &AmConfig, sdus: &SduStore) -> Instant {
        let mrw = self.active.map_or(Instant::FAR_FUTURE, |a| a.timer_mrw.raw());
        mrw.min(self.deadline(config, sdus))
    }

    /// Timers that are due. Yes: reset the link, MaxMRW was reached.
    pub fn handle_timeout(
        &mut self,
        config: &AmConfig,
        format: Format,
        now: Instant,
        tx: &mut Tx,
        sdus: &mut SduStore,
    ) -> bool {
        if let Some(active) = &mut self.active
            && active.timer_mrw.take_due(now)
        {
            //= TS 25.322 11.6.5: repeated as it was, until VT(MRW) reaches MaxMRW.
            active.vt_mrw += 1;
            if active.vt_mrw >= config.max_mrw {
                self.active = None;
                return true;
            }
            active.send = true;
        }
        if self.deadline(config, sdus) <= now {
            self.expire(config, format, config.timer_discard, now, tx, sdus);
        }
        false
    }

    /// Timer_Discard of the oldest SDUs.
    fn expire(
        &mut self,
        config: &AmConfig,
        format: Format,
        after: Duration,
        now: Instant,
        tx: &mut Tx,
        sdus: &mut SduStore,
    ) {
        let (head, offset) = sdus.position();
        let mut last = None;
        while let Some((seq, sdu)) = sdus.first_timed() {
            if sdu.queued + after > now || !was_begun(seq, head, offset) {
                break;
            }
            last = Some(seq);
            sdus.timers_done_before(seq.wrapping_add(1));
        }
        if let Some(last) = last {
            self.give_up(config, format, last, tx, sdus);
        }
        //= TS 25.322 9.7.3.1: SDUs of which nothing was submitted are dropped without signalling.
        self.count += u64::from(sdus.drop_unsent(|sdu| sdu.queued + after <= now, "rlc discard timer"));
    }

    /// PDU `sn` has reached MaxDAT.
    pub fn on_max_dat(
        &mut self,
        config: &AmConfig,
        format: Format,
        sn: u16,
        tx: &mut Tx,
        sdus: &mut SduStore,
    ) {
        //= TS 25.322 11.6.2: all SDUs with a segment or their end in PDUs VT(A)..=SN go.
        let last = tx.last_sdu_in(format, sn);
        if self.active.is_some() {
            self.waiting = Some(last);
            return;
        }
        self.give_up(config, format, last, tx, sdus);
    }

    /// Gives up all SDUs up to `last`, which are at least in part in PDUs, and starts the MRW procedure.
    fn give_up(&mut self, config: &AmConfig, format: Format, last: u32, tx: &mut Tx, sdus: &mut SduStore) {
        let (head, _) = sdus.position();
        let mut seq = last;
        while let Some(sdu) = sdus.get_mut(seq).filter(|s| !s.discarded) {
            sdu.discarded = true;
            self.count += 1;
            seq = seq.wrapping_sub(1);
        }
        if last == head {
            sdus.abandon_partial();
            tx.segmenter.forget_pending();
        }
        let end = sdus.get(last).and_then(|s| s.end);
        if end.is_none() {
            tx.segmenter.forget_pending();
        }
        //= TS 25.322 11.6.2.2: N_LENGTH is 0 if no new SDU begins behind the last discarded one in its PDU; SN_MRW
        //= is then the PDU after it.
        let (sn, n_length) = match end {
            None => (tx.vt_s, 0),
            Some(end) => {
                let is_last_end = end.li == 0 || end.li >= tx.ends_in(format, end.sn);
                if is_last_end && !tx.has_new_sdu_after_last_end(format, end.sn) {
                    (add(end.sn, 1), 0)
                } else {
                    (end.sn, end.li)
                }
            }
        };
        tx.give_up_before(sn);
        let above = distance(tx.vt_a, sn) >= config.window;
        self.active = Some(Active {
            mrw: Mrw::new(sn, n_length, above),
            timer_mrw: Timer::default(),
            vt_mrw: 0,
            send: true,
        });
    }

    /// MRW_ACK of the peer.
    pub fn on_mrw_ack(
        &mut self,
        config: &AmConfig,
        format: Format,
        (n, sn_ack): (u8, u16),
        tx: &mut Tx,
        sdus: &mut SduStore,
    ) {
        let Some(active) = self.active else { return };
        let (to, acked) = (distance(tx.vt_a, active.mrw.last()), distance(tx.vt_a, sn_ack));
        if acked > tx.outstanding() {
            return;
        }
        //= TS 25.322 11.6.4: SN_ACK beyond SN_MRW with N = 0, or equal to it with the same N.
        if (acked > to && n == 0) || (acked == to && n == active.mrw.n_length) {
            tx.advance(sn_ack, sdus, "rlc discard");
            self.finish(config, format, tx, sdus);
        }
    }

    /// VT(A) has moved: was it beyond the PDUs given up?
    pub fn on_advance(&mut self, config: &AmConfig, format: Format, tx: &mut Tx, sdus: &mut SduStore) {
        let Some(active) = self.active else { return };
        let to = distance(tx.vt_a, active.mrw.last());
        if to == 0 || to > tx.outstanding() {
            self.finish(config, format, tx, sdus);
        }
    }

    fn finish(&mut self, config: &AmConfig, format: Format, tx: &mut Tx, sdus: &mut SduStore) {
        self.active = None;
        if let Some(last) = self.waiting.take()
            && sdus.get(last).is_some_and(|s| !s.discarded)
        {
            self.give_up(config, format, last, tx, sdus);
        }
    }

    /// Start values.
    pub fn reset(&mut self) {
        *self = Discarder { count: self.count, ..Discarder::default() };
    }
}

/// Was something of `seq` put into PDUs?
fn was_begun(seq: u32, head: u32, offset: u32) -> bool {
    (seq.wrapping_sub(head) as i32) < 0 || (seq == head && offset > 0)
}

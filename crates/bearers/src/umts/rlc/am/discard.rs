//! Giving up SDUs, and telling the receiver (TS 25.322 9.7.3, 11.6).

use airloom_base::Instant;
use airloom_base::timer::Timer;

use super::config::Discard;
use super::sdu::SduStore;
use super::sufi::{MAX_ITEMS, Mrw};
use super::tx::Tx;
use super::window::{add, distance};
use super::{AmConfig, Format};

/// The sending side of an entity, whose SDUs are given up.
pub struct Sender<'a> {
    pub config: &'a AmConfig,
    pub format: Format,
    pub tx: &'a mut Tx,
    /// The SDUs it sends.
    pub sdus: &'a mut SduStore,
}

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

    /// The MRW to submit, if one is due.
    pub fn mrw(&self) -> Option<Mrw> {
        self.active.filter(|a| a.send).map(|a| a.mrw)
    }

    /// The MRW that was due has been submitted.
    pub fn submitted(&mut self, config: &AmConfig, now: Instant) {
        if let Some(active) = self.active.as_mut().filter(|a| a.send) {
            active.send = false;
            active.timer_mrw.arm_after(now, config.timer_mrw);
        }
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
    pub fn handle_timeout(&mut self, sender: &mut Sender, now: Instant) -> bool {
        if let Some(active) = &mut self.active
            && active.timer_mrw.take_due(now)
        {
            //= TS 25.322 11.6.5: repeated as it was, until VT(MRW) reaches MaxMRW.
            active.vt_mrw += 1;
            if active.vt_mrw >= sender.config.max_mrw {
                self.active = None;
                return true;
            }
            active.send = true;
        }
        if self.deadline(sender.config, sender.sdus) <= now {
            self.expire(sender, now);
        }
        false
    }

    /// Timer_Discard of the oldest SDUs.
    fn expire(&mut self, sender: &mut Sender, now: Instant) {
        let after = sender.config.timer_discard;
        let (head, offset) = sender.sdus.position();
        let mut last = None;
        while let Some((seq, sdu)) = sender.sdus.first_timed() {
            if sdu.queued + after > now || !was_begun(seq, head, offset) {
                break;
            }
            last = Some(seq);
            sender.sdus.timers_done_before(seq.wrapping_add(1));
        }
        if let Some(last) = last {
            self.give_up(sender, last);
        }
        //= TS 25.322 9.7.3.1: SDUs of which nothing was submitted are dropped without signalling.
        let dropped = sender.sdus.drop_unsent(|sdu| sdu.queued + after <= now, "rlc discard timer");
        self.count += u64::from(dropped);
    }

    /// PDU `sn` has reached MaxDAT.
    pub fn on_max_dat(&mut self, sender: &mut Sender, sn: u16) {
        //= TS 25.322 11.6.2: all SDUs with a segment or their end in PDUs VT(A)..=SN go.
        let last = sender.tx.last_sdu_in(sender.format, sn);
        if self.active.is_some() {
            self.waiting = Some(last);
            return;
        }
        self.give_up(sender, last);
    }

    /// Gives up all SDUs up to `last`, which are at least in part in PDUs, and starts the MRW procedure.
    fn give_up(&mut self, sender: &mut Sender, last: u32) {
        let Sender { config, format, tx, sdus } = sender;
        let (head, _) = sdus.position();
        let mut before = EndsBefore::new(*format);
        let mut seq = last;
        while let Some(sdu) = sdus.get_mut(seq).filter(|s| !s.discarded) {
            sdu.discarded = true;
            self.count += 1;
            if let Some(end) = sdu.end.filter(|_| seq != last) {
                before.push(end.sn);
            }
            seq = seq.wrapping_sub(1);
        }
        if last == head {
            sdus.abandon_partial();
        }
        let end = sdus.get(last).and_then(|s| s.end);
        if end.is_none() {
            tx.segmenter.forget_pending();
            tx.leave_out(last);
        }
        //= TS 25.322 11.6.2.2: N_LENGTH is 0 if no new SDU begins behind the last discarded one in its PDU; SN_MRW
        //= is then the PDU after it.
        let (sn, n_length) = match end {
            None => (tx.vt_s, 0),
            Some(end) => {
                let is_last_end = end.li == 0 || end.li >= tx.ends_in(*format, end.sn);
                if is_last_end && !tx.has_new_sdu_after_last_end(*format, end.sn) {
                    (add(end.sn, 1), 0)
                } else {
                    (end.sn, end.li)
                }
            }
        };
        tx.give_up_before(sn);
        let above = distance(tx.vt_a, sn) >= config.window;
        self.active = Some(Active {
            mrw: if above { Mrw::above_window(sn, n_length) } else { before.mrw(sn, n_length) },
            timer_mrw: Timer::default(),
            vt_mrw: 0,
            send: true,
        });
    }

    /// MRW_ACK of the peer.
    pub fn on_mrw_ack(&mut self, sender: &mut Sender, (n, sn_ack): (u8, u16)) {
        let Some(active) = self.active else { return };
        let tx = &mut *sender.tx;
        let (to, acked) = (distance(tx.vt_a, active.mrw.last()), distance(tx.vt_a, sn_ack));
        if acked > tx.outstanding() {
            return;
        }
        //= TS 25.322 11.6.4: SN_ACK beyond SN_MRW with N = 0, or equal to it with the same N.
        if (acked > to && n == 0) || (acked == to && n == active.mrw.n_length) {
            tx.advance(sn_ack, sender.sdus, "rlc discard");
            self.finish(sender);
        }
    }

    /// VT(A) has moved: was it beyond the PDUs given up?
    pub fn on_advance(&mut self, sender: &mut Sender) {
        let Some(active) = self.active else { return };
        let to = distance(sender.tx.vt_a, active.mrw.last());
        if to == 0 || to > sender.tx.outstanding() {
            self.finish(sender);
        }
    }

    fn finish(&mut self, sender: &mut Sender) {
        self.active = None;
        if let Some(last) = self.waiting.take()
            && sender.sdus.get(last).is_some_and(|s| !s.discarded)
        {
            self.give_up(sender, last);
        }
    }

    /// Start values.
    pub fn reset(&mut self) {
        *self = Discarder { count: self.count, ..Discarder::default() };
    }
}

/// Ends of the SDUs given up together with a later one, latest first.
//= TS 25.322 9.2.2.11.7: SN_MRW of the last SDU must be there, those of others may. As many as fit are named, the
//= latest ones.
struct EndsBefore {
    sns: [u16; MAX_ITEMS],
    count: usize,
    room: usize,
}

impl EndsBefore {
    fn new(format: Format) -> Self {
        // Bits of a STATUS PDU besides: type, MRW_ACK, WINDOW, the fixed part of MRW, and the ACK that ends it.
        let others = 4 + 20 + 16 + 12 + 16;
        let fit = (usize::from(format.pdu_octets) * 8).saturating_sub(others) / 12;
        EndsBefore { sns: [0; MAX_ITEMS], count: 0, room: fit.clamp(1, MAX_ITEMS) - 1 }
    }

    fn push(&mut self, sn: u16) {
        if self.count < self.room {
            self.sns[self.count] = sn;
            self.count += 1;
        }
    }

    /// An MRW that names them and the last one, which ends at `sn` and `n_length`.
    fn mrw(&mut self, sn: u16, n_length: u8) -> Mrw {
        let ends = &mut self.sns[..self.count];
        ends.reverse();
        Mrw::new(ends, sn, n_length)
    }
}

/// Was something of `seq` put into PDUs?
fn was_begun(seq: u32, head: u32, offset: u32) -> bool {
    (seq.wrapping_sub(head) as i32) < 0 || (seq == head && offset > 0)
}

#[cfg(test)]
mod tests {
    use airloom_base::{Body, Packet};
    use airloom_wire::bits::BitWriter;

    use super::super::sufi::Sufi;
    use super::*;

    /// The MRW octets after SDUs of these lengths were sent in PDUs of 42 octets and all given up, and the number given up.
    fn mrw_for(lens: &[u32], config: &AmConfig) -> (Vec<u8>, u64) {
        let format = Format::new(42, false);
        let (mut tx, mut sdus) = (Tx::new(config), SduStore::default());
        for len in lens {
            sdus.push(Packet::build(|_| 0, Body::filler(1, *len)), Instant::ZERO, Instant::ZERO);
        }
        while tx.next(config, format, &mut sdus, Instant::ZERO).is_some() {}
        let mut discarder = Discarder::default();
        let late = Instant::ZERO + config.timer_discard;
        assert!(
            !discarder.handle_timeout(&mut Sender { config, format, tx: &mut tx, sdus: &mut sdus }, late)
        );
        let mrw = discarder.mrw().expect("an MRW is due");
        let mut out = [0; 42];
        let mut w = BitWriter::new(&mut out);
        w.write(4, 0).unwrap();
        Sufi::Mrw(mrw).emit(&mut w).unwrap();
        w.pad_to_octet();
        let used = w.octets_used();
        (out[..used].to_vec(), discarder.count)
    }

    fn by_timer() -> AmConfig {
        AmConfig { discard: Discard::Timer, ..AmConfig::default() }
    }

    #[test]
    fn one_sdu_given_up_is_one_sn_mrw() {
        // 100 octets fill PDUs 0 and 1 and end in PDU 2; the window moves to 3.
        assert_eq!(mrw_for(&[100], &by_timer()), (vec![0x06, 0x10, 0x03, 0x00], 1));
    }

    #[test]
    fn sdus_given_up_together_are_all_named() {
        // 20 octets end in PDU 0, 60 more in PDU 2 (39 octets, then 2 behind LIs), 30 in PDU 2 too.
        let (octets, count) = mrw_for(&[20, 60, 5], &by_timer());
        assert_eq!(count, 3);
        // Type 6, LENGTH 3, SN_MRW 0, 2, 3, N_LENGTH 0: nothing follows in PDU 2.
        assert_eq!(octets, [0x06, 0x30, 0x00, 0x00, 0x20, 0x03, 0x00]);
    }

    #[test]
    fn of_many_the_latest_fifteen_are_named() {
        let (octets, count) = mrw_for(&[40; 20], &by_timer());
        assert_eq!(count, 20);
        assert_eq!((octets[0], octets[1] >> 4), (0x06, 15));
    }

    #[test]
    fn above_the_window_only_the_last_is_named_and_length_is_0() {
        // A window of 3 PDUs is full with the three of 100 octets: the new window begins at its upper end.
        let config = AmConfig { window: 3, ..by_timer() };
        assert_eq!(mrw_for(&[100], &config), (vec![0x06, 0x00, 0x03, 0x00], 1));
    }

    #[test]
    fn of_an_sdu_that_is_half_sent_the_number_that_would_have_ended_it_is_given_up_too() {
        // PDUs 0 and 1 fill a window of 2: PDU 2, with the end, is never made.
        let config = AmConfig { window: 2, ..by_timer() };
        assert_eq!(mrw_for(&[100], &config), (vec![0x06, 0x00, 0x03, 0x00], 1));
        // 40 octets fill PDU 0: their end would have been told by PDU 1.
        let config = AmConfig { window: 1, ..by_timer() };
        assert_eq!(mrw_for(&[40], &config), (vec![0x06, 0x00, 0x02, 0x00], 1));
    }
}

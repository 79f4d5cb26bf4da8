//! What leaves, where the sender keeps its books by the octet: what is lost, then new data (RFC 3042, 5681, 6675).

use airloom_base::Instant;

use super::super::sender::{Choice, Limit, Mode, Sender, hold, pending};
use super::Octets;

impl Octets {
    /// The next segment with data or FIN.
    #[inline(always)]
    pub fn choose(&mut self, tx: &mut Sender, now: Instant, room: u64) -> Choice {
        if tx.wants(pending::HEAD) {
            tx.clear(pending::HEAD);
            if tx.snd.una() < tx.snd.nxt() && !tx.is_held(hold::PROBING) {
                return self.choose_head(tx, room);
            }
        }
        match tx.mode() {
            Mode::Recovery if tx.recovers_by_sack() => return self.choose_in_sack_recovery(tx, now, room),
            Mode::Loss => match self.frto_next(tx, now, room) {
                Some(Ok(len)) => return Choice::New(len),
                Some(Err(held)) => return Choice::Nothing(held),
                None => match self.next_lost(tx, room) {
                    Ok(Some((start, end))) => {
                        self.board.resend(start, end);
                        return Choice::Again(start, end);
                    }
                    Ok(None) => {}
                    Err(held) => return Choice::Nothing(held),
                },
            },
            _ => {}
        }
        match self.next_new(tx, now, room) {
            Ok(len) => Choice::New(len),
            Err(held) => Choice::Nothing(held),
        }
    }

    /// How many octets of new data may be sent now.
    #[inline(always)]
    pub(super) fn next_new(&mut self, tx: &mut Sender, now: Instant, room: u64) -> Result<u64, Limit> {
        let len = tx.next_new(now, room)?;
        if len > 0 && !self.window_lets_out(tx, len) { Err(Limit::Congestion) } else { Ok(len) }
    }

    /// What a timeout declared lost, from the bottom, as far as the congestion window allows.
    #[inline(never)]
    fn next_lost(&self, tx: &Sender, room: u64) -> Result<Option<(u64, u64)>, Limit> {
        let pipe = self.pipe(tx);
        let Some((start, end)) = self.board.next_hole(tx.snd.una(), self.board.timeout_mark()) else {
            return Ok(None);
        };
        let end = end.min(tx.snd.end_of(start, room));
        //= RFC 7323 (2.4): beyond a window that shrank a segment is sent again once; afterwards the head alone asks whether
        //= the window has opened.
        if start > tx.snd.una() && start >= tx.snd.window_edge() && start < tx.snd.resent_below() {
            return Err(Limit::Window);
        }
        let suspended = tx.is_held(hold::PROBING);
        let held =
            suspended || pipe > 0 && (tx.is_held(hold::ANY) || pipe + (end - start) > tx.window.cwnd());
        if held { Err(Limit::Congestion) } else { Ok(Some((start, end))) }
    }

    /// One pass of the loop of RFC 6675 (5, step C).
    #[inline(never)]
    fn choose_in_sack_recovery(&mut self, tx: &mut Sender, now: Instant, room: u64) -> Choice {
        let (una, nxt) = (tx.snd.una(), tx.snd.nxt());
        if tx.is_held(hold::PROBING) || tx.window.cwnd() < self.pipe(tx) + tx.snd.mss() {
            return Choice::Nothing(Limit::Congestion);
        }
        //= RFC 6675 (4, NextSeg): lost holes, then new data, then other holes, then once the end of what is outstanding.
        let mut hole = self.board.next_lost(una);
        if hole.is_none() {
            let held = match self.next_new(tx, now, room) {
                Ok(len) => return Choice::New(len),
                Err(held) => held,
            };
            hole = self.board.next_unsacked(una);
            if hole.is_none() {
                return match self.board.next_rescue(una, nxt, tx.recover(), room) {
                    // The rescue does not move HighRxt: it goes beside the scoreboard.
                    Some((start, end)) => Choice::Again(start, end),
                    None => Choice::Nothing(held),
                };
            }
        }
        let Some((start, end)) = hole else { return Choice::Nothing(Limit::Nothing) };
        let end = end.min(tx.snd.end_of(start, room));
        self.board.resend(start, end);
        Choice::Again(start, end)
    }

    /// Fast retransmit: the first segment not acknowledged, whatever the windows say.
    #[inline(never)]
    fn choose_head(&mut self, tx: &Sender, room: u64) -> Choice {
        let (una, nxt) = (tx.snd.una(), tx.snd.nxt());
        if !tx.recovers_by_sack() {
            return Choice::Again(una, nxt.min(tx.snd.end_of(una, room)));
        }
        let (start, end) = self.board.next_hole(una, nxt).unwrap_or((una, nxt));
        let end = end.min(tx.snd.end_of(start, room));
        self.board.resend(start, end);
        self.board.resent_first(end);
        Choice::Again(start, end)
    }

    /// Does the congestion window let `len` octets of new data out?
    #[inline(always)]
    fn window_lets_out(&self, tx: &Sender, len: u64) -> bool {
        let (in_flight, allowance) = match tx.dupacks() {
            0 => (self.pipe(tx), 0),
            _ => (self.flight_for_new_data(tx), limited_allowance(tx)),
        };
        in_flight + len <= tx.window.cwnd() + allowance || in_flight == 0
    }

    fn flight_for_new_data(&self, tx: &Sender) -> u64 {
        if tx.mode() == Mode::Open && tx.dupacks() > 0 && !tx.config().limited_transmit {
            // SACKed segments would let new ones out, which is limited transmit.
            tx.snd.outstanding()
        } else {
            self.pipe(tx)
        }
    }

    /// New data has left, `len` octets of it.
    #[inline(always)]
    pub fn sent_new(&mut self, tx: &mut Sender, now: Instant, len: u64) {
        tx.snd.note_sent(now, 0);
        if tx.dupacks() > 0 {
            if tx.mode() == Mode::Open {
                self.limited += len;
            }
            self.prr_sent(tx, len);
        }
    }

    /// `start..end` was sent again.
    pub fn sent_again(&mut self, tx: &mut Sender, now: Instant, start: u64, end: u64) {
        self.eifel_resends(tx, now);
        self.prr_sent(tx, end - start);
        self.dsack_undo.resent(start, end);
    }

    /// The path takes segments of `mss` octets only.
    pub fn in_smaller_segments(&mut self, tx: &mut Sender, mss: u64) {
        //= RFC 1191 (6.4): what was too large is sent again, one segment until it is acknowledged, and this is no congestion.
        let (una, nxt) = (tx.snd.una(), tx.snd.nxt());
        self.board.time_out(una, nxt, mss, false);
        tx.enter(Mode::Loss);
        tx.begin_episode();
        tx.want(pending::DATA);
    }
}

/// RFC 3042: the first two duplicates let a segment each out, beyond the congestion window.
fn limited_allowance(tx: &Sender) -> u64 {
    if tx.dupacks() == 0 || tx.mode() != Mode::Open || !tx.config().limited_transmit || tx.agreed().sack {
        return 0;
    }
    u64::from(tx.dupacks().min(2)) * tx.snd.mss()
}

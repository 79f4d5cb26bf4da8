//! What leaves, where the sender keeps its books by the octet: what is lost, then new data (RFC 3042, 5681, 6675).

use airloom_base::{Instant, Outgoing};

use super::super::connection::Limit;
use super::super::connection::{Connection, Mode, hold, pending};

impl Connection {
    #[inline(always)]
    pub(crate) fn transmit_by_octets(&mut self, now: Instant) -> Option<Outgoing> {
        if self.pending & pending::HEAD != 0 {
            self.pending &= !pending::HEAD;
            if self.snd.una < self.snd.nxt && self.hold & hold::PROBING == 0 {
                return Some(self.resend_head(now));
            }
        }
        let held = match self.mode {
            Mode::Open | Mode::Disorder | Mode::Cwr => None,
            Mode::Recovery if self.recovers_by_sack() => return self.transmit_in_sack_recovery(now),
            Mode::Recovery => None,
            Mode::Loss => match self.frto_next(now) {
                Some(Ok(len)) => return Some(self.send_more(now, len)),
                Some(Err(held)) => Some(held),
                None => match self.next_lost() {
                    Ok(Some((start, end))) => {
                        self.octets.board.resend(start, end);
                        return Some(self.resend(now, start, end));
                    }
                    Ok(None) => None,
                    Err(held) => Some(held),
                },
            },
        };
        match held.map_or_else(|| self.next_new(now), Err) {
            Ok(len) => Some(self.send_new(now, len)),
            Err(held) => self.nothing_more(now, held),
        }
    }

    /// What a timeout declared lost, from the bottom, as far as the congestion window allows.
    #[inline(never)]
    fn next_lost(&self) -> Result<Option<(u64, u64)>, Limit> {
        let pipe = self.in_flight();
        let Some((start, end)) = self.octets.board.next_hole(self.snd.una, self.octets.board.timeout_mark())
        else {
            return Ok(None);
        };
        let end = end.min(start + self.room());
        //= RFC 7323 (2.4): beyond a window that shrank a segment is sent again once; afterwards the head alone asks whether
        //= the window has opened.
        if start > self.snd.una && start >= self.snd.window_edge() && start < self.snd.resent_below {
            return Err(Limit::Window);
        }
        let suspended = self.hold & hold::PROBING != 0;
        let held = suspended || pipe > 0 && (self.hold != 0 || pipe + (end - start) > self.window.cwnd);
        if held { Err(Limit::Congestion) } else { Ok(Some((start, end))) }
    }

    /// One pass of the loop of RFC 6675 (5, step C).
    #[inline(never)]
    fn transmit_in_sack_recovery(&mut self, now: Instant) -> Option<Outgoing> {
        let (una, nxt, room) = (self.snd.una, self.snd.nxt, self.room());
        if self.hold & hold::PROBING != 0 || self.window.cwnd < self.in_flight() + self.snd.mss {
            return self.nothing_more(now, Limit::Congestion);
        }
        //= RFC 6675 (4, NextSeg): lost holes, then new data, then other holes, then once the end of what is outstanding.
        let mut hole = self.octets.board.next_lost(una);
        if hole.is_none() {
            let held = match self.next_new(now) {
                Ok(len) => return Some(self.send_more(now, len)),
                Err(held) => held,
            };
            hole = self.octets.board.next_unsacked(una);
            if hole.is_none() {
                return match self.octets.board.next_rescue(una, nxt, self.recover, room) {
                    // The rescue does not move HighRxt: it goes beside the scoreboard.
                    Some((start, end)) => Some(self.resend(now, start, end)),
                    None => self.nothing_more(now, held),
                };
            }
        }
        let (start, end) = hole?;
        let end = end.min(start + room);
        self.octets.board.resend(start, end);
        Some(self.resend(now, start, end))
    }

    /// Fast retransmit: the first segment not acknowledged, whatever the windows say.
    #[inline(never)]
    fn resend_head(&mut self, now: Instant) -> Outgoing {
        let (una, nxt, room) = (self.snd.una, self.snd.nxt, self.room());
        if self.recovers_by_sack() {
            let (start, end) = self.octets.board.next_hole(una, nxt).unwrap_or((una, nxt));
            let end = end.min(start + room);
            self.octets.board.resend(start, end);
            self.octets.board.resent_first(end);
            return self.resend(now, start, end);
        }
        self.resend(now, una, nxt.min(una + room))
    }

    /// Does the congestion window let `len` octets of new data out?
    #[inline(always)]
    pub(crate) fn window_lets_out(&self, len: u64) -> bool {
        let (in_flight, allowance) = match self.octets.dupacks {
            0 => (self.in_flight(), 0),
            _ => (self.flight_for_new_data(), self.limited_allowance()),
        };
        in_flight + len <= self.window.cwnd + allowance || in_flight == 0
    }

    fn flight_for_new_data(&self) -> u64 {
        if self.mode == Mode::Open && self.octets.dupacks > 0 && !self.config.limited_transmit {
            // SACKed segments would let new ones out, which is limited transmit.
            self.snd.outstanding()
        } else {
            self.in_flight()
        }
    }

    /// RFC 3042: the first two duplicates let a segment each out, beyond the congestion window.
    fn limited_allowance(&self) -> u64 {
        if self.octets.dupacks == 0
            || self.mode != Mode::Open
            || !self.config.limited_transmit
            || self.agreed.sack
        {
            return 0;
        }
        u64::from(self.octets.dupacks.min(2)) * self.snd.mss
    }

    /// New data has left, `len` octets of it.
    #[inline(always)]
    pub(crate) fn sent_new_by_octets(&mut self, len: u64) {
        if self.octets.dupacks > 0 {
            if self.mode == Mode::Open {
                self.octets.limited += len;
            }
            self.prr_sent(len);
        }
    }

    /// `start..end` was sent again.
    pub(crate) fn resent_by_octets(&mut self, now: Instant, start: u64, end: u64) {
        self.eifel_resends(now);
        self.prr_sent(end - start);
        self.octets.dsack_undo.resent(start, end);
    }

    /// The path takes segments of `mss` octets only.
    pub(crate) fn resend_octets_in_smaller_segments(&mut self, mss: u64) {
        //= RFC 1191 (6.4): what was too large is sent again, one segment until it is acknowledged, and this is no congestion.
        let (una, nxt) = (self.snd.una, self.snd.nxt);
        self.octets.board.time_out(una, nxt, mss, false);
        self.mode = Mode::Loss;
        self.recover = nxt;
        self.pending |= pending::DATA;
    }
}

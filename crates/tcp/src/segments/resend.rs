//! What leaves: probes, what is lost, new data.

use airloom_base::{Instant, Outgoing};

use super::super::connection::Limit;
use super::super::connection::{Connection, pending};
use super::super::send::mark;
use super::Next;
use super::TimerKind;

impl Connection {
    /// The next segment with data or FIN.
    #[inline(always)]
    pub fn transmit_by_segments(&mut self, now: Instant) -> Option<Outgoing> {
        if self.pending & pending::HEAD != 0 || self.segments.probe_due || self.segments.next != Next::Any {
            match self.transmit_repair(now) {
                Ok(out) => return Some(out),
                Err(true) => return self.all_sent(now, Limit::Congestion),
                Err(false) => {}
            }
        }
        match self.next_new(now) {
            Ok(len) => Some(self.send_new(now, len)),
            Err(held) => self.all_sent(now, held),
        }
    }

    /// What is to be repaired. An error: nothing (more), and whether that is all for now.
    #[inline(never)]
    fn transmit_repair(&mut self, now: Instant) -> Result<Outgoing, bool> {
        self.set_timer_put_off(now);
        if self.pending & pending::HEAD != 0 {
            self.pending &= !pending::HEAD;
            if !self.snd.sent.is_empty() {
                return Ok(self.resend_segment(now, 0, true, true));
            }
        }
        if self.segments.probe_due {
            self.segments.probe_due = false;
            if let Some(out) = self.send_probe(now) {
                return Ok(out);
            }
        }
        if self.segments.next == Next::New {
            if let Ok(len) = self.next_new(now) {
                return Ok(self.send_new(now, len));
            }
            if self.snd.nxt > self.recover {
                self.segments.next = Next::Any;
                return Err(true);
            }
            //= RFC 5682 (2.1, step 2): no new data can be sent: conventional recovery.
            self.segments.frto = false;
            self.segments.next = Next::Lost;
        }
        if self.segments.next == Next::Lost {
            if self.segments_in_flight() < self.cwnd_segments()
                && !(self.hold != 0 && self.segments_in_flight() > 0)
                && let Some(index) = self.next_to_resend()
            {
                //= RFC 9293 (3.8.6): beyond a window that shrank only the first segment is sent again.
                if index == 0 || self.start_of(index) < self.snd.window_edge() {
                    return Ok(self.resend_segment(now, index, true, false));
                }
            }
            self.segments.next = Next::Any;
        }
        Err(false)
    }

    /// The probe of RFC 8985 (7.3): new data if there is any and the peer's window takes it, else the last segment again.
    fn send_probe(&mut self, now: Instant) -> Option<Outgoing> {
        if self.snd.has_unsent() && self.snd.window_edge() > self.snd.nxt {
            //= RFC 8985 (7.3): the congestion window may be passed by one segment, Nagle's rule does not hold.
            let len = self.snd.unsent().min(self.snd.window_edge() - self.snd.nxt).min(self.room());
            let out = self.send_new(now, len);
            self.probe_sent(now, false);
            return Some(out);
        }
        let last = self.snd.sent.len().checked_sub(1)?;
        let start = self.start_of(last);
        let end = self.snd.sent[last].end;
        let room = self.room();
        let index = if end - start > room {
            self.split_segment(last, end - room);
            last + 1
        } else {
            last
        };
        let out = self.resend_segment(now, index, false, true);
        self.probe_sent(now, true);
        Some(out)
    }

    /// Splits the head if it is longer than what is sent in one segment now.
    pub(super) fn split_head(&mut self) {
        let at = self.snd.una + self.room();
        self.split_segment(0, at);
    }

    /// Sends the segment at `index` again. A probe is not counted as under way (`counted`). `alone`: not with others of
    /// its group.
    fn resend_segment(&mut self, now: Instant, index: usize, counted: bool, alone: bool) -> Outgoing {
        let start = self.start_of(index);
        let room = self.room();
        self.split_segment(index, start + room);
        if self.offload.on {
            self.resend_in_group(now, index, alone);
        }
        let stamp = self.timestamp(now);
        let end = match self.snd.sent.get_mut(index) {
            Some(segment) => {
                segment.set(mark::EVER);
                segment.at = now;
                if counted {
                    if !segment.has(mark::RESENT) {
                        segment.set(mark::RESENT);
                        self.segments.resent_out += 1;
                    }
                    let undo = &mut self.segments.undo;
                    undo.resent_at = undo.resent_at.or(Some(stamp));
                    undo.unanswered = Some(undo.unanswered.unwrap_or(0) + 1);
                }
                segment.end
            }
            None => self.snd.nxt,
        };
        if self.agreed.sack {
            self.rack_resent(end, now);
        }
        if counted && self.reduces() {
            self.segments.prr.out += 1;
        }
        let out = self.resend(now, start, end);
        //= RFC 6675 (6): the timer starts again when the head is sent again.
        if counted && index == 0 && self.segments.timer != TimerKind::Reorder {
            self.segments.timer = TimerKind::Rto;
            self.rearm_rto(now);
        }
        out
    }

    /// New data left.
    #[inline]
    pub(crate) fn sent_new_by_segments(&mut self, now: Instant) {
        if self.reduces() {
            self.segments.prr.out += 1;
        }
        self.segments.fresh_sent = true;
        if self.snd.sent.len() == 1 {
            self.rearm_rto(now);
        } else if self.segments.timer == TimerKind::Probe && (self.pace.on || !self.wants_probe()) {
            // Otherwise the probe's time is set anew as soon as nothing more leaves, at this same moment.
            self.rearm_rto(now);
        }
    }

    /// Nothing more leaves now.
    #[inline]
    fn all_sent(&mut self, now: Instant, held: Limit) -> Option<Outgoing> {
        if self.segments.fresh_sent | self.segments.restart {
            let (fresh, restart) = (self.segments.fresh_sent, self.segments.restart);
            self.segments.fresh_sent = false;
            self.segments.restart = false;
            // After new data a probe's time counts from that; what the acknowledgement asked for stands otherwise.
            if !self.schedule_probe(now, !fresh) && restart {
                self.rearm_rto(now);
            }
        }
        self.nothing_more(now, held)
    }
}

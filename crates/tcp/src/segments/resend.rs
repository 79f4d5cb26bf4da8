//! What leaves: probes, what is lost, new data.

use airloom_base::Instant;

use super::super::send::mark;
use super::super::sender::{Choice, Limit, Sender, hold, pending};
use super::timeout::{rearm_rto, restart_rto};
use super::tlp::wants_probe;
use super::{Next, Segments};
use crate::timers::Alarm;

impl Segments {
    /// The next segment with data or FIN.
    #[inline(always)]
    pub fn choose(&mut self, tx: &mut Sender, now: Instant, room: u64) -> Choice {
        if (tx.wants(pending::HEAD) || self.probe_due || self.next != Next::Any)
            && let Some(choice) = self.choose_repair(tx, now, room)
        {
            return choice;
        }
        match self.next_new(tx, now, room) {
            Ok(len) => Choice::New(len),
            Err(held) => self.all_sent(tx, now, held),
        }
    }

    /// What is to be repaired. None: nothing, and new data may leave.
    #[inline(never)]
    fn choose_repair(&mut self, tx: &mut Sender, now: Instant, room: u64) -> Option<Choice> {
        self.set_timer_put_off(tx, now);
        if tx.wants(pending::HEAD) {
            tx.clear(pending::HEAD);
            if !tx.snd.sent().is_empty() {
                return Some(self.choose_again(tx, now, room, 0, true, true));
            }
        }
        if self.probe_due
            && let Some(choice) = self.choose_probe(tx, now, room)
        {
            return Some(choice);
        }
        if self.next == Next::New {
            if let Ok(len) = self.next_new(tx, now, room) {
                return Some(Choice::New(len));
            }
            if tx.snd.nxt() > tx.recover() {
                self.next = Next::Any;
                return Some(self.all_sent(tx, now, Limit::Congestion));
            }
            //= RFC 5682 (2.1, step 2): no new data can be sent: conventional recovery.
            self.frto = false;
            self.next = Next::Lost;
        }
        if self.next == Next::Lost {
            let in_flight = self.in_flight(tx);
            if in_flight < tx.cwnd_segments()
                && !(tx.is_held(hold::ANY) && in_flight > 0)
                && let Some(index) = self.next_to_resend(tx)
            {
                //= RFC 9293 (3.8.6): beyond a window that shrank only the first segment is sent again.
                if index == 0 || tx.snd.start_of(index) < tx.snd.window_edge() {
                    return Some(self.choose_again(tx, now, room, index, true, false));
                }
            }
            self.next = Next::Any;
        }
        None
    }

    /// How many octets of new data may be sent now.
    #[inline(always)]
    fn next_new(&mut self, tx: &mut Sender, now: Instant, room: u64) -> Result<u64, Limit> {
        let len = tx.next_new(now, room)?;
        if len > 0 {
            let (in_flight, cwnd) = (self.in_flight(tx), tx.cwnd_segments());
            if in_flight >= cwnd {
                return Err(Limit::Congestion);
            }
            if self.offload.wants_group() {
                self.offload.begin_group(tx, now, cwnd - in_flight)?;
            }
        }
        Ok(len)
    }

    /// The probe of RFC 8985 (7.3): new data if there is any and the peer's window takes it, else the last segment again.
    fn choose_probe(&mut self, tx: &mut Sender, now: Instant, room: u64) -> Option<Choice> {
        if tx.snd.has_unsent() && tx.snd.window_edge() > tx.snd.nxt() {
            //= RFC 8985 (7.3): the congestion window may be passed by one segment, Nagle's rule does not hold.
            return Some(Choice::New(tx.snd.unsent().min(tx.snd.window_edge() - tx.snd.nxt()).min(room)));
        }
        self.probe_due = false;
        let last = tx.snd.sent().len().checked_sub(1)?;
        let start = tx.snd.start_of(last);
        // A FIN needs no room.
        let end = tx.snd.sent()[last].end().min(tx.snd.end());
        let index = if end.saturating_sub(start) > room {
            self.split_segment(tx, last, end - room);
            last + 1
        } else {
            last
        };
        let again = self.choose_again(tx, now, room, index, false, true);
        self.probe_sent(tx, now, true);
        Some(again)
    }

    /// The segment at `index` leaves again. A probe is not counted as under way (`counted`). `alone`: not with others of its
    /// group.
    fn choose_again(
        &mut self,
        tx: &mut Sender,
        now: Instant,
        room: u64,
        index: usize,
        counted: bool,
        alone: bool,
    ) -> Choice {
        let start = tx.snd.start_of(index);
        self.split_segment(tx, index, tx.snd.end_of(start, room));
        if self.offload.is_on() {
            let quota = tx.cwnd_segments().saturating_sub(self.in_flight(tx));
            self.offload.resend(tx, now, index, alone, quota);
        }
        let stamp = tx.timestamp(now);
        let end = match tx.snd.sent_mut(index) {
            Some(segment) => {
                segment.set(mark::EVER);
                segment.at = now;
                if counted {
                    if !segment.has(mark::RESENT) {
                        segment.set(mark::RESENT);
                        self.resent_out += 1;
                    }
                    let undo = &mut self.undo;
                    undo.resent_at = undo.resent_at.or(Some(stamp));
                    undo.unanswered = Some(undo.unanswered.unwrap_or(0) + 1);
                }
                segment.end()
            }
            None => tx.snd.nxt(),
        };
        if tx.agreed().sack {
            self.rack_resent(tx, end, now);
        }
        if counted && tx.mode().reduces() {
            self.prr.sent(1);
        }
        //= RFC 6675 (6): the timer starts again when the head is sent again.
        if counted && index == 0 && tx.timers.sender() != Alarm::Reordering {
            restart_rto(tx, now);
        }
        Choice::Again(start, end)
    }

    /// New data left.
    #[inline(always)]
    pub fn sent_new(&mut self, tx: &mut Sender, now: Instant) {
        let marks = self.offload.leaves(tx);
        tx.snd.note_sent(now, marks);
        if tx.mode().reduces() {
            self.prr.sent(1);
        }
        self.fresh_sent = true;
        if tx.snd.sent().len() == 1 {
            rearm_rto(tx, now);
        } else if tx.timers.sender() == Alarm::LossProbe && (tx.pace.is_on() || !wants_probe(tx)) {
            // Otherwise the probe's time is set anew as soon as nothing more leaves, at this same moment.
            rearm_rto(tx, now);
        }
        if self.probe_due {
            self.probe_due = false;
            self.probe_sent(tx, now, false);
        }
    }

    /// Nothing more leaves now.
    #[inline]
    fn all_sent(&mut self, tx: &mut Sender, now: Instant, held: Limit) -> Choice {
        if self.fresh_sent | self.restart {
            let (fresh, restart) = (self.fresh_sent, self.restart);
            self.fresh_sent = false;
            self.restart = false;
            // After new data a probe's time counts from that; what the acknowledgement asked for stands otherwise.
            if !self.schedule_probe(tx, now, !fresh) && restart {
                rearm_rto(tx, now);
            }
        }
        if self.offload.is_on() {
            self.offload.pauses(&tx.snd);
        }
        Choice::Nothing(held)
    }
}

//! An acknowledgement, from the top: what it tells of which segment, then what follows from that.

use airloom_base::{Duration, Instant};

use super::super::config::RttSampling;
use super::super::congestion::{Ack, Flow};
use super::super::connection::{Connection, Mode, hold, pending};
use super::super::send::mark;
use super::super::state::Step;

/// What the header says.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Arrived<'a> {
    /// SEG.ACK.
    pub ack: u64,
    /// The echoed timestamp, if timestamps were agreed on.
    pub echo: Option<u32>,
    /// SACK blocks as on the wire.
    pub blocks: &'a [(u32, u32)],
    /// It carries data or moves the window, so it is no duplicate.
    pub not_duplicate: bool,
    /// ECN-Echo.
    pub ece: bool,
}

/// What the segments say of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct News {
    /// SND.UNA moved.
    pub advanced: bool,
    /// Segments that were acknowledged cumulatively.
    pub acked: u64,
    /// Something was reported for the first time.
    pub sacked: bool,
    /// It reports a duplicate.
    pub dsack: bool,
    /// The duplicate is our probe.
    pub dsack_of_probe: bool,
    /// It is no duplicate acknowledgement.
    pub not_duplicate: bool,
    /// Something that was sent only once, before the timeout, has arrived.
    pub original: bool,
    /// Something that was sent again is acknowledged.
    pub resent_acked: bool,
    /// The receiver has taken back what it had reported.
    pub reneging: bool,
    /// A retransmission was lost.
    pub resent_lost: bool,
    /// The retransmission timer starts again.
    pub restart_timer: bool,
    /// The lowest segment that arrived after later ones.
    pub late_from: Option<u64>,
    /// When the first and the last of the segments acknowledged or reported, sent once, had left.
    pub acked_sent: Option<(Instant, Instant)>,
    pub sacked_sent: Option<(Instant, Instant)>,
    pub ece: bool,
    /// Round-trip time of the latest segment.
    pub latest_rtt: Option<Duration>,
}

impl News {
    pub(super) fn late(&mut self, from: u64) {
        self.late_from = Some(self.late_from.map_or(from, |l| l.min(from)));
    }
}

/// Notes one more send time.
pub(super) fn widen_span(span: &mut Option<(Instant, Instant)>, at: Instant) {
    *span = Some(span.map_or((at, at), |(first, _)| (first, at)));
}

impl Connection {
    /// An acknowledgement, in the order in which Linux goes through it.
    #[inline]
    pub fn ack_by_segments(&mut self, now: Instant, a: Arrived<'_>) {
        let una = self.snd.una;
        let (delivered, marked) = (self.repair.delivered, self.repair.marked);
        let had = self.segments_out();
        let fack = if self.sack_ok { self.fack() } else { una };
        let in_flight_before = if self.rate.is_some() { self.in_flight() } else { 0 };
        self.repair.undo.echo = a.echo;
        let mut news = News { not_duplicate: a.not_duplicate, ece: a.ece, ..News::default() };
        if !a.blocks.is_empty() && self.sack_ok {
            self.take_blocks(now, a.ack, a.blocks, &mut news);
        }
        if a.ack < una {
            // An old one may still report something.
            if !a.blocks.is_empty() && had > 0 {
                self.on_news(now, &mut news, una, false);
            }
            return;
        }
        if a.ack > una {
            self.advance(now, a.ack, &mut news);
            self.check_late_cumulative(fack, &news);
        }
        if had == 0 {
            if news.dsack {
                self.on_news(now, &mut news, una, false);
            }
            self.probe_answered_by(now, a.ack, &news);
        } else {
            self.follow_up(now, a.ack, una, (delivered, marked), &mut news);
            if self.rate.is_some() {
                self.sample_and_control(now, self.repair.marked - marked, in_flight_before, &news);
            }
        }
        self.pending |= pending::DATA;
        if news.advanced {
            if self.snd.wants_room() {
                self.room_for_more();
            }
            if self.snd.fin_acked() {
                self.step(now, Step::FinAcked);
            }
        }
    }

    /// What follows from the news, with something outstanding before. `before`: what had been delivered and marked lost.
    #[inline]
    fn follow_up(&mut self, now: Instant, ack: u64, una: u64, before: (u64, u64), news: &mut News) {
        let (delivered, marked) = before;
        self.take_rtt(now, news);
        if self.sack_ok {
            self.adapt_reo_wnd(delivered);
        }
        if self.repair.probe.is_some() {
            self.probe_answered_by(now, ack, news);
        }
        let plain = (news.not_duplicate || news.acked > 0) && !news.sacked && !news.dsack && !news.ece;
        if !plain || self.mode != Mode::Open {
            let duplicate = !news.advanced && !news.not_duplicate && !news.dsack;
            self.on_news(now, news, una, duplicate);
        }
        if news.restart_timer {
            self.set_transmit_timer(now);
        }
        let delivered = self.repair.delivered - delivered;
        let lost = self.repair.marked - marked;
        self.control(now, delivered, lost, news);
        #[cfg(debug_assertions)]
        debug_assert!(self.counters_hold(), "the counters follow the segments");
    }

    /// SND.UNA moves.
    #[inline]
    fn advance(&mut self, now: Instant, ack: u64, news: &mut News) {
        let una = self.snd.una;
        news.advanced = true;
        // A probe of the window that was taken had not been counted as sent.
        self.facts.app_sent += ack.min(self.snd.end()).saturating_sub(self.snd.nxt);
        let mut start = una;
        while let Some(segment) = self.snd.sent.front().copied().filter(|s| s.end <= ack) {
            self.snd.sent.pop_front();
            news.acked += 1;
            self.segment_acked(now, segment, start, news);
            start = segment.end;
        }
        self.snd.una = ack;
        self.snd.nxt = self.snd.nxt.max(ack);
        self.snd.release();
        if let Some(rate) = &mut self.rate {
            rate.acknowledged(ack);
        }
        if !self.repair.sacked.is_empty() {
            self.repair.sacked.remove_below(ack);
        }
        self.stalled_since = now;
        self.repair.timeouts = 0;
        self.hold &= !hold::MTU;
        if news.acked > 0 {
            news.restart_timer = true;
            if !self.sack_ok {
                self.duplicates_acked(news);
            }
        }
        // What stands at the head was reported before and is not acknowledged: it was taken back.
        news.reneging = self.snd.sent.front().is_some_and(|s| s.has(mark::SACKED));
    }

    #[inline]
    fn segment_acked(&mut self, now: Instant, s: super::super::send::Sent, start: u64, news: &mut News) {
        let repair = &mut self.repair;
        if s.marks & !mark::JOINED == 0 {
            widen_span(&mut news.acked_sent, s.at);
            news.late(start);
            news.original |= s.end <= self.recover;
        } else {
            if s.has(mark::EVER) {
                repair.resent_out -= u64::from(s.has(mark::RESENT));
                news.resent_acked = true;
            } else if !s.has(mark::SACKED) {
                widen_span(&mut news.acked_sent, s.at);
                news.late(start);
                news.original |= s.end <= self.recover;
            }
            repair.lost_out -= u64::from(s.has(mark::LOST));
            if s.has(mark::SACKED) {
                repair.sacked_out = repair.sacked_out.saturating_sub(1);
                return;
            }
        }
        if self.sack_ok {
            repair.delivered += 1;
            self.rack_arrived(now, s.at, s.end, s.has(mark::EVER));
        }
    }

    /// Round-trip times, as Linux takes them: from what was sent once, acknowledged or reported.
    #[inline]
    fn take_rtt(&mut self, now: Instant, news: &mut News) {
        let span = news.acked_sent.filter(|_| !news.resent_acked);
        let reported = news.sacked_sent.map(|(first, _)| now.since(first));
        let exact = self.config.rtt_sampling == RttSampling::EverySegment;
        let sample = match span.map(|(first, _)| now.since(first)).or(reported).filter(|_| exact) {
            Some(rtt) => Some(rtt),
            None if news.acked > 0 => self.age_of_echo(now),
            None => None,
        };
        //= RFC 8985 (6.2, step 1): min_RTT from the latest segment, which waited least.
        if let Some((_, last)) = news.sacked_sent.or(span) {
            let latest = now.since(last);
            self.rtt.note_min(latest);
            news.latest_rtt = Some(latest);
        }
        if self.watched {
            let delivered = (self.repair.delivered - self.told_delivered) * self.snd.mss;
            self.told_delivered = self.repair.delivered;
            let (rtt, segments) = (news.latest_rtt, news.acked);
            let brought = Ack { rtt, segments, delivered, ece: news.ece, ..self.brought(now) };
            self.controller.observe(&mut self.window, &brought);
        }
        let Some(sample) = sample else { return };
        self.rtt_sampled(sample);
        if news.acked == 0
            && let (Some(reported), Some(head)) = (reported, self.snd.sent.front())
            && self.config.rto_restart_on_sack
            && reported > now.since(head.at)
        {
            // Data from before the head was sent last still arrives, so the head cannot be answered yet.
            news.restart_timer = true;
        }
    }

    /// A measurement goes to the estimator.
    fn rtt_sampled(&mut self, sample: Duration) {
        let per_round_trip = match self.config.rtt_sampling {
            RttSampling::Timestamps => self.snd.outstanding().div_ceil(2 * self.snd.mss),
            _ => 1,
        };
        let progress = (self.snd.una, self.snd.nxt);
        self.rtt.sample_at(&self.config, sample, per_round_trip, progress);
    }

    /// Congestion control: `delivered` segments arrived, `lost` more are held for lost.
    #[inline]
    fn control(&mut self, now: Instant, delivered: u64, lost: u64, news: &News) {
        if self.rate.is_some() {
            return;
        }
        if self.reduces() {
            self.reduce(delivered, lost, news.advanced);
            return;
        }
        // Where the path reorders, SACKed data counts as it comes.
        let raise = if self.repair.reordering > u64::from(super::DUP_THRESH) {
            news.acked > 0 || news.sacked
        } else {
            news.acked > 0
        };
        if !raise || delivered == 0 || (self.config.cwnd_validation && !self.usage.is_limited(&self.window)) {
            return;
        }
        let octets = delivered * self.snd.mss;
        let brought = Ack { octets, segments: delivered, delivered: octets, ..self.brought(now) };
        self.controller.on_ack(&mut self.window, &brought, &self.config);
    }

    /// A controller that decides everything itself gets a sample of the delivery rate, in every state.
    #[inline(never)]
    fn sample_and_control(&mut self, now: Instant, lost: u64, in_flight_before: u64, news: &News) {
        let Some(mut rate) = self.rate.take() else { return };
        let mss = self.snd.mss;
        let delivered = (self.repair.delivered - self.told_delivered) * mss;
        self.told_delivered = self.repair.delivered;
        let sample = rate.sample(now, delivered, self.rtt.min());
        let mut flow = Flow {
            sample,
            delivered: rate.delivered(),
            in_flight_before,
            lost: lost * mss,
            in_recovery: self.mode == Mode::Recovery,
            in_loss: self.mode == Mode::Loss,
            limit: false,
        };
        let brought = Ack { rtt: news.latest_rtt, delivered, segments: news.acked, ..self.brought(now) };
        self.controller.control(&mut self.window, &brought, &mut flow);
        if flow.limit {
            rate.limited_by_application(self.in_flight());
        }
        self.rate = Some(rate);
    }
}

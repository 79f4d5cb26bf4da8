//! An acknowledgement, from the top: what it tells of which segment, then what follows from that.

use airloom_base::{Duration, Instant};

use super::super::config::RttSampling;
use super::super::congestion::{Ack, Delivery, Hears};
use super::super::connection::{Connection, Mode, hold, pending};
use super::super::send::mark;
use super::super::state::{State, Step};

/// What the header says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived<'a> {
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
    /// An acknowledgement of what was sent and nothing else, in the open state.
    #[inline]
    pub fn new_ack_by_segments(&mut self, now: Instant, echo: Option<u32>, ack: u64) {
        let nothing_odd = self.segments.is_quiet() && self.snd.una >= self.snd.resent_below;
        if nothing_odd && self.agreed.sack && self.rate.is_none() {
            self.expected_by_segments(now, echo, ack);
        } else {
            self.ack_by_segments(now, Arrived { ack, echo, blocks: &[], not_duplicate: true, ece: false });
        }
    }

    /// Does what [`Connection::ack_by_segments`] would do, where nothing outstanding is reported, lost or was ever sent
    /// again: all segments left in the order of their numbers, the first is the oldest and the last is RACK's.
    #[inline(always)]
    fn expected_by_segments(&mut self, now: Instant, echo: Option<u32>, ack: u64) {
        let mut segments = 0;
        let mut span = None;
        let mut end = ack;
        while let Some(sent) = self.snd.sent.front().filter(|s| s.end <= ack) {
            segments += 1;
            widen_span(&mut span, sent.at);
            end = sent.end;
            self.snd.sent.pop_front();
        }
        let before = self.segments.delivered;
        self.segments.delivered += segments;
        self.segments.undo.echo = echo;
        self.snd.una = ack;
        self.snd.release();
        self.liveness.stalled_since = now;
        self.segments.timeouts = 0;
        self.hold &= !hold::MTU;
        let latest = span.map(|(_, last)| now.since(last));
        if let (Some((_, last)), Some(latest)) = (span, latest) {
            self.segments.rack.arrived(now, last, end, false, None);
            self.rtt.note_min(latest);
        }
        let mss = self.snd.mss;
        let delivered = (self.segments.delivered - self.told_delivered) * mss;
        let mut brought = Ack { rtt: latest, segments, delivered, ..self.brought(now) };
        if self.about.hears == Hears::News {
            self.told_delivered = self.segments.delivered;
            self.controller.observe(&mut self.window, &brought);
        }
        let sample = match span {
            Some((first, _)) if self.config.rtt_sampling == RttSampling::EverySegment => {
                Some(now.since(first))
            }
            Some(_) => self.age_of_echo(now),
            None => None,
        };
        if let Some(sample) = sample {
            self.rtt_sampled(sample);
            brought.srtt = self.rtt.srtt();
        }
        self.adapt_reo_wnd(before);
        self.pending |= pending::DATA;
        if segments > 0 {
            // What leaves now sets the timer once more: it is set when that is over.
            if self.pace.on || self.snd.sent.is_empty() || !self.state.can_send() {
                self.set_transmit_timer(now);
            } else {
                self.segments.restart = true;
            }
            if !self.config.cwnd_validation || self.usage.is_limited(&self.window) {
                let octets = segments * mss;
                brought.rtt = None;
                brought.octets = octets;
                brought.delivered = octets;
                self.controller.on_ack(&mut self.window, &brought);
            }
        }
        if self.snd.wants_room() {
            self.room_for_more();
        }
        if self.snd.fin_acked() {
            self.step(now, Step::FinAcked);
        }
    }

    /// Sets the retransmission timer if that was put off.
    #[inline]
    pub(super) fn set_timer_put_off(&mut self, now: Instant) {
        if self.segments.restart {
            self.segments.restart = false;
            self.set_transmit_timer(now);
        }
    }

    /// An acknowledgement, in the order in which Linux goes through it.
    pub fn ack_by_segments(&mut self, now: Instant, a: Arrived<'_>) {
        let una = self.snd.una;
        if a.ack == una && a.blocks.is_empty() && self.hears_only(a.echo) {
            return;
        }
        self.set_timer_put_off(now);
        let (delivered, marked) = (self.segments.delivered, self.segments.marked);
        let had = self.segments_out();
        let fack = if self.agreed.sack { self.fack() } else { una };
        let in_flight_before = if self.rate.is_some() { self.in_flight() } else { 0 };
        self.segments.undo.echo = a.echo;
        let mut news = News { not_duplicate: a.not_duplicate, ece: a.ece, ..News::default() };
        if !a.blocks.is_empty() && self.agreed.sack {
            self.take_blocks(now, a.ack, a.blocks, &mut news);
        }
        if a.ack < una {
            // An old one may still report something.
            if !a.blocks.is_empty() && had > 0 {
                self.on_news(now, &mut news, una, false);
                // What it shows to have arrived makes room. Linux: the window stays as it is.
                self.pending |= pending::DATA;
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
                self.sample_and_control(now, self.segments.marked - marked, in_flight_before, &news);
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

    /// The acknowledgement of one who only receives: it says nothing if nothing is outstanding or waits to be sent.
    #[inline]
    fn hears_only(&mut self, echo: Option<u32>) -> bool {
        let nothing = self.snd.sent.is_empty()
            && !self.snd.has_unsent()
            && !self.sent_something
            && self.state == State::Established
            && self.segments.probe.is_none()
            && self.rate.is_none();
        if nothing {
            self.segments.undo.echo = echo;
        }
        nothing
    }

    /// What follows from the news, with something outstanding before. `before`: what had been delivered and marked lost.
    #[inline]
    fn follow_up(&mut self, now: Instant, ack: u64, una: u64, before: (u64, u64), news: &mut News) {
        let (delivered, marked) = before;
        self.take_rtt(now, news);
        if self.agreed.sack {
            self.adapt_reo_wnd(delivered);
        }
        if self.segments.probe.is_some() {
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
        let delivered = self.segments.delivered - delivered;
        let lost = self.segments.marked - marked;
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
        if !self.segments.sacked.is_empty() {
            self.segments.sacked.remove_below(ack);
        }
        self.liveness.stalled_since = now;
        self.segments.timeouts = 0;
        self.hold &= !hold::MTU;
        if news.acked > 0 {
            news.restart_timer = true;
            if !self.agreed.sack {
                self.duplicates_acked(news);
            }
        }
        // What stands at the head was reported before and is not acknowledged: it was taken back.
        news.reneging = self.snd.sent.front().is_some_and(|s| s.has(mark::SACKED));
    }

    #[inline]
    fn segment_acked(&mut self, now: Instant, s: super::super::send::Sent, start: u64, news: &mut News) {
        let books = &mut self.segments;
        if s.marks & !mark::JOINED == 0 {
            widen_span(&mut news.acked_sent, s.at);
            news.late(start);
            news.original |= s.end <= self.recover;
        } else {
            if s.has(mark::EVER) {
                books.resent_out -= u64::from(s.has(mark::RESENT));
                news.resent_acked = true;
            } else if !s.has(mark::SACKED) {
                widen_span(&mut news.acked_sent, s.at);
                news.late(start);
                news.original |= s.end <= self.recover;
            }
            books.lost_out -= u64::from(s.has(mark::LOST));
            if s.has(mark::SACKED) {
                books.sacked_out = books.sacked_out.saturating_sub(1);
                return;
            }
        }
        if self.agreed.sack {
            books.delivered += 1;
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
        if self.about.hears == Hears::News {
            let delivered = (self.segments.delivered - self.told_delivered) * self.snd.mss;
            self.told_delivered = self.segments.delivered;
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

    /// Congestion control: `delivered` segments arrived, `lost` more are marked lost.
    #[inline]
    fn control(&mut self, now: Instant, delivered: u64, lost: u64, news: &News) {
        //= RFC 3168 (6.1.2): no growth on an acknowledgement that reports congestion.
        if self.rate.is_some() || (news.ece && self.hold & hold::ECN != 0) {
            return;
        }
        if self.reduces() {
            self.reduce(delivered, lost, news.advanced);
            return;
        }
        // Where the path reorders, SACKed data counts as it comes.
        let raise = if self.segments.reordering > u64::from(super::DUP_THRESH) {
            news.acked > 0 || news.sacked
        } else {
            news.acked > 0
        };
        if !raise || delivered == 0 || (self.config.cwnd_validation && !self.usage.is_limited(&self.window)) {
            return;
        }
        let octets = delivered * self.snd.mss;
        let brought = Ack { octets, segments: delivered, delivered: octets, ..self.brought(now) };
        self.controller.on_ack(&mut self.window, &brought);
    }

    /// A controller that decides everything itself gets a sample of the delivery rate, in every state.
    #[inline(never)]
    fn sample_and_control(&mut self, now: Instant, lost: u64, in_flight_before: u64, news: &News) {
        let Some(mut rate) = self.rate.take() else { return };
        let mss = self.snd.mss;
        let delivered = (self.segments.delivered - self.told_delivered) * mss;
        self.told_delivered = self.segments.delivered;
        let sample = rate.sample(now, delivered, self.rtt.min());
        let delivery = Delivery { sample, total: rate.delivered(), in_flight_before, lost: lost * mss };
        let (rtt, segments) = (news.latest_rtt, news.acked);
        let brought = Ack { rtt, delivered, segments, ece: news.ece, delivery, ..self.brought(now) };
        self.controller.on_ack(&mut self.window, &brought);
        if self.controller.limits_itself() {
            rate.limited_by_application(self.in_flight());
        }
        self.rate = Some(rate);
    }
}

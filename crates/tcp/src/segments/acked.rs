//! An acknowledgement, from the top: what it tells of which segment, then what follows from that.
//! A circle, of which `mod.rs` says why.

use airloom_base::{Duration, Instant};

use super::super::config::RttSampling;
use super::super::congestion::{Ack, Delivery, Hears};
use super::super::rtt;
use super::super::send::{Sent, mark};
use super::super::sender::{Arrived, Mode, Sender, hold, pending};
use super::Segments;

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
    /// How many of so many octets delivered are reported as marked.
    fn marked(&self, delivered: u64) -> u64 {
        if self.ece { delivered } else { 0 }
    }

    pub(super) fn late(&mut self, from: u64) {
        self.late_from = Some(self.late_from.map_or(from, |l| l.min(from)));
    }
}

/// Notes one more send time.
pub(super) fn widen_span(span: &mut Option<(Instant, Instant)>, at: Instant) {
    *span = Some(span.map_or((at, at), |(first, _)| (first, at)));
}

impl Segments {
    /// An acknowledgement of what was sent and nothing else, in the open state.
    #[inline]
    pub fn on_new_ack(&mut self, tx: &mut Sender, now: Instant, echo: Option<u32>, ack: u64) {
        let nothing_odd = self.is_quiet() && tx.snd.una() >= tx.snd.resent_below();
        if nothing_odd && tx.agreed().sack && !tx.samples_rate() {
            self.on_expected_ack(tx, now, echo, ack);
        } else {
            let arrived = Arrived { ack, echo, not_duplicate: true, established: true, ..Arrived::default() };
            self.on_ack(tx, now, arrived);
        }
    }

    /// Does what [`Segments::on_ack`] would do, where nothing outstanding is reported, lost or was ever sent
    /// again: all segments left in the order of their numbers, the first is the oldest and the last is RACK's.
    #[inline(always)]
    fn on_expected_ack(&mut self, tx: &mut Sender, now: Instant, echo: Option<u32>, ack: u64) {
        let una = tx.snd.una();
        let mut segments = 0;
        let mut span = None;
        let mut end = ack;
        while let Some(sent) = tx.snd.pop_acknowledged(ack) {
            segments += 1;
            widen_span(&mut span, sent.at);
            end = sent.end();
        }
        let before = self.delivered;
        self.delivered += segments;
        self.undo.echo = echo;
        tx.snd.acknowledge(ack);
        tx.liveness.progressed(now);
        self.timeouts = 0;
        tx.release(hold::MTU);
        let latest = span.map(|(_, last)| now.since(last));
        if let (Some((_, last)), Some(latest)) = (span, latest) {
            self.rack.arrived(now, last, end, false, None);
            tx.note_min_rtt(latest);
        }
        let mss = tx.snd.mss();
        let delivered = (self.delivered - self.told_delivered) * mss;
        let mut brought =
            Ack { rtt: latest, segments, delivered, ..tx.brought(now, self.octets_in_flight(tx)) };
        if tx.about().hears == Hears::News {
            self.told_delivered = self.delivered;
            tx.controller_observes(&brought);
        }
        let sample = match span {
            Some((first, _)) if tx.config().rtt_sampling == RttSampling::EverySegment => {
                Some(now.since(first))
            }
            Some((first, _)) => self.rarer_sample(tx, now, una, Some(first)),
            None => None,
        };
        if let Some(sample) = sample {
            rtt_sampled(tx, sample);
            brought.srtt = tx.rtt().srtt();
        }
        self.adapt_reo_wnd(before);
        tx.want(pending::DATA);
        if segments > 0 {
            // What leaves now sets the timer once more: it is set when that is over.
            if tx.pace.is_on() || tx.snd.sent().is_empty() {
                self.set_transmit_timer(tx, now);
            } else {
                self.restart = true;
            }
            if tx.uses_window() {
                let octets = segments * mss;
                brought.rtt = None;
                brought.octets = octets;
                brought.delivered = octets;
                tx.controller_grows(&brought);
            }
        }
    }

    /// Sets the retransmission timer if that was put off.
    #[inline]
    pub(super) fn set_timer_put_off(&mut self, tx: &mut Sender, now: Instant) {
        if self.restart {
            self.restart = false;
            self.set_transmit_timer(tx, now);
        }
    }

    /// An acknowledgement, in the order in which Linux goes through it.
    pub fn on_ack(&mut self, tx: &mut Sender, now: Instant, a: Arrived<'_>) {
        let una = tx.snd.una();
        if a.ack == una && a.blocks.is_empty() && self.hears_only(tx, a) {
            return;
        }
        self.set_timer_put_off(tx, now);
        let (delivered, marked) = (self.delivered, self.marked);
        let had = tx.snd.segments_out();
        let fack = if tx.agreed().sack { self.fack(tx) } else { una };
        let in_flight_before = if tx.samples_rate() { self.octets_in_flight(tx) } else { 0 };
        self.undo.echo = a.echo;
        let mut news = News { not_duplicate: a.not_duplicate, ece: a.ece, ..News::default() };
        if !a.blocks.is_empty() && tx.agreed().sack {
            self.take_blocks(tx, now, a.ack, a.blocks, &mut news);
        }
        if a.ack < una {
            // An old one may still report something.
            if !a.blocks.is_empty() && had > 0 {
                self.on_news(tx, now, &mut news, una, false);
                // What it shows to have arrived makes room. Linux: the window stays as it is.
                tx.want(pending::DATA);
            }
            return;
        }
        if a.ack > una {
            self.advance(tx, now, a.ack, &mut news);
            self.check_late_cumulative(tx, fack, &news);
        }
        if had == 0 {
            if news.dsack {
                self.on_news(tx, now, &mut news, una, false);
            }
            self.probe_answered_by(tx, now, a.ack, &news);
        } else {
            self.follow_up(tx, now, a.ack, una, (delivered, marked), &mut news);
            if tx.samples_rate() {
                self.sample_and_control(tx, now, self.marked - marked, in_flight_before, &news);
            }
        }
        tx.want(pending::DATA);
    }

    /// The acknowledgement of one who only receives: it says nothing if nothing is outstanding or waits to be sent.
    #[inline]
    fn hears_only(&mut self, tx: &Sender, a: Arrived<'_>) -> bool {
        let nothing = tx.snd.sent().is_empty()
            && !tx.snd.has_unsent()
            && !tx.has_sent()
            && a.established
            && self.probe.is_none()
            && !tx.samples_rate();
        if nothing {
            self.undo.echo = a.echo;
        }
        nothing
    }

    /// What follows from the news, with something outstanding before. `before`: what had been delivered and marked lost.
    #[inline]
    fn follow_up(
        &mut self,
        tx: &mut Sender,
        now: Instant,
        ack: u64,
        una: u64,
        before: (u64, u64),
        news: &mut News,
    ) {
        let (delivered, marked) = before;
        self.take_rtt(tx, now, una, news);
        if tx.agreed().sack {
            self.adapt_reo_wnd(delivered);
        }
        if self.probe.is_some() {
            self.probe_answered_by(tx, now, ack, news);
        }
        let plain = (news.not_duplicate || news.acked > 0) && !news.sacked && !news.dsack && !news.ece;
        if !plain || tx.mode() != Mode::Open {
            let duplicate = !news.advanced && !news.not_duplicate && !news.dsack;
            self.on_news(tx, now, news, una, duplicate);
        }
        if news.restart_timer {
            self.set_transmit_timer(tx, now);
        }
        let delivered = self.delivered - delivered;
        let lost = self.marked - marked;
        self.control(tx, now, delivered, lost, news);
        #[cfg(debug_assertions)]
        debug_assert!(self.counters_hold(tx), "the counters follow the segments");
    }

    /// SND.UNA moves.
    #[inline]
    fn advance(&mut self, tx: &mut Sender, now: Instant, ack: u64, news: &mut News) {
        let una = tx.snd.una();
        news.advanced = true;
        // A probe of the window that was taken had not been counted as sent.
        tx.facts.app_sent += ack.min(tx.snd.end()).saturating_sub(tx.snd.nxt());
        let mut start = una;
        while let Some(segment) = tx.snd.pop_acknowledged(ack) {
            news.acked += 1;
            self.segment_acked(tx, now, segment, start, news);
            start = segment.end();
        }
        tx.snd.acknowledge(ack);
        if let Some(rate) = tx.rate() {
            rate.acknowledged(ack);
        }
        if !self.sacked.is_empty() {
            self.sacked.remove_below(ack);
        }
        tx.liveness.progressed(now);
        self.timeouts = 0;
        tx.release(hold::MTU);
        if news.acked > 0 {
            news.restart_timer = true;
            if !tx.agreed().sack {
                self.duplicates_acked(tx, news);
            }
        }
        // What stands at the head was reported before and is not acknowledged: it was taken back.
        news.reneging = tx.snd.sent().front().is_some_and(|s| s.has(mark::SACKED));
    }

    #[inline]
    fn segment_acked(&mut self, tx: &Sender, now: Instant, s: Sent, start: u64, news: &mut News) {
        if !s.has(!mark::JOINED) {
            widen_span(&mut news.acked_sent, s.at);
            news.late(start);
            news.original |= s.end() <= tx.recover();
        } else {
            if s.has(mark::EVER) {
                self.resent_out -= u64::from(s.has(mark::RESENT));
                news.resent_acked = true;
            } else if !s.has(mark::SACKED) {
                widen_span(&mut news.acked_sent, s.at);
                news.late(start);
                news.original |= s.end() <= tx.recover();
            }
            self.lost_out -= u64::from(s.has(mark::LOST));
            if s.has(mark::SACKED) {
                self.sacked_out = self.sacked_out.saturating_sub(1);
                return;
            }
        }
        if tx.agreed().sack {
            self.delivered += 1;
            self.rack_arrived(tx, now, s.at, s.end(), s.has(mark::EVER));
        }
    }

    /// Round-trip times, as Linux takes them: from what was sent once, acknowledged or reported. `una`: SND.UNA before.
    #[inline]
    fn take_rtt(&mut self, tx: &mut Sender, now: Instant, una: u64, news: &mut News) {
        let span = news.acked_sent.filter(|_| !news.resent_acked);
        let reported = news.sacked_sent.map(|(first, _)| now.since(first));
        let exact = tx.config().rtt_sampling == RttSampling::EverySegment;
        let first = span.map(|(first, _)| first);
        let sample = match first.map(|first| now.since(first)).or(reported).filter(|_| exact) {
            Some(rtt) => Some(rtt),
            None if news.acked > 0 && exact => tx.age_of_echo(now, self.undo.echo),
            None if news.acked > 0 => self.rarer_sample(tx, now, una, first),
            None => None,
        };
        //= RFC 8985 (6.2, step 1): min_RTT from the latest segment, which waited least.
        if let Some((_, last)) = news.sacked_sent.or(span) {
            let latest = now.since(last);
            tx.note_min_rtt(latest);
            news.latest_rtt = Some(latest);
        }
        if tx.about().hears == Hears::News {
            let delivered = (self.delivered - self.told_delivered) * tx.snd.mss();
            self.told_delivered = self.delivered;
            let (rtt, segments) = (news.latest_rtt, news.acked);
            let marked = news.marked(delivered);
            let brought =
                Ack { rtt, segments, delivered, marked, ..tx.brought(now, self.octets_in_flight(tx)) };
            tx.controller_observes(&brought);
        }
        let Some(sample) = sample else { return };
        rtt_sampled(tx, sample);
        if news.acked == 0
            && let (Some(reported), Some(head)) = (reported, tx.snd.sent().front())
            && tx.config().rto_restart_on_sack
            && reported > now.since(head.at)
        {
            // Data from before the head was sent last still arrives, so the head cannot be answered yet.
            news.restart_timer = true;
        }
    }

    /// A round-trip time where not every segment gives one. `una`: SND.UNA before; `first`: when the first of what was
    /// acknowledged and sent once had left.
    #[inline(never)]
    fn rarer_sample(
        &self,
        tx: &mut Sender,
        now: Instant,
        una: u64,
        first: Option<Instant>,
    ) -> Option<Duration> {
        if by_echoes(tx) {
            return tx.age_of_echo(now, self.undo.echo);
        }
        //= RFC 6298 (3): one per round trip is enough.
        first.filter(|_| tx.snd.gives_sample(una + 1)).map(|sent| rtt::elapsed(tx.config(), sent, now))
    }

    /// Congestion control: `delivered` segments arrived, `lost` more are marked lost.
    #[inline]
    fn control(&mut self, tx: &mut Sender, now: Instant, delivered: u64, lost: u64, news: &News) {
        //= RFC 3168 (6.1.2): no growth on an acknowledgement that reports congestion.
        if tx.samples_rate() || (news.ece && tx.is_held(hold::ECN)) {
            return;
        }
        if tx.mode().reduces() {
            self.reduce(tx, delivered, lost, news.advanced);
            return;
        }
        // Where the path reorders, SACKed data counts as it comes.
        let raise = if self.reordering > u64::from(super::DUP_THRESH) {
            news.acked > 0 || news.sacked
        } else {
            news.acked > 0
        };
        if !raise || delivered == 0 || !tx.uses_window() {
            return;
        }
        let octets = delivered * tx.snd.mss();
        let brought = Ack {
            octets,
            segments: delivered,
            delivered: octets,
            marked: news.marked(octets),
            ..tx.brought(now, self.octets_in_flight(tx))
        };
        tx.controller_grows(&brought);
    }

    /// A controller that decides everything itself gets a sample of the delivery rate, in every state.
    #[inline(never)]
    fn sample_and_control(
        &mut self,
        tx: &mut Sender,
        now: Instant,
        lost: u64,
        in_flight_before: u64,
        news: &News,
    ) {
        let (mss, min_rtt) = (tx.snd.mss(), tx.rtt().min());
        let delivered = (self.delivered - self.told_delivered) * mss;
        self.told_delivered = self.delivered;
        let Some(rate) = tx.rate() else { return };
        let sample = rate.sample(now, delivered, min_rtt);
        let (total, lost_segments) = (rate.delivered(), self.marked);
        let delivery = Delivery { sample, total, in_flight_before, lost: lost * mss, lost_segments, min_rtt };
        let (rtt, segments) = (news.latest_rtt, news.acked);
        let brought = Ack {
            rtt,
            delivered,
            segments,
            marked: news.marked(delivered),
            delivery,
            ..tx.brought(now, self.octets_in_flight(tx))
        };
        tx.controller_grows(&brought);
        if tx.is_limited_by_controller() {
            let in_flight = self.octets_in_flight(tx);
            if let Some(rate) = tx.rate() {
                rate.limited_by_application(in_flight);
            }
        }
    }
}

/// A measurement goes to the estimator.
fn rtt_sampled(tx: &mut Sender, sample: Duration) {
    let per_round_trip = if by_echoes(tx) { tx.snd.outstanding().div_ceil(2 * tx.snd.mss()) } else { 1 };
    tx.sample_rtt(sample, per_round_trip);
}

/// Does every echo of a timestamp give a round-trip time?
#[inline]
fn by_echoes(tx: &Sender) -> bool {
    tx.config().rtt_sampling == RttSampling::Timestamps && tx.agreed().timestamps
}

//! An acknowledgement, where the sender keeps its books by the octet: SACK blocks, round-trip times, and what follows in each
//! state (RFC 5681, 6582, 6675).

use airloom_base::{Duration, Instant};

use super::super::config::RttSampling;
use super::super::congestion::{Ack, Event, Hears};
use super::super::connection::{Connection, Mode, hold, pending, widen};
use super::super::rtt;
use super::super::state::Step;
use super::super::timers::Alarm;
use super::super::wire::{Flags, Header};
use super::frto::Frto;

impl Connection {
    /// The acknowledgement of a segment in a synchronized state. `is_bare`: it carries no data, and its window is that of the
    /// last one.
    #[inline]
    pub(crate) fn ack_by_octets(&mut self, now: Instant, h: &Header, ack: u64, is_bare: bool) {
        let is_bare = is_bare && !h.flags.has(Flags::SYN);
        let news = if self.agreed.sack && !h.options.sack.is_empty() {
            self.take_sack_blocks(now, h, ack)
        } else {
            0
        };
        let reported = self.reports_congestion(h);
        if reported {
            self.reduce_for_ecn(now, ack);
        }
        if ack > self.snd.una {
            self.new_ack_by_octets(now, h.options.timestamps.map(|(_, echo)| echo), ack, news, reported);
        } else if ack == self.snd.una && self.snd.nxt > ack {
            //= RFC 5681 (2): no data, no SYN or FIN, data outstanding, the same window. RFC 6675 (2): or new SACK blocks.
            if news > 0 && self.about.hears == Hears::News {
                let brought = Ack { delivered: news, ..self.brought(now) };
                self.controller.observe(&mut self.window, &brought);
            }
            let duplicate = if self.agreed.sack {
                news > 0
            } else {
                // A probe, or the answer to one, says nothing of what arrived.
                h.options.probe.is_none() && is_bare
            };
            if self.octets.frto != Frto::Off {
                self.frto_hears(now, news, is_bare, reported);
            }
            if duplicate {
                self.duplicate_ack(now, news);
            } else if self.mode != Mode::Open {
                self.pending |= pending::DATA;
            }
        }
    }

    /// Takes the SACK blocks of an acknowledgement; says how many octets are news.
    fn take_sack_blocks(&mut self, now: Instant, h: &Header, ack: u64) -> u64 {
        let una = self.snd.una.max(ack);
        let mut news = 0;
        let mut lowest = u64::MAX;
        let mut covered = None;
        for (i, (left, right)) in h.options.sack.as_slice().iter().enumerate() {
            let (left, right) = (widen(una, *left), widen(una, *right));
            let inside_second = i == 0
                && h.options.sack.as_slice().get(1).is_some_and(|(l, r)| {
                    let (l, r) = (widen(una, *l), widen(una, *r));
                    l <= left && right <= r
                });
            //= RFC 2883 (4): a first block below the acknowledgement, or inside the second, reports a duplicate.
            if i == 0 && left < right && (right <= ack || inside_second) {
                covered = Some((left, right));
                self.octets.eifel.note_dsack();
                self.dsack_arrives(now, left, right);
                continue;
            }
            let sensible = left < right && left > una && right <= self.snd.nxt;
            if sensible && self.octets.board.has_room(self.snd.sent.len()) {
                let (fresh, _) = self.octets.board.next_gap(left);
                if fresh < right {
                    lowest = lowest.min(fresh);
                    news += self.octets.board.sack(left, right);
                }
            }
        }
        if covered.is_some_and(|(_, right)| right <= self.snd.resent_below) {
            self.facts.spurious += 1;
        }
        if news > 0 {
            let lost_edge = self.octets.board.lost_edge();
            self.octets.board.update(self.snd.una, self.snd.mss);
            self.octets.further_loss |= self.octets.board.lost_edge() > lost_edge;
            self.sample_sacked(now, lowest);
        }
        news
    }

    /// SND.UNA moves to `ack`; `echo` is the echoed timestamp, `sacked` what the SACK blocks reported for the first time.
    #[inline]
    pub(crate) fn new_ack_by_octets(
        &mut self,
        now: Instant,
        echo: Option<u32>,
        ack: u64,
        sacked: u64,
        ece: bool,
    ) {
        let una = self.snd.una;
        let octets = ack - una;
        // A probe of the window that was taken had not been counted as sent.
        self.facts.app_sent += ack.min(self.snd.end()).saturating_sub(self.snd.nxt);
        let arrived_before = self.octets.board.acknowledge(una, ack, self.snd.mss);
        self.snd.una = ack;
        self.snd.nxt = self.snd.nxt.max(ack);
        self.snd.release();
        let (segments, rtt) = self.take_times(now, echo, una, ack);
        self.liveness.stalled_since = now;
        self.hold &= !hold::MTU;
        self.pending |= pending::DATA;
        let mut spurious = false;
        if self.config.eifel {
            self.eifel_adapts(ack, rtt);
            spurious = self.eifel_ends(now, echo, octets, ece);
        }
        let delivered = octets + sacked - arrived_before;
        let brought = Ack { octets, segments, delivered, rtt, ece, ..self.brought(now) };
        if self.about.hears == Hears::News {
            self.controller.observe(&mut self.window, &brought);
        }
        let mut restart = true;
        match self.mode {
            //= RFC 4015 (3.1, step 6): the window does not change otherwise with this acknowledgement.
            _ if spurious => {}
            Mode::Open | Mode::Disorder | Mode::Cwr => {
                self.octets.dupacks = 0;
                self.octets.limited = 0;
                //= RFC 3168 (6.1.2): no growth on an acknowledgement that reports congestion.
                if !ece && (!self.config.cwnd_validation || self.usage.is_limited(&self.window)) {
                    self.controller.on_ack(&mut self.window, &brought);
                }
            }
            Mode::Loss => {
                self.octets.dupacks = 0;
                if self.octets.frto == Frto::Off || !self.frto_advances(now, ack, octets, ece) {
                    self.ack_after_timeout(now, ack, &brought);
                }
            }
            Mode::Recovery => {
                restart = self.ack_in_recovery(now, ack, octets);
                if self.reduces_in_proportion() {
                    let news =
                        if self.recovers_by_sack() { delivered } else { self.news_without_sack(octets) };
                    //= RFC 9937: a safe acknowledgement shows progress and no further loss; without SACK a partial one shows one.
                    let safe = self.recovers_by_sack() && !self.octets.further_loss;
                    self.prr_ack(news, safe);
                }
            }
        }
        if self.snd.una == self.snd.nxt && self.hold & hold::ECN == 0 {
            //= RFC 6298 (5.2): all is acknowledged: off.
            self.timers.stop(Alarm::Retransmission);
            self.timers.settle();
        } else if restart {
            //= RFC 6298 (5.3): new data is acknowledged: once more from now.
            let at = self.rtt.deadline(&self.config, now);
            self.timers.arm(Alarm::Retransmission, at);
        }
        if self.snd.wants_room() {
            self.room_for_more();
        }
        if self.snd.fin_acked() {
            self.step(now, Step::FinAcked);
        }
    }

    /// New data acknowledged in the loss state.
    fn ack_after_timeout(&mut self, now: Instant, ack: u64, brought: &Ack) {
        //= RFC 5681 (3.1): slow start repairs what a timeout declared lost.
        //= RFC 3168 (6.1.2): but does not grow on an acknowledgement that reports congestion.
        if !brought.ece {
            self.controller.on_ack(&mut self.window, brought);
        }
        if ack >= self.recover {
            self.octets.frto = Frto::Off;
            self.mode = Mode::Open;
            self.controller.on_event(&mut self.window, now, Event::Open);
        }
    }

    /// Round-trip time from what lies between `una` and `ack`; returns how many segments that was, and the time of the
    /// last of them.
    #[inline(always)]
    fn take_times(&mut self, now: Instant, echo: Option<u32>, una: u64, ack: u64) -> (u64, Option<Duration>) {
        let mut segments = 0;
        let mut first = None;
        let mut last = now;
        while let Some(sent) = self.snd.sent.front().filter(|s| s.end <= ack) {
            segments += 1;
            first = first.or(Some(*sent));
            last = sent.at;
            self.snd.sent.pop_front();
        }
        //= RFC 6298 (3): no time from segments that were sent again, nor from those that waited behind them.
        let first = first.filter(|_| una >= self.snd.resent_below);
        let last = first.map(|_| now.since(last));
        match (self.config.rtt_sampling, first) {
            (RttSampling::EverySegment, Some(sent)) => {
                self.rtt.sample_at(&self.config, now.since(sent.at), 1, (self.snd.una, self.snd.nxt));
            }
            (RttSampling::Timestamps, _) if self.agreed.timestamps => self.sample_echo(now, echo),
            (RttSampling::EverySegment, None) => self.sample_echo(now, echo),
            (_, Some(sent)) if sent.end > self.snd.sample_above => {
                self.snd.sample_above = self.snd.nxt;
                self.rtt.sample(&self.config, rtt::elapsed(&self.config, sent.at, now), 1);
            }
            _ => {}
        }
        (segments, last)
    }

    /// A round-trip time from a timestamp, if timestamps were agreed on.
    fn sample_echo(&mut self, now: Instant, echo: Option<u32>) {
        //= RFC 7323 (4.1): only an acknowledgement of new data gives a sample.
        if let Some(echo) = echo.filter(|_| self.agreed.timestamps) {
            self.sample_timestamp(now, echo);
        }
    }

    /// What SACK blocks say of time: they reported `lowest`, and perhaps more above, for the first time.
    fn sample_sacked(&mut self, now: Instant, lowest: u64) {
        if lowest < self.snd.resent_below || self.config.rtt_sampling != RttSampling::EverySegment {
            return;
        }
        let at = self.snd.sent.partition_point(|s| s.end <= lowest);
        let Some(sent) = self.snd.sent.get(at) else { return };
        // Linux: this too is a measurement.
        let rtt = now.since(sent.at);
        self.rtt.sample_at(&self.config, rtt, 1, (self.snd.una, self.snd.nxt));
        let head = if self.snd.una < self.snd.resent_below {
            self.liveness.last_resent
        } else {
            self.snd.sent.front().map_or(now, |s| s.at)
        };
        // Data from before the head was sent last still arrives, so the head cannot be answered yet.
        if self.config.rto_restart_on_sack && sent.at < head {
            let at = self.rtt.deadline(&self.config, now);
            self.timers.arm(Alarm::Retransmission, at);
        }
    }
}

//! An acknowledgement, where the sender keeps its books by the octet: SACK blocks, round-trip times, and what follows in each
//! state (RFC 5681, 6582, 6675).

use airloom_base::{Duration, Instant};

use super::super::config::RttSampling;
use super::super::congestion::{Ack, Event, Hears};
use super::super::sender::{Arrived, Mode, Sender, hold, pending, widen};
use super::super::timers::Alarm;
use super::Octets;
use super::frto::Frto;
use super::prr::reduces_in_proportion;

impl Octets {
    /// The acknowledgement of a segment in a synchronized state.
    #[inline]
    pub fn on_ack(&mut self, tx: &mut Sender, now: Instant, a: Arrived<'_>) {
        let ack = a.ack;
        let news = if tx.agreed().sack && !a.blocks.is_empty() { self.take_blocks(tx, now, a) } else { 0 };
        if a.ece {
            self.reduce_for_ecn(tx, now, ack);
        }
        if ack > tx.snd.una() {
            self.on_new_ack(tx, now, a.echo, ack, news, a.ece);
        } else if ack == tx.snd.una() && tx.snd.nxt() > ack {
            //= RFC 5681 (2): no data, no SYN or FIN, data outstanding, the same window. RFC 6675 (2): or new SACK blocks.
            if news > 0 && tx.about().hears == Hears::News {
                let marked = if a.ece { news } else { 0 };
                let brought = Ack { delivered: news, marked, ..tx.brought(now, self.pipe(tx)) };
                tx.controller_observes(&brought);
            }
            let duplicate = if tx.agreed().sack {
                news > 0
            } else {
                // A probe, or the answer to one, says nothing of what arrived.
                !a.is_probe && a.is_bare
            };
            if self.frto != Frto::Off {
                self.frto_hears(tx, now, news, a.is_bare, a.ece);
            }
            if duplicate {
                self.duplicate_ack(tx, now, news);
            } else if tx.mode() != Mode::Open {
                tx.want(pending::DATA);
            }
        } else if news > 0 {
            // An old one: what it shows to have arrived makes room.
            tx.want(pending::DATA);
            self.prr_duplicate(tx, news);
        }
    }

    /// Takes the SACK blocks of an acknowledgement; says how many octets are news.
    fn take_blocks(&mut self, tx: &mut Sender, now: Instant, a: Arrived<'_>) -> u64 {
        let una = tx.snd.una().max(a.ack);
        let mut news = 0;
        let mut lowest = u64::MAX;
        let mut covered = None;
        for (i, (left, right)) in a.blocks.iter().enumerate() {
            let (left, right) = (widen(una, *left), widen(una, *right));
            let inside_second = i == 0
                && a.blocks.get(1).is_some_and(|(l, r)| {
                    let (l, r) = (widen(una, *l), widen(una, *r));
                    l <= left && right <= r
                });
            //= RFC 2883 (4): a first block below the acknowledgement, or inside the second, reports a duplicate.
            if i == 0 && left < right && (right <= a.ack || inside_second) {
                covered = Some((left, right));
                self.eifel.note_dsack(a.ack > tx.snd.una());
                self.dsack_arrives(tx, now, left, right);
                continue;
            }
            let sensible = left < right && left > una && right <= tx.snd.nxt();
            if sensible && self.board.has_room(tx.snd.sent().len()) {
                let (fresh, _) = self.board.next_gap(left);
                if fresh < right {
                    lowest = lowest.min(fresh);
                    news += self.board.sack(left, right);
                }
            }
        }
        if let Some((left, right)) = covered
            && right <= tx.snd.resent_below()
        {
            tx.facts.spurious += self.needless.reports(left, right, 1);
        }
        if news > 0 {
            let lost_edge = self.board.lost_edge();
            self.board.update(tx.snd.una(), tx.snd.mss());
            self.further_loss |= self.board.lost_edge() > lost_edge;
            sample_sacked(tx, now, lowest);
        }
        news
    }

    /// SND.UNA moves to `ack`; `echo` is the echoed timestamp, `sacked` what the SACK blocks reported for the first time.
    #[inline]
    pub fn on_new_ack(
        &mut self,
        tx: &mut Sender,
        now: Instant,
        echo: Option<u32>,
        ack: u64,
        sacked: u64,
        ece: bool,
    ) {
        let una = tx.snd.una();
        let octets = ack - una;
        // A probe of the window that was taken had not been counted as sent.
        tx.facts.app_sent += ack.min(tx.snd.end()).saturating_sub(tx.snd.nxt());
        let arrived_before = self.board.acknowledge(una, ack, tx.snd.mss());
        tx.snd.acknowledge(ack);
        let (segments, rtt) = take_times(tx, now, echo, una, ack);
        tx.liveness.progressed(now);
        tx.release(hold::MTU);
        tx.want(pending::DATA);
        let mut spurious = false;
        if tx.config().eifel {
            self.eifel_adapts(tx, ack, rtt);
            spurious = self.eifel_ends(tx, now, echo, octets, ece);
        }
        let delivered = octets + sacked - arrived_before;
        let marked = if ece { delivered } else { 0 };
        let brought = Ack { octets, segments, delivered, rtt, marked, ..tx.brought(now, self.pipe(tx)) };
        if tx.about().hears == Hears::News {
            tx.controller_observes(&brought);
        }
        let mut restart = true;
        match tx.mode() {
            //= RFC 4015 (3.1, step 6): the window does not change otherwise with this acknowledgement.
            _ if spurious => {}
            Mode::Open | Mode::Disorder | Mode::Cwr => {
                tx.forget_dupacks();
                self.limited = 0;
                //= RFC 3168 (6.1.2): no growth on an acknowledgement that reports congestion.
                if !ece && tx.uses_window() {
                    tx.controller_grows(&brought);
                }
            }
            Mode::Loss => {
                tx.forget_dupacks();
                if self.frto == Frto::Off || !self.frto_advances(tx, now, ack, octets, ece) {
                    self.ack_after_timeout(tx, now, ack, &brought, ece);
                }
            }
            Mode::Recovery => {
                restart = self.ack_in_recovery(tx, now, ack, octets);
                if reduces_in_proportion(tx) {
                    let news =
                        if tx.recovers_by_sack() { delivered } else { self.news_without_sack(tx, octets) };
                    //= RFC 9937: a safe acknowledgement shows progress and no further loss; without SACK a partial one shows one.
                    let safe = tx.recovers_by_sack() && !self.further_loss;
                    self.prr_ack(tx, news, safe);
                }
            }
        }
        if tx.snd.una() == tx.snd.nxt() && !tx.is_held(hold::ECN) {
            //= RFC 6298 (5.2): all is acknowledged: off.
            tx.timers.stop(Alarm::Retransmission);
            tx.timers.settle();
        } else if restart {
            //= RFC 6298 (5.3): new data is acknowledged: once more from now.
            tx.arm_retransmission(now);
        }
    }

    /// New data acknowledged in the loss state.
    fn ack_after_timeout(&mut self, tx: &mut Sender, now: Instant, ack: u64, brought: &Ack, ece: bool) {
        //= RFC 5681 (3.1): slow start repairs what a timeout declared lost.
        //= RFC 3168 (6.1.2): but does not grow on an acknowledgement that reports congestion.
        if !ece {
            tx.controller_grows(brought);
        }
        if ack >= tx.recover() {
            self.frto = Frto::Off;
            tx.enter(Mode::Open);
            tx.tell_controller(now, Event::Open);
        }
    }
}

/// Round-trip time from what lies between `una` and `ack`; returns how many segments that was, and the time of the
/// last of them.
#[inline(always)]
fn take_times(
    tx: &mut Sender,
    now: Instant,
    echo: Option<u32>,
    una: u64,
    ack: u64,
) -> (u64, Option<Duration>) {
    let mut segments = 0;
    let mut first = None;
    let mut last = now;
    while let Some(sent) = tx.snd.pop_acknowledged(ack) {
        segments += 1;
        first = first.or(Some(sent));
        last = sent.at;
    }
    //= RFC 6298 (3): no time from segments that were sent again, nor from those that waited behind them.
    let first = first.filter(|_| una >= tx.snd.resent_below());
    let last = first.map(|_| now.since(last));
    match (tx.config().rtt_sampling, first) {
        (RttSampling::EverySegment, Some(sent)) => {
            tx.sample_rtt(now.since(sent.at), 1);
        }
        //= RFC 7323 (4.1): only an acknowledgement of new data gives a sample.
        (RttSampling::Timestamps, _) if tx.agreed().timestamps => tx.sample_echo(now, echo),
        (RttSampling::EverySegment, None) => tx.sample_echo(now, echo),
        (_, Some(sent)) if tx.snd.gives_sample(sent.end()) => {
            tx.sample_ticks(now, sent.at);
        }
        _ => {}
    }
    (segments, last)
}

/// What SACK blocks say of time: they reported `lowest`, and perhaps more above, for the first time.
fn sample_sacked(tx: &mut Sender, now: Instant, lowest: u64) {
    if lowest < tx.snd.resent_below() || tx.config().rtt_sampling != RttSampling::EverySegment {
        return;
    }
    let at = tx.snd.sent().partition_point(|s| s.end() <= lowest);
    let Some(sent) = tx.snd.sent().get(at).copied() else { return };
    // Linux: this too is a measurement.
    tx.sample_rtt(now.since(sent.at), 1);
    let head = if tx.snd.una() < tx.snd.resent_below() {
        tx.liveness.last_resent()
    } else {
        tx.snd.sent().front().map_or(now, |s| s.at)
    };
    // Data from before the head was sent last still arrives, so the head cannot be answered yet.
    if tx.config().rto_restart_on_sack && sent.at < head {
        tx.arm_retransmission(now);
    }
}

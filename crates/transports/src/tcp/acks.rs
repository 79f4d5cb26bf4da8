//! What an acknowledgement does: window, round-trip time, loss detection and recovery.
//!
//! RFC 5681 and 6582 without SACK, RFC 6675 with it; timeouts by RFC 6298.

use airloom_base::{CloseReason, Duration, Instant};

use super::config::{LossWindow, PartialAck, RttSampling, SackAfterRto};
use super::congestion::{Ack, Event, Hears, Recovery, Suspicion};
use super::connection::{Connection, Mode, hold, pending, widen};
use super::frto::Frto;
use super::recovery::{Arrived, TimerKind};
use super::rtt;
use super::sack::DUP_THRESH;
use super::state::{State, Step};
use super::timers::Alarm;
use super::wire::{Flags, Header};

impl Connection {
    /// Octets in flight as the window counts them.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        if self.repair.on {
            return (self.segments_in_flight() * self.snd.mss).min(self.snd.outstanding());
        }
        self.board.pipe(self.snd.una, self.snd.nxt)
    }

    /// Takes the window of a segment.
    #[inline]
    pub fn set_window(&mut self, seq: u64, ack: u64, wnd: u64) {
        self.snd.wnd = wnd;
        self.snd.wl1 = seq;
        self.snd.wl2 = ack;
        self.snd.max_wnd = self.snd.max_wnd.max(wnd);
    }

    /// The acknowledgement of a segment in a synchronized state; `len` is SEG.LEN.
    #[inline]
    pub fn ack_arrives(&mut self, now: Instant, h: &Header, seq: u64, ack: u64, len: u64) {
        let old_window = self.snd.wnd;
        let is_newer = self.snd.wl1 < seq || (self.snd.wl1 == seq && self.snd.wl2 <= ack);
        if ack > self.snd.una || (ack == self.snd.una && is_newer) {
            //= RFC 9293 (3.10.7.4): only a newer segment moves the window. One that acknowledges more than any before it is
            //= newer, whatever its number: data sent again, or what the peer says after a forged segment with a number ahead.
            self.set_window(seq, ack, u64::from(h.window) << self.snd.shift);
        }
        if self.repair.on {
            let arrived = Arrived {
                ack,
                echo: h.options.timestamps.map(|(_, echo)| echo),
                blocks: h.options.sack.as_slice(),
                not_duplicate: len > 0 || self.snd.wnd > old_window || h.flags.has(Flags::SYN),
                ece: self.reports_congestion(h),
            };
            self.ack_by_segments(now, arrived);
            self.after_ack(now, ack, old_window);
            return;
        }
        let news =
            if self.sack_ok && !h.options.sack.is_empty() { self.take_sack_blocks(now, h, ack) } else { 0 };
        let reported = self.reports_congestion(h);
        if reported {
            self.reduce_for_ecn(now, ack);
        }
        if ack > self.snd.una {
            self.new_ack(now, h.options.timestamps.map(|(_, echo)| echo), ack, news, reported);
        } else if ack == self.snd.una && self.snd.nxt > ack {
            //= RFC 5681 (2): no data, no SYN or FIN, data outstanding, the same window. RFC 6675 (2): or new SACK blocks.
            if news > 0 && self.about.hears == Hears::News {
                let brought = Ack { delivered: news, ..self.brought(now) };
                self.controller.observe(&mut self.window, &brought);
            }
            let duplicate = if self.sack_ok {
                news > 0
            } else {
                // A probe, or the answer to one, says nothing of what arrived.
                h.options.probe.is_none()
                    && len == 0
                    && self.snd.wnd == old_window
                    && !h.flags.has(Flags::SYN)
            };
            if self.frto != Frto::Off {
                let repeated = len == 0 && self.snd.wnd == old_window && !h.flags.has(Flags::SYN);
                self.frto_hears(now, news, repeated, reported);
            }
            if duplicate {
                self.duplicate_ack(now, news);
            } else if self.mode != Mode::Open {
                self.pending |= pending::DATA;
            }
        }
        self.after_ack(now, ack, old_window);
    }

    /// What an acknowledgement does to the window's probes and to keep-alive.
    #[inline]
    fn after_ack(&mut self, now: Instant, ack: u64, old_window: u64) {
        if self.snd.wnd > old_window {
            self.pending |= pending::DATA;
        }
        if self.timers.is_armed(Alarm::Persist) && ack >= self.snd.una {
            self.probe_answered(old_window);
        }
        if self.config.send_autotuning && self.snd.wants_room() {
            // A sender in recovery has nothing left to send: its buffer grows, although nothing was acknowledged.
            self.room_for_more();
        }
        if self.config.keepalive {
            self.arm_keepalive(now);
        }
    }

    /// A probe of the window was answered.
    fn probe_answered(&mut self, old_window: u64) {
        //= RFC 9293 (3.8.6.1): a connection whose probes are answered is not given up (MUST-37).
        if self.snd.wnd > old_window {
            self.probes = 0;
            self.timers.stop(Alarm::Persist);
            self.pending |= pending::DATA;
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
                self.eifel.note_dsack();
                self.dsack_arrives(now, left, right);
                continue;
            }
            let sensible = left < right && left > una && right <= self.snd.nxt;
            if sensible && self.board.has_room(self.snd.sent.len()) {
                let (fresh, _) = self.board.next_gap(left);
                if fresh < right {
                    lowest = lowest.min(fresh);
                    news += self.board.sack(left, right);
                }
            }
        }
        if covered.is_some_and(|(_, right)| right <= self.snd.resent_below) {
            self.facts.spurious += 1;
        }
        if news > 0 {
            let lost_edge = self.board.lost_edge();
            self.board.update(self.snd.una, self.snd.mss);
            self.further_loss |= self.board.lost_edge() > lost_edge;
            self.sample_sacked(now, lowest);
        }
        news
    }

    /// What an acknowledgement that brings nothing would bring the controller.
    #[inline]
    pub(super) fn brought(&self, now: Instant) -> Ack {
        Ack {
            now,
            una: self.snd.una,
            nxt: self.snd.nxt,
            in_flight: self.in_flight(),
            srtt: self.rtt.srtt(),
            phase: self.mode.phase(),
            ..Ack::default()
        }
    }

    /// SND.UNA moves to `ack`; `echo` is the echoed timestamp, `sacked` what the SACK blocks reported for the first time.
    #[inline]
    pub fn new_ack(&mut self, now: Instant, echo: Option<u32>, ack: u64, sacked: u64, ece: bool) {
        if self.repair.on {
            return self.new_ack_by_segments(now, echo, ack);
        }
        let una = self.snd.una;
        let octets = ack - una;
        // A probe of the window that was taken had not been counted as sent.
        self.facts.app_sent += ack.min(self.snd.end()).saturating_sub(self.snd.nxt);
        let arrived_before = self.board.acknowledge(una, ack, self.snd.mss);
        self.snd.una = ack;
        self.snd.nxt = self.snd.nxt.max(ack);
        self.snd.release();
        let (segments, rtt) = self.take_times(now, echo, una, ack);
        self.stalled_since = now;
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
                self.dupacks = 0;
                self.limited_octets = 0;
                //= RFC 3168 (6.1.2): no growth on an acknowledgement that reports congestion.
                if !ece && (!self.config.cwnd_validation || self.usage.is_limited(&self.window)) {
                    self.controller.on_ack(&mut self.window, &brought);
                }
            }
            Mode::Loss => {
                self.dupacks = 0;
                if self.frto == Frto::Off || !self.frto_advances(now, ack, octets, ece) {
                    self.ack_after_timeout(now, ack, &brought);
                }
            }
            Mode::Recovery => {
                restart = self.ack_in_recovery(now, ack, octets);
                if self.reduces_in_proportion() {
                    let news =
                        if self.recovers_by_sack() { delivered } else { self.news_without_sack(octets) };
                    //= RFC 9937: a safe acknowledgement shows progress and no further loss; without SACK a partial one shows one.
                    let safe = self.recovers_by_sack() && !self.further_loss;
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
            self.frto = Frto::Off;
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
            (RttSampling::Timestamps, _) if self.timestamps_ok => self.sample_echo(now, echo),
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
        if let Some(echo) = echo.filter(|_| self.timestamps_ok) {
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
            self.last_resent
        } else {
            self.snd.sent.front().map_or(now, |s| s.at)
        };
        // Data from before the head was sent last still arrives, so the head cannot be answered yet.
        if self.config.rto_restart_on_sack && sent.at < head {
            let at = self.rtt.deadline(&self.config, now);
            self.timers.arm(Alarm::Retransmission, at);
        }
    }

    /// How long ago the timestamp was sent that the acknowledgement at hand echoes.
    pub(super) fn age_of_echo(&self, now: Instant) -> Option<Duration> {
        let ticks = self.timestamp(now).wrapping_sub(self.repair.undo.echo.filter(|_| self.timestamps_ok)?);
        (ticks.cast_signed() >= 0).then(|| self.config.timestamp_tick * u64::from(ticks))
    }

    /// A round-trip time from an echoed timestamp.
    pub fn sample_timestamp(&mut self, now: Instant, echo: u32) {
        let ticks = self.timestamp(now).wrapping_sub(echo);
        // More than half of the number space is not an age.
        if ticks.cast_signed() >= 0 {
            let sample = self.config.timestamp_tick * u64::from(ticks);
            let per_round_trip = self.snd.outstanding().div_ceil(2 * self.snd.mss);
            self.rtt.sample_at(&self.config, sample, per_round_trip, (self.snd.una, self.snd.nxt));
        }
    }

    /// New data acknowledged in fast recovery; says whether the retransmission timer starts again.
    fn ack_in_recovery(&mut self, now: Instant, ack: u64, octets: u64) -> bool {
        let mss = self.snd.mss;
        if self.recovers_by_sack() {
            if ack >= self.recover {
                //= RFC 6675 (5): the recovery point is acknowledged: recovery is over, the scoreboard stays.
                self.leave_recovery(now, self.window.ssthresh);
            }
            return true;
        }
        if self.recovery() == Recovery::Reno {
            //= RFC 2581 (3.2, step 5): the first new acknowledgement deflates the window.
            self.leave_recovery(now, self.window.ssthresh);
            return true;
        }
        if ack >= self.recover {
            //= RFC 6582 (3.2, step 3): full acknowledgement: at most a segment more than is in flight.
            let flight = self.snd.outstanding().max(mss) + mss;
            self.leave_recovery(now, self.window.ssthresh.min(flight));
            return true;
        }
        //= RFC 6582 (3.2, step 3): partial acknowledgement: resend, deflate, add a segment back.
        self.pending |= pending::HEAD;
        if !self.reduces_in_proportion() {
            self.window.cwnd = self.window.cwnd.saturating_sub(octets);
            if octets >= mss {
                self.window.cwnd += mss;
            }
            self.window.cwnd = self.window.cwnd.max(mss);
        }
        self.partial_acks += 1;
        self.partial_acks == 1 || self.config.partial_ack == PartialAck::SlowButSteady
    }

    fn leave_recovery(&mut self, now: Instant, cwnd: u64) {
        self.mode = Mode::Open;
        self.window.cwnd = cwnd;
        self.dupacks = 0;
        self.limited_octets = 0;
        self.controller.on_event(&mut self.window, now, Event::Open);
    }

    fn duplicate_ack(&mut self, now: Instant, news: u64) {
        self.pending |= pending::DATA;
        match self.mode {
            Mode::Open | Mode::Disorder | Mode::Cwr => {}
            //= RFC 5681 (3.2, step 4): a segment has left the network for each duplicate.
            Mode::Recovery if !self.recovers_by_sack() && !self.reduces_in_proportion() => {
                self.window.cwnd += self.snd.mss;
                return;
            }
            Mode::Recovery => {
                self.prr_duplicate(news);
                return;
            }
            Mode::Loss => return,
        }
        self.dupacks += 1;
        let by_sack = self.recovers_by_sack();
        let enough = if self.sack_ok { DUP_THRESH } else { u32::from(self.config.dup_acks) };
        if self.dupacks >= enough || (by_sack && self.board.head_is_lost(self.snd.una)) {
            //= RFC 6582 (3.2, step 2): not for duplicates of what was outstanding when the last recovery began.
            let fresh = by_sack || self.recovery() == Recovery::Reno || self.snd.una > self.recover;
            if fresh && (by_sack || self.dupacks == enough) {
                self.enter_recovery(now);
                if self.reduces_in_proportion() {
                    self.prr_begins(news);
                    self.prr_duplicate(news);
                }
            }
        }
    }

    /// The window that a loss halves.
    pub(super) fn loss_base(&self) -> u64 {
        match self.config.loss_window {
            //= RFC 5681 (3.2, step 2): what limited transmit let out does not count.
            LossWindow::FlightSize => {
                self.snd.outstanding() - self.limited_octets.min(self.snd.outstanding())
            }
            LossWindow::Cwnd => self.window.cwnd,
        }
    }

    fn enter_recovery(&mut self, now: Instant) {
        if !self.suspends(now, Suspicion::Duplicates) {
            self.begin_recovery(now);
        }
    }

    /// Fast retransmit: the window shrinks, and the first segment that is missing is sent again.
    pub(super) fn begin_recovery(&mut self, now: Instant) {
        let (una, nxt, mss) = (self.snd.una, self.snd.nxt, self.snd.mss);
        self.eifel_begins(false);
        //= RFC 3168 (6.1.2): a loss in the window that was reduced for a report reduces it no further.
        let ssthresh = if una < self.ecn.recover {
            self.window.ssthresh
        } else {
            self.controller.ssthresh(&self.window, self.loss_base())
        };
        self.dsack_undo_begins();
        self.frto = Frto::Off;
        self.ecn.cwr_due = true;
        self.recover = nxt;
        self.partial_acks = 0;
        if self.recovery() == Recovery::None {
            //= Tahoe: as after a timeout.
            self.window.cut(mss, ssthresh);
            self.controller.on_event(&mut self.window, now, Event::Timeout);
            self.board.time_out(una, nxt, mss, true);
            self.mode = Mode::Loss;
            self.dupacks = 0;
            return;
        }
        self.mode = Mode::Recovery;
        self.pending |= pending::HEAD;
        if self.recovers_by_sack() {
            //= RFC 6675 (5, steps 4.1 to 4.4): halve, resend the first hole, count the pipe.
            self.window.cut(ssthresh, ssthresh);
            self.board.begin_recovery(una);
        } else {
            //= RFC 5681 (3.2, step 3): three segments have left the network.
            let left = u64::from(if self.sack_ok { DUP_THRESH } else { u32::from(self.config.dup_acks) });
            self.window.cut(ssthresh + left * mss, ssthresh);
        }
        self.controller.on_event(&mut self.window, now, Event::Recovery);
        let at = self.rtt.deadline(&self.config, now);
        self.timers.arm(Alarm::Retransmission, at);
    }

    /// The retransmission timer expired.
    pub fn retransmission_timeout(&mut self, now: Instant) {
        let handshake = matches!(self.state, State::SynSent | State::SynReceived);
        if self.hold & hold::PROBING != 0 {
            // Probes have a timer of their own; this one starts again when sending goes on.
            return;
        }
        if self.hold & hold::ECN != 0 {
            //= RFC 3168 (6.1.2): with a window of one segment a report of congestion costs a timeout.
            self.hold &= !hold::ECN;
            self.pending |= pending::DATA;
        }
        if !handshake && self.snd.una == self.snd.nxt {
            return;
        }
        let limit = if handshake { self.config.syn_give_up } else { self.config.give_up };
        if self.rtt.backoff() == 0 && !handshake {
            self.stalled_since = self.last_sent.min(now);
        }
        //= RFC 9293 (3.8.3): after R2 the connection is given up.
        let often = self.config.max_retransmissions;
        let too_often = !handshake && often > 0 && self.rtt.backoff() >= often;
        if too_often || now.since(self.silent_since()) >= limit {
            if handshake {
                self.fail(CloseReason::TimedOut);
            } else {
                self.abort(CloseReason::TimedOut);
            }
            return;
        }
        self.facts.rto_count += 1;
        //= RFC 6298 (5.5, 5.6): back off and start again.
        self.rtt.back_off();
        let at = self.rtt.deadline(&self.config, now);
        self.timers.arm(Alarm::Retransmission, at);
        if handshake {
            self.syns_lost = self.syns_lost.saturating_add(1);
            self.pending |= pending::SYN;
            return;
        }
        if self.repair.on {
            self.repair.timer = TimerKind::Rto;
            self.enter_loss(now);
            return;
        }
        if !self.suspends(now, Suspicion::Timeout) {
            self.time_out(now);
        }
    }

    /// All that is outstanding is marked lost.
    pub(super) fn time_out(&mut self, now: Instant) {
        let (una, nxt, mss) = (self.snd.una, self.snd.nxt, self.snd.mss);
        self.eifel_begins(true);
        self.frto_begins();
        if matches!(self.mode, Mode::Open) {
            self.dsack_undo_begins();
        }
        //= RFC 5681 (3.1): the threshold falls once for a segment, however often its timer expires.
        let ssthresh = if self.timed_out_at == una {
            self.window.ssthresh
        } else {
            self.controller.ssthresh(&self.window, self.loss_base())
        };
        self.timed_out_at = una;
        self.window.cut(mss, ssthresh);
        self.ecn.cwr_due = true;
        self.controller.on_event(&mut self.window, now, Event::Timeout);
        //= RFC 2018 (8): what was SACKed may be gone; RFC 6675 (5.1) leaves it to the sender.
        let forget = self.config.sack_after_rto == SackAfterRto::Forget || self.board.is_sacked(una);
        self.board.time_out(una, nxt, mss, forget);
        self.mode = Mode::Loss;
        //= RFC 6582 (3.2, step 4): no fast retransmit for what was outstanding.
        self.recover = nxt;
        self.dupacks = 0;
        self.limited_octets = 0;
        self.pending = (self.pending & !pending::HEAD) | pending::DATA;
    }

    /// Since when the peer gives no reason to go on.
    fn silent_since(&self) -> Instant {
        //= RFC 9293 (3.8.6): data beyond a window that shrank to nothing does not end a connection that answers.
        if self.snd.wnd == 0 { self.stalled_since.max(self.last_received) } else { self.stalled_since }
    }

    /// The persist timer expired.
    pub fn persist_timeout(&mut self, now: Instant) {
        if now.since(self.last_received) >= self.config.give_up && self.probes > 2 {
            self.abort(CloseReason::TimedOut);
            return;
        }
        if self.snd.has_unsent() && self.snd.una == self.snd.nxt {
            self.probes = self.probes.saturating_add(1);
            self.pending |= pending::PROBE;
        }
    }

    /// The keep-alive timer expired.
    pub fn keepalive_timeout(&mut self, now: Instant) {
        if !self.state.is_synchronized() || self.state == State::TimeWait {
            return;
        }
        //= RFC 9293 (3.8.4): only when nothing is outstanding; one unanswered probe proves nothing.
        if self.snd.una != self.snd.nxt {
            self.arm_keepalive(now);
            return;
        }
        if self.keepalives >= self.config.keepalive_probes {
            self.abort(CloseReason::TimedOut);
            return;
        }
        self.keepalives += 1;
        self.pending |= pending::KEEPALIVE;
        self.timers.arm(Alarm::Keepalive, now + self.config.keepalive_interval);
    }

    /// The path takes smaller datagrams only.
    pub fn smaller_segments(&mut self, _now: Instant) {
        let old = self.snd.mss;
        let mss = self.effective_mss(Some(self.path.mtu.saturating_sub(self.path.ip_header() + 20))).min(old);
        if mss == old {
            return;
        }
        self.snd.mss = mss;
        self.window.mss = mss;
        //= RFC 5681 (3.1): the window keeps its number of segments, so that no burst of smaller ones leaves.
        self.window.cwnd = (self.window.cwnd * mss / old).max(mss);
        if self.facts.established.is_some() && self.snd.una < self.snd.nxt {
            if self.repair.on {
                self.resend_in_smaller_segments(mss);
                self.hold |= hold::MTU;
                return;
            }
            //= RFC 1191 (6.4): what was too large is sent again, one segment until it is acknowledged, and this is no congestion.
            let (una, nxt) = (self.snd.una, self.snd.nxt);
            self.board.time_out(una, nxt, mss, false);
            self.mode = Mode::Loss;
            self.recover = nxt;
            self.hold |= hold::MTU;
            self.pending |= pending::DATA;
        }
    }

    /// How long until the next probe of a closed window.
    pub fn probe_interval(&self) -> Duration {
        //= RFC 9293 (3.8.6.1): the first after a timeout, then ever more rarely.
        let interval = self.rtt.rto(&self.config) * (1 << self.probes.min(20));
        interval.min(self.config.max_probe_interval)
    }
}

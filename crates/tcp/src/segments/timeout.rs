//! The retransmission timeout (RFC 6298, 8985 6.3).
//! A circle, of which `mod.rs` says why.

use airloom_base::{Duration, Instant};

use super::super::config::Config;
use super::super::congestion::Event;
use super::super::octets::DUP_THRESH;
use super::super::send::mark;
use super::super::sender::{Mode, Sender, hold, pending};
use super::Segments;
use super::prr::ssthresh_after_loss;
use crate::timers::Alarm;

/// How fine the timer wheel of Linux is for a timer `delay` ticks ahead, as a power of two ticks: it has levels of 64 places,
/// each eight times coarser than the one before.
fn coarseness(delay: u64) -> u32 {
    (0..8).map(|level| 3 * level).find(|shift| delay < 63 << shift).unwrap_or(24)
}

/// The place on the wheel of a timer that is due at tick `ticks`, `delay` ticks from now: the next one, so that none expires
/// early. Ticks are counted from the wheel's first place.
fn place(ticks: u64, delay: u64) -> u64 {
    let shift = coarseness(delay);
    ((ticks >> shift) + 1) << shift
}

/// The same where nobody knows how the wheel stands: the mean. From 2 s on the place moves a timeout by up to 256 ms, which
/// decides now and then between two courses. A recorded transfer (384 kbit/s, 300 ms, 1 % loss, Reno without SACK, seed
/// 4026578559: 23.56 s) ends here after 28.9 s in 4 of 16 positions of the wheel, this mean among them, and after 23.5 s in
/// the others. Linux 6.18 over the same link in real time does so too: 29.0 s in 5 of 16 runs, 23.5 to 23.7 s in 11. In the
/// position that the record shows (`timer_wheel_position = "225585us"`) its window is met within 0.01 %.
fn mean_place(ticks: u64, delay: u64) -> u64 {
    ticks + (1_u64 << coarseness(delay)).div_ceil(2)
}

/// When a timer set for `wait` from now expires: on the clock of the system, if it only counts ticks.
pub(super) fn on_tick_after(config: &Config, now: Instant, wait: Duration) -> Instant {
    let tick = config.rto_tick.as_nanos();
    if tick == 0 {
        return now + wait;
    }
    let delay = wait.as_nanos().div_ceil(tick);
    let position = config.timer_wheel_position.as_nanos();
    if config.timer_wheel && position > 0 {
        let turned = now.as_nanos().saturating_add(position);
        let expires = place(turned / tick + delay, delay).saturating_mul(tick);
        return Instant::from_nanos(expires.saturating_sub(position));
    }
    let ticks = now.as_nanos() / tick + delay;
    Instant::from_nanos(if config.timer_wheel { mean_place(ticks, delay) } else { ticks } * tick)
}

/// Starts the retransmission timeout. After a probe or a reordering timer it counts from when the head was sent.
pub(super) fn rearm_rto(tx: &mut Sender, now: Instant) {
    let anew = tx.timers.sender() == Alarm::Retransmission;
    start_rto(tx, now, anew);
}

/// Starts the retransmission timeout from now.
pub(super) fn restart_rto(tx: &mut Sender, now: Instant) {
    start_rto(tx, now, true);
}

#[inline(never)]
fn start_rto(tx: &mut Sender, now: Instant, anew: bool) {
    let rto = tx.rto();
    let wait = match tx.snd.sent().front() {
        Some(head) if !anew => (head.at + rto).since(now).max(Duration::from_millis(1)),
        None if !tx.is_held(hold::ECN) => {
            tx.timers.stop(Alarm::Retransmission);
            tx.timers.settle();
            return;
        }
        _ => rto,
    };
    let at = on_tick_after(tx.config(), now, wait);
    tx.timers.arm(Alarm::Retransmission, at);
}

impl Segments {
    /// Everything that cannot be on its way any more is lost, the window is one segment.
    pub fn time_out(&mut self, tx: &mut Sender, now: Instant) {
        let fresh = !matches!(tx.mode(), Mode::Recovery | Mode::Loss);
        let again = self.timeouts > 0;
        self.timeouts += 1;
        self.mark_timed_out(tx, now);
        //= RFC 5681 (3.1): the threshold falls once for a window; Linux: and again for another timeout in the same loss
        //= state only if data was acknowledged in between.
        let mut ssthresh = tx.window.ssthresh();
        if matches!(tx.mode(), Mode::Open | Mode::Disorder)
            || tx.recover() <= tx.snd.una()
            || (tx.mode() == Mode::Loss && !again)
        {
            self.undo.ssthresh = Some(self.current_ssthresh(tx));
            ssthresh = ssthresh_after_loss(tx);
            self.prepare_undo(tx);
        }
        let disordered = matches!(tx.mode(), Mode::Open | Mode::Disorder);
        if disordered && self.sacked_out >= u64::from(DUP_THRESH) {
            // Many arrived and still nothing was found: reordering was overestimated.
            self.reordering = self.reordering.min(u64::from(DUP_THRESH));
        }
        let cwnd = (self.in_flight(tx) + 1) * tx.snd.mss();
        tx.window.cut(cwnd, ssthresh);
        tx.ecn.reduced();
        tx.tell_controller(now, Event::Timeout);
        self.undo.needless.begins(tx.snd.una());
        tx.enter(Mode::Loss);
        self.repairs = true;
        tx.begin_episode();
        self.probe = None;
        self.probe_due = false;
        //= RFC 5682 (2.1, step 1): not for a timeout of data that was already being repaired, unless it has just failed again.
        self.frto = tx.config().frto && (fresh || again);
        tx.want(pending::HEAD | pending::DATA);
    }

    fn mark_timed_out(&mut self, tx: &mut Sender, now: Instant) {
        let reneged = tx.snd.sent().front().is_some_and(|s| s.has(mark::SACKED));
        if reneged {
            //= RFC 2018 (8): what was reported is not there any more.
            self.forget_reports(tx);
            self.reneged = true;
        } else {
            self.forget_duplicates(tx);
        }
        for index in 0..tx.snd.sent().len() {
            //= RFC 8985 (6.3): beside the head only what is overdue; what left lately may still arrive.
            let recent = index > 0
                && !reneged
                && tx.agreed().sack
                && !self.rack_remaining(now, tx.snd.sent()[index].at, Duration::ZERO).is_zero();
            if !recent {
                self.mark_lost(tx, index);
            }
        }
        self.resend_from = tx.snd.una();
    }

    /// The path takes smaller segments only: what is too large is sent again, and this is no congestion (RFC 1191 6.4).
    pub fn in_smaller_segments(&mut self, tx: &mut Sender, mss: u64) {
        for index in 0..tx.snd.sent().len() {
            if tx.snd.sent()[index].end() > tx.snd.end_of(tx.snd.start_of(index), mss) {
                self.mark_lost(tx, index);
            }
        }
        if self.lost_out == 0 {
            return;
        }
        if tx.mode() != Mode::Loss {
            tx.begin_episode();
            self.undo.ssthresh = None;
            self.undo.marker = None;
            tx.enter(Mode::Loss);
            self.repairs = true;
        }
        self.frto = false;
        self.resend_lost();
        tx.want(pending::DATA);
    }
}

#[cfg(test)]
mod tests {
    use super::{mean_place, place};

    #[test]
    fn the_timer_wheel_is_eight_times_coarser_at_each_level() {
        assert_eq!(mean_place(100, 10), 101);
        assert_eq!(mean_place(100, 62), 101);
        assert_eq!(mean_place(100, 63), 104);
        assert_eq!(mean_place(104, 63), 108);
        assert_eq!(mean_place(1000, 503), 1004);
        assert_eq!(mean_place(1000, 504), 1032);
    }

    #[test]
    fn a_timer_waits_in_the_next_place_never_in_one_that_is_early() {
        assert_eq!(place(100, 62), 101);
        assert_eq!(place(100, 63), 104);
        assert_eq!(place(104, 63), 112);
        assert_eq!(place(1000, 503), 1008);
        assert_eq!(place(1000, 504), 1024);
        for due in 1000..1200 {
            let late = place(due, 504) - due;
            assert!((1..=64).contains(&late), "{due}: {late}");
        }
    }
}

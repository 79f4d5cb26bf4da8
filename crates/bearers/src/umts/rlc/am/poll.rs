//! Polling: when a sender asks for a status report (TS 25.322 9.7.1, timers of 9.5).
//!
//! Timers start with the submission of the PDU, at both ends: in the network as TS 25.322 9.5 says, in the mobile because
//! the indication it waits for there tells that the PDU was submitted to the physical layer (TS 25.321 8.2, TX
//! status).

use airloom_base::timer::Timer;
use airloom_base::{Duration, Instant};

use super::AmConfig;
use super::window::distance;

/// Why a PDU might ask for a report.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reasons {
    /// Last new PDU, no more data waits, or the window is full behind it.
    pub last_new: bool,
    /// Last PDU queued for retransmission.
    pub last_retransmission: bool,
    /// SDUs that end in it, for the first time.
    pub ends: u16,
    /// (VT(S) + 1 - VT(A)) before submission.
    pub used: u16,
    /// VT(WS).
    pub window: u16,
}

/// Poll counters and timers.
#[derive(Clone, Debug, Default)]
pub struct Poll {
    vt_pdu: u16,
    vt_sdu: u16,
    timer_poll: Timer,
    /// VT(S) when the last poll was sent.
    poll_sn: u16,
    timer_poll_periodic: Timer,
    prohibited_until: Instant,
    /// A poll was triggered and has not been sent.
    triggered: bool,
}

fn arm(timer: &mut Timer, from: Instant, after: Duration) {
    if !after.is_zero() {
        timer.arm_after(from, after);
    }
}

impl Poll {
    /// Should a PDU that is submitted now ask for a report? Counts and remembers.
    #[inline]
    pub fn decide(&mut self, config: &AmConfig, reasons: Reasons, now: Instant) -> bool {
        let mut poll = self.triggered
            || (reasons.last_new && config.last_pdu_poll)
            || (reasons.last_retransmission && config.last_retransmission_pdu_poll);
        if config.poll_pdu > 0 {
            self.vt_pdu += 1;
            if self.vt_pdu >= config.poll_pdu {
                self.vt_pdu = 0;
                poll = true;
            }
        }
        if config.poll_sdu > 0 {
            //= TS 25.322 9.4 g), 9.7.1: every Poll_SDU-th SDU is polled for, with its end. SDUs are counted by their ends:
            //= where one begins in the PDU that ends another, both count.
            self.vt_sdu = self.vt_sdu.saturating_add(reasons.ends);
            if self.vt_sdu >= config.poll_sdu {
                self.vt_sdu %= config.poll_sdu;
                poll = true;
            }
        }
        if config.poll_window > 0 {
            //= TS 25.322 9.6 d): polled while J >= Poll_Window.
            poll |=
                u32::from(reasons.used) * 100 >= u32::from(config.poll_window) * u32::from(reasons.window);
        }
        //= TS 25.322 9.7.1: polls triggered while prohibited are merged into one afterwards.
        self.triggered = poll && now < self.prohibited_until;
        poll && !self.triggered
    }

    /// A PDU with the poll bit was submitted; VT(S) is now `vt_s`.
    pub fn sent(&mut self, config: &AmConfig, now: Instant, vt_s: u16) {
        self.poll_sn = vt_s;
        arm(&mut self.timer_poll, now, config.timer_poll);
        if !config.timer_poll_prohibit.is_zero() {
            self.prohibited_until = now + config.timer_poll_prohibit;
        }
    }

    /// PDUs are on their way: the periodic timer runs.
    #[inline]
    pub fn something_sent(&mut self, config: &AmConfig, now: Instant) {
        if !self.timer_poll_periodic.is_armed() {
            arm(&mut self.timer_poll_periodic, now, config.timer_poll_periodic);
        }
    }

    /// A report came: VT(A) and VT(S) are these, `nack` tells whether a PDU was named missing.
    pub fn answered(&mut self, vt_a: u16, vt_s: u16, nack: impl Fn(u16) -> bool) {
        //= TS 25.322 9.5 a): stopped by ACK of all up to x - 1, or NACK of x - 1.
        let x = self.poll_sn;
        let all = distance(vt_a, vt_s) <= distance(x, vt_s);
        if all || nack(x.wrapping_sub(1) & 0xFFF) {
            self.timer_poll.stop();
        }
        if vt_a == vt_s {
            self.timer_poll_periodic.stop();
            self.triggered = false;
        }
    }

    /// A poll should go out now, with whatever PDU.
    #[inline]
    pub fn is_urgent(&self, now: Instant) -> bool {
        self.triggered && now >= self.prohibited_until
    }

    /// A poll is to be sent with the next PDU.
    pub fn trigger(&mut self) {
        self.triggered = true;
    }

    /// There is no PDU that could carry the poll.
    //= TS 25.322 11.3.2: a poll needs a PDU that is neither acknowledged nor discarded.
    pub fn cancel(&mut self) {
        self.triggered = false;
    }

    /// When to call `handle_timeout`.
    pub fn next_timeout(&self, now: Instant) -> Instant {
        let waits = self.triggered && self.prohibited_until > now;
        let prohibit = if waits { self.prohibited_until } else { Instant::FAR_FUTURE };
        self.timer_poll.raw().min(self.timer_poll_periodic.raw()).min(prohibit)
    }

    /// Timers that are due; `outstanding`: something is not acknowledged.
    pub fn handle_timeout(&mut self, config: &AmConfig, now: Instant, outstanding: bool) {
        let expired = self.timer_poll.take_due(now);
        let periodic = self.timer_poll_periodic.take_due(now);
        if periodic && outstanding {
            arm(&mut self.timer_poll_periodic, now, config.timer_poll_periodic);
        }
        self.triggered |= (expired || periodic) && outstanding;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(n)
    }

    fn quiet() -> AmConfig {
        AmConfig {
            last_pdu_poll: false,
            last_retransmission_pdu_poll: false,
            poll_sdu: 0,
            ..AmConfig::default()
        }
    }

    const PLAIN: Reasons =
        Reasons { last_new: false, last_retransmission: false, ends: 0, used: 1, window: 100 };

    #[test]
    fn every_third_pdu_polls() {
        let config = AmConfig { poll_pdu: 3, ..quiet() };
        let mut poll = Poll::default();
        let polls: Vec<bool> = (0..7).map(|_| poll.decide(&config, PLAIN, ms(0))).collect();
        assert_eq!(polls, [false, false, true, false, false, true, false]);
    }

    #[test]
    fn every_second_sdu_polls_with_its_end() {
        let config = AmConfig { poll_sdu: 2, ..quiet() };
        let mut poll = Poll::default();
        let mut pdu = |ends| poll.decide(&config, Reasons { ends, ..PLAIN }, ms(0));
        assert!(!pdu(1) && !pdu(0) && !pdu(0));
        assert!(pdu(1));
        assert!(!pdu(1));
        // The fourth and the fifth end in one PDU: the sixth is the next to poll.
        assert!(pdu(2) && !pdu(0) && pdu(1));
    }

    #[test]
    fn half_a_window_polls() {
        let config = AmConfig { poll_window: 50, ..quiet() };
        let mut poll = Poll::default();
        assert!(!poll.decide(&config, Reasons { used: 49, ..PLAIN }, ms(0)));
        assert!(poll.decide(&config, Reasons { used: 50, ..PLAIN }, ms(0)));
    }

    #[test]
    fn the_last_pdus_of_both_buffers_poll() {
        let config = AmConfig { poll_sdu: 0, ..AmConfig::default() };
        let mut poll = Poll::default();
        assert!(poll.decide(&config, Reasons { last_new: true, ..PLAIN }, ms(0)));
        assert!(poll.decide(&config, Reasons { last_retransmission: true, ..PLAIN }, ms(0)));
        assert!(!poll.decide(&config, PLAIN, ms(0)));
    }

    #[test]
    fn polls_during_the_prohibit_time_are_merged_into_one_afterwards() {
        let config = AmConfig { poll_pdu: 1, timer_poll_prohibit: Duration::from_millis(100), ..quiet() };
        let mut poll = Poll::default();
        assert!(poll.decide(&config, PLAIN, ms(0)));
        poll.sent(&config, ms(0), 1);
        assert!(!poll.decide(&config, PLAIN, ms(10)) && !poll.decide(&config, PLAIN, ms(20)));
        assert!(!poll.is_urgent(ms(99)));
        assert_eq!(poll.next_timeout(ms(20)), ms(100));
        assert!(poll.is_urgent(ms(100)));
        assert!(poll.decide(&AmConfig { poll_pdu: 0, ..config }, PLAIN, ms(100)));
        assert!(!poll.is_urgent(ms(200)));
    }

    #[test]
    fn timer_poll_asks_again_unless_answered() {
        let config = quiet();
        let mut poll = Poll::default();
        poll.sent(&config, ms(0), 10);
        assert_eq!(poll.next_timeout(ms(0)), ms(200));
        poll.answered(9, 12, |_| false);
        poll.handle_timeout(&config, ms(200), true);
        assert!(poll.is_urgent(ms(200)), "PDU 9 was neither acknowledged nor named missing");
        poll.sent(&config, ms(210), 12);
        poll.answered(9, 12, |sn| sn == 11);
        assert_eq!(poll.next_timeout(ms(220)), Instant::FAR_FUTURE, "named missing");
        poll.sent(&config, ms(300), 12);
        poll.answered(12, 12, |_| false);
        assert_eq!(poll.next_timeout(ms(400)), Instant::FAR_FUTURE);
    }

    #[test]
    fn the_periodic_timer_runs_only_while_something_is_outstanding() {
        let config = AmConfig { timer_poll_periodic: Duration::from_millis(50), ..quiet() };
        let mut poll = Poll::default();
        poll.something_sent(&config, ms(0));
        poll.handle_timeout(&config, ms(50), true);
        assert!(poll.is_urgent(ms(50)));
        assert_eq!(poll.next_timeout(ms(50)), ms(100));
        poll.answered(5, 5, |_| false);
        assert_eq!(poll.next_timeout(ms(400)), Instant::FAR_FUTURE);
    }
}

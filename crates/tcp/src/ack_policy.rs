//! When acknowledgements may wait (RFC 9293 3.8.6.3, RFC 5681 4.2, and what systems do).

use airloom_base::{Duration, Instant};
use smart_default::SmartDefault;

use super::config::{AckPolicy, Config};
use super::rtt::Rtt;

/// Linux: the delay starts here and does not become shorter.
const SHORTEST: Duration = Duration::from_millis(40);
/// Linux: the window offered at the beginning.
const FIRST_WINDOW: u64 = 65_535;
/// Linux: segments below this do not make it grow: they take more memory than they bring.
const SMALL: u64 = 536;
/// Linux: so many acknowledgements at the beginning, and after something unusual, are quick.
const QUICK: u8 = 16;
/// Linux: so many segments beyond a hole have an acknowledgement each, the next ones share one (`TCP_FASTRETRANS_THRESH`).
const APART: u8 = 3;

/// What to do about the acknowledgement of a segment in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It leaves now.
    Now,
    /// It may wait until then for data to travel with, or for more to acknowledge.
    Wait(Instant),
}

/// What the policy remembers.
#[derive(Clone, Copy, Debug, SmartDefault)]
pub(super) struct AckState {
    /// The largest segment received: what counts as full.
    full: u64,
    /// Linux: quick acknowledgements left.
    quick: u8,
    /// Linux: data and answers take turns, so acknowledgements travel with answers.
    interactive: bool,
    /// Linux: a segment with PSH waits for its acknowledgement.
    pushed: bool,
    /// Linux: the delay, adapted to the time between segments; zero before the first.
    ato: Duration,
    last: Instant,
    /// Linux: the window it is ready to offer.
    #[default(FIRST_WINDOW)]
    ready: u64,
    /// Linux: the hole at hand, and how many segments beyond it have come; more than matter count as so many.
    hole: (u64, u8),
}

impl AckState {
    /// The delay as it is now.
    pub fn delay(&self) -> Duration {
        self.ato
    }

    /// The largest segment received; what was announced, before there was one.
    pub fn full(&self, announced: u64) -> u64 {
        if self.full > 0 { self.full } else { announced.min(SMALL) }
    }

    /// When data arrived in order last.
    pub fn last_data(&self) -> Instant {
        self.last
    }

    /// A segment in order carries PSH, or not.
    #[inline]
    pub fn note_push(&mut self, push: bool) {
        self.pushed |= push;
    }

    /// `len` octets arrived in order; `unacked` are not acknowledged with them. `grew`: did the window grow with them,
    /// where the buffer follows the path?
    #[inline]
    pub fn on_data(
        &mut self,
        config: &Config,
        now: Instant,
        len: u64,
        unacked: u64,
        rtt: &Rtt,
        grew: Option<bool>,
    ) -> Decision {
        self.full = self.full.max(len);
        match config.delayed_ack {
            AckPolicy::None => Decision::Now,
            //= RFC 9293 (3.8.6.3): at least every second full-sized segment.
            AckPolicy::Timer | AckPolicy::Heartbeat if unacked >= 2 * self.full => Decision::Now,
            AckPolicy::Timer => Decision::Wait(now + config.ack_delay),
            AckPolicy::Heartbeat => {
                let tick = config.ack_delay.as_nanos().max(1);
                Decision::Wait(Instant::from_nanos((now.as_nanos() / tick + 1) * tick))
            }
            AckPolicy::Linux => self.on_data_linux(config, now, unacked, len, rtt, grew),
        }
    }

    #[inline(never)]
    fn on_data_linux(
        &mut self,
        config: &Config,
        now: Instant,
        unacked: u64,
        len: u64,
        rtt: &Rtt,
        grew: Option<bool>,
    ) -> Decision {
        let since = now.since(self.last);
        if self.ato.is_zero() {
            self.quick = QUICK;
            self.ato = SHORTEST;
        } else if since <= SHORTEST / 2 {
            self.ato = self.ato / 2 + SHORTEST / 2;
        } else if since < self.ato {
            self.ato = (self.ato / 2 + since).min(rtt.rto(config));
        } else if since > rtt.rto(config) {
            self.quick = QUICK;
        }
        self.last = now;
        // A window that has reached its limit grows no more (`tcp_grow_window`).
        let grew = grew.unwrap_or_else(|| {
            let grows = self.ready + 2 * len <= config.quick_ack_window.0 && len == self.full && len >= SMALL;
            self.ready += if grows { 2 * len } else { 0 };
            grows
        });
        self.quick |= u8::from(grew);
        if unacked > self.full || (self.quick > 0 && !self.interactive) {
            return Decision::Now;
        }
        let mut delay = self.ato;
        if delay > SHORTEST {
            let longest = rtt.srtt().map_or(config.ack_delay, |srtt| srtt.max(SHORTEST));
            delay = delay.min(longest);
        }
        Decision::Wait(now + delay.min(config.ack_delay))
    }

    /// The peer's FIN arrived in order on an open connection: Linux expects the application to close it, too, so that the
    /// acknowledgement can travel with its FIN (`tcp_fin`).
    pub fn on_fin(&mut self) {
        self.interactive = true;
    }

    /// When the peer's FIN is acknowledged, `unacked` octets with it.
    pub fn answer_to_fin(&self, config: &Config, now: Instant, unacked: u64) -> Decision {
        match config.delayed_ack {
            AckPolicy::Linux if unacked <= self.full.max(1) => {
                Decision::Wait(now + self.ato.min(config.ack_delay))
            }
            _ => Decision::Now,
        }
    }

    /// A segment beyond the hole at `nxt` arrived: does it part from an acknowledgement that is due and has not left yet?
    ///
    /// Linux answers each segment of a batch before it looks at the next: the first three beyond a hole at once, so that the
    /// sender has its duplicates; those that follow wait for each other (`__tcp_ack_snd_check`), without SACK they do not.
    pub fn parts_from_the_one_before(&mut self, config: &Config, nxt: u64, sack: bool) -> bool {
        if config.delayed_ack != AckPolicy::Linux {
            return false;
        }
        if self.hole.0 != nxt {
            self.hole = (nxt, 0);
        }
        // The first of those that share one parts from the last that does not.
        let apart = self.hole.1 <= APART;
        self.hole.1 += u8::from(apart);
        apart || !sack
    }

    /// Something unusual arrived (a duplicate): acknowledgements are quick for a while.
    pub fn hurry(&mut self) {
        self.quick = QUICK;
        self.interactive = false;
        self.ato = SHORTEST;
    }

    /// The delay is over and nothing has come to travel with: Linux waits twice as long the next time.
    pub fn on_timer(&mut self, rto: Duration) {
        if self.interactive {
            self.interactive = false;
            self.ato = SHORTEST;
        } else {
            self.ato = (self.ato * 2).min(rto);
        }
    }

    /// An acknowledgement of new data left.
    #[inline]
    pub fn on_ack_sent(&mut self) {
        self.pushed = false;
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = SHORTEST;
            }
        }
    }

    /// Data left: if it follows data received closely, the connection is a dialogue.
    #[inline]
    pub fn on_data_sent(&mut self, now: Instant) {
        if now.since(self.last) < self.ato {
            self.interactive = true;
        }
    }

    /// The application has read everything: must a pushed segment be acknowledged at once?
    pub fn on_drained(&self, config: &Config) -> bool {
        config.delayed_ack == AckPolicy::Linux && self.pushed && !self.interactive
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::units::Octets;

    use super::super::profile::Profile;
    use super::*;

    /// A round trip of 100 ms; with Linux's floor that is a timeout of 300 ms.
    fn rtt() -> Rtt {
        let config = Profile::Linux.settings();
        let mut rtt = Rtt::new(&config);
        rtt.sample(&config, Duration::from_millis(100), 1);
        assert_eq!(rtt.rto(&config), Duration::from_millis(300));
        rtt
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn rfc_9293_3_8_6_3_every_second_full_segment_or_after_the_delay() {
        let config = Profile::Rfc.settings();
        let mut s = AckState::default();
        assert_eq!(s.on_data(&config, at(0), 1000, 1000, &rtt(), None), Decision::Wait(at(200)));
        assert_eq!(s.on_data(&config, at(1), 1000, 2000, &rtt(), None), Decision::Now);
        assert_eq!(s.on_data(&config, at(2), 500, 500, &rtt(), None), Decision::Wait(at(202)));
        assert_eq!(s.on_data(&config, at(3), 500, 1000, &rtt(), None), Decision::Wait(at(203)));
    }

    #[test]
    fn the_heartbeat_ticks_for_all_alike() {
        let config = Profile::BsdReno.settings();
        let mut s = AckState::default();
        assert_eq!(s.on_data(&config, at(1), 1000, 1000, &rtt(), None), Decision::Wait(at(200)));
        assert_eq!(s.on_data(&config, at(399), 1000, 1000, &rtt(), None), Decision::Wait(at(400)));
        assert_eq!(s.on_data(&config, at(400), 1000, 1000, &rtt(), None), Decision::Wait(at(600)));
    }

    #[test]
    fn linux_is_quick_for_sixteen_acknowledgements_and_while_the_window_grows() {
        let config = Profile::Linux.settings();
        let mut s = AckState::default();
        let quick = (0..300)
            .filter(|i| {
                let now = s.on_data(&config, at(*i), 1448, 1448, &rtt(), None) == Decision::Now;
                if now {
                    s.on_ack_sent();
                }
                now
            })
            .count();
        // 181 steps of the window, and sixteen more.
        assert_eq!(quick, 197);
    }

    #[test]
    fn linux_waits_twice_as_long_after_each_delay_that_was_in_vain() {
        let config = Profile::Linux.settings();
        let mut s = AckState::default();
        s.on_data(&config, at(0), 300, 300, &rtt(), None);
        (0..16).for_each(|_| s.on_ack_sent());
        assert_eq!(s.on_data(&config, at(290), 300, 300, &rtt(), None), Decision::Wait(at(330)));
        s.on_timer(Duration::from_millis(300));
        assert_eq!(s.on_data(&config, at(580), 300, 300, &rtt(), None), Decision::Wait(at(580 + 80)));
        s.on_timer(Duration::from_millis(300));
        // The round-trip time is the limit.
        assert_eq!(s.on_data(&config, at(870), 300, 300, &rtt(), None), Decision::Wait(at(870 + 100)));
    }

    #[test]
    fn linux_waits_longer_where_segments_come_slowly_and_not_longer_than_a_round_trip() {
        let config = Config { quick_ack_window: Octets(0), ..Profile::Linux.settings() };
        let mut s = AckState::default();
        s.on_data(&config, at(0), 1000, 1000, &rtt(), None);
        (0..16).for_each(|_| s.on_ack_sent());
        assert_eq!(s.on_data(&config, at(30), 1000, 1000, &rtt(), None), Decision::Wait(at(80)));
        assert_eq!(s.on_data(&config, at(75), 1000, 1000, &rtt(), None), Decision::Wait(at(75 + 70)));
        assert_eq!(s.on_data(&config, at(144), 1000, 1000, &rtt(), None), Decision::Wait(at(144 + 100)));
    }

    #[test]
    fn linux_lets_acknowledgements_travel_with_answers_in_a_dialogue() {
        let config = Profile::Linux.settings();
        let mut s = AckState::default();
        assert_eq!(s.on_data(&config, at(0), 300, 300, &rtt(), None), Decision::Now);
        s.on_data_sent(at(1));
        assert_eq!(s.on_data(&config, at(200), 300, 300, &rtt(), None), Decision::Wait(at(240)));
    }
}

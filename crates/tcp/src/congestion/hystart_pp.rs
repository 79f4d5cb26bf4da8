//! HyStart++ (RFC 9406): when the round-trip time grows, slow start goes on at a quarter of its speed for five rounds,
//! and becomes avoidance unless the growth was a mistake.

use airloom_base::Duration;

use super::{Ack, Window};

//= RFC 9406 (4.3): recommended values.
/// MIN_RTT_THRESH.
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
/// MAX_RTT_THRESH.
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
/// MIN_RTT_DIVISOR.
const MIN_RTT_DIVISOR: u64 = 8;
/// N_RTT_SAMPLE.
const N_RTT_SAMPLE: u8 = 8;
/// CSS_GROWTH_DIVISOR.
const CSS_GROWTH_DIVISOR: u64 = 4;
/// CSS_ROUNDS.
const CSS_ROUNDS: u8 = 5;
/// L: segments by which one acknowledgement may enlarge the window, unless the sender paces.
const L: u64 = 8;

/// State of one connection.
#[derive(Clone, Debug, Default, getset::CopyGetters)]
pub struct HyStartPp {
    /// The round ends when this is acknowledged (windowEnd).
    window_end: u64,
    last_round_min_rtt: Option<Duration>,
    current_round_min_rtt: Option<Duration>,
    rtt_sample_count: u8,
    /// Conservative slow start: the least round-trip time at its beginning, and rounds it has lasted.
    css: Option<(Duration, u8)>,
    /// Slow start has ended once; later ones are left alone.
    #[getset(get_copy = "pub")]
    done: bool,
}

impl HyStartPp {
    /// An acknowledgement, before the window moves.
    #[inline]
    pub fn observe(&mut self, window: &mut Window, ack: &Ack) {
        //= RFC 9406 (4.3): only the initial slow start, in which the threshold is arbitrarily high.
        if !self.done && window.ssthresh() == u64::MAX {
            self.look(window, ack);
        }
    }

    fn look(&mut self, window: &mut Window, ack: &Ack) {
        if self.window_end == 0 {
            //= RFC 9406 (4.2): the first round ends with what was sent before its first acknowledgement; it has no predecessor.
            self.window_end = ack.nxt;
        }
        if let Some(rtt) = ack.rtt {
            self.current_round_min_rtt = Some(self.current_round_min_rtt.map_or(rtt, |m| m.min(rtt)));
            self.rtt_sample_count = self.rtt_sample_count.saturating_add(1);
        }
        if let (true, Some(current)) = (self.rtt_sample_count >= N_RTT_SAMPLE, self.current_round_min_rtt) {
            match (self.css, self.last_round_min_rtt) {
                //= RFC 9406 (4.2): the round-trip time fell below the baseline: the growth was not lasting.
                (Some((baseline, _)), _) if current < baseline => self.css = None,
                (None, Some(last)) => {
                    //= RFC 9406 (4.2): RttThresh = max(MIN_RTT_THRESH, min(lastRoundMinRTT / MIN_RTT_DIVISOR, MAX_RTT_THRESH)).
                    let threshold = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                    if current >= last + threshold {
                        self.css = Some((current, 0));
                    }
                }
                _ => {}
            }
        }
        if ack.una >= self.window_end {
            self.next_round(window, ack);
        }
    }

    fn next_round(&mut self, window: &mut Window, ack: &Ack) {
        self.window_end = ack.nxt;
        self.last_round_min_rtt = self.current_round_min_rtt.take();
        self.rtt_sample_count = 0;
        if let Some((_, rounds)) = &mut self.css {
            //= RFC 9406 (4.2): a round in which it began counts as one.
            *rounds += 1;
            if *rounds >= CSS_ROUNDS {
                window.end_slow_start();
                self.lost();
            }
        }
    }

    /// Slow start: all that was acknowledged, at most L segments; a quarter of it in conservative slow start.
    #[inline]
    pub fn grow(&self, window: &mut Window, ack: &Ack) {
        //= RFC 9406 (4.3): L is infinite for a sender that paces.
        let octets = if ack.paced { ack.octets } else { ack.octets.min(L * window.mss()) };
        let growth = if self.css.is_some() { octets / CSS_GROWTH_DIVISOR } else { octets };
        window.set_cwnd(window.cwnd() + growth);
    }

    /// A loss, or ECN: the initial slow start is over.
    pub fn lost(&mut self) {
        self.css = None;
        self.done = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    const MSS: u64 = 1000;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    struct Flow {
        h: HyStartPp,
        window: Window,
        una: u64,
    }

    impl Flow {
        fn new() -> Self {
            let mut window = Window::new(&Profile::Rfc.settings(), MSS);
            window.set_cwnd(10 * MSS);
            Flow { h: HyStartPp::default(), window, una: 0 }
        }

        /// Ten acknowledgements of a segment with `rtt`; the last of them ends the round. Returns the growth.
        fn round(&mut self, rtt: u64) -> u64 {
            let before = self.window.cwnd();
            let end = self.una + 10;
            for _ in 0..10 {
                self.una += 1;
                let nxt = if self.una < end { end } else { end + 10 };
                let ack = Ack { octets: MSS, una: self.una, nxt, rtt: Some(ms(rtt)), ..Ack::default() };
                self.h.observe(&mut self.window, &ack);
                if self.window.in_slow_start() {
                    self.h.grow(&mut self.window, &ack);
                }
            }
            self.window.cwnd() - before
        }
    }

    #[test]
    fn rfc_9406_4_2_growth_by_the_threshold_slows_to_a_quarter_for_five_rounds() {
        // An eighth of 100 ms; of 20 ms at least 4 ms; of 400 ms at most 16 ms.
        for (base, longer) in [(96, 108), (20, 24), (400, 416)] {
            let mut f = Flow::new();
            assert_eq!((f.round(base), f.round(longer - 1)), (10_000, 10_000), "{base}");
            let mut f = Flow::new();
            assert_eq!(f.round(base), 10_000);
            // Eight samples are needed: seven segments whole, three at a quarter.
            assert_eq!(f.round(longer), 7_750, "{base}");
            assert_eq!((f.round(longer), f.round(longer), f.round(longer)), (2500, 2500, 2500));
            assert!(f.window.in_slow_start());
            // The fifth, the one in which it began counted, is the last.
            assert_eq!(f.round(longer), 2250);
            assert!(!f.window.in_slow_start());
            assert_eq!(f.window.ssthresh(), f.window.cwnd());
        }
    }

    #[test]
    fn rfc_9406_4_2_the_first_round_is_not_compared_with_its_own_first_segment() {
        let mut f = Flow::new();
        for una in 1..=10 {
            let ack = Ack { octets: MSS, una, nxt: 10, rtt: Some(ms(100 + 20 * una)), ..Ack::default() };
            f.h.observe(&mut f.window, &ack);
            f.h.grow(&mut f.window, &ack);
        }
        assert_eq!(f.window.cwnd(), 20 * MSS);
    }

    #[test]
    fn rfc_9406_4_2_a_round_trip_time_below_the_baseline_resumes_slow_start() {
        let mut f = Flow::new();
        f.round(100);
        f.round(120);
        assert_eq!(f.round(120), 2500);
        assert!(f.round(105) > 2500);
        assert_eq!(f.round(105), 10_000);
    }

    #[test]
    fn rfc_9406_4_3_l_is_eight_segments_unless_paced() {
        let mut f = Flow::new();
        let ack = Ack { octets: 20 * MSS, ..Ack::default() };
        f.h.grow(&mut f.window, &ack);
        assert_eq!(f.window.cwnd(), 18 * MSS);
        f.h.grow(&mut f.window, &Ack { paced: true, ..ack });
        assert_eq!(f.window.cwnd(), 38 * MSS);
    }

    #[test]
    fn rfc_9406_4_3_only_the_initial_slow_start_is_watched() {
        let mut f = Flow::new();
        f.h.lost();
        f.round(100);
        assert_eq!(f.round(300), 10_000);
    }
}

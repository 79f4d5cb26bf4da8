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
#[derive(Clone, Debug, Default)]
pub struct HyStartPp {
    /// The round ends when this is acknowledged (windowEnd).
    window_end: u64,
    last_round_min_rtt: Option<Duration>,
    current_round_min_rtt: Option<Duration>,
    rtt_sample_count: u8,
    /// Conservative slow start: the least round-trip time at its beginning, and rounds it has lasted.
    css: Option<(Duration, u8)>,
    /// Slow start has ended once; later ones are left alone.
    done: bool,
}

impl HyStartPp {
    /// An acknowledgement, before the window moves.
    #[inline]
    pub fn observe(&mut self, window: &mut Window, ack: &Ack) {
        //= RFC 9406 (4.3): only the initial slow start, in which the threshold is arbitrarily high.
        if !self.done && window.ssthresh == u64::MAX {
            self.look(window, ack);
        }
    }

    fn look(&mut self, window: &mut Window, ack: &Ack) {
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
                window.ssthresh = window.cwnd;
                self.lost();
            }
        }
    }

    /// Slow start: all that was acknowledged, at most L segments; a quarter of it in conservative slow start.
    #[inline]
    pub fn grow(&self, window: &mut Window, ack: &Ack) {
        //= RFC 9406 (4.3): L is infinite for a sender that paces.
        let octets = if ack.paced { ack.octets } else { ack.octets.min(L * window.mss) };
        window.cwnd += if self.css.is_some() { octets / CSS_GROWTH_DIVISOR } else { octets };
    }

    /// A loss, or ECN: the initial slow start is over.
    pub fn lost(&mut self) {
        self.css = None;
        self.done = true;
    }
}

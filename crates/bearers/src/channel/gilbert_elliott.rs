//! Gilbert-Elliott: a good and a bad state with memory.

use airloom_base::{Direction, Station, random::Fate};

/// Where in a step's draws the lengths of stays are found, away from all blocks.
const STAYS: u32 = u32::MAX;

/// Two states; `p` = P(good to bad), `q` = P(bad to good) per step, losses `kg`, `kb` in them.
///
/// Stationary share of the bad state p/(p+q), loss (q kg + p kb)/(p+q), mean burst 1/q if kb = 1 and kg = 0.
/// The state at a step is a pure function of (fate, step): stay number k has a length drawn at k.
#[derive(Clone, Debug)]
pub struct GilbertElliott {
    p: f64,
    q: f64,
    kg: f64,
    kb: f64,
    draws: Fate,
    /// The stay that ends (excluded) at `end`, and its number.
    bad: bool,
    stay: u64,
    end: u64,
    /// The last step asked for.
    step: u64,
}

impl GilbertElliott {
    /// A process whose first state is drawn from the stationary distribution.
    pub fn new(
        (p, q): (f64, f64),
        (kg, kb): (f64, f64),
        fate: Fate,
        direction: Direction,
        station: Station,
    ) -> Self {
        let draws = fate.lane(direction, station, STAYS);
        let mut this = GilbertElliott { p, q, kg, kb, draws, bad: false, stay: 0, end: 0, step: 0 };
        let share = if p + q > 0.0 { p / (p + q) } else { 0.0 };
        this.bad = this.draws.nth(0) < share;
        this.end = this.length(1);
        this.stay = 1;
        this
    }

    /// Length in steps of stay number `stay` in the present state: geometric, at least 1.
    fn length(&self, stay: u64) -> u64 {
        let leave = if self.bad { self.q } else { self.p };
        if leave >= 1.0 {
            1
        } else if leave <= 0.0 || 1.0 - leave == 1.0 {
            // So rarely that the logarithm of staying is 0: never in any run.
            u64::MAX
        } else {
            // Inversion of the geometric law; `as` saturates.
            (((1.0 - self.draws.nth(stay)).ln() / (1.0 - leave).ln()).floor() as u64).saturating_add(1)
        }
    }

    /// Probability of a loss at `step`; steps are asked for in order that does not decrease.
    pub fn probability(&mut self, step: u64) -> f64 {
        while step >= self.end && self.end != u64::MAX {
            self.bad = !self.bad;
            self.stay += 1;
            self.end = self.end.saturating_add(self.length(self.stay));
        }
        self.step = step;
        if self.bad { self.kb } else { self.kg }
    }

    /// Changes the loss from the last step asked for on, keeping the mean burst; `false` if the parameters cannot
    /// express it.
    pub fn set_loss(&mut self, loss: f64) -> bool {
        match GilbertElliott::from_burst(loss, 1.0 / self.q) {
            Some((p, _)) if self.kg == 0.0 && self.kb == 1.0 => {
                self.p = p;
                if !self.bad {
                    // How long a good state still lasts does not depend on how long it has lasted. The draw is a new one:
                    // that of the stay until now tells that it was long.
                    self.stay += 1;
                    self.end = self.step.saturating_add(self.length(self.stay));
                }
                true
            }
            _ => false,
        }
    }

    /// `(p, q)` for a loss and a mean burst length (with kg = 0, kb = 1); `None` if p would leave 0..=1.
    pub fn from_burst(loss: f64, burst: f64) -> Option<(f64, f64)> {
        let q = 1.0 / burst;
        let p = if loss < 1.0 { loss * q / (1.0 - loss) } else { f64::INFINITY };
        ((0.0..=1.0).contains(&p) && q > 0.0 && q <= 1.0).then_some((p, q))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(p: f64, q: f64, seed: u64) -> GilbertElliott {
        GilbertElliott::new((p, q), (0.0, 1.0), Fate::new(seed, "ge"), Direction::Downlink, Station(0))
    }

    #[test]
    fn loss_and_mean_burst_follow_the_formulas() {
        let mut ge = process(0.01, 0.1, 1);
        let (mut lost, mut bursts, mut before) = (0u32, 0u32, false);
        let steps = 2_000_000;
        for step in 0..steps {
            let bad = ge.probability(step) == 1.0;
            lost += u32::from(bad);
            bursts += u32::from(bad && !before);
            before = bad;
        }
        let loss = f64::from(lost) / steps as f64;
        assert!((loss - 0.0909).abs() < 0.003, "{loss}");
        let burst = f64::from(lost) / f64::from(bursts);
        assert!((burst - 10.0).abs() < 0.3, "{burst}");
    }

    #[test]
    fn the_state_at_a_step_does_not_depend_on_the_steps_asked_before() {
        let mut all = process(0.05, 0.2, 7);
        let mut few = process(0.05, 0.2, 7);
        for step in 0..100_000u64 {
            let state = all.probability(step);
            if step.is_multiple_of(977) {
                assert_eq!(few.probability(step), state, "step {step}");
            }
        }
    }

    #[test]
    fn absorbing_states_end_the_walk() {
        assert_eq!(process(0.0, 1.0, 1).probability(u64::MAX - 1), 0.0);
        assert_eq!(process(1.0, 0.0, 1).probability(1_000_000), 1.0);
    }

    #[test]
    fn a_loss_too_rare_for_the_arithmetic_never_happens() {
        for p in [1e-300, 1e-17, f64::EPSILON / 4.0] {
            let mut ge = process(p, 0.1, 1);
            assert!((0..1000).all(|step| ge.probability(step) == 0.0), "{p}");
        }
    }

    #[test]
    fn a_change_of_loss_takes_effect_at_once_however_long_the_good_state_would_have_lasted() {
        let share = |before: f64, changes: &[f64], again: bool| {
            let mut lost = 0u32;
            for seed in 0..400 {
                let (p, q) = GilbertElliott::from_burst(before, 5.0).unwrap();
                let mut ge = process(p, q, seed);
                (0..100).for_each(|step| assert!(ge.probability(step) <= 1.0));
                assert!(changes.iter().all(|loss| ge.set_loss(*loss)));
                for step in 100..1100u64 {
                    // A ramp, or a hand on a control, says it every few steps.
                    assert!(!again || !step.is_multiple_of(10) || ge.set_loss(0.3));
                    lost += u32::from(ge.probability(step) == 1.0);
                }
            }
            f64::from(lost) / 400_000.0
        };
        for (before, changes) in [(0.0, &[0.3][..]), (0.3, &[0.0, 0.3]), (0.001, &[0.3]), (0.3, &[0.3])] {
            for again in [false, true] {
                let share = share(before, changes, again);
                assert!((share - 0.3).abs() < 0.01, "{before} {changes:?} {again}: {share}");
            }
        }
        assert!(share(0.3, &[0.0], false) < 0.002, "only bursts under way");
    }

    #[test]
    fn loss_and_burst_give_the_transition_probabilities() {
        let (p, q) = GilbertElliott::from_burst(1.0 / 11.0, 10.0).unwrap();
        assert!((p - 0.01).abs() < 1e-12 && (q - 0.1).abs() < 1e-12);
        assert_eq!(GilbertElliott::from_burst(0.9, 1.0), None);
        assert_eq!(GilbertElliott::from_burst(1.0, 10.0), None);
    }
}

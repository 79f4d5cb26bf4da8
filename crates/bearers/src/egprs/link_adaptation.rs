//! Link adaptation: the coding scheme follows what the receiver measures.
//!
//! ```text
//!   bits in error of each block ─► filter by modulation ─► report: MEAN_BEP in 32 steps ─► the network chooses the scheme
//! ```
//!
//! Downlink the mobile measures, and reports when it is asked to by a poll (ES/P = 11). Uplink the network measures by
//! itself, and commands the scheme in each PACKET UPLINK ACK/NACK. Bits in error are worked out from the trace of the
//! carrier-to-interference ratio, which also decides the fate of blocks.

use airloom_base::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::coding_scheme::Mcs;
use super::radio::CiConfig;
use super::rlc::Rules;
use super::wire::quality::{Bep, ChannelQuality};

/// The coding scheme follows the channel, as measurements show it. Each flow begins with `mcs`; repeated blocks take the
/// scheme in force, or the nearest one of their family. A poll that is not answered makes the downlink one step more robust.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LinkAdaptation {
    /// The most robust scheme in use.
    pub lowest: Mcs,
    /// The fastest scheme in use.
    pub highest: Mcs,
    /// May repeated blocks be cut in two to fit a more robust scheme (resegmentation)?
    pub resegment: bool,
    /// Forgetting factor of the measurements (BEP_PERIOD): the weight of the latest block, above 0 and at most 1.
    pub forgetting: f64,
}

impl Default for LinkAdaptation {
    fn default() -> Self {
        LinkAdaptation { lowest: Mcs::ALL[0], highest: Mcs::ALL[8], resegment: true, forgetting: 0.1 }
    }
}

impl LinkAdaptation {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let at = |key: &str, message: String| {
            Err(ConfigError { path: vec!["link_adaptation".to_owned(), key.to_owned()], message })
        };
        if self.lowest > self.highest {
            return at("lowest", format!("{} is faster than the highest, {}", self.lowest, self.highest));
        }
        if !(self.forgetting > 0.0 && self.forgetting <= 1.0) {
            return at("forgetting", "a number above 0, at most 1".to_owned());
        }
        Ok(())
    }
}

/// How bits are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Modulation {
    Gmsk,
    Psk8,
}

impl Modulation {
    const fn of(mcs: Mcs) -> Modulation {
        if mcs.number() <= 4 { Modulation::Gmsk } else { Modulation::Psk8 }
    }

    /// What 8-PSK needs more for as many bits in error, as a factor.
    const fn penalty(self) -> f64 {
        match self {
            Modulation::Gmsk => 1.0,
            Modulation::Psk8 => 4.0,
        }
    }

    /// Bit error probability at a ratio in dB.
    ///
    /// ASSUMPTION: that of a channel with Rayleigh fading, 1/(2 (1 + ratio)); 8-PSK needs 6 dB more for the same. It need not
    /// agree with the thresholds of blocks: it carries the ratio from the receiver to who chooses the scheme.
    fn bep(self, ratio_db: f64) -> f64 {
        0.5 / (1.0 + 10f64.powf(ratio_db / 10.0) / self.penalty())
    }

    /// The ratio in dB at which so many bits are in error.
    fn ratio_db(self, bep: f64) -> f64 {
        10.0 * ((0.5 / bep.clamp(1e-9, 0.5) - 1.0) * self.penalty()).max(1e-9).log10()
    }
}

/// The highest step of MEAN_BEP.
const HIGHEST: u8 = 31;

/// The step of MEAN_BEP that a bit error probability lies in.
//= TS 45.008 (10.2.3.3): 32 steps, in GMSK a tenth of a decade each, from 10^-0.6 down.
// ASSUMPTION: the same in 8-PSK, where the standard's steps are finer and end earlier.
fn step(bep: f64) -> u8 {
    let steps = (-bep.max(1e-12).log10() - 0.6) * 10.0;
    // Negative below the first step.
    (steps.floor() + 1.0).clamp(0.0, f64::from(HIGHEST)) as u8
}

/// The middle of a step.
fn middle(step: u8) -> f64 {
    10f64.powf(-0.6 - 0.1 * (f64::from(step.min(HIGHEST)) - 0.5))
}

/// A filtered mean.
///
//= TS 45.008 (10.2.3.2.1): R(n) = (1 - e) R(n-1) + e x(n), the mean moves by e x(n) / R(n) towards the block's; x(n) is 1 for
//= blocks of the modulation, 0 for others.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    value: f64,
    reliability: f64,
}

impl Mean {
    fn add(&mut self, sample: Option<f64>, e: f64) {
        self.reliability *= 1.0 - e;
        if let Some(sample) = sample {
            self.reliability += e;
            self.value += e / self.reliability * (sample - self.value);
        }
    }
}

/// What the receiver of one direction has measured, and how its sender is to take it.
#[derive(Clone, Debug)]
pub struct Adaptation {
    config: LinkAdaptation,
    ci: CiConfig,
    means: [Option<Mean>; 2],
}

impl Adaptation {
    pub fn new(config: &LinkAdaptation, ci: &CiConfig) -> Self {
        Adaptation { config: config.clone(), ci: ci.clone(), means: [None; 2] }
    }

    /// A new flow begins: nothing has been measured.
    pub fn restart(&mut self) {
        self.means = [None; 2];
    }

    /// A radio block in scheme `mcs` was sent at this ratio. What becomes of its data does not matter: the header is
    /// taken to be heard.
    pub fn measure(&mut self, mcs: Mcs, ratio_db: f64) {
        for (mean, modulation) in self.means.iter_mut().zip([Modulation::Gmsk, Modulation::Psk8]) {
            let sample = (Modulation::of(mcs) == modulation).then(|| modulation.bep(ratio_db));
            if sample.is_some() || mean.is_some() {
                mean.get_or_insert_default().add(sample, self.config.forgetting);
            }
        }
    }

    /// The report that a mobile makes of it.
    pub fn report(&self) -> ChannelQuality {
        // The ratio does not change within a block: the coefficient of variation is in its lowest step, 7.
        let bep = |mean: Option<Mean>| mean.map(|mean| Bep { mean: step(mean.value), variation: 7 });
        ChannelQuality { gmsk: bep(self.means[0]), psk8: bep(self.means[1]) }
    }

    /// A report came to the sender: the scheme that follows from it.
    pub fn follow(&self, quality: &ChannelQuality, rules: &mut Rules) {
        let of = |modulation| match modulation {
            Modulation::Gmsk => quality.gmsk,
            Modulation::Psk8 => quality.psk8,
        };
        let read = |modulation: Modulation| of(modulation).map(|bep| modulation.ratio_db(middle(bep.mean)));
        self.adapt(read, rules);
    }

    /// The scheme that follows from what was measured by the one who chooses it.
    pub fn command(&self, rules: &Rules) -> Mcs {
        let mut commanded = *rules;
        let measured = |modulation: Modulation| {
            self.means[modulation as usize].map(|mean| modulation.ratio_db(mean.value))
        };
        self.adapt(measured, &mut commanded);
        commanded.mcs
    }

    /// Takes the ratio that the modulation in use tells, or else the other one.
    fn adapt(&self, ratio: impl Fn(Modulation) -> Option<f64>, rules: &mut Rules) {
        let other = match Modulation::of(rules.mcs) {
            Modulation::Gmsk => Modulation::Psk8,
            Modulation::Psk8 => Modulation::Gmsk,
        };
        if let Some(ratio) = ratio(Modulation::of(rules.mcs)).or_else(|| ratio(other)) {
            rules.use_scheme(self.best(ratio));
        }
    }

    /// The scheme that brings most octets through at this ratio.
    fn best(&self, ratio_db: f64) -> Mcs {
        let brings =
            |mcs: &Mcs| (mcs.octets() * mcs.blocks()) as f64 * (1.0 - self.ci.block_error_at(*mcs, ratio_db));
        let allowed =
            Mcs::ALL.into_iter().filter(|mcs| (self.config.lowest..=self.config.highest).contains(mcs));
        allowed.max_by(|a, b| brings(a).total_cmp(&brings(b))).unwrap_or(self.config.lowest)
    }

    /// Nothing was heard: the next more robust scheme.
    pub fn step_down(&self, rules: &mut Rules) {
        let below = Mcs::ALL.into_iter().rev().find(|mcs| *mcs < rules.mcs && *mcs >= self.config.lowest);
        rules.use_scheme(below.unwrap_or(self.config.lowest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adaptation(config: LinkAdaptation) -> Adaptation {
        let ci: CiConfig = serde_json::from_value(serde_json::json!({ "trace": [[0, 20]] })).unwrap();
        Adaptation::new(&config, &ci)
    }

    fn rules(mcs: u8) -> Rules {
        let mcs = Mcs::new(mcs).unwrap();
        Rules { mcs, again: mcs, resegment: true, window: 64, max_tx: 0, patience: 0 }
    }

    #[test]
    fn steps_of_mean_bep_cover_both_modulations_and_are_read_within_a_step() {
        assert_eq!((step(0.5), step(0.26), step(0.25), step(1e-6)), (0, 0, 1, HIGHEST));
        assert!((0..32).all(|n| step(middle(n)) == n));
        for modulation in [Modulation::Gmsk, Modulation::Psk8] {
            for ratio in [8.0, 15.0, 30.0] {
                let read = modulation.ratio_db(middle(step(modulation.bep(ratio))));
                assert!((read - ratio).abs() < 1.5, "{modulation:?} {ratio} {read}");
                assert!((modulation.ratio_db(modulation.bep(ratio)) - ratio).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn the_first_block_sets_the_mean_and_later_ones_move_it() {
        let mut mean = Mean::default();
        mean.add(Some(0.2), 0.1);
        assert!((mean.value - 0.2).abs() < 1e-12);
        mean.add(Some(0.0), 0.1);
        // e / R with R = 0.9 x 0.1 + 0.1.
        assert!((mean.value - 0.2 * (1.0 - 0.1 / 0.19)).abs() < 1e-12);
        let before = mean.reliability;
        mean.add(None, 0.1);
        assert!(mean.reliability < before, "what was measured of another modulation makes it older");
    }

    #[test]
    fn the_scheme_is_the_one_that_brings_most_within_the_limits() {
        let free = adaptation(LinkAdaptation::default());
        let numbers = [-5.0, 12.0, 40.0].map(|ratio| free.best(ratio).number());
        assert_eq!((numbers[0], numbers[2]), (1, 9));
        assert!(numbers[1] > 1 && numbers[1] < 7, "{numbers:?}");
        let narrow =
            LinkAdaptation { lowest: Mcs::ALL[1], highest: Mcs::ALL[4], ..LinkAdaptation::default() };
        let narrow = adaptation(narrow);
        assert_eq!([-5.0, 40.0].map(|ratio| narrow.best(ratio).number()), [2, 5]);
        let mut down = rules(4);
        let seen: Vec<u8> = (0..4)
            .map(|_| {
                narrow.step_down(&mut down);
                down.mcs.number()
            })
            .collect();
        assert_eq!(seen, [3, 2, 2, 2]);
    }

    #[test]
    fn a_report_tells_of_the_modulations_that_were_used() {
        let mut way = adaptation(LinkAdaptation::default());
        assert_eq!(way.report(), ChannelQuality::default());
        let mut sender = rules(4);
        way.follow(&way.report(), &mut sender);
        assert_eq!(sender.mcs.number(), 4, "nothing was measured");
        (0..30).for_each(|_| way.measure(sender.mcs, 40.0));
        let report = way.report();
        assert!(report.gmsk.is_some_and(|bep| bep.mean == 31) && report.psk8.is_none());
        way.follow(&report, &mut sender);
        assert_eq!((sender.mcs.number(), way.command(&rules(4)).number()), (9, 9));
        (0..30).for_each(|_| way.measure(sender.mcs, 40.0));
        way.follow(&way.report(), &mut sender);
        assert_eq!(sender.mcs.number(), 9);
        way.restart();
        assert_eq!(way.report(), ChannelQuality::default());
    }
}

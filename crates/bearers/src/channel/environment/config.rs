//! What a scenario says about an environment, and about a link in it.

use airloom_base::random::Fate;
use airloom_base::{ConfigError, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

/// Distance at which the field is given, metres.
const REFERENCE_M: f64 = 10.0;

/// Shortest mean of blocked and free moments.
const SHORTEST: Duration = Duration::from_millis(1);

/// Who meets the same fades or the same people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shared {
    /// All links of the environment.
    All,
    /// Those of the same unit.
    Unit,
    /// Nobody: each circuit has its own.
    Circuit,
}

/// A radio environment: base station units, the mobile's distance, and what happens on the path between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(deny_unknown_fields, default)]
pub struct Environment {
    /// Metres between base station and mobile.
    #[default(REFERENCE_M)]
    pub distance: f64,
    /// Field strength at 10 m, dBuV.
    #[default(68.3)]
    pub field_at_10m: f64,
    /// The field falls with this power of the distance: 2 in free space.
    #[default(1.77)]
    pub exponent: f64,
    /// Base station units.
    #[default(3)]
    pub units: u16,
    /// What each unit's field has more than the mean, dB, in order; 0 for those that are not listed.
    pub offsets: Vec<f64>,
    /// Shadowing, drawn once a run.
    pub shadowing: Shadowing,
    /// What the uplink has more than the downlink, dB.
    pub uplink: f64,
    /// Fading, if there is any.
    #[default(Some(Fading::default()))]
    pub fading: Option<Fading>,
    /// People who cross the path, if any do.
    pub people: Option<People>,
    /// Which frames are in error.
    pub frame_errors: FrameErrors,
}

/// How much fields differ from the law of the distance: standard deviations of normal laws, dB.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(deny_unknown_fields, default)]
pub struct Shadowing {
    /// Of the place: the same for all units.
    pub place: f64,
    /// Of each unit by itself, at 10 m.
    #[default(1.0)]
    pub unit: f64,
    /// By how much that grows with each tenfold distance.
    #[default(2.0)]
    pub unit_per_decade: f64,
}

/// The law of the amplitude.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Law {
    /// No direct path.
    Rayleigh,
    /// A direct path, so many dB above all others together (the Rice factor).
    Rician(f64),
}

/// Fading by many paths. The mean power stays.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fading {
    /// `"rayleigh"`, or `{ rician = 10 }` with the factor in dB.
    pub law: Law,
    /// Largest Doppler shift, Hz: 9.5 at 1.9 GHz and 1.5 m/s.
    pub doppler: f64,
    /// Who meets the same fades: `"all"`, `"unit"` or `"circuit"`. Both directions always do: they have one carrier.
    pub shared: Shared,
}

impl Default for Fading {
    fn default() -> Self {
        Fading { law: Law::Rician(10.0), doppler: 2.0, shared: Shared::Circuit }
    }
}

/// People crossing the path: a visit of tens of seconds, in which the path is blocked again and again for a moment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(deny_unknown_fields, default)]
pub struct People {
    /// When the first visit begins.
    #[default(Duration::from_secs(3))]
    pub from: Duration,
    /// How long a visit lasts.
    #[default(Duration::from_secs(40))]
    pub lasting: Duration,
    /// From the begin of a visit to the next one; there is one visit if not given.
    pub every: Option<Duration>,
    /// Mean time for which the path is blocked; the law is exponential.
    #[default(Duration::from_millis(370))]
    pub blocked: Duration,
    /// Mean time between two such moments; the law is exponential.
    #[default(Duration::from_secs(1))]
    pub free: Duration,
    /// By how many dB the field falls.
    #[default(45.0)]
    pub depth: f64,
    /// Whose path is blocked at the same moments: `"all"`, `"unit"` or `"circuit"`.
    #[default(Shared::Unit)]
    pub shared: Shared,
}

/// Frames in error: half of them at the field `at`, and 1 / (1 + exp((field - at) / slope)) elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(deny_unknown_fields, default)]
pub struct FrameErrors {
    /// dBuV at which half of the frames fail.
    #[default(30.0)]
    pub at: f64,
    /// dB over which that changes; 0: all below and none above.
    #[default(0.3)]
    pub slope: f64,
}

impl FrameErrors {
    /// Probability that a frame is in error at this field, dBuV.
    pub fn probability(&self, field: f64) -> f64 {
        let above = field - self.at;
        if self.slope > 0.0 {
            1.0 / (1.0 + (above / self.slope).exp())
        } else {
            f64::from(u8::from(above < 0.0))
        }
    }
}

/// Where a circuit is: in which environment, at which of its units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Placed {
    /// Name of the environment in the scenario.
    pub name: String,
    /// Number of the unit, from 0.
    #[serde(default)]
    pub unit: u16,
}

impl Environment {
    /// Looks for what makes no sense.
    ///
    /// # Errors
    /// The key.
    pub fn check(&self) -> Result<(), ConfigError> {
        let numbers = [
            ("distance", self.distance, 0.01..=1e6),
            ("field_at_10m", self.field_at_10m, -200.0..=200.0),
            ("exponent", self.exponent, 0.0..=10.0),
            ("uplink", self.uplink, -100.0..=100.0),
        ];
        for (key, number, range) in numbers {
            if !range.contains(&number) {
                return Err(ConfigError::at(key, format!("{} to {}", range.start(), range.end())));
            }
        }
        ConfigError::when(self.units == 0, "units", "an environment has at least one unit")?;
        if self.offsets.len() > usize::from(self.units) {
            return Err(ConfigError::at(
                "offsets",
                format!("at most one for each of the {} units", self.units),
            ));
        }
        if !self.offsets.iter().all(|offset| offset.abs() <= 200.0) {
            return Err(ConfigError::at("offsets", "at most 200 dB"));
        }
        let Shadowing { place, unit, unit_per_decade } = self.shadowing;
        if ![place, unit, unit_per_decade].iter().all(|sigma| (0.0..=50.0).contains(sigma)) {
            return Err(ConfigError::at("shadowing", "standard deviations are from 0 to 50 dB"));
        }
        if let Some(fading) = &self.fading {
            let rice = if let Law::Rician(factor) = fading.law { factor } else { 0.0 };
            if !(0.0..=1000.0).contains(&fading.doppler) || !(-60.0..=60.0).contains(&rice) {
                let message = "a Doppler shift of 0 to 1000 Hz and a Rice factor of -60 to 60 dB";
                return Err(ConfigError::at("fading", message));
            }
        }
        if let Some(people) = &self.people {
            // They are walked through one by one, however long nobody looks.
            if people.blocked < SHORTEST || people.free < SHORTEST {
                let message = format!("moments last at least {SHORTEST} on average: `blocked` and `free`");
                return Err(ConfigError::at("people", message));
            }
            if people.every.is_some_and(|every| every < people.lasting || every.is_zero()) {
                return Err(ConfigError::at("people", "a visit ends before the next one begins: `every`"));
            }
            if !(0.0..=200.0).contains(&people.depth) {
                return Err(ConfigError::at("people", "`depth` is from 0 to 200 dB"));
            }
        }
        if !(-200.0..=200.0).contains(&self.frame_errors.at)
            || !(0.0..=50.0).contains(&self.frame_errors.slope)
        {
            return Err(ConfigError::at("frame_errors", "`at` within 200 dBuV, `slope` 0 to 50 dB"));
        }
        Ok(())
    }

    /// Mean field of a unit, dBuV, with the shadowing that `draws` gives.
    pub(super) fn field_of(&self, unit: u16, draws: Fate) -> f64 {
        let decades = (self.distance / REFERENCE_M).log10();
        let sigma = self.shadowing.unit + self.shadowing.unit_per_decade * decades.max(0.0);
        let offset = self.offsets.get(usize::from(unit)).copied().unwrap_or(0.0);
        let shadow = self.shadowing.place * normal(draws, 0) + sigma * normal(draws, 1 + u64::from(unit));
        self.field_at_10m - 10.0 * self.exponent * decades + offset + shadow
    }
}

/// The n-th normal number of these draws (Box and Muller).
fn normal(draws: Fate, n: u64) -> f64 {
    let (radius, angle) = (1.0 - draws.nth(2 * n), draws.nth(2 * n + 1));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

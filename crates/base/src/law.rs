//! Random laws as scenario files say them.

use rand_distr::{Distribution, Exp1, Geometric, Pareto, StandardNormal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ConfigError;
use crate::random::Stream;

/// How often a value beyond its limits is drawn again before the limit itself is taken.
const TRIES: u32 = 1000;

/// A law that values are drawn from, within limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Law {
    /// Its kind, and the numbers of that kind.
    #[serde(rename = "law")]
    pub kind: Kind,
    /// Smallest value; none if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// Largest value; none if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<f64>,
    /// What becomes of a value beyond a limit.
    #[serde(default)]
    pub beyond: Beyond,
    /// Is added to every value, after the limits.
    #[serde(default)]
    pub add: f64,
}

/// The kinds of laws.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Kind {
    /// Always the same value.
    Fixed(f64),
    /// Every value between two is as likely as any other.
    Uniform {
        /// Smallest value.
        from: f64,
        /// Largest value.
        to: f64,
    },
    /// Exponential.
    Exponential {
        /// Its mean.
        mean: f64,
    },
    /// Pareto of the first kind: P(X > x) = (k/x)^shape for x above k. Its mean without limits is
    /// k shape / (shape - 1), so k follows from mean and shape.
    Pareto {
        /// Mean without limits.
        mean: f64,
        /// Shape (alpha), above 1; the variance is infinite up to 2.
        shape: f64,
    },
    /// The logarithm is normal.
    Lognormal {
        /// Mean of the logarithm.
        mu: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// How many trials until the first success: 1, 2, ...
    Geometric {
        /// Its mean, 1 or more.
        mean: f64,
    },
}

/// What becomes of a value beyond its limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Beyond {
    /// It becomes the limit.
    #[default]
    Clip,
    /// Another one is drawn.
    Redraw,
}

impl Law {
    /// A law without limits.
    pub const fn of(kind: Kind) -> Law {
        Law { kind, least: None, most: None, beyond: Beyond::Clip, add: 0.0 }
    }

    /// This law with limits.
    #[must_use]
    pub const fn within(mut self, least: Option<f64>, most: Option<f64>) -> Law {
        self.least = least;
        self.most = most;
        self
    }

    /// Can values be drawn? The error's path is below this law.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.kind.check().map_err(|error| error.below("law"))?;
        let limits = [("least", self.least), ("most", self.most), ("add", Some(self.add))];
        if let Some((key, _)) = limits.iter().find(|(_, limit)| limit.is_some_and(|n| !n.is_finite())) {
            return Err(ConfigError::at(key, "must be a finite number"));
        }
        match (self.least, self.most) {
            (Some(least), Some(most)) if least > most => {
                Err(ConfigError::at("most", "must be at least `least`"))
            }
            _ => Ok(()),
        }
    }

    /// A value. The law must have passed [`Law::check`].
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        let mut value = self.kind.draw(stream);
        if self.beyond == Beyond::Redraw {
            for _ in 0..TRIES {
                if self.limited(value) == value {
                    break;
                }
                value = self.kind.draw(stream);
            }
        }
        self.limited(value) + self.add
    }

    fn limited(&self, value: f64) -> f64 {
        let value = self.least.map_or(value, |least| value.max(least));
        self.most.map_or(value, |most| value.min(most))
    }
}

impl Kind {
    fn check(&self) -> Result<(), ConfigError> {
        let (key, is_good, rule) = match *self {
            Kind::Fixed(value) => ("fixed", value.is_finite(), "a finite number"),
            Kind::Uniform { from, .. } if !from.is_finite() => ("from", false, "a finite number"),
            Kind::Uniform { from, to } => ("to", to.is_finite() && to >= from, "at least `from`"),
            Kind::Exponential { mean } => ("mean", mean.is_finite() && mean >= 0.0, "at least 0"),
            Kind::Pareto { mean, .. } if !mean.is_finite() || mean <= 0.0 => ("mean", false, "above 0"),
            // There is no mean otherwise.
            Kind::Pareto { shape, .. } => ("shape", shape.is_finite() && shape > 1.0, "above 1"),
            Kind::Lognormal { mu, .. } if !mu.is_finite() => ("mu", false, "a finite number"),
            Kind::Lognormal { sigma, .. } => ("sigma", sigma.is_finite() && sigma >= 0.0, "at least 0"),
            Kind::Geometric { mean } => ("mean", mean.is_finite() && mean >= 1.0, "at least 1"),
        };
        if is_good { Ok(()) } else { Err(ConfigError::at(key, format!("must be {rule}"))) }
    }

    fn draw(&self, stream: &mut Stream) -> f64 {
        let rng = stream.rng();
        match *self {
            Kind::Fixed(value) => value,
            Kind::Uniform { from, to } => from + (to - from) * stream.unit(),
            Kind::Exponential { mean } => {
                let unit: f64 = Exp1.sample(rng);
                mean * unit
            }
            Kind::Pareto { mean, shape } => {
                Pareto::new(mean * (shape - 1.0) / shape, shape).map_or(mean, |law| law.sample(rng))
            }
            Kind::Lognormal { mu, sigma } => {
                let unit: f64 = StandardNormal.sample(rng);
                (mu + sigma * unit).exp()
            }
            // The library counts the failures before the success.
            Kind::Geometric { mean } => {
                Geometric::new(1.0 / mean).map_or(mean, |law| law.sample(rng) as f64 + 1.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean, median and 90th percentile of many values.
    fn look(law: &Law) -> (f64, f64, f64) {
        law.check().unwrap();
        let mut stream = Stream::new(7, "law");
        let mut values: Vec<f64> = (0..200_000).map(|_| law.draw(&mut stream)).collect();
        values.sort_by(f64::total_cmp);
        (values.iter().sum::<f64>() / 200_000.0, values[100_000], values[180_000])
    }

    fn near(found: f64, expected: f64, share: f64) {
        assert!((found / expected - 1.0).abs() < share, "{found} is not {expected}");
    }

    #[test]
    fn pareto_has_the_scale_of_its_mean() {
        let (_, median, tenth) = look(&Law::of(Kind::Pareto { mean: 10_000.0, shape: 1.2 }));
        near(median, 2_970.0, 0.01);
        near(tenth, 11_355.0, 0.02);
        // With a finite variance the mean itself can be seen.
        near(look(&Law::of(Kind::Pareto { mean: 100.0, shape: 3.0 })).0, 100.0, 0.01);
    }

    #[test]
    fn other_laws_have_their_means() {
        near(look(&Law::of(Kind::Exponential { mean: 30.0 })).0, 30.0, 0.01);
        near(look(&Law::of(Kind::Geometric { mean: 5.0 })).0, 5.0, 0.01);
        near(look(&Law::of(Kind::Uniform { from: 2.0, to: 4.0 })).0, 3.0, 0.01);
        let (_, median, _) = look(&Law::of(Kind::Lognormal { mu: 8.37, sigma: 1.37 }));
        near(median, 8.37_f64.exp(), 0.02);
        assert_eq!(look(&Law::of(Kind::Fixed(2.5))), (2.5, 2.5, 2.5));
        let mut stream = Stream::new(1, "law");
        let geometric = Law::of(Kind::Geometric { mean: 1.0 });
        assert_eq!(geometric.draw(&mut stream), 1.0);
    }

    #[test]
    fn limits_clip_or_draw_again() {
        let clipped = Law::of(Kind::Exponential { mean: 10.0 }).within(Some(5.0), Some(20.0));
        let again = Law { beyond: Beyond::Redraw, ..clipped.clone() };
        let mut stream = Stream::new(3, "law");
        let many: Vec<f64> = (0..1000).map(|_| clipped.draw(&mut stream)).collect();
        assert!(many.iter().all(|v| (5.0..=20.0).contains(v)));
        assert!(many.iter().filter(|v| **v == 5.0).count() > 300);
        let many: Vec<f64> = (0..1000).map(|_| again.draw(&mut stream)).collect();
        assert!(many.iter().all(|v| *v > 5.0 && *v < 20.0));
        // Limits that the law never meets end at the limit.
        let never = Law { beyond: Beyond::Redraw, ..Law::of(Kind::Fixed(1.0)).within(Some(2.0), None) };
        assert_eq!(never.draw(&mut stream), 2.0);
    }

    #[test]
    fn a_table_is_read_and_its_numbers_are_checked() {
        let read = |text: &str| {
            let law: Law = crate::config::read(&serde_json::from_str(text).unwrap())?;
            law.check().map(|()| law)
        };
        let law = read(r#"{"law": {"pareto": {"mean": 10000, "shape": 1.2}}, "most": 100000}"#).unwrap();
        assert_eq!(law, Law::of(Kind::Pareto { mean: 1e4, shape: 1.2 }).within(None, Some(1e5)));
        for (text, key) in [
            (r#"{"law": {"pareto": {"mean": 10, "shape": 1}}}"#, "law.shape"),
            (r#"{"law": {"geometric": {"mean": 0.5}}}"#, "law.mean"),
            (r#"{"law": {"uniform": {"from": 2, "to": 1}}}"#, "law.to"),
            (r#"{"law": {"fixed": 1}, "least": 3, "most": 2}"#, "most"),
            (r#"{"law": {"lognormal": {"mu": 1, "sigma": -1}}}"#, "law.sigma"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(key), "{text}: {error}");
        }
        let error = read(r#"{"law": {"cauchy": {}}}"#).unwrap_err().to_string();
        assert!(error.contains("pareto"), "{error}");
        assert!(read(r#"{"law": {"fixed": 1}, "wrong": 2}"#).is_err());
        assert!(read(r#"{"law": {"geometric": {"mean": 2, "wrong": 2}}}"#).is_err());
    }
}

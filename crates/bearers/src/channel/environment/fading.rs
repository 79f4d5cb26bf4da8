//! Rayleigh and Rician fading as a sum of sinusoids.

use std::f64::consts::TAU;

use airloom_base::Instant;
use airloom_base::random::Fate;

use super::config::{Fading, Law};

/// Scattered paths. With sixteen the amplitude is near enough to its law down to 30 dB below the mean.
const PATHS: usize = 16;

/// A path: its Doppler shift in cycles a second, and its phase in cycles.
#[derive(Clone, Copy, Debug, Default)]
struct Wave {
    shift: f64,
    phase: f64,
}

/// The fades of one carrier at one place.
#[derive(Clone, Debug)]
pub struct Fades {
    waves: [Wave; PATHS],
    direct: Wave,
    /// Amplitude of the direct path, and of each scattered one.
    amplitudes: (f64, f64),
}

impl Fades {
    /// Angles of arrival and phases as `draws` gives them. The angles stand in sectors of equal width, one in each, so that no
    /// seed has all its paths from one side.
    pub fn new(fading: &Fading, draws: Fate) -> Fades {
        let mut waves = [Wave::default(); PATHS];
        for (n, wave) in waves.iter_mut().enumerate() {
            let angle = (n as f64 + draws.nth(2 * n as u64)) / PATHS as f64;
            *wave = Wave { shift: fading.doppler * (TAU * angle).cos(), phase: draws.nth(2 * n as u64 + 1) };
        }
        let (angle, phase) = (draws.nth(2 * PATHS as u64), draws.nth(2 * PATHS as u64 + 1));
        let direct = Wave { shift: fading.doppler * (TAU * angle).cos(), phase };
        let ratio = match fading.law {
            Law::Rayleigh => 0.0,
            Law::Rician(decibel) => 10f64.powf(decibel / 10.0),
        };
        let scattered = 1.0 / (1.0 + ratio);
        let amplitudes = ((ratio * scattered).sqrt(), (scattered / PATHS as f64).sqrt());
        Fades { waves, direct, amplitudes }
    }

    /// Power at a time above the mean, dB.
    pub fn gain(&self, at: Instant) -> f64 {
        let s = at.as_secs_f64();
        let (direct, scattered) = self.amplitudes;
        let of = |wave: &Wave, amplitude: f64| {
            let (sin, cos) = (TAU * (wave.shift * s + wave.phase)).sin_cos();
            (amplitude * cos, amplitude * sin)
        };
        let mut sum = if direct > 0.0 { of(&self.direct, direct) } else { (0.0, 0.0) };
        for wave in &self.waves {
            let (re, im) = of(wave, scattered);
            sum = (sum.0 + re, sum.1 + im);
        }
        10.0 * (sum.0 * sum.0 + sum.1 * sum.1).max(1e-12).log10()
    }
}

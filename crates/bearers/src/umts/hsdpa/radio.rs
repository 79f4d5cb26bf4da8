//! Channel quality of one mobile: what it reports, what fits into a transport block, how likely an error is.

use airloom_base::random::Fate;
use airloom_base::{Duration, Instant};

use crate::channel::environment::{Fades, Fading};

/// Transport block sizes in bits for CQI 1 to 30 (TS 25.214, table 7D; the first ones are those of all tables).
const SIZES: [u16; 30] = [
    137, 173, 233, 317, 377, 461, 650, 792, 931, 1262, 1483, 1742, 2279, 2583, 3319, 3565, 4189, 4664, 5287,
    5887, 6554, 7168, 9719, 11418, 14411, 17237, 21754, 23370, 24222, 25558,
];
/// Bits of a MAC-hs header with one size of MAC-d PDUs (TS 25.321, 9.2.2).
const HEADER: u32 = 21;

/// What a category of mobiles can do (TS 25.306, table 5.1a).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Category {
    /// The best channel quality that has a size of its own.
    pub best: u8,
    /// Least number of TTIs from one transport block to the next.
    pub interval: u64,
}

impl Category {
    /// Category 1 to 12.
    pub fn new(number: u8) -> Option<Category> {
        let (best, interval) = match number {
            1 | 2 => (22, 3),
            3 | 4 => (22, 2),
            5 | 6 => (22, 1),
            7 | 8 => (25, 1),
            9 => (26, 1),
            10 => (30, 1),
            11 => (15, 2),
            12 => (15, 1),
            _ => return None,
        };
        Some(Category { best, interval })
    }
}

/// What fits: formats by channel quality, for PDUs of one size.
#[derive(Clone, Copy, Debug)]
pub struct Formats {
    best: u8,
    pdu_bits: u32,
    /// The least quality whose block holds a PDU.
    least: u8,
}

impl Formats {
    /// `None` if not even the largest block of the category holds a PDU of so many octets.
    pub fn new(category: Category, pdu_octets: u16) -> Option<Formats> {
        let mut formats = Formats { best: category.best, pdu_bits: u32::from(pdu_octets) * 8, least: 1 };
        formats.least = (1..=category.best).find(|cqi| formats.pdus(*cqi) > 0)?;
        Some(formats)
    }
    /// PDUs in a block of the format of this channel quality.
    pub fn pdus(&self, cqi: u8) -> u32 {
        let index = usize::from(cqi.clamp(1, self.best)) - 1;
        (u32::from(SIZES[index]) - HEADER) / self.pdu_bits
    }
    /// The format for a mobile that reports `cqi`. Below what holds a PDU the smallest that does is sent all the same.
    pub fn of_report(&self, cqi: u8) -> u8 {
        cqi.clamp(self.least, self.best)
    }
    /// The smallest format of at most `format` that holds `pdus` PDUs, or all that `format` holds.
    pub fn smallest(&self, format: u8, pdus: u32) -> u8 {
        let needed = pdus.min(self.pdus(format));
        (self.least..format).find(|cqi| self.pdus(*cqi) >= needed).unwrap_or(format)
    }
}

/// Signal-to-noise ratio of one mobile's HS-PDSCH over time.
#[derive(Clone, Debug)]
pub struct Radio {
    mean: f64,
    fades: Option<Fades>,
    report_delay: Duration,
}

impl Radio {
    /// Around `mean` dB; reports are `report_delay` old when they are used.
    pub fn new(mean: f64, fading: Option<(&Fading, Fate)>, report_delay: Duration) -> Radio {
        Radio { mean, fades: fading.map(|(fading, fate)| Fades::new(fading, fate)), report_delay }
    }
    /// The ratio, dB.
    pub fn ratio(&self, at: Instant) -> f64 {
        self.mean + self.fades.as_ref().map_or(0.0, |fades| fades.gain(at))
    }
    /// The channel quality indicator that the Node B has at `now`, 0 to 30.
    pub fn report(&self, now: Instant) -> u8 {
        cqi(self.ratio(Instant::from_nanos(now.as_nanos().saturating_sub(self.report_delay.as_nanos()))))
    }
}

/// The best quality whose block comes through nine times in ten, at a ratio in dB (Brouwer and others 2004).
fn cqi(ratio: f64) -> u8 {
    if ratio <= -16.0 { 0 } else { (ratio / 1.02 + 16.62).floor().clamp(0.0, 30.0) as u8 }
}

/// Probability that a block of the format of a channel quality is in error at a ratio in dB (Brouwer and others 2004).
pub fn block_error(format: u8, ratio: f64) -> f64 {
    let format = f64::from(format.max(1));
    let exponent = 2.0 * (ratio - 1.03 * format + 17.3) / (3f64.sqrt() - format.log10());
    // Far above the threshold the power is beyond what a float holds: no errors.
    (10f64.powf(exponent) + 1.0).powf(-1.0 / 0.7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_of_the_reported_quality_fails_in_about_a_tenth_of_all_cases_at_most() {
        for tenth in -150..140 {
            let ratio = f64::from(tenth) / 10.0;
            let format = cqi(ratio);
            if format > 0 {
                let error = block_error(format, ratio);
                assert!(error < 0.15, "{ratio} dB: {error}");
                assert!(block_error(format + 2, ratio) > error);
            }
        }
        assert_eq!((cqi(-16.0), cqi(0.0), cqi(99.0)), (0, 16, 30));
        assert_eq!((block_error(16, 5000.0), block_error(16, -5000.0)), (0.0, 1.0));
    }

    #[test]
    fn sizes_rise_with_quality_and_end_with_the_category() {
        assert!(SIZES.windows(2).all(|pair| pair[0] < pair[1]));
        let of = |category, octets| Formats::new(Category::new(category).unwrap(), octets).unwrap();
        let six = of(6, 42);
        assert_eq!((six.pdus(16), six.pdus(22), six.pdus(30)), (10, 21, 21));
        assert_eq!((six.of_report(0), six.of_report(16), six.of_report(30)), (5, 16, 22));
        assert_eq!((six.smallest(16, 1), six.smallest(16, 99), six.smallest(16, 4)), (5, 16, 11));
        assert_eq!((of(10, 42).pdus(30), of(12, 82).pdus(30)), (76, 5));
        assert!(Category::new(0).is_none() && Category::new(13).is_none());
        assert!(Formats::new(Category::new(12).unwrap(), 625).is_none());
    }

    #[test]
    fn reports_are_old() {
        let fading = Fading { doppler: 50.0, ..Fading::default() };
        let delay = Duration::from_millis(6);
        let radio = Radio::new(3.0, Some((&fading, Fate::new(1, "x"))), delay);
        let at = Instant::ZERO + Duration::from_millis(100);
        assert_eq!(radio.report(at + delay), cqi(radio.ratio(at)));
        assert_eq!(radio.report(Instant::ZERO), cqi(radio.ratio(Instant::ZERO)));
    }
}

//! The shared channel: every TTI one mobile is served.

use std::ops::Range;

use airloom_base::units::Rate;
use airloom_base::{ConfigError, Cx, Instant};

use super::super::mobile::{Common, Mobile};
use super::config::{Scheduling, UmtsHsdpaConfig};
use super::mac_hs::Rules;
use super::radio::Radio;
use super::{ALLOCATION, TTI};
use crate::cell::Scheduler;

/// The Node B's side of a cell.
pub struct SharedChannel {
    pub rules: Rules,
    scheduling: Scheduling,
    /// The next TTI, if anybody needs one.
    next: Instant,
    /// TTIs up to here are over.
    free_from: Instant,
}

impl SharedChannel {
    /// As configured.
    pub fn new(config: &UmtsHsdpaConfig, mobiles: usize) -> Result<SharedChannel, ConfigError> {
        let (category, formats) = config.check(mobiles)?;
        let rules = Rules {
            formats,
            interval: category.interval,
            max_transmissions: config.max_transmissions,
            node_b_buffer: config.node_b_buffer,
            iub_delay: config.iub_delay,
            averaging: config.fairness_time.as_secs_f64() / TTI.as_secs_f64(),
        };
        Ok(SharedChannel {
            rules,
            scheduling: config.scheduler,
            next: Instant::FAR_FUTURE,
            free_from: Instant::ZERO,
        })
    }

    /// RLC payload that the whole channel carries without errors to the first mobile, without its fading.
    pub fn rate(&self, config: &UmtsHsdpaConfig) -> Rate {
        let radio = Radio::new(config.snr.of(0), None, config.cqi_delay);
        let pdus = self.rules.formats.pdus(self.rules.formats.of_report(radio.report(Instant::ZERO)));
        let bits = u64::from(pdus) * u64::from(config.pdu_octets - 2) * 8;
        Rate::from_bits_per_second(bits * 500 / self.rules.interval).unwrap_or(Rate::kbit(1))
    }

    /// Somebody has something to send.
    fn wake(&mut self, now: Instant) {
        if self.next == Instant::FAR_FUTURE {
            let slots = now.max(self.free_from).as_nanos().div_ceil(TTI.as_nanos());
            self.next = Instant::from_nanos(slots.saturating_mul(TTI.as_nanos()));
        }
    }

    /// Who is served; of those that are alike the first.
    fn choose(&self, mobiles: &[Mobile], slot: u64, now: Instant) -> Option<usize> {
        let can_be = |mobile: &Mobile| {
            mobile.mac_hs.as_ref().filter(|mac| mobile.is_up && mac.can_be_served(slot)).is_some()
        };
        let mut best: Option<(usize, f64)> = None;
        for (index, mobile) in mobiles.iter().enumerate().filter(|(_, mobile)| can_be(mobile)) {
            let Some(mac) = &mobile.mac_hs else { continue };
            let merit = match self.scheduling {
                // Whoever was never served goes first.
                Scheduling::RoundRobin => mac.last_served.map_or(f64::INFINITY, |last| (slot - last) as f64),
                Scheduling::MaxCi => mac.rate(now),
                Scheduling::ProportionalFair => mac.rate(now) / mac.average(slot).max(1e-6),
            };
            if best.is_none_or(|(_, most)| merit > most) {
                best = Some((index, merit));
            }
        }
        best.map(|(index, _)| index)
    }

    /// One TTI begins.
    fn run(&mut self, cx: &mut Cx, common: &mut Common, mobiles: &mut [Mobile]) {
        let now = cx.now;
        let slot = now.as_nanos() / TTI.as_nanos();
        self.free_from = now + TTI;
        self.next = Instant::FAR_FUTURE;
        let users = mobiles.iter().filter(|mobile| mobile.wants_shared_channel(now)).count();
        if now.as_nanos().is_multiple_of(ALLOCATION.as_nanos()) {
            for mobile in mobiles.iter_mut().filter(|mobile| mobile.wants_shared_channel(now)) {
                if let Some(mac) = &mut mobile.mac_hs {
                    mac.allocate(now, users as u32);
                }
            }
        }
        if let Some(index) = self.choose(mobiles, slot, now) {
            mobiles[index].serve_shared_channel(cx, common, slot);
        }
    }
}

/// There is none where each mobile has a channel of its own.
impl Scheduler<Mobile> for Option<Box<SharedChannel>> {
    #[inline]
    fn next_turn(&self) -> Instant {
        self.as_ref().map_or(Instant::FAR_FUTURE, |channel| channel.next)
    }

    #[cold]
    fn turn(&mut self, cx: &mut Cx, common: &mut Common, mobiles: &mut [Mobile]) {
        if let Some(channel) = self {
            channel.run(cx, common, mobiles);
        }
    }

    fn look(&mut self, _: &Common, mobiles: &[Mobile], which: Range<usize>, now: Instant) {
        if let Some(channel) = self
            && mobiles[which].iter().any(|mobile| mobile.wants_shared_channel(now))
        {
            channel.wake(now);
        }
    }
}

//! One direction's error process at work.

use std::sync::Arc;

use airloom_base::{Direction, Instant, Packet, Station, Unsupported, random::Fate};

use super::config::{Model, Of, Phase, ProcessConfig};
use super::{GilbertElliott, OnOff};

#[derive(Clone, Debug)]
enum Process {
    Bernoulli(f64),
    GilbertElliott(GilbertElliott),
    OnOff(OnOff),
    /// Sorted numbers of lost packets.
    List(Arc<[u64]>),
}

impl Process {
    fn new(config: &ProcessConfig, fate: Fate, direction: Direction, station: Station) -> Self {
        match &config.model {
            Model::Bernoulli { loss } => Process::Bernoulli(*loss),
            Model::GilbertElliott { p, q, kg, kb } => {
                Process::GilbertElliott(GilbertElliott::new((*p, *q), (*kg, *kb), fate, direction, station))
            }
            Model::OnOff { on, off, first, loss } => {
                Process::OnOff(OnOff::new(*on, *off, *first == Phase::On, *loss))
            }
            Model::List { list } => {
                let mut sorted = list.clone();
                sorted.sort_unstable();
                Process::List(sorted.into())
            }
        }
    }

    fn probability(&mut self, step: u64, at: Instant) -> f64 {
        match self {
            Process::Bernoulli(p) => *p,
            Process::GilbertElliott(ge) => ge.probability(step),
            Process::OnOff(phases) => phases.probability(at),
            Process::List(list) => f64::from(u8::from(list.binary_search(&step).is_ok())),
        }
    }

    fn set_loss(&mut self, loss: f64) -> Result<(), Unsupported> {
        match self {
            Process::Bernoulli(p) => *p = loss,
            Process::OnOff(phases) => phases.set_loss(loss),
            Process::GilbertElliott(ge) => {
                if !ge.set_loss(loss) {
                    return Err(Unsupported(
                        "the loss of a gilbert-elliott process can change only with kg = 0 and kb = 1, and within what its mean burst allows",
                    ));
                }
            }
            Process::List(_) => {
                return Err(Unsupported("a list of lost packets has no loss probability to change"));
            }
        }
        Ok(())
    }
}

/// Losses of one direction of a wire: a function of the packet's number.
#[derive(Clone, Debug)]
pub struct PacketLoss {
    process: Process,
    of: Of,
    fate: Fate,
    next: u64,
}

impl PacketLoss {
    /// The process of `direction` as configured; `fate` is the link's own, used unless a raw seed is given.
    pub fn new(config: &ProcessConfig, fate: Fate, direction: Direction) -> Self {
        PacketLoss {
            process: Process::new(config, fate, direction, Station(0)),
            of: config.of,
            fate: config.seed.map_or(fate.lane(direction, Station(0), 0), Fate::from_raw_seed),
            next: 0,
        }
    }

    /// Is this packet, the next one in this direction, lost?
    #[inline(always)]
    pub fn loses(&mut self, now: Instant, packet: &Packet) -> bool {
        if self.of == Of::Payload && packet.body().is_empty() {
            return false;
        }
        let n = self.next;
        self.next += 1;
        let p = match self.process {
            Process::Bernoulli(p) => p,
            _ => self.process.probability(n, now),
        };
        p > 0.0 && self.fate.nth(n) < p
    }

    /// A new loss probability, from the timeline.
    pub fn set_loss(&mut self, loss: f64) -> Result<(), Unsupported> {
        self.process.set_loss(loss)
    }

    /// Is nothing ever lost?
    pub fn is_never(&self) -> bool {
        match &self.process {
            Process::Bernoulli(p) => *p <= 0.0,
            Process::List(list) => list.is_empty(),
            _ => false,
        }
    }
}

/// Losses of one direction and station of a radio link: a function of position on the time grid.
#[derive(Clone, Debug)]
pub struct BlockLoss {
    process: Process,
    fate: Fate,
    direction: Direction,
    station: Station,
}

impl BlockLoss {
    /// The process of one direction and station as configured.
    pub fn new(config: &ProcessConfig, fate: Fate, direction: Direction, station: Station) -> Self {
        BlockLoss { process: Process::new(config, fate, direction, station), fate, direction, station }
    }

    /// Probability of a loss in grid position `slot`, which begins at `at`. Slots do not decrease from call to
    /// call.
    #[inline]
    pub fn probability(&mut self, slot: u64, at: Instant) -> f64 {
        self.process.probability(slot, at)
    }

    /// Given that probability: is the block at `place` of `slot` lost?
    #[inline]
    pub fn loses(&self, probability: f64, slot: u64, place: u32) -> bool {
        probability > 0.0 && self.fate.at(slot, self.direction, self.station, place) < probability
    }

    /// A new loss probability, from the timeline.
    pub fn set_loss(&mut self, loss: f64) -> Result<(), Unsupported> {
        self.process.set_loss(loss)
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::{Body, Duration};

    use super::super::LossConfig;
    use super::*;

    fn wire(json: serde_json::Value) -> PacketLoss {
        let config: LossConfig = airloom_base::config::read(&json).unwrap();
        PacketLoss::new(config.of_direction(Direction::Uplink), Fate::new(1, "wire"), Direction::Uplink)
    }

    fn packet(body: u32) -> Packet {
        Packet::build(|_| 40, Body::filler(1, body))
    }

    fn lost(loss: &mut PacketLoss, n: u64) -> Vec<u64> {
        let p = packet(1448);
        (0..n).filter(|_| loss.loses(Instant::ZERO, &p)).collect()
    }

    #[test]
    fn a_raw_seed_loses_the_packets_that_a_record_of_linux_tcp_names() {
        // Seed, share and indices of one published transfer (694 data packets).
        let mut loss = wire(serde_json::json!({ "loss": 0.01, "seed": 2_833_981_538u64, "of": "payload" }));
        assert_eq!(lost(&mut loss, 694), [140, 176, 618]);
    }

    #[test]
    fn packets_without_payload_are_neither_counted_nor_lost() {
        let mut loss = wire(serde_json::json!({ "list": [1], "of": "payload" }));
        let (ack, data) = (packet(0), packet(1));
        let fate: Vec<bool> = [&ack, &data, &ack, &data, &ack].map(|p| loss.loses(Instant::ZERO, p)).into();
        assert_eq!(fate, [false, false, false, true, false]);
    }

    #[test]
    fn a_list_loses_exactly_what_it_names() {
        assert_eq!(lost(&mut wire(serde_json::json!({ "list": [7, 0, 3] })), 20), [0, 3, 7]);
    }

    #[test]
    fn the_share_of_lost_packets_is_the_probability() {
        let n = lost(&mut wire(serde_json::json!(0.05)), 100_000).len() as f64;
        assert!((n / 100_000.0 - 0.05).abs() < 0.003, "{n}");
    }

    #[test]
    fn the_fate_of_a_block_does_not_depend_on_what_was_sent_before() {
        let config: LossConfig = airloom_base::config::read(&serde_json::json!(0.3)).unwrap();
        let make = || {
            let process = config.of_direction(Direction::Downlink);
            BlockLoss::new(process, Fate::new(9, "radio"), Direction::Downlink, Station(2))
        };
        let (mut busy, mut idle) = (make(), make());
        for slot in 0..1000u64 {
            let at = Instant::ZERO + Duration::from_millis(10) * slot;
            let p = busy.probability(slot, at);
            let fate = busy.loses(p, slot, 5);
            if slot.is_multiple_of(10) {
                let p = idle.probability(slot, at);
                assert_eq!(idle.loses(p, slot, 5), fate);
            }
        }
    }

    #[test]
    fn a_change_of_loss_is_refused_where_it_means_nothing() {
        assert!(wire(serde_json::json!({ "list": [1] })).set_loss(0.1).is_err());
        let mut ge = wire(serde_json::json!({ "model": "gilbert-elliott", "loss": 0.1, "burst": 5 }));
        assert!(ge.set_loss(0.2).is_ok());
        assert!(ge.set_loss(0.99).is_err());
    }
}

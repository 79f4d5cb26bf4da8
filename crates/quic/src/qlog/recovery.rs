//! What is under way, and what acknowledgements say of the path: kept from the packets themselves, since the library tells of both
//! only in sums.

use std::collections::BTreeMap;

use airloom_base::{Duration, Instant};
use serde_json::{Map, Value};

use super::frames::{Ack, Frames};
use crate::library::{self, AT_ONCE, PathView};

/// Packets have numbers of their own in each (RFC 9000, 12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Space {
    Initial,
    Handshake,
    Data,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) at: Instant,
    /// What kind of packet it is.
    pub(super) kind: &'static str,
    /// Octets that count as under way (RFC 9002, 2): of packets of nothing but acknowledgements none.
    pub(super) octets: u64,
    pub(super) is_eliciting: bool,
    /// It searches for a larger packet size, and nothing in it has to arrive.
    is_search: bool,
    /// By which addresses it went, counted.
    tuple: u32,
}

/// A packet that was taken for lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lost {
    pub(super) path: u32,
    pub(super) number: u64,
    pub(super) sent: Sent,
    /// So many that were sent later have arrived.
    pub(super) is_overtaken: bool,
}

#[derive(Default)]
struct Numbers {
    sent: BTreeMap<u64, Sent>,
    largest_acked: Option<u64>,
    /// When the last packet was sent that asks for an acknowledgement.
    last: Option<Instant>,
}

/// Round trips of a path (RFC 9002, 5).
#[derive(Clone, Copy, Debug)]
struct RoundTrip {
    latest: Duration,
    smoothed: Duration,
    variance: Duration,
    least: Duration,
}

impl RoundTrip {
    fn first(latest: Duration) -> RoundTrip {
        RoundTrip { latest, smoothed: latest, variance: latest / 2, least: latest }
    }

    //= RFC 9002 (5.3): the delay is taken off unless the least round trip forbids it; an eighth of the sample, a quarter of its
    //= distance.
    fn next(self, latest: Duration, delay: Duration) -> RoundTrip {
        let least = self.least.min(latest);
        let sample = if least + delay <= latest { latest - delay } else { latest };
        let distance = self.smoothed.max(sample) - self.smoothed.min(sample);
        RoundTrip {
            latest,
            least,
            variance: (self.variance * 3 + distance) / 4,
            smoothed: (self.smoothed * 7 + sample) / 8,
        }
    }
}

#[derive(Default)]
struct Path {
    rtt: Option<RoundTrip>,
    /// Octets and packets under way, and by which addresses.
    octets: u64,
    packets: u64,
    tuple: u32,
    /// Probe timeouts since the last packet that was acknowledged.
    probes: u32,
    /// When the timer for probes was last set.
    armed: Instant,
    /// What was told of it last.
    told: Map<String, Value>,
}

impl Path {
    fn leave(&mut self, sent: &Sent) {
        if sent.tuple == self.tuple {
            self.octets = self.octets.saturating_sub(sent.octets);
            self.packets = self.packets.saturating_sub(u64::from(sent.is_eliciting));
        }
    }
}

/// All that one end has under way.
pub(super) struct Recovery {
    numbers: BTreeMap<(Space, u32), Numbers>,
    paths: BTreeMap<u32, Path>,
    initial_rtt: Duration,
    packet_threshold: u64,
    /// How long the peer lets an acknowledgement wait at most.
    pub(super) max_ack_delay: Duration,
    /// How long nothing may come before the connection is over, if there is an end to that.
    idle: Option<Duration>,
    /// The peer may not know yet that this end is where it says.
    is_doubted: bool,
    /// The keys of the handshake are gone: it is confirmed.
    is_confirmed: bool,
}

/// Milliseconds, to a microsecond.
fn ms(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e3
}

impl Recovery {
    pub(super) fn new(initial_rtt: Duration, packet_threshold: u32, is_client: bool) -> Recovery {
        Recovery {
            numbers: BTreeMap::new(),
            paths: BTreeMap::new(),
            initial_rtt,
            packet_threshold: packet_threshold.into(),
            max_ack_delay: Duration::from_millis(25),
            idle: None,
            is_doubted: is_client,
            is_confirmed: false,
        }
    }

    /// An end says after which silence the connection is over, in milliseconds.
    pub(super) fn ends_idle(&mut self, after_ms: u64) {
        //= RFC 9000 (10.1): the lesser of both; 0 says nothing.
        let after = Some(Duration::from_millis(after_ms)).filter(|after| !after.is_zero());
        self.idle = self.idle.into_iter().chain(after).min();
    }

    /// When the next probe leaves by this path unless something is acknowledged or lost until then.
    fn probe_at(&self, path: u32) -> Option<Instant> {
        let of = self.paths.get(&path)?;
        //= RFC 9002 (6.2.1): smoothed_rtt + max(4 rttvar, 1 ms), and what the peer may wait, twice as long each time.
        let (smoothed, variance) =
            of.rtt.map_or((self.initial_rtt, self.initial_rtt / 2), |rtt| (rtt.smoothed, rtt.variance));
        let base = smoothed + (variance * 4).max(Duration::from_millis(1));
        let is_vain = of.packets == 0;
        let wait = |base| library::probe_wait(base, of.probes, is_vain, smoothed, self.idle);
        if is_vain {
            //= RFC 9002 (6.2.2.1): a client that is not believed goes on, so that the server may.
            return self.is_doubted.then(|| of.armed + wait(base));
        }
        let spaces = self.numbers.iter().filter(|((space, by), numbers)| {
            //= RFC 9002 (6.2.1): not for application data before the handshake is confirmed.
            *by == path
                && (*space != Space::Data || self.is_confirmed)
                && numbers.sent.values().any(|sent| sent.is_eliciting)
        });
        let at = spaces.filter_map(|((space, _), numbers)| {
            let delay = if *space == Space::Data { self.max_ack_delay } else { Duration::ZERO };
            Some(numbers.last? + wait(base + delay))
        });
        at.min()
    }

    /// A deadline has passed: it may have been that of probes.
    pub(super) fn due(&mut self, now: Instant) {
        for path in self.paths.keys().copied().collect::<Vec<_>>() {
            if self.probe_at(path).is_some_and(|at| at <= now) {
                self.paths.entry(path).or_default().probes += 1;
            }
        }
    }

    pub(super) fn sent(
        &mut self,
        (space, path): (Space, u32),
        number: u64,
        kind: &'static str,
        (at, octets, frames): (Instant, u64, &Frames),
    ) {
        let (is_eliciting, is_search) = (frames.is_eliciting, frames.is_search);
        let of = self.paths.entry(path).or_default();
        of.octets += octets;
        of.packets += u64::from(is_eliciting);
        let sent = Sent { at, kind, octets, is_eliciting, is_search, tuple: of.tuple };
        let numbers = self.numbers.entry((space, path)).or_default();
        numbers.sent.insert(number, sent);
        if is_eliciting {
            (of.armed, numbers.last) = (at, Some(at));
        }
    }

    pub(super) fn acknowledged(&mut self, now: Instant, space: Space, ack: &Ack) {
        let Some(numbers) = self.numbers.get_mut(&(space, ack.path)) else { return };
        let path = self.paths.entry(ack.path).or_default();
        let largest = ack.ranges.last().map_or(0, |range| range[1]);
        let is_new = numbers.largest_acked.is_none_or(|known| known < largest);
        let sent_at = numbers.sent.get(&largest).map(|sent| sent.at);
        let (mut is_any, mut is_eliciting) = (false, false);
        for [first, last] in &ack.ranges {
            let arrived: Vec<u64> = numbers.sent.range(first..=last).map(|(number, _)| *number).collect();
            for sent in arrived.iter().filter_map(|number| numbers.sent.remove(number)) {
                path.leave(&sent);
                is_any = true;
                is_eliciting |= sent.is_eliciting;
            }
        }
        if !is_any {
            return;
        }
        //= RFC 9002 (6.2.2.1): what may be acknowledged by somebody else says nothing.
        self.is_doubted &= space == Space::Initial;
        path.probes = if self.is_doubted { path.probes } else { 0 };
        path.armed = now;
        if is_new {
            numbers.largest_acked = Some(largest);
        }
        if let (true, true, Some(sent_at)) = (is_new, is_eliciting, sent_at) {
            //= RFC 9002 (5.3): delays count of 1-RTT packets alone, and no further than the peer said they would go.
            let delay = match space {
                Space::Data => Duration::from_micros(ack.delay_us).min(self.max_ack_delay),
                _ => Duration::ZERO,
            };
            let latest = now - sent_at;
            path.rtt = Some(path.rtt.map_or_else(|| RoundTrip::first(latest), |rtt| rtt.next(latest, delay)));
        }
    }

    /// The library has taken the packet with this number for lost, of whichever space it is: of those that have one with this number
    /// and size under way, the first in which a later one has arrived.
    pub(super) fn lost(&mut self, path: u32, number: u64, octets: u64) -> Option<Lost> {
        let is_there =
            |numbers: &Numbers| numbers.sent.get(&number).is_some_and(|sent| sent.octets == octets);
        let is_passed = |numbers: &Numbers| numbers.largest_acked.is_some_and(|largest| largest > number);
        let mut places = self.numbers.iter().filter(|(place, numbers)| place.1 == path && is_there(numbers));
        let first = places.next()?;
        let mut later = std::iter::once(first).chain(places);
        let (place, _) = later.find(|(_, numbers)| is_passed(numbers)).unwrap_or(first);
        self.take(*place, number)
    }

    /// The library has taken packets up to this moment for lost: those that later ones have overtaken, but for searches for a larger
    /// packet size.
    pub(super) fn lost_until(&mut self, until: Instant) -> Vec<Lost> {
        let passed: Vec<((Space, u32), u64)> = self
            .numbers
            .iter()
            .flat_map(|(place, numbers)| {
                let end = numbers.largest_acked.unwrap_or(0);
                let sent = numbers.sent.range(..end).filter(|(_, sent)| sent.at <= until && !sent.is_search);
                sent.map(|(number, _)| (*place, *number))
            })
            .collect();
        passed.into_iter().filter_map(|(place, number)| self.take(place, number)).collect()
    }

    fn take(&mut self, place: (Space, u32), number: u64) -> Option<Lost> {
        let numbers = self.numbers.get_mut(&place)?;
        let sent = numbers.sent.remove(&number)?;
        let is_overtaken =
            numbers.largest_acked.is_some_and(|largest| largest >= number + self.packet_threshold);
        self.paths.entry(place.1).or_default().leave(&sent);
        Some(Lost { path: place.1, number, sent, is_overtaken })
    }

    /// The keys of this space are gone, and with them what was under way (RFC 9002, 6.4).
    pub(super) fn discarded(&mut self, now: Instant, space: Space) {
        if space == Space::Handshake {
            (self.is_doubted, self.is_confirmed) = (false, true);
        }
        for (place, numbers) in self.numbers.iter_mut().filter(|(place, _)| place.0 == space) {
            let path = self.paths.entry(place.1).or_default();
            numbers.sent.values().for_each(|sent| path.leave(sent));
            (numbers.sent, numbers.last) = (BTreeMap::new(), None);
            // The timer is set anew. What it counted the libraries keep (RFC 9002, 6.2.2 would not).
            path.armed = now;
        }
    }

    /// The path goes by other addresses now: what is under way is no burden to it.
    pub(super) fn moved(&mut self, path: u32) {
        let path = self.paths.entry(path).or_default();
        (path.tuple, path.octets, path.packets) = (path.tuple + 1, 0, 0);
        if library::FORGETS_PROBES {
            path.probes = 0;
        }
    }

    /// What is another than it was when it was told last.
    pub(super) fn news(&mut self, view: &PathView) -> Map<String, Value> {
        self.forget(view.number);
        let path = self.paths.entry(view.number).or_default();
        let smoothed = Duration::from_nanos(u64::try_from(view.smoothed.as_nanos()).unwrap_or(u64::MAX));
        if smoothed == self.initial_rtt {
            // It was never measured, or is measured anew.
            path.rtt = path.rtt.filter(|rtt| rtt.smoothed == smoothed);
        }
        let mut now = Map::new();
        let mut tell = |name: &str, value: Value| {
            if path.told.get(name) != Some(&value) {
                path.told.insert(name.to_owned(), value.clone());
                now.insert(name.to_owned(), value);
            }
        };
        if let Some(rtt) = &mut path.rtt {
            rtt.smoothed = smoothed;
            for (name, time) in [
                ("min_rtt", rtt.least),
                ("smoothed_rtt", rtt.smoothed),
                ("latest_rtt", rtt.latest),
                ("rtt_variance", rtt.variance),
            ] {
                tell(name, ms(time).into());
            }
        }
        tell("pto_count", path.probes.into());
        tell("congestion_window", view.window.into());
        tell("bytes_in_flight", path.octets.into());
        tell("packets_in_flight", path.packets.into());
        if let Some(threshold) = view.ssthresh.filter(|threshold| *threshold != u64::MAX) {
            tell("ssthresh", threshold.into());
        }
        // Those that are not paced have a rate of ours.
        if let Some(rate) = view.pacing_rate.filter(|rate| *rate != AT_ONCE) {
            tell("pacing_rate", rate.saturating_mul(8).into());
        }
        now
    }

    /// What the library gives up without a word: searches for a larger packet size that came to nothing, and packets that it does
    /// not wait for.
    fn forget(&mut self, path: u32) {
        for space in [Space::Initial, Space::Handshake, Space::Data] {
            let Some(numbers) = self.numbers.get_mut(&(space, path)) else { continue };
            let end = numbers
                .largest_acked
                .map_or(0, |largest| (largest + 1).saturating_sub(self.packet_threshold));
            let left = numbers.sent.split_off(&end);
            let gone = std::mem::replace(&mut numbers.sent, left);
            let path = self.paths.entry(path).or_default();
            gone.values().for_each(|sent| path.leave(sent));
        }
    }
}

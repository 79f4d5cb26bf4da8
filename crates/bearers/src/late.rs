//! Packets that are handed over later than they arrive.

use std::collections::BTreeMap;

use airloom_base::{Direction, Instant, Packet, Station};

/// A packet, and whose it is.
pub(crate) type Delivery = (Direction, Station, Packet);

/// Packets that wait at their host, and whether they are copies: those of one moment leave in the order in which they came.
#[derive(Default)]
pub(crate) struct Late {
    packets: BTreeMap<(Instant, u64), (Delivery, bool)>,
    came: u64,
    /// Up to when they may leave.
    now: Instant,
    /// Was what left last a copy?
    pub(crate) was_copy: bool,
}

impl Late {
    /// One more, which leaves at this time.
    pub(crate) fn push(&mut self, at: Instant, delivery: Delivery, is_copy: bool) {
        self.packets.insert((at, self.came), (delivery, is_copy));
        self.came += 1;
    }

    /// It is so late now.
    pub(crate) fn reach(&mut self, now: Instant) {
        self.now = self.now.max(now);
    }

    /// When the next one leaves.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.packets.first_key_value().map(|((at, _), _)| *at)
    }

    /// One that has left by now.
    pub(crate) fn pop(&mut self) -> Option<Delivery> {
        self.next().filter(|at| *at <= self.now)?;
        let (_, (delivery, is_copy)) = self.packets.pop_first()?;
        self.was_copy = is_copy;
        Some(delivery)
    }

    /// Takes all of them out, in order.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (Delivery, bool)> + use<> {
        std::mem::take(&mut self.packets).into_values()
    }

    /// Originals that wait.
    pub(crate) fn originals(&self) -> impl Iterator<Item = (Direction, &Packet)> {
        let originals = self.packets.values().filter(|(_, is_copy)| !is_copy);
        originals.map(|((direction, _, packet), _)| (*direction, packet))
    }
}

//! Packets that are handed over later than they arrive.

use std::collections::BTreeMap;

use airloom_base::{Direction, Instant, Packet, Station};

/// A packet, and whose it is.
pub(crate) type Delivery = (Direction, Station, Packet);

/// Packets that wait at their host: those of one moment leave in the order in which they came.
pub(crate) struct Late<D = Delivery> {
    packets: BTreeMap<(Instant, u64), D>,
    came: u64,
}

impl<D> Default for Late<D> {
    fn default() -> Self {
        Late { packets: BTreeMap::new(), came: 0 }
    }
}

impl<D> Late<D> {
    /// One more, which leaves at this time.
    pub(crate) fn push(&mut self, at: Instant, delivery: D) {
        self.packets.insert((at, self.came), delivery);
        self.came += 1;
    }

    /// When the next one leaves.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.packets.first_key_value().map(|((at, _), _)| *at)
    }

    /// One that has left by now.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<D> {
        self.next().filter(|at| *at <= now)?;
        self.packets.pop_first().map(|(_, delivery)| delivery)
    }

    /// Takes all of them out, in order.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = D> + use<D> {
        std::mem::take(&mut self.packets).into_values()
    }

    /// Those that wait.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &D> {
        self.packets.values()
    }
}

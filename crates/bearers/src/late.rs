//! Packets that are handed over later than they arrive.

use std::collections::BTreeMap;

use airloom_base::{Direction, Instant, Packet, Station};

/// A packet, and whose it is.
pub(crate) type Delivery = (Direction, Station, Packet);

/// Packets that wait at their host: those of one moment leave in the order in which they came.
#[derive(Default)]
pub(crate) struct Late {
    packets: BTreeMap<(Instant, u64), Delivery>,
    came: u64,
}

impl Late {
    /// One more, which leaves at this time.
    pub(crate) fn push(&mut self, at: Instant, delivery: Delivery) {
        self.packets.insert((at, self.came), delivery);
        self.came += 1;
    }

    /// When the next one leaves.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.packets.first_key_value().map(|((at, _), _)| *at)
    }

    /// One that has left by now.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Delivery> {
        self.next().filter(|at| *at <= now)?;
        self.packets.pop_first().map(|(_, delivery)| delivery)
    }

    /// Takes all of them out, in order.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Delivery> + use<> {
        std::mem::take(&mut self.packets).into_values()
    }
}

//! What came from addresses and what was sent there, so that nobody is flooded in another one's name.
//!
//! An address is proven once a client there has acknowledged the beginning of a session. WTP acknowledges by numbers that
//! the client chose itself: one that guesses when the answer was sent can prove an address that is not its own. That is
//! WTP's weakness; what stays is that nobody is sent anything large before.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    received: Traffic,
    sent: Traffic,
    /// Sessions that prove the address.
    proofs: u32,
    /// Its place in the order of use.
    used: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Traffic {
    octets: u64,
    datagrams: u64,
}

impl Traffic {
    fn count(&mut self, octets: usize) {
        self.octets += octets as u64;
        self.datagrams += 1;
    }
}

/// Addresses that are remembered. One that is forgotten begins again, with nothing received and nothing sent.
const MOST: usize = 20_000;

/// The books.
#[derive(Debug)]
pub(super) struct Ledger {
    factor: Option<u64>,
    entries: BTreeMap<IpAddr, Entry>,
    order: BTreeSet<(u64, IpAddr)>,
    uses: u64,
}

impl Ledger {
    /// `factor`: so many times what came may be sent to an address that is not proven.
    pub(super) fn new(factor: Option<u16>) -> Ledger {
        Ledger { factor: factor.map(u64::from), entries: BTreeMap::new(), order: BTreeSet::new(), uses: 0 }
    }

    /// A datagram came.
    pub(super) fn received(&mut self, from: IpAddr, octets: usize) {
        if self.factor.is_none() {
            return;
        }
        self.uses += 1;
        let used = self.uses;
        let entry = self.entries.entry(from).or_default();
        self.order.remove(&(entry.used, from));
        entry.used = used;
        entry.received.count(octets);
        if entry.proofs == 0 {
            self.order.insert((used, from));
        }
        if self.order.len() > MOST
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.entries.remove(&oldest);
        }
    }

    /// May a datagram of so many octets be sent there?
    pub(super) fn allows(&self, to: IpAddr, octets: usize) -> bool {
        let Some(factor) = self.factor else { return true };
        self.entries.get(&to).is_some_and(|entry| {
            entry.proofs > 0
                || entry.sent.octets + octets as u64 <= factor * entry.received.octets
                    && entry.sent.datagrams < factor * entry.received.datagrams
        })
    }

    /// One was sent.
    pub(super) fn sent(&mut self, to: IpAddr, octets: usize) {
        if let Some(entry) = self.entries.get_mut(&to) {
            entry.sent.count(octets);
        }
    }

    /// A session proves the address.
    pub(super) fn prove(&mut self, address: IpAddr) {
        let entry = self.entries.entry(address).or_default();
        entry.proofs += 1;
        self.order.remove(&(entry.used, address));
    }

    /// A session that proved it is over: it begins again, with what a farewell takes.
    pub(super) fn withdraw(&mut self, address: IpAddr) {
        let Some(entry) = self.entries.get_mut(&address) else { return };
        entry.proofs = entry.proofs.saturating_sub(1);
        if entry.proofs == 0 {
            (entry.received, entry.sent) = (FAREWELL, Traffic::default());
            self.order.insert((entry.used, address));
        }
    }
}

/// What counts as received from an address when it is no longer proven: the client, which was there, is told that its session
/// and its requests are over.
const FAREWELL: Traffic = Traffic { octets: 32, datagrams: 3 };

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> IpAddr {
        IpAddr::V4(n.into())
    }

    #[test]
    fn three_times_what_came_goes_back_until_the_address_is_proven() {
        let (mut ledger, a) = (Ledger::new(Some(3)), address(1));
        assert!(!ledger.allows(a, 1), "nothing came");
        ledger.received(a, 10);
        assert!(ledger.allows(a, 30) && !ledger.allows(a, 31));
        ledger.sent(a, 29);
        assert!(ledger.allows(a, 1) && !ledger.allows(a, 2));
        ledger.prove(a);
        assert!(ledger.allows(a, 10_000));
        ledger.withdraw(a);
        assert!(ledger.allows(a, 10) && !ledger.allows(a, 1_000), "a farewell and no more");
    }

    #[test]
    fn small_datagrams_count_by_number() {
        let (mut ledger, a) = (Ledger::new(Some(3)), address(1));
        ledger.received(a, 1000);
        for _ in 0..3 {
            assert!(ledger.allows(a, 4));
            ledger.sent(a, 4);
        }
        assert!(!ledger.allows(a, 4));
    }

    #[test]
    fn only_so_many_addresses_are_remembered_and_proven_ones_stay() {
        let mut ledger = Ledger::new(Some(3));
        ledger.received(address(0), 10);
        ledger.prove(address(0));
        for n in 1..=(MOST as u32 + 10) {
            ledger.received(address(n), 10);
        }
        assert_eq!(ledger.entries.len(), MOST + 1);
        assert!(ledger.allows(address(0), 1_000_000) && !ledger.allows(address(1), 1));
    }
}

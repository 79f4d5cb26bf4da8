//! Who has how much of what there is only so much of, and whose goes when somebody else needs room.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use smart_default::SmartDefault;

/// Who counts as one: an address of IPv4, or a network of 64 bits of IPv6, in which a host has as many addresses as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Party(IpAddr);

impl Party {
    fn of(address: IpAddr) -> Party {
        Party(match address.to_canonical() {
            IpAddr::V6(six) => Ipv6Addr::from_bits(six.to_bits() >> 64 << 64).into(),
            four => four,
        })
    }
}

/// What is done for somebody who needs room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room<K> {
    /// There is some.
    Free,
    /// There is when this one is gone.
    Without(K),
    /// Nothing may go.
    None,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    party: Party,
    /// Its place in the order in which entries go; none: it stays.
    rank: Option<u8>,
    used: u64,
}

/// Entries by name, each of an address. Of those that may go the ones of the lowest rank go first, and of these the one that was
/// not used for longest.
#[derive(Debug, SmartDefault)]
pub struct Shares<K> {
    entries: BTreeMap<K, Entry>,
    counts: BTreeMap<Party, u32>,
    order: BTreeMap<(u8, u64), K>,
    of_party: BTreeMap<(Party, u8, u64), K>,
    uses: u64,
}

impl<K: Ord + Copy> Shares<K> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Is there room for another one of `address`, if each may have `most_of_one` and all together `most`?
    pub fn room(&self, address: IpAddr, most_of_one: u32, most: u32) -> Room<K> {
        let party = Party::of(address);
        let first = if self.counts.get(&party).is_some_and(|count| *count >= most_of_one) {
            self.of_party.range((party, 0, 0)..=(party, u8::MAX, u64::MAX)).next().map(|(_, key)| *key)
        } else if self.entries.len() >= most as usize {
            self.first()
        } else {
            return Room::Free;
        };
        first.map_or(Room::None, Room::Without)
    }

    /// Which one goes first, if any may.
    pub fn first(&self) -> Option<K> {
        self.order.first_key_value().map(|(_, key)| *key)
    }

    /// Which one goes first, of one address or of all, if any may besides `stays`.
    pub fn first_besides(&self, stays: K, of: Option<IpAddr>) -> Option<K> {
        let goes = |key: &&K| **key != stays;
        match of.map(Party::of) {
            None => self.order.values().find(goes).copied(),
            Some(party) => {
                let all = self.of_party.range((party, 0, 0)..=(party, u8::MAX, u64::MAX));
                all.map(|(_, key)| key).find(goes).copied()
            }
        }
    }

    /// Enters one.
    pub fn insert(&mut self, key: K, address: IpAddr, rank: Option<u8>) {
        self.remove(key);
        let party = Party::of(address);
        *self.counts.entry(party).or_default() += 1;
        self.uses += 1;
        self.enter(key, Entry { party, rank, used: self.uses });
    }

    /// Gives one another rank. The order of use stays.
    pub fn set_rank(&mut self, key: K, rank: Option<u8>) {
        if self.entries.get(&key).is_some_and(|entry| entry.rank != rank)
            && let Some(entry) = self.take(key)
        {
            self.enter(key, Entry { rank, ..entry });
        }
    }

    /// It was used now.
    pub fn touch(&mut self, key: K) {
        if let Some(entry) = self.take(key) {
            self.uses += 1;
            self.enter(key, Entry { used: self.uses, ..entry });
        }
    }

    /// Takes one out.
    pub fn remove(&mut self, key: K) {
        let Some(Entry { party, .. }) = self.take(key) else { return };
        if let Some(count) = self.counts.get_mut(&party) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&party);
            }
        }
    }

    fn enter(&mut self, key: K, entry: Entry) {
        self.entries.insert(key, entry);
        if let Entry { party, rank: Some(rank), used } = entry {
            self.order.insert((rank, used), key);
            self.of_party.insert((party, rank, used), key);
        }
    }

    fn take(&mut self, key: K) -> Option<Entry> {
        let entry = self.entries.remove(&key)?;
        if let Entry { party, rank: Some(rank), used } = entry {
            self.order.remove(&(rank, used));
            self.of_party.remove(&(party, rank, used));
        }
        Some(entry)
    }
}

/// How much each address has of something, without an order.
#[derive(Debug, Default)]
pub struct Amounts(BTreeMap<Party, usize>);

impl Amounts {
    /// What an address has.
    pub fn of(&self, address: IpAddr) -> usize {
        self.0.get(&Party::of(address)).copied().unwrap_or(0)
    }

    /// It has so much more.
    pub fn add(&mut self, address: IpAddr, more: usize) {
        if more > 0 {
            *self.0.entry(Party::of(address)).or_default() += more;
        }
    }

    /// It has so much less.
    pub fn subtract(&mut self, address: IpAddr, less: usize) {
        let party = Party::of(address);
        if let Some(amount) = self.0.get_mut(&party) {
            *amount = amount.saturating_sub(less);
            if *amount == 0 {
                self.0.remove(&party);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u8) -> IpAddr {
        [10, 0, 0, n].into()
    }

    #[test]
    fn whoever_has_its_share_gives_its_own_and_a_full_house_gives_the_oldest() {
        let mut shares = Shares::default();
        for n in 0..4 {
            assert_eq!(shares.room(at(1), 4, 6), Room::Free);
            shares.insert(n, at(1), Some(1));
        }
        assert_eq!(shares.room(at(1), 4, 6), Room::Without(0));
        assert_eq!(shares.room(at(2), 4, 6), Room::Free);
        shares.insert(10, at(2), Some(0));
        shares.insert(11, at(3), Some(1));
        assert_eq!(shares.room(at(4), 4, 6), Room::Without(10), "the lowest rank goes first");
        shares.set_rank(10, None);
        shares.touch(0);
        assert_eq!(shares.room(at(4), 4, 6), Room::Without(1), "then what was not used for longest");
        assert_eq!([None, Some(at(1))].map(|of| shares.first_besides(1, of)), [Some(2); 2]);
        assert_eq!([2, 3].map(|n| shares.first_besides(1, Some(at(n)))), [None, Some(11)]);
        (0..4).for_each(|n| shares.set_rank(n, None));
        assert_eq!((shares.room(at(1), 4, 6), shares.room(at(4), 4, 6)), (Room::None, Room::Without(11)));
        (0..12).for_each(|n| shares.remove(n));
        assert!(
            shares.is_empty()
                && shares.counts.is_empty()
                && shares.order.is_empty()
                && shares.of_party.is_empty()
        );
    }

    #[test]
    fn a_network_of_ipv6_is_one_and_a_mapped_address_is_its_own() {
        let mut shares = Shares::default();
        let six = |text: &str| text.parse::<IpAddr>().unwrap();
        shares.insert(1, six("2001:db8::1"), Some(0));
        assert_eq!(shares.room(six("2001:db8::ffff:2"), 1, 9), Room::Without(1));
        assert_eq!(shares.room(six("2001:db8:0:1::1"), 1, 9), Room::Free);
        shares.insert(2, six("::ffff:10.0.0.1"), Some(0));
        assert_eq!(shares.room(at(1), 1, 9), Room::Without(2));
    }
}

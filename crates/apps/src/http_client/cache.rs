//! What a browser keeps of what it has fetched.

use std::collections::BTreeMap;

/// Objects by their address, of which those used longest ago make room for others.
pub(super) struct Cache {
    /// Octets that it holds at most, and of one object.
    room: u64,
    most: u64,
    used: u64,
    /// Octets of each, and when it was used last.
    kept: BTreeMap<String, (u64, u64)>,
    /// The addresses by their last use.
    order: BTreeMap<u64, String>,
    /// Uses so far.
    uses: u64,
}

impl Cache {
    /// A cache of `room` octets for objects of at most `most`.
    pub(super) fn new(room: u64, most: Option<u64>) -> Cache {
        let most = most.unwrap_or(room);
        Cache { room, most, used: 0, kept: BTreeMap::new(), order: BTreeMap::new(), uses: 0 }
    }

    /// Does it keep anything?
    pub(super) fn is_used(&self) -> bool {
        self.room > 0
    }

    /// Octets of the object at this address, if it is there.
    pub(super) fn find(&mut self, address: &str) -> Option<u64> {
        let (octets, used) = self.kept.get_mut(address)?;
        self.uses += 1;
        if let Some(address) = self.order.remove(used) {
            self.order.insert(self.uses, address);
        }
        *used = self.uses;
        Some(*octets)
    }

    /// Keeps an object, if there is room for one of its size.
    pub(super) fn keep(&mut self, address: String, octets: u64) {
        if !self.is_used() || octets > self.most.min(self.room) || self.find(&address).is_some() {
            return;
        }
        while self.used + octets > self.room {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            self.used -= self.kept.remove(&oldest).map_or(0, |(octets, _)| octets);
        }
        self.uses += 1;
        self.used += octets;
        self.order.insert(self.uses, address.clone());
        self.kept.insert(address, (octets, self.uses));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let mut cache = Cache::new(100, None);
        for name in ["a", "b", "c"] {
            cache.keep(name.into(), 30);
        }
        assert_eq!(cache.find("a"), Some(30));
        cache.keep("d".into(), 40);
        let there = ["a", "b", "c", "d"].map(|name| cache.find(name).is_some());
        assert_eq!(there, [true, false, true, true]);
        assert_eq!(cache.used, 100);
    }

    #[test]
    fn large_objects_are_not_kept_and_none_at_all_without_room() {
        let mut cache = Cache::new(100, Some(10));
        cache.keep("large".into(), 11);
        cache.keep("small".into(), 10);
        assert_eq!((cache.find("large"), cache.find("small")), (None, Some(10)));
        let mut none = Cache::new(0, None);
        none.keep("empty".into(), 0);
        assert_eq!(none.find("empty"), None);
    }

    #[test]
    fn an_object_is_kept_once() {
        let mut cache = Cache::new(100, None);
        for _ in 0..10 {
            cache.keep("a".into(), 60);
        }
        assert_eq!((cache.used, cache.kept.len(), cache.order.len()), (60, 1, 1));
    }
}

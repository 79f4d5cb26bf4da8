//! Transaction identifiers: how an initiator counts, and how a responder tells new transactions from old ones
//! (WAP-224 section 7.8).

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Half of the space of 15 bits: what lies so far ahead at most is new.
const WINDOW: u16 = 1 << 14;
const MASK: u16 = 0x7FFF;

/// The next identifier of an initiator; one for each pair of peers would do, one for all is simpler and as good.
#[derive(Clone, Copy, Debug)]
pub struct Counter(u16);

impl Counter {
    /// Begins with `first`, of which 15 bits count.
    pub fn new(first: u16) -> Counter {
        Counter(first & MASK)
    }
    /// The next one.
    pub fn take(&mut self) -> u16 {
        let tid = self.0;
        self.0 = (self.0 + 1) & MASK;
        tid
    }
}

/// What a responder thinks of an Invoke by its identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is new.
    Accept,
    /// The initiator has to say that it is.
    Verify,
}

/// The last identifier of each initiator. A peer that has not been heard for longest is forgotten first.
#[derive(Debug)]
pub struct Cache {
    /// With the number under which the peer stands in the order.
    last: BTreeMap<SocketAddr, (u16, u64)>,
    /// Those that were heard last stand last.
    order: BTreeMap<u64, SocketAddr>,
    heard: u64,
    limit: usize,
    verify_unknown: bool,
}

impl Cache {
    /// Remembers `limit` peers; `verify_unknown` says what to do with those it does not know.
    pub fn new(limit: u32, verify_unknown: bool) -> Cache {
        let (last, order, limit) = (BTreeMap::new(), BTreeMap::new(), limit.max(1) as usize);
        Cache { last, order, heard: 0, limit, verify_unknown }
    }

    /// Tests the identifier of an Invoke of class 1 or 2, and notes it if it is new.
    pub fn test(&mut self, peer: SocketAddr, tid: u16, tid_new: bool, no_cached_tid: bool) -> Verdict {
        if tid_new {
            self.set(peer, 0);
            return Verdict::Verify;
        }
        let new = match self.last.get(&peer) {
            Some((last, _)) => is_ahead(*last, tid),
            None => !self.verify_unknown && !no_cached_tid,
        };
        if new {
            self.set(peer, tid);
            return Verdict::Accept;
        }
        Verdict::Verify
    }

    /// This identifier was verified, of an Invoke that counts anew if `tid_new`. An Invoke that others overtook does not make them
    /// new again: their copies would be carried out.
    pub fn verified(&mut self, peer: SocketAddr, tid: u16, tid_new: bool) {
        let later =
            self.last.get(&peer).map(|(last, _)| *last).filter(|last| !tid_new && !is_ahead(*last, tid));
        self.set(peer, later.unwrap_or(tid));
    }

    /// This identifier is to be taken as the last one.
    pub fn set(&mut self, peer: SocketAddr, tid: u16) {
        self.heard += 1;
        if let Some((_, before)) = self.last.insert(peer, (tid & MASK, self.heard)) {
            self.order.remove(&before);
        } else if self.order.len() == self.limit
            && let Some((_, silent)) = self.order.pop_first()
        {
            self.last.remove(&silent);
        }
        self.order.insert(self.heard, peer);
    }
}

/// Does an identifier come after the last one?
fn is_ahead(last: u16, tid: u16) -> bool {
    (1..=WINDOW).contains(&(tid.wrapping_sub(last) & MASK))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(n: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, n], 49_200))
    }

    #[test]
    fn what_lies_ahead_is_new_and_what_lies_behind_is_verified() {
        let mut cache = Cache::new(10, false);
        for (tid, verdict) in [
            (5, Verdict::Accept),
            (6, Verdict::Accept),
            (6, Verdict::Verify),
            (5, Verdict::Verify),
            (6 + WINDOW, Verdict::Accept),
            (6 + WINDOW + 1 + WINDOW, Verdict::Verify),
            // Round the end of the number space.
            (MASK, Verdict::Accept),
            (3, Verdict::Accept),
        ] {
            assert_eq!(cache.test(peer(1), tid, false, false), verdict, "{tid}");
        }
    }

    #[test]
    fn an_initiator_that_begins_anew_is_verified_and_counts_from_zero() {
        let mut cache = Cache::new(10, false);
        cache.test(peer(1), 900, false, false);
        assert_eq!(cache.test(peer(1), 1, true, false), Verdict::Verify);
        cache.verified(peer(1), 1, true);
        assert_eq!(cache.test(peer(1), 2, false, false), Verdict::Accept);
        // Also where it is not ahead of zero.
        assert_eq!(cache.test(peer(1), 0x7000, true, false), Verdict::Verify);
        cache.verified(peer(1), 0x7000, true);
        assert_eq!(cache.test(peer(1), 0x7000, false, false), Verdict::Verify);
        assert_eq!(cache.test(peer(1), 0x7001, false, false), Verdict::Accept);
    }

    #[test]
    fn what_was_overtaken_and_verified_does_not_make_new_what_came_before_it() {
        let mut cache = Cache::new(10, false);
        cache.test(peer(1), 6, false, false);
        assert_eq!(cache.test(peer(1), 5, false, false), Verdict::Verify);
        cache.verified(peer(1), 5, false);
        assert_eq!(cache.test(peer(1), 6, false, false), Verdict::Verify);
        // Of an unknown peer, or where it lies ahead of what came meanwhile, it is the last one.
        cache.verified(peer(2), 5, false);
        assert_eq!(cache.test(peer(2), 5, false, false), Verdict::Verify);
        cache.verified(peer(2), 9, false);
        assert_eq!(cache.test(peer(2), 8, false, false), Verdict::Verify);
    }

    #[test]
    fn unknown_peers_are_verified_if_so_wished_or_if_they_keep_no_state() {
        assert_eq!(Cache::new(10, true).test(peer(1), 1, false, false), Verdict::Verify);
        assert_eq!(Cache::new(10, false).test(peer(1), 1, false, true), Verdict::Verify);
    }

    #[test]
    fn the_peer_that_was_silent_for_longest_is_forgotten_when_there_are_too_many() {
        let mut cache = Cache::new(2, false);
        for n in 1..=3 {
            cache.set(peer(n), 7);
        }
        assert_eq!([1, 2, 3].map(|n| cache.last.contains_key(&peer(n))), [false, true, true]);
        cache.test(peer(2), 8, false, false);
        cache.set(peer(4), 7);
        assert_eq!([2, 3, 4].map(|n| cache.last.contains_key(&peer(n))), [true, false, true]);
        // So is one whose late Invoke was verified.
        cache.verified(peer(2), 3, false);
        cache.set(peer(5), 7);
        assert_eq!([2, 4, 5].map(|n| cache.last.contains_key(&peer(n))), [true, false, true]);
    }

    #[test]
    fn counting_goes_round_in_fifteen_bits() {
        let mut counter = Counter::new(0xFFFF);
        assert_eq!([counter.take(), counter.take()], [0x7FFF, 0]);
    }
}

//! Answers that were kept, by address and variant; the ones used longest ago go first when there is no room.

use std::collections::BTreeMap;
use std::sync::Arc;

use airloom_base::{Body, Instant};
use airloom_content::http::message::Fields;
use bytes::{Bytes, BytesMut};

use super::directives::Directives;
use super::policy;

/// Variants of one address.
const VARIANTS: usize = 8;
/// What an entry costs besides its octets, and each of its fields and of the names that it depends on.
const ENTRY: u64 = 500;
const FIELD: u64 = 64;
const NAME: u64 = 100;

/// One answer.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) status: u16,
    pub(super) reason: Bytes,
    /// Without those about one hop and about lengths, as parts of `lines`.
    pub(super) fields: Fields,
    /// The same as lines of a head.
    pub(super) lines: Bytes,
    pub(super) body: Vec<Body>,
    pub(super) length: u64,
    /// What of the request it depends on.
    pub(super) varying: Vec<(String, Option<Bytes>)>,
    /// When it came, or was last found unchanged, and how old it was then, in seconds.
    pub(super) received: Instant,
    pub(super) initial_age: u64,
    /// Seconds for which it is fresh.
    pub(super) lifetime: u64,
    pub(super) said: Directives,
}

impl Stored {
    /// Seconds since it was made.
    pub(super) fn age(&self, now: Instant) -> u64 {
        self.initial_age.saturating_add(now.since(self.received).as_nanos() / 1_000_000_000)
    }

    /// May it be used for a request that says this without asking its server?
    pub(super) fn suffices(&self, now: Instant, request: &Directives) -> bool {
        //= RFC 9111 (5.2.1.4, 5.2.2.4): no-cache of either side asks for a validation.
        if request.no_cache || self.said.no_cache {
            return false;
        }
        let age = self.age(now);
        if request.max_age.is_some_and(|most| age > most) {
            return false;
        }
        let needed = age.saturating_add(request.min_fresh.unwrap_or(0));
        if needed < self.lifetime {
            return true;
        }
        //= RFC 9111 (4.2.4): nothing stale where its server forbids it.
        let bears = request.max_stale.filter(|_| !self.forbids_stale());
        bears.is_some_and(|most| needed - self.lifetime <= most)
    }

    /// Does its server forbid that it is used stale, whatever happens?
    pub(super) fn forbids_stale(&self) -> bool {
        let Directives { must_revalidate, proxy_revalidate, no_cache, s_maxage, .. } = self.said;
        must_revalidate || proxy_revalidate || no_cache || s_maxage.is_some()
    }

    fn octets(&self) -> u64 {
        let varying: usize =
            self.varying.iter().map(|(n, v)| n.len() + v.as_ref().map_or(0, Bytes::len)).sum();
        let small = FIELD * self.fields.len() as u64 + NAME * self.varying.len() as u64;
        self.length + (self.reason.len() + self.lines.len() + varying) as u64 + small + ENTRY
    }
}

struct Entry {
    variants: Vec<Arc<Stored>>,
    used: u64,
    octets: u64,
}

impl Entry {
    /// Forgets some variants. Their octets.
    fn forget(&mut self, which: impl Fn(&Stored) -> bool) -> u64 {
        let before = self.octets;
        self.variants.retain(|v| {
            let stays = !which(v);
            self.octets -= if stays { 0 } else { v.octets() };
            stays
        });
        before - self.octets
    }
}

/// See the module.
#[derive(Default, getset::CopyGetters)]
pub(super) struct Store {
    entries: BTreeMap<Bytes, Entry>,
    /// The order in which entries were used.
    uses: BTreeMap<u64, Bytes>,
    next: u64,
    /// Octets that are kept.
    #[getset(get_copy = "pub(super)")]
    octets: u64,
    /// Those of answers that are still coming.
    #[getset(get_copy = "pub(super)")]
    pending: u64,
    most: u64,
}

impl Store {
    /// Room for so many octets.
    pub(super) fn new(most: u64) -> Store {
        Store { most, ..Store::default() }
    }

    /// How many addresses have answers here.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The answer for a request, fresh or not.
    pub(super) fn find(&mut self, key: &Bytes, request: &Fields) -> Option<Arc<Stored>> {
        let entry = self.entries.get_mut(key)?;
        //= RFC 9111 (4): of several answers that suit a request the most recent one; the newest is last.
        let found = entry.variants.iter().rev().find(|v| policy::selects(&v.varying, request))?;
        let found = Arc::clone(found);
        self.next += 1;
        if let Some(key) = self.uses.remove(&entry.used) {
            self.uses.insert(self.next, key);
        }
        entry.used = self.next;
        Some(found)
    }

    /// Keeps an answer in place of the one for the same requests.
    pub(super) fn insert(&mut self, key: &Bytes, stored: Arc<Stored>) {
        if stored.octets() + key.len() as u64 > self.most {
            return self.remove(key);
        }
        self.next += 1;
        let next = self.next;
        let entry = self.entries.entry(key.clone()).or_insert_with(|| Entry {
            variants: Vec::new(),
            used: next,
            octets: key.len() as u64,
        });
        if entry.variants.is_empty() {
            self.octets += entry.octets;
        }
        self.uses.remove(&entry.used);
        self.uses.insert(next, key.clone());
        entry.used = next;
        self.octets -= entry.forget(|v| v.varying == stored.varying);
        if entry.variants.len() >= VARIANTS {
            let gone = entry.variants.remove(0).octets();
            entry.octets -= gone;
            self.octets -= gone;
        }
        let came = stored.octets();
        entry.variants.push(stored);
        entry.octets += came;
        self.octets += came;
        self.make_room();
    }

    /// Takes room for more of an answer that is still coming, if the others that are leave it so much.
    pub(super) fn reserve(&mut self, octets: u64) -> bool {
        let fits = self.pending.saturating_add(octets) <= self.most;
        if fits {
            self.pending += octets;
            self.make_room();
        }
        fits
    }

    /// An answer that was coming is complete, or not kept after all.
    pub(super) fn release(&mut self, keeping: Option<&Keeping>) {
        self.pending -= keeping.map_or(0, Keeping::octets);
    }

    fn make_room(&mut self) {
        while self.octets + self.pending > self.most
            && let Some((_, oldest)) = self.uses.first_key_value()
        {
            let oldest = oldest.clone();
            self.remove(&oldest);
        }
    }

    /// Forgets what would answer this request.
    pub(super) fn forget(&mut self, key: &Bytes, request: &Fields) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        self.octets -= entry.forget(|v| policy::selects(&v.varying, request));
        if entry.variants.is_empty() {
            self.remove(key);
        }
    }

    /// Forgets all answers of an address.
    pub(super) fn remove(&mut self, key: &Bytes) {
        if let Some(entry) = self.entries.remove(key) {
            self.uses.remove(&entry.used);
            self.octets -= entry.octets;
        }
    }
}

/// An answer that is being kept.
pub(super) struct Keeping {
    /// All but its body.
    pub(super) stored: Stored,
    pub(super) body: Collected,
}

impl Keeping {
    /// What it takes of the store's room by now.
    pub(super) fn octets(&self) -> u64 {
        self.stored.octets() + self.body.length
    }
}

/// A body that is being collected.
#[derive(Default)]
pub(super) struct Collected {
    pieces: Vec<Body>,
    pub(super) length: u64,
}

impl Collected {
    /// Adds a piece. Octets are copied at the end, once.
    pub(super) fn push(&mut self, piece: Body) {
        self.length += piece.len() as u64;
        match self.pieces.last_mut() {
            None => self.pieces.push(piece),
            Some(last) => {
                if let Err(piece) = last.try_join(piece) {
                    self.pieces.push(piece);
                }
            }
        }
    }

    /// The whole: octets in one piece that holds on to nothing else, filler as it is.
    pub(super) fn finish(self) -> Vec<Body> {
        if !self.pieces.iter().all(|piece| matches!(piece, Body::Real(_))) {
            return self.pieces;
        }
        let mut whole = BytesMut::with_capacity(usize::try_from(self.length).unwrap_or(0));
        for piece in &self.pieces {
            whole.extend_from_slice(&piece.to_bytes());
        }
        if whole.is_empty() { Vec::new() } else { vec![Body::Real(whole.freeze())] }
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::Duration;

    use super::*;

    fn stored(octets: usize, control: &'static str, accept: Option<&'static str>) -> Arc<Stored> {
        let fields = Fields::from_iter([("Cache-Control", control)]);
        let body = vec![Body::filler(1, octets as u32)];
        let varying =
            accept.map(|value| ("accept".to_owned(), Some(Bytes::from(value)))).into_iter().collect();
        let said = Directives::of(&fields);
        let (received, lines) = (Instant::ZERO, fields.lines());
        Arc::new(Stored {
            status: 200,
            reason: Bytes::new(),
            fields,
            lines,
            body,
            length: octets as u64,
            varying,
            received,
            initial_age: 5,
            lifetime: said.max_age.unwrap_or(0),
            said,
        })
    }

    fn asks(control: &'static str) -> Directives {
        Directives::of(&Fields::from_iter([("Cache-Control", control)]))
    }

    #[test]
    fn an_answer_suffices_while_it_is_fresh_enough_for_who_asks() {
        let kept = stored(1, "max-age=60", None);
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let any = Directives::default();
        assert!(kept.suffices(at(54), &any) && !kept.suffices(at(55), &any));
        assert!(!kept.suffices(at(1), &asks("no-cache")) && !kept.suffices(at(10), &asks("max-age=14")));
        assert!(kept.suffices(at(10), &asks("max-age=15")) && !kept.suffices(at(10), &asks("min-fresh=45")));
        assert!(kept.suffices(at(64), &asks("max-stale=9")) && !kept.suffices(at(65), &asks("max-stale=9")));
        assert!(kept.suffices(at(9999), &asks("max-stale")));
        for word in ["max-age=60, must-revalidate", "max-age=60, proxy-revalidate"] {
            assert!(!stored(1, word, None).suffices(at(60), &asks("max-stale")), "{word}");
        }
        assert!(!stored(1, "max-age=60, no-cache", None).suffices(at(1), &any));
    }

    #[test]
    fn the_one_used_longest_ago_goes_first_and_the_count_is_right() {
        let mut store = Store::new(5_000);
        let key = |n: u8| Bytes::from(vec![n]);
        let none = Fields::default();
        for n in 0..3 {
            store.insert(&key(n), stored(1_000, "max-age=60", None));
        }
        assert!(store.find(&key(0), &none).is_some());
        store.insert(&key(3), stored(1_000, "max-age=60", None));
        assert!(store.find(&key(1), &none).is_none(), "that one was not asked for");
        assert!(store.find(&key(0), &none).is_some() && store.octets() <= 5_000);
        store.insert(&key(4), stored(100_000, "max-age=60", None));
        assert!(store.find(&key(4), &none).is_none(), "larger than all there is");
        for n in 0..5 {
            store.remove(&key(n));
        }
        assert_eq!((store.octets(), store.len(), store.uses.len()), (0, 0, 0));
    }

    #[test]
    fn small_things_count_too() {
        let mut many = (*stored(1, "max-age=60", None)).clone();
        many.fields = (0..100).map(|_| ("a", "b")).collect();
        many.varying = (0..1_000).map(|_| ("a".to_owned(), None)).collect();
        assert!(many.octets() > 100 * 64 + 1_000 * 64, "{}", many.octets());
    }

    #[test]
    fn variants_stand_beside_each_other_and_replace_their_like() {
        let (mut store, key) = (Store::new(100_000), Bytes::from_static(b"k"));
        store.insert(&key, stored(10, "max-age=60", Some("a")));
        store.insert(&key, stored(20, "max-age=60", Some("b")));
        store.insert(&key, stored(30, "max-age=60", Some("a")));
        let length = |store: &mut Store, accept: &'static str| {
            store.find(&key, &Fields::from_iter([("Accept", accept)])).map(|kept| kept.length)
        };
        assert_eq!(length(&mut store, "a"), Some(30));
        assert_eq!(length(&mut store, "b"), Some(20));
        assert_eq!(length(&mut store, "c"), None);
        store.insert(&key, stored(40, "max-age=60", None));
        assert_eq!(length(&mut store, "a"), Some(40), "of several that suit the newest");
        let all: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        for accept in &all {
            let mut variant = (*stored(10, "max-age=60", None)).clone();
            variant.varying = vec![("accept".into(), Some(accept.clone().into()))];
            store.insert(&key, Arc::new(variant));
        }
        assert_eq!(length(&mut store, "a"), None, "the oldest go");
        store.remove(&key);
        assert_eq!((store.octets(), store.uses.len()), (0, 0));
    }
}

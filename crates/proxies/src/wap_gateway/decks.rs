//! Further parts of pages that were too large for their clients, until they are asked for.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use airloom_transports::wsp::server::SessionId;
use bytes::Bytes;
use url::Url;

/// The part of a query that names a kept deck: `airloom-deck=PAGE.NUMBER`.
const PARAMETER: &str = "airloom-deck=";

/// Who may ask for a kept deck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Owner {
    /// A session.
    Session(SessionId),
    /// A client without one.
    Peer(SocketAddr),
}

/// The name of a deck: the page it was part of, and which part.
pub(super) type DeckName = (u64, usize);

/// The address of part `n` of the page that was at `url`, from its root. It stays in the page's folder, so that references in
/// it mean what they meant.
pub(super) fn address(url: &Url, (page, n): DeckName) -> String {
    let before = url.query().map(|query| format!("{query}&")).unwrap_or_default();
    format!("{}?{before}{PARAMETER}{page}.{n}", url.path())
}

/// The deck that an address of [`address`] names.
pub(super) fn name(url: &Url) -> Option<DeckName> {
    let last = url.query()?.rsplit('&').next()?;
    let (page, n) = last.strip_prefix(PARAMETER)?.split_once('.')?;
    Some((page.parse().ok()?, n.parse().ok()?))
}

/// The decks, of all clients together.
#[derive(Debug, Default, getset::CopyGetters)]
pub(super) struct Decks {
    kept: BTreeMap<(Owner, DeckName), Bytes>,
    /// The order in which they came. What was forgotten with its owner is passed over.
    order: VecDeque<(Owner, DeckName)>,
    /// Octets that are kept.
    #[getset(get_copy = "pub(super)")]
    octets: usize,
    most: usize,
}

impl Decks {
    /// At most so many octets.
    pub(super) fn new(most: usize) -> Decks {
        Decks { most, ..Decks::default() }
    }

    /// Keeps a deck; the oldest go if there is no room.
    pub(super) fn keep(&mut self, owner: Owner, name: DeckName, deck: Bytes) {
        self.octets += deck.len();
        if let Some(before) = self.kept.insert((owner, name), deck) {
            self.octets -= before.len();
        } else {
            self.order.push_back((owner, name));
        }
        while self.octets > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.remove(oldest);
        }
    }

    /// A deck, if it is still there.
    pub(super) fn find(&self, owner: Owner, name: DeckName) -> Option<Bytes> {
        self.kept.get(&(owner, name)).cloned()
    }

    /// Its owner is gone.
    pub(super) fn forget(&mut self, owner: Owner) {
        let of_owner = (owner, (0, 0))..=(owner, (u64::MAX, usize::MAX));
        let all: Vec<_> = self.kept.range(of_owner).map(|(key, _)| *key).collect();
        if all.is_empty() {
            return;
        }
        all.into_iter().for_each(|key| self.remove(key));
        self.order.retain(|(other, _)| *other != owner);
    }

    fn remove(&mut self, key: (Owner, DeckName)) {
        if let Some(deck) = self.kept.remove(&key) {
            self.octets -= deck.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_stay_in_the_folder_of_the_page() {
        for (page, deck) in
            [("http://o/a/b.html?x=1", "/a/b.html?x=1&airloom-deck=7.2"), ("http://o", "/?airloom-deck=7.2")]
        {
            let page = Url::parse(page).unwrap();
            let there = address(&page, (7, 2));
            assert_eq!(there, deck);
            assert_eq!(name(&page.join(&there).unwrap()), Some((7, 2)));
        }
        assert_eq!(name(&Url::parse("http://o/?airloom-deck=x").unwrap()), None);
    }

    #[test]
    fn the_oldest_go_first_and_an_owners_go_with_it() {
        let mut decks = Decks::new(30);
        let ten = || Bytes::from_static(&[0; 10]);
        for (session, n) in [(1, 0), (2, 0), (1, 1), (2, 1)] {
            decks.keep(Owner::Session(session), (5, n), ten());
        }
        let found = |decks: &Decks, session, n| decks.find(Owner::Session(session), (5, n)).is_some();
        assert!(!found(&decks, 1, 0) && found(&decks, 1, 1) && found(&decks, 2, 0));
        decks.forget(Owner::Session(2));
        assert!(!found(&decks, 2, 0) && !found(&decks, 2, 1));
        assert_eq!((decks.octets(), decks.order.len()), (10, 1));
    }
}

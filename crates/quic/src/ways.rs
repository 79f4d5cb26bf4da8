//! Paths of a connection: which of them its packets take, and what a change of path costs.

use std::net::{IpAddr, SocketAddr};

use airloom_base::Instant;
use airloom_base::service::{Moves, Path};

use crate::library;

/// Address pairs of a connection at most. A peer that moves more often comes by those that are oldest.
pub(crate) const MOST_PATHS: usize = 8;

/// An address pair with its ports.
pub(crate) struct Way {
    pub(crate) path: Path,
    pub(crate) ports: (u16, u16),
    pub(crate) is_up: bool,
}

/// A path that is being validated: which, since when, and what the library calls it or how many answers it had before.
#[derive(Clone, Copy)]
enum Validation {
    /// A client opens it beside the one it uses.
    Own { way: usize, since: Instant, id: library::PathId },
    /// A server has found its client there.
    Peers { since: Instant, responses: u64 },
}

/// The paths of one end.
pub(crate) struct Ways {
    list: Vec<Way>,
    /// The one that a client's packets go by; the last one its application knows of.
    active: usize,
    told: usize,
    /// The one that the next move takes when there are as many as there may be.
    oldest: usize,
    validation: Option<Validation>,
    /// The new path, until something has come over it.
    awaited: Option<usize>,
    last_arrival: Instant,
    moves: Moves,
    /// Paths beside the one in use that are given up: what was lost on each by then, and has been since.
    left: Vec<(library::PathId, u64, u64)>,
}

impl Ways {
    pub(crate) fn new(path: Path, ports: (u16, u16)) -> Ways {
        Ways {
            list: vec![Way { path, ports, is_up: true }],
            active: 0,
            told: 0,
            oldest: 0,
            validation: None,
            awaited: None,
            last_arrival: Instant::ZERO,
            moves: Moves::default(),
            left: Vec::new(),
        }
    }

    pub(crate) fn first(&self) -> &Way {
        &self.list[0]
    }

    pub(crate) fn get(&self, way: usize) -> Option<&Way> {
        self.list.get(way)
    }

    pub(crate) fn get_mut(&mut self, way: usize) -> Option<&mut Way> {
        self.list.get_mut(way)
    }

    pub(crate) fn are_several(&self) -> bool {
        self.list.len() > 1
    }

    pub(crate) fn active(&self) -> usize {
        self.active
    }

    /// The last one that the application knows of; `way` is that from now on. False: it was before.
    pub(crate) fn tell(&mut self, way: usize) -> bool {
        std::mem::replace(&mut self.told, way) != way
    }

    /// Another path of our own choice. False: there are as many as there may be.
    pub(crate) fn add(&mut self, path: Path) -> bool {
        let takes = self.list.len() < MOST_PATHS;
        if takes {
            let ports = self.list[0].ports;
            self.list.push(Way { path, ports, is_up: true });
        }
        takes
    }

    /// The peer comes from elsewhere: the way it is from now on.
    pub(crate) fn peer_moved(&mut self, path: Path, ports: (u16, u16)) -> usize {
        let way = Way { path, ports, is_up: true };
        if self.list.len() < MOST_PATHS {
            self.list.push(way);
            return self.list.len() - 1;
        }
        self.oldest = self.oldest % (MOST_PATHS - 1) + 1;
        self.list[self.oldest] = way;
        self.oldest
    }

    /// The way of a client's datagram: from the address that the library names, or else by the path in use.
    pub(crate) fn from(&self, local: Option<IpAddr>) -> usize {
        let its = |own| self.list.iter().position(|way| way.path.local == own);
        local.and_then(its).unwrap_or(self.active)
    }

    /// The way between these addresses.
    pub(crate) fn between(&self, remote: SocketAddr, local: Option<IpAddr>) -> usize {
        let is_it = |way: &Way| {
            (way.path.remote, way.ports.1) == (remote.ip(), remote.port())
                && local.is_none_or(|own| own == way.path.local)
        };
        self.list.iter().position(is_it).unwrap_or(0)
    }

    /// The way that a client should use: the first link of its host that is in service, by the host's own `addresses`. `None`: none is.
    pub(crate) fn best(&self, addresses: &[IpAddr]) -> Option<usize> {
        let rank = |way: &Way| addresses.iter().position(|own| *own == way.path.local).unwrap_or(usize::MAX);
        let up = self.list.iter().enumerate().filter(|(_, way)| way.is_up);
        up.min_by_key(|(_, way)| rank(way)).map(|(n, _)| n)
    }

    /// A client goes on by this way from now on.
    pub(crate) fn change_to(&mut self, way: usize, now: Instant) {
        if !self.is_probing(way) {
            self.awaited = Some(way);
        }
        self.active = way;
        self.validation = None;
        self.changed(now);
    }

    /// It goes on by another way.
    pub(crate) fn changed(&mut self, now: Instant) {
        self.moves.changes += 1;
        self.moves.first.get_or_insert(now);
    }

    /// A client has asked for this path, and stays where it is until it is validated.
    pub(crate) fn probe(&mut self, way: usize, id: library::PathId, now: Instant) {
        self.validation = Some(Validation::Own { way, since: now, id });
        self.awaited = Some(way);
    }

    pub(crate) fn is_probing(&self, wanted: usize) -> bool {
        matches!(self.validation, Some(Validation::Own { way, .. }) if way == wanted)
    }

    /// The path that a client has asked for is validated: its way.
    pub(crate) fn probed(&mut self, validated: library::PathId, now: Instant) -> Option<usize> {
        let Some(Validation::Own { way, since, id }) = self.validation else { return None };
        if id != validated {
            return None;
        }
        self.moves.validation = self.moves.validation.max(now - since);
        self.change_to(way, now);
        Some(way)
    }

    /// These paths are given up, on each of which so many octets were lost.
    pub(crate) fn leave(&mut self, paths: Vec<(library::PathId, u64)>) {
        let is_known = |path| self.left.iter().any(|(known, ..)| *known == path);
        let new: Vec<_> = paths.into_iter().filter(|(path, _)| !is_known(*path)).collect();
        self.left.extend(new.into_iter().map(|(path, before)| (path, before, 0)));
    }

    /// So many octets were lost on a path that may be one of them; and it is dropped.
    pub(crate) fn dropped(&mut self, path: library::PathId, lost: u64) {
        if let Some(place) = self.left.iter().position(|(left, ..)| *left == path) {
            let (_, before, _) = self.left.swap_remove(place);
            self.moves.lost_bytes += lost.saturating_sub(before);
        }
    }

    /// What was lost on those that are given up, as the library has it now.
    pub(crate) fn count_lost(&mut self, quic: &mut library::Connection) {
        for (path, before, since) in &mut self.left {
            *since = library::lost_on(quic, *path).map_or(*since, |lost| lost.saturating_sub(*before));
        }
    }

    /// What became of its paths.
    pub(crate) fn moves(&self) -> Moves {
        let under_way: u64 = self.left.iter().map(|(.., since)| since).sum();
        Moves { lost_bytes: self.moves.lost_bytes + under_way, ..self.moves }
    }

    /// A server has found its client elsewhere, and asks it to show itself; so many answers came before.
    pub(crate) fn ask(&mut self, now: Instant, responses: u64) {
        self.validation = Some(Validation::Peers { since: now, responses });
    }

    /// Does a server wait for its client to show itself?
    pub(crate) fn is_asking(&self) -> bool {
        matches!(self.validation, Some(Validation::Peers { .. }))
    }

    /// So many answers of the client have come.
    pub(crate) fn answered(&mut self, now: Instant, responses: u64) {
        if let Some(Validation::Peers { since, responses: before }) = self.validation
            && responses > before
        {
            self.validation = None;
            self.moves.validation = self.moves.validation.max(now - since);
        }
    }

    /// Something came over this way.
    pub(crate) fn arrived(&mut self, way: usize, now: Instant) {
        if let Some(awaited) = self.awaited {
            self.moves.silence = self.moves.silence.max(now - self.last_arrival);
            self.awaited = Some(awaited).filter(|awaited| *awaited != way);
        }
        self.last_arrival = now;
    }

    /// As `arrived`, where it shows that the peer has changed to this way.
    pub(crate) fn peer_changed(&mut self, silent_since: Instant, now: Instant) {
        self.moves.silence = self.moves.silence.max(now - silent_since);
        self.changed(now);
    }

    /// When something came last.
    pub(crate) fn last_arrival(&self) -> Instant {
        self.last_arrival
    }
}

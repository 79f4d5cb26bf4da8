//! Places that a server of QUIC hears from, and what it sends there: counted where its datagrams pass, and not by itself.

use std::net::{IpAddr, Ipv4Addr};

use airloom_base::service::Path;
use airloom_base::{Cx, PathId, Transport};

/// PATH_CHALLENGE and PATH_RESPONSE (RFC 9000, 19.17, 19.18), in front of eight octets.
const PATH_CHALLENGE: u8 = 0x1A;
pub(crate) const PATH_RESPONSE: u8 = 0x1B;

/// Two places have one address, with a port each.
const ADDRESSES: u8 = 16;
pub(crate) const PLACES: usize = 2 * ADDRESSES as usize;

/// Where its client is at first.
pub(crate) const HOME: usize = 0;

/// Paths of an end at most.
pub(crate) const MOST_PATHS: usize = 8;

/// How a server sees what comes from a place: the path, its own port and the one there.
pub(crate) fn from_place(place: usize) -> (Path, (u16, u16)) {
    let address = |n| IpAddr::V4(Ipv4Addr::new(10, 0, 0, n));
    let remote = match (place / 2) as u8 % ADDRESSES {
        0 => address(1),
        n => address(2 + n),
    };
    (Path { local: address(2), remote, mtu: 1500 }, (443, 40_000 + (place % 2) as u16))
}

/// The places that a server's paths lead to.
#[derive(Default)]
pub(crate) struct Paths(Vec<usize>);

impl Paths {
    /// A connection that was opened from there.
    pub(crate) fn begin(place: usize) -> Paths {
        Paths(vec![place])
    }

    /// Where it was opened from.
    pub(crate) fn first(&self) -> Option<usize> {
        self.0.first().copied()
    }

    pub(crate) fn of(&self, place: usize) -> Option<PathId> {
        self.0.iter().position(|known| *known == place).map(|n| PathId(n as u8))
    }

    pub(crate) fn place(&self, path: PathId) -> usize {
        self.0[usize::from(path.0)]
    }

    /// The server's client has moved there, or so it seems.
    pub(crate) fn meet(&mut self, place: usize, server: &mut dyn Transport, cx: &mut Cx) -> Option<PathId> {
        let (path, ports) = from_place(place);
        let id = server.handle_move(cx, path, ports)?;
        let n = usize::from(id.0);
        assert!((1..=self.0.len()).contains(&n) && n < MOST_PATHS, "path {n} of {}", self.0.len());
        match self.0.get_mut(n) {
            Some(known) => *known = place,
            None => self.0.push(place),
        }
        Some(id)
    }
}

/// What came from a place, and what was sent there.
#[derive(Clone, Copy, Default)]
struct Account {
    received: usize,
    sent: usize,
    is_shown: bool,
}

/// Octets to and from places.
#[derive(Default)]
pub(crate) struct Ledger {
    accounts: [Account; PLACES],
    /// What may be challenges, and where they went.
    asked: Vec<([u8; 8], usize)>,
    latest: Option<[u8; 8]>,
}

/// The eight octets behind each octet of this kind.
fn behind(kind: u8, octets: &[u8]) -> impl Iterator<Item = [u8; 8]> {
    octets.windows(9).filter(move |frame| frame[0] == kind).filter_map(|frame| frame[1..].try_into().ok())
}

impl Ledger {
    /// A datagram without protection has come from there.
    pub(crate) fn received(&mut self, place: usize, octets: &[u8]) {
        self.accounts[place].received += octets.len();
        if self.asked.is_empty() {
            return;
        }
        //= RFC 9000 (8.2.3): an answer validates the path that the challenge was sent by, whichever it comes by.
        for answer in behind(PATH_RESPONSE, octets) {
            for (_, place) in self.asked.iter().filter(|(challenge, _)| *challenge == answer) {
                self.accounts[*place].is_shown = true;
            }
        }
    }

    /// The server sends this datagram there.
    pub(crate) fn sent(&mut self, place: usize, octets: &[u8]) {
        let account = &mut self.accounts[place];
        account.sent += octets.len();
        if account.is_shown {
            return;
        }
        let Account { received, sent, .. } = *account;
        //= RFC 9000 (8.1, 8.2.1, 9.3.1): no more than three times the octets received before the address is validated.
        assert!(sent <= 3 * received, "{sent} octets went to place {place}, from where {received} had come");
        let before = self.asked.len();
        self.asked.extend(behind(PATH_CHALLENGE, octets).map(|challenge| (challenge, place)));
        self.latest = self.asked.get(before).map(|(challenge, _)| *challenge).or(self.latest);
    }

    /// Whoever is there has shown it by other means.
    pub(crate) fn show(&mut self, place: usize) {
        self.accounts[place].is_shown = true;
    }

    pub(crate) fn is_shown(&self, place: usize) -> bool {
        self.accounts[place].is_shown
    }

    /// Octets that were sent there.
    #[cfg(test)]
    pub(crate) fn sent_to(&self, place: usize) -> usize {
        self.accounts[place].sent
    }

    /// The last challenge.
    pub(crate) fn latest(&self) -> Option<[u8; 8]> {
        self.latest
    }
}

//! A connection in its host's table.

use std::collections::VecDeque;
use std::net::SocketAddr;

use airloom_base::record::{FlowRecord, Record};
use airloom_base::service::{Outgoing, Path, PathId};
use airloom_base::{Cx, Duration, Instant, Packet, Transport};
use airloom_wire::ip;

use super::Opening;
use crate::agenda::Wakeup;
use crate::routes::Hop;

/// What names a connection on its host: protocol, ports, which own address, and the peer's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) peer: u128,
    /// Index of the own address, own port, peer's port, protocol.
    pub(crate) rest: u64,
}

impl Key {
    #[inline]
    pub(crate) fn new(protocol: u8, local: u16, own_port: u16, peer: u128, peer_port: u16) -> Self {
        let rest = u64::from(local) << 48
            | u64::from(own_port) << 32
            | u64::from(peer_port) << 16
            | u64::from(protocol);
        Key { peer, rest }
    }
}

impl std::hash::Hash for Key {
    #[inline]
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        // IPv4 peers differ in the low half only; the high half is folded in by a rotation.
        state.write_u64(
            (self.peer as u64) ^ ((self.peer >> 64) as u64).rotate_left(23) ^ self.rest.rotate_left(29),
        );
        state.write_u64(self.rest);
    }
}

/// A path of a connection beside its first one.
pub(crate) struct OtherPath {
    pub(crate) key: Key,
    pub(crate) hop: Hop,
    pub(crate) header: ip::Template,
}

/// One connection and what its host knows about it.
pub(crate) struct Connection {
    pub(crate) transport: Box<dyn Transport>,
    /// What is to take its place when the application lets the peer in.
    pub(crate) held: Option<Box<Opening>>,
    pub(crate) key: Key,
    pub(crate) hop: Hop,
    pub(crate) path: Path,
    pub(crate) ports: (u16, u16),
    pub(crate) protocol: u8,
    pub(crate) header: ip::Template,
    /// In the order of the transport's own list, which has the path above in front.
    pub(crate) others: Vec<OtherPath>,
    /// The application it belongs to; none once it is over for it.
    pub(crate) app: Option<u16>,
    pub(crate) opener: bool,
    pub(crate) accepted: bool,
    /// Has data been able to flow?
    pub(crate) opened: bool,
    pub(crate) reported: bool,
    pub(crate) lingering: bool,
    pub(crate) dirty: bool,
    pub(crate) flow: u32,
    pub(crate) wakeup: Wakeup,
    pub(crate) open: Instant,
    pub(crate) close: Option<Instant>,
}

/// Sums over all ends of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Ends of connections.
    pub ends: u64,
    /// Units sent.
    pub segments: u64,
    /// Units sent again.
    pub resent: u64,
    /// Units sent again in vain.
    pub spurious: u64,
    /// Expiries of retransmission timers.
    pub rto_count: u64,
    /// Changes of path, as the ends saw them that accepted.
    pub path_changes: u64,
    /// When the first of these was.
    pub path_change: Option<Instant>,
    /// The longest time without an arrival that a change took at any end.
    pub path_silence: Duration,
    /// The longest time that validating a path took.
    pub path_validation: Duration,
    /// Octets that went away with paths.
    pub path_lost_bytes: u64,
}

impl Connection {
    /// Its two ends: the address and port here, and the peer's.
    pub(crate) fn ends(&self) -> (SocketAddr, SocketAddr) {
        ((self.path.local, self.ports.0).into(), (self.path.remote, self.ports.1).into())
    }

    /// The path whose addresses make this key.
    #[inline(always)]
    pub(crate) fn path_id(&self, key: &Key) -> PathId {
        if self.others.is_empty() { PathId(0) } else { self.other_path_id(key) }
    }

    #[cold]
    fn other_path_id(&self, key: &Key) -> PathId {
        PathId(self.others.iter().position(|other| other.key == *key).map_or(0, |n| n as u8 + 1))
    }

    /// Has its packets leave, each over its path: they go to `out` with where they are to go.
    #[cold]
    pub(crate) fn send_by_path(&mut self, cx: &mut Cx, out: &mut VecDeque<(Hop, Packet)>) {
        while let Some(Outgoing { path, ecn, mut packet, last }) = self.transport.poll_transmit(cx) {
            let other = usize::from(path.0).checked_sub(1).and_then(|n| self.others.get(n));
            let (hop, header) = other.map_or((self.hop, &self.header), |other| (other.hop, &other.header));
            header.prepend(&mut packet, ecn);
            packet.label(cx.records.next_packet(), self.flow);
            out.push_back((hop, packet));
            if last {
                break;
            }
        }
    }

    /// Accepted by us and not confirmed by the peer yet.
    pub(crate) fn is_half_open(&self) -> bool {
        self.accepted && !self.opened
    }

    /// Counts and records what this end did, once.
    pub(crate) fn report(&mut self, cx: &mut Cx, proto: &'static str, totals: &mut Totals) {
        if std::mem::replace(&mut self.reported, true) {
            return;
        }
        let facts = self.transport.facts();
        totals.ends += 1;
        totals.segments += facts.segments;
        totals.resent += facts.resent;
        totals.spurious += facts.spurious;
        totals.rto_count += u64::from(facts.rto_count);
        let moves = self.transport.moves();
        if self.accepted && moves.changes > 0 {
            totals.path_changes += u64::from(moves.changes);
            totals.path_change = totals.path_change.into_iter().chain(moves.first).min();
        }
        totals.path_silence = totals.path_silence.max(moves.silence);
        totals.path_validation = totals.path_validation.max(moves.validation);
        totals.path_lost_bytes += moves.lost_bytes;
        if cx.records.wants_facts() {
            cx.records.push(Record::Flow(FlowRecord {
                flow: self.flow,
                proto,
                local: SocketAddr::new(self.path.local, self.ports.0).to_string(),
                remote: SocketAddr::new(self.path.remote, self.ports.1).to_string(),
                opener: self.opener,
                open: self.open,
                close: self.close,
                facts,
            }));
        }
    }
}

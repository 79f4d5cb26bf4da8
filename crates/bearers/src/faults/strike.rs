//! What vanishes, and what is changed on its way.

use airloom_base::random::{Fate, splitmix64};
use airloom_base::{Body, Direction, Packet, Station};
use airloom_wire::ip::{Brief, protocol};
use airloom_wire::udp;

use super::config::Strikes;

/// How many octets behind the header of the transport may be changed: those in which protocols have their own headers.
const REACH: usize = 50;

/// One lane's share of [`Strikes`].
pub(super) struct Luck {
    rate: f64,
    burst: Option<u32>,
    fate: Fate,
    in_a_row: u32,
}

impl Luck {
    pub(super) fn new(config: Option<Strikes>, fate: Fate, direction: Direction, station: Station) -> Luck {
        Luck {
            rate: config.map_or(0.0, |c| c.rate.get(direction).get()),
            burst: config.and_then(|c| c.burst).map(|b| b.get(direction)),
            fate: fate.lane(direction, station, 0),
            in_a_row: 0,
        }
    }

    /// Is the `n`-th one struck? Asked once for each, in order.
    pub(super) fn strikes(&mut self, n: u64) -> bool {
        let may = self.burst.is_none_or(|most| self.in_a_row < most);
        let strikes = may && self.fate.nth(n) < self.rate;
        self.in_a_row = if strikes { self.in_a_row.saturating_add(1) } else { 0 };
        strikes
    }
}

/// Is it a datagram of this protocol? Without one: of any.
pub(super) fn concerns(only: Option<u8>, packet: &Packet) -> bool {
    only.is_none_or(|number| Brief::parse(packet.head()).is_some_and(|ip| ip.protocol == number))
}

/// Octets in front of what an application sent, if that can be told.
fn headers(packet: &Packet) -> Option<usize> {
    let head = packet.head();
    let ip = Brief::parse(head).filter(|ip| !ip.is_fragment)?;
    let transport = match ip.protocol {
        protocol::UDP => udp::HEADER,
        protocol::TCP => usize::from(*head.get(ip.header_len + 12)? >> 4) * 4,
        protocol::SCTP => 12,
        _ => return None,
    };
    Some(ip.header_len + transport)
}

/// Gives one octet of the payload another value, as `luck` says; `None` if it has to stay as it is.
pub(super) fn corrupt(packet: &Packet, luck: u64) -> Option<Packet> {
    let from = headers(packet)?;
    let len = packet.wire_len().checked_sub(from).filter(|len| *len > 0)?;
    let is_udp = Brief::parse(packet.head()).is_some_and(|ip| ip.protocol == protocol::UDP);
    let mut first = [0; 5];
    //= RFC 9000 (17.2.1): the version of a Version Negotiation packet is 0.
    if is_udp && packet.write(from, &mut first) == 5 && first[0] & 0x80 != 0 && first[1..] == [0; 4] {
        return None;
    }
    let at = from + (luck % len.min(REACH) as u64) as usize;
    // Never 0: the octet does change.
    let change = (splitmix64(luck, 1) % 255) as u8 + 1;
    let head = packet.head();
    let mut changed = if let Some(octet) = head.get(at) {
        let mut copy = packet.duplicate();
        copy.head_mut()[at] = octet ^ change;
        copy
    } else {
        let mut octets = packet.body().to_bytes().to_vec();
        octets[at - head.len()] ^= change;
        Packet::with_head(head, Body::Real(octets.into()))?
    };
    changed.label(packet.id(), packet.flow());
    changed.set_segment_size(packet.segment_size());
    Some(changed)
}

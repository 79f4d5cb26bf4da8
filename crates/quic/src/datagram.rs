//! A packet of QUIC and the UDP datagram around it.

use std::cell::Cell;

use airloom_base::{Body, Packet};
use airloom_wire::udp::{HEADER, Udp};
use bytes::BytesMut;

/// What room for a datagram begins with: more than most links take. It grows where one takes more.
const USUAL: usize = 1500;

thread_local! {
    /// Where datagrams are made: for all connections the same octets of memory, which the processor has at hand.
    static ROOM: Cell<Vec<u8>> = Cell::new(Vec::with_capacity(USUAL));
}

/// Lends empty room for a datagram.
pub(crate) fn in_room<T>(make: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    let mut room = ROOM.take();
    room.clear();
    let made = make(&mut room);
    ROOM.set(room);
    made
}

/// The octets of a unit behind its UDP header.
pub(crate) fn payload(mut unit: Packet) -> Option<BytesMut> {
    let header = Udp::parse(unit.head()).ok()?;
    let len = usize::from(header.len) - HEADER;
    let first = unit.head().get(HEADER..)?;
    if first.is_empty() {
        let mut octets = match unit.take_body() {
            Body::Real(octets) => octets,
            filler => filler.to_bytes(),
        };
        let is_whole = octets.len() >= len;
        // What stands behind the length of UDP does not belong to it. Nobody else has the octets as a rule: none is copied.
        octets.truncate(len);
        return is_whole.then(|| BytesMut::from(octets));
    }
    let mut octets = BytesMut::from(first);
    octets.extend_from_slice(&unit.take_body().to_bytes());
    (octets.len() >= len).then(|| octets.split_to(len))
}

/// A UDP datagram.
pub(crate) fn datagram((source, destination): (u16, u16), octets: Vec<u8>) -> Packet {
    let len = (HEADER + octets.len()).min(usize::from(u16::MAX)) as u16;
    let header = Udp { source, destination, len };
    Packet::build(|out| header.emit(out), Body::Real(octets.into()))
}

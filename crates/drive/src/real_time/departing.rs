//! Frames on their way to a device: headers as the device wants them, payload by reference.
//!
//! Checksums of TCP and UDP stay open on the way through the machine, as between a kernel and its network card: the
//! frame says where one would be filled in, and a host that hears it from its own machine does not ask for it.
//!
//! Segments of one TCP flow, or equal datagrams of one UDP flow, that the model releases within [`WINDOW`] of each other
//! are joined again to a super-packet, as a receiving network card does (LRO, GRO); the kernel gives programs the UDP
//! datagrams one by one. The decision rests on nominal times alone: on a link below 0.8 Gbit/s datagrams of 1500 octets
//! are never joined, however late the engine is.

use airloom_base::{Body, Duration, Instant, Packet};
use airloom_wire::ip::{Ip, protocol};
use airloom_wire::{checksum, edge};
use bytes::Bytes;

use super::buffers::{Buffers, SIZE};
use super::vnet::{self, Header};

/// Segments whose releases are no further apart may be joined.
const WINDOW: Duration = Duration::from_micros(15);
/// Octets of a joined datagram, as the kernel's own limit for super-packets.
const MOST_OCTETS: usize = 65_000;
/// Pieces of a frame: the kernel takes 1024.
pub(super) const MOST_PIECES: usize = 512;
/// Datagrams in a super-packet of UDP: what the kernel lets programs send in one.
const MOST_UDP: usize = 64;
/// So many frames back a predecessor is looked for.
const LOOK_BACK: usize = 8;
/// Frames that wait for one call of the kernel.
pub(super) const BATCH: usize = 64;
/// Headers: offload, Ethernet, and all that a packet can have.
const ROOM: usize = vnet::LEN + 14 + airloom_base::packet::HEAD;
/// Memory for bodies that have to be written out.
const MEMORY: usize = 64 << 20;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86DD;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const PSH: u8 = 0x08;
const URG: u8 = 0x20;
const CWR: u8 = 0x80;

/// One frame.
#[derive(getset::CopyGetters)]
pub(super) struct Frame {
    room: [u8; ROOM],
    /// Octets in `room`, link-layer address and offload header included.
    len: usize,
    pieces: Vec<Bytes>,
    octets: usize,
    segment: u16,
    /// As `Packet::flow`.
    flow: u32,
    /// How many datagrams it is.
    #[getset(get_copy = "pub(super)")]
    datagrams: u32,
    /// What a segment needs to be joined on; `None` if none can be.
    tail: Option<Tail>,
}

/// The end of a TCP segment, or of a UDP datagram.
#[derive(Clone, Copy)]
struct Tail {
    /// Offset of the transport header.
    at: usize,
    is_tcp: bool,
    /// Sequence number behind it (TCP), or identification of the last datagram (UDP).
    next: u32,
    due: Instant,
}

impl Frame {
    /// Its headers.
    pub(super) fn head(&self) -> &[u8] {
        &self.room[..self.len]
    }
    /// What follows them.
    pub(super) fn pieces(&self) -> &[Bytes] {
        &self.pieces
    }
}

/// Frames in order of departure.
pub(super) struct Departing {
    /// Those after `used` are kept for their memory.
    frames: Vec<Frame>,
    used: usize,
    /// When each datagram should have left.
    dues: Vec<Instant>,
    /// Link-layer addresses in front of each frame; none on a device without a link layer.
    addresses: Option<[u8; 12]>,
    memory: Buffers,
    scratch: Vec<u8>,
    /// Datagrams for which there was no memory.
    pub(super) lost: u64,
}

impl Departing {
    /// Frames that begin with `addresses`, destination and source, or with the IP header.
    pub(super) fn new(addresses: Option<[u8; 12]>) -> Departing {
        let (frames, dues, scratch) = (Vec::new(), Vec::new(), Vec::new());
        Departing { frames, used: 0, dues, addresses, memory: Buffers::new(MEMORY), scratch, lost: 0 }
    }

    pub(super) fn frames(&self) -> &[Frame] {
        &self.frames[..self.used]
    }

    pub(super) fn dues(&self) -> &[Instant] {
        &self.dues
    }

    pub(super) fn is_empty(&self) -> bool {
        self.used == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.used >= BATCH
    }

    /// Forgets what was sent.
    pub(super) fn clear(&mut self) {
        self.frames[..self.used].iter_mut().for_each(|f| f.pieces.clear());
        self.used = 0;
        self.dues.clear();
    }

    /// Takes a datagram that leaves at `due`.
    pub(super) fn push(&mut self, mut packet: Packet, due: Instant) {
        let Ok(ip) = Ip::parse(packet.head()) else {
            // Nothing in the model makes such a packet.
            self.lost += 1;
            return;
        };
        if ip.is_fragment || !matches!(ip.protocol, protocol::TCP | protocol::UDP) {
            return self.push_finished(&packet, &ip, due);
        }
        let Some(body) = self.body(packet.take_body()) else {
            self.lost += 1;
            return;
        };
        if packet.segment_size() == 0 && self.join(&packet, &body, due) {
            return;
        }
        let frame = self.begin(ip.destination.is_ipv6(), packet.head(), body);
        frame.segment = packet.segment_size();
        frame.flow = packet.flow();
        frame.tail = Tail::of(&packet, &ip, frame.octets, due);
        self.dues.push(due);
    }

    /// A datagram whose checksums the device does not know: it gets them here.
    fn push_finished(&mut self, packet: &Packet, ip: &Ip, due: Instant) {
        self.scratch.clear();
        edge::egress(packet, &mut self.scratch);
        self.scratch.truncate(SIZE);
        let (memory, octets) = (&mut self.memory, &self.scratch);
        let Some(whole) = memory.write(octets.len(), |out| out.extend_from_slice(octets)) else {
            self.lost += 1;
            return;
        };
        self.begin(ip.destination.is_ipv6(), &[], whole).flow = packet.flow();
        self.dues.push(due);
    }

    /// The next frame: `head` behind the link-layer header, and `body` behind that.
    fn begin(&mut self, is_v6: bool, head: &[u8], body: Bytes) -> &mut Frame {
        if self.used == self.frames.len() {
            self.frames.push(Frame {
                room: [0; ROOM],
                len: 0,
                pieces: Vec::new(),
                octets: 0,
                segment: 0,
                flow: 0,
                datagrams: 0,
                tail: None,
            });
        }
        let frame = &mut self.frames[self.used];
        self.used += 1;
        frame.room[..vnet::LEN].fill(0);
        let mut link = vnet::LEN;
        if let Some(addresses) = &self.addresses {
            let kind = if is_v6 { ETHERTYPE_IPV6 } else { ETHERTYPE_IPV4 };
            frame.room[link..link + 12].copy_from_slice(addresses);
            frame.room[link + 12..link + 14].copy_from_slice(&kind.to_be_bytes());
            link += 14;
        }
        frame.len = link + head.len();
        frame.room[link..frame.len].copy_from_slice(head);
        frame.octets = body.len();
        if !body.is_empty() {
            frame.pieces.push(body);
        }
        (frame.segment, frame.datagrams, frame.tail) = (0, 1, None);
        frame
    }

    fn body(&mut self, body: Body) -> Option<Bytes> {
        match body {
            Body::Real(octets) => Some(octets),
            Body::Filler(filler) if filler.len == 0 => Some(Bytes::new()),
            Body::Filler(filler) => {
                let len = (filler.len as usize).min(SIZE);
                self.memory.write(len, |out| {
                    let from = out.len();
                    out.resize(from + len, 0);
                    filler.write(0, &mut out[from..]);
                })
            }
        }
    }

    /// Joins a segment to the last frame of its flow, if a network card would.
    fn join(&mut self, packet: &Packet, body: &Bytes, due: Instant) -> bool {
        let flow = packet.flow();
        if flow == 0 || body.is_empty() {
            return false;
        }
        let link = if self.addresses.is_some() { vnet::LEN + 14 } else { vnet::LEN };
        let frames = self.frames[..self.used].iter_mut().rev().take(LOOK_BACK);
        // What joined an earlier frame would overtake the last one.
        let Some(frame) = frames.into_iter().find(|f| f.flow == flow) else { return false };
        let Some(tail) = &mut frame.tail else { return false };
        let (ours, theirs) = (&mut frame.room[link..frame.len], packet.head());
        let segment = if frame.segment == 0 { frame.octets } else { usize::from(frame.segment) };
        let fits = ours.len() == theirs.len()
            && body.len() <= segment
            && frame.octets + body.len() + ours.len() <= MOST_OCTETS
            && frame.pieces.len() < if tail.is_tcp { MOST_PIECES } else { MOST_UDP }
            && due.since(tail.due) <= WINDOW
            && follows(ours, theirs, tail);
        if !fits {
            return false;
        }
        let mut ends = body.len() < segment;
        if tail.is_tcp {
            let flags = theirs[tail.at + 13] & (FIN | PSH);
            ours[tail.at + 13] |= flags;
            ends |= flags != 0;
            tail.next = tail.next.wrapping_add(body.len() as u32);
        } else {
            tail.next = identification(theirs);
        }
        tail.due = due;
        frame.segment = segment as u16;
        frame.octets += body.len();
        frame.datagrams += 1;
        frame.pieces.push(body.clone());
        if ends {
            frame.tail = None;
        }
        self.dues.push(due);
        true
    }

    /// Fills in lengths, checksums and offload headers; to be called once before the frames are sent.
    pub(super) fn finish(&mut self) {
        let link = if self.addresses.is_some() { 14 } else { 0 };
        for frame in &mut self.frames[..self.used] {
            let (offload, rest) = frame.room[..frame.len].split_at_mut(vnet::LEN);
            let head = &mut rest[link..];
            let Some(open) = checksum::leave_open(head, frame.octets) else { continue };
            let is_v6 = head[0] >> 4 == 6;
            let is_tcp = open.offset == 16;
            let segments = frame.segment != 0 && frame.octets > usize::from(frame.segment);
            if !is_tcp && frame.datagrams > 1 {
                // As the kernel's own super-packets: the length of all.
                let len = (head.len() - open.start + frame.octets) as u16;
                head[open.start + 4..open.start + 6].copy_from_slice(&len.to_be_bytes());
            }
            Header::leaving(link, head.len(), open, segments.then_some((is_tcp, is_v6, frame.segment)))
                .emit(offload);
        }
    }
}

impl Tail {
    /// Where a plain segment of data, or a datagram, ends. What sets up, ends or hurries a connection is never joined.
    fn of(packet: &Packet, ip: &Ip, len: usize, due: Instant) -> Option<Tail> {
        let at = ip.header_len;
        if len == 0 || packet.flow() == 0 || packet.segment_size() != 0 {
            return None;
        }
        if ip.protocol == protocol::UDP {
            return Some(Tail { at, is_tcp: false, next: identification(packet.head()), due });
        }
        let unit = packet.head().get(at..).filter(|u| u.len() >= 20)?;
        let number = u32::from_be_bytes([unit[4], unit[5], unit[6], unit[7]]);
        let next = number.wrapping_add(len as u32);
        (unit[13] & (FIN | SYN | RST | PSH | URG | CWR) == 0).then_some(Tail { at, is_tcp: true, next, due })
    }
}

/// Identification of an IPv4 datagram; IPv6 has none.
fn identification(head: &[u8]) -> u32 {
    if head[0] >> 4 == 4 { u32::from(u16::from_be_bytes([head[4], head[5]])) } else { 0 }
}

/// Does the datagram under `theirs` follow the one that ends with `tail`, under the same header in all that matters?
fn follows(ours: &[u8], theirs: &[u8], tail: &Tail) -> bool {
    let (a, b) = (&ours[tail.at..], &theirs[tail.at..]);
    let is_v4 = ours[0] >> 4 == 4;
    let same_network = if is_v4 {
        // All but length, identification and checksum; IPv4 options included.
        ours[..2] == theirs[..2] && ours[6..10] == theirs[6..10] && ours[12..tail.at] == theirs[12..tail.at]
    } else {
        ours[..4] == theirs[..4] && ours[6..tail.at] == theirs[6..tail.at]
    };
    if !same_network || a[..4] != b[..4] {
        return false;
    }
    if !tail.is_tcp {
        // The kernel counts identifications on where it takes the datagrams apart.
        return !is_v4 || identification(theirs) == (tail.next + 1) & 0xFFFF;
    }
    u32::from_be_bytes([b[4], b[5], b[6], b[7]]) == tail.next
        && a[8..13] == b[8..13]
        && (a[13] ^ b[13]) & !(FIN | PSH) == 0
        && a[14..16] == b[14..16]
        && a[18..] == b[18..]
}

#[cfg(test)]
mod tests {
    use airloom_wire::ip;

    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * 1000)
    }

    /// A segment of flow 1 from one source: `from..from + len` of a stream that counts octets.
    fn segment(addresses: [&str; 2], from: u32, len: usize, flags: u8) -> Packet {
        let [source, destination] = addresses.map(|a| a.parse().unwrap());
        let body: Vec<u8> = (from..from + len as u32).map(|n| n as u8).collect();
        let write = |out: &mut [u8]| {
            out[..20].fill(0);
            out[..4].copy_from_slice(&[0x10, 0, 0, 80]);
            out[4..8].copy_from_slice(&from.to_be_bytes());
            out[12] = 5 << 4;
            out[13] = 0x10 | flags;
            20
        };
        let mut packet = Packet::build(write, Body::Real(body.into()));
        let header = ip::header_len(destination);
        ip::emit(packet.prepend(header), source, destination, protocol::TCP, 0, 20 + len);
        packet.set_flow(1);
        packet
    }

    const V4: [&str; 2] = ["10.0.0.1", "10.0.0.2"];
    const V6: [&str; 2] = ["fd00::1", "fd00::2"];

    /// Datagrams in each frame, and the payload of all.
    fn sent(departing: &mut Departing) -> (Vec<u32>, Vec<u8>) {
        departing.finish();
        let datagrams: Vec<u32> = departing.frames().iter().map(Frame::datagrams).collect();
        assert_eq!(datagrams.iter().sum::<u32>() as usize, departing.dues().len());
        let payload = departing.frames().iter().flat_map(|f| f.pieces().concat()).collect();
        (datagrams, payload)
    }

    #[test]
    fn segments_released_together_are_joined_and_no_octet_moves() {
        for addresses in [V4, V6] {
            let mut departing = Departing::new(Some([7; 12]));
            for n in 0..5 {
                departing.push(segment(addresses, n * 100, 100, 0), at(u64::from(n) * 12));
            }
            departing.push(segment(addresses, 500, 40, PSH), at(60));
            departing.push(segment(addresses, 540, 40, 0), at(60));
            let (datagrams, payload) = sent(&mut departing);
            assert_eq!(datagrams, [6, 1], "a shorter one ends it");
            assert_eq!(payload, (0..580u32).map(|n| n as u8).collect::<Vec<_>>());
            let frame = &departing.frames()[0];
            let offload = Header::parse(frame.head()).unwrap();
            assert_eq!(offload.segment_size(), 100);
            let head = &frame.head()[vnet::LEN + 14..];
            let ip = Ip::parse(head).unwrap();
            assert_eq!(ip.total_len, head.len() + 540);
            assert_eq!(head[ip.header_len + 13] & PSH, PSH);
            departing.clear();
            assert!(departing.is_empty() && departing.dues().is_empty());
        }
    }

    /// Datagram `n` of flow 1, `len` octets.
    fn datagram(addresses: [&str; 2], n: u16, len: usize) -> Packet {
        let [source, destination] = addresses.map(|a| a.parse().unwrap());
        let udp = airloom_wire::udp::Udp { source: 7, destination: 9, len: (8 + len) as u16 };
        let mut packet = Packet::build(|out| udp.emit(out), Body::Real(vec![n as u8; len].into()));
        let header = ip::header_len(destination);
        ip::emit(packet.prepend(header), source, destination, protocol::UDP, 0, 8 + len);
        if header == 20 {
            packet.head_mut()[4..6].copy_from_slice(&n.to_be_bytes());
        }
        packet.set_flow(1);
        packet
    }

    #[test]
    fn equal_datagrams_of_a_flow_are_joined_and_others_are_not() {
        for addresses in [V4, V6] {
            let mut departing = Departing::new(None);
            for n in 0..200u16 {
                departing.push(datagram(addresses, n.wrapping_sub(3), 100), at(u64::from(n)));
            }
            let (datagrams, payload) = sent(&mut departing);
            assert_eq!(datagrams, [64, 64, 64, 8]);
            assert_eq!((payload.len(), payload[0], payload[300]), (20_000, 253, 0));
            let head = &departing.frames()[0].head()[vnet::LEN..];
            let udp = Ip::parse(head).unwrap().header_len;
            assert_eq!(u16::from_be_bytes([head[udp + 4], head[udp + 5]]), 6408);
            assert_eq!(Header::parse(departing.frames()[0].head()).unwrap().segment_size(), 100);

            let mut departing = Departing::new(None);
            for (n, len, micros) in [(0, 100, 0), (1, 101, 0), (2, 101, 16), (3, 40, 16), (4, 40, 16)] {
                departing.push(datagram(addresses, n, len), at(micros));
            }
            assert_eq!(sent(&mut departing).0, [1, 1, 2, 1]);
        }
        // A gap in the identifications could not be told to the receiver.
        let mut departing = Departing::new(None);
        departing.push(datagram(V4, 0, 100), at(0));
        departing.push(datagram(V4, 2, 100), at(0));
        assert_eq!(sent(&mut departing).0, [1, 1]);
    }

    #[test]
    fn nothing_is_joined_to_an_earlier_frame_than_the_last_of_its_flow() {
        // A shorter datagram has ended the last frame, it is a super-packet, or it has no octets.
        let cases: [(&[usize], &[u32]); 3] = [
            (&[35, 1252, 35, 35], &[1, 2, 1]),
            (&[1200, 1200, 300], &[1, 1, 1]),
            (&[100, 0, 100], &[1, 1, 1]),
        ];
        for (lens, datagrams) in cases {
            let mut departing = Departing::new(None);
            let mut payload = Vec::new();
            for (n, &len) in lens.iter().enumerate() {
                let mut packet = datagram(V6, n as u16, len);
                if (n, len) == (1, 1200) {
                    packet.set_segment_size(400);
                }
                payload.extend(vec![n as u8; len]);
                departing.push(packet, at(0));
            }
            assert_eq!(sent(&mut departing), (datagrams.to_vec(), payload));
        }
        // A segment that was overtaken on the way.
        let mut departing = Departing::new(None);
        for (from, flags) in [(0, 0), (200, PSH), (100, 0)] {
            departing.push(segment(V4, from, 100, flags), at(0));
        }
        assert_eq!(sent(&mut departing).0, [1, 1, 1]);
    }

    #[test]
    fn nothing_is_joined_across_a_gap_a_window_or_another_header() {
        let first = || segment(V4, 0, 100, 0);
        let next = |change: &dyn Fn(&mut Packet)| {
            let mut packet = segment(V4, 100, 100, 0);
            change(&mut packet);
            packet
        };
        let cases: [(Packet, u64, bool); 9] = [
            (next(&|_| ()), 15, true),
            (next(&|_| ()), 16, false),
            (segment(V4, 101, 100, 0), 0, false),
            (segment(V4, 100, 101, 0), 0, false),
            (segment(V4, 100, 100, SYN), 0, false),
            (next(&|p| p.head_mut()[8] = 63), 0, false),
            (next(&|p| p.head_mut()[28] = 1), 0, false),
            (next(&|p| p.head_mut()[34] = 1), 0, false),
            (next(&|p| p.set_flow(2)), 0, false),
        ];
        for (n, (packet, due, joined)) in cases.into_iter().enumerate() {
            let mut departing = Departing::new(None);
            departing.push(first(), at(0));
            departing.push(packet, at(due));
            assert_eq!(sent(&mut departing).0 == [2], joined, "case {n}");
        }
    }

    #[test]
    fn joined_frames_stay_within_what_a_kernel_takes() {
        let mut departing = Departing::new(None);
        for n in 0..100 {
            departing.push(segment(V4, n * 1448, 1448, 0), at(0));
        }
        let (datagrams, _) = sent(&mut departing);
        assert_eq!(datagrams.iter().sum::<u32>(), 100);
        assert!(datagrams.iter().all(|n| n * 1448 <= 65_000));
        assert!(departing.frames().len() < 4);
    }

    #[test]
    fn flows_that_take_turns_are_joined_each_in_its_order() {
        let mut departing = Departing::new(None);
        for n in 0..6 {
            for flow in [1, 2] {
                let mut packet = segment(V4, n * 10, 10, 0);
                packet.set_flow(flow);
                packet.head_mut()[21] = flow as u8;
                departing.push(packet, at(0));
            }
        }
        assert_eq!(sent(&mut departing).0, [6, 6]);
    }

    #[test]
    fn a_filler_and_another_protocol_leave_with_their_octets_and_checksums() {
        let mut departing = Departing::new(None);
        let [source, destination] = V4.map(|a| a.parse().unwrap());
        for (proto, head) in [(protocol::UDP, 8), (protocol::ICMP, 8), (99, 0)] {
            let mut packet = Packet::build(
                |out| {
                    out[..head].fill(0);
                    head
                },
                Body::filler(5, 100),
            );
            if proto == protocol::UDP {
                packet.head_mut()[5] = 108;
            }
            ip::emit(packet.prepend(20), source, destination, proto, 0, head + 100);
            departing.push(packet, at(0));
        }
        departing.finish();
        for frame in departing.frames() {
            let mut octets = [&frame.head()[vnet::LEN..], &frame.pieces().concat()].concat();
            let is_udp = octets[9] == protocol::UDP;
            assert_eq!(Header::parse(frame.head()).unwrap().is_open(), is_udp);
            if is_udp {
                // What the device would do.
                checksum::finish(&mut octets).unwrap();
            }
            checksum::verify(&octets, false).unwrap();
            assert_eq!(octets[octets.len() - 100..], Body::filler(5, 100).to_bytes());
        }
        assert_eq!(departing.lost, 0);
    }
}

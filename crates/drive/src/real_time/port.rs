//! Where datagrams of real hosts enter and leave the model.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::BytesMut;
use derive_more::{Add, Sum};
use nix::errno::Errno;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, ReceiveTimestampns, SndBuf, SndBufForce};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, getsockopt, setsockopt, socket};

use airloom_base::{Instant, Packet};
use airloom_wire::edge::Received;

use super::buffers::Buffers;
use super::clock::Stamps;
use super::departing::Departing;
use super::sys::{self, ReceiveBatch, SendBatch};
use super::vnet::{self, Header};

/// A device through which datagrams of one real host come and go: a packet socket on a veth pair, or a TUN device.
/// The engine knows nothing else of devices.
pub trait Port: Send {
    /// Readable when something has arrived.
    fn readable(&self) -> BorrowedFd<'_>;
    /// Takes what has arrived, in order, as much as `intake` holds at a time. Never waits. True: there may be more.
    fn receive(
        &mut self,
        intake: &mut Intake,
        stamps: Stamps,
        arrivals: &mut VecDeque<Arrival>,
    ) -> io::Result<bool>;
    /// Takes a datagram that leaves at `due`; it is sent by the next [`Port::flush`]. True: it is time for that.
    fn push(&mut self, packet: Packet, due: Instant) -> bool;
    /// Sends what was pushed, and never waits: what the device does not take is lost and counted. `sent` is told when
    /// each datagram was due.
    fn flush(&mut self, sent: &mut dyn FnMut(&[Instant]));
    /// What it counted.
    fn counters(&mut self) -> PortCounters;
}

/// A datagram, or super-packet, that came out of a real host.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When: the kernel's stamp where there is one.
    pub at: Instant,
    /// What.
    pub received: Received,
}

/// Counts of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Sum, Add)]
pub struct PortCounters {
    /// Frames taken from the real host; a super-packet counts as one.
    pub received: u64,
    /// Datagrams given to the real host.
    pub sent: u64,
    /// Frames in which they were given: fewer where segments were joined.
    pub sent_frames: u64,
    /// Frames that were not IP (or too short to tell), thrown away.
    pub not_ip: u64,
    /// Datagrams that never leave a link (link-local, link-scope multicast), thrown away.
    pub link_local: u64,
    /// Frames lost because nobody read them in time: losses outside the model.
    pub overflow: u64,
    /// Frames for which there was no memory, the model holding all there is: losses outside the model.
    pub no_memory: u64,
    /// Datagrams that the device did not take: losses outside the model.
    pub unsent: u64,
    /// Frames that the two ends of the cable dropped by their own count: losses outside the model.
    pub device_drops: u64,
}

impl PortCounters {
    /// What was lost outside the model.
    pub fn lost(&self) -> u64 {
        self.overflow + self.no_memory + self.unsent + self.device_drops
    }
}

const ETHERNET: usize = 14;
const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86DD;
/// Octets of frames that may wait in the kernel.
const SOCKET_BUFFER: usize = 16 << 20;

/// Frames that are read at a time: many where many come, few otherwise, and few super-packets, whose work keeps the
/// engine longer.
const FRAMES: usize = 64;
const FEW: usize = 8;
/// Above this average size frames count as super-packets.
const LARGE: usize = 4096;

/// How many frames a port reads at a time. Each port has its own: an empty one beside a flooded one must not make that
/// one's portions small.
struct Portion(usize);

impl Portion {
    /// The last portion had `count` frames with so many `octets`.
    fn learn(&mut self, count: usize, octets: usize) {
        let is_busy = count >= FEW && octets <= count * LARGE;
        // Each place costs a little even when it stays empty: no more than twice what came.
        self.0 = if is_busy { (2 * count).min(FRAMES) } else { FEW };
    }
}

/// What reading takes: shared by all ports of a laboratory.
pub struct Intake {
    batch: ReceiveBatch,
    frames: Vec<BytesMut>,
    memory: Buffers,
}

impl Intake {
    /// The model holds at most `memory` octets.
    pub(super) fn new(memory: usize) -> Intake {
        let mut memory = Buffers::new(memory);
        let frames = std::iter::from_fn(|| memory.fresh()).take(FRAMES).collect();
        Intake { batch: ReceiveBatch::new(FRAMES), frames, memory }
    }

    /// Reads a portion of the frames of `socket`: how many, and whether there may be more.
    fn read(&mut self, socket: BorrowedFd, portion: &mut Portion) -> io::Result<(usize, bool)> {
        let limit = portion.0.min(self.frames.len());
        let count = match self.batch.receive(socket, &mut self.frames[..limit]) {
            Ok(count) => count,
            Err(error) => match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
                // A device that is gone says so once; there is nothing to read then.
                Errno::EAGAIN | Errno::EINTR | Errno::ENETDOWN => 0,
                _ => return Err(error),
            },
        };
        let octets: usize = (0..count).filter_map(|n| self.batch.len(n)).sum();
        portion.learn(count, octets);
        Ok((count, count == limit))
    }

    /// Frame `n`, read into its buffer by somebody else or by [`Intake::read`].
    pub(super) fn frame(&mut self, n: usize) -> &mut BytesMut {
        &mut self.frames[n]
    }

    /// The datagram behind `skip` octets of a frame of `len` octets, to be shared. `None`: no memory.
    pub(super) fn take(&mut self, n: usize, skip: usize, len: usize, header: Header) -> Option<Received> {
        let mut datagram = self.memory.share(&mut self.frames[n], len)?;
        bytes::Buf::advance(&mut datagram, skip);
        Some(Received { datagram, transport_done: header.transport_done(), segment: header.segment_size() })
    }
}

/// What a device counts in its namespace's table.
pub(super) struct DeviceTable {
    table: Arc<File>,
    device: String,
    before: u64,
}

impl DeviceTable {
    /// The counters of `device`, from now on, in the table of its namespace.
    pub(super) fn new(table: Arc<File>, device: String) -> DeviceTable {
        let mut watched = DeviceTable { table, device, before: 0 };
        watched.before = watched.total();
        watched
    }

    /// Frames that the device should have sent and dropped.
    pub(super) fn drops(&self) -> u64 {
        self.total().saturating_sub(self.before)
    }

    fn total(&self) -> u64 {
        let mut text = Vec::new();
        let mut part = [0; 4096];
        while let Ok(len @ 1..) = self.table.read_at(&mut part, text.len() as u64) {
            text.extend_from_slice(&part[..len]);
        }
        transmit_drops(&String::from_utf8_lossy(&text), &self.device).unwrap_or(0)
    }
}

/// The number in the column of dropped transmissions: eight columns of reception come before those of transmission.
fn transmit_drops(table: &str, device: &str) -> Option<u64> {
    let line = table.lines().find_map(|line| line.trim_start().strip_prefix(device)?.strip_prefix(':'))?;
    line.split_whitespace().nth(8 + 3)?.parse().ok()
}

/// One end of a veth pair, read and written as raw frames.
pub(super) struct PacketSocket {
    socket: OwnedFd,
    departing: Departing,
    batch: SendBatch,
    portion: Portion,
    counters: PortCounters,
    /// Both ends of the cable.
    devices: Vec<DeviceTable>,
}

impl PacketSocket {
    /// Opens a socket on device `index` of the calling thread's namespace. This is the only step that needs the
    /// rights of that namespace: the socket may be handed to another process.
    pub(super) fn open(index: u32) -> io::Result<OwnedFd> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        // Protocol 0: nothing is received before the socket is bound to its one device.
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, None::<SockProtocol>)?;
        // Larger than an ordinary user may ask for; what is allowed has to do where that is refused.
        if setsockopt(&socket, RcvBufForce, &SOCKET_BUFFER).is_err() {
            let _ = setsockopt(&socket, RcvBuf, &SOCKET_BUFFER);
        }
        if setsockopt(&socket, SndBufForce, &SOCKET_BUFFER).is_err() {
            let _ = setsockopt(&socket, SndBuf, &SOCKET_BUFFER);
        }
        setsockopt(&socket, ReceiveTimestampns, &true)?;
        setsockopt(&socket, sys::IgnoreOutgoing, &true)?;
        setsockopt(&socket, sys::OffloadHeaders, &true)?;
        setsockopt(&socket, sys::BypassQueue, &true)?;
        sys::bind_to_device(socket.as_fd(), index)?;
        Ok(socket)
    }

    /// A port on `socket`; `here` and `there` are the link-layer addresses of this end and of the host's.
    pub(super) fn new(socket: OwnedFd, here: [u8; 6], there: [u8; 6]) -> PacketSocket {
        let mut addresses = [0; 12];
        addresses[..6].copy_from_slice(&there);
        addresses[6..].copy_from_slice(&here);
        PacketSocket {
            socket,
            departing: Departing::new(Some(addresses)),
            batch: SendBatch::default(),
            portion: Portion(FEW),
            counters: PortCounters::default(),
            devices: Vec::new(),
        }
    }

    /// Counts what `device` drops with what is lost at this port.
    pub(super) fn watch(&mut self, device: DeviceTable) {
        self.devices.push(device);
    }
}

impl Port for PacketSocket {
    fn readable(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn receive(
        &mut self,
        intake: &mut Intake,
        stamps: Stamps,
        arrivals: &mut VecDeque<Arrival>,
    ) -> io::Result<bool> {
        let (count, more) = match intake.read(self.socket.as_fd(), &mut self.portion) {
            // A frame that the offload header cannot describe: the kernel has thrown it away.
            Err(error) if error.raw_os_error() == Some(Errno::EINVAL as i32) => {
                self.counters.overflow += 1;
                return Ok(true);
            }
            other => other?,
        };
        for n in 0..count {
            let at = intake.batch.stamp(n).map_or(stamps.now(), |stamp| stamps.nominal(stamp));
            let Some(len) = intake.batch.len(n) else {
                self.counters.overflow += 1;
                continue;
            };
            let frame = &intake.frame(n)[..len];
            let Some(header) = Header::parse(frame).filter(|h| !h.is_to_be_fragmented()) else {
                self.counters.not_ip += 1;
                continue;
            };
            match classify(&frame[vnet::LEN..]) {
                Kind::Datagram => match intake.take(n, vnet::LEN + ETHERNET, len, header) {
                    Some(received) => {
                        self.counters.received += 1;
                        arrivals.push_back(Arrival { at, received });
                    }
                    None => self.counters.no_memory += 1,
                },
                Kind::LinkLocal => self.counters.link_local += 1,
                Kind::NotIp => self.counters.not_ip += 1,
            }
        }
        Ok(more)
    }

    fn push(&mut self, packet: Packet, due: Instant) -> bool {
        self.departing.push(packet, due);
        self.departing.is_full()
    }

    fn flush(&mut self, sent: &mut dyn FnMut(&[Instant])) {
        if self.departing.is_empty() {
            return;
        }
        self.departing.finish();
        let mut frames = self.departing.frames();
        while !frames.is_empty() {
            let messages = frames.iter().map(|f| (f.head(), f.pieces()));
            match self.batch.send(self.socket.as_fd(), messages) {
                Ok(count) => {
                    let (taken, rest) = frames.split_at(count.clamp(1, frames.len()));
                    self.counters.sent_frames += taken.len() as u64;
                    self.counters.sent += taken.iter().map(|f| u64::from(f.datagrams())).sum::<u64>();
                    frames = rest;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.counters.unsent += u64::from(frames[0].datagrams());
                    frames = &frames[1..];
                }
            }
        }
        sent(self.departing.dues());
        self.departing.clear();
    }

    fn counters(&mut self) -> PortCounters {
        // The kernel forgets its count when it is read.
        let dropped = getsockopt(&self.socket, sys::PacketStatistics).map_or(0, |stats| stats.tp_drops);
        self.counters.overflow += u64::from(dropped);
        self.counters.unsent += std::mem::take(&mut self.departing.lost);
        let device_drops = self.devices.iter().map(DeviceTable::drops).sum();
        PortCounters { device_drops, ..self.counters }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Datagram,
    LinkLocal,
    NotIp,
}

fn classify(frame: &[u8]) -> Kind {
    let Some((header, datagram)) = frame.split_at_checked(ETHERNET) else { return Kind::NotIp };
    match u16::from_be_bytes([header[12], header[13]]) {
        ETHERTYPE_IPV4 => scope(datagram, 4),
        ETHERTYPE_IPV6 => scope(datagram, 6),
        _ => Kind::NotIp,
    }
}

/// Does a datagram of that version leave its link?
pub(super) fn scope(datagram: &[u8], version: u8) -> Kind {
    if version == 4 {
        return match datagram.get(16..20) {
            //= RFC 5771 (4): 224.0.0.0/24 is not forwarded, whatever the hop limit says.
            Some([224, 0, 0, _] | [255, 255, 255, 255]) => Kind::LinkLocal,
            _ => Kind::Datagram,
        };
    }
    match (datagram.get(8..10), datagram.get(24..26)) {
        //= RFC 4291 (2.5.6, 2.7): fe80::/10, and multicast of interface and link scope, stay on the link.
        (Some([0xfe, 0x80..=0xbf]), _) | (_, Some([0xfe, 0x80..=0xbf])) => Kind::LinkLocal,
        (_, Some([0xff, scope])) if scope & 0x0f <= 2 => Kind::LinkLocal,
        _ => Kind::Datagram,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u16, datagram: &[u8]) -> Vec<u8> {
        [&[0; 12][..], &kind.to_be_bytes(), datagram].concat()
    }

    #[test]
    fn frames_that_are_not_ip_or_too_short_are_told_apart() {
        for len in 0..ETHERNET {
            assert_eq!(classify(&vec![0; len]), Kind::NotIp);
        }
        assert_eq!(classify(&frame(0x0806, &[0; 28])), Kind::NotIp);
        assert_eq!(classify(&frame(ETHERTYPE_IPV4, &[0x45])), Kind::Datagram);
    }

    #[test]
    fn portions_grow_with_what_comes_but_not_for_super_packets() {
        let mut portion = Portion(FEW);
        let mut sizes = Vec::new();
        for (count, octets) in
            [(3, 300), (8, 800), (16, 1600), (32, 3200), (64, 6400), (20, 2000), (8, 8 * 64_000)]
        {
            portion.learn(count, octets);
            sizes.push(portion.0);
        }
        assert_eq!(sizes, [8, 16, 32, 64, 64, 40, 8]);
        portion.learn(0, 0);
        assert_eq!(portion.0, FEW);
    }

    #[test]
    fn what_never_leaves_a_link_is_kept_from_the_model() {
        let mut v4 = [0; 20];
        v4[16..].copy_from_slice(&[224, 0, 0, 22]);
        assert_eq!(classify(&frame(ETHERTYPE_IPV4, &v4)), Kind::LinkLocal);
        v4[16..].copy_from_slice(&[224, 0, 1, 1]);
        assert_eq!(classify(&frame(ETHERTYPE_IPV4, &v4)), Kind::Datagram);
        let mut v6 = [0; 40];
        v6[24..26].copy_from_slice(&[0xff, 0x02]);
        assert_eq!(classify(&frame(ETHERTYPE_IPV6, &v6)), Kind::LinkLocal);
        v6[24..26].copy_from_slice(&[0xff, 0x0e]);
        assert_eq!(classify(&frame(ETHERTYPE_IPV6, &v6)), Kind::Datagram);
    }

    #[test]
    fn a_devices_own_count_is_found_in_the_table() {
        let table = "Inter-|   Receive                            |  Transmit\n \
            face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo colls carrier compressed\n    \
            lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0\n   \
            p10: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        assert_eq!(transmit_drops(table, "p10"), Some(12));
        assert_eq!(transmit_drops(table, "lo"), Some(0));
        assert_eq!(transmit_drops(table, "p1"), None);
        assert_eq!(transmit_drops("", "p1"), None);
    }
}

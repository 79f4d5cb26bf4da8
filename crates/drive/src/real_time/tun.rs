//! The second kind of port: a TUN device in the host's namespace. It has no link layer and needs no neighbours, but
//! says nothing about when a datagram came: waking up counts as delay.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use airloom_base::{Instant, Packet};

use super::clock::Stamps;
use super::departing::{Departing, MOST_PIECES};
use super::port::{Arrival, DeviceTable, Intake, Kind, Port, PortCounters, scope};
use super::vnet::{self, Header};

/// Datagrams taken at a time.
const BATCH: usize = 16;

/// A TUN device, read and written with offload headers.
pub(super) struct Tun {
    device: File,
    departing: Departing,
    counters: PortCounters,
    table: DeviceTable,
}

impl Tun {
    /// A port on an open device, whose drops `table` counts.
    pub(super) fn new(device: OwnedFd, table: DeviceTable) -> Tun {
        let counters = PortCounters::default();
        Tun { device: device.into(), departing: Departing::new(None), counters, table }
    }
}

impl Port for Tun {
    fn readable(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }

    fn receive(
        &mut self,
        intake: &mut Intake,
        stamps: Stamps,
        arrivals: &mut VecDeque<Arrival>,
    ) -> io::Result<bool> {
        for _ in 0..BATCH {
            let frame = intake.frame(0);
            let len = match self.device.read(frame) {
                Ok(len) => len,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) => return Err(e),
            };
            let frame = &frame[..len];
            let datagram = frame.get(vnet::LEN..).unwrap_or_default();
            let version = datagram.first().map_or(0, |octet| octet >> 4);
            let (Some(header), 4 | 6) = (Header::parse(frame), version) else {
                self.counters.not_ip += 1;
                continue;
            };
            match scope(datagram, version) {
                Kind::Datagram if !header.is_to_be_fragmented() => {
                    match intake.take(0, vnet::LEN, len, header) {
                        Some(received) => {
                            self.counters.received += 1;
                            arrivals.push_back(Arrival { at: stamps.this_moment(), received });
                        }
                        None => self.counters.no_memory += 1,
                    }
                }
                Kind::LinkLocal => self.counters.link_local += 1,
                _ => self.counters.not_ip += 1,
            }
        }
        Ok(true)
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
        for frame in self.departing.frames() {
            let mut parts = [IoSlice::new(&[]); MOST_PIECES + 1];
            let count = frame.pieces().len() + 1;
            parts[0] = IoSlice::new(frame.head());
            for (part, piece) in parts[1..].iter_mut().zip(frame.pieces()) {
                *part = IoSlice::new(piece);
            }
            let datagrams = u64::from(frame.datagrams());
            let octets: usize = parts[..count].iter().map(|p| p.len()).sum();
            // A device takes a frame whole or not at all.
            if self.device.write_vectored(&parts[..count]).is_ok_and(|taken| taken == octets) {
                self.counters.sent_frames += 1;
                self.counters.sent += datagrams;
            } else {
                self.counters.unsent += datagrams;
            }
        }
        sent(self.departing.dues());
        self.departing.clear();
    }

    fn counters(&mut self) -> PortCounters {
        self.counters.unsent += std::mem::take(&mut self.departing.lost);
        PortCounters { device_drops: self.table.drops(), ..self.counters }
    }
}

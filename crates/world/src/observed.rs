//! Flows between two real hosts, as the model sees them pass.
//!
//! No end of such a flow is in the model, so what an end would report is read from the headers where they enter and leave
//! it. Some things stay unknown: round-trip times, expiries of timers, and which retransmissions were needless.

use std::net::SocketAddr;

use airloom_base::lookup::Table;
use airloom_base::record::{FlowRecord, Record};
use airloom_base::service::{CloseReason, FlowFacts};
use airloom_base::{Instant, Outbox, Packet};
use airloom_wire::ip::Ip;

/// Flows that are observed; more have no row.
const MOST: usize = 65_536;

const TCP: u8 = 6;
const UDP: u8 = 17;
/// Flags of TCP (RFC 9293, 3.1).
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// All of them.
#[derive(Default)]
pub(crate) struct Observed {
    flows: Table<u32, Flow>,
    /// In the order in which they began.
    order: Vec<u32>,
}

struct Flow {
    proto: &'static str,
    /// The end whose datagram was the first.
    opener: SocketAddr,
    acceptor: SocketAddr,
    open: Instant,
    close: Option<Instant>,
    /// The opener's, then the acceptor's.
    ends: [End; 2],
}

#[derive(Clone, Copy, Default)]
struct End {
    facts: FlowFacts,
    /// Behind the last octet that it has sent, and that it has acknowledged (TCP).
    sent_up_to: Option<u32>,
    acknowledged: Option<u32>,
    /// The other's FIN has reached it.
    heard_fin: bool,
}

impl Flow {
    /// The end `here` has everything of the other before `up_to`, in order.
    fn acknowledge(&mut self, here: usize, up_to: u32) {
        let Some(sent) = self.ends[1 - here].sent_up_to else { return };
        let other = self.ends[1 - here].facts.app_sent;
        let end = &mut self.ends[here];
        // What came before the first acknowledgement: all that was sent up to then, less what is still on its way.
        let new = match end.acknowledged {
            None => other.saturating_sub(u64::from(sent.wrapping_sub(up_to))),
            Some(before) => match up_to.wrapping_sub(before) {
                0x8000_0000.. => return,
                new => u64::from(new),
            },
        };
        end.acknowledged = Some(up_to);
        // A FIN is acknowledged like an octet.
        end.facts.app_received = (end.facts.app_received + new).min(other);
    }
}

/// What is read of a datagram.
struct View {
    protocol: u8,
    source: SocketAddr,
    destination: SocketAddr,
    /// Octets with the transport's header, in all segments of a super-packet.
    wire: u64,
    payload: u64,
    segments: u64,
    sequence: u32,
    acknowledgement: u32,
    flags: u8,
}

impl View {
    fn of(packet: &Packet) -> Option<View> {
        let ip = Ip::parse(packet.head()).ok()?;
        let unit = packet.head().get(ip.header_len..)?;
        let word = |at: usize| unit.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]]));
        let len = packet.wire_len().checked_sub(ip.header_len)?;
        let number = |at: usize| Some(u32::from(word(at)?) << 16 | u32::from(word(at + 2)?));
        let (header, sequence, acknowledgement, flags) = match ip.protocol {
            TCP => (usize::from(*unit.get(12)? >> 4) * 4, number(4)?, number(8)?, *unit.get(13)?),
            UDP => (8, 0, 0, 0),
            _ => (0, 0, 0, 0),
        };
        let payload = len.checked_sub(header)?;
        let segments = match usize::from(packet.segment_size()) {
            0 => 1,
            size => payload.div_ceil(size).max(1),
        };
        Some(View {
            protocol: ip.protocol,
            source: SocketAddr::new(ip.source, word(0)?),
            destination: SocketAddr::new(ip.destination, word(2)?),
            wire: (len + (segments - 1) * header) as u64,
            // What SCTP carries for applications is inside its chunks.
            payload: if matches!(ip.protocol, TCP | UDP) { payload as u64 } else { 0 },
            segments: segments as u64,
            sequence,
            acknowledgement,
            flags,
        })
    }

    /// How much of the payload lies behind `up_to`, which moves to its end.
    fn new_octets(&self, up_to: &mut Option<u32>) -> u64 {
        if self.protocol != TCP {
            return self.payload;
        }
        let syn = u32::from(self.flags & SYN != 0);
        let end = self.sequence.wrapping_add(syn).wrapping_add(self.payload as u32);
        let new = match *up_to {
            None => self.payload,
            // Half of the sequence space is before, half behind (RFC 9293, 3.4).
            Some(before) => match end.wrapping_sub(before) {
                0 | 0x8000_0000.. => return 0,
                new => u64::from(new).min(self.payload),
            },
        };
        *up_to = Some(end);
        new
    }
}

impl Observed {
    /// A datagram of flow `number` came from a real host and is for another one.
    pub(crate) fn sent(&mut self, now: Instant, number: u32, packet: &Packet) {
        let Some(view) = View::of(packet).filter(|_| number != 0) else { return };
        if !self.flows.contains(&number) {
            if self.flows.len() >= MOST {
                return;
            }
            let proto = match view.protocol {
                TCP => "tcp",
                UDP => "udp",
                _ => "sctp",
            };
            let (opener, acceptor, ends) = (view.source, view.destination, [End::default(); 2]);
            self.flows.insert(number, Flow { proto, opener, acceptor, open: now, close: None, ends });
            self.order.push(number);
        }
        let Some(flow) = self.flows.get_mut(&number) else { return };
        let here = usize::from(view.source != flow.opener);
        if view.flags & ACK != 0 {
            flow.acknowledge(here, view.acknowledgement);
        }
        let end = &mut flow.ends[here];
        let new = view.new_octets(&mut end.sent_up_to);
        end.facts.app_sent += new;
        end.facts.wire_sent += view.wire;
        end.facts.segments += view.segments;
        if view.payload > 0 && new == 0 {
            end.facts.resent += view.segments;
        }
    }

    /// A datagram reaches a real host.
    pub(crate) fn received(&mut self, now: Instant, packet: &Packet) {
        let Some(flow) = self.flows.get_mut(&packet.flow()) else { return };
        let Some(view) = View::of(packet) else { return };
        let here = usize::from(view.destination != flow.opener);
        let end = &mut flow.ends[here];
        end.facts.wire_received += view.wire;
        if view.payload > 0 {
            end.facts.first_byte.get_or_insert(now);
        }
        if view.protocol != TCP {
            end.facts.app_received += view.payload;
            end.facts.established.get_or_insert(now);
            return;
        }
        // The opener may send when the answer to its SYN is there, the acceptor when that was acknowledged.
        let answers = if here == 0 { view.flags & SYN != 0 } else { view.flags & (SYN | RST) == 0 };
        if answers {
            end.facts.established.get_or_insert(now);
        }
        end.heard_fin |= view.flags & FIN != 0;
        let was_open = end.facts.established.is_some();
        let reason = match view.flags & RST != 0 {
            true if here == 0 && !was_open => Some(CloseReason::Refused),
            true => Some(CloseReason::Reset),
            false if flow.ends.iter().all(|e| e.heard_fin) => Some(CloseReason::Finished),
            false => None,
        };
        if let (Some(reason), None) = (reason, flow.close) {
            flow.close = Some(now);
            for end in &mut flow.ends {
                end.facts.end = Some(reason);
            }
        }
    }

    /// Both ends of each flow, at the end of the run.
    pub(crate) fn report(&mut self, records: &mut Outbox) {
        for number in std::mem::take(&mut self.order) {
            let Some(flow) = self.flows.remove(&number) else { continue };
            let [opener, acceptor] = flow.ends;
            let views =
                [(true, flow.opener, flow.acceptor, opener), (false, flow.acceptor, flow.opener, acceptor)];
            for (opener, local, remote, end) in views {
                records.push(Record::Flow(FlowRecord {
                    flow: number,
                    proto: flow.proto,
                    local: local.to_string(),
                    remote: remote.to_string(),
                    opener,
                    open: flow.open,
                    close: flow.close,
                    facts: end.facts,
                }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::Body;

    use super::*;

    const CLIENT: ([u8; 4], u16) = ([10, 0, 0, 1], 1000);
    const SERVER: ([u8; 4], u16) = ([10, 0, 0, 2], 80);

    fn segment(from: ([u8; 4], u16), sequence: u32, flags: u8, payload: u32, up_to: u32) -> Packet {
        let to = if from == CLIENT { SERVER } else { CLIENT };
        let mut head = [0; 40];
        head[0] = 0x45;
        head[2..4].copy_from_slice(&(40 + payload as u16).to_be_bytes());
        (head[8], head[9]) = (64, TCP);
        head[12..16].copy_from_slice(&from.0);
        head[16..20].copy_from_slice(&to.0);
        head[20..22].copy_from_slice(&from.1.to_be_bytes());
        head[22..24].copy_from_slice(&to.1.to_be_bytes());
        head[24..28].copy_from_slice(&sequence.to_be_bytes());
        head[28..32].copy_from_slice(&up_to.to_be_bytes());
        (head[32], head[33]) = (5 << 4, if up_to == 0 { flags } else { flags | ACK });
        let body = if payload == 0 { Body::EMPTY } else { Body::filler(1, payload) };
        let fill = |out: &mut [u8]| {
            out[..40].copy_from_slice(&head);
            40
        };
        let mut packet = Packet::build(fill, body);
        packet.set_flow(7);
        packet
    }

    fn rows(observed: &mut Observed) -> Vec<FlowRecord> {
        let mut records = Outbox::default();
        records.ask_facts(true, false);
        observed.report(&mut records);
        let flows = records.facts.iter();
        flows.filter_map(|r| if let Record::Flow(f) = r { Some(f.clone()) } else { None }).collect()
    }

    #[test]
    fn a_transfer_with_a_loss_has_both_ends_views() {
        let mut observed = Observed::default();
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut pass = |ms: u64, packet: Packet, arrives: bool| {
            observed.sent(at(ms), 7, &packet);
            if arrives {
                observed.received(at(ms + 10), &packet);
            }
        };
        // The client's sequence numbers wrap.
        let first = u32::MAX - 4;
        let client = |n: u32| first.wrapping_add(n);
        pass(0, segment(CLIENT, first, SYN, 0, 0), true);
        pass(10, segment(SERVER, 99, SYN, 0, client(1)), true);
        pass(20, segment(CLIENT, client(1), 0, 100, 100), true);
        pass(30, segment(SERVER, 100, 0, 1000, client(101)), false);
        pass(31, segment(SERVER, 1100, 0, 1000, client(101)), true);
        pass(41, segment(CLIENT, client(101), 0, 0, 100), true);
        pass(60, segment(SERVER, 100, 0, 1000, client(101)), true);
        pass(80, segment(CLIENT, client(101), FIN, 0, 2100), true);
        pass(90, segment(SERVER, 2100, FIN, 0, client(102)), true);
        let [client, server] = rows(&mut observed).try_into().unwrap();
        assert_eq!((client.local.as_str(), client.remote.as_str()), ("10.0.0.1:1000", "10.0.0.2:80"));
        assert_eq!((client.opener, client.open, client.close), (true, at(0), Some(at(100))));
        assert_eq!((client.facts.established, client.facts.first_byte), (Some(at(20)), Some(at(41))));
        assert_eq!((client.facts.app_sent, server.facts.app_received), (100, 100));
        assert_eq!(client.facts.app_received, 2000);
        assert_eq!((server.facts.app_sent, server.facts.resent, server.facts.segments), (2000, 1, 5));
        assert_eq!((server.facts.wire_sent, client.facts.wire_received), (3100, 2080));
        assert_eq!(server.facts.end, Some(CloseReason::Finished));
        assert!(rows(&mut observed).is_empty(), "each is reported once");
    }

    #[test]
    fn a_refused_opening_says_so_and_what_is_no_flow_is_ignored() {
        let mut observed = Observed::default();
        for packet in [segment(CLIENT, 1, SYN, 0, 0), segment(SERVER, 0, RST, 0, 2)] {
            observed.sent(Instant::ZERO, 7, &packet);
            observed.received(Instant::ZERO, &packet);
        }
        observed.sent(Instant::ZERO, 0, &segment(CLIENT, 1, SYN, 0, 0));
        let rows = rows(&mut observed);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].facts.end, Some(CloseReason::Refused));
    }
}

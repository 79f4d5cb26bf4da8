//! Where a real host meets the model.

use std::net::IpAddr;
use std::sync::Arc;

use airloom_base::lookup::Table;
use airloom_base::{Outbox, Packet};
use airloom_wire::ip::{self, Ip};

/// Index of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortId(pub u32);

/// How many flows of real programs are told apart; more share number 0.
const FLOW_LIMIT: usize = 65_536;

/// What a real host has at its end of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortDevice {
    /// One end of a cable; the other is read and written as raw frames. Needs no device file, and stamps what comes.
    #[default]
    Veth,
    /// A TUN device. No link layer, no stamps.
    Tun,
}

impl PortDevice {
    /// Both.
    pub const ALL: [PortDevice; 2] = [PortDevice::Veth, PortDevice::Tun];

    /// As in scenario files.
    pub const fn name(self) -> &'static str {
        match self {
            PortDevice::Veth => "veth",
            PortDevice::Tun => "tun",
        }
    }
}

/// One interface of a real host.
#[derive(Clone)]
pub struct PortInfo {
    /// Name of the host.
    pub host_name: String,
    /// Name of the link.
    pub link_name: String,
    /// Addresses of the interface.
    pub addresses: Vec<IpAddr>,
    /// Networks (address, prefix length) that lie behind this interface; length 0 is everything that has no better
    /// route.
    pub routes: Vec<(IpAddr, u8)>,
    /// Largest IP datagram.
    pub mtu: u16,
    /// What the host has there.
    pub device: PortDevice,
    /// Does the host pass on datagrams that are not for it?
    pub forwards: bool,
    /// Does the way to the outside world begin at the host?
    pub is_exit: bool,
    /// TCP ports of the host that lead to the same ports of this machine's loopback.
    pub loopback: Vec<u16>,
    /// Addresses and names of all hosts, as this one should use them.
    pub names: Arc<[(IpAddr, String)]>,
    /// Name servers of the network; then `names` has nothing but its own.
    pub name_servers: Vec<IpAddr>,
    /// What the host's TCP is told.
    pub tcp: RealTcp,
    /// Program and arguments to run in the host.
    pub command: Option<Vec<String>>,
    pub(crate) host: u32,
    pub(crate) interface: u16,
}

/// Settings of a real host's TCP; `None`: what its kernel does by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RealTcp {
    /// Largest window to announce, in octets; where it grows, the first one.
    pub receive_buffer: Option<u64>,
    /// Window announced at the beginning, in octets.
    pub initial_receive_window: Option<u64>,
    /// How far the receive buffer grows with the path; `None`: it does not.
    pub receive_buffer_max: Option<u64>,
    /// Send buffer, in octets, from the beginning.
    pub send_buffer: Option<u64>,
    /// How far it grows with the path; `None`: it does not.
    pub send_buffer_max: Option<u64>,
    /// Congestion control.
    pub congestion: Option<String>,
    /// Segments of the congestion window at the beginning.
    pub initial_window: Option<u32>,
    /// Offer selective acknowledgements?
    pub sack: Option<bool>,
    /// Report duplicates in them?
    pub dsack: Option<bool>,
    /// Send tail loss probes?
    pub tlp: Option<bool>,
    /// Detect spurious timeouts?
    pub frto: Option<bool>,
    /// Offer timestamps?
    pub timestamps: Option<bool>,
    /// Offer window scaling?
    pub window_scaling: Option<bool>,
    /// Explicit congestion notification: 0 never, 1 ask for it, 2 grant it.
    pub ecn: Option<u8>,
}

/// Numbers for the flows of real programs; both directions, and all ports, agree.
#[derive(Default)]
pub(crate) struct FlowTable(Table<(u128, u128, u64), u32>);

impl FlowTable {
    /// The number of the flow that `packet`, from a real host, belongs to; 0 if it has no ports.
    pub(crate) fn number(&mut self, packet: &Packet, records: &mut Outbox) -> u32 {
        let Some(key) = Self::key(packet) else { return 0 };
        if let Some(flow) = self.0.get(&key) {
            return *flow;
        }
        if self.0.len() >= FLOW_LIMIT {
            return 0;
        }
        let flow = records.next_flow();
        self.0.insert(key, flow);
        flow
    }

    /// Notes the number that a simulated host gave to the flow of `packet`, which goes to a real host: the answers
    /// belong to it too.
    pub(crate) fn learn(&mut self, packet: &Packet) {
        let flow = packet.flow();
        if flow == 0 {
            return;
        }
        let Some(key) = Self::key(packet) else { return };
        if self.0.len() < FLOW_LIMIT || self.0.contains(&key) {
            self.0.insert(key, flow);
        }
    }

    /// Addresses, ports and protocol, the same for both directions.
    fn key(packet: &Packet) -> Option<(u128, u128, u64)> {
        let header = Ip::parse(packet.head()).ok()?;
        let ports = packet.head().get(header.header_len..header.header_len + 4);
        let &[a, b, c, d] = ports.filter(|_| matches!(header.protocol, 6 | 17 | 132))? else { return None };
        let (one, two) = (u64::from(u16::from_be_bytes([a, b])), u64::from(u16::from_be_bytes([c, d])));
        let (source, destination) = (ip::key(header.source), ip::key(header.destination));
        let protocol = u64::from(header.protocol);
        Some(if (source, one) < (destination, two) {
            (source, destination, protocol << 32 | one << 16 | two)
        } else {
            (destination, source, protocol << 32 | two << 16 | one)
        })
    }
}

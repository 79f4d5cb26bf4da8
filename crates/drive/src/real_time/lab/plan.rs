//! What a laboratory is to consist of, as the keeper gets it.

use std::net::IpAddr;

use airloom_world::PortInfo;

use super::names::Names;

/// A real host.
pub(super) struct HostPlan {
    pub(super) name: String,
    pub(super) names: Names,
    pub(super) has_v6: bool,
    pub(super) forwards: bool,
    /// Kernel settings below `/proc/sys/net/`; the run fails where one cannot be made.
    pub(super) settings: Vec<(&'static str, String)>,
}

/// Hosts and their ports.
pub(super) struct Plan {
    pub(super) hosts: Vec<HostPlan>,
    /// Each with the index of its host.
    pub(super) ports: Vec<(usize, PortInfo)>,
}

impl Plan {
    /// The laboratory for these ports. Hosts are in the order of their first ports.
    pub(super) fn new(ports: &[PortInfo]) -> Plan {
        let mut hosts: Vec<HostPlan> = Vec::new();
        let mut of_ports = Vec::new();
        for port in ports {
            let known = hosts.iter().position(|h| h.name == port.host_name);
            let host = known.unwrap_or_else(|| {
                hosts.push(HostPlan {
                    name: port.host_name.clone(),
                    names: Names::new(&port.host_name, &port.names, &[]),
                    has_v6: false,
                    forwards: port.forwards,
                    settings: settings(port),
                });
                hosts.len() - 1
            });
            hosts[host].has_v6 |= port.addresses.iter().any(IpAddr::is_ipv6);
            of_ports.push((host, port.clone()));
        }
        Plan { hosts, ports: of_ports }
    }
}

/// Smallest buffer, and the one that autotuning begins with, as a kernel has them by default.
const SMALLEST: u64 = 4096;
const FIRST_RECEIVE: u64 = 131_072;
const FIRST_SEND: u64 = 16_384;

/// What the scenario says about the host's TCP, in the kernel's words.
fn settings(port: &PortInfo) -> Vec<(&'static str, String)> {
    let mut settings = Vec::new();
    if let Some(window) = port.tcp.receive_buffer {
        // Half of a receive buffer is for bookkeeping, the other half is announced as window (tcp_adv_win_scale 1).
        let largest = (2 * window).max(SMALLEST);
        settings.push(("ipv4/tcp_rmem", format!("{SMALLEST} {} {largest}", FIRST_RECEIVE.min(largest))));
    }
    if let Some(buffer) = port.tcp.send_buffer {
        let largest = buffer.max(SMALLEST);
        settings.push(("ipv4/tcp_wmem", format!("{SMALLEST} {} {largest}", FIRST_SEND.min(largest))));
    }
    if let Some(name) = &port.tcp.congestion {
        // What is called NewReno in the standards is `reno` in a kernel.
        let name = if name == "newreno" { "reno" } else { name };
        settings.push(("ipv4/tcp_congestion_control", name.to_owned()));
    }
    settings
}

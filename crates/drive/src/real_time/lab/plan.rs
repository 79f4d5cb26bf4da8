//! What a laboratory is to consist of, as the keeper gets it.

use std::net::IpAddr;

use airloom_base::Duration;
use airloom_world::PortInfo;

use super::lan::Lan;
use super::names::Names;
use super::outside::WayOut;
use super::tcp;

/// A real host.
pub(super) struct HostPlan {
    pub(super) name: String,
    pub(super) names: Names,
    pub(super) has_v6: bool,
    pub(super) forwards: bool,
    /// Does the way to the outside world begin here?
    pub(super) is_exit: bool,
    /// TCP ports that lead to this machine's loopback.
    pub(super) loopback: Vec<u16>,
    /// Kernel settings below `/proc/sys/net/`; the run fails where one cannot be made.
    pub(super) settings: Vec<(&'static str, String)>,
}

/// Hosts and their ports.
pub(super) struct Plan {
    pub(super) hosts: Vec<HostPlan>,
    /// Each with the index of its host.
    pub(super) ports: Vec<(usize, PortInfo)>,
    /// To the outside world, if a host is the exit.
    pub(super) way_out: Option<WayOut>,
    /// The interface whose devices are behind the first host, if there is one.
    pub(super) lan: Option<Lan>,
}

impl Plan {
    /// The laboratory for these ports. Hosts are in the order of their first ports.
    pub(super) fn new(ports: &[PortInfo], way_out: Option<WayOut>, lan: Option<Lan>) -> Plan {
        let servers = way_out.as_ref().map(WayOut::name_servers).unwrap_or_default();
        let mut hosts: Vec<HostPlan> = Vec::new();
        let mut of_ports = Vec::new();
        for port in ports {
            let known = hosts.iter().position(|h| h.name == port.host_name);
            let host = known.unwrap_or_else(|| {
                hosts.push(HostPlan {
                    name: port.host_name.clone(),
                    names: match port.name_servers.as_slice() {
                        [] => Names::new(&port.host_name, &port.names, &servers),
                        own => Names::new(&port.host_name, &port.names, own),
                    },
                    has_v6: false,
                    forwards: port.forwards || port.is_exit,
                    is_exit: port.is_exit,
                    loopback: port.loopback.clone(),
                    settings: tcp::settings(&port.tcp),
                });
                hosts.len() - 1
            });
            hosts[host].has_v6 |= port.addresses.iter().any(IpAddr::is_ipv6);
            of_ports.push((host, port.clone()));
        }
        if let (Some(first), true) = (hosts.first_mut(), lan.is_some()) {
            first.forwards = true;
        }
        Plan { hosts, ports: of_ports, way_out, lan }
    }

    /// How long it may take to make it. Milliseconds for each host are usual: what takes longer than this will never
    /// be there.
    pub(super) fn patience(&self) -> Duration {
        Duration::from_secs(30 + self.hosts.len() as u64)
    }
}

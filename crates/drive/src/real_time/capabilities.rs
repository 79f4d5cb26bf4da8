//! What this machine allows, for `doctor`.

use std::fs::OpenOptions;
use std::io;

use super::netlink::{Device, Netlink};
use super::netns::Namespace;
use super::port::PacketSocket;

/// What emulation needs, and whether it is there; where not, the reason.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// Network namespaces can be made.
    pub namespaces: Result<(), String>,
    /// Two of them can be joined by a veth pair.
    pub veth: Result<(), String>,
    /// Frames can be read and written on its end.
    pub af_packet: Result<(), String>,
    /// `/dev/net/tun` can be opened. Not needed as yet.
    pub tun: Result<(), String>,
}

impl Capabilities {
    /// Can real hosts be emulated? If not, the first thing that is missing.
    pub fn emulation(&self) -> Result<(), String> {
        self.namespaces.clone()?;
        self.veth.clone()?;
        self.af_packet.clone()
    }
}

/// Tries out what emulation needs, in namespaces that are gone when this returns.
pub fn capabilities() -> Capabilities {
    let text = |what: &str, error: io::Error| format!("{what}: {error}");
    let tun = OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    let tun = tun.map(drop).map_err(|e| text("/dev/net/tun", e));
    let far = match Namespace::new(|| Ok(())) {
        Ok((namespace, ())) => namespace,
        Err(error) => {
            let why = text("making a network namespace", error);
            let untried = || Err(format!("not tried: {why}"));
            return Capabilities { veth: untried(), af_packet: untried(), namespaces: Err(why), tun };
        }
    };
    let tried = Namespace::new(|| {
        let device = |name| Device { name, index: 100, mac: [2, 0, 0, 0, 0, 1], mtu: 1500 };
        let veth =
            Netlink::open().and_then(|mut n| n.add_veth(&device("here"), &device("there"), far.as_fd()));
        let af_packet = match &veth {
            Ok(()) => PacketSocket::open(100).map(drop),
            Err(_) => Err(io::Error::other("not tried: there is no veth pair")),
        };
        Ok((veth, af_packet))
    });
    let (veth, af_packet) = match tried {
        Ok((_, results)) => results,
        Err(error) => (Err(error), Err(io::Error::other("not tried"))),
    };
    Capabilities {
        namespaces: Ok(()),
        veth: veth.map_err(|e| text("making a veth pair", e)),
        af_packet: af_packet.map_err(|e| text("opening a packet socket", e)),
        tun,
    }
}

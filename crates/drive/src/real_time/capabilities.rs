//! What this machine allows, for `doctor`.

use std::fs::OpenOptions;
use std::net::{IpAddr, Ipv4Addr};

use airloom_world::{Builder, End};
use nix::sched::{CloneFlags, unshare};

use super::lab::{self, Laboratory, Rights, Stage, rules};

/// What emulation needs, and whether it is there; where not, the reason.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// By which rights.
    pub rights: Rights,
    /// Namespaces can be made.
    pub namespaces: Result<(), String>,
    /// Two of them can be joined by a veth pair.
    pub veth: Result<(), String>,
    /// Frames can be read and written on its end.
    pub af_packet: Result<(), String>,
    /// `/dev/net/tun` can be opened: hosts with `port = "tun"` and a plain user's way to the outside world need it.
    pub tun: Result<(), String>,
    /// Frames that come by a device can be redirected by nf_tables: a gateway needs it.
    pub nf_tables: Result<(), String>,
}

impl Capabilities {
    /// Can real hosts be emulated? If not, the first thing that is missing.
    pub fn emulation(&self) -> Result<(), String> {
        self.namespaces.clone()?;
        self.veth.clone()?;
        self.af_packet.clone()
    }
}

/// Tries out what emulation needs, with a laboratory that is gone when this returns.
pub fn capabilities() -> Capabilities {
    let tun = OpenOptions::new().read(true).write(true).open("/dev/net/tun");
    let mut found = Capabilities {
        rights: Rights::here(),
        namespaces: Ok(()),
        veth: Ok(()),
        af_packet: Ok(()),
        tun: tun.map(drop).map_err(|e| format!("/dev/net/tun: {e}")),
        nf_tables: redirecting(),
    };
    let Some(failure) = attempt() else { return found };
    let untried = || Err(format!("not tried: {}", failure.0));
    match failure.1 {
        Stage::Namespaces => {
            (found.veth, found.af_packet) = (untried(), untried());
            found.namespaces = Err(format!("making namespaces: {}", failure.0));
        }
        Stage::Cables => {
            found.af_packet = untried();
            found.veth = Err(format!("making a veth pair: {}", failure.0));
        }
        Stage::Sockets => found.af_packet = Err(format!("opening a packet socket: {}", failure.0)),
        Stage::Hosts | Stage::Outside | Stage::Lan => {
            found.namespaces = Err(format!("furnishing a host: {}", failure.0))
        }
    }
    found
}

/// Redirects the frames of a device, in a network that only a thread of its own is in, and that ends with it.
fn redirecting() -> Result<(), String> {
    let tried = std::thread::spawn(|| -> Result<(), String> {
        unshare(CloneFlags::CLONE_NEWNET)
            .map_err(|e| format!("not tried: a network namespace for it: {}: {e}", e as i32))?;
        rules::redirect("airloom-doctor", "lo", 1).map(drop).map_err(|error| {
            format!(
                "redirecting frames: {error}: the kernel needs nf_tables with the netdev family and `fwd` \
                 (CONFIG_NF_TABLES_NETDEV, CONFIG_NFT_FWD_NETDEV; Linux 5.12)"
            )
        })
    });
    tried.join().unwrap_or_else(|_| Err("it could not be tried".to_owned()))
}

/// Makes the smallest laboratory; what failed, and at which step.
fn attempt() -> Option<(String, Stage)> {
    let mut b = Builder::new(1);
    let (here, there) = (b.host("here"), b.host("there"));
    let wire = airloom_bearers::find("wireline")?;
    let bearer =
        (wire.build)(&serde_json::Value::Object(serde_json::Map::new()), &mut b.parts("wire", 1)).ok()?;
    let end = |host, n| End { host, addresses: vec![IpAddr::from(Ipv4Addr::new(10, 77, 0, n))] };
    b.link_with("wire", bearer, vec![end(here, 2)], end(there, 1)).ok()?;
    b.real(here, None);
    let world = b.build().ok()?;
    let failure = Laboratory::try_build(world.ports(), None, &mut || true).err()?;
    let helps = if failure.denied { format!("; {}", lab::what_helps()) } else { String::new() };
    Some((format!("{}{helps}", failure.text), failure.stage))
}

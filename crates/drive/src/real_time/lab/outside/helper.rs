//! A plain user's way out: `pasta` or `slirp4netns`. Both have a TAP device in the exit's namespace, and a socket of the
//! machine for each connection.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use airloom_base::Duration;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sched::{CloneFlags, setns};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, pipe2};

use super::super::child;
use super::forwarding::{leads_on_v4, leads_on_v6, table};
use super::uplink::{MTU, UPLINK};
use crate::real_time::clock::wait_readable;
use crate::real_time::pace;

/// The server that slirp4netns offers: it asks those of the machine.
pub(super) const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 3);
/// How long it may take until its device is there.
const PATIENCE: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(10);
/// `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`, over the laboratory: to enter the exit and make a device there.
const NEEDED: [u8; 2] = [12, 21];

/// Which program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Gives the exit the machine's own addresses, of both families.
    Pasta,
    /// IPv4 only.
    Slirp,
}

impl Kind {
    const fn program(self) -> &'static str {
        match self {
            Kind::Pasta => "pasta",
            Kind::Slirp => "slirp4netns",
        }
    }
}

/// The program, or what is missing. pasta is the better one, but gives up (before 2024) where the default route has no
/// gateway, as in a laboratory.
pub(super) fn find(has_gateway: bool) -> Result<(Kind, PathBuf), String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let kinds = if has_gateway { [Kind::Pasta, Kind::Slirp] } else { [Kind::Slirp, Kind::Pasta] };
    let found = kinds.iter().find_map(|kind| {
        let places = std::env::split_paths(&path).map(|folder| folder.join(kind.program()));
        places.into_iter().find(|place| place.is_file()).map(|place| (*kind, place))
    });
    let (kind, program) = found.ok_or(
        "for a plain user it takes the program pasta or slirp4netns (apt-get install passt, or slirp4netns), or \
         run with sudo",
    )?;
    match OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        Ok(_) => Ok((kind, program)),
        Err(error) => Err(format!(
            "{} needs /dev/net/tun, which this user may not open ({error}): chmod 666 it, or run with sudo",
            kind.program()
        )),
    }
}

/// The program at work, in the laboratory's PID namespace: it ends with that.
pub(super) struct Helper {
    process: Child,
    /// What it says, as much as a pipe holds: that is looked at only where it does not get ready.
    errors: File,
}

impl Helper {
    /// Starts it for the namespace `exit`, with IPv4, IPv6 or both; returns when its device is configured. The calling
    /// process must have the rights over the namespace, and be in the network that it is to lead to.
    pub(super) fn start(
        kind: Kind,
        program: &Path,
        exit: &OwnedFd,
        v4: bool,
        v6: bool,
    ) -> io::Result<Helper> {
        // Inherited under a number of its own; the command's are not to be closed.
        let namespace = keepable(exit)?;
        let place = format!("/proc/self/fd/{}", namespace.as_raw_fd());
        // What does not fit any more is lost, and does not hold it up.
        let (errors, says) = pipe2(OFlag::O_CLOEXEC | OFlag::O_NONBLOCK)?;
        let errors = File::from(errors);
        let mut command = Command::new(program);
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(says);
        child::before_exec(&mut command, || child::keep_capabilities(&NEEDED));
        match kind {
            Kind::Slirp => {
                let (told, tell) = pipe2(OFlag::O_CLOEXEC)?;
                let ready = keepable(&tell)?;
                command.args(["--configure", "--disable-host-loopback", "--netns-type=path"]);
                command.arg(format!("--mtu={MTU}")).arg(format!("--ready-fd={}", ready.as_raw_fd()));
                command.arg(place).arg(UPLINK);
                let helper = Helper { process: command.spawn()?, errors };
                drop((tell, ready, namespace));
                let mut said = [0];
                let is_ready =
                    wait_readable(told.as_fd(), PATIENCE)? && File::from(told).read(&mut said)? == 1;
                if is_ready { Ok(helper) } else { Err(helper.failed(kind)) }
            }
            Kind::Pasta => {
                command.args(["--foreground", "--quiet", "--stderr", "--config-net", "--netns-only"]);
                // Nobody outside gets in, and the machine's own loopback stays its own.
                command.args(["-t", "none", "-u", "none", "-T", "none", "-U", "none", "--no-map-gw"]);
                match (v4, v6) {
                    (true, false) => drop(command.arg("--ipv4-only")),
                    (false, true) => drop(command.arg("--ipv6-only")),
                    _ => {}
                }
                command.args(["--ns-ifname", UPLINK, "--mtu"]).arg(MTU.to_string());
                command.arg("--netns").arg(place);
                let mut helper = Helper { process: command.spawn()?, errors };
                drop(namespace);
                for _ in 0..PATIENCE.as_nanos() / STEP.as_nanos() {
                    if is_joined(exit.as_fd(), v4, v6) {
                        return Ok(helper);
                    }
                    if helper.process.try_wait()?.is_some() {
                        break;
                    }
                    pace::sleep(&mut [], STEP)?;
                }
                Err(helper.failed(kind))
            }
        }
    }

    /// Readable when it has ended.
    pub(super) fn process(&self) -> Option<OwnedFd> {
        child::pidfd(Pid::from_raw(self.process.id().cast_signed())).ok()
    }

    /// Why it did not get ready, in its own words if it has any.
    fn failed(mut self, kind: Kind) -> io::Error {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let mut text = String::new();
        let _ = self.errors.read_to_string(&mut text);
        let why = text.lines().last().unwrap_or("it did not get ready");
        io::Error::other(format!("{}: {why}", kind.program()))
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Do routes of these families lead out of the namespace by the uplink? Looked at by a copy of this process, which could
/// not come back itself (and cannot have threads, since its children are in another PID namespace).
fn is_joined(exit: BorrowedFd, v4: bool, v6: bool) -> bool {
    let look = || {
        setns(exit, CloneFlags::CLONE_NEWNET).ok()?;
        let by_v4 = !v4 || leads_on_v4(&table("route")).contains(UPLINK);
        let by_v6 = !v6 || leads_on_v6(&table("ipv6_route")).contains(UPLINK);
        Some(by_v4 && by_v6)
    };
    let Ok(copy) = child::in_copy(|| i32::from(look() != Some(true))) else { return false };
    loop {
        match waitpid(copy, None) {
            Ok(status) => return status == WaitStatus::Exited(copy, 0),
            Err(Errno::EINTR) => {}
            Err(_) => return false,
        }
    }
}

/// The same descriptor, one that a program which is loaded keeps.
fn keepable(fd: &impl AsFd) -> io::Result<OwnedFd> {
    Ok(nix::unistd::dup(fd)?)
}

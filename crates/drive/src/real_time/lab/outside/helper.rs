//! `slirp4netns`: a TUN device in the exit's namespace, and for each connection a socket of the machine.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use airloom_base::Duration;
use nix::fcntl::OFlag;
use nix::unistd::pipe2;

use super::super::child;
use super::{MTU, UPLINK};
use crate::real_time::clock::wait_readable;

const PROGRAM: &str = "slirp4netns";
/// The server that it offers: it asks those of the machine.
pub(super) const NAME_SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 3);
/// How long it may take until its device is there.
const PATIENCE: Duration = Duration::from_secs(5);
/// `CAP_NET_ADMIN` and `CAP_SYS_ADMIN`, over the laboratory: to enter the exit and make a device there.
const NEEDED: [u8; 2] = [12, 21];

/// The program, or what is missing.
pub(super) fn find() -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let program = std::env::split_paths(&path).map(|folder| folder.join(PROGRAM)).find(|p| p.is_file());
    let program = program.ok_or_else(|| {
        format!(
            "for a plain user it takes the program {PROGRAM} (apt-get install {PROGRAM}), or run with sudo"
        )
    })?;
    match OpenOptions::new().read(true).write(true).open("/dev/net/tun") {
        Ok(_) => Ok(program),
        Err(error) => Err(format!(
            "{PROGRAM} needs /dev/net/tun, which this user may not open ({error}): chmod 666 it, or run with sudo"
        )),
    }
}

/// The program at work, in the laboratory's PID namespace: it ends with that.
pub(super) struct Helper {
    process: Child,
}

impl Helper {
    /// Starts it for the namespace `exit`; returns when its device is configured. The calling process must have the
    /// rights over the namespace, and be in the network that it is to lead to.
    pub(super) fn start(program: &Path, exit: &OwnedFd) -> io::Result<Helper> {
        let (told, tell) = pipe2(OFlag::O_CLOEXEC)?;
        // Inherited under numbers of their own; the command's are not to be closed.
        let (namespace, ready) = (keepable(exit)?, keepable(&tell)?);
        let mut command = Command::new(program);
        command.args(["--configure", "--disable-host-loopback", "--netns-type=path"]);
        command.arg(format!("--mtu={MTU}")).arg(format!("--ready-fd={}", ready.as_raw_fd()));
        command.arg(format!("/proc/self/fd/{}", namespace.as_raw_fd())).arg(UPLINK);
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        child::before_exec(&mut command, || child::keep_capabilities(&NEEDED));
        let mut process = command.spawn()?;
        drop((tell, ready, namespace));
        let mut said = [0];
        let is_ready = wait_readable(told.as_fd(), PATIENCE)? && File::from(told).read(&mut said)? == 1;
        if is_ready {
            return Ok(Helper { process });
        }
        let _ = process.kill();
        let _ = process.wait();
        let mut text = String::new();
        if let Some(mut errors) = process.stderr.take() {
            let _ = errors.read_to_string(&mut text);
        }
        let why = text.lines().last().unwrap_or("it did not get ready");
        Err(io::Error::other(format!("{PROGRAM}: {why}")))
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The same descriptor, one that a program which is loaded keeps.
fn keepable(fd: &impl AsFd) -> io::Result<OwnedFd> {
    Ok(nix::unistd::dup(fd)?)
}

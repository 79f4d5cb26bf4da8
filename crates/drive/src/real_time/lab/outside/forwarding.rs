//! `net.ipv4.ip_forward` of the machine, on while a laboratory needs it.
//!
//! Several laboratories may. Each that found it off, or found another one that did, shows a name in the network
//! namespace's abstract socket names, which go with the process that holds them. The last one to go puts the setting
//! back. (If every warden is killed at once nobody is left to do so.)

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use airloom_base::Duration;
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, bind, socket};

use crate::real_time::pace;

const SETTING: &str = "/proc/sys/net/ipv4/ip_forward";
const LOCK: &str = "airloom/forwarding";
const WAS_OFF: &str = "airloom/forwarding-was-off/";
/// How long another process may take to look and write.
const PATIENCE: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(1);

/// The setting is on until this value goes.
pub(super) struct Forwarding {
    /// Held where the setting was off.
    was_off: Option<OwnedFd>,
}

impl Forwarding {
    /// Switches it on.
    pub(super) fn on() -> io::Result<Forwarding> {
        let _lock = lock()?;
        let is_on = fs::read_to_string(SETTING)?.trim() == "1";
        if is_on && !others_found_it_off()? {
            return Ok(Forwarding { was_off: None });
        }
        let mark = named(&format!("{WAS_OFF}{}", std::process::id()))?;
        if !is_on {
            fs::write(SETTING, "1")?;
        }
        Ok(Forwarding { was_off: Some(mark) })
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        let Some(mark) = self.was_off.take() else { return };
        // Better without the lock than not at all.
        let _lock = lock();
        drop(mark);
        if others_found_it_off().is_ok_and(|others| !others) {
            let _ = fs::write(SETTING, "0");
        }
    }
}

fn others_found_it_off() -> io::Result<bool> {
    // Abstract names have an @ in front there.
    Ok(fs::read_to_string("/proc/self/net/unix")?.lines().any(|line| line.contains(&format!(" @{WAS_OFF}"))))
}

/// One process of the network namespace at a time has this.
fn lock() -> io::Result<OwnedFd> {
    for _ in 0..PATIENCE.as_nanos() / STEP.as_nanos() {
        match named(LOCK) {
            Err(error) if error.raw_os_error() == Some(Errno::EADDRINUSE as i32) => {
                pace::sleep(&mut [], STEP)?;
            }
            result => return result,
        }
    }
    Err(io::Error::from(io::ErrorKind::TimedOut))
}

/// A socket with an abstract name.
fn named(name: &str) -> io::Result<OwnedFd> {
    let socket = socket(AddressFamily::Unix, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    bind(socket.as_raw_fd(), &UnixAddr::new_abstract(name.as_bytes())?)?;
    Ok(socket)
}

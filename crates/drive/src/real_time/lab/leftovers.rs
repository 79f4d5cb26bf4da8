//! Processes that are still in a host's network namespace when its laboratory ends.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

use airloom_base::Duration;
use nix::sys::stat::fstat;
use nix::unistd::{Pid, getpid};

use super::child;
use crate::real_time::pace;

/// How often is looked, a moment apart: a process may have made another one meanwhile, and one that was killed may
/// take a while to go.
const LOOKS: u32 = 1000;
const MOMENT: Duration = Duration::from_millis(2);

/// Ends every process whose network namespace is one of these, but `owner`, a thread of which may be there.
pub(super) fn end(networks: &[OwnedFd], owner: Pid) {
    if networks.is_empty() {
        return;
    }
    let numbers: Vec<u64> = networks.iter().filter_map(|held| Some(fstat(held).ok()?.st_ino)).collect();
    for _ in 0..LOOKS {
        if !end_once(&numbers, owner) {
            return;
        }
        let _ = pace::sleep(&mut [], MOMENT);
    }
}

/// Was any there?
fn end_once(networks: &[u64], owner: Pid) -> bool {
    let spared = [owner, getpid()].map(Pid::as_raw);
    let Ok(entries) = fs::read_dir("/proc") else { return false };
    let numbers = entries.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    let is_there = |number: i32| {
        // What has ended, and waits for its parent, has no namespaces any more.
        let network = fs::metadata(format!("/proc/{number}/ns/net"));
        network.is_ok_and(|network| networks.contains(&network.ino()))
    };
    let mut found = false;
    for number in numbers.filter(|n| !spared.contains(n) && is_there(*n)) {
        // Held, and looked at again: the number may be another process's by now, what is held is not.
        let Ok(process) = child::pidfd(Pid::from_raw(number)) else { continue };
        if is_there(number) {
            found |= child::kill_by(process.as_fd()).is_ok();
        }
    }
    found
}

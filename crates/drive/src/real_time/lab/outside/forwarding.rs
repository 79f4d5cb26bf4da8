//! Forwarding between the way out and the machine's devices, on while a laboratory needs it.
//!
//! A kernel asks the device by which a datagram *came* whether it may go on. The pair's own device goes with the pair, and
//! its setting with it. The machine's devices that lead on need theirs for what comes back: only that one key of each is
//! touched. (`net.ipv4.ip_forward` would change all devices and, along with it, `accept_redirects`.)
//!
//! Several laboratories may need it. Each that found a key off, or found another one that did, shows the name of a table of the
//! packet filter ([`rules::claim`]), which goes with the process that holds it, and which only somebody can make who may
//! change these keys as well. The last one to go puts the key back.
//! Where a warden is killed alone, the engine's process does what it was to do ([`put_back`]). If they are all killed at one
//! blow nobody is left to do so: then the next laboratory does (`repair`), by the note in [`NOTES`] that was written first.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use airloom_base::Duration;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, getsockopt, socket};

use super::super::rules;
use crate::real_time::{pace, sys};

const SETTINGS: &str = "/proc/sys/net";
const V4_KEY: &str = "forwarding";
/// Forwards what came by this device although the machine is no router (Linux 6.17).
const V6_KEY: &str = "force_forwarding";
/// Notes of what was switched on, one file for each network namespace. Gone after a reboot, as the settings are.
const NOTES: &str = "/run/airloom";
const LOCK: &str = "airloom/forwarding";
const WAS_OFF: &str = "airloom/was-off/";
/// How long another process may take to look and write.
const PATIENCE: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(5);

/// The settings are on until this value goes.
pub(super) struct Forwarding {
    /// Those that were off, each with the name that says so.
    were_off: Vec<(String, OwnedFd)>,
}

impl Forwarding {
    /// Switches it on for what comes by `pair`, and for what comes back by any device that leads on.
    pub(super) fn on(pair: &str, v6: bool) -> io::Result<Forwarding> {
        write(&v4_key(pair), "1")?;
        if v6 && !is_ipv6_router() {
            write(&v6_key(pair), "1")?;
        }
        let _lock = lock()?;
        let notes = notes();
        put_back_what_was_left(notes.as_deref());
        let mut forwarding = Forwarding { were_off: Vec::new() };
        for key in keys(v6) {
            let is_on = is_on(&key)?;
            if is_on && !others_found_it_off(&key)? {
                continue;
            }
            let name = rules::claim(&format!("{WAS_OFF}{key}/{}", std::process::id()))?;
            // Noted before it is done: a note of what did not happen does no harm.
            let _ = change_note(notes.as_deref(), |noted| noted.extend([key.clone()]));
            if !is_on {
                write(&key, "1")?;
            }
            forwarding.were_off.push((key, name));
        }
        Ok(forwarding)
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        if self.were_off.is_empty() {
            return;
        }
        // Better without the lock than not at all.
        let (_lock, notes) = (lock(), notes());
        for (key, name) in self.were_off.drain(..) {
            drop(name);
            put_back_one(&key, notes.as_deref());
        }
    }
}

/// The settings that a way out would switch on now: those that are off, or on for other laboratories only.
pub(super) fn would_switch_on(v6: bool) -> Vec<String> {
    let mut keys = keys(v6);
    keys.retain(|key| is_on(key).is_ok_and(|on| !on || others_found_it_off(key).unwrap_or(false)));
    keys
}

/// Puts these settings back in the place of a warden that cannot do it any more.
pub(super) fn put_back(keys: &[String]) {
    let (_lock, notes) = (lock(), notes());
    for key in keys.iter().filter(|key| is_on(key).unwrap_or(false)) {
        put_back_one(key, notes.as_deref());
    }
}

/// With the lock held.
fn put_back_one(key: &str, notes: Option<&Path>) {
    if others_found_it_off(key).is_ok_and(|others| !others) {
        switch_off(key);
        let _ = change_note(notes, |noted| noted.retain(|other| other != key));
    }
}

/// Switches it off, unless it has been switched on for all devices meanwhile: then somebody else needs it of this one.
fn switch_off(key: &str) {
    let all = if key.ends_with(V6_KEY) { v6_key("all") } else { v4_key("all") };
    if !is_on(&all).unwrap_or(false) {
        // A device that is gone has no setting any more.
        let _ = write(key, "0");
    }
}

/// Those of the devices that lead on.
fn keys(v6: bool) -> Vec<String> {
    let mut keys: Vec<String> = leads_on_v4(&table("route")).iter().map(|device| v4_key(device)).collect();
    if v6 && !is_ipv6_router() {
        keys.extend(leads_on_v6(&table("ipv6_route")).iter().map(|device| v6_key(device)));
    }
    keys
}

fn is_on(key: &str) -> io::Result<bool> {
    Ok(read(key)?.trim() == "1")
}

/// Can IPv6 be forwarded here without making the machine a router, which would cost it its own automatic addresses?
pub(super) fn is_possible_for_ipv6() -> bool {
    is_ipv6_router() || Path::new(SETTINGS).join(v6_key("all")).exists()
}

/// Puts back what laboratories left on that were killed with everything that belonged to them.
pub(in crate::real_time::lab) fn repair() {
    let notes = notes().filter(|file| file.exists());
    if notes.is_some()
        && let Ok(_lock) = lock()
    {
        put_back_what_was_left(notes.as_deref());
    }
}

/// The same, with the lock held.
fn put_back_what_was_left(notes: Option<&Path>) {
    let _ = change_note(notes, |noted| {
        noted.retain(|key| {
            if others_found_it_off(key).unwrap_or(true) {
                return true;
            }
            switch_off(key);
            false
        });
    });
}

fn v4_key(device: &str) -> String {
    format!("ipv4/conf/{device}/{V4_KEY}")
}

fn v6_key(device: &str) -> String {
    format!("ipv6/conf/{device}/{V6_KEY}")
}

fn read(key: &str) -> io::Result<String> {
    fs::read_to_string(Path::new(SETTINGS).join(key))
}

fn write(key: &str, value: &str) -> io::Result<()> {
    fs::write(Path::new(SETTINGS).join(key), value)
        .map_err(|e| io::Error::new(e.kind(), format!("net.{} = {value}: {e}", key.replace('/', "."))))
}

fn is_ipv6_router() -> bool {
    read("ipv6/conf/all/forwarding").is_ok_and(|value| value.trim() == "1")
}

/// A routing table of the calling process's namespace, as text.
pub(super) fn table(name: &str) -> String {
    fs::read_to_string(Path::new("/proc/self/net").join(name)).unwrap_or_default()
}

/// Devices by which a table as `/proc/net/route` has it leads somewhere. Routes that refuse (blackhole, unreachable) have
/// none, written `*`.
pub(super) fn leads_on_v4(table: &str) -> BTreeSet<String> {
    let devices = table.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    devices.filter(|device| !["lo", "*"].contains(device)).map(str::to_owned).collect()
}

/// The same of `/proc/net/ipv6_route`; what stays on a link (link-local, multicast) leads nowhere.
pub(super) fn leads_on_v6(table: &str) -> BTreeSet<String> {
    let lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let on = lines.filter(|words| {
        let stays = words.first().is_some_and(|to| to.starts_with("fe8") || to.starts_with("ff"));
        words.len() >= 10 && !stays && words[9] != "lo"
    });
    on.map(|words| words[9].to_owned()).collect()
}

/// Does a default route in a table as `/proc/net/route` has it lead to a gateway?
pub(super) fn has_gateway_v4(table: &str) -> bool {
    let mut lines = table.lines().skip(1).map(|line| line.split_whitespace().skip(1));
    lines.any(|mut words| words.next() == Some("00000000") && words.next().is_some_and(|to| to != "00000000"))
}

/// The same of `/proc/net/ipv6_route`.
pub(super) fn has_gateway_v6(table: &str) -> bool {
    let is_zero = |word: &str| word.bytes().all(|digit| digit == b'0');
    let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    lines.any(|words| {
        words.len() >= 10 && is_zero(words[0]) && words[1] == "00" && !is_zero(words[4]) && words[9] != "lo"
    })
}

/// The file of this network namespace; none where the kernel has no number for namespaces that is never used again.
fn notes() -> Option<PathBuf> {
    let socket = socket(AddressFamily::Unix, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None).ok()?;
    let cookie = getsockopt(&socket, sys::NamespaceCookie).ok()?;
    Some(Path::new(NOTES).join(format!("was-off-{cookie:x}")))
}

/// Changes the keys in a note; an empty one is removed. (Where this user may not write there, nothing is noted.)
fn change_note(notes: Option<&Path>, change: impl FnOnce(&mut BTreeSet<String>)) -> io::Result<()> {
    let Some(notes) = notes else { return Ok(()) };
    let text = fs::read_to_string(notes).unwrap_or_default();
    let before: BTreeSet<String> = text.lines().filter(|key| is_ours(key)).map(str::to_owned).collect();
    let mut after = before.clone();
    change(&mut after);
    if after.is_empty() {
        return if text.is_empty() { Ok(()) } else { fs::remove_file(notes) };
    }
    if after == before {
        return Ok(());
    }
    fs::create_dir_all(NOTES)?;
    let written = notes.with_extension("new");
    fs::write(&written, after.into_iter().map(|key| key + "\n").collect::<String>())?;
    fs::rename(written, notes)
}

/// Is it a key that is ever noted?
fn is_ours(key: &str) -> bool {
    match key.split('/').collect::<Vec<_>>().as_slice() {
        ["ipv4", "conf", device, V4_KEY] | ["ipv6", "conf", device, V6_KEY] => {
            !["", ".", "..", "all", "default"].contains(device)
        }
        _ => false,
    }
}

fn others_found_it_off(key: &str) -> io::Result<bool> {
    rules::is_claimed(&format!("{WAS_OFF}{key}/"))
}

/// One process of the network namespace at a time has this.
fn lock() -> io::Result<OwnedFd> {
    for _ in 0..PATIENCE.as_nanos() / STEP.as_nanos() {
        match rules::claim(LOCK) {
            Err(error) if rules::is_taken(&error) => {
                // Who has no rights over the network is refused likewise, and cannot look either.
                rules::is_claimed(LOCK)?;
                pace::sleep(&mut [], STEP)?;
            }
            result => return result,
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("table {LOCK} of nf_tables is somebody else's")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_that_lead_on_are_found_in_the_routing_tables() {
        let v4 = "Iface\tDestination\tGateway\nlo\t0000007F\t0\neth0\t00000000\t0102A8C0\neth0\t0002A8C0\t0\n*\t0002A8C0\t0\ntun0\t1\t0\n";
        assert_eq!(leads_on_v4(v4), ["eth0", "tun0"].map(str::to_owned).into());
        let line =
            |to: &str, device| format!("{to} 40 {to} 00 {to} 00000100 00000001 00000000 00000001 {device}\n");
        let (global, local) = ("2001".to_owned() + &"0".repeat(28), "fe80".to_owned() + &"0".repeat(28));
        let v6 =
            [line(&global, "eth1"), line(&local, "eth2"), line(&"f".repeat(32), "eth3"), line(&global, "lo")];
        assert_eq!(leads_on_v6(&v6.concat()), ["eth1".to_owned()].into());
        let default = |gateway: &str| format!("{0} 00 {0} 00 {gateway} 400 1 0 3 eth0\n", "0".repeat(32));
        assert!(has_gateway_v6(&default(&global)) && !has_gateway_v6(&default(&"0".repeat(32))));
        assert!(has_gateway_v4(v4) && !has_gateway_v4(&v4.replace("0102A8C0", "00000000")));
        assert!(!has_gateway_v4("") && !has_gateway_v6(&v6.concat()));
        assert!(leads_on_v4("").is_empty() && leads_on_v6("x y\n").is_empty());
    }

    #[test]
    fn a_note_can_name_nothing_but_the_forwarding_of_a_device() {
        assert!(is_ours("ipv4/conf/eth0/forwarding") && is_ours("ipv6/conf/eth0/force_forwarding"));
        for key in [
            "ipv4/ip_forward",
            "ipv4/conf/../forwarding",
            "ipv4/conf/all/forwarding",
            "",
            "../../x",
            "ipv6/conf/eth0/forwarding",
        ] {
            assert!(!is_ours(key), "{key}");
        }
    }
}

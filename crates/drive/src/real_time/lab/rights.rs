//! By which rights a laboratory is built, and what is missing where there are none.

use std::fs;
use std::io::{self, Write};

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use super::child;

/// How namespaces can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// With the capabilities that this process has: root, or somebody with three of them.
    Own,
    /// Inside a new user namespace, as any user may where the system allows it.
    UserNamespace,
}

/// `CAP_NET_ADMIN`, `CAP_NET_RAW` and `CAP_SYS_ADMIN` (linux/capability.h).
const NEEDED: [u8; 3] = [12, 13, 21];
/// What programs keep inside a user namespace: `CAP_NET_BIND_SERVICE`, `CAP_NET_ADMIN`, `CAP_NET_RAW`. They hold
/// for the laboratory's namespaces only.
pub(super) const PROGRAMS_KEEP: [u8; 3] = [10, 12, 13];

/// What a process keeps that entered a user namespace to make laboratories itself: `CAP_NET_BIND_SERVICE`,
/// `CAP_NET_ADMIN`, `CAP_NET_RAW`, `CAP_SYS_CHROOT`, `CAP_SYS_ADMIN`.
pub(super) const PROCESS_KEEPS: [u8; 5] = [10, 12, 13, 18, 21];

impl Rights {
    /// Those of the calling thread.
    pub fn here() -> Rights {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let effective = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
        if NEEDED.iter().all(|bit| effective >> bit & 1 == 1) { Rights::Own } else { Rights::UserNamespace }
    }

    /// In words.
    pub fn describe(self) -> &'static str {
        match self {
            Rights::Own if geteuid().is_root() => "root",
            Rights::Own => "own capabilities, no root needed",
            Rights::UserNamespace => "user namespace, no root needed",
        }
    }
}

/// Moves the calling process, which must have one thread, into new namespaces `more` and, if that is what its rights
/// come from, a new user namespace in which everybody is who they were.
pub(super) fn take(rights: Rights, more: CloneFlags) -> io::Result<()> {
    if rights == Rights::Own {
        return Ok(unshare(more)?);
    }
    let (uid, gid) = (geteuid(), getegid());
    // A process that has changed its user without loading a program may not write its own maps.
    nix::sys::prctl::set_dumpable(true)?;
    unshare(CloneFlags::CLONE_NEWUSER | more)?;
    let write = |file: &str, text: String| {
        fs::OpenOptions::new().write(true).open(format!("/proc/self/{file}"))?.write_all(text.as_bytes())
    };
    // Without this a plain user could drop a group that denies something.
    match write("setgroups", "deny".to_owned()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    write("uid_map", format!("{uid} {uid} 1"))?;
    write("gid_map", format!("{gid} {gid} 1"))
}

/// Lets the program that is loaded next administer the laboratory's network although it is no root.
pub(super) fn keep(rights: Rights) -> io::Result<()> {
    if rights == Rights::Own { Ok(()) } else { child::keep_capabilities(&PROGRAMS_KEEP) }
}

/// Why a plain user may not do it here, and what helps.
pub(in crate::real_time) fn what_helps() -> String {
    what_helps_with(|name| {
        let text = fs::read_to_string(format!("/proc/sys/{name}")).ok()?;
        text.trim().parse().ok()
    })
}

/// The same on a system with these settings.
fn what_helps_with(setting: impl Fn(&str) -> Option<u64>) -> String {
    let mut reasons = Vec::new();
    if setting("kernel/apparmor_restrict_unprivileged_userns") == Some(1) {
        reasons.push(
            "AppArmor keeps plain users from using user namespaces (kernel.apparmor_restrict_unprivileged_userns = 1): \
             run with sudo, or install a profile with `userns,` for the Python interpreter",
        );
    }
    if setting("kernel/unprivileged_userns_clone") == Some(0) {
        reasons.push(
            "plain users may not make user namespaces: run with sudo, or set kernel.unprivileged_userns_clone = 1",
        );
    }
    if setting("user/max_user_namespaces") == Some(0) {
        reasons
            .push("user namespaces are switched off: run with sudo, or set user.max_user_namespaces above 0");
    }
    if reasons.is_empty() {
        reasons.push(
            "it needs root, or CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_NET_RAW together, or user namespaces \
             (a container may have to be started with them)",
        );
    }
    reasons.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_in_which_systems_forbid_it_is_recognised_by_its_setting() {
        for (name, value, said) in [
            (
                "kernel/apparmor_restrict_unprivileged_userns",
                1,
                "kernel.apparmor_restrict_unprivileged_userns",
            ),
            ("kernel/unprivileged_userns_clone", 0, "kernel.unprivileged_userns_clone"),
            ("user/max_user_namespaces", 0, "user.max_user_namespaces"),
        ] {
            let here = |asked: &str| (asked == name).then_some(value);
            let text = what_helps_with(here);
            assert!(text.contains(said) && text.contains("sudo"), "{text}");
            assert!(!what_helps_with(|asked| here(asked).map(|v| 1 - v)).contains(said), "{name}");
        }
        assert!(what_helps_with(|_| None).contains("CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_NET_RAW"));
    }
}

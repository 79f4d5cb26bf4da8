//! Names of hosts: `/etc/hosts` and `/etc/resolv.conf` as the programs of a laboratory see them.
//!
//! Each program has a mount namespace of its own in which two files lie over those of the machine; the machine's own
//! are not touched, and there is nothing to clear away. `/etc/nsswitch.conf` stays as it is.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

/// The two files of one host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    hosts: String,
    resolv: String,
}

/// Places of which one exists everywhere: the files are made on a file system mounted there for a moment, in the
/// new mount namespace only.
const WORKSHOPS: [&str; 4] = ["/run", "/mnt", "/tmp", "/dev/shm"];

impl Names {
    /// Files of the host called `own` that knows `others`; name servers only where there is a way out.
    pub(crate) fn new(own: &str, others: &[(IpAddr, String)], servers: &[IpAddr]) -> Names {
        let mut hosts = String::from("127.0.0.1 localhost\n::1 localhost ip6-localhost\n");
        for (address, name) in others {
            hosts.push_str(&format!("{address} {}\n", written(name)));
        }
        hosts.push_str(&format!("# this is {own}\n"));
        // Without a server the resolver would ask one on this very host, and be refused at once.
        let resolv = servers.iter().map(|s| format!("nameserver {s}\n")).collect();
        Names { hosts, resolv }
    }

    /// Gives the calling thread a mount namespace of its own with these files. The working directory stays.
    pub(crate) fn install(&self) -> io::Result<()> {
        unshare(CloneFlags::CLONE_NEWNS)?;
        let none = None::<&str>;
        // What is mounted later outside still appears here, and nothing of ours appears there.
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)?;
        let workshop = WORKSHOPS.into_iter().map(Path::new).find(|p| p.is_dir());
        let workshop = workshop.ok_or_else(|| io::Error::other("no folder to prepare /etc/hosts in"))?;
        mount(Some("airloom"), workshop, Some("tmpfs"), MsFlags::empty(), Some("size=1m,mode=755"))?;
        let result = [("hosts", &self.hosts), ("resolv.conf", &self.resolv)].into_iter().try_for_each(
            |(name, text)| {
                let made = workshop.join(name);
                fs::write(&made, text)?;
                let target = Path::new("/etc").join(name);
                match mount(Some(&made), &target, none, MsFlags::MS_BIND, none) {
                    // A system without such a file: there is nothing to lay it over.
                    Ok(()) | Err(Errno::ENOENT) => Ok(()),
                    Err(error) => Err(io::Error::from(error)),
                }
            },
        );
        umount2(workshop, MntFlags::MNT_DETACH)?;
        result
    }
}

/// Takes the two files away again, in the mount namespace of the calling thread.
pub(crate) fn uninstall() {
    for name in ["/etc/hosts", "/etc/resolv.conf"] {
        let _ = umount2(name, MntFlags::MNT_DETACH);
    }
}

/// A name as programs can look it up: `mobile[2]` is `mobile-2` as well.
fn written(name: &str) -> String {
    match name.strip_suffix(']').and_then(|n| n.split_once('[')) {
        Some((group, index)) => format!("{group}-{index} {name}"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_host_has_a_line_and_members_of_groups_a_name_without_brackets() {
        let others = [
            ("10.77.0.1".parse().unwrap(), "origin".to_owned()),
            ("10.77.0.2".parse().unwrap(), "mobile[0]".to_owned()),
        ];
        let names = Names::new("mobile[0]", &others, &["10.0.2.3".parse().unwrap()]);
        assert!(names.hosts.contains("10.77.0.1 origin\n"));
        assert!(names.hosts.contains("10.77.0.2 mobile-0 mobile[0]\n"));
        assert_eq!(names.resolv, "nameserver 10.0.2.3\n");
    }
}

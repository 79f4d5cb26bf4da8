//! Names of hosts: `/etc/hosts` and `/etc/resolv.conf` as the programs of a laboratory see them.
//!
//! Each program has a mount namespace of its own in which two files lie over those of the machine; the machine's own
//! are not touched, and there is nothing to clear away. `/etc/nsswitch.conf` stays as it is: the daemons of the machine that it
//! may name are asked by sockets in the file system, which no network namespace separates, so that empty files lie over those.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};

/// The two files of one host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    hosts: String,
    resolv: String,
}

/// What lies over files of the machine.
const FILES: [&str; 2] = ["/etc/hosts", "/etc/resolv.conf"];
/// Where nss-resolve, the C library (nscd) and nss-mdns (Avahi) ask for addresses before they ask a name server.
const SOCKETS: [&str; 3] =
    ["/run/systemd/resolve/io.systemd.Resolve", "/var/run/nscd/socket", "/run/avahi-daemon/socket"];

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
        // The machine's files, found before the workshop lies over what one of them may be a link to (`/run`).
        let mut targets = FILES.into_iter().map(target).collect::<io::Result<Vec<_>>>()?;
        // Whoever cannot get to a socket cannot ask there.
        targets.extend(SOCKETS.map(|path| target(path).unwrap_or_default()));
        let texts = [self.hosts.as_str(), &self.resolv].into_iter().chain(SOCKETS.map(|_| ""));
        let workshop = WORKSHOPS.into_iter().map(Path::new).find(|p| p.is_dir());
        let workshop = workshop.ok_or_else(|| io::Error::other("no folder to prepare /etc/hosts in"))?;
        mount(Some("airloom"), workshop, Some("tmpfs"), MsFlags::empty(), Some("size=1m,mode=755"))?;
        let result = targets.iter().zip(texts).enumerate().try_for_each(|(n, (target, text))| {
            let Some(target) = target else { return Ok(()) };
            let made = workshop.join(n.to_string());
            fs::write(&made, text)?;
            let target = format!("/proc/self/fd/{}", target.as_raw_fd());
            Ok(mount(Some(&made), target.as_str(), none, MsFlags::MS_BIND, none)?)
        });
        umount2(workshop, MntFlags::MNT_DETACH)?;
        result
    }
}

/// What a file is laid over, wherever links lead to; a system without such a file has nothing to lay it over.
fn target(path: &str) -> io::Result<Option<File>> {
    match OpenOptions::new().read(true).custom_flags(OFlag::O_PATH.bits()).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Takes all of these files away again, in the mount namespace of the calling thread.
pub(crate) fn uninstall() {
    for name in FILES.into_iter().chain(SOCKETS) {
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
    use std::os::unix::net::{UnixListener, UnixStream};

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

    #[test]
    fn a_file_of_the_machine_may_be_a_link_to_where_the_workshop_is() {
        let seen = std::thread::spawn(|| -> io::Result<[String; 2]> {
            unshare(CloneFlags::CLONE_NEWNS)?;
            let none = None::<&str>;
            mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
            for folder in ["/etc", WORKSHOPS[0]] {
                mount(Some("test"), folder, Some("tmpfs"), MsFlags::empty(), none)?;
            }
            fs::write("/etc/hosts", "the machine's")?;
            let real = Path::new(WORKSHOPS[0]).join("resolve/stub.conf");
            fs::create_dir_all(real.parent().expect("a folder"))?;
            fs::write(&real, "the machine's")?;
            std::os::unix::fs::symlink(&real, "/etc/resolv.conf")?;
            let daemons = [SOCKETS[0], SOCKETS[2]];
            let mut listening = Vec::new();
            for path in daemons {
                fs::create_dir_all(Path::new(path).parent().expect("a folder"))?;
                listening.push(UnixListener::bind(path)?);
            }
            Names::new("a", &[], &["192.0.2.1".parse().unwrap()]).install()?;
            for path in daemons {
                let asked = UnixStream::connect(path).map(drop).map_err(|error| error.kind());
                assert_eq!(asked, Err(io::ErrorKind::ConnectionRefused), "{path} is the machine's");
            }
            let seen = ["/etc/hosts", "/etc/resolv.conf"].map(fs::read_to_string);
            uninstall();
            assert_eq!(fs::read_to_string("/etc/resolv.conf")?, "the machine's");
            for path in daemons {
                UnixStream::connect(path)?;
            }
            drop(listening);
            let [hosts, resolv] = seen;
            Ok([hosts?, resolv?])
        });
        match seen.join().expect("no panic") {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                airloom_testkit::skip("drive/names", &error.to_string());
            }
            seen => {
                let [hosts, resolv] = seen.expect("installed");
                assert!(hosts.contains("# this is a\n"));
                assert_eq!(resolv, "nameserver 192.0.2.1\n");
            }
        }
    }
}

//! The real hosts of a run that goes on, for other threads: start programs in them, or enter one.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::poll::{PollTimeout, poll};
use nix::sched::{CloneFlags, setns};

use super::Error;
use super::clock::readable;
use super::lab::{Keeper, uninstall_names};
use super::process::Running;

/// The real hosts of a run. The laboratory stays until the last copy of this is gone.
#[derive(Clone)]
pub struct Hosts(Arc<Keeper>);

/// A program that was started in a host; it is told to end when this value goes.
pub struct Program(Running);

/// Where a thread was before it entered a host.
pub struct Outside {
    network: OwnedFd,
    mounts: Option<OwnedFd>,
}

impl Hosts {
    pub(super) fn new(keeper: &Arc<Keeper>) -> Hosts {
        Hosts(keeper.clone())
    }

    /// Their names; the first is where the command of a run would be.
    pub fn names(&self) -> &[String] {
        self.0.hosts()
    }

    /// How it was made possible.
    pub fn rights(&self) -> super::Rights {
        self.0.rights()
    }

    /// Starts a program in the host called `host` with these variables; `standard` are the numbers of the
    /// descriptors that it gets as standard input, output and error.
    pub fn start(
        &self,
        host: &str,
        words: &[String],
        variables: Vec<(OsString, OsString)>,
        standard: [RawFd; 3],
    ) -> Result<Program, Error> {
        let host = self.index(host)?;
        Ok(Program(Running::start_with(words, &self.0, host, variables, standard, false)?))
    }

    fn index(&self, host: &str) -> Result<usize, Error> {
        self.0.host(host).ok_or_else(|| {
            Error::SetUp(format!("there is no real host `{host}`; real hosts: {}", self.0.hosts().join(", ")))
        })
    }

    /// A new TCP or UDP socket in the host called `host`, for this process: its packets go over the links, while the
    /// thread stays where it is. That takes no rights.
    pub fn socket(&self, host: &str, is_stream: bool, is_v6: bool) -> Result<OwnedFd, Error> {
        let host = self.index(host)?;
        let made = self.0.socket(host, is_stream, is_v6);
        made.map_err(|error| Error::SetUp(format!("opening a socket in a host: {error}")))
    }

    /// Brings the calling thread into a host: its later sockets, threads and programs are there.
    ///
    /// That takes rights over the laboratory's namespaces: root's, or those of a process that was inside a user
    /// namespace of its own already when the laboratory was made.
    pub fn enter(&self, host: &str) -> Result<Outside, Error> {
        let index = self.index(host)?;
        let failed = |what: &str, error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied => Error::NotAllowed(format!("{what}: {error}")),
            _ => Error::SetUp(format!("{what}: {error}")),
        };
        let namespace = self.0.namespace(index).map_err(|e| failed("finding the host", e))?;
        // Both before the thread moves: where one of them fails it stays where it was.
        let network = File::open("/proc/thread-self/ns/net").map_err(|e| failed("looking around", e))?;
        let mounts = File::open("/proc/thread-self/ns/mnt").map_err(|e| failed("looking around", e))?;
        setns(namespace.as_fd(), CloneFlags::CLONE_NEWNET)
            .map_err(|e| failed("entering the host", e.into()))?;
        let mut outside = Outside { network: network.into(), mounts: None };
        let folder = std::env::current_dir();
        if let Some(names) = self.0.names(index) {
            let installed = names.install();
            outside.mounts = Some(mounts.into());
            if let Err(error) = installed {
                outside.leave();
                return Err(failed("giving the host its names", error));
            }
            if let Ok(folder) = folder {
                let _ = std::env::set_current_dir(folder);
            }
        }
        Ok(outside)
    }
}

impl Outside {
    /// Brings the calling thread, the one that entered, back.
    pub fn leave(&self) {
        let _ = setns(self.network.as_fd(), CloneFlags::CLONE_NEWNET);
        if let Some(mounts) = &self.mounts {
            // Going back puts the thread at the root of the namespace. Without the right to change the root
            // (`CAP_SYS_CHROOT`) it stays where it is, and only the names go.
            let folder = std::env::current_dir();
            if setns(mounts.as_fd(), CloneFlags::CLONE_NEWNS).is_err() {
                uninstall_names();
            }
            if let Ok(folder) = folder {
                let _ = std::env::set_current_dir(folder);
            }
        }
    }
}

impl Program {
    /// Its exit code, if it has ended; minus the number of the signal that ended it.
    pub fn exit_code(&self) -> Option<i32> {
        self.0.exit_code()
    }

    /// Waits until it has ended, at most so many milliseconds.
    pub fn wait(&self, milliseconds: u16) -> Option<i32> {
        match poll(&mut [readable(self.0.ended())], PollTimeout::from(milliseconds)) {
            Ok(_) | Err(Errno::EINTR) => self.exit_code(),
            Err(_) => None,
        }
    }

    /// Sends a signal to its process group.
    pub fn signal(&self, number: u8) {
        self.0.signal(number);
    }
}

//! Programs in real hosts: services that run throughout, and the one command that the run is about.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command, Stdio};

use nix::poll::{PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, killpg, pthread_sigmask};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

use super::clock::readable;
use super::netns::Namespace;
use super::{Error, sys};

/// How long a service may take until it listens.
const READY_MS: u16 = 3_000;
/// How long a program gets to end by itself when it is told to.
const GRACE_MS: u16 = 2_000;

/// A program that is running; ends with this value, together with everything it started.
pub(super) struct Running {
    name: String,
    child: Child,
    ended: OwnedFd,
    /// Has it the terminal?
    foreground: bool,
}

impl Running {
    /// Starts `words` (program and arguments) in `namespace`. A `foreground` program gets standard input and
    /// output, and the terminal if there is one; others write to standard error and read nothing.
    pub(super) fn start(words: &[String], namespace: &Namespace, foreground: bool) -> Result<Running, Error> {
        let Some((program, arguments)) = words.split_first() else {
            return Err(Error::Command {
                program: String::new(),
                error: "an empty command".to_owned(),
                code: 127,
            });
        };
        let mut command = Command::new(program);
        command.args(arguments);
        if !foreground {
            command.stdin(Stdio::null());
            if let Ok(errors) = io::stderr().as_fd().try_clone_to_owned() {
                command.stdout(errors);
            }
        }
        let foreground = foreground && has_terminal();
        sys::start_in_namespace(&mut command, namespace.as_fd(), foreground);
        let mut child = command.spawn().map_err(|error| Error::Command {
            program: program.clone(),
            code: if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 },
            error: error.to_string(),
        })?;
        match sys::pidfd(child.id()) {
            Ok(ended) => Ok(Running { name: program.clone(), child, ended, foreground }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(Error::SetUp(format!("watching `{program}`: {error}")))
            }
        }
    }

    /// Readable when it has ended.
    pub(super) fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// Its exit code, if it has ended: its own, or 128 and the number of the signal that ended it.
    ///
    /// It is not reaped here: until [`Running::end`] its number, and its group's, belong to nobody else.
    pub(super) fn exit_code(&self) -> Option<i32> {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        match waitid(Id::PIDFd(self.ended.as_fd()), flags) {
            Ok(WaitStatus::Exited(_, code)) => Some(code),
            Ok(WaitStatus::Signaled(_, signal, _)) => Some(128 + signal as i32),
            Ok(_) => None,
            // Somebody else reaped it: how it ended is lost.
            Err(_) => Some(0),
        }
    }

    /// Waits until a service listens on some port of its namespace, or was given time enough to.
    pub(super) fn wait_until_ready(&self) -> Result<(), Error> {
        const STEP_MS: u16 = 5;
        for _ in 0..READY_MS / STEP_MS {
            if let Some(code) = self.exit_code() {
                return Err(Error::Service { program: self.name.clone(), code });
            }
            if is_listening(self.child.id()) {
                return Ok(());
            }
            self.wait(STEP_MS);
        }
        Ok(())
    }

    fn wait(&self, milliseconds: u16) {
        let _ = poll(&mut [readable(self.ended.as_fd())], PollTimeout::from(milliseconds));
    }

    /// Ends it and whatever is left of its process group.
    fn end(&mut self) {
        let group = Pid::from_raw(self.child.id() as i32);
        if self.exit_code().is_none() {
            let _ = killpg(group, Signal::SIGTERM);
            self.wait(GRACE_MS);
        }
        let _ = killpg(group, Signal::SIGKILL);
        let _ = self.child.wait();
        if std::mem::take(&mut self.foreground) {
            take_terminal_back();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// How often, and how many milliseconds apart, the rest of a namespace is looked for: a second in all.
const SWEEPS: u32 = 500;
const SWEEP_MS: u16 = 2;

/// Kills every process in `namespace`: what a service started and sent out of its group.
pub(super) fn clear(namespace: &Namespace) {
    let Ok(ours) = fs::File::from(match namespace.as_fd().try_clone_to_owned() {
        Ok(fd) => fd,
        Err(_) => return,
    })
    .metadata() else {
        return;
    };
    // A process that is just forking may be missed once, but not for ever; one that was killed takes a moment to go.
    for _ in 0..SWEEPS {
        let mut found = false;
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            let inside = fs::metadata(entry.path().join("ns/net"))
                .is_ok_and(|theirs| (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino()));
            // This process is never inside: only threads of its own ever were.
            if inside && pid != std::process::id() as i32 {
                found = true;
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
        if !found {
            return;
        }
        let _ = poll(&mut [], PollTimeout::from(SWEEP_MS));
    }
}

/// Is standard input a terminal that belongs to us at the moment?
fn has_terminal() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
}

fn take_terminal_back() {
    let mut stopping = SigSet::empty();
    stopping.add(Signal::SIGTTOU);
    let mut before = SigSet::empty();
    if pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&stopping), Some(&mut before)).is_ok() {
        let _ = tcsetpgrp(io::stdin(), getpgrp());
        let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None);
    }
}

/// Does anyone listen for TCP, or is a UDP socket open, in the namespace of process `pid`?
fn is_listening(pid: u32) -> bool {
    let table = |name: &str| fs::read_to_string(format!("/proc/{pid}/net/{name}")).unwrap_or_default();
    let listens = |text: &str| text.lines().skip(1).any(|line| line.split_whitespace().nth(3) == Some("0A"));
    listens(&table("tcp"))
        || listens(&table("tcp6"))
        || table("udp").lines().count() > 1
        || table("udp6").lines().count() > 1
}

//! Programs in real hosts: services that run throughout, and the one command that the run is about.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;

use nix::fcntl::OFlag;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};
use nix::sys::socket::{MsgFlags, recv, send};
use nix::unistd::{Pid, getpgrp, getpid, pipe2, tcgetpgrp, tcsetpgrp};

use airloom_base::Duration;

use super::Error;
use super::clock::wait_readable;
use super::lab::{ENDED, Keeper, Start};

/// How long a service may take until it listens.
const READY: Duration = Duration::from_secs(10);
/// How often it is asked whether it does.
const STEP: Duration = Duration::from_millis(5);
/// .. and after how many of these somebody is asked who may not want to wait any longer.
const ASK: u64 = 20;
/// How long its last words may take.
const LAST_WORDS: std::time::Duration = std::time::Duration::from_millis(200);
/// Octets of a line of a service: a longer one becomes several.
const LONGEST_LINE: u64 = 8192;
/// How long a program gets to end by itself when it is told to.
const GRACE: Duration = Duration::from_secs(2);

/// A program that is running; it is told to end when this value goes, and what it left behind ends with the
/// laboratory.
pub(super) struct Running {
    name: String,
    keeper: Arc<Keeper>,
    host: usize,
    /// Says how it ended; takes signals.
    socket: OwnedFd,
    /// Has it the terminal?
    foreground: bool,
    /// Says when everything that a service printed was passed on.
    printed: Option<Receiver<()>>,
}

impl Running {
    /// Starts `words` (program and arguments) in a host. A `foreground` program gets standard input and output, and
    /// the terminal if there is one; what others print goes to standard error, their host's name before each line, and they
    /// read nothing.
    pub(super) fn start(
        words: &[String],
        keeper: &Arc<Keeper>,
        host: usize,
        foreground: bool,
    ) -> Result<Running, Error> {
        let failed = |error: io::Error| Error::SetUp(format!("starting a program: {error}"));
        let variables = std::env::vars_os().collect();
        if foreground {
            let standard = [io::stdin().as_raw_fd(), io::stdout().as_raw_fd(), io::stderr().as_raw_fd()];
            return Running::start_with(words, keeper, host, variables, standard, has_terminal());
        }
        let nothing = File::open("/dev/null").map_err(failed)?;
        let (reads, writes) = pipe2(OFlag::O_CLOEXEC).map_err(|error| failed(error.into()))?;
        let standard = [nothing.as_raw_fd(), writes.as_raw_fd(), writes.as_raw_fd()];
        let name = keeper.hosts().get(host).map_or("", String::as_str).to_owned();
        let printed = pass_on_lines(name, reads).map_err(failed)?;
        let mut service = Running::start_with(words, keeper, host, variables, standard, false)?;
        service.printed = Some(printed);
        Ok(service)
    }

    /// The same with everything said.
    pub(super) fn start_with(
        words: &[String],
        keeper: &Arc<Keeper>,
        host: usize,
        variables: Vec<(OsString, OsString)>,
        standard: [RawFd; 3],
        foreground: bool,
    ) -> Result<Running, Error> {
        let Some(program) = words.first() else {
            return Err(Error::Command {
                program: String::new(),
                error: "an empty command".to_owned(),
                code: 127,
            });
        };
        let started = keeper
            .start(&Start { host, words, variables, standard, foreground })
            .map_err(|error| Error::SetUp(format!("bringing `{program}` into its host: {error}")))?;
        let socket = started.map_err(|error| Error::Command {
            program: program.clone(),
            code: if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 },
            error: error.to_string(),
        })?;
        Ok(Running { name: program.clone(), keeper: keeper.clone(), host, socket, foreground, printed: None })
    }

    /// Readable when it has ended.
    pub(super) fn ended(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Its exit code, if it has ended; minus the number of the signal that ended it.
    pub(super) fn exit_code(&self) -> Option<i32> {
        let mut said = [0; 5];
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        match recv(self.socket.as_raw_fd(), &mut said, flags) {
            Ok(5) if said[0] == ENDED => Some(i32::from_le_bytes([said[1], said[2], said[3], said[4]])),
            // The laboratory is gone, and the program with it: killed.
            Ok(_) => {
                self.keeper.note_gone();
                Some(-(Signal::SIGKILL as i32))
            }
            Err(_) => None,
        }
    }

    /// Sends a signal to its process group.
    pub(super) fn signal(&self, number: u8) {
        let _ = send(self.socket.as_raw_fd(), &[number], MsgFlags::MSG_NOSIGNAL);
    }

    /// Waits until a service listens on some port of its host, or was given time enough to, or `go_on` says no.
    pub(super) fn wait_until_ready(&self, go_on: &mut dyn FnMut() -> bool) -> Result<(), Error> {
        for step in 0..READY.as_nanos() / STEP.as_nanos() {
            if step.is_multiple_of(ASK) && !go_on() {
                return Err(Error::Stopped);
            }
            if let Some(code) = self.exit_code() {
                return Err(Error::Service { program: self.name.clone(), code: as_shells_say_it(code) });
            }
            if self.keeper.is_listening(self.host) {
                return Ok(());
            }
            self.wait(STEP);
        }
        Ok(())
    }

    fn wait(&self, time: Duration) {
        let _ = wait_readable(self.socket.as_fd(), time);
    }

    /// Ends it and whatever is left of its process group.
    fn end(&mut self) {
        for signal in [Signal::SIGTERM, Signal::SIGKILL] {
            if self.exit_code().is_some() {
                break;
            }
            self.signal(signal as u8);
            self.wait(GRACE);
        }
        if std::mem::take(&mut self.foreground) {
            take_terminal_back();
        }
        if let Some(printed) = self.printed.take() {
            // Until nobody is left who could print more, but children that it left behind live as long as the laboratory.
            let _ = printed.recv_timeout(LAST_WORDS);
        }
    }
}

/// An exit code where programs ended by a signal have one: 128 and its number.
pub(super) const fn as_shells_say_it(code: i32) -> i32 {
    if code < 0 { 128 - code } else { code }
}

/// Prints the lines that come out of `from` on standard error, each behind the name of its host; the receiver hears when
/// there will be no more.
fn pass_on_lines(host: String, from: OwnedFd) -> io::Result<Receiver<()>> {
    let (over, heard) = mpsc::channel::<()>();
    let pass_on = move || {
        let mut lines = BufReader::new(File::from(from));
        let mut line = Vec::new();
        loop {
            line.clear();
            line.extend_from_slice(format!("{host}: ").as_bytes());
            let mut limited = io::Read::take(&mut lines, LONGEST_LINE);
            if !limited.read_until(b'\n', &mut line).is_ok_and(|octets| octets > 0) {
                break;
            }
            if line.last() != Some(&b'\n') {
                line.push(b'\n');
            }
            // At once, so that lines of several hosts do not mix.
            let _ = io::stderr().write_all(&line);
        }
        drop(over);
    };
    thread::Builder::new().name("airloom-lines".to_owned()).spawn(pass_on)?;
    Ok(heard)
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Is standard input a terminal that is ours to give away? Others of our group have it, too: what the output is piped into (`less`)
/// may want the keyboard, and would stop all of the group if that had the terminal no more.
fn has_terminal() -> bool {
    tcgetpgrp(io::stdin()).is_ok_and(|group| group == getpgrp())
        && (io::stdout().is_terminal() || is_alone(&processes(), getpid(), getpgrp()))
}

/// The parent and the group of each process that can be seen.
fn processes() -> BTreeMap<Pid, (Pid, Pid)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let each = entries.filter_map(|entry| {
        let id: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // Behind the name, which may have anything in it, and the state.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1).map(str::parse);
        let (parent, group) = (fields.next()?.ok()?, fields.next()?.ok()?);
        Some((Pid::from_raw(id), (Pid::from_raw(parent), Pid::from_raw(group))))
    });
    each.collect()
}

/// Is nobody in the group but `own`, what it started, and what started it (`sudo`)?
fn is_alone(processes: &BTreeMap<Pid, (Pid, Pid)>, own: Pid, group: Pid) -> bool {
    let above = |from: Pid| {
        let parent = |id: &Pid| processes.get(id).map(|(parent, _)| *parent);
        std::iter::successors(Some(from), parent).take(processes.len() + 1)
    };
    let others = processes.iter().filter(|(_, (_, of))| *of == group).map(|(id, _)| *id);
    others.into_iter().all(|id| above(own).any(|one| one == id) || above(id).any(|one| one == own))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_ones_own_where_only_parents_and_children_are_in_it() {
        let pid = Pid::from_raw;
        // A shell, sudo in a group of its own, airloom, and a process of a laboratory.
        let mut processes: BTreeMap<_, _> = [(1, 0, 1), (5, 1, 5), (6, 5, 5), (7, 6, 5)]
            .map(|(id, parent, group)| (pid(id), (pid(parent), pid(group))))
            .into();
        assert!(is_alone(&processes, pid(6), pid(5)));
        // What it is piped into has been started by the shell.
        processes.insert(pid(8), (pid(1), pid(5)));
        assert!(!is_alone(&processes, pid(6), pid(5)));
    }
}

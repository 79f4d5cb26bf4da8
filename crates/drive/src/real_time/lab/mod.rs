//! The laboratory: a network namespace per real host, and one for the engine's ends of their cables.
//!
//! Namespaces have no names: two processes hold them (`warden`), and when they are gone the kernel takes the namespaces
//! down with everything in them. The machine's own interfaces are not touched. The engine's process needs no rights
//! and enters nothing: it gets the sockets of its ports, and asks for programs to be started.
//!
//! | part | what it is |
//! |---|---|
//! | `rights` | by which rights: one's own, or a user namespace |
//! | `warden`, `keeper` | the two processes, see there |
//! | `devices` | cables, addresses, routes |
//! | `tcp` | what the hosts' kernels are told of TCP |
//! | `listening` | does a service serve yet? |
//! | `leftovers` | what threads that entered a host have left there |
//! | `names` | `/etc/hosts` and `/etc/resolv.conf` |
//! | `outside` | the way to the outside world, where there is to be one |
//! | `lan` | devices behind the first host, where there are to be some |
//! | `rules` | of the packet filter |
//! | `loopback` | the way to this machine's loopback, where there is to be one |
//! | `plan` | what is to be made |
//! | `messages` | between the engine and the keeper |
//! | `child` | what no safe wrapper covers |

mod child;
mod devices;
mod keeper;
pub(super) mod lan;
mod leftovers;
mod listening;
mod loopback;
mod messages;
mod names;
mod outside;
mod plan;
mod rights;
pub(super) mod rules;
mod tcp;
mod warden;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use airloom_base::Duration;
use airloom_world::PortInfo;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CloneFlags;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{Shutdown, shutdown};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{Pid, getpid};

use super::Error;
use super::clock::wait_readable;
use super::closing::Closing;
use super::port::Port;
pub(super) use keeper::Stage;
use lan::Lan;
use loopback::Relay;
use messages::Writer;
use outside::WayOut;
use plan::Plan;
pub use rights::Rights;
pub(super) use rights::what_helps;

pub(super) use keeper::ENDED;
use keeper::NOT_ENTERED;
pub(super) use names::uninstall as uninstall_names;

/// How long an answer of the laboratory may take: what takes longer will never come.
const ANSWER: Duration = Duration::from_secs(30);
/// How long a laboratory may take to end by itself.
const GRACE: Duration = Duration::from_secs(15);

/// All namespaces of a run, and its ports in the order in which they were asked for.
pub(super) struct Laboratory {
    pub(super) keeper: Arc<Keeper>,
    pub(super) ports: Vec<Box<dyn Port>>,
}

/// The engine's way to the laboratory's process 1. When the last owner is gone so is the laboratory.
#[derive(getset::CopyGetters)]
pub(super) struct Keeper {
    socket: Option<OwnedFd>,
    /// One question at a time: the number of the last one.
    asking: Mutex<u32>,
    warden: Pid,
    /// The process that made the laboratory. Copies of it (fork) have the socket, too, and end nothing.
    owner: Pid,
    way_out: Option<WayOut>,
    hosts: Vec<String>,
    /// Names as threads of this process see them that enter a host.
    names: Vec<names::Names>,
    /// By which rights the laboratory was made.
    #[getset(get_copy = "pub(super)")]
    rights: Rights,
    /// Ends when the laboratory has.
    relay: Option<Relay>,
    /// A program ended and nobody said how: the laboratory is gone, though its other end may be open for a moment yet.
    seen_gone: AtomicBool,
    /// The engine's ports on their way out: dropped last.
    closing: Mutex<Option<Closing>>,
}

/// A program to be started.
pub(super) struct Start<'a> {
    pub(super) host: usize,
    pub(super) words: &'a [String],
    /// Variables of its environment.
    pub(super) variables: Vec<(OsString, OsString)>,
    /// Standard input, output and error.
    pub(super) standard: [RawFd; 3],
    /// Gets the terminal at its standard input.
    pub(super) foreground: bool,
}

/// What was tried and did not work.
pub(super) struct Failure {
    pub(super) stage: Stage,
    pub(super) text: String,
    pub(super) denied: bool,
}

impl Laboratory {
    /// Builds namespaces, cables, addresses and routes for `ports`, as long as `go_on` says so; devices of the machine's
    /// interface `lan`, if there is one, are behind the first host.
    pub(super) fn build(
        ports: &[PortInfo],
        lan: Option<&str>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Laboratory, Error> {
        let mut stopped = false;
        let mut go_on = || {
            stopped = stopped || !go_on();
            !stopped
        };
        let built = Laboratory::try_build(ports, lan, &mut go_on);
        built.map_err(|failure| {
            if stopped {
                return Error::Stopped;
            }
            let what = match failure.stage {
                Stage::Outside => return Error::NoWayOut(failure.text),
                Stage::Lan => return Error::Lan(failure.text),
                Stage::Namespaces => "making namespaces",
                Stage::Cables => "making veth pairs between the engine and the real hosts",
                Stage::Sockets => "opening packet sockets",
                Stage::Hosts => "furnishing the real hosts",
            };
            let text = format!("{what}: {}", failure.text);
            if failure.denied { Error::NotAllowed(text) } else { Error::SetUp(text) }
        })
    }

    /// The same, with the step that failed.
    pub(super) fn try_build(
        ports: &[PortInfo],
        lan: Option<&str>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Laboratory, Failure> {
        let rights = Rights::here();
        let lan = lan.map(|name| {
            let found = if rights == Rights::Own { Lan::find(name) } else { Err(Errno::EPERM.into()) };
            found.map_err(|e| Failure { stage: Stage::Lan, denied: false, text: format!("{name}: {e}") })
        });
        let lan = lan.transpose()?;
        if rights == Rights::Own {
            outside::repair();
        }
        let mut exits = ports.iter().filter(|p| p.is_exit).peekable();
        let has_exit = exits.peek().is_some();
        let exit_has_v6 = exits.any(|p| p.addresses.iter().any(IpAddr::is_ipv6));
        let way_out = has_exit.then(|| WayOut::find(rights, exit_has_v6)).transpose();
        let way_out = way_out.map_err(|text| Failure { stage: Stage::Outside, text, denied: true })?;
        let plan = Plan::new(ports, way_out, lan);
        let failed = |error: io::Error| Failure {
            stage: Stage::Namespaces,
            denied: error.kind() == io::ErrorKind::PermissionDenied,
            text: error.to_string(),
        };
        let (socket, warden) = warden::start(&plan, rights).map_err(failed)?;
        let mut keeper = Keeper {
            socket: None,
            asking: Mutex::new(0),
            warden,
            owner: getpid(),
            way_out: plan.way_out.clone(),
            hosts: plan.hosts.iter().map(|h| h.name.clone()).collect(),
            names: plan.hosts.iter().map(|h| h.names.clone()).collect(),
            rights,
            relay: None,
            seen_gone: AtomicBool::new(false),
            closing: Mutex::new(None),
        };
        // Dropped before the keeper, which waits for the laboratory to see its end.
        let socket = socket;
        let (answer, _) = messages::receive_while(socket.as_fd(), plan.patience(), go_on).map_err(failed)?;
        match answer.split_first() {
            Some((&keeper::READY, _)) => {}
            Some((_, [stage, a, b, c, d, text @ ..])) => {
                let code = i32::from_le_bytes([*a, *b, *c, *d]);
                let denied = matches!(code, libc::EPERM | libc::EACCES | libc::ENOSPC | libc::ENOSYS)
                    && *stage != Stage::Hosts as u8;
                let stage = Stage::ALL.get(usize::from(*stage)).copied().unwrap_or(Stage::Namespaces);
                return Err(Failure { stage, denied, text: String::from_utf8_lossy(text).into_owned() });
            }
            _ => return Err(failed(io::Error::other("the laboratory's first process ended"))),
        }
        let mut sockets = Vec::new();
        // Sockets, the tables of devices of the engine's namespace and of each host's, and those that wait at the door.
        let doors: Vec<u16> = plan.hosts.iter().flat_map(|h| h.loopback.iter().copied()).collect();
        while sockets.len() < ports.len() + 1 + plan.hosts.len() + doors.len() {
            let (_, more) = messages::receive_within(socket.as_fd(), ANSWER).map_err(failed)?;
            if more.is_empty() {
                return Err(failed(io::Error::other("the laboratory's first process ended")));
            }
            sockets.extend(more);
        }
        keeper.socket = Some(socket);
        let waiting = sockets.split_off(ports.len() + 1 + plan.hosts.len());
        if !doors.is_empty() {
            keeper.relay = Some(Relay::start(doors.into_iter().zip(waiting).collect()).map_err(failed)?);
        }
        let tables: Vec<_> =
            sockets.split_off(ports.len()).into_iter().map(|t| Arc::new(File::from(t))).collect();
        let ports = sockets.into_iter().zip(&plan.ports).enumerate();
        let ports = ports
            .map(|(n, (socket, (host, port)))| devices::port(socket, n, port, &tables[0], &tables[1 + host]))
            .collect();
        Ok(Laboratory { keeper: Arc::new(keeper), ports })
    }
}

impl Keeper {
    /// The index of a host.
    pub(super) fn host(&self, name: &str) -> Option<usize> {
        self.hosts.iter().position(|h| h == name)
    }

    /// The hosts' names.
    pub(super) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    fn ask(&self, request: &[u8], fds: &[i32]) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
        let socket = self.socket.as_ref().ok_or_else(|| io::Error::other("the laboratory is gone"))?;
        let mut number = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        *number = number.wrapping_add(1);
        messages::ask(socket.as_fd(), *number, request, fds, ANSWER)
    }

    /// Has the laboratory ended, although nobody here has ended it?
    pub(super) fn is_gone(&self) -> bool {
        let Some(socket) = &self.socket else { return true };
        // Nothing is waited for but the other end.
        let mut other_end = [PollFd::new(socket.as_fd(), PollFlags::empty())];
        self.seen_gone.load(Ordering::Relaxed)
            || poll(&mut other_end, PollTimeout::ZERO).is_ok() && other_end[0].any() == Some(true)
    }

    /// Somebody has seen that it has ended.
    pub(super) fn note_gone(&self) {
        self.seen_gone.store(true, Ordering::Relaxed);
    }

    /// Starts a program; the socket on which it says how it ended ([`NOT_ENTERED`], [`ENDED`]) and takes signals.
    pub(super) fn start(&self, start: &Start) -> io::Result<Result<OwnedFd, io::Error>> {
        let (own, theirs) = messages::pair()?;
        let mut writer = Writer::default();
        writer.number(start.host as u32);
        writer.number(u32::from(start.foreground));
        // A folder that is gone has no path; programs then begin at the root.
        let folder = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        writer.text(folder.as_os_str().as_bytes());
        writer.texts(start.words.iter().map(String::as_bytes));
        let variables: Vec<Vec<u8>> = start
            .variables
            .iter()
            .map(|(key, value)| [key.as_bytes(), b"=", value.as_bytes()].concat())
            .collect();
        writer.texts(variables.iter().map(Vec::as_slice));
        // Arguments and environment may be longer than a message.
        let mut request = File::from(memfd_create("airloom", MFdFlags::MFD_CLOEXEC)?);
        request.write_all(&writer.0)?;
        request.rewind()?;
        let [input, output, error] = start.standard;
        let (answer, _) =
            self.ask(&[keeper::START], &[request.as_raw_fd(), theirs.as_raw_fd(), input, output, error])?;
        drop(theirs);
        match answer.try_into().map(i32::from_le_bytes) {
            Ok(0) => Ok(Ok(own)),
            Ok(code) => {
                let entered = messages::receive_within(own.as_fd(), ANSWER)
                    .is_ok_and(|(said, _)| said != [NOT_ENTERED]);
                let error = io::Error::from_raw_os_error(code);
                if entered { Ok(Err(error)) } else { Err(error) }
            }
            Err(_) => Err(io::Error::other("the laboratory gave no answer")),
        }
    }

    /// Does anyone listen on some port of the host?
    pub(super) fn is_listening(&self, host: usize) -> bool {
        self.ask(&request(keeper::LISTENING, host), &[]).is_ok_and(|(answer, _)| answer == [1])
    }

    /// The network namespace of a host.
    pub(super) fn namespace(&self, host: usize) -> io::Result<OwnedFd> {
        let (_, fds) = self.ask(&request(keeper::NAMESPACE, host), &[])?;
        fds.into_iter().next().ok_or_else(|| io::Error::other("no such host"))
    }

    /// A new TCP or UDP socket of this process in a host.
    pub(super) fn socket(&self, host: usize, is_stream: bool, is_v6: bool) -> io::Result<OwnedFd> {
        let mut request = request(keeper::SOCKET, host);
        request.extend([u8::from(is_stream), u8::from(is_v6)]);
        let (answer, fds) = self.ask(&request, &[])?;
        let code = answer.try_into().map_or(0, i32::from_le_bytes);
        fds.into_iter().next().ok_or_else(|| io::Error::from_raw_os_error(code))
    }

    /// The names that the host's programs see.
    pub(super) fn names(&self, host: usize) -> Option<&names::Names> {
        self.names.get(host)
    }

    /// Has not ended before these ports are closed.
    pub(super) fn ends_after(&self, closing: Closing) {
        *self.closing.lock().unwrap_or_else(PoisonError::into_inner) = Some(closing);
    }
}

/// The beginning of a request about a host.
fn request(kind: u8, host: usize) -> Vec<u8> {
    [&[kind][..], &(host as u32).to_le_bytes()].concat()
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if getpid() != self.owner {
            // The thread that it would wait for is not in the copy.
            std::mem::forget(self.relay.take());
            return;
        }
        // The keeper sees the end of its socket, whoever else has it open, and goes; the warden is gone when everything is.
        if let Some(socket) = self.socket.take() {
            let _ = shutdown(socket.as_raw_fd(), Shutdown::Both);
        }
        let gone = child::pidfd(self.warden).and_then(|warden| wait_readable(warden.as_fd(), GRACE));
        if !gone.unwrap_or(false) {
            // Without it the keeper is killed, and with that everything else (PR_SET_PDEATHSIG).
            let _ = kill(self.warden, Signal::SIGKILL);
        }
        let ended = loop {
            match waitpid(self.warden, None) {
                Err(Errno::EINTR) => {}
                ended => break ended,
            }
        };
        if let Some(way) = self.way_out.as_ref().filter(|_| !matches!(ended, Ok(WaitStatus::Exited(_, 0)))) {
            way.put_back();
        }
        drop(self.relay.take());
    }
}

/// Moves the calling process, which must have one thread, into a user namespace in which it has every right.
///
/// Its network and mount namespaces are new ones too: from a laboratory a thread can come back only to what belongs
/// to the process's own user namespace.
pub(super) fn enter_user_namespace() -> io::Result<()> {
    rights::take(Rights::UserNamespace, CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)?;
    devices::prepare(true, false)?;
    child::keep_capabilities(&rights::PROCESS_KEEPS)
}

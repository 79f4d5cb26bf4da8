//! Process 1 of a laboratory: makes its namespaces and cables, then starts programs in them when asked.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use airloom_world::{PortDevice, PortInfo};
use nix::errno::Errno;
use nix::libc::EINVAL;
use nix::mount::{MsFlags, mount};
use nix::poll::{PollTimeout, poll};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, killpg, pthread_sigmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::fstat;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getpid, tcsetpgrp, write};

use super::messages::{self, Reader};
use super::names::Names;
use super::plan::Plan;
use super::rights::{self, Rights};
use super::{child, devices, lan, listening, loopback, outside};
use crate::real_time::clock::readable;

/// What was being made when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Namespaces,
    Cables,
    Sockets,
    Hosts,
    Outside,
    Lan,
}

impl Stage {
    pub(super) const ALL: [Stage; 6] =
        [Stage::Namespaces, Stage::Cables, Stage::Sockets, Stage::Hosts, Stage::Outside, Stage::Lan];
}

/// First octet of the keeper's first message.
pub(super) const READY: u8 = 0;
pub(super) const FAILED: u8 = 1;

/// First octet of requests.
pub(super) const START: u8 = b's';
pub(super) const LISTENING: u8 = b'l';
pub(super) const NAMESPACE: u8 = b'n';
pub(super) const SOCKET: u8 = b'k';

/// What a program's own socket says before its program was loaded, if it could not be brought there.
pub(super) const NOT_ENTERED: u8 = b'e';
/// .. and when it has ended, followed by the exit code, or minus the signal that ended it.
pub(crate) const ENDED: u8 = b'x';

/// The message that says what failed.
pub(super) fn failure(stage: Stage, error: &io::Error) -> Vec<u8> {
    let mut message = vec![FAILED, stage as u8];
    message.extend_from_slice(&error.raw_os_error().unwrap_or(0).to_le_bytes());
    message.extend_from_slice(error.to_string().as_bytes());
    message
}

/// The keeper's whole life.
pub(super) fn keeper(
    plan: &Plan,
    rights: Rights,
    socket: BorrowedFd,
    engine: BorrowedFd,
    warden: BorrowedFd,
) -> i32 {
    let made = nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)
        .map_err(|e| (Stage::Namespaces, e.into()))
        .and_then(|()| Keeper::make(plan, rights, warden));
    let mut keeper = match made {
        Ok((keeper, sockets)) => match keeper.hand_over(socket, sockets) {
            Ok(()) => keeper,
            Err(_) => return 1,
        },
        Err((stage, error)) => {
            let _ = messages::send(socket, &failure(stage, &error), &[]);
            return 1;
        }
    };
    i32::from(keeper.serve(socket, engine).is_err())
}

struct Program {
    leader: Pid,
    /// The engine's side reads how it ended and writes signals; closed when it has lost interest.
    socket: OwnedFd,
    running: bool,
    has_terminal: bool,
    /// Its standard error, where it reads from a terminal: ours is nowhere.
    says: Option<OwnedFd>,
}

struct Keeper<'a> {
    plan: &'a Plan,
    rights: Rights,
    /// Is told of the network namespaces that somebody enters.
    warden: BorrowedFd<'a>,
    /// Those that it was told of.
    told: Vec<u64>,
    /// Where the engine's ends of the cables are.
    base: OwnedFd,
    /// The network namespace of each host.
    hosts: Vec<OwnedFd>,
    children: SignalFd,
    programs: Vec<Program>,
}

impl<'a> Keeper<'a> {
    fn make(
        plan: &'a Plan,
        rights: Rights,
        warden: BorrowedFd<'a>,
    ) -> Result<(Keeper<'a>, Vec<OwnedFd>), (Stage, io::Error)> {
        let stage = |stage| move |error: io::Error| (stage, error);
        let namespaces = || -> io::Result<_> {
            unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWNET)?;
            let none = None::<&str>;
            mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)?;
            // Programs see their own processes. Where that is refused (in some containers) the old one does: it
            // shows each program itself as it should.
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
            let _ = mount(Some("proc"), "/proc", Some("proc"), flags, none);
            devices::prepare(false, false)?;
            let base = network_namespace()?;
            let mut hosts = Vec::new();
            for host in &plan.hosts {
                unshare(CloneFlags::CLONE_NEWNET)?;
                devices::prepare(host.has_v6, host.forwards)?;
                hosts.push(network_namespace()?);
            }
            setns(base.as_fd(), CloneFlags::CLONE_NEWNET)?;
            Ok((base, hosts))
        };
        let (base, hosts) = namespaces().map_err(stage(Stage::Namespaces))?;
        devices::cables(&plan.ports, &hosts).map_err(stage(Stage::Cables))?;
        let mut only_children = SigSet::empty();
        only_children.add(Signal::SIGCHLD);
        let children = SignalFd::with_flags(&only_children, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
            .map_err(|e| (Stage::Namespaces, e.into()))?;
        let keeper =
            Keeper { plan, rights, warden, told: Vec::new(), base, hosts, children, programs: Vec::new() };
        let socket = |(n, (host, port)): (usize, &(usize, PortInfo))| match port.device {
            PortDevice::Veth => devices::socket(n),
            PortDevice::Tun => keeper.inside(*host, || devices::tun(n, port)),
        };
        let sockets: io::Result<Vec<_>> = plan.ports.iter().enumerate().map(socket).collect();
        let mut sockets = sockets.map_err(stage(Stage::Sockets))?;
        keeper.furnish().map_err(stage(Stage::Hosts))?;
        if let (Some(way), Some(exit)) = (&plan.way_out, plan.hosts.iter().position(|h| h.is_exit)) {
            let namespace = keeper.hosts[exit].as_fd();
            keeper
                .inside(exit, || outside::furnish(way, warden, namespace))
                .map_err(stage(Stage::Outside))?;
        }
        if let (Some(_), Some(first)) = (&plan.lan, plan.hosts.first()) {
            let namespace = keeper.hosts[0].as_fd();
            keeper.inside(0, || lan::furnish(warden, namespace, first.has_v6)).map_err(stage(Stage::Lan))?;
        }
        // Behind the ports: the counters of the engine's devices, then those of each host's.
        sockets.push(devices::table().map_err(stage(Stage::Sockets))?);
        for host in 0..keeper.hosts.len() {
            sockets.push(keeper.inside(host, devices::table).map_err(stage(Stage::Sockets))?);
        }
        for (number, host) in plan.hosts.iter().enumerate() {
            for port in &host.loopback {
                let listening = keeper.inside(number, || loopback::listen(*port)).map_err(|error| {
                    let text = format!("host `{}`: listening on port {port}: {error}", host.name);
                    (Stage::Hosts, io::Error::new(error.kind(), text))
                })?;
                sockets.push(listening);
            }
        }
        Ok((keeper, sockets))
    }

    /// Addresses, routes and settings inside the hosts.
    fn furnish(&self) -> io::Result<()> {
        for (number, host) in self.plan.hosts.iter().enumerate() {
            let within = |what: &str, error: io::Error| {
                io::Error::new(error.kind(), format!("host `{}`: {what}: {error}", host.name))
            };
            self.inside(number, || {
                if host.forwards {
                    devices::check_forwarding(host.has_v6).map_err(|e| within("it is a gateway", e))?;
                }
                for (key, value) in &host.settings {
                    fs::write(format!("/proc/sys/net/{key}"), value)
                        .map_err(|e| within(&format!("net.{} = {value}", key.replace('/', ".")), e))?;
                }
                let ports = self.plan.ports.iter().enumerate().filter(|(_, (owner, _))| *owner == number);
                for (n, (_, port)) in ports {
                    devices::configure(n, port)
                        .map_err(|e| within(&format!("interface `{}`", port.link_name), e))?;
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Runs `work` in the network namespace of a host.
    fn inside<T>(&self, host: usize, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let namespace = self.hosts.get(host).ok_or_else(|| io::Error::other("no such host"))?;
        setns(namespace.as_fd(), CloneFlags::CLONE_NEWNET)?;
        let result = work();
        setns(self.base.as_fd(), CloneFlags::CLONE_NEWNET)?;
        result
    }

    fn hand_over(&self, socket: BorrowedFd, sockets: Vec<OwnedFd>) -> io::Result<()> {
        messages::send(socket, &[READY], &[])?;
        for few in sockets.chunks(messages::MOST_FDS) {
            let numbers: Vec<_> = few.iter().map(AsRawFd::as_raw_fd).collect();
            messages::send(socket, &[READY], &numbers)?;
        }
        Ok(())
    }

    /// Answers requests until the engine is gone or has closed its end.
    fn serve(&mut self, socket: BorrowedFd, engine: BorrowedFd) -> io::Result<()> {
        loop {
            let mut wait = vec![readable(socket), readable(engine), readable(self.children.as_fd())];
            wait.extend(self.programs.iter().map(|p| readable(p.socket.as_fd())));
            match poll(&mut wait, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            let ready: Vec<bool> = wait.iter().map(|w| w.any().unwrap_or(true)).collect();
            drop(wait);
            if ready[1] {
                return Ok(());
            }
            if ready[2] {
                while matches!(self.children.read_signal(), Ok(Some(_))) {}
                self.bury();
            }
            let mut wanted = ready[3..].iter().copied();
            self.programs.retain(|program| !wanted.next().unwrap_or(false) || program.hear());
            if ready[0] {
                let (request, fds) = messages::receive(socket)?;
                if request.is_empty() {
                    return Ok(());
                }
                let (number, request) =
                    request.split_at_checked(4).ok_or_else(|| io::Error::other("no question"))?;
                let (answer, made) = self.answer(request, fds)?;
                let made: Vec<_> = made.iter().map(AsRawFd::as_raw_fd).collect();
                messages::send(socket, &[number, &answer].concat(), &made)?;
            }
        }
    }

    /// Takes note of every child that has ended; children of programs that died come here too.
    fn bury(&mut self) {
        let flags = WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED;
        while let Ok(status) = waitpid(None::<Pid>, Some(flags)) {
            let (pid, code) = match status {
                WaitStatus::Exited(pid, code) => (pid, code),
                WaitStatus::Signaled(pid, signal, _) => (pid, -(signal as i32)),
                WaitStatus::Stopped(pid, signal) => {
                    self.stopped(pid, signal);
                    continue;
                }
                _ => return,
            };
            if let Some(program) = self.programs.iter_mut().find(|p| p.running && p.leader == pid) {
                program.running = false;
                let [a, b, c, d] = code.to_le_bytes();
                let _ = messages::send(program.socket.as_fd(), &[ENDED, a, b, c, d], &[]);
            }
        }
    }

    /// No shell takes note of a program that is stopped while it has the terminal (Ctrl-Z), nor could one ever wake it.
    fn stopped(&self, leader: Pid, signal: Signal) {
        let Some(program) = self.programs.iter().find(|p| p.running && p.leader == leader) else { return };
        let line = match signal {
            Signal::SIGTSTP | Signal::SIGSTOP if program.has_terminal => {
                let _ = killpg(leader, Signal::SIGCONT);
                "a command that has the terminal cannot be stopped: it goes on"
            }
            Signal::SIGTTIN if !program.has_terminal => {
                "the command waits for the terminal, which what it is piped into has"
            }
            _ => return,
        };
        if let Some(says) = &program.says {
            let _ = write(says, format!("airloom: {line}\n").as_bytes());
        }
    }

    /// The answer to a request, and a descriptor that goes with it.
    fn answer(&mut self, request: &[u8], fds: Vec<OwnedFd>) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
        let host = request.get(1..).and_then(|rest| Reader(rest).number()).unwrap_or(u32::MAX) as usize;
        let failed = |e: io::Error| e.raw_os_error().unwrap_or(EINVAL).to_le_bytes().to_vec();
        Ok(match request.first() {
            Some(&START) => (self.start(fds).map_or_else(failed, |()| vec![0; 4]), None),
            Some(&LISTENING) => {
                let listening = self.inside(host, || Ok(listening::is_listening())).unwrap_or(false);
                (vec![u8::from(listening)], None)
            }
            Some(&NAMESPACE) => match self.hosts.get(host) {
                Some(namespace) => {
                    let number = fstat(namespace)?.st_ino;
                    if !self.told.contains(&number) {
                        self.told.push(number);
                        messages::send(self.warden, &[0], &[namespace.as_raw_fd()])?;
                    }
                    (vec![1], Some(namespace.try_clone()?))
                }
                None => (vec![0], None),
            },
            Some(&SOCKET) => {
                let is = |at: usize| request.get(at) == Some(&1);
                match self.inside(host, || devices::transport(is(5), is(6))) {
                    Ok(made) => (vec![0; 4], Some(made)),
                    Err(error) => (failed(error), None),
                }
            }
            _ => return Err(io::Error::other("a request that nobody makes")),
        })
    }

    /// Starts a program: `fds` are the request, its own socket, and its standard input, output and error.
    fn start(&mut self, fds: Vec<OwnedFd>) -> io::Result<()> {
        let malformed = || io::Error::from_raw_os_error(EINVAL);
        let [request, own, input, output, error]: [OwnedFd; 5] = fds.try_into().map_err(|_| malformed())?;
        let mut octets = Vec::new();
        File::from(request).read_to_end(&mut octets)?;
        let mut reader = Reader(&octets);
        let host = reader.number().ok_or_else(malformed)? as usize;
        let foreground = reader.number().ok_or_else(malformed)? == 1;
        let folder = reader.text().ok_or_else(malformed)?;
        let words = reader.texts().ok_or_else(malformed)?;
        let variables = reader.texts().ok_or_else(malformed)?;
        let (program, arguments) = words.split_first().ok_or_else(malformed)?;
        let namespace = self.hosts.get(host).ok_or_else(malformed)?.as_raw_fd();

        let says = input.is_terminal().then(|| error.try_clone()).transpose()?;
        let mut command = Command::new(OsStr::from_bytes(program));
        command.args(arguments.iter().map(|a| OsStr::from_bytes(a))).env_clear().process_group(0);
        command.stdin(Stdio::from(input)).stdout(Stdio::from(output)).stderr(Stdio::from(error));
        for variable in variables {
            let at = variable.iter().skip(1).position(|b| *b == b'=').map(|at| at + 1);
            let (key, value) = variable.split_at(at.ok_or_else(malformed)?);
            command.env(OsStr::from_bytes(key), OsStr::from_bytes(&value[1..]));
        }
        let entry = Entry {
            names: self.plan.hosts[host].names.clone(),
            folder: OsString::from_vec(folder.to_vec()),
            rights: self.rights,
            foreground,
        };
        let report = own.as_raw_fd();
        child::before_exec(&mut command, move || {
            entry.enter(child::borrowed(namespace)).inspect_err(|_| {
                let _ = messages::send(child::borrowed(report), &[NOT_ENTERED], &[]);
            })
        });
        // It is waited for by `bury`, like every other child.
        let leader = Pid::from_raw(command.spawn()?.id() as i32);
        self.programs.push(Program { leader, socket: own, running: true, has_terminal: foreground, says });
        Ok(())
    }
}

impl Program {
    /// A signal from the engine's side goes to the whole group; false if nobody is interested any more.
    fn hear(&self) -> bool {
        let Ok((octets, _)) = messages::receive(self.socket.as_fd()) else { return false };
        let signal = octets.first().and_then(|number| Signal::try_from(i32::from(*number)).ok());
        if let (Some(signal), true) = (signal, self.running) {
            let _ = killpg(self.leader, signal);
        }
        // When nobody cares any more it goes on until the laboratory ends, like a program that a shell left behind.
        !octets.is_empty()
    }
}

/// What a program needs to be brought to its place.
struct Entry {
    names: Names,
    folder: OsString,
    rights: Rights,
    foreground: bool,
}

impl Entry {
    fn enter(&self, namespace: BorrowedFd) -> io::Result<()> {
        setns(namespace, CloneFlags::CLONE_NEWNET)?;
        self.names.install()?;
        std::env::set_current_dir(&self.folder)?;
        rights::keep(self.rights)?;
        if self.foreground {
            // A background group that touches the terminal is stopped, unless the signal is blocked.
            let mut stopping = SigSet::empty();
            stopping.add(Signal::SIGTTOU);
            pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&stopping), None)?;
            tcsetpgrp(child::borrowed(0), getpid())?;
        }
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
        Ok(())
    }
}

/// The calling process's network namespace.
fn network_namespace() -> io::Result<OwnedFd> {
    Ok(File::open("/proc/self/ns/net")?.into())
}

//! Real time: real programs on the kernel's own stack, every datagram through the same model.
//!
//! A host marked `real` is a network namespace of its own whose interfaces end at the engine (`lab`). The
//! engine is one loop in a thread of its own:
//!
//! ```text
//!          +--> read all ports --> in order of arrival: ingress --+
//!          |                                                      v
//!        wait  <--  records to the caller  <--  egress  <--  deadlines that have come
//! ```
//!
//! Kernels hand over super-packets: many segments under one header. A link that only delays passes them on whole; one
//! that counts datagrams gets them cut, and what leaves it at once is joined again (`departing`). Payload is not copied.
//!
//! The model is told *nominal* times only: the stamp that the kernel put on a frame, or the deadline itself; never
//! the moment at which the thread woke up. So a late wake-up makes one departure late and moves nothing after it.
//! How late each departure was goes into a histogram, and a run that was too late to be believed says so
//! ([`Report::verdict`]).
//!
//! | part | what it is |
//! |---|---|
//! | `engine` | the loop |
//! | `exchange` | what it shares with its caller: records, changes, a request to end |
//! | [`control`] | changes by hand while it runs |
//! | `load` | what it uses of the processor |
//! | `clock` | the monotonic clock and the kernel's stamps |
//! | `awake` | processors that do not fall asleep meanwhile |
//! | `pace` | waiting to the microsecond; how the kernel schedules the engine |
//! | [`port`], `tun` | a device: packet socket on a veth pair, or TUN; others fit the same trait |
//! | `vnet`, `departing` | offload headers; frames on their way out |
//! | `buffers` | memory for frames, bounded |
//! | `lab` | namespaces and the processes that hold them; by which rights |
//! | `netlink` | devices, addresses, routes |
//! | `process` | services and the command in real hosts |
//! | [`hosts`] | the same while a run goes on, for other threads |
//! | [`user_space`] | real sockets at both ends instead, where there can be no namespaces |
//! | `sys` | what no safe wrapper covers |

mod awake;
mod buffers;
mod capabilities;
mod clock;
mod closing;
pub mod control;
mod departing;
mod engine;
mod error;
mod exchange;
pub mod hosts;
mod lab;
mod load;
mod meter;
mod netlink;
mod pace;
pub mod port;
mod process;
mod report;
mod sys;
mod tun;
pub mod user_space;
mod vnet;

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use airloom_base::{Duration, Instant, Outbox};
use airloom_record::{Recorder, TableFiles, Tables};
use airloom_world::World;
use airloom_world::scenario::{RecordKind, Scenario};

use crate::run::{self, DriveError, Results};
use crate::virtual_time::{Outcome, Until};

pub use awake::Wakefulness;
pub use capabilities::{Capabilities, capabilities};
pub use control::Control;
pub use error::Error;
pub use hosts::Hosts;
pub use lab::Rights;
pub use meter::Meter;
pub use pace::Priority;
pub use report::{Report, Verdict};

/// How often the caller has a look, records or not.
const LOOK: Duration = Duration::from_millis(100);

/// What lasts until somebody ends it: longer than any machine is up.
pub const FOR_EVER: Until = Until::Elapsed(Duration::from_secs(100 * 365 * 86_400));

/// Moves the calling process into a user namespace of its own, with the rights to make laboratories and to enter their
/// hosts, for itself and for the programs that it becomes. Outside of laboratories it has a network of its own with
/// nothing but loopback. The kernel refuses it to a process with several threads.
pub fn enter_user_namespace() -> Result<(), Error> {
    lab::enter_user_namespace().map_err(|error| {
        let text = format!("entering a user namespace: {error}");
        match error.kind() {
            io::ErrorKind::InvalidInput => Error::SetUp(format!("{text} (this process has several threads)")),
            _ => Error::NotAllowed(text),
        }
    })
}

/// Lets nothing that comes by the machine's interface `device` in but into laboratories whose `lan` it is; until what is
/// returned is dropped. Frames of IEEE 802.1X pass.
pub fn close_to_the_machine(device: &str) -> Result<OwnedFd, Error> {
    let closed = lab::rules::close(device);
    closed.map_err(|error| {
        let taken = lab::rules::is_taken(&error);
        Error::Lan(if taken {
            format!("another gateway has {device} already")
        } else {
            format!("{device}: {error}")
        })
    })
}

/// Addresses and prefix lengths of a laboratory on the side of its devices: IPv4, IPv6.
pub fn lan_addresses() -> [(IpAddr, u8); 2] {
    lab::lan::ADDRESSES.map(|prefix| (prefix.address, prefix.bits))
}

/// Runs `world` in real time until `command` (in the first real host) has ended, or without one as `until` says;
/// services of real hosts are started before and ended after.
///
/// `look` is called ten times a second, and whenever there are records, with the time and the records made since: it
/// takes them out (they are forgotten afterwards) and says whether to go on. It runs in the calling thread: the engine
/// does not wait for it. It is asked as often while the laboratory is being made and services start. Nothing is left
/// behind, whatever happens.
pub fn run(
    world: &mut World,
    command: Option<&[String]>,
    until: Until,
    mut look: impl FnMut(Instant, &mut Outbox) -> bool,
) -> Result<Report, Error> {
    run_and_tell(world, None, command, until, true, |_, _| {}, |now, _, records| look(now, records))
}

/// The same, and `ready` is told of the real hosts when they and their services are there, and how to reach the engine;
/// `look` gets to know besides how many octets wait in the longest queue of a link.
fn run_and_tell(
    world: &mut World,
    lan: Option<&str>,
    command: Option<&[String]>,
    until: Until,
    keep_awake: bool,
    ready: impl FnOnce(Hosts, Arc<exchange::Shared>),
    mut look: impl FnMut(Instant, u64, &mut Outbox) -> bool,
) -> Result<Report, Error> {
    let called = clock::Clock::start();
    let ports = world.ports().to_vec();
    // The ways out of the laboratory are there for the others.
    if ports.iter().all(|p| p.is_exit || !p.loopback.is_empty()) {
        return Err(Error::NothingReal);
    }
    let mut records = world.records().counterpart();
    let mut go_on = || look(Instant::ZERO, 0, &mut records);
    // Dropped in reverse order: programs end before the laboratory they live in.
    let mut laboratory = lab::Laboratory::build(&ports, lan, &mut go_on)?;
    let keeper = laboratory.keeper.clone();
    let mut services: Vec<process::Running> = Vec::new();
    for (n, host) in keeper.hosts().iter().enumerate() {
        let words = ports.iter().find(|p| p.host_name == *host).and_then(|p| p.command.as_ref());
        if let Some(words) = words {
            let service = process::Running::start(words, &keeper, n, false)?;
            service.wait_until_ready(&mut go_on)?;
            services.push(service);
        }
    }
    let sockets = std::mem::take(&mut laboratory.ports);
    let until = if command.is_some() { FOR_EVER } else { until };
    let engine = engine::start(std::mem::take(world), sockets, until, command.is_none(), keep_awake, called)?;
    ready(Hosts::new(&keeper), engine.shared());
    let started = command.map(|words| process::Running::start(words, &keeper, 0, true)).transpose();
    let watched = started.and_then(|command| {
        let stopped = watch(&engine, command.as_ref(), &keeper, &mut records, look)?;
        Ok((stopped, command.as_ref().and_then(process::Running::exit_code)))
    });
    if watched.is_err() {
        engine.stop();
    }
    // A device of a laboratory that is gone fails too, and a program in it ended as if somebody had killed it.
    let report = engine.join(world);
    if keeper.is_gone() {
        return Err(Error::Gone);
    }
    let (stopped, exit_code) = watched?;
    let (report, closing) = report?;
    keeper.ends_after(closing);
    let exit_code = exit_code.map(process::as_shells_say_it);
    let outcome = if stopped { Outcome::Stopped } else { Outcome::Complete };
    let outcome = if report.outcome == Outcome::Stopped { outcome } else { report.outcome };
    Ok(Report { outcome, exit_code, ..report })
}

/// Looks at what the engine records until it has ended by itself, the command has ended, or `look` says so: then true.
fn watch(
    engine: &exchange::Handle,
    command: Option<&process::Running>,
    keeper: &lab::Keeper,
    records: &mut Outbox,
    mut look: impl FnMut(Instant, u64, &mut Outbox) -> bool,
) -> Result<bool, Error> {
    let mut stopped = false;
    let mut asked = false;
    loop {
        let ended = command.filter(|_| !asked).map(process::Running::ended);
        let mut descriptors: Vec<_> = [engine.told()].into_iter().chain(ended).map(clock::readable).collect();
        pace::sleep(&mut descriptors, LOOK).map_err(|e| Error::Device(e.to_string()))?;
        let (now, backlog, over) = engine.take(records);
        let go_on = look(now, backlog, records);
        records.clear();
        if over {
            return Ok(stopped);
        }
        if keeper.is_gone() {
            return Err(Error::Gone);
        }
        if !asked && (!go_on || command.is_some_and(|c| c.exit_code().is_some())) {
            (asked, stopped) = (true, !go_on);
            engine.stop();
        }
    }
}

/// The run folder that files go into.
pub struct Files {
    /// Where it is.
    pub folder: PathBuf,
    /// What each table says of the run: texts by name.
    pub metadata: Vec<(String, String)>,
    /// The identity of the run.
    pub run_id: String,
}

impl Files {
    /// What writes those that `scenario` asks for, as the records come.
    fn begin(&self, scenario: &Scenario) -> io::Result<Written> {
        let records = |kind| scenario.run.records(kind);
        let mut recorder = run::recorder(scenario, &self.run_id, Some(&self.folder))?;
        let mut names = vec!["flows", "pages", "states"];
        let optional = [RecordKind::Packets, RecordKind::Objects, RecordKind::Congestion];
        names.extend(optional.into_iter().filter(|kind| records(*kind)).map(RecordKind::name));
        recorder.tables.keep_only(&names);
        let tables = TableFiles::create(&self.folder, &names, &self.metadata)?;
        Ok(Written { recorder, tables })
    }
}

/// Files that are being written.
struct Written {
    recorder: Recorder,
    tables: TableFiles,
}

impl Written {
    fn drain(&mut self, records: &mut Outbox) -> io::Result<()> {
        self.recorder.drain(records)?;
        self.tables.take(&mut self.recorder.tables)
    }

    fn finish(self) -> io::Result<()> {
        let rest = self.recorder.finish()?;
        self.tables.finish(rest)
    }
}

/// Runs `scenario` in real time until `until`: from the scenario as understood to a report, with the tables and the capture in a
/// folder if there is one. `ready` is told of the real hosts when they are there, and gets what changes the links by hand; `look`
/// gets to see the time, the octets in the longest queue and the records ten times a second. Devices of the machine's interface
/// `lan`, if one is named, are behind the first real host, which has addresses for them ([`lan_addresses`]). See [`run()`] for the
/// rest.
pub fn emulate(
    scenario: &Scenario,
    lan: Option<&str>,
    command: Option<&[String]>,
    until: Until,
    files: Option<&Files>,
    ready: impl FnOnce(Hosts, Control),
    mut look: impl FnMut(Instant, u64, &Outbox) -> bool,
) -> Result<(Results, Report), DriveError> {
    let mut written = files.map(|files| files.begin(scenario)).transpose()?;
    let mut world = scenario.build(true)?;
    let mut failed = None;
    let tell = |hosts, shared| ready(hosts, Control::new(shared, scenario));
    let mut report = run_and_tell(
        &mut world,
        lan,
        command,
        until,
        scenario.run.keep_awake,
        tell,
        |now, backlog, records| {
            let go_on = look(now, backlog, records);
            if let Some(Err(e)) = written.as_mut().map(|written| written.drain(records)) {
                failed.get_or_insert(e);
            }
            failed.is_none() && go_on
        },
    )?;
    if let Some(e) = failed {
        return Err(e.into());
    }
    run::check_timeline(&world)?;
    report.limit = scenario.run.lateness_limit;
    let mut summary = world.summary();
    report.summarise(&mut summary);
    written.map_or(Ok(()), Written::finish)?;
    Ok((Results { outcome: report.outcome, summary, tables: Tables::default() }, report))
}

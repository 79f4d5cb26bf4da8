//! The two processes that a laboratory lives in.
//!
//! ```text
//!  the engine's process   any number of threads, no rights needed
//!      |  fork
//!    warden               in the new user namespace; watches the engine's process and ends with it
//!      |  fork
//!    keeper               process 1 of a new PID namespace; dies when the warden does (PR_SET_PDEATHSIG)
//!      |  fork, exec
//!    programs             whatever they start stays in the PID namespace
//! ```
//!
//! When process 1 of a PID namespace dies the kernel kills everything in it, daemons that left their parents too. So
//! nothing is left of a laboratory when the engine's process is gone, however it went. The warden does one thing
//! only, so that nothing can keep it from noticing.
//!
//! Programs that a thread of the engine's process starts while it is in a host are in no PID namespace of ours: the
//! warden looks for them by their network namespace, and ends them when the laboratory ends (`leftovers`).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::CloneFlags;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, getpid, setpgid};

use airloom_base::Duration;

use super::outside::Outside;
use super::plan::Plan;
use super::rights::{self, Rights};
use super::{child, keeper, lan, leftovers, messages, outside};
use crate::real_time::clock::readable;

/// Starts both processes; the engine's end of the keeper's socket, and the warden's number.
pub(super) fn start(plan: &Plan, rights: Rights) -> io::Result<(OwnedFd, Pid)> {
    let own = getpid();
    let engine = child::pidfd(own)?;
    let (here, there) = messages::pair()?;
    let warden = child::in_copy(|| warden(plan, rights, there.as_fd(), engine.as_fd(), own))?;
    Ok((here, warden))
}

fn warden(plan: &Plan, rights: Rights, socket: BorrowedFd, engine: BorrowedFd, owner: Pid) -> i32 {
    let keeper = match prepare(rights, socket, engine) {
        Ok(()) => messages::pair().and_then(|(ours, theirs)| {
            let keeper = child::in_copy(|| keeper::keeper(plan, rights, socket, engine, theirs.as_fd()))?;
            Ok((keeper, ours))
        }),
        Err(error) => Err(error),
    };
    let (keeper, ours) = match keeper {
        Ok(started) => started,
        Err(error) => {
            let _ = messages::send(socket, &keeper::failure(keeper::Stage::Namespaces, &error), &[]);
            return 1;
        }
    };
    // The keeper has its own copy: when it is gone the engine must see the end.
    let _ = child::close_all_but(&[engine.as_raw_fd(), ours.as_raw_fd()]);
    // Kept until the laboratory is gone. What failed the keeper was told, who ends then.
    let outside =
        plan.way_out.as_ref().and_then(|way| outside::make(way, ours.as_fd(), plan.patience()).ok());
    let lan = plan.lan.as_ref().and_then(|lan| lan::make(lan, ours.as_fd(), plan.patience()).ok());
    let mut networks = Vec::new();
    if let Ok(ended) = child::pidfd(keeper) {
        networks = watch(engine, ended.as_fd(), ours.as_fd(), outside.as_ref());
    }
    let _ = kill(keeper, Signal::SIGKILL);
    drop((outside, lan));
    // Returns when the whole PID namespace is empty.
    while waitpid(keeper, None) == Err(Errno::EINTR) {}
    networks.extend(entered(ours.as_fd()));
    leftovers::end(&networks, owner);
    0
}

/// The network namespaces that threads have entered, as the keeper has said since this was asked last.
///
/// They are held: while they are, no other namespace of the machine gets one of their numbers.
fn entered(keeper: BorrowedFd) -> Vec<OwnedFd> {
    let said = std::iter::from_fn(|| {
        messages::receive_within(keeper, Duration::ZERO).ok().filter(|(octets, _)| !octets.is_empty())
    });
    said.flat_map(|(_, fds)| fds).collect()
}

/// Returns when the engine's process, the keeper, or the program of the way out has ended: without that a laboratory is not
/// what it was made as. What was [`entered`] is taken as it comes: the keeper, whose socket holds a few hundred messages, would
/// stand still.
fn watch(
    engine: BorrowedFd,
    keeper: BorrowedFd,
    told: BorrowedFd,
    outside: Option<&Outside>,
) -> Vec<OwnedFd> {
    let helper = outside.and_then(Outside::program);
    let mut watched = vec![readable(engine), readable(keeper)];
    watched.extend(helper.as_ref().map(|program| readable(program.as_fd())));
    let ends = watched.len();
    watched.push(readable(told));
    let mut networks = Vec::new();
    loop {
        while poll(&mut watched, PollTimeout::NONE).is_err() {}
        networks.extend(entered(told));
        if watched[..ends].iter().any(|one| one.any().unwrap_or(true)) {
            return networks;
        }
        // The keeper may close its end before it has ended.
        let is_closed = |one: &PollFd| one.revents().is_none_or(|events| events.contains(PollFlags::POLLHUP));
        if watched.get(ends).is_some_and(is_closed) {
            watched.truncate(ends);
        }
    }
}

fn prepare(rights: Rights, socket: BorrowedFd, engine: BorrowedFd) -> io::Result<()> {
    // The terminal's signals are for the programs; somebody who ends the engine's group ends the engine.
    setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    let nothing = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    for standard in 0..3 {
        child::become_standard(nothing.as_fd(), standard)?;
    }
    // Pipes of the original must end when the original closes them.
    child::close_all_but(&[socket.as_raw_fd(), engine.as_raw_fd()])?;
    // Closed just now, by its number.
    std::mem::forget(nothing);
    rights::take(rights, CloneFlags::CLONE_NEWPID)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::thread;

    use nix::sys::stat::fstat;

    use super::*;

    /// A socket holds 278.
    const MORE_THAN_WAIT: usize = 400;

    #[test]
    fn any_number_of_networks_is_heard_of_while_the_laboratory_lives() {
        let [(engine, _engine), (keeper, its_life), (ours, theirs)] =
            [(); 3].map(|()| messages::pair().unwrap());
        let telling = thread::spawn(move || {
            let network = std::fs::File::open("/proc/self/ns/net").unwrap();
            for _ in 0..MORE_THAN_WAIT {
                messages::send(theirs.as_fd(), &[0], &[network.as_raw_fd()]).unwrap();
            }
            drop((theirs, its_life));
        });
        let networks = watch(engine.as_fd(), keeper.as_fd(), ours.as_fd(), None);
        telling.join().unwrap();
        assert_eq!(networks.len(), MORE_THAN_WAIT);
        let ours = std::fs::metadata("/proc/self/ns/net").unwrap().ino();
        assert!(networks.iter().all(|held| fstat(held).unwrap().st_ino == ours));
    }
}

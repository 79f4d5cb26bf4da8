//! Processes of our own that begin as copies of this one, and what their set-up needs from the operating system.
//!
//! The second of the two places with unsafe code. A copy of a process with several threads has only the thread that
//! made it: what other threads held at that moment stays held. So the copy uses nothing that others may hold (no
//! output of the standard library, no environment, no interpreter, no panic hook), only memory, which the C library
//! keeps usable, and system calls.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use nix::libc;
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use nix::unistd::{ForkResult, Pid, fork};

/// Exit code of a copy that panicked.
const PANICKED: i32 = 70;

/// Runs `body` in a copy of this process, which ends with the code that it returns.
///
/// The copy begins with every signal blocked: handlers of the original (an interpreter's, say) never run in it, and a
/// signal that was for the original's group has no effect on it.
pub(super) fn in_copy(body: impl FnOnce() -> i32) -> io::Result<Pid> {
    let mut before = SigSet::empty();
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before))?;
    // SAFETY: the copy runs `body` only, under the rules at the top of this module, and never returns from here.
    let forked = match unsafe { fork() } {
        Ok(ForkResult::Child) => {
            // The panic hook stays what it is: changing it takes a lock that another thread may have held. Whoever waits
            // for an answer of the copy gives it a time, so that even a panic that cannot be told has an end.
            let code = catch_unwind(AssertUnwindSafe(body)).unwrap_or(PANICKED);
            // SAFETY: ends the process at once; nothing that belongs to the original is run.
            unsafe { libc::_exit(code) }
        }
        Ok(ForkResult::Parent { child }) => Ok(child),
        Err(error) => Err(error.into()),
    };
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
    forked
}

/// Closes every descriptor but those of standard input and output and `keep`, in a copy that will never use, or
/// drop, what it closed.
pub(super) fn close_all_but(keep: &[RawFd]) -> io::Result<()> {
    let mut keep: Vec<u32> =
        keep.iter().filter_map(|fd| u32::try_from(*fd).ok()).filter(|fd| *fd > 2).collect();
    keep.sort_unstable();
    let mut first = 3;
    for fd in keep.into_iter().chain([u32::MAX]) {
        if fd > first {
            close_range(first, fd - 1)?;
        }
        first = fd.saturating_add(1);
    }
    Ok(())
}

fn close_range(first: u32, last: u32) -> io::Result<()> {
    // SAFETY: closes descriptors only; that nobody in this process uses them is the caller's promise.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Makes `number` (0, 1 or 2) another name of what `fd` is.
pub(super) fn become_standard(fd: BorrowedFd, number: RawFd) -> io::Result<()> {
    // SAFETY: replaces one of the standard descriptors, which nobody owns.
    let result = unsafe { libc::dup2(fd.as_raw_fd(), number) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Takes over a descriptor that just came out of a message, so that nobody else has it.
pub(super) fn received(fd: RawFd) -> OwnedFd {
    // SAFETY: the kernel made this descriptor for the receiver of the message.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// A descriptor that becomes readable when process `pid` ends.
pub(super) fn pidfd(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: the call takes two integers and returns a new descriptor that nobody else owns.
    unsafe {
        let fd = libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd as RawFd)) }
    }
}

/// Ends the process that a [`pidfd`] is for.
pub(super) fn kill_by(process: BorrowedFd) -> io::Result<()> {
    let (none, flags) = (std::ptr::null::<libc::siginfo_t>(), 0);
    // SAFETY: the call takes integers, and a pointer that may be null: the signal then is one as by kill (2).
    let result = unsafe {
        libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), libc::SIGKILL, none, flags)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Runs `enter` in the process of `command` before its program is loaded.
pub(super) fn before_exec(
    command: &mut Command,
    enter: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: the process that starts programs has one thread, so there is nothing that another could hold.
    unsafe {
        command.pre_exec(enter);
    }
}

/// A descriptor by its number, for a hook that runs while it is open.
pub(super) fn borrowed<'a>(fd: RawFd) -> BorrowedFd<'a> {
    // SAFETY: hooks run between the start of a program and the end of `spawn`, and hold only what is open then.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

const CAPABILITY_VERSION_3: u32 = 0x2008_0522;

#[repr(C)]
struct CapHeader {
    version: u32,
    pid: libc::c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Lets the program that is loaded next keep these capabilities of the calling process, whoever its user is.
pub(super) fn keep_capabilities(wanted: &[u8]) -> io::Result<()> {
    let mut header = CapHeader { version: CAPABILITY_VERSION_3, pid: 0 };
    let mut data = [CapData::default(); 2];
    // SAFETY: header and data have the layout of linux/capability.h for version 3, and outlive the calls.
    unsafe {
        if libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) < 0 {
            return Err(io::Error::last_os_error());
        }
        for capability in wanted {
            data[usize::from(capability / 32)].inheritable |= 1 << (capability % 32);
        }
        if libc::syscall(libc::SYS_capset, &raw mut header, data.as_ptr()) < 0 {
            return Err(io::Error::last_os_error());
        }
        for capability in wanted {
            let raise = libc::PR_CAP_AMBIENT_RAISE as libc::c_ulong;
            if libc::prctl(libc::PR_CAP_AMBIENT, raise, libc::c_ulong::from(*capability), 0, 0) < 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

//! The few calls of the operating system that no safe wrapper covers. With
//! `lab/child.rs` the only unsafe code of the product.

#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::sys::time::TimeSpec;
use nix::{getsockopt_impl, libc, setsockopt_impl, sockopt_impl};

/// Options of packet sockets that `libc` does not name.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const PACKET_VNET_HDR: libc::c_int = 15;
const PACKET_QDISC_BYPASS: libc::c_int = 20;
/// Linux 5.14.
const SO_NETNS_COOKIE: libc::c_int = 71;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Binds a packet socket to the device `index`, for frames of every type.
pub(super) fn bind_to_device(socket: BorrowedFd, index: u32) -> io::Result<()> {
    // SAFETY: a sockaddr_ll of zeros is valid; the pointer and length describe it, and bind only reads it.
    unsafe {
        let mut address: libc::sockaddr_ll = zeroed();
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index as i32;
        let len = size_of_val(&address) as libc::socklen_t;
        check(libc::bind(socket.as_raw_fd(), (&raw const address).cast(), len))?;
    }
    Ok(())
}

sockopt_impl!(
    /// A packet socket does not show what goes out of the device.
    IgnoreOutgoing, SetOnly, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, bool
);
sockopt_impl!(
    /// An offload header stands in front of each frame, both ways: super-packets then come and go whole.
    OffloadHeaders, SetOnly, libc::SOL_PACKET, PACKET_VNET_HDR, bool
);
sockopt_impl!(
    /// What is sent goes past the device's queueing discipline (a veth has none worth having).
    BypassQueue, SetOnly, libc::SOL_PACKET, PACKET_QDISC_BYPASS, bool
);
sockopt_impl!(
    /// Adds a membership for as long as the packet socket is open.
    AddMembership, SetOnly, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, libc::packet_mreq
);
sockopt_impl!(
    /// Frames that came, and that the kernel threw away because the socket's buffer was full, since the last call.
    PacketStatistics, GetOnly, libc::SOL_PACKET, libc::PACKET_STATISTICS, libc::tpacket_stats
);
sockopt_impl!(
    /// A number of the network namespace in which a socket was made; no other one gets it until the machine starts anew.
    NamespaceCookie, GetOnly, libc::SOL_SOCKET, SO_NETNS_COOKIE, u64
);

/// `TUNSETIFF` and what else is set on a TUN device (linux/if_tun.h).
const TUNSETIFF: libc::c_ulong = 0x4004_54CA;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54D0;
const TUNSETVNETHDRSZ: libc::c_ulong = 0x4004_54D8;
/// Open checksums, super-packets of TCP over both families with ECN marks, and of UDP.
const TUN_OFFLOADS: [libc::c_ulong; 2] = [0x01 | 0x02 | 0x04 | 0x08 | 0x20 | 0x40, 0x01 | 0x02 | 0x04 | 0x08];

/// Makes a TUN device with offload headers in the calling thread's namespace. It is gone when the descriptor is closed.
pub(super) fn open_tun(name: &str) -> io::Result<OwnedFd> {
    let device = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")?;
    // SAFETY: an ifreq of zeros is valid; the name is cut to leave its final zero; the calls read their arguments, which
    // outlive them.
    unsafe {
        let mut request: libc::ifreq = zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
        check(libc::ioctl(device.as_raw_fd(), TUNSETIFF as _, &raw mut request))?;
        let size = super::vnet::LEN as libc::c_int;
        check(libc::ioctl(device.as_raw_fd(), TUNSETVNETHDRSZ as _, &raw const size))?;
        // Older kernels know no super-packets of UDP.
        let set =
            |offloads: libc::c_ulong| check(libc::ioctl(device.as_raw_fd(), TUNSETOFFLOAD as _, offloads));
        set(TUN_OFFLOADS[0]).or_else(|_| set(TUN_OFFLOADS[1]))?;
    }
    Ok(device.into())
}

/// Octets for the stamp that comes with a message.
const CONTROL: usize = 64;

/// Memory for reading many messages with one call.
pub(super) struct ReceiveBatch {
    messages: Vec<libc::mmsghdr>,
    parts: Vec<libc::iovec>,
    controls: Vec<[u64; CONTROL / 8]>,
}

// SAFETY: its pointers are written at the beginning of each call, read by the kernel during it, and never after.
unsafe impl Send for ReceiveBatch {}

impl ReceiveBatch {
    /// For at most `count` messages.
    pub(super) fn new(count: usize) -> Self {
        let (messages, parts) = (Vec::with_capacity(count), Vec::with_capacity(count));
        ReceiveBatch { messages, parts, controls: vec![[0; CONTROL / 8]; count] }
    }

    /// Reads as many messages as there are, at most one into each buffer, and says how many. Never waits.
    pub(super) fn receive<B: AsMut<[u8]>>(
        &mut self,
        socket: BorrowedFd,
        buffers: &mut [B],
    ) -> io::Result<usize> {
        self.parts.clear();
        self.messages.clear();
        for buffer in buffers.iter_mut().take(self.controls.len()) {
            let buffer = buffer.as_mut();
            self.parts.push(libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() });
        }
        for (part, control) in self.parts.iter_mut().zip(&mut self.controls) {
            // SAFETY: an mmsghdr of zeros is valid.
            let mut message: libc::mmsghdr = unsafe { zeroed() };
            message.msg_hdr.msg_iov = part;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = CONTROL as _;
            self.messages.push(message);
        }
        // SAFETY: each header points to one part and one control buffer of the stated sizes; all of them, and the
        // caller's buffers behind the parts, are borrowed for the whole call.
        let count = check(unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.messages.as_mut_ptr(),
                self.messages.len() as u32,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        })?;
        Ok(count as usize)
    }

    /// Octets of message `n` of the last call; `None` if it did not fit.
    pub(super) fn len(&self, n: usize) -> Option<usize> {
        let message = &self.messages[n];
        (message.msg_hdr.msg_flags & libc::MSG_TRUNC == 0).then_some(message.msg_len as usize)
    }

    /// When the kernel saw message `n` of the last call.
    pub(super) fn stamp(&self, n: usize) -> Option<TimeSpec> {
        let header = &raw const self.messages[n].msg_hdr;
        // SAFETY: the kernel has filled the header's control buffer, which is ours and still there, and has set its
        // length; the macros walk it within that length.
        unsafe {
            let mut control = libc::CMSG_FIRSTHDR(header);
            while !control.is_null() {
                let (level, kind) = ((*control).cmsg_level, (*control).cmsg_type);
                if level == libc::SOL_SOCKET && kind == libc::SCM_TIMESTAMPNS {
                    let stamp = libc::CMSG_DATA(control).cast::<libc::timespec>().read_unaligned();
                    return Some(TimeSpec::from(stamp));
                }
                control = libc::CMSG_NXTHDR(header, control);
            }
        }
        None
    }
}

/// Memory for sending many messages with one call.
#[derive(Default)]
pub(super) struct SendBatch {
    messages: Vec<libc::mmsghdr>,
    parts: Vec<libc::iovec>,
    counts: Vec<usize>,
}

// SAFETY: as for `ReceiveBatch`.
unsafe impl Send for SendBatch {}

impl SendBatch {
    /// Sends messages, each a head and pieces behind it, and says how many the device took. An error is about the
    /// first of them; never waits.
    pub(super) fn send<'a, P: AsRef<[u8]> + 'a>(
        &mut self,
        socket: BorrowedFd,
        messages: impl Iterator<Item = (&'a [u8], &'a [P])>,
    ) -> io::Result<usize> {
        let part = |octets: &[u8]| libc::iovec {
            iov_base: octets.as_ptr().cast_mut().cast(),
            iov_len: octets.len(),
        };
        self.parts.clear();
        self.counts.clear();
        self.messages.clear();
        for (head, pieces) in messages {
            self.parts.push(part(head));
            self.parts.extend(pieces.iter().map(|p| part(p.as_ref())));
            self.counts.push(1 + pieces.len());
        }
        let mut first = self.parts.as_mut_ptr();
        for count in &self.counts {
            // SAFETY: an mmsghdr of zeros is valid; `first` stays within `parts`, whose lengths `counts` adds up to.
            unsafe {
                let mut message: libc::mmsghdr = zeroed();
                message.msg_hdr.msg_iov = first;
                message.msg_hdr.msg_iovlen = *count as _;
                self.messages.push(message);
                first = first.add(*count);
            }
        }
        // SAFETY: the headers point into `parts`, whose octets are borrowed from the caller (`'a`) for the whole call;
        // the kernel only reads them.
        let count = check(unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                self.messages.as_mut_ptr(),
                self.messages.len() as u32,
                libc::MSG_DONTWAIT as _,
            )
        })?;
        Ok(count as usize)
    }
}

/// What a thread may be scheduled as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Before everything that is not real-time (`SCHED_FIFO`).
    RealTime,
    /// As everything else, but in short turns: a short EEVDF slice gets its turn sooner (Linux 6.12).
    ShortTurns,
    /// When nobody else of its group wants to run.
    Idle,
}

/// Priority among real-time threads: above what people give to programs under test.
const REAL_TIME_PRIORITY: u32 = 40;
/// The shortest turn that Linux grants.
const SHORT_TURN_NS: u64 = 100_000;

/// Puts the calling thread into a scheduling class.
pub(super) fn schedule(class: Class) -> io::Result<()> {
    /// `struct sched_attr` (linux/sched/types.h) in its first version.
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime: u64,
        deadline: u64,
        period: u64,
    }
    let (policy, priority, runtime) = match class {
        Class::RealTime => (libc::SCHED_FIFO, REAL_TIME_PRIORITY, 0),
        Class::ShortTurns => (libc::SCHED_OTHER, 0, SHORT_TURN_NS),
        Class::Idle => (libc::SCHED_IDLE, 0, 0),
    };
    // SAFETY: the call takes and returns integers.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: policy as u32,
        flags: 0,
        nice,
        priority,
        runtime,
        deadline: 0,
        period: 0,
    };
    // SAFETY: the attributes have the size they state and outlive the call, which only reads them.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

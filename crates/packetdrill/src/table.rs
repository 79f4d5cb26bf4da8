//! The table of functions that packetdrill calls, in its order and with its types.
//!
//! The interface is a fact about that tool (`packetdrill.h`: names, order and types of function pointers); nothing else
//! of it is here. `fcntl` and `ioctl` are variadic there: their third argument is taken as a word, which is where the
//! calling conventions of x86-64 and AArch64 put it.

#![allow(
    unsafe_code,
    reason = "a C interface: each function trusts its caller's pointers, as the header asks"
)]

use std::ffi::{CStr, c_char, c_int, c_long, c_longlong, c_uint, c_ulong, c_void};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libc::{iovec, msghdr, nfds_t, pollfd, sockaddr, socklen_t, ssize_t, timeval};

use crate::options::{self, Value};
use crate::stack::{Errno, Stack};
use crate::wait::Shared;

type Me = *mut c_void;

/// `struct packetdrill_interface`.
#[repr(C)]
#[allow(missing_docs, reason = "named as the calls of the operating system")]
pub struct Interface {
    pub userdata: Me,
    pub free: Option<unsafe extern "C" fn(Me)>,
    pub socket: Option<unsafe extern "C" fn(Me, c_int, c_int, c_int) -> c_int>,
    pub bind: Option<unsafe extern "C" fn(Me, c_int, *const sockaddr, socklen_t) -> c_int>,
    pub listen: Option<unsafe extern "C" fn(Me, c_int, c_int) -> c_int>,
    pub accept: Option<unsafe extern "C" fn(Me, c_int, *mut sockaddr, *mut socklen_t) -> c_int>,
    pub connect: Option<unsafe extern "C" fn(Me, c_int, *const sockaddr, socklen_t) -> c_int>,
    pub read: Option<unsafe extern "C" fn(Me, c_int, *mut c_void, usize) -> ssize_t>,
    pub readv: Option<unsafe extern "C" fn(Me, c_int, *const iovec, c_int) -> ssize_t>,
    pub recv: Option<unsafe extern "C" fn(Me, c_int, *mut c_void, usize, c_int) -> ssize_t>,
    pub recvfrom: Option<
        unsafe extern "C" fn(Me, c_int, *mut c_void, usize, c_int, *mut sockaddr, *mut socklen_t) -> ssize_t,
    >,
    pub recvmsg: Option<unsafe extern "C" fn(Me, c_int, *mut msghdr, c_int) -> ssize_t>,
    pub write: Option<unsafe extern "C" fn(Me, c_int, *const c_void, usize) -> ssize_t>,
    pub writev: Option<unsafe extern "C" fn(Me, c_int, *const iovec, c_int) -> ssize_t>,
    pub send: Option<unsafe extern "C" fn(Me, c_int, *const c_void, usize, c_int) -> ssize_t>,
    pub sendto: Option<
        unsafe extern "C" fn(Me, c_int, *const c_void, usize, c_int, *const sockaddr, socklen_t) -> ssize_t,
    >,
    pub sendmsg: Option<unsafe extern "C" fn(Me, c_int, *const msghdr, c_int) -> ssize_t>,
    pub fcntl: Option<unsafe extern "C" fn(Me, c_int, c_int, c_long) -> c_int>,
    pub ioctl: Option<unsafe extern "C" fn(Me, c_int, c_ulong, c_long) -> c_int>,
    pub close: Option<unsafe extern "C" fn(Me, c_int) -> c_int>,
    pub shutdown: Option<unsafe extern "C" fn(Me, c_int, c_int) -> c_int>,
    pub getsockopt:
        Option<unsafe extern "C" fn(Me, c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int>,
    pub setsockopt: Option<unsafe extern "C" fn(Me, c_int, c_int, c_int, *const c_void, socklen_t) -> c_int>,
    pub poll: Option<unsafe extern "C" fn(Me, *mut pollfd, nfds_t, c_int) -> c_int>,
    pub netdev_send: Option<unsafe extern "C" fn(Me, *const c_void, usize) -> c_int>,
    pub netdev_receive: Option<unsafe extern "C" fn(Me, *mut c_void, *mut usize, *mut c_longlong) -> c_int>,
    pub usleep: Option<unsafe extern "C" fn(Me, c_uint) -> c_int>,
    pub gettimeofday: Option<unsafe extern "C" fn(Me, *mut timeval, *mut c_void) -> c_int>,
    pub epoll_create: Option<unsafe extern "C" fn(Me, c_int) -> c_int>,
    pub epoll_ctl: Option<unsafe extern "C" fn(Me, c_int, c_int, c_int, *mut c_void) -> c_int>,
    pub epoll_wait: Option<unsafe extern "C" fn(Me, c_int, *mut c_void, c_int, c_int) -> c_int>,
    pub pipe: Option<unsafe extern "C" fn(Me, *mut c_int) -> c_int>,
    pub splice: Option<unsafe extern "C" fn(Me, c_int, *mut i64, c_int, *mut i64, usize, c_uint) -> ssize_t>,
}

/// The virtual clock begins at this second, so that no moment is zero.
const EPOCH: u64 = 1_000_000_000;

/// The stacks that answer `getsockopt` of this process, each for its own descriptors.
static INSTALLED: Mutex<Vec<Arc<Shared>>> = Mutex::new(Vec::new());

fn installed() -> MutexGuard<'static, Vec<Arc<Shared>>> {
    INSTALLED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Fills the table in. `flags` is what `--so_flags` says; wrong flags are told on the error stream and end the program,
/// as the interface has no other way to refuse.
///
/// # Safety
/// `flags` is null or a C string, `interface` points to room for a table.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(flags: *const c_char, interface: *mut Interface) {
    let flags = if flags.is_null() { "".into() } else { unsafe { CStr::from_ptr(flags) }.to_string_lossy() };
    let stack = Stack::new(&flags).unwrap_or_else(|why| {
        eprintln!("airloom: so_flags: {why}");
        std::process::exit(2);
    });
    let shared = Arc::new(Shared::new(stack));
    installed().push(shared.clone());
    let table = Interface {
        userdata: Arc::into_raw(shared).cast_mut().cast(),
        free: Some(free),
        socket: Some(socket),
        bind: Some(bind),
        listen: Some(listen),
        accept: Some(accept),
        connect: Some(connect),
        read: Some(read),
        readv: Some(readv),
        recv: Some(recv),
        recvfrom: Some(recvfrom),
        recvmsg: Some(recvmsg),
        write: Some(write),
        writev: Some(writev),
        send: Some(send),
        sendto: Some(sendto),
        sendmsg: Some(sendmsg),
        fcntl: Some(fcntl),
        ioctl: Some(ioctl),
        close: Some(close),
        shutdown: Some(shutdown),
        getsockopt: Some(getsockopt),
        setsockopt: Some(setsockopt),
        poll: Some(poll),
        netdev_send: Some(netdev_send),
        netdev_receive: Some(netdev_receive),
        usleep: Some(usleep),
        gettimeofday: Some(gettimeofday),
        epoll_create: Some(epoll_create),
        epoll_ctl: Some(epoll_ctl),
        epoll_wait: Some(epoll_wait),
        pipe: Some(pipe),
        splice: Some(splice),
    };
    unsafe { interface.write(table) };
}

unsafe fn shared<'a>(me: Me) -> &'a Shared {
    unsafe { &*me.cast::<Shared>() }
}

fn fail(error: Errno) -> c_int {
    unsafe { *libc::__errno_location() = error };
    -1
}

fn status(result: Result<(), Errno>) -> c_int {
    result.map_or_else(fail, |()| 0)
}

fn count(result: Result<usize, Errno>) -> ssize_t {
    result.map_or_else(|e| fail(e) as ssize_t, |n| n as ssize_t)
}

unsafe fn address(from: *const sockaddr, len: socklen_t) -> Result<SocketAddr, Errno> {
    if from.is_null() || (len as usize) < size_of::<libc::sockaddr_in>() {
        return Err(libc::EINVAL);
    }
    match c_int::from(unsafe { (*from).sa_family }) {
        libc::AF_INET => {
            let a = unsafe { from.cast::<libc::sockaddr_in>().read_unaligned() };
            let ip = IpAddr::V4(u32::from_be(a.sin_addr.s_addr).into());
            Ok(SocketAddr::new(ip, u16::from_be(a.sin_port)))
        }
        libc::AF_INET6 if len as usize >= size_of::<libc::sockaddr_in6>() => {
            let a = unsafe { from.cast::<libc::sockaddr_in6>().read_unaligned() };
            Ok(SocketAddr::new(IpAddr::V6(a.sin6_addr.s6_addr.into()), u16::from_be(a.sin6_port)))
        }
        _ => Err(libc::EAFNOSUPPORT),
    }
}

unsafe fn give_address(address: SocketAddr, to: *mut sockaddr, len: *mut socklen_t) {
    if to.is_null() || len.is_null() {
        return;
    }
    let room = unsafe { *len } as usize;
    match address {
        SocketAddr::V4(v4) => {
            let mut a: libc::sockaddr_in = unsafe { std::mem::zeroed() };
            a.sin_family = libc::AF_INET as u16;
            a.sin_port = v4.port().to_be();
            a.sin_addr.s_addr = u32::from(*v4.ip()).to_be();
            unsafe { give(&a, to.cast(), room) };
            unsafe { *len = size_of::<libc::sockaddr_in>() as socklen_t };
        }
        SocketAddr::V6(v6) => {
            let mut a: libc::sockaddr_in6 = unsafe { std::mem::zeroed() };
            a.sin6_family = libc::AF_INET6 as u16;
            a.sin6_port = v6.port().to_be();
            a.sin6_addr.s6_addr = v6.ip().octets();
            unsafe { give(&a, to.cast(), room) };
            unsafe { *len = size_of::<libc::sockaddr_in6>() as socklen_t };
        }
    }
}

/// As much of `value` as there is room for.
unsafe fn give<T>(value: &T, to: *mut u8, room: usize) {
    let from = std::ptr::from_ref(value).cast::<u8>();
    unsafe { std::ptr::copy_nonoverlapping(from, to, size_of::<T>().min(room)) };
}

unsafe extern "C" fn free(me: Me) {
    let shared = unsafe { Arc::from_raw(me.cast::<Shared>()) };
    installed().retain(|other| !Arc::ptr_eq(other, &shared));
}

unsafe extern "C" fn socket(me: Me, domain: c_int, kind: c_int, _protocol: c_int) -> c_int {
    if !matches!(domain, libc::AF_INET | libc::AF_INET6) || kind & 0xF != libc::SOCK_STREAM {
        return fail(libc::EAFNOSUPPORT);
    }
    unsafe { shared(me) }.now(|s| s.open(kind & libc::SOCK_NONBLOCK != 0)).unwrap_or_else(fail)
}

unsafe extern "C" fn bind(me: Me, fd: c_int, to: *const sockaddr, len: socklen_t) -> c_int {
    let address = unsafe { address(to, len) };
    status(address.and_then(|a| unsafe { shared(me) }.now(|s| s.bind(fd, a))))
}

unsafe extern "C" fn listen(me: Me, fd: c_int, _backlog: c_int) -> c_int {
    status(unsafe { shared(me) }.now(|s| s.listen(fd)))
}

unsafe extern "C" fn accept(me: Me, fd: c_int, to: *mut sockaddr, len: *mut socklen_t) -> c_int {
    match unsafe { shared(me) }.wait(None, |s| s.accept(fd)) {
        Ok((fd, remote)) => {
            unsafe { give_address(remote, to, len) };
            fd
        }
        Err(error) => fail(error),
    }
}

unsafe extern "C" fn connect(me: Me, fd: c_int, to: *const sockaddr, len: socklen_t) -> c_int {
    let begun = unsafe { address(to, len) }.and_then(|a| unsafe { shared(me) }.now(|s| s.connect(fd, a)));
    match begun {
        Ok(Some(())) => 0,
        Ok(None) => status(unsafe { shared(me) }.wait(None, |s| s.connected(fd))),
        Err(error) => fail(error),
    }
}

unsafe fn receive(me: Me, fd: c_int, parts: &[iovec], flags: c_int) -> ssize_t {
    if parts.iter().any(|p| p.iov_base.is_null() && p.iov_len > 0) {
        return fail(libc::EFAULT) as ssize_t;
    }
    if flags & !(libc::MSG_DONTWAIT | libc::MSG_TRUNC) != 0 {
        // A plain read would take octets that were to stay (MSG_PEEK), or that are not what was asked for (MSG_ERRQUEUE).
        return fail(libc::EOPNOTSUPP) as ssize_t;
    }
    let room = parts.iter().map(|p| p.iov_len).sum();
    let wait = flags & libc::MSG_DONTWAIT == 0;
    let octets = match unsafe { shared(me) }.wait(None, |s| s.read(fd, room, wait)) {
        Ok(octets) => octets,
        Err(error) => return fail(error) as ssize_t,
    };
    let mut rest = &octets[..];
    for part in parts {
        let (now, later) = rest.split_at(rest.len().min(part.iov_len));
        // With the flag Linux drops what it counts.
        if flags & libc::MSG_TRUNC == 0 && part.iov_len > 0 {
            unsafe { std::ptr::copy_nonoverlapping(now.as_ptr(), part.iov_base.cast(), now.len()) };
        }
        rest = later;
    }
    octets.len() as ssize_t
}

unsafe fn parts<'a>(list: *const iovec, n: usize) -> &'a [iovec] {
    if list.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(list, n) } }
}

fn one(to: *mut c_void, len: usize) -> [iovec; 1] {
    [iovec { iov_base: to, iov_len: len }]
}

unsafe extern "C" fn read(me: Me, fd: c_int, to: *mut c_void, len: usize) -> ssize_t {
    unsafe { receive(me, fd, &one(to, len), 0) }
}

unsafe extern "C" fn readv(me: Me, fd: c_int, list: *const iovec, n: c_int) -> ssize_t {
    unsafe { receive(me, fd, parts(list, n.max(0) as usize), 0) }
}

unsafe extern "C" fn recv(me: Me, fd: c_int, to: *mut c_void, len: usize, flags: c_int) -> ssize_t {
    unsafe { receive(me, fd, &one(to, len), flags) }
}

unsafe extern "C" fn recvfrom(
    me: Me,
    fd: c_int,
    to: *mut c_void,
    len: usize,
    flags: c_int,
    _from: *mut sockaddr,
    _from_len: *mut socklen_t,
) -> ssize_t {
    unsafe { receive(me, fd, &one(to, len), flags) }
}

unsafe extern "C" fn recvmsg(me: Me, fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    let message = unsafe { &mut *message };
    let got = unsafe { receive(me, fd, parts(message.msg_iov, message.msg_iovlen), flags) };
    let room = std::mem::replace(&mut message.msg_controllen, 0);
    message.msg_flags = 0;
    let inq = |s: &mut Stack| Ok(s.socket(fd)?.options.inq.then_some(s.readable(fd, true)?));
    if got > 0
        && let Ok(Some(octets)) = unsafe { shared(me) }.now(inq)
    {
        let len = unsafe { libc::CMSG_SPACE(size_of::<c_int>() as c_uint) } as usize;
        if room >= len && !message.msg_control.is_null() {
            message.msg_controllen = len;
            unsafe {
                let header = libc::CMSG_FIRSTHDR(message);
                (*header).cmsg_level = libc::IPPROTO_TCP;
                (*header).cmsg_type = options::TCP_INQ;
                (*header).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as c_uint) as usize;
                libc::CMSG_DATA(header).cast::<c_int>().write_unaligned(octets as c_int);
            }
        }
    }
    got
}

unsafe fn transmit(me: Me, fd: c_int, parts: &[iovec], flags: c_int) -> ssize_t {
    if parts.iter().any(|p| p.iov_base.is_null() && p.iov_len > 0) {
        return fail(libc::EFAULT) as ssize_t;
    }
    let octets = parts
        .iter()
        .filter(|p| p.iov_len > 0)
        .flat_map(|p| unsafe { std::slice::from_raw_parts(p.iov_base.cast::<u8>(), p.iov_len) })
        .copied()
        .collect::<Vec<u8>>();
    let (more, record) = (flags & libc::MSG_MORE != 0, flags & libc::MSG_EOR != 0);
    let wait = flags & libc::MSG_DONTWAIT == 0;
    let mut done = 0;
    // A blocking call returns when all was taken.
    let result = unsafe { shared(me) }.wait(None, |s| match s.write(fd, &octets[done..], more, record) {
        Ok(Some(taken)) => {
            done += taken;
            let whole = done == octets.len() || !wait || s.socket(fd)?.options.nonblocking;
            Ok(whole.then_some(done))
        }
        Ok(None) if !wait => Err(libc::EAGAIN),
        Err(_) if done > 0 => Ok(Some(done)),
        other => other,
    });
    count(result)
}

unsafe extern "C" fn write(me: Me, fd: c_int, from: *const c_void, len: usize) -> ssize_t {
    unsafe { transmit(me, fd, &one(from.cast_mut(), len), 0) }
}

unsafe extern "C" fn writev(me: Me, fd: c_int, list: *const iovec, n: c_int) -> ssize_t {
    unsafe { transmit(me, fd, parts(list, n.max(0) as usize), 0) }
}

unsafe extern "C" fn send(me: Me, fd: c_int, from: *const c_void, len: usize, flags: c_int) -> ssize_t {
    unsafe { transmit(me, fd, &one(from.cast_mut(), len), flags) }
}

unsafe extern "C" fn sendto(
    me: Me,
    fd: c_int,
    from: *const c_void,
    len: usize,
    flags: c_int,
    _to: *const sockaddr,
    _to_len: socklen_t,
) -> ssize_t {
    unsafe { transmit(me, fd, &one(from.cast_mut(), len), flags) }
}

unsafe extern "C" fn sendmsg(me: Me, fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    let message = unsafe { &*message };
    unsafe { transmit(me, fd, parts(message.msg_iov, message.msg_iovlen), flags) }
}

unsafe extern "C" fn fcntl(me: Me, fd: c_int, command: c_int, word: c_long) -> c_int {
    let call = |s: &mut Stack| {
        let socket = s.socket(fd)?;
        match command {
            libc::F_GETFL => Ok(libc::O_RDWR | if socket.options.nonblocking { libc::O_NONBLOCK } else { 0 }),
            libc::F_SETFL => {
                socket.options.nonblocking = word as c_int & libc::O_NONBLOCK != 0;
                Ok(0)
            }
            _ => Err(libc::EINVAL),
        }
    };
    unsafe { shared(me) }.now(call).unwrap_or_else(fail)
}

unsafe extern "C" fn ioctl(me: Me, fd: c_int, request: c_ulong, word: c_long) -> c_int {
    if request != libc::FIONREAD {
        return fail(libc::ENOTTY);
    }
    match unsafe { shared(me) }.now(|s| s.readable(fd, false)) {
        Ok(octets) => {
            unsafe { (word as *mut c_int).write(octets as c_int) };
            0
        }
        Err(error) => fail(error),
    }
}

unsafe extern "C" fn close(me: Me, fd: c_int) -> c_int {
    let closed = unsafe { shared(me) }.now(|s| s.close(fd));
    if closed.is_ok() {
        unsafe { libc::close(fd) };
    }
    status(closed)
}

unsafe extern "C" fn shutdown(me: Me, fd: c_int, how: c_int) -> c_int {
    let (read, write) = match how {
        libc::SHUT_RD => (true, false),
        libc::SHUT_WR => (false, true),
        libc::SHUT_RDWR => (true, true),
        _ => return fail(libc::EINVAL),
    };
    status(unsafe { shared(me) }.now(|s| s.shut(fd, read, write)))
}

unsafe extern "C" fn getsockopt(
    me: Me,
    fd: c_int,
    level: c_int,
    name: c_int,
    to: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    let value = match unsafe { shared(me) }.now(|s| options::get(s, fd, level, name)) {
        Ok(_) if to.is_null() || len.is_null() => return fail(libc::EFAULT),
        Ok(value) => value,
        Err(error) => return fail(error),
    };
    let room = unsafe { *len } as usize;
    let size = match value {
        Value::Number(n) => {
            unsafe { give(&n, to.cast(), room) };
            size_of::<c_int>()
        }
        Value::Info(info) => {
            // Fields that are newer than ours are zero.
            unsafe { to.cast::<u8>().write_bytes(0, room) };
            unsafe { give(&*info, to.cast(), room) };
            room
        }
        Value::Zeros(n) => {
            unsafe { to.cast::<u8>().write_bytes(0, room.min(n)) };
            n
        }
    };
    unsafe { *len = size.min(room) as socklen_t };
    0
}

/// `getsockopt` of the whole process, where this object was loaded before it (`LD_PRELOAD`): packetdrill asks the operating
/// system itself for TCP_INFO. What is no socket of ours is passed on.
///
/// # Safety
/// As that of the C library.
#[unsafe(export_name = "getsockopt")]
pub unsafe extern "C" fn getsockopt_of_process(
    fd: c_int,
    level: c_int,
    name: c_int,
    to: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    let owner = installed().iter().find(|stack| stack.now(|s| s.socket(fd).map(|_| ())).is_ok()).cloned();
    if let Some(stack) = owner {
        return unsafe { getsockopt(Arc::as_ptr(&stack).cast_mut().cast(), fd, level, name, to, len) };
    }
    unsafe { libc::syscall(libc::SYS_getsockopt, fd, level, name, to, len) as c_int }
}

unsafe extern "C" fn setsockopt(
    me: Me,
    fd: c_int,
    level: c_int,
    name: c_int,
    from: *const c_void,
    len: socklen_t,
) -> c_int {
    // Some options of IP may be one octet long.
    let value = match (from.is_null(), len) {
        (false, 4..) => unsafe { from.cast::<c_int>().read_unaligned() },
        (false, 1..) if level == libc::IPPROTO_IP => c_int::from(unsafe { from.cast::<u8>().read() }),
        _ => return fail(libc::EINVAL),
    };
    let second = (len >= 8).then(|| unsafe { from.cast::<c_int>().add(1).read_unaligned() });
    status(unsafe { shared(me) }.now(|s| options::set(s, fd, level, name, value, second)))
}

unsafe extern "C" fn poll(me: Me, list: *mut pollfd, n: nfds_t, timeout: c_int) -> c_int {
    let list =
        if list.is_null() { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(list, n as usize) } };
    let shared = unsafe { shared(me) };
    let now = shared.now(|s| Ok(s.micros())).unwrap_or(0);
    let end = (timeout >= 0).then(|| now + timeout as u64 * 1000);
    let ready = shared.wait(end, |s| {
        let mut ready = 0;
        for entry in list.iter_mut() {
            let always = libc::POLLERR | libc::POLLHUP | libc::POLLNVAL;
            entry.revents = s.readiness(entry.fd).unwrap_or(libc::POLLNVAL) & (entry.events | always);
            ready += c_int::from(entry.revents != 0);
        }
        let late = end.is_some_and(|end| s.micros() >= end);
        Ok((ready > 0 || late).then_some(ready))
    });
    ready.unwrap_or_else(fail)
}

unsafe extern "C" fn netdev_send(me: Me, from: *const c_void, len: usize) -> c_int {
    let octets = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), len) };
    status(unsafe { shared(me) }.now(|s| s.arrives(octets)))
}

unsafe extern "C" fn netdev_receive(me: Me, to: *mut c_void, len: *mut usize, at: *mut c_longlong) -> c_int {
    // An empty datagram says that none ever leaves; packetdrill would ask for ever if it were told of an error.
    let (micros, octets) = unsafe { shared(me) }.pass(None, Stack::receive).unwrap_or_default();
    let room = octets.len().min(unsafe { *len });
    unsafe {
        std::ptr::copy_nonoverlapping(octets.as_ptr(), to.cast(), room);
        *len = room;
        *at = (EPOCH * 1_000_000 + micros) as c_longlong;
    }
    0
}

unsafe extern "C" fn usleep(me: Me, micros: c_uint) -> c_int {
    let shared = unsafe { shared(me) };
    let now = shared.now(|s| Ok(s.micros())).unwrap_or(0);
    shared.pass(Some(now + u64::from(micros)), |_| None::<()>);
    0
}

unsafe extern "C" fn gettimeofday(me: Me, to: *mut timeval, _zone: *mut c_void) -> c_int {
    let micros = unsafe { shared(me) }.clock();
    if !to.is_null() {
        let value =
            timeval { tv_sec: (EPOCH + micros / 1_000_000) as i64, tv_usec: (micros % 1_000_000) as i64 };
        unsafe { to.write(value) };
    }
    0
}

unsafe extern "C" fn epoll_create(_me: Me, _size: c_int) -> c_int {
    fail(libc::ENOSYS)
}

unsafe extern "C" fn epoll_ctl(_me: Me, _epoll: c_int, _op: c_int, _fd: c_int, _event: *mut c_void) -> c_int {
    fail(libc::ENOSYS)
}

unsafe extern "C" fn epoll_wait(
    _me: Me,
    _epoll: c_int,
    _to: *mut c_void,
    _n: c_int,
    _timeout: c_int,
) -> c_int {
    fail(libc::ENOSYS)
}

unsafe extern "C" fn pipe(_me: Me, _to: *mut c_int) -> c_int {
    fail(libc::ENOSYS)
}

unsafe extern "C" fn splice(
    _me: Me,
    _from: c_int,
    _from_at: *mut i64,
    _to: c_int,
    _to_at: *mut i64,
    _len: usize,
    _flags: c_uint,
) -> ssize_t {
    fail(libc::ENOSYS) as ssize_t
}

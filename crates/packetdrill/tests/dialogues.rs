//! Dialogues over the table, through the shared object itself: what packetdrill would do, done by hand.

#![allow(unsafe_code, reason = "it calls a C interface")]

use std::ffi::{CString, c_int};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use airloom_base::{Body, Packet};
use airloom_packetdrill::Interface;
use airloom_transports::tcp::wire::{Flags, Header, Options};
use airloom_wire::edge;
use airloom_wire::ip::{self, Ip, protocol};

const LOCAL: Ipv4Addr = Ipv4Addr::new(192, 168, 0, 1);
const REMOTE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const EPOCH: i64 = 1_000_000_000;

/// The shared object that cargo built beside this test.
fn shared_object() -> PathBuf {
    let mut folder = std::env::current_exe().expect("this test is a file");
    folder.pop();
    let names = ["libairloom_packetdrill.so", "libairloom_packetdrill.dylib"];
    let folders = [folder.clone(), folder.join("..")];
    let mut places = folders.iter().flat_map(|f| names.map(|n| f.join(n)));
    places.find(|p| p.is_file()).expect("cargo built the shared object")
}

/// One stack behind the table, and the hand that plays the wire.
struct Drill {
    /// Descriptors are the process's: other tests take some at the same time, so each has to be remembered.
    listener: c_int,
    table: Interface,
    getsockopt_of_process: GetSockOpt,
    iss: u32,
}

type GetSockOpt = unsafe extern "C" fn(c_int, c_int, c_int, *mut libc::c_void, *mut libc::socklen_t) -> c_int;

impl Drill {
    fn new(flags: &str) -> Drill {
        let path = CString::new(shared_object().to_str().unwrap()).unwrap();
        let flags = CString::new(flags).unwrap();
        let mut table = MaybeUninit::<Interface>::uninit();
        let (table, getsockopt_of_process) = unsafe {
            let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
            assert!(!handle.is_null(), "the shared object loads");
            let init = libc::dlsym(handle, c"packetdrill_interface_init".as_ptr());
            assert!(!init.is_null(), "it has the symbol");
            let init: unsafe extern "C" fn(*const i8, *mut Interface) = std::mem::transmute(init);
            init(flags.as_ptr().cast(), table.as_mut_ptr());
            let own = libc::dlsym(handle, c"getsockopt".as_ptr());
            assert!(!own.is_null(), "it has that symbol too");
            (table.assume_init(), std::mem::transmute::<*mut libc::c_void, GetSockOpt>(own))
        };
        Drill { listener: -1, table, getsockopt_of_process, iss: 0 }
    }

    fn address(ip: Ipv4Addr, port: u16) -> libc::sockaddr_in {
        let mut a: libc::sockaddr_in = unsafe { std::mem::zeroed() };
        a.sin_family = libc::AF_INET as u16;
        a.sin_port = port.to_be();
        a.sin_addr.s_addr = u32::from(ip).to_be();
        a
    }

    fn socket(&self, nonblocking: bool) -> c_int {
        let kind = libc::SOCK_STREAM | if nonblocking { libc::SOCK_NONBLOCK } else { 0 };
        let fd = unsafe {
            self.table.socket.unwrap()(self.table.userdata, libc::AF_INET, kind, libc::IPPROTO_TCP)
        };
        assert!(fd >= 0);
        fd
    }

    fn listen(&self) -> c_int {
        let fd = self.socket(true);
        let a = Drill::address(LOCAL, 8080);
        let len = size_of_val(&a) as u32;
        unsafe {
            assert_eq!(self.table.bind.unwrap()(self.table.userdata, fd, (&raw const a).cast(), len), 0);
            assert_eq!(self.table.listen.unwrap()(self.table.userdata, fd, 1), 0);
        }
        fd
    }

    fn accept(&self, fd: c_int) -> c_int {
        unsafe {
            self.table.accept.unwrap()(self.table.userdata, fd, std::ptr::null_mut(), std::ptr::null_mut())
        }
    }

    fn set(&self, fd: c_int, name: c_int, value: c_int) -> c_int {
        let value = (&raw const value).cast();
        unsafe { self.table.setsockopt.unwrap()(self.table.userdata, fd, libc::IPPROTO_TCP, name, value, 4) }
    }

    fn get(&self, fd: c_int, name: c_int) -> c_int {
        let (mut value, mut len) = (0, 4);
        let to = (&raw mut value).cast();
        unsafe {
            self.table.getsockopt.unwrap()(self.table.userdata, fd, libc::IPPROTO_TCP, name, to, &mut len);
        }
        value
    }

    fn errno() -> c_int {
        std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
    }

    fn sleep(&self, micros: u32) {
        assert_eq!(unsafe { self.table.usleep.unwrap()(self.table.userdata, micros) }, 0);
    }

    fn write(&self, fd: c_int, octets: &[u8]) -> isize {
        unsafe { self.table.write.unwrap()(self.table.userdata, fd, octets.as_ptr().cast(), octets.len()) }
    }

    fn read(&self, fd: c_int, room: usize) -> Result<Vec<u8>, c_int> {
        let mut octets = vec![0; room];
        let n =
            unsafe { self.table.read.unwrap()(self.table.userdata, fd, octets.as_mut_ptr().cast(), room) };
        if n < 0 {
            return Err(Drill::errno());
        }
        octets.truncate(n as usize);
        Ok(octets)
    }

    /// A segment of the peer, numbers relative to the SYNs (its own begins at 0).
    fn arrives(&self, flags: Flags, seq: u32, ack: u32, ports: (u16, u16), body: &[u8]) {
        let mut options = Options::default();
        if flags.has(Flags::SYN) {
            options.mss = Some(1000);
        }
        let header = Header {
            source: ports.0,
            destination: ports.1,
            seq,
            ack: if flags.has(Flags::ACK) { self.iss.wrapping_add(ack) } else { 0 },
            flags,
            window: 65_535,
            urgent: 0,
            options,
        };
        let mut packet = Packet::build(|out| header.emit(out), Body::Real(body.to_vec().into()));
        let len = packet.wire_len();
        ip::emit(packet.prepend(20), IpAddr::V4(REMOTE), IpAddr::V4(LOCAL), protocol::TCP, 0, len);
        let mut octets = Vec::new();
        edge::egress(&packet, &mut octets);
        let sent = unsafe {
            self.table.netdev_send.unwrap()(self.table.userdata, octets.as_ptr().cast(), octets.len())
        };
        assert_eq!(sent, 0);
    }

    /// The next segment that leaves: microseconds, flags, relative numbers, text. Checksums are verified.
    fn leaves(&mut self) -> (i64, Flags, u32, u32, Vec<u8>) {
        let mut octets = vec![0_u8; 65_536];
        let (mut len, mut at) = (octets.len(), 0);
        let got = unsafe {
            self.table.netdev_receive.unwrap()(
                self.table.userdata,
                octets.as_mut_ptr().cast(),
                &mut len,
                &mut at,
            )
        };
        assert_eq!(got, 0, "something leaves");
        octets.truncate(len);
        let mut packet =
            edge::ingress(edge::Received::whole(octets)).expect("lengths and checksums are right");
        let header = Ip::parse(packet.head()).unwrap();
        assert_eq!((header.source, header.destination), (IpAddr::V4(LOCAL), IpAddr::V4(REMOTE)));
        packet.strip(header.header_len);
        let (h, _) = Header::parse(packet.head()).unwrap();
        if h.flags.has(Flags::SYN) {
            self.iss = h.seq;
        }
        (
            at - EPOCH * 1_000_000,
            h.flags,
            h.seq.wrapping_sub(self.iss),
            h.ack,
            packet.body().to_bytes().to_vec(),
        )
    }

    fn nothing_leaves(&self) {
        let mut octets = [0_u8; 100];
        let (mut len, mut at) = (octets.len(), 0);
        let got = unsafe {
            self.table.netdev_receive.unwrap()(
                self.table.userdata,
                octets.as_mut_ptr().cast(),
                &mut len,
                &mut at,
            )
        };
        // An empty datagram, which packetdrill takes for a wrong one: it would ask for ever after an error.
        assert_eq!((got, len), (0, 0));
    }
}

impl Drop for Drill {
    fn drop(&mut self) {
        unsafe { self.table.free.unwrap()(self.table.userdata) };
    }
}

const SYN_ACK: Flags = Flags(0x12);
const PSH_ACK: Flags = Flags(0x18);
const FIN_ACK: Flags = Flags(0x11);
const PLAIN: &str = "profile=rfc,timestamps=false,sack=false,window_scaling=false,delayed_ack=none";

/// A listening socket and a connection accepted from it.
fn accepted(flags: &str) -> (Drill, c_int) {
    let mut d = Drill::new(flags);
    let listener = d.listen();
    d.listener = listener;
    assert_eq!((d.accept(listener), Drill::errno()), (-1, libc::EAGAIN));
    let ports = (40_000, 8080);
    d.arrives(Flags::SYN, 0, 0, ports, b"");
    let (_, flags, seq, ack, _) = d.leaves();
    assert_eq!((flags, seq, ack), (SYN_ACK, 0, 1));
    d.arrives(Flags::ACK, 1, 1, ports, b"");
    let fd = d.accept(listener);
    assert!(fd >= 0);
    (d, fd)
}

#[test]
fn a_passive_open_a_request_an_answer_and_an_orderly_end() {
    let (mut d, fd) = accepted(PLAIN);
    let ports = (40_000, 8080);
    d.sleep(100_000);
    d.arrives(PSH_ACK, 1, 1, ports, b"hello");
    let (at, flags, seq, ack, _) = d.leaves();
    assert_eq!((at, flags, seq, ack), (100_000, Flags::ACK, 1, 6));
    assert_eq!(d.read(fd, 100), Ok(b"hello".to_vec()));
    // A blocking socket would wait; this one says so.
    unsafe { d.table.fcntl.unwrap()(d.table.userdata, fd, libc::F_SETFL, libc::O_NONBLOCK.into()) };
    assert_eq!(d.read(fd, 100), Err(libc::EAGAIN));
    assert_eq!(d.write(fd, b"world!"), 6);
    let (_, flags, seq, ack, text) = d.leaves();
    assert_eq!((flags, seq, ack, &text[..]), (PSH_ACK, 1, 6, &b"world!"[..]));
    d.arrives(Flags::ACK, 6, 7, ports, b"");
    d.arrives(FIN_ACK, 6, 7, ports, b"");
    assert_eq!(d.leaves().3, 7);
    assert_eq!(d.read(fd, 100), Ok(Vec::new()));
    assert_eq!(unsafe { d.table.close.unwrap()(d.table.userdata, fd) }, 0);
    assert_eq!(d.leaves().1, FIN_ACK);
    d.arrives(Flags::ACK, 7, 8, ports, b"");
    d.nothing_leaves();
}

#[test]
fn the_clock_goes_on_a_little_at_each_look_and_by_sleeping() {
    let d = Drill::new(PLAIN);
    let now = || {
        let mut now: libc::timeval = unsafe { std::mem::zeroed() };
        unsafe { d.table.gettimeofday.unwrap()(d.table.userdata, &mut now, std::ptr::null_mut()) };
        now.tv_usec
    };
    assert_eq!((now(), now()), (0, 1));
    d.sleep(10);
    assert_eq!(now(), 12);
}

#[test]
fn descriptors_are_the_processs_own() {
    let d = Drill::new(PLAIN);
    let fd = d.socket(true);
    // packetdrill closes what a script leaves open.
    assert_eq!(unsafe { libc::close(fd) }, 0);
    let fd = d.socket(true);
    assert_eq!(unsafe { d.table.close.unwrap()(d.table.userdata, fd) }, 0);
    assert_eq!((unsafe { libc::close(fd) }, Drill::errno()), (-1, libc::EBADF));
}

#[test]
fn tcp_info_comes_from_the_process_too() {
    let (mut d, fd) = accepted("profile=linux,mtu=1040");
    assert_eq!(d.write(fd, &[7; 3000]), 3000);
    (0..3).for_each(|_| drop(d.leaves()));
    let mut info = airloom_packetdrill::info::TcpInfo::default();
    let mut len = size_of_val(&info) as libc::socklen_t;
    let got = unsafe {
        (d.getsockopt_of_process)(fd, libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut info).cast(), &mut len)
    };
    assert_eq!((got, len as usize), (0, size_of_val(&info)));
    assert_eq!((info.state, info.snd_cwnd, info.unacked, info.snd_mss), (1, 10, 3, 1000));
    assert_eq!((info.ca_state, info.snd_ssthresh, info.lost), (0, 0x7fff_ffff, 0));
    // A descriptor that is no socket of ours is the operating system's.
    let got = unsafe {
        (d.getsockopt_of_process)(0, libc::IPPROTO_TCP, libc::TCP_INFO, (&raw mut info).cast(), &mut len)
    };
    assert_eq!(got, -1);
}

#[test]
fn after_shutdown_of_both_directions_reading_ends_and_writing_breaks() {
    let (mut d, fd) = accepted(PLAIN);
    assert_eq!(unsafe { d.table.shutdown.unwrap()(d.table.userdata, fd, libc::SHUT_RDWR) }, 0);
    assert_eq!(d.leaves().1, FIN_ACK);
    assert_eq!(d.read(fd, 10), Ok(Vec::new()));
    assert_eq!((d.write(fd, b"x"), Drill::errno()), (-1, libc::EPIPE));
}

#[test]
fn a_socket_that_is_closed_before_it_is_open_refuses_the_answer() {
    let mut d = Drill::new(PLAIN);
    let fd = d.socket(true);
    let a = Drill::address(REMOTE, 80);
    unsafe { d.table.connect.unwrap()(d.table.userdata, fd, (&raw const a).cast(), size_of_val(&a) as u32) };
    assert_eq!(d.leaves().1, Flags::SYN);
    assert_eq!(unsafe { d.table.close.unwrap()(d.table.userdata, fd) }, 0);
    d.arrives(SYN_ACK, 0, 1, (80, 32_768), b"");
    assert_eq!(d.leaves().1, Flags::RST);
}

#[test]
fn text_for_a_closed_socket_is_refused() {
    let (mut d, fd) = accepted(PLAIN);
    assert_eq!(unsafe { d.table.close.unwrap()(d.table.userdata, fd) }, 0);
    assert_eq!(d.leaves().1, FIN_ACK);
    d.arrives(PSH_ACK, 1, 1, (40_000, 8080), b"late");
    let (_, flags, seq, _, _) = d.leaves();
    assert_eq!((flags, seq), (Flags::RST, 1));
}

#[test]
fn a_write_takes_whole_blocks_until_enough_waits_to_be_sent() {
    // Blocks of half the window's segments; ten segments leave at once, and the block they came from is filled up.
    let (d, fd) = accepted("profile=linux,timestamps=false,mtu=1040,notsent_lowat=4000");
    unsafe { d.table.fcntl.unwrap()(d.table.userdata, fd, libc::F_SETFL, libc::O_NONBLOCK.into()) };
    assert_eq!(d.write(fd, &[7; 90_000]), 42_000);
    let mut poll = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
    assert_eq!(unsafe { d.table.poll.unwrap()(d.table.userdata, &mut poll, 1, 0) }, 0);
}

#[test]
fn waiting_for_a_packet_passes_virtual_time_up_to_the_timer_that_sends_it() {
    let (mut d, fd) = accepted(PLAIN);
    assert_eq!(d.write(fd, &[7; 1500]), 1500);
    assert_eq!(d.leaves().4.len(), 1000);
    // Nothing answers: the timer, twice.
    assert_eq!((d.leaves().0, d.leaves().0), (1_000_000, 3_000_000));
    let mut now: libc::timeval = unsafe { std::mem::zeroed() };
    unsafe { d.table.gettimeofday.unwrap()(d.table.userdata, &mut now, std::ptr::null_mut()) };
    assert_eq!((now.tv_sec, now.tv_usec), (EPOCH + 3, 0));
}

#[test]
fn an_active_open_is_in_progress_then_refused_or_made() {
    for refused in [true, false] {
        let mut d = Drill::new("profile=linux,local=192.168.0.1");
        let fd = d.socket(true);
        let a = Drill::address(REMOTE, 80);
        let len = size_of_val(&a) as u32;
        let begun = unsafe { d.table.connect.unwrap()(d.table.userdata, fd, (&raw const a).cast(), len) };
        assert_eq!((begun, Drill::errno()), (-1, libc::EINPROGRESS));
        let (at, flags, seq, _, _) = d.leaves();
        assert_eq!((at, flags, seq), (0, Flags::SYN, 0));
        let ports = (80, 32_768);
        let answer = if refused { Flags::RST.with(Flags::ACK) } else { SYN_ACK };
        d.arrives(answer, 0, 1, ports, b"");
        let mut poll = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
        assert_eq!(unsafe { d.table.poll.unwrap()(d.table.userdata, &mut poll, 1, 0) }, 1);
        assert_eq!(poll.revents & libc::POLLERR != 0, refused);
        let (mut error, mut len) = (0, 4);
        unsafe {
            d.table.getsockopt.unwrap()(
                d.table.userdata,
                fd,
                libc::SOL_SOCKET,
                libc::SO_ERROR,
                (&raw mut error).cast(),
                &mut len,
            )
        };
        assert_eq!(error, if refused { libc::ECONNREFUSED } else { 0 });
        if !refused {
            assert_eq!((d.leaves().1, poll.revents), (Flags::ACK, libc::POLLOUT));
        }
    }
}

#[test]
fn closing_with_text_unread_resets() {
    let (mut d, fd) = accepted(PLAIN);
    d.arrives(PSH_ACK, 1, 1, (40_000, 8080), b"unread");
    d.leaves();
    assert_eq!(unsafe { d.table.close.unwrap()(d.table.userdata, fd) }, 0);
    assert!(d.leaves().1.has(Flags::RST));
}

#[test]
fn a_blocking_read_waits_for_another_thread_to_bring_the_segment() {
    let (d, fd) = accepted(PLAIN);
    let read = d.table.read.unwrap();
    let me = d.table.userdata as usize;
    let reader = std::thread::spawn(move || {
        let mut octets = [0_u8; 10];
        let n = unsafe { read(me as *mut _, fd, octets.as_mut_ptr().cast(), octets.len()) };
        octets[..n as usize].to_vec()
    });
    d.arrives(PSH_ACK, 1, 1, (40_000, 8080), b"late");
    assert_eq!(reader.join().unwrap(), b"late");
}

#[test]
fn options_are_those_of_the_sockets_to_come_and_of_the_open_one() {
    let (mut d, fd) = accepted(PLAIN);
    let listener = d.listener;
    assert_eq!(d.set(listener, libc::TCP_NODELAY, 1), 0);
    assert_eq!(d.get(listener, libc::TCP_NODELAY), 1);
    assert_eq!((d.set(listener, libc::TCP_FASTOPEN, 1), Drill::errno()), (-1, libc::ENOPROTOOPT));
    assert_eq!(d.get(fd, libc::TCP_NODELAY), 0, "it was open before");
    assert_eq!(d.set(fd, libc::TCP_CORK, 1), 0);
    assert_eq!(d.write(fd, b"cork"), 4);
    assert_eq!(d.set(fd, libc::TCP_CORK, 0), 0);
    assert_eq!(d.leaves().4, b"cork");
    assert_eq!(
        (unsafe { d.table.pipe.unwrap()(d.table.userdata, std::ptr::null_mut()) }, Drill::errno()),
        (-1, libc::ENOSYS)
    );
}

#[test]
fn numbers_that_linux_refuses_are_refused() {
    let (d, fd) = accepted(PLAIN);
    for (name, value) in [
        (libc::TCP_KEEPIDLE, 0),
        (libc::TCP_KEEPINTVL, 32_768),
        (libc::TCP_KEEPCNT, 128),
        (libc::TCP_SYNCNT, 0),
        (libc::TCP_USER_TIMEOUT, -1),
    ] {
        assert_eq!((d.set(fd, name, value), Drill::errno()), (-1, libc::EINVAL), "{name}");
    }
}

#[test]
fn a_user_timeout_of_zero_is_the_time_of_the_host_again() {
    let (mut d, fd) = accepted(PLAIN);
    assert_eq!((d.set(fd, libc::TCP_USER_TIMEOUT, 1), d.set(fd, libc::TCP_USER_TIMEOUT, 0)), (0, 0));
    assert_eq!(d.write(fd, b"x"), 1);
    for _ in 0..3 {
        assert_eq!(d.leaves().4, b"x");
    }
}

#[test]
fn a_read_with_a_flag_that_is_not_honoured_takes_nothing() {
    let (d, fd) = accepted(PLAIN);
    d.arrives(PSH_ACK, 1, 1, (40_000, 8080), b"stays");
    let mut octets = [0_u8; 10];
    for flag in [libc::MSG_PEEK, libc::MSG_ERRQUEUE] {
        let to = octets.as_mut_ptr().cast();
        let n = unsafe { d.table.recv.unwrap()(d.table.userdata, fd, to, octets.len(), flag) };
        assert_eq!((n, Drill::errno()), (-1, libc::EOPNOTSUPP));
    }
    assert_eq!(d.read(fd, 10), Ok(b"stays".to_vec()));
}

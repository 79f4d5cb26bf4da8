//! The few calls of the operating system that no safe wrapper covers. With
//! `lab/child.rs` the only unsafe code of the product.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::libc;

/// Options of packet sockets that `libc` does not name.
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;

/// `SIOCETHTOOL` commands (linux/ethtool.h) that switch a device's transmit offloads.
const ETHTOOL_STXCSUM: u32 = 0x17;
const ETHTOOL_STSO: u32 = 0x1f;
const ETHTOOL_SGSO: u32 = 0x24;
const SIOCETHTOOL: libc::c_ulong = 0x8946;

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

/// Asks a packet socket not to show what goes out of the device.
pub(super) fn ignore_outgoing(socket: BorrowedFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the option's value is an int, which outlives the call.
    unsafe {
        check(libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            PACKET_IGNORE_OUTGOING,
            (&raw const on).cast::<c_void>(),
            size_of::<libc::c_int>() as libc::socklen_t,
        ))?;
    }
    Ok(())
}

/// Frames that the kernel threw away because the socket's buffer was full, since the last call.
pub(super) fn dropped_frames(socket: BorrowedFd) -> io::Result<u64> {
    // SAFETY: tpacket_stats is plain integers; the kernel writes at most `len` octets into it.
    unsafe {
        let mut stats: libc::tpacket_stats = zeroed();
        let mut len = size_of_val(&stats) as libc::socklen_t;
        check(libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            (&raw mut stats).cast(),
            &raw mut len,
        ))?;
        Ok(u64::from(stats.tp_drops))
    }
}

/// Switches off checksum and segmentation offload of the device `name` in the calling thread's namespace:
/// `socket` is any socket of that namespace. What leaves the device then are finished datagrams of at most one MTU.
pub(super) fn switch_offloads_off(socket: BorrowedFd, name: &str) -> io::Result<()> {
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }
    for command in [ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO] {
        let mut value = Value { command, data: 0 };
        // SAFETY: an ifreq of zeros is valid; the name is cut to leave its final zero; `value` has the layout of
        // ethtool_value and outlives the call.
        unsafe {
            let mut request: libc::ifreq = zeroed();
            for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
                *to = from as libc::c_char;
            }
            request.ifr_ifru.ifru_data = (&raw mut value).cast();
            check(libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request))?;
        }
    }
    Ok(())
}

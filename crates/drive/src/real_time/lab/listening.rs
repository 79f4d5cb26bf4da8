//! Does anybody serve in a network namespace yet?
//!
//! Asked of the kernel's socket diagnosis (sock_diag(7)), which goes through the listening sockets only: the tables
//! in `/proc/net` are read by walking over every connection that the machine has room for, in all namespaces.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;

use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket,
};

/// linux/sock_diag.h
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// States of sockets as bits (linux/tcp_states.h): a TCP socket that listens, and a UDP socket without a peer.
const LISTENING: u32 = 1 << 10;
const UNCONNECTED: u32 = 1 << 7;
/// Octets of a message's header, and of a whole request (`struct inet_diag_req_v2`).
const HEADER: usize = 16;
const REQUEST: usize = HEADER + 56;

/// Does anyone listen for TCP, or wait for datagrams of anybody, in the calling process's namespace?
pub(super) fn is_listening() -> bool {
    [(libc::IPPROTO_TCP, LISTENING), (libc::IPPROTO_UDP, UNCONNECTED)].into_iter().any(
        |(protocol, states)| {
            [libc::AF_INET, libc::AF_INET6].into_iter().any(|family| {
                // A kernel may come without the diagnosis.
                exists(family as u8, protocol as u8, states).unwrap_or_else(|_| is_in_table(family, protocol))
            })
        },
    )
}

/// Is there a socket of this family and protocol in one of these states?
fn exists(family: u8, protocol: u8, states: u32) -> io::Result<bool> {
    let kind = SockProtocol::NetlinkSockDiag;
    let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, kind)?;
    let mut request = Vec::with_capacity(REQUEST);
    request.extend_from_slice(&(REQUEST as u32).to_ne_bytes());
    request.extend_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend_from_slice(&((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
    request.extend_from_slice(&[0; 8]);
    request.extend_from_slice(&[family, protocol, 0, 0]);
    request.extend_from_slice(&states.to_ne_bytes());
    request.resize(REQUEST, 0);
    sendto(socket.as_raw_fd(), &request, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    // One message, or the end of none, is enough to know.
    let mut answer = [0; 8192];
    let len = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    first_is_a_socket(&answer[..len])
}

/// What the beginning of an answer says: a socket, the end of the list, or an error.
fn first_is_a_socket(answer: &[u8]) -> io::Result<bool> {
    let malformed = || io::Error::from(io::ErrorKind::InvalidData);
    let kind = answer.get(4..6).ok_or_else(malformed)?;
    match u16::from_ne_bytes([kind[0], kind[1]]) {
        SOCK_DIAG_BY_FAMILY => Ok(true),
        kind if i32::from(kind) == libc::NLMSG_DONE => Ok(false),
        _ => Err(malformed()),
    }
}

/// The same from `/proc/net`.
fn is_in_table(family: libc::c_int, protocol: libc::c_int) -> bool {
    let six = if family == libc::AF_INET6 { "6" } else { "" };
    let (name, state) = if protocol == libc::IPPROTO_TCP { ("tcp", "0A") } else { ("udp", "07") };
    let table = fs::read_to_string(format!("/proc/self/net/{name}{six}")).unwrap_or_default();
    table.lines().skip(1).any(|line| line.split_whitespace().nth(3) == Some(state))
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "what is looked for are the system's own sockets")]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    #[test]
    fn both_ways_see_a_listener_and_a_socket_that_waits_for_datagrams() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("[::1]:0").or_else(|_| UdpSocket::bind("127.0.0.1:0")).unwrap();
        let family = if udp.local_addr().unwrap().is_ipv6() { libc::AF_INET6 } else { libc::AF_INET };
        assert!(exists(libc::AF_INET as u8, libc::IPPROTO_TCP as u8, LISTENING).unwrap());
        assert!(exists(family as u8, libc::IPPROTO_UDP as u8, UNCONNECTED).unwrap());
        assert!(is_in_table(libc::AF_INET, libc::IPPROTO_TCP));
        assert!(is_in_table(family, libc::IPPROTO_UDP));
        assert!(is_listening());
        drop((tcp, udp));
    }

    #[test]
    fn an_answer_is_a_socket_an_end_or_an_error() {
        let answer = |kind: u16| [&[20, 0, 0, 0][..], &kind.to_ne_bytes(), &[0; 14]].concat();
        assert!(first_is_a_socket(&answer(SOCK_DIAG_BY_FAMILY)).unwrap());
        assert!(!first_is_a_socket(&answer(libc::NLMSG_DONE as u16)).unwrap());
        assert!(first_is_a_socket(&answer(libc::NLMSG_ERROR as u16)).is_err());
        for cut in 0..6 {
            assert!(first_is_a_socket(&answer(3)[..cut]).is_err());
        }
    }
}

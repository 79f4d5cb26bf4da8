//! Rules that let traffic leave under the address of the interface it leaves by (linux/netfilter/nf_tables.h).
//!
//! One table with one rule (for each family in the machine's network). In the machine's network it belongs to the socket that made it: the kernel takes it away when
//! that closes, so nothing is left of it however a process ends.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, sendto, socket,
};

use crate::real_time::netlink::Message;

const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const SUBSYSTEM: u16 = 10;
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;
const NAME: &[u8] = b"airloom\0";
const CHAIN: &[u8] = b"leaving\0";
/// The table goes with the socket that made it (`NFT_TABLE_F_OWNER`, Linux 5.12).
const OWNED: u32 = 2;
/// `NF_INET_POST_ROUTING`, at the priority of source translation (`NF_IP_PRI_NAT_SRC`).
const POST_ROUTING: u32 = 4;
const PRIORITY: u32 = 100;
/// `NFT_REG_1`
const REGISTER: u32 = 1;
/// Where the source address is in a header, and how long it is: IPv4, IPv6.
const SOURCE: [(u32, u32); 2] = [(12, 4), (8, 16)];
/// `NFPROTO_INET`: both families.
const BOTH: u8 = 1;
const NETWORK_HEADER: u32 = 1;
/// `NFT_META_OIF`
const OUTPUT_INTERFACE: u32 = 5;

/// Masquerades what comes from `address`, in the calling process's namespace. The table is called after `device`; it goes
/// when the socket that is returned closes.
pub(super) fn what_comes_from(device: &str, address: IpAddr) -> io::Result<OwnedFd> {
    let name = format!("{device}\0");
    let (family, source, octets) = match address {
        IpAddr::V4(a) => (libc::AF_INET, SOURCE[0], a.octets().to_vec()),
        IpAddr::V6(a) => (libc::AF_INET6, SOURCE[1], a.octets().to_vec()),
    };
    install(name.as_bytes(), family as u8, OWNED, &octets, |m| {
        m.expression(b"payload\0", |m| {
            m.number(1, REGISTER);
            m.number(2, NETWORK_HEADER);
            m.number(3, source.0);
            m.number(4, source.1);
        });
    })
}

/// Masquerades what leaves by the interface with this index, of both families, in the calling process's namespace.
pub(super) fn what_leaves_by(interface: u32) -> io::Result<OwnedFd> {
    install(NAME, BOTH, 0, &interface.to_ne_bytes(), |m| {
        m.expression(b"meta\0", |m| {
            m.number(1, REGISTER);
            m.number(2, OUTPUT_INTERFACE);
        });
    })
}

impl Message {
    /// An attribute that is a number; those of this subsystem are in network order.
    fn number(&mut self, kind: u16, value: u32) {
        self.attribute(kind, &value.to_be_bytes());
    }

    fn expression(&mut self, name: &[u8], fill: impl FnOnce(&mut Message)) {
        const ELEMENT: u16 = 1;
        self.nest(ELEMENT | NESTED, |m| {
            m.attribute(1, name);
            m.nest(2 | NESTED, fill);
        });
    }
}

const NESTED: u16 = libc::NLA_F_NESTED as u16;

/// Makes the table `name` with a rule: what `load` finds is compared with `value`, and equal it is masqueraded.
fn install(
    name: &[u8],
    family: u8,
    flags: u32,
    value: &[u8],
    load: impl FnOnce(&mut Message),
) -> io::Result<OwnedFd> {
    let batch = |kind: u16| {
        let mut message = Message::new(kind, 0);
        // The whole batch is one message of the subsystem, and has no answer of its own.
        message.octets[6..8].copy_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
        message.octets.extend_from_slice(&[0, 0]);
        message.octets.extend_from_slice(&SUBSYSTEM.to_be_bytes());
        message
    };
    let new = |kind: u16| {
        let mut message = Message::new(kind, libc::NLM_F_CREATE);
        message.octets.extend_from_slice(&[family, 0, 0, 0]);
        message
    };
    let mut table = new(NEW_TABLE);
    table.attribute(1, name);
    table.number(2, flags);
    let mut chain = new(NEW_CHAIN);
    chain.attribute(1, name);
    chain.attribute(3, CHAIN);
    chain.nest(4 | NESTED, |m| {
        m.number(1, POST_ROUTING);
        m.number(2, PRIORITY);
    });
    chain.attribute(7, b"nat\0");
    let mut rule = new(NEW_RULE);
    rule.attribute(1, name);
    rule.attribute(2, CHAIN);
    rule.nest(4 | NESTED, |m| {
        load(m);
        m.expression(b"cmp\0", |m| {
            m.number(1, REGISTER);
            m.number(2, 0);
            m.nest(3 | NESTED, |m| m.attribute(1, value));
        });
        m.expression(b"masq\0", |_| {});
    });
    let socket = socket(
        AddressFamily::Netlink,
        SockType::Raw,
        SockFlag::SOCK_CLOEXEC,
        SockProtocol::NetlinkNetFilter,
    )?;
    bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
    let mut octets = Vec::new();
    let messages = [batch(BATCH_BEGIN), table, chain, rule, batch(BATCH_END)];
    for (sequence, mut message) in messages.into_iter().enumerate() {
        message.seal(sequence as u32);
        octets.extend_from_slice(&message.octets);
    }
    sendto(socket.as_raw_fd(), &octets, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    // Table, chain and rule are answered; the first that was refused says why.
    let mut answered = 0;
    let mut answer = [0; 8192];
    while answered < 3 {
        let len = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        answered += results(&answer[..len])?;
    }
    Ok(socket)
}

/// How many requests succeeded by this answer, or the error of the first that did not.
fn results(mut answer: &[u8]) -> io::Result<usize> {
    let mut count = 0;
    while answer.len() >= 20 {
        let word = |at: usize| [answer[at], answer[at + 1], answer[at + 2], answer[at + 3]];
        let len = u32::from_ne_bytes(word(0)) as usize;
        if i32::from(u16::from_ne_bytes([answer[4], answer[5]])) == libc::NLMSG_ERROR {
            match i32::from_ne_bytes(word(16)) {
                0 => count += 1,
                code => return Err(io::Error::from_raw_os_error(code.saturating_neg())),
            }
        }
        answer = answer.get(len.max(16).next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: i32) -> Vec<u8> {
        let mut octets = vec![0; 36];
        octets[..4].copy_from_slice(&36u32.to_ne_bytes());
        octets[4..6].copy_from_slice(&(libc::NLMSG_ERROR as u16).to_ne_bytes());
        octets[16..20].copy_from_slice(&code.to_ne_bytes());
        octets
    }

    #[test]
    fn answers_are_counted_and_a_refusal_is_an_error() {
        assert_eq!(results(&[answer(0), answer(0)].concat()).unwrap(), 2);
        let error = results(&[answer(0), answer(-libc::EPERM)].concat()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
        for cut in 0..20 {
            assert_eq!(results(&answer(0)[..cut]).unwrap(), 0);
        }
    }
}

//! Rules of the kernel's packet filter (linux/netfilter/nf_tables.h).
//!
//! Each is alone in a table of its own. In the machine's network a table belongs to the socket that made it: the kernel
//! takes it away when that closes, so nothing is left of it however a process ends.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc;
use nix::sys::socket::{MsgFlags, NetlinkAddr, SockProtocol, recv, sendto};

use crate::real_time::netlink::{self, Message, Prefix, messages_of};

const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const SUBSYSTEM: u16 = 10;
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const GET_TABLE: u16 = SUBSYSTEM << 8 | 1;
const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;
const CHAIN: &[u8] = b"airloom\0";
/// The table goes with the socket that made it (`NFT_TABLE_F_OWNER`, Linux 5.12).
const OWNED: u32 = 2;
/// `NFT_REG_1`, and `NFT_REG_VERDICT`.
const REGISTER: u32 = 1;
const VERDICT: u32 = 0;
/// `NF_DROP`
const DROP: u32 = 0;
/// Where the source address is in a header: IPv4, IPv6.
const SOURCE: [u32; 2] = [12, 8];
/// `NFPROTO_INET`: both families; `NFPROTO_NETDEV`: frames of a device.
const BOTH: u8 = 1;
const FRAMES: u8 = 5;
const NETWORK_HEADER: u32 = 1;
/// `NFT_META_PROTOCOL`, `NFT_META_IIF`, `NFT_META_OIF`
const PROTOCOL: u32 = 1;
const INPUT_INTERFACE: u32 = 4;
const OUTPUT_INTERFACE: u32 = 5;
/// `NFT_CT_STATE`, and two of its values: what belongs to no connection, and what begins one (`NF_CT_STATE_INVALID_BIT`,
/// `NF_CT_STATE_BIT(IP_CT_NEW)`). Neighbours of IPv6 ask for each other outside of all connections, which is none of these.
const CONNECTION_STATE: u32 = 0;
const INVALID_OR_NEW: u32 = 1 | 1 << 3;
/// `NFT_CMP_EQ`, `NFT_CMP_NEQ`
const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;
/// IEEE 802.1X (11.1.4): frames by which a device gets access to the network; they are for whoever gives it.
const EAPOL: [u8; 2] = [0x88, 0x8e];

/// A chain, where its packets come by.
struct Hook<'a> {
    kind: &'static [u8],
    number: u32,
    priority: u32,
    device: Option<&'a str>,
}

/// `NF_INET_POST_ROUTING`, at the priority of source translation (`NF_IP_PRI_NAT_SRC`).
const LEAVING: Hook = Hook { kind: b"nat\0", number: 4, priority: 100, device: None };

/// `NF_INET_PRE_ROUTING`, at the priority of filters.
const ARRIVING: Hook = Hook { kind: b"filter\0", number: 0, priority: 0, device: None };

/// `NF_NETDEV_INGRESS` of a device: before everything else of the machine sees a frame.
fn arriving(device: &str, priority: u32) -> Hook<'_> {
    Hook { kind: b"filter\0", number: 0, priority, device: Some(device) }
}

/// Who has a table, and what goes by the same name.
#[derive(Clone, Copy)]
pub(super) enum Owner {
    /// The namespace: the table goes with it.
    Namespace,
    /// The socket.
    Socket,
}

/// Masquerades what comes from `network` (whose prefix is whole octets), in the calling process's namespace. The table
/// is called after `device`; if it is the socket's, it goes when that closes.
pub(super) fn what_comes_from(device: &str, owner: Owner, network: Prefix) -> io::Result<OwnedFd> {
    let octets = shared(network);
    install(device, netlink::family(network.address), owner, &LEAVING, |m| {
        m.source(network, octets.len());
        m.compare(EQUAL, &octets);
        m.expression(b"masq\0", |_| {});
    })
}

/// The octets that all addresses of a network have.
fn shared(network: Prefix) -> Vec<u8> {
    let mut octets = netlink::octets(network.address);
    octets.truncate(usize::from(network.bits / 8));
    octets
}

/// Masquerades what leaves by the interface with this index, of both families, in the calling process's namespace.
pub(super) fn what_leaves_by(interface: u32) -> io::Result<()> {
    let made = install("airloom", BOTH, Owner::Namespace, &LEAVING, |m| {
        m.meta(OUTPUT_INTERFACE);
        m.compare(EQUAL, &interface.to_ne_bytes());
        m.expression(b"masq\0", |_| {});
    });
    made.map(drop)
}

/// Throws away what comes by the interface with this index, of both families, but for answers to what left by it; for as
/// long as the calling process's namespace lasts.
pub(super) fn only_answers_by(interface: u32) -> io::Result<()> {
    let made = install("airloom-only-answers", BOTH, Owner::Namespace, &ARRIVING, |m| {
        m.meta(INPUT_INTERFACE);
        m.compare(EQUAL, &interface.to_ne_bytes());
        m.connection(CONNECTION_STATE);
        m.mask(INVALID_OR_NEW);
        m.compare(NOT_EQUAL, &0_u32.to_ne_bytes());
        m.throw_away();
    });
    made.map(drop)
}

/// Every frame that comes by `device` goes out by the one with index `to`, and nobody else of this namespace gets it;
/// until the socket closes. An error if there is a `table` of this name already.
pub(in crate::real_time) fn redirect(table: &str, device: &str, to: u32) -> io::Result<OwnedFd> {
    install(table, FRAMES, Owner::Socket, &arriving(device, 0), |m| {
        m.frames_of_the_network();
        m.immediate(REGISTER, |m| m.attribute(1, &to.to_ne_bytes()));
        m.expression(b"fwd\0", |m| m.number(1, REGISTER));
    })
}

/// Frames that come by `device` and that no [`redirect`] takes are lost; until the socket closes.
pub(in crate::real_time) fn close(device: &str) -> io::Result<OwnedFd> {
    install(&format!("airloom-{device}-closed"), FRAMES, Owner::Socket, &arriving(device, 1), |m| {
        m.frames_of_the_network();
        m.throw_away();
    })
}

/// Throws away what comes by the interface with index `device` from an address that is neither of `network` (whose prefix
/// is whole octets), nor of the link, nor none yet; for as long as the calling process's namespace lasts.
pub(super) fn only_from(device: u32, network: Prefix) -> io::Result<()> {
    let (family, octets) = (netlink::family(network.address), shared(network));
    let made = install("airloom-only-from", family, Owner::Namespace, &ARRIVING, |m| {
        m.meta(INPUT_INTERFACE);
        m.compare(EQUAL, &device.to_ne_bytes());
        m.source(network, octets.len());
        m.compare(NOT_EQUAL, &octets);
        m.compare(NOT_EQUAL, &vec![0; octets.len()]);
        if network.address.is_ipv6() {
            m.compare(NOT_EQUAL, &[0xfe, 0x80, 0, 0, 0, 0, 0, 0]);
        }
        m.throw_away();
    });
    made.map(drop)
}

/// Makes a table with nothing in it, which others see, and of which there is one; until the socket closes. That takes rights over
/// the calling process's network. The error where somebody has it is one that [`is_taken`].
pub(super) fn claim(name: &str) -> io::Result<OwnedFd> {
    change(vec![table(name, BOTH, Owner::Socket)])
}

/// Has a table, of any family, this in its name?
pub(super) fn is_claimed(part: &str) -> io::Result<bool> {
    let mut asked = Message::new(GET_TABLE, libc::NLM_F_DUMP);
    asked.octets.extend_from_slice(&[0; 4]);
    asked.seal(0);
    let socket = netlink::open(SockProtocol::NetlinkNetFilter)?;
    sendto(socket.as_raw_fd(), &asked.octets, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    let (mut found, mut is_torn) = (false, false);
    let mut answer = [0; 8192];
    loop {
        let len = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        results(&answer[..len])?;
        for (kind, _, flags, body) in messages_of(&answer[..len]) {
            // Where tables came or went meanwhile one may be left out.
            is_torn |= flags & libc::NLM_F_DUMP_INTR != 0;
            if kind == libc::NLMSG_DONE {
                return if is_torn { is_claimed(part) } else { Ok(found) };
            }
            // Nothing but the name is text there.
            found |= body.windows(part.len()).any(|octets| octets == part.as_bytes());
        }
    }
}

/// Does the error say that somebody else has a table of that name?
pub(in crate::real_time) fn is_taken(error: &io::Error) -> bool {
    // One that belongs to another socket is refused like a request without rights.
    matches!(error.raw_os_error(), Some(libc::EEXIST | libc::EPERM))
}

impl Message {
    /// Loads so many octets of the source address, of the family of `network`.
    fn source(&mut self, network: Prefix, octets: usize) {
        self.expression(b"payload\0", |m| {
            m.number(1, REGISTER);
            m.number(2, NETWORK_HEADER);
            m.number(3, SOURCE[usize::from(network.address.is_ipv6())]);
            m.number(4, octets as u32);
        });
    }

    /// Goes on for all frames but those by which devices get access.
    fn frames_of_the_network(&mut self) {
        self.meta(PROTOCOL);
        self.compare(NOT_EQUAL, &EAPOL);
    }

    fn meta(&mut self, key: u32) {
        self.expression(b"meta\0", |m| {
            m.number(1, REGISTER);
            m.number(2, key);
        });
    }

    fn connection(&mut self, key: u32) {
        self.expression(b"ct\0", |m| {
            m.number(1, REGISTER);
            m.number(2, key);
        });
    }

    /// Leaves these bits of the number that is loaded.
    fn mask(&mut self, bits: u32) {
        self.expression(b"bitwise\0", |m| {
            m.number(1, REGISTER);
            m.number(2, REGISTER);
            m.number(3, 4);
            m.nest(4 | NESTED, |m| m.attribute(1, &bits.to_ne_bytes()));
            m.nest(5 | NESTED, |m| m.attribute(1, &[0; 4]));
        });
    }

    fn throw_away(&mut self) {
        self.immediate(VERDICT, |m| m.nest(2 | NESTED, |m| m.number(1, DROP)));
    }

    fn compare(&mut self, how: u32, value: &[u8]) {
        self.expression(b"cmp\0", |m| {
            m.number(1, REGISTER);
            m.number(2, how);
            m.nest(3 | NESTED, |m| m.attribute(1, value));
        });
    }

    fn immediate(&mut self, register: u32, value: impl FnOnce(&mut Message)) {
        self.expression(b"immediate\0", |m| {
            m.number(1, register);
            m.nest(2 | NESTED, value);
        });
    }

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

/// Makes a table with a chain whose one rule is what `fill` says.
fn install(
    name: &str,
    family: u8,
    owner: Owner,
    hook: &Hook,
    fill: impl FnOnce(&mut Message),
) -> io::Result<OwnedFd> {
    let table = table(name, family, owner);
    let name = format!("{name}\0");
    let mut chain = request(NEW_CHAIN, family, 0);
    chain.attribute(1, name.as_bytes());
    chain.attribute(3, CHAIN);
    chain.nest(4 | NESTED, |m| {
        m.number(1, hook.number);
        m.number(2, hook.priority);
        if let Some(device) = hook.device {
            m.attribute(3, format!("{device}\0").as_bytes());
        }
    });
    chain.attribute(7, hook.kind);
    let mut rule = request(NEW_RULE, family, 0);
    rule.attribute(1, name.as_bytes());
    rule.attribute(2, CHAIN);
    rule.nest(4 | NESTED, fill);
    change(vec![table, chain, rule])
}

/// A request to make something of this family.
fn request(kind: u16, family: u8, flags: i32) -> Message {
    let mut message = Message::new(kind, libc::NLM_F_CREATE | flags);
    message.octets.extend_from_slice(&[family, 0, 0, 0]);
    message
}

fn table(name: &str, family: u8, owner: Owner) -> Message {
    let mut table = request(NEW_TABLE, family, libc::NLM_F_EXCL);
    table.attribute(1, format!("{name}\0").as_bytes());
    table.number(2, if matches!(owner, Owner::Socket) { OWNED } else { 0 });
    table
}

/// Makes all of these or none; the socket that has made them.
fn change(requests: Vec<Message>) -> io::Result<OwnedFd> {
    let batch = |kind: u16| {
        let mut message = Message::new(kind, 0);
        // The whole batch is one message of the subsystem, and has no answer of its own.
        message.octets[6..8].copy_from_slice(&(libc::NLM_F_REQUEST as u16).to_ne_bytes());
        message.octets.extend_from_slice(&[0, 0]);
        message.octets.extend_from_slice(&SUBSYSTEM.to_be_bytes());
        message
    };
    let socket = netlink::open(SockProtocol::NetlinkNetFilter)?;
    let count = requests.len();
    let mut octets = Vec::new();
    let messages = [batch(BATCH_BEGIN)].into_iter().chain(requests).chain([batch(BATCH_END)]);
    for (sequence, mut message) in messages.enumerate() {
        message.seal(sequence as u32);
        octets.extend_from_slice(&message.octets);
    }
    sendto(socket.as_raw_fd(), &octets, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
    // Each request is answered; the first that was refused says why.
    let mut answered = 0;
    let mut answer = [0; 8192];
    while answered < count {
        let len = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        answered += results(&answer[..len])?;
    }
    Ok(socket)
}

/// How many requests succeeded by this answer, or the error of the first that did not.
fn results(answer: &[u8]) -> io::Result<usize> {
    let mut count = 0;
    for (kind, .., body) in messages_of(answer) {
        if let (libc::NLMSG_ERROR, Some(code)) = (kind, body.first_chunk()) {
            match i32::from_ne_bytes(*code) {
                0 => count += 1,
                code => return Err(io::Error::from_raw_os_error(code.saturating_neg())),
            }
        }
    }
    Ok(count)
}

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "real connections are what the rules are for")]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::time::Duration;

    use nix::sched::{CloneFlags, unshare};

    use super::*;
    use crate::real_time::netlink::{LOOPBACK, Netlink};

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

    #[test]
    fn a_claim_is_seen_and_is_nobody_elses_until_it_is_given_up() {
        let tried = std::thread::spawn(|| -> io::Result<_> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            let seen = || is_claimed("airloom/a/");
            let before = seen()?;
            let others =
                (0..100).map(|n| claim(&format!("airloom/others/{n}"))).collect::<io::Result<Vec<_>>>()?;
            let claimed = claim("airloom/a/1")?;
            let while_it_is_there = (seen()?, claim("airloom/a/1").is_err_and(|error| is_taken(&error)));
            drop(claimed);
            let after = seen()?;
            drop((claim("airloom/a/1")?, others));
            Ok((before, while_it_is_there, after))
        });
        match tried.join().expect("no panic") {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                airloom_testkit::skip("drive/rules", &error.to_string());
            }
            tried => assert_eq!(tried.expect("tables"), (false, (true, true), false)),
        }
    }

    #[test]
    fn answers_come_by_a_way_out_and_nothing_new_does() {
        let tried = std::thread::spawn(|| -> io::Result<_> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Netlink::open()?.set_up(LOOPBACK, true)?;
            // With it the kernel begins to follow connections here.
            what_leaves_by(LOOPBACK + 1)?;
            let patience = Duration::from_millis(300);
            let mut opened = Vec::new();
            for address in ["127.0.0.1:0", "[::1]:0"] {
                // A machine may have no IPv6.
                let Ok(listening) = TcpListener::bind(address) else { continue };
                let before = TcpStream::connect_timeout(&listening.local_addr()?, patience)?;
                opened.push((listening.accept()?.0, before, listening));
            }
            only_answers_by(LOOPBACK)?;
            let mut new = Vec::new();
            for (accepted, before, listening) in &mut opened {
                before.write_all(b"?")?;
                accepted.read_exact(&mut [0])?;
                let tried = TcpStream::connect_timeout(&listening.local_addr()?, patience);
                new.push(tried.map(drop).map_err(|error| error.kind()));
            }
            Ok(new)
        });
        match tried.join().expect("no panic") {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                airloom_testkit::skip("drive/rules", &error.to_string());
            }
            tried => {
                let tried = tried.expect("rules");
                let times_out = |tried: &Result<(), _>| *tried == Err(io::ErrorKind::TimedOut);
                assert!(!tried.is_empty() && tried.iter().all(times_out), "{tried:?}");
            }
        }
    }
}

//! The way to this machine's loopback, for laboratories that are to have one.
//!
//! One real host, the door, listens on the ports that were asked for, and on no other. The sockets were made in its
//! namespace; who takes connections from them is a thread of the engine's process, which is on the machine and opens a
//! connection to the same port of loopback for each. Nothing of the machine's listens for it.
//!
//! ```text
//!   laboratory                                 |  machine
//!   mobile == radio == door, port 8000 --------|-- relay -- 127.0.0.1 or ::1, port 8000
//! ```
//!
//! TCP of the modelled path ends at the door. What it says there is said again on the machine: data, the end of data, and a
//! reset, also where the machine refuses. Nothing is read that the other side does not take, which holds the sender back.

#![expect(clippy::disallowed_types, reason = "it is on the system's own sockets")]

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::{self, JoinHandle};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use socket2::{Domain, SockRef, Socket, Type};

use super::messages;

/// Connections at a time: those that come meanwhile wait in the kernel.
const MOST: usize = 1000;
const BACKLOG: i32 = 1024;
/// Octets of one direction that wait here.
const BUFFER: usize = 64 << 10;
/// Reads and writes of one turn: then it is the others' turn.
const TURN: usize = 16;
/// How long to wait where the kernel has no room for another connection.
const NO_ROOM_MS: u16 = 100;

/// Listens on a port of the calling process's namespace, for both families where it has both.
pub(super) fn listen(port: u16) -> io::Result<OwnedFd> {
    let on = |domain, address: SocketAddr| {
        let socket = Socket::new(domain, Type::STREAM, None)?;
        if domain == Domain::IPV6 {
            socket.set_only_v6(false)?;
        }
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket)
    };
    // A kernel may come without IPv6.
    let socket: io::Result<Socket> = on(Domain::IPV6, (Ipv6Addr::UNSPECIFIED, port).into())
        .or_else(|_| on(Domain::IPV4, (Ipv4Addr::UNSPECIFIED, port).into()));
    Ok(socket?.into())
}

/// The thread that passes on what comes; it ends, and its connections with it, when this value goes.
pub(super) struct Relay {
    /// Closed to say so.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Takes connections from these sockets and leads each to its port of the loopback that the calling thread sees.
    pub(super) fn start(doors: Vec<(u16, OwnedFd)>) -> io::Result<Relay> {
        let doors = doors
            .into_iter()
            .map(|(port, socket)| {
                let listener = TcpListener::from(socket);
                listener.set_nonblocking(true)?;
                Ok((port, listener))
            })
            .collect::<io::Result<Vec<_>>>()?;
        let (stop, told) = messages::pair()?;
        let thread = thread::Builder::new().name("airloom-loopback".to_owned()).spawn(move || {
            // Signals are for others.
            let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), None);
            Work { doors, pairs: Vec::new() }.serve(&told);
        })?;
        Ok(Relay { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Work {
    doors: Vec<(u16, TcpListener)>,
    pairs: Vec<Pair>,
}

impl Work {
    fn serve(mut self, told: &OwnedFd) {
        let mut has_room = true;
        loop {
            let mut wait = vec![PollFd::new(told.as_fd(), PollFlags::POLLIN)];
            let takes = has_room && self.pairs.len() < MOST;
            if takes {
                wait.extend(self.doors.iter().map(|(_, l)| PollFd::new(l.as_fd(), PollFlags::POLLIN)));
            }
            for pair in &self.pairs {
                wait.extend(pair.waits_for());
            }
            let time = if has_room { PollTimeout::NONE } else { PollTimeout::from(NO_ROOM_MS) };
            has_room = true;
            if poll(&mut wait, time).is_err() {
                continue;
            }
            if wait[0].any() != Some(false) {
                return;
            }
            drop(wait);
            self.pairs.retain_mut(Pair::pump);
            if takes {
                has_room = self.take();
            }
        }
    }

    /// Takes whoever waits; false if there is no room for them.
    fn take(&mut self) -> bool {
        for (port, door) in &self.doors {
            while self.pairs.len() < MOST {
                match door.accept() {
                    Ok((client, _)) => self.pairs.extend(Pair::new(client, *port)),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // Who has gone again meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(_) => return false,
                }
            }
        }
        true
    }
}

/// A connection at the door and the one on the machine.
struct Pair {
    client: TcpStream,
    server: TcpStream,
    port: u16,
    /// Until the machine has answered; then the other family is asked, if there is one left.
    is_connecting: bool,
    next: Option<Ipv6Addr>,
    up: Half,
    down: Half,
}

impl Pair {
    fn new(client: TcpStream, port: u16) -> Option<Pair> {
        let prepared = client.set_nonblocking(true).and_then(|()| client.set_nodelay(true));
        // A server may listen on either family alone.
        let (v4, v6) = (SocketAddr::from((Ipv4Addr::LOCALHOST, port)), Ipv6Addr::LOCALHOST);
        let opened = match prepared.and_then(|()| open(v4)) {
            Ok(server) => Ok((server, Some(v6))),
            Err(_) => open((v6, port).into()).map(|server| (server, None)),
        };
        match opened {
            Ok((server, next)) => {
                let (up, down) = (Half::default(), Half::default());
                Some(Pair { client, server, port, is_connecting: true, next, up, down })
            }
            Err(_) => {
                reset(&client);
                None
            }
        }
    }

    fn waits_for(&self) -> impl Iterator<Item = PollFd<'_>> {
        let of = |socket, reads, writes| {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::POLLIN, reads);
            flags.set(PollFlags::POLLOUT, writes);
            // An end that is waited for in vain would be told of again and again.
            (!flags.is_empty()).then(|| PollFd::new(socket, flags))
        };
        let (client, server) = (self.client.as_fd(), self.server.as_fd());
        let both = if self.is_connecting {
            [None, of(server, false, true)]
        } else {
            [
                of(client, self.up.wants_to_read(), self.down.wants_to_write()),
                of(server, self.down.wants_to_read(), self.up.wants_to_write()),
            ]
        };
        both.into_iter().flatten()
    }

    /// Does what can be done; false if this was the end.
    fn pump(&mut self) -> bool {
        let went_on = self.connect().and_then(|is_open| {
            if is_open {
                self.up.pass_on(&self.client, &self.server)?;
                self.down.pass_on(&self.server, &self.client)?;
            }
            Ok(())
        });
        match went_on {
            Ok(()) => !(self.up.is_over && self.down.is_over),
            Err(_) => {
                reset(&self.client);
                reset(&self.server);
                false
            }
        }
    }

    /// Is the connection on the machine open? An error if it never will be.
    fn connect(&mut self) -> io::Result<bool> {
        while self.is_connecting {
            match (self.server.take_error()?, self.server.peer_addr()) {
                (None, Ok(_)) => {
                    self.server.set_nodelay(true)?;
                    self.is_connecting = false;
                }
                (None, Err(_)) => return Ok(false),
                (Some(error), _) => {
                    let next = self.next.take().ok_or(error)?;
                    self.server = open((next, self.port).into())?;
                }
            }
        }
        Ok(true)
    }
}

/// Begins to connect.
fn open(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address.into()) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket.into()),
    }
}

/// What is closed next ends with a reset.
fn reset(socket: &TcpStream) {
    let _ = SockRef::from(socket).set_linger(Some(std::time::Duration::ZERO));
}

/// One direction.
#[derive(Default)]
struct Half {
    buffer: Vec<u8>,
    /// How much of it was written already.
    written: usize,
    has_ended: bool,
    /// The end was passed on, too.
    is_over: bool,
}

impl Half {
    fn wants_to_write(&self) -> bool {
        self.written < self.buffer.len()
    }

    fn wants_to_read(&self) -> bool {
        !self.has_ended && !self.wants_to_write()
    }

    fn pass_on(&mut self, mut from: &TcpStream, mut to: &TcpStream) -> io::Result<()> {
        for _ in 0..TURN {
            let done = if self.wants_to_write() {
                to.write(&self.buffer[self.written..]).map(|n| self.written += n)
            } else if self.has_ended {
                break;
            } else {
                self.buffer.resize(BUFFER, 0);
                self.written = BUFFER;
                from.read(&mut self.buffer).map(|n| {
                    self.buffer.truncate(n);
                    self.written = 0;
                    self.has_ended = n == 0;
                })
            };
            match done {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // Also where that was the last of the turn: nobody would come back for it. What came before it was written.
        if self.has_ended && !self.is_over {
            to.shutdown(Shutdown::Write)?;
            self.is_over = true;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A door on loopback itself, and a server behind it on another port is not possible: the port is the same. So the door
    /// listens on another address of loopback.
    fn door(port: u16) -> OwnedFd {
        TcpListener::bind((Ipv4Addr::new(127, 0, 0, 9), port)).unwrap().into()
    }

    fn ask(port: u16) -> TcpStream {
        TcpStream::connect((Ipv4Addr::new(127, 0, 0, 9), port)).unwrap()
    }

    #[test]
    fn octets_and_their_end_go_both_ways_however_many_there_are() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = server.local_addr().unwrap().port();
        let _relay = Relay::start(vec![(port, door(port))]).unwrap();
        let echo = thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            stream.write_all(&all).unwrap();
        });
        let mut client = ask(port);
        let sent: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
        client.write_all(&sent).unwrap();
        // The server hears the end and still answers.
        client.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        assert!(answer == sent, "{} octets", answer.len());
        echo.join().unwrap();
    }

    #[test]
    fn a_server_on_ipv6_alone_is_found() {
        let Ok(server) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) else { return };
        let port = server.local_addr().unwrap().port();
        let _relay = Relay::start(vec![(port, door(port))]).unwrap();
        let answer = thread::spawn(move || server.accept().unwrap().0.write_all(b"six").unwrap());
        let mut said = String::new();
        ask(port).read_to_string(&mut said).unwrap();
        assert_eq!(said, "six");
        answer.join().unwrap();
    }

    #[test]
    fn a_port_that_nobody_serves_and_a_reset_are_resets() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = server.local_addr().unwrap().port();
        let relay = Relay::start(vec![(port, door(port))]).unwrap();
        let mut client = ask(port);
        let (stream, _) = server.accept().unwrap();
        reset(&stream);
        drop(stream);
        let told = client.read(&mut [0; 1]).unwrap_err();
        assert_eq!(told.kind(), io::ErrorKind::ConnectionReset);
        drop(server);
        let told = ask(port).read(&mut [0; 1]).unwrap_err();
        assert_eq!(told.kind(), io::ErrorKind::ConnectionReset);
        // Nothing is held up by connections that are open.
        let _open = ask(port);
        drop(relay);
    }

    #[test]
    fn an_end_that_is_the_last_of_a_turn_is_passed_on() {
        let connected = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let opened = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (opened, listener.accept().unwrap().0)
        };
        let (mut sender, from) = connected();
        let (to, mut receiver) = connected();
        // One octet after the other, each a read and a write.
        let ends = thread::spawn(move || {
            for _ in 1..TURN / 2 {
                receiver.read_exact(&mut [0; 1]).unwrap();
                sender.write_all(&[1]).unwrap();
            }
            drop(sender);
            receiver
        });
        let mut half = Half { buffer: vec![1], ..Half::default() };
        half.pass_on(&from, &to).unwrap();
        assert!(half.is_over);
        let mut rest = Vec::new();
        ends.join().unwrap().read_to_end(&mut rest).unwrap();
        assert_eq!(rest, [1]);
    }
}

//! What every socket of ours has, and how the first word over one is said.
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "this is where the machine meets the system's clock and sockets"
)]

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::envelope::{self, Greeting};
use super::failure::Failure;
use crate::daemon::udp::anywhere;
use crate::secret;

/// Largest datagram of UDP.
pub(super) const LARGEST: usize = 65_535;
/// The shortest time the system can be asked to wait for.
pub(super) const SHORTEST: Duration = Duration::from_micros(1);
/// A greeting that was not answered is repeated after that.
pub(super) const GREET_AGAIN: Duration = Duration::from_millis(300);
/// What the kernel is asked to keep for us, either way.
const KERNEL_BUFFER: usize = 4 << 20;

/// Large buffers, as far as the system allows.
pub(super) fn prepare(socket: &UdpSocket) {
    // A smaller one than asked for only means more losses.
    let _ = SockRef::from(socket).set_recv_buffer_size(KERNEL_BUFFER);
    let _ = SockRef::from(socket).set_send_buffer_size(KERNEL_BUFFER);
}

/// Is this an error about an earlier datagram, or no datagram at all?
pub(super) fn is_passing(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionRefused, ConnectionReset, Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted | ConnectionRefused | ConnectionReset)
}

/// A place that may be spoken to, and the socket for it.
struct Door {
    to: SocketAddr,
    socket: UdpSocket,
    is_busy: bool,
}

impl Door {
    fn new(to: SocketAddr) -> io::Result<Door> {
        let socket = UdpSocket::bind(anywhere(to))?;
        prepare(&socket);
        Ok(Door { to, socket, is_busy: false })
    }

    /// Waits for the answer to a greeting.
    fn answer(&mut self, nonce: u64, wait: Duration) -> Result<Option<u64>, Failure> {
        let asked = Instant::now();
        let mut buffer = [0; LARGEST];
        while let Some(left) = wait.checked_sub(asked.elapsed()).filter(|left| !left.is_zero()) {
            self.socket.set_read_timeout(Some(left.max(SHORTEST)))?;
            match self.socket.recv_from(&mut buffer) {
                Ok((len, from)) if from == self.to => match envelope::greeted(&buffer[..len]) {
                    Some((Greeting::Welcome(name), n)) if n == nonce => return Ok(Some(name)),
                    Some((Greeting::Busy, n)) if n == nonce => {
                        self.is_busy = true;
                        return Ok(None);
                    }
                    _ => {}
                },
                Ok(_) => {}
                // Nobody listens there yet, or no more.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::thread::sleep(left),
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }
}

/// The doors to these addresses; a kernel may lack the family of some.
fn those_that_open(
    to: &[SocketAddr],
    open: impl Fn(SocketAddr) -> io::Result<Door>,
) -> io::Result<Vec<Door>> {
    let (mut doors, mut failed) = (Vec::new(), None);
    for at in to {
        match open(*at) {
            Ok(door) => doors.push(door),
            Err(error) => failed = Some(error),
        }
    }
    failed.filter(|_| doors.is_empty()).map_or(Ok(doors), Err)
}

/// Asks for the name of a session at each of these addresses in turn, until one answers: a name may have addresses on
/// which nobody listens, and only an answer tells. `watch` is asked now and then whether to go on.
///
/// # Errors
/// Nobody answered within `patience`; one is busy, and no other answered; or as the system says of all addresses.
pub(super) fn greet(
    to: &[SocketAddr],
    patience: Duration,
    watch: &mut dyn FnMut() -> bool,
) -> Result<(UdpSocket, SocketAddr, u64), Failure> {
    let mut doors = those_that_open(to, Door::new)?;
    let (began, nonce) = (Instant::now(), secret::key()?.0);
    while began.elapsed() < patience {
        let mut refused = None;
        let mut sent = 0;
        for door in &doors {
            match door.socket.send_to(&envelope::greet(Greeting::Hello, nonce), door.to) {
                Ok(_) => sent += 1,
                Err(error) if is_passing(&error) => sent += 1,
                // This machine has no way there; it may have one to another address.
                Err(error) => refused = Some(error),
            }
        }
        if let Some(error) = refused.filter(|_| sent == 0) {
            return Err(error.into());
        }
        let wait = GREET_AGAIN / doors.len().max(1) as u32;
        for n in 0..doors.len() {
            if let Some(name) = doors[n].answer(nonce, wait)? {
                let door = doors.swap_remove(n);
                return Ok((door.socket, door.to, name));
            }
        }
        if doors.iter().any(|door| door.is_busy) {
            return Err(Failure::Busy);
        }
        if !watch() {
            return Err(io::Error::from(ErrorKind::Interrupted).into());
        }
    }
    Err(Failure::Silent(patience))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_addresses_the_one_that_answers_is_taken() {
        let open = || UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let (silent, there) = (open(), open());
        let (quiet, at) = (silent.local_addr().expect("bound"), there.local_addr().expect("bound"));
        let host = std::thread::spawn(move || {
            let mut buffer = [0; LARGEST];
            let (len, from) = there.recv_from(&mut buffer).expect("a greeting");
            let (_, nonce) = envelope::greeted(&buffer[..len]).expect("a greeting");
            there.send_to(&envelope::greet(Greeting::Welcome(77), nonce), from).expect("sent");
        });
        let (_, to, name) = greet(&[quiet, at], Duration::from_secs(60), &mut || true).expect("one answers");
        assert_eq!((to, name), (at, 77));
        host.join().expect("it answered");
    }

    #[test]
    fn a_family_that_the_kernel_lacks_does_not_stand_in_the_way_of_another() {
        let open = |at: SocketAddr| {
            if at.is_ipv4() { Door::new(at) } else { Err(ErrorKind::Unsupported.into()) }
        };
        let to = ["[::1]:7", "127.0.0.1:7"].map(|at| at.parse().expect("an address"));
        let doors = those_that_open(&to, open).expect("one of them");
        assert_eq!(doors.iter().map(|door| door.to).collect::<Vec<_>>(), to[1..]);
        let error = those_that_open(&to[..1], open).err().expect("none of them");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    }
}

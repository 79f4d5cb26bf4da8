//! What the engine and the keeper of a laboratory say to each other: messages with descriptors, over a socket pair.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr, recvmsg,
    sendmsg, socketpair,
};

use airloom_base::Duration;

use super::child;
use crate::real_time::clock::wait_readable;

/// How long somebody who may not want to wait any longer is left waiting.
const STEP: Duration = Duration::from_millis(100);
/// Longest message.
const LONGEST: usize = 4096;
/// Most descriptors that travel with one message.
pub(super) const MOST_FDS: usize = 64;

/// A pair of connected sockets; each message arrives as it was sent.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC)?)
}

/// Sends a message; longer ones are cut.
pub(super) fn send(socket: BorrowedFd, octets: &[u8], fds: &[RawFd]) -> io::Result<()> {
    let rights = [ControlMessage::ScmRights(fds)];
    let control: &[ControlMessage] = if fds.is_empty() { &[] } else { &rights };
    let parts = [IoSlice::new(&octets[..octets.len().min(LONGEST)])];
    loop {
        match sendmsg::<UnixAddr>(socket.as_raw_fd(), &parts, control, MsgFlags::MSG_NOSIGNAL, None) {
            Ok(_) => return Ok(()),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Waits for a message; an empty one is the end: the other side is gone.
pub(super) fn receive(socket: BorrowedFd) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut octets = vec![0; LONGEST];
    let mut control = cmsg_space!([RawFd; MOST_FDS]);
    let (len, fds) = loop {
        let mut parts = [IoSliceMut::new(&mut octets)];
        match recvmsg::<UnixAddr>(
            socket.as_raw_fd(),
            &mut parts,
            Some(&mut control),
            MsgFlags::MSG_CMSG_CLOEXEC,
        ) {
            Ok(message) => {
                let mut fds = Vec::new();
                for item in message.cmsgs()? {
                    if let ControlMessageOwned::ScmRights(list) = item {
                        fds.extend(list.into_iter().map(child::received));
                    }
                }
                break (message.bytes, fds);
            }
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    };
    octets.truncate(len);
    Ok((octets, fds))
}

/// The same, but for no longer than `time`.
pub(super) fn receive_within(socket: BorrowedFd, time: Duration) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    if wait_readable(socket, time)? {
        return receive(socket);
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "the laboratory gives no answer"))
}

/// The same, and every tenth of a second `go_on` says whether to wait any longer.
pub(super) fn receive_while(
    socket: BorrowedFd,
    time: Duration,
    go_on: &mut dyn FnMut() -> bool,
) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    for _ in 0..time.as_nanos() / STEP.as_nanos() {
        if wait_readable(socket, STEP)? {
            return receive(socket);
        }
        if !go_on() {
            return Err(io::Error::other("stopped"));
        }
    }
    receive_within(socket, Duration::ZERO)
}

/// Asks for something by a number that no question before had: the answer to it, and not one that came too late for its own
/// question.
pub(super) fn ask(
    socket: BorrowedFd,
    number: u32,
    request: &[u8],
    fds: &[RawFd],
    time: Duration,
) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let number = number.to_le_bytes();
    send(socket, &[&number, request].concat(), fds)?;
    loop {
        let (answer, fds) = receive_within(socket, time)?;
        match answer.split_first_chunk() {
            Some((of, answer)) if *of == number => return Ok((answer.to_vec(), fds)),
            None if answer.is_empty() => return Err(io::Error::other("the laboratory is gone")),
            _ => {}
        }
    }
}

/// Says a number, or what failed.
pub(super) fn send_result(socket: BorrowedFd, result: Result<u32, &io::Error>) -> io::Result<()> {
    let message = match result {
        Ok(number) => [&[0][..], &number.to_le_bytes()].concat(),
        Err(error) => {
            let code = error.raw_os_error().unwrap_or(0).to_le_bytes();
            [&[1][..], &code, error.to_string().as_bytes()].concat()
        }
    };
    send(socket, &message, &[])
}

/// What [`send_result`] said at the other end.
pub(super) fn receive_result(socket: BorrowedFd, time: Duration) -> io::Result<u32> {
    let (answer, _) = receive_within(socket, time)?;
    match answer.as_slice() {
        [0, a, b, c, d] => Ok(u32::from_le_bytes([*a, *b, *c, *d])),
        [1, a, b, c, d, text @ ..] => {
            let text = String::from_utf8_lossy(text).into_owned();
            Err(match i32::from_le_bytes([*a, *b, *c, *d]) {
                0 => io::Error::other(text),
                code => io::Error::from_raw_os_error(code),
            })
        }
        _ => Err(io::Error::other("the warden gave no answer")),
    }
}

/// Writes texts so that [`Texts`] finds them again.
#[derive(Default)]
pub(super) struct Writer(pub(super) Vec<u8>);

impl Writer {
    pub(super) fn number(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(super) fn text(&mut self, octets: &[u8]) {
        self.number(octets.len() as u32);
        self.0.extend_from_slice(octets);
    }

    pub(super) fn texts<'a>(&mut self, texts: impl ExactSizeIterator<Item = &'a [u8]>) {
        self.number(texts.len() as u32);
        for text in texts {
            self.text(text);
        }
    }
}

/// Reads what a [`Writer`] wrote; `None` where it ends too early.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn number(&mut self) -> Option<u32> {
        let (first, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_le_bytes(*first))
    }

    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let len = self.number()? as usize;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(text)
    }

    pub(super) fn texts(&mut self) -> Option<Vec<&'a [u8]>> {
        (0..self.number()?).map(|_| self.text()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn texts_come_back_and_a_cut_message_is_noticed() {
        let mut writer = Writer::default();
        writer.number(7);
        writer.texts([&b"a"[..], b"", b"long text"].into_iter());
        let mut reader = Reader(&writer.0);
        assert_eq!(reader.number(), Some(7));
        assert_eq!(reader.texts().unwrap(), [&b"a"[..], b"", b"long text"]);
        for cut in 4..writer.0.len() {
            assert!(Reader(&writer.0[4..cut]).texts().is_none(), "{cut}");
        }
    }

    #[test]
    fn an_answer_that_comes_too_late_is_not_the_next_questions() {
        let (here, there) = pair().unwrap();
        let ask = |number, time| ask(here.as_fd(), number, b"what?", &[], time);
        assert_eq!(ask(1, Duration::ZERO).unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert_eq!(receive(there.as_fd()).unwrap().0, b"\x01\0\0\0what?");
        for answer in [b"\x01\0\0\0first", b"\x02\0\0\0other"] {
            send(there.as_fd(), answer, &[]).unwrap();
        }
        assert_eq!(ask(2, Duration::from_secs(60)).unwrap().0, b"other");
        drop(there);
        assert!(ask(3, Duration::from_secs(60)).is_err());
    }

    #[test]
    fn a_message_brings_its_descriptors_and_the_end_is_an_empty_one() {
        let (here, there) = pair().unwrap();
        send(here.as_fd(), b"two", &[here.as_raw_fd(), there.as_raw_fd()]).unwrap();
        let (octets, fds) = receive(there.as_fd()).unwrap();
        assert_eq!((octets.as_slice(), fds.len()), (&b"two"[..], 2));
        drop((here, fds));
        assert!(receive(there.as_fd()).unwrap().0.is_empty());
    }
}

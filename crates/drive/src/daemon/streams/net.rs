//! The sockets that an application is lent: the kernel's, which never block.

use std::io;
use std::net::{Shutdown, SocketAddr};
use std::task::{Context, Poll, Waker};

use airloom_base::service::{Datagram, WriteError};
use airloom_base::{Body, CloseReason, Cx, SocketEvent, SocketId, Sockets};
use bytes::Bytes;
use socket2::SockRef;
use tokio::net::TcpStream;

/// The most that is read at a time.
const READ: usize = 64 * 1024;
/// Reads of one turn: then it is the others' turn.
const TURN: u32 = 16;

/// A connection, or the place of one.
#[derive(Default)]
struct Slot {
    generation: u32,
    is_taken: bool,
    /// Which connection of all it is, from 0.
    flow: u32,
    stream: Option<TcpStream>,
    /// Everything was read: it is to be told when there is more.
    wants_read: bool,
    /// The kernel took less than offered: it is to be told when that takes more.
    wants_write: bool,
    /// The peer sends no more, and whether that was told.
    has_ended: bool,
    is_end_told: bool,
    /// We send no more.
    has_finished: bool,
    broken: Option<CloseReason>,
    /// Wakes the task that attends to it.
    waker: Option<Waker>,
}

impl Slot {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn fail(&mut self, error: &io::Error) {
        self.broken = Some(reason(error));
        self.wake();
    }
}

/// See the module.
#[derive(Default)]
pub(super) struct Net {
    slots: Vec<Slot>,
    free: Vec<u32>,
    open: usize,
    /// How many connections there have been.
    flows: u32,
    /// Connections that were asked for.
    pub(super) asked: Vec<(SocketId, SocketAddr)>,
    /// Whose turn it is: its task looks again by itself.
    turn: Option<SocketId>,
    reads_left: u32,
    /// Where the kernel puts what is read. What is handed on is copied out of it and takes no more than its length.
    block: Box<[u8]>,
}

impl Net {
    pub(super) fn new() -> Net {
        Net { reads_left: TURN, block: vec![0; READ].into(), ..Default::default() }
    }

    /// Is there no connection?
    pub(super) fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// A place for a connection that is open already, or is to be opened.
    pub(super) fn insert(&mut self, stream: Option<TcpStream>) -> SocketId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        let generation = slot.generation;
        *slot = Slot {
            generation,
            is_taken: true,
            flow: self.flows,
            wants_read: true,
            stream,
            ..Slot::default()
        };
        self.open += 1;
        self.flows = self.flows.wrapping_add(1);
        SocketId { slot: index, generation, stream: 0 }
    }

    /// A connection that was asked for is open. False if nobody wants it any more.
    pub(super) fn opened(&mut self, socket: SocketId, stream: TcpStream) -> bool {
        let Some(slot) = self.slot(socket) else { return false };
        slot.stream = Some(stream);
        true
    }

    fn slot(&mut self, socket: SocketId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(socket.slot as usize)?;
        (slot.is_taken && slot.generation == socket.generation).then_some(slot)
    }

    /// Gives the place up; the stream is closed.
    pub(super) fn remove(&mut self, socket: SocketId) {
        let Some(slot) = self.slot(socket) else { return };
        slot.wake();
        *slot = Slot { generation: slot.generation.wrapping_add(1), ..Slot::default() };
        self.free.push(socket.slot);
        self.open -= 1;
    }

    /// Closes everything.
    pub(super) fn close_all(&mut self) {
        for slot in &mut self.slots {
            slot.stream = None;
            slot.wake();
        }
    }

    /// An application is about to be called because of `socket`.
    pub(super) fn begin(&mut self, socket: Option<SocketId>) {
        self.turn = socket;
        self.reads_left = TURN;
    }

    /// Has it read as much as is allowed in one turn?
    pub(super) fn end(&mut self) -> bool {
        self.turn = None;
        self.reads_left == 0
    }

    /// Is it of no use to anybody any more?
    pub(super) fn poll_gone(&mut self, socket: SocketId, task: &Context<'_>) -> Poll<()> {
        let Some(slot) = self.slot(socket) else { return Poll::Ready(()) };
        slot.waker = Some(task.waker().clone());
        Poll::Pending
    }

    /// What is to be told of a socket; `None` once it is gone.
    pub(super) fn poll_news(
        &mut self,
        socket: SocketId,
        task: &mut Context<'_>,
    ) -> Poll<Option<SocketEvent>> {
        let Some(slot) = self.slot(socket) else { return Poll::Ready(None) };
        let Some(stream) = &slot.stream else { return Poll::Ready(None) };
        if let Some(why) = slot.broken {
            return Poll::Ready(Some(SocketEvent::Closed(why)));
        }
        if slot.has_ended && !slot.is_end_told {
            slot.is_end_told = true;
            return Poll::Ready(Some(SocketEvent::Finished));
        }
        if slot.has_ended && slot.has_finished {
            return Poll::Ready(Some(SocketEvent::Closed(CloseReason::Finished)));
        }
        // Errors are met by the read or write that follows.
        if slot.wants_write && stream.poll_write_ready(task).is_ready() {
            slot.wants_write = false;
            return Poll::Ready(Some(SocketEvent::Writable));
        }
        if slot.wants_read && !slot.has_ended && stream.poll_read_ready(task).is_ready() {
            slot.wants_read = false;
            // How much there is the kernel does not say; at least an octet, or the end.
            return Poll::Ready(Some(SocketEvent::Readable(1)));
        }
        if slot.waker.as_ref().is_none_or(|waker| !waker.will_wake(task.waker())) {
            slot.waker = Some(task.waker().clone());
        }
        Poll::Pending
    }
}

/// Why a connection is over, from what the kernel says of it.
pub(super) fn reason(error: &io::Error) -> CloseReason {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => CloseReason::Refused,
        io::ErrorKind::TimedOut => CloseReason::TimedOut,
        io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::AddrNotAvailable
        | io::ErrorKind::PermissionDenied => CloseReason::Unreachable,
        _ => CloseReason::Reset,
    }
}

impl Sockets for Net {
    fn connect(&mut self, _cx: &mut Cx, to: SocketAddr) -> SocketId {
        let socket = self.insert(None);
        self.asked.push((socket, to));
        socket
    }

    fn write(&mut self, _cx: &mut Cx, socket: SocketId, body: Body) -> Result<usize, WriteError> {
        let is_turn = self.turn == Some(socket);
        let Some(slot) = self.slot(socket).filter(|s| s.broken.is_none() && !s.has_finished) else {
            return Err(WriteError::Closed);
        };
        let Some(stream) = &slot.stream else { return Err(WriteError::Blocked) };
        let octets = body.to_bytes();
        let mut written = 0;
        while written < octets.len() {
            match stream.try_write(&octets[written..]) {
                Ok(n) => written += n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    slot.wants_write = true;
                    if !is_turn {
                        slot.wake();
                    }
                    break;
                }
                Err(error) => {
                    slot.fail(&error);
                    return if written > 0 { Ok(written) } else { Err(WriteError::Closed) };
                }
            }
        }
        WriteError::or_taken(written, octets.len())
    }

    fn read(&mut self, _cx: &mut Cx, socket: SocketId, max: usize) -> Option<Body> {
        let is_turn = self.turn == Some(socket);
        let Net { slots, block, reads_left, .. } = self;
        let slot = slots.get_mut(socket.slot as usize)?;
        if !slot.is_taken || slot.generation != socket.generation || slot.broken.is_some() || slot.has_ended {
            return None;
        }
        let stream = slot.stream.as_ref()?;
        let room = max.min(READ);
        if room == 0 {
            return None;
        }
        if *reads_left > 0 {
            *reads_left -= 1;
            match stream.try_read(&mut block[..room]) {
                Ok(0) => {
                    slot.has_ended = true;
                    slot.wake();
                    return None;
                }
                Ok(n) => return Some(Body::Real(Bytes::copy_from_slice(&block[..n]))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    slot.fail(&error);
                    return None;
                }
            }
        }
        // Nothing is there, or it is others' turn: either way it is told when to go on.
        slot.wants_read = true;
        if !is_turn {
            slot.wake();
        }
        None
    }

    fn unacknowledged(&self, _socket: SocketId) -> u64 {
        0
    }

    fn finish(&mut self, _cx: &mut Cx, socket: SocketId) {
        let Some(slot) = self.slot(socket).filter(|s| !s.has_finished) else { return };
        slot.has_finished = true;
        if let Some(stream) = &slot.stream
            && let Err(error) = SockRef::from(stream).shutdown(Shutdown::Write)
        {
            slot.fail(&error);
        }
        slot.wake();
    }

    fn reset(&mut self, _cx: &mut Cx, socket: SocketId) {
        if let Some(slot) = self.slot(socket)
            && let Some(stream) = &slot.stream
        {
            // Where that fails the peer hears an end instead.
            let _ = SockRef::from(stream).set_linger(Some(std::time::Duration::ZERO));
        }
        self.remove(socket);
    }

    fn send_datagram(&mut self, _cx: &mut Cx, _datagram: Datagram) {}

    fn flow(&self, socket: SocketId) -> u32 {
        self.slots.get(socket.slot as usize).map_or(0, |slot| slot.flow)
    }
}

//! What a write takes, when a writer waits, and what the sender is busy with meanwhile: as Linux counts it.

use airloom_base::{Body, Cx, Duration, Instant};
use airloom_transports::tcp::socket;

use super::{Behind, Options, Outcome, Stack};

/// What a sender was busy with, and for how long (`tcpi_busy_time` and its relatives).
#[derive(Clone, Copy, Debug, Default)]
pub struct Chronograph {
    since: Option<(Instant, Doing)>,
    /// Data was written and not acknowledged.
    pub busy: Duration,
    /// Of that: it waited for the peer's window,
    pub window: Duration,
    /// or for room in the buffer.
    pub buffer: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Sending,
    WindowLimited,
    BufferLimited,
}

impl Chronograph {
    fn note(&mut self, now: Instant, doing: Option<Doing>) {
        if let Some((since, did)) = self.since {
            let time = now.since(since);
            self.busy += time;
            match did {
                Doing::Sending => {}
                Doing::WindowLimited => self.window += time,
                Doing::BufferLimited => self.buffer += time,
            }
        }
        self.since = doing.map(|d| (now, d));
    }
}

impl Stack {
    /// `write` and its relatives: how many octets were taken. `more`: they go on; `record`: they end a record.
    pub fn write(&mut self, fd: i32, octets: &[u8], more: bool, record: bool) -> Outcome<usize> {
        let (id, nonblocking) = self.stream(fd)?;
        if self.connections[&id].ended.is_some() {
            let error = self.error(id);
            return Err(if error == libc::ENOTCONN { libc::EPIPE } else { error });
        }
        if self.connections[&id].write_shut {
            return Err(libc::EPIPE);
        }
        let taken = self.take(fd, id, octets, more, record);
        match taken {
            0 if !octets.is_empty() && nonblocking => Err(libc::EAGAIN),
            0 if !octets.is_empty() => Ok(None),
            taken => Ok(Some(taken)),
        }
    }

    /// How many octets a connection may hold before a writer waits, and how many of them that were not sent.
    fn limits(&self, options: &Options, info: &socket::Info) -> (u64, u64) {
        let lowat = match options.notsent_lowat {
            0 => self.notsent_lowat,
            own => own,
        };
        (options.sndbuf.map_or(info.send_buffer, u64::from), u64::from(lowat))
    }

    /// Linux: a third of the buffer is free, and what was not sent is half of what may wait.
    pub(super) fn is_writable(&self, options: &Options, info: &socket::Info) -> bool {
        let (limit, lowat) = self.limits(options, info);
        limit.saturating_sub(info.queued) >= info.queued / 2 && info.notsent_bytes * 2 < lowat
    }

    /// As Linux does it: the last block is filled up, and another one begun while the buffer is not full; each may be sent
    /// when it is full.
    fn take(&mut self, fd: i32, id: u64, octets: &[u8], more: bool, record: bool) -> usize {
        let Some(options) = self.sockets.get(&fd).map(|s| s.options.clone()) else { return 0 };
        let mut done = 0;
        while done < octets.len()
            && let Some(info) = self.info_of(id)
        {
            let (limit, lowat) = self.limits(&options, &info);
            let writable = self.is_writable(&options, &info);
            let Some(c) = self.connections.get_mut(&id) else { break };
            let Behind::Open(socket) = &mut c.behind else { break };
            let block = socket.block();
            let last = match info.notsent_bytes {
                0 => block,
                _ if c.record_ended => block,
                unsent => (unsent - 1) % block + 1,
            };
            let begins = last == block;
            if c.full && !writable || begins && (info.queued >= limit || info.notsent_bytes >= lowat) {
                c.full = true;
                socket.wants_room();
                break;
            }
            c.full = false;
            let step = (octets.len() - done).min(if begins { block } else { block - last } as usize);
            let whole = done + step == octets.len();
            let body = Body::Real(octets[done..done + step].to_vec().into());
            let mut cx = Cx { now: self.now, records: &mut self.outbox };
            if !socket.write(&mut cx, body, more || !whole) {
                break;
            }
            done += step;
            c.written += step as u64;
            // Linux: more than half of the largest window since the last PSH: here is one.
            let push = !whole && c.written > c.pushed + info.max_window / 2;
            c.record_ended = whole && record;
            if c.record_ended || push {
                socket.end_record();
            }
            if push || whole && !more {
                c.pushed = c.written;
            }
            self.drain(id);
            if let Some(Behind::Open(socket)) = self.connections.get_mut(&id).map(|c| &mut c.behind) {
                socket.written();
            }
        }
        done
    }

    /// Looks what the sender is busy with.
    pub(super) fn note_doing(&mut self, id: u64) {
        let (Some(info), now) = (self.info_of(id), self.now) else { return };
        let Some(c) = self.connections.get_mut(&id) else { return };
        let doing = match info {
            _ if !matches!(c.behind, Behind::Open(_)) => None,
            i if i.notsent_bytes + i.unacked == 0 => None,
            i if i.window_limited => Some(Doing::WindowLimited),
            i if i.notsent_bytes == 0 && c.full => Some(Doing::BufferLimited),
            _ => Some(Doing::Sending),
        };
        c.chronograph.note(now, doing);
    }
}

//! What goes into the next packet (RFC 9260, 6.1, 6.10).

use airloom_base::packet::{HEAD, HEADROOM};
use airloom_base::{Body, Cx, Outgoing as Unit, Packet, PathId};
use bytes::Bytes;

use super::association::{Association, SackDue};
use super::chunk::{Chunk, Sack};
use super::octets::{CHUNK_HEADER, padded};
use super::path::PathState;
use super::state::State;
use super::wire::{HEADER, Header};

/// ECT(0).
const ECT: u8 = 2;
/// Octets of header that fit into a packet's head.
const INLINE: usize = HEAD - HEADROOM;

impl Association {
    fn header(&self, tag: u32) -> Header {
        Header { source: self.ports.0, destination: self.ports.1, tag }
    }

    fn unit(&self, path: u8, packet: Packet, has_data: bool) -> Unit {
        let ecn = if has_data && self.abilities.ecn { ECT } else { 0 };
        Unit { path: PathId(path), ecn, packet, last: false }
    }

    pub(super) fn output(&mut self, cx: &mut Cx) -> Option<Unit> {
        if let Some((path, tag, chunk)) = self.strays.pop_front() {
            return Some(self.unit(path, self.header(tag).packet(&[chunk]), false));
        }
        if let Some((path, chunk)) = self.alone() {
            let tag = if matches!(chunk, Chunk::Init(_)) { 0 } else { self.peer_tag };
            return Some(self.unit(path, self.header(tag).packet(&[chunk]), false));
        }
        if self.closing.is_some() || self.state == State::Closed {
            return None;
        }
        if self.state.sends_data() {
            self.give_up(cx);
        }
        let for_data = self.path_for_data(cx);
        //= RFC 9260 (5.4, 6.4): over a path that is not confirmed, or failed, goes what was meant for it, and nothing along
        //= with it; what has to arrive has a packet of its own.
        let (path, may_bundle) = match self.control.front() {
            Some((path, _)) => {
                let is_good = for_data == Some(*path) || self.paths[usize::from(*path)].active;
                (*path, is_good || *path == self.last_from)
            }
            None => (for_data.unwrap_or_else(|| self.path_without_data()), true),
        };
        let mut room = self.paths[usize::from(path)].room();
        let mut chunks = Vec::new();
        let mut repeats_cookie = false;
        // COOKIE ACK and COOKIE ECHO come first, then what else there is.
        let mut sends_data = for_data == Some(path);
        while let Some((to, chunk)) = self.control.front()
            && *to == path
            && chunk.padded_len() <= room
            && !is_alone(chunk)
        {
            room -= chunk.padded_len();
            if matches!(chunk, Chunk::CookieEcho(_)) {
                //= RFC 9260 (5.1, C): data may ride along with COOKIE ECHO, in this packet only.
                sends_data = true;
                repeats_cookie = self.init_errors > 0;
            }
            if matches!(chunk, Chunk::Shutdown(_) | Chunk::ShutdownAck) {
                //= RFC 9260 (6.10): no data beside these.
                sends_data = false;
            }
            chunks.extend(self.control.pop_front().map(|(_, chunk)| chunk));
        }
        if let Some(tsn) = self.ecne.filter(|_| may_bundle && self.sack_due == SackDue::Now && room >= 64) {
            chunks.push(Chunk::Ecne(tsn));
            room -= 8;
        }
        if let Some(tsn) = self.cwr.take_if(|_| may_bundle) {
            chunks.push(Chunk::Cwr(tsn));
            room = room.saturating_sub(8);
        }
        let forward = may_bundle && self.flight.forward_due && self.state.sends_data() && room >= 64;
        if forward {
            self.flight.forward_due = false;
            let chunk = Chunk::ForwardTsn(self.flight.forward(self.abilities.interleaving, room / 2));
            room -= chunk.padded_len();
            chunks.push(chunk);
            let path = &mut self.paths[usize::from(path)];
            if !path.t3.is_armed() {
                //= RFC 3758 (3.5, C4): a timer stands for it.
                path.t3.arm_after(cx.now, path.rto);
            }
        }
        let sack_len = CHUNK_HEADER + Sack::FIXED;
        let mut may_sack = may_bundle && self.sack_due != SackDue::No && self.state.has_peer();
        let whole = room;
        if may_sack {
            room = room.saturating_sub(sack_len + 4 * self.inbound.sack_entries()).max(sack_len);
        }
        self.batch.clear();
        let resent = self.flight.resent;
        if sends_data {
            self.fill(cx, path, room);
            if self.batch.is_empty() && may_sack && self.sack_due == SackDue::Later {
                // A full chunk leaves no room for an acknowledgement that may wait: it waits.
                may_sack = false;
                self.fill(cx, path, whole);
            }
        }
        // A cookie and data that are sent again together are one packet.
        self.flight.resent += u64::from(repeats_cookie && self.flight.resent == resent);
        let has_data = !self.batch.is_empty();
        let sack = (may_sack && (self.sack_due == SackDue::Now || has_data)).then(|| self.sack(path));
        if chunks.is_empty() && sack.is_none() && !has_data {
            return None;
        }
        let p = &mut self.paths[usize::from(path)];
        if has_data {
            p.last_sent = cx.now;
            //= RFC 9260 (6.3.2, R1).
            if !p.t3.is_armed() {
                p.t3.arm_after(cx.now, p.rto);
            }
        }
        let packet = self.assemble(chunks, sack);
        Some(self.unit(path, packet, has_data))
    }

    /// A chunk that no other may share a packet with.
    fn alone(&mut self) -> Option<(u8, Chunk)> {
        if is_alone(&self.control.front()?.1) { self.control.pop_front() } else { None }
    }

    fn sack(&mut self, path: u8) -> Sack {
        self.sack_due = SackDue::No;
        self.sack_timer.stop();
        self.packets_unacknowledged = 0;
        let most = (self.paths[usize::from(path)].room() - CHUNK_HEADER - Sack::FIXED) / 4;
        let sack = self.inbound.sack(most);
        self.window_told = u64::from(sack.window);
        sack
    }

    /// Where data goes: where retransmissions wait, or where new data may be sent.
    fn path_for_data(&mut self, cx: &mut Cx) -> Option<u8> {
        if !self.state.sends_data() {
            return None;
        }
        if self.flight.marked > 0
            && let Some((tsn, _)) = self.flight.next_marked(0, |_| true)
            && let Some(last) = self.flight.path_of(tsn)
        {
            return Some(self.resend_path(last));
        }
        let path = self.data_path();
        let config = &self.shared.config;
        let state = &mut self.paths[usize::from(path)];
        state.decay(cx.now, config);
        (!self.out.is_empty() && state.takes_packet()).then_some(path)
    }

    /// Where a packet without data goes: where the last data came from, if that is to be acknowledged.
    fn path_without_data(&self) -> u8 {
        if self.sack_due != SackDue::No { self.last_from } else { self.data_path() }
    }

    /// Chooses what data the packet carries, into `batch`.
    fn fill(&mut self, cx: &mut Cx, number: u8, mut room: usize) {
        let interleaved = self.abilities.interleaving;
        let at = usize::from(number);
        let beyond = std::mem::take(&mut self.paths[at].burst_beyond_window);
        let is_open = self.paths[at].takes_packet() || beyond;
        let mut from = 0;
        let before = self.batch.len();
        // What is marked goes first.
        while self.flight.marked > 0 {
            let next = self.flight.next_marked(from, |_| true);
            // A chunk that the path has become too small for goes as it is: it cannot be cut again.
            let is_stuck = |octets: usize| self.batch.is_empty() && octets > self.paths[at].room();
            let fits = |(_, octets): &(u64, usize)| *octets <= room || is_stuck(*octets);
            let Some((tsn, octets)) = next.filter(fits) else { break };
            let path = &mut self.paths[at];
            if !is_open || (path.flight >= path.cwnd && !beyond) {
                break;
            }
            if self.flight.resend(cx.now, tsn, number, path) {
                //= RFC 9260 (6.1; 7.2.4, 4): the timer starts again with the earliest outstanding chunk.
                path.t3.arm_after(cx.now, path.rto);
            }
            room = room.saturating_sub(octets);
            from = tsn + 1;
            self.batch.push(tsn);
        }
        if before == 0
            && let Some(first) = self.batch.first()
        {
            self.flight.packet_resent(*first);
        }
        if self.flight.marked > 0 && self.batch.is_empty() {
            // Room for the marked ones has to come first (6.1, C).
            self.paths[at].burst_beyond_window = beyond;
            return;
        }
        let mut stream = None;
        let payload = self.payload();
        let is_new_packet = self.batch.is_empty();
        while is_open && !self.out.is_empty() {
            let path: &mut PathState = &mut self.paths[at];
            let front = path.room() - path.payload(interleaved);
            let Some((len, begins)) = self.out.peek(payload, interleaved, stream) else { break };
            if padded(front + len) > room || path.flight >= path.cwnd || self.burst == 0 {
                break;
            }
            let is_probe = self.flight.peer_window < len as u64;
            if is_probe {
                //= RFC 9260 (6.1, A): the peer's window, but for one chunk when nothing is in flight.
                if self.flight.outstanding > 0 || self.flight.marked > 0 {
                    break;
                }
                //= RFC 9260 (6.1, A): a timeout after the window was found closed. The rest of a message goes at once: by it a
                //= peer with too small a buffer for the message gets to know (6.9).
                if begins && !self.may_probe {
                    if !self.probe_timer.is_armed() {
                        self.probe_timer.arm_after(cx.now, path.rto);
                    }
                    break;
                }
            }
            let Some(fragment) = self.out.pop(payload, interleaved, stream) else { break };
            stream = Some(fragment.data.stream);
            room -= padded(front + len);
            self.facts.app_sent += len as u64;
            let tsn = self.flight.send(cx.now, fragment, number, path);
            self.probe_timer.stop();
            self.may_probe = false;
            if is_probe {
                self.flight.note_probe();
            }
            self.batch.push(tsn);
        }
        if is_new_packet && !self.batch.is_empty() {
            self.burst -= 1;
        }
    }

    /// Messages whose time is over, before anything of them is sent (again).
    fn give_up(&mut self, cx: &mut Cx) {
        if !self.abilities.forward_tsn {
            return;
        }
        let released = self.out.expire(cx.now) + self.flight.abandon(cx.now, &mut self.out, &mut self.paths);
        self.release(released);
    }

    /// The packet: in the lean form if it has one chunk of user data whose length needs no padding, and all before it fits
    /// among the header octets; otherwise as octets, of which as many are among these: who looks at packets there finds the
    /// first chunks.
    fn assemble(&mut self, chunks: Vec<Chunk>, sack: Option<Sack>) -> Packet {
        let header = self.header(self.peer_tag);
        let sack = sack.map(Chunk::Sack);
        let control: usize =
            chunks.iter().map(Chunk::padded_len).sum::<usize>() + sack.as_ref().map_or(0, Chunk::padded_len);
        let data = self.batch.first().and_then(|tsn| self.flight.data(*tsn));
        let before = HEADER + control + data.map_or(0, |d| d.front_len());
        if let [] | [_] = self.batch[..] {
            let is_whole = data.is_none_or(|d| d.body.len() % 4 == 0);
            if is_whole && before <= INLINE {
                let body = data.map_or(Body::EMPTY, |d| d.body.clone());
                return Packet::build(
                    |out| {
                        let mut at = header.emit(out);
                        for chunk in chunks.iter().chain(&sack) {
                            at += chunk.emit(&mut out[at..]);
                        }
                        at + data.map_or(0, |d| d.emit_front(d.body.len(), &mut out[at..]))
                    },
                    body,
                );
            }
        }
        let mut octets = vec![0; HEADER];
        octets.reserve(1500);
        header.emit(&mut octets);
        for chunk in chunks.iter().chain(&sack) {
            chunk.append_to(&mut octets);
        }
        for data in self.batch.iter().filter_map(|tsn| self.flight.data(*tsn)) {
            let from = octets.len();
            octets.resize(from + padded(data.front_len() + data.body.len()), 0);
            let front = data.emit_front(data.body.len(), &mut octets[from..]);
            data.body.write(0, &mut octets[from + front..]);
        }
        let head = if before <= INLINE { before } else { octets.len().min(INLINE) };
        let mut octets = Bytes::from(octets);
        let front = octets.split_to(head);
        Packet::build(
            |out| {
                out[..head].copy_from_slice(&front);
                head
            },
            Body::Real(octets),
        )
    }
}

fn is_alone(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Init(_) | Chunk::InitAck(_) | Chunk::Abort { .. } | Chunk::ShutdownComplete { .. })
}

//! A packet arrives: tags, chunks in their order, and what they change (RFC 9260, 6.2.1, 8.5, 9).

use airloom_base::{Body, CloseReason, Cx, Duration, Packet};
use bytes::Bytes;

use super::association::{Association, SackDue};
use super::chunk::{Cause, Chunk, Data, Sack};
use super::inbound::Taken;
use super::state::State;
use super::wire::{Chunks, Header};

/// The two ECN bits of a packet that met congestion.
const CE: u8 = 3;

/// User data that is a small part of its packet, of so many octets, as octets of its own: they are counted alone, and would hold the rest.
fn detached(body: Body, packet: usize) -> Body {
    match body {
        Body::Real(octets) if octets.len() < packet / 4 => Body::Real(Bytes::copy_from_slice(&octets)),
        body => body,
    }
}

impl Association {
    pub(super) fn arrives(&mut self, cx: &mut Cx, from: u8, ecn: u8, mut packet: Packet) {
        if usize::from(from) >= self.paths.len() {
            return;
        }
        let len = packet.wire_len();
        self.facts.wire_received += len as u64;
        let body = packet.take_body();
        let Ok(header) = Header::parse(packet.head()) else { return };
        let mut has_data = false;
        let mut is_first = true;
        for chunk in Chunks::new(packet.head(), body) {
            // What is malformed ends the packet; what stood before it counts.
            let Ok(chunk) = chunk else { break };
            if is_first {
                is_first = false;
                //= RFC 9260 (8.5.1, E; 8.4, 5): to who opens it is of an association of before, which the peer may end now; so
                //= may who has not heard that this one is over.
                let opens = matches!(self.state, State::CookieWait | State::CookieEchoed);
                let is_over = self.closing.is_some();
                if (opens || is_over) && matches!(chunk, Chunk::ShutdownAck) {
                    self.stray(from, header.tag, Chunk::ShutdownComplete { reflected: true });
                    return;
                }
                if is_over {
                    // It waits for its reader only.
                    return;
                }
                if !self.may_enter(&header, &chunk) {
                    return;
                }
                if self.is_unsure && !matches!(chunk, Chunk::CookieEcho(_) | Chunk::Init(_)) {
                    self.peer_is_there(cx);
                }
            } else if matches!(chunk, Chunk::Init(_) | Chunk::InitAck(_) | Chunk::ShutdownComplete { .. }) {
                //= RFC 9260 (6.10): these come alone.
                break;
            }
            if let Chunk::Data(mut data) = chunk {
                data.body = detached(data.body, len);
                has_data = true;
                let tsn = data.tsn;
                self.data_arrives(cx, from, data);
                if ecn == CE && self.abilities.ecn {
                    //= RFC 4960 (appendix A): the lowest TSN of the marked packet.
                    self.ecne.get_or_insert(tsn);
                }
            } else if !self.chunk_arrives(cx, from, &header, chunk) {
                break;
            }
            if self.closing.is_some() {
                return;
            }
        }
        if has_data {
            self.packet_with_data(cx);
        }
    }

    /// The tag a packet with this first chunk must have (8.5, 8.5.1).
    fn may_enter(&self, header: &Header, first: &Chunk) -> bool {
        let own = header.tag == self.local_tag;
        let reflected = self.peer_tag != 0 && header.tag == self.peer_tag;
        match first {
            //= RFC 9260 (3.3.2): without a tag of its own it is discarded silently.
            Chunk::Init(init) => header.tag == 0 && init.tag != 0,
            Chunk::Abort { reflected: true, .. } | Chunk::ShutdownComplete { reflected: true } => reflected,
            // The cookie says which tag belongs to it.
            Chunk::CookieEcho(_) => true,
            _ => own,
        }
    }

    /// A chunk other than user data. False: nothing behind it in the packet counts.
    fn chunk_arrives(&mut self, cx: &mut Cx, from: u8, header: &Header, chunk: Chunk) -> bool {
        match chunk {
            Chunk::Data(_) => {}
            Chunk::Init(init) => {
                self.init_arrives(cx, from, &init);
                return false;
            }
            Chunk::InitAck(ack) => {
                self.init_ack_arrives(cx, &ack);
                return false;
            }
            Chunk::CookieEcho(octets) => return self.cookie_arrives(cx, from, header, &octets),
            Chunk::CookieAck => self.cookie_ack_arrives(cx),
            Chunk::Sack(sack) => self.sack_arrives(cx, &sack, true),
            Chunk::Heartbeat(info) => {
                if self.state.has_peer() {
                    self.answer(from, Chunk::HeartbeatAck(info));
                }
            }
            Chunk::HeartbeatAck(info) => self.heartbeat_acknowledged(cx, from, &info),
            Chunk::Abort { .. } => {
                let reason = match self.state {
                    State::CookieWait | State::CookieEchoed => CloseReason::Refused,
                    _ => CloseReason::Reset,
                };
                self.control.clear();
                self.strays.clear();
                self.close(reason);
                return false;
            }
            Chunk::Error(causes) => {
                if causes.iter().any(|c| matches!(c, Cause::StaleCookie(_))) {
                    self.stale_cookie(cx);
                }
            }
            Chunk::Shutdown(cumulative) => self.shutdown_arrives(cx, from, cumulative),
            Chunk::ShutdownAck => self.shutdown_ack_arrives(from),
            Chunk::ShutdownComplete { .. } => {
                if self.state == State::ShutdownAckSent {
                    self.control.clear();
                    self.close(CloseReason::Finished);
                }
            }
            Chunk::Ecne(tsn) => self.ecne_arrives(cx, from, tsn),
            //= RFC 4960 (appendix A): it names the TSN of the ECNE that was heard; of a later mark it knows nothing.
            Chunk::Cwr(tsn) => self.ecne = self.ecne.filter(|own| tsn.wrapping_sub(*own).cast_signed() < 0),
            Chunk::ForwardTsn(forward) => {
                if self.abilities.forward_tsn
                    && forward.interleaved == self.abilities.interleaving
                    && self.state.takes_peer_data()
                {
                    self.inbound.forward(&forward);
                    self.sack_due = SackDue::Now;
                }
            }
            Chunk::ReConfig(parameters) => self.reconfiguration_arrives(cx, from, parameters),
            Chunk::Pad(_) => {}
            Chunk::Unknown(kind, flags, value) => {
                //= RFC 9260 (3.2): the two highest bits say what is to be done.
                if kind & 0x40 != 0 {
                    let mut whole = Vec::new();
                    Chunk::Unknown(kind, flags, value).append_to(&mut whole);
                    self.answer(from, Chunk::Error(vec![Cause::UnrecognizedChunk(whole.into())]));
                }
                return kind & 0x80 != 0;
            }
        }
        true
    }

    /// Queues an answer, unless there are many already: floods get no more answers than packets leave. Nor is there one to
    /// what leaves no room for it: it would hold back all behind it.
    pub(super) fn answer(&mut self, path: u8, chunk: Chunk) {
        let fits = chunk.padded_len() <= self.paths[usize::from(path)].room();
        if fits && self.control.len() < 16 {
            self.control.push_back((path, chunk));
        }
    }

    fn data_arrives(&mut self, cx: &mut Cx, from: u8, data: Data) {
        if !self.state.takes_peer_data() {
            return;
        }
        if data.body.is_empty() {
            //= RFC 9260 (6.2): no user data ends the association.
            self.abort(CloseReason::Aborted, Some(Cause::NoUserData(data.tsn)));
            return;
        }
        if data.interleaved != self.abilities.interleaving {
            //= RFC 8260 (2.2.2): the wrong kind of chunk ends the association.
            self.abort(CloseReason::Aborted, Some(Cause::ProtocolViolation(Bytes::new())));
            return;
        }
        self.last_from = from;
        if data.immediate {
            self.sack_due = SackDue::Now;
        }
        let (stream, had_gaps) = (data.stream, self.inbound.has_gaps());
        let before = self.inbound.delivered;
        let taken = self.inbound.take(data);
        match taken {
            Taken::New => {
                if self.facts.first_byte.is_none() {
                    self.facts.first_byte = Some(cx.now);
                    //= RFC 9260 (5.1, 6): the first data is acknowledged at once.
                    self.sack_due = SackDue::Now;
                }
            }
            Taken::NoStream => {
                self.sack_due = SackDue::Now;
                self.answer(from, Chunk::Error(vec![Cause::InvalidStream(stream)]));
            }
            Taken::Duplicate | Taken::Dropped => self.sack_due = SackDue::Now,
            Taken::Contradiction => {
                self.abort(CloseReason::Aborted, Some(Cause::ProtocolViolation(Bytes::new())));
                return;
            }
        }
        if had_gaps || self.inbound.has_gaps() {
            //= RFC 9260 (6.7): at once while something is missing.
            self.sack_due = SackDue::Now;
        }
        let is_full = self.inbound.window() == 0;
        let is_stuck = self.inbound.is_read() && self.inbound.delivered == before;
        //= RFC 9260 (6.9): without room for the rest of a message, what is there of it is handed over.
        if is_stuck && (is_full || taken == Taken::Dropped) {
            let is_delivered = self.inbound.deliver_part();
            //= RFC 9260 (6.2, 6.9): what is missing is sent again, and taken beyond the window.
            if is_full && !is_delivered && !self.inbound.has_gaps() {
                // The buffer is full of what cannot become a message soon.
                self.abort(CloseReason::Aborted, Some(Cause::OutOfResource));
            }
        }
    }

    /// A packet with data was processed: every second one is acknowledged at once (6.2).
    fn packet_with_data(&mut self, cx: &mut Cx) {
        self.packets_unacknowledged = self.packets_unacknowledged.saturating_add(1);
        if self.state == State::ShutdownSent {
            //= RFC 9260 (9.2): SHUTDOWN again, and a SACK if something is missing.
            self.send_shutdown(cx, self.last_from);
            if self.inbound.sack_entries() == 0 {
                self.sack_due = SackDue::No;
                return;
            }
        }
        let delay = self.shared.config.sack_delay;
        if self.packets_unacknowledged >= self.shared.config.sack_packets || delay == Duration::ZERO {
            self.sack_due = SackDue::Now;
        } else if self.sack_due == SackDue::No {
            self.sack_due = SackDue::Later;
            self.sack_timer.arm_after(cx.now, delay);
        }
    }

    /// An acknowledgement; `reports`: it says what has arrived beyond the cumulative TSN.
    pub(super) fn sack_arrives(&mut self, cx: &mut Cx, sack: &Sack, reports: bool) {
        if !self.state.takes_sacks() {
            return;
        }
        for path in &mut self.paths {
            (path.acked, path.earliest_acked) = (0, false);
        }
        let before: [u64; 8] = std::array::from_fn(|n| self.paths.get(n).map_or(0, |p| p.flight));
        let config = &self.shared.config;
        // Windows grow by what this SACK acknowledges before its losses are met (7.2.4): growth is worked out first.
        let windows: [(u64, u64); 8] =
            std::array::from_fn(|n| self.paths.get(n).map_or((0, 0), |p| (p.cwnd, p.ssthresh)));
        let acked = self.flight.sack(cx, sack, reports, config, &mut self.paths);
        if acked.is_absurd {
            //= RFC 9260 (6.2.1, D ii): what was never sent cannot be acknowledged.
            self.abort(CloseReason::Aborted, Some(Cause::ProtocolViolation(Bytes::new())));
            return;
        }
        if acked.is_old {
            return;
        }
        let mut progress = false;
        for (n, path) in self.paths.iter_mut().enumerate() {
            let was_recovering = path.recovery.is_some();
            if path.recovery.is_some_and(|exit| self.flight.lowest() > exit) {
                path.recovery = None;
            }
            if path.acked > 0 {
                progress = true;
                path.errors = 0;
                path.active = true;
                let reduced = (path.cwnd, path.ssthresh) != windows[n];
                if (acked.advanced || !config.growth_by_cumulative) && !reduced && !was_recovering {
                    path.grow(path.acked, before[n], path.flight == 0);
                }
            }
            //= RFC 9260 (6.3.2, R2, R3).
            if path.flight == 0 && !self.flight.waits_for_forward() {
                path.t3.stop();
            } else if path.flight > 0 && (path.earliest_acked || !path.t3.is_armed()) {
                path.t3.arm_after(cx.now, path.rto);
            }
        }
        //= RFC 9260 (6.1, A): a peer that answers with a closed window is alive.
        let is_closed = self.flight.is_probing() || (sack.window == 0 && !self.flight.is_empty());
        if progress || acked.advanced || is_closed {
            self.errors = 0;
            for path in &mut self.paths {
                path.errors = if is_closed || sack.window == 0 { 0 } else { path.errors };
            }
        }
        self.release(acked.released);
        for n in 0..self.paths.len() {
            if self.paths[n].acked > 0 || acked.lost {
                self.record(cx, n);
            }
        }
    }

    /// The peer saw a mark (RFC 4960, appendix A).
    fn ecne_arrives(&mut self, cx: &mut Cx, from: u8, tsn: u32) {
        if !self.abilities.ecn || !self.state.takes_sacks() {
            return;
        }
        let marked = super::serial::unwrap(self.flight.next(), tsn);
        if marked >= self.ecn_reduced_to {
            //= RFC 4960 (appendix A): once for each window of data.
            self.ecn_reduced_to = self.flight.next();
            // What is acknowledged already is forgotten; data is acknowledged over the path that it came by.
            let number = usize::from(self.flight.path_of(marked).unwrap_or(from));
            self.paths[number].lost(&self.shared.config);
            self.record(cx, number);
        }
        self.cwr = Some(tsn);
    }
}

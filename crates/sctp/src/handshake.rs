//! Opening (RFC 9260, 5.1) and what comes in between: collisions, restarts, late cookies (5.2).

use std::net::IpAddr;

use airloom_base::service::Path;
use airloom_base::{CloseReason, Cx, TransportEvent};
use bytes::Bytes;

use super::association::{Association, Shared};
use super::chunk::{Cause, Chunk, Init, Parameter};
use super::cookie::{self, Abilities, Cookie, Refusal};
use super::inbound::Inbound;
use super::requests::Reconfiguration;
use super::state::State;
use super::wire::Header;

/// INIT or INIT ACK of ours. Without addresses, the one it is sent from is the only one (5.1.2, B).
fn introduction(shared: &Shared, tag: u32, tsn: u32) -> Init {
    let config = &shared.config;
    let mut parameters = Abilities::parameters(config);
    parameters.extend(shared.addresses.iter().copied().map(address));
    Init {
        tag,
        window: config.receive_buffer.0.min(u64::from(u32::MAX)) as u32,
        outbound_streams: config.outbound_streams,
        inbound_streams: config.inbound_streams,
        initial_tsn: tsn,
        parameters,
    }
}

pub(super) fn address(address: IpAddr) -> Parameter {
    match address {
        IpAddr::V4(address) => Parameter::Ipv4(address),
        IpAddr::V6(address) => Parameter::Ipv6(address),
    }
}

/// The answer to an INIT: INIT ACK with a cookie, or ABORT.
pub(super) fn answer(
    shared: &Shared,
    now: airloom_base::Instant,
    path: &Path,
    ports: (u16, u16),
    init: &Init,
    drawn: (u32, u32),
    tie_tags: (u32, u32),
) -> Chunk {
    if let Some(cause) = cookie::flaw(init) {
        return Chunk::Abort { reflected: false, causes: vec![cause] };
    }
    let cookie = Cookie::answer(init, &shared.config, drawn, tie_tags, now);
    let mut ack = introduction(shared, drawn.0, drawn.1);
    ack.outbound_streams = cookie.outbound_streams;
    ack.parameters.push(Parameter::StateCookie(cookie.seal(shared.secret, path, ports)));
    ack.parameters.extend(cookie::unrecognized(init));
    Chunk::InitAck(ack)
}

impl Association {
    pub(super) fn open(&mut self, cx: &mut Cx) {
        if self.state != State::Closed || self.closing.is_some() {
            return;
        }
        self.state = State::CookieWait;
        self.send_init(cx);
    }

    fn send_init(&mut self, cx: &mut Cx) {
        let mut init = introduction(&self.shared, self.local_tag, self.local_tsn);
        if self.shared.config.address_types {
            //= RFC 9260 (5.1.2): the families that we can be reached by.
            let is_v6 = self.paths.iter().any(|p| p.address.local.is_ipv6());
            init.parameters.push(Parameter::SupportedAddressTypes(vec![if is_v6 { 6 } else { 5 }]));
        }
        if self.paths.len() > 1 {
            init.parameters.extend(self.paths.iter().map(|path| address(path.address.local)));
        }
        self.control.clear();
        self.control.push_back((self.primary, Chunk::Init(init)));
        self.arm_t1(cx);
    }

    fn arm_t1(&mut self, cx: &mut Cx) {
        let rto = self.paths[usize::from(self.primary)].rto;
        self.t1.arm_after(cx.now, rto);
    }

    /// T1-init or T1-cookie expired (5.1).
    pub(super) fn t1_expired(&mut self, cx: &mut Cx) {
        self.facts.rto_count += 1;
        let config = &self.shared.config;
        self.paths[usize::from(self.primary)].back_off(config);
        self.open_again(cx);
    }

    fn open_again(&mut self, cx: &mut Cx) {
        self.init_errors += 1;
        if self.init_errors > self.shared.config.max_init_retransmits {
            self.control.clear();
            self.close(CloseReason::TimedOut);
            return;
        }
        match self.state {
            State::CookieWait => {
                self.flight.resent += 1;
                self.send_init(cx);
            }
            // What is sent again of it is counted when it leaves: user data may go along.
            State::CookieEchoed => {
                self.data_goes_again();
                self.send_cookie(cx);
            }
            _ => {}
        }
    }

    /// What went with the COOKIE ECHO goes with the next one: one timeout for both, not one of T1 and one of T3-rtx.
    fn data_goes_again(&mut self) {
        let number = usize::from(self.primary);
        let path = &mut self.paths[number];
        if path.flight > 0 {
            path.t3.stop();
            path.timed_out(&self.shared.config);
            self.flight.timed_out(self.primary, &mut self.paths);
        }
    }

    fn send_cookie(&mut self, cx: &mut Cx) {
        let Some(cookie) = self.cookie.clone() else { return };
        self.control.retain(|(_, c)| !matches!(c, Chunk::CookieEcho(_)));
        self.control.push_front((self.primary, Chunk::CookieEcho(cookie)));
        self.arm_t1(cx);
    }

    /// INIT for an association that there is (5.2.1, 5.2.2).
    pub(super) fn init_arrives(&mut self, cx: &mut Cx, from: u8, init: &Init) {
        let (drawn, tie_tags) = match self.state {
            State::ShutdownAckSent => {
                //= RFC 9260 (9.2): SHUTDOWN ACK again.
                self.control.push_back((from, Chunk::ShutdownAck));
                return;
            }
            //= RFC 9260 (5.2.1): both opened at once: the answer has our own tag and TSN.
            State::CookieWait => ((self.local_tag, self.local_tsn), (0, 0)),
            State::CookieEchoed => ((self.local_tag, self.local_tsn), (self.local_tag, self.peer_tag)),
            //= RFC 9260 (5.2.2): a new tag, and the old ones in the cookie; none for who comes from new addresses.
            _ => {
                if let Some(cause) = self.new_addresses(init) {
                    let refusal = Chunk::Abort { reflected: false, causes: vec![cause] };
                    return self.stray(from, init.tag, refusal);
                }
                self.nonces += 1;
                let drawn = self.shared.secret.nonce(self.local_tag, self.nonces);
                (((drawn as u32).max(1), (drawn >> 32) as u32), (self.local_tag, self.peer_tag))
            }
        };
        let path = self.paths[usize::from(from)].address;
        let chunk = answer(&self.shared, cx.now, &path, self.ports, init, drawn, tie_tags);
        // INIT ACK carries the tag of the INIT, whatever the association's is.
        self.stray(from, init.tag, chunk);
    }

    /// Queues a chunk whose packet has another tag than the association's.
    pub(super) fn stray(&mut self, from: u8, tag: u32, chunk: Chunk) {
        // A flood of INITs is answered one by one and never piles up.
        if self.strays.len() < 4 {
            self.strays.push_back((from, tag, chunk));
        }
    }

    pub(super) fn init_ack_arrives(&mut self, cx: &mut Cx, ack: &Init) {
        if self.state != State::CookieWait {
            //= RFC 9260 (5.2.3): discarded.
            return;
        }
        if let Some(cause) = cookie::flaw(ack) {
            self.peer_tag = ack.tag;
            self.abort(CloseReason::Aborted, Some(cause));
            return;
        }
        let cookie = ack.parameters.iter().find_map(|p| match p {
            Parameter::StateCookie(cookie) => Some(cookie.clone()),
            _ => None,
        });
        self.peer_tag = ack.tag;
        let Some(cookie) = cookie else {
            self.abort(CloseReason::Aborted, Some(Cause::MissingParameter(vec![7])));
            return;
        };
        let config = &self.shared.config;
        self.flight.begin(ack.window, &mut self.paths);
        let inbound = config.inbound_streams.min(ack.outbound_streams);
        self.inbound = Inbound::new(ack.initial_tsn, inbound, config.receive_buffer.0);
        self.peer_addresses = cookie::addresses(ack, config);
        self.abilities = Abilities::of(ack).common(config);
        let dropped = self.out.limit(config.outbound_streams.min(ack.inbound_streams));
        self.release(dropped);
        let reports: Vec<u8> = cookie::unrecognized(ack)
            .into_iter()
            .filter_map(|p| match p {
                Parameter::Unrecognized(octets) => Some(octets),
                _ => None,
            })
            .flat_map(|octets| {
                let mut octets = octets.to_vec();
                octets.resize(super::octets::padded(octets.len()), 0);
                octets
            })
            .collect();
        self.cookie = Some(cookie);
        self.init_errors = 0;
        self.state = State::CookieEchoed;
        self.control.clear();
        self.send_cookie(cx);
        if !reports.is_empty() {
            let cause = Cause::UnrecognizedParameters(Bytes::from(reports));
            self.control.push_back((self.primary, Chunk::Error(vec![cause])));
        }
    }

    /// The association is there, for both ends.
    pub(super) fn established(&mut self, cx: &mut Cx) {
        self.facts.established = Some(cx.now);
        self.event(TransportEvent::Opened);
        self.enter_established(cx);
        if self.wants_shutdown {
            self.state = State::ShutdownPending;
        }
    }

    /// Data may flow, as between ends that have just met.
    pub(super) fn enter_established(&mut self, cx: &mut Cx) {
        self.t1.stop();
        self.cookie = None;
        self.errors = 0;
        self.init_errors = 0;
        self.state = State::Established;
        // No data of the peer's has been taken yet.
        let peers = (self.inbound.cumulative + 1) as u32;
        self.reconfiguration = Reconfiguration::new(self.local_tsn, peers);
        for number in 0..self.paths.len() {
            self.arm_heartbeat(cx.now, number);
        }
    }

    /// COOKIE ECHO (5.1, D; 5.2.4). False: nothing behind it in the packet counts.
    pub(super) fn cookie_arrives(&mut self, cx: &mut Cx, from: u8, header: &Header, octets: &[u8]) -> bool {
        let path = self.paths[usize::from(from)].address;
        let tags = (self.local_tag, self.peer_tag);
        let known = |c: &Cookie| (c.local_tag, c.peer_tag) == tags;
        let opened = Cookie::open(octets, self.shared.secret, &path, self.ports, cx.now, known);
        let cookie = match opened {
            Ok(cookie) => cookie,
            Err(Refusal::Forged) => return false,
            Err(Refusal::Stale(by, peer)) => {
                //= RFC 9260 (8.5): under the tag of the peer, which is a new one if it began anew.
                self.stray(from, peer, stale(by));
                return false;
            }
        };
        if header.tag != cookie.local_tag {
            return false;
        }
        if self.state == State::Closed && self.closing.is_none() {
            // The one the association was made from.
            self.is_unsure = true;
            self.established(cx);
            self.control.push_front((from, Chunk::CookieAck));
            return true;
        }
        let own = cookie.local_tag == self.local_tag;
        let peer = cookie.peer_tag == self.peer_tag;
        //= RFC 9260 (5.2.4): table 12.
        match (own, peer) {
            // D: our COOKIE ACK was lost, or the cookies crossed.
            (true, true) => {
                if self.state == State::CookieEchoed {
                    self.established(cx);
                }
                self.control.push_front((from, Chunk::CookieAck));
                true
            }
            // B: both opened at once.
            (true, false) => {
                if !matches!(self.state, State::CookieWait | State::CookieEchoed) {
                    return false;
                }
                self.peer_tag = cookie.peer_tag;
                self.flight.begin(cookie.peer_window, &mut self.paths);
                self.inbound = Inbound::new(
                    cookie.peer_tsn,
                    cookie.inbound_streams,
                    self.shared.config.receive_buffer.0,
                );
                self.abilities = cookie.abilities;
                self.peer_addresses = cookie.addresses;
                let dropped = self.out.limit(cookie.outbound_streams);
                self.release(dropped);
                self.control.clear();
                self.established(cx);
                self.control.push_front((from, Chunk::CookieAck));
                true
            }
            // A: the peer began anew.
            (false, false) if cookie.tie_tags == tags && tags.1 != 0 => self.peer_restarted(cx, from, cookie),
            // C: a late one, or one that does not fit.
            _ => false,
        }
    }

    pub(super) fn cookie_ack_arrives(&mut self, cx: &mut Cx) {
        if self.state == State::CookieEchoed {
            self.established(cx);
        }
    }

    /// The peer found our cookie too old (5.2.6): from the beginning.
    pub(super) fn stale_cookie(&mut self, cx: &mut Cx) {
        if self.state == State::CookieEchoed {
            self.cookie = None;
            self.state = State::CookieWait;
            // Each INIT ACK begins the count of attempts anew: of such cookies there are no more, either.
            self.stale_cookies += 1;
            self.init_errors = self.init_errors.max(self.stale_cookies - 1);
            self.open_again(cx);
        }
    }
}

/// ERROR about a cookie that is too old.
pub(super) fn stale(by: airloom_base::Duration) -> Chunk {
    Chunk::Error(vec![Cause::StaleCookie(by.as_micros().min(u64::from(u32::MAX)) as u32)])
}

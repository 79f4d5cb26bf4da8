//! The bundle: who joins, who leaves, and what is sent when.

use std::collections::VecDeque;

use airloom_base::record::Event;
use airloom_base::{
    Bearer, BearerEvent, Change, ConfigError, Cx, Direction, Duration, Instant, LinkState, Packet, Parts,
    Station, config,
};
use airloom_wire::checksum;
use serde_json::Value;

use super::config::MlpppConfig;
use super::header::Header;
use super::member::{Carrier, Member};
use super::pieces::{Cutter, frame_of, join};
use super::plan::{Candidate, Part};
use super::records::{self, Kind};
use super::way::{BundleDirection, Sdu};
use crate::ppp::automaton::Automaton;
use crate::ppp::frame::{self, Compression, protocol};
use crate::ppp::ipcp::Ipcp;
use crate::ppp::lcp::LEAST_MRRU;
use crate::timed::Timed;

/// While members are full it is looked so often whether they are free again: links do not tell.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// Octets of the longest header of a fragment.
const LONGEST_HEADER: usize = frame::LONGEST + 4;

/// See the module.
#[derive(getset::CopyGetters)]
pub struct Mlppp {
    pub(super) config: MlpppConfig,
    pub(super) members: Vec<Member>,
    pub(super) ways: [BundleDirection; 2],
    /// By the direction in which the end sends.
    ipcp: [Option<Automaton<Ipcp>>; 2],
    /// Both ends carry packets, and this was told.
    #[getset(get_copy = "pub(super)")]
    is_up: bool,
    look_again: Instant,
    pub(super) deadline: Instant,
    pub(super) deliveries: VecDeque<(Direction, Station, Packet)>,
    pub(super) events: VecDeque<BearerEvent>,
    pub(super) links_lost: u64,
    octets: Vec<u8>,
    candidates: Vec<Candidate>,
    parts: Vec<Part>,
}

impl Mlppp {
    /// From its table in the scenario.
    pub fn build(value: &Value, parts: &mut Parts) -> Result<Box<dyn Bearer>, ConfigError> {
        let config: MlpppConfig = config::read(value)?;
        Ok(Box::new(Mlppp::new(config, parts)?))
    }

    /// From its configuration.
    ///
    /// # Errors
    /// The key that makes no sense.
    pub fn new(mut config: MlpppConfig, parts: &mut Parts) -> Result<Mlppp, ConfigError> {
        if config.mrru.0 >= u64::from(LEAST_MRRU) {
            config.mrru.0 = config.mrru.0.max(parts.mtu.into());
        }
        config.check()?;
        if parts.stations > 1 {
            let message = "a bundle has two ends, not a cell of stations".into();
            return Err(ConfigError { path: Vec::new(), message });
        }
        let count = config.members.len() * usize::from(config.copies);
        let members = (0..count as u16).map(|number| Member::new(&config, number, parts));
        let members: Vec<Member> = members.collect::<Result<_, _>>()?;
        let mut ways =
            Direction::BOTH.map(|direction| BundleDirection::new(&config, members.len(), direction));
        for way in &mut ways {
            members.iter().for_each(|member| way.receiver.join(member.number));
        }
        let [mut one, mut other] = [(); 2].map(|()| Automaton::new(Ipcp, Instant::ZERO));
        crate::ppp::automaton::agree(&mut one, &mut other, Instant::ZERO);
        Ok(Mlppp {
            config,
            members,
            ways,
            ipcp: [Some(one), Some(other)],
            is_up: true,
            look_again: Instant::FAR_FUTURE,
            deadline: Instant::FAR_FUTURE,
            deliveries: VecDeque::new(),
            events: VecDeque::new(),
            links_lost: 0,
            octets: Vec::new(),
            candidates: Vec::new(),
            parts: Vec::new(),
        })
    }

    /// Says and sends what there is to, and works out when to look again.
    pub(super) fn settle(&mut self, cx: &mut Cx) {
        self.negotiate(cx);
        self.look_again = Instant::FAR_FUTURE;
        for direction in Direction::BOTH {
            self.pump(cx, direction);
        }
        self.deadline = self.next_timeout();
    }

    /// What a member has to tell and to hand over.
    pub(super) fn take(&mut self, cx: &mut Cx, place: usize) {
        while let Some(event) = self.members[place].link.poll_event() {
            match event {
                BearerEvent::Up(_) => self.come(cx, place),
                BearerEvent::Down(..) => {
                    let member = &mut self.members[place];
                    (member.will_tell, member.is_wanted) = (true, false);
                    self.lose(cx.now, place);
                    self.give_up_queues_of_nobody(cx);
                }
            }
        }
        while let Some((direction, _, frame)) = self.members[place].link.poll_delivery() {
            self.receive(cx, place, direction, frame);
        }
    }

    // ------------------------------------------------------------------------------------------ members

    /// The line to the other end is there: both ends begin to negotiate.
    pub(super) fn come(&mut self, cx: &mut Cx, place: usize) {
        self.leave(cx, place);
        let bundle = Direction::BOTH.map(|direction| {
            let joined = |member: &&Member| member.has_joined[direction as usize];
            self.members.iter().find(joined).and_then(|member| member.agreed(direction)).cloned()
        });
        let member = &mut self.members[place];
        (member.carrier, member.is_wanted, member.will_tell) = (Carrier::There, true, false);
        member.negotiate(&self.config, bundle, cx.now);
    }

    /// The line is gone; the ends will know soon.
    pub(super) fn lose(&mut self, now: Instant, place: usize) {
        let member = &mut self.members[place];
        if member.carrier == Carrier::There {
            self.links_lost += 1;
            member.carrier = Carrier::LostUntil(now + self.config.detect);
        }
    }

    /// Both ends know that a member is gone.
    fn leave(&mut self, cx: &mut Cx, place: usize) {
        let member = &mut self.members[place];
        (member.carrier, member.lcp, member.has_joined) = (Carrier::None, [None, None], [false; 2]);
        for direction in Direction::BOTH {
            self.ways[direction as usize].receiver.leave(cx.now, place as u16);
            self.hand_on(cx, direction);
        }
        if !self.members.iter().any(|member| member.has_joined.contains(&true)) {
            self.close(cx);
        }
    }

    /// The last member left: the bundle is gone.
    fn close(&mut self, cx: &mut Cx) {
        self.ipcp = [None, None];
        self.ways.iter_mut().for_each(|way| way.reset(&self.config));
        if std::mem::take(&mut self.is_up) {
            self.events.push_back(BearerEvent::Down(Station(0), "no member left"));
        }
        self.give_up_queues(cx);
    }

    /// May there be members again without anybody's doing?
    pub(super) fn has_hope(&self) -> bool {
        self.members.iter().any(|member| member.is_wanted)
    }

    /// Packets wait no longer if there is no member left that they could wait for.
    pub(super) fn give_up_queues_of_nobody(&mut self, cx: &mut Cx) {
        if !self.members.iter().any(|member| member.has_joined.contains(&true)) {
            self.give_up_queues(cx);
        }
    }

    /// Packets that wait for nothing are dropped.
    fn give_up_queues(&mut self, cx: &mut Cx) {
        if self.has_hope() {
            return;
        }
        for direction in Direction::BOTH {
            while let Some(sdu) = self.ways[direction as usize].pop() {
                self.ways[direction as usize].traffic.lost += 1;
                self.drop(cx, direction, &sdu.packet, "link down");
            }
        }
    }

    pub(super) fn drop(&self, cx: &mut Cx, direction: Direction, packet: &Packet, reason: &'static str) {
        if let Some(first) = self.members.first() {
            let point = first.points[direction as usize].tx;
            records::dropped(cx, point, direction, packet, reason);
        }
    }

    // -------------------------------------------------------------------------------------- negotiation

    /// Sends what the ends have to say to each other, and follows what they agreed on.
    fn negotiate(&mut self, cx: &mut Cx) {
        for place in 0..self.members.len() {
            for direction in Direction::BOTH {
                let Some(lcp) = &mut self.members[place].lcp[direction as usize] else { continue };
                let (mut given_up, is_opened) = (lcp.given_up().is_some(), lcp.is_opened());
                while let Some(octets) =
                    self.members[place].lcp[direction as usize].as_mut().and_then(Automaton::poll_transmit)
                {
                    self.send_control(cx, place, direction, protocol::LCP, octets);
                }
                given_up |= is_opened && !self.members[place].is_bundled(direction);
                if given_up {
                    self.hang_up(cx, place);
                    break;
                }
                self.follow(cx, place, direction);
            }
        }
        self.negotiate_ip(cx);
    }

    /// An end begins, or ends, to use a member, if it agreed on that with the other one.
    fn follow(&mut self, cx: &mut Cx, place: usize, direction: Direction) {
        let member = &mut self.members[place];
        let is_in = member.is_bundled(direction);
        if std::mem::replace(&mut member.has_joined[direction as usize], is_in) == is_in {
            return;
        }
        let receiver = &mut self.ways[direction.reverse() as usize].receiver;
        if !is_in {
            receiver.leave(cx.now, place as u16);
            return self.hand_on(cx, direction.reverse());
        }
        receiver.join(place as u16);
        self.ipcp[direction as usize].get_or_insert_with(|| Automaton::new(Ipcp, cx.now));
    }

    /// The ends did not come to an agreement: the link is closed.
    fn hang_up(&mut self, cx: &mut Cx, place: usize) {
        self.members[place].is_wanted = false;
        // A link that cannot be closed stays open without a use.
        let _ = self.members[place].link.apply(cx, &[], &Change::State(LinkState::Down));
        self.take(cx, place);
        self.leave(cx, place);
        self.give_up_queues(cx);
    }

    fn negotiate_ip(&mut self, cx: &mut Cx) {
        for direction in Direction::BOTH {
            while let Some(octets) = self.ipcp[direction as usize].as_mut().and_then(Automaton::poll_transmit)
            {
                // Over the bundle like any packet, in one piece.
                let mut packet = frame_of(&[], octets);
                self.free(cx.now, direction, u64::MAX);
                let Some(chosen) = self.candidates.iter().min_by_key(|c| c.backlog) else { continue };
                let member = chosen.member;
                let mut cutter = Cutter::new(&protocol::IPCP.to_be_bytes(), &mut packet);
                let len = cutter.len();
                self.send_fragment(cx, direction, member, (true, true), &mut cutter, len);
            }
        }
        if !self.is_up && self.ipcp.iter().all(|end| end.as_ref().is_some_and(Automaton::is_opened)) {
            self.is_up = true;
            self.events.push_back(BearerEvent::Up(Station(0)));
        }
    }

    fn send_control(
        &mut self,
        cx: &mut Cx,
        place: usize,
        direction: Direction,
        number: u16,
        octets: Vec<u8>,
    ) {
        let mut header = [0; frame::LONGEST];
        let len = frame::emit(&mut header, number, Compression::default());
        let frame = frame_of(&header[..len], octets);
        let member = &mut self.members[place];
        let point = member.points[direction as usize].tx;
        records::seen(cx, point, Event::Transmit, direction, &frame, Kind::Lcp);
        member.link.send(cx, direction, Station(0), frame);
    }

    // ------------------------------------------------------------------------------------------ sending

    /// Members that this end uses and in which no more than so much waits (by their weight); how many it uses at all.
    fn free(&mut self, now: Instant, direction: Direction, ahead: u64) -> usize {
        self.candidates.clear();
        let most = self.members.iter().map(|member| member.weight).max().unwrap_or(1);
        let mut used = 0;
        for member in self.members.iter().filter(|member| member.has_joined[direction as usize]) {
            used += 1;
            let backlog = member.link.backlog(now, direction, Station(0)).octets;
            if u128::from(backlog) * u128::from(most) <= u128::from(ahead) * u128::from(member.weight) {
                self.candidates.push(Candidate { member: member.number, backlog, weight: member.weight });
            }
        }
        used
    }

    /// Sends what waits, as far as members are free.
    fn pump(&mut self, cx: &mut Cx, direction: Direction) {
        let d = direction as usize;
        if self.ways[d].queue.is_empty() || !self.ipcp[d].as_ref().is_some_and(Automaton::is_opened) {
            return;
        }
        while !self.ways[d].queue.is_empty() {
            let used = self.free(cx.now, direction, self.config.ahead.0);
            let least = if self.ways[d].planner.is_whole() { 1 } else { used.div_ceil(2).max(1) };
            if self.candidates.len() < least {
                if used > 0 {
                    self.look_again = cx.now + LOOK_AGAIN;
                }
                break;
            }
            let Some(sdu) = self.ways[d].pop() else { break };
            self.send_packet(cx, direction, sdu);
        }
        if self.config.null_fragments && self.ways[d].queue.is_empty() {
            self.send_null_fragments(cx, direction);
        }
    }

    fn send_packet(&mut self, cx: &mut Cx, direction: Direction, mut sdu: Sdu) {
        self.finish(&mut sdu.packet);
        let version = sdu.packet.head().first().map(|octet| octet >> 4);
        let number = if version == Some(6) { protocol::IPV6 } else { protocol::IP };
        let mut cutter = Cutter::new(&number.to_be_bytes(), &mut sdu.packet);
        let mut parts = std::mem::take(&mut self.parts);
        let way = &mut self.ways[direction as usize];
        way.planner.split(cutter.len(), &mut self.candidates, &mut parts);
        way.depart(sdu.since);
        for (n, (member, octets)) in parts.iter().enumerate() {
            let is_end = n + 1 == parts.len();
            self.send_fragment(cx, direction, *member, (n == 0, is_end), &mut cutter, *octets);
        }
        self.parts = parts;
    }

    /// Checksums are written out where a packet is cut: its pieces do not tell what belongs into them.
    fn finish(&mut self, packet: &mut Packet) {
        self.octets.clear();
        packet.append_to(&mut self.octets);
        if checksum::finish(&mut self.octets).is_ok() {
            let head = packet.head_mut();
            head.copy_from_slice(&self.octets[..head.len()]);
        }
    }

    fn send_fragment(
        &mut self,
        cx: &mut Cx,
        direction: Direction,
        member: u16,
        (begin, end): (bool, bool),
        cutter: &mut Cutter,
        octets: usize,
    ) {
        let (way, format) = (&mut self.ways[direction as usize], self.config.format());
        let member = &mut self.members[usize::from(member)];
        let compression =
            member.agreed(direction).map_or(Compression::default(), |theirs| theirs.compression);
        let (mut front, mut header) = ([0; frame::LONGEST], [0; LONGEST_HEADER]);
        let mut len = frame::emit(&mut front, protocol::MULTILINK, compression);
        header[..len].copy_from_slice(&front[..len]);
        let fragment = Header { begin, end, sequence: (way.next % format.numbers()) as u32 };
        header[len..len + 4].copy_from_slice(&fragment.emit(format));
        len += format.octets();

        let frame = cutter.cut(&header[..len], octets);
        let point = member.points[direction as usize].tx;
        let kind = Kind::Fragment(u64::from(fragment.sequence));
        records::seen(cx, point, Event::Transmit, direction, &frame, kind);
        way.carried[usize::from(member.number)] = way.next;
        way.next += 1;
        way.fragments += 1;
        member.link.send(cx, direction, Station(0), frame);
    }

    /// One for each member that carried nothing of the last packet and falls idle.
    fn send_null_fragments(&mut self, cx: &mut Cx, direction: Direction) {
        let way = &self.ways[direction as usize];
        let last = way.next.saturating_sub(1);
        for place in 0..self.members.len() {
            let is_behind = self.ways[direction as usize].carried[place] < last;
            if self.members[place].has_joined[direction as usize] && is_behind {
                let mut nothing = Cutter::new(&[], &mut frame_of(&[], Vec::new()));
                self.send_fragment(cx, direction, place as u16, (true, true), &mut nothing, 0);
                self.ways[direction as usize].null_fragments += 1;
            }
        }
    }

    // ---------------------------------------------------------------------------------------- receiving

    /// A frame leaves a member.
    fn receive(&mut self, cx: &mut Cx, place: usize, direction: Direction, mut frame: Packet) {
        let mut front = [0; LONGEST_HEADER];
        let len = frame.write(0, &mut front).min(front.len());
        let (d, point) = (direction as usize, self.members[place].points[direction as usize].rx);
        let Some((number, header_len)) = frame::parse(&front[..len]) else {
            self.ways[d].unreadable += 1;
            return;
        };
        let mut saw = |kind| {
            records::seen(cx, point, Event::Receive, direction, &frame, kind);
        };
        if number == protocol::LCP {
            saw(Kind::Lcp);
            self.octets.clear();
            frame.append_to(&mut self.octets);
            if let Some(lcp) = &mut self.members[place].lcp[direction.reverse() as usize] {
                lcp.handle(cx.now, &self.octets[header_len..]);
            }
            //= RFC 1661 (3.4): the link is open with the answer, and what stands directly behind it in the line is data.
            self.follow(cx, place, direction.reverse());
            return;
        }
        let header = Header::parse(&front[header_len..len], self.config.format());
        let whole = header_len + self.config.format().octets();
        let Some(header) = header.filter(|_| number == protocol::MULTILINK && frame.head().len() >= whole)
        else {
            saw(Kind::Other);
            self.ways[d].unreadable += 1;
            return;
        };
        saw(Kind::Fragment(u64::from(header.sequence)));
        let octets = (frame.wire_len() - whole) as u64;
        frame.strip(whole);
        self.ways[d].receiver.receive(cx.now, place as u16, header, octets, frame);
        self.hand_on(cx, direction);
    }

    /// Packets that became whole leave the bundle.
    fn hand_on(&mut self, cx: &mut Cx, direction: Direction) {
        let d = direction as usize;
        while let Some(whole) = self.ways[d].receiver.poll() {
            let mut packet = join(whole.pieces);
            if packet.wire_len() == 0 {
                continue; // a null fragment
            }
            match frame::protocol_field(packet.head()) {
                Some((protocol::IP | protocol::IPV6, len)) => {
                    packet.strip(len);
                    let way = &mut self.ways[d];
                    if let Some(took) = way.arrive(whole.first, cx.now) {
                        way.traffic.deliver(packet.wire_len() as u64, took);
                    }
                    self.deliveries.push_back((direction, Station(0), packet));
                }
                Some((protocol::IPCP, len)) => {
                    self.octets.clear();
                    packet.append_to(&mut self.octets);
                    if let Some(ipcp) = &mut self.ipcp[direction.reverse() as usize] {
                        ipcp.handle(cx.now, &self.octets[len..]);
                    }
                }
                _ => self.ways[d].unreadable += 1,
            }
        }
        self.ways[d].forget_given_up();
    }
}

impl Timed for Mlppp {
    fn next_timeout(&self) -> Instant {
        let members = self.members.iter().map(Member::next_timeout);
        let ipcp = self.ipcp.iter().flatten().filter_map(Automaton::poll_timeout);
        let receivers = self.ways.iter().filter_map(|way| way.receiver.poll_timeout());
        members.chain(ipcp).chain(receivers).fold(self.look_again, Instant::min)
    }

    fn step(&mut self, cx: &mut Cx) {
        for place in 0..self.members.len() {
            let member = &mut self.members[place];
            if member.link.poll_timeout().is_some_and(|at| at <= cx.now) {
                member.link.handle_timeout(cx);
                self.take(cx, place);
            }
            let member = &mut self.members[place];
            member.lcp.iter_mut().flatten().for_each(|lcp| lcp.handle_timeout(cx.now));
            if matches!(member.carrier, Carrier::LostUntil(at) if at <= cx.now) {
                self.leave(cx, place);
            }
        }
        self.ipcp.iter_mut().flatten().for_each(|ipcp| ipcp.handle_timeout(cx.now));
        for direction in Direction::BOTH {
            if self.ways[direction as usize].receiver.poll_timeout().is_some_and(|at| at <= cx.now) {
                self.ways[direction as usize].receiver.handle_timeout(cx.now);
                self.hand_on(cx, direction);
            }
        }
        self.settle(cx);
    }
}

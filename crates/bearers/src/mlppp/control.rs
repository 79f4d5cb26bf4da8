//! The bundle as a bearer: packets in and out, changes, the summary.
//!
//! It is no [`Cell`](crate::cell::Cell): it has two ends and no stations, and its parts are bearers of any kind, to which changes go down.

use airloom_base::{
    Backlog, Bearer, BearerEvent, Change, Condition, Cx, Direction, Grade, Instant, LinkState, Packet,
    Passed, Station, Summary, Unsupported,
};

use super::bundle::Mlppp;
use super::member::Carrier;
use crate::timed::Timed;

const ONE_MEMBER: Unsupported = Unsupported("a bundle has no rate or delay of its own: name a member");
const NO_MEMBER: Unsupported = Unsupported("the bundle has no such member; they are counted from 0");

impl Mlppp {
    fn change_state(&mut self, cx: &mut Cx, place: usize, state: LinkState) -> Result<(), Unsupported> {
        self.members[place].link.apply(cx, &[], &Change::State(state))?;
        self.members[place].is_wanted = state == LinkState::Up;
        self.take(cx, place);
        let member = &self.members[place];
        match state {
            LinkState::Down => {
                self.lose(cx.now, place);
                self.give_up_queues_of_nobody(cx);
            }
            // A link that told of its end will tell of its return.
            LinkState::Up if member.will_tell || member.carrier == Carrier::There => {}
            LinkState::Up => self.come(cx, place),
        }
        Ok(())
    }
}

impl Bearer for Mlppp {
    fn send(&mut self, cx: &mut Cx, dir: Direction, _station: Station, sdu: Packet) {
        self.catch_up_before(cx);
        let (limit, mrru) = (self.config.queue.get(dir), self.config.mrru.0);
        self.ways[dir as usize].traffic.sdus_in += 1;
        let len = sdu.wire_len() as u64;
        let is_joined = self.members.iter().any(|member| member.has_joined[dir as usize]);
        if !is_joined && !self.has_hope() {
            self.ways[dir as usize].traffic.lost += 1;
            self.drop(cx, dir, &sdu, "link down");
        } else if len > mrru {
            self.ways[dir as usize].traffic.lost += 1;
            self.drop(cx, dir, &sdu, "larger than the MRRU");
        } else if self.ways[dir as usize].refuses(limit, len) {
            self.ways[dir as usize].traffic.queue_drops += 1;
            self.drop(cx, dir, &sdu, "queue full");
        } else {
            self.ways[dir as usize].push(sdu, cx.now);
        }
        self.settle(cx);
    }

    fn poll_delivery(&mut self) -> Option<(Direction, Station, Packet)> {
        self.deliveries.pop_front()
    }

    fn tells_events(&self) -> bool {
        true
    }

    fn poll_event(&mut self) -> Option<BearerEvent> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (self.deadline != Instant::FAR_FUTURE).then_some(self.deadline)
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        self.catch_up(cx, cx.now);
        self.deadline = self.next_timeout();
    }

    fn close(&mut self, cx: &mut Cx) {
        self.members.iter_mut().for_each(|member| member.link.close(cx));
    }

    fn backlog(&self, now: Instant, dir: Direction, _station: Station) -> Backlog {
        let way = &self.ways[dir as usize];
        let members = self.members.iter().map(|member| member.link.backlog(now, dir, Station(0)));
        // The pieces of a packet wait in several members at once.
        members.fold(Backlog { sdus: way.queue.len() as u32, octets: way.queued }, |sum, member| Backlog {
            sdus: sum.sdus.max(way.queue.len() as u32 + member.sdus),
            octets: sum.octets + member.octets,
        })
    }

    fn apply(&mut self, cx: &mut Cx, part: &[u16], change: &Change) -> Result<(), Unsupported> {
        self.catch_up_before(cx);
        let done = match (part, change) {
            ([], Change::State(state)) => {
                (0..self.members.len()).try_for_each(|place| self.change_state(cx, place, *state))
            }
            ([], Change::Queue(direction, limit)) => {
                self.config.queue.set(*direction, *limit);
                Ok(())
            }
            ([], Change::Loss(..)) => {
                self.members.iter_mut().try_for_each(|member| member.link.apply(cx, &[], change))
            }
            ([], _) => Err(ONE_MEMBER),
            ([member, rest @ ..], _) => match (self.members.get_mut(usize::from(*member)), rest, change) {
                (None, ..) => Err(NO_MEMBER),
                (Some(_), [], Change::State(state)) => self.change_state(cx, usize::from(*member), *state),
                (Some(member), rest, _) => member.link.apply(cx, rest, change),
            },
        };
        for place in 0..self.members.len() {
            self.take(cx, place);
        }
        self.settle(cx);
        done
    }

    fn conditions(&self, out: &mut Vec<Condition>) {
        let state = if self.is_up() { "up" } else { "down" };
        let is_wanted = self.has_hope();
        out.push(Condition {
            part: Vec::new(),
            state,
            is_wanted,
            passed: Some(self.passed()),
            faults: Vec::new(),
        });
        for member in &self.members {
            let first = out.len();
            member.link.conditions(out);
            if out.len() == first {
                // It has nothing to say for itself: what the bundle knows of it, and what it counts.
                let state = if member.carrier == Carrier::There { "up" } else { "down" };
                let passed = Some(member.link.passed());
                let is_wanted = member.is_wanted;
                out.push(Condition { part: Vec::new(), state, is_wanted, passed, faults: Vec::new() });
            }
            for condition in &mut out[first..] {
                condition.part.insert(0, member.number);
            }
            let own = &mut out[first];
            own.is_wanted = member.is_wanted;
            own.state = match member.carrier {
                Carrier::There if member.has_joined == [true; 2] => own.state,
                Carrier::There => "negotiating",
                // Both ends go on sending over it.
                Carrier::LostUntil(_) => "lost",
                Carrier::None => own.state,
            };
        }
    }

    fn passed(&self) -> [Passed; 2] {
        self.ways.each_ref().map(|way| Passed {
            frames: way.fragments,
            errors: way.counters().missing,
            octets: way.traffic.octets_out,
        })
    }

    fn grade(&self) -> Grade {
        let is_radio = |member: &super::member::Member| member.link.grade() == Grade::Radio;
        if self.members.iter().any(is_radio) { Grade::Radio } else { Grade::Packet }
    }

    fn summarise(&self, out: &mut Summary) {
        for way in &self.ways {
            let prefix = way.direction.name();
            way.traffic.write(prefix, out);
            let counters = way.counters();
            for (name, value) in [
                ("mp_fragments", way.fragments),
                ("mp_null_fragments", way.null_fragments),
                ("mp_missing", counters.missing),
                ("mp_discarded", counters.discarded),
                ("mp_late", counters.late),
                ("mp_expired", counters.expired),
                ("mp_overflows", counters.overflows),
                ("ppp_unreadable", way.unreadable),
            ] {
                out.set(&format!("{prefix}.{name}"), value as f64);
            }
        }
        out.set("links_lost", self.links_lost as f64);
        let [up, down] = &self.ways;
        out.set("queue_max_bytes", up.traffic.queue_max.max(down.traffic.queue_max) as f64);
        for member in &self.members {
            let mut own = Summary::default();
            member.link.summarise(&mut own);
            for (name, value) in own.values.iter() {
                out.set(&format!("member.{}.{name}", member.number), *value);
            }
        }
    }
}

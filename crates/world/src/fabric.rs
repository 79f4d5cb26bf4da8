//! The links of a world, and records of what goes in and comes out.

use airloom_base::record::{Event, PacketFacts};
use airloom_base::service::Described;
use airloom_base::{
    Bearer, Change, Condition, Cx, Direction, Grade, Instant, LinkState, Packet, Point, Protocol, Unsupported,
};
use airloom_transports::tcp::wire::{Flags, Header};
use airloom_wire::ip::{Ip, protocol};

use crate::agenda::{Agenda, Key, Wakeup};
use crate::host::Interface;

/// A link and its wake-up.
pub(crate) struct LinkSlot {
    pub(crate) name: String,
    pub(crate) bearer: Box<dyn Bearer>,
    pub(crate) wakeup: Wakeup,
    /// Has it anything to tell but datagrams?
    pub(crate) tells: bool,
    /// Is there nothing to take while its deadline lies ahead?
    pub(crate) only_by_deadline: bool,
    /// How it treats super-packets, if that is not left to the bearer.
    pub(crate) forced: Option<Grade>,
    /// The last change of its state took it out of service.
    pub(crate) is_out: bool,
}

impl LinkSlot {
    /// How it treats what real hosts send.
    pub(crate) fn grade(&self) -> Grade {
        self.forced.unwrap_or_else(|| self.bearer.grade())
    }

    /// Changes it, or a part of it.
    pub(crate) fn apply(&mut self, cx: &mut Cx, part: &[u16], change: &Change) -> Result<(), Unsupported> {
        match (change, part) {
            (Change::Fault(fault, on), []) => return self.bearer.switch(cx.now, *fault, *on),
            (Change::Fault(..), _) => return Err(Unsupported("faults are those of a whole link")),
            _ => self.bearer.apply(cx, part, change)?,
        }
        if let (Change::State(state), []) = (change, part) {
            self.is_out = *state == LinkState::Down;
        }
        Ok(())
    }

    /// How it and its parts are.
    pub(crate) fn conditions(&self) -> Vec<Condition> {
        let mut out = Vec::new();
        self.bearer.conditions(&mut out);
        if out.is_empty() {
            out.push(Condition {
                part: Vec::new(),
                state: if self.is_out { "down" } else { "up" },
                is_wanted: !self.is_out,
                passed: Some(self.bearer.passed()),
                faults: Vec::new(),
            });
        }
        // What stands around the link takes of what the link itself says.
        out[0].passed = out[0].passed.map(|_| self.bearer.passed());
        out[0].faults = self.bearer.faults();
        out
    }

    /// Enters the link's deadline into the agenda, if it is earlier than what stands there.
    #[inline]
    pub(crate) fn arm(&mut self, now: Instant, index: u32, agenda: &mut Agenda) {
        let deadline = self.bearer.poll_timeout();
        self.arm_at(deadline, now, index, agenda);
    }

    /// The same, where the deadline is known already.
    #[inline]
    pub(crate) fn arm_at(
        &mut self,
        deadline: Option<Instant>,
        now: Instant,
        index: u32,
        agenda: &mut Agenda,
    ) {
        if let Some(at) = deadline
            && self.wakeup.needs_entry(now, at)
        {
            agenda.push(at, Key::Link(index));
        }
    }
}

/// Records a datagram where it enters or leaves a host.
#[inline(always)]
pub(crate) fn record(
    cx: &mut Cx,
    (interfaces, interface): (&[Interface], u16),
    event: Event,
    direction: Direction,
    packet: &Packet,
    protocols: &[Box<dyn Protocol>],
) {
    // Most runs want nothing: then not even the point is looked up.
    if cx.records.wants_packets() {
        let point = interfaces[usize::from(interface)].point;
        if cx.records.wants(point) {
            record_slowly(cx, point, event, direction, packet, protocols);
        }
    }
}

#[cold]
fn record_slowly(
    cx: &mut Cx,
    point: Point,
    event: Event,
    direction: Direction,
    packet: &Packet,
    protocols: &[Box<dyn Protocol>],
) {
    let facts = || {
        let ip = Ip::parse(packet.head()).ok();
        let protocol = ip.map_or(0, |ip| ip.protocol);
        // A datagram of an application is of no flow, whichever protocol there is over UDP.
        let known = protocols
            .iter()
            .find(|p| p.ip_protocol() == protocol && (protocol != protocol::UDP || packet.flow() != 0));
        let unit = ip.and_then(|ip| packet.head().get(ip.header_len..)).unwrap_or_default();
        let Described { seq, ack } =
            known.map_or_else(|| between_real_hosts(protocol, unit), |p| p.describe(unit));
        let proto = known.map_or_else(|| name(protocol), |p| p.name());
        PacketFacts { seq, ack, ..PacketFacts::of(packet, proto, event, direction) }
    };
    cx.records.packet(cx.now, point, facts, |out| airloom_wire::edge::egress(packet, out));
}

/// Where only real hosts speak a protocol, the world has none of it to ask.
fn between_real_hosts(number: u8, unit: &[u8]) -> Described {
    match Header::parse(unit) {
        Ok((header, _)) if number == protocol::TCP => Described {
            seq: Some(u64::from(header.seq)),
            ack: header.flags.has(Flags::ACK).then_some(u64::from(header.ack)),
        },
        _ => Described::default(),
    }
}

fn name(protocol: u8) -> &'static str {
    match protocol {
        1 => "icmp",
        6 => "tcp",
        17 => "udp",
        58 => "icmpv6",
        132 => "sctp",
        253 => "wwp",
        _ => "ip",
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::{Duration, Outbox, Parts};
    use airloom_bearers::faults::Faulty;
    use airloom_testkit::Bench;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_faults_take_has_not_passed_a_link_that_says_itself_how_it_is() {
        let mut records = Outbox::default();
        let mut parts = Parts::new(1, "phs", 1, &mut records);
        let entry = airloom_bearers::find("piafs").expect("there are circuits");
        let circuit = (entry.build)(&json!({}), &mut parts).expect("valid");
        let faults = airloom_base::config::read(&json!({ "drop": { "rate": 1 } })).expect("valid");
        let faulty = Faulty::new(circuit, faults, &[], &mut parts).expect("valid");
        let mut bench = Bench::<dyn Bearer>::new(Box::new(faulty), records);
        bench.send(Direction::Uplink, 100);
        bench.run_until(Instant::ZERO + Duration::from_secs(30));
        assert_eq!(bench.value("uplink.dropped_by_rate"), 1.0);
        let link = LinkSlot {
            name: "phs".into(),
            bearer: bench.bearer,
            wakeup: Wakeup::default(),
            tells: true,
            only_by_deadline: false,
            forced: None,
            is_out: false,
        };
        let [up, _] = link.conditions()[0].passed.expect("it is counted");
        assert!(up.frames > 0);
        assert_eq!(up.octets, 0);
    }
}

//! The network as one machine.
//!
//! `World` holds the graph, the agenda and slabs of machines, and has no protocol knowledge. Two loops of about
//! fifty lines drive it, one per clock (`airloom-drive`). Every call ends with everything drained:
//!
//! ```text
//!   handle_timeout, ingress -> [ links deliver -> hosts receive -> connections, applications -> links ] until quiet
//! ```
//!
//! | part | what it does |
//! |---|---|
//! | this file | the deadlines: whose turn it is, and that all is quiet behind it |
//! | `links.rs` | what links deliver, what becomes of them, changes |
//! | `datagrams.rs` | from a link or a real host to the host that is meant, or onward |
//! | `connections.rs` | what connections send and tell, and applications do |

mod connections;
mod datagrams;
mod links;

use std::collections::VecDeque;

use airloom_base::{Change, CloseReason, Cx, Instant, Outbox, Packet, SocketEvent, SocketId, Unsupported};

use crate::agenda::{Agenda, Key};
use crate::fabric::LinkSlot;
use crate::host::{Fed, Host, Totals};
use crate::observed::Observed;
use crate::port::{FlowTable, PortId, PortInfo};
use crate::routes::Routes;

/// Datagrams that went nowhere, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strays {
    /// No route to the destination.
    pub no_route: u64,
    /// Its hops were used up.
    pub hop_limit: u64,
    /// Larger than what the next link takes.
    pub too_big: u64,
    /// Cut short, flipped bits, wrong checksum, unknown protocol.
    pub malformed: u64,
}

/// A change waiting for its moment.
pub(crate) struct Planned {
    pub(crate) at: Instant,
    pub(crate) link: u32,
    pub(crate) part: Vec<u16>,
    pub(crate) change: Change,
}

/// A network of hosts and links. Built by [`Builder`](crate::Builder).
#[derive(Default, getset::CopyGetters)]
pub struct World {
    /// The nominal time.
    #[getset(get_copy = "pub")]
    pub(crate) now: Instant,
    pub(crate) agenda: Agenda,
    pub(crate) hosts: Vec<Host>,
    pub(crate) links: Vec<LinkSlot>,
    pub(crate) routes: Routes,
    pub(crate) records: Outbox,
    pub(crate) timeline: Vec<Planned>,
    pub(crate) ports: Vec<PortInfo>,
    flows: FlowTable,
    /// Flows of which no end is simulated.
    pub(crate) observed: Observed,
    fed: Fed,
    /// Datagrams that hosts sent to themselves.
    loopback: VecDeque<(u32, Packet)>,
    /// Sockets that could not be opened: their applications are told when all else is quiet.
    failed: VecDeque<(u32, u16, SocketId, CloseReason)>,
    egress: VecDeque<(PortId, Packet)>,
    pending_apps: usize,
    started: bool,
    pub(crate) totals: Totals,
    strays: Strays,
    first_unsupported: Option<(String, Unsupported)>,
    /// Applications, by host and place, that [`World::wake`] calls.
    pub(crate) edges: Vec<(u32, u16)>,
}

impl World {
    /// When to call [`World::handle_timeout`]. Drops stale entries first, so the answer is never one of them.
    #[inline]
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        if !self.started {
            return Some(self.now);
        }
        while let Some((at, key)) = self.agenda.peek() {
            if self.is_valid(key, at) {
                return Some(at);
            }
            self.agenda.pop(at);
        }
        None
    }

    /// Handles the earliest deadline if it is not later than `end`, and says whether there was one. The loop of virtual
    /// time: cheaper than `poll_timeout` and `handle_timeout`, and the same in effect.
    #[inline]
    pub fn step(&mut self, end: Instant) -> bool {
        if !self.started {
            self.start();
        }
        while let Some((at, key)) = self.agenda.pop(end) {
            let now = self.now.max(at);
            if self.fire(at, key, now) {
                return true;
            }
        }
        false
    }

    /// Handles everything that is due at `now`, in order.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = self.now.max(now);
        if !self.started {
            self.start();
        }
        while let Some((at, key)) = self.agenda.pop(self.now) {
            let now = self.now;
            self.fire(at, key, now);
        }
    }

    /// Something has happened outside that applications at the edge of the network wait for: they are called as at a deadline.
    pub fn wake(&mut self, now: Instant) {
        self.handle_timeout(now);
        for n in 0..self.edges.len() {
            let (host, app) = self.edges[n];
            self.call(host, app, |slot, cx, net| slot.handle_timeout(cx, net));
        }
        self.settle();
    }

    /// Where records are, for the driver to take; and for asking for them before the run.
    pub fn records(&mut self) -> &mut Outbox {
        &mut self.records
    }

    /// Have all applications finished? Servers always have; a run without applications ends at once.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.started && self.pending_apps == 0
    }

    /// Events scheduled so far.
    pub fn events(&self) -> u64 {
        self.agenda.pushed()
    }

    /// The first change of the timeline that its link does not support, with the link's name.
    pub fn unsupported_change(&self) -> Option<&(String, Unsupported)> {
        self.first_unsupported.as_ref()
    }

    /// Wakes the component of an entry and settles what follows; false if the entry was stale.
    #[inline]
    fn fire(&mut self, at: Instant, key: Key, now: Instant) -> bool {
        if let Key::Link(link) = key {
            // The common case, without a second look at the kind of key.
            let slot = &mut self.links[link as usize];
            if !slot.wakeup.take(at) {
                return false;
            }
            self.now = now;
            slot.bearer.handle_timeout(&mut Cx { now, records: &mut self.records });
            self.drain_link(link);
        } else if let Key::Connection { host, slot, generation } = key {
            let net = &mut self.hosts[host as usize].net;
            let Some(connection) = net.get(slot, generation).filter(|c| c.wakeup.is(at)) else {
                return false;
            };
            self.now = now;
            connection.wakeup.take(at);
            let deadline = connection.transport.poll_timeout();
            if deadline.is_none_or(|at| at > now) {
                // Put off or taken back since it was entered, and nothing else has happened to it.
                if let Some(at) = deadline
                    && connection.wakeup.needs_entry(now, at)
                {
                    self.agenda.push(at, key);
                }
                return true;
            }
            connection.transport.handle_timeout(&mut Cx { now, records: &mut self.records });
            net.touch(slot, &mut self.fed);
        } else {
            if !self.is_valid(key, at) {
                return false;
            }
            self.now = now;
            self.fire_other(key, at);
        }
        self.settle();
        true
    }

    /// Is this entry of the agenda the one its component waits for?
    #[inline]
    fn is_valid(&self, key: Key, at: Instant) -> bool {
        match key {
            Key::Link(i) => self.links[i as usize].wakeup.is(at),
            Key::Connection { host, slot, generation } => {
                let place = &self.hosts[host as usize].net.slots[slot as usize];
                place.generation == generation && place.connection.as_deref().is_some_and(|c| c.wakeup.is(at))
            }
            Key::App { host, app } => self.hosts[host as usize].apps[usize::from(app)].wakeup.is(at),
            Key::Timeline(_) => true,
        }
    }

    fn start(&mut self) {
        self.started = true;
        // Applications of a real host are the real programs in it.
        let simulated = self.hosts.iter().filter(|host| host.ports.is_none());
        self.pending_apps = simulated.map(|host| host.apps.len()).sum();
        for link in 0..self.links.len() as u32 {
            self.links[link as usize].arm(self.now, link, &mut self.agenda);
        }
        for i in 0..self.timeline.len() as u32 {
            match self.timeline[i as usize].at {
                // What is planned for the beginning holds before anybody sends.
                at if at <= self.now => self.fire_other(Key::Timeline(i), at),
                at => self.agenda.push(at, Key::Timeline(i)),
            }
        }
        for host in 0..self.hosts.len() as u32 {
            if self.hosts[host as usize].ports.is_some() {
                continue;
            }
            for app in 0..self.hosts[host as usize].apps.len() as u16 {
                self.call(host, app, |slot, cx, net| slot.start(cx, net));
            }
        }
        self.settle();
    }

    fn fire_other(&mut self, key: Key, at: Instant) {
        match key {
            Key::Link(_) | Key::Connection { .. } => {
                unreachable!("links and connections are woken where the entry is taken")
            }
            Key::App { host, app } => {
                self.hosts[host as usize].apps[usize::from(app)].wakeup.take(at);
                let due = self.hosts[host as usize].apps[usize::from(app)].app.poll_timeout();
                if due.is_some_and(|at| at <= self.now) {
                    self.call(host, app, |slot, cx, net| slot.handle_timeout(cx, net));
                } else {
                    self.arm_app(host, app);
                }
            }
            Key::Timeline(i) => {
                let planned = &mut self.timeline[i as usize];
                let (link, part, change) = (planned.link, std::mem::take(&mut planned.part), planned.change);
                if let Err(why) = self.change(link, &part, &change) {
                    let name = self.links[link as usize].name.clone();
                    self.first_unsupported.get_or_insert((name, why));
                }
            }
        }
    }

    /// Drains connections until nothing is left to do at this moment.
    #[inline]
    fn settle(&mut self) {
        loop {
            if let Some((host, slot)) = self.fed.pop_front() {
                self.drain_connection(host, slot);
            } else if let Some((host, packet)) = self.loopback.pop_front() {
                self.loop_back(host, packet);
            } else if let Some((host, app, socket, why)) = self.failed.pop_front() {
                self.tell(host, app, socket, SocketEvent::Closed(why));
            } else {
                break;
            }
        }
    }
}

//! Links of the network: what they deliver, what becomes of them, and changes made to them.

use airloom_base::service::Path;
use airloom_base::{BearerEvent, Change, Condition, Cx, Direction, Grade, Instant, Station, Unsupported};

use super::World;
use crate::agenda::Key;
use crate::fabric::LinkSlot;

impl World {
    /// Changes a link at `now`, as an entry of the timeline does: live control. What is due before has been handled.
    pub fn apply(
        &mut self,
        now: Instant,
        link: u32,
        part: &[u16],
        change: &Change,
    ) -> Result<(), Unsupported> {
        self.now = self.now.max(now);
        if !self.started {
            self.start();
        }
        let result = self.change(link, part, change);
        self.settle();
        result
    }

    pub(super) fn change(&mut self, link: u32, part: &[u16], change: &Change) -> Result<(), Unsupported> {
        let slot = self.links.get_mut(link as usize).ok_or(Unsupported("there is no such link"))?;
        let was_out = slot.is_out;
        let result = slot.apply(&mut Cx { now: self.now, records: &mut self.records }, part, change);
        let (tells, is_up) = (slot.tells, !slot.is_out);
        self.drain_link(link);
        // One that tells nothing by itself is as it was made.
        if !tells && is_up == was_out {
            for station in 0..self.routes.ends[link as usize].near.len() {
                self.tell_ends(link, Station(station as u16), is_up);
            }
        }
        result
    }

    /// Would the link take this change, after those that were tried before? For a world that never runs.
    pub(crate) fn rehearse(&mut self, link: usize, part: &[u16], change: &Change) -> Result<(), Unsupported> {
        let slot = self.links.get_mut(link).ok_or(Unsupported("there is no such link"))?;
        slot.apply(&mut Cx { now: self.now, records: &mut self.records }, part, change)
    }

    /// How the links and their parts are, link by link in the order of the scenario.
    pub fn conditions(&self) -> Vec<Vec<Condition>> {
        self.links.iter().map(LinkSlot::conditions).collect()
    }

    /// The links by name, and how they treat the super-packets of real hosts at the moment.
    pub fn grades(&self) -> impl Iterator<Item = (&str, Grade)> {
        self.links.iter().map(|link| (link.name.as_str(), link.grade()))
    }

    /// Octets that wait in the longest queue of all links.
    pub fn longest_backlog(&self) -> u64 {
        let now = self.now;
        let links = self.links.iter().zip(&self.routes.ends);
        let queues = links.flat_map(|(link, ends)| {
            let stations = (0..ends.near.len()).map(|n| Station(n as u16));
            stations.flat_map(move |s| {
                [Direction::Uplink, Direction::Downlink].map(|d| link.bearer.backlog(now, d, s))
            })
        });
        queues.map(|backlog| backlog.octets).max().unwrap_or(0)
    }

    /// Does the earliest deadline, as [`World::poll_timeout`] gave it, release packets of a link? Timers of hosts wait for
    /// nobody.
    pub fn deadline_is_sharp(&self) -> bool {
        matches!(self.agenda.peek(), Some((_, Key::Link(_))))
    }

    /// Takes all that a link delivers. All of it reaches its connections before any of them answers.
    #[inline(always)]
    pub(super) fn drain_link(&mut self, link: u32) {
        while let Some((direction, station, packet)) = self.links[link as usize].bearer.poll_delivery() {
            self.deliver(link, direction, station, packet);
            let slot = &mut self.links[link as usize];
            if slot.only_by_deadline {
                let deadline = slot.bearer.poll_timeout();
                if deadline.is_none_or(|at| at > self.now) {
                    return slot.arm_at(deadline, self.now, link, &mut self.agenda);
                }
            }
        }
        if self.links[link as usize].tells {
            self.take_events(link);
        }
        self.links[link as usize].arm(self.now, link, &mut self.agenda);
    }

    #[inline(never)]
    fn take_events(&mut self, link: u32) {
        while let Some(event) = self.links[link as usize].bearer.poll_event() {
            match event {
                BearerEvent::Up(station) => self.tell_ends(link, station, true),
                BearerEvent::Down(station, _) => self.tell_ends(link, station, false),
            }
        }
    }

    /// A link came into service for one of its stations, or left it: its ends are told. Routes stay as they are.
    #[cold]
    fn tell_ends(&mut self, link: u32, Station(station): Station, is_up: bool) {
        let Some(&near) = self.routes.ends[link as usize].near.get(usize::from(station)) else { return };
        let far = self.routes.ends[link as usize].far;
        for ((host, interface), (other, its)) in [(near, far), (far, near)] {
            if self.hosts[host as usize].ports.is_some() {
                continue;
            }
            let there = &self.hosts[other as usize].net.interfaces[usize::from(its)];
            let here = &self.hosts[host as usize].net.interfaces[usize::from(interface)];
            let mut pairs = here.addresses.iter().filter_map(|own| Some((*own, there.address_for(*own)?)));
            let path = pairs.next().map(|(local, remote)| Path { local, remote, mtu: here.mtu });
            let cx = &mut Cx { now: self.now, records: &mut self.records };
            self.hosts[host as usize].net.path_changed(cx, (link, Station(station)), is_up, &mut self.fed);
            for app in 0..self.hosts[host as usize].apps.len() as u16 {
                if let Some(path) = path {
                    self.call(host, app, |app, cx, net| app.handle_path(cx, net, path, is_up));
                }
            }
        }
    }
}

//! The loop that waits.

use std::io;

use airloom_base::{Duration, Histogram, Instant, Outbox};
use airloom_world::{PortId, World};

use super::clock::{Clock, SharpTimers, readable};
use super::lab::Laboratory;
use super::port::{Arrival, Port, PortCounters};
use super::process::Running;
use super::{Error, Report};
use crate::virtual_time::{Outcome, Until};

/// How many datagrams are read from a port before the others, and the deadlines, have their turn.
const BATCH: usize = 256;
/// How often the caller gets to see the records and may stop the run.
const LOOK: Duration = Duration::from_millis(100);
/// Of how many datagrams the arrival is remembered, to know how long the model held them. A power of two.
const REMEMBERED: usize = 4096;

/// What the loop keeps besides the world.
struct Engine {
    clock: Clock,
    ports: Vec<Box<dyn Port>>,
    /// Nominal time: never decreases.
    now: Instant,
    arrivals: Vec<(Arrival, PortId)>,
    /// Number and arrival of datagrams from real hosts, at the place of their number.
    entered: Box<[(u64, Instant)]>,
    lateness: Histogram,
    base_delay: Option<Duration>,
    malformed: u64,
}

/// Runs `world` on the ports of `laboratory`. `start` starts the command once everything is ready.
pub(super) fn run(
    world: &mut World,
    laboratory: &mut Laboratory,
    start: impl FnOnce(&Laboratory) -> Result<Option<Running>, Error>,
    until: Until,
    mut look: impl FnMut(Instant, &mut Outbox) -> bool,
) -> Result<Report, Error> {
    let _sharp = SharpTimers::new();
    let ports = std::mem::take(&mut laboratory.ports);
    let command = start(laboratory)?;
    let mut engine = Engine {
        clock: Clock::start(),
        ports: ports.into_iter().map(|p| Box::new(p) as Box<dyn Port>).collect(),
        now: Instant::ZERO,
        arrivals: Vec::new(),
        entered: vec![(0, Instant::ZERO); REMEMBERED].into(),
        lateness: Histogram::default(),
        base_delay: None,
        malformed: 0,
    };
    let outcome = engine.run(world, command.as_ref(), until, &mut look);
    let cpu_share = engine.clock.cpu_share();
    let exit_code = command.as_ref().and_then(Running::exit_code);
    drop(command);
    world.close_books();
    look(engine.now, world.records());
    world.records().clear();
    let outcome = outcome.map_err(|e| Error::Device(e.to_string()))?;
    let counters = engine.ports.iter_mut().map(|p| p.counters());
    Ok(Report {
        outcome,
        exit_code,
        ports: counters.fold(PortCounters::default(), PortCounters::plus),
        lateness: engine.lateness,
        base_delay: engine.base_delay,
        cpu_share,
        malformed: engine.malformed,
    })
}

impl Engine {
    fn run(
        &mut self,
        world: &mut World,
        command: Option<&Running>,
        until: Until,
        look: &mut dyn FnMut(Instant, &mut Outbox) -> bool,
    ) -> io::Result<Outcome> {
        let (end, end_is_success) = match until {
            Until::Done { limit } => (Instant::ZERO + limit, false),
            Until::Elapsed(time) => (Instant::ZERO + time, true),
        };
        let mut next_look = Instant::ZERO + LOOK;
        self.deadlines(world, Instant::ZERO);
        // Applications that need time are what a run without a command waits for. If there are none, and no
        // command, it goes on until the caller stops it or the time is over.
        let wait_for_apps = command.is_none() && !end_is_success && !world.is_finished();
        loop {
            let woken = self.arrivals(world)?;
            self.deadlines(world, woken);
            let at = self.clock.now();
            if at >= next_look {
                next_look = at + LOOK;
                let go_on = look(self.now, world.records());
                world.records().clear();
                if !go_on {
                    return Ok(Outcome::Stopped);
                }
            }
            if command.is_some_and(|c| c.exit_code().is_some()) || (wait_for_apps && world.is_finished()) {
                return Ok(Outcome::Complete);
            }
            if at >= end {
                return Ok(if end_is_success { Outcome::Complete } else { Outcome::LimitReached });
            }
            let deadline = world.poll_timeout().unwrap_or(Instant::FAR_FUTURE).min(next_look).min(end);
            let ports = self.ports.iter().map(|p| p.readable());
            let mut descriptors: Vec<_> = ports.chain(command.map(Running::ended)).map(readable).collect();
            self.clock.wait(&mut descriptors, deadline)?;
        }
    }

    /// Feeds everything that has arrived, in order of arrival, each after the deadlines before it. Returns when
    /// that was.
    fn arrivals(&mut self, world: &mut World) -> io::Result<Instant> {
        let stamps = self.clock.stamps();
        let mut arrivals = std::mem::take(&mut self.arrivals);
        for (n, port) in self.ports.iter_mut().enumerate() {
            let id = PortId(n as u32);
            port.receive(stamps, BATCH, &mut |arrival| arrivals.push((arrival, id)))?;
        }
        arrivals.sort_by_key(|(arrival, _)| arrival.at);
        for (arrival, port) in arrivals.drain(..) {
            self.deadlines(world, arrival.at);
            self.now = self.now.max(arrival.at);
            // The world numbers datagrams as they come in.
            let number = world.records().packet_count() + 1;
            match world.ingress(self.now, port, arrival.datagram, arrival.transport_done) {
                Ok(()) => self.entered[number as usize % REMEMBERED] = (number, self.now),
                Err(_) => self.malformed += 1,
            }
            self.departures(world, self.now);
        }
        self.arrivals = arrivals;
        Ok(stamps.now())
    }

    /// Handles the deadlines up to `until`, each at its own time.
    fn deadlines(&mut self, world: &mut World, until: Instant) {
        while let Some(due) = world.poll_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            world.handle_timeout(self.now);
            self.departures(world, due);
        }
    }

    /// Sends what comes out of the model; `due` is when it should leave.
    fn departures(&mut self, world: &mut World, due: Instant) {
        while let Some((port, packet)) = world.egress() {
            let (number, arrival) = self.entered[packet.id() as usize % REMEMBERED];
            if packet.id() != 0 && number == packet.id() {
                let held = due.since(arrival);
                self.base_delay = Some(self.base_delay.map_or(held, |least| least.min(held)));
            }
            if let Some(port) = self.ports.get_mut(port.0 as usize) {
                port.send(&packet);
                self.lateness.add(self.clock.now().since(due).as_nanos());
            }
        }
    }
}

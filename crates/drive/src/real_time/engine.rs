//! The loop that waits: one thread per laboratory owns the world and its ports.
//!
//! Whoever started it talks to it through a [`Handle`]: takes the records made since, hears that it has ended, or ends
//! it. Writing files and drawing progress happen in the caller's thread and delay no datagram.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread;

use nix::poll::PollFd;

use airloom_base::{Duration, Histogram, Instant};
use airloom_world::{PortId, World};

use super::awake::Awake;
use super::clock::{Clock, readable};
use super::closing::Closing;
use super::exchange::{Ask, Handle, Shared, TellAtTheEnd};
use super::load::{LOOK, Load};
use super::pace::{Pace, Round};
use super::port::{Arrival, Intake, Port};
use super::{Error, Report};
use crate::virtual_time::{Outcome, Until};

/// Of how many datagrams the arrival is remembered, to know how long the model held them. A power of two.
const REMEMBERED: usize = 1 << 14;
/// Octets of frames that the model may hold.
const MEMORY: usize = 256 << 20;
/// Makes the engine's thread panic when the run is so many milliseconds old; not in an optimised build.
#[cfg(debug_assertions)]
const PANIC: &str = "AIRLOOM_DEBUG_PANIC_AFTER_MS";

/// Starts an engine that runs `world` on `ports`. It ends as `until` says; with `wait_for_apps` also when every
/// application has finished, if there are any that need time; with `keep_awake` processors do not fall asleep meanwhile.
pub(super) fn start(
    mut world: World,
    ports: Vec<Box<dyn Port>>,
    until: Until,
    wait_for_apps: bool,
    keep_awake: bool,
    called: Clock,
) -> Result<Handle, Error> {
    let failed = |what: &str, e: io::Error| Error::SetUp(format!("{what}: {e}"));
    let shared = Shared::new(Some(world.records().counterpart())).map_err(|e| failed("an event", e))?;
    let shared = Arc::new(shared);
    let theirs = Arc::clone(&shared);
    let thread = thread::Builder::new().name("airloom-engine".to_owned()).spawn(move || {
        let _told = TellAtTheEnd(Arc::clone(&theirs));
        // Before the engine has its priority, which new threads take over.
        let awake = if keep_awake { Awake::start() } else { Awake::without("switched off") };
        let mut engine = Engine::new(theirs, ports, awake, called);
        let outcome = engine.run(&mut world, until, wait_for_apps);
        world.close_books();
        engine.shared.offer(engine.now, world.longest_backlog(), world.records());
        let report = outcome.map(|outcome| engine.report(outcome, &world));
        (world, report, Closing::begin(std::mem::take(&mut engine.ports)))
    });
    Ok(Handle::new(shared, thread.map_err(|e| failed("the engine's thread", e))?))
}

/// What the loop keeps besides the world.
struct Engine {
    shared: Arc<Shared>,
    clock: Clock,
    ports: Vec<Box<dyn Port>>,
    /// What each port has handed over and was not told to the model yet, in order.
    arrivals: Vec<VecDeque<Arrival>>,
    /// The latest arrival of each port.
    last: Vec<Instant>,
    intake: Intake,
    awake: Awake,
    /// Nominal time: never decreases.
    now: Instant,
    /// Number and arrival of datagrams from real hosts, at the place of their number.
    entered: Box<[(u64, Instant)]>,
    lateness: Histogram,
    arrival_lateness: Histogram,
    early: u64,
    base_delay: Option<Duration>,
    malformed: u64,
    /// Octets of datagrams that arrived or left.
    octets: usize,
    /// Datagrams that arrived, super-packets as one, and their octets.
    arrived: (u64, u64),
    load: Load,
    lead: Duration,
    clock_time: Duration,
    start_up: Duration,
}

impl Engine {
    fn new(shared: Arc<Shared>, ports: Vec<Box<dyn Port>>, awake: Awake, called: Clock) -> Engine {
        let arrivals = ports.iter().map(|_| VecDeque::new()).collect();
        let last = vec![Instant::ZERO; ports.len()];
        let intake = Intake::new(MEMORY);
        let entered = vec![(0, Instant::ZERO); REMEMBERED].into();
        let load = Load::new();
        Engine {
            shared,
            ports,
            arrivals,
            last,
            intake,
            awake,
            now: Instant::ZERO,
            entered,
            lateness: Histogram::default(),
            arrival_lateness: Histogram::default(),
            early: 0,
            base_delay: None,
            malformed: 0,
            octets: 0,
            arrived: (0, 0),
            load,
            lead: Duration::ZERO,
            clock_time: Duration::ZERO,
            start_up: called.now().since(Instant::ZERO),
            clock: Clock::start(),
        }
    }

    fn run(&mut self, world: &mut World, until: Until, wait_for_apps: bool) -> io::Result<Outcome> {
        let (end, end_is_success) = match until {
            Until::Done { limit } => (Instant::ZERO + limit, false),
            Until::Elapsed(time) => (Instant::ZERO + time, true),
        };
        // For tests of what a panic leaves behind.
        #[cfg(debug_assertions)]
        let panic_at = {
            let after = std::env::var(PANIC).ok().and_then(|ms| ms.parse().ok());
            after.map_or(Instant::FAR_FUTURE, |ms| Instant::ZERO + Duration::from_millis(ms))
        };
        #[cfg(debug_assertions)]
        let end = end.min(panic_at);
        let mut pace = Pace::start(&self.clock);
        let shared = Arc::clone(&self.shared);
        let mut next_look = Instant::ZERO + LOOK;
        self.deadlines(world, Instant::ZERO);
        self.flush();
        // Applications that need time are what a run without a command waits for. If there are none, and no
        // command, it goes on until the caller stops it or the time is over.
        let wait_for_apps = wait_for_apps && !end_is_success && !world.is_finished();
        let end_is_success = end_is_success || !wait_for_apps;
        loop {
            let at = self.clock.now();
            let before = self.octets;
            let more = self.read()?;
            let horizon = self.horizon(at, more);
            self.feed(world, horizon);
            self.deadlines(world, horizon);
            self.answer(world, horizon);
            self.flush();
            if at >= next_look {
                next_look = at + LOOK;
                self.load.look(at, self.clock.cpu(), self.clock_time);
                self.shared.offer(self.now, world.longest_backlog(), world.records());
            }
            if shared.is_stopped() {
                self.lead = pace.lead.length();
                return Ok(Outcome::Stopped);
            }
            if wait_for_apps && world.is_finished() {
                self.lead = pace.lead.length();
                return Ok(Outcome::Complete);
            }
            #[cfg(debug_assertions)]
            assert!(at < panic_at, "told to by {PANIC}");
            if at >= end {
                self.lead = pace.lead.length();
                return Ok(if end_is_success { Outcome::Complete } else { Outcome::LimitReached });
            }
            if more {
                continue;
            }
            let due = world.poll_timeout().unwrap_or(Instant::FAR_FUTURE);
            let sharp = world.deadline_is_sharp();
            // An idle engine sleeps: it looks at itself only where something has happened since.
            let look = if world.records().is_empty() && self.is_rested(at) { end } else { next_look };
            let deadline = due.min(look).min(end).min(self.awake.tend(at, self.now));
            let ports = self.ports.iter().map(|p| p.readable());
            let mut descriptors: Vec<PollFd> = ports.chain([shared.wake()]).map(readable).collect();
            let round = Round {
                began: at,
                octets: self.octets.wrapping_sub(before),
                arrived: self.arrived,
                base_delay: self.base_delay,
                deadline,
                sharp: sharp && deadline == due,
            };
            let looked = pace.wait(&self.clock, &mut descriptors, &round)?;
            if descriptors.last().and_then(PollFd::any).unwrap_or(false) {
                shared.heed();
            }
            self.clock_time += looked;
        }
    }

    /// Has nothing but waiting been going on for a while?
    fn is_rested(&self, at: Instant) -> bool {
        at.since(self.now) > LOOK
    }

    /// Reads all ports: is there more than could be read at a time?
    fn read(&mut self) -> io::Result<bool> {
        let stamps = self.clock.stamps();
        let mut more = false;
        for ((port, arrivals), last) in self.ports.iter_mut().zip(&mut self.arrivals).zip(&mut self.last) {
            // What could not be told to the model yet is enough to go on with.
            if !arrivals.is_empty() {
                more = true;
                continue;
            }
            more |= port.receive(&mut self.intake, stamps, arrivals)?;
            put_in_order(arrivals, last);
        }
        Ok(more)
    }

    /// Up to when all arrivals are known: when reading began, or the last arrival of a port that has more.
    fn horizon(&self, at: Instant, more: bool) -> Instant {
        if !more {
            return at;
        }
        self.arrivals.iter().filter_map(|a| a.back()).map(|a| a.at).fold(at, Instant::min)
    }

    /// Tells the model what has arrived up to `horizon`, in order of arrival, each after the deadlines before it.
    fn feed(&mut self, world: &mut World, horizon: Instant) {
        loop {
            let first = |(n, waiting): (usize, &VecDeque<Arrival>)| waiting.front().map(|a| (a.at, n));
            let Some((at, n)) = self.arrivals.iter().enumerate().filter_map(first).min() else { break };
            if at > horizon {
                break;
            }
            let Some(Arrival { received, .. }) = self.arrivals[n].pop_front() else { break };
            self.deadlines(world, at);
            self.octets = self.octets.wrapping_add(received.datagram.len());
            self.arrived = (self.arrived.0 + 1, self.arrived.1 + received.datagram.len() as u64);
            self.arrival_lateness.add(self.now.since(at).as_nanos());
            self.now = self.now.max(at);
            match world.ingress(self.now, PortId(n as u32), received) {
                Ok(numbers) => {
                    for number in numbers {
                        self.entered[number as usize % REMEMBERED] = (number, self.now);
                    }
                }
                Err(_) => self.malformed += 1,
            }
            self.departures(world, self.now);
        }
    }

    /// Handles the deadlines up to `until`, each at its own time.
    fn deadlines(&mut self, world: &mut World, until: Instant) {
        while let Some(due) = world.poll_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            world.handle_timeout(self.now);
            self.departures(world, due);
        }
    }

    /// Does what other threads ask for.
    fn answer(&mut self, world: &mut World, horizon: Instant) {
        for ask in self.shared.take_asked() {
            match ask {
                // Whoever asked and did not wait does not matter: what was asked for happens.
                Ask::Change { link, part, changes, answer } => {
                    // A moment of its own: as an entry of a timeline it comes between the same events again.
                    let at = horizon.max(self.now + Duration::from_nanos(1));
                    self.deadlines(world, at);
                    self.now = at;
                    let done = changes.iter().try_for_each(|change| world.apply(at, link, &part, change));
                    self.departures(world, at);
                    let _ = answer.try_send(done.map(|()| at).map_err(|why| why.0));
                }
                Ask::Wake => {
                    let at = horizon.max(self.now);
                    self.deadlines(world, at);
                    self.now = at;
                    world.wake(at);
                    self.departures(world, at);
                }
                Ask::Look { answer } => {
                    let _ = answer.try_send((self.now.max(horizon), world.conditions()));
                }
            }
        }
    }

    /// Hands what comes out of the model to the ports; `due` is when it should leave.
    fn departures(&mut self, world: &mut World, due: Instant) {
        while let Some((port, packet)) = world.egress() {
            self.octets = self.octets.wrapping_add(packet.wire_len());
            let (number, arrival) = self.entered[packet.id() as usize % REMEMBERED];
            if packet.id() != 0 && number == packet.id() {
                let held = due.since(arrival);
                self.base_delay = Some(self.base_delay.map_or(held, |least| least.min(held)));
            }
            let number = port.0 as usize;
            if let Some(port) = self.ports.get_mut(number)
                && port.push(packet, due)
            {
                self.flush_port(number);
            }
        }
    }

    fn flush(&mut self) {
        for n in 0..self.ports.len() {
            self.flush_port(n);
        }
    }

    fn flush_port(&mut self, n: usize) {
        let (clock, lateness, early) = (&self.clock, &mut self.lateness, &mut self.early);
        self.ports[n].flush(&mut |dues| {
            let now = clock.now();
            for due in dues {
                *early += u64::from(now < *due);
                lateness.add(now.since(*due).as_nanos());
            }
        });
    }

    fn report(&mut self, outcome: Outcome, world: &World) -> Report {
        let elapsed = self.clock.now().since(Instant::ZERO);
        let share = |time: Duration| time.as_nanos() as f64 / elapsed.as_nanos().max(1) as f64;
        let counters = self.ports.iter_mut().map(|p| p.counters());
        Report {
            outcome,
            exit_code: None,
            ports: counters.sum(),
            lateness: self.lateness.clone(),
            arrival_lateness: self.arrival_lateness.clone(),
            early: self.early,
            base_delay: self.base_delay,
            elapsed,
            start_up: self.start_up,
            cpu_share: share(self.clock.cpu()),
            busiest: self.load.busiest,
            waited_share: self.load.waited().map(share),
            clock_share: share(self.clock_time),
            lead: self.lead,
            priority: self.load.best,
            wakefulness: self.awake.said(),
            grades: world.grades().map(|(name, grade)| (name.to_owned(), grade)).collect(),
            malformed: self.malformed,
            records_lost: self.shared.lost(),
            limit: None,
        }
    }
}

/// Frames of one port come in order; their stamps, made on several processors, may lie a little behind each other's.
fn put_in_order(arrivals: &mut VecDeque<Arrival>, last: &mut Instant) {
    for arrival in arrivals {
        arrival.at = arrival.at.max(*last);
        *last = arrival.at;
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::Ipv4Addr;
    use std::os::fd::{AsFd, BorrowedFd};
    use std::sync::Mutex;

    use airloom_base::Packet;
    use airloom_wire::edge::Received;
    use airloom_wire::{checksum, ip, udp};
    use airloom_world::{Builder, End};
    use nix::poll::{PollTimeout, poll};
    use serde_json::json;

    use super::super::clock::Stamps;
    use super::super::port::PortCounters;
    use super::*;

    const fn us(n: u64) -> Instant {
        Instant::from_nanos(n * 1000)
    }

    #[test]
    fn arrivals_of_a_port_are_in_order_even_where_their_stamps_are_not() {
        let at = |nanos| Arrival { at: Instant::from_nanos(nanos), received: Received::whole(vec![]) };
        let mut last = Instant::from_nanos(5);
        let mut arrivals: VecDeque<Arrival> = [3, 9, 7, 12].map(at).into();
        put_in_order(&mut arrivals, &mut last);
        assert_eq!(arrivals.iter().map(|a| a.at.as_nanos()).collect::<Vec<_>>(), [5, 9, 9, 12]);
        assert_eq!(last.as_nanos(), 12);
    }

    /// A port that hands over what a test wrote down, and notes when what it gets should leave.
    struct Scripted {
        descriptor: File,
        /// What each reading finds, and whether there is more.
        readings: VecDeque<(Vec<Arrival>, bool)>,
        left: Arc<Mutex<Vec<Instant>>>,
    }

    impl Port for Scripted {
        fn readable(&self) -> BorrowedFd<'_> {
            self.descriptor.as_fd()
        }
        fn receive(
            &mut self,
            _: &mut Intake,
            _: Stamps,
            arrivals: &mut VecDeque<Arrival>,
        ) -> io::Result<bool> {
            let (found, more) = self.readings.pop_front().unwrap_or_default();
            arrivals.extend(found);
            Ok(more)
        }
        fn push(&mut self, _: Packet, due: Instant) -> bool {
            self.left.lock().unwrap().push(due);
            false
        }
        fn flush(&mut self, _: &mut dyn FnMut(&[Instant])) {}
        fn counters(&mut self) -> PortCounters {
            PortCounters::default()
        }
    }

    const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];

    /// A datagram of the real host `from` to the other one.
    fn datagram(from: usize, at: u64) -> Arrival {
        let [source, destination] = [ADDRESSES[from], ADDRESSES[1 - from]].map(Into::into);
        let mut octets = vec![0; 28];
        ip::emit(&mut octets, source, destination, ip::protocol::UDP, 0, 8);
        udp::Udp { source: 7, destination: 7, len: 8 }.emit(&mut octets[20..]);
        checksum::finish(&mut octets).unwrap();
        Arrival { at: us(at), received: Received::whole(octets) }
    }

    type Readings = Vec<(Vec<Arrival>, bool)>;

    /// Two real hosts on a wire of 10 us, and when what leaves at each of them was due.
    fn engine(readings: [Readings; 2]) -> (Engine, World, [Arc<Mutex<Vec<Instant>>>; 2]) {
        let mut b = Builder::new(1);
        let hosts = [b.host("a"), b.host("b")];
        let wire = airloom_bearers::find("wireline").unwrap();
        let wire = (wire.build)(&json!({ "delay": "10us" }), &mut b.parts("wire", 1)).unwrap();
        let [near, far] = [0, 1].map(|n| End { host: hosts[n], addresses: vec![ADDRESSES[n].into()] });
        b.link_with("wire", wire, vec![near], far).unwrap();
        hosts.iter().for_each(|host| b.real(*host, None));
        let left = [(); 2].map(|()| Arc::new(Mutex::new(Vec::new())));
        let ports = readings.into_iter().zip(&left).map(|(readings, left)| {
            let descriptor = File::open("/dev/null").unwrap();
            let port = Scripted { descriptor, readings: readings.into(), left: Arc::clone(left) };
            Box::new(port) as Box<dyn Port>
        });
        let shared = Shared::new(None).unwrap();
        (
            Engine::new(Arc::new(shared), ports.collect(), Awake::without("a test"), Clock::start()),
            b.build().unwrap(),
            left,
        )
    }

    impl Engine {
        /// One round of the loop that begins at `at`, without waiting.
        fn round(&mut self, world: &mut World, at: u64) -> bool {
            let more = self.read().unwrap();
            let horizon = self.horizon(us(at), more);
            self.feed(world, horizon);
            self.deadlines(world, horizon);
            more
        }
    }

    fn dues(left: &Arc<Mutex<Vec<Instant>>>) -> Vec<u64> {
        left.lock().unwrap().iter().map(|due| due.as_nanos() / 1000).collect()
    }

    #[test]
    fn ports_are_read_before_deadlines_and_everything_is_told_in_order_of_its_stamp() {
        let a = vec![(vec![datagram(0, 100), datagram(0, 130)], false)];
        let b = vec![(vec![datagram(1, 105)], false)];
        let (mut engine, mut world, left) = engine([a, b]);
        assert!(!engine.round(&mut world, 200));
        assert_eq!((dues(&left[1]), dues(&left[0])), (vec![110, 140], vec![115]));
        assert_eq!(engine.arrival_lateness.max(), Some(0));
        assert_eq!(engine.base_delay, Some(Duration::from_micros(10)));
    }

    #[test]
    fn what_arrives_while_ports_are_read_waits_for_the_next_round() {
        let a = vec![(vec![datagram(0, 205)], false)];
        let b = vec![(vec![], false), (vec![datagram(1, 202)], false)];
        let (mut engine, mut world, left) = engine([a, b]);
        engine.round(&mut world, 200);
        assert_eq!(engine.now, Instant::ZERO);
        // The other port's earlier arrival, found only now, still comes first.
        while engine.round(&mut world, 300) {}
        assert_eq!((dues(&left[1]), dues(&left[0])), (vec![215], vec![212]));
        assert_eq!(engine.arrival_lateness.max(), Some(0));
    }

    #[test]
    fn a_port_with_more_holds_deadlines_back_to_what_is_known_of_it() {
        let a = vec![(vec![datagram(0, 100)], true), (vec![datagram(0, 120)], false)];
        let b = vec![(vec![datagram(1, 150)], false)];
        let (mut engine, mut world, left) = engine([a, b]);
        assert!(engine.round(&mut world, 200));
        assert_eq!(dues(&left[1]), [] as [u64; 0], "due at 110, but what comes before may be unread");
        while engine.round(&mut world, 200) {}
        assert_eq!((dues(&left[1]), dues(&left[0])), (vec![110, 130], vec![160]));
        assert_eq!(engine.arrival_lateness.max(), Some(0));
    }

    #[test]
    fn a_wake_up_whose_request_was_taken_before_does_not_keep_the_engine_awake() {
        let (mut engine, mut world, _) = engine([vec![], vec![]]);
        let shared = Arc::clone(&engine.shared);
        nix::unistd::write(shared.wake(), &1_u64.to_ne_bytes()).unwrap();
        // Theirs can always be read.
        engine.ports.clear();
        engine.run(&mut world, Until::Elapsed(Duration::from_millis(5)), false).unwrap();
        assert_eq!(poll(&mut [readable(shared.wake())], PollTimeout::ZERO), Ok(0));
    }

    #[test]
    fn an_arrival_behind_the_models_time_is_told_at_that_time_and_counted() {
        let a = vec![(vec![datagram(0, 100)], false)];
        let b = vec![(vec![], false), (vec![datagram(1, 50)], false)];
        let (mut engine, mut world, left) = engine([a, b]);
        engine.round(&mut world, 200);
        engine.round(&mut world, 300);
        assert_eq!(dues(&left[1]), [110]);
        // The model had come to 110.
        assert_eq!(dues(&left[0]), [120]);
        assert_eq!(engine.arrival_lateness.max(), Some(60_000));
    }
}

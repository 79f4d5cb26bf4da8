//! The draft's own list of cases (appendix A): what a model does on a path whose rate, losses and application the test sets.

use std::collections::VecDeque;

use airloom_base::random::Stream;
use airloom_base::{Duration, Instant};

use crate::bbr::model::{Model, NONE};
use crate::bbr::state::State;

const PACKET: u64 = 1250;
const RTT: Duration = Duration::from_millis(40);
/// Ten Mbit/s, in octets.
const RATE: u64 = 1_250_000;
/// Their product.
const BDP: u64 = 50_000;

struct Flight {
    number: u64,
    sent_at: Instant,
    back_at: Instant,
    is_lost: bool,
}

/// A bottleneck with a queue, between a sender that is a model and a receiver that acknowledges each packet.
struct Road {
    model: Model,
    now: Instant,
    rate: u64,
    /// Octets that the queue holds.
    queue: u64,
    /// A packet in so many is lost; 0: none.
    loses: u64,
    /// Octets a second that the application has; `None`: no end of them.
    application: Option<u64>,
    /// Acknowledgements come at multiples of this.
    slot: Duration,
    free_at: Instant,
    next_send: Instant,
    next_number: u64,
    flights: VecDeque<Flight>,
    /// Each state with when it began, and what was in flight then.
    states: Vec<(Instant, State)>,
    delivered: u64,
    drops: u64,
}

impl Road {
    fn new() -> Road {
        Road {
            model: Model::new(Instant::ZERO, PACKET, 10 * PACKET, Stream::new(1, "bbr")),
            now: Instant::ZERO,
            rate: RATE,
            queue: 4 * BDP,
            loses: 0,
            application: None,
            slot: Duration::from_nanos(1),
            free_at: Instant::ZERO,
            next_send: Instant::ZERO,
            next_number: 0,
            flights: VecDeque::new(),
            states: vec![(Instant::ZERO, State::Startup)],
            delivered: 0,
            drops: 0,
        }
    }

    fn state(&self) -> State {
        self.model.state
    }

    /// When this state began last.
    fn since(&self, state: State) -> Option<Instant> {
        self.states.iter().rev().find(|(_, each)| *each == state).map(|(at, _)| *at)
    }

    fn queued(&self) -> u64 {
        let wait = self.free_at.since(self.now).as_nanos();
        u64::try_from(u128::from(wait) * u128::from(self.rate) / 1_000_000_000).expect("it fits")
    }

    fn send(&mut self) {
        let number = self.next_number;
        self.next_number += 1;
        self.model.on_transmit(self.now);
        self.model.packets.sent(self.now, number, PACKET, self.model.round_count);
        let is_dropped = self.queued() + PACKET > self.queue;
        self.drops += u64::from(is_dropped);
        let is_lost = is_dropped || (self.loses > 0 && number % self.loses == self.loses / 2);
        let service = Duration::from_nanos(PACKET * 1_000_000_000 / self.rate);
        if !is_dropped {
            self.free_at = self.free_at.max(self.now) + service;
        }
        let arrives = (self.free_at.max(self.now) + RTT).as_nanos();
        let back_at = Instant::from_nanos(arrives.div_ceil(self.slot.as_nanos()) * self.slot.as_nanos());
        self.flights.push_back(Flight { number, sent_at: self.now, back_at, is_lost });
        let rate = self.application.map_or(self.model.pacing_rate, |most| most.min(self.model.pacing_rate));
        self.next_send = self.now + Duration::from_nanos(PACKET * 1_000_000_000 / rate.max(1));
    }

    /// All acknowledgements of this moment; of what was sent before, the rest is lost.
    fn acknowledge(&mut self) {
        if self.application.is_some() && self.model.packets.in_flight + PACKET <= self.model.cwnd {
            self.model.packets.limit();
        }
        let mut lost = Vec::new();
        while self.flights.front().is_some_and(|flight| flight.back_at <= self.now) {
            let flight = self.flights.pop_front().expect("there is one");
            if flight.is_lost {
                lost.push(flight.number);
                continue;
            }
            self.delivered += PACKET;
            self.model.on_arrived(flight.sent_at);
            self.model.packets.acknowledged(self.now, flight.sent_at, flight.number, PACKET);
        }
        let in_flight = self.model.packets.in_flight;
        if let Some(sample) = self.model.packets.sample(self.now, in_flight) {
            self.model.on_ack(&sample);
            self.model.packets.forget(self.model.round_count);
        }
        for number in lost {
            self.model.on_packet_lost(self.now, number, PACKET);
        }
    }

    fn step(&mut self) {
        let has_room = self.model.packets.in_flight + PACKET <= self.model.cwnd;
        if !has_room {
            self.model.on_cwnd_limited();
        }
        let sends = has_room && self.application != Some(0);
        let back = self.flights.front().map(|flight| flight.back_at);
        match back {
            Some(back) if !sends || back <= self.next_send => {
                self.now = self.now.max(back);
                self.acknowledge();
            }
            None if !sends => self.now += Duration::from_millis(1),
            _ => {
                self.now = self.now.max(self.next_send);
                self.send();
            }
        }
        if self.state() != self.states[self.states.len() - 1].1 {
            self.states.push((self.now, self.state()));
        }
    }

    fn drive(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.step();
        }
    }

    /// Until it is in this state; no longer than half a minute.
    fn reach(&mut self, state: State) {
        let end = self.now + Duration::from_secs(30);
        while self.state() != state {
            assert!(self.now < end, "not {state:?} but {:?}", self.states);
            self.step();
        }
    }

    /// The share of the rate that arrives in a time.
    fn share(&mut self, time: Duration) -> f64 {
        let (before, at) = (self.delivered, self.now);
        self.drive(time);
        (self.delivered - before) as f64 / (self.rate as f64 * self.now.since(at).as_secs_f64())
    }

    fn is_near(&self, rate: u64) -> bool {
        self.model.max_bw().abs_diff(rate) * 50 < rate
    }
}

const fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[test]
fn startup_ends_when_three_rounds_bring_no_more() {
    let mut road = Road::new();
    road.reach(State::Drain);
    assert!(road.model.full_bw_reached && road.is_near(RATE), "{}", road.model.max_bw());
    // The first packet; twice as much each round, from 10 packets to the path's 40 and as many in a queue; three to see it.
    assert_eq!(road.model.round_count, 8);
}

#[test]
fn startup_ends_by_losses_though_the_application_has_no_more_to_send() {
    let mut road = Road::new();
    road.application = Some(RATE / 2);
    road.drive(seconds(2));
    assert_eq!(road.state(), State::Startup);
    // Twenty packets a round, six of them at least.
    road.loses = 3;
    road.drive(seconds(1));
    assert!(road.state() != State::Startup && road.model.inflight_longterm < NONE);
}

#[test]
fn an_application_with_little_to_say_leaves_startup_and_up_as_they_are() {
    let mut road = Road::new();
    road.application = Some(RATE / 2);
    road.drive(seconds(4));
    assert_eq!(road.states.len(), 1);
    let mut road = Road::new();
    road.reach(State::Up);
    road.application = Some(RATE / 2);
    road.drive(seconds(2));
    assert_eq!(road.state(), State::Up);
}

#[test]
fn drain_ends_when_what_is_in_flight_fits_the_path_or_after_three_rounds() {
    let mut road = Road::new();
    road.reach(State::Drain);
    road.reach(State::Cruise);
    assert!((BDP - PACKET..=BDP + PACKET).contains(&road.model.packets.in_flight));
    // On a path that has become slower than it looked.
    let mut road = Road::new();
    while road.model.round_count < 7 {
        road.step();
    }
    road.rate = RATE / 4;
    road.reach(State::Drain);
    let round = road.model.round_count;
    while road.state() == State::Drain {
        road.step();
    }
    assert_eq!(road.model.round_count, round + 4);
    assert!(road.model.packets.in_flight > BDP + PACKET);
}

#[test]
fn up_ends_when_three_rounds_bring_no_more_and_down_when_the_queue_is_gone() {
    let mut road = Road::new();
    road.reach(State::Up);
    let round = road.model.round_count;
    road.reach(State::Down);
    assert_eq!(road.model.round_count, round + 3);
    assert!(road.queued() > 0 && !road.model.prev_probe_too_high);
    road.reach(State::Cruise);
    assert!(road.queued() <= PACKET);
    // 2 to 3 s, or as many rounds as packets fit the path: 40.
    let began = road.model.cycle_at;
    road.reach(State::Refill);
    assert!((39 * 41..45 * 42).contains(&road.now.since(began).as_millis()), "{}", road.now.since(began));
}

#[test]
fn a_probe_that_loses_too_much_ends_and_bounds_what_is_in_flight() {
    for application in [None, Some(RATE / 2)] {
        let mut road = Road::new();
        road.reach(State::Up);
        road.application = application;
        road.loses = 8;
        road.drive(Duration::from_millis(200));
        assert!(road.model.prev_probe_too_high);
        assert!(road.since(State::Down) > road.since(State::Up), "{:?}", road.states);
        assert!(road.model.cwnd >= BDP / 2);
    }
}

#[test]
fn the_probe_after_one_that_lost_too_much_ends_at_the_bound_and_the_next_goes_beyond_it() {
    let mut road = Road::new();
    road.reach(State::Up);
    road.loses = 8;
    road.reach(State::Down);
    road.loses = 0;
    let bound = road.model.inflight_longterm;
    assert!(bound < NONE);
    road.reach(State::Up);
    let began = road.now;
    road.reach(State::Down);
    assert!(road.now.since(began) < RTT * 2 && road.model.prev_probe_precautionary);
    // Nothing was lost: at once again, without Cruise.
    road.reach(State::Refill);
    assert!(road.since(State::Cruise) < road.since(State::Down));
    road.reach(State::Up);
    road.reach(State::Down);
    assert!(road.model.inflight_longterm > bound);
}

#[test]
fn a_bandwidth_tenfold_is_found_and_so_is_a_tenth() {
    let mut road = Road::new();
    road.queue = 40 * BDP;
    road.reach(State::Cruise);
    road.rate = 10 * RATE;
    road.drive(seconds(8));
    assert!(road.is_near(10 * RATE), "{}", road.model.max_bw());
    road.rate = RATE;
    road.queue = BDP;
    road.drive(seconds(15));
    assert!(road.is_near(RATE), "{}", road.model.max_bw());
    assert!(road.share(seconds(10)) > 0.95);
}

#[test]
fn each_five_seconds_it_looks_how_long_the_path_is() {
    let mut road = Road::new();
    road.reach(State::Cruise);
    road.drive(seconds(20));
    let probes: Vec<Instant> =
        road.states.iter().filter(|(_, state)| *state == State::ProbeRtt).map(|(at, _)| *at).collect();
    assert!((2..=4).contains(&probes.len()), "{:?}", road.states);
    let after =
        road.states.iter().position(|(_, state)| *state == State::ProbeRtt).expect("there is one") + 1;
    let lasted = road.states[after].0.since(probes[0]).as_millis();
    assert!((200..400).contains(&lasted), "{lasted}");
    assert_eq!(road.states[after].1, State::Cruise);
    assert_eq!(road.model.min_rtt.expect("it is known").as_millis(), 41);
}

#[test]
fn silence_is_look_enough() {
    let mut road = Road::new();
    road.reach(State::Cruise);
    road.application = Some(0);
    road.drive(seconds(6));
    road.application = None;
    road.model.packets.limit();
    road.drive(seconds(1));
    assert_eq!(road.since(State::ProbeRtt), None);
}

#[test]
fn a_look_before_the_pipe_was_ever_full_ends_in_startup() {
    let mut road = Road::new();
    road.application = Some(RATE / 4);
    road.drive(seconds(1));
    // A longer path from now on.
    road.free_at = road.now + RTT;
    road.rate = RATE / 3;
    road.drive(seconds(12));
    assert!(road.since(State::ProbeRtt).is_some(), "{:?}", road.states);
    assert_eq!(road.state(), State::Startup);
}

#[test]
fn a_path_that_delivers_in_lumps_is_filled() {
    let mut road = Road::new();
    road.slot = Duration::from_millis(20);
    road.drive(seconds(3));
    let share = road.share(seconds(10));
    assert!(share > 0.9, "{share}");
    assert!(road.model.cwnd > 2 * BDP);
}

#[test]
fn a_path_of_less_than_a_packet_has_four_under_way() {
    let mut road = Road::new();
    road.rate = RATE / 100;
    road.drive(seconds(20));
    assert_eq!(road.model.cwnd, 4 * PACKET + if road.state() == State::Up { 2 * PACKET } else { 0 });
    assert!(road.share(seconds(30)) > 0.95);
}

#[test]
fn losses_outside_of_probes_take_it_down_by_as_much_as_is_lost() {
    let mut road = Road::new();
    road.reach(State::Cruise);
    road.loses = 100;
    let share = road.share(seconds(20));
    // A hundredth a round, for the 40 rounds of a cycle.
    assert!((0.7..0.9).contains(&share), "{share}");
    road.loses = 0;
    road.drive(seconds(6));
    assert!(road.share(seconds(10)) > 0.95);
}

#[test]
fn what_was_not_lost_after_all_is_made_good() {
    let mut road = Road::new();
    road.reach(State::Up);
    let window = road.model.cwnd;
    road.loses = 8;
    road.reach(State::Down);
    assert!(road.model.inflight_longterm < NONE);
    road.model.on_spurious();
    assert_eq!((road.state(), road.model.inflight_longterm), (State::Refill, NONE));
    assert!(road.model.cwnd >= window);
}

#[test]
fn a_slow_opening_is_no_reason_to_look_how_long_the_path_is() {
    let mut road = Road::new();
    road.now += seconds(7);
    road.next_send = road.now;
    road.drive(seconds(1));
    assert_eq!(road.since(State::ProbeRtt), None);
}

#[test]
fn on_a_path_of_less_than_a_packet_the_bandwidth_ages() {
    let mut road = Road::new();
    (road.rate, road.queue) = (RATE / 50, 6 * PACKET);
    // As small packets measured it.
    road.model.min_rtt = Some(RTT);
    road.model.probe_rtt_min = Some(RTT);
    road.drive(seconds(20));
    road.rate = RATE / 100;
    road.drive(seconds(60));
    assert!(road.since(State::Cruise).is_some() && road.is_near(RATE / 100), "{}", road.model.max_bw());
}

#[test]
fn what_was_lost_on_another_path_is_not_this_ones() {
    let mut road = Road::new();
    road.reach(State::Cruise);
    let before = (road.model.packets.lost, road.model.packets.in_flight);
    road.model.on_packet_lost(road.now, u64::MAX, PACKET);
    assert_eq!((road.model.packets.lost, road.model.packets.in_flight), before);
}

#[test]
fn a_short_queue_loses_little() {
    let mut road = Road::new();
    road.queue = BDP / 4;
    road.drive(seconds(3));
    let (drops, sent) = (road.drops, road.next_number);
    let share = road.share(seconds(30));
    assert!(share > 0.9, "{share}");
    let lost = (road.drops - drops) as f64 / (road.next_number - sent) as f64;
    assert!(lost < 0.02, "{lost}");
}

#[test]
fn marks_count_as_losses_of_nothing() {
    let mut road = Road::new();
    road.reach(State::Cruise);
    let before = road.model.bw;
    road.rate = RATE / 2;
    for _ in 0..20 {
        road.drive(RTT);
        road.model.on_marked(road.now, road.now);
    }
    assert!(road.model.bw < before * 3 / 4 && road.model.packets.lost == 0);
}

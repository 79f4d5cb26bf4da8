//! What a slow host does to its packets: each takes a while of its only processor, and now and then that is busy with
//! something else.
//!
//! ```text
//!   transport ──> [ waits for the processor, is worked on ] ──> link
//!   transport <── [ the same processor                    ] <── link
//! ```
//!
//! A link at whose end such a host stands is wrapped: what the host sends reaches the link when it has been worked on, and what
//! arrives is handed on when it has been. The packet points of the host lie before that work when it sends and after it when it
//! receives, as a capture in the host itself would.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use airloom_base::random::Stream;
use airloom_base::{
    Backlog, Bearer, BearerEvent, Change, Condition, ConfigError, Cx, Direction, Duration, Fault, Grade,
    Instant, Packet, Passed, Station, Summary, Unsupported,
};
use delegate::delegate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

/// Packets that wait for the processor in a direction of a link; those beyond are dropped, as a driver's ring drops them.
const MOST_WAITING: usize = 4096;

/// Shortest mean times of absences and between them.
const SHORTEST: Duration = Duration::from_millis(1);

/// So many absences are walked through one by one.
const MOST_WALKED: u32 = 1000;

/// How long the processor of a host takes for packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Work {
    /// Mean time for a packet with payload that it sends.
    pub send: Duration,
    /// Mean time for a packet with payload that arrives.
    pub receive: Duration,
    /// Mean time for a packet without payload, an acknowledgement, in either direction.
    pub bare: Duration,
    /// `"fixed"` or `"exponential"`.
    pub law: WorkLaw,
    /// When the processor is busy with something else, if it ever is.
    pub away: Option<Away>,
}

/// The law of the times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WorkLaw {
    /// All alike.
    #[default]
    Fixed,
    /// Exponential.
    Exponential,
}

/// Times in which a processor has no time for packets. Both laws are exponential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(deny_unknown_fields, default)]
pub struct Away {
    /// Mean time from the end of one to the begin of the next.
    #[default(Duration::from_secs(2))]
    pub every: Duration,
    /// Mean length of one.
    #[default(Duration::from_millis(300))]
    pub lasting: Duration,
}

impl Work {
    /// Looks for what makes no sense.
    ///
    /// # Errors
    /// The key.
    pub fn check(&self) -> Result<(), ConfigError> {
        let longest = Duration::from_secs(60);
        if [self.send, self.receive, self.bare].iter().any(|time| *time > longest) {
            return Err(ConfigError::at("work", "a packet takes at most a minute"));
        }
        match self.away {
            Some(away) if away.every < SHORTEST || away.lasting < SHORTEST => {
                let message = format!("`away`: `every` and `lasting` are at least {SHORTEST}");
                Err(ConfigError::at("work", message))
            }
            _ => Ok(()),
        }
    }
}

/// The processor of a host, for all its links.
pub(crate) struct Processor {
    work: Work,
    services: Stream,
    absences: Stream,
    /// When it has done all that was given to it.
    free: Instant,
    /// The next time in which it is away.
    away: Option<(Instant, Instant)>,
}

impl Processor {
    /// Of the host called `host`.
    pub(crate) fn new(work: Work, seed: u64, host: &str) -> Processor {
        let stream = |purpose: &str| Stream::new(seed, &format!("{host}.work.{purpose}"));
        let mut this = Processor {
            work,
            services: stream("packets"),
            absences: stream("away"),
            free: Instant::ZERO,
            away: None,
        };
        this.next_absence(Instant::ZERO);
        this
    }

    fn next_absence(&mut self, after: Instant) {
        let Some(away) = self.work.away else { return };
        let begin = after + self.absences.exponential(away.every);
        // Neither is zero, so that time passes.
        let length = self.absences.exponential(away.lasting).max(Duration::from_nanos(1));
        self.away = Some((begin, begin + length));
    }

    /// When a packet that comes now has been worked on, and how long that takes. Work that is under way when the processor goes away is
    /// done first.
    fn serve(&mut self, now: Instant, packet: &Packet, sends: bool) -> (Instant, Duration) {
        let mean = match (packet.body().is_empty(), sends) {
            (true, _) => self.work.bare,
            (false, true) => self.work.send,
            (false, false) => self.work.receive,
        };
        let time = match self.work.law {
            WorkLaw::Fixed => mean,
            WorkLaw::Exponential => self.services.exponential(mean),
        };
        self.free = self.present(self.free.max(now)) + time;
        (self.free, time)
    }

    /// When it is there again, from this moment on.
    fn present(&mut self, mut begin: Instant) -> Instant {
        let mut walked = 0;
        // Absences of centuries end at the end of time, and there is nothing behind it.
        while let Some((_, until)) =
            self.away.filter(|(from, _)| *from <= begin && begin < Instant::FAR_FUTURE)
        {
            walked += 1;
            if walked > MOST_WALKED {
                return self.present_after_long(begin);
            }
            begin = begin.max(until);
            self.next_absence(until);
        }
        begin
    }

    /// The same so long after the last packet that it does not matter any more where it was then. Both laws are exponential: what is left
    /// of an absence, or of the time between two, is as long as a whole one, whenever one looks.
    fn present_after_long(&mut self, begin: Instant) -> Instant {
        let Some(Away { every, lasting }) = self.work.away else { return begin };
        let share = lasting.as_secs_f64() / (every.as_secs_f64() + lasting.as_secs_f64());
        let left =
            if self.absences.chance(share) { self.absences.exponential(lasting) } else { Duration::ZERO };
        self.next_absence(begin + left);
        begin + left
    }
}

type Shared = Arc<Mutex<Processor>>;

/// A packet between a host's transport and a link: when it has been worked on, and how long that takes.
struct Job {
    at: Instant,
    time: Duration,
    direction: Direction,
    station: Station,
    packet: Packet,
}

/// In order of their times.
type Waiting = VecDeque<Job>;

/// A link with slow hosts at its ends.
pub(crate) struct Worked {
    link: Box<dyn Bearer>,
    /// By station, and of the far end.
    near: Vec<Option<Shared>>,
    far: Option<Shared>,
    /// A list for each end: times of one processor only grow, those of two are not in one order.
    sending: Vec<Waiting>,
    arriving: Vec<Waiting>,
    now: Instant,
    /// Packets of this link that were worked on, and how long that took.
    worked: (u64, Duration),
    dropped: u64,
}

impl Worked {
    pub(crate) fn new(link: Box<dyn Bearer>, near: Vec<Option<Shared>>, far: Option<Shared>) -> Worked {
        let ends = near.len() + 1;
        let lists = || (0..ends).map(|_| Waiting::new()).collect();
        let worked = (0, Duration::ZERO);
        Worked {
            link,
            near,
            far,
            sending: lists(),
            arriving: lists(),
            now: Instant::ZERO,
            worked,
            dropped: 0,
        }
    }

    /// The place of the end that sends (or receives) in this direction.
    fn place(&self, direction: Direction, station: Station, sends: bool) -> usize {
        let is_near = (direction == Direction::Uplink) == sends;
        if is_near { usize::from(station.0).min(self.near.len()) } else { self.near.len() }
    }

    fn processor(&self, place: usize) -> Option<&Shared> {
        self.near.get(place).unwrap_or(&self.far).as_ref()
    }

    /// Work on a packet at this end.
    fn job(&self, place: usize, direction: Direction, station: Station, packet: Packet, sends: bool) -> Job {
        let (at, time) = match self.processor(place) {
            // Nothing panics while it is held.
            Some(processor) => {
                processor.lock().unwrap_or_else(PoisonError::into_inner).serve(self.now, &packet, sends)
            }
            None => (self.now, Duration::ZERO),
        };
        Job { at, time, direction, station, packet }
    }

    /// The first of a list has been worked on.
    fn finish(&mut self, place: usize, sends: bool) -> Option<Job> {
        let is_slow = self.processor(place).is_some();
        let list = if sends { &mut self.sending[place] } else { &mut self.arriving[place] };
        let job = list.pop_front()?;
        if is_slow {
            self.worked = (self.worked.0 + 1, self.worked.1 + job.time);
        }
        Some(job)
    }

    /// Takes what the link delivers.
    fn take(&mut self) {
        while let Some((direction, station, packet)) = self.link.poll_delivery() {
            let place = self.place(direction, station, false);
            if self.arriving[place].len() >= MOST_WAITING {
                self.dropped += 1;
                continue;
            }
            let job = self.job(place, direction, station, packet, false);
            self.arriving[place].push_back(job);
        }
    }

    fn earliest(lists: &[Waiting]) -> Option<(Instant, usize)> {
        let heads = lists.iter().enumerate().filter_map(|(n, list)| Some((list.front()?.at, n)));
        heads.min()
    }
}

impl Bearer for Worked {
    fn send(&mut self, cx: &mut Cx, dir: Direction, station: Station, sdu: Packet) {
        self.now = self.now.max(cx.now);
        let place = self.place(dir, station, true);
        if self.processor(place).is_none() {
            self.link.send(cx, dir, station, sdu);
            return self.take();
        }
        if self.sending[place].len() >= MOST_WAITING {
            self.dropped += 1;
            return;
        }
        let job = self.job(place, dir, station, sdu, true);
        self.sending[place].push_back(job);
    }

    fn poll_delivery(&mut self) -> Option<(Direction, Station, Packet)> {
        let (at, place) = Worked::earliest(&self.arriving)?;
        if at > self.now {
            return None;
        }
        self.finish(place, false).map(|job| (job.direction, job.station, job.packet))
    }

    delegate! {
        to self.link {
            fn tells_events(&self) -> bool;
            fn poll_event(&mut self) -> Option<BearerEvent>;
            fn switch(&mut self, now: Instant, fault: Fault, on: bool) -> Result<(), Unsupported>;
            fn faults(&self) -> Vec<(Fault, bool)>;
            fn conditions(&self, out: &mut Vec<Condition>);
            fn passed(&self) -> [Passed; 2];
            fn close(&mut self, cx: &mut Cx);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let waiting = [&self.sending, &self.arriving].map(|lists| Worked::earliest(lists).map(|(at, _)| at));
        let next = [self.link.poll_timeout(), waiting[0], waiting[1]].into_iter().flatten().min();
        next.filter(|at| *at != Instant::FAR_FUTURE)
    }

    fn handle_timeout(&mut self, cx: &mut Cx) {
        // Each at its own time: a late call moves nothing that comes later.
        loop {
            let link = self.link.poll_timeout().filter(|at| *at <= cx.now);
            let sending = Worked::earliest(&self.sending).filter(|(at, _)| *at <= cx.now);
            match (link, sending) {
                (Some(at), other) if other.is_none_or(|(sent, _)| at <= sent) => {
                    self.now = self.now.max(at);
                    self.link.handle_timeout(&mut Cx { now: at, records: &mut *cx.records });
                    self.take();
                    if self.link.poll_timeout() == Some(at) {
                        break;
                    }
                }
                (_, Some((at, place))) => {
                    self.now = self.now.max(at);
                    if let Some(job) = self.finish(place, true) {
                        let then = &mut Cx { now: at, records: &mut *cx.records };
                        self.link.send(then, job.direction, job.station, job.packet);
                        self.take();
                    }
                }
                _ => break,
            }
        }
        self.now = self.now.max(cx.now);
    }

    fn backlog(&self, now: Instant, dir: Direction, station: Station) -> Backlog {
        let mut backlog = self.link.backlog(now, dir, station);
        let waiting = self.sending[self.place(dir, station, true)].iter();
        for job in waiting.filter(|job| (job.direction, job.station) == (dir, station)) {
            backlog.sdus += 1;
            backlog.octets += job.packet.wire_len() as u64;
        }
        backlog
    }

    fn apply(&mut self, cx: &mut Cx, part: &[u16], change: &Change) -> Result<(), Unsupported> {
        self.now = self.now.max(cx.now);
        let answer = self.link.apply(cx, part, change);
        self.take();
        answer
    }

    fn grade(&self) -> Grade {
        // Each datagram takes its time: super-packets are cut.
        match self.link.grade() {
            Grade::Transparent => Grade::Packet,
            grade => grade,
        }
    }

    fn summarise(&self, out: &mut Summary) {
        self.link.summarise(out);
        out.set("worked_packets", self.worked.0 as f64);
        out.set("worked_s", self.worked.1.as_secs_f64());
        out.set("work_dropped", self.dropped as f64);
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::{Body, Outbox};

    use super::*;

    fn processor(work: Work) -> Processor {
        Processor::new(work, 1, "client")
    }

    fn packet(body: u32) -> Packet {
        Packet::build(|_| 40, Body::filler(1, body))
    }

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn packets_are_worked_on_one_after_the_other() {
        let ms = Duration::from_millis;
        let mut cpu = processor(Work { send: ms(20), receive: ms(10), bare: ms(1), ..Work::default() });
        assert_eq!(cpu.serve(at(0), &packet(100), true), (at(20), ms(20)));
        assert_eq!(cpu.serve(at(5), &packet(0), false), (at(21), ms(1)));
        assert_eq!(cpu.serve(at(5), &packet(100), false), (at(31), ms(10)));
        assert_eq!(cpu.serve(at(100), &packet(0), true), (at(101), ms(1)));
    }

    #[test]
    fn nothing_is_done_while_the_processor_is_away() {
        let away = Away { every: Duration::from_secs(1), lasting: Duration::from_millis(500) };
        let send = Duration::from_micros(10);
        let mut cpu = processor(Work { send, away: Some(away), ..Work::default() });
        let (mut late, mut longest) = (0u64, Duration::ZERO);
        for n in 0..100_000u64 {
            let came = at(10 * n);
            let wait = cpu.serve(came, &packet(1), true).0 - came;
            late += u64::from(wait > Duration::from_millis(2));
            longest = longest.max(wait);
        }
        // It is away for a third of the time.
        assert!((late as f64 / 100_000.0 - 1.0 / 3.0).abs() < 0.03, "{late}");
        assert!(longest > Duration::from_secs(2), "{longest:?}");
    }

    #[test]
    fn weeks_without_a_packet_take_no_time_and_leave_the_law_as_it_is() {
        let away = Away { every: Duration::from_millis(2), lasting: Duration::from_millis(1) };
        let mut cpu = processor(Work { away: Some(away), ..Work::default() });
        let came = |n: u64| at(n * 1_000_000_000);
        let waits = (1..=3000).map(|n| cpu.serve(came(n), &packet(1), true).0 - came(n));
        let (mut late, mut total) = (0u64, 0.0);
        for wait in waits {
            late += u64::from(!wait.is_zero());
            total += wait.as_secs_f64();
        }
        assert!((late as f64 / 3000.0 - 1.0 / 3.0).abs() < 0.03, "{late}");
        // What is left of an absence is as long as a whole one.
        assert!((total / late as f64 - 1e-3).abs() < 1e-4, "{total}");
    }

    #[test]
    fn a_link_with_a_slow_host_delivers_later_and_in_order() {
        let mut records = Outbox::default();
        let mut parts = airloom_base::Parts::new(1, "wire", 1, &mut records);
        let entry = airloom_bearers::find("wireline").expect("there is a wire");
        let wire = (entry.build)(&serde_json::json!({ "delay": "10ms" }), &mut parts).expect("valid");
        let slow =
            Work { send: Duration::from_millis(20), receive: Duration::from_millis(5), ..Work::default() };
        let cpu = Arc::new(Mutex::new(processor(slow)));
        let mut link = Worked::new(wire, vec![Some(cpu)], None);
        let mut cx = Cx { now: at(0), records: &mut records };
        for _ in 0..3 {
            link.send(&mut cx, Direction::Uplink, Station(0), packet(100));
            link.send(&mut cx, Direction::Downlink, Station(0), packet(100));
        }
        assert_eq!(link.backlog(at(0), Direction::Uplink, Station(0)).sdus, 3);
        let mut seen = Vec::new();
        while let Some(next) = link.poll_timeout() {
            let mut cx = Cx { now: next, records: &mut records };
            link.handle_timeout(&mut cx);
            while let Some((direction, ..)) = link.poll_delivery() {
                seen.push((direction, next));
            }
        }
        let of = |wanted| seen.iter().filter(|(d, _)| *d == wanted).map(|(_, at)| *at).collect::<Vec<_>>();
        assert_eq!(of(Direction::Uplink), [at(30), at(50), at(70)]);
        // They arrive at 10 ms, when 60 ms of work have been given.
        assert_eq!(of(Direction::Downlink), [at(65), at(70), at(75)]);
        let mut summary = Summary::default();
        link.summarise(&mut summary);
        let worked = ["worked_packets", "worked_s"].map(|name| summary.values[name]);
        assert_eq!(worked, [6.0, 0.075]);
    }

    #[test]
    fn what_goes_wrong_on_a_link_is_seen_and_switched_through_a_slow_host() {
        let mut records = Outbox::default();
        let mut parts = airloom_base::Parts::new(1, "wire", 1, &mut records);
        let entry = airloom_bearers::find("wireline").expect("there is a wire");
        let wire = (entry.build)(&serde_json::json!({}), &mut parts).expect("valid");
        let faults =
            airloom_base::config::read(&serde_json::json!({ "drop": { "rate": 1 } })).expect("valid");
        let faulty = airloom_bearers::faults::Faulty::new(wire, faults, &[], &mut parts).expect("valid");
        let cpu = Arc::new(Mutex::new(processor(Work::default())));
        let mut link = Worked::new(Box::new(faulty), vec![Some(cpu)], None);
        assert_eq!(link.faults(), [(Fault::Drop, true)]);
        assert_eq!(link.switch(at(0), Fault::Drop, false), Ok(()));
        assert_eq!(link.faults(), [(Fault::Drop, false)]);
        assert!(link.switch(at(0), Fault::Nat, true).is_err());
    }

    #[test]
    fn a_processor_that_never_comes_back_holds_packets_for_ever() {
        let away = Away { every: Duration::from_millis(1), lasting: Duration::MAX };
        let mut cpu = processor(Work { away: Some(away), ..Work::default() });
        let last = (0..20).map(|n| cpu.serve(at(1000 + n), &packet(1), true).0).max();
        assert_eq!(last, Some(Instant::FAR_FUTURE));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert!(Work { send: Duration::from_secs(61), ..Work::default() }.check().is_err());
        for every in [Duration::ZERO, Duration::from_micros(999)] {
            let away = Away { every, ..Away::default() };
            assert!(Work { away: Some(away), ..Work::default() }.check().is_err());
        }
        assert!(Work { away: Some(Away::default()), ..Work::default() }.check().is_ok());
    }
}

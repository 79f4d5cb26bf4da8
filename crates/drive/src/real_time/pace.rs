//! Waiting for a deadline, to the microsecond where that matters.
//!
//! A timer's wake-up comes late by what it takes to wake a sleeping processor: tens of microseconds, in a virtual machine
//! rather sixty. So the engine sleeps until a little before a sharp deadline and looks at the clock for the rest. How
//! little is measured ([`Lead`]) from the wake-ups themselves, at the start and as long as it runs. Looking at the clock
//! costs a processor that programs under test may need: it is rationed ([`Ration`]).

use std::io;

use nix::errno::Errno;
use nix::poll::{PollFd, ppoll};
use nix::sys::time::TimeSpec;

use airloom_base::{Duration, Instant};

use super::clock::Clock;
use super::sys::{self, Class};

/// Wake-ups that are remembered.
const REMEMBERED: usize = 128;
/// What is added to the wake-ups seen.
const MARGIN: Duration = Duration::from_micros(10);
/// The lead is never longer, and later wake-ups do not count: they are the scheduler's, and no looking at the clock helps.
const LONGEST: Duration = Duration::from_micros(250);
/// Lead before anything was measured.
const FIRST_GUESS: Duration = Duration::from_micros(150);
/// How many wake-ups are measured at the start, after how long a sleep each.
const TRIALS: usize = 8;
const TRIAL: Duration = Duration::from_micros(100);

/// How long before a deadline to wake up: as late as the latest of recent wake-ups was.
#[derive(getset::CopyGetters)]
pub(super) struct Lead {
    seen: [Duration; REMEMBERED],
    count: usize,
    /// The lead at the moment.
    #[getset(get_copy = "pub(super)")]
    length: Duration,
}

impl Lead {
    fn new() -> Lead {
        Lead { seen: [Duration::ZERO; REMEMBERED], count: 0, length: FIRST_GUESS }
    }

    /// A timer's wake-up came so late.
    fn observe(&mut self, late: Duration) {
        if late > LONGEST {
            return;
        }
        self.seen[self.count % REMEMBERED] = late;
        self.count += 1;
        let latest = self.seen.iter().max().copied().unwrap_or_default();
        self.length = (latest + MARGIN).min(LONGEST);
    }
}

/// Looking at the clock may take one part in so many of a processor.
const SHARE: u64 = 4;
/// What may be saved up in quiet times.
const SAVED: Duration = Duration::from_millis(20);

/// How much looking at the clock is allowed.
struct Ration {
    left: Duration,
    /// Until when it was filled up.
    at: Instant,
}

impl Ration {
    fn new() -> Ration {
        Ration { left: SAVED, at: Instant::ZERO }
    }

    /// Is there enough for `need`?
    fn allows(&mut self, now: Instant, need: Duration) -> bool {
        self.left = (self.left + now.since(self.at) / SHARE).min(SAVED);
        self.at = self.at.max(now);
        self.left >= need
    }

    fn spend(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time);
    }
}

/// Between two looks at the ports while looking at the clock. A datagram that arrives meanwhile has its stamp; it only
/// has to be found before what follows from it is due.
const GLANCE: Duration = Duration::from_micros(5);

/// What the engine waits for after a round.
pub(super) struct Round {
    /// When it began.
    pub(super) began: Instant,
    /// Octets of datagrams that arrived or left in it.
    pub(super) octets: usize,
    /// Datagrams that have arrived since the run began, and their octets.
    pub(super) arrived: (u64, u64),
    /// The shortest time that a datagram took through the model so far.
    pub(super) base_delay: Option<Duration>,
    /// What comes next.
    pub(super) deadline: Instant,
    /// Is it to be met to the microsecond?
    pub(super) sharp: bool,
}

/// Rounds in which little was moved begin no faster than this, unless a deadline is to be met to the microsecond. A
/// flood of small datagrams is then taken in portions: one by one each would cost a wake-up, and the time of the program
/// that sends the next.
const SHORTEST_ROUND: Duration = Duration::from_micros(50);
/// So much is no little: a super-packet, or segments that leave together. To wait for more would only make them late.
const LITTLE: usize = 4096;

/// In a flood they begin no faster than this part of the base delay, one in so many: a quarter of what a run may be late
/// without a doubt.
const FLOOD_SHARE: u64 = 80;
/// But no slower than this.
const LONGEST_ROUND: Duration = Duration::from_micros(250);
/// More than so many small datagrams a second are a flood.
const FLOOD: u64 = 60_000;
/// Small ones are shorter than this, on average.
const SMALL: u64 = 512;
/// How often it is looked whether there is one.
const FLOOD_LOOK: Duration = Duration::from_millis(1);

/// Is there a flood of small datagrams? Each of them to the microsecond would take the processor from the programs that
/// send and receive them.
#[derive(Default)]
struct Flood {
    is_on: bool,
    /// When it was looked last, and what had arrived by then.
    last: (Instant, (u64, u64)),
}

impl Flood {
    fn look(&mut self, now: Instant, arrived: (u64, u64)) -> bool {
        let (before, (count, octets)) = self.last;
        let time = now.since(before);
        if time >= FLOOD_LOOK {
            let (count, octets) = (arrived.0 - count, arrived.1 - octets);
            let is_fast = count * 1_000_000_000 > FLOOD.saturating_mul(time.as_nanos());
            (self.is_on, self.last) = (is_fast && octets < SMALL * count, (now, arrived));
        }
        self.is_on
    }
}

impl Round {
    /// How long to leave everything alone, if at all.
    fn rest(&self, now: Instant, is_flood: bool) -> Option<Duration> {
        let round = match self.base_delay.filter(|_| is_flood) {
            Some(delay) => (delay / FLOOD_SHARE).max(SHORTEST_ROUND).min(LONGEST_ROUND),
            None => SHORTEST_ROUND,
        };
        let rest = (self.began + round).since(now);
        (self.octets > 0 && (is_flood || self.octets < LITTLE) && !rest.is_zero()).then_some(rest)
    }
}

/// How the engine waits.
pub(super) struct Pace {
    pub(super) lead: Lead,
    ration: Ration,
    flood: Flood,
}

impl Pace {
    /// Asks for the best scheduling that is allowed, and measures wake-ups.
    pub(super) fn start(clock: &Clock) -> Pace {
        let _ = nix::sys::prctl::set_timerslack(1);
        let mut pace = Pace { lead: Lead::new(), ration: Ration::new(), flood: Flood::default() };
        for _ in 0..TRIALS {
            let until = clock.now() + TRIAL;
            if let Ok(0) = sleep(&mut [], TRIAL) {
                pace.lead.observe(clock.now().since(until));
            }
        }
        pace
    }

    /// Waits until one of `ports` can be read, until `deadline`, or until a signal arrives. With `sharp` it is back
    /// within a microsecond of the deadline, if it can be. How long it looked at the clock is its answer.
    pub(super) fn wait(
        &mut self,
        clock: &Clock,
        ports: &mut [PollFd],
        round: &Round,
    ) -> io::Result<Duration> {
        let Round { deadline, sharp, .. } = *round;
        let now = clock.now();
        let left = deadline.since(now);
        if left.is_zero() {
            return Ok(Duration::ZERO);
        }
        let lead = self.lead.length();
        let is_flood = self.flood.look(now, round.arrived);
        let sharp = sharp && !is_flood && self.ration.allows(now, lead.min(left));
        if !sharp && let Some(rest) = round.rest(now, is_flood) {
            sleep(&mut [], rest.min(left))?;
            return Ok(Duration::ZERO);
        }
        let nap = if sharp { left.saturating_sub(lead) } else { left };
        if !nap.is_zero() {
            let until = now + nap;
            if sleep(ports, nap)? > 0 {
                return Ok(Duration::ZERO);
            }
            self.lead.observe(clock.now().since(until));
            if !sharp {
                return Ok(Duration::ZERO);
            }
        }
        let from = clock.now();
        let mut glance = from + GLANCE;
        let now = loop {
            let now = clock.now();
            if now >= deadline {
                break now;
            }
            if now >= glance {
                glance = now + GLANCE;
                if sleep(ports, Duration::ZERO)? > 0 {
                    break clock.now();
                }
            }
            std::hint::spin_loop();
        };
        let looked = now.since(from);
        self.ration.spend(looked);
        Ok(looked)
    }
}

/// Waits for `time`, or until one of `descriptors` can be read: how many can. A signal counts as one.
pub(super) fn sleep(descriptors: &mut [PollFd], time: Duration) -> io::Result<usize> {
    let (seconds, rest) = (time.as_nanos() / 1_000_000_000, time.as_nanos() % 1_000_000_000);
    // As far as the type goes: nobody waits longer than that.
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX).min(i64::from(i32::MAX));
    match ppoll(descriptors, Some(TimeSpec::new(seconds, rest as i64)), None) {
        Ok(ready) => Ok(ready as usize),
        Err(Errno::EINTR) => Ok(1),
        Err(error) => Err(error.into()),
    }
}

/// How the kernel schedules the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Before all ordinary programs.
    RealTime,
    /// As they are, but with short turns, which come sooner.
    ShortTurns,
    /// As they are.
    Ordinary,
}

impl Priority {
    /// As in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Priority::RealTime => "real-time",
            Priority::ShortTurns => "short turns",
            Priority::Ordinary => "ordinary",
        }
    }

    /// The best that this process may have, for the calling thread. A busy engine with real-time priority would keep
    /// the programs under test from running: `busy` asks for short turns at once.
    pub(super) fn best(busy: bool) -> Priority {
        if !busy && sys::schedule(Class::RealTime).is_ok() {
            Priority::RealTime
        } else if sys::schedule(Class::ShortTurns).is_ok() {
            Priority::ShortTurns
        } else {
            Priority::Ordinary
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(n: u64) -> Duration {
        Duration::from_micros(n)
    }

    #[test]
    fn the_lead_follows_the_wake_ups_and_leaves_out_the_schedulers() {
        let mut lead = Lead::new();
        assert_eq!(lead.length(), FIRST_GUESS);
        lead.observe(us(60));
        assert_eq!(lead.length(), us(70));
        (0..200).for_each(|_| lead.observe(us(50)));
        assert_eq!(lead.length(), us(60));
        // What the scheduler delayed says nothing about the next one.
        lead.observe(us(5000));
        lead.observe(us(251));
        assert_eq!(lead.length(), us(60));
        // A machine that gets slower is believed at once, one that gets faster after a while.
        lead.observe(us(90));
        (0..127).for_each(|_| lead.observe(us(50)));
        assert_eq!(lead.length(), us(100));
        lead.observe(us(50));
        assert_eq!(lead.length(), us(60));
        lead.observe(us(249));
        assert_eq!(lead.length(), LONGEST);
    }

    #[test]
    fn only_rounds_that_moved_little_are_followed_by_a_rest() {
        let at = |micros| Instant::ZERO + us(micros);
        let round = |octets| Round {
            began: at(100),
            octets,
            arrived: (1, 1),
            base_delay: Some(us(8000)),
            deadline: at(1000),
            sharp: false,
        };
        assert_eq!(
            round(0).rest(at(101), false),
            None,
            "nothing happened: whatever comes next is heard at once"
        );
        assert_eq!(round(100).rest(at(110), false), Some(us(40)));
        assert_eq!(round(4095).rest(at(150), false), None, "it took as long already");
        assert_eq!(round(4096).rest(at(110), false), None);
        assert_eq!(round(4096).rest(at(110), true), Some(us(90)), "many small ones, 8 ms through the model");
        let flood = |delay| Round { base_delay: Some(us(delay)), ..round(4096) }.rest(at(110), true);
        assert_eq!((flood(100), flood(50_000)), (Some(us(40)), Some(us(240))));
        assert_eq!(round(0).rest(at(110), true), None);
    }

    #[test]
    fn many_small_datagrams_for_a_millisecond_are_a_flood_and_large_ones_are_none() {
        let at = |micros| Instant::ZERO + us(micros);
        let mut flood = Flood::default();
        assert!(!flood.look(at(900), (900, 90_000)), "not for long enough");
        assert!(flood.look(at(1000), (1000, 100_000)));
        assert!(flood.look(at(1900), (1000, 100_000)));
        assert!(!flood.look(at(2000), (1060, 106_000)), "60,000 a second");
        assert!(flood.look(at(3000), (1121, 112_100)));
        assert!(!flood.look(at(4000), (2121, 1_500_000)), "large ones");
    }

    #[test]
    fn looking_at_the_clock_is_rationed() {
        let mut ration = Ration::new();
        let mut now = Instant::ZERO;
        let mut looked = Duration::ZERO;
        // A deadline every 100 us for ten seconds, each wanting all of it.
        for _ in 0..100_000 {
            now += us(100);
            if ration.allows(now, us(100)) {
                ration.spend(us(100));
                looked += us(100);
            }
        }
        let allowed = now.since(Instant::ZERO) / SHARE + SAVED;
        assert!(looked <= allowed && looked + us(1000) >= allowed, "{looked}");
        // Quiet times are not saved up without end.
        now += Duration::from_secs(60);
        assert!(ration.allows(now, SAVED));
        assert!(!ration.allows(now, SAVED + us(1)));
    }
}

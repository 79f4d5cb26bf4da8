//! Virtual time: jump from deadline to deadline.

use airloom_base::{Duration, Instant, Outbox};
use airloom_world::World;
use airloom_world::scenario::{self, Scenario};

/// How long a run lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Until every application has finished; it is an error if that takes longer than the limit.
    Done {
        /// The longest it may take.
        limit: Duration,
    },
    /// For so long, whatever the applications do.
    Elapsed(Duration),
}

impl Until {
    /// As the scenario says.
    pub fn of(scenario: &Scenario) -> Until {
        match scenario.run.until {
            scenario::Until::Done => Until::Done { limit: scenario.run.limit },
            scenario::Until::After(time) => Until::Elapsed(time),
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Outcome {
    /// As it should: all done, or the time is over.
    Complete,
    /// The limit was reached before everything was done.
    LimitReached,
    /// Nothing could happen any more before everything was done.
    Stuck,
    /// The caller stopped it.
    Stopped,
}

impl Outcome {
    /// Why there is no result; `None` if there is.
    pub const fn why(self) -> Option<&'static str> {
        match self {
            Outcome::Complete => None,
            Outcome::LimitReached => Some("not done within run.limit"),
            Outcome::Stuck => Some("nothing more could happen, and not everything was done"),
            Outcome::Stopped => Some("it was stopped"),
        }
    }
}

/// How many events are handled between two looks at the caller.
const BATCH: u32 = 1024;

/// Runs `world` to the end. `look` is called now and then with the time and the records made since: it takes them
/// out (they are forgotten afterwards) and says whether to go on.
pub fn run(world: &mut World, until: Until, mut look: impl FnMut(Instant, &mut Outbox) -> bool) -> Outcome {
    let end = Instant::ZERO
        + match until {
            Until::Done { limit } => limit,
            Until::Elapsed(time) => time,
        };
    let waits = matches!(until, Until::Done { .. });
    let outcome = 'run: loop {
        for _ in 0..BATCH {
            if waits && world.is_finished() {
                break 'run Outcome::Complete;
            }
            if !world.step(end) {
                break 'run match (waits, world.poll_timeout()) {
                    // Time passes although nothing happens any more.
                    (false, _) => {
                        world.handle_timeout(end);
                        Outcome::Complete
                    }
                    (true, _) if world.is_finished() => Outcome::Complete,
                    (true, None) => Outcome::Stuck,
                    (true, Some(_)) => Outcome::LimitReached,
                };
            }
        }
        let now = world.now();
        let go_on = look(now, world.records());
        world.records().clear();
        if !go_on {
            break Outcome::Stopped;
        }
    };
    world.close_books();
    let now = world.now();
    look(now, world.records());
    world.records().clear();
    outcome
}

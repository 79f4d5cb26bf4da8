//! Live control: other threads change the links of a run that goes on, and see how they are.
//!
//! A change is read and checked as an entry of the timeline is, and rehearsed on a network of the same kind that never
//! runs; only then the engine gets it. It makes it at a moment of nominal time of its own, so that the same change at that time
//! in a timeline does the same in virtual time.

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use airloom_base::{Condition, Instant};
use airloom_world::scenario::{Live, Scenario, ScenarioError};
use serde_json::Value;

use super::exchange::{Ask, Shared, Unheard};

/// Why nothing was changed, or nothing can be said.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The change makes no sense.
    #[error(transparent)]
    Change(ScenarioError),
    /// The link could not do it at this moment.
    #[error("change: {0}")]
    Link(String),
    /// The run is over.
    #[error("the run is over")]
    Over,
    /// Too many requests wait already.
    #[error("too many changes wait already")]
    Busy,
}

impl From<Unheard> for Refused {
    fn from(why: Unheard) -> Refused {
        match why {
            Unheard::Over => Refused::Over,
            Unheard::Busy => Refused::Busy,
        }
    }
}

/// A link, or a part of it, and how it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// As the timeline names it: `bundle.member.3`.
    pub target: String,
    /// How it is.
    pub condition: Condition,
}

/// Changes the links of a run in real time. Copies control the same run.
#[derive(Clone)]
pub struct Control {
    shared: Arc<Shared>,
    live: Arc<Mutex<Live>>,
}

impl Control {
    pub(super) fn new(shared: Arc<Shared>, scenario: &Scenario) -> Control {
        Control { shared, live: Arc::new(Mutex::new(Live::new(scenario))) }
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a change, written as in a timeline: `"bundle.member.3"`, `{ "state": "down" }`. Says when it was made. Without
    /// `keep` it is in no [`timeline`](Self::timeline), and there may be any number of them.
    ///
    /// # Errors
    /// What is wrong with it; the run is then as it was. But with [`Refused::Link`], of an entry of several changes those
    /// before the one that the link could not do are made, and not in [`timeline`](Self::timeline).
    pub fn change(&self, target: &str, set: &Value, keep: bool) -> Result<Instant, Refused> {
        // Held until it is made: changes are written down in the order in which they happen.
        let mut live = self.live();
        let entry = live.read(target, set, keep).map_err(Refused::Change)?;
        let (answer, answered) = sync_channel(1);
        let link = u32::try_from(entry.link).unwrap_or(u32::MAX);
        let (part, changes) = (entry.part.clone(), entry.changes.clone());
        self.shared.ask(Ask::Change { link, part, changes, answer })?;
        let at = answered.recv().map_err(|_| Refused::Over)?.map_err(|why| Refused::Link(why.to_owned()))?;
        if keep {
            live.made(at.since(Instant::ZERO), entry);
        }
        Ok(at)
    }

    /// How all links and their parts are, and when they were so.
    ///
    /// # Errors
    /// The run is over.
    pub fn look(&self) -> Result<(Instant, Vec<Reading>), Refused> {
        let (answer, answered) = sync_channel(1);
        self.shared.ask(Ask::Look { answer })?;
        let (at, links) = answered.recv().map_err(|_| Refused::Over)?;
        let live = self.live();
        let readings = links
            .into_iter()
            .enumerate()
            .flat_map(|(link, conditions)| conditions.into_iter().map(move |condition| (link, condition)));
        let name = |(link, condition): (usize, Condition)| Reading {
            target: live.scenario().target(link, &condition.part),
            condition,
        };
        Ok((at, readings.map(name).collect()))
    }

    /// Ends the run, as if it had come to its end by itself.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// The changes that were made, as entries of a timeline.
    pub fn timeline(&self) -> Value {
        self.live().timeline()
    }

    /// The scenario whose timeline makes them too.
    pub fn replay(&self) -> Scenario {
        self.live().replay()
    }
}

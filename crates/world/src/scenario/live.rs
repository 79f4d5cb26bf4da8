//! Changes by hand while a scenario runs: read and checked like entries of the timeline, and written down as such.

use airloom_base::Duration;
use serde_json::{Value, json};

use super::check::key_of;
use super::document::Document;
use super::errors::ScenarioError;
use super::links::by_name;
use super::schema::{Scenario, TimelineEntry};
use super::timeline::{self, MOST_ENTRIES};
use crate::world::World;

/// What stands before the complaint about a change.
const NAME: &str = "change";

/// Reads changes of a scenario that runs somewhere else, and keeps those that were made.
#[derive(getset::Getters)]
pub struct Live {
    /// The scenario, as it was begun.
    #[getset(get = "pub")]
    scenario: Scenario,
    /// Another one of the same kind that never runs: what it does not take never reaches the one that does. Made for the
    /// first change.
    rehearsal: Option<World>,
    made: Vec<TimelineEntry>,
}

impl Live {
    /// For a run of this scenario.
    pub fn new(scenario: &Scenario) -> Live {
        Live { scenario: scenario.clone(), rehearsal: None, made: Vec::new() }
    }

    /// The change that `target` and `set` mean: `"bundle.member.3"` and `{ "state": "down" }`, as in the timeline. Those
    /// that one may `keep` are limited in number.
    ///
    /// # Errors
    /// What is wrong with it, in one line: a name, a key, a value, or something that the link cannot do.
    pub fn read(&mut self, target: &str, set: &Value, keep: bool) -> Result<TimelineEntry, ScenarioError> {
        let text = json!({ "target": target, "set": set }).to_string();
        let document = Document::read(NAME, text.as_bytes())?;
        let refused = |path: &[&str], message: &str| document.error(path, message);
        if keep && self.made.len() >= MOST_ENTRIES {
            return Err(refused(&[], &format!("a run takes at most {MOST_ENTRIES} changes")));
        }
        let names = by_name(&self.scenario.links);
        let entry = timeline::change(Duration::ZERO, document.root(), &names)
            .map_err(|fault| document.located(&fault))?;
        let mut rehearsal = match self.rehearsal.take() {
            Some(world) => world,
            None => self.rehearse_again().map_err(|why| refused(&[], &why))?,
        };
        for change in &entry.changes {
            // With it goes what of the entry was taken before.
            rehearsal
                .rehearse(entry.link, &entry.part, change)
                .map_err(|why| refused(&["set", key_of(change)], why.0))?;
        }
        self.rehearsal = Some(rehearsal);
        Ok(entry)
    }

    /// A change was made so long after the beginning.
    pub fn made(&mut self, at: Duration, entry: TimelineEntry) {
        self.made.push(TimelineEntry { at, ..entry });
    }

    /// The changes that were made, as entries of a timeline.
    pub fn timeline(&self) -> Value {
        self.made.iter().map(|entry| self.scenario.change(entry)).collect()
    }

    /// The scenario in which the timeline makes these changes too: run in virtual time it repeats them.
    pub fn replay(&self) -> Scenario {
        let mut scenario = self.scenario.clone();
        scenario.timeline.extend(self.made.iter().cloned());
        scenario
    }

    fn rehearse_again(&self) -> Result<World, String> {
        let mut world = self.scenario.build(false).map_err(|e| e.to_string())?;
        for entry in &self.made {
            for change in &entry.changes {
                world.rehearse(entry.link, &entry.part, change).map_err(|why| why.0.to_owned())?;
            }
        }
        Ok(world)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUNDLE: &str = r#"
        path = ["a", "bundle", "b", "wire", "c"]
        [hosts]
        a = { app = { bulk = { size = "1kB" } } }
        b = {}
        c = { app = "bulk-server" }
        [links]
        bundle = { bearer = "mlppp", members = ["piafs"], copies = 3 }
        wire = { bearer = "wireline" }
        [[timeline]]
        at = "1s"
        target = "bundle.member.0"
        set = { state = "down" }
        "#;

    fn live() -> Live {
        Live::new(&Scenario::parse("s.toml", BUNDLE).unwrap())
    }

    #[test]
    fn what_was_made_stands_behind_the_timeline_and_can_be_read_again() {
        let mut live = live();
        for (ms, target, set) in [
            (1500, "bundle.member.2", json!({ "state": "down" })),
            (2500, "wire", json!({ "rate": { "downlink": "1Mbit/s" }, "loss": 0.25 })),
            (3500, "bundle.member.2", json!({ "state": "up" })),
        ] {
            let entry = live.read(target, &set, true).unwrap();
            live.made(Duration::from_millis(ms), entry);
        }
        let replay = live.replay();
        assert_eq!(replay.timeline.len(), 4);
        let text = replay.to_json().to_string();
        assert_eq!(Scenario::parse("again.json", &text).unwrap(), replay);
        let said = live.timeline();
        assert_eq!(
            said[0],
            json!({ "at": "1500ms", "target": "bundle.member.2", "set": { "state": "down" } })
        );
        assert_eq!(said[1]["set"]["rate"]["downlink"], "1Mbit/s");
    }

    #[test]
    fn a_change_that_makes_no_sense_is_refused_in_one_line() {
        let mut live = live();
        for (target, set, line) in [
            (
                "bundel",
                json!({ "state": "up" }),
                "change: target: unknown link `bundel` (did you mean `bundle`?); valid: bundle, wire",
            ),
            (
                "bundle.circuit.1",
                json!({ "state": "up" }),
                "change: target: `bundle.circuit.1` is not a part of a link; a member is written \"bundle.member.3\"",
            ),
            (
                "bundle.member.3",
                json!({ "state": "up" }),
                "change: set.state: the bundle has no such member; they are counted from 0",
            ),
            (
                "bundle.member.1",
                json!({ "state": "off" }),
                "change: set.state: unknown state `off`; valid: up, down",
            ),
            (
                "wire",
                json!({ "rate": "fast" }),
                "change: set.rate: `fast` is not a number with a unit such as \"384kbit/s\" (units: bit/s, kbit/s, Mbit/s, Gbit/s)",
            ),
            ("wire", json!({ "loss": 2 }), "change: set.loss: 2 is not a probability between 0 and 1"),
            (
                "wire",
                json!({ "speed": 2 }),
                "change: set: unknown key `speed`; valid: state, rate, delay, loss, queue, faults",
            ),
            (
                "wire",
                json!({ "faults": { "nat": "off" } }),
                "change: set.faults: the link has nothing of the kind among its `faults`, which could be switched",
            ),
            (
                "wire",
                json!({}),
                "change: set: nothing is changed; valid: state, rate, delay, loss, queue, faults",
            ),
            (
                "wire",
                json!(["down"]),
                "change: set: expected the changes, such as { state = \"down\" }, found a list",
            ),
            (
                "bundle",
                json!({ "delay": "1ms" }),
                "change: set.delay: a bundle has no rate or delay of its own: name a member",
            ),
        ] {
            assert_eq!(live.read(target, &set, true).unwrap_err().to_string(), line);
        }
        assert_eq!(live.timeline(), json!([]));
        live.read("bundle.member.1", &json!({ "state": "down" }), true).unwrap();
    }

    #[test]
    fn changes_that_are_not_kept_are_as_many_as_one_likes() {
        let mut live = live();
        let set = json!({ "delay": "1ms" });
        let entry = live.read("wire", &set, true).unwrap();
        (0..MOST_ENTRIES).for_each(|_| live.made(Duration::ZERO, entry.clone()));
        let full = live.read("wire", &set, true).unwrap_err().to_string();
        assert!(full.ends_with("a run takes at most 100000 changes"), "{full}");
        live.read("wire", &set, false).unwrap();
    }
}

//! Files that others have written: traces, page sets, parts of sweeps, changes by hand.

use airloom_apps::pages::PageSet;
use airloom_base::{Duration, Instant};
use airloom_bearers::trace;
use airloom_world::scenario::{Live, Scenario};
use serde_json::Value;

/// A file of delivery opportunities and one of delays, both of the same text.
pub fn trace(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets);
    for error in [trace::Times::parse("t", &text).err(), trace::Delays::parse("t", &text).err()] {
        assert!(error.is_none_or(|error| error.lines().count() == 1), "errors have one line");
    }
}

/// A page set: what is read is written and read again as the same.
pub fn page_set(octets: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(octets) else { return };
    // A text would be the name of a file.
    if !value.is_object() {
        return;
    }
    if let Ok(set) = serde_json::from_value::<PageSet>(value) {
        let written = serde_json::to_value(&set).expect("it was read");
        assert_eq!(
            serde_json::from_value::<PageSet>(written).ok().as_ref(),
            Some(&set),
            "what was read is written"
        );
    }
}

/// Changes by hand of a run: pairs of a target and a table in JSON, a line each.
pub fn control(octets: &[u8]) {
    let text = String::from_utf8_lossy(octets);
    let mut lines = text.lines();
    let bearer = ["wireline", "umts-dch", "mlppp", "egprs", "piafs"];
    let which = lines.next().unwrap_or_default().len() % bearer.len();
    let scenario = Scenario::for_bearer(bearer[which], &[]).expect("it is ours");
    let mut live = Live::new(&scenario);
    let mut world = scenario.build(true).expect("it is ours");
    let mut now = Instant::ZERO;
    while let (Some(target), Some(set)) = (lines.next(), lines.next()) {
        let Ok(set) = serde_json::from_str::<Value>(set) else { continue };
        match live.read(target, &set, true) {
            Ok(entry) => {
                for change in &entry.changes {
                    world.apply(now, entry.link as u32, &entry.part, change).expect("it was rehearsed");
                }
                live.made(now - Instant::ZERO, entry);
                now += Duration::from_secs(1);
            }
            Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{error}"),
        }
    }
    let _ = (live.timeline(), live.replay().to_json());
}

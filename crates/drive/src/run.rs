//! One run of a scenario in virtual time, from text to tables.

use std::any::Any;
use std::cell::Cell;
use std::io;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Once;

use airloom_base::{Instant, Summary};
use airloom_record::{About, CaptureFile, QlogFiles, Recorder, Tables};
use airloom_world::scenario::{RecordKind, Scenario};
use airloom_world::{BuildError, World};

use crate::virtual_time::{self, Outcome, Until};

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum DriveError {
    /// The scenario cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A file cannot be written.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The timeline asks a link for something it cannot do.
    #[error("{0}")]
    Timeline(String),
    /// The simulator panicked; the sentence says so.
    #[error("{0}")]
    Fault(String),
    /// Real time is not possible here, or a program in a real host failed.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    RealTime(#[from] crate::real_time::Error),
}

/// What a run gave.
pub struct Results {
    /// How it ended.
    pub outcome: Outcome,
    /// Flat name -> number map.
    pub summary: Summary,
    /// Packets, flows, pages, states; of a run in real time none: they are files.
    pub tables: Tables,
}

/// The recorder of a run, with names for hosts and stations. A capture (`trace.pcapng`) and the events of connections
/// (`*.sqlog`) go into `folder`, if there is one and the scenario asks for them.
pub fn recorder(scenario: &Scenario, run_id: &str, folder: Option<&Path>) -> io::Result<Recorder> {
    let mut tables = Tables::default();
    name(scenario, &mut tables);
    let about = About {
        comment: format!("{}, seed {}, run {run_id}", scenario.title, scenario.run.seed),
        application: format!("airloom {}", env!("CARGO_PKG_VERSION")),
        epoch: scenario.run.epoch,
    };
    let wanted = |kind| folder.filter(|_| scenario.run.records(kind));
    let capture = wanted(RecordKind::Pcapng).map(|folder| folder.join("trace.pcapng"));
    let capture = capture.map(|path| CaptureFile::create(path, &about)).transpose()?;
    let qlog = wanted(RecordKind::Qlog).map(|folder| QlogFiles::new(folder, &about));
    Ok(Recorder::new(tables, capture, qlog))
}

/// Tells the tables the hosts and stations of a scenario, in place of those of another.
pub(crate) fn name(scenario: &Scenario, tables: &mut Tables) {
    tables.forget_stations();
    tables.name_hosts(scenario.hosts.iter().map(|h| h.name.clone()));
    for link in &scenario.links {
        for (n, station) in link.near.iter().enumerate() {
            tables.name_station(
                &link.name,
                airloom_base::Station(n as u16),
                &scenario.hosts[station.host].name,
            );
        }
    }
}

/// A change of the timeline that its link could not make is an error, not a result.
pub(crate) fn check_timeline(world: &World) -> Result<(), DriveError> {
    match world.unsupported_change() {
        None => Ok(()),
        Some((link, why)) => {
            Err(DriveError::Timeline(format!("links.{link} cannot change as the timeline asks: {}", why.0)))
        }
    }
}

/// Runs `scenario` in virtual time. `progress` is told the simulated time now and then and says whether to go on.
/// Files that the scenario asks for go into `folder`; a capture has a temporary name until it is whole.
///
/// # Errors
/// What stands in the way; a panic too, which must not end a sweep of which this is one run.
pub fn simulate(
    scenario: &Scenario,
    run_id: &str,
    folder: Option<&Path>,
    progress: impl FnMut(Instant) -> bool,
) -> Result<Results, DriveError> {
    let run = || -> Result<Results, DriveError> {
        let mut recorder = recorder(scenario, run_id, folder)?;
        let (outcome, world) = carry_out(scenario, &mut recorder, progress)?;
        Ok(Results { outcome, summary: world.summary(), tables: recorder.finish()? })
    };
    caught(run).unwrap_or_else(|fault| Err(DriveError::Fault(fault)))
}

thread_local! {
    /// Where this thread panicked last: only the hook is told.
    static PLACE: Cell<Option<String>> = const { Cell::new(None) };
}

/// What `make` gives; if it panics, the sentence that says so, and where. What it had in hand is to be thrown away then.
pub(crate) fn caught<T>(make: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let place = panic.location().map(|at| format!(" at {}:{}", at.file(), at.line()));
            // A thread that ends has no such place any more.
            let _ = PLACE.try_with(|last| last.set(place));
            before(panic);
        }));
    });
    PLACE.set(None);
    catch_unwind(AssertUnwindSafe(make)).map_err(|panic| said(&*panic, &PLACE.take().unwrap_or_default()))
}

fn said(panic: &(dyn Any + Send), place: &str) -> String {
    let why =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("a fault in airloom{place}: {}", why.unwrap_or("it does not say which"))
}

/// The run itself; the world as it is at the end gives the summary.
pub(crate) fn carry_out(
    scenario: &Scenario,
    recorder: &mut Recorder,
    mut progress: impl FnMut(Instant) -> bool,
) -> Result<(Outcome, World), DriveError> {
    let mut world = scenario.build(false)?;
    let mut failed = None;
    let outcome = virtual_time::run(&mut world, Until::of(scenario), |now, records| {
        if let Err(e) = recorder.drain(records) {
            failed.get_or_insert(e);
        }
        failed.is_none() && progress(now)
    });
    if let Some(e) = failed {
        return Err(e.into());
    }
    check_timeline(&world)?;
    Ok((outcome, world))
}

#[cfg(test)]
mod tests {
    use airloom_world::scenario::Document;

    use super::*;

    #[test]
    fn a_panic_is_an_error_of_the_run() {
        let text = "path = [\"a\", \"wire\", \"b\"]\n\
            hosts = { a = { app = { bulk = { size = \"20kB\" } } }, b = { app = \"bulk-server\" } }\n\
            links.wire = { bearer = \"wireline\", rate = \"1Mbit/s\", delay = \"20ms\" }\n";
        let scenario = Document::read("t.toml", text.as_bytes()).unwrap().check().unwrap();
        let error = simulate(&scenario, "", None, |_| panic!("nobody looks")).err().unwrap();
        let said = error.to_string();
        let place =
            said.strip_prefix("a fault in airloom at ").and_then(|said| said.strip_suffix(": nobody looks"));
        assert!(place.unwrap().starts_with("crates/drive/src/run.rs:"), "{said}");
        assert_eq!(simulate(&scenario, "", None, |_| true).unwrap().outcome, Outcome::Complete);
    }
}

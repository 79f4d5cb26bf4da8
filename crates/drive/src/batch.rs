//! Many short runs one after the other: what a thread of a sweep does.
//!
//! A run of a few milliseconds must not pay for a folder, a manifest and a table library of its own. A batch gives the
//! summaries of all its runs, and their tables piled up, for whoever writes them.

#![expect(
    clippy::disallowed_types,
    reason = "how long a run takes is what the caller asks, no model is told"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant as Clock;

use airloom_base::Instant;
use airloom_record::{Column, Recorder, Values};
use airloom_world::Books;
use airloom_world::scenario::{RecordKind, Scenario};

use crate::run;
use crate::virtual_time::Outcome;

/// Into how many equal spans of time a rate over time is divided.
const SPANS: usize = 24;

/// One run that was made.
pub struct Made {
    /// How it ended; or the sentence that says why there is no result.
    pub outcome: Result<Outcome, String>,
    /// Nanoseconds it took, without what is done with its tables.
    pub took_ns: u64,
    /// Rate over time at the host that received most, if that was wanted.
    pub rate: Option<Rate>,
}

/// What a host received over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    /// The observation point.
    pub point: String,
    /// Length of a span.
    pub span_ns: u64,
    /// Octets of datagrams received in each span.
    pub octets: Vec<u64>,
}

/// What a batch gave.
#[derive(Default)]
pub struct Batch {
    /// The runs, in the order in which they were wanted; fewer if the batch was stopped.
    pub runs: Vec<Made>,
    /// Their summaries.
    pub summaries: Summaries,
    /// The tables that were asked for; column `run` counts the runs from 0.
    pub tables: BTreeMap<&'static str, Vec<Column>>,
}

/// The summaries of many runs as one table: each name is kept once, and not once a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summaries {
    /// All names that occur, sorted.
    pub names: Vec<String>,
    /// The values of each name; not-a-number where a run has no such value.
    pub values: Vec<Vec<f64>>,
}

/// Summaries of runs that follow each other and have the same names, run by run.
struct Alike {
    names: Arc<[String]>,
    runs: usize,
    values: Vec<f64>,
}

/// Adds that of a run, whose names are sorted.
fn push(all: &mut Vec<Alike>, names: &Arc<[String]>, values: &[f64]) {
    match all.last_mut() {
        // Runs of one scenario share their names.
        Some(last) if Arc::ptr_eq(&last.names, names) => {
            last.runs += 1;
            last.values.extend_from_slice(values);
        }
        _ => all.push(Alike { names: Arc::clone(names), runs: 1, values: values.to_vec() }),
    }
}

impl Summaries {
    fn new(all: &[Alike]) -> Summaries {
        let names: BTreeSet<&String> = all.iter().flat_map(|alike| alike.names.iter()).collect();
        let values = |name: &&String| {
            let mut values = Vec::with_capacity(all.iter().map(|alike| alike.runs).sum());
            for alike in all {
                match alike.names.binary_search(name) {
                    Ok(n) => values.extend(alike.values[n..].iter().step_by(alike.names.len())),
                    Err(_) => values.resize(values.len() + alike.runs, f64::NAN),
                }
            }
            values
        };
        let columns = names.iter().map(|name| ((*name).clone(), values(name)));
        let (names, values) = columns.filter(|(_, values)| !values.iter().all(|v| v.is_nan())).unzip();
        Summaries { names, values }
    }

    /// The summary of a run, as it was.
    pub fn of(&self, run: usize) -> BTreeMap<&str, f64> {
        let row = self.values.iter().map(|all| all[run]);
        self.names.iter().map(String::as_str).zip(row).filter(|(_, v)| !v.is_nan()).collect()
    }
}

/// Makes runs one after the other in virtual time and keeps those of their tables that it was told to. Neither captures
/// nor packets tables are made, whatever the scenarios ask for.
pub struct Series {
    tables: Vec<String>,
    recorder: Recorder,
    batch: Batch,
    summaries: Vec<Alike>,
    /// The scenario that runs are made of, and what they share.
    of: Option<(Scenario, Books)>,
}

impl Series {
    /// A series without runs so far that keeps these tables.
    pub fn new(tables: Vec<String>) -> Series {
        Series {
            tables,
            recorder: Recorder::default(),
            batch: Batch::default(),
            summaries: Vec::new(),
            of: None,
        }
    }

    /// From now on its runs are of this scenario, whose own seed does not count.
    pub fn of(&mut self, scenario: &Scenario) {
        let (mut scenario, tables) = (scenario.clone(), &self.tables);
        scenario.run.record.retain(|kind| {
            matches!(kind, RecordKind::Congestion | RecordKind::Objects)
                && tables.iter().any(|t| t == kind.name())
        });
        run::name(&scenario, &mut self.recorder.tables);
        keep_only(&mut self.recorder, tables, None);
        self.of = Some((scenario, Books::default()));
    }

    /// Makes a run of the scenario, with its rate over time if that is wanted; says whether it did. `look` is called now
    /// and then and says whether to go on; a run that was stopped is not among the results.
    pub fn run(&mut self, seed: u64, rate: bool, look: impl FnMut(Instant) -> bool) -> bool {
        let Some((scenario, books)) = &mut self.of else { return false };
        let mut with_packets;
        let scenario = if rate {
            with_packets = scenario.clone();
            with_packets.run.record.push(RecordKind::Packets);
            with_packets.run.points = Some(vec!["*.ip".to_owned()]);
            keep_only(&mut self.recorder, &self.tables, Some("packets"));
            &mut with_packets
        } else {
            scenario
        };
        scenario.run.seed = seed;
        let start = Clock::now();
        let outcome = run::carry_out(scenario, &mut self.recorder, look).map(|(outcome, world)| {
            world.summarise(books);
            outcome
        });
        let took_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let mut made = Made { outcome: Err(String::new()), took_ns, rate: None };
        match outcome {
            Ok(Outcome::Stopped) => return false,
            Ok(outcome) => {
                made.outcome = Ok(outcome);
                push(&mut self.summaries, books.names(), books.values());
                self.recorder.tables.end_run(Some(self.batch.runs.len() as u32));
            }
            Err(error) => {
                made.outcome = Err(error.to_string());
                push(&mut self.summaries, &Arc::default(), &[]);
                self.recorder.tables.end_run(None);
            }
        }
        if rate {
            made.rate = self::rate(&self.recorder.tables.take_packets()).filter(|_| made.outcome.is_ok());
            keep_only(&mut self.recorder, &self.tables, None);
        }
        self.batch.runs.push(made);
        true
    }

    /// The last run that was made.
    pub fn last(&self) -> Option<&Made> {
        self.batch.runs.last()
    }

    /// What its runs gave.
    pub fn finish(mut self) -> Batch {
        self.batch.summaries = Summaries::new(&self.summaries);
        keep_only(&mut self.recorder, &self.tables, None);
        self.batch.tables = self.recorder.tables.into_columns_by_run();
        self.batch
    }
}

fn keep_only(recorder: &mut Recorder, tables: &[String], another: Option<&str>) {
    let all: Vec<&str> = tables.iter().map(String::as_str).chain(another).collect();
    recorder.tables.keep_only(&all);
}

/// The rate over time at the point that received most octets; `None` if nothing was received.
fn rate(packets: &[Column]) -> Option<Rate> {
    let column = |name: &str| packets.iter().find(|c| c.name == name).map(|c| &c.values);
    let (Some(Values::I64(times)), Some(Values::U32(lengths))) = (column("t_ns"), column("len")) else {
        return None;
    };
    let (
        Some(Values::Category { codes: points, names }),
        Some(Values::Category { codes: events, names: event_names }),
    ) = (column("point"), column("event"))
    else {
        return None;
    };
    let received = event_names.iter().position(|n| n == "rx")?;
    let rows = || {
        (0..times.len()).filter(|row| usize::from(events[*row]) == received).map(|row| {
            (usize::from(points[row]), u64::try_from(times[row]).unwrap_or(0), u64::from(lengths[row]))
        })
    };
    let mut totals = vec![0u64; names.len()];
    for (point, _, octets) in rows() {
        totals[point] += octets;
    }
    // Of equal ones the first: points are named in the order of the path.
    let most = (0..totals.len()).max_by_key(|p| (totals[*p], std::cmp::Reverse(*p)))?;
    let end = rows().map(|(_, t, _)| t).max()?;
    let span_ns = end / SPANS as u64 + 1;
    let mut octets = vec![0u64; SPANS];
    for (_, t, length) in rows().filter(|(point, _, _)| *point == most) {
        octets[(t / span_ns) as usize] += length;
    }
    Some(Rate { point: names[most].clone(), span_ns, octets })
}

#[cfg(test)]
mod tests {
    use airloom_world::scenario::Document;

    use super::*;

    /// A run for each seed, the first one with its rate over time.
    fn series<'s>(
        wanted: impl IntoIterator<Item = (&'s Scenario, u64)>,
        tables: &[&str],
        mut look: impl FnMut() -> bool,
    ) -> Batch {
        let mut series = Series::new(tables.iter().map(|name| (*name).to_owned()).collect());
        for (number, (scenario, seed)) in wanted.into_iter().enumerate() {
            series.of(scenario);
            if !series.run(seed, number == 0, |_| look()) {
                break;
            }
        }
        series.finish()
    }

    fn wire(extra: &str) -> Scenario {
        let text = format!(
            "path = [\"a\", \"wire\", \"b\"]\n\
             hosts = {{ a = {{ app = {{ bulk = {{ size = \"20kB\" }} }} }}, b = {{ app = \"bulk-server\" }} }}\n\
             links.wire = {{ bearer = \"wireline\", rate = \"1Mbit/s\", delay = \"20ms\", {extra} }}\n"
        );
        Document::read("t.toml", text.as_bytes()).unwrap().check().unwrap()
    }

    /// A transfer that does not end soon.
    fn endless() -> Scenario {
        let text = "path = [\"a\", \"wire\", \"b\"]\n\
            hosts = { a = { app = { bulk = { size = \"100GB\" } } }, b = { app = \"bulk-server\" } }\n\
            links.wire = { bearer = \"wireline\", rate = \"1Mbit/s\", delay = \"20ms\" }\n";
        Document::read("t.toml", text.as_bytes()).unwrap().check().unwrap()
    }

    #[test]
    fn a_run_of_a_batch_gives_what_the_run_alone_gives() {
        let scenario = wire("loss = 0.05");
        let batch = series((1..6).map(|seed| (&scenario, seed)), &["flows"], || true);
        assert_eq!(batch.runs.len(), 5);
        let mut flows = Vec::new();
        for ((seed, made), run) in (1..6).zip(&batch.runs).zip(0..) {
            let mut alone = scenario.clone();
            alone.run.seed = seed;
            let alone = run::simulate(&alone, "", None, |_| true).unwrap();
            let summary = alone.summary.values.iter().map(|(name, value)| (name, *value));
            assert_eq!(batch.summaries.of(run), summary.collect());
            assert_eq!(made.outcome, Ok(Outcome::Complete));
            assert_eq!(made.rate.is_some(), seed == 1);
            flows.push(alone.tables.into_columns().remove("flows").unwrap());
        }
        assert_eq!(batch.tables.keys().copied().collect::<Vec<_>>(), ["flows"]);
        let all = &batch.tables["flows"];
        assert_eq!(all[0].values, Values::U32(vec![0, 1, 2, 3, 4]), "each run has one flow");
        for (run, alone) in flows.iter().enumerate() {
            let alone: Vec<String> = alone.iter().map(|column| cell(column, 0)).collect();
            assert_eq!(all[1..].iter().map(|column| cell(column, run)).collect::<Vec<_>>(), alone);
        }
    }

    fn cell(column: &Column, row: usize) -> String {
        if column.valid.as_ref().is_some_and(|valid| !valid[row]) {
            return "nothing".to_owned();
        }
        match &column.values {
            Values::I64(v) => v[row].to_string(),
            Values::U64(v) => v[row].to_string(),
            Values::U32(v) => v[row].to_string(),
            Values::U16(v) => v[row].to_string(),
            Values::U8(v) => v[row].to_string(),
            Values::F64(v) => v[row].to_string(),
            Values::Text(v) => v[row].clone(),
            Values::Category { codes, names } => names[usize::from(codes[row])].clone(),
        }
    }

    #[test]
    fn the_rate_over_time_is_that_of_the_host_that_received_most() {
        let scenario = wire("");
        let batch = series([(&scenario, 1)], &[], || true);
        let rate = batch.runs[0].rate.as_ref().unwrap();
        assert_eq!(rate.point, "a.wire.ip");
        assert_eq!(rate.octets.len(), SPANS);
        // 20 kB of content in 14 full segments and a short one, with 40 or 52 octets of headers, and the handshake.
        let total: u64 = rate.octets.iter().sum();
        assert!((20_560..21_200).contains(&total), "{total}");
    }

    #[test]
    fn a_run_that_does_not_end_well_does_not_stop_the_others() {
        let mut late = wire("");
        late.run.limit = airloom_base::Duration::from_millis(1);
        let good = wire("");
        let outcomes: Vec<_> = series([(&late, 1), (&good, 1)], &[], || true)
            .runs
            .into_iter()
            .map(|r| r.outcome.unwrap())
            .collect();
        assert_eq!(outcomes, [Outcome::LimitReached, Outcome::Complete]);
    }

    #[test]
    fn summaries_with_different_names_share_a_table() {
        let all: [&[(&str, f64)]; 4] =
            [&[("b", 1.0)], &[], &[("a", 2.0), ("c", 3.0)], &[("a", 4.0), ("b", 5.0)]];
        let mut summaries = Vec::new();
        for summary in all {
            let names = summary.iter().map(|(name, _)| (*name).to_owned()).collect();
            push(&mut summaries, &names, &summary.iter().map(|(_, value)| *value).collect::<Vec<_>>());
        }
        let table = Summaries::new(&summaries);
        assert_eq!(table.names[..], ["a", "b", "c"]);
        for (run, summary) in all.iter().enumerate() {
            assert_eq!(table.of(run), summary.iter().copied().collect());
        }
    }

    #[test]
    fn however_many_runs_there_are_each_has_its_own_summary() {
        let names: Arc<[String]> = ["always", "own"].map(str::to_owned).into();
        let more: Arc<[String]> = ["always", "new", "own"].map(str::to_owned).into();
        let mut summaries = Vec::new();
        for run in 0..150 {
            match f64::from(run) {
                own if !(70..=140).contains(&run) => push(&mut summaries, &names, &[1.0, own]),
                own => push(&mut summaries, &more, &[1.0, -own, own]),
            }
        }
        let table = Summaries::new(&summaries);
        for run in 0..150 {
            let own = run as f64;
            let mut expected = BTreeMap::from([("always", 1.0), ("own", own)]);
            if (70..=140).contains(&run) {
                expected.insert("new", -own);
            }
            assert_eq!(table.of(run), expected);
        }
    }

    #[test]
    fn a_run_that_is_stopped_is_not_among_the_results() {
        let mut series = Series::new(vec!["flows".to_owned()]);
        series.of(&wire(""));
        assert!(series.run(1, false, |_| true));
        assert!(series.run(2, false, |_| true));
        series.of(&endless());
        assert!(!series.run(3, false, |_| false));
        let batch = series.finish();
        let ends: Vec<_> = batch.runs.into_iter().map(|run| run.outcome).collect();
        assert_eq!(ends, [Ok(Outcome::Complete), Ok(Outcome::Complete)]);
        assert_eq!(batch.tables["flows"][0].values, Values::U32(vec![0, 1]));
        assert_eq!(batch.summaries.of(0), batch.summaries.of(1));
    }
}

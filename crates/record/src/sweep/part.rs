//! What some runs gave, as tables in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::columns::{Column, Values};
use crate::growing::filled;
use crate::parquet_file::{Cells, Filled, texts};

/// What an axis calls a point.
#[derive(Clone, Debug, PartialEq)]
pub enum Label {
    /// A whole number.
    Whole(i64),
    /// A number.
    Real(f64),
    /// A text.
    Text(String),
}

/// A run that was made.
pub struct Run {
    /// The number of its point.
    pub point: i64,
    /// What each axis calls the point. One axis has labels of one kind.
    pub labels: Arc<[Label]>,
    /// Its seed.
    pub seed: u64,
    /// Its identity.
    pub run_id: String,
    /// Why there is no result.
    pub error: Option<String>,
    /// Did the process end while it was under way?
    pub is_lost: bool,
    /// Observation point, nanoseconds of a span, octets in each span.
    pub rate: Option<(String, u64, Vec<u64>)>,
}

/// The tables of some runs, by name.
pub struct Part(pub(super) BTreeMap<String, Table>);

/// A table whose rows are in the order of the runs, those of one run in the order of time.
pub(super) struct Table(pub(super) Vec<(String, Filled)>);

/// An axis is called as something that runs measure.
#[derive(Debug, PartialEq, Eq)]
pub struct NameTaken(pub String);

impl Part {
    /// The tables of runs: their summaries, by sorted names, not-a-number where a run has no such value; and `tables`,
    /// whose first column is the number of the run.
    ///
    /// # Errors
    /// An axis with the name of another column.
    pub fn new(
        axes: &[String],
        runs: &[Run],
        names: &[String],
        values: Vec<Vec<f64>>,
        tables: BTreeMap<String, Vec<Column>>,
    ) -> Result<Part, NameTaken> {
        let is_column = |axis: &&String| tables.values().flatten().any(|column| column.name == axis.as_str());
        if let Some(axis) = axes.iter().filter(|axis| names.contains(axis) || is_column(axis)).min() {
            return Err(NameTaken(axis.clone()));
        }
        let mut all = BTreeMap::from([("runs".to_owned(), summaries(axes, runs, names, values))]);
        if runs.iter().any(|run| run.rate.is_some()) {
            all.insert("rate".to_owned(), rates(axes, runs));
        }
        for (name, mut columns) in tables {
            let Values::U32(run) = columns.remove(0).values else {
                unreachable!("the first column is the number of the run")
            };
            let time = columns.iter().find(|column| Some(column.name) == sorted_by(&name));
            let time = |row: usize| match time.map(|column| &column.values) {
                Some(Values::I64(times)) => times[row],
                _ => 0,
            };
            let mut order: Vec<usize> = (0..run.len()).collect();
            order.sort_by_key(|row| (run[*row], time(*row)));
            let of_row: Vec<usize> = order.iter().map(|row| run[*row] as usize).collect();
            let mut table = head(axes, runs, &of_row);
            table.extend(columns.iter_mut().map(|column| {
                let name = column.name.to_owned();
                (name, filled(column).pick(&order).blanked())
            }));
            all.insert(name, Table(table));
        }
        Ok(Part(all))
    }
}

/// The columns of a table of one run, with the number of the run in front.
pub fn of_one_run(mut columns: Vec<Column>) -> Vec<Column> {
    let rows = columns.first().map_or(0, |column| column.values.len());
    columns.insert(0, Column { name: "run", values: Values::U32(vec![0; rows]), valid: None });
    columns
}

/// One row per run.
fn summaries(axes: &[String], runs: &[Run], names: &[String], values: Vec<Vec<f64>>) -> Table {
    let mut table = head(axes, runs, &(0..runs.len()).collect::<Vec<_>>());
    let status = |run: &Run| match run.error {
        _ if run.is_lost => "lost",
        Some(_) => "failed",
        None => "ok",
    };
    table.push(text("status", runs.iter().map(status)));
    let (name, mut errors) = text("error", runs.iter().map(|run| run.error.as_deref().unwrap_or("")));
    errors.valid = Some(runs.iter().map(|run| run.error.is_some()).collect());
    table.push((name, errors));
    for (name, values) in names.iter().zip(values) {
        let valid = values.iter().any(|v| v.is_nan()).then(|| values.iter().map(|v| !v.is_nan()).collect());
        table.push((name.clone(), Filled { cells: Cells::F64(values), valid }.blanked()));
    }
    Table(table)
}

/// Octets received over time: a row per span.
fn rates(axes: &[String], runs: &[Run]) -> Table {
    let (mut of_row, mut seen_at) = (Vec::new(), Vec::new());
    let (mut times, mut spans, mut octets) = (Vec::new(), Vec::new(), Vec::new());
    for (number, run) in runs.iter().enumerate() {
        let Some((point, span, received)) = &run.rate else { continue };
        let span = i64::try_from(*span).unwrap_or(i64::MAX);
        for (at, received) in (0..).zip(received) {
            of_row.push(number);
            times.push(span.saturating_mul(at));
            spans.push(span);
            octets.push(*received);
            seen_at.push(point.as_str());
        }
    }
    let mut table = head(axes, runs, &of_row);
    table.push(full("t_ns", Cells::I64(times)));
    table.push(full("span_ns", Cells::I64(spans)));
    table.push(full("octets", Cells::U64(octets)));
    table.push(text("seen_at", seen_at.into_iter()));
    Table(table)
}

/// The columns that every table begins with; `rows` says of which run each row is.
fn head(axes: &[String], runs: &[Run], rows: &[usize]) -> Vec<(String, Filled)> {
    // A table without rows has the kinds of the others.
    let kinds = runs.first().map(|run| Arc::clone(&run.labels));
    let runs = || rows.iter().map(|run| &runs[*run]);
    let mut columns = vec![full("point", Cells::I64(runs().map(|run| run.point).collect()))];
    for (number, axis) in axes.iter().enumerate() {
        let labels = || runs().map(|run| &run.labels[number]);
        let cells = match kinds.as_ref().map(|labels| &labels[number]) {
            None | Some(Label::Text(_)) => texts(labels().map(|label| match label {
                Label::Text(text) => text.as_str(),
                Label::Whole(_) | Label::Real(_) => "",
            })),
            Some(Label::Whole(_)) => Cells::I64(labels().map(Label::whole).collect()),
            Some(Label::Real(_)) => Cells::F64(labels().map(Label::real).collect()),
        };
        columns.push(full(axis, cells));
    }
    columns.push(full("seed", Cells::U64(runs().map(|run| run.seed).collect())));
    columns.push(text("run_id", runs().map(|run| run.run_id.as_str())));
    columns
}

impl Label {
    fn whole(&self) -> i64 {
        if let Label::Whole(number) = self { *number } else { 0 }
    }

    fn real(&self) -> f64 {
        if let Label::Real(number) = self { *number } else { f64::NAN }
    }
}

fn full(name: &str, cells: Cells) -> (String, Filled) {
    (name.to_owned(), Filled { cells, valid: None })
}

fn text<'a>(name: &str, cells: impl Iterator<Item = &'a str> + Clone) -> (String, Filled) {
    full(name, texts(cells))
}

/// The column of times that the rows of one run are sorted by.
fn sorted_by(table: &str) -> Option<&'static str> {
    match table {
        "pages" => Some("start_ns"),
        "objects" => Some("known_ns"),
        "flows" => Some("open_ns"),
        "states" | "congestion" => Some("t_ns"),
        _ => None,
    }
}

//! Tables of several runs on top of each other, with a column that says which run a row is from.
//!
//! A circle of 2 files: it is the half of the tables' methods that puts runs on top of each other.

use std::collections::BTreeMap;

use super::Tables;
use super::column::{Column, Table, Values, full};

/// The number of the run of each row, by table; nothing while there is one run only.
#[derive(Default)]
pub(super) struct Runs {
    flows: Vec<u32>,
    pages: Vec<u32>,
    objects: Vec<u32>,
    states: Vec<u32>,
    congestion: Vec<u32>,
}

/// Rows of a run that does not count.
const DROPPED: u32 = u32::MAX;

impl Tables {
    /// A run is over: what came since the last one ended are its rows. `None`: they do not count. Packets are no part of
    /// this ([`Tables::take_packets`]).
    pub fn end_run(&mut self, run: Option<u32>) {
        let run = run.unwrap_or(DROPPED);
        self.runs.flows.resize(self.flows.end_run(), run);
        self.runs.pages.resize(self.pages.rows(), run);
        self.runs.objects.resize(self.objects.rows(), run);
        self.runs.states.resize(self.states.rows(), run);
        self.runs.congestion.resize(self.congestion.rows(), run);
    }

    /// The tables of all runs that have ended, but for those that are left out; the number of the run is the first column,
    /// `run`.
    pub fn into_columns_by_run(mut self) -> BTreeMap<&'static str, Vec<Column>> {
        self.end_run(None);
        let (runs, left_out) = (self.runs, self.left_out);
        let table = |run: Vec<u32>, mut columns: Vec<Column>| {
            columns.insert(0, full("run", Values::U32(run)));
            without_dropped(columns)
        };
        let mut all = BTreeMap::new();
        if !left_out.flows {
            all.insert("flows", table(runs.flows, self.flows.into_columns()));
        }
        if !left_out.pages {
            all.insert("pages", table(runs.pages, self.pages.into_columns()));
        }
        if !left_out.objects {
            all.insert("objects", table(runs.objects, self.objects.into_columns()));
        }
        if !left_out.states {
            all.insert("states", table(runs.states, self.states.into_columns()));
        }
        if !left_out.congestion {
            all.insert("congestion", table(runs.congestion, self.congestion.into_columns()));
        }
        all
    }
}

/// The table without the rows of runs that do not count.
fn without_dropped(mut columns: Vec<Column>) -> Vec<Column> {
    let kept: Vec<bool> = match columns.first().map(|c| &c.values) {
        Some(Values::U32(runs)) => runs.iter().map(|run| *run != DROPPED).collect(),
        _ => return columns,
    };
    if kept.contains(&false) {
        for column in &mut columns {
            match &mut column.values {
                Values::I64(v) => keep(v, &kept),
                Values::U64(v) => keep(v, &kept),
                Values::U32(v) => keep(v, &kept),
                Values::U16(v) => keep(v, &kept),
                Values::U8(v) => keep(v, &kept),
                Values::F64(v) => keep(v, &kept),
                Values::Text(v) => keep(v, &kept),
                Values::Category { codes, .. } => keep(codes, &kept),
            }
            if let Some(valid) = &mut column.valid {
                keep(valid, &kept);
            }
        }
    }
    columns
}

fn keep<T>(values: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    values.retain(|_| kept.next() == Some(&true));
}

#[cfg(test)]
mod tests {
    use airloom_base::record::{PageRecord, Record};
    use airloom_base::{Instant, Outbox};

    use super::*;

    fn page(number: u32, client: &str) -> Outbox {
        let mut outbox = Outbox::default();
        outbox.facts.push(Record::Page(PageRecord {
            page: number,
            url: "/".to_owned(),
            client: client.to_owned(),
            start: Instant::ZERO,
            load: None,
            first_object: None,
            objects: 1,
            bytes: 2,
            connections: 3,
            failed: 0,
        }));
        outbox
    }

    #[test]
    fn rows_of_all_runs_follow_each_other_and_those_that_do_not_count_are_left_out() {
        let mut tables = Tables::default();
        tables.keep_only(&["pages"]);
        for (run, numbers) in [(Some(0), vec![1, 2]), (None, vec![9]), (Some(2), vec![3]), (Some(3), vec![])]
        {
            numbers.iter().for_each(|number| tables.take(&page(*number, &format!("c{number}"))));
            tables.end_run(run);
        }
        tables.take(&page(7, "never ended"));
        let all = tables.into_columns_by_run();
        assert_eq!(all.keys().collect::<Vec<_>>(), [&"pages"]);
        let of = |name: &str| &all["pages"].iter().find(|c| c.name == name).unwrap().values;
        assert_eq!(all["pages"][0], full("run", Values::U32(vec![0, 0, 2])));
        assert_eq!(*of("page"), Values::U32(vec![1, 2, 3]));
        let Values::Category { codes, names } = of("client") else { panic!("clients are names") };
        let clients: Vec<&str> = codes.iter().map(|code| names[usize::from(*code)].as_str()).collect();
        assert_eq!(clients, ["c1", "c2", "c3"]);
    }

    #[test]
    fn nothing_has_no_rows() {
        let mut tables = Tables::default();
        tables.keep_only(&["flows", "states"]);
        let all = tables.into_columns_by_run();
        assert_eq!(all.keys().copied().collect::<Vec<_>>(), ["flows", "states"]);
        assert_eq!(all["flows"][0], full("run", Values::U32(Vec::new())));
    }
}

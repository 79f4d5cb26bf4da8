//! Tables of several runs on top of each other, with a column that says which run a row is from.

use super::column::{Column, Values, full};

/// The number of the run of each row, by table; nothing while there is one run only.
#[derive(Default)]
pub(super) struct Runs {
    pub(super) flows: Vec<u32>,
    pub(super) pages: Vec<u32>,
    pub(super) objects: Vec<u32>,
    pub(super) states: Vec<u32>,
    pub(super) congestion: Vec<u32>,
}

/// Rows of a run that does not count.
pub(super) const DROPPED: u32 = u32::MAX;

/// A table with the number of each row's run as its first column, `run`, without the rows of runs that do not count.
pub(super) fn by_run(runs: Vec<u32>, mut columns: Vec<Column>) -> Vec<Column> {
    let kept: Vec<bool> = runs.iter().map(|run| *run != DROPPED).collect();
    columns.insert(0, full("run", Values::U32(runs)));
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
    use crate::columns::Tables;

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

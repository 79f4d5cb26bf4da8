//! Tables of several runs on top of each other, with a column that says which run a row is from.

use std::collections::BTreeMap;

use super::{Column, Values, full};

/// One table of many runs: [`Pile::push`] appends that of a run.
#[derive(Default)]
pub struct Pile {
    /// Number of the run of each row.
    run: Vec<u32>,
    columns: Vec<Column>,
    codes: Vec<BTreeMap<String, u16>>,
}

impl Pile {
    /// Appends the rows of a run. All runs bring the same columns, as the tables of [`Tables`](super::Tables) do;
    /// columns that the first one had not are left out.
    pub fn push(&mut self, run: u32, table: Vec<Column>) {
        let rows = table.first().map_or(0, |c| c.values.len());
        self.run.resize(self.run.len() + rows, run);
        if self.columns.is_empty() {
            self.codes = table.iter().map(|_| BTreeMap::new()).collect();
            self.columns = table.iter().map(empty_like).collect();
        }
        for ((mine, codes), column) in self.columns.iter_mut().zip(&mut self.codes).zip(table) {
            let before = mine.values.len();
            extend(&mut mine.values, column.values, codes);
            match (&mut mine.valid, column.valid) {
                (Some(all), Some(more)) => all.extend(more),
                (Some(all), None) => all.resize(mine.values.len(), true),
                (none, Some(more)) => {
                    let mut all = vec![true; before];
                    all.extend(more);
                    *none = Some(all);
                }
                (None, None) => {}
            }
        }
    }

    /// The columns, `run` first.
    pub fn into_columns(self) -> Vec<Column> {
        let mut all = vec![full("run", Values::U32(self.run))];
        all.extend(self.columns);
        all
    }
}

/// A column of the same kind without rows.
fn empty_like(column: &Column) -> Column {
    let values = match &column.values {
        Values::I64(_) => Values::I64(Vec::new()),
        Values::U64(_) => Values::U64(Vec::new()),
        Values::U32(_) => Values::U32(Vec::new()),
        Values::U16(_) => Values::U16(Vec::new()),
        Values::U8(_) => Values::U8(Vec::new()),
        Values::F64(_) => Values::F64(Vec::new()),
        Values::Text(_) => Values::Text(Vec::new()),
        Values::Category { .. } => Values::Category { codes: Vec::new(), names: Vec::new() },
    };
    Column { name: column.name, values, valid: column.valid.as_ref().map(|_| Vec::new()) }
}

/// Appends `more` to `all`; names that are new get the next codes.
fn extend(all: &mut Values, more: Values, by_name: &mut BTreeMap<String, u16>) {
    match (all, more) {
        (Values::I64(all), Values::I64(more)) => all.extend(more),
        (Values::U64(all), Values::U64(more)) => all.extend(more),
        (Values::U32(all), Values::U32(more)) => all.extend(more),
        (Values::U16(all), Values::U16(more)) => all.extend(more),
        (Values::U8(all), Values::U8(more)) => all.extend(more),
        (Values::F64(all), Values::F64(more)) => all.extend(more),
        (Values::Text(all), Values::Text(more)) => all.extend(more),
        (Values::Category { codes, names }, Values::Category { codes: more, names: fresh }) => {
            let mut code = |name: String| match by_name.get(&name) {
                Some(code) => *code,
                // As in a run's own table: should there be more than 65,536 names, the rest share the last code.
                None => match u16::try_from(names.len()) {
                    Ok(code) => {
                        names.push(name.clone());
                        by_name.insert(name, code);
                        code
                    }
                    Err(_) => u16::MAX,
                },
            };
            let translation: Vec<u16> = fresh.into_iter().map(&mut code).collect();
            // Empty rows of a column without any names have code 0.
            codes.extend(more.iter().map(|c| translation.get(usize::from(*c)).copied().unwrap_or(0)));
        }
        _ => unreachable!("a table has the same columns in every run"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(numbers: &[i64], names: &[&str], valid: Option<&[bool]>) -> Vec<Column> {
        let mut category = super::super::Category::default();
        for name in names {
            category.push(name);
        }
        vec![
            Column { name: "n", values: Values::I64(numbers.to_vec()), valid: valid.map(<[bool]>::to_vec) },
            category.column("name"),
        ]
    }

    #[test]
    fn rows_of_all_runs_follow_each_other_and_names_keep_their_meaning() {
        let mut pile = Pile::default();
        pile.push(0, table(&[1, 2], &["a", "b"], None));
        pile.push(1, table(&[], &[], None));
        pile.push(2, table(&[3, 4], &["c", "a"], Some(&[false, true])));
        let columns = pile.into_columns();
        assert_eq!(columns[0], full("run", Values::U32(vec![0, 0, 2, 2])));
        assert_eq!(columns[1].values, Values::I64(vec![1, 2, 3, 4]));
        assert_eq!(columns[1].valid, Some(vec![true, true, false, true]));
        let names = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(columns[2].values, Values::Category { codes: vec![0, 1, 2, 0], names });
    }

    #[test]
    fn a_pile_of_nothing_has_no_rows() {
        let columns = Pile::default().into_columns();
        assert_eq!(columns, [full("run", Values::U32(Vec::new()))]);
    }
}

//! Tables as typed columns, ready for Parquet.
//!
//! One file per table; the column names are the product's interface. Each table grows one typed vector per
//! column; [`Tables::into_columns`] hands them on without copying. Times are nanoseconds since the run began.

mod congestion;
mod flows;
mod objects;
mod packets;
mod pages;
mod runs;
mod states;

use std::collections::BTreeMap;

use airloom_base::record::Record;
use airloom_base::{Outbox, Station};

use congestion::Congestion;
use flows::Flows;
use objects::Objects;
use packets::Packets;
use pages::Pages;
use runs::Runs;
use states::States;

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Signed 64-bit integers (times).
    I64(Vec<i64>),
    /// Unsigned 64-bit integers.
    U64(Vec<u64>),
    /// Unsigned 32-bit integers.
    U32(Vec<u32>),
    /// Unsigned 16-bit integers.
    U16(Vec<u16>),
    /// Unsigned 8-bit integers.
    U8(Vec<u8>),
    /// Floating point numbers.
    F64(Vec<f64>),
    /// Texts that differ from row to row.
    Text(Vec<String>),
    /// Texts out of a small set: an index into `names` per row.
    Category {
        /// Index of each row's name.
        codes: Vec<u16>,
        /// The names, in order of their first appearance.
        names: Vec<String>,
    },
}

impl Values {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Values::I64(v) => v.len(),
            Values::U64(v) => v.len(),
            Values::U32(v) => v.len(),
            Values::U16(v) => v.len(),
            Values::U8(v) => v.len(),
            Values::F64(v) => v.len(),
            Values::Text(v) => v.len(),
            Values::Category { codes, .. } => codes.len(),
        }
    }
    /// No rows?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name in the file.
    pub name: &'static str,
    /// Its values; where `valid` is false the value means nothing.
    pub values: Values,
    /// Is there a value in each row? `None`: always.
    pub valid: Option<Vec<bool>>,
}

/// All tables of a run.
#[derive(Default)]
pub struct Tables {
    packets: Packets,
    flows: Flows,
    pages: Pages,
    objects: Objects,
    states: States,
    congestion: Congestion,
    left_out: LeftOut,
    runs: Runs,
}

/// Tables that nobody wants: their records are not kept.
#[derive(Default)]
struct LeftOut {
    packets: bool,
    flows: bool,
    pages: bool,
    objects: bool,
    states: bool,
    congestion: bool,
}

impl Tables {
    /// Keeps only the tables with these names.
    pub fn keep_only(&mut self, names: &[&str]) {
        let left_out = |name| !names.contains(&name);
        self.left_out = LeftOut {
            packets: left_out("packets"),
            flows: left_out("flows"),
            pages: left_out("pages"),
            objects: left_out("objects"),
            states: left_out("states"),
            congestion: left_out("congestion"),
        };
    }

    /// Forgets which hosts the stations are: those of another scenario follow.
    pub fn forget_stations(&mut self) {
        self.states.forget_stations();
    }

    /// Says which host is `station` on `link`: the `host` column of the states table.
    pub fn name_station(&mut self, link: &str, station: Station, host: &str) {
        self.states.name_station(link, station, host);
    }

    /// Says the name of each host by its index: the `host` column of the congestion table.
    pub fn name_hosts(&mut self, hosts: impl IntoIterator<Item = String>) {
        self.congestion.name_hosts(hosts);
    }

    /// Appends all records of `outbox`, which stays as it is.
    pub fn take(&mut self, outbox: &Outbox) {
        let left_out = &self.left_out;
        if !left_out.packets {
            let points = outbox.points();
            self.packets.name_points(points);
            for packet in &outbox.packets {
                if points.get(usize::from(packet.point.0)).is_some_and(|p| p.rows) {
                    self.packets.push(packet);
                }
            }
        }
        for record in &outbox.facts {
            match record {
                Record::Flow(flow) if !left_out.flows => self.flows.push(flow),
                Record::Page(page) if !left_out.pages => self.pages.push(page),
                Record::Object(object) if !left_out.objects => self.objects.push(object),
                Record::State(state) if !left_out.states => self.states.push(state),
                Record::Congestion(sample) if !left_out.congestion => self.congestion.push(sample),
                _ => {}
            }
        }
    }

    /// The packets so far, which go out of the tables.
    pub fn take_packets(&mut self) -> Vec<Column> {
        std::mem::take(&mut self.packets).into_columns()
    }

    /// The rows of each table that has `least` of them or more, in the order in which they were recorded; they go out of
    /// the tables.
    pub fn take_rows(&mut self, least: usize) -> Vec<(&'static str, Vec<Column>)> {
        let tables: [(&str, &mut dyn Table); 6] = [
            ("packets", &mut self.packets),
            ("flows", &mut self.flows),
            ("pages", &mut self.pages),
            ("objects", &mut self.objects),
            ("states", &mut self.states),
            ("congestion", &mut self.congestion),
        ];
        let full = tables.into_iter().filter(|(_, table)| table.rows() >= least);
        full.map(|(name, table)| (name, table.take_rows())).collect()
    }

    /// The tables by name: `packets`, `flows`, `pages`, `objects`, `states`, `congestion`. All are there, empty or not.
    pub fn into_columns(self) -> BTreeMap<&'static str, Vec<Column>> {
        BTreeMap::from([
            ("packets", self.packets.into_columns()),
            ("flows", self.flows.into_columns()),
            ("pages", self.pages.into_columns()),
            ("objects", self.objects.into_columns()),
            ("states", self.states.into_columns()),
            ("congestion", self.congestion.into_columns()),
        ])
    }
}

/// A table that grows.
trait Table {
    /// How many rows it has, as far as nothing more will come of them.
    fn rows(&self) -> usize;
    /// These rows, which go out of it; names that were given stay.
    fn take_rows(&mut self) -> Vec<Column>;
}

/// A column whose rows may be empty.
#[derive(Default)]
struct Optional<T> {
    values: Vec<T>,
    valid: Vec<bool>,
}

impl<T: Default> Optional<T> {
    fn push(&mut self, value: Option<T>) {
        self.valid.push(value.is_some());
        self.values.push(value.unwrap_or_default());
    }
    fn column(self, name: &'static str, values: impl FnOnce(Vec<T>) -> Values) -> Column {
        Column { name, values: values(self.values), valid: Some(self.valid) }
    }
}

/// A column of texts out of a small set.
#[derive(Default)]
struct Category {
    codes: Vec<u16>,
    names: Vec<String>,
    by_name: BTreeMap<String, u16>,
    last: u16,
}

impl Category {
    fn push(&mut self, name: &str) {
        // Most rows repeat the name of the row before.
        if self.names.get(usize::from(self.last)).is_none_or(|n| n != name) {
            self.last = self.by_name.get(name).copied().unwrap_or_else(|| self.add(name));
        }
        self.codes.push(self.last);
    }
    /// Registers `name`. There are fewer than 65,536 names of points, links, hosts or states; should there ever
    /// be more, the rest share the last code.
    fn add(&mut self, name: &str) -> u16 {
        if let Ok(code) = u16::try_from(self.names.len()) {
            self.names.push(name.to_owned());
            self.by_name.insert(name.to_owned(), code);
        }
        (self.names.len() - 1) as u16
    }
    fn values(self) -> Values {
        Values::Category { codes: self.codes, names: self.names }
    }
    fn column(self, name: &'static str) -> Column {
        Column { name, values: self.values(), valid: None }
    }
}

/// A column of texts out of a small set, whose rows may be empty.
#[derive(Default)]
struct OptionalCategory {
    category: Category,
    valid: Vec<bool>,
}

impl OptionalCategory {
    fn push(&mut self, name: Option<&str>) {
        self.valid.push(name.is_some());
        match name {
            Some(name) => self.category.push(name),
            None => self.category.codes.push(0),
        }
    }
    fn column(self, name: &'static str) -> Column {
        Column { name, values: self.category.values(), valid: Some(self.valid) }
    }
}

/// A column that has a value in each row.
fn full(name: &'static str, values: Values) -> Column {
    Column { name, values, valid: None }
}

/// Nanoseconds as tables hold them.
fn nanos(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_of_every_table_has_as_many_rows_as_the_others() {
        for (table, columns) in Tables::default().into_columns() {
            for column in columns {
                assert!(column.values.is_empty(), "{table}.{}", column.name);
                assert!(column.valid.is_none_or(|v| v.is_empty()));
            }
        }
    }

    #[test]
    fn repeated_texts_share_a_code() {
        let mut c = Category::default();
        for name in ["a", "b", "b", "a", "c"] {
            c.push(name);
        }
        let names = ["a", "b", "c"].map(str::to_owned).to_vec();
        assert_eq!(c.values(), Values::Category { codes: vec![0, 1, 1, 0, 2], names });
    }

    #[test]
    fn an_empty_text_is_not_a_text() {
        let mut c = OptionalCategory::default();
        c.push(None);
        c.push(Some("a"));
        let column = c.column("reason");
        assert_eq!(column.valid, Some(vec![false, true]));
        assert_eq!(column.values, Values::Category { codes: vec![0, 0], names: vec!["a".to_owned()] });
    }
}

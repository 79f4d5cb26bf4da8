//! Tables as typed columns, ready for Parquet.
//!
//! One file per table; the column names are the product's interface. Each table grows one typed vector per
//! column; [`Tables::into_columns`] hands them on without copying. Times are nanoseconds since the run began.

mod column;
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

use column::Table;
pub use column::{Cells, Column, Optional, Values};
use congestion::Congestion;
use flows::Flows;
use objects::Objects;
use packets::Packets;
use pages::Pages;
use runs::{DROPPED, Runs, by_run};
use states::States;

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
        let all = [
            ("flows", left_out.flows, runs.flows, self.flows.into_columns()),
            ("pages", left_out.pages, runs.pages, self.pages.into_columns()),
            ("objects", left_out.objects, runs.objects, self.objects.into_columns()),
            ("states", left_out.states, runs.states, self.states.into_columns()),
            ("congestion", left_out.congestion, runs.congestion, self.congestion.into_columns()),
        ];
        let wanted = all.into_iter().filter(|(_, is_left_out, ..)| !is_left_out);
        wanted.map(|(name, _, runs, columns)| (name, by_run(runs, columns))).collect()
    }
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
}

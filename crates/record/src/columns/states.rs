//! One row per stay in a radio state, and per stretch of air time.
//!
//! A stay has no direction and no octets; air time has both, and `ns`, how long it lasted: what energy is
//! computed from.

use std::collections::BTreeMap;
use std::mem::take;

use airloom_base::record::StateRecord;
use airloom_base::{Direction, Station};

use super::column::{Category, Column, Optional, OptionalCategory, Table, Values, full, nanos};

/// The states table.
#[derive(Default)]
pub(super) struct States {
    hosts: BTreeMap<String, BTreeMap<Station, String>>,
    t_ns: Vec<i64>,
    host: OptionalCategory,
    link: Category,
    station: Vec<u16>,
    state: Category,
    until_ns: Optional<i64>,
    dir: OptionalCategory,
    octets: Optional<u64>,
    ns: Optional<i64>,
    retransmission: Optional<u64>,
}

impl States {
    pub(super) fn forget_stations(&mut self) {
        self.hosts.clear();
    }

    pub(super) fn name_station(&mut self, link: &str, station: Station, host: &str) {
        self.hosts.entry(link.to_owned()).or_default().insert(station, host.to_owned());
    }

    pub(super) fn push(&mut self, state: &StateRecord) {
        let air = state.direction.is_some();
        self.t_ns.push(nanos(state.at.as_nanos()));
        let host = self.hosts.get(&state.link).and_then(|l| l.get(&state.station));
        self.host.push(host.map(String::as_str));
        self.link.push(&state.link);
        self.station.push(state.station.0);
        self.state.push(state.state);
        self.until_ns.push(state.until.map(|t| nanos(t.as_nanos())));
        self.dir.push(state.direction.map(Direction::short));
        self.octets.push(air.then_some(state.octets));
        self.ns.push(state.until.filter(|_| air).map(|t| nanos(t.since(state.at).as_nanos())));
        self.retransmission.push(air.then_some(state.resent));
    }

    pub(super) fn into_columns(self) -> Vec<Column> {
        vec![
            full("t_ns", Values::I64(self.t_ns)),
            self.host.column("host"),
            self.link.column("link"),
            full("station", Values::U16(self.station)),
            self.state.column("state"),
            self.until_ns.column("until_ns", Values::I64),
            self.dir.column("dir"),
            self.octets.column("octets", Values::U64),
            self.ns.column("ns", Values::I64),
            self.retransmission.column("retransmission", Values::U64),
        ]
    }
}

impl Table for States {
    fn rows(&self) -> usize {
        self.t_ns.len()
    }

    fn take_rows(&mut self) -> Vec<Column> {
        let hosts = take(&mut self.hosts);
        let taken = take(self);
        self.hosts = hosts;
        taken.into_columns()
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::Instant;

    use super::*;

    #[test]
    fn a_stay_has_a_host_and_no_octets_and_air_time_has_both() {
        let mut states = States::default();
        states.name_station("radio", Station(1), "mobile[1]");
        let stay = StateRecord {
            at: Instant::from_nanos(5),
            until: Some(Instant::from_nanos(25)),
            link: "radio".to_owned(),
            station: Station(1),
            state: "dch",
            direction: None,
            octets: 0,
            resent: 0,
        };
        states.push(&stay);
        states.push(&StateRecord { direction: Some(Direction::Uplink), octets: 40, state: "tx", ..stay });
        let columns = states.into_columns();
        let get = |name: &str| columns.iter().find(|c| c.name == name).unwrap();
        assert_eq!(get("host").valid, Some(vec![true, true]));
        assert_eq!(get("octets").valid, Some(vec![false, true]));
        assert_eq!(get("ns").values, Values::I64(vec![0, 20]));
    }
}

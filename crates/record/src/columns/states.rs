//! One row per stay in a radio state, and per stretch of air time.
//!
//! A stay has no direction and no octets; air time has both, and `ns`, how long it lasted: what energy is
//! computed from.

use std::collections::BTreeMap;

use airloom_base::record::StateRecord;
use airloom_base::{Direction, Station};

use super::column::{Category, Cells, Column, Optional, OptionalCategory, Table, nanos, table};

table! {
    /// The states table.
    States counted by t_ns of (state: &StateRecord) keeping { hosts: BTreeMap<String, BTreeMap<Station, String>> } with {
        let air = state.direction.is_some();
        let host = hosts.get(&state.link).and_then(|l| l.get(&state.station));
    } {
        t_ns: Vec<i64> = nanos(state.at.as_nanos());
        host: OptionalCategory = host.map(String::as_str);
        link: Category = &state.link;
        station: Vec<u16> = state.station.0;
        state: Category = state.state;
        until_ns: Optional<i64> = state.until.map(|t| nanos(t.as_nanos()));
        dir: OptionalCategory = state.direction.map(Direction::short);
        octets: Optional<u64> = air.then_some(state.octets);
        ns: Optional<i64> = state.until.filter(|_| air).map(|t| nanos(t.since(state.at).as_nanos()));
        retransmission: Optional<u64> = air.then_some(state.resent);
    }
}

impl States {
    pub(super) fn forget_stations(&mut self) {
        self.hosts.clear();
    }

    pub(super) fn name_station(&mut self, link: &str, station: Station, host: &str) {
        self.hosts.entry(link.to_owned()).or_default().insert(station, host.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::Instant;

    use super::super::Values;
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

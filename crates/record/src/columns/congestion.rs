//! One row per change of a sender's congestion state or round-trip time.

use std::mem::take;

use airloom_base::record::CongestionRecord;

use super::column::{Category, Column, Optional, OptionalCategory, Table, Values, full, nanos};

/// The congestion table.
#[derive(Default)]
pub(super) struct Congestion {
    hosts: Vec<String>,
    t_ns: Vec<i64>,
    host: OptionalCategory,
    flow: Vec<u32>,
    cwnd: Vec<u64>,
    ssthresh: Optional<u64>,
    in_flight: Vec<u64>,
    srtt_ns: Optional<i64>,
    rto_ns: Vec<i64>,
    state: Category,
}

impl Congestion {
    pub(super) fn name_hosts(&mut self, hosts: impl IntoIterator<Item = String>) {
        self.hosts = hosts.into_iter().collect();
    }

    pub(super) fn push(&mut self, sample: &CongestionRecord) {
        self.t_ns.push(nanos(sample.at.as_nanos()));
        self.host.push(self.hosts.get(usize::from(sample.host)).map(String::as_str));
        self.flow.push(sample.flow);
        self.cwnd.push(sample.cwnd);
        // Before the first loss there is no threshold.
        self.ssthresh.push(Some(sample.ssthresh).filter(|s| *s != u64::MAX));
        self.in_flight.push(sample.in_flight);
        self.srtt_ns.push(sample.srtt.map(|d| nanos(d.as_nanos())));
        self.rto_ns.push(nanos(sample.rto.as_nanos()));
        self.state.push(sample.state);
    }

    pub(super) fn into_columns(self) -> Vec<Column> {
        vec![
            full("t_ns", Values::I64(self.t_ns)),
            self.host.column("host"),
            full("flow", Values::U32(self.flow)),
            full("cwnd", Values::U64(self.cwnd)),
            self.ssthresh.column("ssthresh", Values::U64),
            full("in_flight", Values::U64(self.in_flight)),
            self.srtt_ns.column("srtt_ns", Values::I64),
            full("rto_ns", Values::I64(self.rto_ns)),
            self.state.column("state"),
        ]
    }
}

impl Table for Congestion {
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

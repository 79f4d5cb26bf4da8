//! One row per change of a sender's congestion state or round-trip time.

use airloom_base::record::CongestionRecord;

use super::column::{Category, Cells, Column, Optional, OptionalCategory, Table, nanos, table};

table! {
    /// The congestion table.
    Congestion counted by t_ns of (sample: &CongestionRecord) keeping { hosts: Vec<String> } {
        t_ns: Vec<i64> = nanos(sample.at.as_nanos());
        host: OptionalCategory = hosts.get(usize::from(sample.host)).map(String::as_str);
        flow: Vec<u32> = sample.flow;
        cwnd: Vec<u64> = sample.cwnd;
        // Before the first loss there is no threshold.
        ssthresh: Optional<u64> = Some(sample.ssthresh).filter(|s| *s != u64::MAX);
        in_flight: Vec<u64> = sample.in_flight;
        srtt_ns: Optional<i64> = sample.srtt.map(|d| nanos(d.as_nanos()));
        rto_ns: Vec<i64> = nanos(sample.rto.as_nanos());
        state: Category = sample.state;
    }
}

impl Congestion {
    pub(super) fn name_hosts(&mut self, hosts: impl IntoIterator<Item = String>) {
        self.hosts = hosts.into_iter().collect();
    }
}

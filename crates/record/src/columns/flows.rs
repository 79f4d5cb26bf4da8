//! One row per flow, put together from what its two ends report.
//!
//! "Up" is from the end that opened the flow. An end in a real host reports nothing: its half of the row is then
//! taken from the other end's view.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;

use airloom_base::record::FlowRecord;
use airloom_base::{Duration, Instant};

use super::column::{Category, Cells, Column, Optional, OptionalCategory, Table, nanos, table};

/// Of a flow between a simulated and a real host the other end never reports, and nothing tells it from one that will. Where
/// rows are taken while the run goes on, so many wait for it; the oldest of more is a row as it is.
const MOST_WAITING: usize = 16_384;

/// The flows table.
#[derive(Default)]
pub(super) struct Flows {
    ends: Vec<Ends>,
    /// Rows of which one end is still missing.
    waiting: BTreeMap<u32, usize>,
    /// Rows of which none is.
    paired: BTreeMap<u32, usize>,
    /// Rows of the runs that have ended.
    rows: Rows,
}

#[derive(Default)]
pub(super) struct Ends {
    opener: Option<FlowRecord>,
    acceptor: Option<FlowRecord>,
}

impl Ends {
    fn both(&self) -> impl Iterator<Item = &FlowRecord> {
        self.opener.iter().chain(&self.acceptor)
    }
    /// The opener's answer, or else the acceptor's.
    fn first<T>(&self, of: impl Fn(&FlowRecord) -> Option<T>) -> Option<T> {
        self.both().find_map(of)
    }
    fn sum(&self, of: impl Fn(&FlowRecord) -> u64) -> u64 {
        self.both().map(of).sum()
    }
    fn any(&self) -> &FlowRecord {
        self.both().next().expect("a row is made for an end")
    }
    /// The end that sent more application data: the one whose round-trip time counts.
    fn sender(&self) -> &FlowRecord {
        match (&self.opener, &self.acceptor) {
            (Some(o), Some(a)) if a.facts.app_sent > o.facts.app_sent && a.facts.srtt.is_some() => a,
            (Some(o), Some(a)) if o.facts.srtt.is_none() => a,
            _ => self.any(),
        }
    }
}

/// The far end gave up a connection that was half open, and a unit of the same flow opened another one there: they are one end.
fn add_up(end: &mut FlowRecord, next: &FlowRecord) {
    let earlier = |a: Option<Instant>, b: Option<Instant>| a.into_iter().chain(b).min();
    let (f, n) = (&mut end.facts, &next.facts);
    f.established = earlier(f.established, n.established);
    f.first_byte = earlier(f.first_byte, n.first_byte);
    f.app_sent += n.app_sent;
    f.app_received += n.app_received;
    f.wire_sent += n.wire_sent;
    f.wire_received += n.wire_received;
    f.segments += n.segments;
    f.resent += n.resent;
    f.spurious += n.spurious;
    f.rto_count += n.rto_count;
    f.srtt = n.srtt.or(f.srtt);
    f.min_rtt = f.min_rtt.into_iter().chain(n.min_rtt).min();
    f.end = n.end.or(f.end);
    end.open = end.open.min(next.open);
    end.close = next.close.or(end.close);
}

impl Flows {
    pub(super) fn push(&mut self, record: &FlowRecord) {
        let slot = |ends: &mut Ends, record: &FlowRecord| -> bool {
            // Both ends of a simultaneous open call themselves openers: the first report counts as one.
            let wanted =
                if record.opener && ends.opener.is_none() { &mut ends.opener } else { &mut ends.acceptor };
            let free = wanted.is_none();
            if free {
                *wanted = Some(record.clone());
            }
            free
        };
        if let Some(row) = self.waiting.get(&record.flow).copied()
            && slot(&mut self.ends[row], record)
        {
            self.waiting.remove(&record.flow);
            self.paired.insert(record.flow, row);
            return;
        }
        if !record.opener
            && let Some(row) = self.waiting.get(&record.flow).or_else(|| self.paired.get(&record.flow))
            && let Some(end) = &mut self.ends[*row].acceptor
        {
            add_up(end, record);
            return;
        }
        let mut ends = Ends::default();
        slot(&mut ends, record);
        self.waiting.insert(record.flow, self.ends.len());
        self.ends.push(ends);
    }

    /// Nothing more comes of these flows: they become rows, in the order in which they were opened. How many there are.
    pub(super) fn end_run(&mut self) -> usize {
        self.waiting.clear();
        self.paired.clear();
        let ends = take(&mut self.ends);
        self.become_rows(ends);
        self.rows.flow.len()
    }

    fn become_rows(&mut self, mut ends: Vec<Ends>) {
        ends.sort_by_key(|e| (e.both().map(|r| r.open).min(), e.any().flow));
        ends.iter().for_each(|e| self.rows.push(e));
    }

    pub(super) fn into_columns(mut self) -> Vec<Column> {
        self.end_run();
        self.rows.into_columns()
    }
}

impl Table for Flows {
    fn rows(&self) -> usize {
        let waiting = self.waiting.len();
        self.ends.len() - waiting + waiting.saturating_sub(MOST_WAITING)
    }

    fn take_rows(&mut self) -> Vec<Column> {
        let waiting: BTreeSet<usize> = self.waiting.values().copied().collect();
        let mut too_many = waiting.len().saturating_sub(MOST_WAITING);
        let (mut done, mut kept) = (Vec::new(), Vec::new());
        for (place, ends) in take(&mut self.ends).into_iter().enumerate() {
            let is_waiting = waiting.contains(&place);
            let is_too_old = is_waiting && too_many > 0;
            too_many -= usize::from(is_too_old);
            if is_waiting && !is_too_old { &mut kept } else { &mut done }.push(ends);
        }
        self.waiting = kept.iter().enumerate().map(|(place, ends)| (ends.any().flow, place)).collect();
        self.ends = kept;
        self.paired.clear();
        self.become_rows(done);
        take(&mut self.rows).into_columns()
    }
}

table! {
    Rows counted by flow of (ends: &Ends) with {
        let any = ends.any();
        let (src, dst) = if ends.opener.is_some() { (&any.local, &any.remote) } else { (&any.remote, &any.local) };
        let open = ends.both().map(|r| r.open).min().unwrap_or_default();
        let (o, a) = (ends.opener.as_ref().map(|r| &r.facts), ends.acceptor.as_ref().map(|r| &r.facts));
        let known = |first: Option<u64>, second: Option<u64>| first.or(second).unwrap_or(0);
        let ms = |d: Duration| d.as_nanos() as f64 / 1e6;
    } {
        flow: Vec<u32> = any.flow;
        proto: Category = any.proto;
        src: Vec<String> = src.clone();
        dst: Vec<String> = dst.clone();
        open_ns: Vec<i64> = nanos(open.as_nanos());
        established_ns: Optional<i64> = ends.first(|r| r.facts.established).map(|t| nanos(t.as_nanos()));
        first_byte_ns: Optional<i64> = ends.first(|r| r.facts.first_byte).map(|t| nanos(t.as_nanos()));
        close_ns: Optional<i64> = ends.first(|r| r.close).map(|t| nanos(t.as_nanos()));
        // Application octets are those that arrived; wire octets are those that were sent.
        app_bytes_up: Vec<u64> = known(a.map(|f| f.app_received), o.map(|f| f.app_sent));
        app_bytes_down: Vec<u64> = known(o.map(|f| f.app_received), a.map(|f| f.app_sent));
        wire_bytes_up: Vec<u64> = known(o.map(|f| f.wire_sent), a.map(|f| f.wire_received));
        wire_bytes_down: Vec<u64> = known(a.map(|f| f.wire_sent), o.map(|f| f.wire_received));
        segments: Vec<u64> = ends.sum(|r| r.facts.segments);
        resent: Vec<u64> = ends.sum(|r| r.facts.resent);
        spurious: Vec<u64> = ends.sum(|r| r.facts.spurious);
        rto_count: Vec<u64> = ends.sum(|r| u64::from(r.facts.rto_count));
        srtt_ms: Optional<f64> = ends.sender().facts.srtt.map(ms);
        min_rtt_ms: Optional<f64> = ends.both().filter_map(|r| r.facts.min_rtt).min().map(ms);
        end: OptionalCategory = ends.first(|r| r.facts.end).map(|end| end.name());
    }
}

#[cfg(test)]
mod tests {
    use super::super::Values;
    use super::*;
    use airloom_base::service::{CloseReason, FlowFacts};

    fn end(flow: u32, opener: bool, open: u64, facts: FlowFacts) -> FlowRecord {
        let (client, server) = ("10.0.0.1:5000".to_owned(), "10.0.0.2:80".to_owned());
        let (local, remote) = if opener { (client, server) } else { (server, client) };
        FlowRecord {
            flow,
            proto: "tcp",
            local,
            remote,
            opener,
            open: Instant::from_nanos(open),
            close: None,
            facts,
        }
    }

    fn columns(records: &[FlowRecord]) -> Vec<Column> {
        let mut flows = Flows::default();
        records.iter().for_each(|r| flows.push(r));
        flows.into_columns()
    }

    fn get<'a>(columns: &'a [Column], name: &str) -> &'a Column {
        columns.iter().find(|c| c.name == name).unwrap()
    }

    #[test]
    fn two_ends_make_one_row_whichever_reports_first() {
        let client = end(
            1,
            true,
            0,
            FlowFacts { app_sent: 100, app_received: 900, resent: 1, ..FlowFacts::default() },
        );
        let server = end(
            1,
            false,
            10,
            FlowFacts {
                app_sent: 1000,
                app_received: 90,
                wire_sent: 1200,
                resent: 2,
                srtt: Some(Duration::from_millis(40)),
                end: Some(CloseReason::Finished),
                ..FlowFacts::default()
            },
        );
        let a = columns(&[client.clone(), server.clone()]);
        assert_eq!(a, columns(&[server, client]));
        assert_eq!(get(&a, "src").values, Values::Text(vec!["10.0.0.1:5000".to_owned()]));
        assert_eq!(get(&a, "app_bytes_up").values, Values::U64(vec![90]));
        assert_eq!(get(&a, "app_bytes_down").values, Values::U64(vec![900]));
        assert_eq!(get(&a, "wire_bytes_down").values, Values::U64(vec![1200]));
        assert_eq!(get(&a, "resent").values, Values::U64(vec![3]));
        assert_eq!(get(&a, "srtt_ms").values, Values::F64(vec![40.0]));
        assert_eq!(get(&a, "end").valid, Some(vec![true]));
    }

    #[test]
    fn a_flow_to_a_real_host_is_told_by_its_simulated_end() {
        let facts = FlowFacts { app_received: 70, wire_received: 80, wire_sent: 9, ..FlowFacts::default() };
        let a = columns(&[end(3, false, 5, facts)]);
        assert_eq!(get(&a, "src").values, Values::Text(vec!["10.0.0.1:5000".to_owned()]));
        assert_eq!(get(&a, "app_bytes_up").values, Values::U64(vec![70]));
        assert_eq!(get(&a, "wire_bytes_up").values, Values::U64(vec![80]));
        assert_eq!(get(&a, "wire_bytes_down").values, Values::U64(vec![9]));
    }

    #[test]
    fn connections_that_the_far_end_had_in_turn_are_one_end() {
        let opener = end(1, true, 0, FlowFacts { app_received: 30, segments: 9, ..FlowFacts::default() });
        let half = |open: u64, app_received: u64, wire_sent: u64| {
            let facts = FlowFacts { app_received, wire_sent, segments: 2, ..FlowFacts::default() };
            end(1, false, open, facts)
        };
        let (first, second) = (half(10, 0, 40), half(50, 70, 300));
        let a = columns(&[first.clone(), second.clone(), opener.clone()]);
        assert_eq!(a, columns(&[first.clone(), opener.clone(), second.clone()]));
        assert_eq!(a, columns(&[opener, first, second]));
        assert_eq!(get(&a, "flow").values, Values::U32(vec![1]));
        assert_eq!(get(&a, "app_bytes_up").values, Values::U64(vec![70]));
        assert_eq!(get(&a, "wire_bytes_down").values, Values::U64(vec![340]));
        assert_eq!(get(&a, "segments").values, Values::U64(vec![13]));
    }

    #[test]
    fn both_openers_of_a_simultaneous_open_share_a_row() {
        let mut second = end(1, true, 1, FlowFacts::default());
        std::mem::swap(&mut second.local, &mut second.remote);
        let a = columns(&[end(1, true, 0, FlowFacts::default()), second]);
        assert_eq!(get(&a, "flow").values, Values::U32(vec![1]));
    }

    #[test]
    fn rows_are_taken_when_both_ends_are_there_and_not_more_wait_than_may() {
        let mut flows = Flows::default();
        let opened = |flow: u32| end(flow, true, u64::from(flow), FlowFacts::default());
        let answered = |flow: u32| end(flow, false, u64::from(flow), FlowFacts::default());
        let numbers = |columns: &[Column]| match &get(columns, "flow").values {
            Values::U32(numbers) => numbers.clone(),
            _ => panic!("numbers"),
        };
        [opened(1), opened(2), opened(3), answered(2)].iter().for_each(|record| flows.push(record));
        assert_eq!(flows.rows(), 1);
        assert_eq!(numbers(&flows.take_rows()), [2]);
        assert_eq!(flows.rows(), 0);
        let last = 3 + MOST_WAITING as u32;
        (4..=last).for_each(|flow| flows.push(&opened(flow)));
        assert_eq!(flows.rows(), 2);
        assert_eq!(numbers(&flows.take_rows()), [1, 3]);
        flows.push(&answered(last));
        assert_eq!(numbers(&flows.take_rows()), [last]);
        assert_eq!(flows.into_columns()[0].values.len(), MOST_WAITING - 1);
    }

    #[test]
    fn rows_are_in_the_order_in_which_flows_were_opened() {
        let a = columns(&[
            end(2, true, 20, FlowFacts::default()),
            end(1, true, 10, FlowFacts::default()),
            end(3, true, 10, FlowFacts::default()),
        ]);
        assert_eq!(get(&a, "flow").values, Values::U32(vec![1, 3, 2]));
    }
}

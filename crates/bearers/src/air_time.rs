//! Records that radio links share: air time, and stays in a radio state.

use airloom_base::record::{Record, StateRecord};
use airloom_base::{Cx, Direction, Duration, Instant, Station};

/// Who sends.
#[derive(Clone, Copy)]
pub struct Origin<'a> {
    pub link: &'a str,
    pub station: Station,
    pub direction: Direction,
}

/// Air time of adjoining transmission intervals.
#[derive(Clone, Copy, Default)]
pub struct Burst {
    from: Instant,
    until: Instant,
    octets: u64,
    resent: u64,
}

/// A burst of air time is reported at least this often.
const LONGEST_BURST: Duration = Duration::from_secs(1);

impl Burst {
    /// An interval was used for so many octets, some of them again; `goes_on`: the next will be, too.
    pub fn note(
        &mut self,
        cx: &mut Cx,
        origin: Origin,
        (from, until): (Instant, Instant),
        (octets, resent): (u64, u64),
        goes_on: bool,
    ) {
        let joins = self.octets > 0 && self.until == from;
        if !joins {
            self.flush(cx, origin);
        }
        if joins {
            self.until = until;
            self.octets += octets;
            self.resent += resent;
        } else {
            *self = Burst { from, until, octets, resent };
        }
        if !goes_on || self.until.since(self.from) >= LONGEST_BURST {
            self.tell(cx, origin);
        }
    }

    /// Nothing joins what was noted: the run ends, or the mobile leaves.
    pub fn flush(&mut self, cx: &mut Cx, origin: Origin) {
        if self.octets > 0 {
            self.tell(cx, origin);
        }
    }

    fn tell(&mut self, cx: &mut Cx, origin: Origin) {
        let Burst { from, until, octets, resent } = std::mem::take(self);
        cx.records.push(Record::State(StateRecord {
            at: from,
            until: Some(until),
            link: origin.link.to_owned(),
            station: origin.station,
            state: "tx",
            direction: Some(origin.direction),
            octets,
            resent,
        }));
    }
}

/// The mobile is in the radio state `state` from now on.
pub fn push_state(cx: &mut Cx, link: &str, station: Station, state: &'static str) {
    if cx.records.wants_facts() {
        cx.records.push(Record::State(StateRecord {
            at: cx.now,
            until: None,
            link: link.to_owned(),
            station,
            state,
            direction: None,
            octets: 0,
            resent: 0,
        }));
    }
}

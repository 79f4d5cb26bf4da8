//! Pauses of a sender, and what it waited for.

use serde::Serialize;

use crate::sender::{Cause, Kind, Sender};

/// A pause is no stall below this, unless the caller says otherwise.
const SHORTEST_NS: u64 = 200_000_000;

/// How many pauses of a sender are kept.
const MOST: usize = 10_000;

/// So many pauses are a rhythm.
const FEWEST: usize = 6;

/// A pause that is so many times as long as the usual one is unlike the rhythm.
const UNLIKE: u64 = 2;

/// Why a sender paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// It went on by a retransmission timeout or a tail loss probe.
    Timeout,
    /// The other end's window was full or closed.
    ReceiverWindow,
    /// What was in flight was not acknowledged for so long: the network held it, or an outage of a link did.
    NoAcknowledgement,
    /// Everything was acknowledged; the program had nothing to send.
    Application,
    /// Seen near the receiver: what did not arrive for so long may have been lost, held up or never sent.
    Unseen,
    /// Data was in flight when the capture ended.
    EndOfCapture,
}

/// A pause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stall {
    /// When the sender sent last, in seconds since the first frame.
    pub begin_s: f64,
    /// When it went on.
    pub end_s: f64,
    /// What it waited for.
    pub why: Why,
    /// Octets in flight when it went on.
    pub in_flight: u64,
}

/// Pauses that come so often, and so alike, that they are how a sender sends: rounds of a link, a program's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rhythm {
    /// How many there were.
    pub count: u64,
    /// How long they lasted: the median, in seconds.
    pub median_s: f64,
}

/// The pauses of a sender.
#[derive(Default)]
pub(crate) struct Stalls {
    /// Those that count; once settled, those that are unlike the rhythm.
    pub(crate) list: Vec<(u64, u64, Why, u64)>,
    /// How many there are, also when these are too many to be kept.
    pub(crate) count: u64,
    pub(crate) rhythm: Option<Rhythm>,
    /// What the sender had when it sent last: could the other end have taken a segment more?
    last: Option<Last>,
}

struct Last {
    at_ns: u64,
    is_window_full: bool,
}

/// How long a pause has to be: what the caller says, else two round trips, 0.2 s at least.
pub(crate) fn shortest(sender: &Sender, wanted_ns: Option<u64>) -> u64 {
    wanted_ns.unwrap_or_else(|| SHORTEST_NS.max(2 * sender.rtt.smoothed().unwrap_or(0)))
}

impl Stalls {
    /// Data is about to be counted as sent: `in_flight` and `idle_since_ns` are those of before.
    pub(crate) fn before(&self, at_ns: u64) -> Option<u64> {
        self.last.as_ref().map(|last| at_ns.saturating_sub(last.at_ns))
    }

    /// Data was sent after a pause that counts. `idle_since_ns` and `in_flight` are those of just before it.
    pub(crate) fn paused(&mut self, at_ns: u64, kind: Kind, idle_since_ns: Option<u64>, in_flight: u64) {
        let Some(last) = &self.last else { return };
        let idle_ns = idle_since_ns.map_or(0, |since| at_ns.saturating_sub(since.max(last.at_ns)));
        let paused_ns = at_ns.saturating_sub(last.at_ns);
        let why = match kind {
            Kind::Again { cause: Cause::Timer, .. } => Why::Timeout,
            _ if last.is_window_full => Why::ReceiverWindow,
            _ if idle_ns > paused_ns / 2 => Why::Application,
            _ => Why::NoAcknowledgement,
        };
        self.push(last.at_ns, at_ns, why, in_flight);
    }

    /// The capture was made near the receiver: what is seen there says nothing of what the sender waited for, but for
    /// the window, which leaves there.
    pub(crate) fn seen_from_afar(&mut self) {
        for (_, _, why, _) in &mut self.list {
            if matches!(*why, Why::Application | Why::Timeout | Why::NoAcknowledgement) {
                *why = Why::Unseen;
            }
        }
    }

    /// The pauses are all known: those that are alike are the rhythm, and no stalls. A timer that expires is never one.
    pub(crate) fn settle(&mut self) {
        let may_be_usual = |why: Why| !matches!(why, Why::Timeout | Why::EndOfCapture);
        let mut usual: Vec<u64> = self
            .list
            .iter()
            .filter(|(_, _, why, _)| may_be_usual(*why))
            .map(|(from, to, ..)| to - from)
            .collect();
        if usual.len() < FEWEST {
            return;
        }
        usual.sort_unstable();
        let longest = UNLIKE * usual[usual.len() / 2];
        let of_rhythm = usual.partition_point(|pause| *pause < longest);
        let median_s = usual[of_rhythm / 2] as f64 / 1e9;
        self.rhythm = Some(Rhythm { count: of_rhythm as u64, median_s });
        self.count -= of_rhythm as u64;
        self.list.retain(|(from, to, why, _)| !may_be_usual(*why) || to - from >= longest);
    }

    /// The capture ended.
    pub(crate) fn ended(&mut self, at_ns: u64, shortest_ns: u64, in_flight: u64) {
        if let Some(last) = &self.last
            && in_flight > 0
            && at_ns.saturating_sub(last.at_ns) >= shortest_ns
        {
            self.push(last.at_ns, at_ns, Why::EndOfCapture, in_flight);
        }
    }

    fn push(&mut self, begin: u64, end: u64, why: Why, in_flight: u64) {
        self.count += 1;
        if self.list.len() < MOST {
            self.list.push((begin, end, why, in_flight));
        }
    }

    /// Data was sent.
    pub(crate) fn sent(&mut self, at_ns: u64, sender: &Sender) {
        let room = sender.window().map(|window| (sender.acked + window).saturating_sub(sender.end));
        let segment = u64::from(sender.mss.unwrap_or(536));
        self.last = Some(Last { at_ns, is_window_full: room.is_some_and(|room| room < segment) });
    }
}

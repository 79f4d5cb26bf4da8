//! The states of BBR (draft-ietf-ccwg-bbr, 5.3).
//!
//! | state | rate | window | until |
//! |---|---|---|---|
//! | Startup | 2.77 | 2 | three rounds bring less than a quarter more, or a round of recovery loses too much |
//! | Drain | 0.5 | 2 | what is in flight fits the path, or three rounds |
//! | Down | 0.9 | 2 | the queue is gone, and some room is left to others |
//! | Cruise | 1 | 2 | two to three seconds since Down began, or as many rounds as Reno would need |
//! | Refill | 1 | 2 | a round |
//! | Up | 1.25 | 2.25 | no more comes through, or too much is lost; the first time after that: the bound is reached |
//! | ProbeRtt | 1 | 0.5 | 200 ms and a round; each 5 s, unless the round trip was as short as ever meanwhile |

/// The states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    /// In thousandths, as all gains.
    pub(super) const fn pacing_gain(self) -> u64 {
        match self {
            State::Startup => 2770,
            State::Drain => 500,
            State::Down => 900,
            State::Cruise | State::Refill | State::ProbeRtt => 1000,
            State::Up => 1250,
        }
    }

    pub(super) const fn cwnd_gain(self) -> u64 {
        match self {
            State::Up => 2250,
            State::ProbeRtt => 500,
            _ => 2000,
        }
    }

    pub(super) const fn is_probe_bw(self) -> bool {
        matches!(self, State::Down | State::Cruise | State::Refill | State::Up)
    }

    /// Is more tried than is known to pass? Losses then bound it, and say nothing of what passed before.
    pub(super) const fn is_accelerating(self) -> bool {
        matches!(self, State::Startup | State::Refill | State::Up)
    }
}

/// What acknowledgements are of that arrive now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckPhase {
    /// Of nothing that was sent to probe.
    Init,
    /// Of what was sent before Up began.
    ProbeStarting,
    /// Of what was sent in Up.
    ProbeFeedback,
    /// Of what was sent in Up, which is over.
    ProbeStopping,
    Refilling,
}

//! Where a capture was made, as a sender sees it, and what can be told from there.

use serde::Serialize;

use crate::sender::Sender;

/// A capture is near one end if the way to that end is so many times shorter than the one to the other.
const FAR: u64 = 4;

/// Ends that are nearer than this are all the same to a capture: between two programs of one machine there is no way.
const NEAR_NS: u64 = 1_000_000;

/// Where the capture stands on the way of what one end sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Viewpoint {
    /// It does not show: the beginning is missing, or both ends are near.
    #[default]
    Unknown,
    /// Near the sender: it sees every transmission, and what set it off.
    Sender,
    /// On the way: what was lost before it was never seen.
    Between,
    /// Near the receiver: it sees what arrives, and not why something does not.
    Receiver,
    /// The other end's segments were not captured.
    OneDirection,
}

impl Viewpoint {
    /// Where it stands on the way from `own` to `other`.
    pub(crate) fn of(own: &Sender, other: &Sender) -> Viewpoint {
        if other.counts.segments == 0 {
            return Viewpoint::OneDirection;
        }
        // What `own` sends is acknowledged after the way from here to the receiver and back.
        let (ahead, behind) = (own.rtt.least(), other.rtt.least());
        match (ahead, behind) {
            (Some(ahead), Some(behind)) if ahead < behind / FAR && behind > NEAR_NS => Viewpoint::Receiver,
            (Some(ahead), Some(behind)) if behind < ahead / FAR && ahead > NEAR_NS => Viewpoint::Sender,
            (Some(ahead), Some(behind)) if ahead.max(behind) > NEAR_NS => Viewpoint::Between,
            // Holes that are filled later were there before: something was lost on the way to here.
            (Some(ahead), _) if own.counts.filled > 0 && ahead < NEAR_NS => Viewpoint::Receiver,
            _ => Viewpoint::Unknown,
        }
    }

    /// Does it show what the sender has in flight, for how long, and what sets a transmission off?
    pub(crate) fn sees_sender(self) -> bool {
        !matches!(self, Viewpoint::Receiver | Viewpoint::OneDirection)
    }

    /// Were acknowledgements captured?
    pub(crate) fn sees_acknowledgements(self) -> bool {
        self != Viewpoint::OneDirection
    }
}

//! Which way on a link, and at which of its ends.

/// A direction on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// Towards the network (on a wire: from the host named first to the one named second).
    Uplink = 0,
    /// Towards the mobile.
    Downlink = 1,
}

impl Direction {
    /// Both, uplink first: the order in which grids are served.
    pub const BOTH: [Direction; 2] = [Direction::Uplink, Direction::Downlink];

    /// The other one.
    #[inline]
    pub const fn reverse(self) -> Direction {
        match self {
            Direction::Uplink => Direction::Downlink,
            Direction::Downlink => Direction::Uplink,
        }
    }
    /// `ul` or `dl`, as in point names.
    pub const fn short(self) -> &'static str {
        match self {
            Direction::Uplink => "ul",
            Direction::Downlink => "dl",
        }
    }
    /// `uplink` or `downlink`, as in scenario files.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Uplink => "uplink",
            Direction::Downlink => "downlink",
        }
    }
}

/// One mobile of a cell, counted from 0; a wire has station 0 only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Station(pub u16);

//! The exit's end of the way, as whoever makes it has to call it.

/// Its name.
pub(in crate::real_time::lab) const UPLINK: &str = "uplink";
/// Its index.
pub(super) const UPLINK_INDEX: u32 = 99;
/// Octets of the longest packet on it.
pub(super) const MTU: u32 = 1500;

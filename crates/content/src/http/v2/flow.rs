//! Flow control: how many octets of DATA may be on their way, for each stream and for the connection.

use super::ErrorCode;

/// The largest window.
//= RFC 9113 (6.9.1): a window never exceeds 2^31-1 octets.
pub const MOST: i64 = 0x7fff_ffff;

/// What we may send: the peer opens it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendWindow(i64);

impl SendWindow {
    /// A window of so many octets.
    pub const fn new(octets: u32) -> Self {
        SendWindow(octets as i64)
    }

    /// How many octets may be sent now.
    pub fn room(self) -> u32 {
        self.0.clamp(0, MOST) as u32
    }

    /// So many octets are sent.
    pub fn sent(&mut self, octets: u32) {
        self.0 -= i64::from(octets);
    }

    /// The peer takes so many octets more.
    pub fn open(&mut self, octets: u32) -> Result<(), ErrorCode> {
        if octets == 0 {
            //= RFC 9113 (6.9): an increment of 0 is a PROTOCOL_ERROR, of the stream or of the connection.
            return Err(ErrorCode::PROTOCOL_ERROR);
        }
        self.shift(i64::from(octets))
    }

    /// The initial window of all streams is another one now, by this difference; the window may fall below 0.
    pub fn shift(&mut self, difference: i64) -> Result<(), ErrorCode> {
        let opened = self.0 + difference;
        if opened > MOST {
            return Err(ErrorCode::FLOW_CONTROL_ERROR);
        }
        self.0 = opened;
        Ok(())
    }
}

/// What the peer may send: we open it as its octets are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveWindow {
    /// Of how many octets it should be when everything is used.
    size: u32,
    /// What the peer may still send.
    left: i64,
    /// Used, and the peer was not told yet.
    used: u32,
}

impl ReceiveWindow {
    /// A window of `size` octets.
    pub const fn new(size: u32) -> Self {
        ReceiveWindow { size, left: size as i64, used: 0 }
    }

    /// A window of `size` octets that the peer may still take to be one of `known`, which is more.
    pub const fn starting(size: u32, known: u32) -> Self {
        ReceiveWindow { size, left: known as i64, used: 0 }
    }

    /// A window of `size` octets that the peer takes to be one of `known`, and the update that tells it otherwise. It is
    /// never smaller than `known`.
    pub fn grown(known: u32, size: u32) -> (Self, Option<u32>) {
        let size = size.max(known);
        (ReceiveWindow::new(size), Some(size - known).filter(|more| *more > 0))
    }

    /// So many octets arrived. Were they allowed?
    pub fn arrived(&mut self, octets: u32) -> Result<(), ErrorCode> {
        self.left -= i64::from(octets);
        if self.left < 0 { Err(ErrorCode::FLOW_CONTROL_ERROR) } else { Ok(()) }
    }

    /// So many of those that arrived are used, so that others may come.
    pub fn used(&mut self, octets: u32) {
        self.used = self.used.saturating_add(octets);
    }

    /// The update to send, if it is time for one: half of the window is used.
    pub fn update(&mut self) -> Option<u32> {
        // One update for each half window costs little and keeps the other half on its way, as nghttp2 does it.
        if self.used == 0 || self.used < self.size / 2 {
            return None;
        }
        let increment = std::mem::take(&mut self.used);
        self.left += i64::from(increment);
        Some(increment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_may_fall_below_nothing_and_never_rise_above_the_most() {
        let mut window = SendWindow::new(65_535);
        window.sent(60_000);
        window.shift(-50_000).unwrap();
        assert_eq!(window.room(), 0);
        window.open(44_466).unwrap();
        assert_eq!(window.room(), 1);
        assert_eq!(window.open(0), Err(ErrorCode::PROTOCOL_ERROR));
        assert_eq!(window.open(MOST as u32), Err(ErrorCode::FLOW_CONTROL_ERROR));
        assert_eq!(window.room(), 1, "what was refused changes nothing");
    }

    #[test]
    fn half_a_window_at_a_time_is_given_back() {
        let mut window = ReceiveWindow::new(1000);
        window.arrived(600).unwrap();
        window.used(499);
        assert_eq!(window.update(), None);
        window.used(1);
        assert_eq!(window.update(), Some(500));
        assert_eq!(window.arrived(900), Ok(()));
        assert_eq!(window.arrived(1), Err(ErrorCode::FLOW_CONTROL_ERROR));
    }

    #[test]
    fn a_window_larger_than_the_peer_knows_is_told_at_once() {
        let (mut window, update) = ReceiveWindow::grown(65_535, 70_000);
        assert_eq!((update, window.update()), (Some(4465), None));
        assert_eq!(window.arrived(70_000), Ok(()));
        assert_eq!(ReceiveWindow::grown(65_535, 9), (ReceiveWindow::new(65_535), None));
    }
}

//! Temporary block flows of one mobile and direction: set-up, activity, keeping on, release.

use airloom_base::{Direction, Instant};

use super::config::TbfConfig;

/// State of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is none.
    Idle,
    /// It will be there at that time.
    SetUp(Instant),
    /// Blocks can be sent.
    Active,
    /// Nothing new is sent; the end is on its way.
    Closing,
}

/// A flow.
#[derive(Clone, Debug)]
pub struct Flow {
    pub state: State,
    /// When a flow without data ends.
    pub release_at: Instant,
    /// When it ended last: the mobile listens on for T3192.
    ended: Option<Instant>,
    /// Flows set up.
    pub count: u64,
}

impl Flow {
    /// One that is always there, or none yet.
    pub const fn new(always: bool) -> Self {
        let state = if always { State::Active } else { State::Idle };
        Flow { state, release_at: Instant::FAR_FUTURE, ended: None, count: 0 }
    }
    /// May blocks be sent?
    pub const fn can_send(&self) -> bool {
        matches!(self.state, State::Active | State::Closing)
    }
    /// When something is due.
    pub const fn next_timeout(&self) -> Instant {
        match self.state {
            State::SetUp(at) => at,
            _ => self.release_at,
        }
    }

    /// There are data: a flow without is kept, one that is missing set up. `is_associated`: the other direction has one.
    pub fn on_data(&mut self, times: &TbfConfig, direction: Direction, is_associated: bool, now: Instant) {
        match self.state {
            State::Idle => {
                let is_listening = direction == Direction::Downlink
                    && self.ended.is_some_and(|ended| now.since(ended) < times.t3192);
                let time = if is_associated || is_listening { &times.setup_associated } else { &times.setup };
                self.state = State::SetUp(now + time.get(direction));
                self.count += 1;
            }
            State::Active => self.release_at = Instant::FAR_FUTURE,
            State::SetUp(_) | State::Closing => {}
        }
    }

    /// Everything was sent and acknowledged: the flow is kept for a while.
    pub fn on_drained(&mut self, times: &TbfConfig, direction: Direction, now: Instant) {
        if self.state == State::Active && self.release_at == Instant::FAR_FUTURE {
            self.release_at = now + times.hold.get(direction);
        }
    }

    /// It ended.
    pub fn end(&mut self, now: Instant) {
        (self.state, self.release_at, self.ended) = (State::Idle, Instant::FAR_FUTURE, Some(now));
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::Duration;

    use super::*;

    #[test]
    fn a_mobile_that_still_listens_is_assigned_a_flow_faster() {
        let times = TbfConfig::default();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut flow = Flow::new(false);
        flow.on_data(&times, Direction::Downlink, false, at(0));
        assert_eq!(flow.state, State::SetUp(at(200)));
        flow.end(at(1000));
        flow.on_data(&times, Direction::Downlink, false, at(2000));
        assert_eq!(flow.state, State::SetUp(at(2080)));
        flow.end(at(3000));
        flow.on_data(&times, Direction::Downlink, false, at(4500));
        assert_eq!(flow.state, State::SetUp(at(4700)));
        assert_eq!(flow.count, 3);
    }

    #[test]
    fn new_data_keep_a_flow_that_would_be_released() {
        let times = TbfConfig::default();
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut flow = Flow { state: State::Active, ..Flow::new(false) };
        flow.on_drained(&times, Direction::Uplink, at(100));
        flow.on_drained(&times, Direction::Uplink, at(300));
        assert_eq!(flow.next_timeout(), at(1100));
        flow.on_data(&times, Direction::Uplink, true, at(1000));
        assert_eq!(flow.next_timeout(), Instant::FAR_FUTURE);
    }
}

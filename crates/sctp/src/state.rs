//! The states of an association (RFC 9260, 4).

/// Where an association stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not begun, or over.
    Closed,
    /// INIT was sent.
    CookieWait,
    /// COOKIE ECHO was sent.
    CookieEchoed,
    /// Data flows.
    Established,
    /// Our user has no more data; what it wrote is still on its way.
    ShutdownPending,
    /// SHUTDOWN was sent.
    ShutdownSent,
    /// The peer's SHUTDOWN came; what our user wrote is still on its way.
    ShutdownReceived,
    /// SHUTDOWN ACK was sent.
    ShutdownAckSent,
}

impl State {
    /// May our user write?
    pub fn takes_data(self) -> bool {
        matches!(self, State::CookieWait | State::CookieEchoed | State::Established)
    }

    /// Is data of the peer taken?
    pub(super) fn takes_peer_data(self) -> bool {
        matches!(self, State::Established | State::ShutdownPending | State::ShutdownSent)
    }

    /// Does our data leave, and are acknowledgements of it taken?
    pub(super) fn takes_sacks(self) -> bool {
        matches!(
            self,
            State::Established | State::ShutdownPending | State::ShutdownSent | State::ShutdownReceived
        )
    }

    /// May user data be sent?
    pub(super) fn sends_data(self) -> bool {
        matches!(self, State::Established | State::ShutdownPending | State::ShutdownReceived)
    }

    /// Does the peer know our tag?
    pub(super) fn has_peer(self) -> bool {
        !matches!(self, State::Closed | State::CookieWait)
    }

    /// Has the peer said that it has no more data?
    pub(super) fn peer_has_finished(self) -> bool {
        matches!(self, State::ShutdownReceived | State::ShutdownAckSent)
    }
}

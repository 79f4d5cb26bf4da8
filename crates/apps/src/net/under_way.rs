//! Is what a transport holds getting on?

/// Octets that the peer had not acknowledged when the deadline came last, or when there was no room for more. On a slow link the
/// send buffer holds what takes minutes.
#[derive(Default)]
pub(crate) struct UnderWay(u64);

impl UnderWay {
    /// There is no room for more than these: they have to become fewer.
    pub(crate) fn note(&mut self, octets: u64) {
        self.0 = octets;
    }

    /// Is something still on its way through the transport (`octets` now), and getting on?
    pub(crate) fn gets_on(&mut self, octets: u64) -> bool {
        let before = std::mem::replace(&mut self.0, octets);
        octets > 0 && octets != before
    }
}

//! What a provider of transactions counts.

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams or PDUs that could not be read.
    pub malformed: u64,
    /// PDUs that belong to no transaction.
    pub strays: u64,
    /// Transactions that were refused for want of room.
    pub refused: u64,
    /// Transactions that made room for others.
    pub displaced: u64,
    /// PDUs that were not sent, since their receiver has not shown that it is there.
    pub withheld: u64,
    /// Invokes that had to be verified.
    pub verified: u64,
    /// PDUs that were sent.
    pub sent: u64,
    /// Of these, PDUs that were sent again.
    pub resent: u64,
    /// Times that nothing was heard of a message for its repetition interval.
    pub timeouts: u64,
    /// Packet groups that were sent and had to be acknowledged before their messages could go on.
    pub groups_sent: u64,
    /// Acknowledgements of packet groups that were received while more of their messages was to come.
    pub groups_received: u64,
}

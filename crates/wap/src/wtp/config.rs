//! Settings of WTP: timers and counters of a bearer, sizes of packets and groups, limits.

use airloom_base::units::Octets;
use airloom_base::{ConfigError, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

/// Reliable transactions over datagrams: class 0, 1 and 2, with segmentation and re-assembly (WAP-201, WAP-224).
///
/// The values are those for bearers that carry IP, as two independent implementations have them; for other bearers
/// (GSM SMS, USSD) the intervals are longer. WTP measures no round-trip time and backs off from nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Payload octets of a packet of a segmented message.
    #[default(Octets(1_400))]
    pub segment: Octets,
    /// Packets that a sender puts into a group if the other side has not said how many octets it takes.
    #[default(3)]
    pub group_packets: u8,
    /// Octets of a packet group that we say we take (option Maximum Group) in transactions of class 2 that we begin; none: not
    /// said. How large groups are that we send is said by `most_group_packets`.
    pub maximum_group: Option<Octets>,
    /// A sender obeys the Maximum Group of the other side. Kannel 1.4.5 does not.
    #[default(true)]
    pub obeys_maximum_group: bool,
    /// Packets that a sender puts into a group at most, however many octets the other side says it takes.
    // 32 kB at 1,400 octets, the largest group that we know to have been in use.
    #[default(24)]
    pub most_group_packets: u8,
    /// Messages are segmented and re-assembled; otherwise each goes in one datagram. A simulated link loses what is larger than it carries.
    #[default(true)]
    pub sar: bool,
    /// The largest message that is taken.
    // 256 packets: more cannot be numbered.
    #[default(Octets(256 * 1_400))]
    pub message_limit: Octets,
    /// Acknowledgement interval while a class 2 responder waits for its user: the hold-on acknowledgement.
    #[default(Duration::from_secs(2))]
    pub ack_base: Duration,
    /// Acknowledgement interval of the last acknowledgement of class 1.
    #[default(Duration::from_secs(1))]
    pub ack_short: Duration,
    /// Acknowledgement interval of an initiator that waits for its user before it acknowledges a result.
    #[default(Duration::from_secs(4))]
    pub ack_long: Duration,
    /// Repetition interval of an Invoke of class 2.
    #[default(Duration::from_secs(5))]
    pub retry_base: Duration,
    /// Repetition interval of an Invoke of class 1.
    #[default(Duration::from_secs(4))]
    pub retry_short: Duration,
    /// Repetition interval of a Result.
    #[default(Duration::from_secs(7))]
    pub retry_long: Duration,
    /// Repetition interval of the last packet of a group.
    #[default(Duration::from_secs(3))]
    pub retry_group: Duration,
    /// How long a transaction that is over is remembered, to answer repetitions; and how long an initiator whose request was acknowledged waits
    /// for the result, or either side for more of a message.
    #[default(Duration::from_secs(40))]
    pub wait: Duration,
    /// How long a receiver waits for packets that overtook each other before it says that some are missing.
    pub negative_ack_delay: Duration,
    /// Repetitions at most (RCR).
    #[default(8)]
    pub max_repetitions: u8,
    /// Expirations of the acknowledgement interval at most while the user is waited for (AEC).
    #[default(6)]
    pub max_ack_expirations: u8,
    /// Verify the first transaction of a peer nothing is known of: a round trip, and proof that it is where it says.
    pub verify_unknown: bool,
    /// Transactions at a time that others may have begun here. Where there is no room for another one, the oldest goes of which the
    /// user has not heard (it is not complete, or not verified), then the oldest whose peer has not shown that it is there.
    #[default(10_000)]
    pub max_transactions: u32,
    /// Of these, transactions of one address (of IPv6: of one network of 64 bits).
    #[default(2_500)]
    pub max_transactions_of_address: u32,
    /// Octets of messages that are being re-assembled, of all peers together.
    #[default(Octets(64_000_000))]
    pub reassembly_limit: Octets,
    /// Peers whose last TID is remembered.
    #[default(10_000)]
    pub max_peers: u32,
}

impl Config {
    /// Says what no provider can work with: intervals of nothing would repeat for ever in one moment.
    pub fn check(&self) -> Result<(), ConfigError> {
        for (key, interval) in [
            ("ack_base", self.ack_base),
            ("ack_short", self.ack_short),
            ("ack_long", self.ack_long),
            ("retry_base", self.retry_base),
            ("retry_short", self.retry_short),
            ("retry_long", self.retry_long),
            ("retry_group", self.retry_group),
            ("wait", self.wait),
        ] {
            ConfigError::when(interval.is_zero(), key, "must be longer than nothing")?;
        }
        for (key, size) in [("segment", self.segment.0), ("message_limit", self.message_limit.0)] {
            ConfigError::when(size == 0, key, "must be at least 1B")?;
        }
        for (key, n) in
            [("group_packets", self.group_packets), ("most_group_packets", self.most_group_packets)]
        {
            ConfigError::when(n == 0, key, "must be at least 1")?;
        }
        Ok(())
    }

    /// As Kannel 1.4.5 has them, as far as they are settings.
    pub fn kannel() -> Config {
        Config {
            obeys_maximum_group: false,
            ack_base: Duration::from_secs(4),
            ack_short: Duration::from_secs(4),
            retry_base: Duration::from_secs(3),
            retry_short: Duration::from_secs(3),
            retry_group: Duration::from_secs(7),
            wait: Duration::from_secs(30),
            ..Config::default()
        }
    }
}

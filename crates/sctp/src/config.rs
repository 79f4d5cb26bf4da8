//! Settings of SCTP. A profile gives them all; each can be changed by itself.

use airloom_base::Duration;
use airloom_base::units::Octets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scheduler::Scheduling;

/// A named set of settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// What the standard says today (RFC 9260).
    #[default]
    Rfc9260,
    /// The standard of 2007 (RFC 4960): first timeout 3 s, windows grow only when the cumulative TSN moves.
    Rfc4960,
    /// SCTP of the year 2000 (RFC 2960): two chunks at the beginning and after a loss, fast retransmit at the fourth report
    /// and no fast recovery, no limit of bursts. The checksum is CRC32c all the same, as it has been since RFC 3309.
    #[serde(rename = "sctp-2000")]
    Sctp2000,
}

/// How large the congestion window is at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "rfc9260, or a number of full chunks")]
pub enum InitialWindow {
    /// As a standard says.
    Standard(InitialWindowRule),
    /// So many full chunks.
    Chunks(u16),
}

/// The initial windows of the standards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InitialWindowRule {
    /// About 4.4 kB: two to four chunks.
    Rfc9260,
}

impl InitialWindow {
    /// In octets, for full chunks of `pmdcs` octets.
    pub fn octets(self, pmdcs: u64, ipv6: bool) -> u64 {
        match self {
            InitialWindow::Chunks(n) => u64::from(n.max(1)) * pmdcs,
            InitialWindow::Standard(InitialWindowRule::Rfc9260) => {
                //= RFC 9260 (7.2.1): min(4 PMDCS, max(2 PMDCS, 4404)), with IPv6 4344.
                (4 * pmdcs).min((2 * pmdcs).max(if ipv6 { 4344 } else { 4404 }))
            }
        }
    }
}

macro_rules! settings {
    ($( $(#[$doc:meta])* $name:ident: $type:ty, )*) => {
        /// SCTP (RFC 9260): messages on many streams over one association.
        ///
        /// The profile gives every setting a value; each can be set by itself. The table as understood lists them all.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "Table")]
        #[schemars(extend("x-profiles" = differences()))]
        pub struct Config {
            /// The named set of values that the others start from.
            pub profile: Profile,
            $( $(#[$doc])* pub $name: $type, )*
        }

        /// SCTP (RFC 9260): messages on many streams over one association.
        ///
        /// The profile gives every setting a value; each can be set by itself.
        #[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        #[schemars(rename = "Sctp")]
        struct Table {
            /// The named set of values that the others start from: `rfc9260`, `rfc4960`, `sctp-2000`.
            profile: Profile,
            $( $(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] $name: Option<$type>, )*
        }

        impl TryFrom<Table> for Config {
            type Error = String;
            fn try_from(table: Table) -> Result<Config, String> {
                let mut config = table.profile.settings();
                $( if let Some(value) = table.$name { config.$name = value; } )*
                config.checked()
            }
        }
    };
}

settings! {
    /// Streams that we want to send on.
    outbound_streams: u16,
    /// Streams that we receive on at most.
    inbound_streams: u16,
    /// RTO.Initial: the timeout before a round trip was measured.
    rto_initial: Duration,
    /// RTO.Min.
    rto_min: Duration,
    /// RTO.Max.
    rto_max: Duration,
    /// How long an acknowledgement may wait; at most 500 ms.
    sack_delay: Duration,
    /// Every so many packets with data are acknowledged at once.
    sack_packets: u8,
    /// Association.Max.Retrans: retransmissions in a row, over all paths, after which the peer is taken for lost.
    association_max_retrans: u32,
    /// Path.Max.Retrans: retransmissions in a row after which a path is taken for broken.
    path_max_retrans: u32,
    /// Max.Init.Retransmits.
    max_init_retransmits: u32,
    /// HB.interval: a path that is idle for so long, and its timeout, gets a heartbeat; nothing: no heartbeats.
    hb_interval: Duration,
    /// Valid.Cookie.Life.
    cookie_life: Duration,
    /// Max.Burst: packets with new data that one acknowledgement lets out at most; 0: no limit.
    max_burst: u16,
    /// Congestion window at the beginning.
    initial_window: InitialWindow,
    /// What the slow start threshold is at least after a loss, in full chunks.
    loss_floor: u16,
    /// A chunk that is reported missing so often is sent again at once.
    miss_threshold: u8,
    /// A report of a missing chunk counts only if a later one was newly acknowledged by it (RFC 4960, 7.2.4).
    miss_htna: bool,
    /// Losses of one window reduce it once (RFC 4960, 7.2.4).
    fast_recovery: bool,
    /// The window grows only if the cumulative TSN moves (RFC 2960 and 4960).
    growth_by_cumulative: bool,
    /// Octets of user data that wait to be read at most; what the peer is told.
    receive_buffer: Octets,
    /// Octets of user data written and not acknowledged at most.
    send_buffer: Octets,
    /// Octets of the messages that what an application writes to a stream is cut into; 0: what a full chunk carries.
    message: Octets,
    /// Explicit congestion notification (RFC 4960, appendix A) is offered and used.
    ecn: bool,
    /// I-DATA (RFC 8260) is offered: messages of different streams may be interleaved.
    interleaving: bool,
    /// FORWARD-TSN (RFC 3758) is offered: messages may be given up.
    partial_reliability: bool,
    /// RE-CONFIG (RFC 6525) is offered: streams may begin anew, and more may be added.
    stream_reset: bool,
    /// Streams of each direction at most, when the peer asks for more.
    most_streams: u16,
    /// A host with several addresses tells them to the peer, and takes those that the peer tells: there is a path between each
    /// two, and where one fails the next one serves.
    multihoming: bool,
    /// INIT says which kinds of addresses this end can be reached by (RFC 9260, 5.1.2). There are peers that understand no INIT
    /// that does: pion 1.8.6.
    address_types: bool,
    /// Which stream sends next.
    scheduler: Scheduling,
}

/// The values of each profile that are not those of `rfc9260`.
fn differences() -> serde_json::Value {
    let profiles = [Profile::Rfc9260, Profile::Rfc4960, Profile::Sctp2000];
    airloom_base::config::differences(profiles.map(Profile::settings))
}

impl Profile {
    /// Its values.
    pub fn settings(self) -> Config {
        let today = Config {
            profile: self,
            outbound_streams: 10,
            inbound_streams: 2048,
            rto_initial: Duration::from_secs(1),
            rto_min: Duration::from_secs(1),
            rto_max: Duration::from_secs(60),
            sack_delay: Duration::from_millis(200),
            sack_packets: 2,
            association_max_retrans: 10,
            path_max_retrans: 5,
            max_init_retransmits: 8,
            hb_interval: Duration::from_secs(30),
            cookie_life: Duration::from_secs(60),
            max_burst: 4,
            initial_window: InitialWindow::Standard(InitialWindowRule::Rfc9260),
            loss_floor: 4,
            miss_threshold: 3,
            miss_htna: true,
            fast_recovery: true,
            growth_by_cumulative: false,
            receive_buffer: Octets(1 << 20),
            send_buffer: Octets(1 << 20),
            message: Octets(0),
            ecn: false,
            interleaving: false,
            partial_reliability: true,
            stream_reset: true,
            most_streams: 2048,
            multihoming: false,
            address_types: true,
            scheduler: Scheduling::Fcfs,
        };
        let of_2007 = Config {
            rto_initial: Duration::from_secs(3),
            growth_by_cumulative: true,
            stream_reset: false,
            ..today.clone()
        };
        match self {
            Profile::Rfc9260 => today,
            Profile::Rfc4960 => of_2007,
            Profile::Sctp2000 => Config {
                max_burst: 0,
                //= RFC 2960 (7.2.1): at most two MTUs.
                initial_window: InitialWindow::Chunks(2),
                //= RFC 2960 (7.2.3): max(cwnd/2, 2 MTU).
                loss_floor: 2,
                //= RFC 2960 (7.2.4): the fourth consecutive report.
                miss_threshold: 4,
                miss_htna: false,
                fast_recovery: false,
                partial_reliability: false,
                ..of_2007
            },
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Profile::default().settings()
    }
}

impl Config {
    /// Itself, if an association can live with it.
    pub fn checked(self) -> Result<Config, String> {
        let positive = [
            ("outbound_streams", u64::from(self.outbound_streams)),
            ("inbound_streams", u64::from(self.inbound_streams)),
            ("rto_initial", self.rto_initial.as_nanos()),
            ("rto_min", self.rto_min.as_nanos()),
            ("cookie_life", self.cookie_life.as_nanos()),
            ("sack_packets", u64::from(self.sack_packets)),
            ("loss_floor", u64::from(self.loss_floor)),
            ("miss_threshold", u64::from(self.miss_threshold)),
            ("send_buffer", self.send_buffer.0),
        ];
        if let Some((key, _)) = positive.into_iter().find(|(_, value)| *value == 0) {
            return Err(format!("{key}: must be more than nothing"));
        }
        if self.rto_max < self.rto_min {
            return Err("rto_max: is less than rto_min".to_owned());
        }
        //= RFC 9260 (3.3.2): a window below 1500 octets is refused.
        if self.receive_buffer.0 < 1500 || self.receive_buffer.0 > u64::from(u32::MAX) {
            return Err("receive_buffer: must be between 1500B and 4GB".to_owned());
        }
        //= RFC 9260 (6.2): an acknowledgement never waits for more than 500 ms.
        if self.sack_delay > Duration::from_millis(500) {
            return Err("sack_delay: must be at most 500ms".to_owned());
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_that_are_always_too_old_are_refused() {
        let without = Config { cookie_life: Duration::ZERO, ..Config::default() };
        assert_eq!(without.checked().err().as_deref(), Some("cookie_life: must be more than nothing"));
        assert!(Config::default().checked().is_ok());
    }
}

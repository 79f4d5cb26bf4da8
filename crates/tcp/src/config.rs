//! Every setting of a TCP. A profile gives them all; each can be changed by itself.
//!
//! A circle of 7 files: controllers of congestion read all of it, and it has a table of settings for each of those that have
//! some; profiles give values to all keys, and one of the keys is the profile.

use airloom_base::Duration;
use airloom_base::units::Octets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::combine::{Given, combine};
use super::congestion::cubic::CubicConfig;
use super::congestion::vegas::VegasConfig;
use super::profile::Profile;

/// Which rules set the congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Congestion {
    /// Slow start, avoidance and fast retransmit without fast recovery (Jacobson 1988).
    Tahoe,
    /// With fast recovery that ends at the first new acknowledgement (RFC 2581).
    Reno,
    /// With fast recovery that ends when the whole window is acknowledged (RFC 6582).
    #[serde(rename = "newreno")]
    NewReno,
    /// A cubic curve back to the window before the last loss and beyond it (RFC 9438); see `cubic`.
    Cubic,
    /// As Reno, but a loss leaves what the path was measured to carry (Westwood+).
    Westwood,
    /// By the queue that the flow makes, told from the round-trip time; see `vegas`.
    Vegas,
    /// As NewReno, but a loss suspends sending until two probes are answered; where the round trip is as before the window
    /// stays (TCP-Probing, 2000). Between two hosts of ours; not with `loss_detection = "rack"`.
    Probing,
    /// By a model of the path: bandwidth and least round-trip time (BBR version 1). Needs `loss_detection = "rack"`.
    Bbr,
}

/// Does data leave in bursts or at a rate?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// As acknowledgements let it out.
    Off,
    /// At twice the window per round-trip time in slow start, 1.2 times in avoidance (Linux), from the eleventh segment on.
    On,
}

/// Is explicit congestion notification (RFC 3168) used?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnUse {
    /// No.
    Off,
    /// If the peer asks for it (the default of Linux).
    Accept,
    /// It is asked for, and accepted.
    On,
}

/// What ends slow start before a loss or the threshold does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SlowStartExit {
    /// Nothing.
    Off,
    /// HyStart as Linux has it: a train of acknowledgements of half the round-trip time, or a longer round-trip time.
    Linux,
    /// HyStart++ (RFC 9406): a longer round-trip time, tried out in five slower rounds.
    Rfc9406,
}

/// How large the congestion window is at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "rfc2001, rfc2581, rfc3390, rfc5681, rfc6928, or a number of segments")]
pub enum InitialWindow {
    /// As a standard says.
    Standard(InitialWindowRule),
    /// So many segments.
    Segments(u16),
}

/// The initial windows of the standards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InitialWindowRule {
    /// One segment.
    Rfc2001,
    /// Two segments.
    Rfc2581,
    /// About 4 kB: two to four segments.
    Rfc3390,
    /// Two to four segments, counted in segments.
    Rfc5681,
    /// About 15 kB: ten segments.
    Rfc6928,
}

impl InitialWindow {
    /// In octets, for segments of `mss` octets.
    pub fn octets(self, mss: u64) -> u64 {
        match self {
            InitialWindow::Segments(n) => u64::from(n.max(1)) * mss,
            InitialWindow::Standard(rule) => match rule {
                InitialWindowRule::Rfc2001 => mss,
                InitialWindowRule::Rfc2581 => 2 * mss,
                //= RFC 3390 (1): min (4*MSS, max (2*MSS, 4380 octets)).
                InitialWindowRule::Rfc3390 => (4 * mss).min((2 * mss).max(4380)),
                //= RFC 5681 (3.1): 2, 3 or 4 segments, by the size of a segment.
                InitialWindowRule::Rfc5681 if mss > 2190 => 2 * mss,
                InitialWindowRule::Rfc5681 if mss > 1095 => 3 * mss,
                InitialWindowRule::Rfc5681 => 4 * mss,
                //= RFC 6928 (2): min (10*MSS, max (2*MSS, 14600 octets)).
                InitialWindowRule::Rfc6928 => (10 * mss).min((2 * mss).max(14_600)),
            },
        }
    }
}

/// What makes the congestion window grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AckCounting {
    /// One step per acknowledgement, however much it covers (RFC 2001).
    PerAck,
    /// By octets acknowledged (RFC 3465): at most `abc_limit` segments per acknowledgement in slow start, one
    /// segment per window in avoidance.
    Octets,
    /// By segments acknowledged, as Linux does: one segment each in slow start, one per window in avoidance.
    Segments,
}

/// From what half the window is taken after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossWindow {
    /// What is in flight (RFC 5681 equation 4).
    FlightSize,
    /// The congestion window (Linux, and RFC 2001).
    Cwnd,
}

/// When a partial acknowledgement restarts the retransmission timer (RFC 6582 section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartialAck {
    /// Only the first one does.
    Impatient,
    /// Each one does.
    SlowButSteady,
}

/// What a sender believes of earlier SACK blocks after a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SackAfterRto {
    /// Nothing (RFC 2018 section 8).
    Forget,
    /// They stay valid (RFC 6675 section 5.1 allows it, Linux does it).
    Keep,
}

/// What happens to the congestion window when nothing was sent for a retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IdleRestart {
    /// Nothing.
    Off,
    /// Back to the initial window (RFC 5681 section 4.1).
    InitialWindow,
    /// Half for every timeout that passed, not below the initial window (RFC 2861, Linux).
    Halve,
}

/// When acknowledgements may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AckPolicy {
    /// Every segment is acknowledged at once.
    None,
    /// Every second full segment; the rest `ack_delay` after its arrival.
    Timer,
    /// Every second full segment; the rest at the next tick of a clock that ticks every `ack_delay` (BSD).
    Heartbeat,
    /// Quick acknowledgements at the beginning and while the window grows, then every second segment; the delay
    /// adapts between 40 ms and `ack_delay` (Linux).
    Linux,
}

/// Which short segments wait for an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Nagle {
    /// None (TCP_NODELAY).
    Off,
    /// Those that follow anything not acknowledged (RFC 896).
    Nagle,
    /// Those that follow a short one not acknowledged (RFC 9293 appendix A.3, Linux).
    Minshall,
}

/// Where the lower limit of the retransmission timeout acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RtoFloor {
    /// On the timeout (RFC 6298).
    Total,
    /// On its variance term (Linux): the timeout is the round-trip time plus at least `rto_min`.
    Variance,
}

/// What of the deviation of the round-trip time the timeout waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RtoVariance {
    /// Four times the smoothed deviation (RFC 6298).
    Smoothed,
    /// Four times the largest smoothed deviation of the round trip; it falls slowly, and measurements below the mean
    /// hardly raise it (Linux).
    Peak,
}

/// How a sender finds out that a segment is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossDetection {
    /// By duplicate acknowledgements: RFC 5681 and 6582 without SACK, RFC 6675 with it; counted in octets.
    DupAcks,
    /// By time with SACK (RACK, RFC 8985), by duplicate acknowledgements without; counted in segments, as Linux does.
    /// Not with Tahoe and Reno, which have a recovery of their own: there a profile's `rack` becomes `dup-acks`.
    Rack,
}

/// How the window follows the threshold in recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProportionalReduction {
    /// At once (RFC 6675).
    Off,
    /// In proportion to what arrives, and below the threshold no more than arrives (RFC 6937, CRB).
    Conservative,
    /// In proportion to what arrives, and below the threshold as in slow start (RFC 6937, SSRB).
    SlowStart,
    /// As `slow-start` where an acknowledgement shows progress and no further loss, else as `conservative` (RFC 9937,
    /// Linux).
    Safe,
}

/// Which acknowledgements give a round-trip time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RttSampling {
    /// One segment per round trip is timed (RFC 6298, Karn's rule).
    OncePerWindow,
    /// Every acknowledgement that echoes a timestamp, with the gains scaled (RFC 7323); without timestamps as
    /// `once-per-window`.
    Timestamps,
    /// Every acknowledgement of segments sent once, by the time they were sent (Linux).
    EverySegment,
}

/// How a closed window is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WindowProbe {
    /// With one octet of new data (RFC 9293).
    Octet,
    /// With an empty segment below the window (Linux).
    Empty,
}

/// Lists the settings once: as the complete [`Config`] and as the table of a scenario, where all may be left out.
macro_rules! settings {
    ($( $(#[$doc:meta])* $name:ident: $type:ty, )*) => {
        /// TCP (RFC 9293): reliable streams between two hosts.
        ///
        /// The profile gives every setting a value; each can be set by itself. The table as understood lists them all.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "Table")]
        #[schemars(extend("x-profiles" = super::profile::differences()))]
        pub struct Config {
            /// The named set of values that the others start from: `rfc`, `linux`, `linux-classic`,
            /// `bsd-reno`, `nt4`, `win98`, `w-tcp`.
            pub profile: Profile,
            $( $(#[$doc])* pub $name: $type, )*
        }

        /// TCP (RFC 9293): reliable streams between two hosts.
        ///
        /// The profile gives every setting a value; each can be set by itself.
        #[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        #[schemars(rename = "Tcp")]
        struct Table {
            /// The named set of values that the others start from: `rfc`, `linux`, `linux-classic`,
            /// `bsd-reno`, `nt4`, `win98`, `w-tcp`.
            profile: Profile,
            $( $(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] $name: Option<$type>, )*
        }

        impl TryFrom<Table> for Config {
            type Error = String;
            fn try_from(table: Table) -> Result<Config, String> {
                let given = Given {
                    loss_detection: table.loss_detection.is_some(),
                    prr: table.prr.is_some(),
                    tlp: table.tlp.is_some(),
                    frto: table.frto.is_some(),
                    undo_by_dsack: table.undo_by_dsack.is_some(),
                    undo_by_timestamps: table.undo_by_timestamps.is_some(),
                    dup_acks: table.dup_acks.is_some(),
                    receive_buffer: table.receive_buffer.is_some(),
                    receive_autotuning: table.receive_autotuning.is_some(),
                    send_buffer: table.send_buffer.is_some(),
                    send_autotuning: table.send_autotuning.is_some(),
                    segmentation_offload: table.segmentation_offload.is_some(),
                };
                let mut config = table.profile.settings();
                $( if let Some(value) = table.$name { config.$name = value; } )*
                combine(config, given)?.checked()
            }
        }
    };
}

settings! {
    /// Rules for the congestion window: `westwood` cuts it to what the path carried, `vegas` goes by the queue it makes, `probing` suspends
    /// sending at a loss until two probes are answered (TCP-Probing, 2000; between two hosts of ours), `bbr` goes by a model of the path
    /// (version 1).
    congestion: Congestion,
    /// Congestion window at the beginning: `"rfc2001"` (1 segment), `"rfc2581"` (2), `"rfc3390"` (about 4 kB),
    /// `"rfc5681"` (2 to 4), `"rfc6928"` (10), or a number of segments.
    initial_window: InitialWindow,
    /// The settings of `congestion = "cubic"`.
    cubic: CubicConfig,
    /// The settings of `congestion = "vegas"`.
    vegas: VegasConfig,
    /// What ends slow start before a loss or the threshold does.
    hystart: SlowStartExit,
    /// Does data leave in bursts or at a rate? BBR always sends at a rate.
    pacing: Pacing,
    /// Is explicit congestion notification used (RFC 3168)?
    ecn: EcnUse,
    /// Does the window shrink less after a report of congestion than after a loss (ABE, RFC 8511)?
    abe: bool,
    /// Does a report of congestion for a window of one segment stop the sender until its retransmission timer expires
    /// (RFC 3168 6.1.2)? Linux goes on, with two segments at least.
    ecn_wait: bool,
    /// What makes the congestion window grow.
    ack_counting: AckCounting,
    /// L of RFC 3465: segments by which one acknowledgement may enlarge the window in slow start; 1 after a timeout.
    abc_limit: u8,
    /// From what half the window is taken after a loss. CUBIC with `cubic.variant = "linux"` or `"rfc8312"` takes its part
    /// from the congestion window, whatever this says.
    loss_window: LossWindow,
    /// How a sender finds out that a segment is lost. The profile's `prr`, `tlp`, `frto`, `undo_by_dsack` and
    /// `undo_by_timestamps` belong to the profile's `loss_detection`: with another one they are off unless set.
    loss_detection: LossDetection,
    /// Proportional rate reduction: how the window follows the threshold in recovery. Not with Tahoe.
    prr: ProportionalReduction,
    /// Send a tail loss probe (RFC 8985 section 7)? Needs `loss_detection = "rack"` and `sack`.
    tlp: bool,
    /// Detect spurious timeouts by F-RTO (RFC 5682: with SACK section 3, without section 2)? With `loss_detection = "rack"`
    /// the window is then what it was (Linux); with `"dup-acks"` the answer is that of `eifel` if it is on, else the reduced
    /// window stays (RFC 5682 section 4).
    frto: bool,
    /// Undo a reduction when D-SACKs report everything that was sent again (RFC 3708)? Needs `sack`.
    undo_by_dsack: bool,
    /// Undo a reduction when a timestamp shows that the original had arrived (RFC 3522)? Needs
    /// `loss_detection = "rack"` and `timestamps`.
    undo_by_timestamps: bool,
    /// Duplicate acknowledgements that mean a loss where there is no SACK (RFC 5681: 3). Needs `loss_detection = "dup-acks"`.
    dup_acks: u8,
    /// Tell spurious retransmissions by timestamps (Eifel detection, RFC 3522), and go on after a spurious timeout with the
    /// old threshold and a more careful timeout (Eifel response, RFC 4015)? Needs `loss_detection = "dup-acks"`, and
    /// `timestamps` or, for the response alone, `frto`; with `"rack"` see `undo_by_timestamps`.
    eifel: bool,
    /// Do the first two duplicate acknowledgements let new segments out (RFC 3042)? No effect with `loss_detection = "rack"`.
    limited_transmit: bool,
    /// When a partial acknowledgement restarts the retransmission timer. No effect with `loss_detection = "rack"`.
    partial_ack: PartialAck,
    /// What is believed of earlier SACK blocks after a timeout. No effect with `loss_detection = "rack"`.
    sack_after_rto: SackAfterRto,
    /// Does the congestion window grow only while it limits the sender (as Linux judges it)?
    cwnd_validation: bool,
    /// What happens to the congestion window after an idle time.
    idle_restart: IdleRestart,
    /// How many lost SYNs leave the initial window as it is; after more it is one segment (RFC 5681, RFC 6928).
    lost_syns_forgiven: u8,

    /// Largest MSS announced, in octets; the MTU less 40 (IPv6: 60) if that is smaller.
    mss: u16,
    /// Offer timestamps (RFC 7323)?
    timestamps: bool,
    /// Drop a segment that comes without the timestamp agreed on (RFC 7323 3.2; Linux takes it)?
    timestamps_required: bool,
    /// Tick of the timestamp clock, 1 ms to 1 s.
    timestamp_tick: Duration,
    /// Offer window scaling (RFC 7323)?
    window_scaling: bool,
    /// Offer selective acknowledgements (RFC 2018)?
    sack: bool,
    /// Report duplicates in SACK blocks (RFC 2883)?
    dsack: bool,

    /// When acknowledgements may wait.
    delayed_ack: AckPolicy,
    /// Longest time an acknowledgement waits; below 500 ms.
    ack_delay: Duration,
    /// Receive buffer: the largest window announced; with `receive_autotuning` where it begins. If it is set, the
    /// profile's autotuning is off unless set too (Linux: `SO_RCVBUF`).
    receive_buffer: Octets,
    /// Does the receive buffer grow with what the application reads in a round trip (dynamic right-sizing, Fisk and Feng 2001;
    /// as Linux adjusts it with `tcp_moderate_rcvbuf`)?
    receive_autotuning: bool,
    /// With `receive_autotuning`: how large it becomes at most (Linux: the window that `tcp_rmem` allows).
    receive_buffer_max: Octets,
    /// Window announced at the beginning. If it is smaller than the receive buffer it grows by two segments with each
    /// full segment received.
    initial_receive_window: Octets,
    /// With `delayed_ack = "linux"`: acknowledgements are quick while the window grows that Linux is ready to offer. It
    /// begins with 65,535 octets and grows by two segments with each full segment received, up to this.
    quick_ack_window: Octets,
    /// Send buffer: how much the application can write ahead; with `send_autotuning` where it begins. If it is
    /// set, the profile's autotuning is off unless set too (Linux: `SO_SNDBUF`).
    send_buffer: Octets,
    /// Does the send buffer grow to the memory that twice the congestion window takes, about three times its octets (as in Linux,
    /// where it is not fixed)?
    send_autotuning: bool,
    /// With `send_autotuning`: how large it becomes at most (Linux: `tcp_wmem`).
    send_buffer_max: Octets,
    /// Which short segments wait for an acknowledgement.
    nagle: Nagle,
    /// Does the sender decide about groups of segments, as where a network card does the cutting (Linux)? A group is about
    /// a millisecond of the window's rate, two segments at least; its last segment carries PSH, and a group that the
    /// congestion window would cut short waits for the next acknowledgement if that is due. With `loss_detection = "rack"`,
    /// and not where data is paced.
    segmentation_offload: bool,
    /// Segments of a group at least, if the window and the data reach (Linux: `tcp_min_tso_segs`). Needs `segmentation_offload`.
    offload_segments: u8,

    /// Retransmission timeout before the first round-trip time is known.
    rto_initial: Duration,
    /// Retransmission timeout when data transfer begins after a lost SYN, if it is larger than `rto_initial`.
    rto_after_lost_syn: Duration,
    /// Smallest retransmission timeout.
    rto_min: Duration,
    /// Where that limit acts.
    rto_floor: RtoFloor,
    /// What of the deviation of the round-trip time the timeout waits for.
    rto_variance: RtoVariance,
    /// Largest retransmission timeout.
    rto_max: Duration,
    /// Tick of the retransmission clock: times are measured and timers expire on it (BSD: 500 ms). Zero: exact.
    rto_tick: Duration,
    /// Do long timers expire on a coarser clock, as on the timer wheel of Linux: a sixteenth of their length late on
    /// average? No effect with `loss_detection = "dup-acks"`.
    timer_wheel: bool,
    /// How long before the run that wheel stood at its first place. Linux turns it from start-up on, so this is a fact of
    /// one machine at one moment, and now and then it decides between two courses. Zero: not known; timers expire as
    /// late as they do on average. Needs `timer_wheel`.
    timer_wheel_position: Duration,
    /// Which acknowledgements give a round-trip time.
    rtt_sampling: RttSampling,
    /// Does a SACK block of data sent before the head of the line was sent last restart the retransmission timer (Linux)?
    rto_restart_on_sack: bool,
    /// Timeouts of the same data after which the connection is given up, whatever time that takes; zero: only `give_up` counts.
    max_retransmissions: u8,
    /// How long data is resent without an answer before the connection is given up (R2 of RFC 9293).
    give_up: Duration,
    /// So many timeouts of a SYN do not double the next one (Linux 6.5 and later: `tcp_syn_linear_timeouts`). A SYN-ACK's all do.
    syn_linear_timeouts: u8,
    /// How long a SYN is resent without an answer. A SYN-ACK is given up earlier by as much as `syn_linear_timeouts` last.
    syn_give_up: Duration,
    /// How a closed window is probed.
    window_probe: WindowProbe,
    /// Longest time between two probes of a closed window.
    max_probe_interval: Duration,

    /// Probe idle connections?
    keepalive: bool,
    /// Idle time before the first such probe.
    keepalive_idle: Duration,
    /// Time between such probes.
    keepalive_interval: Duration,
    /// Unanswered probes after which the connection is given up.
    keepalive_probes: u8,

    /// How long the side that closes first remembers the connection (TIME-WAIT, twice the MSL).
    time_wait: Duration,
    /// How long the side that finished first waits for the peer's data or FIN (FIN-WAIT-2) while nothing comes, before
    /// it forgets the connection; zero: for ever. Linux has 60 s (`tcp_fin_timeout`), but only for sockets that were closed
    /// altogether: an application here only ever finishes its own direction, and may wait for the other one.
    fin_wait_2: Duration,
    /// Challenge acknowledgements allowed in each `challenge_interval` (RFC 5961 section 7).
    challenge_acks: u16,
    /// Interval of that limit.
    challenge_interval: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Profile::default().settings()
    }
}

impl Config {
    /// The settings themselves, or which value makes no sense.
    fn checked(self) -> Result<Config, String> {
        let wrong = |key: &str, why: &str| Err(format!("{key}: {why}"));
        if self.mss < 88 {
            return wrong("mss", "at least 88 octets, so that options fit beside data");
        }
        if self.abc_limit == 0 {
            return wrong("abc_limit", "at least 1 segment");
        }
        if self.offload_segments == 0 {
            return wrong("offload_segments", "at least 1 segment");
        }
        // What these let out may be asked for again when they expire, without an end at the same moment.
        let shortest = [
            ("rto_max", self.rto_max),
            ("max_probe_interval", self.max_probe_interval),
            ("keepalive_idle", self.keepalive_idle),
            ("keepalive_interval", self.keepalive_interval),
        ];
        if let Some((key, _)) = shortest.into_iter().find(|(_, time)| *time < Duration::from_millis(1)) {
            return wrong(key, "at least 1ms");
        }
        if self.rto_initial.is_zero() || self.rto_min > self.rto_max {
            return wrong(
                "rto_min",
                "the timeouts must be above zero, and the smallest not above the largest",
            );
        }
        if self.rto_tick > self.rto_max {
            return wrong(
                "rto_tick",
                "the clock of timeouts must not tick less often than the largest of them",
            );
        }
        //= RFC 9293 (3.8.6.3): an acknowledgement waits less than half a second (MUST-40).
        if self.ack_delay.is_zero() || self.ack_delay >= Duration::from_millis(500) {
            return wrong("ack_delay", "above zero and below 500ms");
        }
        if self.timestamp_tick < Duration::from_millis(1) || self.timestamp_tick > Duration::from_secs(1) {
            return wrong("timestamp_tick", "between 1ms and 1s");
        }
        if self.receive_buffer.0 == 0 || self.send_buffer.0 == 0 || self.initial_receive_window.0 == 0 {
            return wrong("receive_buffer", "buffers and windows must be above zero");
        }
        let largest = self.receive_buffer.0.max(self.receive_buffer_max.0).max(self.send_buffer.0);
        if largest.max(self.send_buffer_max.0) > 1 << 30 {
            return wrong("receive_buffer", "buffers must not be larger than 1 GiB");
        }
        if self.receive_autotuning && self.receive_buffer_max.0 < self.receive_buffer.0 {
            return wrong("receive_buffer_max", "not below receive_buffer, from which it grows");
        }
        let step = 1 << if self.window_scaling { self.window_shift() } else { 0 };
        if self.receive_buffer.0.min(self.initial_receive_window.0) < step {
            let why = format!(
                "buffer and first window must be at least {step} octets, the step in which the largest window is told"
            );
            return wrong("receive_buffer", &why);
        }
        if self.send_autotuning && self.send_buffer_max.0 < self.send_buffer.0 {
            return wrong("send_buffer_max", "not below send_buffer, from which it grows");
        }
        if !(1..=16).contains(&self.dup_acks) {
            return wrong("dup_acks", "between 1 and 16");
        }
        self.cubic.check()?;
        self.vegas.check()?;
        if self.congestion == Congestion::Bbr && self.loss_detection != LossDetection::Rack {
            return wrong("congestion", "bbr needs loss_detection = \"rack\"");
        }
        Ok(self)
    }

    /// The largest the receive buffer ever becomes.
    pub(super) fn largest_receive_buffer(&self) -> u64 {
        if self.receive_autotuning { self.receive_buffer_max.0 } else { self.receive_buffer.0 }
    }

    /// The shift that lets the window field describe the whole receive buffer.
    pub(super) fn window_shift(&self) -> u8 {
        (0..14).find(|s| self.largest_receive_buffer() >> s <= 65_535).unwrap_or(14)
    }
}

#[cfg(test)]
mod tests {
    use airloom_base::config::read;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_setting_can_be_changed_by_itself() {
        let config: Config = read(
            &json!({ "profile": "linux", "initial_window": 3, "timestamps": false, "rto_min": "300ms" }),
        )
        .unwrap();
        let mut expected = Profile::Linux.settings();
        expected.initial_window = InitialWindow::Segments(3);
        expected.timestamps = false;
        // It goes by them.
        expected.undo_by_timestamps = false;
        expected.rto_min = Duration::from_millis(300);
        assert_eq!(config, expected);
    }

    #[test]
    fn the_table_as_understood_can_be_read_again() {
        for profile in Profile::ALL {
            let whole = serde_json::to_value(profile.settings()).unwrap();
            assert_eq!(read::<Config>(&whole).unwrap(), profile.settings());
        }
    }

    #[test]
    fn errors_name_the_key_and_the_choices() {
        let error = |table| read::<Config>(&table).unwrap_err().to_string();
        assert!(error(json!({ "profile": "windows" })).contains("linux-classic"));
        assert!(error(json!({ "initial_window": "rfc1" })).contains("rfc6928"));
        assert!(error(json!({ "congestion": "fast" })).contains("newreno"));
        assert!(error(json!({ "window": 3 })).contains("receive_buffer"));
        assert!(error(json!({ "ack_delay": "1s" })).contains("below 500ms"));
        assert!(error(json!({ "mss": 20 })).contains("mss"));
        assert!(error(json!({ "rto_tick": "2s", "rto_max": "1500ms" })).starts_with("rto_tick"));
    }

    #[test]
    fn timers_that_begin_anew_when_they_expire_take_their_time() {
        for key in ["keepalive_idle", "keepalive_interval", "max_probe_interval", "rto_max"] {
            for time in ["0s", "1ns", "999us"] {
                let why =
                    read::<Config>(&json!({ "rto_min": "0s", "rto_tick": "0s", key: time })).unwrap_err();
                assert_eq!(why.to_string(), format!("{key}: at least 1ms"));
            }
            assert!(
                read::<Config>(&json!({ "rto_min": "0s", "rto_tick": "0s", key: "1ms" })).is_ok(),
                "{key}"
            );
        }
    }

    #[test]
    fn initial_windows_of_the_standards() {
        use InitialWindowRule::*;
        let octets = |rule, mss| InitialWindow::Standard(rule).octets(mss);
        // RFC 2001, RFC 2581 3.1, RFC 3390 section 1, RFC 5681 3.1, RFC 6928 section 2.
        for (mss, expected) in [
            (1460, [1460, 2920, 4380, 4380, 14_600]),
            (1448, [1448, 2896, 4380, 4344, 14_480]),
            (536, [536, 1072, 2144, 2144, 5360]),
            (4000, [4000, 8000, 8000, 8000, 14_600]),
        ] {
            assert_eq!([Rfc2001, Rfc2581, Rfc3390, Rfc5681, Rfc6928].map(|r| octets(r, mss)), expected);
        }
    }

    #[test]
    fn the_window_shift_is_the_smallest_that_reaches() {
        let fixed = |n| Config { receive_autotuning: false, receive_buffer: Octets(n), ..Config::default() };
        let shift = |n| fixed(n).window_shift();
        assert_eq!((shift(65_535), shift(65_536), shift(400_000), shift(1 << 30)), (0, 1, 3, 14));
    }
}

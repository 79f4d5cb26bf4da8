//! Named sets of settings.
//!
//! A profile is nothing but values: whatever it does can be asked for one key at a time. Sources are named where
//! a value is not a standard's own.

use airloom_base::Duration;
use airloom_base::units::Octets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::{
    AckCounting, AckPolicy, Config, Congestion, EcnUse, IdleRestart, InitialWindow, InitialWindowRule,
    LossDetection, LossWindow, Nagle, Pacing, PartialAck, ProportionalReduction, RtoFloor, RtoVariance,
    RttSampling, SackAfterRto, SlowStartExit, WindowProbe,
};
use super::congestion::cubic::{CubicConfig, Variant};
use super::congestion::vegas::VegasConfig;

/// A named set of settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// What the standards say today (RFC 9293, 5681, 6298, 6582, 6675, 7323).
    Rfc,
    /// Linux 6.x as far as it is modelled: ten segments at the beginning, 200 ms smallest variance term, quick
    /// acknowledgements, window growth.
    #[default]
    Linux,
    /// The same without timestamps and D-SACK.
    LinuxClassic,
    /// 4.4BSD Reno: 500 ms clock, 200 ms heartbeat, one segment at the beginning, 16 KiB buffers.
    BsdReno,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Profile; 4] = [Profile::Rfc, Profile::Linux, Profile::LinuxClassic, Profile::BsdReno];

    /// Its values.
    pub fn settings(self) -> Config {
        match self {
            Profile::Rfc => rfc(),
            Profile::Linux => linux(),
            Profile::LinuxClassic => linux_classic(),
            Profile::BsdReno => bsd_reno(),
        }
    }
}

fn rfc() -> Config {
    Config {
        profile: Profile::Rfc,
        congestion: Congestion::NewReno,
        cubic: CubicConfig { variant: Variant::Rfc9438, ..CubicConfig::default() },
        vegas: VegasConfig::default(),
        hystart: SlowStartExit::Off,
        pacing: Pacing::Off,
        ecn: EcnUse::Off,
        abe: false,
        initial_window: InitialWindow::Standard(InitialWindowRule::Rfc5681),
        ack_counting: AckCounting::Octets,
        abc_limit: 1,
        loss_window: LossWindow::FlightSize,
        loss_detection: LossDetection::DupAcks,
        prr: ProportionalReduction::Off,
        tlp: false,
        frto: false,
        undo_by_dsack: false,
        undo_by_timestamps: false,
        limited_transmit: true,
        partial_ack: PartialAck::Impatient,
        sack_after_rto: SackAfterRto::Forget,
        cwnd_validation: true,
        idle_restart: IdleRestart::InitialWindow,
        lost_syns_forgiven: 0,
        mss: 65_495,
        timestamps: true,
        timestamp_tick: Duration::from_millis(1),
        window_scaling: true,
        sack: true,
        dsack: true,
        delayed_ack: AckPolicy::Timer,
        ack_delay: Duration::from_millis(200),
        receive_buffer: Octets(256 * 1024),
        initial_receive_window: Octets(256 * 1024),
        quick_ack_window: Octets(0),
        send_buffer: Octets(1024 * 1024),
        nagle: Nagle::Nagle,
        initial_rto: Duration::from_secs(1),
        rto_after_lost_syn: Duration::from_secs(3),
        min_rto: Duration::from_secs(1),
        rto_floor: RtoFloor::Total,
        rto_variance: RtoVariance::Smoothed,
        max_rto: Duration::from_secs(60),
        rto_tick: Duration::ZERO,
        timer_wheel: false,
        rtt_sampling: RttSampling::Timestamps,
        rto_restart_on_sack: false,
        give_up: Duration::from_secs(300),
        syn_give_up: Duration::from_secs(180),
        window_probe: WindowProbe::Octet,
        max_probe_interval: Duration::from_secs(60),
        keepalive: false,
        keepalive_idle: Duration::from_secs(7200),
        keepalive_interval: Duration::from_secs(75),
        keepalive_probes: 9,
        time_wait: Duration::from_secs(240),
        challenge_acks: 10,
        challenge_interval: Duration::from_secs(5),
    }
}

fn linux() -> Config {
    Config {
        profile: Profile::Linux,
        congestion: Congestion::Cubic,
        cubic: CubicConfig::default(),
        hystart: SlowStartExit::Linux,
        ecn: EcnUse::Accept,
        initial_window: InitialWindow::Segments(10),
        ack_counting: AckCounting::Segments,
        loss_window: LossWindow::Cwnd,
        loss_detection: LossDetection::Rack,
        prr: ProportionalReduction::Safe,
        tlp: true,
        frto: true,
        undo_by_dsack: true,
        undo_by_timestamps: true,
        // Its timer starts again with every acknowledgement of new data.
        partial_ack: PartialAck::SlowButSteady,
        sack_after_rto: SackAfterRto::Keep,
        idle_restart: IdleRestart::Halve,
        lost_syns_forgiven: 1,
        delayed_ack: AckPolicy::Linux,
        receive_buffer: Octets(576 * 1024),
        // Quick acknowledgements last while the window grows. Transfers recorded between two hosts with Linux 6.18
        // and receive buffers of 4 MiB end that phase after 197 segments of 1448 octets: 181 steps of two segments
        // and sixteen more. (Where it stops depends on the memory that a segment takes there.)
        quick_ack_window: Octets(65_535 + 181 * 2 * 1448),
        initial_receive_window: Octets(65_535),
        send_buffer: Octets(4 * 1024 * 1024),
        nagle: Nagle::Minshall,
        rto_after_lost_syn: Duration::from_secs(1),
        min_rto: Duration::from_millis(200),
        rto_floor: RtoFloor::Variance,
        rto_variance: RtoVariance::Peak,
        // Its clock counts 250 ticks a second, unless it was built otherwise.
        rto_tick: Duration::from_millis(4),
        timer_wheel: true,
        max_rto: Duration::from_secs(120),
        rtt_sampling: RttSampling::EverySegment,
        rto_restart_on_sack: true,
        // Fifteen timeouts that begin at 200 ms; six of a SYN.
        give_up: Duration::from_millis(924_600),
        syn_give_up: Duration::from_secs(127),
        window_probe: WindowProbe::Empty,
        max_probe_interval: Duration::from_secs(120),
        time_wait: Duration::from_secs(60),
        challenge_acks: 1,
        challenge_interval: Duration::from_millis(500),
        ..rfc()
    }
}

/// Linux with these switched off. Its RACK cannot be since 6.17, whatever the switch says.
fn linux_classic() -> Config {
    Config {
        profile: Profile::LinuxClassic,
        timestamps: false,
        dsack: false,
        tlp: false,
        frto: false,
        // As above, after 208 segments of 1460 octets.
        quick_ack_window: Octets(65_535 + 192 * 2 * 1460),
        ..linux()
    }
}

fn bsd_reno() -> Config {
    Config {
        profile: Profile::BsdReno,
        congestion: Congestion::Reno,
        initial_window: InitialWindow::Standard(InitialWindowRule::Rfc2001),
        ack_counting: AckCounting::PerAck,
        limited_transmit: false,
        cwnd_validation: false,
        timestamps: false,
        timestamp_tick: Duration::from_millis(500),
        window_scaling: false,
        sack: false,
        dsack: false,
        delayed_ack: AckPolicy::Heartbeat,
        receive_buffer: Octets(16 * 1024),
        initial_receive_window: Octets(16 * 1024),
        send_buffer: Octets(16 * 1024),
        initial_rto: Duration::from_secs(3),
        rto_after_lost_syn: Duration::from_secs(3),
        max_rto: Duration::from_secs(64),
        rto_tick: Duration::from_millis(500),
        rtt_sampling: RttSampling::OncePerWindow,
        time_wait: Duration::from_secs(60),
        ..rfc()
    }
}

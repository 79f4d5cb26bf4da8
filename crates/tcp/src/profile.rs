//! Named sets of settings.
//! A circle, of which `config.rs` says why.
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
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::VariantArray,
)]
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
    /// Windows NT 4.0 from service pack 2 on (Microsoft KB 120642, 162179, 170359, 223450): windows of 8760 octets, fast
    /// retransmit at the second duplicate, five retransmissions, no options but the MSS.
    Nt4,
    /// Windows 98 (Microsoft KB 158474, 188307, 236926): as NT 4.0, with selective acknowledgements and fast retransmit
    /// at the third duplicate.
    Win98,
    /// TCP for 2.5G and 3G wireless networks (RFC 3481, WAP-225): a window of 64 kB, three to four segments at the
    /// beginning (RFC 3390), limited transmit, selective acknowledgements, timers of RFC 2988.
    WTcp,
}

impl Profile {
    /// All profiles.
    pub const ALL: &[Profile] = <Self as strum::VariantArray>::VARIANTS;

    /// Its values.
    pub fn settings(self) -> Config {
        match self {
            Profile::Rfc => rfc(),
            Profile::Linux => linux(),
            Profile::LinuxClassic => linux_classic(),
            Profile::BsdReno => bsd_reno(),
            Profile::Nt4 => nt4(),
            Profile::Win98 => win98(),
            Profile::WTcp => w_tcp(),
        }
    }
}

/// The values of each profile that are not those of `rfc`.
pub(super) fn differences() -> serde_json::Value {
    airloom_base::config::differences(Profile::ALL.iter().map(|profile| profile.settings()))
}

/// Sources: Microsoft KB 120642 and "Windows NT 4.0 TCP/IP" (window, delayed acknowledgement), 162179 (fast retransmit from
/// service pack 2 on, at the second duplicate), 170359 (five retransmissions), 223450 (first timeout 3 s, three SYNs more).
fn nt4() -> Config {
    Config {
        profile: Profile::Nt4,
        congestion: Congestion::Reno,
        // Not documented; Windows 2000, its successor, begins with two segments.
        initial_window: InitialWindow::Standard(InitialWindowRule::Rfc2581),
        ack_counting: AckCounting::PerAck,
        limited_transmit: false,
        dup_acks: 2,
        cwnd_validation: false,
        timestamps: false,
        window_scaling: false,
        sack: false,
        dsack: false,
        // 8 KiB in whole segments of an Ethernet.
        receive_buffer: Octets(8760),
        initial_receive_window: Octets(8760),
        // Winsock takes a whole write beside its 8 KiB (KB 214397): the buffer does not limit a bulk transfer.
        send_buffer: Octets(65_535),
        rto_initial: Duration::from_secs(3),
        rto_after_lost_syn: Duration::from_secs(3),
        // Not documented; the value published for its successors, and their clock of 100 ms.
        rto_min: Duration::from_millis(300),
        rto_tick: Duration::from_millis(100),
        rto_max: Duration::from_secs(240),
        rtt_sampling: RttSampling::OncePerWindow,
        max_retransmissions: 5,
        syn_give_up: Duration::from_secs(45),
        ..rfc()
    }
}

/// Sources: Microsoft KB 188307 and 236926 (selective acknowledgements on, third duplicate, RFC 1323 off unless the window
/// is larger than 64 kB), 158474 (five retransmissions).
fn win98() -> Config {
    Config { profile: Profile::Win98, congestion: Congestion::NewReno, dup_acks: 3, sack: true, ..nt4() }
}

/// RFC 3481 (4) and WAP-225. Scaling and timestamps are for windows above 64 kB there; RFC 3481 (4.8) would have timestamps
/// always: `timestamps = true`. ECN is a SHOULD of RFC 3481 (4.7) that needs routers: `ecn = "on"`.
fn w_tcp() -> Config {
    Config {
        profile: Profile::WTcp,
        //= RFC 3481 (4.2): an initial window of RFC 3390.
        initial_window: InitialWindow::Standard(InitialWindowRule::Rfc3390),
        //= RFC 3481 (4.1): windows of the bandwidth-delay product, without scaling at most 64 kB.
        receive_buffer: Octets(65_535),
        initial_receive_window: Octets(65_535),
        send_buffer: Octets(65_535),
        window_scaling: false,
        timestamps: false,
        //= RFC 3481 (4.3 to 4.6): limited transmit, an MTU larger than 576 with path MTU discovery, SACK: as `rfc`.
        //= RFC 2988 (2.1): three seconds before the first measurement.
        rto_initial: Duration::from_secs(3),
        rto_after_lost_syn: Duration::from_secs(3),
        rtt_sampling: RttSampling::OncePerWindow,
        // RFC 2883 is of the year before, and RFC 3481 does not name it.
        dsack: false,
        ..rfc()
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
        ecn_wait: true,
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
        eifel: false,
        dup_acks: 3,
        limited_transmit: true,
        partial_ack: PartialAck::Impatient,
        sack_after_rto: SackAfterRto::Forget,
        cwnd_validation: true,
        idle_restart: IdleRestart::InitialWindow,
        lost_syns_forgiven: 0,
        mss: 65_495,
        timestamps: true,
        timestamps_required: true,
        timestamp_tick: Duration::from_millis(1),
        window_scaling: true,
        sack: true,
        dsack: true,
        delayed_ack: AckPolicy::Timer,
        ack_delay: Duration::from_millis(200),
        receive_buffer: Octets(256 * 1024),
        receive_autotuning: false,
        receive_buffer_max: Octets(3 * 1024 * 1024),
        initial_receive_window: Octets(256 * 1024),
        quick_ack_window: Octets(0),
        send_buffer: Octets(1024 * 1024),
        send_autotuning: false,
        send_buffer_max: Octets(4 * 1024 * 1024),
        nagle: Nagle::Nagle,
        segmentation_offload: false,
        offload_segments: 2,
        rto_initial: Duration::from_secs(1),
        rto_after_lost_syn: Duration::from_secs(3),
        rto_min: Duration::from_secs(1),
        rto_floor: RtoFloor::Total,
        rto_variance: RtoVariance::Smoothed,
        rto_max: Duration::from_secs(60),
        rto_tick: Duration::ZERO,
        timer_wheel: false,
        timer_wheel_position: Duration::ZERO,
        rtt_sampling: RttSampling::Timestamps,
        rto_restart_on_sack: false,
        max_retransmissions: 0,
        give_up: Duration::from_secs(300),
        syn_linear_timeouts: 0,
        syn_give_up: Duration::from_secs(180),
        window_probe: WindowProbe::Octet,
        max_probe_interval: Duration::from_secs(60),
        keepalive: false,
        keepalive_idle: Duration::from_secs(7200),
        keepalive_interval: Duration::from_secs(75),
        keepalive_probes: 9,
        time_wait: Duration::from_secs(240),
        fin_wait_2: Duration::ZERO,
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
        ecn_wait: false,
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
        timestamps_required: false,
        delayed_ack: AckPolicy::Linux,
        // `tcp_rmem` is 128 KiB at first and 6 MiB at most, half of which is window (`tcp_adv_win_scale` 1), but of the first
        // as much as a full segment is of the memory it takes: 1448 of 2304 octets, in whole 20ths. `tcp_wmem` is 16 KiB and
        // 4 MiB. Both adapt to the path.
        receive_buffer: Octets(81_920),
        receive_autotuning: true,
        receive_buffer_max: Octets(3 * 1024 * 1024),
        // Quick acknowledgements last while the window grows. Transfers recorded between two hosts with Linux 6.18
        // and receive buffers of 4 MiB end that phase after 197 segments of 1448 octets: 181 steps of two segments
        // and sixteen more. (Where it stops depends on the memory that a segment takes there.)
        quick_ack_window: Octets(65_535 + 181 * 2 * 1448),
        initial_receive_window: Octets(65_535),
        send_buffer: Octets(16 * 1024),
        send_autotuning: true,
        send_buffer_max: Octets(4 * 1024 * 1024),
        nagle: Nagle::Minshall,
        // Always, since 4.17 even where the device cannot: the cut is then made just before it. Recorded transfers show
        // its pairs of segments and its PSHs.
        segmentation_offload: true,
        rto_after_lost_syn: Duration::from_secs(1),
        rto_min: Duration::from_millis(200),
        rto_floor: RtoFloor::Variance,
        rto_variance: RtoVariance::Peak,
        // Its clock counts 250 ticks a second, unless it was built otherwise.
        rto_tick: Duration::from_millis(4),
        timer_wheel: true,
        rto_max: Duration::from_secs(120),
        rtt_sampling: RttSampling::EverySegment,
        rto_restart_on_sack: true,
        // Fifteen timeouts that begin at 200 ms; of a SYN six, and before them the four that do not double.
        give_up: Duration::from_millis(924_600),
        syn_linear_timeouts: 4,
        syn_give_up: Duration::from_secs(131),
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
        undo_by_timestamps: false,
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
        rto_initial: Duration::from_secs(3),
        rto_after_lost_syn: Duration::from_secs(3),
        rto_max: Duration::from_secs(64),
        rto_tick: Duration::from_millis(500),
        rtt_sampling: RttSampling::OncePerWindow,
        time_wait: Duration::from_secs(60),
        ..rfc()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'a>(all: &'a serde_json::Value, profile: &str, key: &str) -> &'a serde_json::Value {
        &all[profile][key]
    }

    #[test]
    fn the_listing_names_what_differs_from_rfc_and_nothing_else() {
        let all = differences();
        assert_eq!(all["rfc"], serde_json::json!({}));
        for (profile, key, expected) in [
            ("linux", "initial_window", serde_json::json!(10)),
            ("linux", "cubic.variant", serde_json::json!("linux")),
            ("bsd-reno", "rto_tick", serde_json::json!("500ms")),
            ("nt4", "dup_acks", serde_json::json!(2)),
            ("w-tcp", "initial_window", serde_json::json!("rfc3390")),
        ] {
            assert_eq!(*value(&all, profile, key), expected, "{profile} {key}");
        }
        assert!(value(&all, "w-tcp", "sack").is_null(), "the same as in rfc");
        assert_eq!(all.as_object().map(serde_json::Map::len), Some(Profile::ALL.len()));
    }

    #[test]
    fn microsoft_kb_120642_162179_170359_223450_nt4() {
        let c = Profile::Nt4.settings();
        assert_eq!((c.receive_buffer, c.dup_acks, c.max_retransmissions), (Octets(8760), 2, 5));
        assert_eq!((c.rto_initial, c.syn_give_up), (Duration::from_secs(3), Duration::from_secs(45)));
        assert!(!c.sack && !c.timestamps && !c.window_scaling);
    }

    #[test]
    fn microsoft_kb_188307_236926_win98() {
        let c = Profile::Win98.settings();
        assert!(c.sack && !c.timestamps && !c.window_scaling);
        assert_eq!(c.dup_acks, 3);
    }

    #[test]
    fn rfc_3481_4_w_tcp() {
        let c = Profile::WTcp.settings();
        //= RFC 3481 (4.1, 4.2, 4.3, 4.6): window, initial window, limited transmit, SACK.
        assert_eq!(c.receive_buffer, Octets(65_535));
        assert_eq!(c.initial_window, InitialWindow::Standard(InitialWindowRule::Rfc3390));
        assert!(c.limited_transmit && c.sack);
        assert_eq!(c.congestion, Congestion::NewReno);
        //= RFC 2988 (2.1, 2.4): three seconds at first, one second at least.
        assert_eq!((c.rto_initial, c.rto_min), (Duration::from_secs(3), Duration::from_secs(1)));
    }
}

//! Named sets of settings. A profile is nothing but values; sources are named where a value is not the standard's own.

use airloom_base::Duration;
use airloom_base::units::Octets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::{Config, Controller, InitialWindow, InitialWindowRule, Migration, Pacing, Session};

/// A named set of settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// What the standards say (RFC 9000, 9002).
    #[default]
    Rfc9002,
    /// Chromium's QUIC, as far as it is modelled: CUBIC, 32 packets at the beginning, windows of 6 and 15 MB.
    Chromium,
    /// quic-go, as far as it is modelled: NewReno, 32 packets at the beginning, windows of 6 and 15 MB.
    QuicGo,
}

/// The values of each profile that are not those of `rfc9002`, by the names of profiles and keys.
pub(super) fn differences() -> serde_json::Value {
    let values = |profile: Profile| match serde_json::to_value(profile.settings()) {
        Ok(serde_json::Value::Object(values)) => values,
        _ => serde_json::Map::new(),
    };
    let standard = values(Profile::Rfc9002);
    let own = [Profile::Rfc9002, Profile::Chromium, Profile::QuicGo].into_iter().map(|profile| {
        let mut own = values(profile);
        let name = own.get("profile").and_then(|n| n.as_str()).unwrap_or_default().to_owned();
        own.retain(|key, value| key != "profile" && standard.get(key) != Some(value));
        (name, serde_json::Value::Object(own))
    });
    serde_json::Value::Object(own.collect())
}

impl Profile {
    /// Its values.
    pub fn settings(self) -> Config {
        let standard = Config {
            profile: self,
            session: Session::Model,
            // A leaf and an intermediate certificate with keys of P-256: below what a server may send at once.
            certificates: Octets(2_000),
            post_quantum: false,
            // OpenSSL and BoringSSL send two.
            tickets: 2,
            resumes: true,
            zero_rtt: false,
            controller: Controller::NewReno,
            initial_window: InitialWindow::Standard(InitialWindowRule::Rfc9002),
            pacing: Pacing::Measured,
            //= RFC 9002 (6.2.2): 333 ms.
            initial_rtt: Duration::from_millis(333),
            //= RFC 9002 (6.1.1): kPacketThreshold is 3.
            packet_threshold: 3,
            //= RFC 9002 (6.1.2): kTimeThreshold is 9/8.
            time_threshold: 1.125,
            //= RFC 9002 (7.6.1): kPersistentCongestionThreshold is 3.
            persistent_congestion_threshold: 3,
            ack_every: 0,
            max_ack_delay: Duration::ZERO,
            // RFC 9308 (3.2): 30 s are a good choice.
            idle_timeout: Duration::from_secs(30),
            keep_alive: Duration::ZERO,
            initial_datagram: 1_200,
            mtu_discovery: true,
            // The standards leave windows open: room for any path of the laboratory.
            receive_window: Octets(16 << 20),
            stream_window: Octets(16 << 20),
            send_buffer: Octets(16 << 20),
            bidi_streams: 100,
            uni_streams: 100,
            datagram_buffer: Octets(1 << 20),
            retry: false,
            migration: Migration::AtOnce,
            spin_bit: true,
        };
        match self {
            Profile::Rfc9002 => standard,
            // QUICHE and net/quic of Chromium: kInitialCongestionWindow 32, kInitialRttMs 100, kDefaultMaxPacketSize 1250,
            // kQuicSessionMaxRecvWindowSize 15 MB, kQuicStreamMaxRecvWindowSize 6 MB, 30 s of idleness, no spin bit.
            Profile::Chromium => Config {
                controller: Controller::Cubic,
                initial_window: InitialWindow::Packets(32),
                initial_rtt: Duration::from_millis(100),
                initial_datagram: 1_250,
                receive_window: Octets(15 << 20),
                stream_window: Octets(6 << 20),
                spin_bit: false,
                ..standard
            },
            // quic-go v0.65: initialCongestionWindow 32 with its Reno, DefaultInitialRTT 100 ms, InitialPacketSize 1280,
            // DefaultMaxReceiveStreamFlowControlWindow 6 MB, DefaultMaxReceiveConnectionFlowControlWindow 15 MB,
            // DefaultMaxIncomingStreams 100, DefaultIdleTimeout 30 s, no spin bit.
            Profile::QuicGo => Config {
                initial_window: InitialWindow::Packets(32),
                initial_rtt: Duration::from_millis(100),
                initial_datagram: 1_280,
                receive_window: Octets(15 << 20),
                stream_window: Octets(6 << 20),
                tickets: 1,
                spin_bit: false,
                ..standard
            },
        }
    }
}

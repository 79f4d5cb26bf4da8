//! Named sets of settings. A profile is nothing but values; sources are named where a value is not the standard's own.
//! A circle, of which `config.rs` says why.

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
    /// Chromium's QUIC, as far as it is modelled: CUBIC, 46,720 octets at the beginning, windows of 6 and 15 MB.
    Chromium,
    /// quic-go, as far as it is modelled: NewReno, 40,960 octets at the beginning, windows of 6 and 15 MB.
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
            session: Session::Auto,
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
            // RFC 9114 (6.1): no fewer than a hundred requests at a time.
            bidi_streams: 100,
            uni_streams: 100,
            datagram_buffer: Octets(1 << 20),
            retry: false,
            migration: Migration::AtOnce,
            spin_bit: true,
        };
        match self {
            Profile::Rfc9002 => standard,
            // Of google/quiche, quic/core/quic_constants.h unless said: kInitialCongestionWindow 32 times kDefaultTCPMSS 1460, kInitialRttMs
            // 100, kDefaultMaxPacketSize 1250, kDefaultMaxStreamsPerConnection 100, kDefaultPacketReorderingThreshold 3,
            // kDefaultIetfLossDelayShift 3 (9/8 of a round trip), kDefaultDelayedAckTimeMs 25 and
            // kDefaultRetransmittablePacketsBeforeAck 2, which are the standard's; quic_connection.cc, GetDefaultCongestionControlType: CUBIC.
            // Of chromium, net/quic/quic_context.cc: kQuicSessionMaxRecvWindowSize 15 MB, kQuicStreamMaxRecvWindowSize 6 MB;
            // net/quic/quic_context.h: kIdleConnectionTimeout 30 s. It shows no spin bit.
            // Left out: a timeout of 2 rttvar (kPtoRttvarMultiplier), acknowledgements of every tenth packet after a hundred.
            Profile::Chromium => Config {
                controller: Controller::Cubic,
                initial_window: InitialWindow::Octets(Octets(32 * 1_460)),
                initial_rtt: Duration::from_millis(100),
                initial_datagram: 1_250,
                receive_window: Octets(15 << 20),
                stream_window: Octets(6 << 20),
                spin_bit: false,
                ..standard
            },
            // quic-go v0.65.0. internal/congestion/cubic_sender.go: initialCongestionWindow 32 of the first datagram size;
            // internal/ackhandler/sent_packet_handler.go: Reno, packetThreshold 3, 9/8 of a round trip; received_packet_tracker.go:
            // packetsBeforeAck 2, MaxAckDelay 25 ms; internal/utils/rtt_stats.go: DefaultInitialRTT 100 ms; internal/protocol/params.go:
            // InitialPacketSize 1280, DefaultMaxReceiveStreamFlowControlWindow 6 MB, DefaultMaxReceiveConnectionFlowControlWindow 15 MB,
            // DefaultMaxIncomingStreams 100, DefaultMaxIncomingUniStreams 100, DefaultIdleTimeout 30 s; connection.go: one ticket. It
            // shows no spin bit.
            // Left out: a window that shrinks to 0.7 (renoBeta) and not to a half, receive windows that begin with 512 kB and grow.
            Profile::QuicGo => Config {
                initial_window: InitialWindow::Octets(Octets(32 * 1_280)),
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

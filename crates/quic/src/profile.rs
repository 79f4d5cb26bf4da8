//! Named sets of settings. A profile is nothing but values, and says where each is from.
//! A circle, of which `config.rs` says why.

use airloom_base::Duration;
use airloom_base::units::Octets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

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

/// Where values are from that `rfc9002` has, and others unless they have their own.
const STANDARD: &[(&str, &str)] = &[
    ("session", "ours: `auto` is as cheap as the run allows"),
    (
        "certificates",
        "a leaf and an intermediate certificate with keys of P-256: below what a server may send at once",
    ),
    ("post_quantum", "TLS 1.3 as RFC 8446 has it"),
    ("tickets", "OpenSSL and BoringSSL send two"),
    ("resumes", "RFC 8446 (2.2)"),
    ("zero_rtt", "RFC 8446 (2.3, E.5): only where the application says what may be repeated"),
    ("controller", "RFC 9002 (7)"),
    ("initial_window", "RFC 9002 (7.2)"),
    ("pacing", "RFC 9002 (7.7): pacing, or bursts of the initial window at most"),
    ("initial_rtt", "RFC 9002 (6.2.2)"),
    ("packet_threshold", "RFC 9002 (6.1.1): kPacketThreshold"),
    ("time_threshold", "RFC 9002 (6.1.2): kTimeThreshold, 9/8"),
    ("persistent_congestion_threshold", "RFC 9002 (7.6.1): kPersistentCongestionThreshold"),
    ("ack_every", "RFC 9000 (13.2.2): after two packets; the extension is not used"),
    ("max_ack_delay", "RFC 9000 (18.2): 25 ms; the extension is not used"),
    ("idle_timeout", "RFC 9308 (3.2)"),
    ("keep_alive", "RFC 9000 (10.1.2): the application's choice"),
    ("initial_datagram", "RFC 9000 (14.1)"),
    ("mtu_discovery", "RFC 9000 (14.3)"),
    ("receive_window", "ours, since the standard leaves it open: room for any path of the laboratory"),
    ("stream_window", "ours, as `receive_window`"),
    ("send_buffer", "ours, as `receive_window`"),
    ("bidi_streams", "RFC 9114 (6.1): no fewer than a hundred requests at a time"),
    ("uni_streams", "ours, as `bidi_streams`; RFC 9114 (6.2) asks for three at least"),
    ("datagram_buffer", "ours, since RFC 9221 leaves it open"),
    ("retry", "RFC 9000 (8.1.2): a server's choice"),
    ("migration", "RFC 9000 (9)"),
    ("spin_bit", "RFC 9000 (17.4)"),
];

/// Where those of Chromium are from: QUICHE (google/quiche) and Chromium itself. Its thresholds of loss, acknowledgements after two packets or 25 ms, a
/// hundred streams and 30 s of idleness are those of `rfc9002`. Left out: a timeout of 2 rttvar (kPtoRttvarMultiplier), and
/// acknowledgements of every tenth packet after a hundred.
const CHROMIUM: &[(&str, &str)] = &[
    ("controller", "QUICHE, quic/core/quic_connection.cc: GetDefaultCongestionControlType"),
    (
        "initial_window",
        "QUICHE, quic/core/quic_constants.h: kInitialCongestionWindow 32, times kDefaultTCPMSS 1460",
    ),
    ("initial_rtt", "QUICHE, quic/core/quic_constants.h: kInitialRttMs"),
    ("initial_datagram", "QUICHE, quic/core/quic_constants.h: kDefaultMaxPacketSize"),
    ("receive_window", "Chromium, net/quic/quic_context.cc: kQuicSessionMaxRecvWindowSize"),
    ("stream_window", "Chromium, net/quic/quic_context.cc: kQuicStreamMaxRecvWindowSize"),
    ("spin_bit", "QUICHE shows none"),
];

/// Where those of quic-go are from, v0.65.0. NewReno, thresholds of loss, acknowledgements after two packets or 25 ms, a hundred streams
/// and 30 s of idleness are those of `rfc9002` (internal/ackhandler, internal/protocol/params.go). Left out: a window that shrinks to 0.7
/// (renoBeta) and not to a half, receive windows that begin with 512 kB and grow.
const QUIC_GO: &[(&str, &str)] = &[
    ("tickets", "quic-go, connection.go: one ticket"),
    (
        "initial_window",
        "quic-go, internal/congestion/cubic_sender.go: initialCongestionWindow 32, times the first datagram's size",
    ),
    ("initial_rtt", "quic-go, internal/utils/rtt_stats.go: DefaultInitialRTT"),
    (
        "persistent_congestion_threshold",
        "quic-go, internal/ackhandler/sent_packet_handler.go: its controller hears of losses alone",
    ),
    ("initial_datagram", "quic-go, internal/protocol/params.go: InitialPacketSize"),
    ("receive_window", "quic-go, internal/protocol/params.go: DefaultMaxReceiveConnectionFlowControlWindow"),
    ("stream_window", "quic-go, internal/protocol/params.go: DefaultMaxReceiveStreamFlowControlWindow"),
    ("spin_bit", "quic-go shows none"),
];

/// Where each profile's values are from, by the names of profiles and keys: those of [`differences`], and all of `rfc9002`.
pub(super) fn sources() -> Value {
    let named = |sources: &[(&str, &str)]| {
        sources.iter().map(|&(key, from)| (key.to_owned(), from.into())).collect::<Map<_, _>>()
    };
    json!({ "rfc9002": named(STANDARD), "chromium": named(CHROMIUM), "quic-go": named(QUIC_GO) })
}

/// The values of each profile that are not those of `rfc9002`.
pub(super) fn differences() -> Value {
    let profiles = [Profile::Rfc9002, Profile::Chromium, Profile::QuicGo];
    airloom_base::config::differences(profiles.map(Profile::settings))
}

impl Profile {
    /// Its values.
    pub fn settings(self) -> Config {
        let standard = Config {
            profile: self,
            session: Session::Auto,
            certificates: Octets(2_000),
            post_quantum: false,
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
            idle_timeout: Duration::from_secs(30),
            keep_alive: Duration::ZERO,
            initial_datagram: 1_200,
            mtu_discovery: true,
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
            Profile::QuicGo => Config {
                initial_window: InitialWindow::Octets(Octets(32 * 1_280)),
                initial_rtt: Duration::from_millis(100),
                // There is none: a threshold that never comes.
                persistent_congestion_threshold: u32::MAX,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_value_says_where_it_is_from() {
        let keys = |table: &Value| table.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let (sources, differences) = (sources(), differences());
        let standard = serde_json::to_value(Profile::Rfc9002.settings()).unwrap();
        assert_eq!(keys(&standard)[0], "profile");
        assert_eq!(keys(&sources["rfc9002"]), keys(&standard)[1..]);
        for profile in ["chromium", "quic-go"] {
            assert_eq!(keys(&sources[profile]), keys(&differences[profile]), "{profile}");
        }
    }
}

//! Settings of QUIC. A profile gives them all; each can be changed by itself.
//!
//! A circle of 2 files: profiles give values to all keys, and one of the keys is the profile.

use airloom_base::Duration;
use airloom_base::units::Octets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::library::{HAS_SEVERAL_PATHS, OBEYS_RATES};
use super::profile::{Profile, differences, sources};

/// How packets are protected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Session {
    /// As `tls` where a host of the run is real; else as another host of the run has it; else as `seeded` where the run makes a capture,
    /// which then can be read; as `model` otherwise.
    #[default]
    Auto,
    /// Not at all: tags of 16 octets that say nothing. Times are those of the real thing, at a part of its work.
    Model,
    /// As RFC 9001 says, with AES-128-GCM and secrets that follow from the run's seed: the same seed gives the same octets, and
    /// whoever knows the secrets (the run's key log) reads them.
    Seeded,
    /// By TLS 1.3 with a certificate of this run, as real peers do: for runs with real hosts alone, since its random numbers are the
    /// machine's. A client believes every server. Certificates have the size that is asked for and sessions go on by as many tickets, but
    /// other messages of the handshake have the sizes of rustls's; `post_quantum` and `zero_rtt` are refused.
    Tls,
}

/// A congestion controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Controller {
    /// As RFC 9002 has it.
    #[default]
    NewReno,
    /// CUBIC (RFC 9438).
    Cubic,
    /// BBR, version 3 (draft-ietf-ccwg-bbr).
    Bbr,
}

/// How packets are spread over a round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// Once a round trip has been measured. Until then the congestion window is the limit of a burst (RFC 9002, 7.7), so that a
    /// handshake's flight leaves at once.
    #[default]
    Measured,
    /// Always, as the library does by itself: before a round trip is measured, by `initial_rtt`. The second packet of a server's
    /// first flight waits for some 30 ms then.
    Always,
    /// Never.
    Off,
}

/// The least that takes whatever the peer is told that it may send in one datagram, 65,535 octets at most: the library counts 32 for
/// each beside its own, and closes the connection where that is more than there is room for.
const LEAST_DATAGRAM_BUFFER: u64 = 65_535 + 32;

/// How a connection goes on from another address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Migration {
    /// Not at all: a server drops what comes from elsewhere, a client stays where it is.
    Off,
    /// A client goes on by the other path at once, and the server validates it (RFC 9000, 9.3).
    #[default]
    AtOnce,
    /// A client has the other path validated first, and goes on by the old one meanwhile (RFC 9000, 9.1). Takes the extension for
    /// several paths (draft-ietf-quic-multipath), to which both ends have to be set; else it is `at-once`.
    Probe,
}

/// How large the congestion window is at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "rfc9002, a number of packets, or octets such as \"40kB\"")]
pub enum InitialWindow {
    /// As the standard says.
    Standard(InitialWindowRule),
    /// So many packets of 1200 octets.
    Packets(u16),
    /// So many octets.
    Octets(Octets),
}

/// The initial window of the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum InitialWindowRule {
    /// Ten packets of `initial_datagram` octets, but no more than 14,720 octets; two at least.
    Rfc9002,
}

/// The smallest datagram that every path takes (RFC 9000, 14): that of the beginning.
pub(crate) const BASE_DATAGRAM: u16 = 1200;

impl InitialWindow {
    /// In octets, where so many are a packet at the beginning.
    pub(crate) fn octets(self, packet: u16) -> u64 {
        let packet = u64::from(packet);
        match self {
            //= RFC 9002 (7.2): min(10 max_datagram_size, max(14720, 2 max_datagram_size)).
            InitialWindow::Standard(InitialWindowRule::Rfc9002) => (10 * packet).min(14_720.max(2 * packet)),
            InitialWindow::Packets(packets) => u64::from(packets) * u64::from(BASE_DATAGRAM),
            InitialWindow::Octets(octets) => octets.0,
        }
    }
}

macro_rules! settings {
    ($( $(#[$doc:meta])* $name:ident: $type:ty, )*) => {
        /// QUIC, version 1 (RFC 9000, 9001, 9002): streams and datagrams in encrypted packets over UDP.
        ///
        /// The profile gives every setting a value; each can be set by itself. The table as understood lists them all.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "Table")]
        #[schemars(extend("x-profiles" = differences(), "x-sources" = sources()))]
        pub struct Config {
            /// The named set of values that the others start from.
            pub profile: Profile,
            $( $(#[$doc])* pub $name: $type, )*
        }

        /// QUIC, version 1 (RFC 9000, 9001, 9002): streams and datagrams in encrypted packets over UDP.
        ///
        /// The profile gives every setting a value; each can be set by itself.
        #[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        #[schemars(rename = "Quic")]
        struct Table {
            /// The named set of values that the others start from: `rfc9002`, `chromium`, `quic-go`.
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
    /// How packets are protected. With `model` and `seeded` sizes are the same, and times too, unless a link looks at what it carries:
    /// PPP's octet stuffing (`piafs`, `mlppp`) makes octets of ciphers longer than tags that say little, and a `model` tag does not
    /// notice `faults.corrupt` as a cipher does. Name one then, so that a capture changes no time.
    session: Session,
    /// Octets of the server's certificates in the handshake. From some 3 kB on, the flight is longer than the three times what the
    /// client has sent that a server may send before it knows the client's address: it waits for a round trip more.
    certificates: Octets,
    /// Key shares are as large as those of X25519MLKEM768 (1216 octets from the client, 1120 back).
    post_quantum: bool,
    /// Session tickets that a server sends after the handshake.
    tickets: u8,
    /// A client goes on with a session by a ticket of an earlier connection to the same address in this run, and a server lets it:
    /// no certificates are sent then.
    resumes: bool,
    /// On such a connection a client sends at once what may be repeated (0-RTT; HTTP/3 does so with safe methods), and a server takes
    /// it, once for each ticket.
    zero_rtt: bool,
    /// The congestion controller. `newreno` and `cubic` are the library's, `bbr` is ours, by the draft of August 2026.
    controller: Controller,
    /// Congestion window at the beginning.
    initial_window: InitialWindow,
    /// How packets are spread over a round trip.
    pacing: Pacing,
    /// The round trip that is assumed until one was measured.
    initial_rtt: Duration,
    /// A packet is lost when one that was sent so many later has arrived.
    packet_threshold: u32,
    /// A packet is lost when one that was sent so many round trips later has arrived.
    time_threshold: f32,
    /// Losses that span so many timeouts are persistent congestion.
    persistent_congestion_threshold: u32,
    /// Packets after which the peer is asked to acknowledge at once (draft-ietf-quic-ack-frequency); 0: it is not asked, and does
    /// so after every second one.
    ack_every: u32,
    /// How long the peer is asked to let an acknowledgement wait at most. That is asked for together with `ack_every`, and refused without
    /// it; 0: the peer keeps its 25 ms.
    max_ack_delay: Duration,
    /// A connection on which nothing arrives for so long is over, without a word; 0: never.
    idle_timeout: Duration,
    /// A connection that is idle for so long sends a PING; 0: never.
    keep_alive: Duration,
    /// UDP payload of the first packets, in octets.
    initial_datagram: u16,
    /// Larger datagrams are probed for (DPLPMTUD, RFC 8899), up to what the first link takes.
    mtu_discovery: bool,
    /// Octets that the peer may have under way on all streams.
    receive_window: Octets,
    /// Octets that the peer may have under way on one stream.
    stream_window: Octets,
    /// Octets written and not acknowledged at most, on all streams.
    send_buffer: Octets,
    /// Streams in both directions that the peer may have open at a time.
    bidi_streams: u32,
    /// Streams in one direction that the peer may have open at a time.
    uni_streams: u32,
    /// Octets of unreliable datagrams (RFC 9221) that wait to be read at most, 65,567 or more; 0: none are taken.
    datagram_buffer: Octets,
    /// A server has a client show that it is where it says it is before anything is kept for it (Retry, RFC 9000, 8.1.2).
    retry: bool,
    /// A client goes on from another address: it uses the first of its host's links that is in service, and changes when that is
    /// another one. The server takes its packets from there.
    migration: Migration,
    /// The spin bit shows round trips to those on the path (RFC 9000, 17.4).
    spin_bit: bool,
}

impl Default for Config {
    fn default() -> Self {
        Profile::default().settings()
    }
}

impl Config {
    /// Itself, if a connection can live with it.
    ///
    /// # Errors
    /// Which key cannot be as it is.
    pub fn checked(self) -> Result<Config, String> {
        let positive = [
            ("initial_rtt", self.initial_rtt.as_nanos()),
            ("packet_threshold", u64::from(self.packet_threshold)),
            ("persistent_congestion_threshold", u64::from(self.persistent_congestion_threshold)),
            ("stream_window", self.stream_window.0),
            ("receive_window", self.receive_window.0),
            ("send_buffer", self.send_buffer.0),
        ];
        if let Some((key, _)) = positive.into_iter().find(|(_, value)| *value == 0) {
            return Err(format!("{key}: must be more than nothing"));
        }
        //= RFC 9002 (6.1.1): a threshold below 3 takes reordered packets for lost.
        if self.packet_threshold < 3 {
            return Err("packet_threshold: must be at least 3".to_owned());
        }
        if !(self.time_threshold.is_finite() && (1.0..=100.0).contains(&self.time_threshold)) {
            return Err("time_threshold: must be between 1 and 100".to_owned());
        }
        //= RFC 9000 (14.1): no datagram of the handshake is below 1200 octets.
        if !(BASE_DATAGRAM..=65_527).contains(&self.initial_datagram) {
            return Err("initial_datagram: must be between 1200 and 65527".to_owned());
        }
        // No packet leaves that is larger than the window.
        let initial_window = Octets(self.initial_window.octets(self.initial_datagram));
        let packet = u64::from(self.initial_datagram);
        if initial_window.0 < packet {
            return Err(format!("initial_window: must be at least {packet} octets, a packet"));
        }
        //= RFC 9000 (18.2): a delay of 2^14 ms or more is invalid.
        if self.max_ack_delay.as_millis() >= 1 << 14 {
            return Err("max_ack_delay: must be less than 16384ms".to_owned());
        }
        if !self.max_ack_delay.is_zero() && self.ack_every == 0 {
            return Err("max_ack_delay: needs ack_every, with which it is asked for".to_owned());
        }
        if self.zero_rtt && !self.resumes {
            return Err("zero_rtt: needs resumes = true".to_owned());
        }
        if !(1_000..=16_000).contains(&self.certificates.0) {
            return Err("certificates: must be between 1kB and 16kB".to_owned());
        }
        let asks_for_too_much = [
            (
                self.migration == Migration::Probe && !HAS_SEVERAL_PATHS,
                "migration",
                "second path: off or at-once",
            ),
            (
                self.controller == Controller::Bbr && !OBEYS_RATES,
                "controller",
                "pace for BBR: newreno or cubic",
            ),
            (self.pacing == Pacing::Off && !OBEYS_RATES, "pacing", "way without a pace: measured or always"),
        ];
        if let Some((_, key, what)) = asks_for_too_much.into_iter().find(|(is_missing, ..)| *is_missing) {
            return Err(format!("{key}: this build's library of QUIC has no {what}"));
        }
        let most = 1 << 32;
        if [initial_window, self.stream_window, self.receive_window, self.send_buffer, self.datagram_buffer]
            .iter()
            .any(|octets| octets.0 > most)
        {
            return Err("windows and buffers: must be at most 4GB".to_owned());
        }
        if (1..LEAST_DATAGRAM_BUFFER).contains(&self.datagram_buffer.0) {
            return Err(format!("datagram_buffer: must be at least {LEAST_DATAGRAM_BUFFER}B, or 0B"));
        }
        //= RFC 9000 (18.2): the time-out is told in whole milliseconds, of which 0 mean never.
        if !self.idle_timeout.is_zero() && self.idle_timeout < Duration::from_millis(1) {
            return Err("idle_timeout: must be at least 1ms, or 0s for never".to_owned());
        }
        let longest = Duration::from_secs(86_400);
        for (key, time) in [
            ("idle_timeout", self.idle_timeout),
            ("keep_alive", self.keep_alive),
            ("initial_rtt", self.initial_rtt),
        ] {
            if time > longest {
                return Err(format!("{key}: must be at most a day"));
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initial_window_of_the_standard_is_ten_of_the_first_packets() {
        //= RFC 9002 (7.2): min(10 max_datagram_size, max(14720, 2 max_datagram_size)).
        let window = InitialWindow::Standard(InitialWindowRule::Rfc9002);
        for (packet, octets) in [(1_200, 12_000), (1_452, 14_520), (1_500, 14_720), (20_000, 40_000)] {
            assert_eq!(window.octets(packet), octets);
            assert!(Config { initial_datagram: packet, ..Config::default() }.checked().is_ok());
        }
    }

    #[test]
    fn a_buffer_that_has_no_room_for_a_datagram_that_may_come_is_refused() {
        let with = |octets| Config { datagram_buffer: Octets(octets), ..Config::default() }.checked();
        for octets in [1, 80, 65_566] {
            let said = with(octets).unwrap_err();
            assert!(said.starts_with("datagram_buffer: must be at least 65567B"), "{said}");
        }
        assert!(with(0).is_ok() && with(65_567).is_ok());
    }

    #[test]
    fn an_idle_timeout_that_would_be_none_is_refused() {
        let with = |idle_timeout| Config { idle_timeout, ..Config::default() }.checked();
        assert!(with(Duration::from_micros(900)).is_err_and(|said| said.starts_with("idle_timeout: ")));
        assert!(with(Duration::from_millis(1)).is_ok() && with(Duration::ZERO).is_ok());
    }

    #[test]
    fn a_window_in_which_no_packet_has_room_is_refused() {
        let with =
            |profile: Profile, initial_window| Config { initial_window, ..profile.settings() }.checked();
        for (profile, window) in [
            (Profile::Rfc9002, InitialWindow::Packets(0)),
            (Profile::Rfc9002, InitialWindow::Octets(Octets(1_000))),
            (Profile::Chromium, InitialWindow::Packets(1)),
            (Profile::QuicGo, InitialWindow::Packets(1)),
        ] {
            let said = with(profile, window).unwrap_err();
            assert!(said.starts_with("initial_window: must be at least 1"), "{said}");
        }
        assert!(with(Profile::Rfc9002, InitialWindow::Packets(1)).is_ok());
        assert!(with(Profile::QuicGo, InitialWindow::Packets(2)).is_ok());
    }
}

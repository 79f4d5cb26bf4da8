//! Settings of the gateway.

use airloom_apps::wtls;
use airloom_base::units::Octets;
use airloom_base::{ConfigError, Duration};
use airloom_transports::wsp::capabilities::{Agreed, option};
use airloom_transports::wsp::server;
use airloom_transports::wtp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::content::Treatment;

/// What the gateway's own work takes, of one reply after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Processing {
    /// Of every reply.
    pub fixed: Duration,
    /// Of every octet of the origin's body, after its content coding was taken off.
    pub per_octet: Duration,
    /// Besides, of every document that is compiled or converted; what is handed on as it came does not take it.
    pub encoding: Duration,
    /// Besides, of every octet of such a document, as the origin sent it.
    pub encoding_per_octet: Duration,
}

/// A WAP gateway: WSP on the side of the clients, HTTP on the side of the origins, decks compiled and web pages
/// converted on the way (WAP-230, WAP-236).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// What the gateway calls itself in the `Via` field of its requests: a name that no proxy on the way to the origin has. That of its
    /// host if not given; `airloom serve wap-gateway` makes one up.
    pub name: Option<String>,
    /// Reliable transactions under the sessions.
    pub wtp: wtp::Config,
    /// Sessions at a time. Where there is no room for another one, one goes: first of those whose client has not shown that it is where
    /// it says, then of those in which nothing is outstanding, the one that was not used for longest.
    #[default(10_000)]
    pub max_sessions: u32,
    /// Of these, sessions of one address (of IPv6: of one network of 64 bits).
    #[default(2_500)]
    pub max_sessions_of_address: u32,
    /// A client may take its session up again from whatever address, not from the one alone where it was (at any port). The cookies
    /// that the gateway keeps are then used again once the new address is proven.
    pub resume_from_anywhere: bool,
    /// A session in which nothing was asked for so long is ended.
    #[default(Duration::from_secs(3_600))]
    pub idle: Duration,
    /// Requests that a session may have outstanding (Method-MOR).
    #[default(8)]
    pub method_mor: u8,
    /// Confirmed pushes that a session may have outstanding (Push-MOR).
    #[default(4)]
    pub push_mor: u8,
    /// The largest SDU that clients may ask for; 0 for any.
    pub client_sdu: Octets,
    /// The largest SDU that clients may be granted to send; 0 for any.
    pub server_sdu: Octets,
    /// Requests without a session are answered too.
    #[default(true)]
    pub connectionless: bool,
    /// The largest datagram that answers a request without a session.
    #[default(Octets(1_400))]
    pub connectionless_reply: Octets,
    /// A client is sent at most so many times the octets that came from its address and port, headers of IP and UDP counted, until it
    /// has shown that it is there; 0: no limit, as in a network where nobody forges addresses (`airloom serve wap-gateway` has 3
    /// unless told otherwise). Requests without a session show nothing, so larger replies to them need a session of the same
    /// host, or no limit.
    pub amplification: u16,
    /// Requests that wait for their origins at a time; further ones are answered 503. Where a client asks that has shown that it is there, that is
    /// the oldest one of those that have not.
    #[default(256)]
    pub max_fetches: u32,
    /// Of these, requests of one address (of IPv6: of one network of 64 bits).
    #[default(64)]
    pub max_fetches_of_address: u32,
    /// A request that its origins have not answered completely after so long is answered 504.
    #[default(Duration::from_secs(30))]
    pub origin_timeout: Duration,
    /// Connections to one origin at a time; further requests wait for one.
    #[default(8)]
    pub connections: u16,
    /// Connections to origins are used for more than one request.
    #[default(true)]
    pub keep_alive: bool,
    /// A connection to an origin that nobody uses is closed after so long.
    #[default(Duration::from_secs(15))]
    pub keep_alive_timeout: Duration,
    /// Redirections that the gateway follows for one request; the next one is handed to the client.
    #[default(5)]
    pub max_redirects: u8,
    /// The largest body of an origin, after its content coding was taken off; for a larger one the client gets 502.
    #[default(Octets(1_000_000))]
    pub max_body: Octets,
    /// Octets of bodies and replies under way, of all clients together; for more than that a client gets 503. Those that have not shown
    /// that they are there get half of it. Headers of sessions count, too, and have a quarter of it at most: sessions go for them as they do
    /// for `max_sessions`.
    #[default(Octets(64_000_000))]
    pub memory: Octets,
    /// Of these, octets for one address (of IPv6: for one network of 64 bits).
    #[default(Octets(16_000_000))]
    pub memory_of_address: Octets,
    /// Octets of decks that are kept because a page became several, of all clients together; the oldest go first.
    #[default(Octets(16_000_000))]
    pub kept_decks: Octets,
    /// Cookies are kept here for as long as the session lasts; otherwise they go to the client and come from there.
    #[default(true)]
    pub cookies: bool,
    /// Octets of origins' answers that are kept and used again while they are fresh (RFC 9111, `s-maxage`, `max-age` and
    /// `Expires` alone); none: nothing is kept. The simulated `http-server` says none of these, so that nothing of it is kept.
    pub cache: Option<Octets>,
    /// Web pages become decks for clients that do not take them as they are.
    #[default(true)]
    pub convert_html: bool,
    /// Text that occurs again in a deck stands in the string table once (WAP-192, 5.7); otherwise all of it is written in place.
    #[default(true)]
    pub string_table: bool,
    /// Errors become decks for people, with the status 200, as phones were seen to show nothing else.
    pub smart_errors: bool,
    /// How long a reply takes to be made.
    pub processing: Processing,
    /// A push that has to be confirmed waits so long for the session that its client is asked to open; 0: clients are not asked.
    #[default(Duration::from_secs(60))]
    pub session_wait: Duration,
    /// Pushes that are not over at a time; further ones are refused.
    #[default(1_000)]
    pub max_pushes: u32,
    /// Speaks WTLS, too, on a simulated host: at port 9203 in sessions and at 9202 without.
    pub wtls: Option<wtls::Config>,
    /// The port at which a simulated host takes pushes from initiators (PAP over HTTP, by POST); none: nowhere.
    pub push_port: Option<u16>,
}

impl Config {
    /// Says what no gateway can work with.
    ///
    /// # Errors
    /// The key and what would be valid.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.wtp.check().map_err(|error| error.below("wtp"))?;
        self.wtls.as_ref().map_or(Ok(()), wtls::Config::check)?;
        let is_token = |o: u8| o.is_ascii_alphanumeric() || b"-._".contains(&o);
        if self.name().is_empty() || !self.name().bytes().all(is_token) {
            return Err(ConfigError::at("name", "must be a word of letters, digits, `-`, `.` and `_`"));
        }
        for (key, n) in [("method_mor", u16::from(self.method_mor)), ("connections", self.connections)] {
            ConfigError::when(n == 0, key, "must be at least 1")?;
        }
        for (key, interval) in [
            ("idle", self.idle),
            ("origin_timeout", self.origin_timeout),
            ("keep_alive_timeout", self.keep_alive_timeout),
        ] {
            ConfigError::when(interval.is_zero(), key, "must be longer than nothing")?;
        }
        for (key, size) in [("client_sdu", self.client_sdu), ("server_sdu", self.server_sdu)] {
            ConfigError::when(size.0 > u64::from(u32::MAX), key, "must be less than 4 GiB")?;
        }
        Ok(())
    }

    /// Its name; where nobody said anything, that of what it is.
    pub(super) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("airloom")
    }

    /// The settings of the sessions.
    pub(super) fn server(&self) -> server::Config {
        let sdu = |octets: Octets| u32::try_from(octets.0).unwrap_or(u32::MAX);
        server::Config {
            wtp: self.wtp.clone(),
            offer: Agreed {
                client_sdu: sdu(self.client_sdu),
                server_sdu: sdu(self.server_sdu),
                options: option::CONFIRMED_PUSH | option::PUSH | option::SESSION_RESUME,
                method_mor: self.method_mor,
                push_mor: self.push_mor,
                methods: Vec::new(),
            },
            max_sessions: self.max_sessions,
            max_sessions_of_address: self.max_sessions_of_address,
            amplification: self.amplification,
            resume_from_anywhere: self.resume_from_anywhere,
        }
    }

    /// The largest message that the transactions can carry.
    pub(super) fn message_limit(&self) -> usize {
        usize::try_from(self.wtp.segment.0.saturating_mul(256)).unwrap_or(usize::MAX)
    }

    /// How long a reply to `octets` of an origin takes to be made.
    pub(super) fn processing(&self, octets: u64, treatment: Treatment) -> Duration {
        let Processing { fixed, per_octet, encoding, encoding_per_octet } = self.processing;
        let handling = fixed + per_octet * octets;
        match treatment {
            Treatment::Compiled | Treatment::Converted => handling + encoding + encoding_per_octet * octets,
            Treatment::None | Treatment::PassedThrough => handling,
        }
    }
}

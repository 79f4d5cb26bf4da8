//! A WAP browser without a screen: it fetches lists of objects through a gateway, over WSP.
//!
//! ```text
//! page (../pages) waiting objects ──> browser.rs ──> line.rs: WSP ──> datagrams
//!       ▲                                               │
//!       └────────── complete, failed, to be asked again ┘
//! ```
//!
//! With a session (`mode = "session"`) WSP runs over WTP, which repeats what is lost and cuts large replies into groups of
//! packets; without one (`mode = "connectionless"`) each request is a datagram and each reply another, and the browser itself
//! asks again when no reply came for `repeat_after`. The pages and their keys are those of `http-client`, so that both
//! can load the same ones.
//!
//! A session is opened before the first page, and the time that takes is told apart (`connect_*_s`); with
//! `session = "each-page"` every page opens its own, inside the time of the page. A session that is lost is opened again.
//!
//! Standards: WAP-230 (WSP), WAP-224 (WTP). Left out: redirects of the origin (the gateway follows them), caching, suspension.

mod browser;
mod headers;
mod line;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use airloom_base::units::Octets;
use airloom_base::{App, AppParts, ConfigError, Duration};
use airloom_transports::wtp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smart_default::SmartDefault;

use crate::pages::List;
pub use crate::pages::{Detailed, Model, Object, Traffic};
use crate::wtls;
pub use browser::{Browser, Whereabouts};

/// How a browser speaks to its gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// In a session, over WTP.
    #[default]
    Session,
    /// In single datagrams.
    Connectionless,
}

/// How long a session lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SessionUse {
    /// One session for all pages, opened before the first one begins.
    #[default]
    One,
    /// Each page opens one and closes it.
    EachPage,
}

/// When replies are acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Acknowledging {
    /// At once, by the browser itself: the gateway is told so (WTP's U/P flag).
    #[default]
    User,
    /// At once, without that flag.
    AtOnce,
    /// When WTP's interval `ack_long` has passed.
    Delayed,
}

/// Fetches lists of objects through a WAP gateway and measures how long that takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Host of the gateway; the one with the proxy `wap-gateway` if not given, the far end if there is none.
    pub gateway: Option<String>,
    /// Its port; 9201 with a session and 9200 without if not given, over WTLS 9203 and 9202.
    pub gateway_port: Option<u16>,
    /// Our port.
    #[default(49_200)]
    pub local_port: u16,
    /// `"session"` or `"connectionless"`.
    pub mode: Mode,
    /// `"one"` session for all pages or one for `"each-page"`.
    pub session: SessionUse,
    /// Host that the objects are at; the far end if not given.
    pub server: Option<String>,
    /// Its port.
    #[default(80)]
    pub port: u16,
    /// Objects of one page, all known from the start: paths, or tables with `path`, `size` (of the body as the gateway
    /// sends it) and `post` (octets of a form to send there). `["/"]` if none of this, `pages` and `traffic` is given.
    pub objects: Vec<Object>,
    /// Pages, loaded one after another. Of each the first object is fetched alone; the others, which it is taken to
    /// name, follow when it has arrived.
    pub pages: Vec<Vec<Object>>,
    /// Pages drawn from a model of web traffic, loaded as `pages` are: other ones with each seed, and the same for every
    /// protocol.
    pub traffic: Option<Traffic>,
    /// How often everything that is listed is loaded.
    #[default(1)]
    pub repeat: u32,
    /// Pause between two listed pages.
    pub think: Duration,
    /// When to begin.
    pub start: Duration,
    /// Begin later than `start` by a random time, uniform in 0 to this.
    pub spread: Duration,
    /// Give up what was not answered for so long, the opening of a session included.
    #[default(Duration::from_secs(115))]
    pub timeout: Duration,
    /// How often an object is asked for again after a request for it failed.
    #[default(1)]
    pub retries: u16,
    /// Without a session: repeat a request that was not answered for so long.
    #[default(Duration::from_secs(5))]
    pub repeat_after: Duration,
    /// Headers of the session; without one, of each request.
    #[default(headers())]
    pub headers: BTreeMap<String, String>,
    /// Least octets of these, as encoded; shorter ones are padded with a header. As short as possible if not given.
    pub headers_size: Option<Octets>,
    /// Further headers of each request.
    pub request_headers: BTreeMap<String, String>,
    /// Least octets of these, likewise.
    pub request_headers_size: Option<Octets>,
    /// The largest reply we take; 0 for any.
    // What WTP can carry: 256 packets.
    #[default(Octets(256 * 1_400))]
    pub client_sdu: Octets,
    /// The largest request the gateway is asked to take; 0 for any.
    #[default(Octets(256 * 1_400))]
    pub server_sdu: Octets,
    /// Most requests at a time that we ask the gateway for.
    #[default(1)]
    pub method_mor: u8,
    /// Most confirmed pushes at a time that we ask for.
    #[default(1)]
    pub push_mor: u8,
    /// Do we ask for pushes? Those without a session are taken at port 2948, and a gateway that asks for a session to have a
    /// push confirmed gets one; of several browsers on a host one alone can.
    #[default(true)]
    pub push: bool,
    /// A session that a gateway asked for is closed when nothing was pushed for so long.
    #[default(Duration::from_secs(10))]
    pub push_linger: Duration,
    /// `"user"`, `"at-once"` or `"delayed"`.
    pub acknowledging: Acknowledging,
    /// Settings of WTP at our end.
    pub wtp: wtp::Config,
    /// Speak WTLS to the gateway?
    pub wtls: Option<wtls::Config>,
}

fn headers() -> BTreeMap<String, String> {
    let headers = [
        ("Accept", "application/vnd.wap.wmlc, image/vnd.wap.wbmp, text/plain, */*"),
        ("Accept-Charset", "utf-8"),
        // Not the 1.5 that can be read here: Kannel takes it for the version of WBXML, too, of which 1.3 is the last.
        ("Encoding-Version", "1.3"),
        ("User-Agent", "airloom"),
    ];
    headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

impl Config {
    /// What is to be loaded.
    fn list(&self) -> List<'_> {
        let Config { objects, pages, traffic, repeat, think, start, spread, .. } = self;
        let (repeat, think, start, spread) = (*repeat, *think, *start, *spread);
        let parsing = Duration::ZERO;
        List { objects, pages, traffic: traffic.as_ref(), set: None, repeat, think, parsing, start, spread }
    }
}

/// Port of gateways for sessions.
const SESSION_PORT: u16 = 9201;

/// Port of gateways for single datagrams.
const CONNECTIONLESS_PORT: u16 = 9200;

/// By so much the ports for the same over WTLS are higher (WAP-259).
const SECURE: u16 = 2;

/// The proxy that a browser looks for.
const PROXY: &str = "wap-gateway";

/// Builds the browser from its table.
pub fn build(value: &Value, parts: &AppParts) -> Result<Box<dyn App>, ConfigError> {
    let config: Config = airloom_base::config::read(value)?;
    let found = (parts.proxy)(PROXY);
    let gateway = parts.server("gateway", config.gateway.as_deref().or(found.as_deref()))?;
    parts.server("server", config.server.as_deref())?;
    let origin = config.server.as_deref().or(parts.far_end).unwrap_or_default().to_owned();
    let local = (parts.resolve)(parts.host);
    let places = Whereabouts { gateway, origin: &origin, host: parts.host, local };
    let wtls = config.wtls.clone();
    let browser = Browser::new(config, &places, |name| parts.stream(name))?;
    Ok(match wtls {
        None => Box::new(browser),
        Some(wtls) => {
            wtls.check()?;
            let gateway = browser.gateway();
            Box::new(wtls::Secured::client(Box::new(browser), wtls, gateway))
        }
    })
}

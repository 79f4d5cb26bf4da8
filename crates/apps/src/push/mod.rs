//! An initiator of pushes: it submits service indications to a WAP gateway by PAP over HTTP, and asks for each until it is over.
//!
//! ```text
//! one every `interval` ──> initiator.rs ── documents.rs ──> fetch (../fetch) ── HTTP ──> gateway
//!        accepted, refused ◄────┘   └──► asked for again every `ask_every` until delivered or failed
//! ```
//!
//! How long a push takes is known as finely as the initiator asks (`ask_every`). Source: WAP-247. Left out: result
//! notifications, for which an initiator has to be a server, too.

mod documents;
mod initiator;
#[cfg(test)]
mod tests;

use airloom_base::units::Octets;
use airloom_base::{App, AppParts, ConfigError, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smart_default::SmartDefault;

pub use initiator::{Initiator, Whereabouts};

/// How pushes are to be delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// Without a confirmation.
    #[default]
    Unconfirmed,
    /// The client has to confirm; without a session it is asked to open one.
    Confirmed,
    /// Confirmed if the client has a session that takes such pushes.
    PreferConfirmed,
}

/// Submits pushes to a WAP gateway and measures how long they take.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Host of the gateway; the one with the proxy `wap-gateway` if not given, the far end if there is none.
    pub gateway: Option<String>,
    /// The port at which it takes pushes: its `push_port`.
    #[default(9_206)]
    pub port: u16,
    /// Host of the client that is pushed to; the far end if not given.
    pub client: Option<String>,
    /// `"unconfirmed"`, `"confirmed"` or `"prefer-confirmed"`.
    pub delivery: Delivery,
    /// Octets of the text of each service indication.
    #[default(Octets(40))]
    pub text: Octets,
    /// How many pushes.
    #[default(1)]
    pub count: u32,
    /// From one to the next.
    #[default(Duration::from_secs(10))]
    pub interval: Duration,
    /// When to begin.
    pub start: Duration,
    /// How often the gateway is asked what became of a push.
    #[default(Duration::from_secs(1))]
    pub ask_every: Duration,
    /// A push that is not over after so long has failed, and a gateway that does not answer for so long.
    #[default(Duration::from_secs(120))]
    pub timeout: Duration,
}

/// The proxy that takes pushes.
const PROXY: &str = "wap-gateway";

/// Builds the initiator from its table.
pub fn build(value: &Value, parts: &AppParts) -> Result<Box<dyn App>, ConfigError> {
    let config: Config = airloom_base::config::read(value)?;
    let found = (parts.proxy)(PROXY);
    let gateway = parts.server("gateway", config.gateway.as_deref().or(found.as_deref()))?;
    let client = parts.server("client", config.client.as_deref())?;
    Ok(Box::new(Initiator::new(config, Whereabouts { gateway, client })?))
}

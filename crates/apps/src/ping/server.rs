//! Sends datagrams of connections back.

use airloom_base::service::StreamEvent;
use airloom_base::{App, AppParts, ConfigError, Cx, Instant, SocketEvent, SocketId, Sockets, Summary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use smart_default::SmartDefault;

use super::{PORT, PROTOCOL};

/// Sends back each unreliable datagram of its connections, over QUIC: for `ping` with `over = "datagrams"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Port to listen on.
    #[default(PORT)]
    pub port: u16,
}

/// Builds the server from its table.
///
/// # Errors
/// [`ConfigError`] with the key that is none of its.
pub fn build(value: &Value, _: &AppParts) -> Result<Box<dyn App>, ConfigError> {
    let config: Config = airloom_base::config::read(value)?;
    Ok(Box::new(Server(config.port)))
}

/// It has nothing but its port.
struct Server(u16);

impl App for Server {
    fn stream_ports(&self) -> Vec<u16> {
        vec![self.0]
    }
    fn speaks(&self) -> Option<&'static str> {
        Some(PROTOCOL)
    }
    fn start(&mut self, _: &mut Cx, _: &mut dyn Sockets) {}
    fn handle_event(&mut self, cx: &mut Cx, net: &mut dyn Sockets, socket: SocketId, event: SocketEvent) {
        match event {
            SocketEvent::Stream(StreamEvent::Unreliable) => {
                while let Some(body) = net.read_unreliable(cx, socket) {
                    // One that there is no room for is lost, as any may be.
                    net.send_unreliable(cx, socket, body);
                }
            }
            // Over a transport without datagrams its client ends the one stream that it has.
            SocketEvent::Finished => net.finish(cx, socket),
            _ => {}
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }
    fn handle_timeout(&mut self, _: &mut Cx, _: &mut dyn Sockets) {}
    fn is_done(&self) -> bool {
        true
    }
    fn summarise(&self, _: &mut Summary) {}
}

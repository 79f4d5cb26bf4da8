//! TCP as a host sees it: it makes connections, and answers what belongs to none.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use airloom_base::lookup::FixedHasher;
use airloom_base::service::{Described, Identity, Path};
use airloom_base::{Body, ConfigError, Cx, Instant, Packet, Protocol, ProtocolParts, Transport};
use serde_json::Value;

use super::config::Config;
use super::congestion::{self, Controller};
use super::connection::Connection;
use super::wire::{Flags, Header};

/// TCP of one host.
pub struct Tcp {
    config: Arc<Config>,
    secret: u64,
    controllers: congestion::Make,
}

impl Tcp {
    /// With these settings; `secret` keeps initial sequence numbers of different hosts apart.
    pub fn new(config: Config, secret: u64) -> Self {
        Tcp { config: Arc::new(config), secret, controllers: Arc::new(congestion::build) }
    }

    /// With congestion controllers of one's own, whatever `congestion` says in the settings: `make` gives each connection one. Its
    /// number is another one for each connection, and the same in each run.
    pub fn controlled_by(
        self,
        make: impl Fn(&Config, u64) -> Box<dyn Controller> + Send + Sync + 'static,
    ) -> Self {
        Tcp { controllers: Arc::new(make), ..self }
    }

    /// From the host's table.
    pub fn from_table(table: &Value, parts: &ProtocolParts) -> Result<Box<dyn Protocol>, ConfigError> {
        let config = airloom_base::config::read(table)?;
        Ok(Box::new(Tcp::new(config, parts.stream("tcp.secret").bits())))
    }

    /// The settings in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    fn initial_sequence(&self, now: Instant, path: &Path, ports: (u16, u16)) -> u32 {
        //= RFC 9293 (3.4.1): a clock of four microseconds and a keyed function of the addresses and ports.
        let mut hasher = FixedHasher::default();
        (self.secret, path.local, path.remote, ports).hash(&mut hasher);
        (hasher.finish() as u32).wrapping_add((now.as_nanos() / 4000) as u32)
    }

    /// Does this segment open a connection?
    pub(super) fn is_opening(unit: &Packet) -> bool {
        let Ok((h, _)) = Header::parse(unit.head()) else { return false };
        h.flags.has(Flags::SYN) && h.flags.0 & (Flags::ACK.0 | Flags::RST.0) == 0
    }

    pub(super) fn connection(
        &self,
        now: Instant,
        path: Path,
        ports: (u16, u16),
        who: Identity,
    ) -> Connection {
        let iss = self.initial_sequence(now, &path, ports);
        let timestamp_offset = (self.secret >> 32) as u32;
        Connection::new(
            self.config.clone(),
            &self.controllers,
            now,
            path,
            ports,
            who,
            (iss, timestamp_offset),
        )
    }
}

impl Protocol for Tcp {
    fn name(&self) -> &'static str {
        "tcp"
    }

    fn ip_protocol(&self) -> u8 {
        6
    }

    fn open(&mut self, cx: &mut Cx, path: Path, ports: (u16, u16), who: Identity) -> Box<dyn Transport> {
        Box::new(self.connection(cx.now, path, ports, who))
    }

    fn accept(
        &mut self,
        cx: &mut Cx,
        path: Path,
        ports: (u16, u16),
        who: Identity,
        unit: &Packet,
    ) -> Option<Box<dyn Transport>> {
        Tcp::is_opening(unit)
            .then(|| Box::new(self.connection(cx.now, path, ports, who)) as Box<dyn Transport>)
    }

    fn refuse(&mut self, unit: &Packet) -> Option<Packet> {
        let (h, len) = Header::parse(unit.head()).ok()?;
        if h.flags.has(Flags::RST) {
            return None;
        }
        //= RFC 9293 (3.10.7.1): RST with the number the peer expects, or acknowledging all that it sent.
        let mut answer = Header {
            source: h.destination,
            destination: h.source,
            seq: h.ack,
            flags: Flags::RST,
            ..Header::default()
        };
        if !h.flags.has(Flags::ACK) {
            let text = (unit.wire_len() - len) as u32;
            let controls = u32::from(h.flags.has(Flags::SYN)) + u32::from(h.flags.has(Flags::FIN));
            answer.seq = 0;
            answer.ack = h.seq.wrapping_add(text).wrapping_add(controls);
            answer.flags = Flags::RST.with(Flags::ACK);
        }
        Some(Packet::build(|out| answer.emit(out), Body::EMPTY))
    }

    #[inline]
    fn describe(&self, head: &[u8]) -> Described {
        match head.first_chunk::<14>() {
            Some(h) => Described {
                seq: Some(u64::from(u32::from_be_bytes([h[4], h[5], h[6], h[7]]))),
                ack: (h[13] & Flags::ACK.0 != 0)
                    .then(|| u64::from(u32::from_be_bytes([h[8], h[9], h[10], h[11]]))),
            },
            None => Described::default(),
        }
    }
}

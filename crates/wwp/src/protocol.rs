//! WWP as a host sees it: it makes connections, and answers what belongs to none.

use std::sync::Arc;

use airloom_base::service::{Described, Identity, Path, leading_ports};
use airloom_base::{ConfigError, Cx, Packet, Protocol, ProtocolParts, Transport};
use bytes::Bytes;
use serde_json::Value;

use super::config::Config;
use super::connection::{Connection, control};
use super::content::{Syn, ports, tag};
use super::wire::{Header, Kind, Layout};

/// The number in the IP header: one for experiments (RFC 3692, RFC 4727).
const IP_PROTOCOL: u8 = 253;

/// WWP of one host.
pub struct Wwp {
    config: Arc<Config>,
    layout: Layout,
    tags: u64,
    drawn: u64,
    /// Where headers have no ports: ours and the peer's of the connection there is, and what lives as long as it.
    current: (u16, u16),
    place: Arc<()>,
}

impl Wwp {
    /// With these settings; `tags` is where the names of connections come from.
    ///
    /// # Errors
    /// The setting that makes no sense.
    pub fn new(config: Config, tags: u64) -> Result<Self, ConfigError> {
        let config = config.checked()?;
        let layout = config.layout();
        Ok(Wwp { config: Arc::new(config), layout, tags, drawn: 0, current: (0, 0), place: Arc::new(()) })
    }

    /// From the host's table.
    pub fn from_table(table: &Value, parts: &ProtocolParts) -> Result<Box<dyn Protocol>, ConfigError> {
        let config = airloom_base::config::read(table)?;
        Ok(Box::new(Wwp::new(config, parts.stream("wwp.tags").bits())?))
    }

    /// The settings in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// A place for a connection with these ports, ours first; `None` if there is none.
    fn place(&mut self, ports: (u16, u16)) -> Option<Arc<()>> {
        let is_free = self.layout.ports || Arc::strong_count(&self.place) == 1 || self.current == ports;
        if is_free {
            self.current = ports;
        }
        is_free.then(|| self.place.clone())
    }

    /// Ports of a unit without them in front: those that a SYN tells, else these.
    fn told_ports(&self, head: &[u8], usual: (u16, u16)) -> Option<(u16, u16)> {
        let header = self.layout.parse(head).ok()?;
        let content = head.get(self.layout.len()..).filter(|_| header.kind == Kind::Syn);
        Some(content.and_then(|c| ports(c).ok()).unwrap_or(usual))
    }

    fn content(&self, unit: &Packet) -> Vec<u8> {
        let mut content = unit.head().get(self.layout.len()..).unwrap_or_default().to_vec();
        content.extend_from_slice(&unit.body().slice(0, 256).to_bytes());
        content
    }

    fn syn(&self, unit: &Packet) -> Option<Syn> {
        let header = self.layout.parse(unit.head()).ok()?;
        (header.kind == Kind::Syn).then(|| Syn::parse(&self.content(unit)).ok())?
    }
}

impl Protocol for Wwp {
    fn name(&self) -> &'static str {
        "wwp"
    }

    fn ip_protocol(&self) -> u8 {
        IP_PROTOCOL
    }

    fn ports(&self, head: &[u8]) -> Option<(u16, u16)> {
        if self.layout.ports {
            return leading_ports(head);
        }
        // The peer's first, as in every header that has ports.
        self.told_ports(head, (self.current.1, self.current.0))
    }

    fn quoted_ports(&self, head: &[u8]) -> Option<(u16, u16)> {
        if self.layout.ports {
            return leading_ports(head);
        }
        // It is ours: our port first.
        self.told_ports(head, self.current)
    }

    fn has_leading_ports(&self) -> bool {
        self.layout.ports
    }

    fn open(&mut self, _cx: &mut Cx, path: Path, ports: (u16, u16), who: Identity) -> Box<dyn Transport> {
        self.drawn += 1;
        let place = self.place(ports);
        // Never 0, which stands for a connection that is not known.
        let tag = airloom_base::random::splitmix64(self.tags, self.drawn) as u32 | 1;
        Box::new(Connection::new(self.config.clone(), &path, ports, who, tag, place))
    }

    fn accept(
        &mut self,
        cx: &mut Cx,
        path: Path,
        ports: (u16, u16),
        who: Identity,
        unit: &Packet,
    ) -> Option<Box<dyn Transport>> {
        let syn = self.syn(unit)?;
        let place = self.place(ports)?;
        let mut connection = Connection::new(self.config.clone(), &path, ports, who, syn.tag, Some(place));
        connection.opened_by(cx.now, &syn);
        Some(Box::new(connection))
    }

    fn refuse(&mut self, unit: &Packet) -> Option<Packet> {
        let h = self.layout.parse(unit.head()).ok()?;
        let named = || tag(&self.content(unit)).ok().map(|t| Bytes::copy_from_slice(&t.to_be_bytes()));
        let (kind, content) = match h.kind {
            // Never an answer to an answer: two hosts would go on for ever.
            Kind::Rst | Kind::FinAck | Kind::Nsack | Kind::Pr1Ack | Kind::Pr2Ack | Kind::Ack => return None,
            Kind::Fin => (Kind::FinAck, named()?),
            Kind::Syn | Kind::SynAck => (Kind::Rst, named()?),
            Kind::Data | Kind::DataLast | Kind::Piece | Kind::Probe1 | Kind::Probe2 | Kind::Probe3 => {
                (Kind::Rst, Bytes::new())
            }
        };
        let (source, destination) = self.ports(unit.head())?;
        let header = Header { kind, level: 0, ..h };
        Some(control(self.layout, &header, (destination, source), content))
    }

    fn describe(&self, head: &[u8]) -> Described {
        match self.layout.parse(head) {
            Ok(h) if matches!(h.kind, Kind::Data | Kind::DataLast | Kind::Piece) => {
                Described { seq: Some(u64::from(h.number)), ack: None }
            }
            Ok(h) if h.kind == Kind::Nsack => Described { seq: None, ack: Some(u64::from(h.number)) },
            _ => Described::default(),
        }
    }
}

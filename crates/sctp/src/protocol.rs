//! SCTP as a host sees it: it makes associations, and answers what belongs to none.

use std::net::IpAddr;
use std::sync::Arc;

use airloom_base::service::{Described, Identity, Path};
use airloom_base::{ConfigError, Cx, Packet, Protocol, ProtocolParts, Transport};
use serde_json::Value;

use super::association::{Association, Shared};
use super::chunk::{Chunk, kind};
use super::config::Config;
use super::cookie::{Cookie, Refusal, Secret};
use super::handshake;
use super::octets::{CHUNK_HEADER, padded};
use super::path::MOST_PATHS;
use super::wire::{Chunks, HEADER, Header};

/// SCTP of one host.
pub struct Sctp {
    shared: Arc<Shared>,
    drawn: u64,
}

impl Sctp {
    /// With these settings; `secret` signs the cookies.
    pub fn new(config: Config, secret: (u64, u64)) -> Self {
        let secret = Secret(secret.0, secret.1);
        Sctp { shared: Arc::new(Shared { config, secret, addresses: Vec::new() }), drawn: 0 }
    }

    /// From the host's table.
    pub fn from_table(table: &Value, parts: &ProtocolParts) -> Result<Box<dyn Protocol>, ConfigError> {
        let config = airloom_base::config::read(table)?;
        let mut stream = parts.stream("sctp.secret");
        Ok(Box::new(Sctp::new(config, (stream.bits(), stream.bits()))))
    }

    /// The settings in force.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    fn draw(&mut self) -> (u32, u32) {
        self.drawn += 1;
        self.shared.secret.draw(self.drawn)
    }

    /// An association over these paths that will open when `connect` is called.
    pub fn associate(&mut self, paths: &[Path], ports: (u16, u16), who: Identity) -> Association {
        let drawn = self.draw();
        Association::new(self.shared.clone(), paths, ports, who, drawn)
    }

    /// The association of a packet whose first chunk is a COOKIE ECHO of ours; the packet is fed to it afterwards.
    pub fn admit(
        &mut self,
        cx: &mut Cx,
        path: Path,
        ports: (u16, u16),
        who: Identity,
        unit: &Packet,
    ) -> Option<Association> {
        let mut unit = unit.duplicate();
        let body = unit.take_body();
        let header = Header::parse(unit.head()).ok()?;
        let Some(Ok(Chunk::CookieEcho(octets))) = Chunks::new(unit.head(), body).next() else { return None };
        let cookie = Cookie::open(&octets, self.shared.secret, &path, ports, cx.now, |_| false).ok()?;
        (cookie.local_tag == header.tag)
            .then(|| Association::from_cookie(self.shared.clone(), path, ports, who, &cookie))
    }

    /// What belongs to no association (8.4).
    fn stranger(&mut self, cx: &Cx, path: &Path, unit: &Packet, listens: bool) -> Option<Packet> {
        let mut unit = unit.duplicate();
        let body = unit.take_body();
        let header = Header::parse(unit.head()).ok()?;
        let chunks: Vec<Chunk> = Chunks::new(unit.head(), body).map_while(Result::ok).collect();
        let back = |tag| Header { source: header.destination, destination: header.source, tag };
        let ports = (header.destination, header.source);
        //= RFC 9260 (8.4, 2): an ABORT is never answered.
        if chunks.iter().any(|c| matches!(c, Chunk::Abort { .. })) {
            return None;
        }
        match chunks.first()? {
            Chunk::Init(init) => {
                //= RFC 9260 (3.3.2): an INIT without a tag is discarded silently.
                if header.tag != 0 || init.tag == 0 || chunks.len() > 1 {
                    return None;
                }
                if !listens {
                    let abort = Chunk::Abort { reflected: false, causes: Vec::new() };
                    return Some(back(init.tag).packet(&[abort]));
                }
                let drawn = self.draw();
                let answer = handshake::answer(&self.shared, cx.now, path, ports, init, drawn, (0, 0));
                Some(back(init.tag).packet(&[answer]))
            }
            Chunk::CookieEcho(octets) if listens => {
                match Cookie::open(octets, self.shared.secret, path, ports, cx.now, |_| false) {
                    Err(Refusal::Stale(by, peer)) => Some(back(peer).packet(&[handshake::stale(by)])),
                    // Forged, or under a wrong tag: no word (5.1.5).
                    _ => None,
                }
            }
            //= RFC 9260 (8.4, 5): the peer ends what is over here.
            Chunk::ShutdownAck => {
                Some(back(header.tag).packet(&[Chunk::ShutdownComplete { reflected: true }]))
            }
            Chunk::ShutdownComplete { .. } | Chunk::CookieAck | Chunk::Error(_) => None,
            //= RFC 9260 (8.4, 8): the tag comes back with bit T.
            _ => Some(back(header.tag).packet(&[Chunk::Abort { reflected: true, causes: Vec::new() }])),
        }
    }
}

impl Protocol for Sctp {
    fn name(&self) -> &'static str {
        "sctp"
    }

    fn ip_protocol(&self) -> u8 {
        132
    }

    fn open(&mut self, _cx: &mut Cx, path: Path, ports: (u16, u16), who: Identity) -> Box<dyn Transport> {
        Box::new(self.associate(&[path], ports, who))
    }

    fn accept(
        &mut self,
        cx: &mut Cx,
        path: Path,
        ports: (u16, u16),
        who: Identity,
        unit: &Packet,
    ) -> Option<Box<dyn Transport>> {
        self.admit(cx, path, ports, who, unit).map(|a| Box::new(a) as Box<dyn Transport>)
    }

    fn refuse(&mut self, _unit: &Packet) -> Option<Packet> {
        // `answer` knows what is needed for it.
        None
    }

    fn answer(&mut self, cx: &mut Cx, path: &Path, unit: &Packet, listens: bool) -> Option<Packet> {
        self.stranger(cx, path, unit, listens)
    }

    fn own(&mut self, addresses: &[IpAddr], _mtu: u16) {
        let Shared { config, secret, .. } = &*self.shared;
        if config.multihoming && addresses.len() > 1 {
            let addresses = addresses.iter().copied().take(MOST_PATHS).collect();
            self.shared = Arc::new(Shared { config: config.clone(), secret: *secret, addresses });
        }
    }

    fn describe(&self, head: &[u8]) -> Described {
        let word = |at: usize| {
            head.get(at..).and_then(|o| o.first_chunk()).map(|o| u64::from(u32::from_be_bytes(*o)))
        };
        // Up to the first data: what is acknowledged stands before it.
        let (mut described, mut at) = (Described::default(), HEADER);
        while let Some(first) = word(at) {
            let (kind, len) = ((first >> 24) as u8, (first & 0xFFFF) as usize);
            match kind {
                kind::DATA | kind::I_DATA => return Described { seq: word(at + 4), ..described },
                kind::SACK => described.ack = word(at + 4),
                _ => {}
            }
            at += padded(len.max(CHUNK_HEADER));
        }
        described
    }
}

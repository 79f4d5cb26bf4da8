//! What all sessions of a server share: its configuration, files, passive ports and counters.

use std::collections::BTreeMap;

use airloom_base::Duration;
use airloom_base::units::Octets;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use super::{PATIENCE, PORT};
use crate::net::Connections;

/// Most files that clients can store; their octets are not kept.
const MOST_STORED: usize = 1024;

/// Serves files over FTP, in passive and active mode: a name that is a size (such as `1MB`) is a file of that size, and so
/// are the names of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, SmartDefault)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Port of control connections.
    #[default(PORT)]
    pub port: u16,
    /// Sizes of files by name.
    pub files: BTreeMap<String, Octets>,
    /// First port of passive data connections.
    #[default(30_000)]
    pub passive_port: u16,
    /// So many ports there are for them: so many can be waited for at a time.
    #[default(64)]
    pub passive_ports: u16,
    /// Clients beyond this number are turned away.
    #[default(1000)]
    pub max_clients: u32,
    /// Close a session in which nothing has moved for so long.
    #[default(PATIENCE)]
    pub timeout: Duration,
}

/// What a socket is to its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Control,
    Data,
}

/// What all sessions share.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) config: Config,
    /// Sockets, with the number of their session.
    pub(super) roles: Connections<(u64, Role)>,
    /// Which session waits at each passive port.
    passive: Vec<Option<u64>>,
    next_port: usize,
    stored: BTreeMap<String, u64>,
    pub(super) counters: Counters,
}

/// What a server counts.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) commands: u64,
    /// Replies 4yz and 5yz.
    pub(super) refused: u64,
    pub(super) sent: u64,
    pub(super) stored: u64,
    pub(super) broken: u64,
    pub(super) sent_bytes: u64,
    pub(super) received_bytes: u64,
    pub(super) timeouts: u64,
    pub(super) longest_pause: Option<Duration>,
}

impl Shared {
    /// Without sessions.
    pub(super) fn new(config: Config) -> Shared {
        Shared { passive: vec![None; usize::from(config.passive_ports)], config, ..Default::default() }
    }

    /// A port at which `session` waits for its data connection from now on.
    pub(super) fn wait(&mut self, session: u64) -> Option<u16> {
        let count = self.passive.len();
        let free = (0..count).map(|n| (self.next_port + n) % count).find(|n| self.passive[*n].is_none())?;
        self.passive[free] = Some(session);
        // Not the same one again at once: what belongs to the connection before may still be under way.
        self.next_port = free + 1;
        Some(self.config.passive_port + free as u16)
    }

    /// Nobody waits at this port any more.
    pub(super) fn forget(&mut self, port: u16) {
        let place = usize::from(port.wrapping_sub(self.config.passive_port));
        if let Some(waiting) = self.passive.get_mut(place) {
            *waiting = None;
        }
    }

    /// Which session waits there?
    pub(super) fn waits_at(&self, port: u16) -> Option<u64> {
        let place = port.checked_sub(self.config.passive_port)?;
        *self.passive.get(usize::from(place))?
    }

    /// Octets of a file, if there is such a one.
    pub(super) fn size_of(&self, name: &str) -> Option<u64> {
        let bare = name.strip_prefix('/').unwrap_or(name);
        let size = || bare.parse().ok().filter(|_| !bare.starts_with('+'));
        let with_unit = || bare.parse::<Octets>().ok().map(|n| n.0);
        let listed = self.config.files.get(name).or_else(|| self.config.files.get(bare)).map(|n| n.0);
        self.stored.get(bare).copied().or(listed).or_else(size).or_else(with_unit)
    }

    /// Is there room for one more file of this name?
    pub(super) fn has_room(&self, name: &str) -> bool {
        let bare = name.strip_prefix('/').unwrap_or(name);
        self.stored.len() < MOST_STORED || self.stored.contains_key(bare)
    }

    /// A file has arrived.
    pub(super) fn store(&mut self, name: &str, size: u64) {
        self.stored.insert(name.strip_prefix('/').unwrap_or(name).to_owned(), size);
    }
}

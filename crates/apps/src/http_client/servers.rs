//! Who is asked: servers by their names, and the pools of connections that lead to them.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use airloom_base::ConfigError;

use super::Config;
use crate::pages::{Job, Object, authority, host_of};
use crate::tls::Tunnels;

/// Where a client is.
pub struct Whereabouts<'a> {
    /// The server of objects that name none, or `server:port`; there may be none if all do.
    pub server: Option<&'a str>,
    /// The client's host.
    pub host: &'a str,
    /// Addresses by name.
    pub resolve: &'a dyn Fn(&str) -> Option<IpAddr>,
}

/// A server that objects are at.
pub(super) struct Server {
    /// The value of the Host field.
    pub(super) authority: String,
    /// The pool whose connections lead there.
    pub(super) pool: usize,
}

/// The place that connections lead to, and what waits for one.
pub(super) struct Pool {
    pub(super) to: SocketAddr,
    /// Most connections.
    pub(super) most: usize,
    pub(super) waiting: VecDeque<Job>,
}

/// All servers of a client.
pub(super) struct Servers {
    all: Vec<Server>,
    /// By the name that objects say.
    names: BTreeMap<String, usize>,
    pub(super) pools: Vec<Pool>,
    /// What is in front of `://` in the addresses of all of them.
    pub(super) scheme: &'static str,
    /// Is everything asked of a proxy? Not over TLS: there a proxy is only passed through.
    pub(super) is_proxied: bool,
    /// The proxy, and what servers are called there.
    pub(super) tunnels: Tunnels,
}

impl Servers {
    /// The servers of these objects; the first one is that of objects that name none.
    pub(super) fn new<'a>(
        config: &Config,
        places: &Whereabouts<'a>,
        objects: impl Iterator<Item = &'a Object> + Clone,
    ) -> Result<Servers, ConfigError> {
        let mut unnamed = objects.clone().filter(|object| object.server().is_none());
        let usual = match places.server {
            Some(server) => Some(server),
            // Objects that are drawn name no server.
            None if unnamed.next().is_some() || objects.clone().next().is_none() => {
                return Err(ConfigError::at("server", "no host to talk to; name one"));
            }
            None => None,
        };
        let proxy = match &config.proxy {
            Some(proxy) => Some(resolve("proxy", proxy, config.proxy_port, 80, places)?.1),
            None => None,
        };
        let tunnels = Tunnels { proxy: proxy.filter(|_| config.tls.is_some()), names: BTreeMap::new() };
        let proxy = proxy.filter(|_| config.tls.is_none());
        let scheme_port = config.scheme_port();
        let connections = usize::from(config.connections);
        let mut servers = Servers {
            all: Vec::new(),
            names: BTreeMap::new(),
            pools: Vec::new(),
            scheme: config.scheme(),
            is_proxied: proxy.is_some(),
            tunnels,
        };
        if let Some(to) = proxy {
            let most = config.proxy_connections.map_or(connections, usize::from);
            servers.pools.push(Pool { to, most, waiting: VecDeque::new() });
        }
        for name in usual.into_iter().chain(objects.filter_map(Object::server)) {
            if servers.names.contains_key(name) {
                continue;
            }
            let usual = config.port.unwrap_or(scheme_port);
            let (authority, to) = resolve("server", name, usual, scheme_port, places)?;
            //= RFC 9110 (9.3.6): the target of CONNECT has a port, whichever it is.
            let whole = self::authority(split(name).map_or(name, |(host, _)| host), to.port(), 0);
            servers.tunnels.names.entry(to).or_insert(whole);
            // Two names of one server are one server.
            let known = servers.all.iter().position(|server| server.authority == authority);
            let number = known.unwrap_or_else(|| {
                let pool = if servers.is_proxied { 0 } else { servers.pools.len() };
                if !servers.is_proxied {
                    servers.pools.push(Pool { to, most: connections, waiting: VecDeque::new() });
                }
                servers.all.push(Server { authority, pool });
                servers.all.len() - 1
            });
            servers.names.insert(name.to_owned(), number);
        }
        Ok(servers)
    }

    /// The name of the server that a pool leads to, without its port, in small letters.
    pub(super) fn host(&self, pool: usize) -> String {
        let authority = self.all.iter().find(|server| server.pool == pool).map_or("", |s| &s.authority);
        host_of(authority).to_ascii_lowercase()
    }

    /// The server of an object.
    pub(super) fn of(&self, object: &Object) -> &Server {
        let number = object.server().and_then(|name| self.names.get(name)).copied().unwrap_or_default();
        &self.all[number]
    }
}

/// The authority and address of `host` or `host:port`. The authority is without the port of the scheme.
fn resolve(
    key: &str,
    name: &str,
    usual: u16,
    scheme_port: u16,
    places: &Whereabouts,
) -> Result<(String, SocketAddr), ConfigError> {
    let (host, port) = split(name).unwrap_or((name, usual));
    let found = (places.resolve)(host);
    let to = found.ok_or_else(|| ConfigError::at(key, format!("there is no host `{host}`")))?;
    Ok((authority(host, port, scheme_port), SocketAddr::new(to, port)))
}

/// Host and port, if there is one.
fn split(name: &str) -> Option<(&str, u16)> {
    let (host, port) = name.rsplit_once(':')?;
    let port = port.parse().ok().filter(|_| port.bytes().all(|o| o.is_ascii_digit()))?;
    match host.strip_prefix('[') {
        Some(six) => Some((six.strip_suffix(']')?, port)),
        // More colons: an address of IPv6 without a port.
        None => (!host.contains(':')).then_some((host, port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_may_stand_behind_a_host() {
        assert_eq!(split("a:81"), Some(("a", 81)));
        assert_eq!(split("[::1]:81"), Some(("::1", 81)));
        for plain in ["a", "::1", "fe80::1:81", "a:", "a:+1", "a:99999", "[::1:81"] {
            assert_eq!(split(plain), None, "{plain}");
        }
    }
}

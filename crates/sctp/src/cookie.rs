//! The state cookie (RFC 9260, 5.1.3): all that an association is made from, signed, so that nothing is kept meanwhile.

use std::hash::Hasher;
use std::net::IpAddr;

use airloom_base::service::Path;
use airloom_base::{Duration, Instant};
use airloom_wire::ip;
use bytes::Bytes;
use siphasher::sip128::{Hasher128, SipHasher24};

use super::chunk::{Cause, Init, Parameter, kind};
use super::config::Config;
use super::path::MOST_PATHS;

/// What the peer can do, as both INIT and INIT ACK say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Abilities {
    pub ecn: bool,
    pub interleaving: bool,
    pub forward_tsn: bool,
    pub reconfiguration: bool,
}

impl Abilities {
    /// What an INIT or INIT ACK says.
    pub fn of(init: &Init) -> Self {
        let supports = |kind: u8| {
            init.parameters
                .iter()
                .any(|p| matches!(p, Parameter::SupportedExtensions(k) if k.contains(&kind)))
        };
        Abilities {
            ecn: init.parameters.contains(&Parameter::EcnCapable),
            interleaving: supports(kind::I_DATA),
            forward_tsn: init.parameters.contains(&Parameter::ForwardTsnSupported),
            reconfiguration: supports(kind::RE_CONFIG),
        }
    }

    /// What we say of ourselves.
    pub fn parameters(config: &Config) -> Vec<Parameter> {
        let mut parameters = Vec::new();
        let mut extensions = Vec::new();
        if config.partial_reliability {
            parameters.push(Parameter::ForwardTsnSupported);
            extensions.push(kind::FORWARD_TSN);
        }
        if config.interleaving {
            extensions.push(kind::I_DATA);
            if config.partial_reliability {
                extensions.push(kind::I_FORWARD_TSN);
            }
        }
        if config.stream_reset {
            //= RFC 6525 (5.1.1): who understands RE-CONFIG says so.
            extensions.push(kind::RE_CONFIG);
        }
        if !extensions.is_empty() {
            parameters.push(Parameter::SupportedExtensions(extensions));
        }
        if config.ecn {
            parameters.push(Parameter::EcnCapable);
        }
        parameters
    }

    /// What both ends can do.
    pub fn common(self, config: &Config) -> Self {
        Abilities {
            ecn: self.ecn && config.ecn,
            interleaving: self.interleaving && config.interleaving,
            forward_tsn: self.forward_tsn && config.partial_reliability,
            reconfiguration: self.reconfiguration && config.stream_reset,
        }
    }

    fn bits(self) -> u32 {
        [self.ecn, self.interleaving, self.forward_tsn, self.reconfiguration]
            .into_iter()
            .rev()
            .fold(0, |bits, is_able| bits << 1 | u32::from(is_able))
    }

    fn from_bits(bits: u32) -> Self {
        Abilities {
            ecn: bits & 1 != 0,
            interleaving: bits & 2 != 0,
            forward_tsn: bits & 4 != 0,
            reconfiguration: bits & 8 != 0,
        }
    }
}

/// What an INIT must have: errors that end its association before it began (RFC 9260, 3.3.2).
pub(super) fn flaw(init: &Init) -> Option<Cause> {
    if init.tag == 0 || init.outbound_streams == 0 || init.inbound_streams == 0 || init.window < 1500 {
        return Some(Cause::InvalidParameter);
    }
    //= RFC 9260 (5.1.2): a host name is answered with ABORT, "Unresolvable Address".
    init.parameters.iter().find_map(|p| match p {
        Parameter::HostName(_) => Some(Cause::UnresolvableAddress(p.to_bytes())),
        _ => None,
    })
}

/// Unknown parameters up to the one that stops, as they are to be reported.
pub(super) fn unrecognized(init: &Init) -> Vec<Parameter> {
    let mut reports = Vec::new();
    for parameter in &init.parameters {
        let Some(unknown) = parameter.unknown() else { continue };
        if unknown.report {
            reports.push(Parameter::Unrecognized(parameter.to_bytes()));
        }
        if unknown.stop {
            break;
        }
    }
    reports
}

/// The addresses that an INIT or INIT ACK tells, if there are to be several paths.
pub(super) fn addresses(init: &Init, config: &Config) -> Vec<IpAddr> {
    let address = |p: &Parameter| match p {
        Parameter::Ipv4(a) => Some(IpAddr::V4(*a)),
        Parameter::Ipv6(a) => Some(IpAddr::V6(*a)),
        _ => None,
    };
    let told = init.parameters.iter().filter_map(address);
    told.take(if config.multihoming { MOST_PATHS } else { 0 }).collect()
}

/// An association to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cookie {
    pub local_tag: u32,
    pub peer_tag: u32,
    pub local_tsn: u32,
    pub peer_tsn: u32,
    pub peer_window: u32,
    pub outbound_streams: u16,
    pub inbound_streams: u16,
    pub abilities: Abilities,
    /// Tags of the association there was when the cookie was made, or 0 (5.2.2).
    pub tie_tags: (u32, u32),
    pub made: Instant,
    pub life: Duration,
    /// What the peer told.
    pub addresses: Vec<IpAddr>,
}

/// Key of the cookies and source of tags.
#[derive(Clone, Copy, Debug)]
pub(super) struct Secret(pub u64, pub u64);

impl Secret {
    fn hash(self, write: impl FnOnce(&mut SipHasher24)) -> u128 {
        let mut hasher = SipHasher24::new_with_keys(self.0, self.1);
        write(&mut hasher);
        hasher.finish128().as_u128()
    }

    /// A tag (never 0) and an initial TSN for the `n`-th association.
    pub fn draw(self, n: u64) -> (u32, u32) {
        let drawn = self.hash(|h| h.write_u64(n));
        let tag = drawn as u32;
        (if tag == 0 { 1 } else { tag }, (drawn >> 32) as u32)
    }

    /// 64 bits for the `n`-th heartbeat or timer of who has this tag.
    pub fn nonce(self, tag: u32, n: u64) -> u64 {
        self.hash(|h| {
            h.write_u32(tag);
            h.write_u64(n);
        }) as u64
    }

    fn mac(self, octets: &[u8], path: &Path, ports: (u16, u16)) -> [u8; 16] {
        let address = |h: &mut SipHasher24, a: IpAddr| match a {
            IpAddr::V4(a) => h.write(&a.octets()),
            IpAddr::V6(a) => h.write(&a.octets()),
        };
        self.hash(|h| {
            h.write(octets);
            address(h, path.local);
            address(h, path.remote);
            h.write_u16(ports.0);
            h.write_u16(ports.1);
        })
        .to_be_bytes()
    }
}

/// Why a cookie is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Not ours, or changed: no answer.
    Forged,
    /// Too old by so much; the peer had this tag for itself.
    Stale(Duration, u32),
}

/// Octets in front of the addresses, of an address, and of the signature.
const LEN: usize = 7 * 4 + 2 * 4 + 2 * 8;
const ADDRESS: usize = 16;
const MAC: usize = 16;

impl Cookie {
    /// The cookie in answer to `init`.
    pub fn answer(
        init: &Init,
        config: &Config,
        local: (u32, u32),
        tie_tags: (u32, u32),
        now: Instant,
    ) -> Self {
        //= RFC 9260 (5.1.3): a wish for a longer life is granted up to a limit of ours, here the life once more.
        let wish = init.parameters.iter().find_map(|p| match p {
            Parameter::CookiePreservative(ms) => Some(Duration::from_millis(u64::from(*ms))),
            _ => None,
        });
        Cookie {
            local_tag: local.0,
            peer_tag: init.tag,
            local_tsn: local.1,
            peer_tsn: init.initial_tsn,
            peer_window: init.window,
            //= RFC 9260 (5.1.1): no more streams than the other side takes.
            outbound_streams: config.outbound_streams.min(init.inbound_streams),
            inbound_streams: config.inbound_streams.min(init.outbound_streams),
            abilities: Abilities::of(init).common(config),
            tie_tags,
            made: now,
            life: config.cookie_life + wish.unwrap_or(Duration::ZERO).min(config.cookie_life),
            addresses: addresses(init, config),
        }
    }

    /// The signed octets.
    pub fn seal(&self, secret: Secret, path: &Path, ports: (u16, u16)) -> Bytes {
        let mut octets = Vec::with_capacity(LEN + ADDRESS * self.addresses.len() + MAC);
        let streams = u32::from(self.outbound_streams) << 16 | u32::from(self.inbound_streams);
        for word in [
            self.local_tag,
            self.peer_tag,
            self.local_tsn,
            self.peer_tsn,
            self.peer_window,
            streams,
            self.abilities.bits(),
            self.tie_tags.0,
            self.tie_tags.1,
        ] {
            octets.extend_from_slice(&word.to_be_bytes());
        }
        for long in [self.made.as_nanos(), self.life.as_nanos()] {
            octets.extend_from_slice(&long.to_be_bytes());
        }
        for address in &self.addresses {
            octets.extend_from_slice(&ip::key(*address).to_be_bytes());
        }
        let mac = secret.mac(&octets, path, ports);
        octets.extend_from_slice(&mac);
        octets.into()
    }

    /// The cookie, if it is ours, for this path and these ports, and fresh enough. `known`: an association with its tags
    /// exists, then its age does not matter (5.2.4).
    pub fn open(
        octets: &[u8],
        secret: Secret,
        path: &Path,
        ports: (u16, u16),
        now: Instant,
        known: impl FnOnce(&Cookie) -> bool,
    ) -> Result<Self, Refusal> {
        let (cookie, mac) = octets
            .len()
            .checked_sub(MAC)
            .and_then(|at| octets.split_at_checked(at))
            .ok_or(Refusal::Forged)?;
        if cookie.len() < LEN || mac != secret.mac(cookie, path, ports) {
            return Err(Refusal::Forged);
        }
        let address =
            |octets: &[u8]| ip::address(u128::from_be_bytes(*octets.first_chunk().unwrap_or(&[0; ADDRESS])));
        let word = |n: usize| u32::from_be_bytes(*cookie[4 * n..].first_chunk().unwrap_or(&[0; 4]));
        let long = |at: usize| u64::from_be_bytes(*cookie[at..].first_chunk().unwrap_or(&[0; 8]));
        let cookie = Cookie {
            local_tag: word(0),
            peer_tag: word(1),
            local_tsn: word(2),
            peer_tsn: word(3),
            peer_window: word(4),
            outbound_streams: (word(5) >> 16) as u16,
            inbound_streams: word(5) as u16,
            abilities: Abilities::from_bits(word(6)),
            tie_tags: (word(7), word(8)),
            made: Instant::from_nanos(long(36)),
            life: Duration::from_nanos(long(44)),
            addresses: cookie[LEN..].chunks_exact(ADDRESS).map(address).collect(),
        };
        let over = now.since(cookie.made).saturating_sub(cookie.life);
        if !over.is_zero() && !known(&cookie) {
            return Err(Refusal::Stale(over, cookie.peer_tag));
        }
        Ok(cookie)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_cookie_opens_on_the_very_path_and_only_in_time() {
        let path = Path { local: [10, 0, 0, 1].into(), remote: [10, 0, 0, 2].into(), mtu: 1500 };
        let secret = Secret(1, 2);
        let init = Init { tag: 9, window: 5000, outbound_streams: 3, inbound_streams: 4, ..Init::default() };
        let now = Instant::from_nanos(5_000_000_000);
        let cookie = Cookie::answer(&init, &Config::default(), (7, 8), (1, 2), now);
        let sealed = cookie.seal(secret, &path, (1, 2));
        let open = |octets: &[u8], secret, path: &Path, ports, now| {
            Cookie::open(octets, secret, path, ports, now, |_| false)
        };
        assert_eq!(open(&sealed, secret, &path, (1, 2), now), Ok(cookie));
        for bit in 0..sealed.len() * 8 {
            let mut forged = sealed.to_vec();
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(open(&forged, secret, &path, (1, 2), now), Err(Refusal::Forged));
        }
        for cut in 0..sealed.len() {
            assert_eq!(open(&sealed[..cut], secret, &path, (1, 2), now), Err(Refusal::Forged));
        }
        let elsewhere = Path { remote: [10, 0, 0, 3].into(), ..path };
        assert_eq!(open(&sealed, secret, &elsewhere, (1, 2), now), Err(Refusal::Forged));
        assert_eq!(open(&sealed, secret, &path, (1, 3), now), Err(Refusal::Forged));
        assert_eq!(open(&sealed, Secret(1, 3), &path, (1, 2), now), Err(Refusal::Forged));
        let late = now + Duration::from_secs(61);
        assert_eq!(
            open(&sealed, secret, &path, (1, 2), late),
            Err(Refusal::Stale(Duration::from_secs(1), 9))
        );
        assert!(Cookie::open(&sealed, secret, &path, (1, 2), late, |_| true).is_ok());
    }
}

//! Alternatives of servers (`Alt-Svc`), and races between HTTP/3 and what TCP carries.
//!
//! Chromium is the model (net/http/http_stream_factory_job_controller.cc, net/quic/quic_session_pool.cc,
//! net/http/broken_alternative_services.cc, as of 2026): QUIC is tried first, TCP a while later, and requests go over the one that
//! is up first. QUIC goes on when TCP was faster, and further requests go over it once it is up; an alternative that never comes
//! up while TCP does is broken, for five minutes at first.
//!
//! Standard: RFC 7838 (2.2, 2.4, 3.1, 5, 6), RFC 9110 (15.5.20).

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use airloom_base::{ConfigError, Duration, Instant, SocketId};
use airloom_content::http::alt_svc::AltSvc;
use bytes::Bytes;

use super::servers::{Servers, Whereabouts};
use super::{Config, Follow};
use crate::net;
use crate::pages::authority;

/// How long QUIC may take until it is up: QUICHE's kMaxTimeForCryptoHandshakeSecs. Chromium gives up after 4 s already in which
/// nothing at all came (kInitialIdleTimeoutSecs, less the second that QuicConnection::SetNetworkTimeouts takes off for clients);
/// an application does not see what comes before the handshake is over.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long TCP waits for a QUIC of which nothing is known but that others were up: kDefaultRTT there, by Chromium's own statistics
/// of handshakes (QuicSessionPool::GetTimeDelayForWaitingJob).
const USUAL_DELAY: Duration = Duration::from_millis(300);
/// How long an alternative is broken at first, and at most (ComputeBrokenAlternativeServiceExpirationDelay: 300 s, and 2 days).
const BROKEN: Duration = Duration::from_secs(300);
const MOST_BROKEN: Duration = Duration::from_secs(2 * 24 * 3600);

/// QUIC against TCP: which connections they are, and when TCP begins if it has not.
pub(super) struct Race {
    pub(super) quic: SocketId,
    pub(super) tcp: Option<SocketId>,
    begins: Instant,
}

/// Where a server speaks HTTP/3.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) to: SocketAddr,
    /// Its host and port, as Alt-Used has them.
    pub(super) name: Bytes,
}

/// What is known of a server beside its address.
#[derive(Default)]
struct Known {
    /// Where it speaks HTTP/3 too, until when that holds, and whether in another network as well.
    at: Option<(Place, Instant, bool)>,
    race: Option<Race>,
    /// QUIC did not come up, and it is not known whether TCP does.
    is_suspected: bool,
    broken_until: Option<Instant>,
    /// How often it was broken since it was up last.
    failures: u32,
    /// How long its last handshake took.
    handshake: Option<Duration>,
}

/// What is known of all servers, by their pools.
pub(super) struct Alternatives {
    follow: Follow,
    delay: Option<Duration>,
    /// Names of the servers, and addresses of other hosts whose alternatives are believed.
    names: Vec<String>,
    others: BTreeMap<String, IpAddr>,
    /// QUIC was up once.
    has_worked: bool,
    all: Vec<Known>,
    /// When the client came into the network that it is in.
    moved: Instant,
    /// Alternatives that were found to be broken.
    pub(super) broken: u64,
}

impl Alternatives {
    pub(super) fn new(
        config: &Config,
        places: &Whereabouts,
        servers: &Servers,
    ) -> Result<Alternatives, ConfigError> {
        let mut others = BTreeMap::new();
        for name in &config.alt_svc_hosts {
            let found = (places.resolve)(name);
            let unknown = || ConfigError::at("alt_svc_hosts", format!("there is no host `{name}`"));
            others.insert(name.to_ascii_lowercase(), found.ok_or_else(unknown)?);
        }
        let names: Vec<String> = (0..servers.pools.len()).map(|pool| servers.host(pool)).collect();
        let known =
            |to, name| Known { at: Some((place(to, name), Instant::FAR_FUTURE, true)), ..Known::default() };
        let all = servers.pools.iter().zip(&names).map(|(pool, name)| match config.alt_svc {
            Follow::Known => known(pool.to, name),
            Follow::Announced | Follow::Off => Known::default(),
        });
        Ok(Alternatives {
            follow: config.alt_svc,
            delay: config.race_delay,
            others,
            has_worked: false,
            all: all.collect(),
            names,
            moved: Instant::ZERO,
            broken: 0,
        })
    }

    /// Are alternatives of use at all?
    pub(super) fn are_followed(&self) -> bool {
        self.follow != Follow::Off
    }

    /// A server says what its alternatives are, asked at this time: what was known of them is forgotten (RFC 7838, 3.1).
    //= RFC 9111 (4.2.3): what a response says counts from the request on, since nobody knows when between them it was made.
    pub(super) fn learn(&mut self, pool: usize, origin: SocketAddr, said: AltSvc, asked: Instant) {
        let AltSvc::Services(services) = said else {
            self.all[pool].at = None;
            return;
        };
        //= RFC 7838 (2.1): another host is believed only where there is reason to.
        let own = &self.names[pool];
        let found = |host: Option<&str>, port: u16| {
            let host = host.map_or_else(|| own.clone(), str::to_ascii_lowercase);
            let other = || self.others.get(&host).copied();
            let address = if host == *own { Some(origin.ip()) } else { other() };
            Some(place(SocketAddr::new(address?, port), &host))
        };
        // What was asked for in another network is said there.
        let is_here = asked >= self.moved;
        let ours =
            services.iter().filter(|service| service.protocol == net::H3.as_bytes() && service.max_age > 0);
        let mut usable = ours.filter(|service| is_here || service.persists).filter_map(|service| {
            let until = asked + Duration::from_secs(service.max_age.into());
            Some((found(service.host.as_deref(), service.port)?, until, service.persists))
        });
        self.all[pool].at = usable.next();
    }

    /// The alternatives of this server are of no use.
    pub(super) fn forget(&mut self, pool: usize) {
        self.all[pool].at = None;
    }

    /// The client is in another network.
    pub(super) fn moved(&mut self, now: Instant) {
        self.moved = now;
        for known in &mut self.all {
            //= RFC 7838 (2.2): what was said in one network may be for that network alone, unless it says that it persists.
            known.at.take_if(|(.., persists)| !*persists);
        }
    }

    /// Where the server can be asked over QUIC now, as far as is known.
    pub(super) fn usable(&self, pool: usize, now: Instant) -> Option<Place> {
        let known = &self.all[pool];
        //= RFC 7838 (2.4): what was found not to work is not used, for a while.
        let is_broken = known.is_suspected || known.broken_until.is_some_and(|until| now < until);
        known.at.as_ref().filter(|(_, until, _)| now < *until && !is_broken).map(|(place, ..)| place.clone())
    }

    /// A race begins.
    pub(super) fn begin(&mut self, pool: usize, quic: SocketId, now: Instant) {
        //= QuicSessionPool::GetTimeDelayForWaitingJob: no delay while QUIC is not known to work in this network, nor where it
        //= was broken and not up since; else 1.5 round trips of the server. A handshake is one.
        let known = &self.all[pool];
        let measured = known.handshake.map_or(USUAL_DELAY, |handshake| handshake * 3 / 2);
        let is_trusted = self.has_worked && known.failures == 0;
        let delay = self.delay.unwrap_or(if is_trusted { measured } else { Duration::ZERO });
        self.all[pool].race = Some(Race { quic, tcp: None, begins: now + delay });
    }

    /// Does one go on for this server?
    pub(super) fn races(&self, pool: usize) -> bool {
        self.all[pool].race.is_some()
    }

    /// The race for this server is over.
    pub(super) fn end(&mut self, pool: usize) -> Option<Race> {
        self.all[pool].race.take()
    }

    /// All of them are over.
    pub(super) fn end_all(&mut self) {
        self.all.iter_mut().for_each(|known| known.race = None);
    }

    /// When TCP begins in one of the races.
    pub(super) fn next(&self) -> Option<Instant> {
        let races = self.all.iter().filter_map(|known| known.race.as_ref());
        races.filter(|race| race.tcp.is_none()).map(|race| race.begins).min()
    }

    /// A server for which TCP begins now.
    pub(super) fn due(&self, now: Instant) -> Option<usize> {
        let waits = |known: &Known| known.race.as_ref().is_some_and(|r| r.tcp.is_none() && r.begins <= now);
        self.all.iter().position(waits)
    }

    /// TCP has begun.
    pub(super) fn joined(&mut self, pool: usize, tcp: SocketId) {
        if let Some(race) = &mut self.all[pool].race {
            race.tcp = Some(tcp);
        }
    }

    /// QUIC is up, after so long.
    pub(super) fn quic_is_up(&mut self, pool: usize, handshake: Duration) {
        let known = &mut self.all[pool];
        self.has_worked = true;
        (known.handshake, known.failures, known.is_suspected) = (Some(handshake), 0, false);
    }

    /// QUIC did not come up. That says nothing of it where nothing comes up.
    pub(super) fn quic_failed(&mut self, pool: usize, tcp_is_up: bool, now: Instant) {
        self.all[pool].is_suspected = true;
        if tcp_is_up {
            self.tcp_is_up(pool, now);
        }
    }

    /// TCP is up.
    pub(super) fn tcp_is_up(&mut self, pool: usize, now: Instant) {
        let known = &mut self.all[pool];
        if std::mem::take(&mut known.is_suspected) {
            known.broken_until = Some(now + broken_for(known.failures));
            known.failures = known.failures.saturating_add(1);
            self.broken += 1;
        }
    }

    /// TCP does not come up either.
    pub(super) fn tcp_failed(&mut self, pool: usize) {
        self.all[pool].is_suspected = false;
    }
}

/// Host and port of an alternative over TLS.
fn place(to: SocketAddr, host: &str) -> Place {
    Place { to, name: authority(host, to.port(), 443).into() }
}

/// How long an alternative is left alone that was broken so often since it was up last.
fn broken_for(failures: u32) -> Duration {
    // More doublings than that are more than the most in any case.
    (BROKEN * (1 << failures.min(16))).min(MOST_BROKEN)
}

#[cfg(test)]
mod tests {
    use airloom_content::http::alt_svc;

    use super::*;

    #[test]
    fn in_another_network_what_does_not_persist_is_forgotten() {
        let mut alternatives = Alternatives {
            follow: Follow::Announced,
            delay: None,
            names: vec!["server".to_owned(); 2],
            others: BTreeMap::new(),
            has_worked: false,
            all: vec![Known::default(), Known::default()],
            moved: Instant::ZERO,
            broken: 0,
        };
        for (pool, value) in [r#"h3=":443""#, r#"h3=":443"; persist=1"#].into_iter().enumerate() {
            let said = alt_svc::parse(std::iter::once(value.as_bytes())).expect("it is well formed");
            alternatives.learn(pool, ([10, 0, 0, 1], 443).into(), said, Instant::ZERO);
            assert!(alternatives.usable(pool, Instant::ZERO).is_some());
        }
        let later = Instant::ZERO + Duration::from_secs(1);
        alternatives.moved(later);
        assert!(alternatives.usable(0, later).is_none());
        assert!(alternatives.usable(1, later).is_some());
        // What was under way then is of the network before, what is asked for now is not.
        for (asked, is_known) in [(Instant::ZERO, false), (later, true)] {
            let said = alt_svc::parse(std::iter::once(&br#"h3=":443""#[..])).expect("it is well formed");
            alternatives.learn(0, ([10, 0, 0, 1], 443).into(), said, asked);
            assert_eq!(alternatives.usable(0, later).is_some(), is_known);
        }
    }

    #[test]
    fn what_is_broken_again_and_again_is_left_alone_for_two_days_at_most() {
        let times = [(0, 300), (1, 600), (2, 1200), (9, 153_600), (10, 172_800), (u32::MAX, 172_800)];
        for (failures, seconds) in times {
            assert_eq!(broken_for(failures), Duration::from_secs(seconds), "{failures}");
        }
    }
}

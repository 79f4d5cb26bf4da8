//! `airloom serve wap-gateway`: the gateway of the simulated network on UDP sockets, with real origins.
//!
//! ```text
//!  9201, 9200 (udp.rs) ──> Gateway (airloom-proxies) ──> fetches.rs ──> origins over HTTP (fetch.rs)
//!          ▲                      │        ▲                   │
//!          └──────────────────────┘        └───────────────────┘
//!  metrics.rs, pushes.rs (http_face.rs) ──┘
//! ```

mod fetches;
mod log;
mod metrics;
mod pushes;

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use airloom_proxies::wap_gateway::{Config, Counters, Gateway, Service, pap};
use tokio::sync::mpsc;

use self::fetches::Fetches;
use super::clock::{Clock, today};
use super::fetch::Fetcher;
use super::http_face::{self, Call};
use super::listening::{self, CannotListen, cannot};
use super::origins::Origins;
use super::stop::{Stop, over};
use super::udp::Datagrams;
use crate::secret;

/// What a daemon is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where clients with a session come to.
    pub session: SocketAddr,
    /// Where those without one come to, if anywhere.
    pub connectionless: Option<SocketAddr>,
    /// Where numbers for Prometheus are to be had, if anywhere.
    pub metrics: Option<SocketAddr>,
    /// Where pushes are submitted (PAP over HTTP), if anywhere. Whoever can connect there can push.
    pub push: Option<SocketAddr>,
    /// By which names the two may be asked, besides addresses and `localhost`.
    pub names: Vec<String>,
    /// Which origins may be asked.
    pub origins: Origins,
    /// Settings of the machine.
    pub gateway: Config,
    /// How long requests that are under way may take when the daemon is to stop.
    pub grace: Duration,
}

/// Where a daemon listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listening {
    /// For clients with a session.
    pub session: SocketAddr,
    /// For those without one.
    pub connectionless: Option<SocketAddr>,
    /// For Prometheus.
    pub metrics: Option<SocketAddr>,
    /// For initiators of pushes.
    pub push: Option<SocketAddr>,
}

/// Calls of others that wait for the machine.
const CALLS: usize = 64;

/// Serves until it is told to stop (SIGINT, SIGTERM), then lets requests under way end; a second signal ends it at once.
/// `ready` is told where it listens before the first datagram is taken, `log` gets a line for each exchange.
///
/// # Errors
/// [`CannotListen`] if an address is taken or not ours.
pub fn serve(
    options: &Options,
    ready: impl FnOnce(Listening),
    log: impl FnMut(String),
) -> Result<Counters, CannotListen> {
    listening::run(run(options, ready, log))
}

struct Daemon<L> {
    clock: Clock,
    gateway: Gateway,
    session: Datagrams,
    connectionless: Option<Datagrams>,
    fetches: Fetches,
    log: L,
}

async fn run(
    options: &Options,
    ready: impl FnOnce(Listening),
    log: impl FnMut(String),
) -> Result<Counters, CannotListen> {
    let bind = |at: SocketAddr| Datagrams::bind(at).map_err(cannot(at));
    let session = bind(options.session)?;
    let connectionless = options.connectionless.map(bind).transpose()?;
    let (calls, mut called) = mpsc::channel(CALLS);
    let (initiators, mut submitted) = mpsc::channel(CALLS);
    let face = |at: SocketAddr, most: usize, calls: &mpsc::Sender<Call>| {
        http_face::serve(at, most, &options.names, calls.clone()).map_err(cannot(at))
    };
    let metrics = options.metrics.map(|at| face(at, 0, &calls)).transpose()?;
    let push = options.push.map(|at| face(at, pap::MOST, &initiators)).transpose()?;
    let mut stop = Stop::listen()?;
    let local = |socket: &Datagrams, at| socket.local().map_err(cannot(at));
    let session_at = local(&session, options.session)?;
    ready(Listening {
        session: session_at,
        connectionless: connectionless.as_ref().map(|s| local(s, options.session)).transpose()?,
        metrics,
        push,
    });
    let (fetches, mut fetched) = Fetches::new(Fetcher::new(options.origins.clone()));
    let key = secret::key()?;
    let mut config = options.gateway.clone();
    config.name = Some(config.name.map_or_else(super::pseudonym, Ok)?);
    let mut gateway = Gateway::new(config, key);
    // One that listens everywhere is to be found where the request to open a session comes from, if at its usual port.
    gateway.set_contact(Some(session_at).filter(|at| !at.ip().is_unspecified()));
    gateway.set_calendar(today());
    let mut daemon = Daemon { clock: Clock::start(), gateway, session, connectionless, fetches, log };
    let mut end = None;
    loop {
        daemon.drain();
        if end.is_some() && daemon.gateway.outstanding() == 0 {
            break;
        }
        let clock = daemon.clock;
        tokio::select! {
            // Signals first: a daemon under load stops, too.
            biased;
            () = stop.asked() => match end {
                None => end = Some(tokio::time::Instant::now() + options.grace),
                Some(_) => break,
            },
            () = over(end) => break,
            () = clock.until(daemon.gateway.poll_timeout()) => daemon.gateway.handle_timeout(clock.now()),
            Some((id, part)) = fetched.recv() => {
                daemon.fetches.arrived(id, &part);
                daemon.gateway.handle_fetch(clock.now(), id, part);
            }
            Some(call) = called.recv() => daemon.answer(call),
            Some(call) = submitted.recv() => pushes::answer(&mut daemon.gateway, clock.now(), call),
            Ok(()) = daemon.session.readable(), if end.is_none() || daemon.gateway.sessions() > 0 => {
                let (gateway, now) = (&mut daemon.gateway, clock.now());
                daemon.session.read(|from, d| gateway.handle_datagram(now, Service::Session, from, &d));
            }
            Ok(()) = readable(daemon.connectionless.as_ref()), if end.is_none() => {
                let (gateway, now) = (&mut daemon.gateway, clock.now());
                if let Some(socket) = &mut daemon.connectionless {
                    socket.read(|from, d| gateway.handle_datagram(now, Service::Connectionless, from, &d));
                }
            }
        }
    }
    daemon.gateway.shut_down(daemon.clock.now());
    daemon.drain();
    Ok(daemon.gateway.counters())
}

async fn readable(socket: Option<&Datagrams>) -> io::Result<()> {
    match socket {
        Some(socket) => socket.readable().await,
        None => std::future::pending().await,
    }
}

impl<L: FnMut(String)> Daemon<L> {
    /// Carries out what the machine wants.
    fn drain(&mut self) {
        while let Some(order) = self.gateway.poll_fetch() {
            self.fetches.order(order);
        }
        while let Some((service, to, datagram)) = self.gateway.poll_transmit() {
            match (service, &mut self.connectionless) {
                (Service::Session, _) => self.session.send(to, &datagram),
                (Service::Connectionless, Some(socket)) => socket.send(to, &datagram),
                // Pushes alone: nobody could have asked.
                (Service::Connectionless, None) => self.session.send(to, &datagram),
            }
        }
        while let Some((id, outcome)) = self.gateway.poll_push() {
            (self.log)(log::push(self.clock.now(), id, outcome));
        }
        while let Some(exchange) = self.gateway.poll_report() {
            (self.log)(log::line(&exchange));
        }
    }

    fn answer(&mut self, call: Call) {
        let unsent = self.session.unsent + self.connectionless.as_ref().map_or(0, |s| s.unsent);
        http_face::show(call, || metrics::page(&self.gateway, unsent));
    }
}

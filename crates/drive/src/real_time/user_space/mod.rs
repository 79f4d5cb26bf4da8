//! Real time without namespaces: real sockets of this machine at both ends of a simulated path, in user space.
//!
//! ```text
//!   client == 127.0.0.1:8080 : near host == link == far host : socket == target
//!             kernel's TCP       the model's own TCP           kernel's TCP
//! ```
//!
//! For whoever may make no namespaces. Octets of TCP connections and datagrams of UDP go over the link; packets do not: what sees the
//! link's losses and delays is the model's TCP in between, and no kernel's. So the kernel's congestion control, its
//! retransmissions and its handshake with the target are not what is tried here.
//!
//! | part | what it is |
//! |---|---|
//! | `bridge` | the applications at both ends of the path |
//! | `relay` | the real sockets |

#![expect(clippy::disallowed_types, reason = "it is on the system's own sockets")]

mod bridge;
mod relay;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::thread;

use airloom_base::{App, Instant};
use airloom_world::scenario::Scenario;
use tokio::sync::watch;

use super::{Control, Error, FOR_EVER, LOOK, Report, clock, engine, pace};
use crate::run::{DriveError, Results};
use crate::virtual_time::Outcome;
use bridge::{Bridge, Door, MOST};

/// A port that clients come to, and where it leads.
#[derive(Debug)]
pub struct Listening {
    kind: Kind,
    target: SocketAddr,
}

/// A socket that is bound, and does not block.
#[derive(Debug)]
enum Kind {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

impl Listening {
    /// Binds to `listen`, for connections or for datagrams; their octets go to `target` at the far end. Where it is bound.
    ///
    /// # Errors
    /// As the kernel says: the address is taken, or is not ours.
    pub fn bind(
        is_stream: bool,
        listen: SocketAddr,
        target: SocketAddr,
    ) -> io::Result<(SocketAddr, Listening)> {
        let (at, kind) = if is_stream {
            let socket = TcpListener::bind(listen)?;
            socket.set_nonblocking(true)?;
            (socket.local_addr()?, Kind::Tcp(socket))
        } else {
            let socket = UdpSocket::bind(listen)?;
            socket.set_nonblocking(true)?;
            (socket.local_addr()?, Kind::Udp(socket))
        };
        Ok((at, Listening { kind, target }))
    }
}

/// The hosts at the ends of the path.
pub struct Ends<'a> {
    /// Where clients are.
    pub near: &'a str,
    /// Where the targets are.
    pub far: &'a str,
    /// An address of the far one.
    pub address: IpAddr,
}

/// Leads what comes to `listening` over the network of `scenario`, whose hosts are all simulated, until `go_on` says no more: it is
/// asked ten times a second. `ready` gets what changes the links.
pub fn forward(
    scenario: &Scenario,
    ends: &Ends,
    listening: Vec<Listening>,
    ready: impl FnOnce(Control),
    mut go_on: impl FnMut(Instant) -> bool,
) -> Result<(Results, Report), DriveError> {
    let called = clock::Clock::start();
    let doors = [Arc::new(Door::default()), Arc::new(Door::default())];
    let forwards = listening.len().min(MOST) as u16;
    let near = Bridge::near(Arc::clone(&doors[0]), ends.address);
    let far = Bridge::far(Arc::clone(&doors[1]), forwards);
    let edges: Vec<(&str, Box<dyn App>)> = vec![(ends.near, Box::new(near)), (ends.far, Box::new(far))];
    let mut world = scenario.build_with(edges)?;
    let mut records = world.records().counterpart();
    let taken = std::mem::take(&mut world);
    let engine = engine::start(taken, Vec::new(), FOR_EVER, false, scenario.run.keep_awake, called)?;
    let shared = engine.shared();
    let (end, over) = watch::channel(false);
    let theirs = Arc::clone(&shared);
    let relay = thread::Builder::new()
        .name("airloom-relay".to_owned())
        .spawn(move || relay::serve(listening, doors, &theirs, over))
        .map_err(|e| Error::SetUp(format!("the sockets' thread: {e}")))?;
    ready(Control::new(Arc::clone(&shared), scenario));
    loop {
        pace::sleep(&mut [clock::readable(engine.told())], LOOK).map_err(|e| Error::Device(e.to_string()))?;
        let (now, _, is_over) = engine.take(&mut records);
        records.clear();
        if is_over || relay.is_finished() {
            break;
        }
        if !go_on(now) {
            engine.stop();
        }
    }
    let _ = end.send(true);
    engine.stop();
    let (report, _) = engine.join(&mut world)?;
    match relay.join() {
        Ok(served) => served.map_err(|e| Error::Device(format!("the sockets: {e}")))?,
        Err(_) => return Err(Error::Device("the sockets' thread panicked".to_owned()).into()),
    }
    let mut report = Report { outcome: Outcome::Complete, ..report };
    report.limit = scenario.run.lateness_limit;
    let mut summary = world.summary();
    report.summarise(&mut summary);
    Ok((Results { outcome: report.outcome, summary, tables: airloom_record::Tables::default() }, report))
}

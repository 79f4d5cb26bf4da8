//! Applications on real TCP sockets: the machine that a simulated host runs, over the kernel's TCP.
//!
//! ```text
//!  listener ──> one task a connection (attend) ──> Core: the application, and Net, the sockets it is lent
//!                        ▲       waits for what the application wants to hear of       │ connect, names
//!                        └──────────────────── tasks.rs <──────────────────────────────┘
//! ```
//!
//! Everything is in one thread, so that the application is called directly and nothing is copied from task to task. What an
//! application does not read stays in the kernel, which holds the sender back; nothing is kept here for it.

mod client;
mod core;
mod net;
mod served;
mod tasks;

use std::net::SocketAddr;

use tokio::sync::mpsc;

pub use self::client::{Ended, until_done};
use self::core::Core;
pub use self::served::{Clients, Options, Served};
use super::http_face;
use super::listening::{self, CannotListen, cannot, listener};
use super::stop::{Stop, over};

/// Where a daemon listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listening {
    /// For clients.
    pub clients: SocketAddr,
    /// For Prometheus.
    pub metrics: Option<SocketAddr>,
}

/// Does what listens on `at` answer at `to`? A proxy that connects there serves itself until nothing is left.
#[expect(clippy::disallowed_types, reason = "a daemon is on the system's own sockets")]
pub fn leads_back(at: SocketAddr, to: SocketAddr) -> bool {
    let (to_ip, at_ip) = (to.ip().to_canonical(), at.ip().to_canonical());
    // What can be bound to is ours. An address of no host means this one.
    let is_ours = || to_ip.is_unspecified() || std::net::UdpSocket::bind((to_ip, 0)).is_ok();
    at.port() == to.port()
        && (to_ip == at_ip || (at_ip.is_unspecified() || to_ip.is_unspecified()) && is_ours())
}

/// Connections that wait to be taken.
const BACKLOG: u32 = 1024;
/// Calls for numbers that wait.
const CALLS: usize = 64;

/// Serves until told to stop (SIGINT, SIGTERM), then lets what is under way end; a second signal ends it at once. `ready` is
/// told where it listens before the first client is taken, `log` gets the lines that the application writes.
///
/// # Errors
/// [`CannotListen`] if an address is taken or not ours.
pub fn serve<A: Served + 'static>(
    options: &Options,
    app: A,
    ready: impl FnOnce(Listening),
    log: impl FnMut(String) + 'static,
) -> Result<(), CannotListen> {
    listening::run(run(options, app, ready, Box::new(log)))
}

async fn run<A: Served + 'static>(
    options: &Options,
    app: A,
    ready: impl FnOnce(Listening),
    log: Box<dyn FnMut(String)>,
) -> Result<(), CannotListen> {
    let clients = listener(options.listen, BACKLOG).map_err(cannot(options.listen))?;
    let (calls, mut called) = mpsc::channel(CALLS);
    let face = |at: SocketAddr| http_face::serve(at, 0, &options.names, calls.clone()).map_err(cannot(at));
    let metrics = options.metrics.map(face).transpose()?;
    let mut stop = Stop::listen()?;
    ready(Listening { clients: clients.local_addr().map_err(cannot(options.listen))?, metrics });
    let core = Core::new(options, app, log);
    tasks::start(&core);
    let taking = tokio::task::spawn_local(tasks::take(std::rc::Rc::clone(&core), clients));
    let timing = tokio::task::spawn_local(tasks::time(std::rc::Rc::clone(&core)));
    let mut end = None;
    let empty = std::rc::Rc::clone(&core.borrow().empty);
    loop {
        if end.is_some() && core.borrow().is_quiet() {
            break;
        }
        tokio::select! {
            // Signals first: a daemon under load stops, too.
            biased;
            () = stop.asked() => {
                if end.is_some() {
                    break;
                }
                end = Some(tokio::time::Instant::now() + options.grace);
                taking.abort();
                tasks::stop(&core);
            }
            () = over(end) => break,
            Some(call) = called.recv() => http_face::show(call, || core.borrow().app.numbers()),
            () = empty.notified() => {}
        }
    }
    taking.abort();
    timing.abort();
    core.borrow_mut().net.close_all();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_back_is_told_from_what_does_not() {
        let leads = |at: &str, to: &str| leads_back(at.parse().expect("one"), to.parse().expect("one"));
        for to in ["127.0.0.1:8080", "0.0.0.0:8080", "[::ffff:127.0.0.1]:8080"] {
            assert!(leads("127.0.0.1:8080", to) && leads("0.0.0.0:8080", to), "{to}");
        }
        for to in ["127.0.0.1:8081", "192.0.2.1:8080"] {
            assert!(!leads("127.0.0.1:8080", to) && !leads("0.0.0.0:8080", to), "{to}");
        }
        assert!(!leads("127.0.0.1:8080", "127.0.0.2:8080") && leads("0.0.0.0:8080", "127.0.0.2:8080"));
    }
}

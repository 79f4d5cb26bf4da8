//! What waits: for clients, for each connection, for connections to open, for names and for the time.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use airloom_base::{CloseReason, SocketEvent, SocketId};
use airloom_proxies::fetch::FetchError;
use airloom_proxies::lookup::{Found, Lookup};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::spawn_local;

use super::super::listening::NO_ROOM;
use super::Served;
use super::core::{Orders, Shared};
use super::net::reason;

/// How long a name may take.
const LOOKUP: Duration = Duration::from_secs(10);

/// The application begins.
pub(super) fn start<A: Served + 'static>(core: &Shared<A>) {
    let orders = core.borrow_mut().start();
    carry_out(core, orders);
}

/// No more clients come.
pub(super) fn stop<A: Served + 'static>(core: &Shared<A>) {
    let orders = core.borrow_mut().stop();
    carry_out(core, orders);
}

fn carry_out<A: Served + 'static>(core: &Shared<A>, orders: Orders) {
    for (socket, to) in orders.connect {
        spawn_local(open(Rc::clone(core), socket, to));
    }
    for lookup in orders.look_up {
        spawn_local(look_up(Rc::clone(core), lookup));
    }
}

/// Takes clients.
pub(super) async fn take<A: Served + 'static>(core: Shared<A>, listener: TcpListener) {
    loop {
        let Ok((stream, from)) = listener.accept().await else {
            tokio::time::sleep(NO_ROOM).await;
            continue;
        };
        let (is_transparent, is_allowed) = {
            let core = core.borrow();
            (core.options.is_transparent, core.options.clients.allows(from.ip()))
        };
        let Ok(at) = meant(&stream, is_transparent) else { continue };
        if !is_allowed {
            continue;
        }
        let (socket, (orders, _)) = {
            let mut core = core.borrow_mut();
            let _ = stream.set_nodelay(!core.options.nagle);
            let socket = core.net.insert(Some(stream));
            (socket, core.tell(socket, SocketEvent::Accepted { at, from }))
        };
        carry_out(&core, orders);
        spawn_local(attend(Rc::clone(&core), socket));
    }
}

/// Whom a client means: us, or where it was going before it was turned aside.
fn meant(stream: &TcpStream, is_transparent: bool) -> io::Result<SocketAddr> {
    let local = stream.local_addr()?;
    if !is_transparent {
        return Ok(local);
    }
    let socket = SockRef::from(stream);
    // Clients of IPv4 come to a listener on [::], too, with addresses that are written as those of IPv6.
    let is_v4 = local.ip().to_canonical().is_ipv4();
    let original = if is_v4 { socket.original_dst_v4() } else { socket.original_dst_v6() }?;
    let original =
        original.as_socket().filter(|at| (at.ip(), at.port()) != (local.ip().to_canonical(), local.port()));
    // One that came here by itself leads back here: it would be served for ever.
    original.ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
}

/// Tells the application what happens on a connection, until that is gone.
async fn attend<A: Served + 'static>(core: Shared<A>, socket: SocketId) {
    while let Some(news) = poll_fn(|task| core.borrow_mut().net.poll_news(socket, task)).await {
        let (orders, is_turn_over) = core.borrow_mut().tell(socket, news);
        carry_out(&core, orders);
        if is_turn_over {
            tokio::task::yield_now().await;
        }
    }
}

/// Opens a connection, and attends to it.
async fn open<A: Served + 'static>(core: Shared<A>, socket: SocketId, to: SocketAddr) {
    let (patience, may, others) = {
        let core = core.borrow();
        // Names were looked at when they were looked up.
        let may = A::LOOKS_UP || core.options.origins.allows("", to.ip());
        (core.options.connect, may, core.app.others(to))
    };
    let connecting = async {
        if !may {
            return Err(CloseReason::Unreachable);
        }
        let mut opened = connect(to, patience).await;
        for other in others {
            if opened.is_ok() {
                break;
            }
            opened = connect(other, patience).await;
        }
        opened
    };
    let opened = tokio::select! {
        biased;
        () = poll_fn(|task| core.borrow_mut().net.poll_gone(socket, task)) => return,
        opened = connecting => opened,
    };
    let orders = {
        let mut core = core.borrow_mut();
        match opened {
            Ok(stream) => {
                let _ = stream.set_nodelay(!core.options.nagle);
                if !core.net.opened(socket, stream) {
                    return;
                }
                core.tell(socket, SocketEvent::Opened).0
            }
            Err(why) => core.tell(socket, SocketEvent::Closed(why)).0,
        }
    };
    carry_out(&core, orders);
    attend(core, socket).await;
}

async fn connect(to: SocketAddr, patience: Duration) -> Result<TcpStream, CloseReason> {
    let opening = async {
        let new = if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        new.connect(to).await
    };
    match tokio::time::timeout(patience, opening).await {
        Ok(opened) => opened.map_err(|error| reason(&error)),
        Err(_) => Err(CloseReason::TimedOut),
    }
}

/// Finds the addresses of a name that may be connected to.
async fn look_up<A: Served + 'static>(core: Shared<A>, lookup: Lookup) {
    let name = lookup.host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let found = tokio::time::timeout(LOOKUP, tokio::net::lookup_host((name.as_str(), 0))).await;
    let found: Found = match found {
        Err(_) => Err(FetchError::TimedOut),
        Ok(Err(_)) => Err(FetchError::Unresolved),
        Ok(Ok(addresses)) => {
            let core = core.borrow();
            let mut all = 0;
            let mut allowed = Vec::new();
            for address in addresses {
                all += 1;
                if core.options.origins.allows(&name, address.ip()) && !allowed.contains(&address.ip()) {
                    allowed.push(address.ip());
                }
            }
            match (all, allowed.is_empty()) {
                (0, _) => Err(FetchError::Unresolved),
                (_, true) => Err(FetchError::Forbidden),
                (_, false) => Ok(allowed),
            }
        }
    };
    let orders = core.borrow_mut().found(lookup.id, found);
    carry_out(&core, orders);
}

/// Calls the application when it wants to be called.
pub(super) async fn time<A: Served + 'static>(core: Shared<A>) {
    let (timer, clock) = {
        let core = core.borrow();
        (Rc::clone(&core.timer), core.clock)
    };
    loop {
        let next = core.borrow_mut().arm();
        tokio::select! {
            () = timer.notified() => {}
            () = clock.until(next) => {
                let orders = core.borrow_mut().timeout();
                carry_out(&core, orders);
            }
        }
    }
}

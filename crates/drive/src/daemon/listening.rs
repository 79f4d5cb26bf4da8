//! How a daemon begins, and why it could not.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::task::LocalSet;

/// How long to wait where the kernel has no room for another connection.
pub(super) const NO_ROOM: Duration = Duration::from_millis(100);

/// Why a daemon could not begin.
#[derive(Debug)]
pub struct CannotListen {
    /// Where.
    pub at: Option<SocketAddr>,
    /// What the kernel says.
    pub why: io::Error,
}

impl fmt::Display for CannotListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) => write!(f, "cannot listen on {at}: {}", self.why),
            None => write!(f, "cannot begin: {}", self.why),
        }
    }
}

impl std::error::Error for CannotListen {}

impl From<io::Error> for CannotListen {
    fn from(why: io::Error) -> CannotListen {
        CannotListen { at: None, why }
    }
}

/// What the kernel says of an address.
pub(crate) fn cannot(at: SocketAddr) -> impl Fn(io::Error) -> CannotListen {
    move |why| CannotListen { at: Some(at), why }
}

/// Listens for connections, of which so many wait to be taken.
pub(super) fn listener(at: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = if at.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(at)?;
    socket.listen(backlog)
}

/// Does what a daemon does, in this thread alone.
pub(crate) fn run<T>(daemon: impl Future<Output = Result<T, CannotListen>>) -> Result<T, CannotListen> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(LocalSet::new().run_until(daemon))
}

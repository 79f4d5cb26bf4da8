//! What is counted.

/// Since the proxy began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Clients that came.
    pub connections: u64,
    /// Clients that were reset because there were too many.
    pub refused: u64,
    /// Clients at a time, at most.
    pub connections_peak: u64,
    /// Requests.
    pub requests: u64,
    /// Answered from the store without asking anybody.
    pub hits: u64,
    /// Answered from the store after the server said that nothing has changed.
    pub validated: u64,
    /// Answered from the store although it was old, since the server could not be reached.
    pub stale: u64,
    /// Put into the queue of a server.
    pub misses: u64,
    /// Answers that were kept.
    pub stored: u64,
    /// Answers of the proxy itself: requests that it cannot or will not forward.
    pub errors: u64,
    /// Requests that were sent again on another connection.
    pub retries: u64,
    /// Requests whose client was gone before the answer was complete.
    pub abandoned: u64,
    /// Answers that broke off.
    pub broken: u64,
    /// Tunnels that were opened.
    pub tunnels: u64,
    /// Connections to servers that were opened.
    pub server_connections: u64,
    /// Connections to servers that could not be opened.
    pub server_failed: u64,
    /// Octets of bodies from servers, and to clients.
    pub server_octets: u64,
    /// See there.
    pub client_octets: u64,
}
